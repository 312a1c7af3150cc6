"""``nnx.pmap``: one element on each device, compiled once, and what comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mapped
import nnxkit as nnx
from mapped import close, single
from modes import every_mode
from nnx_rules.errors import GraphError, RngArgumentError, TransformArgumentError, TransformTypeError

XS = np.arange(4.0, dtype=np.float32)


class Scale(mapped.Scale):
    def __init__(self, w: Any = (1.0, 2.0, 3.0, 4.0), b: Any = (0.0, 0.0, 0.0, 0.0)) -> None:
        super().__init__(w, b)


class TestCalls:
    @every_mode
    def test_is_compiled_once(self, mode: Any) -> None:
        model, traced = Scale(), []

        def f(m: Any, x: Any) -> Any:
            traced.append(1)
            m.b[...] += x
            return m(x)

        mapped = nnx.pmap(f, **mode)
        for _ in range(3):
            assert close(mapped(model, XS), [0, 2, 6, 12])
        assert close(model.b, 3 * XS)
        assert len(traced) <= 2  # the values are on other devices after the first call
        assert close(mapped(Scale(), XS), [0, 2, 6, 12])
        assert len(traced) <= 2

    @every_mode
    def test_runs_on_all_devices(self, mode: Any) -> None:
        result = nnx.pmap(lambda m, x: m(x), in_axes=(None, 0), devices=jax.devices()[4:], **mode)(single(), XS)
        assert result.sharding.device_set == set(jax.devices()[4:])

    @every_mode
    def test_axes_and_collectives(self, mode: Any) -> None:
        f = nnx.pmap(lambda m, x: jax.lax.psum(m(x), "i"), axis_name="i", in_axes=(None, 1), out_axes=None, **mode)
        assert close(f(single(), XS[None]), [12])

    def test_filters(self) -> None:
        model = Scale(b=5.0)
        axes = nnx.StateAxes({nnx.BatchStat: None, ...: 0})

        def f(m: Any) -> Any:
            m.w[...] += 1
            m.new = nnx.Param(m.w * 2)
            return m.w + m.b

        assert close(nnx.pmap(f, in_axes=(axes,))(model), [7, 8, 9, 10])
        assert close(model.w, [2, 3, 4, 5])
        assert close(model.new, [4, 6, 8, 10])

    @every_mode
    def test_arguments_by_keyword(self, mode: Any) -> None:
        def f(x: Any, *, k: Any = 1.0) -> Any:
            return x * k

        assert close(nnx.pmap(f, **mode)(XS), XS)
        assert close(nnx.pmap(f, **mode)(x=XS, k=XS), XS**2)

    @every_mode
    @pytest.mark.parametrize("in_axes", [0, (0, None)])
    def test_static_argument(self, mode: Any, in_axes: Any) -> None:
        f = nnx.pmap(lambda x, k: x * 2 if k == "a" else x, static_broadcasted_argnums=1, in_axes=in_axes, **mode)
        assert close(f(XS, "a"), 2 * XS)
        assert close(f(XS, "b"), XS)

    def test_donated(self) -> None:
        model, traced = Scale(), []

        def f(m: Any) -> None:
            traced.append(1)
            m.w[...] *= 2

        mapped = nnx.pmap(f, donate_argnums=0)
        mapped(model)
        mapped(model)
        assert close(model.w, [4, 8, 12, 16])
        assert close(model.b, [0, 0, 0, 0])

    @every_mode
    def test_new_objects(self, mode: Any) -> None:
        model = nnx.pmap(lambda x: Scale(x, 1.0), **mode)(XS)
        assert close(model.w, XS)
        assert close(model.b, [1, 1, 1, 1])

    def test_returned_input(self) -> None:
        model = Scale()
        assert nnx.pmap(lambda m: m)(model) is model

    def test_names_of_axes(self) -> None:
        v = nnx.Param(jnp.zeros((4, 2)), out_sharding=("layers", "embed"), eager_sharding=False)
        seen = []

        def f(v: Any) -> None:
            seen.append(v.out_sharding)
            v[...] += 1

        nnx.pmap(f, transform_metadata={nnx.PARTITION_NAME: "layers"})(v)
        assert seen[0] == ("embed",)
        assert v.out_sharding == ("layers", "embed")

    @every_mode
    def test_method(self, mode: Any) -> None:
        class Net(Scale):
            @nnx.pmap(in_axes=(None, 0), **mode)
            def mapped(self, x: Any) -> Any:
                return self(x)

        assert close(Net(2.0, 1.0).mapped(XS), [0, 2, 4, 6])


class TestWithoutAxis:
    """What is passed whole comes back if it is the same on all devices."""

    @every_mode
    def test_same_on_all(self, mode: Any) -> None:
        model = single()

        def f(m: Any, x: Any) -> Any:
            m.b[...] += jax.lax.pmean(x, "i")
            return m(x)

        assert close(nnx.pmap(f, in_axes=(None, 0), axis_name="i", **mode)(model, XS), [0, 2, 4, 6])
        assert close(model.b, 2.5)

    def test_is_checked_once(self) -> None:
        traced = []

        def f(m: Any, x: Any) -> Any:
            traced.append(1)
            m.b[...] += 1
            return m(x)

        mapped, model = nnx.pmap(f, in_axes=(None, 0)), single()
        mapped(model, XS)
        mapped(model, XS)
        count = len(traced)
        mapped(model, XS)
        assert len(traced) == count
        assert close(model.b, 4.0)

    @every_mode
    def test_different(self, mode: Any) -> None:
        model = single()
        before = model.b.get_raw_value()

        def f(m: Any, x: Any) -> None:
            m.b[...] = x

        mapped = nnx.pmap(f, in_axes=(None, 0), **mode)
        for _ in range(2):
            with pytest.raises(TransformArgumentError, match=r"own value of `args\[0\].b`.*its axis is `None`"):
                mapped(model, XS)
        assert model.b.get_raw_value() is before

    @every_mode
    def test_different_results(self, mode: Any) -> None:
        with pytest.raises(TransformArgumentError, match=r"own value of `result`"):
            nnx.pmap(lambda x: x, out_axes=None, **mode)(XS)

    @every_mode
    def test_captured(self, mode: Any) -> None:
        model = single()

        def f(x: Any) -> Any:
            model.b[...] += 1
            return model(x)

        mapped = nnx.pmap(f, **mode)
        assert close(mapped(XS), [0, 2, 4, 6])
        model.w[...] = jnp.array(3.0)
        assert close(mapped(XS), [0, 3, 6, 9])
        assert close(model.b, 3.0)

    @every_mode
    def test_captured_and_different(self, mode: Any) -> None:
        model = single()

        def f(x: Any) -> None:
            model.b[...] = x

        with pytest.raises(TransformArgumentError, match=r"own value of `model.b`.*the function captures it"):
            nnx.pmap(f, **mode)(XS)
        assert close(model.b, 1.0)


class TestMistakes:
    @pytest.mark.parametrize(
        ("error", "text", "call"),
        [
            (
                TransformArgumentError,
                r"`in_axes` of `nnx.pmap` does not fit",
                lambda: nnx.pmap(max, in_axes=(0,))(XS, XS),
            ),
            (TransformTypeError, r"`in_axes` of `nnx.pmap` is a dict", lambda: nnx.pmap(abs, in_axes={"a": 0})(XS)),
            (TransformArgumentError, r"axis 1 of `args\[0\]`, whose shape", lambda: nnx.pmap(abs, in_axes=1)(XS)),
            (
                TransformArgumentError,
                r"axis 0 of `args\[1\]`, which has 3 elements, and over 4",
                lambda: nnx.pmap(lambda x, y: x)(XS, XS[1:]),
            ),
            (TransformArgumentError, "has no axis to map over", lambda: nnx.pmap(lambda: 1)()),
            (
                TransformArgumentError,
                "over 9 elements, one on each device, and there are 8 devices",
                lambda: nnx.pmap(lambda x: x)(np.arange(9)),
            ),
        ],
    )
    def test_error(self, error: type[Exception], text: str, call: Callable[[], Any]) -> None:
        with pytest.raises(error, match=text):
            call()

    def test_error_of_the_function(self) -> None:
        model = Scale()
        before = model.w.get_raw_value()

        def f(m: Any) -> None:
            m.w[...] += 1
            raise ValueError("stop")

        with pytest.raises(ValueError, match="stop"):
            nnx.pmap(f)(model)
        assert model.w.get_raw_value() is before

    def test_one_object_with_two_axes(self) -> None:
        model = Scale()
        with pytest.raises(GraphError, match="same object"):
            nnx.pmap(lambda a, b: None, in_axes=(0, None))(model, model)


class TestRandomness:
    @every_mode
    def test_unsplit(self, mode: Any) -> None:
        with pytest.raises(RngArgumentError, match=r"`args\[0\].default`, a random stream with a single key"):
            nnx.pmap(lambda r: r.normal(), **mode)(nnx.Rngs(0))

    @every_mode
    def test_unsplit_after_split(self, mode: Any) -> None:
        """The structure is the same, so the compiled function is found; the mistake is named all the same."""
        draw = nnx.pmap(lambda r: r.normal(), **mode)
        assert len(set(draw(nnx.Rngs(0).split(4)).tolist())) == 4
        with pytest.raises(RngArgumentError, match=r"`args\[0\].default`, a random stream with a single key"):
            draw(nnx.Rngs(0))

    @every_mode
    def test_split_by_decorator(self, mode: Any) -> None:
        rngs = nnx.Rngs(0)
        drawn = nnx.split_rngs(splits=4)(nnx.pmap(lambda r: r.normal(), **mode))(rngs)
        assert len(set(drawn.tolist())) == 4
        assert rngs.default.count[...] == 1

    @every_mode
    def test_captured(self, mode: Any) -> None:
        rngs = nnx.Rngs(0)
        with pytest.raises(RngArgumentError, match="draw the same numbers from"):
            nnx.pmap(lambda x: x + rngs.normal(), **mode)(XS)
        assert rngs.default.count[...] == 0
