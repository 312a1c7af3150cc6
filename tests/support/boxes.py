"""Small Pytrees, and the status of what they hold."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

import nnxkit as nnx


class Box(nnx.Pytree):
    """An object with one attribute, set in ``__init__``."""

    def __init__(self, value: Any) -> None:
        self.x = value


def array() -> jax.Array:
    return jnp.ones(2)


def status(obj: nnx.Pytree, name: str = "x") -> str:
    return {True: "data", False: "static"}[obj._pytree__nodes[name]]


class Fielded(nnx.Pytree):
    d: nnx.Data[Any]
    s: nnx.Static[Any]


@nnx.dataclass
class Dataclass(nnx.Pytree):
    d: Any = nnx.data(default=0)
    s: Any = nnx.static(default=0)
    m: Any = dataclasses.field(default=0, metadata={"static": False})
    n: Any = dataclasses.field(default=0, metadata={"static": True})
    free: Any = 0
