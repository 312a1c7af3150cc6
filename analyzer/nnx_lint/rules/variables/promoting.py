"""Fixes that change what an attribute holds: an array or a number becomes a Variable, a Variable one of another type.

Attributes are known by their names here, in one file, so these fixes are unsafe. Invariants: the attribute is assigned
once, by the constructor of one class, and every other place that names it reads or writes its value.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.classes import UserClass
from nnx_lint.model.values import Array, HostArray, Obj
from nnx_lint.rules.edits import insert, replace, unsafe, wrap
from nnx_lint.rules.program import ancestors, canonical_of, enclosing
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax.walk import walk

if TYPE_CHECKING:
    from nnx_lint.diagnostics import Edit, Fix
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Assignment, Attr


def as_variable(first: Assignment, module: Module, name: str) -> Fix | None:
    """Make an attribute that a program changes a Variable; a number only where nothing but the changes reads it."""
    source, made, variable = module.source, first.value_node, spelled("nnx.Variable", module)
    if first.module is not module or made is None or variable is None:
        return None
    edits = list(_as_value(module, made, variable) or ())
    uses = [node for node in walk(module.tree) if isinstance(node, ast.Attribute) and node.attr == name]
    written = [node for node in uses if isinstance(node.ctx, ast.Store)]
    owners = {enclosing(module, node, ast.ClassDef) for node in written} - {None}
    if not edits or len(owners) > 1 or len(written) < 2:
        return None
    for node in uses:
        statement = enclosing(module, node, ast.stmt)
        if statement is first.node:
            continue
        parent = next(ancestors(module, node), None)
        changed = isinstance(parent, (ast.Assign, ast.AugAssign)) and parent.value is not node
        changes = isinstance(statement, (ast.Assign, ast.AugAssign)) and _writes(statement, name)
        if not (changed or (isinstance(node.ctx, ast.Load) and (changes or not isinstance(made, ast.Constant)))):
            return None
        edits += insert(source.span(node).end, "[...]")
    return unsafe(f"Make `{name}` a Variable", tuple(edits))


def _as_value(module: Module, made: ast.expr, variable: str) -> tuple[Edit, ...] | None:
    if not isinstance(made, ast.Constant):
        return wrap(module.source, made, variable)
    array = spelled("jax.numpy.array", module)
    return replace(module.source, made, f"{variable}({array}({module.source.segment(made)}))") if array else None


def _writes(statement: ast.Assign | ast.AugAssign, name: str) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return any(isinstance(target, ast.Attribute) and target.attr == name for target in targets)


def as_params(obj: Obj, module: Module) -> Fix | None:
    """Make the arrays that an object holds Params, where its constructor assigns them."""
    name = spelled("nnx.Param", module)
    edits: list[Edit] = []
    if name is None or not isinstance(obj.cls, UserClass) or obj.cls.module is not module:
        return None
    for each in attribute_names(obj):
        attr = attribute_of(obj, each)
        if attr is None or not isinstance(attr.value, Array) or isinstance(attr.value, HostArray):
            continue
        made = assigned_value(attr, module)
        if made is None:
            return None
        edits += wrap(module.source, made, name)
    return unsafe(f"Wrap the arrays in `{name}(...)`", tuple(edits)) if edits else None


def assigned_value(attr: Attr, module: Module) -> ast.expr | None:
    """The expression that an attribute gets its value from, where one statement of a file assigns it."""
    first = attr.first
    if (
        first is None
        or len(attr.assignments) > 1
        or first.module is not module
        or not isinstance(first.node, ast.Assign)
    ):
        return None
    return first.value_node


def as_plain_variable(variable: Obj, module: Module) -> Fix | None:
    """Make a Variable of no special type where a Param is made."""
    made, name = variable.origin, spelled("nnx.Variable", module)
    call = made[1] if made is not None and made[0] is module else None
    if name is None or not isinstance(call, ast.Call) or canonical_of(module.env, call.func) != "nnx.Param":
        return None
    return unsafe(f"Make it an `{name}`", replace(module.source, call.func, name))
