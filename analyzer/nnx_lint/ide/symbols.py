"""The outline of a file: its Modules with their attributes; and where an attribute is first assigned."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.diagnostics import Span
from nnx_lint.ide import trees
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.attributes import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.ide.views import Views
    from nnx_lint.model.views import AttributeView, Place
    from nnx_lint.source import SourceFile


class Symbol(NamedTuple):
    """A class, or an attribute of one: what it is called, in a few words what it is, and where it stands.

    ``span`` is all of it, ``name_span`` lies within.
    """

    name: str
    detail: str
    span: Span
    name_span: Span
    is_class: bool = False
    children: tuple[Symbol, ...] = ()


def outline(source: SourceFile, views: Views) -> list[Symbol]:
    """The Modules of a file."""
    found: list[Symbol] = []
    for named, view in views.all():
        span = source.span(named.node)
        start = source.text.index(named.node.name, span.start)
        children = tuple(_attribute(each, span, source) for each in view.attributes)
        name_span = Span(start, start + len(named.node.name))
        bases = ", ".join(source.segment(base) for base in named.node.bases)
        found.append(Symbol(named.name, bases, span, name_span, True, tuple(each for each in children if each)))
    return found


def _attribute(view: AttributeView, around: Span, source: SourceFile) -> Symbol | None:
    """An attribute that is assigned within a class."""
    place = next((each.place for each in view.assignments if each.place.path == source.path), None)
    if place is None or not (around.start <= place.span.start and place.span.end <= around.end):
        return None
    detail = view.value if view.status is Status.UNKNOWN else f"{view.status.value}: {view.value}"
    return Symbol(view.name, detail, place.span, place.span)


def definition(source: SourceFile, views: Views, offset: int) -> Place | None:
    """Where the attribute at an offset is first assigned."""
    found = views.attribute(trees.path_to(source, offset))
    return found[1].assignments[0].place if found is not None and found[1].assignments else None


class Token(NamedTuple):
    """The name of an attribute, and what it is to JAX."""

    span: Span
    status: Status


def tokens(source: SourceFile, views: Views) -> Sequence[Token]:
    """The attributes of ``self`` whose status is known, in the order of the text."""
    found: list[Token] = []
    for named, view in views.all():
        statuses = {each.name: each.status for each in view.attributes if each.status is not Status.UNKNOWN}
        for function in named.node.body:
            for node in _own_attributes(function):
                if node.attr in statuses:
                    found.append(Token(trees.attribute_name(source, node), statuses[node.attr]))
    return sorted(dict.fromkeys(found), key=lambda token: token.span)


@remembered
def _own_attributes(function: ast.AST) -> list[ast.Attribute]:
    """The attributes of its instance that a method names."""
    name = trees.receiver(function)
    if name is None:
        return []
    return [node for node in walk(function) if isinstance(node, ast.Attribute) and is_name(node.value, name)]
