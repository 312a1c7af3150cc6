"""What is parsed of a text that was made of another one is what a parse of the whole text gives."""

from __future__ import annotations

import ast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nnx_lint.diagnostics import Span
from nnx_lint.source import SourceFile
from nnx_lint.syntax.edits import Change
from nnx_lint.syntax.trees import Blank

TEXT = '''\
"""A model."""
import jax; import jax.numpy as jnp
from flax import nnx

WIDTH = 8  # how wide


class Block(nnx.Module):
    """A block."""

    def __init__(self, width, *, rngs):
        self.linear = nnx.Linear(  # with a bias
            width,
            width,
            rngs=rngs,
        )
        self.names = ("a", f"{width}", "c")

    def __call__(self, x):
        if x is None:
            return None
        else:
            return x + self.linear(x)

# between


@nnx.jit
@other
def step(model, x):
    try:
        return model(x)
    finally:
        pass

if WIDTH > 4:
    step(Block(WIDTH, rngs=nnx.Rngs(0)), jnp.ones((1, WIDTH)))
text = """
class NoClass:
    pass
"""
'''

PIECES = [
    *"()[]\"'#@:=,\\ \n\tx1é",
    '"""',
    "\n    ",
    "\n        ",
    "else:\n",
    "class A:\n",
    "\ndef f(",
    "x = 1\n",
    "return",
    "# text\n",
    "\r\n",
    "<<<<<<< ours\n",
    "match x:\n",
    "\0",
]

edits = st.tuples(st.integers(0, len(TEXT)), st.integers(0, 3) | st.integers(0, 200), st.sampled_from(["", *PIECES]))


def source(text: str) -> SourceFile:
    return SourceFile.from_text(text, "net.py")


def everything(file: SourceFile) -> tuple[object, ...]:
    blanks = [node for node in ast.walk(file.tree) if isinstance(node, Blank)]
    inside = [(node.lineno, node.returns, node.method, [each.id for each in node.targets]) for node in blanks]
    return ast.dump(file.tree, include_attributes=True), inside, file.errors, file.notes, file.parsed.lines


@settings(max_examples=150)
@example([[(0, 0, "\0"), (34, 0, "\0")], [(0, 0, "(")]])
@given(st.lists(st.lists(edits, min_size=1, max_size=2), min_size=1, max_size=4))
def test_every_text_has_the_syntax_that_it_has_alone(steps: list[list[tuple[int, int, str]]]) -> None:
    file = source(TEXT)
    everything(file)
    for step in steps:
        text = file.text
        for place, deleted, inserted in step:
            text = text[:place] + inserted + text[place + deleted :]
        after = source(text)
        after.follow(file)
        assert everything(after) == everything(source(text))
        file = after


@pytest.mark.parametrize("typed", ["x = (1", "x = [1, 2]", "    y = 1", "# text", '"""', "if x:", "@jax.jit"])
def test_what_is_typed_letter_by_letter(typed: str) -> None:
    place = TEXT.index("\n\n    def __call__")
    file = source(TEXT)
    for length in [*range(1, len(typed) + 1), 0]:
        text = f"{TEXT[:place]}\n        {typed[:length]}{TEXT[place:]}"
        after = source(text)
        after.follow(file)
        assert everything(after) == everything(source(text))
        file = after


def test_statements_that_did_not_change_keep_their_nodes() -> None:
    before = source(TEXT)
    nodes = list(before.tree.body)
    after = source(TEXT.replace("return None\n", "return None  # or not\n\n").replace("WIDTH = 8", "WIDTH = 9"))
    between = source(TEXT.replace("WIDTH = 8", "WIDTH = 9"))
    between.follow(before)
    assert [new is old for new, old in zip(between.tree.body, nodes, strict=True)].count(False) == 1
    after.follow(between)
    assert [new is old for new, old in zip(after.tree.body, nodes, strict=True)].count(False) == 1
    assert after.followed is not None


def test_a_broken_statement_leaves_the_others_alone() -> None:
    before = source(TEXT)
    nodes = list(before.tree.body)
    after = source(TEXT.replace("width, *, rngs):", "width, *, rngs:"))
    after.follow(before)
    assert after.errors
    assert [new is old for new, old in zip(after.tree.body, nodes, strict=True)].count(False) == 1


def test_the_text_before_is_parsed_anew_if_somebody_asks() -> None:
    before = source(TEXT)
    known = everything(before)
    after = source("\n" + TEXT)
    after.follow(before)
    assert everything(after) != known
    assert everything(before) == known
    assert before.tree.body[0] is not after.tree.body[0]


def test_a_text_may_come_back() -> None:
    before, after = source(TEXT), source("\n" + TEXT)
    known = everything(before)
    after.follow(before)
    before.follow(after)
    assert everything(before) == known


@given(st.text("ab\n", max_size=8), st.text("ab\n", max_size=8))
def test_a_change_makes_one_text_of_the_other(before: str, after: str) -> None:
    change = Change.between(before, after)
    middle = after[change.start : change.end + change.by]
    assert before[: change.start] + middle + before[change.end :] == after


def test_places_move_with_the_change() -> None:
    change = Change.between("one two three", "one and two three")
    assert change.moved(Span(0, 3)) == Span(0, 3)
    assert change.moved(Span(4, 7)) == Span(8, 11)
    assert change.moved(Span(0, 13)) == Span(0, 17)


@given(st.integers(0, 9), st.integers(1, 9), st.data())
def test_changes_of_somebody_who_types_are_one(start: int, length: int, data: st.DataObject) -> None:
    before = "." * 12
    first = Change(before, start, start, length)
    begin = data.draw(st.integers(start, start + length))
    end = data.draw(st.integers(begin, start + length))
    second = Change("", begin, end, data.draw(st.integers(begin - end, 5)))
    both = first.then(second)
    assert both is not None
    for low in range(len(before)):
        for high in range(low + 1, len(before)):
            assert both.moved(Span(low, high)) == second.moved(first.moved(Span(low, high)))


def test_changes_of_other_places_stay_apart() -> None:
    typed = Change("one two", 3, 3, 4)
    assert typed.then(Change("", 8, 8, 1)) is None
    assert typed.then(Change("", 2, 4, 1)) is None
    assert Change("one two", 3, 4, 4).then(typed) is None


NAMES = """\
class A:
    def __init__(self, rngs):
        self.a = f({typed}
        self.b = 1

    def g(self, rn):
        return self.b
"""


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("x", "xy", True),  # names that stand nowhere else
        ("x, 1", "x, 2", True),
        ("'a", "'ab", True),
        ("r", "rn", False),  # the name of something else
        ("self.x", "self.xy", False),
        ("x", "x\n        y", False),
        ("x", "yield x", False),
    ],
)
def test_what_is_broken_as_it_was_keeps_its_nodes(before: str, after: str, kept: bool) -> None:
    file, new = source(NAMES.replace("{typed}", before)), source(NAMES.replace("{typed}", after))
    node = file.tree.body[0]
    assert file.errors
    new.follow(file)
    assert (new.tree.body[0] is node) == kept
    assert everything(new) == everything(source(new.text))
