"""What ``[tool.nnx-mypy]`` says: what holds for mypy, where it differs from ``nnx-lint``.

The table lies in the ``pyproject.toml`` of the project's folder. ``findings = false`` leaves the findings to
``nnx-lint``. Every other key is an option of ``nnx-lint``; it wins over its configuration, as one on the command line
does.

The project's folder is the one that mypy runs in, or the one above it that has mypy's configuration, as mypy looks for
that in the folders above, too. Only a repository is taken for a project that mypy runs inside of: a configuration in
somebody's home would make all that lies there one project.
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
REPOSITORIES = (".git", ".hg")
"""What lies in the folder of a repository."""


class Settings(NamedTuple):
    """The settings of one run of mypy.

    Attributes:
        findings: whether findings are reported.
        options: options of ``nnx-lint``, checked.
    """

    findings: bool
    options: Mapping[str, object]

    @classmethod
    def of(cls, project: str) -> Settings:
        """Those of a project, by its folder.

        Raises:
            ConfigError: the table is wrong.
        """
        table = dict(_table(os.path.join(project, FILE)))
        findings = table.pop(FINDINGS, True)
        if not isinstance(findings, bool):
            raise ConfigError(f"{_shown((FINDINGS,))}: `{FINDINGS}` must be true or false, not {findings!r}")
        return cls(findings, checked(table, _shown))


def folder_of_project(configuration: str | None) -> str:
    """The folder of the project, by the file of mypy's configuration."""
    if configuration is None:
        return os.curdir
    folder = os.path.dirname(os.path.abspath(configuration))
    above = here = os.getcwd()
    while not any(os.path.exists(os.path.join(above, name)) for name in REPOSITORIES):
        if above == os.path.dirname(above):
            return os.curdir
        above = os.path.dirname(above)
    return folder if _is_below(here, folder) and (folder == above or _is_below(folder, above)) else os.curdir


def _is_below(folder: str, above: str) -> bool:
    return folder.startswith(os.path.join(above, ""))


def _table(path: str) -> Mapping[str, object]:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        table: object = parsed(text) if TABLE in text else {}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{os.path.abspath(path)}: cannot be read: {error}") from None
    for key in ("tool", TABLE):
        table = cast("Mapping[str, object]", table).get(key, {}) if isinstance(table, Mapping) else {}
    return cast("Mapping[str, object]", table) if isinstance(table, Mapping) else {}


def _shown(keys: tuple[str, ...]) -> str:
    return f"{FILE}: [tool.{TABLE}]"
