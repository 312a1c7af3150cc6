"""Texts that are compiled during an import are compiled once, and mean what they mean without us."""

from __future__ import annotations

import builtins
import marshal
import sys
from typing import TYPE_CHECKING

import pytest

from nnx_lsp.generated import kept

if TYPE_CHECKING:
    from pathlib import Path
    from types import CodeType

TEXT = "def twice(number: Unknown = 21): return 2 * number"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What Python has really compiled."""
    texts: list[str] = []
    ordinary = builtins.compile

    def noting(source: str, *how: object, **named: object) -> CodeType:
        texts.append(source)
        return ordinary(source, *how, **named)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(builtins, "compile", noting)
    return texts


def code(place: Path, text: str = TEXT) -> CodeType:
    with kept(place):
        return compile(text, "<made>", "exec")


def result(made: CodeType) -> object:
    names: dict[str, object] = {}
    exec(made, names)
    return names["twice"]() if callable(names["twice"]) else None


def test_the_second_start_compiles_nothing(tmp_path: Path, compiled: list[str]) -> None:
    place = tmp_path / "cache" / "texts.pyc"
    assert result(code(place)) == result(code(place)) == 42
    assert compiled == [TEXT]


def test_a_changed_text_is_compiled(tmp_path: Path, compiled: list[str]) -> None:
    place = tmp_path / "texts.pyc"
    code(place)
    assert result(code(place, TEXT.replace("21", "4"))) == 8
    assert len(compiled) == 2


def test_a_text_takes_over_the_future_of_who_compiles_it(tmp_path: Path) -> None:
    asks = "with kept(place): made = compile(text, '<made>', 'exec')"
    names = {"kept": kept, "place": tmp_path / "texts.pyc", "text": TEXT}
    exec(compile(f"from __future__ import annotations\n{asks}", "<later>", "exec", dont_inherit=True), names)
    assert result(names["made"]) == 42  # type: ignore[arg-type]
    exec(compile(asks, "<now>", "exec", dont_inherit=True), names)
    with pytest.raises(NameError, match="Unknown"):
        result(names["made"])  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [b"", b"half of it", marshal.dumps(5), marshal.dumps((b"3.8", {}))])
def test_what_cannot_be_read_is_made_anew(content: bytes, tmp_path: Path, compiled: list[str]) -> None:
    place = tmp_path / "texts.pyc"
    place.write_bytes(content)
    assert result(code(place)) == result(code(place)) == 42
    assert compiled == [TEXT]


def test_nothing_is_kept_where_that_is_impossible_or_not_wanted(
    tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    code(tmp_path / "file" / "texts.pyc")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    code(tmp_path / "texts.pyc")
    assert compiled == [TEXT, TEXT]
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_afterwards_everything_is_as_before(tmp_path: Path) -> None:
    before = builtins.compile
    with pytest.raises(SyntaxError, match="invalid syntax"):
        code(tmp_path / "texts.pyc", "1 +")
    assert builtins.compile is before
    assert not list(tmp_path.iterdir())
