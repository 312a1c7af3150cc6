"""Checkpoints of Orbax: under a path that is not absolute (NNX656), with something in the place of what says how it is
to be saved (NNX654).

Invariants: of the path at least the beginning is known, as a literal of the program. A manager that is judged by how it
was made has been given no handler, and no name of an item: there is one way to save with it.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.expressions import text_of
from nnx_lint.model.foreign import is_of_orbax
from nnx_lint.model.states import ForeignVal, GraphDefVal, RawTree, StateVal
from nnx_lint.model.strings import HOLE, text_in
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Array, Const, Value
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import value_of
from nnx_lint.rules.graphs.merging import is_module
from nnx_lint.rules.program import canonical_of, given, is_tried, keyword_node, resolved
from nnx_rules.rules import checkpoints as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Env

PATHS = frozenset({"etils.epath.Path", "pathlib.Path", "pathlib.PosixPath"})
"""Classes of paths."""

ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:[/\\]|\w+://")
"""How a path begins that does not depend on the current folder."""


@judges_calls(rules.RELATIVE_CHECKPOINT_PATH, ".save", ".restore")
def relative_path(event: Called, report: Reporter) -> None:
    callee = event.callee
    owner = callee.receiver if isinstance(callee, BoundMethod) else None
    if isinstance(owner, ForeignVal) and owner.name.endswith("Checkpointer"):
        _judge(event, "directory", report)


@judges_calls(rules.RELATIVE_CHECKPOINT_PATH, "orbax.checkpoint.CheckpointManager")
def relative_folder(event: Called, report: Reporter) -> None:
    _judge(event, "directory", report)


def _judge(event: Called, name: str, report: Reporter) -> None:
    args, module = given(event), event.frame.module
    node = args.node_of(0, name)
    text = _beginning(event.frame.env, args.get(0, name), node) if node is not None else None
    if not text or text.startswith(HOLE) or ABSOLUTE.match(text) or is_tried(module, event.node) or node is None:
        return
    report(module, node, path=text.replace(HOLE, "..."), name=event.name)


def _beginning(env: Env, value: Value | None, node: ast.expr) -> str | None:
    """What a path begins with, as far as it is known."""
    text = text_in(value) if value is not None else None
    if text is not None:
        return text
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return _beginning(env, resolved(env, node.left), node.left)
    if isinstance(node, ast.Call) and len(node.args) == 1 and canonical_of(env, node.func) in PATHS:
        return _beginning(env, resolved(env, node.args[0]), node.args[0])
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


MANAGER = "orbax.checkpoint.CheckpointManager"
SAVING = "orbax.checkpoint.args."

ENDINGS = {"save": "Save", "restore": "Restore"}
"""How the classes are called that say how something is saved or restored, by the method that takes them."""


@judges_calls(rules.CHECKPOINT_ARGUMENT, ".save", ".restore")
def manager_arguments(event: Called, report: Reporter) -> None:
    """What is to be saved itself, where a manager takes what says how; or what says how to do the opposite."""
    callee, module = event.callee, event.frame.module
    owner = callee.receiver if isinstance(callee, BoundMethod) else None
    if not isinstance(callee, BoundMethod) or not isinstance(owner, ForeignVal) or owner.name != MANAGER:
        return
    args, ending = given(event), ENDINGS[callee.name]
    how = args.keywords.get("args")
    if args.starred or "**" in args.keywords or is_tried(module, event.node):
        return
    if how is not None:
        problem = _problem(how, "args", callee.name)
        where = keyword_node(event.node, "args") or event.node
        mend = f"say how: `args=ocp.args.Standard{ending}(...)`"
        if isinstance(present(how), DictVal):
            mend += f", for several parts `args=ocp.args.Composite(name=ocp.args.Standard{ending}(...))`"
        if problem is not None:
            report(module, where, problem=f"`{event.name}` gets {problem}", mend=mend)
        return
    items, node = args.get(1, "items"), args.node_of(1, "items")
    if not owner.plain or node is None or items is None or not _is_something(items, saves=callee.name == "save"):
        return
    told = is_of_orbax(items)
    ends = "by position what it takes as `args` only" if told else f"what it is to {callee.name}, and is not told how"
    shown = text_of(node) if told else f"Standard{ending}(...)"
    mend = f"`args={shown}`" if told else f"say how: `args=ocp.args.{shown}`"
    report(module, node, problem=f"`{event.name}` gets {ends}", mend=mend)


@judges_calls(rules.CHECKPOINT_ARGUMENT, f"{SAVING}Composite")
def parts_of_checkpoint(event: Called, report: Reporter) -> None:
    """A part of a checkpoint itself, where what says how it is saved or restored is expected."""
    for name, value in event.keywords.items():
        problem = _problem(value, name, "")
        if problem is not None and not is_tried(event.frame.module, event.node):
            where = keyword_node(event.node, name) or event.node
            mend = f"say how: `{name}=ocp.args.StandardSave(...)`, or `StandardRestore(...)`"
            report(event.frame.module, where, problem=f"`{event.name}` gets {problem}", mend=mend)


@judges_calls(rules.CHECKPOINT_ARGUMENT, f"{SAVING}StandardSave", f"{SAVING}PyTreeSave", ".save")
def structure_saved(event: Called, report: Reporter) -> None:
    """The graphdef in the place of the State, ``state, _ = nnx.split(model)``: what is saved has no arrays."""
    owner = event.callee.receiver if isinstance(event.callee, BoundMethod) else None
    if event.subject == ".save" and not (isinstance(owner, ForeignVal) and owner.name.endswith("Checkpointer")):
        return
    place = int(event.subject == ".save")
    value, node = given(event).get(place, "item"), given(event).node_of(place, "item")
    if node is not None and isinstance(present(value or UNKNOWN), GraphDefVal):
        shown = text_of(node)
        problem = f"`{event.name}` gets `{shown}`, the structure that `nnx.split` returns first: it has no arrays"
        mend = "save the State: `graphdef, state = nnx.split(model)`"
        report(event.frame.module, node, problem=problem, mend=mend)


def _problem(how: Value, name: str, method: str) -> str | None:
    """What is wrong with the argument of this name, which should say how something is saved or restored."""
    value = present(how)
    if isinstance(value, ForeignVal):
        other = next((word for name, word in ENDINGS.items() if method and name != method), "")
        opposite = other and value.name.startswith(f"{SAVING}Standard") and value.name.endswith(other)
        return f"`{value.name.removeprefix(SAVING)}` as `{name}`, which is made for the opposite" if opposite else None
    if isinstance(value, (StateVal, DictVal, Seq, Array)) or is_module(value):
        return f"{value.describe()} as `{name}`, where Orbax expects how it is to be saved"
    return None


class Saved(list[Value]):
    """What has been handed to Orbax to be saved."""


@judges_calls(rules.CHECKPOINT_ARGUMENT, ".save")
def note_saved(event: Called, report: Reporter) -> None:
    callee, how = event.callee, event.keywords.get("args")
    if isinstance(callee, BoundMethod) and isinstance(callee.receiver, ForeignVal):
        saved = how.held.get("item") if isinstance(how, ForeignVal) else given(event).get(1, "state")
        report.memory(Saved).append(saved or UNKNOWN)


@judges_calls(rules.CHECKPOINT_ARGUMENT, "nnx.update", "nnx.replace_by_pure_dict")
def restored_as_dicts(event: Called, report: Reporter) -> None:
    """A State that was saved, and is restored without saying so: each Variable comes back as a dict with its value."""
    trees = [(item, node) for item, node in zip(event.args, event.nodes, strict=False) if isinstance(item, RawTree)]
    saved = report.memory(Saved) if trees else Saved()
    if not saved or not all(isinstance(present(item), StateVal) for item in saved):
        return
    (tree, node), module = trees[0], event.frame.module
    made = value_of(module, node) if isinstance(node, ast.Name) else node
    place = made if made is not None and made is tree.node else node  # where it is restored, if that is in sight
    if isinstance(tree.node, ast.Call) and not is_tried(module, place):
        problem = (
            f"`{text_of(tree.node.func)}` is not told what it restores, and makes a dict of each Variable of the "
            f"State, which `{event.name}` cannot put in"
        )
        mend = "give it such a State: `restore(path, nnx.state(model))`, a manager `args=ocp.args.StandardRestore(...)`"
        report(module, place, problem=problem, mend=mend)


def _is_something(value: Value, *, saves: bool) -> bool:
    """Whether a value certainly is no ``None``, which stands for nothing. Nobody saves that."""
    kept = present(value)
    none = isinstance(kept, Const) and kept.value is None
    return not none and (saves or isinstance(kept, (StateVal, DictVal, Seq, ForeignVal)) or is_module(kept))
