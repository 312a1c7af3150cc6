"""Functions that make one sequence of others: ``map``, ``sum`` of lists, ``reduce``, and those of ``itertools``. And
what ``next`` takes of one.

Invariants: what comes out is known whole only where all that goes in is, and is short; a function that is called for
the elements is called for each of few that are known, in order, else once for any element.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from nnx_lint.model import arithmetic, crossing, rounds, surgery
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.elements import element_of
from nnx_lint.model.symbols import NamedOther
from nnx_lint.model.unions import join, present
from nnx_lint.model.values import UNKNOWN, Array, Const, Value

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterable, Sequence

    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter

    Handler = Callable[[Interpreter, Frame, Arguments, ast.AST, str], Value]


def _some(elements: Iterable[Value], frame: Frame) -> Seq:
    """Nobody knows how many of these."""
    return Seq("generator", list(elements), frame.level, exact=False)


def _whole(elements: Iterable[Value], frame: Frame) -> Seq:
    """These elements and no others; only some, where they are too many to tell apart."""
    found = list(itertools.islice(elements, rounds.MAX_ELEMENTS + 1))
    if len(found) > rounds.MAX_ELEMENTS:
        return _some([join(*found)], frame)
    return Seq("generator", found, frame.level)


def _called(
    interp: Interpreter, frame: Frame, func: Value, given: Iterable[Value | None], node: ast.AST, name: str
) -> Value:
    from nnx_lint.model.calls import Arguments, invoke

    return invoke(interp, frame, func, Arguments(node, [*given], {}, []), node, name)


def _each(
    interp: Interpreter, frame: Frame, func: Value, rows: Seq, node: ast.AST, name: str, *, type_name: str
) -> Value:
    """What a function gives for the rows of arguments of a sequence."""
    known = rounds.few(interp, rows)
    todo = known if known is not None else [element_of(rows, frame.level)]
    held = [row.items for row in todo if isinstance(row, Seq) and row.exact]
    if len(held) < len(todo):  # nobody knows how many arguments there are
        return Seq(type_name, [_called(interp, frame, func, [None], node, name)], frame.level, exact=False)
    many = rounds.one_by_one(interp, node, [Seq("tuple", row, frame.level) for row in held])
    made = [_called(interp, frame, func, row.items if isinstance(row, Seq) else (), node, name) for row in many]
    return Seq(type_name, made, frame.level, exact=known is not None)


def zipped(frame: Frame, sequences: Sequence[Value | None]) -> Seq:
    """The rows of several sequences that are gone through side by side; ``None`` are nobody knows how many."""
    given = [value for value in sequences if value is not None]
    if len(given) < len(sequences):
        return _some([UNKNOWN], frame)
    known = [rounds.elements(value) for value in given]
    columns = [column for column in known if column is not None]
    if columns and len(columns) == len(known):
        rows = (Seq("tuple", row, frame.level) for row in zip(*columns, strict=False))
        return Seq("generator", rows, frame.level)
    return _some([Seq("tuple", [element_of(value, frame.level) for value in given], frame.level)], frame)


def _columns(frame: Frame, rows: Value) -> Seq | None:
    """What ``zip(*rows)`` gives for nobody knows how many rows of one length: a tuple of all that is at one place."""
    row = element_of(rows, frame.level) if isinstance(rows, Seq) and not rows.exact else None
    if not isinstance(row, Seq) or not row.exact or row.type not in {"list", "tuple"}:
        return None
    columns = [Seq("tuple", [item], frame.level, exact=False) for item in row.items]
    for column in columns:
        column.sure = list(column.items)  # one of each row
    return Seq("generator", columns, frame.level)


def _zip(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    found = _columns(frame, args.spread[0]) if args.positional == [None] and args.spread else None
    if found is not None:
        return found
    return zipped(frame, args.positional)


def _map(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    rows = zipped(frame, args.positional[1:])
    return _each(interp, frame, args.get(0) or UNKNOWN, rows, node, name, type_name="map")


def _starmap(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    given = args.get(1) or UNKNOWN
    rows = given if isinstance(given, Seq) else _some([element_of(given, frame.level)], frame)
    return _each(interp, frame, args.get(0) or UNKNOWN, rows, node, name, type_name="generator")


def _chain(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    given: list[Value] | None = [value or UNKNOWN for value in args.positional]
    if name.endswith("from_iterable"):
        given = rounds.elements(args.get(0) or UNKNOWN)
    return _joined(frame, given, args.get(0) or UNKNOWN)


def _joined(frame: Frame, sequences: list[Value] | None, otherwise: Value) -> Value:
    """One sequence after the other; ``otherwise`` are any of them where it is not known which there are."""
    if sequences is None:
        return _some([element_of(element_of(otherwise, frame.level), frame.level)], frame)
    known = [rounds.elements(each) for each in sequences]
    parts = [part for part in known if part is not None]
    if len(parts) == len(known):
        return _whole(itertools.chain(*parts), frame)
    return _some([join(*(element_of(each, frame.level) for each in sequences))], frame)


def _repeat(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    held, times = args.get(0, "object") or UNKNOWN, args.get(1, "times")
    count = times.value if isinstance(times, Const) and type(times.value) is int else None
    return _some([held], frame) if count is None else _whole(itertools.repeat(held, count), frame)


def _accumulate(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    known = rounds.elements(args.get(0, "iterable") or UNKNOWN) if len(args.positional) == 1 else None
    numbers = arithmetic.plain(*known) if known is not None and not args.keywords else None
    if numbers is None or not all(isinstance(each, (int, float)) for each in numbers):
        return UNKNOWN
    sums = (arithmetic.evaluated(sum, numbers[: end + 1]) for end in range(len(numbers)))
    return _whole((interp.number(each) if each is not None else UNKNOWN for each in sums), frame)


def _islice(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    given = args.get(0) or UNKNOWN
    known = rounds.elements(given)
    literal = (value.value for value in args.positional[1:] if isinstance(value, Const))
    bounds = [each for each in literal if each is None or (type(each) is int and each >= 0)]
    if known is None or len(bounds) != len(args.positional) - 1 or not 1 <= len(bounds) <= 3:
        return _some([element_of(given, frame.level)], frame)
    return _whole(known[slice(*bounds)], frame)


def _product(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    given = [value or UNKNOWN for value in args.positional]
    known = [rounds.elements(each) for each in given]
    parts = [part for part in known if part is not None]
    if len(parts) == len(known) and not args.keywords:
        return _whole((Seq("tuple", row, frame.level) for row in itertools.product(*parts)), frame)
    row = [element_of(each, frame.level) for each in given]
    return UNKNOWN if args.keywords else _some([Seq("tuple", row, frame.level)], frame)


def _pairwise(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    given = args.get(0) or UNKNOWN
    known = rounds.elements(given)
    if known is not None:
        return _whole((Seq("tuple", pair, frame.level) for pair in itertools.pairwise(known)), frame)
    return _some([Seq("tuple", [element_of(given, frame.level)] * 2, frame.level)], frame)


def _reduce(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    func, given = args.get(0) or UNKNOWN, args.get(1) or UNKNOWN
    surgery.reduced(interp, frame, func, args.get(2), node)
    known = rounds.few(interp, given)
    if known is None or args.starred:
        first = args.get(2) or element_of(given, frame.level)
        _called(interp, frame, func, (_of_any_round(first), element_of(given, frame.level)), node, name)
        return UNKNOWN
    start = args.get(2)
    result, rest = (start, known) if start is not None else (known[0], known[1:])
    for each in rounds.one_by_one(interp, node, rest) if rest else ():
        result = _called(interp, frame, func, (result, each), node, name)
    return result


def _of_any_round(first: Value) -> Value:
    """What a reduction hands on: the first value in the first round, and what nobody knows in the others."""
    return first if isinstance(first, Const) else UNKNOWN


def _sum(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """A sum of lists is one list; one of numbers a number."""
    start = args.get(1, "start")
    if not isinstance(start, Seq) or not start.exact:
        return NUMBERS(interp, frame, args, node, name)
    found = _joined(frame, [start, *(rounds.elements(args.get(0) or UNKNOWN) or [UNKNOWN])], UNKNOWN)
    return Seq(start.type, found.items, frame.level, exact=found.exact, node=node) if isinstance(found, Seq) else found


def numeric(function: Callable[..., object], otherwise: Value, *, named: bool = False) -> Handler:
    """A function of numbers, or of one sequence of them; ``otherwise`` is the result of others, ``named`` of what is
    known by its name as that very number.
    """

    def handler(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
        given = [value or UNKNOWN for value in args.positional]
        if given and not args.keywords:
            held = rounds.elements(given[0]) if len(given) == 1 else None
            known = arithmetic.plain(*(given if held is None else held))
            result = None
            if known is not None:
                result = arithmetic.evaluated(function, *(known if held is None else [known]))
            if result is not None:
                return interp.number(result)
            if named and given[0].symbol is not None:
                return NamedOther(given[0].symbol)
        return otherwise

    return handler


NUMBERS = numeric(sum, UNKNOWN)


def _iterator(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """What a loader yields; of anything else nobody knows who takes what of it."""
    given = rounds.yielded(interp, frame, args.get(0) or UNKNOWN, node) if len(args.positional) == 1 else UNKNOWN
    yields = isinstance(given, Seq) and given.type == "generator"
    element = element_of(given, frame.level) if yields else UNKNOWN
    return _some([element], frame) if _is_data(element) else UNKNOWN


def _next(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """The next batch of a loader: data like all that come, and not the same as the one before."""
    given = present(args.get(0) or UNKNOWN)
    iterates = isinstance(given, Seq) and given.type == "generator" and len(args.positional) == 1
    element = element_of(given, frame.level) if iterates else UNKNOWN
    return crossing.refresh(element, frame.level) if _is_data(element) else UNKNOWN


def _is_data(value: Value) -> bool:
    """Whether a value certainly is an array of numbers, or some of them: of no random key the dtype is known."""
    if isinstance(value, Seq):
        return value.exact and value.type in {"list", "tuple"} and all(map(_is_data, value.items))
    if isinstance(value, DictVal):
        return value.exact and all(_is_data(part) for _, part in value.items)
    form = value.form if isinstance(value, Array) else None
    return form is not None and form.shape is not None and form.dtype is not None


HANDLERS: dict[str, Handler] = {
    **{name: numeric(function, arithmetic.otherwise(name)) for name, function in arithmetic.FUNCTIONS.items()},
    "builtins.iter": _iterator,
    "builtins.map": _map,
    "builtins.next": _next,
    "builtins.sum": _sum,
    "builtins.zip": _zip,
    "functools.reduce": _reduce,
    **dict.fromkeys(("itertools.chain", "itertools.chain.from_iterable"), _chain),
    "itertools.accumulate": _accumulate,
    "itertools.islice": _islice,
    "itertools.pairwise": _pairwise,
    "itertools.product": _product,
    "itertools.repeat": _repeat,
    "itertools.starmap": _starmap,
}
