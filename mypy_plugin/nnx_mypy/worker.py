"""The analyzer in a process of its own, beside mypy's.

It looks at the project while mypy reads the libraries, and stays there for the next question, which a daemon has. It
ends with the object here, or when its standard input does. Questions and answers are lines of JSON: the arguments of
`find`, and findings or a message.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import weakref
from collections.abc import Mapping

from nnx_mypy.findings import Finding, FindingsError, Found, find


class Worker:
    """Starts the process with the first question, and again with one that finds it ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, options: Mapping[str, object], declared: Mapping[str, str]) -> None:
        """Have the findings looked for; `answer` must be called before the next question."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from nnx_mypy.worker import serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            weakref.finalize(self, _end, self._process)
        assert self._process.stdin is not None
        self._process.stdin.write(_line([options, declared]))
        self._process.stdin.flush()

    def answer(self) -> Found:
        """What was found.

        Raises:
            FindingsError: a configuration is wrong, or the analyzer has failed.
        """
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process = None
            raise FindingsError("the analyzer of nnx_mypy has failed; its standard error says more")
        answer = json.loads(line)
        if isinstance(answer, str):
            raise FindingsError(answer)
        return {path: tuple(Finding(*each) for each in findings) for path, findings in answer.items()}


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process, whatever it is doing: its files are written atomically."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()


def serve() -> None:
    """Answer questions until there are no more; the process runs this."""
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    gc.disable()  # there is time for it between the questions
    for line in questions:
        options, declared = json.loads(line)
        answer: Found | str
        try:
            answer = find(options, declared)
        except FindingsError as error:
            answer = str(error)
        try:
            answers.write(_line(answer))
            answers.flush()
        except BrokenPipeError:  # mypy has ended, and did not need it
            os._exit(0)  # in the end the interpreter would try to write again
        gc.collect()


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"
