"""``nnx.vmap``: what is mapped, and what comes back under which axis."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnxkit as nnx
from mapped import XS, Scale, close, single
from modes import every_mode, without_updates
from nnx_rules.errors import (
    GraphError,
    TransformArgumentError,
)


class TestArguments:
    @every_mode
    @pytest.mark.parametrize(
        ("f", "in_axes", "args", "expected"),
        [
            (lambda x, y: x + y, (0, None), (XS, 1.0), [1, 2, 3]),
            (lambda x, y: x + y, [0, None], (XS, 1.0), [1, 2, 3]),
            (lambda x: x.sum(), -1, (jnp.arange(6.0).reshape(2, 3),), [3, 5, 7]),
            (lambda d: d["a"] + d["b"], ({"a": 0, "b": None},), ({"a": XS, "b": 1.0},), [1, 2, 3]),
            (lambda m, x: m(x), 0, (Scale(), XS), [0, 2, 6]),
            (lambda m, x: m(x), (None, 0), (single(), XS), [0, 2, 4]),
            (lambda v: v * 2, 0, (nnx.Param(XS),), [0, 2, 4]),
            (lambda s, x: s["w"] * x, (None, 0), (nnx.state(single()), XS), [0, 2, 4]),
            (lambda ms, x: ms[0](ms[1]["a"](x)), 0, ([Scale(), {"a": Scale()}], XS), [0, 4, 18]),
            (lambda x, name: x if name == "a" else -x, (0, None), (XS, "a"), [0, 1, 2]),
            (lambda x, f: f(x), (0, None), (XS, jnp.square), [0, 1, 4]),
        ],
    )
    def test_axes(self, mode: Any, f: Any, in_axes: Any, args: Any, expected: Any) -> None:
        assert close(nnx.vmap(f, in_axes=in_axes, **mode)(*args), expected)

    @every_mode
    def test_out_axes(self, mode: Any) -> None:
        columns, one = nnx.vmap(lambda x: (jnp.ones(2) * x, 1.0), out_axes=(-1, None), **mode)(XS)
        assert close(columns, [[0, 1, 2], [0, 1, 2]])
        assert one == 1.0

    @every_mode
    def test_axes_of_parameters_that_are_left_out(self, mode: Any) -> None:
        f = nnx.vmap(lambda x, y=1.0, z=2.0: x + y * z, in_axes=(0, None, None), **mode)

        assert close(f(XS), [2, 3, 4])
        assert close(f(XS, z=3.0), [3, 4, 5])
        assert close(f(XS, 2.0), [4, 5, 6])

    @every_mode
    @pytest.mark.parametrize(
        ("args", "kwargs", "in_axes"),
        [((XS,), {"k": XS}, 0), ((XS,), {"k": 2 * XS / 2}, (0,)), ((), {"k": XS, "x": XS}, (0, 0))],
    )
    def test_arguments_by_keyword(self, mode: Any, args: Any, kwargs: Any, in_axes: Any) -> None:
        assert close(nnx.vmap(lambda x, k: x * k, in_axes=in_axes, **mode)(*args, **kwargs), [0, 1, 4])

    @every_mode
    def test_keyword_only(self, mode: Any) -> None:
        def f(x: Any, *, k: Any = 2.0) -> Any:
            return x * k

        assert close(nnx.vmap(f, **mode)(XS), [0, 2, 4])
        assert close(nnx.vmap(f, in_axes=(0,), **mode)(XS, k=XS), [0, 1, 4])

    @every_mode
    def test_axis_size_where_nothing_is_mapped(self, mode: Any) -> None:
        assert close(nnx.vmap(lambda: 1.0, axis_size=3, **mode)(), [1, 1, 1])
        assert close(nnx.vmap(lambda x: x, in_axes=None, axis_size=2, **mode)(1.0), [1, 1])

    @every_mode
    def test_collective(self, mode: Any) -> None:
        assert close(nnx.vmap(lambda x: jax.lax.psum(x, "i"), axis_name="i", **mode)(XS), [3, 3, 3])

    @every_mode
    def test_decorator(self, mode: Any) -> None:
        @nnx.vmap(in_axes=(None, 0), **mode)
        def scaled(m: Any, x: Any) -> Any:
            """Doc."""
            return m(x)

        assert scaled.__name__ == "scaled"
        assert scaled.__doc__ == "Doc."
        assert close(scaled(single(), XS), [0, 2, 4])

    def test_variable_that_holds_a_tree(self) -> None:
        v = nnx.Variable({"a": XS, "b": [XS]})

        def f(v: Any) -> Any:
            value = v.get_value()
            v.set_value({"a": value["a"] + 1, "b": [value["b"][0].sum()]})
            return value["a"]

        assert close(nnx.vmap(f)(v), XS)
        assert close(v.get_value()["a"], XS + 1)

    @given(axis=st.integers(-3, 2), out=st.integers(-3, 2))
    def test_agrees_with_jax(self, axis: int, out: int) -> None:
        x = jnp.arange(24.0).reshape(2, 3, 4)
        expected = jax.vmap(lambda x: x * 2, in_axes=axis, out_axes=out)(x)
        v = nnx.Param(x)
        assert close(nnx.vmap(lambda v: v[...] * 2, in_axes=axis, out_axes=out)(v), expected)

        def double(v: Any) -> None:
            v[...] *= 2

        nnx.vmap(double, in_axes=axis)(v)
        assert close(v[...], 2 * x)


class TestUpdates:
    @every_mode
    def test_written_values(self, mode: Any) -> None:
        model = Scale()
        w = model.w.get_raw_value()

        def f(m: Any) -> Any:
            m.b[...] += m.w
            return m.w * 1

        assert close(nnx.vmap(f, **mode)(model), [1, 2, 3])
        assert close(model.b, [1, 2, 3])
        assert model.w.get_raw_value() is w

    @every_mode
    def test_one_value_for_all_under_none(self, mode: Any) -> None:
        model = single()

        def f(m: Any, x: Any) -> Any:
            m.b[...] += 1
            m.w[...] = jax.lax.pmean(x, "i")
            return x

        nnx.vmap(f, in_axes=(None, 0), axis_name="i", **mode)(model, XS)
        assert close(model.b, 2.0)
        assert close(model.w, 1.0)

    @every_mode
    def test_metadata(self, mode: Any) -> None:
        v = nnx.Param(XS)
        nnx.vmap(lambda v: v.set_metadata(unit="m"), **mode)(v)
        assert v.unit == "m"

    def test_structure(self) -> None:
        model = Scale()
        model.x = jnp.arange(3.0)

        def f(m: Any) -> Any:
            m.new = nnx.Param(m.w * 2)
            m.w = nnx.Param(m.w[...] + 1)
            m.x = m.x + 1
            m.k = 4
            return m

        assert nnx.vmap(f)(model) is model
        assert close(model.new, [2, 4, 6])
        assert close(model.w, [2, 3, 4])
        assert close(model.x, [1, 2, 3])
        assert model.k == 4

    @without_updates
    def test_structure_does_not_come_back(self, mode: Any) -> None:
        model = Scale()

        def f(m: Any) -> None:
            m.new = nnx.Param(m.w * 2)

        nnx.vmap(f, **mode)(model)
        assert not hasattr(model, "new")

    @without_updates
    def test_returned_input(self, mode: Any) -> None:
        with pytest.raises(GraphError, match=r"returns `args\[0\].\w`"):
            nnx.vmap(lambda m: m, **mode)(Scale())

    @every_mode
    def test_new_objects(self, mode: Any) -> None:
        model = nnx.vmap(Scale, **mode)(XS, XS)
        assert close(model.w, XS)
        assert close(nnx.vmap(lambda m, x: m(x), **mode)(model, XS), XS**2)

    def test_sharing_is_kept(self) -> None:
        model = Scale()

        def f(a: Any, b: Any) -> Any:
            assert a is b["m"]
            v = nnx.Param(a.w * 1)
            return v, [v]

        first, (second,) = nnx.vmap(f)(model, {"m": model})
        assert first is second


class TestStateAxes:
    def test_in_axes(self) -> None:
        model = Scale((1.0, 2.0, 3.0), 5.0)
        axes = nnx.StateAxes({nnx.BatchStat: None, ...: 0})

        def f(m: Any, x: Any) -> Any:
            m.w[...] += 1
            m.b[...] += 1
            m.new = nnx.Param(x)
            return m.w * x + m.b

        assert close(nnx.vmap(f, in_axes=(axes, 0))(model, XS), [6, 9, 14])
        assert close(model.w, [2, 3, 4])
        assert close(model.b, 6.0)
        assert close(model.new, XS)

    def test_one_for_all_arguments(self) -> None:
        axes = nnx.StateAxes({nnx.BatchStat: None, ...: 0})
        f = nnx.vmap(lambda m, k: m.w * k.w + m.b, in_axes=axes)
        assert close(f(Scale(b=5.0), Scale(b=1.0)), [6, 9, 14])

    def test_inside_of_a_container(self) -> None:
        axes = ({"m": nnx.StateAxes({nnx.Param: 0, ...: None})},)
        assert close(nnx.vmap(lambda d: d["m"](1.0), in_axes=axes)({"m": Scale(b=5.0)}), [1, 2, 3])

    def test_out_axes(self) -> None:
        axes = nnx.StateAxes({nnx.BatchStat: None, ...: 0})
        model, xs = nnx.vmap(lambda x: (Scale(x, 1.0), x), out_axes=(axes, 0))(XS)
        assert close(model.w, XS)
        assert close(model.b, 1.0)
        assert close(xs, XS)

    def test_different_values_of_what_a_filter_shares(self) -> None:
        def f(m: Any) -> None:
            m.b[...] += m.w

        with pytest.raises(TransformArgumentError, match=r"own value of `args\[0\].b`"):
            nnx.vmap(f, in_axes=(nnx.StateAxes({nnx.BatchStat: None, ...: 0}),))(Scale(b=5.0))

    @without_updates
    def test_prefix_object(self, mode: Any) -> None:
        axes = nnx.prefix(single(), {nnx.Param: 0, ...: None}, graph=mode.get("graph", True))
        model = Scale(XS, 1.0)

        def f(m: Any) -> Any:
            m.w[...] += 1
            m.b[...] += 1
            return m.w * m.b

        assert close(nnx.vmap(f, in_axes=(axes,), **mode)(model), [2, 4, 6])
        assert close(model.b, 2.0)
        made = nnx.vmap(lambda x: Scale(x, 1.0), out_axes=axes, **mode)(XS)
        assert close(made.w, XS)
        assert close(made.b, 1.0)


class TestMethods:
    def test_init_and_call(self) -> None:
        class Stack(nnx.Module):
            @nnx.vmap(in_axes=(0, 0))
            def __init__(self, x: Any) -> None:
                self.w = nnx.Param(x)
                self.k = 3

            @nnx.vmap(in_axes=(0, None))
            def __call__(self, x: Any) -> Any:
                return self.w * x

        stack = Stack(XS)
        assert close(stack.w, XS)
        assert stack.k == 3
        assert close(stack(2.0), [0, 2, 4])

    def test_init_with_split_streams(self) -> None:
        class Stack(nnx.Module):
            @nnx.split_rngs(splits=3)
            @nnx.vmap(in_axes=(nnx.StateAxes({nnx.Param: 0}), 0))
            def __init__(self, rngs: nnx.Rngs) -> None:
                self.w = nnx.Param(rngs.normal())

        rngs = nnx.Rngs(0)
        stack = Stack(rngs)
        assert stack.w.shape == (3,)
        assert len(set(stack.w[...].tolist())) == 3
        assert rngs.default.count[...] == 1
        assert rngs.default.key.shape == ()
