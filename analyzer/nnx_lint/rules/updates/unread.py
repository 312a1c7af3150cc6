"""Results that are bound to a name which nothing reads (NNX225): the name should have been another one.

``new = jax.lax.pmean(grads, "batch")``, ``ema = self.update_ema()`` and ``state.apply_gradients(...)`` change nothing:
where no statement reads what they return, the function goes on with what was there before.

Invariants: the call does nothing but return something new, which is computed from values and not from shapes; a name
that begins with an underscore says that nobody wants the value.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.modules import Env
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import bound_to
from nnx_lint.rules.program import canonical_of, in_test, is_measured, is_own, own_nodes, own_statements, reads_of
from nnx_lint.rules.updates.discarded import MAPS, made_by, new_value
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called

COMPUTED = (
    "jax.lax.pmean",
    "jax.lax.psum",
    "jax.lax.stop_gradient",
    "jax.lax.with_sharding_constraint",
    "nnx.from_flat_state",
    "nnx.merge_state",
    "optax.apply_updates",
    "optax.incremental_update",
)
"""Functions that nobody calls to look whether they work."""

RECORDS = (".apply_gradients", ".replace")
"""Methods that give a record or a Variable anew."""


def may_be_unread(event: Called) -> bool:
    """Whether a function calls something that may do nothing but return a value."""
    func, callee = event.frame.func, event.callee
    if func is None or not isinstance(func.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    if isinstance(callee, BoundMethod):
        if callee.func is None:
            return event.subject in RECORDS  # other methods give parts of a State that are looked at
        callee = callee.func
    return not isinstance(callee, FuncVal) or _returns_once(callee.node)


@remembered
def _returns_once(func: ast.AST) -> bool:
    """Whether a function has one statement that returns what a call gives, or a name."""
    statements = own_statements(func) if isinstance(func, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    returned = [node.value for node in statements if isinstance(node, ast.Return)]
    return len(returned) == 1 and isinstance(returned[0], (ast.Call, ast.Name))


@judges_calls(rules.UNUSED_RESULT, *COMPUTED, *RECORDS, *MAPS, FuncVal, BoundMethod, when=may_be_unread)
def result_never_read(event: Called, report: Reporter) -> None:
    """The result has a name that nothing reads, because it should have been another one."""
    frame, module = event.frame, event.frame.module
    bound = bound_to(module, event.node)
    func = frame.func.node if frame.func is not None else None
    target = bound.target if bound is not None else None
    if func is None or not isinstance(target, ast.Name) or target.id.startswith("_") or in_test(frame):
        return
    outer = any(isinstance(node, (ast.Global, ast.Nonlocal)) and target.id in node.names for node in own_nodes(func))
    if outer or not is_own(module, func, target) or reads_of(func, target.id):
        return
    callee = event.callee.func if isinstance(event.callee, BoundMethod) else event.callee
    if is_measured(frame.env, func):
        return
    made = made_by(callee) if isinstance(callee, FuncVal) else event.node
    env = callee.env if isinstance(callee, FuncVal) else frame.env
    result = new_value(event) if isinstance(made, ast.Call) and isinstance(env, Env) and _computes(env, made) else None
    if result is not None:
        mend = f"nothing reads `{target.id}`"
        report(module, event.node, name=event.name, result=f"returns {result}", mend=mend)


def _computes(env: Env, call: ast.Call) -> bool:
    """Whether a call makes new values of values: one that maps a tree may make zeros, or say what there is."""
    name = canonical_of(env, call.func)
    if name not in MAPS:
        return name is None or name in COMPUTED
    mapped = call.args[0] if call.args else call
    body = mapped.body if isinstance(mapped, ast.Lambda) else mapped
    if any(isinstance(node, ast.BinOp) for node in (body, *walk(body))):
        return True
    applied = canonical_of(env, body.func if isinstance(body, ast.Call) else body)
    return applied is not None and applied not in KEEPING


KEEPING = frozenset(
    f"jax.numpy.{name}"
    for name in (
        "array",
        "asarray",
        "copy",
        "empty_like",
        "full_like",
        "ndim",
        "ones_like",
        "shape",
        "size",
        "zeros_like",
    )
)
"""Functions that copy values, or ask for shapes alone."""
