"""What holds for a file: the settings of its folder, made of configuration files and the command line.

:class:`Configuration` is one run's view. It finds the configuration of every folder once, puts what the command line
says on top, and answers with :class:`Settings`; from these come the :class:`~nnx_lint.selection.FileOptions` that the
engine gets. Later documents win: defaults, then the files that are extended, then the nearest file, then ``--config``,
then flags.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, cast

from nnx_lint.config.patterns import Patterns
from nnx_lint.config.reading import Document, check_document, find, load, setting
from nnx_lint.config.registry import BY_NAME
from nnx_lint.selection import FileOptions, Options, matches, severities

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nnx_lint.target import Target
    from nnx_rules.registry import Severity


_ELSEWHERE = "\0/"
"""Stands for a folder that no pattern names."""


class _Scoped(NamedTuple):
    """Patterns, and the folder that they are anchored at."""

    folder: str
    patterns: Patterns

    def decide(self, path: str, is_folder: bool) -> bool | None:
        relative = _below(path, self.folder)
        return None if relative is None else self.patterns.decide(relative, is_folder)

    def decide_anywhere(self, path: str, is_folder: bool) -> bool | None:
        """The same, also for a path that lies elsewhere: of that speak the patterns that are not anchored."""
        relative = _below(path, self.folder)
        return self.patterns.decide(_ELSEWHERE + os.path.basename(path) if relative is None else relative, is_folder)

    def covers(self, path: str) -> bool:
        relative = _below(path, self.folder)
        return relative is not None and self.patterns.covers(relative)


class _Waiver(NamedTuple):
    """An entry of ``per-file-ignores``."""

    where: _Scoped
    elsewhere: bool
    selectors: Sequence[str]

    def holds(self, path: str) -> bool:
        return self.where.covers(path) != self.elsewhere


class Settings:
    """The settings of the files in one folder: documents, the last of which wins.

    Attributes:
        documents: what they come from.
        path: the nearest configuration file, if there is one.
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = tuple(documents)
        files = [document.path for document in documents if document.path is not None]
        self.path = files[-1] if files else None
        self._excludes: list[_Scoped] | None = None
        self._waivers: list[_Waiver] | None = None
        self._severities: dict[str, Severity] | None = None
        self._options: dict[tuple[object, ...], FileOptions] = {}

    def get(self, option: str) -> object:
        """The value of an option."""
        return self._last(option)[0]

    def switch(self, option: str) -> bool:
        """The value of an option that is on or off."""
        return bool(self.get(option))

    def location(self, option: str) -> str | None:
        """The absolute path that an option names."""
        value, folder = self._last(option)
        return None if value is None else _absolute(folder, str(value))

    def locations(self, option: str) -> list[str]:
        """The absolute paths that an option lists."""
        value, folder = self._last(option)
        return [_absolute(folder, path) for path in cast("Sequence[str]", value)]

    def _last(self, option: str) -> tuple[object, str]:
        """The value of an option, and the folder that its paths are relative to."""
        for document in reversed(self.documents):
            if option in document.values:
                return document.values[option], document.folder
        return BY_NAME[option].default, os.path.dirname(self.path) if self.path else self.documents[-1].folder

    def excludes(self, path: str, is_folder: bool) -> bool:
        """Whether ``exclude`` or ``extend-exclude`` leave out an entry of a folder that is walked; the last says so."""
        return _last_verdict(scoped.decide_anywhere(path, is_folder) for scoped in self._excluding())

    def excludes_named(self, path: str, is_folder: bool) -> bool:
        """Whether they leave out a path, or a folder that it lies in.

        What the folders are called that a project lies in says nothing: only those below that of the patterns count.
        """
        above = os.path.dirname(path)
        excluded = _last_verdict(scoped.decide(path, is_folder) for scoped in self._excluding())
        return excluded or (above != path and self.excludes_named(above, True))

    def _excluding(self) -> list[_Scoped]:
        if self._excludes is None:
            patterns, folder = self._last("exclude")
            given = [(folder, patterns), *self._all("extend-exclude")]
            self._excludes = [
                _Scoped(os.path.abspath(where), Patterns(cast("Sequence[str]", lines)))
                for where, lines in given
                if lines
            ]
        return self._excludes

    def _all(self, option: str) -> list[tuple[str, object]]:
        return [(document.folder, document.values[option]) for document in self.documents if option in document.values]

    def options_for(self, path: str, target: Target) -> FileOptions:
        """What the engine is asked for in a file (an absolute path) whose code runs on ``target``."""
        ignored = tuple(number for number, waiver in enumerate(self._ignoring()) if waiver.holds(path))
        key = (ignored, target.library, target.version, target.jax)
        if key not in self._options:
            selectors = [selector for number in ignored for selector in self._ignoring()[number].selectors]
            self._options[key] = FileOptions(self._levels(selectors), target.library, target.version, target.jax)
        return self._options[key]

    def _levels(self, ignored: Sequence[str]) -> dict[str, Severity]:
        from nnx_rules.rules import REGISTRY

        if self._severities is None:
            layers = [document.layer() for document in self.documents]
            self._severities = severities(layers, REGISTRY, migrating=self.get("target") is not None)
        dropped = {rule.code for rule in REGISTRY if any(matches(selector, rule) for selector in ignored)}
        return {code: level for code, level in self._severities.items() if code not in dropped}

    def _ignoring(self) -> list[_Waiver]:
        if self._waivers is None:
            replaced = [document for document in self.documents if "per-file-ignores" in document.values][-1:]
            found = [
                (document.folder, entry) for document in replaced for entry in document.per_file("per-file-ignores")
            ]
            found += [
                (document.folder, entry)
                for document in self.documents
                for entry in document.per_file("extend-per-file-ignores")
            ]
            self._waivers = [
                _Waiver(
                    _Scoped(os.path.abspath(folder), Patterns([pattern.removeprefix("!")])),
                    pattern.startswith("!"),
                    selectors,
                )
                for folder, (pattern, selectors) in found
            ]
        return self._waivers


class Place(NamedTuple):
    """A folder (an absolute path), its settings, and what the code in it runs on."""

    folder: str
    settings: Settings
    target: Target


class Configuration:
    """The settings of one run, by folder.

    Raises:
        ConfigError: a file or a ``--config`` is wrong; also every method that reads the configuration of a folder.
        SelectionError: a flag names no rule.
    """

    def __init__(self, flags: Document) -> None:
        from nnx_lint.target import Detector

        check_document(flags)
        self._above: tuple[Document, ...] = ()
        self._fixed: tuple[Document, ...] | None = () if flags.values.get("isolated") else None
        for word in cast("Sequence[str]", flags.values.get("config", ())):
            if os.path.isfile(word) or "=" not in word:
                self._fixed = load(word, flags.folder)
            else:
                self._above += (setting(word, flags.folder),)
        self._above += (flags,)
        self._by_folder: dict[str, tuple[Document, ...]] = {}
        self._settings: dict[str | None, Settings] = {}
        self._places: dict[str, Place] = {}
        self._detectors = Detector(), Detector("jax")

    @classmethod
    def isolated(cls) -> Configuration:
        """The defaults, whatever any file says."""
        return cls(Document(None, os.getcwd(), {"isolated": True}))

    def at(self, folder: str) -> Settings:
        """The settings of the files in a folder (an absolute path)."""
        documents = self._documents(folder) if self._fixed is None else self._fixed
        nearest = documents[-1].path if documents else None
        if nearest not in self._settings:
            self._settings[nearest] = Settings((*documents, *self._above))
        return self._settings[nearest]

    def _documents(self, folder: str) -> tuple[Document, ...]:
        passed: list[str] = []
        found: tuple[Document, ...] = ()
        while folder not in self._by_folder:
            passed.append(folder)
            found = find(folder)
            above = os.path.dirname(folder)
            if found or above == folder:
                break
            folder = above
        else:
            found = self._by_folder[folder]
        self._by_folder.update(dict.fromkeys(passed, found))
        return found

    def place(self, folder: str) -> Place:
        """What holds for the files in a folder, which is named as their paths name it."""
        if folder not in self._places:
            from nnx_lint.target import beside, parse

            absolute = os.path.abspath(folder)
            settings = self.at(absolute)
            given = settings.get("target")
            of_flax, of_jax = self._detectors
            target = of_flax.target(absolute) if given is None else parse(str(given))
            self._places[folder] = Place(absolute, settings, beside(target, of_jax.target(absolute)))
        return self._places[folder]

    def options_for(self, path: str) -> FileOptions:
        """What the engine is asked for in a file."""
        folder, name = os.path.split(path)
        place = self.place(folder)
        return place.settings.options_for(os.path.join(place.folder, name), place.target)

    def files(self) -> list[str]:
        """The configuration files that were read."""
        read = {document.path: None for settings in self._settings.values() for document in settings.documents}
        return [path for path in read if path is not None]

    def about_targets(self) -> list[str]:
        """The files that were asked what code runs on: requirements, locks, what is installed."""
        return list(dict.fromkeys(file for detector in self._detectors for file in detector.files))

    def sources(self) -> list[str]:
        """The folders that imports start from, by what the configurations that were read say."""
        found: dict[str, None] = {}
        for settings in self._settings.values():
            found |= dict.fromkeys(settings.locations("src"))
            if settings.path is not None:
                found[os.path.dirname(settings.path)] = None
        return list(found)

    def options(self, paths: Iterable[str]) -> Options:
        """What the engine is asked for in some files; other files are treated as one in the current folder is."""
        return Options(self.options_for("_.py"), {path: self.options_for(path) for path in paths})


def _last_verdict(verdicts: Iterable[bool | None]) -> bool:
    return next((verdict for verdict in reversed([*verdicts]) if verdict is not None), False)


def _absolute(folder: str, path: str) -> str:
    return os.path.normpath(os.path.join(folder, os.path.expanduser(path)))


def _below(path: str, folder: str) -> str | None:
    """A path relative to a folder that it lies in, with slashes."""
    prefix = folder if folder.endswith(os.sep) else folder + os.sep
    if not path.startswith(prefix):
        return None
    relative = path[len(prefix) :]
    return relative if os.sep == "/" else relative.replace(os.sep, "/")
