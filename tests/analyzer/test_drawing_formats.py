"""``nnx-lint graph``: the formats, the command that writes them, and what it says when it cannot."""

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from drawn import MODEL
from nnx_lint.drawing import FORMATS, run
from repository import ROOT


@pytest.fixture
def model(tmp_path, monkeypatch):
    """The file of the program above, in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    return "model.py"


def test_a_file_with_errors_is_drawn_as_far_as_it_can_be_read(model, tmp_path, capsys):
    with (tmp_path / model).open("a", encoding="utf-8") as file:
        file.write("def broken(:\n")

    assert run([f"{model}:Mlp(2, 4)"]) == 0
    output = capsys.readouterr()
    assert output.out == TEXT
    assert output.err.startswith("warning: drawn as far as the file can be read: model.py:25:12: ")


def test_without_a_class_the_modules_of_the_file_are_listed(model, capsys):
    assert run([model]) == 0
    assert capsys.readouterr().out == ("Mlp    nnx.Module  model.py:6\nModel  nnx.Module  model.py:14\n")
    assert run([model, "--format", "json"]) == 0
    assert [item["name"] for item in json.loads(capsys.readouterr().out)["modules"]] == ["Mlp", "Model"]


TEXT = """\
Mlp  22 parameters, 88 B
├─ dim = 2  static
├─ up: Linear(dim, hidden, use_bias=bias)  12 parameters, 48 B
│  ├─ kernel: Param  (2, 4) float32
│  └─ bias: Param  (4,) float32
├─ down: Linear(hidden, dim, use_bias=bias)  10 parameters, 40 B
│  ├─ kernel: Param  (4, 2) float32
│  └─ bias: Param  (2,) float32
└─ act = nnx.relu  static
"""


MERMAID = """\
flowchart LR
    n0["<b>Model</b><hr/>embed: Embed · embedding (vocab, dim) float32<br/>position: Param · (16, dim) bfloat16\
<br/>head: Embed → embed<br/>norm: BatchNorm(dim) · or None<br/>plain: list · 16 parameters, 64 B · NNX101"]
    n0 -- "blocks[…] × ?" --> n1
    n1["<b>Mlp</b><hr/>dim: dim · static<br/>up: Linear · kernel (dim, hidden), bias (hidden,) float32\
<br/>down: Linear · kernel (hidden, dim), bias (dim,) float32<br/>act: nnx.relu · static"]
"""


def test_the_text_tree(model, capsys):
    assert run([f"{model}:Mlp(2, 4)"]) == 0
    assert capsys.readouterr().out == TEXT


def test_colours_are_only_for_terminals_that_want_them(model, capsys, monkeypatch):
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run([f"{model}:Mlp(2, 4)"]) == 0
    coloured = capsys.readouterr().out

    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == TEXT


def test_a_terminal_without_unicode_gets_ascii(model):
    command = [sys.executable, "-m", "nnx_lint", "graph", f"{model}:Model(9)"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "NO_COLOR": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(command, env=environment, capture_output=True, check=True)
    text = ran.stdout.decode("ascii")

    assert "|- blocks: List" in text
    assert "`- [0...2]: Mlp(dim, 4 * dim) x 3" in text
    assert "|- head: Embed -> embed" in text


def test_the_mermaid_flowchart(model, capsys):
    assert run([f"{model}:Model", "--format=mermaid"]) == 0
    assert capsys.readouterr().out == MERMAID


def test_json_has_all_facts(model, capsys):
    assert run([f"{model}:Model(100)", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)

    assert answer["version"] == 1
    embed, blocks, _, head, *_ = answer["root"]["children"]
    assert embed["children"][0]["shape"] == [100, 8]
    assert blocks["children"][0]["count"] == 3
    assert (head["kind"], head["target"]) == ("reference", ["embed"])
    assert embed["assigned"] == {"path": "model.py", "line": 16}


def test_the_svg_is_a_drawing_with_a_box_for_each_module(model, tmp_path):
    assert run([f"{model}:Model(100)", "--output", "model.svg"]) == 0
    root = ET.parse(tmp_path / "model.svg").getroot()
    names = {"svg": "http://www.w3.org/2000/svg"}

    boxes = root.findall(".//svg:rect[@class='box']", names)
    texts = ["".join(text.itertext()) for text in root.findall(".//svg:text", names)]
    assert len(boxes) == 2
    assert len(root.findall(".//svg:path[@class='arrow']", names)) == 1
    assert "List of Mlp × 3" in texts
    width, height = float(root.get("width")), float(root.get("height"))
    for box in boxes:
        assert float(box.get("x")) + float(box.get("width")) <= width
        assert float(box.get("y")) + float(box.get("height")) <= height


class _Page(HTMLParser):
    """Checks that elements nest, and notes what a page would load."""

    VOID = frozenset({"meta", "input", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.loads += [value for name, value in attrs if name in {"src", "href"}]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_page_needs_nothing_else(model, tmp_path):
    assert run([f"{model}:Model(100)", "-o", "model.html"]) == 0
    page = _Page()
    page.feed((tmp_path / "model.html").read_text(encoding="utf-8"))

    assert page.open == []
    assert page.loads == []
    assert "(100, 8) float32" in page.text


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_texts_of_a_program_are_escaped(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.py").write_text(
        "from flax import nnx\nclass A(nnx.Module):\n    def __init__(self, rngs):\n"
        "        self.x = '<script>alert(1)</script> & \"quotes\"'\n"
    )
    assert run(["odd.py:A", "--format", name]) == 0
    output = capsys.readouterr().out

    if name == "svg":
        assert "<script>" in "".join(ET.fromstring(output.encode()).itertext())
    if name in {"svg", "html", "mermaid"}:
        assert "<script>alert" not in output


def test_an_output_file_is_replaced_as_a_whole(model, tmp_path):
    (tmp_path / "model.txt").write_text("before")
    assert run([f"{model}:Mlp(2, 4)", "--output", "model.txt"]) == 0

    assert (tmp_path / "model.txt").read_text(encoding="utf-8") == TEXT
    assert sorted(item.name for item in tmp_path.iterdir()) == ["model.py", "model.txt"]


def test_help_names_every_format(capsys):
    assert run(["--help"]) == 0
    output = capsys.readouterr().out
    assert all(name in output for name in FORMATS)


@pytest.mark.parametrize("name", ["layers_in_lists.py:Decoder", "misplaced_tags.py"])
def test_the_examples_can_be_drawn(name, capsys):
    assert run([str(ROOT / "examples" / "mistakes" / name)]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to draw"),
        (["modle.py:Model"], "modle.py: no such file; did you mean model.py?"),
        ([".:Model"], ". is a folder; name a file in it"),
        (["model.py:Modle"], "there is no class Modle in model.py; did you mean Model?"),
        (["model.py:Zebra"], "there is no class Zebra in model.py; its Modules are Mlp, Model"),
        (["model.py:jax"], "there is no class jax in model.py"),
        (["model.py:Model("], "'model.py:Model(' is no FILE:Class"),
        (["model.py:Model(1 2)"], "(1 2) is no list of arguments"),
        (["model.py:Model", "--format", "sgv"], "there is no format 'sgv'; did you mean svg?"),
        (["model.py:Model", "--fromat=svg"], "unknown option --fromat; did you mean --format?"),
        (["model.py:Model", "--depth", "two"], "--depth takes a number, not 'two'"),
        (["model.py:Model", "--output"], "--output needs a value"),
        (["model.py:Model", "model.py:Mlp"], "one FILE:Class can be drawn at a time"),
        (["model.py", "--format", "svg"], "name a class, as in model.py:Class; the Modules of the file: Mlp, Model"),
        (["model.py:Model", "-o", "missing/x.svg"], "missing/x.svg: cannot be written"),
    ],
)
def test_what_cannot_be_drawn_is_said_and_fails(model, capsys, words, message):
    assert run(words) == 2

    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error: ")
    assert message in output.err
