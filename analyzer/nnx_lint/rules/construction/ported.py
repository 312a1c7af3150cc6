"""Functions of PyTorch that are looked for in JAX and optax, and functions of these that are called as PyTorch's are
(NNX825).

Invariants: a name that is reported is one that no version of the library has or had, an argument one that the function
has never taken. What a library has by the same name, with another meaning, is left alone.
"""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit, Fix, Span
from nnx_lint.model.containers import Seq
from nnx_lint.model.forms import literal
from nnx_lint.model.states import TransformationVal
from nnx_lint.model.values import SHAPE, Array, ArrayAttr, Const, ParameterNumber
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import value_of
from nnx_lint.rules.edits import replace
from nnx_lint.rules.program import canonical_of, follows, given, is_tried, statement_of
from nnx_lint.rules.randomness.arguments import needs_key
from nnx_lint.rules.training.losses import LOSSES
from nnx_lint.rules.training.optimizers import FACTORIES
from nnx_rules.rules import variables as rules
from nnx_rules.shape_algebra import is_whole

if TYPE_CHECKING:
    from nnx_lint.model.events import Called

# -- names -------------------------------------------------------------------------------------------------------------

_DIFFERENTIATED = "nothing: what is differentiated is what `nnx.grad` is applied to"
_SEEDED = "`jax.random.key(seed)`, and hand the key on: there is no global seed"

_NUMPY = {
    "Tensor": "`jnp.array(values)`",
    "as_tensor": "`jnp.asarray(values)`",
    "bernoulli": "`jax.random.bernoulli(key, p)`",
    "bmm": "`x @ y`",
    "cat": "`jnp.concatenate(arrays, axis)`",
    "chunk": "`jnp.split(x, n, axis)`",
    "clamp": "`jnp.clip(x, min, max)`",
    "cross_entropy": "`optax.softmax_cross_entropy_with_integer_labels(logits, labels)`",
    "dropout": "a layer: `nnx.Dropout(rate, rngs=rngs)`",
    "erf": "`jax.scipy.special.erf(x)`",
    "flatten": "`x.reshape(x.shape[0], -1)`, or `jnp.ravel(x)`",
    "from_numpy": "`jnp.asarray(array)`",
    "gather": "`jnp.take_along_axis(x, index, axis)`",
    "gelu": "`nnx.gelu(x)`",
    "index_select": "`jnp.take(x, index, axis)`",
    "leaky_relu": "`nnx.leaky_relu(x)`",
    "log_softmax": "`nnx.log_softmax(x, axis)`",
    "logsumexp": "`jax.nn.logsumexp(x, axis)`",
    "masked_fill": "`jnp.where(mask, value, x)`",
    "masked_select": "`x[mask]`",
    "mm": "`x @ y`",
    "multinomial": "`jax.random.categorical(key, logits)`",
    "no_grad": _DIFFERENTIATED,
    "norm": "`jnp.linalg.norm(x)`",
    "numel": "`x.size`",
    "one_hot": "`jax.nn.one_hot(x, num_classes)`",
    "permute": "`jnp.transpose(x, axes)`",
    "rand": "`jax.random.uniform(key, shape)`",
    "rand_like": "`jax.random.uniform(key, x.shape)`",
    "randint": "`jax.random.randint(key, shape, low, high)`",
    "randn": "`jax.random.normal(key, shape)`",
    "randn_like": "`jax.random.normal(key, x.shape)`",
    "randperm": "`jax.random.permutation(key, n)`",
    "relu": "`nnx.relu(x)`",
    "repeat_interleave": "`jnp.repeat(x, n, axis)`",
    "rsqrt": "`jax.lax.rsqrt(x)`",
    "scatter": "`x.at[index].set(values)`",
    "sigmoid": "`nnx.sigmoid(x)`",
    "silu": "`nnx.silu(x)`",
    "softmax": "`nnx.softmax(x, axis)`",
    "tensor": "`jnp.array(values)`",
    "topk": "`jax.lax.top_k(x, k)`",
    "unsqueeze": "`jnp.expand_dims(x, axis)`",
}

_LOSSES: dict[str, tuple[str, ...]] = {
    _NUMPY["cross_entropy"]: (
        *("CrossEntropyLoss", "cross_entropy", "cross_entropy_loss", "softmax_cross_entropy_loss"),
        *("sparse_categorical_cross_entropy", "sparse_categorical_crossentropy"),
        *("softmax_cross_entropy_with_logits", "sparse_softmax_cross_entropy_with_logits", "nll_loss"),
    ),
    "`optax.softmax_cross_entropy(logits, probabilities)`": ("categorical_cross_entropy", "categorical_crossentropy"),
    "`optax.sigmoid_binary_cross_entropy(logits, labels)`": (
        *("BCEWithLogitsLoss", "bce_loss", "bce_with_logits", "binary_cross_entropy", "binary_crossentropy"),
        *("binary_cross_entropy_with_logits", "sigmoid_cross_entropy"),
    ),
    "`optax.squared_error(x, y).mean()`": ("MSELoss", "mean_squared_error", "mse", "mse_loss"),
    "`jnp.abs(x - y).mean()`": ("L1Loss", "l1_loss", "mae", "mean_absolute_error"),
    "`optax.huber_loss(x, y)`": ("SmoothL1Loss", "smooth_l1_loss"),
}
"""What there is in optax for losses of other libraries, with what these are called."""

_CLIPPED = "`optax.chain(optax.clip_by_global_norm(limit), ...)`"
_DECAYED = "a schedule: `optax.cosine_decay_schedule(rate, steps)`, `optax.warmup_cosine_decay_schedule(...)`"
_AVERAGED = "`optax.incremental_update(new_tensors, old_tensors, step_size)`, which returns the average"
_SCHEDULES = ("CosineAnnealingLR", "cosine_annealing", "cosine_decay", "cosine_schedule", "warmup_cosine_decay")

_SAVED = "`ocp.StandardCheckpointer()`, with its methods `save(path, state)` and `restore(path, state)`"

_OPTIMIZERS = {"Adam": "adam", "AdamW": "adamw", "RMSprop": "rmsprop", "SGD": "sgd"}

NAMES: dict[str, str] = {
    **{f"jax.numpy.{name}": mend for name, mend in _NUMPY.items()},
    **{f"jax.{name}": _DIFFERENTIATED for name in ("enable_grad", "inference_mode", "no_grad")},
    **{f"jax.{name}": _NUMPY[name] for name in ("cat", "rand", "randn", "relu", "softmax", "tensor")},
    **dict.fromkeys(("jax.manual_seed", "jax.random.manual_seed", "jax.random.seed"), _SEEDED),
    "jax.random.rand": _NUMPY["rand"],
    "jax.random.randn": _NUMPY["randn"],
    "jax.random.randn_like": _NUMPY["randn_like"],
    **{f"jax.nn.{name}": f"`nnx.{name}`" for name in ("Conv", "Dropout", "Embed", "LayerNorm", "Linear", "Module")},
    "jax.nn.Sequential": "`nnx.Sequential`",
    "jax.nn.dropout": _NUMPY["dropout"],
    **{f"jax.nn.{name}": mend for mend, names in _LOSSES.items() for name in names},
    **{f"optax.{name}": f"`optax.{right}`" for name, right in _OPTIMIZERS.items()},
    **{f"optax.{name}": mend for mend, names in _LOSSES.items() for name in names},
    **{f"optax.{name}": _CLIPPED for name in ("clip_by_norm", "clip_grad_norm", "clip_grad_norm_", "clip_gradients")},
    **{f"optax.{name}": _DECAYED for name in _SCHEDULES},
    **{f"optax.{name}": _AVERAGED for name in ("ema_update", "polyak_averaging", "polyak_update", "soft_update")},
    **{f"orbax.checkpoint.{name}": _SAVED for name in ("load", "restore", "save", "save_checkpoint")},
}
"""Names of PyTorch by the namespace in which they are looked for, with what there is instead."""

RENAMED = {
    "as_tensor": "asarray",
    "cat": "concatenate",
    "clamp": "clip",
    "from_numpy": "asarray",
    "tensor": "array",
    "unsqueeze": "expand_dims",
}
"""Those that ``jax.numpy`` has by another name, with the same arguments by position."""


@judges_calls(rules.TENSOR_IDIOM, *NAMES)
def name_of_torch(event: Called, report: Reporter) -> None:
    subject, module = event.subject or "", event.frame.module
    last = subject.rpartition(".")[2]
    if is_tried(module, event.node) or module.mentions(f"'{last}'", f'"{last}"'):
        return
    fix = partial(_renamed, event, last) if subject.startswith("jax.numpy.") and last in RENAMED else None
    problem = f"`{subject.rpartition('.')[0]}` has no `{last}`"
    report(module, event.node, fix=fix, problem=problem, mend=f"use {NAMES[subject]}")


@judges_calls(rules.TENSOR_IDIOM, "jax.nn.functional.*")
def function_of_torch(event: Called, report: Reporter) -> None:
    if not is_tried(event.frame.module, event.node):
        last = (event.subject or "").rpartition(".")[2]
        mend = f"functions are in `nnx` and `jax.nn` themselves: `nnx.{last}`"
        report(event.frame.module, event.node, problem="`jax.nn` has no `functional`", mend=mend)


def _renamed(event: Called, name: str) -> Fix | None:
    call, source = event.node, event.frame.module.source
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if any(keyword.arg != "dim" for keyword in call.keywords):
        return None
    end = source.span(call.func).end
    edits = [Edit(Span(end - len(name), end), RENAMED[name])]
    for keyword in call.keywords:
        start = source.span(keyword).start
        edits.append(Edit(Span(start, start + len("dim")), "axis"))
    return Fix(f"Call `{RENAMED[name]}`", tuple(edits))


# -- what optax is given -----------------------------------------------------------------------------------------------

OPTIONS = {
    "amsgrad": "there is `optax.amsgrad`",
    "betas": "they are two arguments: `b1=..., b2=...`",
    "lr": "it is called `learning_rate`",
    "params": "they go into `nnx.Optimizer(model, tx, wrt=nnx.Param)`",
    "weight_decay": "there is `optax.adamw`, or chain it: `optax.chain(optax.add_decayed_weights(rate), ...)`",
}
"""Arguments of PyTorch's optimizers."""

DECAYING = frozenset(
    {"adadelta", "adafactor", "adamaxw", "adamw", "adan", "lamb", "lars", "lion", "nadamw", "novograd"}
)
"""Optimizers of optax that take the weight decay."""


@judges_calls(rules.TENSOR_IDIOM, *(f"optax.{name}" for name in FACTORIES))
def option_of_torch(event: Called, report: Reporter) -> None:
    name = (event.subject or "").removeprefix("optax.")
    for option in event.keywords:
        if option in OPTIONS and not (option == "weight_decay" and name in DECAYING):
            fix = partial(_as_learning_rate, event) if option == "lr" else None
            problem = f"`{event.name}` takes no `{option}`"
            report(event.frame.module, event.node, fix=fix, problem=problem, mend=OPTIONS[option])
            return


def _as_learning_rate(event: Called) -> Fix | None:
    keywords = event.node.keywords if isinstance(event.node, ast.Call) else []
    found = next((keyword for keyword in keywords if keyword.arg == "lr"), None)
    if found is None:
        return None
    start = event.frame.module.source.span(found).start
    return Fix("Write `learning_rate`", (Edit(Span(start, start + len("lr")), "learning_rate"),))


METHODS = {
    **dict.fromkeys((".step", ".get_last_lr"), "give it to the optimizer, which counts its steps itself"),
    ".zero_grad": "gradients are what `nnx.grad` returns: nothing has to be cleared",
    ".state_dict": "its state is what `init` and `update` return",
}
"""Methods of PyTorch's optimizers and schedulers."""


@judges_calls(rules.TENSOR_IDIOM, *METHODS)
def method_of_transformation(event: Called, report: Reporter) -> None:
    owner, func = event.owner, event.node.func if isinstance(event.node, ast.Call) else None
    if not isinstance(owner, TransformationVal) or not isinstance(func, ast.Attribute):
        return
    if not is_tried(event.frame.module, event.node):
        what = "a schedule is a function of the step" if owner.schedule else "a transformation has `init` and `update`"
        problem = f"{what}, and has no `{func.attr}`"
        report(event.frame.module, event.node, problem=problem, mend=METHODS[f".{func.attr}"])


@judges_calls(rules.TENSOR_IDIOM, "optax.clip_by_global_norm", "optax.clip")
def clipped_at_once(event: Called, report: Reporter) -> None:
    """Gradients that are handed to a function that makes a transformation, with the limit."""
    if len(event.args) > 1:
        problem = f"`{event.name}` takes the limit and no gradients: it makes a transformation"
        mend = f"make it part of the optimizer: `optax.chain({event.name}(limit), optax.adam(1e-3))`"
        report(event.frame.module, event.node, problem=problem, mend=mend)


# -- random numbers ----------------------------------------------------------------------------------------------------

KEYS = re.compile("key|rng|seed", re.IGNORECASE)
"""What stands in the names of parameters that get a key whatever their annotation says."""


@judges_calls(rules.TENSOR_IDIOM, "jax.random.*", when=needs_key)
def key_left_out(event: Called, report: Reporter) -> None:
    """Random numbers are asked for by a shape alone, or by a seed: there is no global generator."""
    args, call = given(event), event.node
    named = canonical_of(event.frame.env, call.func) if isinstance(call, ast.Call) else None
    if named != event.subject or args.starred or "**" in event.keywords:
        return  # a method that stands for a function may bring the key along
    value = args.get(0, "key")
    number = isinstance(value, Const) and type(value.value) is int
    number = number or (isinstance(value, ParameterNumber) and not KEYS.search(value.name))
    if value is None and not event.args and "seed" not in event.keywords:
        got = "none"
    elif number or value is SHAPE or (isinstance(value, Seq) and value.type in {"tuple", "list"}):
        got = "a number" if number else "a shape"
    else:
        return
    if not is_tried(event.frame.module, event.node):
        problem = f"`{event.name}` takes a random key first, and gets {got}"
        mend = f"make one, and draw from it: `{event.name}(rngs.noise(), ...)`, or `jax.random.key(seed)`"
        report(event.frame.module, event.node, problem=problem, mend=mend)


OF_SEVERAL = frozenset({"jax.random.clone", "jax.random.key_data"})
"""Functions that take an array of keys as well as one key."""


@judges_calls(rules.TENSOR_IDIOM, "jax.random.*", when=needs_key)
def keys_as_key(event: Called, report: Reporter) -> None:
    """``key = jax.random.split(key)``: all keys of a split are used as if they were one."""
    node, call, module = given(event).node_of(0, "key"), event.node, event.frame.module
    if not isinstance(node, ast.Name) or not isinstance(call, ast.Call) or event.subject in OF_SEVERAL:
        return
    made = value_of(module, node)
    if not isinstance(made, ast.Call) or canonical_of(event.frame.env, made.func) != "jax.random.split":
        return
    first, here = statement_of(module, made), statement_of(module, call)
    if first is None or here is None or first is here or not follows(module, first, here):
        return
    if canonical_of(event.frame.env, call.func) == event.subject and not is_tried(module, call):
        problem = f"`{node.id}` is an array of keys, as `jax.random.split` returns it, and `{event.name}` takes one key"
        report(module, call, problem=problem, mend=f"take them apart: `key, {node.id} = jax.random.split(key)`")


# -- what functions are called with ------------------------------------------------------------------------------------


REDUCTION = frozenset({"ignore_index", "label_smoothing", "reduction", "weight"})
"""Arguments of PyTorch's losses."""


@judges_calls(rules.TENSOR_IDIOM, *(f"{head}.{name}" for head in ("optax", "optax.losses") for name in LOSSES))
def loss_of_torch(event: Called, report: Reporter) -> None:
    """A loss is made first and called then, as an object of PyTorch is, or told what to do with the examples."""
    option = next((option for option in event.keywords if option in REDUCTION), None)
    if event.args and option is not None:
        problem = f"`{event.name}` takes no `{option}`"
        mend = "it gives a loss for each example: weigh them, and take the mean: `losses.mean()`"
        report(event.frame.module, event.node, problem=problem, mend=mend)
    elif not event.args and event.keywords.keys() <= {*REDUCTION, "delta", "axis"}:
        problem = f"`{event.name}` is a function of arrays, and is called without them"
        mend = f"call it with them: `{event.name}({', '.join(LOSSES[event.name.rpartition('.')[2]][0])}).mean()`"
        report(event.frame.module, event.node, problem=problem, mend=mend)


@judges_calls(rules.TENSOR_IDIOM, "jax.nn.one_hot", "nnx.one_hot")
def classes_not_counted(event: Called, report: Reporter) -> None:
    if len(event.args) == 1 and not event.keywords.keys() & {"num_classes", "**"} and event.args[0] is not None:
        problem = f"`{event.name}` takes the number of classes, too: the shape cannot depend on the values"
        mend = f"say it: `{event.name}(x, num_classes)`"
        report(event.frame.module, event.node, problem=problem, mend=mend)


GATHERING = tuple(f"jax.numpy.{name}" for name in ("concatenate", "dstack", "hstack", "stack", "vstack"))

REDUCING = tuple(
    f"jax.numpy.{name}" for name in ("all", "any", "array", "asarray", "max", "mean", "min", "prod", "sum")
)


@judges_calls(rules.TENSOR_IDIOM, *GATHERING)
def arrays_not_in_list(event: Called, report: Reporter) -> None:
    first, second = event.args[:2] if len(event.args) > 1 else (None, None)
    if isinstance(first, Array) and isinstance(second, Array) and event.keywords.keys() <= {"axis"}:
        call, source = event.node, event.frame.module.source
        texts = ", ".join(source.segment(node) for node in event.nodes)
        whole = isinstance(call, ast.Call) and "\n" not in texts and all(isinstance(item, Array) for item in event.args)
        fix = (
            Fix("Put them into a list", replace(source, call, f"{source.segment(call.func)}([{texts}])"))
            if whole and isinstance(call, ast.Call) and not call.keywords
            else None
        )
        problem = f"`{event.name}` takes the arrays in one list"
        report(event.frame.module, call, fix=fix, problem=problem, mend=f"write `{event.name}([x, y])`")


@judges_calls(rules.TENSOR_IDIOM, *GATHERING, *REDUCING)
def arrays_of_generator(event: Called, report: Reporter) -> None:
    node = event.nodes[0] if event.nodes else None
    if isinstance(node, ast.GeneratorExp) and not is_tried(event.frame.module, event.node):
        problem = f"`{event.name}` cannot take a generator: it asks for the arrays more than once"
        fix = partial(_as_list, event, node)
        report(event.frame.module, event.node, fix=fix, problem=problem, mend="make a list: `[... for ... in ...]`")


def _as_list(event: Called, node: ast.GeneratorExp) -> Fix | None:
    source = event.frame.module.source
    span = source.span(node)
    text = source.segment(node)
    if event.subject in REDUCING or not text.startswith("(") or not text.endswith(")"):
        return None  # the sum of the elements may be meant, as Python's `sum` gives it
    alone = span.end == source.span(event.node).end  # the brackets are those of the call
    return Fix("Make a list", (Edit(span, f"([{text[1:-1]}])" if alone else f"[{text[1:-1]}]"),))


@judges_calls(rules.TENSOR_IDIOM, ArrayAttr)
def axes_swapped(event: Called, report: Reporter) -> None:
    """``x.transpose(1, 2)``: two axes are named where JAX takes all of them."""
    method = event.callee
    if not isinstance(method, ArrayAttr) or method.host or method.owner or method.name != "transpose":
        return
    axes = [item.value for item in event.args if isinstance(item, Const) and type(item.value) is int]
    if len(axes) != 2 or len(event.args) != 2 or event.keywords or is_tried(event.frame.module, event.node):
        return
    shape = literal(event.owner).shape
    rank = len(shape) if shape is not None and is_whole(shape) else None
    if sorted(axis % 2 for axis in axes) == [0, 1] and all(-2 <= axis < 2 for axis in axes) and rank in {None, 2}:
        return
    first, second = axes
    problem = "`transpose` of a JAX array takes all axes, in their new order, and gets two"
    fix = partial(_as_swapaxes, event)
    report(event.frame.module, event.node, fix=fix, problem=problem, mend=f"write `x.swapaxes({first}, {second})`")


def _as_swapaxes(event: Called) -> Fix | None:
    func = event.node.func if isinstance(event.node, ast.Call) else None
    if not isinstance(func, ast.Attribute):
        return None
    end = event.frame.module.source.span(func).end
    return Fix("Call `swapaxes`", (Edit(Span(end - len("transpose"), end), "swapaxes"),))
