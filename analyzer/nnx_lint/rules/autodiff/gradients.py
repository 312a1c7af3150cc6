"""What is differentiated and what comes back: modules without Params (NNX460), modules as a whole (NNX461), results of
another structure (NNX462, NNX463, NNX412), gradients as modules (NNX464), derivatives that nobody defined (NNX443), and
an argument that went (NNX468).
"""

from __future__ import annotations

import ast
from collections.abc import MutableMapping
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.model.callables import BoundMethod, FuncVal, Transformed
from nnx_lint.model.classes import ClassBase, LibClass, UserClass, library_class, method_of
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.crossing import literal_positions
from nnx_lint.model.events import Called, Ran, RanInside, Returned, Unpacked
from nnx_lint.model.expressions import text_of
from nnx_lint.model.leaves import AtLeast, contents
from nnx_lint.model.operations import EXAMPLES
from nnx_lint.model.states import PartVal, StateVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Array, ArrayAttr, ClassVal, Const, Obj, Unknown, Value
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.autodiff.protocol import CUSTOM
from nnx_lint.rules.bindings import pairs_of, target_of, value_of
from nnx_lint.rules.callees import compiled_by
from nnx_lint.rules.edits import replace, unsafe
from nnx_lint.rules.filters.coverage import leaves_of
from nnx_lint.rules.layers.operands import is_prepared
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    bound_in,
    canonical_of,
    enclosing,
    is_asked_for,
    is_tried,
    names_of_parameters,
    reads_of,
    resolved,
    results_of,
    statement_of,
)
from nnx_lint.rules.spelling import spelled
from nnx_lint.rules.traces.mends import COMPILING
from nnx_lint.rules.variables.integers import leaf_of_integers
from nnx_lint.rules.variables.promoting import as_params
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules import layers
from nnx_rules._filter_logic import Leaf
from nnx_rules.rules import autodiff as rules
from nnx_rules.rules.transforms import AUX_PAIR, MISSING_VJP_RULES
from nnx_rules.transforms import DIFFERENTIATING
from nnx_rules.versions import STATE_METHODS

if TYPE_CHECKING:
    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

PARAM = library_class("nnx.Param")
RNG_STATE = library_class("nnx.RngState")
NNX_GRAD = frozenset({"nnx.grad", "nnx.value_and_grad"})
JACOBIANS = frozenset({"jax.jacfwd", "jax.jacrev", "jax.hessian"})
SUBJECTS = ("nnx.grad", "nnx.value_and_grad", "nnx.vjp", "jax.grad", "jax.value_and_grad", "jax.vjp")


def differentiates(event: Called) -> bool:
    """Whether a function that computes a gradient is called."""
    callee = event.callee
    return isinstance(callee, Transformed) and compiled_by(callee).applied.row.name in DIFFERENTIATING | JACOBIANS


def differentiated(event: Called) -> list[tuple[Value, ast.expr]]:
    """The arguments that are certainly differentiated as a whole, or by the default filter."""
    if not isinstance(event.callee, Transformed) or None in event.args:
        return []
    callee = compiled_by(event.callee)
    positions = literal_positions(callee.applied.keywords.get("argnums"), default=(0,))
    if positions is None or "**" in callee.applied.keywords:
        return []
    found = [(event.args[place], event.nodes[place]) for place in positions if 0 <= place < len(event.args)]
    return [(value, node) for value, node in found if value is not None and not isinstance(node, ast.Starred)]


# -- what is differentiated --------------------------------------------------------------------------------------------


@judges_calls(rules.NOTHING_TO_TRAIN, Transformed, when=differentiates)
def gradient_of_no_params(event: Called, report: Reporter) -> None:
    if not isinstance(event.callee, Transformed):
        return
    callee = compiled_by(event.callee)
    transform, module = callee.applied.text, event.frame.module
    for value, node in differentiated(event):
        if isinstance(value, StateVal) and (kind := _untrained(value)) is not None:
            what = rules.NO_STATE_TO_TRAIN.format(name=text_of(node), kind=kind)
            report(module, node, transform=transform, what=what, mend=rules.NAMES_OF_STATES)
        if callee.applied.row.name not in NNX_GRAD:
            continue
        if not isinstance(value, Obj) or not value.cls.is_pytree or value.cls.is_variable:
            continue
        if value.cls.derives_from("nnx.Rngs"):
            continue
        found = contents(value, event.frame, "array")
        if not found.complete or not found.leaves or any(_may_be_param(leaf) for leaf in found.leaves):
            continue
        other = next((leaf.type.name for leaf in found.leaves if isinstance(leaf.type, ClassBase)), "...")
        what = rules.NO_PARAMS.format(name=text_of(node), cls=value.cls.name)
        mend = rules.TRAIN_OR_SAY_WHAT.format(kind=f"nnx.{other}" if library_class(f"nnx.{other}") else other)
        fix = partial(as_params, value, module) if other == "..." else None
        report(module, node, fix=fix, transform=transform, what=what, mend=mend)


UNTRAINED = tuple(f"nnx.{name}" for name in ("BatchStat", "Cache", "Intermediate", "RngState", "RngKey", "RngCount"))
"""Types of Variables that no training step changes by gradients."""


def _untrained(state: StateVal) -> str | None:
    """The type of Variables that a State was taken for, where these are none to train."""
    cls = state.wanted.cls if isinstance(state.wanted, ClassVal) else None
    return cls.canonical if isinstance(cls, LibClass) and cls.canonical in UNTRAINED else None


def _may_be_param(leaf: Leaf) -> bool:
    kind = leaf.type.cls if isinstance(leaf.type, AtLeast) else leaf.type
    if not isinstance(kind, ClassBase):
        return False
    return PARAM is None or PARAM in kind.ancestors or (isinstance(leaf.type, AtLeast) and kind in PARAM.ancestors)


@judges_calls(rules.JAX_GRAD_OF_STREAMS, Transformed, when=differentiates)
def jax_grad_of_integers(event: Called, report: Reporter) -> None:
    callee = compiled_by(event.callee) if isinstance(event.callee, Transformed) else None
    if callee is None or callee.applied.row.name in NNX_GRAD:
        return
    if "allow_int" in callee.applied.keywords:
        return
    for value, node in differentiated(event):
        state = value if isinstance(value, StateVal) and value.made is None else None
        model = present(state.of) if state is not None else value
        if not isinstance(model, Obj) or not model.cls.is_pytree:
            continue
        value = state or model
        found = leaves_of(value, event.frame)
        streams = [
            leaf for leaf in found.leaves if isinstance(leaf.type, ClassBase) and RNG_STATE in leaf.type.ancestors
        ]
        leaf = streams[0] if streams else leaf_of_integers(value, event.frame)
        if leaf is None:
            continue
        path = ".".join([text_of(node), *map(str, _known(leaf))])
        name, fix = _nnx_counterpart(event.frame, callee.applied)
        mend, fix = (rules.SPLIT_OFF, None) if state is not None else (rules.PARAMS_ONLY.format(name=name), fix)
        transform = callee.applied.text
        report(event.frame.module, node, fix=fix, transform=transform, name=text_of(node), path=path, mend=mend)


def _known(leaf: Leaf) -> tuple[object, ...]:
    """The path of a leaf, as far as it is known."""
    return leaf.path if isinstance(leaf.path, tuple) else ()


def _nnx_counterpart(frame: Frame, applied: TransformVal) -> tuple[str, Fix | None]:
    short = applied.row.name.rpartition(".")[2]
    name = spelled(f"nnx.{short}", frame.module, frame.env) if f"nnx.{short}" in NNX_GRAD else None
    node = applied.node.func if isinstance(applied.node, ast.Call) else applied.node
    known = isinstance(node, (ast.Name, ast.Attribute)) and canonical_of(applied.module.env, node) == applied.row.name
    if name is None or not known or applied.module is not frame.module:
        return name or "nnx.grad", None
    return name, Fix(f"Use `{name}`", (Edit(frame.module.source.span(node), name),), Applicability.UNSAFE)


# -- results -----------------------------------------------------------------------------------------------------------


def has_aux(applied: TransformVal) -> bool | None:
    """Whether a gradient comes with auxiliary values; ``None`` where that is not known."""
    given = applied.keywords.get("has_aux", applied.keywords.get("**", Const(False)))
    return given.value if isinstance(given, Const) and isinstance(given.value, bool) else None


def transformed_by(env: object, node: ast.expr) -> Transformed | None:
    """The function under a transform that an expression names."""
    from nnx_lint.model.modules import Env

    value = resolved(env, node) if isinstance(env, Env) else None
    return value if isinstance(value, Transformed) else None


def unpacks_call(event: Unpacked) -> bool:
    """Whether the result of a call is unpacked."""
    return event.count is not None and isinstance(event.value_node, ast.Call)


class Exchanged:
    """The values that names for gradients take: what becomes of them is the same mistake."""

    def __init__(self) -> None:
        self.values: list[Value] = []


def unpacks_result(event: Unpacked) -> bool:
    """Whether the result of a call may be unpacked, or what has a name."""
    return event.count is not None and isinstance(event.value_node, (ast.Call, ast.Name))


@judges(rules.GRADIENT_RESULTS, Unpacked, when=unpacks_result)
def gradient_results(event: Unpacked, report: Reporter) -> None:
    node, target = event.value_node, event.target
    call = value_of(event.frame.module, node) if isinstance(node, ast.Name) else node
    if not isinstance(call, ast.Call) or not isinstance(target, (ast.Tuple, ast.List)) or event.count is None:
        return
    name, aux, text = gradient_call(event.frame, call.func)
    if name is None or aux is None:
        return
    module, source, valued = event.frame.module, event.frame.module.source, name.endswith("value_and_grad")
    say = partial(report, module, target, transform=text, aux=" with `has_aux=True`" if aux else "", verb="returns")
    names = [source.segment(item) for item in target.elts]
    if valued and aux and event.count == 3:
        # The names say which of them is for the gradients, wherever it stands: `loss, grads, aux`.
        named = [place for place, name in enumerate(names) if "grad" in name.lower()]
        gradients = names.pop(named[0] if len(named) == 1 else -1)
        mend = f"({', '.join(names)}), {gradients}"
        fix = Fix("Nest the names", (Edit(source.span(target), mend),))
        say(fix=fix, results=AUX_WITH_VALUE, problem="3 names take them", mend=mend)
    elif event.count == 2 and (valued or aux) and _is_named(names[0 if valued else 1], names[1 if valued else 0]):
        mend = f"{names[1]}, {names[0]}"
        results = (AUX_WITH_VALUE if aux else "`value, gradients`") if valued else "`gradients, aux`"
        swap = unsafe("Swap the names", replace(source, target, mend))
        report.memory(Exchanged).values += event.value.items if isinstance(event.value, Seq) else []
        say(fix=swap, results=results, problem=f"`{names[0]}` takes the first", mend=mend)
    elif valued and not aux and event.count == 2 and isinstance(target.elts[0], (ast.Tuple, ast.List)):
        known = event.value.items[0] if isinstance(event.value, Seq) and event.value.exact else None
        if not isinstance(known, Seq):  # NNX463 says it of a function that is known to return a tuple
            problem, mend = f"`{names[0]}` takes the value, which is one number", f"{names[0]}, {names[1]}"
            say(results="`value, gradients` without `has_aux=True`", problem=problem, mend=mend)
    elif not valued and not aux and event.count == 2 and _is_named(names[1], names[0]) and names[0] in LOSSES:
        if not isinstance(event.value, StateVal) and not _differentiates_several(call):  # NNX315 says it of a State
            problem = f"`{names[0]}` takes a part of them: `value_and_grad` returns the value, too"
            say(results="`gradients`", problem=problem, mend=names[1])
    elif event.count != 2 and (valued or aux):
        mend = ("(value, aux), gradients" if aux else "value, gradients") if valued else "gradients, aux"
        say(results=f"`{mend}`", problem=f"{event.count} names take them", mend=mend)
    elif valued and aux and _is_used_as_number(event.frame, target, target.elts[0]):
        mend, problem = f"({names[0]}, _)", f"`{names[0]}`, which takes the pair, is used as a number"
        fix = Fix("Take the value", (Edit(source.span(target.elts[0]), mend),))
        say(fix=fix, results=AUX_WITH_VALUE, problem=problem, mend=f"{mend}, {names[1]}")


LOSSES = frozenset({"loss", "loss_val", "loss_value", "total_loss", "train_loss", "value"})
"""Names that stand for the value that is differentiated, and for no gradient by one of several arguments."""


def _differentiates_several(call: ast.Call) -> bool:
    """Whether ``argnums`` is given where the call is written: there are gradients for each of several arguments."""
    func = call.func
    return not isinstance(func, ast.Call) or len(func.args) > 1 or any(item.arg != "has_aux" for item in func.keywords)


def _is_named(name: str, other: str) -> bool:
    """Whether a name says that it is for gradients, which ``grad_penalty`` is not, and another one does not."""
    named = name.lower().endswith(("grad", "grads", "gradient", "gradients"))
    return named and len(other) > 1 and not other.lower().startswith(("d_", "g_")) and "grad" not in other.lower()


AUX_WITH_VALUE = "`(value, aux), gradients`"
"""What a call returns of the value and the gradients of a function that has auxiliary values."""


@judges_calls(rules.GRADIENT_RESULTS, "jax.lax.scan")
def pair_of_scan(event: Called, report: Reporter) -> None:
    """One name for the carry and the outputs, which the program takes for a number."""
    target = target_of(event.frame.module, event.node)
    if isinstance(target, ast.Name) and _is_used_as_number(event.frame, target, target):
        problem, mend = f"`{target.id}`, which takes both, is used as a number", f"{target.id}, _"
        say = partial(report, event.frame.module, target, transform=event.name, aux="", verb="returns")
        say(results="`carry, ys`", problem=problem, mend=mend)


def _is_used_as_number(frame: Frame, target: ast.expr, bound: ast.expr) -> bool:
    """Whether the program does with a name, which is bound once, what one does with a number only."""
    scope = enclosing(frame.module, target, *FUNCTIONS) or frame.module.tree
    if not isinstance(bound, ast.Name) or bound_in(scope)[bound.id] != 1 or bound.id in _own_parameters(scope):
        return False
    return any(_is_number_here(frame, use) for use in reads_of(scope, bound.id))


def _own_parameters(scope: ast.AST) -> set[str]:
    return names_of_parameters(scope) if isinstance(scope, FUNCTIONS) else set()


def _is_number_here(frame: Frame, use: ast.Name) -> bool:
    parent = next(ancestors(frame.module, use), None)
    if isinstance(parent, ast.BinOp):
        other = parent.right if parent.left is use else parent.left
        return not isinstance(parent.op, ast.Mod) and not isinstance(other, (ast.Tuple, ast.Name, ast.Call))
    if isinstance(parent, ast.AugAssign):
        return parent.value is use and not isinstance(parent.target, ast.Subscript) and _begins_as_number(frame, parent)
    if isinstance(parent, ast.Attribute):
        return parent.attr in ARRAY_ATTRIBUTES
    if isinstance(parent, ast.FormattedValue):
        return parent.format_spec is not None
    if isinstance(parent, ast.keyword):
        call = next((item for item in ancestors(frame.module, use) if isinstance(item, ast.Call)), None)
        return call is not None and _is_metric_update(frame, call.func)
    name = canonical_of(frame.env, parent.func) if isinstance(parent, ast.Call) else None
    return name in NUMERIC and isinstance(parent, ast.Call) and use in parent.args


def _begins_as_number(frame: Frame, statement: ast.AugAssign) -> bool:
    """Whether a total begins as a literal number in the same function."""
    scope = enclosing(frame.module, statement, *FUNCTIONS) or frame.module.tree
    total = text_of(statement.target)
    begins = [value for node in walk(scope) for target, value in pairs_of(node) if text_of(target) == total]
    literal = (item.value for item in begins if isinstance(item, ast.Constant))
    return bool(begins) and sum(isinstance(item, (int, float)) for item in literal) == len(begins)


def _is_metric_update(frame: Frame, func: ast.expr) -> bool:
    """Whether a function is the ``update`` of metrics of the library."""
    owner = resolved(frame.env, func.value) if isinstance(func, ast.Attribute) and func.attr == "update" else None
    return isinstance(owner, Obj) and owner.cls.derives_from("nnx.metrics.Metric")


ARRAY_ATTRIBUTES = frozenset({"astype", "block_until_ready", "dtype", "item", "mean", "shape", "sum", "tolist"})
NUMERIC = frozenset({"builtins.float", "jax.numpy.isfinite", "jax.numpy.isnan", "jax.numpy.sqrt", "jax.numpy.exp"})


def gradient_call(frame: Frame, func: ast.expr) -> tuple[str | None, bool | None, str]:
    """The transform whose result an expression is, whether it has auxiliary values, and how it is written."""
    if isinstance(func, ast.Call):
        name = canonical_of(frame.env, func.func)
        if name in COMPILING and func.args:
            return gradient_call(frame, func.args[0])
        if name not in DIFFERENTIATING or any(item.arg is None for item in func.keywords):
            return None, None, ""
        given = next((item.value for item in func.keywords if item.arg == "has_aux"), ast.Constant(False))
        aux = given.value if isinstance(given, ast.Constant) and isinstance(given.value, bool) else None
        return (name, aux, text_of(func.func)) if len(func.args) <= 1 else (None, None, "")
    found = transformed_by(frame.env, func)
    while found is not None and found.applied.row.name in COMPILING and isinstance(found.func, Transformed):
        found = found.func  # whichever of its arguments are static
    if found is None or found.applied.row.name not in DIFFERENTIATING or "**" in found.applied.keywords:
        return None, None, ""
    return found.applied.row.name, has_aux(found.applied), found.applied.text


def running_loss(event: Returned) -> TransformVal | None:
    """The transform that computes the gradient of the very function that returns."""
    scope = event.frame.scope[-1] if event.frame.scope else None
    if scope is None or scope.frame is not event.frame:
        return None
    applied = next((each.applied for each in (scope, *scope.views()) if each.row.name in DIFFERENTIATING), None)
    return applied if applied is not None and "**" not in applied.keywords else None


def is_of_loss(event: Returned) -> bool:
    """Whether the very function returns whose gradient is computed."""
    return running_loss(event) is not None


@judges(rules.TUPLE_LOSS, Returned, when=is_of_loss)
def loss_is_tuple(event: Returned, report: Reporter) -> None:
    applied, value, frame = running_loss(event), event.value, event.frame
    if applied is None or has_aux(applied) is not False or frame.call is None or frame.caller is None:
        return
    if isinstance(value, Seq) and value.type == "tuple":
        given = f"a tuple of {len(value.items)}" if value.exact else "a tuple"
        fix = _with_aux(frame.caller.module, applied)
        function = frame.func.name if frame.func is not None else "it"
        mend = "pass `has_aux=True` if the first element is the loss"
        module, call = frame.caller.module, frame.call
        report(module, call, fix=fix, transform=applied.text, function=function, given=given, mend=mend)


def of_one_number(event: Ran) -> bool:
    """Whether a function under a derivative of one number has run."""
    return event.scope.row.name in DIFFERENTIATING


@judges(rules.TUPLE_LOSS, Ran, RanInside, when=of_one_number)
def loss_is_no_number(event: Ran, report: Reporter) -> None:
    applied, aux = event.scope.applied, has_aux(event.scope.applied)
    func = event.scope.frame.func if event.scope.frame is not None else None
    result = _loss_of(event.result) if aux else event.result
    if func is None or aux is None:
        return
    if isinstance(result, ArrayAttr):
        given, mend = f"the method `{result.name}` of an array", f"call it: `.{result.name}()`"
    elif isinstance(result, Const) and result.value is None:
        given, mend = "nothing", "end it with `return loss`"
    elif isinstance(result, DictVal):
        given, mend = "a dict", "return the loss first, `return loss, {...}`, and pass `has_aux=True`"
    elif isinstance(result, Seq) and aux:
        given, mend = f"a {result.type} in the place of the loss", "return the loss first, what else there is second"
    elif isinstance(result, Array) and (shape := _shape_of_many(event, result)) is not None:
        if _is_asked_before(event):
            return
        single = result.form is not None and result.form.shape is not None and result.form.shape[-1:] == (1,)
        first = "take the number out of it: `[0]`, of one example" if single else "take the mean: `.mean()`"
        given, mend = shape, f"{first}; or map over the examples: `jax.vmap(jax.grad(f))`"
    elif isinstance(result, Array) and _is_complex(result) and "holomorphic" not in applied.keywords:
        given, mend = "a complex one", "make it real: `jnp.abs(...)`, of all that is squared, or `.real`"
    else:
        return
    report(event.frame.module, event.node, transform=applied.text, function=func.name, given=given, mend=mend)


def _is_asked_before(event: Ran) -> bool:
    """Whether a function on the way to a derivative asks for shapes: it derives in that way what is a number only."""
    frame: Frame | None = event.frame
    place: ast.AST | None = event.node
    while frame is not None and place is not None:
        if is_prepared(frame, place):
            return True
        place = frame.call
        frame = frame.caller
    return False


def _is_complex(result: Array) -> bool:
    return result.form is not None and (result.form.dtype or "").startswith("complex")


def _loss_of(result: Value) -> Value:
    """The loss of a function that returns it with auxiliary values, where it is an array or a container."""
    pair = isinstance(result, Seq) and result.exact and len(result.items) == 2
    loss = result.items[0] if isinstance(result, Seq) and pair else UNKNOWN
    return loss if isinstance(loss, (Array, DictVal, Seq)) else UNKNOWN


def _shape_of_many(event: Ran, result: Array) -> str | None:
    """What an array is that certainly is no single number; ``None`` for one that may be.

    The loss of examples may be that of one alone, where something is mapped over examples.
    """
    shape = result.form.shape if result.form is not None else None
    if shape == (EXAMPLES,):
        return None if event.frame.module.mentions(*MAPPING) else "the loss of each example"
    sure = [item for item in shape or () if not str(item).startswith("*")]
    return f"an array of shape {layers.shown(shape)}" if shape and sure else None


MAPPING = ("vmap", "pmap", "shard_map", "xmap", "lax.map")
"""What maps a function over examples, by any name."""


@judges(AUX_PAIR, Returned, when=is_of_loss)
def aux_pair(event: Returned, report: Reporter) -> None:
    applied, value, frame = running_loss(event), event.value, event.frame
    if applied is None or has_aux(applied) is not True or frame.call is None or frame.caller is None or frame.doubts:
        return
    if isinstance(value, (Array, Const)):
        given = "one value"
    elif isinstance(value, Seq) and value.type == "tuple" and value.exact and len(value.items) != 2:
        given = f"a tuple of {len(value.items)}"
    elif isinstance(value, Unknown) and isinstance(event.node, ast.Return) and _is_computed(event.node.value):
        given = "one value"
    else:
        return
    report(frame.caller.module, frame.call, transform=applied.text, given=given)


@judges(AUX_PAIR, Ran, RanInside, when=of_one_number)
def aux_of_nothing(event: Ran, report: Reporter) -> None:
    """A function that has no `return`, which nothing says at its end."""
    applied, frame, result = event.scope.applied, event.scope.frame, event.result
    func = frame.func if frame is not None and isinstance(result, Const) and result.value is None else None
    if func is not None and has_aux(applied) is True and not results_of(func.node):
        report(event.frame.module, event.node, transform=applied.text, given="nothing")


def _is_computed(node: ast.expr | None) -> bool:
    """Whether arithmetic makes an expression what it is, of a kind that makes no tuple."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub)
    if not isinstance(node, ast.BinOp) or isinstance(node.left, ast.Tuple) or isinstance(node.right, ast.Tuple):
        return False
    return isinstance(node.op, (ast.Div, ast.Mult, ast.Pow, ast.Sub))


def _with_aux(module: Module, applied: TransformVal) -> Fix | None:
    call = applied.node
    if not isinstance(call, ast.Call) or applied.module is not module or not (call.args or call.keywords):
        return None
    end = module.source.span(call).end - 1
    return Fix("Pass `has_aux=True`", (Edit(Span(end, end), ", has_aux=True"),), Applicability.UNSAFE)


# -- gradients as modules ----------------------------------------------------------------------------------------------


def calls_of_state(event: Called) -> bool:
    """Whether something of a State is called."""
    return isinstance(event.owner, StateVal) and isinstance(event.callee, (PartVal, BoundMethod))


@judges_calls(rules.GRADIENT_AS_MODULE, PartVal, BoundMethod, when=calls_of_state)
def part_of_gradient_called(event: Called, report: Reporter) -> None:
    """What a State holds of a layer is called, or a method that the class of the module has."""
    module, node, model = event.frame.module, event.node, getattr(event.owner, "of", None)
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, ast.Attribute) or is_asked_for(module, node) or is_tried(module, node):
        return
    part = event.callee.of if isinstance(event.callee, PartVal) else None
    if isinstance(part, Obj) and part.cls.derives_from("nnx.Module"):
        report(module, node, name=event.name, problem="cannot be called")
    elif part is None and isinstance(model, Obj) and isinstance(model.cls, UserClass):
        if method_of(model.cls, func.attr) is None or not _is_no_method(func.attr):
            return
        report(module, node, name=text_of(func.value), problem=f"has no method `{func.attr}`")


def _is_no_method(name: str) -> bool:
    """Whether a State has no method of this name: it is a mapping, and has had more of its own."""
    return not hasattr(MutableMapping, name) and name not in STATE_METHODS and name != "raw_mapping"


# -- derivatives that nobody defined -----------------------------------------------------------------------------------


def calls_custom(event: Called) -> bool:
    """Whether a function with derivatives of its own is called."""
    return isinstance(event.callee, Transformed) and event.callee.applied.row.name in CUSTOM


@judges_calls(MISSING_VJP_RULES, Transformed, when=calls_custom)
def missing_vjp_rules(event: Called, report: Reporter) -> None:
    module, callee = event.frame.module, event.callee
    here = statement_of(module, event.node)
    if here is None or not isinstance(callee, Transformed) or not isinstance(callee.func, FuncVal):
        return
    maker = callee.applied.module
    chain = [event.frame, *(outer for outer, _ in event.frame.callers())]
    defined = [line for each in {maker, *(frame.module for frame in chain)} for line in _defining(each, callee.func)]
    if enclosing(module, event.node, *FUNCTIONS) is None:
        before = [line for line in defined if line <= here.lineno or maker is not module]
    elif enclosing(maker, callee.func.node, *FUNCTIONS) is not None or chain[-1].func is None:
        before = defined
    else:
        before = [0]  # when the function runs, they may have been defined by then, and in any file
    if not before:
        report(module, event.node, name=event.name, transform=callee.applied.text)


def _defining(module: Module, func: FuncVal) -> list[int]:
    """The lines of a file that may define the derivatives of a function: not those about other functions."""
    return [node.lineno for node in _speaking(module.tree) if not _is_of_another(module, node, func)]


def _is_of_another(module: Module, node: ast.Attribute | ast.Constant, func: FuncVal) -> bool:
    """Whether ``g.defvjp`` is certainly about another function than this one."""
    if not isinstance(node, ast.Attribute) or is_name(node.value, func.name):
        return False
    owner = resolved(module.env, node.value)
    other = owner.func if isinstance(owner, Transformed) else None
    return isinstance(other, FuncVal) and other.node is not func.node


@remembered
def _speaking(tree: ast.AST) -> list[ast.Attribute | ast.Constant]:
    """Where a text speaks of the method that defines derivatives."""
    nodes = [node for node in walk(tree) if isinstance(node, (ast.Attribute, ast.Constant))]
    return [node for node in nodes if (node.attr if isinstance(node, ast.Attribute) else node.value) == "defvjp"]


# -- arguments that went -----------------------------------------------------------------------------------------------


@judges_calls(rules.REDUCE_AXES, *SUBJECTS)
def reduce_axes(event: Called, report: Reporter) -> None:
    given = event.keywords.get("reduce_axes")
    if given is None or not isinstance(given, Seq) or (given.exact and not given.items):
        return
    call, source = event.node, event.frame.module.source
    if not isinstance(call, ast.Call):
        return
    item = next((each for each in call.keywords if each.arg == "reduce_axes"), None)
    if item is None:  # it comes out of a dict
        spread = next((each for each in call.keywords if each.arg is None), None)
        report(event.frame.module, spread or call, transform=event.name)
        return
    span = source.span(item)
    start = source.text.rfind(",", 0, span.start)
    only_space = start >= 0 and not source.text[start + 1 : span.start].strip()
    fix = Fix("Leave it out", (Edit(Span(start, span.end), ""),)) if only_space else None
    report(event.frame.module, item, fix=fix, transform=event.name)
