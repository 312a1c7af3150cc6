"""Suppression comments: what they cover, and what only looks like one."""

import ast
import json
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stub_engine
from nnx_lint.fixes import fix_all
from nnx_lint.ignores import add_ignores
from nnx_lint.notebooks import Notebook
from nnx_lint.selection import FileOptions, Options
from nnx_lint.silencing import silence
from nnx_lint.source import SourceFile
from nnx_lint.suppressions import Suppressions
from nnx_rules.registry import Severity
from nnx_rules.rules import REGISTRY


def left(text):
    """The words that the stub engine still reports, in order."""
    source = SourceFile.from_text(textwrap.dedent(text))
    suppressions = Suppressions(source)
    findings = stub_engine.check([source], roots=(), options=Options.everywhere(selected=lambda rule: True))
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


@pytest.mark.parametrize("broken", ["x = '''\ndef f(): ...\n", "x = (\n", "  y\n z\n", "$ ? 1\n", "if x:\nfoo(]\n"])
def test_comments_are_read_where_the_tokenizer_gives_up(broken):
    assert left(f"BAD  # nnx: ignore\n{broken}RISKY  # nnx: ignore[NNX102]\nPLAIN\n") == ["PLAIN"]


@given(st.text(alphabet="#\n\\'\"()[]: anxgioreqBAD", max_size=60))
def test_no_text_is_too_odd(text):
    Suppressions(SourceFile.from_text(text + "# nnx: ignore"))


# -- comments that silence nothing -------------------------------------------------------------------------------------


ALL_RULES = FileOptions({rule.code: rule.severity for rule in REGISTRY})


def without(*codes, **more):
    """The options of a file in which some rules are off."""
    return FileOptions({rule.code: rule.severity for rule in REGISTRY if rule.code not in codes}, **more)


def about(text, options=ALL_RULES, **more):
    """The rule and the place of every finding about the comments of a text."""
    source = SourceFile.from_text(text)
    findings = stub_engine.check([source], roots=(), options=Options(options, {}))
    left = silence(source, findings, options, **more)
    return [(finding.rule.name, source.segment(finding.span)) for finding in left if finding.rule.code < "NNX1"]


def tidied(text):
    """The text after the safe fixes of all findings about its comments, pass after pass."""

    def check(sources):
        (source,) = sources.values()
        findings = stub_engine.check([source], roots=(), options=Options(ALL_RULES, {}))
        return [finding for finding in silence(source, findings, ALL_RULES) if finding.rule.code < "NNX1"]

    outcome = fix_all({"a.py": SourceFile.from_text(text, "a.py")}, check)
    assert not outcome.problems
    return outcome.sources["a.py"].text


@pytest.mark.parametrize(
    "text",
    [
        "x = BAD  # nnx: ignore[NNX101]\n",
        "x = BAD  # nnx: ignore\n",
        "# nnx: ignore-file[ALL]\nBAD\n",
        "# nnx: ignore-file[NNX1]\nx = BAD  # nnx: ignore[NNX101]\n",  # either would do
        "# nnx: ignore\nx = BAD  # noqa: NNX101\n",
        "x = BAD + RISKY  # nnx: ignore[NNX101, NNX102]\n",
        # not ours to judge
        "x = 1  # noqa\n",
        "HAND  # nnx: ignore\nx = 1  # noqa\n",
        "x = 1  # noqa: E501\n",
        "x = 1  # noqa: E501, W605\n",
        "# noqa: NNX101\nx = 1\n",
        "x = '# nnx: ignore[NNX101]'\n",
        # about the rules about comments
        "x = 1  # nnx: ignore[unused-suppression]\n",
        "# nnx: ignore-file[NNX0]\nx = 1  # nnx: ignore[NNX101, NNX999]\n",
        "x = 1  # nnx: ignore[NNX101, NNX001]\n",
        # what the linter cannot read, it cannot judge
        "x = (  # nnx: ignore[NNX101]\n",
    ],
)
def test_a_comment_that_is_needed_or_not_ours_is_no_finding(text):
    assert about(text) == []


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("x = 1  # nnx: ignore[NNX101]\n", ["# nnx: ignore[NNX101]"]),
        ("x = 1  # nnx: ignore\n", ["# nnx: ignore"]),
        ("x = 1  # nnx: ignore[]\n", ["# nnx: ignore[]"]),
        ("# nnx: ignore-file[NNX1]\nx = 1\n", ["# nnx: ignore-file[NNX1]"]),
        ("# nnx: ignore[ALL]\n", ["# nnx: ignore[ALL]"]),
        ("BAD\nx = 1  # nnx: ignore[NNX101]\n", ["# nnx: ignore[NNX101]"]),
        ("BAD  # nnx: ignore[NNX101, NNX102]\n", ["NNX102"]),
        ("BAD  # noqa: E501,NNX102,NNX101\n", ["NNX102"]),
        ("BAD  # nnx: ignore[NNX104, NNX101,NNX102]\n", ["NNX104, NNX101,NNX102"]),
        ("x = 1  # type: ignore  # nnx: ignore[NNX101]\n", ["# nnx: ignore[NNX101]"]),
        # a comment that means everything does not hide that it is useless
        ("# nnx: ignore-file\nx = 1\n", ["# nnx: ignore-file"]),
        ("x = 1  # nnx: ignore[NNX101]  # nnx: ignore\n", ["# nnx: ignore[NNX101]", "# nnx: ignore"]),
    ],
)
def test_a_comment_that_silences_nothing_is_a_finding(text, places):
    assert about(text) == [("unused-suppression", place) for place in places]


def test_only_rules_of_this_run_count():
    text = "x = 1  # nnx: ignore[NNX101]\ny = 1  # nnx: ignore\nz = 1  # nnx: ignore[NNX1]\n"
    assert len(about(text)) == 3
    assert about(text, without("NNX101")) == []
    assert about(text, without("NNX201")) == [
        ("unused-suppression", "# nnx: ignore[NNX101]"),
        ("unused-suppression", "# nnx: ignore[NNX1]"),
    ]
    assert about(text, without("NNX001")) == []
    assert about(text, complete=False) == []
    assert len(about(text, without("NNX106"))) == 3  # off by default, so a prefix does not stand for it


def test_a_rule_that_does_not_hold_for_the_version_may_be_needed_for_another():
    rule = next(rule for rule in REGISTRY if rule.versions.flax_since is not None)
    text = f"x = 1  # nnx: ignore[{rule.name}]\n"
    assert about(text, without(library="flax", version=(0, 8))) == []
    assert len(about(text, without(library="flax"))) == 1


@pytest.mark.parametrize(
    ("comment", "name"),
    [
        ("# nnx: ignore[NNX999]", "NNX999"),
        ("# nnx: ignore[data-in-static-atribute]", "data-in-static-atribute"),
        ("# nnx: ignore[E501]", "E501"),
        ("# noqa: E501, nnx999", "nnx999"),
        ("# nnx: ignore-file[NNX1011]", "NNX1011"),
    ],
)
def test_a_name_that_is_no_rule_is_a_finding(comment, name):
    assert about(f"x = 1  {comment}\n") == [("unknown-suppression", name)]
    assert about(f"x = 1  {comment}\n", without("NNX002")) == []


@pytest.mark.parametrize(
    ("comment", "place", "meant"),
    [
        ("# nnx: ignore[NNX101", "# nnx: ignore[NNX101", "# nnx: ignore[NNX101]"),
        ("# nnx: ignore[NNX101 for now", "# nnx: ignore[NNX101", "# nnx: ignore[NNX101]"),
        ("# nnx: ignroe[nnx101]", "# nnx: ignroe[nnx101]", "# nnx: ignore[NNX101]"),
        ("# nnx: ignore_file[NNX1]", "# nnx: ignore_file[NNX1]", "# nnx: ignore-file[NNX1]"),
        ("# nnx-lint: ignore[NNX101, invalid-filter]", None, "# nnx: ignore[NNX101, invalid-filter]"),
        ("# nnx ignore[NNX101]", None, "# nnx: ignore[NNX101]"),
        ("# nnx: disable=NNX101", None, "# nnx: ignore[NNX101]"),
        ("# nnx: disable NNX101 as above", "# nnx: disable NNX101", "# nnx: ignore[NNX101]"),
        ("#nnx:noqa(invalid-filter)", None, "# nnx: ignore[invalid-filter]"),
        ("# type: ignore  # nnx_lint: skip[NNX101]", "# nnx_lint: skip[NNX101]", "# nnx: ignore[NNX101]"),
        ("# noqa: data-in-static-attribute", None, "# noqa: NNX101"),
    ],
)
def test_a_comment_that_can_only_be_meant_to_silence_a_rule_is_a_finding(comment, place, meant):
    text = f"BAD  {comment}\n"
    assert about(text) == [("misspelt-suppression", place or comment)]
    assert about(text, without("NNX003")) == []
    source = SourceFile.from_text(text)
    findings = stub_engine.check([source], roots=(), options=Options(ALL_RULES, {}))
    (found,) = (each for each in silence(source, findings, ALL_RULES) if each.rule.code == "NNX003")
    assert [edit.text for edit in found.fix.edits] == [meant]


@pytest.mark.parametrize(
    "comment",
    [
        "# nnx: see NNX101",
        "# nnx: NNX101 would be wrong here",
        "# nnx ignores static attributes",
        "# nnx: skip nnx models",
        "# nnx: ignored[layers]",
        "# nnx: disable ALL of them",
        "# nnx: ignore[E501",
        "# nnx-lint finds NNX101 here",
        "# noqa: because of data-in-static-attribute",
        "# the flag nnx: disable=NNX101 is wrong",
    ],
)
def test_what_may_be_prose_is_no_comment_of_ours(comment):
    assert about(f"x = 1  {comment}\n") == []


def test_a_former_name_is_known():
    for rule in REGISTRY:
        for alias in rule.aliases:
            assert about(f"x = 1  # nnx: ignore[{alias}]\n", without(rule.code)) == []


def test_the_level_of_the_configuration_holds_for_comments_too():
    options = FileOptions({"NNX001": Severity.INFO, "NNX101": Severity.ERROR})
    source = SourceFile.from_text("x = 1  # nnx: ignore[NNX101]\n")
    (finding,) = silence(source, [], options)
    assert finding.severity is Severity.INFO


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # nnx: ignore[NNX101]\n", "x = 1\n"),
        ("x = 1 # nnx: ignore", "x = 1"),
        ("f(\n    1,  # nnx: ignore\n)\n", "f(\n    1,\n)\n"),
        ("# nnx: ignore[NNX101]\nx = 1\n", "x = 1\n"),
        ("def f():\n    # nnx: ignore[NNX101]\n    x = 1\n", "def f():\n    x = 1\n"),
        ("x = 1\n# nnx: ignore-file", "x = 1\n"),
        ("x = 1\r\n# nnx: ignore-file\r\ny = 1\r\n", "x = 1\r\ny = 1\r\n"),
        # other text stays
        ("x = 1  # type: ignore  # nnx: ignore[NNX101]\n", "x = 1  # type: ignore\n"),
        ("x = 1  # nnx: ignore[NNX101]  # type: ignore\n", "x = 1  # type: ignore\n"),
        ("x = 1  # why  # nnx: ignore[NNX101]  # and more\n", "x = 1  # why  # and more\n"),
        ("x = 1  # nnx: ignore[NNX101] because I say so\n", "x = 1  # because I say so\n"),
        ("x = 1  # nnx: ignore[NNX101]: on purpose\n", "x = 1  # on purpose\n"),
        ("x = 1  # nnx: ignore[NNX101] --\n", "x = 1\n"),
        ("# nnx: ignore - on purpose\nx = 1\n", "# on purpose\nx = 1\n"),
        # what is needed stays
        ("BAD  # nnx: ignore[NNX102, NNX101]\n", "BAD  # nnx: ignore[NNX101]\n"),
        ("BAD  # nnx: ignore[NNX102,NNX104,NNX101]  # x\n", "BAD  # nnx: ignore[NNX101]  # x\n"),
        ("BAD  # noqa: E501 NNX102 NNX101 on purpose\n", "BAD  # noqa: E501 NNX101 on purpose\n"),
        ("x = 1  # noqa: E501,NNX101\n", "x = 1  # noqa: E501\n"),
        ("x = 1  # noqa: NNX101\n", "x = 1\n"),
        ("x = 1  # nnx: ignore[NNX101]  # nnx: ignore\n", "x = 1\n"),
        ("x = 1  # nnx: ignore# nnx: ignore because\n", "x = 1  # because\n"),
        # without the comment in front these would speak to another tool
        ("x = 1  # nnx: ignore[NNX101] type: ignore\n", "x = 1  # nnx: ignore[NNX101] type: ignore\n"),
        ("x = 1  # nnx: ignore[NNX101] nnx: ignore-file\n", "x = 1  # nnx: ignore[NNX101] nnx: ignore-file\n"),
        ("x = 1  # nnx: ignore[NNX101] noqa\n", "x = 1  # nnx: ignore[NNX101] noqa\n"),
    ],
)
def test_the_fix_removes_what_is_not_needed_and_nothing_else(before, after):
    assert tidied(before) == after
    assert tidied(after) == after


COMMENTS = st.lists(
    st.sampled_from(
        [
            "# nnx: ignore",
            "# nnx: ignore[NNX101]",
            "# nnx: ignore[NNX101, NNX102]",
            "# nnx: ignore-file[NNX104]",
            "# noqa",
            "# noqa: E501,NNX102",
            *("# why", " because", ": x", "# type: ignore", "[", "\t", "  "),
        ]
    ),
    max_size=4,
).map("".join)
LINES = st.tuples(st.sampled_from(["x = 1", "BAD", "f(RISKY,", ")", "'''", "x = \\", "", "    BAD"]), COMMENTS)


@given(st.lists(LINES, max_size=6))
def test_after_the_fixes_no_comment_is_useless_and_the_code_is_the_same(lines):
    text = "".join(f"{code}  {comment}\n" for code, comment in lines)
    source = SourceFile.from_text(text)
    try:
        code = ast.dump(ast.parse(text))
    except SyntaxError:
        return
    after = tidied(text)
    assert ast.dump(ast.parse(after)) == code
    assert tidied(after) == after

    def findings(text):
        source = SourceFile.from_text(text)
        found = stub_engine.check([source], roots=(), options=Options(ALL_RULES, {}))
        return [finding.rule.code for finding in silence(source, found, ALL_RULES) if finding.rule.code > "NNX1"]

    assert findings(after) == findings(source.text)


class TestNotebooks:
    def notebook(self, *cells):
        document = {
            "cells": [{"cell_type": "code", "source": cell, "metadata": {}, "outputs": []} for cell in cells],
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        return Notebook.from_json(json.dumps(document).encode(), "n.ipynb")

    def left(self, *cells):
        source = self.notebook(*cells)
        assert source.error is None
        findings = stub_engine.check([source], roots=(), options=Options(ALL_RULES, {}))
        return [source.segment(finding.span) for finding in silence(source, findings, ALL_RULES)]

    def test_a_comment_above_the_end_of_a_cell_says_nothing_of_the_next(self):
        assert self.left("# nnx: ignore\n", "BAD") == ["BAD", "# nnx: ignore"]
        assert self.left("x = 1\n# nnx: ignore\nBAD", "RISKY") == ["RISKY"]

    def test_a_comment_for_the_file_is_for_all_cells(self):
        assert self.left("BAD", "# nnx: ignore-file[NNX101]", "BAD") == []

    def test_magics_do_not_hide_comments(self):
        assert self.left("!ls 'a\n%time (\nBAD  # nnx: ignore[NNX101]\n", "x = '''\nBAD\n'''  # nnx: ignore") == []
        assert self.left("%%bash\nBAD  # nnx: ignore\n", "# nnx: ignore[NNX104]\n1")[1:] == ["# nnx: ignore[NNX104]"]

    def test_fixes_and_ignores_stay_in_their_cells(self):
        source = self.notebook("%time 1\nx = BAD", "# nnx: ignore\nx = 1")
        findings = stub_engine.check([source], roots=(), options=Options(ALL_RULES, {}))
        after = add_ignores(source, findings)
        cells = json.loads(after.to_bytes())["cells"]
        assert cells[0]["source"] == "%time 1\nx = BAD  # nnx: ignore[data-in-static-attribute]"
        outcome = fix_all({"n.ipynb": after}, lambda sources: silence(sources["n.ipynb"], [], ALL_RULES))
        cells = json.loads(outcome.sources["n.ipynb"].to_bytes())["cells"]
        assert [cell["source"] for cell in cells] == ["%time 1\nx = BAD", "x = 1"]
