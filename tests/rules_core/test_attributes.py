"""The status decision procedure against its table, and its algebra over all facts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_rules.attributes import (
    DATA_KINDS,
    Declaration,
    Kind,
    Status,
    Tag,
    ValueFacts,
    decide,
    declare,
    infer,
    is_checked,
    recheck,
)
from nnx_rules.rules import attributes as rules

PLAIN = ValueFacts(Kind.OTHER)
ARRAY = ValueFacts(Kind.ARRAY)
EMPTY = ValueFacts(Kind.CONTAINER, holds_data=False)
FULL = ValueFacts(Kind.CONTAINER, holds_data=True)
UNSURE = ValueFacts(Kind.CONTAINER, holds_data=None)
MARKED_DATA = ValueFacts(Kind.OTHER, Tag.DATA)
MARKED_STATIC = ValueFacts(Kind.OTHER, Tag.STATIC)
ARRAY_MARKED_STATIC = ValueFacts(Kind.ARRAY, Tag.STATIC)
FULL_MARKED_STATIC = ValueFacts(Kind.CONTAINER, Tag.STATIC, holds_data=True)
FULL_MARKED_DATA = ValueFacts(Kind.CONTAINER, Tag.DATA, holds_data=True)


@pytest.mark.parametrize("kind", sorted(DATA_KINDS, key=lambda kind: kind.name))
def test_data_is_data_at_first_assignment(kind):
    assert infer(ValueFacts(kind)) == decide(None, ValueFacts(kind))
    assert decide(None, ValueFacts(kind)).status is Status.DATA


@pytest.mark.parametrize(
    ("current", "facts", "status", "broken"),
    [
        # first assignment
        (None, PLAIN, Status.STATIC, None),
        (None, EMPTY, Status.STATIC, None),
        (None, FULL, Status.STATIC, rules.DATA_IN_STATIC_ATTRIBUTE),
        (None, UNSURE, Status.UNKNOWN, None),
        (None, MARKED_DATA, Status.DATA, None),
        (None, FULL_MARKED_DATA, Status.DATA, None),
        (None, MARKED_STATIC, Status.STATIC, None),
        (None, ARRAY_MARKED_STATIC, Status.STATIC, rules.DATA_MARKED_STATIC),
        (None, FULL_MARKED_STATIC, Status.STATIC, rules.DATA_MARKED_STATIC),
        # a static attribute
        (Status.STATIC, PLAIN, Status.STATIC, None),
        (Status.STATIC, ARRAY, Status.STATIC, rules.DATA_TO_STATIC_ATTRIBUTE),
        (Status.STATIC, FULL, Status.STATIC, rules.DATA_IN_STATIC_ATTRIBUTE),
        (Status.STATIC, MARKED_DATA, Status.DATA, None),
        (Status.STATIC, MARKED_STATIC, Status.STATIC, None),
        (Status.STATIC, ARRAY_MARKED_STATIC, Status.STATIC, rules.DATA_MARKED_STATIC),
        # a data attribute
        (Status.DATA, PLAIN, Status.DATA, None),
        (Status.DATA, ARRAY, Status.DATA, None),
        (Status.DATA, FULL, Status.DATA, None),
        (Status.DATA, MARKED_DATA, Status.DATA, None),
        (Status.DATA, MARKED_STATIC, Status.STATIC, None),
        (Status.DATA, ARRAY_MARKED_STATIC, Status.STATIC, rules.DATA_MARKED_STATIC),
        # an attribute of which nothing is known
        (Status.UNKNOWN, ARRAY, Status.UNKNOWN, None),
        (Status.UNKNOWN, MARKED_DATA, Status.DATA, None),
    ],
)
def test_status_table(current, facts, status, broken):
    verdict = decide(current, facts)
    assert (verdict.status, verdict.broken) == (status, broken)


@pytest.mark.parametrize("tag", [None, Tag.DATA, Tag.STATIC])
def test_marks_inside_a_value_break_the_rule_of_nesting(tag):
    facts = ValueFacts(Kind.CONTAINER, tag, holds_data=True, inner_tags=frozenset({Tag.DATA}))
    assert decide(None, facts).broken is rules.NESTED_STATUS_ANNOTATION


facts = st.builds(
    ValueFacts,
    st.sampled_from(Kind),
    st.sampled_from([None, *Tag]),
    st.sampled_from([True, False, None]),
    st.frozensets(st.sampled_from(Tag)),
)
statuses = st.sampled_from([None, *Status])


@given(statuses, facts)
def test_unchecked_classes_never_break_a_rule(current, value):
    assert decide(current, value, checked=False).broken is None


@given(statuses, facts)
def test_an_explicit_mark_decides_the_status(current, value):
    if value.tag is not None:
        assert decide(current, value).status is value.tag.status


@given(statuses, facts)
def test_what_is_unknown_breaks_no_rule_by_its_contents(current, value):
    if value.is_data is None and not value.inner_tags:
        assert decide(current, value).broken is None
        assert recheck(Status.STATIC, value) is None


@given(statuses, facts)
def test_assigning_the_same_value_twice_changes_nothing(current, value):
    first = decide(current, value)
    if first.broken is None:
        assert decide(first.status, value) == first


@given(facts)
def test_a_static_attribute_without_violation_holds_no_data(value):
    verdict = decide(None, value)
    if verdict.status is Status.STATIC and verdict.broken is None:
        assert value.is_data is not True
        assert recheck(verdict.status, value) is None


def test_a_container_filled_later_is_found_by_the_second_look():
    assert recheck(Status.STATIC, FULL) is rules.STATIC_CONTAINER_FILLED
    assert recheck(Status.STATIC, FULL, checked=False) is None
    assert recheck(Status.DATA, FULL) is None


def test_declarations_repeat_but_do_not_contradict():
    data, static = Declaration("x", Status.DATA, "annotation"), Declaration("x", Status.STATIC, "field")
    assert declare([{"x": Status.STATIC}], [static]).conflicts == ()
    conflicts = declare([{"x": Status.DATA}], [static]).conflicts
    assert conflicts == (("x", Status.DATA, static),)
    assert declare([], [data, static]).conflicts == (("x", Status.DATA, static),)


def test_an_annotation_takes_the_place_of_what_a_base_says():
    declared = declare([{"x": Status.DATA}], [Declaration("x", Status.STATIC, "annotation")])
    assert (declared.statuses, declared.conflicts) == ({"x": Status.STATIC}, ())


def test_the_nearest_base_declares():
    near, far = {"x": Status.DATA}, {"x": Status.STATIC, "y": Status.STATIC}
    assert declare([near, far], []).statuses == {"x": Status.DATA, "y": Status.STATIC}


@pytest.mark.parametrize(("keyword", "default"), list(itertools.product([None, True, False], [True, False])))
def test_the_class_keyword_wins_over_the_family(keyword, default):
    assert is_checked(keyword, default=default) is (default if keyword is None else keyword)
