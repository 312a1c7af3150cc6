"""Training on eight devices: data parallel, sharded parameters and tensor parallel, by metadata and by shardings. Each
way must lead to the parameters that one device finds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import nnxkit as nnx

STEPS = 3

X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
Y = np.sin(3 * X)

Spec = tuple[str | None, str | None] | None


def mesh(*shape: int, names: tuple[str, ...] = ("data", "model"), kind: AxisType = AxisType.Auto) -> Mesh:
    names = names[: len(shape)]
    return jax.make_mesh(shape, names, axis_types=(kind,) * len(shape))


class Net(nnx.Module):
    """Two layers, whose parameters may say how they are sharded."""

    def __init__(self, rngs: nnx.Rngs, first: Spec = None, second: Spec = None) -> None:
        def parameter(shape: tuple[int, int], spec: Spec) -> nnx.Param[Any]:
            return nnx.Param(rngs.normal(shape) / 4, **({} if spec is None else {"out_sharding": spec}))

        self.first = parameter((8, 16), first)
        self.second = parameter((16, 8), second)
        self.calls = nnx.Variable(jnp.array(0))

    def __call__(self, x: Any) -> Any:
        self.calls[...] += 1
        return jnp.tanh(x @ self.first) @ self.second


def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    loss, grads = nnx.value_and_grad(lambda model: ((model(x) - y) ** 2).mean())(model)
    optimizer.update(model, grads)
    return loss


class Trained(NamedTuple):
    losses: list[float]
    model: Any
    optimizer: Any


def train(model: Any, compiled: Callable[..., Any], place: Callable[[Any], Any] = lambda x: x) -> Trained:
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
    losses = [float(compiled(model, optimizer, place(X), place(Y))) for _ in range(STEPS)]
    return Trained(losses, model, optimizer)


@pytest.fixture(scope="module")
def alone() -> Trained:
    """What one device finds."""
    return train(Net(nnx.Rngs(0)), nnx.jit(step))


def check_same(trained: Trained, alone: Trained) -> None:
    np.testing.assert_allclose(trained.losses, alone.losses, rtol=1e-5)
    for name in ("first", "second"):
        found, expected = getattr(trained.model, name)[...], getattr(alone.model, name)[...]
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-4, atol=1e-6)
    assert trained.model.calls[...] == STEPS


def shard_shape(variable: Any) -> tuple[int, ...]:
    """The shape of what one device has of a value, on all eight devices."""
    value = variable.get_raw_value()
    assert len(value.sharding.device_set) == 8
    shape: tuple[int, ...] = value.sharding.shard_shape(value.shape)
    return shape


def moments(trained: Trained, name: str) -> list[Any]:
    """The optimizer's moments of a parameter."""
    return [leaf for path, leaf in nnx.to_flat_state(nnx.state(trained.optimizer, nnx.OptState)) if name in path]


class TestDataParallel:
    def test_by_the_placement_of_the_batch(self, alone: Trained) -> None:
        sharding = NamedSharding(mesh(8), P("data"))
        check_same(train(Net(nnx.Rngs(0)), nnx.jit(step), lambda x: jax.device_put(x, sharding)), alone)

    def test_by_shardings_of_arguments(self, alone: Trained) -> None:
        on = mesh(8)
        whole, split = NamedSharding(on, P()), NamedSharding(on, P("data"))
        compiled = nnx.jit(step, in_shardings=(whole, whole, split, split), out_shardings=whole)
        trained = train(Net(nnx.Rngs(0)), compiled)
        check_same(trained, alone)
        assert shard_shape(trained.model.first) == (8, 16)

    @pytest.mark.parametrize("check_vma", [True, False])
    def test_by_shard_map(self, alone: Trained, check_vma: bool) -> None:
        on = mesh(8)

        def local_step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
            def loss(model: Any) -> Any:
                local = ((model(x) - y) ** 2).mean()
                # Unchecked, JAX does not know that the parameters are the same on all devices, nor adds gradients up.
                return jax.lax.pmean(local, "data") if check_vma else local

            loss, grads = nnx.value_and_grad(loss)(model)
            if not check_vma:
                loss, grads = jax.lax.pmean((loss, grads), "data")
            optimizer.update(model, grads)
            return loss

        specs = (P(), P(), P("data"), P("data"))
        mapped = nnx.shard_map(local_step, mesh=on, in_specs=specs, out_specs=P(), check_vma=check_vma)
        check_same(train(Net(nnx.Rngs(0)), nnx.jit(mapped)), alone)

    def test_by_pmap(self, alone: Trained) -> None:
        def local_step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
            loss, grads = nnx.value_and_grad(lambda model: ((model(x) - y) ** 2).mean())(model)
            loss, grads = jax.lax.pmean((loss, grads), "data")
            optimizer.update(model, grads)
            return loss

        mapped = nnx.pmap(local_step, axis_name="data", in_axes=(None, None, 0, 0), out_axes=None)
        check_same(train(Net(nnx.Rngs(0)), mapped, lambda x: x[:, None]), alone)


class TestShardedParameters:
    """Every device has an eighth of each parameter and of what the optimizer keeps for it."""

    def test_by_metadata(self, alone: Trained) -> None:
        on = mesh(8)
        with jax.set_mesh(on):
            model = Net(nnx.Rngs(0), ("data", None), (None, "data"))
            assert shard_shape(model.first) == (1, 16)
            trained = train(model, nnx.jit(step), lambda x: jax.device_put(x, NamedSharding(on, P("data"))))
        check_same(trained, alone)
        assert shard_shape(model.second) == (16, 1)
        assert [shard_shape(moment) for moment in moments(trained, "first")] == [(1, 16)] * 2

    def test_by_metadata_with_the_mesh_in_it(self, alone: Trained) -> None:
        on = mesh(8)
        model = Net(nnx.Rngs(0))
        for name in ("first", "second"):
            value = getattr(model, name)[...]
            setattr(model, name, nnx.Param(value, out_sharding=("data", None), mesh=on))
        trained = train(model, nnx.jit(step), lambda x: jax.device_put(x, NamedSharding(on, P("data"))))
        check_same(trained, alone)
        assert shard_shape(model.second) == (2, 8)

    def test_by_filters(self, alone: Trained) -> None:
        on = mesh(8)
        split, whole = NamedSharding(on, P("data")), NamedSharding(on, P())
        matrices = nnx.StateSharding({lambda path, leaf: leaf.ndim == 2: split, ...: whole})
        compiled = nnx.jit(step, in_shardings=(matrices, matrices, split, split), out_shardings=whole)
        trained = train(Net(nnx.Rngs(0)), compiled)
        check_same(trained, alone)
        assert shard_shape(trained.model.second) == (2, 8)
        assert [shard_shape(moment) for moment in moments(trained, "first")] == [(1, 16)] * 2

    def test_creation_under_jit(self, alone: Trained) -> None:
        on = mesh(8)
        split, whole = NamedSharding(on, P("data")), NamedSharding(on, P())
        shardings = nnx.StateSharding({nnx.Param: split, ...: whole})
        model = nnx.jit(lambda: Net(nnx.Rngs(0)), out_shardings=shardings)()
        assert shard_shape(model.first) == (1, 16)
        trained = train(model, nnx.jit(step), lambda x: jax.device_put(x, split))
        check_same(trained, alone)
        assert shard_shape(model.first) == (1, 16)


class TestTensorParallel:
    """The parameters are split over one axis of the mesh, the batch over the other."""

    @pytest.mark.parametrize("captured", [False, True], ids=["passed", "captured"])
    def test_by_metadata(self, alone: Trained, captured: bool) -> None:
        on = mesh(2, 4)
        with jax.set_mesh(on):
            model = Net(nnx.Rngs(0), (None, "model"), ("model", None))

            def compiled(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
                if not captured:
                    return jitted(model, optimizer, x, y)
                return nnx.jit(lambda x, y: step(model, optimizer, x, y))(x, y)

            jitted = nnx.jit(step)
            trained = train(model, compiled, lambda x: jax.device_put(x, NamedSharding(on, P("data"))))
        check_same(trained, alone)
        assert shard_shape(model.first) == (8, 4)
        assert shard_shape(model.second) == (4, 8)
        assert [shard_shape(moment) for moment in moments(trained, "second")] == [(4, 8)] * 2

    def test_by_prefix_objects(self, alone: Trained) -> None:
        """Without graph updates, shardings come in an object."""
        on = mesh(2, 4)
        model = Net(nnx.Rngs(0))
        columns, rows = NamedSharding(on, P(None, "model")), NamedSharding(on, P("model"))
        whole, split = NamedSharding(on, P()), NamedSharding(on, P("data"))
        by_path = {nnx.PathContains("first"): columns, nnx.PathContains("second"): rows, ...: whole}
        shardings = nnx.prefix(model, by_path)
        forward = nnx.jit(lambda m, x: m(x), in_shardings=(shardings, split), graph_updates=False)
        expected = Net(nnx.Rngs(0))(X)
        np.testing.assert_allclose(np.asarray(forward(model, X)), np.asarray(expected), rtol=1e-5, atol=1e-6)
        assert model.calls[...] == 1

    def test_explicit_axes(self) -> None:
        on = mesh(2, 4, kind=AxisType.Explicit)
        expected = Net(nnx.Rngs(0))(X)
        with jax.set_mesh(on):
            model = Net(nnx.Rngs(0), (None, "model"), ("model", None))
            x = jax.device_put(X, P("data"))

            @nnx.jit
            def forward(model: Any, x: Any) -> Any:
                hidden = jnp.tanh(x @ model.first)
                assert jax.typeof(hidden).sharding.spec == P("data", "model")
                return jax.numpy.einsum("bh,ho->bo", hidden, model.second[...], out_sharding=P("data", None))

            result = forward(model, x)
        np.testing.assert_allclose(np.asarray(result), np.asarray(expected), rtol=1e-5, atol=1e-6)
        assert result.sharding.spec == P("data", None)


class TestStackedLayers:
    """Layers made by ``nnx.vmap`` carry the name of their axis, and are sharded by it."""

    def test_stack(self) -> None:
        on = mesh(4, 2, names=("layers", "embed"))
        with jax.set_mesh(on):

            @nnx.split_rngs(splits=4)
            @nnx.vmap(transform_metadata={nnx.PARTITION_NAME: "layers"})
            def make(rngs: nnx.Rngs) -> Any:
                return nnx.Param(rngs.normal((2, 6)), out_sharding=(None, "embed"), eager_sharding=False)

            layers = make(nnx.Rngs(0))
            assert layers.out_sharding == ("layers", None, "embed")
            layers[...] = jax.device_put(layers[...], NamedSharding(on, P(*layers.out_sharding)))
            assert shard_shape(layers) == (1, 2, 3)
            seen = []

            def apply(w: Any, x: Any) -> Any:
                seen.append(w.out_sharding)
                w[...] *= 2
                return x @ w

            mapped = nnx.vmap(apply, in_axes=(0, None), transform_metadata={nnx.PARTITION_NAME: "layers"})
            result = nnx.jit(mapped)(layers, jnp.ones(2))
        assert result.shape == (4, 6)
        assert seen == [(None, "embed")]
        assert layers.out_sharding == ("layers", None, "embed")
        assert shard_shape(layers) == (1, 2, 3)
