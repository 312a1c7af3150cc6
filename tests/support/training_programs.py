"""Whole programs that nobody wrote: a model, a training step, a few rounds, and asserts about what they owe.

:func:`training_programs` is a strategy of :class:`Program`. A program is drawn in parts that fit together: how layers
are held, which of them draw numbers or keep statistics, what the step transforms and how it updates. Then at most one
of :data:`MISTAKES` is put into it, where the program has the place for it. The asserts at its end say what a program
without mistakes does: the parameters move, statistics and counters follow, nothing is left of a trace.

Invariants: a program without a mistake runs to its end; the text of a program depends on what was drawn and on nothing
else. What a program with a mistake really does, only a run says: some harm nobody.
"""

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

HELD = ("list", "dict", "attributes", "sequential", "comprehension")
NORMS = (None, "BatchNorm", "LayerNorm")
STEPS = ("optimizer", "model-and-optimizer", "by-hand", "functional")
OPTIMIZED, LOOPED = ("optimizer", "model-and-optimizer"), ("list", "comprehension")


@dataclass(frozen=True)
class Plan:
    """What a program is made of.

    Attributes:
        held: how the model holds its blocks.
        norm: the kind of norm in a block.
        dropout: whether a block drops out.
        counter: whether the model counts its calls in a Variable.
        tied: whether the last block is used twice.
        step: how the parameters are updated.
        jitted: how the step is compiled: decorated, called, or not at all.
        aux: whether the loss returns something beside its value.
        captured: whether the step takes the model from the scope around it.
        streams: how the random streams are named.
        in_function: whether the rounds are in a function.
        trained: whether all parameters are trained, or those of the head, which a filter chooses.
        metric: whether the step updates a metric.
        remat: whether blocks are computed again in the backward pass.
        mistake: what is wrong with it.
    """

    held: str
    norm: str | None
    dropout: bool
    counter: bool
    tied: bool
    step: str
    jitted: str
    aux: bool
    captured: bool
    streams: str
    in_function: bool
    trained: str = "all"
    metric: bool = False
    remat: bool = False
    mistake: str | None = None


@dataclass(frozen=True)
class Program:
    """A program and what was drawn for it."""

    plan: Plan
    text: str = field(repr=False)

    def __str__(self) -> str:
        return f"# {self.plan}\n{self.text}"


def _has_state(plan: Plan) -> bool:
    """Whether there are Variables that are no parameters."""
    return plan.norm == "BatchNorm" or plan.dropout or plan.counter


MISTAKES: dict[str, Callable[[Plan], bool]] = {
    "plain-container": lambda plan: plan.held in ("list", "dict", "comprehension"),
    "jax-jit": lambda plan: plan.step != "functional" and plan.jitted != "none" and not plan.captured,
    "update-without-model": lambda plan: plan.step == "optimizer",
    "optimizer-without-wrt": lambda plan: plan.step == "optimizer",
    "dropout-without-rngs": lambda plan: plan.dropout,
    "wrong-size": lambda plan: True,
    "norm-of-wrong-size": lambda plan: plan.norm is not None,
    "missing-stream": lambda plan: plan.dropout,
    "aux-not-declared": lambda plan: plan.aux,
    "aux-not-returned": lambda plan: not plan.aux,
    "split-in-part": lambda plan: plan.step == "functional" and _has_state(plan),
    "ellipsis-first": lambda plan: plan.step == "functional",
    "merge-in-part": lambda plan: plan.step == "functional" and _has_state(plan),
    "unknown-mode": lambda plan: True,
    "array-in-static": lambda plan: True,
    "leaked-value": lambda plan: plan.jitted != "none",
    "key-reused": lambda plan: True,
    "class-level-layer": lambda plan: True,
    "layer-without-rngs": lambda plan: True,
    "unsplit-rngs": lambda plan: True,
    "filters-differ": lambda plan: plan.trained == "head",
    "metric-argument": lambda plan: plan.metric,
    "state-not-unpacked": lambda plan: plan.step == "functional",
    "update-forgotten": lambda plan: plan.step == "by-hand",
    "results-swapped": lambda plan: plan.step != "functional" and not plan.aux,
    "loss-without-return": lambda plan: plan.step != "functional",
    "forward-without-return": lambda plan: True,
    "loss-of-many-numbers": lambda plan: True,
    "labels-of-other-size": lambda plan: True,
    "optimizer-made-in-step": lambda plan: plan.step in OPTIMIZED and not plan.captured,
}
"""What may be wrong, and which programs have the place for it."""


@st.composite
def plans(draw: st.DrawFn, wrong: bool | None = None) -> Plan:
    """A plan; with a mistake, without, or either."""
    plan = Plan(
        held=draw(st.sampled_from(HELD)),
        norm=draw(st.sampled_from(NORMS)),
        dropout=draw(st.booleans()),
        counter=draw(st.booleans()),
        tied=draw(st.booleans()),
        step=draw(st.sampled_from(STEPS)),
        jitted=draw(st.sampled_from(("decorated", "called", "none"))),
        aux=draw(st.booleans()),
        captured=draw(st.booleans()),
        streams=draw(st.sampled_from(("nnx.Rngs(0)", "nnx.Rngs(params=0, dropout=1)", "nnx.Rngs(0, dropout=1)"))),
        in_function=draw(st.booleans()),
        trained=draw(st.sampled_from(("all", "head"))),
        metric=draw(st.booleans()),
        remat=draw(st.booleans()),
    )
    if plan.step == "functional":
        plan = replace(plan, captured=False, metric=False)
    if plan.step not in OPTIMIZED:
        plan = replace(plan, trained="all")
    if plan.held not in LOOPED:
        plan = replace(plan, remat=False)
    if wrong is None:
        wrong = draw(st.booleans())
    if not wrong:
        return plan
    return replace(plan, mistake=draw(st.sampled_from([name for name, fits in MISTAKES.items() if fits(plan)])))


def training_programs(wrong: bool | None = None) -> st.SearchStrategy[Program]:
    """Programs; with a mistake, without, or either."""
    return plans(wrong).map(lambda plan: Program(plan, text_of(plan)))


# -- the text ----------------------------------------------------------------------------------------------------------


def text_of(plan: Plan) -> str:
    """The program of a plan."""
    parts = [
        "import jax\nimport jax.numpy as jnp\nimport nnxkit as nnx\nimport optax",
        "class Calls(nnx.Variable):\n    pass" if plan.counter else "",
        _block(plan),
        "def apply(block, x):\n    return block(x)" if plan.remat else "",
        _net(plan),
        "seen = []" if plan.mistake == "leaked-value" else "",
        _program(plan),
    ]
    return "\n\n\n".join(part for part in parts if part) + "\n"


def _block(plan: Plan) -> str:
    rngs = "" if plan.mistake == "layer-without-rngs" else ", rngs=rngs"
    makes = [f"self.linear = nnx.Linear(din, dout{rngs})"]
    calls = ["x = self.linear(x)"]
    if plan.norm is not None:
        size = "din" if plan.mistake == "norm-of-wrong-size" else "dout"
        makes.append(f"self.norm = nnx.{plan.norm}({size}, rngs=rngs)")
        calls.append("x = self.norm(x)")
    calls.append("x = nnx.relu(x)")
    if plan.dropout:
        given = "" if plan.mistake == "dropout-without-rngs" else ", rngs=rngs"
        makes.append(f"self.dropout = nnx.Dropout(0.5{given})")
        calls.append("x = self.dropout(x)")
    return _class("Block", ["din", "dout", "*", "rngs: nnx.Rngs"], makes, [*calls, "return x"])


def _net(plan: Plan) -> str:
    wrapped = plan.mistake != "plain-container"
    makes: list[str] = []
    calls: list[str] = []
    first, second = "Block(3, 4, rngs=rngs)", "Block(4, 4, rngs=rngs)"
    last = "self.second"
    if plan.held == "attributes":
        makes += [f"self.first = {first}", f"self.second = {second}"]
        calls += ["x = self.second(self.first(x))"]
    elif plan.held == "list":
        held = f"[{first}, {second}]"
        makes.append(f"self.blocks = nnx.List({held})" if wrapped else f"self.blocks = {held}")
        calls += _loop(plan)
        last = "self.blocks[1]"
    elif plan.held == "comprehension":
        held = "[Block(din, 4, rngs=rngs) for din in (3, 4)]"
        makes.append(f"self.blocks = nnx.List({held})" if wrapped else f"self.blocks = {held}")
        calls += _loop(plan)
        last = "self.blocks[1]"
    elif plan.held == "dict":
        makes.append(
            f"self.blocks = nnx.Dict(first={first}, second={second})"
            if wrapped
            else f'self.blocks = {{"first": {first}, "second": {second}}}'
        )
        calls += ['x = self.blocks["second"](self.blocks["first"](x))']
        last = 'self.blocks["second"]'
    else:
        makes.append(f"self.blocks = nnx.Sequential({first}, {second})")
        calls += ["x = self.blocks(x)"]
        last = "self.blocks.layers[1]"
    if plan.tied:
        makes.append(f"self.again = {last}")
        calls.append("x = self.again(x)")
    makes.append(f"self.head = nnx.Linear({5 if plan.mistake == 'wrong-size' else 4}, 1, rngs=rngs)")
    if plan.counter:
        makes.append("self.calls = Calls(jnp.array(0))")
        calls.insert(0, "self.calls[...] += 1")
    if plan.mistake == "array-in-static":
        makes.append("self.scale = nnx.static(jnp.ones(4))")
    extra = ""
    if plan.mistake == "class-level-layer":
        extra = "extra = nnx.Linear(4, 4, rngs=nnx.Rngs(7))"
        calls.append("x = self.extra(x)")
    makes.append("self.depth = 2")
    ends = "self.head(x)" if plan.mistake == "forward-without-return" else "return self.head(x)"
    return _class("Net", ["rngs: nnx.Rngs"], makes, [*calls, ends], extra)


def _loop(plan: Plan) -> list[str]:
    return ["for block in self.blocks:", "    x = " + ("nnx.remat(apply)(block, x)" if plan.remat else "block(x)")]


def _class(name: str, parameters: list[str], makes: list[str], calls: list[str], extra: str = "") -> str:
    lines = [f"class {name}(nnx.Module):"]
    if extra:
        lines += [f"    {extra}", ""]
    lines.append(f"    def __init__(self, {', '.join(parameters)}):")
    lines += [f"        {line}" for line in makes]
    lines += ["", "    def __call__(self, x):"]
    lines += [f"        {line}" for line in calls]
    return "\n".join(lines)


def _program(plan: Plan) -> str:
    streams = "nnx.Rngs(params=0)" if plan.mistake == "missing-stream" else plan.streams
    lines = [f"model = Net({streams})"]
    if plan.mistake == "unsplit-rngs":
        lines.append("stack = nnx.vmap(lambda rngs: nnx.Linear(2, 2, rngs=rngs), axis_size=3)(nnx.Rngs(3))")
    lines += _optimizer(plan)
    lines += ["", *_step(plan), ""]
    if plan.mistake == "key-reused":
        lines += ["draws = nnx.Rngs(5)", "key = draws()"]
        lines += ["x = jax.random.normal(key, (8, 3))", "noise = jax.random.normal(key, (8, 3))"]
        lines += ["y = jnp.sum(x, axis=1, keepdims=True)", "assert not (x == noise).all(), 'the same numbers'"]
    else:
        lines += ["key, other = jax.random.split(jax.random.key(0))", "x = jax.random.normal(key, (8, 3))"]
        lines += [f"y = jax.random.normal(other, ({4 if plan.mistake == 'labels-of-other-size' else 8}, 1))"]
    lines += ["before = jax.tree.map(jnp.copy, nnx.state(model, nnx.Param))", "for _ in range(3):"]
    lines += [f"    {line}" for line in _round(plan)]
    lines += _owed(plan)
    if not plan.in_function:
        return "\n".join(lines)
    body = textwrap.indent("\n".join(lines), "    ")
    return f"def main():\n{body}\n\n\nmain()"


def _optimizer(plan: Plan) -> list[str]:
    chosen = "trained" if plan.trained == "head" and plan.mistake != "filters-differ" else "nnx.Param"
    wrt = "" if plan.mistake == "optimizer-without-wrt" else f", wrt={chosen}"
    lines = ['metric = nnx.metrics.Average("loss")'] if plan.metric else []
    if plan.trained == "head":
        lines.append('trained = nnx.All(nnx.Param, nnx.PathContains("head"))')
    if plan.step in OPTIMIZED:
        kind = "Optimizer" if plan.step == "optimizer" else "ModelAndOptimizer"
        lines.append(f"optimizer = nnx.{kind}(model, optax.sgd(0.1){wrt})")
    return lines


def _step(plan: Plan) -> list[str]:
    return _functional_step(plan) if plan.step == "functional" else _object_step(plan)


def _loss(plan: Plan) -> list[str]:
    lines = ["def loss_of(model):", "    predicted = model(x)"]
    if plan.mistake == "leaked-value":
        lines.append("    seen.append(predicted)")
    lines.append(f"    loss = {_error(plan)}")
    gives_aux = plan.aux and plan.mistake != "aux-not-returned"
    if plan.mistake != "loss-without-return":
        lines.append("    return loss, predicted" if gives_aux else "    return loss")
    return lines


def _error(plan: Plan) -> str:
    return "(predicted - y) ** 2" if plan.mistake == "loss-of-many-numbers" else "jnp.mean((predicted - y) ** 2)"


def _gradient(plan: Plan) -> list[str]:
    declares = plan.aux
    if plan.mistake == "aux-not-declared":
        declares = False
    if plan.mistake == "aux-not-returned":
        declares = True
    options = ", argnums=nnx.DiffState(0, trained)" if plan.trained == "head" else ""
    if declares:
        return [f"(loss, predicted), grads = nnx.value_and_grad(loss_of, has_aux=True{options})(model)"]
    results = "grads, loss" if plan.mistake == "results-swapped" else "loss, grads"
    return [f"{results} = nnx.value_and_grad(loss_of{options})(model)"]


def _object_step(plan: Plan) -> list[str]:
    names = [] if plan.captured else ["model"]
    if plan.step == "optimizer":
        names += [] if plan.captured else ["optimizer"]
        given = "grads" if plan.mistake == "update-without-model" else "model, grads"
        update = [f"optimizer.update({given})"]
    elif plan.step == "model-and-optimizer":
        names += [] if plan.captured else ["optimizer"]
        update = ["optimizer.update(grads)"]
        if not plan.captured:
            names = ["optimizer"]
    else:
        update = ["params = nnx.state(model, nnx.Param)"]
        stepped = "jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)"
        forgets = plan.mistake == "update-forgotten"
        update.append(f"params = {stepped}" if forgets else f"nnx.update(model, {stepped})")
    body = [*_loss(plan), "", *_gradient(plan), *update, "return loss"]
    if plan.mistake == "optimizer-made-in-step":
        kind = "Optimizer" if plan.step == "optimizer" else "ModelAndOptimizer"
        wanted = "trained" if plan.trained == "head" else "nnx.Param"
        body.insert(0, f"optimizer = nnx.{kind}(model, optax.adam(0.1), wrt={wanted})")
    if names == ["optimizer"]:
        body.insert(0, "model = optimizer.model")
    if plan.metric:
        given = "value" if plan.mistake == "metric-argument" else "loss"
        body.insert(-1, f"metric.update({given}=loss)")
        names += [] if plan.captured else ["metric"]
    transform = "jax.jit" if plan.mistake == "jax-jit" else "nnx.jit"
    lines = [f"def train_step({', '.join([*names, 'x', 'y'])}):", *(f"    {line}" if line else "" for line in body)]
    if plan.jitted == "decorated":
        return [f"@{transform}", *lines]
    return [*lines, "", f"compiled = {transform}(train_step)"] if plan.jitted == "called" else lines


def _functional_step(plan: Plan) -> list[str]:
    filters = "..., nnx.Param" if plan.mistake == "ellipsis-first" else "nnx.Param, ..."
    if plan.mistake == "state-not-unpacked":
        split = ["graphdef = nnx.graphdef(model)", "params = nnx.split(model, nnx.Param, ...)", "rest = nnx.State({})"]
    elif plan.mistake == "split-in-part":
        split = ["graphdef, params = nnx.split(model, nnx.Param)", "rest = nnx.State({})"]
    else:
        split = [f"graphdef, params, rest = nnx.split(model, {filters})"]
    states = "params" if plan.mistake == "merge-in-part" else "params, rest"
    aux = "(loss, (rest, predicted)), grads" if plan.aux else "(loss, rest), grads"
    gives = "(nnx.state(model, nnx.Not(nnx.Param)), predicted)" if plan.aux else "nnx.state(model, nnx.Not(nnx.Param))"
    declares = "" if plan.mistake == "aux-not-declared" else ", has_aux=True"
    returned = "return loss" if plan.mistake == "aux-not-returned" else f"return loss, {gives}"
    leak = ["        seen.append(predicted)"] if plan.mistake == "leaked-value" else []
    lines = [
        "def train_step(params, rest, x, y):",
        "    def loss_of(params):",
        f"        model = nnx.merge(graphdef, {states}, copy=True)",
        "        predicted = model(x)",
        *leak,
        f"        loss = {_error(plan)}",
        f"        {returned}",
        "",
        f"    {aux} = jax.value_and_grad(loss_of{declares})(params)",
        "    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)",
        "    return params, rest, loss",
    ]
    if plan.jitted == "decorated":
        lines.insert(0, "@jax.jit")
    elif plan.jitted == "called":
        lines += ["", "compiled = jax.jit(train_step)"]
    return [*split, "", *lines]


def _round(plan: Plan) -> list[str]:
    step = "compiled" if plan.jitted == "called" else "train_step"
    if plan.step == "functional":
        return [f"params, rest, loss = {step}(params, rest, x, y)"]
    names = [] if plan.captured else ["model"]
    if plan.step in ("optimizer", "model-and-optimizer") and not plan.captured:
        names = ["optimizer"] if plan.step == "model-and-optimizer" else ["model", "optimizer"]
    names += ["metric"] if plan.metric and not plan.captured else []
    return [f"loss = {step}({', '.join([*names, 'x', 'y'])})"]


def _owed(plan: Plan) -> list[str]:
    lines = ["nnx.update(model, params, rest)"] if plan.step == "functional" else []
    lines += [
        "after = nnx.state(model, nnx.Param)",
        "moved = [bool((old != new).any()) for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after))]",
        "assert any(moved), 'no parameter has moved'",
        "assert not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(nnx.state(model)))",
    ]
    if plan.mistake == "class-level-layer":
        lines.append("assert 'extra' in nnx.to_pure_dict(after), 'a layer is no part of the model'")
    if plan.mistake == "optimizer-made-in-step":
        lines.append("assert optimizer.step[...] == 3, 'the optimizer has taken no steps'")
    if plan.counter:
        lines.append("assert model.calls[...] == 3, 'calls are not counted'")
    if plan.metric:
        lines.append("assert metric.compute() > 0, 'the metric has seen no loss'")
    if plan.mistake == "leaked-value":
        lines.append("assert not any(isinstance(value, jax.core.Tracer) for value in seen), 'a tracer is left'")
    lines.append("model.set_attributes(determinstic=True)" if plan.mistake == "unknown-mode" else "model.eval()")
    lines.append("assert (model(x) == model(x)).all()")
    return lines
