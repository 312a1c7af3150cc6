"""What a loop carries from step to step: its containers, shapes and dtypes (NNX434, NNX435), how many arguments a step
takes (NNX454), and what comes back that is taken for the outputs (part of NNX829).

Invariants: a carry is compared with what the step was given, as far as both are known; Python numbers are leaves of
every type, because JAX promotes them before the first step.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import Called, Ran, RanInside, Returned, TransformApplied
from nnx_lint.model.expressions import text_of
from nnx_lint.model.forms import literal
from nnx_lint.model.loops import LOOPS, STEPPING
from nnx_lint.model.states import OptStateVal, StateVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import Array, Const, Obj, Value
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.bindings import target_of
from nnx_lint.rules.program import is_tried, keyword_node, resolved
from nnx_lint.rules.traces.boundaries import running
from nnx_lint.rules.transforms.options import CARRY, axes_of
from nnx_lint.rules.transforms.scanning import carry_given, carry_returned, in_trace
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name
from nnx_rules import layers
from nnx_rules.rules import transforms as rules
from nnx_rules.rules.modules import CELL_RESULTS
from nnx_rules.shape_algebra import is_whole
from nnx_rules.shapes import in_short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.frames import TraceScope
    from nnx_lint.model.loops import Loop

# -- the step ----------------------------------------------------------------------------------------------------------


def is_step(event: TransformApplied) -> bool:
    """Whether a function is given to a loop."""
    return event.applied.row.name in LOOPS


@judges(rules.STEP_PARAMETERS, TransformApplied, when=is_step)
def step_signature(event: TransformApplied, report: Reporter) -> None:
    func, loop = event.func, LOOPS[event.applied.row.name]
    bound = isinstance(func, BoundMethod)
    inner = func.func if isinstance(func, BoundMethod) else func
    if not isinstance(inner, FuncVal) or inner.wraps is not None or inner.decorators:
        return
    arguments = inner.node.args
    count = len(syntax_parameters.positional(arguments)) - bound
    needed = count - len(arguments.defaults)
    if arguments.vararg is not None or needed <= loop.parameters <= count:
        return
    gets = "the number of the step and the carry" if loop.carry else "the carry"
    gets = "the carry and an element" if loop.pairs else gets
    taken = f"{count} argument{'s' * (count != 1)}"
    report(event.frame.module, event.func_node, transform=event.applied.text, gets=gets, count=taken)


# -- the carry ---------------------------------------------------------------------------------------------------------


class Told:
    """The steps whose carry is known not to come back as it went in."""

    def __init__(self) -> None:
        self.steps: set[ast.AST] = set()


def is_loop(event: Ran) -> bool:
    """Whether a step of a loop has run."""
    return event.scope.row.name in STEPPING


@judges(rules.LOOP_TREE, Ran, RanInside, when=is_loop)
def step_returns_pair(event: Ran, report: Reporter) -> None:
    scope, loop = event.scope, LOOPS.get(event.scope.row.name)
    func = scope.frame.func if scope.frame is not None else None
    if loop is None or not loop.pairs or func is None or (before := _carry_given(scope, loop)) is None:
        return
    kind = _kind(present(event.result))
    if kind not in {None, "a tuple of 2"}:
        given = f"no first of a pair, as the step returns {kind}"
        report(func.module, func.node, transform=scope.text, one=_kind(before) or "a value", other=given)


@judges(rules.LOOP_TREE, Ran, RanInside, when=is_loop)
def carry_structure(event: Ran, report: Reporter) -> None:
    for one, other in _carries(event):
        kinds = _kind(one), _kind(other)
        if None in kinds:  # a list is no tuple, however many are in it
            kinds = _sort(one), _sort(other)
        if isinstance(one, OptStateVal) is not isinstance(other, OptStateVal):
            pair = [OF_OPTIMIZER if isinstance(side, OptStateVal) else _kind(side) for side in (one, other)]
            kinds = (pair[0], pair[1]) if "a State" in pair else (None, None)  # it may be a tuple, or None
        if None not in kinds and kinds[0] != kinds[1]:
            _report(event, report, kinds)
            return


@judges(rules.LOOP_TYPE, Ran, RanInside, when=is_loop)
def carry_type(event: Ran, report: Reporter) -> None:
    for one, other in _carries(event):
        found = _types(one, other)
        if found is not None:
            _report(event, report, found)
            return


@judges(rules.LOOP_TREE, Returned, when=in_trace)
def carry_beside_nothing(event: Returned, report: Reporter) -> None:
    """``return x, None`` of a step whose ``out_axes`` is the carry alone, as for ``jax.lax.scan``."""
    scope, func = running(event), event.frame.func
    if scope is None or func is None or scope.row.name != "nnx.scan" or axes_of(scope.applied, "out_axes") is not CARRY:
        return
    if _is_carry_beside_nothing(event, scope):
        one, other = "one value", "a tuple of that and `None`"
        report(func.module, func.node, transform=scope.text, path="the carry", one=one, other=other)


def _is_carry_beside_nothing(event: Returned, scope: TraceScope) -> bool:
    """``return x, None`` of what the step has got as ``x``, and computed an array of: the carry would hold itself."""
    func, axes = event.frame.func, axes_of(scope.applied, "in_axes")
    value, node = event.value, event.node.value if isinstance(event.node, ast.Return) else None
    if not isinstance(value, Seq) or len(value.items) != 2 or not isinstance(node, ast.Tuple) or func is None:
        return False
    first, second = value.items
    if not isinstance(first, Array) or not (isinstance(second, Const) and second.value is None) or scope.held:
        return False
    names = [argument.arg for argument in syntax_parameters.positional(func.node.args)]
    carry = axes.index(CARRY) if isinstance(axes, tuple) and axes.count(CARRY) == 1 else None
    return carry is not None and carry < len(names) and is_name(node.elts[0], names[carry])


def _report(event: Ran, report: Reporter, found: tuple[str | None, str | None]) -> None:
    func = event.scope.frame.func if event.scope.frame is not None else None
    if func is not None:
        report.memory(Told).steps.add(func.node)
        one, other = found
        report(func.module, func.node, transform=event.scope.text, path="the carry", one=one, other=other)


def _carries(event: Ran) -> Iterator[tuple[Value, Value]]:
    """What stands at the same places of the carry that a step was given, and of the one that it returns."""
    scope, loop, after = event.scope, LOOPS.get(event.scope.row.name), present(event.result)
    if not _is_step(event):
        return
    if loop is None:
        before, returned = carry_given(scope), carry_returned(scope, after)
    else:
        before, returned = _carry_given(scope, loop), after
        if loop.pairs:
            returned = after.items[0] if isinstance(after, Seq) and _kind(after) == "a tuple of 2" else None
    if before is not None and returned is not None:
        yield from _paired(before, returned)


def _carry_given(scope: TraceScope, loop: Loop) -> Value | None:
    """The carry that a step is given, as a parameter of its own."""
    func = scope.frame.func if scope.frame is not None else None
    if func is None or func.node.args.vararg is not None:
        return None
    given = list(scope.frame.given.values()) if scope.frame is not None else []
    if scope.held:  # a bound method has its object as one more, and a partial has something else
        given = given[1:] if [how for _, how in scope.held] == ["bound"] else []
    return given[loop.carry] if len(given) == loop.parameters else None


def _is_step(event: Ran) -> bool:
    """Whether a step has run, and certainly not the condition of a loop."""
    func, node = event.scope.frame.func if event.scope.frame is not None else None, event.node
    if not event.scope.row.name.endswith(".while_loop") or func is None:
        return func is not None
    first = node.args[0] if isinstance(node, ast.Call) and node.args else keyword_node(node, "cond_fun")
    if isinstance(first, ast.Lambda):
        return first is not func.node
    condition = resolved(event.frame.env, first)
    return isinstance(condition, FuncVal) and condition.node is not func.node


def _paired(one: Value, other: Value) -> Iterator[tuple[Value, Value]]:
    """Two trees, and what stands at the same places in them, as far as they have the same containers."""
    one, other = present(one), present(other)
    yield one, other
    if _kind(one) is None or _kind(one) != _kind(other):
        return
    if isinstance(one, Seq) and isinstance(other, Seq):
        for pair in zip(one.items, other.items, strict=True):
            yield from _paired(*pair)
    if isinstance(one, Obj) and isinstance(other, Obj) and not one.cls.tracked:
        for name in attribute_names(one):
            held, new = attribute_of(one, name), attribute_of(other, name)
            if held is not None and new is not None:
                yield from _paired(held.value, new.value)
    if isinstance(one, DictVal) and isinstance(other, DictVal):
        entries = {key.value: value for key, value in other.items if isinstance(key, Const)}
        for key, value in one.items:
            if isinstance(key, Const):
                yield from _paired(value, entries[key.value])


def _kind(value: Value) -> str | None:
    """What a value is as a tree, where that is certain."""
    if isinstance(value, Seq) and value.exact and value.type in {"tuple", "list"}:
        return f"a {value.type} of {len(value.items)}"
    if isinstance(value, Const):
        number = isinstance(value.value, (int, float, complex))
        return "None" if value.value is None else "an array" if number else None
    if isinstance(value, Obj):
        known = value.cls.tracked or (isinstance(value.cls, UserClass) and value.cls.named_tuple and not value.assumed)
        return f"a {value.cls.name}" if known and not value.cls.is_variable else None
    if isinstance(value, StateVal):
        return "a State"
    if isinstance(value, DictVal):
        keys = {repr(key.value) for key, _ in value.items if isinstance(key, Const)}
        known = type(value) is DictVal and value.exact and all(isinstance(key, Const) for key, _ in value.items)
        return f"a dict with the keys {', '.join(sorted(keys))}" if known and keys else None
    return "an array" if isinstance(value, Array) else None


def _sort(value: Value) -> str | None:
    """What a value is as a tree, but for how many elements a list or tuple has."""
    return f"a {value.type}" if isinstance(value, Seq) and value.type in {"tuple", "list"} else _kind(value)


OF_OPTIMIZER = "the state of an optimizer"


def _types(one: Value, other: Value) -> tuple[str, str] | None:
    """The types of two arrays that certainly differ, in words."""
    if not isinstance(one, Array) or not isinstance(other, Array):
        return None
    before, after = literal(one), literal(other)
    if before.dtype and after.dtype and in_short(before.dtype) != in_short(after.dtype):
        return f"an array of {before.dtype}", f"one of {after.dtype}"
    left, right = before.shape, after.shape
    if left is None or right is None or not is_whole(left) or not is_whole(right):
        return None
    sizes = [pair for pair in zip(left, right, strict=False) if all(isinstance(item, int) for item in pair)]
    if len(left) != len(right) or any(size != grown for size, grown in sizes):
        return f"an array of shape {layers.shown(left)}", f"one of shape {layers.shown(right)}"
    return None


# -- what comes back ---------------------------------------------------------------------------------------------------


@judges_calls(CELL_RESULTS, "jax.lax.scan")
def scan_unpacked(event: Called, report: Reporter) -> None:
    """``outputs, (a, b) = jax.lax.scan(...)``, where what is carried has two parts and the outputs are one array."""
    target = target_of(event.frame.module, event.node)
    pair = event.result.items if isinstance(event.result, Seq) else []
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or len(pair) != 2:
        return
    (first, second), (carry, outputs) = target.elts, pair
    parts = len(second.elts) if isinstance(second, (ast.Tuple, ast.List)) else 0
    fits = isinstance(carry, Seq) and carry.exact and carry.type == "tuple" and len(carry.items) == parts > 1
    if not fits or not isinstance(first, ast.Name) or not isinstance(outputs, Array):
        return
    length = (literal(outputs).shape or (None,))[0]
    if length != parts and not is_tried(event.frame.module, event.node):
        problem = f"`{first.id}` takes what is carried, and the outputs of all steps are taken apart"
        mend = f"{text_of(second)}, {first.id} = {event.name}(...)"
        report(event.frame.module, target, problem=problem, mend=mend)
