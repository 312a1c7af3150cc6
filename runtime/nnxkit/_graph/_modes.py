"""The settings ``graph`` and ``graph_updates``.

Each is a setting of the thread: called as a statement it lasts, as a context manager it is undone at the end of the
block. Functions take the same settings as keywords, where ``None`` means the current value. A thread starts with what
the environment variables ``NNX_GRAPH_MODE`` and ``NNX_GRAPH_UPDATES`` said at import; both are on if they say nothing.
"""

from __future__ import annotations

import os
import threading
from typing import ClassVar

_YES, _NO = ("1", "true", "t", "yes", "y", "on"), ("0", "false", "f", "no", "n", "off")
_WORDS = {**dict.fromkeys(_YES, True), **dict.fromkeys(_NO, False)}


def _from_environment(variable: str) -> bool:
    text = os.environ.get(variable, "1")
    value = _WORDS.get(text.lower())
    if value is None:
        raise ValueError(f"the environment variable {variable} is {text!r}; use one of {', '.join(_WORDS)}")
    return value


_DEFAULTS = {"graph": _from_environment("NNX_GRAPH_MODE"), "graph_updates": _from_environment("NNX_GRAPH_UPDATES")}


class _Values(threading.local):
    def __init__(self) -> None:
        vars(self).update(_DEFAULTS)


_values = _Values()


class _Setting:
    """A change of a setting, in force from its construction."""

    _name: ClassVar[str]

    def __init__(self, value: bool, /) -> None:
        self._before: bool = getattr(_values, self._name)
        setattr(_values, self._name, bool(value))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        setattr(_values, self._name, self._before)

    @classmethod
    def current_value(cls) -> bool:
        """The value in force in this thread."""
        value: bool = getattr(_values, cls._name)
        return value


class set_graph_mode(_Setting):  # noqa: N801 - used like a function
    """Whether graph functions keep shared references and cycles (``True``, the default) or insist on trees.

    >>> with set_graph_mode(False):
    ...     set_graph_mode.current_value()
    False
    """

    __module__ = "nnxkit"
    _name = "graph"


class set_graph_updates(_Setting):  # noqa: N801 - used like a function
    """Whether transforms propagate changes of structure, not only of Variables (``True``, the default)."""

    __module__ = "nnxkit"
    _name = "graph_updates"


def is_graph_mode(graph: bool | None) -> bool:
    """What a ``graph=`` keyword means."""
    return set_graph_mode.current_value() if graph is None else graph
