"""Comprehensions: over a few known elements one by one, else once for any element.

Invariants: what is in the result is known whole only where it is certain which elements are taken; the names of a
comprehension are its own.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import events, rounds
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.elements import element_of
from nnx_lint.model.expressions import condition, evaluate, truth, used_as
from nnx_lint.model.modules import Env
from nnx_lint.model.statements import assign
from nnx_lint.model.unions import options
from nnx_lint.model.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter


def _comprehend(
    interp: Interpreter, frame: Frame, generators: list[ast.comprehension], run: Callable[[], None]
) -> bool:
    """Run the body of a comprehension, for each of few known elements; whether that is certainly how often it runs."""
    if not generators:
        run()
        return True
    first, *rest = generators
    iterable = rounds.gone_through(interp, frame, first.iter)
    interp.publish(events.Iterated(frame, first.iter, iterable, first.target))
    if rounds.has_none(iterable):
        return True
    known = rounds.few(interp, iterable)
    every = known is not None
    for element in rounds.one_by_one(interp, first, known or [element_of(iterable, frame.level)]):
        assign(interp, frame, first.target, element, None, first.target)
        asked = (evaluate if place else condition for place, _ in enumerate(first.ifs))  # the first one certainly
        tests = [truth(ask(interp, frame, test)) for ask, test in zip(asked, first.ifs, strict=True)]
        if False not in tests or not every:
            every = _comprehend(interp, frame, rest, run) and every and None not in tests
    return every


def _in_scope(interp: Interpreter, frame: Frame, generators: list[ast.comprehension], run: Callable[[], None]) -> bool:
    """Run the body of a comprehension in a scope of its own."""
    outer = frame.env
    frame.env = Env("comprehension", outer)
    try:
        return _comprehend(interp, frame, generators, run)
    finally:
        frame.env = outer


def _comprehension(
    type_name: str,
) -> Callable[[Interpreter, Frame, ast.ListComp | ast.SetComp | ast.GeneratorExp], Value]:
    def handler(interp: Interpreter, frame: Frame, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
        result = Seq(type_name, (), frame.level, exact=False, node=node)
        chosen = False

        def element() -> None:
            nonlocal chosen
            value = evaluate(interp, frame, node.elt)
            if type_name == "set":
                used_as(interp, frame, node.elt, value, "a key")
            # Both arms of a condition are among the elements.
            chosen = chosen or (isinstance(node.elt, ast.IfExp) and len(options(value)) > 1)
            result.items.extend(options(value) if isinstance(node.elt, ast.IfExp) else (value,))

        result.exact = _in_scope(interp, frame, node.generators, element) and not chosen
        if not isinstance(node.elt, ast.IfExp) and not any(generator.ifs for generator in node.generators):
            result.sure = list(result.items)
        return result

    return handler


def _dict_comprehension(interp: Interpreter, frame: Frame, node: ast.DictComp) -> Value:
    result = DictVal((), frame.level, exact=False, node=node)

    def element() -> None:
        key = used_as(interp, frame, node.key, evaluate(interp, frame, node.key), "a key")
        result.items.append((key, evaluate(interp, frame, node.value)))

    result.exact = _in_scope(interp, frame, node.generators, element)
    return result


HANDLERS: dict[type[ast.expr], Callable[..., Value]] = {
    ast.ListComp: _comprehension("list"),
    ast.SetComp: _comprehension("set"),
    ast.GeneratorExp: _comprehension("generator"),
    ast.DictComp: _dict_comprehension,
}
