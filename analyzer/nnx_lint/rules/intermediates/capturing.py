"""``nnx.capture``: its results (NNX644), the types that it and ``nnx.pop`` take (NNX645), and what it does not take
(NNX646).
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit, Fix, Span
from nnx_lint.model.classes import is_subtype
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import Called, Unpacked
from nnx_lint.model.library import FilterVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import (
    Array,
    ClassVal,
    Const,
    Obj,
)
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.autodiff.gradients import unpacks_call
from nnx_lint.rules.edits import append_argument, replace, unsafe
from nnx_lint.rules.intermediates.reading import Capture, capture_around, capture_at
from nnx_lint.rules.intermediates.sowing import argument, sown_name, sows, type_name
from nnx_lint.rules.spelling import spelled
from nnx_lint.rules.traces.captures import holds
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import intermediates as rules

if TYPE_CHECKING:
    from nnx_lint.model.classes import ClassBase
    from nnx_lint.model.modules import Module


@judges(rules.CAPTURE_RESULTS, Unpacked, when=unpacks_call)
def capture_results(event: Unpacked, report: Reporter) -> None:
    call = event.value_node
    capture = capture_at(event.frame.env, call.func) if isinstance(call, ast.Call) else None
    if capture is None or not capture.counted or event.count is None:
        return
    types = len(capture.types)
    if isinstance(event.value_node, ast.Call) and capture.node is event.value_node:
        return
    if types == 0:
        single = isinstance(event.value, (Array, Const)) or (isinstance(event.value, Obj) and event.value.cls.is_pytree)
        if single:
            fix = partial(_capturing_intermediates, event, capture) if event.count == 2 else None
            alone = "the result alone"
            report(event.frame.module, event.target, fix=fix, types="no type", results=alone, targets=event.count)
    elif event.count != types + 1:
        named = "one type" if types == 1 else f"{types} types"
        results = f"{types + 1} values, the result and {'a State' if types == 1 else f'{types} States'}"
        report(event.frame.module, event.target, types=named, results=results, targets=event.count)


def _capturing_intermediates(event: Unpacked, capture: Capture) -> Fix | None:
    """Name the type that nearly everybody sows."""
    module = event.frame.module
    name = spelled("nnx.Intermediate", module, event.frame.env)
    if name is None or all(node is not capture.node for node in walk(module.source.tree)):
        return None
    return unsafe(f"Capture what is an `{name}`", append_argument(module.source, capture.node, name))


@judges_calls(rules.CAPTURED_TYPE_DIFFERS, ".sow")
def captured_type_differs(event: Called, report: Reporter) -> None:
    kind, name = argument(event, 0, "variable_type"), sown_name(event)
    if sows(event) is None or not isinstance(kind, ClassVal) or name is None:
        return
    capture = capture_around(event.frame)
    if not isinstance(capture, Capture) or None in capture.types or not capture.counted:
        return
    types = [item for item in capture.types if item is not None]
    wider = [item for item in types if item is not kind.cls and is_subtype(kind.cls, item)]
    if kind.cls in types or not wider:
        return
    module = _module_of(event, capture)
    if module is None:
        return
    sown = (related(event.frame.module, event.node, "sown here"),)
    path = f"{type_name(event.frame)}.{name}"
    fix = partial(_capturing, module, capture, types.index(wider[0]), kind.cls)
    taking = {"captured": wider[0].name, "taking": "nnx.capture", "verb": "capture"}
    report(module, capture.node, fix=fix, path=path, sown=kind.cls.name, related=sown, **taking)


class Sown(list[tuple[Obj, ClassVal, str]]):
    """What was sown: by which object, as which type, and the path that messages show."""


@judges_calls(rules.CAPTURED_TYPE_DIFFERS, ".sow")
def note_sown(event: Called, report: Reporter) -> None:
    kind, obj = argument(event, 0, "variable_type"), sows(event)
    if obj is not None and isinstance(kind, ClassVal):
        report.memory(Sown).append((obj, kind, f"{type_name(event.frame)}.{sown_name(event)}"))


@judges_calls(rules.CAPTURED_TYPE_DIFFERS, "nnx.pop")
def popped_type_differs(event: Called, report: Reporter) -> None:
    """``nnx.pop(model, nnx.Intermediate)`` of a model that has sown values of another type, which the file takes out
    nowhere.
    """
    frame, target = event.frame, present(event.args[0]) if event.args and event.args[0] is not None else None
    filters = [value.cls for value in event.args[1:] if isinstance(value, ClassVal)]
    if not isinstance(target, Obj) or not filters or len(filters) < len(event.args) - 1 or frame.doubtful:
        return
    sown = [(kind, path) for obj, kind, path in report.memory(Sown) if obj is target or holds(target, obj)]
    if not sown or any(is_subtype(kind.cls, each) for kind, _ in sown for each in filters):
        return
    kind, path = sown[0]
    if any(_is_taken_out(frame.module, name) for name, value in frame.module.env.names.items() if value is kind):
        return
    names, where = ", ".join(cls.name for cls in filters), event.node
    report(frame.module, where, captured=names, path=path, sown=kind.cls.name, taking="nnx.pop", verb="pop")


@remembered
def _names_outside_of_sow(statement: ast.AST) -> frozenset[str]:
    """The names that a statement reads, but for those that say as what something is sown."""
    calls = [node for node in walk(statement) if isinstance(node, ast.Call) and last_name(node.func) == "sow"]
    sown = {part for call in calls for part in walk(call)}
    return frozenset(
        node.id
        for node in walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in sown
    )


def _is_taken_out(module: Module, name: str) -> bool:
    """Whether a file names a type of Variables for anything else than to sow as it."""
    return module.has(name, _names_outside_of_sow)


def _capturing(module: Module, capture: Capture, place: int, cls: ClassBase) -> Fix | None:
    """Capture the type that is sown, where the file has a name for it."""
    node = capture.node.args[place - len(capture.types)]
    names = [name for name, value in module.env.names.items() if isinstance(value, ClassVal) and value.cls is cls]
    return unsafe(f"Capture what is a `{names[0]}`", replace(module.source, node, names[0])) if names else None


def _module_of(event: Called, capture: Capture) -> Module | None:
    """The module whose text has the call of ``nnx.capture``."""
    frame = event.frame
    while True:
        if any(node is capture.node for node in walk(frame.module.source.tree)):
            return frame.module
        if frame.caller is None:
            return None
        frame = frame.caller


KEYWORDS = frozenset({"init", "method_outputs"})


@judges_calls(rules.CAPTURE_ARGUMENTS, "nnx.capture")
def capture_arguments(event: Called, report: Reporter) -> None:
    module, call = event.frame.module, event.node
    if not isinstance(call, ast.Call):
        return
    for item in call.keywords:
        if item.arg == "method_output_type":
            start = module.source.span(item).start
            fix = Fix("Write `method_outputs`", (Edit(Span(start, start + len(item.arg)), "method_outputs"),))
            problem, mend = "has no argument `method_output_type`", "it is called `method_outputs`"
            report(module, item, fix=fix, problem=problem, mend=mend)
    for place, (value, node) in enumerate(zip(event.args, event.nodes, strict=False)):
        filters = isinstance(value, (FilterVal, Seq)) or (isinstance(value, Const) and (value.value is ... or place))
        words = isinstance(value, Const) and isinstance(value.value, (str, int, float, bool))
        if value is not None and (filters or words):
            problem = f"takes Variable types, and `{module.source.segment(node)}` is none"
            report(module, node, problem=problem, mend="name the type: `nnx.capture(model, nnx.Intermediate)`")
