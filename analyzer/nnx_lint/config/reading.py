"""Reading configuration files: which one is the nearest, what it says, and where it is wrong.

The nearest of ``nnx-lint.toml`` and a ``pyproject.toml`` with a table ``[tool.nnx-lint]`` above a file is its
configuration; nothing is inherited from folders further up, unless the file says ``extend``. What is read is a
:class:`Document`: checked values by option, and the folder that its paths and patterns start from.

Every mistake is a :class:`ConfigError` that names the file, the line where that can be found (a TOML parser does not
keep it, so it is looked up in the text), and what would be right.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple, cast

from nnx_lint.config.kinds import WrongKey, WrongValue
from nnx_lint.config.registry import BY_NAME, FILE
from nnx_lint.selection import Layer, SelectionError, check_selectors, nearest
from nnx_lint.toml import parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    Table = Mapping[str, object]
    Keys = tuple[str, ...]

OWN, SHARED = "nnx-lint.toml", "pyproject.toml"
TABLE = ("tool", "nnx-lint")

_OUR_NAME = re.compile(rb"nnx[-_. ]?lint", re.IGNORECASE)
"""The name of our table, however somebody may write it."""


class ConfigError(Exception):
    """A configuration that cannot be used; the message says where, and how to mend it."""


class Document(NamedTuple):
    """What one place says: a file, ``--config KEY=VALUE``, or the flags of the command line.

    Attributes:
        path: the file; ``None`` for the command line.
        folder: what its paths and patterns are relative to.
        values: what it says, by option.
    """

    path: str | None
    folder: str
    values: Table

    def layer(self) -> Layer:
        """What it says about rules in all files."""
        return Layer(
            cast("Sequence[str] | None", self.values.get("select")),
            cast("Sequence[str]", self.values.get("extend-select", ())),
            cast("Sequence[str]", self.values.get("ignore", ())),
            cast("Mapping[str, str]", self.values.get("rules", {})),
        )

    def per_file(self, option: str) -> Sequence[tuple[str, Sequence[str]]]:
        """Pairs of a pattern and selectors, of ``per-file-ignores`` or its extension."""
        return cast("Sequence[tuple[str, Sequence[str]]]", self.values.get(option, ()))


def find(folder: str) -> tuple[Document, ...]:
    """The configuration in a folder, after those that it extends; empty if there is none.

    Raises:
        ConfigError: it, or one that it extends, cannot be read or is wrong.
    """
    own = os.path.join(folder, OWN)
    if os.path.isfile(own):
        return load(own)
    shared = os.path.join(folder, SHARED)
    if not os.path.isfile(shared):
        return ()
    data = _bytes(shared, "")
    if _OUR_NAME.search(data) is None:  # parsing takes milliseconds, and most files are not about us
        return ()
    tools = _table(_parse(data, shared), TABLE[:1]) or {}
    for name in tools:
        if name != TABLE[1] and _OUR_NAME.fullmatch(name.encode()) is not None:
            raise ConfigError(f"{_place(shared, data, ('tool', name))}: the table must be called [{'.'.join(TABLE)}]")
    return load(shared) if TABLE[1] in tools else ()


def load(path: str, folder: str | None = None) -> tuple[Document, ...]:
    """A configuration file, after those that it extends; its paths are relative to ``folder``, by default its own.

    Raises:
        ConfigError: it, or one that it extends, cannot be read or is wrong.
    """
    documents: list[Document] = []
    seen: list[str] = []
    current: str | None = os.path.abspath(path)
    by = ""
    while current is not None:
        if current in seen:
            raise ConfigError(f"{by}: `extend` leads in a circle: {' -> '.join(map(shown, [*seen, current]))}")
        seen.append(current)
        document = _read(current, by, folder or os.path.dirname(current))
        documents.append(document)
        by, folder = shown(current), None
        extended = cast("str | None", document.values.get("extend"))
        current = extended and os.path.normpath(os.path.join(os.path.dirname(current), os.path.expanduser(extended)))
    return tuple(reversed(documents))


def setting(text: str, folder: str) -> Document:
    """One setting of the command line, such as ``target = "flax-0.12"``; the quotes may be missing.

    Raises:
        ConfigError: it is no setting, or a wrong one.
    """
    table: Table | None = None
    key, _, value = text.partition("=")
    for line in (text, f"{key} = '{value.strip()}'"):
        try:
            table = parsed(line)
            break
        except ValueError:
            continue
    if table is None or not value.strip():
        raise ConfigError(f"--config {text}: is neither a file nor a setting KEY=VALUE")
    return Document(None, folder, checked(table, lambda _: f"--config {text}"))


def check_document(document: Document) -> None:
    """Refuse selectors that name no rule.

    Raises:
        SelectionError: one does not; the message suggests the nearest one.
    """
    from nnx_rules.rules import REGISTRY

    for _, selectors in _selectors(document.values):
        check_selectors(selectors, REGISTRY)


def shown(path: str) -> str:
    """A path as messages show it: relative, where that is shorter."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return relative if not relative.startswith(os.pardir) else path


def _read(path: str, by: str, folder: str) -> Document:
    data = _bytes(path, f"{by}: extends " if by else "")
    prefix = TABLE if os.path.basename(path) == SHARED else ()
    whole = _parse(data, path)
    table = _table(whole, prefix)
    if table is None:
        raise ConfigError(f"{shown(path)}: has no table [{'.'.join(TABLE)}]")
    if not prefix and _table(whole, TABLE) is not None:
        raise ConfigError(f"{_place(path, data, TABLE)}: [{'.'.join(TABLE)}] is for pyproject.toml; remove that line")
    return Document(path, folder, checked(table, lambda keys: _place(path, data, (*prefix, *keys))))


def _place(path: str, data: bytes, keys: Keys) -> str:
    """Where a file says something of a key."""
    line = _line(data.decode(), keys)
    return shown(path) + (f":{line}" if line else "")


def _bytes(path: str, by: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ConfigError(f"{by}{shown(path)}: cannot be read: {error.strerror or error}") from None


def _parse(data: bytes, path: str) -> Table:
    try:
        return parsed(data.decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{shown(path)}:{line}: is not valid UTF-8") from None
    except ValueError as error:
        found = re.search(r" \(at line (\d+), column (\d+)\)$", str(error))
        place = f":{found[1]}:{found[2]}" if found else ""
        reason = str(error)[: found.start()] if found else str(error)
        raise ConfigError(f"{shown(path)}{place}: is not valid TOML: {reason}") from None


def _table(whole: Table, keys: Keys) -> Table | None:
    table: object = whole
    for key in keys:
        table = cast("Table", table).get(key) if isinstance(table, dict) else None
    return cast("Table", table) if isinstance(table, dict) else None


def checked(table: Table, where: Callable[[Keys], str]) -> Table:
    """The values of a table of options; ``where`` names the place of a key.

    Raises:
        ConfigError: an option is unknown, or its value is wrong.
    """
    known = [name for name, option in BY_NAME.items() if FILE in option.places]
    values: dict[str, object] = {}
    for name, value in table.items():
        if name not in known:
            raise ConfigError(f"{where((name,))}: {_unknown(name, known)}")
        try:
            values[name] = BY_NAME[name].kind.read(value)
        except WrongKey as error:
            raise ConfigError(f"{where((name, error.key))}: `{error.key}` in `{name}` must be {error}") from None
        except WrongValue as error:
            wrong = f"`{name}` must be {error.expected}, not {_described(value)}{error.hint}"
            raise ConfigError(f"{where((name,))}: {wrong}") from None
    if any(True for _ in _selectors(values)):
        from nnx_rules.rules import REGISTRY

        for keys, selectors in _selectors(values):
            try:
                check_selectors(selectors, REGISTRY)
            except SelectionError as error:
                raise ConfigError(f"{where(keys)}: {error}") from None
    return values


def _selectors(values: Table) -> Iterator[tuple[Keys, Iterable[str]]]:
    """The selectors that a document holds, and under which key."""
    document = Document(None, "", values)
    for option in ("select", "extend-select", "ignore"):
        if option in values:
            yield (option,), cast("Iterable[str]", values[option])
    for selector in document.layer().levels:
        yield ("rules", selector), (selector,)
    for option in ("per-file-ignores", "extend-per-file-ignores"):
        for pattern, selectors in document.per_file(option):
            yield (option, pattern), selectors


def _unknown(name: str, known: Sequence[str]) -> str:
    if name in BY_NAME:
        return f"`{name}` is a flag of the command line, not an option of a configuration file"
    hint = nearest(name, known)
    return f"unknown option `{name}`" + (f"; did you mean `{hint}`?" if hint else "; see `nnx-lint config`")


def _described(value: object) -> str:
    if isinstance(value, list):
        return "this list"
    if isinstance(value, dict):
        return "a table"
    return str(value).lower() if isinstance(value, bool) else repr(value)


_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_HEADER = rf"\s*\[\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*\]"
_ASSIGNMENT = rf"\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*="


def _line(text: str, keys: Keys) -> int | None:
    """The line, from one, where a TOML document says something of a key, or of the nearest table around it."""
    table: Keys = ()
    best: tuple[int, int] | None = None
    for number, line in enumerate(text.split("\n"), 1):
        header = re.match(_HEADER, line)
        found = header or re.match(_ASSIGNMENT, line)
        if found is None:
            continue
        names = tuple(name.strip("\"'") for name in re.findall(_KEY, found[1]))
        path = names if header else (*table, *names)
        table = names if header else table
        depth = min(len(path), len(keys))
        if path[:depth] == keys[:depth] and (best is None or depth > best[0]):
            best = depth, number
    return best[1] if best else None
