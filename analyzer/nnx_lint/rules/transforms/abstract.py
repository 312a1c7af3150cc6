"""Models of which only shapes are there (NNX471): what ``nnx.eval_shape`` returns has no numbers until something puts
them there.

Invariants: a change of the object, whatever it is, ends what is known of it, and so does a text that may write to its
Variables or hands it on; a model that is merged of such a State has shapes only where it is of the State as it was
taken, and no statement may have put anything into that.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import Transformed
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import Called, Mutated
from nnx_lint.model.states import StateVal
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.costs.retracing import calls_compiled
from nnx_lint.rules.program import FUNCTIONS, ancestors, canonical_of, enclosing, is_tried, reads_of
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.dotted import called_by, root_of
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import transforms as rules

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value


class Abstract:
    """The objects that hold shapes only, with the calls that made them and the branches in which these stand, and their
    States as they were taken.
    """

    def __init__(self) -> None:
        self.made: dict[int, tuple[Value, Called, tuple[tuple[int, int], ...]]] = {}
        self.states: dict[int, StateVal] = {}


@judges_calls(rules.ABSTRACT_CALLED, "jax.eval_shape", "nnx.eval_shape")
def note_abstract(event: Called, report: Reporter) -> None:
    if isinstance(event.result, Obj) and event.result.cls.derives_from("nnx.Module") and not event.frame.scope:
        report.memory(Abstract).made[id(event.result)] = event.result, event, event.frame.branches


@judges_calls(rules.ABSTRACT_CALLED, "nnx.split", "nnx.state")
def note_state(event: Called, report: Reporter) -> None:
    noted, result = report.memory(Abstract), event.result
    for item in result.items if isinstance(result, Seq) else [result]:
        if isinstance(item, StateVal) and id(item.of) in noted.made:
            noted.states[id(item)] = item


@judges_calls(rules.ABSTRACT_CALLED, "nnx.merge")
def note_merged(event: Called, report: Reporter) -> None:
    """A model that is merged of the State of one that holds shapes."""
    noted, result = report.memory(Abstract), event.result
    states = event.args[1:]
    state = noted.states.get(id(states[0])) if len(states) == 1 else None
    if state is None or not isinstance(result, Obj) or event.frame.scope:
        return
    known = noted.made.get(id(state.of))
    if known is not None and not _may_be_filled(event.frame.module, event.nodes[1]):
        noted.made[id(result)] = result, known[1], event.frame.branches


def _may_be_filled(module: Module, state: ast.expr) -> bool:
    """Whether a statement may put arrays into the State of this name."""
    if not isinstance(state, ast.Name):
        return True
    return any(is_name(part, state.id) for node in walk(module.tree) for part in walk(_changing(node) or ast.Pass()))


def _changing(node: ast.AST) -> ast.AST | None:
    """The part of a statement by which something may be changed that it names."""
    if isinstance(node, (ast.Subscript, ast.Attribute)):
        return None if isinstance(node.ctx, ast.Load) else node
    if isinstance(node, (ast.For, ast.comprehension)):
        return node.iter
    return node.value if isinstance(node, ast.Expr) else None


@judges(rules.ABSTRACT_CALLED, Mutated)
def note_filled(event: Mutated, report: Reporter) -> None:
    if event.method not in SETTING_MODES:
        report.memory(Abstract).made.pop(id(event.target), None)


@judges_calls(rules.ABSTRACT_CALLED, "()")
def abstract_called(event: Called, report: Reporter) -> None:
    known = report.memory(Abstract).made.get(id(event.callee))
    if known is None or event.frame.scope or _may_be_spared(event, known[2]):
        return
    name = root_of(called_by(event.node)) if isinstance(event.node, ast.Call) else None
    if not _may_be_written(event, name):
        _report(event, known[1], event.name, report)


def _may_be_spared(event: Called, branches: tuple[tuple[int, int], ...]) -> bool:
    """Whether it is not certain that a call runs with the object that was made in these branches."""
    frame = event.frame
    return (frame.doubtful and frame.branches != branches) or is_tried(frame.module, event.node)


def _report(event: Called, made: Called, name: str, report: Reporter) -> None:
    where = (related(made.frame.module, made.node, "only its shapes are computed here"),)
    report(event.frame.module, event.node, related=where, name=name)


@judges_calls(rules.ABSTRACT_CALLED, Transformed, when=calls_compiled)
def abstract_compiled(event: Called, report: Reporter) -> None:
    """A compiled function gets such a model: JAX takes arrays only."""
    noted = report.memory(Abstract).made
    for value, node in zip(event.args, event.nodes, strict=False) if noted else ():
        known = noted.get(id(value))
        if known is None or _may_be_spared(event, known[2]):
            continue
        if isinstance(node, ast.Name) and not _may_be_written(event, node.id):
            _report(event, known[1], node.id, report)
            return


SHOWING = frozenset(
    {
        *("nnx.ModelAndOptimizer", "nnx.Optimizer", "nnx.display", "nnx.graphdef", "nnx.split", "nnx.state"),
        "builtins.print",
    }
)
"""Functions that leave the module alone that they get."""

SETTING_MODES = frozenset({"eval", "set_attributes", "train"})


def _may_be_written(event: Called, name: str | None) -> bool:
    """Whether the function writes to a part of the object of this name, or hands it to something that may, but for the
    call that is judged.
    """
    module = event.frame.module
    given = {*event.nodes}
    scope = enclosing(module, event.node, *FUNCTIONS) or module.tree
    return name is None or any(_lets_write(event, read) for read in reads_of(scope, name) if read not in given)


def _lets_write(event: Called, read: ast.Name) -> bool:
    """Whether a mention of the object writes to it, gives it another name, or goes over its parts."""
    part: ast.expr = read
    for outer in ancestors(event.frame.module, read):
        if isinstance(outer, (ast.Attribute, ast.Subscript)) and outer.value is part:
            part = outer
            continue
        if isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load):
            return True
        if isinstance(outer, ast.Call) and outer.func is part:
            return isinstance(part, ast.Attribute) and part.attr not in SETTING_MODES
        if isinstance(outer, ast.Call):
            return canonical_of(event.frame.env, outer.func) not in SHOWING
        return isinstance(outer, (ast.keyword, ast.Starred, ast.Assign, ast.AnnAssign, ast.For, ast.comprehension))
    return False
