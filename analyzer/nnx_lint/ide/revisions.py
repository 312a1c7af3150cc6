"""An edit inside of one function or class leaves most of what is known of a file as it is: only the rest is made anew.

The statements of a module that is being edited are executed as *parts*, each with what it gave. A new text has the
nodes of all statements that it did not change (:mod:`~nnx_lint.syntax.edits`). If a single ``def`` or ``class`` is
another one now, or none is, the others keep their values. Only the new statement is executed, in the state in which it
would have been, and void is what looked at its name before, or at something that followed from it. For that, a module
that may be revised notes which evaluation looks at which of its names (:class:`~nnx_lint.model.modules.Env`).

In other modules an evaluation goes as it does in this one, and a whole module goes if its statements have looked.

Invariants: whatever is not certain (a name that is bound twice, a decorator of the project, a part besides the changed
one that looks at it, another file that does so and that this one has looked at) is no revision, and the module is
evaluated as if it was new; so the findings are those of a run over the same texts.
"""

from __future__ import annotations

import ast
import bisect
import copy
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.diagnostics import Span
from nnx_lint.ide.notes import Noting
from nnx_lint.model.frames import Frame
from nnx_lint.model.modules import ALL
from nnx_lint.syntax.binding import imported_name
from nnx_lint.syntax.edits import last_line
from nnx_lint.syntax.walk import first_line, walk

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.model.callables import FuncVal, Transformed
    from nnx_lint.model.classes import UserClass
    from nnx_lint.model.interpreter import Interpreter
    from nnx_lint.model.modes import Modes
    from nnx_lint.model.modules import Module, Project
    from nnx_lint.source import SourceFile
    from nnx_lint.syntax.edits import Change

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Part:
    """A statement of a module, the state in which it was executed, and what it gave.

    ``clean`` says that it did nothing but bind its name, to something new.
    """

    def __init__(self, node: ast.stmt, frame: Frame, interp: Interpreter) -> None:
        self.node = node
        self.frame = copy.copy(frame)
        self.modes: Modes = interp.modes
        self.bound = len(frame.env.names)
        self.functions: list[tuple[FuncVal, Frame]] = []
        self.classes: list[UserClass] = []
        self.transforms: list[tuple[Transformed, Frame]] = []
        self.ran: set[Transformed] = set()
        self.entered: set[int] = set()
        self.listener: Noting | None = None
        self.clean = False


class Text(NamedTuple):
    """The text of a module, whether it is broken, its statements, and where the lines of these begin and end."""

    text: str
    broken: bool
    nodes: list[ast.stmt]
    starts: list[int]
    ends: list[int]

    @classmethod
    def of(cls, source: SourceFile) -> Text:
        nodes = source.tree.body
        starts = [source.line_start(first_line(node)) for node in nodes]
        return cls(
            source.text, bool(source.errors), nodes, starts, [source.offset(last_line(node) + 1, 0) for node in nodes]
        )

    def statement(self, number: int) -> str:
        """The text of a statement."""
        return self.text[self.starts[number] : self.ends[number]].rstrip()


class _Body:
    """A module that may be revised: its parts, and the text that they are of."""

    def __init__(self, module: Module, text: Text, parts: list[Part]) -> None:
        self.module = module
        self.text = text
        self.parts = parts


class Revisions:
    """Executes the files of a project that are being edited in parts, and revises them."""

    def __init__(self, project: Project, edited: Container[str]) -> None:
        self._project = project
        self._edited = edited
        self._bodies: dict[str, _Body] = {}
        project.run_body = self._run

    def _run(self, interp: Interpreter, module: Module) -> None:
        """Execute the statements of a module."""
        frame = Frame(module, module.env)
        path = module.source.path
        if path not in self._edited or not isinstance(interp.listener, Noting):
            interp.block(frame, module.source.tree.body)
            return
        module.env.readers = {}
        text = Text.of(module.source)
        bound = Counter(name for node in text.nodes for name in _binds(node))
        parts: list[Part] = []
        try:
            for node in text.nodes:
                parts.append(Part(node, frame, interp))
                if self._execute(interp, frame, parts[-1]):
                    return
        finally:
            _gather(interp, parts)
        for part in parts:
            part.clean = part.clean and bound[getattr(part.node, "name", "")] == 1
        self._bodies[path] = _Body(module, text, parts)

    def _execute(self, interp: Interpreter, frame: Frame, part: Part) -> bool:
        """Execute a part; whether it certainly ends the module."""
        env, node = frame.env, part.node
        names = dict(env.names) if isinstance(node, DEFINITIONS) else {}
        before = _state(interp, frame)
        main = interp.listener
        assert isinstance(main, Noting)
        part.listener = listener = self._project.listen()  # type: ignore[assignment]
        assert isinstance(listener, Noting)
        listener.memory = main.noted()
        interp.functions, interp.classes, interp.transforms = part.functions, part.classes, part.transforms
        interp.ran, interp.entered = part.ran, part.entered
        publish, interp.publish = interp.publish, listener
        interp.heap.part = part
        try:
            ended = interp.block(frame, [node])
        finally:
            interp.heap.part = None
            interp.publish = publish
        if isinstance(node, DEFINITIONS) and _state(interp, frame) == before and node.name not in names:
            names[node.name] = env.names.get(node.name)  # type: ignore[assignment]
            part.clean = env.names.keys() == names.keys() and all(env.names[name] is names[name] for name in names)
        return ended

    # -- revising

    def revise(self, path: str, source: SourceFile) -> bool:
        """Take a new text of a file; whether that was possible. If not, nothing is known of the file any more."""
        body = self._bodies.pop(path, None)  # what is begun now may fail
        if body is None or body.module is not self._project.loaded(path) or not body.module.complete:
            return False
        module = body.module
        assert module.body is not None
        new = Text.of(source)
        direct = source.followed is not None and source.followed.text is body.text.text
        changed = _difference(body.text, new, direct=direct)
        if changed is None:
            return False
        old = body.parts[changed] if changed < len(body.parts) else None
        if old is not None and not old.clean:
            return False
        place = Span(body.text.starts[changed], body.text.ends[changed]) if old is not None else None
        kept = _Kept(body.text, source, source.followed if direct else None, place)
        answers = module.answers_in(source)
        asked = module.answered_otherwise(answers)
        void = self._void(module, body, old, new.nodes[changed] if old is not None else None, kept, asked)
        if void is None:
            return False
        module.revise(source, answers)
        for each in void:  # what was asked of other modules is known here now, without asking again
            if each.module is module:
                module.body.used.update(used for used in each.used - void if used.module is not module)
        self._project.forget_evaluations(void)
        others = [each.module for each in void if each.module is not None and each is each.module.body]
        self._project.forget([each.source.path for each in others])
        if old is not None and not self._replace(module, body, changed, new.nodes[changed]):
            return False
        stay: list[object] = [each.listener for each in self._project.evaluations]
        stay += [part.listener for number, part in enumerate(body.parts) if number != changed]
        shift = source.followed if source.followed is not None and direct else _Shift(body.text.starts, new.starts)
        for listener in stay if shift else ():
            if isinstance(listener, Noting):
                listener.shift(path, shift)
        _gather(module.body, body.parts)
        self._forget_readers(module, old)
        self._bodies[path] = _Body(module, new, body.parts)
        return True

    def _void(
        self,
        module: Module,
        body: _Body,
        old: Part | None,
        new: ast.stmt | None,
        kept: _Kept,
        otherwise: Iterable[object],
    ) -> set[Interpreter] | None:
        """The evaluations, of other modules too, that do not stand if a part of a module changes, and what some asked
        for is ``otherwise``; ``None`` if that cannot be said, or the module itself does not stand.
        """
        readers = module.env.readers
        assert readers is not None
        assert module.body is not None
        asked = [*otherwise, ALL, getattr(new, "name", "")] if new is not None else otherwise
        looked = {pair for each in asked for pair in readers.get(each, ())}
        if any(heap is module.body.heap and part is not old for heap, part in looked):
            return None
        if not module.body.heirs.isdisjoint(bases := _bases(old.node if old is not None else None) | _bases(new)):
            return None
        if not all(kept.all_of(part.listener) for part in body.parts if part is not old):
            return None
        heaps = {heap for heap, _ in looked}
        nodes = {id(node) for node in walk(old.node)} if old is not None else set[int]()
        left = [each for each in self._project.evaluations if each is not module.body]
        void = {
            each
            for each in left
            if each.heap in heaps
            or id(each.subject) in nodes
            or not bases.isdisjoint(each.heirs)
            or not kept.all_of(each.listener)
        }
        doomed = void
        while doomed:
            void |= doomed
            # The body of another module is executed as a whole, and all that is known of that module goes with it.
            gone = {each.module for each in doomed if each.module is not module and each is _body_of(each)}
            left = [each for each in left if each not in void]
            doomed = {each for each in left if each.module in gone or not void.isdisjoint(each.used)}
        return None if not void.isdisjoint(module.body.used) else void

    def _replace(self, module: Module, body: _Body, number: int, node: ast.stmt) -> bool:
        """Execute a statement that came in the place of another one."""
        interp, old = module.body, body.parts[number]
        assert interp is not None
        env, name = module.env, getattr(node, "name", "")
        names = list(env.names.items())
        env.names = dict(names[: old.bound])
        for known in (interp.runs, interp.uses):
            known.clear()  # by syntax that is gone, in whose place other syntax may lie
        ended, modes = interp.ended_early, interp.modes
        with interp.evaluating():
            interp.modes = old.modes
            frame = copy.copy(old.frame)
            body.parts[number] = part = Part(node, frame, interp)
            part.bound = old.bound
            self._execute(interp, frame, part)
        interp.modes = modes
        done = part.clean and not ended and not interp.ended_early and interp.failure is None
        value = env.names.get(name)
        env.names = dict(names[: old.bound])
        if value is not None:
            env.names[name] = value
        env.names.update((each, held) for each, held in names[old.bound :] if each != name)
        return done

    def _forget_readers(self, module: Module, old: Part | None) -> None:
        """Forget what is void, what was given up, and who only had a question."""
        kept = {each.heap for each in self._project.evaluations}
        readers = module.env.readers
        assert readers is not None
        for what, pairs in readers.items():
            readers[what] = {pair for pair in pairs if pair[0] in kept and (old is None or pair[1] is not old)}


def _body_of(evaluation: Interpreter) -> Interpreter | None:
    return evaluation.module.body if evaluation.module is not None else None


class _Kept:
    """Which findings in a module stand after a change of its text: their evaluations would report them again.

    A finding stands if neither it, nor its fix, nor what it is related to, touches the change or the statement that is
    another one now. What was found in a broken text may lack its fix.
    """

    def __init__(self, before: Text, source: SourceFile, change: Change | None, statement: Span | None) -> None:
        self.source = source
        self._known = change is not None
        self._mended = before.broken and not source.errors
        self._around = [Span(change.start, change.end)] if change is not None else []
        self._around += [statement] if statement is not None else []

    def all_of(self, listener: object) -> bool:
        """Whether all findings of a listener stand."""
        return not isinstance(listener, Noting) or not listener.found or all(map(self._stands, listener.found.values()))

    def _stands(self, finding: Diagnostic) -> bool:
        edits = finding.fix.edits if finding.fix is not None else ()
        places = [finding.span, *(edit.span for edit in edits)] if finding.path == self.source.path else []
        places += [each.span for each in finding.related if each.path == self.source.path]
        if places and (not self._known or (self._mended and finding.fix is None)):
            return False
        return not any(place.start <= each.end and each.start <= place.end for place in places for each in self._around)


class _Shift:
    """Where a place in the text of a statement that was kept is now."""

    def __init__(self, before: list[int], after: list[int]) -> None:
        self._before = before
        self._by = [new - old for old, new in zip(before, after, strict=True)]

    def __bool__(self) -> bool:
        return any(self._by)

    def moved(self, span: Span) -> Span:
        by = self._by[bisect.bisect_right(self._before, span.start) - 1]
        return Span(span.start + by, span.end + by)


def _state(interp: Interpreter, frame: Frame) -> tuple[object, ...]:
    """What a clean part leaves as it is."""
    used, runs = len(interp.used), sum(interp.runs.values())
    return used, runs, interp.modes, frame.doubts, frame.exits, frame.branches, interp.project.knotted


def _gather(interp: Interpreter, parts: Iterable[Part]) -> None:
    """Give the evaluation of a module what its parts gave."""
    interp.functions = [item for part in parts for item in part.functions]
    interp.classes = [item for part in parts for item in part.classes]
    interp.transforms = [item for part in parts for item in part.transforms]
    interp.ran = {item for part in parts for item in part.ran}
    interp.entered = {item for part in parts for item in part.entered}
    assert isinstance(interp.listener, Noting)
    interp.listener.gather([part.listener for part in parts if part.listener is not None])


def _binds(node: ast.stmt) -> set[str]:
    """The names that a statement of a module may bind, or delete."""
    if isinstance(node, DEFINITIONS):
        inner = [part for part in ast.walk(node) if isinstance(part, ast.Global)]
        return {node.name, *(name for part in inner for name in part.names)}
    names: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            names.add(part.id)
        elif isinstance(part, DEFINITIONS):
            names.add(part.name)
        elif isinstance(part, ast.alias):
            names.add(imported_name(part))
        elif isinstance(part, ast.Global):
            names.update(part.names)
    return names


def _bases(node: ast.stmt | None) -> set[str]:
    """The last names of the bases of the classes in a statement, and their own: who asked for heirs of one of these may
    have met it.
    """
    classes = [each for each in walk(node) if isinstance(each, ast.ClassDef)] if node is not None else []
    parts = [part for each in classes for base in each.bases for part in walk(base)]
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    names.update(part.attr for part in parts if isinstance(part, ast.Attribute))
    return names.union(each.name for each in classes)


def _difference(old: Text, new: Text, *, direct: bool) -> int | None:
    """The number of the only definition that differs, that of all statements if none does; ``None`` if more differs.

    A statement with the nodes from before is the same, even with another text, if one text came ``direct`` from the
    other: then it is known how its places have moved.
    """
    if len(old.nodes) != len(new.nodes):
        return None
    pairs = enumerate(zip(old.nodes, new.nodes, strict=True))
    others = [
        number
        for number, (before, after) in pairs
        if before is not after or not (direct or old.statement(number) == new.statement(number))
    ]
    if len(others) > 1:
        return None
    if not others:
        return len(old.nodes)
    before, after = old.nodes[others[0]], new.nodes[others[0]]
    if not isinstance(before, DEFINITIONS) or type(before) is not type(after):
        return None
    return others[0] if before.name == getattr(after, "name", None) else None
