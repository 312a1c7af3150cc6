"""Promises about the repository's own text: documented commands exist, nothing names the machine it was written on."""

import os
import re
from pathlib import Path

import pytest

from repository import ROOT, repository_files

DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "examples/README.md",
    "vscode-extension/README.md",
    *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").glob("*.md"))),
)

# Where a machine's own folders show: a home, a workplace, a scratch environment, an interpreter manager, a mirror.
# The brackets keep these patterns from matching themselves.
MADE_BY_CI = ["editors", "test-second", "check", "test"]
MACHINE = re.compile(
    r"""
      (?<![\w.])/(?:wor[k]|roo[t]|hom[e]/[a-z]+|Users/[A-Z]\w+)/[\w.]
    | /tm[p]/v3\d
    | /op[t]/(?:pypi|wheels)
    | \.pyen[v]/
    | \.librar[y]/
    """,
    re.VERBOSE,
)
REGISTRY = re.compile(
    r"(?i)pypi\.or[g]/simple|files\.pythonhosted\.or[g]|registry\.npmjs\.or[g]|(?:extra-)?index-ur[l]\b"
)


def commands(document: str, program: str) -> set[str]:
    """First words after `program` in the code of a document: `make test` gives `test`."""
    text = (ROOT / document).read_text(encoding="utf-8")
    code = re.findall(r"```\w*\n(.*?)```|`([^`\n]+)`", text, re.DOTALL)
    return {
        match[1]
        for block in code
        for match in re.finditer(rf"(?:^|[\s$;&]){program} +([a-z][\w-]*)", "".join(block), re.MULTILINE)
    }


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documented_make_targets_exist(document: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

    assert commands(document, "make") <= targets


def test_readme_names_the_targets_that_a_newcomer_needs() -> None:
    assert {"demo", "test"} <= commands("README.md", "make")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_inside_the_repository_lead_somewhere(document: str) -> None:
    path = ROOT / document
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", path.read_text(encoding="utf-8"))

    assert [link for link in links if not (path.parent / link).exists()] == []


def test_ci_runs_the_documented_commands() -> None:
    script = ROOT / ".ci" / "run"

    assert os.access(script, os.X_OK)
    assert re.findall(r"^ *make ([\w-]+)", script.read_text(encoding="utf-8"), re.MULTILINE) == MADE_BY_CI


def offences(path: Path, pattern: re.Pattern[str]) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []
    lines = enumerate(text.splitlines(), start=1)
    return [f"{path.name}:{number}: {line.strip()}" for number, line in lines if pattern.search(line)]


@pytest.mark.parametrize("pattern", [MACHINE, REGISTRY], ids=["machine", "registry"])
def test_no_file_names_a_machine_or_a_registry_host(pattern: re.Pattern[str]) -> None:
    files = repository_files()
    assert ROOT / "pyproject.toml" in files

    assert [offence for path in files for offence in offences(path, pattern)] == []


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (MACHINE, "see /wor" + "k/main/x.py"),
        (MACHINE, "PYTHON=/tm" + "p/v311/bin/python"),
        (MACHINE, "cache: /roo" + "t/.cache"),
        (MACHINE, '"/hom' + 'e/ada/models"'),
        (REGISTRY, "https://pypi.or" + "g/simple/jax"),
        (REGISTRY, "pip install --index-ur" + "l X"),
    ],
)
def test_the_patterns_find_what_they_are_for(pattern: re.Pattern[str], line: str, tmp_path: Path) -> None:
    path = tmp_path / "note.md"
    path.write_text(f"first\n{line}\n", encoding="utf-8")

    assert offences(path, pattern) == [f"note.md:2: {line}"]


@pytest.mark.parametrize("line", ["a/work/around", "usr/bin/env", "https://example.org/work/x", "/tmp/model.py"])
def test_the_patterns_leave_ordinary_text_alone(line: str) -> None:
    assert not MACHINE.search(line)
    assert not REGISTRY.search(line)
