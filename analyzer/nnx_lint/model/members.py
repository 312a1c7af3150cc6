"""Instances of library classes: what they hold, from the table in :mod:`nnx_rules.api` and the constructor arguments.

Invariants: an attribute is given only where the arguments make it certain; :func:`is_settled` says whether that is all.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import attributes, entries, forms
from nnx_lint.model.classes import LibClass, library_class
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.elements import element_of
from nnx_lint.model.expressions import text_of
from nnx_lint.model.heap import touch
from nnx_lint.model.strings import HOLE, text_in
from nnx_lint.model.values import (
    NONE,
    UNKNOWN,
    Array,
    Attr,
    Const,
    Obj,
    ParameterVal,
    Value,
)
from nnx_rules import shapes
from nnx_rules.shapes import UNKNOWN as UNKNOWN_SIZE
from nnx_rules.shapes import Form
from nnx_rules.sizes import Size

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter
    from nnx_rules import api


def construct_library(interp: Interpreter, frame: Frame, cls: LibClass, args: Arguments, node: ast.AST) -> Value:
    """An instance of a library class, from constructor arguments."""
    obj = Obj(cls, frame.level, node=node)
    obj.origin = (frame.module, node)
    if cls.is_variable:
        obj.args = {**args.keywords, "value": args.get(0, "value") or UNKNOWN}
        return obj
    names = cls.spec.init if cls.spec is not None else ()
    given = {name: value for name, value in zip(names, args.positional, strict=False) if value is not None}
    obj.args = None if args.starred and cls.name not in {"List", "Dict", "Sequential"} else {**given, **args.keywords}
    rngs = args.keywords.get("rngs")
    if isinstance(rngs, Obj) and rngs.cls.derives_from("nnx.Rngs") and cls.name not in {"RNN", "Bidirectional"}:
        keyword = (
            next((item.value for item in node.keywords if item.arg == "rngs"), node)
            if isinstance(node, ast.Call)
            else node
        )
        attributes.mutate(
            interp, frame, rngs, text_of(keyword), f"creating a {cls.name} with it", "draw", node, "RngCount"
        )
    build = CONSTRUCTORS.get(cls.canonical)
    if build is not None:
        build(frame, obj, args)
    library_instance(obj, obj.args)
    return obj


def _list_elements(frame: Frame, obj: Obj, args: Arguments) -> None:
    given = args.get(0, "it")
    if given is None:
        held = Seq("list", [], frame.level, exact=not args.starred)
    elif isinstance(given, Seq):
        elements = [attributes.untagged(item) for item in given.items]
        held = Seq("list", elements, frame.level, exact=given.exact, node=given.node)
        held.sure = [attributes.untagged(item) for item in given.sure]
    else:
        held = Seq("list", [element_of(given, frame.level)], frame.level, exact=False)
    obj.attrs["[]"] = Attr(held)


def _dict_entries(frame: Frame, obj: Obj, args: Arguments) -> None:
    given = args.get(0)
    added = given.items if isinstance(given, DictVal) else [(UNKNOWN, UNKNOWN)] if args.positional else []
    for name, value in args.keywords.items():
        if name == "**":
            continue
        obj.attrs[name] = Attr(attributes.untagged(value))
    whole = isinstance(given, DictVal) and given.exact
    more = "**" in args.keywords or not (whole or given is None)
    for key, value in added:
        word = text_in(key)
        if word is None or HOLE in word:
            entries.put(frame, obj, key, value, obj.node or frame.module.tree)
            more = "**" in args.keywords  # what a comprehension makes under any key stands for all
        else:
            obj.attrs[word] = Attr(attributes.untagged(value) if whole else UNKNOWN)
    if more:
        entries.put(frame, obj, UNKNOWN, UNKNOWN, obj.node or frame.module.tree)


def _sequential_layers(frame: Frame, obj: Obj, args: Arguments) -> None:
    layers = Obj(library_class("nnx.List") or obj.cls, frame.level)
    layers.args, layers.origin = {}, obj.origin
    items = [value if value is not None else UNKNOWN for value in args.positional]
    held = Seq("list", items, frame.level, exact=not args.starred)
    held.sure = [item for value in args.spread if isinstance(value, Seq) for item in value.sure]
    layers.attrs["[]"] = Attr(held)
    obj.attrs["layers"] = Attr(layers)


def _wrapped(*names: str) -> Callable[[Frame, Obj, Arguments], None]:
    """Keeps the objects that it is given under the names of their parameters."""

    def build(frame: Frame, obj: Obj, args: Arguments) -> None:
        for position, name in enumerate(names):
            given = args.get(position, name)
            if isinstance(given, Obj):
                obj.attrs[name] = Attr(given)

    return build


CONSTRUCTORS: dict[str, Callable[[Frame, Obj, Arguments], None]] = {
    "nnx.RNN": _wrapped("cell"),
    "nnx.Bidirectional": _wrapped("forward_rnn", "backward_rnn"),
    "nnx.SpectralNorm": _wrapped("layer_instance"),
    "nnx.WeightNorm": _wrapped("layer_instance"),
    "nnx.ModelAndOptimizer": _wrapped("model"),
    "nnx.List": _list_elements,
    "nnx.Dict": _dict_entries,
    "nnx.Sequential": _sequential_layers,
}


def inherit(frame: Frame, obj: Obj, args: Arguments) -> None:
    """Give an instance of a project class what the constructor of the library class above it makes of its arguments."""
    library = obj.cls.library
    if library is None or library.spec is None:
        return
    touch(obj)
    build = CONSTRUCTORS.get(library.canonical)
    if build is not None:
        build(frame, obj, args)
    named = zip(library.spec.init, args.positional, strict=False)
    given = {name: value for name, value in named if value is not None}
    _fill(obj, library, None if args.starred else {**given, **args.keywords})


def library_instance(obj: Obj, args: dict[str, Value] | None) -> None:
    """Give an instance of a library class what it holds for these constructor arguments."""
    if isinstance(obj.cls, LibClass):
        _fill(obj, obj.cls, args)


def _fill(obj: Obj, cls: LibClass, args: dict[str, Value] | None) -> None:
    for member in cls.spec.members or () if cls.spec is not None else ():
        if is_present(member, args):
            _add(obj, member)


def _add(obj: Obj, member: api.Member) -> None:
    *folders, name = member.path
    holder = obj
    for folder in folders:
        attr = holder.attrs.get(folder)
        if attr is None or not isinstance(attr.value, Obj):
            return
        holder = attr.value
    kind = library_class(member.holds)
    if kind is None:
        return
    given: dict[str, Value] = {key: Const(value) for key, value in member.options}
    held = Obj(kind, obj.level, {"value": Array(obj.level, _form(obj, member))} if kind.is_variable else given)
    holder.attrs[name] = Attr(held)
    library_instance(held, given)


def _form(obj: Obj, member: api.Member) -> Form | None:
    """The shape of a Variable that a layer makes, as far as its arguments tell. Sizes that its maker has by their names
    keep these: the Variable says later what they stand for.
    """
    cls, arguments = obj.cls.made_as, forms.sizes(obj)
    if cls is None or arguments is None:
        return None
    arguments |= {name: value.symbol for name, value in (obj.args or {}).items() if value.symbol is not None}
    found = shapes.form(cls.canonical, member.path, arguments)
    if found is None or found.shape is None:
        return None
    return Form(tuple(item if isinstance(item, (int, Size)) else UNKNOWN_SIZE for item in found.shape))


def is_present(member: api.Member, args: dict[str, Value] | None) -> bool | None:
    """Whether an instance made with these arguments holds a member; ``None`` where that is not known."""
    truth: bool | None = True
    if member.unless is not None:
        truth = _both(truth, _differs(args, *member.unless))
    if member.given is not None:
        truth = _both(truth, _is_given(args, member.given))
    return truth


def _both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return True if left and right else None


def _differs(args: dict[str, Value] | None, name: str, excluded: object) -> bool | None:
    if args is None or "**" in args:
        return None
    value = args.get(name)
    if value is None:
        return True
    return value.value != excluded if isinstance(value, Const) else None


def _is_given(args: dict[str, Value] | None, name: str) -> bool | None:
    if args is None or "**" in args:
        return None
    value = args.get(name, NONE)
    if isinstance(value, Const):
        return bool(value.value)
    # A parameter without a default is given something by every caller; what switches a member off is a literal.
    certain = isinstance(value, (Obj, Seq)) or (isinstance(value, ParameterVal) and value.required and name == "rngs")
    return True if certain else None


def is_settled(obj: Obj) -> bool:
    """Whether the known attributes of an instance of a library class certainly are all that hold something."""
    spec = obj.cls.made_as.spec if obj.cls.made_as is not None else None
    if spec is None or spec.members is None or spec.more:
        return False
    return all(is_present(member, obj.args) is not None for member in spec.members)
