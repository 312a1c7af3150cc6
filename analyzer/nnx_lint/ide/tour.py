"""Going once through many files, without holding all of them.

An engine keeps what it has looked at, since the next file may look at it too. On a way through a folder most files
are looked at for the last time long before the end, and the import statements say beforehand when that is. So where
much is held, whatever no file to come imports, directly or not, is forgotten together with its text.

Invariants: what is found in a file does not depend on what has been forgotten, since whatever is asked for after all
(the heirs of a class are found without an import) is made anew; a folder that needs little memory costs nothing more.
"""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from nnx_lint.relevance import imported
from nnx_lint.source import SourceError
from nnx_lint.units import crashed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nnx_lint.engine import Engine
    from nnx_lint.ide.texts import Texts
    from nnx_lint.units import Unit

MUCH = 1_000_000
"""Blocks of memory (about 100 MB) that may be held before something is forgotten."""

MORE = MUCH // 7
"""How many blocks have to come on top of those that could not be forgotten before that is tried again."""


def tour(engine: Engine, texts: Texts, paths: Sequence[str]) -> Iterator[Unit]:
    """Check files one by one, with what each imports; those that cannot be read are left out."""
    done = _done_after(paths, _imports(engine, texts, paths))
    texts.let_go(paths)
    over: list[str] = []
    enough = MUCH
    for number, path in enumerate(paths):
        try:
            yield engine.check(path)
        except (SourceError, KeyError):  # it is no text, or gone
            continue
        except Exception as error:
            yield crashed(path, error)
        if engine.project.loaded(path) is None:  # neither does it concern NNX, nor is it imported
            texts.let_go([path])
        over += done[number]
        if over and sys.getallocatedblocks() > enough:
            engine.project.forget(over)
            texts.let_go(over)
            over = []
            gc.collect()
            enough = max(MUCH, sys.getallocatedblocks() + MORE)


def _imports(engine: Engine, texts: Texts, paths: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """The files that each of some files imports."""
    project = engine.project
    imports: dict[str, list[str]] = {}
    for path in paths:
        with suppress(SourceError, KeyError):
            imports[path] = [project.shown(each) for each in imported(texts[path].text, path, project.layout)]
    return imports


def _done_after(paths: Sequence[str], imports: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """For each of the files the ones that none after it imports, directly or not."""
    done: list[list[str]] = [[] for _ in paths]
    seen: set[str] = set()
    for number in reversed(range(len(paths))):
        todo = [paths[number]]
        while todo:
            path = todo.pop()
            if path not in seen:
                seen.add(path)
                done[number].append(path)
                todo += imports.get(path, ())
    return done
