"""Records are classes by their fields: values that do not change, and entities that may."""

from __future__ import annotations

import copy
import pickle
import weakref

import pytest

from nnx_rules.records import Entity, Record, made


class Point(Record):
    x: int
    y: int = 0


class Other(Record):
    x: int
    y: int = 0


class Positive(Record):
    number: int

    def __post_init__(self) -> None:
        if self.number <= 0:
            raise ValueError(f"{self.number} is not positive")


class Node(Entity):
    name: str
    children: list[Node] = made(factory=list["Node"])


class Leaf(Node):
    value: object = None


def test_fields_are_given_by_place_or_name() -> None:
    assert Point(1) == Point(x=1, y=0) == Point(1, 0)
    assert (Point(1, 2).x, Point(1, 2).y) == (1, 2)
    assert repr(Point(1, y=2)) == "Point(x=1, y=2)"


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"z": 2}), ((1,), {"x": 2})])
def test_fields_have_to_be_right(values: tuple[int, ...], named: dict[str, int]) -> None:
    for _ in range(2):  # also by the constructor that the first use has made
        with pytest.raises(TypeError, match=r"^Point\.__init__\(\) "):
            Point(*values, **named)


def test_records_are_equal_by_class_and_content() -> None:
    assert Point(1) != Point(2)
    assert Point(1) != Other(1)
    assert Point(1) != (1, 0)
    assert len({Point(1), Point(1, 0), Point(2), Other(1)}) == 3
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        hash(Point([]))


def test_records_do_not_change() -> None:
    point = Point(1)
    with pytest.raises(AttributeError, match="cannot assign to field 'x'"):
        point.x = 2
    with pytest.raises(AttributeError, match="cannot delete field 'x'"):
        del point.x
    assert point.replaced(y=3) == Point(1, 3)
    assert point == Point(1)


def test_records_can_be_copied_and_kept() -> None:
    assert copy.deepcopy(Point(1)) == pickle.loads(pickle.dumps(Point(1))) == Point(1)


def test_content_is_judged_when_a_record_is_made() -> None:
    assert Positive(1).number == 1
    with pytest.raises(ValueError, match="-1 is not positive"):
        Positive(-1)
    with pytest.raises(ValueError, match="0 is not positive"):
        Positive(1).replaced(number=0)


def test_records_match_patterns() -> None:
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_entities_are_themselves_and_may_change() -> None:
    one, other = Node("a"), Node("a")
    assert one != other
    assert len({one, other}) == 2
    one.children.append(other)
    one.name = "b"
    assert (one.name, other.name, one.children, other.children) == ("b", "a", [other], [])
    with pytest.raises(AttributeError, match="no attribute 'nam'"):
        one.nam = "c"
    reference = weakref.ref(other)
    del other
    one.children.clear()
    assert reference() is None


def test_fields_of_bases_come_first() -> None:
    leaf = Leaf("a", [Node("b")], value=1)
    assert (leaf.name, leaf.children[0].name, leaf.value) == ("a", "b", 1)
    assert Leaf("c").children == []


def test_records_without_fields_are_equal_by_class() -> None:
    class Here(Record):
        pass

    class There(Record):
        pass

    assert Here() == Here()
    assert hash(Here()) == hash(Here())
    assert Here() != There()
