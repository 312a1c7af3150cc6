"""The command line: what ``nnx-lint`` understands, and how a run ends.

Results go to standard output; what kept the run from being complete goes to standard error. The exit code is 0 for a
clean run, 1 where something was found, and 2 where the run itself failed (wrong usage, a file that cannot be read,
parsed or written), whatever was found besides.

Every module is imported by the command that needs it: ``nnx-lint --version`` loads almost nothing.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from typing import TYPE_CHECKING, NoReturn, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nnx_lint.checking import Checker, Sources
    from nnx_lint.diagnostics import Applicability, Diagnostic
    from nnx_lint.fixes import Outcome

CLEAN, FINDINGS, FAILURE = 0, 1, 2
INTERRUPTED, BROKEN_PIPE = 130, 141  # 128 + the signal's number, as a shell reports it

STDIN = "-"

HELP = """\
nnx-lint finds the mistakes of NNX code (flax.nnx and nnxkit) from its source, without running it.

usage: nnx-lint [check] [OPTIONS] [PATH ...]    check files and folders (default: the current folder)
       nnx-lint rule CODE|NAME                  print the page of a rule: what it finds, why, the mend
       nnx-lint rules                           list all rules
       nnx-lint --version | --help

A folder is searched for *.py files, without hidden folders, build, dist, node_modules, site-packages, venv and
__pycache__ unless these are named themselves. PATH - reads standard input.

which rules (selectors: a code NNX101, a prefix NNX1, a name, or ALL; separated by commas, repeatable)
  --select SELECTORS         report only these rules (default: those that `nnx-lint rules` marks as default)
  --ignore SELECTORS         leave these rules out; the more specific of --select and --ignore wins

fixes
  --fix                      apply safe fixes, and report what is left
  --unsafe-fixes             let --fix and --diff apply fixes that may change what the program does
  --diff                     print what --fix would change as a unified diff, and change nothing

output
  --output-format FORMAT     full (default), concise or json
  --exit-zero                exit with 0 even if there are findings
  -q, --quiet                print findings only: no summary

other
  --stdin-filename PATH      the name to report for standard input
  --isolated                 ignore configuration files; so far none is read, so this changes nothing
  --no-cache                 ignore the cache; so far there is none, so this changes nothing
  -h, --help                 print this
  --version                  print the version

comments in the checked code: # nnx: ignore[NAME, NNX101]   # nnx: ignore-file[NAME]   # noqa: NNX101
exit codes: 0 nothing found   1 findings (with --diff: changes)   2 wrong usage, or a file that cannot be read or parsed
colours: on a terminal, unless NO_COLOR is set; FORCE_COLOR asks for them elsewhere
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; ``arguments`` defaults to those of the process."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a character must not end the run
            stream.reconfigure(errors="backslashreplace")
    collecting = gc.isenabled()
    gc.disable()  # Syntax trees are millions of objects that all live on: looking for garbage costs more than parsing.
    try:
        code = _dispatch(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader left (`| head`). Python flushes once more when it exits, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    finally:
        if collecting:
            gc.enable()
    return code


def _dispatch(words: list[str]) -> int:
    if "--version" in words:
        from nnx_rules import __version__

        print(f"nnx-lint {__version__}")
        return CLEAN
    if "-h" in words or "--help" in words:
        sys.stdout.write(HELP)
        return CLEAN
    command = COMMANDS.get(words[0]) if words else None
    try:
        return command(words[1:]) if command else _check(words)
    except UsageError as error:
        _complain(f"error: {error}")
        return FAILURE


class UsageError(Exception):
    """The command line asks for something that does not exist."""


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports, suggests, and never exits."""

    def __init__(self) -> None:
        super().__init__(add_help=False, allow_abbrev=False)

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        options, rest = self.parse_known_intermixed_args(words)
        for word in rest:
            from nnx_lint.selection import nearest

            name = word.partition("=")[0]
            known = [option for action in self._actions for option in action.option_strings]
            hint = nearest(name, known)
            raise UsageError(
                f"unknown option {name}" + (f"; did you mean {hint}?" if hint else "; see nnx-lint --help")
            )
        return options

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def _check_parser() -> _Parser:
    from nnx_lint.output import FORMATS

    parser = _Parser()
    parser.add_argument("paths", nargs="*")
    for selection in ("--select", "--ignore"):
        parser.add_argument(selection, action="extend", type=_selectors, default=[])
    for switch in ("--fix", "--unsafe-fixes", "--diff", "--exit-zero", "--isolated", "--no-cache"):
        parser.add_argument(switch, action="store_true")
    parser.add_argument("-q", "--quiet", action="store_true")
    parser.add_argument("--output-format", choices=list(FORMATS), default="full")
    parser.add_argument("--stdin-filename", default="<stdin>")
    return parser


def _selectors(value: str) -> list[str]:
    return [selector.strip() for selector in value.split(",") if selector.strip()]


def _check(words: list[str]) -> int:
    from nnx_lint.checking import Checker
    from nnx_lint.files import discover, import_roots
    from nnx_lint.selection import Options, SelectionError, selected_rules
    from nnx_lint.source import SourceFile
    from nnx_rules.rules import REGISTRY

    arguments = _check_parser().parse(words)
    try:
        codes = selected_rules(arguments.select, arguments.ignore, REGISTRY)
    except SelectionError as error:
        raise UsageError(str(error)) from None
    paths: list[str] = arguments.paths or [os.curdir]
    options = Options(selected=lambda rule: rule.code in codes)

    data: bytes | None = None
    if STDIN in paths:
        if paths != [STDIN]:
            raise UsageError("standard input (-) cannot be checked together with files")
        checker = Checker(options, import_roots([arguments.stdin_filename], []))
        text = data = sys.stdin.buffer.read()
        sources = checker.read([arguments.stdin_filename], lambda path: SourceFile.from_bytes(text, path))
    else:
        found = discover(paths)
        checker = Checker(options, import_roots(found.files, paths))
        checker.problems += (_with_command_hint(problem, words) for problem in found.problems)
        sources = checker.read(found.files)
        if not found.files and not checker.problems:
            _complain("warning: no Python files found under the given paths")
    return _Run(arguments, checker, sources, data).finish()


def _with_command_hint(problem: str, words: list[str]) -> str:
    """Someone who meant a command gets told so: ``nnx-lint rulse`` names no file."""
    from nnx_lint.selection import nearest

    path, _, reason = problem.partition(": ")
    hint = nearest(path, COMMANDS) if path == words[0] and "no such file" in reason else None
    return problem + (f"; did you mean `nnx-lint {hint}`?" if hint else "")


class _Run:
    """The second half of a check: find, fix, print. ``data`` is what was read from standard input, if it was."""

    def __init__(self, arguments: argparse.Namespace, checker: Checker, sources: Sources, data: bytes | None) -> None:
        from nnx_lint.fixes import SAFE, SAFE_AND_UNSAFE

        self.arguments = arguments
        self.checker = checker
        self.sources = sources
        self.data = data
        self.applicable: frozenset[Applicability] = SAFE_AND_UNSAFE if arguments.unsafe_fixes else SAFE

    def finish(self) -> int:
        code = self._diff() if self.arguments.diff else self._fix() if self.arguments.fix else self._report()
        for problem in self.checker.problems:
            _complain(problem)
        if self.checker.problems:
            return FAILURE
        return CLEAN if self.arguments.exit_zero else code

    def _report(self) -> int:
        diagnostics = self.checker.check(self.sources)
        self._print(diagnostics, self.sources, sys.stdout)
        self._summarise(self._found(diagnostics), sys.stdout)
        return FINDINGS if diagnostics else CLEAN

    def _fix(self) -> int:
        outcome = self._fixed()
        to = sys.stdout
        if self.data is None:
            self._write(outcome)
        else:
            # The text is the result, so the findings make way. An editor takes what comes back for its buffer: what
            # could not be parsed comes back as it was.
            to = sys.stderr
            texts = [source.to_bytes() for source in outcome.sources.values()] or [self.data]
            sys.stdout.buffer.write(texts[0])
        self._print(outcome.remaining, outcome.sources, to)
        fixed, left = sum(map(len, outcome.fixed.values())), len(outcome.remaining)
        if fixed:
            self._summarise(f"Found {_count(fixed + left)} ({fixed} fixed, {left} remaining).", to)
        else:
            self._summarise(self._found(outcome.remaining), to)
        return FINDINGS if outcome.remaining else CLEAN

    def _diff(self) -> int:
        from nnx_lint.fixes import unified_diff

        outcome = self._fixed()
        for path, source in self.sources.items():
            sys.stdout.write(unified_diff(source, outcome.sources[path]))
        fixed = sum(map(len, outcome.fixed.values()))
        self._summarise(f"Would fix {_count(fixed)}." if fixed else "Nothing to fix.", sys.stderr)
        return FINDINGS if fixed else CLEAN

    def _fixed(self) -> Outcome:
        from nnx_lint.fixes import fix_all

        outcome = fix_all(self.sources, self.checker.check, self.applicable)
        self.checker.problems += outcome.problems
        return outcome

    def _write(self, outcome: Outcome) -> None:
        from nnx_lint.files import rewrite
        from nnx_lint.source import SourceError

        for path in list(outcome.fixed):
            try:
                rewrite(path, outcome.sources[path].to_bytes())
            except SourceError as error:
                self.checker.problems.append(str(error))
            except OSError as error:
                self.checker.problems.append(f"{path}: cannot be written: {error.strerror or error}")

    def _print(self, diagnostics: Sequence[Diagnostic], sources: Sources, to: TextIO) -> None:
        from nnx_lint.output import Report, render

        report = Report(diagnostics, sources, _wants_colour(to))
        for piece in render(report, self.arguments.output_format):
            to.write(piece)

    def _summarise(self, summary: str, to: TextIO) -> None:
        machine_readable = self.arguments.output_format == "json" and to is sys.stdout
        if summary and not self.arguments.quiet and not machine_readable:
            to.write(summary + "\n")

    def _found(self, diagnostics: Sequence[Diagnostic]) -> str:
        from nnx_lint.fixes import SAFE_AND_UNSAFE, is_fixable

        if not diagnostics:
            return "" if self.checker.problems or not self.sources else "All checks passed!"
        now = sum(is_fixable(diagnostic, self.applicable) for diagnostic in diagnostics)
        more = sum(is_fixable(diagnostic, SAFE_AND_UNSAFE) for diagnostic in diagnostics) - now
        facts: list[str] = []
        if now:
            facts.append(f"{now} fixable with --fix")
        if more:
            facts.append(f"{more} more with --unsafe-fixes" if now else f"{more} fixable with --fix --unsafe-fixes")
        return f"Found {_count(len(diagnostics))}" + (f" ({', '.join(facts)})." if facts else ".")


def _count(errors: int) -> str:
    return "1 error" if errors == 1 else f"{errors} errors"


def _wants_colour(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _complain(message: str) -> None:
    sys.stdout.flush()  # keeps the order where both streams end in one place
    print(message, file=sys.stderr)


def _rule(words: list[str]) -> int:
    from nnx_lint.pages import page
    from nnx_lint.selection import nearest
    from nnx_rules.rules import REGISTRY

    if len(words) != 1:
        raise UsageError("`nnx-lint rule` takes one code or name, such as `nnx-lint rule NNX101`")
    rule = REGISTRY.get(words[0]) or REGISTRY.get(words[0].upper())
    if rule is None:
        hint = nearest(words[0], [key for rule in REGISTRY for key in (rule.code, rule.name, *rule.aliases)])
        raise UsageError(
            f"there is no rule {words[0]!r}" + (f"; did you mean {hint!r}?" if hint else "; see `nnx-lint rules`")
        )
    sys.stdout.write(page(rule))
    return CLEAN


def _rules(words: list[str]) -> int:
    from nnx_lint.pages import rule_list
    from nnx_rules.rules import REGISTRY

    if words:
        raise UsageError("`nnx-lint rules` takes no arguments")
    sys.stdout.write(rule_list(REGISTRY))
    return CLEAN


COMMANDS: dict[str, Callable[[list[str]], int]] = {"check": _check, "rule": _rule, "rules": _rules}
