"""Modules of other packages that somebody has declared: known by their stubs, and never checked themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from nnx_lint.checking import Checker
from nnx_lint.selection import Options

OTHER = """\
import flax.nnx
import jax
import other.base
class Block(other.base.Base): ...
BLOCK: Block
def block(*args, **kwargs) -> Block: ...
"""
DECLARED = {
    "other": "from other.parts import Block as Block\n",
    "other.base": "import flax.nnx\nclass Base(flax.nnx.Module): ...\n",
    "other.parts": OTHER,
}


def findings(folder: Path, text: str, declared: dict[str, str], cache: str | None = None) -> list[tuple[str, str]]:
    (folder / "model.py").write_text(
        f"from flax import nnx\n{text}\nclass Model(nnx.Module):\n    def __init__(self):\n        self.x = [made]\n"
    )
    options = Options.everywhere(lambda rule: rule.default)
    options.declared = declared
    checker = Checker(options, [str(folder)], cache=cache)
    found = checker.check(checker.read([str(folder / "model.py")]))
    assert checker.problems == []
    return [(Path(each.path).name, each.rule.name) for each in found]


@pytest.mark.parametrize(
    "text",
    [
        "import other.parts\nmade = other.parts.block(1)",
        "from other import parts\nmade = parts.Block()",
        "from other import Block\nmade = Block()",
        "import other as o\nmade = o.Block()",
        "from other.parts import BLOCK as made",
    ],
)
def test_declared_modules_are_known(tmp_path: Path, text: str) -> None:
    assert findings(tmp_path, text, DECLARED) == [("model.py", "data-in-static-attribute")]
    assert findings(tmp_path, text, {}) == []


def test_project_comes_before_what_is_declared(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("def Block():\n    return 1\n")
    assert findings(tmp_path, "from other import Block\nmade = Block()", DECLARED) == []


def test_cache_tells_declarations_apart(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    text = "from other.parts import block\nmade = block()"
    for declared, count in ((DECLARED, 1), ({}, 0), (DECLARED, 1), ({**DECLARED, "other.parts": ""}, 0), (DECLARED, 1)):
        assert len(findings(tmp_path, text, declared, cache)) == count


def test_what_lies_above_the_project_does_not_void_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    assert len(findings(folder, "import nowhere\nmade = nnx.Param(1)", {}, str(folder / ".cache"))) == 1
    (tmp_path / "something.py").write_text("")
    monkeypatch.setattr("nnx_lint.checking.Checker._remembering", lambda *args: pytest.fail("checked again"))
    assert len(findings(folder, "import nowhere\nmade = nnx.Param(1)", {}, str(folder / ".cache"))) == 1
