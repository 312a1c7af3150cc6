"""Questions about syntax: what stands at an offset, and what is around it."""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from nnx_lint.diagnostics import Span
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.walk import STATEMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nnx_lint.source import SourceFile

N = TypeVar("N", bound=ast.AST)

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

COMPOUND = (
    *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.ExceptHandler),
    *(ast.Match, ast.match_case),
)
"""What has these fields, and is no scope."""


class Named(NamedTuple):
    """A class and its dotted name, through other classes and functions."""

    name: str
    node: ast.ClassDef


def path_to(source: SourceFile, offset: int) -> list[ast.AST]:
    """The nodes around an offset, outermost first; an end counts as inside."""
    found: list[ast.AST] = []
    node: ast.AST | None = source.tree
    while node is not None:
        found.append(node)
        node = next((child for child in _children(node) if _holds(source, child, offset)), None)
    return found


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """The children that have a place; decorators come before what they decorate, whose place does not hold them."""
    yield from getattr(node, "decorator_list", ())
    for child in ast.iter_child_nodes(node):
        if hasattr(child, "end_lineno"):
            yield child
        else:
            yield from _children(child)


def _holds(source: SourceFile, node: ast.AST, offset: int) -> bool:
    span = source.span(node)
    first = min((source.span(each).start for each in getattr(node, "decorator_list", ())), default=span.start)
    return min(first, span.start) <= offset <= span.end


def innermost(path: Sequence[ast.AST], kind: type[N]) -> N | None:
    """The innermost node of a type."""
    return next((node for node in reversed(path) if isinstance(node, kind)), None)


def classes(tree: ast.AST, prefix: str = "", *, in_functions: bool = True) -> Iterator[Named]:
    """All classes of a tree, outer ones first; those that functions make only if ``in_functions`` says so."""
    for field in STATEMENTS:
        for child in getattr(tree, field, ()):
            if isinstance(child, ast.ClassDef):
                yield Named(prefix + child.name, child)
                yield from classes(child, f"{prefix}{child.name}.", in_functions=in_functions)
            elif isinstance(child, FUNCTIONS):
                if in_functions:
                    yield from classes(child, f"{prefix}{child.name}.")
            elif isinstance(child, COMPOUND):
                yield from classes(child, prefix, in_functions=in_functions)


def instance_at(path: Sequence[ast.AST], name: str) -> ast.ClassDef | None:
    """The class of what a name means where it is what the method around an offset calls its instance."""
    return next((outer for outer, given in _methods(path) if given == name), None)


def _methods(path: Sequence[ast.AST]) -> Iterator[tuple[ast.ClassDef, str]]:
    for outer, inner in reversed(list(itertools.pairwise(path))):
        name = receiver(inner)
        if isinstance(outer, ast.ClassDef) and name is not None:
            yield outer, name


def receiver(function: ast.AST) -> str | None:
    """What a method calls its instance: its first parameter."""
    if not isinstance(function, FUNCTIONS):
        return None
    marks = {each.id for each in function.decorator_list if isinstance(each, ast.Name)}
    parameters = syntax_parameters.positional(function.args)
    return parameters[0].arg if parameters and marks.isdisjoint({"staticmethod", "classmethod"}) else None


def attribute_name(source: SourceFile, node: ast.Attribute) -> Span:
    """The span of the last name of ``owner.name``; of ``getattr(owner, "name")``, which is the same, all of it."""
    span = source.span(node)
    name = Span(span.end - len(node.attr), span.end)
    return name if source.segment(name) == node.attr else span
