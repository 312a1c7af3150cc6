"""Code actions. Their edits are made when they are chosen, for clients that can wait for that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from nnx_lint.diagnostics import Span
from nnx_lint.ide import actions
from nnx_lint.ide.actions import Action, Kind
from nnx_lsp.convert import table
from nnx_lsp.features.commands import EXPLAIN

if TYPE_CHECKING:
    from nnx_lint.diagnostics import Diagnostic, Edit
    from nnx_lsp.documents import Document
    from nnx_lsp.server import Server

FIX_ALL = "source.fixAll.nnx"

KINDS = {
    Kind.FIX: types.CodeActionKind.QuickFix,
    Kind.FIX_RULE: types.CodeActionKind.QuickFix,
    Kind.IGNORE: types.CodeActionKind.QuickFix,
    Kind.EXPLAIN: types.CodeActionKind.QuickFix,
}


NOTHING: dict[str, Any] = {"uri": None, "kind": None, "code": None, "start": None, "end": None}
"""What an action carries until it is chosen."""


def register(server: Server) -> None:
    """Register the handlers."""
    options = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix, FIX_ALL], resolve_provider=True)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    async def code_actions(params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
        return await server.ask(lambda: list(_Answer(server, params.text_document.uri).actions(params)))

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        data = {**NOTHING, **table(action.data)}
        if not isinstance(data["uri"], str):
            raise JsonRpcInvalidParams("this action is none that the server has made")

        def edit() -> types.WorkspaceEdit | None:
            return _Answer(server, data["uri"]).edit(data)

        action.edit = await server.ask(edit)
        return action


class _Answer:
    """One answer about one document; lives in the worker's thread."""

    def __init__(self, server: Server, uri: str) -> None:
        self.server = server
        self.uri = uri
        self.document: Document | None = server.session.document(uri)

    def actions(self, params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
        document = self.document
        if document is None:
            return []
        found: list[types.CodeAction | types.Command] = []
        findings = self.server.session.findings(document)
        if _wanted(params, types.CodeActionKind.QuickFix):
            span = Span(document.offset(self.uri, params.range.start), document.offset(self.uri, params.range.end))
            found += [self._action(action) for action in actions.about(findings, span, self._allowed(document))]
        if _wanted(params, FIX_ALL) and any(actions.is_fixable(each, self._allowed(document)) for each in findings):
            title = "Fix all that nnx-lint can fix"
            data = {**NOTHING, "uri": self.uri, "kind": FIX_ALL}
            found.append(self._lazily(types.CodeAction(title, FIX_ALL, data=data)))
        return [action for action in found if self.server.client.action_literals or isinstance(action, types.Command)]

    def _allowed(self, document: Document) -> Any:
        return self.server.session.analysis(document.path).applicable(document.path)

    def _action(self, action: Action) -> types.CodeAction:
        document, finding = self.document, action.finding
        assert document is not None
        made = types.CodeAction(
            action.title, KINDS[action.kind], diagnostics=[self.server.convert.diagnostic(document, finding)]
        )
        if action.kind is Kind.EXPLAIN:
            made.command = types.Command(action.title, EXPLAIN, arguments=[finding.rule.code])
            return made
        made.is_preferred = action.preferred or None
        made.data = {
            "uri": self.uri,
            "kind": action.kind.value,
            "code": finding.rule.code,
            "start": finding.span.start,
            "end": finding.span.end,
        }
        return self._lazily(made)

    def _lazily(self, action: types.CodeAction) -> types.CodeAction:
        if not self.server.client.resolves_edits:
            action.edit = self.edit(cast("dict[str, Any]", action.data))
            action.data = None
        return action

    def edit(self, data: dict[str, Any]) -> types.WorkspaceEdit | None:
        """The edit of an action, from what it carries."""
        document = self.document
        if document is None:
            return None
        return self.server.convert.edits(document, self._edits(document, data))

    def _edits(self, document: Document, data: dict[str, Any]) -> list[Edit]:
        analysis = self.server.session.analysis(document.path)
        if data["kind"] == FIX_ALL:
            return analysis.fixes(document.path, self._allowed(document))
        if data["kind"] == Kind.FIX_RULE.value:
            return analysis.fixes(document.path, self._allowed(document), data["code"])
        finding = self._finding(document, data)
        if finding is None:
            return []
        if data["kind"] == Kind.IGNORE.value:
            return actions.ignoring(document.source, finding)
        return list(finding.fix.edits) if finding.fix is not None else []

    def _finding(self, document: Document, data: dict[str, Any]) -> Diagnostic | None:
        place = (data["code"], data["start"], data["end"])
        findings = self.server.session.findings(document)
        return next((each for each in findings if (each.rule.code, each.span.start, each.span.end) == place), None)


def _wanted(params: types.CodeActionParams, kind: str) -> bool:
    """Whether the client asks for actions of this kind; kinds are a hierarchy by dots."""
    only = params.context.only
    return only is None or any(kind == each or kind.startswith(f"{each}.") for each in only)
