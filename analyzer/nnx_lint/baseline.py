"""A baseline: the findings that a project has accepted, so that only new ones are reported.

It is a JSON file with one entry for each rule, file, enclosing symbol and line of code, and how often that occurs. It
has no line numbers: inserting lines, moving code inside its symbol and reformatting keep an entry valid (see
:mod:`nnx_lint.anchors`). An entry that stands for nothing any more is stale; it is reported, since it would hide the
next mistake that looks like it.

Invariants: a finding uses up one occurrence of one entry; only entries of files that were checked, and of rules that
were on, can be stale, or be dropped by an update, and those of files that are gone; paths are relative to the folder of
the baseline, with ``/``, so that the file means the same on every machine; the file does not depend on the order in
which findings come.
"""

from __future__ import annotations

import json
import os.path
from typing import TYPE_CHECKING, NamedTuple, cast

from nnx_lint.anchors import Anchors, digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.source import SourceFile

FORMAT = 1


class BaselineError(Exception):
    """A baseline cannot be read."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class Entry(NamedTuple):
    """What a baseline accepts: ``rule`` is a code, ``symbol`` is empty at module level."""

    rule: str
    path: str
    symbol: str
    line: str
    statement: str

    def __str__(self) -> str:
        place = f" in {self.symbol}" if self.symbol else ""
        return f"{self.path}: {self.rule}{place}: `{self.line}`"


class Comparison(NamedTuple):
    """Findings that the baseline does not have, in their order; those that it has; entries that nothing stands for."""

    new: list[Diagnostic]
    known: list[Diagnostic]
    stale: list[Entry]


class Baseline:
    """The accepted findings, and the file that they are kept in.

    Attributes:
        path: the file; it need not exist.
        counts: how often each entry occurs.
    """

    def __init__(self, path: str, counts: Mapping[Entry, int] | None = None) -> None:
        self.path = path
        self.counts = dict(counts or {})

    @classmethod
    def read(cls, path: str) -> Baseline:
        """Read a baseline.

        Raises:
            BaselineError: the file does not exist, or is no baseline.
        """
        try:
            with open(path, encoding="utf-8") as file:
                content: object = json.load(file)
        except FileNotFoundError:
            raise BaselineError(path, "there is no such baseline; write it with --update-baseline") from None
        except OSError as error:
            raise BaselineError(path, f"cannot be read: {error.strerror or error}") from None
        except (ValueError, RecursionError) as error:
            mend = "remove it, and write it anew with --update-baseline"
            raise BaselineError(path, f"is no baseline: {error}; {mend}") from None
        counts: dict[Entry, int] = {}
        for entry, count in _entries(path, content):  # after a merge of two branches one may stand there twice
            counts[entry] = counts.get(entry, 0) + count
        return cls(path, counts)

    def write(self) -> None:
        """Write the file.

        Raises:
            OSError: it cannot be written; it is as it was.
        """
        from nnx_lint.files import rewrite

        findings: list[dict[str, object]] = []
        for entry, count in sorted(self.counts.items(), key=lambda item: (item[0].path, item[0])):
            finding: dict[str, object] = dict(zip(_KEYS, entry, strict=True))
            if entry.statement == digest(entry.line):
                del finding["statement"]
            findings.append(finding | ({"count": count} if count > 1 else {}))
        content = {"format": FORMAT, "findings": findings}
        rewrite(self.path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())

    def compare(
        self,
        findings: Iterable[Diagnostic],
        sources: Mapping[str, SourceFile],
        selected: Callable[[str, str], bool] | None = None,
    ) -> Comparison:
        """Tell new findings from known ones.

        Args:
            findings: what was found.
            sources: all files that were checked, by path.
            selected: whether the rule with a code was on in the file with a path; by default all rules were on.
        """
        result = Comparison([], [], [])
        left = dict(self.counts)
        placed = list(self._placed(findings, sources))
        for agree in _AGREEMENTS:
            by_key: dict[object, list[Entry]] = {}
            for entry in left:
                by_key.setdefault(agree(entry), []).append(entry)
            unknown: list[tuple[Diagnostic, Entry]] = []
            for finding, entry in placed:
                match = next((known for known in by_key.get(agree(entry), ()) if left[known]), None)
                if match is None:
                    unknown.append((finding, entry))
                else:
                    left[match] -= 1
                    result.known.append(finding)
            placed = unknown
        result.new.extend(finding for finding, _ in placed)
        judged = self._judged(sources, selected)
        result.stale.extend(sorted(entry for entry, count in left.items() if count and judged(entry)))
        return result

    def updated(
        self,
        findings: Iterable[Diagnostic],
        sources: Mapping[str, SourceFile],
        selected: Callable[[str, str], bool] | None = None,
    ) -> Baseline:
        """The baseline that accepts these findings; what this run could not judge stays."""
        judged = self._judged(sources, selected)
        counts = {entry: count for entry, count in self.counts.items() if not judged(entry)}
        for _, entry in self._placed(findings, sources):
            counts[entry] = counts.get(entry, 0) + 1
        return Baseline(self.path, counts)

    def _placed(
        self, findings: Iterable[Diagnostic], sources: Mapping[str, SourceFile]
    ) -> Iterator[tuple[Diagnostic, Entry]]:
        anchors: dict[str, Anchors] = {}
        for finding in findings:
            path = finding.path
            if path not in anchors:
                anchors[path] = Anchors(sources[path])
            yield finding, Entry(finding.rule.code, self._name(path), *anchors[path].at(finding.span.start))

    def _name(self, path: str) -> str:
        """A path as the baseline has it."""
        folder = os.path.dirname(os.path.abspath(self.path))
        try:
            return os.path.relpath(path, folder).replace(os.sep, "/")
        except ValueError:  # another drive
            return os.path.abspath(path).replace(os.sep, "/")

    def _judged(
        self, sources: Mapping[str, SourceFile], selected: Callable[[str, str], bool] | None
    ) -> Callable[[Entry], bool]:
        """Whether this run says anything about an entry."""
        folder = os.path.dirname(os.path.abspath(self.path))
        checked = {self._name(path): path for path in sources}

        def judged(entry: Entry) -> bool:
            path = checked.get(entry.path)
            if path is None:
                return not os.path.exists(os.path.join(folder, entry.path))
            return selected is None or selected(entry.rule, path)

        return judged


_KEYS = Entry._fields

_AGREEMENTS: tuple[Callable[[Entry], object], ...] = (
    lambda entry: entry,
    lambda entry: entry[:4],  # the line agrees
    lambda entry: (*entry[:3], entry.statement),  # the statement does
)
"""In what an entry and a finding may agree, the surest first."""


def _entries(path: str, content: object) -> Iterator[tuple[Entry, int]]:
    found = cast("dict[str, object]", content) if isinstance(content, dict) else {}
    if "format" in found and found["format"] != FORMAT:
        raise BaselineError(path, f"is a baseline of format {found['format']}, and this version reads format {FORMAT}")
    findings = found.get("findings")
    if "format" not in found or not isinstance(findings, list):
        raise BaselineError(path, 'is no baseline: it has no "format" and "findings"')
    for number, item in enumerate(cast("Sequence[object]", findings), 1):
        finding = cast("dict[str, object]", item) if isinstance(item, dict) else {}
        words = [finding.get(key) for key in _KEYS[:4]]
        count = finding.get("count", 1)
        line = finding.get("line")
        statement = finding.get("statement", digest(line) if isinstance(line, str) else None)
        if not all(isinstance(word, str) for word in (*words, statement)) or type(count) is not int or count < 1:
            raise BaselineError(path, f"finding {number} is not written as --update-baseline writes it")
        yield Entry(*cast("list[str]", [*words, statement])), count
