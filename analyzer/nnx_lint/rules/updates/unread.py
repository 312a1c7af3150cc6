"""Results that are bound to a name which nothing reads (NNX225): the name should have been another one.

``new = jax.lax.pmean(grads, "batch")``, ``ema = self.update_ema()`` and ``state.apply_gradients(...)`` change nothing:
where no statement reads what they return, the function goes on with what was there before. So does ``count = ...`` in
the place of ``self.count[...] = ...``, and a name of a walk that is bound to something else.

Invariants: the call does nothing but return something new, which is computed from values and not from shapes; a name
that begins with an underscore says that nobody wants the value.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.events import Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.modules import Env
from nnx_lint.model.states import TransformationVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Ext, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.bindings import Assignment, bound_to, only_target, pairs_of, target_of, value_of
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    called_as,
    canonical_of,
    enclosing,
    in_test,
    is_measured,
    is_own,
    keyword_node,
    outer_names,
    reads_of,
    resolved,
)
from nnx_lint.rules.readers import bound_next, reads_after
from nnx_lint.rules.updates.discarded import MAPS, made_by, new_value, returned_by
from nnx_lint.syntax.binding import assigned_names, is_name
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

COMPUTED = (
    "jax.lax.pmean",
    "jax.lax.psum",
    "jax.lax.stop_gradient",
    "jax.lax.with_sharding_constraint",
    "nnx.from_flat_state",
    "nnx.merge_state",
    "optax.apply_updates",
    "optax.incremental_update",
)
"""Functions that nobody calls to look whether they work."""

RECORDS = (".apply_gradients", ".replace", ".restore")
"""Methods that give a record or a Variable anew, or what a checkpoint holds."""


def may_be_unread(event: Called) -> bool:
    """Whether a function calls something that may do nothing but return a value."""
    func, callee = event.frame.func, event.callee
    if func is None or not isinstance(func.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    if isinstance(callee, BoundMethod):
        if callee.func is None:
            return event.subject in RECORDS  # other methods give parts of a State that are looked at
        callee = callee.func
    return not isinstance(callee, FuncVal) or returned_by(callee.node) is not None


@judges_calls(rules.UNUSED_RESULT, *COMPUTED, *RECORDS, *MAPS, FuncVal, BoundMethod, when=may_be_unread)
def result_never_read(event: Called, report: Reporter) -> None:
    """The result has a name that nothing reads, because it should have been another one."""
    frame, module = event.frame, event.frame.module
    outer = next(ancestors(module, event.node), None) if event.subject == ".restore" else None
    whole = isinstance(outer, ast.Subscript) and outer.value is event.node
    bound = bound_to(module, outer if whole and outer is not None else event.node)
    func = frame.func.node if frame.func is not None else None
    target = bound.target if bound is not None else None
    if func is None or bound is None or not isinstance(target, ast.Name) or target.id.startswith("_"):
        return
    over = event.subject in COMPUTED and _is_bound_over(frame, func, target, bound.statement)
    if not over and not _is_unread(frame, func, target):
        return
    callee = event.callee.func if isinstance(event.callee, BoundMethod) else event.callee
    if is_measured(frame.env, func):
        return
    made = made_by(callee) if isinstance(callee, FuncVal) else event.node
    env = callee.env if isinstance(callee, FuncVal) else frame.env
    result = new_value(event) if isinstance(made, ast.Call) and isinstance(env, Env) and _computes(env, made) else None
    if result is not None:
        mend = f"nothing reads `{target.id}`{' before it is bound anew' if over else ''}"
        report(module, event.node, name=event.name, result=f"returns {result}", mend=mend)


@judges_calls(rules.UNUSED_RESULT, ".restore")
def part_never_read(event: Called, report: Reporter) -> None:
    """One of several items that a checkpoint is restored by, ``Composite(params=..., opt_state=...)``, goes nowhere."""
    frame, module = event.frame, event.frame.module
    asked = keyword_node(event.node, "args")
    bound = bound_to(module, event.node) if isinstance(asked, ast.Call) else None
    func = frame.func.node if frame.func is not None else None
    target = bound.target if bound is not None else None
    if func is None or not isinstance(target, ast.Name) or not isinstance(asked, ast.Call) or in_test(frame):
        return
    if canonical_of(frame.env, asked.func) != "orbax.checkpoint.args.Composite":
        return
    read = [_part_of(module, each) for each in reads_of(func, target.id)]
    if not read or None in read or not is_own(module, func, target):
        return
    for item in asked.keywords:
        made = value_of(module, item.value) or item.value
        restores = canonical_of(frame.env, made.func) if isinstance(made, ast.Call) else None
        if item.arg is not None and item.arg not in read and restores in RESTORING:
            mend = f"nothing reads `{target.id}.{item.arg}`: put it into its object by `nnx.update`"
            report(module, item, name=event.name, result=f"returns `{item.arg}` with the rest", mend=mend)


RESTORING = frozenset({"orbax.checkpoint.args.PyTreeRestore", "orbax.checkpoint.args.StandardRestore"})
"""What asks for a tree of a checkpoint, which comes back as a new one; an iterator of data is restored in place."""


def _part_of(module: Module, read: ast.Name) -> str | None:
    """The one part of a record or dict that a read of it goes on with."""
    outer = next(ancestors(module, read), None)
    if isinstance(outer, ast.Attribute):
        return outer.attr
    place = outer.slice if isinstance(outer, ast.Subscript) and outer.value is read else None
    return place.value if isinstance(place, ast.Constant) and isinstance(place.value, str) else None


MASKS = ("nnx.combine_masks", "nnx.make_attention_mask", "nnx.make_causal_mask")
"""Functions that make masks, which are of use to a layer that gets them only."""


def binds_layer(event: Called) -> bool:
    """Whether a function calls a layer, or makes a mask, and has a name for the result."""
    if event.frame.func is None or not isinstance(event.callee, (Ext, Obj)):
        return False
    return isinstance(target_of(event.frame.module, event.node), ast.Name)


@judges_calls(rules.UNUSED_RESULT, "()", *MASKS, when=binds_layer)
def layer_for_nobody(event: Called, report: Reporter) -> None:
    """``h = self.norm(x)``, and the forward pass goes on with ``x``; ``mask = ...``, and no layer gets it."""
    frame, module = event.frame, event.frame.module
    target = target_of(module, event.node)
    if frame.func is None or not isinstance(target, ast.Name) or target.id.startswith("_"):
        return
    cls = called_as(frame)
    of_module = cls is not None and cls.derives_from("nnx.Module")
    if of_module and isinstance(event.callee, Obj) and _is_lost_each_round(module, event.node, target):
        mend = f"each round begins with the same value: give the layer `{target.id}`"
        report(module, event.node, name=event.name, result="returns a new array", mend=mend)
        return
    if not _is_unread(frame, frame.func.node, target):
        return
    if event.subject in MASKS or new_value(event) is not None:
        mend = f"nothing reads `{target.id}`: give it to what comes next"
        report(module, event.node, name=event.name, result="returns a new array", mend=mend)


def _is_lost_each_round(module: Module, call: ast.AST, target: ast.Name) -> bool:
    """Whether a loop over layers calls each of them with what none of them has given, and keeps the last result only:
    ``for layer in self.layers: x = layer(inputs)``.
    """
    statement = next(ancestors(module, call), None)
    loop = next(ancestors(module, statement), None) if statement is not None else None
    if not isinstance(loop, ast.For) or statement not in loop.body or not isinstance(call, ast.Call):
        return False
    layers = {part.id for part in walk(loop.target) if isinstance(part, ast.Name)}
    if not isinstance(call.func, ast.Name) or call.func.id not in layers or loop.orelse:
        return False
    inside = [part for each in loop.body for part in walk(each)]
    if any(
        isinstance(part, (ast.Break, ast.Return, ast.Yield, ast.YieldFrom, ast.Raise, ast.Assert)) for part in inside
    ):
        return False
    named = [part for part in inside if is_name(part, target.id)]
    given = {part.id for part in walk(call) if isinstance(part, ast.Name)} - {call.func.id}
    return len(named) == 1 and given.isdisjoint(assigned_names([loop]))


@judges_calls(rules.UNUSED_RESULT, "copy.deepcopy", "nnx.clone", "nnx.merge")
def copy_switched(event: Called, report: Reporter) -> None:
    """``nnx.clone(model).eval()`` as a statement: the copy is switched, and gone."""
    frame, module = event.frame, event.frame.module
    attribute, call, statement = _around(module, event.node)
    if not isinstance(attribute, ast.Attribute) or attribute.attr not in SWITCHING or not isinstance(call, ast.Call):
        return
    if call.func is attribute and isinstance(statement, ast.Expr) and not in_test(frame):
        mend = f"bind it to a name first: what is switched by `.{attribute.attr}()` is the copy, which nobody has"
        report(module, event.node, name=event.name, result="returns a new object", mend=mend)


def _around(module: Module, node: ast.AST) -> list[ast.AST | None]:
    """The three nodes around another one, the innermost first."""
    outers = ancestors(module, node)
    return [next(outers, None) for _ in range(3)]


METRICS = tuple(f"nnx.metrics.{name}" for name in ("Accuracy", "Average", "MultiMetric", "Welford"))


@judges_calls(rules.UNUSED_RESULT, *METRICS)
def metric_for_nobody(event: Called, report: Reporter) -> None:
    """A metric that a function makes, updates and leaves behind."""
    frame, module = event.frame, event.frame.module
    bound = bound_to(module, event.node)
    target, func = bound.target if bound is not None else None, frame.func.node if frame.func is not None else None
    if func is None or not isinstance(target, ast.Name) or target.id in outer_names(func) or in_test(frame):
        return
    reads = reads_of(func, target.id) if is_own(module, func, target) else []
    if reads and all(_is_told(module, read) for read in reads):
        mend = "make it before the first step, hand it to the function, and compute it after the last step"
        report(module, event.node, name=event.name, result="makes a metric that nothing computes,", mend=mend)


def _is_told(module: Module, read: ast.AST) -> bool:
    """Whether a metric is updated or reset, and nothing else."""
    attribute, call, statement = _around(module, read)
    called = isinstance(attribute, ast.Attribute) and isinstance(call, ast.Call) and call.func is attribute
    told = isinstance(attribute, ast.Attribute) and attribute.attr in {"reset", "update"}
    return called and told and isinstance(statement, ast.Expr)


SWITCHING = frozenset({"eval", "set_attributes", "train"})
"""Methods of modules that change their mode in place."""


def _computes(env: Env, call: ast.Call) -> bool:
    """Whether a call makes new values of values: one that maps a tree may make zeros, or say what there is."""
    name = canonical_of(env, call.func)
    if name not in MAPS:
        return name is None or name in COMPUTED
    mapped = call.args[0] if call.args else call
    body = mapped.body if isinstance(mapped, ast.Lambda) else mapped
    known = resolved(env, mapped)
    said = known.node.body if isinstance(known, FuncVal) and isinstance(known.node, ast.FunctionDef) else [body]
    if any(isinstance(node, ast.BinOp) for each in said for node in walk(each)):
        return True
    applied = canonical_of(env, body.func if isinstance(body, ast.Call) else body)
    return applied is not None and applied not in KEEPING


KEEPING = frozenset(
    f"jax.numpy.{name}"
    for name in (
        "array",
        "asarray",
        "copy",
        "empty_like",
        "full_like",
        "ndim",
        "ones_like",
        "shape",
        "size",
        "zeros_like",
    )
)
"""Functions that copy values, or ask for shapes alone."""


@judges_calls(rules.UNUSED_RESULT, ".update")
def updates_never_read(event: Called, report: Reporter) -> None:
    """``updates, state = tx.update(grads, state)``, and nothing reads the updates: the parameters stay as they are."""
    callee, frame = event.callee, event.frame
    func = frame.func.node if frame.func is not None else None
    if func is None or len(event.args) < 2 or isinstance(present(getattr(callee, "receiver", UNKNOWN)), Obj):
        return
    bound = bound_to(frame.module, event.node)
    target = bound.target if bound is not None else None
    updates = target.elts[0] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else None
    if not isinstance(updates, ast.Name) or updates.id.startswith("_") or not _is_unread(frame, func, updates):
        return
    if (_is_of_transformation(event) or _is_named_so(event, target, updates)) and not is_measured(frame.env, func):
        mend = (
            f"nothing reads `{updates.id}`: add them to the parameters by `optax.apply_updates`, and go on with these"
        )
        report(frame.module, event.node, name=event.name, result="returns what is to be added", mend=mend)


@judges_calls(rules.UNUSED_RESULT, ".update")
def state_never_read(event: Called, report: Reporter) -> None:
    """``_, state = tx.update(grads, state)``, of a transformation that averages, and nothing reads the state either."""
    frame = event.frame
    func = frame.func.node if frame.func is not None else None
    bound = bound_to(frame.module, event.node) if func is not None and len(event.args) > 1 else None
    names = bound.target.elts if bound is not None and isinstance(bound.target, ast.Tuple) else []
    if func is None or len(names) != 2 or not is_name(names[0], "_") or not isinstance(names[1], ast.Name):
        return
    state = names[1]
    if state.id.startswith("_") or not _is_unread(frame, func, state) or not _is_of_transformation(event):
        return
    if not is_measured(frame.env, func):
        mend = f"nothing reads `{state.id}`: put what it holds where it belongs, such as by `nnx.update(model, ...)`"
        report(frame.module, event.node, name=event.name, result="returns a new state", mend=mend)


def _is_of_transformation(event: Called) -> bool:
    """Whether the method is certainly that of a transformation of optax, such as the one that an optimizer keeps."""
    callee, node = event.callee, event.node
    if isinstance(callee, BoundMethod) and isinstance(callee.receiver, TransformationVal):
        return True
    kept = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    owner = resolved(event.frame.env, kept.value) if isinstance(kept, ast.Attribute) and kept.attr == "tx" else None
    return isinstance(owner, Obj) and owner.cls.derives_from("nnx.Optimizer")


def _is_named_so(event: Called, target: ast.expr | None, updates: ast.Name) -> bool:
    """Whether names say that gradients and the state of an optimizer are given: a buffer has an ``update``, too."""
    args = event.node.args if isinstance(event.node, ast.Call) else []
    if not updates.id.endswith("updates") or len(args) < 2 or not isinstance(target, ast.Tuple):
        return False
    return "grad" in text_of(args[0]).lower() or text_of(args[1]) == text_of(target.elts[1])


# -- names in the place of what they stand for -------------------------------------------------------------------------


INDEXED = "an index"
"""How a Variable is used that is read by ``variable[...]``."""


@judges(rules.UNUSED_RESULT, Used, of=(Obj,))
def named_like_variable(event: Used, report: Reporter) -> None:
    """``count = self.count[...] + 1``, and nothing reads the name: the Variable keeps its value."""
    frame, node = event.frame, event.node
    variable = node.value if isinstance(node, ast.Subscript) else None
    func = frame.func.node if frame.func is not None else None
    value = event.value
    if func is None or not isinstance(variable, ast.Attribute) or not isinstance(value, Obj) or event.what != INDEXED:
        return
    if not value.cls.is_variable:
        return
    statement = next((outer for outer in ancestors(frame.module, node) if not isinstance(outer, ast.expr)), None)
    target = only_target(statement) if isinstance(statement, Assignment) else None
    if not is_name(target, variable.attr) or not isinstance(statement, Assignment) or statement.value is node:
        return
    if _is_unread(frame, func, target):
        mend = f"write it into the Variable: `{text_of(variable)}[...] = ...`"
        report(frame.module, statement, name=f"{target.id} = ...", result="binds a name", mend=mend)


def _is_bound_over(frame: Frame, func: ast.AST, target: ast.Name, made: Assignment) -> bool:
    """Whether a name of a function is bound anew in the same block, and nothing reads it before."""
    module = frame.module
    again = bound_next(module, func, target.id, made) is not None and not reads_after(module, func, target.id, made)
    own = again and is_own(module, func, target) and target.id not in outer_names(func) and not in_test(frame)
    # A function inside of it may read the name whenever it is called.
    return own and all(enclosing(module, read, *FUNCTIONS) is func for read in reads_of(func, target.id))


def _is_unread(frame: Frame, func: ast.AST, target: ast.Name) -> bool:
    """Whether a name belongs to a function, which never reads it."""
    read = reads_of(func, target.id) or target.id in outer_names(func)
    return not read and is_own(frame.module, func, target) and not in_test(frame)


@judges_calls(rules.UNUSED_RESULT, "nnx.to_flat_state")
def name_bound_in_flat_state(event: Called, report: Reporter) -> None:
    """``for path, variable in nnx.to_flat_state(state): variable = ...``: the Variable of the State stays as it is."""
    _bound_in_walk(event, ast.expr, "write into what has the name: `{name}[...] = ...`", report)


@judges_calls(rules.UNUSED_RESULT, "nnx.iter_children", "nnx.iter_graph", "nnx.iter_modules")
def name_bound_in_walk(event: Called, report: Reporter) -> None:
    """``module = nnx.identity`` in a walk through a model: the model keeps the module that had the name."""
    mend = "set the attribute of the module that holds it, or make another model by `nnx.recursive_map`"
    _bound_in_walk(event, MODULES, mend, report)


LEAVES = ("jax.tree.leaves", "jax.tree_util.tree_leaves")


@judges_calls(rules.UNUSED_RESULT, *LEAVES)
def name_bound_in_leaves(event: Called, report: Reporter) -> None:
    """``for target, source in zip(leaves(a), leaves(b)): target = ...``: the tree keeps the leaf that had the name."""
    mend = "make a new tree with `jax.tree.map`, and put it in the place of the old one: `nnx.update(model, new)`"
    _bound_in_walk(event, ast.expr, mend, report)


def _bound_in_walk(
    event: Called, kinds: type[ast.expr] | tuple[type[ast.expr], ...], mend: str, report: Reporter
) -> None:
    module = event.frame.module
    loop = next((outer for outer in ancestors(module, event.node) if not isinstance(outer, ast.Call)), None)
    if not isinstance(loop, ast.For) or event.node not in walk(loop.iter) or in_test(event.frame):
        return
    scope = enclosing(module, loop, *FUNCTIONS) or module.tree
    met = {node.id for node in walk(loop.target) if isinstance(node, ast.Name)}
    statements = (part for statement in loop.body for part in walk(statement) if isinstance(part, Assignment))
    for made, target, value in ((each, *pair) for each in statements for pair in pairs_of(each)):
        if not isinstance(target, ast.Name) or target.id not in met or not isinstance(value, kinds):
            continue
        if all(read.lineno <= (made.end_lineno or made.lineno) for read in reads_of(scope, target.id)):
            shown = text_of(value) if isinstance(value, MODULES) else "..."
            name = f"{target.id} = {shown}"
            report(module, made, name=name, result="binds a name", mend=mend.format(name=target.id))


MODULES = (ast.Attribute, ast.Lambda, ast.Name)
"""What gives a module or a function that is there already; what is made for nothing is found where it is made."""
