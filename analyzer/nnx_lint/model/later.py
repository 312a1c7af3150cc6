"""What texts set of an object after its constructor has run.

A constructor says what an attribute is at first. Where other code sets it as well, a cache that is ``None``, a buffer
without rows, a state for one element, it may be of another value or shape by the time when a method runs.

What a plain object gets only later, such as the optimizer that a trainer makes in ``setup()``, is known where the
methods of its class make it, and always by calling the same class.

Invariants: methods that constructors alone mention are part of them; what a method sets of its own object counts for
its class and for those below, what is set of any other object for all of them; what is written back with some elements
replaced keeps its shape, and so does what a Variable holds where something is added to it or it is averaged, unless it
began as one number or with an axis of one element; only the files of the class and of its bases are asked.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, TypeGuard

from nnx_lint.model.annotations import is_ellipsis
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.crossing import shapeless
from nnx_lint.model.heap import touch
from nnx_lint.model.values import Array, Obj
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.compact import for_both
from nnx_lint.syntax.dotted import dotted_name
from nnx_lint.syntax.walk import remembered, walk

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from nnx_lint.model.classes import ClassBase
    from nnx_rules.shapes import Shape

CONSTRUCTORS = frozenset({"__init__", "__post_init__"})

ITEM = "[]"
"""Stands behind the name of an attribute of which an item is set."""

SUMMED = "+"
"""Stands behind the name of an attribute of which what its Variable holds is part of what it holds next."""


def is_set_later(cls: ClassBase, name: str) -> bool:
    """Whether something other than a constructor sets an attribute, or what a Variable there holds."""
    own = cls.lineage
    return any(item.module.has(key, set_later) for item in own for key in (f"{item.name}.{name}", f".{name}"))


def forget_shapes(obj: Obj) -> None:
    """Forget the shapes of arrays, in Variables and containers too, that are set anew after construction."""
    for name, attr in obj.attrs.items():
        value = attr.value
        if isinstance(value, Array) and value.form is not None:
            if is_set_later(obj.cls, name):
                attr.value = shapeless(value, dtype=True)
        elif isinstance(value, Obj) and value.cls.is_variable:
            held = (value.args or {}).get("value")
            if isinstance(held, Array) and held.form is not None and _is_forgotten(obj.cls, name, held.form.shape):
                touch(value)
                value.args = {**(value.args or {}), "value": shapeless(held, dtype=True)}
        elif isinstance(value, (Seq, DictVal)) and is_set_later(obj.cls, f"{name}{ITEM}"):
            touch(value)
            if isinstance(value, Seq):
                value.items = [shapeless(item, dtype=True) for item in value.items]
            else:
                value.items = [(key, shapeless(item, dtype=True)) for key, item in value.items]


def _is_forgotten(cls: ClassBase, name: str, shape: Shape | None) -> bool:
    """Whether what a Variable of a class holds may have another shape than this later."""
    grows = not shape or 1 in shape
    return is_set_later(cls, name) or (grows and is_set_later(cls, f"{name}{SUMMED}"))


# -- syntax ------------------------------------------------------------------------------------------------------------


@remembered
def set_later(statement: ast.AST) -> frozenset[str]:
    """``Class.attribute`` for what methods set of their own objects, ``.attribute`` for what is set of others."""
    nodes = [node for node in walk(statement) if type(node) in _LOOKED_AT]
    places = (node for node in nodes if isinstance(node, (ast.Attribute, ast.Subscript)))
    targets = [node for node in places if not isinstance(node.ctx, ast.Load)]
    edited = {node.targets[0] for node in nodes if isinstance(node, ast.Assign) and _is_edit(node)} if targets else ()
    targets = [node for node in targets if node not in edited]
    summed = {node for each in nodes if (node := _summed(each)) is not None} if targets else ()
    found = {f".{name}" for target in targets for owner, name in _stored(target, summed) if owner != "self"}
    targets.sort(key=_line)
    for cls in (node for node in nodes if isinstance(node, ast.ClassDef)) if targets else ():
        methods = [item for item in cls.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))]
        setting = [(item, inside) for item in methods if (inside := _in_lines_of(item, targets))]
        if any(method.name not in CONSTRUCTORS for method, _ in setting):
            first = constructing(methods)
            for method, inside in setting:
                receiver = next(iter(syntax_parameters.positional_names(method.args)), None)
                stored = (pair for target in inside for pair in _stored(target, summed) if method.name not in first)
                found |= {f"{cls.name}.{name}" for owner, name in stored if owner == receiver}
    return frozenset(found)


_LOOKED_AT: frozenset[type[ast.AST]] = frozenset(
    for_both(dict.fromkeys([ast.Attribute, ast.Subscript, ast.Assign, ast.AugAssign, ast.ClassDef], True))
)
"""The types of nodes that say what is set, of which most trees are not made."""


@remembered
def made_later(cls: ast.ClassDef) -> tuple[tuple[str, str], ...]:
    """The attributes that methods of a class assign which are not part of its constructor, with the name of what is
    called to make each; without one, where it is not always that.
    """
    later = {name.removeprefix(f"{cls.name}.") for name in set_later(cls) if name.startswith(f"{cls.name}.")}
    methods = [item for item in cls.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))] if later else []
    found: dict[str, set[str]] = {}
    for method in methods:
        receiver = next(iter(syntax_parameters.positional_names(method.args)), None)
        nodes = walk(method) if method.name not in CONSTRUCTORS else ()
        calls = ((node.targets[0], node.value) for node in nodes if _is_binding(node))
        made = {target: dotted_name(call.func) for target, call in calls if isinstance(call, ast.Call)}
        for node in nodes:
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) and _name(node.value) == receiver:
                found.setdefault(node.attr, set()).add(made.get(node) or "")
    return tuple((name, texts.pop() if len(texts) == 1 else "") for name, texts in found.items() if name in later)


def _is_binding(node: ast.AST) -> TypeGuard[ast.Assign]:
    return isinstance(node, ast.Assign) and len(node.targets) == 1


def _is_edit(statement: ast.Assign) -> bool:
    """Whether a statement writes back what it reads with some elements replaced, so that the shape stays."""
    target, call = statement.targets[0], statement.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or len(statement.targets) > 1:
        return False
    old: ast.expr | None = None
    if call.func.attr in UPDATING:
        old = call.args[0] if call.args else None
    elif isinstance(item := call.func.value, ast.Subscript) and isinstance(item.value, ast.Attribute):
        old = item.value.value if item.value.attr == "at" else None
    return old is not None and type(old) is type(target) and ast.unparse(old) == ast.unparse(target)


def _summed(statement: ast.AST) -> ast.AST | None:
    """What a statement writes to a Variable and reads in a sum or product: ``mean[...] = 0.9 * mean[...] + x``."""
    if isinstance(statement, ast.AugAssign):
        return statement.target if _is_content(statement.target) else None
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.BinOp):
        return None
    target = statement.targets[0]
    if len(statement.targets) > 1 or not _is_content(target):
        return None
    parts: list[ast.expr] = [statement.value]
    for part in parts:
        if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Add, ast.Div, ast.Mult, ast.Sub)):
            parts += part.left, part.right
    text = ast.unparse(target)
    return target if any(type(part) is type(target) and ast.unparse(part) == text for part in parts) else None


def _is_content(target: ast.expr) -> bool:
    """Whether a target is what the Variable of an attribute holds: ``self.mean[...]``, ``self.mean.value``."""
    if isinstance(target, ast.Attribute):
        return target.attr in {"value", "raw_value"} and isinstance(target.value, ast.Attribute)
    of = target.value if isinstance(target, ast.Subscript) and is_ellipsis(target.slice) else None
    return isinstance(of, ast.Attribute)


UPDATING = frozenset({"dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim"})
"""Functions of ``jax.lax`` that replace elements of their first argument."""


def _in_lines_of(method: ast.stmt, targets: list[ast.Attribute | ast.Subscript]) -> list[ast.Attribute | ast.Subscript]:
    first = bisect_left(targets, method.lineno, key=_line)
    return targets[first : bisect_right(targets, method.end_lineno or method.lineno, key=_line)]


def _line(target: ast.Attribute | ast.Subscript) -> int:
    return target.lineno


def constructing(methods: list[ast.FunctionDef | ast.AsyncFunctionDef]) -> set[str]:
    """The constructors of a class, and the methods that nothing but these mentions."""
    mentioned = {
        method.name: {node.attr for node in walk(method) if isinstance(node, ast.Attribute)} for method in methods
    }
    users: dict[str, set[str]] = {name: set() for name in mentioned}
    for user, names in mentioned.items():
        for name in names & users.keys():
            users[name].add(user)
    found = set(CONSTRUCTORS)
    while True:
        more = {name for name, by in users.items() if by and by <= found} - found
        if not more:
            return found
        found |= more


def _stored(target: ast.Attribute | ast.Subscript, summed: Container[ast.AST] = ()) -> Iterator[tuple[str, str]]:
    """What a target sets: the name of the object, if it has one, and that of the attribute."""
    mark = SUMMED if target in summed else ""
    if isinstance(target, ast.Attribute):
        yield _name(target.value), target.attr
        if target.attr in {"value", "raw_value"} and isinstance(target.value, ast.Attribute):
            yield _name(target.value.value), f"{target.value.attr}{mark}"
    elif isinstance(of := target.value, ast.Attribute):
        yield _name(of.value), f"{of.attr}{mark}" if is_ellipsis(target.slice) else f"{of.attr}{ITEM}"


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""
