"""The optimizer."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import nnxkit as nnx
from nnx_rules.errors import TraceContextError


def loss(model: Any, x: Any) -> Any:
    return jnp.mean(model(x) ** 2)


X = jnp.arange(6.0).reshape(3, 2)


def grads_of(module: Any, model: Any) -> Any:
    graphdef, params = module.split(model)
    return jax.grad(
        lambda p: loss(module.merge(graphdef, p, copy=True) if module is nnx else module.merge(graphdef, p), X)
    )(params)


def test_sgd() -> None:
    model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    kernel, before = model.kernel, model.kernel[...]
    optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
    grads = grads_of(nnx, model)
    updates = optimizer.update(model, grads)
    assert model.kernel is kernel
    np.testing.assert_allclose(model.kernel[...], before - 0.1 * grads["kernel"][...], rtol=1e-6)
    np.testing.assert_allclose(updates["kernel"], -0.1 * grads["kernel"][...], rtol=1e-6)
    assert optimizer.step == 1
    assert optimizer.step.dtype == jnp.uint32


def test_state() -> None:
    model = nnx.Linear(2, 3, rngs=nnx.Rngs(0), kernel_metadata={"unit": "m"})
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    state = {jax.tree_util.keystr(p): v for p, v in jax.tree_util.tree_leaves_with_path(nnx.state(optimizer))}
    assert sorted(state) == [
        "['opt_state'][0]['count'].value",
        "['opt_state'][0]['mu']['bias'].value",
        "['opt_state'][0]['mu']['kernel'].value",
        "['opt_state'][0]['nu']['bias'].value",
        "['opt_state'][0]['nu']['kernel'].value",
        "['step'].value",
    ]
    flat = dict(nnx.to_flat_state(nnx.state(optimizer)))
    assert type(flat["opt_state", 0, "count"]) is nnx.OptArray
    mu = flat["opt_state", 0, "mu", "kernel"]
    assert type(mu) is nnx.OptVariable
    assert mu.unit == "m"


def test_only_what_wrt_takes() -> None:
    model = nnx.Dict(a=nnx.Param(jnp.ones(2)), b=nnx.BatchStat(jnp.ones(2)))
    optimizer = nnx.Optimizer(model, optax.sgd(1.0), wrt=nnx.BatchStat)
    optimizer.update(model, nnx.State({"b": nnx.BatchStat(jnp.ones(2))}))
    assert model.a[...].tolist() == [1, 1]
    assert model.b[...].tolist() == [0, 0]


def test_wrt_is_needed() -> None:
    with pytest.raises(TypeError, match="wrt"):
        nnx.Optimizer(nnx.Dict(), optax.sgd(1.0))  # type: ignore[call-arg]


def test_wrong_gradients_change_nothing() -> None:
    model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param)
    before = model.kernel[...]
    with pytest.raises(ValueError, match=r"kernel|structure|arity|keys"):
        optimizer.update(model, nnx.State({"kernel": jnp.ones((2, 3))}))
    assert model.kernel[...] is before
    assert optimizer.step == 0


def test_captured() -> None:
    model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
    grads = grads_of(nnx, model)
    with pytest.raises(TraceContextError, match="Cannot mutate"):
        jax.jit(lambda g: optimizer.update(model, g))(grads)


def test_under_jit_as_arguments() -> None:
    model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param)

    @jax.jit
    def step(model: Any, optimizer: Any) -> Any:
        optimizer.update(model, grads_of(nnx, model))
        return model, optimizer

    first = float(loss(model, X))
    for _ in range(3):
        model, optimizer = step(model, optimizer)
    assert optimizer.step == 3
    assert float(loss(model, X)) < first


def test_model_and_optimizer() -> None:
    model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    optimizer = nnx.ModelAndOptimizer(model, optax.sgd(0.1))
    optimizer.update(grads_of(nnx, model))
    assert optimizer.model is model
    assert optimizer.step == 1


@pytest.mark.parametrize(
    "tx", [optax.sgd(0.1, momentum=0.9), optax.adamw(0.1), optax.chain(optax.clip(0.1), optax.adam(0.1))]
)
def test_same_as_flax(tx: Any) -> None:
    flax_nnx = pytest.importorskip("flax.nnx")

    def train(module: Any) -> tuple[list[Any], list[str]]:
        model = module.Linear(2, 3, rngs=module.Rngs(0))
        optimizer = module.Optimizer(model, tx, wrt=module.Param)
        for _ in range(3):
            optimizer.update(model, grads_of(module, model))
        leaves = jax.tree_util.tree_leaves_with_path((module.state(model), module.state(optimizer)))
        return [np.asarray(leaf) for _, leaf in leaves], [jax.tree_util.keystr(path) for path, _ in leaves]

    (ours, our_paths), (theirs, their_paths) = train(nnx), train(flax_nnx)
    assert our_paths == their_paths
    for left, right in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(left, right)
