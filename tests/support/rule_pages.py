"""Rule pages: `tests/rules/<rule>.md`, the specification, the documentation and the test of one rule.

A page is prose with programs in fenced blocks. The word after `python` says what the block is for, the words after that
what happens when it runs:

    ```python bad raises=AttributeStatusError          the linter marks it, and running it raises
    ```python bad raises=X flax-raises=silent          … differently on flax; `warns=` is split in the same way
    ```python bad silent                               … it runs to its end, and its asserts prove the harm
    ```python bad raises=X rule=other                 … and the runtime names another rule, which covers this one too
    ```python bad unseen raises=X                      the linter cannot see it; only running it fails
    ```python fixed                                    what `--fix` makes of the bad program before it
    ```python fixed unsafe                             … what `--fix --unsafe-fixes` makes of it
    ```python good                                     no default rule marks it, and it runs

and `on=flax` or `on=nnxkit` (one library only), `warns=DeprecationWarning` (that warning and no other), `norun` (linted
only), and `target=flax-0.12.3` (linted as with that `--target`). A bad program marks its lines,
`# error: [rule-name] "part of the message"`, several times on one if need be. Programs import `nnxkit`; the
same program on flax differs in that import and in nothing else.

Invariants: a block's text is without marks, and has as many lines as the block on the page, so line numbers agree; a
page that cannot be understood is a `PageError` that names the line, never a block that is silently left out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

NNXKIT, FLAX = "nnxkit", "flax"
LIBRARIES = (NNXKIT, FLAX)
ROLES = ("bad", "fixed", "good")
SECTIONS = ("Why it matters", "Bad", "Good", "What it does not see", "At run time")
"""The headings that every page has; a page with fixed programs has `FIXED` too."""

FIXED = "Fixed"
FIXING = "How the fix works"
"""The heading under which the page of a rule with a fix says what that changes, and when it is not made."""

UNFIXED = "Why there is no fix"
"""The heading under which the page of a rule without a fix says why."""

FLAGS = frozenset({"norun", "silent", "unsafe", "unseen"})
SETTINGS = frozenset(prefix + key for prefix in ("", "flax-", "nnxkit-") for key in ("raises", "warns")) | {
    "on",
    "rule",
    "target",
}

_FENCE = re.compile(r"^(`{3,})(.*)$")
_MARK_COMMENT = re.compile(r"\s*# error: (?=\[)")
_MARK = re.compile(r'\[(?P<rule>[a-z0-9-]+)\] "(?P<part>(?:[^"\\]|\\.)*)"')
_IMPORT = re.compile(r"^(?P<indent>\s*)(?:import nnxkit as (?P<name>\w+)|from nnxkit import )", re.MULTILINE)


class PageError(Exception):
    """A page is not written as pages are; the message begins with the file and the line."""


@dataclass(frozen=True)
class Mark:
    """What the linter is to say about a line of a program."""

    line: int
    rule: str
    part: str


@dataclass(frozen=True)
class Block:
    """A program on a page.

    Attributes:
        number: counts the blocks of a role from one.
        line: the line of the page on which the program's first line stands.
        text: the program without marks, as it is written: for nnxkit, unless it is for flax only.
        before: the bad program that a fixed one comes from.
    """

    page: Path
    role: str
    number: int
    line: int
    text: str
    marks: tuple[Mark, ...]
    flags: frozenset[str]
    settings: dict[str, str] = field(hash=False)
    before: "Block | None" = None

    @property
    def name(self) -> str:
        """`data-in-static-attribute/bad-1`."""
        return f"{self.page.stem}/{self.role}-{self.number}"

    @property
    def libraries(self) -> tuple[str, ...]:
        """The libraries that the program is for."""
        return (self.settings["on"],) if "on" in self.settings else LIBRARIES

    def setting(self, key: str, library: str) -> str | None:
        """What the block says about `raises` or `warns` on a library."""
        return self.settings.get(f"{library}-{key}", self.settings.get(key))

    def source(self, library: str) -> str:
        """The program for a library; one with a target is what it is."""
        return self.text if library == NNXKIT or "target" in self.settings else _IMPORT.sub(_flax_import, self.text)


@dataclass(frozen=True)
class Page:
    """A rule page: its title, its headings of the second level in their order, its programs."""

    path: Path
    title: str
    summary: str
    sections: tuple[str, ...]
    blocks: tuple[Block, ...]

    @property
    def rule(self) -> str:
        """The name of the rule that the page is about."""
        return self.path.stem


def read_page(path: Path) -> Page:
    """Read a page.

    Raises:
        PageError: the page is not written as the module docstring says.
    """
    title, sections, summary, blocks = "", [], "", []
    for line, text, code in _paragraphs(path):
        if code is not None:
            if text.split()[:1] == ["python"]:
                blocks.append(_block(path, line, text, code, blocks))
        elif text.startswith("# "):
            if title:
                raise PageError(f"{path}:{line}: a second title")
            title = text[2:].strip()
        elif text.startswith("## "):
            sections.append(text[3:].strip())
        elif title and not sections and not summary:
            summary = text
    return Page(path, title, summary, tuple(sections), tuple(blocks))


def _paragraphs(path: Path) -> Iterator[tuple[int, str, str | None]]:
    """Lines that are not blank, with their numbers, and fenced blocks as (line of the fence, info string, code)."""
    lines = enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
    for number, text in lines:
        fence = _FENCE.match(text)
        if fence is None:
            if text.strip():
                yield number, text, None
            continue
        code: list[str] = []
        for _, inner in lines:
            if inner.rstrip() == fence[1]:
                break
            code.append(inner)
        else:
            raise PageError(f"{path}:{number}: the block does not end")
        yield number, fence[2].strip(), "".join(f"{inner}\n" for inner in code)


def _block(path: Path, line: int, info: str, code: str, before: list[Block]) -> Block:
    _, *words = info.split()
    role, *options = words or ("",)
    if role not in ROLES:
        raise PageError(f"{path}:{line}: a Python block says which it is, {', '.join(ROLES)}, not {role!r}")
    flags = frozenset(word for word in options if "=" not in word)
    settings = dict(word.split("=", 1) for word in options if "=" in word)
    for word in (*(flags - FLAGS), *(settings.keys() - SETTINGS)):
        raise PageError(
            f"{path}:{line}: a block does not say {word!r}; known are {', '.join(sorted(FLAGS | SETTINGS))}"
        )
    if settings.get("on", NNXKIT) not in LIBRARIES:
        raise PageError(f"{path}:{line}: on={settings['on']} is no library; known are {', '.join(LIBRARIES)}")

    text, marks = _unmarked(path, line, code)
    origin = None
    if role == "fixed":
        if not before or before[-1].role == "good":
            raise PageError(f"{path}:{line}: a fixed program follows the bad program that it comes from")
        origin = before[-1].before or before[-1]
        settings = {key: value for key, value in origin.settings.items() if key in ("on", "target")} | settings
        flags |= origin.flags & {"norun"}
    _agree(path, line, role, flags, settings, marks)
    if settings.get("on") != FLAX and not _IMPORT.search(text):
        raise PageError(f"{path}:{line}: no line is `import nnxkit as nnx`; a program for flax only says on=flax")
    number = 1 + sum(block.role == role for block in before)
    return Block(path, role, number, line + 1, text, marks, flags, settings, origin)


def _agree(
    path: Path, line: int, role: str, flags: frozenset[str], settings: dict[str, str], marks: tuple[Mark, ...]
) -> None:
    """What a block says about itself fits its role."""
    fails = flags & {"silent"} or any(key.endswith("raises") for key in settings)
    problems = (
        (role == "bad" and not (marks or "unseen" in flags), "a bad program marks the lines that the linter reports"),
        (marks and "unseen" in flags, "what the linter cannot see has no marks"),
        (role != "bad" and marks, f"a {role} program has no marks"),
        (
            role == "bad" and not (fails or "norun" in flags),
            "a bad program says how it fails: raises=…, silent or norun",
        ),
        (role != "bad" and fails, f"a {role} program runs to its end: `raises` and `silent` are for bad ones"),
        (role != "fixed" and "unsafe" in flags, "`unsafe` is for fixed programs"),
        (role != "bad" and "unseen" in flags, "`unseen` is for bad programs"),
    )
    for is_so, problem in problems:
        if is_so:
            raise PageError(f"{path}:{line}: {problem}")


def _unmarked(path: Path, fence: int, code: str) -> tuple[str, tuple[Mark, ...]]:
    """A program without its marks, and the marks."""
    lines: list[str] = []
    marks: list[Mark] = []
    for number, line in enumerate(code.split("\n"), 1):
        program, *comments = _MARK_COMMENT.split(line)
        for comment in comments:
            found = list(_MARK.finditer(comment))
            if not found or _MARK.sub("", comment).strip(" ,;"):
                raise PageError(f'{path}:{fence + number}: a mark is `# error: [rule-name] "part of the message"`')
            marks += (Mark(number, mark["rule"], re.sub(r"\\(.)", r"\1", mark["part"])) for mark in found)
        lines.append(program)
    return "\n".join(lines), tuple(marks)


def _flax_import(match: re.Match[str]) -> str:
    name = match["name"]
    if name is None:
        return f"{match['indent']}from flax.nnx import "
    return f"{match['indent']}from flax import nnx" + (f" as {name}" if name != "nnx" else "")
