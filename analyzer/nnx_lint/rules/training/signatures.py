"""What functions of optax are called with: schedules, and the optimizers that nearly every program uses (NNX618).

Invariants: a parameter is unknown only if no version of optax has had it. Calls that spread their arguments, and calls
that may fail on purpose, are left alone; what PyTorch would call a parameter is said by
:mod:`nnx_lint.rules.construction.ported`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.construction.ported import OPTIONS
from nnx_lint.rules.program import given, is_tried
from nnx_rules.rules import training as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called

_ADAM = "learning_rate | b1 b2 eps eps_root mu_dtype"

OPTIMIZERS = {
    "adagrad": "learning_rate | initial_accumulator_value eps",
    "adam": f"{_ADAM} | nesterov",
    "adamw": f"{_ADAM} weight_decay mask | nesterov",
    "lion": "learning_rate | b1 b2 mu_dtype weight_decay mask",
    "nadam": f"{_ADAM} | nesterov",
    "nadamw": f"{_ADAM} weight_decay mask | nesterov",
    "radam": "learning_rate | b1 b2 eps eps_root threshold | nesterov",
    "rmsprop": "learning_rate | decay eps initial_scale eps_in_sqrt centered momentum nesterov bias_correction",
    "sgd": "learning_rate | momentum nesterov accumulator_dtype",
}

SCHEDULES = {
    "constant_schedule": "value",
    "cosine_decay_schedule": "init_value decay_steps | alpha exponent",
    "cosine_onecycle_schedule": "transition_steps peak_value | pct_start div_factor final_div_factor",
    "exponential_decay": "init_value transition_steps decay_rate | transition_begin staircase end_value",
    "join_schedules": "schedules boundaries",
    "linear_onecycle_schedule": "transition_steps peak_value | pct_start pct_final div_factor final_div_factor",
    "linear_schedule": "init_value end_value transition_steps | transition_begin",
    "piecewise_constant_schedule": "init_value | boundaries_and_scales",
    "polynomial_schedule": "init_value end_value power transition_steps | transition_begin",
    "warmup_constant_schedule": "init_value peak_value warmup_steps",
    "warmup_cosine_decay_schedule": "init_value peak_value warmup_steps decay_steps | end_value exponent",
    "warmup_exponential_decay_schedule": (
        "init_value peak_value warmup_steps transition_steps decay_rate | transition_begin staircase end_value"
    ),
}

WRAPPERS = {
    "MultiSteps": "opt every_k_schedule | use_grad_mean should_skip_update_fn accumulator_dtype",
    "apply_if_finite": "inner max_consecutive_errors",
    "lookahead": "fast_optimizer sync_period slow_step_size | reset_state",
}

PARAMETERS = {
    **{f"optax.{name}": text for name, text in (OPTIMIZERS | SCHEDULES | WRAPPERS).items()},
    **{f"optax.schedules.{name}": text for name, text in SCHEDULES.items()},
}
"""The parameters of each function: the required ones, after a bar those with a default, and those by keyword only."""


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, *PARAMETERS)
def parameters_of_optax(event: Called, report: Reporter) -> None:
    arguments = given(event)
    required, *others = (part.split() for part in PARAMETERS[event.subject or ""].split("|"))
    places = [*required, *(others[0] if others else [])]
    names = [*required, *(name for part in others for name in part)]
    if arguments.starred or "**" in arguments.keywords or is_tried(event.frame.module, event.node):
        return
    unknown = [name for name in arguments.keywords if name not in names]
    by_place = places[: len(arguments.positional)]
    filled = [*by_place, *arguments.keywords]
    twice = [name for name in arguments.keywords if name in by_place]
    missing = [name for name in required if name not in filled]
    if not OPTIONS.keys().isdisjoint(unknown):
        return
    if unknown:
        problem = f"has no parameter `{unknown[0]}`"
    elif len(arguments.positional) > len(places):
        problem = f"gets {len(arguments.positional)} arguments by position, and takes {len(places)}"
    elif twice:
        problem = f"gets `{twice[0]}` twice, by position and by name"
    elif missing:
        problem = f"gets no `{missing[0]}`"
    else:
        return
    mend = f"its parameters are {', '.join(f'`{name}`' for name in names)}"
    report(event.frame.module, event.node, cls=event.name, problem=problem, mend=mend)
