"""What a rule reports: a finding, the places that explain it, and the edits that mend it.

These are plain immutable records. Rules make them, output formats print them, fixes apply them, and none of the three
knows the others. Every position is a :class:`Span` of character offsets into ``SourceFile.text``: rows and columns, and
the UTF-8 or UTF-16 units that ``ast`` and editors count in, are made from it at the edges.

Invariants: ``start <= end``; the edits of one fix belong to the file of its diagnostic, do not overlap, and only make
sense together, so a fix is applied whole or not at all.
"""

from __future__ import annotations

import enum
import itertools
from typing import TYPE_CHECKING

from nnx_rules.records import Record

if TYPE_CHECKING:
    from nnx_rules.registry import Rule, Severity


class Span(Record):
    """A half-open range of character offsets; an empty one is a position between two characters."""

    start: int
    end: int

    def __lt__(self, other: Span) -> bool:
        return (self.start, self.end) < (other.start, other.end)


class Applicability(enum.Enum):
    """Who may apply a fix."""

    SAFE = "safe"
    """The program means what it was meant to mean: ``--fix`` applies it."""

    UNSAFE = "unsafe"
    """Right in most programs, but it changes behaviour or drops a comment: only ``--unsafe-fixes`` applies it."""

    DISPLAY = "display"
    """Has a hole for a person to fill: it is shown, never applied."""


class Edit(Record):
    """Replace the text of ``span`` by ``text``; an insertion has an empty span, a deletion an empty text."""

    span: Span
    text: str

    def __lt__(self, other: Edit) -> bool:
        return (self.span, self.text) < (other.span, other.text)


class Fix(Record):
    """A mend: what it does, in the imperative, and its edits.

    Raises:
        ValueError: two edits overlap.
    """

    title: str
    edits: tuple[Edit, ...]
    applicability: Applicability = Applicability.SAFE

    def __post_init__(self) -> None:
        spans = sorted(edit.span for edit in self.edits)
        for one, other in itertools.pairwise(spans):
            if other.start < one.end:
                raise ValueError(f"edits of the fix {self.title!r} overlap at offset {other.start}")


class Related(Record):
    """Another place, in this file or a different one, that explains a finding."""

    path: str
    span: Span
    message: str


class Diagnostic(Record):
    """One finding of ``rule``, at ``span`` of the file ``path``; message and help are filled templates of the rule.

    ``level`` is what the configuration of the file makes of the rule's own severity, if it says anything about it.
    """

    rule: Rule
    path: str
    span: Span
    message: str
    help: str = ""
    fix: Fix | None = None
    related: tuple[Related, ...] = ()
    level: Severity | None = None

    @property
    def severity(self) -> Severity:
        """How much the finding matters."""
        return self.level or self.rule.severity
