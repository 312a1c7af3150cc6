"""Diagnostics: pushed to clients that do not ask for them, and answered to those that do.

What a client has is not sent again: a push that would repeat the last one is left out, and a pull gets "unchanged"
where the result that the client names is still true. A result is named by what it holds.

An edit concerns other documents, too. They are looked at in idle time: what has changed is pushed, and a client that
pulls is told to ask again, if what it was told of a text is not true any more.
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

from lsprotocol import types

from nnx_lint.source import NOTEBOOK, SourceError, SourceFile
from nnx_lsp.documents import Document, uri_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lsp.server import Server

Published = dict[str, tuple[int | None, list[types.Diagnostic]]]
"""Diagnostics by URI, with the version of the text that they are about."""


def register(server: Server) -> None:
    """Register the handlers."""
    answers = Answers(server)
    server.when_idle += [Pusher(server).slice, answers.slice]
    options = types.DiagnosticOptions(inter_file_dependencies=True, workspace_diagnostics=True, identifier="nnx")

    answered: set[str] = set()

    @server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, options)
    async def diagnose(params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        uri = params.text_document.uri

        def answer() -> types.DocumentDiagnosticReport:
            document = server.session.document(uri)
            version, items = diagnostics_of(server, document)[uri] if document is not None else (None, [])
            name = result_id(items)
            if items:
                answered.add(uri)
            answers.told[uri] = version, name
            if name == params.previous_result_id:
                return types.RelatedUnchangedDocumentDiagnosticReport(result_id=name)
            return types.RelatedFullDocumentDiagnosticReport(items=items, result_id=name)

        return await server.ask(answer)

    @server.feature(types.WORKSPACE_DIAGNOSTIC)
    async def diagnose_all(params: types.WorkspaceDiagnosticParams) -> types.WorkspaceDiagnosticReport:
        known = {each.uri: each.value for each in params.previous_result_ids}
        return await server.ask(lambda: types.WorkspaceDiagnosticReport(list(_reports(server, known, answered))))


Report = types.WorkspaceFullDocumentDiagnosticReport | types.WorkspaceUnchangedDocumentDiagnosticReport


def _reports(server: Server, known: dict[str, str], answered: set[str]) -> Iterator[Report]:
    """What a client should know of the files that are not open, if ``known`` are the results that it has.

    ``answered`` are the documents that it was told findings of: it may still show those of one that it does not name
    any more, since it asked for it just before it was renamed.
    """
    found = dict(closed_diagnostics(server))
    for uri in known.keys() | answered:
        if server.session.document(uri) is None:
            found.setdefault(uri, [])  # it is clean now, or gone
    answered.difference_update(uri for uri in known if server.session.document(uri) is None)
    for uri, items in found.items():
        name = result_id(items)
        if known.get(uri) == name:
            yield types.WorkspaceUnchangedDocumentDiagnosticReport(uri=uri, result_id=name)
        else:
            yield types.WorkspaceFullDocumentDiagnosticReport(uri=uri, items=items, result_id=name)


def closed_diagnostics(server: Server) -> Iterator[tuple[str, list[types.Diagnostic]]]:
    """The diagnostics of files that are not open, as far as a scan has seen them; runs in the worker's thread."""
    for analysis in server.session.analyses:
        for path, findings in analysis.closed().items():
            if findings and not path.endswith(NOTEBOOK):  # the cells of a closed notebook have no names
                yield uri_of(path), closed_items(server, path, findings)


def closed_items(server: Server, path: str, findings: Sequence[Diagnostic]) -> list[types.Diagnostic]:
    """The findings in a file that is not open."""
    try:
        source = SourceFile.read(path)
    except SourceError:
        return []
    document = Document(uri_of(path), source, [(uri_of(path), None)], server.client.encoding)
    return [server.convert.diagnostic(document, finding) for finding in findings]


def diagnostics_of(server: Server, document: Document) -> Published:
    """The diagnostics of an open document, for each of its cells; runs in the worker's thread."""
    found: Published = {cell.uri: (cell.version, []) for cell in document.cells}
    began = time.perf_counter()
    findings = server.session.findings(document)
    taken = 1e3 * (time.perf_counter() - began)
    found_in = f"{document.path}: {len(findings)} finding{'' if len(findings) == 1 else 's'} after {taken:.1f} ms"
    server.trace(found_in, (f"{each.rule.code} {each.message}" for each in findings))
    crash = server.session.analysis(document.path).crash(document.path)
    if crash is not None:
        server.in_loop(server.say_crashed, document.path, crash)
    for finding in findings:
        uri = document.cell_at(finding.span.start).uri
        found[uri][1].append(server.convert.diagnostic(document, finding))
    return found


def result_id(items: Sequence[types.Diagnostic]) -> str:
    """A name that equal results share, and different ones do not."""
    return hashlib.blake2b(repr(items).encode(), digest_size=8).hexdigest()


class Answers:
    """What a client that pulls was told of open documents: ``told`` has the version and the name of each result."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.told: dict[str, tuple[int | None, str]] = {}

    def slice(self) -> bool:
        """Look at one document; whether there was one. Runs in the worker's thread.

        Whoever types into a document asks for it: only of texts that have not changed there is something to say.
        """
        server, session = self._server, self._server.session
        path = next(iter(session.stale), None)
        if path is None or not (server.client.pulls and server.ready):
            return False
        document = session.documents[path]
        cells = [cell for cell in document.cells if self.told.get(cell.uri, (None,))[0] == cell.version]
        if cells:
            found = diagnostics_of(server, document)
            now = {cell.uri: (cell.version, result_id(found[cell.uri][1])) for cell in cells}
            if any(self.told[uri] != result for uri, result in now.items()):
                server.in_loop(server.refresh)
            self.told.update(now)
        session.stale.pop(path, None)
        self.told = {uri: told for uri, told in self.told.items() if session.document(uri) is not None}
        return True


class Pusher:
    """Publishes the diagnostics of stale documents, one at a time, for clients that do not pull."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._published: dict[str, list[types.Diagnostic]] = {}
        self._closed: set[str] = set()

    def slice(self) -> bool:
        """Publish for one document; whether there was one. Runs in the worker's thread."""
        session = self._server.session
        if self._server.client.pulls or not self._server.ready:
            return False
        for uri in [each for each in self._published if each not in self._closed and session.document(each) is None]:
            self._publish(uri, None, [])
            del self._published[uri]
        path = next(iter(session.stale), None)
        if path is None:
            return self._publish_closed()
        for uri, (version, items) in diagnostics_of(self._server, session.documents[path]).items():
            if self._published.get(uri) != items:
                self._publish(uri, version, items)
        session.stale.pop(path, None)
        return True

    def _publish_closed(self) -> bool:
        """Publish for one file that is not open; whether there was one."""
        session = self._server.session
        path = next(iter(session.rescanned), None)
        if path is None:
            return False
        del session.rescanned[path]
        findings = session.analysis(path).closed().get(path, ())
        if not path.endswith(NOTEBOOK) and path not in session.documents:
            uri = uri_of(path)
            self._closed.add(uri)
            items = closed_items(self._server, path, findings) if findings else []
            if self._published.get(uri, []) != items:
                self._publish(uri, None, items)
        return True

    def _publish(self, uri: str, version: int | None, items: list[types.Diagnostic]) -> None:
        self._published[uri] = items
        params = types.PublishDiagnosticsParams(uri, items, version)
        self._server.in_loop(self._server.text_document_publish_diagnostics, params)
