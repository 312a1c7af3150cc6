"""What the rules on bypassed, hidden, registered and opaque attributes see in other forms; where they are silent."""

import textwrap

import pytest

from nnx_lint.engine import check
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile

CODES = {"NNX116", "NNX119", "NNX120", "NNX125", "NNX126", "NNX127", "NNX128"}

HEAD = """\
import dataclasses
import functools
import jax
import jax.numpy as jnp
from flax import nnx
"""


def codes(program: str) -> list[tuple[str, int]]:
    """The findings of these rules, by code and line of the program."""
    source = SourceFile.from_text(HEAD + textwrap.dedent(program).lstrip("\n"), "program.py")
    assert source.error is None
    found = check([source], roots=[], options=Options.everywhere(selected=lambda rule: rule.code in CODES))
    return [(item.rule.code, source.location(item.span.start)[0] - HEAD.count("\n")) for item in found]


GRAPH = """\
class Graph(nnx.Object):
    def __init__(self):
        self.a = jnp.ones(2)

graph = Graph()
"""


@pytest.mark.parametrize(
    "call",
    [
        "functools.partial(jax.jit, static_argnums=1)(lambda g, n: g.a)(graph, 2)",
        "jax.grad(lambda x, g: x, argnums=1)(1.0, graph)",
        "jax.lax.scan(lambda c, x: (c, x), graph, jnp.ones(3))",
        "jax.lax.cond(True, lambda g: g, lambda g: g, graph)",
        "jax.eval_shape(lambda d: d['g'].a, {'g': graph})",
        "jax.tree_util.tree_map(lambda x: x, graph)",
    ],
)
def test_an_opaque_object_into_jax(call: str) -> None:
    assert codes(GRAPH + call) == [("NNX116", 6)]


@pytest.mark.parametrize(
    "call",
    [
        "jax.jit(lambda n, g: g.a, static_argnums=1)(2, graph)",
        "jax.jit(lambda n, g: g.a, static_argnames='g')(2, g=graph)",
        "jax.value_and_grad(lambda x, g: x)(1.0, graph)",
        "jax.vmap(lambda x, g: x, in_axes=(0, None))(jnp.ones(3), graph)",
        "jax.jit(lambda x: graph.a + x)(1.0)",
        "jax.tree.leaves([graph])",
        "nnx.jit(lambda g: g.a)(graph)",
        "def f(g: Graph):\n    return jax.jit(lambda g: 1)(g)",
        "class Sub(Graph, nnx.Pytree, pytree=unknown): pass\njax.jit(lambda g: 1)(Sub())",
    ],
)
def test_an_object_that_jax_does_not_take_apart(call: str) -> None:
    assert codes(GRAPH + call) == []


def test_a_hidden_method_is_found_through_names_and_functions() -> None:
    program = """
    class Net(nnx.Module):
        def __init__(self, train: bool):
            self.train = 3
            self.inner = Inner()

    class Inner(nnx.Module):
        def __init__(self):
            self.sow = "rows"

    def step(net: Net):
        net.train()
        net.inner.sow(nnx.Intermediate, "x", 1)
    """
    assert codes(program) == [("NNX119", 3), ("NNX119", 8)]


@pytest.mark.parametrize(
    "body",
    [
        "def __init__(self): self.train = make()",
        "def __init__(self): self.train = True\n    def __setattr__(self, name, value): pass",
        "def train(self): return 1",
        "def __init__(self): self.train = nnx.Linear(2, 2, rngs=nnx.Rngs(0))",
    ],
)
def test_a_method_that_may_be_called(body: str) -> None:
    assert codes(f"class Net(nnx.Module):\n    {body}\nNet().train()\n") == []


@pytest.mark.parametrize(
    "method",
    [
        "__setstate__(self, state): self.__dict__['w'] = jnp.ones(2)",
        "__deepcopy__(self, memo):\n        self._fill()\n    def _fill(self): self.__dict__[unknown()] = jnp.ones(2)",
        "__init__(self):\n        self._fill()\n    def _fill(self): vars(self)['w'] = jnp.ones(2)",
        "rename(self): self.__dict__['name'] = 'net'",
        "keep(self, value): self.__dict__['value'] = value",
    ],
)
def test_attributes_written_past_the_class_on_purpose(method: str) -> None:
    assert codes(f"class Net(nnx.Module):\n    def {method}\n") == []


def test_frozen_dataclasses_and_plain_objects_may_be_written_past_their_class() -> None:
    program = """
    @dataclasses.dataclass(frozen=True)
    class Point:
        x: jax.Array

        def move(self):
            object.__setattr__(self, "x", jnp.ones(2))

    class Net(nnx.Module, pytree=False):
        def move(self):
            object.__setattr__(self, "x", jnp.ones(2))
    """
    assert codes(program) == []


@pytest.mark.parametrize(
    "made",
    [
        "net = object.__new__(Net)\nhelp_me(net)\nnet.x = 1",
        "net = object.__new__(Net)\nnet.__setstate__({})\nnet.x = 1",
        "net = object.__new__(Net)\nvars(net).update(vars(Net()))\nnet.x = 1",
        "net = object.__new__(type(other))\nnet.x = 1",
        "net = object.__new__(Plain)\nnet.x = 1",
    ],
)
def test_an_object_that_may_be_initialized(made: str) -> None:
    assert codes(f"class Net(nnx.Module):\n    pass\nclass Plain:\n    pass\n{made}\n") == []


def test_an_attribute_in_new_under_a_condition() -> None:
    program = """
    class Net(nnx.Module):
        made = None

        def __new__(cls, *args):
            if cls.made is None:
                cls.made = super(Net, cls).__new__(cls)
                new = super().__new__(cls)
                new.size = 1
            return cls.made
    """
    assert codes(program) == [("NNX128", 8)]


@pytest.mark.parametrize(
    "program",
    [
        "class Sub(Base): pass\nnnx.register_data_type(Sub)",
        "@register\nclass Sub(Base): pass",
        "class Sub(Base): pass\nregister(Sub)\njax.tree_util.register_static(Sub)",
        "@jax.tree_util.register_static\nclass Sub(Base): pass",
        "class Sub(Base, metaclass=Meta): pass",
    ],
)
def test_a_subclass_that_may_be_registered(program: str) -> None:
    base = "@nnx.register_data_type\nclass Base: pass\n"
    holder = "\nclass Net(nnx.Pytree):\n    def __init__(self): self.a = Sub()\n"
    assert codes(base + program + holder) == []


@pytest.mark.parametrize(
    ("type_", "found"),
    [
        ("@nnx.register_data_type\nclass T: pass\n", True),
        ("class T: pass\nnnx.register_data_type(T)\nunknown.register(T)\n", False),
        ("@nnx.register_data_type\n@jax.tree_util.register_static\nclass T: pass\n", False),
        ("@nnx.register_data_type\nclass T(nnx.Pytree): pass\n", False),
        ("@nnx.register_data_type\n@unknown\nclass T: pass\n", False),
    ],
)
def test_a_registered_type_into_a_transform(type_: str, found: bool) -> None:
    holder = "class Net(nnx.Pytree):\n    def __init__(self): self.a = T()\n"
    program = type_ + holder + "jax.jit(lambda n: 1)(Net())\n"
    assert [code for code, _ in codes(program)] == (["NNX127"] if found else [])
    assert codes(type_ + holder + "jax.grad(lambda x, n: x)(1.0, Net())\n") == []


def test_a_registration_before_the_object_or_of_another_type() -> None:
    program = """
    class T: pass
    class U: pass
    class Net(nnx.Pytree):
        def __init__(self): self.a = T()
    nnx.register_data_type(T)
    net = Net()
    nnx.register_data_type(U)
    def main():
        other = Net()
        nnx.register_data_type(T)
    """
    assert codes(program) == []
