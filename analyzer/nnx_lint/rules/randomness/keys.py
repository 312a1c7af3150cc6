"""One key for several draws (NNX519): twice in a row, again in each round of a loop, or of a function that a transform
runs as a loop, and in a step of training that a loop calls. Two calls of functions of the project that draw from one
key are in :mod:`~nnx_lint.rules.randomness.drawing`.

Invariants: a key is followed by its names, within one function; between two uses nothing may bind the name. Draws and
splits are told apart, because what is drawn from a key and from one that is split off it are not the same numbers. One
key for a few known things, such as the models of a comparison, may be meant, and so may one in a test.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import FuncVal, LibraryFunction, Transformed
from nnx_lint.model.events import Called
from nnx_lint.model.loops import STEPPING
from nnx_lint.model.modules import Env
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.bindings import constant_of, target_of
from nnx_lint.rules.callees import called_value
from nnx_lint.rules.program import (
    FUNCTIONS,
    STATEMENT_LOOPS,
    ancestors,
    assigned_in,
    binds,
    calls_in,
    canonical_of,
    enclosing,
    follows,
    given,
    in_test,
    keyword_node,
    own_nodes,
    reads_of,
    resolved,
    results_of,
    scopes_around,
    statement_of,
)
from nnx_lint.rules.randomness.aliases import key_name
from nnx_lint.rules.randomness.arguments import CONSTANT, needs_key
from nnx_lint.rules.randomness.fixed import is_projection
from nnx_lint.rules.randomness.reuse import KEY_MAKERS, called_for, consumes
from nnx_lint.rules.randomness.selected import apart
from nnx_lint.rules.repeating import argument, frame_around, loop_around
from nnx_lint.syntax.binding import assigned_names, names_in
from nnx_lint.syntax.dotted import last_name, root_of
from nnx_lint.syntax.places import begin, end
from nnx_lint.syntax.walk import dumped, remembered, walk
from nnx_rules.rules import rngs as rules
from nnx_rules.transforms import DIFFERENTIATING

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value

SPLIT, FOLD, DRAW = "jax.random.split", "jax.random.fold_in", "jax.random.normal"

INITIALIZERS = ("jax.nn.initializers.", "nnx.initializers.")
"""Where the functions are that make initializers."""

TWICE = "a second time here: the numbers are those of the first use, or follow from them"
EACH_ROUND = "again in each round of the loop: every round gets the same numbers"
"""How a key is used again, for the message."""

KEPT_ON_PURPOSE = re.compile(r"(?:^|_)(?:eval|fixed|test|val|vis)_")
"""Names of keys for what is to be looked at in each round with the same numbers: ``eval_key``, ``fixed_rng``."""


@judges_calls(rules.KEY_REUSED, LibraryFunction, "jax.random.*", when=needs_key)
def key_reused(event: Called, report: Reporter) -> None:
    module, env, call = event.frame.module, event.frame.env, event.node
    node = given(event).node_of(0, "key")
    uses = _taking(env, call) if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call) or not consumes(uses) or in_test(event.frame):
        return
    scope = enclosing(module, call, *FUNCTIONS, ast.Module)
    name = key_name(scope, node) if scope is not None else None
    if scope is None or node is None or name is None:
        return
    say = partial(report, module, node, name=ast.unparse(node))
    binder = binder_of(module, scope, name)
    if binder is not scope and runs_in_rounds(event.frame) and event.frame.func is not None:
        if event.frame.func.node is scope:
            say(again=EACH_ROUND)
        return
    if binder is None:
        return
    if repeated(module, call, name):
        if (uses != SPLIT or takes_the_first(module, call)) and not KEPT_ON_PURPOSE.search(name):
            say(again=EACH_ROUND)
        return
    here = statement_of(module, call)
    if here is None or is_written_out(event.frame, binder, name):
        return
    for other in _earlier(scope, name, node, here):
        place = statement_of(module, other)
        if other is call or place is None or bound_between(scope, name, place, here):
            continue
        used = _taking(env, other)
        forgotten = _forgotten(module, scope, other) if used == SPLIT != uses else None
        left = _left_over(env, scope, name) if (used == SPLIT) != (uses == SPLIT) and forgotten is None else None
        if not consumes(used) or ((used == SPLIT) != (uses == SPLIT) and forgotten is None and left is None):
            continue
        if in_unison(other, call, used, uses) or is_said_twice(scope, place, here):
            continue
        if are_compared(scope, (place, other), (here, call)):
            continue
        same = enclosing(module, other, *FUNCTIONS, ast.Module) is scope
        if same and follows(module, place, here) and not apart(module, env, other, call):
            again = f"here after it was split, and `{forgotten}` of the split is not" if forgotten else TWICE
            again = f"a second time here, and `{left}`, which was made with it, is not" if left else again
            say(again=again, related=(related(module, other, "the first use"),))
            return


def _taking(env: Env, call: ast.Call) -> str | None:
    """The canonical name of a function of `jax.random` that a call calls; an initializer draws as one of them does."""
    value = resolved(env, call.func)
    if isinstance(call.func, ast.Call):
        maker = canonical_of(env, call.func.func) or ""
    else:
        maker = value.maker if isinstance(value, LibraryFunction) else ""
    drawn = maker.rpartition(".")[2] not in CONSTANT and maker.startswith(INITIALIZERS)
    return DRAW if drawn else canonical_of(env, call.func)


def is_said_twice(scope: ast.AST, first: ast.stmt, second: ast.stmt) -> bool:
    """Whether a statement stands there twice that binds something, and nothing reads that between the two."""
    bound = assigned_names([first])
    reads = (read for name in bound for read in reads_of(scope, name))
    return (
        first is not second
        and dumped(first) == dumped(second)
        and bool(bound)
        and not any(end(first) < begin(read) < begin(second) for read in reads)
    )


def are_compared(scope: ast.AST, one: tuple[ast.stmt, ast.Call], other: tuple[ast.stmt, ast.Call]) -> bool:
    """Whether a draw is made again to see that its numbers are the same: the function compares the two."""
    if dumped(one[1]) != dumped(other[1]):
        return False
    names, others = assigned_names([one[0]]), assigned_names([other[0]])
    if not names or not others or not names.isdisjoint(others):
        return False
    nodes = list(own_nodes(scope))
    refused = (node.operand for node in nodes if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
    unequal = {part for operand in refused for part in walk(operand)}
    held = (set(names_in(node)) for node in nodes if node not in unequal and _compares(node))
    return any(not each.isdisjoint(names) and not each.isdisjoint(others) for each in held)


def _compares(node: ast.AST) -> bool:
    """Whether an expression asks whether arrays are the same."""
    if isinstance(node, ast.Compare):
        return all(isinstance(op, ast.Eq) for op in node.ops)
    return isinstance(node, ast.Call) and bool(COMPARING.match(last_name(node.func)))


COMPARING = re.compile(r"assert_|allclose|array_equal|isclose")
"""How the functions are called that compare arrays, whatever library they are of."""


def binder_of(module: Module, scope: ast.AST, name: str) -> ast.AST | None:
    """The function that binds a name which another one reads, itself or one around it; the module for its own code."""
    if binds(scope, name):
        return scope
    around = (outer for outer in scopes_around(module, scope) if isinstance(outer, FUNCTIONS))
    return next((outer for outer in around if binds(outer, name)), None)


def _forgotten(module: Module, scope: ast.AST, split: ast.Call) -> str | None:
    """A name for one of the keys that another one is split into which nothing reads: it may be what is meant."""
    target = target_of(module, split)
    names = [item.id for item in target.elts if isinstance(item, ast.Name)] if isinstance(target, ast.Tuple) else []
    unread = (name for name in names if not name.startswith("_") and not reads_of(scope, name))
    return next(unread, None)


def _left_over(env: Env, scope: ast.AST, name: str) -> str | None:
    """A name for another one of the keys that one key was split into, which nothing reads."""
    for node in own_nodes(scope) if assigned_in(scope)[name] == 1 else ():
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        names = [item.id for item in target.elts if isinstance(item, ast.Name)] if isinstance(target, ast.Tuple) else []
        if name in names and isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            split = canonical_of(env, node.value.func) == SPLIT
            unread = (each for each in names if not each.startswith("_") and not reads_of(scope, each))
            return next(unread, None) if split else None
    return None


PICKING = frozenset({"jax.random.choice", "jax.random.permutation"})
"""Functions that pick elements of an array."""


def in_unison(one: ast.Call, other: ast.Call, first: str | None, second: str | None) -> bool:
    """Whether two calls pick from different arrays in the same way, such as images and their labels."""
    if first != second or first not in PICKING:
        return False
    (_, *left), (_, *right) = ([*map(ast.dump, call.args)] or [""] for call in (one, other))
    options = [sorted(map(ast.dump, call.keywords)) for call in (one, other)]
    return bool(left and right) and left[0] != right[0] and left[1:] == right[1:] and options[0] == options[1]


def bound_between(scope: ast.AST, name: str, first: ast.stmt, last: ast.stmt) -> bool:
    """Whether a name may be bound anew from one statement on, that one included, and before another one."""
    return times_bound(scope, name, first) < times_bound(scope, name, last)


def times_bound(scope: ast.AST, name: str, before: ast.stmt) -> int:
    """How often a function or module binds a name in the text before a statement: where that is another number, the
    name may be another key.
    """
    return bisect_left(_stores(scope).get(name, []), begin(before))


def _earlier(scope: ast.AST, name: str, key: ast.expr, here: ast.stmt) -> list[ast.Call]:
    """The calls that may take a key before a place, by its name, and after what bound that last."""
    uses, times = _by_key(scope).get(name, []), times_bound(scope, name, here)
    line, column = _stores(scope)[name][times - 1] if times else (0, 0)
    first = bisect_left(uses, (line, column + 1), key=itemgetter(0))
    last = bisect_left(uses, begin(key), key=itemgetter(0))
    return [call for _, _, call in sorted(uses[first:last], key=itemgetter(1))]


@remembered
def _by_key(scope: ast.AST) -> dict[str, list[tuple[tuple[int, int], int, ast.Call]]]:
    """The calls in a function or module by the name of the key that they may take, in the order of the text: where each
    stands, and its number among all calls.
    """
    found: dict[str, list[tuple[tuple[int, int], int, ast.Call]]] = {}
    for number, call in enumerate(calls_in(scope)):
        name = key_name(scope, call.args[0] if call.args else keyword_node(call, "key"))
        if name is not None:
            found.setdefault(name, []).append((begin(call), number, call))
    return {name: sorted(uses) for name, uses in found.items()}


@remembered
def _stores(scope: ast.AST) -> dict[str, list[tuple[int, int]]]:
    """Where a function or module binds names or deletes them, in the order of the text."""
    found: dict[str, list[tuple[int, int]]] = {}
    for node in own_nodes(scope):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.setdefault(node.id, []).append(begin(node))
    return {name: sorted(places) for name, places in found.items()}


def is_written_out(frame: Frame, scope: ast.AST, name: str) -> bool:
    """Whether a key is made from a number that the program says: a few arrays to try something are made of it."""
    made, env = called_for(scope).get(name), frame.env
    maker = called_value(env, made.func) if made is not None and assigned_in(scope)[name] == 1 else None
    if isinstance(maker, FuncVal) and isinstance(maker.env, Env):
        made, env = next((each for each in results_of(maker.node) if isinstance(each, ast.Call)), None), maker.env
    if made is None or assigned_in(scope)[name] != 1 or canonical_of(env, made.func) not in KEY_MAKERS:
        return False
    return all(isinstance(item, ast.Constant) for item in made.args)


# -- loops -------------------------------------------------------------------------------------------------------------


def repeated(module: Module, call: ast.AST, name: str) -> bool:
    """Whether a loop around a place runs it in each round with the key that it has before the loop, or with one that
    each round makes of the same key and the same number.
    """
    return loop_around(module, call, name) is not None or _folds_in_the_same(module, call, name)


def _folds_in_the_same(module: Module, call: ast.AST, name: str) -> bool:
    """Whether each round of a loop folds a number into a key, and binds neither: ``fold_in(key, epoch)`` per batch."""
    scope = enclosing(module, call, *FUNCTIONS, ast.Module)
    made = called_for(scope).get(name) if scope is not None and assigned_in(scope)[name] == 1 else None
    if made is None or canonical_of(module.env, made.func) != FOLD:
        return False
    loop = _loop_of(module, call)
    return loop is not None and loop is _loop_of(module, made) and _fold_of_rounds(module, made) is loop


def _fold_of_rounds(module: Module, made: ast.Call) -> ast.AST | None:
    """The innermost loop around a place that folds a number into a key, where its rounds bind neither."""
    named = [item.id for item in made.args if isinstance(item, ast.Name)]
    loops = {loop_around(module, made, item) for item in named}
    plain = not made.keywords and all(isinstance(item, (ast.Name, ast.Constant)) for item in made.args)
    return loops.pop() if plain and len(loops) == 1 else None


@judges_calls(rules.KEY_REUSED, "jax.random.*", when=needs_key)
def folded_for_draw(event: Called, report: Reporter) -> None:
    """Each round of a loop draws from ``fold_in(key, number)``, and binds neither the key nor the number."""
    frame, call, made = event.frame, event.node, given(event).node_of(0, "key")
    if not isinstance(call, ast.Call) or not isinstance(made, ast.Call) or in_test(frame):
        return
    folds = canonical_of(frame.env, made.func) == FOLD and _fold_of_rounds(frame.module, made) is not None
    if folds and _makes_the_same(frame.module, frame.env, call):
        report(frame.module, made, name=ast.unparse(made), again=EACH_ROUND)


def keys_made(split: ast.Call) -> int | None:
    """How many keys a call of ``jax.random.split`` makes, where a literal says so, or nothing does: then two."""
    if any(isinstance(item, ast.Starred) for item in split.args) or any(item.arg is None for item in split.keywords):
        return None
    given = split.args[1] if len(split.args) > 1 else keyword_node(split, "num")
    number = given.value if isinstance(given, ast.Constant) else 2 if given is None else None
    return number if type(number) is int else None


def takes_the_first(module: Module, split: ast.Call) -> bool:
    """Whether each round takes the same ones of the keys that a key is split into, and not one for itself."""
    outer = next(ancestors(module, split), None)
    if isinstance(outer, ast.Assign):
        target, scope = outer.targets[0], enclosing(module, split, *FUNCTIONS, ast.Module)
        named = isinstance(target, ast.Name) and scope is not None and assigned_in(scope)[target.id] == 1
        reads = reads_of(scope, target.id) if named and isinstance(target, ast.Name) and scope is not None else []
        each = bool(reads) and all(_is_taken(next(ancestors(module, read), None)) for read in reads)
        return each or isinstance(target, (ast.Tuple, ast.List))
    return _is_taken(outer)


def _is_taken(outer: ast.AST | None) -> bool:
    """Whether an expression takes one element, always the same."""
    return isinstance(outer, ast.Subscript) and isinstance(outer.slice, ast.Constant)


def runs_in_rounds(frame: Frame) -> bool:
    """Whether the function of a frame runs in rounds under a transform."""
    running = frame.scope[-1] if frame.scope else None
    return running is not None and running.row.name in STEPPING and running.frame is frame


# -- steps of training -------------------------------------------------------------------------------------------------


@judges_calls(rules.KEY_REUSED, "jax.random.*", "nnx.Rngs")
def key_of_step(event: Called, report: Reporter) -> None:
    """A step of training that a loop calls with one key, or that reads one of its module, of which a function in it
    makes numbers or streams.
    """
    call, frame = event.node, event.frame
    if not isinstance(call, ast.Call) or not _makes_the_same(frame.module, frame.env, call):
        return
    streams = event.subject == "nnx.Rngs"  # each of which may get a key
    named = [*call.args[:1], *(item.value for item in call.keywords if streams or item.arg == "key")]
    for key in (item for item in named if isinstance(item, ast.Name)):
        found = _handed_in_loop(frame, key.id)
        if found is None and _is_of_module(frame, key) and _is_in_step(frame) and not is_projection(frame, call):
            found = frame, key
        if found is not None and not in_test(found[0]):
            report(found[0].module, found[1], name=found[1].id, again=EACH_ROUND)


def _makes_the_same(module: Module, env: Env, call: ast.Call) -> bool:
    """Whether a call makes the same numbers, streams or keys of one key each time."""
    name = canonical_of(env, call.func)
    return name == "nnx.Rngs" or (consumes(name) and (name != SPLIT or takes_the_first(module, call)))


def _handed_in_loop(frame: Frame, name: str) -> tuple[Frame, ast.Name] | None:
    """Where a loop hands over, again and again, what a function here knows as a parameter of its own or around it."""
    differentiated = any(scope.row.name in DIFFERENTIATING for scope in frame.scope)
    inner: Frame | None = frame
    while inner is not None and inner.func is not None:
        func = inner.func.node
        if not binds(func, name):
            inner = frame_around(inner)
            continue
        given = argument(inner, name) if not assigned_in(func)[name] else None
        call, caller = inner.call, inner.caller
        if not isinstance(given, ast.Name) or not isinstance(call, ast.Call) or caller is None:
            return None
        if repeated(caller.module, call, given.id):
            own = binds(caller.func.node if caller.func is not None else caller.module.tree, given.id)
            return (caller, given) if own and (differentiated or trains(caller, call)) else None
        inner, name = caller, given.id
    return None


def _is_of_module(frame: Frame, key: ast.Name) -> bool:
    """Whether a function reads a key that its module makes once, and that nothing replaces."""
    module, made = frame.module, constant_of(frame.module, key)
    if not isinstance(made, ast.Call) or enclosing(module, key, *FUNCTIONS) is None:
        return False
    is_made_once = enclosing(module, made, *FUNCTIONS, *STATEMENT_LOOPS) is None
    return is_made_once and canonical_of(module.env, made.func) in KEY_MAKERS


def _is_in_step(frame: Frame) -> bool:
    """Whether a function runs in a step of training that a loop calls."""
    calls = ((each.caller, each.call) for each in frame.outwards())
    return any(
        isinstance(call, ast.Call)
        and caller is not None
        and loop_around(caller.module, call, "") is not None
        and trains(caller, call)
        for caller, call in calls
    )


def _is_optimizer(value: Value | None) -> bool:
    """Whether a value is an optimizer, or an object that has one."""
    if not isinstance(value, Obj) or value.cls.derives_from("nnx.Optimizer"):
        return isinstance(value, Obj)
    held = (attribute_of(value, name) for name in attribute_names(value))
    parts = [attr.value for attr in held if attr is not None]
    return any(isinstance(item, Obj) and item.cls.derives_from("nnx.Optimizer") for item in parts)


def trains(caller: Frame, call: ast.expr) -> bool:
    """Whether a call of a loop is a step of training: it gets an optimizer, or what came out of the round before."""
    if not isinstance(call, ast.Call):
        return False
    if _optimizers_given(caller, call):
        return True
    made, given = _made_in_round(caller.module, call), [*call.args, *(item.value for item in call.keywords)]
    return any(not made.isdisjoint(names_in(item)) for item in given)


def _optimizers_given(caller: Frame, call: ast.Call) -> set[str | None]:
    """The names of the optimizers, or what has one, that a call hands over: what it gives, or what the function asks
    for, says so.
    """
    given = [*call.args, *(item.value for item in call.keywords)]
    given = [item.value if isinstance(item, ast.Starred) else item for item in given]
    found = {root_of(item) for item in given if _is_optimizer(resolved(caller.env, item))}
    func = resolved(caller.env, call.func)
    func = func.func if isinstance(func, Transformed) else func
    if isinstance(func, FuncVal) and func.cls is None:
        asked = zip(func.node.args.args, call.args, strict=False)
        found |= {root_of(item) for parameter, item in asked if last_name(parameter.annotation) == "Optimizer"}
    return found


def feeds_training(caller: Frame, call: ast.expr) -> bool:
    """Whether a loop hands what a call returns, or what it goes through, to a step of training, of something that all
    its rounds train.
    """
    loop = _loop_of(caller.module, call)
    made = _made_in_round(caller.module, call)
    anew = assigned_names([loop]) if loop is not None else set[str]()
    outers = {*ancestors(caller.module, call)}
    for step in calls_in(loop) if loop is not None else ():
        given = [*step.args, *(item.value for item in step.keywords)]
        compiled = step in outers and isinstance(resolved(caller.env, step.func), Transformed)
        if not compiled and made.isdisjoint(name for item in given for name in names_in(item)):
            continue
        if _optimizers_given(caller, step) - anew:
            return True
    return False


def _loop_of(module: Module, call: ast.AST) -> ast.stmt | None:
    return next((item for item in ancestors(module, call) if isinstance(item, STATEMENT_LOOPS)), None)


def _made_in_round(module: Module, call: ast.expr) -> set[str]:
    """The names that a round of a loop binds to what a call returns, and to what is made of that."""
    here, loop = statement_of(module, call), _loop_of(module, call)
    made = {*names_in(here.target)} if isinstance(here, ast.For) else _targets_of(here)
    body = loop.body if isinstance(loop, STATEMENT_LOOPS) else []
    for statement in body * 2:  # what the end of one round makes goes into the next one
        read = {item.id for item in walk(statement) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load)}
        if not made.isdisjoint(read):
            made |= _targets_of(statement)
            rounds = (part for part in walk(statement) if isinstance(part, (ast.For, ast.comprehension)))
            made |= {
                name for each in rounds if not made.isdisjoint(names_in(each.iter)) for name in names_in(each.target)
            }
    return made


def _targets_of(statement: ast.stmt | None) -> set[str]:
    """The names that an assignment binds, and not those of comprehensions in what it assigns."""
    targets: list[ast.expr] = statement.targets if isinstance(statement, ast.Assign) else []
    targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
    parts = (part for target in targets for part in walk(target))
    return {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
