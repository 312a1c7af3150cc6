"""The structure of Modules, as ``nnx-lint graph`` draws it, from texts that are being edited.

Drawing executes constructors with what they are given, so it has a project of its own besides that of the check. One
is kept for each file until its text, or that of another file that is being edited, changes.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.diagnostics import Span
from nnx_lint.drawing import structure_of
from nnx_lint.drawing.targets import DrawingError, Program, Target
from nnx_lint.ide import trees
from nnx_lint.model.classes import UserClass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nnx_lint.drawing.structure import Node
    from nnx_lint.ide.texts import Texts
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
        self._texts: dict[str, SourceFile] = {}
        self._programs: dict[str, Program] = {}
        self._lenses: dict[str, list[Lens]] = {}

    def program(self, path: str) -> Program:
        """A file, ready to be drawn.

        Raises:
            DrawingError: there is no such file.
        """
        if self._texts != self._sources.edited:
            self._texts = dict(self._sources.edited)
            self._programs.clear()
            self._lenses.clear()
        if path not in self._programs:
            self._programs[path] = Program(path, self._texts, self._sources.read, self._pause)
        return self._programs[path]

    def draw(self, path: str, name: str) -> Node | None:
        """The structure of a class of a file; ``None`` if it has none."""
        try:
            program = self.program(path)
            return structure_of(program, Target(path, name), None)
        except DrawingError:
            return None

    def class_at(self, path: str, offset: int) -> str | None:
        """The innermost NNX class around an offset, by its dotted name."""
        program = self.program(path)
        around = trees.path_to(program.source, offset)
        names: dict[ast.AST, str] = {cls.node: name for name, cls in program.classes.items() if cls.is_pytree}
        return next((names[node] for node in reversed(around) if node in names), None)

    def lenses(self, path: str) -> list[Lens]:
        """The numbers of parameters of the classes of a file that no function makes, where they are known."""
        try:
            program = self.program(path)
        except DrawingError:
            return []
        if path not in self._lenses:
            self._lenses[path] = list(self._counted(path, program))
        return self._lenses[path]

    def _counted(self, path: str, program: Program) -> Iterator[Lens]:
        for name, syntax in trees.classes(program.source.tree):
            cls = program.named(name)
            if not isinstance(cls, UserClass) or cls.node is not syntax or not cls.is_pytree:
                continue
            node = self.draw(path, name)
            if node is not None and node.total is not None and node.total.parameters:
                start = program.source.text.index(cls.name, program.source.span(cls.node).start)
                yield Lens(Span(start, start + len(cls.name)), name, node.total.parameters)
