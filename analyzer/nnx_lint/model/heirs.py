"""Who has classes below a class: the heirs among the files to check, found by their text.

Which modules have been executed by now must not matter, so what counts is how a base is called in the text of a class.
That is asked for large trees, and mostly the answer is that no heir is of the kind in question: so the headers of the
classes are read off the text first, which may take too many for heirs, and only files that could change the answer are
parsed.

Invariants: every answer is that of the syntax trees; whoever asks depends on the names that were gone through.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.relevance import headers, last_names
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import remembered, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nnx_lint.model.interpreter import Interpreter
    from nnx_lint.source import SourceFile

Header = tuple[str, frozenset[str], bool]
"""The name of a class, the names that its bases may have, and whether they may be several."""


class Heirs:
    """The heirs of all classes, by the last names of their bases.

    ``bases`` are the files to check by the last names of the bases of their classes, ``read`` gives such a file, and
    ``running`` are the evaluations that go on, innermost last.
    """

    def __init__(self, read: Callable[[str], SourceFile | None], running: Sequence[Interpreter]) -> None:
        self.bases: Mapping[str, Sequence[str]] = {}
        self._read = read
        self._running = running
        self._below: dict[str, tuple[frozenset[str], list[ast.ClassDef]]] = {}
        self._possible: dict[str, tuple[frozenset[str], dict[str, bool]]] = {}
        self._mentioned: dict[tuple[str, str], bool] = {}
        self._headers: dict[str, tuple[str, list[Header]]] = {}

    def forget(self) -> None:
        """Texts have changed, or others are to be checked."""
        self._below.clear()
        self._possible.clear()
        self._mentioned.clear()

    def of(self, name: str) -> list[ast.ClassDef]:
        """The classes that have a base of this name, or one below such a class."""
        if name not in self._below:
            names, found = [name], dict[ast.ClassDef, None]()
            for each in names:
                for path in self.bases.get(each, ()):
                    for node in self._direct(path, each):
                        if node not in found:
                            found[node] = None
                            names += [node.name] if node.name not in names else []
            self._below[name] = frozenset(names), list(found)
        names_asked, heirs = self._below[name]
        self._note(names_asked)
        return heirs

    def exist(self, name: str) -> bool:
        """Whether there are any."""
        self._note(frozenset({name}))
        return any(True for path in self.bases.get(name, ()) for _ in self._direct(path, name))

    def possible(self, name: str) -> bool:
        """Whether a file may have any, by its text."""
        self._note(frozenset({name}))
        return name in self.bases

    def mix(self, name: str) -> bool:
        """Whether one of them has several bases."""
        names, files = self._possibly(name)
        if any(files.values()):
            return any(len(node.bases) > 1 for node in self.of(name))
        self._note(names)
        return False

    def mentioning(self, name: str, word: str) -> list[ast.ClassDef]:
        """All of them, if one of their files has a word; none otherwise."""
        names, files = self._possibly(name)
        asked = name, word
        if asked not in self._mentioned:
            texts = (source.text for source in map(self._read, files) if source is not None)
            self._mentioned[asked] = any(word in text for text in texts)
        if self._mentioned[asked]:
            return self.of(name)
        self._note(names)
        return []

    def _note(self, names: frozenset[str]) -> None:
        if self._running:
            self._running[-1].heirs |= names

    def _direct(self, path: str, base: str) -> Iterator[ast.ClassDef]:
        """The classes of a file that have a base of this name."""
        source = self._read(path)
        if source is not None:
            yield from (
                node for node in classes_in(source.tree) if any(_last_name(each) == base for each in node.bases)
            )

    def _possibly(self, name: str) -> tuple[frozenset[str], dict[str, bool]]:
        """The names of a class and of those that are below it by their headers, and the files of these: for each,
        whether one of them may have several bases.
        """
        if name not in self._possible:
            names, files = [name], dict[str, bool]()
            for each in names:
                for path in self.bases.get(each, ()):
                    for below, bases, several in self._headers_in(path):
                        if each in bases:
                            files[path] = files.get(path, False) or several
                            names += [below] if below not in names else []
            self._possible[name] = frozenset(names), files
        return self._possible[name]

    def _headers_in(self, path: str) -> list[Header]:
        source = self._read(path)
        text = source.text if source is not None else ""
        if path not in self._headers or self._headers[path][0] is not text:
            found = [(name, frozenset(last_names(bases)), _are_several(bases)) for name, bases in headers(text)]
            self._headers[path] = text, found
        return self._headers[path][1]


@remembered
def classes_in(tree: ast.AST) -> list[ast.ClassDef]:
    """The classes that a text defines, inner ones too."""
    return [node for node in walk(tree) if isinstance(node, ast.ClassDef)]


def _are_several(bases: str) -> bool:
    """Whether the text of a list of bases has a comma that is in no brackets."""
    depth = 0
    for character in bases.rstrip().rstrip(","):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            return True
    return False


def _last_name(base: ast.expr) -> str | None:
    while isinstance(base, (ast.Subscript, ast.Call)):
        base = base.value if isinstance(base, ast.Subscript) else base.func
    return last_name(base) or None
