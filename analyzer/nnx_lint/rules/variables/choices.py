"""Functions that choose among the elements of an array, and what people take them for (NNX825): ``jnp.where`` with one
array, ``jnp.split`` with the sizes of the parts, ``jax.lax.top_k`` with the indices first, ``jnp.argmax`` over a batch.
And arguments one by one where JAX takes them together.

Invariants: where a finding rests on what a program does with the result, the text of the same statement says it.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from nnx_lint.model.callables import PartialVal
from nnx_lint.model.values import NUMBER, ArrayAttr, Const, ParameterNumber
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.program import ancestors, canonical_of, is_tried
from nnx_rules.rules import variables as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.values import Value

INDICES = re.compile(r"(?:^|_)(?:idx|ids|inds?|index|indexes|indices)(?:_|\d|$)|(?:idx|indices)$")
VALUES = re.compile(r"(?:^|_)(?:gates?|logits?|probs?|scores?|vals?|values?|weights?)(?:_|\d|$)")
"""How the indices and the values of the largest elements are called."""


def _targets(event: Called) -> list[ast.expr]:
    """What an assignment unpacks the result of a call to."""
    outer = next(ancestors(event.frame.module, event.node), None)
    target = outer.targets[0] if isinstance(outer, ast.Assign) and len(outer.targets) == 1 else None
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    return [] if any(isinstance(part, ast.Starred) for part in parts) else list(parts)


def is_written_whole(event: Called) -> bool:
    """Whether a call says all arguments of its function: no partial has some of them, and no star gives any."""
    args = event.node.args if isinstance(event.node, ast.Call) else []
    return not isinstance(event.callee, PartialVal) and not any(isinstance(node, ast.Starred) for node in args)


@judges_calls(rules.TENSOR_IDIOM, "jax.numpy.where", when=lambda event: len(event.args) == 2)
def one_of_two_arrays(event: Called, report: Reporter) -> None:
    """``jnp.where(x > 0, x)``: nothing says what to take elsewhere."""
    starred = any(isinstance(node, ast.Starred) for node in event.nodes)
    plain = is_written_whole(event) and not event.keywords and not starred
    if plain and not is_tried(event.frame.module, event.node):
        problem = f"`{event.name}` takes a condition and two arrays, or the condition alone, and gets one array"
        mend = f"say what to take elsewhere: `{event.name}(condition, x, 0)`"
        report(event.frame.module, event.node, problem=problem, mend=mend)


@judges_calls(rules.TENSOR_IDIOM, "jax.numpy.split", when=lambda event: len(event.nodes) > 1)
def sizes_for_indices(event: Called, report: Reporter) -> None:
    """``q, k, v = jnp.split(x, [d, d, d])``: PyTorch takes the sizes of the parts, numpy and JAX where they begin."""
    parts, places = _targets(event), event.nodes[1]
    if not isinstance(places, (ast.List, ast.Tuple)) or len(parts) != len(places.elts) or not parts:
        return
    if not is_written_whole(event):
        return
    if any(isinstance(item, ast.Starred) for item in places.elts) or is_tried(event.frame.module, event.node):
        return
    count = len(parts)
    problem = f"`{event.name}` takes the places to split at: {count} of them make {count + 1} parts, and not {count}"
    mend = f"leave out the last one, and count from the start: `{event.name}(x, [a, a + b], axis)` makes three"
    report(event.frame.module, event.node, problem=problem, mend=mend)


@judges_calls(rules.TENSOR_IDIOM, "jax.lax.top_k", "jax.lax.approx_max_k", "jax.lax.approx_min_k")
def indices_first(event: Called, report: Reporter) -> None:
    names = [part.id for part in _targets(event) if isinstance(part, ast.Name)]
    if len(names) != 2 or not INDICES.search(names[0]) or INDICES.search(names[1]) or not VALUES.search(names[1]):
        return
    first, second = names
    problem = f"`{event.name}` returns the values and then the indices: `{first}` takes the values"
    report(event.frame.module, event.node, problem=problem, mend=f"write `{second}, {first} = {event.name}(...)`")


@judges_calls(rules.TENSOR_IDIOM, "jax.numpy.argmax", "jax.numpy.argmin", when=is_written_whole)
def over_whole_batch(event: Called, report: Reporter) -> None:
    """``(jnp.argmax(logits) == labels).mean()``: one index for the batch, compared with the labels of all of it."""
    outers = [*ancestors(event.frame.module, event.node)][:4]
    if len(event.nodes) != 1 or event.keywords or not outers or is_tried(event.frame.module, event.node):
        return
    compared = outers[0] if isinstance(outers[0], ast.Compare) and len(outers[0].ops) == 1 else None
    if compared is None or not isinstance(compared.ops[0], (ast.Eq, ast.NotEq)):
        return
    call = next((outer for outer in outers if isinstance(outer, ast.Call)), None)
    if call is None:
        return
    method = isinstance(call.func, ast.Attribute) and call.func.attr == "mean" and call.func.value is compared
    if not method and canonical_of(event.frame.env, call.func) != "jax.numpy.mean":
        return
    problem = f"`{event.name}` without `axis` finds one element of all: the mean is over labels that meet one index"
    mend = f"say which axis the classes are on: `{event.name}(logits, axis=-1)`"
    report(event.frame.module, event.node, problem=problem, mend=mend)


# -- arguments by position ---------------------------------------------------------------------------------------------

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


@judges_calls(rules.TENSOR_IDIOM, *(f"jax.numpy.{name}" for name in ("max", "median", "min", "sort")), ".max", ".min")
def values_alone(event: Called, report: Reporter) -> None:
    """``values, indices = jnp.max(x, axis=-1)``: PyTorch returns both, numpy and JAX the values."""
    names = [part.id for part in _targets(event) if isinstance(part, ast.Name)]
    if len(names) != 2 or not INDICES.search(names[1]) or INDICES.search(names[0]):
        return
    if isinstance(event.callee, ArrayAttr) or (event.subject or "").startswith("jax.numpy."):
        last = event.name.rpartition(".")[2]
        other = f"jnp.arg{last}" if last != "median" else "jnp.argsort"
        problem = f"`{event.name}` returns the values alone, whose first axis is taken apart: there are no indices"
        mend = f"ask for them with `{other}(x, axis)`, or for both with `jax.lax.top_k`"
        report(event.frame.module, event.node, problem=problem, mend=mend)
