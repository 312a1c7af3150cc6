"""Steps of loops that return the parts of their carry in another order than they took them apart (a part of NNX434).

``env_state, net_state = carry`` at the beginning, ``return new_net_state, new_env_state`` at the end: where both are
trees of one kind, or arrays of one shape, nothing fails, and the next round takes the one for the other.

Invariants: names say what the parts are, so both are to be computed anew in the round: two buffers that change places
are not. Where the kinds of the parts are known, :mod:`~nnx_lint.rules.transforms.carrying` knows more.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.events import Ran, RanInside
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.program import assigned_in, own_statements
from nnx_lint.rules.transforms.carrying import Told, is_loop
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.walk import remembered
from nnx_rules.rules import transforms as rules

ANEW = frozenset({"after", "final", "new", "next", "out", "updated"})
"""What a name says of a part that a round has computed."""

TURNING = frozenset(
    {"back", "cur", "current", "even", "first", "front", "last", "left", "odd", "old", "ping", "pong", "prev"}
    | {"previous", "right", "second"}
)
"""What names say of parts that may change places in each round."""

if TYPE_CHECKING:
    from collections.abc import Iterator

    Step = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@judges(rules.LOOP_TREE, Ran, RanInside, when=is_loop)
def carry_turned(event: Ran, report: Reporter) -> None:
    func = event.scope.frame.func if event.scope.frame is not None else None
    if func is None or func.node in report.memory(Told).steps:
        return
    for before, after in _turned(func.node)[:1]:
        one, other = (", ".join(map(ast.unparse, part.elts)) for part in (before, after))
        report(func.module, after, transform=event.scope.text, one=f"`{one}`", other=f"`{other}`, in another order")


@remembered
def _turned(step: Step) -> list[tuple[ast.Tuple, ast.Tuple]]:
    """How a step takes a carry apart, and what it returns, where two parts have changed places."""
    found: list[tuple[ast.Tuple, ast.Tuple]] = []
    if isinstance(step, ast.Lambda):
        return found
    parameters = {*syntax_parameters.names(step.args)}
    statements = own_statements(step)
    for item in statements:
        value = item.value if isinstance(item, ast.Assign) and len(item.targets) == 1 else None
        target = item.targets[0] if isinstance(item, ast.Assign) else None
        if isinstance(value, ast.Name) and value.id in parameters and isinstance(target, ast.Tuple):
            returned = (part for each in statements for part in _carries(each, len(target.elts)))
            found += [(target, part) for part in returned if _changes_places(step, target, part)]
    return found


def _carries(statement: ast.AST, count: int) -> Iterator[ast.Tuple]:
    """What a statement returns as the carry, which has so many parts."""
    value = statement.value if isinstance(statement, ast.Return) else None
    parts = value.elts if isinstance(value, ast.Tuple) else []
    for part in (value, *parts[:1]):
        if isinstance(part, ast.Tuple) and len(part.elts) == count:
            yield part


def _changes_places(step: Step, before: ast.Tuple, after: ast.Tuple) -> bool:
    names = [_words(part) for part in before.elts]
    given = [_words(part) - ANEW for part in after.elts]
    bound = assigned_in(step)
    for place, words in enumerate(names):
        other = given.index(words) if words and given.count(words) == 1 else place
        if other == place or names[other] != given[place] or words & TURNING or names[other] & TURNING:
            continue
        pairs = [(before.elts[place], after.elts[other]), (before.elts[other], after.elts[place])]
        if all(
            bound[new.id] > (old.id == new.id)
            for old, new in pairs
            if isinstance(old, ast.Name) and isinstance(new, ast.Name)
        ):
            return True
    return False


def _words(part: ast.expr) -> frozenset[str]:
    """The words of a name that is more than a letter."""
    return frozenset(part.id.split("_")) if isinstance(part, ast.Name) and len(part.id) > MANY else frozenset()


MANY = 2
"""How long the names are that say nothing of what they are for."""
