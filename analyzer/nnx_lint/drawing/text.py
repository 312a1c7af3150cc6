"""A structure as a text tree, in Unicode or plain ASCII, for terminals and for files."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.drawing.words import headline, legend, more

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nnx_lint.drawing import Drawing
    from nnx_lint.drawing.structure import Node
    from nnx_lint.drawing.targets import Listed


class _Lines(NamedTuple):
    """The pieces that a tree is drawn with."""

    branch: str
    last: str
    through: str
    blank: str


UNICODE = _Lines("├─ ", "└─ ", "│  ", "   ")
ASCII = _Lines("|- ", "`- ", "|  ", "   ")

REPLACED = {"…": "...", "×": "x", "→": "->", "·": "-", "≥": ">="}
"""Characters of the texts that a terminal may lack."""

COLOURS: dict[str, str] = {
    "name": "1",
    "module": "36",
    "variable": "32",
    "array": "32",
    "quiet": "2",
    "wrong": "1;31",
}


def write(drawing: Drawing) -> str:
    """The tree, or the list of a file's Modules."""
    if drawing.root is None:
        return _listing(drawing.listed)
    lines = list(_tree(drawing.root, drawing))
    closing = legend(drawing.root)
    if closing:
        lines += ["", *closing]
    text = "\n".join(lines) + "\n"
    if not drawing.unicode:
        for character, instead in REPLACED.items():
            text = text.replace(character, instead)
    return text


def _listing(listed: Sequence[Listed]) -> str:
    if not listed:
        return "no Modules are defined here\n"
    width = max(len(item.name) for item in listed)
    bases = max(len(", ".join(item.bases)) for item in listed)
    return "".join(f"{item.name:{width}}  {', '.join(item.bases):{bases}}  {item.place}\n" for item in listed)


def _tree(root: Node, drawing: Drawing) -> Iterator[str]:
    """The lines of a tree. The stack is explicit: a structure may be deeper than Python's."""
    lines = UNICODE if drawing.unicode else ASCII
    todo: list[tuple[Node, str, str]] = [(root, "", "")]
    while todo:
        node, first, rest = todo.pop()
        yield first + _line(node, drawing.colour)
        below = [(child, rest + lines.branch, rest + lines.through) for child in node.children]
        notes = more(node)
        if notes:
            end = lines.branch if below else lines.last
            yield rest + end + _paint(notes, "quiet", drawing.colour)
        if below:
            child = below[-1][0]
            below[-1] = (child, rest + lines.last, rest + lines.blank)
        todo.extend(reversed(below))


def _line(node: Node, colour: bool) -> str:
    words = headline(node)
    name = _paint(words.name, "name", colour) + words.sign
    start = f"{name} " if name else ""
    parts = [start + _paint(words.what, node.kind.value, colour)]
    parts += [words.form, _paint(words.facts, "quiet", colour), _paint(words.wrong, "wrong", colour)]
    return "  ".join(part for part in parts if part)


def _paint(text: str, what: str, colour: bool) -> str:
    code = COLOURS.get(what)
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code and text else text
