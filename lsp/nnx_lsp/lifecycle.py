"""What the client tells without asking for an answer: documents, folders, settings, files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from nnx_lint.ide.configuration import is_configuration
from nnx_lint.ide.settings import BY_SETTING, SECTION
from nnx_lint.target.requirements import speaks
from nnx_lsp.convert import table
from nnx_lsp.documents import path_of
from nnx_lsp.server import MALFORMED

if TYPE_CHECKING:
    from nnx_lsp.server import Server


def register(server: Server) -> None:
    """Register the handlers."""

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.begin(params)

    @server.feature(MALFORMED)
    def malformed(params: Any) -> None:
        raise JsonRpcInvalidParams(f"the parameters of {table(params)['method']} cannot be understood")

    @server.feature(types.INITIALIZED)
    async def initialized(params: types.InitializedParams) -> None:
        await server.settle()

    @server.feature(types.SHUTDOWN)
    def shutdown(params: None) -> None:
        server.worker.stop()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        server.opened(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        server.opened(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        server.closed(params.text_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def did_open_notebook(params: types.DidOpenNotebookDocumentParams) -> None:
        server.opened_notebook(params.notebook_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def did_change_notebook(params: types.DidChangeNotebookDocumentParams) -> None:
        server.opened_notebook(params.notebook_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def did_close_notebook(params: types.DidCloseNotebookDocumentParams) -> None:
        server.closed(params.notebook_document.uri)

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def did_change_folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        folders = server.folders()
        server.tell(lambda: server.session.set_folders(folders))
        await server.read_settings(None)

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change_configuration(params: types.DidChangeConfigurationParams) -> None:
        sent = table(params.settings)
        own = sent if BY_SETTING.keys() & sent.keys() else None  # some send what they have for all servers
        await server.read_settings(sent.get(SECTION, own) or None)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_files(params: types.DidChangeWatchedFilesParams) -> None:
        changes = [(path_of(event.uri), event.type) for event in params.changes]

        def take() -> None:
            session = server.session
            if any(is_configuration(path) or speaks(path) for path, _ in changes):
                session.reload()
                server.complain()
            came_or_went = False
            for path, kind in changes:
                analysis = session.analysis(path)
                came_or_went |= kind != types.FileChangeType.Changed and path not in analysis.edited
                analysis.touched(path, came_or_went=kind != types.FileChangeType.Changed)
            session.stale.update(dict.fromkeys(session.documents))
            server.in_loop(server.configured if came_or_went else server.refresh)

        server.tell(take)
