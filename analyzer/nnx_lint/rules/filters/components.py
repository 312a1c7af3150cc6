"""Names that no path of a model has (NNX309): what a filter freezes by such a name is trained, and nothing fails.

Invariants: all paths of the model are known. A filter may be meant for models of several kinds, so a name counts as
wrong only where something in the model is called almost so, or where the program makes that one model and comes by the
filter once; and it may name several parts of which a model has some.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import UserClass
from nnx_lint.model.library import FilterVal
from nnx_lint.model.modules import Env
from nnx_lint.model.states import StateVal, TransformationVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.filters.arguments import components, is_key
from nnx_lint.rules.filters.coverage import leaves_of
from nnx_lint.rules.filters.expressions import expression, is_subtype
from nnx_lint.rules.filters.reading import FILTERING, gives_filters, single_filters
from nnx_lint.rules.program import (
    FUNCTIONS,
    LOOPS,
    assigned_in,
    attribute_reads,
    enclosing,
    given,
    in_test,
    reads_of,
    resolved,
)
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import walk
from nnx_rules import _filter_logic as logic
from nnx_rules.api import OPTIMIZERS
from nnx_rules.filters import PathContains
from nnx_rules.rules import filters as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value
    from nnx_rules.filters import Expr

STANDARD = frozenset({"bias", "count", "embedding", "kernel", "key", "lora_a", "lora_b", "mean", "scale", "var"})
"""What layers of the library call their Variables: who asks for these may ask it of every model."""


class Asked(NamedTuple):
    """A name that a filter asks the path for, where that is written, and how."""

    key: str
    module: Module
    node: ast.AST
    text: str
    of_filter: bool


@judges_calls(rules.PATH_NEVER_MATCHES, *FILTERING, when=gives_filters)
def component_of_filter(event: Called, report: Reporter) -> None:
    for single in single_filters(event):
        if single.target is not None:
            asked = [each for part in single.given.parts() for each in _asked(part.value)]
            if asked:
                said = _takes_nothing(single.given.expr, single.target, event)
                _judge(asked, single.target, event, report, only_near=said)


@judges_calls(rules.PATH_NEVER_MATCHES, *FILTERING, when=gives_filters)
def joined_path(event: Called, report: Reporter) -> None:
    """A predicate that looks for several components in one: ``"head.bias" in path``, where a path is a tuple."""
    for single in single_filters(event):
        for each in (each for part in single.given.parts() for each in _asked(part.value)):
            parts = components(each.key) if not each.of_filter else None
            if parts is not None and not is_key(each.module, each.key):
                mend = f"`{' and '.join(f'{item!r} in path' for item in parts)}`, or join the path to one text first"
                report(each.module, each.node, filter=each.text, value=repr(each.key), mend=mend)


def _takes_nothing(asked: Expr, target: Value, event: Called) -> bool:
    """Whether the filter of an optimizer certainly takes no Variable, which is for another rule to say."""
    leaves = leaves_of(target, event.frame).leaves if event.subject in OPTIMIZERS else []
    return bool(leaves) and all(logic.matches(asked, leaf, is_subtype) is False for leaf in leaves)


@judges_calls(rules.PATH_NEVER_MATCHES, "nnx.map_state")
def component_of_map(event: Called, report: Reporter) -> None:
    func, state = given(event).get(0, "f"), given(event).get(1, "state")
    if func is not None and isinstance(state, StateVal):
        _judge(list(_asked(func)), state, event, report)


@judges_calls(rules.PATH_NEVER_MATCHES, *OPTIMIZERS)
def component_of_labels(event: Called, report: Reporter) -> None:
    """Functions that make labels or a mask of the parameters of an optimizer."""
    model, tx = given(event).get(0, "model"), given(event).get(1, "tx")
    for _, _, tree in tx.trees if isinstance(tx, TransformationVal) and model is not None else ():
        made = tree.expression if isinstance(tree, FuncVal) else None
        env = tree.env if isinstance(tree, FuncVal) else None
        if isinstance(tree, FuncVal) and isinstance(env, Env) and isinstance(made, ast.Call) and len(made.args) == 2:
            func = made.args[0]
            value = FuncVal(func, tree.module, env) if isinstance(func, ast.Lambda) else resolved(env, func)
            _judge(list(_asked(value)), model or tree, event, report)


def _asked(value: Value | None) -> Iterator[Asked]:
    """The names that a part of a filter, or a function of the path, asks for."""
    if isinstance(value, FilterVal):
        expr = expression(value)
        if isinstance(expr, PathContains) and expr.exact and isinstance(expr.key, str):
            where = value.args.node_of(0, "key") or value.node
            yield Asked(expr.key, value.module, where, f"PathContains({expr.key!r})", of_filter=True)
    if isinstance(value, FuncVal):
        path = next(iter(syntax_parameters.positional_names(value.node.args)), "")
        for node in walk(value.node) if not assigned_in(value.node)[path] else ():
            key = _compared(node, path) if isinstance(node, ast.Compare) and len(node.ops) == 1 else None
            if key is not None:
                yield Asked(key, value.module, node, ast.unparse(node), of_filter=False)


def _compared(node: ast.Compare, path: str) -> str | None:
    """The name of ``"name" in path`` or ``path[0] == "name"``."""
    left, right = node.left, node.comparators[0]
    if isinstance(node.ops[0], (ast.In, ast.NotIn)):
        name, whole = left, right
    else:
        name, whole = right, left.value if isinstance(left, ast.Subscript) else left
        if not isinstance(node.ops[0], (ast.Eq, ast.NotEq)) or not isinstance(left, ast.Subscript):
            return None
    known = is_name(whole, path) and isinstance(name, ast.Constant)
    return name.value if known and isinstance(name, ast.Constant) and isinstance(name.value, str) else None


def _judge(asked: list[Asked], target: Value, event: Called, report: Reporter, *, only_near: bool = False) -> None:
    known = _components(target, event.frame) if asked else None
    if known is None or not asked:
        return
    alone = event.frame.caller is None and not in_test(event.frame)
    absent = not only_near and all(each.key not in known and each.key not in STANDARD for each in asked)
    for each in asked:
        near = _nearest(each.key, known) if alone and each.of_filter else None
        if near is not None and any(other.key == near for other in asked):
            continue  # it is for models with and without that part
        if near is not None:
            mend = f"`PathContains({near!r})`, or `PathContains({each.key!r}, exact=False)` for a part of a name"
            report(each.module, each.node, filter=each.text, value=repr(each.key), mend=mend)
        elif absent and each.key.isidentifier() and _is_meant_for(target, event) and _is_named_nowhere(each, asked):
            first = [f"`{name}`" for name in list(known)[:SHOWN]]
            mend = f"a name that a path of this model has: {', '.join(first)}"
            report(each.module, each.node, filter=each.text, value=repr(each.key), mend=mend)


SOWING = re.compile(r"\b(?:sow|perturb)\b")

SHOWN = 6
"""How many names a message lists."""


def _components(target: Value, frame: Frame) -> dict[str, None] | None:
    """The names in the paths of what is filtered, those that begin a path first, if all of them are known."""
    found = leaves_of(target, frame)
    paths = [leaf.path for leaf in found.leaves if isinstance(leaf.path, tuple)]
    if not found.complete or not paths or len(paths) < len(found.leaves):
        return None
    classes = [item.owner.cls for item in found.held if isinstance(item.owner, Obj)]
    if any(cls.module.mentions(SOWING) for cls in classes if isinstance(cls, UserClass)) or frame.module.mentions(
        SOWING
    ):
        return None  # a forward pass adds names
    named = [*(path[0] for path in paths if path), *(item for path in paths for item in path)]
    return None if logic.UNKNOWN in named else dict.fromkeys(each for each in named if isinstance(each, str))


def _is_meant_for(target: Value, event: Called) -> bool:
    """Whether a program runs that makes a model, and comes by the present place once, with this model."""
    model, frame, node = present(target.of if isinstance(target, StateVal) else target), event.frame, event.node
    if not isinstance(model, Obj) or model.assumed or model.origin is None or in_test(frame):
        return False
    while frame.func is not None and frame.caller is not None and not _is_repeated(frame.module, node):
        module, name = frame.func.module, frame.func.name
        reads = [*reads_of(module.tree, name), *attribute_reads(module.tree, name)]
        call = frame.call
        if module is not frame.caller.module or len(reads) != 1 or call is None:
            return False
        frame, node = frame.caller, call
    return frame.func is None and not _is_repeated(frame.module, node)


def _is_repeated(module: Module, node: ast.AST) -> bool:
    """Whether a place is in a loop, each round of which may be about another model."""
    return isinstance(enclosing(module, node, *LOOPS, *FUNCTIONS), LOOPS)


def _is_named_nowhere(asked: Asked, beside: list[Asked]) -> bool:
    """Whether nothing else in a file has the name: what has it may be a part of a model of another kind."""
    source, name = asked.module.source, rf"\b{re.escape(asked.key)}\b"
    own = {id(each.node): len(re.findall(name, source.segment(each.node))) for each in beside}
    return not asked.module.mentions(re.compile(rf"(?s)(?:{name}.*?){{{sum(own.values()) + 1}}}"))


SHORTEST = 3
"""How long a name is at least that can be taken for a part of another one."""


def _nearest(key: str, names: dict[str, None]) -> str | None:
    """The component of a path that a name must mean which certainly is none itself."""
    if len(key) < SHORTEST or not key.isidentifier() or key in names:
        return None
    import difflib

    parts = [name for name in names if key in name or name in key]
    near = difflib.get_close_matches(key, parts or names, n=1, cutoff=0.0 if parts else 0.8)
    return near[0] if near else None
