"""A structure as a Mermaid flowchart, for Markdown pages that render it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.drawing.boxes import Box, boxes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.drawing import Drawing

ENTITIES = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;"}
"""Characters that have a meaning in a label, in the notation of Mermaid."""


def write(drawing: Drawing) -> str:
    """The flowchart, without the fence that a Markdown page puts around it."""
    assert drawing.root is not None
    return "\n".join(["flowchart LR", *_lines(boxes(drawing.root))]) + "\n"


def _lines(root: Box) -> Iterator[str]:
    todo = [(root, "n0")]
    count = 0
    while todo:
        box, name = todo.pop(0)
        title = f"<b>{_text(box.title)}</b>" + (f"<br/>{_text(box.facts)}" if box.facts else "")
        arrows = {arrow.row for arrow in box.arrows}
        rows = [
            f"{_text(row.name)}{': ' if row.name else ''}{_text(row.text)}"
            for index, row in enumerate(box.rows)
            if index not in arrows
        ]
        body = "<hr/>" + "<br/>".join(rows) if rows else ""
        yield f'    {name}["{title}{body}"]'
        for arrow in box.arrows:
            count += 1
            todo.append((arrow.to, f"n{count}"))
            yield f'    {name} -- "{_text(arrow.label)}" --> n{count}'


def _text(text: str) -> str:
    return "".join(ENTITIES.get(character, character) for character in text)
