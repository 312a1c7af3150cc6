"""The primer: what it takes for the same finding, what makes it fail, and that its record is complete.

The scans are of made-up packages; nothing is downloaded.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from nnx_lint.source import SourceFile
from nnx_rules.rules import REGISTRY
from repository import ROOT

MODEL = """
from flax import nnx
import jax.numpy as jnp

class Net(nnx.Module):
    def __init__(self):
        self.widths = [jnp.ones(3)]
"""
CLEAN = MODEL.replace("[jnp.ones(3)]", "jnp.ones(3)")


@pytest.fixture(scope="module")
def primer() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "scripts")
        import primer

        return primer


@pytest.fixture
def record(primer, tmp_path, monkeypatch):
    """Where the record is written."""
    path = tmp_path / "record" / "findings.toml"
    monkeypatch.setattr(primer, "RECORD", path)
    return path


@pytest.fixture
def run(primer, record, tmp_path, monkeypatch) -> Callable[..., int]:
    """Runs the primer on one package with these files."""
    folder = tmp_path / "package"
    monkeypatch.setattr(primer, "PACKAGES", (primer.Package("made-up", "1.0", "0" * 64),))
    monkeypatch.setattr(primer, "fetch", lambda package: folder)

    def run_primer(*arguments: str, **files: str) -> int:
        folder.mkdir(exist_ok=True)
        for path in folder.glob("*.py"):
            path.unlink()
        for name, text in files.items():
            (folder / f"{name}.py").write_text(text, encoding="utf-8")
        return primer.main(arguments)

    return run_primer


def judge(record: Path, verdict: str) -> None:
    """Give every finding of the record a verdict, as a person would in an editor."""
    text = record.read_text(encoding="utf-8")
    record.write_text(
        re.sub(r"(?m)^(source = .*)$", rf'\1\nverdict = {verdict}\nreason = "read"', text), encoding="utf-8"
    )


# -- what makes it fail ------------------------------------------------------------------------------------------------


def test_a_finding_is_new_then_without_a_verdict_then_accepted(run, record, capsys) -> None:
    assert run(model=MODEL) == 1
    assert re.search(
        r"new: 1\n  model\.py:7: NNX101 data-in-static-attribute in Net\.__init__\n", capsys.readouterr().out
    )

    assert run("--update", model=MODEL) == 1
    assert "without a verdict: 1" in capsys.readouterr().out

    judge(record, "true")
    assert run(model=MODEL) == 0


def test_a_package_is_held_against_the_newest_flax_that_it_allows(run, tmp_path) -> None:
    metadata = tmp_path / "package" / "made_up-1.0.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Name: made-up\nRequires-Dist: jax\nRequires-Dist: flax<0.12\n", encoding="utf-8")
    assert run(model=MODEL) == 0

    metadata.write_text("Name: made-up\nRequires-Dist: flax>=0.10\n", encoding="utf-8")
    assert run(model=MODEL) == 1


def test_a_finding_that_vanishes(run, record, capsys) -> None:
    run("--update", model=MODEL)
    judge(record, "true")

    assert run(model=CLEAN) == 1
    assert "vanished: 1\n  model.py: data-in-static-attribute in Net.__init__\n" in capsys.readouterr().out
    assert run("--update", model=CLEAN) == 0


def test_a_false_finding_at_the_default_settings(run, record, capsys) -> None:
    run("--update", model=MODEL)
    judge(record, "false")

    assert run(model=MODEL) == 1
    assert "false, and at the default settings: 1\n  model.py:7: NNX101" in capsys.readouterr().out


def test_a_false_finding_of_a_rule_that_is_off_by_default_is_accepted(primer) -> None:
    key = primer.Key("p", "a.py", "r", "f", "x")
    record = primer.Record(findings=[primer.Judged(key, False, "read")])
    finding = primer.Finding(key, 1, "NNX101", "m")

    off = primer.differences(record, primer.Scan(with_all=[finding]))
    on = primer.differences(record, primer.Scan(with_all=[finding], by_default=[finding]))

    assert {kind for kind, items in off.items() if items} == set()
    assert {kind for kind, items in on.items() if items} == {"false, and at the default settings"}


def test_a_crash(run, capsys, monkeypatch) -> None:
    from nnx_lint.engine import Engine

    monkeypatch.setattr(Engine, "check", lambda *arguments: [][0])

    assert run(model=CLEAN) == 1
    assert re.search(r"the analyzer fails: \d\n  .*model\.py: internal error: IndexError", capsys.readouterr().out)


def test_a_file_that_cannot_be_parsed(run, record, capsys) -> None:
    assert run(model=CLEAN, newer="x = (\n") == 1
    assert "the analyzer fails: 1\n  newer.py:1: syntax error" in capsys.readouterr().out

    record.parent.mkdir()
    record.write_text('[newer-syntax]\n"newer.py" = "3.99"\n', encoding="utf-8")
    assert run(model=CLEAN, newer="x = (\n") == 0
    assert "not read: 1 files that need Python 3.99" in capsys.readouterr().out

    version = ".".join(map(str, sys.version_info[:2]))
    record.write_text(f'[newer-syntax]\n"newer.py" = "{version}"\n', encoding="utf-8")
    assert run(model=CLEAN, newer="x = (\n") == 1


# -- what it takes for the same finding --------------------------------------------------------------------------------


def test_a_finding_stays_the_same_when_lines_are_added_around_it(run, record) -> None:
    run("--update", model=MODEL)
    judge(record, "true")

    assert run(model=MODEL.replace("class Net", "x = 1\n\nclass Net")) == 0


@pytest.mark.parametrize(
    ("before", "after"),
    [("class Net", "class Other"), ("__init__", "setup"), ("widths", "heights"), ("ones(3)", "ones(4)")],
)
def test_a_finding_elsewhere_or_in_another_line_is_a_new_one(run, record, capsys, before: str, after: str) -> None:
    run("--update", model=MODEL)
    judge(record, "true")

    assert run(model=MODEL.replace(before, after)) == 1
    assert "vanished: 1" in capsys.readouterr().out


def test_equal_lines_of_a_function_are_counted(run, record, capsys) -> None:
    twice = MODEL + "        self.widths = [jnp.ones(3)]\n"
    run("--update", model=twice)
    judge(record, "true")
    text = record.read_text(encoding="utf-8")
    assert text.count("[[finding]]") == 2

    assert run(model=MODEL) == 1
    assert "vanished: 1" in capsys.readouterr().out


def test_an_update_keeps_verdicts_and_files_out_of_sight(run, record, primer) -> None:
    run("--update", model=MODEL)
    judge(record, "true")
    hidden = primer.Judged(primer.Key("made-up", "newer.py", "r", "f", 'x = "\\d"\t# é'), True, 'said "so"')
    before = primer.read_record(record)
    before.newer_syntax["newer.py"] = (3, 99)
    before.findings.append(hidden)
    primer.write_record(record, before)

    assert run("--update", model=MODEL, other=MODEL, newer="x = (\n") == 1

    after = primer.read_record(record)
    assert after.newer_syntax == before.newer_syntax
    assert [judged for judged in after.findings if judged.verdict is not None] == before.findings
    assert [judged.key.file for judged in after.findings if judged.verdict is None] == ["other.py"]


def test_a_verdict_is_true_or_false(primer, record) -> None:
    record.parent.mkdir()
    entry = "".join(f'{part} = "x"\n' for part in primer.Key._fields)
    record.write_text(f'[[finding]]\n{entry}verdict = "perhaps"\n', encoding="utf-8")

    with pytest.raises(TypeError, match="a verdict is true or false, not 'perhaps'"):
        primer.read_record(record)


@pytest.mark.parametrize(
    ("mark", "symbol"),
    [("1", ""), ("2", "A"), ("3", "A"), ("4", "A.f"), ("5", "A.f.g"), ("6", "A.f"), ("7", "h"), ("8", "h")],
)
def test_the_symbol_around_a_position(primer, mark: str, symbol: str) -> None:
    text = """
x = "#1"
class A(B["#2"]):
    y = "#3"
    @deco("#4")
    def f(self):
        if x:
            async def g(): return "#5"
        return lambda: "#6"
@deco("#7")
def h(x="#8"): ...
"""
    source = SourceFile.from_text(text)

    assert primer.enclosing(source, text.index(f"#{mark}")) == symbol


# -- the record of the real packages -----------------------------------------------------------------------------------


def test_the_record_is_complete(primer) -> None:
    record = primer.read_record(ROOT / "tests" / "primer" / "findings.toml")

    assert [judged.key for judged in record.findings if judged.verdict is None or not judged.reason] == []
    assert {judged.key.package for judged in record.findings} <= {package.name for package in primer.PACKAGES}
    assert {judged.key.rule for judged in record.findings} <= {rule.name for rule in REGISTRY}


def test_the_record_is_written_as_update_writes_it(primer, tmp_path) -> None:
    path = ROOT / "tests" / "primer" / "findings.toml"
    primer.write_record(tmp_path / "findings.toml", primer.read_record(path))

    assert (tmp_path / "findings.toml").read_text(encoding="utf-8") == path.read_text(encoding="utf-8")
