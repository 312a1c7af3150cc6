"""``Pytree``: an ordinary Python object that is also a JAX pytree.

Attributes live in ``__dict__``, in the order of their assignment. Beside it, each object keeps which of them are
*data* (children of the JAX tree) and which *static* (part of its structure). Every assignment asks
``nnx_rules.attributes.decide`` with the facts of the value; reads are plain attribute reads.

Invariants:

* construction is: ``__new__`` makes the bookkeeping, ``__init__`` runs, then attributes that bypassed
  ``__setattr__`` get their status and every attribute is looked at once more, because a container may have been
  filled since it was assigned;
* the status of an attribute is forgotten exactly when the attribute goes; what the class body declares is consulted
  at each first assignment;
* ``_pytree__nodes`` changes in place: whoever keeps it must copy it;
* flattening visits attributes in sorted order (integers, for lists, in numeric order and first) and never looks at
  values; unflattening stores whatever leaves it gets, without checks, under the trace that is current then;
* a structural edit of an object that was part of a plan bumps the epoch (``_epoch``); an array that replaces an
  array does not.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import sys
from abc import ABCMeta
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import jax
from jax.tree_util import GetAttrKey, SequenceKey

from nnx_rules.attributes import Kind, Status, Tag, decide, is_checked, recheck
from nnx_rules.rules import attributes as rules
from nnxkit._annotations import declared_statuses
from nnxkit._epoch import touch
from nnxkit._facts import StatusTag, describe, facts_of, register_kind
from nnxkit._repr import represent_pytree
from nnxkit._trace import PytreeState, mutation_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nnx_rules.attributes import ValueFacts
    from nnx_rules.errors import Place
    from nnx_rules.registry import Rule

P = TypeVar("P", bound="Pytree")

_STATUS = {True: Status.DATA, False: Status.STATIC}
_MISSING: Any = dataclasses.MISSING
_Key = str | int


class HashableMapping(dict[str, bool]):
    """Attribute name to "is data"; hashable by content, so that it can be a static part of a GraphDef (copy it
    first).
    """

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def _place() -> Place:
    """The line of the nearest caller outside of this package (generated ``__init__`` of dataclasses included)."""
    frame = sys._getframe(2)
    while frame.f_back is not None and (
        frame.f_globals.get("__name__", "").partition(".")[0] == "nnxkit" or frame.f_code.co_filename == "<string>"
    ):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


class PytreeMeta(ABCMeta):
    """Metaclass of Pytrees: checks an instance when its construction ends."""

    if not TYPE_CHECKING:  # To type checkers construction is what ``__init__`` says.

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            node = super().__call__(*args, **kwargs)
            if isinstance(node, cls):
                _finish_construction(node)
            return node


def _status_error(
    node: Pytree, name: str, broken: Rule, facts: ValueFacts, value: Any, current: Status | None
) -> Exception:
    cls = type(node)
    return broken.error(
        cls=cls.__name__,
        path=(name,),
        first_assigned=cls._pytree__places.get(name) if current is not None else None,
        value=describe(value),
        tags=" and ".join(f"`nnx.{tag}`" for tag in sorted(tag.value for tag in facts.inner_tags)),
        mend="use `nnx.List(...)`, `nnx.Dict(...)` or `nnx.data(...)` for the element",
    )


def _record(node: Pytree, name: str, value: Any, tag: Tag | None) -> ValueFacts:
    """Decide the status of ``name`` for an assignment of ``value`` and note it; the value is not stored."""
    cls = type(node)
    nodes = node._pytree__nodes
    known = nodes.get(name)
    current = cls._pytree__declared.get(name) if known is None else _STATUS[known]
    facts = facts_of(value, tag)
    verdict = decide(current, facts, checked=cls._pytree__checked, declared=known is None)
    broken = verdict.broken
    if broken is not None:
        if broken is rules.DATA_IN_STATIC_ATTRIBUTE and cls._pytree__holds_elements:
            broken = rules.NESTED_PLAIN_CONTAINER
        raise _status_error(node, name, broken, facts, value, current)
    is_data = verdict.status is Status.DATA
    if known is not is_data:
        nodes[name] = is_data
        if known is None and name not in cls._pytree__places and not name.isdecimal():
            cls._pytree__places[name] = _place()
        touch(node)
    return facts


def _finish_construction(node: Pytree) -> None:
    for name, value in list(vars(node).items()):
        if name not in node._pytree__nodes:
            if isinstance(value, StatusTag):
                vars(node)[name] = value.value
                _record(node, name, value.value, value.tag)
            else:
                _record(node, name, value, None)
    check_pytree(node)


def check_pytree(pytree: Pytree) -> None:
    """Check that no attribute of ``pytree`` contradicts its status; runs by itself when construction ends.

    Raises:
        AttributeStatusError: a static attribute holds data by now.
        StatusTagError: ``nnx.data`` or ``nnx.static`` is inside a container.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> class Log(nnx.Pytree):
    ...     def __init__(self):
    ...         self.entries = []
    >>> log = Log()
    >>> log.entries.append(jnp.zeros(2))
    >>> try:
    ...     nnx.check_pytree(log)
    ... except ValueError as error:
    ...     print(error.code)
    NNX104
    """
    cls = type(pytree)
    if not cls._pytree__checked:
        return
    for name, value in vars(pytree).items():
        status = _status_of(pytree, name)
        facts = facts_of(value)
        broken = recheck(status, facts)
        if broken is not None:
            raise _status_error(pytree, name, broken, facts, value, status)


def _status_of(node: Pytree, name: str) -> Status:
    """The recorded status; an attribute written past ``__setattr__`` after construction gets one now."""
    if name not in node._pytree__nodes:
        _record(node, name, vars(node)[name], None)
    return _STATUS[node._pytree__nodes[name]]


class Pytree(metaclass=PytreeMeta):
    """Base class of every NNX object. Subclasses are registered with JAX as pytrees.

    The class keyword ``pytree=False`` leaves the registration and the attribute checks out; it is not inherited.

    Raises:
        AttributeStatusError: an assignment contradicts the status of the attribute.
        TraceContextError: an attribute is set or deleted from another trace level than the object's own.
        ClassLayoutError, ClassDefinitionError: a class body that cannot work.

    >>> import jax, jax.numpy as jnp, nnxkit as nnx
    >>> class Point(nnx.Pytree):
    ...     def __init__(self):
    ...         self.name = "p"
    ...         self.x = jnp.zeros(2)
    >>> jax.tree.map(lambda a: a + 1, Point())
    Point(
      name='p',
      x=Array(shape=(2,), dtype=dtype('float32'))
    )
    """

    __slots__ = ("__dict__", "__weakref__", "_nnx_plan", "_nnx_version", "_pytree__nodes", "_pytree__state")

    _nnx_plan: Any
    _nnx_version: int
    _pytree__nodes: HashableMapping
    _pytree__state: PytreeState

    _pytree__checked: ClassVar[bool] = True
    _pytree__checked_by_default: ClassVar[bool] = True
    _pytree__declared: ClassVar[Mapping[str, Status]] = {}
    _pytree__has_int_keys: ClassVar[bool] = False
    _pytree__holds_elements: ClassVar[bool] = False
    _pytree__places: ClassVar[dict[str, Place]] = {}

    if not TYPE_CHECKING:  # Subclasses without ``__init__`` take no arguments; type checkers know that from ``object``.

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            if (args or kwargs) and cls.__init__ is object.__init__ and cls.__new__ is Pytree.__new__:
                raise TypeError(f"{cls.__name__}() takes no arguments")
            return blank(cls)

    def __init_subclass__(cls, *, pytree: bool | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("__slots__"):
            raise rules.PYTREE_SLOTS.error(cls=cls.__name__)
        if pytree and not cls._pytree__checked_by_default:
            raise rules.OBJECT_PYTREE_TRUE.error(cls=cls.__name__)
        for name, value in cls.__dict__.items():
            if isinstance(value, StatusTag):
                raise rules.CLASS_LEVEL_STATUS_VALUE.error(cls=cls.__name__, path=(name,), tag=value.tag.value)
        bases = [base._pytree__declared for base in cls.__mro__[1:] if issubclass(base, Pytree)]
        cls._pytree__declared = declared_statuses(cls, bases)
        cls._pytree__places = {}
        cls._pytree__checked = is_checked(pytree, default=cls._pytree__checked_by_default)
        register_kind(cls, Kind.PYTREE)
        if cls._pytree__checked:
            _register_with_jax(cls)

    def __setattr__(self, name: str, value: Any) -> None:
        if not self._pytree__state.is_valid():
            raise mutation_error(type(self).__name__)
        if hasattr(getattr(type(self), name, None), "__set__"):
            # A property or a slot: what it stores in this object comes back here, and elsewhere a mark would stay one.
            object.__setattr__(self, name, value.value if isinstance(value, StatusTag) else value)
            return
        tag = None
        if isinstance(value, StatusTag):
            value, tag = value.value, value.tag
        elif isinstance(value, dataclasses.Field) and "static" in value.metadata:
            marked = "static" if value.metadata["static"] else "data"
            raise rules.EMPTY_STATUS_ASSIGNMENT.error(cls=type(self).__name__, path=(name,), tag=marked)
        facts = _record(self, name, value, tag)
        attributes = vars(self)
        old = attributes.get(name, _MISSING)
        attributes[name] = value
        if (
            self._nnx_version
            and value is not old
            and not (facts.kind is Kind.ARRAY and old is not _MISSING and facts_of(old).kind is Kind.ARRAY)
        ):
            touch(self)

    def __delattr__(self, name: str) -> None:
        if not self._pytree__state.is_valid():
            raise mutation_error(type(self).__name__)
        object.__delattr__(self, name)
        if self._pytree__nodes.pop(name, None) is not None:
            touch(self)

    def __repr__(self) -> str:
        return represent_pytree(self)

    def __str__(self) -> str:
        return represent_pytree(self)

    def __copy__(self: P) -> P:
        return _rebuild(type(self), vars(self), self._pytree__nodes)

    def __deepcopy__(self: P, memo: dict[int, Any]) -> P:
        node = blank(type(self))
        memo[id(self)] = node
        node._pytree__nodes.update(self._pytree__nodes)
        for name, value in vars(self).items():
            vars(node)[name] = copy.deepcopy(value, memo)
        return node

    def __getstate__(self) -> Any:
        return dict(vars(self)), dict(self._pytree__nodes)

    def __setstate__(self, state: tuple[dict[str, Any], dict[str, bool]]) -> None:
        attributes, nodes = state
        vars(self).update(attributes)
        self._pytree__nodes.update(nodes)

    def __treescope_repr__(self, path: Any, subtree_renderer: Any) -> Any:
        from nnxkit._treescope import render_pytree

        return render_pytree(self, path, subtree_renderer)


register_kind(Pytree, Kind.PYTREE)


class Object(Pytree):
    """A Pytree that JAX does not know and whose attributes are not checked: for graphs with plain containers or
    shared references.
    """

    _pytree__checked_by_default: ClassVar[bool] = False


def blank(cls: type[P]) -> P:
    """An instance of ``cls`` without attributes, that belongs to the current trace; ``__init__`` does not run."""
    node = object.__new__(cls)
    set_slot = object.__setattr__
    set_slot(node, "_nnx_plan", None)
    set_slot(node, "_nnx_version", 0)
    set_slot(node, "_pytree__nodes", HashableMapping())
    set_slot(node, "_pytree__state", PytreeState())
    return node


def _rebuild(cls: type[P], attributes: Mapping[str, Any], nodes: Mapping[str, bool]) -> P:
    node = blank(cls)
    vars(node).update(attributes)
    node._pytree__nodes.update(nodes)
    return node


def attribute_key(cls: type[Pytree], name: str) -> _Key:
    """The key of an attribute in a path: its name, or for an element of a list its index."""
    return int(name) if cls._pytree__has_int_keys and name.isdecimal() else name


def _sort_key(key: _Key) -> tuple[bool, Any]:
    return (isinstance(key, str), key)


def sorted_attributes(node: Pytree) -> list[tuple[_Key, str, bool]]:
    """Key, attribute name and "is data" of every attribute, in the order in which they are flattened."""
    for name in vars(node).keys() - node._pytree__nodes.keys():
        _status_of(node, name)
    cls, nodes = type(node), node._pytree__nodes
    if not cls._pytree__has_int_keys:
        return [(name, name, nodes[name]) for name in sorted(vars(node))]
    keyed = ((attribute_key(cls, name), name, nodes[name]) for name in vars(node))
    return sorted(keyed, key=lambda item: _sort_key(item[0]))


_Structure = tuple[tuple[str, ...], tuple[bool, ...], tuple[Any, ...]]
"""Names, "is data" flags, and the static values: what is not a leaf."""


def _flatten(node: Pytree) -> tuple[list[Any], _Structure]:
    attributes = vars(node)
    keyed = sorted_attributes(node)
    names = tuple(name for _, name, _ in keyed)
    flags = tuple(is_data for _, _, is_data in keyed)
    children = [attributes[name] for _, name, is_data in keyed if is_data]
    return children, (names, flags, tuple(attributes[name] for _, name, is_data in keyed if not is_data))


def _flatten_with_keys(node: Pytree) -> tuple[list[tuple[Any, Any]], _Structure]:
    children, structure = _flatten(node)
    cls = type(node)
    keys = (attribute_key(cls, name) for name, is_data in zip(*structure[:2], strict=True) if is_data)
    entries = (GetAttrKey(key) if isinstance(key, str) else SequenceKey(key) for key in keys)
    return list(zip(entries, children, strict=True)), structure


def _unflatten(cls: type[P], structure: _Structure, children: Iterable[Any]) -> P:
    names, flags, static_values = structure
    node = blank(cls)
    leaves, statics = iter(children), iter(static_values)
    vars(node).update((name, next(leaves if is_data else statics)) for name, is_data in zip(names, flags, strict=True))
    node._pytree__nodes.update(zip(names, flags, strict=True))
    return node


def _register_with_jax(cls: type[Pytree]) -> None:
    jax.tree_util.register_pytree_with_keys(cls, _flatten_with_keys, functools.partial(_unflatten, cls), _flatten)


_register_with_jax(Pytree)
