"""Selectors: which rules --select, --ignore and the defaults leave."""

import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_lint.selection import (
    FileOptions,
    Layer,
    Options,
    SelectionError,
    check_selectors,
    matches,
    nearest,
    severities,
)
from nnx_rules.registry import Rule, Severity


def make(code, name, *, default=True, aliases=()):
    return Rule(code=code, name=name, summary="", message="", default=default, aliases=aliases)


FIRST = make("NNX101", "first-rule", aliases=("old-first",))
SECOND = make("NNX102", "second-rule", default=False)
OTHER = make("NNX201", "other-rule")
RULES = (FIRST, SECOND, OTHER)


def codes(*layers):
    """The codes of the rules that are on after these layers."""
    return sorted(severities(layers, RULES))


SELECTORS = st.sampled_from(
    ["ALL", "NNX", "NNX1", "NNX10", "NNX2", "NNX101", "NNX102", "first-rule", "other-rule", "old-first"]
)


@pytest.mark.parametrize(
    ("select", "ignore", "expected"),
    [
        (None, [], ["NNX101", "NNX201"]),
        ([], [], []),
        (["ALL"], [], ["NNX101", "NNX102", "NNX201"]),
        (["NNX1"], [], ["NNX101", "NNX102"]),
        (["NNX10", "NNX201"], [], ["NNX101", "NNX102", "NNX201"]),
        (["second-rule"], [], ["NNX102"]),
        (["old-first"], [], ["NNX101"]),
        (None, ["NNX101"], ["NNX201"]),
        (None, ["ALL"], []),
        (["ALL"], ["NNX1"], ["NNX201"]),
        (["NNX101"], ["NNX1"], ["NNX101"]),
        (["first-rule"], ["NNX10"], ["NNX101"]),
        (["NNX1"], ["NNX101"], ["NNX102"]),
        (["NNX101"], ["first-rule"], []),
        (["ALL"], ["ALL"], []),
    ],
)
def test_the_more_specific_selector_wins_and_ignore_wins_a_draw(select, ignore, expected):
    assert codes(Layer(select, ignore=ignore)) == expected


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
def test_an_unknown_selector_is_refused_with_a_suggestion(selector, hint):
    with pytest.raises(SelectionError, match=f"^no rule matches {re.escape(repr(selector))}; {re.escape(hint)}$"):
        check_selectors(["ALL", selector], RULES)


LAYERS = st.builds(
    Layer,
    st.none() | st.lists(SELECTORS),
    st.lists(SELECTORS),
    st.lists(SELECTORS),
    st.dictionaries(SELECTORS, st.sampled_from(["error", "warning", "info", "off"])),
)


@given(st.lists(LAYERS, max_size=3))
def test_the_order_of_selectors_does_not_matter(layers):
    turned = [
        Layer(
            None if layer.select is None else layer.select[::-1],
            layer.extend_select[::-1],
            layer.ignore[::-1],
        )
        for layer in layers
    ]
    assert codes(*turned) == codes(*(layer._replace(levels={}) for layer in layers))


@given(st.lists(SELECTORS, min_size=1), st.lists(SELECTORS))
def test_what_is_selected_was_asked_for(select, ignore):
    on = codes(Layer(select, ignore=ignore))
    for rule in RULES:
        if rule.code in on:
            assert any(matches(selector, rule) for selector in select)
            assert not any(selector in (rule.code, rule.name, *rule.aliases) for selector in ignore)


@given(st.lists(LAYERS), st.lists(SELECTORS, min_size=1), st.lists(SELECTORS))
def test_a_layer_that_selects_starts_afresh(earlier, select, ignore):
    last = Layer(select, ignore=ignore)
    assert codes(*earlier, last) == codes(last)


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ([Layer(extend_select=["NNX102"])], ["NNX101", "NNX102", "NNX201"]),
        ([Layer(["NNX1"], ignore=["NNX101"]), Layer(extend_select=["NNX1"])], ["NNX101", "NNX102"]),
        ([Layer(extend_select=["NNX102"]), Layer(ignore=["NNX1"])], ["NNX201"]),
        ([Layer(ignore=["NNX101"]), Layer(["NNX1"])], ["NNX101", "NNX102"]),
        ([Layer(levels={"NNX1": "off"})], ["NNX201"]),
        ([Layer(levels={"NNX1": "off", "NNX102": "info"})], ["NNX102", "NNX201"]),
        ([Layer(levels={"NNX102": "info"}, ignore=["second-rule"])], ["NNX101", "NNX201"]),
        ([Layer(levels={"NNX101": "off"}), Layer(["NNX101"])], ["NNX101"]),
        ([Layer(["NNX2"], levels={"NNX101": "warning"})], ["NNX101", "NNX201"]),
    ],
)
def test_a_later_layer_wins(layers, expected):
    assert codes(*layers) == expected


def test_the_most_specific_level_of_the_last_layer_that_gives_one_counts():
    layers = [
        Layer(levels={"ALL": "info", "NNX1": "warning", "NNX102": "error"}),
        Layer(levels={"NNX2": "warning"}),
        Layer(["ALL"]),
    ]
    assert severities(layers, RULES) == {
        "NNX101": Severity.WARNING,
        "NNX102": Severity.ERROR,
        "NNX201": Severity.WARNING,
    }
    assert severities([], RULES)["NNX101"] is FIRST.severity


class TestOptions:
    ONE = FileOptions({"NNX101": Severity.INFO}, "flax", (0, 12))
    OTHER = FileOptions({})

    def test_each_file_has_its_own(self):
        options = Options(self.OTHER, {"a.py": self.ONE})
        assert options.for_path("a.py").selected(FIRST)
        assert options.for_path("a.py").severity(FIRST) is Severity.INFO
        assert not options.for_path("a.py").selected(SECOND)
        assert not options.for_path("b.py").selected(FIRST)

    def test_they_travel_to_other_processes(self):
        options = Options(self.OTHER, {"a.py": self.ONE})
        copied = pickle.loads(pickle.dumps(options))
        assert copied.digest() == options.digest()
        assert copied.for_path("a.py").selected(FIRST)
        assert copied.for_path("a.py").version == (0, 12)

    @pytest.mark.parametrize(
        "changed",
        [
            FileOptions({"NNX101": Severity.ERROR}, "flax", (0, 12)),
            FileOptions({"NNX102": Severity.INFO}, "flax", (0, 12)),
            FileOptions({"NNX101": Severity.INFO}, "nnxkit", (0, 12)),
            FileOptions({"NNX101": Severity.INFO}, "flax", (0, 11)),
        ],
    )
    def test_the_digest_tells_what_differs(self, changed):
        assert changed.digest() != self.ONE.digest()
        assert Options(changed, {}).digest() != Options(self.ONE, {}).digest()
        assert Options(self.OTHER, {"a.py": changed}).digest() != Options(self.OTHER, {"a.py": self.ONE}).digest()
        assert Options(self.OTHER, {"a.py": self.ONE}).digest() != Options(self.OTHER, {"b.py": self.ONE}).digest()

    def test_the_digest_does_not_depend_on_the_order(self):
        two = {"NNX101": Severity.INFO, "NNX102": Severity.ERROR}
        turned = dict(reversed(two.items()))
        assert FileOptions(two).digest() == FileOptions(turned).digest()
        files = {"a.py": self.ONE, "b.py": self.OTHER}
        assert Options(self.ONE, files).digest() == Options(self.ONE, dict(reversed(files.items()))).digest()

    def test_the_same_everywhere(self):
        options = Options.everywhere(lambda rule: rule.code == "NNX101", "nnxkit", (1,))
        found = options.for_path("any.py")
        assert set(found.severities) == {"NNX101"}
        assert (found.library, found.version) == ("nnxkit", (1,))


def test_nearest_ignores_case_and_knows_when_nothing_is_near():
    assert nearest("FIRST_RULE", ["first-rule", "other"]) == "first-rule"
    assert nearest("zzz", ["first-rule", "other"]) is None
