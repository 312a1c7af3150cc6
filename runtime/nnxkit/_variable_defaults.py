"""Defaults for new Variables: ``use_eager_sharding`` and ``var_defaults``.

Each is a setting of the thread (`Setting`): a statement, a context manager, a decorator; a function tells its value.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import NamedTuple, overload

from nnxkit._setting import Setting


class Defaults(NamedTuple):
    """The metadata that every Variable has, with the values it gets when nothing is said."""

    hijax: bool = False
    ref: bool = False
    eager_sharding: bool = True


@dataclass(frozen=True)
class VarDefaults(Mapping[str, bool]):
    """What `var_defaults` sets, as attributes and as a mapping."""

    hijax: bool
    ref: bool

    def __getitem__(self, name: str) -> bool:
        value: bool = asdict(self)[name]
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(asdict(self))

    def __len__(self) -> int:
        return len(asdict(self))


class _Current(threading.local):
    def __init__(self) -> None:
        self.defaults = Defaults()


_current = _Current()


def _change(**changes: bool | None) -> Setting:
    """Change the defaults that are not ``None``."""
    given = {name: bool(value) for name, value in changes.items() if value is not None}

    def apply() -> Callable[[], None]:
        before = _current.defaults
        _current.defaults = before._replace(**given)
        return lambda: setattr(_current, "defaults", before)

    return Setting(apply)


def current_defaults() -> Defaults:
    """The defaults of this thread."""
    return _current.defaults


def use_eager_sharding(value: bool, /) -> Setting:
    """Set whether a Variable with ``out_sharding`` is sharded when it is created.

    >>> with use_eager_sharding(False):
    ...     using_eager_sharding()
    False
    >>> using_eager_sharding()
    True
    """
    return _change(eager_sharding=value)


def using_eager_sharding() -> bool:
    """Whether a Variable with ``out_sharding`` is sharded when it is created."""
    return _current.defaults.eager_sharding


@overload
def var_defaults() -> VarDefaults: ...
@overload
def var_defaults(*, hijax: bool | None, ref: bool | None = None) -> Setting: ...
@overload
def var_defaults(*, ref: bool | None) -> Setting: ...
def var_defaults(*, hijax: bool | None = None, ref: bool | None = None) -> Setting | VarDefaults:
    """Set the defaults of the ``hijax`` and ``ref`` metadata of new Variables; ``None`` leaves one as it is.

    Without arguments, return the defaults that are in force.

    >>> with var_defaults(hijax=True):
    ...     var_defaults().hijax
    True
    """
    if hijax is None and ref is None:
        return VarDefaults(_current.defaults.hijax, _current.defaults.ref)
    return _change(hijax=hijax, ref=ref)
