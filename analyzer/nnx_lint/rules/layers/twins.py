"""Layers of a numbered series of which one is called in the place of another (NNX871).

``self.norm1`` and ``self.norm2`` are made in the same way, the forward pass calls ``self.norm1`` twice, and nothing
reads ``self.norm2``: a line was copied, and its number was not changed. Everything fits, so nothing fails. The same
holds of ``mean = self.to_mean(x)`` and ``scale = self.to_mean(x)``, where nothing reads ``self.to_scale``.

Invariants: the two are alike in all but their number and hold parameters, or at least of one class; both calls happen
in one run of one method, and the second one gets what was computed with the first, or is the first one word by word; no
text of the file can mean the one that is left over: no attribute of that name, no string that it begins with.
"""

from __future__ import annotations

import ast
import re
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import ClassBase
from nnx_lint.model.events import Called, Constructed
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.bindings import names_of_first, target_of, values_in
from nnx_lint.rules.edits import replace, unsafe
from nnx_lint.rules.filters.coverage import leaves_of
from nnx_lint.rules.program import (
    ancestors,
    canonical_of,
    enclosing,
    follows,
    outer_names,
    own_nodes,
    own_statements,
    reads_of,
    statement_of,
)
from nnx_lint.syntax.binding import assigned_names, is_name, names_in
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.places import begin
from nnx_lint.syntax.walk import dumped, remembered, walk
from nnx_rules import shapes
from nnx_rules.rules import modules as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.diagnostics import Fix
    from nnx_lint.model.classes import UserClass
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Attr, Value

    Function = ast.FunctionDef | ast.AsyncFunctionDef

NUMBER = re.compile(r"\d+")

WALKING = ("vars(", "__dict__", "iter_children")
"""What goes over the attributes of an object, whatever they are called."""


@judges(rules.TWIN_LAYER_UNUSED, Constructed)
def twin_layer_unused(event: Constructed, report: Reporter) -> None:
    cls, module = event.cls, event.cls.module
    elsewhere = any(item.module is not module for item in cls.lineage)
    if cls.is_open or elsewhere or module.mentions(*WALKING):
        return
    for alike in _series(event):
        left_over = [name for name in alike if not _may_be_used(cls, name)]
        if len(left_over) != 1:
            continue
        for name in (each for each in alike if each not in left_over):
            twice = _called_twice(cls, name)
            if twice is None:
                continue
            first, second = twice
            fix = partial(_renamed, module, second, left_over[0])
            where, twin = (related(module, first, "it is called here already"),), f"self.{left_over[0]}"
            report(module, second, fix=fix, related=where, name=f"self.{name}", used="called", twin=twin)
            return
    _said_twice(event, report)


def _said_twice(event: Constructed, report: Reporter) -> None:
    """One layer is called twice by the same words, and nothing reads another one of its class."""
    cls, module = event.cls, event.cls.module
    layers = _made_once(event)
    left_over = [name for name in layers if not _may_be_used(cls, name)] if len(layers) > 1 else []
    for name in layers if len(left_over) == 1 else ():
        other, left = layers[name].value, layers[left_over[0]].value
        same = isinstance(other, Obj) and isinstance(left, Obj) and other.cls is left.cls
        twice = _repeated(cls, name) if same and name != left_over[0] and _learns(event, name) else None
        if twice is not None:
            first, second = twice
            where, twin = (related(module, first, "it is called here with the same"),), f"self.{left_over[0]}"
            fix = partial(_renamed, module, second, left_over[0])
            report(module, second, fix=fix, related=where, name=f"self.{name}", used="called", twin=twin)
            return


def _repeated(cls: UserClass, name: str) -> tuple[ast.Call, ast.Call] | None:
    """Two calls of an attribute with the same arguments that both happen when one method runs, for two names."""
    for func in (method for item in cls.lineage for method in item.methods.values()):
        if not isinstance(func, FuncVal) or isinstance(func.node, ast.Lambda):
            continue
        for first, second in pairwise(sorted(_calls(func.node, name), key=begin)):
            targets = [_target_of(cls.module, call) for call in (first, second)]
            if None in targets or targets[0] == targets[1] or dumped(first) != dumped(second):
                continue
            if _both_run(cls.module, first, second) and not _is_bound_between(func.node, first, second):
                return first, second
    return None


def _is_bound_between(func: Function, first: ast.Call, second: ast.Call) -> bool:
    """Whether a statement from one call on, and before another one, binds a name that the second one reads."""
    statements = (each for each in own_statements(func) if isinstance(each, ast.stmt))
    between = [each for each in statements if first.lineno <= each.lineno < second.lineno]
    return not assigned_names(between).isdisjoint(names_in(second))


def _target_of(module: Module, call: ast.Call) -> str | None:
    """The name that a statement binds to what a call returns."""
    target = target_of(module, call)
    return target.id if isinstance(target, ast.Name) else None


def _series(event: Constructed) -> list[list[str]]:
    """The attributes that hold layers with parameters, made by the same words once, whose names differ in numbers."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, attr in _made_once(event).items():
        made = attr.assignments[0].value_node
        if NUMBER.search(name) and made is not None:
            found.setdefault((NUMBER.sub("#", name), ast.dump(made)), []).append(name)
    return [names for names in found.values() if len(names) > 1 and _learns(event, names[0])]


def _made_once(event: Constructed) -> dict[str, Attr]:
    """The attributes that are bound once, always, to what a call in the file of the class returns."""
    found: dict[str, Attr] = {}
    for name, attr in event.obj.attrs.items():
        made = attr.assignments[0] if len(attr.assignments) == 1 else None
        own = made is not None and made.module is event.cls.module and not made.branches
        if made is not None and own and isinstance(made.value_node, ast.Call):
            found[name] = attr
    return found


def _learns(event: Constructed, name: str) -> bool:
    """Whether an attribute holds a module that has parameters."""
    value = event.obj.attrs[name].value
    if not isinstance(value, Obj) or not value.cls.derives_from("nnx.Module"):
        return False
    made_as = value.cls.made_as
    if made_as is not None and made_as.canonical in shapes.DIMENSIONS:
        return True
    types = (leaf.type for leaf in leaves_of(value, event.frame).leaves)
    return any(isinstance(each, ClassBase) and each.derives_from("nnx.Param") for each in types)


def _may_be_used(cls: UserClass, name: str) -> bool:
    """Whether a text of the file may mean an attribute of this name, of an instance of this class."""
    if name in _attributes_and_words(cls.node)[0]:  # mostly; the rest of the file need not be asked then
        return True
    module = cls.module
    read, said = _attributes_and_words(module.tree)
    if any(name.startswith(word) for word in said):
        return True
    return any(_may_be_of(module, cls, node) for node in read.get(name, ()))


def _may_be_of(module: Module, cls: UserClass, node: ast.Attribute) -> bool:
    """Whether an attribute may be that of an instance of a class: it is not, of ``self`` in an unrelated one."""
    around = enclosing(module, node, ast.ClassDef)
    if not isinstance(around, ast.ClassDef) or not is_name(node.value, "self"):
        return True
    if any(around is item.node for item in cls.lineage):
        return True
    return not all((canonical_of(module.env, base) or "").startswith("nnx.") for base in around.bases)


@remembered
def _attributes_and_words(tree: ast.AST) -> tuple[dict[str, list[ast.Attribute]], frozenset[str]]:
    """The attributes that a text reads, by name, and the strings in it that may be names or begin one."""
    read: dict[str, list[ast.Attribute]] = {}
    said: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            read.setdefault(node.attr, []).append(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            said.add(node.value)
    return read, frozenset(said)


def _called_twice(cls: UserClass, name: str) -> tuple[ast.Call, ast.Call] | None:
    """Two calls of an attribute that both happen when one method runs."""
    for func in (method for item in cls.lineage for method in item.methods.values()):
        if not isinstance(func, FuncVal) or isinstance(func.node, ast.Lambda):
            continue
        calls = sorted(_calls(func.node, name), key=begin)
        for first, second in pairwise(calls):
            if _both_run(cls.module, first, second) and _is_made_of(cls.module, func.node, first, second):
                return first, second
    return None


def _calls(func: Function, name: str) -> Iterator[ast.Call]:
    own = names_of_first(func)
    for node in own_nodes(func):
        called = node.func if isinstance(node, ast.Call) else None
        named = isinstance(called, ast.Attribute) and called.attr == name and isinstance(called.value, ast.Name)
        if isinstance(node, ast.Call) and isinstance(called, ast.Attribute) and named and root_of(called) in own:
            yield node


def _both_run(module: Module, first: ast.Call, second: ast.Call) -> bool:
    """Whether whatever runs the second of two calls has run the first, and neither depends on a condition inside of its
    statement.
    """
    places = statement_of(module, first), statement_of(module, second)
    if any(isinstance(outer, ast.IfExp) for call in (first, second) for outer in ancestors(module, call)):
        return False
    return places[0] is not None and places[1] is not None and follows(module, places[0], places[1])


def _is_made_of(
    module: Module, func: ast.FunctionDef | ast.AsyncFunctionDef, first: ast.Call, second: ast.Call
) -> bool:
    """Whether one call gets what was computed with the other one: two inputs of one layer are compared on purpose."""
    begin, end = statement_of(module, first), statement_of(module, second)
    made = assigned_names([begin]) if begin is not None else set[str]()
    for each in own_statements(func):
        between = begin is not None and end is not None and begin.lineno < getattr(each, "lineno", 0) < end.lineno
        if between and isinstance(each, ast.stmt) and not made.isdisjoint(names_in(each)):
            made |= assigned_names([each])
    return any(not made.isdisjoint(names_in(each)) for each in second.args)


def _renamed(module: Module, call: ast.Call, twin: str) -> Fix | None:
    """Call the one that is left over in the second place."""
    func = call.func
    if not isinstance(func, ast.Attribute):
        return None
    return unsafe(f"Call `self.{twin}`", replace(module.source, func, f"{module.source.segment(func.value)}.{twin}"))


@judges_calls(rules.TWIN_LAYER_UNUSED, "class")
def twin_handed_over_twice(event: Called, report: Reporter) -> None:
    """``Pair(q1, q1)``, where nothing reads the ``q2`` that the same function made like ``q1``."""
    call, module = event.node, event.frame.module
    names = [node.id for node in event.nodes if isinstance(node, ast.Name)]
    twice = next((name for name in names if names.count(name) > 1), None)
    func = event.frame.func.node if event.frame.func is not None else None
    if twice is None or not isinstance(func, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    second = [node for node in event.nodes if is_name(node, twice)][1]
    if not all(isinstance(value, Obj) and value.cls.derives_from("nnx.Module") for value in _given_as(event, twice)):
        return
    bound = values_in(func)
    own = bound.get(twice, [])
    maker = dumped(own[0].func) if len(own) == 1 and isinstance(own[0], ast.Call) else None
    for name, values in bound.items() if maker is not None else ():
        made = values[0] if len(values) == 1 and name != twice else None
        alike = isinstance(made, ast.Call) and dumped(made.func) == maker
        if alike and not name.startswith("_") and not reads_of(func, name) and name not in outer_names(func):
            fix = unsafe(f"Hand over `{name}`", replace(module.source, second, name))
            where = (related(module, call, "it is handed over here already"),)
            report(module, second, fix=fix, related=where, name=twice, used="handed over", twin=name)
            return


def _given_as(event: Called, name: str) -> list[Value | None]:
    return [value for value, node in zip(event.args, event.nodes, strict=False) if is_name(node, name)]
