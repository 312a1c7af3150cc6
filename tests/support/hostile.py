"""Files that are broken in every way that people and machines break files: the input of the fuzzers.

An input is made from a seed alone: a program of a corpus, then some damage to its tokens, its syntax tree, its lines,
its characters or its bytes, and one in eight inside of a notebook. :func:`survive` runs the linter over it as the
command line does, and fails where anything but findings and problems comes out of it.
"""

import ast
import json
import random
from collections.abc import Sequence

from mutations import mutated_tokens, mutated_tree
from nnx_lint.checking import Checker
from nnx_lint.fixes import SAFE_AND_UNSAFE, fix_all
from nnx_lint.selection import Options
from nnx_lint.source import SourceError, SourceFile
from repository import ROOT
from rule_pages import FLAX, PageError, read_page

EVERY_RULE = Options.everywhere(selected=lambda rule: True)

FOLDER = "/nowhere/"
"""No file lies beside the input: what it imports is not found."""

FRAGMENTS = (
    *"()[]{}:,.;@=\\\"'#%!?$\t\f\r\n\0é𝒳",
    '"""',
    "'''",
    'f"{',
    "<<<<<<< HEAD\n",
    "=======\n",
    ">>>>>>> other\n",
    "def ",
    "class ",
    "lambda ",
    "else:\n",
    "except ",
    "from nnx import ",
    "self.",
    "self.x = ",
    "return ",
    "async ",
    "match x:\n",
    "case ",
    "nnx.",
    "%%time\n",
    "!ls\n",
    "((((((((",
    "[" * 100,
    "-" * 200,
    "x." * 100,
    " " * 100,
)


def corpus(*, large: bool = False) -> list[str]:
    """Programs of the rule pages and of the tests; the linter's own sources too if they may be large."""
    paths = sorted((ROOT / "tests" / "analyzer" / "programs").rglob("*.py"))
    if large:
        paths += sorted((ROOT / "analyzer" / "nnx_lint").rglob("*.py"))
    return [*(path.read_text(encoding="utf-8") for path in paths), *page_programs()]


def page_programs() -> list[str]:
    """The programs of the rule pages, on flax."""
    programs: list[str] = []
    for path in sorted((ROOT / "tests" / "rules").glob("*.md")):
        try:
            programs += (block.source(FLAX) for block in read_page(path).blocks)
        except PageError:
            continue
    return programs


def hostile(seed: int, programs: Sequence[str]) -> tuple[str, bytes]:
    """The path and the bytes of the input of a seed."""
    chance = random.Random(seed)
    text = chance.choice(programs)
    for _ in range(chance.choice((1, 1, 2, 3))):
        text = chance.choice(_DAMAGES)(text, programs, chance)
    if chance.random() < 0.125:
        data = _damaged_bytes(_notebook(text, chance).encode("utf-8", "replace"), chance, 0.3)
        return FOLDER + "program.ipynb", data
    encoding = chance.choice(("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"))
    return FOLDER + "program.py", _damaged_bytes(text.encode(encoding, "replace"), chance, 0.1)


def survive(path: str, data: bytes) -> None:
    """Read, check and fix an input."""
    try:
        source = SourceFile.from_bytes(data, path)
    except SourceError:
        return
    assert source.to_bytes() == data
    for node in ast.walk(source.tree):
        if hasattr(node, "end_lineno"):
            span = source.span(node)
            assert 0 <= span.start <= span.end <= len(source.text)
    for problem in (*source.errors, *source.notes):
        assert 1 <= problem.line <= source.line_count
        source.shown(problem)
    checker = Checker(EVERY_RULE, [])
    outcome = fix_all({path: source}, checker.check, SAFE_AND_UNSAFE)
    assert not outcome.problems, outcome.problems
    assert not any("internal error" in problem for problem in checker.problems), checker.problems


# -- damage


def _tokens(text: str, programs: Sequence[str], chance: random.Random) -> str:
    return mutated_tokens(text, programs, chance, chance.randint(1, 4))


def _tree(text: str, programs: Sequence[str], chance: random.Random) -> str:
    try:
        return mutated_tree(text, programs, chance, chance.randint(1, 4))
    except (MemoryError, SyntaxError, ValueError):  # the first is what Python's parser says of too many brackets
        return text  # it is broken already


def _lines(text: str, programs: Sequence[str], chance: random.Random) -> str:
    lines = text.splitlines(keepends=True) or ["\n"]
    others = chance.choice(programs).splitlines(keepends=True) or ["\n"]
    first, count = chance.randrange(len(lines)), chance.choice((1, 1, 2, 5))
    other = chance.randrange(len(others))
    match chance.randrange(6):
        case 0:
            del lines[first : first + count]
        case 1:
            lines[first:first] = others[other : other + count]
        case 2:
            lines[first] = " " * chance.randrange(9) + lines[first].lstrip(" ")
        case 3:
            lines[first] = lines[first].replace("    ", "\t", chance.randint(1, 2))
        case 4:
            mine, theirs = "".join(lines[first : first + count]), "".join(others[other : other + count])
            lines[first : first + count] = [f"<<<<<<< HEAD\n{mine}=======\n{theirs}>>>>>>> other\n"]
        case _:
            ends = chance.choice(("\r\n", "\r", "\n\f", " \\\n"))
            lines = [line.replace("\n", ends) for line in lines]
    return "".join(lines)


def _characters(text: str, programs: Sequence[str], chance: random.Random) -> str:
    for _ in range(chance.choice((1, 1, 2, 4))):
        place = chance.randrange(len(text) + 1)
        text = text[:place] + chance.choice(FRAGMENTS) + text[place + chance.choice((0, 0, 1, 3)) :]
    return text


def _cut(text: str, programs: Sequence[str], chance: random.Random) -> str:
    """What is there while somebody types."""
    place = chance.randrange(len(text) + 1)
    rest = text.find("\n", place) if chance.random() < 0.7 else len(text)
    return text[:place] + (text[rest:] if rest != -1 else "")


_DAMAGES = (_tokens, _tree, _lines, _characters, _cut)


def _damaged_bytes(data: bytes, chance: random.Random, share: float) -> bytes:
    if chance.random() >= share:
        return data
    place = chance.randrange(len(data) + 1)
    return data[:place] + chance.randbytes(chance.choice((1, 1, 2, 8))) + data[place + chance.choice((0, 1, 4)) :]


def _notebook(text: str, chance: random.Random) -> str:
    cells: list[object] = [{"cell_type": "markdown", "source": ["# title\n"]}]
    lines = text.splitlines(keepends=True)
    while lines:
        count = chance.randint(1, 20)
        cell, lines = lines[:count], lines[count:]
        source: object = cell if chance.random() < 0.8 else "".join(cell)
        cells.append({"cell_type": "code", "metadata": {}, "outputs": [], "source": source})
    document = {"cells": cells, "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=chance.choice((None, 1)), ensure_ascii=chance.random() < 0.5)
