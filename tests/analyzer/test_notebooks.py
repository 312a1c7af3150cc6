"""Notebooks: cells as one program, places by cell, fixes that leave the rest of the file byte for byte as it was."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_lint.checking import Checker
from nnx_lint.fixes import fix_all
from nnx_lint.notebooks import SEPARATOR, Notebook
from nnx_lint.selection import Options
from nnx_lint.source import SourceError, SourceFile

EVERY_RULE = Options.everywhere(selected=lambda rule: True)

MISTAKE = """\
class Net(nnx.Module):
    def __init__(self):
        self.x = [jnp.ones(3)]  # é"""
IMPORTS = "import jax.numpy as jnp\nfrom flax import nnx"


def code(source: object, **more: object) -> dict[str, object]:
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source, **more}


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def document(*cells: object, **more: object) -> dict[str, object]:
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more}


def notebook(*cells: object, path: str = "a.ipynb", **more: object) -> Notebook:
    source = SourceFile.from_bytes(json.dumps(document(*cells, **more)).encode(), path)
    assert isinstance(source, Notebook)
    return source


def check(source: SourceFile) -> list[tuple[str, str]]:
    findings = Checker(EVERY_RULE, []).check({source.path: source})
    return [(found.rule.name, str(source.position(found.span.start))) for found in findings]


def fixed(source: SourceFile) -> bytes:
    outcome = fix_all({source.path: source}, Checker(EVERY_RULE, []).check)
    assert not outcome.problems
    return outcome.sources[source.path].to_bytes()


class TestReading:
    def test_cells_are_one_program_and_findings_have_their_cell(self) -> None:
        source = notebook({"cell_type": "markdown", "source": "# Title"}, code(lines(IMPORTS)), code("\n" + MISTAKE))
        assert check(source) == [("data-in-static-attribute", "cell 3:4:18")]

    def test_later_cells_know_what_earlier_ones_define(self) -> None:
        source = notebook(code(IMPORTS), code("items = [jnp.ones(3)]"), code(MISTAKE.replace("[jnp.ones(3)]", "items")))
        assert [place for _, place in check(source)] == ["cell 3:3:18"]

    def test_read_finds_notebooks_by_their_name(self, tmp_path: Path) -> None:
        path = tmp_path / "a.ipynb"
        path.write_text(json.dumps(document(code("x = 1"))))
        assert SourceFile.read(str(path)).text == "x = 1\n"

    def test_format_3(self) -> None:
        cells = [
            {"cell_type": "heading", "source": "x"},
            {"cell_type": "code", "language": "python", "input": ["x = 1\n", "y"]},
        ]
        data = json.dumps({"worksheets": [{"cells": []}, {"cells": cells}], "nbformat": 3})
        source = SourceFile.from_bytes(data.encode(), "a.ipynb")
        assert source.text == "x = 1\ny\n"
        assert source.with_text("x = 2\ny\n").to_bytes() == data.replace("x = 1", "x = 2").encode()

    def test_top_level_await(self) -> None:
        source = notebook(code("x = await f()\nasync with x: pass\nasync for y in x: pass"))
        assert not source.errors

    def test_a_syntax_error_stays_in_its_cell(self) -> None:
        source = notebook(code(IMPORTS), code("x = ("), code("y = '''"), code(MISTAKE))
        assert check(source) == [("data-in-static-attribute", "cell 4:3:18")]
        assert [source.shown(error) for error in source.errors] == ["cell 2:1:5", "cell 3:1:5"]

    def test_comments_silence_by_cell(self) -> None:
        source = notebook(code(IMPORTS), code(MISTAKE + "  # nnx: ignore[data-in-static-attribute]"), code(MISTAKE))
        assert [place for _, place in check(source)] == ["cell 3:3:18"]

    @pytest.mark.parametrize(
        ("metadata", "language"),
        [
            ({"kernelspec": {"language": "R"}}, "r"),
            ({"language_info": {"name": "julia"}}, "julia"),
            ({"kernelspec": {"language": "python"}, "language_info": {"name": "Scala"}}, "scala"),
        ],
    )
    def test_other_languages_are_left_out_with_a_note(self, metadata: object, language: str) -> None:
        source = notebook(code("x <- (("), metadata=metadata)
        assert source.text == ""
        assert not source.errors
        assert [note.message for note in source.notes] == [f"is not checked: a notebook in {language}"]
        assert check(source) == []

    @pytest.mark.parametrize("metadata", [{}, None, [], {"kernelspec": 3}, {"language_info": {"name": "ipython"}}])
    def test_python_is_what_is_meant_otherwise(self, metadata: object) -> None:
        assert notebook(code("x = 1"), metadata=metadata).text == "x = 1\n"

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"", "not valid JSON, Expecting value on line 1"),
            (b"{\n'a'", "not valid JSON"),
            (b"\xff\xfe", "byte 0xff is not UTF-8"),
            (b"[]", "its JSON is no object"),
            (b"3", "its JSON is no object"),
            (b"{}", "it has no list of `cells`"),
            (b'{"cells": {}}', "it has no list of `cells`"),
            (b'{"cells": [3]}', "cell 1 is no object"),
            (b'{"nbformat": 2, "cells": []}', "`nbformat` is 2"),
            (b'{"nbformat": "4", "cells": []}', '`nbformat` is "4"'),
            (b'{"nbformat": 3, "worksheets": 1}', "`worksheets` is no list"),
            (b'{"nbformat": 3, "worksheets": [1]}', "it has no list of `cells`"),
            (b'{"cells": [{"cell_type": "code", "source": 3}]}', "the source of cell 1 is no text"),
            (b'{"cells": [{"cell_type": "code", "source": [3]}]}', "the source of cell 1 is no text"),
            (b"[" * 100_000, "its JSON is too deeply nested"),
            (b'{"nbformat": ' + b"9" * 5_000 + b"}", "is not a notebook: "),
        ],
    )
    def test_what_is_no_notebook_says_why(self, data: bytes, reason: str) -> None:
        with pytest.raises(SourceError, match=re.escape(reason)):
            SourceFile.from_bytes(data, "a.ipynb")

    @pytest.mark.parametrize(
        "cells", [[], [{}], [{"cell_type": "code"}], [{"cell_type": "raw", "source": 3}], [code("")]]
    )
    def test_empty_notebooks(self, cells: list[object]) -> None:
        source = notebook(*cells)
        assert not source.text.strip()
        assert check(source) == []
        assert not source.errors


MAGICS = {
    # name: (cell, the names that its Python binds)
    "line magics": ("%matplotlib inline\n%load_ext autoreload\nx = 1", {"x"}),
    "shell": ("!pip install 'flax[all]' (\n!ls \\\n  -l\nx = 1", {"x"}),
    "help": ("?x\nx?\nx.y??\n*x*?\nx[0].y?\nx = 1  # what?", {"x"}),
    "newlines of Windows": ("\r\n%%time\r\nx?\r\n!ls\r\nx = 1", {"x"}),
    "calls without brackets": (",f a b\n;f a b\nif a:\n  /f a b\nx = (1\n  / 2)\ny = 1; z = 2\n;", {"x", "y", "z"}),
    "assignment": ("x = !ls\ny, z = %sql select 1\nw = 2 % 3", {"x", "y", "z", "w"}),
    "in a block": ("if a:\n    !ls\n    x = 1\nfor b in c:\n    %time f()", {"x", "b"}),
    "no magic": (
        "x = (1\n  % 2)\ny = 'a\\\n%b'\nz = '''\n%c\n!d\n?'''\nw = x != 1\nprint('a = %d' % x)",
        {"x", "y", "z", "w"},
    ),
    "timed cell": ("%%time\nx = 1", {"x"}),
    "logged cell": ("%%wandb\nx = 1", {"x"}),
    "captured cell": ("\n# comment\n%%capture out\nx = 1", {"x"}),
    "shell cell": ("%%bash\nx = (", set()),
    "html cell": ("%%html\n<b>", set()),
    "unknown cell": ("%%sql\nselect 'x", set()),
}


@pytest.mark.parametrize("name", MAGICS)
def test_magics(name: str) -> None:
    cell, names = MAGICS[name]
    source = notebook(code(cell), code("last = 1"))

    assert not source.errors
    bound = {
        node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    assert bound == names | {"last"}
    assert source.text == f"{cell}\n{SEPARATOR}last = 1\n"


class TestWriting:
    @pytest.mark.parametrize("indent", [None, 1, 2, "\t"])
    @pytest.mark.parametrize("ascii_only", [True, False])
    @pytest.mark.parametrize("as_list", [True, False])
    def test_a_fix_changes_nothing_but_the_source_of_its_cell(
        self, indent: int | str | None, ascii_only: bool, as_list: bool
    ) -> None:
        cells = [code(lines(IMPORTS)), code(lines(MISTAKE) if as_list else MISTAKE, id="x"), code("z = 'ü'")]
        cells[0]["outputs"] = [{"text": ["self.x = [jnp.ones(3)] é\n"]}]
        text = json.dumps(document(*cells), indent=indent, ensure_ascii=ascii_only) + "\n"
        before = "        self.x = [jnp.ones(3)]  # "
        assert text.count(before) == 1

        after = fixed(SourceFile.from_bytes(text.encode(), "a.ipynb")).decode()

        assert after == text.replace(before, "        self.x = nnx.List([jnp.ones(3)])  # ")

    def test_other_cells_may_be_written_in_any_style(self) -> None:
        odd = '{"source": ["x=1\\n" ,"\\u0079 = \\"\\/\\""],"cell_type":"code"}'
        net = json.dumps(code([*lines(IMPORTS + "\n"), *lines(MISTAKE)]))
        text = f'{{ "nbformat" :4,"cells":[ {odd}\r\n,{net}],"a":1.50}}'

        after = fixed(SourceFile.from_bytes(text.encode(), "a.ipynb")).decode()

        assert after == text.replace("[jnp.ones(3)]", "nnx.List([jnp.ones(3)])")

    def test_of_equal_keys_the_last_counts(self) -> None:
        cell = '{"source": "a", "cell_type": "code", "source": "x = 1"}'
        text = f'{{"cells": [{cell}, {cell}], "cells": [{cell}]}}'
        source = SourceFile.from_bytes(text.encode(), "a.ipynb")
        assert source.with_text(
            "y\n"
        ).to_bytes().decode() == f'{{"cells": [{cell}, {cell}], "cells": [{cell}]}}'.replace(
            f"[{cell}]", f"[{cell.replace('x = 1', 'y')}]"
        )

    def test_a_byte_order_mark_stays(self) -> None:
        data = b"\xef\xbb\xbf" + json.dumps(document(code("x = 1"))).encode()
        assert SourceFile.from_bytes(data, "a.ipynb").with_text("x = 2\n").to_bytes() == data.replace(
            b"x = 1", b"x = 2"
        )

    def test_another_number_of_cells_is_refused(self) -> None:
        source = notebook(code("x = 1"))
        with pytest.raises(ValueError, match="number of cells changed"):
            source.with_text(f"x = 1\n{SEPARATOR}y = 2\n")

    def test_a_cell_with_the_separator_is_refused(self) -> None:
        with pytest.raises(SourceError, match="line of form feeds in cell 1"):
            notebook(code(f"x = 1\n{SEPARATOR}"))


sources = st.text(alphabet="a\nb =\"'\\/é𝒳\t\r\u2028%!", max_size=20)


def test_newlines_at_the_end_of_a_cell() -> None:
    source = notebook(code(""))
    for text in ("\n\n", "a\n\n\n", "\n", "a\n"):
        source = source.with_text(text)
        assert source.text == text
        assert SourceFile.from_bytes(source.to_bytes(), "a.ipynb").text == text


@given(st.lists(st.tuples(sources, st.booleans()), max_size=4), st.data(), st.booleans(), st.sampled_from([None, 1]))
def test_any_text_can_be_written_back(
    cells: list[tuple[str, bool]], data: st.DataObject, ascii_only: bool, indent: int | None
) -> None:
    written = [code(text.splitlines(keepends=True) if split else text) for text, split in cells]
    raw = json.dumps(document(*written), ensure_ascii=ascii_only, indent=indent).encode()
    source = SourceFile.from_bytes(raw, "a.ipynb")
    assert source.to_bytes() == raw

    index = data.draw(st.integers(0, max(len(cells) - 1, 0)))
    new = data.draw(sources)
    texts = source.text.split(SEPARATOR)
    after: Any = source
    if cells:
        texts[index] = new if new.endswith("\n") else new + "\n"
        after = source.with_text(SEPARATOR.join(texts))
    assert after.text == SEPARATOR.join(texts)
    again = json.loads(after.to_bytes())
    for position, cell in enumerate(again["cells"]):
        expected = (new if position == index else cells[position][0]).removesuffix("\n")
        assert "".join(cell["source"]).removesuffix("\n") == expected
    if cells:
        for position, cell in enumerate(again["cells"]):
            assert isinstance(cell["source"], type(written[position]["source"]))
        again["cells"][index] = None
        originally = json.loads(raw)
        originally["cells"][index] = None
        assert again == originally


@given(st.binary(max_size=40), st.integers(0, 400), st.integers(0, 5))
def test_damaged_notebooks_raise_nothing_else(junk: bytes, place: int, length: int) -> None:
    data = json.dumps(document(code(lines(IMPORTS)), code(MISTAKE)), indent=1).encode()
    data = data[:place] + junk + data[place + length :]
    try:
        source = SourceFile.from_bytes(data, "a.ipynb")
    except SourceError:
        return
    assert source.to_bytes() == data
    assert source.tree is not None
