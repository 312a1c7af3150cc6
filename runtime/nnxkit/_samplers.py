"""Every sampler of ``jax.random`` and every initializer factory, as methods that bring their own key.

``rngs.normal((2, 3))`` is ``jax.random.normal(key, (2, 3))`` with the next key of the stream;
``rngs.lecun_normal()`` is an initializer that takes no key: each call of it draws one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol

import jax
from jax.nn import initializers

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")


class KeylessInitializer(Protocol):
    """An initializer that draws its key itself."""

    def __call__(self, shape: Any, dtype: Any = ..., out_sharding: Any = None) -> jax.Array: ...


class Sampler(Protocol[P]):
    """What type checkers see of a sampler: a method with the arguments that follow the key in ``jax.random``."""

    def __get__(self, instance: Any, owner: Any, /) -> Callable[P, jax.Array]: ...


class InitializerFactory(Protocol[P]):
    """The same for an initializer factory."""

    def __get__(self, instance: Any, owner: Any, /) -> Callable[P, KeylessInitializer]: ...


def _sampler(sample: Callable[Concatenate[Any, P], jax.Array]) -> Sampler[P]:
    def method(self: Samplers, /, *args: P.args, **kwargs: P.kwargs) -> jax.Array:
        return sample(self._next_key(), *args, **kwargs)

    method.__name__ = sample.__name__
    method.__doc__ = f"``jax.random.{sample.__name__}`` with the next key of this stream."
    return method


def _initializer(factory: Callable[P, Any]) -> InitializerFactory[P]:
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

    ball: Final = _sampler(jax.random.ball)
    bernoulli: Final = _sampler(jax.random.bernoulli)
    beta: Final = _sampler(jax.random.beta)
    binomial: Final = _sampler(jax.random.binomial)
    bits: Final = _sampler(jax.random.bits)
    categorical: Final = _sampler(jax.random.categorical)
    cauchy: Final = _sampler(jax.random.cauchy)
    chisquare: Final = _sampler(jax.random.chisquare)
    choice: Final = _sampler(jax.random.choice)
    dirichlet: Final = _sampler(jax.random.dirichlet)
    double_sided_maxwell: Final = _sampler(jax.random.double_sided_maxwell)
    exponential: Final = _sampler(jax.random.exponential)
    f: Final = _sampler(jax.random.f)
    gamma: Final = _sampler(jax.random.gamma)
    generalized_normal: Final = _sampler(jax.random.generalized_normal)
    geometric: Final = _sampler(jax.random.geometric)
    gumbel: Final = _sampler(jax.random.gumbel)
    laplace: Final = _sampler(jax.random.laplace)
    loggamma: Final = _sampler(jax.random.loggamma)
    logistic: Final = _sampler(jax.random.logistic)
    lognormal: Final = _sampler(jax.random.lognormal)
    maxwell: Final = _sampler(jax.random.maxwell)
    multinomial: Final = _sampler(jax.random.multinomial)
    multivariate_normal: Final = _sampler(jax.random.multivariate_normal)
    normal: Final = _sampler(jax.random.normal)
    orthogonal: Final = _sampler(jax.random.orthogonal)
    pareto: Final = _sampler(jax.random.pareto)
    permutation: Final = _sampler(jax.random.permutation)
    poisson: Final = _sampler(jax.random.poisson)
    rademacher: Final = _sampler(jax.random.rademacher)
    randint: Final = _sampler(jax.random.randint)
    rayleigh: Final = _sampler(jax.random.rayleigh)
    t: Final = _sampler(jax.random.t)
    triangular: Final = _sampler(jax.random.triangular)
    truncated_normal: Final = _sampler(jax.random.truncated_normal)
    uniform: Final = _sampler(jax.random.uniform)
    wald: Final = _sampler(jax.random.wald)
    weibull_min: Final = _sampler(jax.random.weibull_min)

    delta_orthogonal: Final = _initializer(initializers.delta_orthogonal)
    glorot_normal: Final = _initializer(initializers.glorot_normal)
    glorot_uniform: Final = _initializer(initializers.glorot_uniform)
    he_normal: Final = _initializer(initializers.he_normal)
    he_uniform: Final = _initializer(initializers.he_uniform)
    kaiming_normal: Final = _initializer(initializers.kaiming_normal)
    kaiming_uniform: Final = _initializer(initializers.kaiming_uniform)
    lecun_normal: Final = _initializer(initializers.lecun_normal)
    lecun_uniform: Final = _initializer(initializers.lecun_uniform)
    variance_scaling: Final = _initializer(initializers.variance_scaling)
    xavier_normal: Final = _initializer(initializers.xavier_normal)
    xavier_uniform: Final = _initializer(initializers.xavier_uniform)
