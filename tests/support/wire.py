"""A client that sends whatever it is told to, right or wrong, and reads what comes back.

Invariants: requests of the server get an answer only from the test, or by :meth:`Wire.until`, which answers them with
nothing.
"""

from __future__ import annotations

import json
import subprocess
import threading
from queue import Queue
from typing import IO, TYPE_CHECKING, Any

from editor import COMMAND, PATIENCE, environment, message

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Message = dict[str, Any]


class Wire:
    """A running server, greeted with these capabilities, and all messages that it has sent."""

    def __init__(self, folder: Path, capabilities: Message) -> None:
        self._process = subprocess.Popen(
            COMMAND, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._input = self._process.stdin
        self._messages: Queue[Message] = Queue()
        self._log: list[bytes] = []
        # A pipe that nobody reads is full one day, and then both sides wait for each other.
        self._readers = [
            threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._log.extend, args=(self._process.stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        self.seen: list[Message] = []
        folders = [{"uri": folder.as_uri(), "name": folder.name}]
        greeting = {"processId": None, "rootUri": None, "workspaceFolders": folders, "capabilities": capabilities}
        self.ask("initialize", greeting)
        self.send(method="initialized", params={})

    def send(self, **content: Any) -> None:
        """Send a message."""
        self._input.write(message(**content))
        self._input.flush()

    def _read(self, stream: IO[bytes]) -> None:
        while line := stream.readline():
            length = 0
            while line.strip():
                name, _, value = line.partition(b":")
                length = int(value) if name == b"Content-Length" else length
                line = stream.readline()
            self._messages.put(json.loads(stream.read(length)))

    def receive(self) -> Message:
        """The next message."""
        found = self._messages.get(timeout=PATIENCE)
        self.seen.append(found)
        return found

    def until(self, wanted: Callable[[Message], bool]) -> Message:
        """The next message that is wanted."""
        while not wanted(found := self.receive()):
            if "id" in found and "method" in found:
                self.send(id=found["id"], result=None)
        return found

    def ask(self, method: str, params: object) -> Message:
        """The answer to a request."""
        self.send(id=method, method=method, params=params)
        return self.until(lambda found: found.get("id") == method and "method" not in found)

    def end(self) -> str:
        """Say good-bye in order; returns what the server wrote to its log."""
        self.ask("shutdown", None)
        self.send(method="exit")
        assert self._process.wait(PATIENCE) == 0
        for reader in self._readers:
            reader.join()
        for stream in (self._input, self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()
        return b"".join(self._log).decode()

    @property
    def shown(self) -> list[str]:
        """What the server has shown to the user."""
        return [each["params"]["message"] for each in self.seen if each.get("method") == "window/showMessage"]
