"""Classes that cannot work as a Pytree (NNX117, NNX118), and methods that stay with one instance (NNX109, NNX121)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal, Transformed
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import ClassDefined, Constructed, Returned
from nnx_lint.model.modules import Env
from nnx_lint.model.unions import options
from nnx_lint.model.values import Const, Obj, Value
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.attributes.containers import elements_of
from nnx_lint.rules.edits import remove_statement, replace
from nnx_lint.rules.program import assigned_in, canonical_of, parameters_in
from nnx_lint.rules.spelling import spelled
from nnx_lint.rules.traces.methods import uses_instance
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import walk
from nnx_rules.attributes import Status
from nnx_rules.rules import attributes as rules

if TYPE_CHECKING:
    from nnx_lint.source import SourceFile


@judges(rules.OBJECT_PYTREE_TRUE, ClassDefined)
def object_pytree_true(event: ClassDefined, report: Reporter) -> None:
    cls = event.cls
    if cls.pytree_keyword is not True or not cls.derives_from("nnx.Object"):
        return
    keyword = next(item for item in cls.node.keywords if item.arg == "pytree")
    name = spelled("nnx.Pytree", cls.module)
    direct = len(cls.bases) == 1 and not isinstance(cls.bases[0], UserClass) and len(cls.node.keywords) == 1
    fix = None
    if name is not None and direct and len(cls.node.bases) == 1:
        base, option = cls.module.source.span(cls.node.bases[0]), cls.module.source.span(keyword)
        fix = Fix(f"Derive from `{name}`", (Edit(Span(base.start, option.end), name),))
    report(cls.module, keyword, cls=cls.name, fix=fix)


@judges(rules.PYTREE_SLOTS, ClassDefined)
def pytree_slots(event: ClassDefined, report: Reporter) -> None:
    cls = event.cls
    found = cls.attributes.get("__slots__")
    if not cls.is_pytree or found is None or cls.dynamic:
        return
    value, node = found
    named = (isinstance(value, Seq) and value.items) or (isinstance(value, Const) and value.value)
    if named:
        report(cls.module, node, cls=cls.name, fix=lambda: _without(cls.module.source, cls.node, node))


def _without(source: SourceFile, body: ast.ClassDef, statement: ast.AST) -> Fix | None:
    """Remove a statement of a class body."""
    edits = remove_statement(source, body.body, statement) if isinstance(statement, ast.stmt) else None
    return Fix("Remove `__slots__`", edits) if edits is not None else None


@judges(rules.CACHED_PROPERTY, Returned)
def cached_property(event: Returned, report: Reporter) -> None:
    func = event.frame.func
    cls, node = (func.cls, func.node) if func is not None else (None, None)
    if (
        func is None
        or not isinstance(node, ast.FunctionDef)
        or not node.decorator_list
        or not isinstance(func.env, Env)
    ):
        return
    if not isinstance(cls, UserClass) or not cls.is_pytree or not event.value.facts().is_data:
        return
    heads = {canonical_of(func.env, getattr(item, "func", item)): item for item in node.decorator_list}
    name = next((each for each in CACHING if each in heads), None)
    if name is None:
        return
    # A constant that depends on sizes only stays right, whenever it is computed first.
    receiver = event.frame.receiver
    if not isinstance(receiver, Obj) or not any(
        (attr := attribute_of(receiver, name)) is not None and attr.value.facts().is_data
        for name in _read_from(node, node.args.args[0].arg if node.args.args else "")
    ):
        return
    decorator, mend, fix = heads[name], "remove the cache", None
    if name == "functools.cached_property":
        mend, edits = "use `@property`", replace(func.module.source, decorator, "property")
        fix = Fix("Use `@property`", edits, Applicability.UNSAFE)
    report(func.module, decorator, cls=cls.name, path=func.name, mend=mend, fix=fix)


CACHING = ("functools.cached_property", "functools.cache", "functools.lru_cache")
"""What keeps the value of a method as it was computed first."""


@judges(rules.BOUND_METHOD_ATTRIBUTE, Constructed)
def bound_method_attribute(event: Constructed, report: Reporter) -> None:
    obj = event.obj
    if not event.cls.checked:
        return
    for name, attr in obj.attrs.items():
        if not attr.assignments:
            continue
        last = attr.assignments[-1]
        if last.status is Status.DATA:
            continue  # what a partial of JAX holds is then a part of the object, and copied with it
        kept = [part for option in options(last.value) for part in elements_of(option)]
        if any(_keeps(part, obj) for part in kept) or _holds_module(last.value, obj):
            node = last.value_node or last.node
            report(last.module, node, cls=event.cls.name, path=name, value=last.value.describe())


def _keeps(value: Value, obj: Obj) -> bool:
    """Whether a callable holds on to this object and reads data of it: a method, a function in the constructor, or a
    partial or derivative of one. What compiles and keeps it is a mistake of its own, as is a method that NNX refuses.
    """
    if isinstance(value, PartialVal):
        given = (*value.args, *value.keywords.values()) if isinstance(value.func, FuncVal) else ()
        return _keeps(value.func, obj) or any(_is_part(item, obj) for item in given)
    if isinstance(value, Transformed):
        row, inner = value.applied.row, value.func
        compiled = row.cached and row.name.startswith("jax.")
        refused = row.rejects_bound_methods and isinstance(inner, BoundMethod)
        return not compiled and not refused and _keeps(inner, obj)
    if isinstance(value, BoundMethod) and isinstance(value.receiver, Obj) and value.receiver is not obj:
        return _is_part(value.receiver, obj) and uses_instance(value.receiver, value)
    return uses_instance(obj, value)


def _is_part(value: Value, obj: Obj) -> bool:
    """Whether a value is a Variable or module that the object holds, of which a copy has a copy; or the object."""
    if not isinstance(value, Obj) or not (value.cls.is_variable or value.cls.derives_from("nnx.Module")):
        return False
    return value is obj or any(attr.value is value for attr in obj.attrs.values())


def _holds_module(value: Value, obj: Obj) -> bool:
    """Whether a function calls a module that was made where the function is, and bound to a local name there."""
    if not isinstance(value, FuncVal) or not isinstance(value.env, Env) or value.env.kind != "function":
        return False
    called = [part.func for part in walk(value.node) if isinstance(part, ast.Call)]
    own = {*assigned_in(value.node), *parameters_in(value.node)}
    names = {func.id for func in called if isinstance(func, ast.Name)} - own
    held = [attr.value for attr in obj.attrs.values()]
    for name in names & value.env.names.keys():
        found = value.env.names[name]
        if isinstance(found, Obj) and found is not obj and found.cls.derives_from("nnx.Module") and found not in held:
            return found.facts().is_data is True and not found.assumed
    return False


def _read_from(node: ast.AST, name: str) -> set[str]:
    """The attributes of a name that are read for more than their form."""
    reads = [part for part in walk(node) if isinstance(part, ast.Attribute)]
    forms = {id(part.value) for part in reads if part.attr in {"shape", "ndim", "dtype", "size"}}
    return {part.attr for part in reads if is_name(part.value, name) and id(part) not in forms}
