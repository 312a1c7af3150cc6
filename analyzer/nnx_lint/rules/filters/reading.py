"""Where programs give filters: one list of arguments, the keys of one mapping, or a single filter.

A rule asks :func:`filter_lists` for ordered filters (the first that takes a leaf keeps it) and :func:`single_filters`
for every place where one filter is written, whatever it is for. Positions count from one, as a person counts.

Invariants: a starred argument of unknown length stands for filters that are not known, so nothing is concluded from
what is absent in a list that is ``open``.
"""

from __future__ import annotations

import ast
import functools
import weakref
from typing import TYPE_CHECKING, TypeVar

from nnx_lint.model.callables import BoundMethod, PartialVal
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.library import FilterVal
from nnx_lint.model.states import StateVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import ClassVal, Ext, Obj, Value
from nnx_lint.rules.filters.expressions import MAX_DEPTH, describe, expression
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.walk import walk
from nnx_rules import api
from nnx_rules.api import OPTIMIZERS
from nnx_rules.filters import Expr, OfType, Opaque
from nnx_rules.records import Entity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

R = TypeVar("R")

MAX_SHOWN = 40
"""Longer source text is described in words instead."""


class Given:
    """One filter as it was given: its value, the expression in the program, and the module that holds that."""

    def __init__(self, value: Value, node: ast.expr, module: Module, in_place: bool = True) -> None:
        self.value = value
        self.node = node
        self.module = module
        self.in_place = in_place
        self.expr: Expr = expression(value)

    def parts(self, depth: int = 0) -> Iterator[Given]:
        """The filter and all filters inside it, each at the most precise place known."""
        yield self
        for value, node in _children(self.value, self.node) if depth < MAX_DEPTH else ():
            part = Given(value, node if node is not None else self.node, self.module, node is not None)
            yield from part.parts(depth + 1)

    def __str__(self) -> str:
        text = " ".join(self.module.source.segment(self.node).split())
        if isinstance(self.node, ast.Starred) or len(text) > MAX_SHOWN:
            return describe(self.expr)
        named = isinstance(self.node, (ast.Name, ast.Attribute)) and not isinstance(self.expr, (OfType, Opaque))
        return f"{text}: {describe(self.expr)}" if named else text


def _children(value: Value, node: ast.expr) -> list[tuple[Value, ast.expr | None]]:
    if isinstance(value, Seq) and value.type in {"tuple", "list"}:
        written = node.elts if isinstance(node, (ast.Tuple, ast.List)) else []
        return _paired(value.items, written)
    if isinstance(value, FilterVal) and value.name in {"nnx.Any", "nnx.All", "nnx.Not"}:
        items = [item for item in value.args.positional if item is not None]
        return _paired(items, node.args if isinstance(node, ast.Call) and node is value.node else [])
    return []


def _paired(items: list[Value], nodes: list[ast.expr]) -> list[tuple[Value, ast.expr | None]]:
    if len(nodes) != len(items) or any(isinstance(node, ast.Starred) for node in nodes):
        return [(item, None) for item in items]
    return list(zip(items, nodes, strict=True))


class FilterList(Entity):
    """Ordered filters.

    Attributes:
        function: the name of what takes them, as the program writes it.
        spec: what is known of that function; ``None`` for a mapping.
        target: what is partitioned, where the call says so.
        given: the filters; of a list that is ``open`` those whose place in the order is known.
        open: whether filters may be missing in ``given``.
        passed_on: whether a function got filters as arguments and handed them on; ``node`` is then the call of that
            function.
    """

    module: Module
    node: ast.AST
    function: str
    spec: api.FilterFunction | None
    target: Value | None
    given: list[Given]
    open: bool = False
    passed_on: bool = False

    @property
    def ordered(self) -> bool:
        """Whether a leading ``...`` is refused at run time."""
        return self.spec is None or self.spec.ordered

    @property
    def exprs(self) -> list[Expr]:
        return [item.expr for item in self.given]

    def names(self, places: tuple[int, ...]) -> str:
        """Some of the filters in words, with their positions."""
        first, *others = (f"filter {place + 1} (`{self.given[place]}`)" for place in places)
        return f"{first} together with {' and '.join(others)}" if others else first


STATE_METHODS: dict[str, api.FilterFunction] = {
    "split": api.FilterFunction("State.split", first=0, exhaustive=True),
    "filter": api.FilterFunction("State.filter", first=0),
}
"""Methods of a State that take filters."""


def library_name(callee: Value) -> str | None:
    """The canonical name of a library function or class."""
    if isinstance(callee, Ext):
        fixed_modes = callee.name.startswith("nnx.compat.")
        return "nnx." + callee.name.removeprefix("nnx.compat.") if fixed_modes else callee.name
    if isinstance(callee, ClassVal):
        return getattr(callee.cls, "canonical", None)
    return None


def _once(read: Callable[[Called], list[R]]) -> Callable[[Called], list[R]]:
    """Read an event once: a dozen rules ask for the same in turn. It is held weakly, for it holds a project."""
    last: list[tuple[weakref.ref[Called], list[R]]] = []

    @functools.wraps(read)
    def remembered(event: Called) -> list[R]:
        if not last or last[0][0]() is not event:
            last[:] = [(weakref.ref(event, lambda _: last.clear()), read(event))]
        return last[0][1]

    return remembered


@_once
def filter_lists(event: Called) -> list[FilterList]:
    """The ordered filters that a call gives."""
    found = _arguments(event)
    if found is not None:
        return [found]
    mapping = _mapping(event)
    return [mapping] if mapping is not None else []


def _arguments(event: Called) -> FilterList | None:
    callee, bound = event.callee, 0
    target: Value | None = None
    if isinstance(callee, PartialVal):
        bound = len(callee.args)
        target = callee.args[0] if callee.args else None
        callee = callee.func
    spec, receiver = _spec(callee)
    if spec is None:
        return None
    target = receiver or target
    if bound > spec.first:  # filters bound by the partial are judged with it, but their places here are not known
        return None
    first = spec.first - bound
    if bound == 0 and spec.first and event.args:
        target = event.args[0]
    given: list[Given] = []
    is_open = None in event.args[:first]
    frames: set[Frame] = set()
    for value, node in zip(event.args[first:], event.nodes[first:], strict=False):
        frame, written = written_at(event.frame, value, node)
        frames.add(frame)
        is_open = is_open or value is None
        plain = value is not None and not isinstance(written, ast.Starred)
        given.append(Given(value if value is not None else UNREAD, written, frame.module, plain))
    home, call = _place(event, frames)
    return FilterList(home.module, call, event.name, spec, target, given, is_open, home is not event.frame)


def _place(event: Called, frames: set[Frame]) -> tuple[Frame, ast.AST]:
    """Where filters come from that were all written in one call further out; else the call itself."""
    frame, node = event.frame, event.node
    if len(frames) != 1 or event.frame in frames:
        return frame, node
    while frame not in frames and frame.caller is not None and frame.call is not None:
        node = frame.call
        frame = frame.caller
    return (frame, node) if frame in frames else (event.frame, event.node)


def written_at(frame: Frame, value: Value | None, node: ast.expr) -> tuple[Frame, ast.expr]:
    """The frame and the expression that an argument comes from: out of the functions that only hand it on."""
    while True:
        outer = _argument(frame, value, node)
        if outer is None or frame.caller is None:
            return frame, node
        frame, node = frame.caller, outer


def _argument(frame: Frame, value: Value | None, node: ast.expr) -> ast.expr | None:
    """What the caller wrote for a parameter that is named by ``node`` and has not been assigned since."""
    name = node.value if isinstance(node, ast.Starred) else node
    if not (isinstance(name, ast.Name) and isinstance(frame.call, ast.Call) and frame.func is not None):
        return None
    if any(isinstance(item, ast.Starred) for item in frame.call.args):
        return None
    arguments = frame.func.node.args
    names = syntax_parameters.positional_names(arguments)[frame.receiver is not None :]
    held = frame.env.names.get(name.id)
    if isinstance(node, ast.Starred):
        rest = frame.call.args[len(names) :]
        if arguments.vararg is None or arguments.vararg.arg != name.id or not isinstance(held, Seq):
            return None
        places = [place for place, item in enumerate(held.items) if item is value]
        return rest[places[0]] if places and len(rest) == len(held.items) else None
    if held is not value:
        return None
    if name.id in names and names.index(name.id) < len(frame.call.args):
        return frame.call.args[names.index(name.id)]
    return _keyword_node(frame.call, name.id)


UNREAD = Value()


def _spec(callee: Value) -> tuple[api.FilterFunction | None, Value | None]:
    if isinstance(callee, BoundMethod):
        receiver = present(callee.receiver)
        if isinstance(receiver, Obj) and receiver.cls.derives_from("nnx.SplitContext") and callee.name == "split":
            return api.FILTER_FUNCTIONS["nnx.split"], None
        return (STATE_METHODS.get(callee.name), receiver) if isinstance(receiver, StateVal) else (None, None)
    name = library_name(callee)
    return (api.FILTER_FUNCTIONS.get(name) if name is not None else None), None


def _mapping(event: Called) -> FilterList | None:
    place = _mapping_position(event)
    if place is None or len(event.args) <= place or len(event.nodes) <= place:
        return None
    held = event.args[place]
    if not isinstance(held, DictVal) or not isinstance(held.node, ast.Dict):
        return None
    written = held.node.keys
    if len(written) != len(held.items) or not held.exact:
        return None
    if held.node is not event.nodes[place] and not _same_module(event.frame.module, held.node):
        return None
    given = [
        Given(key, node, event.frame.module)
        for (key, _), node in zip(held.items, written, strict=True)
        if node is not None
    ]
    if len(given) != len(written):
        return None
    return FilterList(event.frame.module, held.node, event.name, None, None, given)


def _same_module(module: Module, node: ast.AST) -> bool:
    return any(item is node for item in walk(module.source.tree))


MAPPING_FUNCTIONS: dict[str, int] = {**dict.fromkeys(api.FILTER_MAPPINGS, 0), "nnx.prefix": 1}
"""Functions that take a mapping from filters to something, with its position."""


def _mapping_position(event: Called) -> int | None:
    name = library_name(event.callee)
    if name is not None:
        return MAPPING_FUNCTIONS.get(name)
    if isinstance(event.callee, BoundMethod) and event.callee.name == "split":
        receiver = present(event.callee.receiver)
        if isinstance(receiver, Obj) and receiver.cls.derives_from("nnx.Rngs"):
            return 0
    return None


SINGLE_KEYWORDS: dict[str, str] = {
    "nnx.Optimizer": "wrt",
    "nnx.ModelAndOptimizer": "wrt",
    "nnx.EMA": "only",
    "nnx.find_duplicates": "only",
    "nnx.set_metadata": "only",
    "nnx.with_vars": "only",
    "nnx.split_rngs": "only",
    "nnx.with_rngs": "only",
    "nnx.view": "only",
    "nnx.with_attributes": "only",
}
"""Functions and classes that take one filter by keyword."""

SINGLE_POSITIONS: dict[str, tuple[int, ...]] = {
    "nnx.Optimizer": (2,),
    "nnx.ModelAndOptimizer": (2,),
    "nnx.DiffState": (1,),
    "nnx.to_predicate": (0,),
}
"""Functions and classes that take one filter by position."""

COMBINATORS = frozenset({"nnx.Any", "nnx.All", "nnx.Not"})


class Single(Entity):
    """One filter at one place; ``leaves`` says whether it only meets the leaves of a state."""

    given: Given
    leaves: bool
    target: Value | None = None


@_once
def single_filters(event: Called) -> list[Single]:
    """Every filter that a call gives, one by one."""
    found = _arguments(event)
    if found is not None:
        return [Single(item, True, found.target) for item in found.given if item.value is not UNREAD]
    mapping = _mapping(event)
    if mapping is not None:
        # The mapping of `Rngs.split` names streams; that of StateAxes meets Variables.
        return [Single(item, not isinstance(event.callee, BoundMethod)) for item in mapping.given]
    name = library_name(event.callee)
    if name is None:
        return _of_method(event)
    target = event.args[0] if event.args else None
    singles: list[Single] = []
    positions = range(len(event.args)) if name in COMBINATORS else SINGLE_POSITIONS.get(name, ())
    for position in positions:
        value = event.args[position] if position < len(event.args) else None
        if value is not None and position < len(event.nodes):
            frame, node = written_at(event.frame, value, event.nodes[position])
            given = Given(value, node, frame.module, in_place=not isinstance(node, ast.Starred))
            singles.append(Single(given, name in LEAF_FILTERS, target if name in OPTIMIZERS else None))
    keyword = SINGLE_KEYWORDS.get(name) or ("filter" if name == "nnx.DiffState" else None)
    written = _keyword_node(event.node, keyword)
    if keyword in event.keywords and written is not None:
        frame, node = written_at(event.frame, event.keywords[keyword], written)
        given = Given(event.keywords[keyword], node, frame.module)
        singles.append(Single(given, name in LEAF_FILTERS, target if name in OPTIMIZERS else None))
    return singles


LEAF_FILTERS = {*OPTIMIZERS} | {"nnx.DiffState", "nnx.EMA", "nnx.set_metadata", "nnx.with_vars"}


def _of_method(event: Called) -> list[Single]:
    callee = event.callee
    if not (isinstance(callee, BoundMethod) and callee.func is None and callee.name == "set_attributes"):
        return []
    receiver = present(callee.receiver)
    if not (isinstance(receiver, Obj) and receiver.cls.is_pytree):
        return []
    pairs = zip(event.args, event.nodes, strict=False)
    return [
        Single(Given(value, node, event.frame.module, in_place=not isinstance(node, ast.Starred)), False)
        for value, node in pairs
        if value is not None
    ]


def _keyword_node(call: ast.AST, keyword: str | None) -> ast.expr | None:
    if not isinstance(call, ast.Call):
        return None
    return next((item.value for item in call.keywords if item.arg == keyword), None)


def gives_filters(event: Called) -> bool:
    """Whether a call of something that takes filters gives any."""
    return bool(single_filters(event) or filter_lists(event))


FILTERING = (
    *dict.fromkeys([*api.FILTER_FUNCTIONS, *MAPPING_FUNCTIONS, *SINGLE_KEYWORDS, *SINGLE_POSITIONS, *COMBINATORS]),
    *(".filter", ".set_attributes", ".split"),
)
"""Functions, classes and methods of library objects that take filters, as subjects of calls."""
