"""Source trees: which file a dotted name means, seen from the file that imports it.

Python finds a module along ``sys.path``, which nobody wrote down. The tree tells most of it: the folder above the
outermost package that a file lies in is a *root*; so are the folders above that, up to the top of the repository, and
the ``src`` folder of each, because namespace packages have no mark and tests import what lies under ``src``.

Invariants: a name means at most one file for one importer; its own roots come first, and a root of other files (a
repository can have several) counts only where it is the only one that has the name; a folder without ``__init__`` is a
package only where nothing else bears its name; relative imports go by folders, whatever the names are; the given files
are where their paths say, on disk or not. Folders are listed once, a question is answered once, and nothing here reads
a file.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Concatenate, NamedTuple, ParamSpec, TypeVar, cast

from nnx_lint.files import TOPS

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    P = ParamSpec("P")
    R = TypeVar("R")

INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders in which other distributions lie beside the checked one; those are libraries."""

FORMS = (("__init__.py", True, False), (".py", False, False), ("__init__.pyi", True, True), (".pyi", False, True))
"""How a module may lie on disk, the first that exists counts: ending, whether it is a package, whether it is a stub."""


class Place(NamedTuple):
    """Where a module lies: its file, or its folder for a namespace package (``package`` without an ``__init__``)."""

    path: str
    package: bool
    stub: bool = False
    namespace: bool = False

    @property
    def folder(self) -> str | None:
        """The folder of the modules of a package."""
        if not self.package:
            return None
        return self.path if self.namespace else os.path.dirname(self.path)


def _once(question: Callable[Concatenate[Layout, P], R]) -> Callable[Concatenate[Layout, P], R]:
    """A method that answers a question once, and remembers what it said."""

    @functools.wraps(question)
    def asked(layout: Layout, /, *args: P.args, **kwargs: P.kwargs) -> R:
        key = asked, *args
        try:
            return cast("R", layout.answers[key])
        except KeyError:
            answer = layout.answers[key] = question(layout, *args, **kwargs)
            return answer

    return asked


class Layout:
    """The source trees of some files, and of the folders that the user named.

    ``answers`` are those given so far, by the question and what it is about.
    """

    def __init__(self, files: Iterable[str], named: Iterable[str] = ()) -> None:
        files = list(map(os.path.abspath, files))
        self.answers: dict[tuple[object, ...], object] = {}
        self._given = _names_by_folder(files)
        self._entries: dict[str, frozenset[str]] = {}
        self._chains: dict[str, tuple[str, ...]] = {}
        self._elsewhere: dict[str, Place | None] = {}
        named = set(map(os.path.abspath, named))
        self._tops = {folder for folder in named if not self._is_part(folder, named)}
        self._roots: dict[str, set[str]] = {}
        for file in files:
            name, root = self.name_of(file)
            self._roots.setdefault(root, set()).add(name.partition(".")[0])

    def agrees(self, other: Layout) -> bool:
        """Whether another layout gives all the answers that this one has given; then it has given them."""
        return all(
            cast("Callable[..., object]", question)(other, *args) == answer
            for (question, *args), answer in self.answers.items()
        )

    # -- names of files ------------------------------------------------------------------------------------------------

    @_once
    def name_of(self, path: str) -> tuple[str, str]:
        """The dotted name of a file, and the root that it is relative to."""
        folder, filename = os.path.split(os.path.abspath(path))
        stem = filename.removesuffix(".py").removesuffix(".pyi")
        parts = [] if stem == "__init__" else [stem]
        while self._is_package(folder):
            folder, name = os.path.split(folder)
            parts.insert(0, name)
            if not name:
                break
        return ".".join(parts) or stem, folder

    def _is_package(self, folder: str) -> bool:
        entries = self._listing(folder)
        return "__init__.py" in entries or "__init__.pyi" in entries

    def _listing(self, folder: str) -> frozenset[str]:
        known = self._entries.get(folder)
        if known is None:
            try:
                known = frozenset(os.listdir(folder))
            except OSError:
                known = frozenset[str]()
            known |= self._given.get(folder, frozenset[str]())
            self._entries[folder] = known
        return known

    @property
    def listed(self) -> Mapping[str, frozenset[str]]:
        """The folders that were asked for so far, and what is in them."""
        return self._entries

    # -- files of names ------------------------------------------------------------------------------------------------

    @_once
    def absolute(self, name: str, importer: str) -> Place | None:
        """The module of a dotted name; ``None`` for libraries."""
        namespace: Place | None = None
        for root in self._chain(importer):
            found = self._visible(root, name)
            if found is not None and not found.namespace:
                return found
            namespace = namespace or found
        if name not in self._elsewhere:
            self._elsewhere[name] = self._only(name)
        return self._elsewhere[name] or namespace

    @_once
    def relative(self, level: int, name: str | None, importer: str) -> Place | None:
        """The module that ``from ..name import`` names, ``level`` being the number of dots."""
        folder = os.path.dirname(os.path.abspath(importer))
        for _ in range(level - 1):
            folder = os.path.dirname(folder)
        return self.below(folder, name) if name else self.package(folder)

    @_once
    def package(self, folder: str) -> Place:
        """The package that a folder is."""
        for ending, package, stub in FORMS:
            if package and ending in self._listing(folder):
                return Place(os.path.join(folder, ending), True, stub)
        return Place(folder, True, namespace=True)

    @_once
    def below(self, folder: str, name: str) -> Place | None:
        """The module of a dotted name that starts in a folder."""
        *parents, last = name.split(".")
        for parent in parents:
            if parent not in self._listing(folder):
                return None
            folder = os.path.join(folder, parent)
        entries = self._listing(folder)
        inner = os.path.join(folder, last)
        content = self._listing(inner) if last in entries else frozenset[str]()
        for ending, package, stub in FORMS:
            if package and ending in content:
                return Place(os.path.join(inner, ending), True, stub)
            if not package and last + ending in entries:
                return Place(inner + ending, False, stub)
        return Place(inner, True, namespace=True) if content else None

    def _chain(self, importer: str) -> tuple[str, ...]:
        """The roots of a file: the folder above its outermost package, and those above up to the top."""
        start = os.path.dirname(os.path.abspath(importer))
        known = self._chains.get(start)
        if known is None:
            own = folder = self.name_of(importer)[1]
            above: list[str] = []
            while not self._is_top(folder) and os.path.dirname(folder) != folder:
                folder = os.path.dirname(folder)
                above.append(folder)
            if not self._is_top(folder):
                # Only a package above shows that a folder without a mark belongs to the same tree.
                packages = [depth for depth, each in enumerate((own, *above), 1) if self._is_package(each)]
                del above[packages[-1] if packages else 0 :]
            # The modules of a package have longer names, unless it is the whole repository.
            above = [folder for folder in above if not self._is_package(folder) or self._is_top(folder)]
            sources = [os.path.join(root, "src") for root in (own, *above) if "src" in self._listing(root)]
            known = self._chains[start] = tuple(dict.fromkeys([own, *above, *sources]))
        return known

    def _is_top(self, folder: str) -> bool:
        named = folder in self._tops and not self._in_package(folder)
        return named or self._has_mark(folder)

    def _is_part(self, folder: str, named: Container[str]) -> bool:
        """Whether a folder, by the names on the way, can be a package of a repository whose top was named, too."""
        way: list[str] = []
        while os.path.basename(folder).isidentifier():
            way.append(folder)
            folder = os.path.dirname(folder)
            if folder in named and self._has_mark(folder):
                return not any(map(self._has_mark, way))
        return False

    def _has_mark(self, folder: str) -> bool:
        return not TOPS.isdisjoint(self._listing(folder))

    def _in_package(self, folder: str) -> bool:
        """Whether a package lies above, so that a folder without ``__init__`` is one of its packages.

        What else lies in the folders above a project, such as that of temporary files, says nothing: none is listed.
        """
        above = os.path.dirname(folder)
        marks = (os.path.join(above, ending) for ending, package, _ in FORMS if package)
        return above != folder and (any(map(os.path.isfile, marks)) or self._in_package(above))

    def _visible(self, root: str, name: str) -> Place | None:
        if os.path.basename(root) in INSTALLED and name.partition(".")[0] not in self._roots.get(root, ()):
            return None
        return self.below(root, name)

    def _only(self, name: str) -> Place | None:
        """The module of this name in the roots of the other files, if just one of them has it."""
        found = {place for root in self._roots if (place := self._visible(root, name)) and not place.namespace}
        return found.pop() if len(found) == 1 else None


def _names_by_folder(files: Iterable[str]) -> dict[str, set[str]]:
    """What lies in folders if some (absolute) files exist."""
    found: dict[str, set[str]] = {}
    for path in files:
        folder, name = os.path.split(path)
        while name and name not in found.setdefault(folder, set()):
            found[folder].add(name)
            folder, name = os.path.split(folder)
    return found
