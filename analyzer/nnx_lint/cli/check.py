"""``nnx-lint check``: what a command line asks for, once or again and again."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from nnx_lint.cli import CLEAN, UsageError, complain
from nnx_lint.cli.arguments import parse
from nnx_lint.cli.run import Run
from nnx_lint.config.reading import OWN, SHARED
from nnx_lint.config.registry import LINE, OPTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

STDIN = "-"
UNNAMED = "<stdin>"

ACTIONS = ("diff", "fix", "add-ignore", "update-baseline", "show-files", "show-settings")
"""Of these, a command line asks for one at most; but --diff shows what --fix would do, so these two may be together."""


def check(words: list[str]) -> int:
    """Check files."""
    flags, paths = parse(words, [option for option in OPTIONS if LINE in option.places])
    asked = [name for name in ACTIONS if flags.get(name)]
    if len(asked) > 1 and asked != ["diff", "fix"]:
        raise UsageError(f"--{asked[0]} and --{asked[1]} cannot be combined")
    from_stdin = STDIN in paths or "stdin-filename" in flags
    if from_stdin and set(paths) - {STDIN}:
        raise UsageError("standard input (-) cannot be checked together with files")
    if flags.get("watch"):
        if from_stdin or asked:
            raise UsageError("--watch cannot be combined with " + ("standard input" if from_stdin else f"--{asked[0]}"))
        return _watch(flags, paths or [os.curdir])
    if from_stdin:
        return Run(flags, [str(flags.get("stdin-filename", UNNAMED))], sys.stdin.buffer.read()).finish()
    return Run(flags, paths or [os.curdir]).finish(hint=words[:1])


def _watch(flags: dict[str, object], paths: list[str]) -> int:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="nnx-lint-") as folder:
        return _watch_with(folder, flags, paths)


def _watch_with(folder: str, flags: dict[str, object], paths: list[str]) -> int:
    """Watch; without a cache, what is known of files that did not change lies in a folder that goes when this ends."""
    from nnx_lint.watch import watch

    seen: list[str] = []
    here = [os.path.abspath(name) for name in (OWN, SHARED)]  # a configuration may come, or be mended

    def look() -> Sequence[str]:
        try:
            run = Run(flags, paths)
        except UsageError:
            return [*seen, *here]
        baseline = run.settings.location("baseline")
        deciding = [*run.configuration.files(), *run.configuration.about_targets()]
        seen[:] = [*run.files, *deciding, *([baseline] if baseline else [])]
        return [*seen, *here]

    def again(changed: frozenset[str] | None) -> None:
        try:
            run = Run(flags, paths)
            cached = run.settings.switch("cache")
            (run if cached else Run({**flags, "cache": True, "cache-dir": folder}, paths)).finish()
        except UsageError as error:
            complain(f"error: {error}")

    watch(look, again, sys.stdout)
    return CLEAN
