"""Slips of the pen in the names of attributes, where a class has bases that nobody knows (part of NNX864).

Such a base may have an attribute of any name, so a name that is only like one of the class says little: it must be one
that nobody would think of. That is told by its letters.

Invariant: names that differ in a number, in their ends or in whole words are two names.
"""

from __future__ import annotations

EXCHANGED, MISSING, OTHER = 5, 6, 7
"""How long a word must be where two of its letters are exchanged, one is missing or doubled, or another."""


def is_slip(name: str, other: str) -> bool:
    """Whether a name is another one with a slip in one of its words: both begin and end with the same letters."""
    pairs = [(one, two) for one, two in zip(name.split("_"), other.split("_"), strict=False) if one != two]
    if name.count("_") != other.count("_") or len(pairs) != 1:
        return False
    one, two = sorted(pairs[0], key=len)
    if not (one.isalpha() and two.isalpha()) or one[0] != two[0]:
        return False
    if one[:-2] == two[:-2] and one[-2:] == two[:-3:-1]:
        return len(one) >= EXCHANGED
    if one[-1] != two[-1]:
        return False
    if len(one) < len(two):
        return len(one) >= MISSING - 1 and any(two[:place] + two[place + 1 :] == one for place in range(len(two)))
    places = [place for place, (left, right) in enumerate(zip(one, two, strict=False)) if left != right]
    if len(one) != len(two) or len(places) > 2:
        return False
    if len(places) == 1:
        return len(one) >= OTHER
    first, last = places
    return len(one) >= EXCHANGED and last == first + 1 and one[first] == two[last] and one[last] == two[first]
