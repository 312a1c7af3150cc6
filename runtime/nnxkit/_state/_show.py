"""How States print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnxkit._repr import block, represent

if TYPE_CHECKING:
    from nnxkit._state._flat import FlatState
    from nnxkit._state._nested import Nested
    from nnxkit._state._tree import State


def show_state(state: State) -> str:
    """A State as its constructor would be written, one key a line."""
    return f"State({_show_level(state._nested())})"


def _show_level(tree: Nested) -> str:
    return block("{", (f"{key!r}: {_show_value(value)}" for key, value in tree.items()), "}")


def _show_value(value: Any) -> str:
    return _show_level(value) if type(value) is dict else represent(value)


def show_flat_state(state: FlatState) -> str:
    """A FlatState as a list of pairs, one a line."""
    return block("FlatState([", (f"({path!r}, {represent(leaf)})" for path, leaf in state), "])")
