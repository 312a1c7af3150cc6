"""Axes and the arguments that they are for (NNX402, NNX404, NNX417, NNX418, NNX420).

Invariants: an argument is judged where the transformed function is called, by what it is there; a module counts as made
once only if it comes straight from its constructor, because what a mapped constructor returns has an axis.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal, Transformed
from nnx_lint.model.classes import LibClass, UserClass
from nnx_lint.model.containers import Seq
from nnx_lint.model.crossing import literal_positions, static_positions, statics_known
from nnx_lint.model.events import Called, TransformApplied
from nnx_lint.model.expressions import text_of
from nnx_lint.model.handed import is_model
from nnx_lint.model.library import FilterVal
from nnx_lint.model.values import Array, Const, Obj, Value
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.callees import TRANSFORMED, compiled_by
from nnx_lint.rules.edits import insert, is_parenthesized, unsafe, wrap
from nnx_lint.rules.layers.operands import is_prepared
from nnx_lint.rules.spelling import spelled
from nnx_lint.rules.traces.boundaries import Running, transform_of
from nnx_lint.rules.transforms.options import (
    CARRY,
    DEFAULTS,
    UNREAD,
    Axes,
    axes_of,
    given_to_variables,
    option_node,
    parameters,
    shown,
)
from nnx_rules import layers
from nnx_rules.rules import transforms as rules
from nnx_rules.shape_algebra import is_whole
from nnx_rules.transforms import DIFFERENTIATING

if TYPE_CHECKING:
    from nnx_lint.model.callables import TransformVal

# -- where the transform is applied ------------------------------------------------------------------------------------


def maps(event: TransformApplied) -> bool:
    """Whether the transform maps over axes, and says of which arguments."""
    return event.applied.row.name in DEFAULTS and "in_axes" in event.applied.keywords


def counts_axes(event: TransformApplied) -> bool:
    """Whether the axes are those of a certain number of arguments: ``nnx.scan`` says so if nobody does."""
    return maps(event) or event.applied.row.name == "nnx.scan"


@judges(rules.PREFIX_MISMATCH, TransformApplied, when=counts_axes)
def number_of_axes(event: TransformApplied, report: Reporter) -> None:
    applied, func = event.applied, event.func
    axes = axes_of(applied, "in_axes")
    accepted = _accepted(func)
    if accepted is None or not isinstance(axes, (tuple, list)):
        return
    least, most = accepted
    if _binds_defaults(event, report):
        least = most
    count, said = len(axes), "in_axes" in applied.keywords
    if (count > most and said) or (count < least and applied.row.name.startswith("nnx.")):
        takes = f"{most}" if least == most else f"{least} to {most}"
        has = f"it has {count} entries" if said else f"it is `{shown(axes)}` where it is not given"
        problem = f"{has}, and the function takes {takes} positional arguments"
        node = option_node(applied, "in_axes")
        method = isinstance(func, FuncVal) and func.cls is not None
        report(
            applied.module,
            node,
            fix=partial(_none_for_self, applied, node) if method and count == least - 1 else None,
            option="in_axes",
            transform=applied.text,
            problem=problem,
        )


BINDING_DEFAULTS = (0, 9)
"""The version of flax since which its maps give a parameter its default before they look at the axes."""


def _binds_defaults(event: TransformApplied, report: Reporter) -> bool:
    """Whether a parameter that has a default needs an axis as well."""
    applied, func = event.applied, event.func
    library, version = report.runs_on(applied.module)
    known = isinstance(func, FuncVal) and func.wraps is None
    named = applied.row.name.startswith("nnx.") and applied.modes.writes_back
    return known and named and library == "flax" and (version is None or version >= BINDING_DEFAULTS)


def _accepted(func: Value) -> tuple[int, int] | None:
    """How many positional arguments a function, a method or an instance takes."""
    if isinstance(func, BoundMethod):
        return parameters(func.func, bound=True) if isinstance(func.func, FuncVal) and func.func.wraps is None else None
    if isinstance(func, Obj) and isinstance(func.cls, UserClass):
        found = func.cls.find("__call__")
        called = found[1] if found is not None else None
        return parameters(called, bound=True) if isinstance(called, FuncVal) and called.wraps is None else None
    return parameters(func) if isinstance(func, FuncVal) else None


def _none_for_self(applied: TransformVal, node: ast.AST) -> Fix | None:
    """Pass the object of a method whole, which is what is missing in most cases."""
    if not isinstance(node, ast.Tuple) or not node.elts or not is_parenthesized(applied.module.source, node):
        return None
    return unsafe("Add `None` for `self`", insert(applied.module.source.span(node.elts[0]).start, "None, "))


@judges(rules.AXES_IN_LIST, TransformApplied, when=maps)
def axes_in_list(event: TransformApplied, report: Reporter) -> None:
    applied = event.applied
    given = applied.keywords.get("in_axes")
    node = option_node(applied, "in_axes")
    if not applied.row.name.startswith("nnx.") or not isinstance(given, Seq) or given.type != "list":
        return
    if applied.modes.writes_back:
        report(
            applied.module,
            node,
            fix=(lambda: as_tuple(applied, node)) if isinstance(node, ast.List) else None,
            option="in_axes",
            transform=applied.text,
        )


def as_tuple(applied: TransformVal, node: ast.List) -> Fix:
    """Write a tuple."""
    span = applied.module.source.span(node)
    closing = ",)" if len(node.elts) == 1 else ")"
    edits = (Edit(Span(span.start, span.start + 1), "("), Edit(Span(span.end - 1, span.end), closing))
    return Fix("Write a tuple", edits)


# -- where it is called ------------------------------------------------------------------------------------------------


def calls_transformed(event: Called) -> bool:
    """Whether a function under a transform is called, or an instance that may be one."""
    callee = event.callee
    if isinstance(callee, BoundMethod):
        return isinstance(callee.func, Transformed)
    return isinstance(callee, Transformed) or (isinstance(callee, Obj) and isinstance(callee.cls, UserClass))


@judges_calls(rules.MODULE_MAPPED, *TRANSFORMED, when=calls_transformed)
@judges_calls(rules.AXIS_OUT_OF_RANGE, *TRANSFORMED, when=calls_transformed)
@judges_calls(rules.INCONSISTENT_ALIASING, *TRANSFORMED, when=calls_transformed)
def arguments(event: Called, report: Reporter) -> None:
    found = labelled(event)
    if found is None:
        return
    running, applied, labels = found
    if report.rule is rules.MODULE_MAPPED:
        module_mapped(event, report, applied, running, labels)
    elif report.rule is rules.AXIS_OUT_OF_RANGE:
        number_mapped(event, report, applied, running, labels)
    elif applied.row.name.startswith("nnx.") and applied.modes.writes_back:
        one_object(event, report, applied, running, labels)


def labelled(event: Called) -> tuple[Running, TransformVal, list[Axes]] | None:
    """The transform that a call of positional arguments runs, and what it does with each operand."""
    running, applied = transform_of(event), _mapping_by(event)
    if running is None or applied is None or event.keywords or None in event.args:
        return None
    return running, applied, labels_of(applied, len(running.operands))


def _mapping_by(event: Called) -> TransformVal | None:
    """The transform under which the called function is, or the one within it where that only compiles, or gives each
    element random streams of its own and leaves all other Variables as they are.
    """
    outer = transformed_by(event)
    if outer is not None and outer.applied.row.name == "nnx.split_rngs" and isinstance(outer.func, Transformed):
        outer = outer.func
    return compiled_by(outer).applied if outer is not None else None


def applied_by(event: Called) -> TransformVal | None:
    """The transform of wrapper form under which the called function is."""
    outer = transformed_by(event)
    return outer.applied if outer is not None else None


def transformed_by(event: Called) -> Transformed | None:
    """The called function, where it is under a transform of wrapper form."""
    callee = event.callee
    if isinstance(callee, BoundMethod):
        callee = callee.func or callee
    elif isinstance(callee, Obj) and isinstance(callee.cls, UserClass):
        found = callee.cls.find("__call__")
        callee = found[1] if found is not None else callee
    return callee if isinstance(callee, Transformed) else None


def labels_of(applied: TransformVal, count: int) -> list[Axes]:
    """What a transform does with each positional argument: its axis, or whether it differentiates it."""
    if applied.row.name in DIFFERENTIATING:
        positions = literal_positions(applied.keywords.get("argnums"), default=(0,))
        if positions is None:
            return [UNREAD] * count
        return [1 if place in positions else 0 for place in range(count)]
    axes = axes_of(applied, "in_axes") if applied.row.name in DEFAULTS else UNREAD
    if not statics_known(applied):
        return [UNREAD] * count
    if isinstance(axes, (tuple, list)):
        return list(axes) if len(axes) == count else [UNREAD] * count
    static = static_positions(applied, count)
    return [None if place in static else axes for place in range(count)]


def module_mapped(event: Called, report: Reporter, applied: TransformVal, running: Running, labels: list[Axes]) -> None:
    """A module without an axis for the elements."""
    if applied.row.name not in DEFAULTS:
        return
    mapped = [
        made_once(value) if isinstance(label, int) else False
        for (value, _), label in zip(running.operands, labels, strict=True)
    ]
    for (value, node), axis, once in zip(running.operands, labels, mapped, strict=True):
        if once:
            written = ["None" if each else _text(label) for each, label in zip(mapped, labels, strict=True)]
            axes = f"({', '.join(written)}{',' if len(written) == 1 else ''})"
            report(
                event.frame.module,
                node if node is not None else event.node,
                fix=partial(with_axes, applied, axes),
                transform=applied.text,
                axis=axis,
                name=text_of(node) if node is not None else value.describe(),
                axes=axes,
            )
            return


def _text(label: Axes) -> str:
    """How the axes of an argument are written, if that is known."""
    if isinstance(label, FilterVal):
        return " ".join(label.module.source.segment(label.node).split())
    if label is None or isinstance(label, int):
        return repr(label)
    return "nnx.Carry" if label is CARRY else "..."


def made_once(value: Value) -> bool:
    """Whether a value is a module with layers of the library that comes straight from its constructor."""
    if not isinstance(value, Obj) or not value.cls.derives_from("nnx.Module"):
        return False
    if value.gained != 0 or value.leaf_level is not None or value.merged:
        return False
    made: Obj = value
    while made.template is not None and not is_model(made.template):
        made = made.template
    return made.args is not None and made.origin is not None and _has_layer(made)


def _has_layer(obj: Obj, depth: int = 4) -> bool:
    if isinstance(obj.cls, LibClass) and obj.cls.name not in CONTAINERS:
        return obj.cls.name in LAYERS
    held = [attr.value for name in attribute_names(obj) if (attr := attribute_of(obj, name)) is not None]
    parts = [item for value in held for item in (value.items if isinstance(value, Seq) else [value])]
    return depth > 0 and any(isinstance(item, Obj) and _has_layer(item, depth - 1) for item in parts)


CONTAINERS = frozenset({"List", "Dict", "Sequential"})

LAYERS = frozenset(
    {"BatchNorm", "Conv", "ConvTranspose", "Embed", "LayerNorm", "Linear", "LinearGeneral", "LoRALinear"}
    | {"GRUCell", "GroupNorm", "LSTMCell", "MultiHeadAttention", "OptimizedLSTMCell", "RMSNorm", "SimpleCell"}
)
"""Layers whose Variables have axes that mean features, and no other ones."""


def with_axes(applied: TransformVal, axes: str) -> Fix | None:
    """Say that the module is passed whole, where nothing is said of the axes."""
    node, source = applied.node, applied.module.source
    if "in_axes" in applied.keywords or applied.row.name not in {"nnx.vmap", "jax.vmap"}:
        return None
    if not isinstance(node, ast.Call):
        if not applied.row.name.startswith("nnx."):
            return None  # a decorator of jax takes no options
        edits = insert(source.span(node).end, f"(in_axes={axes})")
    else:
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if not given or applied.keywords:
            return None
        edits = insert(max(source.span(item).end for item in given), f", in_axes={axes}")
    return Fix(f"Add `in_axes={axes}`", edits, Applicability.UNSAFE)


def number_mapped(event: Called, report: Reporter, applied: TransformVal, running: Running, labels: list[Axes]) -> None:
    """Numbers have no axes, and the elements of a list neither; an array has as many as its shape says."""
    if applied.row.name not in DEFAULTS:
        return
    for (value, node), axis in zip(running.operands, labels, strict=True):
        held = value.items if isinstance(value, Seq) and value.exact and not value.opaque else [value]
        numbers = [item for item in held if isinstance(item, Const) and type(item.value) in {int, float}]
        if isinstance(axis, int) and numbers and node is not None:
            path = text_of(node)
            report(
                event.frame.module,
                node,
                fix=partial(_as_array, event, node) if len(numbers) == len(held) else None,
                transform=applied.text,
                axis=axis,
                path=path,
                shape="()",
            )
        shape = value.form.shape if isinstance(value, Array) and value.form is not None else None
        known = shape is not None and is_whole(shape) and 0 not in shape  # of no elements it is not known what they are
        if isinstance(axis, int) and _counts_steps(value):
            path = f"{text_of(node) if node is not None else 'optimizer'}.step"
            report(event.frame.module, node or event.node, transform=applied.text, axis=axis, path=path, shape="()")
        if isinstance(axis, int) and shape is not None and known and not -len(shape) <= axis < len(shape):
            if is_prepared(event.frame, event.node):
                continue
            path, size = (text_of(node) if node is not None else "an array"), layers.shown(shape)
            report(event.frame.module, node or event.node, transform=applied.text, axis=axis, path=path, shape=size)


def _counts_steps(value: Value) -> bool:
    """Whether a value is an optimizer that was made once, with one number of steps."""
    if not isinstance(value, Obj) or not value.cls.derives_from("nnx.Optimizer") or value.assumed or value.merged:
        return False
    return value.origin is not None and value.gained == 0 and value.leaf_level is None


def _as_array(event: Called, node: ast.expr) -> Fix | None:
    """Make an array of numbers that are written in a list."""
    name = spelled("jax.numpy.array", event.frame.module, event.frame.env)
    if name is None or not isinstance(node, ast.List):
        return None
    return Fix(f"Make an array with `{name}`", wrap(event.frame.module.source, node, name), Applicability.UNSAFE)


def one_object(event: Called, report: Reporter, applied: TransformVal, running: Running, labels: list[Axes]) -> None:
    """An object that is given twice, maybe as a part of another one, and is to be treated in two ways."""
    objects = [
        (place, value, node)
        for place, (value, node) in enumerate(running.operands)
        if isinstance(value, Obj) and value.cls.tracked and labels[place] is not UNREAD
    ]
    for at, (place, value, node) in enumerate(objects):
        for first, other, other_node in objects[:at]:
            if not _differ(labels[first], labels[place]):
                continue
            later = _part(value, other) if value is not other else ""
            earlier = _part(other, value) if later is None else ""
            if earlier is None:
                continue
            report(
                event.frame.module,
                node if node is not None else event.node,
                path=_path(place, node, later or ""),
                other_path=_path(first, other_node, earlier),
                transform=applied.text,
                prefixes=f"{_word(applied, labels[first])} and {_word(applied, labels[place])}",
            )
            break


def _differ(one: Axes, other: Axes) -> bool:
    """Whether a Variable certainly gets two axes: ``StateAxes`` says of each type of Variables which one it gets."""
    if one == other:
        return False
    if not isinstance(one, FilterVal) and not isinstance(other, FilterVal):
        return True
    axes = given_to_variables(one), given_to_variables(other)
    return None not in axes and (axes[0] or set()).isdisjoint(axes[1] or set())


def _path(place: int, node: ast.expr | None, part: str) -> str:
    """What a message calls an object: the argument as it is written, or that part of one."""
    return f"args[{place}]{part}" if node is None or part else text_of(node)


MAX_PARTS = 200
"""How many parts of an object are looked at."""


def _part(whole: Obj, wanted: Obj) -> str | None:
    """Where an object stands among the parts of another one."""
    todo = [(whole, "")]
    for obj, path in todo:
        for name in attribute_names(obj) if len(todo) < MAX_PARTS else ():
            attr = attribute_of(obj, name)
            if attr is not None and attr.value is wanted:
                return f"{path}.{name}"
            if attr is not None and isinstance(attr.value, Obj) and attr.value.cls.tracked:
                todo.append((attr.value, f"{path}.{name}"))
    return None


def _word(applied: TransformVal, label: Axes) -> str:
    if applied.row.name in DIFFERENTIATING:
        return "differentiated" if label else "constant"
    return shown(label)
