"""Several threads at once: the same model may be read by all, different models are independent, settings belong to a
thread.
"""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import nnxkit as nnx
from threads import THREADS, together

ROUNDS = 50


class Net(nnx.Module):
    def __init__(self, seed: int) -> None:
        self.blocks = nnx.List([nnx.Linear(2, 2, rngs=nnx.Rngs(seed)) for _ in range(3)])
        self.training = True


def test_all_threads_read_one_model() -> None:
    net = Net(0)
    expected = nnx.graphdef(nnx.clone(net))

    def read(_: int) -> bool:
        good = True
        for _ in range(ROUNDS):
            graphdef, state = nnx.split(net)
            copy = nnx.merge(graphdef, state, copy=True)
            params = nnx.state(copy, nnx.Param)
            good &= graphdef == expected and len(jax.tree.leaves(params)) == 6
        return good

    assert all(together(read))


def test_threads_edit_models_of_their_own() -> None:
    nets = [Net(seed) for seed in range(THREADS)]

    def edit(number: int) -> bool:
        net, good = nets[number], True
        for turn in range(ROUNDS):
            net.training = turn % 2 == 0
            net.blocks[0].bias = nnx.Param(jnp.full(2, float(turn)))
            graphdef, state = nnx.split(net)
            copy = nnx.merge(graphdef, state)
            good &= copy.training is net.training and copy.blocks[0].bias is net.blocks[0].bias
            nnx.update(net, jax.tree.map(lambda leaf: leaf + number, state))
            good &= bool((net.blocks[0].bias[...] == turn + number).all())
        return good

    assert all(together(edit))


@pytest.mark.parametrize("setting", [nnx.set_graph_mode, nnx.set_graph_updates])
def test_settings_belong_to_a_thread(setting: Any) -> None:
    with setting(False):
        assert together(lambda number: setting.current_value()) == [True] * THREADS

    def change(number: int) -> bool:
        setting(number % 2 == 0)
        return bool(setting.current_value())

    assert together(change) == [number % 2 == 0 for number in range(THREADS)]
    assert setting.current_value() is True
