"""What stays of an evaluation that has ended.

Others still ask it which module it was of, what it used and saw, and what the functions do that it ran. All else was
for itself. There are thousands, and all of them live as long as their modules, so they hold no room for what they do
not have.

Invariants: an evaluation that is settled executes nothing any more; that of a module's body is not, since a server may
execute some of its statements anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nnx_lint.model.interpreter import Interpreter

# One of each for all: nobody adds to what an evaluation has that has ended.
_LIST: list[Any] = []
_DICT: dict[Any, Any] = {}
_SET: set[Any] = set()


def settle(evaluation: Interpreter) -> None:
    """Give up what an evaluation had for itself."""
    evaluation.functions = evaluation.classes = evaluation.provisional = _LIST
    evaluation.runs = evaluation.uses = evaluation.sizes = _DICT
    evaluation.transforms = evaluation.transforms or _LIST
    evaluation.adopted = evaluation.adopted or _DICT
    evaluation.ran = evaluation.ran or _SET
    evaluation.used = evaluation.used or _SET
    evaluation.effects.settle()


def untie(evaluation: Interpreter) -> None:
    """Let go of the functions that ran under transforms, unless one that is transformed in them is still to be run.

    Such a function and its scope hold each other: nobody would collect them, and all that they knew.
    """
    awaited = {id(scope.whole) for _, frame in evaluation.transforms for scope in frame.scope}
    for scope in evaluation.traces:
        if id(scope) not in awaited:
            scope.frame = None
            scope.reads.clear()
            scope.changes.clear()
    evaluation.traces.clear()
