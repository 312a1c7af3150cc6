"""The trace rules beyond their pages: every way to apply a transform, several files, words and fixes.

A program marks each line that a trace rule is to report by `# NNX201`, the code of the rule; all other lines are clean.
"""

from __future__ import annotations

import re

import pytest

from marked import PREAMBLE, expect, findings, program
from nnx_rules.transforms import TRANSFORMS, Form

# -- every way to apply a transform ------------------------------------------------------------------------------------

DECORATORS = [
    "jax.jit",
    "nnx.jit",
    "nnx.jit()",
    "nnx.compat.jit",
    "functools.partial(jax.jit, static_argnames=('n',))",
    "functools.partial(nnx.jit, donate_argnums=0)",
    "jax.vmap",
    "nnx.vmap(in_axes=0, out_axes=0)",
    "jax.checkpoint",
    "jax.remat",
    "nnx.remat",
    "jax.grad",
    "nnx.grad",
    "functools.partial(jax.value_and_grad, has_aux=True)",
    "jax.jacfwd",
    "jax.hessian",
    "jax.make_jaxpr",
    "jnp.vectorize",
    "nnx.scan(in_axes=(nnx.Carry, 0), out_axes=(nnx.Carry, 0))",
]


@pytest.mark.parametrize("decorator", DECORATORS)
def test_decorated_function(tmp_path, decorator):
    text = f"""
    count = nnx.Variable(jnp.array(0))

    @{decorator}
    def step(x):
        count[...] += 1  # NNX201
        return x
    """
    expect(tmp_path, program(text))


CALLS = [
    "jax.jit(step)(1.0)",
    "step = jax.jit(step, donate_argnums=0)",
    "jax.jit(jax.vmap(step))",
    "jax.value_and_grad(step)(1.0)",
    "jax.vjp(step, 1.0)",
    "jax.jvp(step, (1.0,), (1.0,))",
    "jax.linearize(step, 1.0)",
    "jax.eval_shape(step, 1.0)",
    "nnx.eval_shape(step, 1.0)",
    "jax.lax.map(step, jnp.arange(3))",
    "jax.lax.scan(lambda carry, x: (carry, step(x)), 0, jnp.arange(3))",
    "jax.lax.cond(True, step, lambda x: x, 1.0)",
    "jax.lax.cond(True, lambda x: x, false_fun=step)",
    "jax.lax.switch(0, [step, step], 1.0)",
    "jax.lax.while_loop(lambda x: x < 3, step, 1.0)",
    "jax.lax.fori_loop(0, 3, lambda i, x: step(x), 1.0)",
    "nnx.cond(True, step, step, 1.0)",
    "nnx.fori_loop(0, 3, lambda i, x: step(x), 1.0)",
    "nnx.vjp(step, 1.0)",
    "nnx.jvp(step, (1.0,), (1.0,))",
    "nnx.make_jaxpr(step)(1.0)",
    "nnx.jit_partial(step, 1.0)()",
    "nnx.checkpoint(step)(1.0)",
    "jax.shard_map(step, mesh=mesh, in_specs=spec, out_specs=spec)(1.0)",
    "jax.jit(functools.partial(step))(1.0)",
    "jax.tree.map(jax.jit(step), [1, 2])",
]


@pytest.mark.parametrize("call", CALLS)
def test_transform_called_with_the_function(tmp_path, call):
    text = f"""
    count = nnx.Variable(jnp.array(0))

    def step(x):
        count[...] += 1
        return x

    result = {call}
    """
    found, _ = findings(tmp_path, program(text))

    assert [item.rule.code for item in found] == ["NNX201"]
    assert "`count`" in found[0].message


NOT_TRACED = [
    "step(1.0)",
    "jax.tree.map(step, [1, 2])",
    "jax.lax.switch(0, [step], 1.0)",
    "jax.lax.associative_scan(lambda a, b: step(a), jnp.arange(3))",
    "jax.debug.callback(step, 1.0)",
    "jax.pure_callback(step, shape, 1.0)",
    "jax.jit(lambda x: jax.debug.callback(step, x))(1.0)",
    "jax.jit(lambda x: jax.pure_callback(step, shape, x))(1.0)",
    "jax.custom_vjp(step)(1.0)",
    "nnx.split_rngs(step, splits=3)",
    "nnx.cached_partial(step, 1.0)",
    "nnx.transform_metadata(step, partition='a')(1.0)",
]


@pytest.mark.parametrize("call", NOT_TRACED)
def test_functions_that_are_no_transforms_of_what_they_take(tmp_path, call):
    text = f"""
    count = nnx.Variable(jnp.array(0))

    def step(x):
        count[...] += 1
        return x

    result = {call}
    """
    expect(tmp_path, program(text))


# -- what a change is --------------------------------------------------------------------------------------------------

CHANGES = {
    "model.kernel[...] = x": "NNX201",
    "model.kernel[0] = x": "NNX201",
    "model.kernel.value = x": "NNX201",
    "model.kernel.set_value(x)": "NNX201",
    "model.scale = x": "NNX201",
    "setattr(model, 'scale', x)": "NNX201",
    "norm.train()": "NNX201",
    "norm.eval()": "NNX201",
    "dropout.set_attributes(deterministic=True)": "NNX201",
    "model.sow(nnx.Intermediate, 'h', x)": "NNX201",
    "nnx.update(model, state)": "NNX201",
    "nnx.reseed(rngs, params=0)": "NNX201",
    "layers.append(nnx.Param(x))": "NNX201",
    "optimizer.update(nnx.clone(model), x)": "NNX202",
    "metric.update(values=x)": "NNX202",
    "metric.reset()": "NNX202",
    "dropout(x)": "NNX202",
    "dropout(x, deterministic=False)": "NNX202",
    "norm(x)": "NNX202",
    "rngs()": "NNX203",
    "rngs.params()": "NNX203",
    "rngs.normal((2,))": "NNX203",
    "child = rngs.fork()": "NNX203",
    "nnx.Linear(2, 2, rngs=rngs)": "NNX203",
    "Net(rngs)": "NNX203",
    "Net(rngs=rngs)": "NNX203",
    "nnx.pop(model, nnx.Intermediate)": "NNX207",
    "del model.bias": "NNX207",
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_of_captured_objects(tmp_path, change):
    text = f"""
    class Net(nnx.Module):
        def __init__(self, rngs):
            self.linear = nnx.Linear(2, 2, rngs=rngs)

    rngs = nnx.Rngs(0)
    model = nnx.Linear(2, 2, rngs=rngs)
    optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
    metric = nnx.metrics.Average()
    dropout = nnx.Dropout(0.5, rngs=rngs)
    norm = nnx.BatchNorm(2, rngs=rngs)
    layers = nnx.List([])
    state = nnx.state(model)

    @jax.jit
    def step(x):
        {change}  # {CHANGES[change]}
        return x
    """
    expect(tmp_path, program(text))


# -- other files -------------------------------------------------------------------------------------------------------


def test_effects_of_other_files_are_reported_at_the_call_with_the_place_of_the_change(tmp_path):
    layers = """\
from flax import nnx


class Block(nnx.Module):
    def __init__(self, rngs):
        self.norm = nnx.BatchNorm(2, rngs=rngs)

    def __call__(self, x):
        return self.norm(x)


def remember(variable, x):
    variable[...] = x
"""
    main = """\
import jax
import jax.numpy as jnp
from flax import nnx

from .layers import Block, remember

block = Block(nnx.Rngs(0))
last = nnx.Variable(jnp.zeros(()))


@jax.jit
def step(x):
    remember(last, x)  # NNX201
    return block(x)  # NNX202
"""
    files = {"package/__init__.py": "", "package/layers.py": layers, "package/main.py": main}
    mutation, call = expect(tmp_path, files)

    assert [place.path.rpartition("/")[2] for place in mutation.related] == ["layers.py", "main.py", "main.py"]
    assert mutation.related[0].message == "`variable` is changed here"
    assert "`block` is captured by a function under `jax.jit`" in call.message
    assert call.related[0].path.endswith("layers.py")


def test_a_transform_that_another_file_applies(tmp_path):
    training = """\
import jax


def compiled(function):
    return jax.jit(function)
"""
    main = """\
import jax.numpy as jnp
from flax import nnx
from training import compiled

count = nnx.Variable(jnp.array(0))


def step(x):
    count[...] += 1  # NNX201
    return x

step = compiled(step)
"""
    expect(tmp_path, {"training.py": training, "main.py": main})


def test_a_model_made_in_another_file(tmp_path):
    models = "from flax import nnx\n\nshared = nnx.Dropout(0.5, rngs=nnx.Rngs(0))\n"
    main = """\
import jax
import models


@jax.vmap
def step(x):
    return models.shared(x)  # NNX202
"""
    expect(tmp_path, {"models.py": models, "main.py": main})


# -- versions and libraries --------------------------------------------------------------------------------------------

BOUND = """
net = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
forward = nnx.jit(net.__call__){mark}
"""


def test_bound_methods_are_refused_since_flax_0_12_1(tmp_path):
    expect(tmp_path, program(BOUND.format(mark="  # NNX208")), version=(0, 12, 1))
    expect(tmp_path, program(BOUND.format(mark="")), version=(0, 12, 0))


def test_the_transforms_of_nnxkit_lift_what_they_capture_and_those_of_jax_do_not(tmp_path):
    text = """\
import jax
import jax.numpy as jnp
import nnxkit as nnx

count = nnx.Variable(jnp.array(0))


@nnx.jit
def lifted(x):
    count[...] += 1
    return x


@jax.jit
def captured(x):
    count[...] += 1  # NNX201
    return x


@nnx.jit
def nested(x):
    return jax.lax.scan(lambda carry, x: (carry, count.set_value(x)), 0, x)  # NNX201


seen = []


@nnx.jit
def recorded(x):
    seen.append(x)  # NNX214
    return x
"""
    expect(tmp_path, {"program.py": text})


def test_captured_streams_under_a_map_are_no_inputs_on_nnxkit(tmp_path):
    text = """
rngs = nnx.Rngs(0)
drop = nnx.Dropout(0.5, rngs=nnx.Rngs(0))


@nnx.jit
def step(xs):
    nnx.vmap(lambda x: nnx.jit(lambda: x + rngs.normal())())(xs)  # NNX512
    nnx.scan(lambda carry, x: (carry, drop(x)))(0, xs)
    return nnx.vmap(drop)(xs)  # NNX512


def evaluate(drop: nnx.Dropout, xs):
    return nnx.vmap(lambda x: drop(x))(xs)


@nnx.split_rngs(splits=3)
@nnx.vmap
def noisy(rngs, x):
    return x + rngs.normal()


noisy(rngs, 1.0)
"""
    for_nnxkit = PREAMBLE.replace("from flax import nnx", "import nnxkit as nnx") + text
    expect(tmp_path, {"program.py": for_nnxkit}, rules=("NNX2", "NNX512"))


NNXKIT_TRANSFORMS = sorted(
    name for name, row in TRANSFORMS.items() if name.startswith("nnx.") and row.level and row.form is Form.WRAPPER
)


@pytest.mark.parametrize("name", NNXKIT_TRANSFORMS)
def test_programs_for_nnxkit_get_no_finding_where_flax_programs_do(tmp_path, name):
    text = f"""
count = nnx.Variable(jnp.array(0))
norm = nnx.BatchNorm(2, rngs=nnx.Rngs(0))
rngs = nnx.Rngs(0)


def step(x):
    count[...] += 1{{NNX201}}
    del norm.mean{{NNX207}}
    norm(x){{NNX202}}
    return jax.random.normal(rngs(), x.shape){{NNX203}}


{name}(step)(1.0)
{name}(norm)(1.0){{NNX209}}
{name}(functools.partial(lambda count, x: count.set_value(x), count))(1.0){{NNX210}}
"""
    codes = set(re.findall(r"NNX\d+", text))
    expect(tmp_path, program(text.format(**{code: f"  # {code}" for code in codes})))
    for_nnxkit = PREAMBLE.replace("from flax import nnx", "import nnxkit as nnx") + text
    expect(tmp_path, {"program.py": for_nnxkit.format(**dict.fromkeys(codes, ""))})


# -- words -------------------------------------------------------------------------------------------------------------

ORIGINS = {
    "it is a global of the module": """
        count = nnx.Variable(jnp.array(0))
        step = jax.jit(lambda x: count.set_value(x))
    """,
    "it is a parameter of the enclosing function `make`": """
        def make(count: nnx.Variable):
            return jax.jit(lambda x: count.set_value(x))
    """,
    "it is a variable of the enclosing function `make`": """
        def make():
            count = nnx.Variable(jnp.array(0))
            return jax.jit(lambda x: count.set_value(x))
    """,
    "`self` is a parameter of the enclosing function `run`": """
        class Net(nnx.Module):
            def __init__(self):
                self.count = nnx.Variable(jnp.array(0))

            def run(self, xs):
                return jax.vmap(lambda x: self.count.set_value(x))(xs)
    """,
    "it is a default argument": """
        count = nnx.Variable(jnp.array(0))
        step = jax.jit(lambda x, count=count: count.set_value(x))
    """,
}


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_message_says_where_the_object_comes_from(tmp_path, origin):
    found, _ = findings(tmp_path, program(ORIGINS[origin]))

    assert [item.rule.code for item in found] == ["NNX201"]
    assert origin in found[0].message


def test_related_places_are_the_transform_and_the_creation(tmp_path):
    text = """
    count = nnx.Variable(jnp.array(0))

    @functools.partial(jax.jit, donate_argnums=0)
    def step(x):
        count[...] = x  # NNX201
        return x
    """
    (found,) = expect(tmp_path, program(text))

    assert [place.message for place in found.related] == ["`jax.jit` is applied here", "the Variable is created here"]


# -- fixes -------------------------------------------------------------------------------------------------------------


def fixed(folder, text):
    """The program after the fixes of all findings."""
    found, sources = findings(folder, program(text))
    (source,) = sources.values()
    result = source.text
    for edit in sorted((edit for item in found if item.fix for edit in item.fix.edits), reverse=True):
        result = result[: edit.span.start] + edit.text + result[edit.span.end :]
    return result.removeprefix(PREAMBLE)


STATIC_SELF = """
class Net(nnx.Module):
    def __init__(self):
        self.w = nnx.Param(jnp.ones(2))

    @{decorator}
    def forward(self, x, n):
        return self.w * x
"""


@pytest.mark.parametrize(
    "decorator",
    [
        "functools.partial(jax.jit, static_argnums=0)",
        "functools.partial(jax.jit, static_argnums=(0,))",
        "functools.partial(nnx.jit, static_argnames='self')",
        "nnx.jit(static_argnums=(0,))",
    ],
)
def test_static_self_becomes_a_plain_nnx_jit(tmp_path, decorator):
    assert fixed(tmp_path, STATIC_SELF.format(decorator=decorator)) == STATIC_SELF.format(decorator="nnx.jit")


@pytest.mark.parametrize(
    "decorator",
    ["functools.partial(jax.jit, static_argnums=(0, 2))", "functools.partial(jax.jit, static_argnums=0, inline=True)"],
)
def test_static_self_with_other_options_is_left_to_the_person(tmp_path, decorator):
    found, _ = findings(tmp_path, program(STATIC_SELF.format(decorator=decorator)))

    assert [(item.rule.code, item.fix) for item in found] == [("NNX211", None)]
