"""Wrong arguments of the classes that filters are made with (NNX309, NNX312, NNX319, NNX320), and ``pop`` without any
(NNX316).
"""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.containers import Seq
from nnx_lint.model.library import FilterVal
from nnx_lint.model.strings import HOLE, PatternVal, text_in
from nnx_lint.model.values import (
    AliasVal,
    ClassVal,
    Const,
    UnionTypeVal,
    Value,
)
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.edits import append_argument, unsafe
from nnx_lint.rules.filters.reading import FILTERING, filter_lists, gives_filters, library_name
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import filters as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Module


# -- Not -------------------------------------------------------------------------------------------------------------


@judges_calls(rules.NOT_ARITY, "nnx.Not")
def not_filter_arity(event: Called, report: Reporter) -> None:
    if library_name(event.callee) != "nnx.Not" or None in event.args or "**" in event.keywords:
        return
    if len(event.args) == 1 and not event.keywords:
        return
    given = f"{len(event.args)}" if event.args or not event.keywords else "a keyword"
    report(event.frame.module, event.node, fix=lambda: _one_tuple(event), given=given)


def _one_tuple(event: Called) -> Fix | None:
    call = event.node
    if not isinstance(call, ast.Call) or len(call.args) < 2 or call.keywords:
        return None
    source = event.frame.module.source
    start, end = source.span(call.args[0]).start, source.span(call.args[-1]).end
    return Fix("Put the filters into a tuple", (Edit(Span(start, start), "("), Edit(Span(end, end), ")")))


# -- PathContains ----------------------------------------------------------------------------------------------------


@judges_calls(rules.PATH_NEVER_MATCHES, "nnx.PathContains")
def path_never_matches(event: Called, report: Reporter) -> None:
    if library_name(event.callee) != "nnx.PathContains" or not event.args or not event.nodes:
        return
    key, node = event.args[0], event.nodes[0]
    text = text_in(key) if isinstance(key, (Const, PatternVal)) else None
    parts = components(text) if text is not None and _is_exact(event) else None
    if text is None or parts is None or is_key(event.frame.module, text):
        return
    name = ast.unparse(event.node.func) if isinstance(event.node, ast.Call) else event.name
    written = [f"{name}({'...' if part == HOLE else repr(part)})" for part in parts]
    mend = f"{name.removesuffix('PathContains')}All({', '.join(written)})"
    shown = repr(text) if isinstance(key, Const) else ast.unparse(node)
    report(
        event.frame.module,
        node,
        fix=lambda: _by_components(event, name, mend),
        filter=f"PathContains({shown})",
        value=shown,
        mend=f"`{mend}`",
    )


def _is_exact(event: Called) -> bool:
    exact = event.args[1] if len(event.args) > 1 else event.keywords.get("exact", Const(True))
    return isinstance(exact, Const) and exact.value is True and "**" not in event.keywords


def components(key: str) -> list[str | int] | None:
    """The components of a dotted or slashed path; ``None`` if the key can be one component. Some may not be known."""
    for separator in (".", "/"):
        parts = key.split(separator)
        named = any(part.isidentifier() for part in parts)
        if len(parts) > 1 and named and all(part.isidentifier() or part.isdecimal() or part == HOLE for part in parts):
            return [int(part) if part.isdecimal() else part for part in parts]
    return None


def is_key(module: Module, text: str) -> bool:
    """Whether the module has a dict with such a key, which may become the name of an attribute; of one that is known in
    part, whether the module writes it in another place.
    """
    if HOLE in text:
        longest = max(text.split(HOLE), key=len)
        return module.mentions(re.compile(f"{re.escape(longest)}.*{re.escape(longest)}", re.DOTALL))
    dicts = (node for node in walk(module.tree) if isinstance(node, ast.Dict))
    return any(isinstance(key, ast.Constant) and key.value == text for node in dicts for key in node.keys)


def _by_components(event: Called, name: str, text: str) -> Fix | None:
    if not name.endswith(".PathContains") or not isinstance(event.nodes[0], ast.Constant):
        return None
    return Fix(
        "Ask for each component", (Edit(event.frame.module.source.span(event.node), text),), Applicability.UNSAFE
    )


# -- mappings --------------------------------------------------------------------------------------------------------


@judges_calls(rules.UNHASHABLE_FILTER_KEY, *FILTERING, when=gives_filters)
def unhashable_filter_key(event: Called, report: Reporter) -> None:
    for found in filter_lists(event):
        if found.spec is not None:
            continue
        for item in found.given:
            if isinstance(item.value, Seq) and item.value.type == "list":
                report(item.module, item.node, fix=partial(_tuple, item.module, item.node))


def _tuple(module: Module, node: ast.expr) -> Fix | None:
    if not isinstance(node, ast.List):
        return None
    span = module.source.span(node)
    inner = module.source.segment(Span(span.start + 1, span.end - 1))
    comma = "," if len(node.elts) == 1 and not inner.rstrip().endswith(",") else ""
    return Fix("Write a tuple", (Edit(span, f"({inner}{comma})"),))


# -- DiffState -------------------------------------------------------------------------------------------------------


@judges_calls(rules.DIFFSTATE_ARGUMENTS, "nnx.DiffState")
def diffstate_arguments(event: Called, report: Reporter) -> None:
    if library_name(event.callee) != "nnx.DiffState" or None in event.args or "**" in event.keywords:
        return
    given = [value for value in event.args if value is not None]
    if set(event.keywords) - {"argnum", "filter"} or len(given) + len(event.keywords) > 2:
        return
    first = event.keywords.get("argnum", given[0] if given else None)
    module, filter_text = event.frame.module, "nnx.Param"
    if len(given) == 1 and not event.keywords and is_filter(given[0]):
        node = event.nodes[0]
        filter_text = module.source.segment(node)
        start = module.source.span(node).start
        fix = Fix("Name the first argument", (Edit(Span(start, start), "0, "),))
        report(module, event.node, fix=fix, given="a filter only", number=0, filter=filter_text)
    elif len(given) == 1 and not event.keywords and _is_number(given[0]):
        report(module, event.node, given="an argument number only", number=0, filter=filter_text)
    elif not given and not event.keywords:
        report(module, event.node, given="nothing", number=0, filter=filter_text)
    elif len(given) == 2 and first is not None and is_filter(first) and _is_number(given[1]):
        number, text = (module.source.segment(event.nodes[place]) for place in (1, 0))
        edits = (
            Edit(module.source.span(event.nodes[0]), number),
            Edit(module.source.span(event.nodes[1]), text),
        )
        fix = Fix("Put the argument number first", edits)
        report(module, event.node, fix=fix, given="them in the other order", number=number, filter=text)


def is_filter(value: Value) -> bool:
    """Whether a value certainly is meant as a filter, and is no argument number."""
    if isinstance(value, Const):
        return value.value is ... or isinstance(value.value, str)
    if isinstance(value, Seq):
        return value.exact and bool(value.items) and all(map(is_filter, value.items))
    return isinstance(value, (ClassVal, FilterVal, FuncVal, UnionTypeVal, AliasVal))


def _is_number(value: Value) -> bool:
    return isinstance(value, Const) and isinstance(value.value, int) and not isinstance(value.value, bool)


# -- pop -------------------------------------------------------------------------------------------------------------


@judges_calls(rules.POP_WITHOUT_FILTER, "nnx.pop")
def pop_without_filter(event: Called, report: Reporter) -> None:
    alone = len(event.args) == 1 and None not in event.args and not event.keywords
    if alone and library_name(event.callee) == "nnx.pop":
        report(event.frame.module, event.node, fix=partial(_pop_intermediates, event))


def _pop_intermediates(event: Called) -> Fix | None:
    """What is popped is what was sown, nearly always."""
    module, name = event.frame.module, spelled("nnx.Intermediate", event.frame.module, event.frame.env)
    if name is None or not isinstance(event.node, ast.Call):
        return None
    return unsafe(f"Remove what is an `{name}`", append_argument(module.source, event.node, name))
