"""What the functions of JAX, NNX and Python do to abstract values. Dispatch is by canonical name."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from nnx_lint.model import (
    attributes,
    configs,
    datasets,
    events,
    foreign,
    meshes,
    modes,
    operations,
    python,
    records,
    surgery,
    trees,
)
from nnx_lint.model.arrays import array_call
from nnx_lint.model.callables import FuncVal, LibraryFunction, PartialVal, ShardedInit, TransformVal
from nnx_lint.model.classes import UserClass, library_class
from nnx_lint.model.containers import DictVal, PureDict, Seq, give_away
from nnx_lint.model.crossing import refresh
from nnx_lint.model.expressions import text_of
from nnx_lint.model.heap import touch
from nnx_lint.model.imports import LIBRARIES
from nnx_lint.model.leaves import forget_variables
from nnx_lint.model.states import GraphDefVal, StateVal
from nnx_lint.model.switching import set_training
from nnx_lint.model.unions import options, present
from nnx_lint.model.values import UNKNOWN, ClassVal, Const, Ext, FieldVal, Obj, TagVal, Value
from nnx_rules import api, transforms
from nnx_rules.attributes import Tag

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter
    from nnx_lint.model.modules import Module

    Handler = Callable[[Interpreter, Frame, Arguments, ast.AST, str], Value]


def call_library(interp: Interpreter, frame: Frame, callee: Ext, args: Arguments, node: ast.AST, name: str) -> Value:
    """Call a library function by its canonical name."""
    canonical = callee.name
    handler = interp.library.get(canonical) or HANDLERS.get(canonical)
    if handler is not None:
        return handler(interp, frame, args, node, name)
    row = transforms.find(canonical)
    if row is not None:
        return _transform(interp, frame, row, canonical, args, node, name)
    placed = meshes.made(canonical, args)
    if placed is not None:
        return placed
    if canonical in modes.MESH_CHANGERS:
        interp.modes = modes.with_mesh(interp.modes, canonical, args.get(0))
        return UNKNOWN
    if canonical in modes.SETTERS:
        interp.modes = modes.changed(interp.modes, canonical, args.get(0))
        return UNKNOWN
    if canonical in api.INPLACE_FUNCTIONS:
        target = args.get(0)
        where = args.node_of(0)
        if target is not None and where is not None:
            attributes.mutate(interp, frame, target, text_of(where), f"`{canonical}(...)`", "write", node)
        return UNKNOWN
    if canonical in api.FILTER_CLASSES or canonical in api.FILTER_MAPPINGS:
        return FilterVal(canonical, args, frame.module, node)
    if canonical.partition(".")[0] not in LIBRARIES | {"nnx"}:
        interp.modes = interp.modes._replace(mesh=None)  # who knows what it sets
        give_away((*args.positional, *args.keywords.values()))
        if canonical.partition(".")[0] not in sys.stdlib_module_names:
            surgery.handed(frame, args, node)
            configs.give_away(filter(configs.is_parser, (*args.positional, *args.keywords.values())))
            for value in args.positional:
                configs.may_be_filled(value or UNKNOWN)
    made = foreign.made_by(canonical, args)
    if made is not None:
        return made
    return operations.with_form(canonical, args, array_call(canonical, args, frame.level), frame.level)


class FilterVal(Value):
    """An instance of a filter class: ``nnx.All(nnx.Param, ...)``, ``nnx.StateAxes({...})``, and where it was made."""

    __slots__ = ("args", "module", "name", "node")
    kind = Const.kind

    def __init__(self, name: str, args: Arguments, module: Module, node: ast.AST) -> None:
        self.name = name
        self.args = args
        self.module = module
        self.node = node


def _transform(
    interp: Interpreter,
    frame: Frame,
    row: transforms.Transform,
    canonical: str,
    args: Arguments,
    node: ast.AST,
    name: str,
) -> Value:
    from nnx_lint.model.calls import apply_transform, call_now

    if row.form is transforms.Form.CALL:
        return call_now(interp, frame, row, canonical, args, node, name)
    argument = row.functions[0]
    func = args.get(argument.position, argument.keyword)
    rest = args.positional[argument.position + 1 :]
    options = {key: value for key, value in args.keywords.items() if key != argument.keyword}
    if not row.binds:
        for option, value in zip(row.positional, rest, strict=False):
            if value is None:
                break
            options[option] = value
        if None in rest or len(rest) > len(row.positional):
            options["**"] = UNKNOWN
    configured = modes.of_transform(canonical, args.keywords, interp.modes)
    applied = TransformVal(row, name, options, node, frame, configured)
    if func is None:
        return applied if not args.positional else UNKNOWN
    where = args.node_of(argument.position, argument.keyword) or node
    transformed = apply_transform(interp, frame, applied, func, where, node, "call")
    if not rest or not row.binds:
        return transformed
    bound = [value for value in rest if value is not None]
    return PartialVal(transformed, bound, {}) if len(bound) == len(rest) else UNKNOWN


def _tag(tag: Tag) -> Handler:
    def handler(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
        if not isinstance(node, ast.Call):
            return UNKNOWN
        if args.starred:
            return UNKNOWN
        value = TagVal(tag, args.get(0), args.keywords, node)
        interp.publish(events.Tagged(frame, node, value))
        return value

    return handler


def _field(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    return FieldVal(args.keywords, node) if isinstance(node, ast.Call) and not args.starred else UNKNOWN


def _partial(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    return _bound(args, opaque=True)


def _partial_tree(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    return _bound(args, opaque=False)


def _bound(args: Arguments, *, opaque: bool) -> Value:
    func = args.get(0)
    if func is None or None in args.positional:
        return UNKNOWN
    rest = [value for value in args.positional[1:] if value is not None]
    return PartialVal(func, rest, args.keywords, opaque=opaque)


def _wraps(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    return PartialVal(Ext("functools.update_wrapper"), [], {"wrapped": args.get(0, "wrapped") or UNKNOWN})


def _update_wrapper(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    wrapper = args.get(0, "wrapper") or UNKNOWN
    if isinstance(wrapper, FuncVal):
        wrapper.wraps = args.get(1, "wrapped")
    return wrapper


def _split(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    of = args.get(0) or UNKNOWN
    if None in args.positional:
        return UNKNOWN
    filters = args.positional[1:] or [None]
    return Seq("tuple", [GraphDefVal(of), *_states_of(of, filters, frame)], frame.level)


def _graphdef(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    return GraphDefVal(args.get(0, "node") or UNKNOWN)


def _state(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    return shared_out(args.get(0) or UNKNOWN, args.positional[1:], frame)


def shared_out(of: Value, filters: Sequence[Value | None], frame: Frame) -> Value:
    """One State, or a tuple of as many States as there are filters."""
    if None in filters:
        return UNKNOWN
    states = _states_of(of, filters or [None], frame)
    return states[0] if len(states) == 1 else Seq("tuple", states, frame.level)


def _states_of(of: Value, filters: Sequence[Value | None], frame: Frame) -> list[Value]:
    """The States of an object that filters take, one after the other."""
    level = level_of(of, frame.level)
    states = [StateVal(of, level, wanted) for wanted in filters]
    for place, state in enumerate(states):
        state.after = tuple(filters[:place])
    return [*states]


def _diff_state(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    return FilterVal("nnx.DiffState", args, frame.module, node)


def _with_partitioning(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    sharding = args.get(1, "sharding")
    rules = meshes.rules_in(args.keywords.get("sharding_rules"))
    own = not args.keywords.keys() <= {"initializer", "sharding", "sharding_rules"}
    if sharding is None or own or rules is None or (rules and not isinstance(sharding, Seq)):
        return UNKNOWN
    initializer = args.get(0, "initializer")
    maker = initializer.name if isinstance(initializer, Ext) else ""
    maker = initializer.maker if isinstance(initializer, LibraryFunction) else maker
    return ShardedInit(meshes.through(rules, sharding) if rules and isinstance(sharding, Seq) else sharding, maker)


def _prefix(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    return FilterVal("nnx.prefix", args, frame.module, node)


def _written_state(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    given = args.get(0)
    return StateVal(given, frame.level) if isinstance(given, DictVal) else UNKNOWN


def _states(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """Functions that share out a State; what else they are given is not known to be one."""
    from nnx_lint.model.calls import Arguments

    held = args.get(0)
    several = options(held) if held is not None else ()
    if len(several) > 1 and any(isinstance(option, StateVal) for option in several):
        some = StateVal(UNKNOWN, frame.level, UNKNOWN)  # one of several States
        args = Arguments(args.node, [some, *args.positional[1:]], args.keywords, args.nodes)
        return _state(interp, frame, args, node, name)
    return _state(interp, frame, args, node, name) if isinstance(held, StateVal) else UNKNOWN


def _merged_states(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """A State, of which nothing else is said, if only States are merged."""
    known = bool(args.positional) and all(isinstance(given, StateVal) for given in args.positional)
    return StateVal(UNKNOWN, frame.level, UNKNOWN) if known else UNKNOWN


def _pure_dict(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    return PureDict(present(args.get(0) or UNKNOWN), frame.level)


def _split_context(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    context = library_class("nnx.SplitContext")
    return Obj(context, frame.level, node=node) if context is not None else UNKNOWN


def _pop(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    target, where = args.get(0), args.node_of(0)
    if target is not None and where is not None:
        attributes.mutate(interp, frame, target, text_of(where), f"`{name}(...)`", "untracked", node)
    return _state(interp, frame, args, node, name)


def forget_popped(args: Arguments) -> None:
    """After a ``pop`` the object has lost what the filters take."""
    target = args.get(0)
    if target is not None:
        kinds = [value.cls for value in args.positional[1:] if isinstance(value, ClassVal)]
        forget_variables(present(target), kinds if len(kinds) == len(args.positional) - 1 else None)


AFTERWARDS: dict[str, Callable[[Arguments], None]] = {"nnx.pop": forget_popped}
"""What a call leaves behind that those who judge the call itself may not see yet."""


def level_of(value: Value, default: int) -> int:
    """The trace level of an object."""
    held = present(value)
    return held.level if isinstance(held, (Obj, StateVal)) else default


def _merge(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    graphdef = args.get(0)
    if not isinstance(graphdef, GraphDefVal):
        return UNKNOWN
    of = present(graphdef.of)
    several = isinstance(of, Seq) and of.exact and all(isinstance(item, Obj) for item in of.items)
    if not isinstance(of, Obj) and not several:
        return UNKNOWN
    merged = refresh(of, frame.level)
    for item in merged.items if isinstance(merged, Seq) else [merged]:
        if isinstance(item, Obj):
            item.assumed = item.assumed or item.origin is None  # like `self`, it may be of a class below the known one
            item.origin = (frame.module, node)
            item.gained = item.gained if _are_whole(of, args.positional[1:]) else item.gained and None
            item.leaf_level, item.leaf_params = _merged_level(frame, args)
            item.merged = () if {"copy", "**"} & args.keywords.keys() else tuple(args.positional[1:])
    return merged


def _are_whole(of: Value, states: Sequence[Value | None]) -> bool:
    """Whether the States that are merged are those of the object as it is: they may have been mapped as well."""
    kept = (isinstance(state, StateVal) and state.of is of and state.before is state.made is None for state in states)
    return bool(states) and all(kept)


def _merged_level(frame: Frame, args: Arguments) -> tuple[int | None, bool]:
    """The level of the Variables of a merged object where it differs from the object's, and whether Params have it too.

    Without a copy the Variables are those of the given States. Where some of these are captured and others are not, the
    others must hold the Params only, or nothing is known.
    """
    states = args.positional[1:]
    if "copy" in args.keywords or args.starred or not all(isinstance(value, StateVal) for value in states):
        return None, True
    captured = [value.level for value in states if isinstance(value, StateVal) and value.level < frame.level]
    fresh = [value.wanted for value in states if isinstance(value, StateVal) and value.level >= frame.level]
    if not captured or not all(isinstance(item, ClassVal) and item.cls.derives_from("nnx.Param") for item in fresh):
        return None, True
    return max(captured), not fresh


def _same(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    value = args.get(0)
    return refresh(value, frame.level) if isinstance(value, (Obj, StateVal)) else UNKNOWN


def _with_attributes(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    # New objects around the same Variables.
    value = args.get(0)
    shown = _same(interp, frame, args, node, name)
    if isinstance(value, Obj) and isinstance(shown, Obj):
        shown.leaf_level = value.level if value.leaf_level is None else value.leaf_level
        set_training(shown, None)
    return shown


def _shallow(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    # A new object whose attributes are those of the other one. A switch of its parts is one of theirs, too.
    value = args.get(0)
    if not isinstance(value, Obj) or not value.cls.derives_from("nnx.Pytree"):
        return UNKNOWN
    return _with_attributes(interp, frame, args, node, name)


def _noting(mark: str) -> Handler:
    """What notes something of the class that it is called with, and returns the class; with options alone, it gives
    what is called with the class.
    """

    def note(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
        cls = args.get(0)
        if cls is None and args.keywords and not args.starred:
            return PartialVal(Ext(name), [], args.keywords)
        if isinstance(cls, ClassVal) and isinstance(cls.cls, UserClass):
            touch(cls.cls)
            setattr(cls.cls, mark, True)
        return cls if cls is not None else UNKNOWN

    return note


_register = _noting("registered_container")
_dataclass = _noting("made_dataclass")
_register_data = _noting("registered_data")


def _dataclass_container(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    _dataclass(interp, frame, args, node, name)
    return _register(interp, frame, args, node, name)


HANDLERS: dict[str, Handler] = {
    **python.HANDLERS,
    **configs.HANDLERS,
    **datasets.HANDLERS,
    **records.HANDLERS,
    **trees.HANDLERS,
    **surgery.HANDLERS,
    "nnx.DiffState": _diff_state,
    "nnx.prefix": _prefix,
    "nnx.State": _written_state,
    "nnx.with_partitioning": _with_partitioning,
    "nnx.data": _tag(Tag.DATA),
    "nnx.static": _tag(Tag.STATIC),
    "dataclasses.field": _field,
    "functools.partial": _partial,
    "functools.wraps": _wraps,
    "functools.update_wrapper": _update_wrapper,
    "jax.tree_util.Partial": _partial_tree,
    "nnx.split": _split,
    "nnx.graphdef": _graphdef,
    "nnx.state": _state,
    "nnx.variables": _state,
    "nnx.pop": _pop,
    "nnx.split_context": _split_context,
    "nnx.split_state": _states,
    "nnx.to_pure_dict": _pure_dict,
    "nnx.filter_state": _states,
    "nnx.merge_state": _merged_states,
    "nnx.merge": _merge,
    **dict.fromkeys(("nnx.clone", "copy.deepcopy"), _same),
    "copy.copy": _shallow,
    "nnx.view": _with_attributes,
    "nnx.with_attributes": _with_attributes,
    "jax.tree_util.register_pytree_node": _register,
    "jax.tree_util.register_pytree_with_keys": _register,
    "jax.tree_util.register_pytree_node_class": _register,
    "jax.tree_util.register_pytree_with_keys_class": _register,
    "jax.tree_util.register_dataclass": _register,
    "jax.tree_util.register_static": _register,
    "nnx.register_data_type": _register_data,
    **dict.fromkeys(("nnx.dataclass", "dataclasses.dataclass"), _dataclass),
    **dict.fromkeys(("flax.struct.dataclass", "chex.dataclass"), _dataclass_container),
}
