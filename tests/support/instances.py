"""Instances of plain classes that hold objects of a graph."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import nnxkit as nnx


class Trainer:
    """Holds state, and what is none."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.calls = 0
        self.last: Any = None
        self.lock = threading.Lock()
        self.log: list[Any] = []

    def __call__(self) -> Any:
        return self.model.get_value()

    def read(self) -> Any:
        return self()

    @property
    def value(self) -> Any:
        return self.model.get_value()

    def count(self) -> None:
        self.calls += 1

    def replace(self) -> None:
        self.model = nnx.Variable(5)

    def delete(self) -> None:
        del self.model


class Slots:
    __slots__ = ("model", "unset")

    def __init__(self, model: Any) -> None:
        self.model = model


class SlotsBelow(Slots):
    """A slot of the same name as its base has, another one, and a ``__dict__``."""

    __slots__ = ("__dict__", "calls", "model")

    def __init__(self, model: Any) -> None:
        super().__init__(0)
        Slots.model.__set__(self, model)  # type: ignore[attr-defined]
        self.model = model
        self.calls = 0
        self.extra = 0


@dataclass
class Data:
    model: Any
    calls: int = 0


@dataclass(frozen=True)
class Frozen:
    model: Any
    calls: int = 0
