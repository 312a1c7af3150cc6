"""Findings of the analyzer as mypy errors: where they are reported, what silences them, and what mypy's cache knows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mypy import api
from mypy.plugin import Plugin

import nnx_mypy
from mypy_runs import Daemon, Mypy
from nnx_mypy import codes, digest
from nnx_mypy.codes import BY_RULE
from nnx_mypy.findings import recall
from nnx_mypy.worker import Worker
from nnx_rules.rules import REGISTRY

HEAD = "import jax.numpy as jnp\nfrom flax import nnx\n"
CLASS = HEAD + "class Model(nnx.Module):\n    def __init__(self, rngs: nnx.Rngs) -> None:\n"
MISTAKE = CLASS + "        self.layers = [nnx.Linear(2, 2, rngs=rngs)]{}\n"
CODE = "nnx-data-in-static-attribute"


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy") / "base"


@pytest.fixture
def mypy(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mypy:
    monkeypatch.chdir(tmp_path)
    return Mypy(base)


def errors(lines: list[str]) -> list[str]:
    """Place and code of the errors."""
    found = [line for line in lines if ": error: " in line]
    return [f"{':'.join(line.split(':')[:3])} {line.rpartition('[')[2].rstrip(']')}" for line in found]


def test_finding_is_error_with_code_of_its_rule(mypy: Mypy) -> None:
    Path("model.py").write_text(MISTAKE.format(""))
    first, help = mypy.fresh("model.py")
    message = "`Model.layers` is static, but its value, a list of Linear, holds data"
    assert first == f"model.py:5:23: error: {message}  [{CODE}]"
    assert help.startswith("model.py:5:23: note: Help: use `nnx.List(...)`")


@pytest.mark.parametrize(
    "program",
    [
        CLASS + "        made = [nnx.Linear(2, 2, rngs=rngs)]\n        self.layers = made\n",
        MISTAKE.format("").replace(" -> None", "").replace(": nnx.Rngs", ""),
        HEAD + "def f():\n    model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))\n    nnx.split(model, ..., nnx.Param)\n",
        HEAD + "def f(model: nnx.Linear):\n    nnx.split(model, ..., nnx.Param)\n",
        HEAD + "@nnx.jit\ndef f(model):\n    a, b = nnx.split(model, nnx.Param, ..., nnx.BatchStat)\n",
    ],
    ids=["annotated", "unannotated", "assignment in a function", "overload", "decorated"],
)
def test_findings_do_not_depend_on_what_mypy_checks(mypy: Mypy, program: str) -> None:
    Path("model.py").write_text(program)
    found = [line for line in errors(mypy.fresh("model.py")) if " nnx-" in line]
    assert len(found) == len(set(found)) >= 1


@pytest.mark.parametrize(
    "comment",
    [f"  # type: ignore[{CODE}]", "  # type: ignore[nnx]", "  # type: ignore", "  # nnx: ignore"],
)
def test_comments_silence_findings(mypy: Mypy, comment: str) -> None:
    Path("model.py").write_text(MISTAKE.format(comment))
    assert mypy.fresh("model.py") == []


def test_comment_of_another_code_does_not_silence(mypy: Mypy) -> None:
    Path("model.py").write_text(MISTAKE.format("  # type: ignore[nnx-missing-rngs]"))
    assert errors(mypy.fresh("model.py")) == [f"model.py:5:23 {CODE}"]


@pytest.mark.parametrize("code", ["nnx", CODE])
def test_codes_can_be_disabled(mypy: Mypy, code: str) -> None:
    Path("model.py").write_text(MISTAKE.format(""))
    assert mypy.fresh("--disable-error-code", code, "model.py") == []


def test_code_can_be_disabled_for_a_module(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mypy = Mypy(base, f"[mypy-quiet]\ndisable_error_code = {CODE}\n")
    Path("quiet.py").write_text(MISTAKE.format(""))
    Path("loud.py").write_text(MISTAKE.format(""))
    assert errors(mypy.fresh("quiet.py", "loud.py")) == [f"loud.py:5:23 {CODE}"]


def test_modules_that_are_only_followed_are_silent(mypy: Mypy) -> None:
    Path("model.py").write_text(MISTAKE.format(""))
    Path("main.py").write_text("import model\nmodel.Model\n")
    assert mypy.fresh("--follow-imports=silent", "main.py") == []
    assert errors(mypy.fresh("main.py")) == [f"model.py:5:23 {CODE}"]


def test_namespace_packages(mypy: Mypy) -> None:
    Path("src/space/inner").mkdir(parents=True)
    Path("src/space/inner/model.py").write_text(MISTAKE.format(""))
    found = mypy.fresh("--namespace-packages", "--explicit-package-bases", "src")
    assert errors(found) == [f"src/space/inner/model.py:5:23 {CODE}"]


STATEMENT = "    nnx.split(model, ..., nnx.Param)\n"
CONCERNED = {
    "annotation.py": f"{HEAD}def f(model: nnx.Linear) -> None:\n{STATEMENT}",
    "base.py": MISTAKE.format(""),
    "call.py": f"{HEAD}def f():\n    model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))\n{STATEMENT}",
    "name.py": f"from flax import nnx\nfrom flax.nnx import Linear\ndef f(model: Linear) -> None:\n{STATEMENT}",
}
"""Modules with one mistake each, by what tells mypy that they concern NNX."""


@pytest.mark.parametrize("is_installed", [True, False])
def test_libraries_need_not_be_there(mypy: Mypy, monkeypatch: pytest.MonkeyPatch, is_installed: bool) -> None:
    if not is_installed:  # as in an environment that has mypy and the plugin only
        Path("mypy.ini").write_text("[mypy]\nplugins = nnx_mypy\n")
        monkeypatch.setattr("mypy.modulefinder.get_search_dirs", lambda python: ([], []))
    for name, program in CONCERNED.items():
        Path(name).write_text(program)
    words = ["--follow-imports=skip"] if is_installed else ["--ignore-missing-imports"]
    first = mypy.warm(*words, *CONCERNED)
    found = [line.partition(":")[0] for line in first if ": error: " in line]
    assert found == list(CONCERNED)
    assert all("[nnx-" in line for line in first if ": error: " in line)
    assert mypy.warm(*words, *CONCERNED) == first


@pytest.mark.parametrize("is_repository", [True, False])
def test_project_is_where_its_configuration_lies(mypy: Mypy, is_repository: bool) -> None:
    Path("model.py").write_text(MISTAKE.format(""))
    Path("inner").mkdir()
    if is_repository:
        Path(".git").mkdir()
    shutil.copytree(mypy.base, "fresh", copy_function=os.link)
    os.chdir("inner")
    out, err, _ = api.run(["--config-file", "../mypy.ini", "--cache-dir", "../fresh", "../model.py"])
    assert not err
    assert errors(out.splitlines()) == ([f"../model.py:5:23 {CODE}"] if is_repository else [])


def test_parallel_run_says_the_same(mypy: Mypy) -> None:
    for number in range(4):
        Path(f"model{number}.py").write_text(MISTAKE.format(""))
    files = [f"model{number}.py" for number in range(4)]
    words = ["--config-file", "mypy.ini", "--no-error-summary", "--cache-dir", "cache", "--num-workers", "2", *files]
    out, err, _ = api.run(words)
    assert not err
    assert errors(sorted(out.splitlines())) == errors(mypy.fresh(*files))
    assert len(errors(out.splitlines())) == 4


def test_configuration_of_linter_holds(mypy: Mypy) -> None:
    Path("model.py").write_text(MISTAKE.format(""))
    Path("nnx-lint.toml").write_text('ignore = ["data-in-static-attribute"]\n')
    assert mypy.fresh("model.py") == []


def test_own_table_wins_over_configuration_of_linter(mypy: Mypy) -> None:
    Path("model.py").write_text(MISTAKE.format(""))
    Path("pyproject.toml").write_text('[tool.nnx-lint]\nselect = ["ALL"]\n[tool.nnx-mypy]\nselect = ["NNX9"]\n')
    assert mypy.fresh("model.py") == []


def test_findings_can_be_left_to_the_linter(mypy: Mypy) -> None:
    Path("model.py").write_text(MISTAKE.format("") + "        reveal_type(nnx.split(self, nnx.Param, ...))\n")
    Path("pyproject.toml").write_text("[tool.nnx-mypy]\nfindings = false\n")
    (line,) = mypy.fresh("model.py")
    assert "tuple[flax.nnx.GraphDef[model.Model], flax.nnx.State, flax.nnx.State]" in line


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('findings = "no"', "`findings` must be true or false, not 'no'"),
        ("selekt = []", "unknown option `selekt`; did you mean `select`?"),
        ('select = ["NNX99"]', "no rule matches 'NNX99'"),
    ],
)
def test_wrong_configuration_ends_the_run_with_a_message(mypy: Mypy, table: str, message: str) -> None:
    Path("model.py").write_text(MISTAKE.format(""))
    Path("pyproject.toml").write_text(f"[tool.nnx-mypy]\n{table}\n")
    out, err, code = api.run(["--config-file", "mypy.ini", "--cache-dir", "cache", "model.py"])
    assert code == 2
    assert message in out + err
    assert "Traceback" not in out + err


def test_failure_of_the_analyzer_is_an_error_of_the_module(mypy: Mypy) -> None:
    Path("model.py").write_text(MISTAKE.format(""))
    Path("pyproject.toml").write_text('[tool.nnx-mypy]\nbaseline = "known.json"\n')
    Path("known.json").write_text("{")
    out, err, code = api.run(["--config-file", "mypy.ini", "--cache-dir", "cache", "model.py"])
    assert code == 2
    assert out.startswith("model.py:1:1: error: known.json: is no baseline")
    assert "INTERNAL ERROR" not in out + err


def test_cached_module_is_checked_again_when_its_findings_change(mypy: Mypy) -> None:
    Path("parts.py").write_text("from flax import nnx\ndef blocks(rngs):\n    return nnx.List([])\n")
    Path("model.py").write_text("from parts import blocks\n" + CLASS + "        self.blocks = blocks(rngs)\n")
    assert mypy.warm("model.py", "parts.py") == []
    # The signature stays, so for mypy alone nothing changes in `model`.
    Path("parts.py").write_text("from flax import nnx\ndef blocks(rngs):\n    return [nnx.Linear(2, 2, rngs=rngs)]\n")
    assert errors(mypy.warm("model.py", "parts.py")) == [f"model.py:6:23 {CODE}"]
    assert errors(mypy.warm("model.py", "parts.py")) == [f"model.py:6:23 {CODE}"]


def test_daemon_reports_findings_that_come_from_an_edit_elsewhere(mypy: Mypy) -> None:
    Path("parts.py").write_text("from flax import nnx\ndef blocks(rngs):\n    return nnx.List([])\n")
    Path("model.py").write_text("from parts import blocks\n" + CLASS + "        self.blocks = blocks(rngs)\n")
    with Daemon(mypy, ["model.py", "parts.py"]) as daemon:
        assert daemon.check() == []
        Path("parts.py").write_text("from flax import nnx\ndef blocks(rngs):\n    return [nnx.Param(1), rngs]\n")
        assert errors(daemon.check()) == [f"model.py:6:23 {CODE}"]
        Path("parts.py").write_text("from flax import nnx\ndef blocks(rngs):\n    return 1\n")
        assert daemon.check() == []


def test_data_kept_by_mypy_names_the_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = digest.of_packages(str(tmp_path))
    (tmp_path / "__init__.py").write_text("")
    monkeypatch.setattr(nnx_mypy, "__file__", str(tmp_path / "__init__.py"))
    digest.of_packages.cache_clear()
    try:
        assert digest.of_packages(str(tmp_path)) != before
    finally:
        digest.of_packages.cache_clear()


def test_every_rule_has_a_code_of_the_family() -> None:
    assert set(BY_RULE) == {rule.code for rule in REGISTRY}
    assert {code.sub_code_of for code in BY_RULE.values()} == {codes.FAMILY}


@pytest.mark.parametrize("version", ["2.2.0", "2.4.1", "2.4.0+dev.abc"])
def test_supported_versions(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert nnx_mypy.plugin(version) is not Plugin
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("version", ["1.20.2", "2.1.9", "2.5.0", "3.0"])
def test_unsupported_version_gives_one_warning(
    version: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NNX_MYPY_WARNED", raising=False)
    assert nnx_mypy.plugin(version) is Plugin
    assert nnx_mypy.plugin(version) is Plugin
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"warning: nnx_mypy works with mypy 2.2 to 2.4, and does nothing with {version}")


def test_plugin_loads_no_numerics() -> None:
    program = "import sys, nnx_mypy.hooks; print(*sorted({'jax', 'numpy', 'flax', 'nnxkit'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_worker_leaves_what_the_next_run_recalls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(MISTAKE.format(""))
    Path("json.py").write_text("raise RuntimeError\n")  # a module of the project, which nobody may load
    worker = Worker()
    worker.ask(".", {}, {})
    found = worker.answer()
    ((finding,),) = found.values()
    assert BY_RULE[finding.code].code == CODE
    recalled = recall(".", {}, {})
    assert recalled.open == frozenset()
    assert recalled.found == found


def test_worker_is_gone_with_its_last_question() -> None:
    program = "import atexit; atexit.register(print, 'late'); from nnx_mypy.serving import serve; serve()"
    done = subprocess.run([sys.executable, "-c", program], input=b"", capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
