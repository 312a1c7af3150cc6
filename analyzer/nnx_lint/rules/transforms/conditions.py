"""What decides which branch is taken, and whether a loop goes on: one value, not an array of several (NNX826); and
branches that are no functions: modules (NNX476), results of calls (part of NNX403).

Invariants: only a shape that is known is judged; one that may have no axes at all is not known.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.containers import Seq
from nnx_lint.model.elements import library_elements
from nnx_lint.model.events import Ran
from nnx_lint.model.expressions import text_of
from nnx_lint.model.forms import held_array
from nnx_lint.model.states import StateVal
from nnx_lint.model.unions import options
from nnx_lint.model.values import Array, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.program import given, is_tried, keyword_node, resolved
from nnx_rules import layers
from nnx_rules.rules import modules as rules
from nnx_rules.rules.transforms import MODULE_AS_BRANCH, TRANSFORM_OPERANDS
from nnx_rules.shape_algebra import ANY

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.values import Value
    from nnx_rules.shapes import Shape

DECIDING = {
    f"{library}.{name}": argument
    for library in ("jax.lax", "nnx")
    for name, argument in (("cond", "pred"), ("switch", "index"))
}
"""Functions that choose a branch, and the parameter, their first, by which they do."""

TAKEN = {
    "cond": {1: "true_fun", 2: "false_fun"},
    "fori_loop": {2: "body_fun"},
    "switch": {1: "branches"},
    "while_loop": {0: "cond_fun", 1: "body_fun"},
}
"""The functions that control flow takes: positions and parameters."""

OPERANDS_BETWEEN = 5
"""How many arguments ``cond`` once had where an operand stood before each function."""


@judges_calls(rules.ARRAY_SHAPES, *DECIDING)
def branch_condition(event: Called, report: Reporter) -> None:
    subject, args = event.subject or "", given(event)
    shape, node = _several(args.get(0, DECIDING[subject])), args.node_of(0, DECIDING[subject])
    if shape is not None and node is not None and not is_tried(event.frame.module, event.node):
        problem = f"`{subject}` takes one branch, and is to choose it by an array of shape {layers.shown(shape)}"
        mend = "to choose for each element write `jnp.where`; for one choice reduce it: `jnp.all`, `jnp.any`"
        report(event.frame.module, node, problem=problem, mend=mend)


@judges_calls(MODULE_AS_BRANCH, "nnx.cond", "nnx.switch")
def module_as_branch(event: Called, report: Reporter) -> None:
    module = event.frame.module
    for value, node in functions_of(event):
        found = options(value) if value is not None else ()
        modules = [item for item in found if isinstance(item, Obj) and item.cls.derives_from("nnx.Module")]
        if modules and len(modules) == len(found) and node is not None and not is_tried(module, event.node):
            attr = node.attr if isinstance(node, ast.Attribute) else "layer"
            given_as = modules[0].describe()
            report(module, node, transform=event.subject, name=text_of(node), attr=attr, given=given_as)
            return


@judges_calls(TRANSFORM_OPERANDS, *(f"{library}.{name}" for library in ("jax.lax", "nnx") for name in TAKEN))
def result_as_function(event: Called, report: Reporter) -> None:
    """What a function returns, in the place of the function."""
    module = event.frame.module
    if len(event.args) == OPERANDS_BETWEEN or is_tried(module, event.node):
        return
    for value, node in functions_of(event):
        if isinstance(value, (Array, StateVal)) and isinstance(node, ast.Call):
            text = text_of(node.func)
            given_as = f"what `{text}(...)` returns, {value.describe()}"
            mend = f"pass a function, and its arguments after it: `{event.name}` calls it itself"
            report(module, node, transform=event.name, takes="a function here", given=given_as, mend=mend)
            return


@judges_calls(TRANSFORM_OPERANDS, *(name for name, parameter in DECIDING.items() if parameter == "pred"))
def function_as_condition(event: Called, report: Reporter) -> None:
    """The branches come first, and the condition after them."""
    node = given(event).node_of(0, "pred")
    if isinstance(given(event).get(0, "pred"), FuncVal) and node is not None and not is_tried(event.frame.module, node):
        takes, given_as = "a condition first", f"the function `{text_of(node)}`"
        mend = f"the condition comes first: `{event.name}(pred, true_fun, false_fun, *operands)`"
        report(event.frame.module, event.node, transform=event.name, takes=takes, given=given_as, mend=mend)


def functions_of(event: Called) -> list[tuple[Value | None, ast.expr | None]]:
    """What a call gets in the places of the functions that it is to call, each with the expression."""
    args, name = given(event), (event.subject or "").rpartition(".")[2]
    if name != "switch":
        return [(args.get(place, word), args.node_of(place, word)) for place, word in TAKEN[name].items()]
    listed, node = args.get(1, "branches"), args.node_of(1, "branches")
    listed = library_elements(listed) if isinstance(listed, Obj) else listed
    held = listed.items if isinstance(listed, Seq) else []
    several = isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) == len(held)
    written: list[ast.expr | None] = [*node.elts] if isinstance(node, (ast.List, ast.Tuple)) and several else []
    return list(zip(held, written or [node] * len(held), strict=True))


def is_while(event: Ran) -> bool:
    """Whether a function of a ``while_loop`` has run."""
    return event.scope.row.name.endswith(".while_loop")


@judges(rules.ARRAY_SHAPES, Ran, when=is_while)
def loop_condition(event: Ran, report: Reporter) -> None:
    func, shape = event.scope.frame.func if event.scope.frame is not None else None, _several(event.result)
    if shape is None or func is None or is_tried(event.frame.module, event.node):
        return
    first = event.node.args[0] if isinstance(event.node, ast.Call) and event.node.args else None
    first = keyword_node(event.node, "cond_fun") if first is None else first
    condition = resolved(event.frame.env, first) if not isinstance(first, ast.Lambda) else None
    if first is func.node or (isinstance(condition, FuncVal) and condition.node is func.node):
        problem = f"the condition of `{event.scope.text}` returns an array of shape {layers.shown(shape)}"
        mend = "it returns one truth value: reduce it by `jnp.all` or `jnp.any`, or take an element"
        report(func.module, func.node, problem=problem, mend=mend)


def _several(value: Value | None) -> Shape | None:
    """The shape of an array that is no single value."""
    held = held_array(value) if value is not None else None
    shape = held.form.shape if isinstance(held, Array) and held.form is not None else None
    return shape if shape and shape != (ANY,) else None
