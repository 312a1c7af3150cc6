"""What a transformation of optax does with what is put into it: the order of a chain, and the rate of a step (NNX618).

A chain hands gradients from one link to the next, and an optimizer among them makes steps of what it gets: after it
there are no gradients any more. A rate is a number or a schedule, and what a schedule returns for one step is a number.
The steps that a schedule is for are counted from the first one of its warm-up.

Invariants: only links that certainly are what they are called count; a rate that the program computes anew, of a step
that it knows, is not judged.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Fix
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.containers import Seq
from nnx_lint.model.expressions import text_of
from nnx_lint.model.states import TransformationVal
from nnx_lint.model.values import STRING, Const, Ext
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.edits import insert
from nnx_lint.rules.program import given, is_tried, resolved
from nnx_lint.rules.training.optimizers import FACTORIES, is_function
from nnx_lint.syntax.parameters import misfit
from nnx_rules.rules import training as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called

OF_GRADIENTS = frozenset({"adaptive_grad_clip", "clip_by_global_norm"})
"""Links that bound gradients by what gradients are like."""


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, "optax.chain")
def part_of_chain(event: Called, report: Reporter) -> None:
    """What is chained is a schedule, or a function that has yet to make a transformation."""
    module = event.frame.module
    for value, node in zip(event.args, event.nodes, strict=False):
        text = text_of(node)
        if isinstance(value, TransformationVal) and value.schedule:
            problem = f"gets the schedule `{text}`, which is a function of the step, where it takes a transformation"
            report(module, node, cls="chain", problem=problem, mend=f"scale by it: `optax.adam({text})`")
        elif isinstance(value, Ext) and value.name in {f"optax.{factory}" for factory in FACTORIES}:
            problem = f"gets the function `{text}`, which makes a transformation, and not the transformation"
            report(module, node, cls="chain", problem=problem, mend=f"call it: `{text}(learning_rate)`")
        elif isinstance(value, Seq) and any(isinstance(item, TransformationVal) for item in value.items):
            problem = f"gets a {value.type} of transformations, and takes each as an argument of its own"
            fix = Fix("Spread it", insert(module.source.span(node).start, "*"), Applicability.UNSAFE)
            report(module, node, fix=fix, cls="chain", problem=problem, mend=f"write `optax.chain(*{text})`")
        elif is_function(value) and not is_tried(module, event.node):
            problem = f"gets the function `{text}`, and not a transformation"
            report(module, node, cls="chain", problem=problem, mend=f"if it makes one, call it: `{text}(...)`")


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, "optax.chain")
def clipped_after_step(event: Called, report: Reporter) -> None:
    """Gradients are to be clipped where only steps are left."""
    optimizer = ""
    for value, node in zip(event.args, event.nodes, strict=False):
        maker = value.maker if isinstance(value, TransformationVal) else ""
        if optimizer and maker in OF_GRADIENTS and not is_tried(event.frame.module, event.node):
            problem = f"comes after `{optimizer}`: it gets steps, and the gradients went in unbounded"
            mend = f"put it first: `optax.chain(optax.{maker}(...), optax.{optimizer}(...))`"
            report(event.frame.module, node, cls=f"optax.{maker}", problem=problem, mend=mend)
            return
        optimizer = maker if maker in FACTORIES else optimizer


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, "optax.chain")
def decayed_after_step(event: Called, report: Reporter) -> None:
    """Weights are added to steps, which go down already: the weights grow, and by much more than the rate."""
    step = ""
    for value, node in zip(event.args, event.nodes, strict=False):
        maker = value.maker if isinstance(value, TransformationVal) else ""
        if step and maker == "add_decayed_weights" and _adds(event, node) and not is_tried(event.frame.module, node):
            problem = f"comes after `{step}`: what it adds to the steps makes the weights grow"
            mend = f"put it before `{step}`, which makes steps down of what it gets, or use `optax.adamw`"
            report(event.frame.module, node, cls="optax.add_decayed_weights", problem=problem, mend=mend)
            return
        turns = maker in {*FACTORIES, "scale_by_learning_rate"} or (maker == "scale" and _is_negative(node))
        step = f"optax.{maker}" if turns else step


def _is_negative(node: ast.expr) -> bool:
    """Whether a call certainly gets a number below zero."""
    first = node.args[0] if isinstance(node, ast.Call) and node.args else None
    return isinstance(first, ast.UnaryOp) and isinstance(first.op, ast.USub)


def _adds(event: Called, node: ast.expr) -> bool:
    """Whether what a call gets is more than zero: a number, or something that is called a decay."""
    call = node if isinstance(node, ast.Call) else None
    first = next(iter([*call.args, *(each.value for each in call.keywords)]), None) if call is not None else None
    known = resolved(event.frame.env, first) if isinstance(first, (ast.Attribute, ast.Name)) else None
    number = known.value if isinstance(known, Const) else first.value if isinstance(first, ast.Constant) else None
    if isinstance(number, float):
        return number > 0
    return isinstance(first, (ast.Attribute, ast.Name)) and "decay" in text_of(first)


OF_NORM = re.compile(r"(^|_)norm(_|$)")
"""Names of limits for the length of all gradients together."""


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, "optax.clip", "optax.transforms.clip")
def limit_of_norm(event: Called, report: Reporter) -> None:
    """``optax.clip(max_grad_norm)`` bounds each number for itself."""
    node = given(event).node_of(0, "max_delta")
    last = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    if node is not None and OF_NORM.search(last.lower()) and not is_tried(event.frame.module, event.node):
        text = text_of(node)
        problem = f"bounds each number of the gradients by `{text}`, and not their norm: their direction changes"
        mend = f"bound the norm of all of them: `optax.clip_by_global_norm({text})`"
        report(event.frame.module, event.node, cls=event.name, problem=problem, mend=mend)


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, *(f"optax.{name}" for name in FACTORIES))
def rate_of_one_step(event: Called, report: Reporter) -> None:
    """A schedule is called for one step, where the optimizer would call it for each; or the rate is a text."""
    args = given(event)
    node, rate = args.node_of(0, "learning_rate"), args.get(0, "learning_rate")
    text = rate is STRING or (isinstance(rate, Const) and isinstance(rate.value, str))
    if text and node is not None and not is_tried(event.frame.module, event.node):
        problem = "gets a string as the learning rate: nothing can be multiplied by it"
        mend = "make a number of it: `float(...)`, or `type=float` where an argument of the program comes from"
        report(event.frame.module, node, cls=event.name, problem=problem, mend=mend)
        return
    if not isinstance(node, ast.Call) or len(node.args) != 1 or not isinstance(node.args[0], ast.Constant):
        return
    schedule = resolved(event.frame.env, node.func)
    if isinstance(schedule, TransformationVal) and schedule.schedule and not is_tried(event.frame.module, event.node):
        name = text_of(node.func)
        problem = f"gets `{text_of(node)}`, one number: the learning rate never changes"
        mend = f"hand over the schedule: `{event.name}({name})`"
        report(event.frame.module, node, cls=event.name, problem=problem, mend=mend)


WARMED = ("optax.warmup_cosine_decay_schedule", "optax.schedules.warmup_cosine_decay_schedule")


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, *WARMED)
def warmed_up_to_the_end(event: Called, report: Reporter) -> None:
    """A schedule whose steps end while it is still warming up: its decay counts the steps before it, too."""
    args = given(event)
    warmup, steps = args.get(2, "warmup_steps"), args.get(3, "decay_steps")
    if not isinstance(warmup, Const) or not isinstance(steps, Const) or is_tried(event.frame.module, event.node):
        return
    if isinstance(warmup.value, int) and isinstance(steps.value, int) and warmup.value >= steps.value:
        problem = f"gets {steps.value} for `decay_steps`, which count the {warmup.value} steps of the warm-up, too"
        mend = "`decay_steps` is the number of all steps of the training: give it more than `warmup_steps`"
        report(event.frame.module, event.node, cls=event.name, problem=problem, mend=mend)


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, *(f"optax.{name}join_schedules" for name in ("", "schedules.")))
def schedule_without_boundary(event: Called, report: Reporter) -> None:
    """Schedules that are joined with too few boundaries between them, so that the last of them never begins."""
    args = given(event)
    schedules, boundaries = args.node_of(0, "schedules"), args.node_of(1, "boundaries")
    lists = [node for node in (schedules, boundaries) if isinstance(node, (ast.List, ast.Tuple))]
    if len(lists) < 2 or any(isinstance(item, ast.Starred) for node in lists for item in node.elts):
        return
    count, between = (len(node.elts) for node in lists)
    if count - 1 != between and not is_tried(event.frame.module, event.node):
        effect = "the rest never begins" if between < count - 1 else "a schedule is missing"
        problem = f"joins {count} schedules at {between} boundaries: {effect}"
        mend = "give one boundary less than schedules: the step at which each but the first begins"
        report(event.frame.module, event.node, cls=event.name, problem=problem, mend=mend)


SECOND = {
    **{f"optax.{name}": "b1" for name in ("adam", "adamw", "adamax", "adamaxw", "nadam", "nadamw", "radam", "lion")},
    "optax.sgd": "momentum",
}
"""What optimizers take after the learning rate, which is near one."""


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, *SECOND, when=lambda event: len(event.args) > 1)
def decay_in_second_place(event: Called, report: Reporter) -> None:
    """``optax.adamw(1e-3, 1e-4)``: a decay of the weights, or an ``eps``, where what the moments keep is taken."""
    second, third = event.args[1], event.args[2] if len(event.args) > 2 else None
    if is_tried(event.frame.module, event.node):
        return
    name, given_to = SECOND[event.subject or ""], event.args[1]
    if isinstance(given_to, Const) and isinstance(given_to.value, float) and 0 < given_to.value < SMALLEST:
        problem = (
            f"gets {given_to.value:g} for `{name}`, its second parameter: next to nothing is kept from step to step"
        )
        mend = f"name what is meant: `{event.name}(learning_rate, weight_decay=...)`"
        if name == "momentum" or event.name.endswith("adam"):
            mend = f"name what is meant: `{event.name}(learning_rate, {name}=0.9)`; optax.adamw takes `weight_decay`"
        report(event.frame.module, event.node, cls=event.name, problem=problem, mend=mend)
    elif name == "momentum" and second is not None and isinstance(third, Const) and type(third.value) is float:
        problem = f"gets {third.value:g} for `nesterov`, its third parameter, which is a flag"
        mend = "put the decay of the weights before it: `optax.chain(optax.add_decayed_weights(decay), optax.sgd(...))`"
        report(event.frame.module, event.node, cls=event.name, problem=problem, mend=mend)


SMALLEST = 0.05
"""The smallest share that a moving average is meant to keep."""


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, "optax.GradientTransformation", "optax.GradientTransformationExtraArgs")
def functions_exchanged(event: Called, report: Reporter) -> None:
    """A transformation that is written by hand gets its two functions in each other's place."""
    args = given(event)
    begins, updates = args.get(0, "init"), args.get(1, "update")
    if not isinstance(begins, FuncVal) or not isinstance(updates, FuncVal) or is_tried(event.frame.module, event.node):
        return
    if misfit(begins.node.args, 1, ()) is None or misfit(updates.node.args, 1, ()) is not None:
        return
    problem = f"takes the function that begins first, and gets `{begins.name}`, which takes more than the parameters"
    mend = f"exchange them: `{event.name}({updates.name}, {begins.name})`"
    report(event.frame.module, event.node, cls=event.name, problem=problem, mend=mend)
