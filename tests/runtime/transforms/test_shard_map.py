"""``nnx.shard_map``: programs for every device of a mesh, and what comes back from them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import nnxkit as nnx
from modes import MODES, every_mode
from nnx_rules.errors import GraphError, TransformArgumentError, TransformTypeError

without_updates = pytest.mark.parametrize("mode", [MODES["without updates"], MODES["tree"]], ids=["graph", "tree"])

XS = np.arange(4.0, dtype=np.float32)
OVER_X = P("x")


def mesh() -> Mesh:
    return Mesh(np.array(jax.devices()[:4]), ("x",))


def shard_map(f: Any, in_specs: Any = OVER_X, out_specs: Any = OVER_X, **options: Any) -> Any:
    # Compiled, because JAX would run the program step by step.
    mode = {key: options[key] for key in ("graph", "graph_updates") if key in options}
    return nnx.jit(nnx.shard_map(f, mesh=mesh(), in_specs=in_specs, out_specs=out_specs, **options), **mode)


class Scale(nnx.Module):
    def __init__(self, w: Any = (1.0, 2.0, 3.0, 4.0), b: Any = (0.0, 0.0, 0.0, 0.0)) -> None:
        self.w = nnx.Param(jnp.asarray(w))
        self.b = nnx.BatchStat(jnp.asarray(b))

    def __call__(self, x: Any) -> Any:
        return self.w * x


def close(value: Any, expected: Any) -> bool:
    return np.array_equal(np.asarray(value), np.asarray(expected))


class TestCalls:
    @every_mode
    @pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
    def test_written_values(self, mode: Any, jitted: bool) -> None:
        model, shapes = Scale(), []

        def f(m: Any, x: Any) -> Any:
            shapes.append(m.w.shape)
            m.b[...] += m.w
            return m(x)

        mapped = nnx.shard_map(f, mesh=mesh(), in_specs=P("x"), out_specs=P("x"), **mode)
        result = (nnx.jit(mapped, **mode) if jitted else mapped)(model, XS)
        assert close(result, [0, 2, 6, 12])
        assert close(model.b, [1, 2, 3, 4])
        assert model.b.get_raw_value().sharding.spec == P("x")
        assert shapes == [(1,)]

    @every_mode
    def test_specs_of_arguments(self, mode: Any) -> None:
        f = shard_map(lambda m, d: m(d["x"]) + d["y"], (P(), {"x": P("x"), "y": P()}), **mode)
        assert close(f(Scale(2.0, 0.0), {"x": XS, "y": 1.0}), [1, 3, 5, 7])

    @every_mode
    def test_collective(self, mode: Any) -> None:
        model = Scale(2.0, 0.0)

        def f(m: Any, x: Any) -> Any:
            m.b[...] = jax.lax.psum(x.sum(), "x")
            return jax.lax.pmean(m(x), "x")

        assert close(shard_map(f, (P(), P("x")), P(), **mode)(model, XS), [3])
        assert close(model.b, 6)

    @every_mode
    def test_arguments_by_keyword(self, mode: Any) -> None:
        def f(x: Any, *, k: Any) -> Any:
            return x * k

        assert close(shard_map(f, **mode)(XS, k=XS), XS**2)
        assert close(shard_map(f, (P("x"),), **mode)(XS, k=2.0), XS * 2)
        assert close(shard_map(lambda x, k: x * k, (P("x"), P()), **mode)(k=2.0, x=XS), XS * 2)

    def test_mesh_of_the_context(self) -> None:
        with jax.set_mesh(mesh()):
            assert close(nnx.shard_map(lambda x: x * 2, mesh=None, in_specs=P("x"), out_specs=P("x"))(XS), XS * 2)

    def test_mesh_is_required(self) -> None:
        with pytest.raises(TypeError, match="mesh"):
            nnx.shard_map(lambda x: x, in_specs=P("x"), out_specs=P("x"))  # type: ignore[call-arg]

    def test_filters(self) -> None:
        model = Scale(b=5.0)
        specs = nnx.StateSharding({nnx.BatchStat: P(), ...: P("x")})

        def f(m: Any) -> Any:
            m.b[...] = jax.lax.pmean(m.w.sum(), "x")
            m.new = nnx.Param(m.w * 2)
            return m

        assert shard_map(f, (specs,), specs)(model) is model
        assert close(model.b, 2.5)
        assert close(model.new, [2, 4, 6, 8])

    @without_updates
    def test_prefix_object(self, mode: Any) -> None:
        specs = nnx.prefix(Scale(), {nnx.Param: P("x"), ...: P()}, graph=mode.get("graph", True))
        model = Scale(b=1.0)

        def f(m: Any) -> Any:
            m.w[...] += 1
            return m.w * m.b

        assert close(shard_map(f, (specs,), **mode)(model), [2, 3, 4, 5])
        assert close(model.w, [2, 3, 4, 5])

    @every_mode
    def test_new_objects(self, mode: Any) -> None:
        model = shard_map(lambda x: Scale(x, x), **mode)(XS)
        assert close(model.w, XS)
        assert close(nnx.shard_map(lambda x: nnx.Param(x), mesh=mesh(), in_specs=P("x"), out_specs=P("x"))(XS), XS)

    @every_mode
    def test_method(self, mode: Any) -> None:
        class Net(Scale):
            @nnx.shard_map(mesh=mesh(), in_specs=(P(), P("x")), out_specs=P("x"), **mode)
            def mapped(self, x: Any) -> Any:
                return self(x)

        assert close(Net(2.0, 1.0).mapped(XS), [0, 2, 4, 6])


class TestCaptures:
    @every_mode
    @pytest.mark.parametrize(
        "function",
        [
            lambda m: lambda x: m(x),
            lambda m: functools.partial(lambda m, x: m(x), m),
            lambda m: m.__call__,
            lambda m: m,
            lambda m: lambda x: (lambda: m(x))(),
        ],
        ids=["closure", "partial", "bound method", "instance", "helper"],
    )
    def test_read(self, mode: Any, function: Any) -> None:
        assert close(shard_map(function(Scale(2.0, 1.0)), **mode)(XS), [0, 2, 4, 6])

    @every_mode
    def test_written(self, mode: Any) -> None:
        model = Scale(2.0, 1.0)

        def f(x: Any) -> Any:
            model.b[...] += jax.lax.psum(x.sum(), "x")
            return model(x)

        mapped = shard_map(f, **mode)
        assert close(mapped(XS), [0, 2, 4, 6])
        model.w[...] = jnp.array(3.0)
        assert close(mapped(XS), [0, 3, 6, 9])
        assert close(model.b, 13.0)


class TestMistakes:
    @every_mode
    def test_different_values(self, mode: Any) -> None:
        model = Scale(2.0, 1.0)
        before = model.b.get_raw_value()

        def f(m: Any, x: Any) -> None:
            m.b[...] = x.sum()

        with pytest.raises(
            TransformArgumentError,
            match=r"devices along 'x' have different values of `args\[0\].b`, whose spec is P\(\)",
        ) as caught:
            nnx.shard_map(f, mesh=mesh(), in_specs=(P(), P("x")), out_specs=P(), **mode)(model, XS)
        assert caught.value.code == "NNX426"
        assert model.b.get_raw_value() is before

    def test_different_values_of_a_capture(self) -> None:
        model = Scale(2.0, 1.0)

        def f(x: Any) -> None:
            model.b[...] = x.sum()

        with pytest.raises(TransformArgumentError, match=r"different values of `model.b`"):
            nnx.shard_map(f, mesh=mesh(), in_specs=P("x"), out_specs=P())(XS)

    def test_unchecked(self) -> None:
        model = Scale(2.0, 1.0)

        def f(m: Any, x: Any) -> None:
            m.b[...] = x.sum()

        shard_map(f, (P(), P("x")), P(), check_vma=False)(model, XS)
        assert model.b.shape == ()

    @pytest.mark.parametrize(
        ("error", "text", "call"),
        [
            (TransformTypeError, "`in_specs` of `nnx.shard_map` is a dict", lambda: shard_map(abs, {"a": P()})(XS)),
            (TransformArgumentError, "`in_specs` of `nnx.shard_map` does not fit", lambda: shard_map(abs, ())(XS)),
            (
                TransformArgumentError,
                r"divide `args\[0\]`, whose shape is \(3,\), as P\('x'\) over the mesh {'x': 4}",
                lambda: shard_map(abs)(XS[1:]),
            ),
            (
                TransformArgumentError,
                r"divide `args\[0\].b`, whose shape is \(\)",
                lambda: shard_map(lambda m: None)(Scale(b=1.0)),
            ),
            (TransformArgumentError, "different values of `result`", lambda: shard_map(abs, out_specs=P())(XS)),
            (TransformArgumentError, "different values of `result`", lambda: shard_map(abs, out_specs=None)(XS)),
            (ValueError, "stop", lambda: shard_map(lambda x: (_ for _ in ()).throw(ValueError("stop")))(XS)),
        ],
    )
    def test_error(self, error: type[Exception], text: str, call: Callable[[], Any]) -> None:
        with pytest.raises(error, match=text):
            call()

    @every_mode
    def test_one_object_with_two_specs(self, mode: Any) -> None:
        model = Scale()
        with pytest.raises(GraphError, match=r"same object|referenced|reached"):
            nnx.shard_map(lambda a, b: None, mesh=mesh(), in_specs=(P("x"), P()), out_specs=P(), **mode)(model, model)

    @every_mode
    def test_exception_of_the_function(self, mode: Any) -> None:
        model = Scale()
        before = model.w.get_raw_value()

        def f(m: Any) -> None:
            m.w[...] += 1
            raise RuntimeError("stop")

        with pytest.raises(RuntimeError, match="stop"):
            shard_map(f, **mode)(model)
        assert model.w.get_raw_value() is before


class TestGradients:
    """A data-parallel step: every device has its part of the batch, gradients are averaged."""

    @every_mode
    def test_step_is_that_of_one_device(self, mode: Any) -> None:
        def gradient(m: Any, x: Any) -> Any:
            grads = nnx.grad(lambda m, x: ((m(x) - 1) ** 2).mean(), **mode)(m, x)
            return nnx.state(grads, nnx.Param) if mode else grads

        def step(m: Any, x: Any) -> Any:
            return jax.tree.map(functools.partial(jax.lax.pmean, axis_name="x"), gradient(m, x))

        x = np.arange(8.0, dtype=np.float32)
        alone = gradient(Scale(2.0, 0.0), x)
        parallel = shard_map(step, (P(), P("x")), P(), check_vma=False, **mode)(Scale(2.0, 0.0), x)
        assert close(parallel["w"], alone["w"])

    def test_sharded_parameters(self) -> None:
        model = Scale()
        model.w[...] = jax.device_put(model.w[...], NamedSharding(mesh(), P("x")))
        loss = shard_map(lambda m, x: jax.lax.psum((m.w * x).sum(), "x"), (P("x"), P("x")), P())
        grads = nnx.grad(loss)(model, XS)
        assert close(grads["w"], XS)
