"""The structure of a Module, as a tree of plain facts that every format is written from.

Invariants:

* the tree is finite: an object that is met again, and a class inside of itself, is a *reference* to a path above;
* elements that look alike and follow one another are one node with a count;
* a total is given only where every part of it is known. ``None`` is always "not known".
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from nnx_rules.attributes import Status
from nnx_rules.records import Entity, Record, made
from nnx_rules.shapes import DTYPE_BYTES, Form, size

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTAINERS = frozenset({"nnx.List", "nnx.Dict", "nnx.Sequential"})
"""Classes of NNX that only hold others."""

WITHOUT_PARAMETERS = frozenset({"nnx.Rngs", "nnx.RngStream"})
"""Classes that never hold parameters, even where it is not known what they hold."""

Path = tuple[str | int | None, ...]
"""Attribute names and indices from the root; ``None`` is an index that is not known."""


class Kind(enum.Enum):
    """What a node stands for."""

    MODULE = "module"
    """An NNX object: a Module, a List, an Rngs, an Optimizer."""
    VARIABLE = "variable"
    ARRAY = "array"
    CONTAINER = "container"
    """A plain list, tuple or dict."""
    VALUE = "value"
    """A value that is no data: a number, a string, a function."""
    CHOICE = "choice"
    """One of its children, depending on a condition."""
    REFERENCE = "reference"
    """An object that is drawn elsewhere."""
    UNKNOWN = "unknown"


class Place(Record):
    """A line of a file; in a notebook, of the cell with this number."""

    path: str
    line: int
    cell: int | None = None

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.cell is None else f"{self.path}:cell {self.cell}:{self.line}"


class Total(Record):
    """Parameters (Variables of type Param and below), and the bytes of them where all dtypes are known."""

    parameters: int = 0
    bytes: int | None = 0

    def __add__(self, other: Total) -> Total:
        known = self.bytes is not None and other.bytes is not None
        return Total(self.parameters + other.parameters, self.bytes + other.bytes if known else None)  # type: ignore[operator]

    def __mul__(self, count: int) -> Total:
        return Total(self.parameters * count, None if self.bytes is None else self.bytes * count)


class Node(Entity):
    """One object or value.

    Attributes:
        name: the attribute, the index in brackets, or for the root the class.
        path: where it is.
        kind: what it stands for.
        type: its class, or for a plain value the value itself.
        qualified: the full name of its class.
        parameter: for a Variable: whether training is about it.
        status: what the attribute is to JAX; ``None`` for the root and for elements.
        arguments: the source text of what it was constructed with, without its random streams.
        form: shape and dtype of a Variable or an array.
        count: how many equal elements this node stands for; ``None`` for any number.
        optional: why it may be missing: ``"maybe"`` (a condition decides), ``"or None"``, or ``""``.
        target: for a reference: the path of the object.
        recursive: for a reference: whether it is the class, not the object, that repeats.
        rule: the code of the rule that the assignment breaks.
        note: what the reader should know, such as why more may be there than is drawn.
        assigned: where the attribute is first assigned.
        defined: where the class is defined.
        folded: whether there is more below that the wanted depth left out.
        total: parameters in here, of all elements, without those in static attributes; ``None`` where not all are
            known.
    """

    name: str
    path: Path
    kind: Kind
    type: str
    qualified: str = ""
    parameter: bool = False
    status: Status | None = None
    arguments: str = ""
    form: Form = made(factory=Form)
    count: int | None = 1
    optional: str = ""
    target: Path = ()
    recursive: bool = False
    rule: str = ""
    note: str = ""
    assigned: Place | None = None
    defined: Place | None = None
    folded: bool = False
    children: list[Node] = made(factory=list["Node"])
    total: Total | None = None

    def walk(self) -> Iterator[Node]:
        """The node and all below it, in the order of drawing."""
        yield self
        for child in self.children:
            yield from child.walk()


def prune(node: Node, depth: int) -> Node:
    """Leave out what is below so many levels of Modules; totals stay, containers are no level."""
    if node.kind is Kind.MODULE and node.qualified not in CONTAINERS:
        if depth == 0 and node.children:
            node.children, node.folded = [], True
        depth -= 1
    for child in node.children:
        prune(child, depth)
    return node


def path_text(path: Path) -> str:
    """A path as it is written in Python: ``layers[0].kernel``."""
    text = ""
    for part in path:
        text += f"[{'…' if part is None else part}]" if not isinstance(part, str) else f".{part}" if text else part
    return text


def finish(node: Node) -> Node:
    """Fold equal neighbours and add up the parameters, from the leaves up."""
    for child in node.children:
        finish(child)
    if node.kind in {Kind.MODULE, Kind.CONTAINER}:
        node.children = list(_folded(node.children))
    node.total = _total(node)
    return node


def _folded(children: list[Node]) -> Iterator[Node]:
    """Elements of a list that follow one another and look alike, as one node."""
    group: list[Node] = []
    for child in children:
        if group and _alike(group[0], child):
            group.append(child)
            continue
        yield from _one(group)
        group = [child]
    yield from _one(group)


def _one(group: list[Node]) -> Iterator[Node]:
    if len(group) > 1:
        first, last = group[0], group[-1]
        first.name = f"[{first.path[-1]}…{last.path[-1]}]"
        first.count = len(group)
        if first.total is not None:
            first.total *= len(group)
    yield from group[:1]


def _alike(left: Node, right: Node) -> bool:
    """Whether two elements of one list can be drawn as one."""
    if not (isinstance(left.path[-1], int) and isinstance(right.path[-1], int)):
        return False
    if left.kind is Kind.REFERENCE or left.count != 1 or right.count != 1:
        return False
    return _signature(left, left.path) == _signature(right, right.path)


def _signature(node: Node, base: Path) -> tuple[object, ...]:
    target: object = node.target
    if node.target[: len(base)] == base:
        target = ("within", node.target[len(base) :])
    own = (node.kind, node.type, node.qualified, node.arguments, node.form, node.count, node.optional, node.rule)
    more = (node.status, target, node.path[len(base) :], node.note)
    return (*own, *more, *(_signature(child, base) for child in node.children))


def _total(node: Node) -> Total | None:
    """The parameters below a node, all its elements counted."""
    if node.kind is Kind.VARIABLE:
        return _variable_total(node)
    if node.kind in {Kind.VALUE, Kind.REFERENCE, Kind.ARRAY} or node.qualified in WITHOUT_PARAMETERS:
        return None if node.recursive else Total()
    if node.kind in {Kind.UNKNOWN, Kind.CHOICE} or node.note or node.count is None:
        return None
    sums = Total()
    for child in node.children:
        if child.status is Status.STATIC:
            continue  # JAX does not see it, so no optimizer will
        if child.total is None or (child.optional and child.total.parameters):
            return None
        sums += child.total
    return sums * node.count


def _variable_total(node: Node) -> Total | None:
    if not node.parameter:
        return Total()
    elements = size(node.form.shape) if node.form.shape is not None else None
    if elements is None or node.count is None:
        return None
    width = DTYPE_BYTES.get(node.form.dtype or "")
    return Total(elements, None if width is None else elements * width) * node.count
