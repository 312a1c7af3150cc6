"""Which files can concern NNX at all: those that name it, those that import a file of the project that does, and those
that compute with JAX for one of these: a loss or a schedule for a model is as wrong in a file of its own.

Invariants: no file is parsed to find out; import statements are read off the text, and one too many only costs time.
What is looked at are the :class:`Facts` of a file, which follow from its text alone, so that they can be kept; those of
files that are imported but not checked are read when they are needed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from nnx_lint.model.layout import Layout, Place

_MARK = re.compile(r"flax|(?<![a-z])nnx")  # "onnx" and "ndonnx" name other libraries

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<dots>\.*)(?P<base>[\w.]*)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n;#]+)"
    r"|import[ \t]+(?P<modules>[^\n;#]+))",
    re.MULTILINE,
)
_NAME = re.compile(r"([\w.]+)(?:\s+as\s+\w+)?")
_CLASS = re.compile(r"class[ \t]+(\w+)\s*(?:\[[^\n]*?\]\s*)?\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*:")
_COMMENT = re.compile(r"#[^\n]*")
_LAST_NAME = re.compile(r"(\w+)\s*(?=[\[,(=]|$)")

Import = tuple[int, str, "Sequence[str]"]
"""The number of dots, the dotted name, and for ``from`` statements the names that are imported."""


class Facts(NamedTuple):
    """What the text of a file says, as far as other files are concerned.

    ``marked`` says that it names NNX, ``computes`` that it names JAX. ``imports`` are what it imports, ``bases`` the
    last names of the bases of its classes, with :data:`KEEPER`, :data:`MAKING` and :data:`UPDATING` where they stand.
    """

    marked: bool
    imports: Sequence[Import]
    bases: Sequence[str]
    computes: bool


def facts_of(text: str) -> Facts:
    """Read the facts off the text of a file."""
    # A search for a word is much faster than one for a pattern, and most texts have neither.
    marked = "flax" in text or ("nnx" in text and _MARK.search(text) is not None)
    bases = {name for _, given in headers(text) for name in last_names(given)}
    if marked and "Optimizer" in text:
        bases.update(name for name in (KEEPER, MAKING) if name in text)
    if UPDATING in text and "grad" in text:
        bases.add(UPDATING)
    return Facts(marked, tuple(_imports(text)), sorted(bases), "jax" in text)


KEEPER = "ModelAndOptimizer"
"""The optimizer that keeps its model: what is annotated as an optimizer may be one, where a file of these makes it."""

MAKING = "Optimizer("
"""What stands where an optimizer is made, of either kind."""

UPDATING = "def update("
"""What stands where a project has a kind of optimizer of its own, beside a word for gradients."""


def headers(text: str) -> Iterator[tuple[str, str]]:
    """The classes of a text that have bases, each with the text of these; in comments and strings, too."""
    for match in _CLASS.finditer(text):
        # A pattern for the beginning of the line would try each line; a search for a word is six times as fast.
        if not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip(" \t"):
            yield match[1], _COMMENT.sub("", match[2]) if "#" in match[2] else match[2]


def last_names(bases: str) -> list[str]:
    """The last names of some bases, with those of what stands in their brackets."""
    return _LAST_NAME.findall(bases)


def _imports(text: str) -> Iterator[Import]:
    for statement in _statements(text):
        if statement["modules"] is not None:
            yield from ((0, name, ()) for name in _NAME.findall(statement["modules"]))
        else:
            yield len(statement["dots"]), statement["base"], tuple(_NAME.findall(statement["names"]))


def concerned(
    paths: Iterable[str], facts: Callable[[str], Facts | None], layout: Layout, shown: Callable[[str], str]
) -> set[str]:
    """The files of these that name NNX, or import one that does, or compute with JAX for these, directly or not.

    ``facts`` gives the facts of any file, or ``None`` if it cannot be read; ``shown`` the path by which it is known.
    """
    importers: dict[str, list[str]] = {}
    marked: list[str] = []
    todo = list(paths)
    seen, checked = set(todo), frozenset(todo)
    while todo:
        path = todo.pop()
        known = facts(path)
        if known is None:
            continue
        if known.marked:
            marked.append(path)
            continue
        for target in map(shown, _files_of(known.imports, path, layout)):
            importers.setdefault(target, []).append(path)
            if target not in seen:
                seen.add(target)
                todo.append(target)
    relevant = set(marked)
    while marked:
        for importer in importers.get(marked.pop(), ()):
            if importer not in relevant:
                relevant.add(importer)
                marked.append(importer)
    todo = [path for path in relevant if path in checked]
    while todo:
        path = todo.pop()
        known = facts(path)
        for target in map(shown, _files_of(known.imports, path, layout)) if known is not None else ():
            helper = facts(target) if target in checked and target not in relevant else None
            if helper is not None and helper.computes:
                relevant.add(target)
                todo.append(target)
    return relevant


def _statements(text: str) -> Iterator[re.Match[str]]:
    """The import statements of a text; looked for by the word, since a pattern for the line would try each line."""
    place = end = 0
    while (place := text.find("import", place)) >= 0:
        begin = text.rfind("\n", 0, place) + 1
        statement = _IMPORT.match(text, begin) if begin >= end else None
        place += len("import")
        if statement is not None:
            yield statement
            end = place = max(place, statement.end())


def imported(text: str, path: str, layout: Layout) -> Iterator[str]:
    """The files that the import statements of a text may mean."""
    return _files_of(_imports(text), path, layout)


def _files_of(imports: Iterable[Import], path: str, layout: Layout) -> Iterator[str]:
    for level, base, names in imports:
        origin = layout.relative(level, base or None, path) if level else layout.absolute(base, path)
        for place in (origin, *(_below(origin, name, layout) for name in names)):
            if place is not None and not place.namespace:
                yield place.path


def _below(origin: Place | None, name: str, layout: Layout) -> Place | None:
    folder = origin.folder if origin is not None else None
    return layout.below(folder, name) if folder is not None else None
