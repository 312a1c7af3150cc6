"""Keys of ``nnx.Dict`` (NNX854), elements and arguments of ``nnx.Sequential`` (NNX855, NNX856), and functions that walk
through what is no object (NNX860) or cannot be changed (NNX861).
"""

from __future__ import annotations

import ast
import itertools
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.diagnostics import Edit, Fix
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import ClassBase, UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.elements import element_of, library_elements
from nnx_lint.model.events import Called, ItemSet
from nnx_lint.model.expressions import text_of
from nnx_lint.model.unions import options
from nnx_lint.model.values import (
    NUMBER,
    Array,
    Const,
    Ext,
    Obj,
    Value,
)
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.attributes.given import noted_by_call
from nnx_lint.rules.attributes.mends import DICT_NAMES
from nnx_lint.rules.construction.calls import forward_of, lacks_call
from nnx_lint.rules.edits import is_parenthesized, wrap
from nnx_lint.rules.program import ancestors, is_tried, own_statements, resolved
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_rules.rules import construction as rules
from nnx_rules.signatures import CALL_KEYWORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.modules import Env, Module


# -- keys --------------------------------------------------------------------------------------------------------------


class Key(NamedTuple):
    """A key that no attribute can have: where it is written, what it is and how to mend that, and the mended key."""

    node: ast.AST
    shown: str
    problem: str
    mend: str
    literal: ast.expr | None = None


@judges_calls(rules.DICT_KEYS, "nnx.Dict")
def dict_keys(event: Called, report: Reporter) -> None:
    for key in _keys_given(event):
        _report_key(event.frame.module, key, report)


@judges(rules.DICT_KEYS, ItemSet)
def dict_key_set(event: ItemSet, report: Reporter) -> None:
    """``layers[0] = layer`` gives an attribute a number for a name."""
    key = _key_set(event)
    if key is not None:
        _report_key(event.frame.module, key, report)


@judges_calls(rules.DICT_KEYS, "class")
def dict_keys_of_caller(event: Called, report: Reporter) -> None:
    """The same where a constructor makes the keys of what it is given."""
    for noted in noted_by_call(event):
        keys: list[Key | None] = []
        if isinstance(noted, Called):
            keys.extend(_keys_given(noted) if noted.inherited == "nnx.Dict" else ())
        else:
            keys.append(_key_set(noted))
        key = next((each for each in keys if each is not None and each.problem == NO_STRING), None)
        if key is not None and not _is_counted(noted.frame.module, key.node):
            places = (related(noted.frame.module, key.node, "it becomes a key here"),)
            report(event.frame.module, event.node, key=key.shown, problem=key.problem, mend=key.mend, related=places)
            return


def _is_counted(module: Module, node: ast.AST) -> bool:
    """Whether a loop around a key counts: the key is a number then, whatever the constructor is given."""
    loops = [item for item in (node, *ancestors(module, node)) if isinstance(item, (ast.For, ast.DictComp))]
    sources = [[loop.iter] if isinstance(loop, ast.For) else [each.iter for each in loop.generators] for loop in loops]
    calls = [source.func for each in sources for source in each if isinstance(source, ast.Call)]
    return any(isinstance(func, ast.Name) and func.id in {"enumerate", "range"} for func in calls)


NO_STRING = "is no string"


def _keys_given(event: Called) -> Iterator[Key]:
    """The keys of what a dict is made of that are no names."""
    module = event.frame.module
    given = event.args[0] if event.args else None
    node = event.nodes[0] if event.nodes else None
    written = [key for key in node.keys if key is not None] if isinstance(node, ast.Dict) else []
    for key, _ in given.items if isinstance(given, DictVal) else ():
        if key is NUMBER:
            what = f"`{module.source.segment(node.key)}`" if isinstance(node, ast.DictComp) else "(a number)"
            yield Key(node or event.node, what, NO_STRING, "make one: `str(...)`")
            break
        if not isinstance(key, Const) or (isinstance(key.value, str) and key.value not in DICT_NAMES):
            continue
        place = next((each for each in written if isinstance(each, ast.Constant) and each.value == key.value), None)
        where = place if place is not None else node if node is not None else event.node
        if isinstance(key.value, str):
            yield Key(where, f'`"{key.value}"`', HIDING, f'use another one: `"{key.value}_"`')
        else:
            literal = place if isinstance(key.value, int) else None
            mend = f'write `"{key.value}"`' if place is not None else "make one: `str(...)`"
            yield Key(where, f"`{key.value!r}`", NO_STRING, mend, literal)
    for name in event.keywords.keys() & DICT_NAMES:
        yield Key(event.node, f"`{name}`", HIDING, f"use another one: `{name}_`")


HIDING = "hides the method of this name"


def _key_set(event: ItemSet) -> Key | None:
    """The key of an item that is set, where it is no name."""
    node, key, module = event.node, event.key, event.frame.module
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    number = key is NUMBER or (isinstance(key, Const) and isinstance(key.value, int))
    if not event.obj.cls.derives_from("nnx.Dict") or event.obj.assumed or not isinstance(target, ast.Subscript):
        return None
    if not _is_of_library(event.obj.cls, "__setitem__"):
        return None
    for option in options(key):
        if isinstance(option, Const) and isinstance(option.value, str) and option.value in DICT_NAMES:
            return Key(target.slice, f'`"{option.value}"`', HIDING, f'use another one: `"{option.value}_"`')
    if not number:
        return None
    text, literal = module.source.segment(target.slice), isinstance(target.slice, ast.Constant)
    mend = f'write `"{text}"`' if literal else f"make one: `str({text})`"
    return Key(target.slice, f"`{text}`", NO_STRING, mend, target.slice if literal else None)


def _report_key(module: Module, key: Key, report: Reporter) -> None:
    fix = partial(_as_text, module, key.literal) if key.literal is not None else None
    report(module, key.node, fix=fix, key=key.shown, problem=key.problem, mend=key.mend)


def _is_of_library(cls: ClassBase, method: str) -> bool:
    """Whether no class of the project has a method of this name for its instances."""
    return not isinstance(cls, UserClass) or cls.find(method) is None


def _as_text(module: Module, node: ast.expr) -> Fix:
    return Fix("Write a string", (Edit(module.source.span(node), f'"{module.source.segment(node)}"'),))


# -- sequences of layers -----------------------------------------------------------------------------------------------


@judges_calls(rules.SEQUENTIAL, "nnx.Sequential")
def sequential_element(event: Called, report: Reporter) -> None:
    for given, node in zip(event.args, event.nodes, strict=False):
        value = _uncallable_in(event.frame.env, node) if isinstance(node, ast.Starred) else given
        if value is not None and _cannot_be_called(value):
            mend = (
                "pass the layers one by one: `nnx.Sequential(*layers)`"
                if isinstance(value, Seq)
                else "pass a layer or a function"
            )
            report(event.frame.module, node, value=value.describe(), problem="cannot be called", mend=mend)


def _uncallable_in(env: Env, node: ast.Starred) -> Value | None:
    """What certainly is in a list of layers, and is none."""
    layers = resolved(env, node.value)
    return next(filter(_cannot_be_called, layers.certain), None) if isinstance(layers, Seq) else None


@judges_calls(rules.SEQUENTIAL, "nnx.Sequential")
def sequential_element_with_arguments(event: Called, report: Reporter) -> None:
    """An element after a layer, which gives it one array, and it needs more."""
    for before, value, node in zip(event.args, event.args[1:], event.nodes[1:], strict=False):
        needed = _needs_besides(value)
        if needed is not None and isinstance(value, (Ext, FuncVal)) and _gives_one_array(before):
            name = text_of(node)
            shown = f"`{name}`" if isinstance(node, (ast.Name, ast.Attribute)) else value.describe()
            mend = f"fix it beforehand: `functools.partial({name}, {needed}=...)`"
            report(event.frame.module, node, value=shown, problem=f"needs `{needed}` besides the array", mend=mend)


def _needs_besides(value: Value | None) -> str | None:
    """The parameter without a default that a function has after its first one."""
    if isinstance(value, Ext):
        return FURTHER.get(value.name)
    if not isinstance(value, FuncVal) or value.wrapped is not value or value.decorators:
        return None
    arguments = value.node.args
    parameters = syntax_parameters.positional_names(arguments)
    required = parameters[1 : len(parameters) - len(arguments.defaults)]
    return required[0] if required else None


FURTHER = {
    **dict.fromkeys(("nnx.avg_pool", "nnx.max_pool", "nnx.min_pool"), "window_shape"),
    "jax.numpy.expand_dims": "axis",
    "jax.numpy.reshape": "shape",
}
"""What functions of an array need besides it."""

OF_ONE_ARRAY = frozenset(
    {"BatchNorm", "Conv", "ConvTranspose", "Dropout", "Embed", "GroupNorm", "LayerNorm", "Linear", "RMSNorm"}
)
"""Layers whose result is one array."""


def _gives_one_array(value: Value | None) -> bool:
    library = value.cls.called_as if isinstance(value, Obj) else None
    activation = isinstance(value, Ext) and value.name.startswith(("nnx.", "jax.nn.")) and value.name not in FURTHER
    return activation or (library is not None and library.name in OF_ONE_ARRAY)


def _cannot_be_called(value: Value) -> bool:
    """Whether a value certainly is no layer and no function; a container of layers is a mistake of its own."""
    if isinstance(value, Obj):
        return value.cls.called_as is not None and value.cls.called_as.name in {"List", "Dict"}
    if isinstance(value, Const):
        return value.value is not None and value.value is not ...
    return isinstance(value, Array) or (isinstance(value, Seq) and value.facts().holds_data is False)


@judges_calls(rules.SEQUENTIAL, "()")
def element_without_call(event: Called, report: Reporter) -> None:
    """A sequence is called, and with it each of its modules, one of which has no ``__call__``."""
    held = _layers_called(event)
    known = (*held.items, *held.certain, element_of(held, 0)) if held is not None else ()
    for item in known:
        if isinstance(item, Obj) and isinstance(item.cls, UserClass) and lacks_call(item):
            forward = forward_of(item.cls)
            mend = f"rename its method `{forward}`" if forward else "define `__call__`"
            report(event.frame.module, event.node, value=item.describe(), problem="has no `__call__`", mend=mend)
            return


@judges_calls(rules.SEQUENTIAL, "()")
def element_of_one_array(event: Called, report: Reporter) -> None:
    """An element after one that returns a tuple, whose parts are its arguments, and it takes one array."""
    held = _layers_called(event)
    for before, value in itertools.pairwise(held.items if held is not None and held.exact else ()):
        library = value.cls.called_as if isinstance(value, Obj) else None
        if not isinstance(before, Obj) or library is None or library.name not in TAKING_ONE_ARRAY:
            continue
        if (count := _results_of(before)) is not None:
            problem = f"takes one array, and the element before it returns {count} values, which become its arguments"
            mend = "return one of them, or put a module between that takes them all"
            report(event.frame.module, event.node, value=value.describe(), problem=problem, mend=mend)


@judges_calls(rules.SEQUENTIAL, "()")
def first_element_with_arguments(event: Called, report: Reporter) -> None:
    """A sequence gets one array, and its first module needs more."""
    held = _layers_called(event) if len(event.args) == 1 and not event.keywords and None not in event.args else None
    known = held.items if held is not None and held.exact else []
    first = known[0] if known else element_of(held, 0) if held is not None else None
    found = first.cls.find("__call__") if isinstance(first, Obj) and isinstance(first.cls, UserClass) else None
    needed = _needed_besides(found[1]) if found is not None else None
    if needed is not None and isinstance(first, Obj) and not is_tried(event.frame.module, event.node):
        mend = "call the modules one by one, `for layer in layers: x = layer(x, ...)`, or give it a default"
        report(event.frame.module, event.node, value=first.describe(), problem=f"needs `{needed}` as well", mend=mend)


def _needed_besides(method: Value) -> str | None:
    """The parameter without a default that a method has after ``self`` and its first one."""
    if not isinstance(method, FuncVal) or method.wrapped is not method or method.decorators:
        return None
    arguments = method.node.args
    required = syntax_parameters.positional_names(arguments)[2 : -len(arguments.defaults) or None]
    given = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return next(iter([*required, *(item.arg for item, default in given if default is None)]), None)


TAKING_ONE_ARRAY = frozenset({"Conv", "ConvTranspose", "Embed", "GroupNorm", "LayerNorm", "Linear", "RMSNorm"})
"""Layers whose call takes one array by position."""


def _results_of(obj: Obj) -> int | None:
    """How many values the call of a module of the project returns, in a tuple that is written each time."""
    found = obj.cls.find("__call__") if isinstance(obj.cls, UserClass) and not obj.assumed else None
    func = found[1] if found is not None else None
    if not isinstance(func, FuncVal) or func.wrapped is not func or not isinstance(func.node, ast.FunctionDef):
        return None
    if func.decorators:
        return None
    returned = [node.value for node in own_statements(func.node) if isinstance(node, ast.Return)]
    counts = {len(value.elts) if isinstance(value, ast.Tuple) else 0 for value in returned}
    starred = any(isinstance(each, ast.Starred) for value in returned for each in getattr(value, "elts", ()))
    count = counts.pop() if len(counts) == 1 and not starred else 0
    return count if count > 1 else None


def _layers_called(event: Called) -> Seq | None:
    """The layers of a ``Sequential`` that is called as the library defines it."""
    obj = event.callee
    if not isinstance(obj, Obj) or not obj.cls.derives_from("nnx.Sequential") or obj.cls.called_as is None:
        return None
    layers = obj.attrs.get("layers")
    return library_elements(layers.value) if layers is not None and isinstance(layers.value, Obj) else None


@judges_calls(rules.SEQUENTIAL_KEYWORD, "()")
def sequential_keyword(event: Called, report: Reporter) -> None:
    held = _layers_called(event) if event.keywords else None
    first = held.items[0] if held is not None and held.exact and held.items else None
    known = _keywords(first)
    for name in event.keywords if known is not None else ():
        if known is not None and name not in known | {"rngs", "**"}:
            what = first.describe() if first is not None else "it"
            report(event.frame.module, event.node, keyword=name, value=what)


def _keywords(value: Value | None) -> frozenset[str] | None:
    if isinstance(value, Obj) and value.cls.called_as is not None:
        return CALL_KEYWORDS.get(value.cls.called_as.name)
    if isinstance(value, FuncVal) and value.node.args.kwarg is None:
        return frozenset(item.arg for item in (*value.node.args.args, *value.node.args.kwonlyargs))
    return None


# -- walks -------------------------------------------------------------------------------------------------------------


@judges_calls(rules.NOT_A_NODE, "nnx.iter_children", "nnx.iter_module_children")
def iteration_over_non_node(event: Called, report: Reporter) -> None:
    value = event.args[0] if event.args else None
    plain = isinstance(value, Array) or (isinstance(value, Const) and value.value is not ...)
    if value is not None and plain:
        report(event.frame.module, event.nodes[0], function=event.name, value=value.describe())


@judges_calls(rules.IMMUTABLE_MAP, "nnx.recursive_map")
def recursive_map_of_tuple(event: Called, report: Reporter) -> None:
    value = event.args[1] if len(event.args) > 1 else None
    graph = event.keywords.get("graph")
    if not isinstance(value, Seq) or value.type != "tuple" or (isinstance(graph, Const) and graph.value is False):
        return
    if any(_is_leaf(item) for item in value.items):  # a function that is about modules leaves those in the tuple
        report(event.frame.module, event.nodes[1], fix=partial(_as_list, event.frame.module, event.nodes[1]))


def _is_leaf(value: Value) -> bool:
    """Whether a map meets a value as it is, and has nothing inside of it to change instead."""
    return isinstance(value, (Array, Const)) or (isinstance(value, Obj) and value.cls.derives_from("nnx.Variable"))


def _as_list(module: Module, node: ast.expr) -> Fix | None:
    """Write a list for a tuple."""
    source = module.source
    if not isinstance(node, ast.Tuple):
        return Fix("Make a list of it", wrap(source, node, "list")) if isinstance(node, (ast.Name, ast.Call)) else None
    span = source.span(node)
    inner = source.text[span.start + 1 : span.end - 1] if is_parenthesized(source, node) else source.segment(node)
    return Fix("Write a list", (Edit(span, f"[{inner}]"),))
