"""A program with a terminal of its own: what it draws, and keys that are typed into it.

As much of a terminal as an editor needs that writes each changed cell after a jump to its place.
"""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROWS, COLUMNS = 40, 160
PATIENCE = 60

DRAWN = re.compile(r"\x1b\[(\d+);(\d+)H|\x1b\[[\d;:?<=>]*[ !]?[@-~]|\x1b[^\[]|([^\x00-\x1f\x7f])")
"""A jump, what else a terminal can be told, or a character."""


class Terminal:
    """A running program and its screen."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._own, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        self._cells: dict[tuple[int, int], str] = {}
        self._place = 1, 1
        self._rest = b""

    @property
    def screen(self) -> str:
        """What is to be seen."""
        rows = range(1, ROWS + 1)
        lines = ("".join(self._cells.get((row, column), " ") for column in range(1, COLUMNS + 1)) for row in rows)
        return "\n".join(map(str.rstrip, lines))

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._own, keys.encode())

    def sees(self, text: str) -> bool:
        """Whether a text comes to stand on the screen within some time."""
        end = time.monotonic() + PATIENCE
        while text not in self.screen:
            if time.monotonic() > end or not self._read():
                return False
        return True

    def ends(self) -> int:
        """The exit code of the program, which ends now."""
        while self._read():
            pass
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        """End the program, if it has not ended."""
        self.process.kill()
        self.process.wait()
        os.close(self._own)

    def _read(self) -> bool:
        """Draw what comes; whether more may come."""
        if not select.select([self._own], [], [], 1)[0]:
            return True
        try:
            data = self._rest + os.read(self._own, 1 << 16)
        except OSError:  # how a terminal says that nobody writes to it any more
            return False
        whole = data.rfind(b"\x1b") if b"\x1b" in data[-16:] else len(data)  # it may go on in the next piece
        self._draw(data[:whole].decode(errors="replace"))
        self._rest = data[whole:]
        return bool(data)

    def _draw(self, text: str) -> None:
        for row, column, character in DRAWN.findall(text):
            if row:
                self._place = int(row), int(column)
            elif character:
                self._cells[self._place] = character
                self._place = self._place[0], self._place[1] + 1
