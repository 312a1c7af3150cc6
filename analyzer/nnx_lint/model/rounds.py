"""Rounds: loops and comprehensions over elements that are known, few and in order run element by element.

So the sizes of layers that a loop makes are known one by one, and the shape of an array is followed through a loop over
layers. All other loops run once, for any element.

Invariants: a container is gone through only where it is known whole; loops in loops have no more than
:data:`MAX_NESTED` times as many rounds as one; of the calls that are counted, those of the first round are.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import entries, items
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import method_of
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.elements import element_of, library_elements
from nnx_lint.model.unions import present
from nnx_lint.model.values import ClassVal, Const, Obj, Value
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import children, remembered, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter

MAX_NESTED = 4

MAX_ELEMENTS = 256
"""How many elements of a container that grows by others are told apart."""


def gone_through(interp: Interpreter, frame: Frame, node: ast.expr) -> Value:
    """What a loop over an expression goes through: of an object of the project, such as a loader, what it yields."""
    from nnx_lint.model.expressions import evaluate

    return yielded(interp, frame, evaluate(interp, frame, node), node)


def yielded(interp: Interpreter, frame: Frame, value: Value, node: ast.AST) -> Value:
    """What an object of the project yields, where the value is such an object."""
    obj = present(value)
    found = method_of(obj.cls, "__iter__") if isinstance(obj, Obj) and not obj.cls.tracked else None
    given = interp.call_function(frame, found[1], [], {}, node, receiver=obj) if found is not None else value
    return given if isinstance(given, Seq) else value


def subscripted(interp: Interpreter, frame: Frame, node: ast.expr, value: Value, index: Value) -> Value | None:
    """What an object of the project, such as a data set, gives for an index; ``None`` where it is no such object."""
    obj = present(value)
    found = method_of(obj.cls, "__getitem__") if isinstance(obj, Obj) and not obj.cls.tracked else None
    return interp.call_function(frame, found[1], [index], {}, node, receiver=obj) if found is not None else None


def elements(value: Value) -> list[Value] | None:
    """What a loop over a value meets, in order; ``None`` if that is not known."""
    value = present(value)
    if isinstance(value, Obj) and value.cls.derives_from("nnx.List"):
        held = library_elements(value)
        return held.items if held is not None and held.exact and not held.shrunk else None
    if isinstance(value, Obj) and value.cls.derives_from("nnx.Dict"):
        value = entries.known(value)
    if isinstance(value, Seq) and value.exact and not value.shrunk and value.type not in {"set", "frozenset"}:
        return value.items
    if isinstance(value, DictVal) and value.exact and not value.shrunk:
        return keys(value)
    return None


def keys(value: DictVal) -> list[Value] | None:
    """The keys of a dict that is known whole, if they certainly differ."""
    known = [key.value for key, _ in value.items if isinstance(key, Const)]
    return [key for key, _ in value.items] if len(set(map(repr, known))) == len(value.items) else None


def has_none(value: Value) -> bool:
    """Whether a loop over a value certainly has no round, as over ``range(1, blocks)`` where there is one block."""
    return isinstance(value, Seq) and value.type == "range" and value.exact and not value.items


def few(interp: Interpreter, value: Value) -> list[Value] | None:
    """The elements of a value, if they are few enough to go through them one by one."""
    known = elements(value)
    if not known or len(known) > interp.most_rounds:
        return None
    # A copy: the body of a loop may put something into what it goes through.
    return list(known) if len(known) * interp.nested <= MAX_NESTED * interp.most_rounds else None


def one_by_one(interp: Interpreter, node: ast.AST, known: list[Value]) -> Iterator[Value]:
    """Go through elements in the rounds of a loop."""
    nested, rolled = interp.nested, interp.rolled
    interp.nested = nested * len(known)
    interp.rolled = rolled | {id(node)}
    counted: dict[object, int] | None = None
    try:
        for element in known:
            if counted is not None:
                interp.runs = dict(counted)
            yield element
            counted = interp.runs if counted is None else counted
    finally:
        interp.nested = nested
        interp.runs = interp.runs if counted is None else counted
        interp.rolled = rolled


def of_loop(interp: Interpreter, frame: Frame, node: ast.For | ast.AsyncFor, iterable: Value) -> list[Value] | None:
    """The elements that a loop is run with one by one; ``None`` where it is run once for any of them.

    Nothing is told by the numbers of rounds that only count, outside of constructors.
    """
    if has_none(iterable):
        return []
    known = few(interp, iterable)
    if known is None or not any(map(_tells, known)) or _jumps(node):
        return None
    if any(isinstance(part, ast.Attribute) and frame.module.has(part.attr, _filled) for part in walk(node.iter)):
        return None
    counts = isinstance(iterable, Seq) and iterable.type == "range" and frame.initializing is None
    return None if counts and not _chooses(node) else known


def _tells(element: Value) -> bool:
    """Whether something follows from an element that does not follow from any."""
    if isinstance(element, Seq):
        return any(map(_tells, element.items))
    return isinstance(element, (Const, Obj, ClassVal, FuncVal))


def extend(
    interp: Interpreter, frame: Frame, container: Seq, other: Value, action: str, node: ast.AST, text: str
) -> None:
    """Put the elements of a value into a plain container, at its end."""
    known = elements(other)
    if known is not None and len(known) + len(container.items) > MAX_ELEMENTS:
        known = None
    for element in list(known) if known is not None else [element_of(other, frame.level)]:
        items.fill(interp, frame, container, element, action, node, text, at_end=known is not None)


# -- syntax ------------------------------------------------------------------------------------------------------------

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


@remembered
def _jumps(loop: ast.For | ast.AsyncFor) -> bool:
    """Whether a loop may end a round, or itself, early."""
    todo: list[ast.AST] = list(loop.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Break, ast.Continue)):
            return True
        if not isinstance(node, (*_SCOPES, *_LOOPS)):
            todo.extend(children(node))
    return False


@remembered
def _chooses(loop: ast.For | ast.AsyncFor) -> bool:
    """Whether the number of a round chooses an element of something."""
    name = loop.target.id if isinstance(loop.target, ast.Name) else None
    indices = (part.slice for statement in loop.body for part in walk(statement) if isinstance(part, ast.Subscript))
    return any(is_name(part, name) for index in indices for part in walk(index))


@remembered
def _filled(tree: ast.AST) -> frozenset[str]:
    """The attributes whose elements change after they were made: what a constructor puts into them is not all."""
    found: set[str] = set()
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            continue
        held = _changed(node)
        if isinstance(held, ast.Attribute):
            found.add(held.attr)
        todo.extend(children(node))
    return frozenset(found)


def _changed(node: ast.AST) -> ast.AST | None:
    """What a statement or call puts elements into, or takes them from."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
        return node.func.value
    if isinstance(node, ast.AugAssign):
        return node.target
    return node.value if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) else None


CHANGING = frozenset({"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"})
"""Methods that change which elements a list has."""
