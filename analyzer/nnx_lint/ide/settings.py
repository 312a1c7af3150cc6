"""The settings of an editor: the options that the registry allows there, in camel case.

They are values as on the command line, so they win over configuration files. What is wrong with one is said once, and
the others hold nevertheless: an editor without diagnostics because of one typing mistake helps nobody.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, cast

from nnx_lint.config.kinds import WrongKey, WrongValue
from nnx_lint.config.reading import Document, check_document
from nnx_lint.config.registry import BY_NAME, EDITOR, OPTIONS
from nnx_lint.selection import SelectionError, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nnx_lint.config.registry import Option

SECTION = "nnx"

BY_SETTING: dict[str, Option] = {
    option.setting.removeprefix(f"{SECTION}."): option for option in OPTIONS if EDITOR in option.places
}


class Settings(NamedTuple):
    """What an editor's settings say, by option; ``problems`` is what is wrong with them, ``raw`` what was read."""

    values: Mapping[str, object] = {}
    problems: tuple[str, ...] = ()
    raw: object = None

    def get(self, option: str) -> object:
        """The value of an option."""
        return self.values.get(option, BY_NAME[option].default)

    def switch(self, option: str) -> bool:
        """The value of an option that is on or off."""
        return bool(self.get(option))

    def flags(self, folder: str) -> Document:
        """What they say about checking, in the form of a command line in a folder."""
        values = {name: value for name, value in self.values.items() if BY_NAME[name].places != (EDITOR,)}
        if "config" in values:
            words = cast("Sequence[str]", values["config"])
            values["config"] = tuple(word if "=" in word else os.path.join(folder, word) for word in words)
        return Document(None, folder, values)


def read(raw: object) -> Settings:
    """Read what an editor sent; ``None`` and missing keys say nothing."""
    if raw is None:
        return Settings()
    if not isinstance(raw, dict):
        return Settings(problems=("the settings must be a table from options to values",))
    values: dict[str, object] = {}
    problems: list[str] = []
    for key, value in cast("Mapping[str, object]", raw).items():
        option = BY_SETTING.get(key)
        if option is None:
            hint = nearest(key, BY_SETTING)  # the section may hold settings of the editor's extension, too
            if hint is not None:
                problems.append(f"there is no setting {SECTION}.{key}; did you mean {SECTION}.{hint}?")
        elif value is not None:
            try:
                values[option.name] = option.kind.read(value)
                check_document(Document(None, "", {option.name: values[option.name]}))
            except WrongKey as error:
                problems.append(f"{option.setting}: `{error.key}` must be {error}")
            except WrongValue as error:
                problems.append(f"{option.setting} must be {error}")
            except SelectionError as error:
                problems.append(f"{option.setting}: {error}")
                del values[option.name]
    return Settings(values, tuple(problems), cast("object", raw))
