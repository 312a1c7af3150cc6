"""``nnx.cached_partial`` and ``nnx.jit_partial``: first arguments that are given once."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import nnxkit as nnx
from modes import every_mode
from nets import Wave as Net
from nets import values
from nnx_rules.errors import GraphError, TransformArgumentError


def count(m: Any, x: Any) -> Any:
    m.b[...] += 1
    return m.w * x


makers = pytest.mark.parametrize(
    "make",
    [
        lambda f, *args, mode, **options: nnx.cached_partial(nnx.jit(f, **options, **mode), *args),
        lambda f, *args, mode, **options: nnx.jit_partial(f, *args, **options, **mode),
    ],
    ids=["cached_partial", "jit_partial"],
)


@makers
@every_mode
class TestBoth:
    def test_values_are_shared_both_ways(self, make: Any, mode: Any) -> None:
        net = Net()
        f = make(count, net, mode=mode)
        assert (float(f(2.0)), values(net)) == (4.0, {"w": 2.0, "b": 2.0})
        net.w[...] = 5.0
        assert (float(f(2.0)), values(net)) == (10.0, {"w": 5.0, "b": 3.0})

    def test_later_edits_of_the_original_are_not_seen(self, make: Any, mode: Any) -> None:
        net = Net()
        f = make(count, net, mode=mode)
        net.w = nnx.Param(jnp.array(10.0))
        net.b = nnx.BatchStat(jnp.array(10.0))
        assert (float(f(2.0)), values(net)["b"]) == (4.0, 10.0)

    @pytest.mark.parametrize(
        ("edit", "path"),
        [
            (lambda m: setattr(m, "extra", nnx.Param(m.w * 1)), r"args\[0\]\.extra"),
            (lambda m: setattr(m, "flag", True), r"args\[0\]\.flag"),
            (lambda m: delattr(m, "b"), r"args\[0\]\.b"),
            (lambda m: setattr(m, "w", nnx.Param(m.w * 1)), r"args\[0\]\.w"),
        ],
    )
    def test_edits_of_the_structure_are_refused(self, make: Any, mode: Any, edit: Any, path: str) -> None:
        net = Net()

        def f(m: Any, x: Any) -> Any:
            m.w[...] += 1
            if x.ndim:
                edit(m)
            return m.w * x

        kept = make(f, net, mode=mode)
        message = r"the function edits the structure of `" + path + r"`, which `nnx\.(cached|jit)_partial` keeps"
        with pytest.raises(GraphError, match=message):
            kept(jnp.ones(1))
        assert values(net)["w"] == 2.0
        assert float(kept(2.0)) == 6.0

    def test_other_first_arguments(self, make: Any, mode: Any) -> None:
        f = make(lambda m, d, x, y: m.w * d["a"] * x * y, Net(), {"a": jnp.array(3.0)}, 5.0, mode=mode)
        assert float(f(2.0)) == 60.0

    def test_variables_in_both_parts(self, make: Any, mode: Any) -> None:
        a, b = Net(), Net(7.0)
        f = make(lambda m, other: count(m, count(other, 1.0)), a, mode=mode)
        assert float(f(b)) == 14.0
        assert (values(a)["b"], values(b)["b"]) == (2.0, 2.0)

    def test_static_arguments_count_the_first(self, make: Any, mode: Any) -> None:
        f = make(lambda m, x, k: m.w * x if k == "times" else x, Net(), mode=mode, static_argnums=2)
        assert float(f(3.0, "times")) == 6.0
        f = make(lambda m, x, *, k: m.w * x if k == "times" else x, Net(), mode=mode, static_argnames="k")
        assert float(f(3.0, k="times")) == 6.0

    def test_captures(self, make: Any, mode: Any) -> None:
        net, other = Net(), Net(3.0)
        f = make(lambda m, x: count(m, count(other, x)), net, mode=mode)
        assert float(f(1.0)) == 6.0
        assert (values(net)["b"], values(other)["b"]) == (2.0, 2.0)

    def test_under_another_transform(self, make: Any, mode: Any) -> None:
        net = Net()
        f = make(count, net, mode=mode)
        assert float(nnx.grad(lambda m, x: m.w * f(x), **mode)(net, 3.0).w.get_value()) == 12.0
        assert values(net) == {"w": 2.0, "b": 2.0}

    def test_traced_once(self, make: Any, mode: Any) -> None:
        traces = []

        def f(m: Any, x: Any) -> Any:
            traces.append(1)
            return count(m, x)

        kept = make(f, Net(), mode=mode)
        kept(1.0), kept(2.0)
        assert len(traces) == 1


def test_jit_partial_has_the_stages_of_jit() -> None:
    net = Net()
    f = nnx.jit_partial(count, net)
    assert f.eval_shape(2.0) == jax.ShapeDtypeStruct((), jnp.float32)
    assert "multiply" in f.lower(2.0).as_text()
    assert len(f.trace(2.0).jaxpr.out_avals) == 2
    assert values(net)["b"] == 1.0


def test_returned_arguments_are_those_that_are_kept() -> None:
    net = Net()
    f = nnx.cached_partial(nnx.jit(lambda m: m), net)
    assert f() is not net
    assert f().w is net.w


def test_other_transforms() -> None:
    net = Net()
    f = nnx.cached_partial(nnx.value_and_grad(lambda m, x: count(m, x)), net)
    value, grads = f(3.0)
    assert (float(value), float(grads.w.get_value()), values(net)["b"]) == (6.0, 3.0, 2.0)


def test_functions_of_python_that_transform_themselves() -> None:
    net = Net()
    f = nnx.cached_partial(lambda m, x: nnx.value_and_grad(count)(m, x), net)

    value, grads = f(3.0)

    assert (float(value), float(grads.w.get_value()), values(net)["b"]) == (6.0, 3.0, 2.0)


def test_functions_of_python_may_not_edit_the_structure() -> None:
    def grow(net: Net) -> None:
        net.more = nnx.Param(1.0)

    with pytest.raises(GraphError, match=r"edits the structure of `args\[0\]\.more`"):
        nnx.cached_partial(grow, Net())()


def test_functions_that_jax_compiles_are_refused() -> None:
    message = r"`nnx\.cached_partial` needs a function under a transform of nnx, and got a PjitFunction"
    with pytest.raises(TransformArgumentError, match=message):
        nnx.cached_partial(jax.jit(count), Net())
