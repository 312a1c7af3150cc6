"""Syntax trees, and what is told about the texts that they are of.

What a text is short of is not in its tree: a :class:`Blank` stands where something was left out.

Invariants: nothing is raised; every node that Python makes is made a compact one (:mod:`~nnx_lint.syntax.compact`), and
what is written in a roundabout way is made plain (:mod:`~nnx_lint.syntax.plain`).
"""

from __future__ import annotations

import ast
import functools
import warnings
from typing import ClassVar, NamedTuple

from nnx_lint.syntax.compact import compact
from nnx_lint.syntax.plain import plain
from nnx_rules.records import Record

MAX_SIZE = 4_000_000
"""Characters of a text that is parsed: what is longer was written by a program, for a program."""

TOO_DEEP = "too deeply nested to be parsed"


class SyntaxProblem(Record):
    """What is wrong at a place of a text; line and column count from one, the column in characters."""

    line: int
    column: int
    message: str


class Blank(ast.stmt):
    """A statement, or several, of which only the names are known: the text does not parse.

    Attributes:
        targets: the names that it may bind.
        uses: one call of nothing known, with all names and attributes that the text mentions as its arguments.
        returns: whether it may leave the function, or make it a generator.
        method: the name of the function that it defines, where it defines nothing else.
        height: how many lines it stands for.
    """

    _fields = ("targets", "uses")
    _attributes: ClassVar = ("lineno", "col_offset", "end_lineno", "end_col_offset")
    targets: list[ast.Name]
    uses: list[ast.expr]
    returns: bool
    method: str | None
    height: int
    lineno: int
    col_offset: int
    end_lineno: int | None
    end_col_offset: int | None


class Parsed(NamedTuple):
    """A tree, what is wrong with the text, what is noteworthy about it, and the lines that were parsed in its place."""

    tree: ast.Module
    errors: tuple[SyntaxProblem, ...] = ()
    notes: tuple[SyntaxProblem, ...] = ()
    lines: tuple[str, ...] = ()


MAX_REMEMBERED = 10_000
"""Characters of a text of which it is remembered whether it parses."""


def attempt(text: str) -> ast.Module | SyntaxProblem:
    """Parse a text; a problem instead of an exception."""
    outcome = _parsed(text)
    return compact(plain(outcome, text)) if isinstance(outcome, ast.Module) else outcome


def _parsed(text: str) -> ast.Module | SyntaxProblem:
    try:
        with warnings.catch_warnings():
            # The checked code's own `\d` in a plain string, or `x is 1`, is not ours to print.
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        return SyntaxProblem(max(error.lineno or 1, 1), max(error.offset or 1, 1), error.msg)
    except (RecursionError, MemoryError):
        return SyntaxProblem(1, 1, TOO_DEEP)
    except ValueError as error:  # null bytes and lone surrogates
        return SyntaxProblem(1, 1, str(error))


def problem_of(text: str) -> SyntaxProblem | None:
    """What is wrong with a text. While somebody types, most parts of a broken text are asked for again and again."""
    return _remembered_problem_of(text) if len(text) <= MAX_REMEMBERED else _problem_of(text)


def _problem_of(text: str) -> SyntaxProblem | None:
    outcome = _parsed(text)
    return None if isinstance(outcome, ast.Module) else outcome


_remembered_problem_of = functools.lru_cache(maxsize=1_000)(_problem_of)
