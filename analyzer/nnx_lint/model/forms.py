"""What is known of arrays: shapes and dtypes, from literals, through layers and through functions that keep them.

Invariants: a dimension is a number only where it certainly is that number in every run that gets here; where an
operation is not listed, nothing is known of its result. Sizes of a layer that its class takes from a parameter of the
constructor are known for an instance that was made with numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.callables import PartialVal
from nnx_lint.model.classes import LibClass
from nnx_lint.model.containers import Seq
from nnx_lint.model.values import (
    NUMBER,
    SHAPE,
    Array,
    Const,
    Ext,
    Obj,
    ParameterNumber,
    ParameterVal,
    Value,
    options,
    present,
)
from nnx_rules import layers
from nnx_rules.shapes import UNKNOWN, Dimension, Form, Shape, Symbol, size

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Mapping

    from nnx_lint.model.calls import Arguments

NOTHING = Form()

# -- literals ----------------------------------------------------------------------------------------------------------


def shape_of(value: Value | None) -> Shape | None:
    """A shape that is given as a number or as a sequence."""
    if isinstance(value, Const) and _is_int(value.value):
        return (_dimension(value),)
    if isinstance(value, Seq) and value.exact and value.type in {"tuple", "list"}:
        return tuple(_dimension(item) for item in value.items)
    return None


def _dimension(value: Value) -> Dimension:
    return (
        value.value if isinstance(value, Const) and isinstance(value.value, int) and _is_int(value.value) else UNKNOWN
    )


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_PYTHON = {"builtins.int": "int32", "builtins.float": "float32", "builtins.bool": "bool"}


def dtype_of(value: Value | None) -> str | None:
    """A dtype that is given as an argument."""
    if isinstance(value, Const) and isinstance(value.value, str):
        return value.value
    if isinstance(value, Ext):
        head, _, name = value.name.rpartition(".")
        return name if head in {"jax.numpy", "numpy"} else _PYTHON.get(value.name)
    return None


_LITERALS: dict[type, str] = {bool: "bool", int: "int32", float: "float32", complex: "complex64"}


def literal(value: Value | None) -> Form:
    """The array that ``jnp.array`` makes of a value."""
    if isinstance(value, Array):
        return value.form or NOTHING
    if isinstance(value, Const):
        kind = type(value.value)
        known = _LITERALS.get(kind)
        return Form((), known) if known is not None else NOTHING
    if isinstance(value, Seq) and value.exact and value.items and value.type in {"tuple", "list"}:
        inner = [literal(item) for item in value.items]
        shapes, dtypes = {item.shape for item in inner}, {item.dtype for item in inner}
        shape = shapes.pop() if len(shapes) == 1 else None
        dtype = dtypes.pop() if len(dtypes) == 1 else "float32" if dtypes == {"int32", "float32"} else None
        return Form((len(value.items), *shape) if shape is not None else None, dtype)
    return NOTHING


# -- functions ---------------------------------------------------------------------------------------------------------


def _filled(default: str | None, position: int = 0, dtype: int = 1) -> Callable[[Arguments], Form]:
    def form(args: Arguments) -> Form:
        given = args.get(dtype, "dtype")
        return Form(shape_of(args.get(position, "shape")), default if given is None else dtype_of(given))

    return form


def _full(args: Arguments) -> Form:
    given = args.get(2, "dtype")
    dtype = literal(args.get(1, "fill_value")).dtype if given is None else dtype_of(given)
    return Form(shape_of(args.get(0, "shape")), dtype)


def _converted(args: Arguments) -> Form:
    value = args.get(0, "object") or args.get(0, "a")
    given = args.get(1, "dtype")
    known = literal(value)
    return known if given is None else Form(known.shape, dtype_of(given))


def _like(args: Arguments) -> Form:
    given = args.keywords.get("dtype")
    known = literal(args.get(0))
    return Form(known.shape, known.dtype if given is None else dtype_of(given))


def _range(args: Arguments) -> Form:
    given = args.keywords.get("dtype")
    values = [item.value for item in args.positional if isinstance(item, Const)]
    whole = len(values) == len(args.positional) and all(map(_is_int, values))
    dtype = dtype_of(given) if given is not None else "int32" if whole else None
    stop = values[0] if len(values) == 1 and whole else None
    return Form((stop if isinstance(stop, int) else UNKNOWN,), dtype)


def _one_hot(args: Arguments) -> Form:
    classes = args.get(1, "num_classes")
    shape = literal(args.get(0)).shape
    return Form((*(shape if shape is not None else (layers.ANY,)), _dimension(classes)) if classes else None, "float32")


def _same(args: Arguments) -> Form:
    known = literal(args.get(0))
    return Form(known.shape, known.dtype if layers.is_fractional(known.dtype) else None)


def _pooled(args: Arguments) -> Form:
    known, size = literal(args.get(0, "inputs")), shape_of(args.get(1, "window_shape"))
    padding = args.get(3, "padding")
    if known.shape is None or size is None or len(known.shape) != len(size) + 2:
        return NOTHING
    given = args.get(2, "strides")
    steps = shape_of(given) if given is not None else None
    if given is not None and steps is None:
        return NOTHING
    how = "VALID" if padding is None else padding.value if isinstance(padding, Const) else None
    batch, *axes, last = known.shape
    return Form((batch, *layers.window(tuple(axes), size, steps, how), last), known.dtype)


def _reshaped(args: Arguments) -> Form:
    known = literal(args.get(0))
    wanted = shape_of(args.get(1, "shape"))
    return Form(reshaped(known.shape, wanted), known.dtype) if wanted is not None else NOTHING


def reshaped(shape: Shape | None, wanted: Shape) -> Shape:
    """What ``reshape`` makes of a shape; a size of -1 is what is left over."""
    count = size(shape) if shape is not None else None
    given = [item for item in wanted if item != -1]
    rest = size(tuple(given))
    if len(given) == len(wanted):
        return wanted
    left: Dimension = count // rest if count is not None and rest and count % rest == 0 else UNKNOWN
    if left == UNKNOWN and shape and wanted[0] == shape[0] == UNKNOWN:  # the batch stays
        count, rest = size(shape[1:]), size(tuple(given[1:]))
        left = count // rest if count is not None and rest and count % rest == 0 else UNKNOWN
    return tuple(left if item == -1 else item for item in wanted)


def _reduced(shape: Shape | None, axis: Value | None) -> Shape | None:
    """What is left of a shape when a function has gone over some of its axes."""
    axes = shape_of(axis)
    if shape is None or axes is None or any(str(item).startswith("*") for item in shape):
        return None
    gone = {item % len(shape) for item in axes if isinstance(item, int) and -len(shape) <= item < len(shape)}
    if len(gone) != len(axes):
        return None
    return tuple(item for place, item in enumerate(shape) if place not in gone)


def _reduction(args: Arguments) -> Form:
    known = literal(args.get(0))
    dtype = known.dtype if layers.is_fractional(known.dtype) else None
    if args.keywords.keys() & {"keepdims", "where", "initial", "dtype"} or len(args.positional) > 2:
        return NOTHING
    axis = args.get(1, "axis")
    return Form(_reduced(known.shape, axis) if axis is not None else (), dtype)


_NUMPY = {
    **dict.fromkeys(("ones", "zeros", "empty"), _filled("float32")),
    **dict.fromkeys(("ones_like", "zeros_like", "empty_like"), _like),
    **dict.fromkeys(("array", "asarray"), _converted),
    **dict.fromkeys(("mean", "sum", "max", "min"), _reduction),
    "reshape": _reshaped,
    "full": _full,
    "arange": _range,
}
_RANDOM = {
    **dict.fromkeys(("normal", "uniform"), _filled("float32", 1, 2)),
    "truncated_normal": _filled("float32", 3, 4),
    "randint": _filled("int32", 1, 4),
    "bernoulli": _filled("bool", 2, 99),
}
_ELEMENTWISE_NN = (
    "celu elu gelu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log_sigmoid log_softmax mish relu "
    "relu6 selu sigmoid silu soft_sign softmax softplus squareplus standardize swish tanh"
)
_ELEMENTWISE = "abs absolute clip cos exp floor log log1p nan_to_num negative round sin sqrt square tanh"

FUNCTIONS: dict[str, Callable[[Arguments], Form]] = {
    **{f"{head}.{name}": form for head in ("jax.numpy", "numpy") for name, form in _NUMPY.items()},
    **{f"jax.random.{name}": form for name, form in _RANDOM.items()},
    **{f"{head}.{name}": _same for head in ("jax.nn", "nnx") for name in _ELEMENTWISE_NN.split()},
    **{f"jax.numpy.{name}": _same for name in _ELEMENTWISE.split()},
    "jax.nn.one_hot": _one_hot,
    "nnx.one_hot": _one_hot,
    **dict.fromkeys(("nnx.avg_pool", "nnx.max_pool", "nnx.min_pool"), _pooled),
    "jax.lax.stop_gradient": _same,
}
"""What the functions return whose results are known from their arguments, by canonical name."""


def with_form(name: str, args: Arguments, result: Value) -> Value:
    """The result of a call of a library function, with what is known of it."""
    function = FUNCTIONS.get(name)
    if function is not None and isinstance(result, Array) and not args.starred:
        form = function(args)
        if form != NOTHING:
            result.form = form
        if function is _same and isinstance(given := args.get(0), Array):
            result.maker = given.maker
    return result


def keeps_shape(value: Value) -> bool:
    """Whether a function gives each array back in the same shape."""
    while isinstance(value, PartialVal):
        value = value.func
    return isinstance(value, Ext) and FUNCTIONS.get(value.name) is _same


def of_method(array: Array, name: str, args: Arguments) -> Form | None:
    """What a method of an array returns."""
    if array.form is None:
        return None
    if name == "astype":
        return Form(array.form.shape, dtype_of(args.get(0, "dtype")))
    if name == "copy":
        return array.form
    shape = array.form.shape
    if name == "reshape" and args.positional and not args.starred and not args.keywords:
        first = args.positional[0]
        items = [value for value in args.positional if value is not None]
        wanted = shape_of(first) if len(items) == 1 else tuple(_dimension(value) for value in items)
        return Form(reshaped(shape, wanted), array.form.dtype) if wanted is not None else None
    if name in {"mean", "sum", "max", "min"} and not args.keywords.keys() - {"axis"} and len(args.positional) < 2:
        axis = args.get(0, "axis")
        dtype = array.form.dtype if layers.is_fractional(array.form.dtype) else None
        return Form(_reduced(shape, axis) if axis is not None else (), dtype)
    return None


def shape_value(array: Array, level: int) -> Value:
    """``array.shape``: a tuple of numbers, where their number is known."""
    shape = array.form.shape if array.form is not None else None
    if shape is None or any(str(item).startswith("*") for item in shape):
        return SHAPE
    return Seq("tuple", [Const(item) if isinstance(item, int) else NUMBER for item in shape], level)


def of_operator(op: ast.operator, left: Value, right: Value) -> Form | None:
    """What an arithmetic operator returns for two arrays, or an array and a number."""
    if type(op).__name__ not in _ARITHMETIC:
        return None
    one, other = literal(left), literal(right)
    dtypes = {one.dtype, other.dtype}
    dtype = "float32" if "float32" in dtypes and dtypes <= {"float32", "int32", "bool"} else None
    if dtypes == {"int32"} and type(op).__name__ in _WHOLE:
        dtype = "int32"
    shape = one.shape if one.shape == other.shape else None
    if one.shape is not None and other.shape is not None and () in (one.shape, other.shape):
        shape = one.shape or other.shape
    known = Form(shape, dtype)
    return known if known != NOTHING else None


_WHOLE = frozenset({"Add", "Sub", "Mult"})
_ARITHMETIC = _WHOLE | {"Div", "Pow"}


# -- layers ------------------------------------------------------------------------------------------------------------


def sizes(obj: Obj) -> dict[str, object] | None:
    """The constructor arguments of a layer, as :mod:`nnx_rules.layers` wants them; ``None`` if they are not known."""
    if obj.args is None or "**" in obj.args:
        return None
    return {name: _plain(resolved(obj, value)) for name, value in obj.args.items()}


def resolved(obj: Obj, value: Value) -> Value:
    """An argument; where it is a parameter of the constructor that made the object, what that was given."""
    for option in options(value):
        if isinstance(option, (ParameterVal, ParameterNumber)):
            return (obj.binds or {}).get(option.name, value)
    return value


def _plain(value: Value) -> object:
    if isinstance(value, Const):
        return value.value
    return shape_of(value) or Symbol("?")


def is_original(obj: Obj) -> bool:
    """Whether a layer holds what its constructor made: nobody has put other parameters into it."""
    return isinstance(obj.cls, LibClass) and not any(attr.assignments for attr in obj.attrs.values())


class Step(NamedTuple):
    """What goes wrong in a call: the layer, where below the called one it is, what it got, and what is wrong.

    ``place`` is its position among the layers of an outermost ``Sequential``.
    """

    obj: Obj
    path: str
    given: Form
    mismatch: layers.Mismatch
    place: int = 0


def called(obj: Obj, given: Form) -> tuple[Form | None, Step | None]:
    """What a layer returns for an array, and the first layer in it that cannot take what it gets."""
    if not isinstance(obj.cls, LibClass) or not is_original(obj):
        return None, None
    if obj.cls.canonical == "nnx.Sequential":
        return _in_turn(obj, given)
    if obj.cls.canonical == "nnx.RNN":
        return _recurrent(obj, given)
    arguments = sizes(obj)
    if arguments is None:
        return None, None
    form, mismatch = layers.call(obj.cls.canonical, arguments, given)
    if mismatch is not None:
        return None, Step(obj, "", given, mismatch)
    base = (obj.args or {}).get("base_module")
    step = _beside(base, arguments, given) if isinstance(base, Obj) and obj.cls.canonical == "nnx.LoRA" else None
    return (form, None) if step is None else (None, step)


def _beside(base: Obj, arguments: Mapping[str, object], given: Form) -> Step | None:
    """What is wrong with calling the layer that LoRA adds to: it gets the same array."""
    features = arguments.get("in_features")
    shape = given.shape or ((layers.ANY, features) if isinstance(features, int) else None)
    step = called(base, Form(shape))[1] if shape is not None else None
    return step._replace(path=f".base_module{step.path}") if step is not None else None


def _recurrent(obj: Obj, given: Form) -> tuple[Form | None, Step | None]:
    """What a recurrent layer makes of a sequence: what its cell makes of each element."""
    from nnx_lint.model.attributes import attribute_of

    held = attribute_of(obj, "cell")
    cell = present(held.value) if held is not None else None
    arguments = sizes(cell) if isinstance(cell, Obj) and isinstance(cell.cls, LibClass) and is_original(cell) else None
    if arguments is None or not isinstance(cell, Obj) or not isinstance(cell.cls, LibClass):
        return None, None
    form, mismatch = layers.call(cell.cls.canonical, arguments, given, layers.CELLS)
    if mismatch is not None:
        return None, Step(cell, ".cell", given, mismatch)
    plain = obj.args is not None and "return_carry" not in obj.args
    return (form if plain else None), None


def _in_turn(obj: Obj, given: Form) -> tuple[Form | None, Step | None]:
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
        elif not keeps_shape(found):
            form = None
    return form, None


def result(obj: Obj, argument: Value | None) -> Form | None:
    """What a call of a layer returns."""
    if not isinstance(argument, Array):
        return called(obj, NOTHING)[0] if argument is not None else None
    return called(obj, argument.form or NOTHING)[0]


def bind(value: Value, owner: Obj) -> None:
    """Note of what an instance holds which arguments its constructor was given."""
    known = _arguments(owner)
    if known:
        for option in options(value):
            held = option.items if isinstance(option, Seq) else [option]
            for item in held:
                if isinstance(item, Obj):
                    item.binds = known


def _arguments(owner: Obj) -> Mapping[str, Value] | None:
    if isinstance(owner.cls, LibClass):
        return owner.binds  # a container holds what the constructor of its own owner made
    if owner.args is None:
        return None
    from nnx_lint.model.classes import method_of

    found = method_of(owner.cls, "__init__")
    given = {name: resolved(owner, value) for name, value in owner.args.items()}
    return {**(found[1].wrapped.defaults if found is not None else {}), **given}
