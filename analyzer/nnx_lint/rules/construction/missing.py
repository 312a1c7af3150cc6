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
import re
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit, Fix, Span
from nnx_lint.model import configs
from nnx_lint.model.attributes import ANY_NAME, attribute_names
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import ClassBase, LibClass, UserClass
from nnx_lint.model.containers import ReturnedDict
from nnx_lint.model.elements import sows_anything
from nnx_lint.model.events import AttributeMissed, EntryMissed, Used
from nnx_lint.model.records import has_method
from nnx_lint.model.values import ClassVal, Obj
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.bindings import bound_to
from nnx_lint.rules.construction.arms import is_for_one_of_several
from nnx_lint.rules.construction.classes import gets_instance, is_left_out, self_names
from nnx_lint.rules.construction.habits import FOREIGN
from nnx_lint.rules.construction.owners import is_complete
from nnx_lint.rules.construction.slips import is_slip
from nnx_lint.rules.containers.entries import modules_of
from nnx_lint.rules.edits import replace, unsafe
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    assigned_in,
    attributes_named,
    attributes_stored,
    calls_in,
    is_asked_for,
    is_called,
    is_for_others,
    is_tried,
    resolved,
)
from nnx_lint.syntax import parameters
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.names import ARGUMENTS, ATTRIBUTES, HELD, attributes_of
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

PLAIN = frozenset({"nnx.Module", "nnx.Pytree", "nnx.Object"})
"""Library classes whose instances have the attributes of their class and those that are assigned, and no other."""

OWN = frozenset({"eval", "iter_children", "iter_modules", "perturb", "set_attributes", "sow", "train"})
"""Public methods of every module."""

CLOSE = 0.75
"""How alike two names must be (:func:`difflib.get_close_matches`) for one to be a slip of the other."""

SAME = 0.85
"""How alike they must be where the object may be of another class than the one that is known."""


@judges(rules.MISSING_ATTRIBUTE, AttributeMissed)
def missing_attribute(event: AttributeMissed, report: Reporter) -> None:
    obj, name, node = event.obj, event.name, event.node
    if not isinstance(node, ast.Attribute) or name.startswith(("__", "_pytree", "_object", "_graph_node")):
        return
    if is_tried(event.frame.module, node) or is_asked_for(event.frame.module, node):
        return
    if is_for_others(event.frame) or _is_given_to_one_of_several(event.frame, obj):
        return
    if isinstance(obj.cls, UserClass) and _is_record(obj.cls):
        _missing_in_record(event, obj.cls, report)
    library = obj.cls.library
    if obj.cls.is_variable:
        _missing_in_variable(event, report)
        return
    if library is not None and library.canonical not in PLAIN:
        _missing_in_layer(event, library, report)
        return
    if isinstance(obj.cls, UserClass) and obj.cls.is_open:
        _misspelt(event, obj.cls, report)
        return
    if not isinstance(obj.cls, UserClass) or not (is_known(obj.cls) or _is_plain(obj.cls)):
        return
    unseen = obj.origin is None and library is None
    if unseen and not any(is_slip(name, each) for each in names_of(obj)):
        return  # what is no module may be filled by whoever has it
    if obj.assumed and not _is_slip(event, obj):
        return
    if _is_later(event, obj.cls):
        report(event.frame.module, node, cls=obj.cls.name, name=name, mend=LATER)
        return
    if _is_named(event, obj.cls) or is_left_out(obj.cls, obj, name):
        return
    if name in FOREIGN:
        if obj.origin is not None and not is_called(event.frame.module, node):
            report(event.frame.module, node, cls=obj.cls.name, name=name, mend=FOREIGN[name])
        return  # a call of it is a habit from Linen or PyTorch
    alike = difflib.get_close_matches(name, names_of(obj), n=1, cutoff=CLOSE)
    local = _is_local_in_constructor(obj.cls, name)
    meant = bool(alike) or local or name in MODES
    unsure = obj.origin is None and (not meant or event.frame.module.project.heirs.exist(obj.cls.name))
    if unsure and not is_complete(event.frame, obj.cls, name, names_of(obj)):
        return
    if library is None and not alike and obj is not event.frame.receiver and is_for_one_of_several(event.frame, node):
        return
    if name in MODES:
        mend = "a module has no mode: its layers have one, which `train()` and `eval()` switch"
        report(event.frame.module, node, cls=obj.cls.name, name=name, mend=mend)
        return
    if local:
        mend = f"write `self.{name} = ...` in `__init__`, where `{name}` is a local name"
        report(event.frame.module, node, cls=obj.cls.name, name=name, mend=mend)
        return
    mend = f"did you mean `{alike[0]}`?" if alike else "assign it in the constructor"
    fix = partial(_called, event.frame.module, node, alike[0]) if alike else None
    report(event.frame.module, node, fix=fix, cls=obj.cls.name, name=name, mend=mend)


def _misspelt(event: AttributeMissed, cls: UserClass, report: Reporter) -> None:
    """A slip in the name of an attribute of an object whose class has bases that nobody knows."""
    name, module, node = event.name, event.frame.module, event.node
    meant = next((each for each in attribute_names(event.obj) if is_slip(name, each)), None)
    if meant is None or not isinstance(node, ast.Attribute):
        return
    if any("__getattr__" in each.methods for each in cls.lineage):
        return
    heirs = module.project.heirs.mentioning(cls.name, name)
    if not _is_named(event, cls) and not any(has_in_text(heir, name) for heir in heirs):
        fix = partial(_called, module, node, meant)
        report(module, node, fix=fix, cls=cls.name, name=name, mend=f"did you mean `{meant}`?")


def _is_slip(event: AttributeMissed, obj: Obj) -> bool:
    """Whether a name is a slip of one that an object has, if it is what an annotation says: nothing is below that, and
    the two are not of a numbered series, of which the real object may have more.
    """
    alike = difflib.get_close_matches(event.name, names_of(obj), n=1, cutoff=SAME)
    if not alike or _DIGITS.sub("", alike[0]) == _DIGITS.sub("", event.name):
        return False
    return not event.frame.module.project.heirs.exist(obj.cls.name)


_DIGITS = re.compile(r"\d+")


@judges(rules.MISSING_ATTRIBUTE, EntryMissed)
def missing_option(event: EntryMissed, report: Reporter) -> None:
    """``args.learning_rate`` of a parser that was told of ``--lr``, ``cfg.hidden`` of a namespace without it."""
    held, name, node, frame = event.held, event.key, event.node, event.frame
    if not isinstance(held, Obj) or not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return
    known = attribute_names(held)
    if name.startswith("_") or not known or ANY_NAME in known or frame.doubtful or configs.has_method(held, name):
        return
    if is_tried(frame.module, node) or is_asked_for(frame.module, node) or is_for_others(frame):
        return
    if any(each.mocks or each.has(name, _mentioned) or each.has(ANY_NAME, _mentioned) for each in modules_of(frame)):
        return
    alike = difflib.get_close_matches(name, known, n=1, cutoff=CLOSE)
    shown = ", ".join(f"`{each}`" for each in known[:MANY]) + (", ..." if len(known) > MANY else "")
    mend = f"did you mean `{alike[0]}`?" if alike else f"it was made with {shown}"
    fix = partial(_called, frame.module, node, alike[0]) if alike else None
    report(frame.module, node, fix=fix, cls=held.cls.name, name=name, mend=mend)


def _is_given_to_one_of_several(frame: Frame, obj: Obj) -> bool:
    """Whether an object is an argument of a call of which it is not known which of several objects it calls: which one
    is called may be decided by what it is called with.
    """
    called = frame
    while called.caller is not None:
        chosen = called.caller
        one_of_several = chosen.caller is not None and chosen.env is chosen.caller.env and chosen.doubts > 0
        if one_of_several and called.receiver is not obj and any(item is obj for item in called.env.names.values()):
            return True
        called = chosen
    return False


def _missing_in_layer(event: AttributeMissed, library: LibClass, report: Reporter) -> None:
    """What a layer of the library does not have, by any name or by the one that other libraries give it."""
    obj, name, module, node = event.obj, event.name, event.frame.module, event.node
    cls = obj.cls
    if not isinstance(node, ast.Attribute) or name in attribute_names(obj) or _is_of_class(event, cls):
        return
    known = attributes_of(library.canonical) or frozenset[str]()
    found = _elsewhere(library).get(name)
    if found is None and name in known:
        return
    if found is None and ARGUMENTS.get(name) in known:
        found = ARGUMENTS[name]
    alike = difflib.get_close_matches(name, known, n=1, cutoff=CLOSE) if found is None else []
    if obj.assumed and not (found or alike):
        return
    if any(has_in_text(heir, name) for heir in module.project.heirs.mentioning(library.name, name)):
        return  # what is known of the object may be only that it is one of these
    if obj.origin is not None and _is_replaced(module, *obj.origin):
        return  # ... or it was, before another function put a layer of another class into its place
    if found is not None:
        mend = found if " " in found else f"it is called `{found}`"
    elif alike:
        mend, found = f"did you mean `{alike[0]}`?", alike[0]
    elif known and name not in FOREIGN and not is_called(module, node) and obj.origin is not None:
        held = ", ".join(f"`{each}`" for each in sorted(HELD[library.canonical]))
        mend = f"it has {held}, and what its constructor is given"
    else:
        return
    fix = None if found is None or " " in found else partial(_called, module, node, found)
    report(module, node, fix=fix, cls=cls.name, name=name, mend=mend)


def _missing_in_variable(event: AttributeMissed, report: Reporter) -> None:
    """What neither a Variable nor its array has: that of another class of Variables, or metadata that is not there."""
    obj, name, module, node = event.obj, event.name, event.frame.module, event.node
    found = ATTRIBUTES["nnx.Variable"].get(name)
    made = obj.origin[1] if obj.origin is not None and not obj.assumed else None
    if isinstance(made, ast.Call) and any(item.arg in {None, name} for item in made.keywords):
        return  # it is metadata, or may be
    if found is not None and not _is_of_class(event, obj.cls) and not module.mentions(METADATA, f"{name}="):
        report(module, node, cls=obj.cls.name, name=name, mend=found)
        return
    plain = isinstance(made, ast.Call) and len(made.args) == 1 and not made.keywords
    if not plain or obj.cls.made_as is None or is_called(module, node) or _is_of_class(event, obj.cls):
        return
    if module.mentions(METADATA):
        return
    classes = (value.cls for value in module.env.names.values() if isinstance(value, ClassVal))
    owners = (each.name for each in classes if isinstance(each, UserClass) and each.is_variable and each.find(name))
    owner = next(owners, None)
    mend = (
        f"`{owner}` has it: make one"
        if owner is not None
        else f"give it as metadata: `{obj.cls.name}(value, {name}=...)`"
    )
    report(module, node, cls=obj.cls.name, name=name, mend=mend)


def _is_replaced(module: Module, maker: Module, made: ast.AST) -> bool:
    """Whether a text at hand stores, in an attribute of anything but `self`, what takes the place of a layer."""
    bound = bound_to(maker, made)
    name = bound.target.attr if bound is not None and isinstance(bound.target, ast.Attribute) else None
    places = attributes_named(module.tree).get(name, ()) if name is not None else ()
    return any(isinstance(place.ctx, ast.Store) and not is_name(place.value, "self") for place in places)


METADATA = re.compile(r"set_metadata|from_metadata|update_metadata")
"""What gives a Variable metadata later on, which it shows as attributes."""


def _is_of_class(event: AttributeMissed, cls: ClassBase) -> bool:
    """Whether something may have given a layer the attribute: a class of the project, or some text at hand."""
    name = event.name
    if name in OWN or event.frame.module.mocks or event.frame.module.has(name, assigned):
        return True
    if not isinstance(cls, UserClass):
        return False
    unknown = cls.is_open or cls.opaque or cls.remade or "__getattr__" in names_of(event.obj)
    return unknown or cls.module.project.heirs.exist(cls.name) or _is_named(event, cls)


class Told(set[tuple[ast.AST, str]]):
    """The functions that were said to ask records of a class for what these do not have."""


def _missing_in_record(event: AttributeMissed, cls: UserClass, report: Reporter) -> None:
    """A slip in the name of a field: the object may have been seen by the annotation of a parameter alone. One that was
    seen to be made, and cannot be changed, has the fields of its class and no others.
    """
    if (cls.named_tuple and (event.name.startswith("_") or hasattr(tuple, event.name))) or has_method(cls, event.name):
        return
    if event.name == cls.renewed_by:
        return
    alike = difflib.get_close_matches(event.name, names_of(event.obj), n=1, cutoff=SAME)
    if event.obj.assumed or not (event.frame.doubtful or _is_told_of_another(event)):
        alike = alike or _longer(event.name, cls)
    module, node = event.frame.module, event.node
    whole = cls.is_frozen and not event.obj.assumed and event.obj.args is not None
    if (
        not (alike or whole)
        or not isinstance(node, ast.Attribute)
        or _is_named(event, cls)
        or module.project.heirs.exist(cls.name)
    ):
        return
    if alike:
        fix = partial(_called, module, node, alike[0])
        report(module, node, fix=fix, cls=cls.name, name=event.name, mend=f"did you mean `{alike[0]}`?")
        return
    outer = [item for item in ancestors(module, node) if isinstance(item, FUNCTIONS)]
    place, told = (outer[-1] if outer else module.tree, cls.name), report.memory(Told)
    if place in told:
        return  # one object in the place of another lacks all that this one has
    told.add(place)
    held = ", ".join(f"`{field.name}`" for field in cls.all_fields()[:MANY])
    more = ", ..." if len(cls.all_fields()) > MANY else ""
    report(module, node, cls=cls.name, name=event.name, mend=f"its fields are {held}{more}")


def _is_told_of_another(event: AttributeMissed) -> bool:
    """Whether a record comes for a parameter that is annotated with another one: a condition of the caller may choose
    the function with the record, and each has its own.
    """
    name, func = getattr(event.node, "value", None), event.frame.func
    if not isinstance(name, ast.Name) or func is None:
        return False
    told = next((each.annotation for each in parameters.each(func.node.args) if each.arg == name.id), None)
    said = resolved(event.frame.env, told)
    return isinstance(said, ClassVal) and said.cls not in event.obj.cls.ancestors


def _longer(name: str, cls: UserClass) -> list[str]:
    """The field whose name is a part of another name, or the other way round: ``hidden`` for ``hidden_dim``."""
    words = {*name.split("_")}
    fields = [field.name for field in cls.all_fields()]
    found = [each for each in fields if words < {*each.split("_")} or words > {*each.split("_")}]
    return difflib.get_close_matches(name, found, n=1, cutoff=0.0)


MANY = 8
"""How many fields of a class a message names."""


def _is_record(cls: UserClass) -> bool:
    """Whether a class is a dataclass of no NNX objects, such as a configuration, or a named tuple, and all of it is
    known.
    """
    known = (
        any(item.has_fields for item in cls.lineage)
        and cls.library is None
        and not (cls.is_open or cls.opaque or cls.remade or cls.structural)
    )
    return known and not any(isinstance(item, UserClass) and "__getattr__" in item.methods for item in cls.ancestors)


LATER = "it is assigned only below: read it after that, or after `super().__init__(...)` if that assigns it"


def _is_later(event: AttributeMissed, cls: UserClass) -> bool:
    """Whether a constructor, or a helper of it, reads an attribute before that is assigned, by itself or by a base."""
    name, running, here = event.name, _running(event), event.frame.func
    if not running or event.frame.doubtful or event.frame.branches:
        return False
    bodies = cls.lineage
    if ANY_NAME in attribute_names(event.obj) or any(name in {*x.methods, *x.attributes, *x.fields} for x in bodies):
        return False
    methods = [method for item in bodies for method in item.methods.values() if isinstance(method, FuncVal)]
    assigning = [
        (method, node.lineno) for method in methods for each, node in self_names(method, store=True) if each == name
    ]
    if not assigning or any(method.name != "__init__" for method, _ in assigning):
        return False
    for func, line in running:
        receiver = func.node.args.args[0].arg if func.node.args.args else None
        before = [call for call in calls_in(func.node) if call.lineno < line or (call.lineno == line and func is here)]
        if not _is_below_another(cls, func):
            before = [call for call in before if not _is_super(call)]
        if any(method is func and place <= line for method, place in assigning):
            return False
        if any(gets_instance(call, receiver) for call in before):
            return False
    return True


def _is_super(call: ast.Call) -> bool:
    return is_name(call.func, "super")


def _is_below_another(cls: UserClass, func: FuncVal) -> bool:
    """Whether `super()` in the constructor of a class means one of the project."""
    after = cls.ancestors[cls.ancestors.index(func.cls) + 1 :] if func.cls in cls.ancestors else cls.ancestors
    return any(isinstance(item, UserClass) for item in after)


def _running(event: AttributeMissed) -> list[tuple[FuncVal, int]]:
    """The constructors of the object that are under way, each with the line that it has reached, from the inside."""
    found: list[tuple[FuncVal, int]] = []
    frame: Frame | None = event.frame
    node: ast.AST | None = event.node
    while frame is not None and frame.func is not None and frame.receiver is event.obj:
        if frame.func.name == "__init__":
            found.append((frame.func, getattr(node, "lineno", 0)))
        node = frame.call
        frame = frame.caller
    return found


def _called(module: Module, node: ast.Attribute, name: str) -> Fix | None:
    """Ask for an attribute by another name."""
    end = module.source.span(node).end
    return unsafe(f"Write `{name}`", (Edit(Span(end - len(node.attr), end), name),))


@judges(rules.MISSING_ATTRIBUTE, Used)
def missing_in_dict(event: Used, report: Reporter) -> None:
    """A dict that the library returns has items, which are no attributes."""
    node, value, module = event.node, event.value, event.frame.module
    if not isinstance(value, ReturnedDict) or not isinstance(node, ast.Attribute):
        return
    if isinstance(node.ctx, ast.Load) and not is_tried(module, node) and not is_asked_for(module, node):
        item = f"{module.source.segment(node.value)}[{event.what!r}]"
        fix = unsafe(f"Write `{item}`", replace(module.source, node, item))
        report(module, node, fix=fix, cls="dict", name=event.what, mend=f"it is an item: `{item}`")


MODES = frozenset({"training", "is_training"})
"""What says in other libraries whether a module is trained."""


def _is_local_in_constructor(cls: UserClass, name: str) -> bool:
    """Whether a constructor binds a name that it was to make an attribute, or is given it."""
    func = cls.methods.get("__init__")
    return isinstance(func, FuncVal) and (assigned_in(func.node)[name] > 0 or name in parameters.names(func.node.args))


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
    if any(isinstance(item, UserClass) and "__getattr__" in item.methods for item in cls.ancestors):
        return False
    return not sows_anything(cls)


def _is_plain(cls: UserClass) -> bool:
    """Whether a class is one of Python alone, such as a trainer, whose instances have what the program shows."""
    if cls.library is not None or cls.is_open or cls.opaque or cls.remade or cls.structural or cls.foreign:
        return False
    made = any("__init__" in item.methods for item in cls.lineage)
    if not made or cls.replaced_init or cls.record or cls.registered_container:
        return False
    return not any(item.node.decorator_list or "__getattr__" in item.methods for item in cls.lineage)


def names_of(obj: Obj) -> list[str]:
    """The names of what an instance has."""
    classes = obj.cls.lineage
    bodies = ({*item.methods, *item.attributes, *item.fields} for item in classes)
    return [*attribute_names(obj), *set().union(*bodies)]


def _is_named(event: AttributeMissed, cls: UserClass) -> bool:
    """Whether an attribute is one of those that every module has, or some text may set it."""
    name, obj = event.name, event.obj
    if name in OWN or ANY_NAME in attribute_names(obj) or name in names_of(obj):
        return True
    if event.frame.cls is not None and event.frame.cls is not cls and _is_of_heirs(event.frame.cls, name):
        return True
    if any(not {name, ANY_NAME}.isdisjoint(_mentioned(item.node)) for item in cls.lineage):
        return True
    modules = [event.frame.module, *(item.module for item in cls.lineage)]
    return any(
        module.mocks or module.has(name, _mentioned_outside) or module.has(ANY_NAME, _mentioned) for module in modules
    )


def _is_of_heirs(base: ClassBase, name: str) -> bool:
    """Whether a class below the one whose method asks has the attribute: the method may ask for its sake."""
    heirs = base.module.project.heirs.mentioning(base.name, name) if isinstance(base, UserClass) else []
    return any(has_in_text(heir, name) for heir in heirs)


def has_in_text(cls: ast.ClassDef, name: str) -> bool:
    """Whether the text of a class gives its instances an attribute."""
    return name in _mentioned(cls) or name in _bound(cls)


@remembered
def _bound(node: ast.ClassDef) -> frozenset[str]:
    """The names that the body of a class binds."""
    names = (getattr(item, "name", None) or getattr(item, "id", None) for item in walk(node))
    return frozenset(name for name in names if name is not None)


@remembered
def assigned(tree: ast.AST) -> frozenset[str]:
    """The attributes that a file assigns, and those that it sets by ``setattr``."""
    names = set(attributes_stored(tree))
    for node in walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in SETTERS:
            given = (item.value for item in node.args if isinstance(item, ast.Constant))
            names |= {text for text in given if isinstance(text, str)}
    return frozenset(names)


SETTERS = frozenset({"setattr", "__setattr__"})


@remembered
def _mentioned_outside(statement: ast.AST) -> frozenset[str]:
    """The same as :func:`_mentioned`, but for what a class assigns to its own instances, which are no others'."""
    if not isinstance(statement, ast.ClassDef):
        return _mentioned(statement)
    nodes = [node for node in walk(statement) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    own = {node.attr for node in nodes} - {node.attr for node in nodes if not is_name(node.value, "self")}
    return _mentioned(statement) - own


@remembered
def _mentioned(tree: ast.AST) -> frozenset[str]:
    """The attributes that a file assigns, and its strings, which may name some."""
    names = set(attributes_stored(tree))
    labels = {item for node in walk(tree) if _is_label(node) for item in walk(node)}
    for node in walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= {node.value} if node not in labels else set[str]()
        elif isinstance(node, ast.Call) and _sets_any(node):
            names.add(ANY_NAME)
    return frozenset(names)


def _sets_any(call: ast.Call) -> bool:
    """Whether a call gives an object, or all those of a class, an attribute whose name it does not say."""
    named: list[ast.expr] = []
    if getattr(call.func, "attr", "") == "__setattr__":
        named = call.args[-2:-1]
    elif is_name(call.func, "setattr") and call.args and _is_class(call.args[0]):
        named = call.args[1:2]
    return not all(isinstance(item, ast.Constant) for item in named)


def _is_class(node: ast.expr) -> bool:
    """Whether an expression is written as a class."""
    if isinstance(node, ast.Call):
        return is_name(node.func, "type")
    last = last_name(node)
    return last in {"cls", "__class__"} or last[:1].isupper()


def _is_label(node: ast.AST) -> bool:
    """Whether a call gives a name to a part of a profile, which is that of no attribute."""
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "named_scope"
