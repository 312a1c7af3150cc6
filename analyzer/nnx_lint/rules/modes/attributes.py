"""Attributes that ``train``, ``eval``, ``set_attributes``, ``with_attributes`` and ``view`` set: one that no module has
(NNX801), one that the mode sets itself (NNX842), one of another name that stays as it is (NNX841).
"""

from __future__ import annotations

import ast
import difflib
import re
from collections import Counter
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit, Fix, Span
from nnx_lint.model.attributes import ANY_NAME, attribute_names, attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.classes import LibClass, UserClass, method_of
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import Called
from nnx_lint.model.library import FilterVal
from nnx_lint.model.unions import options
from nnx_lint.model.values import (
    Array,
    ClassVal,
    Const,
    Ext,
    Obj,
    Other,
    Value,
)
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.construction.missing import has_in_text
from nnx_lint.rules.edits import replace, unsafe
from nnx_lint.rules.intermediates.sowing import is_module
from nnx_lint.rules.program import FUNCTIONS, enclosing, is_tried, statement_of
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.attributes import Kind
from nnx_rules.modes import MODE_ATTRIBUTES, OWN_FLAGS, VIEWS
from nnx_rules.names import attributes_of
from nnx_rules.rules import construction as rules
from nnx_rules.rules.modules import UNKNOWN_MODE_ATTRIBUTE
from nnx_rules.signatures import SIGNATURES

if TYPE_CHECKING:
    from collections.abc import Set

    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Assignment

MAX_OBJECTS = 400
"""How many objects of a model are looked at."""


STREAMS = ("nnx.Rngs", "nnx.RngStream")
"""What keeps random state, and has no attributes that a mode sets."""


class Tree:
    """The attributes that the modules of a tree have, by name, and whether these certainly are all.

    ``views`` are the parameters of their ``set_view`` methods; ``None`` if one takes any. ``modules`` are the objects.
    """

    def __init__(self, root: Obj) -> None:
        self.names: set[str] = set()
        self.views: set[str] | None = set()
        self.complete = True
        self.modules: list[Obj] = []
        self._seen: set[int] = set()
        self._visit(root)

    def _visit(self, value: Value) -> None:
        for option in options(value):
            if id(option) in self._seen or len(self._seen) > MAX_OBJECTS:
                self.complete = self.complete and len(self._seen) <= MAX_OBJECTS
                continue
            self._seen.add(id(option))
            if isinstance(option, Obj) and any(map(option.cls.derives_from, STREAMS)):
                continue  # no module is in them, whatever streams there are
            if isinstance(option, Obj) and option.cls.is_pytree:
                self._module(option)
            elif isinstance(option, (Seq, DictVal)):
                self.complete = self.complete and (option.exact or bool(option.items))
                for item in option.items:
                    self._visit(item[1] if isinstance(item, tuple) else item)
            elif isinstance(option, FuncVal):
                continue
            elif isinstance(option, Obj):
                # Such as a configuration: nothing goes through an object that JAX does not know.
                self.complete = self.complete and option.kind in {Kind.OTHER, Kind.VARIABLE}
            elif not isinstance(option, (Array, Const, Other, Ext, ClassVal)):
                self.complete = False

    def _module(self, obj: Obj) -> None:
        cls = obj.cls
        self.modules.append(obj)
        self.complete = self.complete and not cls.is_open and not (obj.assumed and cls.may_be_extended)
        for item in cls.ancestors:
            if isinstance(item, UserClass):
                self.names |= {*item.attributes, *item.fields}
                self.complete = self.complete and not item.opaque and "__getattr__" not in item.methods
            elif isinstance(item, LibClass) and item.canonical in SIGNATURES:
                signature = SIGNATURES[item.canonical]
                self.names |= {*signature.positional, *signature.keywords}
                self.complete = self.complete and item.name not in {
                    "RNN",
                    "Bidirectional",
                    "SpectralNorm",
                    "WeightNorm",
                }
        self._view(cls)
        for name in attribute_names(obj):
            attr = attribute_of(obj, name)
            if name == ANY_NAME:
                self.complete = False
            elif attr is not None:
                self.names.add(name)
                self._visit(attr.value)

    def _view(self, cls: object) -> None:
        found = method_of(cls, "set_view") if isinstance(cls, UserClass) else None
        if found is not None and self.views is not None:
            arguments = found[1].node.args
            self.views |= {item.arg for item in (*arguments.args[1:], *arguments.kwonlyargs)}
            if arguments.kwarg is not None:
                self.views = None
        elif isinstance(cls, UserClass) and cls.find("set_view") is not None:
            self.views = None
        elif self.views is not None:
            library = getattr(cls, "library", None)
            self.views |= set(VIEWS.get(library.name, ())) if isinstance(library, LibClass) else set()


# -- names that nothing has --------------------------------------------------------------------------------------------


def target_of(event: Called) -> Obj | None:
    """The module whose attributes a call sets."""
    callee = event.callee
    if isinstance(callee, BoundMethod) and callee.func is None:
        value: Value | None = callee.receiver
    else:
        value = event.args[0] if event.args else None
    return value if isinstance(value, Obj) and is_module(value) and not value.assumed else None


OPTIONS = frozenset({"raise_if_not_found", "graph", "only", "**"})
"""Keywords of these functions that are no attributes."""


@judges_calls(UNKNOWN_MODE_ATTRIBUTE, ".train", ".eval", ".set_attributes", "nnx.with_attributes", "nnx.view")
def unknown_mode_attribute(event: Called, report: Reporter) -> None:
    target = target_of(event)
    names = event.keywords.keys() - OPTIONS
    if _asks_layers(event, names, report) or target is None or not names or target is event.frame.receiver:
        return
    silent = event.keywords.get("raise_if_not_found")
    filters = event.args[1:] if not isinstance(event.callee, BoundMethod) else event.args
    if silent is not None or any(isinstance(item, (ClassVal, FilterVal)) for item in filters):
        return
    tree = Tree(target)
    viewed = not isinstance(event.callee, BoundMethod) and event.subject == "nnx.view"
    known = tree.views if viewed else tree.names
    if known is None:
        return
    for name in sorted(names):
        if name in known or (not viewed and name in MODE_ATTRIBUTES and event.subject in {".train", ".eval"}):
            continue
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if not (tree.complete or (near and not viewed and _is_slip(name, event.frame.module))):
            continue
        if near:
            mend = f"did you mean `{near[0]}`?"
        elif viewed and name in tree.names:
            mend = "set an attribute with `nnx.with_attributes(model, ...)`, or give the class a `set_view`"
        else:
            mend = "attributes have to exist before they are set; `setattr` makes one"
        fix = _renamed(event.frame.module, event.node, name, near[0]) if near else None
        if viewed and names <= tree.names:
            fix = _with_attributes(event)
        report(event.frame.module, event.node, fix=fix, cls=target.cls.name, names=f"`{name}`", mend=mend)
        return


def _asks_layers(event: Called, names: Set[str], report: Reporter) -> bool:
    """Whether attributes are set of the layers of one library class, and these have no such attribute."""
    filters = event.args[1:] if event.subject in {"nnx.with_attributes", "nnx.view"} else event.args
    asked = filters[0] if len(filters) == 1 else None
    cls = asked.cls if isinstance(asked, ClassVal) else None
    known = attributes_of(cls.canonical) if isinstance(cls, LibClass) else None
    module, absent = event.frame.module, sorted(names - (known or names))
    if (
        cls is None
        or known is None
        or not absent
        or "raise_if_not_found" in event.keywords
        or is_tried(module, event.node)
    ):
        return False
    if any(has_in_text(heir, absent[0]) for heir in module.project.heirs.mentioning(cls.name, absent[0])):
        return False
    near = difflib.get_close_matches(absent[0], known, n=1, cutoff=0.8)
    mend = f"did you mean `{near[0]}`?" if near else "give an attribute that its constructor takes"
    if not near and absent[0] in TRAINING:
        mend = next((f"it is called `{name}`" for name in sorted(known & MODE_ATTRIBUTES)), mend)
    fix = _renamed(module, event.node, absent[0], near[0]) if near else None
    report(module, event.node, fix=fix, cls=cls.name, names=f"`{absent[0]}`", mend=mend)
    return True


TRAINING = frozenset({"train", "training", "is_training", "inference", "eval", "deterministic", "use_running_average"})
"""What says, here or elsewhere, whether a layer is trained."""


def _with_attributes(event: Called) -> Fix | None:
    """Set attributes instead of a view: the result is another object, too."""
    name, call = spelled("nnx.with_attributes", event.frame.module, event.frame.env), event.node
    if name is None or not isinstance(call, ast.Call):
        return None
    return unsafe(f"Use `{name}`", replace(event.frame.module.source, call.func, name))


def _is_slip(name: str, module: Module) -> bool:
    """Whether a module uses a name once only: no attribute is called so."""
    twice = re.compile(f"{re.escape(name)}.*{re.escape(name)}", re.DOTALL)
    return module.mentions(name) and not module.mentions(twice)


def _renamed(module: Module, node: ast.AST, name: str, near: str) -> Fix | None:
    for item in node.keywords if isinstance(node, ast.Call) else ():
        if item.arg == name:
            start = module.source.span(item).start
            return Fix(f"Write `{near}`", (Edit(Span(start, start + len(name)), near),))
    return None


# -- what the mode sets itself -----------------------------------------------------------------------------------------


@judges_calls(rules.MODE_SET_TWICE, ".train", ".eval")
def mode_set_twice(event: Called, report: Reporter) -> None:
    callee, call = event.callee, event.node
    if not isinstance(callee, BoundMethod) or callee.func is not None or not is_module(callee.receiver):
        return
    twice = [name for name in event.keywords if name in MODE_ATTRIBUTES]
    if not twice or not isinstance(call, ast.Call):
        return
    value = event.keywords[twice[0]]
    same = isinstance(value, Const) and value.value is (callee.name == "eval")
    func = event.frame.module.source.span(call.func)
    end = event.frame.module.source.span(call).end
    alone = same and len(call.keywords) == 1 and not call.args
    fix = Fix("Leave it out", (Edit(Span(func.end, end), "()"),)) if alone else None
    mend = "leave it out" if same else f"set it alone: `set_attributes({twice[0]}=...)`"
    report(event.frame.module, call, fix=fix, method=f"{callee.name}()", name=twice[0], mend=mend)


# -- modes of another name ---------------------------------------------------------------------------------------------


@judges_calls(rules.MODE_NOT_SWITCHED, ".train", ".eval")
def mode_not_switched(event: Called, report: Reporter) -> None:
    callee = event.callee
    if not isinstance(callee, BoundMethod) or callee.func is not None or not isinstance(callee.receiver, Obj):
        return
    obj = callee.receiver
    if not is_module(obj) or not isinstance(obj.cls, UserClass) or obj.assumed or event.keywords or event.args:
        return
    for held in Tree(obj).modules:
        if not isinstance(held.cls, UserClass) or (held is not obj and _overrides(held.cls, callee.name)):
            continue
        for name in OWN_FLAGS:
            attr = attribute_of(held, name)
            assignments = attr.assignments if attr is not None else ()
            flag = attr.value if attr is not None and assignments else None
            if attr is None:  # all instances may have that of the class
                flag = held.cls.class_attribute(name)
            stays = flag.value if isinstance(flag, Const) else None
            if not isinstance(stays, bool) or stays is (callee.name == "train"):
                continue
            if not _is_set_elsewhere(event.frame.module, obj.cls, held.cls, name, assignments):
                report(event.frame.module, event.node, call=f".{callee.name}()", cls=held.cls.name, path=name)
                return


def _overrides(cls: UserClass, method: str) -> bool:
    """Whether a class sees to its mode itself, however it is told."""
    return any(method_of(cls, name) is not None for name in (method, "set_attributes", "set_mode", "set_view"))


def _is_set_elsewhere(
    here: Module, root: UserClass, cls: UserClass, name: str, assignments: tuple[Assignment, ...]
) -> bool:
    """Whether some place sets an attribute of this name, on whatever object, other than those of the constructor and of
    what is there for the constructor alone: the program sees to it itself.
    """
    found = method_of(cls, "__init__")
    own = {id(node) for node in walk(found[1].node)} if found is not None else set[int]()
    classes = (item for each in (root, cls) for item in each.lineage)
    modules = [*dict.fromkeys((here, *(item.module for item in classes), *(item.module for item in assignments)))]
    for item in assignments:
        helper = enclosing(item.module, item.node, *FUNCTIONS)
        name_of_helper = helper.name if isinstance(helper, ast.FunctionDef) else ""
        mentioned = sum(_mentions(module.tree)[name_of_helper] for module in modules)
        if found is not None and mentioned == _mentions(found[1].node)[name_of_helper] == 1:
            own.update(id(node) for node in walk(item.node))
    for module in modules:
        for node in walk(module.tree):
            stored = isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store)
            named = isinstance(node, ast.keyword) and node.arg == name and statement_of(module, node) is not None
            written = isinstance(node, ast.Constant) and node.value == name  # for `setattr`
            if id(node) not in own and (stored or written or (named and _sets_attributes(module, node))):
                return True
    return False


@remembered
def _mentions(tree: ast.AST) -> Counter[str]:
    """How often a text reads a name, or an attribute of that name."""
    nodes = [node for node in walk(tree) if isinstance(node, (ast.Name, ast.Attribute))]
    read = [node for node in nodes if isinstance(node.ctx, ast.Load)]
    return Counter(node.id if isinstance(node, ast.Name) else node.attr for node in read)


def _sets_attributes(module: Module, node: ast.AST) -> bool:
    call = enclosing(module, node, ast.Call)
    func = call.func if call is not None else None
    return isinstance(func, ast.Attribute) and func.attr in {
        "set_attributes",
        "with_attributes",
        "train",
        "eval",
        "view",
    }
