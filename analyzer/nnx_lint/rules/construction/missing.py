"""Attributes that are not there (NNX864): a slip of the pen, an attribute renamed in one place only, a name that layers
of another library have.

What an object has is known where its constructor was executed to the end and its class hides nothing. Still an
attribute may come from elsewhere, so a finding needs one of these: the object was seen to be made, or nothing is below
the class and what is asked for is spelled almost like what is there.

Invariant: an attribute that any text of the class, of its bases or of the file at hand assigns, or names in a string,
is never called missing.
"""

from __future__ import annotations

import ast
import difflib
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import ANY_NAME, attribute_names
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import ClassBase, LibClass, UserClass
from nnx_lint.model.containers import ReturnedDict
from nnx_lint.model.events import AttributeMissed, Used
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.construction.habits import FOREIGN
from nnx_lint.rules.program import assigned_in, is_asked_for, is_called, is_tried
from nnx_lint.syntax_walk import remembered, walk
from nnx_rules.names import ATTRIBUTES
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from nnx_lint.model.values import Obj

PLAIN = frozenset({"nnx.Module", "nnx.Pytree", "nnx.Object"})
"""Library classes whose instances have the attributes of their class and those that are assigned, and no other."""

OWN = frozenset({"eval", "iter_children", "iter_modules", "perturb", "set_attributes", "sow", "train"})
"""Public methods of every module."""

CLOSE = 0.75
"""How alike two names must be (:func:`difflib.get_close_matches`) for one to be a slip of the other."""


@judges(rules.MISSING_ATTRIBUTE, AttributeMissed)
def missing_attribute(event: AttributeMissed, report: Reporter) -> None:
    obj, name, node = event.obj, event.name, event.node
    if not isinstance(node, ast.Attribute) or name.startswith(("__", "_pytree", "_object", "_graph_node")):
        return
    if obj.assumed or is_tried(event.frame.module, node) or is_asked_for(event.frame.module, node):
        return
    if isinstance(obj.cls, LibClass):
        found = _elsewhere(obj.cls).get(name)
        if found is not None and name not in attribute_names(obj):
            mend = found if " " in found else f"it is called `{found}`"
            report(event.frame.module, node, cls=obj.cls.name, name=name, mend=mend)
        return
    if not isinstance(obj.cls, UserClass) or not is_known(obj.cls) or _is_named(event, obj.cls):
        return
    if name in FOREIGN:
        if obj.origin is not None and not is_called(event.frame.module, node):
            report(event.frame.module, node, cls=obj.cls.name, name=name, mend=FOREIGN[name])
        return  # a call of it is a habit from Linen or PyTorch
    alike = difflib.get_close_matches(name, names_of(obj), n=1, cutoff=CLOSE)
    local = _is_local_in_constructor(obj.cls, name)
    meant = bool(alike) or local or name in MODES
    if obj.origin is None and (not meant or event.frame.module.project.heirs(obj.cls.name)):
        return
    if name in MODES:
        mend = "a module has no mode: its layers have one, which `train()` and `eval()` switch"
        report(event.frame.module, node, cls=obj.cls.name, name=name, mend=mend)
        return
    if local:
        mend = f"write `self.{name} = ...` in `__init__`, which binds a local name `{name}`"
        report(event.frame.module, node, cls=obj.cls.name, name=name, mend=mend)
        return
    mend = f"did you mean `{alike[0]}`?" if alike else "assign it in the constructor"
    report(event.frame.module, node, cls=obj.cls.name, name=name, mend=mend)


@judges(rules.MISSING_ATTRIBUTE, Used)
def missing_in_dict(event: Used, report: Reporter) -> None:
    """A dict that the library returns has items, which are no attributes."""
    node, value, module = event.node, event.value, event.frame.module
    if not isinstance(value, ReturnedDict) or not isinstance(node, ast.Attribute):
        return
    if isinstance(node.ctx, ast.Load) and not is_tried(module, node) and not is_asked_for(module, node):
        mend = f"it is an item: `{module.source.segment(node.value)}[{event.what!r}]`"
        report(module, node, cls="dict", name=event.what, mend=mend)


MODES = frozenset({"training", "is_training"})
"""What says in other libraries whether a module is trained."""


def _is_local_in_constructor(cls: UserClass, name: str) -> bool:
    """Whether a constructor binds a name that it was to make an attribute."""
    func = cls.methods.get("__init__")
    return isinstance(func, FuncVal) and assigned_in(func.node)[name] > 0


def _elsewhere(cls: LibClass) -> dict[str, str]:
    """What other libraries call attributes of a layer, with their names in NNX."""
    for item in cls.ancestors:
        if isinstance(item, LibClass) and item.canonical in ATTRIBUTES:
            return ATTRIBUTES[item.canonical]
    return {}


def is_known(cls: UserClass) -> bool:
    """Whether the attributes of an instance of a class are those that the program shows."""
    library = cls.library
    if cls.is_open or cls.opaque or cls.remade or library is None or library.canonical not in PLAIN:
        return False
    return not any(isinstance(item, UserClass) and "__getattr__" in item.methods for item in cls.ancestors)


def names_of(obj: Obj) -> list[str]:
    """The names of what an instance has."""
    classes = (item for item in obj.cls.ancestors if isinstance(item, UserClass))
    bodies = ({*item.methods, *item.attributes, *item.fields} for item in classes)
    return [*attribute_names(obj), *set().union(*bodies)]


def _is_named(event: AttributeMissed, cls: UserClass) -> bool:
    """Whether an attribute is one of those that every module has, or some text may set it."""
    name, obj = event.name, event.obj
    if name in OWN or ANY_NAME in attribute_names(obj) or name in names_of(obj):
        return True
    if event.frame.cls is not None and event.frame.cls is not cls and _is_of_heirs(event.frame.cls, name):
        return True
    modules = [event.frame.module, *(item.module for item in cls.ancestors if isinstance(item, UserClass))]
    return any(module.mocks or name in module.all_of(_mentioned) for module in modules)


def _is_of_heirs(base: ClassBase, name: str) -> bool:
    """Whether a class below the one whose method asks has the attribute: the method may ask for its sake."""
    heirs = base.module.project.heirs(base.name) if isinstance(base, UserClass) else []
    return any(name in _mentioned(heir) or name in _bound(heir) for heir in heirs)


@remembered
def _bound(node: ast.ClassDef) -> frozenset[str]:
    """The names that the body of a class binds."""
    names = (getattr(item, "name", None) or getattr(item, "id", None) for item in walk(node))
    return frozenset(name for name in names if name is not None)


@remembered
def _mentioned(tree: ast.AST) -> frozenset[str]:
    """The attributes that a file assigns, and its strings, which may name some."""
    names: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
    return frozenset(names)
