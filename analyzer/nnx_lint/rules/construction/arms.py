"""Objects that a condition hands to one of several places, each of which is for another kind of object.

``if self.mode == "multi": return self.build_all(self.readers)`` before ``return self.build_one(self.readers)``: which
of the two runs and what the readers are belong together, in a way that no analysis sees. So what one arm asks of an
object says nothing, where another arm asks something else of it.

Invariant: only texts are compared, so another name for the object is another object.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.rules.program import FUNCTIONS, ancestors, block_of
from nnx_lint.rules.repeating import goes_on
from nnx_lint.syntax.dotted import dotted_name
from nnx_lint.syntax.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module


def is_for_one_of_several(frame: Frame, node: ast.Attribute) -> bool:
    """Whether a condition on the way to a place does something else with the same object in another arm."""
    asked: list[ast.expr] = [node.value]
    place: ast.AST | None = node
    inner: Frame | None = frame
    while inner is not None and place is not None:
        names = {name for each in asked if (name := dotted_name(each)) is not None}
        if names and any(
            isinstance(part, (ast.Attribute, ast.Name)) and dotted_name(part) in names
            for arm in _other_arms(inner.module, place)
            for part in walk(arm)
        ):
            return True
        place, inner = inner.call, inner.caller
        asked = [*place.args, *(item.value for item in place.keywords)] if isinstance(place, ast.Call) else []
    return False


def _other_arms(module: Module, node: ast.AST) -> Iterator[ast.AST]:
    """What runs in a function where a place does not, since a condition around it, or one before it, says so."""
    inner = node
    for outer in ancestors(module, node):
        if isinstance(outer, ast.If):
            yield from outer.body if any(inner is part for part in outer.orelse) else outer.orelse
        elif isinstance(outer, ast.IfExp):
            yield outer.body if inner is outer.orelse else outer.orelse
        if isinstance(inner, ast.stmt):
            block = block_of(module, inner)
            place = block.index(inner)
            for before in block[:place]:
                if isinstance(before, ast.If) and not goes_on(before.body):
                    yield from before.body
            if isinstance(inner, ast.If) and not goes_on(inner.body):
                yield from block[place + 1 :]
        if isinstance(outer, FUNCTIONS):
            return
        inner = outer
