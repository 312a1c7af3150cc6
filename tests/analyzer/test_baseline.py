"""Baselines: accepted findings stay accepted while code moves, new ones are seen, and what is gone is reported."""

import json
import re
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stub_engine
from nnx_lint.anchors import Anchors
from nnx_lint.baseline import Baseline, BaselineError, Entry
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile


def check(*files):
    """Sources and findings of some texts."""
    sources = {path: SourceFile.from_text(text, path) for path, text in files}
    options = Options.everywhere(selected=lambda rule: True)
    return stub_engine.check(list(sources.values()), roots=(), options=options), sources


def compare(before, after, path="a.py"):
    """How often a change of a file leads to new, known and stale ones."""
    baseline = Baseline("baseline.json").updated(*check((path, before)))
    return tuple(map(len, baseline.compare(*check((path, after)))))


NET = """
class Net:
    def __init__(self):
        self.a = BAD
        self.b = f(BAD, 2)

x = BAD
"""


@pytest.mark.parametrize(
    "after",
    [
        NET,
        "import os\n\n\n" + NET,
        NET.replace("self.a", "y = 1\n\n        self.a"),
        "x = BAD\n\nclass Net:\n    def __init__(self):\n        self.b = f(BAD, 2)\n        self.a = BAD\n",
        NET.replace("self.a = BAD", "if y:\n            self.a = BAD"),
        NET.replace("self.a = BAD", "self.a   =   BAD  # TODO"),
        NET.replace("f(BAD, 2)", "f(BAD,2)"),
        NET.replace("f(BAD, 2)", "f(\n            BAD,\n            2,\n        )"),
        NET.replace("f(BAD, 2)", "f(BAD, \\\n 2)"),
        NET.replace("    ", "\t"),
        NET.replace("\n", "\r\n"),
    ],
)
def test_moved_and_reformatted_code_stays_known(after):
    assert compare(NET, after) == (0, 3, 0)


def test_a_line_that_a_formatter_joins_again_stays_known():
    broken = NET.replace("f(BAD, 2)", "f(\n            BAD,\n            2,\n        )")
    assert compare(broken, NET) == (0, 3, 0)


def test_an_item_more_in_a_call_of_many_lines_leaves_its_other_lines_known():
    before = "def f():\n    g(\n        BAD,\n        RISKY,\n    )\n"
    assert compare(before, before.replace("BAD,\n", "BAD,\n        1,\n")) == (0, 2, 0)


@pytest.mark.parametrize(
    ("after", "counts"),
    [
        (NET.replace("self.a", "self.c"), (1, 2, 1)),  # another line
        (NET.replace("__init__", "setup"), (2, 1, 2)),  # another symbol
        (NET.replace("self.a = BAD", "self.a = BAD\n        self.a = BAD"), (1, 3, 0)),  # once more
        (NET.replace("self.a = BAD", "self.a = RISKY"), (1, 2, 1)),  # another rule
        (NET.replace("x = BAD", ""), (0, 2, 1)),
        (NET.replace("x = BAD", "def g():\n    x = BAD"), (1, 2, 1)),
    ],
)
def test_what_changed_is_new_and_what_went_is_stale(after, counts):
    assert compare(NET, after) == counts


def test_one_entry_accepts_as_many_findings_as_it_counts():
    baseline = Baseline("baseline.json").updated(*check(("a.py", "x = BAD\nx = BAD\n")))
    assert list(baseline.counts.values()) == [2]
    result = baseline.compare(*check(("a.py", "x = BAD\nx = BAD\nx = BAD\n")))
    assert (len(result.known), len(result.new), result.stale) == (2, 1, [])
    result = baseline.compare(*check(("a.py", "x = BAD\n")))
    assert (len(result.known), len(result.new), len(result.stale)) == (1, 0, 1)
    assert str(result.stale[0]) == "a.py: NNX101: `x=BAD`"


def test_new_findings_keep_their_order():
    findings, sources = check(("a.py", "BAD\nRISKY\nPLAIN\nHAND\n"))
    baseline = Baseline("baseline.json").updated([findings[2], findings[0]], sources)
    result = baseline.compare(findings, sources)
    assert set(result.known) == {findings[0], findings[2]}
    assert result.new == [findings[1], findings[3]]


class TestPartialRuns:
    BASELINE = Baseline("baseline.json").updated(*check(("a.py", "BAD\nRISKY\n"), ("setup.py", "BAD\n")))

    @pytest.fixture(autouse=True)
    def files(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "a.py").touch()
        (tmp_path / "setup.py").touch()

    def test_a_file_that_was_not_checked_has_no_stale_entries(self):
        findings, sources = check(("a.py", "BAD\nRISKY\n"))
        assert self.BASELINE.compare(findings, sources).stale == []
        assert self.BASELINE.updated(findings, sources).counts == self.BASELINE.counts

    def test_a_file_that_is_gone_has(self, tmp_path):
        (tmp_path / "setup.py").unlink()
        findings, sources = check(("a.py", "BAD\nRISKY\n"))
        assert [entry.path for entry in self.BASELINE.compare(findings, sources).stale] == ["setup.py"]
        assert {entry.path for entry in self.BASELINE.updated(findings, sources).counts} == {"a.py"}

    def test_a_rule_that_was_off_has_no_stale_entries(self):
        findings, sources = check(("a.py", "BAD\n"))
        assert len(self.BASELINE.compare(findings, sources).stale) == 1
        only = lambda code, path: code == "NNX101"  # noqa: E731
        assert self.BASELINE.compare(findings, sources, only).stale == []
        assert self.BASELINE.updated(findings, sources, only).counts == self.BASELINE.counts


class TestFile:
    def test_is_json_without_line_numbers(self, tmp_path):
        path = tmp_path / "baseline.json"
        source = str(tmp_path / "src" / "net.py")
        Baseline(str(path)).updated(*check((source, NET + "x = BAD\n"))).write()
        content = json.loads(path.read_text(encoding="utf-8"))
        assert content == {
            "format": 1,
            "findings": [
                {"rule": "NNX101", "path": "src/net.py", "symbol": "", "line": "x=BAD", "count": 2},
                {"rule": "NNX101", "path": "src/net.py", "symbol": "Net.__init__", "line": "self.a=BAD"},
                {"rule": "NNX101", "path": "src/net.py", "symbol": "Net.__init__", "line": "self.b=f(BAD,2)"},
            ],
        }

    def test_what_is_written_is_read(self, tmp_path):
        baseline = Baseline(str(tmp_path / "b.json"))
        written = baseline.updated(*check((str(tmp_path / "ü.py"), "x = (\n    BAD,\n    '\"é\\ud800')\n" + NET)))
        written.write()
        assert Baseline.read(baseline.path).counts == written.counts

    def test_does_not_depend_on_the_order_of_the_findings(self, tmp_path):
        findings, sources = check(("b.py", "RISKY\nBAD\n"), ("a.py", NET))
        texts = set()
        for order in (findings, findings[::-1]):
            Baseline(str(tmp_path / "b.json")).updated(order, sources).write()
            texts.add((tmp_path / "b.json").read_bytes())
        assert len(texts) == 1

    def test_two_branches_that_were_merged_add_up(self, tmp_path):
        path = tmp_path / "b.json"
        finding = {"rule": "NNX101", "path": "a.py", "symbol": "", "line": "x=BAD"}
        path.write_text(json.dumps({"format": 1, "findings": [finding, finding | {"count": 2}]}))
        assert list(Baseline.read(str(path)).counts.values()) == [3]

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "is no baseline: Expecting value"),
            ("{", "is no baseline: Expecting property name"),
            ("<<<<<<< HEAD", "is no baseline"),
            ("[]", 'is no baseline: it has no "format" and "findings"'),
            ("{}", 'is no baseline: it has no "format" and "findings"'),
            ('{"format": 2, "findings": []}', "is a baseline of format 2, and this version reads format 1"),
            ('{"format": 1, "findings": {}}', "is no baseline"),
            ('{"format": 1, "findings": [1]}', "finding 1 is not written as"),
            ('{"format": 1, "findings": [{"rule": "NNX101"}]}', "finding 1 is not written as"),
            (
                '{"format": 1, "findings": [{"rule": "A", "path": "a", "symbol": "", "line": "", "count": 0}]}',
                "finding 1 is not written as",
            ),
            ("[" * 100_000, "is no baseline"),
        ],
    )
    def test_a_file_that_is_no_baseline_says_what_is_wrong(self, tmp_path, text, problem):
        path = tmp_path / "b.json"
        path.write_text(text)
        with pytest.raises(BaselineError, match=re.escape(str(path)) + ".*" + re.escape(problem)):
            Baseline.read(str(path))

    def test_a_file_that_is_not_there_says_how_to_make_it(self, tmp_path):
        with pytest.raises(BaselineError, match="there is no such baseline; write it with --update-baseline"):
            Baseline.read(str(tmp_path / "b.json"))
        with pytest.raises(BaselineError, match="cannot be read"):
            Baseline.read(str(tmp_path))

    def test_a_folder_that_cannot_be_written_is_an_error_and_leaves_nothing(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="no-such-folder"):
            Baseline(str(tmp_path / "no-such-folder" / "b.json")).write()
        assert list(tmp_path.iterdir()) == []


class TestAnchors:
    def at(self, text, part):
        source = SourceFile.from_text(textwrap.dedent(text))
        return Anchors(source).at(source.text.index(part))

    @pytest.mark.parametrize(
        ("text", "symbol"),
        [
            ("HERE", ""),
            ("def f(x=HERE): pass\n", "f"),
            ("@HERE\nclass A: pass\n", "A"),
            ("class A:\n  if x:\n    async def f(self):\n      try: pass\n      except E:\n        HERE\n", "A.f"),
            ("def f():\n  def g():\n    pass\n  HERE\n", "f"),
            ("match x:\n  case 1:\n    def f():\n      HERE\n", "f"),
            ("def f(): pass\nHERE\n", ""),
        ],
    )
    def test_the_enclosing_symbol(self, text, symbol):
        assert self.at(text, "HERE").symbol == symbol

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("  x  =  HERE  # why\n", "x=HERE"),
            ("return   not\tHERE\n", "return not HERE"),
            ("x = 'a  # b' + HERE\n", "x='a # b'+HERE"),
            ("x = '''\n  HERE  a\n'''\n", "HEREa"),
            ("x = (\n  HERE,  # c\n)\n", "HERE,"),
            ("return f'{{ { a !r:>{w}}  {{' + HERE\n", "return f'{{ { a !r:>{w}} {{'+HERE"),
            ("f'''\n{a}\n  {f'{b}'} ''' + HERE\n", "+HERE"),
            ("x = HERE + f'''{\n  a}'''\n", "x=HERE+f'''{ a}'''"),
        ],
    )
    def test_the_line_has_no_white_space_and_no_comment(self, text, line):
        assert self.at(f"if 1:\n{text}" if text.startswith(" ") else text, "HERE").line == line

    @given(st.text(alphabet="ab(['\"\\\n\t #)]:=é", max_size=40), st.data())
    def test_every_place_of_every_text_has_one(self, text, data):
        anchors = Anchors(SourceFile.from_text(text))
        anchors.at(data.draw(st.integers(0, len(text))))


def test_entries_are_plain_data():
    entry = Entry("NNX101", "a.py", "f", "x", "y")
    assert str(entry) == "a.py: NNX101 in f: `x`"
