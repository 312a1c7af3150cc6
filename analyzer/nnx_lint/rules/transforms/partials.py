"""Objects that a transform keeps, prefixes, and what goes in and out without graph updates (NNX401, NNX405, NNX448,
NNX449, NNX451, NNX452, NNX453).

Invariants: a partial is known by the value that made it; a change counts as one of the kept object only if it is that
object, or a part of it.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import NamedTuple

from nnx_lint.diagnostics import Applicability, Fix
from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import FuncVal, PartialVal, Transformed, TransformVal
from nnx_lint.model.containers import Seq
from nnx_lint.model.effects import place_of
from nnx_lint.model.events import Called, Mutated, Ran, Returned, TransformApplied
from nnx_lint.model.expressions import text_of
from nnx_lint.model.leaves import contents
from nnx_lint.model.library import FilterVal
from nnx_lint.model.modules import Env
from nnx_lint.model.values import Ext, Obj, Unknown, Value
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.edits import wrap
from nnx_lint.rules.filters.expressions import ARRAY
from nnx_lint.rules.lifting import on_nnx
from nnx_lint.rules.program import calls_in, resolved
from nnx_lint.rules.spelling import spelled
from nnx_lint.rules.traces.boundaries import holds_variables, objects_in, running
from nnx_lint.rules.traces.captures import holds
from nnx_lint.rules.transforms.options import option_node
from nnx_lint.rules.transforms.scanning import in_trace, new_attribute
from nnx_lint.rules.updates.ownership import Change, at_level, changes_of
from nnx_rules import transforms
from nnx_rules.rules import transforms as rules

# -- what is kept ------------------------------------------------------------------------------------------------------


@judges_calls(rules.NOT_A_TRANSFORM, "nnx.cached_partial")
def not_a_transform(event: Called, report: Reporter) -> None:
    func = event.args[0] if event.args else None
    foreign = isinstance(func, Transformed) and func.applied.row.name.startswith("jax.")
    plain = isinstance(func, FuncVal) and report.runs_on(event.frame.module)[0] == "flax" and not _may_transform(func)
    if func is not None and (foreign or plain):
        report(
            event.frame.module,
            event.nodes[0],
            fix=lambda: on_nnx(func.applied, event.frame.module) if isinstance(func, Transformed) else None,
            transform=event.name,
            given=func.describe(),
        )


def _may_transform(func: FuncVal) -> bool:
    """Whether a function may put something under a transform of nnx itself, which then takes what was kept."""
    if not isinstance(func.env, Env):
        return True
    for call in calls_in(func.node):
        value = resolved(func.env, call.func)
        if isinstance(value, (FuncVal, Transformed, TransformVal, Unknown)):
            return True
        if isinstance(value, Ext) and value.name.startswith("nnx.") and transforms.find(value.name) is not None:
            return True
    return False


@judges_calls(rules.PARTIAL_ARRAY, "nnx.cached_partial")
def bare_array(event: Called, report: Reporter) -> None:
    for value, node in zip(event.args[1:], event.nodes[1:], strict=False):
        if not isinstance(value, Obj):
            continue
        held = next((item for item in contents(value, event.frame, ARRAY).held if item.leaf.type is ARRAY), None)
        if held is not None and isinstance(held.leaf.path, tuple):
            path = ".".join(part if isinstance(part, str) else "[...]" for part in held.leaf.path)
            fix = partial(as_variable, event, value, held.leaf.path)
            report(event.frame.module, node, fix=fix, name=text_of(node), path=path, transform=event.name)


def as_variable(event: Called, owner: Obj, path: tuple[object, ...]) -> Fix | None:
    """Make the array a Variable where the attribute is assigned."""
    name = path[0] if len(path) == 1 else None
    attr = attribute_of(owner, name) if isinstance(name, str) else None
    made = attr.assignments[0] if attr is not None and len(attr.assignments) == 1 else None
    module = event.frame.module
    wrapper = spelled("nnx.Variable", module)
    if made is None or made.module is not module or not isinstance(made.value_node, ast.expr) or wrapper is None:
        return None
    return Fix(f"Make a `{wrapper}` of it", wrap(module.source, made.value_node, wrapper), Applicability.UNSAFE)


class Partial(NamedTuple):
    """A partial that keeps objects, and how the program names these."""

    value: PartialVal
    text: str
    objects: list[tuple[Obj, str]]
    changes: list[tuple[Mutated, str]]


class Kept:
    """The partials so far, and the functions that have run, by call."""

    def __init__(self) -> None:
        self.partials: dict[int, Partial] = {}
        self.ran: dict[int, Ran] = {}


@judges_calls(rules.PARTIAL_STALE, "nnx.cached_partial")
def kept(event: Called, report: Reporter) -> None:
    given = zip(event.args[1:], event.nodes[1:], strict=False)
    objects = [(item, text_of(node)) for item, node in given if isinstance(item, Obj)]
    if isinstance(event.result, PartialVal) and objects:
        report.memory(Kept).partials[id(event.result)] = Partial(event.result, event.name, objects, [])


STRUCTURAL = ("setting ", "`.train(", "`.eval(", "`.set_attributes(")
"""Changes that are not of the value of a Variable."""


@judges(rules.PARTIAL_STALE, Mutated)
def changed(event: Mutated, report: Reporter) -> None:
    partials = report.memory(Kept).partials
    if not partials or event.frame.scope or not isinstance(event.target, Obj):
        return
    if not event.action.startswith(STRUCTURAL):
        return
    for item in partials.values():
        name = next((name for obj, name in item.objects if obj is event.target or holds(obj, event.target)), None)
        if name is not None:
            item.changes.append((event, name))


def calls_partial(event: Called) -> bool:
    """Whether a partial is called."""
    return isinstance(event.callee, PartialVal)


@judges_calls(rules.PARTIAL_STALE, PartialVal)
def stale(event: Called, report: Reporter) -> None:
    item = report.memory(Kept).partials.get(id(event.callee))
    for change, name in item.changes if item is not None else ():
        where = (related(event.frame.module, event.node, "and called here"),)
        module = change.frame.module
        report(module, change.node, related=where, name=name, transform=item.text if item else "", action=change.action)


# -- edits of what is kept ---------------------------------------------------------------------------------------------


def changes_structure(event: Ran) -> bool:
    """Whether a compiled function has changed something."""
    return event.scope.row.name in {"nnx.jit", "nnx.jit_partial"} and bool(event.scope.changes)


@judges(rules.CACHED_STRUCTURE, Ran, when=changes_structure)
def ran(event: Ran, report: Reporter) -> None:
    report.memory(Kept).ran[id(event.node)] = event


@judges_calls(rules.CACHED_STRUCTURE, PartialVal)
def kept_structure_edited(event: Called, report: Reporter) -> None:
    callee = event.callee
    applied = kept_by(callee)
    found = report.memory(Kept).ran.get(id(event.node))
    if applied is None or found is None or not isinstance(callee, PartialVal):
        return
    for item in changes_of(found):
        outer = at_level(item.target, event.frame.level)
        if not any(outer is obj or holds(obj, outer) for obj in callee.args if isinstance(obj, Obj)):
            continue
        if edits(item):
            report(item.module, item.node, path=item.name, transform=applied.text)


def kept_by(callee: Value) -> TransformVal | None:
    """The transform that keeps the first arguments of a function."""
    func = callee.func if isinstance(callee, PartialVal) else None
    if isinstance(func, Transformed) and func.applied.row.binds:
        return func.applied
    return None


def edits(change: Change) -> bool:
    """Whether a change certainly is one of the structure of an object."""
    action = change.event.action
    return action.startswith(("`.train(", "`.eval(")) or new_attribute(action, change.target) is not None


# -- Variables beside what is kept -------------------------------------------------------------------------------------


@judges_calls(rules.PARTIAL_VARIABLE, PartialVal)
def variable_beside(event: Called, report: Reporter) -> None:
    callee = event.callee
    applied = kept_by(callee) if isinstance(callee, PartialVal) else None
    if applied is None or applied.row.name != "nnx.jit_partial":
        return
    for value, node in zip(event.args, event.nodes, strict=False):
        held = list(objects_in(value)) if value is not None else []
        if any(holds_variables(obj) for obj in held):
            report(event.frame.module, node, name=text_of(node), transform=applied.text)


# -- prefixes ----------------------------------------------------------------------------------------------------------

PREFIXES = ("in_axes", "out_axes", "in_shardings", "out_shardings", "argnums")
INSTEAD = "use `nnx.prefix(node, {filter: ...})`, or the default mode"


@judges(rules.PREFIX_MODE, TransformApplied)
def prefix_in_wrong_mode(event: TransformApplied, report: Reporter) -> None:
    applied = event.applied
    if not applied.row.name.startswith("nnx."):
        return
    modes = applied.modes
    for option in PREFIXES:
        for item in _prefixes(applied.keywords.get(option)):
            by_object = item.name == "nnx.prefix"
            if by_object and modes.writes_back:
                mode, mend = "a transform with graph updates", "use `nnx.StateAxes`, or `graph_updates=False`"
            elif not by_object and False in modes:
                mode, mend = "a transform without graph updates", INSTEAD
            else:
                continue
            given = "the result of `nnx.prefix`" if by_object else f"a `{item.name.removeprefix('nnx.')}`"
            where = option_node(applied, option)
            report(applied.module, where, option=option, transform=applied.text, given=given, mode=mode, mend=mend)


def _prefixes(value: Value | None) -> list[FilterVal]:
    if isinstance(value, FilterVal):
        return [value] if value.name in {"nnx.StateAxes", "nnx.StateSharding", "nnx.DiffState", "nnx.prefix"} else []
    return [part for item in value.items for part in _prefixes(item)] if isinstance(value, Seq) else []


# -- results -----------------------------------------------------------------------------------------------------------


@judges(rules.RETURNED_INPUT, Returned, when=in_trace)
def returned_input(event: Returned, report: Reporter) -> None:
    scope = running(event)
    if scope is None or not scope.row.name.startswith("nnx.") or False not in scope.applied.modes:
        return
    if not scope.row.lifts_captures or scope.frame is None or scope.row.name in LOOPING:
        return
    node = event.node.value if isinstance(event.node, ast.Return) else event.node
    for obj in objects_in(event.value):
        place = place_of(scope.frame.given, obj) if obj.level == scope.level else None
        if place is not None and holds_variables(obj):
            other = ".".join((place.parameter, *place.path))
            path = text_of(node) if isinstance(node, (ast.Name, ast.Attribute)) else "the result"
            report(
                event.frame.module,
                event.node,
                fix=partial(cloned, event, node),
                transform=scope.text,
                other_path=other,
                value=obj.cls.name,
                path=path,
            )
            return


def cloned(event: Returned, node: ast.AST | None) -> Fix | None:
    """Return a copy."""
    name = spelled("nnx.clone", event.frame.module, event.frame.env)
    if name is None or not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    return Fix(f"Return `{name}(...)` of it", wrap(event.frame.module.source, node, name), Applicability.UNSAFE)


LOOPING = frozenset({"nnx.scan", "nnx.while_loop", "nnx.fori_loop"})
"""Transforms whose function returns what it carries."""
