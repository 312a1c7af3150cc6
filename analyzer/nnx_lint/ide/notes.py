"""What is written down while a file is checked, for the questions that an editor asks afterwards.

The interpreter publishes what a program does, and what it knew then is undone or joined with other things later. So
the listener of an evaluation keeps, besides the findings, the few facts that editors show, reduced to plain values at
once. Only files that are being edited are written down.

Invariants: a note has spans of the text that was checked; what is known in one pass over a place and not in another is
left out, unless it is the same in both.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from nnx_lint.diagnostics import Span
from nnx_lint.drawing.reading import Reader, array_form, constructor_arguments, variable_form
from nnx_lint.drawing.structure import path_text
from nnx_lint.model import events
from nnx_lint.model.classes import LibClass, UserClass
from nnx_lint.model.values import Array, Obj
from nnx_lint.reporting import Findings, key_of
from nnx_lint.rules.filters.coverage import leaves_of
from nnx_lint.rules.filters.coverage import path_text as leaf_text
from nnx_lint.rules.filters.edits import statement_of, unpacked_names
from nnx_lint.rules.filters.expressions import describe, is_subtype, type_name
from nnx_lint.rules.filters.reading import FILTERING, filter_lists, gives_filters, single_filters
from nnx_lint.rules.randomness.reading import elements
from nnx_lint.syntax.edits import Change
from nnx_rules import _filter_logic as logic
from nnx_rules.attributes import Kind, Status
from nnx_rules.shapes import DIMENSIONS, form

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.model.interpreter import Interpreter
    from nnx_lint.model.modes import Modes
    from nnx_lint.model.values import Value
    from nnx_lint.reporting import Judging
    from nnx_lint.rules.filters.reading import FilterList, Given
    from nnx_lint.source import SourceFile
    from nnx_rules.shapes import Shape
    from nnx_rules.transforms import Transform


class Assigned(NamedTuple):
    """``self.name = value``: the span of the name, and of the statement; what the attribute is after it, and why.

    ``tagged`` says that the value is marked, ``kept`` that the attribute had a status before; ``shapes`` are those of
    the array or Variable that is assigned, or of the parameters of a layer, where they are known; ``written`` says that
    the statement shows them itself.
    """

    name_span: Span
    span: Span
    cls: str
    name: str
    status: Status
    kind: Kind
    value: str
    tagged: bool
    kept: bool
    shapes: tuple[str, ...] = ()
    written: bool = False


class Filter(NamedTuple):
    """A filter that is written somewhere: what it takes, in words, and which leaves of the object, if it is known.

    ``taken`` are paths with their types; ``complete`` says that the object certainly has no other leaves.
    """

    span: Span
    text: str
    meaning: str
    owner: str
    taken: tuple[str, ...] = ()
    complete: bool = False


class Target(NamedTuple):
    """A name that gets what a filter takes: the span of the name, and the filter in the words of the program."""

    span: Span
    filter: str


class Applied(NamedTuple):
    """A transform of a function: its span, its row of the table, the modes it runs in; whether it lifts captures."""

    span: Span
    transform: Transform
    modes: Modes
    lifts: bool


class Captured(NamedTuple):
    """What a function under a transform closes over: the span of the transform, the name and class of the object."""

    span: Span
    name: str
    cls: str
    changed: bool


N = TypeVar("N", bound=tuple[Any, ...])


class Notes:
    """The notes on one file that its evaluations took, each in the order of the text.

    They are put together when somebody asks, for most of what is typed nobody does.
    """

    def __init__(self, evaluations: Iterable[Interpreter] = (), path: str = "") -> None:
        self._listeners = [each.listener for each in evaluations if isinstance(each.listener, Noting)]
        self._path = path
        self.classes: dict[ast.AST, UserClass] = {}
        for listener in self._listeners:
            found = listener.classes.items()
            self.classes.update((node, each) for node, each in found if each.module.source.path == path)

    @cached_property
    def _taken(self) -> list[object]:
        taken = dict.fromkeys(note for listener in self._listeners for note in listener.on(self._path))
        self._listeners.clear()
        return list(taken)

    def _of(self, kind: type[N]) -> list[N]:
        return sorted((note for note in self._taken if isinstance(note, kind)), key=lambda note: note[0])

    @cached_property
    def assigned(self) -> list[Assigned]:
        return self._of(Assigned)

    @cached_property
    def filters(self) -> list[Filter]:
        return self._of(Filter)

    @cached_property
    def targets(self) -> list[Target]:
        return self._of(Target)

    @cached_property
    def applied(self) -> list[Applied]:
        return self._of(Applied)

    @cached_property
    def captured(self) -> list[Captured]:
        return self._of(Captured)

    def statuses(self) -> dict[Span, set[Status]]:
        """The statuses that the assignments of every place lead to, by the span of the attribute's name."""
        found: dict[Span, set[Status]] = {}
        for note in self.assigned:
            found.setdefault(note.name_span, set()).add(note.status)
        return found


MAX_SHIFTS = 100
"""How many edits a note waits for somebody to ask for it."""


class Shift(Protocol):
    """Where a place in a text is in the text that came after it."""

    def moved(self, span: Span, /) -> Span:
        """Where a place is now."""
        ...


class Noting(Findings):
    """Listens to one evaluation for the rules, and takes notes on the files that are being edited."""

    def __init__(self, judging: Judging, edited: Container[str]) -> None:
        super().__init__(judging)
        self._edited = edited
        self.classes: dict[ast.AST, UserClass] = {}
        self._taken: dict[tuple[str, Any], None] = {}
        self._parts: list[Noting] = []
        self._shifts: list[tuple[str, Shift]] = []

    def __call__(self, event: events.Event) -> None:
        """Hand an event to the rules, and note what it says."""
        super().__call__(event)
        take = _TAKERS.get(type(event))
        if take is not None and event.frame.module.source.path in self._edited:
            take(self, event)

    def gather(self, others: Sequence[Findings]) -> None:
        """Hold what others have found and noted in parts of the evaluation, and nothing else."""
        super().gather(others)
        self._parts = [other for other in others if isinstance(other, Noting)]
        self.classes, self._taken = {}, {}
        for part in self._parts:
            self.classes.update(part.classes)

    def shift(self, path: str, shift: Shift) -> None:
        """Move what was found in a file, and the notes on it, these once somebody asks for them."""
        if self.found:
            found = [_shifted_finding(finding, path, shift.moved) for finding in self.found.values()]
            self.found = {key_of(finding): finding for finding in found}
        if not self._taken:
            return
        where, last = self._shifts[-1] if self._shifts else ("", None)
        both = last.then(shift) if isinstance(last, Change) and isinstance(shift, Change) else None
        if both is not None and where == path:
            self._shifts[-1] = path, both
        else:
            self._shifts.append((path, shift))
        if len(self._shifts) > MAX_SHIFTS:
            self._settle()

    def note(self, source: SourceFile, note: object) -> None:
        """Keep a note on a file."""
        if source.path in self._edited:
            self._taken[source.path, note] = None

    def on(self, path: str) -> Iterator[object]:
        """The notes on a file."""
        self._settle()
        yield from (note for where, note in self._taken if where == path)
        for part in self._parts:
            yield from part.on(path)

    def _settle(self) -> None:
        for path, shift in self._shifts:
            notes = [(where, _shifted(note, shift.moved) if where == path else note) for where, note in self._taken]
            self._taken = dict.fromkeys(notes)
        self._shifts.clear()


def _shifted(note: Any, moved: Callable[[Span], Span]) -> Any:
    """A note with all spans in it moved."""
    if isinstance(note, Span):
        return moved(note)
    if hasattr(note, "_make"):
        return note._make(_shifted(item, moved) for item in note)
    return tuple(_shifted(item, moved) for item in note) if _is_tuple(note) else note


def _shifted_finding(finding: Diagnostic, path: str, moved: Callable[[Span], Span]) -> Diagnostic:
    """A finding with all places in a file moved."""
    fix, span = finding.fix, finding.span
    if finding.path == path:
        span = moved(span)
        fix = fix and fix.replaced(edits=tuple(edit.replaced(span=moved(edit.span)) for edit in fix.edits))
    related = tuple(each.replaced(span=moved(each.span)) if each.path == path else each for each in finding.related)
    return finding.replaced(span=span, fix=fix, related=related)


def _is_tuple(note: object) -> bool:
    return isinstance(note, tuple)


def _class(noting: Noting, event: events.ClassDefined) -> None:
    noting.classes[event.cls.node] = event.cls


def _assignment(noting: Noting, event: events.AttributeSet) -> None:
    verdict, node = event.verdict, event.node
    if verdict is None:
        return
    target = _target(node, event.name)
    if target is None:
        return
    source = event.frame.module.source
    end = source.span(target).end
    span = source.span(node)
    facts = event.value.facts()
    shapes = _shapes(event.value)
    noting.note(
        source,
        Assigned(
            Span(end - len(event.name), end),
            span,
            event.obj.cls.name,
            event.name,
            verdict.status,
            facts.kind,
            event.value.describe(),
            facts.tag is not None,
            event.before is not None or event.attr.declared is not None,
            shapes,
            len(shapes) == 1 and shapes[0] in source.segment(span),
        ),
    )


def _shapes(value: Value) -> tuple[str, ...]:
    """The shape of an array or a Variable, or those of the parameters of layers of the library, if all are known."""
    if isinstance(value, Array):
        return _texts(("", array_form(value).shape))
    if not isinstance(value, Obj) or not value.args:
        return ()
    if value.cls.is_variable:
        return _texts(("", variable_form(value).shape))
    if not all(isinstance(each.cls, LibClass) for each in (value, *elements(value))):
        return ()
    if not _has_shapes(value):
        return ()
    nodes = Reader().root(value).walk()
    return _texts(*((path_text(node.path), node.form.shape) for node in nodes if node.parameter))


def _has_shapes(layer: Obj) -> bool:
    """Whether one of a layer's shapes may be known; of most layers none is, as constructors pass on what they get."""
    canonical = layer.cls.canonical if isinstance(layer.cls, LibClass) else ""
    paths = DIMENSIONS.get(canonical, {})
    if not paths:
        return True
    arguments = constructor_arguments(layer)
    forms = [form(canonical, tuple(path.split(".")), arguments) for path in paths]
    return any(each is not None and _is_known(each.shape) for each in forms)


def _is_known(shape: Shape | None) -> bool:
    return shape is not None and all(isinstance(size, int) for size in shape)


def _texts(*shapes: tuple[str, Shape | None]) -> tuple[str, ...]:
    """Shapes by name as they are shown; nothing if a size is missing."""
    known = all(_is_known(shape) for _, shape in shapes)
    return tuple(f"{name} {shape}".strip() for name, shape in shapes) if known else ()


def _target(node: ast.AST, name: str) -> ast.Attribute | None:
    """The attribute that a statement assigns to."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    nested = [
        each for target in targets for each in (target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target])
    ]
    return next((each for each in nested if isinstance(each, ast.Attribute) and each.attr == name), None)


_FILTERING = frozenset(FILTERING)


def _call(noting: Noting, event: events.Called) -> None:
    if event.subject not in _FILTERING or not gives_filters(event):
        return
    lists = filter_lists(event)
    for found in lists:
        _filters(noting, event, found)
    known = {id(given.node) for found in lists for given in found.given}
    for single in single_filters(event):
        given = single.given
        if id(given.node) not in known and given.in_place:
            span = given.module.source.span(given.node)
            noting.note(given.module.source, Filter(span, str(given), describe(given.expr), ""))


def _filters(noting: Noting, event: events.Called, found: FilterList) -> None:
    source = found.module.source
    leaves = leaves_of(found.target, event.frame) if found.target is not None else None
    owner = found.target.describe() if found.target is not None and leaves is not None and leaves.held else ""
    left = list(leaves.leaves) if leaves is not None else []
    for index, given in enumerate(found.given):
        if not given.in_place:
            continue
        taken = [leaf for leaf in left if logic.matches(given.expr, leaf, is_subtype)]
        unsure = not found.ordered
        left = left if unsure else [leaf for leaf in left if leaf not in taken]
        names = tuple(f"{leaf_text(leaf)}: {type_name(leaf.type)}" for leaf in taken)
        complete = leaves is not None and leaves.complete and not found.open
        words = _words(given)
        meaning = "what the filters before it leave" if index and words == REST and not unsure else describe(given.expr)
        noting.note(source, Filter(source.span(given.node), words, meaning, owner, names, complete))
    if not found.passed_on and not found.open and isinstance(found.node, ast.Call):
        _targets(noting, found)


def _targets(noting: Noting, found: FilterList) -> None:
    """Note which names get what the filters take; the structure that `split` gives first has none."""
    names = unpacked_names(statement_of(found.module, found.node))
    if names is None:
        return
    first = len(names) - len(found.given)
    if first not in (0, 1):
        return
    source = found.module.source
    for name, given in zip(names[first:], found.given, strict=True):
        span = source.span(name)
        if source.segment(span) != UNUSED:
            noting.note(source, Target(span, _words(given)))


def _words(given: Given) -> str:
    text = " ".join(given.module.source.segment(given.node).split())
    return REST if text == "..." else text


REST = "the rest"
UNUSED = "_"
"""What a target is called whose value nobody wants."""


def _transform(noting: Noting, event: events.TransformApplied) -> None:
    source = event.frame.module.source
    applied = event.applied
    lifts = applied.row.lifts_captures and event.frame.module.provider == "nnxkit"
    noting.note(source, Applied(_transform_span(source, event.node), applied.row, applied.modes, lifts))


def _transform_span(source: SourceFile, node: ast.AST) -> Span:
    """The transform itself in what applies it: a decorator, or the function of a call."""
    return source.span(node.func if isinstance(node, ast.Call) else node)


def _run(noting: Noting, event: events.Ran) -> None:
    scope = event.scope
    applied = scope.applied
    source = applied.module.source
    changed = {id(change.target) for change in scope.changes}
    span = _transform_span(source, applied.node)
    for frame, node, obj in scope.reads:
        if isinstance(node, ast.Name) and frame is scope.frame:
            noting.note(source, Captured(span, node.id, obj.cls.name, id(obj) in changed))


_TAKERS: dict[type[events.Event], Callable[[Noting, Any], None]] = {
    events.ClassDefined: _class,
    events.AttributeSet: _assignment,
    events.Called: _call,
    events.TransformApplied: _transform,
    events.Ran: _run,
}
