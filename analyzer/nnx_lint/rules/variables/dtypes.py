"""What is given for a dtype and is none (NNX825): names that JAX does not know, ``"bf16"`` and ``"fp32"``, as options
of PyTorch programs have them, and arrays, where their dtype is meant. A layer keeps such a name, and fails when it is
called.

Invariants: only names that numpy and JAX certainly do not know are judged, where certainly a dtype is taken. A name
with ``dtype`` in it is not taken for an array, whatever an annotation says.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Fix
from nnx_lint.model.classes import UserClass
from nnx_lint.model.forms import resolved
from nnx_lint.model.values import UNKNOWN, Array, ArrayAttr, Const, HostArray, Obj, Value
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.edits import replace
from nnx_lint.rules.layers.sizes import layers_of
from nnx_lint.rules.program import given, is_tried, keyword_node
from nnx_rules.rules import variables as rules
from nnx_rules.signatures import SIGNATURES

if TYPE_CHECKING:
    from nnx_lint.model.events import Called

SIZES = {"bf": (16,), "f": (32, 64), "fp": (16, 32, 64), "i": (32, 64), "u": (32, 64)}
"""How short names begin, and for which numbers of bits they name no dtype (``f16``, ``i8`` and ``u8`` do)."""

WORDS = {"bf": "bfloat", "f": "float", "fp": "float", "i": "int", "u": "uint"}

MEANT = {f"{start}{bits}": f"{WORDS[start]}{bits}" for start, sizes in SIZES.items() for bits in sizes}
"""The dtype that such a name stands for."""

OPTIONS = ("dtype", "param_dtype")

TAKING = tuple(name for name, item in SIGNATURES.items() if not {*item.positional, *item.keywords}.isdisjoint(OPTIONS))
"""Classes of layers that take a dtype."""

CONVERSION = "jax.lax.convert_element_type"

PLACES = {
    "dtype": 0,
    **dict.fromkeys(("array", "asarray", "empty", "ones", "ones_like", "zeros", "zeros_like"), 1),
    **dict.fromkeys(("full", "full_like"), 2),
    CONVERSION: 1,
}
"""Where functions of ``jax.numpy`` take a dtype by position, and one of ``jax.lax``."""


@judges_calls(rules.TENSOR_IDIOM, *TAKING, "jax.numpy.*", "jax.random.*", CONVERSION, ArrayAttr)
def unknown_dtype(event: Called, report: Reporter) -> None:
    callee, args, place = event.callee, given(event), -1
    if isinstance(callee, ArrayAttr):
        if callee.name != "astype" or callee.host or callee.owner or not isinstance(event.owner, Array):
            return
        place = 0
    elif event.subject is not None:
        place = PLACES.get(event.subject.removeprefix("jax.numpy."), -1)
    for name in OPTIONS:
        value = args.keywords.get(name)
        node = args.node_of(len(args.nodes), name)
        if value is None and place >= 0 and name == "dtype":
            value, node = args.get(place), args.node_of(place)
        if isinstance(value, Array) and not isinstance(value, HostArray):
            _array_given(event, node, report)
            continue
        meant = _meant(value)
        if meant is None or not isinstance(value, Const) or is_tried(event.frame.module, event.node):
            continue
        module, written = event.frame.module, node if isinstance(node, ast.Constant) else None
        fix = Fix(f"Write `{meant}`", replace(module.source, written, f'"{meant}"')) if written is not None else None
        problem = f'`"{value.value}"` is no dtype that JAX knows'
        mend = f'write `"{meant}"`, or `jnp.{meant}`'
        report(module, node or event.node, fix=fix, problem=problem, mend=mend)


def _array_given(event: Called, node: ast.expr | None, report: Reporter) -> None:
    """Report an array where a dtype is taken: ``x.astype(y)``."""
    module = event.frame.module
    if not isinstance(node, (ast.Attribute, ast.Name)) or "dtype" in ast.dump(node) or is_tried(module, event.node):
        return
    written = module.source.segment(node)
    fix = Fix(f"Write `{written}.dtype`", replace(module.source, node, f"{written}.dtype"))
    mend = f"write `{written}.dtype`: JAX takes no array in its place any more"
    report(module, node, fix=fix, problem=f"`{written}` is an array, and no dtype", mend=mend)


@judges_calls(rules.TENSOR_IDIOM, ".astype")
def array_for_dtype(event: Called, report: Reporter) -> None:
    """An array that is given to something unknown for its dtype."""
    args = given(event)
    if isinstance(args.get(0), Array) and not isinstance(args.get(0), HostArray) and len(args.positional) == 1:
        _array_given(event, args.node_of(0), report)


@judges_calls(rules.TENSOR_IDIOM, "class")
def unknown_dtype_of_instance(event: Called, report: Reporter) -> None:
    """Layers whose dtype is an argument of the constructor that makes them, or a field of a configuration."""
    owner = event.result
    if not isinstance(owner, Obj) or not isinstance(owner.cls, UserClass) or not owner.args:
        return
    for layer in layers_of(owner):
        if layer.origin is None or layer.args is None:
            continue
        module, node = layer.origin
        for name in OPTIONS:
            value = resolved(layer, layer.args.get(name, UNKNOWN))
            meant, place = _meant(value), keyword_node(node, name)
            if meant is not None and place is not None and isinstance(value, Const):
                made = (related(event.frame.module, event.node, f"this `{owner.cls.name}` gives it"),)
                problem = f'`"{value.value}"` is no dtype that JAX knows'
                report(module, place, related=made, problem=problem, mend=f'write `"{meant}"`, or `jnp.{meant}`')


def _meant(value: Value | None) -> str | None:
    """The dtype that is meant by a name which is none."""
    name = value.value if isinstance(value, Const) else None
    if not isinstance(name, str):
        return None
    lower = name.lower()
    return MEANT.get(lower) or (lower if lower != name and lower in MEANT.values() else None)
