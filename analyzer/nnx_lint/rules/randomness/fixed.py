"""Numbers that are the same in each call: where that is meant, and where a flag asks for them all the same (NNX531).

A matrix of random numbers that an array is multiplied with is a projection: it has to stay the same. Noise under a flag
is noise whenever the flag is set; what stands under another condition, such as ``if key is None``, may be what the
function falls back on.

Invariants: a flag is known to be a bool or a number, by its value or by the annotation or default of the parameter.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.classes import UserClass
from nnx_lint.model.unions import present
from nnx_lint.model.values import Const, ModuleVal, Obj, Other
from nnx_lint.rules.bindings import constant_of, pairs_of
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    canonical_of,
    certain_block,
    enclosing,
    own_nodes,
    reads_of,
    resolved,
    statement_of,
)
from nnx_lint.rules.randomness.reading import is_rngs
from nnx_lint.syntax.walk import walk
from nnx_rules.streams import SAMPLERS

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Env, Module
    from nnx_lint.model.values import Value

PRODUCTS = frozenset(f"jax.numpy.{name}" for name in ("dot", "einsum", "inner", "matmul", "tensordot", "vdot"))

FLAGS = frozenset({"a bool", "a float", "an int"})
"""What a value is that a condition takes for a flag."""


def is_said(module: Module, env: Env, number: ast.expr) -> bool:
    """Whether a number is written out, or a file has a name for it: ``SEED``, ``settings.SEED``."""
    if isinstance(number, ast.Name):
        return isinstance(constant_of(module, number), ast.Constant)
    if isinstance(number, ast.Attribute) and isinstance(resolved(env, number.value), ModuleVal):
        return isinstance(resolved(env, number), Const)
    return isinstance(number, ast.Constant)


def is_projection(frame: Frame, draw: ast.AST) -> bool:
    """Whether random numbers, or what is computed of them, are a factor of a product of matrices."""
    scope = enclosing(frame.module, draw, *FUNCTIONS)
    asked, followed = [draw], set[str]()
    while asked:
        node = asked.pop()
        bound = _held(frame, node)
        if bound is None:
            return True
        if scope is not None and bound and bound not in followed:
            followed.add(bound)
            asked += reads_of(scope, bound)
    return False


def _held(frame: Frame, node: ast.AST) -> str | None:
    """The name that an expression with a value in it is bound to, if any; ``None`` if the value is a factor there."""
    for outer in ancestors(frame.module, node):
        if isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.MatMult):
            return None
        if isinstance(outer, ast.Call) and canonical_of(frame.env, outer.func) in PRODUCTS:
            return None
        if isinstance(outer, ast.stmt):
            targets = [target for target, value in pairs_of(outer) if node in walk(value)]
            return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""
    return ""


def is_under_flag(frame: Frame, node: ast.AST) -> bool:
    """Whether a flag alone decides that an expression of a function is evaluated."""
    module, branch = frame.module, enclosing(frame.module, node, *FUNCTIONS, ast.If)
    func = frame.func.node if frame.func is not None else None
    if not isinstance(branch, ast.If) or func is None or statement_of(module, node) not in branch.body:
        return False
    return _is_direct(module, branch, func) and _asks_flags(frame, branch.test)


def _is_direct(module: Module, branch: ast.If, func: ast.AST) -> bool:
    """Whether a condition is a statement of a function, with nothing around it but what has to run."""
    inner: ast.AST = branch
    for outer in ancestors(module, branch):
        if outer is func:
            return True
        if isinstance(outer, ast.stmt):
            block = certain_block(outer)
            if block is None or inner not in block:
                return False
            inner = outer
    return False


def _asks_flags(frame: Frame, test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp):
        return all(_asks_flags(frame, item) for item in test.values)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _asks_flags(frame, test.operand)
    if isinstance(test, ast.Compare):
        numbers = (isinstance(item, ast.Constant) and isinstance(item.value, (int, float)) for item in test.comparators)
        return all(numbers) and _asks_flags(frame, test.left)
    if isinstance(test, ast.Name):
        found = frame.env.lookup(test.id)
        func = frame.func.node if frame.func is not None else None
        return found is not None and (_is_flag(found[1]) or _is_declared(func, test.id))
    if not isinstance(test, ast.Attribute) or not isinstance(test.value, ast.Name):
        return False
    owner = frame.env.lookup(test.value.id)
    held = present(owner[1]) if owner is not None else None
    attr = attribute_of(held, test.attr) if isinstance(held, Obj) else None
    return attr is not None and (_is_flag(attr.value) or _is_given(held, test.attr))


def _is_flag(value: Value) -> bool:
    plain = isinstance(value, Const) and isinstance(value.value, (bool, int, float))
    return plain or (isinstance(value, Other) and value.what in FLAGS)


def _is_given(obj: Value | None, name: str) -> bool:
    """Whether a constructor puts a parameter that is a flag into the attribute."""
    found = obj.cls.find("__init__") if isinstance(obj, Obj) and isinstance(obj.cls, UserClass) else None
    func = getattr(found[1], "node", None) if found is not None else None
    for node in own_nodes(func) if func is not None else ():
        for target, value in pairs_of(node):
            if isinstance(target, ast.Attribute) and target.attr == name:
                return isinstance(value, ast.Name) and _is_declared(func, value.id)
    return False


def _is_declared(func: ast.AST | None, name: str) -> bool:
    """Whether a parameter is annotated as a bool or a number, or is one by default."""
    arguments = func.args if isinstance(func, FUNCTIONS) else None
    if arguments is None:
        return False
    parameters = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(parameters) - len(arguments.defaults)) + [*arguments.defaults, *arguments.kw_defaults]
    for item, default in zip([*parameters, *arguments.kwonlyargs], defaults, strict=True):
        if item.arg == name:
            annotated = isinstance(item.annotation, ast.Name) and item.annotation.id in {"bool", "float", "int"}
            return annotated or (isinstance(default, ast.Constant) and isinstance(default.value, (bool, int, float)))
    return False


def draws_alone(frame: Frame, draw: ast.AST) -> bool:
    """Whether a function draws nothing else, neither from keys nor from streams."""
    func = frame.func.node if frame.func is not None else None
    for node in walk(func) if func is not None else ():
        if isinstance(node, ast.keyword) and node.arg == "rngs":
            return False
        if isinstance(node, (ast.Name, ast.Attribute)) and is_rngs(resolved(frame.env, node)):
            return False
        if isinstance(node, ast.Call) and node is not draw and _may_draw(canonical_of(frame.env, node.func), node.func):
            return False
    return True


def _may_draw(name: str | None, func: ast.expr) -> bool:
    """Whether a call of a function of this canonical name draws, or that of a method of something unknown may."""
    module, _, last = (name or "").rpartition(".")
    if module == "jax.random":
        return last not in {"PRNGKey", "key"}
    return name is None and isinstance(func, ast.Attribute) and func.attr in SAMPLERS
