"""What ``nnx.merge``, ``nnx.update`` and their like are given.

NNX331, NNX334, NNX335, NNX337, NNX338, NNX340, NNX355, NNX359.

Invariants: States are told apart by the call that made them; what a transform, a copy or an unknown function returned
is judged by nothing but its kind.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Fix
from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import BoundMethod, Transformed
from nnx_lint.model.classes import LibClass, UserClass
from nnx_lint.model.containers import DictVal, Fill, Seq
from nnx_lint.model.events import Called
from nnx_lint.model.expressions import text_of
from nnx_lint.model.foreign import COMPOSITE
from nnx_lint.model.states import ForeignVal, GraphDefVal, PartVal, StateVal, TransformationVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Array, ClassVal, Const, Obj, ParameterVal, Unknown, Value
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import value_of
from nnx_lint.rules.edits import append_argument, exchange, insert, wrap
from nnx_lint.rules.filters.coverage import leaves_of, name_leaves, path_text
from nnx_lint.rules.filters.expressions import expression, is_subtype
from nnx_lint.rules.modes.named import NETWORK
from nnx_lint.rules.program import canonical_of, is_tried, resolved
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import walk
from nnx_rules import _filter_logic as logic
from nnx_rules.filters import Everything
from nnx_rules.rules import graphs as rules
from nnx_rules.transforms import TREE_MAPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

# -- merge -------------------------------------------------------------------------------------------------------------


class Splits:
    """The States of each split, by its graphdef."""

    def __init__(self) -> None:
        self.states: dict[int, tuple[GraphDefVal, list[StateVal]]] = {}


@judges_calls(rules.MERGE_MISSING_STATE, "nnx.split")
def split(event: Called, report: Reporter) -> None:
    result = event.result
    if isinstance(result, Seq) and result.items and isinstance(result.items[0], GraphDefVal):
        states = [item for item in result.items[1:] if isinstance(item, StateVal)]
        report.memory(Splits).states[id(result.items[0])] = (result.items[0], states)


@judges_calls(rules.MERGE_MISSING_STATE, "nnx.merge")
def missing_state(event: Called, report: Reporter) -> None:
    first, *given = event.args or [None]
    found = report.memory(Splits).states.get(id(first))
    states = found[1] if found is not None else []
    known = all(any(_is_of(item, state) for state in states) for item in given)
    if not known and isinstance(first, GraphDefVal) and not event.keywords:
        _uncovered_state(event, first, given, report)
    if not given or not known or len(given) >= len(states):
        return
    absent = [state for state in states if not any(_is_of(item, state) for item in given)]
    leaves = [leaf for state in absent for leaf in taken(states, state, event.frame)]
    if leaves:
        report(event.frame.module, event.node, fix=partial(_states_added, event, absent), leaves=name_leaves(leaves))


def _uncovered_state(event: Called, graphdef: GraphDefVal, given: list[Value | None], report: Reporter) -> None:
    """The same for a graphdef and States that were kept somewhere: by what the States may hold at all."""
    of = present(graphdef.of)
    states = [item for item in given if isinstance(item, StateVal) and present(item.of) is of]
    wanted = [expression(item.wanted) if item.wanted is not None else Everything() for item in states]
    if not isinstance(of, Obj) or of.assumed or not states or len(states) < len(given):
        return
    leaves = logic.uncovered(wanted, leaves_of(of, event.frame).leaves, is_subtype)
    if leaves:
        report(event.frame.module, event.node, leaves=name_leaves(leaves))


def _states_added(event: Called, absent: list[StateVal]) -> Fix | None:
    """Hand over the States that are missing, by the names that hold them."""
    names = event.frame.env.names
    held = [next((name for name, value in names.items() if value is state), None) for state in absent]
    if None in held or not isinstance(event.node, ast.Call):
        return None
    text = ", ".join(name or "" for name in held)
    return Fix(f"Add `{text}`", append_argument(event.frame.module.source, event.node, text))


def _is_of(value: Value | None, state: StateVal) -> bool:
    """Whether a value is a State of a split, or what arrived of it in a function under a transform."""
    if value is state:
        return True
    return (
        isinstance(value, StateVal)
        and state.wanted is not None
        and value.of is state.of
        and value.wanted is state.wanted
    )


def taken(states: list[StateVal], state: StateVal, frame: Frame) -> list[logic.Leaf]:
    """The certain leaves that are in one of the States of a split."""
    found = leaves_of(state.of, frame).leaves
    for each in states:
        wanted = expression(each.wanted) if each.wanted is not None else Everything()
        if each is state:
            return [leaf for leaf in found if logic.matches(wanted, leaf, is_subtype)]
        found = logic.uncovered([wanted], found, is_subtype)
    return []


@judges_calls(rules.MERGE_ARGUMENTS, "nnx.merge")
def merge_arguments(event: Called, report: Reporter) -> None:
    if not event.args or not isinstance(event.node, ast.Call):
        return
    first, *given = event.args
    first = present(first) if first is not None else None
    if first is not None and not (given or event.keywords or isinstance(first, (Obj, Seq))):
        report(event.frame.module, event.node, given="no State")
    place = next((place for place, item in enumerate(given, start=2) if isinstance(item, GraphDefVal)), None)
    if (place is not None or (isinstance(first, StateVal) and given)) and not isinstance(first, GraphDefVal):
        wrong = "a State as its first argument" if isinstance(first, StateVal) else f"its GraphDef as argument {place}"
        report(event.frame.module, event.nodes[0], given=wrong)
    if isinstance(first, Obj) and first.cls.is_pytree and not first.assumed:
        report(event.frame.module, event.nodes[0], given=f"an instance of `{first.cls.name}` as its first argument")
    if not isinstance(first, GraphDefVal):
        return
    for item, node in zip(given, event.nodes[1:], strict=False):
        if _has_parts(item):
            report(event.frame.module, node, given=PARTS)
        if type(item) is Array and isinstance(first.of, Obj) and len(leaves_of(first.of, event.frame).leaves) > 1:
            report(event.frame.module, node, given=FLAT)
        several = isinstance(item, Seq) and item.exact and bool(item.items)
        if isinstance(item, Seq) and several and all(isinstance(each, StateVal) for each in item.items):
            report(
                event.frame.module,
                node,
                fix=partial(starred, event.frame, node),
                given=f"a {item.type} of States where a State is expected",
            )


FLAT = "an array where a State is expected: what `ravel_pytree` has made flat, its second result makes a State of again"
PARTS = "all parts of a checkpoint where a State is expected: take the one that is meant, by its name"


def _has_parts(value: Value | None) -> bool:
    """Whether a value is what Orbax restores of several parts, which have names."""
    return isinstance(value, ForeignVal) and value.name == COMPOSITE


def starred(frame: Frame, node: ast.expr) -> Fix | None:
    """Hand over the elements."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    return Fix("Hand over its elements", insert(frame.module.source.span(node).start, "*"))


@judges_calls(rules.FOREIGN_STATE, "nnx.merge")
def foreign_state(event: Called, report: Reporter) -> None:
    first, *given = event.args or [None]
    one = present(first.of) if isinstance(first, GraphDefVal) else None
    for item, node in zip(given, event.nodes[1:], strict=False):
        other = present(item.of) if isinstance(item, StateVal) else None
        if isinstance(one, Obj) and isinstance(other, Obj) and are_apart(one, other):
            report(event.frame.module, node, one=one.describe(), other=other.describe())


def are_apart(one: Obj, other: Obj) -> bool:
    """Whether two objects certainly are of classes that have nothing to do with each other."""
    if any(item.assumed or item.cls.is_open or not item.cls.derives_from("nnx.Module") for item in (one, other)):
        return False
    return one.cls not in other.cls.ancestors and other.cls not in one.cls.ancestors


@judges_calls(rules.CALL_PAIR, "nnx.call")
def call_pair(event: Called, report: Reporter) -> None:
    node = event.node
    if len(event.args) == 2 and None not in event.args and not event.keywords and isinstance(node, ast.Call):
        report(
            event.frame.module,
            node,
            fix=lambda: paired(event.frame, node),
            name=event.name,
            count=len(event.args),
        )


@judges_calls(rules.MERGE_ARGUMENTS, "nnx.call")
def pair_in_order(event: Called, report: Reporter) -> None:
    """The pair that is to be merged for a call, with the State first."""
    pair = event.args[0] if len(event.args) == 1 else None
    if not isinstance(pair, Seq) or pair.type != "tuple" or not pair.exact or len(pair.items) != 2:
        return
    state, graphdef = map(present, pair.items)
    if isinstance(state, StateVal) and isinstance(graphdef, GraphDefVal):
        node, module = event.nodes[0], event.frame.module
        plain = isinstance(node, ast.Tuple) and len(node.elts) == 2
        fix = (
            Fix("Exchange them", exchange(module.source, *node.elts)) if plain and isinstance(node, ast.Tuple) else None
        )
        report(module, node, fix=fix, given="a pair with the State first, from `nnx.call`")


def paired(frame: Frame, node: ast.Call) -> Fix | None:
    """Put the arguments into a tuple."""
    source = frame.module.source
    if any(isinstance(item, ast.Starred) for item in node.args):
        return None
    first, last = source.span(node.args[0]), source.span(node.args[-1])
    return Fix("Put them into a tuple", (*insert(first.start, "("), *insert(last.end, ")")))


# -- update ------------------------------------------------------------------------------------------------------------


@judges_calls(rules.UPDATE_ARGUMENTS, "nnx.update")
def update_arguments(event: Called, report: Reporter) -> None:
    if not event.args or None in event.args:
        return
    node, *states = (present(item) if item is not None else None for item in event.args)
    whole = [node.of] if isinstance(node, StateVal) and isinstance(node.of, ParameterVal) else []
    if isinstance(node, StateVal) and any(is_module(item) or item in whole for item in states):
        module, plain = event.frame.module, len(event.args) == 2 and not event.keywords
        fix = partial(_exchanged, event) if plain else None
        report(module, event.node, fix=fix, function="nnx.update", given="a State as its node, and a node as its State")
        return
    for item, where in zip(states, event.nodes[1:], strict=False):
        plain = isinstance(item, Array) or (isinstance(item, Const) and item.value is not None)
        if _has_parts(item) and isinstance(node, Obj):
            report(event.frame.module, where, function="nnx.update", given=PARTS)
        wrong = is_module(item) or (plain and isinstance(node, Obj))
        if wrong and item is not None and not (isinstance(node, Obj) and node.cls.is_variable):
            given = f"{item.describe()} where a State is expected"
            report(event.frame.module, where, function="nnx.update", given=given)


def _exchanged(event: Called) -> Fix | None:
    """Put two arguments in each other's places, where they are written one by one."""
    if any(isinstance(node, ast.Starred) for node in event.nodes) or len(set(event.nodes)) != len(event.nodes):
        return None
    return Fix("Exchange them", exchange(event.frame.module.source, *event.nodes))


@judges_calls(rules.UPDATE_ARGUMENTS, "nnx.update")
def update_by_paths(event: Called, report: Reporter) -> None:
    """A flat form of a State: a dict of paths, or a FlatState, which only flax does not take."""
    strict = event.frame.module.provider != "nnxkit"
    for item, where in zip(event.args[1:], event.nodes[1:], strict=False):
        keys = [key for key, _ in item.items] if isinstance(item, DictVal) else []
        flat = bool(keys) and all(isinstance(key, Seq) and key.type == "tuple" for key in keys)
        if flat or (strict and isinstance(item, Seq) and item.type == "FlatState"):
            given = "paths with their values where a nested State is expected (`nnx.from_flat_state` makes one)"
            report(event.frame.module, where, function="nnx.update", given=given)


class Gradients:
    """The States that ``nnx.grad`` and its like have returned."""

    def __init__(self) -> None:
        self.states: dict[int, StateVal] = {}


@judges_calls(rules.UPDATE_ARGUMENTS, Transformed)
def note_gradients(event: Called, report: Reporter) -> None:
    if isinstance(event.callee, Transformed) and event.callee.applied.row.name in {"nnx.grad", "nnx.value_and_grad"}:
        parts = event.result.items if isinstance(event.result, Seq) else [event.result]
        report.memory(Gradients).states.update((id(part), part) for part in parts if isinstance(part, StateVal))


@judges_calls(rules.UPDATE_ARGUMENTS, *TREE_MAPS, ".update")
def note_made_of_gradients(event: Called, report: Reporter) -> None:
    """What is made of nothing but gradients, leaf by leaf, or by a transformation of optax."""
    made = report.memory(Gradients).states
    if not made:
        return
    stepped = event.subject == ".update"
    if stepped and not (isinstance(event.callee, BoundMethod) and isinstance(event.callee.receiver, TransformationVal)):
        return
    trees = event.args[:1] if stepped else event.args[1:]
    result = event.result.items[0] if stepped and isinstance(event.result, Seq) else event.result
    if trees and all(tree is made.get(id(tree), event) for tree in trees) and isinstance(result, StateVal):
        made[id(result)] = result


@judges_calls(rules.UPDATE_ARGUMENTS, "nnx.update")
def update_by_gradients(event: Called, report: Reporter) -> None:
    """Gradients in place of the parameters that they are for."""
    made = report.memory(Gradients).states
    for item, where in zip(event.args[1:], event.nodes[1:], strict=False):
        if isinstance(item, StateVal) and item is made.get(id(item)) and item.of is event.args[0]:
            given = f"the gradients `{text_of(where)}`, which take the place of the parameters"
            report(event.frame.module, where, function="nnx.update", given=given)


@judges_calls(rules.UPDATE_ARGUMENTS, "nnx.update")
def update_by_other_kind(event: Called, report: Reporter) -> None:
    """The State of an optimizer goes into a model, or that of a model into an optimizer."""
    if len(event.nodes) < 2:
        return
    target, node = present(event.args[0] or UNKNOWN), event.nodes[0]
    into = is_optimizer(target)
    unknown = isinstance(target, Unknown)
    if not into and not is_module(target) and not (unknown and NETWORK.search(last_name(node))):
        return
    for item, where in zip(event.args[1:], event.nodes[1:], strict=False):
        of = present(item.of) if isinstance(item, StateVal) else UNKNOWN
        if is_optimizer(of) is not into and (is_optimizer(of) or is_module(of)):
            given = f"`{text_of(where)}`, the State of {'a model' if into else 'an optimizer'}, for `{text_of(node)}`"
            report(event.frame.module, where, function="nnx.update", given=given)


def is_optimizer(value: Value) -> bool:
    """Whether a value certainly is an optimizer."""
    return isinstance(value, Obj) and value.cls.derives_from("nnx.Optimizer")


STATES = {
    "nnx.filter_state": 0,
    "nnx.map_state": 1,
    "nnx.replace_by_pure_dict": 0,
    "nnx.split_state": 0,
    "nnx.to_flat_state": 0,
    "nnx.to_pure_dict": 0,
}
"""Functions of a State, by the place of the argument that it is."""


@judges_calls(rules.UPDATE_ARGUMENTS, *STATES)
def node_for_state(event: Called, report: Reporter) -> None:
    """A module where a function takes its State."""
    place = STATES.get(event.subject or "", len(event.args))
    value = event.args[place] if place < min(len(event.args), len(event.nodes)) else None
    item = present(value) if value is not None else None
    if is_module(item) and item is not None:
        module, where = event.frame.module, event.nodes[place]
        # What is filled has to be seen by others: a State that is made in its place would be lost.
        name = spelled("nnx.state", module) if event.subject != "nnx.replace_by_pure_dict" else None
        fix = Fix(f"Hand over `{name}(...)`", wrap(module.source, where, name)) if name is not None else None
        given = f"{item.describe()} where a State is expected"
        report(module, where, fix=fix, function=event.name, given=given)


@judges_calls(rules.UPDATE_ARGUMENTS, "nnx.replace_by_pure_dict")
def replacement_arguments(event: Called, report: Reporter) -> None:
    if len(event.args) != 2 or None in event.args or not isinstance(event.args[0], DictVal):
        return
    if isinstance(event.args[1], StateVal):
        fix = partial(_exchanged, event)
        given = "a dict as its State, and a State as its dict"
        report(event.frame.module, event.node, fix=fix, function="nnx.replace_by_pure_dict", given=given)


OF_DICTS = tuple(
    f"flax.{name}"
    for name in (
        "serialization.msgpack_serialize",
        "serialization.to_bytes",
        "traverse_util.flatten_dict",
        "traverse_util.path_aware_map",
    )
)
"""Functions of flax, made for Linen, that take nested dicts and nothing like them."""


@judges_calls(rules.UPDATE_ARGUMENTS, *OF_DICTS)
def state_for_dict(event: Called, report: Reporter) -> None:
    """A State where a function takes a dict, as the variables of Linen are."""
    place = 1 if event.subject == "flax.traverse_util.path_aware_map" else 0
    value = event.args[place] if place < min(len(event.args), len(event.nodes)) else None
    item, module = present(value) if value is not None else None, event.frame.module
    if (isinstance(item, StateVal) or is_module(item)) and not is_tried(module, event.node):
        given = "a State" if isinstance(item, StateVal) or item is None else item.describe()
        where, mend = event.nodes[place], "(`nnx.to_pure_dict` makes one of a State)"
        report(module, where, function=event.name, given=f"{given} where a dict is expected {mend}")


def is_module(value: Value | None) -> bool:
    """Whether a value certainly is a module, and nothing that is like a mapping."""
    if not isinstance(value, Obj) or not value.cls.derives_from("nnx.Module") or value.cls.is_open:
        return False
    return not any(value.cls.derives_from(name) for name in ("nnx.List", "nnx.Dict"))


@judges_calls(rules.UPDATE_UNKNOWN_PATH, "nnx.update")
def update_by_other_state(event: Called, report: Reporter) -> None:
    """A State of an object of another class, with Variables for which there is no attribute."""
    node = present(event.args[0]) if event.args and event.args[0] is not None else None
    for state, where in zip(event.args[1:], event.nodes[1:], strict=False):
        known = isinstance(state, (StateVal, PartVal))
        other = present(state.of) if isinstance(state, (StateVal, PartVal)) else None
        if not isinstance(node, Obj) or not known or not isinstance(other, Obj):
            continue
        if not are_apart(node, other) or not is_complete(node, event.frame):
            continue
        wanted = state.wanted if isinstance(state, StateVal) else None
        asked = expression(wanted) if wanted is not None else Everything()
        leaves = leaves_of(other, event.frame).leaves
        unknown = [leaf for leaf in leaves if _is_foreign(leaf, node)]
        if isinstance(state, PartVal) and len(unknown) < len(leaves):
            continue  # a filter may have left out what the object lacks
        leaf = next((leaf for leaf in unknown if logic.matches(asked, leaf, is_subtype) is True), None)
        if leaf is not None:
            report(event.frame.module, where, path=path_text(leaf), cls=node.cls.name)


def _is_foreign(leaf: logic.Leaf, node: Obj) -> bool:
    """Whether the path of a leaf begins with an attribute that an object does not have."""
    first = leaf.path[0] if isinstance(leaf.path, tuple) and leaf.path else None
    return isinstance(first, str) and attribute_of(node, first) is None


@judges_calls(rules.UPDATE_UNKNOWN_PATH, "nnx.update")
@judges_calls(rules.UPDATE_KIND, "nnx.update")
def update_by_dict(event: Called, report: Reporter) -> None:
    node = present(event.args[0]) if event.args and event.args[0] is not None else None
    for state in event.args[1:]:
        if isinstance(node, Obj) and isinstance(state, DictVal):
            _compare(event, report, node, state, node.cls.name, "")


def _compare(event: Called, report: Reporter, node: Obj, state: DictVal, cls: str, path: str) -> None:
    """Compare a dict that is written in the program, or filled there, with the attributes of an object."""
    for key, value, place in _entries(state):
        if not isinstance(key, Const) or not isinstance(key.value, str):
            continue
        attr = attribute_of(node, key.value)
        here = f"{path}.{key.value}" if path else key.value
        held = present(attr.value) if attr is not None else None
        if attr is None and report.rule is rules.UPDATE_UNKNOWN_PATH and is_complete(node, event.frame):
            report(*_place(event, place), path=here, cls=cls)
        elif is_module(held) and isinstance(held, Obj) and isinstance(value, DictVal):
            _compare(event, report, held, value, cls, here)
        elif is_module(held) and held is not None and isinstance(value, Array) and report.rule is rules.UPDATE_KIND:
            report(*_place(event, place), path=here, expected=held.describe(), given="a leaf")


UNFLATTENED = frozenset({"nnx.from_flat_state", "flax.traverse_util.unflatten_dict"})
"""Functions that make nested values of a dict of paths."""


@judges_calls(rules.UPDATE_UNKNOWN_PATH, "nnx.update")
def update_by_flat_dict(event: Called, report: Reporter) -> None:
    """A dict of paths that is made into a State for the call, as from weights of another library."""
    node, frame = present(event.args[0]) if event.args and event.args[0] is not None else None, event.frame
    for given in event.nodes[1:]:
        call = value_of(frame.module, given) or given
        if not isinstance(node, Obj) or not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
            continue
        flat = resolved(frame.env, call.args[0]) if canonical_of(frame.env, call.func) in UNFLATTENED else None
        for key, _, place in _entries(flat) if isinstance(flat, DictVal) else ():
            parts = [part.value for part in key.items if isinstance(part, Const)] if isinstance(key, Seq) else []
            if isinstance(key, Seq) and len(parts) == len(key.items) and _is_missing(node, parts, frame):
                path = ".".join(map(str, parts))
                report(*_place(event, place), path=path, cls=node.cls.name)


def _is_missing(node: Obj, path: list[object], frame: Frame) -> bool:
    """Whether a path certainly leads to no attribute of a module, or of a part of it."""
    held: Value = node
    for part in path:
        if not isinstance(held, Obj) or not is_module(held) or not isinstance(part, str):
            return False
        attr = attribute_of(held, part)
        if attr is None:
            return is_complete(held, frame)
        held = present(attr.value)
    return False


def _entries(state: DictVal) -> Iterator[tuple[Value, Value, ast.AST | Fill]]:
    """The entries of a dict that certainly are all, each with the key that is written, or what put it in later."""
    written = state.node.keys if isinstance(state.node, ast.Dict) else []
    if len(written) > len(state.items) or (len(written) < len(state.items) and (state.shrunk or None in written)):
        return
    keys = [key.value for key, _ in state.items if isinstance(key, Const)]
    for place, (key, value) in enumerate(state.items):
        fill = next((fill for fill in state.fills if fill.value is value), None)
        found = written[place] if place < len(written) else fill
        if found is not None and not (isinstance(key, Const) and keys.count(key.value) > 1):
            yield key, value, found


def _place(event: Called, place: ast.AST | Fill) -> tuple[Module, ast.AST]:
    """Where an entry of a dict is said; the call, where another module made the dict."""
    if isinstance(place, tuple):
        return place.module, place.node
    module = event.frame.module
    return module, place if any(place is node for node in walk(module.tree)) else event.node


def is_complete(obj: Obj, frame: Frame) -> bool:
    """Whether all attributes of an object are known."""
    from nnx_lint.model.strings import HOLE

    if obj.assumed or obj.args is None or obj.cls.is_open or any(HOLE in name for name in obj.attrs):
        return False
    if isinstance(obj.cls, LibClass):
        return bool(obj.cls.spec and obj.cls.spec.members and not obj.cls.spec.more)
    return isinstance(obj.cls, UserClass) and leaves_of(obj, frame).complete


# -- state -------------------------------------------------------------------------------------------------------------


TAKING_NODES = ("ModelAndOptimizer", "Optimizer", "clone", "iter_modules", "pop", "split", "tabulate")
"""Functions and classes, besides ``nnx.state``, that take a module first."""


@judges_calls(rules.NOT_A_NODE, "nnx.state")
def state_of_non_node(event: Called, report: Reporter) -> None:
    value = event.args[0] if event.args else None
    value = present(value) if value is not None else None
    variable = isinstance(value, Obj) and value.cls.is_variable and event.frame.module.provider != "nnxkit"
    if value is not None and (variable or isinstance(value, (Array, Const, ClassVal))):
        report(event.frame.module, event.nodes[0], function=event.name, given=value.describe())


@judges_calls(rules.NOT_A_NODE, *(f"nnx.{name}" for name in TAKING_NODES))
def class_for_instance(event: Called, report: Reporter) -> None:
    """A class where a module is expected: it has no values yet."""
    value = event.args[0] if event.args else None
    if isinstance(value, ClassVal) and value.cls.derives_from("nnx.Module") and event.nodes:
        report(event.frame.module, event.nodes[0], function=event.name, given=value.describe())
