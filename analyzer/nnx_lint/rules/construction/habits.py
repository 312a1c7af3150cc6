"""Habits from other libraries (NNX831): what works on modules of Linen, PyTorch and Keras only.

An NNX module makes its parts in its constructor, holds its parameters itself, and is called as it is. Invariants: a
method counts as missing only where all classes of the object are known, and where nothing gives it such an attribute.
"""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit, Fix, Span
from nnx_lint.model.attributes import ANY_NAME, attribute_names
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import LibClass, UserClass, method_of
from nnx_lint.model.events import AttributeSet, Called, ClassDefined, Iterated, TransformApplied, Used
from nnx_lint.model.values import ClassVal, Const, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.construction.classes import assigned_elsewhere, self_names
from nnx_lint.rules.construction.early import FUNCTIONS, by_function
from nnx_lint.rules.edits import unsafe
from nnx_lint.rules.intermediates.sowing import is_module
from nnx_lint.rules.program import STATEMENT_LOOPS, ancestors, canonical_of, is_tried
from nnx_lint.syntax.binding import assigned_names
from nnx_lint.syntax.walk import walk
from nnx_rules.api import OPTIMIZERS
from nnx_rules.layers import CALLS, CELLS
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Event
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value

# -- classes -----------------------------------------------------------------------------------------------------------


def defines_module(event: ClassDefined) -> bool:
    """Whether a class certainly is an ``nnx.Module``."""
    return event.cls.derives_from("nnx.Module") and not event.cls.is_open


@judges(rules.LINEN_IDIOM, ClassDefined, when=defines_module)
def linen_class(event: ClassDefined, report: Reporter) -> None:
    cls, module = event.cls, event.cls.module
    for node in cls.node.body:
        for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            if canonical_of(cls.env, decorator) == "flax.linen.compact":
                report(
                    module,
                    decorator,
                    problem=f"`{cls.name}` is an NNX module: `compact` belongs to Linen",
                    mend="make the submodules in `__init__`",
                )
    setup = method_of(cls, "setup")
    if setup is None or setup[0] is not cls or "setup" in _called_names(module):
        return
    made = {name for name, _ in self_names(setup[1], store=True)} - assigned_elsewhere(cls, setup[1])
    read = {name for method in cls.methods.values() if isinstance(method, FuncVal) and method is not setup[1]
            for name, _ in self_names(method, store=False)}  # fmt: skip
    arguments = setup[1].node.args
    alone = len(arguments.args) == 1 and not arguments.kwonlyargs and _is_plain(cls)
    if made & read and (alone or method_of(cls, "__init__") is None):
        report(
            module,
            setup[1].node,
            problem=f"nothing calls `{cls.name}.setup`: an NNX module makes its parts in its constructor",
            mend="make them in `__init__(self, ..., rngs)`",
            fix=partial(_as_constructor, cls, setup[1].node) if alone else None,
        )


def _as_constructor(cls: UserClass, setup: ast.AST) -> Fix | None:
    """Make ``setup`` the constructor, where there is none."""
    if method_of(cls, "__init__") is not None or not isinstance(setup, ast.FunctionDef) or cls.is_dataclass:
        return None
    span, source = cls.module.source.span(setup), cls.module.source
    start = source.text.index("setup", span.start)
    return unsafe("Make it the constructor", (Edit(Span(start, start + len("setup")), "__init__"),))


def _is_plain(cls: UserClass) -> bool:
    """Whether a class has no base that may call methods of its own accord, and no class below."""
    own = all(item is cls or isinstance(item, LibClass) for item in cls.ancestors)
    return own and not cls.module.project.heirs.exist(cls.name)


def _called_names(module: Module) -> set[str]:
    """The names of methods that a file calls, or keeps in order to call them later."""
    found = (node for node in walk(module.tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load))
    return {node.attr for node in found}


# -- methods and attributes ------------------------------------------------------------------------------------------

_HOLDS = "an NNX module holds its parameters: make it with `rngs`, and call it"
_MAKES = "make the Variable yourself: `self.w = nnx.Param(init(rngs.params(), shape))`"
_LISTS = "its parameters are `nnx.state(model, nnx.Param)`"
_UPDATED = "put values into it with `nnx.update(model, state)`"
_PLACES = "arrays are placed by JAX: `jax.device_put`, or a sharding"

FOREIGN = {
    **dict.fromkeys(("init", "init_with_output", "apply", "bind"), _HOLDS),
    **dict.fromkeys(
        ("param", "variable", "make_rng", "register_buffer", "register_parameter", "add_module", "add_weight"), _MAKES
    ),
    **dict.fromkeys(("parameters", "named_parameters", "buffers", "named_buffers", "state_dict"), _LISTS),
    **dict.fromkeys(("cuda", "cpu", "to"), _PLACES),
    **dict.fromkeys(("compile", "fit"), "a step of training is your own: `nnx.value_and_grad`, `optimizer.update`"),
    **dict.fromkeys(("load_state_dict", "load_weights", "set_weights"), _UPDATED),
    **dict.fromkeys(("save", "save_weights"), "Orbax writes its State: `checkpointer.save(path, nnx.state(model))`"),
    **dict.fromkeys(("copy", "deepcopy"), "it is `nnx.clone(model)`"),
    **dict.fromkeys(("modules", "named_children"), "it is `nnx.iter_modules(model)`"),
    "children": "it is `nnx.iter_children(model)`",
    "get_weights": _LISTS,
    "requires_grad_": "say what is trained: `nnx.Optimizer(model, tx, wrt=...)`",
    "summary": "it is `nnx.tabulate(model, ...)`, with an input",
    "zero_grad": "gradients are what `nnx.grad` returns: nothing has to be cleared",
    "named_modules": "it is `nnx.iter_modules(model)`",
    "tabulate": "it is `nnx.tabulate(model, ...)`, with an input and no `rngs`",
    **{method: f"it is `nnx.{function}(model, ...)`" for method, function in FUNCTIONS.items()},
}
"""Methods of modules of Linen, of PyTorch and of early NNX, with what there is instead."""


WITHOUT = frozenset({"nnx.Sequential", *CALLS, *CELLS})
"""Classes of the library that have none of these methods."""


@judges_calls(rules.LINEN_IDIOM, *(f".{name}" for name in FOREIGN))
def linen_method(event: Called, report: Reporter) -> None:
    obj, func = event.owner, event.node.func if isinstance(event.node, ast.Call) else None
    if not isinstance(obj, Obj) or not is_module(obj) or not isinstance(func, ast.Attribute):
        return
    cls = obj.cls
    if getattr(cls, "canonical", None) in WITHOUT and obj.origin is not None and func.attr not in attribute_names(obj):
        report_foreign(event, report, cls.name, func.attr)
    if cls.is_open or not isinstance(cls, UserClass) or cls.opaque or func.attr in attribute_names(obj):
        return
    if obj.assumed or (obj is not event.frame.receiver and obj.origin is None) or cls.may_be_extended:
        return
    names = [{*item.methods, *item.attributes, *item.fields} for item in cls.lineage]
    library = cls.library
    if (
        any(not known.isdisjoint({func.attr, "__getattr__"}) for known in names)
        or ANY_NAME in attribute_names(obj)
        or library is None
        or library.canonical != "nnx.Module"
    ):
        return
    report_foreign(event, report, cls.name, func.attr)


@judges_calls(rules.LINEN_IDIOM, "()", ".step")
def optimizer_stepped(event: Called, report: Reporter) -> None:
    func = event.node.func if isinstance(event.node, ast.Call) else None
    owner = event.owner
    if not isinstance(func, ast.Attribute) or func.attr != "step" or not isinstance(owner, Obj):
        return
    if getattr(owner.cls, "canonical", None) in OPTIMIZERS:
        problem = f"`{owner.cls.name}.step` is the number of steps so far, and cannot be called"
        mend = "gradients come from `nnx.grad`, and go into `optimizer.update(model, grads)`"
        report(event.frame.module, event.node, problem=problem, mend=mend)


@judges(rules.LINEN_IDIOM, Used)
def sequential_indexed(event: Used, report: Reporter) -> None:
    node = event.node
    if isinstance(node, ast.Subscript) and _is_sequential(event.value) and not _is_walked(event.frame, node):
        _report_sequential(event, node.value, "cannot be indexed", report)


def _is_walked(frame: Frame, node: ast.Subscript) -> bool:
    """Whether a loop goes down into a model, and asks in each round in which way: by index or by name."""
    around = [*ancestors(frame.module, node)]
    loop = next((outer for outer in around if isinstance(outer, STATEMENT_LOOPS)), None)
    if loop is None or not isinstance(node.value, ast.Name) or node.value.id not in assigned_names([loop]):
        return False
    return any(isinstance(outer, (ast.If, ast.IfExp)) for outer in around[: around.index(loop)])


@judges(rules.LINEN_IDIOM, Iterated)
def sequential_iterated(event: Iterated, report: Reporter) -> None:
    if _is_sequential(event.value) and rules.SEQUENTIAL_OF_OLD.holds(*report.runs_on(event.frame.module)):
        _report_sequential(event, event.node, "cannot be iterated over", report)


def _is_sequential(value: Value) -> bool:
    return isinstance(value, Obj) and value.cls.derives_from("nnx.Sequential") and not isinstance(value.cls, UserClass)


def _report_sequential(event: Event, node: ast.AST, problem: str, report: Reporter) -> None:
    module = event.frame.module
    if not is_tried(module, event.node):
        mend = f"its layers are `{module.source.segment(node)}.layers`"
        report(module, event.node, problem=f"`nnx.Sequential` {problem}", mend=mend)


FROZEN = ("trainable", "requires_grad")
"""What a weight of Keras or of PyTorch is told that is not to be trained."""

READ = re.compile(r"[.'\"](?:trainable|requires_grad)\b")


@judges_calls(rules.LINEN_IDIOM, "nnx.Param")
def param_not_trained(event: Called, report: Reporter) -> None:
    """Metadata that is to keep a ``Param`` from being trained, in a file that trains and never reads it."""
    name = next((name for name in FROZEN if name in event.keywords), None)
    value = event.keywords.get(name) if name is not None else None
    module = event.frame.module
    trains = module.mentions("Optimizer(", "grad(")
    if isinstance(value, Const) and value.value is False and trains and not module.mentions(READ):
        problem = f"`{name}=False` is metadata that nothing reads: a `Param` is trained"
        mend = "make it an `nnx.Variable`, or of a type of its own: `class Constant(nnx.Variable)`"
        report(module, event.node, problem=problem, mend=mend)


@judges(rules.LINEN_IDIOM, AttributeSet)
def training_switched(event: AttributeSet, report: Reporter) -> None:
    """``model.training = False``, of a model that nothing asks for it."""
    obj = event.obj
    outside = event.name == "training" and obj is not event.frame.receiver and obj is not event.frame.initializing
    if not outside or not is_module(obj) or not isinstance(obj.cls, UserClass):
        return
    modules = [event.frame.module, *(item.module for item in obj.cls.lineage)]
    reads = any(
        isinstance(node, ast.Attribute) and node.attr == "training" and isinstance(node.ctx, ast.Load)
        for module in modules
        for node in walk(module.tree)
    )
    own = any(item.node is not event.node for item in event.attr.assignments)
    if not reads and not own and not obj.cls.is_open:
        problem = f"nothing reads `training` of {obj.describe()}: its layers stay in the mode in which they are"
        report(event.frame.module, event.node, problem=problem, mend="call `model.eval()`, or `model.train()`")


def report_foreign(event: Called, report: Reporter, cls: str, method: str) -> None:
    problem = f"`{cls}` is an NNX module: it has no `{method}`"
    fix = partial(by_function, event, FUNCTIONS[method]) if method in FUNCTIONS else None
    report(event.frame.module, event.node, fix=fix, problem=problem, mend=FOREIGN[method])


@judges(rules.LINEN_IDIOM, TransformApplied)
def class_transformed(event: TransformApplied, report: Reporter) -> None:
    func = event.func
    if event.applied.row.name not in {"nnx.remat", "nnx.checkpoint"} or not isinstance(func, ClassVal):
        return
    if func.cls.derives_from("nnx.Module"):
        text = event.applied.text
        problem = f"`{text}` is applied to the class `{func.cls.name}`, and would run its constructor, not its call"
        mend = f"apply it to the forward pass: `{text}(lambda layer, x: layer(x))(layer, x)`"
        report(event.frame.module, event.node, problem=problem, mend=mend)
