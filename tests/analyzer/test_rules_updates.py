"""Lost updates and stale values beyond their pages: the forms in which people write them, and what looks like them.

A program marks each line that a rule is to report by `# NNX217`, the code of the rule; all other lines are clean.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from marked import expect, program

RULES = ("NNX21", "NNX22", "NNX701", "NNX702", "NNX703", "NNX35", "NNX33", "NNX360")
MODEL = """
class Model(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.linear = nnx.Linear(2, 2, rngs=rngs)
        self.norm = nnx.BatchNorm(2, rngs=rngs)
        self.calls = nnx.Variable(jnp.array(0))

    def __call__(self, x):
        return self.norm(self.linear(x))

    def count(self):
        self.calls[...] += 1

    def touch(self, x):
        self.count()
        return x
"""

MISTAKES = {
    "the optimizer and the metrics of a step": """
        def loss_fn(model, batch):
            logits = model(batch)
            return optax.softmax_cross_entropy(logits, batch).mean(), logits

        @jax.jit
        def step(model: Model, optimizer: nnx.Optimizer, metrics: nnx.MultiMetric, batch):
            (loss, logits), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model, batch)
            metrics.update(loss=loss, logits=logits, labels=batch)  # NNX217
            optimizer.update(model, grads)  # NNX218
    """,
    "a method of a part, two calls deep": """
        class Pair(nnx.Module):
            def __init__(self, rngs):
                self.first, self.second = Model(rngs), Model(rngs)

        def apply(pair, x):
            return pair.second.touch(x)  # NNX217

        jax.jit(apply)(Pair(nnx.Rngs(0)), jnp.ones((1, 2)))
    """,
    "under a map, a checkpoint and a lambda": """
        model = Model(nnx.Rngs(0))
        jax.vmap(lambda model, x: model.touch(x), in_axes=(None, 0))(model, jnp.ones((3, 2)))  # NNX217
        jax.checkpoint(lambda model: model.count())(model)  # NNX217
    """,
    "an inner nnx transform writes back to a copy": """
        def loss(model, x):
            return model(x).sum()

        def step(model, x):
            value, grads = nnx.value_and_grad(loss)(model, x)  # NNX217
            return value

        jax.jit(step)(Model(nnx.Rngs(0)), jnp.ones((1, 2)))
    """,
    "a partial of jit": """
        @functools.partial(jax.jit, static_argnames=("n",))
        def step(model: Model, x, n=1):
            model.calls[...] = n  # NNX217
            return jnp.sum(x)
    """,
    "only another object is returned": """
        @jax.jit
        def step(model: Model, other: Model, x):
            model.count()  # NNX217
            return nnx.state(other)
    """,
    "shapes only": """
        def bump(calls):
            calls[...] += 1  # NNX217
            return calls.sum()

        nnx.eval_shape(bump, nnx.Variable(jnp.array(0)))
    """,
    "a merged model under grad": """
        model = Model(nnx.Rngs(0))
        graphdef, params, rest = nnx.split(model, nnx.Param, ...)

        @jax.jit
        def evaluate(params, rest, x):
            model = nnx.merge(graphdef, params, rest)
            out = model(x)  # NNX219
            return out.mean()

        evaluate(params, rest, jnp.ones((1, 2)))
    """,
    "a model in evaluation is compiled before training goes on": """
        def main():
            model = Model(rngs=nnx.Rngs(0))
            optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

            @nnx.jit
            def train_step(model, optimizer, x):
                loss, grads = nnx.value_and_grad(lambda m: (m(x) ** 2).mean())(model)
                optimizer.update(model, grads)
                return loss

            predict = nnx.jit(lambda x: model.linear(x))  # NNX220
            for epoch in range(10):
                for _ in range(5):
                    train_step(model, optimizer, jnp.ones((1, 2)))
                print(predict(jnp.ones((1, 2))))
    """,
    "a helper reads the captured model": """
        model = Model(nnx.Rngs(0))

        def forward(x):
            return model.linear(x)

        @jax.jit
        def predict(x):
            return forward(x)  # NNX220

        predict(jnp.ones((1, 2)))
        nnx.update(model, jax.tree.map(jnp.zeros_like, nnx.state(model)))
        predict(jnp.ones((1, 2)))
    """,
    "a compiled instance": """
        model = Model(nnx.Rngs(0))
        model.eval()
        forward = jax.jit(model)  # NNX220
        forward(jnp.ones((1, 2)))
        model.linear.kernel[...] *= 2
        forward(jnp.ones((1, 2)))
    """,
    "parameters are swapped for their average, and back": """
        def evaluate(model: Model, average):
            backup = nnx.state(model, nnx.Param)
            nnx.update(model, average)
            score = model.linear(jnp.ones((1, 2)))
            nnx.update(model, backup)  # NNX223
            return score
    """,
    "the best state of a loop": """
        class Trainer:
            def __init__(self, model: Model):
                self.model = model
                self.optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

            def fit(self, data):
                best, lowest = nnx.state(self.model), 1e9
                for batch in data:
                    loss = self.step(self.model, self.optimizer, batch)
                    if loss < lowest:
                        lowest, best = loss, nnx.state(self.model)
                nnx.update(self.model, best)  # NNX223

            @staticmethod
            @nnx.jit
            def step(model, optimizer, batch):
                loss, grads = nnx.value_and_grad(lambda m: m(batch).mean())(model)
                optimizer.update(model, grads)
                return loss
    """,
    "a target network that follows": """
        model = Model(nnx.Rngs(0))
        graphdef, state = nnx.split(model)
        target = nnx.merge(graphdef, state)  # NNX224
        for _ in range(3):
            model.linear.kernel[...] *= 0.9
            print(target.linear(jnp.ones((1, 2))))
    """,
    "the state of a step in a loop": """
        def run(model: Model, batches):
            graphdef, state = nnx.split(model)

            @jax.jit
            def step(state, x):
                model = nnx.merge(graphdef, state)
                model.count()
                return x.mean(), nnx.state(model)

            for x in batches:
                loss = step(state, x)[0]  # NNX221
                print(loss)
    """,
    "a model and its optimizer, merged": """
        model = Model(nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
        graphdef, state = nnx.split((model, optimizer))

        @jax.jit
        def step(graphdef, state, x):
            model, optimizer = nnx.merge(graphdef, state)
            loss, grads = nnx.value_and_grad(lambda m: m.linear(x).mean())(model)
            optimizer.update(model, grads)  # NNX218
            return loss

        @jax.jit
        def complete(graphdef, state, x):
            model, optimizer = nnx.merge(graphdef, state)
            loss, grads = nnx.value_and_grad(lambda m: m.linear(x).mean())(model)
            optimizer.update(model, grads)
            return loss, nnx.state((model, optimizer))

        for x in range(10):
            step(graphdef, state, jnp.ones((1, 2)))
            loss, _ = complete(graphdef, state, jnp.ones((1, 2)))  # NNX221
    """,
    "the caller's name in the loss": """
        def step(model, optimizer, x, y):
            def loss_fn(m, scale):
                out = model(x)  # NNX222
                return ((out - y) ** 2).mean() * scale

            loss, grads = nnx.value_and_grad(loss_fn)(model, 2.0)
            optimizer.update(model, grads)
            return loss
    """,
    "results that nobody takes": """
        model = Model(nnx.Rngs(0))
        nnx.clone(model)  # NNX225
        model.calls.replace(jnp.array(1))  # NNX225
    """,
    "results that are none": """
        model = Model(nnx.Rngs(0)).eval()  # NNX226
        other = Model(rngs=nnx.Rngs(1))
        print(other.train())  # NNX226
        other = nnx.update(other, nnx.state(Model(nnx.Rngs(2))))  # NNX226
    """,
    "a model that nobody annotated": """
        @nnx.jit
        def train_step(model, optimizer, x):
            loss, grads = nnx.value_and_grad(lambda m: (m(x) ** 2).mean())(model)
            optimizer.update(model, grads)
            return loss

        def train(model, optimizer, batches):
            @jax.jit
            def predict(x):
                return model(x)  # NNX220

            for x in batches:
                predict(x)
                train_step(model, optimizer, x)
            return model.extra

        def restore(model, optimizer, batches):
            best = nnx.state(model)
            for x in batches:
                train_step(model, optimizer, x)
            nnx.update(model, best)  # NNX223
    """,
    "a state that helpers hand on": """
        graphdef, state = nnx.split(Model(nnx.Rngs(0)))

        def rebuild(state):
            return nnx.merge(graphdef, state)

        @jax.jit
        def step(state):
            model = rebuild(state)
            model.count()
            return model.calls[...], nnx.state(model)

        def advance(state):
            return step(state)

        for _ in range(2):
            total, _ = advance(state)  # NNX221
    """,
    "layers by repetition": """
        class Net(nnx.Module):
            def __init__(self, n, rngs):
                block = Model(rngs)
                self.first = nnx.List([Model(rngs)] * n)  # NNX350
                self.second = nnx.List([block for _ in range(n)])  # NNX350
                self.third = nnx.Sequential(*[nnx.Linear(2, 2, rngs=rngs)] * 2)  # NNX350
    """,
    "compiled in a loop": """
        def train(model: Model, batches):
            def step(model, x):
                return model(x)

            for x in batches:
                compiled = nnx.jit(step)  # NNX701
                compiled(model, x)
    """,
}


@pytest.mark.parametrize("text", MISTAKES.values(), ids=list(MISTAKES))
def test_mistakes(text: str, tmp_path: Path) -> None:
    expect(tmp_path, program(MODEL + textwrap.dedent(text)), rules=RULES)


TRAPS = {
    "the model is returned": """
        @jax.jit
        def step(model: Model, x):
            model.count()
            return {"model": model, "out": x.sum()}
    """,
    "a part of its state is returned": """
        @jax.jit
        def step(model: Model, x):
            model(x)
            return nnx.state(model, nnx.BatchStat)
    """,
    "the new value is returned": """
        @jax.jit
        def step(model: Model):
            model.count()
            total = model.calls[...] * 2
            return total
    """,
    "what is returned is not known": """
        from elsewhere import finish

        @jax.jit
        def step(model: Model, x):
            model.count()
            return finish(model, x)
    """,
    "scratch space": """
        class Decoder(nnx.Module):
            def __init__(self, rngs):
                self.linear = nnx.Linear(2, 2, rngs=rngs)
                self.cache = nnx.Cache(jnp.zeros(2))
                self.seen = nnx.Intermediate(jnp.zeros(2))

            def __call__(self, x):
                self.cache[...] = x
                self.seen[...] = x
                return self.linear(x)

        jax.jit(lambda decoder, x: decoder(x))(Decoder(nnx.Rngs(0)), jnp.ones(2))
    """,
    "a mode for the function": """
        @jax.jit
        def predict(model: Model, x):
            model.eval()
            return model(x)
    """,
    "made inside": """
        @jax.jit
        def create(key):
            model = Model(nnx.Rngs(key))
            model.count()
            metric = nnx.metrics.Average()
            metric.update(values=jnp.ones(2))
            return metric.compute()
    """,
    "a copy is changed": """
        @jax.jit
        def step(model: Model, x):
            other = nnx.clone(model)
            other.count()
            return x.sum()
    """,
    "the state goes out beside the loss": """
        model = Model(nnx.Rngs(0))
        graphdef, params, rest = nnx.split(model, nnx.Param, ...)

        def loss(params, rest, x):
            model = nnx.merge(graphdef, params, rest, copy=True)
            return model(x).sum(), nnx.state(model, nnx.BatchStat)

        @jax.jit
        def step(params, rest, x):
            (value, statistics), grads = jax.value_and_grad(loss, has_aux=True)(params, rest, x)
            return value, statistics, grads

        step(params, rest, jnp.ones((1, 2)))
    """,
    "a scan that hands its state on": """
        def run(model: Model, xs):
            graphdef, state = nnx.split(model)

            def body(state, x):
                model = nnx.merge(graphdef, state)
                model.count()
                return nnx.state(model), x

            state, _ = jax.lax.scan(body, state, xs)
            nnx.update(model, state)
    """,
    "a change under a condition": """
        @jax.jit
        def step(model: Model, x, train=True):
            if train:
                model.count()
            return x.sum()
    """,
    "compiled after the training": """
        model = Model(nnx.Rngs(0))
        model.linear.kernel[...] *= 2
        predict = nnx.jit(lambda x: model.linear(x))
        predict(jnp.ones((1, 2)))
        predict(jnp.ones((1, 2)))
    """,
    "compiled anew after the change": """
        model = Model(nnx.Rngs(0))

        def compiled():
            @jax.jit
            def predict(x):
                return model.linear(x)

            return predict

        compiled()(jnp.ones((1, 2)))
        model.linear.kernel[...] *= 2
        compiled()(jnp.ones((1, 2)))
    """,
    "another model is changed": """
        model, other = Model(nnx.Rngs(0)), Model(nnx.Rngs(1))

        @jax.jit
        def predict(x):
            return model.linear(x)

        for _ in range(3):
            predict(jnp.ones((1, 2)))
            other.count()
    """,
    "traced again at each call": """
        def main(model: Model):
            f = jax.vmap(lambda x: model.linear(x))
            for _ in range(3):
                f(jnp.ones((3, 2)))
                model.count()
    """,
    "a copy of the state": """
        def train(model: Model):
            best = nnx.clone(nnx.state(model))
            other = jax.tree.map(jnp.copy, nnx.state(model))
            model.count()
            nnx.update(model, best)
            nnx.update(model, other)
    """,
    "the state of another model": """
        def follow(model: Model, target: Model):
            state = nnx.state(model)
            model.count()
            nnx.update(target, state)
    """,
    "a state that a function returned": """
        from elsewhere import train

        def run(model: Model):
            graphdef, state = nnx.split(model)
            model.count()
            state = train(graphdef, state)
            nnx.update(model, state)
    """,
    "the merged model takes the place of the first": """
        model = Model(nnx.Rngs(0))
        graphdef, state = nnx.split(model)
        model = nnx.merge(graphdef, state)
        model.count()
        print(model.calls)
    """,
    "the first model is not used any more": """
        def restore(model: Model):
            other = nnx.merge(*nnx.split(model))
            other.count()
            return other
    """,
    "the state is bound again": """
        def run(model: Model, batches):
            graphdef, state = nnx.split(model)

            @jax.jit
            def step(state, x):
                model = nnx.merge(graphdef, state)
                model.count()
                return x.mean(), nnx.state(model)

            for x in batches:
                loss, state = step(state, x)
            first, _ = step(state, batches[0])
    """,
    "both the parameter and a captured teacher": """
        def step(student: Model, teacher: Model, x):
            def loss(model):
                return ((model.linear(x) - teacher.linear(x)) ** 2).mean()

            return nnx.grad(loss)(student)
    """,
    "results that are used": """
        model = Model(nnx.Rngs(0))
        copy = nnx.clone(model)
        values = jnp.zeros(3).at[0].set(1.0)
        print(model.calls.replace(jnp.array(1)))
    """,
    "an eval of its own": """
        class Fluent(Model):
            def eval(self):
                super().eval()
                return self

        model = Fluent(nnx.Rngs(0)).eval()
        model(jnp.ones((1, 2)))
        plain = Model(nnx.Rngs(0))
        _ = plain.eval()
        (lambda: plain.train())()
    """,
    "repeated without parameters": """
        class Net(nnx.Module):
            def __init__(self, n, rngs):
                self.layers = nnx.List([Model(rngs) for _ in range(n)])
                self.functions = nnx.List([nnx.relu] * n)
                self.sizes = [3] * n
    """,
    "options that differ in each round": """
        def compare(model: Model, x):
            for graph in (True, False):
                nnx.jit(lambda m, x: m.linear(x), graph=graph)(model, x)
            for layer in (jnp.sin, jnp.cos):
                nnx.jit(layer)(x)
            for attempt in range(3):
                nnx.jit(Model.touch)(model, x)
                break
    """,
    "a number that is set once": """
        class Config(nnx.Module):
            def __init__(self):
                self.depth = 0

            def __call__(self, x, depth):
                self.depth = 3
                return x

        nnx.jit(lambda config, x: config(x, 1))(Config(), 1.0)
    """,
    "shared weights under nnx": """
        class Tied(nnx.Module):
            def __init__(self):
                self.a = nnx.Param(jnp.array(3.0))
                self.b = self.a

        nnx.grad(lambda m: m.a * m.b)(Tied())
        jax.jit(lambda m: m.a * m.b)(Tied())
    """,
    "states of one split in any order": """
        norm = nnx.BatchNorm(2, rngs=nnx.Rngs(0))
        graphdef, params, rest = nnx.split(norm, nnx.Param, ...)
        norm = nnx.merge(graphdef, rest, params)
        linear = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
        graphdef, params, rest = nnx.split(linear, nnx.Param, ...)
        linear = nnx.merge(graphdef, params)
    """,
}


@pytest.mark.parametrize("text", TRAPS.values(), ids=list(TRAPS))
def test_traps(text: str, tmp_path: Path) -> None:
    expect(tmp_path, program(MODEL + textwrap.dedent(text)), rules=RULES)


def test_several_files(tmp_path: Path) -> None:
    """The model, the optimizer and the step are made in files of their own; each finding is where the mistake is."""
    nets = """
        from flax import nnx

        class Net(nnx.Module):
            def __init__(self, rngs):
                self.norm = nnx.BatchNorm(2, rngs=rngs)
                self.linear = nnx.Linear(2, 2, rngs=rngs)

            def __call__(self, x):
                return self.linear(self.norm(x))
    """
    steps = """
        import jax
        from flax import nnx

        def make_optimizer(model, tx):
            return nnx.Optimizer(model, tx, wrt=nnx.Param)

        @jax.jit
        def train_step(model, optimizer, x):
            loss, grads = nnx.value_and_grad(lambda m: (m(x) ** 2).mean())(model)  # NNX217
            optimizer.update(model, grads)  # NNX218
            return loss

        @jax.jit
        def forward(model, x):
            return model(x).sum()  # NNX217
    """
    main = """
        import jax
        import jax.numpy as jnp
        import optax
        from flax import nnx

        from nets import Net
        from steps import forward, make_optimizer, train_step

        def main():
            model = Net(nnx.Rngs(0))
            optimizer = make_optimizer(model, optax.adam(1e-3))
            for _ in range(3):
                train_step(model, optimizer, jnp.ones((1, 2)))
                forward(model, jnp.ones((1, 2)))
            saved = {"model": nnx.state(model), "step": 3}
            nnx.update(model, jax.tree.map(jnp.zeros_like, nnx.state(model)))
            nnx.update(model, saved["model"])  # NNX223

        main()
    """
    files = {"nets.py": nets, "steps.py": steps, "main.py": main}
    expect(tmp_path, {name: textwrap.dedent(text) for name, text in files.items()}, rules=RULES)
