"""The server as a process: its command line, its end, and what it makes of clients that misbehave."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from editor import COMMAND, PATIENCE, Editor, capabilities, environment, message

if TYPE_CHECKING:
    from pathlib import Path

BAD = (
    "from flax import nnx\n\n\nclass Net(nnx.Module):\n    def __init__(self):\n        self.layers = [nnx.Param(1)]\n"
)

INITIALIZE = {"processId": None, "rootUri": None, "capabilities": {}}


def talk(data: bytes, *flags: str) -> subprocess.CompletedProcess[bytes]:
    """Run a server on some input, to its end."""
    return subprocess.run(
        [*COMMAND, *flags], input=data, env=environment(), capture_output=True, timeout=PATIENCE, check=False
    )


def answers(output: bytes) -> list[dict[str, Any]]:
    """The messages that a server has sent."""
    found: list[dict[str, Any]] = []
    while output:
        head, _, rest = output.partition(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length"))
        found.append(json.loads(rest[:length]))
        output = rest[length:]
    return found


def test_it_ends_when_it_is_told_to() -> None:
    done = talk(
        message(id=1, method="initialize", params=INITIALIZE)
        + message(method="initialized", params={})
        + message(id=2, method="shutdown")
        + message(method="exit")
    )
    assert (done.returncode, done.stderr) == (0, b"")
    first = answers(done.stdout)[0]
    assert first["result"]["serverInfo"]["name"] == "nnx-lsp"


def test_modules_of_the_workspace_do_not_hide_those_of_python(tmp_path: Path) -> None:
    for name in ("typing.py", "math.py", "logging.py"):
        (tmp_path / name).write_text("raise SystemExit('the workspace was run')\n")
    done = subprocess.run(
        [*COMMAND[:-1], "--version"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_it_ends_when_nobody_talks_to_it_any_more() -> None:
    talk(message(id=1, method="initialize", params=INITIALIZE))  # or this runs into its time limit


def test_it_ends_with_the_process_that_started_it() -> None:
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    server = subprocess.Popen(COMMAND, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    with server.stdin as stream, server.stdout as output:
        params = {**INITIALIZE, "processId": parent.pid}
        stream.write(message(id=1, method="initialize", params=params))
        stream.flush()
        assert output.readline().startswith(b"Content-Length")
        parent.communicate(b"\n")
        server.wait(PATIENCE)


def test_what_is_malformed_is_refused_and_nothing_more() -> None:
    done = talk(
        message(id=1, method="initialize", params=INITIALIZE)
        + message(id=2, method="textDocument/hover", params={"position": "here"})
        + message(id=3, method="nnx/unknown", params={})
        + message(id=6, method="nnx/unknown")
        + message(method="textDocument/didChange", params={"nonsense": 1})
        + message(id=4, method="workspace/executeCommand", params={"command": "nnx.rules"})
        + message(id=5, method="shutdown")
        + message(method="exit")
    )
    by_id = {each["id"]: each for each in answers(done.stdout) if "id" in each and "method" not in each}
    assert by_id[2]["error"]["code"] == -32602
    assert by_id[3]["error"]["code"] == by_id[6]["error"]["code"] == -32601
    assert len(by_id[4]["result"]) > 50
    assert "result" in by_id[5]
    assert done.returncode == 0


def test_log_file_and_wrong_flags(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    talk(message(id=1, method="initialize", params=INITIALIZE) + message(method="exit"), "--log-file", str(log))
    assert "initialized" in log.read_text()
    for flags, wanted in (
        (["--log-file", str(tmp_path / "no" / "such")], b"cannot be written"),
        (["--tcp", "localhost"], b"is no port"),
    ):
        done = talk(b"", *flags)
        assert done.returncode == 2
        assert wanted in done.stderr
        assert b"Traceback" not in done.stderr


def test_over_tcp() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*COMMAND[:-1], "--tcp", str(port), "--log-file", os.devnull]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE) as server:
        try:
            with _connected(port) as connection, connection.makefile("rb") as stream:
                connection.sendall(message(id=1, method="initialize", params=INITIALIZE))
                assert stream.readline().startswith(b"Content-Length")
                connection.sendall(message(id=2, method="shutdown") + message(method="exit"))
                said, _ = server.communicate(timeout=PATIENCE)
        finally:
            server.kill()
    assert said == f"nnx-lsp waits for a client on 127.0.0.1:{port}\n".encode()


def _connected(port: int) -> socket.socket:
    """A connection to a server that is starting."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), PATIENCE)
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise


@pytest.mark.asyncio
async def test_a_crash_of_one_feature_is_said_once_and_ends_nothing(tmp_path: Path) -> None:
    editor = await Editor.start("pulling", tmp_path)
    uri = editor.open("model.py", BAD)
    for _ in range(2):
        with pytest.raises(JsonRpcException, match=r"KeyError: .line"):
            await editor.command("nnx.graph", {"uri": uri, "position": {"where": 1}})
    assert [each.code for each in await editor.pull(uri)] == ["NNX101"]
    said = [each.message for each in editor.client.messages if "internal error" in each.message]
    assert len(said) == 1
    await editor.stop()


CRASHING = """
from nnx_lint.engine import Engine
from nnx_lsp.__main__ import main

def evaluate(engine, module):
    raise KeyError("a bug")

Engine.evaluate = evaluate
main()
"""


@pytest.mark.asyncio
async def test_a_file_that_cannot_be_checked_is_said_once(tmp_path: Path) -> None:
    editor = await Editor.start("pulling", tmp_path, command=[sys.executable, "-c", CRASHING])
    uri = editor.open("model.py", BAD)
    for text in ("nnx.Param(1)", "nnx.Param(2)"):
        assert await editor.pull(uri) == []
        editor.replace(uri, text, "nnx.Param(2)")
    await editor.hover(uri, editor.at(uri, "layers"))
    said = [each.message for each in editor.client.messages]
    assert len(said) == 1
    assert "model.py: internal error: KeyError" in said[0]
    await editor.stop()


@pytest.mark.asyncio
async def test_requests_are_cancelled_and_edits_overtake(tmp_path: Path) -> None:
    editor = await Editor.start("pulling", tmp_path)
    many = "from flax import nnx\n" + "".join(BAD.split("\n", 1)[1].replace("Net", f"Net{n}") for n in range(150))
    uri = editor.open("long.py", many)
    document = types.TextDocumentIdentifier(uri)
    first = asyncio.ensure_future(
        editor.client.protocol.send_request_async(
            types.TEXT_DOCUMENT_DIAGNOSTIC, types.DocumentDiagnosticParams(document), msg_id="slow"
        )
    )
    await asyncio.sleep(0)
    editor.client.cancel_request(types.CancelParams("slow"))
    with pytest.raises(JsonRpcException, match=r"(?i)cancel"):
        await asyncio.wait_for(first, PATIENCE)
    pending = [asyncio.ensure_future(editor.pull(uri)) for _ in range(3)]
    editor.replace(uri, "class Net7(nnx.Module)", "class Net7")
    results = await asyncio.wait_for(asyncio.gather(*pending), PATIENCE)
    assert [len(found) for found in results] == [149, 149, 149]
    await editor.stop()


@pytest.mark.asyncio
async def test_who_pulls_is_told_to_ask_again_when_an_edit_elsewhere_matters(tmp_path: Path) -> None:
    (tmp_path / "base.py").write_text("from flax import nnx\n\n\nclass Base(nnx.Module):\n    pass\n")
    editor = await Editor.start("pulling", tmp_path, settings={"diagnosticMode": "open-files"})
    base = editor.open("base.py", (tmp_path / "base.py").read_text())
    user = editor.open(
        "user.py", BAD.replace("nnx.Param(1)", "Base()").replace("nnx\n", "nnx\nfrom base import Base\n", 1)
    )
    assert [each.code for each in await editor.pull(user)] == ["NNX101"]

    async def told(times: int) -> None:
        while editor.client.diagnostic_refresh_count < times:
            await editor.hover(base, types.Position(0, 0))

    await asyncio.wait_for(told(2), PATIENCE)  # when settings are known, and the files of the folder
    editor.replace(user, "self.layers", "self.others")  # whoever types asks without being told
    assert [each.code for each in await editor.pull(user)] == ["NNX101"]
    editor.replace(base, "pass", "...")
    await editor.pull(base)
    assert editor.client.diagnostic_refresh_count == 2
    editor.replace(base, "(nnx.Module)", "")
    await asyncio.wait_for(told(3), PATIENCE)
    assert await editor.pull(user) == []
    await editor.stop()


@pytest.mark.asyncio
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_positions_count_in_the_units_that_the_client_has(tmp_path: Path, encoding: str) -> None:
    known = capabilities("pulling")
    known.general = types.GeneralClientCapabilities(position_encodings=[types.PositionEncodingKind(encoding)])
    editor = await Editor.start(known, tmp_path)
    assert editor.encoding.startswith(encoding)
    uri = editor.open("model.py", BAD.replace("self.layers", "é = '\U0001f600'; self.layers"))
    (found,) = await editor.pull(uri)
    assert found.range == editor.range_of(uri, "[nnx.Param(1)]")
    editor.replace(uri, "\U0001f600", "\U0001f600ßß")
    (found,) = await editor.pull(uri)
    assert found.range == editor.range_of(uri, "[nnx.Param(1)]")
    await editor.stop()


@pytest.mark.asyncio
async def test_no_code_of_the_workspace_is_run(tmp_path: Path) -> None:
    mark = f"open({str(tmp_path / 'was-run')!r}, 'w').close()\n"
    for name in ("__init__.py", "conftest.py", "helper.py", "setup.py", "sitecustomize.py", "usercustomize.py"):
        (tmp_path / name).write_text(mark)
    editor = await Editor.start("pulling", tmp_path)
    uri = editor.open("model.py", f"import helper\n{mark}{BAD}net = Net()\n")
    assert [each.code for each in await editor.pull(uri)] == ["NNX101"]
    assert (await editor.command("nnx.graph", {"uri": uri, "class": "Net"}))["class"] == "Net"
    await editor.stop()
    assert not (tmp_path / "was-run").exists()


@pytest.mark.asyncio
async def test_a_client_that_traces_the_server_hears_what_it_does(tmp_path: Path) -> None:
    editor = await Editor.start("pulling", tmp_path)
    heard: list[types.LogTraceParams] = []
    editor.client.feature(types.LOG_TRACE)(lambda params: heard.append(params))
    uri = editor.open("model.py", BAD)
    assert [each.code for each in await editor.pull(uri)] == ["NNX101"]
    assert heard == []
    for level, details in (
        (types.TraceValue.Messages, None),
        (types.TraceValue.Verbose, "NNX101 `Net.layers` is static, but its value, a list of Param, holds data"),
    ):
        editor.client.set_trace(types.SetTraceParams(level))
        await editor.pull(uri)
        assert heard[-1].verbose == details
        assert re.fullmatch(r".*model\.py: 1 finding after \d+\.\d ms", heard[-1].message)
    await editor.stop()


@pytest.mark.asyncio
async def test_a_client_that_can_do_nothing_gets_findings(tmp_path: Path) -> None:
    editor = await Editor.start(
        types.ClientCapabilities(text_document=types.TextDocumentClientCapabilities()), tmp_path
    )
    uri = editor.open("model.py", BAD)
    (found,) = await editor.published(uri, lambda codes: codes == ["NNX101"])
    assert (found.tags, found.code_description, found.related_information) == (None, None, None)
    assert await editor.actions(uri, editor.range_of(uri, "[nnx.Param(1)]")) == []
    assert capabilities("emacs").text_document is not None
    await editor.stop()


@pytest.mark.asyncio
async def test_settings_for_other_servers_change_nothing(tmp_path: Path) -> None:
    bare = types.ClientCapabilities(text_document=types.TextDocumentClientCapabilities())
    editor = await Editor.start(bare, tmp_path, options={"settings": {"ignore": ["NNX1"]}})
    tell = editor.client.workspace_did_change_configuration
    uri = editor.open("model.py", BAD)
    await editor.published(uri, lambda codes: codes == [])
    for sent in ({"settings": {"ignore": []}}, {"pylsp": {"plugins": {}}}, {}, None):
        tell(types.DidChangeConfigurationParams(sent))
    editor.replace(uri, "nnx.Param(1)", "nnx.Param(2)")
    assert await editor.pull(uri) == []
    for sent, codes in (({"ignore": []}, ["NNX101"]), ({"nnx": {"ignore": ["NNX1"]}}, [])):
        tell(types.DidChangeConfigurationParams(sent))
        assert [each.code for each in await editor.pull(uri)] == codes
    assert [each.message for each in editor.client.messages] == []
    await editor.stop()
