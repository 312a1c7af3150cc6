"""The analyzer in a process of its own, beside mypy's.

It looks at the project while mypy reads the libraries, and stays there for the next question, which a daemon has. It
ends with the object here, or when its standard input does. Questions and answers are lines of JSON: the arguments of
`find`, and findings or a message. `serving` is what it runs.

Invariant: the process is of the same environment as mypy's, and loads the same packages, for both read what the other
has kept. Nothing is loaded from the current folder, where a module may be called like one of the standard library.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import weakref
from collections.abc import Mapping

import nnx_lint
import nnx_mypy
import nnx_rules
from nnx_mypy.findings import Finding, FindingsError, Found

COMMAND = ("-P", "-c", "import sys; sys.path += sys.argv[1:]; from nnx_mypy.serving import serve; serve()")


class Worker:
    """Starts the process with the first question, and again with one that finds it ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, project: str, options: Mapping[str, object], declared: Mapping[str, str]) -> None:
        """Have the findings looked for; `answer` must be called before the next question."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, *COMMAND, *_roots()], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            weakref.finalize(self, _end, self._process)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([project, options, declared]).encode() + b"\n")
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


def _roots() -> list[str]:
    """The folders that the packages lie in which the process needs."""
    files = [package.__file__ or "" for package in (nnx_mypy, nnx_lint, nnx_rules)]
    return list(dict.fromkeys(os.path.dirname(os.path.dirname(os.path.abspath(file))) for file in files))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process, whatever it is doing: its files are written atomically."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()
