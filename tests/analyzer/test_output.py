"""Output formats: exact text for people, exact shape for tools."""

import json
import re
import textwrap
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_lint.diagnostics import Applicability, Diagnostic, Edit, Fix, Related, Span
from nnx_lint.notebooks import Notebook
from nnx_lint.output import Report, render, statistics
from nnx_lint.output.frames import cells
from nnx_lint.output.terminal import wants_colour
from nnx_lint.source import SourceFile
from nnx_rules.registry import Severity
from nnx_rules.rules import REGISTRY
from reports import RULE, Cells, Stream, finding, printed


def show(source, part, *, format="full", colour=False, **parts):
    return printed(format, [finding(source, part, **parts)], source, colour=colour)


def dedent(text):
    return textwrap.dedent(text).lstrip("\n")


class TestFull:
    def test_a_finding_with_everything(self, tmp_path):
        other = tmp_path / "base.py"
        other.write_text("\n" * 9 + "class Base: ...\n")
        source = SourceFile.from_text("import a\n\n\nclass Net:\n    x = [1]\n    y = 2\n\n\nz = 3\n", "net.py")
        fix = Fix("Wrap it", (Edit(Span(30, 30), "f("), Edit(Span(33, 33), ")")))
        related = (Related("net.py", Span(11, 16), "in this class"), Related(str(other), Span(15, 19), "of this base"))
        assert show(source, "[1]", fix=fix, related=related, help="mend it\nsoon") == dedent(f"""
            NNX101 [data-in-static-attribute] it is wrong
              --> net.py:5:9
               |
             4 | class Net:
             5 |     x = [1]
               |         ^^^
             6 |     y = 2
               |
            note: in this class
              --> net.py:4:1
               |
             4 | class Net:
               | -----
               |
            note: of this base
              --> {other}:10:7
               |
            10 | class Base: ...
               |       ----
               |
            help: mend it
            help: soon
            fix: Wrap it (apply with --fix)
               |
             5 | -     x = [1]
             5 | +     x = f([1])
               |

        """)

    def test_a_span_of_several_lines_is_bracketed(self):
        source = SourceFile.from_text("before\nx = f(\n    1,\n    2,\n)\nafter\n", "a.py")
        assert show(source, "f(\n    1,\n    2,\n)") == dedent("""
            NNX101 [data-in-static-attribute] it is wrong
             --> a.py:2:5
              |
            1 |   before
            2 |   x = f(
              |  _____^
            3 | |     1,
            4 | |     2,
            5 | | )
              | |_^
            6 |   after
              |

        """)

    def test_a_long_span_is_shortened(self):
        text = "for x in y:\n" + "".join(f"    step{number}()\n" for number in range(20))
        assert show(SourceFile.from_text(text, "a.py"), text.rstrip()) == dedent("""
            NNX101 [data-in-static-attribute] it is wrong
              --> a.py:1:1
               |
             1 | / for x in y:
             2 | |     step0()
             3 | |     step1()
            ...  |
            20 | |     step18()
            21 | |     step19()
               | |____________^
               |

        """)

    def test_tabs_wide_and_combining_characters_stay_aligned(self):
        source = SourceFile.from_text("\tx = '中e\u0301' + bad\n", "a.py")
        lines = show(source, "bad").splitlines()
        assert lines[1] == " --> a.py:1:14"
        assert lines[3:5] == ["1 |     x = '中e\u0301' + bad", "  |                 ^^^"]

    def test_nothing_from_the_file_acts_on_the_terminal(self):
        source = SourceFile.from_text("bad  # \x1b[31m \x7f \x9b \u202e \u2028\n", "a.py")
        assert "1 | bad  # ␛[31m � � � �\n" in show(source, "bad")

    def test_an_empty_span_has_one_caret_even_at_the_end_of_the_file(self):
        source = SourceFile.from_text("x = 1\n", "a.py")
        report = Report([Diagnostic(RULE, "a.py", Span(6, 6), "it ends")], {"a.py": source}, colour=False)
        assert "2 |\n  | ^\n" in "".join(render(report, "full"))

    def test_a_related_file_that_is_gone_is_still_named(self, tmp_path):
        source = SourceFile.from_text("bad\n", "a.py")
        gone = str(tmp_path / "gone.py")
        text = show(source, "bad", related=(Related(gone, Span(0, 1), "was here"),))
        assert f"note: was here\n --> {gone}\n" in text

    def test_a_fix_in_several_places_shows_each(self):
        source = SourceFile.from_text("import a\n\nx = bad\ny = 1\nz = bad\n", "a.py")
        edits = (Edit(Span(0, 0), "import b\n"), Edit(Span(14, 17), "b.f(\n    1)"), Edit(Span(28, 31), ""))
        text = show(source, "bad", fix=Fix("Mend", edits, Applicability.UNSAFE))
        assert text[text.index("fix:") :] == dedent("""
            fix: Mend (apply with --fix --unsafe-fixes)
              |
            1 | + import b
            3 | - x = bad
            4 | + x = b.f(
            5 | +     1)
            5 | - z = bad
            7 | + z =
              |

        """)

    def test_a_fix_shows_the_lines_that_it_changes_only(self):
        source = SourceFile.from_text("a = 1\nbad\nb = 2\n", "a.py")
        text = show(source, "bad", fix=Fix("Mend", (Edit(Span(5, 9), ""),)))
        assert text[text.index("fix:") :] == dedent("""
            fix: Mend (apply with --fix)
              |
            2 | - bad
              |

        """)

    def test_what_is_no_error_says_so(self):
        source = SourceFile.from_text("bad\n", "a.py")
        first = show(source, "bad", level=Severity.WARNING).splitlines()[0]
        assert first == "NNX101 [data-in-static-attribute] warning: it is wrong"
        assert "\033[1;36mNNX101" in show(source, "bad", level=Severity.INFO, colour=True)

    def test_nobody_sees_the_line_between_two_cells(self):
        source = Notebook.from_cells(["x = bad\n", "y\n"], "n.ipynb")
        assert show(source, "bad") == dedent("""
            NNX101 [data-in-static-attribute] it is wrong
             --> n.ipynb:cell 1:1:5
              |
            1 | x = bad
              |     ^^^
              |

        """)

    def test_a_frame_in_a_notebook_stays_in_its_cell(self):
        source = Cells("n.ipynb", "a\nb\nc\nd\nx = bad\nf\ng\n", "utf-8")
        edits = (Edit(Span(0, 0), "import b\n"), Edit(Span(12, 15), "good"))
        related = (Related("n.ipynb", Span(0, 1), "here"),)
        assert show(source, "bad", fix=Fix("Mend", edits), related=related) == dedent("""
            NNX101 [data-in-static-attribute] it is wrong
             --> n.ipynb:cell 2:2:5
              |
            1 | d
            2 | x = bad
              |     ^^^
            3 | f
              |
            note: here
             --> n.ipynb:cell 1:1:1
              |
            1 | a
              | -
              |
            fix: Mend (apply with --fix)
              |
            1 | + import b
              | cell 2
            2 | - x = bad
            2 | + x = good
              |

        """)

    def test_colours_only_add_to_the_text(self):
        source = SourceFile.from_text("x = [\n  bad]\n", "a.py")
        fix = Fix("Mend", (Edit(Span(8, 11), "good"),), Applicability.DISPLAY)
        for part in ("bad", "[\n  bad]"):
            plain = show(source, part, fix=fix, help="h")
            coloured = show(source, part, fix=fix, help="h", colour=True)
            assert "\033[1;31mNNX101" in coloured
            assert re.sub(r"\033\[[0-9;]*m", "", coloured) == plain

    @given(st.text(alphabet="ab\té中\u0301\x1b\n\r", max_size=30), st.data())
    def test_every_span_of_every_text_can_be_drawn(self, text, data):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, len(text)))
        source = SourceFile.from_text(text, "a.py")
        report = Report([Diagnostic(RULE, "a.py", Span(start, end), "m")], {"a.py": source}, colour=False)
        drawn = "".join(render(report, "full"))
        assert "^" in drawn
        assert drawn.count("\r") == drawn.count("\x1b") == 0


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\n\r")))
def test_cells_have_one_start_for_each_character_and_never_go_back(text):
    shown, starts = cells(text)
    assert len(starts) == len(text) + 1
    assert starts == sorted(starts)
    assert all(unicodedata.category(character) != "Cc" for character in shown)


class TestConcise:
    def test_is_one_line_for_each_finding(self):
        source = SourceFile.from_text("é = bad\n", "a.py")
        assert show(source, "bad", format="concise") == "a.py:1:5: NNX101 [data-in-static-attribute] it is wrong\n"

    def test_what_is_no_error_says_so(self):
        source = SourceFile.from_text("bad\n", "a.py")
        text = show(source, "bad", format="concise", level=Severity.INFO)
        assert text == "a.py:1:1: NNX101 [data-in-static-attribute] info: it is wrong\n"

    def test_a_notebook_names_its_cell(self):
        source = Cells("n.ipynb", "a\nb\nc\nbad\n", "utf-8")
        assert show(source, "bad", format="concise").startswith("n.ipynb:cell 2:1:1: NNX101")


def test_grouped_has_the_findings_under_their_file():
    one = SourceFile.from_text("bad\n" * 10 + "  worse\n", "a.py")
    other = Cells("n.ipynb", "a\nb\nc\nbad\n", "utf-8")
    found = [finding(one, "bad"), finding(one, "worse", level=Severity.WARNING), finding(other, "bad")]
    assert printed("grouped", found, one, other) == dedent("""
        a.py:
           1:1 NNX101 [data-in-static-attribute] it is wrong
          11:3 NNX101 [data-in-static-attribute] warning: it is wrong

        n.ipynb:
          cell 2:1:1 NNX101 [data-in-static-attribute] it is wrong

    """)


class TestStatistics:
    SOURCE = SourceFile.from_text("bad\nbad\n", "a.py")

    def report(self, colour=False):
        mend = (Edit(Span(0, 3), "good"),)
        found = [
            finding(self.SOURCE, "bad"),
            *(Diagnostic(REGISTRY.get("NNX102"), "a.py", Span(0, 3), "m", fix=Fix("Mend", mend)) for _ in range(10)),
            Diagnostic(REGISTRY.get("NNX104"), "a.py", Span(0, 3), "m", fix=Fix("Mend", mend, Applicability.UNSAFE)),
        ]
        return Report(found, {"a.py": self.SOURCE}, colour)

    def test_the_most_frequent_rule_comes_first(self):
        assert "".join(statistics.render(self.report(), "full")) == (
            f"10  NNX102  [*]  {REGISTRY.get('NNX102').name}\n"
            f" 1  NNX101  [ ]  {REGISTRY.get('NNX101').name}\n"
            f" 1  NNX104  [-]  {REGISTRY.get('NNX104').name}\n"
        )

    def test_as_json(self):
        first, *rest = json.loads("".join(statistics.render(self.report(), "json")))
        assert first == {
            "code": "NNX102",
            "name": REGISTRY.get("NNX102").name,
            "count": 10,
            "fixable": True,
            "fixable_count": 10,
        }
        assert [entry["fixable"] for entry in rest] == [False, False]

    def test_nothing_found_is_nothing(self):
        empty = Report([], {}, colour=False)
        assert "".join(statistics.render(empty, "concise")) == ""
        assert json.loads("".join(statistics.render(empty, "json"))) == []


class TestColour:
    @pytest.mark.parametrize(
        ("environment", "terminal", "wanted"),
        [
            ({}, True, True),
            ({}, False, False),
            ({"TERM": "dumb"}, True, False),
            ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
            ({"NO_COLOR": "1"}, True, False),
            ({"NO_COLOR": ""}, True, True),
            ({"FORCE_COLOR": "1"}, False, True),
            ({"FORCE_COLOR": ""}, False, False),
            ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ],
    )
    def test_is_decided_by_the_environment_and_the_stream(self, monkeypatch, environment, terminal, wanted):
        for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        assert wants_colour(Stream(terminal)) is wanted


class TestJson:
    def test_has_the_shape_of_ruffs(self):
        source = SourceFile.from_text("x = 1\né = bad\n", "a.py")
        fix = Fix("Mend it", (Edit(Span(10, 13), "good"),))
        (entry,) = json.loads(
            show(source, "bad", format="json", fix=fix, related=(Related("a.py", Span(0, 1), "here"),), help="h")
        )
        here = str(Path.cwd() / "a.py")
        place = {"cell": None, "location": {"row": 2, "column": 5}, "end_location": {"row": 2, "column": 8}}
        assert entry == {
            "code": "NNX101",
            "name": "data-in-static-attribute",
            "severity": "error",
            "message": "it is wrong",
            "help": "h",
            "filename": here,
            **place,
            "noqa_row": 2,
            "fix": {"applicability": "safe", "message": "Mend it", "edits": [{"content": "good", **place}]},
            "related": [
                {
                    "filename": here,
                    "cell": None,
                    "location": {"row": 1, "column": 1},
                    "end_location": {"row": 1, "column": 2},
                    "message": "here",
                }
            ],
            "url": None,
        }

    def test_no_fix_is_null_and_a_lost_file_has_no_location(self):
        source = SourceFile.from_text("bad\n", "<stdin>")
        related = (Related("/nowhere/a.py", Span(0, 1), "gone"),)
        (entry,) = json.loads(show(source, "bad", format="json", related=related))
        assert entry["fix"] is None
        assert entry["filename"] == "<stdin>"
        assert entry["related"][0]["location"] is None

    @pytest.mark.parametrize("count", [0, 1, 3])
    def test_is_one_array(self, count):
        source = SourceFile.from_text("bad\n", "a.py")
        report = Report([finding(source, "bad")] * count, {"a.py": source}, colour=False)
        assert len(json.loads("".join(render(report, "json")))) == count
