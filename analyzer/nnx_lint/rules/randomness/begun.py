"""A key with which the rounds of a transform begin, and that a function returns after them (NNX519).

``total, _ = jax.lax.fori_loop(0, n, step, (total, key))`` splits a key of its own in each round, beginning with
``key``. Who gets ``key`` back for the next call begins with the same numbers: the key that the last round has left is
the one to go on with.

Invariants: what a step takes out of its carry is read off its text, as ``total, key = carry`` or ``carry["key"]``; it
draws from the key, or binds its name to a new one; nothing binds the key anew between the loop and the end. Numbers
that are drawn from the key after it was split are others.
"""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.loops import LOOPS
from nnx_lint.model.modules import Env
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.bindings import pairs_of, value_of
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    calls_in,
    canonical_of,
    enclosing,
    follows,
    in_test,
    keyword_node,
    own_nodes,
    reads_of,
    resolved,
    statement_of,
)
from nnx_lint.rules.randomness.drawing import KEY_LIKE, function_of
from nnx_lint.rules.randomness.keys import bound_between
from nnx_lint.rules.randomness.reuse import consumes
from nnx_lint.rules.randomness.selected import apart
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name, names_in
from nnx_rules.rules import rngs as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

AFTER = "for rounds, and given back as it was: return the key that the last round leaves"

Place = int | str | None
"""Where in a carry something is: in a tuple, in a dict, or the whole of it."""


@judges_calls(rules.KEY_REUSED, *LOOPS)
def key_after_rounds(event: Called, report: Reporter) -> None:
    frame, call, module = event.frame, event.node, event.frame.module
    loop = LOOPS[event.subject or ""]
    if not isinstance(call, ast.Call) or in_test(frame):
        return
    step = 0 if loop.pairs else loop.carry + 1  # where the function of the steps stands, before what they begin with
    named = keyword_node(call, "init" if loop.pairs else "init_val")
    given = call.args[step + 1] if len(call.args) > step + 1 else named
    scope, here = enclosing(module, call, *FUNCTIONS, ast.Module), statement_of(module, call)
    keys = {name.id: place for place, name in _keys(module, given)}
    if scope is None or here is None or not keys:
        return
    callee = function_of(resolved(frame.env, call.args[step])) if step < len(call.args) else None
    names = syntax_parameters.positional_names(callee.func.node.args) if callee is not None else []
    if callee is None or len(names) != loop.parameters + callee.given:
        return
    for name, place in keys.items():
        if not _draws(callee.func, names[callee.given + loop.carry], place):
            continue
        for read in reads_of(scope, name):
            if _is_second(frame, scope, here, read) and not apart(module, frame.env, call, read):
                where = (related(module, call, "the rounds that begin with it"),)
                report(module, read, name=name, again=AFTER, related=where)
                break


def _keys(module: Module, given: ast.expr | None) -> list[tuple[Place, ast.Name]]:
    """The keys with which rounds begin, and where in the carry they are."""
    parts: list[tuple[Place, ast.expr]] = [(None, given)] if given is not None else []
    if isinstance(given, ast.Name) and not KEY_LIKE.search(given.id):
        given = value_of(module, given)
    if isinstance(given, ast.Tuple) and not any(isinstance(item, ast.Starred) for item in given.elts):
        parts = [*enumerate(given.elts)]
    elif isinstance(given, ast.Dict):
        pairs = zip(given.keys, given.values, strict=True)
        parts = [(key.value, item) for key, item in pairs if isinstance(key, ast.Constant) and type(key.value) is str]
    return [(place, part) for place, part in parts if isinstance(part, ast.Name) and KEY_LIKE.search(part.id)]


def _draws(func: FuncVal, carry: str, place: Place) -> bool:
    """Whether a step takes a key out of its carry to draw from it, or to leave another one in its place."""
    node, env = func.node, func.env
    if isinstance(node, ast.Lambda) or not isinstance(env, Env):
        return False
    name = carry if place is None else _taken(node, carry, place)
    for call in calls_in(node) if name is not None else ():
        key = call.args[0] if call.args else keyword_node(call, "key")
        if is_name(key, name) and consumes(canonical_of(env, call.func)):
            return True
    # another function makes the new one: ``state, key = self.update(state, key)``
    calls = (item for item in own_nodes(node) if isinstance(item, ast.Assign) and isinstance(item.value, ast.Call))
    return name is not None and any(_renews(item, name) for item in calls)


def _renews(statement: ast.Assign, name: str) -> bool:
    """Whether a name is bound to what a call returns that is given what the name stands for."""
    call = statement.value
    given = [*call.args, *(item.value for item in call.keywords)] if isinstance(call, ast.Call) else []
    return any(is_name(item, name) for item in given) and any(name in names_in(item) for item in statement.targets)


def _taken(step: ast.FunctionDef | ast.AsyncFunctionDef, carry: str, place: Place) -> str | None:
    """The name that a step has for a part of its carry."""
    for item in own_nodes(step):
        for target, value in pairs_of(item):
            if isinstance(place, int) and is_name(value, carry) and isinstance(target, ast.Tuple):
                part = target.elts[place] if place < len(target.elts) else None
                return part.id if isinstance(part, ast.Name) else None
            index = value.slice if isinstance(value, ast.Subscript) and is_name(value.value, carry) else None
            if isinstance(index, ast.Constant) and index.value == place and isinstance(target, ast.Name):
                return target.id
    return None


def _is_second(frame: Frame, scope: ast.AST, here: ast.stmt, read: ast.Name) -> bool:
    """Whether a function hands a key back after the rounds that began with it."""
    module, place = frame.module, statement_of(frame.module, read)
    if place is None or place is here or not follows(module, here, place):
        return False
    if enclosing(module, read, *FUNCTIONS, ast.Module) is not scope or bound_between(scope, read.id, here, place):
        return False
    outers = [*itertools.takewhile(lambda outer: outer is not place, ancestors(module, read))]
    called = [canonical_of(frame.env, outer.func) or "" for outer in outers if isinstance(outer, ast.Call)]
    derived = any(name.startswith("jax.random.") for name in called)
    return isinstance(place, ast.Return) and not derived and all(isinstance(outer, PARTS) for outer in outers)


PARTS = (ast.Call, ast.Dict, ast.List, ast.Tuple, ast.keyword)
"""Expressions that hand on what is in them."""
