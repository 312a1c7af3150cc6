"""Layers that have to be prepared before they are called (NNX809): attention that decodes and has no cache, modules of
Linen that nobody has initialized, cells that nothing runs over a sequence. And attention whose cache each forward pass
makes anew, so that it decodes every position without those before.

Invariants: the running code was reached from where the model was made, and nothing in any of the files that it passed
names what prepares such a layer. A forward pass that prepares the layer does it in every call that decodes: what else
it asks for, such as the first position, may come true once.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model import forms
from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.classes import LibClass, UserClass
from nnx_lint.model.events import Called
from nnx_lint.model.leaves import same_object
from nnx_lint.model.unions import present
from nnx_lint.model.values import Const, Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.modes.layers import is_seen_made
from nnx_lint.rules.program import FUNCTIONS, ancestors, calls_in, in_test, is_tried, keyword_node
from nnx_lint.rules.traces.captures import holds
from nnx_lint.syntax.binding import names_in
from nnx_lint.syntax.places import begin, end
from nnx_rules.rules import modules as rules
from nnx_rules.shape_algebra import is_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module


class Preparation(NamedTuple):
    """What is wrong with a layer that is not prepared, what to do, and what names the doing."""

    problem: str
    mend: str
    named: re.Pattern[str]


SET_ANEW = r"\b(?:set_attributes|with_attributes|view)\([^)]*(?:\*\*|decode\s*=(?!\s*True\b))"
SWITCHED = re.compile(rf"(?m)^(?!\s*def\b).*decode\s*=\s*False|{SET_ANEW}")
"""How a program says that attention is not to decode any longer; the default of a parameter says nothing."""

CACHED = r"init_cache|cached_key"
UNCACHED = re.compile(rf"{SET_ANEW}|{CACHED}")
"""The same for attention that a call has switched to decoding, whatever it was made for."""

BRIDGE = "nnx.bridge.ToNNX"

PREPARATIONS = {
    "nnx.MultiHeadAttention": Preparation(
        "it decodes, and has no cache",
        "call `init_cache(input_shape)` first",
        re.compile(rf"{SWITCHED.pattern}|{CACHED}"),
    ),
    BRIDGE: Preparation(
        "the Linen module in it has no parameters yet",
        "call `lazy_init(...)` with an example input after making it",
        re.compile(r"lazy_init|\.init\b|nnx\.update\(|(?<!\.)\bupdate\("),
    ),
}


class Decoding(list[Obj]):
    """The objects whose attention has been switched to decoding."""


@judges_calls(rules.LAYER_ARGUMENTS, ".set_attributes")
def note_decoding(event: Called, report: Reporter) -> None:
    decode, callee = event.keywords.get("decode"), event.callee
    receiver = present(callee.receiver) if isinstance(callee, BoundMethod) else None
    if isinstance(decode, Const) and decode.value is True and isinstance(receiver, Obj) and not event.frame.doubtful:
        report.memory(Decoding).append(receiver)


@judges_calls(rules.LAYER_ARGUMENTS, "()")
def not_prepared(event: Called, report: Reporter) -> None:
    layer, frame = event.callee, event.frame
    library = layer.cls.works_as if isinstance(layer, Obj) else None
    needed = PREPARATIONS.get(library.canonical) if library is not None else None
    if needed is None or not isinstance(layer, Obj) or layer.assumed or frame.doubtful or "**" in event.keywords:
        return
    named = needed.named
    if layer.cls.derives_from("nnx.MultiHeadAttention"):
        decode = event.keywords.get("decode", (layer.args or {}).get("decode"))
        if "decode" not in event.keywords and any(_is_in(obj, layer, frame) for obj in report.memory(Decoding)):
            decode, named = Const(True), UNCACHED
        cache = attribute_of(layer, "cached_key")
        if not (isinstance(decode, Const) and decode.value is True):
            return
        shape = forms.literal(event.args[0]).shape if event.args else None
        length = shape[-2] if shape is not None and len(shape) > 1 and is_whole(shape) else None
        if isinstance(length, int) and length != 1 and not is_tried(frame.module, event.node):
            problem = f"it decodes one position in each call, and gets {length}"
            mend = "give it one after the other, or make it with `decode=False` for all of a sequence"
            if not any(module.mentions(SWITCHED) for module in _modules(event, layer)):
                report(frame.module, event.node, cls=layer.cls.name, problem=problem, mend=mend)
                return
        if cache is not None and cache.assignments:
            return
    if not is_seen_made(frame) or is_tried(frame.module, event.node):
        return
    asked = any(same_object(each, layer) for each in report.memory(Asked))
    if not asked and not any(module.mentions(named) for module in _modules(event, layer)):
        report(frame.module, event.node, cls=layer.cls.name, problem=needed.problem, mend=needed.mend)


class Asked(list[Obj]):
    """The bridges that were asked for parameters before they had any, of which it has been said."""


@judges_calls(rules.LAYER_ARGUMENTS, "nnx.Optimizer", "nnx.split", "nnx.state")
def asked_unprepared(event: Called, report: Reporter) -> None:
    """A bridge that nobody has initialized, alone or in a module, is asked for parameters, which it has none of yet."""
    model, frame = event.args[0] if event.args else None, event.frame
    if not isinstance(model, Obj) or model.assumed or frame.doubtful or not is_seen_made(frame):
        return
    parts = (attribute_of(model, name) for name in attribute_names(model))
    for part in (model, *(attr.value for attr in parts if attr is not None)):
        if isinstance(part, Obj) and part.cls.derives_from(BRIDGE) and not is_tried(frame.module, event.node):
            needed = PREPARATIONS[BRIDGE]
            if not any(module.mentions(needed.named) for module in _modules(event, part)):
                report(frame.module, event.node, cls=part.cls.name, problem=needed.problem, mend=needed.mend)
                report.memory(Asked).append(part)
            return


@judges_calls(rules.LAYER_ARGUMENTS, ".init_cache")
def prepared_in_each_call(event: Called, report: Reporter) -> None:
    """A forward pass that makes the cache of attention which it decodes with."""
    frame, call, callee = event.frame, event.node, event.callee
    receiver = present(callee.receiver) if isinstance(callee, BoundMethod) else None
    if not isinstance(receiver, Obj) or not isinstance(call, ast.Call) or in_test(frame):
        return
    flags = set[str]()
    for outer in ancestors(frame.module, call):
        if isinstance(outer, FUNCTIONS):
            forward = isinstance(outer, ast.FunctionDef) and outer.name == "__call__" and frame.receiver is not None
            if forward and (flags or any(_decodes(each) for each in calls_in(outer) if begin(each) > end(call))):
                problem = "its cache is made anew in each call: it decodes each position without those before"
                mend = "call `init_cache(input_shape)` once, before the first position, with the length of all of them"
                report(frame.module, call, cls=receiver.cls.name, problem=problem, mend=mend)
            return
        if isinstance(outer, ast.If):
            if isinstance(outer.test, ast.Name) and DECODES.search(outer.test.id):
                flags.add(outer.test.id)
            elif not (isinstance(outer.test, ast.Call) and "hasattr" in names_in(outer.test.func)):
                return


DECODES = re.compile(r"decod|autoregress")
"""What a flag is called that is set in each call for another position."""


def _decodes(call: ast.Call) -> bool:
    """Whether a call asks a layer to decode."""
    told = keyword_node(call, "decode")
    return told is not None and not (isinstance(told, ast.Constant) and told.value is not True)


def _is_in(obj: Obj, layer: Obj, frame: Frame) -> bool:
    """Whether a layer is an object or a part of it, or a method of the object calls it."""
    if same_object(obj, layer) or holds(obj, layer):
        return True
    return any(each.receiver is not None and same_object(obj, each.receiver) for each in frame.outwards())


def _modules(event: Called, layer: Obj) -> Iterator[Module]:
    """The files that the running code passed, and those that made the layer and the objects that it belongs to."""
    objects = [layer, event.owner]
    frame = event.frame
    while True:
        yield frame.module
        objects.append(frame.receiver)
        if frame.caller is None:
            break
        frame = frame.caller
    for obj in objects:
        if isinstance(obj, Obj):
            if obj.origin is not None:
                yield obj.origin[0]
            if isinstance(obj.cls, UserClass):
                yield obj.cls.module


@judges_calls(rules.LAYER_ARGUMENTS, "nnx.Bidirectional", "nnx.RNN")
def run_over_sequences(event: Called, report: Reporter) -> None:
    """A cell where a layer for sequences is taken, or a layer of the library where a cell is."""
    both = event.subject == "nnx.Bidirectional"
    for value, node in zip(event.args[: 2 if both else 1], event.nodes, strict=False):
        library = value.cls.works_as if isinstance(value, Obj) and isinstance(value.cls, LibClass) else None
        if library is None or is_tried(event.frame.module, event.node):
            continue
        cell = library.derives_from("nnx.RNNCellBase")
        if both is cell:
            problem = f"it runs {'layers for sequences' if both else 'a cell'}, and gets a {library.name}"
            mend = "put the cell into an `nnx.RNN` first" if both else "give it a cell, such as `nnx.GRUCell(...)`"
            report(event.frame.module, node, cls=event.subject, problem=problem, mend=mend)
