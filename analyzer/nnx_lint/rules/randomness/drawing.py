"""Functions of the project that draw from a key that they are given, and one key that two of them get (NNX519).

What a function draws from is read off its text: the parameters that it hands to ``jax.random`` as keys, itself or
through functions that it calls, without binding them anew.

Invariants: a key is followed by its name, as in :mod:`~nnx_lint.rules.randomness.keys`. Two calls of one function share
a key by mistake only if they are the same call: for other arguments the same choices may be meant, as for an image and
its mask.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.callables import BoundMethod, FuncVal, Transformed
from nnx_lint.model.events import Called
from nnx_lint.model.modules import Env
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.program import (
    FUNCTIONS,
    binds,
    calls_in,
    canonical_of,
    enclosing,
    follows,
    in_test,
    keyword_node,
    own_nodes,
    resolved,
    statement_of,
)
from nnx_lint.rules.randomness.keys import (
    EACH_ROUND,
    SPLIT,
    TWICE,
    apart,
    bound_between,
    is_written_out,
    repeated,
    trains,
)
from nnx_lint.rules.randomness.reuse import consumes
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import rngs as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value

MAX_CALLS = 4
"""How many calls deep it is looked for a draw."""


class Use(NamedTuple):
    """A call that hands a key over, and the function that draws from it: of the project, or one of JAX by its name."""

    module: Module
    call: ast.Call
    key: ast.Name
    drawing: object


class Keys:
    """What draws from the keys of a function, by its scope and the name, and from which parameters functions draw."""

    def __init__(self) -> None:
        self.uses: dict[tuple[int, str], list[Use]] = {}
        self.drawn: dict[int, frozenset[str]] = {}

    def drawn_from(self, func: FuncVal, depth: int = MAX_CALLS) -> frozenset[str]:
        """The parameters that a function draws from."""
        known = self.drawn.get(id(func.node))
        if known is None:
            self.drawn[id(func.node)] = frozenset()  # of a function that calls itself
            known = self.drawn[id(func.node)] = frozenset(self._drawn_from(func, depth)) if depth else frozenset()
        return known

    def _drawn_from(self, func: FuncVal, depth: int) -> set[str]:
        env, found = func.env, set[str]()
        if not isinstance(env, Env):
            return found
        own, calls = _handing_on(func.node)
        for call in calls:
            name = canonical_of(env, call.func)
            key = call.args[0] if call.args else keyword_node(call, "key")
            if name is not None and name.startswith("jax.random."):
                if isinstance(key, ast.Name) and consumes(name) and name != SPLIT:
                    found.add(key.id)
                continue
            callee = function_of(resolved(env, call.func))
            if callee is not None:
                drawn = self.drawn_from(callee[0], depth - 1)
                found |= {given.id for parameter, given in handed(call, *callee) if parameter in drawn}
        return found & own


@remembered
def _handing_on(func: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> tuple[set[str], list[ast.Call]]:
    """The parameters that a function does not bind anew, and the calls in it that are given one of them."""
    names = syntax_parameters.names(func.args)
    nodes = walk(func) if names else []
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    parameters = [node.arg for node in nodes if isinstance(node, ast.arg)]
    own = {name for name in names if name not in bound and parameters.count(name) == 1}
    calls: list[ast.Call] = []
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        values = (*call.args, *(item.value for item in call.keywords))
        if any(isinstance(value, ast.Name) and value.id in own for value in values):
            calls.append(call)
    return own, calls


def function_of(callee: Value | None) -> tuple[FuncVal, bool] | None:
    """The function of the project that a call runs, and whether an object is its first argument."""
    bound = isinstance(callee, BoundMethod)
    while isinstance(callee, (Transformed, BoundMethod)):
        bound = bound or isinstance(callee, BoundMethod)
        callee = callee.func
    return (callee, bound) if isinstance(callee, FuncVal) and callee.wraps is None else None


def handed(call: ast.Call, func: FuncVal, bound: bool) -> list[tuple[str, ast.Name]]:
    """The names that a call hands to a function, with the parameters that they are given for."""
    if any(isinstance(item, ast.Starred) for item in call.args):
        return []
    parameters = syntax_parameters.positional_names(func.node.args)[bound:]
    pairs = [*zip(parameters, call.args, strict=False)]
    pairs += [(item.arg, item.value) for item in call.keywords if item.arg is not None]
    return [(parameter, node) for parameter, node in pairs if isinstance(node, ast.Name)]


@judges_calls(rules.KEY_REUSED, FuncVal, Transformed, BoundMethod)
def key_of_two_calls(event: Called, report: Reporter) -> None:
    """Two functions of the project draw from one key, or one does so twice for the same arguments."""
    call, frame, callee = event.node, event.frame, function_of(event.callee)
    if callee is None or not isinstance(call, ast.Call) or in_test(frame):
        return
    given = handed(call, *callee)
    drawn = report.memory(Keys).drawn_from(callee[0]) if given else ()
    for parameter, node in given if drawn else ():
        if parameter in drawn:
            _used(frame, Use(frame.module, call, node, callee[0].node), report)
            if repeated(frame.module, call, node.id) and _is_own(frame, call, node) and trains(frame, call):
                report(frame.module, node, name=node.id, again=EACH_ROUND)


@judges_calls(rules.KEY_REUSED, "jax.random.*")
def key_of_draw_and_call(event: Called, report: Reporter) -> None:
    """A draw of the function itself, beside that of a function that it calls."""
    call = event.node
    name = canonical_of(event.frame.env, call.func) if isinstance(call, ast.Call) else None
    node = (call.args[0] if call.args else keyword_node(call, "key")) if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call) or not isinstance(node, ast.Name) or in_test(event.frame):
        return
    if consumes(name) and name != SPLIT:
        _used(event.frame, Use(event.frame.module, call, node, name), report)


def _is_own(frame: Frame, call: ast.Call, key: ast.Name) -> bool:
    """Whether a call stands in the running function itself, which binds the name of the key."""
    scope = frame.func.node if frame.func is not None else frame.module.tree
    return enclosing(frame.module, call, *FUNCTIONS, ast.Module) is scope and binds(scope, key.id)


def _used(frame: Frame, use: Use, report: Reporter) -> None:
    scope = frame.func.node if frame.func is not None else frame.module.tree
    if not _is_own(frame, use.call, use.key):
        return
    others = report.memory(Keys).uses.setdefault((id(scope), use.key.id), [])
    if any(each.call is use.call for each in others):
        return
    for other in others:
        first, last = sorted((other, use), key=lambda each: (each.call.lineno, each.call.col_offset))
        if _is_second(frame, scope, first, last):
            where = (related(last.module, first.call, "the first use"),)
            report(last.module, last.key, name=last.key.id, again=TWICE, related=where)
    others.append(use)


def _is_second(frame: Frame, scope: ast.AST, first: Use, last: Use) -> bool:
    """Whether two uses of a key give the same numbers, or such as depend on each other."""
    module, name = frame.module, first.key.id
    if isinstance(first.drawing, str) and isinstance(last.drawing, str):
        return False
    alike = first.drawing is last.drawing
    if alike and (ast.dump(first.call) != ast.dump(last.call) or _compares(frame, scope)):
        return False
    here, there = statement_of(module, first.call), statement_of(module, last.call)
    if here is None or there is None or is_written_out(frame, scope, name) or not follows(module, here, there):
        return False
    return not apart(module, first.call, last.call) and not bound_between(scope, name, here, there)


COMPARING = frozenset({"jax.numpy.allclose", "jax.numpy.array_equal", "numpy.allclose", "numpy.array_equal"})


def _compares(frame: Frame, scope: ast.AST) -> bool:
    """Whether a function compares results: it may call another one twice to see that both are the same."""
    names = (canonical_of(frame.env, call.func) or "" for call in calls_in(scope))
    compared = any(name in COMPARING or name.startswith("numpy.testing.") for name in names)
    return compared or any(isinstance(node, ast.Assert) for node in own_nodes(scope))
