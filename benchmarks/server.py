"""How fast `nnx-lsp` answers while somebody types, against ruff, ty and pyright over the same edits in the same run.

Every server gets the same file of about 1,000 lines, the same keystrokes, and is asked for the diagnostics after each.
What is measured begins when the edit is sent and ends when its diagnostics are there; our own server is then asked what
an editor shows besides, so that each answer is about a text that it has not seen before. Beside the time of the clock
stands the time of processors that the server took for it, which a machine that does other things at once leaves alone.
The tools answer different questions, so the times say what somebody who types waits for.

    python benchmarks/server.py            # a file that is made up here
    python benchmarks/server.py FILE       # any other one
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue
from typing import Any, ClassVar

from _installed import environment

LINES = 1_000
EDITS = 150
STARTS = 5
PATIENCE = 60
TICK = 1e-9

SERVERS: dict[str, list[str]] = {
    "nnx-lsp": [sys.executable, "-P", "-m", "nnx_lsp", "--stdio"],
    "ruff": ["ruff", "server"],
    "ty": ["ty", "server"],
    "pyright": ["pyright-langserver", "--stdio"],
}

PART = '''
class Attention{n}(nnx.Module):
    """Self-attention over {width} features."""

    def __init__(self, width: int, heads: int, *, rngs: nnx.Rngs):
        self.heads = heads
        self.query = nnx.Linear(width, width, rngs=rngs)
        self.key = nnx.Linear(width, width, rngs=rngs)
        self.value = nnx.Linear(width, width, rngs=rngs)
        self.out = nnx.Linear(width, width, rngs=rngs)
        self.drop = nnx.Dropout(0.1, rngs=rngs)

    def __call__(self, x, mask=None):
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        query, key, value = (layer(x).reshape(shape) for layer in (self.query, self.key, self.value))
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / jnp.sqrt(width // self.heads)
        if mask is not None:
            scores = jnp.where(mask, scores, -1e9)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), value)
        return self.out(self.drop(mixed.reshape(batch, length, width)))


class Block{n}(nnx.Module):
    def __init__(self, width: int, *, rngs: nnx.Rngs):
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.attention = Attention{n}(width, 4, rngs=rngs)
        self.up = nnx.Linear(width, 4 * width, rngs=rngs)
        self.down = nnx.Linear(4 * width, width, rngs=rngs)
        self.calls = nnx.BatchStat(jnp.zeros(()))

    def __call__(self, x):
        self.calls[...] += 1
        x = x + self.attention(self.norm(x))
        return x + self.down(nnx.gelu(self.up(x)))


class Model{n}(nnx.Module):
    def __init__(self, depth: int, *, rngs: nnx.Rngs):
        self.embed = nnx.Embed(1000, {width}, rngs=rngs)
        self.blocks = nnx.List([Block{n}({width}, rngs=rngs) for _ in range(depth)])
        self.head = nnx.Linear({width}, 1000, rngs=rngs)

    def __call__(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def loss{n}(model: Model{n}, tokens, targets):
    logits = model(tokens)
    return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()


@nnx.jit
def train_step{n}(model: Model{n}, optimizer: nnx.Optimizer, tokens, targets):
    value, grads = nnx.value_and_grad(loss{n})(model, tokens, targets)
    optimizer.update(model, grads)
    return value


def train{n}(steps: int):
    model = Model{n}(2, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    for step in range(steps):
        tokens = jnp.ones((8, 16), jnp.int32)
        value = train_step{n}(model, optimizer, tokens, tokens)
        print(step, value)
    graphdef, params, rest = nnx.split(model, nnx.Param, ...)
    return nnx.merge(graphdef, params, rest)

'''

TYPED = (
    "\n        self.extra = [nnx.Linear(2, 2, rngs=rngs)]",
    "\n        scale = jnp.sqrt(2.0)  # to keep the variance",
    "\n        state = nnx.state(self, nnx.Param)",
    '\n        """What this is about."""',
)
"""What is typed, letter by letter, at the ends of lines in methods."""


def made_up() -> str:
    """A program of about a thousand lines."""
    text = "import jax\nimport jax.numpy as jnp\nimport optax\nfrom flax import nnx\n"
    for number in itertools.count():
        if text.count("\n") >= LINES:
            return text
        text += PART.format(n=number, width=64 * (number + 1))
    raise AssertionError


class Edit:
    """One keystroke, and the text after it."""

    def __init__(self, before: str, offset: int, old: int, new: str) -> None:
        self.text = before[:offset] + new + before[offset + old :]
        head = before[:offset].split("\n")
        start = {"line": len(head) - 1, "character": len(head[-1])}
        tail = before[: offset + old].split("\n")
        end = {"line": len(tail) - 1, "character": len(tail[-1])}
        self.change = {"range": {"start": start, "end": end}, "text": new}
        self.place = start


def script(text: str) -> Iterator[Edit]:
    """Keystrokes: something is typed into a method, letter by letter, and taken out again at once."""
    numbers = random.Random(0)
    ends = [index for index, character in enumerate(text) if character == "\n" and text[:index].endswith(")")]
    for typed in itertools.cycle(TYPED):
        start = numbers.choice(ends)
        for length, letter in enumerate(typed):
            edit = Edit(text, start + length, 0, letter)
            text = edit.text
            yield edit
        edit = Edit(text, start, len(typed), "")
        text = edit.text
        yield edit


class Server:
    """A language server as a process, and the least that is needed to talk to it."""

    settings: ClassVar[dict[str, Any]] = {"diagnosticMode": "open-files"}
    capabilities: ClassVar[dict[str, Any]] = {}

    def __init__(self, command: list[str], folder: Path, kept: Path) -> None:
        """Start it for a folder; what Python compiles is kept in ``kept``."""
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(kept, ("runtime", "analyzer", "lsp")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.messages: Queue[dict[str, Any]] = Queue()
        self.numbers = itertools.count(1)
        threading.Thread(target=self._read, daemon=True).start()
        published = {"versionSupport": True, "relatedInformation": True, "dataSupport": True}
        document = {"publishDiagnostics": published, "diagnostic": {}, "hover": {"contentFormat": ["markdown"]}}
        answer = self.ask(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": folder.as_uri(),
                "workspaceFolders": [{"uri": folder.as_uri(), "name": folder.name}],
                "capabilities": {
                    "textDocument": document,
                    "workspace": {"workspaceFolders": True},
                    "general": {"positionEncodings": ["utf-32", "utf-16"]},
                    **self.capabilities,
                },
                "initializationOptions": {"settings": self.settings},
            },
        )
        self.pulls = answer["capabilities"].get("diagnosticProvider") is not None
        self.tell("initialized", {})

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while header := stream.readline():
            length = int(header.split(b":")[1])
            while stream.readline().strip():
                pass
            self.messages.put(json.loads(stream.read(length)))

    def send(self, **content: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **content}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def tell(self, method: str, params: object) -> None:
        self.send(method=method, params=params)

    def open(self, uri: str, text: str) -> None:
        """Open a document, whose text is that of version 0."""
        document = {"uri": uri, "languageId": "python", "version": 0, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": document})

    def wait(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first message that is wanted; requests of the server are answered with nothing."""
        while True:
            message = self.messages.get(timeout=PATIENCE)
            self._got(message)
            if wanted(message):
                return message
            if "id" in message and "method" in message:
                items = (message.get("params") or {}).get("items") or []
                self.send(id=message["id"], result=[{}] * len(items) if items else None)

    def _got(self, message: dict[str, Any]) -> None:
        """Look at a message that came."""

    def ask(self, method: str, params: object) -> Any:
        number = next(self.numbers)
        self.send(id=number, method=method, params=params)
        answer = self.wait(lambda message: message.get("id") == number and "method" not in message)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def diagnostics(self, uri: str, version: int) -> list[Any]:
        """The diagnostics of a version of a document."""
        if self.pulls:
            return list(self.ask("textDocument/diagnostic", {"textDocument": {"uri": uri}}).get("items", []))

        def published(message: dict[str, Any]) -> bool:
            params = message.get("params") or {}
            named = message.get("method") == "textDocument/publishDiagnostics" and params["uri"] == uri
            return named and params.get("version", version) == version

        return list(self.wait(published)["params"]["diagnostics"])

    def busy(self, *, children: bool = True) -> float:
        """Seconds of processors that the server has taken, and the processes that it started."""
        total = 0.0
        for process in [self.process.pid, *(_children(self.process.pid) if children else ())]:
            for task in Path(f"/proc/{process}/task").glob("*/schedstat"):
                total += int(task.read_text().split()[0]) * TICK
        return total

    def memory(self, *, children: bool = True) -> float:
        """Megabytes that they hold."""
        pages = sum(
            int(Path(f"/proc/{process}/statm").read_text().split()[1])
            for process in [self.process.pid, *(_children(self.process.pid) if children else ())]
        )
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def _children(process: int) -> list[int]:
    found = [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    return [*found, *(inner for child in found for inner in _children(child))]


Times = dict[str, list[tuple[float, float]]]
"""What took how long, by the clock and of processors."""


def start(command: list[str], file: Path, text: str, kept: Path) -> tuple[Server, tuple[float, float]]:
    """A server that has said what is wrong with a file, and what that took."""
    server = Server(command, file.parent, kept)
    server.open(file.as_uri(), text)
    server.diagnostics(file.as_uri(), 0)
    return server, (time.perf_counter() - server.began, server.busy(children=False))


def questions(uri: str, text: str, numbers: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    """What an editor asks of a text that was just edited, in some place."""
    lines = text.split("\n")
    line = numbers.choice([number for number, content in enumerate(lines) if "self." in content])
    document = {"textDocument": {"uri": uri}}
    here = {**document, "position": {"line": line, "character": lines[line].index("self.") + 6}}
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": len(lines) - 1, "character": 0}}
    yield "textDocument/hover", here
    yield "textDocument/completion", here
    yield "textDocument/inlayHint", {**document, "range": whole}
    yield "textDocument/semanticTokens/full", document
    yield "textDocument/documentSymbol", document
    yield "textDocument/codeLens", document


def measure(name: str, command: list[str], file: Path, text: str, kept: Path) -> tuple[Times, float]:
    """Start a server a few times, the first for the byte code, and go through the script with the last one."""
    times: Times = {"start": [], "edit": []}
    server, _ = start(command, file, text, kept)
    for _ in range(STARTS):
        server.stop()
        server, begun = start(command, file, text, kept)
        times["start"].append(begun)
    uri = file.as_uri()
    numbers = random.Random(1)
    for version, edit in enumerate(itertools.islice(script(text), EDITS), 1):
        busy, begin = server.busy(), time.perf_counter()
        document = {"uri": uri, "version": version}
        server.tell("textDocument/didChange", {"textDocument": document, "contentChanges": [edit.change]})
        server.diagnostics(uri, version)
        taken = time.perf_counter() - begin
        times["edit"].append((taken, server.busy() - busy))
        for method, params in questions(uri, edit.text, numbers) if name == "nnx-lsp" else ():
            busy, begin = server.busy(), time.perf_counter()
            server.ask(method, params)
            times.setdefault(method.partition("/")[2], []).append((time.perf_counter() - begin, server.busy() - busy))
    memory = server.memory()
    server.stop()
    return times, memory


def quantile(values: list[float], share: float) -> float:
    """A quantile, in milliseconds."""
    return 1e3 * sorted(values)[min(int(share * len(values)), len(values) - 1)]


def main() -> int:
    text = Path(sys.argv[1]).read_text() if len(sys.argv) > 1 else made_up()
    print(f"{text.count(chr(10)):,} lines, {EDITS} edits; milliseconds, in brackets those of processors\n")
    print("| server | what | median | 95 % | memory MB |")
    print("|---|---|---:|---:|---:|")
    for name, command in SERVERS.items():
        if shutil.which(command[0]) is None and not (Path(sys.prefix) / "bin" / command[0]).exists():
            print(f"| {name} | not installed | | | |")
            continue
        found = Path(sys.prefix) / "bin" / command[0]
        program = str(found) if found.exists() else command[0]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder).resolve() / "model" / "model.py"
            file.parent.mkdir()
            file.write_text(text)
            try:
                times, memory = measure(name, [program, *command[1:]], file, text, Path(folder))
            except Empty:
                print(f"| {name} | no findings within {PATIENCE} s of an edit | | | |", flush=True)
                continue
        for what, taken in times.items():
            clock, busy = [each[0] for each in taken], [each[1] for each in taken]
            middle = f"{1e3 * statistics.median(clock):.1f} ({1e3 * statistics.median(busy):.1f})"
            worst = f"{quantile(clock, 0.95):.1f} ({quantile(busy, 0.95):.1f})"
            print(f"| {name} | {what} | {middle} | {worst} | {memory:.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
