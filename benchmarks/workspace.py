"""What `nnx-lsp` costs in a big workspace: while it is being scanned, and afterwards.

Somebody opens a file of a folder and types into it while all other files are checked. What is measured is the time from
an edit to its diagnostics and to a completion (by the clock, and in brackets of processors in the server's own
process), and the memory of the server and of the process that scans.

    python benchmarks/workspace.py FOLDER FILE                 # FILE in FOLDER, which stays as it is
    python benchmarks/workspace.py FOLDER FILE OTHER ...       # while other files are open, too
    python benchmarks/workspace.py FOLDER FILE --seconds 60    # how long at most; 120 if nothing is said
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from server import SERVERS, Edit, Server, quantile, script

PAUSE = 0.1
"""Seconds between two keystrokes."""

SCANNING, QUIET = "while scanning", "afterwards"


class Sample(NamedTuple):
    """One keystroke."""

    when: str
    edit: float
    completion: float
    busy: float


class Workspace(Server):
    """A server that checks all files of its folder, and says how far it is."""

    settings: ClassVar[dict[str, Any]] = {"diagnosticMode": "workspace"}
    capabilities: ClassVar[dict[str, Any]] = {"window": {"workDoneProgress": True}}
    scanning = True

    def _got(self, message: dict[str, Any]) -> None:
        if message.get("method") == "$/progress":
            self.scanning = message["params"]["value"]["kind"] != "end"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("other", type=Path, nargs="*")
    parser.add_argument("--seconds", type=float, default=120)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as kept:
        server = Workspace(SERVERS["nnx-lsp"], asked.folder.resolve(), Path(kept))
        for other in asked.other:
            _open(server, other.resolve())
        return look(server, asked.file.resolve(), asked.seconds)


def _open(server: Workspace, file: Path) -> str:
    uri = file.as_uri()
    server.open(uri, file.read_text())
    server.diagnostics(uri, 0)
    return uri


def look(server: Workspace, file: Path, patience: float) -> int:
    """Type into a file until it was quiet for a hundred keystrokes."""
    text, uri = file.read_text(), _open(server, file)
    start = time.perf_counter() - server.began
    samples: list[Sample] = []
    memory: dict[str, list[tuple[float, float]]] = {SCANNING: [], QUIET: []}
    quiet = 0
    for version, edit in enumerate(script(text), 1):
        when = SCANNING if server.scanning else QUIET
        samples.append(_type(server, uri, version, edit, when))
        memory[when].append((server.memory(children=False), server.memory()))
        quiet += when == QUIET
        if quiet == 100 or time.perf_counter() - server.began > patience:
            break
        time.sleep(PAUSE)
    server.stop()
    _report(start, samples, memory)
    return 0


def _type(server: Workspace, uri: str, version: int, edit: Edit, when: str) -> Sample:
    document = {"uri": uri, "version": version}
    busy, begin = server.busy(children=False), time.perf_counter()
    server.tell("textDocument/didChange", {"textDocument": document, "contentChanges": [edit.change]})
    server.ask("textDocument/completion", {"textDocument": {"uri": uri}, "position": edit.place})
    completion = time.perf_counter() - begin
    server.diagnostics(uri, version)
    return Sample(when, time.perf_counter() - begin, completion, server.busy(children=False) - busy)


def _report(start: float, samples: list[Sample], memory: dict[str, list[tuple[float, float]]]) -> None:
    print(f"{1e3 * start:.0f} ms from the start to the first diagnostics; milliseconds below\n")
    print("| | edits | to diagnostics, median | 95 % | to a completion, median | 95 % | memory, MB | with the scan |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for when in (SCANNING, QUIET):
        chosen = [each for each in samples if each.when == when]
        if not chosen:
            print(f"| {when} | 0 | | | | | | |")
            continue
        edits, busy = [each.edit for each in chosen], [each.busy for each in chosen]
        completions = [each.completion for each in chosen]
        cells = [f"{quantile(edits, share):.0f} ({quantile(busy, share):.0f})" for share in (0.5, 0.95)]
        cells += [f"{quantile(completions, share):.0f}" for share in (0.5, 0.95)]
        cells += [f"{max(each[index] for each in memory[when]):.0f}" for index in (0, 1)]
        print(f"| {when} | {len(chosen)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    sys.exit(main())
