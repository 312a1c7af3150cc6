"""Metrics and averages: their values, against numpy and against flax, inside and outside of transforms."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx as flax_nnx
from hypothesis import given, settings
from hypothesis import strategies as st

import nnxkit as nnx
from nnx_rules.errors import MetricArgumentError, MetricCallError, TraceContextError

BATCHES = st.lists(
    st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=6).map(lambda item: np.asarray(item, np.float32)),
    min_size=1,
    max_size=4,
)
few = settings(max_examples=20, deadline=None)


@few
@given(BATCHES)
def test_average_and_welford(batches: list[Any]) -> None:
    values = np.concatenate(batches).astype(np.float64)
    average, welford = nnx.metrics.Average(), nnx.metrics.Welford()
    peer = flax_nnx.metrics.Welford()
    for batch in batches:
        for metric in (average, welford, peer):
            metric.update(values=jnp.asarray(batch), other="ignored")
    np.testing.assert_allclose(average.compute(), values.mean(), rtol=1e-3, atol=1e-3)
    found, expected = welford.compute(), peer.compute()
    np.testing.assert_allclose(found.mean, values.mean(), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found.standard_deviation, values.std(), rtol=1e-2, atol=1e-2)
    for name in ("mean", "standard_deviation", "standard_error_of_mean"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-2, atol=1e-2)


def test_welford_does_not_cancel() -> None:
    welford = nnx.metrics.Welford()
    values = 1e4 + jnp.arange(100.0)
    for value in values.reshape(10, 10):
        welford.update(values=value)
    np.testing.assert_allclose(welford.compute().standard_deviation, np.arange(100.0).std(), rtol=1e-4)


@few
@given(BATCHES, st.randoms(use_true_random=False))
def test_masks(batches: list[Any], random: Any) -> None:
    average = nnx.metrics.Average("loss")
    kept = [np.float32(0)]
    average.update(loss=0.0)
    for batch in batches:
        mask = np.array([random.random() < 0.5 for _ in batch])
        average.update(mask=jnp.asarray(mask), loss=jnp.asarray(batch))
        kept.extend(batch[mask])
    np.testing.assert_allclose(average.compute(), np.mean(kept, dtype=np.float64), rtol=1e-3, atol=1e-3)


def test_masked_values_may_be_anything() -> None:
    average = nnx.metrics.Average()
    average.update(values=jnp.array([1.0, jnp.nan, jnp.inf]), mask=jnp.array([True, False, False]))
    assert float(average.compute()) == 1.0


def test_mask_is_broadcast() -> None:
    average = nnx.metrics.Average()
    average.update(values=jnp.array([[1.0, 2.0], [3.0, 4.0]]), mask=jnp.array([True, False]))
    assert float(average.compute()) == 2.0


def test_nothing_yet_is_nan_and_reset_begins_again() -> None:
    average = nnx.metrics.Average()
    assert np.isnan(average.compute())
    average.update(values=3)
    average.reset()
    assert np.isnan(average.compute())
    assert (average.count.dtype, average.total.dtype) == (jnp.int32, jnp.float32)


def test_metrics_that_were_made_under_vmap_are_reset_to_their_shapes() -> None:
    make = nnx.vmap(lambda seed: nnx.MultiMetric(loss=nnx.metrics.Average("loss"), all=nnx.metrics.Welford("loss")))
    metrics = make(jnp.arange(3))
    nnx.vmap(lambda metrics, loss: metrics.update(loss=loss))(metrics, jnp.arange(3.0))
    metrics.reset()
    assert metrics.loss.total[...].tolist() == metrics.all.m2[...].tolist() == [0.0, 0.0, 0.0]


def test_a_mask_that_does_not_fit() -> None:
    with pytest.raises(MetricArgumentError, match=r"with a mask of shape \(5,\), `values` should be a jax array"):
        nnx.metrics.Average().update(values=2, mask=jnp.ones(5))


def test_accuracy() -> None:
    accuracy = nnx.metrics.Accuracy()
    accuracy.update(logits=jnp.eye(3), labels=jnp.array([0, 1, 1]), loss=3)
    assert float(accuracy.compute()) == pytest.approx(2 / 3)
    accuracy.update(logits=jnp.eye(3), labels=jnp.array([0, 0, 2], jnp.int8), mask=jnp.array([True, False, True]))
    assert float(accuracy.compute()) == pytest.approx(4 / 5)


def test_accuracy_of_two_classes() -> None:
    accuracy = nnx.metrics.Accuracy(threshold=0.5)
    accuracy.update(logits=jnp.array([0.2, 0.7, 0.9]), labels=jnp.array([0, 1, 0]))
    assert float(accuracy.compute()) == pytest.approx(2 / 3)


def make_metrics() -> nnx.MultiMetric:
    return nnx.MultiMetric(accuracy=nnx.metrics.Accuracy(), loss=nnx.metrics.Average("loss"))


BATCH = {"logits": jnp.eye(3), "labels": jnp.array([0, 1, 1]), "loss": jnp.array([1.0, 2.0, 3.0])}


def test_multi_metric() -> None:
    metrics = make_metrics()
    metrics.update(**BATCH)
    assert {name: float(value) for name, value in metrics.compute().items()} == {
        "accuracy": pytest.approx(2 / 3),
        "loss": 2.0,
    }
    graphdef, state = metrics.split()
    assert nnx.merge(graphdef, state).compute()["loss"] == 2.0
    metrics.reset()
    assert np.isnan(metrics.compute()["loss"])


@pytest.mark.parametrize("passed", [True, False])
def test_in_transforms(passed: bool) -> None:
    metrics = make_metrics()
    step = nnx.jit(lambda metrics: metrics.update(**BATCH)) if passed else nnx.jit(lambda: metrics.update(**BATCH))
    for _ in range(3):
        step(*[metrics] * passed)
    assert int(metrics.loss.count[...]) == 9
    assert float(metrics.compute()["accuracy"]) == pytest.approx(2 / 3)

    def body(metrics: nnx.MultiMetric, loss: jax.Array) -> Any:
        metrics.loss.update(loss=loss)
        return loss

    nnx.scan(body, in_axes=(nnx.StateAxes({...: nnx.Carry}), 0), out_axes=0)(metrics, jnp.arange(5.0))
    assert int(metrics.loss.count[...]) == 14


class TestErrors:
    def test_missing(self) -> None:
        with pytest.raises(MetricCallError, match=r"`Average.update` needs `values=`, and got `loss=`"):
            nnx.metrics.Average().update(loss=1)
        with pytest.raises(TypeError, match=r"`Welford.update` needs `loss=`, and got no argument"):
            nnx.metrics.Welford("loss").update()

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: nnx.metrics.Accuracy().update(logits=jnp.eye(3), labels=jnp.eye(3)), "one axis more than"),
            (lambda: nnx.metrics.Accuracy().update(logits=jnp.eye(3), labels=jnp.ones(3)), "and got float32"),
            (lambda: nnx.metrics.Accuracy(0.5).update(logits=jnp.eye(3), labels=jnp.ones(3)), "as many axes as"),
            (lambda: nnx.MultiMetric(compute=nnx.metrics.Average()), "called `compute` would hide the method"),
            (lambda: nnx.MultiMetric(a=3), "`a` is a int, which is no metric"),
        ],
    )
    def test_arguments(self, call: Any, message: str) -> None:
        with pytest.raises(MetricArgumentError, match=message):
            call()

    def test_threshold(self) -> None:
        with pytest.raises(TypeError, match="threshold must be a float, not int"):
            nnx.metrics.Accuracy(threshold=1)
        with pytest.raises(NotImplementedError, match="a metric has an __init__ of its own"):
            nnx.Metric()

    def test_trace_level(self) -> None:
        average = nnx.metrics.Average()
        with pytest.raises(TraceContextError, match="from a different trace level"):
            jax.jit(lambda x: average.update(values=x))(1.0)
        assert int(average.count[...]) == 0


class TestEMA:
    def model(self, value: float = 0.0) -> nnx.BatchNorm:
        model = nnx.BatchNorm(2, rngs=nnx.Rngs(0))
        model.scale[...] = jnp.full(2, value)
        return model

    @few
    @given(st.lists(st.floats(-10, 10, width=32), max_size=5), st.floats(0, 1, width=32))
    def test_is_an_average(self, values: list[float], decay: float) -> None:
        model, expected = self.model(1.0), 1.0
        ema = nnx.EMA(model, decay)
        for value in values:
            model.scale[...] = jnp.full(2, value)
            ema.update(model)
            expected = decay * expected + (1 - decay) * value
        np.testing.assert_allclose(ema.params["scale"][...], expected, rtol=1e-4, atol=1e-4)

    def test_apply_to_shares_all(self) -> None:
        model = self.model(4.0)
        ema = nnx.EMA(model, 0.5, only=nnx.Param)
        assert sorted(ema.params) == ["bias", "scale"]
        model.scale[...] = jnp.full(2, 8.0)
        ema.update(model)
        averaged = ema.apply_to(model)
        assert averaged.scale[...].tolist() == [6.0, 6.0]
        assert model.scale[...].tolist() == [8.0, 8.0]
        assert averaged.mean is model.mean
        assert isinstance(averaged.scale, nnx.Param)
        assert averaged.scale is ema.params["scale"]
        ema.update(model)
        assert averaged.scale[...].tolist() == [7.0, 7.0]

    def test_states(self) -> None:
        model = self.model(4.0)
        ema = nnx.EMA(nnx.state(model, nnx.Param), 0.5)
        ema.update(jax.tree.map(jnp.zeros_like, nnx.state(model, nnx.Param)))
        applied = ema.apply_to(nnx.state(model))
        assert applied["scale"][...].tolist() == [2.0, 2.0]
        assert sorted(applied) == ["bias", "mean", "scale", "var"]

    def test_in_jit(self) -> None:
        model = self.model(4.0)
        ema = nnx.EMA(model, 0.5, only=nnx.Param)
        model.scale[...] = jnp.full(2, 8.0)
        nnx.jit(lambda ema, model: ema.update(model))(ema, model)
        assert ema.params["scale"][...].tolist() == [6.0, 6.0]

    def test_other_structure(self) -> None:
        with pytest.raises(ValueError, match="key"):
            nnx.EMA(self.model(), 0.5).update(nnx.Linear(2, 3, rngs=nnx.Rngs(0)))
