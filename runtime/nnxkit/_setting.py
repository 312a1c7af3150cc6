"""A setting that is changed by being named: as a statement, for a block, or for the calls of a function.

``set_graph_mode(False)`` lasts from its construction on. ``with set_graph_mode(False):`` undoes it at the end of the
block. As a decorator it holds while the function runs, and not before: what the construction changed is taken back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
Undo = Callable[[], None]


class Setting:
    """A change that is in force.

    Args:
        apply: makes the change, and returns what takes it back.
    """

    def __init__(self, apply: Callable[[], Undo]) -> None:
        self._apply = apply
        self._undo = apply()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        self._undo()

    def __call__(self, f: Callable[P, R]) -> Callable[P, R]:
        self._undo()

        @functools.wraps(f)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            with Setting(self._apply):
                return f(*args, **kwargs)

        return wrapper
