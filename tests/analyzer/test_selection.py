"""Selectors: which rules --select, --ignore and the defaults leave."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_lint.selection import SelectionError, matches, nearest, selected_rules
from nnx_rules.registry import Rule


def make(code, name, *, default=True, aliases=()):
    return Rule(code=code, name=name, summary="", message="", default=default, aliases=aliases)


FIRST = make("NNX101", "first-rule", aliases=("old-first",))
SECOND = make("NNX102", "second-rule", default=False)
OTHER = make("NNX201", "other-rule")
RULES = (FIRST, SECOND, OTHER)
SELECTORS = st.sampled_from(
    ["ALL", "NNX", "NNX1", "NNX10", "NNX2", "NNX101", "NNX102", "first-rule", "other-rule", "old-first"]
)


@pytest.mark.parametrize(
    ("select", "ignore", "codes"),
    [
        ([], [], ["NNX101", "NNX201"]),
        (["ALL"], [], ["NNX101", "NNX102", "NNX201"]),
        (["NNX1"], [], ["NNX101", "NNX102"]),
        (["NNX10", "NNX201"], [], ["NNX101", "NNX102", "NNX201"]),
        (["second-rule"], [], ["NNX102"]),
        (["old-first"], [], ["NNX101"]),
        ([], ["NNX101"], ["NNX201"]),
        ([], ["ALL"], []),
        (["ALL"], ["NNX1"], ["NNX201"]),
        (["NNX101"], ["NNX1"], ["NNX101"]),
        (["first-rule"], ["NNX10"], ["NNX101"]),
        (["NNX1"], ["NNX101"], ["NNX102"]),
        (["NNX101"], ["first-rule"], []),
        (["ALL"], ["ALL"], []),
    ],
)
def test_the_more_specific_selector_wins_and_ignore_wins_a_draw(select, ignore, codes):
    assert sorted(selected_rules(select, ignore, RULES)) == codes


@pytest.mark.parametrize(
    ("selector", "hint"),
    [
        ("NNX111", "did you mean 'NNX101'?"),
        ("nnx101", "did you mean 'NNX101'?"),
        ("frist-rule", "did you mean 'first-rule'?"),
        ("all", "did you mean 'ALL'?"),
        ("nnx1", "did you mean 'NNX1'?"),
        ("E501", "see `nnx-lint rules`"),
        ("", "see `nnx-lint rules`"),
    ],
)
@pytest.mark.parametrize("option", ["select", "ignore"])
def test_an_unknown_selector_is_refused_with_a_suggestion(option, selector, hint):
    select, ignore = ([selector], []) if option == "select" else ([], [selector])
    with pytest.raises(SelectionError, match=f"^no rule matches {re.escape(repr(selector))}; {re.escape(hint)}$"):
        selected_rules(select, ignore, RULES)


@given(st.lists(SELECTORS), st.lists(SELECTORS))
def test_the_order_of_selectors_does_not_matter(select, ignore):
    assert selected_rules(select, ignore, RULES) == selected_rules(select[::-1], ignore[::-1], RULES)


@given(st.lists(SELECTORS, min_size=1), st.lists(SELECTORS))
def test_what_is_selected_was_asked_for(select, ignore):
    codes = selected_rules(select, ignore, RULES)
    for rule in RULES:
        if rule.code in codes:
            assert any(matches(selector, rule) for selector in select)
            assert not any(selector in (rule.code, rule.name, *rule.aliases) for selector in ignore)


def test_nearest_ignores_case_and_knows_when_nothing_is_near():
    assert nearest("FIRST_RULE", ["first-rule", "other"]) == "first-rule"
    assert nearest("zzz", ["first-rule", "other"]) is None
