"""Every sampler of ``jax.random`` and every initializer factory, as methods that bring their own key.

``rngs.normal((2, 3))`` is ``jax.random.normal(key, (2, 3))`` with the next key of the stream;
``rngs.lecun_normal()`` is an initializer that takes no key: each call of it draws one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

import jax
from jax.nn import initializers

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")


class KeylessInitializer(Protocol):
    """An initializer that draws its key itself."""

    def __call__(self, shape: Any, dtype: Any = ..., out_sharding: Any = None) -> jax.Array: ...


def _sampler(sample: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Samplers, P], R]:
    def method(self: Samplers, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return sample(self._next_key(), *args, **kwargs)

    method.__name__ = sample.__name__
    method.__doc__ = f"``jax.random.{sample.__name__}`` with the next key of this stream."
    return method


def _initializer(factory: Callable[P, Any]) -> Callable[Concatenate[Samplers, P], KeylessInitializer]:
    def method(self: Samplers, /, *args: P.args, **kwargs: P.kwargs) -> KeylessInitializer:
        initialize = factory(*args, **kwargs)

        def keyless(shape: Any, *args: Any, **kwargs: Any) -> jax.Array:
            result: jax.Array = initialize(self._next_key(), shape, *args, **kwargs)
            return result

        return keyless

    method.__name__ = getattr(factory, "__name__", "initializer")
    method.__doc__ = "An initializer ``f(shape, dtype)`` that draws its key from this stream at every call."
    return method


class Samplers:
    """The methods; ``_next_key`` is the stream."""

    __slots__ = ()

    def _next_key(self) -> jax.Array:
        raise NotImplementedError

    ball = _sampler(jax.random.ball)
    bernoulli = _sampler(jax.random.bernoulli)
    beta = _sampler(jax.random.beta)
    binomial = _sampler(jax.random.binomial)
    bits = _sampler(jax.random.bits)
    categorical = _sampler(jax.random.categorical)
    cauchy = _sampler(jax.random.cauchy)
    chisquare = _sampler(jax.random.chisquare)
    choice = _sampler(jax.random.choice)
    dirichlet = _sampler(jax.random.dirichlet)
    double_sided_maxwell = _sampler(jax.random.double_sided_maxwell)
    exponential = _sampler(jax.random.exponential)
    f = _sampler(jax.random.f)
    gamma = _sampler(jax.random.gamma)
    generalized_normal = _sampler(jax.random.generalized_normal)
    geometric = _sampler(jax.random.geometric)
    gumbel = _sampler(jax.random.gumbel)
    laplace = _sampler(jax.random.laplace)
    loggamma = _sampler(jax.random.loggamma)
    logistic = _sampler(jax.random.logistic)
    lognormal = _sampler(jax.random.lognormal)
    maxwell = _sampler(jax.random.maxwell)
    multinomial = _sampler(jax.random.multinomial)
    multivariate_normal = _sampler(jax.random.multivariate_normal)
    normal = _sampler(jax.random.normal)
    orthogonal = _sampler(jax.random.orthogonal)
    pareto = _sampler(jax.random.pareto)
    permutation = _sampler(jax.random.permutation)
    poisson = _sampler(jax.random.poisson)
    rademacher = _sampler(jax.random.rademacher)
    randint = _sampler(jax.random.randint)
    rayleigh = _sampler(jax.random.rayleigh)
    t = _sampler(jax.random.t)
    triangular = _sampler(jax.random.triangular)
    truncated_normal = _sampler(jax.random.truncated_normal)
    uniform = _sampler(jax.random.uniform)
    wald = _sampler(jax.random.wald)
    weibull_min = _sampler(jax.random.weibull_min)

    delta_orthogonal = _initializer(initializers.delta_orthogonal)
    glorot_normal = _initializer(initializers.glorot_normal)
    glorot_uniform = _initializer(initializers.glorot_uniform)
    he_normal = _initializer(initializers.he_normal)
    he_uniform = _initializer(initializers.he_uniform)
    kaiming_normal = _initializer(initializers.kaiming_normal)
    kaiming_uniform = _initializer(initializers.kaiming_uniform)
    lecun_normal = _initializer(initializers.lecun_normal)
    lecun_uniform = _initializer(initializers.lecun_uniform)
    variance_scaling = _initializer(initializers.variance_scaling)
    xavier_normal = _initializer(initializers.xavier_normal)
    xavier_uniform = _initializer(initializers.xavier_uniform)
