"""Modes: in which of the ways that NNX has for objects a transform handles them.

With ``graph`` objects may share and refer to each other; with ``updates`` a transform takes them apart on the way in
and writes all of them back. A transform gets its modes when it is applied to its function, or at the call where it has
call form: from its keywords, from the name that fixes them (``nnx.compat.*``), or from the configuration of that
moment, which ``nnx.set_graph_mode`` and ``nnx.set_graph_updates`` change for a block or from there on.

Invariants: a mode is ``None`` where it is not known, which is so in every function of a module that changes the
configuration by a statement, because the order in which functions run is not known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.values import Const

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value


class Modes(NamedTuple):
    """The modes of a transform, or the configured ones."""

    graph: bool | None
    updates: bool | None

    @property
    def writes_back(self) -> bool:
        """Whether every object that is handed in is certainly taken apart and written back."""
        return bool(self.graph and self.updates)


CONFIGURED = Modes(graph=True, updates=True)
"""What NNX does if nobody says otherwise."""

UNSETTLED = Modes(graph=None, updates=None)

SETTERS = {"nnx.set_graph_mode": "graph", "nnx.set_graph_updates": "updates"}
"""The functions that change the configuration, with what they change."""

_STATEMENTS = r"^[ \t]*(?:\w+\.)*set_graph_(?:mode|updates)\(|\bnnx_graph_\w+"


def at_entry(module: Module | None) -> Modes:
    """The configuration in which a function of a module starts that is not seen to be called."""
    text = module.source.text if module is not None else ""
    named = "set_graph_" in text or "nnx_graph_" in text  # the pattern is slow
    return UNSETTLED if named and re.search(_STATEMENTS, text, re.MULTILINE) else CONFIGURED


def changed(configured: Modes, setter: str, value: Value | None) -> Modes:
    """The configuration after a call of one of the setters."""
    return configured._replace(**{SETTERS[setter]: _flag(value)})


def of_transform(name: str, keywords: Mapping[str, Value], configured: Modes) -> Modes:
    """The modes of a transform of this canonical name, with these options."""
    if name.startswith("nnx.compat."):
        return CONFIGURED
    if "**" in keywords:
        return UNSETTLED
    return Modes(*(_chosen(keywords.get(option), default) for option, default in zip(OPTIONS, configured, strict=True)))


OPTIONS = ("graph", "graph_updates")


def _chosen(given: Value | None, configured: bool | None) -> bool | None:
    return configured if given is None or (isinstance(given, Const) and given.value is None) else _flag(given)


def _flag(value: Value | None) -> bool | None:
    return value.value if isinstance(value, Const) and isinstance(value.value, bool) else None
