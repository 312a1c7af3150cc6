"""What is known of a class and its attributes, to read: the face of the model for the editor, the drawing and tests.

Invariants: a view is made of plain values, holds nothing of the interpreter, and does not change; a status that is not
certain is :attr:`Status.UNKNOWN`; ``complete`` is true only if an instance certainly has no other attributes when it
has been constructed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.attributes import attribute_names, attribute_of, current_status
from nnx_lint.model.classes import UserClass
from nnx_lint.model.strings import HOLE
from nnx_lint.model.unions import options
from nnx_lint.model.values import Value
from nnx_rules.attributes import Kind, Status, infer

if TYPE_CHECKING:
    from nnx_lint.diagnostics import Span
    from nnx_lint.model.interpreter import Interpreter
    from nnx_lint.model.values import Assignment, Attr, Obj


class Place(NamedTuple):
    """Where something is written."""

    path: str
    span: Span


class AssignmentView(NamedTuple):
    """One assignment to an attribute, in the constructor or in what it calls.

    ``certain`` says that every construction runs it, ``rule`` is the code of the rule that it breaks.
    """

    place: Place
    status: Status
    kinds: tuple[Kind, ...]
    value: str
    certain: bool
    rule: str | None


class AttributeView(NamedTuple):
    """An attribute as it is when an instance has been constructed.

    ``name`` may have a ``*`` for a part that is computed; ``declared`` is the status that a class body gives to it,
    ``value`` a noun phrase for what it holds.
    """

    name: str
    status: Status
    declared: Status | None
    kinds: tuple[Kind, ...]
    value: str
    assignments: tuple[AssignmentView, ...]


class ClassView(NamedTuple):
    """A class of the project; ``bases`` are the names of its ancestors in the order of look-up, itself left out."""

    name: str
    place: Place
    bases: tuple[str, ...]
    is_pytree: bool
    is_checked: bool
    complete: bool
    attributes: tuple[AttributeView, ...]

    def attribute(self, name: str) -> AttributeView | None:
        """The attribute of this name."""
        return next((item for item in self.attributes if item.name == name), None)


def view_class(interp: Interpreter, cls: UserClass) -> ClassView:
    """What is known of a class of the project."""
    model = interp.model(cls)
    names = attribute_names(model)
    return ClassView(
        cls.name,
        Place(cls.module.source.path, cls.module.source.span(cls.node)),
        tuple(item.name for item in cls.ancestors[1:]),
        cls.is_pytree,
        cls.checked,
        not (cls.is_open or cls.opaque or model.assumed or any(HOLE in name for name in names)),
        view_object(model),
    )


def view_object(obj: Obj) -> tuple[AttributeView, ...]:
    """What is known of the attributes of an instance; those that its class says nothing of are left out."""
    found = ((name, attribute_of(obj, name)) for name in attribute_names(obj) if name not in {HOLE, "[]"})
    return tuple(_attribute(name, attr) for name, attr in found if attr is not None)


def _attribute(name: str, attr: Attr) -> AttributeView:
    given = {item.status for item in attr.assignments} or {attr.declared or infer(attr.value.facts()).status}
    status = given.pop() if len(given) == 1 else current_status(attr, ())[1] or Status.UNKNOWN
    assignments = tuple(_assignment(item) for item in attr.assignments)
    return AttributeView(name, status, attr.declared, _kinds(attr.value), attr.value.describe(), assignments)


def _assignment(item: Assignment) -> AssignmentView:
    return AssignmentView(
        Place(item.module.source.path, item.module.source.span(item.node)),
        item.status,
        _kinds(item.value),
        item.value.describe(),
        not (item.branches or item.doubtful),
        item.broken.code if item.broken is not None else None,
    )


def _kinds(value: Value) -> tuple[Kind, ...]:
    return tuple(dict.fromkeys(option.kind for option in options(value)))
