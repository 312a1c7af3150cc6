"""Folders, their configuration, files that are not open, and what depends on an edit."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from lsprotocol import types

from editor import PATIENCE, REFRESHES, Editor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

pytestmark = pytest.mark.asyncio(loop_scope="module")

BASE = """\
from flax import nnx


class Helper(nnx.Module):
    pass
"""

USER = """\
from flax import nnx
from base import Helper


class User(nnx.Module):
    def __init__(self):
        self.items = [Helper()]
"""

LOST = """\
from flax import nnx


class Net(nnx.Module):
    def __init__(self):
        self.layers = [nnx.Param(1)]
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "closed.py").write_text(LOST)
    (folder / "base.py").write_text(BASE)
    (folder / "user.py").write_text(USER)
    other = folder.parent / "other"
    other.mkdir(exist_ok=True)
    (other / "nnx-lint.toml").write_text('ignore = ["data-in-static-attribute"]\n')
    (other / "same.py").write_text(LOST)
    running = await Editor.start("pulling", folder, other)
    yield running
    await running.stop()


async def workspace(editor: Editor, known: dict[str, str] | None = None) -> dict[str, Any]:
    """The report of every file, by URI."""
    previous = [types.PreviousResultId(uri, value) for uri, value in (known or {}).items()]
    report = await editor.client.workspace_diagnostic_async(types.WorkspaceDiagnosticParams(previous))
    return {item.uri: item for item in report.items}


async def closed(editor: Editor, name: str, *codes: str) -> Any:
    """The report of a file that is not open, as soon as it has these findings."""

    async def wait() -> Any:
        while True:
            found = (await workspace(editor)).get(editor.uri(name))
            if found is not None and [item.code for item in found.items] == list(codes):
                return found
            if found is None and not codes:
                return None

    return await asyncio.wait_for(wait(), PATIENCE)


async def test_files_that_are_not_open_are_reported(editor: Editor) -> None:
    found = await closed(editor, "closed.py", "NNX101")
    again = await workspace(editor, {found.uri: found.result_id})
    assert again[found.uri].kind == "unchanged"
    assert isinstance(again[found.uri], types.WorkspaceUnchangedDocumentDiagnosticReport)


async def test_each_folder_has_its_configuration(editor: Editor) -> None:
    await closed(editor, "closed.py", "NNX101")
    assert all("/other/" not in uri for uri in await workspace(editor))
    file = editor.folder.parent / "other" / "same.py"
    uri = editor.open(file.as_uri(), LOST)
    assert await editor.pull(uri) == []
    editor.close(uri)


async def test_results_are_named(editor: Editor) -> None:
    uri = editor.open("named.py", LOST)
    document = types.TextDocumentIdentifier(uri)
    first = await editor.client.text_document_diagnostic_async(types.DocumentDiagnosticParams(document))
    assert isinstance(first, types.RelatedFullDocumentDiagnosticReport)
    params = types.DocumentDiagnosticParams(document, previous_result_id=first.result_id)
    second = await editor.client.text_document_diagnostic_async(params)
    assert isinstance(second, types.RelatedUnchangedDocumentDiagnosticReport)
    editor.replace(uri, "[nnx.Param(1)]", "nnx.List([nnx.Param(1)])")
    third = await editor.client.text_document_diagnostic_async(params)
    assert isinstance(third, types.RelatedFullDocumentDiagnosticReport)
    assert third.items == ()
    editor.close(uri)


async def test_an_edit_reaches_the_files_that_depend_on_it(editor: Editor) -> None:
    user = editor.open("user.py", USER)
    await editor.published(user, lambda codes: codes == ["NNX101"])
    base = editor.open("base.py", BASE)
    editor.replace(base, "(nnx.Module)", "")  # not saved
    assert await editor.published(user, lambda codes: not codes) == []
    editor.close(base)
    await editor.published(user, lambda codes: codes == ["NNX101"])
    editor.close(user)


async def test_an_edit_reaches_files_that_are_not_open(editor: Editor) -> None:
    await closed(editor, "user.py", "NNX101")
    base = editor.open("base.py", BASE)
    editor.replace(base, "(nnx.Module)", "")
    await closed(editor, "user.py")
    editor.close(base)
    await closed(editor, "user.py", "NNX101")


async def test_files_come_change_move_and_go(editor: Editor) -> None:
    editor.touch("new.py", LOST)
    await closed(editor, "new.py", "NNX101")
    editor.touch("new.py", LOST.replace("[nnx.Param(1)]", "1"))
    await closed(editor, "new.py")
    editor.touch("new.py", LOST)
    await closed(editor, "new.py", "NNX101")
    uri = editor.open("new.py", LOST)
    assert [each.code for each in await editor.pull(uri)] == ["NNX101"]
    editor.close(uri)
    (editor.folder / "new.py").rename(editor.folder / "moved.py")
    events = [
        types.FileEvent(editor.uri("new.py"), types.FileChangeType.Deleted),
        types.FileEvent(editor.uri("moved.py"), types.FileChangeType.Created),
    ]
    moved = editor.open("moved.py", LOST)
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(events))
    assert [each.code for each in await editor.pull(moved)] == ["NNX101"]
    await closed(editor, "new.py")
    editor.close(moved)
    editor.touch("moved.py", None)
    await closed(editor, "moved.py")


async def test_configuration_files_are_watched(editor: Editor) -> None:
    uri = editor.open("configured.py", LOST)
    await editor.published(uri, lambda codes: codes == ["NNX101"])
    assert types.WORKSPACE_DID_CHANGE_WATCHED_FILES in editor.registered
    editor.touch("nnx-lint.toml", 'rules = { NNX101 = "info" }\n')
    (found,) = await editor.pull(uri)
    assert found.severity == types.DiagnosticSeverity.Information
    editor.touch("nnx-lint.toml", 'ignore = ["NNX101"]\nexclude = ["configured.py"]\n')
    assert await editor.pull(uri) == []
    editor.client.messages.clear()
    editor.touch("nnx-lint.toml", 'ignroe = ["NNX101"]\n')
    assert [each.code for each in await editor.pull(uri)] == ["NNX101"]
    assert any("did you mean `ignore`?" in each.message for each in editor.client.messages)
    editor.touch("nnx-lint.toml", None)
    editor.close(uri)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "flax==0.10.4\n"),
        ("requirements/base.in", "flax<0.11\n"),
        ("uv.lock", '[[package]]\nname = "flax"\nversion = "0.10.4"\n'),
    ],
)
async def test_what_the_project_requires_is_watched(editor: Editor, name: str, text: str) -> None:
    uri = editor.open("versioned.py", LOST)
    await editor.published(uri, lambda codes: codes == ["NNX101"])
    (editor.folder / name).parent.mkdir(exist_ok=True)
    editor.touch(name, text)
    assert await editor.pull(uri) == []  # lists of that flax are data
    editor.touch(name, None)
    await editor.published(uri, lambda codes: codes == ["NNX101"])
    editor.close(uri)


async def test_settings_win_over_files_and_mistakes_in_them_are_said(editor: Editor) -> None:
    uri = editor.open("settings.py", LOST)
    await editor.published(uri, lambda codes: codes == ["NNX101"])
    for settings, codes in (({"ignore": ["NNX1"]}, []), ({"enable": False}, []), ({}, ["NNX101"])):
        editor.client.set_configuration({"nnx": settings})
        editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(None))
        await editor.published(uri, lambda found, codes=codes: found == codes)  # type: ignore[misc]
    editor.client.messages.clear()
    editor.client.set_configuration({"nnx": {"selct": ["NNX1"], "hintStatus": "no", "ignore": ["NNX1"]}})
    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(None))
    await editor.published(uri, lambda found: found == [])
    said = " ".join(each.message for each in editor.client.messages)
    assert "did you mean nnx.select?" in said
    assert "nnx.hintStatus must be true or false" in said
    editor.client.set_configuration({"nnx": {}})
    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(None))
    await editor.published(uri, lambda found: found == ["NNX101"])
    editor.close(uri)


SHOWN = """\
import jax
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.linear = nnx.Linear(3, 4, rngs=rngs)
        self.width = 4


net = Net(nnx.Rngs(0))
graphdef, params, rest = nnx.split(net, nnx.Param, ...)


@jax.jit
def step(x):
    return net.linear(x)


step(3)
"""


async def test_everything_that_is_shown_can_be_switched_off(editor: Editor) -> None:
    uri = editor.open("shown.py", SHOWN)
    document = types.TextDocumentIdentifier(uri)

    async def shown() -> set[str]:
        hints = await editor.client.text_document_inlay_hint_async(types.InlayHintParams(document, editor.whole(uri)))
        lenses = await editor.client.text_document_code_lens_async(types.CodeLensParams(document))
        tokens = await editor.client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(document))
        labels = " ".join(str(each.label) for each in hints or ())
        there = {"codeLens": lenses, "semanticTokens": tokens is not None and tokens.data}
        there.update({name: word in labels for name, word in WORDS.items()})
        return {name for name, something in there.items() if something}

    async def until(reached: Callable[[set[str]], bool]) -> set[str]:
        async def wait() -> set[str]:
            while not reached(left := await shown()):
                pass
            return left

        return await asyncio.wait_for(wait(), PATIENCE)

    everything = {*WORDS, "codeLens", "semanticTokens"}
    assert await shown() == everything
    for name in everything:
        editor.refreshed.clear()
        editor.client.set_configuration({"nnx": {name: False}})
        editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(None))
        assert await until(lambda left, name=name: name not in left) == everything - {name}
        assert await until(lambda _: editor.refreshed.issuperset(REFRESHES))
        editor.client.set_configuration({"nnx": {}})
        editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(None))
        await until(lambda left, name=name: name in left)
    editor.close(uri)


WORDS = {"hintStatus": "static", "hintFilters": "nnx.Param", "hintCaptures": "captures net", "hintShapes": "(3, 4)"}
"""What the hints of each kind say here."""


async def test_folders_come_and_go(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(LOST)
    (tmp_path / "nnx-lint.toml").write_text('rules = { NNX101 = "warning" }\n')
    folder = types.WorkspaceFolder(tmp_path.as_uri(), "late")
    change = types.WorkspaceFoldersChangeEvent([folder], [])
    editor.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(change))
    uri = (tmp_path / "late.py").as_uri()
    found = await closed(editor, uri, "NNX101")
    assert found.items[0].severity == types.DiagnosticSeverity.Warning
    change = types.WorkspaceFoldersChangeEvent([], [folder])
    editor.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(change))
    await closed(editor, uri)


async def test_documents_that_are_no_files(editor: Editor) -> None:
    for uri in ("untitled:Untitled-1", "git:/some/where.py?%7B%22ref%22%3A%22~%22%7D", "memfs:/a%20b.py"):
        editor.open(uri, LOST)
        assert [each.code for each in await editor.pull(uri)] == ["NNX101"], uri
        editor.close(uri)


@pytest.mark.parametrize("scheme", ["file", "untitled"])
async def test_what_was_never_saved_can_be_imported_from_where_it_will_lie(editor: Editor, scheme: str) -> None:
    saved = editor.uri(f"parts/{scheme}/base.py")
    unsaved = saved.replace("file://", f"{scheme}:" if scheme == "untitled" else "file://")
    user = editor.open(f"{scheme}_user.py", USER.replace("base", f"parts.{scheme}.base"))
    assert await editor.pull(user) == []
    editor.open(unsaved, BASE)
    await editor.published(user, lambda codes: codes == ["NNX101"])
    editor.replace(unsaved, "(nnx.Module)", "")
    await editor.published(user, lambda codes: codes == [])
    editor.close(unsaved)
    editor.open(unsaved, BASE)
    await editor.published(user, lambda codes: codes == ["NNX101"])
    editor.close(unsaved)
    await editor.published(user, lambda codes: codes == [])
    editor.close(user)


async def test_a_document_that_is_saved_becomes_a_file(editor: Editor) -> None:
    user = editor.open("saved_user.py", USER.replace("base", "saved_base"))
    unsaved = editor.open(editor.uri("saved_base.py").replace("file://", "untitled:"), BASE)
    await editor.published(user, lambda codes: codes == ["NNX101"])
    saved = editor.open(editor.touch("saved_base.py", BASE), BASE)
    editor.close(unsaved)  # VS Code does that after it has opened the file
    assert [each.code for each in await editor.pull(user)] == ["NNX101"]
    editor.replace(saved, "(nnx.Module)", "")
    await editor.published(user, lambda codes: codes == [])
    editor.close(saved)
    editor.touch("saved_base.py", None)
    editor.close(user)


async def test_completion_in_configuration_files(editor: Editor) -> None:
    text = 'target = "flax-0.12"\nselect = ["NNX101", ""]\n\n'
    uri = editor.open("sub/nnx-lint.toml", text, "toml")
    for place, wanted in ((editor.at(uri, '"]', 'NNX101", "'), "NNX102"), (types.Position(2, 0), "per-file-ignores")):
        params = types.CompletionParams(types.TextDocumentIdentifier(uri), place)
        answer = await editor.client.text_document_completion_async(params)
        assert isinstance(answer, types.CompletionList)
        assert wanted in [item.label for item in answer.items]
    editor.close(uri)


async def test_completion_in_the_table_of_a_shared_configuration_file(editor: Editor) -> None:
    text = '[project]\nname = ""\n\n[tool.nnx-lint]\nselect = ["NNX101", ""]\n\n[tool.ruff]\nselect = [""]\n\n'
    uri = editor.open("sub/pyproject.toml", text, "toml")
    for line, column, wanted in ((1, 8, None), (4, 21, "NNX102"), (5, 0, "per-file-ignores"), (7, 11, None)):
        params = types.CompletionParams(types.TextDocumentIdentifier(uri), types.Position(line, column))
        answer = await editor.client.text_document_completion_async(params)
        assert isinstance(answer, types.CompletionList)
        labels = [item.label for item in answer.items]
        assert (wanted in labels) if wanted is not None else labels == []
    editor.close(uri)


async def test_progress_of_a_scan_is_shown(editor: Editor) -> None:
    await closed(editor, "closed.py", "NNX101")
    kinds = [report.kind for reports in editor.client.progress_reports.values() for report in reports]
    assert {"begin", "end"} <= set(kinds)
