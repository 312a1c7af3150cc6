"""Suppression comments: what they cover, and what only looks like one."""

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stub_engine
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile
from nnx_lint.suppressions import read_suppressions


def left(text):
    """The words that the stub engine still reports, in order."""
    source = SourceFile.from_text(textwrap.dedent(text))
    suppressions = read_suppressions(source)
    findings = stub_engine.check([source], roots=(), options=Options(selected=lambda rule: True))
    return [source.segment(finding.span) for finding in findings if not suppressions.cover(finding, source)]


@pytest.mark.parametrize(
    "comment",
    [
        "# nnx: ignore",
        "#nnx:ignore",
        "# nnx: ignore[NNX101]",
        "# nnx: ignore [nnx101]",
        "# nnx: ignore[data-in-static-attribute]",
        "# nnx: ignore[NNX202, data-in-static-attribute]",
        "# nnx: ignore[NNX1]",
        "# nnx: ignore[ALL]",
        "# nnx: ignore[NNX101] because it is a test",
        "# type: ignore[x]  # nnx: ignore[NNX101]  # and more",
        "# noqa",
        "# NOQA",
        "# noqa - on purpose",
        "# noqa: NNX101",
        "# noqa:E501,NNX101",
        "# noqa : E501 NNX101 on purpose",
        "# nnx: ignore-file[NNX101]",
        "# nnx: ignore-file",
    ],
)
def test_a_comment_at_the_end_of_the_line_silences_the_rule(comment):
    assert left(f"x = BAD  {comment}\n") == []


@pytest.mark.parametrize(
    "comment",
    [
        "# nnx: ignore[NNX102]",
        "# nnx: ignore[]",
        "# nnx: ignore[NNX101",
        "# nnx: ignore-file[NNX101",
        "# nnx: ignore[NNX1011]",
        "# nnx: ignored",
        "# nnx: ignore-files",
        "# noqa: E501",
        "# noqa:",
        "# noqa: because",
        "# noqa: NNX1011",
        "# noqable",
        "# flake8: noqa",
        "# tnnx: ignore",
    ],
)
def test_other_comments_silence_nothing(comment):
    assert left(f"x = BAD  {comment}\n") == ["BAD"]


def test_only_the_line_of_the_comment_is_silenced():
    assert left("BAD\nBAD  # nnx: ignore\nRISKY\n") == ["BAD", "RISKY"]


def test_only_the_named_rule_is_silenced():
    assert left("BAD + RISKY  # nnx: ignore[NNX102]\n") == ["BAD"]
    assert left("BAD + RISKY  # nnx: ignore-file[NNX102]\n") == ["BAD"]


@pytest.mark.parametrize("quote", ['"', "'''", 'f"', "rb'''"])
def test_text_in_a_string_is_no_comment(quote):
    end = quote.lstrip("frb")
    assert left(f"x = {quote}# nnx: ignore-file{end}; BAD\n") == ["BAD"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # within a bracketed statement each line has its own comment
        ("f(\n    BAD,  # nnx: ignore\n    RISKY,\n)\n", ["RISKY"]),
        # a string and what follows it share the comment at the end
        ("x = '''BAD\nRISKY\n'''  # nnx: ignore\nPLAIN\n", ["PLAIN"]),
        ("x = f'''{BAD}\nRISKY\n'''  # noqa\nPLAIN\n", ["PLAIN"]),
        # a backslash leaves no room for a comment
        ("x = BAD + \\\n  RISKY + \\\n  1  # noqa\nPLAIN\n", ["PLAIN"]),
        ("# BAD \\\nx = RISKY  # noqa\n", ["BAD"]),
    ],
)
def test_lines_without_room_for_a_comment_use_the_next(text, words):
    assert left(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# nnx: ignore\nBAD\nRISKY\n", ["RISKY"]),
        ("# nnx: ignore[NNX101]\n# nnx: ignore[NNX102]\nBAD + RISKY\n", []),
        ("# nnx: ignore\n\n# another comment\nBAD\n", []),
        ("# nnx: ignore\nx = f(\n    BAD,\n    RISKY,\n)\nPLAIN\n", ["PLAIN"]),
        ("x = f(\n    # nnx: ignore\n    BAD,\n    RISKY,\n)\n", ["RISKY"]),
        ("# nnx: ignore\nclass A(BAD):\n    RISKY\n", ["RISKY"]),
        ("# nnx: ignore\n@BAD\n@d(\n  RISKY\n)\ndef f(\n  x=PLAIN\n):\n    HAND\n", ["HAND"]),
        ("def f():\n    # nnx: ignore\n    BAD\n    RISKY\n", ["RISKY"]),
        ("if x:\n    pass\n    # nnx: ignore\nBAD\nRISKY\n", ["RISKY"]),
        ("BAD\n# nnx: ignore\n", ["BAD"]),
        ("# noqa\nBAD\n", ["BAD"]),  # flake8's comment means its own line only
    ],
)
def test_a_comment_on_its_own_line_covers_the_statement_below(text, words):
    assert left(text) == words


def test_a_file_comment_may_stand_anywhere():
    assert left("BAD\ndef f():\n    RISKY\n    # nnx: ignore-file\n") == []


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_newlines_do_not_matter(newline):
    text = "# nnx: ignore\nBAD\nRISKY  # noqa\nPLAIN\n"
    assert left(text.replace("\n", newline)) == ["PLAIN"]


@pytest.mark.parametrize("broken", ["x = '''\n", "x = (\n", "  y\n z\n", "$ ? 1\n", "if x:\nfoo(]\n"])
def test_comments_are_read_where_the_tokenizer_gives_up(broken):
    assert left(f"BAD  # nnx: ignore\n{broken}RISKY  # nnx: ignore[NNX102]\nPLAIN\n") == ["PLAIN"]


@given(st.text(alphabet="#\n\\'\"()[]: anxgioreqBAD", max_size=60))
def test_no_text_is_too_odd(text):
    read_suppressions(SourceFile.from_text(text + "# nnx: ignore"))
