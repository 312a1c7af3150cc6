"""``split_inputs`` and ``merge_inputs``: any function of JAX as a transform of functions that work on objects.

``split_inputs(transform(merge_inputs(f)))``: the outer half turns the objects among the arguments into pytrees, the
inner half turns these back for ``f``; what ``f`` changed goes the same way back, as a first result beside its own, and
is written into the caller's objects.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from nnxkit._graph._context import update_context
from nnxkit._graph._trees import clear_non_graph_nodes, from_tree, to_tree


def split_inputs(f: Callable[..., Any], *, ctxtag: str = "split_merge_inputs") -> Callable[..., Any]:
    """Call a function of pytrees, whose results come from `merge_inputs`, with objects.

    >>> import jax, jax.numpy as jnp, nnxkit as nnx
    >>> count = nnx.Variable(jnp.array(0))
    >>> @split_inputs
    ... @jax.jit
    ... @merge_inputs
    ... def up(count):
    ...     count[...] += 1
    >>> up(count)
    >>> int(count[...])
    1
    """

    @functools.wraps(f)
    def wrapper(*args: Any) -> Any:
        with update_context(ctxtag):
            out = f(*to_tree(args, ctxtag=ctxtag))
            return from_tree(out, ctxtag=ctxtag, is_inner=False)[1]

    return wrapper


def merge_inputs(f: Callable[..., Any], *, ctxtag: str = "split_merge_inputs") -> Callable[..., Any]:
    """Call a function of objects with what `split_inputs` makes of them.

    The new function returns the objects among its arguments, and the result, both as pytrees.
    """

    @functools.wraps(f)
    def wrapper(*pure_args: Any) -> Any:
        args = from_tree(pure_args, ctxtag=ctxtag, is_inner=True)
        out = f(*args)
        return to_tree((clear_non_graph_nodes(args), out), ctxtag=ctxtag)

    return wrapper
