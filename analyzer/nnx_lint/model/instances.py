"""Instances of library classes: what their attributes are, and what a call of one, or of a method of it, does."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import (
    attributes,
    configs,
    entries,
    events,
    foreign,
    forms,
    items,
    operations,
    python,
    recurrent,
    rounds,
    taken,
    trees,
)
from nnx_lint.model.applying import AppliedVal
from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.classes import LibClass, UserClass, library_class
from nnx_lint.model.containers import DictVal, ReturnedDict, Seq
from nnx_lint.model.elements import element_of, sown_by
from nnx_lint.model.expressions import text_of
from nnx_lint.model.heap import touch
from nnx_lint.model.library import shared_out
from nnx_lint.model.members import inherit
from nnx_lint.model.states import GraphDefVal, SownVal, StateVal
from nnx_lint.model.strings import formatted
from nnx_lint.model.switching import set_training
from nnx_lint.model.unions import join, present
from nnx_lint.model.values import (
    NONE,
    NUMBER,
    SOME_VARIABLE,
    STRING,
    UNKNOWN,
    Array,
    Attr,
    ClassVal,
    Computed,
    Const,
    MemberVal,
    Obj,
    Value,
    VariableVal,
)
from nnx_rules import api, layers
from nnx_rules.modes import MODE_ATTRIBUTES
from nnx_rules.names import MAPPING_METHODS
from nnx_rules.shapes import Form
from nnx_rules.versions import MODULE_METHODS

if TYPE_CHECKING:
    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter


def library_member(obj: Obj, name: str) -> Value:
    """An attribute of an instance of a library class (or of a project class below one) that has not been assigned.

    On a project class it may be an attribute that is set from outside, unless it is known to be a method.
    """
    if obj.cls in configs.CLASSES:
        return configs.member(obj, name)
    if isinstance(obj.cls, UserClass) and name in sown_by(obj.cls):
        return SownVal(name)
    specs = [item.spec for item in obj.cls.ancestors if isinstance(item, LibClass) and item.spec is not None]
    held = [member.holds for spec in specs for member in spec.members or () if member.path == (name,)]
    if held:  # the options that decide whether it is there are not known
        return MemberVal() if all(_is_variable(item) for item in held) else UNKNOWN
    size = kept_size(obj, name)
    if size is not None:
        return size
    known = isinstance(obj.cls, LibClass) or name in {"__call__", "__setattr__"} or effect_of(obj, name) is not None
    known = known or (name in MODULE_METHODS and obj.cls.derives_from("nnx.Module"))
    return BoundMethod(obj, name) if known or obj.cls.library in OPEN_FACES else UNKNOWN


KEPT_SIZES = frozenset(
    {
        *("features", "in_features", "out_features", "qkv_features", "hidden_features"),
        *("num_embeddings", "num_features", "num_groups", "num_heads"),
    }
)
"""Arguments of layers that are one number, and that the layer keeps under their own name."""


def kept_size(obj: Obj, name: str) -> Value | None:
    """What a layer of the library keeps of its arguments: ``cell.hidden_features``, ``embed.features``."""
    if name not in KEPT_SIZES or not isinstance(obj.cls, LibClass) or obj.cls.canonical == "nnx.LinearGeneral":
        return None
    given = (obj.args or {}).get(name)
    value = forms.resolved(obj, given) if given is not None else None
    if isinstance(value, Const):
        return Computed(value.value) if forms.is_int(value.value) else None
    return value if value is not None and value.symbol is not None else NUMBER


def _is_variable(canonical: str) -> bool:
    cls = library_class(canonical)
    return cls is not None and cls.is_variable


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
        if given is None and name in MODE_ATTRIBUTES:
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
    own = given is None or (isinstance(given, Const) and given.value is None)
    if not own and effect is api.Effect.DRAWS:
        if isinstance(given, Obj) and certainly_stateful(obj, args):  # it draws from these instead of from its own
            attributes.mutate(interp, frame, given, _keyword_text(node, "rngs"), "calling it", "draw", node, "RngCount")
    elif effect is not None and certainly_stateful(obj, args):
        attributes.mutate(interp, frame, obj, name, "calling it", "call", node, STATE_OF.get(library.name, "state"))
    elif library.spec is not None and library.spec.rewrites and _params_level(obj) < frame.level:
        attributes.mutate(interp, frame, obj, name, "calling it", "call", node, "Param")
    if obj.cls.is_variable:
        return UNKNOWN
    last = _call_in_turn(interp, frame, obj, args, node, name) if library.canonical == "nnx.Sequential" else UNKNOWN
    pair = recurrent.result(obj, args, frame.level)
    if pair is not None:
        return pair
    plain = not args.starred and args.keywords.keys().isdisjoint({"return_carry", "**"})
    form = forms.result(obj, taken.note(frame, obj, args, name)) if plain else None
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
    followed = True  # by what is known of the layers alone
    for position, item in enumerate(held.items if held is not None else ()):
        layer, passed = present(item), result
        result = invoke(interp, frame, item, args, node, name)
        if not isinstance(layer, Obj) or layer.cls.works_as is None:
            followed = followed and operations.keeps_shape(layer)
        elif not followed and isinstance(passed, Array) and passed.form is not None:
            interp.publish(events.Passed(frame, node, layer, passed, position))
            made = forms.called(layer, forms.NOTHING)[0]
            followed = made is not None and made.shape is not None
        if isinstance(result, DictVal):
            args = Arguments(args.node, [], {"**": UNKNOWN}, [])
        else:
            given: list[Value | None] = [result]
            if isinstance(result, Seq) and result.type == "tuple" and result.exact:
                given = [*result.items]
            args = Arguments(args.node, given, {}, [])
    return result if held is not None and held.exact else UNKNOWN


def _params_level(obj: Obj) -> int:
    """The trace level of the Params of a layer."""
    return obj.leaf_level if obj.leaf_level is not None and obj.leaf_params else obj.level


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
    | {"InstanceNorm", "Dropout", "MultiHeadAttention", "PReLU", "LoRA", "LoRALinear"}
)


def call_library_method(
    interp: Interpreter, frame: Frame, method: BoundMethod, args: Arguments, node: ast.AST, name: str
) -> Value:
    """Call a method that a library class defines."""
    receiver = method.receiver
    if isinstance(receiver, ClassVal):
        if method.name != "create" or not receiver.cls.derives_from("nnx.TrainState"):
            return UNKNOWN
        state = interp.instance(receiver.cls, frame.level)
        graphdef = args.get(0, "graphdef")
        given = {"graphdef": graphdef, **args.keywords} if not args.starred else {}
        if isinstance(state, Obj):
            state.attrs.update((key, Attr(value)) for key, value in given.items() if value is not None)
        return state
    if isinstance(receiver, StateVal) and method.name in {"split", "filter"}:
        return shared_out(receiver, args.positional, frame)
    if isinstance(receiver, Const) and isinstance(receiver.value, str):
        if method.name == "format":
            return formatted(receiver.value)
        return STRING if method.name in {"join", "lower", "upper", "strip"} else UNKNOWN
    if isinstance(receiver, StateVal) and method.name == "flat_state":
        return trees.flattened(receiver, frame, node)
    if isinstance(receiver, StateVal) and method.name == "map":
        return trees.map_state(interp, frame, args.get(0) or UNKNOWN, receiver, node, name)
    if isinstance(receiver, GraphDefVal) and method.name == "apply":
        return AppliedVal(receiver.of)
    if isinstance(receiver, SownVal):
        return receiver
    if isinstance(receiver, VariableVal):
        return SOME_VARIABLE
    if not isinstance(receiver, Obj):
        return foreign.result_of(method, args, frame.level) or UNKNOWN
    if method.name == "__call__":
        return call_library_object(interp, frame, receiver, args, node, name)
    if method.name == "__new__":
        return receiver
    if method.name == "__setattr__":
        return python.set_by_name(interp, frame, receiver, name.rpartition(".")[0] or name, args, node)
    if method.name == "__init__":
        inherit(frame, receiver, args)
        return NONE
    if receiver.cls in configs.CLASSES:
        return configs.call_method(frame, receiver, method.name, args, node)
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
        return _draw(interp, frame, receiver, method.name, args, node, text)
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
    if receiver.cls.derives_from("nnx.Dict") and method.name in MAPPING_METHODS:
        return _dict_method(interp, frame, receiver, method.name, args, node, text)
    if (source := drawn_from(receiver, method.name, args)) is not None:
        where = args.node_of(args.positional.index(source) if source in args.positional else -1, "rngs")
        attributes.mutate(interp, frame, source, text_of(where or node), f"`{name}(...)`", "draw", node, "RngCount")
    effect = effect_of(receiver, method.name)
    if effect is api.Effect.SETS_ATTRIBUTES:
        set_training(receiver, _mode_after(method.name, args))
        if not _has_modes(receiver):
            return UNKNOWN
    if method.name == "update" and receiver.cls.derives_from("nnx.Optimizer"):
        model, where = args.get(0, "model"), args.node_of(0, "model")
        if isinstance(model, Obj) and where is not None and not receiver.cls.derives_from("nnx.ModelAndOptimizer"):
            attributes.mutate(interp, frame, model, text_of(where), f"`{name}(...)`", "write", node)
    if method.name == "compute":
        return _computed(receiver, frame.level)
    if method.name == "initialize_carry":
        return recurrent.carry_of(receiver, args.get(0, "input_shape"), frame.level)
    if method.name in layers.METHODS and (form := forms.of_method(receiver, method.name, args.get(0))) is not None:
        result = Array(frame.level, form)
        result.maker = (name, frame.module, node)
        return result
    if effect is not None and method.name == "perturb":
        return Array(frame.level)  # only the first call changes the module
    if effect is not None:
        kind = "write" if effect is api.Effect.SETS_ATTRIBUTES or method.name == "sow" else "call"
        attributes.mutate(interp, frame, receiver, text, f"`.{method.name}(...)`", kind, node, STATE_NAMES[effect])
    return UNKNOWN


def _computed(metric: Value, level: int) -> Value:
    """What a metric of the library computes: a number, or a dict of what several compute."""
    if not isinstance(metric, Obj) or not metric.cls.derives_from("nnx.metrics.MultiMetric"):
        own = metric.cls if isinstance(metric, Obj) and isinstance(metric.cls, LibClass) else None
        return Array(level, Form(())) if own is not None and own.derives_from("nnx.metrics.Average") else UNKNOWN
    held = metric.args if isinstance(metric.cls, LibClass) else None
    known = held if held is not None and "**" not in held else {}
    return ReturnedDict(level, {key: _computed(value, level) for key, value in known.items()})


def _mode_after(method: str, args: Arguments) -> bool | None:
    """The mode that ``train()`` or ``eval()`` leaves layers in; other ways to set attributes may not reach them all."""
    return None if args.positional or method == "set_attributes" else method == "train"


def switches_mode(obj: Obj) -> bool:
    """Whether ``train()`` and ``eval()`` of an object are those of the library, and certainly change it."""
    return effect_of(obj, "eval") is api.Effect.SETS_ATTRIBUTES and _has_modes(obj)


def _has_modes(obj: Obj, depth: int = 6) -> bool:
    """Whether a module certainly has, or holds a layer that has, an attribute that ``train()`` and ``eval()`` set."""
    spec = obj.cls.library.spec if obj.cls.library is not None else None
    if spec is not None and not MODE_ATTRIBUTES.isdisjoint(name for name, _ in spec.pure_when):
        return True
    for name in attributes.attribute_names(obj):
        attr = attributes.attribute_of(obj, name)
        members = [attr.value] if attr is not None else []
        if attr is not None and isinstance(attr.value, Seq):
            members = attr.value.items
        if name in MODE_ATTRIBUTES or (
            depth and any(isinstance(item, Obj) and _has_modes(item, depth - 1) for item in members)
        ):
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
            items.added(interp, frame, held, attributes.untagged(value), at_end=at_end)
    else:
        touch(held)
        held.exact = False
        held.sure.clear()
    return element_of(held, frame.level) if method == "pop" else UNKNOWN


def _dict_method(
    interp: Interpreter, frame: Frame, receiver: Obj, method: str, args: Arguments, node: ast.AST, text: str
) -> Value:
    from nnx_lint.model.calls import container_method

    key, given = args.get(0), args.get(1)
    if method == "get":
        return join(entries.at(receiver, key), given or NONE)
    if method in {"items", "keys", "values"}:
        return container_method(interp, frame, entries.known(receiver), method, args, node, text)
    attributes.mutate(interp, frame, receiver, text, f"`.{method}(...)`", "write", node)
    if method == "setdefault" and key is not None and given is not None:
        entries.put(frame, receiver, key, given, node)
        return entries.at(receiver, key)
    before = entries.at(receiver, key) if method == "pop" else UNKNOWN
    added = key.items if method == "update" and isinstance(key, DictVal) else [(STRING, UNKNOWN)]
    for name, value in added:
        entries.put(frame, receiver, name, value, node)
    return before if given is None else UNKNOWN


def _is_stream(rngs: Obj, method: str, node: ast.AST) -> bool:
    """Whether a stream has the name of a method, and hides it; ``split`` without a number can be nothing else."""
    bare = method == "split" and isinstance(node, ast.Call) and not node.args and not node.keywords
    return bare or method in (rngs.args or {})


def _draw(
    interp: Interpreter, frame: Frame, rngs: Obj, method: str, args: Arguments, node: ast.AST, text: str
) -> Value:
    if method in {"items", "keys", "values", "get"}:
        return UNKNOWN
    attributes.mutate(interp, frame, rngs, text, f"`.{method}(...)`", "draw", node, "RngCount")
    if method in {"fork", "split", "broadcast"} and not _is_stream(rngs, method, node):
        streams, splits = Obj(rngs.cls, frame.level), args.get(0, "split")
        streams.extent = splits.value if isinstance(splits, Const) and type(splits.value) is int else None
        return streams
    return UNKNOWN if method.endswith(("_normal", "_uniform")) or method in {"orthogonal"} else Array(frame.level)
