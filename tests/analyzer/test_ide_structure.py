"""Structures and numbers of parameters of what is being edited; that they equal those of fresh texts is tested with
revisions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import pytest

from nnx_lint.drawing.targets import Program
from nnx_lint.ide import trees
from nnx_lint.ide.analysis import Analysis, Cancelled
from nnx_lint.ide.settings import Settings
from nnx_lint.ide.structure import Structures
from nnx_lint.source import SourceFile

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\
from flax import nnx
from sizes import WIDTH


class Head(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.out = nnx.Linear(4, 2, rngs=rngs)


class Net(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.layer = nnx.Linear(WIDTH, 4, rngs=rngs)
        self.head = Head(rngs=rngs)


class Other(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.layer = nnx.Linear(1, 1, rngs=rngs)


def make():
    class Inner(nnx.Module):
        def __init__(self, *, rngs: nnx.Rngs):
            self.layer = nnx.Linear(1, 1, rngs=rngs)

    return Inner(rngs=nnx.Rngs(0))
"""


def analysis(folder: Path) -> Analysis:
    (folder / "sizes.py").write_text("WIDTH = 3\n")
    return edited(Analysis(str(folder), Settings()), folder, TEXT)


def edited(made: Analysis, folder: Path, text: str) -> Analysis:
    made.edit(SourceFile.from_text(text, str(folder / "net.py")))
    return made


def numbers(made: Analysis, folder: Path) -> dict[str, int]:
    return {lens.name: lens.parameters for lens in made.lenses(str(folder / "net.py"))}


def test_numbers_follow_edits_and_only_what_changed_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = analysis(tmp_path)
    assert numbers(made, tmp_path) == {"Head": 10, "Net": 26, "Other": 2}
    drawn: list[str] = []
    count = Structures._count

    def counted(structures: Structures, path: str, name: str, node: object) -> int:
        drawn.append(name)
        return count(structures, path, name, node)  # type: ignore[arg-type]

    monkeypatch.setattr(Structures, "_count", counted)
    text = TEXT.replace("Linear(4, 2", "Linear(4, 3")
    assert numbers(edited(made, tmp_path, text), tmp_path) == {"Head": 15, "Net": 31, "Other": 2}
    assert drawn == ["Head", "Net"]
    assert numbers(edited(made, tmp_path, f"# moved\n{text}"), tmp_path) == {"Head": 15, "Net": 31, "Other": 2}
    assert drawn == ["Head", "Net"]


def test_numbers_and_drawings_follow_files_on_disk(tmp_path: Path) -> None:
    made = analysis(tmp_path)
    numbers(made, tmp_path)
    path = str(tmp_path / "net.py")
    (tmp_path / "sizes.py").write_text("WIDTH = 30\n")
    made.touched(str(tmp_path / "sizes.py"))
    assert numbers(made, tmp_path)["Net"] == 134
    node = made.structures.draw(path, "Net")
    assert node is not None
    assert node.total is not None
    assert node.total.parameters == 134


def test_what_was_read_for_a_drawing_is_kept_unless_it_was_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = analysis(tmp_path)
    path, offset = str(tmp_path / "net.py"), TEXT.index("self.head")
    begun: list[str] = []

    class Counted(Program):
        def __init__(self, path: str, *others: Any) -> None:
            begun.append(path)
            super().__init__(path, *others)

    monkeypatch.setattr("nnx_lint.ide.structure.Program", Counted)
    made.pause = stop
    with pytest.raises(Cancelled, match="stopped by the test"):
        made.structures.class_at(path, offset)
    made.pause = lambda: None
    assert made.structures.class_at(path, offset) == "Net"
    assert begun == [path, path]
    assert made.structures.class_at(path, offset) == "Net"
    node = made.structures.draw(path, "Net")
    assert node is not None
    assert begun == [path, path]


def stop() -> None:
    raise Cancelled("stopped by the test")


NESTED = """\
if x:
    class A: pass
elif y:
    class B: pass
else:
    class C: pass
for each in x:
    class D: pass
else:
    class E: pass
while x:
    with y:
        class F:
            class G: pass
try:
    class H: pass
except* ValueError:
    class I: pass
else:
    class J: pass
finally:
    class K: pass
match x:
    case 1:
        class L: pass
async def outer():
    async for each in x:
        async with y:
            class M: pass
    try:
        pass
    except ValueError:
        class N: pass
"""


def test_classes_are_found_in_every_statement() -> None:
    tree = ast.parse(NESTED)
    every = {node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    found = list(trees.classes(tree))
    assert {each.node for each in found} == every
    assert [each.name for each in found] == [*"ABCDEF", "F.G", *"HIJKL", "outer.M", "outer.N"]
    assert [each.name for each in trees.classes(tree, in_functions=False)] == [*"ABCDEF", "F.G", *"HIJKL"]
