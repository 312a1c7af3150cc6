"""Weights that come from elsewhere, with their axes the other way round (NNX828).

A ``Linear`` of NNX keeps its kernel as (inputs, outputs), PyTorch's as (outputs, inputs), and an ``Embed`` its table as
(tokens, features); for a square weight nothing fails. A weight with the sizes of its layer in the other order is one
too, whatever it comes from. Invariants: a weight is one of PyTorch by its key in a dict of weights, which ends in
``weight``; nothing is said where any function that reads such keys rearranges axes elsewhere, or where the model is one
whose PyTorch weights are (inputs, outputs) already.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import variable_value
from nnx_lint.model.events import AttributeSet, Imported, VariableWritten
from nnx_lint.model.expressions import text_of
from nnx_lint.model.forms import is_original, literal
from nnx_lint.model.symbols import size_of
from nnx_lint.model.values import UNKNOWN, Array, Obj, ParameterNumber, ParameterVal
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.layers.operands import is_prepared
from nnx_lint.rules.program import FUNCTIONS, resolved
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules import layers
from nnx_rules.rules import modules as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.values import Value
    from nnx_rules.shapes import Dimension

# -- PyTorch -----------------------------------------------------------------------------------------------------------

WEIGHT = re.compile(r"(?:^|[._])weight$")

KEY = re.compile(r"weight[\"'{\\]")
"""What a text has that names such a weight: the end of a string, or of a part of one."""

ALREADY = re.compile(r"c_attn|c_proj|c_fc|Conv1D|gpt-?2", re.IGNORECASE)
"""What names layers of PyTorch whose weights are (inputs, outputs)."""


@judges(rules.FOREIGN_WEIGHT, Imported)
def weight_of_torch(event: Imported, report: Reporter) -> None:
    module = event.frame.module
    if not module.mentions("kernel") or not module.mentions(KEY) or module.mentions(ALREADY):
        return
    for node, key in _kernels(module.tree):
        problem = (
            f"`{key}` is a weight of PyTorch, (outputs, inputs, ...), and becomes a kernel, (..., inputs, outputs)"
        )
        mend = "transpose it: `.T` for a linear layer, `.transpose(2, 3, 1, 0)` for a convolution of images"
        report(module, node, problem=problem, mend=mend)


@remembered
def _kernels(tree: ast.Module) -> list[tuple[ast.expr, str]]:
    """The weights that become kernels in a module as they are."""
    readers = [node for node in walk(tree) if isinstance(node, (*FUNCTIONS, ast.Module)) and _is_reader(node)]
    found = [each for reader in readers for each in _assigned(reader)]
    kernels = {node: key for node, value in found if (key := _key(value)) is not None}
    right = {part for node, value in found if node not in kernels for part in walk(value)}
    rearranged = any(_rearranges(part) and part not in right for reader in readers for part in walk(reader))
    return [] if rearranged else list(kernels.items())


def _is_reader(scope: ast.AST) -> bool:
    """Whether a function itself reads weights by such keys."""
    below = scope.body if isinstance(scope, ast.Module) else [scope]
    plain = (
        part for part in below if not isinstance(scope, ast.Module) or not isinstance(part, (*FUNCTIONS, ast.ClassDef))
    )
    return any(isinstance(node, ast.Constant) and _is_weight(node) for part in plain for node in walk(part))


def _is_weight(node: ast.Constant) -> bool:
    return isinstance(node.value, str) and WEIGHT.search(node.value) is not None


def _assigned(scope: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Places of kernels, and what is put there: attributes, items, and values of dicts."""
    for node in walk(scope):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and _is_kernel(node.targets[0]):
            yield node.value, node.value
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from (
                (value, value) for key, value in pairs if isinstance(key, ast.Constant) and key.value == "kernel"
            )


def _is_kernel(target: ast.expr) -> bool:
    if isinstance(target, ast.Subscript):
        item = target.slice
        named = isinstance(item, ast.Constant) and item.value == "kernel"
        return named or (isinstance(item, ast.Constant) and item.value is ... and _is_kernel(target.value))
    if isinstance(target, ast.Attribute):
        return target.attr == "kernel" or (target.attr == "value" and _is_kernel(target.value))
    return False


def _key(node: ast.expr) -> str | None:
    """The text of a weight of PyTorch that is only converted, not rearranged."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in CONVERTING:
            node = node.func.value
        elif len(node.args) >= 1 and text_of(node.func).rpartition(".")[2] in WRAPPING:
            node = node.args[0]
        else:
            return None
    if not isinstance(node, ast.Subscript):
        return None
    key = node.slice.values[-1] if isinstance(node.slice, ast.JoinedStr) and node.slice.values else node.slice
    key = key.right if isinstance(key, ast.BinOp) and isinstance(key.op, ast.Add) else key
    return text_of(node) if isinstance(key, ast.Constant) and _is_weight(key) else None


CONVERTING = frozenset({"astype", "cpu", "detach", "float", "numpy"})
WRAPPING = frozenset({"Param", "array", "asarray", "from_dlpack"})


def _rearranges(node: ast.AST) -> bool:
    return isinstance(node, ast.expr) and last_name(node) in REARRANGING


REARRANGING = frozenset(
    ["T", "einsum", "moveaxis", "mT", "permute", "permute_dims", "rearrange", "swapaxes", "transpose"]
)


# -- tables ------------------------------------------------------------------------------------------------------------


@judges(rules.FOREIGN_WEIGHT, AttributeSet)
def table_as_kernel(event: AttributeSet, report: Reporter) -> None:
    """``head.kernel = embed.embedding``: the table of tokens becomes the kernel that gives their scores."""
    tied = event.name == "kernel" and event.value_node is not None and _tied(event, event.obj, event.value_node, report)
    if not tied and event.name in TURNED:
        _turned(event, event.obj, event.name, event.value, report)


@judges(rules.FOREIGN_WEIGHT, VariableWritten)
def table_into_kernel(event: VariableWritten, report: Reporter) -> None:
    node = event.node
    place = node.targets[0] if isinstance(node, ast.Assign) else None
    target = place.value if isinstance(place, ast.Subscript) else None
    if isinstance(node, ast.Assign) and isinstance(target, ast.Attribute) and target.attr == "kernel":
        layer = resolved(event.frame.env, target.value)
        if isinstance(layer, Obj):
            _tied(event, layer, node.value, report)


def _tied(event: AttributeSet | VariableWritten, layer: Obj, given: ast.expr, report: Reporter) -> bool:
    node = given
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "value"):
        node = node.value
    table = (
        resolved(event.frame.env, node.value) if isinstance(node, ast.Attribute) and node.attr == "embedding" else None
    )
    if (
        not isinstance(table, Obj)
        or not table.cls.derives_from("nnx.Embed")
        or not layer.cls.derives_from("nnx.Linear")
    ):
        return False
    kernel, rows = (_sizes(obj, names) for obj, names in ((layer, KERNEL), (table, TABLE)))
    found = kernel is not None and rows is not None and kernel == rows[::-1] and kernel != rows and is_original(table)
    if found and rows is not None:
        name, other = text_of(given), f"({rows[1]}, {rows[0]})"
        problem = f"`{name}` has the shape ({rows[0]}, {rows[1]}), and becomes a kernel of shape {other}"
        mend = "call `attend` of the `Embed` instead of this layer: that shares the table, and transposes it"
        report(event.frame.module, event.node, problem=problem, mend=mend)
    return found


def _turned(event: AttributeSet, layer: Obj, name: str, value: Value, report: Reporter) -> None:
    """A weight that has the two sizes of its layer in the other order."""
    held = variable_value(value) if isinstance(value, Obj) and value.cls.is_variable else value
    names, shape = TURNED[name], literal(held).shape if isinstance(held, Array) else None
    made = layer.cls.made_as
    if shape is None or len(shape) != len(names) or made is None or made.canonical != OF_WEIGHTS[name]:
        return
    sizes = _shape_made(layer, names)
    if sizes is None or sizes == shape or sizes[::-1] != shape:
        return
    if is_prepared(event.frame, event.node):
        return
    problem = f"`{name}` gets an array of shape {layers.shown(shape)}, and the layer takes {layers.shown(sizes)}"
    report(event.frame.module, event.node, problem=problem, mend="the axes are the other way round: transpose it")


def _shape_made(layer: Obj, names: tuple[str, str]) -> tuple[Dimension, Dimension] | None:
    """The shape of the weight that a layer was made with."""
    one, other = (size_of((layer.args or {}).get(name) or UNKNOWN) for name in names)
    return (one, other) if one is not None and other is not None else None


KERNEL = ("in_features", "out_features")
TABLE = ("num_embeddings", "features")

TURNED = {"embedding": TABLE, "kernel": KERNEL}
"""The weights of layers, with the arguments that are their sizes."""

OF_WEIGHTS = {"embedding": "nnx.Embed", "kernel": "nnx.Linear"}


def _sizes(obj: Obj, names: tuple[str, str]) -> tuple[object, object] | None:
    """The two sizes that a layer is made with: numbers, or the parameters that say them."""
    found = [_size((obj.args or {}).get(name)) for name in names]
    return (found[0], found[1]) if None not in found else None


def _size(value: Value | None) -> object:
    if isinstance(value, (ParameterVal, ParameterNumber)):
        return value.name
    return size_of(value) if value is not None else None
