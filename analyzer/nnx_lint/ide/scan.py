"""Looking through a whole folder, in a process of its own.

A scan tells which files there are and what their texts say about others (:class:`~nnx_lint.relevance.Facts`); a *full*
one also checks those that are not being edited. The process gets one request and answers by lines of JSON, so whoever
asked can end it at any time, is never held up by it, and gets its memory back.

``python -m nnx_lint.ide.scan`` is that process.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from nnx_lint.ide import settings
from nnx_lint.ide.analysis import Analysis, Closed
from nnx_lint.relevance import Facts
from nnx_lint.source import SourceFile
from nnx_lint.stack import with_room
from nnx_lint.units import pack_finding, unpack_finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nnx_lint.units import Unit

NICE = 10
"""How much the process steps back behind what people wait for."""


class Request(NamedTuple):
    """What to scan.

    Attributes:
        folder: the folder, an absolute path.
        settings: those of the editor, as it sent them.
        texts: files that are being edited.
        full: whether to check files.
        only: the files to check; ``None`` means all that are not being edited.
    """

    folder: str
    settings: object
    texts: Mapping[str, str]
    full: bool
    only: Sequence[str] | None = None


class Found(NamedTuple):
    """The files of the folder, with what is known of them."""

    facts: Mapping[str, Facts | None]


class Progress(NamedTuple):
    """How many of the files have been checked."""

    done: int
    total: int


class Result(NamedTuple):
    """What there is to say of one file."""

    path: str
    closed: Closed


Message = Found | Progress | Result


def run(request: Request) -> Iterator[Message]:
    """Do what is asked for."""
    from nnx_lint.files import discover

    analysis = Analysis(request.folder, settings.read(request.settings), noting=False)
    for path, text in request.texts.items():
        analysis.edit(SourceFile.from_text(text, path))
    paths = discover([request.folder], analysis.configuration).files
    analysis.found(paths)
    engine = analysis.engine
    yield Found({path: engine.facts.get(path) for path in paths})
    if not request.full:
        return
    wanted = set(paths if request.only is None else request.only).difference(request.texts)
    todo = [path for path in paths if path in wanted]
    units: list[Unit] = []
    for unit in analysis.look_through(todo):
        units.append(unit)
        yield Progress(len(units), len(todo))
    for path, closed in analysis.closing(units):
        yield Result(path, closed)


# -- the process -------------------------------------------------------------------------------------------------------


def command() -> list[str]:
    """The command line of the process."""
    return [sys.executable, "-P", "-m", "nnx_lint.ide.scan"]


def environment() -> dict[str, str]:
    """An environment in which the process finds this package wherever it lies."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def ask(request: Request) -> bytes:
    """A request as the process reads it."""
    return json.dumps(request).encode() + b"\n"


def write(message: Message) -> str:
    """A message as a line."""
    if isinstance(message, Found):
        return json.dumps(["found", list(message.facts.items())])
    if isinstance(message, Progress):
        return json.dumps(["progress", *message])
    findings, used, heirs, elsewhere = message.closed
    packed = [pack_finding(each) for each in findings], used, heirs, [pack_finding(each) for each in elsewhere]
    return json.dumps(["result", message.path, *packed])


def read(line: bytes) -> Message:
    """The message of a line."""
    kind, *rest = json.loads(line)
    message: Message = _READERS[kind](*rest)
    return message


def _found(items: Iterable[Any]) -> Found:
    return Found({path: None if facts is None else _facts(*facts) for path, facts in items})


def _facts(marked: bool, imports: Iterable[Any], bases: Sequence[str], computes: bool) -> Facts:
    return Facts(marked, tuple((level, name, tuple(names)) for level, name, names in imports), bases, computes)


def _result(path: str, findings: Any, used: Any, heirs: Any, elsewhere: Any) -> Result:
    unpacked = tuple(map(unpack_finding, findings)), tuple(used), tuple(heirs), tuple(map(unpack_finding, elsewhere))
    return Result(path, Closed(*unpacked))


_READERS: dict[str, Callable[..., Message]] = {"found": _found, "progress": Progress, "result": _result}


def main() -> None:
    """Answer the request that comes in."""
    if hasattr(os, "nice"):
        os.nice(NICE)
    import gc

    gc.disable()
    request = Request(*json.loads(sys.stdin.buffer.readline()))
    last = -1
    for message in run(request):
        if isinstance(message, Progress):
            percent = message.done * 100 // message.total
            if percent == last:
                continue
            last = percent
        sys.stdout.write(write(message) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    with_room(main)
