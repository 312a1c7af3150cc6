"""What the rules say of the attributes of layers holds for the layers themselves, here and in flax."""

from collections.abc import Callable
from typing import Any

import optax
import pytest

from nnx_rules.names import HELD, VARIABLE_ATTRIBUTES, attributes_of

MADE: dict[str, Callable[[Any, Any], Any]] = {
    "BatchNorm": lambda nnx, rngs: nnx.BatchNorm(2, rngs=rngs),
    "Conv": lambda nnx, rngs: nnx.Conv(2, 2, (3,), rngs=rngs),
    "ConvTranspose": lambda nnx, rngs: nnx.ConvTranspose(2, 2, (3,), rngs=rngs),
    "Dropout": lambda nnx, rngs: nnx.Dropout(0.1, rngs=rngs),
    "Einsum": lambda nnx, rngs: nnx.Einsum("ab,bc->ac", (2, 2), rngs=rngs),
    "Embed": lambda nnx, rngs: nnx.Embed(2, 2, rngs=rngs),
    "GRUCell": lambda nnx, rngs: nnx.GRUCell(2, 2, rngs=rngs),
    "GroupNorm": lambda nnx, rngs: nnx.GroupNorm(2, num_groups=1, rngs=rngs),
    "InstanceNorm": lambda nnx, rngs: nnx.InstanceNorm(2, rngs=rngs),
    "LSTMCell": lambda nnx, rngs: nnx.LSTMCell(2, 2, rngs=rngs),
    "LayerNorm": lambda nnx, rngs: nnx.LayerNorm(2, rngs=rngs),
    "Linear": lambda nnx, rngs: nnx.Linear(2, 2, rngs=rngs),
    "LinearGeneral": lambda nnx, rngs: nnx.LinearGeneral(2, 2, rngs=rngs),
    "LoRA": lambda nnx, rngs: nnx.LoRA(2, 1, 2, rngs=rngs),
    "LoRALinear": lambda nnx, rngs: nnx.LoRALinear(2, 2, lora_rank=1, rngs=rngs),
    "MultiHeadAttention": lambda nnx, rngs: nnx.MultiHeadAttention(1, 2, decode=False, rngs=rngs),
    "OptimizedLSTMCell": lambda nnx, rngs: nnx.OptimizedLSTMCell(2, 2, rngs=rngs),
    "Optimizer": lambda nnx, rngs: nnx.Optimizer(nnx.Linear(2, 2, rngs=rngs), optax.sgd(0.1), wrt=nnx.Param),
    "RMSNorm": lambda nnx, rngs: nnx.RMSNorm(2, rngs=rngs),
    "SimpleCell": lambda nnx, rngs: nnx.SimpleCell(2, 2, rngs=rngs),
}


@pytest.fixture(params=["nnxkit", "flax.nnx"])
def nnx(request: pytest.FixtureRequest) -> Any:
    return pytest.importorskip(request.param)


def public(value: object) -> set[str]:
    return {name for name in dir(value) if not name.startswith("_")}


def test_every_layer_is_made() -> None:
    assert {f"nnx.{name}" for name in MADE} == HELD.keys()


@pytest.mark.parametrize("name", MADE)
def test_all_attributes_of_a_layer_are_known(nnx: Any, name: str) -> None:
    found = public(MADE[name](nnx, nnx.Rngs(0))) - public(nnx.Module)
    assert found <= (attributes_of(f"nnx.{name}") or frozenset())


@pytest.mark.parametrize("name", MADE)
def test_what_a_layer_holds_is_there(nnx: Any, name: str) -> None:
    assert HELD[f"nnx.{name}"] <= public(MADE[name](nnx, nnx.Rngs(0))) - public(nnx.Module)


def test_all_attributes_of_a_variable_are_known(nnx: Any) -> None:
    import jax.numpy as jnp

    assert public(nnx.Param(jnp.ones(2))) | public(jnp.ones(2)) <= VARIABLE_ATTRIBUTES
