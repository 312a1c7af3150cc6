"""The table of the names and parameters of jax and optax: it is what the installed ones have."""

import pytest

from nnx_lint.cli import main
from nnx_lint.model.tables.public_names import MADE_FROM, NAMES, PARAMETERS
from repository import script


@pytest.fixture
def asked():
    module = script("public_names")
    if module.newest() != MADE_FROM:
        pytest.skip("a library is newer than the table")
    return module


@pytest.mark.filterwarnings("ignore")
def test_table_has_what_is_installed(asked):
    for namespace in asked.NAMESPACES:
        assert NAMES[namespace] >= frozenset(asked.names_of(namespace)), namespace


@pytest.mark.filterwarnings("ignore")
def test_table_has_the_parameters_of_what_is_installed(asked):
    rows = [(space, row.partition(":")) for space in asked.CALLED for row in asked.parameters_of(space)]
    lacking = {
        f"{space}.{name}": names
        for space, (name, _, names) in rows
        if not {*names.split()} <= {*PARAMETERS.get(f"{space}.{name}", names).split()}
    }
    assert not lacking


@pytest.mark.filterwarnings("ignore")
def test_script_adds_nothing_that_is_there(asked):
    assert asked.module_text() == asked.TARGET.read_text(encoding="utf-8")


def test_what_only_warns_is_there():
    assert "PRNGKey" in NAMES["jax.random"]
    assert "device_put_replicated" in NAMES["jax"]
    assert PARAMETERS["jax.random.split"] == "key num"


PROGRAM = """import jax
from flax import nnx

layer = nnx.Linear(1, 1, kernel_init=jax.nn.initializers.normal(std=0.02), rngs=nnx.Rngs(0))
print(jax.sigmoid(layer.bias[...]))
"""


@pytest.mark.parametrize(
    ("requirement", "known"), [("jax", True), (f"jax=={MADE_FROM['jax']}", True), ("jax==99.0", False)]
)
def test_a_newer_jax_may_have_more(requirement, known, tmp_path, monkeypatch, capsys):
    (tmp_path / ".git").mkdir()  # nothing above the test's folder counts
    (tmp_path / "requirements.txt").write_text(requirement, encoding="utf-8")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    main(["check", "--no-cache", "--select", "NNX825", "--output-format", "concise", "program.py"])
    out = capsys.readouterr().out
    assert ("takes no `std`" in out, "has no `sigmoid`" in out) == (known, known)
