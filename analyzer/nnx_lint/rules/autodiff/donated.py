"""Arguments that a compiled function was given to keep, and that the program uses afterwards (NNX467).

Invariants: a use is one below the call, in the same block, before anything binds the name anew; an attribute is
followed as far as no method of its object runs, which may bind it.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.crossing import literal_positions
from nnx_lint.model.expressions import text_of
from nnx_lint.model.states import OptStateVal, StateVal
from nnx_lint.model.values import Array, Obj, Value
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.autodiff.tracing import called, calls_traced, literal_names
from nnx_lint.rules.bindings import Assignment, pairs_of
from nnx_lint.rules.callees import TRANSFORMED
from nnx_lint.rules.costs.retracing import innermost_loop
from nnx_lint.rules.lifting import on_nnx
from nnx_lint.rules.program import (
    FUNCTIONS,
    STATEMENT_LOOPS,
    ancestors,
    block_of,
    calls_in,
    enclosing,
    own_nodes,
    statement_of,
)
from nnx_lint.rules.traces.mends import COMPILING
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import assigned_names, is_name, occurrences
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import autodiff as rules

if TYPE_CHECKING:
    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module


@judges_calls(rules.DONATED_THEN_USED, *TRANSFORMED, when=calls_traced)
def donated_then_used(event: Called, report: Reporter) -> None:
    found = called(event)
    if found is None or found.applied.row.name not in COMPILING or event.frame.scope:
        return  # under a trace, JAX donates nothing
    applied, func, shift, filled = found
    module = event.frame.module
    here = statement_of(module, event.node)
    for place in donated(applied, func, filled):
        index = place - shift
        node = event.nodes[index] if 0 <= index < len(event.nodes) else None
        value = event.args[index] if node is not None else None
        if not isinstance(node, (ast.Name, ast.Attribute)) or here is None or not _is_lost(applied, value):
            continue
        if isinstance(node, ast.Attribute) and not isinstance(node.value, ast.Name):
            continue
        use = _use_after(module, here, node)
        if use is None and isinstance(node, ast.Name):
            use = node if _is_given_again(event.frame, node) else _use_of_alias(module, here, node.id)
        if use is not None and _is_lost(applied, _part_read(module, use, value)):
            also = (related(module, event.node, "donated here"),)
            fix = partial(on_nnx, applied, module) if isinstance(value, Obj) and value.cls.tracked else None
            report(module, use, fix=fix, name=text_of(use), function=event.name, related=also)
            return


def donated(applied: TransformVal, func: Value, filled: int = 0) -> list[int]:
    """The positions of the parameters that are donated by number or, of a function that is known, by name.

    The transform does not count those that were ``filled`` before it.
    """
    numbered = literal_positions(applied.keywords.get("donate_argnums"), default=()) or ()
    given = applied.keywords.get("donate_argnames")
    parameters = syntax_parameters.positional_names(func.node.args) if isinstance(func, FuncVal) else []
    named = (literal_names(given) if given is not None else None) or ()
    return [*(place + filled for place in numbered), *(parameters.index(name) for name in named if name in parameters)]


def _is_lost(applied: TransformVal, value: Value | None) -> bool:
    """Whether donating a value leaves the caller with deleted arrays: `nnx.jit` writes new ones back into objects."""
    if isinstance(value, Obj) and isinstance(value.cls, UserClass) and value.cls.renewed_by:
        return any(_is_lost(applied, item) for item in _fields(value).values())
    if isinstance(value, Obj):
        return applied.row.name == "jax.jit" and (value.cls.is_pytree or value.cls.is_variable)
    if isinstance(value, (StateVal, OptStateVal)):
        return applied.row.name == "jax.jit"
    if isinstance(value, (Seq, DictVal)):
        items = [item for _, item in value.items] if isinstance(value, DictVal) else value.items
        return value.exact and any(_is_lost(applied, item) for item in items)
    return isinstance(value, Array)


def _fields(record: Obj) -> dict[str, Value]:
    """What is in the fields of a record."""
    return {**(record.args or {}), **{name: attr.value for name, attr in record.attrs.items()}}


def _part_read(module: Module, use: ast.AST, value: Value | None) -> Value | None:
    """What a place reads of a value that it names: an item or a field, or all of it; of what is asked for something
    that is still there, such as a shape or the keys of a dict, nothing.
    """
    record = isinstance(value, Obj) and isinstance(value.cls, UserClass) and bool(value.cls.renewed_by)
    if not record and not isinstance(value, (Seq, DictVal)):
        return value
    part = use
    for outer in ancestors(module, use):
        if isinstance(outer, ast.Attribute) and isinstance(value, Obj) and part is use:
            value = _fields(value).get(outer.attr)
        elif isinstance(outer, ast.Attribute):
            return None
        elif not isinstance(outer, ast.Subscript) or outer.value is not part:
            return value
        part = outer
    return value


def _is_given_again(frame: Frame, node: ast.Name) -> bool:
    """Whether each round of a loop passes what was there before the loop."""
    loop = innermost_loop(frame, node)
    return loop is not None and node.id not in assigned_names([loop])


Named = ast.Name | ast.Attribute


def _use_after(module: Module, statement: ast.stmt, given: Named) -> Named | None:
    """The first use of a name or an attribute after a statement, in the same block, before anything binds it anew, as a
    method of the object may do.
    """
    if any(isinstance(node.ctx, ast.Store) for node in _places(statement, given)):
        return None
    block = block_of(module, statement)
    if isinstance(statement, COMPOUND):
        return None
    owner, given_name = (root_of(given), "") if isinstance(given, ast.Attribute) else (None, given.id)
    for later in block[block.index(statement) + 1 :]:
        names = _places(later, given)
        stored = any(isinstance(node.ctx, (ast.Store, ast.Del)) for node in names)
        loads = [node for node in names if isinstance(node.ctx, ast.Load)]
        if stored or (isinstance(later, (ast.FunctionDef, ast.ClassDef)) and occurrences(later, owner or given_name)):
            return None
        calls = calls_in(later) if owner is not None else ()
        reached = owner is not None and (_names_method(later, owner) or any(_reaches(call, owner) for call in calls))
        if reached or (owner is not None and isinstance(later, COMPOUND) and not isinstance(later, ast.Return)):
            return None
        for use in loads:
            if not _is_harmless(module, use):
                return use
    return None


def _places(scope: ast.AST, given: Named) -> list[Named]:
    """Where a name or an attribute of that object stands, be it read or bound."""
    if isinstance(given, ast.Name):
        return [*occurrences(scope, given.id)]
    text = ast.unparse(given)
    named = (node for node in walk(scope) if isinstance(node, ast.Attribute) and node.attr == given.attr)
    return [node for node in named if ast.unparse(node) == text]


def _names_method(statement: ast.stmt, owner: str) -> bool:
    """Whether a statement gives a name to what may be a method of an object: ``keep = self.keep``."""
    values = (value for _, value in pairs_of(statement))
    return any(isinstance(value, ast.Attribute) and root_of(value) == owner for value in values)


def _reaches(call: ast.Call, owner: str) -> bool:
    """Whether a call is one of a method of an object, or gets the object."""
    return root_of(call.func) == owner or any(is_name(node, owner) for node in call.args)


def _use_of_alias(
    module: Module, statement: ast.stmt, name: str, known: frozenset[str] = frozenset()
) -> ast.Name | None:
    """The first use of another name that means what the name meant before a statement, or of another name for that one:
    after the statement, or after its loop.
    """
    scope: ast.AST = enclosing(module, statement, *FUNCTIONS) or module.tree
    around = {id(outer) for outer in (statement, *ancestors(module, statement))}
    names = [node for node in own_nodes(scope) if isinstance(node, ast.Name)]
    if isinstance(statement, COMPOUND):
        return None
    assignments = (made for made in own_nodes(scope) if isinstance(made, Assignment))
    for made, target, value in ((item, *pair) for item in assignments for pair in pairs_of(item)):
        if not isinstance(target, ast.Name) or not isinstance(value, ast.Name):
            continue
        between = range(made.lineno + 1, statement.lineno)
        anew = any(
            node.id in {value.id, target.id} and node.lineno in between and not isinstance(node.ctx, ast.Load)
            for node in names
        )
        before = made.lineno < statement.lineno and any(id(each) in around for each in block_of(module, made))
        alias = target.id if value.id == name else value.id
        if name in {value.id, target.id} and alias not in {name, *known} and before and not anew:
            use = _first_use(module, statement, alias)
            loop = next(ancestors(module, statement), None)
            if use is None and isinstance(loop, STATEMENT_LOOPS) and alias not in assigned_names([loop]):
                use = _first_use(module, loop, alias)
            use = use or _use_of_alias(module, statement, alias, known | {name})
            if use is not None:
                return use
    return None


def _first_use(module: Module, statement: ast.stmt, name: str) -> ast.Name | None:
    """What uses a name after a statement, before a statement binds it anew, or in that one."""
    block = block_of(module, statement)
    for later in block[block.index(statement) + 1 :]:
        names = occurrences(later, name)
        if names and isinstance(later, (ast.FunctionDef, ast.ClassDef)):
            return None
        plain = isinstance(later, (ast.Assign, ast.AnnAssign)) or all(isinstance(node.ctx, ast.Load) for node in names)
        use = next((node for node in names if isinstance(node.ctx, ast.Load) and not _is_harmless(module, node)), None)
        if use is not None or any(not isinstance(node.ctx, ast.Load) for node in names):
            return use if plain else None
    return None


COMPOUND = (ast.Return, ast.For, ast.While, ast.If, ast.With, ast.Try)
"""Statements after which something else comes than what stands below them."""


def _is_harmless(module: Module, use: ast.AST) -> bool:
    """Whether a use asks for nothing that is gone: a shape, a type, an identity."""
    parent = next(ancestors(module, use), None)
    if isinstance(parent, ast.Attribute) and parent.attr in {
        "shape",
        "dtype",
        "ndim",
        "size",
        "is_deleted",
        "sharding",
    }:
        return True
    if (
        isinstance(parent, ast.Call)
        and isinstance(parent.func, ast.Name)
        and parent.func.id in {"type", "isinstance", "len", "id"}
    ):
        return True
    return enclosing(module, use, ast.Lambda) is not None
