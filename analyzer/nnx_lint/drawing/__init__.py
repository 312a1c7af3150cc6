"""``nnx-lint graph``: the structure of a Module, as the analyzer sees it.

``targets`` finds the class, ``reading`` makes the tree of :mod:`~nnx_lint.drawing.structure` of it, and one module a
format writes it. A writer is a function from a :class:`Drawing` to text; it decides about looks and nothing else.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING

from nnx_rules.records import Entity, Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.drawing.structure import Node
    from nnx_lint.drawing.targets import Listed, Program, Target

HELP = """\
nnx-lint graph draws the structure of a Module as the analyzer sees it, without running anything.

usage: nnx-lint graph [OPTIONS] FILE:Class        any instance: what the caller decides stays a name
       nnx-lint graph [OPTIONS] 'FILE:Class(...)' the instance that this call makes; what it leaves out stays a name
       nnx-lint graph [OPTIONS] FILE              list the Modules of a file

FILE is a path or a dotted module name; Class may be inside of others (Outer.Inner), or a name for an instance.

  --format FORMAT   text (default), mermaid, svg, html or json; by default what the name of --output ends with
  --output FILE     write to a file
  --depth N         draw N levels of submodules
  -h, --help        print this

exit codes: 0 drawn   2 wrong usage, or there is no such file or Module
"""

FORMATS: dict[str, str] = {"text": "text", "mermaid": "mermaid", "svg": "svg", "html": "page", "json": "data"}
"""Names of formats, and the modules that write them."""

SUFFIXES: dict[str, str] = {".txt": "text", ".mmd": "mermaid", ".svg": "svg", ".html": "html", ".json": "json"}

FLAGS: dict[str, str] = {"--format": "format", "--output": "output", "-o": "output", "--depth": "depth"}
"""The flags, each of which takes a value, and what they set."""

DRAWN, FAILURE = 0, 2


class Drawing(Record):
    """What a writer gets: the root of a structure, or the list of what could be drawn.

    ``colour`` and ``unicode`` say what the reader's terminal can show.
    """

    title: str
    root: Node | None
    listed: Sequence[Listed] = ()
    colour: bool = False
    unicode: bool = True


class _UsageError(Exception):
    """The command line asks for something that does not exist."""


class _Request(Entity):
    target: str = ""
    format: str = ""
    output: str = ""
    depth: int | None = None


def run(words: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    from nnx_lint.drawing.targets import DrawingError

    if "-h" in words or "--help" in words:
        sys.stdout.write(HELP)
        return DRAWN
    output = ""
    try:
        request = _parse(list(words))
        output = request.output
        text = _write(request)
        if output:
            from nnx_lint.files import rewrite

            rewrite(output, text.encode())
        else:
            sys.stdout.write(text)
    except (_UsageError, DrawingError) as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILURE
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"error: {output}: cannot be written: {error.strerror or error}", file=sys.stderr)
        return FAILURE
    return DRAWN


def draw(path: str, name: str, call: str = "", *, depth: int | None = None) -> Node:
    """The structure of a Module in a file; for programs, such as a language server.

    Raises:
        DrawingError: there is no such file, or no such Module in it.
    """
    from nnx_lint.drawing.targets import Program, Target

    return structure_of(Program(path), Target(path, name, call), depth)


def structure_of(program: Program, target: Target, depth: int | None) -> Node:
    """The structure that a target names in a program.

    Raises:
        DrawingError: there is no such Module in it.
    """
    from nnx_lint.drawing.reading import Reader
    from nnx_lint.drawing.structure import finish, prune

    root = finish(Reader().root(program.instance(target)))
    return root if depth is None else prune(root, depth)


def _write(request: _Request) -> str:
    from nnx_lint.drawing.targets import Program, find_file, parse

    target = parse(request.target)
    path = find_file(target.file)
    to_terminal = not request.output
    unicode = not to_terminal or _can_show(getattr(sys.stdout, "encoding", None) or "ascii")
    colour = to_terminal and _wants_colour()
    program = Program(path)
    if target.name:
        root = structure_of(program, target, request.depth)
        drawing = Drawing(request.target, root, (), colour, unicode)
    else:
        drawing = Drawing(request.target, None, program.listed(), colour, unicode)
        if request.format not in LISTING:
            names = ", ".join(item.name for item in drawing.listed) or "none"
            raise _UsageError(f"name a class, as in {path}:Class; the Modules of the file: {names}")
    for error in program.errors:
        print(f"warning: drawn as far as the file can be read: {error}", file=sys.stderr)
    writer = importlib.import_module(f"nnx_lint.drawing.{FORMATS[request.format]}")
    return str(writer.write(drawing))


LISTING = frozenset({"text", "json"})
"""The formats that can list a file's Modules."""


def _parse(words: list[str]) -> _Request:
    from nnx_lint.selection import nearest

    request = _Request()
    while words:
        word, given, value = words.pop(0).partition("=")
        if word in FLAGS:
            if not given and not words:
                raise _UsageError(f"{word} needs a value")
            _set(request, FLAGS[word], value if given else words.pop(0))
        elif word.startswith("-"):
            hint = nearest(word, FLAGS)
            raise _UsageError(f"unknown option {word}" + (f"; did you mean {hint}?" if hint else ""))
        elif request.target:
            raise _UsageError(f"one FILE:Class can be drawn at a time, not {request.target} and {word}")
        else:
            request.target = word + given + value
    if not request.target:
        raise _UsageError("nothing to draw; `nnx-lint graph FILE` lists the Modules of a file")
    if not request.format:
        request.format = SUFFIXES.get(os.path.splitext(request.output)[1].lower(), "text")
    return request


def _set(request: _Request, option: str, value: str) -> None:
    from nnx_lint.selection import nearest

    if option == "format" and value not in FORMATS:
        hint = nearest(value, FORMATS)
        mend = f"did you mean {hint}?" if hint else f"choose one of {', '.join(FORMATS)}"
        raise _UsageError(f"there is no format {value!r}; {mend}")
    if option == "depth":
        if not value.isdecimal():
            raise _UsageError(f"--depth takes a number, not {value!r}")
        request.depth = int(value)
    else:
        setattr(request, option, value)


def _can_show(encoding: str) -> bool:
    try:
        "├─└…×".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _wants_colour() -> bool:
    from nnx_lint.output.terminal import wants_colour

    return wants_colour(sys.stdout)
