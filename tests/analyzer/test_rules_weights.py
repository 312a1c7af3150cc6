"""Weights that are none or come from elsewhere, shapes and results that do not fit; and what looks so and is right."""

from pathlib import Path

import pytest

from marked import expect, program

RULES = ("NNX151", "NNX826", "NNX828", "NNX829", "NNX865", "NNX867")

RIGHT = {
    "statistics that are set from the data": """
        class Norm(nnx.Module):
            def __init__(self, n):
                self.mean, self.std = jnp.zeros(n), jnp.ones(n)

            def __call__(self, x):
                return x * self.std + self.mean

        norm = Norm(3)
        norm.mean = jnp.full(3, 0.5)
        norm.std = jnp.full(3, 2.0)
    """,
    "random features": """
        class Fourier(nnx.Module):
            def __init__(self, n, rngs):
                self.b = jax.random.normal(rngs.params(), (n, 8))
                self.c = jax.random.normal(jax.random.key(0), (n, 8))

            def __call__(self, x):
                return jnp.sin(x @ self.b) + x @ self.c
    """,
    "an array that becomes a parameter": """
        class Lazy(nnx.Module):
            def __init__(self, n, rngs):
                w = nnx.initializers.lecun_normal()(rngs.params(), (n, n))
                self.w = nnx.Param(w)

            def __call__(self, x):
                return x @ self.w
    """,
    "a mask that is compared, and zeros that are carried": """
        class Cell(nnx.Module):
            def __init__(self, n):
                self.start, self.ones = jnp.zeros(n), jnp.ones(n)

            def __call__(self, xs):
                return jax.lax.scan(lambda c, x: (c, x), self.start, xs), jnp.where(xs > self.ones, xs, 0)
    """,
    "weights that are transposed": """
        def load(layer, weights):
            layer.kernel[...] = jnp.asarray(weights["a.weight"]).T
            layer.bias[...] = jnp.asarray(weights["a.bias"])
    """,
    "weights that were transposed before": """
        def load(layer, weights):
            weights = {name: value.T for name, value in weights.items() if name.endswith(".weight")}
            layer.kernel[...] = jnp.asarray(weights["a.weight"])
    """,
    "weights of GPT-2": """
        def load(layer, weights):
            layer.kernel[...] = jnp.asarray(weights["h.0.attn.c_attn.weight"])
    """,
    "an input embedding of one-hot vectors": """
        class Shared(nnx.Module):
            def __init__(self, vocab, dim, rngs):
                self.embed = nnx.Embed(vocab, dim, rngs=rngs)
                self.project = nnx.Linear(vocab, dim, rngs=rngs)
                self.project.kernel = self.embed.embedding
    """,
    "cells whose output is what they carry": """
        class Net(nnx.Module):
            def __init__(self, rngs):
                self.cell = nnx.GRUCell(3, 4, rngs=rngs)

            def __call__(self, xs, h):
                for x in xs:
                    y, h = self.cell(h, x)
                return y
    """,
    "a forward pass for its effect": """
        class Counter(nnx.Module):
            def __init__(self):
                self.count = nnx.Variable(jnp.array(0))

            def __call__(self, x):
                if x is None:
                    raise ValueError("x")
                self.count[...] += 1
                _unused = x
    """,
    "heads that are swapped to where they belong": """
        def attend(q, k, v):
            q, k, v = (a.transpose(0, 2, 1, 3) for a in (q, k, v))
            return nnx.dot_product_attention(q, k, v).transpose(0, 2, 1, 3)
    """,
    "a mask of tokens, and one of features without the last axis": """
        attention = nnx.MultiHeadAttention(2, 8, decode=False, rngs=nnx.Rngs(0))
        tokens, x = jnp.ones((2, 5), jnp.int32), jnp.ones((2, 5, 8))
        attention(x, mask=nnx.make_causal_mask(tokens))
        attention(x, mask=nnx.make_causal_mask(x[..., 0]))
        attention(x, mask=jnp.ones((5, 5), bool))
    """,
    "equations that repeat and broadcast": """
        a, b = jnp.ones((2, 1, 4)), jnp.ones((2, 3, 4))
        jnp.einsum("bij,bij->b", a, b)
        jnp.einsum("...j,kj->...k", b, jnp.ones((5, 4)))
    """,
    "keys of a State that are asked for their text": """
        class Net(nnx.Module):
            def __init__(self, rngs):
                self.a = nnx.Linear(2, 2, rngs=rngs)

        state = nnx.state(Net(nnx.Rngs(0)))
        print([name.upper() for name in state])
        for name, part in state.items():
            print(name, part["kernel"].shape)
    """,
}


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str, tmp_path: Path) -> None:
    expect(tmp_path, program(RIGHT[name]), rules=RULES)


WRONG = {
    "a bias of zeros": """
        class Shift(nnx.Module):
            def __init__(self, n):
                self.bias = jnp.zeros(n)  # NNX151

            def __call__(self, x):
                return x + self.bias
    """,
    "weights of PyTorch in a nested dict": """
        def convert(weights):
            return {"fc": {"kernel": jnp.asarray(weights["fc.weight"]), "bias": weights["fc.bias"]}}  # NNX828
    """,
    "weights of PyTorch by a path": """
        def convert(params, weights, name):
            params[name]["kernel"] = weights[f"{name}.weight"].numpy()  # NNX828
    """,
    "weights of PyTorch under a name that is put together": """
        def convert(weights, name):
            return {"kernel": jnp.array(weights[name + ".weight"])}  # NNX828
    """,
    "the parts of a State that a call gives": """
        class Net(nnx.Module):
            def __init__(self, rngs):
                self.a = nnx.Linear(2, 2, rngs=rngs)

        net = Net(nnx.Rngs(0))
        print(sum(p.size for p in nnx.state(net, nnx.Param).values()))  # NNX865
    """,
    "a table that is written into a kernel": """
        class Model(nnx.Module):
            def __init__(self, rngs):
                self.embed = nnx.Embed(10, 4, rngs=rngs)
                self.head = nnx.Linear(4, 10, rngs=rngs)
                self.head.kernel[...] = self.embed.embedding.value  # NNX828
    """,
    "a loop that ends a forward pass": """
        class Net(nnx.Module):
            def __init__(self, rngs):
                self.layers = nnx.List([nnx.Linear(2, 2, rngs=rngs)])

            def __call__(self, x):
                for layer in self.layers:
                    x = layer(x)  # NNX867
    """,
    "matrices that do not fit": """
        class Net(nnx.Module):
            def __init__(self, rngs):
                self.w = nnx.Param(jnp.ones((3, 4)))

            def __call__(self, x):
                return x @ self.w  # NNX826

        Net(nnx.Rngs(0))(jnp.ones((2, 4)))
    """,
    "an operand with another number of axes": """
        jnp.einsum("bij,jk->bik", jnp.ones((2, 3)), jnp.ones((3, 4)))  # NNX826
    """,
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str, tmp_path: Path) -> None:
    expect(tmp_path, program(WRONG[name]), rules=RULES)
