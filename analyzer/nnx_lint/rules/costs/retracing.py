"""Functions that are traced and compiled again and again (NNX701, NNX702, NNX703).

``nnx`` transforms know a compiled function by the object that the transform returned, and objects by their structure,
with all static attributes. JAX itself knows it by the function that it was given.

Invariants: a loop is one that is written around the call, in the same function or in the one that calls it; where the
options, or the function that is compiled, may be others in each round, nothing is said.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Fix
from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal, Transformed
from nnx_lint.model.classes import UserClass
from nnx_lint.model.effects import SETTING
from nnx_lint.model.events import AttributeSet, Called, Ran
from nnx_lint.model.modules import Env
from nnx_lint.model.values import ClassVal, Const, Ext, Obj, Unknown, Value
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.bindings import names_of_first, target_of
from nnx_lint.rules.blocks import fresh
from nnx_lint.rules.edits import insert, insert_before, remove_statement, replace
from nnx_lint.rules.program import (
    FUNCTIONS,
    STATEMENT_LOOPS,
    ancestors,
    around,
    assigned_in,
    binds,
    block_of,
    calls_in,
    defined_in,
    enclosing,
    free_names,
    in_test,
    names_of_parameters,
    own_nodes,
    parameters_in,
    results_of,
)
from nnx_lint.rules.repeating import COMPREHENSIONS, handed_for, loop_around
from nnx_lint.rules.traces.captures import holds
from nnx_lint.rules.traces.counting import is_count
from nnx_lint.rules.updates.ownership import changes_of
from nnx_lint.rules.variables.promoting import as_variable
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import assigned_names, is_name, names_in
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.attributes import Status
from nnx_rules.records import Entity
from nnx_rules.rules import costs as rules

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Assignment


def calls_compiled(event: Called) -> bool:
    """Whether a compiled function is called."""
    return isinstance(event.callee, Transformed) and event.callee.applied.row.cached and not event.frame.scope


# -- compiled in a loop ------------------------------------------------------------------------------------------------


@judges_calls(rules.TRANSFORM_IN_LOOP, Transformed, when=calls_compiled)
def transform_in_loop(event: Called, report: Reporter) -> None:
    frame, callee = event.frame, event.callee
    if not isinstance(callee, Transformed) or callee.applied.module is not frame.module:
        return
    applied = callee.applied
    node = applied.node
    loop = innermost_loop(frame, node)
    if in_test(frame) or not (applied.row.name.startswith("nnx.") or _is_new_to_jax(frame, callee, loop)):
        return
    if loop is None or innermost_loop(frame, event.node) is None:
        if loop is None and (_made_for_each_element(frame, callee) or _made_for_each_call(event, callee)):
            report(frame.module, node, transform=applied.text)
        return
    bound = assigned_names(loop.body) | _targets(loop)
    if isinstance(callee.func, FuncVal) and node in getattr(callee.func.node, "decorator_list", ()):
        if free_names(callee.func.node).isdisjoint(bound - {callee.func.name}):
            report(frame.module, node, transform=applied.text)
        return
    if not isinstance(node, ast.Call) or not node.args or any(_made_in(frame, loop, each) for each in event.args):
        return
    func: Value | None = callee.func
    while isinstance(func, (BoundMethod, Transformed, PartialVal)):
        func = func.func
    if func is callee.func and _calls_what_is_new(callee.func, event.nodes, bound):
        return
    made = func.node if isinstance(func, FuncVal) and _stands_in(node, func.node) else None
    own = {id(part) for part in walk(made)} if made is not None else set[int]()
    names = {part.id for part in walk(node) if isinstance(part, ast.Name) and id(part) not in own}
    names |= free_names(made) if made is not None else set()
    made_inside = made is None and isinstance(func, FuncVal) and _stands_in(loop, func.node)
    if isinstance(func, FuncVal) and made_inside and names & bound == {func.name}:
        if free_names(func.node).isdisjoint(bound - {func.name}):
            report(frame.module, node, transform=applied.text)
        return
    if isinstance(func, FuncVal) and not made_inside and names.isdisjoint(bound):
        report(frame.module, node, fix=partial(compiled_once, frame.module, node, loop), transform=applied.text)


def _made_in(frame: Frame, loop: ast.stmt, value: Value | None) -> bool:
    """Whether each round makes a module of its own, of its own settings maybe: that is compiled once for it."""
    origin = value.origin if isinstance(value, Obj) and value.cls.is_pytree else None
    return origin is not None and origin[0] is frame.module and _stands_in(loop, origin[1])


def _calls_what_is_new(func: Value, given: Sequence[ast.AST | None], bound: Set[str]) -> bool:
    """Whether a compiled function calls a parameter that it gets from the round: a module, as it seems."""
    names = syntax_parameters.positional_names(func.node.args) if isinstance(func, FuncVal) else []
    new = {name for name, node in zip(names, given, strict=False) if isinstance(node, ast.Name) and node.id in bound}
    return isinstance(func, FuncVal) and any(root_of(call.func) in new for call in calls_in(func.node))


def _is_new_to_jax(frame: Frame, compiled: Transformed, loop: ast.stmt | None) -> bool:
    """Whether each round of a loop defines the function that JAX compiles, which captures nothing that could change."""
    func = compiled.func
    if loop is None or not isinstance(func, FuncVal) or not _stands_in(loop, func.node):
        return False
    found = [frame.env.lookup(name) for name in free_names(func.node)]
    return all(isinstance(each[1], (Ext, ClassVal, FuncVal, Const)) for each in found if each is not None)


def _made_for_each_element(frame: Frame, compiled: Transformed) -> bool:
    """Whether a comprehension compiles a function that is there before it for each of its elements."""
    node = compiled.applied.node
    bound = _bound_in_rounds(frame, node) if isinstance(node, ast.Call) and node.args else None
    names = {part.id for part in walk(node) if isinstance(part, ast.Name)}
    func = compiled.func.func if isinstance(compiled.func, BoundMethod) else compiled.func
    return bound is not None and isinstance(func, FuncVal) and names.isdisjoint(bound)


CHOOSING = (ast.If, ast.IfExp, ast.Try, ast.BoolOp)
"""What decides whether something is done."""


@remembered
def _keeps_something(func: ast.AST) -> bool:
    """Whether a function puts something where the next call finds it."""
    stores = (node for node in own_nodes(func) if isinstance(node, (*PARTS, ast.Global, ast.Nonlocal)))
    return any(isinstance(node, (ast.Global, ast.Nonlocal)) or not _is_read(node) for node in stores)


def _made_for_each_call(event: Called, compiled: Transformed) -> bool:
    """Whether the function that a loop of the caller calls compiles one function each time, for one object.

    The object was there before the loop: what a function makes for a model of its own is compiled once for that model.
    """
    frame, outer, call = event.frame, event.frame.caller, event.frame.call
    func, inner = frame.func, _function_of(frame, compiled)
    if func is None or outer is None or not isinstance(call, ast.Call) or not isinstance(inner, FuncVal):
        return False
    if getattr(func.node, "decorator_list", ()) or in_test(outer) or not _stands_in(func.node, compiled.applied.node):
        return False
    decorated = compiled.applied.node in getattr(inner.node, "decorator_list", ())
    place = inner.node if decorated else compiled.applied.node
    chosen = isinstance(enclosing(frame.module, place, *CHOOSING, *FUNCTIONS), CHOOSING)
    if chosen and _keeps_something(func.node):
        return False  # it may be compiled in the first call, and kept
    bound = _bound_in_rounds(outer, call)
    own = assigned_in(func.node).keys() | parameters_in(func.node).keys()
    if frame.receiver is not None:
        own -= names_of_first(func.node)
    if bound is None or (_stands_in(func.node, inner.node) and not own.isdisjoint(free_names(inner.node))):
        return False
    names = {part.id for part in walk(call) if isinstance(part, ast.Name)} - bound
    lasting = [found[1] for name in names if (found := outer.env.lookup(name)) is not None]
    held = [attr.value for obj in lasting if isinstance(obj, Obj) for attr in obj.attrs.values()]
    if any(each is frame.receiver for each in held):
        held += [attr.value for attr in frame.receiver.attrs.values()] if isinstance(frame.receiver, Obj) else []
    compiled_for = [value for value in event.args if isinstance(value, Obj) and value.cls.is_pytree]
    if any(value is item for value in compiled_for for item in (*lasting, *held)):
        return True
    # An unknown model lasts where it belongs to the object of the method, or the loop hands the same over each time.
    called = {root_of(each.func) for each in calls_in(inner.node)}
    parameters = syntax_parameters.positional_names(inner.node.args)
    models = [node for name, node in zip(parameters, event.nodes, strict=False) if name in called] or event.nodes[:1]
    values = [value for node, value in zip(event.nodes, event.args, strict=False) if node in models]
    if not models or not all(isinstance(value, Unknown) for value in values):
        return False
    given = [handed_for(frame, root_of(node) or "") for node in models]
    return all(node is not None and names_in(node).isdisjoint(bound) for node in given)


def returns_compiled(event: Called) -> bool:
    """Whether a function of the project returns a compiled one."""
    result = event.result
    return isinstance(result, Transformed) and result.applied.row.cached and not event.frame.scope


@judges_calls(rules.TRANSFORM_IN_LOOP, FuncVal, BoundMethod, when=returns_compiled)
def maker_in_loop(event: Called, report: Reporter) -> None:
    """Each round of a loop calls a function that makes a compiled one, of what is the same in each round."""
    frame, call, compiled = event.frame, event.node, event.result
    maker = event.callee.func if isinstance(event.callee, BoundMethod) else event.callee
    loop = innermost_loop(frame, call)
    if loop is None or not isinstance(call, ast.Call) or not isinstance(compiled, Transformed) or in_test(frame):
        return
    if loop_around(frame.module, call, "") is not loop:  # it may be made in one round only
        return
    if not isinstance(maker, FuncVal) or not isinstance(maker.node, ast.FunctionDef) or maker.node.decorator_list:
        return
    applied, inner = compiled.applied, compiled.func
    if not _returns_made(maker.node, applied.node) or not _is_called_in(loop, frame.module, call):
        return
    if not applied.row.name.startswith("nnx.") and not (
        isinstance(inner, FuncVal) and _stands_in(maker.node, inner.node)
    ):
        return  # JAX knows the function again
    given = {part.id for part in walk(call) if isinstance(part, ast.Name)}
    if frame.func is None or enclosing(maker.module, maker.node, *FUNCTIONS) is frame.func.node:
        given |= free_names(maker.node) - defined_in(maker.node).keys()
    changed = {root_of(part.value) for part in walk(loop) if isinstance(part, PARTS) and not _is_read(part)}
    arguments = {name for item in (*call.args, *call.keywords) for name in names_in(item)}
    changed |= arguments & {root_of(each.func) for each in calls_in(loop) if isinstance(each.func, ast.Attribute)}
    own = set[str]()
    if isinstance(event.callee, BoundMethod):
        own = {part.attr for part in walk(maker.node) if isinstance(part, ast.Attribute) and _is_read(part)}
    if given.isdisjoint(assigned_names(loop.body) | _targets(loop) | changed) and not _is_set_later(maker, own):
        report(frame.module, call, transform=applied.text)


PARTS = (ast.Attribute, ast.Subscript)


def _is_read(node: ast.Attribute | ast.Subscript) -> bool:
    return isinstance(node.ctx, ast.Load)


def _returns_made(maker: ast.FunctionDef, made: ast.AST) -> bool:
    """Whether all that a function returns is what a transform makes in each call."""
    results = results_of(maker)
    if len(results) != 1:
        return False
    value = results[0]
    name = value.id if isinstance(value, ast.Name) and assigned_in(maker)[value.id] <= 1 else None
    bound = (each for each in own_nodes(maker) if isinstance(each, (ast.Assign, ast.FunctionDef)))
    return value is made or any(
        is_name(each.targets[0], name) and each.value is made
        if isinstance(each, ast.Assign)
        else each.name == name and made in each.decorator_list
        for each in bound
    )


def _is_called_in(loop: ast.stmt, module: Module, made: ast.Call) -> bool:
    """Whether a loop calls what an expression of it returns, at once or by a name."""
    outer = next(ancestors(module, made), None)
    if isinstance(outer, ast.Call):
        return outer.func is made
    name = target_of(module, made)
    return isinstance(name, ast.Name) and any(is_name(each.func, name.id) for each in calls_in(loop))


def _is_set_later(method: FuncVal, names: set[str]) -> bool:
    """Whether a class sets an attribute of one of these names anywhere but in its constructor."""
    cls = enclosing(method.module, method.node, ast.ClassDef)
    for func in cls.body if cls is not None and names else ():
        if isinstance(func, ast.FunctionDef) and func.name != "__init__":
            parts = (part for part in own_nodes(func) if isinstance(part, ast.Attribute) and not _is_read(part))
            if any(part.attr in names for part in parts):
                return True
    return False


def _function_of(frame: Frame, compiled: Transformed) -> Value:
    """The function that is compiled; that of a partial, which is made for each call, where what this brings along is no
    argument of the call but its object.
    """
    func, node = compiled.func, compiled.applied.node
    if not isinstance(func, PartialVal) or frame.func is None:
        return func
    own = assigned_in(frame.func.node).keys() | parameters_in(frame.func.node).keys()
    if frame.receiver is not None:
        own -= names_of_first(frame.func.node)
    brought = func.func.func if isinstance(func.func, BoundMethod) else func.func
    named = (part.id for part in walk(node) if isinstance(part, ast.Name))
    return brought if brought is not None and own.isdisjoint(named) else func


def compiled_once(module: Module, node: ast.Call, loop: ast.stmt) -> Fix | None:
    """Compile before the loop."""
    source = module.source
    parent = next(ancestors(module, node), None)
    given = node.args[0]
    if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name) and len(parent.targets) == 1:
        removed = remove_statement(source, block_of(module, parent), parent)
        added = insert_before(source, loop, source.segment(parent))
        if removed is None or added is None or parent.end_lineno != parent.lineno or len(block_of(module, parent)) == 1:
            return None
        return Fix("Compile it before the loop", (*added, *removed))
    name = f"compiled_{given.id}" if isinstance(given, ast.Name) else "compiled"
    if name in names_in(module.tree):
        return None
    added = insert_before(source, loop, f"{name} = {source.segment(node)}")
    if added is None or node.end_lineno != node.lineno:
        return None
    return Fix("Compile it before the loop", (*added, *replace(source, node, name)))


def innermost_loop(frame: Frame, node: ast.AST) -> ast.For | ast.AsyncFor | ast.While | None:
    """The innermost loop around a node, whose body it stands in, and that goes on after it."""
    outers = around(frame, node)
    for place in range(len(outers) - 1, -1, -1):
        outer = outers[place]
        if not isinstance(outer, STATEMENT_LOOPS):
            continue
        inside = outers[place + 1] if place + 1 < len(outers) else node
        if inside not in outer.body or isinstance(outer.body[-1], (ast.Break, ast.Return, ast.Raise)):
            return None
        return outer
    return None


def _bound_in_rounds(frame: Frame, node: ast.AST) -> Set[str] | None:
    """The names that a loop or a comprehension around a node binds in each round; ``None`` where there is none."""
    loop = innermost_loop(frame, node)
    if loop is not None:
        return assigned_names(loop.body) | _targets(loop)
    made = loop_around(frame.module, node, "")
    if not isinstance(made, COMPREHENSIONS):
        return None
    return {part.id for each in made.generators for part in walk(each.target) if isinstance(part, ast.Name)}


def _targets(loop: ast.For | ast.AsyncFor | ast.While) -> set[str]:
    target = loop.target if isinstance(loop, (ast.For, ast.AsyncFor)) else None
    return {part.id for part in walk(target) if isinstance(part, ast.Name)} if target is not None else set()


def _stands_in(outer: ast.AST, node: ast.AST) -> bool:
    return any(part is node for part in walk(outer))


# -- static values that change -----------------------------------------------------------------------------------------


def compiled_changes(event: Ran) -> bool:
    """Whether a function that `nnx` compiles has changed something."""
    return event.scope.row.name in {"nnx.jit", "nnx.pmap"} and bool(event.scope.changes)


@judges(rules.STATIC_COUNTER, Ran, when=compiled_changes)
def static_counter(event: Ran, report: Reporter) -> None:
    scope = event.scope
    if not scope.applied.modes.writes_back:
        return
    for item in changes_of(event, SETTING):
        node, frame = item.event.node, item.event.frame
        name = item.event.action.removeprefix(SETTING).removesuffix("`")
        attr = attribute_of(item.target, name)
        first = attr.first if attr is not None else None
        if item.merged or first is None or not is_count(first.value) or not _counts(node, name):
            continue
        if not item.target.cls.is_pytree:
            continue  # JAX compares such an object by what it is, not by what it holds
        where = (related(scope.applied.module, scope.applied.node, f"`{scope.text}` is applied here"),)
        cls = item.target.cls.name
        fix = partial(as_variable, first, frame.module, name)
        slots = {"name": f"{cls}.{name}", "transform": scope.text, "mend": rules.IN_VARIABLE}
        report(frame.module, node, fix=fix, related=where, **slots)


def _counts(node: ast.AST, name: str) -> bool:
    """Whether an assignment computes the new value of an attribute from the old one."""
    if isinstance(node, ast.AugAssign):
        return True
    value = node.value if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) else None
    return value is not None and any(isinstance(part, ast.Attribute) and part.attr == name for part in walk(value))


class SetInRounds(Entity):
    """A static number that each round of a loop sets anew, and the loop."""

    event: AttributeSet
    first: Assignment
    loop: ast.stmt


class Rounds:
    """What loops have set so far, and the compiled functions that they have called."""

    def __init__(self) -> None:
        self.found: list[SetInRounds] = []
        self.called: list[tuple[ast.stmt, Called]] = []


def sets_number(event: AttributeSet) -> bool:
    """Whether a static attribute of an object, which was a number, is set to another one outside of all transforms."""
    before, verdict = event.before, event.verdict
    known = before is not None and verdict is not None and verdict.status is Status.STATIC and event.obj.cls.is_pytree
    return known and not event.frame.scope and before is not None and is_count(before.value)


@judges(rules.STATIC_COUNTER, AttributeSet, when=sets_number)
def note_round(event: AttributeSet, report: Reporter) -> None:
    loop = innermost_loop(event.frame, event.node)
    targets = _targets(loop) if loop is not None else set[str]()
    value = event.value_node if isinstance(event.node, ast.Assign) else None
    anew = isinstance(event.node, ast.AugAssign) or (
        value is not None and (_follows(value, targets) or _goes_on(value, event.name))
    )
    if loop is None or not anew or event.node not in loop.body or event.before is None or in_test(event.frame):
        return
    if loop_around(event.frame.module, event.node, "") is loop:
        rounds, each = report.memory(Rounds), SetInRounds(event, event.before, loop)
        earlier = (call for around, call in rounds.called if around is loop and _is_given(call, event.obj))
        call = next(earlier, None)
        if call is None:
            rounds.found.append(each)
        else:
            _report_round(each, call, report)


def _follows(value: ast.expr, targets: set[str]) -> bool:
    """Whether a value is another one for each value of a name: the name itself, or what is computed from it without
    leaving a remainder.
    """
    if isinstance(value, ast.BinOp):
        parts = _follows(value.left, targets) or _follows(value.right, targets)
        return parts and isinstance(value.op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow))
    return isinstance(value, ast.Name) and value.id in targets


def _goes_on(value: ast.expr, name: str) -> bool:
    """Whether a value is the last one of an attribute and a step, maybe as far as to a bound; ``1 - flag`` is none."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in {"max", "min"}:
        return any(_goes_on(each, name) for each in value.args)
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
        return False
    sides = (value.left, value.right) if isinstance(value.op, (ast.Add, ast.Mult)) else (value.left,)
    return any(isinstance(side, ast.Attribute) and side.attr == name for side in sides)


@judges_calls(rules.STATIC_COUNTER, Transformed, when=calls_compiled)
def static_in_rounds(event: Called, report: Reporter) -> None:
    """A compiled function is called in each round with an object whose static number the round has set."""
    callee = event.callee
    if not isinstance(callee, Transformed) or not callee.applied.row.name.startswith("nnx."):
        return
    loop = innermost_loop(event.frame, event.node)
    if loop is None:
        return
    rounds = report.memory(Rounds)
    rounds.called.append((loop, event))
    for each in [each for each in rounds.found if each.loop is loop and _is_given(event, each.event.obj)]:
        rounds.found.remove(each)
        _report_round(each, event, report)


def _is_given(call: Called, obj: Obj) -> bool:
    """Whether a function is called with an object, or one that holds it."""
    return any(value is obj or holds(value, obj) for value in call.args if isinstance(value, Obj))


def _report_round(each: SetInRounds, call: Called, report: Reporter) -> None:
    name, frame = each.event.name, each.event.frame
    where = (related(call.frame.module, call.node, "the object goes to the compiled function here"),)
    fix = partial(as_variable, each.first, frame.module, name)
    transform = call.callee.applied.text if isinstance(call.callee, Transformed) else "nnx.jit"
    slots = {"name": f"{each.event.obj.cls.name}.{name}", "transform": transform, "mend": rules.IN_VARIABLE}
    report(frame.module, each.event.node, fix=fix, related=where, **slots)


# -- functions that are made anew --------------------------------------------------------------------------------------


@judges_calls(rules.IDENTITY_STATIC, Transformed, when=calls_compiled)
def function_of_its_own(event: Called, report: Reporter) -> None:
    callee = event.callee
    if not isinstance(callee, Transformed) or not isinstance(event.node, ast.Call):
        return
    loop: ast.AST | None = innermost_loop(event.frame, event.node)
    around_it = loop_around(event.frame.module, event.node, "") if loop is None else None
    loop = around_it if isinstance(around_it, COMPREHENSIONS) else loop
    if loop is None or _stands_in(loop, callee.applied.node):
        return
    for value in event.args:
        obj = value if isinstance(value, Obj) and isinstance(value.cls, UserClass) else None
        made = obj.origin if obj is not None else None
        if obj is None or made is None or not obj.cls.is_pytree or not _stands_in(loop, made[1]):
            continue
        for name in attribute_names(obj):
            attr = attribute_of(obj, name)
            first = attr.first if attr is not None else None
            if attr is not None and first is not None and made_anew(attr.value) and not _is_there_before(first):
                where = (related(event.frame.module, event.node, "the object goes to the compiled function here"),)
                transform = callee.applied.text
                fix = partial(_at_top, first, name)
                report(
                    first.module, first.node, fix=fix, related=where, cls=obj.cls.name, path=name, transform=transform
                )


def _is_there_before(first: Assignment) -> bool:
    """Whether an attribute is assigned what a name, or an attribute, stands for that the function does not bind."""
    held = first.value_node
    while isinstance(held, (ast.Attribute, ast.Subscript)):
        held = held.value
    func, name = enclosing(first.module, first.node, *FUNCTIONS), root_of(held)
    if not isinstance(func, FUNCTIONS) or name is None:
        return False
    return not binds(func, name) or name in names_of_parameters(func)


def _at_top(first: Assignment, name: str) -> Fix | None:
    """Define a function before the class, where it needs nothing of the constructor."""
    module, made = first.module, first.value_node
    if not isinstance(made, ast.Lambda) or made.args.defaults or made.args.kw_defaults:
        return None
    init, cls = enclosing(module, made, ast.FunctionDef), enclosing(module, made, ast.ClassDef)
    if (
        init is None
        or cls is None
        or cls not in module.tree.body
        or any(binds(init, each) for each in free_names(made))
    ):
        return None
    function, source = fresh(module, f"_{name.lstrip('_')}"), module.source
    place = source.line_start(min([cls.lineno, *(each.lineno for each in cls.decorator_list)]))
    text = f"def {function}({ast.unparse(made.args)}):\n    return {ast.unparse(made.body)}\n\n\n"
    return Fix("Define it before the class", (*insert(place, text), *replace(source, made, function)))


def made_anew(value: Value) -> bool:
    """Whether a value is a function that another function makes each time that it runs."""
    if isinstance(value, PartialVal):
        return True
    return isinstance(value, FuncVal) and isinstance(value.env, Env) and value.env.kind == "function"
