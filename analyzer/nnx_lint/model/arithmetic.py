"""Arithmetic of what a program says in literals: sizes such as ``4 * hidden``, ``len(layers)``, ``math.prod(shape)``.

Invariants: no code of the program is run; results are plain numbers and texts, and small, or there is none.
"""

from __future__ import annotations

import ast
import math
import operator
from typing import TYPE_CHECKING, Any

from nnx_lint.model.containers import Seq
from nnx_lint.model.unions import UnionVal
from nnx_lint.model.values import FLOAT, FRACTION, NUMBER, UNKNOWN, Computed, Const, Ext, Other, Quotient, Value

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_TEXT = 1_000
MAX_NUMBER = 10**18
MAX_EXPONENT = 64

PLAIN = (bool, int, float, str)


class RoundNumber(Const):
    """The number of a round, in a loop that is run element by element.

    It decides conditions, whatever it is compared with (``if i < len(self.layers) - 1``): such a loop is not run so
    unless what it goes over is known whole.
    """

    __slots__ = ()


def _divide(left: Any, right: Any) -> Any:
    return left / right


def _floor(left: Any, right: Any) -> Any:
    return left // right


def _power(base: Any, exponent: Any) -> Any:
    if not isinstance(exponent, int) or not 0 <= exponent <= MAX_EXPONENT:
        raise ValueError
    return base**exponent


OPERATORS: dict[type[ast.AST], Callable[..., object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
    ast.FloorDiv: _floor,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
"""Operators of two numbers."""

FUNCTIONS: dict[str, Callable[..., object]] = {
    "builtins.abs": abs,
    "builtins.float": float,
    "builtins.int": int,
    "builtins.max": max,
    "builtins.min": min,
    "builtins.round": round,
    "builtins.sum": sum,
    "math.ceil": math.ceil,
    "math.cos": math.cos,
    "math.exp": math.exp,
    "math.floor": math.floor,
    "math.isqrt": math.isqrt,
    "math.log": math.log,
    "math.log10": math.log10,
    "math.log2": math.log2,
    "math.pow": math.pow,
    "math.prod": math.prod,
    "math.sin": math.sin,
    "math.sqrt": math.sqrt,
    "math.tanh": math.tanh,
}
"""Functions of numbers, or of one sequence of them, by canonical name."""


def otherwise(name: str) -> Value:
    """What a function of numbers gives for numbers that nobody knows; those that take arrays too may give anything."""
    if name == "math.prod" or not name.startswith("math."):
        return UNKNOWN
    return NUMBER if name in {"math.ceil", "math.floor", "math.isqrt"} else FLOAT


COUNTS = frozenset({"a number", "an int"})
"""What values are called of which no more is known than that they are a number."""

CONSTANTS = frozenset(
    f"{module}.{name}" for module in ("jax.numpy", "math", "numpy") for name in ("e", "inf", "nan", "pi", "tau")
)
"""Names of numbers."""


_PLAIN_NUMBERS: dict[type, Value] = {int: NUMBER, float: FLOAT}


def one_number(value: Value) -> Value | None:
    """``NUMBER`` or ``FLOAT`` where a value certainly is one number of Python, and no array; else ``None``."""
    if isinstance(value, Const):
        return _PLAIN_NUMBERS.get(type(value.value))
    if isinstance(value, Ext):
        return FLOAT if value.name in CONSTANTS else None
    if isinstance(value, UnionVal):
        found = [one_number(option) for option in value.options]
        return None if None in found else FLOAT if all(each is FLOAT for each in found) else NUMBER
    if isinstance(value, Other) and value.what in COUNTS:
        return NUMBER
    return FLOAT if isinstance(value, Other) and value.what == FLOAT.what else None


def of_numbers(op: ast.operator, left: Value, right: Value) -> Value | None:
    """What an operator gives for two numbers that nobody knows."""
    one, other = one_number(left), one_number(right)
    if one is None or other is None or type(op) not in OPERATORS:
        return None
    return FLOAT if FLOAT in (one, other) or isinstance(op, ast.Div) else NUMBER


def evaluated(function: Callable[..., object], *values: object) -> bool | int | float | str | None:
    """The result of a function of plain values; ``None`` if it has none, or a large one."""
    if any(isinstance(item, str) and len(item) > MAX_TEXT for item in values):
        return None
    if function is operator.mul and any(isinstance(item, str) for item in values):
        return None
    try:
        result = function(*values)
    except (ArithmeticError, TypeError, ValueError):
        return None
    if isinstance(result, (int, float)) and not -MAX_NUMBER < result < MAX_NUMBER:
        return None
    return result if isinstance(result, PLAIN) else None


def plain(*values: Value) -> list[object] | None:
    """What literals stand for; ``None`` if one of them is none."""
    known: list[object] = [
        value.value for value in values if isinstance(value, Const) and isinstance(value.value, PLAIN)
    ]
    return known if len(known) == len(values) else None


def is_fraction(value: Value) -> bool:
    """Whether a value is no number that counts elements: one number with a fraction, or no number at all."""
    fractional = isinstance(value, Const) and isinstance(value.value, float)
    return fractional or value is FRACTION or isinstance(value, Quotient) or one_number(value) is FLOAT


def is_fractional(op: ast.operator, left: Value, right: Value) -> bool:
    """Whether an operator gives a number with a fraction, where it gives a number."""
    kept = isinstance(op, (ast.Add, ast.Sub, ast.Mult)) and (is_fraction(left) or is_fraction(right))
    return kept or isinstance(op, ast.Div)


ORDERS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
}
EQUALITIES: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {ast.Eq: operator.eq, ast.NotEq: operator.ne}


def compared(op: ast.cmpop, left: Value, right: Value) -> Const | None:
    """What a comparison of two known values of one type gives, if it decides a condition."""
    if not isinstance(left, Const) or not isinstance(right, Const) or type(left.value) is not type(right.value):
        return None
    sides = (left, right)
    if any(isinstance(side, Computed) for side in sides) and not any(isinstance(side, RoundNumber) for side in sides):
        return None
    compare = EQUALITIES.get(type(op)) or (ORDERS.get(type(op)) if isinstance(left.value, (int, float)) else None)
    return Const(compare(left.value, right.value)) if compare is not None else None


def contained(op: ast.cmpop, left: Value, right: Value) -> Const | None:
    """What ``kind in ("mlp", "glu")`` gives, where it can be compared with all that a list or the like holds."""
    if not isinstance(op, (ast.In, ast.NotIn)) or not isinstance(right, Seq) or not right.exact or right.shrunk:
        return None
    verdicts = [compared(_EQUALITY, left, item) for item in right.items]
    if not verdicts or None in verdicts:
        return None
    return Const(any(verdict is not None and verdict.value for verdict in verdicts) is isinstance(op, ast.In))


_EQUALITY = ast.Eq()


def number(op: ast.operator, left: Value, right: Value) -> Const | None:
    """The number that an operator makes of two numbers, where both are known."""
    function = OPERATORS.get(type(op))
    sides = plain(left, right)
    if function is None or sides is None or any(isinstance(side, (str, bool)) for side in sides):
        return None
    result = evaluated(function, *sides)
    if result is None:
        return None
    return RoundNumber(result) if isinstance(left, RoundNumber) or isinstance(right, RoundNumber) else Computed(result)
