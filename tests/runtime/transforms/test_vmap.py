"""``nnx.vmap``: what is mapped, what comes back under which axis, captures, randomness, names of axes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnxkit as nnx
from modes import every_mode, without_updates
from nnx_rules.errors import (
    FilterError,
    GraphError,
    RngArgumentError,
    TraceContextError,
    TransformArgumentError,
    TransformTypeError,
)

XS = jnp.arange(3.0)


class Scale(nnx.Module):
    """A parameter and a statistic, each with one value or with one for each element."""

    def __init__(self, w: Any = (1.0, 2.0, 3.0), b: Any = (0.0, 0.0, 0.0)) -> None:
        self.w = nnx.Param(jnp.asarray(w))
        self.b = nnx.BatchStat(jnp.asarray(b))

    def __call__(self, x: Any) -> Any:
        return self.w * x


def single() -> Scale:
    return Scale(2.0, 1.0)


def check_untouched(model: Scale, before: list[Any]) -> None:
    """The values are the very arrays from before, so no tracer is there."""
    assert [model.w.get_raw_value(), model.b.get_raw_value()] == before


def close(value: Any, expected: Any) -> bool:
    return np.array_equal(np.asarray(value), np.asarray(expected))


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


class TestMistakes:
    """Every one is found before or while the function runs, with what is concerned; nothing is changed."""

    @pytest.mark.parametrize(
        ("error", "text", "call"),
        [
            (
                TransformArgumentError,
                r"`in_axes` of `nnx.vmap` does not fit",
                lambda: nnx.vmap(max, in_axes=(0,))(XS, XS),
            ),
            (
                TransformTypeError,
                "`in_axes` of `nnx.vmap` is a dict",
                lambda: nnx.vmap(abs, in_axes={"a": 0})({"a": XS}),
            ),
            (
                TransformArgumentError,
                r"over axis 5 of `args\[0\]`, whose shape is \(3,\)",
                lambda: nnx.vmap(abs, in_axes=5)(XS),
            ),
            (
                TransformArgumentError,
                r"axis 0 of `args\[0\].w`, whose shape is \(\)",
                lambda: nnx.vmap(lambda m: None)(Scale(1.0)),
            ),
            (
                TransformArgumentError,
                r"axis 0 of `args\[0\].w`, which has 2 elements, and over 3 of axis 0 of `args\[0\].b`",
                lambda: nnx.vmap(lambda m: None)(Scale((1.0, 2.0))),
            ),
            (
                TransformArgumentError,
                r"axis 0 of `args\[0\]`, which has 3 elements, and over 2 of `axis_size`",
                lambda: nnx.vmap(abs, axis_size=2)(XS),
            ),
            (TransformArgumentError, "`nnx.vmap` has no axis to map over", lambda: nnx.vmap(lambda: 1.0)()),
            (
                TransformArgumentError,
                "has its own value of `result`, which has no axis for them: its axis is `None`",
                lambda: nnx.vmap(abs, out_axes=None)(XS),
            ),
            (
                TransformArgumentError,
                r"own value of `result.m\[1\].w`",
                lambda: nnx.vmap(lambda x: {"m": [x, Scale(x)]}, out_axes={"m": [0, None]})(XS),
            ),
            (
                FilterError,
                "no filter of this mapping takes `b`",
                lambda: nnx.vmap(lambda m: None, in_axes=(nnx.StateAxes({nnx.Param: 0}),))(Scale()),
            ),
            (
                FilterError,
                "no filter of this mapping takes",
                lambda: nnx.vmap(abs, in_axes=(nnx.StateAxes({nnx.Param: 0}),))(XS),
            ),
            (
                TransformArgumentError,
                "`in_axes` of `nnx.vmap` holds a `Scale`",
                lambda: nnx.vmap(lambda m: None, in_axes=(Scale(),))(Scale()),
            ),
        ],
    )
    def test_error(self, error: type[Exception], text: str, call: Callable[[], Any]) -> None:
        with pytest.raises(error, match=text):
            call()

    @without_updates
    def test_filters_need_graph_updates(self, mode: Any) -> None:
        axes = nnx.StateAxes({nnx.Param: 0, ...: None})
        with pytest.raises(TransformArgumentError, match=r"`in_axes` of `nnx.vmap` holds a `StateAxes`"):
            nnx.vmap(lambda m: None, in_axes=(axes,), **mode)(Scale())

    @every_mode
    def test_one_object_with_two_axes(self, mode: Any) -> None:
        model = Scale()
        with pytest.raises(GraphError, match=r"same object|referenced twice|reached"):
            nnx.vmap(lambda a, b: None, in_axes=(0, None), **mode)([model], model)

    @every_mode
    def test_different_values_under_none(self, mode: Any) -> None:
        model, ran = single(), []
        before = [model.w.get_raw_value(), model.b.get_raw_value()]

        def f(m: Any, x: Any) -> None:
            ran.append(x)
            m.w[...] += 1
            m.b[...] = x

        with pytest.raises(TransformArgumentError, match=r"own value of `args\[0\].b`.*: its axis is `None`") as caught:
            nnx.vmap(f, in_axes=(None, 0), **mode)(model, XS)
        assert caught.value.code == "NNX422"
        assert len(ran) == 1
        check_untouched(model, before)

    @every_mode
    def test_exception_of_the_function(self, mode: Any) -> None:
        model = Scale()
        before = [model.w.get_raw_value(), model.b.get_raw_value()]

        def f(m: Any) -> None:
            m.w[...] += 1
            raise RuntimeError("stop")

        with pytest.raises(RuntimeError, match="stop"):
            nnx.vmap(f, **mode)(model)
        check_untouched(model, before)

    @every_mode
    def test_object_of_another_trace(self, mode: Any) -> None:
        model = Scale()

        def f(m: Any) -> Any:
            m.b[...] += 1
            return m.w * 1

        with pytest.raises(TraceContextError, match=r"`args\[0\]\.b`"):
            jax.jit(lambda: nnx.vmap(f, **mode)(model))()
        assert close(model.b, [0, 0, 0])


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


OUTER = single()
"""A global that a function below reads."""


def read_global(x: Any) -> Any:
    OUTER.b[...] += 1
    return OUTER(x)


class TestCaptures:
    """What is captured is passed whole, and comes back."""

    @every_mode
    def test_read_and_written(self, mode: Any) -> None:
        model = single()
        v = nnx.Variable(jnp.array(0))

        def helper(x: Any) -> Any:
            v[...] += 1
            return model(x)

        def f(x: Any) -> Any:
            model.b[...] += 1
            return helper(x)

        mapped = nnx.vmap(f, **mode)
        assert close(mapped(XS), [0, 2, 4])
        model.w[...] = jnp.array(3.0)
        assert close(mapped(XS), [0, 3, 6])
        assert close(model.b, 3.0)
        assert v[...] == 2

    @every_mode
    @pytest.mark.parametrize(
        "function",
        [
            lambda m: functools.partial(lambda m, x: m(x), m),
            lambda m: m.__call__,
            lambda m: m,
            lambda m: lambda x, m=m: m(x),
            lambda m: nnx.jit(lambda x: m(x)),
            lambda m: nnx.vmap(lambda x: m(x), in_axes=None, axis_size=1),
        ],
        ids=["partial", "bound method", "instance", "default", "jit inside", "vmap inside"],
    )
    def test_routes(self, mode: Any, function: Any) -> None:
        mapped = nnx.vmap(function(single()), **mode)
        assert close(mapped(XS).reshape(-1), [0, 2, 4])

    @every_mode
    def test_global(self, mode: Any) -> None:
        before = OUTER.b[...]
        assert close(nnx.vmap(read_global, **mode)(XS), [0, 2, 4])
        assert OUTER.b[...] == before + 1

    def test_captured_and_passed(self) -> None:
        model = Scale()

        def f(m: Any) -> Any:
            assert m is model
            model.b[...] += 1
            return m.w * 1

        assert close(nnx.vmap(f)(model), [1, 2, 3])
        assert close(model.b, [1, 1, 1])

    @every_mode
    def test_different_values(self, mode: Any) -> None:
        model = single()

        def f(x: Any) -> None:
            model.b[...] = x

        with pytest.raises(TransformArgumentError, match=r"own value of `model.b`.*: the function captures it"):
            nnx.vmap(f, **mode)(XS)
        assert close(model.b, 1.0)

    def test_new_attribute_with_different_values(self) -> None:
        model = single()

        def f(x: Any) -> None:
            model.new = nnx.Param(x)

        with pytest.raises(TransformArgumentError, match=r"own value of `model.new`"):
            nnx.vmap(f)(XS)
        assert not hasattr(model, "new")

    def test_returned(self) -> None:
        model = single()
        assert nnx.vmap(lambda x: model, out_axes=0)(XS) is model


class TestNesting:
    @every_mode
    def test_two_levels(self, mode: Any) -> None:
        model = Scale(jnp.arange(6.0).reshape(2, 3), jnp.zeros((2, 3)))

        def f(m: Any) -> Any:
            m.b[...] += 1
            return m.w * 2

        assert close(nnx.vmap(nnx.vmap(f, **mode), **mode)(model), jnp.arange(6.0).reshape(2, 3) * 2)
        assert close(model.b, jnp.ones((2, 3)))

    @every_mode
    def test_shared_inside_and_mapped_outside(self, mode: Any) -> None:
        """The inner map has one value for all of its elements, though the outer one has many."""
        model = Scale(XS, XS)

        def f(m: Any) -> Any:
            def g(m: Any, x: Any) -> Any:
                m.b[...] += 1
                return m(x)

            return nnx.vmap(g, in_axes=(None, 0), **mode)(m, jnp.ones(2))

        assert nnx.vmap(f, **mode)(model).shape == (3, 2)
        assert close(model.b, XS + 1)

    @every_mode
    @pytest.mark.parametrize("outer", [nnx.jit, lambda f, **mode: f, nnx.vmap], ids=["jit", "eager", "vmap"])
    def test_mistake_inside(self, mode: Any, outer: Any) -> None:
        def f(x: Any) -> Any:
            v = nnx.Variable(x)

            def g(v: Any, y: Any) -> None:
                v[...] += y

            nnx.vmap(g, in_axes=(None, 0), **mode)(v, XS)
            return v[...]

        with pytest.raises(TransformArgumentError, match=r"own value of `args\[0\]`"):
            outer(f, **mode)(XS)

    @every_mode
    def test_under_grad(self, mode: Any) -> None:
        def loss(m: Any) -> Any:
            def f(m: Any, x: Any) -> Any:
                m.b[...] = m.w**2
                return m(x)

            return nnx.vmap(f, in_axes=(None, 0), **mode)(m, XS).sum() + m.b[...]

        model = single()
        assert close(nnx.grad(loss, **mode)(model)["w"][...] if not mode else nnx.grad(loss, **mode)(model).w, 3 + 4)
        assert close(model.b, 4.0)

    @every_mode
    def test_jit_outside(self, mode: Any) -> None:
        traced = []

        @nnx.jit(**mode)
        def f(m: Any, x: Any) -> Any:
            def g(m: Any, x: Any) -> Any:
                traced.append(1)
                m.b[...] += 1
                return m(x)

            return nnx.vmap(g, in_axes=(None, 0), **mode)(m, x)

        model = single()
        for _ in range(3):
            assert close(f(model, XS), [0, 2, 4])
        assert close(model.b, 4.0)
        assert len(traced) == 1


class TestRandomness:
    @every_mode
    def test_unsplit(self, mode: Any) -> None:
        rngs = nnx.Rngs(0, noise=1)
        with pytest.raises(RngArgumentError, match=r"axis 0 of `args\[0\].default`.*single key") as caught:
            nnx.vmap(lambda r: r.normal(), **mode)(rngs)
        assert caught.value.code == "NNX511"
        assert "nnx.split_rngs" in caught.value.help

    def test_unsplit_inside_of_a_model(self) -> None:
        model = nnx.Dict(w=nnx.Param(XS), drop=nnx.Dropout(0.5, rngs=nnx.Rngs(0)))
        with pytest.raises(RngArgumentError, match=r"`args\[0\].drop.rngs`"):
            nnx.vmap(lambda m: m.drop(m.w[...]))(model)

    @every_mode
    def test_split(self, mode: Any) -> None:
        rngs = nnx.Rngs(0).split(3)
        drawn = nnx.vmap(lambda r: r.normal(), **mode)(rngs)
        assert len(set(drawn.tolist())) == 3
        assert close(rngs.default.count[...], [1, 1, 1])

    @every_mode
    def test_split_by_decorator(self, mode: Any) -> None:
        rngs = nnx.Rngs(0)
        draw = nnx.split_rngs(splits=3)(nnx.vmap(lambda r: r.normal(), **mode))
        assert len({*draw(rngs).tolist(), *draw(rngs).tolist()}) == 6
        assert rngs.default.count[...] == 2

    @every_mode
    def test_same_numbers_for_all(self, mode: Any) -> None:
        rngs = nnx.Rngs(0)
        drawn = nnx.vmap(lambda r: r.normal(), in_axes=None, axis_size=3, **mode)(rngs)
        assert len(set(drawn.tolist())) == 1
        assert rngs.default.count[...] == 1

    @every_mode
    def test_captured(self, mode: Any) -> None:
        rngs = nnx.Rngs(0)
        with pytest.raises(RngArgumentError, match=r"draw the same numbers from `rngs.default`") as caught:
            nnx.vmap(lambda x: x + rngs.normal(), **mode)(XS)
        assert caught.value.code == "NNX512"
        assert rngs.default.count[...] == 0

    @every_mode
    def test_captured_but_not_drawn_from(self, mode: Any) -> None:
        drop = nnx.Dropout(0.5, rngs=nnx.Rngs(0), deterministic=True)
        assert close(nnx.vmap(lambda x: drop(x), **mode)(XS), XS)


def named(*names: Any, shape: tuple[int, ...] = (3, 2)) -> nnx.Param[Any]:
    return nnx.Param(jnp.zeros(shape), out_sharding=names, eager_sharding=False)


class TestAxisNames:
    METADATA = {nnx.PARTITION_NAME: "layers"}  # noqa: RUF012

    @every_mode
    @pytest.mark.parametrize(
        ("axis", "names", "inside"),
        [
            (0, ("layers", "embed"), ("embed",)),
            (1, ("embed", "layers"), ("embed",)),
            (-1, ("embed", "layers"), ("embed",)),
            (-2, ("layers", "embed"), ("embed",)),
            (None, ("embed", None), ("embed", None)),
        ],
    )
    def test_argument(self, mode: Any, axis: Any, names: Any, inside: Any) -> None:
        v, seen = named(*names), []

        def f(v: Any) -> None:
            seen.append(v.out_sharding)
            v[...] += 1

        nnx.vmap(
            f, in_axes=axis, axis_size=3 if axis in (0, -2, None) else 2, transform_metadata=self.METADATA, **mode
        )(v)
        assert seen == [inside]
        assert v.out_sharding == names
        assert close(v, jnp.ones((3, 2)))

    @every_mode
    def test_result(self, mode: Any) -> None:
        def make(x: Any) -> Any:
            return named("embed", shape=(2,)), {"b": [named("embed", "heads")]}

        first, second = nnx.vmap(make, out_axes=(0, {"b": -1}), transform_metadata=self.METADATA, **mode)(XS)
        assert first.out_sharding == ("layers", "embed")
        assert second["b"][0].out_sharding == ("embed", "heads", "layers")

    def test_new_attribute_and_returned_input(self) -> None:
        model = nnx.Dict(v=named("layers", "embed"))

        def f(m: Any) -> Any:
            m.new = named("embed", shape=(2,))
            return m, m.v

        returned, v = nnx.vmap(f, transform_metadata=self.METADATA)(model)
        assert returned is model
        assert v is model.v
        assert model.v.out_sharding == model.new.out_sharding == ("layers", "embed")

    @every_mode
    def test_other_name(self, mode: Any) -> None:
        v = named("heads", "embed")
        with pytest.raises(TransformArgumentError, match=r"axis 0 of `args\[0\]` as 'layers'.* that axis is 'heads'"):
            nnx.vmap(lambda v: None, transform_metadata=self.METADATA, **mode)(v)
        assert v.out_sharding == ("heads", "embed")

    def test_shorter_than_the_shape(self) -> None:
        with pytest.raises(TransformArgumentError, match="that axis is None"):
            nnx.vmap(lambda v: None, in_axes=1, transform_metadata=self.METADATA)(named("embed"))
        v = named("embed")
        nnx.vmap(lambda v: None, in_axes=1, transform_metadata={nnx.PARTITION_NAME: None})(v)
        assert v.out_sharding == ("embed", None)

    def test_hooks_and_variables_without_names(self) -> None:
        calls = []
        hooks = {
            "on_remove_axis": lambda v, axis, name: calls.append(("remove", axis, name)),
            "on_add_axis": lambda v, axis, name: calls.append(("add", axis, name)),
        }
        nnx.vmap(lambda v: None, transform_metadata=self.METADATA)(nnx.Param(XS, **hooks))
        assert calls == [("remove", 0, "layers"), ("add", 0, "layers")]

    def test_partition_spec_stays_one(self) -> None:
        spec = jax.sharding.PartitionSpec("layers", "embed")
        v = nnx.Param(jnp.zeros((3, 2)), out_sharding=spec, eager_sharding=False)
        seen = []
        nnx.vmap(lambda v: seen.append(v.out_sharding), transform_metadata=self.METADATA)(v)
        assert seen == [jax.sharding.PartitionSpec("embed")]
        assert v.out_sharding == spec

    def test_names_without_a_map(self) -> None:
        v = named("layers", "embed")
        result = nnx.transform_metadata(lambda v: (v, v.out_sharding), partition="layers")(v)
        assert result == (v, ("embed",))
        assert v.out_sharding == ("layers", "embed")

        @nnx.transform_metadata(partition="layers", in_axes=(0, None))
        def fail(v: Any, fail: bool) -> None:
            raise RuntimeError(str(v.out_sharding))

        with pytest.raises(RuntimeError, match=r"\('embed',\)"):
            fail(v, fail=True)
        assert v.out_sharding == ("layers", "embed")
