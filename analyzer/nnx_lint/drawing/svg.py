"""A structure as an SVG drawing, laid out without help.

The layout is a tree from left to right: a column a level, each box at the top of the space that it and what it holds
take, and arrows that leave at the row of their attribute. Widths are those of a monospaced font, so nothing has to be
measured. The drawing follows the reader's light or dark setting where its viewer does.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from nnx_lint.drawing.boxes import Arrow, Box, boxes
from nnx_rules.records import Entity, made

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.drawing import Drawing
    from nnx_lint.drawing.structure import Node

CHARACTER = 7.3
"""Width of a character at 12 pixels, a little more than that of the widest common monospaced font."""
ROW = 18
TITLE = 26
PADDING = 10
GAP_ACROSS = 70
GAP_DOWN = 18
MARGIN = 16

STYLE = """\
.drawing { font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #1f2328; }
.drawing .box { fill: #ffffff; stroke: #8c959f; }
.drawing .head { fill: #ddf4ff; }
.drawing .title { font-weight: bold; }
.drawing .quiet, .drawing .facts { fill: #59636e; }
.drawing .name { fill: #0550ae; }
.drawing .static { fill: #59636e; }
.drawing .variable, .drawing .array { fill: #116329; }
.drawing .wrong { fill: #cf222e; }
.drawing .arrow { fill: none; stroke: #8c959f; stroke-width: 1.2; }
@media (prefers-color-scheme: dark) {
.drawing { fill: #d1d7e0; }
.drawing .box { fill: #151b23; stroke: #656c76; }
.drawing .head { fill: #0c2d4d; }
.drawing .quiet, .drawing .facts, .drawing .static { fill: #9198a1; }
.drawing .name { fill: #79c0ff; }
.drawing .variable, .drawing .array { fill: #7ee787; }
.drawing .wrong { fill: #ff7b72; }
.drawing .arrow { stroke: #656c76; }
}
"""


class _Placed(Entity):
    """A box with its place."""

    box: Box
    depth: int
    top: float = 0.0
    arrows: list[tuple[Arrow, _Placed]] = made(factory=list["tuple[Arrow, _Placed]"])

    @property
    def height(self) -> float:
        return TITLE + ROW * len(self.box.rows) + (PADDING if self.box.rows else 0)

    @property
    def width(self) -> float:
        name, text = columns(self.box)
        title = len(self.box.title) + (len(self.box.facts) + 2 if self.box.facts else 0)
        return CHARACTER * max(title + 1, name + text) + 2 * PADDING

    def middle(self, row: int) -> float:
        return self.top + TITLE + ROW * row + ROW / 2 + PADDING / 2


def columns(box: Box) -> tuple[int, int]:
    """The widths of the names, with a gap, and of the texts of a box, in characters."""
    name = max((len(row.name) for row in box.rows), default=0)
    return name + 2 if name else 0, max((len(row.text) for row in box.rows), default=0)


def write(drawing: Drawing) -> str:
    """The drawing as a document of its own."""
    assert drawing.root is not None
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + element(drawing.root, drawing.title)


def element(root: Node, title: str) -> str:
    """The drawing as an ``svg`` element."""
    top = _place(boxes(root), 0)
    everything = list(_all(top))
    _stack(top, MARGIN)
    widths = [
        max(item.width for item in everything if item.depth == depth)
        for depth in range(1 + max(item.depth for item in everything))
    ]
    lefts = [MARGIN + sum(widths[:depth]) + GAP_ACROSS * depth for depth in range(len(widths))]
    width = lefts[-1] + widths[-1] + MARGIN
    height = max(item.top + item.height for item in everything) + MARGIN
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>',
        f"<title>{escape(title)}</title>",
        f"<style>\n{STYLE}</style>",
        '<g class="drawing">',
    ]
    for item in everything:
        for arrow, to in item.arrows:
            lines.append(_arrow(lefts[item.depth] + item.width, item.middle(arrow.row), lefts[to.depth], to.top))
    for item in everything:
        lines += _box(item, lefts[item.depth])
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"


def _place(box: Box, depth: int) -> _Placed:
    placed = _Placed(box, depth)
    placed.arrows = [(arrow, _place(arrow.to, depth + 1)) for arrow in box.arrows]
    return placed


def _all(placed: _Placed) -> Iterator[_Placed]:
    yield placed
    for _, child in placed.arrows:
        yield from _all(child)


def _stack(placed: _Placed, top: float) -> float:
    """Place a box and all that it holds below one another from ``top`` on; where the next one can start."""
    placed.top = top
    below = top
    for _, child in placed.arrows:
        below = _stack(child, below)
    return max(below, top + placed.height + GAP_DOWN)


def _arrow(x1: float, y1: float, x2: float, top: float) -> str:
    y2 = top + TITLE / 2
    bend = (x2 - x1) / 2
    return (
        f'<path class="arrow" d="M {x1:.1f} {y1:.1f} C {x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} '
        f'{x2:.1f} {y2:.1f}"/>'
    )


def _box(item: _Placed, left: float) -> Iterator[str]:
    box, top = item.box, item.top
    yield _rectangle("box", left, top, item.width, item.height, 5)
    yield _rectangle("head", left + 1, top + 1, item.width - 2, TITLE - 2, 4)
    facts = f'<tspan class="facts" dx="{2 * CHARACTER:.1f}">{escape(box.facts)}</tspan>' if box.facts else ""
    yield _text(left + PADDING, top + 17, "title", box.title, facts)
    name_width, _ = columns(box)
    for index, row in enumerate(box.rows):
        y = item.middle(index) + 4
        if row.name:
            yield _text(left + PADDING, y, "name", row.name)
        yield _text(left + PADDING + CHARACTER * name_width, y, row.look, row.text)


def _rectangle(look: str, x: float, y: float, width: float, height: float, radius: int) -> str:
    return f'<rect class="{look}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius}"/>'


def _text(x: float, y: float, look: str, text: str, after: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{look}" xml:space="preserve">{escape(text)}{after}</text>'
