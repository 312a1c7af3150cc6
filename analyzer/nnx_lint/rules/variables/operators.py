"""Variables in operators, in functions for arrays and in formats (NNX812, NNX814-NNX817, NNX869)."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Fix
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import Called, Mutated, Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.tables.jax_results import RESULTS
from nnx_lint.model.values import (
    Array,
    Const,
    Obj,
    Value,
    VariableVal,
)
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.edits import insert
from nnx_lint.rules.program import enclosing, is_asked_for, is_tried
from nnx_rules.rules import variables as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.modules import Module

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+=",
    ast.Sub: "-=",
    ast.Mult: "*=",
    ast.Div: "/=",
    ast.FloorDiv: "//=",
    ast.Mod: "%=",
    ast.Pow: "**=",
    ast.MatMult: "@=",
    ast.BitAnd: "&=",
    ast.BitOr: "|=",
    ast.BitXor: "^=",
    ast.LShift: "<<=",
    ast.RShift: ">>=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.NotEq: "!=",
}


def is_variable(value: Value | None) -> bool:
    """Whether a value certainly is a Variable as the library makes them, and not one with operators of its own."""
    return isinstance(value, Obj) and value.cls.is_variable and not value.cls.is_open


def _defines(value: Value, *names: str) -> bool:
    """Whether the class of a Variable has methods of its own by these names."""
    find = getattr(value.cls, "find", None) if isinstance(value, Obj) else None
    return find is not None and any(find(name) is not None for name in names)


def take_value(module: Module, node: ast.expr) -> Fix:
    """Use the value of a Variable that an expression names."""
    return Fix("Use its value", insert(module.source.span(node).end, "[...]"))


# -- in-place operators ------------------------------------------------------------------------------------------------


def _augments(event: Mutated) -> bool:
    return isinstance(event.node, ast.AugAssign)


@judges(rules.VARIABLE_INPLACE_OPERATOR, Mutated, when=_augments)
def variable_inplace_operator(event: Mutated, report: Reporter) -> None:
    node, target = event.node, event.target
    if not isinstance(node, ast.AugAssign) or not is_variable(target) or not isinstance(target, Obj):
        return
    if text_of(node.target) != event.name or _defines(target, *INPLACE):
        return
    module = event.frame.module
    operator = OPERATORS.get(type(node.op), "+=")
    fix = partial(take_value, module, node.target)
    name = module.source.segment(node.target)
    report(module, node, fix=fix, name=name, operator=operator, cls=target.cls.name)


INPLACE = ("__iadd__", "__isub__", "__imul__", "__itruediv__")

# -- comparisons and conditions ----------------------------------------------------------------------------------------


def _compares(event: Used) -> bool:
    return event.what == "a comparison"


@judges(rules.VARIABLE_COMPARISON, Used, when=_compares)
def variable_comparison(event: Used, report: Reporter) -> None:
    node, value, module = event.node, event.value, event.frame.module
    compare = enclosing(module, node, ast.Compare)
    if compare is None or not isinstance(node, ast.expr) or not isinstance(value, Obj) or not is_variable(value):
        return
    operator = OPERATORS.get(type(compare.ops[0]))
    if operator is None or _defines(value, "__lt__", "__gt__", "__le__", "__ge__", "__ne__"):
        return
    if operator == "!=" and not _has_elements(value):
        return
    fix = partial(take_value, module, node)
    report(module, compare, fix=fix, name=text_of(node), operator=operator, cls=value.cls.name)


def _has_elements(value: Obj) -> bool:
    """Whether a Variable certainly holds an array of more than one element: its inequality has no truth."""
    held = (value.args or {}).get("value")
    shape = held.form.shape if isinstance(held, Array) and held.form is not None else None
    return bool(shape) and all(isinstance(item, int) and item > 1 for item in shape or ())


def _asks_truth(event: Used) -> bool:
    return event.what == "a condition"


@judges(rules.VARIABLE_TRUTH_VALUE, Used, when=_asks_truth)
def variable_truth_value(event: Used, report: Reporter) -> None:
    node, value = event.node, event.value
    if not isinstance(node, ast.expr) or not isinstance(value, Obj) or not is_variable(value):
        return
    if value.assumed or _defines(value, "__bool__", "__len__"):
        return
    held = (value.args or {}).get("value")
    outcome = "it is true whatever the value, and fails for one without axes"
    form = held.form if isinstance(held, Array) else None
    if isinstance(held, Const) or (form is not None and form.shape == ()):
        outcome = "asking for it fails, because the value has no length"
    elif not isinstance(held, Array):
        return
    module = event.frame.module
    fix = None
    if isinstance(node, (ast.Name, ast.Attribute)):
        edits = insert(module.source.span(node).end, " is not None")
        fix = Fix("Ask whether it is there", edits, Applicability.UNSAFE)
    report(module, node, fix=fix, name=text_of(node), cls=value.cls.name, outcome=outcome)


# -- keys --------------------------------------------------------------------------------------------------------------


def _is_key(event: Used) -> bool:
    return event.what == "a key"


@judges(rules.VARIABLE_AS_KEY, Used, when=_is_key)
def variable_as_key(event: Used, report: Reporter) -> None:
    value, module = event.value, event.frame.module
    if isinstance(value, Obj) and is_variable(value) and not _defines(value, "__hash__"):
        report(module, event.node, name=text_of(event.node), cls=value.cls.name)
    elif isinstance(value, VariableVal) and not module.mentions("__hash__"):
        report(module, event.node, name=text_of(event.node), cls="Variable")


CACHED = frozenset({"functools.cache", "functools.lru_cache"})


def _keeps_results(event: Called) -> bool:
    """Whether what is called keeps its results by its arguments."""
    return isinstance(event.callee, FuncVal) and not CACHED.isdisjoint(event.callee.decorators)


@judges_calls(rules.VARIABLE_AS_KEY, FuncVal, when=_keeps_results)
def variable_as_cached_argument(event: Called, report: Reporter) -> None:
    for value, node in zip(event.args, event.nodes, strict=False):
        if isinstance(value, Obj) and is_variable(value) and not _defines(value, "__hash__"):
            report(event.frame.module, node, name=text_of(node), cls=value.cls.name)


# -- formats -----------------------------------------------------------------------------------------------------------


@judges(rules.VARIABLE_IN_FORMAT, Used, when=lambda event: event.what == "a format")
def variable_in_format(event: Used, report: Reporter) -> None:
    node, value, module = event.node, event.value, event.frame.module
    if not isinstance(node, ast.expr) or not isinstance(value, Obj) or not is_variable(value) or value.assumed:
        return
    if not _defines(value, "__format__") and not is_tried(module, node) and not is_asked_for(module, node):
        report(module, node, fix=partial(take_value, module, node), name=text_of(node), cls=value.cls.name)


# -- primitives --------------------------------------------------------------------------------------------------------

TAKES_VARIABLES = frozenset({"convert_element_type", "full_like", "axis_index"})
"""Functions of ``jax.lax`` that return an array and take a Variable for its array."""


PRIMITIVES = (
    name
    for name, kind in RESULTS.items()
    if kind == "array" and name.startswith("jax.lax.") and name.removeprefix("jax.lax.") not in TAKES_VARIABLES
)


@judges_calls(rules.VARIABLE_INTO_PRIMITIVE, *PRIMITIVES)
def variable_into_primitive(event: Called, report: Reporter) -> None:
    module = event.frame.module
    for value, node in _arrays(event):
        if isinstance(value, Obj) and is_variable(value):
            fix = partial(take_value, module, node)
            report(module, node, fix=fix, function=event.name, name=text_of(node), cls=value.cls.name)


def _arrays(event: Called) -> Iterator[tuple[Value | None, ast.expr]]:
    """The positional arguments, and the elements of those that are sequences."""
    for value, node in zip(event.args, event.nodes, strict=False):
        if isinstance(node, (ast.List, ast.Tuple)) and isinstance(value, Seq) and len(value.items) == len(node.elts):
            yield from zip(value.items, node.elts, strict=True)
        elif not isinstance(node, ast.Starred):
            yield value, node
