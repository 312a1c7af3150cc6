"""What the client can do, read once from its capabilities; what it does not mention it cannot do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lsprotocol import types

from nnx_lsp.convert import table

if TYPE_CHECKING:
    from collections.abc import Sequence


class Client(NamedTuple):
    """The capabilities that make a difference here."""

    encoding: str = types.PositionEncodingKind.Utf16
    pulls: bool = False
    refreshes: frozenset[str] = frozenset()
    tags: Sequence[types.DiagnosticTag] = ()
    related_information: bool = False
    code_descriptions: bool = False
    diagnostic_data: bool = False
    document_changes: bool = False
    action_literals: bool = False
    resolves_edits: bool = False
    markdown: bool = False
    completion_tags: Sequence[types.CompletionItemTag] = ()
    configuration: bool = False
    watches: bool = False
    watches_configuration: bool = False
    progress: bool = False
    shows_documents: bool = False
    nested_symbols: bool = False
    link_tooltips: bool = False
    pages: bool = False

    @classmethod
    def of(cls, params: types.InitializeParams, encoding: str) -> Client:
        """Read the parameters of ``initialize``."""
        has = _Reader(params.capabilities)
        published = "text_document.publish_diagnostics"
        resolvable = has("text_document.code_action.resolve_support.properties") or ()
        formats = has("text_document.hover.content_format") or ()
        return cls(
            encoding=encoding,
            pulls=has("text_document.diagnostic") is not None,
            refreshes=frozenset(
                name
                for name in ("diagnostics", "inlay_hint", "semantic_tokens", "code_lens")
                if has(f"workspace.{name}.refresh_support")
            ),
            tags=tuple(
                has(f"{published}.tag_support.value_set") or has("text_document.diagnostic.tag_support.value_set") or ()
            ),
            related_information=bool(
                has(f"{published}.related_information") or has("text_document.diagnostic.related_information")
            ),
            code_descriptions=bool(
                has(f"{published}.code_description_support") or has("text_document.diagnostic.code_description_support")
            ),
            diagnostic_data=bool(has(f"{published}.data_support") or has("text_document.diagnostic.data_support")),
            document_changes=bool(has("workspace.workspace_edit.document_changes")),
            action_literals=has("text_document.code_action.code_action_literal_support") is not None,
            resolves_edits="edit" in resolvable and bool(has("text_document.code_action.data_support")),
            markdown=types.MarkupKind.Markdown in formats,
            completion_tags=tuple(has("text_document.completion.completion_item.tag_support.value_set") or ()),
            configuration=bool(has("workspace.configuration")),
            watches=bool(has("workspace.did_change_watched_files.dynamic_registration")),
            watches_configuration=bool(has("workspace.did_change_configuration.dynamic_registration")),
            progress=bool(has("window.work_done_progress")),
            shows_documents=bool(has("window.show_document.support")),
            nested_symbols=bool(has("text_document.document_symbol.hierarchical_document_symbol_support")),
            link_tooltips=bool(has("text_document.document_link.tooltip_support")),
            pages=bool(table(params.initialization_options).get("showsPages")),
        )


class _Reader:
    """Follows a dotted path through the capabilities; ``None`` where it ends early."""

    def __init__(self, capabilities: types.ClientCapabilities) -> None:
        self._capabilities = capabilities

    def __call__(self, path: str) -> Any:
        value: Any = self._capabilities
        for name in path.split("."):
            value = getattr(value, name, None)
        return value
