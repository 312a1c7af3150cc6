"""Options, arguments and results of transforms beyond their pages: other forms of mistakes, and what looks like them.

A program marks each line that a rule is to report by `# NNX404`, the code of the rule; all other lines are clean.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from marked import expect, findings, program

RULES = ("NNX40", "NNX41", "NNX42", "NNX43", "NNX44", "NNX45")

MISTAKES = {
    "axes from a constant": """
        AXES = (nnx.Carry, 0, 0)

        @nnx.scan(in_axes=AXES, out_axes=(nnx.Carry, 0))  # NNX404
        def step(carry, x):
            return carry, x

        @functools.partial(nnx.scan, in_axes=(0, 0), out_axes=(nnx.Carry, 0))  # NNX438
        def other(carry, x):
            return carry, x
    """,
    "a carry in a dict": """
        nnx.scan(lambda c, x: (c, x), in_axes=({"a": nnx.Carry}, 0), out_axes=(nnx.Carry, 0))  # NNX438
        nnx.scan(lambda c, x: (c, x), out_axes=(nnx.Carry, nnx.StateAxes({...: None})))  # NNX438
    """,
    "results of a scan": """
        @nnx.scan
        def step(carry, x):
            if carry is None:
                return carry, x
            return carry, x, x  # NNX404

        step(jnp.zeros(()), jnp.ones(3))

        def body(carry, x):
            return [carry, x]  # NNX404

        nnx.scan(body)(jnp.zeros(()), jnp.ones(3))
    """,
    "a new object as the carry": """
        def body(model, x):
            fresh = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
            return fresh, x  # NNX432

        nnx.scan(body)(nnx.Linear(2, 2, rngs=nnx.Rngs(0)), jnp.ones(3))

        def add(i, total):
            return nnx.Variable(total + i)  # NNX432

        nnx.fori_loop(0, 3, add, nnx.Variable(jnp.zeros(())), graph_updates=False)

        def swap(carry):
            return (carry[1], carry[0], carry[2] + 1)  # NNX432  # NNX432

        nnx.while_loop(lambda carry: carry[2] < 3, swap, (nnx.Variable(jnp.ones(())), nnx.Variable(jnp.zeros(())), 0))
    """,
    "axes of a method": """
        class Net(nnx.Module):
            def __init__(self):
                self.w = nnx.Param(jnp.ones(2))

            @nnx.vmap(in_axes=(None, 0, 0))  # NNX404
            def f(self, x):
                return self.w * x

        jax.vmap(lambda x: x, in_axes=(0, 0))  # NNX404
    """,
    "a model with the axis of the batch": """
        class Net(nnx.Module):
            def __init__(self, rngs):
                self.layers = nnx.List([nnx.Linear(2, 2, rngs=rngs) for _ in range(3)])

            def __call__(self, x):
                return x

        net = Net(nnx.Rngs(0))
        jax.vmap(lambda net, x: net(x))(net, jnp.ones((5, 2)))  # NNX418

        @nnx.jit
        def step(net, x):
            return nnx.vmap(Net.__call__, in_axes=(0, 0))(net, x)  # NNX418

        step(net, jnp.ones((5, 2)))
    """,
    "numbers have no axis": """
        nnx.vmap(lambda x, y: x * y)(jnp.ones(3), 2.0)  # NNX420
    """,
    "keyword-only parameters": """
        class Net(nnx.Module):
            def __call__(self, x, *, train=False):
                return x

        nnx.vmap(nnx.BatchNorm(2, rngs=nnx.Rngs(0)))  # NNX419
        nnx.remat(Net())  # NNX419

        @nnx.grad  # NNX419
        def loss(w, *, scale):
            return w * scale
    """,
    "operands at the transform": """
        def step(carry, x):
            return carry, x

        carry, out = nnx.scan(step, jnp.zeros(()), jnp.ones(3))  # NNX403
        nnx.switch(0, step, step, 1, 2)  # NNX406
    """,
    "a branch that adds an attribute": """
        class Net(nnx.Module):
            def __init__(self):
                self.w = nnx.Param(jnp.ones(2))

        def first(net):
            net.seen = nnx.Variable(jnp.array(1))  # NNX430

        nnx.switch(0, [first, lambda net: None], Net())

        def body(net):
            net.extra = nnx.Variable(jnp.array(1))  # NNX433
            return net

        nnx.while_loop(lambda net: False, body, Net())
    """,
    "statistics under a broadcast axis": """
        @nnx.scan(in_axes=(nnx.Carry, None, 0), out_axes=(nnx.Carry, 0))
        def step(carry, norm, x):
            return carry, norm(x)  # NNX437

        step(jnp.zeros(()), nnx.BatchNorm(2, rngs=nnx.Rngs(0)), jnp.ones((3, 4, 2)))
    """,
    "one object in two ways": """
        model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
        nnx.value_and_grad(lambda a, b: 0.0)(model, model)  # NNX402
    """,
    "modes": """
        model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
        nnx.jvp(lambda m: m(jnp.ones((1, 2))), (model,), (model,))  # NNX450
        nnx.cached_partial(nnx.jit(lambda m: m), model, graph=False)  # NNX450
        axes = nnx.StateAxes({...: 0})
        nnx.vmap(lambda m: m.kernel[...], in_axes=(axes,), graph_updates=False)  # NNX405

        @nnx.jit(graph=False)
        def f(m):
            return {"model": m}  # NNX401

        f(model)
    """,
    "kept objects": """
        class Net(nnx.Module):
            def __init__(self):
                self.w = nnx.Param(jnp.ones(2))

        @nnx.jit
        def step(net, x):
            net.last = nnx.Variable(x)  # NNX449
            return x

        net = Net()
        compiled = nnx.cached_partial(step, net)
        compiled(jnp.ones(2))
        net.more = nnx.Param(jnp.ones(2))  # NNX452
        compiled(jnp.ones(2))
        nnx.cached_partial(lambda net: net, net)  # NNX448
    """,
}


@pytest.mark.parametrize("text", MISTAKES.values(), ids=list(MISTAKES))
def test_mistakes(text: str, tmp_path: Path) -> None:
    expect(tmp_path, program(text), rules=RULES)


TRAPS = {
    "axes that fit": """
        nnx.scan(lambda c, x, y: (c, x), in_axes=(nnx.Carry, 0, None), out_axes=(nnx.Carry, 0))
        nnx.scan(lambda c: c, in_axes=nnx.Carry, out_axes=nnx.Carry, length=3)
        nnx.scan(lambda x: x, in_axes=0, out_axes=0)
        nnx.vmap(lambda *xs: xs, in_axes=(0, 0, 0))
        nnx.vmap(lambda x, y=1: x, in_axes=(0, 0))
        jax.vmap(lambda x, y=1, *, z=2: x, in_axes=(0,))
        nnx.pmap(lambda m, x: x, in_axes=(nnx.StateAxes({...: None}), 0))

        def axes():
            return (nnx.Carry, 0)

        nnx.scan(lambda c, x: (c, x), in_axes=axes(), out_axes=axes())
    """,
    "results that may fit": """
        from elsewhere import carried, compute

        @nnx.scan
        def step(carry, x):
            return compute(carry, x)

        @nnx.scan
        def other(carry, x):
            result = carry, x
            return result

        @nnx.scan
        def third(carry, x):
            return carry

        third(carried, jnp.ones(3))
    """,
    "the carry itself": """
        @nnx.scan
        def step(model, x):
            model.kernel[...] *= 2
            return model, x

        step(nnx.Linear(2, 2, rngs=nnx.Rngs(0)), jnp.ones(3))

        def body(carry):
            model, i = carry
            return model, i + 1

        nnx.while_loop(lambda carry: carry[1] < 3, body, (nnx.Linear(2, 2, rngs=nnx.Rngs(0)), 0))
    """,
    "models with an axis": """
        @nnx.split_rngs(splits=5)
        @nnx.vmap
        def create(rngs: nnx.Rngs):
            return nnx.Linear(2, 3, rngs=rngs)

        models = create(nnx.Rngs(0))
        nnx.vmap(lambda m, x: m(x))(models, jnp.ones((5, 2)))

        class Stack(nnx.Module):
            def __init__(self):
                self.w = nnx.Param(jnp.ones((5, 2)))

        nnx.vmap(lambda m, x: m.w * x)(Stack(), jnp.ones((5, 2)))

        def forward(model: nnx.Linear, x):
            return nnx.vmap(lambda m, x: m(x))(model, x)

        one = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
        nnx.vmap(lambda m, x: m(x), in_axes=(None, 0))(one, jnp.ones((5, 2)))
        nnx.vmap(one)(jnp.ones((5, 2)))
    """,
    "keyword-only parameters that are bound": """
        norm = nnx.BatchNorm(2, rngs=nnx.Rngs(0))
        nnx.vmap(lambda x: norm(x, use_running_average=True))
        nnx.jit(norm)

        @nnx.vmap(graph=False)
        def f(x, *, y=1):
            return x
    """,
    "branches that agree": """
        class Net(nnx.Module):
            def __init__(self):
                self.w = nnx.Param(jnp.ones(2))

        def first(net):
            net.seen = nnx.Variable(jnp.array(1))

        def second(net):
            net.seen = nnx.Variable(jnp.array(2))

        nnx.switch(0, [first, second], Net())

        def write(net):
            net.w[...] = net.w * 2

        nnx.cond(True, write, lambda net: None, Net())
        nnx.switch(0, (write, write), Net())
    """,
    "one value for all elements": """
        @nnx.vmap(in_axes=(None, 0), axis_name="batch")
        def add(total, x):
            total[...] = jax.lax.pmean(x, "batch")
            return x

        add(nnx.Variable(jnp.array(0.0)), jnp.ones(3))

        @nnx.vmap(in_axes=(0, 0))
        def each(total, x):
            total[...] += x

        each(nnx.Variable(jnp.zeros(3)), jnp.ones(3))
    """,
    "one object in one way": """
        model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
        nnx.grad(lambda a, b: 0.0, argnums=(0, 1))(model, model)
        nnx.vmap(lambda a, b, x: a(x), in_axes=(None, None, 0))(model, model, jnp.ones((5, 2)))
        nnx.jit(lambda a, b: a)(model, model)
    """,
    "modes that fit": """
        model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
        nnx.vjp(lambda m: m(jnp.ones((1, 2))).sum(), model, graph=False)
        nnx.cached_partial(nnx.jit(lambda m: m), model)
        nnx.vmap(lambda m: m, in_axes=(nnx.StateAxes({...: None}),), axis_size=2)
        prefix = nnx.prefix(model, {...: None}, graph=False)
        nnx.vmap(lambda m, x: m(x), in_axes=(prefix, 0), graph=False)

        @nnx.jit(graph_updates=False)
        def f(m):
            return m.kernel[...]

        f(model)
    """,
    "kept objects that are written": """
        class Net(nnx.Module):
            def __init__(self):
                self.w = nnx.Param(jnp.ones(2))

        @nnx.jit
        def step(net, x):
            net.w[...] = x
            return x

        net = Net()
        compiled = nnx.cached_partial(step, net)
        compiled(jnp.ones(2))
        net.w[...] = jnp.zeros(2)
        compiled(jnp.ones(2))
        net.more = nnx.Param(jnp.ones(2))
    """,
}


@pytest.mark.parametrize("text", TRAPS.values(), ids=list(TRAPS))
def test_traps(text: str, tmp_path: Path) -> None:
    expect(tmp_path, program(text), rules=RULES)


def test_what_nnxkit_takes_is_no_mistake_there(tmp_path: Path) -> None:
    text = """
        model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
        nnx.vmap(lambda m, x: m(x), in_axes=[None, 0])(model, jnp.ones((5, 2)))
        nnx.vjp(lambda m: m(jnp.ones((1, 2))).sum(), model)
        nnx.vmap(nnx.LayerNorm(2, rngs=nnx.Rngs(0)))(jnp.ones((5, 2)))
        f = nnx.jit_partial(lambda m, x: m(x), model)
        f(nnx.Param(jnp.ones((1, 2))))
    """
    ((name, source),) = program(text).items()
    ours = {name: source.replace("from flax import nnx", "import nnxkit as nnx")}

    assert {item.rule.code for item in findings(tmp_path, program(text), rules=RULES)[0]} >= {
        "NNX417",
        "NNX419",
        "NNX450",
    }
    assert findings(tmp_path, ours, rules=RULES)[0] == []


def test_axes_are_named_as_they_are_written(tmp_path: Path) -> None:
    text = """
        model, kept = nnx.Linear(2, 2, rngs=nnx.Rngs(0)), nnx.BatchNorm(2, rngs=nnx.Rngs(0))
        axes = nnx.StateAxes({nnx.BatchStat: None,
            ...: 0})
        nnx.vmap(lambda m, k, x: m(k(x)), in_axes=(0, axes, 0))(model, kept, jnp.ones((5, 2)))
    """
    (found,) = findings(tmp_path, program(text), rules=("NNX418",))[0]

    assert found.help == "pass it whole: `in_axes=(None, nnx.StateAxes({nnx.BatchStat: None, ...: 0}), 0)`"
