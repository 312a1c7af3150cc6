"""Summaries of functions: what they hold, and that they stand in for calls that are not executed."""

import textwrap

from abstract import run
from marked import expect, program
from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import library_class
from nnx_lint.model.frames import Frame
from nnx_lint.model.leaves import same_object
from nnx_lint.model.results import Renewal
from nnx_lint.model.values import Array, Const

NETS = """
class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.count = nnx.Variable(jnp.array(0))
        self.norm = nnx.BatchNorm(3, rngs=rngs)
        self.rngs = rngs

    def bump(self):
        self.count.value += 1

    def noise(self, shape):
        return jax.random.normal(self.rngs.params(), shape)

    def show(self, x):
        self.sow(nnx.Intermediate, "x", x)
        return self
"""


def summary(text, name):
    interpreter, module, _ = run(NETS + textwrap.dedent(text))
    func = module.env.names[name]
    assert isinstance(func, FuncVal)
    return interpreter.apart(func, Frame(module, module.env)).effects.of(func)


def shown(found):
    return {(*change.place.path, change.effect) for change in found.changes}


def test_changes_of_arguments_and_what_they_hold():
    found = summary("def f(net: Net, x):\n    net.bump()\n    net.norm.mean.value = x\n    net.extra = 1\n", "f")
    assert shown(found) == {("count", "write"), ("norm", "mean", "write"), ("write",)}
    assert [change.place.parameter for change in found.changed("net")] == ["net"] * 3
    assert not found.changed("x")
    assert not found.draws
    assert not found.sows


def test_drawing_and_sowing():
    assert summary("def f(net: Net):\n    return net.noise((2,))\n", "f").draws
    assert summary("def f(rngs: nnx.Rngs):\n    return rngs()\n", "f").draws
    assert summary("def f(net: Net, x):\n    return net.show(x)\n", "f").sows


def test_a_change_under_a_condition_is_no_part():
    assert not summary("def f(net: Net, x):\n    if x:\n        net.bump()\n", "f").changes
    assert not summary("def f(net: Net, x):\n    if x:\n        return\n    net.bump()\n", "f").changes


def test_recursion_ends_in_a_fixpoint():
    text = """
        def even(net: Net, n):
            net.bump()
            odd(net, n)
        def odd(net: Net, n):
            net.norm.mean.value = n
            even(net, n)
        """
    both = {("count", "write"), ("norm", "mean", "write")}
    assert shown(summary(text, "even")) == shown(summary(text, "odd")) == both


def test_paths_of_recursive_structures_end():
    text = """
        class Tree(nnx.Module):
            child: "Tree"
            def __init__(self):
                self.count = nnx.Variable(jnp.array(0))
        def visit(tree: Tree):
            tree.count.value += 1
            visit(tree.child)
        """
    found = summary(text, "visit")
    assert ("count", "write") in shown(found)
    assert max(len(change.place.path) for change in found.changes) <= 4


CALLS = (
    NETS
    + """
def f9(net: Net):
    net.bump()
    return net
def f8(net: Net): return f9(net)
def f7(net: Net): return f8(net)
def f6(net: Net): return f7(net)
def f5(net: Net): return f6(net)
def f4(net: Net): return f5(net)
def f3(net: Net): return f4(net)
def f2(net: Net): return f3(net)
def f1(net: Net): return f2(net)

def even(net: Net, n):
    net.bump()
    return odd(net, n - 1)
def odd(net: Net, n):
    return even(net, n - 1)

net = Net(nnx.Rngs(0))

def often():
    f9(net), f9(net), f9(net), f9(net), f9(net), f9(net), f9(net), f9(net)
    f9(net), f9(net), f9(net), f9(net), f9(net), f9(net), f9(net), f9(net)
"""
)


def test_a_deep_call_is_not_lost(tmp_path):
    text = CALLS + "@jax.jit\ndef f(x):\n    f1(net)  # NNX202\n    return x\n"
    expect(tmp_path, program(text))


def test_what_a_deep_call_returns(tmp_path):
    text = (
        CALLS
        + "@jax.jit\ndef f(x):\n    held = f1(net)  # NNX202\n    held.norm.mean.value = x  # NNX201\n    return x\n"
    )
    expect(tmp_path, program(text))


def test_one_call_of_many_is_not_lost(tmp_path):
    text = CALLS + "@jax.jit\ndef f(x):\n    f9(net)  # NNX202\n    return x\n"
    expect(tmp_path, program(text))


def test_a_recursive_call_is_not_lost(tmp_path):
    text = CALLS + "@jax.jit\ndef f(x):\n    odd(net, 3)  # NNX202\n    return x\n"
    expect(tmp_path, program(text))


def test_own_objects_may_change(tmp_path):
    body = "    net = Net(nnx.Rngs(0))\n    f1(net)\n    odd(net, 2)\n    return f9(net).count.value\n"
    expect(tmp_path, program(CALLS + "@jax.jit\ndef f(x):\n" + body))


def test_methods_of_layers():
    text = """
        def f(cell: nnx.LSTMCell, rngs: nnx.Rngs):
            return cell.initialize_carry((2, 4), rngs)
        """
    found = summary(text, "f")
    assert {(change.place.parameter, change.effect) for change in found.changes} == {("rngs", "draw")}


def test_layers_that_draw_or_write(tmp_path):
    text = """
        rngs = nnx.Rngs(0)
        cell = nnx.LSTMCell(4, 3, rngs=rngs)
        rnn = nnx.RNN(cell, rngs=rngs)
        attention = nnx.MultiHeadAttention(2, 4, rngs=rngs, decode=True)
        @jax.jit
        def f(x):
            carry = cell.initialize_carry(x.shape, rngs)  # NNX203
            own = cell.initialize_carry(x.shape, nnx.Rngs(1))
            rnn(x, initial_carry=own)
            attention.init_cache(x.shape)  # NNX202
            return rnn(x)  # NNX202
        """
    expect(tmp_path, program(text))


FACTORY = """
import optax

def make(rngs: nnx.Rngs, other):
    net = Net(rngs)
    return net, {"opt": nnx.Optimizer(net, optax.adam(1e-3), wrt=nnx.Param)}, other

def caller(rngs: nnx.Rngs, thing):
    return (make(rngs, thing), make(rngs, 1))

def deep(rngs: nnx.Rngs, thing):
    return caller(rngs, thing)
"""


def returned(text, name):
    interpreter, module, _ = run(NETS + textwrap.dedent(text))
    func = module.env.names[name]
    inner = Frame(module, module.env)
    summary_of = interpreter.apart(func, inner).effects.of(func)
    given = {"rngs": interpreter.instance(library_class("nnx.Rngs"), 0), "thing": Const("given"), "other": Const("it")}
    return Renewal(interpreter, 0, summary_of.results, lambda place: given[place.parameter]).result()


def test_what_a_factory_made_goes_together():
    net, table, other = returned(FACTORY, "make").items
    assert net.cls.name == "Net"
    assert not net.assumed
    assert table.items[0][1].args["model"] is net
    assert other.value == "it"


def test_each_call_of_a_factory_gets_objects_of_its_own():
    first, second = returned(FACTORY, "caller").items
    assert first.items[0] is not second.items[0]
    assert not same_object(first.items[0], second.items[0])
    assert (first.items[2].value, second.items[2].value) == ("given", 1)


def test_results_that_hold_themselves_end():
    found = returned("def loop(rngs: nnx.Rngs):\n    items = []\n    items.append(items)\n    return items\n", "loop")
    assert found.type == "list"


def test_an_object_that_was_changed_keeps_the_change():
    net = returned("def f(rngs: nnx.Rngs):\n    net = Net(rngs)\n    net.extra = 'x'\n    return net\n", "f")
    assert attribute_of(net, "extra").value.value == "x"


def test_results_of_transforms_in_transforms():
    _, module, _ = run(
        NETS
        + "net = Net(nnx.Rngs(0))\nboth = jax.jit(nnx.value_and_grad(lambda n: n.count.value * 1.0))(net)\n"
        + "sole = nnx.jit(nnx.grad(lambda n: n.count.value * 1.0))(net)\n"
    )
    value, gradients = module.env.names["both"].items
    assert isinstance(value, Array)
    assert gradients.of is module.env.names["net"]
    assert module.env.names["sole"].of is module.env.names["net"]
