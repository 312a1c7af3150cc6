"""Sizes with fractions, cells, meshes, named axes and what optimizers ask for, in the forms that people write."""

import pytest

from marked import expect, program

RULES = ("NNX428", "NNX473", "NNX61", "NNX62", "NNX656", "NNX80", "NNX81", "NNX82")

FRACTIONS = {
    "a quotient of unknown sizes": """
        class Net(nnx.Module):
            def __init__(self, dim, heads, rngs: nnx.Rngs):
                self.heads = heads
                self.width = dim / heads
                self.first = nnx.Linear(dim, dim / 2, rngs=rngs)  # NNX809
                self.second = nnx.Linear(dim, int(dim / 2), rngs=rngs)
                self.third = nnx.Linear(dim, round(1.5 * dim), rngs=rngs)
                self.scale = self.width ** -0.5

            def __call__(self, x):
                x = jnp.asarray(x) * self.scale / self.heads
                return x.reshape(x.shape[0], self.heads, self.width)  # NNX826
        """,
    "a ratio that an instance may replace": """
        class Net(nnx.Module):
            ratio: float = 1.0

            def wide(self, x, times):
                return x.reshape(times, -1)

            def __call__(self, x):
                return self.wide(x, self.ratio) if self.ratio > 1 else x

        Net()(jnp.ones(4))
        """,
    "paths are divided too": """
        def folder(root, name):
            return root / name
        """,
}

CELLS = {
    "a loop over a cell": """
        class Net(nnx.Module):
            def __init__(self, rngs: nnx.Rngs):
                self.cell = nnx.LSTMCell(4, 8, rngs=rngs)
                self.head = nnx.Linear(4, 2, rngs=rngs)
                self.rngs = rngs

            def __call__(self, xs):
                carry = self.cell.initialize_carry(xs[:, 0].shape, rngs=self.rngs)
                for step in range(3):
                    carry, y = self.cell(carry, xs[:, step])
                return self.head(y)  # NNX810

        Net(nnx.Rngs(0))(jnp.ones((2, 3, 4)))
        """,
    "what is carried is taken apart": """
        rnn = nnx.RNN(nnx.GRUCell(4, 8, rngs=nnx.Rngs(0)), return_carry=True)
        head = nnx.Linear(8, 2, rngs=nnx.Rngs(1))
        carry, y = rnn(jnp.ones((2, 3, 4)))
        head(y)
        head(carry)
        head(rnn(jnp.ones((2, 3, 4)))[1])
        head(rnn(jnp.ones((2, 3, 4))))  # NNX809
        """,
}

DRAWN = {
    "random numbers of numpy": """
        import numpy as np
        rng = np.random.default_rng(0)
        linear = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
        linear(rng.normal(size=(2, 4)))  # NNX810
        linear(np.random.randn(2, 4))  # NNX810
        linear(np.random.rand(2, 3).astype("float32"))
        linear(rng.standard_normal((2, 3)))
        linear(rng.normal(0.0, 1.0))
        """,
    "an array that is written into": """
        embed = nnx.Embed(10, 4, rngs=nnx.Rngs(0))
        embed(jnp.zeros(3).at[0].set(1))  # NNX811
        embed(jnp.zeros(3, int).at[0].set(1))
        """,
}

MESHES = {
    "parts that nobody knows": """
        from jax.sharding import NamedSharding, PartitionSpec as P

        def place(count, x):
            mesh = jax.make_mesh((count, 2), ("data", "model"))
            jax.device_put(jnp.ones((3, 4)), NamedSharding(mesh, P("data", "model")))
            jax.device_put(jnp.ones((4, 3)), NamedSharding(mesh, P("data", "model")))  # NNX428
            jax.device_put(x, NamedSharding(mesh, P("data", None, None, None)))
            return NamedSharding(mesh, P(("data", "batch")))  # NNX823
        """,
    "a mesh of an array": """
        import numpy as np
        from jax.sharding import Mesh

        Mesh(np.array(jax.devices()).reshape(-1, 2), ("data", "model"))
        Mesh(np.array(jax.devices()).reshape(-1, 2), ("data",))  # NNX826
        Mesh(np.array(jax.devices()), ("data",))
        """,
}

AXES = {
    "a function that somebody else may map": """
        def mean(x):
            return jax.lax.pmean(x, "batch")

        @jax.jit
        def step(x):
            return mean(x)
        """,
    "maps, also around and inside of others": """
        @functools.partial(jax.pmap, axis_name="batch")
        def mean(x):
            return jax.lax.pmean(x, "batch")

        @functools.partial(jax.vmap, axis_name="rows")
        @jax.jit
        def total(x):
            return jax.lax.psum(x, "rows")

        @jax.jit
        @functools.partial(jax.vmap, axis_name="rows")
        def both(x):
            return jax.lax.psum(x, "rows") + jax.lax.psum(x, "columns")  # NNX473

        mean(jnp.ones((1, 2)))
        total(jnp.ones((1, 2)))
        both(jnp.ones((1, 2)))
        """,
    "only on several devices": """
        def mean(x):
            return jax.lax.pmean(x, "batch") if jax.device_count() > 1 else x

        mean(jnp.ones(2))
        """,
}

OPTIMIZERS = {
    "what a transformation asks for": """
        model = nnx.Linear(2, 1, rngs=nnx.Rngs(0))
        graphdef, params = nnx.split(model)
        decayed, plain = optax.chain(optax.clip(1.0), optax.adamw(1e-3)), optax.adam(1e-3)
        decayed.update(params, decayed.init(params))  # NNX618
        decayed.update(params, decayed.init(params), params)
        plain.update(params, plain.init(params))
        nnx.Optimizer(model, decayed, wrt=nnx.Param).update(model, params)
        nnx.Optimizer(model, optax.lbfgs(linesearch=None), wrt=nnx.Param).update(model, params)
        nnx.Optimizer(model, optax.lbfgs(), wrt=nnx.Param).update(model, params)  # NNX611
        """,
    "metrics under other names": """
        metrics = nnx.MultiMetric(loss=nnx.metrics.Average("loss"))
        values = metrics.compute()
        values["loss"]
        values["accuracy"]  # NNX614

        def shown(**more):
            return nnx.MultiMetric(loss=nnx.metrics.Average("loss"), **more).compute()["accuracy"]
        """,
}

PATHS = {
    "absolute or not known": """
        import os
        import orbax.checkpoint as ocp

        def save(root, state):
            checkpointer = ocp.PyTreeCheckpointer()
            checkpointer.save(os.path.join(root, "last"), state)
            checkpointer.save(os.path.join("runs", root), state)
            checkpointer.save(os.path.join("runs", "last"), state)  # NNX656
            checkpointer.save(os.path.abspath("runs"), state)
            checkpointer.save(f"{root}/last", state)
            checkpointer.save(f"runs/{root}", state)  # NNX656
            checkpointer.save("C:/runs", state)
            checkpointer.save("gs://runs", state)
        """,
}

ALL = {**FRACTIONS, **CELLS, **DRAWN, **MESHES, **AXES, **OPTIMIZERS, **PATHS}


@pytest.mark.parametrize("text", ALL.values(), ids=ALL)
def test_findings_are_where_the_marks_are(text, tmp_path):
    expect(tmp_path, program(text), rules=RULES)
