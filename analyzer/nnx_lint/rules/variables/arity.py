"""How many arguments functions of JAX take (NNX825): ``jnp.transpose(x, 0, 2, 1)``, ``jnp.expand_dims(x)``.

Methods of PyTorch take axes and sizes one after the other, and know where a new axis goes; JAX takes a tuple, and is
told.

Invariants: only a call counts that says all arguments of its function.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import PartialVal
from nnx_lint.model.values import NUMBER, Const, ParameterNumber
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.program import is_tried
from nnx_rules.rules import variables as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.values import Value


def is_written_whole(event: Called) -> bool:
    """Whether a call says all arguments of its function: no partial has some of them, and no star gives any."""
    args = event.node.args if isinstance(event.node, ast.Call) else []
    return not isinstance(event.callee, PartialVal) and not any(isinstance(node, ast.Starred) for node in args)


_ONE = "abs ceil cos cosh exp expm1 floor isfinite isinf isnan log log10 log1p log2 sign sin sinh sqrt square tan tanh"
_TWO = "broadcast_to expand_dims flip permute_dims squeeze tile transpose"

AT_MOST: dict[str, int] = {
    **{f"jax.numpy.{name}": 1 for name in _ONE.split()},
    **{f"jax.numpy.{name}": 2 for name in (*_TWO.split(), "reshape")},
}
"""How many arguments functions take by position; ``reshape`` takes one more, the name of an order."""


@judges_calls(rules.TENSOR_IDIOM, *AT_MOST, when=lambda event: len(event.args) > AT_MOST.get(event.subject or "", 9))
def axes_one_by_one(event: Called, report: Reporter) -> None:
    """``jnp.transpose(x, 0, 2, 1)``: methods of PyTorch take axes and sizes one after the other, JAX takes a tuple."""
    subject, rest = event.subject or "", event.nodes[1:]
    order = event.args[2] if subject == "jax.numpy.reshape" and len(event.args) == 3 else None
    if any(isinstance(node, ast.Starred) for node in event.nodes) or is_tried(event.frame.module, event.node):
        return
    if not is_written_whole(event):
        return
    if subject == "jax.numpy.reshape" and len(event.args) == 3 and not _is_number(order):
        return
    most, given = AT_MOST[subject], len(event.args)
    problem = f"`{event.name}` takes {most} argument{'s' * (most > 1)} by position, and gets {given}"
    if most > 1:
        text = ", ".join(ast.unparse(node) for node in rest)
        mend = f"axes and sizes are one tuple: `{event.name}({ast.unparse(event.nodes[0])}, ({text}))`"
    else:
        mend = f"it is a function of one array: `{event.name}({ast.unparse(event.nodes[0])})`"
    report(event.frame.module, event.node, problem=problem, mend=mend)


def _is_number(value: Value | None) -> bool:
    number = isinstance(value, Const) and isinstance(value.value, int)
    return number or value is NUMBER or isinstance(value, ParameterNumber)


REQUIRED: dict[str, str] = {
    "jax.numpy.broadcast_to": "array shape",
    "jax.numpy.expand_dims": "a axis",
    "jax.numpy.full": "shape fill_value",
    "jax.numpy.moveaxis": "a source destination",
    "jax.numpy.repeat": "a repeats",
    "jax.numpy.roll": "a shift",
    "jax.numpy.split": "ary indices_or_sections",
    "jax.numpy.swapaxes": "a axis1 axis2",
    "jax.numpy.take": "a indices",
    "jax.numpy.tile": "A reps",
    "jax.tree.map": "f tree",
    "jax.tree_util.tree_map": "f tree",
}
"""What functions have to be given."""


@judges_calls(rules.TENSOR_IDIOM, *REQUIRED, when=lambda event: bool(event.args))
def argument_left_out(event: Called, report: Reporter) -> None:
    """``jnp.expand_dims(x)``: ``unsqueeze`` and its like have to be told where, too."""
    names = REQUIRED[event.subject or ""].split()
    missing = [name for name in names[len(event.args) :] if name not in event.keywords]
    written = event.node.args if isinstance(event.node, ast.Call) else []  # a list that is empty here gives nothing
    starred = "**" in event.keywords or any(isinstance(node, ast.Starred) for node in written)
    if missing and not starred and is_written_whole(event) and not is_tried(event.frame.module, event.node):
        problem = f"`{event.name}` has to be given `{missing[0]}`, too"
        report(event.frame.module, event.node, problem=problem, mend=f"it takes `{event.name}({', '.join(names)})`")
