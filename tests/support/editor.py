"""An editor without a screen: a client of the language server, over stdio, under recorded capabilities.

pytest-lsp checks every answer against what the editor in question says that it understands.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest_lsp
from lsprotocol import types
from pytest_lsp.client import make_test_lsp_client

from repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_lsp import LanguageClient

PATIENCE = 30
"""Seconds after which a test gives up."""

REFRESHES = (
    types.WORKSPACE_INLAY_HINT_REFRESH,
    types.WORKSPACE_SEMANTIC_TOKENS_REFRESH,
    types.WORKSPACE_CODE_LENS_REFRESH,
)
"""What a server asks for when all that it has said may be out of date, diagnostics aside."""

SOURCES = [ROOT / "runtime", ROOT / "analyzer", ROOT / "lsp"]

COMMAND = [sys.executable, "-m", "nnx_lsp", "--stdio"]


def environment() -> dict[str, str]:
    """One in which the server is found, whether it is installed or not."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, SOURCES)), "VIRTUAL_ENV": "", "CONDA_PREFIX": ""}


def capabilities(editor: str) -> types.ClientCapabilities:
    """What an editor can do; ``pulling`` is a VS Code of today as far as the server cares."""
    if editor != "pulling":
        return pytest_lsp.client_capabilities(editor)
    found = pytest_lsp.client_capabilities("visual_studio_code")
    assert found.text_document is not None
    assert found.workspace is not None
    found.text_document.diagnostic = types.DiagnosticClientCapabilities(
        related_information=True,
        tag_support=types.ClientDiagnosticsTagOptions(list(types.DiagnosticTag)),
        code_description_support=True,
        data_support=True,
    )
    found.text_document.inlay_hint = types.InlayHintClientCapabilities()
    found.workspace.diagnostics = types.DiagnosticWorkspaceClientCapabilities(refresh_support=True)
    found.workspace.inlay_hint = types.InlayHintWorkspaceClientCapabilities(refresh_support=True)
    found.notebook_document = types.NotebookDocumentClientCapabilities(
        types.NotebookDocumentSyncClientCapabilities(execution_summary_support=True)
    )
    return found


class Editor:
    """A running server, and what an editor does with it; a position is written as the text that it stands before."""

    def __init__(self, client: LanguageClient, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.capabilities: types.ServerCapabilities | None = None
        self.registered: list[str] = []
        self.refreshed: set[str] = set()

    @classmethod
    async def start(
        cls,
        editor: str | types.ClientCapabilities,
        *folders: Path,
        options: object = None,
        settings: dict[str, Any] | None = None,
        root: Path | None = None,
        command: Sequence[str] = COMMAND,
    ) -> Editor:
        """Start a server, and greet it."""
        client = make_test_lsp_client()
        self = cls(client, root or folders[0])
        client.feature(types.CLIENT_REGISTER_CAPABILITY)(lambda params: self._registered(params))
        for method in REFRESHES:
            client.feature(method)(lambda _, method=method: self.refreshed.add(method))
        client.set_configuration({"nnx": settings or {}})
        await client.start_io(*command, env=environment())
        params = types.InitializeParams(
            capabilities=capabilities(editor) if isinstance(editor, str) else editor,
            workspace_folders=[types.WorkspaceFolder(folder.as_uri(), folder.name) for folder in folders],
            initialization_options=options,
            process_id=os.getpid(),
        )
        self.capabilities = (await client.initialize_session(params)).capabilities
        return self

    def _registered(self, params: types.RegistrationParams) -> None:
        self.registered += [each.method for each in params.registrations]

    async def stop(self) -> None:
        """Say good-bye."""
        await self.client.shutdown_session()

    # -- documents

    def uri(self, name: str) -> str:
        """The URI of a file of the folder; a URI stays what it is."""
        return name if ":" in name else (self.folder / name).as_uri()

    def open(self, name: str, text: str, language: str = "python") -> str:
        """Open a document; returns its URI."""
        uri = self.uri(name)
        self.texts[uri], self.versions[uri] = text, 1
        item = types.TextDocumentItem(uri, language, 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def replace(self, uri: str, old: str, new: str) -> None:
        """Replace a text that stands in a document once."""
        text = self.texts[uri]
        assert text.count(old) == 1, old
        start = text.index(old)
        self.versions[uri] += 1
        self.texts[uri] = text.replace(old, new)
        place = types.Range(self.position(text, start), self.position(text, start + len(old)))
        change = types.TextDocumentContentChangePartial(range=place, text=new)
        document = types.VersionedTextDocumentIdentifier(uri=uri, version=self.versions[uri])
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    def close(self, uri: str) -> None:
        """Close a document."""
        del self.texts[uri]
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def touch(self, name: str, text: str | None) -> str:
        """Write or remove a file, and tell the server as a watcher does."""
        path = self.folder / name
        kind = types.FileChangeType.Changed if path.exists() else types.FileChangeType.Created
        if text is None:
            path.unlink()
            kind = types.FileChangeType.Deleted
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        event = types.FileEvent(self.uri(name), kind)
        self.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
        return self.uri(name)

    @property
    def encoding(self) -> str:
        """The codec whose units positions count in."""
        assert self.capabilities is not None
        named = self.capabilities.position_encoding or types.PositionEncodingKind.Utf16
        return {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}[str(getattr(named, "value", named))]

    @property
    def unit(self) -> int:
        """How many bytes a unit of positions is."""
        return {"utf-8": 1, "utf-16-le": 2, "utf-32-le": 4}[self.encoding]

    def position(self, text: str, offset: int) -> types.Position:
        """The position of an offset."""
        before = text[:offset].split("\n")
        return types.Position(len(before) - 1, len(before[-1].encode(self.encoding)) // self.unit)

    def at(self, uri: str, text: str, after: str = "") -> types.Position:
        """The position of a text in a document, the first one after another text."""
        whole = self.texts[uri]
        return self.position(whole, whole.index(text, whole.index(after)))

    def range_of(self, uri: str, text: str) -> types.Range:
        """The range of the first occurrence of a text."""
        start = self.texts[uri].index(text)
        whole = self.texts[uri]
        return types.Range(self.position(whole, start), self.position(whole, start + len(text)))

    def edited(self, uri: str, edits: list[Any]) -> str:
        """The text of a document after some edits."""
        text = self.texts[uri]
        starts = [0]
        for line in text.split("\n"):
            starts.append(starts[-1] + len(line) + 1)

        def offset(place: types.Position) -> int:
            line = text[starts[place.line] : starts[place.line + 1] - 1] if place.line + 1 < len(starts) else ""
            return starts[place.line] + len(
                line.encode(self.encoding)[: self.unit * place.character].decode(self.encoding)
            )

        spans = sorted(
            ((offset(edit.range.start), offset(edit.range.end), edit.new_text) for edit in edits), reverse=True
        )
        for start, end, new in spans:
            text = text[:start] + new + text[end:]
        return text

    # -- answers

    async def published(self, uri: str, wanted: Callable[[list[str]], bool], what: str = "") -> list[types.Diagnostic]:
        """The diagnostics of a document, pushed or pulled, as soon as their codes are as wanted."""
        pulls = self.capabilities is not None and self._pulls

        async def wait() -> list[types.Diagnostic]:
            while True:
                found = await self.pull(uri) if pulls else self.client.diagnostics.get(uri)
                if found is not None and wanted([str(each.code) for each in found]):
                    return list(found)
                if not pulls:
                    await self.client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)

        return await asyncio.wait_for(wait(), PATIENCE)

    @property
    def _pulls(self) -> bool:
        return self.client.capabilities.text_document.diagnostic is not None  # type: ignore[union-attr]

    async def pull(self, uri: str, known: str | None = None) -> list[types.Diagnostic]:
        """The diagnostics of a document, asked for."""
        document = types.TextDocumentIdentifier(uri)
        params = types.DocumentDiagnosticParams(document, previous_result_id=known)
        report = await self.client.text_document_diagnostic_async(params)
        return list(getattr(report, "items", []))

    async def actions(self, uri: str, place: types.Range, *kinds: str) -> list[types.CodeAction]:
        """The code actions at a place that have edits."""
        document = types.TextDocumentIdentifier(uri)
        params = types.CodeActionParams(document, place, types.CodeActionContext([], only=list(kinds) or None))
        found = await asyncio.wait_for(self.client.text_document_code_action_async(params), PATIENCE)
        # lsprotocol takes an action with a command for a command.
        return [action for action in found or () if isinstance(action, types.CodeAction)]

    async def applied(self, uri: str, action: types.CodeAction) -> str:
        """The text of a document after an action."""
        if action.edit is None:
            action = await asyncio.wait_for(self.client.code_action_resolve_async(action), PATIENCE)
        assert action.edit is not None
        changes = dict(action.edit.changes or {})
        for change in action.edit.document_changes or ():
            assert isinstance(change, types.TextDocumentEdit)
            assert change.text_document.version == self.versions[change.text_document.uri]
            changes[change.text_document.uri] = change.edits  # type: ignore[assignment]
        assert list(changes) == [uri]
        return self.edited(uri, list(changes[uri]))

    async def hover(self, uri: str, place: types.Position) -> str | None:
        """The text of a hover."""
        params = types.HoverParams(types.TextDocumentIdentifier(uri), place)
        found = await asyncio.wait_for(self.client.text_document_hover_async(params), PATIENCE)
        if found is None:
            return None
        assert isinstance(found.contents, types.MarkupContent)
        return found.contents.value

    async def command(self, name: str, *arguments: Any) -> Any:
        """The answer to a command, as plain data."""
        params = types.ExecuteCommandParams(name, list(arguments))
        return plain(await asyncio.wait_for(self.client.workspace_execute_command_async(params), PATIENCE))

    def whole(self, uri: str) -> types.Range:
        """All of a document."""
        return types.Range(types.Position(0, 0), self.position(self.texts[uri], len(self.texts[uri])))


def plain(value: Any) -> Any:
    """What was sent without a type, as tables and lists."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def message(**content: Any) -> bytes:
    """A message as it goes over the wire."""
    body = json.dumps({"jsonrpc": "2.0", **content}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
