"""Numbers that a compiled function counts up in an object that is no part of its inputs, or in a global name (NNX230).

JAX runs the Python code of a compiled function once, to trace it. A number in a plain object, which the function
reaches through a module that it gets or through `self`, is counted up in that run and never again.

Invariants: only an object that certainly exists before the function is compiled counts; a number that is only asserted,
or that is called so, tells how often a function was traced, which is meant; a name outside of it has to say that it
counts steps, or the like.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import UserClass
from nnx_lint.model.events import AttributeSet, OuterNameSet
from nnx_lint.model.expressions import text_of
from nnx_lint.model.unions import options
from nnx_lint.model.values import Const, Obj, Other, Value
from nnx_lint.reporting import Reporter, judges, related
from nnx_lint.rules.callees import called_value
from nnx_lint.rules.program import FUNCTIONS, attribute_reads, calls_in, enclosing, in_test, own_nodes, uses_in
from nnx_lint.rules.traces.captures import holds
from nnx_lint.rules.traces.mends import COMPILING
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.walk import remembered
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.frames import Frame, TraceScope
    from nnx_lint.model.modules import Module


OF_TRACES = re.compile("trac|compil|jit", re.IGNORECASE)
"""What the name of a number has in it that is to say how often a function was traced."""


@judges(rules.LOST_COUNT, AttributeSet)
def counted_while_tracing(event: AttributeSet, report: Reporter) -> None:
    frame, node = event.frame, event.node
    target = node.target if isinstance(node, ast.AugAssign) else None
    if not frame.scope or not isinstance(target, ast.Attribute) or event.obj.cls.tracked:
        return
    scope = next((scope for scope in frame.scope if scope.applied.row.name in COMPILING), None)
    if scope is None or not frame.certain_within(scope) or not is_count(event.value):
        return
    cls = event.obj.cls
    if not isinstance(cls, UserClass) or (cls.is_dataclass and frame.module.provider == "nnxkit"):
        return  # nnxkit compares such an object by what it holds, and traces again
    if _begins_anew(frame, scope, target):
        return
    outside = _is_from_outside(frame, scope, target, event.obj) and OF_TRACES.search(target.attr) is None
    if outside and not in_test(frame) and _is_read(frame.module, target.attr):
        where = (related(scope.applied.module, scope.applied.node, f"`{scope.text}` is applied here"),)
        report(frame.module, node, related=where, name=text_of(target), transform=scope.text)


OF_STEPS = re.compile("step|iter|epoch|batch|update|sample|seen", re.IGNORECASE)
"""What the name of a number has in it that is to say how often a function has run."""


@judges(rules.LOST_COUNT, OuterNameSet, when=lambda event: OF_STEPS.search(event.name) is not None)
def name_counted_while_tracing(event: OuterNameSet, report: Reporter) -> None:
    frame, node = event.frame, event.node
    scope = next((scope for scope in frame.scope if scope.applied.row.name in COMPILING), None)
    if scope is None or not isinstance(node, ast.AugAssign):
        return
    if not is_count(event.value) or not frame.certain_within(scope) or OF_TRACES.search(event.name) or in_test(frame):
        return
    own = frame.func.node if frame.func is not None else None
    reads = uses_in(frame.module.source.tree).get(event.name, ())
    outside = (read for read in reads if enclosing(frame.module, read, *FUNCTIONS) is not own)
    if any(enclosing(frame.module, read, ast.Assert) is None for read in outside):
        where = (related(scope.applied.module, scope.applied.node, f"`{scope.text}` is applied here"),)
        report(frame.module, node, related=where, name=event.name, transform=scope.text)


def is_count(value: Value) -> bool:
    """Whether a value may be a number that a program counts with."""
    return isinstance(value, Other) or (isinstance(value, Const) and type(value.value) in {int, float})


def _begins_anew(frame: Frame, scope: TraceScope, target: ast.Attribute) -> bool:
    """Whether a traced function sets the number before it counts: each trace begins with the same one."""
    each: Frame | None = frame
    while each is not None and scope in each.scope:
        if each.func is not None and any(target.attr in _attributes_set(func) for func in _running(each)):
            return True
        each = each.caller
    return False


def _running(frame: Frame) -> Iterator[ast.AST]:
    """The function of a frame, and those of the project that it calls by name."""
    func = frame.func.node if frame.func is not None else None
    if func is not None:
        yield func
        found = (called_value(frame.env, call.func) for call in calls_in(func))
        yield from (value.node for value in found if isinstance(value, FuncVal))


@remembered
def _attributes_set(func: ast.AST) -> frozenset[str]:
    """The attributes that the statements of a function set, other than by adding to them."""
    nodes = own_nodes(func)
    added = {id(node.target) for node in nodes if isinstance(node, ast.AugAssign)}
    stores = (node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
    return frozenset(node.attr for node in stores if id(node) not in added)


def _is_read(module: Module, name: str) -> bool:
    """Whether the file does more with an attribute of this name than to assert something of it."""
    return any(enclosing(module, node, ast.Assert) is None for node in attribute_reads(module.tree, name))


def _is_from_outside(frame: Frame, scope: TraceScope, target: ast.Attribute, obj: Obj) -> bool:
    """Whether a plain object comes in a static attribute of an argument, or is, or belongs to, the `self` of a method
    around the compiled function, or of the method that is compiled, `jit(self.step)`.
    """
    traced = scope.frame
    if traced is None:
        return False
    if obj is traced.receiver:
        return True
    if any(isinstance(item, Obj) and holds(item, obj) for value in traced.given.values() for item in options(value)):
        return True
    found = frame.env.lookup(root_of(target) or "")
    if found is None or frame is not traced:
        return False
    env, owner = found
    method = env is not frame.env and env.func is not None and env.func.cls is not None
    return method and isinstance(owner, Obj) and (owner is obj or holds(owner, obj))
