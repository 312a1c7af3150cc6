"""The cache on disk: what an earlier run found, and the text that it found it in.

One run leaves one file, named after all that its answers depend on besides the checked text: the analyzer itself, the
interpreter, the options, and the files that were asked for. The file is replaced as a whole, and its first line has a
checksum of the rest; whatever is wrong with it, from a flipped bit to a disk that is full, there is no cache then, and
the answer is the same.

Whether a text is the same is decided by the times, the size and the number of its file, and by its digest where these
differ. A file that had just been written when it was read can change again without a sign; it is read again.

Invariants: nothing here raises because of the disk; nothing that is read is executed, so that a cache which somebody
put into a repository can at worst be wrong.
"""

from __future__ import annotations

import functools
import os
import sys
import time
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from nnx_lint.relevance import Facts
from nnx_lint.units import Unit, pack, pack_finding, unpack, unpack_finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.selection import Options

SUFFIX = ".cache"
MAGIC = b"nnx-lint cache 1 "
KEPT_RUNS = 8
"""How many cache files a folder holds; the ones that were written longest ago go first."""

RACY = 2_000_000_000
"""Nanoseconds within which a change of a file may leave its times as they were."""

MARKERS = {
    ".gitignore": "*\n",
    "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n# This folder holds caches of nnx-lint.\n",
}
"""What tells version control and backups to leave the folder alone."""

Stat = tuple[int, int, int, int]


class FileRecord(NamedTuple):
    """A file as it was read: its times and size (``None`` where they say nothing), its digest, and its facts if they
    mattered. ``concerned`` says that it was more than parsed.
    """

    stat: Stat | None
    digest: str
    facts: Facts | None
    concerned: bool


class Memory(NamedTuple):
    """What a run knew in the end.

    ``folders`` are the folders that were looked at, with a digest of what matters of their contents. What a unit
    ``used`` is a number here: each of its bits stands for a file, in their order. ``kept`` are the findings that
    comments left of those in ``units``, for files where that makes a difference. ``knotted`` says that modules import
    each other, so that all have to be executed in order for any.
    """

    files: dict[str, FileRecord]
    folders: dict[str, str]
    units: dict[str, Unit]
    used: dict[str, int]
    kept: dict[str, list[Diagnostic]]
    knotted: bool

    def bits(self, paths: Iterable[str]) -> int:
        """The number whose bits stand for these files."""
        wanted = set(paths)
        return sum(1 << number for number, path in enumerate(self.files) if path in wanted)


# -- state of the disk -------------------------------------------------------------------------------------------------


def stat_of(path: str, before: int | None = None) -> Stat | None:
    """What tells whether a file has changed; ``None`` where it does not, since the file is younger than ``before`` (in
    nanoseconds; at first the present), or there is no file.
    """
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    if max(found.st_mtime_ns, found.st_ctime_ns) > (before or time.time_ns()) - RACY:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def digest_of(path: str) -> str | None:
    """A digest of the content of a file; ``None`` if it cannot be read."""
    import hashlib

    try:
        with open(path, "rb") as file:
            return hashlib.blake2b(file.read(), digest_size=16).hexdigest()
    except (OSError, ValueError):
        return None


def folder_digest(entries: Iterable[str]) -> str:
    """A digest of the names in a folder that can matter for an import."""
    names = sorted(
        name for name in entries if name.endswith((".py", ".pyi", ".toml", ".cfg")) or "." not in name.lstrip("_")
    )
    return f"{zlib.crc32(chr(0).join(names).encode('utf-8', 'surrogateescape')):x}.{len(names)}"


def _folder_now(folder: str) -> str:
    try:
        return folder_digest(os.listdir(folder))
    except OSError:
        return folder_digest(())


def changes(memory: Memory) -> tuple[set[str], dict[str, Stat]] | None:
    """The files that changed since, and new stats of those that did not; ``None`` if files came, went or moved."""
    if any(_folder_now(folder) != digest for folder, digest in memory.folders.items()):
        return None
    changed: set[str] = set()
    fresh: dict[str, Stat] = {}
    for path, record in memory.files.items():
        now = stat_of(path)
        if now is None or now != record.stat:
            if digest_of(path) != record.digest:
                changed.add(path)
            elif now is not None:
                fresh[path] = now
    return changed, fresh


# -- the file ----------------------------------------------------------------------------------------------------------


class Cache:
    """The cache of one kind of run in a folder."""

    def __init__(self, folder: str, paths: Iterable[str], roots: Sequence[str], options: Options) -> None:
        import hashlib

        self.folder = folder
        key = "\0".join([_tool(), os.getcwd(), options.digest(), *roots, "", *paths])
        name = hashlib.blake2b(key.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        self._path = os.path.join(folder, name + SUFFIX)

    def read(self) -> Memory | None:
        """What the last run of this kind left, or ``None``."""
        try:
            with open(self._path, "rb") as file:
                head = file.readline(len(MAGIC) + 16)
                body = file.read()
        except OSError:
            return None
        if head != _head(body):
            return None
        import json

        try:
            return _unpack(json.loads(body))
        except (ValueError, TypeError, KeyError, IndexError, RecursionError):
            return None  # made by somebody else, with a checksum that is right

    def write(self, memory: Memory) -> str | None:
        """Keep this for the next run; says why not, if that is impossible."""
        import json
        import tempfile

        body = json.dumps(_pack(memory), separators=(",", ":")).encode()
        try:
            self._make_folder()
            handle, temporary = tempfile.mkstemp(dir=self.folder, suffix=".new")
            try:
                with open(handle, "wb") as file:
                    file.write(_head(body) + body)
                os.replace(temporary, self._path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise
            self._prune()
        except OSError as error:
            return f"{self.folder}: the cache cannot be written: {error.strerror or error}"
        return None

    def _make_folder(self) -> None:
        os.makedirs(self.folder, exist_ok=True)
        for name, text in MARKERS.items():
            path = os.path.join(self.folder, name)
            try:
                with open(path, "x", encoding="utf-8") as file:
                    file.write(text)
            except FileExistsError:
                continue
            except OSError:
                with suppress(OSError):
                    os.unlink(path)  # half a mark on a full disk would stay, and mark nothing
                raise

    def _prune(self) -> None:
        """Remove what nobody has written for long, and what runs that were killed left behind."""
        ages: list[tuple[float, str]] = []
        for entry in os.scandir(self.folder):
            if entry.name.endswith((SUFFIX, ".new")):
                with suppress(OSError):
                    ages.append((entry.stat().st_mtime, entry.path))
        for _, path in sorted(ages)[:-KEPT_RUNS]:
            with suppress(OSError):
                os.unlink(path)


def clean(folder: str) -> int:
    """Remove a cache folder; returns the number of cache files that were in it. What else lies there stays."""
    removed = 0
    try:
        entries = os.listdir(folder)
    except OSError:
        return 0
    for name in entries:
        if name.endswith((SUFFIX, ".new")) or name in MARKERS:
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))
                removed += name.endswith(SUFFIX)
    with suppress(OSError):
        os.rmdir(folder)
    return removed


def _head(body: bytes) -> bytes:
    return MAGIC + b"%08x\n" % zlib.crc32(body)


def _tool() -> str:
    """What the analyzer is: its version, its own files, and the interpreter, whose parser it uses."""
    import nnx_rules

    parts = [nnx_rules.__version__, sys.version, sys.implementation.cache_tag or ""]
    for folder in (os.path.dirname(__file__), os.path.dirname(nnx_rules.__file__ or "")):
        parts += sorted(modules(folder))
    return "\n".join(parts)


@functools.cache
def modules(folder: str) -> tuple[str, ...]:
    """The modules of a part of the analyzer, each with its path, its time and its size; they are taken to stay."""
    found: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                status = entry.stat()
                found.append(f"{entry.path} {status.st_mtime_ns} {status.st_size}")
            elif entry.is_dir() and entry.name != "__pycache__":
                found += modules(entry.path)
    return tuple(found)


def _pack(memory: Memory) -> object:
    files = [[path, *record] for path, record in memory.files.items()]
    units = [
        [*pack(unit._replace(used=(), folders=())), f"{memory.used[path]:x}"] for path, unit in memory.units.items()
    ]
    kept = {path: [pack_finding(finding) for finding in findings] for path, findings in memory.kept.items()}
    return [files, memory.folders, units, kept, memory.knotted]


def _unpack(packed: Any) -> Memory:
    files, folders, units, kept, knotted = packed
    return Memory(
        {path: _file_record(*record) for path, *record in files},
        folders,
        {unit[0]: unpack(unit[:-1]) for unit in units},
        {unit[0]: int(unit[-1], 16) for unit in units},
        {path: [unpack_finding(finding) for finding in findings] for path, findings in kept.items()},
        bool(knotted),
    )


def _file_record(stat: list[int] | None, digest: str, facts: list[Any] | None, concerned: bool) -> FileRecord:
    times = (stat[0], stat[1], stat[2], stat[3]) if stat else None
    return FileRecord(times, digest, Facts(*facts) if facts else None, concerned)
