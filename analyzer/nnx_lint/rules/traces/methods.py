"""Methods under a transform (NNX211, NNX212, NNX213): static ``self``, bound methods kept on the object, plain classes.

What a method needs of the object decides: one that reads no data of it may be baked into a compiled function.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix
from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal, Transformed
from nnx_lint.model.classes import UserClass
from nnx_lint.model.crossing import kept_positions, literal_positions
from nnx_lint.model.events import ClassDefined, Constructed
from nnx_lint.model.modules import Env
from nnx_lint.model.unions import options
from nnx_lint.model.values import (
    Const,
    Ext,
    Obj,
    Value,
)
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.edits import add_base
from nnx_lint.rules.spelling import spelled
from nnx_lint.rules.traces.mends import method_of_class
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import walk
from nnx_rules.attributes import Kind
from nnx_rules.rules import traces as rules
from nnx_rules.transforms import DIFFERENTIATING, Arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.callables import TransformVal

DATA = frozenset({Kind.ARRAY, Kind.VARIABLE, Kind.PYTREE, Kind.REGISTERED})


def transformed_methods(cls: UserClass) -> Iterator[tuple[str, TransformVal, FuncVal]]:
    """The methods that a class body itself defines under a transform, with their functions."""
    for name, method in cls.methods.items():
        func = method.func if isinstance(method, Transformed) else None
        if not isinstance(method, Transformed) or not isinstance(func, FuncVal) or func.cls is not cls:
            continue
        if isinstance(func.node, ast.Lambda):
            continue
        named = {item.id for item in func.node.decorator_list if isinstance(item, ast.Name)}
        if named.isdisjoint({"staticmethod", "classmethod"}):
            yield name, method.applied, func


def reads_data(obj: Obj, func: FuncVal, seen: frozenset[str] = frozenset(), *, receiver: str | None = None) -> bool:
    """Whether a function certainly reads data of an object, itself or through methods of the object.

    ``receiver`` is what the function calls the object; a method calls it by its first parameter.
    """
    parameters = syntax_parameters.positional(func.node.args)
    if receiver is None and parameters:
        receiver = parameters[0].arg
    if not isinstance(obj.cls, UserClass):
        return False
    for node in walk(func.node):
        if isinstance(node, ast.Attribute) and is_name(node.value, receiver):
            attr = attribute_of(obj, node.attr)
            if attr is not None:
                if any(is_data(option) for option in options(attr.value)):
                    return True
                continue
            found = obj.cls.find(node.attr)
            method = found[1].func if found is not None and isinstance(found[1], Transformed) else found and found[1]
            if isinstance(method, FuncVal) and node.attr not in seen and reads_data(obj, method, seen | {node.attr}):
                return True
    return False


def is_data(value: Value) -> bool:
    facts = value.facts()
    return facts.kind in DATA or facts.holds_data is True


# -- static self -------------------------------------------------------------------------------------------------------


@judges(rules.STATIC_SELF, Constructed)
def static_self(event: Constructed, report: Reporter) -> None:
    for cls in event.cls.lineage:
        for name, applied, func in transformed_methods(cls):
            if applied.row.arguments is Arguments.SHARED or 0 not in kept_positions(applied, func, 1):
                continue
            # A base may leave to the classes below it what its method reads, so it is asked of each of them.
            found = event.cls.find(name)
            if found is None or found[0] is not cls:
                continue
            if (cls is event.cls and applied.row.name.startswith("nnx.")) or reads_data(event.obj, func):
                report(
                    cls.module,
                    applied.node,
                    fix=lambda applied=applied, func=func: plain_nnx_jit(applied, func),  # type: ignore[misc]
                    cls=event.cls.name,
                    path=name,
                )


def plain_nnx_jit(applied: TransformVal, func: FuncVal) -> Fix | None:
    """Write ``@nnx.jit`` for a ``jit`` whose only option makes ``self`` static."""
    module = applied.module
    namespace = next(
        (name for name, value in module.env.names.items() if isinstance(value, Ext) and value.name == "nnx"), None
    )
    if namespace is None or applied.row.name not in {"jax.jit", "nnx.jit"} or len(applied.keywords) != 1:
        return None
    if kept_positions(applied, func, 1) != {0}:
        return None
    return Fix(f"Use `@{namespace}.jit`", (Edit(module.source.span(applied.node), f"{namespace}.jit"),))


# -- transformed bound methods -----------------------------------------------------------------------------------------


@judges(rules.JITTED_METHOD_STORED, Constructed)
def stored_method(event: Constructed, report: Reporter) -> None:
    for name, attr in event.obj.attrs.items():
        value = attr.value
        if not isinstance(value, Transformed) or not attr.assignments:
            continue
        cached, func = value.applied.row.cached, value.func
        while isinstance(func, Transformed):
            func = func.func
        if cached and value.applied.row.name.startswith("jax.") and uses_instance(event.obj, func):
            place = attr.assignments[-1]
            report(
                place.module,
                place.node,
                fix=partial(method_of_class, value.applied, place, event.cls, place.module),
                cls=event.cls.name,
                path=name,
                transform=value.applied.text,
            )


def uses_instance(obj: Obj, func: Value) -> bool:
    """Whether a function that is no method of a class certainly reads data of one instance, which it captures."""
    if isinstance(func, BoundMethod):
        return func.receiver is obj and isinstance(func.func, FuncVal) and reads_data(obj, func.func)
    if not isinstance(func, FuncVal) or not isinstance(func.env, Env):
        return False
    names = [name for name, value in func.env.names.items() if value is obj]
    return any(reads_data(obj, func, receiver=name) for name in names)


# -- plain classes -----------------------------------------------------------------------------------------------------

TRACING = frozenset({"jax.jit", "nnx.jit", "jax.checkpoint", "nnx.remat", "jax.make_jaxpr", "nnx.make_jaxpr"})
"""Transforms that make a tracer of every argument that is not static."""

BATCHING = frozenset({"jax.vmap", "nnx.vmap"})

INERT_BASES = frozenset({"object", "ABC", "Generic", "Protocol"})
"""Bases by which JAX knows no more of a class."""


@judges(rules.PLAIN_SELF, ClassDefined)
def plain_self(event: ClassDefined, report: Reporter) -> None:
    cls = event.cls
    for name, applied, func in transformed_methods(cls):
        if takes_self(applied, func) and may_not_be_argument(cls):
            fix = partial(as_pytree, cls)
            report(cls.module, applied.node, fix=fix, cls=cls.name, transform=applied.text, path=name)


def as_pytree(cls: UserClass) -> Fix | None:
    """Derive a class without a base from ``nnx.Pytree``, which looks at what its attributes are."""
    name = spelled("nnx.Pytree", cls.module)
    edits = add_base(cls.module.source, cls.node, name) if name is not None else None
    return Fix(f"Derive from `{name}`", edits, Applicability.UNSAFE) if edits is not None else None


def may_not_be_argument(cls: UserClass) -> bool:
    """Whether JAX certainly refuses instances of a class as arguments."""
    if cls.is_pytree or cls.is_variable or cls.is_open or in_other_hands(cls):
        return False
    # Without a constructor, its own or that of a base, it may be a mixin for classes that JAX can take.
    own = [item for item in cls.ancestors if isinstance(item, UserClass)]
    if not any("__init__" in item.methods or item.own_dataclass for item in own):
        return False
    for item in cls.ancestors:
        if not isinstance(item, UserClass):
            return False
        if item.unknown_decorators or item.registered_container or item.registered_data or item.dynamic:
            return False
        if not REGISTERING.isdisjoint(item.methods):
            return False
        if not item.decorators.keys() <= {"dataclasses.dataclass"}:
            return False
        if not INERT_BASES.union(parent.name for parent in item.bases).issuperset(_last_names(item.node)):
            return False
    return True


def _last_names(cls: ast.ClassDef) -> list[str]:
    """What the bases of a class are called, without the modules that have them."""
    heads = (base.value if isinstance(base, ast.Subscript) else base for base in cls.bases)
    return [last_name(head) for head in heads]


def in_other_hands(cls: UserClass) -> bool:
    """Whether a class below it may be known to JAX, or the module hands one of them to a call that may register it."""
    heirs = cls.module.project.heirs.of(cls.name)
    names = {cls.name, *(heir.name for heir in heirs)}
    for heir in heirs:
        methods = {item.name for item in heir.body if isinstance(item, ast.FunctionDef)}
        if heir.decorator_list or heir.keywords or not REGISTERING.isdisjoint(methods):
            return True
        if not (names | INERT_BASES).issuperset(_last_names(heir)):
            return True
    for node in walk(cls.module.tree):
        given: list[ast.expr] = []
        if isinstance(node, (ast.List, ast.Tuple)):
            given = node.elts
        elif isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in ASKING):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if any(isinstance(item, ast.Name) and item.id in names for item in given):
            return True
    return False


ASKING = frozenset({"isinstance", "issubclass", "super"})
"""Functions that only look at a class."""

REGISTERING = frozenset({"__init_subclass__", "__jax_array__"})
"""Methods by which JAX may know a class, or those below it."""


def takes_self(applied: TransformVal, func: FuncVal) -> bool:
    """Whether a transform certainly makes ``self`` an argument that JAX has to understand."""
    row, options = applied.row.name, applied.keywords
    if not func.node.args.posonlyargs and not func.node.args.args:
        return False
    if row in TRACING:
        static = [options.get(name) for name in applied.row.static_options]
        known = all(value is None or names_or_positions(value) for value in static)
        return known and 0 not in kept_positions(applied, func, 1)
    if row in BATCHING:
        axes = options.get("in_axes")
        return axes is None or (isinstance(axes, Const) and isinstance(axes.value, int))
    if row in DIFFERENTIATING:
        positions = literal_positions(options.get("argnums"), default=(0,))
        return positions is not None and 0 in positions
    return False


def names_or_positions(value: Value) -> bool:
    """Whether a static option is written out."""
    members = getattr(value, "items", [value]) if getattr(value, "exact", True) else []
    return bool(members) and all(isinstance(item, Const) and isinstance(item.value, (int, str)) for item in members)
