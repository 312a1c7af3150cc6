"""What can hold a captured object, and how to make a copy of it that holds another one.

A *shape* is a kind of value that captures are looked for in: functions, partials, bound methods, containers, instances
of plain classes (`_captures_instances`), and the wrappers of transforms. A table says the shape of each builtin type; a
value without a shape is *opaque* and is never looked into: a class, an array. (Modules are opaque as well. What matters
of them are the attributes that a function uses, so it is the function that is asked for those.)

Invariants

- The parts of a value are named by keys that hold for as long as the value is not changed.
- A rebuilt value is a copy with some parts replaced; the others are those that the value has then.
- Functions and instances have no ``rebuilt``: they can be part of a cycle, so whoever copies them makes first all of
  them, then fills them (`_captures_rebind`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Mapping
from operator import attrgetter
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import jax

from nnxkit._pytree import Pytree
from nnxkit._transforms._captures_instances import Layout, layout_of
from nnxkit._variable import Variable

Key = Hashable
Parts = Iterator[tuple[Key, str, Any]]
"""Key, name for people (after the name of the whole), and value of each part."""


class Shape(NamedTuple):
    """A kind of value that can hold captured objects.

    Attributes:
        name: what it is called in signatures.
        parts: its parts.
        rebuilt: a copy with other values at some keys; ``None`` for functions and instances.
        read: what can be put in place of something else later, as a tuple; ``None`` if nothing can.
        keys: the keys of what `read` reads, if they can change.
        keeps_parts: whether reading twice gives the same objects. How a registered class keeps its children is its
            own business.
        layout: where instances of a plain class keep their attributes; ``None`` for all other kinds.
    """

    name: str
    parts: Callable[[Any], Parts]
    rebuilt: Callable[[Any, Mapping[Key, Any]], Any] | None = None
    read: Callable[[Any], tuple[Any, ...]] | None = None
    keys: Callable[[Any], tuple[Key, ...]] | None = None
    keeps_parts: bool = True
    layout: Layout | None = None


def is_object(value: Any) -> bool:
    """Whether ``value`` is what captures are: a Pytree or a Variable."""
    return isinstance(value, (Pytree, Variable))


_flatten_one_level = jax.tree_util.default_registry.flatten_one_level


def _function_parts(function: FunctionType) -> Parts:
    for attribute in ("__defaults__", "__kwdefaults__"):
        yield attribute, f".{attribute}", getattr(function, attribute)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield ("cell", name), name, cell.cell_contents
        except ValueError:  # nothing was assigned yet
            continue


def _attribute_parts(*attributes: str) -> Callable[[Any], Parts]:
    def parts(value: Any) -> Parts:
        for attribute in attributes:
            yield attribute, f".{attribute}", getattr(value, attribute)

    return parts


def _method_parts(method: MethodType) -> Parts:
    yield "__func__", ".__func__", method.__func__
    yield "__self__", "self", method.__self__


def _sequence_parts(sequence: Any) -> Parts:
    for index, item in enumerate(sequence):
        yield index, f"[{index}]", item


def _dict_parts(items: dict[Any, Any]) -> Parts:
    for key, item in list(items.items()):
        yield key, f"[{key!r}]", item


def _registered_parts(node: Any) -> Parts:
    yield from _sequence_parts(_flatten_one_level(node)[0])


def _wrapper_parts(wrapper: Any) -> Parts:
    yield "wrapped", "", wrapper.__nnx_wrapped__()


def _rebuild_partial(partial: functools.partial[Any], new: Mapping[Key, Any]) -> Any:
    func, args, keywords = (new.get(name, getattr(partial, name)) for name in ("func", "args", "keywords"))
    copy = type(partial)(func, *args, **keywords)
    vars(copy).update(vars(partial))
    return copy


def _rebuild_method(method: MethodType, new: Mapping[Key, Any]) -> Any:
    return MethodType(new.get("__func__", method.__func__), new.get("__self__", method.__self__))


def _rebuild_descriptor(descriptor: Any, new: Mapping[Key, Any]) -> Any:
    return type(descriptor)(new["__func__"])


def _rebuild_sequence(sequence: Any, new: Mapping[Key, Any]) -> Any:
    return type(sequence)(new.get(index, item) for index, item in enumerate(sequence))


def _rebuild_dict(items: dict[Any, Any], new: Mapping[Key, Any]) -> Any:
    return {**items, **new}


def _rebuild_registered(node: Any, new: Mapping[Key, Any]) -> Any:
    children, treedef = jax.tree.flatten(node, is_leaf=lambda value: value is not node)
    return jax.tree.unflatten(treedef, [new.get(index, child) for index, child in enumerate(children)])


def _rebuild_wrapper(wrapper: Any, new: Mapping[Key, Any]) -> Any:
    return wrapper.__nnx_rewrap__(new["wrapped"])


def _read_dict(items: dict[Any, Any]) -> tuple[Any, ...]:
    return tuple(items.values())


def _read_registered(node: Any) -> tuple[Any, ...]:
    return tuple(_flatten_one_level(node)[0])


FUNCTION = Shape("function", _function_parts, read=attrgetter("__defaults__", "__kwdefaults__"))
_PARTIAL = Shape("partial", _attribute_parts("func", "args", "keywords"), _rebuild_partial)
_METHOD = Shape("method", _method_parts, _rebuild_method)
_DESCRIPTOR = Shape("descriptor", _attribute_parts("__func__"), _rebuild_descriptor)
_LIST = Shape("list", _sequence_parts, _rebuild_sequence, tuple)
_TUPLE = Shape("tuple", _sequence_parts, _rebuild_sequence)
_DICT = Shape("dict", _dict_parts, _rebuild_dict, _read_dict, tuple)
_WRAPPER = Shape("transform", _wrapper_parts, _rebuild_wrapper)
_REGISTERED = Shape("registered", _registered_parts, _rebuild_registered, _read_registered, keeps_parts=False)

_SHAPES: dict[type, Shape | None] = {
    FunctionType: FUNCTION,
    MethodType: _METHOD,
    functools.partial: _PARTIAL,
    staticmethod: _DESCRIPTOR,
    classmethod: _DESCRIPTOR,
    list: _LIST,
    tuple: _TUPLE,
    dict: _DICT,
    **dict.fromkeys((type(None), bool, int, float, complex, str, bytes, type)),
}


def shape_of(value: Any) -> Shape | None:
    """The shape of ``value``, which is no object; ``None`` if it is opaque."""
    cls = type(value)
    if cls in _SHAPES:
        return _SHAPES[cls]
    if hasattr(cls, "__nnx_wrapped__"):
        return _WRAPPER
    if isinstance(value, functools.partial):
        return _PARTIAL
    if _flatten_one_level(value) is not None:
        return _REGISTERED
    layout = layout_of(cls)
    return None if layout is None else Shape("instance", layout.parts, None, layout.read, layout.keys, layout=layout)
