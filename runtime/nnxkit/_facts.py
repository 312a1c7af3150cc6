"""Facts about live values, for the decision between data and static.

``nnx_rules.attributes.decide`` says what an assignment does; this module only says what the value *is*. One table
maps exact types to facts: Pytree and Variable classes enter themselves when they are created,
``nnx.register_data_type`` adds the types of the user, and leaf types of Python and JAX are there from the start. What
is not in the table is looked at: JAX either flattens it (a container) or not (other).

Containers are walked one level at a time, so that a long list of numbers costs one pass over its element types, and
data is never flattened further: a module in a list is one data leaf.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

import jax
import jax.core
import numpy as np

from nnx_rules.attributes import DATA_KINDS, Kind, Tag, ValueFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class StatusTag:
    """A value with its explicit status: what ``nnx.data(value)`` and ``nnx.static(value)`` return.

    Assigning it to an attribute of a Pytree stores the value and sets the status; anywhere else it means nothing.
    """

    __slots__ = ("tag", "value")

    def __init__(self, tag: Tag, value: Any) -> None:
        self.tag = tag
        self.value = value

    def __repr__(self) -> str:
        return f"nnx.{self.tag.value}({self.value!r})"


PLAIN = {kind: ValueFacts(kind) for kind in Kind}
"""The facts of an untagged value that is no container, by kind."""

_LEAF_TYPES: tuple[type, ...] = (
    *(
        int,
        float,
        complex,
        bool,
        str,
        bytes,
        bytearray,
        set,
        frozenset,
        range,
        slice,
        type,
        type(Ellipsis),
        type(NotImplemented),
    ),
    *(types.NoneType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, np.dtype),
)
_OTHER = PLAIN[Kind.OTHER]
_FACTS: dict[type, ValueFacts] = dict.fromkeys(_LEAF_TYPES, _OTHER)
_LEAF_BASES: tuple[tuple[tuple[type, ...], Kind], ...] = (
    ((jax.Array, np.ndarray, jax.core.Tracer), Kind.ARRAY),
    ((jax.Ref,), Kind.REF),
    ((np.generic,), Kind.OTHER),
)
_flatten_one_level = jax.tree_util.default_registry.flatten_one_level


def register_kind(cls: type, kind: Kind) -> None:
    """Say what the instances of exactly ``cls`` are."""
    _FACTS[cls] = PLAIN[kind]


def _children(value: Any) -> Iterable[Any] | None:
    """The direct children of a container as JAX sees them, ``None`` for a leaf."""
    if type(value) is dict:
        try:
            return [value[key] for key in sorted(value)]
        except TypeError:  # JAX would refuse to flatten it, but what it holds is known
            return value.values()
    if type(value) is list or type(value) is tuple:
        children: Iterable[Any] = value
        return children
    flattened = _flatten_one_level(value)
    return None if flattened is None else tuple(flattened[0])


def _look_at_leaf(value: Any) -> ValueFacts | None:
    """Facts of an array, reference or numpy scalar whose type is not in the table yet; ``None`` for anything else."""
    for bases, kind in _LEAF_BASES:
        if isinstance(value, bases):
            register_kind(type(value), kind)
            return PLAIN[kind]
    return None


def _look(value: Any) -> ValueFacts:
    """Facts of a value whose type is not in the table."""
    facts = _look_at_leaf(value)
    if facts is None:
        # Not remembered: the class may be registered with JAX later.
        children = _children(value)
        facts = _OTHER if children is None else _container_facts(children)
    return facts


def _walk(children: Iterable[Any], on_data: Callable[[Any], None], on_tag: Callable[[StatusTag], None]) -> None:
    """Visit the data leaves and the tags below a container, in order."""
    if all(_FACTS.get(cls) is _OTHER for cls in set(map(type, children))):
        return
    for child in children:
        if isinstance(child, StatusTag):
            on_tag(child)
            continue
        facts = _FACTS.get(type(child)) or _look_at_leaf(child)
        if facts is None:
            grandchildren = _children(child)
            if grandchildren is not None:
                _walk(grandchildren, on_data, on_tag)
        elif facts.kind in DATA_KINDS:
            on_data(child)


def _container_facts(children: Iterable[Any]) -> ValueFacts:
    data: list[Any] = []
    tags: list[StatusTag] = []
    _walk(children, data.append, tags.append)
    return ValueFacts(Kind.CONTAINER, holds_data=bool(data), inner_tags=frozenset(tag.tag for tag in tags))


def facts_of(value: Any, tag: Tag | None = None) -> ValueFacts:
    """What is known of ``value``, below the explicit ``tag`` that was around it."""
    facts = _FACTS.get(type(value))
    if facts is None:
        if isinstance(value, StatusTag):
            return ValueFacts(Kind.OTHER, tag, inner_tags=frozenset((value.tag,)))
        facts = _look(value)
    return facts if tag is None else facts.replaced(tag=tag)


def is_data(value: Any, /) -> bool:
    """Whether a value, by itself, is data: an array, a Variable, an array reference, a Pytree, or an instance of a
    registered type.

    Containers are never data by themselves, whatever they hold.

    >>> import jax.numpy as jnp
    >>> is_data(jnp.zeros(2)), is_data(1.0), is_data([jnp.zeros(2)])
    (True, False, False)
    """
    return facts_of(value).kind in DATA_KINDS


def has_data(value: Any, /) -> list[Any]:
    """The data leaves of a value, as JAX flattens it; an empty list means that the value may be static.

    >>> import numpy as np
    >>> len(has_data({"a": np.zeros(2), "b": [1, np.ones(3)]}))
    2
    """
    data: list[Any] = []
    _walk([value], data.append, lambda tag: None)
    return data


def describe(value: Any) -> str:
    """Name a value for an error message: ``a list that holds ArrayImpl``.

    >>> describe([1, 2]), describe(int)
    ('a list', 'the class `int`')
    """
    if isinstance(value, type):
        return f"the class `{value.__name__}`"
    cls = type(value)
    kind = facts_of(value).kind
    if kind is Kind.ARRAY:
        shape = getattr(value, "shape", None)
        return f"an array of shape {shape}"
    article = "an" if cls.__name__[:1] in "AEIOUaeiou" else "a"
    if kind is not Kind.CONTAINER:
        return f"{article} {cls.__name__}"
    held = dict.fromkeys(
        "arrays" if facts_of(leaf).kind is Kind.ARRAY else type(leaf).__name__ for leaf in has_data(value)
    )
    return f"{article} {cls.__name__} of {', '.join(held)}" if held else f"{article} {cls.__name__}"
