"""Positions of arguments that an option of a transform names: those to differentiate (NNX319, NNX409, NNX410, NNX411,
NNX460), and those that are static for a rematerialized function (NNX440).

Invariants: positions are compared with the arguments of a call whose number is known, where the option is a literal.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, FuncVal, Transformed
from nnx_lint.model.containers import Seq
from nnx_lint.model.crossing import literal_positions
from nnx_lint.model.events import Called, TransformApplied
from nnx_lint.model.library import FilterVal
from nnx_lint.model.values import Array, Const, Obj, Value
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.callees import TRANSFORMED
from nnx_lint.rules.program import assigned_in, canonical_of, own_nodes
from nnx_lint.rules.traces.boundaries import transform_of
from nnx_lint.rules.transforms.mapping import applied_by, calls_transformed
from nnx_lint.rules.transforms.options import option_node
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name
from nnx_rules.rules import autodiff, filters
from nnx_rules.rules import transforms as rules
from nnx_rules.transforms import DIFFERENTIATING

if TYPE_CHECKING:
    from collections.abc import Sequence


def differentiates(event: TransformApplied) -> bool:
    """Whether a transform is told what to differentiate."""
    return event.applied.row.name in DIFFERENTIATING and "argnums" in event.applied.keywords


@judges(rules.ARGNUMS_TYPE, TransformApplied, when=differentiates)
@judges(rules.ARGNUM_REPEATED, TransformApplied, when=differentiates)
def argnums_as_given(event: TransformApplied, report: Reporter) -> None:
    applied = event.applied
    node, places = option_node(applied, "argnums"), _entries(applied.keywords["argnums"])
    known = [place.value for place in places if isinstance(place, Const)]
    if report.rule is rules.ARGNUMS_TYPE:
        wrong = next((place for place in places if isinstance(place, Const) and not isinstance(place.value, int)), None)
        if wrong is not None:
            report(applied.module, node, transform=applied.text, given=wrong.describe())
        return
    twice = next((place for at, place in enumerate(known) if place in known[:at] and isinstance(place, int)), None)
    if twice is not None and applied.row.name.startswith("nnx."):
        report(applied.module, node, transform=applied.text, argnum=twice)


def finds_gradient(event: TransformApplied) -> bool:
    """Whether a transform differentiates a function that is known."""
    return event.applied.row.name in DIFFERENTIATING and isinstance(event.func, FuncVal)


@judges(autodiff.NOTHING_TO_TRAIN, TransformApplied, when=finds_gradient)
def structure_differentiated(event: TransformApplied, report: Reporter) -> None:
    """``jax.grad(loss)`` where the first parameter of the loss is the GraphDef that ``nnx.merge`` takes there."""
    func, applied = event.func, event.applied
    places = literal_positions(applied.keywords.get("argnums"), default=(0,))
    if not isinstance(func, FuncVal) or func.wraps is not None or places is None or "**" in applied.keywords:
        return
    names = syntax_parameters.positional_names(func.node.args)
    for name in (names[place] for place in places if 0 <= place < len(names)):
        merged = _merged_by(func, name) if not assigned_in(func.node)[name] else None
        if merged is not None:
            state = next((each.id for each in merged.args[1:] if isinstance(each, ast.Name) and each.id in names), None)
            mend = f"`argnums={names.index(state)}`" if state is not None else "`argnums=...`"
            what = autodiff.NO_NUMBERS.format(name=name)
            report(applied.module, applied.node, transform=applied.text, what=what, mend=autodiff.SAY_STATE + mend)
            return


def _merged_by(func: FuncVal, name: str) -> ast.Call | None:
    """The call of ``nnx.merge`` in a function that takes a parameter for the structure."""
    calls = (node for node in own_nodes(func.node) if isinstance(node, ast.Call) and node.args)
    return next(
        (call for call in calls if is_name(call.args[0], name) and canonical_of(func.module.env, call.func) == MERGE),
        None,
    )


MERGE = "nnx.merge"


def _entries(argnums: Value) -> Sequence[Value | None]:
    """The positions that are written, one by one."""
    items = argnums.items if isinstance(argnums, Seq) and argnums.exact else [argnums]
    chosen = [item.args.get(0, "argnum") if isinstance(item, FilterVal) else item for item in items]
    return [item for item in chosen if item is not None]


def _positional(event: Called, operands: int, *, nnx: bool, defaults: bool) -> int | None:
    """How many arguments a call gives by position; ``nnx`` transforms know keywords that have one, too. In the default
    mode of flax, and on nnxkit, a parameter that is left out has its default.
    """
    callee: Value | None = event.callee
    while isinstance(callee, (Transformed, BoundMethod)):
        callee = callee.func
    if defaults and isinstance(callee, FuncVal) and callee.node.args.defaults:
        return len(syntax_parameters.positional_names(callee.node.args)) if callee.wraps is None else None
    if not event.keywords or not nnx:
        return operands - len(event.keywords)
    if not isinstance(callee, FuncVal) or callee.wraps is not None:
        return None
    names = syntax_parameters.positional_names(callee.node.args)
    return operands - sum(name not in names for name in event.keywords)


@judges_calls(rules.ARGNUM_RANGE, *TRANSFORMED, when=calls_transformed)
@judges_calls(rules.MISSING_POSITION, *TRANSFORMED, when=calls_transformed)
def positions_of_call(event: Called, report: Reporter) -> None:
    running, applied, node = transform_of(event), applied_by(event), event.node
    if running is None or applied is None or None in event.args or not isinstance(node, ast.Call):
        return
    option = "argnums" if report.rule is rules.ARGNUM_RANGE else "static_argnums"
    concerned = applied.row.name in DIFFERENTIATING if option == "argnums" else applied.row.name == "nnx.remat"
    asked = applied.keywords.get(option, Const(0) if option == "argnums" else None)
    if not concerned or asked is None or "**" in applied.keywords or "**" in event.keywords:
        return
    nnx = applied.row.name.startswith("nnx.")
    defaults = nnx and (applied.modes.writes_back or report.runs_on(event.frame.module)[0] == "nnxkit")
    count = _positional(event, len(running.operands), nnx=nnx, defaults=defaults)
    if count is None:
        return
    for place in _entries(asked):
        number = place.value if isinstance(place, Const) and type(place.value) is int else None
        if number is None or -count <= number < count:
            continue
        if option == "argnums":
            report(event.frame.module, node, transform=applied.text, argnum=number, count=count)
        else:
            report(event.frame.module, node, option=option, transform=applied.text, given=number, count=count)
        return


def chooses_variables(event: Called) -> bool:
    """Whether a function is called that is differentiated with respect to some of the Variables of an argument."""
    applied = applied_by(event)
    asked = applied.keywords.get("argnums") if applied is not None else None
    items = asked.items if isinstance(asked, Seq) else [asked]
    return any(isinstance(item, FilterVal) and item.name == "nnx.DiffState" for item in items)


@judges_calls(filters.DIFFSTATE_ARGUMENTS, *TRANSFORMED, when=chooses_variables)
def filter_for_array(event: Called, report: Reporter) -> None:
    """A filter for an argument that is an array, which is differentiated whole, where another one is an object."""
    running, applied = transform_of(event), applied_by(event)
    if running is None or applied is None or None in event.args or event.keywords:
        return
    asked, values = applied.keywords["argnums"], [value for value, _ in running.operands]
    for item in asked.items if isinstance(asked, Seq) else [asked]:
        number = item.args.get(0, "argnum") if isinstance(item, FilterVal) else None
        place = number.value if isinstance(number, Const) else None
        if not isinstance(item, FilterVal) or type(place) is not int or not 0 <= place < len(values):
            continue
        other = next((at for at, value in enumerate(values) if isinstance(value, Obj) and value.cls.tracked), None)
        if isinstance(values[place], Array) and other is not None:
            written = item.args.node_of(1, "filter")
            text = ast.unparse(written) if written is not None else "nnx.Param"
            given = f"argument {place}, an array, in which a filter finds no Variables"
            report(item.module, item.node, given=given, number=other, filter=text)
