"""Effects: what a function does to what it is given, as a summary.

A :class:`Summary` is made while a function runs on its own, with parameters of which only the types are known: which
objects it changes that it reaches from a parameter, how, and what it returns. It stands in for the function where the
body is not executed once more: at a call that is too deep, or one call of very many, and in the summary of a function
that calls itself, or one that is being summarised. Such calls are kept as edges, and :meth:`Effects.of` follows them to
a fixpoint.

What library objects do is in :mod:`nnx_rules.api`; a summary holds that for the objects inside of an argument.

Invariants: a summary says only what happens whenever the function runs to its end, for all arguments of these types; a
change under a condition is not in it. Paths are at most :data:`MAX_PATH` attributes long, so that the fixpoint ends
for recursive structures.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.forms import arguments_of
from nnx_lint.model.results import Place, Renewal, Results, comes_with_class
from nnx_lint.model.switching import set_training
from nnx_lint.model.symbols import OWN
from nnx_lint.model.values import UNKNOWN, Obj, Value
from nnx_lint.syntax import parameters as syntax_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nnx_lint.model.callables import FuncVal
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter

MAX_PATH = 4
MAX_LOOKED_AT = 200
"""How many objects are looked at to find out which parameter leads to a changed one."""

ELEMENT = "[]"

SETTING = "setting `."
"""How the action begins that sets an attribute."""

MODES = {"`.train(...)`": True, "`.eval(...)`": False}
"""Changes that are the mode of a module, with the mode."""

REWIRED = "model surgery"
"""The change of an object into which a function may have put anything anywhere."""


class Change(NamedTuple):
    """What is done to an object: ``action``, ``effect`` and ``state`` are those of the event ``Mutated``."""

    place: Place
    action: str
    effect: str
    state: str

    @property
    def draws(self) -> bool:
        """Whether it advances a random stream."""
        return self.state == "RngCount"


class Call(NamedTuple):
    """A call that was not executed: what the callee is given, by its parameters, where it comes from a parameter."""

    callee: object
    given: tuple[tuple[str, Place], ...]


_NOTHING: dict[Any, None] = {}
"""What most functions do, once for all."""


class Summary:
    """What a function certainly does."""

    __slots__ = ("calls", "changes", "complete", "named", "results")

    def __init__(self) -> None:
        self.named = True  # sizes in what it returns are known by their names, or are so for all objects
        self.changes: dict[Change, None] = {}
        self.calls: dict[Call, None] = {}
        self.results = Results()
        self.complete = False

    @property
    def draws(self) -> bool:
        """Whether the function draws randomness from an argument."""
        return any(change.draws for change in self.changes)

    @property
    def sows(self) -> bool:
        """Whether the function stores intermediate values in an argument."""
        return any(change.action == "`.sow(...)`" for change in self.changes)

    def changed(self, parameter: str) -> list[Change]:
        """What the function does to one of its arguments."""
        return [change for change in self.changes if change.place.parameter == parameter]


class Effects:
    """The summaries of one evaluation."""

    __slots__ = ("_closed", "_own")

    def __init__(self) -> None:
        self._own: dict[object, Summary] = {}
        self._closed: dict[object, Summary] = {}

    # -- making --------------------------------------------------------------------------------------------------------

    def begin(self, frame: Frame, func: FuncVal) -> Summary:
        """Start the summary of a function that runs on its own in a frame, its parameters bound."""
        frame.summary = summary = self._own[func.key] = Summary()
        summary.named = not isinstance(frame.receiver, Obj) or arguments_of(frame.receiver) is OWN
        frame.given = dict(frame.env.names)
        return summary

    def end(self, frame: Frame, value: Value) -> None:
        """The function has run to its end, with this result."""
        summary = frame.summary
        if summary is None:
            return
        summary.results = Results(value, partial(place_of, frame.given))
        summary.complete = True

    def changed(self, frame: Frame, target: Value, action: str, effect: str, state: str) -> None:
        """Something is changed in a frame; if that is certain, it is part of the summary that is being made."""
        outer = _summarised(frame)
        if outer is not None and outer.summary is not None and (place := place_of(outer.given, target)) is not None:
            outer.summary.changes[Change(place, action, effect, state)] = None

    def called(self, frame: Frame, func: FuncVal, given: Mapping[str, Value]) -> None:
        """A call is not executed."""
        outer = _summarised(frame)
        if outer is None or outer.summary is None:
            return
        places = ((name, place_of(outer.given, value)) for name, value in given.items())
        known = tuple((name, place) for name, place in places if place is not None)
        outer.summary.calls[Call(func.key, known)] = None

    def settle(self) -> None:
        """No summary is added to any more."""
        for summary in self._own.values():
            summary.calls, summary.changes = summary.calls or _NOTHING, summary.changes or _NOTHING

    # -- asking --------------------------------------------------------------------------------------------------------

    def of(self, func: FuncVal) -> Summary | None:
        """The summary of a function, with the effects of all that it calls; ``None`` if it has not run to its end."""
        own = self._own.get(func.key)
        if own is None or not own.complete:
            return None
        if func.key not in self._closed:
            self._close(func.key)
        return self._closed[func.key]

    def _close(self, key: object) -> None:
        """Follow the calls of a function, and of all that these lead to, until nothing is added."""
        todo = [key]
        for each in todo:
            for call in self._own[each].calls:
                if call.callee in self._own and call.callee not in todo:
                    todo.append(call.callee)
        changes = {each: dict(self._own[each].changes) for each in todo}
        growing = True
        while growing:
            growing = False
            for each in todo:
                for call in self._own[each].calls:
                    for change in _seen_from_outside(call, list(changes.get(call.callee, ()))):
                        if change not in changes[each]:
                            changes[each][change] = None
                            growing = True
        for each in todo:
            if self._own[each].complete and each not in self._closed:
                closed = self._closed[each] = Summary()
                closed.changes, closed.calls = changes[each], self._own[each].calls
                closed.results, closed.named, closed.complete = self._own[each].results, self._own[each].named, True

    def apply(self, interp: Interpreter, frame: Frame, func: FuncVal, given: Mapping[str, Value]) -> Value:
        """Do what the summary of a function says, in the frame in which its body would have run."""
        from nnx_lint.model import attributes
        from nnx_lint.model.instances import switches_mode

        summary = self.of(func)
        if summary is None:
            return UNKNOWN
        for change in list(summary.changes):
            target = at(interp, frame, given, change.place)
            if change.action == REWIRED:
                interp.effects.changed(frame, target, *change[1:])
                attributes.forget_all(target)
                continue
            if change.action in MODES:
                if not isinstance(target, Obj) or not switches_mode(target):
                    continue
                set_training(target, MODES[change.action])
            if isinstance(target, Obj) and not (change.effect == "call" and in_evaluation(given, change.place)):
                text = ".".join((change.place.parameter, *change.place.path))
                attributes.mutate(interp, frame, target, text, change.action, change.effect, func.node, change.state)
                if change.action.startswith(SETTING):
                    attributes.forget(target, change.action.removeprefix(SETTING).rstrip("`"))
        made_with = _made_with(func, given) if summary.named else None
        return Renewal(interp, frame.level, summary.results, partial(at, interp, frame, given), made_with).result()


def _made_with(func: FuncVal, given: Mapping[str, Value]) -> Mapping[str, Value] | None:
    """What the names of sizes in the result of a function stand for in a call of it; ``None`` where other sizes may
    come of it, since the object is of a class below, or has got other parts since it was made.
    """
    if func.cls is None:
        return {}
    first = syntax_parameters.positional_names(func.node.args)[:1]
    receiver = given.get(first[0]) if first else None
    if not isinstance(receiver, Obj) or receiver.cls is not func.cls or not comes_with_class(receiver):
        return None
    return arguments_of(receiver) or {}


# -- places ------------------------------------------------------------------------------------------------------------


def _summarised(frame: Frame) -> Frame | None:
    """The frame of the function that runs on its own, if the present statement runs whenever it does."""
    while not frame.doubts:
        if frame.caller is None:
            return frame
        frame = frame.caller
    return None


def place_of(given: Mapping[str, Value], target: Value) -> Place | None:
    """How a function reaches an object from its arguments, as far as it has looked into them."""
    todo: list[tuple[Place, Value]] = [(Place(name), value) for name, value in given.items()]
    seen: set[int] = set()
    for place, value in todo:
        if value is target:
            return place
        if id(value) in seen or len(place.path) == MAX_PATH or len(todo) > MAX_LOOKED_AT:
            continue
        seen.add(id(value))
        todo += ((Place(place.parameter, (*place.path, step)), member) for step, member in _members(value))
    return None


def _members(value: Value) -> Iterator[tuple[str, Value]]:
    if isinstance(value, Obj):
        for name, attr in value.attrs.items():
            yield name, attr.value
    elif isinstance(value, Seq):
        for item in (*value.items, *value.picked.values()):
            yield ELEMENT, item
    elif isinstance(value, DictVal):
        for _, item in value.items:
            yield ELEMENT, item


def at(interp: Interpreter, frame: Frame, given: Mapping[str, Value], place: Place) -> Value:
    """The object at a place, for these arguments."""
    from nnx_lint.model.attributes import attribute_of
    from nnx_lint.model.elements import element_of

    value = given.get(place.parameter, UNKNOWN)
    for step in place.path:
        if step == ELEMENT:
            value = element_of(value, frame.level)
            continue
        attr = attribute_of(value, step) if isinstance(value, Obj) else None
        value = attr.value if attr is not None else UNKNOWN
    return value


def in_evaluation(given: Mapping[str, Value], place: Place) -> bool:
    """Whether an argument is not known to be in the mode in which its layers change state."""
    value = given.get(place.parameter)
    return isinstance(value, Obj) and value.training is not True


def _seen_from_outside(call: Call, changes: list[Change]) -> Iterator[Change]:
    """The changes that a callee makes, as its caller reaches the objects."""
    given = dict(call.given)
    for change in changes:
        place = given.get(change.place.parameter)
        if place is not None and len(place.path) + len(change.place.path) <= MAX_PATH:
            yield change._replace(place=Place(place.parameter, place.path + change.place.path))
