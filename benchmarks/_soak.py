"""Twenty thousand random edits: the memory of the language server stays flat, and its findings those of a fresh one.

    python benchmarks/_soak.py                     # 20,000 edits of a program that is made up in benchmarks/server.py
    python benchmarks/_soak.py 2000                # fewer
    python benchmarks/_soak.py 2000 FOLDER         # of the files of a folder, which stay as they are

Files are opened, changed and closed again by chance, most edits break the syntax for a while, and every hundredth edit
waits for the findings. In the end each open text is given to a new server, which must find the same.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from server import SERVERS, Edit, Server, made_up

OPEN = 6
"""How many files are open at a time."""

LOOK = 100

GROWTH = 1.1
"""How much more the last quarter of the edits may need than the first half, by whose end garbage has been collected
in all the ways there are: what leaks in 20,000 edits may be a fifth of what is held."""

MISTAKE = """

class Lost(nnx.Module):
    def __init__(self):
        self.layers = [nnx.Param(1)]
"""
SNIPPETS = (
    "self.",
    "(",
    ")",
    "[",
    "]",
    "\n",
    "    ",
    "#",
    '"',
    "nnx.Param",
    "nnx.List",
    ", ",
    "x",
    "=",
    ":",
    "0",
    "é\U0001f600",
)


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve() / "soak"
        if len(sys.argv) > 2:
            shutil.copytree(sys.argv[2], folder)
        else:
            folder.mkdir()
            for number in range(OPEN):
                (folder / f"model{number}.py").write_text(made_up()[: 6_000 * (number + 1)] + MISTAKE)
        return soak(folder, count, Path(name))


def soak(folder: Path, count: int, kept: Path) -> int:
    """Edit, watch the memory, and compare in the end."""
    numbers = random.Random(0)
    files = sorted(folder.rglob("*.py"))
    server = Server(SERVERS["nnx-lsp"], folder, kept)
    texts: dict[str, str] = {}
    versions: dict[str, int] = {}
    memory: list[float] = []
    for number in range(count):
        if len(texts) < OPEN and len(texts) < len(files):
            file = numbers.choice([each for each in files if each.as_uri() not in texts])
            begin(server, texts, versions, file)
        elif number % 500 == 499:
            uri = numbers.choice(sorted(texts))
            server.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
            del texts[uri]
            continue
        uri = numbers.choice(sorted(texts))
        text = texts[uri]
        offset, old = numbers.randrange(len(text) + 1), numbers.choice((0, 0, 0, 1, 5))
        new = numbers.choice((*SNIPPETS, ""))
        edit = Edit(text, offset, min(old, len(text) - offset), new)
        texts[uri] = edit.text
        versions[uri] += 1
        document = {"uri": uri, "version": versions[uri]}
        server.tell("textDocument/didChange", {"textDocument": document, "contentChanges": [edit.change]})
        if numbers.random() < 0.02:  # somebody undoes everything
            texts[uri] = _original(uri, files)
            versions[uri] += 1
            document = {"uri": uri, "version": versions[uri]}
            server.tell("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": texts[uri]}]})
        if number % LOOK == LOOK - 1:
            server.diagnostics(uri, versions[uri])
            memory.append(server.memory())
            if len(memory) % 10 == 0:
                print(f"{number + 1:,} edits, {memory[-1]:.0f} MB", flush=True)
    for uri in sorted(texts)[::2]:  # texts that can be read have findings
        texts[uri] = _original(uri, files)
        versions[uri] += 1
        document = {"uri": uri, "version": versions[uri]}
        server.tell("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": texts[uri]}]})
    found = {uri: findings(server, uri, versions[uri]) for uri in texts}
    server.stop()
    fresh = Server(SERVERS["nnx-lsp"], folder, kept)
    for uri, text in texts.items():
        fresh.open(uri, text)
    expected = {uri: findings(fresh, uri, 0) for uri in texts}
    fresh.stop()
    same = found == expected
    early, late = max(memory[: len(memory) // 2]), max(memory[-len(memory) // 4 :])
    print(f"findings {'equal' if same else 'DIFFER FROM'} those of a fresh server: {sum(map(len, expected.values()))}")
    print(f"memory at most {early:.0f} MB in the first half, {late:.0f} MB in the last quarter")
    for uri in texts if not same else ():
        for each in found[uri] ^ expected[uri]:
            print(uri, each)
    return 0 if same and late < GROWTH * early else 1


def begin(server: Server, texts: dict[str, str], versions: dict[str, int], file: Path) -> None:
    """Open a file."""
    uri = file.as_uri()
    texts[uri], versions[uri] = file.read_text(), 0
    server.open(uri, texts[uri])


def _original(uri: str, files: list[Path]) -> str:
    return next(file for file in files if file.as_uri() == uri).read_text()


def findings(server: Server, uri: str, version: int) -> set[Any]:
    """The findings of a document, to be compared."""
    return {
        (each["code"], each["message"], str(sorted(each["range"].items()))) for each in server.diagnostics(uri, version)
    }


if __name__ == "__main__":
    sys.exit(main())
