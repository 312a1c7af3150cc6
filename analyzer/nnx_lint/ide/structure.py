"""The structure of Modules, as ``nnx-lint graph`` draws it, from texts that are being edited.

Drawing executes constructors with what they are given, so it has a project of its own besides that of the check. One
is kept for each file until some text changes, which costs little; what costs is to draw, and numbers of parameters are
asked for after each edit. So these are remembered with the model that the check made of the class: it is made anew when
anything changes that its constructor looks at, and a drawing looks at nothing else.

Invariants: a drawing that was given up leaves no project behind, since that may hold half of a model.
"""

from __future__ import annotations

import ast
import contextlib
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.diagnostics import Span
from nnx_lint.drawing import structure_of
from nnx_lint.drawing.targets import DrawingError, Program, Target
from nnx_lint.ide import trees
from nnx_lint.model.classes import UserClass

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from nnx_lint.drawing.structure import Node
    from nnx_lint.drawing.targets import Listed
    from nnx_lint.ide.texts import Texts
    from nnx_lint.model.values import Obj
    from nnx_lint.source import SourceFile


class Lens(NamedTuple):
    """How many parameters a class has: the span of its name, its dotted name, and the number."""

    span: Span
    name: str
    parameters: int


class Structures:
    """Drawings of the files that are being edited; ``pause`` may raise to end one."""

    def __init__(self, sources: Texts, pause: Callable[[], None]) -> None:
        self._sources = sources
        self._pause = pause
        self._programs: dict[str, Program] = {}
        self._counts: dict[str, dict[Obj, int]] = {}

    def forget(self) -> None:
        """Some text is another one than before."""
        self._programs.clear()

    def close(self, path: str) -> None:
        """Nobody will ask for the numbers of a file for a while."""
        self._counts.pop(path, None)

    @contextlib.contextmanager
    def _program(self, path: str) -> Generator[Program]:
        """A file, ready to be drawn.

        Raises:
            DrawingError: there is no such file.
        """
        program = self._programs.pop(path, None)
        if program is None:
            program = Program(path, self._sources.edited, self._sources.read, self._pause)
        try:
            yield program
        except DrawingError:
            self._programs[path] = program
            raise
        self._programs[path] = program

    def listed(self, path: str) -> list[Listed]:
        """The classes of a file that can be drawn.

        Raises:
            DrawingError: there is no such file.
        """
        with self._program(path) as program:
            return program.listed()

    def draw(self, path: str, name: str) -> Node | None:
        """The structure of a class of a file; ``None`` if it has none."""
        with contextlib.suppress(DrawingError), self._program(path) as program:
            return structure_of(program, Target(path, name), None)
        return None

    def class_at(self, path: str, offset: int) -> str | None:
        """The innermost NNX class around an offset, by its dotted name.

        Raises:
            DrawingError: there is no such file.
        """
        with self._program(path) as program:
            around = trees.path_to(program.source, offset)
            names: dict[ast.AST, str] = {cls.node: name for name, cls in program.classes.items() if cls.is_pytree}
        return next((names[node] for node in reversed(around) if node in names), None)

    def lenses(self, source: SourceFile, classes: Mapping[ast.AST, UserClass]) -> list[Lens]:
        """The numbers of parameters of the classes of a file that no function makes, where they are known.

        ``classes`` are those that a check of the file has met, by their syntax.
        """
        before = self._counts.get(source.path, {})
        counts: dict[Obj, int] = {}
        found: list[Lens] = []
        for name, node in trees.classes(source.tree, in_functions=False):
            cls = classes.get(node)
            if cls is None or not cls.is_pytree:
                continue
            count = before.get(cls.model) if cls.model is not None else None
            if count is None:
                count = self._count(source.path, name, node)
            if cls.model is not None:
                counts[cls.model] = count
            if count:
                start = source.text.index(cls.name, source.span(node).start)
                found.append(Lens(Span(start, start + len(cls.name)), name, count))
        self._counts[source.path] = counts
        return found

    def _count(self, path: str, name: str, node: ast.ClassDef) -> int:
        """How many parameters a class has; 0 if that is not known, or if its name means something else."""
        with contextlib.suppress(DrawingError), self._program(path) as program:
            cls = program.named(name)
            if isinstance(cls, UserClass) and cls.node is node:
                total = structure_of(program, Target(path, name), None).total
                return total.parameters or 0 if total is not None else 0
        return 0
