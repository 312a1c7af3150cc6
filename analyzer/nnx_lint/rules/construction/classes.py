"""What a class body shows: a constructor that leaves out that of its base (NNX830), transforms over descriptors
(NNX837), a forward pass without a result (NNX867).
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit, Fix
from nnx_lint.model.attributes import ANY_NAME, attribute_names
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import LibClass, UserClass, method_of
from nnx_lint.model.events import ClassDefined, Constructed, TransformApplied
from nnx_lint.model.expressions import text_of
from nnx_lint.model.later import CONSTRUCTORS
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.bindings import names_of_first, pairs_of
from nnx_lint.rules.blocks import append_to_block
from nnx_lint.rules.callees import working
from nnx_lint.rules.construction.mends import with_base_constructor
from nnx_lint.rules.edits import insert, unsafe
from nnx_lint.rules.program import calls_in, certain_block, enclosing, own_nodes
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import construction as rules
from nnx_rules.signatures import SIGNATURES

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from nnx_lint.model.classes import ClassBase


# -- constructors of bases ---------------------------------------------------------------------------------------------


def is_left_out(cls: UserClass, obj: Obj, name: str) -> bool:
    """Whether NNX830 says why an attribute is missing: the constructor of a base, which sets it, does not run."""
    if "__init__" not in cls.methods or cls.opaque or cls.remade:
        return False
    missing = _left_out(cls, obj, "__init__")
    found = missing[0].methods.get("__init__") if missing is not None and isinstance(missing[0], UserClass) else None
    return isinstance(found, FuncVal) and any(name == each for each, _ in self_names(found, store=True))


@judges(rules.MISSING_SUPER_INIT, Constructed)
def missing_super_init(event: Constructed, report: Reporter) -> None:
    cls, obj = event.cls, event.obj
    constructor = "__post_init__" if cls.generated_init else "__init__"
    func = cls.methods.get(constructor)
    if not isinstance(func, FuncVal) or isinstance(func.node, ast.Lambda) or cls.is_open or cls.opaque or cls.remade:
        return
    if ANY_NAME in attribute_names(obj) or not _ends(func.node) or _hands_itself_on(func.node):
        return
    missing = _left_out(cls, obj, constructor)
    if missing is not None:
        base, path, method = missing
        report(
            cls.module,
            func.node.args if not func.node.body else _head(func.node),
            cls=cls.name,
            constructor=constructor,
            base=base.name,
            path=path,
            method=method,
            fix=partial(with_base_constructor, cls, func.node, base, constructor) if cls.ancestors[1] is base else None,
        )


def _head(node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
    """What stands for the constructor: its first statement."""
    return node.body[0]


def _ends(node: ast.AST) -> bool:
    """Whether a constructor does something else than to fail."""
    body = getattr(node, "body", [])
    return not (len(body) == 1 and isinstance(body[0], ast.Raise))


def _hands_itself_on(node: ast.AST) -> bool:
    """Whether a constructor calls one of a base, or hands ``self`` to something that may do so."""
    arguments = getattr(node, "args", None)
    receiver = arguments.args[0].arg if isinstance(arguments, ast.arguments) and arguments.args else None
    return any(gets_instance(call, receiver) and not _sets(call, {receiver}) for call in calls_in(node))


def gets_instance(call: ast.Call, receiver: str | None) -> bool:
    """Whether a call gets an instance by the name that a method has for it: as an argument, or by ``super()``."""
    given = [*call.args, *(item.value for item in call.keywords)]
    is_super = is_name(call.func, "super")
    return is_super or any(is_name(item, receiver) for item in given)


def _left_out(cls: UserClass, obj: Obj, constructor: str) -> tuple[ClassBase, str, str] | None:
    """The base whose constructor did not run, an attribute that it sets, and the method that reads it."""
    for base in cls.ancestors[1:]:
        if isinstance(base, LibClass):
            return _of_library(cls, base, obj)
        found = base.methods.get(constructor) if isinstance(base, UserClass) else None
        if not isinstance(base, UserClass) or not isinstance(found, FuncVal):
            continue
        assigned = {name for name, _ in self_names(found, store=True)}
        run = _run_by_itself(cls)
        known = {*attribute_names(obj), *assigned_elsewhere(cls, found)}
        for name, method in [*base.methods.items(), *cls.methods.items()]:
            own = cls.find(name)
            if own is None or own[0] not in {base, cls} or not isinstance(method, FuncVal):
                continue
            if own[1] is not method and not (isinstance(own[1], FuncVal) and _calls_base(own[1])):
                continue
            if name in CONSTRUCTORS or (run is not None and name not in run):
                continue
            reads = [each for each, _ in self_names(method, store=False) if each in assigned and each not in known]
            if reads and not _asks(method, reads[0]):
                return base, f"self.{reads[0]}", f"{method.cls.name if method.cls is not None else base.name}.{name}"
        return None
    return None


def _run_by_itself(cls: UserClass) -> set[str] | None:
    """The methods that a class with a forward pass of its own has and runs: it may do without all others of its bases.
    ``None`` if that is not known.
    """
    own = {name: each for name, each in cls.methods.items() if name not in CONSTRUCTORS and isinstance(each, FuncVal)}
    calls = (call for each in own.values() for call in calls_in(each.node))
    if "__call__" not in own or any(is_name(call.func, "super") for call in calls):
        return None
    found, fresh = set[str](), [*own]
    while fresh:
        name = fresh.pop()
        method = cls.find(name) if name not in found else None
        found.add(name)
        if method is not None and isinstance(method[1], FuncVal):
            fresh += [each for each, _ in self_names(method[1], store=False)]
    return found


LAYERS = dict.fromkeys(("nnx.Linear", "nnx.LinearGeneral", "nnx.Conv", "nnx.ConvTranspose", "nnx.Einsum"), "kernel") | {
    "nnx.List": "_length",
    "nnx.Sequential": "layers",
    "nnx.Embed": "embedding",
    "nnx.Dropout": "rate",
    "nnx.BatchNorm": "use_running_average",
    "nnx.LayerNorm": "epsilon",
    "nnx.RMSNorm": "epsilon",
    "nnx.GroupNorm": "epsilon",
    "nnx.MultiHeadAttention": "num_heads",
}
"""An attribute that the forward pass of a layer reads and its constructor sets."""


READERS = {"nnx.List": "__len__"}
"""What reads it instead, where that is no forward pass."""


def _of_library(cls: UserClass, base: LibClass, obj: Obj) -> tuple[ClassBase, str, str] | None:
    name = LAYERS.get(base.canonical)
    reader = READERS.get(base.canonical, "__call__")
    called = method_of(cls, reader)
    if name is None or base.canonical not in SIGNATURES or (called is not None and not _needs(called[1], name)):
        return None
    if name in attribute_names(obj) or cls.class_attribute(name) is not None or cls.find(name) is not None:
        return None
    if called is not None and name in assigned_elsewhere(cls, called[1]):
        return None
    return base, f"self.{name}", f"{base.name}.{reader}"


def _needs(func: FuncVal, name: str) -> bool:
    """Whether a method reads an attribute of the base itself, or has the base do so."""
    return _calls_base(func) or (not _asks(func, name) and name in dict(self_names(func, store=False)))


def _calls_base(func: FuncVal) -> bool:
    """Whether a method calls the one of the same name in a base, whatever else it does first."""
    calls = (node.func for node in walk(func.node) if isinstance(node, ast.Call))
    methods = (item for item in calls if isinstance(item, ast.Attribute) and item.attr == func.name)
    return any(isinstance(item.value, ast.Call) and is_name(item.value.func, "super") for item in methods)


def self_names(func: FuncVal, *, store: bool) -> Iterator[tuple[str, ast.expr]]:
    """The attributes of ``self`` that a method assigns or reads."""
    names = names_of_first(func.node)
    for node in walk(func.node):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) is store:
            if isinstance(node.value, ast.Name) and node.value.id in names:
                yield node.attr, node
        elif isinstance(node, ast.Call) and store and _sets(node, names) and isinstance(node.args[1], ast.Constant):
            yield str(node.args[1].value), node


def _sets(call: ast.Call, names: Set[str | None]) -> bool:
    """Whether a call is ``setattr(self, ...)``."""
    first = call.args[0] if len(call.args) == 3 else None
    builtin = is_name(call.func, "setattr")
    return builtin and isinstance(first, ast.Name) and first.id in names


def assigned_elsewhere(cls: UserClass, but: FuncVal) -> set[str]:
    """Names that other methods, or the class bodies, give to attributes."""
    names: set[str] = set()
    for item in cls.ancestors:
        if isinstance(item, UserClass):
            names |= {*item.attributes, *item.methods, *item.fields}
            for method in item.methods.values():
                if isinstance(method, FuncVal) and method is not but:
                    names |= {name for name, _ in self_names(method, store=True)}
    return names


def _asks(func: FuncVal, name: str) -> bool:
    """Whether a method looks first whether there is such an attribute."""
    return any(isinstance(node, ast.Constant) and node.value == name for node in walk(func.node))


# -- transforms over descriptors ---------------------------------------------------------------------------------------

DESCRIPTORS = frozenset({"staticmethod", "classmethod", "property"})


@judges(rules.TRANSFORM_OVER_DESCRIPTOR, TransformApplied)
def transform_over_descriptor(event: TransformApplied, report: Reporter) -> None:
    if event.how != "decorator" or not event.applied.row.level:
        return
    module, node = event.frame.module, event.applied.node
    if len(getattr(getattr(event.func, "node", None), "decorator_list", (None, None))) < 2:
        return
    func = enclosing(module, node, ast.FunctionDef)
    place = next((i for i, item in enumerate(func.decorator_list) if item is node), None) if func is not None else None
    if func is None or place is None or enclosing(module, func, ast.ClassDef) is None:
        return
    below = func.decorator_list[place + 1 :]
    inner = next((item for item in below if isinstance(item, ast.Name) and item.id in DESCRIPTORS), None)
    if inner is None or event.frame.env.lookup(inner.id) is not None:
        return
    source = module.source
    edits = (Edit(source.span(node), inner.id), Edit(source.span(inner), source.segment(node)))
    text = event.applied.text
    report(module, node, fix=Fix("Exchange the decorators", edits), transform=text, descriptor=inner.id)


# -- forward passes ----------------------------------------------------------------------------------------------------


@judges(rules.FORGOTTEN_RETURN, ClassDefined)
def forgotten_return(event: ClassDefined, report: Reporter) -> None:
    """The last statement of a forward pass binds a name of its own, which nothing can read any more, or computes
    something without a name.
    """
    cls, func = event.cls, event.cls.own_method("__call__")
    func = working(func) if isinstance(func, FuncVal) else None
    if func is None or isinstance(func.node, ast.Lambda) or not cls.derives_from("nnx.Module"):
        return
    last = _last(func.node.body)
    thrown = last if last is not func.node.body[-1] or not isinstance(last, (ast.If, ast.Match)) else _innermost(last)
    if isinstance(thrown, ast.Expr) and isinstance(thrown.value, ast.BinOp):
        last = thrown
        if not any(isinstance(node, RESULTS) for node in own_nodes(func.node)):
            fix = unsafe("Return it", insert(func.module.source.span(last).start, "return "))
            name = text_of(thrown.value)
            report(func.module, last, fix=fix, function=f"{cls.name}.__call__", ends=_computed(name), name=name)
        return
    targets = [last.target] if isinstance(last, ast.AugAssign) else [target for target, _ in pairs_of(last)]
    names = [target for target in targets if isinstance(target, ast.Name)]
    target = next((name for name in names if not name.id.startswith("_")), None)
    if target is None or len(names) < len(targets):
        return
    if any(isinstance(node, RESULTS) for node in own_nodes(func.node)):
        return
    module, source = func.module, func.module.source
    edits = append_to_block(source, func.node.body, f"return {target.id}")
    fix = unsafe(f"Return `{target.id}`", edits)
    report(module, last, fix=fix, function=f"{cls.name}.__call__", ends=_computed(target.id), name=target.id)


def _computed(name: str) -> str:
    return f"ends when it has computed `{name}`"


def _last(body: list[ast.stmt]) -> ast.stmt:
    """The statement that a block ends with, unless it ends with an error."""
    last = body[-1]
    inner = last.body if isinstance(last, ast.For) and not last.orelse else certain_block(last)
    return _last(inner) if inner else last


def _innermost(statement: ast.stmt) -> ast.stmt:
    """The last statement of the first block of a choice, which may be one as well."""
    block = statement.cases[0].body if isinstance(statement, ast.Match) else getattr(statement, "body", [])
    return _innermost(block[-1]) if isinstance(statement, (ast.If, ast.Match)) else statement


RESULTS = (ast.Return, ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal)
"""What gives a function another result than ``None``, or a name another meaning."""
