"""What a program does to a model by ways that nobody can follow: the rules know no more of it than is certain.

A program marks each line that a rule is to report by `# NNX616`, the code of the rule; all other lines are clean.
"""

import pytest

from marked import expect, program

MODEL = """
class Adapter(nnx.Param):
    pass


class Adapted(nnx.Module):
    def __init__(self, base: nnx.Linear):
        self.base = base
        self.a = Adapter(jnp.zeros((2, 2)))


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.first = nnx.Linear(2, 2, rngs=rngs)
        self.second = nnx.Linear(2, 2, rngs=rngs)
"""

UNKNOWN = {
    "layers replaced while modules are walked through": """
        def adapt(model):
            for _, module in list(nnx.iter_modules(model)):
                module.first = Adapted(module.first)
    """,
    "owners found by the names of a path": """
        def adapt(model):
            for path, module in list(nnx.iter_modules(model)):
                owner = model
                for part in path[:-1]:
                    owner = getattr(owner, part)
                setattr(owner, path[-1], Adapted(module))
    """,
    "owners found by a reduction": """
        def adapt(model):
            for path, module in list(nnx.iter_graph(model)):
                setattr(functools.reduce(getattr, path[:-1], model), path[-1], Adapted(module))
    """,
    "attributes of a namespace": """
        def adapt(model):
            for name, child in list(vars(model).items()):
                if isinstance(child, nnx.Linear):
                    setattr(model, name, Adapted(child))
    """,
    "a function of another library, called for what it does": """
        import adapters

        def adapt(model):
            adapters.insert(model, rank=2)
    """,
}

KNOWN = {
    "a walk that counts": """
        def adapt(model):
            return sum(1 for _ in nnx.iter_modules(model))
    """,
    "a walk that sets flags and values": """
        def adapt(model):
            for _, module in nnx.iter_modules(model):
                module.frozen = True
            for _, leaf in nnx.iter_graph(model):
                if isinstance(leaf, nnx.Variable):
                    leaf.value = leaf.value * 2
    """,
    "a function of another library, called for its result": """
        import reports

        def adapt(model):
            return reports.size_of(model)
    """,
    "a walk through another model": """
        def adapt(model):
            other = Net(nnx.Rngs(1))
            for _, module in list(nnx.iter_modules(other)):
                module.first = Adapted(module.first)
    """,
}

MAIN = """
model = Net(nnx.Rngs(0))
adapt(model)
optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=Adapter)"""


def whole(text: str, mark: str) -> dict[str, str]:
    (name, code), *_ = program(text).items()
    return {name: f"{code}{MODEL}{MAIN}{mark}\n"}


@pytest.mark.parametrize("text", UNKNOWN.values(), ids=UNKNOWN)
def test_an_adapted_model_may_have_adapters(text, tmp_path):
    expect(tmp_path, whole(text, ""), rules=("NNX616",))


@pytest.mark.parametrize("text", KNOWN.values(), ids=KNOWN)
def test_a_model_that_is_read_is_what_it_was(text, tmp_path):
    expect(tmp_path, whole(text, "  # NNX616"), rules=("NNX616",))


def test_a_summary_says_that_a_model_was_rewired(tmp_path):
    """Functions that are too deep for their bodies to be executed once more are known by their summaries."""
    adapt = UNKNOWN["owners found by a reduction"]
    levels = "\n".join(f"        def adapt_{n}(model):\n            adapt_{n - 1}(model)\n" for n in range(1, 9))
    text = adapt.replace("def adapt(", "def adapt_0(") + "\n" + levels + "\n        adapt = adapt_8\n"
    expect(tmp_path, whole(text, ""), rules=("NNX616",))


OTHERS = {
    "a handler of another library restores in place": """
        import orbax.checkpoint as ocp
        from grain import Restore

        def resume(manager: ocp.CheckpointManager, iterator):
            manager.restore(3, args=ocp.args.Composite(data=Restore(item=iterator)))
            manager.restore(3, args=ocp.args.Composite(model=ocp.args.StandardRestore()))  # NNX225
    """,
    "a counter in an object that jax compares by what it is": """
        class Stats:
            def __init__(self):
                self.calls = 0

        class Net(nnx.Module):
            def __init__(self, rngs: nnx.Rngs):
                self.linear = nnx.Linear(2, 2, rngs=rngs)
                self.stats = Stats()
                self.calls = 0

            def __call__(self, x):
                self.stats.calls += 1
                self.calls += 1  # NNX702
                return self.linear(x)

        @nnx.jit
        def forward(model: Net, x):
            return model(x)

        forward(Net(nnx.Rngs(0)), jnp.ones((1, 2)))
    """,
    "options of a transform by position": """
        def loss(w, x):
            return (w * x).sum(), x

        w, x = jnp.ones(2), jnp.ones(2)
        (value, aux), grads = jax.value_and_grad(loss, 0, True)(w, x)
        flags = (0, True)
        (value, aux), grads = jax.value_and_grad(loss, *flags)(w, x)
        value, grads = jax.value_and_grad(loss, 0)(w, x)  # NNX463
        jax.vmap(loss, (0, 0), 0)(w, x)
        jax.vmap(loss, (0, 0, 0), 0)(w, x)  # NNX404
    """,
    "maps for what they do": """
        def mark(path, variable):
            variable.set_metadata(frozen=True)
            return variable

        def apply(model: nnx.Module):
            state = nnx.state(model)
            nnx.map_state(mark, state)
            nnx.map_state(lambda path, variable: variable * 2, state)  # NNX225
            jax.tree.map(lambda one, other: None, state, state)
            jax.tree.map(lambda one, other: one + other, state, state)  # NNX225
    """,
    "arrays of numpy or of jax": """
        import numpy as np

        def stack(values, on_host: bool):
            out = (np.ones if on_host else jnp.ones)(3) * 2.0
            negated = -out
            for i, value in enumerate(values):
                if on_host:
                    out[i], negated[i] = value, value
            sure = (jnp.ones(3) * np.ones(3)).astype(int)
            sure[0] = 1.0  # NNX824
            return out, negated, sure
    """,
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_what_may_be_right_is_not_reported(text, tmp_path):
    expect(tmp_path, program(text), rules=("NNX225", "NNX404", "NNX463", "NNX702", "NNX824"))
