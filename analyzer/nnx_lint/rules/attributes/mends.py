"""The fixes of this family: which wrapper makes a value data, and where it goes.

A list becomes an ``nnx.List`` and a dict with plain string keys an ``nnx.Dict``: containers that JAX and NNX both see
into. Everything else, and a container that the program still changes through another name, stays what it is inside
``nnx.data(...)``.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Fix
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.unions import UnionVal
from nnx_lint.model.values import Const, Value
from nnx_lint.rules.edits import replace, wrap
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.places import begin
from nnx_lint.syntax.walk import walk
from nnx_rules.names import MAPPING_METHODS

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Env, Module

DICT_NAMES = MAPPING_METHODS | {"eval", "iter_children", "iter_modules", "perturb", "set_attributes", "sow", "train"}
"""Methods of ``nnx.Dict``, whose items are attributes: a key of this name would hide one."""


def as_data(module: Module, env: Env, node: ast.expr, value: Value, *, plain: bool = False) -> Fix | None:
    """Make the expression of a value data; with ``plain`` by ``nnx.data(...)`` whatever the value is."""
    canonical = "nnx.data" if plain else wrapper_of(node, value)
    name = spelled(canonical, module, env)
    if name is None:
        return None
    if canonical != "nnx.data" and is_empty(node):
        return Fix(f"Use `{name}()`", replace(module.source, node, f"{name}()"))
    if canonical == "nnx.List" and isinstance(node, ast.Call) and _is_builtin_list(env, node.func):
        return Fix(f"Use `{name}`", replace(module.source, node.func, name))
    return Fix(f"Wrap the value in `{name}(...)`", wrap(module.source, node, name))


def _is_builtin_list(env: Env, node: ast.expr) -> bool:
    return is_name(node, "list") and env.lookup("list") is None


def wrapper_of(node: ast.expr, value: Value) -> str:
    """The canonical name of what makes a container data."""
    if isinstance(value, UnionVal) and isinstance(node, ast.IfExp):
        names = {wrapper_of(arm, option) for arm, option in zip((node.body, node.orelse), value.options, strict=False)}
        return names.pop() if len(names) == 1 else "nnx.data"
    if isinstance(value, Seq) and value.type == "list" and not any(_at_index(fill.node) for fill in value.fills):
        return "nnx.List"
    if isinstance(value, DictVal) and _has_plain_keys(node, value):
        return "nnx.Dict"
    return "nnx.data"


def is_empty(node: ast.expr) -> bool:
    """Whether the expression is ``[]``, ``{}``, ``list()`` or ``dict()``."""
    if isinstance(node, ast.Call):
        return not node.args and not node.keywords
    return (isinstance(node, ast.List) and not node.elts) or (isinstance(node, ast.Dict) and not node.keys)


def _at_index(node: ast.AST) -> bool:
    # An element of an `nnx.List` has a status of its own: `[None] * n` filled by index would break it again.
    return isinstance(node, ast.Assign)


def _has_plain_keys(node: ast.expr, value: DictVal) -> bool:
    if isinstance(node, ast.DictComp) and isinstance(node.key, ast.JoinedStr):
        head = node.key.values[0] if node.key.values else None
        prefix = head.value if isinstance(head, ast.Constant) and isinstance(head.value, str) else ""
        return prefix.isidentifier() and not any(name.startswith(prefix) for name in DICT_NAMES)
    return all(
        isinstance(key, Const)
        and isinstance(key.value, str)
        and key.value.isidentifier()
        and not key.value.startswith("_")
        and key.value not in DICT_NAMES
        for key, _ in value.items
    )


def is_shared(frame: Frame, node: ast.expr) -> bool:
    """Whether the function still uses the container through a name of its own after this expression."""
    if not isinstance(node, ast.Name) or frame.func is None:
        return False
    place = begin(node)
    return any(is_name(other, node.id) and begin(other) > place for other in walk(frame.func.node))


def is_given(frame: Frame, node: ast.expr) -> bool:
    """Whether the expression is a parameter that this call was given: other calls may give other values."""
    if not isinstance(node, ast.Name) or frame.func is None or frame.call is None:
        return False
    arguments = frame.func.node.args
    return any(item.arg == node.id for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))
