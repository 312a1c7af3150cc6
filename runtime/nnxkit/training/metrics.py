"""Metrics: what is measured over many steps, with the sums so far kept in Variables.

Invariants

- A metric has three methods: `update` takes keyword arguments and ignores those that it does not know, so one call can
  feed several metrics; `compute` gives the value so far; `reset` begins again.
- The state is in Variables of type `MetricState`, so metrics go through transforms as any module does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from nnx_rules.rules import training as rules
from nnxkit._graph import split
from nnxkit._pytree import Pytree
from nnxkit._typevars import TypeVar
from nnxkit._variable import Variable

A = TypeVar("A", default=Any)


class MetricState(Variable[A]):
    """What a metric keeps between updates."""

    __slots__ = ()


class Metric(Pytree):
    """Base of metrics."""

    def __init__(self) -> None:
        raise NotImplementedError("a metric has an __init__ of its own")

    def reset(self) -> None:
        """Begin again."""
        raise NotImplementedError

    def update(self, **kwargs: Any) -> None:
        """Take another step into account."""
        raise NotImplementedError

    def compute(self) -> Any:
        """The value so far."""
        raise NotImplementedError

    def split(self, *filters: Any) -> Any:
        """Structure and state, as ``nnx.split``."""
        return split(self, *filters)


def _given(metric: Metric, name: str, kwargs: dict[str, Any]) -> jax.Array:
    """An argument of ``update`` by its name, as array.

    Raises:
        MetricCallError: it is not there.
    """
    if name not in kwargs:
        given = ", ".join(f"`{key}=`" for key in kwargs) or "no argument"
        raise rules.METRIC_MISSING_ARGUMENT.error(cls=type(metric).__name__, name=name, given=given)
    return jnp.asarray(kwargs[name])


def _zero(*states: MetricState[jax.Array]) -> None:
    """Zeros of the shapes that the states have: those of metrics made under ``vmap`` have an axis more."""
    for state in states:
        state.set_value(jnp.zeros_like(state.get_value()))


class Average(Metric):
    """The mean of all values.

    Variables: ``total`` and ``count``, ``MetricState`` of shape ``()``, float32 and int32.

    Args:
        argname: the keyword argument of ``update`` that has the values.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> loss = nnx.metrics.Average("loss")
    >>> loss.update(loss=jnp.array([1.0, 2.0]), step=1)
    >>> loss.update(loss=6.0)
    >>> float(loss.compute())
    3.0
    """

    def __init__(self, argname: str = "values") -> None:
        self.argname = argname
        self.total: MetricState[jax.Array] = MetricState(jnp.array(0, dtype=jnp.float32))
        self.count: MetricState[jax.Array] = MetricState(jnp.array(0, dtype=jnp.int32))

    def reset(self) -> None:
        """Begin again."""
        _zero(self.total, self.count)

    def update(self, mask: jax.Array | None = None, **kwargs: Any) -> None:
        """Add values.

        Args:
            mask: which values count; broadcast against them.
            **kwargs: the values, an array of any shape or a number, under the name of the metric; others are ignored.

        Raises:
            MetricCallError: the values are not there.
            MetricArgumentError: the mask has more axes or other sizes than the values.
            TraceContextError: the metric belongs to another trace level.
        """
        values = _given(self, self.argname, kwargs)
        count: Any = values.size
        if mask is not None:
            mask = self._fitting(jnp.asarray(mask, bool), values.shape)
            values, count = jnp.where(mask, values, 0), jnp.sum(mask, dtype=jnp.int32)
        self.total.set_value(self.total.get_value() + jnp.sum(values).astype(jnp.float32))
        self.count.set_value(self.count.get_value() + count)

    def _fitting(self, mask: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        try:
            return jnp.broadcast_to(mask, shape)
        except ValueError:
            raise rules.METRIC_ARGUMENT.error(
                cls=type(self).__name__,
                problem=f"with a mask of shape {mask.shape}, `{self.argname}` should be a jax array of a shape that "
                f"the mask can be broadcast to, and has shape {shape}",
                mend="give one value for each element of the mask",
            ) from None

    def compute(self) -> jax.Array:
        """The mean; NaN if there are no values."""
        return jnp.asarray(self.total.get_value() / self.count.get_value())


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Statistics:
    """What :class:`Welford` computes; a JAX pytree of scalars."""

    mean: jax.Array
    standard_error_of_mean: jax.Array
    standard_deviation: jax.Array


class Welford(Metric):
    """Mean and deviation of all values, in one pass and without cancellation.

    Source: Welford, "Note on a Method for Calculating Corrected Sums of Squares and Products", 1962, for batches as in
    Chan, Golub, LeVeque, 1979.

    Variables: ``count``, ``mean`` and ``m2``, ``MetricState`` of shape ``()``; ``m2`` is the sum of squared deviations.

    Args:
        argname: the keyword argument of ``update`` that has the values.
    """

    def __init__(self, argname: str = "values") -> None:
        self.argname = argname
        self.count: MetricState[jax.Array] = MetricState(jnp.array(0, dtype=jnp.int32))
        self.mean: MetricState[jax.Array] = MetricState(jnp.array(0, dtype=jnp.float32))
        self.m2: MetricState[jax.Array] = MetricState(jnp.array(0, dtype=jnp.float32))

    def reset(self) -> None:
        """Begin again."""
        _zero(self.count, self.mean, self.m2)

    def update(self, **kwargs: Any) -> None:
        """Add values.

        Args:
            **kwargs: the values, an array of any shape or a number, under the name of the metric; others are ignored.

        Raises:
            MetricCallError: the values are not there.
            TraceContextError: the metric belongs to another trace level.
        """
        values = jnp.asarray(_given(self, self.argname, kwargs), jnp.float32)
        before, added = self.count.get_value(), values.size
        count = before + added
        mean = jnp.mean(values)
        apart = mean - self.mean.get_value()
        squares = jnp.sum(jnp.square(values - mean))
        self.m2.set_value(self.m2.get_value() + squares + jnp.square(apart) * before * added / count)
        self.mean.set_value(self.mean.get_value() + apart * added / count)
        self.count.set_value(count)

    def compute(self) -> Statistics:
        """Mean, its standard error, and the standard deviation (of the values as they are, without correction)."""
        count = self.count.get_value()
        deviation = jnp.sqrt(self.m2.get_value() / count)
        return Statistics(jnp.asarray(self.mean.get_value()), deviation / jnp.sqrt(count), deviation)


class Accuracy(Average):
    """How often the largest logit is that of the label; with a threshold, how often logits are on the label's side.

    Variables: those of :class:`Average`.

    Args:
        threshold: for two classes: a logit above it means class one.

    Raises:
        TypeError: the threshold is no float.
    """

    def __init__(self, threshold: float | None = None) -> None:
        if not isinstance(threshold, float | None):
            raise TypeError(f"threshold must be a float, not {type(threshold).__name__}")
        self.threshold = threshold
        super().__init__()

    def update(  # type: ignore[override] # keyword arguments, as for every metric
        self, *, logits: jax.Array, labels: jax.Array, mask: jax.Array | None = None, **_: Any
    ) -> None:
        """Add predictions.

        Args:
            logits: of the shape of the labels and one axis for the classes; with a threshold without that axis.
            labels: integers.
            mask: which labels count; broadcast against them.
            **_: ignored.

        Raises:
            MetricArgumentError: the labels are no integers, or the numbers of axes do not fit.
        """
        labels = jnp.asarray(labels)
        extra = int(self.threshold is None)
        if logits.ndim != labels.ndim + extra:
            case = "multi-class" if extra else "binary"
            what = "one axis more than" if extra else "as many axes as"
            raise rules.METRIC_ARGUMENT.error(
                cls=type(self).__name__,
                problem=f"For {case} classification `logits` has to have {what} `labels`, and they have shapes "
                f"{logits.shape} and {labels.shape}",
                mend="give class numbers as labels, not vectors" if extra else "give one logit for each label",
            )
        if not jnp.issubdtype(labels.dtype, jnp.integer):
            raise rules.METRIC_ARGUMENT.error(
                cls=type(self).__name__,
                problem=f"`labels` are numbers of classes, and got {labels.dtype.name}",
                mend="cast them: `labels.astype(jnp.int32)`",
            )
        predicted = jnp.argmax(logits, axis=-1) if self.threshold is None else logits > self.threshold
        super().update(values=predicted == labels, mask=mask)


class MultiMetric(Metric):
    """Several metrics that are updated together.

    Args:
        **metrics: the metrics; they are the attributes of these names.

    Raises:
        MetricArgumentError: one of them is no metric, or has the name of a method.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> metrics = nnx.MultiMetric(loss=nnx.metrics.Average("loss"), norm=nnx.metrics.Average("norm"))
    >>> metrics.update(loss=jnp.array(2.0), norm=jnp.array(3.0))
    >>> {name: float(value) for name, value in metrics.compute().items()}
    {'loss': 2.0, 'norm': 3.0}
    """

    def __init__(self, **metrics: Any) -> None:
        self._metric_names = tuple(metrics)
        for name, metric in metrics.items():
            if hasattr(MultiMetric, name):
                raise rules.METRIC_ARGUMENT.error(
                    cls=type(self).__name__,
                    problem=f"a metric called `{name}` would hide the method",
                    mend="give it another name",
                )
            if not all(callable(getattr(metric, method, None)) for method in ("reset", "update", "compute")):
                raise rules.METRIC_ARGUMENT.error(
                    cls=type(self).__name__,
                    problem=f"`{name}` is a {type(metric).__name__}, which is no metric",
                    mend="pass metrics, such as `nnx.metrics.Average()`",
                )
            setattr(self, name, metric)

    def reset(self) -> None:
        """Begin again, with all metrics."""
        for name in self._metric_names:
            getattr(self, name).reset()

    def update(self, **updates: Any) -> None:
        """Pass all arguments to all metrics.

        Args:
            **updates: the arguments; a mapping as ``mask`` has masks by the names of metrics, and goes to no others.

        Raises:
            MetricCallError: one of them needs another.
        """
        masks = updates.pop("mask") if isinstance(updates.get("mask"), Mapping) else {}
        for name in self._metric_names:
            own = {"mask": masks[name]} if name in masks else {}
            getattr(self, name).update(**updates, **own)

    def compute(self) -> dict[str, Any]:
        """The values by the names of the metrics."""
        return {name: getattr(self, name).compute() for name in self._metric_names}
