"""The registry: codes, names, templates, versions, and the errors that rules make."""

from __future__ import annotations

import pickle
import re
import string

import pytest

from nnx_rules.errors import AttributeStatusError, NNXError, RngStreamKeyError, format_path
from nnx_rules.registry import Family, Registry, Rule, Versions, find
from nnx_rules.rules import REGISTRY
from nnx_rules.rules import attributes as rules

ALL = list(REGISTRY)


def example_error() -> NNXError:
    return rules.DATA_IN_STATIC_ATTRIBUTE.error(
        cls="Net", path=("layers",), value="a list of Linear", first_assigned=("net.py", 3)
    )


def test_codes_and_names_are_well_formed_and_sorted():
    assert [rule.code for rule in ALL] == sorted(rule.code for rule in ALL)
    for rule in ALL:
        assert re.fullmatch(r"NNX[0-9]\d\d", rule.code), rule.code
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name), rule.name
        assert rule.family in Family
        assert rule.summary.endswith("."), rule.code


def test_names_name_the_mistake_not_the_mend():
    for rule in ALL:
        assert not re.match(r"(no|use|avoid|disallow|prefer|require)-", rule.name), rule.name


def test_templates_use_plain_slots():
    for rule in ALL:
        for template in (rule.message, rule.help):
            for _, slot, spec, conversion in string.Formatter().parse(template):
                assert slot is None or (slot.isidentifier() and not spec and not conversion), (rule.code, slot)
        assert "\n" not in rule.message, rule.code


def test_a_code_or_name_is_taken_once():
    registry = Registry()
    registry.add(rules.DATA_IN_STATIC_ATTRIBUTE)
    twin = Rule(code="NNX101", name="another-name", summary="Twin.", message="twin")
    with pytest.raises(RuntimeError, match="'NNX101' names both NNX101 and NNX101"):
        registry.add(twin)


def test_find_by_code_and_by_name():
    assert find("NNX101") is find("data-in-static-attribute") is rules.DATA_IN_STATIC_ATTRIBUTE


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(KeyError, match="did you mean 'data-in-static-attribute'"):
        find("data-in-static-atribute")


def test_versions_hold_from_inclusive_to_exclusive():
    versions = Versions(flax_since=(0, 11), flax_before=(0, 12), nnxkit=False)
    assert versions.holds("flax", (0, 11))
    assert versions.holds("flax", (0, 11, 2))
    assert not versions.holds("flax", (0, 12))
    assert not versions.holds("flax", (0, 10, 6))
    assert not versions.holds("flax")
    assert not versions.holds("nnxkit")
    assert not Versions(flax=False).holds("flax", (0, 12))


def test_an_error_carries_its_fields_and_says_them():
    error = example_error()
    assert isinstance(error, (AttributeStatusError, ValueError))
    assert (error.code, error.cls, error.path, error.first_assigned) == ("NNX101", "Net", ("layers",), ("net.py", 3))
    lines = str(error).splitlines()
    assert lines[0] == "`Net.layers` is static, but its value, a list of Linear, holds data"
    assert lines[1:3] == ["  rule: NNX101 data-in-static-attribute", "  first assigned: net.py:3"]
    assert lines[3].startswith("  help: use `nnx.List(...)`")


def test_errors_survive_pickling():
    error = example_error()
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert copy.rule is error.rule
    assert copy.path == error.path


def test_a_key_error_prints_its_message_not_its_repr():
    error = find("NNX502").error(name="params", streams="none")
    assert isinstance(error, RngStreamKeyError)
    assert str(error).startswith("there is no random stream `params`")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), "<root>"),
        (("a",), "a"),
        (("layers", 0, "kernel"), "layers[0].kernel"),
        ((0, "b"), "[0].b"),
        (("stats", ("kernel", "u")), "stats[('kernel', 'u')]"),
        (("a-b",), "['a-b']"),
    ],
)
def test_paths_read_like_python(path, text):
    assert format_path(path) == text
