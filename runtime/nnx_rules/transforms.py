"""The transforms of JAX and NNX: whose functions run under a new trace level, and what that means for objects.

A transform takes one or more *functions*. Running one of them opens a *trace level*: objects that already exist
belong to an outer level, and NNX refuses to change them (a tracer would leak). The arguments that the transform hands
to the function arrive as fresh objects of the inner level; what happens to changes of those depends on the transform.

Invariants: names are canonical (``jax.jit``, ``jax.lax.scan``, ``nnx.jit``), whatever a program calls them; positions
count from zero over the positional parameters of the transform itself.
"""

from __future__ import annotations

import enum
from typing import Any

from nnx_rules.records import Record


class Form(enum.Enum):
    """How a transform is used."""

    WRAPPER = "wrapper"
    """``g = transform(f, **options)``; ``f`` runs when ``g`` is called. Also a decorator, with or without options."""
    CALL = "call"
    """``transform(f, *operands)`` runs ``f`` at once."""


class Arguments(enum.Enum):
    """What becomes of changes that the function makes to its arguments."""

    KEPT = "kept"
    """Written back to the caller's objects."""
    DROPPED = "dropped"
    """Made to copies and forgotten, unless the function returns them."""
    SHARED = "shared"
    """Arguments that are not differentiated are the caller's own objects; the others are copies."""


class FunctionArgument(Record):
    """Where a transform takes a function: its position, its keyword, and whether a sequence of functions is meant."""

    position: int
    keyword: str
    sequence: bool = False


class Transform(Record):
    """One row of the table.

    Attributes:
        name: canonical name.
        functions: the arguments that are functions to run under the transform.
        form: whether it wraps the function or calls it.
        arguments: what becomes of changes to arguments.
        level: whether running the function opens a new trace level. ``False`` rows are listed because they take
            functions and look like transforms, but run them in the present level.
        cached: whether the traced function is kept and reused, so that captures become constants.
        lifts_captures: whether objects that the function captures become arguments: the nnxkit transforms do, those
            of flax and jax do not.
        operands: for ``CALL``, position of the first operand that is handed to the function.
        static_options: the options that name arguments to be treated as constants.
        positional: the options that may follow the function by position, in this order.
        rejects_bound_methods: whether flax (0.12.1 and later) refuses bound methods.
        host: whether the function runs on the host, outside of every trace.
        binds: whether further positional arguments are bound to the function, as by ``functools.partial``.
        flax_default: whether flax has it in its default mode. Where not, it raises there, and in the other modes it
            writes back only what has changed; nnxkit has every transform in every mode.
    """

    name: str
    functions: tuple[FunctionArgument, ...]
    form: Form = Form.WRAPPER
    arguments: Arguments = Arguments.DROPPED
    level: bool = True
    cached: bool = False
    lifts_captures: bool = False
    operands: int = 1
    static_options: tuple[str, ...] = ()
    positional: tuple[str, ...] = ()
    rejects_bound_methods: bool = False
    host: bool = False
    binds: bool = False
    flax_default: bool = True

    @property
    def keeps_shapes(self) -> bool:
        """Whether arrays have the same shapes inside as outside."""
        return self.name in SHAPE_KEEPING

    @property
    def keeps_numbers(self) -> bool:
        """Whether Python's numbers stay what they are inside, unless they are differentiated."""
        return self.name in NUMBER_KEEPING


SHAPE_KEEPING = (
    frozenset(
        f"{library}.{name}"
        for library in ("jax", "nnx")
        for name in (
            "jit",
            "grad",
            "value_and_grad",
            "checkpoint",
            "remat",
            "jit_partial",
            "cached_partial",
            "named_call",
        )
    )
    | frozenset(
        f"{library}.{name}" for library in ("jax.lax", "nnx") for name in ("cond", "switch", "while_loop", "fori_loop")
    )
    | {"jax.lax.scan"}
)
"""The transforms that neither map over axes nor split arrays; of ``jax.lax.scan`` that holds of what it carries."""

NUMBER_KEEPING = frozenset(
    {"jax.experimental.checkify.checkify", "jax.vmap", "nnx.checkify", "nnx.grad", "nnx.value_and_grad", "nnx.vmap"}
)
"""The transforms that make no array of a number: a map takes none but along no axis, a gradient and checks leave it
alone.
"""

COMPILING_ONLY = frozenset({"jax.checkpoint", "jax.jit", "nnx.jit", "nnx.jit_partial", "nnx.remat"})
"""The transforms under which a function does what it does without them, with arguments that are traced."""

_STATIC = ("static_argnums", "static_argnames")
_DERIVATIVE = ("argnums", "has_aux", "holomorphic", "allow_int", "reduce_axes")
_MAPPED = ("in_axes", "out_axes", "axis_name", "axis_size", "spmd_axis_name")


def _wrapper(name: str, keyword: str = "fun", **facts: Any) -> Transform:
    return Transform(name, (FunctionArgument(0, keyword),), **facts)


def _call(name: str, *functions: FunctionArgument, operands: int, **facts: Any) -> Transform:
    return Transform(name, functions, form=Form.CALL, operands=operands, **facts)


def _fn(position: int, keyword: str, *, sequence: bool = False) -> FunctionArgument:
    return FunctionArgument(position, keyword, sequence)


_JAX = (
    _wrapper("jax.jit", cached=True, static_options=_STATIC),
    _wrapper("jax.pmap", cached=True, static_options=("static_broadcasted_argnums",), positional=("axis_name",)),
    _wrapper("jax.vmap", positional=_MAPPED),
    _wrapper("jax.grad", arguments=Arguments.SHARED, positional=_DERIVATIVE),
    _wrapper("jax.value_and_grad", arguments=Arguments.SHARED, positional=_DERIVATIVE),
    _wrapper("jax.jacfwd", arguments=Arguments.SHARED, positional=_DERIVATIVE[:3]),
    _wrapper("jax.jacrev", arguments=Arguments.SHARED, positional=_DERIVATIVE[:4]),
    _wrapper("jax.hessian", arguments=Arguments.SHARED, positional=_DERIVATIVE[:3]),
    _wrapper("jax.checkpoint", static_options=("static_argnums",)),
    _wrapper("jax.make_jaxpr", static_options=("static_argnums",)),
    _wrapper("jax.shard_map", "f"),
    _wrapper("jax.experimental.checkify.checkify", "f"),
    _wrapper("jax.numpy.vectorize", "pyfunc"),
    _call("jax.vjp", _fn(0, "fun"), operands=1),
    _call("jax.jvp", _fn(0, "fun"), operands=1),
    _call("jax.linearize", _fn(0, "fun"), operands=1),
    _call("jax.linear_transpose", _fn(0, "fun"), operands=1),
    _call("jax.eval_shape", _fn(0, "fun"), operands=1),
    _call("jax.closure_convert", _fn(0, "fun"), operands=1),
    _call("jax.scipy.optimize.minimize", _fn(0, "fun"), operands=1),
    _call("jax.lax.custom_root", _fn(0, "f"), _fn(2, "solve"), _fn(3, "tangent_solve"), operands=4),
    _call("jax.lax.custom_linear_solve", _fn(0, "matvec"), _fn(2, "solve"), operands=5),
    _call("jax.lax.scan", _fn(0, "f"), operands=1),
    _call("jax.lax.map", _fn(0, "f"), operands=1),
    _call("jax.lax.cond", _fn(1, "true_fun"), _fn(2, "false_fun"), operands=3),
    _call("jax.lax.switch", _fn(1, "branches", sequence=True), operands=2),
    _call("jax.lax.while_loop", _fn(0, "cond_fun"), _fn(1, "body_fun"), operands=2),
    _call("jax.lax.fori_loop", _fn(2, "body_fun"), operands=3),
    _call("jax.lax.reduce", _fn(2, "computation"), operands=3),
    _call("jax.numpy.apply_along_axis", _fn(0, "func1d"), operands=2),
    _call("jax.numpy.piecewise", _fn(2, "funclist", sequence=True), operands=3),
    # These take functions and run them in the present level.
    _call("jax.tree.map", _fn(0, "f"), operands=1, level=False),
    _call("jax.lax.associative_scan", _fn(0, "fn"), operands=1, level=False),
    _wrapper("jax.named_call", level=False),
    _wrapper("jax.custom_vjp", level=False, positional=("nondiff_argnums",)),
    _wrapper("jax.custom_jvp", level=False, positional=("nondiff_argnums",)),
    _call("jax.debug.callback", _fn(0, "callback"), operands=1, level=False, host=True),
    _call("jax.pure_callback", _fn(0, "callback"), operands=2, level=False, host=True),
    _call("jax.experimental.io_callback", _fn(0, "callback"), operands=2, level=False, host=True),
)

_LIFTED: dict[str, Any] = {"arguments": Arguments.KEPT, "lifts_captures": True}

_NNX = (
    _wrapper("nnx.jit", cached=True, static_options=_STATIC, rejects_bound_methods=True, **_LIFTED),
    _wrapper(
        "nnx.pmap",
        "f",
        cached=True,
        static_options=("static_broadcasted_argnums",),
        rejects_bound_methods=True,
        **_LIFTED,
    ),
    _wrapper("nnx.vmap", "f", rejects_bound_methods=True, **_LIFTED),
    _wrapper("nnx.grad", "f", rejects_bound_methods=True, **_LIFTED),
    _wrapper("nnx.value_and_grad", "f", rejects_bound_methods=True, **_LIFTED),
    _wrapper("nnx.scan", "f", rejects_bound_methods=True, **_LIFTED),
    _wrapper("nnx.remat", "f", static_options=("static_argnums",), rejects_bound_methods=True, **_LIFTED),
    _wrapper("nnx.shard_map", "f", rejects_bound_methods=True, **_LIFTED),
    _wrapper("nnx.checkify", "f", rejects_bound_methods=True, **_LIFTED),
    _wrapper("nnx.custom_vjp", "fun", level=False, rejects_bound_methods=True, **_LIFTED),
    _call("nnx.cond", _fn(1, "true_fun"), _fn(2, "false_fun"), operands=3, **_LIFTED),
    _call("nnx.switch", _fn(1, "branches", sequence=True), operands=2, **_LIFTED),
    _call("nnx.while_loop", _fn(0, "cond_fun"), _fn(1, "body_fun"), operands=2, **_LIFTED),
    _call("nnx.fori_loop", _fn(2, "body_fun"), operands=3, **_LIFTED),
    _call("nnx.eval_shape", _fn(0, "f"), operands=1, lifts_captures=True, rejects_bound_methods=True),
    _call("nnx.vjp", _fn(0, "f"), operands=1, rejects_bound_methods=True, flax_default=False, **_LIFTED),
    _call("nnx.jvp", _fn(0, "f"), operands=1, rejects_bound_methods=True, flax_default=False, **_LIFTED),
    _wrapper(
        "nnx.make_jaxpr",
        "f",
        static_options=("static_argnums",),
        lifts_captures=True,
        rejects_bound_methods=True,
        flax_default=False,
    ),
    _wrapper("nnx.jit_partial", cached=True, static_options=_STATIC, binds=True, flax_default=False, **_LIFTED),
    # These take functions and run them in the present level.
    _wrapper("nnx.split_rngs", "node", level=False),
    _wrapper("nnx.with_rngs", "node", level=False),
    _wrapper("nnx.fork_rngs", "node", level=False),
    _wrapper("nnx.transform_metadata", "f", level=False),
    _wrapper("nnx.cached_partial", "f", level=False, binds=True),
    _wrapper("nnx.capture", "fn", level=False),
)

TRANSFORMS: dict[str, Transform] = {transform.name: transform for transform in (*_JAX, *_NNX)}
"""Every known transform by canonical name."""

ALIASES: dict[str, str] = {
    "jax.remat": "jax.checkpoint",
    "jax.jacobian": "jax.jacrev",
    "jax.experimental.maps.shard_map": "jax.shard_map",
    "jax.ad_checkpoint.checkpoint": "jax.checkpoint",
    "jax.ad_checkpoint.remat": "jax.checkpoint",
    "jax.experimental.shard_map.shard_map": "jax.shard_map",
    "jax.tree_util.tree_map": "jax.tree.map",
    "jax.tree_map": "jax.tree.map",
    "jax.experimental.pjit.pjit": "jax.jit",
    "jax.api.jit": "jax.jit",
    "nnx.checkpoint": "nnx.remat",
    "nnx.compat.jit": "nnx.jit",
}
"""Other public names of the same transforms."""

TREE_MAPS = ("jax.tree.map", *(alias for alias, name in ALIASES.items() if name == "jax.tree.map"))
"""The map over the leaves of trees, by all of its names."""


_MODES = "graph graph_updates"
_JIT = (
    "in_shardings out_shardings static_argnums static_argnames donate_argnums donate_argnames keep_unused device "
    f"backend inline compiler_options abstracted_axes {_MODES}"
)
_GRADIENT = f"argnums has_aux holomorphic allow_int reduce_axes {_MODES}"

OPTIONS: dict[str, frozenset[str]] = {
    name: frozenset(options.split())
    for name, options in {
        "nnx.jit": f"fun {_JIT}",
        "nnx.pmap": "f axis_name in_axes out_axes static_broadcasted_argnums devices backend axis_size donate_argnums "
        f"global_arg_shapes transform_metadata {_MODES}",
        "nnx.vmap": f"f in_axes out_axes axis_name axis_size spmd_axis_name transform_metadata {_MODES}",
        "nnx.scan": "f length reverse unroll _split_transpose in_axes out_axes transform_metadata " + _MODES,
        "nnx.grad": f"f {_GRADIENT}",
        "nnx.value_and_grad": f"f {_GRADIENT}",
        "nnx.remat": f"f prevent_cse static_argnums policy {_MODES}",
    }.items()
}
"""The parameters of transforms that take nothing else by keyword."""

FORMER_OPTIONS: dict[str, str] = {
    **dict.fromkeys(
        ("state_axes", "variable_axes", "variables", "variable_carry", "variable_broadcast"),
        "say it by argument: `in_axes=nnx.StateAxes({nnx.Param: 0, ...: None})`",
    ),
    "split_rngs": "decorate with `nnx.split_rngs(splits=n)`, and map over the streams",
    "methods": "apply it to a function that takes the module",
    "mutable": "leave it out: what the function changes comes back",
    "in_dims": "it is called `in_axes`",
    "out_dims": "it is called `out_axes`",
    "concrete": "name them: `static_argnums=...`",
}
"""Options of these transforms in Linen, in NNX before 0.10 and elsewhere, with what there is instead."""


DIFFERENTIATING = frozenset({"jax.grad", "jax.value_and_grad", "nnx.grad", "nnx.value_and_grad"})
"""Transforms that give the gradient of a function that returns one number."""

HANDING_ON = DIFFERENTIATING | {
    *("jax.checkpoint", "jax.hessian", "jax.jacfwd", "jax.jacrev", "jax.jit", "jax.pmap", "jax.vmap"),
    *("nnx.jit", "nnx.pmap", "nnx.remat", "nnx.vmap"),
}
"""Transforms whose function gets what the transformed one is called with, by position and by name as that does."""


def find(name: str) -> Transform | None:
    """The transform with this canonical name, or ``None``.

    ``nnx.compat.X`` is ``nnx.X`` with the modes fixed, so it has the same row.
    """
    name = ALIASES.get(name, name)
    if name.startswith("nnx.compat."):
        name = "nnx." + name.removeprefix("nnx.compat.")
    return TRANSFORMS.get(name)
