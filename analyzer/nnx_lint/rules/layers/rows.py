"""Arrays that are taken apart into names along their first axis, which has another number of elements (NNX826).

``k, v = kv`` goes over the first axis, wherever the two stand side by side. Invariants: as for all shapes
(:mod:`~nnx_lint.rules.layers.operands`); a first axis that is only known by a name is another one where a later axis
has just as many elements as there are names.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.events import Unpacked
from nnx_lint.model.values import Array
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.layers.operands import is_prepared
from nnx_lint.rules.layers.origins import origins_of, shape_of
from nnx_lint.rules.program import canonical_of
from nnx_rules import layers
from nnx_rules.rules import modules as rules
from nnx_rules.shape_algebra import is_whole
from nnx_rules.sizes import Size

if TYPE_CHECKING:
    from nnx_rules.shapes import Shape


@judges(rules.ARRAY_SHAPES, Unpacked, of=(Array,))
def taken_apart(event: Unpacked, report: Reporter) -> None:
    array = event.value
    shape = shape_of(array) if isinstance(array, Array) else None
    if not shape or event.count is None or not is_whole(shape) or not _is_other(shape, event.count):
        return
    if isinstance(array, Array) and not _are_keys(event) and not is_prepared(event.frame, event.node):
        shown = f"{layers.shown(shape)}, whose first axis has {shape[0]}"
        problem = f"an array of shape {shown}, is taken by {event.count} names"
        mend = "names take an array apart along its first axis: `jnp.moveaxis`, or an index, gets at another one"
        report(event.frame.module, event.value_node, related=origins_of((array,)), problem=problem, mend=mend)


def _are_keys(event: Unpacked) -> bool:
    """Whether the array is what ``jax.random.split`` returns, of which NNX462 says how many names it takes."""
    call = event.value_node
    return isinstance(call, ast.Call) and canonical_of(event.frame.env, call.func) == "jax.random.split"


def _is_other(shape: Shape, count: int) -> bool:
    """Whether so many names certainly do not take all elements of the first axis, or are meant for a later one."""
    first = shape[0]
    return first != count if isinstance(first, int) else isinstance(first, Size) and count in shape[1:] and count > 1
