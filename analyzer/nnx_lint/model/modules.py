"""Modules of the project and how their names are found.

A *project* is the files that were asked for, plus those they import, as far as these lie in the same source trees. A
module knows its dotted name, its file, and its global names once it has been executed abstractly.

Invariants: a file is read once, and is one module whatever names lead to it; a module outside the source trees of the
files (:mod:`~nnx_lint.model.layout`) is a library and never read; executing a module never imports anything.
"""

from __future__ import annotations

import ast
import os
import re
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model import heap
from nnx_lint.model.deferred import settled
from nnx_lint.model.heirs import Heirs
from nnx_lint.model.layout import Layout, Place
from nnx_lint.model.values import UNKNOWN
from nnx_lint.source import SourceError, SourceFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Set

    from nnx_lint.model.callables import FuncVal
    from nnx_lint.model.events import Event
    from nnx_lint.model.interpreter import Interpreter
    from nnx_lint.model.values import (
        Value,
    )


ALL = "*"
"""What somebody looks at who goes through all names of a module, or all of its syntax."""

READABLE = "<readable>"
"""What somebody looks at who asks whether all of a text can be read."""

NO_NAMES: frozenset[str] = frozenset()

DECLARED = "<declared>/"
"""What the paths begin with of modules of libraries that somebody has declared: there are no such files."""


class Env:
    """A scope: names to values, and the scope around it. Class scopes are skipped by lookups from functions inside.

    ``func`` is the function whose scope it is. ``anew`` are the definitions of a module whose names stood for another
    function or class before, as in the cells of a notebook: a function from above one may mean either, and which is not
    known. ``readers`` are the evaluations that have looked at what, each with the part it was at: at a name, there or
    not, or what else a module may be asked for. Only modules that may be revised (:mod:`~nnx_lint.ide.revisions`) keep
    them.
    """

    __slots__ = ("anew", "born", "func", "globals", "kind", "names", "nonlocals", "parent", "readers")

    def __init__(self, kind: str, parent: Env | None = None, func: FuncVal | None = None) -> None:
        self.born = heap.current
        self.kind = kind
        self.parent = parent
        self.func = func
        self.names: dict[str, Value] = {}
        self.anew: dict[str, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self.globals = NO_NAMES
        self.nonlocals = NO_NAMES
        self.readers: dict[object, set[tuple[heap.Evaluation, object]]] | None = None

    def saved(self) -> Callable[[], None]:
        return heap.restorer(self, names=dict(self.names), anew=dict(self.anew))

    def note(self, what: object, by: heap.Evaluation | None = None) -> None:
        """Note that an evaluation looks at something: the present one, or another one that will keep what it saw."""
        if self.readers is not None:
            reader = by or heap.current
            self.readers.setdefault(what, set()).add((reader, reader.part))

    def get(self, name: str) -> Value | None:
        """The value of a name in this scope alone."""
        self.note(name)
        value = self.names.get(name)
        return settled(value) if value is not None else None

    def values(self) -> Iterator[Value]:
        """The values of all names in this scope."""
        self.note(ALL)
        return map(settled, self.names.values())

    def lookup(self, name: str) -> tuple[Env, Value] | None:
        """The value of a name and the scope that holds it."""
        env: Env | None = self
        first = True
        while env is not None:
            if env.readers is not None:
                env.note(name)
            if (first or env.kind != "class") and name in env.names:
                if env.anew and env is not self and self._precedes(env.anew.get(name)):
                    return env, UNKNOWN
                return env, settled(env.names[name])
            first = False
            env = env.parent
        return None

    def _precedes(self, definition: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | None) -> bool:
        """Whether the function of this scope was written before a definition."""
        if definition is None:
            return False
        env: Env | None = self
        while env is not None:
            if env.func is not None:
                return env.func.node.lineno < definition.lineno
            env = env.parent
        return False


class Answers(NamedTuple):
    """What a text says: the sets that are read off its statements, whether a name is in one, whether it has words, and
    whether all of it can be read, once somebody asked for that.
    """

    sets: dict[Callable[[ast.AST], frozenset[str]], frozenset[str]]
    named: dict[tuple[str, Callable[[ast.AST], frozenset[str]]], bool]
    mentioned: dict[tuple[str | re.Pattern[str], ...], bool]
    readable: bool | None = None


class Module:
    """A module of the project.

    ``package`` says that it has modules of its own, ``namespace`` that it is but a folder of them, ``stub`` that the
    file only says what the module has, not what it does. ``awaited`` are names that others import from it while it is
    still being executed: the name, and the scope and the name that it is bound to there. ``body`` is the evaluation of
    its statements, once somebody asked for it; it is ``complete`` when that has ended.
    """

    def __init__(self, project: Project, name: str, source: SourceFile, package: bool) -> None:
        self.project = project
        self.name = name
        self.source = source
        self.package = package
        self.env = Env("module")
        self.stub = False
        self.namespace = False
        self.awaited: list[tuple[str, Env, str]] = []
        self.body: Interpreter | None = None
        self.complete = False
        self.born: object = None
        self.provider: str | None = None
        self.mocks = False
        self._whole: set[Callable[[ast.AST], frozenset[str]]] = set()
        self._answers = Answers({}, {}, {})

    def saved(self) -> Callable[[], None]:
        return heap.restorer(self, provider=self.provider, mocks=self.mocks)

    @property
    def tree(self) -> ast.Module:
        """All syntax of the module."""
        self.env.note(ALL)
        return self.source.tree

    def all_of(self, read: Callable[[ast.AST], frozenset[str]]) -> frozenset[str]:
        """What is read off the statements of the module one by one, all in all; whoever asks depends on that alone."""
        self.env.note(read)
        self._whole.add(read)
        return self._set(read)

    def _set(self, read: Callable[[ast.AST], frozenset[str]]) -> frozenset[str]:
        sets = self._answers.sets
        if read not in sets:
            sets[read] = _read_off(self.source, read)
        return sets[read]

    def has(self, name: str, read: Callable[[ast.AST], frozenset[str]]) -> bool:
        """Whether a name is among :meth:`all_of` that; whoever asks depends on this name alone."""
        asked = name, read
        self.env.note(asked)
        named = self._answers.named
        if asked not in named:
            named[asked] = name in self._set(read)
        return named[asked]

    def mentions(self, *words: str | re.Pattern[str]) -> bool:
        """Whether one of some words stands in the text, in comments too; whoever asks depends on that alone."""
        self.env.note(words)
        mentioned = self._answers.mentioned
        if words not in mentioned:
            mentioned[words] = _mentions(self.source.text, words)
        return mentioned[words]

    @property
    def is_readable(self) -> bool:
        """Whether all of the text can be read; whoever asks depends on that alone."""
        self.env.note(READABLE)
        if self._answers.readable is None:
            self._answers = self._answers._replace(readable=_is_readable(self.source))
        return bool(self._answers.readable)

    def answers_in(self, source: SourceFile) -> Answers:
        """What another text says to all that was asked for with :meth:`all_of`, :meth:`has`, :meth:`mentions`."""
        known = self._answers
        sets = {read: _read_off(source, read) for read in known.sets}
        named = {(name, read): name in sets[read] for name, read in known.named}
        mentioned = {words: _mentions(source.text, words) for words in known.mentioned}
        return Answers(sets, named, mentioned, None if known.readable is None else _is_readable(source))

    def answered_otherwise(self, answers: Answers) -> Iterator[object]:
        """What was asked for and has another answer there."""
        known = self._answers
        yield from (read for read in self._whole if answers.sets[read] != known.sets[read])
        yield from (asked for asked, had in known.named.items() if answers.named[asked] != had)
        yield from (words for words, mentioned in known.mentioned.items() if answers.mentioned[words] != mentioned)
        if answers.readable != known.readable:
            yield READABLE

    def revise(self, source: SourceFile, answers: Answers) -> None:
        """Take another text, with its answers, whose tree holds the nodes of the old one where that was the same."""
        self.source = source
        self._answers = answers

    @property
    def has_file(self) -> bool:
        """Whether there is a file with the module's text."""
        return not self.namespace and not self.source.path.startswith(DECLARED)


class Project:
    """All modules that an analysis can see.

    ``roots`` are the paths that the user named: no source tree reaches above them. ``listen`` makes the listener of a
    new evaluation; ``running`` are the evaluations that go on, outermost first, ``modelling`` the classes whose models
    are being made, ``evaluations`` all that modules hold on to. ``pause`` is called between functions, by a raise of
    which an analysis is given up. ``read`` gives a file that is not one of those to check, ``run_body`` executes the
    statements of a module.
    """

    def __init__(
        self, sources: Mapping[str, SourceFile], roots: Iterable[str] = (), declared: Mapping[str, str] | None = None
    ) -> None:
        self.listen: Callable[[], Callable[[Event], None]] = lambda: _ignore
        self.running: list[Interpreter] = []
        self.modelling: set[ast.ClassDef] = set()
        self.functions: dict[object, Interpreter] = {}
        self.evaluations: list[Interpreter] = []
        self.pause: Callable[[], None] = _go_on
        self.run_body: Callable[[Interpreter, Module], None] = _run_body
        self.read: Callable[[str], SourceFile] = SourceFile.read
        self.knotted = False
        self.declared = declared or {}
        self.layout = Layout(sources, roots)
        self._sources = sources
        self._shown: dict[str, str] = {}
        for path in sources:
            self._shown.setdefault(os.path.abspath(path), path)
        self._by_path: dict[str, Module | None] = {}
        self.heirs = Heirs(self._source_of, self.running)

    def shown(self, path: str) -> str:
        """The path by which a file is known to people: the one that was given, if it is among those to check."""
        return self._shown.get(path, path)

    def module(self, path: str) -> Module | None:
        """The module of one of the files to check; ``None`` if it cannot be read."""
        path = os.path.abspath(path)
        name = os.path.basename(path)
        return self._load(Place(path, name.startswith("__init__."), name.endswith(".pyi")), "")

    def find(self, name: str, importer: Module) -> Module | None:
        """The project's module of this dotted name, as ``importer`` sees it, or the stub of a library that is declared;
        ``None`` for other libraries.
        """
        place = self.layout.absolute(name, importer.source.path) if importer.has_file else None
        if name in self.declared and (place is None or place.namespace):
            place = Place(f"{DECLARED}{name}", any(each.startswith(f"{name}.") for each in self.declared), stub=True)
        return self._load(place, name)

    def relative(self, level: int, name: str | None, importer: Module) -> Module | None:
        """The module that ``from ..name import`` names in ``importer``."""
        return self._load(self.layout.relative(level, name, importer.source.path), name or importer.name)

    def submodule(self, package: Module, name: str) -> Module | None:
        """The module of this name in a package."""
        if not package.package:
            return None
        if not (package.has_file or package.namespace):
            return self.find(f"{package.name}.{name}", package)
        folder = package.source.path if package.namespace else os.path.dirname(os.path.abspath(package.source.path))
        return self._load(self.layout.below(folder, name), f"{package.name}.{name}")

    def forget(self, paths: Iterable[str], bases: Set[str] = frozenset()) -> set[str]:
        """Forget some modules and all that follows from them; returns the paths of the modules that are gone.

        ``bases`` are names of classes whose heirs may be others now. A module goes if any of its evaluations looked at
        one that goes, so what stays holds nothing of what is gone.
        """
        gone = {id(module) for path in paths if (module := self._by_path.get(os.path.abspath(path))) is not None}
        self.heirs.forget()
        if bases:
            gone.update(id(each.module) for each in self.evaluations if not bases.isdisjoint(each.heirs))
        left = self.evaluations
        while doomed := [each for each in left if any(id(used.module) in gone for used in each.used)]:
            gone.update(id(each.module) for each in doomed)
            left = [each for each in left if id(each.module) not in gone]
        names = {path for path, module in self._by_path.items() if id(module) in gone}
        unread = {path for path, module in self._by_path.items() if module is None}
        for path in names | unread:
            del self._by_path[path]
        self.evaluations = [each for each in self.evaluations if id(each.module) not in gone]
        for key in [key for key, each in self.functions.items() if id(each.module) in gone]:
            del self.functions[key]
        return names

    def loaded(self, path: str) -> Module | None:
        """The module of a file, if somebody has asked for it."""
        return self._by_path.get(os.path.abspath(path))

    def forget_evaluations(self, void: Set[Interpreter]) -> None:
        """Forget some evaluations of functions, and of models of classes; who used them is among them."""
        for each in void:
            each.forget()
        self.evaluations = [each for each in self.evaluations if each not in void]
        self.heirs.forget()

    def _source_of(self, path: str) -> SourceFile | None:
        module = self.module(path)
        return module.source if module is not None else None

    def note_partial(self, inner: Interpreter | None) -> None:
        """Note that all that was started within an evaluation which goes on has seen a part of its result."""
        if inner in self.running:
            outer = self.running.index(inner)
            for affected in self.running[outer + 1 :]:
                if affected.partial is None or self.running.index(affected.partial) > outer:
                    affected.partial = inner

    def _load(self, place: Place | None, name: str) -> Module | None:
        if place is None:
            return None
        if place.path not in self._by_path:
            self._by_path[place.path] = self._read(place, name)
        return self._by_path[place.path]

    def _read(self, place: Place, name: str) -> Module | None:
        if place.namespace:
            module = Module(self, name, SourceFile.from_text("", place.path), True)
            module.namespace = True
            return module
        if place.path.startswith(DECLARED):
            module = Module(self, name, SourceFile.from_text(self.declared[name], place.path), place.package)
            module.stub = True
            return module
        shown = self.shown(place.path)
        try:
            source = self._sources[shown] if shown in self._sources else self.read(place.path)
        except (SourceError, OSError):
            return None
        module = Module(self, self.layout.name_of(place.path)[0], source, place.package)
        module.stub = place.stub
        return module


def _read_off(source: SourceFile, read: Callable[[ast.AST], frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*map(read, source.tree.body))


def _is_readable(source: SourceFile) -> bool:
    return not source.errors and not source.notes


def _mentions(text: str, words: Iterable[str | re.Pattern[str]]) -> bool:
    return any(word in text if isinstance(word, str) else word.search(text) is not None for word in words)


def _run_body(interp: Interpreter, module: Module) -> None:
    from nnx_lint.model.frames import Frame

    interp.block(Frame(module, module.env), module.source.tree.body)


def _go_on() -> None:
    """Never give up."""


def _ignore(event: Event) -> None:
    """Listen to nothing."""
