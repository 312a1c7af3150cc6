"""Where things are in a document: positions are counted in the units that client and server have agreed on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from nnx_lsp.documents import Document

CODECS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
UNITS = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
TEXTS = st.text(st.sampled_from("ab \t'é\u05d0\u4e2d\U0001f600\n"), max_size=40)


@given(TEXTS, st.sampled_from(sorted(CODECS)))
def test_positions_and_offsets_are_the_same_places(text: str, encoding: str) -> None:
    uri = "file:///model.py"
    document = Document.of_text(uri, text, 1, encoding)
    for offset in range(len(text) + 1):
        before = text[:offset].split("\n")
        units = len(before[-1].encode(CODECS[encoding])) // UNITS[encoding]
        place = types.Position(len(before) - 1, units)
        assert document.position(offset) == place
        assert document.offset(uri, place) == offset


@given(st.lists(TEXTS, min_size=1, max_size=4), st.sampled_from(sorted(CODECS)))
def test_each_cell_of_a_notebook_counts_for_itself(texts: list[str], encoding: str) -> None:
    cells: list[tuple[str, int | None, str]] = [(f"cell:{number}", 1, text) for number, text in enumerate(texts)]
    document = Document.of_cells("file:///model.ipynb", cells, encoding)
    for uri, _, text in cells:
        end = types.Position(
            text.count("\n"), len(text.rpartition("\n")[2].encode(CODECS[encoding])) // UNITS[encoding]
        )
        offset = document.offset(uri, end)
        assert document.offset(uri, types.Position(0, 0)) == document.cell(uri).start
        assert document.source.text[document.cell(uri).start : offset] == text
        assert document.cell_at(document.cell(uri).start).uri == uri


@pytest.mark.parametrize("encoding", sorted(CODECS))
def test_what_lies_outside_is_the_nearest_place(encoding: str) -> None:
    document = Document.of_text("file:///model.py", "é\nab", 1, encoding)
    assert document.offset("file:///model.py", types.Position(0, 99)) == 1
    assert document.offset("file:///model.py", types.Position(99, 0)) == 4
