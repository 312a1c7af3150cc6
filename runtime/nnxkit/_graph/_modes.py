"""The settings ``graph`` and ``graph_updates``.

Each is a setting of the thread: called as a statement it lasts, as a context manager it is undone at the end of the
block, as a decorator it holds while the function runs. Functions take the same settings as keywords, where ``None``
means the current value. Where a thread has set nothing, the configuration of the process holds, which begins with what
the environment variables ``NNX_GRAPH_MODE`` and ``NNX_GRAPH_UPDATES`` said at import; both are on if they say nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import ClassVar

from nnxkit._setting import Setting

_YES, _NO = ("1", "true", "t", "yes", "y", "on"), ("0", "false", "f", "no", "n", "off")
_WORDS = {**dict.fromkeys(_YES, True), **dict.fromkeys(_NO, False)}


def _from_environment(variable: str) -> bool:
    text = os.environ.get(variable, "1")
    value = _WORDS.get(text.lower())
    if value is None:
        raise ValueError(f"the environment variable {variable} is {text!r}; use one of {', '.join(_WORDS)}")
    return value


class Config:
    """The configuration of the process: what holds where nothing else is set.

    Attributes:
        nnx_graph_mode: whether graph functions keep shared references and cycles; at first what the environment
            variable ``NNX_GRAPH_MODE`` says, else ``True``.
        nnx_graph_updates: whether transforms propagate changes of structure; at first what ``NNX_GRAPH_UPDATES`` says,
            else ``True``.

    >>> config.nnx_graph_mode
    True
    """

    __module__ = "nnxkit"

    nnx_graph_mode: bool
    nnx_graph_updates: bool

    def __init__(self) -> None:
        vars(self).update({name: _from_environment(name.upper()) for name in _OPTIONS})

    def update(self, name: str, value: bool) -> None:
        """Set an option.

        Raises:
            AttributeError: there is no such option.
        """
        setattr(self, name, value)

    def __setattr__(self, name: str, value: bool) -> None:
        if name not in _OPTIONS:
            raise AttributeError(f"there is no option {name!r}; the options are {' and '.join(_OPTIONS)}")
        vars(self)[name] = bool(value)

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={value}' for name, value in vars(self).items())})"


_OPTIONS = ("nnx_graph_mode", "nnx_graph_updates")
config: Config = Config()


class _Values(threading.local):
    """What is set in this thread: ``None`` where the configuration holds."""

    def __init__(self) -> None:
        vars(self).update(dict.fromkeys(_OPTIONS))


_values = _Values()


class _ThreadSetting(Setting):
    """A setting of the thread, under the name that it has in the configuration."""

    _name: ClassVar[str]

    def __init__(self, value: bool, /) -> None:
        def apply() -> Callable[[], None]:
            before: bool | None = getattr(_values, self._name)
            setattr(_values, self._name, bool(value))
            return lambda: setattr(_values, self._name, before)

        super().__init__(apply)

    @classmethod
    def current_value(cls) -> bool:
        """The value in force in this thread."""
        value: bool | None = getattr(_values, cls._name)
        chosen: bool = getattr(config, cls._name) if value is None else value
        return chosen


class set_graph_mode(_ThreadSetting):  # noqa: N801 - used like a function
    """Whether graph functions keep shared references and cycles (``True``, the default) or insist on trees.

    >>> with set_graph_mode(False):
    ...     set_graph_mode.current_value()
    False
    """

    __module__ = "nnxkit"
    _name = "nnx_graph_mode"


class set_graph_updates(_ThreadSetting):  # noqa: N801 - used like a function
    """Whether transforms propagate changes of structure, not only of Variables (``True``, the default)."""

    __module__ = "nnxkit"
    _name = "nnx_graph_updates"


def is_graph_mode(graph: bool | None) -> bool:
    """What a ``graph=`` keyword means."""
    return set_graph_mode.current_value() if graph is None else graph
