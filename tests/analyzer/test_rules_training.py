"""Optimizers and metrics where a page cannot say it: the forms that people write, and what looks like a mistake."""

import inspect
from functools import reduce

import pytest

from marked import expect, program
from nnx_lint.rules.training.losses import OF_LOGITS
from nnx_lint.rules.training.signatures import PARAMETERS

HEAD = """
model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
x = jnp.ones((1, 2))

def loss(model):
    return model(x).mean()
"""
LIB = {
    "lib.py": """\
import optax
from flax import nnx

def make(model, lr=1e-3):
    return nnx.Optimizer(model, optax.adam(lr), wrt=nnx.Param)

class Base:
    def setup(self):
        self.optimizer = nnx.Optimizer(self.model, optax.adam(1e-3), wrt=nnx.Param)
"""
}

FORMS = {
    "a method of a trainer": """
        class Trainer:
            def __init__(self, model: nnx.Module):
                self.model = model
                self.optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

            def step(self):
                loss_value, grads = nnx.value_and_grad(loss)(self.model)
                self.optimizer.update(grads)  # NNX611
        """,
    "made by a function that returns a pair": """
        def create():
            model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
            return model, nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

        trained, optimizer = create()
        optimizer.update(nnx.grad(loss)(trained))  # NNX611
        """,
    "a step under jit": """
        @nnx.jit
        def step(model, optimizer):
            grads = nnx.grad(loss)(model)
            optimizer.update(grads)  # NNX611

        step(model, nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param))
        """,
    "made in another file": """
        from lib import make
        make(model).update(nnx.grad(loss)(model))  # NNX611
        """,
    "set by a base class in another file": """
        from lib import Base

        class Trainer(Base):
            def __init__(self, model):
                self.model = model
                self.setup()

            def step(self, grads):
                self.optimizer.update(grads)  # NNX611
        """,
    "only annotated": """
        def step(optimizer: nnx.Optimizer, grads):
            optimizer.update(grads)  # NNX611

        def make(model):
            return nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
        """,
    "exchanged, with a model that is not known": """
        def step(model, tx):
            optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)
            for _ in range(3):
                grads = nnx.grad(loss)(model)
                optimizer.update(grads, model)  # NNX611
        """,
    "made by a partial": """
        make = functools.partial(nnx.Optimizer, tx=optax.adam(1e-3))
        make(model)  # NNX610
        make(model, wrt=nnx.Param)
        """,
    "the loss for the gradients": """
        optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
        value, grads = nnx.value_and_grad(loss)(model)
        optimizer.update(model, value)  # NNX612
        """,
}

CORRECT = {
    "an annotation, where the kind that keeps its model is at work": """
        def step(optimizer: nnx.Optimizer, grads):
            optimizer.update(grads)

        step(nnx.ModelAndOptimizer(model, optax.sgd(0.1)), nnx.grad(loss)(model))
        """,
    "gradients that were changed on the way": """
        optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
        value, grads = nnx.value_and_grad(loss)(model)
        grads = jax.tree.map(lambda g: g / 2, grads)
        optimizer.update(model, grads)
        """,
    "an auxiliary output": """
        optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
        grads, aux = nnx.grad(lambda model: (loss(model), 1), has_aux=True)(model)
        optimizer.update(model, grads)
        """,
    "gradients of more than is trained": """
        lora = nnx.LoRALinear(2, 2, lora_rank=1, rngs=nnx.Rngs(0))
        optimizer = nnx.Optimizer(lora, optax.sgd(0.1), wrt=nnx.LoRAParam)
        optimizer.update(lora, nnx.grad(loss)(lora))
        """,
    "an update with further arguments": """
        optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
        optimizer.update(model, nnx.grad(loss)(model), value=1.0)
        """,
    "an optimizer that is made again": """
        class Net(nnx.Module):
            def __init__(self, rngs: nnx.Rngs):
                self.body = nnx.Linear(2, 2, rngs=rngs)

        net = Net(nnx.Rngs(0))
        first = nnx.Optimizer(net, optax.sgd(0.1), wrt=nnx.Param)
        net.head = nnx.Linear(2, 1, rngs=nnx.Rngs(1))
        optimizer = nnx.Optimizer(net, optax.sgd(0.1), wrt=nnx.Param)
        optimizer.update(net, nnx.grad(lambda net: net.head(net.body(x)).mean())(net))
        """,
    "a method called update of another class": """
        class Tracker:
            def update(self, grads): ...

        Tracker().update(nnx.grad(loss)(model))
        """,
    "metrics with more arguments than one needs": """
        metrics = nnx.MultiMetric(loss=nnx.metrics.Average("loss"), accuracy=nnx.metrics.Accuracy())
        metrics.update(loss=1.0, logits=jnp.ones((2, 3)), labels=jnp.ones(2, dtype=int), step=3)
        """,
    "a base of metrics that leaves a method to others": """
        class Base(nnx.Metric):
            def reset(self): ...

        class Own(Base):
            def __init__(self): ...
            def update(self, **_): ...
            def compute(self): ...

        Own().compute()
        """,
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_a_mistake_is_found_in_the_forms_that_people_write(text, tmp_path):
    files = program(text)
    files["program.py"] = files["program.py"].replace("from flax import nnx\n", f"from flax import nnx\n{HEAD}")

    expect(tmp_path, {**files, **LIB}, rules=("NNX61", "NNX620"))


@pytest.mark.parametrize("text", CORRECT.values(), ids=CORRECT)
def test_what_is_right_is_silent(text, tmp_path):
    files = program(text)
    files["program.py"] = files["program.py"].replace("from flax import nnx\n", f"from flax import nnx\n{HEAD}")

    expect(tmp_path, files, rules=("NNX61", "NNX620"))


def test_a_loss_that_a_trainer_of_another_file_differentiates(tmp_path):
    trainer = """\
from flax import nnx

class Trainer:
    def __init__(self, model, optimizer, loss):
        self.model, self.optimizer = model, optimizer
        self.loss = loss

    def step(self, batch):
        value, grads = nnx.value_and_grad(self.loss)(self.model, batch)  # NNX463
        self.optimizer.update(self.model, grads)
        return value
"""
    text = """
        from trainer import Trainer

        def loss(model, batch):
            outputs = model(batch)
            return outputs.mean(), outputs

        def main(batches):
            model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
            trainer = Trainer(model, nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param), loss)
            for batch in batches:
                trainer.step(batch)
        """

    expect(tmp_path, {**program(text), "trainer.py": trainer}, rules=("NNX463",))


@pytest.mark.parametrize(
    "other",
    [
        "optimizer = nnx.ModelAndOptimizer(model, tx)",
        "class Quiet(nnx.Optimizer):\n    def update(self, grads):\n        pass",
    ],
)
def test_an_annotation_holds_for_what_another_file_makes(other, tmp_path):
    text = """
        def step(optimizer: nnx.Optimizer, grads):
            optimizer.update(grads)
        """

    expect(tmp_path, {**program(text), "other.py": f"from flax import nnx\n\n{other}\n"}, rules=("NNX61",))


@pytest.mark.parametrize("name", [name for name in OF_LOGITS if name.startswith("optax.losses.")])
def test_functions_that_take_logits_are_those_of_the_library(name):
    optax = pytest.importorskip("optax")
    position, parameter, _, _ = OF_LOGITS[name]
    found = inspect.signature(reduce(getattr, name.split(".")[1:], optax)).parameters
    assert [*found][position] == parameter


def test_the_old_form_is_right_before_flax_0_11(tmp_path):
    text = """
        model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.adam(1e-3))
        optimizer.update(nnx.grad(lambda model: model(jnp.ones(2)).mean())(optimizer.model))
        """

    expect(tmp_path, program(text), rules=("NNX61",), version=(0, 10, 7))


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_parameters_of_optax_are_those_of_the_library(name):
    optax = pytest.importorskip("optax")
    required, *others = (part.split() for part in PARAMETERS[name].split("|"))
    optional, by_name = [*others, [], []][:2]
    found = inspect.signature(reduce(getattr, name.split(".")[1:], optax)).parameters
    assert [*found] == [*required, *optional, *by_name]
    assert [key for key, each in found.items() if each.default is each.empty] == required
    assert {key for key, each in found.items() if each.kind is each.KEYWORD_ONLY} == {*by_name}
