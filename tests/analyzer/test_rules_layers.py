"""Shapes through layers, operators on Variables and shardings, in the forms that people write."""

import pytest

from marked import expect, program

RULES = ("NNX80", "NNX81", "NNX82")

SHAPES = {
    "a network that is flattened": """
        class Net(nnx.Module):
            def __init__(self, rngs: nnx.Rngs):
                self.conv = nnx.Conv(1, 8, kernel_size=(3, 3), rngs=rngs)
                self.pool = functools.partial(nnx.max_pool, window_shape=(2, 2), strides=(2, 2))
                self.head = nnx.Linear(100, 10, rngs=rngs)

            def __call__(self, x):
                x = self.pool(nnx.relu(self.conv(x)))
                return self.head(x.reshape(x.shape[0], -1))  # NNX810

        Net(nnx.Rngs(0))(jnp.ones((2, 8, 8, 1)))
        """,
    "channels of convolutions": """
        class Net(nnx.Module):
            def __init__(self, rngs: nnx.Rngs):
                self.first = nnx.Conv(3, 16, (3, 3), rngs=rngs)
                self.second = nnx.Conv(32, 64, (3, 3), rngs=rngs)

            def __call__(self, x):
                return self.second(nnx.gelu(self.first(x)))  # NNX810
        """,
    "sizes that go through two constructors": """
        class Block(nnx.Module):
            def __init__(self, width, rngs):
                self.linear = nnx.Linear(width, width, rngs=rngs)

            def __call__(self, x):
                return x + self.linear(x)  # NNX810

        class Net(nnx.Module):
            def __init__(self, din: int, width: int = 16, *, rngs: nnx.Rngs):
                self.first = nnx.Linear(din, width, rngs=rngs)
                self.block = Block(din, rngs)

            def __call__(self, x):
                return self.block(self.first(x))

        Net(4, rngs=nnx.Rngs(0))(jnp.ones((1, 4)))
        """,
    "a step under jit and grad": """
        model = nnx.Linear(4, 2, rngs=nnx.Rngs(0))

        @nnx.jit
        def step(model, x):
            return nnx.grad(lambda model: model(x).mean())(model)  # NNX810

        step(model, jnp.ones((8, 3)))
        """,
    "features of attention and of a mean": """
        rngs = nnx.Rngs(0)
        attention = nnx.MultiHeadAttention(num_heads=2, in_features=8, decode=False, rngs=rngs)
        head = nnx.Linear(16, 2, rngs=rngs)
        y = attention(jnp.ones((2, 5, 8)))
        head(y.mean(axis=1))  # NNX810
        attention(jnp.ones((2, 5, 4)))  # NNX810
        """,
    "an embedding": """
        table = nnx.Embed(10, 4, rngs=nnx.Rngs(0))
        norm = nnx.LayerNorm(8, rngs=nnx.Rngs(0))
        norm(table(jnp.arange(3)))  # NNX810
        table(jax.random.normal(jax.random.key(0), (3,)))  # NNX811
        """,
    "layers in turn, spread": """
        rngs = nnx.Rngs(0)
        layers = [nnx.Linear(2, 4, rngs=rngs), jax.nn.relu, nnx.Linear(8, 1, rngs=rngs)]
        model = nnx.Sequential(*layers)  # NNX810
        """,
    "what LoRA adds to": """
        rngs = nnx.Rngs(0)
        nnx.LoRA(4, 2, 8, base_module=nnx.Linear(6, 8, rngs=rngs), rngs=rngs)  # NNX810
        nnx.LoRA(4, 2, 8, base_module=nnx.Linear(4, 8, rngs=rngs), rngs=rngs)(jnp.ones((1, 4)))
        """,
    "heads": """
        heads = 3
        nnx.MultiHeadAttention(heads, 8, decode=False, rngs=nnx.Rngs(0))  # NNX809
        """,
}

SHAPES_THAT_FIT = {
    "a loop over layers": """
        rngs = nnx.Rngs(0)
        layers = nnx.List([nnx.Linear(2, 4, rngs=rngs), nnx.Linear(4, 8, rngs=rngs)])
        x = jnp.ones((1, 2))
        for layer in layers:
            x = layer(x)
        """,
    "one of two layers": """
        def run(flag, x):
            rngs = nnx.Rngs(0)
            layer = nnx.Linear(2, 4, rngs=rngs) if flag else nnx.Linear(3, 4, rngs=rngs)
            return layer(x)

        run(True, jnp.ones((1, 2)))
        """,
    "a map takes an axis away": """
        layer = nnx.Linear(2, 4, rngs=nnx.Rngs(0))

        @nnx.vmap(in_axes=(None, 2))
        def each(layer, x):
            return layer(x)

        each(layer, jnp.ones((5, 2, 7)))
        """,
    "a kernel that was replaced": """
        layer = nnx.Linear(2, 4, rngs=nnx.Rngs(0))
        layer.kernel = nnx.Param(jnp.ones((3, 4)))
        layer(jnp.ones((1, 3)))
        """,
    "a norm along another axis": """
        norm = nnx.BatchNorm(3, axis=1, use_running_average=False, rngs=nnx.Rngs(0))
        norm(jnp.ones((2, 3, 5)))
        """,
    "a layer of the project's own": """
        class Wide(nnx.Linear):
            def __call__(self, x):
                return super().__call__(jnp.concatenate([x, x], axis=-1))

        Wide(4, 2, rngs=nnx.Rngs(0))(jnp.ones((1, 2)))
        """,
    "a product of matrices": """
        layer = nnx.Linear(5, 2, rngs=nnx.Rngs(0))
        layer(jnp.ones((1, 2)) @ jnp.ones((2, 5)))
        """,
    "a test of the error": """
        import pytest
        with pytest.raises(Exception):
            nnx.Linear(2, 4, rngs=nnx.Rngs(0))(jnp.ones((1, 3)))
        """,
}

VARIABLES = {
    "in methods": """
        class Net(nnx.Module):
            def __init__(self, n: int):
                self.count = nnx.Variable(0)
                self.weight = nnx.Param(jnp.zeros((n, 3)))
                self.bias = nnx.Param(jnp.zeros(3)) if n > 3 else None
                self.mean = nnx.BatchStat(jnp.array(0))

            def __call__(self, x):
                self.weight *= 2  # NNX812
                if self.weight > 0:  # NNX814
                    pass
                if self.bias:
                    pass
                y = jax.lax.dot(x, self.weight)  # NNX817
                self.weight.at[0].set(1.0)  # NNX818
                self.mean[...] = 0.5  # NNX820
                self.count[...] += 1  # under a transform the number is an array
                while not self.weight:  # NNX815
                    break
                return {self.weight: y}  # NNX816
        """,
    "of an argument": """
        def use(weight: nnx.Param, model: nnx.Linear):
            weight += 1  # NNX812
            weight.scale = 3  # NNX803
            return weight < 3  # NNX814
        """,
    "that are right": """
        class Ordered(nnx.Variable):
            def __lt__(self, other):
                return self[...] < other

        def use(weight: nnx.Param, ordered: Ordered, optional: nnx.Param | None):
            weight[...] += 1
            if optional is not None and ordered < 3:
                return weight + jax.lax.stop_gradient(weight)
            x = jnp.zeros(3)
            x = x.at[0].set(1.0)
            return weight.at[0].set(1.0)
        """,
}

SHARDINGS = {
    "a model of a class": """
        class Net(nnx.Module):
            def __init__(self):
                self.weight = nnx.Param(jnp.ones((2, 2)), out_sharding=(None, "model"))

        def main():
            return Net()

        Net()  # NNX806
        with jax.set_mesh(jax.make_mesh((1,), ("modle",))):
            Net()  # NNX823
        """,
    "a mesh that somebody else may have set": """
        from elsewhere import setup, context

        def make():
            return nnx.Param(jnp.ones(2), out_sharding=("model",))

        with context():
            nnx.Param(jnp.ones(2), out_sharding=("model",))
        setup()
        nnx.Param(jnp.ones(2), out_sharding=("model",))
        """,
    "the project's own context": """
        import contextlib

        @contextlib.contextmanager
        def on_mesh():
            with jax.set_mesh(jax.make_mesh((1,), ("model",))):
                yield

        with on_mesh():
            nnx.Param(jnp.ones(2), out_sharding=("model",))
        """,
}

ALL = {**SHAPES, **SHAPES_THAT_FIT, **VARIABLES, **SHARDINGS}


@pytest.mark.parametrize("text", ALL.values(), ids=ALL)
def test_findings_are_where_the_marks_are(text, tmp_path):
    expect(tmp_path, program(text), rules=RULES)


def test_a_finding_points_at_what_gave_the_array_and_where_the_layer_is_made(tmp_path):
    found = expect(tmp_path, program(SHAPES["channels of convolutions"]), rules=RULES)

    assert [place.message for place in found[0].related] == [
        "`self.first` gives (..., 16)",
        "this Conv is made here",
    ]


def test_operators_write_into_variables_on_nnxkit(tmp_path):
    text = """
        def use(weight: nnx.Param):
            weight += 1
            return weight < 3 and weight
        """

    expect(tmp_path, program(text), rules=RULES, library="nnxkit")
