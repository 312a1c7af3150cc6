"""Models that are evaluated with the statistics that they were made with (NNX657).

The parameters of a model with `BatchNorm` are half of what it learns: in evaluation it normalizes by averages that it
keeps in other Variables. A model that is made anew and gets the `Param`s of another one, from a snapshot, a checkpoint
or a merge, has the averages of no batch at all.

Invariants: the model is made by its constructor, and the program is followed from there on: nothing has run it in
training mode, or given it other State, and what else gets it is code that is seen. What it is given are `Param`s alone.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, cast

from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.classes import LibClass
from nnx_lint.model.events import Mutated
from nnx_lint.model.expressions import text_of
from nnx_lint.model.leaves import contents, made_first, same_object
from nnx_lint.model.modules import Env
from nnx_lint.model.states import StateVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, ClassVal, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.bindings import value_of, values_in
from nnx_lint.rules.callees import called_value, maker_in
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    canonical_of,
    enclosing,
    in_test,
    keyword_node,
    own_nodes,
    reads_of,
    resolved,
    results_of,
)
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.places import end
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import checkpoints as rules
from nnx_rules.transforms import TREE_MAPS

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value

STATISTICS = "nnx.BatchStat"


class Given:
    """Which models, by what they are copies of, were given `Param`s alone, and where; and which ones have been run or
    given more. The models are kept, so that no other one takes the identity of one that is gone.
    """

    def __init__(self) -> None:
        self.params: dict[int, tuple[Frame, ast.AST, Obj]] = {}
        self.other: dict[int, Obj] = {}


@judges(rules.STATISTICS_LEFT_BEHIND, Mutated, when=lambda event: event.state == "BatchStat")
def statistics_change(event: Mutated, report: Reporter) -> None:
    """A forward pass in training mode: the models have statistics of their own from now on."""
    noted = report.memory(Given)
    for frame in event.frame.outwards():
        for owner in (frame.receiver, event.target):
            if isinstance(owner, Obj):
                noted.other.setdefault(id(made_first(owner)), made_first(owner))


@judges_calls(rules.STATISTICS_LEFT_BEHIND, "nnx.update")
def given_params(event: Called, report: Reporter) -> None:
    model = present(event.args[0]) if event.args and event.args[0] is not None else UNKNOWN
    if not isinstance(model, Obj) or not model.cls.derives_from("nnx.Module"):
        return
    noted, first = report.memory(Given), made_first(model)
    known = len(event.args) == len(event.nodes) == 2 and isinstance(event.node, ast.Call) and not event.keywords
    if known and _are_params(event.frame, event.nodes[1], event.args[1], model):
        if id(first) not in noted.other and _is_made_here(event.frame, event.nodes[0], model):
            noted.params[id(first)] = (event.frame, event.node, first)
            if model.training is False:
                _judge(event.frame, event.node, event.nodes[0], model, report)
    else:
        noted.other[id(first)] = first


@judges_calls(rules.STATISTICS_LEFT_BEHIND, "nnx.merge")
def merged_with_params(event: Called, report: Reporter) -> None:
    """The `Param`s of one model, and all the rest of one that is new."""
    made, given = event.result, [present(item) if item is not None else UNKNOWN for item in event.args]
    if not isinstance(made, Obj) or len(given) != 3 or len(event.nodes) != 3 or event.frame.scope:
        return
    _, params, rest = given
    fresh = present(rest.of) if isinstance(rest, StateVal) else UNKNOWN
    noted = report.memory(Given)
    if not isinstance(fresh, Obj) or fresh.origin is None or id(made_first(fresh)) in noted.other:
        return
    source = present(params.of) if isinstance(params, StateVal) and _wants_params(params) else UNKNOWN
    trained = isinstance(source, Obj) and not same_object(source, fresh) and id(made_first(source)) in noted.other
    if trained or (params is UNKNOWN and _is_restored(event.frame, event.nodes[1], event.node)):
        noted.params[id(made_first(made))] = (event.frame, event.node, made_first(made))


def _is_restored(frame: Frame, node: ast.expr, merge: ast.AST) -> bool:
    """Whether a name was last bound to what a checkpoint gives in the form of the `Param`s of a model."""
    if not isinstance(node, ast.Name):
        return False
    bound = [value for value in values_in(_scope(frame.module, node)).get(node.id, ()) if end(value) < end(merge)]
    last = max(bound, key=end, default=None)
    form = _form_restored(frame, last) if isinstance(last, ast.Call) else None
    if not isinstance(form, ast.Name):
        return form is not None and _says_params(frame, form)
    return _wants_params(resolved(frame.env, form)) or _is_split_off(frame, form) or _says_params(frame, form)


def _is_split_off(frame: Frame, form: ast.Name) -> bool:
    """Whether a name once stood for the first State of ``nnx.split(model, nnx.Param, ...)``."""
    for statement in own_nodes(_scope(frame.module, form)):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        call = statement.value if isinstance(statement, ast.Assign) else None
        if isinstance(target, ast.Tuple) and len(target.elts) == 3 and is_name(target.elts[1], form.id):
            split = isinstance(call, ast.Call) and canonical_of(frame.env, call.func) == "nnx.split"
            wanted = call.args[1] if split and isinstance(call, ast.Call) and len(call.args) > 1 else None
            if canonical_of(frame.env, wanted) == "nnx.Param":
                return True
    return False


@judges_calls(rules.STATISTICS_LEFT_BEHIND, ".eval")
def evaluated(event: Called, report: Reporter) -> None:
    callee = event.callee
    model = present(callee.receiver) if isinstance(callee, BoundMethod) and callee.func is None else None
    func = event.node.func if isinstance(event.node, ast.Call) else None
    func = value_of(event.frame.module, func) or func if func is not None else None
    if isinstance(model, Obj) and isinstance(func, ast.Attribute):
        _judge(event.frame, event.node, func.value, model, report)


def _judge(frame: Frame, node: ast.AST, named: ast.expr, model: Obj, report: Reporter) -> None:
    """Report a model that is to be evaluated, if it has `Param`s of another one, and statistics of nobody."""
    noted = report.memory(Given)
    place = noted.params.get(id(made_first(model)))
    if place is None or id(made_first(model)) in noted.other or frame.scope or in_test(frame):
        return
    if not _has_statistics(model, frame) or not _is_left_alone(frame, named, node):
        return
    given_in, call, _ = place
    where = (related(given_in.module, call, "it gets `Param`s alone here"),) if call is not node else ()
    report(frame.module, node, name=text_of(named), related=where)


def _has_statistics(model: Obj, frame: Frame) -> bool:
    held = contents(model, frame, None).held
    return any(isinstance(item.leaf.type, LibClass) and item.leaf.type.canonical == STATISTICS for item in held)


# -- models that are new -----------------------------------------------------------------------------------------------


def _is_made_here(frame: Frame, named: ast.expr, model: Obj) -> bool:
    """Whether the program is followed from the constructor of a model on, and nothing else made it."""
    if isinstance(named, ast.Attribute):
        owner = present(resolved(frame.env, named.value) or UNKNOWN)
        if not isinstance(owner, Obj) or owner.origin is None or frame.receiver is not owner:
            return False
        attr = attribute_of(owner, named.attr)
        made = attr.assignments[-1] if attr is not None and attr.assignments else None
        if made is None or attr is None:
            return False
        node = made.value_node
        if node is None and len(attr.assignments) == 1 and model.origin is not None:
            node = cast("ast.expr", model.origin[1])  # of `self.a, self.b = A(), B()`
        return _makes(made.module.env, node, model)
    value = value_of(frame.module, named)
    return value is not None and _makes(frame.env, value, model)


def _makes(env: Env, node: ast.expr | None, model: Obj) -> bool:
    """Whether a call makes a model: that of its class, or of a function that returns such a call alone."""
    called = called_value(env, maker_in(env, node)) if isinstance(node, ast.Call) else None
    if isinstance(called, FuncVal) and isinstance(called.env, Env):
        results = results_of(called.node)
        if len(results) != 1 or called.node is node:
            return False
        made_there = model.origin is not None and model.origin[1] is results[0]
        return made_there or _makes(called.env, results[0], model)
    return isinstance(called, ClassVal) and called.cls is model.cls


TAKING = frozenset(
    {
        "builtins.print",
        "nnx.display",
        "nnx.graphdef",
        "nnx.replace_by_pure_dict",
        "nnx.split",
        "nnx.state",
        "nnx.tabulate",
        "nnx.update",
    }
)
"""Functions that run no model that they get."""


def _is_left_alone(frame: Frame, named: ast.expr, until: ast.AST) -> bool:
    """Whether a function does nothing with a model, up to a place, that may run it: all that gets it is known."""
    scope = _scope(frame.module, until)
    shown, name = text_of(named), root_of(named)
    for read in reads_of(scope, name) if name is not None else ():
        node: ast.expr = read
        outer = next(ancestors(frame.module, node), None)
        while isinstance(outer, ast.Attribute) and len(text_of(outer)) <= len(shown):
            node, outer = outer, next(ancestors(frame.module, outer), None)
        if text_of(node) != shown or end(node) >= end(until):
            continue
        if isinstance(getattr(node, "ctx", None), ast.Store) or (
            isinstance(outer, ast.Attribute) and outer.attr == "eval"
        ):
            continue
        taken = isinstance(outer, ast.Call) and canonical_of(frame.env, outer.func) in TAKING
        if not taken:
            return False
    return True


# -- Params alone ------------------------------------------------------------------------------------------------------

COPYING = frozenset({*TREE_MAPS, "copy.deepcopy", "jax.device_get", "nnx.to_pure_dict"})
"""Functions that give a State with the leaves of another one."""


def _wants_params(value: Value | None) -> bool:
    state = present(value) if value is not None else None
    wanted = state.wanted if isinstance(state, StateVal) else None
    return isinstance(wanted, ClassVal) and getattr(wanted.cls, "canonical", "") == "nnx.Param"


def _are_params(frame: Frame, node: ast.expr, value: Value | None, model: Obj) -> bool:
    """Whether what a model is updated from certainly are `Param`s alone, and not those that it has."""
    if _wants_params(value):
        state = present(value) if value is not None else None
        own = isinstance(state, StateVal) and same_object(state.of, model)
        filled = isinstance(node, ast.Name) and node.id in _replaced(frame.module.tree)
        return not own or filled or _is_mean(frame, value_of(frame.module, node) or node)
    return _says_params(frame, node)


def _is_mean(frame: Frame, node: ast.expr) -> bool:
    """Whether several States are made one, as for an average of models."""
    maps = isinstance(node, ast.Call) and canonical_of(frame.env, node.func) in TREE_MAPS
    return maps and isinstance(node, ast.Call) and len(node.args) > 2


@remembered
def _replaced(tree: ast.AST) -> frozenset[str]:
    """The names of what ``nnx.replace_by_pure_dict`` fills."""
    calls = (item for item in walk(tree) if isinstance(item, ast.Call) and item.args)
    filling = (call for call in calls if text_of(call.func).rpartition(".")[2] == "replace_by_pure_dict")
    return frozenset(call.args[0].id for call in filling if isinstance(call.args[0], ast.Name))


def _says_params(frame: Frame, node: ast.expr, depth: int = 4) -> bool:
    """Whether the program says so: ``nnx.state(model, nnx.Param)``, a copy of that, what is restored in its form."""
    if isinstance(node, ast.Name) and depth:
        bound = values_in(_scope(frame.module, node)).get(node.id, ())
        made = [value for value in bound if not isinstance(value, ast.Constant)]
        return bool(made) and all(_says_params(frame, value, depth - 1) for value in made)
    if not isinstance(node, ast.Call) or not depth:
        return False
    name = canonical_of(frame.env, node.func)
    if name == "nnx.state":
        return len(node.args) == 2 and canonical_of(frame.env, node.args[1]) == "nnx.Param"
    if name in COPYING:
        return bool(node.args) and _says_params(frame, node.args[-1], depth - 1)
    form = _form_restored(frame, node)
    return form is not None and _says_params(frame, form, depth - 1)


def _form_restored(frame: Frame, node: ast.Call) -> ast.expr | None:
    """What says in which form a checkpoint is restored: ``restore(path, state)``, ``args=StandardRestore(state)``."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "restore":
        return None
    form = node.args[1] if len(node.args) > 1 else keyword_node(node, "args")
    if isinstance(form, ast.Call) and (canonical_of(frame.env, form.func) or "").endswith("StandardRestore"):
        form = form.args[0] if form.args else None
    return form


def _scope(module: Module, node: ast.AST) -> ast.AST:
    return enclosing(module, node, *FUNCTIONS) or module.tree
