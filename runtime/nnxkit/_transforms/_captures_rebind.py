"""Copies of functions that see other objects in place of those that they capture.

Only what leads to an object is copied; all else is shared with the original, so that JAX goes on finding functions
without state in its caches. A copied function shares the cells that lead nowhere with the original, and gets fresh ones
for the others. Its globals are an overlay over the real ones (`_captures_globals`), and instances of plain classes have
stand-ins (`_captures_instances`).

Invariants

- The originals are never touched.
- Two copied functions that shared a cell, a module or a container share its copy.
- What a copied function binds anew is not lost. An ordinary global or attribute reaches the real globals or the real
  instance when the call returns (until then, functions that are not copied see the old one). If it is one of the things
  that the copies see in place of others, what it stands for is what arrives there.
- Where a name, an attribute, a list or a dictionary led to a captured object, a new binding would be seen by the copy
  only, or leave a tracer behind, so it is an error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from operator import is_
from types import CellType, FunctionType
from typing import Any, NamedTuple

from nnx_rules.rules import graphs as rules
from nnxkit._transforms._captures_code import names_of
from nnxkit._transforms._captures_globals import Overlay, rebound
from nnxkit._transforms._captures_instances import InstanceStandIn, Layout
from nnxkit._transforms._captures_shapes import Key, Shape

_KEPT = ("__defaults__", "__kwdefaults__", "__doc__", "__module__", "__qualname__")
_ANNOTATIONS = "__annotate__" if hasattr(FunctionType, "__annotate__") else "__annotations__"


class Node(NamedTuple):
    """A value on the way to captured objects.

    Attributes:
        name: what to call it.
        shape: what kind of value it is.
        value: the value.
        edges: the parts that lead to objects, with the targets: ``i`` is the object ``i``, ``~i`` the node ``i``.
    """

    name: str
    shape: Shape
    value: Any
    edges: tuple[tuple[Key, int], ...]


class Rebinding:
    """One copy of a function, for other objects.

    Args:
        nodes: what leads to objects.
        captured: the captured objects.
        inner: the objects to see in their places.
    """

    def __init__(self, nodes: Sequence[Node], captured: Sequence[Any], inner: Sequence[Any]) -> None:
        self.nodes = nodes
        self.captured = captured
        self.inner = inner
        self.made: dict[int, Any] = {}
        self.open: dict[int, str] = {}
        self.unfilled: list[Callable[[], None]] = []
        self.cells: dict[int, CellType] = {}
        self.filled: dict[int, tuple[str, CellType, Any]] = {}
        self.overlays: dict[int, Overlay] = {}
        self.containers: list[tuple[Node, Any, tuple[Any, ...]]] = []
        self.instances: list[InstanceStandIn] = []

    def callable(self, target: int) -> Callable[..., Any]:
        """The copy of the function that is ``target``. It checks, when it returns, what was bound anew.

        Raises:
            GraphError: a plain container that leads to an object contains itself.
        """
        copy: Callable[..., Any] = self.value(target)
        while self.unfilled:
            self.unfilled.pop()()
        if not (self.filled or self.overlays or self.containers or self.instances):
            return copy

        @functools.wraps(copy)
        def checked(*args: Any, **kwargs: Any) -> Any:
            result = copy(*args, **kwargs)
            self.check()
            for stand_in in self.stand_ins():
                stand_in.settle(self.outer)
            return result

        return checked

    def value(self, target: int) -> Any:
        """What stands for ``target`` in copies."""
        if target >= 0:
            return self.inner[target]
        if target not in self.made:
            node = self.nodes[~target]
            if node.shape.layout is not None:
                self.made[target] = self.instance(node, node.shape.layout)
            elif node.shape.rebuilt is not None:
                self.made[target] = self.rebuilt(target, node, node.shape.rebuilt)
            else:
                self.made[target] = self.function(node)
        return self.made[target]

    def outer(self, value: Any) -> Any:
        """What ``value`` stands for, or ``value`` itself."""
        for captured, inner in zip(self.captured, self.inner, strict=True):
            if inner is value:
                return captured
        for target, made in self.made.items():
            if made is value:
                return self.nodes[~target].value
        return value

    def instance(self, node: Node, layout: Layout) -> Any:
        """A stand-in, whose attributes are to be filled when everything is made."""
        stand_in = InstanceStandIn(node.name, layout, node.value)
        self.instances.append(stand_in)
        self.unfilled.append(lambda: stand_in.fill({key: self.value(part) for key, part in node.edges}))
        return stand_in.instance

    def rebuilt(self, target: int, node: Node, rebuild: Callable[[Any, Any], Any]) -> Any:
        if target in self.open:
            kind = type(node.value).__name__
            raise rules.RECURSIVE_CONTAINER.error(path=(node.name,), other_path=(self.open[target],), value=kind)
        self.open[target] = node.name
        copy = rebuild(node.value, {key: self.value(part) for key, part in node.edges})
        if node.shape.read is not None and node.shape.keeps_parts:
            self.containers.append((node, copy, node.shape.read(copy)))
        return copy

    def function(self, node: Node) -> FunctionType:
        """A copy of a function, whose fresh cells and globals are to be filled when everything is made."""
        function: FunctionType = node.value
        places = {key for key, _ in node.edges}
        cells = tuple(
            self.cells.setdefault(id(cell), CellType()) if ("cell", name) in places else cell
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        )
        names = function.__globals__
        if any(key[0] != "cell" for key in places if isinstance(key, tuple)):
            if id(names) not in self.overlays:
                self.overlays[id(names)] = Overlay(names)
            overlay = self.overlays[id(names)]
            overlay.copy_down(names_of(function.__code__).past_missing)
            names = overlay
        copy = FunctionType(function.__code__, names, function.__name__, None, cells)
        vars(copy).update(vars(function))
        for attribute in (*_KEPT, _ANNOTATIONS, "__type_params__"):
            if hasattr(function, attribute):
                setattr(copy, attribute, getattr(function, attribute))
        self.unfilled.append(lambda: self.fill(node, copy))
        return copy

    def fill(self, node: Node, copy: FunctionType) -> None:
        cells = dict(zip(copy.__code__.co_freevars, copy.__closure__ or (), strict=True))
        for key, target in node.edges:
            value = self.value(target)
            match key:
                case ("cell", str(name)):
                    cells[name].cell_contents = value
                    self.filled[id(cells[name])] = name, cells[name], value
                case ("global", str(name)):
                    self.overlays[id(node.value.__globals__)].replace(name, value)
                case ("attribute", tuple(path)):
                    self.overlays[id(node.value.__globals__)].replace_attribute(path, value)
                case _:
                    setattr(copy, str(key), value)

    def stand_ins(self) -> Iterator[Overlay | InstanceStandIn]:
        """What takes new bindings until the call returns."""
        yield from self.overlays.values()
        yield from self.instances

    def check(self) -> None:
        """Raise if something was bound in place of a captured object.

        Raises:
            TraceContextError: a name, an attribute, or a part of a container.
        """
        for name, cell, value in self.filled.values():
            if cell == CellType() or cell.cell_contents is not value:
                raise rebound(name)
        for stand_in in self.stand_ins():
            stand_in.check()
        for node, copy, parts in self.containers:
            now = node.shape.read(copy) if node.shape.read is not None else ()
            if len(now) != len(parts) or not all(map(is_, now, parts)):
                raise rebound(node.name)
