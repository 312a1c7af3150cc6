"""States that go into a model of other sizes (NNX336): ``nnx.update`` puts each array in the place of another one, and
``nnx.merge`` makes a model of them whose graphdef says other sizes.

Invariants: only a State counts that is as ``nnx.state`` or ``nnx.split`` took it, of another model that was seen to be
made, and nothing has been put into it or taken out since; the sizes are known as numbers on both sides.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.containers import Seq
from nnx_lint.model.events import Called, Mutated
from nnx_lint.model.leaves import same_object, shape_at
from nnx_lint.model.states import GraphDefVal, StateVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.filters.coverage import leaves_of, path_text
from nnx_lint.rules.program import (
    FUNCTIONS,
    assigned_in,
    attribute_reads,
    attributes_stored,
    enclosing,
    is_tried,
    reads_of,
)
from nnx_rules import layers
from nnx_rules._filter_logic import UNKNOWN
from nnx_rules.rules import graphs as rules
from nnx_rules.rules.checkpoints import CHECKPOINT_ARGUMENT

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.leaves import Path
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value


class Taken(dict[int, StateVal]):
    """The States as they were taken, by identity."""


@judges_calls(CHECKPOINT_ARGUMENT, "nnx.state", "nnx.split")
@judges_calls(rules.UPDATE_SHAPE, "nnx.state", "nnx.split")
def note_state(event: Called, report: Reporter) -> None:
    result = event.result
    states = [item for item in (result.items if isinstance(result, Seq) else [result]) if isinstance(item, StateVal)]
    report.memory(Taken).update((id(state), state) for state in states)


@judges(CHECKPOINT_ARGUMENT, Mutated)
@judges(rules.UPDATE_SHAPE, Mutated)
def note_change(event: Mutated, report: Reporter) -> None:
    if isinstance(event.target, StateVal):
        report.memory(Taken).pop(id(event.target), None)


@judges_calls(rules.UPDATE_SHAPE, "nnx.update", "nnx.merge")
def update_shape(event: Called, report: Reporter) -> None:
    node, frame = present(event.args[0]) if event.args and event.args[0] is not None else None, event.frame
    if isinstance(node, GraphDefVal):
        node = present(node.of)
    if not _is_made(node) or frame.doubtful or is_tried(frame.module, event.node):
        return
    for value, where in zip(event.args[1:], event.nodes[1:], strict=False):
        state = report.memory(Taken).get(id(value))
        other = present(state.of) if state is not None else None
        if node is None or state is None or other is None or not _is_made(other) or same_object(node, other):
            continue
        if not _is_untouched(frame.module, where):
            continue
        own = _paths(node, frame)
        for path, text in _paths(state, frame).items():
            expected, given = shape_at(node, path), shape_at(other, path)
            if path in own and expected is not None and given is not None and expected != given:
                report(frame.module, where, path=text, expected=layers.shown(expected), given=layers.shown(given))
                break


def _is_made(value: Value | None) -> bool:
    """Whether a value is an object whose construction was seen."""
    return isinstance(value, Obj) and not value.assumed and value.args is not None


def _is_untouched(module: Module, node: ast.AST) -> bool:
    """Whether a State is given as it was taken: there, or by a name or an attribute that is bound and read for that
    alone.
    """
    if isinstance(node, ast.Attribute):
        stored, read = attributes_stored(module.tree), attribute_reads(module.tree, node.attr)
        return stored.count(node.attr) == 1 and len(read) == 1
    if not isinstance(node, ast.Name):
        return isinstance(node, ast.Call)
    function = enclosing(module, node, *FUNCTIONS)
    scope = function if function is not None and assigned_in(function)[node.id] else module.tree
    return assigned_in(scope)[node.id] == 1 and len(reads_of(scope, node.id)) == 1


def _paths(value: Value, frame: Frame) -> dict[Path, str]:
    """The certain paths of Variables, each with how it is read."""
    paths = ((leaf.path, leaf) for leaf in leaves_of(value, frame).leaves)
    return {path: path_text(leaf) for path, leaf in paths if isinstance(path, tuple) and UNKNOWN not in path}
