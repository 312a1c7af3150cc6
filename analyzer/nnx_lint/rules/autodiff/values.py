"""Values that a function under a transform does not have: conditions on them (NNX465), numbers out of them (NNX470),
shapes made of them (NNX469).

While JAX traces a function, whatever it computes with `jax.numpy` is a stand-in without a value. What is known before
is not: shapes, dtypes, static arguments, NumPy's arrays, values of captured objects as they are.

Invariants: only an array that was made under the transform counts, in a statement that runs whenever the function does.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import is_stream
from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import Called, Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.loops import LOOPS
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Array, ArrayAttr, HostArray, Obj, Value
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.autodiff.standins import is_eager, standing_in
from nnx_lint.rules.bindings import constant_of
from nnx_lint.rules.program import ancestors, canonical_of, given, resolved
from nnx_lint.syntax.walk import walk
from nnx_rules.attributes import Kind
from nnx_rules.rules import autodiff as rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.events import Event
    from nnx_lint.model.frames import Frame

TRACING = frozenset({"jax.jit", "nnx.jit", "jax.checkpoint", "nnx.remat", "jax.lax.map", "nnx.scan"} | set(LOOPS))
"""Transforms under which no array has a value. Under ``jax.grad`` alone, one may have one."""


def scope_of(event: Event, value: Value | None) -> TransformVal | None:
    """The transform under which a value certainly is a stand-in."""
    frame = event.frame
    if not frame.scope or not isinstance(value, Array) or isinstance(value, HostArray) or is_eager(frame, event.node):
        return None
    for scope in frame.scope:
        found = next((each for each in (scope.applied, *scope.within) if each.row.name in TRACING), None)
        if found is not None and scope.level <= value.level:
            return found if frame.certain_within(scope) else None
    return None


# -- conditions --------------------------------------------------------------------------------------------------------


def asks_array(event: Used) -> bool:
    """Whether the truth of an array is asked for."""
    return event.what == "a condition" and isinstance(event.value, Array)


@judges(rules.TRACED_FLAG, Used, when=asks_array)
def condition_on_traced_value(event: Used, report: Reporter) -> None:
    scope, node, frame = scope_of(event, event.value), event.node, event.frame
    if scope is None or not isinstance(node, ast.expr) or _compares_with_no_number(node):
        return
    if isinstance(node, ast.BoolOp) and _names(node.values[-1]) <= _names(*node.values[:-1]):
        return  # of what it asks last, an operand before it has been asked
    runs_traced = any(frame is each.frame for each in frame.scope)
    given = isinstance(node, ast.Name) and runs_traced and node.id in _parameters(frame.func)
    if given and frame.call is not None and not _has_shape(event):
        return  # a flag that a call passes: that is said with how to make it static
    mend = "choose by the value: `jnp.where(condition, a, b)`, `nnx.cond`, `nnx.while_loop`"
    if given and isinstance(node, ast.Name):
        mend = f'make it static: `static_argnames="{node.id}"`; or {mend}'
    what = f"computed in a function under `{scope.text}`"
    report(frame.module, node, name=text_of(node), what=what, mend=mend)


def _has_shape(event: Used) -> bool:
    """Whether it is an array whose truth is asked for, and no number or flag."""
    return isinstance(event.value, Array) and event.value.form is not None and bool(event.value.form.shape)


def _names(*nodes: ast.expr) -> set[str]:
    return {item.id for node in nodes for item in walk(node) if isinstance(item, ast.Name)}


def _parameters(func: FuncVal | None) -> set[str]:
    arguments = func.node.args if func is not None else None
    return {item.arg for item in (*arguments.args, *arguments.kwonlyargs)} if arguments is not None else set()


def _compares_with_no_number(node: ast.expr) -> bool:
    """Whether a comparison has an operand that no array is compared with element by element: ``x == "auto"``."""
    operands = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
    return any(
        isinstance(item, ast.Constant) and not isinstance(item.value, (bool, int, float, complex)) for item in operands
    )


# -- numbers -----------------------------------------------------------------------------------------------------------

_MATH = """acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh degrees erf erfc exp exp2 expm1 fabs
floor fmod hypot isclose isfinite isinf isnan lgamma log log10 log1p log2 pow radians remainder sin sinh sqrt tan
tanh trunc"""
"""Functions of numbers."""

_ELEMENTS = """abs absolute add allclose append arccos arccosh arcsin arcsinh arctan arctan2 arctanh array
asanyarray asarray ascontiguousarray atleast_1d atleast_2d atleast_3d average broadcast_to cbrt ceil clip convolve
copy corrcoef cos cosh count_nonzero cov cross deg2rad degrees diag diagonal diff digitize divide dot einsum equal
exp exp2 expand_dims expm1 fabs fliplr flipud floor floor_divide fmax fmin fmod full_like greater greater_equal
histogram hypot inner interp isclose isfinite isin isinf isnan kron less less_equal linspace log log10 log1p log2
logaddexp logical_and logical_not logical_or logical_xor matmul maximum median minimum mod multiply nan_to_num
nanmax nanmean nanmedian nanmin nanstd nansum negative nonzero not_equal ones_like outer pad percentile polyval
power ptp quantile rad2deg radians ravel reciprocal remainder rint roll rot90 sign sin sinh sort sqrt square
subtract take tan tanh tensordot tile trace trapezoid tril triu true_divide trunc unique unwrap vdot where
zeros_like"""
"""Functions of NumPy that ask an array for its numbers. Many others hand over to a method of the array."""

CONVERTING = (
    *("builtins.float", "builtins.int", "builtins.bool", "builtins.complex"),
    *(f"math.{name}" for name in _MATH.split()),
    *(f"numpy.{name}" for name in _ELEMENTS.split()),
    *(f"numpy.linalg.{name}" for name in ("cholesky", "det", "eigh", "inv", "norm", "pinv", "qr", "solve", "svd")),
)
"""Functions that need the numbers in an array."""

NUMBERS = frozenset(
    {"builtins.float", "builtins.int", "builtins.complex", *(name for name in CONVERTING if name[:4] == "math")}
)
"""Those of them that take nothing but a number: whatever JAX traces is none."""

JOINING = tuple(f"numpy.{name}" for name in ("array", "asarray", "concatenate", "hstack", "stack", "vstack"))
"""Functions of NumPy that need the numbers in each array of a list."""


@judges_calls(rules.TRACED_VALUE, *CONVERTING)
def number_of_traced_value(event: Called, report: Reporter) -> None:
    if None in event.args:
        return
    given = [*zip(event.args, event.nodes, strict=False)]
    _report_first(event, given, report)
    applied = standing_in(event.frame, given[0][1]) if event.subject in NUMBERS and len(given) == 1 else None
    if applied is not None and not isinstance(given[0][0], Array):
        report(event.frame.module, given[0][1], name=text_of(given[0][1]), transform=applied.text, function=event.name)


@judges_calls(rules.TRACED_VALUE, *JOINING)
def joined_traced_values(event: Called, report: Reporter) -> None:
    """A list of arrays that NumPy makes one array of."""
    value, node = (event.args[0], event.nodes[0]) if event.args and event.nodes else (None, None)
    if isinstance(value, Seq) and value.exact and isinstance(node, (ast.List, ast.Tuple)):
        _report_first(event, zip(value.items, node.elts, strict=False), report)


def _report_first(event: Called, given: Iterable[tuple[Value | None, ast.expr]], report: Reporter) -> None:
    """Report the first of several arrays that has no value."""
    for value, node in given:
        scope = scope_of(event, value)
        if scope is not None:
            report(event.frame.module, node, name=text_of(node), transform=scope.text, function=event.name)
            return


@judges_calls(rules.TRACED_VALUE, "builtins.max", "builtins.min")
def compared_traced_values(event: Called, report: Reporter) -> None:
    """The largest of several values, which Python compares one by one."""
    if len(event.args) > 1 and None not in event.args and not event.keywords:
        _report_first(event, zip(event.args, event.nodes, strict=False), report)


def formats_array(event: Used) -> bool:
    """Whether an array is written as a number, with so many digits."""
    return event.what == "a format" and isinstance(event.value, Array)


@judges(rules.TRACED_VALUE, Used, when=formats_array)
def text_of_traced_value(event: Used, report: Reporter) -> None:
    scope, node = scope_of(event, event.value), event.node
    if scope is not None and isinstance(node, ast.expr):
        report(event.frame.module, node, name=text_of(node), transform=scope.text, function="format")


@judges(rules.TRACED_VALUE, Used, of=(Array,), when=lambda event: event.what == "a text")
def printed_traced_value(event: Used, report: Reporter) -> None:
    """A string that is made before ``jax.debug.print`` could put the value in, which is there for that alone."""
    frame, node = event.frame, event.node
    call = next((each for each in ancestors(frame.module, node) if isinstance(each, ast.Call)), None)
    text = call.args[0] if call is not None and call.args else None
    scope = scope_of(event, event.value) if isinstance(text, ast.JoinedStr) else None
    if scope is None or call is None or not isinstance(text, ast.JoinedStr) or not isinstance(node, ast.expr):
        return
    parts = (part for part in text.values if isinstance(part, ast.FormattedValue))
    if any(part.value is node for part in parts) and canonical_of(frame.env, call.func) == "jax.debug.print":
        report(frame.module, node, name=text_of(node), transform=scope.text, function='f"..."')


@judges_calls(rules.TRACED_VALUE, ".item", ".tolist")
def item_of_traced_value(event: Called, report: Reporter) -> None:
    callee, node = event.callee, event.node
    func = node.func if isinstance(node, ast.Call) else None
    scope = scope_of(event, callee.array) if isinstance(callee, ArrayAttr) and not callee.host else None
    if scope is not None and isinstance(func, ast.Attribute):
        name, transform = text_of(func.value), scope.text
        report(event.frame.module, node, name=name, transform=transform, function=f".{func.attr}()")


def is_a_place(event: Used) -> bool:
    """Whether an array says which elements are meant, by their numbers."""
    return event.what == "a place"


@judges(rules.TRACED_VALUE, Used, when=is_a_place)
def element_at_traced_place(event: Used, report: Reporter) -> None:
    """An element of a list or of an array of NumPy, which ask an index for its number; of an ``nnx.List`` NNX852 says
    the same.
    """
    node, frame = event.node, event.frame
    scope = scope_of(event, event.value)
    if scope is None or not isinstance(node, ast.Subscript):
        return
    held = present(resolved(frame.env, node.value) or UNKNOWN)
    listed = isinstance(held, Seq) and held.type in {"list", "tuple"}
    if listed or (isinstance(held, HostArray) and _stays_of_numpy(frame, node.value)):
        name, function = text_of(node.slice), f"{text_of(node.value)}[...]"
        report(frame.module, node, name=name, transform=scope.text, function=function)


def _stays_of_numpy(frame: Frame, array: ast.expr) -> bool:
    """Whether an array of NumPy certainly was no argument of the traced function, which would make it one of JAX: a
    constant of the module, or an attribute of an object that JAX cannot take apart.
    """
    if isinstance(array, ast.Name):
        return constant_of(frame.module, array) is not None
    owner = present(resolved(frame.env, array.value) or UNKNOWN) if isinstance(array, ast.Attribute) else UNKNOWN
    return isinstance(owner, Obj) and isinstance(owner.cls, UserClass) and owner.kind is Kind.OTHER


# -- sizes that depend on values --------------------------------------------------------------------------------------

COUNTING = {
    **{f"jax.ops.segment_{name}": (1, "segment_ids", 2, "num_segments") for name in ("max", "min", "prod", "sum")},
    **{f"jax.numpy.{name}": (0, "a", 1, "size") for name in ("argwhere", "flatnonzero", "nonzero")},
    "jax.numpy.bincount": (0, "x", 3, "length"),
    "jax.numpy.unique": (0, "ar", 5, "size"),
    "jax.numpy.where": (0, "condition", 3, "size"),
}
"""Functions that count, unless they are told how many: what they look at, and the option that says it, each with its
position.
"""


@judges_calls(rules.VALUE_DEPENDENT_SIZE, *COUNTING)
def size_of_traced_values(event: Called, report: Reporter) -> None:
    """A function that makes as many elements as there are values of a kind."""
    arguments, (position, name, place, option) = given(event), COUNTING[event.subject or ""]
    if arguments.starred or "**" in arguments.keywords or arguments.get(place, option) is not None:
        return
    if event.subject == "jax.numpy.where" and arguments.get(1, "x") is not None:
        return  # it chooses between two values
    counted, node = arguments.get(position, name), arguments.node_of(position, name)
    scope, call = scope_of(event, counted) or standing_in(event.frame, node), event.node
    if scope is not None and node is not None and isinstance(call, ast.Call):
        mend = f"say how many there are at the most: `{text_of(call.func)}(..., {option}=...)`"
        report(event.frame.module, node, name=text_of(node), transform=scope.text, mend=mend)


def masks(event: Used) -> bool:
    """Whether an array of flags chooses elements of an array."""
    return event.what == "a mask"


@judges(rules.VALUE_DEPENDENT_SIZE, Used, when=masks)
def size_of_mask(event: Used, report: Reporter) -> None:
    """The elements that a mask chooses."""
    scope, node = scope_of(event, event.value), event.node
    if scope is not None and isinstance(node, ast.Subscript):
        mend = f"keep all elements: `jnp.where({text_of(node.slice)}, {text_of(node.value)}, 0)`"
        report(event.frame.module, node.slice, name=text_of(node.slice), transform=scope.text, mend=mend)


# -- shapes ------------------------------------------------------------------------------------------------------------

SIZED = {
    **{f"jax.numpy.{name}": (0, "shape") for name in ("empty", "full", "ones", "zeros")},
    **{f"jax.numpy.{name}": (2, "num") for name in ("geomspace", "linspace", "logspace")},
    **{f"jax.numpy.{name}": (1, "indices_or_sections") for name in ("array_split", "split")},
    **{f"jax.ops.segment_{name}": (2, "num_segments") for name in ("max", "min", "prod", "sum")},
    **{f"jax.random.{name}": (1, "shape") for name in ("exponential", "gumbel", "laplace", "normal", "randint")},
    **{f"jax.random.{name}": (1, "shape") for name in ("truncated_normal", "uniform")},
    "jax.image.resize": (1, "shape"),
    "jax.lax.dynamic_slice": (2, "slice_sizes"),
    "jax.lax.dynamic_slice_in_dim": (2, "slice_size"),
    "jax.lax.iota": (1, "size"),
    "jax.lax.scan": (3, "length"),
    "jax.lax.top_k": (1, "k"),
    "jax.nn.one_hot": (1, "num_classes"),
    "jax.numpy.arange": (0, "start"),
    "jax.numpy.broadcast_to": (1, "shape"),
    "jax.numpy.eye": (0, "N"),
    "jax.numpy.identity": (0, "n"),
    "jax.numpy.pad": (1, "pad_width"),
    "jax.numpy.reshape": (1, "shape"),
    "jax.numpy.tile": (1, "reps"),
    "jax.random.bernoulli": (2, "shape"),
    "jax.random.choice": (2, "shape"),
    "jax.random.split": (1, "num"),
}
"""Functions whose result has the shape that an argument says: its position, and its name."""

COUNTS = frozenset({"N", "k", "length", "n", "num", "num_classes", "num_segments", "slice_size", "size", "start"})
"""Which of these are one number: a shape may be empty, and then nothing in it is traced."""

DRAWN = frozenset({".exponential", ".gumbel", ".normal", ".truncated_normal", ".uniform"})
"""Methods of random streams, which have the shape first."""


def bounds_slice(event: Used) -> bool:
    """Whether an array says where a slice begins or ends."""
    return event.what == "a bound"


@judges(rules.TRACED_SIZE, Used, when=bounds_slice)
def slice_of_traced_size(event: Used, report: Reporter) -> None:
    scope, node = scope_of(event, event.value), event.node
    sliced = next((each for each in ancestors(event.frame.module, node) if isinstance(each, ast.Subscript)), None)
    if scope is not None and isinstance(node, ast.expr) and sliced is not None:
        report(event.frame.module, node, name=text_of(node), transform=scope.text, function=text_of(sliced))


@judges_calls(rules.TRACED_SIZE, ".reshape")
def reshaped_to_traced_value(event: Called, report: Reporter) -> None:
    """The sizes that an array is to have, one by one or in a tuple."""
    node = event.node
    written = node.args if isinstance(node, ast.Call) else []
    pairs = [*zip(event.args, event.nodes, strict=False)]
    if len(written) == 1 and isinstance(written[0], (ast.Tuple, ast.List)):
        held = event.args[0] if event.args else None
        pairs = [*zip(held.items if isinstance(held, Seq) and held.exact else [], written[0].elts, strict=False)]
    for size, part in pairs:
        scope = scope_of(event, size) or (standing_in(event.frame, part) if len(pairs) > 1 else None)
        if scope is not None and not isinstance(part, ast.Starred):
            report(event.frame.module, part, name=text_of(part), transform=scope.text, function=event.name)
            return


@judges_calls(rules.TRACED_SIZE, *SIZED, *DRAWN)
def shape_of_traced_value(event: Called, report: Reporter) -> None:
    arguments, (position, name) = given(event), SIZED.get(event.subject or "", (0, "shape"))
    if event.subject in DRAWN and not (isinstance(event.callee, BoundMethod) and is_stream(event.callee)):
        return
    whole = arguments.node_of(position, name)
    for size, part in _sizes(arguments.get(position, name), whole):
        scope = scope_of(event, size)
        if scope is None and (part is not whole or name in COUNTS):
            scope = standing_in(event.frame, part)
        if scope is not None and part is not None:
            report(event.frame.module, part, name=text_of(part), transform=scope.text, function=event.name)
            return


def _sizes(shape: Value | None, node: ast.expr | None) -> Iterator[tuple[Value | None, ast.expr | None]]:
    """The sizes in a shape, or in the pairs that say how far to pad, and where they are written."""
    if not isinstance(shape, Seq) or not shape.exact:
        yield shape, node
        return
    written = node.elts if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == len(shape.items) else None
    for place, size in enumerate(shape.items):
        yield from _sizes(size, written[place] if written is not None else node)
