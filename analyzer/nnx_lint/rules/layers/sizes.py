"""Layers: the numbers that they are made with, and the arrays that they are called with (NNX809-NNX811)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from nnx_lint.model import forms
from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.classes import LibClass, UserClass
from nnx_lint.model.containers import Seq
from nnx_lint.model.elements import library_elements
from nnx_lint.model.events import Called
from nnx_lint.model.values import UNKNOWN, Array, Const, Obj, Value, options
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_rules import layers
from nnx_rules.rules import modules as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.diagnostics import Related
    from nnx_lint.model.forms import Step
    from nnx_lint.model.frames import Frame

MAX_DEPTH = 4
"""How deep the parts of a module are looked into."""

# -- made --------------------------------------------------------------------------------------------------------------


@judges_calls(rules.LAYER_ARGUMENTS, *layers.CHECKED)
def layer_arguments(event: Called, report: Reporter) -> None:
    obj = event.result
    problem = _problem(obj) if isinstance(obj, Obj) else None
    if problem is not None and isinstance(obj, Obj):
        report(event.frame.module, event.node, cls=obj.cls.name, **problem._asdict())


@judges_calls(rules.LAYER_ARGUMENTS, "class")
def layer_arguments_of_instance(event: Called, report: Reporter) -> None:
    """Layers whose arguments are parameters of the constructor that makes them."""
    owner = event.result
    if not isinstance(owner, Obj) or not isinstance(owner.cls, UserClass) or owner.args is None:
        return
    usual = {layer.origin: _problem(layer) for layer in _layers(owner.cls.model)} if owner.cls.model else {}
    for layer in _layers(owner):
        problem = _problem(layer)
        if problem is not None and layer.origin is not None and problem != usual.get(layer.origin):
            made = (related(event.frame.module, event.node, f"this `{owner.cls.name}` gives the sizes"),)
            report(*layer.origin, related=made, cls=layer.cls.name, **problem._asdict())


def _layers(owner: Obj, depth: int = MAX_DEPTH) -> Iterator[Obj]:
    """The layers of the library that a module holds for certain, those of its parts too."""
    for name in attribute_names(owner):
        attr = attribute_of(owner, name)
        if attr is None or not attr.assignments or attr.assignments[-1].branches:
            continue
        forms.bind(attr.value, owner)
        for held in _held(attr.value):
            if isinstance(held.cls, LibClass):
                yield held
            elif depth:
                yield from _layers(held, depth - 1)


def _held(value: Value) -> Iterator[Obj]:
    """An object, or those in a container."""
    for option in options(value) if len(options(value)) == 1 else ():
        items = option.items if isinstance(option, Seq) else None
        if isinstance(option, Obj) and option.cls.derives_from("nnx.Sequential"):
            held = attribute_of(option, "layers")
            items = [held.value] if held is not None else None
        elif isinstance(option, Obj) and option.cls.derives_from("nnx.List"):
            items = [library_elements(option) or UNKNOWN]
        for item in items or ():
            yield from _held(item)
        if items is None and isinstance(option, Obj):
            yield option


def _problem(layer: Obj) -> layers.Problem | None:
    """What is wrong with the arguments of a layer."""
    name = layer.cls.canonical if isinstance(layer.cls, LibClass) else ""
    arguments = forms.sizes(layer) if name in layers.CHECKED else None
    return layers.problem(name, arguments) if arguments is not None else None


@judges_calls(rules.LAYER_INPUT_SHAPE, "nnx.Sequential", "nnx.LoRA")
def layers_of_layer(event: Called, report: Reporter) -> None:
    """Layers of which one gets what the other gives, or the same as the other."""
    obj = event.result
    step = forms.called(obj, forms.NOTHING)[1] if isinstance(obj, Obj) else None
    if step is not None and isinstance(obj, Obj) and not step.mismatch.dtype:
        node = event.nodes[step.place] if 0 < step.place < len(event.nodes) else event.node
        _report(event.frame, node, f"{obj.cls.name}{step.path}", step, report, ())


# -- called ------------------------------------------------------------------------------------------------------------


@judges_calls(rules.LAYER_INPUT_SHAPE, "()")
@judges_calls(rules.LAYER_INPUT_DTYPE, "()")
def layer_input(event: Called, report: Reporter) -> None:
    layer, given = event.callee, event.args[0] if event.args else None
    if not isinstance(layer, Obj) or not isinstance(given, Array) or given.form is None:
        return
    step = forms.called(layer, given.form)[1]
    if step is not None and step.path and forms.called(layer, forms.NOTHING)[1] is not None:
        return  # its layers do not fit each other: that is said where it is made
    if step is None or step.mismatch.dtype is not (report.rule is rules.LAYER_INPUT_DTYPE):
        return
    made: tuple[Related, ...] = ()
    if given.maker is not None:
        name, module, node = given.maker
        made = (related(module, node, f"`{name}` gives {layers.shown(given.form.shape or ())}"),)
    _report(event.frame, event.node, f"{_place(event)}{step.path}", step, report, made)


def _place(event: Called) -> str:
    """What a layer is called: the class that has it as an attribute, and the attribute."""
    func = event.node.func if isinstance(event.node, ast.Call) else None
    receiver = event.frame.receiver
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and isinstance(receiver, Obj):
        found = event.frame.env.lookup(func.value.id)
        if found is not None and found[1] is receiver:
            return f"{receiver.cls.name}.{func.attr}"
    return event.callee.cls.name if isinstance(event.callee, Obj) else event.name


def _report(frame: Frame, node: ast.AST, layer: str, step: Step, report: Reporter, made: tuple[Related, ...]) -> None:
    origin = step.obj.origin
    places = made
    if origin is not None:
        places = (*made, related(*origin, f"this {step.obj.cls.name} is made here"))
    given = str(step.given.dtype) if step.mismatch.dtype else layers.shown(step.given.shape or ())
    report(
        frame.module,
        node,
        related=places,
        layer=layer,
        argument=step.mismatch.argument,
        expected=step.mismatch.expected,
        given=given,
    )


# -- decoding ----------------------------------------------------------------------------------------------------------


@judges_calls(rules.LAYER_ARGUMENTS, "()")
def cache_not_made(event: Called, report: Reporter) -> None:
    layer = event.callee
    if not isinstance(layer, Obj) or getattr(layer.cls, "canonical", None) != "nnx.MultiHeadAttention":
        return
    decode = event.keywords.get("decode", (layer.args or {}).get("decode"))
    if not (isinstance(decode, Const) and decode.value is True) or "**" in event.keywords:
        return
    if layer.template is not None or layer.assumed or attribute_of(layer, "cached_key") is not None:
        return
    if "init_cache" in event.frame.module.source.text:
        return  # who knows in which order
    slots: dict[str, Any] = {"problem": "it decodes, and has no cache", "mend": "call `init_cache(input_shape)` first"}
    report(event.frame.module, event.node, cls="MultiHeadAttention", **slots)
