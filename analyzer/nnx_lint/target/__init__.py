"""What the checked code runs on: a library, and the version of it that decides which rules hold.

A target is *one* version, since a finding says that the code does not work. Which one, where a project allows many? The
one that it is run with: what a lock names, or a list of requirements that holds one release; else what is installed, if
the project allows it; else the newest release that the requirement allows, because that is what an installation gets.
So a rule about old versions speaks only where all newer ones are excluded, and a rule about new versions unless the
project keeps away from them. The lower end of a requirement decides nothing: it is seldom tried, and a finding about it
would say "may fail for somebody".

The nearest folder above a file that says something of flax is the one that counts, up to the root of the repository; a
lock further up (a workspace has one for all its members) refines a range. A package from an unpacked wheel is held
against what the metadata of the wheel require, whatever else is unpacked beside it. Code that imports nnxkit is checked
as such whatever the version of flax: that is the engine's doing, from the imports.

The version of jax is found in the same way. Where nothing speaks of it, it is the oldest one that the target's flax
takes: code that fails there fails with all newer ones, too.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.target.versions import ANY, LAST, Range, allowed, release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nnx_rules.registry import Version

ENVIRONMENTS = (".venv", "venv", os.path.join(".pixi", "envs", "default"))
"""Folders of a project in which its virtual environment is looked for."""


OLDEST_JAX: tuple[tuple[Version, Version], ...] = (
    ((0, 12, 8), (0, 10)),
    ((0, 12, 2), (0, 8, 1)),
    ((0, 12), (0, 7, 1)),
    ((0, 10, 7), (0, 6)),
    ((0, 10, 5), (0, 5, 1)),
    ((0,), (0, 4, 27)),
)
"""The oldest jax that releases of flax take, from a release on; nnxkit takes what the newest flax does."""


class Target(NamedTuple):
    """A library (``None``: whichever a file imports) and a version (``None``: the newest), and where that is from; the
    version of jax beside it (``None``: the newest).
    """

    library: str | None
    version: Version | None
    source: str
    jax: Version | None = OLDEST_JAX[0][1]

    def __str__(self) -> str:
        if self.version is None:
            return self.library or "the newest flax"
        *numbers, last = self.version
        text = ".".join(map(str, numbers if last == LAST else self.version))
        return f"flax-{text}"


def parse(text: str) -> Target:
    """The target that somebody names: ``flax-0.12`` (the newest 0.12), ``flax-0.12.3``, ``flax``, ``nnxkit``.

    Raises:
        ValueError: it is none of these.
    """
    library, dash, number = text.partition("-")
    version = release(number) if number.replace(".", "").isdecimal() else None
    if library == "nnxkit" and not dash:
        return Target(library, None, "the option target")
    if library != "flax" or (dash and version is None):
        raise ValueError(f"{text!r} is neither")
    if version is not None and number.count(".") < 2:
        version = allowed(f"=={number}.*").newest
    return Target(library, version, "the option target")


def beside(target: Target, jax: Target) -> Target:
    """A target with the version of jax that was found for the same folder."""
    if jax.source != NOTHING:
        return target._replace(jax=jax.version)
    oldest = (taken for since, taken in OLDEST_JAX if target.version is None or target.version >= since)
    return target._replace(jax=next(oldest, OLDEST_JAX[-1][1]))


NOTHING = "nothing names a version"
"""The source of a target that no file says anything of."""


class _Said(NamedTuple):
    """What a folder and those above it say: the nearest range, the nearest lock, and of wheels in the folder itself."""

    range: Range | None
    source: str
    lock: tuple[Version, str] | None
    environment: tuple[Version, str] | None
    unpacked: Mapping[str, tuple[Range, str]]


class Detector:
    """Finds the version of a distribution that folders run on; every folder is looked at once. ``files`` are those that
    something hangs on.
    """

    def __init__(self, distribution: str = "flax") -> None:
        self._name = distribution
        self.files: dict[str, None] = {}
        self._said: dict[str, _Said] = {}
        self._active: tuple[Version, str] | None = None
        self._asked = False

    def target(self, folder: str) -> Target:
        """What the code in a folder (an absolute path) runs on."""
        said = self._at(folder)
        wanted = said.range or ANY
        for known in (said.lock, said.environment):
            if known is not None and wanted.allows(known[0]):
                return Target(None, *known)
        active = self._activated()
        if active is not None and wanted.allows(active[0]):
            return Target(None, *active)
        return Target(None, wanted.newest, said.source if said.range else NOTHING)

    def _at(self, folder: str) -> _Said:
        if folder in self._said:
            return self._said[folder]
        from nnx_lint.target.requirements import files_of, installed_in, lock_of, pinned, range_of, unpacked

        try:
            names = frozenset(os.listdir(folder))
        except OSError:
            names = frozenset[str]()
        above = os.path.dirname(folder)
        outer = _Said(None, "", None, None, {}) if ".git" in names or above == folder else self._at(above)
        lock = lock_of(folder, names, self._name)
        required = range_of(folder, names, self._name) or outer.unpacked.get(os.path.basename(folder))
        if (
            lock is None
            and (pin := pinned(folder, names, self._name))
            and (required is None or required[0].allows(pin[0]))
        ):
            lock = pin
        if lock is not None:
            required = (Range(lock[0], lock[0]), lock[1])
        environments = [os.path.join(folder, name) for name in ENVIRONMENTS if name.partition(os.sep)[0] in names]
        found = next((held for path in environments if (held := installed_in(path, self._name))), None)
        self.files |= dict.fromkeys([*files_of(folder, names), *(found[1:] if found else ())])
        self._said[folder] = _Said(
            *(required or (outer.range, outer.source)),
            lock or outer.lock,
            found or outer.environment,
            unpacked(folder, names, self._name),
        )
        return self._said[folder]

    def _activated(self) -> tuple[Version, str] | None:
        """What is installed in the environment that is active, or that the linter itself is installed in."""
        if not self._asked:
            from nnx_lint.target.requirements import installed_in

            self._asked = True
            own = sys.prefix if sys.prefix != sys.base_prefix else None
            active = (os.environ.get("VIRTUAL_ENV"), os.environ.get("CONDA_PREFIX"), own)
            self._active = next((held for path in active if path and (held := installed_in(path, self._name))), None)
        return self._active
