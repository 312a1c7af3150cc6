"""The trace rules beyond their pages: programs that look like mistakes and are none."""

from __future__ import annotations

import pytest

from marked import expect, program

HARMLESS = {
    "made inside": """
        @jax.jit
        def step(x):
            count = nnx.Variable(x)
            count[...] += 1
            model = nnx.BatchNorm(2, rngs=nnx.Rngs(0))
            model.train()
            return model(count[...])
    """,
    "received as an argument": """
        @nnx.jit
        def step(model: nnx.BatchNorm, optimizer: nnx.Optimizer, x):
            def loss(model):
                return model(x).sum()

            grads = nnx.grad(loss)(model)
            optimizer.update(model, grads)
            alias = model
            alias.train()
            return x
    """,
    "evaluation mode": """
        model = nnx.Sequential(nnx.Dropout(0.5, rngs=nnx.Rngs(0)), nnx.BatchNorm(2, rngs=nnx.Rngs(0)))
        model.eval()
        dropout = nnx.Dropout(0.5, deterministic=True)
        other = nnx.Dropout(0.5, rngs=nnx.Rngs(0))
        other.deterministic = True
        norm = nnx.BatchNorm(2, use_running_average=True, rngs=nnx.Rngs(0))

        @jax.jit
        def step(x):
            return norm(other(dropout(model(x))))
    """,
    "evaluation mode at the call": """
        norm = nnx.BatchNorm(2, rngs=nnx.Rngs(0))
        step = jax.jit(lambda x: norm(x, use_running_average=True))
    """,
    "a mode that is not known": """
        class Net(nnx.Module):
            def __init__(self, rngs):
                self.dropout = nnx.Dropout(0.5, rngs=rngs)

            def __call__(self, x):
                return self.dropout(x)

            def predict(self, xs):
                return jax.vmap(lambda x: self(x))(xs)

        def evaluate(net: Net, xs):
            return jax.lax.map(lambda x: net(x), xs)

        net = Net(nnx.Rngs(0))
        prepare_for_inference(net)
        step = jax.jit(lambda x: net(x))
    """,
    "switched to evaluation before the call": """
        net = nnx.Dropout(0.5, rngs=nnx.Rngs(0))

        @jax.jit
        def predict(x):
            return net(x)

        def main(x):
            net.eval()
            return predict(x)
    """,
    "merged from arguments": """
        net = nnx.BatchNorm(2, rngs=nnx.Rngs(0))
        graphdef, state = nnx.split(net)

        @jax.jit
        def step(state, x):
            net = nnx.merge(graphdef, state)
            net.train()
            return net(x), nnx.state(net)

        step(state, 1.0)
    """,
    "copied inside": """
        net = nnx.BatchNorm(2, rngs=nnx.Rngs(0))
        graphdef, state = nnx.split(net)

        @jax.jit
        def step(x):
            return nnx.clone(net)(x) + nnx.merge(graphdef, state, copy=True)(x)
    """,
    "either captured or made inside": """
        def make(fresh):
            count = nnx.Variable(jnp.array(0))

            @jax.jit
            def step(x):
                target = nnx.Variable(x) if fresh else count
                target[...] += 1
                return x

            return step
    """,
    "changed by a callee only under a condition": """
        class Net(nnx.Module):
            def __init__(self, record):
                self.record = record
                self.seen = nnx.Variable(jnp.array(0))

            def __call__(self, x):
                if self.record:
                    self.seen[...] += 1
                return x

            def apply(self, x):
                if not self.record:
                    return x
                self.seen[...] += 1
                return x

        def make(net: Net):
            return jax.jit(lambda x: net(net.apply(x)))
    """,
    "objects of plain classes": """
        class Config:
            def __init__(self):
                self.traced = 0
                self.shapes = []

        config = Config()

        @jax.jit
        def step(x):
            config.traced += 1
            config.shapes.append(x.shape)
            print(x)
            return x
    """,
    "expected to fail": """
        import pytest

        count = nnx.Variable(jnp.array(0))

        def test_capture():
            def step(x):
                count[...] += 1
                return x

            with pytest.raises(Exception):
                jax.jit(step)(1.0)
    """,
    "a registered class": """
        class Point:
            @jax.jit
            def norm(self):
                return 1.0

        jax.tree_util.register_pytree_node(Point, lambda p: ((), None), lambda aux, children: Point())
    """,
    "a mode that no layer has": """
        model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))

        @jax.jit
        def step(x):
            model.eval()
            return model(x)
    """,
    "streams that the call brings": """
        dropout = nnx.Dropout(0.5, rngs=nnx.Rngs(0))

        @jax.jit
        def step(x, key):
            return dropout(x, rngs=nnx.Rngs(key)) + dropout(x, rngs=key)
    """,
    "views in evaluation mode": """
        dropout = nnx.Sequential(nnx.Dropout(0.5, rngs=nnx.Rngs(0)))
        fixed = nnx.view(dropout, deterministic=True)
        step = jax.jit(lambda x: fixed(x) + nnx.view(dropout, deterministic=True)(x))
    """,
    "array references": """
        count = nnx.Variable(jnp.array(0), ref=True)

        @jax.jit
        def step(x):
            count[...] += 1
            return x
    """,
    "arguments that a partial holds": """
        model = nnx.BatchNorm(2, rngs=nnx.Rngs(0))

        count = nnx.Variable(jnp.array(0))

        def step(model, x, count=count):
            count[...] += 1
            return model(x)

        nnx.cached_partial(nnx.jit(step), model)(1.0, nnx.Variable(jnp.array(0)))
        nnx.jit_partial(step, model, graph=False)(1.0, nnx.Variable(jnp.array(0)))
    """,
    "a transform that flax has in other modes only": """
        model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
        step = nnx.jit(lambda x: nnx.vjp(lambda model: model(x).sum(), model))
    """,
    "tree mode": """
        nnx.set_graph_mode(False)
        model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
        step = nnx.jit(lambda x: nnx.grad(lambda model: model(x).sum())(model))
    """,
    "a stack that is emptied again": """
        stack = []

        @jax.jit
        def step(x):
            stack.append(x)
            return stack.pop()
    """,
    "a mixin for classes that JAX can take": """
        class Fast:
            @jax.jit
            def __call__(self, x):
                return self.forward(x)
    """,
    "a base of registered classes": """
        class Base:
            def __init__(self, x):
                self.x = x

            @jax.jit
            def double(self):
                return 2 * self.x

        @jax.tree_util.register_pytree_node_class
        class Point(Base):
            pass
    """,
    "captured and only read": """
        model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
        jax.vmap(model)(jnp.ones((3, 2)))
        forward = jax.jit(functools.partial(model))
        jax.grad(lambda x: model(x).sum())(jnp.ones(2))
        nnx.jit(lambda x: model(x) + model.bias[...])(jnp.ones(2))
    """,
}


@pytest.mark.parametrize("name", HARMLESS)
def test_traps(tmp_path, name):
    expect(tmp_path, program(HARMLESS[name]))
