"""Results that flax leaves open, of layers and functions that give arrays.

An annotation wins where there is one: nnxkit has them all, and flax gains some with every version.
"""

from __future__ import annotations

from typing import Final

from mypy.nodes import TypeInfo
from mypy.types import AnyType, Instance, Type, get_proper_type

from nnx_mypy.arguments import Context, arguments
from nnx_mypy.library import ARRAY, Library

FUNCTIONS: Final = frozenset({"avg_pool", "dot_product_attention", "make_attention_mask", "max_pool", "min_pool"})
CALLS: Final = frozenset(
    {
        "BatchNorm",
        "GroupNorm",
        "InstanceNorm",
        "LayerNorm",
        "LoRA",
        "LoRALinear",
        "MultiHeadAttention",
        "RMSNorm",
        "Rngs",
    }
)
"""Classes whose instances give an array when they are called."""
COMBINED: Final = "combine_masks"


def array(context: Context, library: Library) -> Type:
    """An array, unless the result is declared."""
    default = get_proper_type(context.default_return_type)
    found = library.lookup(ARRAY) if isinstance(default, AnyType) else None
    return Instance(found.node, []) if found is not None and isinstance(found.node, TypeInfo) else default


def combined(context: Context, library: Library) -> Type:
    """``combine_masks``: an array if one of the masks is, for it leaves out what is ``None``."""
    types = (get_proper_type(given.type) for given in arguments(context) or ())
    arrays = (each for each in types if isinstance(each, Instance) and each.type.fullname == ARRAY)
    return next(arrays, context.default_return_type)
