"""The leaves of an abstract object: the Variables and arrays that it certainly holds, with their paths.

These are the leaves that ``nnx.split`` and ``nnx.state`` meet. Invariants: a leaf is listed only if every run that gets
here has it (a loop is taken to run): attributes that are assigned in a branch not taken for sure, or that may hold one
of several values, are left out, and ``complete`` is then false; an object that is reached twice is listed at its first
path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnx_lint.model.attributes import attribute_names, attribute_of, variable_value
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import ClassBase, LibClass, UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.handed import is_model
from nnx_lint.model.heap import touch
from nnx_lint.model.members import is_settled
from nnx_lint.model.strings import HOLE
from nnx_lint.model.unions import UnionVal, present
from nnx_lint.model.values import (
    UNKNOWN,
    Array,
    Attr,
    ClassVal,
    Const,
    Ext,
    Obj,
    Other,
    TagVal,
    Value,
)
from nnx_rules._filter_logic import UNKNOWN as UNKNOWN_PART
from nnx_rules._filter_logic import Leaf
from nnx_rules.attributes import Status
from nnx_rules.records import Entity, Record, made
from nnx_rules.streams import KEPT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.model.frames import Frame

MAX_DEPTH = 40
"""How deep plain containers are followed."""

MAX_VALUES = 5_000
"""How many values are visited: a container can hold itself many times over."""

Path = tuple[Any, ...]
Branches = tuple[tuple[int, int], ...]


class AtLeast(Record):
    """The type of a leaf of which only an annotation is known: this class, or one below it."""

    cls: ClassBase


class Held(Entity):
    """A leaf, and the object or plain container that holds it."""

    leaf: Leaf
    owner: Value


class Contents(Entity):
    """What an object holds.

    Attributes:
        held: its certain leaves, in no particular order.
        again: certain second references to an object, as (path, path of the first, object).
        complete: whether there are certainly no others.
    """

    held: list[Held] = made(factory=list[Held])
    again: list[tuple[Path, Path, Value]] = made(factory=list[tuple[Path, Path, Value]])
    complete: bool = True

    @property
    def leaves(self) -> list[Leaf]:
        return [item.leaf for item in self.held]


def contents(value: Value, frame: Frame, array_type: object) -> Contents:
    """The leaves of a value, as seen from a frame; bare arrays are of ``array_type``."""
    collector = _Collector(frame.branches, array_type)
    collector.visit(present(value), (), value)
    return collector.found


class _Collector:
    def __init__(self, branches: Branches, array_type: object) -> None:
        self.branches = branches
        self.array_type = array_type
        self.found = Contents()
        self.identities = Identities()
        self.paths: dict[Identity, Path] = {}
        self.names: dict[int, frozenset[str]] = {}
        self.values = 0

    def visit(self, value: Value, path: Path, owner: Value) -> None:
        self.values += 1
        if self.values > MAX_VALUES:
            self.found.complete = False
            return
        if isinstance(value, TagVal) and value.value is not None:
            value = value.value
        if isinstance(value, Obj):
            self.object(value, path, owner)
        elif isinstance(value, Array):
            self.add(path, self.array_type, None, owner)
        elif len(path) > MAX_DEPTH:
            self.found.complete = False  # a plain container that holds itself
        elif isinstance(value, Seq) and not value.opaque:
            self.sequence(value, path, value)
        elif isinstance(value, DictVal):
            self.mapping(value, path)
        elif not isinstance(value, _PLAIN):
            self.found.complete = False

    def add(self, path: Path, kind: object, tag: Any, owner: Value) -> None:
        self.found.held.append(Held(Leaf(path, kind, tag), owner))

    def object(self, obj: Obj, path: Path, owner: Value) -> None:
        cls = obj.cls
        if not cls.is_pytree and not cls.is_variable:
            self.found.complete = False
            return
        key = self.identities.of(obj, owner)
        first = self.paths.get(key)
        if first is not None:
            self.found.again.append((path, first, obj))
            return
        self.paths[key] = path
        if cls.is_variable:
            tag = tag_of(obj)
            tag = self.names.get(id(owner), tag) if tag is UNKNOWN_PART else tag
            self.add(path, cls if obj.args is not None else AtLeast(cls), tag, owner)
        elif cls.derives_from("nnx.Rngs"):
            self.streams(obj, path)
        else:
            if cls.derives_from("nnx.RngStream") and (names := _kept_names(owner)):
                self.names[id(obj)] = names
            self.attributes(obj, path)

    def attributes(self, obj: Obj, path: Path) -> None:
        cls = obj.cls
        made = cls.made_as if isinstance(cls, LibClass) or _extends_layer(cls) else None
        if cls.is_open or (isinstance(cls, UserClass) and (cls.opaque or (_extends_layer(cls) and made is None))):
            self.found.complete = False
        if obj.args is None and obj.origin is None:
            self.found.complete = False  # nobody saw it made: a class below may hold more
        if isinstance(cls, UserClass) and cls.opaque:
            return
        if made is not None and made.name not in _CONTAINERS and not is_settled(obj):
            self.found.complete = False
        for name in attribute_names(obj):
            attr = attribute_of(obj, name)
            if attr is None:
                continue
            held = attr.value
            if name == "[]":
                self.sequence(held, path, obj)
            elif HOLE in name:
                self.found.complete = False  # attributes with computed names: who knows how many
                if self.is_certain(attr) and not _is_static(attr):
                    self.visit(held, (*path, UNKNOWN_PART), obj)
            elif self.is_certain(attr):
                if not _is_static(attr):
                    self.visit(held, (*path, name), obj)
                elif _has_data(held):
                    self.found.complete = False  # before flax 0.12 it is part of the object, and since then refused
            else:
                self.found.complete = False

    def is_certain(self, attr: Attr) -> bool:
        """Whether the attribute certainly holds its present value here."""
        if isinstance(attr.value, UnionVal):
            return all(isinstance(option, _PLAIN) for option in attr.value.options)
        return not attr.assignments or any(
            item.dominates(self.branches) and not item.doubtful for item in attr.assignments
        )

    def streams(self, rngs: Obj, path: Path) -> None:
        """The streams of an ``nnx.Rngs``, by the names that it was made with."""
        from nnx_lint.model.classes import library_class

        names = [name for name in rngs.args or () if name not in {"**", "tag"}]
        if rngs.args is None or "**" in rngs.args or isinstance(rngs.args.get("default"), (DictVal, UnionVal)):
            self.found.complete = False
            return
        for name in names:
            if name == "default" and not isinstance(rngs.args[name], (Const, Array, Other)):
                self.found.complete = False  # it may be a mapping of streams, or None
                continue
            for part, kind in (("count", "nnx.RngCount"), ("key", "nnx.RngKey")):
                self.add((*path, name, part), library_class(kind), name, rngs)

    def sequence(self, value: Value, path: Path, owner: Value) -> None:
        if not isinstance(value, Seq):
            self.found.complete = False
        elif value.exact:
            for index, item in enumerate(value.items):
                self.visit(item, (*path, index), owner)
        else:
            self.found.complete = False
            for item in value.certain:
                self.visit(item, (*path, UNKNOWN_PART), owner)

    def mapping(self, value: DictVal, path: Path) -> None:
        if not value.exact:
            self.found.complete = False
            return
        for key, item in value.items:
            self.visit(item, (*path, key.value if isinstance(key, Const) else UNKNOWN_PART), value)


_PLAIN = (Const, Other, FuncVal, ClassVal, Ext)
"""Values that are static in an attribute, and no leaves."""

_CONTAINERS = frozenset({"Dict", "List", "Sequential"})
"""Library classes whose contents are followed element by element."""


PARAMETRIC = frozenset({"Conv", "ConvTranspose", "Einsum", "Embed", "Linear", "LinearGeneral", "MultiHeadAttention"})
"""Layers of the library that hold Params, whatever they are made with."""


def holds_parameters(value: Value, depth: int) -> bool:
    """Whether a value certainly is or holds a ``nnx.Param``."""
    if isinstance(value, Obj):
        if value.cls.derives_from("nnx.Param") or (
            value.cls.made_as is not None and value.cls.made_as.name in PARAMETRIC
        ):
            return True
        held = [attr.value for name in attribute_names(value) if (attr := attribute_of(value, name)) is not None]
    else:
        held = list(value.items) if isinstance(value, Seq) and value.exact else []
    return depth > 0 and any(holds_parameters(item, depth - 1) for item in held)


def _extends_layer(cls: ClassBase) -> bool:
    """Whether a class gets attributes from a library class that makes some."""
    library = cls.library
    return library is not None and library.canonical not in {"nnx.Module", "nnx.Object", "nnx.Pytree"}


def _has_data(value: Value) -> bool:
    """Whether a plain container holds arrays, Variables or modules."""
    if isinstance(value, Seq):
        items = [*value.items, *value.certain]
    elif isinstance(value, DictVal):
        items = [item for _, item in value.items]
    else:
        return False
    return any(isinstance(item, (Array, Obj)) or _has_data(item) for item in items)


def _is_static(attr: Attr) -> bool:
    """Whether NNX treats the attribute as static. What an instance of a library class holds has no assignments."""
    status = attr.assignments[-1].status if attr.assignments else attr.declared
    return status is Status.STATIC


def shape_at(value: Value, path: Path) -> tuple[int, ...] | None:
    """The shape of a Variable in an object, if all of it is known."""
    for part in path:
        value, index = present(value), part if isinstance(part, int) else None
        name = part if isinstance(part, str) else "[]"
        attr = attribute_of(value, name) if isinstance(value, Obj) else None
        value = attr.value if attr is not None else UNKNOWN
        if index is not None:
            known = isinstance(value, Seq) and value.exact and index < len(value.items)
            value = value.items[index] if known and isinstance(value, Seq) else UNKNOWN
    held = variable_value(value) if isinstance(value, Obj) and value.cls.is_variable else None
    shape = held.form.shape if isinstance(held, Array) and held.form is not None else None
    sizes = tuple(size for size in shape or () if isinstance(size, int))
    return sizes if shape is not None and len(sizes) == len(shape) else None


def forget_variables(value: Value, kinds: Sequence[ClassBase] | None, seen: set[int] | None = None) -> None:
    """Note that Variables of these types (of any type for ``None``) may have been removed from an object."""
    seen = set() if seen is None else seen
    if not isinstance(value, Obj) or id(value) in seen:
        return
    seen.add(id(value))
    for name in attribute_names(value):
        attr = attribute_of(value, name)
        held = attr.value if attr is not None else None
        if attr is None or not isinstance(held, Obj):
            continue
        exact = held.origin is not None and not held.assumed  # it was seen to be made: no instance of a class below
        related = kinds is None or any(
            kind in held.cls.ancestors or (held.cls in kind.ancestors and not exact) for kind in kinds
        )
        if not held.cls.is_variable:
            forget_variables(held, kinds, seen)
        elif related:
            touch(value)
            attr.value = UNKNOWN


def _kept_names(layer: Value) -> frozenset[str]:
    """What the stream that a layer of the library keeps may be called; nothing if that is not known."""
    made = layer.cls.made_as if isinstance(layer, Obj) else None
    if not isinstance(layer, Obj) or made is None or made.name not in KEPT or layer.args is None:
        return frozenset()
    name, rngs = layer.args.get("rng_collection", Const(KEPT[made.name])), layer.args.get("rngs")
    known = isinstance(rngs, Obj) and rngs.cls.derives_from("nnx.Rngs") and isinstance(name, Const)
    return frozenset({str(name.value), "default"}) if known and isinstance(name, Const) else frozenset()


def tag_of(variable: Obj) -> Any:
    """The tag of a Variable: that of its stream for random state, else what its metadata says."""
    args = variable.args
    if args is None or "**" in args or variable.cls.derives_from("nnx.RngState"):
        return UNKNOWN_PART
    tag = args.get("tag")
    if tag is None:
        return None
    return tag.value if isinstance(tag, Const) and isinstance(tag.value, str) else UNKNOWN_PART


Identity = tuple[int, ...]


class Identities:
    """What tells the objects in one value apart: copies of one object at other trace levels are the same object.

    An object that belongs to the model of a class is told apart by its owner, because all instances share the model;
    and its owner by the owner of that one, because the model may be in the model of another class. Where all owners are
    copies of the parts of one model, it is the object of that model, which two owners may hold, that tells.
    """

    def __init__(self) -> None:
        self._known: dict[int, Identity] = {}
        self._steps: dict[int, int] = {}

    def of(self, obj: Obj, owner: Value) -> Identity:
        """The identity of an object that is read from its owner, which has been asked for before if it is an object."""
        root = made_first(obj)
        key: Identity = (id(root),)
        steps, original = self._above(obj, owner)
        if steps:
            key = (id(original), steps)
        elif root is not obj:
            key += self._known.get(id(owner)) or (id(made_first(owner) if isinstance(owner, Obj) else owner),)
        self._known[id(obj)] = key
        return key

    def _above(self, obj: Obj, owner: Value) -> tuple[int, Obj]:
        """How many templates above an object its original is, which is no further than that of its owner; and it. The
        first owner itself goes up to the model of its class.
        """
        limit = MAX_DEPTH if owner is obj else self._steps.get(id(owner), 0)
        original, steps = obj, 0
        while steps < limit and original.template is not None and (owner is obj or not is_model(original.template)):
            original, steps = original.template, steps + 1
            if is_model(original):
                break
        self._steps[id(obj)] = steps
        return (steps, original) if steps == limit else (0, obj)


def same_object(one: Value, other: Value) -> bool:
    """Whether two values are one object, or copies of it at other trace levels."""
    one, other = present(one), present(other)
    if isinstance(one, Obj) and isinstance(other, Obj):
        return made_first(one) is made_first(other)
    return one is other and one is not UNKNOWN


def made_first(obj: Obj) -> Obj:
    """What an object is a copy of, at other trace levels or in other instances."""
    while obj.template is not None and not is_model(obj.template):
        obj = obj.template
    return obj
