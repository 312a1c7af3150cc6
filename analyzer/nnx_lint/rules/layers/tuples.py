"""Modules that get all that a function returns where they take one array (NNX809): an output with its cache, a mean
with its variance.

Invariants: a function of the project writes the tuple down, and it begins with an array; the module is a layer of one
array, or says itself that it takes one. What a parameter was said to be has been judged where it was given.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.classes import UserClass, method_of
from nnx_lint.model.containers import Seq
from nnx_lint.model.values import Array, Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.layers.sizes import OF_ONE_ARRAY, is_pair, is_swapped, place_of
from nnx_lint.rules.program import canonical_of, is_tried
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_rules.rules import modules as rules

if TYPE_CHECKING:
    from nnx_lint.model.callables import FuncVal
    from nnx_lint.model.events import Called
    from nnx_lint.model.values import Value


def _gets_tuple(event: Called) -> bool:
    """Whether the first argument is a tuple that a function of the project returns, and that begins with an array."""
    return bool(event.args) and bool(event.nodes) and _parts(event.args[0]) > 1


@judges_calls(rules.LAYER_ARGUMENTS, "()", when=_gets_tuple)
def tuple_given(event: Called, report: Reporter) -> None:
    module, frame = event.callee, event.frame
    if not isinstance(module, Obj) or is_tried(frame.module, event.node):
        return
    if frame.func is not None and _is_said_to_be_array(frame.func, event.nodes[0]):
        return
    library = module.cls.called_as
    if library is not None and library.canonical in OF_ONE_ARRAY:
        if is_pair(event.args[0]) or is_swapped(event, report):
            return  # such as an LSTM carries
    elif library is not None or module.assumed or not _takes_array(module):
        return
    problem = f"`{place_of(event)}` gets a tuple of {_parts(event.args[0])}, and takes one array"
    mend = "take the tuple apart: `x, ... = ...`, and hand on the array"
    report(frame.module, event.node, cls=module.cls.name, problem=problem, mend=mend)


def _gets_many(event: Called) -> bool:
    """Whether the first argument is a list or tuple of arrays, nobody knows how many."""
    value = event.args[0] if event.args else None
    return type(value) is Seq and value.type in {"list", "tuple"} and isinstance(value.each, Array)


@judges_calls(rules.LAYER_ARGUMENTS, "()", when=_gets_many)
def unstacked_given(event: Called, report: Reporter) -> None:
    """The examples of a batch, one by one, to a layer that asks its input for its axes."""
    layer = event.callee
    library = layer.cls.called_as if isinstance(layer, Obj) else None
    if library is not None and library.canonical in CONVOLVING and not is_tried(event.frame.module, event.node):
        problem = f"`{place_of(event)}` gets many arrays in a list or tuple, and takes one array"
        mend = "make one batch of them first, where they are collected: `np.stack(images)`"
        report(event.frame.module, event.node, cls=library.name, problem=problem, mend=mend)


CONVOLVING = frozenset({"nnx.BatchNorm", "nnx.Conv", "nnx.ConvTranspose", "nnx.Dropout"})
"""Layers that make no array of a list."""


def _parts(value: Value | None) -> int:
    """How many values a tuple has that the program writes down, if the first or the last of them is an array."""
    if not isinstance(value, Seq) or value.type != "tuple" or not value.exact or value.shrunk:
        return 0
    if not isinstance(value.node, ast.Tuple) or not value.items:
        return 0
    return len(value.items) if isinstance(value.items[0], Array) or isinstance(value.items[-1], Array) else 0


def _takes_array(module: Obj) -> bool:
    """Whether the forward pass of a module of the project says that it takes one array first."""
    found = method_of(module.cls, "__call__") if isinstance(module.cls, UserClass) else None
    taken = syntax_parameters.positional(found[1].node.args)[1:2] if found is not None else []
    return found is not None and bool(taken) and _is_array(found[1], taken[0])


def _is_said_to_be_array(func: FuncVal, node: ast.expr) -> bool:
    """Whether an expression is the name of a parameter that is to be an array."""
    named = (item for item in syntax_parameters.each(func.node.args) if isinstance(node, ast.Name))
    return any(item.arg == getattr(node, "id", None) and _is_array(func, item) for item in named)


def _is_array(func: FuncVal, parameter: ast.arg) -> bool:
    said = parameter.annotation
    head = said.value if isinstance(said, ast.Subscript) else said
    name = canonical_of(func.module.env, head) or ""
    return name in ARRAYS if head is said else name.startswith("jaxtyping.") and name != "jaxtyping.PyTree"


ARRAYS = frozenset({"jax.Array", "jax.numpy.ndarray", "jaxtyping.Array"})
"""Annotations that say that something is one array."""
