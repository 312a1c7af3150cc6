"""Clients that are wrong, out of order, or in a hurry: every request is answered, and nobody sees an error of ours."""

from __future__ import annotations

import random
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import pytest
from lsprotocol import types

from nnx_lsp.server import Protocol, build
from wire import Wire

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """\
from flax import nnx
import jax

class Net(nnx.Module):
    def __init__(self, rngs):
        self.a = [nnx.Linear(2, 3, rngs=rngs)]
        self.é = '\U0001f600'; self.b = nnx.Param(1)

net = Net(nnx.Rngs(0))
g, p, rest = nnx.split(net, nnx.Param, ...)

@jax.jit
def f(x):
    return net(x)

f(1)  # nnx: ignore[string-filter]
"""

TEXTS = (
    PROGRAM,
    PROGRAM.replace("\n", "\r\n"),
    "\ufeff" + PROGRAM.replace("    ", "\t"),
    "",
    "\0\0",
    "(((((" * 50,
    "\ud800 x",
    "from flax import nnx\nnnx.",
    "# nnx: ignore[",
    "select = 3\n",
    "match x:\n case",
)

REQUESTS = (
    "textDocument/hover",
    "textDocument/completion",
    "textDocument/definition",
    "textDocument/inlayHint",
    "textDocument/documentSymbol",
    "textDocument/semanticTokens/full",
    "textDocument/codeLens",
    "textDocument/documentLink",
    "textDocument/codeAction",
    "textDocument/diagnostic",
    "codeAction/resolve",
    "workspace/diagnostic",
    "workspace/executeCommand",
    "nnx/unknown",
)

JUNK = (None, 1, "x", [], {}, [1], {"uri": 3}, {"uri": "x", "kind": "fix"}, {"position": {"line": 1}}, True)

NUMBERS = (0, 1, 4, 5, 6, 12, 50, 2**31 - 1, 2**31, -1)

REFUSED = {-32602, -32601, -32800}
"""Wrong parameters, unknown method, cancelled."""


class Client:
    """Makes up messages."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.numbers = random.Random(seed)
        self.folder = folder
        names = ("a.py", "b.py", "nnx-lint.toml", "nb.ipynb", "sub/x.py")
        schemes = ("untitled:1", "git:/x/a.py?ref=1", "cell:1", "", "no-uri", "file://host/x.py", folder.as_uri())
        self.uris = (*((folder / name).as_uri() for name in names), *schemes)

    def place(self) -> dict[str, int]:
        return {"line": self.numbers.choice(NUMBERS), "character": self.numbers.choice(NUMBERS)}

    def span(self) -> dict[str, Any]:
        return {"start": self.place(), "end": self.place()}

    def request(self) -> dict[str, Any]:
        pick = self.numbers.choice
        method, uri = pick(REQUESTS), pick(self.uris)
        params: dict[str, Any] = {"textDocument": {"uri": uri}, "position": self.place(), "range": self.span()}
        if method == "textDocument/codeAction":
            params["context"] = {"diagnostics": [], "only": pick(([], ["quickfix"], ["source"]))}
        elif method == "codeAction/resolve":
            params = {"title": "x", "data": pick(JUNK)}
        elif method == "workspace/diagnostic":
            params = {"previousResultIds": [{"uri": uri, "value": "x"}]}
        elif method == "workspace/executeCommand":
            given = [pick((*JUNK, "NNX101", {"uri": uri, "class": "Net"}))][: pick((0, 1, 1))]
            params = {"command": pick(("nnx.explainRule", "nnx.rules", "no")), "arguments": given}
        if self.numbers.random() < 0.1:
            params[pick(list(params))] = pick(JUNK)
        return {"method": method, "params": params}

    def notification(self) -> dict[str, Any]:
        pick = self.numbers.choice
        uri, text = pick(self.uris), pick(TEXTS)
        changes = [{"text": text}, {"range": self.span(), "text": pick(("x", "\n", "", "é\U0001f600", "self."))}]
        file = self.folder / "b.py"
        file.write_text(pick(TEXTS[:4]))
        cells = [{"kind": 2, "document": "cell:1"}]
        notebook = {"uri": self.uris[3], "notebookType": "jupyter-notebook", "version": 0, "cells": cells}
        item = {"uri": "cell:1", "languageId": "python", "version": 0, "text": text}
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        method, params = pick(
            (
                *[("textDocument/didOpen", {"textDocument": document})] * 2,
                *[("textDocument/didChange", {"textDocument": document, "contentChanges": [pick(changes)]})] * 4,
                ("textDocument/didClose", {"textDocument": document}),
                ("textDocument/didChange", pick(JUNK)),
                ("notebookDocument/didOpen", {"notebookDocument": notebook, "cellTextDocuments": [item]}),
                ("notebookDocument/didClose", {"notebookDocument": notebook, "cellTextDocuments": [item]}),
                ("workspace/didChangeWatchedFiles", {"changes": [{"uri": file.as_uri(), "type": pick((1, 2, 3))}]}),
                ("workspace/didChangeConfiguration", {"settings": pick(({"nnx": {"ignore": ["NNX1"]}}, *JUNK))}),
                ("$/cancelRequest", {"id": self.numbers.randrange(300)}),
                ("nnx/unknown", pick(JUNK)),
            )
        )
        return {"method": method, "params": params}


@pytest.mark.parametrize("seed", range(2))
def test_every_request_is_answered_whatever_comes(tmp_path: Path, seed: int) -> None:
    client = Client(tmp_path, seed)
    wire = Wire(tmp_path, {"window": {"workDoneProgress": True}, "notebookDocument": {"synchronization": {}}})
    asked = set(range(0, 250, 2))
    for number in range(250):
        if number in asked:
            wire.send(id=number, **client.request())
        else:
            wire.send(**client.notification())
    answered: dict[int, dict[str, Any]] = {}
    while asked - answered.keys():
        found = wire.until(lambda each: "id" in each and "method" not in each)
        answered[found["id"]] = found
    assert {each["error"]["code"] for each in answered.values() if "error" in each} <= REFUSED
    wire.send(method="textDocument/didOpen", params={"textDocument": item(tmp_path / "sane.py")})
    report = wire.ask("textDocument/diagnostic", {"textDocument": {"uri": (tmp_path / "sane.py").as_uri()}})
    assert {each["code"][:3] for each in report["result"]["items"]} <= {"NNX"}  # which ones, the last settings say
    wire.end()
    assert not [text for text in wire.shown if "internal error" in text]


def item(path: Path) -> dict[str, Any]:
    return {"uri": path.as_uri(), "languageId": "python", "version": 0, "text": PROGRAM}


def test_what_is_not_open_is_neither_changed_nor_closed(tmp_path: Path) -> None:
    wire = Wire(tmp_path, {})
    document = {"uri": (tmp_path / "never.py").as_uri(), "version": 1}
    wire.send(method="textDocument/didChange", params={"textDocument": document, "contentChanges": [{"text": "x"}]})
    wire.send(method="textDocument/didClose", params={"textDocument": document})
    assert len(wire.ask("workspace/executeCommand", {"command": "nnx.rules"})["result"]) > 50
    assert "never.py is not open" in wire.end()
    assert wire.shown == []


def test_a_scan_that_was_ended_takes_a_late_answer(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(PROGRAM)
    wire = Wire(tmp_path, {"window": {"workDoneProgress": True}})
    creates = []
    for ignored in ("NNX8", "NNX9"):
        creates.append(wire.until(lambda found: found.get("method") == "window/workDoneProgress/create"))
        settings = {"nnx": {"ignore": [ignored]}}
        wire.send(method="workspace/didChangeConfiguration", params={"settings": settings})  # another scan begins
    for create in creates:
        wire.send(id=create["id"], result=None)
    wire.until(lambda found: found.get("method") == "$/progress" and found["params"]["value"]["kind"] == "end")
    assert "InvalidStateError" not in wire.end()
    assert wire.shown == []


def test_what_was_handled_is_not_kept() -> None:
    server = build()
    kept = server.protocol._request_futures
    assert isinstance(server.protocol, Protocol)
    for number in range(5):
        kept[str(number)] = Future()
        kept[str(number)].set_result(None)
    kept["asked"] = Future()
    server.protocol.handle_message(types.SetTraceNotification(types.SetTraceParams(types.TraceValue.Off)))
    assert list(kept) == ["asked"]
