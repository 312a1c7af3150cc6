"""Hover: what is known of the thing under the cursor, as Markdown.

Asked in the order of :data:`_ANSWERS`; the first that knows something answers.
"""

from __future__ import annotations

import ast
import os
import re
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint import pages
from nnx_lint.ide import trees
from nnx_lint.ide.hints import STATUS_MEANING
from nnx_lint.model.values import UNKNOWN
from nnx_lint.selection import matches
from nnx_lint.suppressions import Suppressions
from nnx_rules.attributes import Kind, Status
from nnx_rules.rules import REGISTRY
from nnx_rules.transforms import Arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nnx_lint.diagnostics import Span
    from nnx_lint.ide.notes import Applied, Assigned, Filter, Notes
    from nnx_lint.ide.views import Views
    from nnx_lint.model.views import AssignmentView, AttributeView
    from nnx_lint.source import SourceFile

MAX_LEAVES = 12
"""How many leaves are listed before the rest is counted."""


class Hover(NamedTuple):
    """What is known of the text of a span, as Markdown."""

    span: Span
    markdown: str


class Question(NamedTuple):
    """A place in a file that was checked."""

    source: SourceFile
    notes: Notes
    views: Views | None
    offset: int


def hover(question: Question) -> Hover | None:
    """What is known at an offset."""
    return next((found for answer in _ANSWERS if (found := answer(question)) is not None), None)


def _suppression(question: Question) -> Hover | None:
    """The page of the rule that a comment names."""
    source, offset = question.source, question.offset
    line, _ = source.location(offset)
    if "#" not in source.line_text(line):
        return None
    for suppression in Suppressions(source).all:
        for selector in suppression.selectors:
            if selector.span.start <= offset <= selector.span.end:
                rules = [rule for rule in REGISTRY if matches(selector.word, rule)]
                if len(rules) == 1:
                    return Hover(selector.span, pages.page(rules[0]))
                listed = "\n".join(f"- `{rule.code}` {rule.name}: {rule.summary}" for rule in rules[:MAX_LEAVES])
                more = len(rules) - MAX_LEAVES
                return Hover(selector.span, listed + (f"\n\nand {more} more" if more > 0 else "")) if rules else None
    return None


def _filter(question: Question) -> Hover | None:
    """What a filter takes."""
    around = [each for each in question.notes.filters if each.span.start <= question.offset <= each.span.end]
    if not around:
        return None
    span = min((each.span for each in around), key=lambda span: span.end - span.start)
    filters = [each for each in around if each.span == span]
    lines = [f"**filter** `{' '.join(question.source.segment(span).split())}`", "", f"takes {filters[0].meaning}"]
    for owner in dict.fromkeys(each.owner for each in filters if each.owner):
        lines += ["", *_taken(owner, next(each for each in filters if each.owner == owner))]
    return Hover(span, "\n".join(lines))


def _taken(owner: str, found: Filter) -> list[str]:
    if not found.taken:
        sure = "nothing" if found.complete else "nothing that is known"
        return [f"of {owner}: {sure}"]
    lines = [f"of {owner}:", "", *(f"- `{leaf}`" for leaf in found.taken[:MAX_LEAVES])]
    more = len(found.taken) - MAX_LEAVES
    if more > 0:
        lines.append(f"- and {more} more")
    return lines if found.complete else [*lines, "", "There may be others."]


CHANGES = {
    Arguments.KEPT: "Changes that the function makes to its arguments are written back to the caller's objects.",
    Arguments.DROPPED: "Changes that the function makes to its arguments are made to copies, and lost unless returned.",
    Arguments.SHARED: "Arguments that are not differentiated are the caller's own objects; the others are copies.",
}

VARIABLES_ONLY = (
    "Of the changes that the function makes to its arguments, those of Variables are written back; those of attributes"
    " are lost."
)
"""What holds in the place of :attr:`Arguments.KEPT` in the modes that do not take objects apart."""


def _transform(question: Question) -> Hover | None:
    """What a transform does with objects."""
    found = next((each for each in question.notes.applied if _within(each.span, question.offset)), None)
    if found is None:
        return None
    lines = [f"**transform** `{found.transform.name}`", "", *_propagation(found)]
    if found.transform.cached:
        lines += ["", "The compiled function is kept: what it reads from outside is a constant in it."]
    names = {each.name: each for each in question.notes.captured if each.span == found.span}
    if names:
        lines += ["", "captures:", ""]
        lines += [f"- `{name}`: {each.cls}{', and changes it' if each.changed else ''}" for name, each in names.items()]
    return Hover(found.span, "\n".join(lines))


def _propagation(found: Applied) -> list[str]:
    """What becomes of changes to arguments and to what the function closes over."""
    row = found.transform
    if row.host:
        return ["The function runs on the host, outside of every trace, and gets arrays."]
    if not row.level:
        return ["The function runs in the present trace."]
    kept = row.arguments is Arguments.KEPT
    partly = kept and False in (found.modes.graph, found.modes.updates)
    changes = VARIABLES_ONLY if partly else CHANGES[row.arguments]
    if found.lifts:
        captured = "Objects that the function closes over become inputs: changes of them come back."
    else:
        captured = "Objects that the function closes over belong to an outer trace: the function must not change them."
    return [changes, "", captured]


KINDS = {
    Kind.ARRAY: "an array is data",
    Kind.VARIABLE: "a Variable is data",
    Kind.REF: "an array reference is data",
    Kind.PYTREE: "an NNX object is data",
    Kind.REGISTERED: "its type was registered as data",
    Kind.CONTAINER: "a plain container is static",
    Kind.OTHER: "a plain value is static",
    Kind.UNKNOWN: "what it holds is not known",
}


def _attribute(question: Question) -> Hover | None:
    """What an attribute is to JAX, and why."""
    if question.views is None:
        return None
    path = trees.path_to(question.source, question.offset)
    node = trees.innermost(path, ast.Attribute)
    if node is None or not _within(trees.attribute_name(question.source, node), question.offset):
        return None
    found = question.views.attribute(path[: path.index(node) + 1])
    if found is None:
        return None
    cls, view = found
    status = "" if view.status is Status.UNKNOWN else f"{view.status.value} "
    value = "" if view.kinds == (Kind.UNKNOWN,) and view.value == UNKNOWN.describe() else f": {view.value}"
    lines = [f"**{status}attribute** `{cls}.{view.name}`{value}"]
    if view.status is not Status.UNKNOWN:
        lines += ["", f"{STATUS_MEANING[view.status][0].upper()}{STATUS_MEANING[view.status][1:]}."]
    lines += _reasons(question, question.views, view)
    return Hover(trees.attribute_name(question.source, node), "\n".join(lines))


def _reasons(question: Question, views: Views, view: AttributeView) -> list[str]:
    """Which assignments decided the status, and what they break."""
    lines: list[str] = []
    if view.declared is not None:
        lines += ["", f"Declared as {view.declared.value} in the class body."]
    firsts: dict[Status, AssignmentView] = {}
    for each in view.assignments:
        firsts.setdefault(each.status, each)
    for each in firsts.values():
        notes = _notes_of(question, each)
        why = "" if view.declared is not None else f" ({_why(notes, each.kinds)})"
        lines += ["", f"{'Assigned' if len(firsts) > 1 else 'First assigned'} {_where(question, views, each)}{why}"]
        shapes = {note.shapes for note in notes}
        if len(shapes) == 1 and (known := shapes.pop()):
            lines += (
                ["", f"shape: {known[0]}"] if len(known) == 1 else ["", "shapes:", "", *(f"- {each}" for each in known)]
            )
    for code in dict.fromkeys(each.rule for each in view.assignments if each.rule is not None):
        rule = REGISTRY.get(code)
        if rule is not None:
            lines += ["", f"Breaks {rule.name} ({code}): {rule.summary}"]
    return lines


def _notes_of(question: Question, assignment: AssignmentView) -> list[Assigned]:
    """What was noted at an assignment, each time that it ran."""
    if assignment.place.path != question.source.path:
        return []
    return [note for note in question.notes.assigned if note.span == assignment.place.span]


def _where(question: Question, views: Views, assignment: AssignmentView) -> str:
    """The line of an assignment, and what is written there, or the file that it is in."""
    path, span = assignment.place
    if path == question.source.path:
        code = _INSIDE.sub("", " ".join(question.source.segment(span).split()))
        shown = code if len(code) < MAX_CODE else f"{code[:MAX_CODE]}…"
        return f"on line {question.source.position(span.start).row}: `{shown}`"
    source = views.source(path)
    return f"in {os.path.basename(path)}" + (f", line {source.position(span.start).row}" if source is not None else "")


MAX_CODE = 80

_INSIDE = re.compile(r"(?<=[(\[{]) | (?=[)\]}])")
"""What is left of line breaks within brackets when several lines become one."""


def _why(notes: Sequence[Assigned], kinds: tuple[Kind, ...]) -> str:
    marked = {note.status.value for note in notes if note.tagged}
    return f"marked as {marked.pop()}" if marked else " or ".join(dict.fromkeys(KINDS[kind] for kind in kinds))


def _within(span: Span, offset: int) -> bool:
    return span.start <= offset <= span.end


_ANSWERS: tuple[Callable[[Question], Hover | None], ...] = (_suppression, _attribute, _filter, _transform)
