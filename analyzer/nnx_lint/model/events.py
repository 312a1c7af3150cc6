"""What the interpreter tells the rules.

The interpreter executes a program abstractly and publishes *events*: facts about what the program does, at a place.
Rules subscribe to the event types that they judge. The interpreter has no opinion; the rules do not traverse syntax.

Every event has ``node``, the syntax it is about, and ``frame``, the function (or module body) being executed, from
which a rule reads the module, the trace scopes and the branches taken.

What a rule may ask of an event:

* values (:mod:`~nnx_lint.model.values`): what something is; a rule looks at them and never changes one;
* ``frame.crossed``, ``frame.certain_within`` and ``frame.place_within``: which running transform captures objects of a
  level, whether the present statement runs whenever its function does, and where in that function to report;
* ``modes`` and those of a transform (:mod:`~nnx_lint.model.modes`): how NNX handles objects there;
* :func:`~nnx_lint.model.expressions.text_of`: how the program names something.

An event is published as often as the interpreter passes its place, with what is known then.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, PartialVal, Transformed
from nnx_lint.model.values import ArrayAttr, ClassVal, Ext, Obj, Unknown
from nnx_rules.records import Entity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.classes import UserClass
    from nnx_lint.model.containers import DictVal, Seq
    from nnx_lint.model.frames import Frame, TraceScope
    from nnx_lint.model.modes import Modes
    from nnx_lint.model.values import (
        Array,
        Assignment,
        Attr,
        TagVal,
        Value,
        VariableVal,
    )
    from nnx_rules.attributes import Verdict


class Event(Entity):
    """A fact at a place."""

    frame: Frame
    node: ast.AST


class ClassDefined(Event):
    """A class statement was executed."""

    cls: UserClass


class AttributeSet(Event):
    """``obj.name = value`` on an NNX object or an object of a project class.

    ``node`` is the assignment statement (or call of ``setattr``); ``value_node`` the expression of the value, where
    there is one; ``before`` the last assignment that certainly happened earlier, with the status it left; ``verdict``
    what the status rules say.
    """

    obj: Obj
    name: str
    value: Value
    value_node: ast.expr | None
    attr: Attr
    before: Assignment | None
    verdict: Verdict | None


class OtherAttributeSet(Event):
    """``value.name = ...`` on an array, or on what an object of the library keeps for itself (a bound method, for all
    that is known), where nothing takes it.
    """

    value: Value
    name: str


class AttributeMissed(Event):
    """``obj.name`` is read, and neither the object nor a class of the project is known to have it."""

    obj: Obj
    name: str


class AttributeBypassed(Event):
    """An attribute is written without ``__setattr__`` of its class: through ``__dict__`` or that of ``object``."""

    obj: Obj
    name: str
    value: Value


class ContainerFilled(Event):
    """Something was put into a plain list or dict (``append``, ``extend``, ``[k] =``, ``update``, ...)."""

    container: Seq | DictVal
    value: Value
    action: str


class ItemSet(Event):
    """``obj[key] = value`` on an ``nnx.List`` or ``nnx.Dict``; ``before`` is what the item of a list may have been, if
    that is known.
    """

    obj: Obj
    key: Value
    value: Value
    before: list[Value]


class Constructed(Event):
    """``__init__`` of a class has ended; ``obj`` is the model instance with all its attributes."""

    cls: UserClass
    obj: Obj


class PlainConstructed(Constructed):
    """The same of a class that is no Pytree."""


class Mutated(Event):
    """An object is changed: an attribute set or deleted, a Variable written, a container edited, a stateful library
    object called.

    ``name`` is the object as the program names it; ``action`` how it is changed; ``effect`` one of ``write``
    (attribute or Variable), ``call`` (a library layer or optimizer that updates its state), ``draw`` (random
    streams), ``untracked`` (a change that flax does not check).
    """

    target: Value
    name: str
    action: str
    effect: str
    state: str = "state"

    @property
    def method(self) -> str:
        """The method of the object that changes it; empty where it is none."""
        return self.action.removeprefix("`.").removesuffix("(...)`") if self.action.startswith("`.") else ""


class OuterNameSet(Event):
    """A name that the function declares ``global`` or ``nonlocal`` is bound."""

    name: str
    value: Value
    value_node: ast.expr | None


class Called(Event):
    """A call of something known: ``callee`` is the resolved value, ``args`` the positional values (``None`` where
    starred), ``keywords`` by name; ``nodes`` are the expressions of ``args``. ``owner`` is what the callee is an
    attribute of, where it is one. ``modes`` are the configured ones at the call.
    """

    callee: Value
    name: str
    args: list[Value | None]
    keywords: dict[str, Value]
    result: Value
    nodes: list[ast.expr]
    modes: Modes
    owner: Value | None = None

    @property
    def subject(self) -> str | None:
        """What is called, as one key: the canonical name of a library function or class (``nnx.Rngs``), ``class`` for
        one of the project, a dot and the name of a method (``.train``), known or not, ``()`` for an instance.
        """
        func = self.node.func if isinstance(self.node, ast.Call) else None
        if isinstance(self.callee, Unknown):
            return f".{func.attr}" if isinstance(func, ast.Attribute) else None
        return _subject(self.callee)

    @property
    def inherited(self) -> str | None:
        """The canonical name of the library class whose constructor runs: that of a class, which may be one below it,
        or ``super().__init__(...)``.
        """
        callee = self.callee
        while isinstance(callee, PartialVal):
            callee = callee.func
        made = callee.cls.made_as if isinstance(callee, ClassVal) else None
        if isinstance(callee, BoundMethod) and callee.name == "__init__" and callee.func is None:
            made = callee.receiver.cls.library if isinstance(callee.receiver, Obj) else None
        return made.canonical if made is not None else None


class Passed(Event):
    """A layer of an ``nnx.Sequential`` gets an array from something of the project, such as a function that flattens
    it, or from what has got it from there; ``position`` is its place among the layers.
    """

    layer: Obj
    given: Array
    position: int


class CalledOneOf(Event):
    """A call of a class that is decided elsewhere: of one of several, by a branch or a key that is not known, or of
    what a constructor is given. What is wrong with it is what is wrong with each of these calls.
    """

    calls: Sequence[Called]


def _subject(callee: Value) -> str | None:
    if isinstance(callee, Ext):
        return callee.name.replace("nnx.compat.", "nnx.", 1)
    if isinstance(callee, ClassVal):
        return getattr(callee.cls, "canonical", "class")
    if isinstance(callee, BoundMethod):
        return f".{callee.name}"
    if isinstance(callee, PartialVal):
        return _subject(callee.func)
    if isinstance(callee, Transformed):
        return "transformed"
    if isinstance(callee, ArrayAttr):
        return f"{callee.owner}[]" if callee.owner else f".{callee.name}"
    return "()" if isinstance(callee, Obj) else None


class Imported(Event):
    """An import statement names a package that provides NNX, or something in it."""


class LibraryName(Event):
    """A name of NNX is read from its namespace, or imported: ``nnx.Linear``, ``from flax.nnx import Linear``.

    So is one of JAX or optax that some or all releases lack. ``name`` is the canonical one, ``written`` the last
    part as it stands in the program.
    """

    name: str
    written: str


class Unpacked(Event):
    """A value is unpacked into several targets; ``count`` is ``None`` with a starred target."""

    value: Value
    value_node: ast.expr
    count: int | None
    target: ast.expr


class Iterated(Event):
    """A loop or comprehension goes over a value, which the expression ``node`` gives; ``target`` takes its elements."""

    value: Value
    target: ast.expr


class Combined(Event):
    """An operator of arithmetic or comparison between two arrays, both of known form."""

    left: Array
    right: Array


class Indexed(Event):
    """An array of known form is indexed, with these items."""

    value: Array
    indices: Sequence[Value]


class Tagged(Event):
    """``nnx.data(...)`` or ``nnx.static(...)`` was called."""

    value: TagVal
    container: Value | None = None


class TransformApplied(Event):
    """A transform got its function. ``transformed`` is ``None`` for transforms of call form. ``how`` is ``decorator``
    or ``call``.
    """

    applied: TransformVal
    func: Value
    func_node: ast.AST
    transformed: Transformed | None
    how: str


class Ran(Event):
    """A function has run under a transform to its end, with this result; ``node`` is the call, where there is one.

    ``args`` are the positional arguments as the caller gave them. What the function names and changes is in ``scope``,
    what its parameters were bound to in the frame of that.
    """

    scope: TraceScope
    args: list[Value | None]
    result: Value


class RanInside(Ran):
    """The same for a transform inside of others that only compile what it makes; ``scope`` is its view of the run."""


class VariableWritten(Event):
    """``variable[key] = value``; ``key`` is ``None`` for a slice. ``name`` is what the program calls the Variable."""

    target: Obj
    name: str
    key: Value
    value: Value


class ArrayWritten(Event):
    """``array[key] = value``, or another operator of assignment; ``node`` is the statement."""

    target: Array


class VariableAttributeSet(Event):
    """``variable.name = value``, for another name than that of the value; ``action`` is ``set`` or ``deleted``."""

    target: Obj | VariableVal
    name: str
    action: str


class Returned(Event):
    """A function returned a value."""

    value: Value


class ContainerUsed(Event):
    """An ``nnx.List`` or ``nnx.Dict`` is an operand: ``operator`` is the type of the syntax, ``other`` the index or the
    other operand.
    """

    container: Obj
    other: Value
    operator: type[ast.AST]


class NotImplementedMet(Event):
    """A function raises ``NotImplementedError``: it only says what others have."""


class EntryMissed(Event):
    """A dict, or a configuration of a library, is asked for an entry that nobody was seen to put there."""

    held: DictVal | Obj
    key: str


class NameMissed(Event):
    """A name is read that nothing around has bound so far; it may be one of Python's own."""


class Used(Event):
    """A value is used as an operand, or an attribute of it is read: ``what`` is the name of the attribute, or one of
    ``an operator``, ``an index``, ``a comparison``, ``an equality`` (of two objects), ``a condition``, ``a key``,
    ``a format`` (with a specification, in an f-string), ``a text`` (without one), ``a mask`` (an array of flags that
    is the index of an array), ``a bound`` (of a slice).
    """

    value: Value
    what: str
