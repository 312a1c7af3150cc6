"""Defaults for new Variables: ``use_eager_sharding`` and ``var_defaults``.

Each is a setting with three uses: called as a statement it lasts for the thread, as a context manager it is undone
at the end of the block, and with a read-only function it is looked up.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple


class VarDefaults(NamedTuple):
    """The metadata that every Variable has, with the values it gets when nothing is said."""

    hijax: bool = False
    ref: bool = False
    eager_sharding: bool = True


class _Current(threading.local):
    def __init__(self) -> None:
        self.defaults = VarDefaults()


_current = _Current()


class _Setting:
    """A change of the defaults that has happened; as a context manager it undoes itself."""

    def __init__(self, **changes: Any) -> None:
        self._before = _current.defaults
        _current.defaults = self._before._replace(
            **{name: bool(value) for name, value in changes.items() if value is not None}
        )

    def __enter__(self) -> VarDefaults:
        return _current.defaults

    def __exit__(self, *exc_info: object) -> None:
        _current.defaults = self._before


def current_defaults() -> VarDefaults:
    """The defaults of this thread."""
    return _current.defaults


def use_eager_sharding(value: bool, /) -> _Setting:
    """Set whether a Variable with ``out_sharding`` is sharded when it is created.

    >>> with use_eager_sharding(False):
    ...     using_eager_sharding()
    False
    >>> using_eager_sharding()
    True
    """
    return _Setting(eager_sharding=value)


def using_eager_sharding() -> bool:
    """Whether a Variable with ``out_sharding`` is sharded when it is created."""
    return _current.defaults.eager_sharding


def var_defaults(*, hijax: bool | None = None, ref: bool | None = None) -> _Setting:
    """Set the defaults of the ``hijax`` and ``ref`` metadata of new Variables; ``None`` leaves one as it is."""
    return _Setting(hijax=hijax, ref=ref)
