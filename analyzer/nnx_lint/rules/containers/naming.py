"""Names that are looked up: of Variable types (NNX805), and of axes in the sharding of a Variable (NNX423)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal, Transformed
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import Called, ClassDefined
from nnx_lint.model.values import ClassVal, Const, Ext, ModuleVal, Obj, Value
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_rules.rules.modules import VARIABLE_NAME_TAKEN
from nnx_rules.rules.transforms import AXIS_NAME

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module

REGISTERED = frozenset({"params", "batch_stats", "cache", "intermediates", "perturbations"})
"""The names of collections that NNX knows from the start."""


@judges_calls(VARIABLE_NAME_TAKEN, "nnx.variable_type_from_name")
def unregistered_name(event: Called, report: Reporter) -> None:
    name = event.args[0] if event.args else None
    if not isinstance(name, Const) or not isinstance(name.value, str) or name.value in REGISTERED or event.keywords:
        return
    module = event.frame.module
    if module.mentions("register_variable_name", "allow_register", "ToNNX", "ToLinen") or _uses_others(module):
        return
    known = ", ".join(f"`{each}`" for each in sorted(REGISTERED))
    mend = f"call `nnx.register_variable_name({name.value!r}, Type)` first, or use one of {known}"
    report(event.frame.module, event.nodes[0], problem=f"no Variable type is registered as {name.value!r}", mend=mend)


def _uses_others(module: Module) -> bool:
    """Whether a file has something of another one, which may register names when it is imported."""
    return any(
        value.module is not module
        if isinstance(value, (FuncVal, ModuleVal))
        else isinstance(value, ClassVal) and isinstance(value.cls, UserClass) and value.cls.module is not module
        for value in module.env.values()
    )


@judges_calls(VARIABLE_NAME_TAKEN, "nnx.register_variable_name")
def name_taken(event: Called, report: Reporter) -> None:
    name = event.args[0] if event.args else None
    if isinstance(name, Const) and name.value in REGISTERED and "overwrite" not in event.keywords:
        problem = f"the name {name.value!r} is registered for a type of NNX"
        mend = "use another name, or pass `overwrite=True`"
        report(event.frame.module, event.nodes[0], problem=problem, mend=mend)


@judges(VARIABLE_NAME_TAKEN, ClassDefined)
def name_taken_by_decorator(event: ClassDefined, report: Reporter) -> None:
    """The same in front of a class."""
    node = event.cls.decorators.get("nnx.register_variable_name")
    if not isinstance(node, ast.Call) or node.keywords or len(node.args) != 1:
        return
    name = node.args[0]
    if isinstance(name, ast.Constant) and name.value in REGISTERED:
        problem = f"the name {name.value!r} is registered for a type of NNX"
        mend = "use another name, or pass `overwrite=True`"
        report(event.cls.module, name, problem=problem, mend=mend)


def maps(event: Called) -> bool:
    """Whether a function is called under a map that names its axis."""
    callee = event.callee
    return isinstance(callee, Transformed) and "transform_metadata" in callee.applied.keywords


@judges_calls(AXIS_NAME, Transformed, when=maps)
def axis_name_mismatch(event: Called, report: Reporter) -> None:
    callee = event.callee
    if not isinstance(callee, Transformed) or callee.applied.row.name not in {"nnx.vmap", "nnx.scan", "nnx.pmap"}:
        return
    name = _partition_name(callee.applied.keywords["transform_metadata"])
    if name is None or "in_axes" in callee.applied.keywords:
        return
    for value, node in zip(event.args, event.nodes, strict=False):
        names = _sharding(value)
        if names is None or not names or names[0] == name or isinstance(node, ast.Starred):
            continue
        path = event.frame.module.source.segment(node)
        report(
            event.frame.module, node, transform=callee.applied.text, axis=0, path=path, name=repr(name),
            names=names, found=repr(names[0]),
        )  # fmt: skip


def _partition_name(metadata: Value) -> str | None:
    for key, value in metadata.items if isinstance(metadata, DictVal) and metadata.exact else ():
        named = isinstance(key, Ext) and key.name.endswith("PARTITION_NAME")
        if named and isinstance(value, Const) and isinstance(value.value, str):
            return value.value
    return None


def _sharding(value: Value | None) -> tuple[str, ...] | None:
    """The literal names of the axes of a Variable."""
    args = value.args if isinstance(value, Obj) and value.cls.is_variable else None
    given = (args or {}).get("out_sharding")
    if not isinstance(given, Seq) or not given.exact:
        return None
    names = [item.value for item in given.items if isinstance(item, Const) and isinstance(item.value, str)]
    return tuple(names) if len(names) == len(given.items) else None
