"""Findings of the analyzer as plain data, and what is known of them without asking it.

Looking at a project takes seconds, and reading what the last run has left milliseconds. `recall` does the second: it
says which findings still stand, and of which files that is open because they, or files that they use, have changed.

Files are those that ``nnx-lint check`` would take; paths are absolute.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.cli import UsageError
from nnx_lint.cli.run import Run
from nnx_lint.config.reading import shown
from nnx_rules.registry import Severity

if TYPE_CHECKING:
    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.source import SourceFile


class FindingsError(Exception):
    """The configuration is wrong; the message says where, and how to mend it."""


class Finding(NamedTuple):
    """One finding: rows count from one, columns from zero, in characters."""

    code: str
    severity: str
    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    help: str


Found = dict[str, tuple[Finding, ...]]
"""The findings in files that have any."""


class Recalled(NamedTuple):
    """What is known before the analyzer was asked.

    Attributes:
        files: the files of the project.
        found: the findings that stand.
        open: the files whose findings may be others now; ``None``: all of them.
    """

    files: frozenset[str]
    found: Found
    open: frozenset[str] | None


def find(project: str, options: Mapping[str, object], declared: Mapping[str, str]) -> Found:
    """The findings in a project, with these options on top of its configuration.

    Args:
        project: its folder.
        options: options of ``nnx-lint``.
        declared: stubs of modules of other packages, by their names.

    Raises:
        FindingsError: a configuration is wrong.
    """
    from nnx_lint.baseline import Baseline, BaselineError
    from nnx_lint.checking import Checker

    try:
        run = _run(project, options, declared)
        checker = Checker(run.options, run.roots, cache=_cache(run))
        sources = checker.read(run.files)
        found = checker.check(sources)
        known = run.settings.location("baseline")
        if known is not None:
            found = Baseline.read(shown(known)).compare(found, sources).new
    except (UsageError, BaselineError) as error:
        raise FindingsError(str(error)) from None
    return _plain(found, sources)


def recall(project: str, options: Mapping[str, object], declared: Mapping[str, str]) -> Recalled:
    """What is known of that from the last run with the same arguments.

    Raises:
        FindingsError: a configuration is wrong.
    """
    try:
        run = _run(project, options, declared)
    except UsageError as error:
        raise FindingsError(str(error)) from None
    files = frozenset(map(os.path.abspath, run.files))
    folder = _cache(run)
    if folder is None or run.settings.location("baseline") is not None:
        return Recalled(files, {}, None)
    return Recalled(files, *_remembered(run, folder))


def _run(project: str, options: Mapping[str, object], declared: Mapping[str, str]) -> Run:
    run = Run(dict(options), [project])
    run.options.declared = declared
    return run


def _remembered(run: Run, folder: str) -> tuple[Found, frozenset[str] | None]:
    from nnx_lint.cache import Cache, changes
    from nnx_lint.relevance import facts_of
    from nnx_lint.source import SourceError
    from nnx_lint.sources import Sources
    from nnx_lint.units import together

    sources = Sources(run.files)
    memory = Cache(folder, sources, run.roots, run.options).read()
    difference = changes(memory) if memory is not None else None
    if memory is None or difference is None or memory.units.keys() != sources.keys():
        return {}, None
    changed = difference[0]
    try:
        # Other facts of a file, such as the bases of its classes, may matter to files that never looked at it.
        if any(_dumped(facts_of(sources[path].text)) != _dumped(memory.files[path].facts) for path in changed):
            return {}, None
    except (SourceError, KeyError):
        return {}, None
    bits = memory.bits(changed)
    is_open = {path for path in sources if path in changed or memory.used[path] & bits}
    by_file = {**together(memory.units.values(), list(sources)), **memory.kept}
    standing = [finding for path in sources if path not in is_open for finding in by_file[path]]
    return _plain(standing, sources), frozenset(map(os.path.abspath, is_open))


def _dumped(facts: object) -> str:
    """Facts as text: read from the cache they have lists for tuples."""
    import json

    return json.dumps(facts)


def _cache(run: Run) -> str | None:
    return run.settings.location("cache-dir") if run.settings.switch("cache") else None


def _plain(found: Iterable[Diagnostic], sources: Mapping[str, SourceFile]) -> Found:
    by_path: dict[str, list[Finding]] = {}
    for each in found:
        source = sources[each.path]
        line, column = source.location(each.span.start)
        end_line, end_column = source.location(each.span.end)
        severity = "note" if each.severity is Severity.INFO else "error"
        finding = Finding(each.rule.code, severity, line, column - 1, end_line, end_column - 1, each.message, each.help)
        by_path.setdefault(os.path.abspath(each.path), []).append(finding)
    return {path: tuple(findings) for path, findings in by_path.items()}
