"""What is shown of the code itself: hover, inlay hints, symbols, definitions, tokens, lenses, links."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from lsprotocol import types

from nnx_lint.diagnostics import Span
from nnx_lint.ide import hints, hover, links, symbols
from nnx_lsp.convert import page_uri
from nnx_rules.attributes import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nnx_lint.ide.analysis import Analysis
    from nnx_lint.ide.symbols import Symbol
    from nnx_lsp.documents import Document
    from nnx_lsp.server import Server

R = TypeVar("R")

LEGEND = types.SemanticTokensLegend(token_types=["property"], token_modifiers=["data", "static"])
MODIFIERS = {Status.DATA: 1, Status.STATIC: 2}

SHOW_STRUCTURE = "nnx.showStructure"
"""A command of the extension: it draws a class."""


def register(server: Server) -> None:
    """Register the handlers."""

    async def ask(uri: str, answer: Callable[[Document, Analysis], R]) -> R | None:
        """What is answered about an open document; ``None`` where it is not open, or left out."""

        def work() -> R | None:
            document = server.session.document(uri)
            if document is None:
                return None
            analysis = server.session.analysis(document.path)
            return None if analysis.excluded(document.path) else answer(document, analysis)

        return await server.ask(work)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def on_hover(params: types.HoverParams) -> types.Hover | None:
        uri, place = params.text_document.uri, params.position

        def answer(document: Document, analysis: Analysis) -> types.Hover | None:
            path = document.path
            notes = analysis.check(path).notes
            question = hover.Question(document.source, notes, analysis.views(path), document.offset(uri, place))
            found = hover.hover(question)
            if found is None:
                return None
            kind = types.MarkupKind.Markdown if server.client.markdown else types.MarkupKind.PlainText
            return types.Hover(types.MarkupContent(kind, found.markdown), document.range(found.span))

        return await ask(uri, answer)

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def on_hints(params: types.InlayHintParams) -> list[types.InlayHint] | None:
        uri, wanted = params.text_document.uri, params.range

        def answer(document: Document, analysis: Analysis) -> list[types.InlayHint]:
            span = Span(document.offset(uri, wanted.start), document.offset(uri, wanted.end))
            notes = analysis.check(document.path).notes
            found = hints.hints(notes, span, lambda kind: analysis.settings.switch(kind.value))
            return [_hint(document, hint) for hint in found]

        return await ask(uri, answer)

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def on_symbols(
        params: types.DocumentSymbolParams,
    ) -> Sequence[types.DocumentSymbol] | Sequence[types.SymbolInformation] | None:
        uri = params.text_document.uri

        def answer(
            document: Document, analysis: Analysis
        ) -> Sequence[types.DocumentSymbol] | Sequence[types.SymbolInformation]:
            views = analysis.views(document.path)
            found = symbols.outline(document.source, views) if views is not None else []
            own = [each for each in found if document.cell_at(each.span.start).uri == uri]
            if server.client.nested_symbols:
                return [_symbol(document, each) for each in own]
            return list(_flat(document, uri, own))

        return await ask(uri, answer)

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def on_definition(params: types.DefinitionParams) -> types.Location | None:
        uri, place = params.text_document.uri, params.position

        def answer(document: Document, analysis: Analysis) -> types.Location | None:
            views = analysis.views(document.path)
            if views is None:
                return None
            found = symbols.definition(document.source, views, document.offset(uri, place))
            return server.convert.place(found.path, found.span) if found is not None else None

        return await ask(uri, answer)

    @server.feature(
        types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, types.SemanticTokensRegistrationOptions(legend=LEGEND, full=True)
    )
    async def on_tokens(params: types.SemanticTokensParams) -> types.SemanticTokens | None:
        uri = params.text_document.uri

        def answer(document: Document, analysis: Analysis) -> types.SemanticTokens:
            views = analysis.views(document.path) if analysis.settings.switch("semantic-tokens") else None
            found = symbols.tokens(document.source, views) if views is not None else ()
            return types.SemanticTokens(data=_encoded(document, uri, found))

        return await ask(uri, answer)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def on_lenses(params: types.CodeLensParams) -> list[types.CodeLens] | None:
        uri = params.text_document.uri

        def answer(document: Document, analysis: Analysis) -> list[types.CodeLens]:
            if not analysis.settings.switch("code-lens"):
                return []
            found: list[types.CodeLens] = []
            for lens in analysis.lenses(document.path):
                if document.cell_at(lens.span.start).uri == uri:
                    title = f"{lens.parameters:,} parameter{'' if lens.parameters == 1 else 's'}"
                    arguments = [{"uri": uri, "class": lens.name}]
                    command = SHOW_STRUCTURE if server.client.pages else ""
                    shown = types.Command(title, command, arguments=arguments if command else None)
                    found.append(types.CodeLens(document.range(lens.span), shown))
            return found

        return await ask(uri, answer)

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_LINK)
    async def on_links(params: types.DocumentLinkParams) -> list[types.DocumentLink] | None:
        uri = params.text_document.uri

        def answer(document: Document, analysis: Analysis) -> list[types.DocumentLink]:
            found: list[types.DocumentLink] = []
            for link in links.links(document.source):
                target = page_uri(link.rule)
                if document.cell_at(link.span.start).uri == uri and target is not None:
                    tooltip = f"{link.rule.name}: {link.rule.summary}" if server.client.link_tooltips else None
                    found.append(types.DocumentLink(document.range(link.span), target, tooltip))
            return found

        return await ask(uri, answer)


def _hint(document: Document, hint: hints.Hint) -> types.InlayHint:
    return types.InlayHint(
        position=document.position(hint.offset),
        label=hint.text,
        kind=types.InlayHintKind.Type,
        tooltip=hint.tooltip or None,
        padding_left=True,
    )


def _symbol(document: Document, symbol: Symbol) -> types.DocumentSymbol:
    return types.DocumentSymbol(
        name=symbol.name,
        kind=types.SymbolKind.Class if symbol.is_class else types.SymbolKind.Field,
        range=document.range(symbol.span),
        selection_range=document.range(symbol.name_span),
        detail=symbol.detail,
        children=[_symbol(document, child) for child in symbol.children] or None,
    )


def _flat(
    document: Document, uri: str, found: Iterable[Symbol], container: str = ""
) -> Iterable[types.SymbolInformation]:
    for symbol in found:
        location = types.Location(uri, document.range(symbol.span))
        kind = types.SymbolKind.Class if symbol.is_class else types.SymbolKind.Field
        yield types.SymbolInformation(location, symbol.name, kind, container_name=container or None)
        yield from _flat(document, uri, symbol.children, symbol.name)


def _encoded(document: Document, uri: str, found: Iterable[symbols.Token]) -> list[int]:
    """Tokens as the protocol counts them: each relative to the one before."""
    data: list[int] = []
    line, column = 0, 0
    for token in found:
        if document.cell_at(token.span.start).uri != uri:
            continue
        place = document.range(token.span)
        start = place.start
        data += [start.line - line, start.character - (column if start.line == line else 0)]
        data += [place.end.character - start.character, 0, MODIFIERS[token.status]]
        line, column = start.line, start.character
    return data
