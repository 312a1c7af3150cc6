"""Results whose name is bound to something else before anything reads them (NNX225).

``h = self.norm(x)`` and then ``h = self.fc(x)``: the second was meant to go on with ``h``. ``loss_1, grads = ...`` and
``loss_2, grads = ...``: the second was meant to have a name of its own, and one network now gets the gradients of
another one. Forward passes and losses are looked through for values of ``jax.numpy`` that are lost like this.

Invariants: on no way through the function does anything read the first result; a layer whose result nothing reads at
all is found by :mod:`~nnx_lint.rules.updates.unread`. The same call twice is a warm-up, and zeros may hold a place;
functions that are defined inside and read the name may read anything.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal, Transformed
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import ClassDefined
from nnx_lint.model.expressions import text_of
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.autodiff.gradients import Exchanged, differentiates
from nnx_lint.rules.bindings import Assignment, only_target
from nnx_lint.rules.callees import compiled_by
from nnx_lint.rules.construction.returning import returns_nothing
from nnx_lint.rules.program import (
    ancestors,
    block_of,
    called_as,
    canonical_of,
    in_test,
    is_own,
    outer_names,
    own_nodes,
    own_set,
    reads_of,
)
from nnx_lint.rules.readers import bound_next, reads_after
from nnx_lint.rules.updates.discarded import new_value
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import dumped, walk
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Module


def of_function(event: Called) -> bool:
    """Whether a function binds what a layer gives it to a name, through functions such as activations, too."""
    return isinstance(event.callee, Obj) and event.frame.func is not None and _assignment(event) is not None


def _assignment(event: Called) -> Assignment | None:
    """The assignment that binds what a call returns, or what is computed from that."""
    inner = event.node
    for outer in ancestors(event.frame.module, inner):
        if isinstance(outer, Assignment):
            return outer if outer.value is inner and only_target(outer) is not None else None
        if isinstance(outer, ast.Call) and outer.args and outer.args[0] is inner:
            if not (canonical_of(event.frame.env, outer.func) or "").startswith(("jax.", "nnx.")):
                return None  # another layer, which is asked about for itself
        elif not isinstance(outer, ast.BinOp) or (outer.left is not inner and has_calls(outer.left)):
            return None
        inner = outer
    return None


def has_calls(node: ast.expr) -> bool:
    """Whether an expression calls something."""
    return any(isinstance(part, ast.Call) for part in walk(node))


@judges_calls(rules.UNUSED_RESULT, "()", when=of_function)
def layer_overwritten(event: Called, report: Reporter) -> None:
    """``h = self.norm(x)``, and ``h`` is something else before the forward pass reads it."""
    frame, made = event.frame, _assignment(event)
    target = only_target(made) if made is not None else None
    if made is None or not isinstance(target, ast.Name) or frame.func is None:
        return
    cls = called_as(frame)
    if cls is None or not cls.derives_from("nnx.Module") or not _is_lost(frame.module, frame.func.node, made, target):
        return
    other = bound_next(frame.module, frame.func.node, target.id, made)
    if returns_nothing(frame.func.node):
        return  # that is said of the function
    if _is_the_same(other, made) or in_test(frame) or new_value(event) is None:
        return
    mend = f"`{target.id}` is bound anew before anything reads it: give it to what comes next"
    where = (related(frame.module, other, "bound anew here"),) if other is not None else ()
    report(frame.module, event.node, name=event.name, result="returns a new array", mend=mend, related=where)


@judges_calls(rules.UNUSED_RESULT, Transformed, when=differentiates)
def gradients_overwritten(event: Called, report: Reporter) -> None:
    """``loss_1, grads = ...`` and ``loss_2, grads = ...``, of two networks."""
    frame, made = event.frame, _assignment(event)
    place = _of_gradients(event)
    target = _part(made, place)
    if (
        made is None
        or made.value is not event.node
        or target is None
        or frame.func is None
        or not isinstance(event.node, ast.Call)
    ):
        return
    block = block_of(frame.module, made)
    earlier = (each for each in reversed(block[: block.index(made)]) if isinstance(each, Assignment))
    before = next((each for each in earlier if is_name(_part(each, place), target.id)), None)
    first, lost = before.value if before is not None else None, _part(before, place)
    if before is None or lost is None or not isinstance(first, ast.Call) or not first.args or not event.nodes:
        return
    # the same function of something else, or another loss that has a name: one name was forgotten in a copy of the line
    one, two = _beside(made), _beside(before)
    named = place == 1 and one is not None and two is not None and dumped(one) != dumped(two)
    if not (named or dumped(first.func) == dumped(event.node.func)) or dumped(first.args[0]) == dumped(event.nodes[0]):
        return
    if (
        bound_next(frame.module, frame.func.node, target.id, before) is made
        and not in_test(frame)
        and _is_lost(frame.module, frame.func.node, before, lost)
    ):
        mend = f"`{target.id}` is bound to other gradients before anything reads it: give each of them a name"
        where = (related(frame.module, made, "bound anew here"),)
        report(frame.module, first, name=text_of(first.func), result="returns gradients", mend=mend, related=where)
        report.memory(Exchanged).values += event.result.items if isinstance(event.result, Seq) else [event.result]


WHOLE = -1
"""The place of what is no part of a tuple."""


def _of_gradients(event: Called) -> int:
    """Where in what it returns a function has its gradients."""
    callee = compiled_by(event.callee) if isinstance(event.callee, Transformed) else None
    if callee is None or not callee.applied.row.name.endswith(".value_and_grad"):
        return 0 if callee is not None and "has_aux" in callee.applied.keywords else WHOLE
    return 1


def _part(made: Assignment | None, place: int) -> ast.Name | None:
    """The name that an assignment has for one part of a value."""
    target = only_target(made) if made is not None else None
    if place != WHOLE:
        target = target.elts[place] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else None
    return target if isinstance(target, ast.Name) else None


def _beside(made: Assignment) -> ast.expr | None:
    """What an assignment binds beside gradients."""
    target = only_target(made)
    return target.elts[0] if isinstance(target, ast.Tuple) else target


def _is_the_same(other: Assignment | None, made: Assignment) -> bool:
    """Whether another assignment binds what this one does."""
    if other is None or other.value is None or made.value is None:
        return False
    return dumped(other.value) == dumped(made.value)


def _is_lost(module: Module, func: ast.AST, made: Assignment, target: ast.Name, *, read: bool = True) -> bool:
    """Whether a name of a function stands for something that nothing reads before it stands for something else, or at
    all if it need not be ``read``.
    """
    name = target.id
    if name.startswith("_") or name in outer_names(func) or not is_own(module, func, target):
        return False
    reads = reads_of(func, name)
    if not reads:
        return not read
    own = own_set(func)
    return all(each in own for each in reads) and not reads_after(module, func, name, made)


# -- values of jax.numpy -----------------------------------------------------------------------------------------------


def of_module(event: ClassDefined) -> bool:
    """Whether a class is one of modules that have a forward pass."""
    return "__call__" in event.cls.methods and event.cls.derives_from("nnx.Module")


@judges(rules.UNUSED_RESULT, ClassDefined, when=of_module)
def value_lost_in_forward_pass(event: ClassDefined, report: Reporter) -> None:
    """``h = jnp.concatenate([x, skip])``, and ``h = self.conv(skip)``."""
    method = event.cls.methods["__call__"]
    if isinstance(method, FuncVal) and not in_test(event.frame):
        _report_lost(method, report)


@judges_calls(rules.UNUSED_RESULT, Transformed, when=differentiates)
def value_lost_in_loss(event: Called, report: Reporter) -> None:
    """``loss = ...``, and ``loss = 0.1 * ...`` in the place of ``loss += ...``."""
    func = compiled_by(event.callee).func if isinstance(event.callee, Transformed) else None
    if isinstance(func, FuncVal) and func.node not in report.memory(Seen).losses and not in_test(event.frame):
        report.memory(Seen).losses.add(func.node)
        _report_lost(func, report)


class Seen:
    """The losses that were looked through."""

    def __init__(self) -> None:
        self.losses: set[ast.AST] = set()


def _report_lost(func: FuncVal, report: Reporter) -> None:
    module, node = func.module, func.node
    if isinstance(node, ast.Lambda) or returns_nothing(node):
        return
    for made in own_nodes(node):
        target = only_target(made)
        if not isinstance(made, Assignment) or made.value is None or not isinstance(target, ast.Name):
            continue
        made_by = _made_by(module, made.value)
        if made_by is None or not _is_lost(module, node, made, target, read=made_by not in KEEPING_KIND):
            continue
        other = bound_next(module, node, target.id, made)
        if _is_the_same(other, made):
            continue
        mend = f"nothing reads `{target.id}`" + (" before it is bound anew" if other is not None else "")
        where = (related(module, other, "bound anew here"),) if other is not None else ()
        name = f"{target.id} = {text_of(made.value)}"
        report(module, made, name=name, result="computes a value", mend=mend, related=where)


def _made_by(module: Module, value: ast.expr) -> str | None:
    """The function of JAX or optax that makes a value, or an operand of it, where no layer has a part in it."""
    while isinstance(value, (ast.BinOp, ast.Call)):
        if isinstance(value, ast.BinOp):
            value = value.right if has_calls(value.right) else value.left
            continue
        name = canonical_of(module.env, value.func)
        if name is not None:
            return name if name.startswith(COMPUTING) and name not in PLACES else None
        if not isinstance(value.func, ast.Attribute) or value.func.attr not in METHODS:
            return None
        value = value.func.value
    return None


COMPUTING = ("jax.numpy.", "jax.nn.", "optax.")
"""What the names of functions begin with that compute arrays."""

METHODS = frozenset({"astype", "max", "mean", "min", "reshape", "sum", "transpose"})
"""Methods of arrays that go on with what they are methods of."""

PLACES = frozenset(
    f"jax.numpy.{name}"
    for name in (
        *("arange", "array", "asarray", "dtype", "empty", "empty_like", "eye", "finfo", "float32", "full", "full_like"),
        *("iinfo", "linspace", "ndim", "ones", "ones_like", "result_type", "shape", "size", "zeros", "zeros_like"),
    )
)
"""Functions whose result may only hold a place, or is asked for its type."""

KEEPING_KIND = frozenset(
    {
        *(f"jax.numpy.{name}" for name in ("clip", "concatenate", "pad", "where")),
        *(f"jax.nn.{name}" for name in ("gelu", "log_softmax", "relu", "sigmoid", "silu", "softmax", "tanh")),
    }
)
"""Functions that make of a value what is to take its place, so that it is lost if nothing reads it at all."""
