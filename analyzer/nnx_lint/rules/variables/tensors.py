"""What people do with tensors of PyTorch and arrays of numpy that JAX's arrays do not have: assignment to elements
(NNX824), methods and arguments of other names (NNX825).

Invariants: numpy's own arrays are never meant; what an array has by another name is said by a table, and an attribute
that is in no table is left alone.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import FuncVal, LibraryFunction, Transformed
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import ArrayWritten, Called, OtherAttributeSet, Used, VariableAttributeSet
from nnx_lint.model.expressions import text_of
from nnx_lint.model.naming import value_at
from nnx_lint.model.tables.public_names import PARAMETERS
from nnx_lint.model.values import Array, ArrayAttr, Const, HostArray, Obj, Other, ParameterNumber
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.autodiff.values import scope_of
from nnx_lint.rules.bindings import pairs_of, value_of
from nnx_lint.rules.callees import called_value
from nnx_lint.rules.edits import remove_argument, replace
from nnx_lint.rules.program import (
    FUNCTIONS,
    canonical_of,
    enclosing,
    follows,
    is_asked_for,
    is_for_others,
    is_tried,
    own_nodes,
    resolved,
    results_of,
)
from nnx_lint.syntax.binding import is_name
from nnx_rules.rules import construction
from nnx_rules.rules import variables as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

# -- elements that are assigned ----------------------------------------------------------------------------------------

METHODS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Pow: "power",
}
"""The method of ``.at[...]`` for an assignment with an operator."""


@judges(rules.ARRAY_ITEM_ASSIGNED, ArrayWritten)
def array_item_assigned(event: ArrayWritten, report: Reporter) -> None:
    module, node = event.frame.module, event.node
    if isinstance(event.target, HostArray) or is_tried(module, node):
        return
    if isinstance(node, ast.Assign):
        targets, method = node.targets, "set"
    elif isinstance(node, ast.AugAssign):
        targets, method = [node.target], METHODS.get(type(node.op), "")
    else:
        return
    places = [item for item in targets if isinstance(item, ast.Subscript)]
    if len(targets) != 1 or not places or not method:
        return
    place = places[0]
    made = _is_computed(module, place.value, node) or is_attribute_of_jax(event.frame, place.value)
    if not made and scope_of(event, event.target) is None:
        return
    array, index, value = (module.source.segment(item) for item in (place.value, place.slice, node.value))
    new = f"{array} = {array}.at[{index}].{method}({value})"
    fix = None
    if isinstance(place.value, ast.Name):
        fix = Fix("Make a new array", (Edit(module.source.span(node), new),), Applicability.UNSAFE)
    short = new if "\n" not in new and len(new) < LONGEST else f"{array}.at[...].{method}(...)"
    report(module, node, fix=fix, name=text_of(place.value), mend=f"make a new one: `{short}`")


def _is_computed(module: Module, array: ast.expr, here: ast.stmt) -> bool:
    """Whether an array is the value of a Variable, or a name that a call in this function was bound to.

    What only an annotation calls an array may be one of numpy, or a reference of Pallas, which can be written to.
    """
    if isinstance(array, ast.Call):
        return isinstance(array.func, ast.Attribute) and array.func.attr == "get_value"
    if not isinstance(array, ast.Name):
        return isinstance(array, ast.Attribute) and array.attr == "value"
    for statement in own_nodes(enclosing(module, here, *FUNCTIONS) or module.tree):
        pairs = (pair for pair in pairs_of(statement) if is_name(pair[0], array.id))
        bound = (value_of(module, value) or value for _, value in pairs)
        made = statement is not here and any(_gives_array(each, array) for each in bound)
        if made and isinstance(statement, ast.stmt) and follows(module, statement, here):
            return True
    return False


def _gives_array(value: ast.expr, array: ast.Name) -> bool:
    """Whether an expression is a call, but of no method of this array, or reads the value of a Variable."""
    func = value.func if isinstance(value, ast.Call) else None
    again = isinstance(func, ast.Attribute) and is_name(func.value, array.id)
    return (func is not None and not again) or _is_value_of_variable(value)


def is_attribute_of_jax(frame: Frame, array: ast.expr) -> bool:
    """Whether all that a class puts into an attribute is made by functions of JAX."""
    owner = resolved(frame.env, array.value) if isinstance(array, ast.Attribute) else None
    attr = attribute_of(owner, array.attr) if isinstance(owner, Obj) and isinstance(array, ast.Attribute) else None
    assigned = [item.value_node for item in attr.assignments] if attr is not None else []
    made = [item for item in assigned if item is not None]
    return bool(made) and all(
        _is_value_of_variable(item)
        or (isinstance(item, ast.Call) and (canonical_of(frame.env, item.func) or "").startswith("jax."))
        for item in made
    )


def _is_value_of_variable(node: ast.expr) -> bool:
    """Whether an expression is how the value of a Variable is read, where it is an array: ``x[...]``, ``x.value``."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
        return isinstance(node.slice, ast.Constant) and node.slice.value is ...
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "get_value"
    return isinstance(node, ast.Attribute) and node.attr == "value"


LONGEST = 80
"""How long a statement may be for a message to show it."""


# -- methods of tensors ------------------------------------------------------------------------------------------------

_FUNCTIONS = (
    *("abs", "ceil", "cos", "exp", "floor", "log", "log2", "sign", "sin", "sqrt", "square"),
    *("tanh", "tril", "triu"),
)

FOREIGN = {
    **dict.fromkeys(("append", "extend"), "a list, and make an array of it in the end: `jnp.stack(values)`"),
    "permute": "`transpose`, or `jnp.permute_dims(x, axes)`",
    "unsqueeze": "`jnp.expand_dims(x, axis)`, or `x[:, None]`",
    "expand": "`jnp.broadcast_to(x, shape)`",
    "expand_as": "`jnp.broadcast_to(x, y.shape)`",
    "masked_fill": "`jnp.where(mask, value, x)`",
    "contiguous": "nothing: leave it out",
    "detach": "`jax.lax.stop_gradient(x)`",
    "requires_grad_": "nothing: `nnx.grad` differentiates with respect to its arguments",
    "backward": "`nnx.grad(loss_fn)(model)`",
    "zero_": "a new array: `jnp.zeros_like(x)`",
    "fill_": "a new array: `jnp.full_like(x, value)`",
    "copy_": "a new array, or `variable[...] = x`",
    "add_": "a new array: `x + y`",
    "sub_": "a new array: `x - y`",
    "mul_": "a new array: `x * y`",
    "div_": "a new array: `x / y`",
    "clamp": "`clip`",
    "clamp_": "`clip`",
    "cuda": "`jax.device_put(x, device)`",
    "cpu": "`jax.device_get(x)`",
    "to": "`x.astype(dtype)`, or `jax.device_put(x, device)`",
    "numpy": "`np.asarray(x)`",
    "float": "`x.astype(jnp.float32)`",
    "long": "`x.astype(jnp.int32)`",
    "half": "`x.astype(jnp.float16)`",
    "bfloat16": "`x.astype(jnp.bfloat16)`",
    "type_as": "`x.astype(y.dtype)`",
    "chunk": "`jnp.split(x, n, axis)`",
    "index_select": "`jnp.take(x, index, axis)`",
    "gather": "`jnp.take_along_axis(x, index, axis)`",
    "repeat_interleave": "`jnp.repeat(x, n, axis)`",
    "unbind": "`jnp.unstack(x, axis)`",
    "ndimension": "`ndim`",
    "nelement": "`size`",
    "numel": "`size`",
    "bmm": "`x @ y`",
    "mm": "`x @ y`",
    "matmul": "`x @ y`",
    "softmax": "`nnx.softmax(x, axis)`",
    "log_softmax": "`nnx.log_softmax(x, axis)`",
    "sigmoid": "`nnx.sigmoid(x)`",
    "relu": "`nnx.relu(x)`",
    "norm": "`jnp.linalg.norm(x)`",
    "assign": "`variable[...] = x`",
    "assign_add": "`variable[...] += x`",
    "assign_sub": "`variable[...] -= x`",
    "bool": "`x.astype(bool)`",
    "dim": "`ndim`",
    "double": "`x.astype(jnp.float64)`",
    "flip": "`jnp.flip(x, axis)`",
    "int": "`x.astype(jnp.int32)`",
    "masked_select": "`x[mask]`",
    "new_zeros": "`jnp.zeros(shape, x.dtype)`",
    "normal_": "a new array: `jax.random.normal(key, x.shape)`",
    "pow": "`x ** n`",
    "reshape_as": "`x.reshape(y.shape)`",
    "roll": "`jnp.roll(x, shift, axis)`",
    "rsqrt": "`jax.lax.rsqrt(x)`",
    "scatter_": "a new array: `x.at[index].set(values)`",
    "split": "`jnp.split(x, n, axis)`",
    "t": "`T`",
    "topk": "`jax.lax.top_k(x, k)`",
    "uniform_": "a new array: `jax.random.uniform(key, x.shape)`",
    "unsqueeze_": "`jnp.expand_dims(x, axis)`, or `x[:, None]`",
    "view_as": "`x.reshape(y.shape)`",
    **{name: f"`jnp.{name}(x)`" for name in _FUNCTIONS},
}
"""Methods of PyTorch's tensors that JAX's arrays lack, with what there is instead."""


OF_ARRAYS = (
    *("all", "any", "argmax", "argmin", "astype", "flatten", "item", "max", "mean", "min", "numpy", "prod", "reshape"),
    *("squeeze", "std", "sum", "var"),
)
"""Methods of arrays that lists and tuples lack."""


@judges_calls(rules.TENSOR_IDIOM, *(f".{name}" for name in OF_ARRAYS))
def method_of_list(event: Called, report: Reporter) -> None:
    """A list that the program writes down is used like an array of its elements: ``losses = []``, ``losses.mean()``."""
    owner, func = event.owner, event.node.func if isinstance(event.node, ast.Call) else None
    if not isinstance(owner, Seq) or not isinstance(owner.node, LISTS) or not isinstance(func, ast.Attribute):
        return
    if owner.type in {"list", "tuple"} and not is_tried(event.frame.module, event.node):
        problem = f"a {owner.type} has no method `{func.attr}`"
        mend = f"make an array of it: `jnp.array({text_of(func.value)}).{func.attr}(...)`"
        report(event.frame.module, event.node, problem=problem, mend=mend)


LISTS = (ast.List, ast.ListComp, ast.Tuple)

TYPES: dict[str, type] = {"tuple": tuple, "list": list}


@judges(construction.MISSING_ATTRIBUTE, Used, of=(Seq,))
def attribute_of_part(event: Used, report: Reporter) -> None:
    """All that a function returns is asked for what a part of it has: ``self.encode(x).sample(key)`` for a pair."""
    owner, node, module, name = event.value, event.node, event.frame.module, event.what
    if not isinstance(owner, Seq) or not isinstance(node, ast.Attribute) or not isinstance(owner.node, LISTS):
        return
    if name != node.attr or not _is_no_other(event.frame, node.value, owner):
        return  # an attribute whose value is used, as an f-string does; or one of several things
    if owner.type not in TYPES or hasattr(TYPES[owner.type], name) or name in OF_ARRAYS or event.frame.doubtful:
        return
    if not is_tried(module, node) and not is_asked_for(module, node) and not is_for_others(event.frame):
        mend = f"take the part that is meant: `{text_of(node.value)}[0].{name}`"
        report(module, node, cls=owner.type, name=name, mend=mend)


def _is_no_other(frame: Frame, node: ast.expr, owner: Seq) -> bool:
    """Whether an expression is a certain list or tuple, and not one of several things: a name stands for it, or a
    function is called that makes one at each place where it returns.
    """
    if not isinstance(node, ast.Call):
        return value_at(frame, node) is owner
    func = called_value(frame.env, node.func)
    while isinstance(func, Transformed):
        func = func.func
    results = results_of(func.node) if isinstance(func, FuncVal) else []
    return bool(results) and all(isinstance(each, LISTS) for each in results)


@judges_calls(rules.TENSOR_IDIOM, ArrayAttr)
def tensor_method(event: Called, report: Reporter) -> None:
    method, module = event.callee, event.frame.module
    if not isinstance(method, ArrayAttr) or method.host or method.owner:
        return
    mend = FOREIGN.get(method.name)
    if mend is None and method.name.endswith("_") and not method.name.startswith("_"):
        mend = "what returns a new array: JAX changes none in place"
    if mend is None and method.name in OF_AT and (place := _element(event.node)) is not None:
        mend = f"`{text_of(place.value)}.at[...].{method.name}(...)`, which returns a new array"
    if method.name == "view" and (len(event.args) > 2 or any(map(_is_number, event.args))):
        problem, mend = "`view` of a JAX array takes a dtype, not a shape", "`reshape`"
    else:
        problem = f"a JAX array has no method `{method.name}`"
    if mend is not None and not is_tried(module, event.node):
        fix = partial(_by_another_name, module, event.node)
        report(module, event.node, fix=fix, problem=problem, mend=f"use {mend}")


OF_AT = frozenset({"add", "apply", "divide", "mul", "multiply", "power", "set", "subtract"})
"""Methods of ``x.at[index]`` that ``x[index]`` lacks."""


def _element(call: ast.AST) -> ast.Subscript | None:
    """What of an array a method is called of, where that is written as elements of it."""
    owner = call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
    return owner if isinstance(owner, ast.Subscript) else None


RENAMED = {"clamp": "clip", "permute": "transpose", "view": "reshape"}
"""Methods of tensors that arrays have by another name, with the same arguments by position."""


def _by_another_name(module: Module, node: ast.AST) -> Fix | None:
    func = node.func if isinstance(node, ast.Call) and not node.keywords else None
    name = RENAMED.get(func.attr) if isinstance(func, ast.Attribute) else None
    if not isinstance(func, ast.Attribute) or name is None:
        return None
    end = module.source.span(func).end
    return Fix(f"Call `{name}`", (Edit(Span(end - len(func.attr), end), name),))


def _is_number(value: object) -> bool:
    return isinstance(value, ParameterNumber) or (isinstance(value, Const) and isinstance(value.value, int))


ARGUMENTS: dict[str, str | None] = {"dim": "axis", "dims": "axis", "keepdim": "keepdims", "requires_grad": None}
"""Arguments of PyTorch's functions, with their names in JAX, which has next to none with those of PyTorch."""

LEFT_OUT = {
    "inplace": "leave it out: nothing is changed in place",
    "requires_grad": "leave it out: `nnx.grad` differentiates with respect to its arguments",
}
"""What to do with those that JAX has no name for."""

POOLING: dict[str, str | None] = {"kernel_size": "window_shape", "stride": "strides"}
"""The same of the functions of NNX that pool."""


@judges_calls(rules.TENSOR_IDIOM, "jax.numpy.*", "jax.nn.*", "nnx.*", ArrayAttr)
def tensor_argument(event: Called, report: Reporter) -> None:
    callee = event.callee
    if isinstance(callee, ArrayAttr) and (callee.host or callee.owner):
        return
    if not isinstance(event.result, Array) or isinstance(callee, LibraryFunction):
        return
    subject = event.subject or ""
    arguments = ARGUMENTS | (POOLING if subject.endswith("_pool") else {})
    if not subject.startswith("jax.numpy."):
        arguments = {**arguments, "inplace": None}  # `jnp.place` has one
    own = PARAMETERS.get(subject, "").split()  # `jnp.ravel_multi_index` has `dims`
    name = next((name for name in event.keywords if name in arguments and name not in own), None)
    if name is not None:
        right = arguments[name]
        problem = f"`{event.name}` takes no `{name}`"
        mend = f"it is called `{right}`" if right is not None else LEFT_OUT.get(name, "")
        fix = partial(_argument_renamed, event.frame.module, event.node, name, right)
        report(event.frame.module, event.node, fix=fix, problem=problem, mend=mend)


def _argument_renamed(module: Module, call: ast.AST, name: str, right: str | None) -> Fix | None:
    """Give an argument the name that it has here, or leave it out where there is none."""
    found = [item for item in call.keywords if item.arg == name] if isinstance(call, ast.Call) else []
    if not found or not isinstance(call, ast.Call):
        return None
    if right is None:
        edits = remove_argument(module.source, call, found[0].value)
        return Fix(f"Leave out `{name}`", edits) if edits is not None else None
    start = module.source.span(found[0]).start
    return Fix(f"Write `{right}`", (Edit(Span(start, start + len(name)), right),))


PROPERTIES = {
    **dict.fromkeys(("shape", "size"), "write `x.shape[axis]`"),
    **dict.fromkeys(("dtype", "ndim"), "leave out the arguments, and the call"),
}
"""Attributes of arrays that are methods of tensors or of nothing, with what to write for a call with arguments."""


@judges_calls(rules.TENSOR_IDIOM, Const, Other, Seq)
def property_called(event: Called, report: Reporter) -> None:
    func = event.node.func if isinstance(event.node, ast.Call) else None
    if isinstance(event.owner, Array) and isinstance(func, ast.Attribute) and func.attr in PROPERTIES:
        problem = f"`{func.attr}` of a JAX array is no method"
        mend = PROPERTIES[func.attr] if event.args or func.attr == "shape" else f"write `x.{func.attr}`"
        report(event.frame.module, event.node, fix=partial(_as_property, event), problem=problem, mend=mend)


def _as_property(event: Called) -> Fix | None:
    """Read a property, or an element of the shape where the number of an axis is given."""
    call, source = event.node, event.frame.module.source
    if (
        not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or call.keywords
        or len(call.args) > 1
    ):
        return None
    text = name = call.func.attr
    if call.args and (name not in {"shape", "size"} or isinstance(call.args[0], ast.Starred)):
        return None
    if call.args:
        text = f"shape[{source.segment(call.args[0])}]"
    start = source.span(call.func).end - len(name)  # what stands before it may be in parentheses
    return Fix(f"Write `.{text}`", (Edit(Span(start, source.span(call).end), text),))


@judges(rules.TENSOR_IDIOM, VariableAttributeSet)
def gradient_switched_off(event: VariableAttributeSet, report: Reporter) -> None:
    if event.name == "requires_grad" and event.action == "set":
        problem = "nothing reads `requires_grad` of a Variable: it is trained as before"
        mend = "say what is trained: `nnx.Optimizer(model, tx, wrt=...)`, `nnx.grad(f, argnums=nnx.DiffState(0, ...))`"
        report(event.frame.module, event.node, problem=problem, mend=mend)


@judges(rules.TENSOR_IDIOM, OtherAttributeSet, of=(Array,), when=lambda event: event.name == "requires_grad")
def gradient_of_array(event: OtherAttributeSet, report: Reporter) -> None:
    if not isinstance(event.value, HostArray) and not is_tried(event.frame.module, event.node):
        problem = "nothing reads `requires_grad` of an array: what it belongs to is trained as before"
        mend = "say what is trained: `nnx.Optimizer(model, tx, wrt=...)`, `nnx.grad(f, argnums=nnx.DiffState(0, ...))`"
        report(event.frame.module, event.node, problem=problem, mend=mend)


_ACTIVATIONS = """
    celu elu gelu glu hard_tanh leaky_relu log_sigmoid log_softmax relu relu6 selu sigmoid silu soft_sign softmax
    softplus swish tanh
"""

ACTIVATIONS = tuple(f"nnx.{name}" for name in _ACTIVATIONS.split())
"""Functions of NNX where PyTorch has classes."""


@judges_calls(rules.TENSOR_IDIOM, *ACTIVATIONS, when=lambda event: not event.args)
def activation_made(event: Called, report: Reporter) -> None:
    if "x" in event.keywords or "**" in event.keywords:
        return
    options = ", ".join(f"{name}=..." for name in event.keywords)
    mend = f"write `lambda x: {event.name}(x, {options})`" if options else f"pass the function: `{event.name}`"
    problem = f"`{event.name}` is a function of an array, and is called without one"
    call, source = event.node, event.frame.module.source
    alone = isinstance(call, ast.Call) and not call.keywords
    text = source.segment(call.func) if isinstance(call, ast.Call) else ""
    fix = Fix("Pass the function", replace(source, call, text)) if alone else None
    report(event.frame.module, call, fix=fix, problem=problem, mend=mend)
