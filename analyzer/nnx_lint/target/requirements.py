"""What the files of a project say about the flax, or the jax, that it needs or has.

Locks name a release; requirements name a range. Every reader takes the text of a file and gives what it says of a
distribution (flax, if no other is named), or ``None`` if it does not speak of it. Nothing is imported or run: a
``setup.py`` is searched for strings that are requirements, and a lock, which can have megabytes, for its entry. A file
that is broken says nothing: it is not ours to complain.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, TypeAlias, cast

from nnx_lint.target.versions import Range, allowed, merged, release
from nnx_lint.toml import parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from nnx_rules.registry import Version

FLAX = "flax"

# Patterns are compiled where they are used, and kept by `re`: most runs need few of them. `%s` is the distribution.
_REQUIREMENT = r"(?i:\s*%s\s*(?:\[[^\]]*\])?\s*(\(.*\)|[=<>!~^@;#\\].*|--.*|)\s*$)"
_AFTER_SPECIFIERS = r"[;#@\\]|\s--|\)"
_IN_TOML = r"""(?m:^name\s*=\s*["']%s["']\s*\n(?:(?!\[\[)[^\n]*\n)*?version\s*=\s*["']([^"']+)["'])"""
_IN_JSON = r"""\"%s"\s*:\s*\{[^{}]*"version"\s*:\s*"==([^"]+)\""""
_OF_ARCHIVES = r"""(?m:/%s-(\d[\w.]*)-[^/\s]*$)"""
_STRING = r"""(["'])((?:(?!\1)[^\\\n])*)\1"""


def requirement(text: str, name: str = FLAX) -> Range | None:
    """What one line says, such as ``flax[all]>=0.10,<0.12; python_version > "3.10"``."""
    found = re.match(_REQUIREMENT % name, text)
    return None if found is None else allowed(re.split(_AFTER_SPECIFIERS, found[1])[0].lstrip("("))


def locked(text: str, pattern: str = _IN_TOML, name: str = FLAX) -> Version | None:
    """The release that a lock file names, by default one in TOML; of several, for several platforms, the newest."""
    found = [version for each in re.finditer(pattern % name, text) if (version := release(each[1]))]
    return max(found, default=None)


def metadata(text: str, name: str = FLAX) -> Range | None:
    """The core metadata of a distribution: ``METADATA`` of a wheel, ``PKG-INFO`` of a source archive."""
    required = re.findall(r"(?m)^Requires-Dist:(.*)", text.partition("\n\n")[0])
    further = [line for line in required if re.search(r"\bextra\s*==", line)]
    return _first(name, [line for line in required if line not in further], further)


def _first(name: str, *groups: Iterable[str]) -> Range | None:
    """What the first group of lines says that speaks of a distribution."""
    for group in groups:
        ranges = [found for line in group if (found := requirement(line, name)) is not None]
        if ranges:
            return merged(ranges)
    return None


def pyproject(text: str, name: str = FLAX) -> Range | None:
    """The dependencies in a ``pyproject.toml``, a ``pixi.toml`` or a ``Pipfile``; extras and groups only where the
    project itself needs none.
    """
    try:
        document = parsed(text)
    except ValueError:
        return None
    lines: dict[bool, list[str]] = {True: [], False: []}
    for keys, line in _dependencies(document, (), name):
        lines[keys in _OWN].append(line)
    return _first(name, lines[True], lines[False])


_OWN = frozenset(
    {
        ("project", "dependencies"),
        ("tool", "poetry", "dependencies"),
        ("tool", "pixi", "dependencies"),
        ("tool", "pixi", "pypi-dependencies"),
        ("dependencies",),
        ("pypi-dependencies",),
        ("packages",),
    }
)
"""Under which keys a ``pyproject.toml``, ``pixi.toml`` or ``Pipfile`` has what the project itself needs."""


def _dependencies(value: object, keys: tuple[str, ...], name: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every requirement in a document, as one line, with the keys that lead to it.

    They stand in lists (``["flax>=0.12"]``) or in tables by name (``flax = "^0.12"``, ``flax = {version = "^0.12"}``),
    below a key that speaks of dependencies.
    """
    about = any("dependenc" in key for key in keys) or keys in (("packages",), ("dev-packages",))
    if isinstance(value, list):
        for item in cast("list[object]", value):
            if about and isinstance(item, str):
                yield keys, item
    elif isinstance(value, dict):
        for key, item in cast("Mapping[str, object]", value).items():
            if about and key.lower() == name and (specifiers := _specifiers(item)) is not None:
                yield keys, f"{name} ({specifiers})"
            else:
                yield from _dependencies(item, (*keys, key), name)


def _specifiers(value: object) -> str | None:
    """The specifiers of an entry in a table by name; a list of entries, for several platforms, are alternatives."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return str(cast("Mapping[str, object]", value).get("version", "*"))
    if isinstance(value, list):
        return "||".join(filter(None, map(_specifiers, cast("list[object]", value))))
    return None


def lines(text: str, name: str = FLAX) -> Range | None:
    """A file with one requirement on a line: requirements, constraints, the lists of a ``setup.cfg``."""
    return _first(name, (re.sub(r"^\s*[\w.-]+\s*=(?!=)\s*", "", line).strip() for line in text.splitlines()))


def strings(text: str, name: str = FLAX) -> Range | None:
    """A Python file whose strings are requirements: ``setup.py``."""
    return _first(name, (found[2] for found in re.finditer(_STRING, text)))


def environment(text: str, name: str = FLAX) -> Range | None:
    """An environment of conda: ``- flax=0.10``, with a channel before it and a build after it or without."""
    items = re.findall(r"(?m)^\s*-\s+[\"']?(?:[^\s:#]+::)?([^\"'\n]*)", text)
    return _first(name, (re.sub(r"(=[\w.*]+)=.*", r"\1", item) for item in items))


_LOCKS = {
    **dict.fromkeys(("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml"), _IN_TOML),
    "pixi.lock": _OF_ARCHIVES,
    "Pipfile.lock": _IN_JSON,
}
_PINS = ("requirements.txt", "requirements.lock", "constraints.txt")
"""Which lists of requirements are what an installation gets, if they name one release."""

_Reader: TypeAlias = "Callable[[str, str], Range | None]"

_REQUIRING: tuple[tuple[str, _Reader], ...] = (
    ("pyproject.toml", pyproject),
    ("setup.cfg", lines),
    ("setup.py", strings),
    ("pixi.toml", pyproject),
    ("Pipfile", pyproject),
    ("requirements.txt", lines),
    ("requirements.in", lines),
    ("requirements.lock", lines),
    ("environment.yml", environment),
    ("environment.yaml", environment),
    ("PKG-INFO", metadata),
)
_FURTHER, _ENDS = ("requirements", "constraints"), (".txt", ".in")
"""How the files begin and end that some projects have besides ``requirements.txt``."""

GLOBS = (
    *_LOCKS,
    *(name for name, _ in _REQUIRING),
    *(f"{begin}*{end}" for begin in _FURTHER for end in _ENDS),
    *(f"requirements/*{end}" for end in _ENDS),
)
"""The files that may say something, in any folder."""


def _is_further(name: str) -> bool:
    return name.startswith(_FURTHER) and name.endswith(_ENDS)


def speaks(path: str) -> bool:
    """Whether a file of that name may say what the project around it needs, or has."""
    above, name = os.path.split(path)
    among = os.path.basename(above) == "requirements" and name.endswith(_ENDS)
    return among or name in _LOCKS or name in dict(_REQUIRING) or _is_further(name)


def files_of(folder: str, names: frozenset[str]) -> list[str]:
    """The files of a folder that may say something; ``names`` are its entries."""
    return [*(os.path.join(folder, file) for file in _LOCKS if file in names), *dict(_requiring(folder, names))]


def lock_of(folder: str, names: frozenset[str], name: str = FLAX) -> tuple[Version, str] | None:
    """The release that a lock in a folder names, and the path of the lock; ``names`` are the entries of the folder."""
    for file, pattern in _LOCKS.items():
        path = os.path.join(folder, file)
        if file in names and (version := locked(_text(path, name), pattern, name)) is not None:
            return version, path
    return None


def pinned(folder: str, names: frozenset[str], name: str = FLAX) -> tuple[Version, str] | None:
    """The one release that the lists of requirements in a folder name, and the path of the first that does."""
    found: dict[Version, str] = {}
    for path in (os.path.join(folder, file) for file in _PINS if file in names):
        said = lines(_text(path, name), name)
        if said is not None and said.newest is not None and said.oldest == said.newest:
            found.setdefault(said.newest, path)
    return next(iter(found.items())) if len(found) == 1 else None


def range_of(folder: str, names: frozenset[str], name: str = FLAX) -> tuple[Range, str] | None:
    """What the project in a folder requires, and the path of the file that says so."""
    for path, read in _requiring(folder, names):
        if (found := read(_text(path, name), name)) is not None:
            return found, path
    return None


def _requiring(folder: str, names: frozenset[str]) -> list[tuple[str, _Reader]]:
    """The files of a folder that may hold requirements, and how each is read; the first that speaks counts."""
    files = [(name, read) for name, read in _REQUIRING if name in names]
    files += [(name, lines) for name in sorted(filter(_is_further, names)) if name not in dict(_REQUIRING)]
    if "requirements" in names:
        below = (os.path.join("requirements", name) for name in sorted(_entries(os.path.join(folder, "requirements"))))
        files += [(name, lines) for name in below if speaks(name)]
    return [(os.path.join(folder, name), read) for name, read in files]


def unpacked(folder: str, names: frozenset[str], name: str = FLAX) -> dict[str, tuple[Range, str]]:
    """What wheels that are unpacked in a folder require, by the entries of the folder that they brought."""
    brought: dict[str, tuple[Range, str]] = {}
    for entry in sorted(names):
        if entry.endswith(".dist-info"):
            path = os.path.join(folder, entry, "METADATA")
            if (found := metadata(_text(path, name), name)) is not None:
                record = _text(os.path.join(folder, entry, "RECORD"), about="")
                brought |= dict.fromkeys((line.partition("/")[0] for line in record.splitlines()), (found, path))
    return brought


def installed_in(environment: str, name: str = FLAX) -> tuple[Version, str] | None:
    """The release that a virtual environment holds, from its metadata, and the path of these."""
    library = os.path.join(environment, "lib")
    folders = [os.path.join(library, entry, "site-packages") for entry in sorted(_entries(library))]
    for folder in [*folders, os.path.join(environment, "Lib", "site-packages")]:
        for entry in _entries(folder):
            if entry.lower().startswith(f"{name}-") and entry.endswith(".dist-info"):
                path = os.path.join(folder, entry, "METADATA")
                found = re.search(r"^Version:\s*(\S+)", _text(path, name), re.MULTILINE)
                version = release(found[1]) if found else None
                if version is not None:
                    return version, path
    return None


def _entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _text(path: str, about: str) -> str:
    """The text of a file, if it speaks of something at all."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return ""
    return data.decode(errors="replace") if about.encode() in data.lower() else ""
