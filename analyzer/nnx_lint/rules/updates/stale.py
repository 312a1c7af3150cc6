"""Compiled functions that go on with old values of what they captured (NNX220, NNX704).

A transform that keeps the traced function makes constants of what the function captures. That is a mistake where the
object changes between two calls: one after the other, or in one loop.

A State that ``nnx.split`` or ``nnx.state`` has made shares the Variables of its object, so a function that captures it
has captured their values, too.

Invariants: a call and a change of one evaluation are compared in the order in which they run; a function that is
compiled anew in each round of a loop has no old values there.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.crossing import kept_positions
from nnx_lint.model.events import Called, Mutated, Ran
from nnx_lint.model.expressions import text_of
from nnx_lint.model.frames import ROUND
from nnx_lint.model.leaves import contents
from nnx_lint.model.modules import Env
from nnx_lint.model.states import StateVal
from nnx_lint.model.unions import options, present
from nnx_lint.model.values import Array, ClassVal, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.program import ancestors, free_names, reads_of, resolved
from nnx_lint.rules.traces.captures import holds
from nnx_lint.rules.traces.mends import as_parameter
from nnx_lint.rules.updates.ownership import at_level
from nnx_lint.syntax.parameters import positional_names
from nnx_rules.rules import costs
from nnx_rules.rules import updates as rules
from nnx_rules.transforms import Arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.callables import FuncVal, TransformVal
    from nnx_lint.model.frames import Frame, TraceScope
    from nnx_lint.model.modules import Module

Branches = tuple[tuple[int, int], ...]


class Baked(NamedTuple):
    """An object whose values a compiled function has taken over, where, and in which branches it was called."""

    applied: TransformVal
    func: FuncVal | None
    obj: Obj
    module: Module
    node: ast.AST
    name: str
    branches: Branches


class Changed(NamedTuple):
    """An object that was changed outside of the function that captures it."""

    obj: Obj
    module: Module
    node: ast.AST
    branches: Branches


class Timeline:
    """What has been baked and changed so far, in order."""

    def __init__(self) -> None:
        self.baked: list[Baked] = []
        self.changed: list[Changed] = []
        self.old: dict[int, Changed] = {}
        self.states: dict[int, StateVal] = {}


def keeps(event: Ran) -> bool:
    """Whether the transform keeps the traced function, and with it what that captures."""
    return event.scope.row.cached and not event.scope.lifts and not event.frame.scope


def compiles(event: Ran) -> bool:
    """Whether the transform keeps the traced function, and the function what it captured."""
    return keeps(event) and bool(event.scope.reads or event.scope.held)


@judges_calls(rules.STALE_CAPTURE, "nnx.split", "nnx.state")
def made_state(event: Called, report: Reporter) -> None:
    """Note the States that share all parameters with their objects."""
    items = event.result.items if isinstance(event.result, Seq) else [event.result]
    for item in items if not event.frame.scope else ():
        if not isinstance(item, StateVal) or not (item.wanted is None or isinstance(item.wanted, ClassVal)):
            continue
        if item.facts().holds_data:
            report.memory(Timeline).states[id(item)] = item


@judges(rules.STALE_CAPTURE, Ran, when=keeps)
def compiled(event: Ran, report: Reporter) -> None:
    timeline = report.memory(Timeline)
    for item in (*(captured(event) if compiles(event) else ()), *_captured_states(event, timeline)):
        known = [each for each in timeline.baked if _is_same(each, item)]
        old = next((timeline.old[id(each)] for each in known if id(each) in timeline.old), None)
        if old is None:
            old = next((each for each in timeline.changed if _meets(item, each) and _in_one_loop(item, each)), None)
        if old is not None:
            _report(report, item, old)
        elif not known:
            timeline.baked.append(item)


@judges(costs.COMPILED_CONSTANT, Ran, when=compiles)
def constant(event: Ran, report: Reporter) -> None:
    for item in captured(event, data=True):
        found = contents(item.obj, event.frame, None)
        if found.complete and not found.held:
            continue  # it has no values
        report(
            item.module,
            item.node,
            fix=partial(as_parameter, item.applied, item.func, item.name, item.module),
            name=item.name,
            transform=item.applied.text,
        )


@judges(rules.STALE_CAPTURE, Mutated)
def changed(event: Mutated, report: Reporter) -> None:
    frame = event.frame
    if not isinstance(event.target, Obj) or any(not _brings_back(scope) for scope in frame.scope):
        return
    if frame.scope and frame.crossed(event.target.level) is not None:
        return  # it is not allowed, and other rules say so
    obj = at_level(event.target, 0)
    if obj.level:
        return
    timeline = report.memory(Timeline)
    item = Changed(obj, frame.module, event.node, frame.branches)
    timeline.changed.append(item)
    for each in timeline.baked:
        if _meets(each, item):
            timeline.old.setdefault(id(each), item)
            if _in_one_loop(each, item):
                _report(report, each, item)


def captured(event: Ran, *, data: bool = False) -> list[Baked]:
    """The objects that the function captured, each once, at the first place that names it, or that reads ``data``."""
    scope = event.scope
    traced = scope.frame
    if traced is None:
        return []
    named: list[tuple[Obj, Module, ast.AST, str]] = []
    for value, _ in scope.held:
        if isinstance(value, Obj) and value.cls.tracked:
            named.append((value, scope.applied.module, scope.applied.node, f"a {value.cls.name}"))
    for frame, node, obj in scope.reads:
        module, place = frame.place_within(scope, node)
        if frame.certain_within(scope) and not (data and _reads_setting(frame.module, node, obj)):
            place = node if _stands_in(frame, traced) else _of_what(traced, place)
            named.append((obj, module, place, text_of(place)))
    found: dict[int, Baked] = {}
    for obj, module, place, name in named:
        whole = any(each.node is place and holds(each.obj, obj) for each in found.values())
        if not is_stream(obj) and not whole:
            item = Baked(scope.applied, traced.func, obj, module, place, name, event.frame.branches)
            found.setdefault(id(obj), item)
    return list(found.values())


def _captured_states(event: Ran, timeline: Timeline) -> Iterator[Baked]:
    """The objects whose States a function captures by a name."""
    traced = event.scope.frame
    func = traced.func if traced is not None and timeline.states else None
    env = func.env if func is not None else None
    for name in free_names(func.node) if func is not None and isinstance(env, Env) else ():
        found = env.lookup(name) if isinstance(env, Env) else None
        state = timeline.states.get(id(found[1])) if found is not None else None
        of = present(state.of) if state is not None else None
        places = reads_of(func.node, name) if func is not None and isinstance(of, Obj) else []
        if func is not None and isinstance(of, Obj) and places:
            yield Baked(event.scope.applied, func, of, func.module, places[0], name, event.frame.branches)


def _stands_in(frame: Frame, traced: Frame) -> bool:
    """Whether a function is written in the traced one, or is that one."""
    inner, outer = frame.func, traced.func
    if inner is None or outer is None or inner.module is not outer.module:
        return frame is traced
    return outer.node.lineno <= inner.node.lineno <= (outer.node.end_lineno or 0)


def _of_what(traced: Frame, place: ast.AST) -> ast.AST:
    """What a call goes to that reads an object further in: that object, or what holds it, where it is one itself."""
    func = place.func if isinstance(place, ast.Call) else None
    receiver = func.value if isinstance(func, ast.Attribute) else func
    return receiver if receiver is not None and isinstance(resolved(traced.env, receiver), Obj) else place


def _reads_setting(module: Module, node: ast.expr, obj: Obj) -> bool:
    """Whether an object is named for an attribute that is not known to hold data, such as ``self.scale``."""
    outer = next(ancestors(module, node), None)
    attr = attribute_of(obj, outer.attr) if isinstance(outer, ast.Attribute) else None
    return attr is not None and not any(
        isinstance(option, (Array, Obj, Seq, DictVal)) for option in options(attr.value)
    )


def is_stream(obj: Obj) -> bool:
    """Whether an object is a source of random numbers, which a function cannot read without changing it."""
    return obj.cls.derives_from("nnx.Rngs") or obj.cls.derives_from("nnx.RngStream")


def _is_same(one: Baked, other: Baked) -> bool:
    """Whether one compiled function has taken over one object."""
    functions = [item.func.node if item.func is not None else None for item in (one, other)]
    return one.applied is other.applied and functions[0] is functions[1] and one.obj is other.obj


def _brings_back(scope: TraceScope) -> bool:
    return scope.row.arguments is Arguments.KEPT


def _meets(baked: Baked, change: Changed) -> bool:
    """Whether a change is one of the captured object, or of a part of it."""
    return baked.obj is change.obj or holds(baked.obj, change.obj)


def _in_one_loop(baked: Baked, change: Changed) -> bool:
    """Whether a call and a change are in the body of one loop, outside of which the function was compiled."""
    loops = {pair for pair in baked.branches if pair[1] == ROUND}
    return not loops.isdisjoint(change.branches) and not _made_in(baked, loops)


def _made_in(baked: Baked, loops: set[tuple[int, int]]) -> bool:
    return not loops.isdisjoint(baked.applied.branches)


def _is_static_self(item: Baked) -> bool:
    """Whether a method is compiled with its object as a static argument, which another rule (NNX211) says."""
    func = item.func
    if func is None or func.cls is None or 0 not in kept_positions(item.applied, func, 1):
        return False
    return positional_names(func.node.args)[:1] == [item.name]


def _report(report: Reporter, item: Baked, change: Changed) -> None:
    applied = item.applied
    if _is_static_self(item):
        return
    where = (
        related(applied.module, applied.node, f"`{applied.text}` is applied here"),
        related(change.module, change.node, f"`{item.name}` is changed here"),
    )
    report(
        item.module,
        item.node,
        fix=partial(as_parameter, applied, item.func, item.name, item.module),
        related=where,
        name=item.name,
        transform=applied.text,
    )
