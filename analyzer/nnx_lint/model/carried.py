"""What the names that a loop assigns stand for from round to round.

A loop whose rounds are not known runs once for all. Of the names that it assigns, objects and arrays are at its start
what they are in the first round. Where the round leaves an array of another shape, or a tuple where an array was, the
next one begins with something else: the loop runs once more, so that what a second round cannot do is seen.

Invariants: a shape that a round changes is not known in the second one; afterwards a name is known only if a further
round would leave the same kind of value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.crossing import shapeless
from nnx_lint.model.states import OptStateVal, StateVal
from nnx_lint.model.unions import options
from nnx_lint.model.values import UNKNOWN, Array, Obj, Unknown, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

STEADY = (Array, Obj, StateVal, OptStateVal, Seq, DictVal, FuncVal)
"""Values that a loop starts with."""


def second_round(
    assigned: Iterable[str], before: Mapping[str, Value], left: Mapping[str, Value]
) -> dict[str, Value] | None:
    """What the names that a loop assigns are when its second round begins, where that differs from the first."""
    known = {name: before[name] for name in assigned if name in before}
    turned = {name: left[name] for name, value in known.items() if _becomes_tuple(value, left.get(name))}
    if not turned and not any(_reshaped(value, left.get(name)) for name, value in known.items()):
        return None
    return {name: shapeless(value) for name, value in known.items() if isinstance(value, STEADY)} | turned


def steady(before: Value, after: Value | None) -> bool:
    """Whether what a round of a loop leaves is of the kind that it started with."""
    after = UNKNOWN if after is None else after
    if isinstance(before, Array):
        return isinstance(after, Array) and before.level == after.level
    if isinstance(before, Obj):
        return isinstance(after, Obj) and before.cls is after.cls and before.level == after.level
    if isinstance(before, StateVal):
        return all(
            isinstance(option, StateVal) and before.of is option.of and before.level == option.level
            for option in options(after)
        )
    if isinstance(before, OptStateVal):
        return isinstance(after, OptStateVal) and before.of is after.of
    return before is after or (type(before) is type(after) and isinstance(before, (Seq, DictVal)))


def _reshaped(before: Value, after: Value | None) -> bool:
    """Whether the shape that an array started with is another one after a round."""
    return isinstance(before, Array) and before.form is not None and not (
        isinstance(after, Array) and after.form == before.form
    )  # fmt: skip


def _becomes_tuple(before: Value, after: Value | None) -> bool:
    """Whether a round leaves all that a function returns where an array was, of which the next one takes one part."""
    begun = isinstance(before, (Array, Unknown))  # what is not known may be an array, and is a tuple afterwards anyway
    return begun and isinstance(after, Seq) and after.type == "tuple" and after.exact
