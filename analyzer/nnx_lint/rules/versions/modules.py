"""Modules as older versions have them (NNX904, NNX907, NNX911-NNX913)."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.model.annotations import declared_name
from nnx_lint.model.callables import BoundMethod, FuncVal, Transformed
from nnx_lint.model.classes import ClassBase, UserClass, library_class
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import Called, ClassDefined
from nnx_lint.model.expressions import text_of
from nnx_lint.model.frames import Frame
from nnx_lint.model.unions import present
from nnx_lint.model.values import (
    ClassVal,
    Obj,
    Value,
)
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.edits import insert
from nnx_lint.rules.filters.coverage import leaves_of
from nnx_lint.rules.program import canonical_of, enclosing, given
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import walk
from nnx_rules import api, versions
from nnx_rules.rules import versions as rules
from nnx_rules.transforms import TREE_MAPS

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module

# -- annotations -------------------------------------------------------------------------------------------------------

SUCCESSORS = {"nnx.Data": "nnx.data", "nnx.Static": "nnx.static"}


@judges(rules.DEPRECATED_STATUS_ANNOTATION, ClassDefined)
def deprecated_status_annotation(event: ClassDefined, report: Reporter) -> None:
    cls = event.cls
    frame = Frame(cls.module, cls.env, cls=cls)
    for statement in cls.node.body:
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        annotation = statement.annotation
        successor = SUCCESSORS.get(declared_name(frame, annotation))
        if successor is None:
            continue
        fix = partial(_by_value, cls, statement, successor)
        path = f"{cls.name}.{statement.target.id}"
        inner = _inner(cls.module, annotation)
        mend = f"{statement.target.id}: {inner} = {successor}()"
        report(cls.module, statement, fix=fix, annotation=successor.title().replace("Nnx", "nnx"), path=path, mend=mend)


def _inner(module: Module, annotation: ast.expr) -> str:
    return module.source.segment(annotation.slice) if isinstance(annotation, ast.Subscript) else "..."


def _by_value(cls: UserClass, statement: ast.AnnAssign, successor: str) -> Fix | None:
    name = spelled(successor, cls.module, cls.env)
    annotation = statement.annotation
    if name is None or statement.value is not None or not isinstance(annotation, ast.Subscript) or cls.is_dataclass:
        return None
    source = cls.module.source
    inner = source.segment(annotation.slice)
    written = f"({inner})" if "\n" in inner or "\r" in inner else inner  # the brackets that allowed it go
    return Fix(f"Declare it by `{name}()`", (Edit(source.span(annotation), f"{written} = {name}()"),))


# -- methods -----------------------------------------------------------------------------------------------------------


@judges_calls(rules.DEPRECATED_MODULE_METHOD, *(f".{name}" for name in versions.MODULE_METHODS))
def deprecated_module_method(event: Called, report: Reporter) -> None:
    callee, node, module = event.callee, event.node, event.frame.module
    if not isinstance(callee, BoundMethod) or callee.func is not None or not isinstance(node, ast.Call):
        return
    receiver = present(callee.receiver)
    if not isinstance(receiver, Obj) or not receiver.cls.derives_from("nnx.Module"):
        return
    function = versions.MODULE_METHODS[callee.name]
    fix = partial(_as_function, module, event, function)
    report(module, node, fix=fix, cls=receiver.cls.name, method=callee.name, function=function)


def _as_function(module: Module, event: Called, function: str) -> Fix | None:
    name, node = spelled(f"nnx.{function}", module, event.frame.env), event.node
    if name is None or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.args:
        return None
    source = module.source
    return Fix(f"Use `{name}`", (Edit(source.span(node), f"{name}({source.segment(node.func.value)})"),))


# -- recurrent cells ---------------------------------------------------------------------------------------------------


CELLS = tuple(name for name, item in api.CLASSES.items() if item.base == "nnx.RNNCellBase")


@judges_calls(rules.DEPRECATED_CELL_ARGUMENT, *CELLS)
def deprecated_cell_argument(event: Called, report: Reporter) -> None:
    module, call = event.frame.module, event.node
    if not isinstance(event.callee, ClassVal) or isinstance(event.callee.cls, UserClass):
        return
    keywords = call.keywords if isinstance(call, ast.Call) else []
    for keyword in keywords:
        if keyword.arg in versions.CELL_ARGUMENTS:
            instead = "rngs=" if keyword.arg == "keep_rngs" else "carry_init="
            fix = partial(_leave_out, module, keyword)
            report(module, keyword, fix=fix, cls=event.callee.cls.name, name=keyword.arg, instead=instead)
        elif keyword.arg is None and (given := sorted(versions.CELL_ARGUMENTS & event.keywords.keys())):
            instead = "rngs=" if given[0] == "keep_rngs" else "carry_init="
            report(module, keyword, cls=event.callee.cls.name, name=given[0], instead=instead)


def _leave_out(module: Module, keyword: ast.keyword) -> Fix | None:
    source = module.source
    span = source.span(keyword)
    before = source.text[: span.start].rstrip()
    if not before.endswith(","):
        return None
    return Fix("Leave it out", (Edit(Span(len(before) - 1, span.end), ""),), Applicability.UNSAFE)


RNG_STATE = library_class("nnx.RngState")

# -- stacks ------------------------------------------------------------------------------------------------------------


@judges(rules.SPLIT_RNGS_ON_CALL, ClassDefined)
def split_rngs_on_call(event: ClassDefined, report: Reporter) -> None:
    cls = event.cls
    for name, method in cls.methods.items():
        if name == "__init__" or not isinstance(method, Transformed) or method.applied.row.name != "nnx.split_rngs":
            continue
        inner = method.func
        scanned = isinstance(inner, Transformed) and inner.applied.row.name == "nnx.scan"
        if scanned and "only" not in method.applied.keywords and _is_stack(cls):
            node = method.applied.node
            report(
                cls.module, node, fix=partial(_remove, cls.module, node), transform=method.applied.text, cls=cls.name
            )


def _is_stack(cls: UserClass) -> bool:
    """Whether the constructor of a class is mapped, so that each element of the stack has streams of its own."""
    made = cls.methods.get("__init__")
    mapped = split = False
    while isinstance(made, Transformed):
        mapped = mapped or made.applied.row.name == "nnx.vmap"
        split = split or made.applied.row.name == "nnx.split_rngs"
        made = made.func
    return mapped and split


def _splits_first(event: Called) -> bool:
    """Whether what is called splits streams, and then maps a function."""
    callee = event.callee
    inner = callee.func if isinstance(callee, Transformed) and callee.applied.row.name == "nnx.split_rngs" else None
    return isinstance(inner, Transformed) and inner.applied.row.name in {"nnx.scan", "nnx.vmap"}


@judges_calls(rules.SPLIT_RNGS_ON_CALL, Transformed, when=_splits_first)
def split_rngs_of_stack(event: Called, report: Reporter) -> None:
    callee = event.callee
    if not isinstance(callee, Transformed) or not callee.applied.keywords.keys() <= {"splits"}:
        return
    for value, node in zip(event.args, event.nodes, strict=False):
        if isinstance(value, Obj) and _was_made_by_map(value) and _holds_streams(value, event):
            module, place = callee.applied.module, callee.applied.node
            report(module, place, fix=partial(_remove, module, place), transform=callee.applied.text, cls=text_of(node))
            return


def _was_made_by_map(stack: Obj) -> bool:
    """Whether an object was made by a map, or in a function that is mapped: each element has streams of its own."""
    if stack.origin is None or stack.assumed:
        return False
    if stack.gained is not None and stack.gained > 0:
        return True
    module, node = stack.origin
    made = enclosing(module, node, ast.FunctionDef)
    heads = [item.func if isinstance(item, ast.Call) else item for item in made.decorator_list] if made else []
    return {"nnx.vmap", "nnx.split_rngs"} <= {canonical_of(module.env, head) for head in heads}


def _holds_streams(stack: Obj, event: Called) -> bool:
    return any(
        isinstance(leaf.type, ClassBase) and RNG_STATE in leaf.type.ancestors
        for leaf in leaves_of(stack, event.frame).leaves
    )


def _remove(module: Module, decorator: ast.AST) -> Fix | None:
    source = module.source
    span = source.span(decorator)
    start = source.text.rfind("\n", 0, span.start) + 1
    end = source.text.find("\n", span.end) + 1
    line = source.text[start:end]
    if not line.strip().startswith("@") or "#" in line or not end:
        return None
    return Fix("Remove the decorator", (Edit(Span(start, end), ""),))


# -- containers of modules ---------------------------------------------------------------------------------------------


@judges_calls(rules.TREE_MAP_OVER_MODULES, *TREE_MAPS)
def tree_map_over_modules(event: Called, report: Reporter) -> None:
    args = given(event)
    func, tree = args.get(0, "f"), args.get(1, "tree")
    if "is_leaf" in args.keywords or args.starred or not isinstance(func, FuncVal) or not _holds_modules(tree):
        return
    parameters = syntax_parameters.positional(func.node.args)
    name = parameters[0].arg if parameters else ""
    if not _uses_as_module(func, name):
        return
    module = event.frame.module
    report(module, event.node, fix=partial(_stop_at_modules, module, event), function=event.name, name=name)


def _holds_modules(tree: Value | None) -> bool:
    """Whether a tree is a module, or a container of modules and nothing else."""
    if _is_module(tree):
        return True
    if isinstance(tree, Seq):
        items = tree.items
    else:
        items = [value for _, value in tree.items] if isinstance(tree, DictVal) else []
    return bool(items) and all(_is_module(present(item)) for item in items)


def _is_module(value: Value | None) -> bool:
    return isinstance(value, Obj) and value.cls.derives_from("nnx.Pytree") and not value.cls.is_variable


def _uses_as_module(func: FuncVal, name: str) -> bool:
    """Whether a function does with its first argument what nobody does with an array."""
    body = func.node.body if isinstance(func.node.body, list) else [func.node.body]
    for part in (node for statement in body for node in walk(statement)):
        if isinstance(part, ast.Call):
            callee = part.func
            if is_name(callee, name):
                return True
            if is_name(callee, "type") and _names(part.args[:1], name):
                return True
            if isinstance(callee, ast.Attribute) and callee.attr in OF_MODULES and is_name(callee.value, name):
                return True
    return False


OF_MODULES = frozenset({"eval", "perturb", "set_attributes", "sow", "train"})
"""Methods of modules that no array has."""


def _names(nodes: list[ast.expr], name: str) -> bool:
    return any(is_name(node, name) for node in nodes)


def _stop_at_modules(module: Module, event: Called) -> Fix | None:
    name, call = spelled("nnx.Pytree", module, event.frame.env), event.node
    if name is None or not isinstance(call, ast.Call):
        return None
    last = max(module.source.span(part).end for part in (*call.args, *call.keywords))
    text = f", is_leaf=lambda x: isinstance(x, {name})"
    return Fix("Stop at modules", insert(last, text), Applicability.UNSAFE)
