"""What a requirement says about versions: the oldest and the newest release that it allows.

Understood are the specifiers of Python packaging (``>=0.10,<0.12``, ``~=0.12.1``, ``==0.12.*``) and those of poetry,
pixi and conda (``^0.12``, ``~0.12``, ``0.12.*``, ``=0.12``, alternatives with ``||``). Only the release counts, as a
tuple of numbers; a suffix such as ``rc1`` or ``.post1`` is left aside, and so are zeros at the end: 0.12.0 is
``(0, 12)``. What cannot be read says nothing.

"The newest release below 0.12" has no number that is known beforehand: it is ``(0, 11, LAST)``, where ``LAST`` is
greater than any number of a release.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from nnx_rules.registry import Version

LAST = sys.maxsize

_CLAUSE = r"\s*(===|==|~=|!=|<=|>=|<|>|\^|~|=)?\s*v?(?:\d+!)?(\d+(?:\.\d+)*)(\.?\*)?[\w.+-]*\s*"


class Range(NamedTuple):
    """The releases from the oldest to the newest that are allowed; ``None`` leaves that end open."""

    oldest: Version | None = None
    newest: Version | None = None

    def allows(self, version: Version) -> bool:
        """Whether a release lies in the range."""
        return (self.oldest is None or version >= self.oldest) and (self.newest is None or version <= self.newest)


ANY = Range()


def release(text: str) -> Version | None:
    """The numbers of a version such as ``0.12.3`` or ``v0.12.3rc1``."""
    found = re.fullmatch(_CLAUSE, text)
    return None if found is None or found[1] or found[3] else _plain(_numbers(found[2]))


def series(version: Version) -> Version:
    """The newest release that starts with these numbers."""
    return (*version, LAST)


def allowed(specifiers: str) -> Range:
    """The releases that a requirement allows; of alternatives (``||``), all from the oldest to the newest."""
    return merged([_all_of(part) for part in specifiers.split("||")])


def merged(ranges: list[Range]) -> Range:
    """One range that holds several."""
    oldest = [each.oldest for each in ranges if each.oldest is not None]
    newest = [each.newest for each in ranges if each.newest is not None]
    return Range(
        min(oldest) if oldest and len(oldest) == len(ranges) else None,
        max(newest) if newest and len(newest) == len(ranges) else None,
    )


def _all_of(specifiers: str) -> Range:
    oldest: Version | None = None
    newest: Version | None = None
    without: list[Version] = []
    for clause in specifiers.split(","):
        found = re.fullmatch(_CLAUSE, clause)
        if found is None:
            continue
        numbers = _numbers(found[2])
        if found[1] == "!=":
            without += () if found[3] else (_plain(numbers),)
            continue
        low, high = (end and _plain(end) for end in _bounds(found[1] or "==", numbers, bool(found[3])))
        oldest = low if oldest is None or (low is not None and low > oldest) else oldest
        newest = high if newest is None or (high is not None and high < newest) else newest
    if newest in without:
        newest = _before(newest) or newest
    return Range(oldest, newest)


def _bounds(operator: str, version: Version, star: bool) -> tuple[Version | None, Version | None]:
    if operator in (">=", ">"):
        return version, None
    if operator == "<=":
        return None, version
    if operator == "<":
        return None, _before(version)
    if operator == "~=":
        return version, series(version[:-1] or version)
    if operator == "~":
        return version, series(version[:2])
    if operator == "^":
        leading = next((index for index, number in enumerate(version) if number), len(version) - 1)
        return version, series(version[: leading + 1])
    return version, series(version) if star or operator == "=" else version


def _before(version: Version) -> Version | None:
    """The newest release below a version; ``None`` for version 0, which has none."""
    *most, last = _plain(version)
    return (*most, last - 1, LAST) if last else None


def _plain(version: Version) -> Version:
    """A version without zeros at the end, so that equal versions are equal tuples."""
    end = len(version)
    while end > 1 and not version[end - 1]:
        end -= 1
    return version[:end]


def _numbers(text: str) -> Version:
    return tuple(int(number) for number in text.split("."))
