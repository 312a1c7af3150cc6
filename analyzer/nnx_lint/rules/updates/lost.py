"""Changes that a function makes to copies, and that nobody ever sees (NNX217, NNX218, NNX219, NNX227, NNX228).

``jax`` transforms hand copies of objects to the function and forget them; without graph updates, ``nnx`` transforms
bring back the values of Variables only. Switching a mode inside, ``model.eval()``, is meant for the function, and what
a module sows is often not wanted: both are no loss. Variables that hold array references are none either: JAX itself
brings these back.
"""

from __future__ import annotations

import ast
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Fix
from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.effects import SETTING
from nnx_lint.model.events import Ran
from nnx_lint.model.naming import value_at
from nnx_lint.model.unions import options
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges, related
from nnx_lint.rules.bindings import bound_to, target_of
from nnx_lint.rules.lifting import on_nnx
from nnx_lint.rules.program import (
    FUNCTIONS,
    STATEMENT_LOOPS,
    ancestors,
    assigned_in,
    attributes_named,
    calls_in,
    canonical_of,
    enclosing,
    in_test,
    is_own,
    keyword_node,
    reads_of,
)
from nnx_lint.rules.traces.captures import REFERENCES, holds, refuses_streams
from nnx_lint.rules.updates.ownership import ABSTRACT, Change, at_level, carried, changes_of, may_hold
from nnx_lint.rules.updates.stale import is_stream
from nnx_lint.rules.variables.promoting import as_variable
from nnx_lint.syntax.binding import names_in
from nnx_lint.syntax.places import begin, end
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import updates as rules
from nnx_rules.transforms import Arguments

if TYPE_CHECKING:
    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.events import Mutated
    from nnx_lint.model.frames import TraceScope
    from nnx_lint.model.modules import Module

UNWATCHED = frozenset({"jax.make_jaxpr", "nnx.make_jaxpr", "jax.closure_convert", "jax.linear_transpose"})
"""Transforms of which nobody expects an effect."""


def drops(event: Ran) -> bool:
    """Whether one of the transforms of the function forgets what becomes of its arguments."""
    return bool(event.scope.changes) and losing(event.scope) is not None


def losing(scope: TraceScope) -> TransformVal | None:
    """The transform of a function that forgets what becomes of its arguments: the outermost, or else one inside of it,
    as ``jax.vmap`` in ``nnx.jit(jax.vmap(step))``.
    """
    if scope.row.arguments is not Arguments.KEPT:
        return scope.applied if scope.row.name not in UNWATCHED else None
    dropping = (each for each in scope.within if each.row.arguments is Arguments.DROPPED)
    return next((each for each in dropping if each.row.name not in UNWATCHED), None)


@judges(rules.LOST_UPDATE, Ran, when=drops)
@judges(rules.LOST_OPTIMIZER_STEP, Ran, when=drops)
@judges(rules.LOST_MERGED_UPDATE, Ran, when=drops)
def lost(event: Ran, report: Reporter) -> None:
    scope = event.scope
    applied = losing(scope)
    if applied is None or applied.module.mentions(*REFERENCES):
        return
    changes = [item for item in changes_of(event) if matters(item, scope) or _is_wanted(event, item)]
    if scope.frame is not None and scope.frame.func is not None and "eval" in attributes_named(scope.frame.func.node):
        # What a function merges and switches to evaluation is for what it returns: it keeps nothing of that.
        changes = [item for item in changes if not item.merged or _is_step(item)]
    steps = {id(item.event.node) for item in changes if _is_step(item)}
    kept = {id(item.event.node) for item in changes if not _is_step(item) and carried(event, item)}
    seen: set[str] = set()
    for item in changes:
        step = _is_step(item)
        if item.root in seen or (not step and id(item.event.node) in steps):
            continue
        missed = _is_missed(event, item) or _is_wanted(event, item) or _drops_carry(event, item)
        if carried(event, item) and not missed:
            continue
        seen.add(item.root)
        rule = rules.LOST_OPTIMIZER_STEP if step else rules.LOST_MERGED_UPDATE if item.merged else rules.LOST_UPDATE
        if rule is not report.rule:
            continue
        report(
            item.module,
            item.node,
            fix=None if item.merged else partial(on_nnx, applied, applied.module),
            related=(related(applied.module, applied.node, f"`{applied.text}` is applied here"),),
            name=item.name,
            root=item.root,
            action=item.event.action,
            loss=STATE_LOST if id(item.event.node) in kept else STEP_LOST,
            transform=applied.text,
            nnx=NNX.get(applied.row.name, "nnx.jit"),
        )


def _drops_carry(event: Ran, change: Change) -> bool:
    """Whether a function throws away what a scan leaves in the carry, ``_, ys = jax.lax.scan(step, model, xs)``, and it
    or its caller goes on with what the carry began with. A scan may draw the same numbers again.
    """
    frame, call, scope = event.frame, event.node, event.frame.func
    target = target_of(frame.module, call)
    carry = target.elts[0] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else None
    if event.scope.row.name != "jax.lax.scan" or not isinstance(carry, ast.Name) or not carry.id.startswith("_"):
        return False
    if is_stream(change.target) or change.target.cls.derives_from("nnx.Dropout"):
        return False
    given = call.args[1] if isinstance(call, ast.Call) and len(call.args) > 1 else keyword_node(call, "init")
    names = names_in(given) if given is not None else frozenset[str]()
    own = assigned_in(scope.node) if scope is not None else Counter[str]()
    reads = [read for name in names if own[name] and scope is not None for read in reads_of(scope.node, name)]
    return any(not own[name] for name in names) or any(begin(read) > end(call) for read in reads)


def _is_missed(event: Ran, change: Change) -> bool:
    """Whether a Variable whose new value is only computed with is read after the call, by a caller who does not write
    it.
    """
    frame, name = event.frame, change.name.rpartition(".")[2]
    if may_hold(event.result, change.target) or not change.target.cls.is_variable or in_test(frame):
        return False
    scope = frame.func.node if frame.func is not None else frame.module.tree
    before, end = at_level(change.target, frame.level), getattr(event.node, "end_lineno", 0)
    places = [
        part
        for part in attributes_named(scope).get(name, ())
        if value_at(frame, part) is before and is_own(frame.module, scope, part)
    ]
    outers = [next(ancestors(frame.module, part)) for part in places]
    around = [outer for outer in outers if isinstance(outer, (ast.Subscript, ast.Attribute))]
    written = any(not isinstance(outer.ctx, ast.Load) or getattr(outer, "attr", "") in WRITING for outer in around)
    written = written or any(canonical_of(frame.env, call.func) == "nnx.update" for call in calls_in(scope))
    return not written and any(part.lineno > end for part in places)


def _is_wanted(event: Ran, change: Change) -> bool:
    """Whether the caller counts on a change of what a function may fill for itself."""
    return _is_collected(event, change) or _is_decoded(event, change)


def _is_decoded(event: Ran, change: Change) -> bool:
    """Whether each round of a loop calls a function with what the round before got from it, which keeps a cache of all
    rounds: `token = decode(state, token)`.
    """
    module, node = event.frame.module, event.node
    if not change.target.cls.derives_from("nnx.Cache") or may_hold(event.result, change.target):
        return False
    loop = enclosing(module, node, *STATEMENT_LOOPS, *FUNCTIONS) if isinstance(node, ast.Call) else None
    bound = bound_to(module, node) if isinstance(loop, STATEMENT_LOOPS) else None
    given = {name for item in getattr(node, "args", ()) for name in names_in(item)}
    return bound is not None and any(item.id in given for item in walk(bound.target) if isinstance(item, ast.Name))


def _is_collected(event: Ran, change: Change) -> bool:
    """Whether what a module sows for nobody is popped from the object next, by who called the function."""
    frame, node = event.frame, event.node
    if not change.event.action.startswith(SOWING) or may_hold(event.result, change.target) or frame.scope:
        return False
    scope = frame.func.node if frame.func is not None else frame.module.tree
    before = at_level(change.target, 0)
    for call in calls_in(scope):
        first = call.args[0] if call.args and canonical_of(frame.env, call.func) == "nnx.pop" else None
        if not isinstance(first, ast.Name) or not is_own(frame.module, scope, call):
            continue
        popped = value_at(frame, first)
        reads = [read for read in reads_of(scope, first.id) if begin(read) > end(node)]
        if reads[:1] == [first] and popped is not None and (popped is before or holds(popped, before)):
            return True
    return False


SOWING = "`.sow("

WRITING = frozenset({"copy_from", "set_raw_value", "set_value", "update_from_state"})
"""Methods of Variables that write them."""


STEP_LOST = "neither the parameters nor the state of the optimizer change, so nothing is trained"

STATE_LOST = "the state of the optimizer does not change, so each step begins with the same one"
"""What is lost where the model is returned, and the optimizer is not."""

NNX = {
    **{f"jax.{name}": f"nnx.{name}" for name in ("jit", "vmap", "pmap", "grad", "value_and_grad", "shard_map")},
    **{f"jax.lax.{name}": f"nnx.{name}" for name in ("scan", "cond", "switch", "while_loop", "fori_loop")},
    "jax.checkpoint": "nnx.remat",
}
"""The transform that does the same and brings changes back."""


def matters(change: Change, scope: TraceScope) -> bool:
    """Whether it is a pity that a change is lost."""
    event = change.event
    if event.action.startswith(MEANT_INSIDE) or event.effect == "untracked":
        return False
    if any(change.target.cls.derives_from(scratch) for scratch in SCRATCH):
        return False
    if scope.row.name in ABSTRACT:
        # A forward pass that counts or averages is run for the shapes; what the function itself writes is meant.
        return event.effect == "write" and event.frame is scope.frame
    if event.effect != "draw" and event.state != "RngCount":
        return not _seeds(event)
    if not change.merged and refuses_streams(scope):
        return False
    held = scope.frame.env.lookup(change.root) if scope.frame is not None else None
    own = held is not None and isinstance(held[1], Obj) and is_stream(held[1])
    return not own and not any(map(_seeds, scope.changes))


def _seeds(change: Mutated) -> bool:
    """Whether a change makes streams begin anew: what a function draws after that, nobody draws again."""
    target, action = change.target, change.action
    if not isinstance(target, Obj) or action.startswith(RESEEDING):
        return action.startswith(RESEEDING)
    if action.startswith(SETTING):
        attr = attribute_of(target, action.removeprefix(SETTING).removesuffix("`"))
        return attr is not None and any(isinstance(each, Obj) and is_stream(each) for each in options(attr.value))
    return change.effect == "write" and target.cls.derives_from("nnx.RngState")


RESEEDING = "`nnx.reseed("


MEANT_INSIDE = ("`.train(", "`.eval(", "`.set_attributes(", "`.sow(", "`.perturb(", "`.set_metadata(", "`nnx.reseed(")
"""Changes that a function may make for itself."""


SCRATCH = ("nnx.Cache", "nnx.Intermediate")
"""Variables that a function may well fill for itself: it decodes with a cache, and returns the tokens."""


def _is_step(change: Change) -> bool:
    return change.event.effect == "call" and change.target.cls.derives_from("nnx.Optimizer")


# -- what nnx transforms do not bring back -----------------------------------------------------------------------------


def keeps(event: Ran) -> bool:
    """Whether an ``nnx`` transform writes back what its function changes."""
    return bool(event.scope.changes) and event.scope.row.arguments is Arguments.KEPT


@judges(rules.LOST_METADATA, Ran, when=keeps)
def lost_metadata(event: Ran, report: Reporter) -> None:
    scope = event.scope
    if scope.row.name != "nnx.jit" or not scope.applied.modes.writes_back:
        return
    for item in changes_of(event, "`.set_metadata(...)`"):
        if item.target.cls.is_variable and not carried(event, item):
            report(item.module, item.node, name=item.name, transform=scope.text, action=item.event.action)


@judges(rules.LOST_STRUCTURE, Ran, when=keeps)
def lost_structure(event: Ran, report: Reporter) -> None:
    scope = event.scope
    modes = scope.applied.modes
    if modes.graph is not False and modes.updates is not False:
        return
    for item in changes_of(event, SETTING):
        if item.event.effect == "write" and not item.merged and not carried(event, item):
            fix = partial(_held_in_variable, item.target, item.event.action, item.module)
            report(item.module, item.node, fix=fix, name=item.name, transform=scope.text, action=item.event.action)


def _held_in_variable(target: Obj, action: str, module: Module) -> Fix | None:
    name = action.removeprefix("setting `.").removesuffix("`")
    attr = attribute_of(target, name)
    return as_variable(attr.first, module, name) if attr is not None and attr.first is not None else None
