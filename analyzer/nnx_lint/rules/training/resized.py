"""Networks of one class that are two: a layer of the one has another size than the same layer of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.classes import UserClass
from nnx_lint.model.elements import library_elements
from nnx_lint.model.forms import is_int, sizes
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Obj

if TYPE_CHECKING:
    from nnx_lint.model.values import Value


def of_other_size(known: Value, model: Value) -> str | None:
    """What tells a model from another one of its class: a layer of another size."""
    known = present(known)
    if not isinstance(known, Obj) or not isinstance(model, Obj) or known.assumed or model.assumed:
        return None
    return _resized_layer(known, model)


def _resized_layer(known: Obj, model: Obj, depth: int = 4) -> str | None:
    if known.cls is not model.cls or not depth:
        return None
    parts = _parts(model)
    for name, one in _parts(known).items():
        other = parts.get(name, UNKNOWN)
        if not isinstance(one, Obj) or not isinstance(other, Obj) or one is other:
            continue
        inner = _resized_layer(one, other, depth - 1)
        if inner is not None or is_resized(one, other):
            return f"{name}.{inner}".replace(".[", "[") if inner is not None else name
    return None


def _parts(obj: Obj) -> dict[str, Value]:
    """What an object of the project holds, by name, or a container of layers, by place."""
    if isinstance(obj.cls, UserClass):
        held = ((name, attribute_of(obj, name)) for name in attribute_names(obj))
        return {name: attr.value for name, attr in held if attr is not None}
    of_sequential = attribute_of(obj, "layers") if obj.cls.derives_from("nnx.Sequential") else None
    container = of_sequential.value if of_sequential is not None else obj
    elements = library_elements(container) if isinstance(container, Obj) else None
    known = elements is not None and elements.exact and (of_sequential is not None or obj.cls.derives_from("nnx.List"))
    path = "layers" if of_sequential is not None else ""
    return {f"{path}[{place}]": item for place, item in enumerate(elements.items)} if known and elements else {}


def is_resized(old: Value, new: Obj) -> bool:
    """Whether a layer takes the place of one of another size."""
    if not isinstance(old, Obj) or old.cls is not new.cls:
        return False
    before, after = sizes(old) or {}, sizes(new) or {}
    return any(is_int(before.get(name)) and is_int(after.get(name)) and before[name] != after[name] for name in SIZES)


SIZES = ("features", "in_features", "num_embeddings", "num_features", "out_features")
"""Arguments of layers that are sizes of their parameters."""
