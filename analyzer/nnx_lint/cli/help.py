"""The help: one screen, made of the tables of commands and options."""

from __future__ import annotations

from nnx_lint.cli import COMMANDS
from nnx_lint.config.kinds import Choice
from nnx_lint.config.registry import LINE, OPTIONS, Option

_HEAD = """\
nnx-lint finds the mistakes of NNX code (flax.nnx and nnxkit) from its source, without running it.

usage: nnx-lint [check] [OPTIONS] [PATH ...]
       nnx-lint COMMAND [...]
       nnx-lint --version | --help
"""
_TAIL = """
PATH is a file, a folder (searched for .py and .ipynb files), or - for standard input. RULES are codes (NNX101),
prefixes (NNX1), names, or ALL, separated by commas. A switch can be switched back: --no-fix. `nnx-lint config` says
which options a configuration file may have: [tool.nnx-lint] in pyproject.toml, or nnx-lint.toml.
comments in the checked code: # nnx: ignore[NAME, NNX101]   # nnx: ignore-file[NAME]   # noqa: NNX101
exit codes: 0 nothing found   1 findings (with --diff: changes)   2 wrong usage, or a file that cannot be read or parsed
colours: on a terminal, unless NO_COLOR is set; FORCE_COLOR asks for them elsewhere
"""


def text() -> str:
    """The whole help."""
    options = [option for option in OPTIONS if LINE in option.places]
    width = max(map(len, map(_flags, options))) + 2
    parts = [_HEAD, "\ncommands\n"]
    parts += (f"  {name:<{width}}{does}\n" for name, (_, does) in COMMANDS.items())
    for group in dict.fromkeys(option.group for option in options):
        parts.append(f"{group}\n")
        parts += (f"  {_flags(option):<{width}}{_says(option)}\n" for option in options if option.group == group)
    return "".join((*parts, _TAIL))


def _flags(option: Option) -> str:
    short = f"-{option.short}, " if option.short else ""
    return f"{short}{option.flag} {option.kind.metavar}".rstrip()


def _says(option: Option) -> str:
    return ", ".join(option.kind.choices) if isinstance(option.kind, Choice) else option.off or option.brief
