"""Which rules a run reports, and how loudly: selectors such as ``NNX101``, ``NNX1``, ``data-in-static-attribute``,
``ALL``.

The command line, configuration files and suppression comments use the same words for rules, so that what is printed can
be pasted into any of them. A :class:`Layer` is what one of those places asks for. Within a layer the more specific
selector wins whatever the order, and what turns a rule off wins a draw: ``--select NNX101 --ignore NNX1`` reports
NNX101. A later layer wins over an earlier one; where it selects, it starts afresh. That is how ruff does it.

The engine gets the outcome only: :class:`Options` answers for a path with the :class:`FileOptions` of that file. Both
are plain data that can be pickled and digested, so that processes and the cache agree on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nnx_rules.registry import Rule, Severity, Version

EVERYTHING = "ALL"
PREFIX = "NNX"
OFF = "off"


class FileOptions:
    """What the engine is asked for in one file.

    ``severities`` has the code of every rule that is reported; a rule that is not need not be computed. ``library``
    (``"flax"`` or ``"nnxkit"``) and ``version`` fix what the code runs on; ``None`` leaves it to the code's own
    imports, and to the newest version. ``jax`` is the version of jax, ``None`` the newest.
    """

    __slots__ = ("_digest", "jax", "library", "severities", "version")

    def __init__(
        self,
        severities: Mapping[str, Severity],
        library: str | None = None,
        version: Version | None = None,
        jax: Version | None = None,
    ) -> None:
        self.severities = severities
        self.library = library
        self.version = version
        self.jax = jax
        self._digest: str | None = None

    def selected(self, rule: Rule) -> bool:
        """Whether a rule is reported."""
        return rule.code in self.severities

    def severity(self, rule: Rule) -> Severity:
        """How much a finding of a selected rule matters."""
        return self.severities[rule.code]

    def digest(self) -> str:
        """A text that is equal for equal options, in every process."""
        if self._digest is None:
            levels = sorted((code, severity.value) for code, severity in self.severities.items())
            self._digest = _hash(repr((levels, self.library, self.version, self.jax)))
        return self._digest


class Options:
    """The options of every file of a run; ``default`` holds for the files that ``by_path`` does not name.

    ``declared`` are stubs of modules of other packages, by their names, from somebody who knows these.
    """

    __slots__ = ("by_path", "declared", "default")

    def __init__(self, default: FileOptions, by_path: Mapping[str, FileOptions]) -> None:
        self.default = default
        self.by_path = by_path
        self.declared: Mapping[str, str] = {}

    @classmethod
    def everywhere(
        cls, selected: Callable[[Rule], bool], library: str | None = None, version: Version | None = None
    ) -> Options:
        """The same options for every file: the rules that ``selected`` accepts, at their own severity."""
        from nnx_rules.rules import REGISTRY

        return cls(FileOptions({rule.code: rule.severity for rule in REGISTRY if selected(rule)}, library, version), {})

    def for_path(self, path: str) -> FileOptions:
        """The options of the file that is known by this path."""
        return self.by_path.get(path, self.default)

    def digest(self) -> str:
        """A text that is equal for equal options of equal files."""
        files = sorted((path, options.digest()) for path, options in self.by_path.items())
        return _hash(repr((self.default.digest(), files, sorted(self.declared.items()))))


def _hash(text: str) -> str:
    import hashlib

    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class SelectionError(Exception):
    """A selector names no rule."""


class Layer(NamedTuple):
    """What one place asks for: a configuration file, or the command line.

    ``select`` replaces what earlier layers selected (``None``: it is not given), the others change it. ``levels`` maps
    a selector to a severity, which turns the rules on, or to ``off``.
    """

    select: Sequence[str] | None = None
    extend_select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    levels: Mapping[str, str] = {}

    def selectors(self) -> list[str]:
        """Every selector of the layer."""
        return [*(self.select or ()), *self.extend_select, *self.ignore, *self.levels]

    def decide(self, rule: Rule, before: bool) -> bool:
        """Whether the rule is on after this layer, if it was ``before``."""
        on = [selector for selector, level in self.levels.items() if level != OFF]
        off = [selector for selector, level in self.levels.items() if level == OFF]
        wanted = _strongest(rule, [*(self.select or ()), *self.extend_select, *on])
        unwanted = _strongest(rule, [*self.ignore, *off])
        if wanted == unwanted == _SILENT:
            return before if self.select is None else False
        return wanted > unwanted

    def level(self, rule: Rule) -> str | None:
        """The severity that this layer gives to the rule, if any: that of the most specific selector."""
        given = [selector for selector, level in self.levels.items() if level != OFF and matches(selector, rule)]
        return self.levels[max(given, key=_specificity)] if given else None


def severities(layers: Sequence[Layer], rules: Iterable[Rule], *, migrating: bool = False) -> dict[str, Severity]:
    """The rules that are on after all layers, by code, with their severity.

    ``migrating`` says that somebody names the version that the code is to run on: what is deprecated there is of
    interest then.
    """
    from nnx_rules.registry import Severity

    found: dict[str, Severity] = {}
    for rule in rules:
        on, severity = rule.default or (migrating and rule.migration), rule.severity
        for layer in layers:
            on = layer.decide(rule, on)
            level = layer.level(rule)
            severity = severity if level is None else Severity(level)
        if on:
            found[rule.code] = severity
    return found


def matches(selector: str, rule: Rule) -> bool:
    """Whether a selector covers a rule."""
    if selector.startswith(PREFIX):
        return rule.code.startswith(selector)
    return selector == rule.name or selector in rule.aliases or selector == EVERYTHING


def check_selectors(selectors: Iterable[str], rules: Iterable[Rule]) -> None:
    """Refuse what names no rule.

    Raises:
        SelectionError: a selector matches no rule; the message suggests the nearest one.
    """
    rules = list(rules)
    for selector in selectors:
        if not any(matches(selector, rule) for rule in rules):
            raise SelectionError(_unknown(selector, rules))


_SILENT = -1


def _strongest(rule: Rule, selectors: Iterable[str]) -> int:
    return max((_specificity(selector) for selector in selectors if matches(selector, rule)), default=_SILENT)


def _specificity(selector: str) -> int:
    """From ``ALL`` over ever longer prefixes to a single rule, by code or name."""
    if selector == EVERYTHING:
        return 0
    return len(selector) if selector.startswith(PREFIX) else len("NNX101")


def _unknown(selector: str, rules: Sequence[Rule]) -> str:
    known = [EVERYTHING, *(f"{PREFIX}{family}" for family in sorted({rule.code[3] for rule in rules}))]
    for rule in rules:
        known += (rule.code, rule.name, *rule.aliases)
    hint = nearest(selector, known)
    return f"no rule matches {selector!r}" + (f"; did you mean {hint!r}?" if hint else "; see `nnx-lint rules`")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that looks most like this one, whatever its case."""
    import difflib

    by_fold = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(word.casefold(), by_fold, n=1)
    return by_fold[close[0]] if close else None
