"""What is known of arrays: shapes and dtypes, from literals and through layers.

What functions and operators do to arrays is in :mod:`~nnx_lint.model.operations`.

Invariants: a dimension is a number only where it certainly is that number in every run that gets here. Sizes of a
layer that its class takes from a parameter of the constructor are known for an instance that was made with numbers.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model import arithmetic
from nnx_lint.model.classes import LibClass
from nnx_lint.model.containers import Seq
from nnx_lint.model.symbols import OWN, NamedOther, seen_from, size_of
from nnx_lint.model.unions import UnionVal, options, present
from nnx_lint.model.values import (
    FLOAT,
    FRACTION,
    NONE,
    NUMBER,
    SHAPE,
    Array,
    Const,
    Ext,
    NumpyNumber,
    NumpyScalar,
    Obj,
    Other,
    ParameterNumber,
    ParameterVal,
    Value,
)
from nnx_lint.model.values import UNKNOWN as UNKNOWN_VALUE
from nnx_rules import layers
from nnx_rules.shape_algebra import ANY
from nnx_rules.shapes import UNKNOWN, Dimension, Form, Shape
from nnx_rules.sizes import Size, added

if TYPE_CHECKING:
    from collections.abc import Mapping

NOTHING = Form()

# -- literals ----------------------------------------------------------------------------------------------------------


def shape_of(value: Value | None) -> Shape | None:
    """A shape that is given as a number or as a sequence."""
    if isinstance(value, (Const, Other)) and is_number(value):
        return (dimension(value),)
    if isinstance(value, Seq) and value.exact and value.type in {"tuple", "list"}:
        return tuple(dimension(item) for item in value.items)
    return None


def dimension(value: Value) -> Dimension:
    """One size."""
    size = size_of(value)
    return UNKNOWN if size is None else size


def is_number(value: Const | Other) -> bool:
    """Whether a value is one whole number, known or not, where it says how many there are."""
    return value.what in arithmetic.COUNTS if isinstance(value, Other) else is_int(value.value)


def is_int(value: object) -> bool:
    """Whether a value is a whole number, and no flag."""
    return isinstance(value, int) and not isinstance(value, bool)


_PYTHON = {"builtins.int": "int32", "builtins.float": "float32", "builtins.bool": "bool"}

_ALIASES: dict[str, str | None] = {
    "bool_": "bool",
    "cdouble": "complex128",
    "csingle": "complex64",
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "int": "int32",
    "single": "float32",
    **dict.fromkeys(("complex_", "float_", "int_", "intc", "longlong", "uint", "uintc")),
}
"""Other names of dtypes; ``None`` for those of a size that differs from machine to machine."""


def dtype_of(value: Value | None) -> str | None:
    """A dtype that is given as an argument."""
    if isinstance(value, Const) and isinstance(value.value, str):
        return _ALIASES.get(value.value, value.value)
    if isinstance(value, Ext):
        head, _, name = value.name.rpartition(".")
        return _ALIASES.get(name, name) if head in {"jax.numpy", "numpy"} else _PYTHON.get(value.name)
    return None


def held_array(value: Value) -> Value:
    """What a Variable stands for as an operand: the array that it holds; any other value is what it is."""
    if not isinstance(value, Obj) or not value.cls.is_variable:
        return value
    from nnx_lint.model.attributes import variable_value

    return variable_value(value)


def plain_value(variable: Obj, held: Const) -> Value:
    """What a Variable holds that was made of a number, a string or ``None``, by now: a number of one that a compiled
    function got is an array there.
    """
    if held.value is None:
        return UNKNOWN_VALUE
    crossed = variable.template is not None and variable.template.level < variable.level
    number = crossed and type(held.value) in {int, float}
    return Array(variable.level, literal(held)) if number else Other(held.describe())


_LITERALS: dict[type, str] = {bool: "bool", int: "int32", float: "float32", complex: "complex64"}


def literal(value: Value | None) -> Form:
    """The array that ``jnp.array`` makes of a value."""
    if isinstance(value, Array):
        return value.form or NOTHING
    if isinstance(value, Obj) and value.cls.is_variable:
        held = held_array(value)
        return held.form or NOTHING if isinstance(held, Array) else NOTHING
    if isinstance(value, Const):
        kind = type(value.value)
        known = _LITERALS.get(kind)
        return Form((), known) if known is not None else NOTHING
    if isinstance(value, (Other, Ext, UnionVal)) and (number := arithmetic.one_number(value)) is not None:
        return Form((), "float32" if number is FLOAT else None)
    if isinstance(value, NumpyNumber):
        return Form((), "int32")
    if value is FRACTION or isinstance(value, NumpyScalar):
        return Form(())
    if isinstance(value, Other):  # where it stands for an array, it can only be one number
        return Form((), "bool" if value.what == "a bool" else None)
    if isinstance(value, UnionVal) and all(literal(option).shape == () for option in value.options):
        return Form(())
    if isinstance(value, Seq) and value.exact and value.items and value.type in {"tuple", "list"}:
        inner = [literal(item) for item in value.items]
        shapes, dtypes = {item.shape for item in inner}, {item.dtype for item in inner}
        shape = shapes.pop() if len(shapes) == 1 else None
        dtype = dtypes.pop() if len(dtypes) == 1 else "float32" if dtypes == {"int32", "float32"} else None
        return Form((len(value.items), *shape) if shape is not None else None, dtype)
    if isinstance(value, Seq) and value.each is not None and value.type in {"tuple", "list"}:
        row = literal(value.each)
        return Form((UNKNOWN, *row.shape) if row.shape is not None else None, row.dtype)
    return NOTHING


# -- values ----------------------------------------------------------------------------------------------------------


def shape_value(array: Array, level: int) -> Value:
    """``array.shape``: a tuple of numbers, where their number is known."""
    shape = array.form.shape if array.form is not None else None
    if shape is None or any(str(item).startswith("*") for item in shape):
        return SHAPE
    return Seq("tuple", map(_number, shape), level)


def _number(length: Dimension) -> Value:
    if isinstance(length, Size):
        return NamedOther(length)
    return Const(length) if isinstance(length, int) else NUMBER


# -- layers ------------------------------------------------------------------------------------------------------------


def sizes(obj: Obj) -> dict[str, object] | None:
    """The constructor arguments of a layer, as :mod:`nnx_rules.layers` wants them; ``None`` if they are not known."""
    if obj.args is None or "**" in obj.args:
        return None
    return {name: plain(resolved(obj, value), sized=name in layers.SIZES) for name, value in obj.args.items()}


def resolved(obj: Obj, value: Value) -> Value:
    """An argument; where it is a parameter of the constructor that made the object, what that was given."""
    if value.symbol is not None:
        return seen_from(value, obj.binds)
    for option in options(value):
        if isinstance(option, (ParameterVal, ParameterNumber)):
            return (obj.binds or {}).get(option.name, value)
        if isinstance(option, Obj) and isinstance(option.node, ast.arg):
            return (obj.binds or {}).get(option.node.arg, value)
    return value


def plain(value: Value, *, sized: bool = False) -> object:
    """An argument as the rules want it: a literal, a tuple of them, a Symbol for what is not known. One that is
    ``sized`` may be a number that is known by its name.
    """
    if isinstance(value, Const):
        return value.value
    if sized and value.symbol is not None:
        return value.symbol
    known = isinstance(value, Seq) and value.exact and value.type in {"tuple", "list"}
    return tuple(plain(item, sized=sized) for item in value.items) if known and isinstance(value, Seq) else UNKNOWN


def is_original(obj: Obj) -> bool:
    """Whether a layer holds what its constructor made: nobody has put other parameters into it."""
    return obj.cls.works_as is not None and not any(attr.assignments for attr in obj.attrs.values())


class Step(NamedTuple):
    """What goes wrong in a call: the layer, where below the called one it is, what it got, and what is wrong.

    ``place`` is its position among the layers of an outermost ``Sequential``.
    """

    obj: Obj
    path: str
    given: Form
    mismatch: layers.Mismatch
    place: int = 0


WRAPPING = frozenset({"nnx.SpectralNorm", "nnx.WeightNorm"})
"""Layers that are called as the layer that they are made with, of other weights."""


def called(obj: Obj, given: Form) -> tuple[Form | None, Step | None]:
    """What a layer returns for an array, and the first layer in it that cannot take what it gets."""
    cls = obj.cls.works_as
    if cls is None or not is_original(obj):
        return None, None
    if cls.canonical == "nnx.Sequential":
        return _in_turn(obj, given)
    if cls.canonical == "nnx.RNN":
        form, step = recurrent(obj, given)
        return (form if obj.args is not None and "return_carry" not in obj.args else None), step
    if cls.canonical == "nnx.Bidirectional":
        return _both_ways(obj, given)
    if cls.canonical in WRAPPING:
        held = (obj.args or {}).get("layer_instance")
        form, step = called(held, given) if isinstance(held, Obj) else (None, None)
        return form, step._replace(path=f".layer_instance{step.path}") if step is not None else None
    asked = given, obj.args, obj.binds
    if obj.answered is None or any(one is not other for one, other in zip(obj.answered[0], asked, strict=True)):
        obj.answered = asked, _called(obj, cls, given)  # rules ask what the call has just been asked
    form, step = obj.answered[1]
    base = (obj.args or {}).get("base_module")
    if step is None and isinstance(base, Obj) and cls.canonical == "nnx.LoRA":
        step = _beside(base, sizes(obj) or {}, given)
    return (form, None) if step is None else (None, step)


def _called(obj: Obj, cls: LibClass, given: Form) -> tuple[Form | None, Step | None]:
    """The same for a single layer."""
    arguments = sizes(obj)
    if arguments is None:
        return None, None
    form, mismatch = layers.call(cls.canonical, arguments, given)
    return (computed_by(obj, form), None) if mismatch is None else (None, Step(obj, "", given, mismatch))


def computed_by(layer: Obj, form: Form | None) -> Form | None:
    """What a layer gives, in the dtype that it was told to compute in; else in that of what it gets, if its parameters
    have the same one.
    """
    told = (layer.args or {}).get("dtype")
    told = resolved(layer, told) if told is not None else NONE
    kept = (layer.args or {}).get("param_dtype")
    if form is None or (told is NONE and kept is None):
        return form
    if isinstance(told, Const) and told.value is None:
        same = kept is None or dtype_of(resolved(layer, kept)) == form.dtype
        return form if same else Form(form.shape)
    return Form(form.shape, dtype_of(told))


def _beside(base: Obj, arguments: Mapping[str, object], given: Form) -> Step | None:
    """What is wrong with calling the layer that LoRA adds to: it gets the same array."""
    features = arguments.get("in_features")
    shape = given.shape or ((ANY, features) if isinstance(features, int) else None)
    step = called(base, Form(shape))[1] if shape is not None else None
    return step._replace(path=f".base_module{step.path}") if step is not None else None


def recurrent(obj: Obj, given: Form) -> tuple[Form | None, Step | None]:
    """What a recurrent layer makes of a sequence, besides what it carries: what its cell makes of each element."""
    from nnx_lint.model.attributes import attribute_of

    held = attribute_of(obj, "cell")
    cell = present(held.value) if held is not None else None
    cls = cell.cls.works_as if isinstance(cell, Obj) else None
    arguments = sizes(cell) if isinstance(cell, Obj) and is_original(cell) else None
    if arguments is None or not isinstance(cell, Obj) or cls is None:
        return None, None
    form, mismatch = layers.call(cls.canonical, arguments, given, layers.CELLS)
    if mismatch is not None:
        return None, Step(cell, ".cell", given, mismatch)
    return computed_by(cell, form), None


def _both_ways(obj: Obj, given: Form) -> tuple[Form | None, Step | None]:
    """What two recurrent layers make of a sequence: their results, one after the other along the last axis."""
    from nnx_lint.model.attributes import attribute_of

    found: list[Form | None] = []
    for name in ("forward_rnn", "backward_rnn"):
        held = attribute_of(obj, name)
        layer = present(held.value) if held is not None else (obj.args or {}).get(name)
        form, step = called(layer, given) if isinstance(layer, Obj) else (None, None)
        if step is not None:
            return None, step._replace(path=f".{name}{step.path}")
        found.append(form)
    shapes = [form.shape for form in found if form is not None and form.shape]
    if len(shapes) < 2 or obj.args is None or not obj.args.keys().isdisjoint({"merge_fn", "return_carry", "**"}):
        return None, None
    total = added(shape[-1] for shape in shapes)
    return (Form((*shapes[0][:-1], total)) if total != UNKNOWN else None), None


def _in_turn(obj: Obj, given: Form) -> tuple[Form | None, Step | None]:
    from nnx_lint.model import operations
    from nnx_lint.model.attributes import attribute_of
    from nnx_lint.model.elements import library_elements

    held = attribute_of(obj, "layers")
    elements = library_elements(held.value) if held is not None and isinstance(held.value, Obj) else None
    if elements is None or not elements.exact:
        return None, None
    form: Form | None = given
    for position, layer in enumerate(elements.items):
        found = present(layer)
        if isinstance(found, Obj):
            form, step = called(found, form or NOTHING)
            if step is not None:
                return None, step._replace(path=f".layers[{position}]{step.path}", place=position)
        elif not operations.keeps_shape(found):
            form = None
    return form, None


def result(obj: Obj, argument: Value | None) -> Form | None:
    """What a call of a layer returns."""
    if not isinstance(argument, Array):
        return called(obj, NOTHING)[0] if argument is not None else None
    return called(obj, argument.form or NOTHING)[0]


def of_method(obj: Obj, name: str, argument: Value | None) -> Form | None:
    """What another method of a layer returns that is called with an array, such as ``attend``."""
    cls, known = obj.cls.works_as, sizes(obj) if is_original(obj) else None
    if cls is None or known is None:
        return None
    return computed_by(obj, layers.call(cls.canonical, known, literal(argument), layers.METHODS[name])[0])


def bind(value: Value, owner: Obj) -> None:
    """Note of what an instance holds which arguments its constructor was given."""
    known = arguments_of(owner)
    if known or known is OWN:
        for option in options(value):
            held = option.items if isinstance(option, Seq) else [option]
            for item in held:
                if isinstance(item, Obj):
                    item.binds = known


def arguments_of(owner: Obj) -> Mapping[str, Value] | None:
    """What the constructor of an instance was given, and the defaults of its parameters."""
    if isinstance(owner.cls, LibClass):
        return owner.binds  # a container holds what the constructor of its own owner made
    if owner.given is not None and owner.given[0] is owner.args and owner.given[1] is owner.binds:
        return owner.given[2]  # each attribute that is read asks for it
    if owner.args is None:
        return None
    from nnx_lint.model.classes import method_of

    found = method_of(owner.cls, "__init__")
    given = {name: resolved(owner, value) for name, value in owner.args.items()}
    known = {**(found[1].wrapped.defaults if found is not None else {}), **given}
    owner.given = owner.args, owner.binds, known
    return known
