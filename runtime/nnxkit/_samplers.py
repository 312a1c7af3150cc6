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


class Sampler(Protocol):
    """What type checkers see of a sampler: the methods differ in their arguments, which JAX may change."""

    def __get__(self, instance: Any, owner: Any, /) -> Callable[..., jax.Array]: ...


class InitializerFactory(Protocol):
    """The same for an initializer factory."""

    def __get__(self, instance: Any, owner: Any, /) -> Callable[..., KeylessInitializer]: ...


def _sampler(sample: Callable[Concatenate[Any, P], R]) -> Any:
    def method(self: Samplers, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return sample(self._next_key(), *args, **kwargs)

    method.__name__ = sample.__name__
    method.__doc__ = f"``jax.random.{sample.__name__}`` with the next key of this stream."
    return method


def _initializer(factory: Callable[P, Any]) -> Any:
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

    ball: Sampler = _sampler(jax.random.ball)
    bernoulli: Sampler = _sampler(jax.random.bernoulli)
    beta: Sampler = _sampler(jax.random.beta)
    binomial: Sampler = _sampler(jax.random.binomial)
    bits: Sampler = _sampler(jax.random.bits)
    categorical: Sampler = _sampler(jax.random.categorical)
    cauchy: Sampler = _sampler(jax.random.cauchy)
    chisquare: Sampler = _sampler(jax.random.chisquare)
    choice: Sampler = _sampler(jax.random.choice)
    dirichlet: Sampler = _sampler(jax.random.dirichlet)
    double_sided_maxwell: Sampler = _sampler(jax.random.double_sided_maxwell)
    exponential: Sampler = _sampler(jax.random.exponential)
    f: Sampler = _sampler(jax.random.f)
    gamma: Sampler = _sampler(jax.random.gamma)
    generalized_normal: Sampler = _sampler(jax.random.generalized_normal)
    geometric: Sampler = _sampler(jax.random.geometric)
    gumbel: Sampler = _sampler(jax.random.gumbel)
    laplace: Sampler = _sampler(jax.random.laplace)
    loggamma: Sampler = _sampler(jax.random.loggamma)
    logistic: Sampler = _sampler(jax.random.logistic)
    lognormal: Sampler = _sampler(jax.random.lognormal)
    maxwell: Sampler = _sampler(jax.random.maxwell)
    multinomial: Sampler = _sampler(jax.random.multinomial)
    multivariate_normal: Sampler = _sampler(jax.random.multivariate_normal)
    normal: Sampler = _sampler(jax.random.normal)
    orthogonal: Sampler = _sampler(jax.random.orthogonal)
    pareto: Sampler = _sampler(jax.random.pareto)
    permutation: Sampler = _sampler(jax.random.permutation)
    poisson: Sampler = _sampler(jax.random.poisson)
    rademacher: Sampler = _sampler(jax.random.rademacher)
    randint: Sampler = _sampler(jax.random.randint)
    rayleigh: Sampler = _sampler(jax.random.rayleigh)
    t: Sampler = _sampler(jax.random.t)
    triangular: Sampler = _sampler(jax.random.triangular)
    truncated_normal: Sampler = _sampler(jax.random.truncated_normal)
    uniform: Sampler = _sampler(jax.random.uniform)
    wald: Sampler = _sampler(jax.random.wald)
    weibull_min: Sampler = _sampler(jax.random.weibull_min)

    delta_orthogonal: InitializerFactory = _initializer(initializers.delta_orthogonal)
    glorot_normal: InitializerFactory = _initializer(initializers.glorot_normal)
    glorot_uniform: InitializerFactory = _initializer(initializers.glorot_uniform)
    he_normal: InitializerFactory = _initializer(initializers.he_normal)
    he_uniform: InitializerFactory = _initializer(initializers.he_uniform)
    kaiming_normal: InitializerFactory = _initializer(initializers.kaiming_normal)
    kaiming_uniform: InitializerFactory = _initializer(initializers.kaiming_uniform)
    lecun_normal: InitializerFactory = _initializer(initializers.lecun_normal)
    lecun_uniform: InitializerFactory = _initializer(initializers.lecun_uniform)
    variance_scaling: InitializerFactory = _initializer(initializers.variance_scaling)
    xavier_normal: InitializerFactory = _initializer(initializers.xavier_normal)
    xavier_uniform: InitializerFactory = _initializer(initializers.xavier_uniform)
