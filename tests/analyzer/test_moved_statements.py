"""Edits of whole statements (`rules.blocks`): what they make still parses and means the same, or nothing is made."""

import ast

import pytest

from nnx_lint.diagnostics import Edit
from nnx_lint.fixes import edited
from nnx_lint.rules.blocks import append_to_block, in_block, prepend_to_block
from nnx_lint.source import SourceFile


def after(source: SourceFile, edits: tuple[Edit, ...] | None) -> str:
    assert edits is not None
    text = edited(source, edits)
    ast.parse(text)
    return text


def source_of(text: str) -> SourceFile:
    source = SourceFile.from_text(text, "a.py")
    assert source.error is None
    return source


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a()\nb()\n", "with c:\n    a()\n    b()\n"),
        ("a()  # why\n\n# then\nb(1,\n  2)\n", "with c:\n    a()  # why\n\n    # then\n    b(1,\n      2)\n"),
        ("a()\r\nb()\r\n", "with c:\r\n    a()\r\n    b()\r\n"),
        ("if x:\n  y()\na()\n", "with c:\n  if x:\n    y()\n  a()\n"),
    ],
)
def test_statements_go_into_a_block(text: str, expected: str) -> None:
    source = source_of(text)

    assert after(source, in_block(source, source.tree.body, "with c")) == expected


@pytest.mark.parametrize(
    "text",
    [
        'a("""\nlong\n""")\n',
        "a(); b()\nc()\n",
        "@d\ndef f():\n    pass\n",
    ],
    ids=["string-with-line-breaks", "two-in-a-line", "decorated"],
)
def test_statements_that_cannot_move_stay(text: str) -> None:
    source = source_of(text)

    assert in_block(source, source.tree.body[:1], "with c") is None


def function(source: SourceFile) -> ast.FunctionDef:
    (func,) = source.tree.body
    assert isinstance(func, ast.FunctionDef)
    return func


def test_a_statement_goes_to_the_end_of_a_block_unless_that_leaves_it() -> None:
    plain, leaving, inline = map(
        source_of, ("def f():\n    a()  # why\n\nx = 1\n", "def f():\n    return 1\n", "def f(): a()\n")
    )
    body = plain.tree.body[0]
    assert isinstance(body, ast.FunctionDef)

    assert after(plain, append_to_block(plain, body.body, "b()")) == "def f():\n    a()  # why\n    b()\n\nx = 1\n"
    assert append_to_block(leaving, function(leaving).body, "b()") is None
    assert append_to_block(inline, function(inline).body, "b()") is None


def test_statements_go_to_the_start_of_a_block_after_its_docstring() -> None:
    source, only, inline = map(
        source_of, ('def f():\n  """Doc."""\n  a()\n', 'def f():\n  """Doc."""\n', "def f(): a()\n")
    )

    made = after(source, prepend_to_block(source, function(source).body, "if x:\n\tb()\n"))
    assert made == 'def f():\n  """Doc."""\n  if x:\n    b()\n\n  a()\n'
    assert prepend_to_block(only, function(only).body, "b()") is None
    assert prepend_to_block(inline, function(inline).body, "b()") is None
