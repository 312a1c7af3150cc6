"""Captured objects that a function under a transform changes (NNX201, NNX202, NNX203, NNX206, NNX209, NNX210, NNX512).

One mutation breaks one rule: how the function got the object decides first, then what it does to it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Fix
from nnx_lint.model.events import Mutated
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.edits import append_argument
from nnx_lint.rules.traces.captures import Capture, capture_of
from nnx_lint.rules.traces.mends import as_parameter, kept_by_partial, unbound
from nnx_rules.rules import rngs as rng_rules
from nnx_rules.rules import traces as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame, TraceScope
    from nnx_lint.model.modules import Module
    from nnx_rules.registry import Rule


def broken(event: Mutated) -> tuple[Rule, Capture] | None:
    """The rule that a mutation breaks, with the capture."""
    if event.effect not in {"write", "call", "draw"}:
        return None
    capture = capture_of(event)
    if capture is None:
        return None
    if event.effect == "draw" and capture.whole:
        return rules.CAPTURED_RNGS, capture
    if capture.held is not None:
        return (rules.PARTIAL_CAPTURE if capture.held == "partial" else rules.TRANSFORMED_INSTANCE), capture
    if capture.nondifferentiated:
        return rules.NONDIFF_ARGUMENT_MUTATED, capture
    if event.effect == "write" and capture.whole and not capture.called:
        return rules.CAPTURED_MUTATION, capture
    return rules.CAPTURED_STATEFUL_CALL, capture


def breaks(event: Mutated) -> bool:
    """Whether a mutation breaks one."""
    return broken(event) is not None


@judges(rules.CAPTURED_MUTATION, Mutated, when=breaks)
@judges(rules.CAPTURED_STATEFUL_CALL, Mutated, when=breaks)
@judges(rules.CAPTURED_RNGS, Mutated, when=breaks)
@judges(rules.NONDIFF_ARGUMENT_MUTATED, Mutated, when=breaks)
@judges(rules.TRANSFORMED_INSTANCE, Mutated, when=breaks)
@judges(rules.PARTIAL_CAPTURE, Mutated, when=breaks)
def captured_object_changed(event: Mutated, report: Reporter) -> None:
    found = broken(event)
    if found is None or found[0] is not report.rule:
        return
    rule, capture = found
    where = capture.where
    if rule is rules.CAPTURED_MUTATION:
        where = f"{where}, and a function under `{capture.scope.text}` captures it"
    report(
        capture.module,
        capture.node,
        fix=lambda: copying_merge(capture) if rule is rules.NONDIFF_ARGUMENT_MUTATED else passed_in(capture),
        related=capture.related,
        name=capture.name,
        where=where,
        transform=capture.scope.text,
        state=changed_state(event),
    )


MAPPING = frozenset({"nnx.vmap", "nnx.pmap"})
"""Transforms whose function runs for many elements, with the same captures for all of them."""


@judges(rng_rules.CAPTURED_RNGS_UNDER_MAP, Mutated)
def drawn_for_every_element(event: Mutated, report: Reporter) -> None:
    if event.effect not in {"call", "draw"} or event.state != "RngCount":
        return
    capture = capture_of(event, lifting_map)
    if capture is not None:
        report(
            capture.module,
            capture.node,
            related=capture.related,
            path=capture.name,
            transform=capture.scope.text,
        )


def lifting_map(frame: Frame, level: int) -> TraceScope | None:
    """The outermost running transform that maps over elements and lifts objects of ``level``, or ``None``."""
    scopes = (scope for scope in frame.scope if scope.level > level and scope.row.name in MAPPING and scope.lifts)
    return next(scopes, None)


def changed_state(event: Mutated) -> str:
    """What a change of an object changes, for messages."""
    if event.effect == "write" and isinstance(event.target, Obj):
        return event.target.cls.name if event.target.cls.is_variable else "attributes"
    return event.state


def passed_in(capture: Capture) -> Fix | None:
    """Make the captured object an argument."""
    traced, applied = capture.scope.frame, capture.scope.applied
    if capture.held == "partial":
        return kept_by_partial(applied, capture.module)
    if capture.held is not None:
        return unbound(applied, capture.owner, capture.module) if capture.held == "transformed" else None
    return as_parameter(applied, traced.func, capture.name, capture.module) if traced is not None else None


def copying_merge(capture: Capture) -> Fix | None:
    """Add ``copy=True`` to the merge that made the object, if one in the same file did."""
    owner = capture.owner
    origin = owner.origin if isinstance(owner, Obj) and owner.leaf_level is not None else None
    if origin is None or origin[0] is not capture.module or not isinstance(origin[1], ast.Call):
        return None
    return add_keyword(origin[0], origin[1], "copy=True")


def add_keyword(module: Module, call: ast.Call, text: str) -> Fix:
    """Append a keyword argument to a call."""
    return Fix(f"Add `{text}`", append_argument(module.source, call, text))
