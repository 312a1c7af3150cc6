"""Keys that rounds hand on as they got them (NNX519): in the carry of a function that a transform runs in rounds, and
through a function that a loop calls, which returns its key beside what it made with it.

What a function takes and returns is read off its text: ``x, key = carry`` at its beginning and ``return (x, key), y``
at its end have the key in one place.

Invariants: a key is what the function got only if it never binds the name but to take it; each of its ends must hand it
on in the same place.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal, Transformed
from nnx_lint.model.loops import SCANS, STEPPING, carried_at
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import pairs_of, target_of
from nnx_lint.rules.program import (
    assigned_in,
    canonical_of,
    in_test,
    own_nodes,
    parameters_in,
    reads_of,
)
from nnx_lint.rules.randomness.arguments import needs_key
from nnx_lint.rules.randomness.drawing import Callee, Keys, function_of, given_for, handed, used_by
from nnx_lint.rules.randomness.keys import EACH_ROUND, runs_in_rounds, trains
from nnx_lint.rules.randomness.reuse import KEY_MAKERS, called_for
from nnx_lint.rules.repeating import loop_around
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.walk import remembered
from nnx_rules.rules import rngs as rules

if TYPE_CHECKING:
    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Place = tuple[int, ...]
"""Where something is in tuples inside of each other; nowhere for the whole."""


@judges_calls(rules.KEY_REUSED, "jax.random.*", when=needs_key)
def carried_key_drawn(event: Called, report: Reporter) -> None:
    """A draw in a round from a key of the carry."""
    call, frame = event.node, event.frame
    if not isinstance(call, ast.Call) or not runs_in_rounds(frame):
        return
    key = event.nodes[0] if event.nodes else None
    if isinstance(key, ast.Name) and used_by(frame.module, canonical_of(frame.env, call.func), call):
        _report(frame, key, report)


@judges_calls(rules.KEY_REUSED, FuncVal, Transformed, BoundMethod, PartialVal, Obj)
def carried_key_handed(event: Called, report: Reporter) -> None:
    """A call in a round, or in a loop, of a function that draws from the key that it is given."""
    call, frame, callee = event.node, event.frame, function_of(event.callee)
    if callee is None or not isinstance(call, ast.Call) or in_test(frame):
        return
    drawn, renewed = report.memory(Keys).drawn_from(callee.func), _renewed(callee.func.node)
    for parameter, node in handed(call, callee) if drawn or renewed else ():
        if parameter in renewed and _is_left(frame, call, node, renewed[parameter]):
            report(frame.module, node, name=node.id, again=EACH_ROUND)
            continue
        if parameter not in drawn:
            continue
        if runs_in_rounds(frame):
            _report(frame, node, report)
        elif _comes_back(frame, call, callee.func, parameter, node.id):
            report(frame.module, node, name=node.id, again=EACH_ROUND)
    for parameter, kept in given_for(call, callee) if drawn else ():
        if (
            isinstance(kept, ast.Attribute)
            and parameter in drawn
            and _is_put_back(frame, call, callee, parameter, kept)
        ):
            report(frame.module, kept, name=ast.unparse(kept), again=EACH_CALL)


EACH_CALL = "in each call: the function draws from it and gives it back as it was"


def _report(frame: Frame, key: ast.Name, report: Reporter) -> None:
    func, running = frame.func, frame.scope[-1]
    carry = carry_of(running.applied, func.node) if func is not None and not in_test(frame) else None
    if func is None or carry is None:
        return
    if key.id in _handed_on(func.node, carry, (0,) if running.row.name in SCANS else ()):
        report(frame.module, key, name=key.id, again=EACH_ROUND)


def carry_of(applied: TransformVal, func: Function) -> str | None:
    """The parameter of a function that is the carry, where a transform is not told otherwise."""
    place, names = carried_at(applied.row.name), syntax_parameters.positional_names(func.args)
    told = not applied.keywords.keys().isdisjoint({"in_axes", "out_axes", "**"})
    return names[place] if applied.row.name in STEPPING and place < len(names) and not told else None


def _comes_back(frame: Frame, call: ast.Call, func: FuncVal, parameter: str, name: str) -> bool:
    """Whether a loop gives a function the key that this has returned, which is the one that it got."""
    target = target_of(frame.module, call)
    places = _returned(func.node).get(parameter) if target is not None else None
    loop = loop_around(frame.module, call, "") if places else None
    if loop is None or places is None or target is None or assigned_in(loop)[name] != 1:
        return False
    targets = _places(target)
    return any(targets.get(place) == name for place in places)


def _is_put_back(frame: Frame, call: ast.Call, callee: Callee, parameter: str, key: ast.Attribute) -> bool:
    """Whether an object keeps the key that a function has returned, which is the one that the object gave it."""
    target = target_of(frame.module, call)
    for place in _returned(callee.func.node).get(parameter, ()) if target is not None else ():
        part: ast.expr | None = target
        for number in place:
            part = part.elts[number] if isinstance(part, ast.Tuple) and number < len(part.elts) else None
        if isinstance(part, ast.Attribute) and ast.unparse(part) == ast.unparse(key):
            return True
    return False


def _is_left(frame: Frame, call: ast.Call, key: ast.Name, places: set[Place]) -> bool:
    """Whether each round of a loop trains with one key, and leaves the new one that it gets back."""
    scope = frame.func.node if frame.func is not None else frame.module.tree
    made = called_for(scope).get(key.id)
    if made is None or canonical_of(frame.env, made.func) not in KEY_MAKERS or not trains(frame, call):
        return False
    target = target_of(frame.module, call)
    taken = _places(target) if target is not None else {}
    names = [taken[place] for place in places if place in taken]
    left = bool(names) and all(name == "_" or not reads_of(scope, name) for name in names)
    return left and loop_around(frame.module, call, key.id) is not None


# -- what the text says ------------------------------------------------------------------------------------------------


def _places(node: ast.expr) -> dict[Place, str]:
    """The names in tuples inside of each other, by where they are."""
    if isinstance(node, ast.Name):
        return {(): node.id}
    if not isinstance(node, (ast.Tuple, ast.List)) or any(isinstance(item, ast.Starred) for item in node.elts):
        return {}
    inner = ((number, _places(item)) for number, item in enumerate(node.elts))
    return {(number, *place): name for number, found in inner for place, name in found.items()}


def _place_in(node: ast.expr, name: str) -> Place | None:
    """Where in the tuple of this name an expression is: ``carry``, ``carry[1]``."""
    match node:
        case ast.Name(id=found) if found == name:
            return ()
        case ast.Subscript(value=ast.Name(id=found), slice=ast.Constant(value=int(index))) if found == name:
            return (index,)
        case _:
            return None


@remembered
def _ends(func: Function) -> list[dict[Place, str]]:
    """What a function returns, at each of its ends; a name that is bound to a tuple for it stands for that."""
    if isinstance(func, ast.Lambda):
        return [_places(func.body)]
    returned = [node.value for node in own_nodes(func) if isinstance(node, ast.Return) and node.value is not None]
    made = {
        target.id: value
        for node in own_nodes(func)
        for target, value in pairs_of(node)
        if isinstance(target, ast.Name) and isinstance(value, ast.Tuple) and assigned_in(func)[target.id] == 1
    }

    found: list[dict[Place, str]] = []
    for value in returned:
        whole = made.get(value.id, value) if isinstance(value, ast.Name) else value
        held = _places(whole)
        for place, name in list(held.items()) if whole is value else ():
            inner = _places(made[name]) if name in made else {}
            held |= {(*place, *deeper): part for deeper, part in inner.items()}
        found.append(held)
    return found


@remembered
def _returned(func: Function) -> dict[str, set[Place]]:
    """The parameters that a function returns as they are, and where."""
    return _given_back(func, anew=False)


@remembered
def _renewed(func: Function) -> dict[str, set[Place]]:
    """The parameters that a function binds to something new and returns, and where."""
    return _given_back(func, anew=True)


def _given_back(func: Function, *, anew: bool) -> dict[str, set[Place]]:
    assigned, parameters, found = assigned_in(func), parameters_in(func), dict[str, set[Place]]()
    for name in syntax_parameters.names(func.args):
        if bool(assigned[name]) is anew and parameters[name] == 1 and (ends := _ends(func)):
            first, *others = ({place for place, held in end.items() if held == name} for end in ends)
            found[name] = first.intersection(*others)
    return found


def _handed_on(func: Function, carry: str, start: Place) -> set[str]:
    """The names of what a round finds in its carry and hands on in the same place; the carry begins at ``start`` of
    what it returns.
    """
    taken: dict[Place, str] = {(): carry} if assigned_in(func)[carry] == 0 else {}
    stored = [node for node in own_nodes(func) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
    until = min((node.lineno for node in stored if node.id == carry), default=None)
    for target, value in (pair for node in own_nodes(func) for pair in pairs_of(node)):
        place = _place_in(value, carry)
        if place is not None and (until is None or target.lineno < until):
            taken |= {(*place, *inner): name for inner, name in _places(target).items()}
    ends = _ends(func)
    same = {name for place, name in taken.items() if ends and all(end.get((*start, *place)) == name for end in ends)}
    return {name for name in same if assigned_in(func)[name] + parameters_in(func)[name] == 1}
