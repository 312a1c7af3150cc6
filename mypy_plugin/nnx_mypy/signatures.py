"""Parameters that annotations make too narrow.

A mapping from filters is declared by what a filter may be, and the keys of a mapping type are invariant: a dictionary
whose keys are all of one kind, such as ``{...: nnx.Carry}``, would be an error.
"""

from __future__ import annotations

from mypy.plugin import FunctionSigContext
from mypy.types import CallableType, FunctionLike, Instance, Type, UnionType, get_proper_type

from nnx_mypy.library import anything

MAPPINGS = frozenset({"typing.Mapping", "builtins.dict"})


def with_any_filters(context: FunctionSigContext) -> FunctionLike:
    """The signature, where keys of mappings may be anything."""
    signature: CallableType = context.default_signature
    return signature.copy_modified(arg_types=[_loosened(each) for each in signature.arg_types])


def _loosened(type: Type) -> Type:
    proper = get_proper_type(type)
    if isinstance(proper, UnionType):
        return UnionType.make_union([_loosened(item) for item in proper.items])
    if isinstance(proper, Instance) and proper.type.fullname in MAPPINGS:
        return proper.copy_modified(args=[anything(), *proper.args[1:]])
    return type
