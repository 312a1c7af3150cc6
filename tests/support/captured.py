"""Objects that the tests of captures reach for, and what they ask."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import jax

import nnxkit as nnx
from nnxkit._transforms._captures import Captures, captures_of


def variable(value: Any) -> nnx.Variable[Any]:
    return nnx.Variable(value)


class Scale(nnx.Module):
    def __init__(self, factor: float) -> None:
        self.factor = nnx.Param(factor)

    def __call__(self, x: Any) -> Any:
        return x * self.factor.get_value()

    def twice(self, x: Any) -> Any:
        return self(self(x))


def module(source: str, name: str = "users_module", **given: Any) -> types.SimpleNamespace:
    """What a module of the user with this text defines; ``names`` are its globals."""
    names: dict[str, Any] = {"__name__": name, **given}
    exec(source, names)
    return types.SimpleNamespace(**{k: v for k, v in names.items() if k.isidentifier()}, names=names)


def only(captures: Captures) -> Any:
    (found,) = captures.objects
    return found


def rebound(f: Callable[..., Any], *inner: Any) -> Callable[..., Any]:
    return captures_of(f).rebind(inner)


@jax.tree_util.register_pytree_node_class
class Box:
    def __init__(self, value: Any) -> None:
        self.value = value

    def tree_flatten(self) -> Any:
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Any:
        return cls(*children)
