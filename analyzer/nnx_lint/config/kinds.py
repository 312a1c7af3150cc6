"""The types that options have: how a value is read from TOML and from a command line, and how it is described.

A kind is the one place that knows a type: reading, the error message, the JSON schema, the words in the documentation
and the completion of the shell all come from it. ``read`` takes what a TOML parser (or an editor's JSON) gives,
``parse`` takes the text after a flag; both return the same Python value or raise :class:`WrongValue`, whose text says
what would be right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Schema = dict[str, object]


class WrongValue(Exception):
    """A value that an option cannot have.

    Attributes:
        expected: what it must be, such as ``an integer``.
        hint: what was probably meant, to be put after that.
    """

    def __init__(self, expected: str, hint: str = "") -> None:
        super().__init__(expected + hint)
        self.expected = expected
        self.hint = hint


class Kind:
    """A type of options.

    Attributes:
        name: the type in words, as documentation shows it.
        metavar: what stands for the value in the help; empty for a flag without a value.
        many: whether a flag may be repeated, and its values add up.
    """

    name = ""
    metavar = ""
    many = False
    choices: tuple[str, ...] = ()

    def read(self, value: object) -> object:
        """Check a value from a configuration file."""
        raise NotImplementedError

    def parse(self, text: str) -> object:
        """Read the value of a flag."""
        return self.read(text)

    def schema(self) -> Schema:
        """The JSON schema of the values."""
        raise NotImplementedError


class Switch(Kind):
    """On or off."""

    name = "true or false"

    def read(self, value: object) -> bool:
        if isinstance(value, bool):
            return value
        raise WrongValue(self.name)

    def schema(self) -> Schema:
        return {"type": "boolean"}


class Count(Kind):
    """A positive integer."""

    name = "an integer of at least 1"
    metavar = "N"

    def read(self, value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        raise WrongValue(self.name)

    def parse(self, text: str) -> int:
        return self.read(int(text) if text.isdecimal() and text.isascii() else text)

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": 1}


class Text(Kind):
    """A string; ``valid`` raises ``ValueError`` for one that means nothing."""

    def __init__(
        self, name: str, metavar: str, valid: Callable[[str], object] | None = None, choices: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.metavar = metavar
        self.choices = tuple(choices)
        self._valid = valid

    def read(self, value: object) -> str:
        if not isinstance(value, str) or not value or "\0" in value:
            raise WrongValue(self.name)
        if self._valid is not None:
            try:
                self._valid(value)
            except ValueError:
                raise WrongValue(self.name) from None
        return value

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1, **({"examples": list(self.choices)} if self.choices else {})}


class Choice(Kind):
    """One of some words."""

    def __init__(self, metavar: str, choices: Callable[[], Sequence[str]]) -> None:
        self.metavar = metavar
        self._choices = choices

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """The words, from the table that defines them."""
        return tuple(self._choices())

    @property
    def name(self) -> str:  # type: ignore[override]
        """The words themselves."""
        return "one of " + ", ".join(self.choices)

    def read(self, value: object) -> str:
        if isinstance(value, str) and value in self.choices:
            return value
        raise WrongValue(self.name, _hint(value, self.choices))

    def schema(self) -> Schema:
        return {"type": "string", "enum": list(self.choices)}


class Words(Kind):
    """A list of strings; on the command line separated by commas, unless a value may hold one."""

    many = True

    def __init__(self, of: str, metavar: str, separator: str = ",") -> None:
        self.name = f"a list of {of}"
        self.metavar = metavar
        self._separator = separator

    def read(self, value: object) -> tuple[str, ...]:
        if isinstance(value, (list, tuple)):
            items = cast("Sequence[object]", value)
            if all(isinstance(item, str) for item in items):
                return tuple(cast("Sequence[str]", items))
        raise WrongValue(self.name)

    def parse(self, text: str) -> tuple[str, ...]:
        words = text.split(self._separator) if self._separator else [text]
        return tuple(word.strip() for word in words if word.strip())

    def schema(self) -> Schema:
        return {"type": "array", "items": {"type": "string"}}


class Levels(Kind):
    """A table from selectors to levels."""

    def __init__(self, levels: Sequence[str]) -> None:
        self.levels = tuple(levels)
        self.name = "a table from rules to " + ", ".join(levels)

    def read(self, value: object) -> Mapping[str, str]:
        if not isinstance(value, dict):
            raise WrongValue(self.name)
        table = cast("Mapping[str, object]", value)
        for selector, level in table.items():
            if level not in self.levels:
                raise WrongKey(selector, "one of " + ", ".join(self.levels), _hint(level, self.levels))
        return cast("Mapping[str, str]", table)

    def schema(self) -> Schema:
        return {"type": "object", "additionalProperties": {"type": "string", "enum": list(self.levels)}}


class PerFile(Kind):
    """A table from patterns of paths to selectors; on the command line ``PATTERN:SELECTOR``."""

    name = "a table from patterns to lists of rules"
    metavar = "PATTERN:RULE"
    many = True

    def read(self, value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
        if not isinstance(value, dict):
            raise WrongValue(self.name)
        table = cast("Mapping[str, object]", value)
        found: list[tuple[str, tuple[str, ...]]] = []
        for pattern, selectors in table.items():
            try:
                found.append((pattern, Words("rules", "").read(selectors)))
            except WrongValue as error:
                raise WrongKey(pattern, error.expected) from None
        return tuple(found)

    def parse(self, text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        found: list[tuple[str, tuple[str, ...]]] = []
        for word in text.split(","):
            pattern, colon, selector = word.strip().rpartition(":")
            if not (pattern and colon and selector.strip()):
                raise WrongValue("PATTERN:RULE, such as tests/*:NNX101")
            found.append((pattern.strip(), (selector.strip(),)))
        return tuple(found)

    def schema(self) -> Schema:
        return {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}}


class WrongKey(WrongValue):
    """A wrong value below a key of a table."""

    def __init__(self, key: str, expected: str, hint: str = "") -> None:
        super().__init__(expected, hint)
        self.key = key


def _hint(value: object, known: Sequence[str]) -> str:
    from nnx_lint.selection import nearest

    hint = nearest(value, known) if isinstance(value, str) else None
    return f"; did you mean {hint!r}?" if hint else ""
