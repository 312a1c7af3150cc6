"""What an editor sees, over stdio, under the capabilities that VS Code, Neovim and Emacs announce."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from lsprotocol import types

from editor import Editor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.asyncio(loop_scope="module")

BAD = """\
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.layers = [nnx.Linear(3, 4, rngs=rngs)]
        self.width = 4
"""

TRAIN = """\
import jax
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.linear = nnx.Linear(3, 4, rngs=rngs)
        self.count = nnx.BatchStat(0)
        self.width = 4

    def __call__(self, x):
        return self.linear(x) * self.width


net = Net(nnx.Rngs(0))
graphdef, params, rest = nnx.split(net, nnx.Param, ...)


@jax.jit
def step(x):
    return net(x)


step(3)
n = 1  # nnx: ignore[string-filter]
"""


@pytest_asyncio.fixture(
    scope="module", loop_scope="module", params=["visual_studio_code", "neovim", "emacs", "pulling"]
)
async def editor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    running = await Editor.start(request.param, tmp_path_factory.mktemp("workspace"))
    yield running
    await running.stop()


def only(*codes: str) -> Any:
    return lambda found: found == list(codes)


async def test_findings_follow_every_edit(editor: Editor) -> None:
    uri = editor.open("follow.py", BAD)
    (found,) = await editor.published(uri, only("NNX101"))
    assert found.range == editor.range_of(uri, "[nnx.Linear(3, 4, rngs=rngs)]")
    assert found.message.startswith("`Net.layers` is static")
    assert found.source == "nnx"
    editor.replace(uri, "[nnx.Linear(3, 4, rngs=rngs)]", "nnx.List([nnx.Linear(3, 4, rngs=rngs)])")
    assert await editor.published(uri, only()) == []
    editor.close(uri)


async def test_positions_are_counted_as_agreed(editor: Editor) -> None:
    line = 'é = "\U0001f600"; self.layers = [nnx.Linear(3, 4, rngs=rngs)]  # \U0001f600'
    uri = editor.open("encoded.py", BAD.replace("self.layers = [nnx.Linear(3, 4, rngs=rngs)]", line))
    (found,) = await editor.published(uri, only("NNX101"))
    assert found.range == editor.range_of(uri, "[nnx.Linear(3, 4, rngs=rngs)]")
    editor.client.diagnostics.clear()
    editor.replace(uri, '\U0001f600"; ', '\U0001f600\U0001f600"; ')
    (found,) = await editor.published(uri, only("NNX101"))
    assert found.range == editor.range_of(uri, "[nnx.Linear(3, 4, rngs=rngs)]")
    (action,) = [each for each in await editor.actions(uri, found.range) if each.is_preferred]
    assert "nnx.List([nnx.Linear(3, 4, rngs=rngs)])  # \U0001f600" in await editor.applied(uri, action)
    editor.close(uri)


async def test_fixes_are_offered_resolved_and_applied(editor: Editor) -> None:
    uri = editor.open("fix.py", BAD)
    await editor.published(uri, only("NNX101"))
    actions = await editor.actions(uri, editor.range_of(uri, "nnx.Linear(3, 4"))
    titles = [action.title for action in actions]
    assert titles[0] == "Wrap the value in `nnx.List(...)`"
    assert "Ignore data-in-static-attribute on this line" in titles
    assert "Fix all that nnx-lint can fix" in titles
    assert actions[0].is_preferred
    announced = editor.client.capabilities.text_document.code_action.resolve_support  # type: ignore[union-attr]
    lazily = announced is not None and "edit" in announced.properties
    assert [action.edit is None for action in actions] == [lazily] * len(actions)
    for title, wanted in (
        (titles[0], "self.layers = nnx.List([nnx.Linear(3, 4, rngs=rngs)])\n"),
        ("Ignore data-in-static-attribute on this line", "# nnx: ignore[data-in-static-attribute]\n"),
        ("Fix all that nnx-lint can fix", "self.layers = nnx.List([nnx.Linear(3, 4, rngs=rngs)])\n"),
    ):
        action = next(each for each in actions if each.title == title)
        assert wanted in await editor.applied(uri, action), title
    editor.close(uri)


async def test_all_findings_of_a_rule_are_fixed_at_once(editor: Editor) -> None:
    other = "\n        self.more = [nnx.Param(1)]\n        self.name = nnx.state(self.more[0], 'text')\n"
    uri = editor.open("rule.py", BAD.rstrip("\n") + other)
    await editor.published(uri, lambda codes: codes.count("NNX101") == 2 and len(codes) > 2)
    actions = await editor.actions(uri, editor.range_of(uri, "nnx.Linear(3, 4"))
    action = next(each for each in actions if each.title == "Fix all data-in-static-attribute in this file")
    text = await editor.applied(uri, action)
    assert "self.layers = nnx.List([" in text
    assert "self.more = nnx.List([" in text
    assert "'text'" in text
    editor.close(uri)


async def test_what_still_works_and_what_does_nothing_is_tagged(editor: Editor) -> None:
    editor.touch("moving/nnx-lint.toml", 'extend-select = ["deprecated-name"]\n')
    uri = editor.open("moving/tags.py", "from flax.experimental import nnx\n\nx = nnx  # nnx: ignore[NNX101]\n")
    found = await editor.published(uri, lambda codes: len(codes) == 2)
    tags = [list(each.tags or ()) for each in found]
    assert tags == [[types.DiagnosticTag.Deprecated], [types.DiagnosticTag.Unnecessary]]
    editor.close(uri)


async def test_only_the_wanted_kinds_of_actions_come(editor: Editor) -> None:
    uri = editor.open("kinds.py", BAD)
    await editor.published(uri, only("NNX101"))
    place = editor.range_of(uri, "nnx.Linear(3, 4")
    assert {action.kind for action in await editor.actions(uri, place, "source.fixAll")} == {"source.fixAll.nnx"}
    assert {action.kind for action in await editor.actions(uri, place, "quickfix")} == {"quickfix"}
    assert await editor.actions(uri, place, "refactor") == []
    editor.close(uri)


async def test_hover_says_what_is_known_and_why(editor: Editor) -> None:
    uri = editor.open("hover.py", TRAIN)
    for text, after, wanted in (
        ("width", "self.", "static attribute"),
        ("linear", "return self.", "kernel (3, 4)"),
        ("count", "self.", "a BatchStat"),
        ("nnx.Param", "nnx.split", "linear.kernel: Param"),
        ("...", "nnx.split", "count: BatchStat"),
        ("jax.jit", "", "`net`: Net"),
        ("string-filter", "", "# "),
    ):
        found = await editor.hover(uri, editor.at(uri, text, after))
        assert found is not None, text
        assert wanted in found, (text, found)
    assert await editor.hover(uri, editor.at(uri, "step(3)")) is None
    editor.close(uri)


KNOWN = """\
import jax
import jax.numpy as jnp
from flax import nnx


class MLP(nnx.Module):
    def __init__(self, wide: bool, rngs: nnx.Rngs):
        self.layer = nnx.Linear(3, 4, rngs=rngs)
        self.scale = nnx.Param(jnp.ones((7,)))
        self.table = nnx.BatchStat(
            jnp.zeros(
                (2, 5),
            )
        )
        if wide:
            self.mixed = nnx.Param(1.0)
        else:
            self.mixed = 2


mlp = MLP(True, nnx.Rngs(0))
mlp.layer.kernel
params = nnx.state(mlp, nnx.BatchStat)
_, state, rest = nnx.split(mlp, nnx.BatchStat, ...)
part = nnx.jit(lambda m: m.scale, graph_updates=False)
sizes = jax.tree.map(lambda leaf: leaf.size, params)
"""


@pytest.mark.parametrize(
    ("text", "after", "wanted", "unwanted"),
    [
        ("scale", "self.", ("a Param", "shape: (7,)", "`self.scale = nnx.Param(jnp.ones((7,)))`"), ()),
        (
            "table",
            "self.",
            ("shape: (2, 5)", "`self.table = nnx.BatchStat(jnp.zeros((2, 5),))` (a Variable is data)"),
            (),
        ),
        ("mixed", "self.", ("**attribute** `MLP.mixed`", "on line 16: ", "on line 18: "), ("Part of",)),
        ("kernel", "mlp.layer.", ("**data attribute** `Linear.kernel`: a Param",), ("assigned",)),
        ("nnx.BatchStat", "state(", ("of an MLP:", "`table: BatchStat`"), ()),
        ("...", "", ("takes what the filters before it leave", "`scale: Param`"), ("everything",)),
        ("nnx.jit", "", ("those of Variables are written back; those of attributes are lost",), ("caller's objects.",)),
        ("jax.tree.map", "", ("runs in the present trace",), ("Changes",)),
    ],
)
async def test_hover_says_no_more_than_is_known(
    editor: Editor, text: str, after: str, wanted: tuple[str, ...], unwanted: tuple[str, ...]
) -> None:
    uri = editor.open("known.py", KNOWN)
    found = await editor.hover(uri, editor.at(uri, text, after))
    assert found is not None
    assert [each for each in wanted if each not in found] == [], found
    assert [each for each in unwanted if each in found] == [], found
    editor.close(uri)


async def test_hover_finds_assignments_in_other_files(editor: Editor) -> None:
    base = KNOWN.replace("class MLP", "class Base")
    editor.touch("base.py", base)
    uri = editor.open(
        "derived.py", "import base\n\n\nclass Net(base.Base):\n    def __call__(self):\n        self.scale\n"
    )
    found = await editor.hover(uri, editor.at(uri, "scale"))
    assert found is not None
    assert "First assigned in base.py, line 9 (a Variable is data)" in found
    editor.close(uri)


async def test_hints_tokens_lenses_and_links(editor: Editor) -> None:
    uri = editor.open("shown.py", TRAIN)
    document = types.TextDocumentIdentifier(uri)
    hints = await editor.client.text_document_inlay_hint_async(types.InlayHintParams(document, editor.whole(uri)))
    assert hints is not None
    shown = {(hint.position.line, hint.label) for hint in hints}
    lines = [(editor.at(uri, place).line, label) for place, label in HINTS]
    assert shown == set(lines)
    tokens = await editor.client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(document))
    assert tokens is not None
    assert list(tokens.data[4::5]) == [1, 1, 2, 1, 2]
    (lens,) = await editor.client.text_document_code_lens_async(types.CodeLensParams(document)) or ()
    assert lens.command is not None
    assert lens.command.title == "16 parameters"
    (link,) = await editor.client.text_document_document_link_async(types.DocumentLinkParams(document)) or ()
    assert link.range == editor.range_of(uri, "string-filter")
    assert str(link.target).endswith("string-filter.md")
    editor.close(uri)


HINTS = (
    ("self.linear", "data"),
    ("self.linear", "kernel (3, 4), bias (4,)"),
    ("self.count", "data"),
    ("self.width", "static"),
    ("graphdef", "nnx.Param"),
    ("graphdef", "the rest"),
    ("@jax.jit", "captures net"),
)


async def test_symbols_and_definitions(editor: Editor) -> None:
    uri = editor.open("symbols.py", TRAIN)
    document = types.TextDocumentIdentifier(uri)
    found = await editor.client.text_document_document_symbol_async(types.DocumentSymbolParams(document))
    assert found is not None
    names = [each.name for symbol in found for each in (symbol, *(getattr(symbol, "children", None) or ()))]
    assert names == ["Net", "linear", "count", "width"]
    params = types.DefinitionParams(document, editor.at(uri, "linear(x)"))
    place = await editor.client.text_document_definition_async(params)
    assert isinstance(place, types.Location)
    assert place.range.start == editor.at(uri, "self.linear = ")
    editor.close(uri)


async def test_completion_knows_names_filters_and_rules(editor: Editor) -> None:
    uri = editor.open("complete.py", TRAIN)
    for text, wanted, unwanted in (
        ("nnx.Lin", "Linear", "self"),
        ("nnx.state(net, nnx.Pa", "Param", "kernel"),
        ("nnx.state(net, ", "nnx.BatchStat", "Param"),
        ("nnx.StateAxes({nnx.Param: 0, ", "nnx.BatchStat", "Param"),
        ("nnx.StateAxes({nnx.Param: ", None, "nnx.BatchStat"),
        ("nnx.split([net], nnx.All(nnx.Param, ", "nnx.BatchStat", "Param"),
        ("dict({net: ", None, "nnx.BatchStat"),
        ("import flax\nflax.nnx.Lin", "Linear", "self"),
        ("import flax.nnx.", None, "Linear"),
        ("x = 1  # nnx: ignore[data-", "data-in-static-attribute", "ALL"),
        ("x = 1  # nnx: ig", "ignore[", "NNX101"),
        ("x = 1  # noqa: NNX1", "NNX101", "data-in-static-attribute"),
        ("y = jax.", None, "Linear"),
        ("print(", None, "nnx.Param"),
    ):
        editor.replace(uri, "n = 1 ", f"{text}\nn = 1 ")
        place = editor.at(uri, "\nn = 1 ", text)
        params = types.CompletionParams(types.TextDocumentIdentifier(uri), place)
        answer = await editor.client.text_document_completion_async(params)
        assert isinstance(answer, types.CompletionList)
        labels = [item.label for item in answer.items]
        assert wanted is None or wanted in labels, text
        assert unwanted not in labels, text
        editor.replace(uri, f"{text}\nn = 1 ", "n = 1 ")
    editor.close(uri)


async def test_completion_knows_the_names_of_the_version_in_use(editor: Editor) -> None:
    editor.touch("old/nnx-lint.toml", 'target = "flax-0.11.0"\n')
    offered: dict[str, dict[str, types.CompletionItem]] = {}
    for name in ("new.py", "old/old.py"):
        uri = editor.open(name, "from flax import nnx\n\nnnx.\n")
        await editor.published(uri, only())
        params = types.CompletionParams(types.TextDocumentIdentifier(uri), types.Position(2, 4))
        answer = await editor.client.text_document_completion_async(params)
        assert isinstance(answer, types.CompletionList)
        offered[name] = {item.label: item for item in answer.items}
        editor.close(uri)
    new, old = offered.values()
    assert {"Linear", "List", "pure", "as_pure"} <= new.keys()
    assert "since flax 0.12" in (new["List"].detail or "")
    assert list(new["pure"].tags or ()) == [types.CompletionItemTag.Deprecated]
    assert old.keys() & {"Linear", "List", "as_pure"} == {"Linear"}


async def test_commands(editor: Editor) -> None:
    uri = editor.open("command.py", TRAIN)
    place = editor.at(uri, "self.width = 4")
    for asked in ({"uri": uri, "position": {"line": place.line, "character": 4}}, {"uri": uri, "class": "Net"}):
        answer = await editor.command("nnx.graph", asked)
        assert answer["class"] == "Net"
        assert answer["root"]["parameters"] == 16
        linear = answer["root"]["children"][0]
        assert (linear["name"], linear["assigned"]) == ("linear", {"uri": uri, "line": 7})
    answer = await editor.command("nnx.graph", {"uri": uri, "position": {"line": 0, "character": 0}})
    assert (answer["class"], [each["name"] for each in answer["modules"]]) == (None, ["Net"])
    answer = await editor.command("nnx.explainRule", "data-in-static-attribute")
    assert answer["code"] == "NNX101"
    assert answer["markdown"].startswith("# ")
    assert {"NNX101", "NNX201"} <= {rule["code"] for rule in await editor.command("nnx.rules")}
    editor.close(uri)


async def test_cells_of_a_notebook_are_one_program(editor: Editor) -> None:
    if editor.client.capabilities.notebook_document is None:  # type: ignore[union-attr]
        pytest.skip("this editor has no notebooks")
    head, body, use = BAD.split("class Net")[0], "class Net" + BAD.split("class Net")[1], "%time net = Net(nnx.Rngs(0))"
    cells = {
        f"vscode-notebook-cell://host/x.ipynb#{name}": text for name, text in zip("abc", (head, body, use), strict=True)
    }
    notebook = editor.uri("x.ipynb")
    editor.texts.update(cells)
    editor.versions.update(dict.fromkeys(cells, 1))
    kinds = [types.NotebookCell(types.NotebookCellKind.Code, uri) for uri in cells]
    items = [types.TextDocumentItem(uri, "python", 1, text) for uri, text in cells.items()]
    opened = types.NotebookDocument(notebook, "jupyter-notebook", 1, kinds)
    editor.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(opened, items))
    first, second, _ = cells
    (found,) = await editor.published(second, only("NNX101"))
    assert found.range == editor.range_of(second, "[nnx.Linear(3, 4, rngs=rngs)]")
    assert await editor.published(first, only()) == []
    (action,) = [each for each in await editor.actions(second, found.range) if each.is_preferred]
    assert "nnx.List([nnx.Linear(3, 4, rngs=rngs)])" in await editor.applied(second, action)
    found_hover = await editor.hover(second, editor.at(second, "width", "self."))
    assert found_hover is not None
    assert "static attribute" in found_hover
    closing = types.DidCloseNotebookDocumentParams(
        types.NotebookDocumentIdentifier(notebook), [types.TextDocumentIdentifier(uri) for uri in cells]
    )
    editor.client.notebook_document_did_close(closing)
    assert await editor.published(second, only()) == []
