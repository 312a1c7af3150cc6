"""Objects that JAX cannot take, given to its transforms: of a class that is no pytree (NNX116), or with an attribute
of a type that is data to NNX but unknown to JAX (NNX127).

Invariants: an object counts only if it was seen to be made, because a subclass of a ``pytree=False`` class is a pytree
again; an argument counts only if the transform takes it apart (static and undifferentiated arguments are not).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Fix
from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal, Transformed
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.crossing import kept_positions
from nnx_lint.model.events import Called
from nnx_lint.model.values import Ext, Obj, Value
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.callees import TRANSFORMED, TRANSFORMING
from nnx_lint.rules.edits import insert, unsafe
from nnx_lint.rules.lifting import on_nnx_call
from nnx_lint.rules.spelling import spelled
from nnx_rules import transforms
from nnx_rules.attributes import Kind, Status
from nnx_rules.rules import attributes as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.diagnostics import Related
    from nnx_lint.model.modules import Module

TAKING_APART = frozenset(
    {"jax.jit", "jax.vmap", "jax.grad", "jax.value_and_grad", "jax.jacfwd", "jax.jacrev", "jax.hessian"}
    | {"jax.checkpoint", "jax.make_jaxpr", "jax.eval_shape", "jax.vjp"}
    | {"jax.lax.scan", "jax.lax.cond", "jax.lax.while_loop", "jax.lax.fori_loop"}
)
"""The transforms of JAX that refuse a leaf which is no array."""

TREE_FUNCTIONS = {
    **{f"jax.tree.{name}": 1 if name in {"map", "reduce"} else 0 for name in ("map", "leaves", "flatten", "reduce")},
    **{
        f"jax.tree_util.tree_{name}": 1 if name in {"map", "reduce"} else 0
        for name in ("map", "leaves", "flatten", "reduce", "map_with_path")
    },
    "jax.tree.map_with_path": 1,
    "jax.tree_util.tree_map_with_path": 1,
    "jax.tree.leaves_with_path": 0,
    "jax.tree.flatten_with_path": 0,
    "jax.tree_util.tree_leaves_with_path": 0,
    "jax.tree_util.tree_flatten_with_path": 0,
}
"""The functions that go over the leaves of a tree, with the position of the tree."""


@judges_calls(rules.NON_PYTREE_INTO_JAX, *TREE_FUNCTIONS, *TRANSFORMED, *TRANSFORMING)
def non_pytree_into_jax(event: Called, report: Reporter) -> None:
    if isinstance(event.callee, Ext) and event.callee.name in TREE_FUNCTIONS:
        position = TREE_FUNCTIONS[event.callee.name]
        tree = event.args[position] if len(event.args) > position else None
        if isinstance(tree, Obj) and is_opaque(tree) and "is_leaf" not in event.keywords and len(event.args) < 3:
            harm = "takes the whole object as one leaf"
            report(event.frame.module, event.node, cls=tree.cls.name, function=event.name, harm=harm)
        return
    taken = _taken_apart(event, TAKING_APART)
    if taken is None:
        return
    text, values = taken
    found = next((obj for value in values for obj in _objects(value) if is_opaque(obj)), None)
    if found is not None:
        report(
            event.frame.module,
            event.node,
            fix=partial(on_nnx_call, event, "jax.jit"),
            cls=found.cls.name,
            function=text,
            harm="cannot take an instance",
        )


@judges_calls(rules.REGISTERED_TYPE_NOT_PYTREE, *TRANSFORMED, *TRANSFORMING)
def registered_not_pytree(event: Called, report: Reporter) -> None:
    taken = _taken_apart(event, TAKING_APART | {"nnx.jit", "nnx.vmap", "nnx.remat"})
    if taken is None:
        return
    text, values = taken
    for obj in (obj for value in values for obj in _objects(value)):
        for name in attribute_names(obj) if obj.origin is not None and not is_opaque(obj) else ():
            attr = attribute_of(obj, name)
            held = attr.value if attr is not None else None
            if attr is None or not isinstance(held, Obj) or not _is_unknown_to_jax(held):
                continue
            last = attr.assignments[-1] if attr.assignments else None
            if last is None or last.status is not Status.DATA or last.branches:
                continue
            cls = held.cls
            where: tuple[Related, ...] = ()
            fix = partial(_known_to_jax, cls, event.frame.module) if isinstance(cls, UserClass) else None
            if isinstance(cls, UserClass) and "nnx.register_data_type" in cls.decorators:
                where = (related(cls.module, cls.decorators["nnx.register_data_type"], "it is registered here"),)
            report(
                event.frame.module,
                event.node,
                related=where,
                fix=fix,
                cls=obj.cls.name,
                path=name,
                value=held.describe(),
                function=text,
            )
            return


def _known_to_jax(cls: UserClass, module: Module) -> Fix | None:
    """Register a dataclass, all of whose fields are data then."""
    name, own = spelled("jax.tree_util.register_dataclass", module), cls.decorators.get("dataclasses.dataclass")
    if name is None or own is None or cls.module is not module:
        return None
    source = module.source
    start = source.line_start(source.location(source.span(own).start)[0])
    margin = source.text[start : source.span(own).start - 1]
    return unsafe("Register it with JAX", insert(start, f"{margin}@{name}\n")) if not margin.strip() else None


def is_opaque(obj: Obj) -> bool:
    """Whether the class of an object certainly is no pytree."""
    cls = obj.cls
    if not isinstance(cls, UserClass) or not cls.is_pytree or obj.assumed or obj.origin is None:
        return False
    if cls.is_open or cls.opaque or cls.registered_container or cls.unknown_decorators:
        return False
    return cls.pytree_keyword is False or (cls.pytree_keyword is None and cls.derives_from("nnx.Object"))


def _is_unknown_to_jax(obj: Obj) -> bool:
    cls = obj.cls
    return (
        obj.kind is Kind.REGISTERED
        and isinstance(cls, UserClass)
        and not obj.assumed
        and not (cls.registered_container or cls.unknown_decorators or cls.opaque or cls.is_open)
        and not any(isinstance(item, UserClass) and "__init_subclass__" in item.methods for item in cls.ancestors)
    )


def _taken_apart(event: Called, known: frozenset[str]) -> tuple[str, list[Value]] | None:
    """The transform that a call runs, as written, and the arguments that it takes apart."""
    callee, args = event.callee, list(event.args)
    if isinstance(callee, BoundMethod) and isinstance(callee.func, Transformed):
        args = [callee.receiver, *args]
        callee = callee.func
    if isinstance(callee, Transformed):
        applied, func = callee.applied, callee.func
        # Axes and specifications may leave an argument alone.
        if applied.row.name not in known or not applied.keywords.keys().isdisjoint({"in_axes", "in_shardings"}):
            return None
        if isinstance(func, FuncVal):
            kept = kept_positions(applied, func, len(args))
        elif applied.keywords or applied.row.arguments is transforms.Arguments.SHARED:
            return None
        else:
            kept = set[int]()
        return applied.text, [item for place, item in enumerate(args) if item is not None and place not in kept]
    if isinstance(callee, Ext):
        row = transforms.find(callee.name)
        if row is not None and row.form is transforms.Form.CALL and row.name in known:
            return event.name, [item for item in args[row.operands :] if item is not None]
    return None


def _objects(value: Value, depth: int = 3) -> Iterator[Obj]:
    """The NNX objects that an argument certainly is, or holds in plain containers."""
    if isinstance(value, Obj):
        if value.cls.is_pytree:
            yield value
    elif isinstance(value, (Seq, DictVal)) and depth and value.exact:
        if isinstance(value, Seq) and value.opaque:
            return
        for item in value.items:
            yield from _objects(item[1] if isinstance(item, tuple) else item, depth - 1)
