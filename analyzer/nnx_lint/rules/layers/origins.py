"""Where the shapes of arrays come from: the places that a finding about shapes names besides its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.values import TakenArray
from nnx_lint.reporting import related
from nnx_rules import layers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nnx_lint.diagnostics import Related
    from nnx_lint.model.values import Array
    from nnx_rules.shapes import Shape


def shape_of(array: Array) -> Shape | None:
    """The shape of an array, as far as it is known."""
    return array.form.shape if array.form is not None else None


def origins_of(arrays: Iterable[Array]) -> tuple[Related, ...]:
    """Where layers made the arrays, or took them."""
    return tuple(place for array in arrays for place in _origin(array))


def _origin(array: Array) -> Iterator[Related]:
    shown = layers.shown(shape_of(array) or ())
    if array.maker is not None:
        name, module, node = array.maker
        yield related(module, node, f"`{name}` gives {shown}")
    elif isinstance(array, TakenArray) and array.taker is not None:
        name, module, node = array.taker
        yield related(module, node, f"`{name}` takes it as {shown}")
