"""What a file's check gives follows from the text of the files, not from what was checked before it, or where."""

from __future__ import annotations

import itertools
import random

import pytest

from nnx_lint.checking import Checker
from nnx_lint.engine import Engine
from nnx_lint.selection import Options
from nnx_lint.sources import Sources
from nnx_lint.units import pack, unpack

EVERY_RULE = Options.everywhere(lambda rule: True)

LAYERS = """\
from flax import nnx
import jax.numpy as jnp

REGISTRY = []
SHARED = nnx.Linear(2, 2, rngs=nnx.Rngs(0))


class Base(nnx.Module):
    def __init__(self, parts):
        self.parts = parts
        self.add(REGISTRY)

    def add(self, more):
        self.more = more

    def replace(self, value):
        self.value = value


def register(layer):
    REGISTRY.append(layer)
    return layer


def fill(model):
    model.parts.append(jnp.zeros(3))
"""

# Each changes what the others see of `layers`: a list, an attribute of a class, of an instance, a global name.
FIRST = """\
from flax import nnx
import jax.numpy as jnp
import layers
from layers import Base, SHARED, register


class First(Base):
    def __init__(self, rngs: nnx.Rngs):
        super().__init__([nnx.Linear(2, 2, rngs=rngs)])


def change():
    register(jnp.zeros(2))
    layers.REGISTRY.append(nnx.Param(jnp.ones(3)))
    layers.Base.parts = "static"
    SHARED.kernel = "no kernel"
    SHARED.extra = [jnp.zeros(3)]
    layers.fill(First(nnx.Rngs(0)))
"""

SECOND = """\
from flax import nnx
import jax.numpy as jnp
import layers
import first


class Second(layers.Base):
    def __init__(self, rngs: nnx.Rngs):
        super().__init__(layers.REGISTRY)
        self.listed = layers.REGISTRY
        self.of_first = first.First(rngs).parts


@nnx.jit
def use(x):
    layers.SHARED.extra.append(x)
    return layers.SHARED(x)


def also():
    layers.SHARED.extra = 3
    nnx.register_data_type(layers.Base)
"""

# Modules that import each other, and classes that make each other.
TREE = """\
from flax import nnx
import branch


class Tree(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.branches = [branch.Branch(rngs)]
        self.size = len(self.branches)
"""

BRANCH = """\
from flax import nnx
import jax.numpy as jnp
import tree


class Branch(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.tree = tree.Tree(rngs)
        self.names = ["a"]
        self.names.append(jnp.zeros(2))
        self.tree.branches = jnp.zeros(3)
"""

PROGRAM = {"branch.py": BRANCH, "first.py": FIRST, "layers.py": LAYERS, "second.py": SECOND, "tree.py": TREE}


@pytest.fixture
def paths(tmp_path):
    for name, text in PROGRAM.items():
        (tmp_path / name).write_text(text)
    return [str(tmp_path / name) for name in PROGRAM]


def check(paths, order):
    engine = Engine(Sources(paths), [], EVERY_RULE)
    return {path: engine.check(path)._replace(folders=()) for path in order}


def test_any_order_and_any_part_gives_the_same(paths):
    expected = check(paths, paths)
    assert sum(len(unit.findings) for unit in expected.values()) >= 4
    for order in itertools.permutations(paths):
        assert check(paths, order) == {path: expected[path] for path in order}
    for path in paths:
        assert check(paths, [path]) == {path: expected[path]}


def test_a_second_check_in_the_same_process_gives_the_same(paths):
    engine = Engine(Sources(paths), [], EVERY_RULE)
    first = [engine.check(path) for path in paths]
    assert [engine.check(path).findings for path in paths] == [unit.findings for unit in first]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning", "ignore:os.fork:RuntimeWarning")
@pytest.mark.parametrize("jobs", [2, 3, 9])
def test_any_number_of_processes_gives_the_same(paths, jobs, monkeypatch):
    alone = Checker(EVERY_RULE, [])
    expected = alone.check(alone.read(paths))
    assert expected
    monkeypatch.setattr("nnx_lint.checking.BIG", 0)
    monkeypatch.setattr("nnx_lint.workers.possible", lambda: True)
    monkeypatch.setattr("os.fork", counted := Counted("os.fork"))
    checker = Checker(EVERY_RULE, [], jobs=jobs)
    assert checker.check(checker.read(paths)) == expected
    assert counted.calls == min(jobs, len(paths))
    assert checker.problems == alone.problems


class Counted:
    def __init__(self, name):
        module, _, function = name.rpartition(".")
        self.real, self.calls = getattr(__import__(module), function), 0

    def __call__(self):
        self.calls += 1
        return self.real()


def test_what_a_unit_used_is_known(paths, tmp_path):
    unit = check(paths, paths)[str(tmp_path / "second.py")]
    assert {str(tmp_path / name) for name in ("first.py", "layers.py")} <= set(unit.used)
    assert str(tmp_path / "tree.py") not in unit.used


def test_units_survive_packing(paths):
    import json

    for unit in check(paths, paths).values():
        assert unpack(json.loads(json.dumps(pack(unit)))) == unit


def test_findings_do_not_depend_on_the_order_of_the_paths(paths):
    def found(order):
        checker = Checker(EVERY_RULE, [])
        return {repr(finding) for finding in checker.check(checker.read(order))}

    expected = found(paths)
    for seed in range(6):
        assert found(random.Random(seed).sample(paths, len(paths))) == expected
