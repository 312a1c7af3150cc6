"""Moving a program to a version: what `--fix --target` makes of one that was written for flax 0.10."""

import textwrap

import pytest

from nnx_lint.cli import main

OLD = """\
import jax.numpy as jnp
import optax
from flax import nnx, struct


class Block(nnx.Module):
    def __init__(self, dim: int, *, rngs: nnx.Rngs):
        self.linear = nnx.Linear(dim, dim, rngs=rngs)
        self.scale = nnx.Param(jnp.ones((dim,)))
        self.calls = nnx.Variable(jnp.array(0))

    def __call__(self, x):
        self.calls.value += 1
        self.calls.value = self.calls.value + 1
        return self.linear(x) * self.scale.value


class Net(nnx.Module):
    def __init__(self, dim: int, *, rngs: nnx.Rngs):
        self.layers = [Block(dim, rngs=rngs) for _ in range(3)]


@nnx.jit
def train_step(model: Net, optimizer: nnx.Optimizer, x):
    loss, grads = nnx.value_and_grad(lambda model: model.layers[0](x).mean())(model)
    optimizer.update(grads)
    return loss


model = Net(4, rngs=nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-3))
graphdef, state = nnx.split(model)
flat = state.flat_state()
params, rest = state.split(nnx.Param, ...)
doubled = state.map(lambda path, value: value)
modules = list(model.iter_modules())
leaf = nnx.VariableState(type=nnx.Param, value=jnp.ones(2))


def is_leaf(x):
    return isinstance(x, nnx.VariableState)
"""
CHANGES = {
    "        self.calls.value += 1\n": "        self.calls[...] += 1\n",
    "self.calls.value = self.calls.value + 1": "self.calls.set_value(self.calls[...] + 1)",
    "self.scale.value": "self.scale[...]",
    "[Block(dim, rngs=rngs) for _ in range(3)]": "nnx.List([Block(dim, rngs=rngs) for _ in range(3)])",
    "optimizer.update(grads)": "optimizer.update(model, grads)",
    "optax.adam(1e-3))": "optax.adam(1e-3), wrt=nnx.Param)",
    "state.flat_state()": "nnx.to_flat_state(state)",
    "state.split(nnx.Param, ...)": "nnx.split_state(state, nnx.Param, ...)",
    "state.map(lambda path, value: value)": "nnx.map_state(lambda path, value: value, state)",
    "model.iter_modules()": "nnx.iter_modules(model)",
    "nnx.VariableState(type=nnx.Param, value=jnp.ones(2))": "nnx.Param(jnp.ones(2))",
    "isinstance(x, nnx.VariableState)": "isinstance(x, nnx.Variable)",
}
IMPORT = "from flax import nnx, struct\n"


def new(library: str) -> str:
    text = OLD
    for old, instead in CHANGES.items():
        assert old in text
        text = text.replace(old, instead)
    return text if library == "flax" else text.replace(IMPORT, "import nnxkit as nnx\nfrom flax import struct\n")


@pytest.mark.parametrize(("target", "library"), [("flax-0.12", "flax"), ("nnxkit", "nnxkit")])
def test_a_program_moves_to_a_target(target, library, tmp_path, capsys):
    path = tmp_path / "program.py"
    path.write_text(OLD)

    status = main(["check", "--isolated", "--no-cache", "--fix", "--target", target, str(path)])

    assert path.read_text() == new(library)
    assert status == 0, capsys.readouterr().out


def test_what_is_deprecated_is_no_finding_unless_somebody_names_a_target(tmp_path, capsys):
    path = tmp_path / "program.py"
    path.write_text("import jax.numpy as jnp\nfrom flax import nnx\n\nprint(nnx.Param(jnp.ones(2)).value)\n")

    assert main(["check", "--isolated", "--no-cache", str(path)]) == 0
    assert main(["check", "--isolated", "--no-cache", "--target", "flax-0.12.0", str(path)]) == 0
    assert main(["check", "--isolated", "--no-cache", "--target", "flax-0.12.1", str(path)]) == 1
    assert "deprecated-value-property" in capsys.readouterr().out


GUARDED = {
    "hasattr": 'if hasattr(nnx, "set_mode"):\n    nnx.set_mode(1)\n',
    "getattr": 'mode = getattr(nnx, "set_mode", None)\nnnx.set_mode\n',
    "try": "try:\n    from flax.nnx import set_mode\nexcept ImportError:\n    set_mode = None\n",
    "a version": "import flax\nif flax.__version__ < '0.12.4':\n    nnx.set_mode(1)\n",
}


@pytest.mark.parametrize("text", GUARDED.values(), ids=GUARDED)
def test_code_for_several_versions_is_left_alone(text, tmp_path, capsys):
    path = tmp_path / "program.py"
    path.write_text(f"from flax import nnx\n{textwrap.dedent(text)}")

    assert main(["check", "--isolated", "--no-cache", "--select", "NNX9", str(path)]) == 0, capsys.readouterr().out


def test_methods_of_the_same_name_are_left_alone(tmp_path, capsys):
    path = tmp_path / "program.py"
    path.write_text(
        "from flax import nnx\n\n\n"
        "def use(text: str, table, model: nnx.Module):\n"
        '    text.split(",")\n    table.filter(1).map(2).merge(3)\n    return model.iter(), table.value\n'
    )

    assert main(["check", "--isolated", "--no-cache", "--target", "flax-0.12", str(path)]) == 0, capsys.readouterr().out
