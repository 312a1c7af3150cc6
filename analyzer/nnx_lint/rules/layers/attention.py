"""Attention: masks made of something else than tokens, queries whose heads come first, and queries, keys, values and
masks that do not fit each other (NNX826, NNX809); masks whose numbers do something else than to mask (NNX872).

``nnx.dot_product_attention`` takes arrays of (batch, length, heads, features), where other libraries have the heads
before the length; given such arrays it attends over the heads, and every shape fits. A mask is made of tokens, which
have one axis less than what attention gets. What is to be added to scores, 0 and a large negative number, is no mask
for it: that keeps what is not 0. Nor can weights that a softmax has made be masked by such a number.

Invariants: heads come first only where a function reshapes an array to four axes and swaps the middle ones; a mask is a
wrong one only if it certainly has an axis too many, or is made of such numbers.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model import forms
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.expressions import text_of
from nnx_lint.model.modules import Env
from nnx_lint.model.values import Array, ArrayAttr, Obj, Value
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import bound_to, constant_of, pairs_of, value_of
from nnx_lint.rules.callees import called_value
from nnx_lint.rules.construction.signatures import misplaced_mask
from nnx_lint.rules.layers.operands import is_prepared, shapes_of_reshape
from nnx_lint.rules.layers.weighing import SOFTMAX
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    assigned_in,
    calls_in,
    canonical_of,
    enclosing,
    given,
    is_tried,
    keyword_node,
    own_nodes,
    reads_of,
    results_of,
)
from nnx_lint.rules.repeating import argument
from nnx_lint.syntax.binding import is_name, is_none
from nnx_lint.syntax.walk import walk
from nnx_rules import layers
from nnx_rules.rules import modules as rules
from nnx_rules.shape_algebra import broadcast, is_whole
from nnx_rules.shapes import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_rules.shapes import Shape

# -- heads -------------------------------------------------------------------------------------------------------------


@judges_calls(rules.ARRAY_SHAPES, "nnx.dot_product_attention")
def heads_first(event: Called, report: Reporter) -> None:
    module = event.frame.module
    scope = enclosing(module, event.node, *FUNCTIONS)
    args = given(event)
    asked = [args.node_of(place, name) for place, name in ((0, "query"), (1, "key"))]
    if scope is not None and all(node is not None and _has_heads_first(event, scope, node) for node in asked):
        problem = f"`{event.name}` gets heads before positions, and attends to the heads of the same position"
        mend = "leave the swap out: it takes (batch, length, heads, features), and gives the same"
        report(module, event.node, problem=problem, mend=mend)


def _has_heads_first(event: Called, scope: ast.AST, node: ast.expr) -> bool:
    """Whether an array is reshaped to four axes and has the middle ones swapped, the last time that it is computed."""
    if isinstance(node, ast.Name):
        made = list(_definitions(scope, node.id))
        before = [value for value in made if value.lineno <= event.node.lineno]  # type: ignore[attr-defined]
        return bool(before) and _is_swapped(event, before[-1])
    return _is_swapped(event, node)


def _definitions(scope: ast.AST, name: str) -> Iterator[ast.expr]:
    """The expressions that a function binds a name to, in order; of a comprehension that is unpacked its element."""
    pairs = (pair for node in own_nodes(scope) for pair in pairs_of(node))
    for target, value in sorted(pairs, key=lambda pair: pair[0].lineno):
        if is_name(target, name):
            yield value
        elif isinstance(target, ast.Tuple) and any(is_name(item, name) for item in target.elts):
            if isinstance(value, (ast.GeneratorExp, ast.ListComp)):
                yield value.elt
            else:
                yield value


def _is_swapped(event: Called, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = (canonical_of(event.frame.env, node.func) or "").rpartition("jax.numpy.")[2]
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    array, *rest = node.args if name in SWAPS else [getattr(node.func, "value", node), *node.args]
    if (name if name in SWAPS else method) not in SWAPS or node.keywords:
        return False
    axes = rest[0].elts if len(rest) == 1 and isinstance(rest[0], (ast.Tuple, ast.List)) else rest
    numbers = [_number(item) for item in axes]
    swapped = numbers in SWAPS[name if name in SWAPS else method]
    return swapped and _is_split(event, array)


def _number(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


SWAPS: dict[str, list[list[int]]] = {
    "transpose": [[0, 2, 1, 3]],
    "permute_dims": [[0, 2, 1, 3]],
    "swapaxes": [[1, 2], [2, 1], [-3, -2], [-2, -3]],
    "moveaxis": [[1, 2], [2, 1]],
}
"""What swaps the two middle ones of four axes, and how."""


def _is_split(event: Called, node: ast.expr) -> bool:
    """Whether an expression reshapes an array to four axes."""
    if not isinstance(node, ast.Call) or node.keywords:
        return False
    if canonical_of(event.frame.env, node.func) == "jax.numpy.reshape":
        sizes = node.args[1:]
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "reshape":
        sizes = node.args
    else:
        return False
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = sizes[0].elts
    return len(sizes) == 4 and not any(isinstance(item, ast.Starred) for item in sizes)


@judges_calls(rules.ARRAY_SHAPES, ArrayAttr, "jax.numpy.reshape")
def heads_merged(event: Called, report: Reporter) -> None:
    """Heads that are merged with features while they stand before the positions: ``(b, h, t, d)`` to ``(b, t, c)``."""
    shapes = shapes_of_reshape(event) if not is_tried(event.frame.module, event.node) else None
    if shapes is None or len(shapes[1]) != 4 or len(shapes[2]) != 3:
        return
    _, old, new = shapes
    batch, heads, length, _ = old
    known = is_whole(old) and UNKNOWN not in (batch, heads, length)
    if not known or new[:2] != (batch, length) or heads in (1, length):
        return
    scope = enclosing(event.frame.module, event.node, *FUNCTIONS) if isinstance(length, int) else None
    weighs = (canonical_of(event.frame.env, call.func) in SOFTMAX for call in calls_in(scope)) if scope else ()
    if any(weighs) or not isinstance(length, int):  # numbers may be equal by chance
        after = layers.shown(new)
        problem = f"an array of shape {layers.shown(old)} becomes {after}: each position gets parts of other ones"
        mend = "put the positions before the heads first: `x.swapaxes(1, 2).reshape(...)`"
        report(event.frame.module, event.node, problem=problem, mend=mend)


# -- operands ----------------------------------------------------------------------------------------------------------


@judges_calls(rules.ARRAY_SHAPES, "jax.nn.dot_product_attention", "nnx.dot_product_attention")
def operands_of_attention(event: Called, report: Reporter) -> None:
    """Queries, keys and values of (batch, length, heads, features), and a mask of (batch, heads, length, length)."""
    args = given(event)
    shapes = [forms.literal(args.get(place, name)).shape for place, name in enumerate(("query", "key", "value"))]
    query, key, value = (
        shape if shape is not None and is_whole(shape) and len(shape) > 2 else None for shape in shapes
    )
    wrong = None
    if query and key:
        wrong = _unlike(query, key, [*range(len(query) - 3), len(query) - 1], "queries", "keys")
        heads = query[-2], key[-2]
        if wrong is None and isinstance(heads[0], int) and isinstance(heads[1], int) and heads[0] % heads[1]:
            wrong = f"queries of {heads[0]} heads, and keys of {heads[1]}"
    if wrong is None and key and value:
        wrong = _unlike(key, value, range(len(key) - 1), "keys", "values")
    mask = forms.literal(args.keywords.get("mask")).shape
    if wrong is None and query and key and mask is not None and len(query) == len(key):
        scores = (*query[:-3], query[-2], query[-3], key[-3])
        if is_whole(mask) and broadcast(mask, scores) is None:
            wrong = f"a mask of shape {layers.shown(mask)} for scores {layers.shown(scores)}"
    if wrong is not None and not args.starred and not is_prepared(event.frame, event.node):
        mend = "each is (batch, length, heads, features), and keys and values are of one length and as many heads"
        report(event.frame.module, event.node, problem=f"`{event.name}` gets {wrong}", mend=mend)


def _unlike(one: Shape, other: Shape, axes: Iterable[int], first: str, second: str) -> str | None:
    """How two arrays differ in axes in which they have to agree."""
    sizes = [(one[axis], other[axis]) for axis in axes] if len(one) == len(other) else [(len(one), len(other))]
    differ = any(isinstance(left, int) and isinstance(right, int) and left != right for left, right in sizes)
    return f"{first} of shape {layers.shown(one)} and {second} of shape {layers.shown(other)}" if differ else None


@judges_calls(rules.LAYER_ARGUMENTS, "()")
def sources_of_layer(event: Called, report: Reporter) -> None:
    """Queries and keys of a layer, which have as many axes."""
    layer = event.callee
    library = layer.cls.called_as if isinstance(layer, Obj) and len(event.args) > 1 else None
    if library is None or library.canonical != "nnx.MultiHeadAttention" or is_prepared(event.frame, event.node):
        return
    if misplaced_mask(event) is not None:
        return
    query, key = (forms.literal(value).shape if value is not None else None for value in event.args[:2])
    known = query and key and is_whole(query) and is_whole(key)
    wrong = _unlike(query, key, (), "queries", "keys") if known and query and key else None
    if wrong is not None:
        mend = "both are (batch, length, features)"
        report(event.frame.module, event.node, cls=event.name, problem=f"it gets {wrong}", mend=mend)


# -- masks -------------------------------------------------------------------------------------------------------------


class Masks(dict["Value", "Value"]):
    """The masks that look back only, each with what it was made of."""


@judges_calls(rules.ARRAY_SHAPES, "nnx.make_causal_mask")
def mask_made(event: Called, report: Reporter) -> None:
    tokens = given(event).get(0, "x")
    if tokens is not None and len(event.args) + len(event.keywords) == 1:
        report.memory(Masks)[event.result] = tokens


@judges_calls(rules.ARRAY_SHAPES, "()")
def mask_of_attention(event: Called, report: Reporter) -> None:
    layer, mask = event.callee, event.keywords.get("mask")
    inputs = event.args[0] if event.args else None
    library = layer.cls.called_as if isinstance(layer, Obj) else None
    if library is None or inputs is None or mask is None:
        return
    if library.canonical != "nnx.MultiHeadAttention" or is_tried(event.frame.module, event.node):
        return
    taken, given = forms.literal(inputs).shape, forms.literal(mask).shape
    if report.memory(Masks).get(mask) is inputs:
        problem = f"`{event.name}` gets a mask with an axis too many: its mask was made of features"
        mend = "make it of the tokens, (batch, length), or of `x[..., 0]`"
        report(event.frame.module, event.node, problem=problem, mend=mend)
    elif taken is not None and given is not None and is_whole(taken) and is_whole(given) and len(taken) > 1:
        keys = forms.literal(event.args[1]).shape if len(event.args) > 1 else taken
        long = keys[-2] if keys is not None and len(keys) > 1 and is_whole(keys) else UNKNOWN
        heads = (forms.sizes(layer) or {}).get("num_heads") if isinstance(layer, Obj) else None
        scores = (*taken[:-2], heads if isinstance(heads, int) else UNKNOWN, taken[-2], long)
        if len(given) > len(scores) or broadcast(given, scores) is None:
            problem = f"`{event.name}` gets a mask of shape {layers.shown(given)} for scores {layers.shown(scores)}"
            mend = (
                "make it of (batch, length) by `nnx.make_attention_mask(tokens, tokens)`, or give it an axis for heads"
            )
            report(event.frame.module, event.node, problem=problem, mend=mend)


# -- what a mask holds -------------------------------------------------------------------------------------------------


class Added(dict[Value, str]):
    """The masks that are to be added to scores, with how each is written."""


@judges_calls(rules.ATTENTION_MASK, "jax.numpy.where")
def mask_of_numbers(event: Called, report: Reporter) -> None:
    """Weights that are masked after the softmax, and masks to be added, which are noted."""
    args, module = given(event), event.frame.module
    sides = [(args.get(place, name), args.node_of(place, name)) for place, name in ((1, "x"), (2, "y"))]
    for (value, node), (_, other) in (sides, sides[::-1]):
        if node is None or other is None or not _is_lowest(event.frame, other):
            continue
        here = Scope(module, event.frame.env, event.frame)
        kept = _kept_triangle(here, args.node_of(0, "condition"), inverted=other is sides[0][1])
        if kept is not None and kept.leaves_nothing and isinstance(event.node, ast.expr):
            report.memory(Emptied)[event.result] = (module, event.node, kept)
        if isinstance(node, ast.Constant) and node.value == 0:
            report.memory(Added)[event.result] = text_of(event.node) if isinstance(event.node, ast.Call) else ""
        elif isinstance(value, Array) and value.squashed == "nnx.softmax" and _weighs(event):
            problem = (
                f"`{text_of(node)}` are weights that a softmax has made, and some of them become `{text_of(other)}`"
            )
            mend = "mask the scores, before the softmax: then what is masked gets the weight 0"
            report(module, event.node, problem=problem, mend=mend)


class Triangle(NamedTuple):
    """The part of a matrix on one side of a diagonal, which is ``offset`` places right of the main one and in it."""

    lower: bool
    offset: int

    @property
    def rest(self) -> Triangle:
        return Triangle(not self.lower, self.offset + (1 if self.lower else -1))

    @property
    def leaves_nothing(self) -> bool:
        """Whether the first row, or the last one, has no element in it."""
        return self.offset < 0 if self.lower else self.offset > 0


class Emptied(dict[Value, tuple["Module", ast.expr, Triangle]]):
    """Scores of which some row has nothing but large negative numbers, with where they are made and what is kept."""


@judges_calls(rules.ATTENTION_MASK, "jax.nn.softmax", "nnx.softmax")
def row_without_scores(event: Called, report: Reporter) -> None:
    """A triangle that is masked where it is to be kept, or together with the diagonal."""
    scores = given(event).get(0, "x")
    made = report.memory(Emptied).get(scores) if scores is not None else None
    if made is not None and not is_tried(event.frame.module, event.node) and not _minds_empty_rows(event.frame):
        module, where, kept = made
        ahead = "the first position nothing" if kept.lower else "each position what comes later, and the last nothing"
        problem = f"`{text_of(where)}` leaves {ahead} to attend to"
        mend = "keep what is before: `jnp.where(jnp.tril(jnp.ones((n, n), bool)), scores, -jnp.inf)`"
        report(module, where, problem=problem, mend=mend)


def _minds_empty_rows(frame: Frame) -> bool:
    """Whether a function does something about rows that have nothing to attend to."""
    calls = calls_in(frame.func.node if frame.func is not None else frame.module.tree)
    return any(isinstance(call.func, ast.Attribute) and call.func.attr in MINDING for call in calls)


MINDING = frozenset({"any", "isfinite", "isnan", "nan_to_num"})


def _kept_triangle(scope: Scope, node: ast.expr | None, *, inverted: bool, depth: int = 4) -> Triangle | None:
    """Where a condition that is a triangle is true; or false, as ``inverted``."""
    scope, made = _made_of(scope, node) if node is not None else (scope, None)
    if isinstance(made, ast.UnaryOp) and isinstance(made.op, ast.Invert) and depth:
        return _kept_triangle(scope, made.operand, inverted=not inverted, depth=depth - 1)
    if isinstance(made, ast.Compare) and len(made.ops) == 1 and depth:
        number, operator = _number(made.comparators[0]), made.ops[0]
        if number not in (0, 1) or not isinstance(operator, (ast.Eq, ast.NotEq)):
            return None
        turned = inverted is not (isinstance(operator, ast.Eq) is (number == 0))
        return _kept_triangle(scope, made.left, inverted=turned, depth=depth - 1)
    if not isinstance(made, ast.Call):
        return None
    name = canonical_of(scope.env, made.func)
    if name == "jax.numpy.logical_not" and made.args and depth:
        return _kept_triangle(scope, made.args[0], inverted=not inverted, depth=depth - 1)
    matrix = made.args[0] if made.args and name in ZEROS_AND_ONES else None
    matrix = (value_of(scope.module, matrix) or matrix) if matrix is not None else None
    if not isinstance(matrix, ast.Call) or canonical_of(scope.env, matrix.func) not in ONES:
        return None
    offset = 0 if _ends_with_last(made, matrix) else _offset(made)
    if offset is None:
        return None
    found = Triangle(name == "jax.numpy.tril", offset)
    return found.rest if inverted else found


def _offset(call: ast.Call) -> int | None:
    """Which diagonal a call says."""
    if any(item.arg is None for item in call.keywords):
        return None
    said = call.args[1] if len(call.args) > 1 else keyword_node(call, "k")
    number = 0 if said is None else _number(said)
    return number if isinstance(number, int) else None


def _ends_with_last(call: ast.Call, matrix: ast.Call) -> bool:
    """Whether a diagonal ends in the last row and column: ``tril(ones((t, s)), k=s - t)``, as beside a cache."""
    said, shape = keyword_node(call, "k"), matrix.args[0] if matrix.args else None
    said = call.args[1] if len(call.args) > 1 else said
    if not isinstance(said, ast.BinOp) or not isinstance(said.op, ast.Sub) or not isinstance(shape, ast.Tuple):
        return False
    return [ast.dump(node) for node in shape.elts] == [ast.dump(said.right), ast.dump(said.left)]


ONES = frozenset({"jax.numpy.ones", "jax.numpy.ones_like"})

WEIGHING = frozenset({"jax.numpy.dot", "jax.numpy.einsum", "jax.numpy.matmul"})


def _weighs(event: Called) -> bool:
    """Whether a sum is weighed with what a result is bound to: who looks for the largest may take any number."""
    module, env = event.frame.module, event.frame.env
    bound = bound_to(module, event.node)
    target = bound.target if bound is not None else None
    scope = enclosing(module, event.node, *FUNCTIONS)
    if not isinstance(target, ast.Name) or scope is None or is_tried(module, event.node):
        return False
    outer = (next(ancestors(module, read)) for read in reads_of(scope, target.id))
    return any(
        isinstance(each.op, ast.MatMult)
        if isinstance(each, ast.BinOp)
        else isinstance(each, ast.Call) and canonical_of(env, each.func) in WEIGHING
        for each in outer
    )


@judges_calls(rules.ATTENTION_MASK, "()", "nnx.dot_product_attention")
def mask_to_be_added(event: Called, report: Reporter) -> None:
    layer, mask = event.callee, event.keywords.get("mask")
    library = layer.cls.called_as if isinstance(layer, Obj) else None
    if mask is None or (isinstance(layer, Obj) and (library is None or library.canonical != "nnx.MultiHeadAttention")):
        return
    written = report.memory(Added).get(mask)
    if written is not None and not is_tried(event.frame.module, event.node):
        problem = (
            f"`{event.name}` gets the mask `{written}`, and keeps what is not 0: it attends to what is to be masked"
        )
        mend = "give it the condition itself: it is true where attention is to look"
        report(event.frame.module, event.node, problem=problem, mend=mend)


@judges_calls(rules.ATTENTION_MASK, "()", "jax.nn.dot_product_attention", "nnx.dot_product_attention")
def mask_of_the_others(event: Called, report: Reporter) -> None:
    """A mask that is true where attention is not to look, as PyTorch takes it: above the diagonal, at the padding."""
    node = keyword_node(event.node, "mask")
    if node is None or is_tried(event.frame.module, event.node):
        return
    layer = event.callee.cls.called_as if isinstance(event.callee, Obj) else None
    if event.subject == "()" and (layer is None or layer.canonical != "nnx.MultiHeadAttention"):
        return
    scope, made = _made_of(Scope(event.frame.module, event.frame.env, event.frame), node)
    if isinstance(made, ast.Compare):
        other = made.comparators[0]
        named = other.id if isinstance(other, ast.Name) else other.attr if isinstance(other, ast.Attribute) else ""
        known = isinstance(made.left, (ast.Attribute, ast.Name, ast.Subscript)) and PADDING.fullmatch(named)
        if len(made.ops) > 1 or not isinstance(made.ops[0], ast.Eq) or not known:
            return
        what, mend = "the padding", f"`{text_of(made.left)} != {text_of(other)}`"
    elif isinstance(made, ast.Call) and _is_above(scope, made):
        what, mend = "what comes later", "`jnp.tril(jnp.ones((n, n), bool))`, or `nnx.make_causal_mask(tokens)`"
    else:
        return
    problem = f"`{event.name}` gets the mask `{text_of(made)}`, and attends where that is true: to nothing but {what}"
    report(event.frame.module, event.node, problem=problem, mend=f"say where it is to look: {mend}")


PADDING = re.compile(r"_*pad(?:ding)?(?:_?(?:id|idx|index|symbol|tok|token|val|value))*", re.IGNORECASE)
"""Names of the token that fills up a sequence: ``PAD``, ``pad_token_id``, and not ``not_pad`` or ``pad_to``."""


class Scope(NamedTuple):
    """Where an expression stands: what its names mean, and the run that says what parameters get, if one is known."""

    module: Module
    env: Env
    frame: Frame | None = None


def _made_of(scope: Scope, node: ast.expr, depth: int = 6) -> tuple[Scope, ast.expr]:
    """What a mask is made of, without what gives it axes or another dtype; in the function that makes it, if one does,
    that returns one thing alone, and in those that hand it over.
    """
    while depth:
        depth -= 1
        inner: ast.expr | None = None
        if isinstance(node, ast.Name):
            inner = value_of(scope.module, node) or constant_of(scope.module, node)
            frame = scope.frame if inner is None else None
            code = frame.func.node if frame is not None and frame.func is not None else None
            if frame is not None and frame.caller is not None and code is not None and not assigned_in(code)[node.id]:
                inner = argument(frame, node.id)  # `None` for what is no parameter
                if inner is not None:
                    scope = Scope(frame.caller.module, frame.caller.env, frame.caller)
        elif isinstance(node, ast.Subscript):
            inner = node.value if any(is_none(part) for part in walk(node.slice)) else None
        elif isinstance(node, ast.Call):
            func = called_value(scope.env, node.func)
            plain = isinstance(func, FuncVal) and (func.is_static or not func.decorators)
            results = results_of(func.node) if plain and isinstance(func, FuncVal) else []
            if len(results) == 1 and isinstance(func, FuncVal) and isinstance(func.env, Env):
                scope, inner = Scope(func.module, func.env), results[0]
            elif isinstance(node.func, ast.Attribute):
                inside = canonical_of(scope.env, node.func) in RESHAPING and node.args
                inner = node.args[0] if inside else node.func.value if node.func.attr in {"astype", "reshape"} else None
        if inner is None:
            return scope, node
        node = inner
    return scope, node


RESHAPING = frozenset(
    f"jax.numpy.{name}" for name in ("array", "asarray", "broadcast_to", "expand_dims", "repeat", "reshape", "tile")
)
"""What gives a mask axes, and leaves what it says."""


def _is_above(scope: Scope, node: ast.Call) -> bool:
    """Whether a call makes a matrix of ones above the diagonal, which is not among them."""
    found = _kept_triangle(scope, node, inverted=False)
    return found is not None and not found.lower and found.offset > 0


@judges_calls(rules.ATTENTION_MASK, "jax.nn.softmax", "nnx.softmax")
def scores_of_no_number(event: Called, report: Reporter) -> None:
    """Scores to which zeros and ones are added, times infinity: of 0 that makes NaN."""
    node, module = given(event).node_of(0, "x"), event.frame.module
    scope = enclosing(module, event.node, *FUNCTIONS) or module.tree
    for part in _added(scope, node, event.node) if node is not None else ():
        for side, other in ((part.left, part.right), (part.right, part.left)):
            if _is_lowest(event.frame, side, only_infinite=True) and _counts(event.frame, other):
                problem = f"`{text_of(part)}` is NaN wherever `{text_of(other)}` is 0, as that times infinity is"
                mend = "choose: `jnp.where(mask, scores, -jnp.inf)`"
                report(module, part, problem=problem, mend=mend)
                return


def _added(scope: ast.AST, node: ast.expr, before: ast.AST, depth: int = 3) -> Iterator[ast.BinOp]:
    """The products in a sum, those in what its names were bound to last included."""
    if isinstance(node, ast.Name) and depth:
        line: int = getattr(before, "lineno", 0)
        made = [each for each in _definitions(scope, node.id) if (each.end_lineno or line) < line]
        yield from _added(scope, made[-1], made[-1], depth - 1) if made else ()
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield from _added(scope, node.left, before, depth)
        yield from _added(scope, node.right, before, depth)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield node


INFINITE = frozenset({"jax.numpy.inf", "math.inf", "numpy.inf"})
ZEROS_AND_ONES = frozenset({"jax.numpy.tril", "jax.numpy.triu"})
LOW = 1e4
"""How far below zero a score has to be to count for nothing."""


def _is_lowest(frame: Frame, node: ast.expr, *, only_infinite: bool = False) -> bool:
    """Whether an expression is a number that no score reaches."""
    node = value_of(frame.module, node) or constant_of(frame.module, node) or node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = node.operand.value if isinstance(node.operand, ast.Constant) else None
        low = isinstance(number, (int, float)) and number >= LOW and not only_infinite
        return low or canonical_of(frame.env, node.operand) in INFINITE
    if isinstance(node, ast.Call) and canonical_of(frame.env, node.func) == "builtins.float" and node.args:
        return isinstance(node.args[0], ast.Constant) and node.args[0].value == "-inf"
    least = isinstance(node, ast.Attribute) and node.attr == "min" and not only_infinite
    made = node.value if isinstance(node, ast.Attribute) else None
    return least and isinstance(made, ast.Call) and canonical_of(frame.env, made.func) == "jax.numpy.finfo"


def _counts(frame: Frame, node: ast.expr) -> bool:
    """Whether an expression certainly gives zeros and ones: ``1 - mask``, a comparison, a triangle."""
    node = value_of(frame.module, node) or node
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return isinstance(node.left, ast.Constant) and node.left.value == 1
    if isinstance(node, ast.Call):
        return canonical_of(frame.env, node.func) in ZEROS_AND_ONES
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert))
