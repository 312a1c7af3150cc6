"""Flags that say the opposite of what they are given (NNX844).

A layer is told by ``deterministic`` or ``use_running_average`` that nothing is learned, and by ``train`` that something
is. What a flag means that a program passes on is said by its name alone, so only names are judged that leave no doubt.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from nnx_lint.model.classes import LibClass, UserClass, method_of
from nnx_lint.model.values import ClassVal, Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.edits import replace, unsafe
from nnx_lint.rules.intermediates.sowing import is_module
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.events import Called

RESTING = frozenset({"deterministic", "use_running_average", "is_eval", "eval_mode", "inference", "inference_mode"})
"""Names of flags that are true where nothing is learned."""

LEARNING = frozenset({"train", "training", "is_training", "is_train", "train_mode"})
"""Names of flags that are true where something is learned."""

BY_POSITION = {"nnx.BatchNorm": "use_running_average"}
"""The flag that a layer takes as the second argument of its call."""

MADE = ("nnx.Dropout", "nnx.BatchNorm", "nnx.MultiHeadAttention")


@judges_calls(rules.MODE_INVERTED, "()", *MADE)
def mode_inverted(event: Called, report: Reporter) -> None:
    for name, node in _flags(event):
        given, negated = (node.operand, True) if isinstance(node, ast.UnaryOp) else (node, False)
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            continue
        text = given.id if isinstance(given, ast.Name) else given.attr if isinstance(given, ast.Attribute) else ""
        sides = [side for side in (RESTING, LEARNING) if text in side]
        if not sides or name not in RESTING | LEARNING:
            continue
        agrees = name in sides[0]
        if agrees is negated:
            module = event.frame.module
            right = module.source.segment(given) if agrees else f"not {module.source.segment(given)}"
            meaning = "something is learned" if name in LEARNING else "nothing is learned"
            slots: dict[str, Any] = {"given": module.source.segment(node), "mend": f"{name}={right}"}
            fix = unsafe(f"Write `{right}`", replace(module.source, node, right))
            report(module, node, fix=fix, name=name, meaning=meaning, **slots)


def _flags(event: Called) -> Iterator[tuple[str, ast.expr]]:
    """The arguments that a layer, of the library or of the project, takes as a flag."""
    call, callee = event.node, event.callee
    if not isinstance(call, ast.Call):
        return
    cls = callee.cls if isinstance(callee, (ClassVal, Obj)) else None
    if not isinstance(callee, ClassVal) and not is_module(callee):
        return
    for item in call.keywords:
        if item.arg is not None and (isinstance(cls, LibClass) or _takes(cls, item.arg)):
            yield item.arg, item.value
    second = BY_POSITION.get(getattr(cls, "canonical", ""))
    if second is not None and isinstance(callee, Obj) and len(call.args) > 1:
        yield second, call.args[1]


def _takes(cls: object, name: str) -> bool:
    found = method_of(cls, "__call__") if isinstance(cls, UserClass) else None
    arguments = found[1].node.args if found is not None else None
    return arguments is not None and any(item.arg == name for item in (*arguments.args, *arguments.kwonlyargs))
