"""The names that random streams have, and the other names that ``nnx.Rngs`` answers to.

Layers ask for streams by name: ``params`` for initial values, ``dropout`` for masks, ``carry`` for the initial state of
a recurrent layer. Every other attribute of an ``nnx.Rngs`` is a method, or a stream that the user declares.
"""

from __future__ import annotations

NORMS: frozenset[str] = frozenset({"BatchNorm", "LayerNorm", "RMSNorm", "GroupNorm", "InstanceNorm", "WeightNorm"})
"""Layers that draw a key only for a scale or a bias, and whose initial values do not depend on it."""

_SAMPLERS = """
    ball bernoulli beta binomial bits categorical cauchy chisquare choice delta_orthogonal dirichlet
    double_sided_maxwell exponential f gamma generalized_normal geometric glorot_normal glorot_uniform gumbel he_normal
    he_uniform kaiming_normal kaiming_uniform laplace lecun_normal lecun_uniform loggamma logistic lognormal maxwell
    multinomial multivariate_normal normal orthogonal pareto permutation poisson rademacher randint rayleigh t
    triangular truncated_normal uniform variance_scaling wald weibull_min xavier_normal xavier_uniform
"""

SAMPLERS: frozenset[str] = frozenset(_SAMPLERS.split())
"""Methods of ``nnx.Rngs`` and of a stream that draw a key and sample with it."""

KEPT = {"Bidirectional": "carry", "Dropout": "dropout", "MultiHeadAttention": "dropout", "RNN": "carry"}
"""Layers that keep a stream of the ``nnx.Rngs`` that they get, with its name; the default stream stands in for it."""

LATE = frozenset({"dropout"})
"""Streams that layers only asked for when they were called, before a version of flax took them in the constructor."""

LATE_BEFORE = (0, 11)

CELLS_KEEP_BEFORE = (0, 11)
"""The version of flax since which the cells of an RNN keep no streams, unless they are asked to."""

METHODS: frozenset[str] = SAMPLERS | {"fork", "split", "broadcast", "items", "keys", "values", "get", "pop", "update"}
"""Attributes of ``nnx.Rngs`` that are no streams."""
