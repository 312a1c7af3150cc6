"""The options of nnx-lint: one table, from which everything that names an option is made.

Reading configuration files, the flags of ``check`` and their help, ``nnx-lint config``, the JSON schema, completion in
the shell and the settings of editors all come from :data:`OPTIONS`. An option that is not here does not exist; one that
is here exists everywhere that its places say.

The first paragraph of an option's text is one line: the help prints it. A value that is ``None`` by default means what
``unset`` says.
"""

from __future__ import annotations

from typing import NamedTuple

from nnx_lint.config.kinds import Choice, Count, Kind, Levels, PerFile, Switch, Text, Words
from nnx_lint.selection import OFF

FILE, LINE, EDITOR = "configuration file", "command line", "editor"
BOTH = (FILE, LINE)
EVERYWHERE = (FILE, LINE, EDITOR)

LEVELS = ("error", "warning", "info", OFF)

EXCLUDED = (".*", "__pycache__", "build", "dist", "node_modules", "site-packages", "venv")
"""What a walk leaves out by default: what nobody writes by hand."""


class Option(NamedTuple):
    """One option.

    Attributes:
        group: the heading that the help shows it under.
        doc: what it does; of a switch, what it does where it is on.
        default: its value where nobody gives one.
        unset: what happens then, in words, where the default is ``None``.
        short: a flag of one letter, which sets a switch to what it is not by default.
        off: of a switch that is on by default, what switching it off does; the help shows that flag.
        places: where it can be given. A value from an editor's settings counts as one from the command line: it wins
            over configuration files.
        per_run: whether one run has one value, from the configuration of the folder that it runs in; the others are
            settled for each file, by the configuration nearest to it.
    """

    name: str
    group: str
    kind: Kind
    default: object
    doc: str
    places: tuple[str, ...] = BOTH
    unset: str = ""
    short: str = ""
    per_run: bool = False
    off: str = ""

    @property
    def brief(self) -> str:
        """The first line of its text."""
        return self.doc.partition("\n")[0]

    @property
    def flags(self) -> list[str]:
        """How a command line spells it; a switch can also be switched back."""
        if LINE not in self.places:
            return []
        flags = [f"-{self.short}"] if self.short else []
        flags.append(f"--{self.name}")
        return [*flags, f"--no-{self.name}"] if isinstance(self.kind, Switch) else flags

    @property
    def setting(self) -> str:
        """How the settings of an editor spell it: in camel case, below ``nnx``; empty if they cannot have it."""
        if EDITOR not in self.places:
            return ""
        first, *more = self.name.split("-")
        return "nnx." + first + "".join(map(str.capitalize, more))

    @property
    def flag(self) -> str:
        """The flag that the help shows: of a switch, the one that changes the default."""
        return f"--no-{self.name}" if self.default is True else f"--{self.name}"


def _formats() -> tuple[str, ...]:
    from nnx_lint.output import FORMATS

    return tuple(FORMATS)


def _target(text: str) -> object:
    from nnx_lint.target import parse

    return parse(text)


RULES, TARGET, FILES, FIXES, KNOWN, OUTPUT, RUN, EDITORS = (
    "which rules",
    "what the code runs on",
    "which files",
    "fixes",
    "known findings",
    "output",
    "run",
    "editors",
)
_SELECTORS = Words("rules", "RULES")
_PATTERNS = Words("patterns", "PATTERNS")
_PATTERN_DOC = "Patterns are those of .gitignore, relative to the folder of the configuration file."

OPTIONS: tuple[Option, ...] = (
    Option(
        "select",
        RULES,
        _SELECTORS,
        None,
        "report only these rules\n"
        "A rule is named by its code (NNX101), a prefix of codes (NNX1), its name (data-in-static-attribute), or ALL. "
        "The more specific of select and ignore wins, whatever the order; on a draw, ignore wins. The command line "
        "wins over the file, and a file over the one that it extends.",
        places=EVERYWHERE,
        unset="the rules that `nnx-lint rules` marks as default",
    ),
    Option(
        "extend-select",
        RULES,
        _SELECTORS,
        (),
        "report these rules too\nAs select, but adds to what is selected instead of replacing it.",
        places=EVERYWHERE,
    ),
    Option(
        "ignore",
        RULES,
        _SELECTORS,
        (),
        "leave these rules out; the more specific of select and ignore wins",
        places=EVERYWHERE,
    ),
    Option(
        "rules",
        RULES,
        Levels(LEVELS),
        {},
        "the level of rules: error, warning, info or off\n"
        "A table from rules, named as in select, to levels. A level other than off also selects the rule. The most "
        "specific entry wins. Editors and reports show the level; whatever it is, a finding makes the exit code 1.",
        places=(FILE, EDITOR),
    ),
    Option(
        "per-file-ignores",
        RULES,
        PerFile(),
        {},
        "leave rules out in some files\n"
        f"A table from patterns to lists of rules. {_PATTERN_DOC} A pattern that starts with ! means all other files.",
        places=EVERYWHERE,
    ),
    Option(
        "extend-per-file-ignores",
        RULES,
        PerFile(),
        {},
        "leave rules out in some more files\nAs per-file-ignores, but adds to it instead of replacing it.",
        places=EVERYWHERE,
    ),
    Option(
        "target",
        TARGET,
        Text(
            "flax-VERSION or nnxkit, such as flax-0.12",
            "TARGET",
            _target,
            ("flax-0.10", "flax-0.11", "flax-0.12", "nnxkit"),
        ),
        None,
        "the library that the code runs on, such as flax-0.12\n"
        "Rules hold for some versions of flax, or for nnxkit, only. flax-0.12 stands for the newest 0.12, flax-0.12.3 "
        "for that release. Nothing is imported or run to find the version. What is deprecated there is reported where "
        "a target is named, and mended by `--fix`.",
        places=EVERYWHERE,
        unset="the version that lock files, requirements or the installed distribution of the project name, else the "
        "newest; code that imports nnxkit is checked as such",
    ),
    Option(
        "src",
        TARGET,
        Words("folders", "FOLDERS"),
        (),
        "folders that absolute imports start from\n"
        "Besides these, imports start from the folder above every package that is checked, from every folder that is "
        "named, and from the current one if it is the top of a project. Relative to the folder of the configuration "
        "file.",
        places=EVERYWHERE,
    ),
    Option(
        "exclude",
        FILES,
        _PATTERNS,
        EXCLUDED,
        f"leave out these files and folders\n{_PATTERN_DOC} A path that is named on the command line is checked "
        "nevertheless, unless force-exclude is set.",
        places=EVERYWHERE,
    ),
    Option(
        "extend-exclude",
        FILES,
        _PATTERNS,
        (),
        "leave out these too\nAs exclude, but adds to it instead of replacing it.",
        places=EVERYWHERE,
    ),
    Option(
        "force-exclude",
        FILES,
        Switch(),
        False,
        "leave excluded files out even if they are named\nFor pre-commit, which names every changed file.",
    ),
    Option(
        "respect-gitignore",
        FILES,
        Switch(),
        True,
        "leave out what .gitignore excludes\n"
        "As git does: .gitignore files from the root of the repository down to the file, and .git/info/exclude.",
        places=EVERYWHERE,
        off="check what .gitignore excludes, too",
    ),
    Option("fix", FIXES, Switch(), False, "apply safe fixes, and report what is left", per_run=True),
    Option(
        "unsafe-fixes",
        FIXES,
        Switch(),
        False,
        "let --fix and --diff apply fixes that may change what the program does",
        per_run=True,
    ),
    Option(
        "diff",
        FIXES,
        Switch(),
        False,
        "print what --fix would change as a unified diff, and change nothing",
        places=(LINE,),
        per_run=True,
    ),
    Option(
        "exit-non-zero-on-fix",
        FIXES,
        Switch(),
        False,
        "exit with 1 if --fix changed anything, even if nothing is left",
        places=(LINE,),
        per_run=True,
    ),
    Option(
        "add-ignore",
        KNOWN,
        Switch(),
        False,
        "write a comment that silences it beside every finding",
        places=(LINE,),
        per_run=True,
    ),
    Option(
        "baseline",
        KNOWN,
        Text("a path", "FILE"),
        None,
        "do not report the findings that this file lists\n"
        "--update-baseline writes it. It names findings by rule, enclosing symbol and line of code, never by line "
        "number. Relative to the folder of the configuration file.",
        unset="there is no baseline",
        per_run=True,
    ),
    Option(
        "update-baseline",
        KNOWN,
        Switch(),
        False,
        "write the findings of this run to the baseline",
        places=(LINE,),
        per_run=True,
    ),
    Option(
        "output-format",
        OUTPUT,
        Choice("FORMAT", _formats),
        "full",
        "how findings are printed",
        per_run=True,
    ),
    Option(
        "statistics",
        OUTPUT,
        Switch(),
        False,
        "print how often each rule was found instead of the findings",
        places=(LINE,),
        per_run=True,
    ),
    Option(
        "exit-zero",
        OUTPUT,
        Switch(),
        False,
        "exit with 0 even if there are findings",
        places=(LINE,),
        short="e",
        per_run=True,
    ),
    Option(
        "quiet",
        OUTPUT,
        Switch(),
        False,
        "print findings only: no summary, no progress",
        places=(LINE,),
        short="q",
        per_run=True,
    ),
    Option(
        "verbose",
        OUTPUT,
        Switch(),
        False,
        "say on standard error which files were read, and why a cache was not written",
        places=(LINE,),
        short="v",
        per_run=True,
    ),
    Option(
        "show-files",
        OUTPUT,
        Switch(),
        False,
        "print the files that would be checked, and stop",
        places=(LINE,),
        per_run=True,
    ),
    Option(
        "show-settings",
        OUTPUT,
        Switch(),
        False,
        "print the settings of the first file, and stop",
        places=(LINE,),
        per_run=True,
    ),
    Option(
        "watch",
        RUN,
        Switch(),
        False,
        "check again whenever a file changes",
        places=(LINE,),
        short="w",
        per_run=True,
    ),
    Option(
        "stdin-filename",
        RUN,
        Text("a path", "PATH"),
        None,
        "the name of standard input (-): settings and reports use it",
        places=(LINE,),
        unset="standard input is reported as <stdin>",
        per_run=True,
    ),
    Option(
        "jobs",
        RUN,
        Count(),
        None,
        "the number of processes at most",
        unset="as many as there are processors, where the files are worth it",
        short="j",
        per_run=True,
    ),
    Option(
        "cache",
        RUN,
        Switch(),
        True,
        "keep what was found, and check again only what changed\n"
        "The cache is in cache-dir; it may be removed at any time.",
        short="n",
        per_run=True,
        off="neither read nor write the cache",
    ),
    Option(
        "cache-dir",
        RUN,
        Text("a path", "FOLDER"),
        ".nnx_lint_cache",
        "where the cache is kept\nRelative to the folder of the configuration file, or to the current one.",
        per_run=True,
    ),
    Option(
        "config",
        RUN,
        Words("files and settings", "FILE|KEY=VALUE", separator=""),
        (),
        "read this file instead of the nearest one; or set one option\n"
        '`--config \'per-file-ignores."tests/*" = ["NNX1"]\'` sets an option as a line of nnx-lint.toml does; it wins '
        "over every file. Paths are then relative to the current folder.",
        places=(LINE, EDITOR),
        per_run=True,
    ),
    Option(
        "isolated",
        RUN,
        Switch(),
        False,
        "ignore all configuration files",
        places=(LINE,),
        per_run=True,
    ),
    Option(
        "extend",
        RUN,
        Text("a path", "FILE"),
        None,
        "another configuration file that this one builds upon\n"
        "What this file gives replaces what that one gives, except that rules add up as select and ignore say, and the "
        "extend- options always add. Relative to the folder of the configuration file.",
        places=(FILE,),
        unset="nothing is inherited: only the nearest configuration file is read",
    ),
    Option(
        "diagnostic-mode",
        EDITORS,
        Choice("MODE", lambda: ("workspace", "open-files")),
        "workspace",
        "which files findings are reported of\n"
        "workspace: of all files of the workspace, which are looked through in the background; open-files: of those "
        "that are open.",
        places=(EDITOR,),
    ),
    Option("enable", EDITORS, Switch(), True, "report findings, also while a file is being edited", places=(EDITOR,)),
    Option(
        "hint-status",
        EDITORS,
        Switch(),
        True,
        "show beside an assignment to an attribute whether it is data or static",
        places=(EDITOR,),
    ),
    Option(
        "hint-filters",
        EDITORS,
        Switch(),
        True,
        "show beside the targets of split, state and pop which filter they belong to",
        places=(EDITOR,),
    ),
    Option(
        "hint-captures",
        EDITORS,
        Switch(),
        True,
        "show beside a transform which objects its function closes over",
        places=(EDITOR,),
    ),
    Option(
        "hint-shapes",
        EDITORS,
        Switch(),
        True,
        "show beside a layer the shapes of its parameters, where the sizes are literal",
        places=(EDITOR,),
    ),
    Option(
        "code-lens",
        EDITORS,
        Switch(),
        True,
        "show above a Module how many parameters it has, where the sizes are literal",
        places=(EDITOR,),
    ),
    Option(
        "semantic-tokens",
        EDITORS,
        Switch(),
        True,
        "colour attributes by data and static, in themes that know semantic tokens",
        places=(EDITOR,),
    ),
)

BY_NAME: dict[str, Option] = {option.name: option for option in OPTIONS}
