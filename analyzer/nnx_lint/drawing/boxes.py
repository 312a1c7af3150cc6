"""A structure as boxes and arrows, for formats that draw: one box a Module of the project or container, one row an
attribute.

A built-in layer is a row of the box that holds it, with what it holds in short, and so is everything that is no Module.
Invariants: boxes come in the order of drawing, parents first; each is reached by one arrow, so they form a tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.drawing.structure import CONTAINERS, Kind
from nnx_lint.drawing.words import form_text, headline, more, shortened, total_text
from nnx_rules.records import Entity, made
from nnx_rules.shapes import Form

if TYPE_CHECKING:
    from nnx_lint.drawing.structure import Node

MAX_ROWS = 60
"""How many rows a box shows; a drawing is for looking at, the other formats have all."""

MAX_ROW = 78
SHOWN_FORMS = 3
BUILT_IN = "nnx."


class Row(Entity):
    """One line of a box. ``look`` is the name of a style: the kind of the node, ``static``, or ``wrong``."""

    name: str
    text: str
    look: str


class Box(Entity):
    """One box: the class as its title, what is said of all of it, and its rows."""

    title: str
    facts: str
    rows: list[Row] = made(factory=list[Row])
    arrows: list[Arrow] = made(factory=list["Arrow"])


class Arrow(Entity):
    """From a row of a box, by its position, to the box of what the attribute holds."""

    row: int
    label: str
    to: Box


def boxes(root: Node) -> Box:
    """The box of a structure's root, with all others below it."""
    box = Box(_title(root), total_text(root.total) if root.total is not None and root.total.parameters else "")
    for child in root.children:
        _add(box, child)
    note = more(root)
    if note:
        box.rows.append(Row("", note, "quiet"))
    if len(box.rows) > MAX_ROWS:
        hidden = len(box.rows) - MAX_ROWS
        box.arrows = [arrow for arrow in box.arrows if arrow.row < MAX_ROWS]
        box.rows[MAX_ROWS:] = [Row("", f"… and {hidden} more", "quiet")]
    return box


def _add(box: Box, node: Node) -> None:
    words = headline(node)
    look = "wrong" if node.rule else "static" if words.facts.startswith("static") else node.kind.value
    if is_box(node):
        inner = node.children[0] if len(node.children) == 1 and _is_container(node) else node
        label = node.name if inner is node else f"{node.name}{inner.name}"
        shown = _title(node) if inner is node else f"{_title(node)} of {_title(inner)}"
        box.arrows.append(Arrow(len(box.rows), label + _times(inner), boxes(inner)))
        box.rows.append(_row(node.name, shown + _times(inner), [node.optional, node.rule], look))
    else:
        contents = _contents(node)
        what = node.type if contents and len(node.children) <= SHOWN_FORMS and node.kind is Kind.MODULE else words.what
        facts = [words.form, contents, "static" if look == "static" else "", node.optional, node.rule]
        box.rows.append(_row(node.name, what, facts, look))


def _row(name: str, text: str, facts: list[str], look: str) -> Row:
    said = " · ".join(fact for fact in (text, *facts) if fact)
    return Row(name, shortened(said, MAX_ROW), look)


def _title(node: Node) -> str:
    return node.type


def _times(node: Node) -> str:
    return "" if node.count == 1 else " × ?" if node.count is None else f" × {node.count}"


def _is_container(node: Node) -> bool:
    return node.kind is Kind.CONTAINER or node.qualified in CONTAINERS


def is_box(node: Node) -> bool:
    """Whether a node is drawn as a box of its own."""
    if not node.children:
        return False
    if node.kind is Kind.CHOICE or _is_container(node):
        return any(is_box(child) for child in node.children) or len(node.children) > SHOWN_FORMS
    if node.kind is not Kind.MODULE:
        return False
    return not node.qualified.startswith(BUILT_IN) or any(is_box(child) for child in node.children)


def _contents(node: Node) -> str:
    """What a built-in layer or a small container holds, in short."""
    if not node.children:
        return ""
    leaves = [child for child in node.children if child.kind is Kind.VARIABLE]
    if len(leaves) == len(node.children) <= SHOWN_FORMS:
        dtypes = {leaf.form.dtype for leaf in leaves}
        common = dtypes.pop() if len(dtypes) == 1 else None
        return ", ".join(_leaf(leaf, common) for leaf in leaves) + (f" {common}" if common else "")
    layers = node.children[0].children if node.qualified == "nnx.Sequential" else []
    if 0 < len(layers) <= SHOWN_FORMS:
        return ", ".join(layer.type for layer in layers)
    if node.total is not None and node.total.parameters:
        return total_text(node.total)
    return ", ".join(child.type for child in node.children) if len(node.children) <= SHOWN_FORMS else ""


def _leaf(leaf: Node, common: str | None) -> str:
    form = Form(leaf.form.shape, leaf.form.dtype if common is None else None)
    return f"{leaf.name} {form_text(form) or leaf.type}" + ("?" if leaf.optional else "")
