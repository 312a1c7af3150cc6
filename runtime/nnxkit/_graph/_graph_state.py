"""`GraphState`: a State together with the structure that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any, Generic

import jax

from nnxkit._graph._graphdef import GraphDef, Node
from nnxkit._repr import block
from nnxkit._state import State
from nnxkit._state._order import Key
from nnxkit._state._tree import _flatten as flatten_state


class GraphState(MutableMapping[Key, Any], Generic[Node]):
    """A State with its GraphDef: what `nnx.unpack` returns and `nnx.merge` takes. Items and attributes are those of the
    State.
    """

    __slots__ = ("__weakref__", "_graphdef", "_state")
    __module__ = "nnxkit"

    _graphdef: GraphDef[Node]
    _state: Any

    def __init__(self, _graphdef: GraphDef[Node], _state: Any) -> None:
        object.__setattr__(self, "_graphdef", _graphdef)
        object.__setattr__(self, "_state", _state)

    def __getitem__(self, key: Key) -> Any:
        return self._state[key]

    def __setitem__(self, key: Key, value: Any) -> None:
        self._state[key] = value

    def __delitem__(self, key: Key) -> None:
        del self._state[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._state)

    def __len__(self) -> int:
        return len(self._state)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in GraphState.__slots__:
            raise AttributeError(f"No attribute '{name}' in GraphState")
        return getattr(self._state, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._state[name] = value

    def __reduce__(self) -> tuple[Any, ...]:
        return GraphState, (self._graphdef, self._state)

    def __repr__(self) -> str:
        return block("GraphState(", (f"_graphdef={self._graphdef!r}", f"_state={self._state!r}"), ")")

    def __treescope_repr__(self, path: Any, subtree_renderer: Any) -> Any:
        from nnxkit._treescope import render_mapping

        return render_mapping(self, self, path, subtree_renderer)


_Aux = tuple[GraphDef[Any], tuple[Key, ...]]


def _flatten(graph_state: GraphState[Any]) -> tuple[list[Any], _Aux]:
    children, keys = flatten_state(graph_state._state)
    return children, (graph_state._graphdef, keys)


def _flatten_with_keys(graph_state: GraphState[Any]) -> tuple[list[tuple[Any, Any]], _Aux]:
    children, aux = _flatten(graph_state)
    return list(zip(map(jax.tree_util.DictKey, aux[1]), children, strict=True)), aux


def _unflatten(aux: _Aux, children: Iterable[Any]) -> GraphState[Any]:
    graphdef, keys = aux
    return GraphState(graphdef, State(dict(zip(keys, children, strict=True))))


jax.tree_util.register_pytree_with_keys(GraphState, _flatten_with_keys, _unflatten, _flatten)
