"""Variables with a sharding, where no mesh is set or a mesh without that axis (NNX806, NNX823).

Only in what a module runs when it is executed is it known that no mesh is set: a function may be called under one.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Fix
from nnx_lint.model import forms
from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import ShardedInit
from nnx_lint.model.classes import LibClass
from nnx_lint.model.containers import Seq
from nnx_lint.model.expressions import text_of
from nnx_lint.model.meshes import (
    MESHES,
    SHARDINGS,
    MeshVal,
    ShardingVal,
    SpecVal,
    axes_of_mesh,
    names_in,
    rules_in,
    shape_of_mesh,
    through,
)
from nnx_lint.model.values import (
    Array,
    Const,
    Obj,
    PartitionedArray,
    Value,
)
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.edits import append_argument, replace, unsafe, wrap
from nnx_lint.rules.filters.coverage import leaves_of
from nnx_lint.rules.program import (
    around,
    assigned_in,
    canonical_of,
    given,
    is_tried,
    keyword_node,
    own_nodes,
    resolved,
    scopes_around,
)
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax.walk import walk
from nnx_rules import api, shapes
from nnx_rules.layers import shown
from nnx_rules.rules import modules as rules
from nnx_rules.rules.transforms import SPEC_DOES_NOT_FIT
from nnx_rules.shape_algebra import is_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nnx_lint.diagnostics import Related
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_rules.shapes import Shape

METADATA = ("out_sharding", "sharding", "sharding_names")
"""The metadata that says how a Variable is sharded, by its names over time."""

ELSEWHERE = frozenset({"mesh", "eager_sharding", "**"})
"""Metadata with which the mesh of the context does not decide, or not alone."""


def sharding_of(variable: Obj) -> Value | None:
    """The sharding that a Variable is created with on the mesh of the context."""
    args = variable.args
    if args is None or not ELSEWHERE.isdisjoint(args) or variable.cls.is_open:
        return None
    made = args.get("value")
    drawn = made.sharding if isinstance(made, PartitionedArray) else None
    found = next((args[name] for name in METADATA if name in args), drawn)
    found = Seq("tuple", found.entries) if isinstance(found, SpecVal) else found
    rules = rules_in(args.get("sharding_rules"))
    return through(rules, _given(variable, found)) if isinstance(found, Seq) and rules is not None else None


def _given(owner: Obj, names: Seq) -> Seq:
    """The names of axes, those too that the constructor around a Variable or a layer is given."""
    items = [forms.resolved(owner, item) for item in names.items]
    return Seq(names.type, items, names.level, exact=names.exact) if items != names.items else names


@judges_calls(rules.LAYER_ARGUMENTS, *shapes.DIMENSIONS)
def axes_of_initializer(event: Called, report: Reporter) -> None:
    """An initializer that names more axes than the parameter has."""
    layer = event.result
    if not isinstance(layer, Obj):
        return
    for name, sharding, shape in _initialized(layer):
        if len(sharding.items) > len(shape):
            axes = f"{len(shape)} {'axis' if len(shape) == 1 else 'axes'}"
            problem = f"`{name}` names {len(sharding.items)} axes, and its `{name.removesuffix('_init')}` has {axes}"
            node = keyword_node(event.node, name) or event.node
            report(event.frame.module, node, cls=layer.cls.name, problem=problem, mend="name as many as it has")


def _initialized(layer: Obj) -> Iterator[tuple[str, Seq, Shape]]:
    """The initializers of a layer that name axes: the argument, the names, the shape of the parameter."""
    cls, arguments = layer.cls.made_as, forms.sizes(layer)
    if arguments is None or cls is None:
        return
    for name, value in (layer.args or {}).items():
        sharding = value.sharding if isinstance(value, ShardedInit) else None
        path = name.removesuffix("_init")
        form = shapes.form(cls.canonical, (path,), arguments) if path != name else None
        shape = form.shape if form is not None else None
        if isinstance(sharding, Seq) and sharding.exact and shape is not None and is_whole(shape):
            yield name, sharding, shape


@judges_calls(rules.LAYER_ARGUMENTS, "nnx.with_partitioning")
def partitioning_without_axes(event: Called, report: Reporter) -> None:
    args = given(event)
    if len(args.positional) != 1 or args.starred or "sharding" in args.keywords:
        return
    foreign = next((name for name in ("names", "axes", "out_sharding", "sharding_names") if name in event.keywords), "")
    problem = f"gets no `sharding`{f', and {foreign} is metadata that nothing reads' if foreign else ''}"
    mend = "give the names of the axes second: `nnx.with_partitioning(init, (None, 'model'))`"
    report(event.frame.module, event.node, cls="nnx.with_partitioning", problem=problem, mend=mend)


MADE = ("class", *api.VARIABLES, *api.CLASSES)
"""What holds Variables and is made by a call."""


def _shardings(made: Obj, event: Called) -> list[tuple[str, Value, Obj]]:
    """The shardings of the Variables that a constructor makes: the type, the sharding, the Variable or layer."""
    rules = event.modes.rules
    found = _written(made, event)
    if not rules:
        return found
    return [(name, through(rules, own) if isinstance(own, Seq) else own, where) for name, own, where in found]


def _written(made: Obj, event: Called) -> list[tuple[str, Value, Obj]]:
    """The same, as their names stand in the program."""
    if made.cls.is_variable:
        found = sharding_of(made)
        return [(made.cls.name, found, made)] if found is not None else []
    shardings: list[tuple[str, Value, Obj]] = []
    layers = [made] if isinstance(made.cls, LibClass) else []
    for held in leaves_of(made, event.frame).held:
        owner = held.owner
        name = held.leaf.path[-1] if isinstance(held.leaf.path, tuple) and held.leaf.path else None
        attr = attribute_of(owner, name) if isinstance(owner, Obj) and isinstance(name, str) else None
        if attr is not None and isinstance(attr.value, Obj) and attr.value.cls.is_variable:
            found = sharding_of(attr.value)
            if found is not None:
                shardings.append((attr.value.cls.name, found, attr.value))
        if isinstance(owner, Obj) and isinstance(owner.cls, LibClass) and owner not in layers:
            layers.append(owner)
    for layer in layers:
        for value in (layer.args or {}).values():
            if isinstance(value, ShardedInit) and isinstance(value.sharding, Seq):
                shardings.append(("Param", _given(layer, value.sharding), layer))
    return shardings


@judges_calls(rules.SHARDING_WITHOUT_MESH, *MADE)
def sharding_without_mesh(event: Called, report: Reporter) -> None:
    made = event.result
    if event.modes.mesh != () or not isinstance(made, Obj) or event.frame.module.mentions("always_shard"):
        return
    for cls, sharding, where in _shardings(made, event)[:1]:
        places = _places(event, where)
        fix = partial(_placed, event, where)
        report(event.frame.module, event.node, fix=fix, cls=cls, sharding=_shown(sharding), related=places)


def _placed(event: Called, where: Obj) -> Fix | None:
    """Set the mesh that is there; in a file that knows of none, keep the sharding as what it was before flax 0.12."""
    return _set_entered(event) or (_kept_as_metadata(event, where) if not event.frame.module.mentions("mesh") else None)


def _kept_as_metadata(event: Called, where: Obj) -> Fix | None:
    """Place nothing: the names of the axes are metadata that the program may ask for."""
    module = event.frame.module
    call = where.origin[1] if where.origin is not None and where.origin[0] is module else None
    if not isinstance(call, ast.Call):
        return None
    inner = [item.value for item in call.keywords if isinstance(item.value, ast.Call)]
    named = [each for each in inner if canonical_of(event.frame.env, each.func) == "nnx.with_partitioning"]
    if any(keyword.arg == "eager_sharding" for each in named for keyword in each.keywords):
        return None  # what is sharded stands elsewhere
    if any(item.arg in METADATA for item in call.keywords):
        named = [call]
    edits = append_argument(module.source, named[0], "eager_sharding=False") if named else None
    return unsafe("Keep the sharding as metadata", edits)


def _set_entered(event: Called) -> Fix | None:
    """Set the mesh that a ``with`` statement around the call enters, or around a call that leads to it."""
    module = event.frame.module
    entered = _entered(event)
    name = spelled("jax.set_mesh", module, event.frame.env) if entered is not None else None
    if entered is None or name is None:
        return None
    return Fix(f"Use `{name}`", wrap(module.source, entered[0], name), Applicability.UNSAFE)


def _entered(event: Called) -> tuple[ast.expr, MeshVal] | None:
    """The mesh that a ``with`` statement of the same module enters, around the call or one that leads to it."""
    frame: Frame | None = event.frame
    node: ast.AST | None = event.node
    module = event.frame.module
    while frame is not None and node is not None and frame.module is module:
        for outer in around(frame, node):
            for item in outer.items if isinstance(outer, ast.With) else ():
                mesh = resolved(frame.env, item.context_expr)
                if isinstance(mesh, MeshVal):
                    return item.context_expr, mesh
        node, frame = frame.call, frame.caller
    return None


def _places(event: Called, where: Obj) -> tuple[Related, ...]:
    if where.origin is None or where.origin[1] is event.node:
        return ()
    return (related(*where.origin, f"this {where.cls.name} is made here"),)


def _shown(sharding: Value) -> str:
    items = sharding.items if isinstance(sharding, Seq) else []
    names = [repr(item.value) if isinstance(item, Const) else "..." for item in items]
    return f"P({', '.join(names)})"


@judges_calls(rules.SHARDING_UNKNOWN_AXIS, *MADE)
def sharding_unknown_axis(event: Called, report: Reporter) -> None:
    made, axes = event.result, event.modes.mesh
    if not axes or not isinstance(made, Obj):
        return
    for cls, sharding, where in _shardings(made, event):
        if _report_unknown(event, report, cls, _names(sharding), axes, where):
            return


@judges_calls(rules.SHARDING_UNKNOWN_AXIS, *SHARDINGS)
def named_unknown_axis(event: Called, report: Reporter) -> None:
    """A spec that goes with a mesh, and names an axis that this one lacks."""
    made = event.result
    if isinstance(made, ShardingVal) and not is_tried(event.frame.module, event.node):
        names = [name for entry in made.spec.entries for name in names_in(entry) or []]
        _report_unknown(event, report, "NamedSharding", names, made.mesh.axes, None)


@judges_calls(rules.SHARDING_UNKNOWN_AXIS, "jax.lax.with_sharding_constraint")
def constraint_of_unknown_axis(event: Called, report: Reporter) -> None:
    """A spec for the mesh of the context, that names an axis which this one lacks."""
    spec = given(event).get(1, "shardings")
    if not isinstance(spec, SpecVal) or is_tried(event.frame.module, event.node):
        return
    entered = _entered(event) if not event.modes.mesh else None
    axes = entered[1].axes if entered is not None else event.modes.mesh
    if axes:
        names = [name for entry in spec.entries for name in names_in(entry) or []]
        _report_unknown(event, report, "PartitionSpec", names, axes, None)


@judges_calls(rules.SHARDING_UNKNOWN_AXIS, "jax.shard_map", "nnx.shard_map")
def specs_of_unknown_axis(event: Called, report: Reporter) -> None:
    """Specs of a function that runs on each device for itself, of an axis that its mesh lacks."""
    mesh = event.keywords.get("mesh")
    if not isinstance(mesh, MeshVal) or is_tried(event.frame.module, event.node):
        return
    for name in ("in_specs", "out_specs"):
        given = event.keywords.get(name)
        specs = given.items if isinstance(given, Seq) else [given]
        entries = (entry for spec in specs if isinstance(spec, SpecVal) for entry in spec.entries)
        names = [name for entry in entries for name in names_in(entry) or []]
        if _report_unknown(event, report, "PartitionSpec", names, mesh.axes, None):
            return


def _report_unknown(
    event: Called, report: Reporter, cls: str, names: list[str], axes: tuple[str, ...], where: Obj | None
) -> bool:
    """Whether one of the names is no axis of the mesh."""
    name = next((name for name in names if name not in axes), None)
    if name is None:
        return False
    import difflib

    close = difflib.get_close_matches(name, axes, n=1)
    mend = f"did you mean `{close[0]}`?" if close else "name one of its axes, or `None`"
    shown = " and ".join(f"`{axis}`" for axis in axes)
    fix = partial(_rename, event.frame.module, event, name, close[0]) if close else None
    places = _places(event, where) if where is not None else ()
    report(event.frame.module, event.node, fix=fix, related=places, cls=cls, axis=name, axes=shown, mend=mend)
    return True


def _names(sharding: Value) -> list[str]:
    items = sharding.items if isinstance(sharding, Seq) else []
    flat = [part for item in items for part in (item.items if isinstance(item, Seq) else [item])]
    return [item.value for item in flat if isinstance(item, Const) and isinstance(item.value, str)]


def _rename(module: Module, event: Called, wrong: str, right: str) -> Fix | None:
    """Write the name of the axis that was meant, where the sharding is written in the call."""
    written = next((node for name in METADATA if (node := keyword_node(event.node, name)) is not None), None)
    for part in walk(written) if written is not None else ():
        if isinstance(part, ast.Constant) and part.value == wrong:
            return Fix(f"Name the axis `{right}`", replace(module.source, part, repr(right)))
    return None


@judges_calls(SPEC_DOES_NOT_FIT, *MADE)
def spec_of_variable(event: Called, report: Reporter) -> None:
    """A Variable whose sharding has more entries than its value has axes, or that cannot be cut in so many parts.

    A compiled function makes the parts of different sizes.
    """
    made, mesh = event.result, MeshVal(event.modes.mesh or (), event.modes.sizes)
    for cls, sharding, where in _shardings(made, event) if mesh.axes and isinstance(made, Obj) else ():
        path, shape = _divided(sharding, where)
        if not isinstance(sharding, Seq) or not sharding.exact or shape is None or not is_whole(shape):
            continue
        several = where.cls.is_variable and len(sharding.items) > len(shape)
        if several or (not event.frame.scope and _is_uneven(shape, sharding.items, mesh)):
            report(
                event.frame.module,
                event.node,
                related=_places(event, where),
                transform=f"nnx.{cls}",
                path=path,
                shape=shown(shape),
                spec=_shown(sharding),
                mesh=_sizes_shown(mesh),
            )
            return


def _divided(sharding: Value, where: Obj) -> tuple[str, Shape | None]:
    """What is sharded, a Variable or a parameter of a layer, and its shape."""
    if where.cls.is_variable:
        return "value", forms.literal(where).shape
    found = ((name.removesuffix("_init"), shape) for name, own, shape in _initialized(where) if own is sharding)
    return next(found, ("value", None))


def _is_uneven(shape: Shape, entries: Sequence[Value], mesh: MeshVal) -> bool:
    """Whether an axis cannot be cut in as many parts as a mesh has devices for it."""
    counts = [mesh.size(names) if (names := names_in(entry)) is not None else None for entry in entries]
    return any(isinstance(size, int) and count and size % count for size, count in zip(shape, counts, strict=False))


def _sizes_shown(mesh: MeshVal) -> str:
    if mesh.shape is None:
        return f"({', '.join(mesh.axes)})"
    return "(" + ", ".join(f"{axis}: {size}" for axis, size in zip(mesh.axes, mesh.shape, strict=False)) + ")"


# -- arrays ------------------------------------------------------------------------------------------------------------


CONSTRAINT = "jax.lax.with_sharding_constraint"
"""What takes a spec alone too, for the mesh of the context."""


@judges_calls(SPEC_DOES_NOT_FIT, "jax.device_put", CONSTRAINT)
def spec_of_array(event: Called, report: Reporter) -> None:
    """An array that has fewer axes than the spec, or one that cannot be cut in as many parts as there are devices."""
    args = given(event)
    array, sharding = args.get(0, "x"), args.get(1, "device") or args.get(1, "shardings")
    node = args.node_of(0, "x")
    if isinstance(sharding, SpecVal) and event.subject == CONSTRAINT:
        sharding = ShardingVal(MeshVal(event.modes.mesh or (), event.modes.sizes), sharding)
    if not isinstance(sharding, ShardingVal) or node is None:
        return
    if isinstance(array, Seq) and isinstance(node, (ast.Tuple, ast.List)) and len(array.items) == len(node.elts):
        for part, place in zip(array.items, node.elts, strict=True):
            _judge_array(event, part, place, sharding, report)
    else:
        _judge_array(event, array, node, sharding, report)


def _judge_array(event: Called, array: Value | None, node: ast.expr, sharding: ShardingVal, report: Reporter) -> None:
    shape = forms.literal(array).shape if isinstance(array, Array) else None
    if shape is None or not is_whole(shape):
        return
    entries, mesh = sharding.spec.entries, sharding.mesh
    parted = bool(event.frame.scope) and event.subject == CONSTRAINT  # then the parts may be of different sizes
    wrong = (not parted and _is_uneven(shape, entries, mesh)) or len(entries) > len(shape)
    if wrong and not is_tried(event.frame.module, event.node):
        report(
            event.frame.module,
            event.node,
            transform=event.name,
            path=text_of(node),
            shape=shown(shape),
            spec=_shown(Seq("tuple", entries)),
            mesh=_sizes_shown(mesh),
        )


@judges_calls(rules.ARRAY_SHAPES, *MESHES)
def names_of_mesh(event: Called, report: Reporter) -> None:
    """A mesh with another number of axes than it has names for."""
    args = given(event)
    name = event.subject or ""
    axes, shape = axes_of_mesh(args.get(MESHES[name], "axis_names")), shape_of_mesh(name, args)
    devices = args.node_of(0, "devices")
    if axes is not None and len(axes) != 1 and name != "jax.make_mesh" and _is_row(event.frame, devices):
        problem = f"the devices are one row, and the mesh gets {len(axes)} names for its axes"
        report(event.frame.module, event.node, problem=problem, mend=f"write `{MAKING_MESH}`, which arranges them")
    if axes is not None and shape is not None and len(axes) != len(shape):
        names = f"{len(axes)} {'name' if len(axes) == 1 else 'names'}"
        problem = f"a mesh of shape {shown(shape)} gets {names} for its axes"
        report(event.frame.module, event.node, problem=problem, mend="give each axis of the mesh a name")


MAKING_MESH = "jax.make_mesh(shape, names)"
ROWS = frozenset({"jax.devices", "jax.local_devices"})
"""Functions that list devices."""


def _is_row(frame: Frame, node: ast.AST | None) -> bool:
    """Whether an expression certainly is the plain list of devices, or an array of it."""
    if isinstance(node, ast.Name):
        scope = scopes_around(frame.module, node)[0]
        stores = [item for item in own_nodes(scope) if isinstance(item, ast.Assign)]
        made = [item.value for item in stores if text_of(item.targets[0]) == node.id]
        return len(made) == assigned_in(scope)[node.id] == 1 and _is_row(frame, made[0])
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return _is_row(frame, node.value)
    if not isinstance(node, ast.Call):
        return False
    function = canonical_of(frame.env, node.func)
    if function in {"numpy.array", "numpy.asarray"} and len(node.args) == 1:
        return _is_row(frame, node.args[0])
    return function in ROWS
