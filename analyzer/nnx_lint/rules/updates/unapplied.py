"""States that are trained or edited, and never put back into the object that they come from (NNX229).

``nnx.state`` and ``nnx.split`` take a State out of an object. What a functional training loop makes of it is a new
State, and what is written under a key of it is a new entry: the object is as it was, until ``nnx.update`` or
``nnx.merge`` gets the State.

Invariant: a State that anything reads after its last change is not judged, wherever that is.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.events import Called
from nnx_lint.model.expressions import text_of
from nnx_lint.model.states import StateVal
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import Assignment, bound_to, handed_on, pairs_of, target_of, value_of, values_in
from nnx_lint.rules.graphs.copying import source_of, updated_with
from nnx_lint.rules.program import (
    FUNCTIONS,
    STATEMENT_LOOPS,
    ancestors,
    canonical_of,
    enclosing,
    in_test,
    outer_names,
    own_nodes,
    reads_of,
    statement_of,
)
from nnx_lint.syntax.binding import assigned_names, is_name, names_in
from nnx_lint.syntax.dotted import dotted_name, root_of
from nnx_lint.syntax.parameters import positional_names
from nnx_lint.syntax.places import begin
from nnx_lint.syntax.walk import children, remembered, walk
from nnx_rules.rules import updates as rules
from nnx_rules.transforms import TREE_MAPS

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Env, Module


@judges_calls(rules.STATE_NOT_APPLIED, "nnx.split", "nnx.state")
def state_not_applied(event: Called, report: Reporter) -> None:
    source = event.nodes[0] if event.nodes else None
    frame, node = handed_on(event.frame, event.node)
    module = frame.module
    bound = bound_to(module, node)
    if bound is None or in_test(frame):
        return
    scope = enclosing(module, node, *FUNCTIONS) or module.tree
    names = bound.target.elts if isinstance(bound.target, ast.Tuple) else [bound.target]
    taken = [name for name in (names[1:] if event.subject == "nnx.split" else names) if isinstance(name, ast.Name)]
    sources = source.elts if isinstance(source, ast.Tuple) else [source]
    for name, source in ((name, source) for name in taken for source in sources):
        model = _of_caller(event.frame, source, node) if isinstance(source, ast.Name) else dotted_name(source)
        if model is None:
            continue
        place, what = _trained(module, scope, name.id, model), "is trained here"
        if place is None:
            place, what = _edited(module, frame.env, scope, name.id), "is edited here"
        if place is None:
            place, what = _mapped(frame, scope, name.id, model), "is made from its State here"
        if place is not None:
            report(module, place, name=name.id, what=what, model=model, mend="put it back", state=name.id)
            return


@judges_calls(rules.STATE_NOT_APPLIED, "nnx.state")
def edited_without_name(event: Called, report: Reporter) -> None:
    """``nnx.state(model)["kernel"] = value``, or ``.update(...)`` of it: the State is gone with the statement."""
    frame, node, module = event.frame, event.node, event.frame.module
    if not isinstance(node, ast.Call) or not event.nodes or in_test(frame):
        return
    outers = ancestors(module, node)
    outer: ast.AST = node
    place = next(outers)
    while isinstance(place, ast.Subscript) and isinstance(place.slice, ast.Constant) and place.value is outer:
        if not isinstance(place.slice.value, str):
            return  # it may be a Variable that an item of is set
        outer, place = place, next(outers)
    written = isinstance(outer, ast.Subscript) and isinstance(outer.ctx, ast.Store)
    if isinstance(place, ast.Attribute) and place.attr == "update":
        call = next(outers)
        written = isinstance(call, ast.Call) and call.func is place and isinstance(next(outers), ast.Expr)
        written = written and isinstance(event.result, StateVal) and outer is node
    if written:
        mend, model = "bind it to a name, edit that, and put it back", text_of(event.nodes[0])
        report(module, node, name=text_of(node), what="is edited here", model=model, mend=mend, state="state")


@judges_calls(rules.STATE_NOT_APPLIED, ".restore")
def restored_for_nothing(event: Called, report: Reporter) -> None:
    """A checkpoint is restored like the State of a model, and the program only asks whether there was one."""
    frame, node, module = event.frame, event.node, event.frame.module
    taken = bound_to(module, node)
    if taken is None or not isinstance(taken.target, ast.Name) or not isinstance(node, ast.Call) or in_test(frame):
        return
    scope, name = enclosing(module, node, *FUNCTIONS) or module.tree, taken.target.id
    reads = reads_of(scope, name)
    if not reads or not all(_is_asked_for_being_there(module, read) for read in reads):
        return  # of a name that nobody reads NNX225 says it
    given = [*node.args, *(item.value for item in node.keywords)]
    for template in (each for each in given if isinstance(each, ast.Name)):
        values = values_in(scope).get(template.id, [])
        made = values[0] if len(values) == 1 else None
        model = dotted_name(made.args[0]) if isinstance(made, ast.Call) and made.args else None
        if model is not None and isinstance(made, ast.Call) and canonical_of(frame.env, made.func) in TAKING:
            report(module, node, name=name, what="is restored here", model=model, mend="put it in", state=name)
            return


@judges_calls(rules.STATE_NOT_APPLIED, "optax.incremental_update")
def average_put_elsewhere(event: Called, report: Reporter) -> None:
    """What a moving average goes on to goes into the model that it follows, and not into the one that averages."""
    frame, node, module = event.frame, event.node, event.frame.module
    if len(event.nodes) < 2 or frame.func is None or in_test(frame):
        return
    followed, averaging = (dotted_name(source_of(frame, each)) for each in event.nodes[:2])
    if followed is None or averaging is None or followed == averaging:
        return
    target = target_of(module, node)
    name = target.id if isinstance(target, ast.Name) else None
    reads = reads_of(frame.func.node, name) if name is not None else []
    later = [read for read in reads if begin(read) > begin(node) and read not in walk(node)]
    into = [dotted_name(updated_with(frame, use)) for use in (later if name is not None else [node])]
    if followed in into and averaging not in into and None not in into:
        shown, state = name or text_of(node), name or "..."
        report(module, node, name=shown, what="is the new average", model=averaging, mend="put it there", state=state)


TAKING = frozenset({"nnx.split", "nnx.state"})
"""Functions that take a State out of a model."""


def _is_asked_for_being_there(module: Module, read: ast.Name) -> bool:
    test = next(ancestors(module, read), None)
    return isinstance(test, ast.Compare) and all(isinstance(item, ast.Constant) for item in test.comparators)


def _of_caller(frame: Frame, source: ast.Name, node: ast.AST) -> str | None:
    """The name that an object has where its State arrives, of a function that only takes it."""
    if node is frame.call and isinstance(node, ast.Call) and frame.func is not None and not node.keywords:
        given = dict(zip(positional_names(frame.func.node.args), node.args, strict=False)).get(source.id)
        return given.id if isinstance(given, ast.Name) else None
    return (
        source.id if enclosing(frame.module, source, *FUNCTIONS) is enclosing(frame.module, node, *FUNCTIONS) else None
    )


def _uses(scope: ast.AST, name: str) -> list[ast.Name | ast.Attribute]:
    """Where a name of a scope, or a dotted one, is used, but for the functions below that have a parameter of it."""
    return _uses_by_name(scope).get(name, [])


@remembered
def _uses_by_name(scope: ast.AST) -> dict[str, list[ast.Name | ast.Attribute]]:
    found: dict[str, list[ast.Name | ast.Attribute]] = {}
    nodes = [(node, frozenset[str]()) for node in children(scope)]
    for node, hidden in nodes:
        if isinstance(node, FUNCTIONS):
            arguments = node.args
            parameters = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            hidden = hidden.union(item.arg for item in parameters)
        elif isinstance(node, (ast.Name, ast.Attribute)) and root_of(node) not in {*hidden, None}:
            found.setdefault(dotted_name(node) or "", []).append(node)
        nodes.extend((below, hidden) for below in children(node))
    return found


def _trained(module: Module, scope: ast.AST, name: str, model: str) -> ast.stmt | None:
    """The step of a loop that makes a State from itself, where the State is not read after it and the model is."""
    for loop in _loops(scope):
        inside = set(walk(loop))
        steps = [
            item
            for item in walk(loop)
            if isinstance(item, (ast.Assign, ast.AnnAssign)) and _is_step(module, item, name)
        ]
        read = {use for use in _uses(scope, name) if isinstance(use.ctx, ast.Load)}
        taken = {use for step in _leading_to(loop, steps) for use in _uses(step, name)}
        before = {use for use in read if use.lineno < loop.lineno and enclosing(module, use, *FUNCTIONS) is _own(scope)}
        later = [use for use in _uses(scope, model) if use not in inside and use.lineno > loop.lineno]
        # In the loop, too, the model is as it was: the loss of each round is that of the same parameters.
        lossy = [use for use in _uses(loop, model) if use not in taken and _is_differentiated(module, use)]
        if steps and read <= taken | before and any(isinstance(use.ctx, ast.Load) for use in [*later, *lossy]):
            return steps[0]
    return None


@remembered
def _loops(scope: ast.AST) -> list[ast.For | ast.AsyncFor | ast.While]:
    """The loops of a function or module."""
    return [node for node in own_nodes(scope) if isinstance(node, STATEMENT_LOOPS)]


def _leading_to(loop: ast.AST, steps: list[Assignment]) -> list[Assignment]:
    """The statements of a loop that bind what a step reads, and the step itself."""
    found = list(steps)
    assigned = [
        item
        for item in walk(loop)
        if isinstance(item, (ast.Assign, ast.AnnAssign))
        and any(isinstance(value, ast.Call) for _, value in pairs_of(item))
    ]
    for step in found:
        wanted = {item.id for item in walk(step) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load)}
        found += [item for item in assigned if item not in found and wanted & assigned_names([item])]
    return found


def _is_differentiated(module: Module, use: ast.expr) -> bool:
    """Whether a name is an argument of a gradient that is called where it is made."""
    call = next(ancestors(module, use), None)
    made = call.func if isinstance(call, ast.Call) and use in call.args else None
    return isinstance(made, ast.Call) and canonical_of(module.env, made.func) in DIFFERENTIATING


MAPS = frozenset({*TREE_MAPS, "jax.tree.map_with_path", "nnx.map_state"})

LEAVING = frozenset(
    {"jax.device_get", "jax.numpy.ones_like", "jax.numpy.shape", "jax.numpy.zeros_like", "jax.random.key_data"}
    | {"numpy.array", "numpy.asarray"}
)
"""What makes of a leaf something to save, to show or to begin with, which no model takes back."""


def _makes_leaves(module: Module, env: Env, call: ast.Call) -> bool:
    """Whether a map makes leaves of a State that are for the model."""
    func = (value_of(module, call.args[0]) or call.args[0]) if call.args else None
    asks = isinstance(func, ast.Lambda) and isinstance(func.body, ast.Attribute)  # of each leaf its shape
    return canonical_of(env, call.func) in MAPS and canonical_of(env, func) not in LEAVING and not asks


def _mapped(frame: Frame, scope: ast.AST, name: str, model: str) -> ast.stmt | None:
    """The last statement that maps a State to one that nothing reads, which has the same name, or in a function that
    goes on with the object or returns nothing.
    """
    module, env = frame.module, frame.env
    read = {use for use in _uses(scope, name) if isinstance(use.ctx, ast.Load)}
    if not read:
        return None
    values: list[ast.Call] = []
    for value in _values_with(scope).get(name, ()):
        if read.intersection(walk(value)):
            if not isinstance(value, ast.Call) or not _makes_leaves(module, env, value):
                return None
            values.append(value)
    made = [found for value in values if (found := bound_to(module, value)) is not None]
    steps = [each.statement for each in made]
    if not steps or len(steps) < len(values):
        return None
    taken = {use for value in values for use in walk(value)}
    targets = [each.target for each in made]
    named = [target.id for target in targets if isinstance(target, ast.Name) and not target.id.startswith("_")]
    unread = all(each == name or not any(isinstance(use.ctx, ast.Load) for use in _uses(scope, each)) for each in named)
    last = steps[-1]
    later = any(use.lineno > last.lineno and isinstance(use.ctx, ast.Load) for use in _uses(scope, model))
    silent = not any(isinstance(item, (ast.Return, ast.Yield, ast.YieldFrom)) for item in own_nodes(scope))
    outer = enclosing(module, last, ast.For, ast.AsyncFor, ast.While, *FUNCTIONS)
    straight = (outer is None or outer is scope) and not isinstance(scope, ast.Module)
    dropped = later or silent or (all(each == name for each in named) and name not in outer_names(scope))
    whole = read <= taken and unread and dropped and straight and len(named) == len(steps)
    return statement_of(module, values[-1]) if whole else None  # what makes it, whoever gets it in the end


@remembered
def _values_with(scope: ast.AST) -> dict[str, list[ast.expr]]:
    """What the assignments of a function or module bind, by the names that stand in it."""
    found: dict[str, list[ast.expr]] = {}
    for _, value in (pair for item in own_nodes(scope) for pair in pairs_of(item)):
        for name in names_in(value):
            found.setdefault(name, []).append(value)
    return found


DIFFERENTIATING = frozenset({"nnx.grad", "nnx.value_and_grad"})


def _own(scope: ast.AST) -> ast.AST | None:
    return None if isinstance(scope, ast.Module) else scope


def _is_step(module: Module, node: Assignment, name: str) -> bool:
    """Whether a statement makes a call of something that has a name, which is then bound to what comes back:
    ``params, loss = step(params, x)``.
    """
    for _, value in pairs_of(node):
        given = [*value.args, *(item.value for item in value.keywords)] if isinstance(value, ast.Call) else []
        if any(is_name(item, name) for item in given):
            found = bound_to(module, value)
            target = found.target if found is not None else None
            bound = target.elts if isinstance(target, ast.Tuple) else [target]
            return any(is_name(item, name) for item in bound)
    return False


def _edited(module: Module, env: Env, scope: ast.AST, name: str) -> ast.stmt | None:
    """The statement that writes an entry of a State, or all of them, after which nothing reads the State."""
    if name not in _maybe_edited(scope):
        return None
    found: ast.stmt | None = None
    read: list[ast.expr] = []
    for use in _uses(scope, name):
        if isinstance(use.ctx, ast.Store):
            continue
        outer: ast.AST = use
        for parent in ancestors(module, use):
            if not isinstance(parent, ast.Subscript) or parent.value is not outer:
                break
            outer = parent
        statement = statement_of(module, use)
        filled = statement.value if isinstance(statement, ast.Expr) else None
        by_method = isinstance(filled, ast.Call) and _updated(filled) is use
        if isinstance(filled, ast.Call) and (
            by_method or (canonical_of(env, filled.func) == FILLING and filled.args[:1] == [use])
        ):
            found = found or statement
            continue
        targets = [target for target, _ in pairs_of(statement)] if statement is not None else []
        if outer is use or not any(isinstance(each, ast.Subscript) and _is_entry(each, name) for each in targets):
            read.append(use)
            continue
        found = found or statement
    return found if found is not None and all(_is_asked_before(module, scope, use, found) for use in read) else None


@remembered
def _maybe_edited(scope: ast.AST) -> frozenset[str]:
    """The names of which a function or module sets items, that a statement updates, or gives to a call as the first
    argument.
    """
    found: set[str] = set()
    for node in walk(scope):
        item: ast.AST | None = node if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) else None
        while isinstance(item, ast.Subscript):
            item = item.value
        filled: tuple[ast.AST | None, ...] = (item,)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            filled = (_updated(node.value), next(iter(node.value.args), None))
        found.update(each.id for each in filled if isinstance(each, ast.Name))
    return frozenset(found)


def _updated(call: ast.Call) -> ast.expr | None:
    """What a call of a method writes all entries of: ``state.update(new)``, ``state.replace_by_pure_dict(raw)``."""
    func = call.func
    return func.value if isinstance(func, ast.Attribute) and func.attr in WRITING else None


WRITING = frozenset({"update", "replace_by_pure_dict"})
"""Methods of a State that write its entries."""


def _is_asked_before(module: Module, scope: ast.AST, use: ast.expr, edit: ast.stmt) -> bool:
    """Whether a State is only asked for what is in it, and that before an edit that no loop repeats."""
    call = next(ancestors(module, use), None)
    asked = isinstance(call, ast.Call) and use in call.args and canonical_of(module.env, call.func) in ASKING
    once = enclosing(module, edit, *STATEMENT_LOOPS, *FUNCTIONS) is _own(scope)
    return asked and once and use.lineno < edit.lineno and enclosing(module, use, *FUNCTIONS) is _own(scope)


ASKING = frozenset({"nnx.to_flat_state", "nnx.to_pure_dict", "jax.tree.map", "jax.tree.leaves", "jax.tree.structure"})
"""Functions that make something of their own of a State."""


FILLING = "nnx.replace_by_pure_dict"
"""The function that writes all entries of a State."""


def _is_entry(place: ast.Subscript, name: str) -> bool:
    """Whether a target is an entry of a State under literal keys, and not the value of a Variable in it."""
    node: ast.expr = place
    while isinstance(node, ast.Subscript):
        if not isinstance(node.slice, ast.Constant) or not isinstance(node.slice.value, (str, int)):
            return False
        node = node.value
    return is_name(node, name)
