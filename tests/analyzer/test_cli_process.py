"""The command line as a process of its own: what only shows from outside."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import nnx_lint
import nnx_rules

SUPPORT = Path(__file__).parents[1] / "support"
SOURCE_ROOTS = [str(Path(package.__file__).parents[1]) for package in (nnx_lint, nnx_rules)]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SUPPORT), *SOURCE_ROOTS])}
ENVIRONMENT.pop("FORCE_COLOR", None)

COMMAND = [sys.executable, "-m", "nnx_lint"]
STUBBED = [sys.executable, "-m", "stub_engine"]
FULL = Path("/dev/full")


def run(*command, cwd, **options):
    return subprocess.run(
        command,
        cwd=cwd,
        env=ENVIRONMENT | options.pop("env", {}),
        capture_output=True,
        timeout=60,
        check=False,
        **options,
    )


def test_version_loads_neither_the_rules_nor_the_engine(tmp_path):
    program = "import sys; from nnx_lint.cli import main; main(['--version']); print(*sorted(sys.modules))"
    done = run(sys.executable, "-c", program, cwd=tmp_path, text=True)
    version, modules = done.stdout.splitlines()
    assert version == f"nnx-lint {nnx_rules.__version__}"
    loaded = set(modules.split())
    assert not loaded & {"nnx_rules.registry", "nnx_lint.source", "nnx_lint.engine", "ast", "dataclasses", "difflib"}


@pytest.mark.parametrize(("text", "code"), [("x = 1\n", 0), ("BAD\n", 1), ("x = (\n", 2), ("CRASH\n", 2)])
def test_exit_codes(tmp_path, text, code):
    (tmp_path / "a.py").write_text(text)
    done = run(*STUBBED, "a.py", cwd=tmp_path, text=True)
    assert done.returncode == code, done
    assert "Traceback" not in done.stderr
    assert (done.stderr == "") == (code < 2)


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell closes the streams")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("words", "code"), [("a.py", 1), ("gone.py", 2), ("- < a.py", 1)])
def test_streams_that_are_closed_are_like_nothing(tmp_path, closed, words, code):
    (tmp_path / "a.py").write_text("BAD\n")
    command = f"exec {' '.join(STUBBED)} --no-cache {words} {closed}"
    done = run("/bin/sh", "-c", command, cwd=tmp_path, text=True)
    assert done.returncode == (0 if "<" in words and "<" in closed else code), done
    assert "Traceback" not in done.stderr


def test_modules_named_like_those_of_python_do_not_hide_them(tmp_path):
    for name in ("typing", "math"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError\n")
    (tmp_path / "model.py").write_text("from flax import nnx\n\nnnx.Optimiser\n")
    done = run(*COMMAND, "--isolated", "--no-cache", cwd=tmp_path, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert "model.py:3:1" in done.stdout


def test_standard_input_is_fixed_byte_for_byte(tmp_path):
    done = run(*STUBBED, "--fix", "-", cwd=tmp_path, input="'é'; BAD\r\n".encode())
    assert (done.returncode, done.stdout) == (0, "'é'; GOOD\r\n".encode())


def test_output_survives_a_terminal_that_lacks_characters(tmp_path):
    (tmp_path / "a.py").write_text("x = '中' + BAD\n", encoding="utf-8")
    done = run(*STUBBED, "a.py", cwd=tmp_path, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.returncode == 1
    assert rb"'\u4e2d' + BAD" in done.stdout


def test_a_reader_that_leaves_ends_the_run_quietly(tmp_path):
    (tmp_path / "a.py").write_text("BAD\n" * 20_000)
    with subprocess.Popen(
        [*STUBBED, "a.py"], cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_an_interrupt_ends_the_run_quietly(tmp_path):
    (tmp_path / "a.py").write_text("INTERRUPT\n")
    done = run(*STUBBED, "a.py", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.skipif(not FULL.exists(), reason="there is no full device here")
def test_an_output_that_cannot_be_written_is_an_error_of_the_run(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n")
    with FULL.open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [*STUBBED, "a.py"],
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "error: standard output cannot be written: No space left on device\n")
