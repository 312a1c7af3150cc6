"""Test ids that are the same in every process, as parallel runs need them."""

import re


def stable_repr(value: object) -> str:
    """The repr without the addresses of functions and instances."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
