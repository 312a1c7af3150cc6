"""Records of other libraries: classes of which attrs or pydantic makes plain ones, with fields for the annotated names.

Invariants: what checks or converts the values of its fields, takes more fields than are written, or gives them other
names, is no such record: then nothing is known of what its instances hold.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.values import UNKNOWN, Const, FieldVal, Value
from nnx_lint.syntax.walk import remembered, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.classes import UserClass
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter

    Handler = Callable[[Interpreter, Frame, Arguments, ast.AST, str], Value]

_ATTRS = frozenset(
    {f"{package}.{name}" for package in ("attr", "attrs") for name in ("define", "frozen", "mutable")}
    | {"attr.dataclass"}
)
_WHERE_ASKED = frozenset({"attr.s", "attr.attrs"})
"""Decorators that look at annotations only with ``auto_attribs=True``."""

_PYDANTIC = "pydantic.BaseModel"
TYPED_DICT = "typing.TypedDict"
MAKING = frozenset({_PYDANTIC})
"""Classes of other libraries that make records of all classes below them."""
BASES = MAKING | {TYPED_DICT}
"""Those, and the one that only says what a dict has in it."""

_METHODS = frozenset({"construct", "copy", "dict", "fields", "from_orm", "json", "parse_obj", "schema", "validate"})


def has_method(cls: UserClass, name: str) -> bool:
    """Whether a library gives its records a method of this name, or may do so."""
    return cls.record == _PYDANTIC and (name in _METHODS or name.startswith("model_"))


DUMPING = frozenset({"dict", "model_dump"})
COPYING = frozenset({"copy", "model_copy"})
"""Methods of records of pydantic that make a dict of one, and another one with an ``update``."""


def maker(name: str, options: Mapping[str, ast.expr]) -> str:
    """The decorator that makes a record of a class, by its canonical name and options; nothing if it does not."""
    asked = options.get("auto_attribs")
    whole = isinstance(asked, ast.Constant) and asked.value is True
    made = name in _ATTRS or (name in _WHERE_ASKED and whole) or name == "pydantic.dataclasses.dataclass"
    return name if made else ""


def settle(cls: UserClass) -> None:
    """Note what the body of a record says of its fields, besides their names and defaults."""
    if cls.record == _PYDANTIC:
        for field in cls.fields.values():
            field.keyword_only = True
    renamed = any(name.startswith("_") for name in cls.fields)
    computed = any(not isinstance(value, FuncVal) for value in cls.methods.values()) or "model_post_init" in cls.methods
    specified = (field.value for field in cls.fields.values() if isinstance(field.value, FieldVal))
    changed = any(not CHANGING.isdisjoint(value.keywords) for value in specified)
    if renamed or computed or changed or "extra" in _settings(cls.node):
        cls.dynamic = True


CHANGING = frozenset({"alias", "converter", "validation_alias"})
"""Options of a field after which an instance does not hold what its class is called with, by the name of the field."""


@remembered
def _settings(body: ast.AST) -> frozenset[str]:
    """The options in the body of a model of pydantic: ``model_config = ConfigDict(extra="allow")``."""
    named = {node.arg for node in walk(body) if isinstance(node, ast.keyword)}
    stored = {node.id for node in walk(body) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    written = {node.value for node in walk(body) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return frozenset(filter(None, named | stored | written))


def _specifier(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """``attrs.field(default=...)``, ``pydantic.Field(32, gt=0)``: what they say as ``dataclasses.field`` would."""
    keywords = dict(args.keywords)
    first = args.get(0)
    if first is not None:
        keywords["default"] = first
    if "factory" in keywords:
        keywords["default_factory"] = keywords.pop("factory")
    default = keywords.get("default")
    if isinstance(default, FieldVal):
        keywords.update(default.keywords)  # `default=attrs.Factory(list)`
    if isinstance(default, Const) and default.value is ...:
        del keywords["default"]  # a field that must be given
    return FieldVal(keywords, node) if isinstance(node, ast.Call) and not args.starred else UNKNOWN


def _factory(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    made, takes_self = args.get(0, "factory"), args.get(1, "takes_self")
    if made is None or takes_self is not None or not isinstance(node, ast.Call):
        return UNKNOWN
    return FieldVal({"default_factory": made}, node)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("attr.attrib", "attr.field", "attr.ib", "attrs.field", "pydantic.Field"), _specifier),
    **dict.fromkeys(("attr.Factory", "attrs.Factory"), _factory),
}
