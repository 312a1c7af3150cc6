"""From an abstract instance of a Module to its structure.

The instance comes from :mod:`~nnx_lint.drawing.concrete`, which ran its constructor. What is read here is what it
holds, with the shapes of built-in layers from :mod:`nnx_rules.shapes`.

Invariants: nothing is executed here; a Module of which more may be there than is drawn says so; at most ``MAX_NODES``
nodes are read, however a program unfolds.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.drawing.concrete import Mapped, ShapedArray
from nnx_lint.drawing.structure import CONTAINERS, Kind, Node, Path, Place
from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import ClassBase, LibClass, UserClass, library_class
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.leaves import Identities, Identity
from nnx_lint.model.members import is_present, is_settled
from nnx_lint.model.strings import HOLE
from nnx_lint.model.unions import UnionVal, options
from nnx_lint.model.values import (
    Array,
    ClassVal,
    Const,
    Ext,
    Obj,
    Other,
    TagVal,
    Value,
)
from nnx_lint.syntax.walk import remembered
from nnx_rules import shapes
from nnx_rules.attributes import Status
from nnx_rules.rules.attributes import STATIC_CONTAINER_FILLED
from nnx_rules.shapes import Form, Symbol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Assignment, Attr

MAX_NODES = 20_000
MAX_NESTING = 60
"""How deep objects and containers are followed."""

MAX_TEXT = 200
"""How much of an expression is kept."""

BARE = frozenset({"nnx.Module", "nnx.Object", "nnx.Pytree"})
"""Classes that hold nothing by themselves."""

ADAPTERS = frozenset({"nnx.LoRA", "nnx.LoRALinear"})
"""Classes that hold more than their table only where they get a ``base_module``."""


class Reader:
    """Reads the structure of one instance."""

    def __init__(self) -> None:
        self.nodes = 0
        self.identities = Identities()
        self.places: dict[Identity, Path] = {}
        self.inside: list[tuple[ClassBase, Path]] = []

    def root(self, obj: Obj) -> Node:
        """The structure of an instance."""
        return self.read(obj, obj.cls.name, (), obj)

    def read(self, value: Value, name: str, path: Path, owner: Value) -> Node:
        """The structure of a value that an object or container holds."""
        self.nodes += 1
        if self.nodes > MAX_NODES or len(path) > MAX_NESTING:
            return Node(name, path, Kind.UNKNOWN, "…", note="too much to draw")
        if isinstance(value, TagVal) and value.value is not None:
            value = value.value
        if isinstance(value, UnionVal):
            return self.choice(value, name, path, owner)
        if isinstance(value, Obj):
            return self.object(value, name, path, owner)
        if isinstance(value, (Seq, DictVal)):
            return self.container(value, name, path)
        if isinstance(value, Array):
            return Node(name, path, Kind.ARRAY, "Array", form=array_form(value))
        if isinstance(value, (Const, Other, FuncVal, ClassVal, Ext)):
            return Node(name, path, Kind.VALUE, _shown(value))
        return Node(name, path, Kind.UNKNOWN, "?")

    def choice(self, value: UnionVal, name: str, path: Path, owner: Value) -> Node:
        """One of several values; one of which the other is ``None`` is that one."""
        known = [option for option in value.options if not (isinstance(option, Const) and option.value is None)]
        if len(known) == 1:
            node = self.read(known[0], name, path, owner)
            node.optional = "or None"
            return node
        node = Node(name, path, Kind.CHOICE, "one of")
        node.children = [
            self.read(option, "or" if index else "either", path, owner) for index, option in enumerate(known)
        ]
        if all(child.kind is Kind.VALUE for child in node.children):
            return Node(name, path, Kind.VALUE, " or ".join(dict.fromkeys(map(_shown, value.options))))
        node.optional = "or None" if len(known) < len(value.options) else ""
        return node

    def object(self, obj: Obj, name: str, path: Path, owner: Value) -> Node:
        """An instance: a Variable, an NNX object, or something of another class."""
        cls = obj.cls
        node = Node(name, path, Kind.MODULE, cls.name, qualified=qualified(cls), defined=_defined(cls))
        node.arguments = _arguments(obj)
        if not cls.is_pytree and not cls.is_variable:
            node.kind = Kind.UNKNOWN if cls.is_open or cls.registered_container else Kind.VALUE
            return node
        key = self.identities.of(obj, owner)
        first = self.places.get(key)
        if first is not None:
            node.kind, node.target = Kind.REFERENCE, first
            return node
        self.places[key] = path
        if cls.is_variable:
            node.kind = Kind.VARIABLE
            node.parameter = cls.derives_from("nnx.Param")
            node.form = variable_form(obj)
            return node
        same = [at for other, at in self.inside if other is cls]
        if isinstance(cls, UserClass) and same and obj.template is not None:  # its constructor did not run again
            node.kind, node.target, node.recursive = Kind.REFERENCE, same[-1], True
            return node
        self.inside.append((cls, path))
        self.attributes(node, obj, path)
        self.inside.pop()
        if _is_mapped(obj):
            node.note = "made by a map: its arrays have an axis more"
            for item in node.walk():
                item.form = Form(None, item.form.dtype)
        return node

    def attributes(self, node: Node, obj: Obj, path: Path) -> None:
        """The attributes of an NNX object, and why there may be others."""
        cls = obj.cls
        node.note = _why_open(cls, obj)
        if cls.derives_from("nnx.Rngs"):
            self.streams(node, obj)
            return
        for name in attribute_names(obj):
            attr = attribute_of(obj, name)
            if attr is None:
                continue
            if name == "[]":
                node.children += self.elements(attr.value, path, obj)
            elif not name.startswith("_pytree__"):
                node.children.append(self.attribute(attr, name, (*path, name), obj))
                if HOLE in name:  # a name that is computed
                    node.children[-1].count = None
        library = cls.made_as
        if library is not None and library.canonical not in CONTAINERS:
            node.children += _possible_members(obj, library, path)
            _shape_members(node, library, constructor_arguments(obj))

    def attribute(self, attr: Attr, name: str, path: Path, owner: Obj) -> Node:
        node = self.read(attr.value, name, path, owner)
        last = attr.assignments[-1] if attr.assignments else None
        node.status = last.status if last is not None else attr.declared
        if node.status is None:
            node.status = Status.UNKNOWN if node.kind is Kind.UNKNOWN else _plain_status(node)
        if attr.first is not None:
            node.assigned = place_of(attr.first.module, attr.first.node)
        if last is not None:
            node.rule = next((item.broken.code for item in attr.assignments if item.broken is not None), "")
            plain = node.kind in {Kind.VALUE, Kind.UNKNOWN} and not _is_written(attr.value)
            if plain and len(attr.assignments) == 1:
                node.type = _source(last) or node.type
            if not node.rule and node.status is Status.STATIC and _was_filled(attr.value, node):
                node.rule = STATIC_CONTAINER_FILLED.code
            if not _certain(attr.assignments):
                node.optional = node.optional or "maybe"
        return node

    def streams(self, node: Node, rngs: Obj) -> None:
        """The streams of an ``nnx.Rngs``, where its arguments name them."""
        names = [name for name in rngs.args or () if name not in {"**", "tag"}]
        for name in names:
            node.children.append(
                Node(name, (*node.path, name), Kind.MODULE, "RngStream", "nnx.RngStream", status=Status.DATA)
            )
        if rngs.args is None or "**" in rngs.args:
            node.note = "its streams are not known"

    def elements(self, value: Value, path: Path, owner: Value) -> list[Node]:
        """The elements of a list: each of them, or what any number of them may be."""
        if not isinstance(value, Seq):
            return [Node("[…]", (*path, None), Kind.UNKNOWN, "?", count=None)]
        if value.exact:
            return [self.read(item, f"[{index}]", (*path, index), owner) for index, item in enumerate(value.items)]
        some = [self.read(item, "[…]", (*path, None), owner) for item in value.items]
        for node in some:
            node.count = None
        return some

    def container(self, value: Seq | DictVal, name: str, path: Path) -> Node:
        """A plain container; one without objects in it is a value."""
        if isinstance(value, Seq):
            node = Node(name, path, Kind.CONTAINER, value.type)
            node.children = self.elements(value, path, value)
        else:
            node = Node(name, path, Kind.CONTAINER, "dict")
            for key, item in value.items:
                part = key.value if isinstance(key, Const) and isinstance(key.value, (str, int)) else None
                label = f"[{part!r}]" if part is not None else "[…]"
                node.children.append(self.read(item, label, (*path, part), value))
                node.children[-1].count = 1 if part is not None else None
            if not value.exact and not value.items:
                node.note = "its entries are not known"
        if node.children and all(child.kind is Kind.VALUE for child in node.children):
            return Node(name, path, Kind.VALUE, _short(_literal(value)))
        return node


# -- facts
# -----------------------------------------------------------------------------------------------------------------


def qualified(cls: ClassBase) -> str:
    """The full name of a class."""
    return cls.canonical if isinstance(cls, LibClass) else repr(cls)


def _defined(cls: ClassBase) -> Place | None:
    return place_of(cls.module, cls.node) if isinstance(cls, UserClass) else None


def place_of(module: Module, node: ast.AST) -> Place:
    """Where something is written."""
    source = module.source
    position = source.position(source.line_start(min(getattr(node, "lineno", 1), source.line_count)))
    return Place(source.path, position.row, position.cell)


def _why_open(cls: ClassBase, obj: Obj) -> str:
    """Why an instance may hold more than is drawn."""
    if obj.args is None and obj.origin is None and obj.assumed:
        return "known by an annotation: it may be of a class below"
    if isinstance(cls, LibClass):
        drawn = cls.canonical in {*CONTAINERS, "nnx.Rngs"} or not _may_hold_more(obj, cls)
        return "" if drawn else "there may be more"
    if not isinstance(cls, UserClass):
        return ""
    if obj.assumed:
        return "its constructor was not followed to the end"
    if cls.is_open:
        return "a base class is not known: there may be more"
    if cls.opaque:
        return "its class decides itself what it holds: there may be more"
    library = cls.library
    if library is None or library.canonical in BARE:
        return ""
    if cls.made_as is not None and obj.args is None:
        return "the caller decides what it holds"
    drawn = library.canonical in CONTAINERS or (cls.made_as is not None and not _may_hold_more(obj, library))
    return "" if drawn else f"what {library.canonical} holds is not drawn"


def _is_mapped(obj: Obj) -> bool:
    """Whether a map made the object, so that its arrays have an axis more."""
    while not isinstance(obj, Mapped) and obj.template is not None:
        obj = obj.template
    return isinstance(obj, Mapped)


def _may_hold_more(obj: Obj, cls: LibClass) -> bool:
    """Whether an instance of a library class may hold something that is not drawn."""
    if is_settled(obj):
        return False
    if cls.spec is None or cls.spec.members is None:
        return True
    if cls.spec.more:
        return cls.canonical not in ADAPTERS or obj.args is None or "base_module" in obj.args
    return any(len(member.path) > 1 and is_present(member, obj.args) is None for member in cls.spec.members)


def _plain_status(node: Node) -> Status:
    return Status.STATIC if node.kind is Kind.VALUE else Status.DATA


def _certain(assignments: Sequence[Assignment]) -> bool:
    """Whether every run makes one of these assignments: one is unconditional, or both arms of a branch have one."""
    arms: dict[int, set[int]] = {}
    for item in assignments:
        if not item.branches:
            return not item.doubtful or len(assignments) > 1
        if len(item.branches) == 1:
            arms.setdefault(item.branches[0][0], set()).add(item.branches[0][1])
    return any(len(seen) > 1 for seen in arms.values())


def _arguments(obj: Obj) -> str:
    """The source text of constructor arguments, without random streams."""
    node = obj.node
    if not isinstance(node, ast.Call):
        return ""
    texts = [_text(item) for item in node.args]
    texts += [
        f"{item.arg}={_text(item.value)}" if item.arg else f"**{_text(item.value)}"
        for item in node.keywords
        if item.arg != "rngs"
    ]
    return _short(", ".join(texts))


def _was_filled(value: Value, node: Node) -> bool:
    """Whether data was put into a plain container after it had become static."""
    data = {Kind.MODULE, Kind.VARIABLE, Kind.ARRAY}
    return isinstance(value, (Seq, DictVal)) and bool(value.fills) and any(item.kind in data for item in node.walk())


def _is_written(value: Value) -> bool:
    """Whether what is shown for a value says more than its source text."""
    named = (Const, Obj, ClassVal, Ext)
    return all(
        isinstance(option, named) or (isinstance(option, FuncVal) and option.name.isidentifier())
        for option in options(value)
    )


def _source(assignment: Assignment) -> str:
    return _short(_text(assignment.value_node)) if assignment.value_node is not None else ""


@remembered
def _text(node: ast.expr) -> str:
    """An expression as it is written, in one line."""
    return ast.unparse(node)


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _shown(value: Value) -> str:
    if isinstance(value, Const):
        return _short(repr(value.value))
    if isinstance(value, ClassVal):
        return value.cls.name
    if isinstance(value, FuncVal):
        return value.name
    return value.name.removeprefix("builtins.") if isinstance(value, Ext) else value.describe()


def _literal(value: Value, depth: int = 4) -> str:
    """A container of plain values, as it would be written."""
    if depth and isinstance(value, Seq):
        items = ", ".join(_literal(item, depth - 1) for item in value.items) + ("" if value.exact else ", …")
        if value.type == "tuple":
            return f"({items},)" if len(value.items) == 1 and value.exact else f"({items})"
        return f"[{items}]" if value.type == "list" else f"{value.type}({items})"
    if depth and isinstance(value, DictVal):
        return "{" + ", ".join(f"{_literal(key, 0)}: {_literal(item, depth - 1)}" for key, item in value.items) + "}"
    return _shown(value)


# -- shapes
# -----------------------------------------------------------------------------------------------------------------


def constructor_arguments(obj: Obj) -> dict[str, object]:
    """The arguments of a library class as :func:`nnx_rules.shapes.form` takes them."""
    spec = obj.cls.made_as.spec if obj.cls.made_as is not None else None
    written = _written(obj.node, spec.init if spec is not None else ())
    found: dict[str, object] = {}
    for name, value in (obj.args or {}).items():
        found[name] = plain(value, written.get(name, ""))
    if obj.args is None or "**" in obj.args:
        for name in {*(spec.init if spec is not None else ()), "param_dtype"}:
            found.setdefault(name, shapes.UNKNOWN)
    return found


def _written(node: ast.AST | None, names: tuple[str, ...]) -> dict[str, str]:
    """The source text of arguments by name."""
    if not isinstance(node, ast.Call):
        return {}
    texts = {name: _text(item) for name, item in zip(names, node.args, strict=False)}
    texts.update({item.arg: _text(item.value) for item in node.keywords if item.arg})
    return texts


def plain(value: Value, text: str) -> object:
    """A number, a tuple of numbers, the name of a dtype or ``None``; else what is written for it."""
    if isinstance(value, Const) and (value.value is None or isinstance(value.value, (int, str))):
        return value.value
    if isinstance(value, Seq) and value.exact:
        parts = _parts(text)
        return tuple(plain(item, parts[index] if index < len(parts) else "") for index, item in enumerate(value.items))
    if isinstance(value, DictVal) and value.exact:
        return tuple(plain(item, "") for _, item in value.items)
    if isinstance(value, Ext):
        return value.name.rpartition(".")[2]
    return Symbol(text) if text and len(text) <= MAX_TEXT else shapes.UNKNOWN


def _parts(text: str) -> list[str]:
    """The texts of the elements of a tuple or list that is written out."""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return []
    return [ast.unparse(item) for item in node.elts] if isinstance(node, (ast.Tuple, ast.List)) else []


def variable_form(obj: Obj) -> Form:
    """Shape and dtype of a Variable that the program makes itself."""
    held = (obj.args or {}).get("value")
    return array_form(held) if isinstance(held, Array) else Form()


def array_form(array: Array) -> Form:
    """Shape and dtype of an array, where the call that made it says them."""
    if not isinstance(array, ShapedArray):
        return array.form or Form()
    shape = plain(array.shape, array.text) if array.shape is not None else None
    dtype = plain(array.dtype, "") if array.dtype is not None else None
    return Form(shapes.spliced(shape), dtype if isinstance(dtype, str) and dtype != shapes.UNKNOWN else None)


def _possible_members(obj: Obj, cls: LibClass, path: Path) -> list[Node]:
    """The Variables that a built-in layer may hold, depending on an argument that is not known."""
    members = cls.spec.members if cls.spec is not None else None
    possible: list[Node] = []
    for member in members or ():
        held = library_class(member.holds)
        doubtful = len(member.path) == 1 and is_present(member, obj.args) is None
        if doubtful and held is not None and held.is_variable:
            (name,) = member.path
            node = Node(name, (*path, name), Kind.VARIABLE, held.name, qualified=qualified(held), status=Status.DATA)
            node.parameter, node.optional = held.derives_from("nnx.Param"), "maybe"
            possible.append(node)
    return possible


def _shape_members(node: Node, cls: LibClass, arguments: dict[str, object]) -> None:
    """Give the Variables of a built-in layer their shapes; those of layers inside of it come from its own arguments."""
    for member in node.walk():
        if member.kind is Kind.VARIABLE:
            path = tuple(str(part) for part in member.path[len(node.path) :])
            member.form = shapes.form(cls.canonical, path, arguments) or member.form
