"""What a call did, as plain data that compares across nnxkit and flax.nnx: the result, the state of the caller's
objects afterwards, which objects are the same ones, and the error.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np


@dataclass(frozen=True)
class Observation:
    """What a call did on one library, as plain data; the error as it was raised."""

    result: Any
    state: Any
    notes: Mapping[str, Any]
    """The metadata of the Variables that have some, by the names of the Variables."""
    error: Exception | None


class Description:
    """Brings values to plain data. Every object is described where it is met first, and named everywhere.

    Objects that are there before the call are named by numbers, in order of a walk; those met later are new.
    """

    def __init__(self, nnx: Any, subject: Any) -> None:
        self._kinds = (nnx.Variable, nnx.Pytree)
        self._state = nnx.State
        self._flat = nnx.to_flat_state
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []
        self._seen: set[int] = set()
        self._fresh: Iterator[str] = map(str, itertools.count())
        self.notes: dict[str, Any] = {}
        self(subject)
        self._fresh = (f"new {number}" for number in itertools.count())
        self._seen.clear()

    def __call__(self, value: Any) -> Any:
        if isinstance(value, self._kinds):
            return self._object(value)
        if isinstance(value, self._state):
            return "State", [(path, self(leaf)) for path, leaf in self._flat(value)]
        if isinstance(value, dict):
            return {key: self(value[key]) for key in sorted(value)}
        if isinstance(value, list | tuple):
            return type(value).__name__, [self(item) for item in value]
        return _leaf(value)

    def _object(self, value: Any) -> Any:
        if id(value) not in self._names:
            self._names[id(value)] = next(self._fresh)
            self._kept.append(value)
        name = self._names[id(value)]
        if id(value) in self._seen:
            return name
        self._seen.add(id(value))
        if isinstance(value, self._kinds[0]):
            content = self(value.get_raw_value())
            if "note" in value.get_metadata():
                self.notes[name] = value.get_metadata()["note"]
        else:
            content = {key: self(item) for key, item in sorted(vars(value).items()) if not key.startswith("_pytree__")}
        return name, type(value).__name__, content


def _leaf(value: Any) -> Any:
    if isinstance(value, jax.core.Tracer):
        return "a tracer"
    if isinstance(value, jax.ShapeDtypeStruct):
        return "shape", value.shape, str(value.dtype)
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        numbers = value.shape if value.dtype == jax.dtypes.float0 else np.asarray(value).tolist()
        return str(value.dtype), value.shape, numbers
    plain = (bool, int, float, str, type(None))
    return next(((kind.__name__, value) for kind in plain if isinstance(value, kind)), type(value).__name__)


def observe_call(nnx: Any, subject: Any, call: Callable[[], Any]) -> Observation:
    """Call a function that may change the subject."""
    describe = Description(nnx, subject)
    # In a thread of its own: after a RecursionError in flax, the interpreter's count of the thread stays too high.
    with ThreadPoolExecutor(1) as thread:
        ending = thread.submit(call)
    error = ending.exception()
    if error is not None and not isinstance(error, Exception):
        raise error
    state = describe(subject)
    return Observation(describe(None if error else ending.result()), state, describe.notes, error)
