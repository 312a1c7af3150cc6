"""Modes: in which of the ways that NNX has for objects a transform handles them.

With ``graph`` objects may share and refer to each other; with ``updates`` a transform takes them apart on the way in
and writes all of them back. A transform gets its modes when it is applied to its function, or at the call where it has
call form: from its keywords, from the name that fixes them (``nnx.compat.*``), or from the configuration of that
moment, which ``nnx.set_graph_mode`` and ``nnx.set_graph_updates`` change for a block or from there on.

Invariants: a mode is ``None`` where it is not known, which is so in every function of a module that changes the
configuration by a statement, because the order in which functions run is not known.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.fields import literal
from nnx_lint.model.meshes import MeshVal, rules_in
from nnx_lint.model.values import Const, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nnx_lint.model.meshes import Rules
    from nnx_lint.model.modules import Module
    from nnx_rules.shapes import Shape


class Modes(NamedTuple):
    """The modes of a transform, or the configured ones.

    ``mesh`` are the names of the axes of the mesh that is set, ``()`` for none; it is ``None`` where that is not known.
    ``sizes`` are those of its axes, where they are known, and ``rules`` say what other names of axes stand for.
    """

    graph: bool | None
    updates: bool | None
    mesh: tuple[str, ...] | None = None
    sizes: Shape | None = None
    rules: Rules | None = ()

    @property
    def writes_back(self) -> bool:
        """Whether every object that is handed in is certainly taken apart and written back."""
        return bool(self.graph and self.updates)


CONFIGURED = Modes(graph=True, updates=True)
"""What NNX does if nobody says otherwise."""

UNSETTLED = Modes(graph=None, updates=None)

NO_MESH: tuple[str, ...] = ()

SETTERS = {"nnx.set_graph_mode": "graph", "nnx.set_graph_updates": "updates"}
"""The functions that change the configuration, with what they change."""

_STATEMENTS = r"^[ \t]*(?:\w+\.)*set_graph_(?:mode|updates)\(|\bnnx_graph_\w+"


def at_entry(module: Module | None) -> Modes:
    """The configuration in which a function of a module starts that is not seen to be called."""
    return UNSETTLED if module is not None and _sets_modes(module.source.text) else CONFIGURED


@functools.lru_cache(maxsize=100)
def _sets_modes(text: str) -> bool:
    """Whether a statement of a text may change the configuration; asked again for each function in it."""
    named = "set_graph_" in text or "nnx_graph_" in text  # the pattern is slow
    return named and re.search(_STATEMENTS, text, re.MULTILINE) is not None


def changed(configured: Modes, setter: str, value: Value | None) -> Modes:
    """The configuration after a call of one of the setters."""
    flag = literal(value)
    return configured._replace(graph=flag) if SETTERS[setter] == "graph" else configured._replace(updates=flag)


def of_transform(name: str, keywords: Mapping[str, Value], configured: Modes) -> Modes:
    """The modes of a transform of this canonical name, with these options."""
    if name.startswith("nnx.compat."):
        return CONFIGURED
    if "**" in keywords:
        return UNSETTLED
    return configured._replace(
        graph=_chosen(keywords.get("graph"), configured.graph),
        updates=_chosen(keywords.get("graph_updates"), configured.updates),
    )


MESH_SETTERS = frozenset({"jax.set_mesh", "jax.sharding.set_mesh", "jax.sharding.use_mesh"})
"""What sets the mesh, for a block or from there on."""

AXIS_RULES = frozenset({"nnx.logical_axis_rules", "nnx.spmd.logical_axis_rules"})
"""What gives names of axes a meaning, for a block."""

MESH_CHANGERS = MESH_SETTERS | AXIS_RULES | {"nnx.use_eager_sharding"}
"""What decides what a sharding means."""


def with_mesh(configured: Modes, setter: str, given: Value | None) -> Modes:
    """The configuration after a mesh was set, or something else that decides what a sharding means."""
    if setter in AXIS_RULES:
        rules = rules_in(given)
        known_mesh = configured.mesh if rules is not None else None
        return configured._replace(mesh=known_mesh or None, rules=rules)
    known = given if setter in MESH_SETTERS and isinstance(given, MeshVal) and configured.rules is not None else None
    return configured._replace(mesh=known.axes if known else None, sizes=known.shape if known else None)


def _chosen(given: Value | None, configured: bool | None) -> bool | None:
    return configured if given is None or (isinstance(given, Const) and given.value is None) else literal(given)
