"""Lists and tuples in the place of arrays (NNX825): ``jnp.mean(losses)`` of a list, ``jnp.prod(x.shape)``, and a list
of devices in the place of one.

numpy makes an array of whatever it is given. JAX does not: its functions of arrays raise for a list.

Invariants: the value certainly is a list or tuple of Python, and the function is one that takes no such thing at this
place; functions that join several arrays take lists, and are not among them.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.containers import Seq
from nnx_lint.model.values import SHAPE, Array, Unknown
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.layers.sharding import ROWS
from nnx_lint.rules.program import canonical_of, given, is_tried, own_set, scopes_around
from nnx_rules.rules import variables as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.values import Value

_OF_ONE = """
    abs absolute all any argmax argmin argsort around average ceil clip cos cosh count_nonzero cumprod cumsum diag diff
    exp expand_dims expm1 flip floor fmax fmin isfinite isinf isnan linalg.norm log log10 log1p log2 logical_not max
    mean median min moveaxis nan_to_num nanmax nanmean nanmin nansum negative nonzero ones_like pad percentile prod
    quantile ravel repeat reshape roll round sign sin sort sqrt square squeeze std sum swapaxes take take_along_axis tan
    tanh tile transpose tril triu unique var zeros_like
"""
_OF_TWO = (
    "add divide dot inner isclose kron logical_and logical_or matmul maximum minimum multiply outer power subtract"
)

PLACES: dict[str, int] = {
    **{f"jax.numpy.{name}": 1 for name in _OF_ONE.split()},
    **{f"jax.numpy.{name}": 2 for name in _OF_TWO.split()},
    **{
        f"{head}.{name}": 1 for head in ("jax.nn", "nnx") for name in ("gelu", "relu", "softmax", "log_softmax", "silu")
    },
}
"""Functions that take arrays first, and how many."""

ONE_DEVICE = {"jax.default_device": 0, "jax.device_put": 1}
"""What takes one device, with its position."""


@judges_calls(rules.TENSOR_IDIOM, *PLACES, when=lambda event: bool(event.args))
def list_for_array(event: Called, report: Reporter) -> None:
    args, frame = given(event), event.frame
    for value, node in zip(args.positional[: PLACES[event.subject or ""]], args.nodes, strict=False):
        is_open = event.subject == "jax.numpy.prod" and (value is None or isinstance(value, Unknown))
        if not (is_open and _is_shape(node)) and not _is_list(frame, event.node, value, node):
            continue
        if args.starred or frame.doubtful:
            continue
        if is_tried(frame.module, event.node):
            continue
        said = ast.unparse(node)
        sizes = value is SHAPE or said.endswith(".shape")
        what = "a tuple" if sizes or (isinstance(value, Seq) and value.type == "tuple") else "a list"
        mend = f"`math.prod({said})` computes with sizes" if sizes and event.name.endswith("prod") else None
        mend = (
            mend or f"make an array of it first: `{event.name}(jnp.array({said}))`, or `jnp.stack` for a list of arrays"
        )
        problem = f"`{event.name}` takes an array, and gets {what}: numpy makes an array of it, JAX raises an error"
        report(frame.module, event.node, problem=problem, mend=mend)
        return


def _is_list(frame: Frame, call: ast.AST, value: Value | None, node: ast.expr) -> bool:
    """Whether a value is a shape, or a list or tuple that a function around the call, or the module, makes.

    People annotate arrays as lists, and parameters with the class of what is called under another name.
    """
    if isinstance(node, ast.BinOp):
        return False  # an operator of an array, on either side
    if not isinstance(value, Seq) or value.type not in {"list", "tuple"} or value.node is None:
        return (isinstance(value, Seq) and _is_shape(node)) or value is SHAPE
    return any(value.node in own_set(scope) for scope in scopes_around(frame.module, call))


def _is_shape(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "shape"


@judges_calls(rules.TENSOR_IDIOM, *ONE_DEVICE)
def devices_for_device(event: Called, report: Reporter) -> None:
    """``jax.default_device(jax.devices("cpu"))``: the list of devices, and not one of it."""
    frame, node = event.frame, given(event).node_of(ONE_DEVICE[event.subject or ""], "device")
    function = canonical_of(frame.env, node.func) if isinstance(node, ast.Call) else None
    if event.subject == "jax.device_put" and not isinstance(given(event).get(0), Array):
        return  # a list of values may go to as many devices
    if node is not None and function in ROWS and not is_tried(frame.module, event.node):
        problem = f"`{event.name}` takes one device, and gets the list that `{function}` returns"
        report(frame.module, event.node, problem=problem, mend=f"take one of them: `{ast.unparse(node)}[0]`")
