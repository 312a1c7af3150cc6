"""Arrays that are added or joined and do not fit together, are given a shape of another size, or asked for their truth
(NNX826).

A program that adds what a layer gives to what it got finds out at run time that the sizes differ. Invariants: sizes are
compared that are known as numbers, or by names that mean two numbers (:mod:`~nnx_lint.rules.layers.named`), and not in
a function that asks for shapes: it is not always known which way that goes.
"""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from nnx_lint.model import forms, patterns
from nnx_lint.model.arithmetic import is_fraction
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import Combined, Used, VariableWritten
from nnx_lint.model.expressions import text_of
from nnx_lint.model.operations import LOSSES, PAIRED
from nnx_lint.model.values import UNKNOWN, Array, ArrayAttr, Const, HostArray, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.alternatives import stands_beside
from nnx_lint.rules.bindings import pairs_of, value_of
from nnx_lint.rules.graphs.leaves import OF_ONE_ARRAY
from nnx_lint.rules.layers.named import are_unlike
from nnx_lint.rules.layers.origins import origins_of, shape_of
from nnx_lint.rules.program import ancestors, calls_in, canonical_of, given, is_tried, resolved
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules import axis_patterns, layers
from nnx_rules.rules import modules as rules
from nnx_rules.shape_algebra import is_whole, lettered
from nnx_rules.shapes import size
from nnx_rules.sizes import Size, differ, is_local, product_of

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.values import Value
    from nnx_rules.shapes import Dimension, Shape

WORDS: dict[type[ast.operator], str] = {
    ast.Add: "added",
    ast.Sub: "subtracted",
    ast.Mult: "multiplied",
    ast.Div: "divided",
    ast.Pow: "raised",
    ast.Mod: "divided",
    ast.FloorDiv: "divided",
    ast.BitAnd: "combined by `&`",
    ast.BitOr: "combined by `|`",
    ast.BitXor: "combined by `^`",
}
"""What an operator does, for those that go element by element."""

AGREE = "their last axes have to agree, or be 1"


@judges(rules.ARRAY_SHAPES, Combined)
def operands(event: Combined, report: Reporter) -> None:
    node, left, right = event.node, event.left, event.right
    done = WORDS.get(type(node.op)) if isinstance(node, ast.BinOp) else "compared"
    one, other = shape_of(left), shape_of(right)
    if done is None or one is None or other is None or is_prepared(event.frame, node):
        return
    if _are_unlike(one, other) or _are_named_unlike(event, one, other):
        problem = f"arrays of shapes {layers.shown(one)} and {layers.shown(other)} are {done}"
        report(event.frame.module, node, related=origins_of((left, right)), problem=problem, mend=AGREE)


def _are_named_unlike(event: Combined | Called, one: Shape, other: Shape) -> bool:
    """Whether the last axes of two arrays, such as a result and the scale of a norm, have names of two sizes, or other
    axes names of two that stand beside each other.
    """
    pairs = zip(reversed(one), reversed(other), strict=False)
    named = [(place, a, b) for place, (a, b) in enumerate(pairs) if isinstance(a, Size) and isinstance(b, Size)]
    unlike = (
        are_unlike(event.frame, event.node, a, b, one, other) for place, a, b in named if a != b and _tells(place, a, b)
    )
    return any(unlike)


def _tells(place: int, one: Size, other: Size) -> bool:
    """Whether names of sizes are to be the same along this axis, counted from the end."""
    return not place or is_local(one) is not is_local(other)


def _are_unlike(one: Shape, other: Shape) -> bool:
    """Whether two arrays certainly do not go together element by element."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    return any(differ(a, b) and 1 not in (a, b) for a, b in pairs)


@judges(rules.ARRAY_SHAPES, VariableWritten)
def written_whole(event: VariableWritten, report: Reporter) -> None:
    """An array that does not fit becomes all of what a Variable holds: ``embed.embedding[...] = vectors``."""
    if not isinstance(event.key, Const) or event.key.value is not ... or not isinstance(event.node, ast.Assign):
        return
    held, given = (forms.literal(value).shape for value in (event.target, event.value))
    if held is None or given is None or not is_whole(held) or not is_whole(given) or fits(given, held):
        return
    if is_prepared(event.frame, event.node):
        return
    shown = layers.shown(given)
    problem = f"`{event.name}` has shape {layers.shown(held)}, and is given an array of shape {shown}"
    mend = "an array of the same shape goes in, or one that is repeated along axes that it lacks or has as 1"
    places = origins_of((event.value,) if isinstance(event.value, Array) else ())
    report(event.frame.module, event.node.value, related=places, problem=problem, mend=mend)


def fits(given: Shape, held: Shape) -> bool:
    """Whether an array may go into one of another shape, as far as the sizes are known."""
    sizes = itertools.zip_longest(reversed(given), reversed(held), fillvalue=1)
    return not any(isinstance(a, int) and isinstance(b, int) and a not in (1, b) for a, b in sizes)


def _is_tuple(event: Used) -> bool:
    return event.what == "an operator" and type(event.value) is Seq and event.value.type == "tuple"


OF_NO_TUPLE = frozenset({ast.Sub, ast.Div, ast.FloorDiv, ast.Pow, ast.MatMult})
"""Operators that no tuple has: what stands beside one would have to make an array of it, as numpy's do."""


def _is_of_numpy(frame: Frame, node: ast.expr) -> bool:
    return any((canonical_of(frame.env, call.func) or "").startswith("numpy.") for call in calls_in(node))


@judges(rules.ARRAY_SHAPES, Used, of=(Seq,), when=_is_tuple)
def tuple_beside_array(event: Used, report: Reporter) -> None:
    """A tuple of arrays, such as a model returns that gives several, where each of them can be computed with."""
    node, frame, several = event.node, event.frame, event.value
    outer = next(ancestors(frame.module, node), None)
    if not isinstance(outer, ast.BinOp) or not isinstance(node, ast.expr) or not isinstance(several, Seq):
        return
    done = WORDS.get(type(outer.op), "combined")
    other = resolved(frame.env, outer.right if outer.left is node else outer.left)
    if type(outer.op) in OF_NO_TUPLE and (other is None or other is UNKNOWN):
        wrong = not _is_of_numpy(frame, outer.right if outer.left is node else outer.left)
    else:
        wrong = isinstance(other, Array) and not isinstance(other, HostArray)
    if wrong and any(isinstance(item, Array) for item in several.items) and not _is_expected(frame, node):
        count = f"a tuple of {len(several.items)}" if several.exact else "a tuple"
        beside = "with an array" if isinstance(other, Array) else "as if it were one array"
        problem = f"`{text_of(node)}` is {count}, and is {done} {beside}"
        mend = "take it apart first: `first, *others = ...`, or compute with one of them: `...[0]`"
        report(frame.module, node, problem=problem, mend=mend)


def _is_expected(frame: Frame, several: ast.expr) -> bool:
    """Whether the program takes the error, or knows the models that return several from those that return one array."""
    made = value_of(frame.module, several) if isinstance(several, ast.Name) else several
    return is_tried(frame.module, several) or stands_beside(frame, made)


def _is_indexed(event: Used) -> bool:
    return event.what == "an index" and type(event.value) is Seq and event.value.type == "tuple"


@judges(rules.ARRAY_SHAPES, Used, of=(Seq,), when=_is_indexed)
def tuple_indexed(event: Used, report: Reporter) -> None:
    """Such a tuple, of which an element is asked for along several axes: ``logits[:, -1]``."""
    node, several = event.node, event.value
    axes = node.slice if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) else None
    if not isinstance(node, ast.Subscript) or not isinstance(axes, ast.Tuple) or not isinstance(several, Seq):
        return
    if any(isinstance(item, Array) for item in several.items) and not _is_expected(event.frame, node.value):
        count = f"a tuple of {len(several.items)}" if several.exact else "a tuple"
        problem = f"`{text_of(node.value)}` is {count}, and is indexed like one array"
        mend = "take it apart first: `first, *others = ...`"
        report(event.frame.module, node, problem=problem, mend=mend)


ACTIVATIONS = ("elu", "gelu", "leaky_relu", "log_softmax", "relu", "sigmoid", "silu", "softmax", "softplus", "swish")


@judges_calls(
    rules.ARRAY_SHAPES,
    *(f"jax.numpy.{name}" for name in (*OF_ONE_ARRAY, "argmax", "argmin")),
    *(f"{package}.{name}" for package in ("jax.nn", "nnx") for name in ACTIVATIONS),
    *(f"{package}.{name}" for package in ("optax", "optax.losses") for name in LOSSES if name != "l2_loss"),
)
def several_as_one(event: Called, report: Reporter) -> None:
    """A function of one array gets such a tuple: JAX makes no array of it."""
    several = event.args[0] if event.args else None
    if type(several) is not Seq or several.type != "tuple" or not event.nodes:
        return
    if _is_expected(event.frame, event.nodes[0]):
        return
    if several.exact and any(isinstance(item, Array) for item in several.items):
        problem = f"`{event.name}` takes one array, and `{text_of(event.nodes[0])}` is a tuple of {len(several.items)}"
        mend = "take it apart first: `first, *others = ...`, or make one array of it by `jnp.stack`"
        report(event.frame.module, event.node, problem=problem, mend=mend)


@judges_calls(rules.ARRAY_SHAPES, *PAIRED, "jax.numpy.where", "numpy.where")
def side_by_side(event: Called, report: Reporter) -> None:
    """A function of several arrays that goes element by element."""
    given_arrays = [forms.held_array(value) for value in event.args if value is not None]
    arrays = [item for item in given_arrays if isinstance(item, Array)]
    shapes = [shape for item in arrays if (shape := shape_of(item)) is not None]
    for one, other in itertools.combinations(shapes, 2):
        unlike = _are_unlike(one, other) or _are_named_unlike(event, one, other)
        if unlike and not is_prepared(event.frame, event.node):
            problem = f"`{event.name}` gets arrays of shapes {layers.shown(one)} and {layers.shown(other)}"
            report(event.frame.module, event.node, related=origins_of(arrays), problem=problem, mend=AGREE)
            return


@judges_calls(rules.ARRAY_SHAPES, "()")
def carry_beside_input(event: Called, report: Reporter) -> None:
    """A recurrent cell adds what it makes of its carry and of its input: both are for as many examples."""
    cell, args = event.callee, given(event)
    if not isinstance(cell, Obj) or getattr(cell.cls, "canonical", "") not in layers.CELLS or args.starred:
        return
    carry, inputs = args.get(0, "carry"), forms.literal(args.get(1, "inputs")).shape
    held = forms.literal(carry.items[-1] if isinstance(carry, Seq) and carry.items else carry).shape
    if held and inputs and _are_unlike(held[:-1], inputs[:-1]) and not is_prepared(event.frame, event.node):
        shapes = f"a carry of shape {layers.shown(held)} and an input of shape {layers.shown(inputs)}"
        problem = f"`{event.name}` gets {shapes}, and all axes but the last are to be the same"
        mend = "give it one step of all examples: a scan goes over the first axis, and the carry is as for one step"
        report(event.frame.module, event.node, problem=problem, mend=mend)


@judges(rules.ARRAY_SHAPES, Combined)
def factors(event: Combined, report: Reporter) -> None:
    """A product of matrices whose inner axes differ."""
    if isinstance(event.node, ast.BinOp) and isinstance(event.node.op, ast.MatMult):
        _multiplied(event, event.left, event.right, report)


@judges_calls(rules.ARRAY_SHAPES, "jax.numpy.dot", "jax.numpy.matmul")
def factors_given(event: Called, report: Reporter) -> None:
    """The same, where a function makes the product."""
    left, right = (value and forms.held_array(value) for value in event.args) if len(event.args) == 2 else (None, None)
    if isinstance(left, Array) and isinstance(right, Array):
        _multiplied(event, left, right, report)


def _multiplied(event: Combined | Called, left: Array, right: Array, report: Reporter) -> None:
    one, other = shape_of(left), shape_of(right)
    if not one or not other:
        return
    inner, rows = one[-1], other[-2 if len(other) > 1 else -1]
    if are_unlike(event.frame, event.node, inner, rows, one, other) and not is_prepared(event.frame, event.node):
        problem = f"arrays of shapes {layers.shown(one)} and {layers.shown(other)} are multiplied as matrices"
        mend = f"the last axis of the first has {inner}, and there have to be as many rows in the second"
        report(event.frame.module, event.node, related=origins_of((left, right)), problem=problem, mend=mend)


def _asks_truth(event: Used) -> bool:
    return event.what == "a condition" and not event.frame.scope


@judges(rules.ARRAY_SHAPES, Used, of=(Array,), when=_asks_truth)
def truth(event: Used, report: Reporter) -> None:
    """The truth of an array of several elements; under a transform no array has one (NNX465)."""
    node, array = event.node, event.value
    shape = shape_of(array) if isinstance(array, Array) else None
    if shape is None or not is_whole(shape) or (size(shape) or 0) <= 1 or not isinstance(array, Array):
        return
    if isinstance(node, ast.expr) and not is_prepared(event.frame, node):
        problem = f"`{text_of(node)}` has the shape {layers.shown(shape)}, and a condition takes one element"
        mend = "ask for `.all()` or `.any()`, or whether it `is None`"
        report(event.frame.module, node, related=origins_of((array,)), problem=problem, mend=mend)


@judges_calls(rules.ARRAY_SHAPES, "jax.image.resize")
def resized(event: Called, report: Reporter) -> None:
    """Pictures are resized to a shape that leaves out the axes of the examples and the channels."""
    args = given(event)
    image, shape = args.get(0, "image"), args.get(1, "shape")
    old = image.form.shape if isinstance(image, Array) and image.form is not None else None
    known = old is not None and is_whole(old) and isinstance(shape, Seq) and shape.exact and not shape.shrunk
    if old is None or not known or not isinstance(shape, Seq) or len(shape.items) == len(old):
        return
    if not is_tried(event.frame.module, event.node):
        problem = f"an array of shape {layers.shown(old)} is resized, and the new shape has {len(shape.items)} axes"
        mend = "say the size of each axis, of the examples and the channels too: `(batch, height, width, channels)`"
        report(event.frame.module, event.node, problem=problem, mend=mend)


JOINING = ("jax.numpy.concatenate", "jax.numpy.concat", "jax.numpy.stack")


@judges_calls(rules.ARRAY_SHAPES, *JOINING)
def joined(event: Called, report: Reporter) -> None:
    args = given(event)
    parts, axis = args.get(0, "arrays"), args.get(1, "axis")
    if not isinstance(parts, Seq) or not parts.exact or is_prepared(event.frame, event.node):
        return
    held = map(forms.held_array, parts.items)
    arrays = [item for item in held if isinstance(item, Array)]
    shapes = [shape_of(item) for item in arrays]
    along = axis.value if isinstance(axis, Const) else 0 if axis is None and not event.keywords else None
    known = [shape for shape in shapes if shape is not None and is_whole(shape)]
    if not isinstance(along, int) or not known:
        return
    stacked = event.subject == "jax.numpy.stack"
    rank = len(known[0])
    if not stacked and () in known:
        problem = "numbers are joined, which have no axis"
        mend = "`jnp.stack` makes an array of numbers: each of them gets an axis"
        report(event.frame.module, event.node, related=origins_of(arrays), problem=problem, mend=mend)
        return
    other = next((shape for shape in known if len(shape) != rank), None)
    if other is not None:
        problem = f"arrays of shapes {layers.shown(known[0])} and {layers.shown(other)} are joined"
        mend = "give them the same number of axes: `x[None]` adds one in front, `x[..., None]` one at the end"
        report(event.frame.module, event.node, related=origins_of(arrays), problem=problem, mend=mend)
        return
    for place in range(rank):
        sizes = {shape[place] for shape in known if isinstance(shape[place], int)}
        if len(sizes) > 1 and (stacked or place != along % rank):
            done = "stacked" if stacked else f"joined along axis {along}"
            first = next(shape for shape in known if shape[place] != known[0][place])
            problem = f"arrays of shapes {layers.shown(known[0])} and {layers.shown(first)} are {done}"
            mend = f"they have to agree in axis {place}: `jnp.broadcast_to` repeats one that has size 1 there"
            report(event.frame.module, event.node, related=origins_of(arrays), problem=problem, mend=mend)
            return


@judges_calls(rules.ARRAY_SHAPES, "jax.numpy.einsum")
def equated(event: Called, report: Reporter) -> None:
    """An equation in which a letter stands for two sizes, or an operand has another number of axes."""
    text, arrays = event.args[0] if event.args else None, [forms.held_array(value) for value in event.args[1:] if value]
    equation = "".join(text.value.split()) if isinstance(text, Const) and isinstance(text.value, str) else ""
    operands = equation.partition("->")[0].split(",")
    if len(operands) != len(arrays) or len(event.args) != len(arrays) + 1:
        return
    wrong = _unfit(event, equation, operands, arrays)
    if wrong is not None and not is_prepared(event.frame, event.node):
        problem, mend = wrong
        report(event.frame.module, event.node, problem=problem, mend=mend)


def _unfit(event: Called, equation: str, operands: list[str], arrays: list[Value]) -> tuple[str, str] | None:
    """Why arrays are no operands of an equation, and what to do about it."""
    sizes: dict[str, Dimension] = {}
    shapes = [(shape_of(array) if isinstance(array, Array) else None) or () for array in arrays]
    for operand, shape in zip(operands, shapes, strict=True):
        if not shape:
            continue
        found, names = lettered(operand, shape), f"`{operand}` of `{equation}`"
        if found is None and "." not in operand and is_whole(shape) and len(operand) != len(shape):
            problem = f"an array of shape {layers.shown(shape)} is no {names}: it has another number of axes"
            return problem, "give each axis a letter"
        for name, length in (found[0] if found is not None else {}).items():
            known = sizes.setdefault(name, length) if isinstance(length, (int, Size)) else length
            if 1 not in (known, length) and are_unlike(event.frame, event.node, known, length, *shapes):
                problem = f"`{name}` is {known} and {length}: an array of shape {layers.shown(shape)} is no {names}"
                return problem, "give axes of different sizes different letters, in the order of the axes"
    return None


def shapes_of_reshape(event: Called) -> tuple[Array, Shape, Shape] | None:
    """The array that is given another shape, the shape that it has, and the one that it gets, as far as known."""
    callee, values = event.callee, [*event.args]
    if isinstance(callee, ArrayAttr) and (callee.name != "reshape" or callee.owner or callee.array is None):
        return None
    first = values.pop(0) if values and not isinstance(callee, ArrayAttr) else None
    array = callee.array if isinstance(callee, ArrayAttr) else forms.held_array(first or UNKNOWN)
    old = shape_of(array) if isinstance(array, Array) else None
    given = [value for value in values if value is not None]
    new = forms.shape_of(given[0]) if len(given) == 1 else tuple(map(forms.dimension, given))
    known = new and len(given) == len(values) and not event.keywords and new.count(-1) < 2
    return (array, old, new) if isinstance(array, Array) and known and old is not None and new is not None else None


@judges_calls(rules.ARRAY_SHAPES, ArrayAttr, "jax.numpy.reshape")
def reshaped(event: Called, report: Reporter) -> None:
    """An array that is given another shape, with another number of elements."""
    shapes = shapes_of_reshape(event)
    if shapes is None:
        return
    array, old, new = shapes
    count, rest = product_of(old), product_of(tuple(item for item in new if item != -1))
    if -1 not in new:
        wrong = are_unlike(event.frame, event.node, count, rest)
    else:
        wrong = isinstance(count, int) and isinstance(rest, int) and (not rest or count % rest > 0)
    if wrong and not is_prepared(event.frame, event.node):
        before, after = layers.shown(old), layers.shown(new)
        problem = f"an array of shape {before}, which has {count} elements, cannot have the shape {after}"
        mend = "choose sizes whose product is that number"
        report(event.frame.module, event.node, related=origins_of((array,)), problem=problem, mend=mend)
    elif new[0] == -1 and _tears_rows(old, new[1:]) and not is_prepared(event.frame, event.node):
        after = layers.shown(new)
        problem = f"a row of an array of shape {layers.shown(old)} becomes no whole part of the shape {after}"
        mend = f"choose sizes whose product is {product_of(old[1:])}"
        report(event.frame.module, event.node, related=origins_of((array,)), problem=problem, mend=mend)


def _tears_rows(old: Shape, new: Shape) -> bool:
    """Whether parts of this shape, such as images, take elements of several rows, and none of them whole: then some
    number of rows fits, and they are mixed.
    """
    row, part = product_of(old[1:]), product_of(new)
    if len(old) != 2 or len(new) < 3 or not isinstance(row, int) or not isinstance(part, int):
        return False
    ends = [product_of(new[place:]) for place in range(len(new))]
    return row > 1 and part > 1 and row % part > 0 and not any(isinstance(end, int) and end == row for end in ends)


@judges_calls(rules.ARRAY_SHAPES, "jax.numpy.broadcast_to")
def spread(event: Called, report: Reporter) -> None:
    """An array that is repeated to a shape in which one of its axes has another size, or none."""
    args = given(event)
    given_array, shape = args.get(0, "array"), args.get(1, "shape")
    array = forms.held_array(given_array) if given_array is not None else None
    old, new = shape_of(array) if isinstance(array, Array) else None, forms.shape_of(shape) if shape else None
    if (
        not isinstance(array, Array)
        or old is None
        or not is_whole(old)
        or not new
        or not is_whole(new)
        or is_tried(event.frame.module, event.node)
    ):
        return
    pairs = zip(old[::-1], new[::-1], strict=False)
    unlike = (a != 1 and are_unlike(event.frame, event.node, a, b, new) for a, b in pairs)
    if len(old) > len(new) or any(unlike):
        problem = f"an array of shape {layers.shown(old)} is to be repeated to the shape {layers.shown(new)}"
        mend = "the new shape has all axes of the old one at its end, those that were 1 with any size"
        report(event.frame.module, event.node, related=origins_of((array,)), problem=problem, mend=mend)


@judges_calls(rules.ARRAY_SHAPES, *patterns.FUNCTIONS)
def moved(event: Called, report: Reporter) -> None:
    """A pattern by which an array cannot be taken apart: ``rearrange(x, "b (h w) c -> b h w c")``."""
    args = given(event)
    array, pattern = args.get(0, "tensor"), patterns.pattern_of(args)
    if pattern is None or isinstance(array, Seq) or is_tried(event.frame.module, event.node):
        return
    shape = shape_of(array) if isinstance(array, Array) else None
    why = axis_patterns.problem(pattern, shape, patterns.sizes_of(args))
    if why is not None and (shape is None or not is_prepared(event.frame, event.node)):
        before = f" from an array of shape {layers.shown(shape)}" if shape is not None else ""
        problem = f"`{event.name}` cannot make `{args.get(1, 'pattern').value}`{before}: {why}"  # type: ignore[union-attr]
        untold = "give the sizes of all names in brackets but one: `rearrange(x, pattern, h=8)`"
        mend = untold if "neither" in why else "a pattern names each axis of the array, in order"
        report(event.frame.module, event.node, problem=problem, mend=mend)


SHAPED = {
    **{f"{head}.{name}": 0 for head in ("jax.numpy", "numpy") for name in ("empty", "full", "ones", "zeros")},
    **{f"{head}.{name}": 1 for head in ("jax.numpy", "numpy") for name in ("broadcast_to", "reshape")},
    **{f"jax.random.{name}": 1 for name in ("exponential", "gumbel", "laplace", "normal", "randint", "uniform")},
    "jax.random.bernoulli": 2,
    "jax.random.truncated_normal": 3,
}
"""Functions that are given a shape, with its position."""


@judges_calls(rules.ARRAY_SHAPES, ArrayAttr, *SHAPED)
def fractional(event: Called, report: Reporter) -> None:
    """A shape that has a number with a fraction for a size, as ``/`` gives it even where it divides."""
    method = event.callee if isinstance(event.callee, ArrayAttr) else None
    if method is not None and (method.name != "reshape" or method.owner):
        return
    args = given(event)
    place = 0 if method is not None else SHAPED[event.subject or ""]
    value, several = args.get(place, "shape"), method is not None and len(event.args) > 1
    sizes = [item for item in event.args if item] if several else value.items if isinstance(value, Seq) else [value]
    wrong = [item for item in sizes if item is not None and is_fraction(item)]
    if wrong and not event.frame.doubtful and not is_tried(event.frame.module, event.node):
        size = str(wrong[0].value) if isinstance(wrong[0], Const) else "a fraction"
        problem = f"an array cannot have {size} for the number of its elements along an axis"
        mend = "a size is a whole number: `//` divides to one, and `int(...)` makes one"
        report(event.frame.module, event.node, problem=problem, mend=mend)


def is_prepared(frame: Frame, node: ast.AST) -> bool:
    """Whether a function expects shapes of several kinds: it asks for one somewhere, or for an error."""
    return is_tried(frame.module, node) or (frame.func is not None and _asks_for_shapes(frame.func.node))


@remembered
def _asks_for_shapes(func: ast.AST) -> bool:
    asking = (node for node in walk(func) if isinstance(node, (ast.If, ast.IfExp, ast.While)))
    tests = [node.test for node in asking if not _refuses(node)]
    if any(_names_shape(test) for test in tests):
        return True
    names = {part.id for test in tests for part in walk(test) if isinstance(part, ast.Name)}
    bound = (pair for node in walk(func) for pair in pairs_of(node)) if names else ()
    return any(isinstance(target, ast.Name) and target.id in names and _is_question(value) for target, value in bound)


def _refuses(node: ast.AST) -> bool:
    """Whether a condition only ends the function for shapes that it is not for."""
    return isinstance(node, ast.If) and not node.orelse and len(node.body) == 1 and isinstance(node.body[0], ast.Raise)


def _is_question(node: ast.AST) -> bool:
    """Whether an expression is a whole shape, or what a comparison says of one: what is taken out of one is a size."""
    if isinstance(node, ast.IfExp):
        return _is_question(node.body) or _is_question(node.orelse)
    if isinstance(node, (ast.BoolOp, ast.Compare, ast.UnaryOp)):
        return _names_shape(node)
    asked = node.func if isinstance(node, ast.Call) else node
    return isinstance(asked, ast.Attribute) and asked.attr in ASKED


def _names_shape(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr in ASKED for part in walk(node))


ASKED = frozenset({"isscalar", "ndim", "shape", "size"})
"""Attributes and functions by which a program asks for the shape of an array."""
