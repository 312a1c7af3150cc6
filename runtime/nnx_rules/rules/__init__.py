"""Every rule, one module a family.

A rule is declared here, checked statically in ``nnx_lint.rules`` (and at run time where it has an exception), and
explained, specified and tested by its page. Slots of the templates mean the same in every family: ``cls`` a class
name, ``path`` an attribute or leaf as it is reached in Python, ``value`` a description such as ``a list of Linear``,
``transform`` the name of a transform as written.
"""

from nnx_rules.registry import Registry
from nnx_rules.rules import (
    attributes,
    autodiff,
    checkpoints,
    comments,
    construction,
    costs,
    dataclasses,
    filters,
    graphs,
    intermediates,
    modules,
    rngs,
    traces,
    training,
    transforms,
    updates,
    variables,
    versions,
)

REGISTRY = Registry()

for _family in (
    comments,
    attributes,
    dataclasses,
    traces,
    updates,
    filters,
    graphs,
    transforms,
    autodiff,
    rngs,
    training,
    checkpoints,
    intermediates,
    modules,
    construction,
    variables,
    costs,
    versions,
):
    for _rule in _family.RULES:
        REGISTRY.add(_rule)
