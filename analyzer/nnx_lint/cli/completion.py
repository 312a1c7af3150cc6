"""``nnx-lint generate-shell-completion``: scripts for bash, zsh and fish, made of the tables of commands and options.

A script holds the words themselves, so that completing starts no process; after an update it is generated again.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from nnx_lint.cli import CLEAN, COMMANDS, UsageError
from nnx_lint.config.kinds import Text
from nnx_lint.config.registry import BY_NAME, LINE, OPTIONS, Option
from nnx_lint.drawing import FLAGS, FORMATS
from nnx_lint.selection import EVERYTHING, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_SELECTING = ("select", "extend-select", "ignore")

_FILES = 'COMPREPLY=($(compgen -f -- "$word"))'
"""What completes the name of a file in bash; names may have spaces, so that only newlines part words."""


def generate_shell_completion(words: list[str]) -> int:
    """Print the script for a shell."""
    if len(words) != 1 or words[0] not in SHELLS:
        hint = nearest(words[0], SHELLS) if len(words) == 1 else None
        raise UsageError(
            f"`nnx-lint generate-shell-completion` takes one of {', '.join(SHELLS)}"
            + (f"; did you mean {hint}?" if hint else "")
        )
    sys.stdout.write(SHELLS[words[0]]())
    return CLEAN


def _options() -> list[Option]:
    return [option for option in OPTIONS if LINE in option.places]


def _flags(option: Option) -> list[str]:
    """The flags worth offering: of a switch, those that change what is so by default."""
    return [f"-{option.short}", option.flag] if option.short else [option.flag]


def _values(option: Option) -> list[str]:
    """The words that may follow the flag."""
    if option.name in _SELECTING:
        return _rules()
    return list(option.kind.choices)


def _rules() -> list[str]:
    from nnx_rules.rules import REGISTRY

    return [EVERYTHING, *(key for rule in REGISTRY for key in (rule.code, rule.name))]


def _takes_path(option: Option) -> bool:
    return (isinstance(option.kind, Text) and option.kind.name == "a path") or option.name in ("config", "src")


def _arguments() -> dict[str, list[str]]:
    """The words that may follow a command."""
    return {"rule": _rules()[1:], "config": ["--schema", *BY_NAME], "generate-shell-completion": list(SHELLS)}


def _bash() -> str:
    lines = [
        "_nnx_lint() {",
        """    local IFS=$'\\n' word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}\"""",
    ]
    lines += ['    local command="${COMP_WORDS[1]}" head=""', "    COMPREPLY=()"]
    # Of `--flag=value`, bash makes three words.
    lines += ["""    if [[ "$before" == "=" ]]; then before="${COMP_WORDS[COMP_CWORD-2]}"; fi"""]
    lines += ["""    if [[ "$word" == "=" ]]; then word=""; fi""", '    case "$command:$before" in']
    lines += [f"        graph:--format) {_words(FORMATS)}; return;;", "        graph:--depth) return;;"]
    lines += [f"        graph:--output|graph:-o) {_FILES}; return;;", "    esac", '    case "$before" in']
    for option in _options():
        pattern = "|".join(_flags(option))
        if option.name in _SELECTING:
            apart = 'if [[ "$word" == *,* ]]; then head="${word%,*},"; word="${word##*,}"; fi'
            lines.append(f"        {pattern}) {apart}; {_words(_values(option))}; return;;")
        elif values := _values(option):
            lines.append(f"        {pattern}) {_words(values)}; return;;")
        elif _takes_path(option):
            lines.append(f"        {pattern}) {_FILES}; return;;")
        elif option.kind.metavar:
            lines.append(f"        {pattern}) return;;")
    lines += ["    esac", '    case "$command" in']
    for command, words in _arguments().items():
        lines.append(f"        {command}) {_words(words)}; return;;")
    lines += [f"""        graph) if [[ "$word" == -* ]]; then {_words([*FLAGS, "--help"])}; return; fi;;"""]
    flags = [*(flag for option in _options() for flag in _flags(option)), "--help", "--version"]
    lines += [
        "    esac",
        '    if [[ "$word" == -* ]]; then',
        f"        {_words(flags)}",
        "    else",
        f"        {_FILES}",
        f"        ((COMP_CWORD == 1)) && {_words(COMMANDS, more=True)}",
        "    fi",
        "}",
        "complete -o filenames -F _nnx_lint nnx-lint",
    ]
    return "\n".join(lines) + "\n"


def _words(words: Iterable[str], *, more: bool = False) -> str:
    """What completes one of some words in bash, after what is there already of a list with commas."""
    listed = "\\n".join(words)
    return f"""COMPREPLY{"+" if more else ""}=($(compgen -P "$head" -W $'{listed}' -- "$word"))"""


def _zsh() -> str:
    lines = ["#compdef nnx-lint", "", "_nnx_lint() {", "    local -a commands=("]
    lines += [f"        {_quoted(f'{name}:{does}')}" for name, (_, does) in COMMANDS.items()]
    lines += ["    )", "    local -a flags=("]
    for option in _options():
        says = (option.off or option.brief).replace("[", r"\[").replace("]", r"\]").replace(":", r"\:")
        values = _values(option)
        action = f"({' '.join(values)})" if values else "_files" if _takes_path(option) else " "
        if option.name in _SELECTING:
            action = f"_values -s , rule {' '.join(values)}"
        value = f":{option.kind.metavar}:{action}" if option.kind.metavar else ""
        for flag in _flags(option):
            spelled = f"{flag}=" if value and flag.startswith("--") else flag  # `=`: a space or an equals sign
            lines.append(f"        {_quoted(f'*{spelled}[{says}]{value}')}")
    lines += ["        '--help[print the help]'", "        '--version[print the version]'", "    )"]
    lines.append('    case "${words[2]}" in')
    for command, words in _arguments().items():
        lines.append(f"        {command}) compadd -- {' '.join(words)}; return;;")
    drawing = {"--format": f"FORMAT:({' '.join(FORMATS)})", "--depth": "N: "}
    flags = {flag: f"{flag}=" if flag.startswith("--") else flag for flag in FLAGS}
    specs = " ".join(_quoted(f"{flags[flag]}:{drawing.get(flag, 'FILE:_files')}") for flag in FLAGS)
    lines.append(f"        graph) _arguments {specs} '*:path:_files'; return;;")
    lines += [
        "    esac",
        "    ((CURRENT == 2)) && _describe -t commands command commands",
        '    _arguments -s $flags "*:path:_files"',
        "}",
        "",
        'if [[ "$funcstack[1]" == _nnx_lint ]]; then _nnx_lint "$@"; else compdef _nnx_lint nnx-lint; fi',
    ]
    return "\n".join(lines) + "\n"


def _fish() -> str:
    start = "complete -c nnx-lint"
    lines = ["function _nnx_lint_rules", rf"    printf '%s\n' {' '.join(_rules())}", "end"]
    lines += [f"{start} -n __fish_use_subcommand -a {name} -d {_quoted(does)}" for name, (_, does) in COMMANDS.items()]
    lines += [f"{start} -n '__fish_seen_subcommand_from graph' -l format -x -a {_quoted(' '.join(FORMATS))}"]
    lines += [
        f"{start} -n '__fish_seen_subcommand_from graph' {spelled} -r" for spelled in ("-s o -l output", "-l depth")
    ]
    others = " ".join(name for name in COMMANDS if name != "check")
    checking = f"-n {_quoted(f'not __fish_seen_subcommand_from {others}')}"
    for option in _options():
        for flag in _flags(option):
            spelled = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
            values = _values(option)
            offered = _quoted(
                "(__fish_complete_list , _nnx_lint_rules)" if option.name in _SELECTING else " ".join(values)
            )
            follows = f" -x -a {offered}" if values else " -r" if option.kind.metavar else ""
            lines.append(f"{start} {checking} {spelled}{follows} -d {_quoted(option.off or option.brief)}")
    lines += [f"{start} -l help -d 'print the help'", f"{start} -l version -d 'print the version'"]
    lines += [
        f"{start} -f -n {_quoted(f'__fish_seen_subcommand_from {command}')} -a {_quoted(' '.join(words))}"
        for command, words in _arguments().items()
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\"'\"'") + "'"


SHELLS: dict[str, Callable[[], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
