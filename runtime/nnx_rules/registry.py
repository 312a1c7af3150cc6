"""The registry: what a rule is, and how to find one.

A :class:`Rule` is pure data. The runtime raises ``rule.error(...)``, the analyzer reports ``rule.message_for(...)``:
one template, so that the message in the terminal, in the editor and in the traceback are the same sentence.

Invariants: codes and names are unique and never reused; a renamed rule keeps its old name in ``aliases``, so that no
suppression breaks; every rule has a page (``tests/rules/<name>.md``) which is its documentation, its specification
and its test.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from nnx_rules.errors import NNXError
from nnx_rules.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_rules.errors import Path, Place


class Severity(enum.Enum):
    """How much a finding matters by default."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Fixable(enum.Enum):
    """What kind of automatic mend exists: the safest, where it depends on the program."""

    NONE = "none"
    SAFE = "safe"
    UNSAFE = "unsafe"


class Family(enum.Enum):
    """The families of rules; the value is the first digit of the code."""

    COMMENTS = 0
    ATTRIBUTES = 1
    TRACES = 2
    FILTERS = 3
    TRANSFORMS = 4
    RANDOMNESS = 5
    TRAINING = 6
    COST = 7
    LAYERS = 8
    VERSIONS = 9


Version = tuple[int, ...]


class Versions(Record):
    """The library versions that a rule holds for.

    ``flax_since`` is inclusive, ``flax_before`` exclusive; ``None`` leaves that end open. ``flax = False`` and
    ``nnxkit = False`` switch a side off.
    """

    flax: bool = True
    flax_since: Version | None = None
    flax_before: Version | None = None
    nnxkit: bool = True

    def holds(self, library: str, version: Version | None = None) -> bool:
        """Whether the rule applies to a library (``"flax"`` or ``"nnxkit"``) at a version (``None``: the newest)."""
        if library == "nnxkit":
            return self.nnxkit
        if not self.flax:
            return False
        if version is None:
            return self.flax_before is None
        since_ok = self.flax_since is None or version >= self.flax_since
        return since_ok and (self.flax_before is None or version < self.flax_before)


class Rule(Record):
    """One mistake that NNX code can make.

    ``message`` and ``help`` are ``str.format`` templates over the slots that the reporter passes. ``error`` is the
    exception that the nnxkit runtime raises, or ``None`` where the mistake is silent at run time. ``in_flax`` is what
    flax.nnx raises there, in its key words: the error ends with them, for code that matches on them and for people who
    search for them. ``default`` says whether it is on, and ``migration`` that it is on where somebody names the version
    to move to.
    """

    code: str
    name: str
    summary: str
    message: str
    help: str = ""
    severity: Severity = Severity.ERROR
    exception: type[NNXError] | None = None
    in_flax: str = ""
    fix: Fixable = Fixable.NONE
    default: bool = True
    migration: bool = False
    versions: Versions = Versions()
    aliases: tuple[str, ...] = ()

    @property
    def family(self) -> Family:
        """The family, read from the code."""
        return Family(int(self.code[3]))

    def message_for(self, **slots: object) -> str:
        """Fill the message template."""
        return self.message.format(**slots)

    def help_for(self, **slots: object) -> str:
        """Fill the help template."""
        return self.help.format(**slots)

    def error(
        self,
        *,
        cls: str | None = None,
        path: Path | None = None,
        other_path: Path | None = None,
        first_assigned: Place | None = None,
        **slots: object,
    ) -> NNXError:
        """Build the exception of this rule; the caller raises it.

        The class name and the paths are also template slots: ``cls``, ``path`` and ``other_path`` as they are read in
        Python.
        """
        from nnx_rules.errors import format_path

        slots.setdefault("cls", cls)
        slots.setdefault("path", format_path(path) if path is not None else None)
        slots.setdefault("other_path", format_path(other_path) if other_path is not None else None)
        kind = self.exception or NNXError
        return kind(
            self.message_for(**slots),
            rule=self,
            cls=cls,
            path=path,
            other_path=other_path,
            first_assigned=first_assigned,
            help=self.help_for(**slots),
            in_flax=self.in_flax.format(**slots),
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (find, (self.code,))


class Registry:
    """All rules, by code and by name, in the order of their codes."""

    def __init__(self) -> None:
        self._by_key: dict[str, Rule] = {}
        self._rules: dict[str, Rule] = {}

    def add(self, rule: Rule) -> Rule:
        """Register a rule; a code or name that is taken is a programming error."""
        for key in (rule.code, rule.name, *rule.aliases):
            if key in self._by_key:
                raise RuntimeError(f"{key!r} names both {self._by_key[key].code} and {rule.code}")
            self._by_key[key] = rule
        self._rules[rule.code] = rule
        return rule

    def get(self, key: str) -> Rule | None:
        """The rule with this code, name or former name."""
        return self._by_key.get(key)

    def nearest(self, key: str) -> str | None:
        """The known code or name that looks most like ``key``, for error messages."""
        import difflib

        close = difflib.get_close_matches(key, self._by_key, n=1, cutoff=0.6)
        return close[0] if close else None

    def __iter__(self) -> Iterator[Rule]:
        return iter(sorted(self._rules.values(), key=lambda rule: rule.code))

    def __len__(self) -> int:
        return len(self._rules)


def find(key: str) -> Rule:
    """The rule with this code or name; loads every family.

    Raises:
        KeyError: there is no such rule; the message suggests the nearest one.
    """
    from nnx_rules.rules import REGISTRY

    rule = REGISTRY.get(key)
    if rule is None:
        nearest = REGISTRY.nearest(key)
        raise KeyError(f"no rule {key!r}" + (f"; did you mean {nearest!r}?" if nearest else ""))
    return rule
