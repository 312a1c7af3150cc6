"""The same random numbers twice: one seed for several layers (NNX518, NNX529), a key that is read off a stream
(NNX530), one ``nnx.Rngs`` for all calls of a function (NNX524) or a new one with the same seed for each (NNX531).
Keys that draws share are in :mod:`~nnx_lint.rules.randomness.keys`, those that objects keep in
:mod:`~nnx_lint.rules.randomness.kept`.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import LibClass
from nnx_lint.model.events import Called, Constructed
from nnx_lint.model.expressions import text_of
from nnx_lint.model.uses import RNGS
from nnx_lint.model.values import Const, Ext, Obj, ParameterNumber, ParameterVal, Unknown, Value
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.bindings import bound_to, first_values, given_to, pairs_of, value_of
from nnx_lint.rules.edits import insert_before, replace, unsafe
from nnx_lint.rules.program import (
    FUNCTIONS,
    LOOPS,
    ancestors,
    as_method,
    assigned_in,
    binds,
    called_as,
    calls_in,
    canonical_of,
    enclosing,
    follows,
    given,
    in_test,
    own_nodes,
    parameters_in,
    reads_of,
    resolved,
    scopes_around,
    statement_of,
    straight,
)
from nnx_lint.rules.randomness.arguments import MAKING, constructed, needs_key
from nnx_lint.rules.randomness.fixed import draws_alone, is_projection, is_said, is_under_flag
from nnx_lint.rules.randomness.reading import STREAM, elements, is_rngs
from nnx_lint.rules.traces.mends import COMPILING
from nnx_lint.rules.updates.ownership import ABSTRACT
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import names_in, occurrences
from nnx_lint.syntax.places import begin
from nnx_lint.syntax.walk import dumped, remembered, walk
from nnx_rules import shapes
from nnx_rules.rules import rngs as rules
from nnx_rules.streams import METHODS, NORMS, SAMPLERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Env, Module
    from nnx_lint.model.values import Assignment


# -- one seed ----------------------------------------------------------------------------------------------------------


def seed_of(value: Value | None) -> object:
    """The literal seed of streams that were made for this very use; ``None`` if there is none."""
    if not isinstance(value, Obj) or value.cls is not RNGS or not value.args or len(value.args) > 1 or value.attrs:
        return None
    (seed,) = value.args.values()
    return seed.value if isinstance(seed, Const) and isinstance(seed.value, int) else None


def _seed_of_caller(value: Value | None) -> bool:
    """Whether streams are made from a number that is a parameter, the same wherever it is named."""
    if not isinstance(value, Obj) or value.cls is not RNGS or not value.args or value.attrs:
        return False
    return len(value.args) == 1 and isinstance(next(iter(value.args.values())), ParameterNumber)


def seeded(obj: Obj, *, named: bool = False) -> ast.Call | None:
    """The call that makes the streams of a layer from one seed, where it is an argument of the layer's own, or if that
    may be, bound to a name that is read for it alone.
    """
    values = (obj.args or {}).values()
    rngs = next((value for value in values if seed_of(value) is not None or _seed_of_caller(value)), None)
    node = rngs.node if isinstance(rngs, Obj) else None
    if not isinstance(node, ast.Call) or not isinstance(obj.node, ast.Call) or obj.origin is None:
        return None
    held = [*obj.node.args, *(item.value for item in obj.node.keywords)]
    return node if any(item is node for item in (given_to(obj.origin[0], obj.node) if named else held)) else None


def _seeded_for_function(place: Assignment, obj: Obj) -> ast.Call | None:
    """The call that makes the streams of a layer from one seed, where a function of the project gets them for that."""
    rngs = next((value for value in (obj.args or {}).values() if isinstance(value, Obj) and value.cls is RNGS), None)
    call = rngs.node if rngs is not None else None
    made = value_of(place.module, place.value_node) or place.value_node if place.value_node is not None else None
    if not isinstance(call, ast.Call) or not isinstance(made, ast.Call) or obj.node is made:
        return None
    if not any(item is call for item in given_to(place.module, made)):
        return None
    scope = enclosing(place.module, call, *FUNCTIONS)
    seed = call.args[0] if len(call.args) == 1 and not call.keywords else None
    if isinstance(seed, ast.Constant) and isinstance(seed.value, int):
        return call
    if scope is None or not isinstance(seed, ast.Name) or assigned_in(scope)[seed.id]:
        return None
    return call if parameters_in(scope)[seed.id] else None


TWINS = frozenset({"copy", "ema", "frozen", "old", "ref", "reference", "shadow", "slow", "target", "teacher"})
"""Words in the names of networks that begin as copies of others on purpose."""


def _seeded_by_name(module: Module, obj: Obj) -> ast.Call | None:
    """The call that makes the streams of a layer from a parameter of the function, or a key that the function makes
    once: the same wherever it is named.
    """
    rngs = next((value for value in (obj.args or {}).values() if isinstance(value, Obj) and value.cls is RNGS), None)
    call = rngs.node if rngs is not None and not rngs.attrs else None
    given_seeds = [*call.args, *(each.value for each in call.keywords)] if isinstance(call, ast.Call) else []
    seed = given_seeds[0] if len(given_seeds) == 1 else None
    if not isinstance(call, ast.Call) or not isinstance(seed, ast.Name):
        return None
    held = [*obj.node.args, *(item.value for item in obj.node.keywords)] if isinstance(obj.node, ast.Call) else []
    scope = enclosing(module, call, *FUNCTIONS)
    if scope is None or not any(item is call for item in held):
        return None
    key = value_of(module, seed)
    once = key is not None and not isinstance(enclosing(module, key, *LOOPS, *FUNCTIONS), LOOPS)
    given_once = parameters_in(scope)[seed.id] == 1 and not assigned_in(scope)[seed.id]
    return call if once or given_once else None


def has_equal_numbers(obj: Obj) -> bool:
    """Whether another one that is made with the same seed has equal numbers that should differ, and no constants."""
    given = (value for name, value in (obj.args or {}).items() if name != "bias_init" and isinstance(value, Ext))
    constant = any(value.name.rpartition(".")[2] in CONSTANT for value in given)
    drawn_by = (value for name, value in (obj.args or {}).items() if name.endswith("_init") and name != "bias_init")
    if any(isinstance(value, (ParameterVal, Unknown)) for value in drawn_by):
        return False
    return not constant and not any(isinstance(item, LibClass) and item.name in NORMS for item in obj.cls.ancestors)


CONSTANT = frozenset({"ones", "zeros"})
"""Initializers that draw nothing."""


@judges(rules.SAME_SEED, Constructed)
def same_seed(event: Constructed, report: Reporter) -> None:
    shared = report.memory(Shared)
    first: dict[tuple[object, object, object], tuple[str, ast.AST]] = {}
    for name in attribute_names(event.obj):
        attr = attribute_of(event.obj, name)
        if attr is None or not attr.assignments or attr.assignments[-1].branches:
            continue
        place = attr.assignments[-1]
        for layer in elements(attr.value):
            module = place.module
            call, scope = seeded(layer, named=True), None
            if call is None and (call := _seeded_by_name(module, layer)) is not None:
                scope = enclosing(module, call, *FUNCTIONS)
            if call is None and (call := _seeded_for_function(place, layer)) is not None and names_in(call.args[0]):
                scope = enclosing(module, call, *FUNCTIONS)
            if call is None or not has_equal_numbers(layer):
                continue
            seed = ast.unparse(call)
            say = partial(report, module, call, fix=partial(_one_stream, module, call, shared), path=f"self.{name}")
            if _repeated(module, call):
                say(seed=seed, other="again in each round of a loop")
                continue
            if scope is not None and not any(parameters_in(scope)[each] for each in names_in(call)):
                continue  # two of one key may be a network and its target
            number = next((found for each in (layer.args or {}).values() if (found := seed_of(each)) is not None), seed)
            known = first.setdefault((layer.cls, number, scope), (name, call))
            twins = TWINS.isdisjoint(known[0].split("_")) is not TWINS.isdisjoint(name.split("_"))
            if known[1] is not call and not twins:
                also = (related(module, known[1], "the other layer with this seed"),)
                say(seed=seed, other=f"as is `self.{known[0]}`", related=also)


@judges_calls(rules.SAME_SEED, *MAKING, FuncVal)
def same_seed_members(event: Called, report: Reporter) -> None:
    """Objects of one kind that rounds make, each from the same seed, and nothing else tells them apart."""
    obj, module, node = event.result, event.frame.module, event.node
    owner = event.frame.initializing
    if in_test(event.frame) or not isinstance(node, ast.Call):
        return
    if isinstance(owner, Obj) and owner.cls.is_pytree:
        return  # what an object holds is judged as a whole
    made = isinstance(obj, Obj) and obj.cls.derives_from("nnx.Module") and isinstance(event.callee, FuncVal)
    if not isinstance(obj, Obj) or not (made or obj.cls is constructed(event)) or not has_equal_numbers(obj):
        return
    call = seeded(obj) or _seeded_by_name(module, obj)
    bound = collected_in_rounds(module, node) if call is not None else None
    if call is None or bound is None:
        return
    if bound.isdisjoint(names_in(node)):
        path, place = text_of(node.func), node if made else call
        report(module, place, path=path, seed=ast.unparse(call), other="again in each round of a loop")


def collected_in_rounds(module: Module, node: ast.AST) -> set[str] | None:
    """The names of the rounds of which each does nothing but collect the result of a call; ``None`` if none do."""
    around = next(ancestors(module, node), None)
    if isinstance(around, (ast.ListComp, ast.GeneratorExp)):
        targets = [each.target for each in around.generators] if around.elt is node else []
    else:
        appends = (
            isinstance(around, ast.Call) and isinstance(around.func, ast.Attribute) and around.func.attr == "append"
        )
        statement = statement_of(module, node)
        loop = next(ancestors(module, statement), None) if appends and statement is not None else None
        targets = [loop.target] if isinstance(loop, ast.For) and loop.body == [statement] else []
    bound = {part.id for each in targets for part in walk(each) if isinstance(part, ast.Name)}
    return bound if targets else None


def _is_argument(module: Module, node: ast.AST) -> bool:
    return isinstance(next(ancestors(module, node), None), (ast.Call, ast.keyword))


class Shared:
    """The fixes that the findings of one evaluation share: by the scope, and by how the streams are written there."""

    def __init__(self) -> None:
        self.fixes: dict[tuple[ast.AST, str, str], Fix | None] = {}


def _one_stream(module: Module, call: ast.Call, shared: Shared) -> Fix | None:
    """Make the streams once, before all that is made from them in a function, and give them a name."""
    scope = enclosing(module, call, *FUNCTIONS, ast.Module) if _is_argument(module, call) else None
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
        return None
    written, text = dumped(call), module.source.segment(call)
    if (scope, written, text) not in shared.fixes:
        shared.fixes[scope, written, text] = _made_once(module, scope, written, text)
    return shared.fixes[scope, written, text]


def _made_once(
    module: Module, scope: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module, written: str, text: str
) -> Fix | None:
    if not _is_free(module, scope):
        return None
    same: list[ast.AST] = [
        node
        for node in own_nodes(scope)
        if isinstance(node, ast.Call) and dumped(node) == written and _is_argument(module, node)
    ]
    inside = [next((outer for outer in ancestors(module, node) if outer in scope.body), None) for node in same]
    statements = [statement for statement in inside if isinstance(statement, ast.stmt)]
    if len(statements) < len(same):
        return None  # the decorators and defaults of a function come before it
    first = min(statements, key=lambda statement: statement.lineno, default=None)
    source = module.source
    added = insert_before(source, first, f"{NAME} = {text}") if first is not None else None
    if added is None:
        return None
    edits = (*added, *(Edit(source.span(node), NAME) for node in same))
    return Fix(f"Make `{NAME}` once", edits, Applicability.UNSAFE)


NAME = "rngs"
"""What streams are called."""


def _is_free(module: Module, scope: ast.AST) -> bool:
    """Whether nothing in a scope means anything by the name of streams, but for functions with a parameter of it."""
    uses = occurrences(scope, NAME)
    inner = (itertools.takewhile(lambda each: each is not scope, scopes_around(module, node)) for node in uses)
    return not binds(scope, NAME) and all(any(binds(each, NAME) for each in scopes) for scopes in inner)


_NAMES = (ast.Name, ast.arg)


def _repeated(module: Module, call: ast.Call) -> bool:
    """Whether a loop inside of the constructor makes the same streams in each round."""
    loop = enclosing(module, call, *LOOPS, *FUNCTIONS, ast.ClassDef)
    if not isinstance(loop, LOOPS):
        return False
    return not isinstance(loop, (ast.For, ast.AsyncFor)) or not any(call in walk(part) for part in loop.orelse)


@functools.lru_cache(maxsize=50)  # questions are about a few functions at a time
def _calls_by_text(scope: ast.AST) -> dict[str, list[ast.Call]]:
    """The calls in a function or module, by how what they call is written."""
    found: dict[str, list[ast.Call]] = {}
    for call in calls_in(scope):
        found.setdefault(dumped(call.func), []).append(call)
    return found


class Given:
    """The calls of the scopes of one evaluation, by how what they call is written, and what they are given."""

    def __init__(self) -> None:
        self._known: dict[tuple[ast.AST, str], dict[str, list[tuple[ast.Call, ast.expr]]]] = {}

    def those(
        self, module: Module, scope: ast.AST, func: ast.expr, given: ast.expr
    ) -> Sequence[tuple[ast.Call, ast.expr]]:
        """The calls of something that are given something, both written like these, with what they are given."""
        key = scope, dumped(func)
        if key not in self._known:
            found = self._known[key] = {}
            for call in _calls_by_text(scope).get(key[1], ()):
                for item in given_to(module, call):
                    found.setdefault(dumped(item), []).append((call, item))
        return self._known[key].get(dumped(given), ())


@judges_calls(rules.SAME_SEED_OBJECTS, *MAKING)
def same_seed_objects(event: Called, report: Reporter) -> None:
    obj, module = event.result, event.frame.module
    cls = constructed(event)
    if not isinstance(obj, Obj) or obj.cls is not cls or not has_equal_numbers(obj) or event.frame.initializing:
        return
    call, here = seeded(obj, named=not in_test(event.frame)), statement_of(module, event.node)
    if call is None or here is None or not isinstance(event.node, ast.Call):
        return
    scope = enclosing(module, event.node, *FUNCTIONS, ast.Module)
    if scope is None or not resolved(event.frame.env, event.node.func):
        return
    if any(each.row.name in ABSTRACT for each in event.frame.scope):
        return
    for other, item in report.memory(Given).those(module, scope, event.node.func, call):
        before = begin(other) < begin(event.node)
        if before and item is not call:  # it may be one for both
            place = statement_of(module, other)
            if place is not None:
                if not follows(module, place, here) or _begins_again(module, (place, other), (here, event.node)):
                    continue
                also = (related(module, other, "the other object with this seed"),)
                path, seed = text_of(event.node.func), ast.unparse(call)
                fix = partial(_one_stream, module, call, report.memory(Shared))
                report(module, call, fix=fix, path=path, seed=seed, other=other.lineno, related=also)
                return


def _begins_again(module: Module, before: tuple[ast.AST, ast.Call], after: tuple[ast.AST, ast.Call]) -> bool:
    """Whether the call in the second statement puts a new object in the place of what the first one made."""
    pairs = [list(pairs_of(statement)) for statement, _ in (before, after)]
    names = [[dumped(target) for target, _ in each] for each in pairs]
    if before[0] is not after[0] and names[0] and names[0] == names[1]:
        return True
    taken = [bound_to(module, call) for _, call in (before, after)]
    targets = [dumped(each.target) for each in taken if each is not None]
    return len(targets) == 2 and targets[0] == targets[1]


@judges_calls(rules.COPIED_LAYERS, "copy.deepcopy", "copy.copy", "nnx.clone")
def copied_layers(event: Called, report: Reporter) -> None:
    """Copies of one layer in a comprehension, which a constructor makes the layers of a model."""
    obj, module = event.args[0] if event.args else None, event.frame.module
    around = enclosing(module, event.node, ast.ListComp, ast.GeneratorExp, *FUNCTIONS)
    if not isinstance(around, (ast.ListComp, ast.GeneratorExp)) or around.elt is not event.node or not event.nodes:
        return
    named = names_in(event.nodes[0])
    bound = {node.id for each in around.generators for node in walk(each.target) if isinstance(node, ast.Name)}
    if not isinstance(obj, Obj) or not obj.cls.derives_from("nnx.Module") or named & bound:
        return
    if event.frame.initializing is not None and event.frame.initializing is event.frame.receiver:
        report(module, event.node, name=text_of(event.nodes[0]), cls=obj.cls.name)


# -- one key -----------------------------------------------------------------------------------------------------------


def _func(node: ast.AST) -> ast.expr | None:
    return node.func if isinstance(node, ast.Call) else None


@remembered
def called_for(scope: ast.AST) -> dict[str, ast.Call]:
    """The first call whose result is bound to a name, for each name in a function."""
    found: dict[str, ast.Call] = {}
    for node in walk(scope):
        if isinstance(node, ast.NamedExpr):
            pairs: Iterable[tuple[ast.expr, ast.expr]] = ((node.target, node.value),)
        else:
            pairs = pairs_of(node)
        for target, value in pairs:
            if isinstance(target, ast.Name) and isinstance(value, ast.Call):
                found.setdefault(target.id, value)
    return found


def is_stream(env: Env, node: ast.expr) -> bool:
    """Whether an expression is something that is called to draw a key: an ``nnx.Rngs``, or a stream of one."""
    value = resolved(env, node)
    if is_rngs(value) or (isinstance(value, Obj) and STREAM is not None and STREAM in value.cls.ancestors):
        return True
    if isinstance(node, ast.Attribute):
        return node.attr not in METHODS and is_rngs(resolved(env, node.value))
    return isinstance(node, ast.Subscript) and is_rngs(resolved(env, node.value))


def consumes(name: str | None) -> bool:
    """Whether a library function of this canonical name makes numbers, or other keys, from a key."""
    rest = (name or "").removeprefix("jax.random.")
    return rest != name and (rest in SAMPLERS or rest == "split")


@judges_calls(rules.STREAM_KEY_READ, "jax.random.*", when=needs_key)
def stream_key_read(event: Called, report: Reporter) -> None:
    node = given(event).node_of(0, "key")
    if not isinstance(node, ast.AST) or not consumes(canonical_of(event.frame.env, _func(event.node))):
        return
    held: ast.expr | None = node
    if isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "value"):
        held = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get_value":
        held = node.func.value
    if isinstance(held, ast.Attribute) and held.attr == "key" and is_stream(event.frame.env, held.value):
        module = event.frame.module
        mend = f"{module.source.segment(held.value)}()"
        fix = unsafe(f"Draw a key: `{mend}`", replace(module.source, node, mend))
        report(module, node, fix=fix, name=module.source.segment(node), mend=mend)


# -- one seed for all calls --------------------------------------------------------------------------------------------


@judges_calls(rules.FIXED_SEED, "nnx.Rngs")
def fixed_seed_in_call(event: Called, report: Reporter) -> None:
    frame, own = event.frame, called_as(event.frame)
    if frame.func is None or own is None or seed_of(event.result) is None or not in_forward_pass(frame):
        return
    if _is_certain(frame, event.node) and not _starts_weights_or_carry(frame, event.node):
        path = f"{own.name}.{as_method(frame).name}"
        report(frame.module, event.node, path=path, seed=frame.module.source.segment(event.node))


KEY_MAKERS = frozenset({"jax.random.key", "jax.random.PRNGKey"})

MAX_NAMES = 3
"""How many names a key may have, each bound to the one before."""


@judges_calls(rules.FIXED_SEED, "jax.random.*", when=needs_key)
def fixed_key_in_call(event: Called, report: Reporter) -> None:
    frame, module = event.frame, event.frame.module
    node = given(event).node_of(0, "key")
    if frame.func is None or node is None or (event.subject or "")[11:] not in SAMPLERS or not in_forward_pass(frame):
        return
    scope = enclosing(module, event.node, *FUNCTIONS)
    made: ast.expr | None = node
    for _ in range(MAX_NAMES):
        if isinstance(made, ast.Name) and scope is not None and assigned_in(scope)[made.id] == 1:
            made = first_values(scope).get(made.id)
    if not isinstance(made, ast.Call) or canonical_of(frame.env, made.func) not in KEY_MAKERS:
        return
    literal = len(made.args) == 1 and not made.keywords and _is_fixed(frame, made.args[0])
    own = called_as(frame)
    if not literal or scope is not frame.func.node or own is None or is_projection(frame, event.node):
        return
    flagged = is_under_flag(frame, event.node) and draws_alone(frame, event.node)
    if flagged or _is_certain(frame, event.node):
        path = f"{own.name}.{as_method(frame).name}"
        report(module, made, path=path, seed=module.source.segment(made))


def _is_fixed(frame: Frame, seed: ast.expr) -> bool:
    """Whether a number is said, or is one of the object that its methods leave as it is."""
    if is_said(frame.module, frame.env, seed) or not isinstance(seed, ast.Attribute):
        return is_said(frame.module, frame.env, seed)
    value = resolved(frame.env, seed)
    cls = enclosing(frame.module, seed, ast.ClassDef)
    if not isinstance(value, Const) or not isinstance(value.value, int) or cls is None:
        return False
    methods = [each for each in cls.body if isinstance(each, FUNCTIONS) and getattr(each, "name", "") != "__init__"]
    parts = (part for method in methods for part in own_nodes(method) if isinstance(part, ast.Attribute))
    return not any(part.attr == seed.attr and not isinstance(part.ctx, ast.Load) for part in parts)


def _is_certain(frame: Frame, node: ast.AST) -> bool:
    """Whether a function evaluates an expression of its own whenever it ends without an error."""
    func, statement = frame.func.node if frame.func is not None else None, statement_of(frame.module, node)
    if enclosing(frame.module, node, *FUNCTIONS, ast.IfExp, ast.BoolOp) is not func or func is None:
        return False
    branch = enclosing(frame.module, node, *FUNCTIONS, ast.If)
    return branch is func or (isinstance(func.body, list) and statement in straight(func.body))


LOSS = re.compile(r"(?<!eval)(?<!test)(?<!val)(?<!validation)(?:\b|_)loss(?:_fn)?$")
"""How methods are called that compute what a model is trained with."""


def in_forward_pass(frame: Frame) -> bool:
    """Whether a method of a module runs because of a call of a module, or computes its loss: what it draws is to differ
    between calls.
    """
    own = called_as(frame)
    if own is None or not own.derives_from("nnx.Module"):
        return False
    current: Frame | None = frame
    while current is not None and current.initializing is None:
        if current.func is not None and current.func.name == "__call__":
            return True
        if current is frame and LOSS.search(current.func.name if current.func is not None else ""):
            return True
        current = current.caller
    return False


def _starts_weights_or_carry(frame: Frame, node: ast.AST) -> bool:
    """Whether streams are an argument for the carry of a recurrent cell, which is zeros and draws nothing from them, or
    for the weights of a layer that is made here: they are to be overwritten, or the layer should not be made (NNX833).
    """
    call = enclosing(frame.module, node, ast.Call)
    if call is None or canonical_of(frame.env, call.func) in shapes.DIMENSIONS:
        return call is not None
    return isinstance(call.func, ast.Attribute) and call.func.attr == "initialize_carry"


HOST = ("numpy.random.*", "random.*")
"""Functions that draw random numbers while a function is traced, and not when it runs."""


@judges_calls(rules.HOST_RANDOM, *HOST)
def host_random_in_call(event: Called, report: Reporter) -> None:
    frame = event.frame
    name, func = (event.subject or "").rpartition(".")[2], frame.func
    if name not in SAMPLING or func is None:
        return
    compiled = frame.initializing is None and any(each.row.name in COMPILING for each in frame.scope)
    if compiled or (func.cls is not None and in_forward_pass(frame)):
        path = f"{func.cls.name}.{func.name}" if func.cls is not None else func.name
        report(frame.module, event.node, path=path, name=f"{event.name}()")


_SAMPLING = """
    beta binomial choice choices gauss normal normalvariate permutation poisson rand randint randn random sample shuffle
    standard_normal uniform
"""

SAMPLING = frozenset(_SAMPLING.split())
"""Names of functions that draw random numbers, in Python and numpy."""


# -- one default -------------------------------------------------------------------------------------------------------


@judges_calls(rules.RNGS_DEFAULT, "nnx.Rngs")
def rngs_default_argument(event: Called, report: Reporter) -> None:
    module, made = event.frame.module, event.node
    caller, end = event.frame.caller, statement_of(module, made)
    if caller is not None and event.frame.call is not None and isinstance(end, ast.Return) and end.value is made:
        module, made = caller.module, event.frame.call  # a function makes the default
    for node in (made, *_read_by_name(module, made)):
        parent, func = (*itertools.islice(ancestors(module, node), 2), None, None)[:2]
        if not isinstance(parent, ast.arguments) or func is None:
            continue
        positional = syntax_parameters.positional(parent)
        defaults = [*zip(reversed(positional), reversed(parent.defaults), strict=False)]
        defaults += [(name, value) for name, value in zip(parent.kwonlyargs, parent.kw_defaults, strict=True) if value]
        for parameter, default in defaults:
            if default is node and reads_of(func, parameter.arg):  # streams that nobody asks give nothing
                fix = partial(_without_default, module, parent, parameter, default)
                report(module, node, fix=fix, parameter=parameter.arg)


def _read_by_name(module: Module, node: ast.AST) -> list[ast.Name]:
    """Where a module reads what it binds to a name once, and reads for defaults only: else all mean to share it."""
    bound = bound_to(module, node)
    name = bound.target.id if bound is not None and isinstance(bound.target, ast.Name) else None
    if name is None or enclosing(module, node, *FUNCTIONS) is not None or assigned_in(module.tree)[name] != 1:
        return []
    reads = reads_of(module.tree, name)
    return reads if all(isinstance(next(ancestors(module, each), None), ast.arguments) for each in reads) else []


def _without_default(module: Module, given: ast.arguments, parameter: ast.arg, default: ast.expr) -> Fix | None:
    """Take the default away, where no other one stands before it that would have to go, too."""
    positional = syntax_parameters.positional(given)
    if parameter in positional and positional.index(parameter) != len(positional) - len(given.defaults):
        return None
    source = module.source
    start, end = source.span(parameter).end, source.span(default).end
    if source.text[start : source.span(default).start].strip() != "=":
        return None  # in parentheses, or with a comment
    return Fix("Remove the default", (Edit(Span(start, end), ""),), Applicability.UNSAFE)
