"""What the functions and classes of JAX, NNX and Python do to abstract values. Dispatch is by canonical name."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import attributes, events, forms, modes, operations, python, rounds, trees
from nnx_lint.model.arrays import array_call
from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal, TransformVal
from nnx_lint.model.classes import LibClass, UserClass, library_class
from nnx_lint.model.containers import DictVal, Seq, give_away
from nnx_lint.model.crossing import refresh
from nnx_lint.model.elements import element_of
from nnx_lint.model.expressions import text_of
from nnx_lint.model.heap import touch
from nnx_lint.model.imports import LIBRARIES
from nnx_lint.model.leaves import forget_variables
from nnx_lint.model.members import inherit
from nnx_lint.model.strings import formatted
from nnx_lint.model.values import (
    NONE,
    SOME_VARIABLE,
    STRING,
    UNKNOWN,
    Array,
    ClassVal,
    Const,
    Ext,
    FieldVal,
    GraphDefVal,
    Obj,
    StateVal,
    TagVal,
    Value,
    present,
)
from nnx_rules import api, transforms
from nnx_rules.attributes import Tag
from nnx_rules.versions import MODULE_METHODS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter
    from nnx_lint.model.modules import Module

    Handler = Callable[[Interpreter, Frame, Arguments, ast.AST, str], Value]


# -- instances of library classes
# ----------------------------------------------------------------------------------------------


def library_member(obj: Obj, name: str) -> Value:
    """An attribute of an instance of a library class (or of a project class below one) that has not been assigned.

    On a project class it may be an attribute that is set from outside, unless it is known to be a method.
    """
    specs = [item.spec for item in obj.cls.ancestors if isinstance(item, LibClass) and item.spec is not None]
    if any(member.path == (name,) for spec in specs for member in spec.members or ()):
        return UNKNOWN  # the options that decide whether it is there are not known
    known = isinstance(obj.cls, LibClass) or name in {"__call__", "__setattr__"} or effect_of(obj, name) is not None
    known = known or (name in MODULE_METHODS and obj.cls.derives_from("nnx.Module"))
    return BoundMethod(obj, name) if known or obj.cls.library in OPEN_FACES else UNKNOWN


OPEN_FACES = frozenset(library_class(name) for name in ("nnx.Rngs", "nnx.RngStream", "nnx.List", "nnx.Dict"))
"""Classes whose instances have methods of any name, or whose methods are known elsewhere."""


def effect_of(obj: Obj, method: str) -> api.Effect | None:
    """What calling a method of a library object does to the object."""
    for item in obj.cls.ancestors:
        if isinstance(item, LibClass) and item.spec is not None:
            if method == "__call__" and item.spec.call is not api.Effect.PURE:
                return item.spec.call
            found = dict(item.spec.methods).get(method)
            if found is not None:
                return found
        elif isinstance(item, UserClass) and method in item.methods:
            return None
    return None


def drawn_from(obj: Obj, method: str, args: Arguments) -> Obj | None:
    """The random streams among the arguments that a method of a library object draws from."""
    for item in obj.cls.ancestors:
        position = dict(item.spec.drawing).get(method) if isinstance(item, LibClass) and item.spec is not None else None
        if position is not None:
            given = args.get(position, "rngs")
            return given if isinstance(given, Obj) and given.cls.derives_from("nnx.Rngs") else None
    return None


def certainly_stateful(obj: Obj, args: Arguments) -> bool:
    """Whether calling a layer certainly updates its state: none of the options that switch it off may be in force."""
    library = obj.cls.library
    if library is None or library.spec is None:
        return False
    if obj.args is None or "**" in args.keywords or not args.keywords.keys().isdisjoint(library.spec.pure_with):
        return False
    made_with = {name: forms.resolved(obj, value) for name, value in obj.args.items()}
    for name, value in library.spec.stateful_when:
        given = args.keywords.get(name, made_with.get(name))
        if isinstance(given, Const) and given.value == value:
            return True
    for name, value in library.spec.pure_when:
        given = args.keywords.get(name)
        if given is None and name in MODES:
            attr = attributes.attribute_of(obj, name)
            if attr is not None:
                given = attr.value
            elif obj.training is not True:
                return False
        given = made_with.get(name) if given is None else given
        if given is None:
            continue
        if not isinstance(given, Const) or given.value == value:
            return False
    return all(
        isinstance(given := made_with.get(name), Const) and given.value not in without
        for name, without in library.spec.stateful_with
    )


MODES = frozenset({"deterministic", "use_running_average"})
"""Options of layers that ``train()`` and ``eval()`` set."""


STATE_NAMES = {api.Effect.DRAWS: "RngCount", api.Effect.WRITES_STATE: "state", api.Effect.SETS_ATTRIBUTES: "attributes"}


def call_library_object(
    interp: Interpreter, frame: Frame, obj: Obj, args: Arguments, node: ast.AST, name: str
) -> Value:
    """Call an instance of a library class."""
    library = obj.cls.library
    if library is None:
        return UNKNOWN
    effect = effect_of(obj, "__call__")
    if library.derives_from("nnx.Rngs") or library.derives_from("nnx.RngStream"):
        attributes.mutate(interp, frame, obj, name, "drawing from it", "draw", node, "RngCount")
        return Array(frame.level)
    given = args.keywords.get("rngs")
    if given is not None and effect is api.Effect.DRAWS:
        if isinstance(given, Obj) and certainly_stateful(obj, args):  # it draws from these instead of from its own
            attributes.mutate(interp, frame, given, _keyword_text(node, "rngs"), "calling it", "draw", node, "RngCount")
    elif effect is not None and certainly_stateful(obj, args):
        attributes.mutate(interp, frame, obj, name, "calling it", "call", node, STATE_OF.get(library.name, "state"))
    if obj.cls.is_variable:
        return UNKNOWN
    last = _call_in_turn(interp, frame, obj, args, node, name) if library.canonical == "nnx.Sequential" else UNKNOWN
    plain = not args.starred and args.keywords.keys().isdisjoint({"return_carry", "**"})
    form = forms.result(obj, args.get(0)) if plain else None
    if form is None and (library.spec is None or library.name not in ARRAY_LAYERS):
        return last
    result = Array(frame.level, form)
    result.maker = (name, frame.module, node)
    return result


def _call_in_turn(interp: Interpreter, frame: Frame, obj: Obj, args: Arguments, node: ast.AST, name: str) -> Value:
    """Call the layers of a ``Sequential``, each with what the one before it returned."""
    from nnx_lint.model.calls import Arguments, invoke
    from nnx_lint.model.elements import library_elements

    layers = attributes.attribute_of(obj, "layers")
    held = library_elements(layers.value) if layers is not None and isinstance(layers.value, Obj) else None
    result: Value = UNKNOWN
    for item in held.items if held is not None else ():
        result = invoke(interp, frame, item, args, node, name)
        if isinstance(result, DictVal):
            args = Arguments(args.node, [], {"**": UNKNOWN}, [])
        else:
            given: list[Value | None] = [result]
            if isinstance(result, Seq) and result.type == "tuple" and result.exact:
                given = [*result.items]
            args = Arguments(args.node, given, {}, [])
    return result if held is not None and held.exact else UNKNOWN


def _keyword_text(node: ast.AST, name: str) -> str:
    keywords = node.keywords if isinstance(node, ast.Call) else []
    return next((text_of(item.value) for item in keywords if item.arg == name), name)


STATE_OF = {
    "BatchNorm": "BatchStat",
    "Bidirectional": "RngCount",
    "Dropout": "RngCount",
    "RNN": "RngCount",
    "SpectralNorm": "BatchStat",
}
ARRAY_LAYERS = frozenset(
    {
        "Linear",
        "LinearGeneral",
        "Einsum",
        "Conv",
        "ConvTranspose",
        "Embed",
        "BatchNorm",
        "LayerNorm",
        "RMSNorm",
        "GroupNorm",
    }
    | {"InstanceNorm", "Dropout", "MultiHeadAttention", "PReLU", "LoRALinear"}
)


def call_library_method(
    interp: Interpreter, frame: Frame, method: BoundMethod, args: Arguments, node: ast.AST, name: str
) -> Value:
    """Call a method that a library class defines."""
    receiver = method.receiver
    if isinstance(receiver, ClassVal):
        return UNKNOWN
    if isinstance(receiver, StateVal) and method.name in {"split", "filter"}:
        return shared_out(receiver, args.positional, frame)
    if isinstance(receiver, Const) and isinstance(receiver.value, str):
        if method.name == "format":
            return formatted(receiver.value)
        return STRING if method.name in {"join", "lower", "upper", "strip"} else UNKNOWN
    if isinstance(receiver, StateVal) and method.name == "flat_state":
        return trees.flat_state(interp, frame, args, node, name)
    if isinstance(receiver, StateVal) and method.name == "map":
        return trees.map_state(interp, frame, args.get(0) or UNKNOWN, receiver, node, name)
    if not isinstance(receiver, Obj):
        return UNKNOWN
    if method.name == "__call__":
        return call_library_object(interp, frame, receiver, args, node, name)
    if method.name == "__new__":
        return receiver
    if method.name == "__setattr__":
        return python.set_by_name(interp, frame, receiver, name.rpartition(".")[0] or name, args, node)
    if method.name == "__init__":
        inherit(frame, receiver, args)
        return NONE
    text = name.rpartition(".")[0] or name
    if receiver.cls.is_variable:
        if method.name in api.VARIABLE_WRITES:
            attributes.forget_form(receiver)
            attributes.mutate(interp, frame, receiver, text, f"`.{method.name}(...)`", "write", node)
            return UNKNOWN
        if method.name in {"copy", "replace"}:
            return SOME_VARIABLE
        return attributes.variable_value(receiver) if method.name == "get_value" else UNKNOWN
    if receiver.cls.derives_from("nnx.Rngs") or receiver.cls.derives_from("nnx.RngStream"):
        return _draw(interp, frame, receiver, method.name, node, text)
    if receiver.cls.derives_from("nnx.List") and method.name in {
        "append",
        "insert",
        "extend",
        "pop",
        "remove",
        "clear",
    }:
        attributes.mutate(interp, frame, receiver, text, f"`.{method.name}(...)`", "write", node)
        return _list_method(interp, frame, receiver, method.name, args)
    if receiver.cls.derives_from("nnx.Dict") and method.name in {"update", "pop", "clear", "setdefault"}:
        attributes.mutate(interp, frame, receiver, text, f"`.{method.name}(...)`", "write", node)
        return UNKNOWN
    if (source := drawn_from(receiver, method.name, args)) is not None:
        where = args.node_of(args.positional.index(source) if source in args.positional else -1, "rngs")
        attributes.mutate(interp, frame, source, text_of(where or node), f"`{name}(...)`", "draw", node, "RngCount")
    effect = effect_of(receiver, method.name)
    if effect is api.Effect.SETS_ATTRIBUTES:
        attributes.set_training(receiver, _mode_after(method.name, args))
        if not _has_modes(receiver):
            return UNKNOWN
    if method.name == "update" and receiver.cls.derives_from("nnx.Optimizer"):
        model, where = args.get(0, "model"), args.node_of(0, "model")
        if isinstance(model, Obj) and where is not None and not receiver.cls.derives_from("nnx.ModelAndOptimizer"):
            attributes.mutate(interp, frame, model, text_of(where), f"`{name}(...)`", "write", node)
    if effect is not None and method.name == "perturb":
        return Array(frame.level)  # only the first call changes the module
    if effect is not None:
        kind = "write" if effect is api.Effect.SETS_ATTRIBUTES or method.name == "sow" else "call"
        attributes.mutate(interp, frame, receiver, text, f"`.{method.name}(...)`", kind, node, STATE_NAMES[effect])
    return UNKNOWN


def _mode_after(method: str, args: Arguments) -> bool | None:
    """The mode that ``train()`` or ``eval()`` leaves layers in; other ways to set attributes may not reach them all."""
    return None if args.positional or method == "set_attributes" else method == "train"


def _has_modes(obj: Obj, depth: int = 6) -> bool:
    """Whether a module certainly has, or holds a layer that has, an attribute that ``train()`` and ``eval()`` set."""
    spec = obj.cls.library.spec if obj.cls.library is not None else None
    if spec is not None and not MODES.isdisjoint(name for name, _ in spec.pure_when):
        return True
    for name in attributes.attribute_names(obj):
        attr = attributes.attribute_of(obj, name)
        members = [attr.value] if attr is not None else []
        if attr is not None and isinstance(attr.value, Seq):
            members = attr.value.items
        if name in MODES or (depth and any(isinstance(item, Obj) and _has_modes(item, depth - 1) for item in members)):
            return True
    return False


def _list_method(interp: Interpreter, frame: Frame, receiver: Obj, method: str, args: Arguments) -> Value:
    from nnx_lint.model.elements import library_elements

    held = library_elements(receiver)
    if held is None:
        return UNKNOWN
    given = args.get(1 if method == "insert" else 0)
    if method in {"append", "insert", "extend"} and given is not None:
        known = rounds.elements(given) if method == "extend" else [given]
        for value in known if known is not None else [element_of(given, frame.level)]:
            at_end = method != "insert" and known is not None
            attributes.added(interp, frame, held, attributes.untagged(value), at_end=at_end)
    else:
        touch(held)
        held.exact = False
        held.sure.clear()
    return element_of(held, frame.level) if method == "pop" else UNKNOWN


def _draw(interp: Interpreter, frame: Frame, rngs: Obj, method: str, node: ast.AST, text: str) -> Value:
    if method in {"items", "keys", "values", "get"}:
        return UNKNOWN
    attributes.mutate(interp, frame, rngs, text, f"`.{method}(...)`", "draw", node, "RngCount")
    if method in {"fork", "split", "broadcast"}:
        return Obj(rngs.cls, frame.level)
    return UNKNOWN if method.endswith(("_normal", "_uniform")) or method in {"orthogonal"} else Array(frame.level)


# -- functions
# -----------------------------------------------------------------------------------------------------------------


def call_library(interp: Interpreter, frame: Frame, callee: Ext, args: Arguments, node: ast.AST, name: str) -> Value:
    """Call a library function by its canonical name."""
    canonical = callee.name
    handler = interp.library.get(canonical) or HANDLERS.get(canonical)
    if handler is not None:
        return handler(interp, frame, args, node, name)
    row = transforms.find(canonical)
    if row is not None:
        return _transform(interp, frame, row, canonical, args, node, name)
    if canonical in modes.MESHES:
        return modes.mesh(args.get(modes.MESHES[canonical], "axis_names")) or UNKNOWN
    if canonical in modes.MESH_SETTERS or canonical in modes.MESH_CHANGERS:
        interp.modes = modes.with_mesh(interp.modes, args.get(0) if canonical in modes.MESH_SETTERS else None)
        return UNKNOWN
    if canonical in modes.SETTERS:
        interp.modes = modes.changed(interp.modes, canonical, args.get(0))
        return UNKNOWN
    if canonical in api.INPLACE_FUNCTIONS:
        target = args.get(0)
        where = args.node_of(0)
        if target is not None and where is not None:
            attributes.mutate(interp, frame, target, text_of(where), f"`{name}(...)`", "write", node)
        return UNKNOWN
    if canonical in api.FILTER_CLASSES or canonical in api.FILTER_MAPPINGS:
        return FilterVal(canonical, args, frame.module, node)
    if canonical.partition(".")[0] not in LIBRARIES | {"nnx"}:
        interp.modes = interp.modes._replace(mesh=None)  # who knows what it sets
        give_away((*args.positional, *args.keywords.values()))
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
    options = {key: value for key, value in args.keywords.items() if key != argument.keyword}
    configured = modes.of_transform(canonical, args.keywords, interp.modes)
    applied = TransformVal(row, name, options, node, frame, configured)
    if func is None:
        return applied if not args.positional else UNKNOWN
    where = args.node_of(argument.position, argument.keyword) or node
    transformed = apply_transform(interp, frame, applied, func, where, node, "call")
    rest = args.positional[argument.position + 1 :] if row.binds else []
    if not rest:
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
    func = args.get(0)
    if func is None or None in args.positional:
        return UNKNOWN
    rest = [value for value in args.positional[1:] if value is not None]
    return PartialVal(func, rest, args.keywords)


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
    level = level_of(of, frame.level)
    return Seq("tuple", [GraphDefVal(of), *(StateVal(of, level, wanted) for wanted in filters)], frame.level)


def _state(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    return shared_out(args.get(0) or UNKNOWN, args.positional[1:], frame)


def shared_out(of: Value, filters: Sequence[Value | None], frame: Frame) -> Value:
    """One State, or a tuple of as many States as there are filters."""
    if None in filters:
        return UNKNOWN
    level = level_of(of, frame.level)
    states: list[Value] = [StateVal(of, level, wanted) for wanted in filters or [None]]
    return states[0] if len(states) == 1 else Seq("tuple", states, frame.level)


def _diff_state(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    return FilterVal("nnx.DiffState", args, frame.module, node)


class ShardedInit(Value):
    """An initializer that gives its Variable a sharding."""

    __slots__ = ("sharding",)
    kind = Const.kind

    def __init__(self, sharding: Value) -> None:
        self.sharding = sharding


def _with_partitioning(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    sharding = args.get(1, "sharding")
    own = sharding is None or not args.keywords.keys() <= {"initializer", "sharding"}
    return UNKNOWN if sharding is None or own else ShardedInit(sharding)


def _prefix(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    return FilterVal("nnx.prefix", args, frame.module, node)


def _written_state(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    given = args.get(0)
    return StateVal(given, frame.level) if isinstance(given, DictVal) else UNKNOWN


def _states(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """Functions that share out a State; what else they are given is not known to be one."""
    return _state(interp, frame, args, node, name) if isinstance(args.get(0), StateVal) else UNKNOWN


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
            item.origin = (frame.module, node)
            item.leaf_level, item.leaf_params = _merged_level(frame, args)
    return merged


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
        attributes.set_training(shown, None)
    return shown


def _noting(mark: str) -> Handler:
    """What notes something of the class that it is called with, and returns the class."""

    def note(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
        cls = args.get(0)
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
    **trees.HANDLERS,
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
    "jax.tree_util.Partial": _partial,
    "nnx.split": _split,
    "nnx.state": _state,
    "nnx.variables": _state,
    "nnx.pop": _pop,
    "nnx.split_context": _split_context,
    "nnx.split_state": _states,
    "nnx.filter_state": _states,
    "nnx.merge": _merge,
    "nnx.clone": _same,
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
