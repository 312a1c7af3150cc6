"""Functions of the project that draw from a key that they are given, and one key that two of them get (NNX519).

What a function draws from is read off its text: the parameters, and the names that it closes over, that it hands to
``jax.random`` as keys, itself or through functions that it calls, as they are when it begins.

Invariants: a key is followed by its name, as in :mod:`~nnx_lint.rules.randomness.keys`. What is drawn from a key and
from one that is split off it are not the same numbers, but two splits into as many keys are the same keys. Two calls of
one function share a key by mistake only if they are the same call, or if the one goes on with what the other returns:
else the same choices may be meant, as for an image and its mask.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal, Transformed, is_closure
from nnx_lint.model.classes import UserClass
from nnx_lint.model.events import Called
from nnx_lint.model.modules import Env
from nnx_lint.model.values import ClassVal, Obj, Unknown
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.bindings import bound_to
from nnx_lint.rules.callees import called_value, of_object, working
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    assigned_in,
    binds,
    calls_in,
    canonical_name,
    canonical_of,
    enclosing,
    follows,
    in_test,
    keyword_node,
    own_nodes,
    parameters_in,
    reads_of,
    resolved,
    statement_of,
    straight,
)
from nnx_lint.rules.randomness.aliases import key_name
from nnx_lint.rules.randomness.keys import (
    EACH_ROUND,
    SPLIT,
    TWICE,
    binder_of,
    bound_between,
    feeds_training,
    is_written_out,
    keys_made,
    repeated,
    takes_the_first,
    times_bound,
    trains,
)
from nnx_lint.rules.randomness.reuse import collected_in_rounds, consumes
from nnx_lint.rules.randomness.selected import apart, conditions
from nnx_lint.rules.repeating import COMPREHENSIONS
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import assigned_names, is_name, is_none, names_in
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.places import begin, end
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import rngs as rules
from nnx_rules.transforms import DIFFERENTIATING

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value

MAX_CALLS = 4
"""How many calls deep it is looked for a draw."""


DRAW = "draw"
"""How a key is used that numbers are drawn from; for one that is split it is the number of the new keys."""

Drawn = dict[str, frozenset[str]]
"""How a function uses keys, by the names that it has for them when it begins."""


class Use(NamedTuple):
    """A call that uses a key: the function that draws from it, of the project, or one of JAX by its name, and how."""

    module: Module
    call: ast.Call
    key: ast.expr
    drawing: object
    how: frozenset[str]


class Keys:
    """What draws from the keys of a function, by its scope, the name and what binds that last, and from what functions
    draw; distributions of other libraries are told apart by how the program calls them.
    """

    def __init__(self) -> None:
        self.uses: dict[tuple[int, str, int], list[Use]] = {}
        self.drawn: dict[int, Drawn] = {}
        self.losses: dict[int, set[str]] = {}
        """What functions hand to losses of which nothing is known, and whose names say that they are keys."""
        self.distributions: dict[str, object] = {}

    def drawn_from(self, func: FuncVal, depth: int = MAX_CALLS) -> Drawn:
        """The parameters, and the names of functions around it, that a function draws from."""
        known = self.drawn.get(id(func.node))
        if known is None:
            self.drawn[id(func.node)] = {}  # of a function that calls itself
            known = self.drawn[id(func.node)] = self._drawn_from(func, depth) if depth else {}
        return known

    def _drawn_from(self, func: FuncVal, depth: int) -> Drawn:
        env, found = func.env, dict[str, frozenset[str]]()
        if not isinstance(env, Env):
            return found
        own = None if is_closure(func) else {*syntax_parameters.names(func.node.args)}
        for call, names in _handing_on(func.node):
            if own is not None and own.isdisjoint(names):
                continue  # it hands on what the whole module knows
            key = call.args[0] if call.args else keyword_node(call, "key")
            called = resolved(env, call.func)
            how = used_by(func.module, canonical_name(called), call)
            if any(isinstance(getattr(each.option, "value", None), str) for each in conditions(func.module, call)):
                continue  # which of several kinds of numbers is drawn, who calls it says
            if how is not None:
                if isinstance(key, ast.Name) and key.id in names and how:
                    found[key.id] = found.get(key.id, how) | how
                continue
            called = called or of_object(func, call.func) or _of_class(env, call.func)
            given = _sampled_with(call) or _handed_to_sample(call) if called is None else None
            if given is not None and given.id in names:
                found[given.id] = found.get(given.id, frozenset()) | {DRAW}
                continue
            callee = function_of(called)
            keys = {name for name in names if KEY_LIKE.search(name)} if callee is None and _is_loss(call) else None
            if keys and canonical_name(called) is None:
                self.losses.setdefault(id(func.node), set()).update(keys)
            drawn = self.drawn_from(callee.func, depth - 1) if callee is not None else {}
            for parameter, given in handed(call, callee) if callee is not None and drawn else ():
                if parameter in drawn and given.id in names:
                    found[given.id] = found.get(given.id, drawn[parameter]) | drawn[parameter]
        return found


def _sampled_with(call: ast.Call) -> ast.Name | None:
    """The key that a distribution of another library draws with, ``distribution.sample(seed=key)``; a table may take a
    number for its seed.
    """
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "sample":
        return None
    given = (keyword_node(call, name) for name in ("key", "rng_key", "seed"))
    return next((node for node in given if isinstance(node, ast.Name) and KEY_LIKE.search(node.id)), None)


def _handed_to_sample(call: ast.Call) -> ast.Name | None:
    """The key that a policy or the like samples with, by position: ``policy.sample(observation, key)``. A generator of
    NumPy, which ``rng`` may be, gives other numbers each time.
    """
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "sample" or len(call.args) < 2:
        return None
    return next((node for node in call.args if isinstance(node, ast.Name) and node.id.endswith("key")), None)


KEY_LIKE = re.compile(r"key|rng|prng")


def _is_loss(call: ast.Call) -> bool:
    """Whether a call is of what its name says to be a loss, or of its gradient: a key that it gets is for a draw."""
    func = call.func.args[0] if isinstance(call.func, ast.Call) and call.func.args else call.func
    return "loss" in (last_name(func) or "")


def used_by(module: Module, name: str | None, call: ast.Call) -> frozenset[str] | None:
    """How a call of ``jax.random`` uses its key, nothing if that is not known; ``None`` for every other call."""
    if name is None or not name.startswith("jax.random."):
        return None
    if not consumes(name):
        return frozenset()
    if name != SPLIT:
        return frozenset({DRAW})
    number = keys_made(call)
    if number is not None and takes_the_first(module, call):
        return frozenset({str(number)})
    return frozenset({f"all of {id(call)}"}) if _is_certain(module, call) and _uses_all(module, call) else frozenset()


def _is_certain(module: Module, split: ast.Call) -> bool:
    """Whether each call of a function comes to a place: it is in no branch, and nothing returns before."""
    scope, here = enclosing(module, split, *FUNCTIONS), statement_of(module, split)
    body = scope.body if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    return here in straight(body)


def _uses_all(module: Module, split: ast.Call) -> bool:
    """Whether all keys that a key is split into are used, and not one of them in each round."""
    outer, around, *_ = [*ancestors(module, split), None, None]
    bound = bound_to(module, split)
    target = bound.target if bound is not None else None
    if isinstance(outer, ast.Tuple) and not isinstance(target, ast.Name):  # of what goes on together
        named = isinstance(around, ast.Assign) and all(isinstance(target, ast.Name) for target in around.targets)
        return named or isinstance(around, (ast.Call, ast.keyword))
    if isinstance(outer, (ast.Call, ast.keyword)):
        return not _picks(module, outer)
    scope = enclosing(module, split, *FUNCTIONS)
    if not isinstance(target, ast.Name) or scope is None or assigned_in(scope)[target.id] != 1:
        return False
    outers = [next(ancestors(module, read), None) for read in reads_of(scope, target.id)]
    if any(_goes_over(module, outer) for outer in outers):
        return True
    return bool(outers) and not any(_picks(module, outer) for outer in outers)


def _goes_over(module: Module, outer: ast.AST | None) -> bool:
    """Whether an expression takes the first keys, one in each round of a loop over numbers from zero on."""
    index = outer.slice if isinstance(outer, ast.Subscript) else None
    if not isinstance(index, ast.Name) or outer is None:
        return False
    for node in ancestors(module, outer):
        if isinstance(node, (*FUNCTIONS, ast.If, ast.IfExp)):
            return False  # which of the keys is taken may depend on an argument
        for each in node.generators if isinstance(node, COMPREHENSIONS) else [node]:
            if isinstance(each, (ast.For, ast.comprehension)) and is_name(each.target, index.id):
                counts = isinstance(each.iter, ast.Call) and is_name(each.iter.func, "range")
                return counts and isinstance(each.iter, ast.Call) and len(each.iter.args) == 1
    return False


def _picks(module: Module, outer: ast.AST | None) -> bool:
    """Whether an expression takes one of the keys that it is given, or hands all of them out."""
    if isinstance(outer, ast.Subscript):
        return not isinstance(outer.slice, ast.Constant)
    name = canonical_of(module.env, outer.func) if isinstance(outer, ast.Call) else None
    return name in PICKING_KEYS or not isinstance(outer, (ast.Call, ast.keyword, ast.For, ast.comprehension))


PICKING_KEYS = frozenset({"jax.numpy.take", "jax.lax.dynamic_index_in_dim", "jax.lax.dynamic_slice_in_dim"})
"""Functions that take some elements of an array."""


@remembered
def _handing_on(func: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[tuple[ast.Call, tuple[str, ...]]]:
    """The calls in a function that are given something that it knows when it begins, and the names of that."""
    calls: list[tuple[ast.Call, set[str]]] = []
    for call in calls_in(func):
        names = {value.id for value in call.args if isinstance(value, ast.Name)}
        names.update(item.value.id for item in call.keywords if isinstance(item.value, ast.Name))
        if names:
            calls.append((call, names))
    if not calls:
        return []
    bound = assigned_in(func).keys() & set[str]().union(*(names for _, names in calls))
    firsts = _first_bound(walk(func), bound) if bound else {}
    own = set(syntax_parameters.names(func.args))
    inner = {name for name, count in parameters_in(func).items() if count != (name in own)}
    """What functions in it have parameters of these names for, too."""
    found: list[tuple[ast.Call, tuple[str, ...]]] = []
    for call, names in calls:
        if not inner.isdisjoint(names) and call not in own_nodes(func):
            names -= inner
        known = tuple(name for name in names if name not in firsts or _is_before(call, name, own, firsts[name]))
        if known:
            found.append((call, known))
    return found


def _first_bound(nodes: list[ast.AST], names: set[str]) -> dict[str, ast.AST]:
    """The statements that bind names first, or the names themselves where none of those does that are followed."""
    firsts: dict[str, ast.AST] = {}
    for node in nodes:
        if isinstance(node, ast.Name):
            parts: list[ast.AST] = [node]
        elif isinstance(node, ast.Assign):
            parts = [part for target in node.targets for part in walk(target)]
        else:
            continue
        for part in parts:
            if isinstance(part, ast.Name) and part.id in names and not isinstance(part.ctx, ast.Load):
                first = firsts.get(part.id)
                if first is None or begin(node) < begin(first):
                    firsts[part.id] = node
    return firsts


def _is_before(call: ast.Call, name: str, own: set[str], first: ast.AST) -> bool:
    """Whether a call gets what a parameter was given, and not what a statement binds its name to later on."""
    if name not in own or not isinstance(first, ast.Assign):
        return False
    return begin(call) < begin(first) or any(call is part for part in walk(first.value))


def _of_class(env: Env, node: ast.expr) -> Value | None:
    """The static method that an expression names."""
    named = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    found = called_value(env, node) if named else None
    return found if isinstance(found, FuncVal) and found.is_static else None


class Callee(NamedTuple):
    """The function of the project that a call runs, and how many of its first parameters have been given before."""

    func: FuncVal
    given: int


def function_of(value: Value | None) -> Callee | None:
    """The function of the project that runs when a value is called; of a class it is the constructor."""
    given = 0
    while isinstance(value, (Transformed, BoundMethod, PartialVal, Obj, ClassVal)):
        given += len(value.args) if isinstance(value, PartialVal) else not isinstance(value, Transformed)
        if isinstance(value, (Obj, ClassVal)):
            name = "__call__" if isinstance(value, Obj) else "__init__"
            found = value.cls.find(name) if isinstance(value.cls, UserClass) else None
            value = found[1] if found is not None else None
        else:
            value = value.func
    return Callee(value, given) if isinstance(value, FuncVal) and value.wraps is None else None


def handed(call: ast.Call, callee: Callee) -> list[tuple[str, ast.Name]]:
    """The names that a call hands to a function, with the parameters that they are given for."""
    return [(parameter, node) for parameter, node in given_for(call, callee) if isinstance(node, ast.Name)]


def given_for(call: ast.Call, callee: Callee) -> list[tuple[str, ast.expr]]:
    """What a call hands to a function, with the parameters that it is given for."""
    partial = call.func if isinstance(call.func, ast.Call) and len(call.func.args) - 1 == callee.given else None
    before = partial.args[1:] if partial is not None else []  # partial(f, x)(y)
    values, keywords = [*before, *call.args], [*(partial.keywords if partial is not None else ()), *call.keywords]
    if any(isinstance(item, ast.Starred) for item in values):
        return []
    parameters = syntax_parameters.positional_names(callee.func.node.args)[callee.given - len(before) :]
    pairs = [*zip(parameters, values, strict=False)]
    pairs += [(item.arg, item.value) for item in keywords if item.arg is not None]
    return pairs


@judges_calls(rules.KEY_REUSED, FuncVal, Transformed, BoundMethod, PartialVal, Obj)
def key_of_two_calls(event: Called, report: Reporter) -> None:
    """Two functions of the project draw from one key, or one does so twice for the same arguments."""
    call, frame, callee = event.node, event.frame, function_of(event.callee)
    if callee is None or not isinstance(call, ast.Call) or in_test(frame):
        return
    func, known = callee.func, report.memory(Keys)
    drawn, losses = known.drawn_from(func), known.losses.get(id(func.node), ())
    if not drawn and not losses:
        return
    scope = _scope(frame)
    pairs = given_for(call, callee)
    handed_on = [(parameter, node) for parameter, node in pairs if key_name(scope, node) is not None]
    keys: list[tuple[ast.expr, frozenset[str]]]
    keys = [(node, drawn[parameter]) for parameter, node in handed_on if parameter in drawn]
    if keys and _is_spared(func, [parameter for parameter, _ in handed_on if parameter in drawn], pairs):
        return
    if _is_inside(frame, func):  # what it closes over, where it reads that
        reads = ((reads_of(func.node, name), how) for name, how in drawn.items() if not binds(func.node, name))
        keys += [(found[0], how) for found, how in reads if found]
    for node, how in keys:
        _used(frame, Use(frame.module, call, node, working(func).node, how), report)
        _in_rounds(event, call, node, report)
    for parameter, node in handed_on:
        if parameter in losses and parameter not in drawn:
            _in_rounds(event, call, node, report)


def _is_spared(func: FuncVal, keys: list[str], pairs: list[tuple[str, ast.expr]]) -> bool:
    """Whether a call gives a function what it would draw otherwise: ``if drawn is None: drawn = draw(key)``."""
    given = {parameter for parameter, node in pairs if not is_none(node)}
    given &= {name for name, default in syntax_parameters.defaults(func.node.args).items() if is_none(default)}
    return bool(given) and all(
        any(_asks_for_missing(item, given) for item in ancestors(func.module, read))
        for key in keys
        for read in reads_of(func.node, key)
    )


def _asks_for_missing(node: ast.AST, given: set[str]) -> bool:
    """Whether a condition asks for one of these parameters to be ``None``, or not to be."""
    test = node.test if isinstance(node, (ast.If, ast.IfExp)) else None
    asks = isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id in given
    return asks and isinstance(test, ast.Compare) and is_none(test.comparators[0])


def _in_rounds(event: Called, call: ast.Call, node: ast.expr, report: Reporter) -> None:
    """Report a key that a call draws from in each round of a loop that needs other numbers each time."""
    frame = event.frame
    scope = _scope(frame)
    name = key_name(scope, node)
    if name is None or not repeated(frame.module, call, name) or not binds(scope, name):
        return
    if not _stands_in(frame, call):
        return
    used = trains(frame, call) or _differentiates(event.callee) or feeds_training(frame, call)
    if used or collects_the_same(frame, call):
        report(frame.module, node, name=ast.unparse(node), again=EACH_ROUND)


@judges_calls(rules.KEY_REUSED, ".sample")
def key_of_distribution(event: Called, report: Reporter) -> None:
    """A draw of a distribution of another library, beside other draws, or in each round of a loop."""
    call = event.node
    node = _sampled_with(call) if isinstance(call, ast.Call) and isinstance(event.callee, Unknown) else None
    if node is None or not isinstance(call, ast.Call) or in_test(event.frame):
        return
    drawing = report.memory(Keys).distributions.setdefault(ast.unparse(call.func), object())
    _used(event.frame, Use(event.frame.module, call, node, drawing, frozenset({DRAW})), report)
    _in_rounds(event, call, node, report)


@judges_calls(rules.KEY_REUSED, "jax.random.*")
def key_of_draw_and_call(event: Called, report: Reporter) -> None:
    """A draw of the function itself, beside that of a function that it calls."""
    call = event.node
    name = canonical_of(event.frame.env, call.func) if isinstance(call, ast.Call) else None
    node = (call.args[0] if call.args else keyword_node(call, "key")) if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call) or node is None or in_test(event.frame):
        return
    how = used_by(event.frame.module, name, call)
    if how:
        _used(event.frame, Use(event.frame.module, call, node, name, how), report)


def _scope(frame: Frame) -> ast.AST:
    return frame.func.node if frame.func is not None else frame.module.tree


def _is_inside(frame: Frame, func: FuncVal) -> bool:
    """Whether a function is defined in the one that is running: it closes over names of that."""
    if func.module is not frame.module or frame.func is None or not is_closure(func):
        return False
    return enclosing(func.module, func.node, *FUNCTIONS) is frame.func.node


def collects_the_same(frame: Frame, call: ast.expr) -> bool:
    """Whether all that a loop does is to collect what a call returns, and nothing that it is given is another each
    time.
    """
    bound = collected_in_rounds(frame.module, call)
    return bound is not None and bound.isdisjoint(names_in(call)) and not _compares(frame, _scope(frame), alike=True)


def _stands_in(frame: Frame, call: ast.Call) -> bool:
    """Whether a call stands in the running function itself."""
    return enclosing(frame.module, call, *FUNCTIONS, ast.Module) is _scope(frame)


def _differentiates(callee: Value) -> bool:
    return isinstance(callee, Transformed) and callee.applied.row.name in DIFFERENTIATING


def _used(frame: Frame, use: Use, report: Reporter) -> None:
    scope = _scope(frame)
    name = key_name(scope, use.key)
    binder = binder_of(frame.module, scope, name) if name is not None else None
    if name is None or binder is None or not _stands_in(frame, use.call):
        return
    here = statement_of(frame.module, use.call)
    if here is None:
        return
    others = report.memory(Keys).uses.setdefault((id(scope), name, times_bound(scope, name, here)), [])
    if any(each.call is use.call for each in others):
        return
    for other in others:
        first, last = sorted((other, use), key=lambda each: end(each.call))  # of a call in another one, that is first
        if _is_second(frame, binder, first, last):
            where = (related(last.module, first.key, "the first use"),)
            report(last.module, last.key, name=ast.unparse(last.key), again=TWICE, related=where)
    others.append(use)


def _is_second(frame: Frame, binder: ast.AST, first: Use, last: Use) -> bool:
    """Whether two uses of a key give the same numbers, or such as depend on each other."""
    module, scope = frame.module, _scope(frame)
    name = key_name(scope, first.key) or ""
    if first.how.isdisjoint(last.how) or (isinstance(first.drawing, str) and isinstance(last.drawing, str)):
        return False
    alike = first.drawing is last.drawing
    if _compares(frame, scope, alike=alike) or (alike and not _is_again(module, scope, first.call, last.call)):
        return False
    here, there = statement_of(module, first.call), statement_of(module, last.call)
    if here is None or there is None or is_written_out(frame, binder, name) or not follows(module, here, there):
        return False
    return not apart(module, frame.env, first.call, last.call) and not bound_between(scope, name, here, there)


ASSIGNING = (ast.Assign, ast.AnnAssign, ast.AugAssign)


def _is_again(module: Module, scope: ast.AST, first: ast.Call, last: ast.Call) -> bool:
    """Whether a call is another one again, or is given what that returned, or what was made of it."""
    if any(first is part for part in walk(last)):
        return True
    if ast.dump(first) == ast.dump(last) and not _is_changed_between(scope, first, last):
        return True
    here = statement_of(module, first)
    made = assigned_names([here]) if isinstance(here, ASSIGNING) else set[str]()
    between = (node for node in own_nodes(scope) if isinstance(node, ASSIGNING))
    for statement in sorted(between, key=begin) if made else ():
        after = begin(first) < begin(statement) < begin(last)
        if after and statement.value is not None and not made.isdisjoint(names_in(statement.value)):
            made |= assigned_names([statement])
    given = (*last.args, *(item.value for item in last.keywords))
    return any(not made.isdisjoint(names_in(item)) for item in given)


def _is_changed_between(scope: ast.AST, first: ast.Call, last: ast.Call) -> bool:
    """Whether something else gets an argument of two calls in between, ``optimizer.update(model, grads)``: what they
    return is looked at side by side, before and after.
    """
    given = {name for item in (*first.args, *(item.value for item in first.keywords)) for name in names_in(item)}
    between = (call for call in calls_in(scope) if end(first) < begin(call) and end(call) < begin(last))
    return any(isinstance(call.func, ast.Attribute) and not given.isdisjoint(names_in(call)) for call in between)


COMPARING = frozenset({"jax.numpy.allclose", "jax.numpy.array_equal", "numpy.allclose", "numpy.array_equal"})


def _compares(frame: Frame, scope: ast.AST, *, alike: bool) -> bool:
    """Whether a function compares results: it may call two functions, or one twice, to see that both do the same."""
    names = (canonical_of(frame.env, call.func) or "" for call in calls_in(scope))
    compared = any(name in COMPARING or name.startswith("numpy.testing.") for name in names)
    return compared or (alike and any(isinstance(node, ast.Assert) for node in own_nodes(scope)))
