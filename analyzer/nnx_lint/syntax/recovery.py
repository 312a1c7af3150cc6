"""Recovery from syntax errors: what does not parse is blanked, and the rest still answers.

The statements of a broken text are found by their layout (:mod:`~nnx_lint.syntax.layout`) and parsed one by one; one
that does not parse is looked into: its header alone, then the statements of its block, and so on down to the smallest
part that is broken. That part is replaced by a placeholder on the same line, a missing colon or body is put in, and the
whole is parsed again, so that the positions of all other nodes are exact.

Invariants: nothing is raised; every line that is blanked lies in an error that is reported; the number of lines never
changes, and no column of a part that is kept; the work is bounded by a multiple of the length of the text.
"""

from __future__ import annotations

import ast
import re
import sys
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.syntax import layout
from nnx_lint.syntax.names import mentioned
from nnx_lint.syntax.trees import MAX_SIZE, Blank, Parsed, SyntaxProblem, attempt, problem_of
from nnx_lint.syntax.walk import STATEMENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nnx_lint.syntax.layout import Indent, Line, Statement

WORK = 20
"""How often the characters of a broken text are parsed, on average, before what is left is blanked unseen."""

MAX_LINE = 200_000
"""Characters of a line that is read in a text that is broken or very long: what is longer is data."""

MAX_NESTING = 40
"""How deep blocks are looked into."""


MAX_REPAIRS = 5
"""How often a text is parsed whole, when its parts are sound and it is not."""


def recover(
    lines: list[str],
    whole: str,
    *,
    blanks: Iterable[range] = (),
    barriers: frozenset[int] = frozenset(),
    size: int | None = None,
    broken: bool = False,
) -> Parsed:
    """Parse the lines of a text that may be broken.

    Args:
        lines: what to parse; changed in place.
        whole: the text that the lines stand for, where they differ from it.
        blanks: lines that are left out in any case, with a placeholder on their first.
        barriers: lines that no statement goes across.
        size: how many characters the text has that the lines are a part of, which bounds the work.
        broken: whether the lines are known not to parse as they are.
    """
    recovery = _Recovery(lines, layout.split_lines(whole), barriers, sum(map(len, lines)) if size is None else size)
    recovery.blanks.update((region.start, region) for region in blanks)
    return recovery.parse(broken=broken)


def is_local(text: str, lines: list[str]) -> bool:
    """Whether what is broken in a text can be judged without the rest of it: there are neither marks of version
    control nor lines of data.
    """
    return CONFLICT not in text and max(map(len, lines), default=0) <= MAX_LINE


_CONTEXT = {"elif": "if 1: pass\n", "else": "if 1: pass\n", "except": "try: pass\n", "finally": "try: pass\n"}
"""What has to stand before the header of a clause."""

_FILLER = "pass\n"
_CASE = "case _ if _: pass\n"
_UNREAD = "*_\n"
"""The placeholders of a statement, of a case, and of a line that may stand between brackets as well."""

CONFLICT = "<" * 7
_CONFLICT = re.compile(rf"{CONFLICT}(?: |$)")
_CONFLICT_END = re.compile(r">{7}(?: |$)")
_POISON = "$"
"""A text that is no part of any statement: it makes the one that it stands in a broken one."""


_LINE = re.compile(r"\b((?:on|at) line )(\d+)\b")


class _Place(NamedTuple):
    """The block that statements are in: its white space, how deep it is, how it is read, what a placeholder is."""

    margin: str = ""
    depth: int = 0
    trusting: bool = True
    filler: str = _FILLER

    @property
    def context(self) -> str:
        """What has to stand before a statement of the block for it to be parsed."""
        return "" if not self.margin else "match 1:\n" if self.filler == _CASE else "if 1:\n"


class _Recovery:
    """The recovery of one text. Lines count from zero here."""

    def __init__(self, lines: list[str], original: list[str], barriers: frozenset[int], size: int) -> None:
        self.lines = lines
        self.original = original
        self.barriers = barriers
        self.errors: list[SyntaxProblem] = []
        self.unreadable: SyntaxProblem | None = None
        self.notes: dict[str, SyntaxProblem] = {}
        self.blanks: dict[int, range] = {}  # by the line of the placeholder, the lines that it stands for
        self.budget = WORK * size + 100_000
        self.conflicts: list[range] = []
        self.unread: list[int] = []

    def parse(self, *, broken: bool) -> Parsed:
        before = list(self.lines)
        self.clean()
        if (size := sum(map(len, self.lines))) > MAX_SIZE:
            message = f"the file is not checked: it has {size / 1e6:.1f} million characters"
            return Parsed(ast.Module([], []), notes=(SyntaxProblem(1, 1, message),))
        outcome = None if broken and self.lines == before else attempt("".join(self.lines))
        if not isinstance(outcome, ast.Module):
            self.mark_conflicts()
            self.block(0, len(self.lines) - 1, _Place(), layout.Indent(0, 0))
            outcome = self.rest()
        if self.blanks:
            self.put_blanks(outcome)
        errors, notes = sorted(self.errors, key=_place), sorted(self.notes.values(), key=_place)
        return Parsed(outcome, tuple(errors), tuple(notes), tuple(self.lines))

    def rest(self) -> ast.Module:
        """The tree of what is left; where the layout has misled, statements around the errors go as well."""
        for _ in range(MAX_REPAIRS):
            outcome = attempt("".join(self.lines))
            if isinstance(outcome, ast.Module):
                return outcome
            lines = layout.logical_lines(self.lines, 0, len(self.lines) - 1, trusting=True, barriers=self.barriers)
            statements = layout.statements(lines, layout.Indent(0, 0))
            index = bisect_left(statements, outcome.line - 1, key=lambda statement: statement.last)
            around = statements[min(index, len(statements) - 1)]
            self.blank(around.first, around.last, _Place(), outcome)
        self.blank(0, len(self.lines) - 1, _Place(), SyntaxProblem(1, 1, "nothing of it can be parsed"))
        return ast.parse("".join(self.lines))

    # -- characters that Python refuses everywhere, and marks of version control

    def clean(self) -> None:
        """Leave out lines of data, and replace null bytes and what could not be decoded: these may stand in strings and
        comments only.
        """
        for number, line in enumerate(self.lines):
            if len(line) > MAX_LINE:
                message = f"the line is not read: it has {len(line) / 1e6:.1f} million characters"
                self.notes.setdefault("", self.at(number, message))
                self.unread.append(number)
                self.lines[number] = layout.indent_text(line[:MAX_LINE]) + _UNREAD
                self.blanks[number] = range(number, number + 1)
                continue
            bad = _UNREADABLE.search(line) if not line.isascii() or "\0" in line else None
            if bad is not None:
                if self.unreadable is None:
                    self.unreadable = SyntaxProblem(number + 1, bad.start() + 1, _unreadable(bad[0]))
                    self.errors.append(self.unreadable)
                self.lines[number] = line.replace("\0", " ") if line.isascii() else _UNREADABLE.sub(_readable, line)

    def mark_conflicts(self) -> None:
        """Make each merge conflict one line that does not parse, as deep as the lines of its first side."""
        start: int | None = None
        for number, line in enumerate(self.lines):
            if _CONFLICT.match(line):
                start = number
            elif start is not None and _CONFLICT_END.match(line):
                inside = next((text for text in self.lines[start + 1 : number] if _is_code(text)), "")
                self.lines[start : number + 1] = ["\n"] * (number + 1 - start)
                self.lines[start] = layout.indent_text(inside) + _POISON + "\n"
                self.conflicts.append(range(start, number + 1))
                start = None

    # -- statements

    def block(self, first: int, last: int, place: _Place, indent: Indent) -> None:
        """Mend the statements from line ``first`` to ``last``."""
        lines = layout.logical_lines(self.lines, first, last, trusting=place.trusting, barriers=self.barriers)
        for statement in layout.statements(lines, indent):
            if statement.lines[0].indent != indent:
                self.blank(statement.first, statement.last, place, self.misplaced(statement, place))
            else:
                self.statement(statement, place)

    def misplaced(self, statement: Statement, place: _Place) -> SyntaxProblem:
        """What is wrong with a statement that is not indented as its block is."""
        first, last = statement.first, statement.last
        context = "if 1:\n" if layout.indent_text(self.lines[first]) else ""
        message = "unindent does not match any outer indentation level" if place.margin else "unexpected indent"
        return self.attempt(context, "".join(self.lines[first : last + 1]), first) or self.at(first, message)

    def statement(self, statement: Statement, place: _Place) -> None:
        """Mend a statement if it is broken."""
        first, last = statement.first, statement.last
        problem = self.check(first, last, place)
        if problem is None:
            return
        if self.budget < 0 or place.depth > MAX_NESTING:
            self.blank(first, last, place, problem)
            return
        if place.trusting and not statement.closed and self.reread(statement, place):
            return
        heads = [statement.lines[index] for index in statement.heads]
        if heads[-1].word not in layout.OPENERS and heads[0].word != "@":
            self.simple(statement, place, problem)
            return
        if not self.compound(statement, heads, place):
            self.blank(first, last, place, problem)
        elif (left := self.check(first, last, place)) is not None:
            self.blank(first, last, place, left)

    def reread(self, statement: Statement, place: _Place) -> bool:
        """Read a statement again, without trust in its brackets and quotes, if that makes a difference."""
        first, last = statement.first, statement.last
        lines = layout.logical_lines(self.lines, first, last, trusting=False, barriers=self.barriers)
        if len(list(lines)) == len(statement.lines):
            return False
        self.block(first, last, place._replace(depth=place.depth + 1, trusting=False), statement.lines[0].indent)
        return True

    def simple(self, statement: Statement, place: _Place, problem: SyntaxProblem) -> None:
        """Blank a statement that is to have no block. Deeper lines below a sound one are what is wrong."""
        head = statement.lines[0]
        if self.modernize(head.first, statement.last, lambda: self.check(head.first, statement.last, place)):
            return
        if len(statement.lines) > 1 and self.check(head.first, head.last, place) is None:
            below = statement.lines[1].first
            self.blank(below, statement.last, place, self.at(below, "unexpected indent"))
        elif not (place.trusting and head.last > head.first and self.reread(statement, place)):
            self.blank(head.first, statement.last, place, problem)

    def compound(self, statement: Statement, heads: list[Line], place: _Place) -> bool:
        """Mend the headers and blocks of a statement; whether that succeeded."""
        ends = [*(line.first - 1 for line in heads[1:]), statement.last]
        kept: list[str] = []
        inside: _Place | None = None  # the block before
        start = heads[0].first
        for head, end, index in zip(heads, ends, statement.heads, strict=True):
            if head.word == "@":
                continue  # decorators are part of the header that follows
            below = statement.lines[index + 1] if index + 1 < len(statement.lines) and head.last < end else None
            inner = layout.indent_text(self.lines[below.first]) if below is not None else None
            problem = self.header(start, head, place, inner, below)
            if problem is not None:
                if inside is None:
                    return False
                self.blank(head.first, end, inside, problem)
            elif self.check_header(start, head, place, None) is None:  # its body is on the same line
                kept.append(head.word)
                if below is not None:
                    self.blank(below.first, end, place, self.at(below.first, "unexpected indent"))
            elif below is not None and inner is not None:
                kept.append(head.word)
                filler = _CASE if head.word == "match" else _FILLER
                inside = _Place(inner, place.depth + 1, place.trusting, filler)
                self.block(below.first, end, inside, below.indent)
            else:
                kept.append(head.word)
                self.add_body(head)
            start = end + 1
        if kept[:1] == ["try"] and not {"except", "finally"}.intersection(kept):
            self.unguard(heads[0])
        return bool(kept)

    def header(
        self, start: int, head: Line, place: _Place, inner: str | None, below: Line | None
    ) -> SyntaxProblem | None:
        """Mend the header of a block; the problem if that is not possible. One-line bodies count as part of it."""
        if head.word == "match" and (below is None or below.word != "case"):
            return self.check(start, head.last, place)
        deeper = inner if inner is not None else place.margin + " "

        def check() -> SyntaxProblem | None:
            return self.check_header(start, head, place, None) and self.check_header(start, head, place, deeper)

        problem = check()
        if problem is None or self.modernize(start, head.last, check):
            return None
        line = self.lines[head.last]
        self.lines[head.last] = line[: head.end] + ":" + _newline(line)
        if self.check_header(start, head, place, deeper) is None:
            self.errors.append(self.at(head.last, "expected ':'", head.end))
            return None
        self.lines[head.last] = line
        return problem

    def check_header(self, start: int, head: Line, place: _Place, inner: str | None) -> SyntaxProblem | None:
        """Parse a header with a body of nothing, or without one."""
        text = "".join(self.lines[start : head.last + 1])
        if not text.endswith(("\n", "\r")):
            text += "\n"
        if inner is not None:
            text += inner + (_CASE if head.word == "match" else _FILLER)
        if head.word == "try":
            text += place.margin + "finally: pass\n"
        before = _CONTEXT.get(head.word)
        return self.attempt(place.context + (place.margin + before if before else ""), text, start)

    def check(self, first: int, last: int, place: _Place) -> SyntaxProblem | None:
        """Parse the lines of a statement."""
        return self.attempt(place.context, "".join(self.lines[first : last + 1]), first)

    def attempt(self, context: str, text: str, first: int) -> SyntaxProblem | None:
        """Parse a text that begins on line ``first``, behind a context that it needs."""
        self.budget -= len(text)
        outcome = problem_of(context + text)
        if outcome is None:
            return None
        shift = first - context.count("\n")
        message = _LINE.sub(lambda found: f"{found[1]}{int(found[2]) + shift}", outcome.message)
        return SyntaxProblem(min(max(outcome.line + shift, 1), len(self.lines)), outcome.column, message)

    def at(self, line: int, message: str, column: int | None = None) -> SyntaxProblem:
        """A problem on a line from zero: where its code begins, or at a column from zero."""
        text = self.original[line]
        return SyntaxProblem(line + 1, (len(layout.indent_text(text)) if column is None else column) + 1, message)

    # -- mends

    def blank(self, first: int, last: int, place: _Place, problem: SyntaxProblem) -> None:
        """Put a placeholder in the place of lines."""
        conflicts = [lines for lines in self.conflicts if first <= lines.start <= last]
        if conflicts:
            problem = SyntaxProblem(conflicts[0].start + 1, 1, "unresolved merge conflict")
        for line in [line for line in self.blanks if first <= line <= last]:
            del self.blanks[line]
        self.lines[first : last + 1] = ["\n"] * (last + 1 - first)
        self.lines[first] = place.margin + place.filler
        self.blanks[first] = range(first, max([last + 1, *(lines.stop for lines in conflicts)]))
        self.errors = [
            error for error in self.errors if not first <= error.line - 1 <= last or error is self.unreadable
        ]
        if not any(first <= line <= last for line in (*(error.line - 1 for error in self.errors), *self.unread)):
            self.errors.append(problem)

    def add_body(self, head: Line) -> None:
        """Give a header the body that it lacks."""
        line = self.lines[head.last]
        self.lines[head.last] = line[: head.end] + " " + _FILLER
        self.blanks[head.last] = range(head.last, head.last)
        self.errors.append(self.at(head.last, f"expected an indented block after `{head.word}`", head.end))

    def unguard(self, head: Line) -> None:
        """Make a ``try`` without handlers a block that is simply executed."""
        line = self.lines[head.first]
        margin = layout.indent_text(line)
        self.lines[head.first] = margin + "if 1" + line[len(margin) + len("try") :].replace(": ", ":", 1)
        self.errors.append(self.at(head.first, "expected 'except' or 'finally' block"))

    def modernize(self, first: int, last: int, check: Callable[[], SyntaxProblem | None]) -> bool:
        """Write syntax of a newer Python so that the running one reads it, if that is what is wrong."""
        from nnx_lint.syntax.versions import rewritten

        before = self.lines[first : last + 1]
        result = rewritten(before)
        if result is None:
            return False
        version, self.lines[first : last + 1] = result
        if check() is not None:
            self.lines[first : last + 1] = before
            return False
        self.notes.setdefault(version, self.at(first, _newer(version)))
        return True

    # -- the tree

    def put_blanks(self, tree: ast.Module) -> None:
        """Exchange the placeholders by blanks."""
        todo: list[ast.AST] = [tree]
        while todo:
            node = todo.pop()
            for name in STATEMENTS:
                children: list[ast.stmt] = getattr(node, name, [])
                for index, child in enumerate(children):
                    region = self.blanks.get(child.lineno - 1) if _is_placeholder(child) else None
                    if region is not None:
                        children[index] = self.make_blank(region, child)
                    else:
                        todo.append(child)

    def make_blank(self, region: range, place: ast.stmt) -> Blank:
        blank = mentioned("".join(self.original[region.start : region.stop]), place)
        blank.height = len(region)
        return blank


_UNREADABLE = re.compile("[\0\ud800-\udfff]")


def _readable(bad: re.Match[str]) -> str:
    return " " if bad[0] == "\0" else "\ufffd"  # as many bytes of UTF-8 as before


def _unreadable(character: str) -> str:
    if character == "\0":
        return "null byte"
    if "\udc80" <= character <= "\udcff":
        return f"byte 0x{ord(character) - 0xDC00:02x} cannot be decoded"
    return "lone surrogate"


def _newer(version: str) -> str:
    running = ".".join(map(str, sys.version_info[:2]))
    later = f"run nnx-lint with Python {version} or later"
    return f"syntax of Python {version}: {later} to have all of it understood (this is Python {running})"


def _newline(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :] or "\n"


def _is_placeholder(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Starred))


def _is_code(line: str) -> bool:
    code = line.strip()
    return code != "" and code[0] not in "#=|<"


def _place(problem: SyntaxProblem) -> tuple[int, int]:
    return problem.line, problem.column
