"""Names that JAX and optax do not have where they are looked for (NNX825): ``jax.sigmoid``, ``jnp.vmap``,
``getattr(optax, "Adam")``.

Invariants: a name counts that no release known has in this namespace, and that means something all the same: another
namespace has it, or this one has a name that is nearly it. What means nothing may be newer than what is known here.
"""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

from nnx_lint.model.events import Called, LibraryName
from nnx_lint.model.tables.jax_gone import GONE
from nnx_lint.model.tables.public_names import MADE_FROM, NAMES
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.construction import ported
from nnx_lint.rules.construction.names import is_asked_for, letters_of, looked_up
from nnx_lint.rules.program import ancestors, is_tried
from nnx_lint.rules.versions.jax import is_looked_for
from nnx_lint.rules.versions.names import is_meant_for_another, place_of
from nnx_rules.rules import variables as rules

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module

PATHS = (
    *("jax.nn", "jax.numpy", "jax", "jax.lax", "jax.random"),
    *("jax.numpy.linalg", "jax.scipy.special", "jax.tree_util"),
)
"""Where JAX has what people look for elsewhere, the likeliest place first."""


def is_missing(event: LibraryName) -> bool:
    """Whether a namespace of JAX or optax has no such name in any release."""
    namespace, _, name = event.name.rpartition(".")
    known = NAMES.get(namespace) if not namespace.startswith("nnx") else None
    return known is not None and name not in known and event.name not in GONE and not name.startswith("_")


@judges(rules.TENSOR_IDIOM, LibraryName, when=is_missing)
def name_misplaced(event: LibraryName, report: Reporter) -> None:
    module, (namespace, _, name) = event.frame.module, event.name.rpartition(".")
    if _is_told_elsewhere(module, event) or is_newer(module, report):
        return
    mend = ported.NAMES.get(event.name) or _meant(namespace, name)
    if mend is None or is_meant_for_another(event) or not is_looked_for(event) or is_asked_for(module, event.node):
        return
    report(module, place_of(event), problem=f"`{namespace}` has no `{name}`", mend=f"use {mend}")


@judges_calls(rules.TENSOR_IDIOM, "builtins.getattr")
def name_looked_up(event: Called, report: Reporter) -> None:
    """``getattr(optax, config.optimizer)``, where the configuration says ``"AdamW"``."""
    (namespace, name), module = looked_up(event), event.frame.module
    if namespace not in NAMES or namespace.startswith("nnx") or name in NAMES[namespace]:
        return
    mend = ported.NAMES.get(f"{namespace}.{name}") or _meant(namespace, name)
    if mend is not None and not is_tried(module, event.node) and not is_newer(module, report):
        report(module, event.node, problem=f"`{namespace}` has no `{name}`", mend=f"use {mend}")


LAST = tuple(map(int, MADE_FROM["jax"].split(".")))
"""The release of JAX whose names are known here."""


def is_newer(module: Module, report: Reporter) -> bool:
    """Whether a module runs on a release of JAX that may have more than what is known here."""
    version = report.jax_of(module)
    return version is not None and version > LAST


def _is_told_elsewhere(module: Module, event: LibraryName) -> bool:
    """Whether the call of the name is a finding of its own."""
    node = event.node
    call = next(iter(ancestors(module, node)), None)
    called = isinstance(call, ast.Call) and call.func is node
    return event.name == "jax.nn.functional" or (called and event.name in ported.NAMES)


@functools.cache
def _meant(namespace: str, name: str) -> str | None:
    """What a name stands for: that of another namespace, or one of this namespace that is written nearly so."""
    import difflib

    elsewhere = next((path for path in PATHS if name in NAMES[path]), None)
    if elsewhere is not None:
        return f"`{elsewhere}.{name}`"
    alike = next((known for known in sorted(NAMES[namespace]) if letters_of(known) == letters_of(name)), None)
    near = [alike] if alike else difflib.get_close_matches(name, NAMES[namespace], n=1, cutoff=NEAR)
    found = near[0] if near else _of_words(namespace, name)
    return f"`{namespace}.{found}`" if found else None


NEAR = 0.85
"""How alike a name and what is meant by it have to be."""

SHARED = 0.6
"""Which part of the words of two names they have to share: `linear_warmup_cosine_decay`."""


def _of_words(namespace: str, name: str) -> str | None:
    """The name that is most nearly made of the same words."""
    words = {*name.split("_")}
    parts = {known: {*known.split("_")} for known in sorted(NAMES[namespace])}
    shared = {known: len(words & part) / len(words | part) for known, part in parts.items() if len(words & part) > 1}
    best = max(shared, key=lambda known: shared[known], default=None)
    return best if best is not None and shared[best] >= SHARED else None
