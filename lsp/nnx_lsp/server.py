"""The server: life cycle, documents, folders, settings; the features register themselves on it.

What comes in is handed to the worker, in the order in which it came. Handlers of notifications return at once; those of
requests wait for the worker without holding up the loop, so that every request can be cancelled while it runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from typing import TYPE_CHECKING, Any, TypeVar

from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcMethodNotFound,
    JsonRpcParseError,
)
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

import nnx_rules
from nnx_lint.config.reading import OWN, SHARED
from nnx_lint.ide import settings
from nnx_lint.target.requirements import GLOBS
from nnx_lsp.client import Client
from nnx_lsp.convert import Convert, plain, table
from nnx_lsp.documents import Document, path_of
from nnx_lsp.session import Session
from nnx_lsp.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Generator, Iterable

T = TypeVar("T")

log = logging.getLogger(__name__)

REFUSALS = (JsonRpcInvalidParams, JsonRpcInvalidRequest, JsonRpcMethodNotFound, JsonRpcParseError)
"""What is wrong with a message, and not with the server."""

NOTEBOOKS = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithCells(
            notebook="jupyter-notebook", cells=[types.NotebookCellLanguage(language="python")]
        )
    ]
)

LOOK = 2.0
"""Seconds between two looks at whether the client's process lives."""

WATCHED = tuple(f"**/{glob}" for glob in dict.fromkeys((OWN, SHARED, "*.py", "*.ipynb", *GLOBS)))


MALFORMED = "nnx/malformed"
"""What a request is taken for whose parameters cannot be understood, so that it gets an answer."""


class Protocol(LanguageServerProtocol):
    """The protocol, with an error as the answer to a request that is malformed.

    It takes messages one by one, so it is here that one can be refused before anything is done about it.
    """

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Make a message of a table.

        Raises:
            JsonRpcException: a notification is malformed, or about a document that is not open.
        """
        is_request = "id" in data and "method" in data
        try:
            # A method that nobody knows may well have no parameters; what is to be said of it is that nobody knows it.
            message = super().structure_message({"params": None, **data} if is_request else data)
        except JsonRpcException:
            if not is_request:
                raise
            log.warning("a malformed request for %s", data["method"])
            return super().structure_message({**data, "method": MALFORMED, "params": {"method": data["method"]}})
        if isinstance(message, ABOUT_TEXT):
            self._require(message.params.text_document.uri, self.workspace.text_documents)
        elif isinstance(message, ABOUT_NOTEBOOK):
            self._require(message.params.notebook_document.uri, self.workspace.notebook_documents)
        return message

    def handle_message(self, message: Any) -> None:
        """Do what a message says."""
        super().handle_message(message)
        # What pygls keeps for a request goes with its answer; for a notification it would stay: 2 kB a keystroke.
        for finished in [key for key, future in self._request_futures.items() if future.done()]:
            del self._request_futures[finished]

    def _require(self, uri: str, known: Container[str]) -> None:
        if uri not in known:
            raise JsonRpcInvalidParams(f"{uri} is not open")


ABOUT_TEXT = (types.DidChangeTextDocumentNotification, types.DidCloseTextDocumentNotification)
ABOUT_NOTEBOOK = (types.DidChangeNotebookDocumentNotification, types.DidCloseNotebookDocumentNotification)
"""Messages about documents that the client must have opened before."""


class Server(LanguageServer):
    """The language server.

    ``session`` belongs to the worker's thread: it is touched in what :meth:`ask` and :meth:`tell` are given.
    """

    def __init__(self) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            "nnx-lsp", nnx_rules.__version__, notebook_document_sync=NOTEBOOKS, protocol_cls=Protocol
        )
        self.client = Client()
        self.worker = Worker(self._idle, self._broken)
        self.session = Session(self.worker.pause)
        self.convert = Convert(lambda path: self.session.documents.get(path), self.client)
        self.when_idle: list[Callable[[], bool]] = []
        """Slices of what can wait, the more urgent first; each says whether it did something."""
        self.when_configured: list[Callable[[], None]] = []
        """What begins when settings are known, or others than before; in the loop's thread."""
        self.edited_at = 0.0
        """When a document was changed last, by the monotonic clock."""
        self.ready = False
        """Whether the client has said all that diagnostics depend on."""
        self._initial: object = None
        self._shown: set[str] = set()
        self._crashed: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    # -- work

    async def ask(self, work: Callable[[], T], *, quick: bool = False) -> T:
        """The result of some work in the worker's thread; ``quick`` work asks no engine, and does not wait for it."""
        return await self.worker.ask(work, quick=quick)

    def tell(self, work: Callable[[], None]) -> None:
        """Change what the worker knows."""
        self.worker.edit(work)

    def in_loop(self, work: Callable[..., object], *args: object) -> None:
        """Do something in the thread that may send messages."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(work, *args)

    def _idle(self) -> bool:
        return any(each() for each in self.when_idle)

    def _broken(self, error: BaseException) -> None:
        self.in_loop(self._say_broken, error)

    # -- what people see

    def say_once(self, text: str, kind: types.MessageType = types.MessageType.Error) -> None:
        """Show a message, unless it was shown before."""
        if text not in self._shown:
            self._shown.add(text)
            self.window_show_message(types.ShowMessageParams(kind, text))

    def say_crashed(self, path: str, report: str) -> None:
        """Log and show that a file could not be checked, unless that was said of it: it comes with each keystroke."""
        if path not in self._crashed:
            self._crashed.add(path)
            log.error("%s", report)
            self.say_once(f"nnx-lsp: {report}")

    def complain(self) -> None:
        """Show what is wrong with settings and configuration; runs in the worker's thread."""
        for problem in self.session.problems():
            self.in_loop(self.say_once, f"nnx: {problem}", types.MessageType.Warning)

    def trace(self, done: str, details: Iterable[str]) -> None:
        """Tell a client that traces the server what was done, with details if it wants them; in the worker's thread."""
        level = self.protocol.trace
        if level != types.TraceValue.Off:
            verbose = "\n".join(details) if level == types.TraceValue.Verbose else None
            self.in_loop(self.log_trace, types.LogTraceParams(done, verbose))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log what went wrong, and show it once."""
        log.error("%s", source, exc_info=error)
        if isinstance(error, REFUSALS):
            return
        self._say_broken(error)

    def _say_broken(self, error: BaseException) -> None:
        """Show an error of this program, unless one of its kind was shown: it comes again with each keystroke."""
        kind = type(error).__name__
        if kind not in self._shown:
            self._shown.add(kind)
            self.say_once(f"nnx-lsp: internal error: {kind}: {error}; see the log")

    # -- life

    def begin(self, params: types.InitializeParams) -> None:
        """Take what the client says of itself, before the first document."""
        self._loop = asyncio.get_running_loop()
        self.protocol.trace = params.trace or types.TraceValue.Off
        self.client = Client.of(params, str(self.workspace.position_encoding))
        self.convert = Convert(lambda path: self.session.documents.get(path), self.client)
        self._initial = table(params.initialization_options).get("settings")
        read = settings.read(self._initial)
        folders = self.folders()
        self.tell(lambda: self.session.set_folders(folders))
        self.tell(lambda: self.session.configure({None: read}))
        self.worker.start()
        if params.process_id is not None and os.name == "posix":
            self._loop.create_task(_end_with(params.process_id))

    def folders(self) -> dict[str, str]:
        """The paths of the workspace folders, by URI."""
        return {uri: path_of(uri) for uri in self.workspace.folders}

    async def settle(self) -> None:
        """Ask for what the client did not say yet: settings of folders, and to be told of changed files."""
        if self.client.watches:
            watchers = [types.FileSystemWatcher(glob_pattern=pattern) for pattern in WATCHED]
            await self._register(
                types.WORKSPACE_DID_CHANGE_WATCHED_FILES, types.DidChangeWatchedFilesRegistrationOptions(watchers)
            )
        if self.client.watches_configuration:
            options = types.DidChangeConfigurationRegistrationOptions(section=settings.SECTION)
            await self._register(types.WORKSPACE_DID_CHANGE_CONFIGURATION, options)
        await self.read_settings(None)

    async def _register(self, method: str, options: object) -> None:
        registration = types.Registration(id=method, method=method, register_options=options)
        with self.tolerating(f"the client does not register {method}"):
            await self.client_register_capability_async(types.RegistrationParams([registration]))

    @staticmethod
    @contextlib.contextmanager
    def tolerating(what: str) -> Generator[None]:
        """Go on if the client refuses something that it said it can do."""
        try:
            yield
        except JsonRpcException as error:
            log.warning("%s: %s", what, error)

    async def read_settings(self, sent: object) -> None:
        """Read the settings anew; ``sent`` is what the client sent by itself, if anything."""
        folders = self.folders()
        found: dict[str | None, object] = {None: sent if sent is not None else self._initial}
        if self.client.configuration:
            scopes: list[str | None] = [None, *folders]
            items = [types.ConfigurationItem(scope_uri=uri, section=settings.SECTION) for uri in scopes]
            with self.tolerating("the client does not give its settings"):
                answers = await self.workspace_configuration_async(types.ConfigurationParams(items))
                found = {
                    None if uri is None else folders[uri]: answer if answer is not None else self._initial
                    for uri, answer in zip(scopes, answers, strict=False)
                }
        read = {folder: settings.read(plain(raw)) for folder, raw in found.items()}

        def configure() -> None:
            self.session.configure(read)
            self.complain()

            self.ready = True

        self.tell(configure)
        await self.ask(lambda: None)
        self.configured()

    def configured(self) -> None:
        """Begin what depends on settings, and on which files there are."""
        self.refresh()
        for begin in self.when_configured:
            begin()

    def refresh(self) -> None:
        """Have the client ask again for what it shows."""
        requests = {
            "diagnostics": self.workspace_diagnostic_refresh,
            "inlay_hint": self.workspace_inlay_hint_refresh,
            "semantic_tokens": self.workspace_semantic_tokens_refresh,
            "code_lens": self.workspace_code_lens_refresh,
        }
        for name in self.client.refreshes:
            requests[name](None)

    # -- documents

    def opened(self, uri: str) -> None:
        """A text document was opened, or has another text."""
        self.edited_at = time.monotonic()
        known = self.workspace.get_text_document(uri)
        text, version, encoding = known.source, known.version, self.client.encoding
        self.tell(lambda: self.session.edit(Document.of_text(uri, text, version, encoding)))

    def opened_notebook(self, uri: str) -> None:
        """A notebook was opened, or has other cells."""
        self.edited_at = time.monotonic()
        notebook = self.workspace.get_notebook_document(notebook_uri=uri)
        if notebook is None:
            return
        cells: list[tuple[str, int | None, str]] = []
        for cell in notebook.cells:
            if cell.kind == types.NotebookCellKind.Code:
                known = self.workspace.get_text_document(cell.document)
                cells.append((cell.document, known.version, known.source))
        encoding = self.client.encoding
        self.tell(lambda: self.session.edit(Document.of_cells(uri, cells, encoding)))

    def closed(self, uri: str) -> None:
        """A document was closed."""
        self.tell(lambda: self.session.close(uri))


async def _end_with(process: int) -> None:
    """End when the process of the client does, which may leave its end of the pipe open."""
    while True:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            os._exit(1)
        except PermissionError:
            pass  # it is there, and somebody else's
        await asyncio.sleep(LOOK)


def build() -> Server:
    """A server with all features."""
    from nnx_lsp import features, lifecycle

    server = Server()
    lifecycle.register(server)
    features.register(server)
    return server
