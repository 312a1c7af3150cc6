"""Globals and modules with some names replaced, for copied functions.

Invariants

- Names that are not replaced are read from the real globals, or the real module, whenever they are asked for.
- Nothing is written to the real ones while the function runs, but attributes of modules, which are not replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from nnx_rules.errors import NNXError
from nnx_rules.rules import traces as rules


def rebound(name: str) -> NNXError:
    """The error for something that is bound to ``name``, which led to a captured object."""
    return rules.CAPTURED_REBOUND.error(name=name)


class Overlay(dict[str, Any]):
    """Globals with some names replaced.

    The interpreter looks up the names of functions through ``__missing__``. For those of class bodies, for deletions,
    and for its own (``__name__``, ``__builtins__``) it looks into the dictionary itself, so these are copied.
    """

    __slots__ = ("given", "parent", "replaced")

    def __init__(self, parent: dict[str, Any]) -> None:
        super().__init__()
        self.parent = parent
        self.given: dict[str, Any] = {}
        self.replaced: set[str] = set()
        self.copy_down([name for name in parent if name.startswith("__")])

    def __missing__(self, name: str) -> Any:
        return self.parent[name]

    def replace(self, name: str, value: Any) -> None:
        """Let the function see this."""
        self.given[name] = self[name] = value
        self.replaced.add(name)

    def replace_attribute(self, path: tuple[str, ...], value: Any) -> None:
        """Let the function see this as an attribute, at a path that goes through modules."""
        if path[0] not in self.replaced:
            self.replace(path[0], StandIn(self[path[0]]))
        holder: StandIn = self[path[0]]
        for name in path[1:-1]:
            holder = holder.stand_in(name)
        vars(holder)[path[-1]] = value

    def copy_down(self, names: Iterable[str]) -> None:
        """Hold what the parent has under these names, unless they are held already."""
        for name in set(names) - self.given.keys():
            try:
                self.given[name] = self[name] = self.parent[name]
            except KeyError:  # a builtin, or not defined yet
                continue

    def check(self) -> None:
        """Raise if a replaced name was bound to something else.

        Raises:
            TraceContextError: it was.
        """
        for name in self.replaced:
            if self.get(name, self) is not self.given[name]:
                raise rebound(name)

    def settle(self, outer: Callable[[Any], Any]) -> None:
        """Let the parent have what the function has bound and deleted, as ``outer`` knows it outside."""
        for name, value in self.items():
            if self.given.get(name, self) is not value:
                self.parent[name] = outer(value)
        for name in self.given.keys() - self.keys():
            del self.parent[name]


def layers_of(names: dict[str, Any]) -> list[dict[str, Any]]:
    """The dictionaries that globals are read from: more than one if they are those of a copied function."""
    layers = [names]
    while isinstance(names, Overlay):
        names = names.parent
        layers.append(names)
    return layers


class StandIn(ModuleType):
    """A module with some attributes replaced. The others are read from, and written to, the original."""

    def __init__(self, original: ModuleType) -> None:
        super().__init__(original.__name__)
        vars(self).update((name, value) for name, value in vars(original).items() if name.startswith("__"))
        vars(self)["__nnx_original__"] = original

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["__nnx_original__"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self):
            raise rebound(f"{self.__name__}.{name}")
        setattr(vars(self)["__nnx_original__"], name, value)

    def stand_in(self, name: str) -> StandIn:
        """The stand-in for a module that is an attribute of this one."""
        if name not in vars(self):
            vars(self)[name] = StandIn(getattr(self, name))
        found: StandIn = vars(self)[name]
        return found
