"""SourceFile: decoding, parsing, and the way between offsets, ast's byte columns, and rows and columns."""

import ast
import codecs
import re
import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nnx_lint.diagnostics import Span
from nnx_lint.source import SourceError, SourceFile, SyntaxProblem

newlines = st.sampled_from(["\n", "\r\n", "\r"])
texts = st.lists(
    st.sampled_from(["a", "é", "中", "𝒳", " ", "\t", "\f", "\v", "\x1c", "\u2028", "\n", "\r\n", "\r"])
).map("".join)


class TestDecoding:
    @pytest.mark.parametrize(
        ("data", "text", "encoding"),
        [
            (b"x = 1\n", "x = 1\n", "utf-8"),
            ("x = 'é'\n".encode(), "x = 'é'\n", "utf-8"),
            (codecs.BOM_UTF8 + b"x = 1\r\n", "x = 1\r\n", "utf-8-sig"),
            (b"# coding: latin-1\nx = '\xe9'\n", "# coding: latin-1\nx = 'é'\n", "iso-8859-1"),
            (b"#!/bin/python\n# -*- coding: cp1252 -*-\nx = '\x80'\n", "€", "cp1252"),
            (b"# coding: latin-1\rx = '\xe9'\r", "'é'", "iso-8859-1"),
            (b"#\r\n# coding: latin-1\r\n'\xe9'", "'é'", "iso-8859-1"),
            (b"\n\n# coding: latin-1\n", "coding", "utf-8"),
            (codecs.BOM_UTF8 + b"# coding: utf-8\n", "# coding: utf-8\n", "utf-8-sig"),
            (b"", "", "utf-8"),
        ],
    )
    def test_encoding_is_found_as_python_finds_it(self, tmp_path, data, text, encoding):
        path = tmp_path / "a.py"
        path.write_bytes(data)
        source = SourceFile.read(str(path))
        assert text in source.text
        assert source.encoding == encoding
        assert source.to_bytes() == data

    @pytest.mark.parametrize(
        ("data", "problem"),
        [
            (b"x = 1\ny = '\xff'\nz = 2\n", SyntaxProblem(2, 6, "byte 0xff cannot be decoded")),
            (b"x = 1\n# \xe9\nz = 2\n", SyntaxProblem(2, 3, "byte 0xe9 cannot be decoded")),
            (b"x = 1\n\xe9 = 3\nz = 2\n", SyntaxProblem(2, 1, "byte 0xe9 cannot be decoded")),
            (b"x = 1\n\n'a\0'\nz = 2\n", SyntaxProblem(3, 3, "null byte")),
            (b"x = 1\n\n\0\nz = 2\n", SyntaxProblem(3, 1, "null byte")),
            (b"# coding: latin-1\nx = 1\n\0\nz = '\xe9'\n", SyntaxProblem(3, 1, "null byte")),
        ],
    )
    def test_what_does_not_decode_is_an_error_and_the_rest_answers(self, data, problem):
        source = SourceFile.from_bytes(data, "a.py")
        assert source.error == problem
        assert {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name)} >= {"x", "z"}
        assert source.to_bytes() == data

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"# coding: klingon\nx = 1\n", "unknown encoding: klingon"),
            (b"# coding: hex\nx = 1\n", "'hex' is not a text encoding"),
            (codecs.BOM_UTF8 + b"# coding: latin-1\nx = 1\n", "encoding problem: utf-8"),
        ],
    )
    def test_a_wrong_encoding_is_an_error_and_read_as_utf_8(self, data, message):
        source = SourceFile.from_bytes(data, "a.py")
        assert source.error is not None
        assert message in source.error.message
        assert len(source.tree.body) == 1
        assert source.to_bytes() == data

    @pytest.mark.parametrize("data", ["x = 1\n".encode("utf-16"), bytes(range(128, 256)), b"PK\3\4\0\0\0\0\0\1\2"])
    def test_what_is_no_text_at_all_says_so(self, data):
        with pytest.raises(SourceError, match=r"^a.py: is not a text file"):
            SourceFile.from_bytes(data, "a.py")

    def test_missing_file(self, tmp_path):
        with pytest.raises(SourceError, match=r"nowhere\.py: cannot be read: No such file or directory"):
            SourceFile.read(str(tmp_path / "nowhere.py"))

    def test_editor_text_may_start_with_a_byte_order_mark(self):
        source = SourceFile.from_text("\ufeffx = 1\n")
        assert source.text == "x = 1\n"
        assert source.error is None
        assert source.to_bytes() == codecs.BOM_UTF8 + b"x = 1\n"

    def test_text_that_the_encoding_lacks_cannot_be_written(self):
        source = SourceFile.from_bytes(b"# coding: latin-1\n", "a.py").with_text("# coding: latin-1\n'中'")
        with pytest.raises(SourceError, match=r"a\.py: cannot be encoded as iso-8859-1"):
            source.to_bytes()

    @given(texts, st.sampled_from(["utf-8", "utf-8-sig"]))
    def test_unchanged_text_gives_the_same_bytes(self, text, encoding):
        data = text.encode(encoding)
        assert SourceFile.from_bytes(data).to_bytes() == data


class TestParsing:
    def test_syntax_error_has_a_place_in_characters(self):
        source = SourceFile.from_text("x = 1\né = 'ü' $ 2\n")
        assert source.error == SyntaxProblem(2, 9, "invalid syntax")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("-" * 100_000 + "1", "too deeply nested"),
            ("(" * 1000, "too many nested parentheses"),
            ("x = '\0'", "null byte"),
            ("x = '\ud800'", "lone surrogate"),
            ("def f():\n", "expected an indented block"),
            ("if x:\n\ty\n        z\n", "unexpected indent"),
            ("x = '''", "unterminated triple-quoted string"),
        ],
    )
    def test_nothing_is_raised(self, text, message):
        source = SourceFile.from_text(text)
        assert source.error is not None
        assert message in source.error.message
        assert 1 <= source.error.line <= source.line_count

    def test_warnings_of_the_checked_code_are_not_ours(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            source = SourceFile.from_text("x = '\\d'\nif x is 1: assert (x, 'y')\n")
            assert source.error is None


def test_a_tree_that_was_let_go_is_parsed_again():
    source = SourceFile.from_text("a = 1\nb = (\n")
    tree, errors = source.tree, source.errors
    source.let_go()

    assert source.errors == errors
    assert source.tree is not tree
    assert ast.dump(source.tree, include_attributes=True) == ast.dump(tree, include_attributes=True)


def _with_positions(tree):
    return [node for node in ast.walk(tree) if hasattr(node, "lineno")]


class TestPositions:
    @given(st.lists(st.sampled_from(["name", "'é中'", "𝒳", '"\t"', "[1,\n 'ü']"]), min_size=1), newlines)
    @example(["'é中'", "name"], "\r")
    def test_spans_are_the_text_of_their_nodes(self, words, newline):
        text = f"call({', '.join(words)}){newline}é = ({words[-1]}){newline}".replace("\n", newline)
        source = SourceFile.from_text(text)
        assert source.tree is not None
        for node in _with_positions(source.tree):
            if isinstance(node, ast.expr):
                again = SourceFile.from_text(f"_ = {source.segment(node)}".replace(newline, "\n")).tree.body[0].value
                # A bare target parses as a value.
                assert re.sub(r"Store", "Load", ast.dump(node)) == ast.dump(again)

    @given(texts)
    @example("a\f\u2028b\r\n\r中")
    def test_lines_end_where_the_tokenizer_ends_them(self, text):
        source = SourceFile.from_text(text)
        starts = [0, *(match.end() for match in re.finditer("\r\n|\r|\n", text))]
        assert [source.line_start(line) for line in range(1, source.line_count + 1)] == starts
        assert "".join(source.lines()) == text

    @given(texts)
    def test_location_and_offset_agree(self, text):
        source = SourceFile.from_text(text)
        for offset in range(len(text) + 1):
            row, column = source.location(offset)
            before = text[source.line_start(row) : offset]
            assert column == len(before) + 1
            assert source.offset(row, len(before.encode())) == offset

    def test_positions_outside_of_the_text_are_moved_to_its_edge(self):
        source = SourceFile.from_text("ab\né\n")
        assert source.offset(1, 99) == 3
        assert source.offset(2, 99) == len(source.text)
        assert source.offset(99, 0) == len(source.text)

    def test_nodes_without_a_position_span_their_parts(self):
        source = SourceFile.from_text("with open(a) as b, c: pass\ndef f(x, *, y=1): pass\n")
        assert source.tree is not None
        manager, function = source.tree.body
        assert isinstance(manager, ast.With)
        assert isinstance(function, ast.FunctionDef)
        assert source.segment(manager.items[0]) == "open(a) as b"
        assert source.segment(function.args) == "x, *, y=1"
        assert source.span(source.tree) == Span(0, len(source.text))

    def test_a_node_without_any_position_is_refused(self):
        with pytest.raises(ValueError, match="a bare arguments has no position"):
            SourceFile.from_text("").span(ast.arguments([], [], None, [], [], None, []))

    def test_lines_and_their_indentation(self):
        source = SourceFile.from_text("if x:\r\n\t  y = 1\r\n")
        assert source.line_text(2) == "\t  y = 1"
        assert source.line_indent(2) == "\t  "
        assert source.line_text(3) == ""

    @pytest.mark.parametrize(
        ("text", "newline"),
        [("a\r\nb\n", "\r\n"), ("a\rb", "\r"), ("a\n", "\n"), ("a", "\n"), ("", "\n"), ("\n\n", "\n")],
    )
    def test_newline_of_a_file_is_its_first(self, text, newline):
        assert SourceFile.from_text(text).newline == newline
