"""``nnx.prefix``, and objects as prefixes of transforms without graph updates."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nnxkit as nnx
from nnx_rules.errors import FilterError, GraphError, TransformArgumentError


class Layer(nnx.Module):
    def __init__(self, w: Any, offset: Any) -> None:
        self.w = nnx.Param(jnp.asarray(w))
        self.b = nnx.BatchStat(jnp.asarray(1.0))
        self.offset = nnx.data(jnp.asarray(offset))
        self.k = 3

    def __call__(self, x: Any) -> Any:
        return self.w * x + self.b + self.offset


class Net(nnx.Module):
    def __init__(self, w: Any, offset: Any) -> None:
        self.layer = Layer(w, offset)
        self.scale = nnx.Param(jnp.asarray(w))

    def __call__(self, x: Any) -> Any:
        return self.layer(x) * self.scale


XS = jnp.arange(3.0)

without_updates = pytest.mark.parametrize("mode", [{"graph_updates": False}, {"graph": False}], ids=["graph", "tree"])


def close(value: Any, expected: Any) -> bool:
    return np.array_equal(np.asarray(value), np.asarray(expected))


class TestPrefix:
    def test_of_an_object(self) -> None:
        net = Net(1.0, 2.0)
        found = nnx.prefix(net, {nnx.Param: 0, nnx.BatchStat: 1, ...: None})
        assert type(found) is Net
        assert (found.layer.w.get_value(), found.layer.b.get_value(), found.scale.get_value()) == (0, 1, 0)
        assert type(found.layer.w) is nnx.Param
        assert found.layer.offset is None
        assert found.layer.k == 3
        assert net.layer.w[...] == 1.0

    def test_of_containers_states_and_leaves(self) -> None:
        axes: dict[Any, Any] = {nnx.Param: 0, ...: 1}
        found = nnx.prefix({"a": [Layer(1.0, 2.0)], "v": nnx.Param(1), "x": XS}, axes)
        assert found["a"][0].w.get_value() == 0
        assert (found["v"], found["x"]) == (0, 1)
        assert nnx.prefix(nnx.state(Layer(1.0, 2.0)), axes)["b"] == 1
        assert nnx.prefix(nnx.Param(1), axes) == 0

    def test_paths_begin_at_the_argument(self) -> None:
        found = nnx.prefix({"a": Layer(1.0, 2.0)}, {nnx.PathContains("a"): 0, ...: 1})
        assert found["a"].w.get_value() == 0
        paths = nnx.prefix([Layer(1.0, 2.0)], lambda path, leaf: path)
        assert paths[0].w.get_value() == (0, "w")

    def test_of_filter_prefixes(self) -> None:
        assert nnx.prefix(Layer(1.0, 2.0), nnx.StateAxes({...: 2})).w.get_value() == 2

    def test_not_exhaustive(self) -> None:
        with pytest.raises(FilterError, match=r"takes `layer.b`"):
            nnx.prefix(Net(1.0, 2.0), {nnx.Param: 0})

    def test_sharing(self) -> None:
        layer = Layer(1.0, 2.0)
        shared = nnx.Dict(a=layer, b=layer)
        found = nnx.prefix(shared, {...: 0})
        assert found.a is found.b
        with pytest.raises(GraphError, match=r"`a` and `b`|`a` .* `b`"):
            nnx.prefix(shared, {...: 0}, graph=False)


class TestObjectsAsPrefixes:
    @without_updates
    def test_vmap(self, mode: Any) -> None:
        net = Net(XS, 2.0)
        axes = nnx.prefix(net, {nnx.Param: 0, ...: None}, graph=mode.get("graph"))
        assert close(nnx.vmap(lambda m: m(1.0), in_axes=(axes,), **mode)(net), (XS + 3) * XS)

    @without_updates
    def test_written_by_hand(self, mode: Any) -> None:
        """Plain values do in the place of Variables, and one in the place of a module stands for all of it."""
        axes = Net(XS, 2.0)
        axes.scale = nnx.Param(0)
        axes.layer = nnx.data(None)
        net = Net(1.0, 2.0)
        net.scale.set_value(XS)
        assert close(nnx.vmap(lambda m: m(1.0), in_axes=(axes,), **mode)(net), 4 * XS)

    @without_updates
    def test_missing_attribute(self, mode: Any) -> None:
        axes = nnx.prefix(Layer(XS, 2.0), {...: 0})
        del axes.b
        with pytest.raises(
            TransformArgumentError, match=r"`in_axes` of `nnx.vmap` does not fit: it has nothing for `b`"
        ):
            nnx.vmap(lambda m: None, in_axes=(axes,), **mode)(Layer(XS, 2.0))

    def test_raw_vmap(self) -> None:
        layer = Layer(XS, 2.0)
        layer.b.set_value(jnp.ones(3))
        axes = nnx.prefix(layer, {nnx.Param: 0, nnx.BatchStat: 0, ...: None})
        assert close(jax.vmap(lambda m: m(1.0), in_axes=(axes,))(layer), XS + 3)


def test_axes_by_filter_are_a_mapping() -> None:
    axes = nnx.StateAxes([([nnx.Param, "frozen"], 0), (..., None)])
    assert (list(axes), list(axes.values()), len(axes)) == ([[nnx.Param, "frozen"], ...], [0, None], 2)
    assert axes[...] is None
    assert axes.get(nnx.BatchStat, 7) == 7
