"""Functions of networks: the shapes of masks, and of what attention and pools give.

Invariants: as in :mod:`~nnx_lint.model.operations`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.forms import NOTHING, literal, plain, shape_of
from nnx_rules import shape_algebra as algebra
from nnx_rules.shapes import Form

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnx_lint.model.calls import Arguments


def _causal(args: Arguments) -> Form:
    """The mask of attention that looks back only: of tokens, it has an axis of one, and length by length."""
    shape = literal(args.get(0, "x")).shape
    if not shape or args.get(1, "extra_batch_dims") is not None:
        return NOTHING
    return Form((*shape[:-1], 1, shape[-1], shape[-1]), None)


def _pooled(args: Arguments) -> Form:
    known, size = literal(args.get(0, "inputs")), shape_of(args.get(1, "window_shape"))
    padding = args.get(3, "padding")
    if known.shape and not algebra.is_whole(known.shape) and algebra.is_whole(known.shape[-1:]):
        return Form((algebra.ANY, known.shape[-1]), known.dtype)  # the last axis is that of the features
    if known.shape is None or size is None or len(known.shape) != len(size) + 2:
        return NOTHING
    given = args.get(2, "strides")
    steps = shape_of(given) if given is not None else None
    if given is not None and steps is None:
        return NOTHING
    how = "VALID" if padding is None else plain(padding)
    batch, *axes, last = known.shape
    return Form((batch, *algebra.window(tuple(axes), size, steps, how), last), known.dtype)


def _masked(args: Arguments) -> Form:
    """The mask of attention between two sequences of tokens: it has an axis of one, and length by length."""
    query, key = (literal(args.get(place, name)).shape for place, name in ((0, "query_input"), (1, "key_input")))
    if not query or not key or len(args.positional) > 2 or args.keywords.keys() - {"query_input", "key_input", "dtype"}:
        return NOTHING
    batch = algebra.broadcast(query[:-1], key[:-1])
    known = batch is not None and algebra.is_whole(query) and algebra.is_whole(key)
    return Form((*batch, 1, query[-1], key[-1]), None) if known and batch is not None else NOTHING


def _attended(args: Arguments) -> Form:
    """What attention gives: for each query a sum of values."""
    query, value = (literal(args.get(place, name)) for place, name in ((0, "query"), (2, "value")))
    if not query.shape or not value.shape or not algebra.is_whole(query.shape) or not algebra.is_whole(value.shape):
        return NOTHING
    return Form((*query.shape[:-1], value.shape[-1]), query.dtype)


FUNCTIONS: dict[str, Callable[[Arguments], Form]] = {
    **dict.fromkeys(("nnx.avg_pool", "nnx.max_pool", "nnx.min_pool"), _pooled),
    **dict.fromkeys(("jax.nn.dot_product_attention", "nnx.dot_product_attention"), _attended),
    "nnx.make_attention_mask": _masked,
    "nnx.make_causal_mask": _causal,
}
"""What the functions return, by canonical name."""
