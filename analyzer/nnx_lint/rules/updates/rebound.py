"""Compiled functions that go on with the old value of a name or an attribute that is bound anew (NNX220).

Objects that change are told by what runs (:mod:`~nnx_lint.rules.updates.stale`); numbers and arrays do not change, but
what a name stands for does: in a loop that calls the function, or in a method of the object that the function keeps.

Invariants: a name is one of the scope around the function, which defines the function outside of the loop; a new value
counts only if it certainly differs from round to round: it is computed from the old one, from what the loop runs over,
or from the number of elements of a list that grows.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.crossing import kept_positions
from nnx_lint.model.events import ClassDefined, TransformApplied
from nnx_lint.model.expressions import text_of
from nnx_lint.model.unions import options
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges, related
from nnx_lint.rules.bindings import bound_to, names_of_first, pairs_of
from nnx_lint.rules.program import (
    FUNCTIONS,
    STATEMENT_LOOPS,
    binds,
    calls_in,
    canonical_of,
    enclosing,
    own_nodes,
    reads_of,
)
from nnx_lint.rules.traces.methods import transformed_methods
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Set

    from nnx_lint.model.classes import UserClass
    from nnx_lint.model.modules import Module

# -- names -------------------------------------------------------------------------------------------------------------


@judges(rules.STALE_CAPTURE, TransformApplied)
def name_bound_anew(event: TransformApplied, report: Reporter) -> None:
    applied, func, module = event.applied, event.func, event.frame.module
    if not applied.row.cached or not isinstance(func, FuncVal) or func.module is not module or func.wraps is not None:
        return
    scope = enclosing(module, func.node, *FUNCTIONS, ast.Module)
    called = _name_of(module, event.node, func.node)
    if scope is None or called is None:
        return
    loops = [node for node in own_nodes(scope) if isinstance(node, STATEMENT_LOOPS) and func.node not in walk(node)]
    for loop in loops:
        body = [node for statement in loop.body for node in walk(statement)]
        if not any(isinstance(node, ast.Call) and is_name(node.func, called) for node in body):
            continue
        if event.node in body:
            continue  # it is compiled anew in each round
        for name, place in _varying(loop).items():
            read = next(iter(reads_of(func.node, name)), None)
            if read is None or binds(func.node, name) or _is_tracked(event, name):
                continue
            where = (
                related(applied.module, applied.node, f"`{applied.text}` is applied here"),
                related(module, place, f"`{name}` is changed here"),
            )
            report(module, read, name=name, transform=applied.text, related=where)
            return


def _name_of(module: Module, applied: ast.AST, func: ast.AST) -> str | None:
    """The name that a function under a transform is bound to."""
    if isinstance(func, ast.FunctionDef) and applied in func.decorator_list:
        return func.name
    bound = bound_to(module, applied)
    return bound.target.id if bound is not None and isinstance(bound.target, ast.Name) else None


def _is_one_of(node: ast.AST, names: Set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _is_tracked(event: TransformApplied, name: str) -> bool:
    """Whether a name stands for an object, which NNX may hand over at each call."""
    found = event.frame.env.lookup(name)
    return found is not None and any(isinstance(item, Obj) for item in options(found[1]))


def _varying(loop: ast.For | ast.AsyncFor | ast.While) -> dict[str, ast.AST]:
    """The names that certainly stand for something else in each round of a loop, with the places that bind them."""
    found: dict[str, ast.AST] = {}
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        names = (node for node in walk(loop.target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        found = {node.id: loop.target for node in names}
    grown = {name for statement in loop.body if (name := _grown(statement))}
    for statement in loop.body:  # what a branch binds, it may not bind in the next round
        nodes = walk(statement)
        read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        counted = {name for node in nodes if grown and (name := _counted(node)) in grown}
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            found.setdefault(statement.target.id, statement)
        elif isinstance(statement, ast.Assign):
            names = (node for each in statement.targets for node in walk(each) if isinstance(node, ast.Name))
            bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
            if counted or not read.isdisjoint(bound | found.keys()):
                found = {**dict.fromkeys(bound, statement), **found}
    return found


def _grown(statement: ast.stmt) -> str:
    """The name of a list that a statement puts something into."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    func = call.func if isinstance(call, ast.Call) else None
    grows = isinstance(func, ast.Attribute) and func.attr in {"append", "extend"} and isinstance(func.value, ast.Name)
    return func.value.id if grows and isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) else ""


def _counted(node: ast.AST) -> str:
    """The name of what ``len(name)`` counts."""
    counted = node.args[0] if isinstance(node, ast.Call) and is_name(node.func, "len") and node.args else None
    return counted.id if isinstance(counted, ast.Name) else ""


# -- attributes --------------------------------------------------------------------------------------------------------


@judges(rules.STALE_CAPTURE, ClassDefined)
def attribute_bound_anew(event: ClassDefined, report: Reporter) -> None:
    cls = event.cls
    if cls.own_dataclass or not {"__hash__", "__eq__"}.isdisjoint(cls.methods):
        return
    changed: dict[str, tuple[str, ast.AST]] | None = None
    for name, func, text, applied in _keeping_self(cls):
        changed = _changed(cls) if changed is None else changed
        names = names_of_first(func.node)
        for node in walk(func.node):
            if not isinstance(node, ast.Attribute) or not _is_one_of(node.value, names) or node.attr not in changed:
                continue
            method, place = changed[node.attr]
            attr = cls.model.attrs.get(node.attr) if cls.model is not None else None
            if method == name or (attr is not None and any(isinstance(item, Obj) for item in options(attr.value))):
                continue
            where = (
                related(cls.module, applied, f"`{text}` is applied here"),
                related(cls.module, place, f"`self.{node.attr}` is changed here"),
            )
            report(cls.module, node, name=text_of(node), transform=text, related=where)
            break


def _keeping_self(cls: UserClass) -> Iterator[tuple[str, FuncVal, str, ast.AST]]:
    """The methods that are compiled once with the object as a constant: each with its name, and the transform."""
    for name, applied, func in transformed_methods(cls):
        if applied.row.cached and func.node.args.args and 0 in kept_positions(applied, func, 1):
            yield name, func, applied.text, applied.node
    for maker in cls.node.body:
        for call in calls_in(maker) if isinstance(maker, ast.FunctionDef) and maker.name in CONSTRUCTORS else ():
            given = call.args[0] if call.args else None
            if not isinstance(given, ast.Attribute) or not is_name(given.value, "self"):
                continue
            method, compiles = cls.methods.get(given.attr), canonical_of(cls.module.env, call.func) == "jax.jit"
            if compiles and isinstance(method, FuncVal) and method.node.args.args and not method.decorators:
                yield method.name, method, ast.unparse(call.func), call


CONSTRUCTORS = frozenset({"__init__", "__post_init__", "setup"})
"""Methods that run once for an object, before all others."""


def _changed(cls: UserClass) -> dict[str, tuple[str, ast.AST]]:
    """The attributes of ``self`` to which a method other than the constructor gives a value made of the old one."""
    found: dict[str, tuple[str, ast.AST]] = {}
    for item in cls.node.body:
        if not isinstance(item, ast.FunctionDef) or item.name in CONSTRUCTORS:
            continue
        names = names_of_first(item)
        for node in walk(item):
            for target in _rebound(node):
                if isinstance(target, ast.Attribute) and _is_one_of(target.value, names):
                    found.setdefault(target.attr, (item.name, node))
    return found


def _rebound(statement: ast.AST) -> Iterable[ast.expr]:
    """What a statement gives a value that is made of the old one."""
    if isinstance(statement, ast.AugAssign):
        return [statement.target]
    return [
        target for target, value in pairs_of(statement) if isinstance(target, ast.Attribute) and _reads(value, target)
    ]


def _reads(value: ast.expr, attribute: ast.Attribute) -> bool:
    """Whether an expression has the same attribute in it."""
    text = text_of(attribute)
    return any(isinstance(node, ast.Attribute) and text_of(node) == text for node in walk(value))
