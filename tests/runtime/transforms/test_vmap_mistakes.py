"""``nnx.vmap``: axes, sizes, results and edits that make no sense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import pytest

import nnxkit as nnx
from mapped import XS, Scale, close, single
from modes import every_mode, without_updates
from nnx_rules.errors import (
    FilterError,
    GraphError,
    TraceContextError,
    TransformArgumentError,
    TransformTypeError,
)


def check_untouched(model: Scale, before: list[Any]) -> None:
    """The values are the very arrays from before, so no tracer is there."""
    assert [model.w.get_raw_value(), model.b.get_raw_value()] == before


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
