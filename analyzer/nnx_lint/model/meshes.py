"""Meshes of devices, and how arrays are divided over them: ``jax.make_mesh``, ``PartitionSpec``, ``NamedSharding``.

Invariants: the axes of a mesh are known where all their names are literals, and their sizes where these are numbers; an
entry of a spec is what the program gives, which may be anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model import forms
from nnx_lint.model.containers import Seq
from nnx_lint.model.values import UNKNOWN, Const, Other, Value
from nnx_rules.attributes import Kind
from nnx_rules.shape_algebra import is_whole

if TYPE_CHECKING:
    from nnx_lint.model.calls import Arguments
    from nnx_rules.shapes import Shape


class MeshVal(Value):
    """A mesh of devices, by the names of its axes; ``shape`` are their sizes, where their number is known."""

    __slots__ = ("axes", "shape")
    kind = Kind.OTHER

    def __init__(self, axes: tuple[str, ...], shape: Shape | None = None) -> None:
        self.axes = axes
        self.shape = shape

    def size(self, names: list[str]) -> int | None:
        """Over how many devices the axes of these names go; ``None`` if that is not known."""
        sizes = dict(zip(self.axes, self.shape or (), strict=False))
        product = 1
        for name in names:
            size = sizes.get(name)
            if not isinstance(size, int):
                return None
            product *= size
        return product


class SpecVal(Other):
    """A ``PartitionSpec``: for each axis of an array the axes of the mesh that it is divided over."""

    __slots__ = ("entries",)

    def __init__(self, entries: tuple[Value, ...]) -> None:
        super().__init__("a PartitionSpec")
        self.entries = entries


class ShardingVal(Other):
    """A ``NamedSharding``: a mesh, and a spec for it."""

    __slots__ = ("mesh", "spec")

    def __init__(self, mesh: MeshVal, spec: SpecVal) -> None:
        super().__init__("a NamedSharding")
        self.mesh = mesh
        self.spec = spec


MESHES = {"jax.make_mesh": 1, "jax.sharding.Mesh": 1}
"""What makes a mesh, with the position of the names of its axes."""

SHAPES = {"jax.make_mesh": "axis_shapes", "jax.sharding.Mesh": "devices"}
"""The argument, the first, that says how large a mesh is: its shape, or an array of its devices."""

SPECS = ("jax.P", "jax.sharding.PartitionSpec")
SHARDINGS = ("jax.NamedSharding", "jax.sharding.NamedSharding")


def shape_of_mesh(name: str, args: Arguments) -> Shape | None:
    """The shape that a call says a mesh has."""
    given = args.get(0, SHAPES[name])
    shape = forms.shape_of(given) if name == "jax.make_mesh" else forms.literal(given).shape
    return shape if shape is not None and is_whole(shape) else None


def axes_of_mesh(names: Value | None) -> tuple[str, ...] | None:
    """The names of axes, where all of them are literals."""
    if isinstance(names, Const) and isinstance(names.value, str):
        return (names.value,)
    if not isinstance(names, Seq) or not names.exact:
        return None
    axes = [item.value for item in names.items if isinstance(item, Const) and isinstance(item.value, str)]
    return tuple(axes) if len(axes) == len(names.items) else None


def names_in(entry: Value) -> list[str] | None:
    """The names of the axes that an entry of a spec stands for; ``None`` where they are not known."""
    if isinstance(entry, Const) and entry.value is None:
        return []
    known = axes_of_mesh(entry)
    return list(known) if known is not None else None


Rules = tuple[tuple[str, tuple[str, ...]], ...]
"""What names of axes stand for: the axes of the mesh."""


def rules_in(given: Value | None) -> Rules | None:
    """The rules that a program gives for names of axes, where all of them are literals. Of two for one name,
    the libraries take different ones: then nothing is known.
    """
    if given is None or (isinstance(given, Const) and given.value is None):
        return ()
    pairs = given.items if isinstance(given, Seq) and given.exact else None
    if pairs is None:
        return None
    found: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        name, axes = pair.items if isinstance(pair, Seq) and pair.exact and len(pair.items) == 2 else (UNKNOWN, UNKNOWN)
        known = names_in(axes)
        if not isinstance(name, Const) or not isinstance(name.value, str) or known is None or name.value in found:
            return None
        found[name.value] = tuple(known)
    return tuple(found.items())


def through(rules: Rules, names: Seq) -> Seq:
    """The axes of the mesh that names of axes stand for; a name without a rule stands for itself."""
    known = dict(rules)
    items: list[Value] = []
    for item in names.items:
        axes = known.get(item.value) if isinstance(item, Const) and isinstance(item.value, str) else None
        items.append(item if axes is None else Seq("tuple", [Const(axis) for axis in axes]) if axes else Const(None))
    return Seq(names.type, items, names.level, exact=names.exact)


def made(canonical: str, args: Arguments) -> Value | None:
    """What a call of a library function makes, if that is of the kinds that are known here."""
    if canonical in MESHES:
        axes = axes_of_mesh(args.get(MESHES[canonical], "axis_names"))
        return MeshVal(axes, shape_of_mesh(canonical, args)) if axes is not None else UNKNOWN
    if canonical in SPECS and not args.starred and not args.keywords:
        return SpecVal(tuple(value for value in args.positional if value is not None))
    if canonical in SHARDINGS:
        mesh, spec = args.get(0, "mesh"), args.get(1, "spec")
        return ShardingVal(mesh, spec) if isinstance(mesh, MeshVal) and isinstance(spec, SpecVal) else UNKNOWN
    return None
