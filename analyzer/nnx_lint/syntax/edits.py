"""The syntax of a text that was made of another one, as an editor makes it: only what changed is parsed.

The statements of a module that lie outside of what changed are the nodes that they were, moved to where they stand now.
The lines between them are parsed alone; where they are broken, they are recovered alone, if their layout shows that the
statements around them begin and end where they did. A statement in which only white space or comments differ keeps
its nodes, too, and these get their new places. What cannot be taken apart like that is parsed whole, and keeps the
nodes of the statements that have the same text.

Invariants: the tree, the errors and the lines are those of a parse of the whole text; a node belongs to one tree, so
the tree that it is taken from must not be used any more.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from nnx_lint.diagnostics import Span
from nnx_lint.syntax import layout
from nnx_lint.syntax.parsing import parse
from nnx_lint.syntax.trees import MAX_SIZE, Blank, Parsed, attempt
from nnx_lint.syntax.walk import STATEMENTS, first_line, walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.source import SourceFile

DEPTH = layout.Indent(0, 0)
"""How deep the statements of a module are."""

SENTINEL = "pass\n"
"""What stands for the statement behind lines that are parsed alone: a statement that no open bracket takes in."""


class Change(NamedTuple):
    """The part of a text that another text has something else for: from ``start`` to ``end``, and how much longer."""

    text: str
    start: int
    end: int
    by: int

    @classmethod
    def between(cls, before: str, after: str) -> Change:
        """The smallest change that makes one text of another."""
        start = _alike(before, after)
        most = min(len(before), len(after)) - start
        end = _alike(before[len(before) - most :][::-1], after[len(after) - most :][::-1])
        return cls(before, start, len(before) - end, len(after) - len(before))

    def __bool__(self) -> bool:
        return self.by != 0

    def then(self, other: Change) -> Change | None:
        """Make one change of this one and of the next, if that changes what this one put in, as one does who
        types.
        """
        if self.start != self.end or not self.start <= other.start <= other.end <= self.end + self.by:
            return None
        return self._replace(by=self.by + other.by)

    def moved(self, span: Span) -> Span:
        """Where a place that the change has left as it was is in the other text."""
        start = span.start + self.by if span.start >= self.end else span.start
        return Span(start, span.end if span.end <= self.start else span.end + self.by)


def _alike(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginnings."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


class Followed(NamedTuple):
    """What was parsed, and the change of the text before through which every node that was kept has gone."""

    parsed: Parsed
    change: Change


def follow(before: SourceFile, after: SourceFile) -> Followed:
    """Parse a text with the nodes of the one that it was made of; ``before`` loses its tree."""
    change = Change.between(before.text, after.text)
    edit = _Edit(before, after, change)
    return Followed(edit.parsed() or edit.adopted(parse(after.text)), change)


def last_line(node: ast.stmt) -> int:
    """The line in which a statement ends."""
    return node.end_lineno or node.lineno


class _Edit:
    """One change of a text whose syntax is known."""

    def __init__(self, before: SourceFile, after: SourceFile, change: Change) -> None:
        self.before = before
        self.after = after
        self.change = change
        self.body = before.tree.body
        self.more = after.line_count - before.line_count

    def parsed(self) -> Parsed | None:
        """The syntax of the new text, if what changed can be parsed alone."""
        if self.before.notes or not self.body or len(self.after.text) > MAX_SIZE:
            return None
        if "\0" in self.after.text:  # wherever it is: what stands for it is in the lines of all of the text
            return None
        first = self.before.location(self.change.start)[0]
        last = self.before.location(self.change.end)[0]
        start = bisect_left(self.body, first, key=last_line)
        stop = bisect_right(self.body, last, key=first_line)
        if start == stop:  # between two statements: what is written there may belong to the one before
            start = max(start - 1, 0)
        return self._part(start, stop) or self._part(max(start - 1, 0), min(stop + 1, len(self.body)))

    def _part(self, start: int, stop: int) -> Parsed | None:
        """Parse the lines of some statements, and of what stands around them, alone."""
        body, after = self.body, self.after
        first = last_line(body[start - 1]) + 1 if start else 1
        last = first_line(body[stop]) - 1 if stop < len(body) else self.before.line_count
        if start < stop and (first_line(body[start]) < first or last_line(body[stop - 1]) > last):
            return None  # two statements on one line
        errors = self.before.errors
        if any(not first <= error.line <= last for error in errors) or (errors and start and _broken(body[start - 1])):
            return None
        begin = after.line_start(first)
        end = after.line_start(last + self.more + 1) if stop < len(body) else len(after.text)
        above = ["\n"] * (first - 1)
        part = after.text[begin:end]
        outcome = attempt("".join(above) + part)
        if isinstance(outcome, ast.Module):
            nodes = outcome.body
            if not errors:
                nodes = self._kept(body[start:stop], nodes)
            return Parsed(self._put(start, stop, nodes))
        recovered = self._recovered(start, stop, above, part)
        if recovered is None:
            return None
        lines = (*_lines(after.text[:begin]), *recovered.lines[first - 1 :], *_lines(after.text[end:]))
        nodes = self._kept(body[start:stop], recovered.tree.body)
        return recovered._replace(tree=self._put(start, stop, nodes), lines=lines)

    def _recovered(self, start: int, stop: int, above: list[str], part: str) -> Parsed | None:
        """Recover broken lines alone; ``None`` if their layout does not show that the rest is as it was."""
        from nnx_lint.syntax.recovery import is_local, recover

        body, lines = self.body, _lines(self.after.text)
        if not is_local(self.after.text, lines):
            return None
        first = len(above)  # from zero, as all lines here
        behind = first + len(_lines(part))
        context = first_line(body[start - 1]) - 1 if start else 0
        shown = lines[context : behind + 1] if stop < len(body) else lines[context:]
        logical = layout.logical_lines(shown, 0, len(shown) - 1, trusting=True)
        found = [(each.first + context, each.last + context) for each in layout.statements(logical, DEPTH)]
        if any(begins < first <= ends for begins, ends in found):
            return None
        if stop < len(body) and not any(begins == behind for begins, _ in found):
            return None
        padded = [*above, *_lines(part), *([SENTINEL] if stop < len(body) else [])]
        recovered = recover(padded, "".join(padded), size=len(self.after.text), broken=True)
        if stop == len(body):
            return recovered
        *nodes, last = recovered.tree.body
        if not isinstance(last, ast.Pass) or last.lineno != behind + 1:
            return None
        return recovered._replace(tree=ast.Module(nodes, []), lines=recovered.lines[:-1])

    def _put(self, start: int, stop: int, nodes: list[ast.stmt]) -> ast.Module:
        """The tree with some statements in the place of others."""
        behind = self.body[stop:]
        _move(behind, self.more)
        return ast.Module([*self.body[:start], *nodes, *behind], [])

    def _kept(self, old: list[ast.stmt], new: list[ast.stmt]) -> list[ast.stmt]:
        """Statements of a part, as nodes that they were before where they say the same."""
        if len(old) != len(new):
            return new
        return [before if self._moved(before, after) else after for before, after in zip(old, new, strict=True)]

    def _moved(self, before: ast.stmt, after: ast.stmt) -> bool:
        """Give the nodes of a statement the places that they have now, if it says the same as before, and these places
        are those to which the change moves the old ones.
        """
        pairs = _pairs(before, after)
        if pairs is None:
            return False
        blanks = [(one, other) for one, other in pairs if isinstance(one, Blank) and isinstance(other, Blank)]
        if not all(self._is_as_unknown(one, other) for one, other in blanks):
            return False
        places: list[tuple[Any, Any]] = [pair for pair in pairs if hasattr(pair[0], "lineno")]
        if any(self.change.moved(self.before.span(one)) != self.after.span(other) for one, other in places):
            return False
        for one, other in places:
            one.lineno, one.col_offset = other.lineno, other.col_offset
            one.end_lineno, one.end_col_offset = other.end_lineno, other.end_col_offset
        for blank, new in blanks:
            blank.targets, blank.uses = new.targets, new.uses
        return True

    def _is_as_unknown(self, one: Blank, other: Blank) -> bool:
        """Whether what does not parse may do what it might have done before: names that it mentions now or did then may
        differ if they stand nowhere else, as one does that is being typed.
        """
        if any(getattr(one, name) != getattr(other, name) for name in ("returns", "method", "height")):
            return False
        if [each.id for each in one.targets] != [each.id for each in other.targets]:
            return False
        words = {word for chain in _chains(one) ^ _chains(other) for word in chain}
        if not words:
            return True
        after = self.after
        below = other.lineno + other.height
        end = after.line_start(below) if below <= after.line_count else len(after.text)
        elsewhere = after.text[: after.line_start(other.lineno)] + after.text[end:]
        return re.search(rf"\b(?:{'|'.join(words)})\b|\bimport\s*\*", elsewhere) is None

    def adopted(self, parsed: Parsed) -> Parsed:
        """What was parsed, with the nodes of the statements that have the same text as before at its ends, and of those
        between them that say the same.
        """
        strict = bool(parsed.errors or self.before.errors)
        old, new = (
            _Texts(self.before, self.body, strict=strict),
            _Texts(self.after, parsed.tree.body, strict=strict),
        )
        nodes = list(parsed.tree.body)
        count = min(len(self.body), len(nodes))
        first = 0
        while first < count and old.same(first, new, first):
            first += 1
        last = 0
        while last < count - first and old.same(~last, new, ~last):
            last += 1
        between, until = slice(first, len(nodes) - last), len(self.body) - last
        nodes[between] = self._kept(self.body[first:until], nodes[between])
        for number in [*range(first), *range(-last, 0)]:
            node = self.body[number]
            _move([node], nodes[number].lineno - node.lineno)
            nodes[number] = node
        return parsed._replace(tree=ast.Module(nodes, []))


class _Texts:
    """The texts of statements; ``strict`` if something is broken in one of them, which ends nobody knows where."""

    def __init__(self, source: SourceFile, nodes: list[ast.stmt], *, strict: bool) -> None:
        self.source = source
        self.nodes = nodes
        self.strict = strict

    def same(self, number: int, other: _Texts, place: int) -> bool:
        """Whether two statements are the same, and sound."""
        one, two = self.nodes[number], other.nodes[place]
        if type(one) is not type(two) or self.text(number) != other.text(place):
            return False
        return not (self.strict and _broken(one)) and not (other.strict and _broken(two))

    def text(self, number: int) -> str:
        node, source = self.nodes[number], self.source
        start = source.line_start(first_line(node))
        return source.text[start : source.offset(last_line(node) + 1, 0)].rstrip()


def _move(statements: list[ast.stmt], by: int) -> None:
    """Say that statements stand some lines further down."""
    placed: list[Any] = [node for each in statements for node in walk(each) if hasattr(node, "lineno")] if by else []
    for node in placed:
        node.lineno += by
        node.end_lineno += by


def _broken(statement: ast.stmt) -> bool:
    """Whether something in a statement was left out."""
    todo: list[ast.AST] = [statement]
    for node in todo:
        if isinstance(node, Blank):
            return True
        for name in STATEMENTS:
            todo += getattr(node, name, ())
    return False


def _chains(blank: Blank) -> set[tuple[str, ...]]:
    """The dotted names that a text mentions which does not parse."""
    found: set[tuple[str, ...]] = set()
    for use in blank.uses:
        for each in use.args if isinstance(use, ast.Call) else ():
            names = [node.id if isinstance(node, ast.Name) else getattr(node, "attr", "") for node in walk(each)]
            found.add(tuple(names))
    return found


def _lines(text: str) -> list[str]:
    return layout.split_lines(text) if text else []


def _pairs(one: ast.AST, other: ast.AST) -> list[tuple[ast.AST, ast.AST]] | None:
    """The nodes of two trees beside each other; ``None`` if they do not say the same."""
    pairs = [(one, other)]
    for left, right in pairs:
        if type(left) is not type(right):
            return None
        if isinstance(left, Blank):
            continue  # what does not parse says nothing
        for name in left._fields:
            mine, yours = _items(left, name), _items(right, name)
            if len(mine) != len(yours):
                return None
            for each, its in zip(mine, yours, strict=True):
                if isinstance(each, ast.AST) and isinstance(its, ast.AST):
                    pairs.append((each, its))
                elif type(each) is not type(its) or each != its:
                    return None
    return pairs


def _items(node: ast.AST, name: str) -> Sequence[object]:
    """What a field of a node holds."""
    held: Any = getattr(node, name, None)
    return cast("list[object]", held) if isinstance(held, list) else (held,)
