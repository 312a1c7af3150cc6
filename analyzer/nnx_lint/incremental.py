"""What has to be checked again after some files have changed, and what to remember of a run.

A unit follows from its file and the files that it used (:mod:`~nnx_lint.engine`), and from who has heirs of the classes
that it asked for. So it stands while none of these changed and it concerns NNX as much as before.

Invariants: what is remembered is what was read. A file that may have changed while the run was going on is remembered
without a digest, so that the next run looks at it again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from nnx_lint.cache import FileRecord, Memory, digest_of, folder_digest, stat_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.engine import Engine
    from nnx_lint.relevance import Facts
    from nnx_lint.units import Unit


class Watch:
    """Tells in the end of a run what the files held when they were read; made before the first of them is."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._began = time.time_ns()
        self._young = {path: digest_of(path) for path in paths if stat_of(path, self._began) is None}

    def seen(self, path: str) -> tuple[tuple[int, int, int, int] | None, str]:
        """The times of a file, if they can be relied on, and its digest, which is empty if it may have changed."""
        stat = stat_of(path, self._began)
        digest = digest_of(path)
        if stat is None and (digest is None or digest != self._young.get(path)):
            return None, ""
        return stat, digest or ""


def still_known(memory: Memory, changed: set[str]) -> dict[str, Facts]:
    """The facts of the files that have not changed."""
    return {path: each.facts for path, each in memory.files.items() if each.facts is not None and path not in changed}


def outdated(memory: Memory, changed: set[str], engine: Engine, paths: Iterable[str]) -> set[str]:
    """The files, of those to check, whose units do not stand any more."""
    bits = memory.bits(changed)
    bases: set[str] = set()
    for path in changed:
        for facts in (memory.files[path].facts, engine.facts.get(path)):
            bases.update(facts.bases if facts is not None else ())
    stale: set[str] = set()
    for path in paths:
        unit = memory.units.get(path)
        if (
            unit is None
            or path in changed
            or memory.used[path] & bits
            or not bases.isdisjoint(unit.heirs)
            or memory.files[path].concerned != (path in engine.concerned)
        ):
            stale.add(path)
    return stale


def remember(
    engine: Engine,
    watch: Watch,
    units: Iterable[Unit],
    before: Memory | None,
    changed: set[str],
    kept: dict[str, list[Diagnostic]],
) -> Memory:
    """What to keep of a run; ``before`` is what was known, ``changed`` the files of which that is not true any more."""
    sound = {unit.path: unit for unit in units if not unit.crashed}
    old = before.files if before is not None else {}
    was_used = before.used if before is not None else {}
    paths = dict.fromkeys([*old, *sound, *(path for unit in sound.values() for path in unit.used)])
    files: dict[str, FileRecord] = {}
    for path in paths:
        if path in old and path not in changed:
            files[path] = old[path]._replace(concerned=path in engine.concerned)
        else:
            files[path] = FileRecord(*watch.seen(path), engine.facts.get(path), path in engine.concerned)
    folders = dict(before.folders) if before is not None else {}
    listed = [*engine.project.layout.listed.items(), *(folder for unit in sound.values() for folder in unit.folders)]
    folders.update((folder, folder_digest(entries)) for folder, entries in listed)
    numbers = {path: number for number, path in enumerate(files)}
    used = {
        path: sum(1 << numbers[each] for each in unit.used) if unit.used or path not in was_used else was_used[path]
        for path, unit in sound.items()
    }
    knotted = any(unit.knotted for unit in sound.values()) or (before is not None and before.knotted)
    return Memory(files, folders, sound, used, kept, knotted)
