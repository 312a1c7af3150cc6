"""Moving a program to a version: what `--fix --target` makes of one that was written for flax 0.10."""

import importlib.util
import textwrap

import pytest

from nnx_lint.cli import main
from nnx_rules.versions import NOT_IN_NNXKIT

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


def moved(text: str, target: str, tmp_path, *flags: str) -> tuple[int, str]:
    """The exit code of a migration, and what it makes of a program."""
    path = tmp_path / "program.py"
    path.write_text(text)
    status = main(["check", "--isolated", "--no-cache", "--fix", "--target", target, *flags, str(path)])
    return status, path.read_text()


KEEPING = """\
import optax
from flax import nnx


@nnx.jit
def train_step(optimizer: nnx.Optimizer, x):
    grads = nnx.grad(lambda model: model(x).mean())(optimizer.model)
    optimizer.update(grads)


def main(x):
    optimizer = nnx.Optimizer(nnx.Linear(2, 1, rngs=nnx.Rngs(0)), optax.sgd(0.1))
    train_step(optimizer, x)
"""


def test_code_that_asks_its_optimizer_for_the_model_gets_one_that_keeps_it(tmp_path, capsys):
    status, text = moved(KEEPING, "flax-0.12", tmp_path, "--unsafe-fixes")

    assert text == KEEPING.replace(
        "nnx.Optimizer(nnx.Linear(2, 1, rngs=nnx.Rngs(0)), optax.sgd(0.1))",
        "nnx.ModelAndOptimizer(nnx.Linear(2, 1, rngs=nnx.Rngs(0)), optax.sgd(0.1), wrt=nnx.Param)",
    )
    assert status == 0, capsys.readouterr().out


VALUES = {
    "x.value += y": "x.set_value(x.get_value() + y)",
    "x.value -= 1": "x.set_value(x.get_value() - 1)",
    "x.value *= y + 1": "x.set_value(x.get_value() * (y + 1))",
    "x.value @= (\n    y  # a reason\n)": "x.set_value(x.get_value() @ (\n    y  # a reason\n))",
    "x.value = (\n    y\n)": "x.set_value(\n    y\n)",
    "x.value = (y) + (1)": "x.set_value((y) + (1))",
    "x.value = y, 1": "x.set_value((y, 1))",
    "x.value = (yield y)": "x.value = (yield y)",
    "x.value, z = y, 1": "x.value, z = y, 1",
    "f(y).value += 1": "f(y).value += 1",
    "(x.value) = 1": "(x.value) = 1",
    "(x.value) += 1": "(x.value) += 1",
    "print(x.raw_value)": "print(x.get_raw_value())",
}


@pytest.mark.parametrize(("old", "new"), VALUES.items(), ids=VALUES)
def test_values_are_set_as_they_were(old, new, tmp_path):
    program = "from flax import nnx\n\n\ndef f(x: nnx.Param, y):\n{}\n"

    _, text = moved(program.format(textwrap.indent(old, "    ")), "flax-0.12", tmp_path)

    assert text == program.format(textwrap.indent(new, "    "))


SEEN = """\
import jax
from flax import nnx


class Cached(nnx.Module):
    def __init__(self, value):
        self.cache = nnx.Variable(None)
        self.given = value if isinstance(value, nnx.Variable) else nnx.Param(value)

    def __call__(self):
        if self.cache.value is None:
            return self.given.value
        return self.cache.value


def scale(state: nnx.State, model: Cached):
    for path, leaf in nnx.to_flat_state(nnx.state(model)):
        print(path, leaf.value)
    for leaf in jax.tree.leaves(nnx.state(model), is_leaf=lambda x: isinstance(x, nnx.Variable)):
        print(leaf.value)
    linear = nnx.state(nnx.Linear(1, 1, rngs=nnx.Rngs(0)))
    print(linear["kernel"].value, linear.bias.value)
    for path, module in nnx.iter_modules(model):
        if isinstance(module, nnx.Linear):
            print(module.kernel.value)
    return jax.tree.map(lambda x: x.value if isinstance(x, nnx.Param) else x, state)
"""


def test_variables_are_seen_wherever_they_come_from(tmp_path, capsys):
    status, text = moved(SEEN, "flax-0.12", tmp_path)

    assert text == SEEN.replace(".value", ".get_value()")
    assert status == 0, capsys.readouterr().out


def test_a_map_over_a_tree_gets_leaves_and_not_the_tree(tmp_path, capsys):
    text = "import jax\nfrom flax import nnx\n\n\ndef f(model: nnx.Linear):\n"
    text += "    return jax.tree.map(lambda x: x.reshape(2, -1).value, nnx.state(model))\n"

    assert moved(text, "flax-0.12", tmp_path) == (0, text), capsys.readouterr().out


MOVED_IMPORTS = {
    "from flax.experimental import nnx  # early": "from flax import nnx  # early",
    "from flax.experimental.nnx import Linear, Rngs": "from flax.nnx import Linear, Rngs",
    "import flax.experimental.nnx as nnx": "import flax.nnx as nnx",
}


@pytest.mark.parametrize(("old", "new"), MOVED_IMPORTS.items())
def test_imports_move_to_where_nnx_has_been_since(old, new, tmp_path, capsys):
    assert moved(old + "\n", "flax-0.12", tmp_path) == (0, new + "\n"), capsys.readouterr().out


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


TRAINED_BY_NAME = """\
import jax.numpy as jnp
import optax
from flax import nnx


def build(kind):
    return kind(2, 1, rngs=nnx.Rngs(0))


def train(kind, x):
    net = build(kind)
    optimizer = nnx.Optimizer(net, optax.sgd(0.1), wrt=nnx.Param)
    gradients = nnx.value_and_grad(lambda net: net(x).mean())
    loss, grads = gradients(net)
    optimizer.update(grads=grads)
    states = nnx.merge_state(*nnx.state(net, nnx.Param, ...))
    return loss, states, nnx.VariableState(nnx.Param, jnp.ones(2))
"""


def test_the_model_is_what_the_gradients_were_taken_of(tmp_path, capsys):
    status, text = moved(TRAINED_BY_NAME, "flax-0.12", tmp_path)

    expected = TRAINED_BY_NAME.replace("update(grads=", "update(net, grads=")
    assert text == expected.replace("nnx.VariableState(nnx.Param, jnp.ones(2))", "nnx.Param(jnp.ones(2))")
    assert status == 0, capsys.readouterr().out


STATES = """\
from flax import nnx

graphdef, params, rest = nnx.split(nnx.BatchNorm(2, rngs=nnx.Rngs(0)), nnx.Param, ...)
merged = nnx.State.merge(params, rest)
print(merged.to_pure_dict())
"""


def test_states_that_are_merged_are_one(tmp_path, capsys):
    status, text = moved(STATES, "flax-0.12", tmp_path)

    expected = STATES.replace("nnx.State.merge(", "nnx.merge_state(")
    assert text == expected.replace("merged.to_pure_dict()", "nnx.to_pure_dict(merged)")
    assert status == 0, capsys.readouterr().out


MORE_VALUES = """\
import jax
import jax.numpy as jnp
from flax import nnx


class Frozen(nnx.Module):
    def __init__(self, base: nnx.Linear, rngs: nnx.Rngs):
        self.kernel = nnx.Variable(base.kernel.value)
        self.bias = nnx.Variable(base.bias.value)
        self.name = nnx.Variable("frozen")
        self.rngs = rngs

    def __call__(self, x):
        self.sow(nnx.Intermediate, "seen", x)
        return x


net = Frozen(nnx.Linear(1, 1, rngs=nnx.Rngs(0)), nnx.Rngs(0, noise=1))
net(jnp.ones(1))
sown = nnx.pop(net, nnx.Intermediate)
print(sown["seen"].value, net.name.value, net.rngs.noise.count.value)
doubled = jax.tree.map(lambda x: 2 * x, nnx.state(net, nnx.PathContains("kernel")))
print(doubled["kernel"].value)
"""


def test_values_of_streams_of_members_of_layers_and_of_what_was_sown(tmp_path, capsys):
    status, text = moved(MORE_VALUES, "flax-0.12", tmp_path)

    assert text == MORE_VALUES.replace("base.kernel.value", "base.kernel[...]").replace(".value", ".get_value()")
    assert status == 0, capsys.readouterr().out


FLAT = """\
from flax import nnx


def rename(state: nnx.State):
    flat = state.flat_state()
    for path in flat:
        if path[0] == "old":
            flat[path] = flat[path].replace(flat[path] * 2)
    return nnx.State.from_flat_path(flat), [leaf.shape for leaf in state.flat_state().values()]


def paths(state: nnx.State):
    flat = state.flat_state()
    return [path for path, leaf in flat]
"""


def test_a_flat_state_that_is_used_as_a_dict_becomes_one(tmp_path, capsys):
    status, text = moved(FLAT, "flax-0.12", tmp_path)

    expected = FLAT.replace("state.flat_state()\n    for", "dict(nnx.to_flat_state(state))\n    for")
    expected = expected.replace("state.flat_state().values()", "dict(nnx.to_flat_state(state)).values()")
    expected = expected.replace("state.flat_state()", "nnx.to_flat_state(state)")
    assert text == expected.replace("nnx.State.from_flat_path", "nnx.from_flat_state")
    assert status == 0, capsys.readouterr().out


def test_a_question_about_something_else_is_no_question_about_the_version(tmp_path, capsys):
    text = "from flax import nnx\n\n\ndef f(x):\n    if isinstance(x, nnx.VariableState) and hasattr(x, 'shape'):\n"
    text += "        return x\n"

    assert moved(text, "flax-0.12", tmp_path) == (0, text.replace("VariableState", "Variable")), capsys.readouterr().out


EARLY = """\
from flax import nnx


class Net(nnx.Module):
    def __init__(self):
        self.linear = nnx.Linear(1, 1, rngs=nnx.Rngs(0))


net = Net()
"""
SPLITS = {
    "state, graphdef = net.split()\ngraphdef.merge(state)": (
        "graphdef, state = nnx.split(net)\nnnx.merge(graphdef, state)"
    ),
    "graphdef, state = net.split()\nnnx.merge(graphdef, state)": (
        "graphdef, state = nnx.split(net)\nnnx.merge(graphdef, state)"
    ),
    "a, b = net.split()": "a, b = net.split()",
    "nnx.merge(*net.split())": "nnx.merge(*nnx.split(net))",
}


@pytest.mark.parametrize(("old", "new"), SPLITS.items())
def test_the_graphdef_of_early_nnx_comes_first(old, new, tmp_path):
    _, text = moved(f"{EARLY}{old}\n", "flax-0.12", tmp_path, "--unsafe-fixes", "--ignore", "unused-result")

    assert text == f"{EARLY}{new}\n"


FULL_NAMES = {
    "import flax.nnx\n\nx = flax.nnx.Param(1)\n": "import nnxkit\n\nx = nnxkit.Param(1)\n",
    "import flax\n\nx = flax.nnx.Param(1), flax.__version__\n": (
        "import flax\nimport nnxkit\n\nx = nnxkit.Param(1), flax.__version__\n"
    ),
    "import flax\n\nprint(flax.__version__)\n": "import flax\n\nprint(flax.__version__)\n",
}


@pytest.mark.parametrize(("old", "new"), FULL_NAMES.items())
def test_names_that_are_written_in_full_move_to_nnxkit(old, new, tmp_path, capsys):
    assert moved(old, "nnxkit", tmp_path) == (0, new), capsys.readouterr().out


def test_an_import_that_nnxkit_lacks_is_reported_and_stays(tmp_path, capsys):
    text = "from flax.nnx.visualization import display\n\ndisplay(1)\n"

    assert moved(text, "nnxkit", tmp_path) == (1, text)
    assert "import-of-flax" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(NOT_IN_NNXKIT))
def test_what_nnxkit_lacks_is_not_there(name):
    pytest.importorskip("jax")

    assert importlib.util.find_spec(f"nnxkit.{name}") is None


def test_what_belongs_to_the_class_does_not_get_the_state_it_is_called_of(tmp_path, capsys):
    text = "from flax import nnx\n\n\ndef f(state: nnx.State, flat, other: nnx.State):\n"
    text += "    return state.from_flat_path(flat), state.merge(other)\n"

    status, new = moved(text, "flax-0.12", tmp_path)

    expected = text.replace("state.from_flat_path(", "nnx.from_flat_state(").replace("state.merge(", "nnx.merge_state(")
    assert (status, new) == (0, expected), capsys.readouterr().out
