"""One key for all draws: one that an object keeps, for the forward passes of a module (NNX532) or the rounds of a loop
in which something is trained (NNX519), and one that is made of the same number in each round (NNX531).

Where a function draws from a key, the key is followed back: through names, the parameters of the functions that hand it
on, and those of transforms, to an attribute of an object, or to what makes it.

Invariants: only the constructor of its class sets the attribute, and no text that the key came through sets one of this
name on anything. A loop goes on with the same object: its name is not bound in the loop. Numbers that are to be the
same, as for a comparison or a test, are drawn by functions that train nothing.
"""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal, Transformed
from nnx_lint.model.classes import UserClass
from nnx_lint.model.expressions import text_of
from nnx_lint.model.later import constructing
from nnx_lint.model.unions import present
from nnx_lint.model.uses import RNGS
from nnx_lint.model.values import UNKNOWN, Const, Obj
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.bindings import bound_to, first_values, value_of
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    assigned_in,
    attributes_named,
    attributes_stored,
    binds,
    calls_in,
    canonical_of,
    enclosing,
    given,
    in_test,
    names_of_parameters,
    parameters_in,
    reads_of,
    resolved,
)
from nnx_lint.rules.randomness.arguments import needs_key
from nnx_lint.rules.randomness.drawing import Keys, collects_the_same, function_of, given_for
from nnx_lint.rules.randomness.fixed import is_said
from nnx_lint.rules.randomness.keys import (
    EACH_ROUND,
    SPLIT,
    feeds_training,
    runs_in_rounds,
    takes_the_first,
    trains,
)
from nnx_lint.rules.randomness.reading import streams_parameter
from nnx_lint.rules.randomness.reuse import KEY_MAKERS, consumes, in_forward_pass
from nnx_lint.rules.repeating import Handed, argument, frame_around, loop_around, outwards
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.walk import dumped, remembered, walk
from nnx_rules.rules import rngs as rules
from nnx_rules.streams import METHODS, SAMPLERS
from nnx_rules.transforms import DIFFERENTIATING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Assignment, Value

CONSTRUCTORS = frozenset({"__init__", "__post_init__", "__new__"})

MAX_STEPS = 12
"""How many names deep a key is followed."""


class Source(NamedTuple):
    """Where a key comes from: the attribute, or the call that makes it, and the frames that it was handed through, that
    of the draw first.
    """

    frame: Frame
    node: ast.expr
    through: list[Frame]

    def use(self, draw: ast.AST) -> ast.AST | None:
        """The call of the function which the key comes from that hands it over, or draws."""
        return self.through[-2].call if len(self.through) > 1 else draw


class Kept(NamedTuple):
    """An attribute that holds a key: where it is read, of which object, and the frames that it was handed through."""

    frame: Frame
    node: ast.Attribute
    owner: Obj
    source: Source


@judges_calls(rules.KEPT_KEY, "jax.random.*", when=needs_key)
def kept_key(event: Called, report: Reporter) -> None:
    """A key of a module, in its forward pass."""
    kept = _kept(event)
    if kept is None or kept.owner is not present(kept.frame.receiver or UNKNOWN) or not in_forward_pass(kept.frame):
        return
    made, cls = set_once(kept), kept.owner.cls
    call = made.value_node if made is not None else None
    if made is None or not isinstance(call, ast.Call) or not isinstance(cls, UserClass):
        return
    streams, func = streams_parameter(cls), value_of(made.module, call.func) or call.func
    drawn = isinstance(func, ast.Attribute) and func.attr not in METHODS and isinstance(func.value, ast.Name)
    if drawn and streams is not None and isinstance(func, ast.Attribute) and text_of(func.value) == streams.arg:
        related_to = (related(made.module, call, "it is drawn here"),)
        name = text_of(kept.node)
        report(kept.frame.module, kept.node, name=name, cls=cls.name, stream=func.attr, related=related_to)


@judges_calls(rules.KEY_REUSED, "jax.random.*", when=needs_key)
def kept_key_in_rounds(event: Called, report: Reporter) -> None:
    """A key of any object, in each round of a loop that trains."""
    kept = _kept(event)
    if kept is None or in_test(kept.frame) or set_once(kept) is None:
        return
    if _goes_round(event, kept):
        report(kept.frame.module, kept.node, name=text_of(kept.node), again=EACH_ROUND)


@judges_calls(rules.FIXED_SEED, "jax.random.*", when=needs_key)
def fixed_key_in_rounds(event: Called, report: Reporter) -> None:
    """A key that each step of a loop makes of one number."""
    source = _source(event)
    if source is None or in_test(source.frame) or in_forward_pass(source.frame) or not _is_fixed(source):
        return
    use = source.use(event.node)
    if isinstance(use, ast.Call) and _is_anew(source, use):
        _report_fixed(source.frame, source.node, report)


@judges_calls(rules.FIXED_SEED, FuncVal, Transformed, BoundMethod, PartialVal, Obj)
def fixed_key_handed(event: Called, report: Reporter) -> None:
    """A key that a loop makes of one number in each round, for a function that draws from it."""
    call, frame = event.node, event.frame
    if not isinstance(call, ast.Call) or not any(map(_is_written_key, (*call.args, *call.keywords))):
        return
    callee = function_of(event.callee)
    drawn = report.memory(Keys).drawn_from(callee.func) if callee is not None and not in_test(frame) else {}
    for parameter, node in given_for(call, callee) if callee is not None and drawn else ():
        if parameter not in drawn or not _is_fixed(Source(frame, node, [frame])):
            continue
        again = loop_around(frame.module, call, "") is not None
        if again and (trains(frame, call) or feeds_training(frame, call)):
            _report_fixed(frame, node, report)


def _is_written_key(node: ast.AST) -> bool:
    """Whether a call is given what may be a key that is made right there."""
    made = node.value if isinstance(node, ast.keyword) else node
    return isinstance(made, ast.Call) and len(made.args) == 1


def _report_fixed(frame: Frame, node: ast.expr, report: Reporter) -> None:
    func = frame.func
    if func is None:
        loop = loop_around(frame.module, node, "")
        path = ast.unparse(loop).partition(":\n")[0] if loop is not None else ""
    else:
        path = f"{func.cls.name}.{func.name}" if func.cls is not None else func.name
    if path:
        report(frame.module, node, path=path, seed=frame.module.source.segment(node))


@judges_calls(rules.FIXED_SEED, "nnx.Rngs")
def fixed_streams_in_rounds(event: Called, report: Reporter) -> None:
    """Streams that each step of a loop makes of one number, and draws from."""
    frame, call = event.frame, event.node
    if not isinstance(call, ast.Call) or not _is_seeded(event.result) or in_test(frame) or in_forward_pass(frame):
        return
    step = next((outer for outer in ancestors(frame.module, call) if not isinstance(outer, ast.keyword)), None)
    if isinstance(step, ast.Call) and loop_around(frame.module, step, "") is not None and trains(frame, step):
        _report_fixed(frame, call, report)  # a step of training
        return
    if frame.func is None or not _is_anew(Source(frame, call, [frame]), call):
        return
    bound = bound_to(frame.module, call)
    held = bound.target.id if bound is not None and isinstance(bound.target, ast.Name) else None
    scope = enclosing(frame.module, call, *FUNCTIONS)
    places = [call] if held is None or scope is None else reads_of(scope, held)
    if any(_draws_from(frame, place) for place in places):
        _report_fixed(frame, call, report)


def _is_seeded(value: Value | None) -> bool:
    """Whether streams are made of literal numbers."""
    args = value.args if isinstance(value, Obj) and value.cls is RNGS and not value.attrs else None
    return bool(args) and all(isinstance(each, Const) and isinstance(each.value, int) for each in (args or {}).values())


def _draws_from(frame: Frame, streams: ast.expr) -> bool:
    """Whether a place draws from streams: by a method that makes numbers, or by a call of an object that gets them."""
    outer, around = (*itertools.islice(ancestors(frame.module, streams), 2), None, None)[:2]
    if isinstance(outer, ast.Attribute):
        key = isinstance(streams, ast.Name) and outer.attr not in METHODS and outer.attr != "params"
        return isinstance(around, ast.Call) and around.func is outer and (key or outer.attr in SAMPLERS)
    if not isinstance(outer, ast.keyword) or outer.arg != "rngs" or not isinstance(around, ast.Call):
        return False
    if canonical_of(frame.env, around.func) == "nnx.Dropout":
        return _is_called(frame, around)
    return isinstance(present(resolved(frame.env, around.func) or UNKNOWN), Obj)


def _is_called(frame: Frame, made: ast.Call) -> bool:
    """Whether a function calls the layer that it makes."""
    outer, bound = next(iter(ancestors(frame.module, made)), None), bound_to(frame.module, made)
    scope = enclosing(frame.module, made, *FUNCTIONS)
    if bound is None or not isinstance(bound.target, ast.Name) or scope is None:
        return isinstance(outer, ast.Call) and outer.func is made
    return any(isinstance(call.func, ast.Name) and call.func.id == bound.target.id for call in calls_in(scope))


def _is_fixed(source: Source) -> bool:
    """Whether a call makes a key of a number that is always the same: written out, that of a configuration, or that of
    a function which has the loop.
    """
    frame, node = source.frame, source.node
    made = _maker(frame, node) if isinstance(node, ast.Call) else None
    if made is None:
        return False
    given = [*made.args, *(item.value for item in made.keywords)]
    seed = given[0] if len(given) == 1 else None
    if seed is not None and is_said(frame.module, frame.env, seed):
        return True
    if isinstance(seed, ast.Name) and frame.func is not None:
        own = seed.id in names_of_parameters(frame.func.node) and not assigned_in(frame.func.node)[seed.id]
        return own and loop_around(frame.module, node, seed.id) is not None
    if not isinstance(seed, ast.Attribute) or frame.func is None or frame.receiver is None:
        return False
    stored = attributes_stored(frame.module.tree)
    parts = [part.attr for part in walk(seed) if isinstance(part, ast.Attribute)]
    own = root_of(seed) in syntax_parameters.names(frame.func.node.args)[:1]
    return own and all(stored.count(part) <= 1 for part in parts)


def _maker(frame: Frame, node: ast.Call) -> ast.Call | None:
    """The call that makes a key of a number, or the streams that a call draws one from at once: ``nnx.Rngs(0)()``."""
    if canonical_of(frame.env, node.func) in KEY_MAKERS:
        return node
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr not in METHODS:
        func = func.value
    streams = isinstance(func, ast.Call) and canonical_of(frame.env, func.func) == "nnx.Rngs"
    return func if isinstance(func, ast.Call) and streams and not node.args and not node.keywords else None


def _is_anew(source: Source, use: ast.Call) -> bool:
    """Whether a loop makes a key again in each round of what trains with it."""
    frame = source.frame
    if runs_in_rounds(frame):
        return True
    if loop_around(frame.module, source.node, "") is not None:
        return trains(frame, use) or feeds_training(frame, use)
    learns = any(scope.row.name in DIFFERENTIATING for scope in frame.scope) or _trains(frame, handed=True)
    for caller, call, _ in outwards(frame, ""):
        if loop_around(caller.module, call, "") is not None:
            return learns or trains(caller, call)
    return False


def _kept(event: Called) -> Kept | None:
    """The attribute that the key of a draw comes from."""
    source = _source(event)
    if source is None or not isinstance(source.node, ast.Attribute):
        return None
    owner = present(resolved(source.frame.env, source.node.value) or UNKNOWN)
    return Kept(source.frame, source.node, owner, source) if isinstance(owner, Obj) else None


def _source(event: Called) -> Source | None:
    """The attribute or the call that the key of a draw comes from."""
    call = event.node
    if not isinstance(call, ast.Call) or not consumes(event.subject):
        return None
    if event.subject == SPLIT and not takes_the_first(event.frame.module, call):
        return None
    node, frame, through = given(event).node_of(0, "key"), event.frame, [event.frame]
    for _ in range(MAX_STEPS):
        if isinstance(node, (ast.Attribute, ast.Call)):
            return Source(frame, node, through)
        if not isinstance(node, ast.Name):
            return None
        scope = frame.func.node if frame.func is not None else frame.module.tree
        outer: Frame | None = frame
        if not binds(scope, node.id):
            outer = frame_around(frame)
        elif assigned_in(scope)[node.id]:
            node = _only_value(scope, node.id)
        else:
            node, outer = argument(frame, node.id), frame.caller
        if outer is None:
            return None
        if outer is not frame:
            frame = outer
            through.append(frame)
    return None


def _only_value(scope: ast.AST, name: str) -> ast.expr | None:
    """What a function binds a name to, where it does so once and the name is no parameter."""
    if assigned_in(scope)[name] != 1 or parameters_in(scope)[name]:
        return None
    return first_values(scope).get(name)


def set_once(kept: Kept) -> Assignment | None:
    """Where the constructor of a class last sets an attribute, if nothing else ever does."""
    name, cls = kept.node.attr, kept.owner.cls
    attr = attribute_of(kept.owner, name)
    if attr is None or not attr.assignments or not isinstance(cls, UserClass):
        return None
    classes = cls.lineage
    modules = dict.fromkeys([*(item.module for item in classes), *(frame.module for frame in kept.source.through)])
    trees = {id(module.tree): module.tree for module in modules}
    nodes = {item.node for item in classes}
    stored = [(module, node) for module in modules for node in _named(module, name)]
    stored = [pair for pair in stored if not isinstance(pair[1].ctx, ast.Load)]
    written = sum(not is_of_another(module, node, nodes) for module, node in stored)
    own = sum(attributes_stored(func).count(name) for item in classes for func in _constructors(item, trees.values()))
    replaced = any(_replaces(call, name) for tree in trees.values() for call in calls_in(tree))
    return attr.assignments[-1] if written == own > 0 and not replaced else None


def _named(module: Module, name: str) -> list[ast.Attribute]:
    return attributes_named(module.tree).get(name, [])


def is_of_another(module: Module, node: ast.Attribute, classes: Collection[ast.AST]) -> bool:
    """Whether an attribute is one of the own object of a method, of a class that is none of these."""
    cls, func = enclosing(module, node, ast.ClassDef), enclosing(module, node, *FUNCTIONS)
    owner = next(iter(syntax_parameters.names(func.args)), None) if isinstance(func, FUNCTIONS) else None
    return cls is not None and cls not in classes and owner is not None and is_name(node.value, owner)


def _constructors(cls: UserClass, trees: Iterable[ast.AST]) -> list[ast.AST]:
    """The constructors of a class, and the methods that nothing but these mentions."""
    methods = [item for item in cls.node.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))]
    names = constructing(methods) | CONSTRUCTORS
    found = [item for item in methods if item.name in names]
    inside = {id(node) for item in found for node in walk(item)}
    named = (node for tree in trees for node in walk(tree) if isinstance(node, ast.Attribute))
    outside = {node.attr for node in named if id(node) not in inside} - CONSTRUCTORS
    return [item for item in found if item.name not in outside]


def _replaces(call: ast.Call, name: str) -> bool:
    """Whether a call sets attributes by their names: ``setattr(agent, "key", key)``, ``replace(agent, key=key)``."""
    func = call.func
    called = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
    if called in {"setattr", "__setattr__"}:
        return any(not isinstance(item, ast.Constant) or item.value == name for item in call.args[-2:-1])
    return "replace" in called and any(item.arg in {name, None} for item in call.keywords)


def _goes_round(event: Called, kept: Kept) -> bool:
    """Whether something that trains runs again and again with the object that keeps the key, or makes samples."""
    through = kept.source.through
    if any(map(runs_in_rounds, through)):
        return True
    learns = any(scope.row.name in DIFFERENTIATING for scope in event.frame.scope) or any(map(_trains, through))
    name, use = root_of(kept.node), kept.source.use(event.node)
    if not isinstance(use, ast.Call) or name is None:
        return False
    for frame, call, holder in (Handed(kept.frame, use, name), *outwards(kept.frame, name)):
        if loop_around(frame.module, call, holder) is not None:
            if learns or trains(frame, call) or feeds_training(frame, call):
                return True
            return collects_the_same(frame, call) and not in_test(frame)
    return False


def _trains(frame: Frame, *, handed: bool = False) -> bool:
    """Whether a function hands an optimizer to something, or takes its step; that was ``handed`` to it, if so asked."""
    own = names_of_parameters(frame.func.node) if handed and frame.func is not None else None
    for node in _handed_over(frame.func.node) if frame.func is not None else ():
        value = resolved(frame.env, node)
        if isinstance(value, Obj) and value.cls.derives_from("nnx.Optimizer") and (own is None or root_of(node) in own):
            return True
    return False


@remembered
def _handed_over(func: ast.AST) -> list[ast.expr]:
    """What a function names to hand it over or to update it; of what is written alike, one."""
    found: list[ast.expr] = []
    for call in calls_in(func):
        found += [*call.args, *(item.value for item in call.keywords)]
        if isinstance(call.func, ast.Attribute) and call.func.attr == "update":
            found.append(call.func.value)
    return list({dumped(node): node for node in found if isinstance(node, (ast.Name, ast.Attribute))}.values())
