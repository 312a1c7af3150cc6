"""Numbers and shapes in each other's place, in calls that make arrays (NNX825): ``jnp.zeros(3, 4)``,
``jax.random.randint(key, 0, 10, shape)``; and names in the place of devices.

In PyTorch and numpy sizes follow one another, limits come before the shape, and a scale is an argument. JAX takes the
shape as one argument, after the key, and the dtype next.

Invariants: only a position counts of which the value says that it cannot be meant: a number for a dtype, a shape for a
limit, a string for a device.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.arithmetic import is_fraction
from nnx_lint.model.containers import Seq
from nnx_lint.model.values import SHAPE, Const, ParameterNumber
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.program import canonical_of, given, is_tried
from nnx_lint.syntax.walk import dumped
from nnx_rules.rules import variables as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.values import Value

DTYPES = {
    **{f"jax.numpy.{name}": 1 for name in ("empty", "ones", "zeros")},
    **{f"jax.random.{name}": 2 for name in ("cauchy", "exponential", "gumbel", "laplace", "logistic")},
    **{f"jax.random.{name}": 2 for name in ("normal", "rademacher", "uniform")},
}
"""Functions that take a dtype after the shape, with its position."""

LIMITS = {"jax.random.bernoulli": 1, "jax.random.randint": 3}
"""Functions that take a number, with its position, where others take the shape."""


@judges_calls(rules.TENSOR_IDIOM, *DTYPES, when=lambda event: len(event.args) > 1)
def number_for_dtype(event: Called, report: Reporter) -> None:
    subject = event.subject or ""
    place, args = DTYPES[subject], given(event)
    if args.starred or len(args.positional) <= place or _is_aliased(event):
        return
    value, node, size = args.positional[place], args.nodes[place], args.positional[place - 1]
    twice = dumped(node) == dumped(args.nodes[place - 1]) and not isinstance(node, ast.Constant)
    if not (_is_number(value) or twice) or (size is not None and is_fraction(size)):
        return
    if not is_tried(event.frame.module, event.node):
        problem = f"`{event.name}` takes a shape and a dtype, and gets `{_text(event, node)}` for a dtype"
        report(event.frame.module, event.node, problem=problem, mend=_mend(event, subject, args.nodes))


def _mend(event: Called, subject: str, nodes: list[ast.expr]) -> str:
    place = DTYPES[subject]
    if not subject.startswith("jax.random."):
        sizes = ", ".join(_text(event, node) for node in nodes)
        return f"a shape is one tuple: `{event.name}(({sizes}))`"
    start = ", ".join(_text(event, node) for node in nodes[:place])
    if subject == "jax.random.uniform":
        return f"name the limits: `{event.name}({start}, minval=..., maxval=...)`"
    return f"a shape is one tuple, and a scale is a factor: `scale * {event.name}({start})`"


@judges_calls(rules.TENSOR_IDIOM, *LIMITS)
def shape_for_number(event: Called, report: Reporter) -> None:
    place, args = LIMITS[event.subject or ""], given(event)
    value = args.positional[place] if len(args.positional) > place and not args.starred else None
    if not (value is SHAPE or (isinstance(value, Seq) and value.type == "tuple")) or _is_aliased(event):
        return
    if not is_tried(event.frame.module, event.node):
        shape = _text(event, args.nodes[place])
        if event.subject == "jax.random.randint":
            what, mend = "`maxval`", f"{event.name}(key, {shape}, minval, maxval)"
        else:
            what, mend = "`p`", f"{event.name}(key, p, {shape})"
        problem = f"`{event.name}` gets the shape `{shape}` as its {what}, which is a number"
        report(event.frame.module, event.node, problem=problem, mend=f"the order is `{mend}`")


@judges_calls(rules.TENSOR_IDIOM, "jax.device_put")
def name_for_device(event: Called, report: Reporter) -> None:
    """``jax.device_put(x, "cpu")``: PyTorch and TensorFlow have names for devices."""
    device, module = given(event).get(1, "device"), event.frame.module
    if isinstance(device, Const) and isinstance(device.value, str) and not is_tried(module, event.node):
        platform = device.value.partition(":")[0].replace("cuda", "gpu")
        problem = f"`{event.name}` takes a device or a sharding, and gets the string {device.value!r}"
        report(module, event.node, problem=problem, mend=f"pass the device: `jax.devices({platform!r})[0]`")


def _is_number(value: Value | None) -> bool:
    number = isinstance(value, Const) and isinstance(value.value, (int, float)) and not isinstance(value.value, bool)
    return number or isinstance(value, ParameterNumber)


def _is_aliased(event: Called) -> bool:
    """Whether the call is written otherwise, and may give its arguments in another order."""
    func = event.node.func if isinstance(event.node, ast.Call) else None
    return func is None or canonical_of(event.frame.env, func) != event.subject


def _text(event: Called, node: ast.expr) -> str:
    return event.frame.module.source.segment(node)
