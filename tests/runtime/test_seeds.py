"""The documents that the project started from: their snippets run, and print what they say."""

from pathlib import Path

import pytest

from seeds import Page

PAGES = sorted((Path(__file__).parent / "seeds").glob("*.md"))


@pytest.mark.parametrize("path", PAGES, ids=[path.stem for path in PAGES])
def test_the_snippets_print_what_the_page_says(path: Path) -> None:
    report = Page(path).run()
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
