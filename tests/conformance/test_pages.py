"""The conformance suite: every rule has a page, and what the page says is so.

One test for each program and library, `rule-name/bad-1[nnxkit]`; `-k rule-name` runs the page of one rule. Without jax
the halves that run programs are skipped, and the linter's half remains.
"""

from pathlib import Path

import pytest

import conformance
import programs
from nnx_rules.rules import REGISTRY
from repository import ROOT
from rule_pages import Block, PageError, read_page

PAGES = sorted((ROOT / "tests" / "rules").glob("*.md"))


def _programs() -> list[tuple[Block, str]]:
    """The programs of all pages for all of their libraries; the pages that cannot be read fail in `test_page`."""
    found: list[tuple[Block, str]] = []
    for path in PAGES:
        try:
            page = read_page(path)
        except PageError:
            continue
        found += ((block, library) for block in page.blocks for library in block.libraries)
    return found


def _parameters(chosen: list[tuple[Block, str]]) -> pytest.MarkDecorator:
    ids = [f"{block.name}[{library}]" for block, library in chosen]
    return pytest.mark.parametrize(("block", "library"), chosen, ids=ids)


def _none_of(problems: list[str]) -> None:
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


PROGRAMS = _programs()


@pytest.mark.parametrize("rule", [rule.name for rule in REGISTRY])
def test_every_rule_has_a_page(rule: str) -> None:
    assert rule in {path.stem for path in PAGES}


@pytest.mark.parametrize("path", PAGES, ids=[path.stem for path in PAGES])
def test_page(path: Path) -> None:
    problems = conformance.page_problems(read_page(path))

    _none_of(problems)


@_parameters(PROGRAMS)
def test_linter(block: Block, library: str) -> None:
    problems = conformance.lint_problems(block, library)

    _none_of(problems)


@_parameters([(block, library) for block, library in PROGRAMS if block.role == "fixed"])
def test_fix(block: Block, library: str) -> None:
    problems = conformance.fix_problems(block, library)

    _none_of(problems)


@_parameters([(block, library) for block, library in PROGRAMS if "norun" not in block.flags])
def test_run(block: Block, library: str) -> None:
    missing = programs.missing_for(library)
    if missing:
        pytest.skip(f"programs on {library} need {missing}, which is not installed")

    problems = conformance.run_problems(block, library)

    _none_of(problems)
