"""The same layer over nnxkit and over flax.nnx: made from one seed, called with the same arrays, compared whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx as flax_nnx

import nnxkit as nnx

Make = Callable[[Any, Any], Any]
"""Makes a layer; takes the library and its ``Rngs``."""
Call = Callable[[Any, Any], Any]
"""Calls a layer; takes the library and the layer."""

EXACT = {"rtol": 2e-5, "atol": 2e-5}
HALF = {"rtol": 3e-2, "atol": 3e-2}
"""Tolerances for float32, and where half precision is computed with."""


def arrays(*shapes: tuple[int, ...], seed: int = 1, dtype: Any = jnp.float32) -> list[jax.Array]:
    """Normally distributed arrays of these shapes."""
    keys = jax.random.split(jax.random.key(seed), len(shapes))
    return [jax.random.normal(key, shape, dtype) for key, shape in zip(keys, shapes, strict=True)]


def state_of(library: Any, node: Any) -> dict[Any, tuple[str, Any]]:
    """For each path the Variable type and the value."""
    found = {}
    for path, leaf in library.to_flat_state(library.state(node)):
        held = leaf.get_value() if hasattr(leaf, "get_value") else leaf
        found[tuple(path)] = type(leaf).__name__, held
    return found


def assert_same_values(name: str, own: Any, peer: Any, **tolerance: float) -> None:
    """Assert that two pytrees hold the same arrays."""
    for ours, theirs in zip(jax.tree.leaves(own), jax.tree.leaves(peer), strict=True):
        ours, theirs = (_plain(item) for item in (ours, theirs))
        assert ours.shape == theirs.shape, name
        assert ours.dtype == theirs.dtype, name
        if jnp.issubdtype(ours.dtype, jnp.inexact):
            wide = jnp.promote_types(ours.dtype, jnp.float32)
            ours, theirs = (np.asarray(item, wide) for item in (ours, theirs))
        # What is large as a whole has a small element as the difference of large ones.
        largest = max(1.0, float(np.max(np.abs(theirs), initial=0.0, where=np.isfinite(theirs))))
        np.testing.assert_allclose(ours, theirs, err_msg=name, rtol=tolerance["rtol"], atol=tolerance["atol"] * largest)


def _plain(value: Any) -> Any:
    value = jnp.asarray(value)
    return jax.random.key_data(value) if jnp.issubdtype(value.dtype, jax.dtypes.prng_key) else value


def assert_same_layer(make: Make, call: Call, **tolerance: float) -> None:
    """Assert that a layer is the same over both libraries: its attributes, its Variables at first, what it returns, its
    Variables afterwards, and the gradients of its ``Param``s.
    """
    tolerance = tolerance or EXACT
    layers = {library: make(library, library.Rngs(0)) for library in (nnx, flax_nnx)}

    def compare_states(when: str) -> None:
        ours, theirs = (state_of(library, layer) for library, layer in layers.items())
        assert list(ours) == list(theirs), when
        for path in ours:
            assert ours[path][0] == theirs[path][0], (when, path)
            assert_same_values(f"{path} {when}", ours[path][1], theirs[path][1], **tolerance)

    # They are printed in the order in which they are set.
    names, peer_names = ([name for name in vars(layer) if name[0] != "_"] for layer in layers.values())
    assert names == peer_names
    compare_states("at first")
    (result, gradients), (peer_result, peer_gradients) = (
        _run(library, layer, call) for library, layer in layers.items()
    )
    assert_same_values("result", result, peer_result, **tolerance)
    compare_states("afterwards")
    assert list(gradients) == list(peer_gradients)
    for path in gradients:
        assert_same_values(f"gradient of {path}", gradients[path], peer_gradients[path], **tolerance)


def _run(library: Any, layer: Any, call: Call) -> tuple[Any, dict[Any, Any]]:
    """What a call returns, and the gradients of a number that depends on all of it; compiled as one program, which is
    much quicker than operation by operation.
    """

    def objective(layer: Any) -> tuple[Any, Any]:
        result = call(library, layer)
        return _objective(result), result

    gradient = library.value_and_grad(objective, has_aux=True)
    (_, result), gradients = library.jit(lambda layer: gradient(layer))(layer)
    return result, {tuple(path): leaf.get_value() for path, leaf in library.to_flat_state(gradients)}


def _objective(result: Any) -> Any:
    """A number that depends on everything in a result."""
    leaves = [leaf.astype(jnp.float32) for leaf in jax.tree.leaves(result)]
    return sum(jnp.sum(jnp.sin(leaf)) for leaf in leaves)
