"""References that are meant to be one object and become several, or the reverse (NNX350, NNX351, NNX354, NNX360).

``nnx`` keeps shared references; for JAX a module is a tree, in which every reference is an object of its own.

Invariants: two references count as one object only where every run makes them so.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.diagnostics import Applicability, Fix
from nnx_lint.model import forms
from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import BoundMethod, Transformed
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import Seq
from nnx_lint.model.crossing import literal_positions
from nnx_lint.model.events import AttributeSet, Called, Constructed
from nnx_lint.model.expressions import text_of
from nnx_lint.model.leaves import contents
from nnx_lint.model.unions import options
from nnx_lint.model.values import (
    UNKNOWN,
    ClassVal,
    Obj,
    TagVal,
    Value,
)
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.attributes.rounds import is_long
from nnx_lint.rules.autodiff.donated import donated
from nnx_lint.rules.bindings import value_of
from nnx_lint.rules.callees import TRANSFORMING
from nnx_lint.rules.edits import append_argument, insert, replace, unsafe
from nnx_lint.rules.filters.coverage import leaves_of
from nnx_lint.rules.filters.expressions import ARRAY
from nnx_lint.rules.lifting import SAME_OPTIONS, on_nnx_call
from nnx_lint.rules.program import ancestors, canonical_of, enclosing, resolved
from nnx_lint.rules.randomness.arguments import draws, taken_by
from nnx_lint.rules.traces.boundaries import transform_of
from nnx_lint.rules.variables.promoting import assigned_value
from nnx_lint.syntax.binding import names_in
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import graphs as rules
from nnx_rules.transforms import DIFFERENTIATING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.classes import ClassBase
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.leaves import Path
    from nnx_lint.model.modules import Module

# -- one layer several times -------------------------------------------------------------------------------------------


@judges_calls(rules.REPEATED_MODULE, "nnx.List", "nnx.Sequential")
def repeated_in_container(event: Called, report: Reporter) -> None:
    for value, node in zip(event.args, event.nodes, strict=False):
        if isinstance(node, ast.Starred):
            _repeated_by_text(event.frame, value_of(event.frame.module, node.value) or node.value, report)
        elif isinstance(node, (ast.GeneratorExp, ast.Call)):
            _repeated_by_text(event.frame, node, report)
        elif isinstance(value, Seq):
            repeated(event.frame, value, report)


@judges_calls(rules.REPEATED_MODULE, "nnx.Dict")
def repeated_in_dict(event: Called, report: Reporter) -> None:
    """One layer for all keys, by a comprehension or ``dict.fromkeys``."""
    if len(event.nodes) == 1:
        _repeated_by_text(event.frame, event.nodes[0], report)


@judges(rules.REPEATED_MODULE, AttributeSet, of=(Seq, TagVal))
def repeated_in_attribute(event: AttributeSet, report: Reporter) -> None:
    value = event.value.value if isinstance(event.value, TagVal) else event.value
    if isinstance(value, Seq) and event.obj.cls.is_pytree:
        repeated(event.frame, value, report)


@judges_calls(rules.REPEATED_MODULE, ".append")
def repeated_by_loop(event: Called, report: Reporter) -> None:
    """A layer that each round of a loop appends, and that is made before the loop."""
    frame, node = event.frame, event.nodes[0] if len(event.nodes) == 1 else None
    receiver = event.callee.receiver if isinstance(event.callee, BoundMethod) else None
    into_model = isinstance(receiver, Obj) and receiver.cls.derives_from("nnx.List")
    into_model = into_model or (isinstance(receiver, Seq) and frame.initializing is not None)
    statement = enclosing(frame.module, event.node, ast.Expr)
    loop = next(ancestors(frame.module, statement), None) if statement is not None else None
    if not into_model or not isinstance(node, ast.Name) or not isinstance(loop, ast.For) or not is_long(loop.iter):
        return
    bound = (part.id for part in walk(loop) if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load))
    item = event.args[0]
    if statement in loop.body and isinstance(item, Obj) and node.id not in bound and _has_weights(frame, item):
        report(frame.module, node, value=item.cls.name)


def repeated(frame: Frame, held: Seq, report: Reporter) -> None:
    """Report a sequence that repeats one layer."""
    node, item = held.node, held.items[0] if held.items else None
    if not isinstance(node, (ast.ListComp, ast.BinOp)) or not _stands_in(frame, node):
        return
    elements = _elements_repeated(frame, node)
    if len(elements) > 1 or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
        _repeated_by_text(frame, node, report)
    elif elements and isinstance(item, Obj) and all(each is item for each in held.items) and _has_weights(frame, item):
        report(frame.module, node, fix=lambda: one_for_each(frame, node), value=item.cls.name)


def _repeated_by_text(frame: Frame, node: ast.expr, report: Reporter) -> None:
    """Report an expression that repeats a layer with weights, whatever is known of its value."""
    for element in _elements_repeated(frame, node):
        item = resolved(frame.env, element)
        made = resolved(frame.env, element.func) if isinstance(element, ast.Call) else None
        cls = item.cls if isinstance(item, Obj) and _has_weights(frame, item) else None
        cls = made.cls if isinstance(made, ClassVal) and _is_made_with_weights(made.cls) else cls
        if cls is not None:
            report(frame.module, node, fix=lambda: one_for_each(frame, node), value=cls.name)
            return


def _elements_repeated(frame: Frame, node: ast.expr) -> list[ast.expr]:
    """What an expression has several times as elements, each time the same object; a list that it repeats by name."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_elements_repeated(frame, node.left), *_elements_repeated(frame, node.right)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left = isinstance(node.left, (ast.List, ast.Tuple)) or not isinstance(node.right, (ast.List, ast.Tuple))
        held, count = (node.left, node.right) if left else (node.right, node.left)
        once = isinstance(count, ast.Constant) and count.value in {0, 1}
        return [] if once else held.elts if isinstance(held, (ast.List, ast.Tuple)) else [held]
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.DictComp)):
        element = node.value if isinstance(node, ast.DictComp) else node.elt
        bound = frozenset[str]().union(*(names_in(each.target) for each in node.generators))
        same = isinstance(element, (ast.Name, ast.Attribute)) and bound.isdisjoint(names_in(element))
        return [element] if same and all(is_long(each.iter) for each in node.generators) else []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "fromkeys":
        plain = isinstance(node.func.value, ast.Name) and frame.env.lookup(node.func.value.id) is None
        return node.args[1:] if plain and len(node.args) == 2 and is_long(node.args[0]) else []
    name = canonical_of(frame.env, node.func) if isinstance(node, ast.Call) and node.args else None
    if isinstance(node, ast.Call) and name in {"builtins.list", "builtins.tuple"}:
        return _elements_repeated(frame, node.args[0])
    if isinstance(node, ast.Call) and name == "itertools.repeat" and len(node.args) == 2:
        once = isinstance(node.args[1], ast.Constant) and node.args[1].value in {0, 1}
        return [] if once else node.args[:1]
    return []


def _is_made_with_weights(cls: ClassBase) -> bool:
    """Whether a class of layers certainly draws random numbers when it is made."""
    needed = taken_by(cls) if cls.derives_from("nnx.Module") else None
    return needed is not None and needed.required and draws(cls)


def _has_weights(frame: Frame, item: Obj) -> bool:
    return item.cls.derives_from("nnx.Module") and bool(leaves_of(item, frame).leaves)


def _stands_in(frame: Frame, node: ast.AST) -> bool:
    """Whether a node is part of the file of a frame: a function of another one may have made the list."""
    top: ast.AST = frame.func.node if frame.func is not None else frame.module.source.tree
    return any(part is node for part in walk(top))


def one_for_each(frame: Frame, node: ast.expr) -> Fix | None:
    """Make a layer in each round."""
    elements = _elements_repeated(frame, node)
    if not isinstance(node, ast.BinOp) or len(elements) != 1 or not isinstance(elements[0], ast.Call):
        return None
    source = frame.module.source
    count = node.right if elements[0] in walk(node.left) else node.left
    text = f"[{source.segment(elements[0])} for _ in range({source.segment(count)})]"
    return Fix("Make one for each", replace(source, node, text), Applicability.UNSAFE)


# -- under JAX ---------------------------------------------------------------------------------------------------------


@judges_calls(rules.SHARED_UNDER_JAX, Transformed, *TRANSFORMING)
def shared_under_jax(event: Called, report: Reporter) -> None:
    running = transform_of(event)
    if running is None or not running.row.name.startswith("jax."):
        return
    differentiated = running.row.name in DIFFERENTIATING
    positions: tuple[int, ...] | None = None
    if differentiated and isinstance(event.callee, Transformed):
        positions = literal_positions(event.callee.applied.keywords.get("argnums"), default=(0,))
    for place, (value, node) in enumerate(running.operands):
        if not isinstance(value, Obj) or node is None or not value.cls.is_pytree:
            continue
        for path, first, held in [*contents(value, event.frame, ARRAY).again, *shared_streams(value)]:
            streams = isinstance(held, Obj) and held.cls.derives_from("nnx.Rngs")
            if not isinstance(held, Obj) or not (streams or (positions is not None and place in positions)):
                continue
            if path[: len(first)] == first or not _has_data(held, event.frame):
                continue
            report(
                event.frame.module,
                node,
                fix=partial(_one_or_forked, event, value, path),
                name=text_of(node),
                path=_text(path),
                other_path=_text(first),
                value=held.cls.name,
                transform=running.text,
                harm="both draw the same numbers" if streams else "each gets a part of the gradient only",
            )
            break


def _one_or_forked(event: Called, obj: Obj, path: Path) -> Fix | None:
    """Use the transform of ``nnx``, to which they are one object; or else give each part streams of its own."""
    holder: Value = obj
    for name in path[:-1]:
        attr = attribute_of(holder, name) if isinstance(holder, Obj) and isinstance(name, str) else None
        holder = attr.value if attr is not None else UNKNOWN
    last, module = path[-1] if path else None, event.frame.module
    attr = attribute_of(holder, last) if isinstance(holder, Obj) and isinstance(last, str) else None
    made = assigned_value(attr, module) if attr is not None else None
    streams = (
        isinstance(made, ast.Name)
        and attr is not None
        and made.id in ((holder.args or {}) if isinstance(holder, Obj) else {})
    )
    forked = unsafe("Fork the streams", insert(module.source.span(made).end, ".fork()")) if made and streams else None
    return on_nnx_call(event, *SAME_OPTIONS) or forked


def shared_streams(obj: Obj) -> Iterator[tuple[Path, Path, Value]]:
    """The streams that parts of an object keep as they were given to their constructors, the second time each."""
    seen: dict[int, Path] = {}
    for path, value in _kept(obj, ()):
        if isinstance(value, Obj) and value.cls.derives_from("nnx.Rngs"):
            first = seen.setdefault(id(value), path)
            if first is not path:
                yield path, first, value


def _kept(obj: Obj, path: Path) -> Iterator[tuple[Path, Value]]:
    """The arguments that an object and its parts keep in attributes, with the paths of these."""
    for name in attribute_names(obj) if isinstance(obj.cls, UserClass) and len(path) < MAX_PARTS else ():
        attr = attribute_of(obj, name)
        last = attr.assignments[-1] if attr is not None and attr.assignments else None
        if attr is None or last is None:
            continue
        given = (obj.args or {}).get(last.value_node.id) if isinstance(last.value_node, ast.Name) else None
        if given is not None:
            yield (*path, name), forms.resolved(obj, given)
        elif isinstance(attr.value, Obj):
            yield from _kept(attr.value, (*path, name))


MAX_PARTS = 4
"""How deep the parts of an object are looked into."""


def _has_data(obj: Obj, frame: Frame) -> bool:
    return obj.cls.is_variable or obj.cls.derives_from("nnx.Rngs") or bool(leaves_of(obj, frame).leaves)


def _text(path: Path) -> str:
    return "".join(f".{part}" if isinstance(part, str) else "[...]" for part in path)


# -- cycles ------------------------------------------------------------------------------------------------------------


@judges(rules.REFERENCE_CYCLE, Constructed)
def reference_cycle(event: Constructed, report: Reporter) -> None:
    cls = event.cls
    if not cls.is_pytree or not cls.derives_from("nnx.Module") or cls.pytree_keyword is False:
        return
    for name, attr in event.obj.attrs.items():
        for item in attr.assignments:
            if event.obj in options(_untagged(attr.value)) and item.module is cls.module:
                report(item.module, item.node, fix=partial(_opaque, cls), cls=cls.name, path=f".{name}")


def _opaque(cls: UserClass) -> Fix | None:
    """Define the class as none that JAX looks into."""
    if cls.pytree_keyword is not None or not cls.node.bases:
        return None
    last = max(
        (*cls.node.bases, *(item.value for item in cls.node.keywords)), key=lambda node: cls.module.source.span(node)
    )
    title = f"Define `{cls.name}` with `pytree=False`"
    return unsafe(title, insert(cls.module.source.span(last).end, ", pytree=False"))


def _untagged(value: Value) -> Value:
    return value.value if isinstance(value, TagVal) and value.value is not None else value


# -- buffers -----------------------------------------------------------------------------------------------------------


class Clone(NamedTuple):
    """A copy that shares the arrays of what it was made from, and the call that made it."""

    value: Value
    source: Value
    made: Called


class Clones:
    """The copies so far, by value."""

    def __init__(self) -> None:
        self.of: dict[int, Clone] = {}


@judges_calls(rules.SHARED_BUFFERS, "nnx.clone")
def cloned(event: Called, report: Reporter) -> None:
    given = event.args[0] if event.args else None
    if isinstance(given, Obj) and "arrays" not in event.keywords:
        report.memory(Clones).of[id(event.result)] = Clone(event.result, given, event)


def donates(event: Called) -> bool:
    """Whether the called function takes over arguments."""
    callee = event.callee
    return isinstance(callee, Transformed) and not DONATING.isdisjoint(callee.applied.keywords)


DONATING = frozenset({"donate_argnames", "donate_argnums"})


@judges_calls(rules.SHARED_BUFFERS, Transformed, when=donates)
def shared_buffers(event: Called, report: Reporter) -> None:
    clones = report.memory(Clones).of
    callee = event.callee
    if not clones or not isinstance(callee, Transformed) or None in event.args:
        return
    positions = donated(callee.applied, callee.func)
    taken = [(event.args[place], event.nodes[place]) for place in positions if 0 <= place < len(event.args)]
    for value, node in taken:
        clone = clones.get(id(value))
        other = next((each for each, _ in taken if clone is not None and each is clone.source), None)
        if clone is not None and other is not None:
            where = next(each for item, each in taken if item is other)
            report(
                event.frame.module,
                node,
                fix=partial(copied, event.frame.module, clone.made),
                name=text_of(node),
                other=text_of(where),
            )


def copied(module: Module, made: Called) -> Fix | None:
    """Copy the arrays, too, where the copy is made."""
    if made.frame.module is not module or not isinstance(made.node, ast.Call):
        return None
    return Fix("Add `arrays=True`", append_argument(module.source, made.node, "arrays=True"))
