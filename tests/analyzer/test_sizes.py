"""Sizes that a program computes: loops and comprehensions over known elements, arithmetic, configurations."""

import textwrap

import pytest

from marked import expect, program

RULES = ("NNX809", "NNX81", "NNX826")

BLOCK = """
class Block(nnx.Module):
    def __init__(self, din, dout, *, rngs: nnx.Rngs):
        self.linear = nnx.Linear(din, dout, rngs=rngs)

    def __call__(self, x):
        return nnx.relu(self.linear(x))
"""


CONFIGURED = """
import dataclasses

@dataclasses.dataclass(frozen=True)
class Config:
    vocabulary: int
    hidden: int = 8
    stacked: bool = False

    @property
    def wide(self):
        return 2 * self.hidden

class MLP(nnx.Module):
    def __init__(self, config: Config, rngs):
        self.up = nnx.Linear(config.hidden, config.wide, rngs=rngs)
        self.down = nnx.Linear(config.wide, config.hidden, rngs=rngs)

    def __call__(self, x):
        return self.down(self.up(x))

class Layer(nnx.Module):
    def __init__(self, config: Config, rngs):
        self.norm = nnx.LayerNorm(config.hidden, rngs=rngs)
        self.mlp = MLP(config, rngs)

    def __call__(self, x):
        return x + self.mlp(self.norm(x))

class Net(nnx.Module):
    def __init__(self, config: Config, rngs):
        self.config = config
        self.embed = nnx.Embed(config.vocabulary, config.hidden, rngs=rngs)
        if config.stacked:
            self.layers = nnx.split_rngs(splits=2)(nnx.vmap(lambda rngs: Layer(config, rngs)))(rngs)
        else:
            self.layers = nnx.List([Layer(config, rngs) for _ in range(2)])

    def __call__(self, x):
        x = self.embed(x)
        if self.config.stacked:
            step = nnx.scan(lambda x, layer: layer(x), in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
            return step(x, self.layers)
        for layer in self.layers:
            x = layer(x)
        return x

def main(tokenizer, tokens, given):
    config = Config(tokenizer.size)
    return Net(config, nnx.Rngs(0))(tokens)
"""

MADE = "Config(tokenizer.size)"
"""How the program makes the configuration: one field is not known."""

NARROW = (
    ("config.wide, config.hidden, rngs", "config.hidden, config.hidden, rngs"),
    ("self.down(self.up(x))", "self.down(self.up(x))  # NNX810"),
)
"""What makes the second layer a wrong one."""

NOISE = """
        class Encoder(nnx.Module):
            def __init__(self, rngs):
                self.mean, self.scale = nnx.Linear(3, 8, rngs=rngs), nnx.Linear(3, 8, rngs=rngs)
                self.one = nnx.Linear(3, 1, rngs=rngs)
                self.out = nnx.Linear(9, 3, rngs=rngs)

            def __call__(self, x, key, factor):
                mean = self.mean(x)
                mean = mean + self.scale(x) * jax.random.normal(key, mean.shape)
                x = self.out(self.one(x) * factor) + self.out(jnp.maximum(factor, self.one(x)))
                return x + self.out(mean)  # NNX810
        """


def replaced(text, *pairs):
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


WRONG = {
    "a configuration whose size is not known": replaced(CONFIGURED, *NARROW, (MADE, "Config(tokenizer.size, given)")),
    "a configuration that options fill": replaced(CONFIGURED, *NARROW, (MADE, "Config(tokenizer.size, **given)")),
    "a configuration that was replaced": replaced(CONFIGURED, *NARROW, (MADE, f"dataclasses.replace({MADE}, **given)")),
    "layers one by one": """
        class Net(nnx.Module):
            def __init__(self, rngs):
                self.blocks = nnx.List([Block(3, 4, rngs=rngs), Block(4, 4, rngs=rngs)])
                self.head = nnx.Linear(5, 1, rngs=rngs)

            def __call__(self, x):
                for block in self.blocks:
                    x = block(x)
                return self.head(x)  # NNX810
        """,
    "numbered layers": """
        class Net(nnx.Module):
            def __init__(self, rngs):
                self.blocks = nnx.List([nnx.Linear(3, 4, rngs=rngs), nnx.Linear(6, 4, rngs=rngs)])

            def __call__(self, x):
                for i, block in enumerate(self.blocks):
                    x = block(x)  # NNX810
                    if i < len(self.blocks) - 1:
                        x = nnx.relu(x)
                return x
        """,
    "layers by their number": """
        class Net(nnx.Module):
            def __init__(self, rngs):
                self.blocks = nnx.List([nnx.Linear(3, 4, rngs=rngs), nnx.Linear(6, 4, rngs=rngs)])

            def __call__(self, x):
                for i in range(len(self.blocks)):
                    x = self.blocks[i](x)  # NNX810
                return x
        """,
    "all layers but the first": """
        rngs = nnx.Rngs(0)
        layers = [nnx.Linear(2, 3, rngs=rngs), nnx.Linear(4, 5, rngs=rngs), nnx.Linear(5, 6, rngs=rngs)]
        x = jnp.ones((1, 4))
        for layer in layers[1:]:
            x = layer(x)
        layers[0](x)  # NNX810
        """,
    "the other way round": """
        rngs = nnx.Rngs(0)
        layers = [nnx.Linear(3, 2, rngs=rngs), nnx.Linear(4, 5, rngs=rngs)]
        x = jnp.ones((1, 4))
        for layer in reversed(layers):
            x = layer(x)  # NNX810
        """,
    "a dict of layers": """
        rngs = nnx.Rngs(0)
        layers = {"in": nnx.Linear(4, 3, rngs=rngs), "out": nnx.Linear(4, 3, rngs=rngs)}
        x = jnp.ones((1, 4))
        for name, layer in layers.items():
            x = layer(x)  # NNX810
        """,
    "pairs of sizes": """
        class Net(nnx.Module):
            def __init__(self, sizes, *, rngs):
                self.layers = nnx.List([nnx.Linear(a, b, rngs=rngs) for a, b in zip(sizes[:-1], sizes[1:])])
                self.head = nnx.Linear(sizes[-2], 1, rngs=rngs)

            def __call__(self, x):
                for layer in self.layers:
                    x = nnx.relu(layer(x))
                return self.head(x)  # NNX810

        Net([4, 10, 20], rngs=nnx.Rngs(0))(jnp.ones((1, 4)))
        """,
    "sizes pair by pair": """
        import itertools

        rngs = nnx.Rngs(0)
        layers = [nnx.Linear(a, b, rngs=rngs) for a, b in itertools.pairwise((4, 8, 16))]
        nnx.Sequential(*layers, nnx.Linear(8, 1, rngs=rngs))  # NNX810
        """,
    "layers that a loop appends": """
        class Net(nnx.Module):
            def __init__(self, rngs):
                layers, last = [], 4
                for width in (8, 16):
                    layers.append(nnx.Linear(last, width, rngs=rngs))
                    layers += [nnx.relu]
                    last = width
                layers.extend([nnx.Linear(2 * last, 3, rngs=rngs)])
                self.net = nnx.Sequential(*layers)  # NNX810

            def __call__(self, x):
                return self.net(x)
        """,
    "a configuration with a field that is not known, handed on": replaced(CONFIGURED, *NARROW),
    "a configuration with a flag that is not known, handed on": replaced(
        CONFIGURED, *NARROW, (MADE, "Config(tokenizer.size, stacked=given)")
    ),
    "noise of the shape of what has more axes": NOISE,
    "the last axes of what has more": """
        class Net(nnx.Module):
            def __init__(self, rngs):
                self.time = nnx.Linear(4, 16, rngs=rngs)
                self.linear = nnx.Linear(3, 8, rngs=rngs)

            def __call__(self, x, t):
                x, t = self.linear(x), self.time(t)
                y = x + t[:, None, :]  # NNX826
                y = x + t[..., None, :]  # NNX826
                y = x + t[..., :9]  # NNX826
                return x + t[0, :]  # NNX826
        """,
    "a configuration": """
        import dataclasses

        @dataclasses.dataclass
        class Config:
            hidden: int = 32
            factor: int = 4

        class Net(nnx.Module):
            def __init__(self, config: Config, rngs):
                self.up = nnx.Linear(config.hidden, config.hidden * config.factor, rngs=rngs)
                self.down = nnx.Linear(config.hidden * 3, config.hidden, rngs=rngs)

            def __call__(self, x):
                return self.down(nnx.gelu(self.up(x)))  # NNX810

        Net(Config(hidden=8), nnx.Rngs(0))(jnp.ones((2, 8)))
        """,
    "many layers of one size": """
        class Net(nnx.Module):
            def __init__(self, dim: int = 16, depth: int = 12, *, rngs):
                self.blocks = nnx.List([nnx.Linear(dim, dim, rngs=rngs) for _ in range(depth)])
                self.norm = nnx.GroupNorm(dim, num_groups=3, rngs=rngs)  # NNX809
                self.head = nnx.Linear(dim * 2, 3, rngs=rngs)

            def __call__(self, x):
                for block in self.blocks:
                    x = x + block(x)
                return self.head(x)  # NNX810

        Net(rngs=nnx.Rngs(0))(jnp.ones((2, 16)))
        """,
    "heads of a part": """
        class Part(nnx.Module):
            def __init__(self, dim, heads, rngs):
                self.attention = nnx.MultiHeadAttention(heads, dim, decode=False, rngs=rngs)  # NNX809

        class Net(nnx.Module):
            def __init__(self, width, rngs):
                self.parts = nnx.List([Part(width // 2, 3, rngs)])

        Net(16, nnx.Rngs(0))
        """,
    "a flattened picture": """
        class Net(nnx.Module):
            def __init__(self, rngs):
                self.first = nnx.Conv(1, 32, kernel_size=(3, 3), padding=((1, 1), (1, 1)), rngs=rngs)
                self.second = nnx.Conv(32, 64, kernel_size=(3, 3), padding="VALID", strides=2, rngs=rngs)
                self.head = nnx.Linear(3136, 256, rngs=rngs)

            def __call__(self, x):
                x = nnx.avg_pool(nnx.relu(self.first(x)), (2, 2), strides=(2, 2))
                x = nnx.relu(self.second(x))
                return self.head(x.reshape(x.shape[0], -1))  # NNX810

        Net(nnx.Rngs(0))(jnp.ones((1, 28, 28, 1)))
        """,
    "attention by hand": """
        class Attention(nnx.Module):
            def __init__(self, dim: int, heads: int, rngs):
                self.qkv = nnx.LinearGeneral(dim, (3, heads, dim // heads), rngs=rngs)
                self.out = nnx.LinearGeneral((heads, dim // heads), dim, axis=(-2, -1), rngs=rngs)
                self.norm = nnx.LayerNorm(dim * 2, rngs=rngs)

            def __call__(self, x):
                q, k, v = jnp.split(self.qkv(x), 3, axis=2)
                q, k, v = q[:, :, 0], k[:, :, 0], v[:, :, 0]
                weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 2.0)
                return self.norm(self.out(jnp.einsum("bhqk,bkhd->bqhd", weights, v)))  # NNX810

        Attention(16, 4, nnx.Rngs(0))(jnp.ones((2, 5, 16)))
        """,
    "patches and a class token": """
        class Patches(nnx.Module):
            def __init__(self, rngs):
                self.embed = nnx.Conv(3, 24, kernel_size=(4, 4), strides=(4, 4), rngs=rngs)
                self.token = nnx.Param(jnp.zeros((1, 1, 24)))
                self.head = nnx.Linear(48, 10, rngs=rngs)

            def __call__(self, x):
                x = self.embed(x)
                b, h, w, c = x.shape
                x = x.reshape(b, h * w, c)
                x = jnp.concatenate([jnp.broadcast_to(self.token[...], (b, 1, c)), x], axis=1)
                return self.head(x[:, 0])  # NNX810

        Patches(nnx.Rngs(0))(jnp.ones((2, 16, 16, 3)))
        """,
    "an equation": """
        nnx.Einsum("btd,dhk->bthk", (8, 2, 4), (2, 4), rngs=nnx.Rngs(0))(jnp.ones((1, 3, 9)))  # NNX810
        """,
}

FITTING = {
    "a loop that ends early": """
        rngs = nnx.Rngs(0)
        x = jnp.ones((1, 4))
        for layer in [nnx.Linear(4, 3, rngs=rngs), nnx.Linear(3, 2, rngs=rngs)]:
            x = layer(x)
            if x.sum() > 0:
                break
        nnx.Linear(3, 1, rngs=rngs)(x)
        """,
    "layers that others may add": """
        class Net(nnx.Module):
            def __init__(self, rngs):
                self.layers = nnx.List([nnx.Linear(3, 4, rngs=rngs)])
                self.head = nnx.Linear(8, 1, rngs=rngs)

            def add(self, layer):
                self.layers.append(layer)

            def __call__(self, x):
                for layer in self.layers:
                    x = layer(x)
                return self.head(x)
        """,
    "layers that are added under a condition": """
        def run(deep, x):
            rngs = nnx.Rngs(0)
            layers = [nnx.Linear(3, 4, rngs=rngs)]
            if deep:
                layers.append(nnx.Linear(4, 8, rngs=rngs))
            for layer in layers:
                x = layer(x)
            return nnx.Linear(8, 1, rngs=rngs)(x)
        """,
    "a list that goes elsewhere": """
        import elsewhere

        rngs = nnx.Rngs(0)
        layers = [nnx.Linear(3, 4, rngs=rngs)]
        elsewhere.fill(layers)
        nnx.Sequential(*layers, nnx.Linear(8, 1, rngs=rngs))
        """,
    "two sizes of one class": """
        one, other = Block(3, 4, rngs=nnx.Rngs(0)), Block(4, 3, rngs=nnx.Rngs(0))
        other(one(jnp.ones((1, 3))))
        """,
    "a number that is counted up": """
        class Net(nnx.Module):
            def __init__(self, rngs):
                self.calls = 0
                self.small, self.large = nnx.Linear(2, 2, rngs=rngs), nnx.Linear(4, 4, rngs=rngs)

            def __call__(self, x):
                self.calls += 1
                if self.calls % 2 == 1:
                    return self.small(x[:, :2])
                return self.large(x)

        net = Net(nnx.Rngs(0))
        net(jnp.ones((1, 4)))
        net(jnp.ones((1, 4)))
        """,
    "a configuration with a field that is not known": CONFIGURED,
    "noise of the shape of what has more axes": replaced(
        NOISE, ("nnx.Linear(9, 3", "nnx.Linear(8, 3"), ("  # NNX810", "")
    ),
    "the last axes of what has more": """
        class Net(nnx.Module):
            def __init__(self, rngs):
                self.time = nnx.Linear(4, 16, rngs=rngs)
                self.linear = nnx.Linear(3, 8, rngs=rngs)

            def __call__(self, x, t):
                x, t = self.linear(x), self.time(t)
                y = x + t[:, None, :8] + t[..., 8:] + t[..., None, 8:]
                y = y + t[..., 0, None] + t[:, None]
                return y + t[0, ..., :8] + t[:, :8]
        """,
    "a configuration that changes": """
        import dataclasses

        @dataclasses.dataclass
        class Config:
            hidden: int = 32

        config = Config()
        config.hidden = 8
        Block(8, config.hidden, rngs=nnx.Rngs(0))(nnx.Linear(2, config.hidden, rngs=nnx.Rngs(0))(jnp.ones((1, 2))))

        class Net(nnx.Module):
            def __init__(self, config: Config, rngs):
                self.linear = nnx.Linear(config.hidden, 2, rngs=rngs)

        Net(config, nnx.Rngs(0)).linear(jnp.ones((1, 8)))
        """,
    "a shape that a loop changes": """
        x = jnp.ones((1, 4))
        for _ in range(20):
            x = x.reshape(-1)
        nnx.Linear(3, 1, rngs=nnx.Rngs(0))(x.reshape(2, -1)[:, :3])
        """,
    "sizes of all rounds at once": """
        rngs = nnx.Rngs(0)
        layers = [nnx.Linear(2 * i, 2 * i, rngs=rngs) for i in range(1, 20)]
        layers[3](jnp.ones((1, 8)))
        """,
    "names of sizes": """
        class Net(nnx.Module):
            def __init__(self, rngs, **sizes):
                for name, size in sizes.items():
                    setattr(self, name, nnx.Linear(size, size, rngs=rngs))
        Net(nnx.Rngs(0), a=3, b=4).a(jnp.ones((1, 3)))
        """,
}


def with_block(text):
    return f"{BLOCK}\n{textwrap.dedent(text)}"


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
def test_sizes_that_do_not_fit(text, tmp_path):
    expect(tmp_path, program(with_block(text)), rules=RULES)


@pytest.mark.parametrize("text", FITTING.values(), ids=FITTING.keys())
def test_sizes_that_fit(text, tmp_path):
    expect(tmp_path, program(with_block(text)), rules=RULES)
