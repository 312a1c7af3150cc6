"""Objects that a class merges from the State of another one that it keeps, and then writes to as if they were copies
(a part of NNX224): target networks, averages of weights.

What is put into such an object by ``nnx.update`` is put into the other one, too: nobody means that. Nor does anybody
who trains the other one, and calls this one its reference. Invariant: the class itself says all of it, by the names of
its attributes: what is merged, of what, and that it is written to.
"""

from __future__ import annotations

import ast
import itertools
import re
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.events import ClassDefined
from nnx_lint.reporting import Reporter, judges, related
from nnx_lint.rules.bindings import bound_to, names_of_first, pairs_of, value_of
from nnx_lint.rules.callees import called_value
from nnx_lint.rules.edits import append_argument, unsafe
from nnx_lint.rules.program import (
    assigned_in,
    calls_in,
    canonical_of,
    is_own,
    names_of_parameters,
    own_nodes,
    results_of,
)
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.diagnostics import Fix
    from nnx_lint.model.modules import Env, Module

MERGED = (ast.Name, ast.Starred)
"""What stands for the parts of a split: their names, or all of it at once."""

Method = ast.FunctionDef | ast.AsyncFunctionDef


@judges(rules.ALIASED_MERGE, ClassDefined)
def merged_beside(event: ClassDefined, report: Reporter) -> None:
    """An attribute that is merged from the State of another one, and updated later on."""
    module = event.cls.module
    methods = [node for node in event.cls.node.body if isinstance(node, ast.FunctionDef)]
    for method in methods:
        merged = _merged(module, method) if module.mentions("merge") else ()
        for target, call, split in itertools.chain(merged, _merged_elsewhere(module, event.frame.env, method)):
            of = _source(module, method, split) if split is not None else None
            written = _written(module, event.cls.node, target, of) if of is not None else None
            if written is None and of is not None and KEPT.search(target):
                written = _trained(module, method, of)
            if written is not None and of != target:
                where = (related(module, written, "one of them is changed here"),)
                fix = partial(_copying, module, call) if canonical_of(module.env, call.func) == "nnx.merge" else None
                report(module, call, fix=fix, related=where, name=target, other=of)


def _merged(module: Module, method: Method) -> Iterator[tuple[str, ast.Call, ast.expr | None]]:
    """The attributes of ``self`` that a method merges without a copy, and what was split for that."""
    possible = [call for call in calls_in(method) if call.args and not call.keywords]
    calls = [call for call in possible if all(isinstance(item, MERGED) for item in call.args)]
    for node in calls:
        if canonical_of(module.env, node.func) == "nnx.merge" and is_own(module, method, node):
            bound = bound_to(module, node)
            text = _own(method, bound.target) if bound is not None else None
            if text is not None:
                yield text, node, _split_for(module, method, node)


def _merged_elsewhere(module: Module, env: Env, method: Method) -> Iterator[tuple[str, ast.Call, ast.expr]]:
    """The attributes of ``self`` whose names say that they are copies, which the constructor gets from a function that
    splits what it is given, and merges it without a copy.
    """
    pairs = [pair for node in own_nodes(method) for pair in pairs_of(node)] if method.name == "__init__" else []
    for target, call in pairs:
        text = _own(method, target)
        given = [*call.args, *(item.value for item in call.keywords)] if isinstance(call, ast.Call) else []
        if text is None or not isinstance(call, ast.Call) or len(given) != 1 or not KEPT.search(text):
            continue
        func = called_value(env, call.func)
        if not isinstance(func, FuncVal) or (func.decorators and not func.is_static):
            continue
        if not isinstance(func.node, ast.FunctionDef):
            continue
        bound = func.cls is not None and not func.decorators
        returned = results_of(func.node)
        merge = (value_of(func.module, returned[0]) or returned[0]) if len(returned) == 1 else None
        merges = isinstance(merge, ast.Call) and canonical_of(func.module.env, merge.func) == "nnx.merge"
        if not isinstance(merge, ast.Call) or not merges or merge.keywords:
            continue
        split = _split_for(func.module, func.node, merge)
        if isinstance(split, ast.Name) and syntax_parameters.positional_names(func.node.args)[bound:][:1] == [split.id]:
            yield text, call, given[0]


def _own(method: Method, node: ast.AST) -> str | None:
    """``self.name``, whatever a method calls its object; ``None`` for other expressions."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return None
    return f"self.{node.attr}" if node.value.id in names_of_first(method) else None


def _split_for(module: Module, method: Method, merge: ast.Call) -> ast.expr | None:
    """What a function splits to merge it."""
    assigned = assigned_in(method)
    given: ast.expr | None = None
    if len(merge.args) == 1 and isinstance(merge.args[0], ast.Starred):
        given = merge.args[0].value
    names = [item.id for item in merge.args if isinstance(item, ast.Name) and assigned[item.id] == 1]
    pairs = [pair for node in own_nodes(method) for pair in pairs_of(node)]
    for target, value in pairs if names and len(names) == len(merge.args) else ():
        if isinstance(target, ast.Tuple):
            bound = [item.id for item in target.elts if isinstance(item, ast.Name)]
            given = value if bound == names else given
    if not isinstance(given, ast.Call) or canonical_of(module.env, given.func) != "nnx.split" or not given.args:
        return None
    return value_of(module, given.args[0]) or given.args[0]


def _source(module: Module, method: Method, split: ast.expr) -> str | None:
    """The attribute of ``self`` that is split, or that keeps what is."""
    assigned = assigned_in(method)
    if isinstance(split, ast.Name) and assigned[split.id] + (split.id in names_of_parameters(method)) == 1:
        pairs = [pair for node in own_nodes(method) for pair in pairs_of(node)]
        same = {value for target, value in pairs if is_name(target, split.id)}  # self.net = net = Net(...)
        kept = [
            text
            for target, value in pairs
            if (is_name(value, split.id) or value in same) and (text := _own(method, target)) is not None
        ]
        return kept[0] if len(kept) == 1 else None
    return _own(method, split)


def _written(module: Module, cls: ast.ClassDef, name: str, of: str) -> ast.Call | None:
    """Where a class updates an attribute, by itself or by a function of the file that gets both objects."""
    methods = [node for node in cls.body if isinstance(node, ast.FunctionDef)]
    calls = [(method, call) for method in methods for call in calls_in(method)]
    for method, call in calls:
        texts = [_own(method, item) for item in call.args]
        if name not in texts:
            continue
        if canonical_of(module.env, call.func) == "nnx.update":
            if texts[0] == name:
                return call
        elif of in texts:
            functions = (node for node in module.tree.body if isinstance(node, ast.FunctionDef))
            for func in functions:
                parameters = syntax_parameters.positional_names(func.args)
                given = parameters[texts.index(name) :]
                if is_name(call.func, func.name) and given and _updates(module, func, given[0]):
                    return call
    return None


KEPT = re.compile(r"(?:\b|_)(?:copy|ema|frozen|initial|old|ref|reference|target|teacher)(?:\b|_)")
"""In the name of an attribute: it is to stay as it is, or to follow slowly, while the other one is trained."""


def _trained(module: Module, method: Method, of: str) -> ast.Call | None:
    """The optimizer that a method makes for an attribute, or for what it keeps there."""
    pairs = [pair for node in own_nodes(method) for pair in pairs_of(node)]
    kept = [value for target, value in pairs if _own(method, target) == of and isinstance(value, ast.Name)]
    for call in calls_in(method):
        if call.args and canonical_of(module.env, call.func) == "nnx.Optimizer" and is_own(module, method, call):
            model = call.args[0]
            if _own(method, model) == of or any(is_name(model, value.id) for value in kept):
                return call
    return None


def _updates(module: Module, func: ast.AST, name: str) -> bool:
    """Whether a function puts values into a parameter."""
    updates = (call for call in calls_in(func) if canonical_of(module.env, call.func) == "nnx.update" and call.args)
    return not assigned_in(func)[name] and any(is_name(call.args[0], name) for call in updates)


def _copying(module: Module, call: ast.Call) -> Fix | None:
    return unsafe("Add `copy=True`", append_argument(module.source, call, "copy=True"))
