"""One key for all elements of a map, or for all steps of a scan that is given it whole (NNX519).

A function under ``jax.vmap`` that draws from a key which it captured, or which has ``None`` for its axis, draws the
same numbers for every element. That may be meant: the same seed for each of several settings, or one set of random
directions. It is not where the numbers are for the elements themselves: noise in the shape of an element, or a choice
by the scores of one.

Invariants: the key, and the element, are followed by name from the draw to the function under the transform; a key that
anything is folded into on the way is another one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import pairs_of
from nnx_lint.rules.program import (
    FUNCTIONS,
    assigned_in,
    binds,
    canonical_of,
    enclosing,
    given,
    in_test,
    own_nodes,
)
from nnx_lint.rules.randomness.arguments import needs_key
from nnx_lint.rules.randomness.keys import EACH_ROUND, SPLIT
from nnx_lint.rules.randomness.maps import axis_of
from nnx_lint.rules.randomness.reuse import consumes
from nnx_lint.rules.repeating import argument, frame_around
from nnx_lint.syntax.parameters import positional_names
from nnx_lint.syntax.walk import remembered
from nnx_rules.rules import rngs as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame, TraceScope

MAPS = frozenset({"jax.vmap", "nnx.vmap"})

SHAPED = {
    **dict.fromkeys(("normal", "uniform", "truncated_normal", "gumbel", "exponential", "laplace", "rademacher"), 1),
    "bernoulli": 2,
}
"""Functions that draw independent numbers, by the position of the shape."""

SCORED = {"categorical": ("logits", 1)}
"""Functions that draw by the scores that they are given."""

MAX_STEPS = 12
"""How many names deep a key is followed."""

EACH_ELEMENT = "for every element that `{}` goes over: all of them get the same numbers"


@judges_calls(rules.KEY_REUSED, "jax.random.*", when=needs_key)
def key_for_all_elements(event: Called, report: Reporter) -> None:
    frame = event.frame
    mapped = [scope for scope in frame.scope if scope.row.name in MAPS]
    function = (event.subject or "").removeprefix("jax.random.")
    if len(mapped) != 1 or mapped[0].within or function not in {*SHAPED, *SCORED}:
        return
    if not isinstance(event.node, ast.Call) or in_test(frame):
        return
    args, scope = given(event), mapped[0]
    key = args.node_of(0, "key")
    if function in SHAPED:
        shape = args.node_of(SHAPED[function], "shape")
        element = shape.value if isinstance(shape, ast.Attribute) and shape.attr == "shape" else None
    else:
        name, position = SCORED[function]
        element = args.node_of(position, name)
    if key is None or not isinstance(element, ast.Name) or not _is_whole(_origin(frame, key, scope), scope):
        return
    found = _origin(frame, element, scope)
    if isinstance(found, str) and isinstance(_axis(scope, found), int):
        report(frame.module, key, name=ast.unparse(key), again=EACH_ELEMENT.format(scope.text))


@judges_calls(rules.KEY_REUSED, "jax.random.*", when=needs_key)
def key_for_all_steps(event: Called, report: Reporter) -> None:
    """A parameter of a scanned function that is the same in each step."""
    scope = event.frame.scope[-1] if event.frame.scope else None
    if scope is None or scope.row.name != "nnx.scan" or not consumes(event.subject) or in_test(event.frame):
        return
    key = given(event).node_of(0, "key")
    found = _origin(event.frame, key, scope) if key is not None else None
    if key is not None and isinstance(found, str) and _axis(scope, found) is None:
        report(event.frame.module, key, name=ast.unparse(key), again=EACH_ROUND)


CAPTURED = object()
"""What is said of a name that is none of the parameters of the function under a transform."""


def _is_whole(found: object, scope: TraceScope) -> bool:
    """Whether each element gets the same value."""
    return found is CAPTURED or (isinstance(found, str) and _axis(scope, found) is None)


def _axis(scope: TraceScope, parameter: str) -> object:
    """The axis along which a transform takes a parameter of its function."""
    func = scope.frame.func if scope.frame is not None else None
    names = positional_names(func.node.args) if func is not None else []
    receiver = scope.frame is not None and scope.frame.receiver is not None
    if receiver or scope.held or parameter not in names:
        return ...
    return axis_of(scope.applied, names.index(parameter))


def _origin(frame: Frame, node: ast.expr, scope: TraceScope) -> object:
    """Where a value comes from: the parameter of the function under a transform, by name, or from outside of that;
    nothing for what is made on the way.
    """
    if not _is_as_written(scope):
        return None
    for _ in range(MAX_STEPS):
        func = frame.func.node if frame.func is not None else None
        if not isinstance(node, ast.Name) or func is None:
            return None
        if not binds(func, node.id):
            outer = frame_around(frame)
            if outer is None:
                return CAPTURED if enclosing(frame.module, func, *FUNCTIONS) is None else None
            if not any(each is scope.frame for each in outer.outwards()):
                return CAPTURED
            frame = outer
        elif assigned_in(func)[node.id]:
            made = _unpacked(func).get(node.id) if assigned_in(func)[node.id] == 1 else None
            if made is None or canonical_of(frame.env, made.func) != SPLIT or not made.args:
                return None
            node = made.args[0]
        elif frame is scope.frame:
            return node.id
        else:
            handed = argument(frame, node.id)
            if handed is None or frame.caller is None:
                return None
            node, frame = handed, frame.caller
    return None


def _is_as_written(scope: TraceScope) -> bool:
    """Whether a transform gets a function by its own name, so that its parameters are those that the options count."""
    func, call = scope.frame.func if scope.frame is not None else None, scope.applied.node
    if func is None or scope.held:
        return False
    given = call.args[0] if isinstance(call, ast.Call) and call.args else None
    decorates = not isinstance(func.node, ast.Lambda) and any(call is each for each in func.node.decorator_list)
    return decorates or given is func.node or (isinstance(given, ast.Name) and given.id == func.name)


@remembered
def _unpacked(func: ast.AST) -> dict[str, ast.Call]:
    """The calls whose results a function unpacks, by the names that it unpacks them into."""
    found: dict[str, ast.Call] = {}
    for target, value in (pair for item in own_nodes(func) for pair in pairs_of(item)):
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Call):
            found.update((item.id, value) for item in target.elts if isinstance(item, ast.Name))
    return found
