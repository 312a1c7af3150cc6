"""States and merged objects that share Variables with the object that they come from (NNX223, NNX224).

``nnx.state`` and ``nnx.split`` copy nothing, and neither does ``nnx.merge``: what looks like a snapshot changes with
the object. It is a mistake where the snapshot is to restore the object, or where of two objects one is changed and the
other one is used after that.

Invariants: only States are compared that come from the call itself, because what a transform or a copy returns is new;
all of it is about code outside of traces, in the order in which it runs.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.diagnostics import Applicability, Fix
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import AttributeSet, Called, ContainerFilled, Mutated
from nnx_lint.model.expressions import text_of
from nnx_lint.model.frames import ROUND
from nnx_lint.model.states import GraphDefVal, StateVal
from nnx_lint.model.unions import options, present
from nnx_lint.model.values import UNKNOWN, Obj, Value
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.bindings import pairs_of, target_of, values_in
from nnx_lint.rules.edits import insert, wrap
from nnx_lint.rules.program import (
    FUNCTIONS,
    LOOPS,
    STATEMENT_LOOPS,
    ancestors,
    assigned_in,
    attributes_stored,
    block_of,
    calls_in,
    canonical_of,
    enclosing,
    own_nodes,
    reads_of,
    statement_of,
)
from nnx_lint.rules.repeating import goes_on, loop_around, outwards
from nnx_lint.rules.spelling import spelled
from nnx_lint.rules.traces.captures import REFERENCES, holds
from nnx_lint.rules.traces.escapes import container_node
from nnx_lint.rules.updates.ownership import at_level
from nnx_lint.syntax.binding import assigned_names, is_name, names_in, occurrences
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.places import begin, end
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module


class Made(NamedTuple):
    """A State, the call that made it, and how many changes there had been."""

    state: StateVal
    frame: Frame
    node: ast.AST
    branches: tuple[tuple[int, int], ...]
    changes: int


class Merged(NamedTuple):
    """An object that was merged, and the one that it shares Variables with."""

    obj: Obj
    of: Obj
    frame: Frame
    node: ast.Call


class Changed(NamedTuple):
    """An object that was changed, and where."""

    obj: Obj
    frame: Frame
    node: ast.AST
    branches: tuple[tuple[int, int], ...]


class Changes:
    """What has been made, merged and changed so far. States that were changed themselves are no longer in it.

    ``placed`` are the branches in which objects, by identity, were assigned to attributes in rounds of loops.
    """

    def __init__(self) -> None:
        self.made: dict[int, Made] = {}
        self.merged: list[Merged] = []
        self.changed: list[Changed] = []
        self.placed: dict[int, list[tuple[tuple[int, int], ...]]] = {}


@judges_calls(rules.ALIASED_SNAPSHOT, "nnx.state", "nnx.split")
@judges_calls(rules.ALIASED_MERGE, "nnx.state", "nnx.split")
def made(event: Called, report: Reporter) -> None:
    frame = event.frame
    if frame.scope:
        return
    noted = report.memory(Changes)
    result = event.result
    for item in result.items if isinstance(result, Seq) else [result]:
        if isinstance(item, StateVal):
            noted.made.setdefault(id(item), Made(item, frame, event.node, frame.branches, len(noted.changed)))


# -- snapshots ---------------------------------------------------------------------------------------------------------


@judges(rules.ALIASED_SNAPSHOT, Mutated)
def changed(event: Mutated, report: Reporter) -> None:
    noted = report.memory(Changes)
    if isinstance(event.target, StateVal):
        noted.made.pop(id(event.target), None)
    elif isinstance(event.target, Obj) and (noted.made or _in_loop(event.frame)):
        obj = at_level(event.target, 0)
        if not obj.level:
            noted.changed.append(Changed(obj, event.frame, event.node, event.frame.branches))


@judges(rules.ALIASED_SNAPSHOT, AttributeSet, of=(Obj,))
def placed(event: AttributeSet, report: Reporter) -> None:
    if _in_loop(event.frame):
        report.memory(Changes).placed.setdefault(id(event.value), []).append(event.frame.branches)


def _in_loop(frame: Frame) -> bool:
    """Whether what happens here comes after what follows it, one round later."""
    return bool(frame.rounds())


@judges_calls(rules.ALIASED_SNAPSHOT, "nnx.update")
def restored(event: Called, report: Reporter) -> None:
    frame, obj = event.frame, present(event.args[0]) if event.args and event.args[0] is not None else None
    if frame.scope or not isinstance(event.node, ast.Call):
        return
    noted = report.memory(Changes)
    if not isinstance(obj, Obj) or all(value is UNKNOWN for value in event.args[1:]):
        if len(event.node.args) == 2:
            _restored_unknown(frame, event.node, event.node.args[0], report)
        return
    given = [_taken_of(obj, value, noted) for value in event.args[1:]]
    for taken, node in zip(given, event.nodes[1:], strict=False):
        changes = [_change_since(item, event, noted) for item in taken]
        # Beside values that are new, the rest may be given back to have all of it.
        if [] in given or None in changes or _goes_elsewhere(frame, node):
            continue
        found, change = taken[-1], changes[-1]
        assert change is not None
        report(
            frame.module,
            node,
            fix=partial(copied, found) if len(taken) == 1 else None,
            related=(
                related(found.frame.module, found.node, "the State is taken here"),
                related(change.frame.module, change.node, "the object is changed here"),
            ),
            **words(text_of(event.node.args[0]), CHANGED_SINCE),
        )


def _taken_of(obj: Obj, value: Value | None, noted: Changes) -> list[Made]:
    """Where a State was taken of an object, if it certainly was: if it may be another one, then in rounds of a loop,
    which go on and need not begin with one of the object that nothing has changed yet.
    """
    states = [noted.made.get(id(option)) for option in options(present(value))] if value is not None else []
    taken = [item for item in states if item is not None and present(item.state.of) is obj]
    return taken if len(taken) == len(states) else [item for item in taken if _is_taken_in_rounds(item)]


def _is_taken_in_rounds(found: Made) -> bool:
    statement = statement_of(found.frame.module, found.node)
    in_rounds = any(arm == ROUND for _, arm in found.branches)
    return in_rounds and statement is not None and goes_on(block_of(found.frame.module, statement))


@judges_calls(rules.ALIASED_SNAPSHOT, "nnx.merge")
def merged_back(event: Called, report: Reporter) -> None:
    """``self.model = nnx.merge(graphdef, best)``, where both come from what is at that place."""
    frame, call = event.frame, event.node
    if frame.scope or frame.func is None or not isinstance(call, ast.Call) or len(call.args) != 2:
        return
    target, (structure, _) = target_of(frame.module, call), call.args
    if target is None or _stores(frame.func.node, target):
        return
    named = structure.id if isinstance(structure, ast.Name) else None
    made = values_in(frame.func.node).get(named, []) if named is not None else [structure]
    if made and all(isinstance(item, ast.Call) and _takes_apart(frame, item, text_of(target)) for item in made):
        _restored_unknown(frame, call, target, report)


CHANGED_SINCE = "has changed since: the update restores nothing"


def words(name: str, so: str) -> dict[str, str]:
    """What is said of a State of an object."""
    return {"name": name, "so": so, "what": "this State shares the Variables of", "kept": f"nnx.state({name})"}


@judges(rules.ALIASED_SNAPSHOT, ContainerFilled)
def collected(event: ContainerFilled, report: Reporter) -> None:
    """Each round of a loop puts the State of one object, which it changes, into a container from before the loop."""
    noted, frame, module = report.memory(Changes), event.frame, event.frame.module
    found = noted.made.get(id(event.value))
    of = present(found.state.of) if found is not None else None
    if found is None or not isinstance(of, Obj) or found.frame is not frame or frame.scope:
        return
    taken = found.node.args[0] if isinstance(found.node, ast.Call) and found.node.args else None
    container = container_node(event.node)
    if not isinstance(taken, (ast.Name, ast.Attribute)) or container is None:
        return
    target = event.node.targets[0] if isinstance(event.node, ast.Assign) else None
    roots = names_in(taken) | names_in(container)
    loop = enclosing(module, event.node, *LOOPS, *FUNCTIONS)
    inside = isinstance(loop, STATEMENT_LOOPS)
    loop = loop if inside else _loop_outside(frame, roots)
    if not isinstance(loop, STATEMENT_LOOPS):
        return
    bound = assigned_names([loop]) if inside else frozenset[str]()
    if isinstance(target, ast.Subscript) and bound.isdisjoint(names_in(target.slice)):
        return  # one entry that each round writes over
    rounds = {pair for pair in frame.branches if pair[1] == ROUND}
    if not rounds.isdisjoint(pair for branches in noted.placed.get(id(of), ()) for pair in branches):
        return  # `self.member = ...`: another object in each round
    for item in noted.changed:
        own = item.obj is of or holds(of, item.obj)
        if own and roots.isdisjoint(bound) and not rounds.isdisjoint(item.branches):
            where = (
                related(found.frame.module, found.node, "the State is taken here"),
                related(item.frame.module, item.node, "the object is changed here"),
            )
            fix = partial(copied, found)
            report(module, event.node, fix=fix, related=where, **words(text_of(taken), CHANGES_ON))
            return


def _loop_outside(frame: Frame, names: Iterable[str]) -> ast.AST | None:
    """The loop that calls a function again and again, and hands it the same for all these names each time."""
    loops = set[ast.AST | None]()
    for name in names:
        calls = outwards(frame, name)
        around = (loop_around(each.frame.module, each.call, each.name) for each in calls)
        loops.add(next((loop for loop in around if loop is not None), None))
    return loops.pop() if len(loops) == 1 else None


CHANGES_ON = "each round of the loop changes: all that is collected here ends up the same"


def _restored_unknown(frame: Frame, restoring: ast.Call, target: ast.expr, report: Reporter) -> None:
    """An object, or a State, of which only the place is known: the State of the object is kept, and given back after a
    call that got the object.
    """
    kept, path = restoring.args[1], text_of(target) if root_of(target) is not None else None
    if path is None or not isinstance(kept, ast.Name):
        return
    scope: ast.AST = frame.func.node if frame.func is not None else frame.module.tree
    if _stores(scope, target) and not _bound_before(frame.module, scope, target, restoring):
        return
    bound = _assigned(scope, kept.id)
    taken = [value for value in bound if not isinstance(value, ast.Constant)]
    if not taken or assigned_in(scope)[kept.id] > len(bound):
        return
    if not all(isinstance(call, ast.Call) and _is_taken(frame, call, path) for call in taken):
        return
    tests = [next(ancestors(frame.module, read)) for read in reads_of(scope, kept.id) if read is not kept]
    if not all(isinstance(test, (ast.Compare, ast.If, ast.UnaryOp)) for test in tests):
        return
    calls = [call for call in calls_in(scope) if any(_is_at(item, path) for item in call.args)]
    between = [call for call in calls if call is not restoring and canonical_of(frame.env, call.func) not in TAKING]
    if any(_comes_after(frame, call, taken[0]) and _comes_after(frame, restoring, call) for call in between):
        where = (related(frame.module, taken[0], "the State is taken here"),)
        report(frame.module, kept, fix=None, related=where, **words(path, CHANGED_SINCE))


def _stores(scope: ast.AST, target: ast.expr) -> bool:
    """Whether a function also puts something else at a place: what it restores may be another object."""
    at = 1 if isinstance(getattr(target, "ctx", None), ast.Store) else 0
    stored = attributes_stored(scope).count(target.attr) if isinstance(target, ast.Attribute) else 0
    root = root_of(target)
    return stored + (assigned_in(scope)[root] if root is not None else 0) > at


def _bound_before(module: Module, scope: ast.AST, target: ast.expr, restoring: ast.AST) -> bool:
    """Whether a name is bound once, and by no loop that does not also restore: it is one object all the time."""
    if not isinstance(target, ast.Name) or assigned_in(scope)[target.id] != 1:
        return False
    bound = [part for part in own_nodes(scope) if is_name(part, target.id) and not isinstance(part.ctx, ast.Load)]
    restored = {*ancestors(module, restoring)}
    return len(bound) == 1 and all(
        outer in restored for outer in ancestors(module, bound[0]) if isinstance(outer, STATEMENT_LOOPS)
    )


TAKING = frozenset({"nnx.state", "nnx.split", "nnx.graphdef"})
"""Functions that take an object apart."""


def _assigned(scope: ast.AST, name: str) -> list[ast.expr]:
    """What a function binds a name to; for the last name of a tuple, all that is unpacked if it is not written out."""
    pairs = (pair for node in own_nodes(scope) for pair in pairs_of(node))
    last = ((node.elts[-1] if isinstance(node, ast.Tuple) and node.elts else node, value) for node, value in pairs)
    return [value for target, value in last if is_name(target, name)]


def _is_taken(frame: Frame, call: ast.Call, path: str) -> bool:
    """Whether a call takes the State of what is at a place."""
    return _takes_apart(frame, call, path) and canonical_of(frame.env, call.func) != "nnx.graphdef"


def _takes_apart(frame: Frame, call: ast.Call, path: str) -> bool:
    return canonical_of(frame.env, call.func) in TAKING and bool(call.args) and _is_at(call.args[0], path)


def _is_at(node: ast.expr, path: str) -> bool:
    return root_of(node) is not None and text_of(node) == path


def _comes_after(frame: Frame, call: ast.Call, taken: ast.expr) -> bool:
    """Whether a call runs after a State was taken, if only in the next round of a loop."""
    statement = statement_of(frame.module, taken)
    repeated = statement is not None and goes_on(block_of(frame.module, statement))
    outers = ancestors(frame.module, taken) if repeated else ()
    loops = [outer for outer in outers if isinstance(outer, STATEMENT_LOOPS)]
    return call.lineno > taken.lineno or any(outer in loops for outer in ancestors(frame.module, call))


READING = frozenset(
    {"nnx.update", "nnx.merge", "nnx.clone", "nnx.as_pure", "nnx.to_pure_dict", "nnx.to_flat_state", "jax.tree.map"}
)
"""Functions that leave a State as it is."""


def _goes_elsewhere(frame: Frame, node: ast.expr) -> bool:
    """Whether the function also hands a State to something that may write into it."""
    top: ast.AST = frame.func.node if frame.func is not None else frame.module.tree
    name = node.id if isinstance(node, ast.Name) else None
    for call in walk(top):
        given = call.args if isinstance(call, ast.Call) else []
        handed = any(is_name(item, name) for item in given)
        if isinstance(call, ast.Call) and handed and canonical_of(frame.env, call.func) not in READING:
            return True
    return False


def _change_since(found: Made, event: Called, noted: Changes) -> Changed | None:
    """A change of an object after its State was taken, other than by the update at hand."""
    of = present(found.state.of)
    in_order = found.node.lineno < event.node.lineno  # type: ignore[attr-defined]
    if in_order and event.frame.branches[: len(found.branches)] == found.branches:
        loops = set[tuple[int, int]]()  # it is taken anew in each round that comes to the update
    else:
        rounds = [pair for pair in found.branches if pair[1] == ROUND]
        statement = statement_of(found.frame.module, found.node)
        last = statement is not None and not goes_on(block_of(found.frame.module, statement))
        loops = set(rounds[:-1] if last else rounds)
    for place, item in enumerate(noted.changed):
        own = isinstance(of, Obj) and (item.obj is of or holds(of, item.obj))
        later = place >= found.changes or not loops.isdisjoint(item.branches)
        if own and later and item.node is not event.node:
            return item
    return None


def copied(found: Made) -> Fix | None:
    """Keep a copy of the State."""
    node = found.node
    name = spelled("nnx.clone", found.frame.module)
    if name is None or not isinstance(node, ast.Call) or not text_of(node.func).endswith("state"):
        return None
    return Fix(f"Keep `{name}(...)` of it", wrap(found.frame.module.source, node, name), Applicability.UNSAFE)


# -- merged objects ----------------------------------------------------------------------------------------------------


@judges_calls(rules.ALIASED_MERGE, "nnx.merge")
def merged(event: Called, report: Reporter) -> None:
    frame, result = event.frame, event.result
    if frame.scope or not isinstance(result, Obj) or not isinstance(event.node, ast.Call) or "copy" in event.keywords:
        return
    first, *states = event.args
    of = present(first.of) if isinstance(first, GraphDefVal) else None
    if frame.module.mentions(*REFERENCES):
        return  # shared on purpose
    noted = report.memory(Changes)
    if isinstance(of, Obj) and states and all(_is_of(state, of, noted) for state in states):
        noted.merged.append(Merged(result, of, frame, event.node))


@judges_calls(rules.ALIASED_MERGE, "copy.copy")
def copied_shallowly(event: Called, report: Reporter) -> None:
    """A new object around the Variables of another one, as a merge without a copy makes it."""
    frame, result, of = event.frame, event.result, event.args[0] if event.args else None
    if not frame.scope and isinstance(result, Obj) and isinstance(of, Obj) and isinstance(event.node, ast.Call):
        report.memory(Changes).merged.append(Merged(result, of, frame, event.node))


def _is_of(state: Value | None, of: Obj, noted: Changes) -> bool:
    found = noted.made.get(id(state))
    return found is not None and present(found.state.of) is of


@judges(rules.ALIASED_MERGE, Mutated)
def merged_changed(event: Mutated, report: Reporter) -> None:
    noted = report.memory(Changes)
    if not noted.merged or not isinstance(event.target, Obj) or event.effect not in {"write", "call"}:
        return
    target = at_level(event.target, 0)
    if event.action.startswith(("setting ", "`.train(", "`.eval(", "`.set_attributes(")):
        # Attributes are not shared, and who gives the two different ones wants two views of the same Variables.
        noted.merged = [item for item in noted.merged if target is not item.obj and target is not item.of]
        return
    running = {id(frame.env) for frame in event.frame.outwards()}
    for item in noted.merged:
        frame = _known_to(item, running)
        if frame is None:
            continue
        for changed, other in ((item.obj, item.of), (item.of, item.obj)):
            if changed is not target and not holds(changed, target):
                continue
            used = used_later(frame, event, other)
            if used is not None:
                name = used if other is item.of else _name_of(frame, item.of)
                shown = _name_of(frame, item.obj) or "the merged object"
                where = (related(event.frame.module, event.node, "one of them is changed here"),)
                report(
                    item.frame.module,
                    item.node,
                    fix=partial(copying, item),
                    related=where,
                    name=shown,
                    other=name or item.of.describe(),
                )
                return


def _known_to(item: Merged, running: set[int]) -> Frame | None:
    """Where both objects are used: where one was merged, or where a function that has done so has returned to, if
    both have a name there.
    """
    if id(item.frame.env) in running:
        return item.frame
    frame = next((each for each in item.frame.outwards() if id(each.env) in running), None)
    named = frame is not None and _name_of(frame, item.obj) is not None and _name_of(frame, item.of) is not None
    return frame if named else None


def _name_of(frame: Frame, obj: Obj) -> str | None:
    return next((name for name, value in frame.env.names.items() if obj in options(value)), None)


def used_later(frame: Frame, event: Mutated, obj: Obj) -> str | None:
    """The name by which the function of a frame reads an object after a change that it makes or calls for."""
    inner: Frame | None = event.frame
    place = event.node
    while inner is not None and inner.env is not frame.env:
        place = inner.call or place
        inner = inner.caller
    if inner is None:
        return None
    top: ast.AST = frame.func.node if frame.func is not None else frame.module.tree
    for name in (name for name, value in frame.env.names.items() if obj in options(value)):
        reads = occurrences(top, name)
        if any(isinstance(part.ctx, ast.Load) and begin(part) > end(place) for part in reads):
            return name
    return None


def copying(item: Merged) -> Fix | None:
    """Make a copy."""
    source, node = item.frame.module.source, item.node
    if not node.args or node.keywords or not text_of(node.func).endswith("merge"):
        return None
    return Fix("Add `copy=True`", insert(source.span(node.args[-1]).end, ", copy=True"), Applicability.UNSAFE)
