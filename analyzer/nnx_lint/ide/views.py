"""What is known of the objects in a program, for hover, symbols, tokens and definitions.

Classes are read off their models, which the check has made. What some other expression stands for is found by running
the function around it on its own, once more, with an eye on that expression.

Invariants: nothing is remembered that a later edit could make wrong: a view belongs to one :class:`Checked`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from nnx_lint.ide import trees
from nnx_lint.model.callables import FuncVal, Transformed
from nnx_lint.model.expressions import evaluate
from nnx_lint.model.frames import Frame
from nnx_lint.model.interpreter import Interpreter
from nnx_lint.model.unions import join, present
from nnx_lint.model.values import UNKNOWN, Obj, Value
from nnx_lint.model.views import AttributeView, ClassView, view_class, view_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nnx_lint.ide.notes import Notes
    from nnx_lint.model.events import Event
    from nnx_lint.model.modules import Module, Project
    from nnx_lint.source import SourceFile


class Views:
    """Views of the classes and values of one file, made when they are first asked for."""

    def __init__(self, project: Project, module: Module, notes: Notes) -> None:
        self._project = project
        self._module = module
        self._notes = notes
        self._classes: dict[ast.AST, ClassView | None] = {}

    def of_class(self, node: ast.AST) -> ClassView | None:
        """What is known of an NNX class of the file."""
        if node not in self._classes:
            cls = self._notes.classes.get(node)
            known = cls is not None and cls.is_pytree
            self._classes[node] = view_class(self._interpreter(), cls) if cls is not None and known else None
        return self._classes[node]

    def all(self) -> Iterator[tuple[trees.Named, ClassView]]:
        """All NNX classes of the file, outer ones first."""
        for named in trees.classes(self._module.source.tree):
            view = self.of_class(named.node)
            if view is not None:
                yield named, view

    def attribute(self, path: Sequence[ast.AST]) -> tuple[str, AttributeView] | None:
        """The attribute of an NNX object that a path through the tree ends in, and the name of its class."""
        node = path[-1]
        if not isinstance(node, ast.Attribute):
            return None
        cls = trees.instance_at(path, node.value.id) if isinstance(node.value, ast.Name) else None
        if cls is not None:
            view = self.of_class(cls)
            found = view.attribute(node.attr) if view is not None else None
            return (cls.name, found) if found is not None else None
        owner = present(self.value(path[:-1], node.value))
        if not isinstance(owner, Obj) or not owner.cls.is_pytree:
            return None
        named = next((each for each in view_object(owner) if each.name == node.attr), None)
        return (owner.cls.name, named) if named is not None else None

    def source(self, path: str) -> SourceFile | None:
        """Another file of the program."""
        module = self._project.module(path)
        return module.source if module is not None else None

    def value(self, path: Sequence[ast.AST], node: ast.expr) -> Value:
        """What an expression stands for, as far as the function around it tells when it runs on its own."""
        function = next((each for each in path if isinstance(each, trees.FUNCTIONS)), None)
        if function is None:
            return self._global(node)
        func = self._function(path, function)
        if func is None:
            return UNKNOWN
        probe = _Probe(self._project, _ignore, self._module, node)
        with probe.evaluating():
            probe.enter(func, Frame(self._module, self._module.env))
            probe.run_pending()
        return join(*probe.values) if probe.values else UNKNOWN

    def _interpreter(self) -> Interpreter:
        return Interpreter(self._project, _ignore, self._module)

    def _global(self, node: ast.expr) -> Value:
        """What a dotted name means once the module has been executed."""
        if not all(isinstance(each, (ast.Name, ast.Attribute, ast.Load)) for each in ast.walk(node)):
            return UNKNOWN
        interp = self._interpreter()
        with interp.evaluating():
            return evaluate(interp, Frame(self._module, self._module.env), node)
        return UNKNOWN

    def _function(self, path: Sequence[ast.AST], node: ast.AST) -> FuncVal | None:
        """The function of a ``def`` that is not inside of another one."""
        outer = path[: path.index(node)]
        cls = self._notes.classes.get(trees.innermost(outer, ast.ClassDef) or node)
        named: dict[str, Any] = self._module.env.names if cls is None else cls.methods
        value = named.get(getattr(node, "name", ""))
        while isinstance(value, Transformed):
            value = value.func
        return value if isinstance(value, FuncVal) and value.node is node else None


class _Probe(Interpreter):
    """Keeps what one expression stands for, each time that it is evaluated."""

    def __init__(self, project: Project, listener: Any, module: Module, node: ast.expr) -> None:
        super().__init__(project, listener, module)
        self.values: list[Value] = []
        ordinary = self.evaluators[type(node)]

        def watched(interp: Interpreter, frame: Frame, each: Any) -> Value:
            value = ordinary(interp, frame, each)
            if each is node:
                self.values.append(value)
            return value

        self.evaluators = {**self.evaluators, type(node): watched}  # type: ignore[misc]


def _ignore(event: Event) -> None:
    """Nothing is reported."""
