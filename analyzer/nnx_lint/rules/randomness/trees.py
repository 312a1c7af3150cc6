"""Arithmetic over States that hold random keys (NNX535): averages of weights, casts, norms.

A State without a filter has the keys and counters of streams in it, those of every ``nnx.Dropout``, and a key cannot be
added, multiplied or cast.

Invariants: a key is meant only where the object certainly holds one and the filter certainly takes it; a function is
judged only where it treats all leaves alike, so nothing is said of one that has a condition in it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.classes import ClassBase
from nnx_lint.model.containers import PureDict
from nnx_lint.model.expressions import text_of
from nnx_lint.model.modules import Env
from nnx_lint.model.states import StateVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import Ext, Obj, Value
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import bound_to
from nnx_lint.rules.filters.coverage import leaves_of, path_text
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    assigned_in,
    canonical_of,
    enclosing,
    given,
    is_tried,
    parameters_in,
    reads_of,
)
from nnx_lint.rules.repeating import argument
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import rngs as rules
from nnx_rules.transforms import TREE_MAPS

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_rules._filter_logic import Leaf

COMPUTING = frozenset(
    f"jax.numpy.{name}"
    for name in (
        *("abs", "add", "divide", "exp", "linalg.norm", "log", "mean", "minimum", "maximum", "multiply", "negative"),
        *("sqrt", "square", "subtract", "sum"),
    )
) | {"numpy.array", "numpy.asarray"}
"""Functions of numbers, which fail for keys, as numpy does, which has none."""

METHODS = frozenset({"astype", "max", "mean", "min", "std", "sum", "var"})
"""Methods of arrays that fail for keys."""


@judges_calls(rules.KEYS_IN_ARITHMETIC, *TREE_MAPS)
def keys_in_arithmetic(event: Called, report: Reporter) -> None:
    args, module = given(event), event.frame.module
    first, trees = args.get(0, "f"), [args.get(1, "tree"), *args.positional[2:]]
    func = first.func if isinstance(first, BoundMethod) else first
    if args.starred or "is_leaf" in args.keywords or is_tried(module, event.node):
        return
    if isinstance(func, Ext):
        names, body = [""] * len(trees), None
    elif isinstance(func, FuncVal) and not _chooses(func.node):
        names, body = syntax_parameters.positional_names(func.node.args)[isinstance(first, BoundMethod) :], func
    else:
        return
    for position, (tree, name) in enumerate(zip(trees, names, strict=False), start=1):
        node = args.node_of(position, "tree") or event.node
        key = _key_in(tree, node, event) if tree is not None else None
        done = _computed(body, name) if body is not None else getattr(func, "name", None)
        if key is not None and done is not None and (body is not None or done in COMPUTING):
            report(module, node, name=text_of(node), path=path_text(key), done=done)
            return


def _chooses(func: ast.AST) -> bool:
    """Whether a function may treat some leaves in another way."""
    return any(isinstance(node, (ast.If, ast.IfExp, ast.BoolOp, ast.Try, ast.Match)) for node in walk(func))


def _is_untouched(frame: Frame, node: ast.AST | None) -> bool:
    """Whether nothing can have been taken out of a dict, or written into it: it is made here, or read here alone, and
    where a caller hands it over, there alone.
    """
    while isinstance(node, ast.Name):
        scope = enclosing(frame.module, node, *FUNCTIONS) or frame.module.tree
        if reads_of(scope, node.id) != [node]:
            return False
        if not parameters_in(scope)[node.id]:
            return True
        node, caller = argument(frame, node.id), frame.caller
        if caller is None:
            return False
        frame = caller
    return isinstance(node, ast.Call)


def _key_in(tree: Value, node: ast.AST, event: Called) -> Leaf | None:
    """A random key that certainly is a leaf of a tree."""
    tree = present(tree)
    if isinstance(tree, PureDict) and _is_untouched(event.frame, node):
        tree = present(tree.of)
    held = tree if isinstance(tree, (Obj, StateVal)) else None
    if held is None or (isinstance(held, Obj) and not held.cls.derives_from("nnx.Module")):
        return None
    kinds = ((leaf, leaf.type) for leaf in leaves_of(held, event.frame).leaves)
    return next((leaf for leaf, kind in kinds if isinstance(kind, ClassBase) and kind.derives_from("nnx.RngKey")), None)


LEAVES = ("jax.tree.leaves", "jax.tree_util.tree_leaves", "jax.tree_leaves")

NORMS = tuple(
    f"optax.{name}" for name in ("global_norm", "tree.norm", "tree_utils.tree_l2_norm", "tree_utils.tree_norm")
)


FLAT = "nnx.to_flat_state"


@judges_calls(rules.KEYS_IN_ARITHMETIC, *LEAVES, FLAT)
def keys_among_leaves(event: Called, report: Reporter) -> None:
    """A loop or a comprehension that computes with each leaf."""
    args, module = given(event), event.frame.module
    tree, node = args.get(0, "tree"), _read_once(module, event.node)
    loop = next(ancestors(module, node), None)
    if isinstance(loop, ast.comprehension):
        whole = next(ancestors(module, loop), None)
        single = isinstance(whole, COMPREHENSIONS) and len(whole.generators) == 1 and not loop.ifs
    else:
        whole, single = loop, isinstance(loop, ast.For)
    if not single or whole is None or not isinstance(loop, (ast.comprehension, ast.For)) or loop.iter is not node:
        return
    pair = loop.target.elts if isinstance(loop.target, ast.Tuple) and event.subject == FLAT else []
    target = pair[1] if len(pair) == 2 else loop.target
    if not isinstance(target, ast.Name) or _chooses(whole) or "is_leaf" in args.keywords or is_tried(module, node):
        return
    where = args.node_of(0, "tree") or event.node
    key = _key_in(tree, where, event) if tree is not None else None
    done = _computed_in(module, event.frame.env, whole, target.id) if key is not None else None
    if key is not None and done is not None:
        report(module, where, name=text_of(where), path=path_text(key), done=done)


COMPREHENSIONS = (ast.DictComp, ast.GeneratorExp, ast.ListComp)


def _read_once(module: Module, node: ast.AST) -> ast.AST:
    """Where the value of an expression is used: in its place, or where the name is read that is bound to it alone."""
    bound = bound_to(module, node)
    target = bound.target if bound is not None else None
    scope = enclosing(module, node, *FUNCTIONS) or module.tree
    if not isinstance(target, ast.Name) or assigned_in(scope)[target.id] != 1:
        return node
    reads = reads_of(scope, target.id)
    return reads[0] if len(reads) == 1 else node


AVERAGES = {"optax.incremental_update": ("new_tensors", "old_tensors")}
"""Functions that compute with the leaves of several trees, and what they call these."""


@judges_calls(rules.KEYS_IN_ARITHMETIC, *NORMS, *AVERAGES)
def trees_of_keys(event: Called, report: Reporter) -> None:
    args, module = given(event), event.frame.module
    for position, name in enumerate(AVERAGES.get(event.subject or "", ("tree",))):
        tree, node = args.get(position, name), args.node_of(position, name)
        key = _key_in(tree, node, event) if tree is not None and node is not None else None
        if key is not None and node is not None and not is_tried(module, event.node):
            report(module, node, name=text_of(node), path=path_text(key), done=event.name)
            return


def _computed(func: FuncVal, name: str) -> str | None:
    """What a function computes with a leaf that it has under a name."""
    return None if assigned_in(func.node)[name] else _computed_in(func.module, func.env, func.node, name)


def _computed_in(module: Module, env: object, scope: ast.AST, name: str) -> str | None:
    """What code computes with a leaf that it has under a name."""
    for read in reads_of(scope, name):
        node: ast.expr = read
        parent = next(ancestors(module, node), None)
        if isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Constant) and parent.slice.value is ...:
            node, parent = parent, next(ancestors(module, parent), None)  # the value of a Variable
        if isinstance(parent, (ast.BinOp, ast.UnaryOp)):
            return module.source.segment(parent)
        whole = next(ancestors(module, parent), None) if isinstance(parent, ast.Attribute) else None
        if isinstance(parent, ast.Attribute) and parent.attr in METHODS and isinstance(whole, ast.Call):
            return module.source.segment(whole) if whole.func is parent else None
        if isinstance(parent, ast.Call) and parent.args[:1] == [node] and _computes(env, parent.func):
            return module.source.segment(parent)
    return None


def _computes(env: object, node: ast.expr) -> bool:
    return isinstance(env, Env) and canonical_of(env, node) in COMPUTING
