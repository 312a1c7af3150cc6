"""Keys in records that rounds hand on (NNX519): ``state.key`` of a carry that is a named tuple or a dataclass, and
``carry["key"]`` of one that is a dict; and in those of a functional step, which takes a record and returns the next.

Invariants: a record is followed by its name; each statement that binds the name, and each end of a round, must keep the
key that the record had, and one of them must say so by making a new record of it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.classes import UserClass
from nnx_lint.model.loops import SCANS
from nnx_lint.model.values import ClassVal
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import pairs_of, value_of
from nnx_lint.rules.program import (
    assigned_in,
    canonical_of,
    in_test,
    keyword_node,
    names_of_parameters,
    own_nodes,
    resolved,
)
from nnx_lint.rules.randomness.arguments import needs_key
from nnx_lint.rules.randomness.carried import carry_of
from nnx_lint.rules.randomness.drawing import used_by
from nnx_lint.rules.randomness.keys import EACH_ROUND, runs_in_rounds
from nnx_lint.rules.repeating import loop_around
from nnx_lint.syntax.binding import is_name
from nnx_rules.rules import rngs as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Env
    from nnx_lint.model.values import Value

Key = ast.Attribute | ast.Subscript


@judges_calls(rules.KEY_REUSED, "jax.random.*", when=needs_key)
def key_of_record(event: Called, report: Reporter) -> None:
    call, frame = event.node, event.frame
    key = event.nodes[0] if event.nodes else None
    if not isinstance(call, ast.Call) or not isinstance(key, Key) or not isinstance(key.value, ast.Name):
        return
    if in_test(frame) or not used_by(frame.module, canonical_of(frame.env, call.func), call):
        return
    kept = _kept_by_rounds(frame, key, key.value.id) if runs_in_rounds(frame) else _kept_by_loop(frame, call, key)
    if kept:
        report(frame.module, key, name=ast.unparse(key), again=EACH_ROUND)


def _kept_by_rounds(frame: Frame, key: Key, record: str) -> bool:
    """Whether a function that runs in rounds hands on the key of its carry."""
    func, running = frame.func, frame.scope[-1]
    if func is None or isinstance(func.node, ast.Lambda) or carry_of(running.applied, func.node) != record:
        return False
    made = [value for node in own_nodes(func.node) for value in _stored(node, record)]
    ends = [node.value for node in own_nodes(func.node) if isinstance(node, ast.Return)]
    if running.row.name in SCANS:
        ends = [end.elts[0] if isinstance(end, ast.Tuple) and len(end.elts) == 2 else None for end in ends]
    if len(made) != assigned_in(func.node)[record] or not ends or _is_set(func.node, key):
        return False
    return all(each is not None and _keeps(frame.env, each, key, record) for each in (*made, *ends))


def _kept_by_loop(frame: Frame, call: ast.Call, key: Key) -> bool:
    """Whether a loop makes a new record in each round, with the key of the one before."""
    loop = loop_around(frame.module, call, "")
    record = key.value.id if isinstance(key.value, ast.Name) else ""
    made = [value for node in own_nodes(loop) for value in _stored(node, record)] if loop is not None else []
    if loop is None or not made or len(made) != assigned_in(loop)[record] or _is_set(loop, key):
        return False
    return all(_keeps(frame.env, each, key, record) for each in made)


def is_handed_on(frame: Frame, key: Key) -> bool:
    """Whether each end of a function returns the next one of a record that it was given, with the key that this had."""
    func, record = frame.func, key.value.id if isinstance(key.value, ast.Name) else ""
    if func is None or isinstance(func.node, ast.Lambda) or record not in names_of_parameters(func.node):
        return False
    made = [value for node in own_nodes(func.node) for value in _stored(node, record)]
    ends = [node.value for node in own_nodes(func.node) if isinstance(node, ast.Return)]
    if len(made) != assigned_in(func.node)[record] or not ends or _is_set(func.node, key):
        return False
    if not all(_keeps(frame.env, each, key, record) for each in made):
        return False
    return all(_has_next(frame, end, key, record, bool(made)) for end in ends)


def _has_next(frame: Frame, end: ast.expr | None, key: Key, record: str, anew: bool) -> bool:
    """Whether something that is returned is, or has for an element, a new record with the key of another one."""
    parts = end.elts if isinstance(end, ast.Tuple) else [end] if end is not None else []
    values = [value_of(frame.module, part) or part if not is_name(part, record) else part for part in parts]
    return any((anew or not is_name(value, record)) and _keeps(frame.env, value, key, record) for value in values)


def _is_set(scope: ast.AST, key: Key) -> bool:
    """Whether a record that can be changed gets another key."""
    places = (node for node in own_nodes(scope) if isinstance(node, Key) and not isinstance(node.ctx, ast.Load))
    return any(ast.unparse(node) == ast.unparse(key) for node in places)


def _stored(node: ast.AST, name: str) -> list[ast.expr]:
    """What a statement binds to a name."""
    return [value for target, value in pairs_of(node) if is_name(target, name)]


def _at_place_of(made: Value | None, args: list[ast.expr], field: str) -> ast.expr | None:
    """What a record gets by position for a field, the fields being what its class declares, in this order."""
    cls = made.cls if isinstance(made, ClassVal) else None
    if not isinstance(cls, UserClass) or any(isinstance(item, ast.Starred) for item in args):
        return None
    declared = [item.target for item in cls.node.body if isinstance(item, ast.AnnAssign)]
    names = [item.id for item in declared if isinstance(item, ast.Name)]
    place = names.index(field) if field in names and len(cls.ancestors) < 2 else len(args)
    return args[place] if place < len(args) else None


def _keeps(env: Env, node: ast.expr, key: Key, record: str) -> bool:
    """Whether an expression is a record with the key of another one, or that one itself."""
    field = key.attr if isinstance(key, ast.Attribute) else getattr(key.slice, "value", None)
    match node:
        case ast.Name(id=name):
            return name == record
        case ast.Call(func=ast.Attribute(value=of, attr="_replace" | "replace"), args=[], keywords=given):
            return all(item.arg not in {None, field} for item in given) and _keeps(env, of, key, record)
        case ast.Call(func=func, args=[of], keywords=given) if canonical_of(env, func) == "dataclasses.replace":
            return all(item.arg not in {None, field} for item in given) and _keeps(env, of, key, record)
        case ast.Call(func=func) if isinstance(resolved(env, func), ClassVal) and isinstance(field, str):
            again = keyword_node(node, field) or _at_place_of(resolved(env, func), node.args, field)
            return again is not None and ast.dump(again) == ast.dump(key)
        case ast.Dict(keys=keys, values=values) if isinstance(key, ast.Subscript):
            named = [each for each, name in enumerate(keys) if isinstance(name, ast.Constant) and name.value == field]
            spread = [each for each, name in enumerate(keys) if name is None]
            if named:
                return ast.dump(values[named[-1]]) == ast.dump(key) and all(each < named[-1] for each in spread)
            return len(spread) == 1 and spread == [0] and _keeps(env, values[0], key, record)
        case _:
            return False
