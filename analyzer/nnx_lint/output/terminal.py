"""What can be known about the other end of a stream: a terminal or not, with colours or not.

``NO_COLOR`` and ``FORCE_COLOR`` count if they are set and not empty, whatever their value (no-color.org,
force-color.org); ``NO_COLOR`` wins. Neither makes a terminal of a pipe: what moves the cursor asks for a real one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO


def wants_colour(stream: TextIO) -> bool:
    """Whether text that is written there may have colours."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or is_terminal(stream)


def is_terminal(stream: TextIO) -> bool:
    """Whether a person looks at it, through something that understands control sequences."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"
