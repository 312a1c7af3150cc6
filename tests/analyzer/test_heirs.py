"""Who has classes below a class: what is read off the headers says no other than the syntax trees, and parses less."""

from __future__ import annotations

import ast
import itertools

import pytest

from nnx_lint.engine import Engine
from nnx_lint.selection import Options
from nnx_lint.sources import Sources

PLAIN = "class Plain(Base):\n    pass\n"
MIXED = "class Mixed(Base, Other):\n    pass\n"
GENERIC = "class Generic(pkg.Base[int, dict[str, int]]):\n    def f(self):\n        self.found = 1\n"
COMMENTED = "class Commented(\n    Base  # the first, and the last\n):\n    pass\n"
ABSTRACT = "class Abstract(Base, metaclass=ABCMeta):\n    pass\n"
CALLED = "class Called(made(Base, 1)):\n    pass\n"
BELOW = "class Below(Plain):\n    found = 2\n"
QUOTED = '"""\nclass Quoted(Base, Other):\n    pass\n"""\n'
INNER = "def f():\n    class Inner(Base): found = 3\n"

TEXTS = [PLAIN, MIXED, GENERIC, COMMENTED, ABSTRACT, CALLED, BELOW, QUOTED, INNER]


@pytest.fixture
def engine_of(tmp_path):
    def make(*texts):
        for number, text in enumerate(texts):
            (tmp_path / f"file{number}.py").write_text(text)
        sources = Sources([str(tmp_path / f"file{number}.py") for number in range(len(texts))])
        return Engine(sources, [], Options.everywhere(lambda rule: True)), sources

    return make


@pytest.mark.parametrize("texts", [*itertools.combinations(TEXTS, 1), *itertools.combinations(TEXTS, 2)])
def test_headers_say_what_trees_say(engine_of, texts):
    heirs = engine_of(*texts)[0].project.heirs
    nodes = heirs.of("Base")
    heirs.forget()
    assert heirs.exist("Base") == bool(nodes)
    assert heirs.mix("Base") == any(len(node.bases) > 1 for node in nodes)
    told = heirs.mentioning("Base", "found")
    assert told == nodes or (told == [] and not any("found" in ast.unparse(node) for node in nodes))


def test_heirs_are_found_below_heirs(engine_of):
    heirs = engine_of(BELOW, PLAIN, MIXED, QUOTED)[0].project.heirs
    assert [node.name for node in heirs.of("Base")] == ["Plain", "Mixed", "Below"]
    assert heirs.of("Nobody") == []


def test_a_base_before_a_comment_is_one(engine_of):
    assert engine_of(COMMENTED)[0].project.heirs.exist("Base")


def test_files_that_cannot_change_the_answer_are_not_parsed(engine_of):
    engine, sources = engine_of(PLAIN, GENERIC, BELOW)
    heirs = engine.project.heirs
    assert not heirs.mix("Base")
    assert heirs.mentioning("Base", "absent") == []
    assert all(source._parsed is None for source in sources.values())
    assert len(heirs.mentioning("Base", "found")) == 3


def test_a_changed_text_is_read_again(engine_of, tmp_path):
    engine, sources = engine_of(PLAIN)
    heirs, path = engine.project.heirs, str(tmp_path / "file0.py")
    assert not heirs.mix("Base")
    sources._held[path] = sources[path].with_text(MIXED)
    engine.change([path])
    assert heirs.mix("Base")
    assert heirs.mentioning("Base", "Other") == heirs.of("Base")
