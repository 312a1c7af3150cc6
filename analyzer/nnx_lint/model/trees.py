"""Trees: what functions that go through a tree hand to the functions that they are given, and what comes out.

Invariants: a function that is mapped over a tree gets leaves and never the tree itself; a leaf is known only where the
tree is a State or gradients: an array, or what a function made of each, or where the call stops there, a Variable; what
is made of gradients leaf by leaf belongs to the model that they are of.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import narrowing
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.containers import FlatSeq, PathDict, PureDict, Seq
from nnx_lint.model.modules import Env
from nnx_lint.model.states import GradientVal, PartVal, StateVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import NONE, SOME_VARIABLE, UNKNOWN, Array, Const, Obj, ParameterVal, Unknown, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter

    Handler = Callable[[Interpreter, Frame, Arguments, ast.AST, str], Value]


def leaf(interp: Interpreter, frame: Frame, tree: Value, is_leaf: Value | None) -> Value:
    """What a function gets that is called for the leaves of a tree."""
    tree = present(tree)
    if is_leaf is None:
        return tree if isinstance(tree, (Array, Const)) else _array_in(tree, frame.level)
    is_state = isinstance(tree, (StateVal, PartVal, GradientVal))
    return SOME_VARIABLE if is_state and _stops_at_variables(interp, frame, is_leaf) else UNKNOWN


def _array_in(tree: Value, level: int) -> Value:
    """A leaf of a State or of gradients: an array, unless a function has made something else of each."""
    if not isinstance(tree, (StateVal, GradientVal)):
        return UNKNOWN
    if tree.made is not None:
        return tree.made
    if isinstance(tree, GradientVal):
        return Array(level) if tree.like is None else UNKNOWN
    return Array(tree.level) if isinstance(tree.of, (Obj, ParameterVal)) else UNKNOWN


def _stops_at_variables(interp: Interpreter, frame: Frame, is_leaf: Value) -> bool:
    """Whether a function asks of its argument whether it is a Variable, and nothing else."""
    from nnx_lint.model.expressions import evaluate

    if not isinstance(is_leaf, FuncVal):
        return False
    test, parameters = is_leaf.expression, is_leaf.node.args.args
    if not isinstance(test, ast.Call) or not isinstance(test.func, ast.Name) or len(test.args) != 2:
        return False
    asked, wanted = test.args
    named = isinstance(asked, ast.Name) and len(parameters) == 1 and asked.id == parameters[0].arg
    if test.func.id != "isinstance" or not named or not isinstance(is_leaf.env, Env):
        return False
    return narrowing.are_variables(evaluate(interp, frame, wanted))


def first_known(given: Sequence[Value | None]) -> Value:
    """The tree that says what a map gives back: the first, or a State beside it where that is not known. What goes with
    a State leaf by leaf has its structure.
    """
    first = given[0] if given and given[0] is not None else UNKNOWN
    if isinstance(first, PartVal | GradientVal) or not isinstance(first, Unknown):
        return first
    return next((tree for tree in given[1:] if isinstance(tree, (StateVal, GradientVal))), first)


def mapped(tree: Value, level: int, made: Value, *, whole: bool = False) -> Value:
    """What a function of the leaves of a tree makes of the whole, where it makes this of each leaf.

    A State stays one, with its Variables, unless these are the leaves, which the function gets ``whole``.
    """
    tree = present(tree)
    is_leaf = isinstance(made, Array) or (isinstance(made, Const) and made.value is not None)
    made = made if is_leaf else UNKNOWN  # what is a tree itself has other leaves
    if isinstance(tree, StateVal) and not whole:
        state = tree.again(level)
        state.made = made
        return state
    if isinstance(tree, StateVal):
        return GradientVal(tree.of, tree, made=made)
    return GradientVal(tree.of, tree.like, made=made) if isinstance(tree, GradientVal) else UNKNOWN


def _leaves(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    found = leaf(interp, frame, args.get(0, "tree") or UNKNOWN, args.get(1, "is_leaf"))
    if name.endswith("with_path"):
        found = Seq("tuple", [Seq("tuple", [UNKNOWN], frame.level, exact=False), found], frame.level)
    return Seq("list", [found], frame.level, exact=False, node=node)


def _flat(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    return Seq("tuple", [_leaves(interp, frame, args, node, name), UNKNOWN], frame.level)


def map_state(interp: Interpreter, frame: Frame, func: Value, state: Value, node: ast.AST, name: str) -> Value:
    """Call a function for each path and Variable of a State."""
    from nnx_lint.model.calls import Arguments, invoke

    if isinstance(func, FuncVal):
        invoke(interp, frame, func, Arguments(node, [UNKNOWN, SOME_VARIABLE], {}, []), node, name)
    return mapped(state, frame.level, UNKNOWN)


def _map_state(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    return map_state(interp, frame, args.get(0) or UNKNOWN, args.get(1) or UNKNOWN, node, name)


def _map_with_path(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """Call a function for each path and leaf of a State, and of the trees beside it."""
    from nnx_lint.model.calls import Arguments, invoke

    func, given, is_leaf = args.get(0, "f"), args.positional[1:], args.keywords.get("is_leaf")
    tree = present(given[0]) if given and given[0] is not None else UNKNOWN
    if not isinstance(tree, StateVal) or args.starred:
        return UNKNOWN
    made: Value = UNKNOWN
    if isinstance(func, FuncVal):
        leaves = [leaf(interp, frame, each, is_leaf) if each is not None else UNKNOWN for each in given]
        made = invoke(interp, frame, func, Arguments(node, [UNKNOWN, *leaves], {}, []), node, name)
    return mapped(tree, frame.level, made, whole=is_leaf is not None)


def flat_state(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """A State as pairs of path and Variable; a module has no such form."""
    of = present(args.get(0) or UNKNOWN)
    return UNKNOWN if isinstance(of, Obj) else flattened(of, frame, node)


def flattened(of: Value, frame: Frame, node: ast.AST) -> Value:
    """The pairs that a State is made into."""
    pair = Seq("tuple", [Seq("tuple", [UNKNOWN], frame.level, exact=False), SOME_VARIABLE], frame.level)
    return FlatSeq(of, pair, frame.level, node)


def _applied(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """What functions of optax make of the State that comes first: a new one of the same object."""
    state = present(args.get(0, "params") or args.get(0, "new_tensors") or UNKNOWN)
    return StateVal(state.of, frame.level, state.wanted) if isinstance(state, StateVal) else UNKNOWN


def _flat_dict(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """A dict of dicts as one whose keys are paths."""
    given, joined = args.get(0, "xs"), args.get(2, "sep") or NONE
    known = isinstance(given, PureDict) and isinstance(joined, Const) and args.get(1, "keep_empty_nodes") is None
    separator = joined.value if isinstance(joined, Const) else None
    if not known or not isinstance(given, PureDict):
        return UNKNOWN
    return PathDict(given.of, Array(frame.level), frame.level, separator if isinstance(separator, str) else None)


HANDLERS: dict[str, Handler] = {
    "flax.traverse_util.flatten_dict": _flat_dict,
    **dict.fromkeys(("optax.apply_updates", "optax.incremental_update", "optax.periodic_update"), _applied),
    "nnx.to_flat_state": flat_state,
    "nnx.map_state": _map_state,
    **dict.fromkeys(("jax.tree.map_with_path", "jax.tree_util.tree_map_with_path"), _map_with_path),
    **dict.fromkeys(("jax.tree.leaves", "jax.tree_util.tree_leaves", "jax.tree_leaves"), _leaves),
    **dict.fromkeys(("jax.tree.leaves_with_path", "jax.tree_util.tree_leaves_with_path"), _leaves),
    **dict.fromkeys(("jax.tree.flatten", "jax.tree_util.tree_flatten", "jax.tree_flatten"), _flat),
    **dict.fromkeys(("jax.tree.flatten_with_path", "jax.tree_util.tree_flatten_with_path"), _flat),
}
