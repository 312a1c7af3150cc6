"""Functions that choose among the elements of an array, and what people take them for (NNX825): ``jnp.where`` with one
array, ``jnp.split`` with the sizes of the parts, ``jax.lax.top_k`` with the indices first, ``jnp.argmax`` over a batch.

Invariants: where a finding rests on what a program does with the result, the text of the same statement says it.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from nnx_lint.model.forms import literal
from nnx_lint.model.values import ArrayAttr
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import target_of
from nnx_lint.rules.program import ancestors, canonical_of, given, is_tried
from nnx_lint.rules.variables.arity import is_written_whole
from nnx_rules.rules import variables as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called

INDICES = re.compile(r"(?:^|_)(?:idx|ids|inds?|index|indexes|indices)(?:_|\d|$)|(?:idx|indices)$")
VALUES = re.compile(r"(?:^|_)(?:gates?|logits?|probs?|scores?|vals?|values?|w|weights?)(?:_|\d|$)")
"""How the indices and the values of the largest elements are called."""

BATCH = re.compile(r"(?:^|[^a-z])(?:labels?|logits?|outputs?|predictions?|preds?|targets?|y)(?:[^a-z]|$)")
"""How the scores of a batch, or what they are compared with, are called."""


def _targets(event: Called) -> list[ast.expr]:
    """What an assignment unpacks the result of a call to."""
    target = target_of(event.frame.module, event.node)
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    return [] if any(isinstance(part, ast.Starred) for part in parts) else list(parts)


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
    shape = literal(given(event).get(0)).shape
    if not BATCH.search(ast.unparse(compared).lower()) or (shape is not None and len(shape) < 2):
        return  # how often the best one of all was chosen is a share, too
    problem = f"`{event.name}` without `axis` finds one element of all: the mean is over labels that meet one index"
    mend = f"say which axis the classes are on: `{event.name}(logits, axis=-1)`"
    report(event.frame.module, event.node, problem=problem, mend=mend)


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
