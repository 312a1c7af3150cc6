"""Commands that the client can run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from nnx_lint import pages
from nnx_lint.drawing.data import node_data
from nnx_lint.drawing.targets import DrawingError
from nnx_lint.selection import nearest
from nnx_lsp.convert import page_uri, table
from nnx_lsp.documents import path_of, uri_of
from nnx_rules.rules import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nnx_lsp.documents import Document
    from nnx_lsp.server import Server

EXPLAIN = "nnx.explainRule"
RULES = "nnx.rules"
GRAPH = "nnx.graph"

VERSION = 1
"""Of the answer to ``nnx.graph``."""

Table = dict[str, Any]


def register(server: Server) -> None:
    """Register the handlers."""

    @server.command(EXPLAIN)
    def explain(word: Any = None) -> dict[str, str] | None:
        rule = REGISTRY.get(str(word))
        if rule is None:
            hint = nearest(str(word), (name for each in REGISTRY for name in (each.code, each.name)))
            server.say_once(f"nnx: there is no rule {word}" + (f"; did you mean {hint}?" if hint else ""))
            return None
        uri = page_uri(rule)
        if not server.client.pages:
            if uri is not None and server.client.shows_documents:
                server.window_show_document(types.ShowDocumentParams(uri, take_focus=True))
            else:
                message = f"{rule.name} ({rule.code}): {rule.summary}"
                server.window_show_message(types.ShowMessageParams(types.MessageType.Info, message))
        return {"code": rule.code, "name": rule.name, "markdown": pages.page(rule)}

    @server.command(RULES)
    def rules() -> list[dict[str, str]]:
        return [{"code": rule.code, "name": rule.name, "summary": rule.summary} for rule in REGISTRY]

    @server.command(GRAPH)
    async def graph(place: Any = None) -> Table:
        asked = table(place)
        return await server.ask(lambda: _graph(server, asked))


def _graph(server: Server, asked: Mapping[str, Any]) -> Table:
    """The structure of a class, by its name or by a position in it; or the list of those that could be drawn."""
    uri = asked.get("uri", "")
    document = server.session.document(uri)
    path = document.path if document is not None else path_of(uri)
    structures = server.session.analysis(path).structures
    name: str | None = asked.get("class")
    answer: Table = {"version": VERSION, "class": None, "modules": []}
    try:
        position = asked.get("position")
        if name is None and document is not None and position is not None:
            where = types.Position(position["line"], position["character"])
            name = structures.class_at(path, document.offset(uri, where))
        node = structures.draw(path, name) if name is not None else None
        if node is not None:
            root = _located(server, node_data(node))
            return {"version": VERSION, "class": name, "target": f"{uri}:{name}", "root": root}
        answer["modules"] = [
            {"name": each.name, "bases": list(each.bases), "defined": _place(server, vars_of(each.place))}
            for each in structures.listed(path)
        ]
    except DrawingError as error:
        answer["problem"] = str(error)
    return answer


def vars_of(place: Any) -> Table:
    """A place as the drawing writes it."""
    return {"path": place.path, "line": place.line, "cell": place.cell}


def _located(server: Server, node: Table) -> Table:
    """A drawn node with URIs in the place of paths."""
    for key in ("assigned", "defined"):
        if key in node:
            node[key] = _place(server, node[key])
    for child in node.get("children", ()):
        _located(server, child)
    return node


def _place(server: Server, place: Table) -> Table:
    document: Document | None = server.session.documents.get(place["path"])
    cell = place.get("cell")
    if document is None:
        return {"uri": uri_of(place["path"]), "line": place["line"]}
    return {"uri": document.cells[(cell or 1) - 1].uri, "line": place["line"]}
