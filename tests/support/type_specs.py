"""Typing specs: Markdown pages with programs, and comments that say what type checkers must say of them.

A comment on a line of its own is about the nearest line of code above it::

    reveal_type(nnx.state(model))
    # revealed: State
    # revealed(mypy, ty): Any
    # error(pyright): [reportCallIssue]

``revealed: T`` is for all checkers of the page, one with names in brackets for these, and wins; several errors of a
line are listed with commas. A line ``checkers: a, b`` says which checkers a page is for. Types are compared without the
modules of their names, for these are shown by some checkers only. What a checker says beside that is wrong.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

PLUGIN, MYPY, PYRIGHT, TY, PYREFLY = CHECKERS = ("plugin", "mypy", "pyright", "ty", "pyrefly")
ROOTS = ("runtime", "analyzer", "mypy_plugin")


class Said(NamedTuple):
    """One answer of a checker: a type, or the code of an error."""

    page: str
    line: int
    what: str


class Spec(NamedTuple):
    """One page: its programs, each under the name of a module, and what is said of them by checker."""

    name: str
    programs: dict[str, str]
    expected: dict[str, list[Said]]


_COMMENT = re.compile(r"\s*# (revealed|error)(?:\(([\w, ]+)\))?: (.*)")


def read(path: Path) -> Spec:
    """The spec on a page."""
    text = path.read_text(encoding="utf-8")
    named = re.search(r"^checkers: (.*)$", text, re.MULTILINE)
    checkers = tuple(named[1].split(", ")) if named else CHECKERS
    programs = {
        f"{path.stem}_{number}": "from typing import reveal_type\n" + program
        for number, program in enumerate(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    }
    expected: dict[str, list[Said]] = {checker: [] for checker in checkers}
    for name, program in programs.items():
        for checker in checkers:
            expected[checker] += _expected(name, program, checker)
    return Spec(path.stem, programs, expected)


def _expected(name: str, program: str, checker: str) -> Iterator[Said]:
    line = 0
    said: dict[str, list[str]] = {}
    for number, text in enumerate([*program.splitlines(), "end"], 1):
        comment = _COMMENT.fullmatch(text)
        if comment is None:
            yield from (Said(name, line, what) for kind in said for what in said[kind])
            line, said = number, {}
        elif comment[2] is None:
            said.setdefault(comment[1], _each(comment[1], comment[3]))
        elif checker in comment[2].split(", "):
            said[comment[1]] = _each(comment[1], comment[3])


def _each(kind: str, text: str) -> list[str]:
    return text.split(", ") if kind == "error" else [text]


def short(type_: str) -> str:
    """A type without modules, as all checkers write it."""
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", type_)


# -- checkers ----------------------------------------------------------------------------------------------------------


def mypy(folder: Path, root: Path, plugin: bool) -> Iterator[Said]:
    """What mypy says of the programs in a folder."""
    from mypy import api

    configuration = folder / f"mypy-{plugin}.ini"
    configuration.write_text(
        "[mypy]\nstrict = true\nwarn_unused_ignores = false\ndisallow_untyped_defs = false\n"
        "disallow_incomplete_defs = false\ncheck_untyped_defs = true\nenable_error_code = deprecated\n"
        f"mypy_path = {root / 'runtime'}\n" + ("plugins = nnx_mypy\n" if plugin else "")
    )
    out, err, _ = api.run(["--config-file", str(configuration), "--cache-dir", f"cache-{plugin}", str(folder)])
    assert not err, err
    for line in out.splitlines():
        found = re.fullmatch(r"(?:.*/)?(\w+)\.py:(\d+): (note|error): (.*?)(?:  \[([\w-]+)\])?", line)
        if found is None:
            assert line.startswith(("Found ", "Success")), line
            continue
        module, number, severity, message, code = found.groups()
        revealed = re.fullmatch(r'Revealed type is "(.*)"', message)
        if revealed or severity == "error":
            yield Said(module, int(number), short(revealed[1]) if revealed else f"[{code}]")


def pyright(folder: Path, root: Path) -> Iterator[Said]:
    """What pyright says."""
    configuration = {"extraPaths": [str(root / each) for each in ROOTS], "reportDeprecated": "error"}
    (folder / "pyrightconfig.json").write_text(json.dumps(configuration))
    words = ["--outputjson", "--pythonpath", sys.executable, "--project", str(folder)]
    answer = json.loads(_output([sys.executable, "-m", "pyright", *words]))
    for each in answer["generalDiagnostics"]:
        revealed = re.fullmatch(r'Type of ".*" is "(.*)"', each["message"], re.DOTALL)
        yield Said(
            Path(each["file"]).stem,
            each["range"]["start"]["line"] + 1,
            short(revealed[1]) if revealed else f"[{each['rule']}]",
        )


def ty(folder: Path, root: Path) -> Iterator[Said]:
    """What ty says."""
    paths = [word for each in ROOTS for word in ("--extra-search-path", str(root / each))]
    words = ["check", "--python", sys.prefix, "--output-format", "concise", *paths, str(folder)]
    for line in _output([_script("ty"), *words]).splitlines():
        found = re.match(r"(?:.*/)?(\w+)\.py:(\d+):\d+: \w+\[([\w-]+)\] (.*)", line)
        if found is not None:
            module, number, code, message = found.groups()
            revealed = re.fullmatch(r"Revealed type: `(.*)`", message)
            yield Said(module, int(number), short(revealed[1]) if revealed else f"[{code}]")


def pyrefly(folder: Path, root: Path) -> Iterator[Said]:
    """What pyrefly says."""
    (folder / "pyrefly.toml").write_text('[errors]\ndeprecated = "error"\n')
    paths = [word for each in ROOTS for word in ("--search-path", str(root / each))]
    words = ["check", "--output-format", "json", "--python-interpreter-path", sys.executable, *paths]
    answer: Any = json.loads(_output([_script("pyrefly"), *words, *map(str, folder.glob("*.py"))]))
    for each in answer["errors"]:
        revealed = re.fullmatch(r"revealed type: (.*)", each["description"])
        yield Said(Path(each["path"]).stem, each["line"], short(revealed[1]) if revealed else f"[{each['name']}]")


RUNS: dict[str, Callable[[Path, Path], Iterator[Said]]] = {
    PLUGIN: lambda folder, root: mypy(folder, root, True),
    MYPY: lambda folder, root: mypy(folder, root, False),
    PYRIGHT: pyright,
    TY: ty,
    PYREFLY: pyrefly,
}


def _script(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _output(words: list[str]) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout
