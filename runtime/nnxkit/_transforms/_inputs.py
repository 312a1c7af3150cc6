"""The inputs of one call of a transformed function: its arguments, and what it captures.

Arguments are flattened as any JAX pytree, except that graph objects (Pytrees and Variables) are leaves. The objects of
the arguments and those that the function captures form one joint graph (``_joint``), those of the arguments first. JAX
gets the values of the joint graph's leaves, followed by the bare leaves of the arguments.

Invariants

- Inputs are equal in structure when their keys are equal; the key refers to no object and no array.
- Inputs live as long as one call.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from nnx_rules.rules import graphs as graph_rules
from nnxkit._graph._graphdef import GraphDef, NodeRecord
from nnxkit._graph._layouts import key_name
from nnxkit._graph._plan import Plan
from nnxkit._graph._program import Program, program_of
from nnxkit._graph._traverse import find_duplicates, has_identity, iter_graph
from nnxkit._pytree import Pytree
from nnxkit._state._order import Path
from nnxkit._transforms._captures import Captures
from nnxkit._transforms._joint import Joint, Root, Sharing
from nnxkit._variable import Variable

BARE, PYTREE, VARIABLE = 0, 1, 2
"""What a leaf of the arguments is."""


class _Marks(dict[type, int]):
    """What values are, by type."""

    def __missing__(self, cls: type) -> int:
        mark = self[cls] = PYTREE if issubclass(cls, Pytree) else VARIABLE if issubclass(cls, Variable) else BARE
        return mark


class _IsLeaf(dict[type, bool]):
    """Whether values are leaves for sure, by type."""

    def __missing__(self, cls: type) -> bool:
        known = self[cls] = issubclass(cls, (Pytree, Variable, jax.Array)) or cls in _LEAF_TYPES
        return known


_LEAF_TYPES = frozenset({np.ndarray, bool, int, float, complex})
_marks = _Marks()
_is_leaf_type = _IsLeaf().__getitem__
_mark_of_type = _marks.__getitem__
_flatten = jax.tree_util.default_registry.flatten


@functools.cache
def _treedef_of_leaves(count: int) -> Any:
    return _flatten(((0,) * count, {}))[1]


def mark_of(value: Any) -> int:
    """What a leaf of the arguments is: `BARE`, `PYTREE` or `VARIABLE`."""
    return _marks[type(value)]


def is_object(value: Any) -> bool:
    """Whether a value is a graph object."""
    return _marks[type(value)] != BARE


class Flat(NamedTuple):
    """A JAX pytree with graph objects as leaves.

    Attributes:
        treedef: its structure.
        marks: what each leaf is.
        leaves: the leaves.
    """

    treedef: Any
    marks: tuple[int, ...]
    leaves: list[Any]

    @classmethod
    def of(cls, tree: Any) -> Flat:
        """Flatten a pytree."""
        leaves, treedef = _flatten(tree, is_object)
        return cls(treedef, tuple([_marks[type(leaf)] for leaf in leaves]), leaves)

    def numbers(self, mark: int) -> list[int]:
        """The numbers of the leaves of one kind."""
        return [number for number, own in enumerate(self.marks) if own == mark]

    def select(self, mark: int) -> list[Any]:
        """The leaves of one kind."""
        return [leaf for leaf, own in zip(self.leaves, self.marks, strict=True) if own == mark]


def replaced(values: Sequence[Any], places: Sequence[int], new: Sequence[Any]) -> list[Any]:
    """A copy of some values with new ones at some places."""
    copy = list(values)
    for place, value in zip(places, new, strict=True):
        copy[place] = value
    return copy


def split_path(path: Path, pytrees: Sequence[int], variables: Sequence[int]) -> tuple[int, Path]:
    """The leaf of the result that a path in its graph begins at, and the rest of the path."""
    first: Any = path[0]
    if first < len(pytrees):
        return pytrees[first], path[1:]
    second: Any = path[1]
    return variables[second], path[2:]


class Names:
    """What the leaves of a pytree are called, and what is below those that are graph objects.

    Args:
        root: what the pytree is called.
        treedef: its structure.
        marks: what its leaves are.

    Attributes:
        leaves: the names of the leaves.
    """

    def __init__(self, root: str, treedef: Any, marks: Sequence[int]) -> None:
        paths, _ = jax.tree_util.tree_flatten_with_path(treedef.unflatten(range(len(marks))))
        self.leaves: list[Path] = [(root, *map(key_name, path)) for path, _ in paths]
        flat = Flat(treedef, tuple(marks), [])
        self.pytrees, self.variables = flat.numbers(PYTREE), flat.numbers(VARIABLE)
        self.bare = flat.numbers(BARE)

    def __call__(self, path: Path) -> Path:
        """The name of what has this path in the joint graph of the leaves."""
        number, below = split_path(path, self.pytrees, self.variables)
        return (*self.leaves[number], *below)


def unflatten(
    treedef: Any, marks: Sequence[int], pytrees: Sequence[Any], variables: Sequence[Any], bare: Sequence[Any]
) -> Any:
    """A pytree from its structure and its leaves by kind."""
    sources = (iter(bare), iter(pytrees), iter(variables))
    return treedef.unflatten([next(sources[mark]) for mark in marks])


def root_of(objects: Sequence[Any]) -> Root:
    """Graph objects sorted by kind."""
    marks = [_marks[type(item)] for item in objects]
    if VARIABLE not in marks:
        return Root(tuple(objects), ())
    return Root(
        *[tuple([item for item, own in zip(objects, marks, strict=True) if own == mark]) for mark in (PYTREE, VARIABLE)]
    )


class Structure:
    """What a joint graph is without its values.

    Attributes:
        graphdef: its GraphDef.
        paths: paths of the leaves; the first key is the number of the Pytree, or of the list of Variables.
        pytrees: how many Pytrees the root has.
        names: what the objects of the root are called, Pytrees before Variables.
    """

    __slots__ = ("graphdef", "names", "paths", "pytrees")

    def __init__(
        self, graphdef: GraphDef[Any], paths: tuple[Path, ...], pytrees: int, names: Callable[[], list[Path]]
    ) -> None:
        self.graphdef = graphdef
        self.paths = paths
        self.pytrees = pytrees
        self.names = names

    def name(self, path: Path) -> Path:
        """A path in the joint graph as the caller sees it: ``args[0].kernel``."""
        names = self.names()
        first: Any = path[0]
        if first < self.pytrees:
            return (*names[first], *path[1:])
        second: Any = path[1]
        return (*names[self.pytrees + second], *path[2:])

    @property
    def program(self) -> Program:
        """The program that builds it."""
        return program_of(self.graphdef)


Key = tuple[Any, tuple[int, ...], tuple[GraphDef[Any], ...], Sharing, tuple[Hashable, ...]]
"""What inputs of the same structure have in common: the structure of the arguments, the kinds of their leaves, the
structures of the objects, what these share, and where captures are found. A key refers to no object and no array. It
has a hash if all static values have one.
"""


def snapshot(key: Key) -> Key:
    """The same key, safe from edits in place of static values without a hash."""
    treedef, marks, graphdefs, sharing, signatures = key
    return treedef, marks, tuple(graphdef.snapshot() for graphdef in graphdefs), sharing, signatures


class Inputs:
    """The inputs of one call.

    Args:
        tree: the arguments: ``(args, kwargs)``.
        captures: what each function captures that is to run on them.
    """

    # A compiled function makes one of these at each call, so construction is plain, and what it may not need is lazy.
    __slots__ = ("_joint", "_root", "captures", "leaves", "marks", "tree", "treedef")

    def __init__(self, tree: tuple[Any, Any], *captures: Captures) -> None:
        self.tree = tree
        self.captures = captures
        args, kwargs = tree
        if not kwargs and type(args) is tuple and all(map(_is_leaf_type, map(type, args))):  # most calls
            self.leaves, self.treedef = list(args), _treedef_of_leaves(len(args))
        else:
            self.leaves, self.treedef = _flatten(tree, is_object)
        self.marks = tuple(map(_mark_of_type, map(type, self.leaves)))
        self._root: Root | None = None
        self._joint: Joint | None = None

    @property
    def flat(self) -> Flat:
        """The arguments, flattened."""
        return Flat(self.treedef, self.marks, self.leaves)

    @property
    def root(self) -> Root:
        """The objects."""
        if self._root is None:
            objects = [leaf for leaf, mark in zip(self.leaves, self.marks, strict=True) if mark]
            for found in self.captures:
                captured = found.objects
                if captured:
                    known = set(map(id, objects))
                    objects += [item for item in captured if id(item) not in known]
            self._root = root_of(objects)
        return self._root

    @property
    def joint(self) -> Joint:
        """The joint graph."""
        if self._joint is None:
            self._joint = Joint.of(self.root)
        return self._joint

    def recall(self, plans: list[Plan], sharing: Sharing) -> None:
        """Take the plans of the objects, and what they share, as known."""
        self._joint = Joint(lambda: self.root, plans, sharing)

    def over(self, root: Root) -> Inputs:
        """The same inputs with other objects, in the places of the root's."""
        tree, _ = self.enter(root, self.bare)
        other = Inputs(tree)
        other._root = root
        return other

    @property
    def bare(self) -> list[Any]:
        """The bare leaves of the arguments."""
        return [leaf for leaf, mark in zip(self.leaves, self.marks, strict=True) if mark == BARE]

    def enter(self, root: Root, bare: Sequence[Any]) -> tuple[Any, list[Callable[..., Any]]]:
        """The arguments and the functions over other objects, which have the places of the root's."""
        tree = unflatten(self.treedef, self.marks, root.pytrees, root.variables, bare)
        if not any(found.objects for found in self.captures):
            return tree, [found.rebind(()) for found in self.captures]
        inner: dict[int, Any] = dict(zip(map(id, self.root.pytrees), root.pytrees, strict=True))
        inner.update(zip(map(id, self.root.variables), root.variables, strict=True))
        return tree, [found.rebind([inner[id(item)] for item in found.objects]) for found in self.captures]

    @property
    def structure(self) -> Structure:
        """The structure of the joint graph."""
        joint = self.joint
        return Structure(joint.graphdef, joint.paths, len(self.root.pytrees), self.names)

    def key(self) -> Key:
        """Equal for inputs of the same structure."""
        joint = self.joint
        signatures = tuple([found.signature for found in self.captures])
        return self.treedef, self.marks, joint.graphdefs(), joint.sharing, signatures

    def values(self) -> list[Any]:
        """The values of the joint graph, and the bare leaves of the arguments."""
        values = self.joint.values()
        if BARE in self.marks:
            values += self.bare
        return values

    def names(self) -> list[Path]:
        """What the objects of the root are called: arguments by their place, captures by their names."""
        names: dict[int, Path] = {}
        for found in self.captures:
            names.update((id(item), _path_of(name)) for item, name in zip(found.objects, found.names, strict=True))
        names.update(zip(map(id, self.leaves), self.argument_names(), strict=True))
        return [names[id(item)] for item in (*self.root.pytrees, *self.root.variables)]

    def argument_names(self) -> list[Path]:
        """What the leaves of the arguments are called."""
        return argument_names(self.tree)

    def require_tree(self, transform: str) -> None:
        """Raise unless the arguments are a tree of JAX pytrees. Captures may share objects with them.

        Raises:
            GraphError: an object is reached twice, or a class is not registered with JAX.
        """
        objects = root_of([leaf for leaf in self.leaves if is_object(leaf)])
        require_tree(self.tree, Joint.of(objects).graphdef, transform, _name_in_arguments)


def require_tree(
    node: Any, graphdef: GraphDef[Any], transform: str, name: Callable[[Path], Path] = lambda path: path
) -> None:
    """Raise unless a graph is a tree of JAX pytrees.

    Args:
        node: the graph.
        graphdef: its structure.
        transform: name of the transform, for messages.
        name: what to call a path in messages.

    Raises:
        GraphError: an object is reached twice, or a class is not registered with JAX.
    """
    repeated = find_duplicates(node, only=has_identity)
    if repeated:
        path, other = repeated[0][:2]
        cls = type(dict(iter_graph(node, graph=True))[path]).__name__
        raise graph_rules.DUPLICATE_NODE.error(path=name(path), other_path=name(other), value="object", type=cls)
    for record in graphdef.records:
        if isinstance(record, NodeRecord) and record.indexed and not record.type._pytree__checked:  # type: ignore[attr-defined]
            raise graph_rules.TREE_MODE_OBJECT.error(cls=record.type.__name__, function=transform)


def _name_in_arguments(path: Path) -> Path:
    return ("args", *path[1:]) if path[0] == 0 else path[1:]


def argument_names(tree: Any) -> list[Path]:
    """What the leaves of ``(args, kwargs)`` are called."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_object)
    return [_argument_name(path) for path, _ in leaves]


def _argument_name(path: Sequence[Any]) -> Path:
    """The name of an argument from its JAX key path in ``(args, kwargs)``."""
    return _name_in_arguments(tuple(key_name(entry) for entry in path))


def _path_of(name: str) -> Path:
    """The path that an expression such as ``trainer.models[0]`` writes out."""

    def visit(node: ast.expr) -> Path:
        match node:
            case ast.Name(id=first):
                return (first,)
            case ast.Attribute(value=inner, attr=key):
                return (*visit(inner), key)
            case ast.Subscript(value=inner, slice=ast.Constant(value=key)):
                return (*visit(inner), key)
            case _:
                raise ValueError(name)

    try:
        return visit(ast.parse(name, mode="eval").body)
    except (SyntaxError, ValueError):
        return (name,)
