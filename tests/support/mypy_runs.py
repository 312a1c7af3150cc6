"""Running mypy in the process of the tests, with one cache of what it knows of the libraries."""

from __future__ import annotations

import multiprocessing
import os
import shutil
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from mypy import api
from mypy.dmypy_server import Server, process_start_options

STUBS = Path(__file__).parents[1] / "mypy" / "stubs"
CONFIGURATION = "[mypy]\nplugins = nnx_mypy\nmypy_path = {stubs}\nshow_column_numbers = true\n{more}"


class Mypy:
    """Mypy in the current folder, on the stubs.

    Args:
        base: a folder for the cache that all runs begin with; the first use fills it.
        more: further lines of the configuration.
    """

    def __init__(self, base: Path, more: str = "") -> None:
        Path("mypy.ini").write_text(CONFIGURATION.format(stubs=STUBS, more=more))
        self.base = base
        if not base.exists():
            library = base.parent / "library.py"
            library.write_text("from flax import nnx\n")
            api.run([str(library), "--config-file", "mypy.ini", "--cache-dir", str(base)])

    def fresh(self, *files: str) -> list[str]:
        """What a run says that knows nothing of the files."""
        shutil.rmtree("fresh", ignore_errors=True)
        shutil.copytree(self.base, "fresh", copy_function=os.link)
        return self.run("--cache-dir", "fresh", *files)

    def warm(self, *files: str) -> list[str]:
        """What a run says that has the cache of earlier ones."""
        if not Path("warm").exists():
            shutil.copytree(self.base, "warm", copy_function=os.link)
        return self.run("--cache-dir", "warm", *files)

    def run(self, *words: str) -> list[str]:
        """The lines of a run with these arguments, ordered."""
        out, err, _ = api.run(["--config-file", "mypy.ini", "--no-error-summary", *words])
        assert not err, err
        return ordered(out)


class Daemon:
    """Mypy's daemon, in a process of its own: mypy has global state, so that only one build can be alive in each."""

    def __init__(self, mypy: Mypy, files: Sequence[str]) -> None:
        shutil.copytree(mypy.base, "daemon", copy_function=os.link)
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, list(files)))
        self._process.start()
        other.close()

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._pipe.close()
        self._process.join()

    def check(self) -> list[str]:
        """What it says now."""
        self._pipe.send(None)
        answer = self._pipe.recv()
        assert "out" in answer, answer
        assert not answer["err"], answer
        return ordered(str(answer["out"]))


def _serve(pipe: Connection, files: list[str]) -> None:
    flags = ["--config-file", "mypy.ini", "--cache-dir", "daemon", "--no-error-summary"]
    server = Server(process_start_options(flags, allow_sources=False), "status.json")
    while True:
        try:
            pipe.recv()
        except EOFError:
            return
        pipe.send(server.cmd_check(files, export_types=False, is_tty=False, terminal_width=80))


def ordered(out: str) -> list[str]:
    """Lines of output, ordered: the daemon has another order of files."""
    return sorted(line for line in out.splitlines() if line)
