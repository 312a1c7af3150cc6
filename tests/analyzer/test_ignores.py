"""``--add-ignore``: the comments that it writes silence what was found, and change nothing else."""

import ast
import itertools
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stub_engine
from nnx_lint.checking import Checker
from nnx_lint.comments import Layout
from nnx_lint.diagnostics import Diagnostic, Span
from nnx_lint.ignores import add_ignores
from nnx_lint.selection import FileOptions, Options
from nnx_lint.silencing import silence
from nnx_lint.source import SourceFile
from nnx_lint.suppressions import Suppressions
from nnx_rules.registry import Family
from nnx_rules.rules import REGISTRY
from repository import ROOT
from rule_pages import read_page

BAD, RISKY = "data-in-static-attribute", REGISTRY.get("NNX102").name


def found(source):
    return stub_engine.check([source], roots=(), options=Options.everywhere(selected=lambda rule: True))


def ignored(text):
    source = SourceFile.from_text(textwrap.dedent(text))
    return add_ignores(source, found(source)).text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = BAD\n", f"x = BAD  # nnx: ignore[{BAD}]\n"),
        ("x = BAD", f"x = BAD  # nnx: ignore[{BAD}]"),
        ("x = BAD \t\r\ny = 1\r\n", f"x = BAD  # nnx: ignore[{BAD}]\r\ny = 1\r\n"),
        ("x = BAD + RISKY + BAD\n", f"x = BAD + RISKY + BAD  # nnx: ignore[{BAD}, {RISKY}]\n"),
        ("f(\n    BAD,\n    RISKY)\n", f"f(\n    BAD,  # nnx: ignore[{BAD}]\n    RISKY)  # nnx: ignore[{RISKY}]\n"),
        # where there is no room for a comment
        ("x = '''BAD\n''' + '''\nRISKY\n'''\n", f"x = '''BAD\n''' + '''\nRISKY\n'''  # nnx: ignore[{BAD}, {RISKY}]\n"),
        ("x = BAD + \\\n    1\n", f"x = BAD + \\\n    1  # nnx: ignore[{BAD}]\n"),
        # other comments come first, ours gets the name
        ("x = BAD  # type: ignore[x]\n", f"x = BAD  # type: ignore[x]  # nnx: ignore[{BAD}]\n"),
        ("x = BAD  # noqa: E501\n", f"x = BAD  # noqa: E501  # nnx: ignore[{BAD}]\n"),
        ("x = BAD  # nnx: ignore[NNX102] why\n", f"x = BAD  # nnx: ignore[NNX102, {BAD}] why\n"),
        ("x = BAD  # nnx: ignore[ NNX102 ]\n", f"x = BAD  # nnx: ignore[ NNX102, {BAD} ]\n"),
        ("x = BAD  # nnx: ignore[]\n", f"x = BAD  # nnx: ignore[]  # nnx: ignore[{BAD}]\n"),
        ("x = BAD  # nnx: ignore[NNX102\n", f"x = BAD  # nnx: ignore[NNX102  # nnx: ignore[{BAD}]\n"),
        ("x = BAD  # nnx: ignore-file[NNX104]\n", f"x = BAD  # nnx: ignore-file[NNX104]  # nnx: ignore[{BAD}]\n"),
        # what is silent stays as it is
        ("x = BAD  # noqa\n", "x = BAD  # noqa\n"),
        ("# nnx: ignore-file\nx = BAD\n", "# nnx: ignore-file\nx = BAD\n"),
        ("x = 1  # nnx: ignore[NNX101]\n", "x = 1  # nnx: ignore[NNX101]\n"),
        # what stands beside no code
        ("# BAD\nx = 1\n", "# BAD\nx = 1\n"),
        # nobody knows where the strings of a broken file end
        ("x = (BAD\n", "x = (BAD\n"),
    ],
)
def test_a_comment_is_written_where_the_finding_begins(before, after):
    assert ignored(before) == after
    assert ignored(after) == after


def test_a_finding_about_a_comment_is_not_silenced():
    source = SourceFile.from_text("x = 1  # nnx: ignore[NNX101]\n")
    options = FileOptions({rule.code: rule.severity for rule in REGISTRY})
    findings = silence(source, [], options)
    assert [finding.rule.code for finding in findings] == ["NNX001"]
    assert add_ignores(source, findings) is source


LINES = st.sampled_from(
    [
        "x = BAD",
        "f(RISKY,",
        "  BAD)",
        ")",
        "'''",
        "BAD'''",
        "x = BAD + \\",
        "1",
        "",
        "    HAND",
        "if PLAIN:",
        "@BAD",
        "def f(): QUIET",
    ]
)
COMMENTS = st.sampled_from(
    [
        "",
        "  # nnx: ignore[NNX101]",
        "# nnx: ignore",
        "  # type: ignore",
        " # nnx: ignore[",
        "  # noqa: NNX102",
        " # BAD",
        "  ",
    ]
)


@given(st.lists(st.tuples(LINES, COMMENTS), max_size=8), st.sampled_from(["\n", "\r\n", "\r"]))
def test_every_finding_in_the_code_is_silenced_by_comments_alone(lines, newline):
    source = SourceFile.from_text("".join(f"{code}{comment}{newline}" for code, comment in lines))
    if source.error is not None:
        return
    after = add_ignores(source, found(source))
    assert after.error is None
    assert ast.dump(after.tree) == ast.dump(source.tree)
    suppressions = Suppressions(after)
    comments = [comment.span for comment in Layout.read(after).comments]
    left = [finding for finding in found(after) if not suppressions.cover(finding, after)]
    assert all(any(span.start <= finding.span.start < span.end for span in comments) for finding in left)
    assert add_ignores(after, found(after)).text == after.text


@given(st.data())
def test_a_finding_over_several_lines_is_silenced(data):
    text = "class A(\n    B,\n):\n    x = '''\n    a\n    ''' + \\\n        1\n"
    source = SourceFile.from_text(text)
    places = [index for index, character in enumerate(text) if not character.isspace()]
    start = data.draw(st.sampled_from(places))
    end = data.draw(st.integers(start + 1, len(text)))
    finding = Diagnostic(REGISTRY.get("NNX101"), source.path, Span(start, end), "m")
    after = add_ignores(source, [finding])
    assert Suppressions(after).cover(finding, source)
    assert ast.dump(after.tree) == ast.dump(source.tree)


BLOCKS = [block for page in sorted((ROOT / "tests" / "rules").glob("*.md")) for block in read_page(page).blocks]


def test_what_is_found_on_the_rule_pages_is_silenced_and_stays_so():
    sources = {
        block.name: SourceFile.from_text(block.source(block.libraries[0]), block.name)
        for block in BLOCKS
        if block.role == "bad"
    }
    silenced = 0
    for name, source in itertools.islice(sources.items(), 0, None, 2):  # each is a project of its own
        checker = Checker(Options.everywhere(selected=lambda rule: True), roots=[])
        findings = [finding for finding in checker.check({name: source}) if finding.rule.family is not Family.COMMENTS]
        after = add_ignores(source, findings)
        left = [finding for finding in checker.check({name: after}) if finding.rule.family is not Family.COMMENTS]
        assert (name, left, checker.problems) == (name, [], [])
        assert add_ignores(after, left).text == after.text
        assert ast.dump(after.tree) == ast.dump(source.tree)
        silenced += len(findings)
    assert silenced > 100
