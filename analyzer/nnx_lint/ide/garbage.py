"""When garbage is collected in a process that lives for days and whose users wait for milliseconds.

What an evaluation leaves behind is tied up in cycles. Python's collector finds it by walking over everything that is
alive, and nothing else runs meanwhile: seconds, where a workspace is big. So the process disables it, and it runs when
it is told to. Most of what is alive was made when files were opened, and stays. That is *settled*: the collector walks
only over what came later.

Invariants: what is settled is most of what there is, so that little is walked over; what has died in it is found before
that makes memory grow by half, and by a quarter where nobody waits.
"""

from __future__ import annotations

import gc
import sys

LITTER = 100_000
"""Blocks of memory (about 10 MB) below which nothing is worth a walk."""

MUCH = 4
"""How many times as much may lie about while somebody waits or types."""


class Collector:
    """Collects garbage when it is told that there is time."""

    def __init__(self) -> None:
        self._settled = 0
        self._kept = 0

    def tidy(self, *, waiting: bool) -> None:
        """Collect what may have become garbage, if there is enough of it; ``waiting`` says that more work is likely."""
        there = sys.getallocatedblocks()
        if there > 2 * self._settled:
            self._settle()
            return
        enough = max(LITTER, self._kept - self._settled)
        if waiting:
            enough = max(MUCH * LITTER, min(MUCH * enough, self._settled // 4))
        if there - self._kept < enough:
            return
        gc.collect()
        self._kept = sys.getallocatedblocks()
        if self._kept > (1.5 if waiting else 1.25) * self._settled:
            self.forget()
            self._settle()

    def forget(self) -> None:
        """Collect all garbage there is; for when most of what was there has been given up."""
        gc.unfreeze()
        gc.collect()
        self._settled = self._kept = 0

    def _settle(self) -> None:
        gc.freeze()
        self._settled = self._kept = sys.getallocatedblocks()


COLLECTOR = Collector()
"""A process has one."""
