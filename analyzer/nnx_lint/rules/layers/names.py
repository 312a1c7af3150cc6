"""Weights that are put into a layer under the names that other libraries have for them (NNX825).

``layer.weight = ...`` makes one attribute more on a layer of NNX, and the layer computes with its ``kernel`` as before:
it seems to be loaded, and is not.

Invariants: the layer certainly is one of the library itself, what it gets is an array or a Variable, and nothing in the
file reads an attribute of this name; where the file reads a model of another library, such reads are of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.classes import LibClass
from nnx_lint.model.events import AttributeSet
from nnx_lint.model.expressions import text_of
from nnx_lint.model.unions import present
from nnx_lint.model.values import Array, Obj
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.program import attribute_reads
from nnx_rules.rules.variables import TENSOR_IDIOM

if TYPE_CHECKING:
    import ast

    from nnx_lint.model.modules import Module

_OF_KERNELS = {"weight": "kernel", "weights": "kernel"}
_OF_SCALES = {"beta": "bias", "gamma": "scale", "weight": "scale"}

NAMES: dict[str, dict[str, str]] = {
    **dict.fromkeys(("nnx.Conv", "nnx.ConvTranspose", "nnx.Linear", "nnx.LinearGeneral"), _OF_KERNELS),
    **dict.fromkeys(("nnx.GroupNorm", "nnx.InstanceNorm", "nnx.LayerNorm", "nnx.RMSNorm"), _OF_SCALES),
    "nnx.BatchNorm": _OF_SCALES | {"running_mean": "mean", "running_var": "var"},
    "nnx.Embed": {"weight": "embedding", "weights": "embedding"},
}
"""What other libraries call the Variables of a layer, with what NNX calls them, by class."""

FOREIGN = ("from_pretrained", "keras", "safetensors", "state_dict", "tensorflow", "torch")
"""Words of files that read models of other libraries."""


def puts_weight(event: AttributeSet) -> bool:
    """Whether a layer of the library gets an attribute that is called like a weight of another library."""
    cls = event.obj.cls
    return isinstance(cls, LibClass) and event.name in NAMES.get(cls.canonical, ())


@judges(TENSOR_IDIOM, AttributeSet, of=(Array, Obj), when=puts_weight)
def weight_by_another_name(event: AttributeSet, report: Reporter) -> None:
    cls, module, value = event.obj.cls, event.frame.module, present(event.value)
    is_weight = isinstance(value, Array) or (isinstance(value, Obj) and value.cls.is_variable)
    if not is_weight or not isinstance(cls, LibClass) or _is_read(module, event.name, event.node):
        return
    right = NAMES[cls.canonical][event.name]
    problem = f"nothing reads `{event.name}` of a `{cls.name}`: the layer computes with its `{right}` as before"
    report(module, event.node, problem=problem, mend=f"write into its Variable: `layer.{right}[...] = ...`")


def _is_read(module: Module, name: str, node: ast.AST) -> bool:
    """Whether a file reads an attribute of this name; where it reads other libraries, of an object of this text."""
    reads = attribute_reads(module.tree, name)
    if reads and module.mentions(*FOREIGN):
        target = getattr(node, "targets", [None])[0]
        base = text_of(target.value) if hasattr(target, "value") else ""
        return any(text_of(read.value) == base for read in reads)
    return bool(reads)
