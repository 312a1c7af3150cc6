"""Layers: the numbers that they are made with, and the arrays that they are called with (NNX809-NNX811)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import forms
from nnx_lint.model.arithmetic import is_fraction
from nnx_lint.model.attributes import attribute_names, attribute_of, original_of
from nnx_lint.model.callables import BoundMethod, Transformed, TransformVal
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.elements import library_elements
from nnx_lint.model.events import Passed
from nnx_lint.model.expressions import text_of
from nnx_lint.model.forms import Step
from nnx_lint.model.recurrent import IN_TWO, Pair
from nnx_lint.model.symbols import OWN
from nnx_lint.model.tracing import handed_on
from nnx_lint.model.unions import options, present
from nnx_lint.model.values import UNKNOWN, Array, ClassVal, Const, HostArray, Obj, TakenArray, Unknown, Value
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.bindings import target_of
from nnx_lint.rules.construction.signatures import misplaced_mask
from nnx_lint.rules.edits import replace, unsafe
from nnx_lint.rules.layers.named import mean_two_numbers
from nnx_lint.rules.layers.operands import is_prepared
from nnx_lint.rules.layers.origins import origins_of
from nnx_lint.rules.layers.pairs import Swapped, swapped
from nnx_lint.rules.program import FUNCTIONS, enclosing, is_tried, keyword_node
from nnx_lint.rules.program import given as given_to
from nnx_lint.syntax.binding import names_in, occurrences
from nnx_rules import layers
from nnx_rules.rules import modules as rules
from nnx_rules.shape_algebra import ANY, is_whole
from nnx_rules.shapes import Form
from nnx_rules.transforms import HANDING_ON

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nnx_lint.diagnostics import Related
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

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
    if not isinstance(owner, Obj) or not isinstance(owner.cls, UserClass) or not _has_sizes(owner):
        return
    model = owner.cls.model
    found = [(layer.origin, layer, problem) for layer in layers_of(owner) if (problem := _problem(layer)) is not None]
    usual = {layer.origin: _problem(layer) for layer in layers_of(model)} if found and model is not None else {}
    for origin, layer, problem in found:
        if origin is not None and problem != usual.get(origin):
            made = (related(event.frame.module, event.node, f"this `{owner.cls.name}` gives the sizes"),)
            report(*origin, related=made, cls=layer.cls.name, **problem._asdict())


def _has_sizes(owner: Obj) -> bool:
    """Whether what an instance was made with may say how large its layers are."""
    if owner.args is None:
        return False
    known = isinstance(owner.cls, UserClass) and owner.cls.model is not None
    return not known or any(map(_may_be_size, (forms.arguments_of(owner) or {}).values()))


def _may_be_size(value: Value) -> bool:
    """Whether an argument may say how large layers are: streams do not, nor does what is not known."""
    return not isinstance(value, Unknown) and not (isinstance(value, Obj) and value.cls.derives_from("nnx.Rngs"))


def layers_of(owner: Obj, depth: int = MAX_DEPTH) -> Iterator[Obj]:
    """The layers of the library that a module holds for certain, those of its parts too."""
    for name in attribute_names(owner):
        known = original_of(owner, name)
        if known is None or not isinstance(known.value, (Obj, Seq)) or not known.assignments:
            continue
        attr = attribute_of(owner, name) if not known.assignments[-1].branches else None
        if attr is None:
            continue
        forms.bind(attr.value, owner)
        for held in _held(attr.value):
            if held.cls.works_as is not None:
                yield held
            elif depth:
                yield from layers_of(held, depth - 1)


def _held(value: Value) -> Iterator[Obj]:
    """An object, and those in a container."""
    for option in options(value) if len(options(value)) == 1 else ():
        items = option.items if isinstance(option, Seq) else None
        if isinstance(option, Obj) and option.cls.derives_from("nnx.Sequential"):
            yield option
            held = attribute_of(option, "layers")
            items = [held.value] if held is not None else []
        elif isinstance(option, Obj) and option.cls.derives_from("nnx.List"):
            items = [library_elements(option) or UNKNOWN]
        for item in items or ():
            yield from _held(item)
        if items is None and isinstance(option, Obj):
            yield option


def _problem(layer: Obj) -> layers.Problem | None:
    """What is wrong with the arguments of a layer."""
    name = layer.cls.made_as.canonical if layer.cls.made_as is not None else ""
    arguments = forms.sizes(layer) if name in layers.CHECKED else None
    for item, value in (layer.args or {}).items() if arguments is not None else ():
        if is_fraction(value) and not isinstance(value, Const):
            arguments = {**(arguments or {}), item: layers.FRACTION}
    rate = (layer.args or {}).get(RATES.get(name, ""))
    given = forms.resolved(layer, rate) if rate is not None else None
    if isinstance(given, Array) and not isinstance(given, HostArray):
        return layers.Problem(f"`{RATES[name]}` is a JAX array, which has no value under `nnx.jit`", PLAIN_RATE)
    dtype = _integers(layer) if name in layers.DRAWN else None
    if dtype is not None:
        return layers.integer_parameters(dtype)
    return layers.no_size(name, arguments) or layers.problem(name, arguments) if arguments is not None else None


RATES = {"nnx.Dropout": "rate", "nnx.MultiHeadAttention": "dropout_rate"}
"""Layers that ask whether their rate is zero, with the name of that argument: an array of JAX is data of the layer."""

PLAIN_RATE = "make it a number of Python, `float(rate)`; `numpy.linspace` makes such numbers, `jnp.linspace` does not"


def _integers(layer: Obj) -> str | None:
    """The dtype of a layer's parameters, if they are to be integers; an initializer of its own may make these."""
    given = layer.args or {}
    dtype = forms.dtype_of(forms.resolved(layer, given["param_dtype"])) if "param_dtype" in given else None
    return dtype if dtype in layers.INTEGERS and not any(name.endswith("_init") for name in given) else None


COMPOSED = ("nnx.Sequential", "nnx.LoRA")
"""Layers that are made of others."""


@judges_calls(rules.LAYER_INPUT_SHAPE, *COMPOSED)
def layers_of_layer(event: Called, report: Reporter) -> None:
    """Layers of which one gets what the other gives, or the same as the other."""
    obj = event.result
    step = _misfit_within(obj) if isinstance(obj, Obj) else None
    if step is not None and isinstance(obj, Obj):
        node = event.nodes[step.place] if 0 < step.place < len(event.nodes) else event.node
        _report(event.frame.module, node, f"{obj.cls.name}{step.path}", step, report, ())


@judges_calls(rules.LAYER_INPUT_SHAPE, "class")
def layers_of_layer_of_instance(event: Called, report: Reporter) -> None:
    """The same where the sizes are parameters of the constructor that makes the layers."""
    owner = event.result
    if not isinstance(owner, Obj) or not isinstance(owner.cls, UserClass) or not _has_sizes(owner):
        return
    for layer in layers_of(owner):
        made = (related(event.frame.module, event.node, f"this `{owner.cls.name}` gives the sizes"),)
        _report_within(event.frame, layer, report, made)


@judges_calls(rules.LAYER_INPUT_SHAPE, "()")
def layers_of_own_layer(event: Called, report: Reporter) -> None:
    """The same whatever the constructor is given."""
    if isinstance(event.callee, Obj) and event.callee.binds is OWN:
        _report_within(event.frame, event.callee, report, ())


def _report_within(frame: Frame, layer: Obj, report: Reporter, made: tuple[Related, ...]) -> None:
    composed = layer.cls.works_as is not None and layer.cls.works_as.canonical in COMPOSED
    step = _misfit_within(layer) if composed else None
    if step is not None and layer.origin is not None and _is_certain(frame, layer.origin[1], step):
        module, node = layer.origin
        parts = node.args if isinstance(node, ast.Call) else []
        single = 0 < step.place < len(parts) and not any(isinstance(part, ast.Starred) for part in parts)
        _report(module, parts[step.place] if single else node, f"{layer.cls.name}{step.path}", step, report, made)


def _misfit_within(layer: Obj) -> Step | None:
    """How the layers that a layer is made of do not fit, whatever it is called with."""
    step = forms.called(layer, forms.NOTHING)[1]
    return step if step is not None and not step.mismatch.dtype else None


@judges_calls(rules.LAYER_ARGUMENTS, "nnx.Dropout")
def chance_to_keep(event: Called, report: Reporter) -> None:
    """``nnx.Dropout(keep_prob)``: other libraries ask how much is kept."""
    node = given_to(event).node_of(0, "rate")
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    if isinstance(node, ast.expr) and "keep" in name.lower().split("_") and not is_tried(event.frame.module, node):
        problem = f"it takes how much is dropped, and `{text_of(node)}` says how much is kept"
        report(event.frame.module, node, cls=event.name, problem=problem, mend=f"pass `1 - {text_of(node)}`")


@judges_calls(rules.LAYER_ARGUMENTS, "nnx.LoRA")
def results_of_lora(event: Called, report: Reporter) -> None:
    """What a layer and its low-rank part give is added, and so is of one size."""
    obj = event.result if isinstance(event.result, Obj) else None
    base, given = (obj.args or {}).get("base_module") if obj is not None else None, forms.sizes(obj) if obj else None
    takes, gives = ((given or {}).get(name) for name in ("in_features", "out_features"))
    form = forms.called(base, Form((ANY, takes)))[0] if isinstance(base, Obj) and isinstance(takes, int) else None
    last = form.shape[-1] if form is not None and form.shape else None
    if isinstance(last, int) and isinstance(gives, int) and 1 not in (last, gives) and last != gives:
        problem = f"out_features={gives}, and its base module gives {last}"
        mend = "the two results are added: give it the `out_features` of its base module"
        report(event.frame.module, event.node, cls="LoRA", problem=problem, mend=mend)


@judges_calls(rules.LAYER_ARGUMENTS, "nnx.avg_pool", "nnx.max_pool", "nnx.min_pool")
def window_of_pool(event: Called, report: Reporter) -> None:
    """A window of one number, where there has to be one for each axis."""
    args = given_to(event)
    for place, name in ((1, "window_shape"), (2, "strides"), (3, "padding")):
        value = args.get(place, name)
        if isinstance(value, Const) and forms.is_int(value.value):
            several = ", ".join([str(value.value)] * 2)
            pads = name == "padding"
            takes = "a word, or a pair of numbers for each axis" if pads else "one number for each axis"
            problem = f"`{name}` is the number {value.value}, and takes {takes}"
            mend = f"write `(({several}), ({several}))` for images" if pads else f"write `({several})` for images"
            report(event.frame.module, event.node, cls=event.name, problem=problem, mend=mend)
            return


PYTORCH = 0.2
"""The momentum up to which that of PyTorch is meant, where it is the share of the new batch."""


@judges_calls(rules.BATCH_NORM_MOMENTUM, "nnx.BatchNorm")
def batch_norm_momentum(event: Called, report: Reporter) -> None:
    value = event.keywords.get("momentum")
    momentum = value.value if isinstance(value, Const) else None
    if isinstance(momentum, float) and 0 < momentum <= PYTORCH:
        node, mend, source = keyword_node(event.node, "momentum"), round(1 - momentum, 6), event.frame.module.source
        fix = unsafe(f"Write `{mend}`", replace(source, node, str(mend))) if isinstance(node, ast.Constant) else None
        report(event.frame.module, event.node, fix=fix, momentum=momentum, mend=mend)


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
    certain = _is_certain(event.frame, event.node, step)
    if not certain or (isinstance(given, TakenArray) and is_prepared(event.frame, event.node)):
        return
    _report(event.frame.module, event.node, f"{place_of(event)}{step.path}", step, report, origins_of((given,)))


@judges_calls(rules.LAYER_INPUT_SHAPE, "transformed")
def layer_under_transforms(event: Called, report: Reporter) -> None:
    """``jax.vmap(layer)(x)``: a layer of the library gets what the transforms around it leave of an array."""
    layer, around = event.callee, list[TransformVal]()
    while isinstance(layer, Transformed) and layer.applied.row.name in HANDING_ON:
        around.append(layer.applied)
        layer = layer.func
    if not isinstance(layer, Obj) or layer.cls.works_as is None or not around or None in event.args:
        return
    given = (*handed_on(event.args, event.frame.level, around), None)[0]
    if not isinstance(given, Array) or given.form is None or isinstance(given, TakenArray):
        return
    step = forms.called(layer, given.form)[1]
    known = step is not None and not step.path and not step.mismatch.dtype
    if known and step is not None and _is_certain(event.frame, event.node, step):
        _report(event.frame.module, event.node, event.name, step, report, origins_of((given,)))


@judges(rules.LAYER_INPUT_SHAPE, Passed)
def element_input(event: Passed, report: Reporter) -> None:
    """A layer of an ``nnx.Sequential`` that comes after something of the project: ``Flatten()``, a ``lambda``."""
    step = forms.called(event.layer, event.given.form or forms.NOTHING)[1]
    if step is None or step.mismatch.dtype or isinstance(event.given, TakenArray):
        return
    if _is_certain(event.frame, event.node, step) and not is_prepared(event.frame, event.node):
        name = f"Sequential.layers[{event.position}]{step.path}"
        _report(event.frame.module, event.node, name, step, report, origins_of((event.given,)))


@judges_calls(rules.LAYER_INPUT_SHAPE, "()")
def cell_input(event: Called, report: Reporter) -> None:
    """A cell takes what it carries, and then an element of the sequence."""
    if isinstance(event.callee, Obj) and getattr(event.callee.cls, "canonical", "") in layers.CELLS:
        for value, table in zip(event.args, (layers.CARRIES, layers.CELLS), strict=False):
            if _misfit(event, event.callee, place_of(event), value, table, report):
                return


@judges_calls(rules.LAYER_INPUT_SHAPE, "()")
def carry_given(event: Called, report: Reporter) -> None:
    """A recurrent layer starts with what its cell carries."""
    layer = event.callee if isinstance(event.callee, Obj) else None
    held = attribute_of(layer, "cell") if layer is not None and layer.cls.derives_from("nnx.RNN") else None
    cell, carry = present(held.value) if held is not None else None, given_to(event).get(1, "initial_carry")
    if isinstance(cell, Obj):
        _misfit(event, cell, f"{place_of(event)}.cell", carry, layers.CARRIES, report)


@judges_calls(rules.LAYER_INPUT_SHAPE, "()")
def sources_of_attention(event: Called, report: Reporter) -> None:
    """Keys and values of attention; without any they are the queries."""
    layer, args = event.callee, given_to(event)
    if not isinstance(layer, Obj) or getattr(layer.cls, "canonical", "") != "nnx.MultiHeadAttention" or args.starred:
        return
    if misplaced_mask(event) is not None:
        return  # no keys at all, which another rule says
    keys, values = args.get(1, "inputs_k"), args.get(2, "inputs_v")
    if keys is None and "in_kv_features" in (layer.args or {}):
        keys = args.get(0, "inputs_q")
    for name, value in (("inputs_k", keys), ("inputs_v", values)):
        if _misfit(event, layer, place_of(event), value, layers.SOURCES[name], report):
            return


@judges_calls(rules.LAYER_ARGUMENTS, "()")
def pair_given(event: Called, report: Reporter) -> None:
    """A layer that gets what a cell carries and gives, or a cell that gets these the other way round."""
    layer = event.callee
    cls = layer.cls.called_as if isinstance(layer, Obj) else None
    name = cls.canonical if cls is not None else ""
    if not isinstance(layer, Obj) or not event.args:
        return
    if name in {*layers.CALLS, "nnx.RNN"} and isinstance(event.args[0], Pair):
        problem = f"`{place_of(event)}` gets a pair, what a cell carries and its output, and takes the output"
        mend = "take the pair apart: `carry, y = ...`"
    elif name in OF_ONE_ARRAY and is_pair(event.args[0]) and not is_swapped(event, report):
        problem = f"`{place_of(event)}` gets a tuple of two arrays, such as an LSTM carries, and takes one array"
        mend = "take the tuple apart: `c, h = carry`"
    elif name in layers.CALLS and event.args[0] is not None and isinstance(present(event.args[0]), DictVal):
        problem = f"`{place_of(event)}` gets a dict, and takes one array"
        mend = "hand on the entry that is meant, such as `batch['image']`"
    elif (name in IN_TWO and len(event.args) > 1 and _is_tuple(event.args[1])) or _carry_is_second(event, name):
        problem = f"`{place_of(event)}` gets the input first, and takes what it carries first"
        mend = "write `carry, y = cell(carry, x)`"
    elif _carries_two(layer, name) and _gets_one(event, name) and swapped(event) is None:
        problem = f"`{place_of(event)}` gets one array for what it carries, and carries a pair of arrays"
        mend = "make the first carry with `initialize_carry`, or give the two as `(c, h)`"
    elif _cell_of(layer, name) in IN_ONE and _gets_two(event, name):
        problem, mend = "its carry is one array, and it got 2 of them", "make the first carry with `initialize_carry`"
    else:
        return
    report(event.frame.module, event.node, cls=layer.cls.name, problem=problem, mend=mend)


def _is_tuple(value: Value | None) -> bool:
    return isinstance(value, Seq) and value.type == "tuple"


def _carry_is_second(event: Called, name: str) -> bool:
    """Whether a cell gets second what it gave first: ``carry, y = cell(x, carry)``; or what it gave second, if nobody
    wants what it gave first, and its first argument is an element of the sequence: ``_, h = cell(x[:, t], h)``.
    """
    target = target_of(event.frame.module, event.node)
    if name not in layers.CELLS or not isinstance(target, ast.Tuple) or len(target.elts) != 2 or len(event.nodes) != 2:
        return False
    (first, second), (inputs, carry) = map(text_of, target.elts), map(text_of, event.nodes)
    if second == carry and first != inputs != second:
        return _goes_along(event) and _is_dropped(event.frame.module, target.elts[0])
    return first == carry and first != inputs != second


def _goes_along(event: Called) -> bool:
    """Whether a call is made in a loop, of the same layer in each round, first with what depends on the round."""
    loop = enclosing(event.frame.module, event.node, ast.For, *FUNCTIONS)
    rounds = names_in(loop.target) if isinstance(loop, ast.For) else frozenset[str]()
    same = not isinstance(event.node, ast.Call) or not rounds & names_in(event.node.func)
    return same and bool(rounds & names_in(event.nodes[0]))


def _is_dropped(module: Module, target: ast.expr) -> bool:
    """Whether the function around it never reads a name that it binds."""
    scope = enclosing(module, target, *FUNCTIONS) or module.source.tree
    return isinstance(target, ast.Name) and not any(
        isinstance(node.ctx, ast.Load) for node in occurrences(scope, target.id)
    )


IN_ONE = frozenset({"nnx.GRUCell", "nnx.SimpleCell"})
"""Cells that carry one array."""


def _carries_two(layer: Obj, name: str) -> bool:
    """Whether a cell, or that of a recurrent layer, carries two arrays."""
    return _cell_of(layer, name) in IN_TWO


def _cell_of(layer: Obj, name: str) -> str:
    """The canonical name of the class of a cell, or of that of a recurrent layer."""
    held = attribute_of(layer, "cell") if name == "nnx.RNN" else None
    cell = present(held.value) if held is not None else layer
    cls = cell.cls.works_as if isinstance(cell, Obj) else None
    return cls.canonical if cls is not None else ""


def _gets_two(event: Called, name: str) -> bool:
    """Whether two arrays are given for what is carried."""
    return is_pair(event.keywords.get("initial_carry") if name == "nnx.RNN" else event.args[0])


def is_pair(value: Value | None) -> bool:
    """Whether a value is a tuple of two arrays."""
    if not isinstance(value, Seq) or value.type != "tuple" or not value.exact or value.shrunk:
        return False
    return len(value.items) == 2 and all(isinstance(present(item), Array) for item in value.items)


def is_swapped(event: Called, report: Reporter) -> bool:
    """Whether it has been said already that the first argument is not what its name says."""
    return bool(event.nodes) and text_of(event.nodes[0]) in report.memory(Swapped).names


OF_ONE_ARRAY = frozenset({"nnx.Conv", "nnx.LayerNorm", "nnx.Linear", "nnx.LinearGeneral", "nnx.RMSNorm"})
"""Layers of one array, of which most make one of a tuple that they are given."""


@judges_calls(rules.LAYER_ARGUMENTS, "nnx.RNN", "nnx.Bidirectional")
def class_for_layer(event: Called, report: Reporter) -> None:
    """A recurrent layer is given the class of a cell, and not a cell."""
    for value, node in zip(event.args, event.nodes, strict=False):
        if isinstance(value, ClassVal) and value.cls.derives_from("nnx.Module"):
            name = text_of(node)
            problem, mend = f"it is given the class `{name}`, and takes an instance of it", f"`{name}(..., rngs=rngs)`"
            report(event.frame.module, node, cls=event.name, problem=problem, mend=f"make one: {mend}")


def _gets_one(event: Called, name: str) -> bool:
    """Whether one array is given where two are to be carried, and is not both of them in one."""
    carry = event.keywords.get("initial_carry") if name == "nnx.RNN" else event.args[0]
    shape = carry.form.shape if isinstance(carry, Array) and carry.form is not None else None
    if not isinstance(carry, Array) or shape is None or len(shape) < 2 or not is_whole(shape):
        return False
    given = forms.literal(event.args[1]).shape if name != "nnx.RNN" and len(event.args) > 1 else None
    if given is not None and is_whole(given) and len(given) == len(shape):
        return True  # one for each example, where both would have an axis more
    return shape[0] != 2 if isinstance(shape[0], int) else carry.maker is not None


class AlongOneAxis(set[ast.AST]):
    """The calls of convolutions that go along one axis."""


@judges_calls(rules.LAYER_ARGUMENTS, "()")
def window_of_images(event: Called, report: Reporter) -> None:
    """``kernel_size=3`` is a window along one axis, and images have two."""
    layer = event.callee
    cls = layer.cls.works_as if isinstance(layer, Obj) else None
    if not isinstance(layer, Obj) or cls is None or cls.canonical not in {"nnx.Conv", "nnx.ConvTranspose"}:
        return
    size, calls = (
        forms.shape_of(forms.resolved(layer, (layer.args or {}).get("kernel_size", UNKNOWN))),
        report.memory(AlongOneAxis),
    )
    if size is None or not event.args:
        return
    shape = forms.literal(event.args[0]).shape
    image = (
        shape is not None and len(shape) == 4 and isinstance(shape[1], int) and shape[1] > 1 and shape[1] == shape[2]
    )
    if len(size) == 1 and not image:
        calls.add(event.node)  # of what is said here, nothing more is said of what comes after
    if (len(size) == 1 and image) or (len(size) == 2 and _comes_from(event.args[0], calls)):
        what = (
            "gets what a window along one axis gives"
            if len(size) == 2
            else "gets images, and its window goes along one axis"
        )
        _report_window(event, layer.cls.name, f"`{place_of(event)}` {what}", report)


@judges_calls(rules.LAYER_ARGUMENTS, "nnx.avg_pool", "nnx.max_pool", "nnx.min_pool")
def pool_of_images(event: Called, report: Reporter) -> None:
    """A pool along two axes gets what a window along one gives."""
    args = given_to(event)
    size, inputs = forms.shape_of(args.get(1, "window_shape")), args.get(0, "inputs")
    if size is not None and len(size) == 2 and _comes_from(inputs, report.memory(AlongOneAxis)):
        _report_window(
            event, "Conv", f"`{event.name}` goes along two axes, and the convolution before it along one", report
        )


def _comes_from(value: Value | None, calls: AlongOneAxis) -> bool:
    return isinstance(value, Array) and value.maker is not None and value.maker[2] in calls


def _report_window(event: Called, cls: str, problem: str, report: Reporter) -> None:
    mend = "a `kernel_size` that is one number is a window along one axis: write `(3, 3)` for 3 by 3"
    report(event.frame.module, event.node, cls=cls, problem=problem, mend=mend)


@judges_calls(rules.LAYER_INPUT_SHAPE, *(f".{name}" for name in layers.METHODS))
def method_input(event: Called, report: Reporter) -> None:
    callee = event.callee
    layer = present(callee.receiver) if isinstance(callee, BoundMethod) and callee.func is None else None
    if isinstance(callee, BoundMethod) and isinstance(layer, Obj) and event.args:
        table = layers.METHODS[callee.name]
        _misfit(event, layer, f"{layer.cls.name}.{callee.name}", event.args[0], table, report)


def _misfit(
    event: Called, layer: Obj, name: str, given: Value | None, table: Mapping[str, layers.Layer], report: Reporter
) -> bool:
    """Whether an array certainly is none that a layer can take as the argument that the table describes."""
    cls, arguments = layer.cls.works_as, forms.sizes(layer) if forms.is_original(layer) else None
    if arguments is None or cls is None or not isinstance(given, Array) or given.form is None:
        return False
    mismatch = layers.call(cls.canonical, arguments, given.form, table)[1]
    step = Step(layer, "", given.form, mismatch) if mismatch is not None else None
    if step is not None and _is_certain(event.frame, event.node, step):
        _report(event.frame.module, event.node, name, step, report, ())
    return step is not None


def _is_certain(frame: Frame, node: ast.AST, step: Step) -> bool:
    """Whether an array is of another size than a layer takes for all that may make the layer."""
    made = step.obj.origin[1] if step.obj.origin is not None else node
    return step.mismatch.names is None or mean_two_numbers(frame, step.mismatch.names, node, made)


def place_of(event: Called) -> str:
    """What a layer is called: the class that has it as an attribute, and the attribute."""
    func = event.node.func if isinstance(event.node, ast.Call) else None
    receiver = event.frame.receiver
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and isinstance(receiver, Obj):
        found = event.frame.env.lookup(func.value.id)
        if found is not None and found[1] is receiver:
            return f"{receiver.cls.name}.{func.attr}"
    return event.callee.cls.name if isinstance(event.callee, Obj) else event.name


def _report(module: Module, node: ast.AST, layer: str, step: Step, report: Reporter, made: tuple[Related, ...]) -> None:
    origin = step.obj.origin
    places = made
    if origin is not None:
        places = (*made, related(*origin, f"this {step.obj.cls.name} is made here"))
    given = str(step.given.dtype) if step.mismatch.dtype else layers.shown(step.given.shape or ())
    report(
        module,
        node,
        related=places,
        layer=layer,
        argument=step.mismatch.argument,
        expected=step.mismatch.expected,
        given=given,
    )
