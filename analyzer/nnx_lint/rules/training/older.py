"""Models that change after their optimizer was made (NNX617).

An optimizer makes its state for the parameters that its model has at that moment. So each assignment in the model is
compared with what was there before it: the parameters that it adds, or has in another size, have no state.

Invariants: the optimizer, the change and the update lie in what one call of one function does, so that their order is
known, or the first two in a constructor; an optimizer that is made anew after the change is another one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import AttributeSet, Called, Constructed, ItemSet, Mutated, PlainConstructed
from nnx_lint.model.expressions import text_of
from nnx_lint.model.leaves import same_object, shape_at
from nnx_lint.model.unions import UnionVal, present
from nnx_lint.model.values import UNKNOWN, Const, Obj, Unknown, Value
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.bindings import names_of_first
from nnx_lint.rules.filters.coverage import leaves_of
from nnx_lint.rules.filters.expressions import expression, is_subtype
from nnx_lint.rules.program import ancestors, attributes_named, enclosing, is_called
from nnx_lint.rules.training.resized import is_resized
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.walk import walk
from nnx_rules import _filter_logic as logic
from nnx_rules._filter_logic import Leaf
from nnx_rules.api import OPTIMIZERS
from nnx_rules.rules import training as rules

if TYPE_CHECKING:
    from nnx_lint.model.classes import UserClass
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.leaves import Path
    from nnx_rules.filters import Expr


class Change(NamedTuple):
    """An assignment in a model, and what was there when the optimizer was made."""

    event: AttributeSet | ItemSet
    old: Value


class Made(NamedTuple):
    """An optimizer, the call that made it, the paths of what its model held then and whether these are all, what was
    set there since, and where its lists grew.
    """

    optimizer: Obj
    event: Called
    model: Obj
    asked: Expr
    paths: set[Path]
    complete: bool
    changes: dict[Path, Change]
    grown: list[Mutated]


class History:
    """The optimizers of a program, as long as nothing is known to have made them anew."""

    def __init__(self) -> None:
        self.made: dict[int, Made] = {}


@judges_calls(rules.OPTIMIZER_OLDER_THAN_MODEL, *OPTIMIZERS)
def note_optimizer(event: Called, report: Reporter) -> None:
    made, history = event.result, report.memory(History)
    if not isinstance(made, Obj):
        return
    history.made.pop(id(made), None)
    given = made.args or {}
    model, wrt = present(given["model"]) if "model" in given else None, given.get("wrt")
    if isinstance(model, Obj) and wrt is not None and not event.frame.doubtful:
        held = leaves_of(model, event.frame)
        paths = {leaf.path for leaf in held.leaves if isinstance(leaf.path, tuple)}
        history.made[id(made)] = Made(made, event, model, expression(wrt), paths, held.complete, {}, [])


@judges(rules.OPTIMIZER_OLDER_THAN_MODEL, AttributeSet, of=(Obj, UnionVal))
def note_attribute(event: AttributeSet, report: Reporter) -> None:
    _note(event, report)


@judges(rules.OPTIMIZER_OLDER_THAN_MODEL, ItemSet, of=(Obj, UnionVal))
def note_item(event: ItemSet, report: Reporter) -> None:
    _note(event, report)


def _note(event: AttributeSet | ItemSet, report: Reporter) -> None:
    history, value = report.memory(History), present(event.value)
    if not history.made or event.frame.doubtful or not isinstance(value, Obj):
        return
    if not (value.cls.is_pytree or value.cls.is_variable):
        return
    for made in history.made.values():
        if event.obj.constructing and not same_object(event.obj, made.model):
            continue  # it is not in the model yet
        within = _path_to(event.obj, made.model)
        if within is None:
            continue
        path = (*within, event.name if isinstance(event, AttributeSet) else _index(event))
        known = made.changes.get(path)
        change = Change(event, known.old if known is not None else _before(event))
        for below in [each for each in made.changes if each[: len(path)] == path]:
            del made.changes[below]
        if _adds(change, value, path, made):
            made.changes[path] = change


@judges(rules.OPTIMIZER_OLDER_THAN_MODEL, Mutated)
def optimizer_older_than_model(event: Mutated, report: Reporter) -> None:
    """An optimizer takes a step: here, or in a function of which only the summary is known."""
    if event.action == "`.append(...)`" and not event.frame.doubtful:
        for made in report.memory(History).made.values():
            if isinstance(event.target, Obj) and _path_to(event.target, made.model):
                made.grown.append(event)
    if event.action != "`.update(...)`":
        return
    for made in report.memory(History).made.values():
        together = _outermost(event.frame) is _outermost(made.event.frame)
        if not together or not (made.changes or made.grown) or not same_object(made.optimizer, event.target):
            continue
        _report(made, report)


@judges(rules.OPTIMIZER_OLDER_THAN_MODEL, Constructed, PlainConstructed)
def older_from_the_beginning(event: Constructed, report: Reporter) -> None:
    """A constructor makes both, and changes the model after that; a method takes the steps."""
    for made in report.memory(History).made.values():
        if not (made.changes or made.grown):
            continue
        names = (name for name, attr in event.obj.attrs.items() if same_object(made.optimizer, attr.value))
        if any(_is_stepped(event.cls, name) for name in names):
            _report(made, report)


def _is_stepped(cls: UserClass, name: str) -> bool:
    """Whether a method of a class takes steps with an optimizer that it keeps, and nothing but its constructor makes
    it.
    """
    steps = False
    for method in (node for node in cls.node.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))):
        own = names_of_first(method)
        for node in walk(method):
            if not isinstance(node, ast.Attribute) or node.attr != name or root_of(node.value) not in own:
                continue
            if not isinstance(node.ctx, ast.Load) and method.name != "__init__" and not _runs_at_once(cls, method.name):
                return False
            outer = next(ancestors(cls.module, node), None)
            stepping = isinstance(outer, ast.Attribute) and outer.attr == "update" and is_called(cls.module, outer)
            steps = steps or (stepping and method.name != "__init__")
    return steps


def _runs_at_once(cls: UserClass, name: str) -> bool:
    """Whether only the constructor of a class calls a method, as far as its module says."""
    named = attributes_named(cls.module.tree).get(name, [])
    scopes = [enclosing(cls.module, node, ast.FunctionDef) for node in named]
    return all(scope is not None and scope.name == "__init__" for scope in scopes)


def _report(made: Made, report: Reporter) -> None:
    where = related(made.event.frame.module, made.event.node, "the optimizer is made here")
    for change, _ in made.changes.values():
        attr = attribute_of(change.obj, change.name) if isinstance(change, AttributeSet) else None
        if attr is not None and not attr.assignments:
            continue  # it has been deleted since
        report(change.frame.module, change.node, path=_place(change), related=(where,))
    for growth in made.grown if made.complete and _has_grown(made) else ():
        report(growth.frame.module, growth.node, path=f"{growth.name}[-1]", related=(where,))


def _place(change: AttributeSet | ItemSet) -> str:
    """What is assigned, as the program writes it; by its name, where that is computed."""
    node = change.node
    if isinstance(node, ast.Call) and node.args and isinstance(change, AttributeSet):
        return f"{text_of(node.args[0])}.{change.name}"
    return text_of(node.targets[0] if isinstance(node, ast.Assign) else node)


def _has_grown(made: Made) -> bool:
    """Whether a model certainly has Variables that a filter takes at paths that it did not have before."""
    added = (leaf for leaf in leaves_of(made.model, made.event.frame).leaves if leaf.path not in made.paths)
    return any(
        isinstance(leaf.path, tuple) and logic.UNKNOWN not in leaf.path and _takes(made.asked, leaf, ())
        for leaf in added
    )


def _outermost(frame: Frame) -> Frame:
    while frame.caller is not None:
        frame = frame.caller
    return frame


def _index(event: ItemSet) -> object:
    return event.key.value if isinstance(event.key, Const) else logic.UNKNOWN


def _before(event: AttributeSet | ItemSet) -> Value:
    """What was in the place of a value."""
    if isinstance(event, AttributeSet):
        return event.attr.value
    return event.before[0] if len(event.before) == 1 else UNKNOWN


def _path_to(part: Obj, model: Value, depth: int = 6) -> Path | None:
    """Where an object is in a model; a clone is another object, at the trace level of the first."""
    if same_object(part, model) and (part is model or part.level != getattr(model, "level", None)):
        return ()
    if not isinstance(model, Obj) or not model.cls.is_pytree or not depth:
        return None
    for name in attribute_names(model):
        attr = attribute_of(model, name)
        held = attr.value if attr is not None else None
        inside: list[tuple[object, Value | None]] = [(name, held)]
        if name == "[]" and isinstance(held, Seq) and held.exact:
            inside = [*enumerate(held.items)]
        for key, item in inside:
            found = _path_to(part, item, depth - 1) if isinstance(item, Obj) else None
            if found is not None:
                return (key, *found)
    return None


def _adds(change: Change, new: Obj, path: Path, made: Made) -> bool:
    """Whether an assignment gives a model Variables that a filter takes, where it had none of these paths, or had them
    in other sizes.
    """
    event, old = change
    leaves = [leaf for leaf in leaves_of(new, event.frame).leaves if _takes(made.asked, leaf, path)]
    if not leaves or isinstance(old, UnionVal):
        return False
    if isinstance(old, Unknown):
        known = isinstance(event, AttributeSet) and not event.attr.assignments and not event.obj.cls.is_open
        return known and not any(each[: len(path)] == path for each in made.paths)
    if is_resized(old, new):
        return True
    before = leaves_of(old, event.frame)
    paths = {leaf.path for leaf in before.leaves}
    if before.complete and any(leaf.path not in paths for leaf in leaves):
        return True
    placed = [leaf.path for leaf in leaves if leaf.path in paths and isinstance(leaf.path, tuple)]
    shapes = ((shape_at(old, path), shape_at(new, path)) for path in placed)
    return any(one is not None and other is not None and one != other for one, other in shapes)


def _takes(asked: Expr, leaf: Leaf, path: Path) -> bool:
    """Whether a filter takes a leaf of something that is put at a path."""
    inner = leaf.path if isinstance(leaf.path, tuple) else (logic.UNKNOWN,)
    return logic.matches(asked, Leaf((*path, *inner), leaf.type, leaf.tag), is_subtype) is True
