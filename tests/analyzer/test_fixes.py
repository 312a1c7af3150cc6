"""Fixes: applying edits, choosing which go together, and repeating until nothing is left."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stub_engine
from nnx_lint.checking import Checker
from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.fixes import SAFE, SAFE_AND_UNSAFE, apply, compatible, edited, fix_all, unified_diff
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile

TEXT = "first line\nsecond é line\nthird\n"
SOURCE = SourceFile.from_text(TEXT, "a.py")


def edit(start, end, text):
    return Edit(Span(start, end), text)


def fix(*edits, title="t"):
    return Fix(title, tuple(edit(*parts) for parts in edits))


@st.composite
def fixes(draw):
    places = sorted(draw(st.lists(st.integers(0, len(TEXT)), min_size=2, max_size=6)))
    pairs = list(itertools.pairwise(places))[::2]
    return fix(*((start, end, draw(st.sampled_from(["", "x", "ü\n"]))) for start, end in pairs))


class TestEdited:
    def test_replaces_inserts_and_deletes(self):
        assert edited(SOURCE, [edit(7, 13, "X"), edit(0, 0, "> "), edit(6, 6, "s")]) == f"> first slX{TEXT[13:]}"

    def test_insertions_at_one_place_keep_their_order(self):
        assert edited(SOURCE, [edit(2, 2, "1"), edit(2, 2, "2")]).startswith("fi12rst")

    @pytest.mark.parametrize(
        "edits", [[edit(0, 3, ""), edit(2, 4, "")], [edit(0, 999, "")], [edit(0, 3, ""), edit(1, 1, "x")]]
    )
    def test_overlaps_and_places_outside_are_refused(self, edits):
        with pytest.raises(ValueError, match="overlap or lie outside of the text at offset"):
            edited(SOURCE, edits)

    def test_new_lines_end_as_the_file_does(self):
        source = SourceFile.from_text("a\r\nb\r\n")
        assert edited(source, [edit(3, 3, "x\ny\r\n")]) == "a\r\nx\r\ny\r\nb\r\n"

    def test_a_fix_cannot_be_built_from_edits_that_overlap(self):
        with pytest.raises(ValueError, match="edits of the fix 't' overlap at offset 2"):
            fix((2, 4, ""), (0, 3, ""))


class TestTogether:
    @given(st.lists(fixes(), max_size=5), st.randoms(use_true_random=False))
    def test_the_order_of_the_fixes_does_not_matter(self, some, random):
        shuffled = list(some)
        random.shuffle(shuffled)
        assert apply(SOURCE, some) == apply(SOURCE, shuffled)

    @given(st.lists(fixes(), max_size=5))
    def test_what_goes_together_can_be_applied_one_by_one_from_the_end(self, some):
        text, chosen = apply(SOURCE, some)
        edits = sorted(dict.fromkeys(edit for fix in chosen for edit in fix.edits), key=lambda edit: edit.span)
        by_hand = TEXT
        for one in reversed(edits):
            by_hand = by_hand[: one.span.start] + one.text + by_hand[one.span.end :]
        assert text == by_hand

    @given(st.lists(fixes(), min_size=1, max_size=5))
    def test_at_least_one_fix_is_applied(self, some):
        assert compatible(SOURCE, some)

    @given(st.lists(fixes(), max_size=5))
    def test_no_two_fixes_touch_each_others_text(self, some):
        chosen = compatible(SOURCE, some)
        for one, other in itertools.combinations(chosen, 2):
            for first, second in itertools.product(one.edits, other.edits):
                assert first == second or first.span.end <= second.span.start or second.span.end <= first.span.start

    def test_a_fix_is_applied_whole_or_not_at_all(self):
        first, second = fix((0, 3, "X"), (11, 12, "Y")), fix((1, 2, "Z"), (20, 21, "Z"))
        text, chosen = apply(SOURCE, [second, first])
        assert chosen == [first]
        assert "Z" not in text

    def test_two_wraps_that_end_at_one_place_wait_for_each_other(self):
        outer, inner = fix((0, 0, "a("), (5, 5, ")")), fix((2, 2, "b("), (5, 5, ")"))
        assert compatible(SOURCE, [inner, outer]) == [outer]

    def test_an_insertion_at_the_edge_of_a_replacement_waits(self):
        assert len(compatible(SOURCE, [fix((0, 5, "x")), fix((5, 5, "y"))])) == 1
        assert len(compatible(SOURCE, [fix((0, 5, "x")), fix((5, 6, "y"))])) == 2

    def test_an_import_that_two_fixes_need_is_added_once(self):
        line = (0, 0, "from flax import nnx\n")
        text, chosen = apply(SOURCE, [fix(line, (2, 3, "X")), fix(line, (6, 7, "Y"))])
        assert len(chosen) == 2
        assert text == "from flax import nnx\nfiXst Yine\n" + TEXT[11:]

    def test_the_same_fix_of_two_findings_is_applied_once(self):
        same = fix((0, 0, "data("), (5, 5, ")"))
        assert apply(SOURCE, [same, same])[0].startswith("data(first) line")


def run(text, allowed=SAFE):
    """Fix some text with the stub engine."""
    sources = {"a.py": SourceFile.from_text(text, "a.py")}
    checker = Checker(Options.everywhere(selected=lambda rule: rule.default), ())
    outcome = fix_all(sources, checker.check, allowed)
    return outcome.sources["a.py"].text, outcome


@pytest.fixture(autouse=True)
def _stub(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "nnx_lint.engine", stub_engine)


class TestRepeating:
    def test_fixes_until_nothing_is_left(self):
        text, outcome = run("CHAIN + BAD\n")
        assert text == "GOOD + GOOD\n"
        assert outcome.remaining == []
        assert len(outcome.fixed["a.py"]) == 3

    @given(
        st.lists(st.sampled_from(["BAD", "CHAIN", "RISKY", "HAND", "PLAIN", "fine", "'é'"]), min_size=1).map(" + ".join)
    )
    def test_a_second_run_changes_nothing(self, text):
        once, _ = run(text, SAFE_AND_UNSAFE)
        twice, outcome = run(once, SAFE_AND_UNSAFE)
        assert once == twice
        assert not outcome.fixed

    def test_unsafe_fixes_are_asked_for_and_others_never_applied(self):
        assert run("RISKY + HAND")[0] == "RISKY + HAND"
        assert run("RISKY + HAND", SAFE_AND_UNSAFE)[0] == "FINE + HAND"

    def test_suppressed_findings_are_not_fixed(self):
        assert run("BAD  # noqa\nBAD")[0] == "BAD  # noqa\nGOOD"

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            (
                "BAD\nBREAK",
                "a.py: internal error: the fixes for NNX101 do not parse ('(' was never closed); the file was left",
            ),
            ("CHAIN\nSAME", "a.py: internal error: a fix changes nothing; the file was left"),
        ],
    )
    def test_a_file_that_a_fix_breaks_is_left_as_it_was(self, text, problem):
        after, outcome = run(text)
        assert after == text
        assert not outcome.fixed
        assert len(outcome.remaining) == 2
        (line,) = outcome.problems
        assert line.startswith(problem)

    def test_rules_that_undo_each_other_come_to_an_end(self):
        _, outcome = run("SWING")
        assert outcome.problems == ["internal error: fixes did not settle after 30 passes"]


def test_a_diff_can_be_applied_by_patch():
    before = SourceFile.from_text("a\nb\r\nBAD", "a.py")
    expected = "--- a.py\n+++ a.py\n@@ -1,3 +1,3 @@\n a\n b\r\n-BAD\n\\ No newline at end of file\n+GOOD\n"
    assert unified_diff(before, before.with_text("a\nb\r\nGOOD\n")) == expected
    assert unified_diff(before, before) == ""


def test_a_diff_of_a_notebook_names_its_cells():
    cells = [{"cell_type": "code", "source": text} for text in ("a\n", "%time b\nBAD", "", "BAD\nc")]
    document = {"nbformat": 4, "cells": [{"cell_type": "markdown", "source": "BAD"}, *cells]}
    before = SourceFile.from_bytes(json.dumps(document).encode(), "n.ipynb")
    assert unified_diff(before, before.with_text(before.text.replace("BAD", "GOOD"))) == (
        "--- n.ipynb:cell 3\n+++ n.ipynb:cell 3\n@@ -1,2 +1,2 @@\n %time b\n-BAD\n+GOOD\n"
        "--- n.ipynb:cell 5\n+++ n.ipynb:cell 5\n@@ -1,2 +1,2 @@\n-BAD\n+GOOD\n c\n"
    )


def test_display_fixes_are_in_no_set_that_is_applied():
    assert Applicability.DISPLAY not in SAFE_AND_UNSAFE
