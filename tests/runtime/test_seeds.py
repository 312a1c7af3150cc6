"""The documents that the project started from: their snippets run, and print what they say."""

import subprocess
import sys
from pathlib import Path

import pytest

import seeds
from compiling import ordinary
from seeds import Page

PAGES = sorted((Path(__file__).parent / "seeds").glob("*.md"))


@pytest.mark.parametrize("path", PAGES, ids=[path.stem for path in PAGES])
def test_the_snippets_print_what_the_page_says(path: Path) -> None:
    # A process of its own, because what a model computes to the last digit depends on how it was compiled.
    command = [sys.executable, seeds.__file__, path]
    report = subprocess.run(command, env=ordinary(), stdout=subprocess.PIPE, text=True, check=True).stdout
    assert not report, report


def test_a_wrong_page_is_reported(tmp_path: Path) -> None:
    page = tmp_path / "wrong.md"
    page.write_text("```python\n>>> 1 + 1\n3\n>>> 1 / 0\n```\n", encoding="utf-8")
    report = Page(page).run()
    assert "- 3" in report
    assert "ZeroDivisionError" in report


def test_a_page_without_snippets_is_no_page() -> None:
    assert len(PAGES) == 4
    assert all(Page(path).examples for path in PAGES)
