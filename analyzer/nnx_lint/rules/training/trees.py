"""Masks and labels of optax for the parameters of an optimizer of NNX, and such an optimizer inside of optax (NNX618).

The parameters of an ``nnx.Optimizer`` are a State. JAX goes through a tree of labels beside it, and takes no other type
in its place: no dict, as Linen has, and no module. Since flax 0.11 the leaves of that State are plain arrays: a State
that ``jax.tree.map`` makes of ``nnx.state(model)`` has Variables around its labels, and does not go with it either.

Invariant: a function that makes the tree of the parameters that it gets is left alone.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.containers import DictVal
from nnx_lint.model.expressions import text_of
from nnx_lint.model.states import StateVal, TransformationVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.graphs.merging import is_module
from nnx_lint.rules.program import given, is_tried, results_of
from nnx_rules.api import OPTIMIZERS
from nnx_rules.rules import training as rules
from nnx_rules.transforms import TREE_MAPS

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.values import Value


class Mapped(set["Value"]):
    """The States that a function of the leaves has made of States: there are Variables in them."""


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, *TREE_MAPS, "jax.tree.map_with_path", "jax.tree_util.tree_map_with_path")
def note_mapped(event: Called, report: Reporter) -> None:
    tree = event.args[1] if len(event.args) == 2 and not event.keywords else None
    noted = report.memory(Mapped) if isinstance(tree, StateVal) and isinstance(event.result, StateVal) else None
    if noted is not None and isinstance(tree, StateVal) and (tree.made is None or tree in noted):
        noted.add(event.result)


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, *OPTIMIZERS)
def trees_of_optimizer(event: Called, report: Reporter) -> None:
    args = given(event)
    tx, node = args.get(1, "tx"), args.node_of(1, "tx")
    if isinstance(tx, TransformationVal) and node is not None:
        _judge(tx, node, event, report)
        _judge_variables(tx, node, event, report)


def _judge_variables(tx: TransformationVal, node: ast.expr, event: Called, report: Reporter) -> None:
    """A mask, or labels, with Variables around them; an optimizer that is not told ``wrt`` is one of before."""
    told = event.subject == "nnx.Optimizer" and ("wrt" in event.keywords or len(event.args) > 2)
    _, version = report.runs_on(event.frame.module)
    for maker, name, value in tx.trees if told and (version is None or version >= PURE) else ():
        if present(value) in report.memory(Mapped) and not is_tried(event.frame.module, event.node):
            problem = f"gets Variables in its `{name}`, and an optimizer hands it a State of plain arrays"
            mend = "hand over the function that makes the tree: `lambda params: jax.tree.map(..., params)`"
            report(event.frame.module, node, cls=f"optax.{maker}", problem=problem, mend=mend)
            return


PURE = (0, 11)
"""The version of flax since which optimizers compute with plain arrays."""


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, ".init")
def trees_of_state(event: Called, report: Reporter) -> None:
    """A transformation that the program calls by itself, for the State of a module."""
    tx = event.callee.receiver if isinstance(event.callee, BoundMethod) else None
    if isinstance(tx, TransformationVal) and event.args and isinstance(event.args[0], StateVal):
        _judge(tx, event.nodes[0], event, report)


def _judge(tx: TransformationVal, node: ast.expr, event: Called, report: Reporter) -> None:
    for maker, name, value in tx.trees:
        tree = present(value)
        makes = isinstance(tree, FuncVal) and _makes_dict(tree.node)
        if (isinstance(tree, DictVal) or is_module(tree) or makes) and not is_tried(event.frame.module, event.node):
            described = "a function that returns a dict" if makes else tree.describe()
            problem = f"gets {described} as its `{name}`, and the parameters are a State"
            each = '"head" in path' if name == "mask" else '"train" if "head" in path else "freeze"'
            function = f"lambda params: nnx.map_state(lambda path, leaf: {each}, params)"
            mend = f"hand over a function that makes a tree like them: `{function}`"
            report(event.frame.module, node, cls=f"optax.{maker}", problem=problem, mend=mend)
            return


def _makes_dict(node: ast.AST) -> bool:
    """Whether all that a function returns are dicts that are written there."""
    results = results_of(node)
    return bool(results) and all(isinstance(result, (ast.Dict, ast.DictComp)) for result in results)


@judges_calls(
    rules.OPTIMIZER_TRANSFORMATION,
    "optax.MultiSteps",
    "optax.apply_if_finite",
    "optax.chain",
    "optax.masked",
)
def optimizer_in_transformation(event: Called, report: Reporter) -> None:
    """An optimizer of NNX where optax takes a transformation."""
    for value, node in zip(event.args, event.nodes, strict=False):
        if _is_optimizer(value) and not is_tried(event.frame.module, event.node):
            problem = f"gets the optimizer `{text_of(node)}`, and takes a transformation"
            mend = f"make the optimizer of the result: `nnx.Optimizer(model, {event.name}(...), wrt=nnx.Param)`"
            report(event.frame.module, node, cls=event.name, problem=problem, mend=mend)


def _is_optimizer(value: Value | None) -> bool:
    kept = present(value) if value is not None else None
    return isinstance(kept, Obj) and kept.cls.derives_from("nnx.Optimizer") and not kept.assumed
