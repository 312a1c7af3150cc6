"""Loops that take the elements of something for others than they are (NNX865): keys for items, pairs for modules.

Invariants: a pair, or its path, is taken for a module only where the loop uses it in a way in which no tuple can be
used; keys are taken for items where two or more targets unpack them, one of which must then be a letter; an element of
a State is taken for a Variable only where it is asked for what an array has, or computed with.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.classes import LibClass, UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.elements import element_of
from nnx_lint.model.events import Called, Iterated, Unpacked
from nnx_lint.model.expressions import text_of
from nnx_lint.model.instances import ARRAY_LAYERS
from nnx_lint.model.states import StateVal
from nnx_lint.model.unions import UnionVal, options, present
from nnx_lint.model.values import UNKNOWN, Array, Const, Obj, Unknown, Value
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.blocks import fresh
from nnx_lint.rules.edits import insert, replace, unsafe
from nnx_lint.rules.intermediates.sowing import is_module
from nnx_lint.rules.program import LOOPS, ancestors, canonical_of, is_asked_for, is_called, is_tried, resolved
from nnx_lint.rules.randomness.reading import is_rngs, stands_for_rngs
from nnx_lint.syntax.binding import is_name, occurrences
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.frames import Frame

PAIRS = {f"nnx.{name}": "a path and a module" for name in ("iter_modules", "iter_children")} | {
    "nnx.iter_graph": "a path and a value",
    "nnx.to_flat_state": "a path and a Variable",
}
"""Functions whose results give pairs, and of what."""

METHODS = frozenset({"iter_modules", "iter_children"})
"""The methods of modules that stand for the functions of the same name."""

OF_TUPLES = frozenset({"count", "index"})


@judges(rules.LOOP_ELEMENTS, Iterated)
def keys_as_items(event: Iterated, report: Reporter) -> None:
    """The keys of an ``nnx.Dict`` or of a State are unpacked."""
    value, target = present(event.value), event.target
    what = _keyed(value) if isinstance(target, (ast.Tuple, ast.List)) else None
    if what is not None and not is_tried(event.frame.module, event.node):
        text = text_of(event.node)
        slots: dict[str, Any] = {"elements": "its keys", "mend": f"write `{text}.items()`"}
        plain = isinstance(event.node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        end = event.frame.module.source.span(event.node).end
        fix = unsafe(f"Write `{text}.items()`", insert(end, ".items()")) if plain else None
        report(event.frame.module, event.node, fix=fix, name=text, value=what, **slots)


def _keyed(value: Value) -> str | None:
    if isinstance(value, StateVal):
        return "a State"
    is_dict = isinstance(value, Obj) and isinstance(value.cls, LibClass) and value.cls.derives_from("nnx.Dict")
    return "an `nnx.Dict`" if is_dict else None


@judges(rules.LOOP_ELEMENTS, Iterated)
def module_without_elements(event: Iterated, report: Reporter) -> None:
    """A module is gone through that is no container: one that was made under a map, with all layers in it."""
    value, module = event.value, event.frame.module
    if not isinstance(value, Obj) or value.origin is None or not _is_no_container(value):
        return
    if not is_tried(module, event.node) and not is_asked_for(module, event.node):
        slots: dict[str, Any] = {"value": value.describe(), "elements": "nothing: the class has no `__iter__`"}
        mend = "go over a list of modules, or `nnx.scan` over one that a map has made"
        report(module, event.node, name=text_of(event.node), mend=mend, **slots)


@judges(rules.LOOP_ELEMENTS, Unpacked, of=(Obj,))
def record_taken_apart(event: Unpacked, report: Reporter) -> None:
    """A record that a module returns is unpacked as if it were a tuple: ``logits, cache = self.decoder(x)``."""
    value, module = event.value, event.frame.module
    cls = value.cls if isinstance(value, Obj) and value.origin is not None and not value.assumed else None
    if not isinstance(cls, UserClass) or not cls.generated_init or cls.is_open or cls.named_tuple or cls.remade:
        return
    has_elements = any(cls.find(name) is not None for name in ("__iter__", "__getitem__"))
    if not has_elements and not cls.opaque and not is_tried(module, event.node):
        fields = [field.name for field in cls.all_fields()]
        slots: dict[str, Any] = {"value": f"a record, `{cls.name}`", "elements": "nothing: the class has no `__iter__`"}
        mend = f"take its fields by their names: `output = ...`, `output.{fields[0] if fields else 'field'}`"
        report(module, event.target, name=text_of(event.value_node), mend=mend, **slots)


@judges(rules.LOOP_ELEMENTS, Iterated)
def function_in_loop(event: Iterated, report: Reporter) -> None:
    """A loop goes over a function that would give what it is to go over, and is not called."""
    value, module = event.value, event.frame.module
    if not isinstance(value, FuncVal) or value.decorators or is_asked_for(module, event.node):
        return
    if not is_tried(module, event.node):
        name, what = text_of(event.node), f"the function `{value.name}`"
        elements = "nothing: only what it returns has elements"
        report(module, event.node, name=name, value=what, elements=elements, mend=f"call it: `{name}(...)`")


@judges_calls(rules.LOOP_ELEMENTS, ".extend", "builtins.list", "builtins.tuple", "nnx.List")
def module_for_list(event: Called, report: Reporter) -> None:
    """One module where a list of modules is taken: ``layers.extend(nnx.Linear(...))``."""
    value, callee, module = event.args[0] if len(event.args) == 1 else None, event.callee, event.frame.module
    if not isinstance(value, Obj) or not _is_no_container(value) or is_tried(module, event.node):
        return
    adds = isinstance(callee, BoundMethod) and isinstance(callee.receiver, Seq)
    if adds or not isinstance(callee, BoundMethod):
        slots: dict[str, Any] = {"value": value.describe(), "elements": "nothing: the class has no `__iter__`"}
        name = text_of(event.nodes[0])
        mend = "add one module with `append`" if adds else f"give it a list: `[{name}]`"
        report(module, event.nodes[0], name=name, mend=mend, **slots)


def _is_no_container(value: Obj) -> bool:
    """Whether an object certainly is a module without elements."""
    cls = value.cls
    if value.assumed or cls.is_open or not cls.derives_from("nnx.Module"):
        return False
    if not isinstance(cls, UserClass):
        return cls.library is not None and cls.library.name in ARRAY_LAYERS - {"Sequential"}
    plain = cls.library is not None and cls.library.canonical in {"nnx.Module", "nnx.Pytree"}
    known = plain and not cls.remade and not cls.opaque
    return known and cls.find("__iter__") is None and cls.find("__getitem__") is None


@judges(rules.LOOP_ELEMENTS, Iterated)
def keys_as_modules(event: Iterated, report: Reporter) -> None:
    """The keys of an ``nnx.Dict``, which are strings, are called."""
    value, target, module = present(event.value), event.target, event.frame.module
    if not isinstance(target, ast.Name) or _keyed(value) != "an `nnx.Dict`" or is_tried(module, event.node):
        return
    loop = next((item for item in ancestors(module, event.node) if isinstance(item, LOOPS)), None)
    names = occurrences(loop, target.id) if loop else []
    stored = [node for node in names if not isinstance(node.ctx, ast.Load)]
    if len(stored) == 1 and any(is_called(module, node) for node in names):
        text = text_of(event.node)
        fix = unsafe(f"Write `{text}.values()`", insert(module.source.span(event.node).end, ".values()"))
        plain = isinstance(event.node, (ast.Name, ast.Attribute))
        slots: dict[str, Any] = {"elements": "its keys", "mend": f"write `{text}.values()`"}
        report(module, event.node, fix=fix if plain else None, name=text, value="an `nnx.Dict`", **slots)


@judges(rules.LOOP_ELEMENTS, Iterated)
def keys_of_each_batch(event: Iterated, report: Reporter) -> None:
    """The keys of batches are unpacked, which are dicts of arrays: ``for image, label in loader``."""
    held = present(event.value)
    if isinstance(event.target, ast.Tuple) and not isinstance(held, DictVal):
        batch, elements = element_of(held, event.frame.level), "dicts, and unpacks their keys"
        _keys_as_arrays(event.frame, event.node, event.target, batch, ("a sequence of dicts", elements), report)


@judges(rules.LOOP_ELEMENTS, Unpacked, of=(DictVal, UnionVal))
def keys_of_batch(event: Unpacked, report: Reporter) -> None:
    """The keys of a batch are unpacked: ``image, label = batch``."""
    _keys_as_arrays(event.frame, event.value_node, event.target, present(event.value), ("a dict", "its keys"), report)


def _keys_as_arrays(
    frame: Frame, node: ast.AST, target: ast.expr, batch: Value, words: tuple[str, str], report: Reporter
) -> None:
    """Report a dict of arrays of which several names are to be the arrays."""
    if not isinstance(target, ast.Tuple) or any(isinstance(item, ast.Starred) for item in target.elts):
        return
    keys = [_key_of_batch(option) for option in options(batch)]
    if None in keys or is_tried(frame.module, node):
        return
    elements, mend = f"{words[1]}, such as `{keys[0]!r}`", f"take the entries by name: `batch[{keys[0]!r}]`"
    report(frame.module, node, name=text_of(node), value=words[0], elements=elements, mend=mend)


def _key_of_batch(value: Value) -> str | None:
    """The first key of a dict with arrays under names."""
    if not isinstance(value, DictVal) or not value.exact or not any(isinstance(item, Array) for _, item in value.items):
        return None
    keys = [key.value for key, _ in value.items if isinstance(key, Const) and isinstance(key.value, str)]
    return keys[0] if len(keys) == len(value.items) else None


@judges(rules.LOOP_ELEMENTS, Iterated)
def names_in_loop(event: Iterated, report: Reporter) -> None:
    _names_as_streams(event.frame, event.node, event.value, report)


@judges(rules.LOOP_ELEMENTS, Unpacked)
def names_unpacked(event: Unpacked, report: Reporter) -> None:
    _names_as_streams(event.frame, event.value_node, event.value, report)


def _names_as_streams(frame: Frame, node: ast.AST, value: Value, report: Reporter) -> None:
    """Report where what ``rngs.split(n)`` gives is taken for a list of streams: it is one object, whose streams have n
    keys each.
    """
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr not in {"fork", "split"}:
        return
    streams = is_rngs(value) or (isinstance(value, Unknown) and stands_for_rngs(resolved(frame.env, func.value)))
    if streams and not is_tried(frame.module, node):
        name = frame.module.source.segment(node)
        mend = f"make streams for each: `{text_of(func.value)}.fork()`, or map over it: `nnx.vmap(make)({name})`"
        what, elements = "one object with all the streams", "the names of its streams, and so does who unpacks it"
        report(frame.module, node, name=name, value=what, elements=elements, mend=mend)


OF_ARRAYS = frozenset({"T", "at", "dtype", "get_value", "mean", "ndim", "shape", "size", "sum", "value"})
"""Attributes of arrays and Variables that neither strings nor States have."""


@judges(rules.LOOP_ELEMENTS, Iterated)
def keys_as_variables(event: Iterated, report: Reporter) -> None:
    """The keys of a State are taken for its Variables."""
    if isinstance(event.target, ast.Name) and isinstance(present(event.value), StateVal):
        elements, name = "its keys, the names of attributes", text_of(event.node)
        _as_leaves(event, event.target, name, "a State", elements, f"jax.tree.leaves({name})", report)


@judges(rules.LOOP_ELEMENTS, Iterated)
def parts_as_variables(event: Iterated, report: Reporter) -> None:
    """The items of a State are taken for its Variables, and those of modules are States in turn."""
    call, target = event.node, event.target
    func = call.func if isinstance(call, ast.Call) and not call.args else None
    if not isinstance(func, ast.Attribute) or func.attr not in {"items", "values"}:
        return
    of = _object_of(event.frame, func.value)
    last = target.elts[-1] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else target
    if not isinstance(of, Obj) or not isinstance(last, ast.Name) or not isinstance(of.cls, UserClass):
        return
    held = [attribute_of(of, name) for name in attribute_names(of)]
    if any(isinstance(attr.value, Obj) and is_module(attr.value) for attr in held if attr is not None):
        name, whole = text_of(func.value), text_of(func)
        mend = f"nnx.to_flat_state({name})"
        _as_leaves(event, last, whole, "a method of a State", "a State for each module in it", mend, report)


def _object_of(frame: Frame, node: ast.expr) -> Value | None:
    """What the State is of that a name means, or a call of ``nnx.state`` gives."""
    if isinstance(node, ast.Call) and node.args and canonical_of(frame.env, node.func) == "nnx.state":
        return present(resolved(frame.env, node.args[0]) or UNKNOWN)
    state = present(resolved(frame.env, node) or UNKNOWN)
    return present(state.of) if isinstance(state, StateVal) else None


def _as_leaves(
    event: Iterated, target: ast.Name, name: str, value: str, elements: str, mend: str, report: Reporter
) -> None:
    """Report where a loop uses an element as if it were a Variable."""
    module, iterable = event.frame.module, event.node
    for node in _body(event.frame, iterable) if isinstance(iterable, ast.expr) else ():
        if is_name(node, target.id):
            parent = next(ancestors(module, node), None)
            if not isinstance(node.ctx, ast.Load) or is_asked_for(module, node) or is_tried(module, node):
                return
            if (isinstance(parent, ast.Attribute) and parent.attr in OF_ARRAYS) or _computes(event.frame, parent, node):
                slots: dict[str, Any] = {"value": value, "elements": elements, "mend": f"go over `{mend}`"}
                report(module, node, related=(related(module, event.node, "over this"),), name=name, **slots)
                return


def _computes(frame: Frame, parent: ast.AST | None, node: ast.AST) -> bool:
    """Whether something is computed with an element, as with an array: neither strings nor States can be squared."""
    if isinstance(parent, ast.BinOp):
        return isinstance(parent.op, ast.Pow) and parent.left is node
    return isinstance(parent, ast.Call) and (canonical_of(frame.env, parent.func) or "").startswith("jax.numpy.")


@judges(rules.LOOP_ELEMENTS, Iterated)
def pairs_as_modules(event: Iterated, report: Reporter) -> None:
    """The pairs of a path and a module are used as if they were modules, or unpacked as if the module came first."""
    frame, call, target = event.frame, event.node, event.target
    pairs = _pairs(frame, call) if isinstance(call, ast.Call) else None
    first = target.elts[0] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else target
    if pairs is None or not isinstance(call, ast.Call) or not isinstance(first, ast.Name):
        return
    node = _first_use(frame, call, first)
    if node is None:
        return
    source = frame.module.source
    if first is target:
        mend, fixing = f"unpack them: `for path, {first.id} in ...`", "Unpack the pairs"
        unpacked = f"{fresh(frame.module, 'path')}, {first.id}"
    else:
        unpacked = ", ".join(source.segment(item) for item in reversed(getattr(target, "elts", ())))
        mend, fixing = f"the path comes first: `for {unpacked} in ...`", "Swap the names"
    fix = unsafe(fixing, replace(source, target, unpacked))
    places = (related(frame.module, call, "these are pairs"),)
    slots: dict[str, Any] = {"value": "an iterator", "elements": f"pairs of {pairs}", "mend": mend}
    report(frame.module, node, fix=fix, related=places, name=text_of(call.func), **slots)


def _first_use(frame: Frame, call: ast.Call, target: ast.Name) -> ast.Name | None:
    """Where what a loop calls by this name is first used in a way in which no tuple can be used."""
    named = [node for node in _body(frame, call) if is_name(node, target.id)]
    if not all(isinstance(node.ctx, ast.Load) for node in named):
        return None
    return next((node for node in named if _is_no_tuple(frame, node)), None)


def _pairs(frame: Frame, call: ast.Call) -> str | None:
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in METHODS and is_module(resolved(frame.env, func.value)):
        return PAIRS[f"nnx.{func.attr}"]
    return PAIRS.get(canonical_of(frame.env, func) or "")


def _body(frame: Frame, iterable: ast.expr) -> Iterator[ast.AST]:
    """The nodes of what runs for each element."""
    parent = next(ancestors(frame.module, iterable), None)
    if isinstance(parent, (ast.For, ast.AsyncFor)):
        for statement in parent.body:
            yield from walk(statement)
    elif isinstance(parent, ast.comprehension):
        for test in parent.ifs:
            yield from walk(test)
        outer = next(ancestors(frame.module, parent), None)
        parts = (getattr(outer, name, None) for name in ("elt", "key", "value"))
        for part in parts:
            yield from walk(part) if isinstance(part, ast.AST) else ()


def _is_no_tuple(frame: Frame, use: ast.Name) -> bool:
    """Whether a use of a name asks for what no tuple has: an attribute, a call, a class of NNX."""
    parent = next(ancestors(frame.module, use), None)
    if isinstance(parent, ast.Attribute):
        return parent.attr not in OF_TUPLES and not parent.attr.startswith("__")
    if not isinstance(parent, ast.Call):
        return False
    if is_called(frame.module, use):
        return True
    tested = is_name(parent.func, "isinstance") and parent.args[0] is use
    return tested and len(parent.args) > 1 and (canonical_of(frame.env, parent.args[1]) or "").startswith("nnx.")
