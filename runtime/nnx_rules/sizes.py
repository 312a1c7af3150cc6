"""Sizes that are known by their names: ``4 * dim`` for every ``dim`` that a class may be made with.

A :class:`Size` is a polynomial of names that stand for whole numbers. Two of them can be told apart for good where one
has more of the same than the other one, whatever the names stand for: an array that has ``4 * dim`` features fits no
layer that takes ``dim``. That ``hidden`` is not ``dim`` nobody knows, nor that ``extra`` in ``dim + extra`` is not 0;
but whoever gave them two names meant two numbers (:func:`two_names`).

Invariants: arithmetic gives a Size, a number, or :data:`~nnx_rules.shapes.UNKNOWN`; a Size has at least one name, and
is equal to another one only if both are the same polynomial. One that was divided and rounded down is *at most* its
polynomial, which is all that is said of it.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from nnx_rules.shapes import UNKNOWN, Dimension, Symbol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Product = tuple[str, ...]
"""Names that are multiplied, in order; none for what a plain number is a multiple of."""

Count = int | Fraction
"""How often a product is in a sum; a fraction only where it is no whole number, since numbers are reckoned faster."""

MAX_TERMS = 8
"""How many terms a polynomial may have."""


class Size(Symbol):
    """A whole number above 0, by the names of those that it is computed from.

    Attributes:
        terms: how often each product of names is in the sum.
        rounded: whether the number may be smaller than that, since it was rounded down.
    """

    __slots__ = ("rounded", "terms")

    terms: Mapping[Product, Count]
    rounded: bool


@lru_cache(4096)
def named(name: str) -> Size:
    """The size that a name stands for; what follows an ``@`` in it tells it from others of that name.

    >>> times(4, named("dim"))
    '4*dim'
    """
    return _size({(name,): 1}, rounded=False)


def is_local(size: Dimension) -> bool:
    """Whether a size has a name that stands for another number elsewhere."""
    return isinstance(size, Size) and any("@" in name for product in size.terms for name in product)


def _size(terms: Mapping[Product, Count], *, rounded: bool) -> Size:
    made = Size(f"({_text(terms)}) // 1" if rounded and len(terms) > 1 else _text(terms))
    made.terms, made.rounded = terms, rounded
    return made


def _text(terms: Mapping[Product, Count]) -> str:
    parts = [_term(product, count) for product, count in terms.items()]
    return " + ".join(parts).replace("+ -", "- ")


def _term(product: Product, count: Count) -> str:
    names = [re.sub("@[0-9]+", "", name) for name in product]
    factors = [*([str(count.numerator)] if count.numerator != 1 or not product else []), *names]
    text = "*".join(factors).replace("-1*", "-")
    return text if count.denominator == 1 else f"{text}//{count.denominator}"


def _terms(value: Dimension) -> Mapping[Product, Count] | None:
    if isinstance(value, Size):
        return value.terms
    return None if isinstance(value, Symbol) else {(): value} if value else {}


def _made(terms: Mapping[Product, Count], *, rounded: bool) -> Dimension:
    kept = {product: count for product, count in sorted(terms.items(), reverse=True) if count}
    if any(kept):
        return _size(kept, rounded=rounded) if len(kept) <= MAX_TERMS else UNKNOWN
    number = kept.get((), 0)
    return int(number) if number.denominator == 1 and not rounded else UNKNOWN


def _is_rounded(value: Dimension) -> bool:
    return isinstance(value, Size) and value.rounded


def plus(left: Dimension, right: Dimension) -> Dimension:
    """The sum of two sizes."""
    one, other = _terms(left), _terms(right)
    if one is None or other is None:
        return UNKNOWN
    total = {product: one.get(product, 0) + other.get(product, 0) for product in {**one, **other}}
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
    total: dict[Product, Count] = {}
    for product, count in one.items():
        for factor, often in other.items():
            both = tuple(sorted(_multiplied([*product, *factor])))
            total[both] = total.get(both, 0) + count * often
    return _made(total, rounded=rounded)


def _multiplied(names: list[str]) -> list[str]:
    """Names that are multiplied: a quotient of two of them times the second one is the first."""
    for quotient in [name for name in names if OVER in name]:
        whole, _, parts = quotient.partition(OVER)
        if parts in names:
            names.remove(parts)
            names[names.index(quotient)] = whole
    return names


OVER = "//"
"""Between two names of which one is a number of parts of the other, such as the width of the heads of attention."""


def product_of(sizes: Iterable[Dimension]) -> Dimension:
    """The product of any number of sizes."""
    total: Dimension = 1
    for each in sizes:
        total = times(total, each)
    return total


def divided(left: Dimension, right: Dimension) -> Dimension:
    """A size divided by another one, and rounded down. By one of several names it is known only without a rest; a name
    divided by another one is taken to leave none.

    >>> divided(times(named("heads"), named("width")), named("heads"))
    'width'
    >>> divided(named("dim"), named("heads")), times(divided(named("dim"), named("heads")), named("heads"))
    ('dim//heads', 'dim')
    >>> divided(times(named("expand"), named("width")), named("heads"))
    'expand*width//heads'
    """
    one, other = _terms(left), _terms(right)
    if one is None or not other or len(other) > 1 or _is_rounded(right):
        return UNKNOWN
    if _is_plain(one) and _is_plain(other) and one != other and not _is_rounded(left):
        return named(OVER.join(name for terms in (one, other) for [name] in terms))
    [(divisor, by)] = other.items()
    if by <= 0:
        return UNKNOWN
    shared_out = _shared_out(one, divisor) if by == 1 and _is_plain(other) and not _is_rounded(left) else None
    if shared_out is not None:
        return shared_out
    total: dict[Product, Count] = {}
    for product, count in one.items():
        rest = list(product)
        for name in divisor:
            if name not in rest:
                return UNKNOWN
            rest.remove(name)
        total[tuple(rest)] = _ratio(count, by)
    whole = all(count.denominator == 1 for count in total.values())
    return _made(total, rounded=_is_rounded(left) or not whole)


def _shared_out(terms: Mapping[Product, Count], divisor: Product) -> Dimension | None:
    """A product of several names divided by another one, which is taken to divide the last of them that is whole."""
    [(product, count)] = terms.items() if len(terms) == 1 else [((), 1)]
    whole = [name for name in product if OVER not in name]
    if len(product) < 2 or not whole or divisor[0] in product or count.denominator != 1:
        return None
    names = [*product]
    names[names.index(whole[-1])] = OVER.join((whole[-1], divisor[0]))
    return _made({tuple(sorted(names)): count}, rounded=False)


def _ratio(count: Count, by: Count) -> Count:
    whole, rest = divmod(count, by)
    return Fraction(count) / by if rest else whole


def _is_plain(terms: Mapping[Product, Count]) -> bool:
    """Whether a size is one name, and no quotient."""
    return len(terms) == 1 and all(len(of) == 1 and count == 1 and OVER not in of[0] for of, count in terms.items())


def shared(whole: Dimension, parts: int) -> Dimension:
    """The size of each of some equal parts, where there is no rest: it must be so for all that the names stand for.

    >>> shared(times(2, named("dim")), 2), shared(named("dim"), 2)
    ('dim', 'dim//2')
    """
    found = divided(whole, parts)
    return _size(found.terms, rounded=False) if isinstance(found, Size) and not _is_rounded(whole) else found


def power(size: Dimension, exponent: Dimension) -> Dimension:
    """A size that is multiplied by itself some few times.

    >>> power(named("side"), 2)
    'side*side'
    """
    return product_of([size] * exponent) if isinstance(exponent, int) and 0 < exponent < MAX_TERMS else UNKNOWN


OPERATIONS: Mapping[str, Callable[[Dimension, Dimension], Dimension]] = {
    "Add": plus,
    "Sub": minus,
    "Mult": times,
    "FloorDiv": divided,
    "Pow": power,
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
            whole, over, number = name.partition(OVER)
            stands = divided(stands_for(whole), stands_for(number)) if over else stands_for(name)
            part = times(part, stands)
        parts.append(part if count.denominator == 1 else divided(part, count.denominator))
    return added(parts)


def differ(left: Dimension, right: Dimension) -> bool:
    """Whether two sizes are different, whatever the names in them stand for, or one is that of a batch and the other
    that of another axis of the same array.

    >>> dim = named("dim")
    >>> differ(times(4, dim), dim), differ(dim, named("hidden")), differ(dim, 4)
    (True, False, False)
    """
    if isinstance(left, int) and isinstance(right, int):
        return left != right
    one, other = _terms(left), _terms(right)
    if one is None or other is None or left == right:
        return False
    if _is_batch_beside(left, right) or _is_batch_beside(right, left):
        return True
    gaps = {product: one.get(product, 0) - other.get(product, 0) for product in {**one, **other}}
    told = {product: gap for product, gap in gaps.items() if gap}
    signs = {gap > 0 for gap in told.values()}
    larger = left if signs == {True} else right
    alike = all(not product or (product in one and product in other) for product in told)  # others may be nothing
    return len(signs) == 1 and alike and not _is_rounded(larger)


def at_most(small: Dimension, large: Dimension) -> bool:
    """Whether a size is certainly no larger than another one, whatever the names in them stand for.

    >>> dim, rank = named("dim"), named("rank")
    >>> at_most(rank, plus(dim, rank)), at_most(rank, dim), at_most(1, dim)
    (True, False, True)
    """
    rest = minus(large, small)
    if not isinstance(rest, Size):
        return isinstance(rest, int) and rest >= 0
    grows = all(count > 0 for product, count in rest.terms.items() if product)
    return grows and not rest.rounded and sum(rest.terms.values()) >= 0  # each name is 1 at least


BATCHES = frozenset({"b", "batch", "batch_size", "bs", "bsz"})
"""What the number of examples in a batch is called."""

OTHER_AXES = frozenset(
    {"c", "ch", "channels", "d", "d_model", "dim", "features", "in_features", "h", "height", "w", "width"}
    | {"head_dim", "heads", "n_heads", "num_heads", "hidden", "hidden_dim", "hidden_size"}
    | {"l", "len", "length", "s", "seq", "seq_len", "seq_length", "seqlen", "steps", "t", "time", "timesteps", "tokens"}
)
"""What other axes are called; a square matrix, such as one of similarities, may well be unpacked into other names."""


def _is_batch_beside(one: Dimension, other: Dimension) -> bool:
    """Whether an array has the one size as the number of its examples, and the other one along another axis.

    >>> _is_batch_beside(named("batch@5"), named("length@5")), _is_batch_beside(named("b@5"), named("n@5"))
    (True, False)
    """
    batch, _, place = _name_of(one).partition("@")
    beside, _, along = _name_of(other).partition("@")
    return bool(place) and place == along and batch.lower() in BATCHES and beside.lower() in OTHER_AXES


def _name_of(size: Dimension) -> str:
    """The one name that a size is, with what tells it from others."""
    term = _one_term(size)
    return term[0][0] if term is not None and len(term[0]) == 1 and term[1] == 1 else ""


def two_names(left: Dimension, right: Dimension) -> tuple[Dimension, Dimension] | None:
    """The two names, or a number and a name, in which two sizes differ that are products and otherwise the same.

    >>> two_names(named("dim"), named("hidden")), two_names(named("dim"), times(4, named("hidden")))
    (('dim', 'hidden'), None)
    >>> heads, width = named("heads"), named("width")
    >>> two_names(times(heads, width), times(named("groups"), width)), two_names(times(heads, width), width)
    (('heads', 'groups'), ('heads', 1))
    """
    one, other = _one_term(left), _one_term(right)
    if one is None or other is None or not (one[0] or other[0]):
        return None
    (product, count), (others, often) = one, other
    rest, others_rest = [*product], [*others]
    _multiply_out(rest, others_rest)
    _multiply_out(others_rest, rest)
    for name in [name for name in rest if name in others_rest]:
        if name in others_rest:
            rest.remove(name)
            others_rest.remove(name)
    sides = (_name_or_number(rest, count, often), _name_or_number(others_rest, often, count))
    if sides[0] is None or sides[1] is None or not any(isinstance(side, Size) for side in sides):
        return None
    return sides[0], sides[1]


def _multiply_out(names: list[str], others: list[str]) -> None:
    """Multiply two products by what the first one is divided by."""
    for place, name in enumerate(names):
        whole, over, parts = name.partition(OVER)
        names[place] = whole
        others += [parts] if over else []


def _one_term(value: Dimension) -> tuple[Product, Count] | None:
    terms = _terms(value)
    return next(iter(terms.items())) if terms is not None and len(terms) == 1 and not _is_rounded(value) else None


def _name_or_number(names: list[str], count: Count, often: Count) -> Dimension | None:
    """What is left of a side: a name, where both sides are the same multiple, or how often that of the other it is."""
    if names:
        whole = len(names) == 1 and 0 < count <= often and isinstance(_ratio(often, count), int)
        return named(names[0]) if whole else None
    ratio = _ratio(count, often)
    return ratio if isinstance(ratio, int) else None


def solved(size: Dimension, whole: Dimension) -> tuple[str, Dimension] | None:
    """The one local name in a size, and what it stands for if the size is another one.

    >>> solved(times(4, named("c@5")), times(8, named("dim")))
    ('c@5', '2*dim')
    """
    term = _one_term(size) if is_local(size) else None
    if term is None or len(term[0]) != 1 or OVER in term[0][0] or term[1].denominator != 1:
        return None
    stands = divided(whole, term[1].numerator)
    known = isinstance(stands, int) or (isinstance(stands, Size) and not stands.rounded)
    return (term[0][0], stands) if known else None


def multiple(size: Size) -> int | None:
    """How many times a product of names a size is, where it is several times one.

    >>> multiple(times(4, named("dim"))), multiple(named("dim"))
    (4, None)
    """
    [*terms] = size.terms.items()
    if len(terms) != 1 or size.rounded:
        return None
    product, count = terms[0]
    return int(count) if product and count.denominator == 1 and count > 1 else None
