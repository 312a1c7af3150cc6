"""``nnx.List``: places of a status of their own (NNX850), deletions from the middle (NNX851), what it does not support
(NNX852), and comparisons that are always true (NNX853).
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Fix
from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.containers import Seq
from nnx_lint.model.elements import element_of, library_elements
from nnx_lint.model.events import Called, ContainerUsed, ItemSet, Mutated
from nnx_lint.model.expressions import text_of
from nnx_lint.model.unions import options
from nnx_lint.model.values import (
    UNKNOWN,
    Array,
    Const,
    HostArray,
    Obj,
    Value,
)
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.autodiff.tracing import is_traced_parameter
from nnx_lint.rules.edits import replace, wrap
from nnx_lint.rules.program import is_tried
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax.walk import walk
from nnx_rules.attributes import DATA_KINDS
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame


def is_list(value: Value | None) -> bool:
    """Whether a value certainly is an ``nnx.List``."""
    return (
        isinstance(value, Obj)
        and value.cls.derives_from("nnx.List")
        and getattr(value.cls, "canonical", None) is not None
    )


def receiver_of(event: Called) -> Obj | None:
    """The ``nnx.List`` whose method is called."""
    callee = event.callee
    receiver = callee.receiver if isinstance(callee, BoundMethod) else None
    return receiver if isinstance(receiver, Obj) and is_list(receiver) else None


def name_of(node: ast.AST) -> str:
    """What a method is called on."""
    func = node.func if isinstance(node, ast.Call) else None
    return text_of(func.value) if isinstance(func, ast.Attribute) else "the list"


# -- places ------------------------------------------------------------------------------------------------------------


@judges_calls(rules.LIST_STATUS, ".insert")
def list_status_clash(event: Called, report: Reporter) -> None:
    obj, given = receiver_of(event), event.args[1] if len(event.args) > 1 else None
    index = event.args[0] if event.args else None
    held = library_elements(obj) if obj is not None else None
    known = held is not None and held.node is not None and not held.fills
    if held is None or given is None or not known or not isinstance(index, Const) or not isinstance(index.value, int):
        return
    before = _written(held, given)
    place = min(index.value, len(before)) if index.value >= 0 else max(0, len(before) + index.value)
    moved = [*before[:place], given, *before[place:]]
    for position, (old, new) in enumerate(zip(before, moved, strict=False)):
        if isinstance(old, Const) and new.facts().kind in DATA_KINDS:
            value, plain = new.describe(), repr(old.value)
            report(
                event.frame.module,
                event.node,
                fix=partial(_marked, event.frame, held, position),
                name=name_of(event.node),
                index=position,
                value=value,
                plain=plain,
            )
            return


@judges(rules.LIST_STATUS, ItemSet)
def list_item_clash(event: ItemSet, report: Reporter) -> None:
    """The same by ``layers[i] = layer``, as for a list of ``None`` that is filled later."""
    node, held = event.node, event.before
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    if not held or not isinstance(target, ast.Subscript) or event.value.facts().kind not in DATA_KINDS:
        return
    if is_list(event.obj) and all(isinstance(item, Const) for item in held):
        index, plain = text_of(target.slice), repr(held[0].value) if isinstance(held[0], Const) else ""
        value = event.value.describe()
        report(event.frame.module, node, name=text_of(target.value), index=index, value=value, plain=plain)


def _marked(frame: Frame, held: Seq, position: int) -> Fix | None:
    """Mark an element as data, where the list is written."""
    nodes = held.node.elts if isinstance(held.node, ast.List) else []
    tree = frame.module.tree
    name = spelled("nnx.data", frame.module)
    if name is None or position >= len(nodes) or not any(part is nodes[position] for part in walk(tree)):
        return None
    return Fix(f"Wrap the element in `{name}(...)`", wrap(frame.module.source, nodes[position], name))


def _written(held: Seq, given: Value) -> list[Value]:
    """The elements of a list as it was before the call, which has put the new one at the end; those that are marked as
    data are no plain values.
    """
    elements = [UNKNOWN if isinstance(node, ast.Call) and isinstance(item, Const) else item
                for item, node in zip(held.items, getattr(held.node, "elts", []), strict=False)]  # fmt: skip
    return elements if len(elements) == len(held.items) - 1 and held.items[-1] is given else []


# -- deletions ---------------------------------------------------------------------------------------------------------


@judges_calls(rules.LIST_DELETE, ".pop")
def pop_from_middle(event: Called, report: Reporter) -> None:
    held = receiver_of(event)
    if held is not None and event.args and _is_middle(event.args[0]) and _holds_data(held):
        report(event.frame.module, event.node, name=name_of(event.node))


def _is_middle(index: Value | None) -> bool:
    return isinstance(index, Const) and isinstance(index.value, int) and index.value != -1


def deletes(event: Mutated) -> bool:
    """Whether an element of a container is deleted."""
    return event.action == "`del [...]`" and is_list(event.target) and _holds_data(event.target)


def _holds_data(held: Value) -> bool:
    """Whether a list holds something that a model has: a number that stays at its old place is not seen."""
    elements = library_elements(held) if isinstance(held, Obj) else None
    known = [*elements.items, *elements.certain, element_of(elements, 0)] if elements is not None else []
    return any(isinstance(option, (Array, Obj)) for item in known for option in options(item))


@judges(rules.LIST_DELETE, Mutated, when=deletes)
def delete_from_middle(event: Mutated, report: Reporter) -> None:
    node = event.node
    for target in node.targets if isinstance(node, ast.Delete) else [node]:
        index = target.slice if isinstance(target, ast.Subscript) else None
        one = isinstance(index, ast.Constant) and isinstance(index.value, int)
        if one or (isinstance(index, ast.Slice) and index.upper is not None):
            report(event.frame.module, target, fix=partial(_without, event.frame, node, target), name=event.name)


def _without(frame: Frame, statement: ast.AST, target: ast.AST) -> Fix | None:
    """Make a new list of the other elements."""
    if not isinstance(statement, ast.Delete) or len(statement.targets) != 1 or not isinstance(target, ast.Subscript):
        return None
    name, owner = spelled("nnx.List", frame.module, frame.env), frame.module.source.segment(target.value)
    if name is None:
        return None
    cut = target.slice
    if isinstance(cut, ast.Slice) and cut.lower is None and cut.step is None and cut.upper is not None:
        text = f"{owner} = {name}(list({owner})[{frame.module.source.segment(cut.upper)}:])"
        return Fix("Make a list of the others", replace(frame.module.source, statement, text), Applicability.UNSAFE)
    if not isinstance(cut, ast.Constant) or not isinstance(cut.value, int):
        return None
    index = cut.value
    kept = f"list({owner})[1:]" if index == 0 else f"[*list({owner})[:{index}], *list({owner})[{index + 1}:]]"
    text = f"{owner} = {name}({kept})"
    return Fix("Make a list of the others", replace(frame.module.source, statement, text), Applicability.UNSAFE)


# -- what it does not support ------------------------------------------------------------------------------------------


def indexes_list(event: ContainerUsed) -> bool:
    """Whether an ``nnx.List`` is indexed or added to something."""
    return event.operator in {ast.Subscript, ast.Add} and is_list(event.container)


@judges(rules.LIST_UNSUPPORTED, ContainerUsed, when=indexes_list)
def list_unsupported(event: ContainerUsed, report: Reporter) -> None:
    module, node, other = event.frame.module, event.node, event.other
    if isinstance(node, ast.Subscript):
        name, index = text_of(node.value), module.source.segment(node.slice)
        if isinstance(other, Const) and isinstance(other.value, str):
            report(
                module,
                node,
                name=name,
                problem="its index is an int or a slice, not a string",
                mend="use `nnx.Dict` for names",
            )
        elif (isinstance(other, Array) and _is_traced(event.frame, other)) or (
            isinstance(other, Const)
            and isinstance(node.slice, ast.Name)
            and is_traced_parameter(event.frame, node.slice.id)
        ):
            problem = f"`{index}` is traced, and which element it means is not known while the function is compiled"
            report(module, node, name=name, problem=problem, mend="index with a Python int, or use `nnx.switch`")
        elif isinstance(other, Array) and not isinstance(other, HostArray) and report.runs_on(module)[0] == "flax":
            problem = f"its index is an int or a slice, and `{index}` is an array"
            report(module, node, name=name, problem=problem, mend=f"make it one: `int({index})`")
    elif isinstance(node, ast.BinOp) and (isinstance(other, Seq) or is_list(other)):
        held = (
            node.left if is_list(event.container) and not isinstance(node.left, (ast.List, ast.Tuple)) else node.right
        )
        problem = "it has no `+`"
        fix = partial(_joined, event.frame, node)
        report(module, node, fix=fix, name=text_of(held), problem=problem, mend="write `nnx.List([*a, *b])`")


LIST_METHODS = {"copy": "write `nnx.List(items)`", "sort": "assign a new one: `nnx.List(sorted(items, key=...))`"}
"""Methods of Python's lists that it lacks, with what to do instead."""


@judges_calls(rules.LIST_UNSUPPORTED, *(f".{name}" for name in LIST_METHODS))
def list_method(event: Called, report: Reporter) -> None:
    func = event.node.func if isinstance(event.node, ast.Call) else None
    if isinstance(func, ast.Attribute) and is_list(event.owner) and not is_tried(event.frame.module, event.node):
        mend = LIST_METHODS[func.attr]
        report(event.frame.module, event.node, name=text_of(func.value), problem=f"it has no `{func.attr}`", mend=mend)


def _joined(frame: Frame, node: ast.BinOp) -> Fix | None:
    """Make a list of the elements of both."""
    name, source = spelled("nnx.List", frame.module, frame.env), frame.module.source
    parts: list[str] = []
    for side in (node.left, node.right):
        written = side.elts if isinstance(side, (ast.List, ast.Tuple)) else None
        if written is None and not isinstance(side, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
            return None
        parts += [f"*{source.segment(side)}"] if written is None else map(source.segment, written)
    return Fix("Make a list of both", replace(source, node, f"{name}([{', '.join(parts)}])")) if name else None


def _is_traced(frame: Frame, index: Array) -> bool:
    return any(scope.level <= index.level for scope in frame.scope) and index.level > 0


# -- comparisons -------------------------------------------------------------------------------------------------------


def compares_lists(event: ContainerUsed) -> bool:
    """Whether two lists are compared."""
    return event.operator in {ast.Eq, ast.NotEq} and is_list(event.container) and is_list(event.other)


@judges(rules.LIST_COMPARISON, ContainerUsed, when=compares_lists)
def list_comparison(event: ContainerUsed, report: Reporter) -> None:
    left = event.node.left if isinstance(event.node, ast.Compare) else event.node
    report(event.frame.module, event.node, fix=partial(_as_lists, event), name=text_of(left))


def _as_lists(event: ContainerUsed) -> Fix | None:
    """Compare what is in the lists."""
    node = event.node
    if not isinstance(node, ast.Compare) or len(node.comparators) != 1 or event.frame.env.lookup("list") is not None:
        return None
    source = event.frame.module.source
    edits = (*wrap(source, node.left, "list"), *wrap(source, node.comparators[0], "list"))
    return Fix("Compare the elements", edits, Applicability.UNSAFE)


@judges_calls(rules.LIST_COMPARISON, ".index", ".remove", ".count")
def list_search(event: Called, report: Reporter) -> None:
    obj, given = receiver_of(event), event.args[0] if event.args else None
    if obj is not None and is_list(given) and event.nodes:
        report(event.frame.module, event.node, name=text_of(event.nodes[0]))
