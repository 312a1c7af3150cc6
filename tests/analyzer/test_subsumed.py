"""One mistake, one finding: a rule is silent where another one says the same at the same place."""

from __future__ import annotations

import pytest

from nnx_lint import engine
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile
from nnx_lint.subsumed import SUBSUMED
from nnx_rules.rules import REGISTRY

PROGRAMS = {
    "aliased-snapshot": """\
import optax
from flax import nnx
class Agent:
    def __init__(self):
        self.online = nnx.Linear(2, 1, rngs=nnx.Rngs(0))
        self.target = self.online
        self.opt = nnx.Optimizer(self.online, optax.sgd(0.1), wrt=nnx.Param)
    def learn(self):
        self.opt.update(self.online, nnx.grad(lambda m: m.kernel[...].sum())(self.online))
    def sync(self):
        nnx.update(self.target, nnx.state(self.online))
agent = Agent()
for _ in range(3):
    agent.learn()
    agent.sync()
""",
    "layer-input-shape": """\
import jax.numpy as jnp
from flax import nnx
class Merged(nnx.Module):
    def __init__(self, rngs):
        self.out = nnx.Linear(8, 8, rngs=rngs)
    def __call__(self, x):
        b, t, _ = x.shape
        return self.out(x.reshape(b, t, 4))
Merged(nnx.Rngs(0))(jnp.ones((2, 5, 8)))
""",
    "layer-signature": """\
from flax import nnx
weight = nnx.Param(nnx.initializers.normal(), (2, 3))
""",
    "lost-update": """\
import jax
import jax.numpy as jnp
from flax import nnx
class Noise(nnx.Module):
    def __init__(self, rngs):
        self.rngs = rngs
    def __call__(self, x):
        return x + self.rngs.normal(x.shape)
noise = Noise(nnx.Rngs(0))
jax.jit(lambda m, x: m(x))(noise, jnp.zeros(3))
""",
    "missing-rngs": """\
from flax import nnx
class Net(nnx.Module):
    def __init__(self, dim, *, rngs: nnx.Rngs):
        self.out = nnx.Linear(dim, dim, rngs=rngs)
net = Net(4, key=0)
""",
    "optimizer-without-variables": """\
import optax
from flax import nnx
model = nnx.Linear(2, 1, rngs=nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt="params")
""",
    "sequential-misuse": """\
import jax.numpy as jnp
from flax import nnx
model = nnx.Sequential(nnx.Linear(2, 2, rngs=nnx.Rngs(0)), nnx.relu())
model(jnp.ones((1, 2)))
""",
}


def found(text, tmp_path, wanted):
    path = tmp_path / "program.py"
    path.write_text(text, encoding="utf-8")
    options = Options.everywhere(wanted)
    return {
        item.rule.name for item in engine.check([SourceFile.read(str(path))], roots=[str(tmp_path)], options=options)
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_mistake_of_two_kinds_is_reported_once(name, tmp_path):
    reported = found(PROGRAMS[name], tmp_path, lambda rule: rule.default)
    assert len(reported) == 1
    assert reported <= SUBSUMED[name]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_rule_that_is_not_selected_silences_nothing(name, tmp_path):
    better = SUBSUMED[name]
    assert found(PROGRAMS[name], tmp_path, lambda rule: rule.default and rule.name not in better) == {name}


def test_the_table_names_rules():
    names = {rule.name for rule in REGISTRY}
    assert SUBSUMED.keys() <= names
    assert all(better <= names and name not in better for name, better in SUBSUMED.items())
