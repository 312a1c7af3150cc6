"""Second names for an object that are taken for copies of it (NNX223).

``best = model`` copies nothing. In a loop that trains the model, what is kept of the best round is the model as the
last one leaves it.

Invariants: the loop changes the object, and does not bind its name to another one; what is kept is chosen by a
comparison of numbers, and looked at after the loop only.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Fix
from nnx_lint.model.events import AttributeSet, ContainerFilled, Mutated
from nnx_lint.model.expressions import text_of
from nnx_lint.model.naming import value_at
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges, related
from nnx_lint.rules.bindings import pairs_of
from nnx_lint.rules.edits import wrap
from nnx_lint.rules.program import FUNCTIONS, STATEMENT_LOOPS, around, block_of, enclosing, reads_of, statement_of
from nnx_lint.rules.repeating import handed_for
from nnx_lint.rules.spelling import spelled
from nnx_lint.rules.traces.captures import holds
from nnx_lint.rules.traces.escapes import container_node
from nnx_lint.rules.updates.ownership import at_level
from nnx_lint.rules.updates.snapshots import CHANGES_ON
from nnx_lint.syntax.binding import assigned_names
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module


class Seen:
    """The objects that are changed in loops, by the identity of the loop, and the changes that have been looked at."""

    def __init__(self) -> None:
        self.changed: dict[int, list[tuple[Obj, Frame, ast.AST]]] = {}
        self.events: set[tuple[int, int, int]] = set()

    def change_of(self, loop: ast.AST, obj: Obj) -> tuple[Frame, ast.AST] | None:
        """Where a loop changes an object."""
        found = self.changed.get(id(loop), ())
        return next(((frame, node) for changed, frame, node in found if obj is changed or holds(obj, changed)), None)


@judges(rules.ALIASED_SNAPSHOT, Mutated)
def kept_by_name(event: Mutated, report: Reporter) -> None:
    seen, target, node = report.memory(Seen), event.target, event.node
    lasting = event.effect in {"write", "call"} and not event.action.startswith(("setting ", "`.train(", "`.eval("))
    if not lasting or not isinstance(target, Obj) or not event.frame.rounds():
        return
    changed = at_level(target, 0)
    key = id(node), id(changed), id(event.frame.call)
    if changed.level or key in seen.events:
        return
    seen.events.add(key)
    for frame in event.frame.outwards():
        for loop in (outer for outer in around(frame, node) if isinstance(outer, STATEMENT_LOOPS)):
            known = seen.changed.setdefault(id(loop), [])
            if frame.level or any(obj is changed for obj, _, _ in known):
                continue
            known.append((changed, frame, node))
            for name, source in _kept_in(loop):
                held = value_at(frame, source)
                own = isinstance(held, Obj) and (held is changed or holds(held, changed))
                if own and _is_one(loop, source) and _is_for_later(frame, loop, name):
                    _report(report, frame, source, f"`{name.id}` is another name for", CHANGES, (frame, node))
        node = frame.call or node


@judges(rules.ALIASED_SNAPSHOT, AttributeSet, of=(Obj,))
def kept_by_attribute(event: AttributeSet, report: Reporter) -> None:
    """``self.best_model = model`` in a loop, or in a method that one calls."""
    frame, source, value = event.frame, event.value_node, event.value
    if not isinstance(source, (ast.Name, ast.Attribute)) or frame.scope or not isinstance(value, Obj):
        return
    branch = enclosing(frame.module, event.node, ast.If, *FUNCTIONS, *STATEMENT_LOOPS)
    if not isinstance(branch, ast.If) or event.node not in branch.body or frame.func is None:
        return
    bound = {text_of(target) for statement in branch.body for target, _ in pairs_of(statement)}
    if not _is_better(branch.test, bound):
        return
    handed = handed_for(frame, source.id) if isinstance(source, ast.Name) else None
    ends = any(isinstance(node, (ast.Break, ast.Return)) for part in branch.body for node in walk(part))
    places: list[tuple[Frame, ast.AST, ast.expr]] = [(frame, event.node, source)] if not ends else []
    if handed is not None and frame.caller is not None and frame.call is not None:
        places.append((frame.caller, frame.call, handed))
    for outer, node, name in places:
        for loop in (each for each in around(outer, node) if isinstance(each, STATEMENT_LOOPS)):
            change = report.memory(Seen).change_of(loop, at_level(value, 0))
            if change is not None and _is_one(loop, name):
                what = f"`{text_of(event.node.targets[0])}` is" if isinstance(event.node, ast.Assign) else "this is"
                _report(report, frame, source, f"{what} another name for", CHANGES, change)
                return


@judges(rules.ALIASED_SNAPSHOT, ContainerFilled)
def kept_in_container(event: ContainerFilled, report: Reporter) -> None:
    """``snapshots.append(model)`` in each round of a loop."""
    frame, call, value, module = event.frame, event.node, event.value, event.frame.module
    source = call.args[0] if isinstance(call, ast.Call) and len(call.args) == 1 else None
    if not isinstance(source, (ast.Name, ast.Attribute)) or frame.scope or not isinstance(value, Obj):
        return
    loop, container = enclosing(module, call, *STATEMENT_LOOPS, *FUNCTIONS), container_node(call)
    statement = statement_of(module, call)
    if not isinstance(loop, STATEMENT_LOOPS) or not isinstance(container, ast.Name) or statement is None:
        return
    ends = any(isinstance(each, (ast.Break, ast.Return)) for each in block_of(module, statement))
    change = report.memory(Seen).change_of(loop, at_level(value, 0))
    if change is not None and not ends and _is_one(loop, source) and _is_one(loop, container):
        _report(report, frame, source, f"each element of `{container.id}` is", CHANGES_ON, change)


def _report(
    report: Reporter, frame: Frame, source: ast.expr, what: str, so: str, change: tuple[Frame, ast.AST]
) -> None:
    (where, node), name = change, text_of(source)
    report(
        frame.module,
        source,
        fix=_copied(frame.module, source),
        related=(related(where.module, node, "the object is changed here"),),
        what=what,
        name=name,
        so=so,
        kept=name,
    )


CHANGES = "each round of the loop changes: in the end it is the model of the last round"


@remembered
def _kept_in(loop: ast.stmt) -> list[tuple[ast.Name, ast.expr]]:
    """What a loop binds in rounds that are better than others: the name, and what it keeps."""
    found: list[tuple[ast.Name, ast.expr]] = []
    for branch in (node for node in walk(loop) if isinstance(node, ast.If)):
        pairs = [pair for statement in branch.body for pair in pairs_of(statement)]
        ends = any(isinstance(node, (ast.Break, ast.Return)) for part in branch.body for node in walk(part))
        if not ends and _is_better(branch.test, {text_of(target) for target, _ in pairs}):
            found += ((name, each) for name, value in pairs if isinstance(name, ast.Name) for each in _elements(value))
    return found


def _is_better(test: ast.expr, bound: set[str]) -> bool:
    """Whether a condition compares something with what stands for the best so far, which is bound where it holds."""
    compared = (node for node in (test, *walk(test)) if isinstance(node, ast.Compare))
    return any(
        isinstance(operator, (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
        and not bound.isdisjoint(text_of(each) for each in (node.left, *node.comparators))
        for node in compared
        for operator in node.ops
    )


def _elements(value: ast.expr) -> Iterator[ast.expr]:
    """What is bound, or put into a tuple or a dict that is bound."""
    if isinstance(value, ast.Tuple):
        for each in value.elts:
            yield from _elements(each)
    elif isinstance(value, ast.Dict):
        for each in value.values:
            yield from _elements(each)
    elif isinstance(value, (ast.Name, ast.Attribute)):
        yield value


def _is_one(loop: ast.stmt, source: ast.expr) -> bool:
    """Whether what names an object is the same in each round of a loop."""
    root = source
    stored = {node.attr for node in walk(loop) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    while isinstance(root, ast.Attribute):
        if root.attr in stored:
            return False
        root = root.value
    return isinstance(root, ast.Name) and root.id not in assigned_names([loop])


def _is_for_later(frame: Frame, loop: ast.stmt, name: ast.Name) -> bool:
    """Whether a name is read after a loop, and nowhere in it."""
    scope = frame.func.node if frame.func is not None else frame.module.tree
    reads = reads_of(scope, name.id)
    inside = set(walk(loop))
    return any(read.lineno > loop.lineno for read in reads) and inside.isdisjoint(reads)


def _copied(module: Module, source: ast.expr) -> Fix | None:
    """Keep a copy of the object."""
    name = spelled("nnx.clone", module)
    if name is None:
        return None
    return Fix(f"Keep `{name}(...)` of it", wrap(module.source, source, name), Applicability.UNSAFE)
