"""The linter's documents, hooks and action: what they show is what happens, what they name exists."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib

import pytest

from nnx_lint.cli import COMMANDS
from nnx_lint.cli.arguments import parse
from nnx_lint.config.registry import BY_NAME, LINE, OPTIONS
from nnx_lint.output import FORMATS
from nnx_rules.rules import REGISTRY
from repository import ROOT

GUIDE = (ROOT / "docs" / "linter.md").read_text(encoding="utf-8")
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
DOCUMENTS = {"linter.md": GUIDE, "configuration.md": CONFIGURATION}

SESSIONS = re.findall(r"```console\n(.*?)```", GUIDE, re.DOTALL)
COMMAND = re.compile(r"\$ (nnx-lint [^\n]*)\n")
INLINE = re.compile(r"`(nnx-lint [^`\n]*)`")
BLOCK = re.compile(r"^\s*(?:- run: |- |\$ )?(nnx-lint [^#\n]*)", re.MULTILINE)
FENCE = re.compile(r"```\w*\n(.*?)```", re.DOTALL)
FLAG = re.compile(r"`(--?[a-z][a-z-]*)(?:[ =][^`]*)?`")

GRAPH_FLAGS = {"--format", "--output", "--depth"}
FLAGS = {flag for option in OPTIONS for flag in option.flags} | GRAPH_FLAGS | {"--schema", "--help"}


def commands(text: str) -> list[list[str]]:
    """The words of every nnx-lint command that a document shows, up to a pipe or a redirection."""
    shown = INLINE.findall(text) + [found for block in FENCE.findall(text) for found in BLOCK.findall(block)]
    return [shlex.split(re.split(r"[|>]", command)[0])[1:] for command in shown]


def test_the_guide_shows_what_the_linter_prints(tmp_path):
    assert len(SESSIONS) >= 6
    skip = shutil.ignore_patterns("__pycache__", ".nnx_lint_cache")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=skip)
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    for session in SESSIONS:
        for command, output in zip(COMMAND.findall(session), COMMAND.split(session)[2::2], strict=True):
            words = [sys.executable, "-m", "nnx_lint", *shlex.split(command)[1:]]
            ran = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, check=False)
            assert (command, ran.stdout.decode()) == (command, output)
            assert ran.returncode in (0, 1)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_command_in_a_document_is_one_that_the_linter_understands(name):
    found = commands(DOCUMENTS[name])
    assert len(found) >= 3
    for words in found:
        if words and words[0] in COMMANDS and words[0] != "check":
            continue
        paths = words[1:] if words[:1] == ["check"] else words
        parse(paths, [option for option in OPTIONS if LINE in option.places])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_flag_option_and_rule_in_a_document_exists(name):
    text = DOCUMENTS[name]

    assert set(FLAG.findall(text)) - FLAGS - {"-"} == set()
    assert {code for code in re.findall(r"NNX\d{3}", text) if REGISTRY.get(code) is None} == set()
    ignored = re.findall(r"nnx: ignore(?:-file)?\[([a-z-]+)\]", text)
    assert [rule for rule in ignored if REGISTRY.get(rule) is None] == []


def test_the_guide_names_every_output_format():
    table = GUIDE.partition("## Output formats")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([\w-]+)`", " ".join(row.split("|")[1] for row in table.splitlines() if "|" in row)))

    assert named - {"--output-format"} == set(FORMATS)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_inside_a_document_lead_to_headings(name):
    text = DOCUMENTS[name]
    headings = {
        re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    }
    assert [link for link in re.findall(r"\]\(#([^)]+)\)", text) if link not in headings] == []


def test_the_list_of_options_is_the_registry():
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import write_options
    finally:
        sys.path.pop(0)

    assert write_options.page(CONFIGURATION) == CONFIGURATION, "run scripts/write_options.py"
    assert re.findall(r"^#### `(.*)`$", CONFIGURATION, re.MULTILINE) == list(BY_NAME)


def test_the_example_configuration_is_accepted(tmp_path):
    example = re.search(r"```toml\n(\[tool\.nnx-lint\].*?)```", CONFIGURATION, re.DOTALL)
    assert example is not None
    tomllib.loads(example[1])
    (tmp_path / "pyproject.toml").write_text(example[1], encoding="utf-8")
    (tmp_path / "nnx-lint-baseline.json").write_text('{"format": 1, "findings": []}')
    (tmp_path / "model.py").write_text("from flax import nnx\n")
    command = [sys.executable, "-m", "nnx_lint", "."]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")


def test_nnx_lint_toml_is_nearer_than_a_pyproject_beside_it(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.nnx-lint]\nselect = ["NNX1"]\n')
    (tmp_path / "nnx-lint.toml").write_text('select = ["NNX3"]\n')
    (tmp_path / "model.py").write_text("")
    command = [sys.executable, "-m", "nnx_lint", "--show-settings", "model.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)

    assert 'select = ["NNX3"]' in ran.stdout


def test_the_hooks_run_commands_that_exist():
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    entries = re.findall(r"^  entry: nnx-lint check (.*)$", text, re.MULTILINE)

    assert re.findall(r"^- id: (.*)$", text, re.MULTILINE) == ["nnx-lint", "nnx-lint-fix"]
    assert all(f"`{hook}`" in GUIDE or hook in GUIDE for hook in ("nnx-lint", "nnx-lint-fix"))
    assert len(entries) == 2
    for entry in entries:
        parse([*shlex.split(entry), "a.py"], [option for option in OPTIONS if LINE in option.places])


@pytest.mark.skipif(os.name == "nt", reason="the script is for bash")
def test_the_script_of_the_action_checks_and_runs_nothing_of_its_inputs(tmp_path):
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    script = text.rpartition("      run: |\n")[2].replace(" " * 8, "")
    assert "${{" not in script
    program = tmp_path / "nnx-lint"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m nnx_lint "$@"\n')
    program.chmod(0o755)
    (tmp_path / "a.py").write_text("from flax import nnx\nnnx.state(nnx.Rngs(0), 0)\n")
    (tmp_path / "notes.txt").write_text("")
    environment = {
        **os.environ,
        "NNX_LINT": str(program),
        "NNX_LINT_ARGUMENTS": "a.py $(touch broken) *.txt",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    ran = subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert "::error title=nnx-lint (NNX306),file=a.py" in ran.stdout
    assert ran.returncode == 2
    assert "$(touch: no such file" in ran.stderr
    assert "*.txt: no such file" in ran.stderr
    assert not (tmp_path / "broken").exists()


@pytest.mark.parametrize("name", ["arguments", "working-directory", "python"])
def test_the_inputs_of_the_action_are_used(name):
    text = (ROOT / "action.yml").read_text(encoding="utf-8")

    assert f"  {name}:\n" in text
    assert f"${{{{ inputs.{name} }}}}" in text
