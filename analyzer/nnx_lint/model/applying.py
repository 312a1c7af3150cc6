"""Calls of an object by its structure: ``graphdef.apply(params, rest)(x)``.

``apply`` takes States and puts the object together; what it gives is called in place of the object, and returns two
things: what the object returned, and the structure and State that it has afterwards.

Invariant: the object is a new one, as after ``nnx.merge``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.containers import Seq
from nnx_lint.model.crossing import refresh
from nnx_lint.model.states import GraphDefVal, StateVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Obj, Value

if TYPE_CHECKING:
    import ast

    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter


class AppliedVal(Value):
    """What ``graphdef.apply(...)`` gives: it is called in place of the object that the graphdef is ``of``."""

    __slots__ = ("of",)

    def __init__(self, of: Value) -> None:
        self.of = of


class Outcome(Seq):
    """What such a call gives: a pair of the result, and of the structure and State afterwards."""

    __slots__ = ()


def called(interp: Interpreter, frame: Frame, applied: AppliedVal, args: Arguments, node: ast.AST, name: str) -> Value:
    """Call the object that is put together for the call."""
    from nnx_lint.model.calls import invoke

    of = present(applied.of)
    merged = refresh(of, frame.level) if isinstance(of, Obj) else UNKNOWN
    if isinstance(merged, Obj):
        merged.assumed = merged.assumed or merged.origin is None  # as after `nnx.merge`
        merged.gained = merged.gained and None
    result = invoke(interp, frame, merged, args, node, name)
    after = Seq("tuple", [GraphDefVal(applied.of), StateVal(merged, frame.level)], frame.level)
    return Outcome("tuple", [result, after], frame.level)
