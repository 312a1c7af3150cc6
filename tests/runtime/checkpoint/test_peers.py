"""Checkpoints of flax, and Orbax used as flax users do: written by one side, read by the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import nnxkit as nnx

ocp = pytest.importorskip("orbax.checkpoint")


def make(library: Any, seed: int) -> dict[str, Any]:
    """A model and its optimizer after a step, of one of the libraries."""

    class Net(library.Module):
        def __init__(self, rngs: Any) -> None:
            self.layers = library.List([library.Linear(2, 2, rngs=rngs), library.Linear(2, 2, rngs=rngs)])
            self.norm = library.BatchNorm(2, rngs=rngs)
            self.drop = library.Dropout(0.5, rngs=rngs)
            self.tied = self.layers[0].kernel
            self.scale = library.data(jnp.array(float(seed)))

    model = Net(library.Rngs(seed))
    optimizer = library.Optimizer(model, optax.adam(0.1), wrt=library.Param)
    optimizer.update(model, jax.tree.map(lambda leaf: leaf * 0 + seed, library.state(model, library.Param)))
    return {"model": model, "optimizer": optimizer}


def numbers(library: Any, node: Any) -> dict[str, Any]:
    """The leaves of a state by their paths."""

    def number(leaf: Any) -> Any:
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(leaf) if is_key else leaf)

    state = node if isinstance(node, library.State) else library.state(node)
    return {jax.tree_util.keystr(path): number(leaf) for path, leaf in jax.tree.leaves_with_path(state)}


def assert_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert set(ours) == set(theirs)
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)


def test_flax_and_nnxkit_read_each_other(tmp_path: Path) -> None:
    flax = pytest.importorskip("flax.nnx")
    ours, theirs = make(nnx, 5), make(flax, 3)
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "state", flax.state(theirs))
        checkpointer.save(tmp_path / "pure", flax.to_pure_dict(flax.state(theirs["model"])))
        checkpointer.wait_until_finished()
        again = nnx.checkpoints.restore(tmp_path / "state", make(nnx, 0))
        assert_same(numbers(nnx, again), numbers(flax, theirs))
        model = nnx.checkpoints.restore(tmp_path / "pure", nnx.eval_shape(lambda: make(nnx, 0)["model"]))
        assert_same(numbers(nnx, model), numbers(flax, theirs["model"]))

        nnx.checkpoints.save(tmp_path / "ours", ours)
        read = checkpointer.restore(tmp_path / "ours", flax.state(make(flax, 0)))
        assert_same(numbers(nnx, ours), numbers(flax, read))


def test_orbax_takes_states_and_gives_states(tmp_path: Path) -> None:
    model = make(nnx, 1)["model"]
    graphdef, abstract = nnx.split(nnx.eval_shape(lambda: make(nnx, 0)["model"]))
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "1", nnx.state(model))
        checkpointer.wait_until_finished()
        device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
        placed = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=device), abstract)
        state = checkpointer.restore(tmp_path / "1", placed)
    assert isinstance(state, nnx.State)
    assert isinstance(state["layers"][0]["kernel"], nnx.Param)
    assert_same(numbers(nnx, nnx.merge(graphdef, state)), numbers(nnx, model))


@pytest.mark.filterwarnings("ignore:Sharding info not provided")
def test_orbax_takes_pure_dictionaries(tmp_path: Path) -> None:
    model, other = make(nnx, 1)["model"], make(nnx, 0)["model"]
    with ocp.PyTreeCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "1", nnx.to_pure_dict(nnx.state(model)))
        pure = checkpointer.restore(tmp_path / "1")
    assert set(pure["layers"]) == {"0", "1"}  # integers become strings on the way
    state = nnx.state(other)
    nnx.replace_by_pure_dict(state, nnx.restore_int_paths(pure))
    nnx.update(other, state)
    assert_same(numbers(nnx, other), numbers(nnx, model))
