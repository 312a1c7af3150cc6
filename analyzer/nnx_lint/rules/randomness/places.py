"""One of several keys that a key was split into, taken twice by its place (part of NNX519): ``keys[1]`` for two draws.

Invariants: the keys are bound once, by the split, and nothing changes the list of them; everything else is as for keys
that have names (:mod:`~nnx_lint.rules.randomness.keys`).
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.program import (
    FUNCTIONS,
    bound_in,
    calls_in,
    canonical_of,
    enclosing,
    follows,
    given,
    in_test,
    keyword_node,
    own_nodes,
    statement_of,
)
from nnx_lint.rules.randomness.arguments import needs_key
from nnx_lint.rules.randomness.keys import (
    EACH_ROUND,
    KEPT_ON_PURPOSE,
    SPLIT,
    TWICE,
    are_compared,
    binder_of,
    in_unison,
    is_said_twice,
    is_written_out,
    repeated,
    takes_the_first,
)
from nnx_lint.rules.randomness.reuse import KEY_MAKERS, called_for, consumes
from nnx_lint.rules.randomness.selected import apart
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.places import begin
from nnx_lint.syntax.walk import remembered
from nnx_rules.rules import rngs as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Env


@judges_calls(rules.KEY_REUSED, "jax.random.*", when=needs_key)
def place_reused(event: Called, report: Reporter) -> None:
    frame, module, env, call = event.frame, event.frame.module, event.frame.env, event.node
    node = given(event).node_of(0, "key")
    place = _place(node)
    if place is None or node is None or not isinstance(call, ast.Call) or in_test(frame):
        return
    scope, uses, (name, _) = enclosing(module, call, *FUNCTIONS, ast.Module), canonical_of(env, call.func), place
    if scope is None or not consumes(uses) or binder_of(module, scope, name) is not scope:
        return
    if bound_in(scope)[name] != 1 or name in _changed(scope) or not _is_split(frame, scope, name):
        return
    say = partial(report, module, node, name=ast.unparse(node))
    if repeated(module, call, name):
        if (uses != SPLIT or takes_the_first(module, call)) and not KEPT_ON_PURPOSE.search(name):
            say(again=EACH_ROUND)
        return
    here = statement_of(module, call)
    for other in _by_place(scope).get(place, []) if here is not None else ():
        there, used = statement_of(module, other), canonical_of(env, other.func)
        if other is call or there is None or here is None or begin(other) >= begin(call) or not consumes(used):
            continue
        if (used == SPLIT) != (uses == SPLIT) or in_unison(other, call, used, uses):
            continue
        if is_said_twice(scope, there, here):
            continue
        if are_compared(scope, (there, other), (here, call)) or apart(module, env, other, call):
            continue
        if enclosing(module, other, *FUNCTIONS, ast.Module) is scope and follows(module, there, here):
            say(again=TWICE, related=(related(module, other, "the first use"),))
            return


def _place(node: ast.expr | None) -> tuple[str, object] | None:
    """The name and the place of a key that is an element of something, where the text says which."""
    named = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
    if not named or not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        return None
    number = node.slice
    if isinstance(number, ast.UnaryOp) and isinstance(number.op, ast.USub) and isinstance(number.operand, ast.Constant):
        return node.value.id, ast.unparse(number)
    return (node.value.id, number.value) if isinstance(number, ast.Constant) else None


@remembered
def _by_place(scope: ast.AST) -> dict[tuple[str, object], list[ast.Call]]:
    """The calls in a function or module by the place that they take their first argument from."""
    found: dict[tuple[str, object], list[ast.Call]] = {}
    for call in calls_in(scope):
        place = _place(call.args[0] if call.args else keyword_node(call, "key"))
        if place is not None:
            found.setdefault(place, []).append(call)
    return found


@remembered
def _changed(scope: ast.AST) -> frozenset[str]:
    """The names of lists that a function or module may put something into, or take something from."""
    found: set[str] = set()
    for node in own_nodes(scope):
        held = node.value if isinstance(node, (ast.Attribute, ast.Subscript)) else None
        kept = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
        if isinstance(held, ast.Name) and not kept and getattr(node, "attr", "") not in READ:
            found.add(held.id)
    return frozenset(found)


READ = frozenset({"dtype", "ndim", "shape", "size"})
"""Attributes of an array of keys that change nothing."""


def _is_split(frame: Frame, scope: ast.AST, name: str) -> bool:
    """Whether a name is bound to the keys that one is split into, which is not made of a number that stands there."""
    made = called_for(scope).get(name)
    if made is not None and len(made.args) == 1 and (is_name(made.func, "list") or is_name(made.func, "tuple")):
        made = made.args[0] if isinstance(made.args[0], ast.Call) else made
    if made is None or canonical_of(frame.env, made.func) != SPLIT:
        return False
    key = made.args[0] if made.args else keyword_node(made, "key")
    if isinstance(key, ast.Name):
        return not is_written_out(frame, scope, key.id)
    return not (isinstance(key, ast.Call) and _is_literal(frame.env, key))


def _is_literal(env: Env, made: ast.Call) -> bool:
    """Whether a key is made of a number that the program says."""
    return canonical_of(env, made.func) in KEY_MAKERS and all(isinstance(item, ast.Constant) for item in made.args)
