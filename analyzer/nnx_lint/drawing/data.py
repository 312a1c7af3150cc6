"""A structure as JSON, for programs.

Keys that would say nothing are left out: ``null``, empty texts and lists, a count of one. The key ``version`` is raised
when a key changes its meaning or goes; new keys may come at any time.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nnx_lint.drawing import Drawing
    from nnx_lint.drawing.structure import Node, Place

VERSION = 1


def write(drawing: Drawing) -> str:
    """The structure, or the list of a file's Modules."""
    answer: dict[str, object] = {"version": VERSION, "target": drawing.title}
    if drawing.root is not None:
        answer["root"] = node_data(drawing.root)
    else:
        answer["modules"] = [
            {"name": item.name, "bases": list(item.bases), "defined": _place(item.place)} for item in drawing.listed
        ]
    return json.dumps(answer, indent=2, ensure_ascii=False) + "\n"


def node_data(node: Node) -> dict[str, object]:
    """One node with all below it. A count of ``null`` is any number, and so an element of ``path``."""
    shape = node.form.shape
    facts: dict[str, object] = {
        "name": node.name,
        "path": list(node.path),
        "kind": node.kind.value,
        "type": node.type,
        "qualified": node.qualified,
        "status": node.status.value if node.status is not None else None,
        "arguments": node.arguments,
        "shape": None if shape is None else [item if isinstance(item, int) else str(item) for item in shape],
        "dtype": node.form.dtype,
        "optional": node.optional,
        "rule": node.rule,
        "note": node.note,
        "folded": node.folded or None,
        "assigned": _place(node.assigned),
        "defined": _place(node.defined),
        "parameters": node.total.parameters if node.total is not None else None,
        "bytes": node.total.bytes if node.total is not None else None,
    }
    kept = {key: value for key, value in facts.items() if value not in (None, "") or key == "path"}
    if node.count != 1:
        kept["count"] = node.count
    if node.kind.value == "reference":
        kept["target"] = list(node.target)
        kept["recursive"] = node.recursive
    if node.children:
        kept["children"] = [node_data(child) for child in node.children]
    return kept


def _place(place: Place | None) -> dict[str, object] | None:
    if place is None:
        return None
    where: dict[str, object] = {"path": place.path, "line": place.line}
    return where if place.cell is None else {**where, "cell": place.cell}
