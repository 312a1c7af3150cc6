"""Parsing TOML once: a ``pyproject.toml`` is asked for options and for requirements, and parsing takes milliseconds."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@lru_cache(maxsize=16)
def parsed(text: str) -> Mapping[str, object]:
    """The document that a text is, not to be changed.

    Raises:
        ValueError: the text is no TOML.
    """
    import tomllib

    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("Nested too deeply") from None
