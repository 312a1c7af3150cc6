"""`State`: the values of a graph as nested mappings.

A State has two forms, and holds at least one of them: *flat* (sorted paths beside leaves, which is what graph functions
produce and consume) and *nested* (dictionaries, which is what users index). Each is made from the other when it is
first needed.

Invariants

- Paths of the flat form are sorted by `path_rank`; it is shared with the plan that made it and never edited.
- Once a nested dictionary can be reached from outside (``state["a"]`` is a view that writes through), the flat form is
  dropped for good: it could go stale unseen. Until then a State that copied its levels is *private*: it cannot change.
- Levels of the nested form are exact ``dict`` objects; a mapping that is stored becomes one. Everything else is a leaf.
- As a JAX pytree, a State has one child a key, in sorted order. Levels are children as plain dictionaries, except
  levels that mix integers with strings, which JAX cannot order: these are wrapped as States.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, ClassVar, TypeVar

import jax

from nnxkit._deprecation import deprecated
from nnxkit._state import _nested
from nnxkit._state._nested import Nested
from nnxkit._state._order import Key, Path, sorted_keys

Flat = tuple[Sequence[Path], list[Any]]
F = TypeVar("F", bound=Callable[..., Any])


class State(MutableMapping[Key, Any]):
    """The values of a graph: a mapping from attribute names and indices to Variables, arrays, or deeper States.

    Items are also attributes: ``state.linear.kernel`` is ``state["linear"]["kernel"]``. A State is a JAX pytree whose
    leaves are those of its Variables.

    Args:
        mapping: nested mappings, or pairs of key and value. Its levels are copied, its leaves are not.

    >>> import nnxkit as nnx
    >>> nnx.State({"a": {"b": 1}})
    State({
      'a': {
        'b': 1
      }
    })
    """

    __slots__ = ("__weakref__", "_flat", "_private", "_tree", "_uniform")
    __module__ = "nnxkit"

    _flat: Flat | None
    _private: bool
    _tree: Nested | None
    _uniform: bool | None

    def __init__(self, mapping: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = (), /, *, _copy: bool = True) -> None:
        if isinstance(mapping, State) and not _copy:
            tree = mapping._expose()
        elif type(mapping) is dict and not _copy:
            tree = mapping
        else:
            pairs: Any = mapping if isinstance(mapping, Mapping) else dict(mapping)
            tree = _own(pairs)
        _fill(self, None, tree, private=_copy)

    @classmethod
    def from_sorted(cls, paths: Sequence[Path], leaves: list[Any]) -> State:
        """A State over sorted paths and their leaves, taken as they are."""
        self = cls.__new__(cls)
        _fill(self, (paths, leaves), None)
        return self

    # The two forms

    def _nested(self) -> Nested:
        """The nested form, for reading only."""
        if self._tree is None:
            assert self._flat is not None
            object.__setattr__(self, "_tree", _nested.nest(*self._flat))
        assert self._tree is not None
        return self._tree

    def _expose(self) -> Nested:
        """The nested form, to be written to or handed out; the flat form ends here."""
        tree = self._nested()
        object.__setattr__(self, "_flat", None)
        object.__setattr__(self, "_private", False)
        return tree

    def is_private(self) -> bool:
        """Whether no level can be reached except through this State, which has handed out none."""
        return self._private

    def flat_items(self) -> Flat:
        """Sorted paths and leaves. Neither may be edited."""
        if self._flat is not None:
            return self._flat
        return _nested.flatten_nested(self._nested())

    @property
    def raw_mapping(self) -> Nested:
        """The nested dictionaries themselves, without copying."""
        return self._expose()

    # Mapping

    def __getitem__(self, key: Key) -> Any:
        value = self._nested()[key]
        if type(value) is dict:
            self._expose()
            return _view(value)
        return value

    def __setitem__(self, key: Key, value: Any) -> None:
        self._expose()[key] = _own(value) if isinstance(value, Mapping) else value

    def __delitem__(self, key: Key) -> None:
        del self._expose()[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._nested())

    def __len__(self) -> int:
        return len(self._nested())

    def __contains__(self, key: object) -> bool:
        return key in self._nested()

    def __getattr__(self, name: str) -> Any:
        # Dunder names are looked up by copy, pickle and numpy before a State is complete.
        if not name.startswith("__"):
            try:
                return self[name]
            except KeyError:
                pass
        raise AttributeError(f"No attribute '{name}' in State")

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(f"No attribute '{name}' in State") from None

    def __dir__(self) -> Iterable[str]:
        return sorted({*super().__dir__(), *(key for key in self if isinstance(key, str))})

    def __eq__(self, other: object) -> bool:
        if isinstance(other, State):
            return self._nested() == other._nested()
        return self._nested() == other if isinstance(other, Mapping) else NotImplemented

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __or__(self, other: Mapping[Key, Any]) -> State:
        """A new State with the leaves of both; those of ``other`` win."""
        if not isinstance(other, Mapping):
            return NotImplemented
        tree = _own(self)
        _nested.merge_nested(tree, _own(other))
        return State(tree, _copy=False)

    @deprecated("`State - State` is deprecated: use `nnx.filter_state`")
    def __sub__(self, other: Mapping[Key, Any]) -> State:
        """Deprecated: the leaves whose paths are not in ``other``."""
        if not isinstance(other, Mapping):
            return NotImplemented
        gone = set(State(other).flat_items()[0])
        kept = [item for item in zip(*self.flat_items(), strict=True) if item[0] not in gone]
        return State.from_sorted([path for path, _ in kept], [leaf for _, leaf in kept])

    def __copy__(self) -> State:
        return State(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (State, (_own(self),))

    def __repr__(self) -> str:
        from nnxkit._state._show import show_state

        return show_state(self)

    def __treescope_repr__(self, path: Any, subtree_renderer: Any) -> Any:
        from nnxkit._treescope import render_mapping

        return render_mapping(self, self._nested(), path, subtree_renderer)

    # Names of older code

    @deprecated("`State.flat_state` is deprecated: use `nnx.to_flat_state`")
    def flat_state(self) -> Any:
        """Deprecated: use `nnx.to_flat_state`."""
        from nnxkit._state import _functions

        return _functions.to_flat_state(self)

    @classmethod
    @deprecated("`State.from_flat_path` is deprecated: use `nnx.from_flat_state`")
    def from_flat_path(cls, flat_state: Any, /) -> State:
        """Deprecated: use `nnx.from_flat_state`."""
        from nnxkit._state import _functions

        state: State = _functions.from_flat_state(flat_state, cls=cls)
        return state

    @deprecated("`State.split` is deprecated: use `nnx.split_state`")
    def split(self, first: Any, /, *filters: Any) -> Any:
        """Deprecated: use `nnx.split_state`."""
        from nnxkit._state import _functions

        return _functions.split_state(self, first, *filters)

    @deprecated("`State.filter` is deprecated: use `nnx.filter_state`")
    def filter(self, first: Any, /, *filters: Any) -> Any:
        """Deprecated: use `nnx.filter_state`."""
        from nnxkit._state import _functions

        return _functions.filter_state(self, first, *filters)

    @classmethod
    @deprecated("`State.merge` is deprecated: use `nnx.merge_state`")
    def merge(cls, state: Mapping[Key, Any], /, *states: Mapping[Key, Any]) -> State:
        """Deprecated: use `nnx.merge_state`."""
        from nnxkit._state import _functions

        merged: State = _functions.merge_state(state, *states, cls=cls)
        return merged

    @deprecated("`State.map` is deprecated: use `nnx.map_state`")
    def map(self, f: Callable[[Path, Any], Any]) -> State:
        """Deprecated: use `nnx.map_state`."""
        from nnxkit._state import _functions

        return _functions.map_state(f, self)

    @deprecated("`State.to_pure_dict` is deprecated: use `nnx.to_pure_dict`")
    def to_pure_dict(self, extract_fn: Callable[[Any], Any] | None = None) -> dict[Key, Any]:
        """Deprecated: use `nnx.to_pure_dict`."""
        from nnxkit._state import _functions

        return _functions.to_pure_dict(self, extract_fn)

    @deprecated("`State.replace_by_pure_dict` is deprecated: use `nnx.replace_by_pure_dict`")
    def replace_by_pure_dict(
        self, pure_dict: Mapping[Key, Any], replace_fn: Callable[[Any, Any], Any] | None = None
    ) -> None:
        """Deprecated: use `nnx.replace_by_pure_dict`."""
        from nnxkit._state import _functions

        _functions.replace_by_pure_dict(self, pure_dict, replace_fn)


def _fill(state: State, flat: Flat | None, tree: Nested | None, *, private: bool = False) -> None:
    # State.__setattr__ writes items, so the slots are written around it.
    object.__setattr__(state, "_flat", flat)
    object.__setattr__(state, "_private", private)
    object.__setattr__(state, "_tree", tree)
    object.__setattr__(state, "_uniform", None)


def _view(level: Nested) -> State:
    """A State over a level of another State; writes go through."""
    state = State.__new__(State)
    _fill(state, None, level)
    return state


def _own(mapping: Mapping[Key, Any]) -> Nested:
    """Nested dictionaries of our own, with the same leaves."""
    source = mapping._nested() if isinstance(mapping, State) else mapping
    return {key: _own(value) if isinstance(value, Mapping) else value for key, value in source.items()}


# JAX


def _flatten(state: State) -> tuple[list[Any], tuple[Key, ...]]:
    tree = state._nested()
    keys = sorted_keys(tree)
    if state._flat is None:
        uniform = all(_nested.is_uniform_tree(value) for value in tree.values() if type(value) is dict)
    else:
        # Nobody else holds the nested form, so the answer can be kept.
        if state._uniform is None:
            inner = (value for value in tree.values() if type(value) is dict)
            object.__setattr__(state, "_uniform", all(map(_nested.is_uniform_tree, inner)))
        uniform = bool(state._uniform)
    if uniform:
        return [tree[key] for key in keys], tuple(keys)
    return [_jax_child(tree[key]) for key in keys], tuple(keys)


def _jax_child(value: Any) -> Any:
    return _view(value) if type(value) is dict and not _nested.is_uniform_tree(value) else value


def _flatten_with_keys(state: State) -> tuple[list[tuple[Any, Any]], tuple[Key, ...]]:
    children, keys = _flatten(state)
    return [(jax.tree_util.DictKey(key), child) for key, child in zip(keys, children, strict=True)], keys


def _unflatten(keys: tuple[Key, ...], children: Iterable[Any]) -> State:
    return _view(
        {key: child._nested() if isinstance(child, State) else child for key, child in zip(keys, children, strict=True)}
    )


jax.tree_util.register_pytree_with_keys(State, _flatten_with_keys, _unflatten, _flatten)
