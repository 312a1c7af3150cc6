"""Expressions that are written in a roundabout way, made plain.

``getattr(x, "name")`` is ``x.name``, ``setattr(x, "name", y)`` in a statement ``x.name = y``, ``f(*(x, y))`` and
``f(**{"name": y})`` are ``f(x, y)`` and ``f(name=y)``. Many rules read a text as well as values, and each would have to
know both ways of writing; so the tree has the plain one.

Invariants: a tree only changes where it means the same; the plain node covers all of the text that it stands for, so
what is reported is underlined as it was written. A fix that edits such a text would edit what is not there:
:func:`rewrites` says where that is, and nobody fixes it.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import keyword
import re
import sys
import warnings
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

N = TypeVar("N", bound=ast.AST)
Placed = ast.expr | ast.stmt | ast.keyword

_STARRED = "*(", "*[", "**{", "**dict"
_SPREAD = re.compile(r"""[(,]\s*\*(?:[(\[]|\*(?:\{|dict\b))""")
_GETATTR = re.compile(r"""getattr\([\w. \[\]]+, *["']\w+["']\)""")
_SETATTR = re.compile(r"""setattr\([\w. \[\]]+, *["']\w+["'], *""")
"""What stands in every text that is written in one of these ways, and in few others: to go over a tree takes time."""


def _is_roundabout(text: str) -> bool:
    named = _GETATTR.search(text) is not None or _SETATTR.search(text) is not None
    return named or (any(part in text for part in _STARRED) and _SPREAD.search(text) is not None)


_NEWLINE = re.compile("\r\n|\r|\n")

BUILTINS = frozenset({"dict", "getattr", "setattr"})


def plain(tree: ast.Module, text: str) -> ast.Module:
    """The tree of a text with all that is written in a roundabout way made plain. The tree itself is used for it."""
    if _is_roundabout(text):
        _changed(tree, text)
    return tree


Place = tuple[int, int, int, int]
"""Line and column (in bytes) of start and end."""

_EVERYWHERE = ((1, 0, sys.maxsize, 0),)


@functools.lru_cache(maxsize=20)
def rewrites(text: str) -> tuple[Place, ...]:
    """The places of a text that are written in a roundabout way; all of it may be, if it does not parse as it is."""
    if not _is_roundabout(text):
        return ()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tuple(_changed(ast.parse(text), text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _EVERYWHERE


def _changed(tree: ast.Module, text: str) -> list[Place]:
    """Make a tree plain, but for what is nested too deeply. The places that were not."""
    plain = _Plain(tree, text)
    with contextlib.suppress(RecursionError):
        plain.visit(tree)
    return plain.places


class _Plain(ast.NodeTransformer):
    """Makes a tree plain. ``places`` are those that it changed.

    It changes only what its own text shows to be written so, whatever stands around it: part of a text may be parsed
    alone.
    """

    def __init__(self, tree: ast.Module, text: str) -> None:
        self.lines = _NEWLINE.split(text)
        self.builtins = BUILTINS.difference(name for node in ast.walk(tree) for name in _bound_by(node))
        self.places: list[Place] = []

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if any(isinstance(item, ast.Starred) for item in node.args):
            node.args = [part for item in node.args for part in self._spread(item)]
        if any(item.arg is None for item in node.keywords):
            self._named(node)
        match node:
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=str(name))], keywords=[]):
                if "getattr" in self.builtins and _is_attribute(name) and _GETATTR.fullmatch(self._line(node)):
                    return self._placed(ast.Attribute(owner, name, ast.Load()), node)
            case _:
                pass
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        self.generic_visit(node)
        match node.value:
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, ast.Constant(value=str(name)), value], keywords=[]):
                if "setattr" in self.builtins and _is_attribute(name) and _SETATTR.match(self._line(node)):
                    target = ast.copy_location(ast.Attribute(owner, name, ast.Store()), node)
                    return self._placed(ast.Assign([target], value, None), node)
            case _:
                pass
        return node

    def _spread(self, item: ast.expr) -> Iterator[ast.expr]:
        """What an argument stands for: several, if it is a tuple that is spread where it is written."""
        if isinstance(item, ast.Starred) and isinstance(item.value, (ast.Tuple, ast.List)) and _is_after(item, 1):
            self._note(item)
            yield from item.value.elts
        else:
            yield item

    def _named(self, node: ast.Call) -> None:
        """Give the keywords of a call one by one that a dict has which is written there."""
        given = [pair for item in node.keywords for pair in self._pairs(item)]
        names = [item.arg for item in given if item.arg is not None]
        if len(set(names)) == len(names):  # else the program fails
            for item in node.keywords:
                if item not in given:
                    self._note(item)
            node.keywords = given

    def _pairs(self, item: ast.keyword) -> list[ast.keyword]:
        if item.arg is not None or not _is_after(item, 2):
            return [item]
        match item:
            case ast.keyword(value=ast.Dict(keys=keys, values=values)):
                pairs = [_keyword(key, value) for key, value in zip(keys, values, strict=True)]
                found = [pair for pair in pairs if pair is not None]
                return found if len(found) == len(pairs) else [item]
            case ast.keyword(value=ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords)):
                return keywords if "dict" in self.builtins else [item]
            case _:
                return [item]

    def _line(self, node: Placed) -> str:
        """The text of a node on one line; the beginning of another one. Older Pythons misplace what is in f-strings."""
        line = self.lines[node.lineno - 1].encode() if node.lineno <= len(self.lines) else b""
        end = node.end_col_offset if node.end_lineno == node.lineno else None
        return line[node.col_offset : end].decode(errors="ignore")

    def _placed(self, made: N, node: Placed) -> N:
        self._note(node)
        return ast.copy_location(made, node)

    def _note(self, node: Placed) -> None:
        self.places.append((node.lineno, node.col_offset, *_end(node)))


def _is_after(item: ast.Starred | ast.keyword, stars: int) -> bool:
    """Whether what is spread stands right after its stars."""
    return (item.value.lineno, item.value.col_offset) == (item.lineno, item.col_offset + stars)


def _end(node: Placed) -> tuple[int, int]:
    """Where a node ends, which Python knows of every node that it parsed."""
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _bound_by(node: ast.AST) -> tuple[str, ...]:
    """The names that a node binds by itself."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            return (name,)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.alias(name=name, asname=alias):
            return (alias or name,)
        case _:
            return ()


def _keyword(key: ast.expr | None, value: ast.expr) -> ast.keyword | None:
    """The keyword that an item of a dict stands for, if it stands for one."""
    match key:
        case ast.Constant(value=str(name)) if _is_name(name):
            made = ast.keyword(name, value)
            made.lineno, made.col_offset = key.lineno, key.col_offset
            made.end_lineno, made.end_col_offset = value.end_lineno, value.end_col_offset
            return made
        case _:
            return None


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _is_attribute(text: str) -> bool:
    """Whether a name is the same attribute wherever it is written: in a class, ``x.__name`` is another one."""
    return _is_name(text) and not text.startswith("__")
