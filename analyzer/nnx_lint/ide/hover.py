"""Hover: what is known of the thing under the cursor, as Markdown.

Asked in the order of :data:`_ANSWERS`; the first that knows something answers.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint import pages
from nnx_lint.ide import trees
from nnx_lint.ide.hints import STATUS_MEANING
from nnx_lint.selection import matches
from nnx_lint.suppressions import Suppressions
from nnx_rules.attributes import Kind, Status
from nnx_rules.rules import REGISTRY
from nnx_rules.transforms import Arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnx_lint.diagnostics import Span
    from nnx_lint.ide.notes import Applied, Assigned, Filter, Notes
    from nnx_lint.ide.views import Views
    from nnx_lint.model.views import AttributeView
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


def _transform(question: Question) -> Hover | None:
    """What a transform does with objects."""
    found = next((each for each in question.notes.applied if _within(each.span, question.offset)), None)
    if found is None:
        return None
    row = found.transform
    lines = [f"**transform** `{row.name}`", "", CHANGES[row.arguments], "", _captures_of(found)]
    if row.cached:
        lines += ["", "The compiled function is kept: what it reads from outside is a constant in it."]
    names = {each.name: each for each in question.notes.captured if each.span == found.span}
    if names:
        lines += ["", "captures:", ""]
        lines += [
            f"- `{name}`, a {each.cls}{', and changes it' if each.changed else ''}" for name, each in names.items()
        ]
    return Hover(found.span, "\n".join(lines))


def _captures_of(found: Applied) -> str:
    if not found.transform.level:
        return "The function runs in the present trace."
    if found.lifts:
        return "Objects that the function closes over become inputs: changes of them come back."
    return "Objects that the function closes over belong to an outer trace: the function must not change them."


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
    lines = [f"**{status}attribute** `{cls}.{view.name}`: {view.value}"]
    if view.status is not Status.UNKNOWN:
        lines += ["", f"{STATUS_MEANING[view.status][0].upper()}{STATUS_MEANING[view.status][1:]}."]
    lines += _reasons(question, view)
    return Hover(trees.attribute_name(question.source, node), "\n".join(lines))


def _reasons(question: Question, view: AttributeView) -> list[str]:
    """Which assignment decided the status, and what it breaks."""
    lines: list[str] = []
    if view.declared is not None:
        lines += ["", f"Declared as {view.declared.value} in the class body."]
    for each in view.assignments[:1]:
        here = each.place.path == question.source.path
        note = next((note for note in question.notes.assigned if here and note.span == each.place.span), None)
        if here:
            line = question.source.position(each.place.span.start).row
            code = " ".join(question.source.segment(each.place.span).split())
            lines += ["", f"First assigned on line {line}: `{code if len(code) < MAX_CODE else code[:MAX_CODE] + '…'}`"]
        if view.declared is None:
            lines.append(f"({_why(note, each.kinds)})")
        if note is not None and note.shapes:
            lines += ["", "shapes:", "", *(f"- {shape}" for shape in note.shapes)]
    for code in dict.fromkeys(each.rule for each in view.assignments if each.rule is not None):
        rule = REGISTRY.get(code)
        if rule is not None:
            lines += ["", f"Breaks {rule.name} ({code}): {rule.summary}"]
    return lines


MAX_CODE = 80


def _why(note: Assigned | None, kinds: tuple[Kind, ...]) -> str:
    if note is not None and note.tagged:
        return f"marked as {note.status.value}"
    return " or ".join(dict.fromkeys(KINDS[kind] for kind in kinds))


def _within(span: Span, offset: int) -> bool:
    return span.start <= offset <= span.end


_ANSWERS: tuple[Callable[[Question], Hover | None], ...] = (_suppression, _attribute, _filter, _transform)
