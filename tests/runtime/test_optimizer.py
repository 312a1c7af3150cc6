"""The optimizer."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import nnxkit as nnx
from nnx_rules.errors import GradientsMismatchError, OptimizerArgumentError, TraceContextError


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


def _is_matrix(params: Any) -> Any:
    return jax.tree.map(lambda param: param.ndim == 2, params)


def _parts(params: Any) -> Any:
    return jax.tree.map(lambda param: "matrices" if param.ndim == 2 else "rest", params)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("tx", "rate"),
    [
        (optax.sgd(0.1, momentum=0.9), None),
        (optax.adamw(0.1), None),
        (optax.chain(optax.clip(0.1), optax.adam(0.1)), None),
        (optax.adamw(0.1, mask=_is_matrix), None),
        (optax.masked(optax.adam(0.1), _is_matrix), None),
        (optax.multi_transform({"matrices": optax.adam(0.1), "rest": optax.set_to_zero()}, _parts), None),
        (optax.MultiSteps(optax.adam(0.1), every_k_schedule=2), None),
        (optax.inject_hyperparams(optax.adam)(learning_rate=optax.linear_schedule(0.1, 0.0, 3)), None),
        (optax.inject_hyperparams(optax.adam)(learning_rate=0.1), None),
        (optax.inject_hyperparams(optax.adam)(learning_rate=0.1), 0.5),
        (optax.inject_hyperparams(optax.adam)(learning_rate=0.1), jnp.array(0.5)),
    ],
)
def test_same_as_flax(tx: Any, rate: Any, compiled: bool) -> None:
    flax_nnx = pytest.importorskip("flax.nnx")

    def train(module: Any) -> tuple[list[Any], list[str]]:
        model = module.Linear(2, 3, rngs=module.Rngs(0))
        optimizer = module.Optimizer(model, tx, wrt=module.Param)

        def step(model: Any, optimizer: Any) -> None:
            optimizer.update(model, grads_of(module, model))

        run = module.jit(step) if compiled else step
        for number in range(3):
            if number == 1 and rate is not None:  # a bare value in the place of a Variable
                optimizer.opt_state.hyperparams["learning_rate"] = rate
            run(model, optimizer)
        leaves = jax.tree_util.tree_leaves_with_path((module.state(model), module.state(optimizer)))
        return [np.asarray(leaf) for _, leaf in leaves], [jax.tree_util.keystr(path) for path, _ in leaves]

    (ours, our_paths), (theirs, their_paths) = train(nnx), train(flax_nnx)
    assert our_paths == their_paths
    for left, right in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(left, right)


class TestArguments:
    def test_without_wrt(self) -> None:
        with pytest.raises(OptimizerArgumentError, match="`Optimizer` got no `wrt`") as error:
            nnx.Optimizer(nnx.Linear(2, 3, rngs=nnx.Rngs(0)), optax.sgd(0.1))
        assert "nnx.ModelAndOptimizer" in str(error.value)

    def test_arguments_of_update(self) -> None:
        model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
        grads = jax.tree.map(jnp.ones_like, nnx.state(model, nnx.Param))
        with pytest.raises(OptimizerArgumentError, match=r"`Optimizer.update` got one argument"):
            optimizer.update(grads)
        with pytest.raises(OptimizerArgumentError, match=r"got a State first and a Linear second"):
            optimizer.update(grads, model)
        assert int(optimizer.step[...]) == 0

    def test_arguments_of_update_by_name(self) -> None:
        model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
        grads = jax.tree.map(jnp.ones_like, nnx.state(model, nnx.Param))
        optimizer.update(model=model, grads=grads)
        optimizer.update(model, grads=grads)
        np.testing.assert_allclose(model.bias, -0.2 * np.ones(3), rtol=1e-6)
        with pytest.raises(OptimizerArgumentError, match=r"`Optimizer.update` got one argument"):
            optimizer.update(model=model)
        with pytest.raises(TypeError, match="multiple values for argument 'grads'"):
            optimizer.update(model, grads, grads=grads)

    @pytest.mark.parametrize(
        ("grads", "message"),
        [
            ({"bias": jnp.ones(3)}, "have no `kernel`, which the optimizer was made for"),
            (
                {"bias": jnp.ones(3), "kernel": jnp.ones((3, 2))},
                r"that of `kernel` has shape \(3, 2\), and the parameter",
            ),
        ],
    )
    def test_gradients_of_something_else(self, grads: dict[str, Any], message: str) -> None:
        model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param)
        before = model.kernel[...]
        with pytest.raises(GradientsMismatchError, match=message):
            optimizer.update(model, nnx.State(grads))
        assert int(optimizer.step[...]) == 0
        assert model.kernel[...] is before


def test_gradients_of_more_than_is_trained() -> None:
    model = nnx.LoRALinear(2, 3, lora_rank=1, b_initializer=nnx.initializers.ones, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.LoRAParam)
    kernel, lora = model.kernel[...], model.lora.lora_a[...]
    optimizer.update(model, nnx.grad(lambda model: model(jnp.ones(2)).sum())(model))
    np.testing.assert_array_equal(model.kernel[...], kernel)
    assert not np.allclose(model.lora.lora_a[...], lora)


class TestTrainState:
    def test_steps_as_optax_does(self) -> None:
        graphdef, params = nnx.split(nnx.Linear(2, 3, rngs=nnx.Rngs(0)))
        tx = optax.adam(0.1)
        train_state = nnx.TrainState.create(graphdef, params=params, tx=tx)
        x = jnp.ones((4, 2))

        @jax.jit
        def step(train_state: Any) -> Any:
            def loss(params: Any) -> Any:
                y, _ = train_state.apply(params)(x)
                return jnp.mean(y**2)

            return train_state.apply_gradients(jax.grad(loss)(train_state.params))

        expected, opt_state = params, tx.init(params)
        for _ in range(3):
            train_state = step(train_state)
            grads = jax.grad(lambda params: jnp.mean(nnx.merge(graphdef, params)(x) ** 2))(expected)
            updates, opt_state = tx.update(grads, opt_state, expected)
            expected = optax.apply_updates(expected, updates)
        assert int(train_state.step) == 3
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), train_state.params, expected)

    def test_subclasses_add_fields(self) -> None:
        class State(nnx.TrainState[Any]):
            counts: nnx.State
            name: str = dataclasses.field(default="a", metadata={"pytree_node": False})

        graphdef, params, counts = nnx.split(nnx.BatchNorm(2, rngs=nnx.Rngs(0)), nnx.Param, ...)
        state = State.create(graphdef, params=params, tx=optax.sgd(0.1), counts=counts, step=5)
        assert len(jax.tree.leaves(state)) == 5
        assert jax.tree.map(lambda leaf: leaf, state).name == "a"
        moved = state.apply_gradients(params, name="b")
        assert (int(moved.step), moved.name, state.name) == (6, "b", "a")
        y, _ = moved.apply("params", "counts")(jnp.ones((4, 2)))
        assert y.shape == (4, 2)
        with pytest.raises(dataclasses.FrozenInstanceError, match="step"):
            state.step = 3
