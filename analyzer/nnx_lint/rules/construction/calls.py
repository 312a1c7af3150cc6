"""What a program does with modules and layers: layers made in a forward pass (NNX833), initializers that are
none (NNX835), instances that cannot be called (NNX836).
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.model.arrays import is_array_function
from nnx_lint.model.attributes import attribute_names
from nnx_lint.model.callables import FuncVal, LibraryFunction, PartialVal
from nnx_lint.model.classes import LibClass, UserClass, library_class, method_of
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import Called
from nnx_lint.model.expressions import text_of
from nnx_lint.model.states import TransformationVal
from nnx_lint.model.values import (
    Array,
    Const,
    Ext,
    Obj,
    ParameterNumber,
    ParameterVal,
    Value,
)
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.bindings import bound_to
from nnx_lint.rules.construction.mends import in_constructor, in_function
from nnx_lint.rules.edits import insert
from nnx_lint.rules.intermediates.sowing import is_module
from nnx_lint.rules.program import (
    ancestors,
    assigned_in,
    attributes_stored,
    canonical_of,
    given,
    is_asked_for,
    is_called,
    is_tried,
    keyword_node,
    names_of_parameters,
    uses_in,
)
from nnx_lint.rules.randomness.arguments import MAKING, constructed
from nnx_lint.rules.randomness.reading import drawn_by, drawn_from_parameter
from nnx_lint.rules.spelling import spelled
from nnx_lint.rules.training.optimizers import FACTORIES as OPTIMIZERS
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name, occurrences
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import construction as rules
from nnx_rules.transforms import DIFFERENTIATING

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame, TraceScope
    from nnx_lint.model.modules import Module

# -- layers made in a forward pass -------------------------------------------------------------------------------------

WRAPPERS = frozenset({"RNN", "Bidirectional", "SpectralNorm", "WeightNorm", "Dropout", "Sequential"})
"""Layers that hold no parameters of their own, or those of what they wrap."""


@judges_calls(rules.CREATED_IN_CALL, *MAKING)
def module_created_in_call(event: Called, report: Reporter) -> None:
    frame, cls = event.frame, constructed(event)
    if cls is None or frame.func is None or not _has_parameters(cls, event.result):
        return
    if not is_module(frame.receiver):
        _created_in_function(event, frame, report)
        return
    returned = frame.func.is_property and _is_returned(frame, event.node)
    if not returned and not (_belongs_to_forward_pass(frame) and _is_dropped(frame, event.node)):
        _created_in_function(event, frame, report)
        return
    owner = frame.receiver.cls.name if isinstance(frame.receiver, Obj) else "the module"
    method, name = f"{owner}.{frame.func.name}", cls.name.lower()
    fix = partial(in_constructor, frame, event.node, name)
    report(frame.module, event.node, fix=fix, path=method, layer=text_of_class(event.node), name=name)


def _created_in_function(event: Called, frame: Frame, report: Reporter) -> None:
    """A function makes a layer and calls it at once, or returns it to be called, and a forward pass calls that
    function.
    """
    found = _dropping(frame, event.node)
    if found is None:
        return
    frame, node = found
    caller: Frame | None = frame
    while caller is not None and caller.func is not None and caller.receiver is None:
        caller = caller.caller
    if caller is None or caller.func is None or not is_module(caller.receiver) or not _belongs_to_forward_pass(caller):
        return
    owner = caller.receiver.cls.name if isinstance(caller.receiver, Obj) else "the module"
    path, layer = f"{owner}.{caller.func.name}", text_of_class(node)
    report(frame.module, node, path=path, layer=layer, name=layer.rpartition(".")[2].lower())


@judges_calls(rules.CREATED_IN_CALL, "nnx.Param")
def param_created_in_call(event: Called, report: Reporter) -> None:
    frame = event.frame
    if frame.func is None or frame.func.name != "__call__" or not is_module(frame.receiver):
        return
    bound = bound_to(frame.module, event.node)
    used = [event.node]
    if bound is not None and isinstance(bound.target, ast.Name):
        names = occurrences(frame.func.node, bound.target.id)
        used = [node for node in names if isinstance(node.ctx, ast.Load)]
        if len(names) != len(used) + 1:
            return
    if used and all(_is_operand(frame, node) for node in used):
        method = f"{frame.receiver.cls.name}.__call__" if isinstance(frame.receiver, Obj) else "__call__"
        fix = partial(in_constructor, frame, event.node, "weight")
        report(frame.module, event.node, fix=fix, path=method, layer=text_of_class(event.node), name="weight")


@judges_calls(rules.MODULE_DEFAULT, *MAKING)
def module_default_argument(event: Called, report: Reporter) -> None:
    frame, cls = event.frame, constructed(event)
    given = next(ancestors(frame.module, event.node), None) if cls is not None else None
    if cls is None or not isinstance(given, ast.arguments) or not _has_parameters(cls, event.result):
        return
    for parameter, default in syntax_parameters.defaults(given).items():
        if default is event.node:
            fix = partial(in_function, frame.module, default, parameter)
            report(frame.module, default, fix=fix, parameter=parameter, cls=cls.name)


def _belongs_to_forward_pass(frame: Frame) -> bool:
    """Whether a method is the forward pass, or a helper of it that the constructor has no use for."""
    func, cls = frame.func, frame.receiver.cls if isinstance(frame.receiver, Obj) else None
    if func is None or func.name == "__call__" or not isinstance(cls, UserClass):
        return func is not None and func.name == "__call__"
    if func.name == "__init__":
        return False  # by far the most calls are made there
    return func.name in _helpers(cls, "__call__") and func.name not in _helpers(cls, "__init__")


def _helpers(cls: UserClass, name: str) -> set[str]:
    """The methods that a method of a class calls on the same object, and those that these call."""
    found: set[str] = set()
    pending = [name]
    while pending:
        method = method_of(cls, pending.pop())
        if method is not None:
            more = _asked_of_instance(method[1].node) - found
            pending += more
            found |= more
    return found


@remembered
def _asked_of_instance(method: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    """The attributes of its instance that a method names."""
    parameters = syntax_parameters.positional(method.args)
    instance = parameters[0].arg if parameters else None
    attributes = (part for part in walk(method) if isinstance(part, ast.Attribute))
    return frozenset(part.attr for part in attributes if is_name(part.value, instance))


def _is_operand(frame: Frame, node: ast.AST) -> bool:
    """Whether an expression is only computed with."""
    parent = next(ancestors(frame.module, node), None)
    if isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.ctx, ast.Load):
        return _is_operand(frame, parent)
    if isinstance(parent, ast.Call) and parent.func is not node:
        return (canonical_of(frame.env, parent.func) or "").startswith("jax.numpy.")
    return isinstance(parent, ast.BinOp)


def text_of_class(node: ast.AST) -> str:
    """What a call constructs, as the program writes it."""
    return text_of(node.func) if isinstance(node, ast.Call) else "layer"


def _has_parameters(cls: object, made: Value) -> bool:
    if isinstance(cls, UserClass):
        as_base = method_of(cls, "__init__") is None and isinstance(made, Obj) and "params" in drawn_by(made)
        return is_module(made) and (as_base or bool(drawn_from_parameter(cls)))
    return (
        isinstance(cls, LibClass) and cls.name not in WRAPPERS and isinstance(made, Obj) and "params" in drawn_by(made)
    )


def _dropping(frame: Frame, node: ast.AST) -> tuple[Frame, ast.AST] | None:
    """Where a new layer is only called: in the frame that makes it, or in one that it is returned to by a call."""
    if _is_dropped(frame, node):
        return frame, node
    decorators: list[ast.expr] = getattr(frame.func.node, "decorator_list", []) if frame.func is not None else []
    if decorators or frame.caller is None or frame.call is None or not _is_returned(frame, node):
        return None  # one with a decorator may well keep what it has made
    return _dropping(frame.caller, frame.call)


def _is_returned(frame: Frame, node: ast.AST) -> bool:
    """Whether a function returns a new layer, by itself or as one of several that are called in turn."""
    outers = ancestors(frame.module, node)
    outer = next(outers, None)
    if isinstance(outer, ast.Call) and canonical_of(frame.env, outer.func) == "nnx.Sequential":
        outer = next(outers, None)
    return isinstance(outer, ast.Return)


def _is_dropped(frame: Frame, node: ast.AST) -> bool:
    """Whether a new layer is called at once, or gets a name that is only called."""
    if is_called(frame.module, node):
        return True
    parent, bound = next(ancestors(frame.module, node), None), bound_to(frame.module, node)
    listed = bound is None and isinstance(parent, (ast.List, ast.Tuple)) and isinstance(parent.ctx, ast.Load)
    if listed and parent is not None:
        bound = bound_to(frame.module, parent)
    if bound is None or not isinstance(bound.target, ast.Name):
        return False
    reads = uses_in(frame.func.node) if frame.func is not None else {}
    used = reads.get(bound.target.id, [])
    if not listed:
        return bool(used) and all(_is_called(frame.module, use) for use in used)
    loops = [loop for use in used if isinstance(loop := next(ancestors(frame.module, use), None), ast.For)]
    elements = [reads.get(loop.target.id, []) for loop in loops if isinstance(loop.target, ast.Name)]
    each_called = all(uses and all(_is_called(frame.module, use) for use in uses) for uses in elements)
    return bool(used) and len(elements) == len(used) and each_called


def _is_called(module: Module, use: ast.Name) -> bool:
    """Whether a use of a name is a call of it, or of a method of it."""
    node: ast.AST = use
    for parent in ancestors(module, use):
        if isinstance(parent, ast.Call):
            return parent.func is node
        if not isinstance(parent, ast.Attribute):
            return False
        node = parent
    return False


# -- initializers ------------------------------------------------------------------------------------------------------

_FACTORIES = (
    "constant delta_orthogonal glorot_normal glorot_uniform he_normal he_uniform kaiming_normal kaiming_uniform "
    "lecun_normal lecun_uniform normal orthogonal truncated_normal uniform variance_scaling xavier_normal "
    "xavier_uniform zeros_init ones_init"
)

FACTORIES = frozenset(_FACTORIES.split())
"""Functions of ``nnx.initializers`` that make an initializer."""

NEEDING = frozenset({"constant", "variance_scaling"})
"""Those that have to be given something."""

ARRAY_FUNCTIONS = {
    "jax.numpy.zeros": "zeros_init()",
    "jax.numpy.ones": "ones_init()",
    "numpy.zeros": "zeros_init()",
} | {"numpy.ones": "ones_init()"}


def factory(value: Value | None) -> str | None:
    """The name of a function that makes an initializer, where it is itself given as one."""
    if not isinstance(value, Ext):
        return None
    head, _, name = value.name.rpartition(".")
    return name if head in {"jax.nn.initializers", "nnx.initializers"} and name in FACTORIES else None


@judges_calls(rules.INITIALIZER, *MAKING)
def initializer_misuse(event: Called, report: Reporter) -> None:
    module = event.frame.module
    for keyword, value in event.keywords.items():
        node = keyword_node(event.node, keyword)
        cls = constructed(event)
        if not keyword.endswith("_init") or cls is None or cls.made_as is None:
            continue
        value, node = _as_called(event.frame, value, node)
        name, source, fix = factory(value), module.source, None
        text = source.segment(node) if node is not None else keyword
        if name is not None:
            if node is not None and name not in NEEDING and not _is_given(event.frame, node):
                fix = Fix("Call it", insert(source.span(node).end, "()"))
            problem, mend = "makes an initializer, and is given as one", f"call it: `{text}(...)`"
        elif isinstance(value, Ext) and value.name in ARRAY_FUNCTIONS:
            package, initializer = spelled("nnx.initializers", module, event.frame.env), ARRAY_FUNCTIONS[value.name]
            if node is not None and package is not None:
                fix = Fix("Use the initializer", (Edit(source.span(node), f"{package}.{initializer}"),))
            problem = "takes a shape; an initializer takes a key, a shape and a dtype"
            mend = f"use `nnx.initializers.{initializer}`"
        elif isinstance(value, (Array, Const)) and not (isinstance(value, Const) and value.value is None):
            text, problem = keyword, f"is {value.describe()} and cannot be called"
            mend = "use `nnx.initializers.constant(value)`"
        else:
            continue
        report(module, node or event.node, fix=fix, name=text, problem=problem, mend=mend)


@judges_calls(rules.INITIALIZER, "nnx.with_metadata", "nnx.with_partitioning")
def wrapped_factory(event: Called, report: Reporter) -> None:
    node, module = given(event).node_of(0, "initializer"), event.frame.module
    name = factory(given(event).get(0, "initializer"))
    if name is not None and node is not None:
        fix = Fix("Call it", insert(module.source.span(node).end, "()")) if name not in NEEDING else None
        problem, text = "makes an initializer, and is given as one", module.source.segment(node)
        report(module, node, fix=fix, name=text, problem=problem, mend=f"call it: `{text}(...)`")


def _is_given(frame: Frame, node: ast.expr) -> bool:
    """Whether an expression is what a parameter of the running function brings, and others may bring something else."""
    func = frame.func
    inside = func is not None and any(node is part for part in walk(func.node.args))  # the default is what is mended
    return func is not None and not inside and root_of(node) in names_of_parameters(func.node)


def _as_called(frame: Frame, value: Value, node: ast.expr | None) -> tuple[Value, ast.expr | None]:
    """A parameter that is handed on, as its default has it, with the expression of that."""
    func, name = frame.func, value.name if isinstance(value, ParameterVal) else getattr(node, "id", None)
    default = func.defaults.get(name) if func is not None and name is not None else None
    if func is None or name is None or default is None or func.module is not frame.module or factory(default) is None:
        return value, node
    if default is not value and not isinstance(value, ParameterVal):
        return value, node  # somebody gives another one
    written = syntax_parameters.defaults(func.node.args).get(name)
    return default, written or node


@judges_calls(rules.INITIALIZER, "nnx.Param")
def param_of_no_array(event: Called, report: Reporter) -> None:
    value, node = (event.args[0], event.nodes[0]) if event.args and event.nodes else (None, None)
    if value is None or node is None or isinstance(node, ast.Starred):
        return
    shape = isinstance(value, Seq) and value.type == "tuple" and value.exact and bool(value.items)
    if isinstance(value, Seq) and shape and all(is_size(item) for item in value.items):
        problem = "is made of a shape, and takes an array"
        mend = f"make one: `nnx.Param(jnp.zeros({text_of(node)}))`"
    elif isinstance(value, Seq) and value.type == "list" and value.items and all(map(_is_number, value.items)):
        problem = "is made of a list, and takes an array"
        mend = f"make one: `nnx.Param(jnp.array({text_of(node)}))`"
    elif isinstance(value, LibraryFunction) or factory(value) is not None or _fills(value):
        problem = "is made of an initializer, and takes an array"
        mend = "call it with a key and a shape: `init(rngs.params(), shape)`"
    elif isinstance(value, (FuncVal, PartialVal)):
        problem = "is made of a function, and takes an array"
        mend = "call the function, and make the Param of what it returns"
    else:
        return
    report(event.frame.module, event.node, name=event.name, problem=problem, mend=mend)


def _is_number(value: Value) -> bool:
    return isinstance(value, Const) and isinstance(value.value, (int, float)) and not isinstance(value.value, bool)


def is_size(value: Value) -> bool:
    """Whether a value is a number of elements, as in a shape."""
    if isinstance(value, Const):
        return isinstance(value.value, int) and not isinstance(value.value, bool)
    return isinstance(value, ParameterNumber)


FILLING = tuple(f"{head}.{name}" for head in ("nnx.initializers", "jax.nn.initializers") for name in ("ones", "zeros"))
"""Initializers that are functions themselves."""


def _fills(value: Value) -> bool:
    return isinstance(value, Ext) and value.name in FILLING


@judges_calls(rules.INITIALIZER, LibraryFunction, *FILLING)
def initializer_without_key(event: Called, report: Reporter) -> None:
    if not event.args or "key" in event.keywords or not event.nodes:
        return
    first = event.args[0]
    if isinstance(first, Seq) or (isinstance(first, Const) and isinstance(first.value, int)):
        name = event.name.removesuffix("(...)")
        problem = "is called without a key: an initializer takes a key, a shape and a dtype"
        report(event.frame.module, event.node, name=name, problem=problem, mend="draw one: `rngs.params()`")


SCALED = frozenset(
    f"jax.nn.initializers.{name}_{kind}"
    for name in ("glorot", "he", "kaiming", "lecun", "xavier")
    for kind in ("normal", "uniform")
) | {"jax.nn.initializers.variance_scaling", "jax.nn.initializers.orthogonal"}
"""Functions that make an initializer which counts the inputs and outputs of a kernel."""


@judges_calls(rules.INITIALIZER, LibraryFunction)
def initializer_of_vector(event: Called, report: Reporter) -> None:
    """A bias has no inputs and outputs to be counted."""
    made, args = event.callee, given(event)
    shape = args.get(1, "shape")
    if not isinstance(made, LibraryFunction) or made.maker not in SCALED or is_tried(event.frame.module, event.node):
        return
    if isinstance(shape, Seq) and shape.exact and len(shape.items) < 2:
        problem = f"counts the inputs and outputs of a kernel, and the shape has {len(shape.items) or 'no'} axis"
        mend = "take `nnx.initializers.zeros` or `normal()`, or give it a shape with two axes and reshape that"
        report(event.frame.module, event.node, name=event.name.removesuffix("(...)"), problem=problem, mend=mend)


@judges_calls(rules.INITIALIZER, *MAKING)
def initializer_of_bias(event: Called, report: Reporter) -> None:
    """The same, of the initializer that a layer is given for its bias, or a norm for its scale."""
    made = event.keywords.get("bias_init")
    cls = constructed(event)
    library = cls.made_as if cls is not None else None
    if library is None or library.name not in VECTORS:
        return
    if isinstance(made, LibraryFunction) and made.maker in SCALED:
        node = keyword_node(event.node, "bias_init")
        problem = "counts the inputs and outputs of a kernel, and a bias has one axis"
        name = text_of(node) if node is not None else "bias_init"
        report(event.frame.module, node or event.node, name=name, problem=problem, mend="take `nnx.initializers.zeros`")


VECTORS = frozenset({"BatchNorm", "Conv", "ConvTranspose", "GroupNorm", "LayerNorm", "Linear"})
"""Layers whose bias has one axis."""


# -- instances that cannot be called -----------------------------------------------------------------------------------

FORWARD = ("forward", "call", "apply", "_call_", "__calls__", "__cal__")
"""What people call the forward pass elsewhere, or by a slip."""


@judges_calls(rules.NOT_CALLABLE, Seq)
def list_called(event: Called, report: Reporter) -> None:
    """A list of modules, called as if it were one of them, or as if a map had taken it apart."""
    held = event.callee
    if not isinstance(held, Seq) or not held.exact or held.type not in {"list", "tuple"} or not held.items:
        return
    if _is_set_again(event) or is_tried(event.frame.module, event.node):
        return
    if all(isinstance(item, Obj) for item in held.items):
        report(event.frame.module, event.node, cls=held.type, name=event.name, mend="call what is in it, one by one")


def _is_set_again(event: Called) -> bool:
    """Whether a class sets what it calls in several places: an element of the list may have come in its place."""
    func = event.node.func if isinstance(event.node, ast.Call) else None
    if not isinstance(func, ast.Attribute) or event.frame.cls is None:
        return False
    return sum(attributes_stored(item.node).count(func.attr) for item in event.frame.cls.lineage) > 1


@judges_calls(rules.NOT_CALLABLE, Const)
def text_called(event: Called, report: Reporter) -> None:
    """The name of a function is called instead of the function: `self.activation` is `"gelu"`."""
    text, module, node = getattr(event.callee, "value", None), event.frame.module, event.node
    if not isinstance(text, str) or not is_array_function(f"jax.nn.{text}") or module.mentions("Enum"):
        return  # a member of an enumeration of strings may be called
    if not is_tried(module, node) and not is_asked_for(module, node):
        mend = f"look the function up where its name comes in: `getattr(nnx, {text!r})`, or a dict of functions"
        report(module, node, cls="str", name=event.name, mend=mend)


TRANSFORMATIONS = OPTIMIZERS | {
    "adaptive_grad_clip",
    "chain",
    "clip",
    "clip_by_global_norm",
    "masked",
    "multi_transform",
}
"""Functions of optax that make a transformation, which has two functions and is none."""


@judges_calls(rules.NOT_CALLABLE, TransformationVal, Array)
def value_called(event: Called, report: Reporter) -> None:
    """A transformation of optax, or an array, such as the value of a Variable, is called."""
    held, module = event.callee, event.frame.module
    if is_tried(module, event.node) or is_asked_for(module, event.node):
        return
    if isinstance(held, TransformationVal) and held.maker in TRANSFORMATIONS:
        mend = "hand it to `nnx.Optimizer`; several are one by `optax.chain(...)`"
        report(module, event.node, cls=f"optax.{held.maker}", name=event.name, mend=mend)
    elif isinstance(held, Array) and event.name.endswith(".value"):
        report(module, event.node, cls="array", name=event.name, mend=f"leave the parentheses out: `{event.name}`")
    elif isinstance(held, Array) and (other := _in_its_place(event)) is not None:
        caller, call = event.frame.caller, event.frame.call
        where = (related(caller.module, call, "the arguments come from here"),) if caller and call else ()
        mend = f"`{other}` got a module, and `{event.name}` an array: exchange the two arguments"
        report(module, event.node, related=where, cls="array", name=event.name, mend=mend)
    elif isinstance(held, Array) and (scope := _differentiated_by(event)) is not None:
        where = (related(scope.applied.module, scope.applied.node, "it is differentiated here"),)
        mend = f"`{scope.text}` hands over an array for `{event.name}`: give it the module to differentiate"
        report(module, event.node, related=where, cls="array", name=event.name, mend=mend)


def _differentiated_by(event: Called) -> TraceScope | None:
    """The derivative of the running function, which calls a parameter of its own."""
    frame, called = event.frame, event.node.func if isinstance(event.node, ast.Call) else None
    scope = frame.scope[-1] if frame.scope else None
    if scope is None or scope.frame is not frame or frame.func is None or not isinstance(called, ast.Name):
        return None
    own = called.id in names_of_parameters(frame.func.node) and not assigned_in(frame.func.node)[called.id]
    return scope if own and scope.row.name in DIFFERENTIATING else None


def _in_its_place(event: Called) -> str | None:
    """The parameter that got a module, where another one that got an array is called."""
    frame, called = event.frame, event.node.func if isinstance(event.node, ast.Call) else None
    if not isinstance(called, ast.Name) or frame.func is None or frame.call is None:
        return None
    parameters = [name for name in names_of_parameters(frame.func.node) if not assigned_in(frame.func.node)[name]]
    modules = [name for name in parameters if is_module(frame.env.names.get(name))]
    return modules[0] if called.id in parameters and modules else None


CONTAINERS = (library_class("nnx.List"), library_class("nnx.Dict"))


@judges_calls(rules.NOT_CALLABLE, "()")
def module_not_callable(event: Called, report: Reporter) -> None:
    obj, frame = event.callee, event.frame
    if isinstance(obj, Obj) and obj.cls in CONTAINERS and not obj.assumed and not is_tried(frame.module, event.node):
        report(frame.module, event.node, cls=obj.cls.name, name=event.name, mend="call what is in it, one by one")
        return
    if not isinstance(obj, Obj) or not isinstance(obj.cls, UserClass) or not lacks_call(obj):
        return
    cls = obj.cls
    forward = forward_of(cls)
    mend = f"call it so, `{event.name}.{forward}(...)`, or rename the method" if forward else "define `__call__`"
    fix = _renamed(frame, cls, forward) if forward is not None else None
    report(frame.module, event.node, fix=fix, cls=cls.name, name=event.name, mend=mend)


def lacks_call(obj: Obj) -> bool:
    """Whether an object of the project's certainly cannot be called."""
    cls = obj.cls
    if not isinstance(cls, UserClass) or obj.origin is None or obj.assumed:
        return False  # of what was not seen to be made, the class may be one below
    library = cls.library
    if not cls.is_pytree or cls.is_open or cls.opaque or cls.remade or cls.find("__call__") is not None:
        return False
    if library is None or library.canonical not in {"nnx.Module", "nnx.Pytree", "nnx.Object"}:
        return False
    return cls.class_attribute("__call__") is None and "__call__" not in attribute_names(obj)


def forward_of(cls: UserClass) -> str | None:
    """The method of a class that people mean by calling it."""
    return next((name for name in FORWARD if method_of(cls, name) is not None), None)


def _renamed(frame: Frame, cls: UserClass, name: str) -> Fix | None:
    """Rename a method to ``__call__``, if nothing in its file calls it by its name."""
    found = method_of(cls, name)
    module = cls.module
    if found is None or found[0] is not cls or module is not frame.module:
        return None
    if any(isinstance(node, ast.Attribute) and node.attr == name for node in walk(module.tree)):
        return None
    span = module.source.span(found[1].node)
    start = module.source.text.find(f"def {name}", span.start, span.end)
    if start < 0:
        return None
    edit = Edit(Span(start + 4, start + 4 + len(name)), "__call__")
    return Fix(f"Rename `{name}` to `__call__`", (edit,), Applicability.UNSAFE)
