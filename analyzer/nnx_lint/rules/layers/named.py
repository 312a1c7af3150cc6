"""Sizes that have two names, where a layer takes one and gets the other.

Whoever writes ``Linear(dim, hidden)`` means two numbers; where a layer for ``dim`` then gets ``hidden``, the class
works for nobody who gives it two. Invariants: nothing is said of names that the file itself shows to be one number: it
compares them, has the same default for both, makes the class with the same for both, or says itself how large the
fields of a configuration are.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.classes import UserClass, method_of
from nnx_lint.model.values import ClassVal, Const, Obj
from nnx_lint.rules.program import calls_in, resolved
from nnx_lint.syntax import parameters
from nnx_lint.syntax.binding import assigned_names, is_name
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import remembered, walk

if TYPE_CHECKING:
    from nnx_lint.model.callables import FuncVal
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module


def mean_two_numbers(frame: Frame, names: tuple[object, object]) -> bool:
    """Whether nothing shows that two names of sizes in the constructor of the object at hand stand for one number."""
    cls = frame.receiver.cls if isinstance(frame.receiver, Obj) else None
    found = method_of(cls, "__init__") if isinstance(cls, UserClass) else None
    if not isinstance(cls, UserClass) or found is None:
        return False
    func = found[1].wrapped
    one, other = (str(name) for name in names)
    if not {one.partition(".")[0], other.partition(".")[0]} <= {*parameters.names(func.node.args)}:
        return False  # they are those of an object that has this one
    return not (
        _are_compared(cls, one, other)
        or _are_said(frame.module, one, other)
        or _have_one_default(func, one, other)
        or _are_given_as_one(frame, cls, func, one, other)
    )


def _are_compared(cls: UserClass, *names: str) -> bool:
    """Whether the class asks somewhere whether they are equal, or chooses by one of them."""
    ends = {name.rpartition(".")[2] for name in names}
    nodes = (node for item in cls.lineage for node in walk(item.node) if isinstance(node, ast.Compare))
    return any(ends <= {last_name(part) for part in walk(node) if isinstance(part, ast.expr)} for node in nodes)


def _are_said(module: Module, *names: str) -> bool:
    """Whether the file says somewhere what one of two fields of a configuration is."""
    fields = frozenset(name.rpartition(".")[2] for name in names if "." in name)
    return not fields.isdisjoint(_said(module.tree)) if fields else False


@remembered
def _said(tree: ast.AST) -> frozenset[str]:
    """The names under which a file puts something: attributes, keywords of calls, entries of dicts and options."""
    found: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and not is_name(node.value, "self"):
            found.add(node.attr)
        elif isinstance(node, ast.keyword) and node.arg is not None:
            found.add(node.arg)
        elif isinstance(node, ast.ClassDef):
            given = [item for item in node.body if isinstance(item, (ast.AnnAssign, ast.Assign)) and item.value]
            found |= assigned_names(given)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value.lstrip("-").replace("-", "_"))
    return frozenset(found)


def _have_one_default(func: FuncVal, *names: str) -> bool:
    found = [_default(func, name) for name in names]
    return found[0] is not None and found[0] == found[1]


def _default(func: FuncVal, name: str) -> object:
    """The number that a parameter has if nobody gives it, or a field of the class that annotates the parameter."""
    parameter, _, field = name.partition(".")
    value = func.defaults.get(parameter)
    if field:
        every = [*parameters.positional(func.node.args), *func.node.args.kwonlyargs]
        node = next((item.annotation for item in every if item.arg == parameter), None)
        record = resolved(func.module.env, node)
        known = isinstance(record, ClassVal) and isinstance(record.cls, UserClass)
        value = record.cls.class_attribute(field) if known else None  # type: ignore[union-attr]
    return value.value if isinstance(value, Const) else None


def _are_given_as_one(frame: Frame, cls: UserClass, func: FuncVal, *names: str) -> bool:
    """Whether a call in the file gives the class the same for both parameters."""
    order = parameters.positional_names(func.node.args)[1:]
    for call in calls_in(frame.module.tree):
        made = resolved(frame.module.env, call.func)
        if isinstance(made, ClassVal) and cls in made.cls.ancestors:
            given = dict(zip(order, call.args, strict=False))
            given |= {item.arg: item.value for item in call.keywords if item.arg is not None}
            texts = [ast.dump(given[name]) for name in names if name in given]
            if len(texts) == len(names) and len(set(texts)) == 1:
                return True
    return False
