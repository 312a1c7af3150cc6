"""What runs again and again, and with what: the calls that lead to a function, followed outwards to a loop.

Invariants: a name is followed through the parameters of the functions that are called, which may not bind it anew; an
object that one of these functions makes is another one in each round.
"""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal, Transformed
from nnx_lint.model.unions import present
from nnx_lint.model.values import ClassVal, Obj
from nnx_lint.rules.callees import called_value
from nnx_lint.rules.program import (
    FUNCTIONS,
    STATEMENT_LOOPS,
    ancestors,
    assigned_in,
    binds,
    block_of,
    canonical_of,
    enclosing,
    keyword_node,
    names_of_parameters,
    resolved,
)
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import assigned_names
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module


class Handed(NamedTuple):
    """A call that leads to a function, or what a loop goes through, and what the calling function names the object in
    question; nothing for one that no function binds.
    """

    frame: Frame
    call: ast.expr
    name: str


ITERATED = "__iter__"
"""The method that a loop over an object calls."""


def outwards(frame: Frame, name: str) -> Iterator[Handed]:
    """The calls that lead to a function, innermost first, each with the name that its caller has for an object, as long
    as it is the caller who hands it over.
    """
    while frame.func is not None and frame.caller is not None and isinstance(frame.call, ast.expr):
        func, call = frame.func.node, frame.call
        if not isinstance(call, ast.Call) and frame.func.name != ITERATED:
            return
        if binds(func, name) if name else False:
            if name not in names_of_parameters(func) or assigned_in(func)[name]:
                return
            given = root_of(handed_for(frame, name))
            if given is None:
                return
            name = given
        else:
            name = ""
        frame = frame.caller
        yield Handed(frame, call, name)


def handed_for(frame: Frame, name: str) -> ast.expr | None:
    """The expression that the caller of a function gives for a parameter, the object of a method included."""
    names = syntax_parameters.positional_names(frame.func.node.args) if frame.func is not None else []
    of_object = frame.receiver is not None and names[:1] == [name]
    if of_object and frame.func is not None and frame.func.name == ITERATED:
        call = frame.call if isinstance(frame.call, ast.expr) else None
        through = isinstance(call, ast.Call) and root_of(call.func) in GOING_THROUGH
        return next(iter(call.args), None) if through and isinstance(call, ast.Call) else call
    if isinstance(frame.call, ast.Call) and of_object:
        func = frame.call.func
        return func.value if isinstance(func, ast.Attribute) else func
    return argument(frame, name)


def argument(frame: Frame, name: str) -> ast.expr | None:
    """The expression that the call of a frame gives for a parameter, through methods, partials and transforms."""
    call, caller, func = frame.call, frame.caller, frame.func
    if not isinstance(call, ast.Call) or caller is None or func is None:
        return None
    names, skipped, named = syntax_parameters.positional_names(func.node.args), 0, set[str]()
    node = call.func
    made = isinstance(node, ast.Call) and frame.receiver is not None and _makes_objects(caller, node.func)
    if made:  # `Model(...)(x)`: an object that is called right there
        skipped = 1
    elif isinstance(node, ast.Call):  # a function that a transform, or a partial, is given right there
        if canonical_of(caller.env, node.func) == "functools.partial":
            skipped, named = len(node.args) - 1, {item.arg for item in node.keywords if item.arg is not None}
        node = node.args[0] if node.args else node.func
    found = resolved(caller.env, node)
    if found is None and frame.receiver is None:
        found = called_value(caller.env, node)  # a function of a class
        skipped += isinstance(found, FuncVal) and "classmethod" in found.decorators
    callee = present(found) if found is not None else None
    while isinstance(callee, (Transformed, PartialVal, BoundMethod)):
        if isinstance(callee, PartialVal):
            skipped += len(callee.args)
            named |= set(callee.keywords)
        elif isinstance(callee, BoundMethod):
            skipped += 1
        callee = callee.func
    method = isinstance(node, ast.Attribute) and callee is None and frame.receiver is not None
    if method or (isinstance(callee, Obj) and frame.receiver is not None):
        skipped += 1
    elif not made and node is not func.node and not (isinstance(callee, FuncVal) and callee.node is func.node):
        return None
    if name in named:
        return None
    if name not in names:
        return keyword_node(call, name) if any(item.arg == name for item in func.node.args.kwonlyargs) else None
    place = names.index(name) - skipped
    certain = [*itertools.takewhile(lambda item: not isinstance(item, ast.Starred), call.args)]
    return certain[place] if 0 <= place < len(certain) else keyword_node(call, name)


def frame_around(frame: Frame) -> Frame | None:
    """The run of the innermost function around the present one, if that is what calls it."""
    outer = enclosing(frame.module, frame.func.node, *FUNCTIONS) if frame.func is not None else None
    caller = frame.caller if outer is not None else None
    while caller is not None and (caller.func is None or caller.func.node is not outer):
        caller = caller.caller
    return caller


def _makes_objects(frame: Frame, node: ast.expr) -> bool:
    return isinstance(resolved(frame.env, node), ClassVal)


# -- loops -------------------------------------------------------------------------------------------------------------

COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)


def loop_around(module: Module, call: ast.AST, name: str) -> ast.AST | None:
    """The loop around a place that runs it in each round with what a name stands for before the loop."""
    inner = call
    for outer in ancestors(module, call):
        if isinstance(outer, (*FUNCTIONS, ast.ClassDef)):
            return None
        if isinstance(outer, STATEMENT_LOOPS) and any(inner is part for part in outer.body):
            if name in assigned_names([outer]):
                return None
            rounds = _has_rounds(outer.iter if isinstance(outer, (ast.For, ast.AsyncFor)) else None)
            return outer if rounds and goes_on(outer.body) else None
        if isinstance(outer, COMPREHENSIONS) and not isinstance(inner, ast.comprehension):
            bound = {node.id for each in outer.generators for node in walk(each.target) if isinstance(node, ast.Name)}
            return outer if name not in bound and all(_has_rounds(each.iter) for each in outer.generators) else None
        if isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test and _is_once(outer.test):
            return None
        if isinstance(inner, ast.stmt) and not goes_on(block_of(module, inner)):
            return None
        inner = outer
    return None


def goes_on(block: list[ast.stmt]) -> bool:
    """Whether a round of a loop that comes to the end of a block may be followed by another one."""
    return not isinstance(block[-1], (ast.Break, ast.Return, ast.Raise))


def _has_rounds(iterated: ast.expr | None) -> bool:
    """Whether what a loop iterates over are rounds, or data, and not a few known things to be treated alike."""
    if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name):
        return iterated.func.id not in GOING_THROUGH or all(map(_has_rounds, iterated.args))
    if isinstance(iterated, ast.Call):
        return isinstance(iterated.func, ast.Attribute) and iterated.func.attr not in {"items", "keys", "values"}
    return not isinstance(iterated, DISPLAYS)


GOING_THROUGH = frozenset({"enumerate", "list", "reversed", "sorted", "tuple", "zip"})
"""Functions of Python that give the elements of what they are given."""

DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Constant)


def _is_once(test: ast.expr) -> bool:
    """Whether a condition may be meant to hold in one round only: it compares for equality, or asks for ``None``. What
    holds in every tenth round, it asks of a remainder.
    """
    found = walk(test)
    return any(
        isinstance(node, ast.Not)
        or (isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.Is)) and not _is_remainder(node))
        for node in found
    )


def _is_remainder(test: ast.Compare) -> bool:
    return isinstance(test.left, ast.BinOp) and isinstance(test.left.op, ast.Mod)
