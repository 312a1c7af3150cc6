"""Inlay hints: what an attribute is to JAX, which filter a name belongs to, what a function captures, shapes.

Invariants: a hint is shown where only one answer is known for its place, and never repeats what is written there.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from nnx_lint.diagnostics import Span
from nnx_lint.ide.notes import REST
from nnx_rules.attributes import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nnx_lint.ide.notes import Notes


V = TypeVar("V")


class Kind(enum.Enum):
    """What a hint is about; the value is the option that switches it off."""

    STATUS = "hint-status"
    FILTER = "hint-filters"
    CAPTURES = "hint-captures"
    SHAPES = "hint-shapes"


class Hint(NamedTuple):
    """A short text beside a place, and a longer one for those who ask."""

    offset: int
    kind: Kind
    text: str
    tooltip: str = ""


def hints(notes: Notes, span: Span, wanted: Callable[[Kind], bool]) -> list[Hint]:
    """The hints within a span, in order."""
    found = (hint for kind, make in _MAKERS.items() if wanted(kind) for hint in make(notes))
    return sorted((each for each in found if span.start <= each.offset <= span.end), key=lambda each: each.offset)


def _statuses(notes: Notes) -> Iterator[Hint]:
    written = {note.name_span: note.tagged for note in notes.assigned}
    for span, statuses in notes.statuses().items():
        if len(statuses) == 1 and Status.UNKNOWN not in statuses and not written[span]:
            (status,) = statuses
            yield Hint(span.end, Kind.STATUS, status.value, STATUS_MEANING[status])


STATUS_MEANING = {
    Status.DATA: "part of the JAX tree: transforms trace it, optimizers and checkpoints see it",
    Status.STATIC: "part of the structure: a constant to transforms, never an array",
    Status.UNKNOWN: "not known",
}


def _filters(notes: Notes) -> Iterator[Hint]:
    for span, texts in _by_span((note.span, note.filter) for note in notes.targets).items():
        if len(texts) == 1:
            (text,) = texts
            yield Hint(span.end, Kind.FILTER, text, f"what the filter {text} takes" if text != REST else "")


def _captures(notes: Notes) -> Iterator[Hint]:
    for span, captured in _by_span((note.span, (note.name, note.cls)) for note in notes.captured).items():
        names = dict(list(captured))
        each = "; ".join(f"{name} is a {cls}" for name, cls in names.items())
        yield Hint(span.end, Kind.CAPTURES, f"captures {', '.join(names)}", each)


def _shapes(notes: Notes) -> Iterator[Hint]:
    for span, texts in _by_span((note.span, () if note.written else note.shapes) for note in notes.assigned).items():
        if len(texts) == 1 and (shapes := next(iter(texts))):
            yield Hint(span.end, Kind.SHAPES, ", ".join(shapes[:MAX_SHAPES]), "\n".join(shapes))


def _by_span(notes: Iterable[tuple[Span, V]]) -> dict[Span, dict[V, None]]:
    """What is noted at each place, in order and once."""
    found: dict[Span, dict[V, None]] = {}
    for span, noted in notes:
        found.setdefault(span, {})[noted] = None
    return found


MAX_SHAPES = 4

_MAKERS: dict[Kind, Callable[[Notes], Iterator[Hint]]] = {
    Kind.STATUS: _statuses,
    Kind.FILTER: _filters,
    Kind.CAPTURES: _captures,
    Kind.SHAPES: _shapes,
}
