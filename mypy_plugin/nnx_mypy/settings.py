"""What ``[tool.nnx-mypy]`` says: what holds for mypy, where it differs from ``nnx-lint``.

The table lies in the ``pyproject.toml`` of the folder that mypy runs in. ``findings = false`` leaves the findings to
``nnx-lint``. Every other key is an option of ``nnx-lint``; it wins over its configuration, as one on the command line
does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple, cast

from nnx_lint.config.reading import ConfigError, checked
from nnx_lint.toml import parsed

FILE = "pyproject.toml"
TABLE = "nnx-mypy"
FINDINGS = "findings"


class Settings(NamedTuple):
    """The settings of one run of mypy.

    Attributes:
        findings: whether findings are reported.
        options: options of ``nnx-lint``, checked.
    """

    findings: bool
    options: Mapping[str, object]

    @classmethod
    def here(cls) -> Settings:
        """Those of the current folder.

        Raises:
            ConfigError: the table is wrong.
        """
        table = dict(_table())
        findings = table.pop(FINDINGS, True)
        if not isinstance(findings, bool):
            raise ConfigError(f"{_shown((FINDINGS,))}: `{FINDINGS}` must be true or false, not {findings!r}")
        return cls(findings, checked(table, _shown))


def _table() -> Mapping[str, object]:
    try:
        with open(FILE, encoding="utf-8") as file:
            text = file.read()
        table: object = parsed(text) if TABLE in text else {}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{os.path.abspath(FILE)}: cannot be read: {error}") from None
    for key in ("tool", TABLE):
        table = cast("Mapping[str, object]", table).get(key, {}) if isinstance(table, Mapping) else {}
    return cast("Mapping[str, object]", table) if isinstance(table, Mapping) else {}


def _shown(keys: tuple[str, ...]) -> str:
    return f"{FILE}: [tool.{TABLE}]"
