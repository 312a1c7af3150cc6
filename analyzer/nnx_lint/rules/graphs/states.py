"""States read and written in a form that they do not have, and contexts that are not open (NNX341, NNX356, NNX357,
NNX358).
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import Called, Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.naming import value_at
from nnx_lint.model.states import StateVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import Const, Ext, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.edits import replace, unsafe, wrap
from nnx_lint.rules.program import FUNCTIONS, ancestors, around, assigned_in, enclosing, is_called
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax.binding import is_name, occurrences
from nnx_rules.rules import graphs as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

# -- keys --------------------------------------------------------------------------------------------------------------


@judges_calls(rules.STRING_INDICES, "nnx.update")
def string_indices(event: Called, report: Reporter) -> None:
    node = present(event.args[0]) if event.args and event.args[0] is not None else None
    for state, where in zip(event.args[1:], event.nodes[1:], strict=False):
        if isinstance(node, Obj) and isinstance(state, DictVal):
            for found, name in _lists(node, state, where, text_of(event.nodes[0])):
                report(event.frame.module, found, fix=partial(_with_integers, event.frame, where), name=name)


def _with_integers(frame: Frame, state: ast.expr) -> Fix | None:
    """Make integers of all digits in strings: unsafe, since a dict of the model may have such keys, too."""
    name = spelled("nnx.restore_int_paths", frame.module, frame.env)
    return unsafe(f"Convert them by `{name}(...)`", wrap(frame.module.source, state, name)) if name else None


def _lists(node: Obj, state: DictVal, where: ast.AST, name: str) -> Iterator[tuple[ast.AST, str]]:
    """The dicts with strings for the elements of a list, each with what the list is called."""
    if node.cls.derives_from("nnx.List"):
        written = state.node if isinstance(state.node, (ast.Dict, ast.DictComp)) else None
        if _strings(state, written):
            yield written or where, name
        return
    for key, value in state.items:
        attr = attribute_of(node, key.value) if isinstance(key, Const) and isinstance(key.value, str) else None
        held = present(attr.value) if attr is not None else None
        if isinstance(held, Obj) and isinstance(value, DictVal) and isinstance(key, Const):
            yield from _lists(held, value, where, f"{name}.{key.value}")


def _strings(state: DictVal, written: ast.AST | None) -> bool:
    """Whether the keys of a dict certainly are digits in strings."""
    if isinstance(written, ast.DictComp):
        func = written.key.func if isinstance(written.key, ast.Call) else None
        return is_name(func, "str")
    keys = [key.value for key, _ in state.items if isinstance(key, Const)]
    return bool(keys) and all(isinstance(key, str) and key.isdigit() for key in keys)


# -- flat States -------------------------------------------------------------------------------------------------------

MAPPING_METHODS = frozenset({"items", "keys", "values", "get"})


def of_flat_state(event: Used) -> bool:
    """Whether a flat State is used."""
    return isinstance(event.value, Seq) and event.value.type == "FlatState"


@judges(rules.FLAT_STATE_AS_DICT, Used, when=of_flat_state)
def flat_state_as_dict(event: Used, report: Reporter) -> None:
    node = event.node
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        what = "assignment of items"
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        what = "paths as indices"
    elif isinstance(node, ast.Attribute) and node.attr in MAPPING_METHODS:
        what = f"`.{node.attr}`"
    else:
        return
    report(event.frame.module, node, fix=partial(_as_dict, event, node.value), what=what)


def _as_dict(event: Used, node: ast.expr) -> Fix | None:
    """Make a dict of a flat State: where it is made, if its name is used as one, or else where it is used."""
    made, module = event.value.node if isinstance(event.value, Seq) else None, event.frame.module
    place = made if isinstance(made, ast.Call) and is_used_as_dict(module, made) else node
    if event.frame.env.lookup("dict") is not None:
        return None
    return Fix("Make a dict of it", wrap(module.source, place, "dict"))


def is_used_as_dict(module: Module, call: ast.Call) -> bool:
    """Whether a flat State is used as the dict that it was before flax 0.10.4, where it is made or by its name."""
    parent = next(ancestors(module, call), None)
    if not isinstance(parent, (ast.Assign, ast.AnnAssign)) or parent.value is not call:
        return _asks_dict(parent, call)
    target = parent.targets[0] if isinstance(parent, ast.Assign) else parent.target
    scope = enclosing(module, call, *FUNCTIONS, ast.Module)
    if not isinstance(target, ast.Name) or scope is None or assigned_in(scope)[target.id] != 1:
        return False
    named = occurrences(scope, target.id)
    parents = [(next(ancestors(module, each), None), each) for each in named]
    return any(_asks_dict(*each) for each in parents) and not any(_asks_pairs(*each) for each in parents)


def _asks_dict(parent: ast.AST | None, node: ast.expr) -> bool:
    """Whether an expression is used in a way that dicts know, and sequences of pairs do not."""
    if isinstance(parent, ast.Attribute):
        return parent.attr in MAPPING_METHODS
    return isinstance(parent, ast.Subscript) and parent.value is node


def _asks_pairs(parent: ast.AST | None, node: ast.expr) -> bool:
    """Whether a loop takes pairs out of an expression."""
    loop = isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is node
    return loop and isinstance(getattr(parent, "target", None), (ast.Tuple, ast.List))


# -- entries that methods hide -----------------------------------------------------------------------------------------

METHODS = frozenset(
    {"clear", "filter", "flat_state", "get", "items", "keys", "map", "merge", "pop", "popitem", "setdefault", "split"}
    | {"update", "values"}
)
"""Methods of States whose names a module may well have for an attribute."""


def of_state(event: Used) -> bool:
    """Whether an attribute of a State is read that is a method."""
    return isinstance(event.value, StateVal) and event.what in METHODS


@judges(rules.STATE_KEY_SHADOWED, Used, when=of_state)
def shadowed(event: Used, report: Reporter) -> None:
    node, state = event.node, event.value
    if not isinstance(state, StateVal) or not isinstance(node, ast.Attribute) or not _has_entry(state, event.what):
        return
    if not around(event.frame, node) or is_called(event.frame.module, node):
        return
    source = event.frame.module.source
    start, end = source.span(node.value).end, source.span(node).end
    fix = Fix("Use an index", (Edit(Span(start, end), f'["{node.attr}"]'),), Applicability.UNSAFE)
    report(event.frame.module, node, fix=fix, name=text_of(node), key=node.attr)


def _has_entry(state: StateVal, name: str) -> bool:
    of = present(state.of)
    if isinstance(of, DictVal):
        return any(isinstance(key, Const) and key.value == name for key, _ in of.items)
    return isinstance(of, Obj) and attribute_of(of, name) is not None


# -- contexts ----------------------------------------------------------------------------------------------------------


@judges_calls(rules.CONTEXT_MISSING, "nnx.split_context", "nnx.merge_context", "nnx.current_update_context")
def context_of_another_tag(event: Called, report: Reporter) -> None:
    tag = event.args[0] if event.args else event.keywords.get("tag", event.keywords.get("ctxtag"))
    if not isinstance(tag, Const) or not isinstance(tag.value, str):
        return
    open_tags = _open_tags(event.frame, event.node)
    if open_tags and tag.value not in open_tags:
        tags = " and ".join(repr(item) for item in open_tags)
        problem = f"no update context is open under the tag {tag.value!r}, only under {tags}"
        fix = partial(_with_tag, event, open_tags[0]) if len(open_tags) == 1 else None
        report(event.frame.module, event.node, fix=fix, problem=problem)


@judges_calls(rules.CONTEXT_MISSING, "nnx.merge_context")
def merge_of_unknown_side(event: Called, report: Reporter) -> None:
    """A merge that does not say on which side of the function it is."""
    if len(event.args) != 1 or not event.keywords.keys().isdisjoint({"inner", "**"}):
        return
    tag = event.args[0]
    if isinstance(tag, Const) and isinstance(tag.value, str):
        problem = "`merge_context(tag)` needs `inner=True` or `inner=False`"
        report(event.frame.module, event.node, problem=problem)


def _with_tag(event: Called, tag: str) -> Fix | None:
    node = event.nodes[0] if event.nodes else None
    if not isinstance(node, ast.Constant):
        return None
    return unsafe(f"Use the context of {tag!r}", replace(event.frame.module.source, node, repr(tag)))


def _open_tags(frame: Frame, node: ast.AST) -> list[str]:
    """The tags of the update contexts that are open around a node in its own function; empty if any is not known."""
    tags: list[str] = []
    for outer in around(frame, node):
        for item in outer.items if isinstance(outer, (ast.With, ast.AsyncWith)) else ():
            call = item.context_expr
            if not isinstance(call, ast.Call) or call is node or not _opens(frame, call.func):
                continue
            given = call.args[0] if call.args else None
            known = value_at(frame, given) if given is not None else None
            tag = given.value if isinstance(given, ast.Constant) else known.value if isinstance(known, Const) else None
            if not isinstance(tag, str):
                return []
            tags.append(tag)
    return tags


def _opens(frame: Frame, func: ast.expr) -> bool:
    owner = value_at(frame, func.value) if isinstance(func, ast.Attribute) else None
    if isinstance(owner, Ext) and isinstance(func, ast.Attribute):
        return f"{owner.name}.{func.attr}" == "nnx.update_context"
    found = value_at(frame, func)
    return isinstance(found, Ext) and found.name == "nnx.update_context"
