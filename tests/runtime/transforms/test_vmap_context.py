"""``nnx.vmap`` in its surroundings: captures, other transforms, randomness, names of axes."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import nnxkit as nnx
from mapped import XS, Scale, close, single
from modes import every_mode
from nnx_rules.errors import (
    RngArgumentError,
    TransformArgumentError,
)

OUTER = single()


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
