"""The analyzer in a process of its own, beside mypy's.

It looks at the project while mypy reads the libraries, and stays there for the next question, which a daemon has. It
ends with the object here, or when its standard input does. Questions and answers are pickled: the arguments of `find`,
and findings or a message.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import weakref
from collections.abc import Mapping

from nnx_mypy.findings import FindingsError, Found, find


class Worker:
    """Starts the process with the first question."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, options: Mapping[str, object], declared: Mapping[str, str]) -> None:
        """Have the findings looked for; `answer` must be called before the next question."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from nnx_mypy.worker import serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            weakref.finalize(self, _end, self._process)
        assert self._process.stdin is not None
        pickle.dump((dict(options), dict(declared)), self._process.stdin)
        self._process.stdin.flush()

    def answer(self) -> Found:
        """What was found.

        Raises:
            FindingsError: a configuration is wrong, or the analyzer has failed.
        """
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            answer: Found | str = pickle.load(self._process.stdout)
        except EOFError:
            self._process = None
            raise FindingsError("the analyzer of nnx_mypy has failed; its standard error says more") from None
        if isinstance(answer, str):
            raise FindingsError(answer)
        return answer


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
    while True:
        try:
            options, declared = pickle.load(questions)
        except EOFError:
            return
        answer: Found | str
        try:
            answer = find(options, declared)
        except FindingsError as error:
            answer = str(error)
        try:
            pickle.dump(answer, answers)
            answers.flush()
        except BrokenPipeError:  # mypy has ended, and did not need it
            os._exit(0)  # in the end the interpreter would try to write again
        gc.collect()
