"""Random streams."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nnxkit as nnx
from nnx_rules.errors import RngArgumentError, RngStreamError, RngStreamKeyError, TraceContextError


def data(key: Any) -> list[int]:
    return np.asarray(jax.random.key_data(key)).tolist()


class TestStreams:
    def test_keys_are_folded_in(self) -> None:
        stream = nnx.RngStream(7, tag="x")
        base = jax.random.key(7)
        for count in range(3):
            assert data(stream()) == data(jax.random.fold_in(base, count))
        assert stream.count == 3
        assert (stream.key.tag, stream.count.tag) == ("x", "x")
        assert (type(stream.key), type(stream.count)) == (nnx.RngKey, nnx.RngCount)

    @pytest.mark.parametrize(
        "value",
        [
            3,
            np.int32(3),
            jnp.array(3),
            jax.random.key(3),
            jax.random.PRNGKey(3),
            nnx.RngStream(3, tag="q"),
            nnx.RngKey(jax.random.key(3)),
        ],
        ids=["int", "numpy", "array", "key", "old key", "stream", "variable"],
    )
    def test_sources(self, value: Any) -> None:
        assert data(nnx.Rngs(value)()) == data(nnx.Rngs(3)())

    @pytest.mark.parametrize("value", ["a", 1.5, True, nnx.Rngs(0), jnp.ones(2), jnp.ones((3,), jnp.uint32)])
    def test_wrong_sources(self, value: Any) -> None:
        with pytest.raises(RngArgumentError, match="made from a seed, a key or a stream, not from"):
            nnx.RngStream(value, tag="x")

    def test_split_keys_cannot_draw(self) -> None:
        with pytest.raises(RngArgumentError, match=r"the key of stream `default` has shape \(2,\)"):
            nnx.Rngs(0).split(2)()

    def test_vmap_over_split_keys(self) -> None:
        rngs = nnx.Rngs(0).split(3)
        drawn = jax.vmap(lambda r: r.normal((2,)))(rngs)
        assert drawn.shape == (3, 2)
        assert len({float(x) for x in drawn[:, 0]}) == 3


class TestNames:
    def test_fallback(self) -> None:
        rngs = nnx.Rngs(0, params=1)
        assert rngs.anything is rngs.default
        assert rngs.params is rngs["params"]
        assert list(rngs) == ["params", "default"]
        assert len(rngs) == 2
        assert "params" in rngs
        assert "anything" not in rngs
        assert dict(rngs.items()) == {"params": rngs.params, "default": rngs.default}

    def test_missing(self) -> None:
        rngs = nnx.Rngs(params=1)
        with pytest.raises(
            RngStreamError, match="no random stream `dropout` and no default stream; the streams are `params`"
        ):
            rngs.dropout()
        with pytest.raises(RngStreamError, match="no random stream `default`"):
            rngs()
        with pytest.raises(RngStreamKeyError, match="no random stream `dropout`"):
            nnx.Rngs(params=0)["dropout"]
        assert nnx.Rngs(0)["dropout"].tag == "default"
        assert not hasattr(nnx.Rngs(0), "__wrapped__")
        assert not hasattr(nnx.Rngs(0), "_repr_html_")
        assert not hasattr(nnx.Rngs(), "params")

    def test_mapping(self) -> None:
        rngs = nnx.Rngs({"a": 1}, b=2)
        assert list(rngs) == ["a", "b"]
        with pytest.raises(TypeError, match="two values for the stream 'default'"):
            nnx.Rngs(0, default=1)
        assert list(nnx.Rngs(default=1)) == ["default"]


class TestDerived:
    def test_fork(self) -> None:
        rngs = nnx.Rngs(0, params=1)
        child = rngs.fork()
        assert (rngs.default.count, rngs.params.count) == (1, 1)
        assert data(child.default.key[...]) == data(nnx.Rngs(0)())
        assert child.params.count == 0

    @pytest.mark.parametrize(("k", "shape"), [(3, (3,)), ((2, 2), (2, 2))])
    def test_split_and_broadcast(self, k: Any, shape: tuple[int, ...]) -> None:
        rngs = nnx.Rngs(0)
        split, broadcast = rngs.split(k), rngs.broadcast(k)
        assert rngs.default.count == 2
        for child in (split, broadcast):
            assert child.default.key.shape == child.default.count.shape == shape
        keys = np.asarray(jax.random.key_data(split.default.key[...])).reshape(-1, 2)
        assert len({tuple(key) for key in keys}) == np.prod(shape)
        keys = np.asarray(jax.random.key_data(broadcast.default.key[...])).reshape(-1, 2)
        assert len({tuple(key) for key in keys}) == 1

    def test_by_filter(self) -> None:
        rngs = nnx.Rngs(0, params=1, dropout=2)
        child = rngs.split({"params": 2, ("params", "dropout"): 3})
        assert child.params.key.shape == (2,)
        assert child.dropout.key.shape == (3,)
        assert child.default is rngs.default  # shared, so that no number is drawn twice
        assert rngs.default.count == 0

    def test_deprecated_split_argument(self) -> None:
        with pytest.warns(DeprecationWarning, match="'split' of 'fork' is deprecated"):
            assert nnx.Rngs(0).fork(split=2).default.key.shape == (2,)
        rngs = nnx.Rngs(0, params=1)
        with pytest.warns(DeprecationWarning, match="'split' of 'fork' is deprecated"):
            child = rngs.fork(split={"params": 2})
        assert child.default is not rngs.default
        with pytest.warns(DeprecationWarning, match="'split' of 'fork' is deprecated"):
            assert rngs.params.fork(split=(2, 3)).key.shape == (2, 3)


class TestReseed:
    def test_in_place(self) -> None:
        rngs = nnx.Rngs(0, params=1)
        key = rngs.params.key
        rngs()
        nnx.reseed(rngs, default=5)
        source = nnx.Rngs(5)
        assert data(rngs()) == data(nnx.Rngs(source())())  # a key drawn from it, as flax does
        assert rngs.params.key is key
        assert data(rngs.params()) == data(nnx.Rngs(1)())

    def test_by_tag(self) -> None:
        layer = nnx.Dropout(0.5, rngs=nnx.Rngs(dropout=0))
        nnx.reseed(layer, dropout=3)
        assert data(layer.rngs()) == data(nnx.Rngs(dropout=3).dropout.fork()())

    def test_streams_of_one_tag_differ(self) -> None:
        rngs = nnx.Rngs(dropout=0)
        layers = nnx.List([nnx.Dropout(0.5, rngs=rngs) for _ in range(2)])
        before = [data(layer.rngs.key[...]) for layer in layers]
        nnx.reseed(layers, dropout=3)
        after = [data(layer.rngs.key[...]) for layer in layers]
        assert len({str(key) for key in (*before, *after)}) == 4
        nnx.reseed(layers, dropout=0)
        assert [data(layer.rngs.key[...]) for layer in layers] == before

    def test_policies(self) -> None:
        rngs = nnx.Rngs(0, params=1).split({"params": 2})
        before = data(rngs.default.key[...])
        with pytest.raises(RngArgumentError, match="stream `params` has shape"):
            nnx.reseed(rngs, default=9, params=1)
        assert data(rngs.default.key[...]) == before  # nothing changed
        nnx.reseed(rngs, params=1, policy="match_shape")
        assert rngs.params.key.shape == (2,)
        nnx.reseed(rngs, params=1, policy=lambda path, key, shape: jnp.broadcast_to(key, shape))
        assert data(rngs.params.key[0]) == data(nnx.Rngs(1)())
        with pytest.raises(ValueError, match="NNX506"):
            nnx.reseed(rngs, policy="zz")


class TestTraceLevels:
    def test_captured(self) -> None:
        rngs = nnx.Rngs(0)
        for use in (lambda: rngs(), lambda: rngs.normal((2,)), lambda: rngs.fork(), lambda: rngs.params.split(2)):
            with pytest.raises(TraceContextError, match="Cannot mutate `RngCount`"):
                jax.jit(use)()
        assert rngs.default.count == 0

    def test_argument_and_own(self) -> None:
        @jax.jit
        def f(rngs: nnx.Rngs) -> Any:
            return rngs(), nnx.Rngs(1)(), rngs

        first, _, rngs = f(nnx.Rngs(0))
        assert data(first) == data(nnx.Rngs(0)())
        assert rngs.default.count == 1


class TestSamplers:
    @pytest.mark.parametrize(
        ("name", "args"),
        [
            ("normal", ((2, 3),)),
            ("uniform", ((2,), jnp.float16)),
            ("bernoulli", (0.3, (4,))),
            ("randint", ((3,), 0, 9)),
            ("permutation", (5,)),
            ("categorical", (jnp.zeros(3),)),
            ("truncated_normal", (-1, 1, (3,))),
        ],
    )
    def test_numbers(self, name: str, args: tuple[Any, ...]) -> None:
        expected = getattr(jax.random, name)(jax.random.fold_in(jax.random.key(0), 0), *args)
        for source in (nnx.Rngs(0), nnx.RngStream(0, tag="x"), nnx.Rngs(params=0).params):
            assert (getattr(source, name)(*args) == expected).all()

    def test_initializers(self) -> None:
        rngs = nnx.Rngs(0)
        init = rngs.lecun_normal()
        first = init((2, 3), jnp.float32)
        expected = nnx.initializers.lecun_normal()(nnx.Rngs(0)(), (2, 3), jnp.float32)
        assert (first == expected).all()
        assert not (init((2, 3), jnp.float32) == first).all()
        assert rngs.default.count == 2


def test_same_as_flax() -> None:
    flax_nnx = pytest.importorskip("flax.nnx")

    def run(module: Any) -> list[Any]:
        rngs = module.Rngs(0, params=1)
        out = [rngs(), rngs.params(), rngs.dropout(), rngs.fork().params(), rngs.split(2).params.key[...]]
        out += [rngs.broadcast((2, 1)).default.key[...], rngs.split({"params": 2}).params.key[...]]
        keys = [data(key) for key in out]
        for name in (
            "normal",
            "uniform",
            "gumbel",
            "exponential",
            "cauchy",
            "rademacher",
            "laplace",
            "logistic",
            "bits",
        ):
            keys.append(np.asarray(getattr(rngs, name)((3,))).tolist())
        for name in ("glorot_normal", "he_uniform", "kaiming_normal", "lecun_uniform", "xavier_normal"):
            keys.append(np.asarray(getattr(rngs.params, name)()((3, 2), jnp.float32)).tolist())
        counts = [int(rngs.default.count[...]), int(rngs.params.count[...])]
        return [*keys, counts]

    assert run(nnx) == run(flax_nnx)


def keys_of(rngs: Any) -> dict[str, Any]:
    return {name: (data(stream.key[...]), np.asarray(stream.count[...]).tolist()) for name, stream in rngs.items()}


class TestScopes:
    def test_split_in_place_and_back(self) -> None:
        rngs = nnx.Rngs(0, params=1)
        model = nnx.Dict(rngs=rngs, other=nnx.Param(1))
        backups = nnx.split_rngs(model, splits=(2, 3), only="params")
        assert rngs.params.key.shape == rngs.params.count.shape == (2, 3)
        assert rngs.default.key.shape == ()
        nnx.restore_rngs(backups)
        assert rngs.params.key.shape == ()
        assert (rngs.params.count, rngs.default.count) == (1, 0)

    def test_context_manager_restores_after_an_exception(self) -> None:
        rngs = nnx.Rngs(0)
        with pytest.raises(RuntimeError, match="stop"), nnx.split_rngs(rngs, splits=2):
            raise RuntimeError("stop")
        assert rngs.default.key.shape == ()

    def test_decorator(self) -> None:
        @nnx.split_rngs(splits=2)
        def split(x: int, *, rngs: nnx.Rngs) -> Any:
            return x, rngs.default.key.shape

        @nnx.fork_rngs(split={"params": 4})
        def forked(rngs: nnx.Rngs) -> Any:
            return rngs.params.key.shape, rngs.default.key.shape

        rngs = nnx.Rngs(0, params=1)
        assert split(1, rngs=rngs) == (1, (2,))
        assert forked(rngs) == ((4,), ())
        assert rngs.default.key.shape == ()

    def test_errors(self) -> None:
        rngs = nnx.Rngs(0, params=1)
        with pytest.raises(ValueError, match="squeeze=True needs splits=1"):
            nnx.split_rngs(rngs, splits=2, squeeze=True)
        nnx.split_rngs(rngs, splits=2, only="params")
        with pytest.raises(RngArgumentError, match="the key of stream `params` has shape"):
            nnx.split_rngs(rngs, splits=2)
        with pytest.raises(ValueError, match="`params` is taken by filters of `split` and `fork`"):
            nnx.with_rngs(nnx.Rngs(params=1), split={"params": 2}, fork="params")

    def test_with_rngs(self) -> None:
        rngs = nnx.Rngs(0, params=1, dropout=2)
        model = nnx.Dict(w=nnx.Param(1), rngs=rngs)
        new = nnx.with_rngs(model, split={"params": 2}, broadcast={"dropout": 3}, only=("params", "dropout"), fork=...)
        assert new.w is model.w
        assert new.rngs.default.key is rngs.default.key
        assert (new.rngs.params.key.shape, new.rngs.dropout.key.shape, rngs.params.key.shape) == ((2,), (3,), ())
        assert nnx.with_rngs(split=2)(lambda r: r.default.key.shape)(nnx.Rngs(0)) == (2,)
        mixed = nnx.with_rngs(nnx.Rngs(0), split={...: 2}, fork="default")
        assert mixed.default.key.shape == ()  # the specific filter counts

    @pytest.mark.parametrize(
        ("function", "options"),
        [
            ("split_rngs", {"splits": 2}),
            ("split_rngs", {"splits": (2, 1), "only": "params"}),
            ("split_rngs", {"splits": 1, "squeeze": True}),
            ("fork_rngs", {}),
            ("fork_rngs", {"split": 2}),
            ("fork_rngs", {"split": {"params": 2}}),
        ],
    )
    def test_same_as_flax(self, function: str, options: dict[str, Any]) -> None:
        flax_nnx = pytest.importorskip("flax.nnx")

        def run(module: Any) -> Any:
            rngs = module.Rngs(0, params=1, dropout=2)
            with getattr(module, function)(rngs, **options):
                inside = keys_of(rngs)
            return inside, keys_of(rngs)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            assert run(nnx) == run(flax_nnx)

    @pytest.mark.parametrize(
        "options",
        [
            {"split": 2},
            {"fork": ...},
            {"broadcast": {"params": (2, 2)}, "fork": ...},
            {"split": 2, "only": "params"},
            {},
        ],
    )
    def test_with_rngs_same_as_flax(self, options: dict[str, Any]) -> None:
        flax_nnx = pytest.importorskip("flax.nnx")

        def run(module: Any, **mode: Any) -> Any:
            rngs = module.Rngs(0, params=1, dropout=2)
            return keys_of(module.with_rngs(rngs, **options, **mode)), keys_of(rngs)

        assert run(nnx) == run(flax_nnx, graph_updates=False)
