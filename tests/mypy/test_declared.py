"""What mypy knows of other packages decides what the analyzer alone leaves unknown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mypy_runs import Daemon, Mypy
from nnx_mypy.declared import FILE
from nnx_mypy.findings import find

HEAD = "import jax\nimport jax.numpy as jnp\nfrom flax import nnx\n"
PARTS = {
    "other/__init__.py": "from other.parts import Block as Block\nfrom other.parts import block as make\n",
    "other/parts.py": HEAD
    + """
from typing import NamedTuple

Json = list["Json"] | dict[str, "Json"] | str | None
Tree = jax.Array | list["Tree"]

class Chain(NamedTuple):
    array: jax.Array
    rest: "list[Chain]"

class Block(nnx.Module):
    def scale(self) -> jax.Array:
        return jnp.zeros((2,))
    def part(self) -> nnx.Linear:
        return nnx.Linear(2, 2, rngs=nnx.Rngs(0))

class Scale(nnx.Param[jax.Array]): ...

class Config:
    width: int = 1

def block(rngs: nnx.Rngs) -> Block:
    return Block()
def blocks(n: int) -> list[Block]:
    return []
def array(n: int) -> jax.Array:
    return jnp.zeros((n,))
def sizes(n: int) -> list[int]:
    return []
def scale(n: int) -> Scale | None:
    return None
def inferred(n: int):
    return array(n)
def as_it_is(block: Block) -> Block:
    return block
def from_anything(source, n: int) -> Block:
    return source
def json(text: Json) -> Json:
    return text
def tree(n: int) -> Tree:
    return array(n)
def chain(n: int) -> Chain:
    return Chain(array(n), [])
def leaves(tree: Tree) -> list[jax.Array]:
    return []

BLOCK = block(nnx.Rngs(0))
WIDTH = 3
""",
}
CODE = "nnx-data-in-static-attribute"


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("declared") / "base"


@pytest.fixture
def mypy(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mypy:
    """Mypy in a project, beside which another package lies."""
    for name, text in PARTS.items():
        path = tmp_path / "library" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("MYPYPATH", str(tmp_path / "library"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    Path("pyproject.toml").write_text("")
    return Mypy(base)


def model(value: str, imports: str = "from other import parts\n") -> str:
    """A module with a value in an attribute; a list of data there is a mistake."""
    return (
        f"{HEAD}{imports}class Model(nnx.Module):\n    def __init__(self, rngs: nnx.Rngs) -> None:\n        {value}\n"
    )


def findings(lines: list[str]) -> list[str]:
    return [line for line in lines if f"[{CODE}]" in line]


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        ("self.x = [parts.block(rngs)]", "a list of Block"),
        ("self.x = parts.blocks(3)", "a list of Block"),
        ("self.x = [parts.Block()]", "a list of Block"),
        ("self.x = [parts.array(3)]", "a list of arrays"),
        ("self.x = [parts.block(rngs).scale()]", "a list of arrays"),
        ("self.x = [parts.BLOCK]", "a list of Block"),
        ("self.x = (parts.array(2), 1)", "a tuple of arrays"),
        ("self.x = parts.leaves([])", "a list of arrays"),
    ],
)
def test_finds_what_the_analyzer_alone_does_not(mypy: Mypy, value: str, holds: str) -> None:
    Path("model.py").write_text(model(value))
    (line,) = findings(mypy.fresh("model.py"))
    assert f"`Model.x` is static, but its value, {holds}" in line
    assert find(".", {"cache": False}, {}) == {}


def test_finds_it_through_parameters(mypy: Mypy) -> None:
    Path("model.py").write_text(
        f"{HEAD}from other import Block\nclass Model(nnx.Module):\n"
        "    def __init__(self, block: Block) -> None:\n        self.x = [block]\n"
    )
    assert len(findings(mypy.fresh("model.py"))) == 1


@pytest.mark.parametrize(
    "imports",
    ["import other\n", "import other.parts\n", "import other.parts as parts\nimport other\n"],
)
def test_finds_it_by_whatever_name(mypy: Mypy, imports: str) -> None:
    Path("model.py").write_text(model("self.x = [other.make(rngs)]", imports))
    assert len(findings(mypy.fresh("model.py"))) == 1


@pytest.mark.parametrize(
    "value",
    [
        "self.x = parts.sizes(3)",
        "self.x = [parts.Config()]",
        "self.x = [parts.inferred(3)]",
        "self.x = [parts.as_it_is(parts.BLOCK)]",
        "self.x = [parts.from_anything(None, 3)]",
        "self.x = [parts.BLOCK.part()]",
        "self.x = [parts.WIDTH]",
        "self.x = parts.block(rngs)",
        "self.x = nnx.List([parts.block(rngs)])",
        "self.x = parts.block(rngs).anything",
        "self.x = [parts.json(None), parts.tree(3)]",
    ],
)
def test_says_nothing_where_mypy_is_not_sure_or_nothing_is_wrong(mypy: Mypy, value: str) -> None:
    Path("model.py").write_text(model(value))
    assert not [line for line in mypy.fresh("model.py") if "[nnx-" in line]


def test_further_runs_say_the_same(mypy: Mypy) -> None:
    Path("model.py").write_text(model("self.x = [parts.block(rngs)]"))
    Path("main.py").write_text("from model import Model\n")
    first = mypy.fresh("main.py", "model.py")
    assert len(findings(first)) == 1
    assert mypy.warm("main.py", "model.py") == first
    assert mypy.warm("main.py", "model.py") == first
    Path("main.py").write_text("from model import Model\nx: int = 1\n")
    assert mypy.warm("main.py", "model.py") == first


def test_edit_of_the_other_package_counts(mypy: Mypy, tmp_path: Path) -> None:
    Path("model.py").write_text(model("self.x = [parts.block(rngs)]"))
    parts = tmp_path / "library" / "other" / "parts.py"
    before = parts.read_text()
    with Daemon(mypy, ["model.py"]) as daemon:
        for _ in range(2):
            assert daemon.check() == mypy.warm("model.py")
            assert len(findings(daemon.check())) == 1
            parts.write_text(before.replace("def block(rngs: nnx.Rngs) -> Block:", "def block(rngs: nnx.Rngs) -> int:"))
            assert findings(daemon.check()) == findings(mypy.warm("model.py")) == []
            parts.write_text(before)


def test_broken_memory_is_made_anew(mypy: Mypy) -> None:
    Path("model.py").write_text(model("self.x = [parts.block(rngs)]"))
    first = mypy.warm("model.py")
    assert len(findings(first)) == 1
    assert "other.parts" in json.loads(Path("warm", FILE).read_text())
    Path("warm", FILE).write_text("{")
    assert mypy.warm("model.py") == first
    assert "other.parts" in json.loads(Path("warm", FILE).read_text())
