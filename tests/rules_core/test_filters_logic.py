"""Reasoning about filters, compared with trying them on real objects of real classes."""

import itertools
import typing as t
from dataclasses import dataclass

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from identifiers import stable_repr
from nnx_rules import _filter_logic as logic
from nnx_rules._filter_logic import UNKNOWN, Leaf, Unreachable
from nnx_rules.filters import (
    All,
    Any,
    Everything,
    Expr,
    Not,
    Nothing,
    OfType,
    Opaque,
    PathContains,
    PathIn,
    WithTag,
    parse,
)


class Variable:
    tag: str | None = None


class Param(Variable): ...


class Special(Param): ...


class BatchStat(Variable): ...


PARAM, SPECIAL, STAT, TAG = map(parse, (Param, Special, BatchStat, "dropout"))


def has_bias(path: tuple[t.Any, ...], value: object) -> bool:
    return "bias" in path


def is_big(path: tuple[t.Any, ...], value: object) -> bool:
    return True


def exprs(*literals: t.Any) -> list[Expr]:
    return [parse(literal) for literal in literals]


# Decisions


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (Special, Param, True),
        (Param, Special, False),
        (Param, BatchStat, False),
        (Param, object, True),
        ("a", object, True),
        ("a", Not("b"), True),
        ("a", Not("a"), False),
        (Param, ..., True),
        (None, Param, True),
        ((), Param, True),
        (Param, All(), True),
        (Not(Param), Not(Special), True),
        (Not(Special), Not(Param), False),
        (Not(Not(Special)), (Param,), True),
        (All(Param, "a"), Param, True),
        (Param, All(Param, "a"), False),
        (has_bias, (Param, has_bias), True),
        (has_bias, is_big, False),
        (PathContains("kernel"), PathContains("kern", exact=False), True),
        (PathContains("kernel", exact=False), PathContains("kern", exact=False), True),
        (PathContains("kern", exact=False), PathContains("kernel", exact=False), False),
        (PathContains("kern", exact=False), PathContains("kern"), False),
        (PathContains(10), PathContains(0, exact=False), True),
        (PathContains("0"), PathContains(0), False),
        (PathContains("0", exact=False), PathContains(0, exact=False), True),
        (PathContains("a"), PathContains("", exact=False), True),
        (PathIn(("a", 0)), PathContains("a"), True),
        (PathIn(("a", 0), ("b",)), PathContains("a"), False),
        (PathIn(("a",)), PathIn(("a",), ("b",)), True),
        (PathIn(()), Not(PathContains("", exact=False)), True),
        (Not(PathContains("", exact=False)), PathIn(()), True),
        (PathIn(), Nothing(), True),
        (PathContains("a"), PathIn(("a",)), False),
    ],
    ids=stable_repr,
)
def test_implies(a: t.Any, b: t.Any, expected: bool) -> None:
    assert logic.implies(parse(a), parse(b)) is expected


def test_equivalent_ignores_form() -> None:
    assert logic.equivalent(parse((Param, "a")), parse(("a", Param, Special))) is True
    assert logic.equivalent(Not(Any(Param, "a")), All(Not(Param), Not("a"))) is True
    assert logic.equivalent(All(), Everything()) is True
    assert logic.equivalent(PARAM, SPECIAL) is False


def test_two_types_can_meet_in_a_class_that_a_user_defines() -> None:
    assert logic.disjoint(PARAM, STAT) is False
    assert logic.disjoint(WithTag("a"), WithTag("b")) is True
    assert logic.disjoint(PARAM, Not(Variable)) is True


def test_in_a_closed_universe_only_known_classes_count() -> None:
    class Both(Param, BatchStat): ...

    known = (Variable, Param, Special, BatchStat)
    assert logic.disjoint(PARAM, STAT, universe=known) is True
    assert logic.disjoint(PARAM, STAT, universe=(*known, Both)) is False
    assert logic.satisfiable(PARAM, universe=()) is False


def test_an_unknown_relation_is_never_the_ground_of_a_claim() -> None:
    def relation(a: object, b: object) -> bool | None:
        return True if a == b else None

    a, b = OfType("A"), OfType("B")
    assert logic.implies(a, b, relation) is not True
    assert logic.disjoint(a, b, relation, universe=("A", "B")) is not True
    assert logic.implies(a, a, relation) is True


def test_too_large_a_search_is_unknown_and_reports_nothing() -> None:
    kinds = [OfType(type(f"T{i}", (), {})) for i in range(20)]
    either = Any(*(All(kind, Not(kind)) for kind in kinds))
    assert logic.satisfiable(either) is None
    assert logic.implies(Everything(), Not(either)) is None
    assert logic.contradictory([either]) == []
    assert logic.unreachable([Everything(), either]) == []
    # A long list does not hide what two of its filters decide.
    assert logic.unreachable([*kinds, kinds[7]]) == [Unreachable(20, (7,), "duplicate")]


def test_a_users_own_expression_may_decide_by_anything() -> None:
    @dataclass(frozen=True, repr=False)
    class Never(OfType):
        def __call__(self, path: tuple[t.Any, ...], value: object) -> bool:
            return False

    assert logic.implies(PARAM, Never(Param)) is False
    assert logic.implies(Never(Param), PARAM) is False
    assert logic.implies(Never(Param), Any(Never(Param), "a")) is True
    assert logic.matches(Never(Param), Leaf((), Param)) is None


# Lists of filters


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ((Param, ...), None),
        ((..., Param), 0),
        ((Param, True, "a"), 1),
        ((Param, ..., ...), None),
        ((Param, True, ...), None),
        ((..., None), 0),
        ((Everything(), Param), None),
        (((...,), Param), None),
        ((1, Param), None),
        ((), None),
    ],
)
def test_check_order(filters: tuple[object, ...], expected: int | None) -> None:
    assert logic.check_order(filters) == expected


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ((Param, Special), [Unreachable(1, (0,), "subsumed")]),
        ((Special, Param), []),
        ((Param, BatchStat, "a", ...), []),
        ((Param, Param), [Unreachable(1, (0,), "duplicate")]),
        (((Param, "a"), ("a", Param)), [Unreachable(1, (0,), "duplicate")]),
        ((Variable, Param, Param), [Unreachable(1, (0,), "subsumed"), Unreachable(2, (1,), "duplicate")]),
        ((Everything(), Param), [Unreachable(1, (0,), "after-everything")]),
        ((Param, All(), "a"), [Unreachable(2, (1,), "after-everything")]),
        ((Param, ..., ...), []),
        ((None, Param, False, Nothing()), []),
        ((Param, All("a", "b")), []),
        ((Param, "a", (Special, "a")), [Unreachable(2, (0, 1), "subsumed")]),
        ((BatchStat, Param, "b", Not(Param), "a"), [Unreachable(4, (1, 3), "subsumed")]),
        ((Param, Not(Param), ...), [Unreachable(2, (0, 1), "subsumed")]),
        ((has_bias, has_bias), [Unreachable(1, (0,), "duplicate")]),
        ((has_bias, is_big), []),
        ((), []),
    ],
)
def test_unreachable(filters: tuple[t.Any, ...], expected: list[Unreachable]) -> None:
    assert logic.unreachable(exprs(*filters)) == expected


def test_unreachable_among_known_classes() -> None:
    filters = exprs(Special, BatchStat, All(Variable, Not(Special), Not(Param)))
    assert logic.unreachable(filters) == []
    assert logic.unreachable(filters, universe=(Special, Param, BatchStat)) == [Unreachable(2, (1,), "duplicate")]


def test_contradictory() -> None:
    filters = exprs(All("a", "b"), All(Special, Not(Param)), None, (), All(Param, BatchStat), Not(...), All())
    assert logic.contradictory(filters) == [0, 1, 3, 5]
    assert logic.contradictory(filters, universe=(Variable, Param, BatchStat)) == [0, 1, 3, 4, 5]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ((Param, Special), (1, 0)),
        ((Param, BatchStat, Special, ...), (2, 0, 1, 3)),
        ((Variable, Special, Param), (1, 2, 0)),
        ((Everything(), "a", Param), (1, 2, 0)),
        ((Param, None, Special), (2, 0, 1)),
        ((Special, Param), None),
        ((Param, Param), None),
        ((Param, Special, Param), None),
        ((Param, Not(Param), "a"), None),
    ],
)
def test_suggest_order(filters: tuple[t.Any, ...], expected: tuple[int, ...] | None) -> None:
    assert logic.suggest_order(exprs(*filters)) == expected


# Leaves


@pytest.mark.parametrize(
    ("literal", "leaf", "expected"),
    [
        (Param, Leaf(("a",), Special), True),
        (Special, Leaf(("a",), Param), False),
        (Param, Leaf(("a",), UNKNOWN), None),
        (object, Leaf(("a",), UNKNOWN), True),
        ("a", Leaf((), Param), False),
        ("a", Leaf((), Param, "a"), True),
        ("a", Leaf((), Param, UNKNOWN), None),
        (has_bias, Leaf(("bias",), Param), None),
        ((has_bias, Param), Leaf((), Param), True),
        (All(has_bias, BatchStat), Leaf((), Param), False),
        (Not(has_bias), Leaf((), Param), None),
        (PathContains("k"), Leaf(UNKNOWN, Param), None),
        (PathContains("k"), Leaf(("l", UNKNOWN, "k"), Param), True),
        (PathContains("k"), Leaf(("l", UNKNOWN), Param), None),
        (PathContains("k", exact=False), Leaf(("l", UNKNOWN), Param), None),
        (PathContains("", exact=False), Leaf((UNKNOWN,), Param), True),
        (PathIn(("l", 0)), Leaf(("l", UNKNOWN), Param), None),
        (PathIn(("l", 0)), Leaf(("m", UNKNOWN), Param), False),
        (PathIn(("l", 0)), Leaf(("l", UNKNOWN, "k"), Param), False),
        (PathIn(("l", 0)), Leaf(("l", 0), Param), True),
        (PathIn(("l", 0)), Leaf(UNKNOWN, Param), None),
        (PathIn(), Leaf(UNKNOWN, Param), False),
    ],
    ids=stable_repr,
)
def test_matches(literal: t.Any, leaf: Leaf, expected: bool | None) -> None:
    assert logic.matches(parse(literal), leaf) is expected


def test_partition_gives_each_leaf_to_the_first_filter() -> None:
    w, s, m, c = Leaf(("w",), Param), Leaf(("s",), Special), Leaf(("m",), BatchStat), Leaf(("c",), Variable)
    unsure = Leaf(("u",), UNKNOWN)
    result = logic.partition(exprs(Special, Param, BatchStat), [w, s, m, c, unsure])
    assert result.groups == ((s,), (w,), (m,))
    assert result.remainder == (c,)
    assert result.undecided == (unsure,)
    assert logic.uncovered(exprs(Special, Param, has_bias), [w, m]) == []
    assert logic.uncovered(exprs(Special), [w, s]) == [w]


@pytest.mark.parametrize(
    ("literal", "words"),
    [
        ((Param, "dropout"), "Param or anything tagged 'dropout'"),
        (..., "everything"),
        (None, "nothing"),
        ((), "nothing"),
        (PathIn(), "nothing"),
        (((Param,),), "Param"),
        (((Param, "a"), BatchStat), "Param or anything tagged 'a' or BatchStat"),
        (Not(Param), "anything but Param"),
        (Not((Param, "a")), "anything but (Param or anything tagged 'a')"),
        (All(Param, "a"), "Param that is tagged 'a'"),
        (All("a", Param), "anything that is tagged 'a' and is Param"),
        ((All(Param, "a"), "b"), "(Param that is tagged 'a') or anything tagged 'b'"),
        (All(Param, Not("a")), "Param that is not anything tagged 'a'"),
        (PathContains(0), "anything that has 0 in its path"),
        (PathContains("ker", exact=False), "anything that has 'ker' within a key of its path"),
        (PathIn(("a", 0), ("b",)), "anything that is at ('a', 0) or ('b',)"),
        (has_bias, "anything that satisfies has_bias"),
        (Not(Not("a")), "anything but anything but anything tagged 'a'"),
    ],
)
def test_describe(literal: t.Any, words: str) -> None:
    assert logic.describe(parse(literal)) == words


def test_describe_names_types_as_asked() -> None:
    assert logic.describe(parse((Param, All(Special, "a"))), lambda type_: f"nnx.{type_.__name__}") == (
        "nnx.Param or (nnx.Special that is tagged 'a')"
    )


# Agreement with brute force. Real classes, real objects, the runtime's own predicates.

TAGS = ("a", "b")
KEYS: tuple[str | int, ...] = ("k", "kern", 0, 10, "")


@st.composite
def lattices(draw: st.DrawFn) -> tuple[type, ...]:
    """Up to five classes, each with any of the earlier ones as bases."""
    classes: list[type] = []
    for i in range(draw(st.integers(1, 5))):
        bases = draw(st.lists(st.sampled_from(classes), unique=True, max_size=3)) if classes else []
        try:
            # Newest first, as Python's linearization wants it.
            ordered = tuple(sorted(bases, key=classes.index, reverse=True))
            classes.append(type(f"C{i}", ordered, {"tag": None}))
        except TypeError:
            assume(False)
    return tuple(classes)


def formulas(types: t.Sequence[type], max_leaves: int = 5) -> st.SearchStrategy[Expr]:
    atoms = st.one_of(
        st.sampled_from(types).map(OfType),
        st.sampled_from(TAGS).map(WithTag),
        st.builds(PathContains, st.sampled_from(KEYS), st.booleans()),
        st.lists(st.lists(st.sampled_from(KEYS), max_size=2).map(tuple), max_size=2).map(lambda paths: PathIn(*paths)),
        st.sampled_from([Everything(), Nothing(), Opaque(has_bias), Opaque(is_big)]),
    )
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda parts: Any(*parts)),
            st.lists(inner, max_size=3).map(lambda parts: All(*parts)),
            inner.map(Not),
        ),
        max_leaves=max_leaves,
    )


class Value:
    """A live value of any set of classes: what it is not by ``isinstance``, it is by its ``type`` attribute."""

    def __init__(self, type_: type, tag: str | None) -> None:
        self.type = type_
        self.tag = tag


def build(types: t.Iterable[type], tag: str | None) -> Value:
    """A value of a new class below exactly ``types`` and their bases."""
    lowest = [c for c in types if not any(d is not c and issubclass(d, c) for d in types)]
    try:
        return Value(type("Meet", tuple(lowest) or (object,), {}), tag)
    except TypeError:  # no linearization in this order: try the others
        for order in itertools.permutations(lowest):
            try:
                return Value(type("Meet", order, {}), tag)
            except TypeError:
                continue
    assume(False)
    raise AssertionError


def concrete(expr: Expr, opaque: frozenset[Opaque]) -> Expr:
    """``expr`` with its opaque callables replaced by the answers that a world gives them."""
    match expr:
        case Any(predicates=parts):
            return Any(*(concrete(part, opaque) for part in parts))
        case All(predicates=parts):
            return All(*(concrete(part, opaque) for part in parts))
        case Not(predicate=part):
            return Not(concrete(part, opaque))
        case Opaque():
            return Everything() if expr in opaque else Nothing()
        case _:
            return expr


paths = st.lists(st.sampled_from([*KEYS, "other", "kernel", 100, 7]), max_size=3).map(tuple)
both_answers = st.sets(st.sampled_from([Opaque(has_bias), Opaque(is_big)])).map(frozenset)


@given(st.data())
def test_implies_agrees_with_live_values(data: st.DataObject) -> None:
    types = data.draw(lattices())
    a, b = data.draw(formulas(types)), data.draw(formulas(types))
    verdict = logic.implies(a, b)
    assert verdict is not None
    if verdict:
        meet = data.draw(st.sets(st.sampled_from(types)))
        value, path = build(meet, data.draw(st.sampled_from([None, *TAGS, "other"]))), data.draw(paths)
        answers = data.draw(both_answers)
        assert not concrete(a, answers)(path, value) or concrete(b, answers)(path, value)
    else:
        found = logic.witness(All(a, Not(b)))
        assert found is not None
        value = build([type_ for type_, held in found.types.items() if held], found.tag)
        assert concrete(a, found.opaque)(found.path, value)
        assert not concrete(b, found.opaque)(found.path, value)


@given(st.data())
def test_the_decisions_are_one_another_s(data: st.DataObject) -> None:
    types = data.draw(lattices())
    a, b = data.draw(formulas(types)), data.draw(formulas(types))
    assert logic.implies(a, a) is True
    assert logic.equivalent(a, b) is (bool(logic.implies(a, b)) and bool(logic.implies(b, a)))
    assert logic.disjoint(a, b) is logic.implies(a, Not(b))
    assert logic.implies(a, b) is logic.implies(Not(b), Not(a))
    assert logic.satisfiable(a) is not logic.implies(a, Nothing())


@given(st.data())
def test_a_closed_universe_is_the_classes_tried_one_by_one(data: st.DataObject) -> None:
    types = data.draw(lattices())
    expr = data.draw(formulas(types).filter(lambda e: "Path" not in repr(e) and "<function" not in repr(e)))
    expected = any(expr((), Value(type_, tag)) for type_ in types for tag in (None, *TAGS))
    assert logic.satisfiable(expr, universe=types) is expected


@settings(max_examples=60)
@given(st.data())
def test_unreachable_agrees_with_live_values(data: st.DataObject) -> None:
    types = data.draw(lattices())
    filters = data.draw(st.lists(formulas(types, 3), max_size=4))
    findings = {finding.index: finding for finding in logic.unreachable(filters)}
    empty = set(logic.contradictory(filters))
    for index, expr in enumerate(filters):
        earlier = Any(*filters[:index])
        finding = findings.get(index)
        if finding is not None:
            assert index not in empty
            by = [filters[place] for place in finding.taken_by]
            assert logic.implies(expr, Any(*by)) is True
            for left_out in range(len(by)):
                assert logic.implies(expr, Any(*by[:left_out], *by[left_out + 1 :])) is False
        elif index not in empty and expr != Nothing() and not (expr == Everything() and expr in filters[:index]):
            found = logic.witness(All(expr, Not(earlier)))
            assert found is not None
            value = build([type_ for type_, held in found.types.items() if held], found.tag)
            assert concrete(expr, found.opaque)(found.path, value)
            assert not concrete(earlier, found.opaque)(found.path, value)
    order = logic.suggest_order(filters)
    if order is not None:
        assert sorted(order) == list(range(len(filters)))
        assert findings
        assert logic.unreachable([filters[index] for index in order]) == []


@given(st.data())
def test_partition_agrees_with_live_values(data: st.DataObject) -> None:
    types = data.draw(lattices())
    no_callables = formulas(types, 3).filter(lambda e: "<function" not in repr(e))
    filters = data.draw(st.lists(no_callables, max_size=4))
    leaves = data.draw(
        st.lists(
            st.builds(Leaf, paths, st.sampled_from(types), st.sampled_from([None, *TAGS])), max_size=8, unique=True
        )
    )
    result = logic.partition(filters, leaves)
    for leaf in leaves:
        value = Value(leaf.type, t.cast("str | None", leaf.tag))
        takers = [i for i, expr in enumerate(filters) if expr(t.cast("tuple[t.Any, ...]", leaf.path), value)]
        homes = [i for i, group in enumerate(result.groups) if leaf in group]
        assert homes == takers[:1]
        assert (leaf in result.remainder) is (takers == [])
    assert result.undecided == ()
    assert list(result.remainder) == logic.uncovered(filters, leaves)
    complete = logic.partition([*filters, Everything()], leaves)
    assert complete.remainder == ()
    assert sum(map(len, complete.groups)) == len(leaves)
