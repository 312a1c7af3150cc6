"""Checkpoints of Orbax that are restored as something else than was saved (part of NNX654), and parts of one that was
not asked for (part of NNX874).

Orbax compares what it is to restore with what lies in the folder, leaf by leaf: the State of a model is not the model,
the State of an optimizer is none of a model, and a model of other sizes is another one.

Invariants: one program saves and restores, under the same folder: the same text, or the same expression of names that
are bound once. All that is saved there was seen to be taken of objects whose leaves are known, and nothing has been
taken out of it since. What it was is noted when it is saved: the object may change after that.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.events import Called, Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.foreign import COMPOSITE
from nnx_lint.model.leaves import shape_at
from nnx_lint.model.states import ForeignVal, StateVal
from nnx_lint.model.strings import HOLE, text_in
from nnx_lint.model.unions import present
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.filters.coverage import leaves_of, path_text
from nnx_lint.rules.graphs.checkpoints import MANAGER, SAVING
from nnx_lint.rules.graphs.fitting import Taken
from nnx_lint.rules.graphs.merging import is_module
from nnx_lint.rules.program import FUNCTIONS, bound_in, enclosing, given, is_tried
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import names_in
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import walk
from nnx_rules import layers
from nnx_rules._filter_logic import UNKNOWN
from nnx_rules.rules import checkpoints as rules
from nnx_rules.rules import construction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.leaves import Path
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value

    Place = tuple[ast.AST | None, str]
    """A folder: its text, or the expression for it with the function or module that binds its names."""

CHECKPOINTER = "orbax.checkpoint.StandardCheckpointer"
RESTORE = f"{SAVING}StandardRestore"

OF_PATHS = frozenset({"Path", "PosixPath", "abspath", "absolute", "epath", "join", "resolve", "str"})
"""Functions and methods that make the same path of the same parts."""


class Tree:
    """What a State held when it was saved: the shapes at its paths, as far as they are known."""

    def __init__(self, state: StateVal, of: Obj, frame: Frame) -> None:
        found = leaves_of(state, frame)
        paths = ((leaf.path, leaf) for leaf in found.leaves)
        known = {path: path_text(leaf) for path, leaf in paths if isinstance(path, tuple) and UNKNOWN not in path}
        self.name = of.describe()
        self.texts: Mapping[Path, str] = known
        self.shapes = {path: shape_at(of, path) for path in known}
        self.complete = found.complete and len(known) == len(found.leaves)

    def difference(self, other: Tree) -> str | None:
        """What the other one certainly has in another way."""
        for one, two, verb in ((self, other, "has"), (other, self, "lacks")):
            extra = [text for path, text in one.texts.items() if path not in two.texts]
            if extra and two.complete:
                return f"{self.name}, which {verb} `{extra[0]}`"
        for path, text in self.texts.items():
            own, there = self.shapes[path], other.shapes.get(path)
            if own is not None and there is not None and own != there:
                return f"{self.name}, whose `{text}` has the shape {layers.shown(own)} instead of {layers.shown(there)}"
        return None


class Folders(dict[int, tuple[ForeignVal, "Place | None"]]):
    """The folders of managers, by their identity."""


class Saved(dict["tuple[Place, str]", "list[Tree | None]"]):
    """What was saved in each folder, by the name of the part; ``None`` for what nobody knows."""


@judges_calls(rules.CHECKPOINT_ARGUMENT, MANAGER)
def note_manager(event: Called, report: Reporter) -> None:
    if isinstance(event.result, ForeignVal):
        report.memory(Folders)[id(event.result)] = event.result, _place(event)


@judges_calls(rules.CHECKPOINT_ARGUMENT, ".save")
def note_saved_tree(event: Called, report: Reporter) -> None:
    place = _folder(event, report)
    if place is not None:
        for name, value in _parts(event, "state").items():
            tree = None if event.frame.doubtful else _tree(value, event.frame, report)
            report.memory(Saved).setdefault((place, name), []).append(tree)


@judges_calls(rules.CHECKPOINT_ARGUMENT, ".restore")
def restored_as_another(event: Called, report: Reporter) -> None:
    told, module = event.keywords.get("args"), event.frame.module
    place = _folder(event, report)
    plain = told is None or (isinstance(told, ForeignVal) and told.name in {RESTORE, COMPOSITE})
    if place is None or not plain or "strict" in event.keywords or is_tried(module, event.node):
        return
    for name, value in _parts(event, "target").items():
        saved = report.memory(Saved).get((place, name), [])
        trees = [tree for tree in saved if tree is not None]
        if not trees or len(trees) < len(saved):
            continue
        wanted, of = _tree(value, event.frame, report), present(value)
        if is_module(of) and isinstance(of, Obj):
            problem, mend = f"{of.describe()} itself", "give it such a State: `nnx.state(model)`"
        elif wanted is not None:
            found = [wanted.difference(tree) for tree in trees]
            if None in found:
                continue
            problem, mend = f"a State of {found[0]}", "give it a State like the one that was saved"
        else:
            continue
        what = f"`{event.name}` is to restore {problem}, and the State of {trees[0].name} was saved there"
        report(module, given(event).node_of(1, "target") or event.node, problem=what, mend=mend)


@judges(construction.MISSING_ENTRY, Used, when=lambda event: event.what == "an index", of=(ForeignVal,))
def missing_part(event: Used, report: Reporter) -> None:
    """``restored["model"]`` of a checkpoint of which the part `params` was restored."""
    node, held, module = event.node, event.value, event.frame.module
    key = node.slice.value if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) else None
    if not isinstance(held, ForeignVal) or held.name != COMPOSITE or not isinstance(node, ast.Subscript):
        return
    if isinstance(key, str) and held.held and key not in held.held and not is_tried(module, node):
        mend = "it has what was asked for: " + ", ".join(f"`{name}`" for name in held.held)
        report(module, node, name=text_of(node.value), key=key, mend=mend)


def _parts(event: Called, keyword: str) -> Mapping[str, Value]:
    """What is saved or restored, by the name of the part; a checkpoint that is all one part has no name."""
    told = event.keywords.get("args")
    if isinstance(told, ForeignVal) and told.name == COMPOSITE:
        parts = {name: how.held.get("item") for name, how in told.held.items() if isinstance(how, ForeignVal)}
        return {name: item for name, item in parts.items() if item is not None}
    item = told.held.get("item") if isinstance(told, ForeignVal) else given(event).get(1, keyword)
    return {"": item} if item is not None else {}


def _tree(value: Value, frame: Frame, report: Reporter) -> Tree | None:
    """What a State holds that is as it was taken."""
    state = report.memory(Taken).get(id(present(value)))
    of = present(state.of) if state is not None else None
    known = isinstance(of, Obj) and not of.assumed
    return Tree(state, of, frame) if state is not None and known and isinstance(of, Obj) else None


def _folder(event: Called, report: Reporter) -> Place | None:
    """The folder that a method of Orbax saves in or restores from."""
    owner = event.callee.receiver if isinstance(event.callee, BoundMethod) else None
    if not isinstance(owner, ForeignVal) or given(event).starred:
        return None
    if owner.name == MANAGER:
        return report.memory(Folders).get(id(owner), (owner, None))[1]
    return _place(event) if owner.name == CHECKPOINTER else None


def _place(event: Called) -> Place | None:
    """The folder that comes first, or as `directory`."""
    args, module = given(event), event.frame.module
    value, node = args.get(0, "directory"), args.node_of(0, "directory")
    text = text_in(value) if value is not None else None
    if text is not None and HOLE not in text:
        return None, text
    return _bound_place(module, node) if node is not None else None


def _bound_place(module: Module, node: ast.expr) -> Place | None:
    """An expression that is the same path wherever it stands in a function, or in the module."""
    parts = walk(node)
    if any(isinstance(part, ast.Call) and last_name(part.func) not in OF_PATHS for part in parts):
        return None
    names, function = names_in(node), enclosing(module, node, *FUNCTIONS)
    taken = syntax_parameters.names(function.args) if isinstance(function, FUNCTIONS) else []
    own = bound_in(function) if function is not None else Counter[str]()
    local = any(own[name] or name in taken for name in names)
    scope = function if local and function is not None else module.tree
    once = all(bound_in(scope)[name] + (name in taken) <= 1 for name in names)
    return (scope, ast.unparse(node)) if once else None
