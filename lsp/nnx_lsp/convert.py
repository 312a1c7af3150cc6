"""From the analyzer's records to those of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from lsprotocol import types

from nnx_lint import pages
from nnx_lint.source import SourceError, SourceFile
from nnx_lsp.documents import Document, uri_of
from nnx_rules.registry import Family, Severity
from nnx_rules.rules.comments import UNUSED_SUPPRESSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from nnx_lint.diagnostics import Diagnostic, Edit, Span
    from nnx_lsp.client import Client
    from nnx_rules.registry import Rule

SOURCE = "nnx"

SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}


def page_uri(rule: Rule) -> str | None:
    """Where the page of a rule can be read."""
    path = pages.location(rule)
    return None if path is None else uri_of(path)


def tags_of(rule: Rule) -> list[types.DiagnosticTag]:
    """How an editor may draw the finding of a rule besides its severity."""
    if rule.family is Family.VERSIONS and rule.severity is not Severity.ERROR:  # it still works
        return [types.DiagnosticTag.Deprecated]
    return [types.DiagnosticTag.Unnecessary] if rule is UNUSED_SUPPRESSION else []


def plain(sent: Any) -> object:
    """What a client sent without a type, as tables and lists."""
    if hasattr(sent, "_asdict"):
        sent = sent._asdict()
    if isinstance(sent, dict):
        return {name: plain(value) for name, value in cast("dict[str, Any]", sent).items()}
    return [plain(each) for each in cast("list[Any]", sent)] if isinstance(sent, (list, tuple)) else sent


def table(sent: object) -> Mapping[str, Any]:
    """The same of what should be a table; an empty one if it is not."""
    found = plain(sent)
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


class Convert:
    """From records to messages, as far as the client understands them.

    ``find`` gives the open document of a path.
    """

    def __init__(self, find: Callable[[str], Document | None], client: Client) -> None:
        self._find = find
        self._client = client

    def diagnostic(self, document: Document, finding: Diagnostic) -> types.Diagnostic:
        """A finding in an open document."""
        uri = page_uri(finding.rule)
        client = self._client
        return types.Diagnostic(
            range=document.range(finding.span),
            message=finding.message + (f"\nhelp: {finding.help}" if finding.help else ""),
            severity=SEVERITIES[finding.severity],
            code=finding.rule.code,
            code_description=types.CodeDescription(href=uri) if uri and client.code_descriptions else None,
            source=SOURCE,
            tags=[tag for tag in tags_of(finding.rule) if tag in client.tags] or None,
            related_information=self._related(finding) if client.related_information else None,
            data={"rule": finding.rule.name} if client.diagnostic_data else None,
        )

    def _related(self, finding: Diagnostic) -> list[types.DiagnosticRelatedInformation] | None:
        found: list[types.DiagnosticRelatedInformation] = []
        for each in finding.related:
            place = self.place(each.path, each.span)
            if place is not None:
                found.append(types.DiagnosticRelatedInformation(place, each.message))
        return found or None

    def place(self, path: str, span: Span) -> types.Location | None:
        """A place in any file; ``None`` if it cannot be read any more."""
        document = self._find(path)
        if document is not None:
            return types.Location(document.cell_at(span.start).uri, document.range(span))
        try:
            source = SourceFile.read(path)
        except SourceError:
            return None
        uri = uri_of(path)
        return types.Location(uri, Document.of_text(uri, source.text, None, self._client.encoding).range(span))

    def edits(self, document: Document, edits: Iterable[Edit]) -> types.WorkspaceEdit:
        """Edits of an open document, for the version that it has."""
        by_uri: dict[str, list[types.TextEdit]] = {cell.uri: [] for cell in document.cells}
        for edit in edits:
            text = edit.text.replace("\r\n", "\n").replace("\n", document.source.newline)
            by_uri[document.cell_at(edit.span.start).uri].append(types.TextEdit(document.range(edit.span), text))
        if not self._client.document_changes:
            return types.WorkspaceEdit(changes={uri: listed for uri, listed in by_uri.items() if listed})
        return types.WorkspaceEdit(
            document_changes=[
                types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(cell.uri, cell.version), [*listed])
                for cell in document.cells
                if (listed := by_uri[cell.uri])
            ]
        )
