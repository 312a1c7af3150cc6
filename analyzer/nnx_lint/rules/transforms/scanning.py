"""Scans and loops: what they carry, slice and stack (NNX404, NNX432, NNX433, NNX437, NNX438).

Invariants: axes are judged where the transform is applied, results where the function returns them; a carry is another
object only where both are known.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Fix
from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import Called, Ran, RanInside, Returned, TransformApplied
from nnx_lint.model.imports import library_value
from nnx_lint.model.leaves import tag_of
from nnx_lint.model.library import FilterVal
from nnx_lint.model.unions import options
from nnx_lint.model.values import (
    Array,
    ClassVal,
    Const,
    Obj,
    Value,
)
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.edits import replace, unsafe
from nnx_lint.rules.filters.coverage import mapping_of
from nnx_lint.rules.intermediates.reading import capture_around
from nnx_lint.rules.program import keyword_node, results_of
from nnx_lint.rules.repeating import argument
from nnx_lint.rules.spelling import spelled
from nnx_lint.rules.traces.boundaries import running
from nnx_lint.rules.traces.escapes import computed_from, parameters
from nnx_lint.rules.transforms.options import CARRY, UNREAD, Axes, axes_of, given_to, leaves, option_node, read, shown
from nnx_lint.rules.updates.ownership import Change, changes_of
from nnx_rules import _filter_logic as logic
from nnx_rules import carries
from nnx_rules._filter_logic import Leaf
from nnx_rules.rules import transforms as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.events import Mutated
    from nnx_lint.model.frames import Frame, TraceScope

# -- axes --------------------------------------------------------------------------------------------------------------


def is_scan(event: TransformApplied) -> bool:
    """Whether the transform is a scan."""
    return event.applied.row.name == "nnx.scan"


@judges(rules.SCAN_AXES, TransformApplied, when=is_scan)
def scan_axes(event: TransformApplied, report: Reporter) -> None:
    applied = event.applied
    given = {option: axes_of(applied, option) for option in ("in_axes", "out_axes")}
    if any(UNREAD in leaves(axes) for axes in given.values()):
        return
    found = carries.problem(*(_leaves(axes) for axes in given.values()))
    if found is not None:
        report(
            applied.module,
            option_node(applied, found.option),
            option=found.option,
            transform=applied.text,
            given=shown(given[found.option]),
            problem=found.problem,
            mend=found.mend,
            fix=partial(_carry_first, applied, found.option, given[found.option]),
        )


def _carry_first(applied: TransformVal, option: str, axes: Axes) -> Fix | None:
    """Carry the first of some arguments or results that are written, where none is carried."""
    node, name = option_node(applied, option), spelled("nnx.Carry", applied.module)
    if (
        not isinstance(node, ast.Tuple)
        or not isinstance(axes, tuple)
        or not all(isinstance(item, int) for item in axes)
    ):
        return None
    return unsafe("Carry the first one", replace(applied.module.source, node.elts[0], name)) if name and axes else None


def _leaves(axes: Axes) -> list[carries.Leaf]:
    """The axes of an option, as the rule sees them."""
    top = list(axes) if isinstance(axes, (tuple, list)) else [axes]
    return [_leaf(leaf, whole=leaf is item) for item in top for leaf in leaves(item)]


def _leaf(leaf: Axes, *, whole: bool) -> carries.Leaf:
    return carries.Leaf(tuple(map(_label, _entries(leaf))), whole, isinstance(leaf, FilterVal))


def _label(axis: Axes) -> carries.Label:
    if axis is None:
        return carries.Label.BROADCAST
    return carries.Label.CARRY if axis is CARRY else carries.Label.AXIS


def _entries(leaf: Axes) -> list[Axes]:
    if not isinstance(leaf, FilterVal):
        return [leaf]
    mapping = leaf.args.get(0)
    return [read(value) for _, value in mapping.items] if isinstance(mapping, DictVal) else []


@judges_calls(rules.SCAN_AXES, "nnx.Carry")
def carry_called(event: Called, report: Reporter) -> None:
    if not event.args:
        report(
            event.frame.module,
            event.node,
            option="in_axes",
            transform="nnx.scan",
            given="Carry()",
            problem="`Carry` is used as it is, without a call",
            mend="write `nnx.Carry`",
            fix=_uncalled(event),
        )


def _uncalled(event: Called) -> Fix | None:
    call, source = event.node, event.frame.module.source
    return (
        unsafe("Write it without a call", replace(source, call, source.segment(call.func)))
        if isinstance(call, ast.Call)
        else None
    )


# -- results -----------------------------------------------------------------------------------------------------------

LOOPS = frozenset({"nnx.while_loop", "nnx.fori_loop"})


def in_trace(event: Returned) -> bool:
    """Whether the function of a transform returns."""
    return bool(event.frame.scope)


@judges(rules.PREFIX_MISMATCH, Returned, when=in_trace)
def result_of_scan(event: Returned, report: Reporter) -> None:
    scope = running(event)
    if scope is None or scope.row.name != "nnx.scan":
        return
    axes = axes_of(scope.applied, "out_axes")
    if not isinstance(axes, tuple) or CARRY not in axes:
        return
    given = [_not_a_tuple_of(len(axes), option) for option in options(event.value)]
    if given and None not in given:
        problem = f"the function is to return a tuple of {len(axes)} values, and returns {given[0]}"
        report(event.frame.module, event.node, option="out_axes", transform=scope.text, problem=problem)


def _not_a_tuple_of(count: int, value: Value) -> str | None:
    """What a result is, if it certainly is no tuple of so many values."""
    if isinstance(value, Seq) and value.exact:
        if value.type != "tuple":
            return value.describe()
        return f"{len(value.items)} of them" if len(value.items) != count else None
    if isinstance(value, (Array, Const, DictVal)) or (isinstance(value, Obj) and value.cls.tracked):
        return value.describe()
    return None


@judges(rules.LOOP_OBJECT, Returned, when=in_trace)
def carried_object(event: Returned, report: Reporter) -> None:
    scope = running(event)
    before = carry_given(scope) if scope is not None else None
    if scope is None or before is None:
        return
    for path, one, other in _side_by_side("carry", before, carry_returned(scope, event.value)):
        if not one.cls.tracked or one.level != scope.level or not other.cls.tracked or other is one:
            continue
        if scope.applied.modes.writes_back and scope.row.name != "nnx.while_loop":
            if one.cls.is_variable:
                continue  # the values of Variables go on, and new ones come back
            if scope.row.name == "nnx.fori_loop" and event.frame.module.provider != "nnxkit":
                continue  # so do those of modules
        report(event.frame.module, event.node, transform=scope.text, value=other.cls.name, path=path)


def _side_by_side(path: str, before: Value, after: Value | None) -> Iterator[tuple[str, Obj, Obj]]:
    """The objects at the same places of two carries, as far as the places are known."""
    if isinstance(before, Obj) and isinstance(after, Obj):
        yield path, before, after
    elif isinstance(before, Seq) and isinstance(after, Seq) and before.exact and after.exact:
        for number, (one, other) in enumerate(zip(before.items, after.items, strict=False)):
            yield from _side_by_side(f"{path}[{number}]", one, other)


def carry_given(scope: TraceScope) -> Value | None:
    """The carry that a step of a loop is given."""
    frame = scope.frame
    given = list(frame.given.values()) if frame is not None and not scope.held else []
    if scope.row.name == "nnx.while_loop":
        return given[0] if len(given) == 1 else None
    if scope.row.name == "nnx.fori_loop":
        return given[1] if len(given) == 2 else None
    axes = axes_of(scope.applied, "in_axes") if scope.row.name == "nnx.scan" else None
    if isinstance(axes, tuple) and axes.count(CARRY) == 1 and len(given) == len(axes):
        return given[axes.index(CARRY)]
    return None


def carry_returned(scope: TraceScope, value: Value) -> Value | None:
    """The carry in what a step of a loop returns."""
    if scope.row.name in LOOPS:
        return value
    axes = axes_of(scope.applied, "out_axes")
    if isinstance(axes, tuple) and axes.count(CARRY) == 1 and isinstance(value, Seq) and value.exact:
        return value.items[axes.index(CARRY)] if len(value.items) == len(axes) else None
    return value if axes is CARRY else None


# -- edits -------------------------------------------------------------------------------------------------------------


def steps(event: Ran) -> bool:
    """Whether a step of a loop or a scan has run, and has changed something."""
    return event.scope.row.name in {*LOOPS, "nnx.scan"} and bool(event.scope.changes)


@judges(rules.LOOP_STRUCTURE, Ran, RanInside, when=steps)
def edited_in_loop(event: Ran, report: Reporter) -> None:
    if not event.scope.applied.modes.writes_back:
        return
    for item in changes_of(event):
        added = new_attribute(item.event.action, item.target) if event.scope.row.name in LOOPS else None
        name = added or _first_sown(item, event.scope)
        if name is not None and not item.merged:
            path = f"{item.name}.{name}"
            report(item.module, item.node, transform=event.scope.text, path=path, one="not there", other="there")


def new_attribute(action: str, target: Obj) -> str | None:
    """The attribute that a change has added to an object, if it certainly had none of this name."""
    before = target.template
    if (
        not action.startswith("setting `.")
        or before is None
        or target.cls.is_open
        or before.assumed
        or before.args is None
    ):
        return None
    name = action.removeprefix("setting `.").removesuffix("`")
    return name if attribute_of(before, name) is None else None


def _first_sown(item: Change, scope: TraceScope) -> str | None:
    """The attribute that is to keep what a step sows, in a module that has none yet and goes through the loop whole."""
    call, before = item.event.node, item.target.template
    if not item.event.action.startswith("`.sow") or not isinstance(call, ast.Call) or call.keywords or before is None:
        return None
    if scope.row.name == "nnx.scan" and axis_of_change(scope, item) not in {(None,), (CARRY,)}:
        return None
    name = call.args[1] if len(call.args) > 1 else None
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str) or before.assumed or before.args is None:
        return None
    captured = capture_around(item.event.frame) is not False
    return name.value if attribute_of(before, name.value) is None and not captured else None


def is_mapped(event: Ran) -> bool:
    """Whether a function that is mapped over elements or steps has run, and has changed something."""
    return event.scope.row.name in {"nnx.scan", "nnx.vmap", "nnx.pmap"} and bool(event.scope.changes)


@judges(rules.SCAN_BROADCAST, Ran, RanInside, when=is_mapped)
def written_under_broadcast(event: Ran, report: Reporter) -> None:
    scope = event.scope
    if scope.row.name != "nnx.scan" or not scope.applied.modes.writes_back:
        return
    for item in changes_of(event):
        lost = item.event.effect in {"write", "call"} and not item.event.action.startswith(("setting ", "`.sow"))
        if not item.merged and lost and axis_of_change(scope, item) == (None,):
            report(item.module, item.node, transform=scope.text, path=item.name)


class Conditions:
    """The functions that loops ask whether to go on."""

    def __init__(self) -> None:
        self.nodes: set[int] = set()


def has_condition(event: TransformApplied | Ran) -> bool:
    """Whether this is about a loop that asks a function whether to go on."""
    row = event.applied.row if isinstance(event, TransformApplied) else event.scope.row
    return row.name == "nnx.while_loop"


@judges(rules.LOOP_CONDITION, TransformApplied, when=has_condition)
def note_condition(event: TransformApplied, report: Reporter) -> None:
    call, func = event.node, event.func
    condition = (call.args[0] if call.args else keyword_node(call, "cond_fun")) if isinstance(call, ast.Call) else None
    inner = func.func if isinstance(func, BoundMethod) else func
    if event.func_node is condition and not isinstance(condition, ast.Starred) and isinstance(inner, FuncVal):
        report.memory(Conditions).nodes.add(id(inner.node))


@judges(rules.LOOP_CONDITION, Ran, when=has_condition)
def written_in_condition(event: Ran, report: Reporter) -> None:
    func = event.scope.frame.func if event.scope.frame is not None else None
    for item in changes_of(event) if func is not None and id(func.node) in report.memory(Conditions).nodes else ():
        report(item.module, item.node, transform=event.scope.text, path=item.name)


def axis_of(scope: TraceScope, parameter: str) -> tuple[Axes] | None:
    """The axis of the argument for a parameter, in a tuple, where it is known."""
    axes = axes_of(scope.applied, "in_axes")
    names = list(scope.frame.given) if scope.frame is not None and not scope.held else []
    if isinstance(axes, tuple) and len(axes) == len(names) and parameter in names:
        found = axes[names.index(parameter)]
        return None if found is UNREAD else (found,)
    return (axes,) if isinstance(axes, int) or axes is None else None


@judges(rules.ELEMENT_VALUES_WITHOUT_AXIS, Ran, RanInside, when=is_mapped)
def written_for_each_element(event: Ran, report: Reporter) -> None:
    scope = event.scope
    if scope.row.name == "nnx.scan" or scope.frame is None:
        return
    mapped = {name for name in scope.frame.given if (axis := axis_of(scope, name)) and isinstance(axis[0], int)}
    for item in changes_of(event):
        if item.merged or axis_of_change(scope, item) != (None,) or _may_sum_up(item.event):
            continue
        inner = _differing(item.event.frame, scope, mapped)
        averages = _averages(item.event) and item.module is scope.frame.module
        if not _depends(item.event.frame, item.event.node, inner) and not (
            averages and _depends(scope.frame, item.node, mapped)
        ):
            continue
        whole = axis_of(scope, item.root) == (None,)
        report(
            item.module,
            item.node,
            transform=scope.text,
            path=item.name,
            why=f"`{item.root}` is passed with the axis None" if whole else "its axis in the `StateAxes` is None",
            mend="give it an axis, and a value for each element",
        )


def gives_one(event: Ran) -> bool:
    """Whether a result of a map has no axis for the elements, which have no means to agree on a value."""
    applied = event.scope.applied
    said = applied.keywords.get("out_axes")
    return applied.row.name in {"jax.vmap", "nnx.vmap"} and said is not None and "axis_name" not in applied.keywords


@judges(rules.ELEMENT_VALUES_WITHOUT_AXIS, Ran, RanInside, when=gives_one)
def returned_for_each_element(event: Ran, report: Reporter) -> None:
    scope, frame = event.scope, event.scope.frame
    axes = axes_of(scope.applied, "out_axes")
    if frame is None or frame.func is None or None not in leaves(axes):
        return
    arrays = [name for name, value in frame.given.items() if not isinstance(value, Obj)]
    mapped = {name for name in arrays if (axis := axis_of(scope, name)) and isinstance(axis[0], int)}
    results = results_of(frame.func.node)
    if len(results) != 1:
        return
    items, values = [results[0]], [event.result]
    if isinstance(axes, tuple):
        items = results[0].elts if isinstance(results[0], ast.Tuple) else []
        values = event.result.items if isinstance(event.result, Seq) and event.result.exact else []
    each = axes if isinstance(axes, tuple) else (axes,)
    for node, value, entry in zip(items, values, each, strict=False):
        if entry is None and isinstance(value, Array) and computed_from(frame, node, mapped, COLLECTIVE):
            report(
                scope.applied.module,
                option_node(scope.applied, "out_axes"),
                transform=scope.text,
                path=frame.module.source.segment(node),
                why="its axis in `out_axes` is None",
                mend="say where the axis of its values is to be: `out_axes=0`",
            )
            return


def axis_of_change(scope: TraceScope, change: Change) -> tuple[Axes] | None:
    """The axis of what a function changes: that of the argument, or the one that ``StateAxes`` give it."""
    found = axis_of(scope, change.root)
    mapping = mapping_of(found[0]) if found is not None and isinstance(found[0], FilterVal) else None
    if mapping is None:
        return found
    leaf = _changed_leaf(change)
    entry = given_to(found[0], leaf) if found is not None and leaf is not None else UNREAD
    return None if entry is UNREAD else (entry,)


def _changed_leaf(change: Change) -> Leaf | None:
    """The Variable that is changed, as filters see it: an object of its own, or one that a layer keeps."""
    target = change.target
    if target.cls.is_variable:
        return Leaf(logic.UNKNOWN, target.cls, tag_of(target))
    kept = library_value(f"nnx.{change.event.state}") if change.event.effect == "call" else None
    return Leaf(logic.UNKNOWN, kept.cls, logic.UNKNOWN) if isinstance(kept, ClassVal) else None


def _may_sum_up(event: Mutated) -> bool:
    """Whether a layer is called whose statistics may be those of all elements together."""
    layer = event.target
    if not isinstance(layer, Obj) or not layer.cls.derives_from("nnx.BatchNorm"):
        return False
    return layer.args is None or not {"axis_name", "**"}.isdisjoint(layer.args)


def _averages(event: Mutated) -> bool:
    """Whether a layer is called that keeps statistics of its input, of each element by itself."""
    layer = event.target
    if not isinstance(layer, Obj) or getattr(layer.cls, "canonical", None) != "nnx.BatchNorm":
        return False
    return layer.args is not None and "axis_name" not in layer.args and "**" not in layer.args


def _differing(frame: Frame, scope: TraceScope, mapped: set[str]) -> set[str]:
    """The parameters of a function, which a mapped one calls, that hold another value for each element."""
    if frame is scope.frame or frame.caller is None:
        return mapped if frame is scope.frame else set()
    outer = _differing(frame.caller, scope, mapped)
    given = {name: argument(frame, name) for name in parameters(frame)} if outer else {}
    return {
        name
        for name, node in given.items()
        if node is not None and computed_from(frame.caller, node, outer, COLLECTIVE)
    }


ALIKE = ("zeros_like", "ones_like", "empty_like", "full_like")
COLLECTIVE = frozenset(
    {*(f"jax.numpy.{name}" for name in ALIKE), *(f"jax.lax.{name}" for name in ("all_gather", "psum_scatter"))}
    | {f"jax.lax.{name}" for name in ("psum", "pmean", "pmax", "pmin", "full_like", "axis_size", "axis_index")}
)
"""Functions of what each element has whose results are one for all, or may be."""


def _depends(frame: Frame, node: ast.AST, mapped: set[str]) -> bool:
    """Whether what is written is computed from a mapped argument, and not made one for all."""
    values: list[ast.expr] = []
    if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Tuple)):
        values = [node.value]
    elif isinstance(node, ast.Call):
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
    return any(computed_from(frame, value, mapped, COLLECTIVE) for value in values)
