"""Deprecated names: one decorator warns whoever calls them, and type checkers read it.

Type checkers show the message, and know it from the decorator only, so it is a literal there. For them the decorator is
that of `typing_extensions`, which nobody has to install: they bring its types. ``warnings.deprecated`` of Python 3.13
does the same at run time.
"""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import deprecated as deprecated
else:

    def deprecated(message: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Let calls of a function warn with this message; a property is deprecated by its functions."""

        def mark(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            def warning(*args: Any, **kwargs: Any) -> Any:
                warnings.warn(message, DeprecationWarning, stacklevel=2)
                return function(*args, **kwargs)

            warning.__deprecated__ = message
            return warning

        return mark
