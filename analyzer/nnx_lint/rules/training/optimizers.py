"""Optimizers: how they are made, and what ``update`` is given (NNX610-NNX612, NNX616-NNX618).

Invariants: an optimizer of which only the annotation is known may be the kind that keeps its model, so nothing is said
of one in a module that names that kind; gradients are what a call of ``nnx.grad`` returned, and of a known model.
"""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal, Transformed
from nnx_lint.model.classes import LibClass, UserClass, library_class, method_of
from nnx_lint.model.containers import DictVal, ReturnedDict, Seq
from nnx_lint.model.events import Called
from nnx_lint.model.expressions import text_of
from nnx_lint.model.leaves import same_object
from nnx_lint.model.states import GradientVal, OptStateVal, StateVal, TransformationVal
from nnx_lint.model.tables.public_names import PARAMETERS
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Array, ClassVal, Const, Ext, Obj, Value
from nnx_lint.relevance import KEEPER, MAKING
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.alternatives import has_other_form
from nnx_lint.rules.autodiff.gradients import Exchanged
from nnx_lint.rules.edits import exchange, insert, replace, unsafe
from nnx_lint.rules.filters.coverage import leaves_of, path_text
from nnx_lint.rules.filters.expressions import describe, expression, is_subtype, type_name
from nnx_lint.rules.graphs.merging import is_optimizer
from nnx_lint.rules.intermediates.sowing import is_module
from nnx_lint.rules.program import (
    FUNCTIONS,
    assigned_in,
    canonical_of,
    enclosing,
    given,
    is_tried,
    keyword_node,
    names_of_parameters,
    own_nodes,
    resolved,
)
from nnx_lint.rules.randomness.arguments import handing_on
from nnx_lint.rules.spelling import spelled
from nnx_lint.rules.training.keeping import asks_for_models, keep_model
from nnx_lint.rules.training.resized import is_resized, of_other_size
from nnx_lint.rules.updates.ownership import related
from nnx_lint.syntax.binding import assigned_names
from nnx_rules import _filter_logic as logic
from nnx_rules.api import OPTIMIZERS
from nnx_rules.rules import training as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Env, Module
    from nnx_rules._filter_logic import Leaf

# -- construction ------------------------------------------------------------------------------------------------------


@judges_calls(rules.OPTIMIZER_WITHOUT_WRT, "nnx.Optimizer")
def optimizer_without_wrt(event: Called, report: Reporter) -> None:
    args, module = given(event), event.frame.module
    if args.starred or args.get(1, "tx") is None or args.get(0, "model") is None or "wrt" in args.keywords:
        return
    if isinstance(event.callee, BoundMethod):
        return  # the constructor of a class below it, which is judged beside
    if has_other_form(module, event.node):
        return
    report(module, event.node, fix=partial(_add_wrt, module, event), cls="Optimizer")


def _add_wrt(module: Module, event: Called) -> Fix | None:
    if not isinstance(event.node, ast.Call) or not _in_place(event):
        return None
    if len(event.nodes) == 3:
        if isinstance(event.nodes[2], ast.NamedExpr):
            return None  # no keyword may stand before one without parentheses
        span = module.source.span(event.nodes[2])
        return Fix("Pass the filter as `wrt`", insert(span.start, "wrt="))
    name = spelled("nnx.Param", module, event.frame.env)
    if name is None or len(event.nodes) + len(event.node.keywords) != 2:
        return None
    last = max((module.source.span(part).end for part in (*event.nodes, *event.node.keywords)), default=0)
    return Fix("Optimize the Params", insert(last, f", wrt={name}"))


@judges_calls(rules.OPTIMIZER_WITHOUT_WRT, ".__init__")
def base_without_wrt(event: Called, report: Reporter) -> None:
    """The constructor of an optimizer, called by that of a class below it."""
    callee, module, args = event.callee, event.frame.module, given(event)
    receiver = present(callee.receiver) if isinstance(callee, BoundMethod) and callee.func is None else None
    cls = receiver.cls if isinstance(receiver, Obj) and isinstance(receiver.cls, UserClass) else None
    if cls is None or cls.library is None or cls.library.canonical != "nnx.Optimizer" or event.frame.receiver is None:
        return
    if args.starred or len(args.positional) != 2 or "wrt" in args.keywords or cls.module is not module:
        return
    report(module, event.node, fix=partial(_on_model_and_optimizer, cls), cls="Optimizer")


@judges_calls(rules.OPTIMIZER_WITHOUT_WRT, "class")
def heir_without_wrt(event: Called, report: Reporter) -> None:
    """A class below the optimizer that hands on to it whatever keywords it gets."""
    cls = event.callee.cls if isinstance(event.callee, ClassVal) else None
    library = cls.library if isinstance(cls, UserClass) else None
    if cls is None or library is None or library.canonical != "nnx.Optimizer":
        return
    above, found, args = handing_on(cls), method_of(cls, "__init__"), given(event)
    if above is None or found is None or args.starred or "wrt" in args.keywords:
        return
    told = "wrt" in names_of_parameters(found[1].node) or keyword_node(above[1], "wrt") is not None
    if len(above[1].args) == 2 and not told:
        report(event.frame.module, event.node, cls=cls.name)


def _on_model_and_optimizer(cls: UserClass) -> Fix | None:
    """Derive the class from the optimizer that keeps its model, as all did that took no ``wrt``."""
    module, name = cls.module, spelled("nnx.ModelAndOptimizer", cls.module)
    own = [base for base in cls.node.bases if canonical_of(module.env, base) == "nnx.Optimizer"]
    return unsafe(f"Derive it from `{name}`", replace(module.source, own[0], name)) if name and own else None


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, *OPTIMIZERS)
def optimizer_transformation(event: Called, report: Reporter) -> None:
    args, module = given(event), event.frame.module
    cls = (event.inherited or "").rpartition(".")[2]
    model, node = args.get(0, "model"), args.node_of(0, "model")
    if isinstance(model, ClassVal) and model.cls.is_pytree and node is not None:
        report(
            module,
            node,
            cls=cls,
            problem=f"gets the class `{model.cls.name}` as its model, not an instance",
            mend=f"pass a model: `{model.cls.name}(...)`",
        )
    if isinstance(model, TransformationVal) and node is not None:
        problem, mend = "gets the transformation as its model", f"the model comes first: `{cls}(model, tx, wrt=...)`"
        report(module, node, cls=cls, problem=problem, mend=mend)
    value, node = args.get(1, "tx"), args.node_of(1, "tx")
    if node is None:
        return
    if isinstance(value, Ext) and value.name.startswith("optax.") and value.name.removeprefix("optax.") in FACTORIES:
        fix = Fix("Make the transformation", insert(module.source.span(node).end, "(1e-3)"), Applicability.UNSAFE)
        problem = f"gets the function `{text_of(node)}`, which makes a transformation, and not the transformation"
        report(module, node, fix=fix, cls=cls, problem=problem, mend=f"call it: `{text_of(node)}(learning_rate)`")
    elif is_function(value) and not is_tried(module, event.node):
        problem = f"gets the function `{text_of(node)}`, and not a transformation"
        report(module, node, cls=cls, problem=problem, mend=f"if it makes one, call it: `{text_of(node)}(...)`")
    elif isinstance(value, Seq) and any(isinstance(item, TransformationVal) for item in value.items):
        problem = f"gets a {value.type} where it takes one optax transformation"
        report(module, node, cls=cls, problem=problem, mend="chain them: `optax.chain(first, second)`")
    elif isinstance(value, Const) and isinstance(value.value, (int, float)):
        problem = f"gets the number {value.value!r} where it takes an optax transformation"
        report(module, node, cls=cls, problem=problem, mend="pass one: `optax.adam(1e-3)`")
    elif isinstance(value, TransformationVal) and value.schedule:
        problem = "gets a schedule, which is a function of the step, where it takes an optax transformation"
        report(module, node, cls=cls, problem=problem, mend=f"make one with it: `optax.adam({text_of(node)})`")
    elif isinstance(value, TransformationVal) and value.rough and not UPHILL.search(module.source.text):
        problem = f"gets `{text_of(node)}`, which has no learning rate: each step goes up, by what the gradients are"
        mend = "add `optax.scale_by_learning_rate(...)` at the end of the chain: it takes a schedule, too"
        report(module, node, cls=cls, problem=problem, mend=mend)


UPHILL = re.compile(r"ascen[dt]|maximi[sz]", re.IGNORECASE)
"""Words in files whose steps may go up on purpose."""


def is_function(value: Value | None) -> bool:
    """Whether a value is a function of optax, or a function or a method of the project, which no transformation is."""
    if isinstance(value, Ext):
        return value.name.startswith("optax.") and value.name in PARAMETERS
    return isinstance(value, FuncVal) or (isinstance(value, BoundMethod) and isinstance(value.func, FuncVal))


FACTORIES = frozenset(
    name
    for line in (
        ("adabelief", "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamaxw", "adamw", "amsgrad", "fromage"),
        ("lamb", "lars", "lion", "nadam", "nadamw", "noisy_sgd", "novograd", "radam", "rmsprop", "rprop", "sgd"),
        ("optimistic_gradient_descent", "sign_sgd", "sm3", "yogi"),
    )
    for name in line
)
"""Functions of optax that make an optimizer from a learning rate."""


@judges_calls(rules.OPTIMIZER_WITHOUT_VARIABLES, *OPTIMIZERS)
def optimizer_without_variables(event: Called, report: Reporter) -> None:
    args = given(event)
    model, wrt = present(args.get(0, "model") or UNKNOWN), args.get(2, "wrt")
    where = args.node_of(2, "wrt")
    if wrt is None or where is None or not isinstance(model, Obj) or model.assumed:
        return
    found = leaves_of(model, event.frame)
    asked = expression(wrt)
    if not found.complete or not found.leaves:
        return
    if any(logic.matches(asked, leaf, is_subtype) is not False for leaf in found.leaves):
        return
    types = sorted({f"`{type_name(leaf.type)}`" for leaf in found.leaves})
    slots: dict[str, Any] = {"model": model.cls.name, "wrt": f"`{describe(asked)}`", "types": " and ".join(types)}
    report(event.frame.module, where, **slots)


# -- update ------------------------------------------------------------------------------------------------------------


def updated(event: Called) -> tuple[Obj, bool] | None:
    """The optimizer whose ``update`` is called, and whether it keeps its model."""
    callee = event.callee
    if not isinstance(callee, BoundMethod) or callee.func is not None or None in event.args:
        return None
    receiver = present(callee.receiver)
    if not isinstance(receiver, Obj) or not receiver.cls.derives_from("nnx.Optimizer") or "**" in event.keywords:
        return None
    keeps = receiver.cls.derives_from("nnx.ModelAndOptimizer")
    module = event.frame.module
    if receiver.assumed and not keeps and _count_given(event) != 2:
        heirs = module.project.heirs  # the annotation holds for one that keeps its model, too
        if heirs.possible(KEEPER) or heirs.possible("Optimizer") or not heirs.possible(MAKING):
            return None
    return receiver, keeps


def _count_given(event: Called) -> int:
    """How many arguments an ``update`` gets, by position or by name, but for those that go to the transformation."""
    return len(event.args) + sum(name in event.keywords for name in ("model", "grads"))


@judges_calls(rules.OPTIMIZER_UPDATE_ARGUMENTS, ".update")
def optimizer_update_arguments(event: Called, report: Reporter) -> None:
    found = updated(event)
    if found is None:
        return
    optimizer, keeps = found
    if has_other_form(event.frame.module, event.node):
        return
    slots: dict[str, Any] = {"cls": KEEPER if keeps else "Optimizer"}
    count, module = len(event.args), event.frame.module
    swapped = count == 2 and _is_swapped(present(event.args[0] or UNKNOWN), present(event.args[1] or UNKNOWN))
    if keeps and count == 2:
        slots |= {"problem": "got two arguments, and takes the gradients only: it keeps its model"}
        slots |= {"mend": "call `optimizer.update(grads)`"}
        report(module, event.node, fix=partial(_drop_model, module, event), **slots)
    elif not keeps and count + ("grads" in event.keywords) == 1 and "model" not in event.keywords:
        slots |= {"problem": "got one argument, and takes the model and its gradients"}
        slots |= {"mend": "call `optimizer.update(model, grads)`; only `nnx.ModelAndOptimizer` keeps its model"}
        report(module, event.node, fix=partial(_add_model, module, event, optimizer), **slots)
    elif not keeps and is_optimizer(model := present(given(event).get(0, "model") or UNKNOWN)):
        whose = "itself" if model is optimizer else "an optimizer"
        slots |= {"problem": f"got {whose} where it takes the model", "mend": "call `optimizer.update(model, grads)`"}
        report(module, event.node, **slots)
    elif not swapped and (missing := _unanswered(optimizer, event)):
        names = ", ".join(f"`{name}`" for name in missing)
        slots |= {"problem": f"got no {names}, which its transformation needs besides the gradients"}
        slots |= {"mend": f"pass them on: `optimizer.update(..., {', '.join(f'{name}=...' for name in missing)})`"}
        report(module, event.node, **slots)
    elif not keeps and swapped:
        model = present(event.args[1] or UNKNOWN)
        name = model.cls.name if isinstance(model, Obj) else "model"
        slots |= {"problem": f"got a State first and a {name} second, and takes the model first"}
        slots |= {"mend": "call `optimizer.update(model, grads)`"}
        report(module, event.node, fix=partial(_swap, module, event), **slots)


def _is_swapped(first: Value, second: Value) -> bool:
    """Whether gradients come first, and a model, or what the gradients are of, second."""
    if isinstance(first, StateVal):
        return isinstance(second, Obj) and second.cls.is_pytree
    return isinstance(first, GradientVal) and first.of is second


def _in_place(event: Called) -> bool:
    return isinstance(event.node, ast.Call) and list(event.node.args) == event.nodes


def _drop_model(module: Module, event: Called) -> Fix | None:
    if not _in_place(event):
        return None
    first, second = (module.source.span(node) for node in event.nodes[:2])
    return Fix("Pass the gradients only", (Edit(Span(first.start, second.start), ""),))


def _swap(module: Module, event: Called) -> Fix | None:
    if not _in_place(event):
        return None
    return Fix("Pass the model first", exchange(module.source, *event.nodes[:2]))


def _add_model(module: Module, event: Called, optimizer: Obj) -> Fix | None:
    """Pass the model, where a name in scope certainly is the one that the gradients are of."""
    if asks_for_models(module.tree):
        return keep_model(event.frame, optimizer)
    given = event.args[0] if event.args else event.keywords.get("grads")
    gradients = present(given or UNKNOWN)
    model = (optimizer.args or {}).get("model")
    if isinstance(gradients, (StateVal, GradientVal)):
        model = gradients.of
    name = _name_of(model, event.frame) if model is not None else None
    call = event.node
    name = name or _differentiated(event)
    if name is None or not isinstance(call, ast.Call) or not (_in_place(event) or call.keywords):
        return None
    first = event.nodes[0] if event.nodes else call.keywords[0]
    return Fix("Pass the model", insert(module.source.span(first).start, f"{name}, "))


def _differentiated(event: Called) -> str | None:
    """The name of what was differentiated, where the same function takes the gradients and binds them once."""
    module = event.frame.module
    given = event.nodes[0] if event.nodes else keyword_node(event.node, "grads")
    scope = enclosing(module, event.node, *FUNCTIONS, ast.Module)
    if not isinstance(given, ast.Name) or scope is None or assigned_in(scope)[given.id] != 1:
        return None
    for node in own_nodes(scope):
        call = node.value if isinstance(node, ast.Assign) and given.id in assigned_names([node]) else None
        model = call.args[0] if isinstance(call, ast.Call) and call.args else None
        if isinstance(call, ast.Call) and isinstance(model, ast.Name) and _takes_first(event.frame.env, call.func):
            # The name still means that model if it is bound once, or is a parameter that is not bound anew.
            given_in = isinstance(scope, FUNCTIONS) and model.id in names_of_parameters(scope)
            return model.id if assigned_in(scope)[model.id] + given_in <= 1 else None
    return None


def _takes_first(env: Env, func: ast.expr) -> bool:
    """Whether a function gives the gradients of its first argument."""
    if isinstance(func, ast.Call):
        options = {item.arg for item in func.keywords}
        return canonical_of(env, func.func) in GRADIENTS and options <= {"has_aux"}
    made = resolved(env, func)
    applied = made.applied if isinstance(made, Transformed) else None
    return applied is not None and applied.row.name in GRADIENTS and applied.keywords.keys() <= {"has_aux"}


GRADIENTS = frozenset({"nnx.grad", "nnx.value_and_grad"})


def _name_of(model: Value, frame: Frame) -> str | None:
    for name, value in frame.env.names.items():
        if same_object(value, model):
            return name
    receiver = frame.receiver
    if isinstance(receiver, Obj):
        for name, attr in receiver.attrs.items():
            if same_object(attr.value, model) and name.isidentifier():
                return f"self.{name}"
    found = ((name, frame.env.lookup(name)) for name in frame.module.env.names)
    return next((name for name, held in found if held is not None and same_object(held[1], model)), None)


# -- gradients ---------------------------------------------------------------------------------------------------------


@judges_calls(rules.GRADIENTS_MISMATCH, ".update")
def gradients_mismatch(event: Called, report: Reporter) -> None:
    found = _updated_alone(event, report) or updated(event)
    if found is None:
        return
    optimizer, keeps = found
    position, args = 0 if keeps else 1, given(event)
    node = args.node_of(position, "grads")
    if _count_given(event) != position + 1 or node is None or None in event.args:
        return
    grads = present(args.get(position, "grads") or UNKNOWN)
    if any(grads is each for each in report.memory(Exchanged).values):
        return
    module = event.frame.module
    known = (optimizer.args or {}).get("model") if keeps else args.get(0, "model")
    model = present(known or UNKNOWN)
    if isinstance(grads, Transformed):
        name = text_of(node)
        report(module, node, problem=f"are a function that computes them: call it with the model, `{name}(model)`")
    elif isinstance(grads, (StateVal, GradientVal)) and (part := _part_of(model, grads.of)) is not None:
        report(module, node, problem=f"are those of `{part}` alone, and the optimizer takes those of the whole model")
    elif (of := _other_model(grads, model) or _made_for_another(optimizer, model, event.frame)) is not None:
        report(module, node, problem=of)
    elif (path := of_other_size((optimizer.args or {}).get("model", UNKNOWN), model)) is not None:
        made = f"are for another size of `{path}` than that of the model that the optimizer was made for"
        report(module, node, problem=made)
    elif isinstance(grads, (StateVal, GradientVal)) and (path := of_other_size(grads.of, model)) is not None:
        report(module, node, problem=f"are those of another model: its `{path}` has another size")
    elif isinstance(grads, (StateVal, GradientVal)) and isinstance(model, Obj) and is_resized(present(grads.of), model):
        report(module, node, problem=f"are those of another {model.cls.name}, which has another size")
    elif isinstance(grads, StateVal) and _is_of_another(grads, model):
        report(module, node, problem=OF_ANOTHER)
    elif isinstance(grads, Array) and (what := _computed(grads)) is not None:
        report(module, node, problem=f"are {what}, and the optimizer takes those of the whole model")
    elif isinstance(grads, Seq) and grads.type == "tuple" and grads.exact and _pairs(grads):
        fix = partial(_unpack, module, node)
        report(module, node, fix=fix, problem="are the pair of value and gradients that `value_and_grad` returns")
    elif isinstance(grads, Seq) and grads.type == "tuple" and grads.exact and isinstance(model, Obj) and grads.items:
        report(module, node, problem=f"are a tuple of {len(grads.items)}, and the optimizer takes those of one model")
    elif isinstance(grads, GradientVal) and isinstance(model, Obj) and (count := _count_of_objects(grads.of)):
        kind = "one model" if count == 1 else f"{count} models together"
        report(module, node, problem=f"are those of a container with {kind}, and not those of the model")
    elif isinstance(grads, DictVal) and grads.exact and isinstance(model, Obj) and _has_other_names(grads, model):
        report(module, node, problem="are a dict of other things, such as what a loss returns beside its value")
    elif isinstance(grads, StateVal) and grads.wanted is not None:
        wrt = (optimizer.args or {}).get("wrt")
        missing = _missing(grads, wrt, model, event.frame) if wrt is not None else None
        if missing is not None:
            fix = partial(_aligned, module, optimizer, grads)
            report(module, node, fix=fix, problem=f"have no `{path_text(missing)}`, which the optimizer was made for")


def _updated_alone(event: Called, report: Reporter) -> tuple[Obj, bool] | None:
    """An optimizer that gets one argument, where that is right: it keeps its model, as all did that took no ``wrt``,
    and as one may of which only an annotation is known.
    """
    receiver = present(event.callee.receiver) if isinstance(event.callee, BoundMethod) else UNKNOWN
    optimizer = isinstance(receiver, Obj) and receiver.cls.derives_from("nnx.Optimizer") and len(event.args) == 1
    if not isinstance(receiver, Obj) or not optimizer or event.keywords:
        return None
    earlier = not rules.OPTIMIZER_WITHOUT_WRT.versions.holds(*report.runs_on(event.frame.module))
    return (receiver, True) if earlier or updated(event) is None else None


def _count_of_objects(value: Value) -> int:
    """How many objects of NNX a tuple or list holds that holds nothing else."""
    parts = value.items if isinstance(value, Seq) and value.type in {"list", "tuple"} and value.exact else []
    return len(parts) if all(isinstance(part, Obj) and part.cls.tracked for part in parts) else 0


def _computed(grads: Array) -> str | None:
    """What an array is that something has certainly computed, and not an annotation alone says to be one."""
    known = grads.form is not None and grads.form.shape is not None
    if not known and grads.maker is None:
        return None
    return "a number" if grads.form is not None and grads.form.shape == () else "an array"


def _unanswered(optimizer: Obj, event: Called) -> list[str]:
    """What the transformation of an optimizer needs for an update, and does not get."""
    tx = (optimizer.args or {}).get("tx")
    asks = tx.asks if isinstance(tx, TransformationVal) else ()
    return [name for name in asks if name not in event.keywords and name != "params"]  # it passes these itself


def _aligned(module: Module, optimizer: Obj, grads: StateVal) -> Fix | None:
    """Make the optimizer for the type of Variables that is differentiated."""
    wanted, made = grads.wanted, optimizer.origin
    node = keyword_node(made[1], "wrt") if made is not None and made[0] is module else None
    canonical = wanted.cls.canonical if isinstance(wanted, ClassVal) and isinstance(wanted.cls, LibClass) else None
    name = spelled(canonical, module) if canonical is not None else None
    if name is None or node is None:
        return None
    return unsafe(f"Make the optimizer for `{name}`", replace(module.source, node, name))


@judges_calls(rules.GRADIENTS_MISMATCH, ".update")
def gradients_of_others(event: Called, report: Reporter) -> None:
    """Gradients and a state of an optax transformation that were made for different Variables of one model."""
    callee, args = event.callee, given(event)
    grads, state = args.get(0, "updates"), args.get(1, "state")
    if not isinstance(callee, BoundMethod) or not isinstance(callee.receiver, TransformationVal):
        return
    held = present(state.of) if isinstance(state, OptStateVal) and state.keeps else None
    if isinstance(grads, GradientVal):
        grads = present(grads.of)  # they have what that has by which a function was differentiated
    if not isinstance(grads, StateVal) or not event.nodes or is_tried(event.frame.module, event.node):
        return
    if isinstance(held, ReturnedDict) or is_module(held):
        made = "a dict" if isinstance(held, ReturnedDict) else "the module itself"
        problem = f"are a State, and the state of the optimizer was made for {made}, not for `nnx.state(...)`"
        report(event.frame.module, event.nodes[0], problem=problem)
        return
    if not isinstance(held, StateVal) or grads.wanted is None or not same_object(grads.of, held.of):
        return
    asked = expression(grads.wanted)
    for leaf in leaves_of(held, event.frame).leaves:
        if logic.matches(asked, leaf, is_subtype) is False:
            problem = f"have no `{path_text(leaf)}`, which the state of the optimizer was made for"
            report(event.frame.module, event.nodes[0], problem=problem)
            return


def _has_other_names(given: DictVal, model: Obj) -> bool:
    """Whether a dict has names, and none of them is that of a part of a module."""
    names = {key.value for key, _ in given.items if isinstance(key, Const)}
    return len(names) == len(given.items) > 0 and names.isdisjoint(attribute_names(model))


def _pairs(given: Seq) -> bool:
    first, second = map(present, given.items) if len(given.items) == 2 else (UNKNOWN, UNKNOWN)
    return isinstance(second, (StateVal, GradientVal)) and not isinstance(first, (StateVal, GradientVal))


def _other_model(grads: Value, model: Value) -> str | None:
    """What gradients are of, where that certainly is another thing than the model."""
    if not isinstance(grads, (StateVal, GradientVal)):
        return None
    of = present(grads.of)
    written = isinstance(of, DictVal) and isinstance(grads, StateVal)  # a State of whatever the program put together
    if isinstance(of, (Array, DictVal)) and isinstance(model, Obj) and not written:
        return f"are those of {of.describe()}, and the optimizer takes those of the model"
    if isinstance(grads, GradientVal) and _is_of_another(grads, model):
        return OF_ANOTHER
    if not isinstance(of, Obj) or not isinstance(model, Obj) or of.assumed or model.assumed:
        return None
    known = of.cls.derives_from("nnx.Module") and model.cls.derives_from("nnx.Module")
    apart = known and of.cls not in model.cls.ancestors and model.cls not in of.cls.ancestors
    return f"are those of the {of.cls.name}, and the model is a {model.cls.name}" if apart else None


OF_ANOTHER = "are those of another argument, and the optimizer takes those of the model"


def _is_of_another(grads: StateVal | GradientVal, model: Value) -> bool:
    """Whether a function that got a model was differentiated by another argument."""
    return any(_is_of(present(value), model) for value in grads.beside) and not _is_of(present(grads.of), model)


def _part_of(model: Value, of: Value) -> str | None:
    """The attribute of a model that a gradient was taken of, with nothing of the rest of the model."""
    part = present(of)
    if not isinstance(model, Obj) or not isinstance(part, Obj) or not part.cls.derives_from("nnx.Module"):
        return None
    held = ((name, attribute_of(model, name)) for name in attribute_names(model))
    return next((name for name, attr in held if attr is not None and attr.value is part), None)


def _is_of(value: Value, model: Value) -> bool:
    """Whether a value is a model, or one of the two holds the other; a copy of a model is another one."""
    if isinstance(value, Obj) and isinstance(model, Obj):
        return related(value, model)
    return same_object(value, model)


def _made_for_another(optimizer: Obj, model: Value, frame: Frame) -> str | None:
    """What an optimizer was made for, where that is another network, or has a parameter that the model lacks."""
    known = present((optimizer.args or {}).get("model", UNKNOWN))
    if not isinstance(known, Obj) or not isinstance(model, Obj) or known.cls.is_open or model.assumed:
        return None
    # Where an annotation vouches for what it was made for, that may be of a class below: the model would be one of it.
    if known.cls in model.cls.ancestors or model.cls in known.cls.ancestors:
        return None
    one, other = leaves_of(known, frame), leaves_of(model, frame)
    paths = [{leaf.path for leaf in found.leaves if is_subtype(leaf.type, PARAM)} for found in (one, other)]
    apart = bool((other.complete and paths[0] - paths[1]) or (one.complete and paths[1] - paths[0]))
    # Networks of the same layers, such as the two of a pair, are different ones still.
    networks = isinstance(known.cls, UserClass) and isinstance(model.cls, UserClass)
    apart = apart or (networks and bool(paths[0]))
    return f"are those of the {model.cls.name}, and the optimizer was made for {known.describe()}" if apart else None


PARAM = library_class("nnx.Param")


def _missing(given: StateVal, wrt: Value, model: Value, frame: Frame) -> Leaf | None:
    """A Variable that the optimizer takes and the gradients lack."""
    of = present(given.of)
    if not isinstance(model, Obj) or not isinstance(of, Obj) or not same_object(model, of) or given.wanted is None:
        return None
    asked, differentiated = expression(wrt), expression(given.wanted)
    for leaf in leaves_of(model, frame).leaves:
        if logic.matches(asked, leaf, is_subtype) is True and logic.matches(differentiated, leaf, is_subtype) is False:
            return leaf
    return None


def _unpack(module: Module, node: ast.expr) -> Fix | None:
    """Take the gradients out of the pair."""
    if not isinstance(node, (ast.Name, ast.Call)):
        return None
    end = module.source.span(node).end
    return Fix("Take the gradients", insert(end, "[1]"))
