"""Annotations as facts: a parameter annotated ``model: Net`` is an instance of ``Net``.

Invariants: an annotation that is not understood, or that allows more than one kind of thing, gives an unknown value.
``nnx.Data[...]`` and ``nnx.Static[...]`` are looked through by :func:`value_of` and reported by
:func:`declared_status`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import foreign
from nnx_lint.model.callables import LibraryFunction
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.frames import Frame
from nnx_lint.model.states import StateVal
from nnx_lint.model.unions import join, options
from nnx_lint.model.values import (
    NONE,
    STRING,
    UNKNOWN,
    AliasVal,
    Array,
    ClassVal,
    Const,
    Ext,
    HostArray,
    Other,
    TypeVal,
    UnionTypeVal,
    Value,
)
from nnx_rules.attributes import Status

if TYPE_CHECKING:
    from nnx_lint.model.interpreter import Interpreter

ARRAYS = frozenset(
    {
        "jax.Array",
        "jax.numpy.ndarray",
        "numpy.ndarray",
        "jaxtyping.Array",
        "chex.Array",
        "chex.PRNGKey",
        "jaxtyping.PRNGKeyArray",
    }
)
NUMBERS = frozenset({"builtins.bool", "builtins.complex", "builtins.float", "builtins.int"})
PLAIN = NUMBERS | {"builtins.bytes", "builtins.str"}
CALLABLES = frozenset({"typing.Callable", "collections.abc.Callable"})
INITIALIZERS = frozenset({"jax.nn.initializers.Initializer", "nnx.Initializer", "nnx.initializers.Initializer"})
SEQUENCES = {
    "builtins.list": "list",
    "typing.List": "list",
    "builtins.tuple": "tuple",
    "typing.Tuple": "tuple",
    "builtins.set": "set",
    "builtins.frozenset": "frozenset",
    "typing.Set": "set",
    "collections.deque": "deque",
}
DICTS = frozenset({"builtins.dict", "typing.Dict", "collections.OrderedDict"})
JAXTYPING = frozenset(
    {"Float", "Int", "Bool", "Complex", "Num", "Shaped", "Inexact", "Key", "UInt", "Integer", "Real", "PRNGKeyArray"}
)
WRAPPERS = frozenset({"typing.Annotated", "typing.Final", "typing.ClassVar", "typing.Required", "dataclasses.InitVar"})


def parse_string(node: ast.expr) -> ast.expr:
    """The expression of a string annotation; the node itself if it is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return ast.parse(node.value, mode="eval").body
        except (SyntaxError, ValueError, RecursionError):
            return node
    return node


def resolve(interp: Interpreter, frame: Frame, node: ast.expr) -> Value:
    """What the head of an annotation is: a class or a library name."""
    from nnx_lint.model.expressions import evaluate

    if isinstance(node, (ast.Name, ast.Attribute)):
        return evaluate(interp, frame, node)
    return UNKNOWN


def value_of(interp: Interpreter, frame: Frame, node: ast.expr, depth: int = 0) -> Value:
    """A value of the annotated type, created at the level of the frame."""
    node = parse_string(node)
    if depth > 6:
        return UNKNOWN
    if isinstance(node, ast.Constant) and node.value is None:
        return NONE
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return join(value_of(interp, frame, node.left, depth + 1), value_of(interp, frame, node.right, depth + 1))
    if isinstance(node, ast.Subscript):
        return _subscripted(interp, frame, node, depth)
    return plain_value(interp, frame, resolve(interp, frame, node), depth)


def plain_value(interp: Interpreter, frame: Frame, head: Value, depth: int = 0) -> Value:
    """A value of a type without parameters."""
    if isinstance(head, TypeVal):
        inner = Frame(head.module, head.env, level=frame.level)
        return value_of(interp, inner, head.node, depth + 1)
    if isinstance(head, ClassVal):
        return interp.instance(head.cls, frame.level)
    if isinstance(head, (AliasVal,)):
        return interp.instance(head.origin.cls, frame.level)
    if isinstance(head, UnionTypeVal):
        return join(*(plain_value(interp, frame, member, depth) for member in head.members))
    if isinstance(head, Const) and head.value is None:
        return NONE
    if isinstance(head, Ext):
        if head.name in ARRAYS:
            return HostArray(frame.level) if head.name == "numpy.ndarray" else Array(frame.level)
        if head.name == "builtins.str":
            return STRING
        if head.name in PLAIN or head.name in CALLABLES:
            return Other("a plain value")
        if head.name in INITIALIZERS:
            return LibraryFunction("array")
        if head.name in SEQUENCES:
            return Seq(SEQUENCES[head.name], [UNKNOWN], frame.level, exact=False)
        if head.name in DICTS:
            return DictVal([(UNKNOWN, UNKNOWN)], frame.level, exact=False)
        if head.name == "nnx.State":
            return StateVal(UNKNOWN, frame.level, UNKNOWN)
        return foreign.annotated(head.name) or UNKNOWN
    return UNKNOWN


def _subscripted(interp: Interpreter, frame: Frame, node: ast.Subscript, depth: int) -> Value:
    head = resolve(interp, frame, node.value)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if isinstance(head, ClassVal):
        return interp.instance(head.cls, frame.level)
    if isinstance(head, TypeVal):
        return plain_value(interp, frame, head, depth)
    if not isinstance(head, Ext) or not parts:
        return UNKNOWN
    name = head.name
    if name in {"nnx.Data", "nnx.Static"} or name in WRAPPERS:
        return value_of(interp, frame, parts[0], depth + 1)
    if name == "typing.Optional":
        return join(value_of(interp, frame, parts[0], depth + 1), NONE)
    if name == "typing.Union":
        return join(*(value_of(interp, frame, part, depth + 1) for part in parts))
    if name in SEQUENCES:
        elements = [value_of(interp, frame, part, depth + 1) for part in parts if not is_ellipsis(part)]
        return Seq(SEQUENCES[name], elements, frame.level, exact=False)
    if name in DICTS and len(parts) == 2:
        return DictVal([(UNKNOWN, value_of(interp, frame, parts[1], depth + 1))], frame.level, exact=False)
    if name in CALLABLES:
        return Other("a function")
    if name.startswith("jaxtyping.") and name.rpartition(".")[2] in JAXTYPING:
        inner = value_of(interp, frame, parts[0], depth + 1)
        return inner if all(isinstance(option, Array) for option in options(inner)) else UNKNOWN
    return UNKNOWN


TYPES = ARRAYS | PLAIN | CALLABLES | SEQUENCES.keys() | DICTS | {"builtins.object"}
"""Names of types of libraries."""

FORMS = SEQUENCES.keys() | DICTS | CALLABLES | WRAPPERS | {"typing.Optional", "typing.Union", "typing.Literal"}
"""Names that a subscript makes a type of."""


def is_form(value: Value) -> bool:
    """Whether a subscript of the value is a type."""
    if isinstance(value, TypeVal):
        return True
    return isinstance(value, Ext) and (value.name in FORMS or value.name.startswith("jaxtyping."))


def is_type(value: Value) -> bool:
    """Whether a value can stand in a union of types, ``None`` left out."""
    if isinstance(value, Ext):
        return value.name in TYPES
    return isinstance(value, (ClassVal, AliasVal, UnionTypeVal, TypeVal))


def is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def declared_status(interp: Interpreter, frame: Frame, node: ast.expr) -> Status | None:
    """The status that a class-level annotation gives: ``nnx.Data[T]``, ``nnx.Static[T]``, outermost."""
    node = parse_string(node)
    head = resolve(interp, frame, node.value if isinstance(node, ast.Subscript) else node)
    if isinstance(head, Ext) and head.name in {"nnx.Data", "nnx.Static"}:
        return Status.DATA if head.name == "nnx.Data" else Status.STATIC
    return None


def declared_name(frame: Frame, node: ast.expr) -> str:
    """The canonical library name of the head of an annotation, without executing anything; empty if it is none."""
    from nnx_lint.model.imports import canonical

    node = parse_string(node)
    parts: list[str] = []
    head = node.value if isinstance(node, ast.Subscript) else node
    while isinstance(head, ast.Attribute):
        parts.insert(0, head.attr)
        head = head.value
    found = frame.env.lookup(head.id) if isinstance(head, ast.Name) else None
    return canonical(".".join([found[1].name, *parts])) if found is not None and isinstance(found[1], Ext) else ""


SPECIAL_FORMS = frozenset({"typing.ClassVar", "dataclasses.InitVar", "dataclasses.KW_ONLY"})


def special_form(interp: Interpreter, frame: Frame, node: ast.expr) -> str | None:
    """What an annotation in a class body says other than a type: ``ClassVar``, ``InitVar``, ``KW_ONLY``."""
    node = parse_string(node)
    head = resolve(interp, frame, node.value if isinstance(node, ast.Subscript) else node)
    return head.name if isinstance(head, Ext) and head.name in SPECIAL_FORMS else None
