"""What the process of the analyzer does: answer questions that mypy's writes to its standard input (`worker`).

Invariants

- When there are no more questions, the process is gone at once. Who waits for the end of what mypy writes, as every
  program does that runs mypy and reads its output, waits for this process, too: it has the same standard error.
- Garbage is looked for when no question has come for a while, which is in a daemon.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import TYPE_CHECKING

from nnx_mypy.findings import FindingsError, Found, find

if TYPE_CHECKING:
    from threading import Timer

IDLE = 1.0
"""Seconds without a question after which there is time to look for garbage."""


def serve() -> None:
    """Answer questions until there are no more."""
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what somebody prints is no answer
    gc.disable()
    collecting: Timer | None = None
    for line in questions:
        if collecting is not None:
            collecting.cancel()
        project, options, declared = json.loads(line)
        answer: Found | str
        try:
            answer = find(project, options, declared)
        except FindingsError as error:
            answer = str(error)
        try:
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()
        except BrokenPipeError:  # mypy has ended, and did not need it
            break
        collecting = _collecting_when_idle()
    os._exit(0)  # the interpreter would take everything apart first


def _collecting_when_idle() -> Timer:
    from threading import Timer  # mypy has its answer, so there is time for that

    timer = Timer(IDLE, gc.collect)
    timer.daemon = True
    timer.start()
    return timer
