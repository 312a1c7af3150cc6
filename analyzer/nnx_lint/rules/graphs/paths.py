"""Paths of JAX that are taken for strings (NNX366): ``"bias" in path`` in a function for ``tree_map_with_path``. And
keys of them that are asked for what they do not have: ``path[-1].key`` in a State, where the last one is a Variable's.

JAX says where a leaf stands by a tuple of keys: ``DictKey("linear")`` in a State, ``GetAttrKey("linear")`` in a module,
and one more for the array in a Variable. None of them is a string, equals one, or has its methods. The paths of NNX
(``nnx.to_flat_state``, filters) are strings and numbers: those are not meant here.

Invariants: only the path itself is judged, the first parameter of the function or the first target of the loop, and
only where its name is bound once; where the file registers trees with keys of its own, or asks what an element is,
nothing is said. What kind of key stands at a place is known where the tree certainly is a State or a module.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.expressions import text_of
from nnx_lint.model.modules import Env
from nnx_lint.model.states import StateVal, TransformationVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import target_of
from nnx_lint.rules.program import (
    ancestors,
    assigned_in,
    calls_in,
    canonical_of,
    defined_in,
    given,
    is_asked_for,
    is_chosen,
    is_tried,
    own_nodes,
    reads_of,
    scopes_around,
)
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name, occurrences
from nnx_lint.syntax.walk import walk
from nnx_rules.api import OPTIMIZERS
from nnx_rules.rules import graphs as rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Module

MAPS = ("jax.tree.map_with_path", "jax.tree_util.tree_map_with_path")
LISTS = ("jax.tree.leaves_with_path", "jax.tree_util.tree_leaves_with_path")
FLATTENED = ("jax.tree.flatten_with_path", "jax.tree_util.tree_flatten_with_path")

METHODS = frozenset({"casefold", "endswith", "find", "isdigit", "lower", "replace", "rsplit", "split", "startswith"})
"""Methods of strings."""

OWN_KEYS = "register_pytree_with_keys"
"""What gives trees keys of a project's own, which may be strings."""


@judges_calls(rules.KEY_PATH_AS_STRINGS, *MAPS)
def path_of_mapped_leaf(event: Called, report: Reporter) -> None:
    given_first = given(event).get(0, "f")
    func = given_first.func if isinstance(given_first, BoundMethod) else given_first
    if not isinstance(func, FuncVal) or OWN_KEYS in event.frame.module.source.text + func.module.source.text:
        return
    names = syntax_parameters.positional_names(func.node.args)[isinstance(given_first, BoundMethod) :]
    if names and not assigned_in(func.node)[names[0]]:
        _judge(func.module, reads_of(func.node, names[0]), _kind_of(event, 1), report)


@judges_calls(rules.KEY_PATH_AS_STRINGS, *OPTIMIZERS)
def path_of_masked_leaf(event: Called, report: Reporter) -> None:
    """A function for optax that makes a mask or labels of the parameters, which are a State."""
    tx = given(event).get(1, "tx")
    for _, _, value in tx.trees if isinstance(tx, TransformationVal) else ():
        given_first = present(value)
        of_object = isinstance(given_first, BoundMethod)
        func = given_first.func if isinstance(given_first, BoundMethod) else given_first
        if isinstance(func, FuncVal) and OWN_KEYS not in func.module.source.text:
            for mapped in _mapped_by(func, place=int(of_object)):
                names = syntax_parameters.positional_names(mapped.args)
                if names and not assigned_in(mapped)[names[0]]:
                    _judge(func.module, reads_of(mapped, names[0]), DICT_KEY, report)


def _mapped_by(func: FuncVal, place: int) -> Iterator[ast.FunctionDef | ast.Lambda]:
    """The functions that a function runs for each leaf of the tree which it gets there, written inside of it."""
    tree = next(iter(syntax_parameters.positional_names(func.node.args)[place:]), "")
    for call in calls_in(func.node):
        whole = len(call.args) == 2 and not call.keywords and is_name(call.args[1], tree)
        name = canonical_of(func.env, call.func) if isinstance(func.env, Env) else None
        if not whole or name is None or name not in MAPS:
            continue
        mapped = call.args[0]
        if isinstance(mapped, ast.Lambda):
            yield mapped
        elif isinstance(mapped, ast.Name) and defined_in(func.node)[mapped.id] == 1:
            inner = (item for item in own_nodes(func.node) if isinstance(item, ast.FunctionDef))
            yield from (item for item in inner if item.name == mapped.id)


@judges_calls(rules.KEY_PATH_AS_STRINGS, *LISTS, *FLATTENED)
def path_of_listed_leaf(event: Called, report: Reporter) -> None:
    module = event.frame.module
    if OWN_KEYS in module.source.text:
        return
    for loop, target in _loops(module, event.node, flattened=event.subject in FLATTENED):
        first = target.elts[0] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else None
        names = [node for node in walk(loop) if isinstance(node, ast.Name)]
        named = [node for node in names if isinstance(first, ast.Name) and node.id == first.id]
        reads = [node for node in named if isinstance(node.ctx, ast.Load)]
        if len(named) == len(reads) + 1:
            _judge(module, reads, _kind_of(event, 0), report)


def _loops(module: Module, call: ast.AST, *, flattened: bool) -> Iterator[tuple[ast.AST, ast.expr]]:
    """The loops over the pairs that a call gives, or over a name that has them, with what they assign."""
    parent = next(ancestors(module, call), None)
    if not flattened:
        yield from _loop_over(module, call)
    elif isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Constant) and parent.slice.value == 0:
        yield from _loop_over(module, parent)
    elif isinstance(target := target_of(module, call), ast.Tuple) and target.elts:
        named, scope = target.elts[0], scopes_around(module, call)[0]
        if isinstance(named, ast.Name) and assigned_in(scope)[named.id] == 1:
            for node in own_nodes(scope):
                if is_name(node, named.id) and isinstance(node.ctx, ast.Load):
                    yield from _loop_over(module, node)


def _loop_over(module: Module, node: ast.AST) -> Iterator[tuple[ast.AST, ast.expr]]:
    around = ancestors(module, node)
    parent = next(around, None)
    counted = isinstance(parent, ast.Call) and is_name(parent.func, "enumerate")
    if counted and isinstance(parent, ast.Call) and parent.args[0] is node:
        for loop, target in _loop_over(module, parent):
            if isinstance(target, ast.Tuple) and len(target.elts) == 2:
                yield loop, target.elts[1]
    elif isinstance(parent, ast.comprehension) and parent.iter is node:
        whole = next(around, None)
        if whole is not None:
            yield whole, parent.target
    elif isinstance(parent, ast.For) and parent.iter is node:
        yield parent, parent.target


DICT_KEY, ATTRIBUTE_KEY = "DictKey", "GetAttrKey"

NAMED_BY = {DICT_KEY: "key", ATTRIBUTE_KEY: "name"}
"""The attribute in which a key holds what it is called."""


def _kind_of(event: Called, place: int) -> str | None:
    """The keys with which the paths of a tree begin, all of whose leaves are the arrays in Variables."""
    args = given(event)
    tree = present(args.get(place, "tree") or UNKNOWN)
    if args.starred or "is_leaf" in args.keywords or len(args.positional) > place + 1:
        return None
    if isinstance(tree, StateVal):
        return DICT_KEY if isinstance(present(tree.of), Obj) else None
    return ATTRIBUTE_KEY if isinstance(tree, Obj) and tree.cls.derives_from("nnx.Module") else None


def _judge(module: Module, reads: Iterable[ast.Name], kind: str | None, report: Reporter) -> None:
    """Look at each use of a path."""
    for node in reads:
        found = _misused(module, node)
        held = "and no strings"
        if found is None and kind is not None:
            found = _asked_of_other(module, node, kind)
            held = "and the last one is `GetAttrKey(name='value')`, for the array in a Variable"
        if found is not None and not is_tried(module, node) and not is_asked_for(module, node):
            place, problem = found
            first = f"{kind or DICT_KEY}({NAMED_BY[kind or DICT_KEY]}='linear')"
            problem = f"`{module.source.segment(place)}` {problem}"
            report(module, place, problem=problem, path=node.id, first=first, held=held)


def _asked_of_other(module: Module, node: ast.Name, kind: str) -> tuple[ast.expr, str] | None:
    """Where a key of a path is asked for what only another kind of key has, and what comes of it."""
    parent = next(ancestors(module, node), None)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        key = {"-1": ATTRIBUTE_KEY, "0": kind}.get(text_of(parent.slice))
        return _asked(module, parent, key) if key is not None else None
    for loop, target in _loop_over(module, node):  # the last key is among them
        named = occurrences(loop, target.id) if isinstance(target, ast.Name) else []
        once = sum(not isinstance(item.ctx, ast.Load) for item in named) == 1
        chosen = isinstance(loop, ast.For) or any(part.ifs for part in getattr(loop, "generators", ()))
        reads = [item for item in named if isinstance(item.ctx, ast.Load) and not is_asked_for(module, item)]
        if once and not chosen and kind == DICT_KEY:
            found = (_asked(module, item, ATTRIBUTE_KEY) for item in reads if not is_chosen(module, item))
            return next((each for each in found if each is not None), None)
    return None


def _asked(module: Module, element: ast.expr, kind: str) -> tuple[ast.expr, str] | None:
    """A key of a certain kind that is asked for the name of another kind."""
    asked = next(ancestors(module, element), None)
    named = isinstance(asked, ast.Attribute) and asked.value is element and asked.attr in NAMED_BY.values()
    return (asked, "fails") if isinstance(asked, ast.Attribute) and named and asked.attr != NAMED_BY[kind] else None


def _misused(module: Module, node: ast.Name) -> tuple[ast.expr, str] | None:
    """Where a path, or an element of it, is used as only strings can be, and what comes of it."""
    parent = next(ancestors(module, node), None)
    if isinstance(parent, ast.Compare) and len(parent.ops) == 1:
        return _whole_compared(parent, node)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        if not isinstance(parent.slice, ast.Slice):
            return _element_misused(module, parent)
        outer = next(ancestors(module, parent), None)
        return _whole_compared(outer, parent) if isinstance(outer, ast.Compare) and len(outer.ops) == 1 else None
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.args == [node]:
        joins = parent.func.attr == "join" and _is_text(parent.func.value)
        return (parent, "fails") if joins else None
    for loop, target in _loop_over(module, node):
        named = occurrences(loop, target.id) if isinstance(target, ast.Name) else []
        reads = [item for item in named if isinstance(item.ctx, ast.Load) and not is_asked_for(module, item)]
        if sum(not isinstance(item.ctx, ast.Load) for item in named) == 1:
            return next((found for item in reads if (found := _element_misused(module, item)) is not None), None)
    return None


def _whole_compared(compare: ast.Compare, path: ast.expr) -> tuple[ast.expr, str] | None:
    """A string looked for in a path, or a path compared with one of strings."""
    operator, right = compare.ops[0], compare.comparators[0]
    if isinstance(operator, (ast.In, ast.NotIn)):
        wrong = right is path and _is_text(compare.left)
    else:
        other = compare.left if right is path else right
        items = other.elts if isinstance(other, (ast.Tuple, ast.List)) else []
        wrong = isinstance(operator, (ast.Eq, ast.NotEq)) and any(map(_is_text, items))
    return (compare, _truth(operator)) if wrong else None


def _element_misused(module: Module, element: ast.expr) -> tuple[ast.expr, str] | None:
    """An element of a path that is compared with strings, or asked for what they have."""
    parent = next(ancestors(module, element), None)
    if isinstance(parent, ast.Attribute) and parent.attr in METHODS:
        return parent, "fails"
    if not isinstance(parent, ast.Compare) or len(parent.ops) != 1:
        return None
    operator, right = parent.ops[0], parent.comparators[0]
    if isinstance(operator, (ast.In, ast.NotIn)):
        if right is element:
            return (parent, "fails") if _is_text(parent.left) else None
        items = right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) else []
        return (parent, _truth(operator)) if items and all(map(_is_text, items)) else None
    other = parent.left if right is element else right
    return (parent, _truth(operator)) if isinstance(operator, (ast.Eq, ast.NotEq)) and _is_text(other) else None


def _truth(operator: ast.cmpop) -> str:
    return "is never true" if isinstance(operator, (ast.In, ast.Eq)) else "is always true"


def _is_text(node: ast.expr) -> bool:
    """Whether an expression certainly is a string."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
