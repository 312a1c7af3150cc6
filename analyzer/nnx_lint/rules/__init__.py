"""The rules' checks, one module a rule or a few that judge the same facts, in folders by family. Importing them
registers them.
"""

from __future__ import annotations

import importlib

MODULES: tuple[str, ...] = (
    "attributes.status",
    "attributes.containers",
    "attributes.tags",
    "attributes.variables",
    "attributes.annotations",
    "attributes.leaves",
    "attributes.classes",
    "attributes.bypass",
    "attributes.reserved",
    "attributes.registration",
    "attributes.opaque",
    "dataclasses.fields",
    "dataclasses.decorators",
    "filters.order",
    "filters.validity",
    "filters.arguments",
    "filters.coverage",
    "filters.results",
    "filters.pops",
    "traces.mutation",
    "traces.boundaries",
    "traces.methods",
    "traces.escapes",
    "graphs.merging",
    "graphs.states",
    "graphs.sharing",
    "transforms.scanning",
    "transforms.partials",
    "costs.retracing",
    "transforms.mapping",
    "transforms.calling",
    "updates.lost",
    "updates.stale",
    "updates.snapshots",
    "updates.results",
    "updates.gradients",
    "randomness.streams",
    "randomness.arguments",
    "randomness.reuse",
    "randomness.maps",
    "intermediates.sowing",
    "intermediates.capturing",
    "construction.classes",
    "construction.names",
    "construction.calls",
    "modes.attributes",
    "modes.layers",
    "modes.flags",
    "containers.lists",
    "containers.others",
    "containers.naming",
    "autodiff.gradients",
    "autodiff.tracing",
    "autodiff.values",
    "training.optimizers",
    "training.metrics",
    "variables.operators",
    "variables.values",
    "variables.integers",
    "layers.sizes",
    "layers.sharding",
    "versions.names",
    "versions.values",
    "versions.modules",
    "versions.imports",
)


def load() -> None:
    """Import every rule module; they register themselves."""
    for name in MODULES:
        importlib.import_module(f"nnx_lint.rules.{name}")
