"""What `pickle` cannot write: an optimizer, whose transformation is made of local functions, and modules that keep a
`lambda` (NNX654).

`pickle` writes a function by its name, and a function without one of a module cannot be found again. All that
training changes is in the State, which it can write. JSON knows numbers, texts, lists and dicts, and no array (NNX654).

Invariants: an object that says itself how it is pickled is not judged, nor are packages that write functions whole.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.expressions import text_of
from nnx_lint.model.states import GraphDefVal, TransformationVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import Array, HostArray, Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.program import given, is_tried
from nnx_rules.rules import checkpoints as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.values import Value

OWN = frozenset({"__getstate__", "__reduce__", "__reduce_ex__"})
"""Methods by which a class says what of its instances is pickled."""


@judges_calls(rules.CHECKPOINT_ARGUMENT, "pickle.dump", "pickle.dumps", "joblib.dump")
def pickled(event: Called, report: Reporter) -> None:
    args = given(event)
    value, node = args.get(0, "obj"), args.node_of(0, "obj")
    found = _unwritable(value) if value is not None and node is not None else None
    if found is None or node is None or is_tried(event.frame.module, event.node):
        return
    what, mend = found
    report(event.frame.module, node, problem=f"`{event.name}` gets `{text_of(node)}`, {what}", mend=mend)


def _unwritable(value: Value) -> tuple[str, str] | None:
    """Why a value, or a part of a container, cannot be pickled, and what to pickle instead."""
    value = present(value)
    if isinstance(value, (Seq, DictVal)):
        parts = value.items if isinstance(value, Seq) else [part for _, part in value.items]
        return next((found for part in parts if (found := _unwritable(part)) is not None), None)
    if isinstance(value, TransformationVal):
        return "and a transformation is made of local functions", "pickle the state of the optimizer"
    if isinstance(value, GraphDefVal):
        value = present(value.of)  # whose static attributes it has
    if not isinstance(value, Obj) or (isinstance(value.cls, UserClass) and any(map(value.cls.find, OWN))):
        return None
    mend = "write the arrays: `nnx.to_pure_dict(nnx.state(...))`, and put them into a new object when you load them"
    if value.cls.derives_from("nnx.Optimizer"):
        return "and the transformation of an optimizer is made of local functions", mend
    name = _lambda_of(value) if isinstance(value.cls, UserClass) and value.cls.is_pytree else None
    return (f"whose attribute `{name}` is a `lambda`", mend) if name is not None else None


@judges_calls(rules.CHECKPOINT_ARGUMENT, "json.dump", "json.dumps")
def written_as_json(event: Called, report: Reporter) -> None:
    """Numbers for a log, as they come out of a step: JSON knows those of Python only."""
    args = given(event)
    value, node = args.get(0, "obj"), args.node_of(0, "obj")
    if value is None or node is None or not args.keywords.keys().isdisjoint({"cls", "default", "**"}):
        return
    if _has_array(value) and not is_tried(event.frame.module, event.node):
        problem = f"`{event.name}` gets `{text_of(node)}`, in which there is an array, and JSON has none"
        report(event.frame.module, node, problem=problem, mend="write `float(x)` for a number, `x.tolist()` for more")


def _has_array(value: Value, depth: int = 4) -> bool:
    """Whether there certainly is an array, or a Variable, in a tree; a number of NumPy may be one of Python's too."""
    value = present(value)
    if isinstance(value, (Seq, DictVal)) and depth:
        parts = value.items if isinstance(value, Seq) else [part for _, part in value.items]
        return any(_has_array(part, depth - 1) for part in parts)
    if isinstance(value, HostArray):
        return value.form is not None and bool(value.form.shape)
    return isinstance(value, Array) or (isinstance(value, Obj) and value.cls.is_variable and not value.assumed)


def _lambda_of(obj: Obj) -> str | None:
    """An attribute that is a function without a name."""
    for name in attribute_names(obj):
        attr = attribute_of(obj, name)
        value = attr.value if attr is not None else None
        if isinstance(value, FuncVal) and isinstance(value.node, ast.Lambda):
            return name
    return None
