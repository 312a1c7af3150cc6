"""Filter expressions: forms, meaning on live values, reprs, and what is refused."""

import copy
import pickle
import re
import subprocess
import sys
import typing as t
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identifiers import stable_repr
from nnx_rules.errors import FilterTypeError
from nnx_rules.filters import (
    All,
    Any,
    Everything,
    Expr,
    InvalidFilter,
    Misuse,
    Not,
    Nothing,
    OfType,
    Opaque,
    PathContains,
    PathIn,
    WithTag,
    parse,
    to_predicate,
)


class Variable:
    __slots__ = ("_var_metadata", "tag")

    def __call__(self, x: object) -> object:
        return x


class Param(Variable): ...


class Special(Param): ...


class BatchStat(Variable): ...


T = t.TypeVar("T")


class Box(t.Generic[T]): ...


@dataclass
class Tagged:
    tag: object = None


@dataclass
class Typed:
    type: object = None


def is_bias(path: tuple[t.Any, ...], value: object) -> bool:
    return path[-1] == "bias"


LITERALS = [
    (..., Everything()),
    (True, Everything()),
    (False, Nothing()),
    (None, Nothing()),
    (Param, OfType(Param)),
    ("dropout", WithTag("dropout")),
    ((Param, "dropout"), Any(OfType(Param), WithTag("dropout"))),
    ([Param, "dropout"], Any(OfType(Param), WithTag("dropout"))),
    ((), Any()),
    ((("a", [None]), ...), Any(Any(WithTag("a"), Any(Nothing())), Everything())),
    (is_bias, Opaque(is_bias)),
    (PathContains("k"), PathContains("k")),
]


@pytest.mark.parametrize(("literal", "expr"), LITERALS, ids=stable_repr)
def test_literal_forms(literal: t.Any, expr: Expr) -> None:
    assert parse(literal) == expr
    assert Not(literal) == Not(expr)


def test_constructors_coerce_their_arguments() -> None:
    assert Any(Param, "dropout").predicates == (OfType(Param), WithTag("dropout"))
    assert All((Param, "a"), ...) == All(Any(OfType(Param), WithTag("a")), Everything())


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (OfType(int), "OfType(<class 'int'>)"),
        (WithTag("x"), "WithTag('x')"),
        (PathContains("k"), "PathContains('k', exact=True)"),
        (PathContains(0, False), "PathContains(0, exact=False)"),
        (PathIn(("a",)), "PathIn(('a',))"),
        (PathIn(("b", 0), ("a",)), "PathIn(('a',), ('b', 0))"),
        (PathIn(), "PathIn()"),
        (Any(int, "x"), "Any(OfType(<class 'int'>), WithTag('x'))"),
        (All(), "All()"),
        (Not("x"), "Not(WithTag('x'))"),
        (Everything(), "Everything()"),
        (Nothing(), "Nothing()"),
        (parse(is_bias), repr(is_bias)),
    ],
    ids=stable_repr,
)
def test_repr(expr: Expr, text: str) -> None:
    assert repr(expr) == text


def test_of_type_is_isinstance() -> None:
    assert OfType(Param)((), Special())
    assert not OfType(Special)((), Param())


def test_of_type_reads_a_stated_type() -> None:
    assert OfType(Param)((), Typed(Special))
    assert not OfType(Special)((), Typed(Param))


@pytest.mark.parametrize("stated", ["Param", 3, None, list[int], Param()])
def test_a_type_attribute_that_is_no_class_is_ignored(stated: object) -> None:
    assert not OfType(Param)((), Typed(stated))


def test_with_tag_compares_strings_only() -> None:
    class Elementwise:
        def __eq__(self, other: object) -> bool:
            raise AssertionError("an array has no one truth value")

        __hash__ = None  # type: ignore[assignment]

    assert WithTag("x")((), Tagged("x"))
    assert not WithTag("x")((), Tagged("y"))
    assert not WithTag("x")(("x",), object())
    assert not WithTag("x")((), Tagged(Elementwise()))


@pytest.mark.parametrize(
    ("key", "exact", "path", "taken"),
    [
        ("kernel", True, ("l", "kernel"), True),
        ("kern", True, ("l", "kernel"), False),
        ("kern", False, ("l", "kernel"), True),
        ("l.kernel", True, ("l", "kernel"), False),
        (0, True, ("layers", 0), True),
        ("0", True, ("layers", 0), False),
        ("0", False, ("layers", 10), True),
        (1, False, ("layers", 12), True),
        ("a", True, (), False),
        ("", False, (), False),
        ("", False, (7,), True),
    ],
)
def test_path_contains(key: str | int, exact: bool, path: tuple[str | int, ...], taken: bool) -> None:
    assert PathContains(key, exact)(path, None) is taken


def test_path_in_is_the_whole_path() -> None:
    expr = PathIn(("a", 0), ["b"], ())
    assert expr(("a", 0), None)
    assert expr(("b",), None)
    assert expr((), None)
    assert not expr(("a",), None)
    assert not expr(("a", 0, "c"), None)


def test_empty_and_nested_combinations() -> None:
    assert All()((), None) is True
    assert Any()((), None) is False
    assert Not(Not(Not(...)))((), None) is False
    assert Everything("ignored", also=1)((), None) is True
    assert Nothing("ignored", also=1)((), None) is False


def test_a_callable_is_called_as_it_is() -> None:
    calls: list[tuple[object, object]] = []

    def probe(path: tuple[object, ...], value: object) -> bool:
        calls.append((path, value))
        return 1  # type: ignore[return-value]

    assert to_predicate(probe) is probe
    assert Any(probe)(("a",), 5) is True
    assert calls == [(("a",), 5)]


def test_to_predicate_of_a_literal_is_its_expression() -> None:
    assert to_predicate((Param, "dropout")) == Any(OfType(Param), WithTag("dropout"))


def test_equality_is_by_content_and_kind() -> None:
    assert len({Any(Param, "a"), Any(Param, "a"), parse((Param, "a")), All(Param, "a"), Any("a", Param)}) == 3
    assert PathContains("a") != PathContains("a", exact=False)
    assert PathIn(("a",), ("b",)) == PathIn(("b",), ("a",))
    assert Everything() != Any(...)


def test_an_unhashable_callable_leaves_the_tree_hashable() -> None:
    @dataclass
    class Threshold:
        limit: int

        def __call__(self, path: tuple[object, ...], value: object) -> bool:
            return len(path) < self.limit

    assert {Any(Threshold(1)), Any(Threshold(1))} == {Any(Threshold(1))}
    assert Any(Threshold(1)) != Any(Threshold(2))


def test_expressions_are_frozen() -> None:
    with pytest.raises(AttributeError, match="cannot assign to field 'predicates'"):
        Any("a").predicates = ()  # type: ignore[misc]


@pytest.mark.parametrize(
    ("literal", "misuse", "help_"),
    [
        (3, Misuse.OTHER, "use a type, a tag"),
        (1.5, Misuse.OTHER, "use a type"),
        ({}, Misuse.OTHER, "use a type"),
        ({Param}, Misuse.OTHER, "use a type"),
        (b"x", Misuse.OTHER, "use a type"),
        (1, Misuse.OTHER, "use a type"),
        (Param | BatchStat, Misuse.UNION, "(Param, BatchStat)"),
        (t.Union[Param, BatchStat], Misuse.UNION, "(Param, BatchStat)"),  # noqa: UP007
        (Box[int], Misuse.ALIAS, "the plain type, Box"),
        (list[int], Misuse.ALIAS, "the plain type, list"),
        (t.Annotated[Param, "doc"], Misuse.ALIAS, "the plain type, Param"),
        (t.Any, Misuse.TYPING_ANY, "use ..."),
        (Param(), Misuse.INSTANCE, "use its type, Param"),
    ],
    ids=stable_repr,
)
def test_what_is_no_filter(literal: t.Any, misuse: Misuse, help_: str) -> None:
    for make in (parse, to_predicate, Not, Any, lambda x: parse(("a", [x]))):
        with pytest.raises(InvalidFilter, match=re.escape(f"{misuse.problem}, is not a filter".lstrip(", "))) as caught:
            make(literal)
        error = caught.value
        assert isinstance(error, FilterTypeError)
        assert isinstance(error, TypeError)
        assert error.given is literal
        assert error.misuse is misuse
        assert error.code == "NNX306"
        assert help_ in error.help
        assert help_ in str(error)


def test_wrong_parts_are_refused_at_once() -> None:
    with pytest.raises(InvalidFilter, match="tags are strings"):
        WithTag(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidFilter, match="not a path"):
        PathIn("a")  # type: ignore[arg-type]


@pytest.mark.parametrize("filters", [(), ("a", "b")])
def test_not_takes_exactly_one(filters: tuple[str, ...]) -> None:
    with pytest.raises(FilterTypeError, match="takes one filter, and got"):
        Not(*filters)


def test_invalid_filter_survives_pickling() -> None:
    error = InvalidFilter(int, Misuse.ALIAS, "int")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.given, again.misuse, again.code) == (str(error), int, Misuse.ALIAS, "NNX306")


def test_types_may_be_descriptions() -> None:
    def is_description(obj: object) -> bool:
        return isinstance(obj, tuple) is False and isinstance(obj, frozenset)

    param = frozenset({"Param"})
    assert parse((param, "a", [param]), is_description) == Any(OfType(param), WithTag("a"), Any(OfType(param)))
    with pytest.raises(InvalidFilter, match="frozenset"):
        parse(param)


def test_imports_only_the_standard_library() -> None:
    program = (
        "import sys, nnx_rules._filter_logic;"
        "print({m.split('.')[0] for m in sys.modules} - sys.stdlib_module_names - {'nnx_rules', '__main__'})"
    )
    before = "import sys; print({m.split('.')[0] for m in sys.modules} - sys.stdlib_module_names - {'__main__'})"
    loaded, baseline = (
        t.cast(
            set[str],
            eval(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout),
        )
        for code in (program, before)
    )
    assert loaded - baseline == set()


expressions = st.recursive(
    st.sampled_from([..., None, Param, BatchStat, "a", "b", PathContains("k"), PathContains(0, False), PathIn(("k",))]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(lambda filters: All(*filters)),
        inner.map(Not),
    ),
    max_leaves=8,
)


@given(expressions)
def test_parsing_is_idempotent_and_the_repr_evaluates_to_the_same_tree(literal: t.Any) -> None:
    expr = parse(literal)
    assert parse(expr) is expr
    text = re.sub(r"<class '[\w.]*?(\w+)'>", r"\1", repr(expr))
    assert eval(text) == expr
    assert hash(eval(text)) == hash(expr)
    assert pickle.loads(pickle.dumps(expr)) == expr
    assert copy.deepcopy(expr) == expr


@given(expressions, st.lists(st.sampled_from(["k", 0, 10]), max_size=2).map(tuple), st.sampled_from(["a", "b", "c"]))
def test_combinations_mean_what_they_say(literal: t.Any, path: tuple[str | int, ...], tag: str) -> None:
    value = Special()
    value.tag = tag

    def meaning(form: t.Any) -> bool:
        match form:
            case tuple() | list():
                return any(map(meaning, form))
            case Any(predicates=children):
                return any(map(meaning, children))
            case All(predicates=children):
                return all(map(meaning, children))
            case Not(predicate=child):
                return not meaning(child)
            case _:
                return to_predicate(form)(path, value)

    assert parse(literal)(path, value) is meaning(literal)
