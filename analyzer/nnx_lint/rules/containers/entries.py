"""Entries of an ``nnx.Dict`` that it does not have (part of NNX864, and of NNX365 for its State), and of a plain dict
(NNX874).

Entries of an ``nnx.Dict`` are attributes, but a key is looked up where the line runs: another name shows late.
Configurations, batches and tables of functions are plain dicts, made in one function and asked in another.

Invariants: all keys are known where the dict is made, by their very names; a dict that some text may put an entry into
later may have any, and so may one that something unknown got; nothing is said of what a condition decides.
"""

from __future__ import annotations

import ast
import difflib
from typing import TYPE_CHECKING

from nnx_lint.model import entries
from nnx_lint.model.attributes import ANY_NAME
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import ContainerUsed, EntryMissed, Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.values import Const, Obj
from nnx_lint.reporting import Reporter, judges, related
from nnx_lint.rules.program import FUNCTIONS, attributes_stored, enclosing, is_chosen, is_tried, resolved
from nnx_lint.syntax.binding import imported_name
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.diagnostics import Related
    from nnx_lint.model.containers import DictVal
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

SHOWN = 6
"""How many entries of a dict a message names."""


def lacks_entry(held: Obj, key: str, module: Module) -> bool:
    """Whether an ``nnx.Dict`` certainly has no entry of a name, in this module."""
    names = names_in(held)
    if not names or key in names or held.origin is None:
        return False
    modules = {module, held.origin[0]}
    return not any(each.has(key, _put) or each.has(ANY_NAME, _put) for each in modules)


def names_in(held: Obj) -> list[str]:
    """The keys of an ``nnx.Dict``, if all of them are known."""
    if getattr(held.cls, "canonical", None) != "nnx.Dict" or not (known := entries.known(held)).exact:
        return []
    return [key.value for key, _ in known.items if isinstance(key, Const) and isinstance(key.value, str)]


@remembered
def _put(statement: ast.AST) -> frozenset[str]:
    """The keys under which a statement may put something into an ``nnx.Dict``, or take it out of one."""
    found = {*_items_put(statement)}
    for node in walk(statement):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setattr":
            found.add(ANY_NAME)
    return frozenset(found)


@remembered
def _items_put(statement: ast.AST) -> frozenset[str]:
    """The keys of items that a statement sets or deletes."""
    found = set[str]()
    for node in walk(statement):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            if isinstance(node.slice, ast.Constant):
                found.add(str(node.slice.value))
            elif isinstance(node.value, ast.Attribute):
                found.add(ANY_NAME)
    return frozenset(found)


def asks_dict(event: ContainerUsed) -> bool:
    """Whether a dict is asked for an entry by its name."""
    return event.operator is ast.Subscript and isinstance(event.other, Const) and isinstance(event.other.value, str)


@judges(rules.MISSING_ATTRIBUTE, ContainerUsed, when=asks_dict)
def missing_entry(event: ContainerUsed, report: Reporter) -> None:
    node, module, key = event.node, event.frame.module, event.other
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load) or not isinstance(key, Const):
        return
    if is_tried(module, node) or is_chosen(module, node):
        return
    if lacks_entry(event.container, str(key.value), module):
        mend = "its entries are " + ", ".join(f"`{name}`" for name in names_in(event.container))
        report(module, node, cls="nnx.Dict", name=str(key.value), mend=mend)


@judges(rules.MISSING_ENTRY, EntryMissed)
def entry_missed(event: EntryMissed, report: Reporter) -> None:
    """``config["learning_rate"]`` of a plain dict that has ``lr``, ``batch["images"]`` of one that has ``image``."""
    node, held, frame, key = event.node, event.held, event.frame, event.key
    if isinstance(held, Obj):
        return  # an attribute of a configuration
    names = [name.value for name, _ in held.items if isinstance(name, Const) and isinstance(name.value, str)]
    if not names or len(names) != len(held.items) or held.node is None or frame.doubtful:
        return
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return
    if is_tried(frame.module, node) or is_chosen(frame.module, node) or _is_filtered(frame.module, node):
        return
    if _may_be_another(frame, node.value) or _may_be_put(frame, key) or _is_told(frame.module, node, key):
        return
    if _may_be_filled(frame, node.value):
        return
    close = difflib.get_close_matches(key, names, 1)
    shown = ", ".join(f"`{name}`" for name in names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
    mend = f"it has `{close[0]}`" if close else f"its entries are {shown}"
    report(frame.module, node, related=_made(frame, held), name=text_of(node.value), key=key, mend=mend)


@judges(rules.MISSING_ENTRY, Used, when=lambda event: event.what == "an index", of=(Seq,))
def name_of_element(event: Used, report: Reporter) -> None:
    """``batch["image"]`` of a tuple, which a loader yields instead of a dict."""
    node, held, frame = event.node, event.value, event.frame
    if not isinstance(node, ast.Subscript) or not isinstance(held, Seq) or held.type not in {"list", "tuple"}:
        return
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    if not isinstance(key, str) or not held.exact or held.node is None or frame.doubtful:
        return
    if is_tried(frame.module, node) or is_chosen(frame.module, node) or _may_be_another(frame, node.value):
        return
    if _is_told(frame.module, node, None):
        return
    mend = f"it is a {held.type} of {len(held.items)}, whose elements have numbers and no names"
    report(frame.module, node, related=_made(frame, held), name=text_of(node.value), key=key, mend=mend)


def _is_told(module: Module, node: ast.Subscript, key: str | None) -> bool:
    """Whether the function asks the same thing for the entry, or for any, before."""
    scope, text = enclosing(module, node, *FUNCTIONS) or module.source.tree, ast.unparse(node.value)
    return any(
        isinstance(part, ast.Subscript)
        and (part.lineno, part.col_offset) < (node.lineno, node.col_offset)
        and isinstance(part.slice, ast.Constant)
        and (part.slice.value == key or (key is None and isinstance(part.slice.value, str)))
        and ast.unparse(part.value) == text
        for part in walk(scope)
    )


def _is_filtered(module: Module, node: ast.AST) -> bool:
    """Whether a comprehension around a place chooses what it goes over."""
    found = enclosing(module, node, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, *FUNCTIONS)
    return isinstance(found, COMPREHENSIONS) and any(each.ifs for each in found.generators)


COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _may_be_another(frame: Frame, held: ast.expr) -> bool:
    """Whether a dict may be another one by the time of the call: of an object that was not seen to be made or that
    something unknown had in its hands, or in an attribute that is set in several places.
    """
    if isinstance(held, ast.Attribute):
        owner = resolved(frame.env, held.value)
        if isinstance(owner, Obj) and ANY_NAME in owner.attrs:
            return True
        if attributes_stored(frame.module.source.tree).count(held.attr) > 1:
            return True
    inner: Frame | None = frame
    while inner is not None:
        if isinstance(inner.receiver, Obj) and inner.receiver.assumed:
            return True
        inner = inner.caller
    return False


def _may_be_put(frame: Frame, key: str) -> bool:
    """Whether a file on the way to a place puts an entry of this name into a dict, or asks whether it is there."""
    return any(module.has(key, _items_put) or module.has(key, _asked) for module in modules_of(frame))


def _may_be_filled(frame: Frame, held: ast.expr) -> bool:
    """Whether a file puts entries into a dict of this name whose own names are known only where it runs: a decorator
    that enters functions into a table, a method that keeps what it is given.
    """
    name = last_name(held)
    return any(each.has(name, _filled) for each in (*modules_of(frame), *_imported_from(frame, held)))


@remembered
def _filled(statement: ast.AST) -> frozenset[str]:
    """What the dicts are called that a statement puts something into, under names that it does not say."""
    found, told = set[str](), set[ast.expr]()
    for node in walk(statement):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            if not isinstance(node.slice, ast.Constant):
                found.add(last_name(node.value))
        elif isinstance(node, ast.Call) and all(map(_is_told_whole, node.args)):
            told.add(node.func)
        elif isinstance(node, ast.Attribute) and node.attr in FILLING and node not in told:
            found.add(last_name(node.value))
    return frozenset(found)


def _is_told_whole(node: ast.expr) -> bool:
    """Whether what an argument is tells the names of entries: a name, or a dict with all of its own."""
    keys = node.keys if isinstance(node, ast.Dict) else [node]
    return all(isinstance(key, ast.Constant) for key in keys)


FILLING = frozenset({"__setitem__", "setdefault", "update"})


def _imported_from(frame: Frame, held: ast.expr) -> Iterator[Module]:
    """The modules that a name may be imported from."""
    module, name = frame.module, held.id if isinstance(held, ast.Name) else None
    for node in walk(module.source.tree) if name is not None else ():
        if isinstance(node, ast.ImportFrom) and any(imported_name(item) == name for item in node.names):
            relative = module.project.relative(node.level, node.module, module) if node.level else None
            found = relative or module.project.find(node.module or "", module)
            if found is not None:
                yield found


def modules_of(frame: Frame) -> Iterator[Module]:
    """The modules of a function and of those that call it."""
    inner: Frame | None = frame
    seen: set[Module] = set()
    while inner is not None:
        if inner.module not in seen:
            seen.add(inner.module)
            yield inner.module
        inner = inner.caller


def _made(frame: Frame, held: DictVal | Seq) -> tuple[Related, ...]:
    """The place where a dict or a tuple is made, if it is in one of these modules."""
    node = held.node
    found = (module for module in modules_of(frame) if any(part is node for part in walk(module.source.tree)))
    module = next(found, None)
    return (related(module, node, "it is made here"),) if module is not None and node is not None else ()


@remembered
def _asked(statement: ast.AST) -> frozenset[str]:
    """The keys that a statement looks for in something, or gives a default for."""
    found = set[str]()
    for node in walk(statement):
        looks = isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn))
        key = node.left if looks and isinstance(node, ast.Compare) else None
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in DEFAULTING and node.args:
            key = node.args[0]
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            found.add(key.value)
    return frozenset(found)


DEFAULTING = frozenset({"get", "pop", "setdefault"})
