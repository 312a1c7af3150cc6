"""The words that drawings use for a node, the same in every format that people read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.drawing.structure import CONTAINERS, Kind, Total, path_text
from nnx_rules.attributes import Status
from nnx_rules.shapes import UNKNOWN

if TYPE_CHECKING:
    from nnx_lint.drawing.structure import Node
    from nnx_rules.shapes import Form

MAX_ARGUMENTS = 60
MAX_VALUE = 60


class Headline(NamedTuple):
    """What is said of a node in one line.

    Attributes:
        name: the attribute or index.
        sign: what comes after the name: an equals sign before a value, a colon before a class.
        what: the class, with what it was made with; or the value.
        form: shape and dtype.
        facts: status, alternatives, parameters.
        wrong: the rule that the assignment breaks.
    """

    name: str
    sign: str
    what: str
    form: str
    facts: str
    wrong: str


def headline(node: Node) -> Headline:
    """What is said of a node in one line."""
    facts: list[str] = ["not known"] if node.kind is Kind.UNKNOWN and node.type != "?" else []
    if node.status is Status.STATIC:
        facts.append("static")
    elif node.status is Status.UNKNOWN:
        facts.append("data or static")
    if node.optional:
        facts.append(node.optional)
    if node.kind is not Kind.VARIABLE and node.total is not None and node.total.parameters:
        facts.append(total_text(node.total))
    name = node.name if node.path else ""
    sign = " =" if node.kind in {Kind.VALUE, Kind.UNKNOWN} else ":"
    return Headline(name, sign if name else "", what(node), form_text(node.form), ", ".join(facts), wrong(node))


def what(node: Node) -> str:
    """The class of a node with its arguments, or its value."""
    if node.kind is Kind.REFERENCE:
        place = path_text(node.target) or "the root"
        return f"{node.type} → {'like ' if node.recursive else ''}{place}"
    if node.kind in {Kind.VALUE, Kind.UNKNOWN}:
        return shortened(node.type, MAX_VALUE)
    text = node.type
    if node.arguments and node.kind is Kind.MODULE and node.path and node.qualified not in CONTAINERS:
        text += f"({shortened(node.arguments, MAX_ARGUMENTS)})"
    times = "" if node.count == 1 else " × ?" if node.count is None else f" × {node.count}"
    return text + times + (" …" if node.folded else "")


def form_text(form: Form) -> str:
    """A shape and a dtype, as Python would print them."""
    if form.shape is None:
        return form.dtype or ""
    shape = ", ".join(map(str, form.shape)) + ("," if len(form.shape) == 1 else "")
    return f"({shape})" + (f" {form.dtype}" if form.dtype else "")


def total_text(total: Total) -> str:
    """Parameters and their bytes."""
    count = f"{total.parameters:,} parameter" + ("" if total.parameters == 1 else "s")
    return count if total.bytes is None else f"{count}, {byte_text(total.bytes)}"


def byte_text(count: int) -> str:
    """A size in the largest unit that keeps it above one."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


def wrong(node: Node) -> str:
    """The rule that is broken here, if there is one."""
    return f"{node.rule}: see `nnx-lint rule {node.rule}`" if node.rule else ""


def more(node: Node) -> str:
    """What is said below a node, about what is not drawn."""
    return f"… {node.note}" if node.note else ""


def legend(root: Node) -> list[str]:
    """The closing lines: how much there is, and what the signs mean."""
    lines = ["the number of parameters depends on what is not known here"] if root.total is None else []
    if any(item.type == "?" or item.count is None or UNKNOWN in (item.form.shape or ()) for item in root.walk()):
        lines.append("? = not known from the source")
    return lines


def shortened(text: str, length: int) -> str:
    """A text in one line, of at most this length."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1] + "…"
