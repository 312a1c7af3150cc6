"""Completion, in programs and in configuration files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from nnx_lint.ide import completion, configuration
from nnx_lint.ide.completion import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nnx_lint.ide.completion import Item
    from nnx_lsp.documents import Document
    from nnx_lsp.server import Server

KINDS = {
    Kind.CLASS: types.CompletionItemKind.Class,
    Kind.FUNCTION: types.CompletionItemKind.Function,
    Kind.MODULE: types.CompletionItemKind.Module,
    Kind.RULE: types.CompletionItemKind.Constant,
    Kind.OPTION: types.CompletionItemKind.Property,
    Kind.VALUE: types.CompletionItemKind.Value,
}

TRIGGERS = (".", "[", ",", "(", '"')


def register(server: Server) -> None:
    """Register the handlers."""

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=list(TRIGGERS)))
    async def on_completion(params: types.CompletionParams) -> types.CompletionList:
        uri, place = params.text_document.uri, params.position

        def answer() -> types.CompletionList:
            session = server.session
            document = session.document(uri)
            if document is not None:
                analysis = session.analysis(document.path)
                offset = document.offset(uri, place)
                variables = analysis.variables(document.path)
                items = completion.complete(document.source, variables, offset, analysis.runs(document.path))
            elif (document := session.configuration(uri)) is not None:
                items = configuration.complete(document.path, document.source.text, document.offset(uri, place))
            else:
                return types.CompletionList(False, [])
            return types.CompletionList(is_incomplete=False, items=list(_items(server, document, items)))

        return await server.ask(answer, quick=True)


def _items(server: Server, document: Document, items: Sequence[Item]) -> Iterator[types.CompletionItem]:
    client = server.client
    for index, item in enumerate(items):
        edit = types.TextEdit(document.range(item.span), item.text)
        deprecated = item.deprecated and types.CompletionItemTag.Deprecated in client.completion_tags
        yield types.CompletionItem(
            label=item.text,
            kind=KINDS[item.kind],
            detail=item.detail or None,
            documentation=item.documentation or None,
            tags=[types.CompletionItemTag.Deprecated] if deprecated else None,
            sort_text=f"{index:04}",
            filter_text=item.text,
            text_edit=edit,
        )
