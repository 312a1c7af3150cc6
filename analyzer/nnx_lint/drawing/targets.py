"""What a drawing is of: ``FILE:Class``, and how the words find a class in the source.

``FILE`` is a path, or the dotted name of a module below the current folder or its ``src``. After the colon comes a
class, possibly inside of other classes or functions (``Outer.Inner``), or a name that the module gives to an instance.
A class may be called: ``model.py:Mlp(64, depth=2)`` is the instance that this expression makes in the scope of the
module. Without a call the drawing is of any instance, and what the caller decides stays a name.

Nothing is run: the module is executed abstractly, as for a check.
"""

from __future__ import annotations

import ast
import functools
import os
import re
from typing import TYPE_CHECKING

from nnx_lint.drawing.concrete import Concrete
from nnx_lint.drawing.given import refused
from nnx_lint.drawing.reading import place_of
from nnx_lint.model.classes import ClassBase, UserClass
from nnx_lint.model.events import ClassDefined
from nnx_lint.model.interpreter import Interpreter
from nnx_lint.model.modules import Project
from nnx_lint.model.values import ClassVal, Obj
from nnx_lint.source import SourceError, SourceFile
from nnx_rules.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nnx_lint.drawing.structure import Place
    from nnx_lint.model.events import Event
    from nnx_lint.model.modules import Module

TARGET = re.compile(r"(?P<file>.+?)(?::(?P<name>[^\W\d][\w.]*)(?P<call>\(.*\))?)?", re.DOTALL)


class DrawingError(Exception):
    """What was asked for cannot be drawn; the message says why, and what could be."""


class Target(Record):
    """The parts of ``FILE:Class(...)``; without a class it stands for all of the file."""

    file: str
    name: str = ""
    call: str = ""


class Listed(Record):
    """A class of NNX objects that a file defines."""

    name: str
    bases: tuple[str, ...]
    place: Place


def parse(word: str) -> Target:
    """The target that a word of the command line names."""
    match = TARGET.fullmatch(word)
    if match is None or word.endswith(":") or re.search(r":[^\W\d][\w.]*\(", match["file"]):
        raise DrawingError(f"{word!r} is no FILE:Class")
    return Target(match["file"], match["name"] or "", match["call"] or "")


def find_file(name: str) -> str:
    """The file of a path or of a dotted module name."""
    if os.path.isfile(name):
        return name
    if os.path.isdir(name):
        raise DrawingError(f"{name} is a folder; name a file in it")
    if re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", name):
        for root in ("", "src"):
            base = os.path.join(root, *name.split("."))
            for path in (base + ".py", os.path.join(base, "__init__.py")):
                if os.path.isfile(path):
                    return path
    raise DrawingError(f"{name}: no such file" + _neighbour(name))


def _neighbour(name: str) -> str:
    from nnx_lint.selection import nearest

    folder, wanted = os.path.split(name)
    try:
        names = [item for item in os.listdir(folder or os.curdir) if item.endswith((".py", ".ipynb"))]
    except OSError:
        return ""
    hint = nearest(wanted, names)
    return f"; did you mean {os.path.join(folder, hint)}?" if hint else ""


class Program:
    """A module that was executed abstractly, and the classes that it defines, wherever in it.

    ``sources`` are files whose texts differ from those on disk, ``read`` gives the others; ``pause`` is called between
    functions, and may raise.
    """

    def __init__(
        self,
        path: str,
        sources: Mapping[str, SourceFile] | None = None,
        read: Callable[[str], SourceFile] = SourceFile.read,
        pause: Callable[[], None] | None = None,
    ) -> None:
        known = dict(sources or {})
        try:
            source = known[path] if path in known else read(path)
        except SourceError as error:
            raise DrawingError(str(error)) from None
        self.source = source
        project = Project({**known, path: source})
        project.pause = pause or project.pause
        project.read = read
        module = project.module(path)
        assert module is not None
        self.module: Module = module
        self.project = project
        self._defined: dict[ast.AST, UserClass] = {}
        project.listen = lambda: self._note
        Concrete(project, _ignore, module).load(module)

    def _note(self, event: Event) -> None:
        if isinstance(event, ClassDefined):
            self._defined[event.node] = event.cls

    @property
    def errors(self) -> list[str]:
        """The syntax errors of the file, each with its place."""
        return [f"{self.source.path}:{self.source.shown(error)}: {error.message}" for error in self.source.errors]

    @functools.cached_property
    def classes(self) -> dict[str, UserClass]:
        """All classes of the file by the names that a reader would give them: dotted, through functions too."""
        Interpreter(self.project, _ignore, self.module).check(self.module)
        found: dict[str, UserClass] = {}
        todo: list[tuple[ast.AST, str]] = [(self.source.tree, "")]
        while todo:
            node, prefix = todo.pop()
            for child in ast.iter_child_nodes(node):
                inner = prefix
                if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                    inner = f"{prefix}{child.name}."
                    if child in self._defined:
                        found[inner[:-1]] = self._defined[child]
                todo.append((child, inner))
        return dict(sorted(found.items(), key=lambda item: item[1].node.lineno))

    def listed(self) -> list[Listed]:
        """The classes of NNX objects in the file, in order."""
        return [
            Listed(name, tuple(map(ast.unparse, cls.node.bases)), place_of(cls.module, cls.node))
            for name, cls in self.classes.items()
            if cls.is_pytree
        ]

    def instance(self, target: Target) -> Obj:
        """The instance that a target names."""
        found = self.named(target.name) or self.classes.get(target.name)
        interp = Concrete(self.project, _ignore, self.module)
        interp.builds = True
        if isinstance(found, Obj) and not target.call:
            if found.cls.is_pytree:
                return interp.constructed(found) if isinstance(found.cls, UserClass) else found
            raise DrawingError(f"{target.name} in {target.file} is {found.describe()}, not a Module")
        if not isinstance(found, ClassBase):
            raise DrawingError(self._missing(target))
        if not found.is_pytree:
            bases = "a base class of it is not known" if found.is_open else "it does not derive from nnx.Module"
            raise DrawingError(f"{target.name} in {target.file} is not a Module: {bases}")
        return self._made(interp, found, target)

    def named(self, name: str) -> object:
        """What a dotted name means in the module: an instance, or a class that may be inside of others."""
        first, *rest = name.split(".")
        found = self.module.env.get(first)
        for part in rest:
            outer = found.cls if isinstance(found, ClassVal) else None
            found = outer.env.names.get(part) if isinstance(outer, UserClass) else None
        return found.cls if isinstance(found, ClassVal) else found if isinstance(found, Obj) else None

    def _made(self, interp: Concrete, cls: ClassBase, target: Target) -> Obj:
        from nnx_lint.model.calls import arguments
        from nnx_lint.model.construct import instantiate
        from nnx_lint.model.frames import Frame

        if not target.call and isinstance(cls, UserClass):
            return interp.any_instance(cls)
        try:
            node = ast.parse(f"{cls.name}{target.call or '()'}", mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            node = None
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise DrawingError(f"{target.call} is no list of arguments")
        frame = Frame(self.module, self.module.env)
        args = arguments(interp, frame, node)
        if (problem := refused(cls, args)) is not None:
            raise DrawingError(problem)
        made = instantiate(interp, frame, cls, args, node)
        assert isinstance(made, Obj)
        return made

    def _missing(self, target: Target) -> str:
        from nnx_lint.selection import nearest

        names = [item.name for item in self.listed()]
        hint = nearest(target.name, names)
        text = f"there is no class {target.name} in {target.file}"
        if self.errors:
            return f"{text} as far as it can be read: {self.errors[0]}"
        if hint:
            return f"{text}; did you mean {hint}?"
        return f"{text}; its Modules are {', '.join(names)}" if names else f"{text}, nor any Module"


def _ignore(event: Event) -> None:
    """A drawing reports nothing."""
