"""Groups of things that programs call, for :func:`~nnx_lint.reporting.judges_calls`, and what a call calls."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal, Transformed
from nnx_lint.model.classes import UserClass, method_of
from nnx_lint.model.modules import Env
from nnx_lint.model.values import ClassVal, Obj
from nnx_lint.rules.program import canonical_of, resolved, straight
from nnx_lint.rules.traces.mends import COMPILING
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.parameters import positional_names
from nnx_rules import transforms

if TYPE_CHECKING:
    from nnx_lint.model.values import Value

TRANSFORMED = (Transformed, BoundMethod, Obj)
"""What may be a function under a transform: one, a method under one, and an instance with such a method."""

HARMLESS = frozenset({"donate_argnames", "donate_argnums"})
"""Options of a compilation that leave each argument what it is."""


def compiled_by(called: Transformed) -> Transformed:
    """What a function under a transform runs with the arguments as they are: what is within, where it only compiles."""
    while called.applied.row.name in COMPILING and isinstance(called.func, Transformed):
        if called.applied.keywords.keys() - HARMLESS:
            break
        called = called.func
    return called


def called_value(env: Env, func: ast.expr) -> Value | None:
    """What a call of an expression calls: what a name means, or the method of an object or of a class by name."""
    found = resolved(env, func)
    if found is not None or not isinstance(func, ast.Attribute):
        return found
    owner = resolved(env, func.value)
    cls = owner.cls if isinstance(owner, (Obj, ClassVal)) else None
    if not isinstance(cls, UserClass):
        return None
    method = cls.find(func.attr)
    return method[1] if method is not None else None


def maker_in(env: Env, call: ast.Call) -> ast.expr:
    """What makes the result of a call: also that of a partial or of a lambda which is called where it stands."""
    func = call.func
    if isinstance(func, ast.Call) and func.args and canonical_of(env, func.func) == "functools.partial":
        return func.args[0]
    return func.body.func if isinstance(func, ast.Lambda) and isinstance(func.body, ast.Call) else func


def of_object(func: FuncVal, node: ast.expr) -> Value | None:
    """What a method means by something of its object: what the object holds, or another method of it."""
    if isinstance(node, ast.Name) and isinstance(func.cls, UserClass):
        return func.cls.model if positional_names(func.node.args)[:1] == [node.id] else None
    owner = of_object(func, node.value) if isinstance(node, ast.Attribute) else None
    if not isinstance(node, ast.Attribute) or not isinstance(owner, Obj):
        return None
    attr, method = attribute_of(owner, node.attr), method_of(owner.cls, node.attr)
    if attr is not None or method is None:
        return attr.value if attr is not None else None
    return BoundMethod(owner, node.attr, method[1])


def working(func: FuncVal, depth: int = 3) -> FuncVal:
    """The function that does the work of one that only returns what that gives: ``return self._forward(x)``."""
    given = func.expression or _only_result(func.node)
    if not depth or not isinstance(given, ast.Call) or not isinstance(func.env, Env) or {*func.decorators} - STATIC:
        return func
    found = _own_method(func, given.func) or called_value(func.env, given.func)
    return working(found, depth - 1) if isinstance(found, FuncVal) and found.wraps is None else func


def _only_result(func: ast.AST) -> ast.expr | None:
    """What a function returns that has nothing else to do, whatever it asks before, or does that in."""
    body = func.body if isinstance(func, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    said = (each for each in straight(body) if not isinstance(getattr(each, "value", None), ast.Constant))
    statements = list(said)
    return statements[0].value if len(statements) == 1 and isinstance(statements[0], ast.Return) else None


def _own_method(func: FuncVal, node: ast.expr) -> Value | None:
    """The method that a method names as one of its own object."""
    if not isinstance(func.cls, UserClass) or not isinstance(node, ast.Attribute):
        return None
    own = next(iter(positional_names(func.node.args)), None)
    method = method_of(func.cls, node.attr) if own is not None and is_name(node.value, own) else None
    return method[1] if method is not None else None


STATIC = frozenset({"staticmethod"})


def is_of_only_base(cls: UserClass, func: ast.expr) -> bool:
    """Whether what is called in a class is of its base, ``super().__call__``, and no other class may stand between."""
    owner = func.value if isinstance(func, ast.Attribute) else None
    if not isinstance(owner, ast.Call) or not is_name(owner.func, "super"):
        return False
    return len(cls.node.bases) == 1 and not cls.module.project.heirs.mix(cls.name)


TRANSFORMING = tuple(
    name
    for name in (*transforms.TRANSFORMS, *transforms.ALIASES)
    if (row := transforms.find(name)) is not None and row.form is transforms.Form.CALL
)
"""The transforms that run a function at once."""
