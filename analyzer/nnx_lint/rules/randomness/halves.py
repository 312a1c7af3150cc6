"""Keys that an object or a module keeps and splits again and again, without keeping a half for the next time (NNX519).

``_, sub = jax.random.split(self.key)`` leaves ``self.key`` as it is: each call of the method draws the same numbers.
Who leaves one of the halves, or gives it the name of the attribute, means to go on with it. So does a step that splits
``state.key`` and returns ``state._replace(...)`` without a new key.

Invariants: only the constructor of the class sets the attribute, and nothing writes into a Variable that it holds. The
method certainly runs again for the same object: in a loop, at another place of the program, or in each forward pass; a
step that returns the next record is there to run again.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.classes import UserClass
from nnx_lint.model.expressions import text_of
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Ext, Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import constant_of, target_of, values_in
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    assigned_in,
    attributes_named,
    binds,
    canonical_of,
    enclosing,
    given,
    in_test,
    reads_of,
    resolved,
    results_of,
)
from nnx_lint.rules.randomness.kept import Kept, Source, is_of_another, set_once
from nnx_lint.rules.randomness.keys import SPLIT
from nnx_lint.rules.randomness.records import is_handed_on
from nnx_lint.rules.randomness.reuse import KEY_MAKERS, in_forward_pass
from nnx_lint.rules.repeating import handed_for, loop_around, outwards
from nnx_lint.syntax.binding import assigned_names
from nnx_lint.syntax.dotted import root_of
from nnx_rules.rules import rngs as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

AGAIN = "in each call of `{}` as it is, since no half of the split takes its place: all calls get the same numbers"


class Runs:
    """Through which calls each split, of the key of one object, was reached first."""

    def __init__(self) -> None:
        self.first: dict[tuple[int, ast.AST], ast.AST | None] = {}


@judges_calls(rules.KEY_REUSED, SPLIT)
def half_not_kept(event: Called, report: Reporter) -> None:
    frame, split = event.frame, event.node
    named = given(event).node_of(0, "key")
    if frame.func is None or named is None or not isinstance(split, ast.Call) or in_test(frame):
        return
    whole = _bound_before(frame, split, named) if isinstance(named, ast.Name) else named
    kept = _attribute(whole)
    if whole is None:
        return
    left = _leaves_a_half(frame, split, {text_of(named), kept.attr.strip("_") if kept else ""})
    if not left and not _is_round(frame, root_of(whole)):
        return
    if isinstance(whole, (ast.Attribute, ast.Subscript)) and is_handed_on(frame, whole):
        runs, name = True, frame.func.name
    elif not left:
        return
    elif kept is not None:
        runs, cls = _runs_again(frame, kept, whole, split, report), frame.func.cls
        name = f"{cls.name}.{frame.func.name}" if cls is not None else frame.func.name
    else:
        runs, name = _is_of_module(frame, whole) and _is_called_in_loop(frame, ""), frame.func.name
    if runs:
        report(frame.module, named, name=text_of(kept or whole), again=AGAIN.format(name))


AWAY = "by whoever it is returned to, and split again in the next call, while nothing reads `{}`"


@judges_calls(rules.KEY_REUSED, SPLIT)
def half_given_away(event: Called, report: Reporter) -> None:
    """A method returns the half that its object keeps, and drops the one that it has made for its caller."""
    frame, key = event.frame, given(event).node_of(0, "key")
    target = target_of(frame.module, event.node)
    if not isinstance(key, ast.Attribute) or not isinstance(target, ast.Tuple) or frame.func is None:
        return
    kept, *others = target.elts
    if ast.unparse(kept) != ast.unparse(key) or not all(isinstance(item, ast.Name) for item in others):
        return
    names = [item.id for item in others if isinstance(item, ast.Name) and not item.id.startswith("_")]
    if len(names) != len(others) or any(reads_of(frame.func.node, name) for name in names):
        return
    away = [value for value in results_of(frame.func.node) if ast.unparse(value) == ast.unparse(key)]
    if away and not in_test(frame):
        report(frame.module, away[0], name=text_of(key), again=AWAY.format(names[0]))


def _bound_before(frame: Frame, split: ast.Call, key: ast.Name) -> ast.expr | None:
    """What a function binds the name of a key to, before it binds it to a half, and nothing else; the name itself, if
    it is none of its own.
    """
    scope = frame.func.node if frame.func is not None else frame.module.tree
    if not binds(scope, key.id):
        return key
    bound = values_in(scope).get(key.id, [])
    others = [value for value in bound if value is not split]
    return others[0] if len(others) == 1 and len(bound) == assigned_in(scope)[key.id] else None


def _is_of_module(frame: Frame, whole: ast.expr) -> bool:
    """Whether a name is that of a key which its module makes once."""
    made = constant_of(frame.module, whole)
    return isinstance(made, ast.Call) and canonical_of(frame.module.env, made.func) in KEY_MAKERS


def _attribute(node: ast.expr | None) -> ast.Attribute | None:
    """The attribute that holds a key, or a Variable whose value is one."""
    whole = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value is ...
    if isinstance(node, (ast.Subscript, ast.Attribute)) and (whole or getattr(node, "attr", "") == "value"):
        node = node.value
    return node if isinstance(node, ast.Attribute) else None


def _is_round(frame: Frame, record: str | None) -> bool:
    """Whether a loop calls a function with a record that the call gives another value: ``state, x = step(state)``."""
    given, call = handed_for(frame, record) if record is not None else None, frame.call
    if not isinstance(given, ast.Name) or call is None or frame.caller is None:
        return False
    statement = next(ancestors(frame.caller.module, call), None)
    again = isinstance(statement, ast.Assign) and given.id in assigned_names([statement])
    return again and loop_around(frame.caller.module, call, "") is not None


def _leaves_a_half(frame: Frame, split: ast.Call, names_of_key: set[str]) -> bool:
    """Whether what a key is split into has a part that nothing reads, or whose name says that it is the next key."""
    target = target_of(frame.module, split)
    scope = enclosing(frame.module, split, *FUNCTIONS)
    if not isinstance(target, (ast.Tuple, ast.List)) or scope is None or len(target.elts) < 2:
        return False
    names = [item.id for item in target.elts if isinstance(item, ast.Name)]
    if len(names) != len(target.elts):
        return False
    return names[0] in names_of_key or any(not reads_of(scope, name) for name in names)


def _is_only_read(module: Module, attribute: str, owner: Obj) -> bool:
    """Whether a text does nothing with what an attribute of an object holds but to read its value."""
    classes = {item.node for item in owner.cls.lineage} if isinstance(owner.cls, UserClass) else set[ast.AST]()
    for node in attributes_named(module.tree).get(attribute, ()):
        other = isinstance(resolved(module.env, node.value), Ext) or is_of_another(module, node, classes)
        if isinstance(node.ctx, ast.Load) and not other:
            outer = next(ancestors(module, node), None)
            if not isinstance(outer, (ast.Subscript, ast.Attribute)) or not isinstance(outer.ctx, ast.Load):
                return False
            if _attribute(outer) is not node:
                return False
    return True


def _runs_again(frame: Frame, kept: ast.Attribute, whole: ast.expr, split: ast.Call, report: Reporter) -> bool:
    """Whether the same object splits a key of its own again: in a loop, in another call, in a forward pass."""
    owner = present(resolved(frame.env, kept.value) or UNKNOWN)
    if not isinstance(owner, Obj) or frame.initializing is owner:
        return False
    if set_once(Kept(frame, kept, owner, Source(frame, kept, [frame]))) is None:
        return False
    if whole is not kept and not _is_only_read(frame.module, kept.attr, owner):
        return False
    if (in_forward_pass(frame) and frame.receiver is owner) or _is_called_in_loop(frame, root_of(kept) or ""):
        return True
    first = report.memory(Runs).first.setdefault((id(owner), split), frame.call)
    if first is frame.call or not isinstance(first, ast.Call) or not isinstance(frame.call, ast.Call):
        return False
    return ast.dump(first.func) == ast.dump(frame.call.func)


def _is_called_in_loop(frame: Frame, name: str) -> bool:
    return any(loop_around(caller.module, call, holder) is not None for caller, call, holder in outwards(frame, name))
