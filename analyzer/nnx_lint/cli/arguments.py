"""Reading flags: from words to values, by a table of options.

The usual conventions: ``--name value`` or ``--name=value``, ``-j4`` or ``-j 4``, letters of switches together
(``-qe``), ``--no-name`` to switch back, ``--`` before words that look like flags, flags and words in any order. Names
are not abbreviated. A flag that takes several values may be repeated; of any other the last one counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from nnx_lint.cli import UsageError
from nnx_lint.config.kinds import Switch, WrongValue
from nnx_lint.config.registry import BY_NAME
from nnx_lint.selection import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nnx_lint.config.registry import Option


class Parsed(NamedTuple):
    """What a command line says: values by option, and the words that are no flags."""

    values: dict[str, object]
    words: list[str]


class _Flag(NamedTuple):
    option: Option
    sets: bool | None
    """What a switch is set to; ``None`` if the flag takes a value."""


def parse(words: Iterable[str], options: Iterable[Option]) -> Parsed:
    """Read a command line.

    Raises:
        UsageError: there is no such flag, or its value is wrong.
    """
    flags = _table(options)
    parsed = Parsed({}, [])
    rest = iter(words)
    for word in rest:
        if word == "--":
            parsed.words.extend(rest)
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            _set(parsed, flags, name, value if equals else None, rest)
        elif word.startswith("-") and len(word) > 1:
            _letters(parsed, flags, word, rest)
        else:
            parsed.words.append(word)
    return parsed


def _table(options: Iterable[Option]) -> dict[str, _Flag]:
    flags: dict[str, _Flag] = {}
    for option in options:
        if not isinstance(option.kind, Switch):
            flags.update((flag, _Flag(option, None)) for flag in option.flags)
            continue
        for flag in option.flags:
            short = not flag.startswith("--")
            flags[flag] = _Flag(option, not option.default if short else not flag.startswith("--no-"))
    return flags


def _letters(parsed: Parsed, flags: dict[str, _Flag], word: str, rest: Iterator[str]) -> None:
    for at, letter in enumerate(word[1:], 1):
        flag = flags.get(f"-{letter}")
        if flag is not None and flag.sets is None:
            _set(parsed, flags, f"-{letter}", word[at + 1 :].removeprefix("=") or None, rest)
            return
        _set(parsed, flags, word if flag is None else f"-{letter}", None, rest)


def _set(parsed: Parsed, flags: dict[str, _Flag], name: str, value: str | None, rest: Iterator[str]) -> None:
    if name not in flags:
        raise UsageError(_unknown(name, flags))
    option, sets = flags[name]
    if sets is not None:
        if value is not None:
            raise UsageError(f"{name} takes no value")
        parsed.values[option.name] = sets
        return
    value = next(rest, None) if value is None else value
    if not value:
        raise UsageError(f"{name} needs a value: {option.kind.metavar}")
    try:
        read = option.kind.parse(value)
    except WrongValue as error:
        raise UsageError(f"{name} must be {error.expected}, not {value!r}{error.hint}") from None
    before = parsed.values.get(option.name) if option.kind.many else None
    parsed.values[option.name] = read if before is None else cast("tuple[object, ...]", (*before, *read))  # type: ignore[misc]


def _unknown(name: str, flags: dict[str, _Flag]) -> str:
    if name[2:] in BY_NAME:
        return f"{name} is no flag of this command: `nnx-lint config {name[2:]}` says where the option may be given"
    hint = nearest(name, [flag for flag in flags if flag.startswith("--")])
    return f"unknown option {name}" + (f"; did you mean {hint}?" if hint else "; see nnx-lint --help")
