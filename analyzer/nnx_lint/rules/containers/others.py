"""Keys of ``nnx.Dict`` (NNX854), elements and arguments of ``nnx.Sequential`` (NNX855, NNX856), and functions that walk
through what is no object (NNX860) or cannot be changed (NNX861).
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit, Fix
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import LibClass, UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.elements import library_elements
from nnx_lint.model.events import Called
from nnx_lint.model.values import (
    NUMBER,
    Array,
    Const,
    Obj,
    Value,
)
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.attributes.mends import DICT_NAMES
from nnx_lint.rules.edits import is_parenthesized, wrap
from nnx_rules.rules import construction as rules
from nnx_rules.signatures import CALL_KEYWORDS

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module


# -- keys --------------------------------------------------------------------------------------------------------------


@judges_calls(rules.DICT_KEYS, "nnx.Dict")
def dict_keys(event: Called, report: Reporter) -> None:
    module = event.frame.module
    given = event.args[0] if event.args else None
    node = event.nodes[0] if event.nodes else None
    written = [key for key in node.keys if key is not None] if isinstance(node, ast.Dict) else []
    for key, _ in given.items if isinstance(given, DictVal) else ():
        if key is NUMBER:
            what = f"`{module.source.segment(node.key)}`" if isinstance(node, ast.DictComp) else "(a number)"
            report(module, node or event.node, key=what, problem="is no string", mend="make one: `str(...)`")
            break
        if not isinstance(key, Const) or (isinstance(key.value, str) and key.value not in DICT_NAMES):
            continue
        place = next((each for each in written if isinstance(each, ast.Constant) and each.value == key.value), None)
        where = place if place is not None else node if node is not None else event.node
        if isinstance(key.value, str):
            problem, mend = "hides the method of this name", f'use another one: `"{key.value}_"`'
            report(module, where, key=f'`"{key.value}"`', problem=problem, mend=mend)
        else:
            mend = f'write `"{key.value}"`'
            fix = partial(_as_text, module, place) if isinstance(key.value, int) and place is not None else None
            report(module, where, fix=fix, key=f"`{key.value!r}`", problem="is no string", mend=mend)
    for name in event.keywords.keys() & DICT_NAMES:
        problem, mend = "hides the method of this name", f"use another one: `{name}_`"
        report(module, event.node, key=f"`{name}`", problem=problem, mend=mend)


def _as_text(module: Module, node: ast.expr) -> Fix:
    return Fix("Write a string", (Edit(module.source.span(node), f'"{module.source.segment(node)}"'),))


# -- sequences of layers -----------------------------------------------------------------------------------------------


@judges_calls(rules.SEQUENTIAL, "nnx.Sequential")
def sequential_element(event: Called, report: Reporter) -> None:
    for value, node in zip(event.args, event.nodes, strict=False):
        if value is not None and not isinstance(node, ast.Starred) and _cannot_be_called(value):
            mend = (
                "pass the layers one by one: `nnx.Sequential(*layers)`"
                if isinstance(value, Seq)
                else "pass a layer or a function"
            )
            report(event.frame.module, node, value=value.describe(), mend=mend)


def _cannot_be_called(value: Value) -> bool:
    """Whether a value certainly is no layer and no function; a container of layers is a mistake of its own."""
    if isinstance(value, Obj):
        return isinstance(value.cls, LibClass) and value.cls.name in {"List", "Dict"}
    if isinstance(value, Const):
        return value.value is not None and value.value is not ...
    return isinstance(value, Array) or (isinstance(value, Seq) and value.facts().holds_data is False)


@judges_calls(rules.SEQUENTIAL_KEYWORD, "()")
def sequential_keyword(event: Called, report: Reporter) -> None:
    obj = event.callee
    if not isinstance(obj, Obj) or not obj.cls.derives_from("nnx.Sequential") or not event.keywords:
        return
    if isinstance(obj.cls, UserClass) and obj.cls.find("__call__") is not None:
        return
    layers = obj.attrs.get("layers")
    held = library_elements(layers.value) if layers is not None and isinstance(layers.value, Obj) else None
    first = held.items[0] if held is not None and held.exact and held.items else None
    known = _keywords(first)
    for name in event.keywords.keys() - {"rngs", "**"} if known is not None else ():
        if known is not None and name not in known:
            what = first.describe() if first is not None else "it"
            report(event.frame.module, event.node, keyword=name, value=what)


def _keywords(value: Value | None) -> frozenset[str] | None:
    if isinstance(value, Obj) and isinstance(value.cls, LibClass):
        return CALL_KEYWORDS.get(value.cls.name)
    if isinstance(value, FuncVal) and value.node.args.kwarg is None:
        return frozenset(item.arg for item in (*value.node.args.args, *value.node.args.kwonlyargs))
    return None


# -- walks -------------------------------------------------------------------------------------------------------------


@judges_calls(rules.NOT_A_NODE, "nnx.iter_children", "nnx.iter_module_children")
def iteration_over_non_node(event: Called, report: Reporter) -> None:
    value = event.args[0] if event.args else None
    plain = isinstance(value, Array) or (isinstance(value, Const) and value.value is not ...)
    if value is not None and plain:
        report(event.frame.module, event.nodes[0], function=event.name, value=value.describe())


@judges_calls(rules.IMMUTABLE_MAP, "nnx.recursive_map")
def recursive_map_of_tuple(event: Called, report: Reporter) -> None:
    value = event.args[1] if len(event.args) > 1 else None
    graph = event.keywords.get("graph")
    if isinstance(value, Seq) and value.type == "tuple" and not (isinstance(graph, Const) and graph.value is False):
        report(event.frame.module, event.nodes[1], fix=partial(_as_list, event.frame.module, event.nodes[1]))


def _as_list(module: Module, node: ast.expr) -> Fix | None:
    """Write a list for a tuple."""
    source = module.source
    if not isinstance(node, ast.Tuple):
        return Fix("Make a list of it", wrap(source, node, "list")) if isinstance(node, (ast.Name, ast.Call)) else None
    span = source.span(node)
    inner = source.text[span.start + 1 : span.end - 1] if is_parenthesized(source, node) else source.segment(node)
    return Fix("Write a list", (Edit(span, f"[{inner}]"),))
