"""Numbers under conditions that they do not fulfil: ``if args.groups: norm = GroupNorm(num_groups=args.groups)``, where
``groups`` is 0 unless the command line says otherwise.

A number that a program computes, or that somebody may give when it starts, decides no condition, so both arms run. The
arm that it contradicts is for other numbers. In there it is not known; and where the arm of the present number leaves
the function, as one does that refuses what it was given, it is not known afterwards either.

Invariants: only names and attributes are looked at, and nothing is evaluated twice; what an arm itself binds stays.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeVar

from nnx_lint.model.arithmetic import EQUALITIES, OPERATORS, ORDERS, evaluated
from nnx_lint.model.attributes import forget
from nnx_lint.model.naming import value_at
from nnx_lint.model.narrowing import narrow
from nnx_lint.model.values import Computed, Const, Obj, Unknown, Value
from nnx_lint.syntax.dotted import last_name, root_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter

T = TypeVar("T")

ANOTHER = Unknown()
"""A number that is not the one that is known."""


class Doubts:
    """The numbers that an arm forgets, since they contradict its condition."""

    def __init__(self, frame: Frame, test: ast.expr, positive: bool) -> None:
        self.forgotten = [_Forgotten(frame, node) for node in _contradicting(frame, test, positive)]

    def end(self, refused: bool = False) -> None:
        """Know them again behind the arm, unless the arm beside it, which is the one of the numbers, leaves."""
        for each in self.forgotten if not refused else ():
            each.know_again()


class _Forgotten:
    """One of them, and what it was. An arm may bind something else in its place, which stays."""

    def __init__(self, frame: Frame, node: ast.Name | ast.Attribute) -> None:
        owner = value_at(frame, node.value) if isinstance(node, ast.Attribute) else None
        self.frame, self.owner = frame, owner if isinstance(owner, Obj) else None
        self.name = node.attr if isinstance(node, ast.Attribute) else node.id
        self.bound = frame.env.names.get(self.name) if self.owner is None else None
        self.attr = self.owner.attrs.get(self.name) if self.owner is not None else None
        if self.owner is None:
            frame.env.names[self.name] = ANOTHER
        else:
            forget(self.owner, self.name)
            self.placed = self.owner.attrs[self.name]

    def know_again(self) -> None:
        names = self.frame.env.names
        if self.owner is None:
            if names.get(self.name) is ANOTHER:
                _put(names, self.name, self.bound)
        elif self.owner.attrs.get(self.name) is self.placed:
            _put(self.owner.attrs, self.name, self.attr)


def _put(held: dict[str, T], name: str, value: T | None) -> None:
    if value is None:
        del held[name]
    else:
        held[name] = value


def chosen(interp: Interpreter, frame: Frame, test: ast.expr, positive: bool, node: ast.expr) -> Value:
    """What an expression is that a condition chooses."""
    from nnx_lint.model.expressions import evaluate

    narrow(interp, frame, test, positive)
    doubts = Doubts(frame, test, positive)
    value = evaluate(interp, frame, node)
    doubts.end()
    return value


def leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether nothing runs after a block: it raises an error, returns, or ends the program."""
    last = body[-1] if body else None
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return last_name(last.value.func) in ENDING
    return isinstance(last, (ast.Raise, ast.Return, ast.Continue, ast.Break))


ENDING = frozenset({"abort", "error", "exit", "fail"})
"""Functions, and methods of parsers and contexts, that do not return."""


def _contradicting(frame: Frame, test: ast.expr, positive: bool) -> list[ast.Name | ast.Attribute]:
    """The numbers by which a condition is false that is to be true, or the other way round."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _contradicting(frame, test.operand, not positive)
    if isinstance(test, ast.BoolOp):
        parts = test.values if isinstance(test.op, ast.And) is positive else ()
        return [node for part in parts for node in _contradicting(frame, part, positive)]
    leaves_of_test = _leaves(test)
    if not leaves_of_test or not any(type(value_at(frame, node)) is Computed for node in leaves_of_test):
        return []
    known = _known(frame, test)
    if known is None or bool(known) is positive:
        return []
    return [node for node in leaves_of_test if type(value_at(frame, node)) is Computed]


def _leaves(test: ast.AST) -> list[ast.Name | ast.Attribute]:
    """The names and attributes that a condition computes with, where it does no more than that."""
    if isinstance(test, ast.Name):
        return [test]
    if isinstance(test, ast.Attribute):
        return [test] if root_of(test) is not None else []
    if isinstance(test, ast.BinOp):
        return [*_leaves(test.left), *_leaves(test.right)]
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return [*_leaves(test.left), *_leaves(test.comparators[0])]
    return []


def _known(frame: Frame, node: ast.expr) -> object:
    """What a condition is for the numbers that are known, or ``None``."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _known(frame, node.operand)
        return -value if isinstance(value, (int, float)) else None
    if isinstance(node, (ast.Name, ast.Attribute)):
        held = value_at(frame, node)
        return held.value if isinstance(held, Const) and isinstance(held.value, (int, float)) else None
    if isinstance(node, ast.BinOp):
        return _made(OPERATORS.get(type(node.op)), _known(frame, node.left), _known(frame, node.right))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        compare = ORDERS.get(type(node.ops[0])) or EQUALITIES.get(type(node.ops[0]))
        return _made(compare, _known(frame, node.left), _known(frame, node.comparators[0]))
    return None


def _made(function: Callable[..., object] | None, left: object, right: object) -> object:
    numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
    return evaluated(function, left, right) if function is not None and numbers else None
