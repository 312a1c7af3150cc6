"""Generated programs with transforms, run on nnxkit and on flax.nnx: they agree, or the difference is one of the table
below, which stands in `docs/differences.md`.

The programs are those of `transform_programs`. Each transform meets, in each mode, every edit, every structure, every
result and the captured access (`SWEEP`); combinations of edits are drawn at random. A difference says where it may be
met and what nnxkit does instead, mostly by naming a program that it does the same as; so neither library can
change unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nnxkit
from graph_facts import Observation, observe_call
from repository import ROOT
from transform_calls import CALLS
from transform_programs import (
    EDITS,
    MODES,
    RESULTS,
    STRUCTURAL,
    STRUCTURES,
    TRANSFORMS,
    Interrupted,
    Program,
    observe,
)

flax_nnx = pytest.importorskip("flax.nnx")

DOCUMENT = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")


# ---- agreement


def kind(error: Exception | None) -> type[BaseException] | None:
    """The class that a program would catch: the built-in one, or the class of the trace level that both have."""
    if error is None:
        return None
    if type(error).__name__ == "TraceContextError":
        return nnxkit.errors.TraceContextError
    return next(base for base in type(error).__mro__ if base.__module__ == "builtins" or base is Interrupted)


def ends_alike(own: Observation, peer: Observation) -> bool:
    expected = kind(peer.error)
    return own.error is None if expected is None else isinstance(own.error, expected)


def leaves_alike(own: Observation, peer: Observation) -> bool:
    """Whether the caller's objects are in the same state, and the endings are alike."""
    return ends_alike(own, peer) and own.state == peer.state


def agrees(own: Observation, peer: Observation) -> bool:
    return leaves_alike(own, peer) and (own.result, own.notes) == (peer.result, peer.notes)


# ---- differences


@dataclass(frozen=True)
class Case:
    """A program on which the libraries disagree."""

    program: Program
    own: Observation
    peer: Observation

    def variant(self, **changes: Any) -> Observation:
        """What nnxkit does with a program that differs in some coordinates."""
        return observe(nnxkit, replace(self.program, **changes))

    @property
    def is_unchanged(self) -> bool:
        """Whether the caller's objects are as they were built."""
        nothing = observe(flax_nnx, Program("eval_shape", structure=self.program.structure, result="none"))
        return self.own.state == nothing.state

    @property
    def is_refused(self) -> bool:
        """Whether nnxkit raises for the arguments, and everything is as it was."""
        return isinstance(self.own.error, ValueError | TypeError) and self.is_unchanged


@dataclass(frozen=True)
class Difference:
    """Where the libraries differ on purpose."""

    entry: str
    """The words that begin the entry in `docs/differences.md`."""
    example: Program
    applies: Callable[[Case], bool]
    """Whether a case is one of these, by its program and by what flax did."""
    holds: Callable[[Case], bool]
    """Whether nnxkit did what the entry says."""


ACCIDENTS = (RuntimeError, RecursionError, AttributeError, AssertionError, IndexError, KeyError)


CARRYING = ("scan carry", "scan broadcast", "scan in jit", "while_loop", "fori_loop")
SHARING = ("tied", "shared", "twice", "cycle")


def as_an_argument(case: Case) -> bool:
    """What is captured is treated as an argument that the transform neither maps nor differentiates."""
    program = case.program
    if isinstance(case.own.error, Interrupted):
        return case.is_unchanged
    transform = TRANSFORMS[program.transform].neutral or program.transform
    # Only arguments are trees: captures are found one by one.
    mode = "no updates" if program.structure in SHARING and program.mode == "tree" else program.mode
    if mode != program.mode and program.result == "fresh twice":
        return case.is_refused
    passed = case.variant(captured=False, transform=transform, mode=mode)
    if isinstance(passed.error, TypeError) and "custom_vjp" in transform:
        return case.own.error is None  # what is captured is not differentiated, so it may hold integers
    if transform in CARRYING and program.mode != "default" and STRUCTURAL & {*program.edits}:
        return case.own.error is None or case.is_refused  # lost, as everywhere, unless values change their type
    return leaves_alike(case.own, passed) and case.own.notes == passed.notes


DIFFERENCES = (
    Difference(
        "Captured `Rngs` under `vmap`",
        Program("vmap", structure="keys", edits=("draw",), captured=True),
        lambda case: case.program.captured and "vmap" in case.program.transform and "draw" in case.program.edits,
        lambda case: case.is_refused,
    ),
    Difference(
        "Captures are inputs",
        Program("jit", edits=("scale",), captured=True),
        lambda case: case.program.captured,
        as_an_argument,
    ),
    Difference(
        "`vjp`, `jvp`, `make_jaxpr` and `jit_partial`",
        Program("vjp", edits=("attach",)),
        lambda case: kind(case.peer.error) is NotImplementedError,
        lambda case: case.is_refused or leaves_alike(case.own, case.variant(transform="remat")),
    ),
    Difference(
        "Objects beside a derivative",
        Program("vjp", "no updates", result="fresh"),
        lambda case: case.program.transform in ("vjp", "jvp") and "fresh" in case.program.result,
        lambda case: leaves_alike(case.own, case.variant(transform="remat")),
    ),
    Difference(
        "Cotangents of `custom_vjp`",
        Program("custom_vjp", edits=("attach",), result="none"),
        lambda case: case.program.transform == "custom_vjp",
        lambda case: case.is_refused or leaves_alike(case.own, case.variant(transform="remat")),
    ),
    Difference(
        "Failures inside flax",
        Program("jit", "tree", "cycle"),
        lambda case: kind(case.peer.error) in ACCIDENTS,
        lambda case: case.is_refused or leaves_alike(case.own, case.variant(result="none")),
    ),
    Difference(
        "Prefixes by filter",
        Program("vmap by filter", structure="pair", result="none"),
        lambda case: case.program.transform == "vmap by filter" and case.program.structure in ("pair", "twice"),
        lambda case: ends_alike(case.own, case.variant(structure="net")),
    ),
    Difference(
        "Sharing in tree mode",
        Program("while_loop", "tree", "tied", result="none"),
        lambda case: case.program.mode == "tree" and case.program.structure in SHARING,
        lambda case: case.is_refused,
    ),
    Difference(
        "Sharing and `eval_shape`",
        Program("eval_shape", "no updates", "tied"),
        lambda case: case.program.transform == "eval_shape" and case.program.mode != "default",
        lambda case: case.own.error is None and case.is_unchanged,
    ),
    Difference(
        "Mutation under a `None` axis of `scan`",
        Program("scan broadcast", edits=("scale",)),
        lambda case: (
            (case.program.transform, case.program.mode) == ("scan broadcast", "default") and case.program.edits != ()
        ),
        lambda case: case.is_refused,
    ),
    Difference(
        "Metadata",
        Program("jit", edits=("note",)),
        lambda case: case.program.mode == "default" and "note" in case.program.edits and case.peer.error is None,
        lambda case: leaves_alike(case.own, case.peer) and case.own.result == case.peer.result and bool(case.own.notes),
    ),
    Difference(
        "Inputs that are returned",
        Program("vmap broadcast", result="input"),
        lambda case: case.program.mode == "default" and case.program.result in ("input", "weight"),
        lambda case: leaves_alike(case.own, case.variant(result="none")),
    ),
    Difference(
        "A carry keeps its Modules",
        Program("fori_loop", edits=("static",), result="none"),
        lambda case: case.program.transform in CARRYING and bool({*STRUCTURAL, "note"} & {*case.program.edits}),
        lambda case: case.is_refused,
    ),
    Difference(
        "Variables that were taken away",
        Program("vmap broadcast", edits=("add input", "delete")),
        lambda case: case.program.mode == "default" and bool({"delete", "swap", "move"} & {*case.program.edits}),
        lambda case: case.is_refused,
    ),
)


def verdict(program: Program) -> str | None:
    """What is wrong with nnxkit's answer to a program."""
    case = Case(program, observe(nnxkit, program), observe(flax_nnx, program))
    if agrees(case.own, case.peer):
        return None
    difference = next((difference for difference in DIFFERENCES if difference.applies(case)), None)
    if difference is None:
        return f"{program}\n  nnxkit: {shown(case.own)}\n  flax:   {shown(case.peer)}"
    if not difference.holds(case):
        return f"{program} (not as in {difference.entry!r})\n  nnxkit: {shown(case.own)}\n  flax:   {shown(case.peer)}"
    return None


def shown(observation: Observation) -> str:
    ending = observation.result if observation.error is None else repr(observation.error)
    return f"{str(ending)[:300]}\n          {str(observation.state)[:500]} {observation.notes or ''}"


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.entry)
def test_a_difference_is_one(difference: Difference) -> None:
    program = difference.example
    case = Case(program, observe(nnxkit, program), observe(flax_nnx, program))
    assert not agrees(case.own, case.peer)
    assert difference.applies(case)
    assert difference.holds(case)


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.entry)
def test_a_difference_is_documented(difference: Difference) -> None:
    assert f"- **{difference.entry}" in DOCUMENT


# ---- programs


def sweep(transform: str, mode: str) -> Iterator[Program]:
    """Every value of every coordinate, each in one program or two."""

    def programs() -> Iterator[Program]:
        for number, (name, edit) in enumerate(EDITS.items()):
            structure = next(name for name in reversed(STRUCTURES) if edit.needs <= STRUCTURES[name].has)
            for result in ("none", *("array", "fresh")[number % 2 :][:1]):
                yield Program(transform, mode, "net" if structure == "cycle" else structure, (name,), result)
        for structure in STRUCTURES:
            yield Program(transform, mode, structure, ("scale",), "none")
        for result in RESULTS:
            yield Program(transform, mode, "net", ("add input",), result)
        for edits in ((), ("add input",), ("attach",)):
            yield Program(transform, mode, "net", edits, "none", captured=True)
        for structure in ("nested", "twice"):
            yield Program(transform, mode, structure, ("scale",), "none", captured=True)

    return (program for program in dict.fromkeys(programs()) if program.is_valid)


SWEEP = [(transform, mode) for transform in TRANSFORMS for mode in MODES if mode in TRANSFORMS[transform].modes]
PARTS = 5
"""A fifth of the programs is run everywhere; which one changes from transform to transform."""


def sweep_part(transform: str, mode: str, part: int) -> list[Program]:
    return list(sweep(transform, mode))[(SWEEP.index((transform, mode)) + part) % PARTS :: PARTS]


def disagreements(programs: Iterable[Program]) -> str:
    return "\n".join(text for text in map(verdict, programs) if text)


@pytest.mark.fuzz
@pytest.mark.parametrize(("transform", "mode"), SWEEP)
def test_edits_structures_and_results(transform: str, mode: str) -> None:
    assert disagreements(sweep_part(transform, mode, 0)) == ""


@pytest.mark.slow
@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(1, PARTS))
@pytest.mark.parametrize(("transform", "mode"), SWEEP)
def test_more_edits_structures_and_results(transform: str, mode: str, part: int) -> None:
    assert disagreements(sweep_part(transform, mode, part)) == ""


programs = st.builds(
    Program,
    st.sampled_from(list(TRANSFORMS)),
    st.sampled_from(list(MODES)),
    st.sampled_from(list(STRUCTURES)),
    st.lists(st.sampled_from(list(EDITS)), min_size=2, max_size=4).map(tuple),
    st.sampled_from(list(RESULTS)),
    st.booleans(),
).filter(lambda program: program.is_valid)
combinations = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


@pytest.mark.fuzz
@settings(combinations, max_examples=50)
@given(programs)
def test_combinations(program: Program) -> None:
    assert disagreements([program]) == ""


@pytest.mark.slow
@pytest.mark.fuzz
@settings(combinations, max_examples=150)
@given(programs)
def test_more_combinations(program: Program) -> None:
    assert disagreements([program]) == ""


# ---- calls

ACCEPTED: Mapping[str, tuple[str, ...]] = {
    "Prefixes in a list": ("vmap: axes in a list", "scan: axes in a list"),
    "Prefixes by filter": ("vmap: axes of an array by filter",),
    "Bound methods": ("jit: a bound method", "grad: a bound method", "vmap: a bound method", "remat: a bound method"),
    "Modules as branches": ("cond: instances",),
    "Keyword arguments": (
        "grad: keyword-only",
        "vmap: keyword-only",
        "remat: keyword-only",
        "checkify: keyword-only",
        "grad: all by name",
        "vmap: axes of arguments by name",
    ),
}
"""Entries of `docs/differences.md`, and the calls that nnxkit accepts in every mode because of them."""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CALLS)
def test_ways_to_call(name: str, mode: str) -> None:
    own, peer = (
        observe_call(library, None, lambda library=library: CALLS[name](library, MODES[mode]))
        for library in (nnxkit, flax_nnx)
    )
    if any(name in names for names in ACCEPTED.values()):
        assert own.error is None or agrees(own, peer)
    elif kind(peer.error) is NotImplementedError:
        other = observe_call(nnxkit, None, lambda: CALLS[name](nnxkit, MODES["no updates"]))
        assert agrees(own, other)
    elif kind(peer.error) in ACCIDENTS:
        assert isinstance(own.error, ValueError | TypeError)
    else:
        assert agrees(own, peer), f"\n  nnxkit: {shown(own)}\n  flax:   {shown(peer)}"


@pytest.mark.parametrize("entry", ACCEPTED)
def test_what_is_accepted_is_documented(entry: str) -> None:
    assert f"- **{entry}" in DOCUMENT
