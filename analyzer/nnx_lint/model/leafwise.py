"""Trees that are known whole: a batch in a dict, a record of arrays, and what a function makes of it leaf by leaf.

``jax.tree.map(jnp.asarray, batch)`` gives a dict with the same keys, so that the shapes of its arrays are not lost.

Invariants: a tree is taken apart as JAX does it: lists, tuples, dicts, named tuples, and dataclasses of which it is
certain that JAX knows them, with the fields that are no leaves left as they are; one with many leaves is not followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model import python, trees
from nnx_lint.model.classes import UserClass
from nnx_lint.model.construct import instantiate
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.elements import slice_of
from nnx_lint.model.states import GradientVal, PartVal, StateVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Const, Ext, Obj, Unknown, Value

if TYPE_CHECKING:
    import ast
    from collections.abc import Sequence

    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter

MAX_LEAVES = 8
"""How many leaves a function is run for one by one."""


class Leaves(NamedTuple):
    """A function that a map over trees calls for each leaf, and the call of the map; ``many`` says that it gets more
    leaves than are known.
    """

    applied: TransformVal
    func: Value
    node: ast.AST
    text: str
    many: bool = False

    def run(self, interp: Interpreter, frame: Frame, given: list[Value | None]) -> Value:
        from nnx_lint.model.calls import Arguments, invoke

        given = [*given, None] if self.many else given
        if isinstance(self.func, Ext):
            return invoke(interp, frame, self.func, Arguments(self.node, given, {}, []), self.node, self.text)
        return interp.run_under(frame, self.applied, self.func, given, {}, self.node)


def mapped(interp: Interpreter, frame: Frame, operands: Sequence[Value | None], leaves: Leaves) -> Value | None:
    """What a map over trees gives, where the first is known whole; ``None`` for any other. The last operand is ``None``
    where more such trees come, nobody knows how many: ``jax.tree.map(stack, *steps)``.
    """
    held = [present(each) for each in operands if each is not None]
    many = operands[-1:] == [None]
    if not held or len(held) + many < len(operands) or _parts(held[0]) is None or _count(held[0]) > MAX_LEAVES:
        return None
    return _of_each(interp, frame, held, leaves._replace(many=many))


def _parts(tree: Value) -> dict[object, Value] | None:
    """What JAX takes a tree apart into, by index, key or field; ``None`` for a leaf, and what is not known whole."""
    if isinstance(tree, Seq) and tree.exact and not tree.shrunk and tree.type in {"list", "tuple"}:
        return dict(enumerate(tree.items))
    if isinstance(tree, DictVal) and tree.exact and not (tree.shrunk or tree.shared):
        keyed = {key.value: value for key, value in tree.items if isinstance(key, Const)}
        return keyed if len(keyed) == len(tree.items) else None
    cls = tree.cls if isinstance(tree, Obj) else None
    if not isinstance(cls, UserClass) or not (cls.named_tuple or cls.leaf_names):
        return None
    fields = python.fields_of(tree)
    return dict[object, Value](fields.items()) if fields is not None else None


def step_of(interp: Interpreter, frame: Frame, tree: Value, node: ast.AST) -> Value:
    """What a scan over a tree gives to one step of it: an element of each array, in such a tree."""
    from nnx_lint.model.calls import Arguments

    tree = present(tree)
    if isinstance(tree, Seq) and tree.exact and tree.type in {"list", "tuple"}:
        return Seq(tree.type, [step_of(interp, frame, each, node) for each in tree.items], frame.level)
    cls = tree.cls if isinstance(tree, Obj) else None
    if not isinstance(cls, UserClass) or not (cls.named_tuple or cls.leaf_names):
        return slice_of(tree, frame.level)
    parts = _parts(tree)
    if parts is None:
        return interp.instance(cls, frame.level)
    kept = {str(key): each for key, each in parts.items() if cls.leaf_names and key not in cls.leaf_names}
    steps = {str(key): step_of(interp, frame, each, node) for key, each in parts.items() if str(key) not in kept}
    return instantiate(interp, frame, cls, Arguments(node, [], kept | steps, []), node)


def _count(tree: Value) -> int:
    parts = _parts(tree)
    return 1 if parts is None else sum(map(_count, map(present, parts.values())))


def _of_each(interp: Interpreter, frame: Frame, given: list[Value], leaves: Leaves) -> Value:
    from nnx_lint.model.calls import Arguments

    first = given[0]
    if isinstance(first, Const) and first.value is None:
        return first
    found = [_parts(each) for each in given]
    parts = found[0]
    if parts is None:
        made = leaves.run(interp, frame, [trees.leaf(interp, frame, each, None) for each in given])
        if isinstance(first, (StateVal, PartVal, GradientVal)):
            return trees.mapped(trees.first_known(given), frame.level, made)
        return UNKNOWN if isinstance(first, Unknown) else made  # it may be a tree

    none: frozenset[str] = frozenset()
    kept = first.cls.leaf_names if isinstance(first, Obj) and isinstance(first.cls, UserClass) else none
    results: dict[object, Value] = {}
    for key, part in parts.items():
        if kept and key not in kept:
            results[key] = part
            continue
        beside = [each.get(key, UNKNOWN) if each is not None else UNKNOWN for each in found[1:]]
        results[key] = _of_each(interp, frame, [present(each) for each in (part, *beside)], leaves)
    if isinstance(first, Seq):
        return Seq(first.type, results.values(), frame.level, node=leaves.node)
    if isinstance(first, Obj):
        named = {str(key): value for key, value in results.items()}
        return instantiate(interp, frame, first.cls, Arguments(leaves.node, [], named, []), leaves.node)
    return DictVal([(Const(key), value) for key, value in results.items()], frame.level, node=leaves.node)
