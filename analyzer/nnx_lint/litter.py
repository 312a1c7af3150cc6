"""What evaluations leave behind in a process that runs once and ends.

Functions and their scopes hold each other, so Python's collector would have to find what is left of them. It walks over
everything that is alive, and nearly all of that stays until the end: the command line turns it off. After each file,
though, it may walk over what came with that file alone: all older objects are frozen, syntax trees as soon as there is
one. So nothing is walked over twice, and most objects never. What was read off trees is forgotten now and then: it goes
without the collector.

Invariants: nothing happens where the collector is on; the process is somebody else's then.
"""

from __future__ import annotations

import gc

MANY = 20_000
"""Readings (about 8 MB) from which on nodes forget them; a run over 300,000 lines has more than twice as many."""


def keep() -> None:
    """Say that what there is stays."""
    if not gc.isenabled():
        gc.freeze()


def sweep() -> None:
    """Collect what came since something was kept, and is not needed any more; all else stays."""
    if not gc.isenabled():
        from nnx_lint.syntax.walk import READINGS  # a run that the cache answers reads no trees

        READINGS.forget(over=MANY)
        gc.collect(0)
        gc.freeze()
