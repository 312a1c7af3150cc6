"""Execution of statements. Each handler returns whether the statement certainly ends the block that it is in."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import (
    attributes,
    blanks,
    carried,
    definitions,
    elements,
    events,
    expressions,
    failures,
    imports,
    items,
    measured,
    narrowing,
    premises,
    rounds,
    shims,
    uses,
)
from nnx_lint.model.annotations import value_of
from nnx_lint.model.callables import ContextVal, FuncVal, Transformed
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.deferred import settled
from nnx_lint.model.expressions import evaluate
from nnx_lint.model.frames import ROUND
from nnx_lint.model.heap import touch
from nnx_lint.model.states import ForeignVal
from nnx_lint.model.switching import set_training
from nnx_lint.model.unions import join, present
from nnx_lint.model.values import (
    NONE,
    NUMBER,
    UNKNOWN,
    ClassVal,
    Computed,
    Const,
    Obj,
    TypeVal,
    Unknown,
    Value,
)
from nnx_lint.syntax.binding import Loop, assigned_in_loop, is_name, returns_in_loop
from nnx_lint.syntax.trees import Blank

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter


# -- binding
# -------------------------------------------------------------------------------------------------------------------


def assign(
    interp: Interpreter, frame: Frame, target: ast.expr, value: Value, value_node: ast.expr | None, node: ast.AST
) -> None:
    """Bind a target: a name, an attribute, an item, or a tuple of targets."""
    if isinstance(target, ast.Name):
        scope = frame.env
        if target.id in scope.globals or target.id in scope.nonlocals:
            interp.publish(events.OuterNameSet(frame, node, target.id, value, value_node))
        if target.id in scope.globals:
            scope = frame.module.env
            touch(scope)
        scope.names[target.id] = value
    elif isinstance(target, ast.Attribute):
        obj = evaluate(interp, frame, target.value)
        attributes.set_attribute(
            interp, frame, obj, expressions.text_of(target.value), target.attr, value, value_node, node
        )
    elif isinstance(target, ast.Subscript):
        container = evaluate(interp, frame, target.value)
        key = evaluate(interp, frame, target.slice)
        if isinstance(container, DictVal):
            expressions.used_as(interp, frame, target.slice, key, "a key")
        elif isinstance(container, Seq) and container.type == "FlatState":
            interp.publish(events.Used(frame, target, container, "an index"))
        items.set_item(interp, frame, container, expressions.text_of(target.value), key, value, node)
    elif isinstance(target, (ast.Tuple, ast.List)):
        unpack(interp, frame, target, value, value_node, node)
    elif isinstance(target, ast.Starred):
        assign(interp, frame, target.value, UNKNOWN, None, node)


def unpack(
    interp: Interpreter,
    frame: Frame,
    target: ast.Tuple | ast.List,
    value: Value,
    value_node: ast.expr | None,
    node: ast.AST,
) -> None:
    """Bind several targets to the elements of a value."""
    starred = next((i for i, item in enumerate(target.elts) if isinstance(item, ast.Starred)), None)
    if value_node is not None:
        count = None if starred is not None else len(target.elts)
        interp.publish(events.Unpacked(frame, node, value, value_node, count, target))
    value = elements.as_tuple(value) if isinstance(value, Obj) else value
    parts: list[Value]
    nodes: list[ast.expr | None] = [None] * len(target.elts)
    if isinstance(value, Seq) and value.exact and starred is None and len(value.items) == len(target.elts):
        parts = list(value.items)
        if isinstance(value_node, (ast.Tuple, ast.List)) and len(value_node.elts) == len(parts):
            nodes = list(value_node.elts)
    elif isinstance(value, Seq) and value.exact and starred is not None and len(value.items) >= len(target.elts) - 1:
        after = len(target.elts) - starred - 1
        middle = value.items[starred : len(value.items) - after]
        parts = [*value.items[:starred], Seq("list", middle, frame.level), *value.items[len(value.items) - after :]]
    elif starred is None and (chosen := elements.at_each_place(value, len(target.elts))) is not None:
        parts = chosen
    else:
        parts = [elements.element_of(value, frame.level)] * len(target.elts)
        listed = elements.library_elements(value) if isinstance(value, Obj) else value
        if isinstance(listed, Seq) and starred is None:
            parts = [elements.item(listed, Const(place), frame.level) for place in range(len(parts))]
        if starred is not None:  # `*keys` is a list of them, however many there are
            parts[starred] = Seq("list", [parts[starred]], frame.level, exact=False)
    for item, part, part_node in zip(target.elts, parts, nodes, strict=True):
        inner = item.value if isinstance(item, ast.Starred) else item
        assign(interp, frame, inner, part, part_node, node)


# -- handlers
# ------------------------------------------------------------------------------------------------------------------


def _assign(interp: Interpreter, frame: Frame, node: ast.Assign) -> bool:
    value = measured.measured(interp, frame, node, evaluate(interp, frame, node.value))
    if value is UNKNOWN and uses.is_merge(node.value):
        value = uses.merged(interp, frame, node.targets[0], node.value)
    for target in node.targets:
        assign(interp, frame, target, value, node.value, node)
    return False


def _ann_assign(interp: Interpreter, frame: Frame, node: ast.AnnAssign) -> bool:
    if node.value is None and not (frame.module.stub and frame.env.kind == "module"):
        return False
    value = evaluate(interp, frame, node.value) if node.value is not None else UNKNOWN
    # In a class, what stands there may say how a field is made: the annotation is of what instances hold.
    if isinstance(value, Unknown) and frame.env.kind != "class":
        said = value_of(interp, frame, node.annotation)
        value = value if said is UNKNOWN else said
    assign(interp, frame, node.target, value, node.value, node)
    return False


def _aug_assign(interp: Interpreter, frame: Frame, node: ast.AugAssign) -> bool:
    current = evaluate(interp, frame, node.target)
    operand = evaluate(interp, frame, node.value)
    held = present(current)
    if isinstance(held, Seq) and held.type == "list" and isinstance(node.op, ast.Add):
        rounds.extend(interp, frame, held, operand, "+=", node, expressions.text_of(node.target))
        return False
    if isinstance(held, Obj) and held.cls.is_variable:
        attributes.mutate(interp, frame, held, expressions.text_of(node.target), "`+=`", "write", node)
        return False
    if isinstance(held, Obj) and held.cls.derives_from("nnx.List"):
        attributes.mutate(interp, frame, held, expressions.text_of(node.target), "`+=`", "write", node)
        return False
    value = expressions.computed(current, node.op, operand, frame.level)
    if isinstance(value, Computed) and not isinstance(node.target, ast.Name):
        value = NUMBER  # who knows how often
    assign(interp, frame, node.target, value, None, node)
    return False


def _expr(interp: Interpreter, frame: Frame, node: ast.Expr) -> bool:
    frame.discards = node.value
    if failures.expects_error(interp, frame, node.value):
        with interp.failing():
            evaluate(interp, frame, node.value)
    else:
        evaluate(interp, frame, node.value)
    return False


def _return(interp: Interpreter, frame: Frame, node: ast.Return) -> bool:
    value = evaluate(interp, frame, node.value) if node.value is not None else NONE
    frame.results.append(value)
    frame.exits += 1
    returned(interp, frame, node, value)
    return True


def returned(interp: Interpreter, frame: Frame, node: ast.AST, value: Value) -> None:
    """Publish what a function returns."""
    interp.publish(events.Returned(frame, node, value))


def _raise(interp: Interpreter, frame: Frame, node: ast.Raise) -> bool:
    if node.exc is not None:
        evaluate(interp, frame, node.exc)
        if frame.caller is not None and is_name(getattr(node.exc, "func", node.exc), "NotImplementedError"):
            interp.publish(events.NotImplementedMet(frame, node))
    return True


def _end(interp: Interpreter, frame: Frame, node: ast.stmt) -> bool:
    frame.exits += 1
    return True


def _if(interp: Interpreter, frame: Frame, node: ast.If) -> bool:
    test = expressions.condition(interp, frame, node.test)
    for_checkers = shims.for_checkers(_tested(interp, frame, node.test), node.test)
    if for_checkers is not None:
        arms = (lambda: interp.block(frame, node.body), lambda: interp.block(frame, node.orelse))
        shims.both_arms(frame, *(arms if for_checkers else reversed(arms)))
        return False
    known = expressions.truth(test)
    if known is not None:
        return interp.block(frame, node.body if known else node.orelse)
    doubts = (None if shims.is_script(node) else _doubt_beside(node.orelse), _doubt_beside(node.body))
    there = narrowing.asks_for_part(frame, node.test)
    arms = (
        lambda: _arm(interp, frame, node, True, supposed=there is True and doubts[0] == 1),
        lambda: _arm(interp, frame, node, False, supposed=there is False and doubts[1] == 1),
    )
    return branch(interp, frame, node, arms, doubts)


def _doubt_beside(*blocks: Sequence[ast.stmt]) -> int | None:
    """How doubtful an arm is beside others: not at all if they end in errors, as it runs or nothing after it does."""
    return None if all(block and isinstance(block[-1], ast.Raise) for block in blocks) else 1


def _arm(interp: Interpreter, frame: Frame, node: ast.If, positive: bool, *, supposed: bool) -> bool:
    body, beside = (node.body, node.orelse) if positive else (node.orelse, node.body)
    narrowing.narrow(interp, frame, node.test, positive)
    doubts = premises.Doubts(frame, node.test, positive)
    frame.supposed += supposed
    ended = interp.block(frame, body)
    frame.supposed -= supposed
    doubts.end(premises.leaves(beside))
    return ended


def _tested(interp: Interpreter, frame: Frame, test: ast.expr) -> Value:
    """The value that a condition asks for, negated or not."""
    while isinstance(test, ast.UnaryOp):
        test = test.operand
    return evaluate(interp, frame, test) if isinstance(test, (ast.Name, ast.Attribute)) else UNKNOWN


def branch(
    interp: Interpreter,
    frame: Frame,
    node: ast.AST,
    arms: Sequence[Callable[[], bool | None]],
    doubts: Sequence[int | None],
) -> bool:
    """Run alternatives on copies of the scope and join the scopes of those that go on. If none of them does, those of
    the ones that leave are joined, which is what functions find that were defined there.

    ``doubts`` says for each arm whether it is doubtful (1) that it runs at all, or an alternative to nothing (None).
    """
    before = frame.env.names
    outer = frame.branches
    doubtful, exits = frame.doubts, frame.exits
    survivors: list[dict[str, Value]] = []
    left: list[dict[str, Value]] = []
    for position, arm in enumerate(arms):
        frame.env.names = dict(before)
        doubt = doubts[position]
        frame.branches = outer if doubt is None else (*outer, (id(node), position))
        frame.doubts = doubtful + (doubt or 0)
        leaving = frame.exits
        ended = arm()
        if not ended:
            survivors.append(frame.env.names)
        elif frame.exits > leaving:
            left.append(frame.env.names)
    frame.branches = outer
    frame.doubts = doubtful + (1 if survivors and frame.exits > exits else 0)
    if not survivors:
        frame.env.names = _merge(left) if left else before
        return True
    frame.env.names = _merge(survivors)
    return False


def _merge(scopes: list[dict[str, Value]]) -> dict[str, Value]:
    first, *rest = scopes
    if not rest:
        return first
    merged = dict(first)
    bound = (item for scope in rest for item in scope.items())
    for name in dict.fromkeys([name for name, value in bound if merged.setdefault(name, value) is not value]):
        merged[name] = join(*(settled(scope[name]) for scope in scopes if name in scope))
    return merged


def _loop(
    interp: Interpreter, frame: Frame, node: Loop, bind: Callable[[], None], end: Callable[[], object] = lambda: None
) -> None:
    """Run a loop body once; ``end`` runs where the next round would begin.

    Of the names that it assigns, objects and arrays are at its start what they are in the first round; other values may
    be those of an earlier round, so they are unknown. Afterwards a name is what it was before the loop or what the body
    left, if that is of the same kind (:mod:`nnx_lint.model.carried`).
    """
    assigned, returns = assigned_in_loop(node), returns_in_loop(node)

    def once() -> bool:
        frame.branches = (*frame.branches[:-1], (id(node), ROUND))
        names = frame.env.names
        started = {name: value for name in assigned & names.keys() if isinstance(value := names[name], carried.STEADY)}
        names.update(dict.fromkeys((assigned & names.keys()) - started.keys(), UNKNOWN))
        before = dict(names)
        _round(interp, frame, node.body, bind, end)
        again = carried.second_round(assigned, before, frame.env.names)
        if again is not None:
            frame.env.names = before | again
            _round(interp, frame, node.body, bind, end)
        for name, value in started.items():
            if not carried.steady(value, frame.env.names.get(name)):
                frame.env.names[name] = UNKNOWN
        return False

    exits = frame.exits
    interp.loops |= {id(node)}
    branch(interp, frame, node, [once, lambda: False], (0, 0))
    frame.doubts -= 1 if frame.exits > exits and not returns else 0


def _round(
    interp: Interpreter, frame: Frame, body: list[ast.stmt], bind: Callable[[], None], end: Callable[[], object]
) -> None:
    bind()
    if not interp.block(frame, body):
        end()


def _for(interp: Interpreter, frame: Frame, node: ast.For | ast.AsyncFor) -> bool:
    iterable = rounds.gone_through(interp, frame, node.iter)
    interp.publish(events.Iterated(frame, node.iter, iterable, node.target))
    known = rounds.of_loop(interp, frame, node, iterable)
    if known is not None:
        return _round_by_round(interp, frame, node, known) or interp.block(frame, node.orelse)
    element = elements.element_of(iterable, frame.level)
    _loop(interp, frame, node, lambda: assign(interp, frame, node.target, element, None, node))
    return interp.block(frame, node.orelse) if node.orelse else False


def _round_by_round(interp: Interpreter, frame: Frame, node: ast.For | ast.AsyncFor, known: list[Value]) -> bool:
    """Run a loop body for each of these elements; whether a round certainly ends the function."""
    outer, doubts, exits = frame.branches, frame.doubts, frame.exits
    frame.branches = (*outer, (id(node), ROUND))
    interp.loops |= {id(node)}
    ended = False
    for element in rounds.one_by_one(interp, node, known):
        assign(interp, frame, node.target, element, None, node)
        ended = interp.block(frame, node.body)
        if ended:
            break
    frame.branches = outer
    frame.doubts = doubts + (1 if frame.exits > exits and returns_in_loop(node) else 0)
    return ended


def _while(interp: Interpreter, frame: Frame, node: ast.While) -> bool:
    def begin() -> None:
        expressions.condition(interp, frame, node.test)
        narrowing.narrow(interp, frame, node.test, True)

    _loop(interp, frame, node, begin, lambda: expressions.condition(interp, frame, node.test))
    return interp.block(frame, node.orelse) if node.orelse else False


def _with(interp: Interpreter, frame: Frame, node: ast.With | ast.AsyncWith) -> bool:
    configured = interp.modes
    ended = _managed(interp, frame, node)
    interp.modes = configured
    return ended


def _managed(interp: Interpreter, frame: Frame, node: ast.With | ast.AsyncWith) -> bool:
    for item in node.items:
        configured = interp.modes
        value = evaluate(interp, frame, item.context_expr)
        entered = _entered(interp, frame, value, item.context_expr)
        if isinstance(value, (ContextVal, Obj, Unknown)) and interp.modes is configured:
            interp.modes = interp.modes._replace(mesh=None)  # it may set one
        if item.optional_vars is not None:
            assign(interp, frame, item.optional_vars, entered, None, node)
    if failures.lets_fail(interp, frame, node):
        with interp.failing():
            interp.block(frame, node.body)
        return False
    if any(failures.alters_library(interp, frame, item.context_expr) for item in node.items):
        with interp.failing():
            return interp.block(frame, node.body)
    return interp.block(frame, node.body)


def _entered(interp: Interpreter, frame: Frame, value: Value, node: ast.expr) -> Value:
    """What a context manager gives to its block."""
    from nnx_lint.model.calls import Arguments, invoke

    if isinstance(value, ContextVal):
        # All of its function has run, also what it does after the block: it may have switched modes there and back.
        given = [*node.args, *(keyword.value for keyword in node.keywords)] if isinstance(node, ast.Call) else []
        for argument in given:
            if isinstance(argument, (ast.Name, ast.Attribute)):
                set_training(evaluate(interp, frame, argument), None)
        return value.entered
    if isinstance(value, ForeignVal):
        return value
    if not isinstance(value, Obj):
        return UNKNOWN
    if value.cls.tracked or value.cls.derives_from("nnx.SplitContext"):
        return value
    enter = attributes.get_attribute(interp, frame, value, "__enter__", node)
    return invoke(interp, frame, enter, Arguments(node, [], {}, []), node, expressions.text_of(node))


def _try(interp: Interpreter, frame: Frame, node: ast.Try | ast.TryStar) -> bool:
    def handler(item: ast.ExceptHandler) -> Callable[[], bool]:
        def run() -> bool:
            if item.name:
                frame.env.names[item.name] = UNKNOWN
            return interp.block(frame, item.body)

        return run

    def body() -> bool:
        if not failures.is_taken(node):
            return interp.block(frame, node.body)
        with interp.failing():
            return interp.block(frame, node.body)

    arms: list[Callable[[], bool]] = [lambda: body() or interp.block(frame, node.orelse)]
    handlers = [item for item in node.handlers if not shims.stands_in(frame, node, item)]
    arms.extend(handler(item) for item in handlers)
    ended = branch(interp, frame, node, arms, (0, *(1 for _ in handlers))) if handlers else arms[0]()
    return interp.block(frame, node.finalbody) or ended


def _match(interp: Interpreter, frame: Frame, node: ast.Match) -> bool:
    subject = evaluate(interp, frame, node.subject)

    def case(item: ast.match_case) -> Callable[[], bool]:
        def run() -> bool:
            taken = narrowing.match(interp, frame, item.pattern, subject)
            if isinstance(node.subject, ast.Name):
                frame.env.names[node.subject.id] = taken
            if item.guard is not None:
                evaluate(interp, frame, item.guard)
                narrowing.narrow(interp, frame, item.guard, True)
            return interp.block(frame, item.body)

        return run

    cases, decided = narrowing.cases(interp, frame, node, subject)
    if decided and len(cases) == 1:
        return case(cases[0])()
    arms: list[Callable[[], bool | None]] = [case(item) for item in cases]
    bodies = [item.body for item in cases]
    if not decided:
        arms.append(lambda: False)
        bodies.append([])
    doubts = [_doubt_beside(*bodies[:arm], *bodies[arm + 1 :]) for arm in range(len(arms))]
    return branch(interp, frame, node, arms, doubts)


def _delete(interp: Interpreter, frame: Frame, node: ast.Delete) -> bool:
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.env.names.pop(target.id, None)
        elif isinstance(target, ast.Attribute):
            obj = evaluate(interp, frame, target.value)
            attributes.delete_attribute(interp, frame, obj, expressions.text_of(target.value), target.attr, node)
        elif isinstance(target, ast.Subscript):
            container = evaluate(interp, frame, target.value)
            evaluate(interp, frame, target.slice)
            items.delete_item(interp, frame, container, expressions.text_of(target.value), node)
    return False


def _global(interp: Interpreter, frame: Frame, node: ast.Global) -> bool:
    frame.env.globals |= set(node.names)
    return False


def _nonlocal(interp: Interpreter, frame: Frame, node: ast.Nonlocal) -> bool:
    # Assignments to these names stay in this frame: what the outer scope sees afterwards is not known.
    frame.env.nonlocals |= set(node.names)
    for name in node.names:
        found = frame.env.parent.lookup(name) if frame.env.parent is not None else None
        if found is not None:
            touch(found[0])
            found[0].names[name] = UNKNOWN
    return False


def _function(interp: Interpreter, frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    if node.decorator_list and failures.is_marked(interp, frame, node):
        return False
    value = definitions.define_function(interp, frame, node)
    _note_anew(frame, node)
    frame.bind(node.name, value)
    return False


def _class(interp: Interpreter, frame: Frame, node: ast.ClassDef) -> bool:
    if node.decorator_list and failures.is_marked(interp, frame, node):
        return False
    value = definitions.define_class(interp, frame, node)
    _note_anew(frame, node)
    frame.bind(node.name, value)
    return False


def _note_anew(frame: Frame, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Note that a definition takes a name of the module that stood for another one."""
    if frame.env is frame.module.env and isinstance(frame.env.names.get(node.name), (ClassVal, FuncVal, Transformed)):
        frame.env.anew[node.name] = node


def _type_alias(interp: Interpreter, frame: Frame, node: ast.AST) -> bool:
    """``type Name[T] = ...``, which interpreters before 3.12 do not have."""
    name, value = getattr(node, "name", None), getattr(node, "value", None)
    if isinstance(name, ast.Name) and isinstance(value, ast.expr):
        frame.bind(name.id, TypeVal(value, frame.module, definitions.type_scope(frame, node)))
    return False


def _assert(interp: Interpreter, frame: Frame, node: ast.Assert) -> bool:
    expressions.condition(interp, frame, node.test)
    narrowing.narrow(interp, frame, node.test, True)
    premises.Doubts(frame, node.test, True).end(refused=True)
    return False


def _import(interp: Interpreter, frame: Frame, node: ast.Import | ast.ImportFrom) -> bool:
    imports.execute(interp, frame, node)
    return False


HANDLERS: dict[type[ast.stmt], Callable[..., bool]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _ann_assign,
    ast.AugAssign: _aug_assign,
    ast.Expr: _expr,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Break: _end,
    ast.Continue: _end,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.TryStar: _try,
    ast.Match: _match,
    ast.Delete: _delete,
    ast.Global: _global,
    ast.Nonlocal: _nonlocal,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Assert: _assert,
    ast.Import: _import,
    ast.ImportFrom: _import,
    Blank: blanks.execute,
}
if (type_alias := getattr(ast, "TypeAlias", None)) is not None:
    HANDLERS[type_alias] = _type_alias
