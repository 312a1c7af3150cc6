"""What becomes of the results of ``split``, ``state`` and ``pop`` (NNX313, NNX314, NNX315, NNX322).

Invariants: two names are each other's only if each says which filter it belongs to, and that is the one of the other;
States that only go back into the object may have any names.
"""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import Called, Unpacked, Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.states import GradientVal, GraphDefVal, StateVal
from nnx_lint.model.values import Value
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.bindings import bound_to, constant_of, value_of
from nnx_lint.rules.blocks import fresh
from nnx_lint.rules.edits import append_argument, insert, unsafe
from nnx_lint.rules.filters.reading import library_name
from nnx_lint.rules.program import FUNCTIONS, ancestors, assigned_in, canonical_of, enclosing, reads_of
from nnx_lint.syntax.binding import occurrences
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import filters as rules
from nnx_rules.transforms import TREE_MAPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nnx_lint.model.modules import Module


def parts_of(value: Value) -> Sequence[Value] | None:
    """The graphdef and States in a tuple that a library function returned."""
    # A tuple that the program writes itself has a node; what it holds is the program's own affair.
    if not (isinstance(value, Seq) and value.exact and value.type == "tuple" and value.node is None and value.items):
        return None
    return value.items if all(isinstance(item, (GraphDefVal, StateVal)) for item in value.items) else None


def maker(event: Unpacked) -> str:
    """The function whose result is unpacked, as the program writes it."""
    return text_of(event.value_node.func) if isinstance(event.value_node, ast.Call) else text_of(event.value_node)


@judges(rules.SPLIT_ARITY, Unpacked)
def split_unpack_arity(event: Unpacked, report: Reporter) -> None:
    parts, taken = parts_of(event.value), event.value_node
    if parts is None or not isinstance(event.target, (ast.Tuple, ast.List)):
        return
    if isinstance(taken, ast.Name) and taken.id in event.frame.given:
        return  # what a loop hands to its step is a tuple that the program wrote
    plain = sum(not isinstance(item, ast.Starred) for item in event.target.elts)
    if event.count == len(parts) or (event.count is None and plain <= len(parts)):
        return
    states = sum(isinstance(part, StateVal) for part in parts)
    mend = f"{states} State{'s' if states > 1 else ''}"
    report(
        event.frame.module,
        event.target,
        fix=lambda: _matching(event, len(parts)),
        function=maker(event),
        expected=len(parts),
        given=f"{plain} target{'s' if plain != 1 else ''}" if event.count is not None else f"at least {plain} targets",
        mend=f"the graphdef and {mend}" if isinstance(parts[0], GraphDefVal) else mend,
    )


def _matching(event: Unpacked, expected: int) -> Fix | None:
    """One more name for the rest, or one more filter for the last name."""
    call, target = event.value_node, event.target
    if not (isinstance(call, ast.Call) and isinstance(target, (ast.Tuple, ast.List)) and event.count is not None):
        return None
    source = event.frame.module.source
    has_rest = any(isinstance(item, ast.Constant) and item.value is ... for item in call.args)
    if event.count == expected - 1 and target.elts and call.args:
        last = "rest" if has_rest else _snake(call.args[-1])
        end = source.span(target.elts[-1]).end
        name = fresh(event.frame.module, last) if last.isidentifier() else "rest"
        return unsafe(f"Add a name for {'the rest' if has_rest else 'the last State'}", insert(end, f", {name}"))
    if event.count == expected + 1 and len(call.args) > 1 and not has_rest:
        end = source.span(call.args[-1]).end
        return Fix("Add `...` for the rest", (Edit(Span(end, end), ", ..."),), Applicability.UNSAFE)
    return None


def _snake(node: ast.expr) -> str:
    """What a State may be called that is for a filter: ``batch_stat`` for ``nnx.BatchStat``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last_name(node) or "rest").lower()


FIRST_STATE = {"nnx.split": 1, "nnx.state": 0, "nnx.pop": 0, "nnx.split_state": 0, "nnx.filter_state": 0}
"""Where the States begin in what functions return that take filters."""

REST = frozenset({"rest", "other", "others", "remaining"})


@judges_calls(rules.SPLIT_ORDER, *FIRST_STATE)
def split_unpack_order(event: Called, report: Reporter) -> None:
    first = FIRST_STATE.get(library_name(event.callee) or "")
    given_by = [value_of(event.frame.module, node) or constant_of(event.frame.module, node) for node in event.nodes[1:]]
    filters = [_filter_word(named or node) for named, node in zip(given_by, event.nodes[1:], strict=True)]
    if first is None or len(filters) < 2 or (bound := bound_to(event.frame.module, event.node)) is None:
        return
    targets = bound.target.elts[first:] if isinstance(bound.target, ast.Tuple) else []
    names = [_name_of(target) for target in targets]
    if len(names) != len(filters):
        return
    meant = [next((place for place, word in enumerate(filters) if _says(name, word)), None) for name in names]
    for place, other in enumerate(meant):
        if (
            other is not None
            and other > place
            and meant[other] == place
            and _are_told_apart(event, targets[place], targets[other])
        ):
            one, second = (" ".join(ast.unparse(event.nodes[1 + each]).split()) for each in (place, other))
            slots: dict[str, Any] = {
                "one": text_of(targets[place]),
                "first": f"the State of `{one}`",
                "second": f"that of `{second}`",
            }
            slots |= {
                "other": text_of(targets[other]),
                "order": "States come as the filters do",
                "or_filters": ", or the filters,",
            }
            report(event.frame.module, bound.target, **slots)
            return


@judges_calls(rules.SPLIT_ORDER, "nnx.split")
def graphdef_not_first(event: Called, report: Reporter) -> None:
    """A State that gets the name of the GraphDef, and does something that no GraphDef does."""
    bound = bound_to(event.frame.module, event.node)
    targets = bound.target.elts if bound is not None and isinstance(bound.target, ast.Tuple) else []
    names = [target.id if isinstance(target, ast.Name) else "" for target in targets]
    other = next((name for name in names[1:] if _is_of_graphdef(name)), None)
    if other is None or bound is None or len(names) != max(len(event.nodes), 2) or _is_of_graphdef(names[0]):
        return
    module = event.frame.module
    scope = enclosing(module, event.node, *FUNCTIONS) or module.tree
    uses = [next(ancestors(module, read), None) for name in (names[0], other) for read in reads_of(scope, name)]
    called = [canonical_of(module.env, call.func) for call in uses if isinstance(call, ast.Call)]
    if "nnx.merge" in called or not any(name in ON_STATES for name in called):
        return
    slots: dict[str, Any] = {
        "one": names[0],
        "first": "the GraphDef",
        "other": other,
        "second": "a State",
        "or_filters": "",
    }
    report(module, bound.target, **slots, order="`nnx.split` gives the GraphDef first")


ON_STATES = frozenset(
    {
        *TREE_MAPS,
        *("jax.tree.leaves", "jax.tree_util.tree_leaves", "jax.tree_util.tree_map_with_path"),
        *("nnx.to_flat_state", "nnx.to_pure_dict", "nnx.update"),
    }
)
"""Functions that are called with States, and never with a GraphDef."""


def _is_of_graphdef(name: str) -> bool:
    return name.lower().replace("_", "") in {"graphdef", "gdef", "modeldef", "staticgraph"}


def _filter_word(node: ast.expr) -> str:
    """The name that a filter gives to what it takes: `batch_stat` for `nnx.BatchStat`."""
    if isinstance(node, ast.Constant):
        return "rest" if node.value in {..., True} else ""
    return _snake(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""


def _says(name: str, word: str) -> bool:
    """Whether a name is that of a State for what a filter takes, such as `batch_stats` or `params_state`."""
    plain = re.sub(r"_?states?$", "", name.lower()).strip("_").removesuffix("s")
    return bool(plain and word) and (plain in {word, word.removesuffix("_state")} or (word == "rest" and name in REST))


def _name_of(target: ast.expr) -> str:
    """What a target is called: a name, an attribute, or an entry under a key."""
    if isinstance(target, ast.Subscript):
        return str(target.slice.value) if isinstance(target.slice, ast.Constant) else ""
    return last_name(target)


def _read_again(scope: ast.AST, target: ast.expr) -> Iterable[ast.expr]:
    """Where a function reads what it has put into a target."""
    if isinstance(target, ast.Name):
        return reads_of(scope, target.id)
    text = ast.unparse(target)
    alike = (node for node in walk(scope) if isinstance(node, (ast.Attribute, ast.Subscript)))
    return [node for node in alike if isinstance(node.ctx, ast.Load) and ast.unparse(node) == text]


def _are_told_apart(event: Called, *targets: ast.expr) -> bool:
    """Whether something is done with one of these States that is not done with the other."""
    module = event.frame.module
    scope = enclosing(module, event.node, *FUNCTIONS) or module.tree
    for target in targets:
        for read in _read_again(scope, target):
            call = next(ancestors(module, read), None)
            name = canonical_of(module.env, call.func) if isinstance(call, ast.Call) else None
            if name not in {"nnx.merge", "nnx.update"}:
                return True
    return False


@judges(rules.STATE_ARITY, Unpacked)
def state_unpack_arity(event: Unpacked, report: Reporter) -> None:
    if not isinstance(event.value, StateVal) or not isinstance(event.value_node, ast.Call):
        return
    if event.count is None or event.count < 2:
        return
    fix = partial(_rest_of_state, event, event.value_node)
    report(event.frame.module, event.target, fix=fix, function=maker(event), given=event.count)


def _rest_of_state(event: Unpacked, call: ast.Call) -> Fix | None:
    """One more filter for the last name."""
    if event.count != len(call.args) or len(call.args) < 2 or any(isinstance(item, ast.Starred) for item in call.args):
        return None
    return unsafe("Add `...` for the rest", append_argument(event.frame.module.source, call, "..."))


TAKE_STATES: dict[str, int] = {
    "nnx.update": 1,
    "nnx.merge": 0,
    "nnx.to_pure_dict": 0,
    "nnx.to_flat_state": 0,
    "nnx.filter_state": 0,
    "nnx.split_state": 0,
    "nnx.merge_state": 0,
    "nnx.replace_by_pure_dict": 0,
    "nnx.restore_int_paths": 0,
}
"""Functions that take States, from which position."""

TUPLE_METHODS = frozenset({"index", "count"})


def is_split_result(value: Value | None) -> bool:
    """Whether a value is the whole tuple that ``nnx.split`` returned."""
    parts = parts_of(value) if value is not None else None
    return parts is not None and isinstance(parts[0], GraphDefVal)


@judges_calls(rules.SPLIT_NOT_UNPACKED, *TAKE_STATES)
def split_not_unpacked(event: Called, report: Reporter) -> None:
    name = library_name(event.callee)
    first = TAKE_STATES.get(name) if name is not None else None
    if first is None:
        return
    for value, node in list(zip(event.args, event.nodes, strict=False))[first:]:
        if is_split_result(value) and not isinstance(node, ast.Starred):
            star = Fix("Unpack it", insert(event.frame.module.source.span(node).start, "*"))
            alone = name == "nnx.merge" and len(event.args) == 1 and isinstance(node, (ast.Name, ast.Call))
            fix = star if alone else partial(_unpacked, event.frame.module, node)
            report(event.frame.module, node, fix=fix, name=text_of(node))


@judges_calls(rules.SPLIT_NOT_UNPACKED, *TREE_MAPS)
def split_beside_state(event: Called, report: Reporter) -> None:
    """The whole tuple, where a function of trees goes through it beside a State."""
    trees = [*zip(event.args, event.nodes, strict=False)][1:]
    if any(isinstance(value, (StateVal, GradientVal)) for value, _ in trees):
        for value, node in trees:
            if is_split_result(value) and not isinstance(node, ast.Starred):
                report(event.frame.module, node, name=text_of(node))


def _unpacked(module: Module, node: ast.expr) -> Fix | None:
    """Unpack the graphdef and the State where the name is bound, if all its uses want the State."""
    scope = enclosing(module, node, *FUNCTIONS, ast.Module)
    if not isinstance(node, ast.Name) or scope is None or assigned_in(scope)[node.id] != 1:
        return None
    uses = occurrences(scope, node.id)
    bound = next(each for each in uses if isinstance(each.ctx, ast.Store))
    statement = next(ancestors(module, bound), None)
    split = statement.value if isinstance(statement, ast.Assign) and statement.targets == [bound] else None
    if not isinstance(split, ast.Call) or len(split.args) != 1 or split.keywords:
        return None
    for each in uses:
        call = next(ancestors(module, each), None)
        name = canonical_of(module.env, call.func) if isinstance(call, ast.Call) else None
        given = each is bound or (isinstance(call, ast.Call) and each in call.args[TAKE_STATES.get(name or "", 99) :])
        if not given:
            return None
    return Fix("Unpack the graphdef and the State", insert(module.source.span(bound).start, "_, "))


@judges(rules.SPLIT_NOT_UNPACKED, Used)
def attribute_of_split_result(event: Used, report: Reporter) -> None:
    used = event.node
    if (
        is_split_result(event.value)
        and event.what not in TUPLE_METHODS
        and isinstance(used, (ast.Attribute, ast.Subscript))
    ):
        report(event.frame.module, used.value, name=text_of(used.value))
