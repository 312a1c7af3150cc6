"""The command line: what ``nnx-lint`` understands, and how a run ends.

Results go to standard output; what kept the run from being complete goes to standard error. The exit code is 0 for a
clean run, 1 where something was found, and 2 where the run itself failed (wrong usage or configuration, a file that
cannot be read, parsed or written), whatever was found besides.

A command is a function that takes its words and returns an exit code. Each is in a module of its own that is imported
when it is needed: ``nnx-lint --version`` loads almost nothing.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from typing import TYPE_CHECKING

from nnx_lint.stack import with_room

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CLEAN, FINDINGS, FAILURE = 0, 1, 2
INTERRUPTED, BROKEN_PIPE = 130, 141  # 128 + the signal's number, as a shell reports it

COMMANDS: dict[str, tuple[str, str]] = {
    "check": ("nnx_lint.cli.check", "check files and folders (default: the current folder)"),
    "rule": ("nnx_lint.cli.rules", "print the page of a rule: what it finds, why, the mend"),
    "rules": ("nnx_lint.cli.rules", "list all rules"),
    "config": ("nnx_lint.cli.options", "list all options, or explain one; --schema prints a JSON schema"),
    "graph": ("nnx_lint.cli.graph", "draw the structure of a Module; graph --help says more"),
    "clean": ("nnx_lint.cli.clean", "remove the cache"),
    "generate-shell-completion": ("nnx_lint.cli.completion", "print a completion script: bash, zsh or fish"),
}
"""The module of each command, whose function of that name (with underscores) runs it, and what the command does."""


class UsageError(Exception):
    """The command line, or the configuration, asks for something that does not exist."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; without ``arguments``, that of the process, which ends then."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever started the process
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a character must not end the run
            stream.reconfigure(errors="backslashreplace")
    collecting = gc.isenabled()
    gc.disable()  # Syntax trees are millions of objects that all live on: looking for garbage costs more than parsing.
    try:
        code = with_room(_dispatch, words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()  # the reader left (`| head`)
        return BROKEN_PIPE
    except OSError as error:
        if error.filename is not None:
            raise  # it is about a file, and whoever opened it should have said so
        _drop_output()
        complain(f"error: standard output cannot be written: {error.strerror}")
        return FAILURE
    finally:
        if arguments is None:
            gc.freeze()  # Python looks for garbage once more when it exits, and all goes with the process anyway.
        elif collecting:
            gc.unfreeze()
            gc.enable()
    return code


def _drop_output() -> None:
    """Write to nowhere from now on: Python flushes once more when it exits, which must not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(words: list[str]) -> int:
    name, rest = (words[0], words[1:]) if words and words[0] in COMMANDS else ("check", words)
    own_help = name == "graph"
    if not own_help and ("--version" in words or words == ["-V"]):
        from nnx_rules import __version__

        print(f"nnx-lint {__version__}")
        return CLEAN
    if words in (["help"], ["-h"]) or (not own_help and ("-h" in words or "--help" in words)):
        from nnx_lint.cli.help import text

        sys.stdout.write(text())
        return CLEAN
    import importlib

    command: Callable[[list[str]], int] = getattr(importlib.import_module(COMMANDS[name][0]), name.replace("-", "_"))
    try:
        return command(rest)
    except UsageError as error:
        complain(f"error: {error}")
        return FAILURE


def complain(message: str) -> None:
    """Say something on standard error."""
    sys.stdout.flush()  # keeps the order where both streams end in one place
    print(message, file=sys.stderr)
