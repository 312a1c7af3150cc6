"""Every rule, one module a family.

A rule is declared here, checked statically in ``nnx_lint.rules`` (and at run time where it has an exception), and
explained, specified and tested by its page. Slots of the templates mean the same in every family: ``cls`` a class
name, ``path`` an attribute or leaf as it is reached in Python, ``value`` a description such as ``a list of Linear``,
``transform`` the name of a transform as written.
"""

from nnx_rules.registry import Registry
from nnx_rules.rules import (
    attributes,
    comments,
    dataclasses,
    filters,
    graphs,
    modules,
    rngs,
    traces,
    training,
    transforms,
)

REGISTRY = Registry()

for _family in (comments, attributes, dataclasses, traces, filters, graphs, transforms, rngs, modules, training):
    for _rule in _family.RULES:
        REGISTRY.add(_rule)
