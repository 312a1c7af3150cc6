"""Sizes that are known by their names: ``4 * dim`` for every ``dim`` that a class may be made with.

A :class:`Size` is a polynomial of names that stand for whole numbers. Two of them can be told apart for good where one
has more of the same than the other one, whatever the names stand for: an array that has ``4 * dim`` features fits no
layer that takes ``dim``. That ``hidden`` is not ``dim`` nobody knows, nor that ``extra`` in ``dim + extra`` is not 0;
but whoever gave them two names meant two numbers (:func:`are_two_names`).

Invariants: arithmetic gives a Size, a number, or :data:`~nnx_rules.shapes.UNKNOWN`; a Size has at least one name, and
is equal to another one only if both are the same polynomial. One that was divided and rounded down is *at most* its
polynomial, which is all that is said of it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from nnx_rules.shapes import UNKNOWN, Dimension, Symbol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Product = tuple[str, ...]
"""Names that are multiplied, in order; none for what a plain number is a multiple of."""

MAX_TERMS = 8
"""How many terms a polynomial may have."""


class Size(Symbol):
    """A whole number above 0, by the names of those that it is computed from.

    Attributes:
        terms: how often each product of names is in the sum.
        rounded: whether the number may be smaller than that, since it was rounded down.
    """

    __slots__ = ("rounded", "terms")

    terms: Mapping[Product, Fraction]
    rounded: bool


def named(name: str) -> Size:
    """The size that a name stands for.

    >>> times(4, named("dim"))
    '4*dim'
    """
    return _size({(name,): Fraction(1)}, rounded=False)


def _size(terms: Mapping[Product, Fraction], *, rounded: bool) -> Size:
    made = Size(f"({_text(terms)}) // 1" if rounded and len(terms) > 1 else _text(terms))
    made.terms, made.rounded = terms, rounded
    return made


def _text(terms: Mapping[Product, Fraction]) -> str:
    parts = [_term(product, count) for product, count in terms.items()]
    return " + ".join(parts).replace("+ -", "- ")


def _term(product: Product, count: Fraction) -> str:
    factors = [*([str(count.numerator)] if count.numerator != 1 or not product else []), *product]
    text = "*".join(factors).replace("-1*", "-")
    return text if count.denominator == 1 else f"{text}//{count.denominator}"


def _terms(value: Dimension) -> Mapping[Product, Fraction] | None:
    if isinstance(value, Size):
        return value.terms
    return None if isinstance(value, Symbol) else {(): Fraction(value)} if value else {}


def _made(terms: Mapping[Product, Fraction], *, rounded: bool) -> Dimension:
    kept = {product: count for product, count in sorted(terms.items(), reverse=True) if count}
    if any(kept):
        return _size(kept, rounded=rounded) if len(kept) <= MAX_TERMS else UNKNOWN
    number = kept.get((), Fraction(0))
    return int(number) if number.denominator == 1 and not rounded else UNKNOWN


def _is_rounded(value: Dimension) -> bool:
    return isinstance(value, Size) and value.rounded


def plus(left: Dimension, right: Dimension) -> Dimension:
    """The sum of two sizes."""
    one, other = _terms(left), _terms(right)
    if one is None or other is None:
        return UNKNOWN
    total = {product: one.get(product, Fraction(0)) + other.get(product, Fraction(0)) for product in {**one, **other}}
    return _made(total, rounded=_is_rounded(left) or _is_rounded(right))


def added(sizes: Iterable[Dimension]) -> Dimension:
    """The sum of any number of sizes."""
    total: Dimension = 0
    for each in sizes:
        total = plus(total, each)
    return total


def minus(left: Dimension, right: Dimension) -> Dimension:
    """The difference of two sizes; unknown where what is taken off was rounded."""
    return UNKNOWN if _is_rounded(right) else plus(left, times(-1, right))


def times(left: Dimension, right: Dimension) -> Dimension:
    """The product of two sizes; unknown where one was rounded, and one may be less than nothing."""
    one, other = _terms(left), _terms(right)
    rounded = _is_rounded(left) or _is_rounded(right)
    if one is None or other is None or (rounded and any(count < 0 for count in (*one.values(), *other.values()))):
        return UNKNOWN
    total: dict[Product, Fraction] = {}
    for product, count in one.items():
        for factor, often in other.items():
            both = tuple(sorted((*product, *factor)))
            total[both] = total.get(both, Fraction(0)) + count * often
    return _made(total, rounded=rounded)


def divided(left: Dimension, right: Dimension) -> Dimension:
    """A size divided by another one, and rounded down. By one of several names it is known only without a rest.

    >>> divided(times(named("heads"), named("width")), named("heads"))
    'width'
    """
    one, other = _terms(left), _terms(right)
    if one is None or not other or len(other) > 1 or _is_rounded(right):
        return UNKNOWN
    [(divisor, by)] = other.items()
    if by <= 0:
        return UNKNOWN
    total: dict[Product, Fraction] = {}
    for product, count in one.items():
        rest = list(product)
        for name in divisor:
            if name not in rest:
                return UNKNOWN
            rest.remove(name)
        total[tuple(rest)] = count / by
    whole = all(count.denominator == 1 for count in total.values())
    return _made(total, rounded=_is_rounded(left) or not whole)


def shared(whole: Dimension, parts: int) -> Dimension:
    """The size of each of some equal parts, where there is no rest: it must be so for all that the names stand for.

    >>> shared(times(2, named("dim")), 2), shared(named("dim"), 2)
    ('dim', 'dim//2')
    """
    found = divided(whole, parts)
    return _size(found.terms, rounded=False) if isinstance(found, Size) and not _is_rounded(whole) else found


OPERATIONS: Mapping[str, Callable[[Dimension, Dimension], Dimension]] = {
    "Add": plus,
    "Sub": minus,
    "Mult": times,
    "FloorDiv": divided,
}
"""What operators do to sizes, by the name of their node in :mod:`ast`."""


def where(size: Size, stands_for: Callable[[str], Dimension]) -> Dimension:
    """A size for what its names stand for.

    >>> where(times(4, named("dim")), lambda name: 16)
    64
    """
    parts: list[Dimension] = []
    for product, count in size.terms.items():
        part: Dimension = int(count.numerator)
        for name in product:
            part = times(part, stands_for(name))
        parts.append(part if count.denominator == 1 else divided(part, count.denominator))
    return added(parts)


def differ(left: Dimension, right: Dimension) -> bool:
    """Whether two sizes are different, whatever the names in them stand for.

    >>> dim = named("dim")
    >>> differ(times(4, dim), dim), differ(dim, named("hidden")), differ(dim, 4)
    (True, False, False)
    """
    if isinstance(left, int) and isinstance(right, int):
        return left != right
    one, other = _terms(left), _terms(right)
    if one is None or other is None:
        return False
    gaps = {product: one.get(product, Fraction(0)) - other.get(product, Fraction(0)) for product in {**one, **other}}
    told = {product: gap for product, gap in gaps.items() if gap}
    signs = {gap > 0 for gap in told.values()}
    larger = left if signs == {True} else right
    alike = all(not product or (product in one and product in other) for product in told)  # others may be nothing
    return len(signs) == 1 and alike and not _is_rounded(larger)


def are_two_names(left: Dimension, right: Dimension) -> bool:
    """Whether two sizes are two names, of which nothing is computed.

    >>> are_two_names(named("dim"), named("hidden")), are_two_names(named("dim"), times(4, named("hidden")))
    (True, False)
    """
    sides = [side.terms for side in (left, right) if isinstance(side, Size)]
    return len(sides) == 2 and sides[0] != sides[1] and all(_is_name(terms) for terms in sides)


def _is_name(terms: Mapping[Product, Fraction]) -> bool:
    return all(len(product) == 1 and count == 1 for product, count in terms.items()) and len(terms) == 1
