"""Attention: masks made of something else than tokens, queries whose heads come first, and queries, keys, values and
masks that do not fit each other (NNX826).

``nnx.dot_product_attention`` takes arrays of (batch, length, heads, features), where other libraries have the heads
before the length; given such arrays it attends over the heads, and every shape fits. A mask is made of tokens, which
have one axis less than what attention gets. Invariants: heads come first only where a function reshapes an array to
four axes and swaps the middle ones; a mask is a wrong one only if it certainly has an axis too many.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import forms
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.layers.operands import is_prepared
from nnx_lint.rules.program import FUNCTIONS, canonical_of, enclosing, given, is_tried, own_nodes
from nnx_lint.syntax.binding import is_name
from nnx_rules import layers
from nnx_rules.rules import modules as rules
from nnx_rules.shape_algebra import broadcast, is_whole
from nnx_rules.shapes import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nnx_lint.model.events import Called
    from nnx_lint.model.values import Value
    from nnx_rules.shapes import Shape

# -- heads -------------------------------------------------------------------------------------------------------------


@judges_calls(rules.ARRAY_SHAPES, "nnx.dot_product_attention")
def heads_first(event: Called, report: Reporter) -> None:
    module = event.frame.module
    scope = enclosing(module, event.node, *FUNCTIONS)
    args = given(event)
    asked = [args.node_of(place, name) for place, name in ((0, "query"), (1, "key"))]
    if scope is not None and all(node is not None and _has_heads_first(event, scope, node) for node in asked):
        problem = f"`{event.name}` gets heads before positions, and attends to the heads of the same position"
        mend = "leave the swap out: it takes (batch, length, heads, features), and gives the same"
        report(module, event.node, problem=problem, mend=mend)


def _has_heads_first(event: Called, scope: ast.AST, node: ast.expr) -> bool:
    """Whether an array is reshaped to four axes and has the middle ones swapped, the last time that it is computed."""
    if isinstance(node, ast.Name):
        made = list(_definitions(scope, node.id))
        before = [value for value in made if value.lineno <= event.node.lineno]  # type: ignore[attr-defined]
        return bool(before) and _is_swapped(event, before[-1])
    return _is_swapped(event, node)


def _definitions(scope: ast.AST, name: str) -> Iterator[ast.expr]:
    """The expressions that a function binds a name to, in order; of a comprehension that is unpacked its element."""
    statements = (node for node in own_nodes(scope) if isinstance(node, ast.Assign) and len(node.targets) == 1)
    for statement in sorted(statements, key=lambda item: item.lineno):
        target, value = statement.targets[0], statement.value
        if is_name(target, name):
            yield value
        elif isinstance(target, ast.Tuple) and any(is_name(item, name) for item in target.elts):
            if isinstance(value, (ast.GeneratorExp, ast.ListComp)):
                yield value.elt
            elif isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
                yield from (each for item, each in zip(target.elts, value.elts, strict=True) if is_name(item, name))
            else:
                yield value


def _is_swapped(event: Called, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = (canonical_of(event.frame.env, node.func) or "").rpartition("jax.numpy.")[2]
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    array, *rest = node.args if name in SWAPS else [getattr(node.func, "value", node), *node.args]
    if (name if name in SWAPS else method) not in SWAPS or node.keywords:
        return False
    axes = rest[0].elts if len(rest) == 1 and isinstance(rest[0], (ast.Tuple, ast.List)) else rest
    numbers = [_number(item) for item in axes]
    swapped = numbers in SWAPS[name if name in SWAPS else method]
    return swapped and _is_split(event, array)


def _number(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


SWAPS: dict[str, list[list[int]]] = {
    "transpose": [[0, 2, 1, 3]],
    "permute_dims": [[0, 2, 1, 3]],
    "swapaxes": [[1, 2], [2, 1], [-3, -2], [-2, -3]],
    "moveaxis": [[1, 2], [2, 1]],
}
"""What swaps the two middle ones of four axes, and how."""


def _is_split(event: Called, node: ast.expr) -> bool:
    """Whether an expression reshapes an array to four axes."""
    if not isinstance(node, ast.Call) or node.keywords:
        return False
    if canonical_of(event.frame.env, node.func) == "jax.numpy.reshape":
        sizes = node.args[1:]
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "reshape":
        sizes = node.args
    else:
        return False
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = sizes[0].elts
    return len(sizes) == 4 and not any(isinstance(item, ast.Starred) for item in sizes)


# -- operands ----------------------------------------------------------------------------------------------------------


@judges_calls(rules.ARRAY_SHAPES, "jax.nn.dot_product_attention", "nnx.dot_product_attention")
def operands_of_attention(event: Called, report: Reporter) -> None:
    """Queries, keys and values of (batch, length, heads, features), and a mask of (batch, heads, length, length)."""
    args = given(event)
    shapes = [forms.literal(args.get(place, name)).shape for place, name in enumerate(("query", "key", "value"))]
    query, key, value = (
        shape if shape is not None and is_whole(shape) and len(shape) > 2 else None for shape in shapes
    )
    wrong = None
    if query and key:
        wrong = _unlike(query, key, [*range(len(query) - 3), len(query) - 1], "queries", "keys")
        heads = query[-2], key[-2]
        if wrong is None and isinstance(heads[0], int) and isinstance(heads[1], int) and heads[0] % heads[1]:
            wrong = f"queries of {heads[0]} heads, and keys of {heads[1]}"
    if wrong is None and key and value:
        wrong = _unlike(key, value, range(len(key) - 1), "keys", "values")
    mask = forms.literal(args.keywords.get("mask")).shape
    if wrong is None and query and key and mask is not None and len(query) == len(key):
        scores = (*query[:-3], query[-2], query[-3], key[-3])
        if is_whole(mask) and broadcast(mask, scores) is None:
            wrong = f"a mask of shape {layers.shown(mask)} for scores {layers.shown(scores)}"
    if wrong is not None and not args.starred and not is_prepared(event.frame, event.node):
        mend = "each is (batch, length, heads, features), and keys and values are of one length and as many heads"
        report(event.frame.module, event.node, problem=f"`{event.name}` gets {wrong}", mend=mend)


def _unlike(one: Shape, other: Shape, axes: Iterable[int], first: str, second: str) -> str | None:
    """How two arrays differ in axes in which they have to agree."""
    sizes = [(one[axis], other[axis]) for axis in axes] if len(one) == len(other) else [(len(one), len(other))]
    differ = any(isinstance(left, int) and isinstance(right, int) and left != right for left, right in sizes)
    return f"{first} of shape {layers.shown(one)} and {second} of shape {layers.shown(other)}" if differ else None


# -- masks -------------------------------------------------------------------------------------------------------------


class Masks(dict["Value", "Value"]):
    """The masks that look back only, each with what it was made of."""


@judges_calls(rules.ARRAY_SHAPES, "nnx.make_causal_mask")
def mask_made(event: Called, report: Reporter) -> None:
    tokens = given(event).get(0, "x")
    if tokens is not None and len(event.args) + len(event.keywords) == 1:
        report.memory(Masks)[event.result] = tokens


@judges_calls(rules.ARRAY_SHAPES, "()")
def mask_of_attention(event: Called, report: Reporter) -> None:
    layer, mask = event.callee, event.keywords.get("mask")
    inputs = event.args[0] if event.args else None
    library = layer.cls.called_as if isinstance(layer, Obj) else None
    if library is None or inputs is None or mask is None:
        return
    if library.canonical != "nnx.MultiHeadAttention" or is_tried(event.frame.module, event.node):
        return
    taken, given = forms.literal(inputs).shape, forms.literal(mask).shape
    if report.memory(Masks).get(mask) is inputs:
        problem = f"`{event.name}` gets a mask with an axis too many: its mask was made of features"
        mend = "make it of the tokens, (batch, length), or of `x[..., 0]`"
        report(event.frame.module, event.node, problem=problem, mend=mend)
    elif taken is not None and given is not None and is_whole(taken) and is_whole(given) and len(taken) > 1:
        keys = forms.literal(event.args[1]).shape if len(event.args) > 1 else taken
        long = keys[-2] if keys is not None and len(keys) > 1 and is_whole(keys) else UNKNOWN
        heads = (forms.sizes(layer) or {}).get("num_heads") if isinstance(layer, Obj) else None
        scores = (*taken[:-2], heads if isinstance(heads, int) else UNKNOWN, taken[-2], long)
        if len(given) > len(scores) or broadcast(given, scores) is None:
            problem = f"`{event.name}` gets a mask of shape {layers.shown(given)} for scores {layers.shown(scores)}"
            mend = (
                "make it of (batch, length) by `nnx.make_attention_mask(tokens, tokens)`, or give it an axis for heads"
            )
            report(event.frame.module, event.node, problem=problem, mend=mend)
