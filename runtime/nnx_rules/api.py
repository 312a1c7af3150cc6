"""What the names of NNX are: Variable types and their lattice, modules, functions and the layers' contents and effects.

One catalogue for the runtime's re-exports, the analyzer's knowledge of library objects, completion and docs.
Canonical names start with ``nnx.`` whatever library provides them (``flax.nnx`` or ``nnxkit``).
"""

from __future__ import annotations

import enum

from nnx_rules.records import Record


class Effect(enum.Enum):
    """How calling a library object, or a method of it, changes the object."""

    PURE = "pure"
    WRITES_STATE = "writes state"
    """Writes Variables: statistics, caches, counters, optimizer state, metric state."""
    DRAWS = "draws"
    """Advances the counter of a random stream."""
    SETS_ATTRIBUTES = "sets attributes"
    """Writes plain attributes (``train()``, ``eval()``, ``set_attributes()``)."""


PROVIDERS: tuple[str, ...] = ("flax.nnx", "nnxkit", "flax.experimental.nnx")
"""Import paths that provide the canonical ``nnx`` namespace."""

SUBMODULES: frozenset[str] = frozenset(
    [
        "bridge",
        "compat",
        "deprecations",
        "extract",
        "filterlib",
        "graph",
        "graphlib",
        "helpers",
        "initializers",
        "metrics",
        "module",
        "nn",
        "object",
        "optimizer",
        "proxy_caller",
        "pytreelib",
        "reprlib",
        "rnglib",
        "spmd",
        "statelib",
        "summary",
        "tracers",
        "training",
        "transforms",
        "traversals",
        "variablelib",
        "visualization",
        "wrappers",
    ]
)
"""Modules below a provider that re-export names of the namespace (``flax.nnx.variablelib.Param`` is ``nnx.Param``)."""

PACKAGES: frozenset[str] = frozenset({"nn", "transforms", "training"})
"""The submodules that have modules of their own (``flax.nnx.nn.linear.Linear`` is ``nnx.Linear``)."""

MODULES: frozenset[str] = frozenset(
    ["activations", "attention", "linear", "lora", "normalization", "recurrent", "stochastic"]
)
"""Those modules of their own that programs import whole (``from flax.nnx.nn import linear``)."""

FORMER: frozenset[str] = frozenset({"deprecated"})
"""Modules of those packages that keep what a name was before (``flax.nnx.transforms.deprecated.vmap``)."""

NAMESPACES: frozenset[str] = frozenset({"bridge", "compat", "initializers", "metrics", "spmd"})
"""The submodules whose names are their own (``nnx.metrics.Average``), not those of the top level."""

VARIABLES: dict[str, str | None] = {
    "nnx.Variable": None,
    "nnx.Param": "nnx.Variable",
    "nnx.LoRAParam": "nnx.Param",
    "nnx.BatchStat": "nnx.Variable",
    "nnx.Cache": "nnx.Variable",
    "nnx.Intermediate": "nnx.Variable",
    "nnx.Perturbation": "nnx.Intermediate",
    "nnx.RngState": "nnx.Variable",
    "nnx.RngKey": "nnx.RngState",
    "nnx.RngCount": "nnx.RngState",
    "nnx.OptState": "nnx.Variable",
    "nnx.OptArray": "nnx.OptState",
    "nnx.OptVariable": "nnx.OptState",
    "nnx.metrics.MetricState": "nnx.Variable",
}
"""Every Variable type of the library with its base."""


class Member(Record):
    """A Variable or submodule that an instance of a library class holds.

    Attributes:
        path: where, below the instance.
        holds: canonical name of the Variable type or of the submodule's class.
        unless: a constructor keyword and the literal value with which the member is absent (``use_bias=False``).
        given: a constructor keyword that must be given, and not as ``None``, ``False`` or zero.
        options: literal constructor options of a submodule.
    """

    path: tuple[str, ...]
    holds: str
    unless: tuple[str, object] | None = None
    given: str | None = None
    options: tuple[tuple[str, object], ...] = ()


class LibraryClass(Record):
    """A class of the library.

    Attributes:
        name: canonical name.
        base: canonical name of the base class.
        members: the Variables and submodules of an instance that literal options decide on; ``None`` if none is known.
        more: whether an instance may hold others.
        call: what calling an instance does to it.
        pure_when: constructor or call keywords with the value that makes the call pure (``use_running_average=True``).
        stateful_when: constructor or call keywords with the value that makes the call change state in any case.
        stateful_with: constructor keywords that must be given, and not with one of these values, for the call to change
            state (``dropout_rate=0.1``).
        pure_with: call keywords that make the call pure if they are given at all (``initial_carry=carry``).
        methods: effect of methods by name, besides ``__call__``.
        drawing: methods that draw from the ``rngs`` they are given, with the position of that argument.
        init: names of the positional constructor parameters.
        rewrites: whether each call writes the kernel anew from what the layer has, the same each time: nothing is lost
            where that is not kept, and a captured layer refuses it all the same.
    """

    name: str
    base: str = "nnx.Module"
    members: tuple[Member, ...] | None = None
    more: bool = False
    call: Effect = Effect.PURE
    pure_when: tuple[tuple[str, object], ...] = ()
    stateful_when: tuple[tuple[str, object], ...] = ()
    stateful_with: tuple[tuple[str, tuple[object, ...]], ...] = ()
    pure_with: tuple[str, ...] = ()
    methods: tuple[tuple[str, Effect], ...] = ()
    drawing: tuple[tuple[str, int], ...] = ()
    init: tuple[str, ...] = ()
    rewrites: bool = False


_MODULE_METHODS = (
    ("train", Effect.SETS_ATTRIBUTES),
    ("eval", Effect.SETS_ATTRIBUTES),
    ("set_attributes", Effect.SETS_ATTRIBUTES),
    ("sow", Effect.WRITES_STATE),
    ("perturb", Effect.WRITES_STATE),
)


def _param(*path: str, unless: tuple[str, object] | None = None) -> Member:
    return Member(path, "nnx.Param", unless=unless)


_KERNEL_BIAS = (_param("kernel"), _param("bias", unless=("use_bias", False)))
_SCALE_BIAS = (_param("scale", unless=("use_scale", False)), _param("bias", unless=("use_bias", False)))
_STREAM = (Member(("key",), "nnx.RngKey"), Member(("count",), "nnx.RngCount"))
_NO_BIAS = (("use_bias", False),)
_HELD_STREAM = Member(("rngs",), "nnx.RngStream", given="rngs")


def _layer(name: str, holds: str = "nnx.Linear", *, bias: bool = True, given: str | None = None) -> Member:
    return Member((name,), holds, given=given, options=() if bias else _NO_BIAS)


_PROJECTIONS = ("query", "key", "value", "out")
_ATTENTION = (
    *(_layer(name, "nnx.LinearGeneral", bias=False) for name in _PROJECTIONS),
    *(_param(name, "bias", unless=("use_bias", False)) for name in _PROJECTIONS),
    _layer("query_ln", "nnx.LayerNorm", bias=False, given="normalize_qk"),
    _layer("key_ln", "nnx.LayerNorm", bias=False, given="normalize_qk"),
    Member(("rngs",), "nnx.RngStream", unless=("keep_rngs", False), given="dropout_rate"),
)
_LSTM = (
    *(_layer(name, bias=False) for name in ("ii", "if_", "ig", "io")),
    *(_layer(name) for name in ("hi", "hf", "hg", "ho")),
)
_GATES = (_layer("dense_i"), _layer("dense_h", bias=False))
_LORA = (Member(("lora_a",), "nnx.LoRAParam"), Member(("lora_b",), "nnx.LoRAParam"))
_STEP = (Member(("step",), "nnx.OptState"),)


def _metric(*names: str) -> tuple[Member, ...]:
    return tuple(Member((name,), "nnx.metrics.MetricState") for name in names)


_CLASSES = (
    LibraryClass("nnx.Pytree", base="", members=()),
    LibraryClass("nnx.Object", base="nnx.Pytree", members=()),
    LibraryClass("nnx.Module", base="nnx.Pytree", members=(), methods=_MODULE_METHODS),
    LibraryClass("nnx.List", base="nnx.Pytree", init=("it",)),
    LibraryClass("nnx.Dict", base="nnx.Pytree"),
    LibraryClass("nnx.Sequential"),
    LibraryClass("nnx.Linear", members=_KERNEL_BIAS, init=("in_features", "out_features")),
    LibraryClass("nnx.LinearGeneral", members=_KERNEL_BIAS, init=("in_features", "out_features")),
    LibraryClass(
        "nnx.Einsum",
        members=(_param("kernel"), Member(("bias",), "nnx.Param", given="bias_shape")),
        init=("einsum_str", "kernel_shape", "bias_shape"),
    ),
    LibraryClass("nnx.Conv", members=_KERNEL_BIAS, init=("in_features", "out_features", "kernel_size", "strides")),
    LibraryClass(
        "nnx.ConvTranspose", members=_KERNEL_BIAS, init=("in_features", "out_features", "kernel_size", "strides")
    ),
    LibraryClass("nnx.Embed", members=(_param("embedding"),), init=("num_embeddings", "features")),
    LibraryClass(
        "nnx.BatchNorm",
        members=(*_SCALE_BIAS, Member(("mean",), "nnx.BatchStat"), Member(("var",), "nnx.BatchStat")),
        call=Effect.WRITES_STATE,
        pure_when=(("use_running_average", True),),
        init=("num_features",),
    ),
    LibraryClass("nnx.LayerNorm", members=_SCALE_BIAS, init=("num_features",)),
    LibraryClass("nnx.RMSNorm", members=(_param("scale", unless=("use_scale", False)),), init=("num_features",)),
    LibraryClass("nnx.GroupNorm", members=_SCALE_BIAS, init=("num_features", "num_groups", "group_size")),
    LibraryClass("nnx.InstanceNorm", members=_SCALE_BIAS, init=("num_features",)),
    LibraryClass(
        "nnx.SpectralNorm",
        call=Effect.WRITES_STATE,
        pure_when=(("update_stats", False),),
        init=("layer_instance",),
        rewrites=True,
    ),
    LibraryClass("nnx.WeightNorm", init=("layer_instance",), rewrites=True),
    LibraryClass(
        "nnx.Dropout",
        members=(_HELD_STREAM,),
        call=Effect.DRAWS,
        pure_when=(("deterministic", True), ("rate", 0), ("rate", 0.0), ("rate", 1), ("rate", 1.0)),
        init=("rate",),
    ),
    LibraryClass(
        "nnx.MultiHeadAttention",
        members=_ATTENTION,
        call=Effect.DRAWS,
        pure_when=(("deterministic", True),),
        stateful_when=(("decode", True),),
        stateful_with=(("dropout_rate", (0, 0.0)),),
        methods=(("init_cache", Effect.WRITES_STATE),),
        init=("num_heads", "in_features", "qkv_features", "out_features"),
    ),
    LibraryClass("nnx.RNNCellBase", drawing=(("initialize_carry", 1),)),
    LibraryClass("nnx.LSTMCell", base="nnx.RNNCellBase", members=_LSTM, init=("in_features", "hidden_features")),
    LibraryClass(
        "nnx.OptimizedLSTMCell",
        base="nnx.RNNCellBase",
        members=(_layer("dense_i", bias=False), _layer("dense_h")),
        init=("in_features", "hidden_features"),
    ),
    LibraryClass("nnx.GRUCell", base="nnx.RNNCellBase", members=_GATES, init=("in_features", "hidden_features")),
    LibraryClass("nnx.SimpleCell", base="nnx.RNNCellBase", members=_GATES, init=("in_features", "hidden_features")),
    LibraryClass(
        "nnx.RNN",
        members=(_HELD_STREAM,),
        more=True,
        call=Effect.DRAWS,
        pure_with=("initial_carry",),
        init=("cell",),
    ),
    LibraryClass(
        "nnx.Bidirectional",
        members=(_HELD_STREAM,),
        more=True,
        call=Effect.DRAWS,
        pure_with=("initial_carry",),
        init=("forward_rnn", "backward_rnn"),
    ),
    LibraryClass("nnx.LoRA", members=_LORA, more=True, init=("in_features", "lora_rank", "out_features")),
    LibraryClass(
        "nnx.LoRALinear",
        base="nnx.Linear",
        members=(*_KERNEL_BIAS, _layer("lora", "nnx.LoRA")),
        more=True,
        init=("in_features", "out_features"),
    ),
    LibraryClass("nnx.PReLU", members=(_param("negative_slope"),)),
    LibraryClass(
        "nnx.Rngs",
        base="nnx.Pytree",
        call=Effect.DRAWS,
        methods=(("fork", Effect.DRAWS), ("split", Effect.DRAWS), ("broadcast", Effect.DRAWS)),
        init=("default",),
    ),
    LibraryClass(
        "nnx.RngStream",
        base="nnx.Pytree",
        members=_STREAM,
        call=Effect.DRAWS,
        methods=(("fork", Effect.DRAWS), ("split", Effect.DRAWS), ("broadcast", Effect.DRAWS)),
    ),
    LibraryClass(
        "nnx.Optimizer",
        base="nnx.Pytree",
        members=_STEP,
        more=True,
        methods=(("update", Effect.WRITES_STATE),),
        init=("model", "tx"),
    ),
    LibraryClass(
        "nnx.ModelAndOptimizer",
        base="nnx.Optimizer",
        members=_STEP,
        more=True,
        methods=(("update", Effect.WRITES_STATE),),
        init=("model", "tx"),
    ),
    LibraryClass(
        "nnx.EMA",
        base="nnx.Pytree",
        methods=(("update", Effect.WRITES_STATE),),
        init=("params", "decay"),
    ),
    LibraryClass("nnx.TrainState", base="nnx.Pytree"),
    LibraryClass(
        "nnx.metrics.Metric",
        base="nnx.Pytree",
        methods=(("update", Effect.WRITES_STATE), ("reset", Effect.WRITES_STATE)),
    ),
    LibraryClass(
        "nnx.metrics.Average", base="nnx.metrics.Metric", members=_metric("total", "count"), init=("argname",)
    ),
    LibraryClass(
        "nnx.metrics.Accuracy", base="nnx.metrics.Average", members=_metric("total", "count"), init=("threshold",)
    ),
    LibraryClass(
        "nnx.metrics.Welford", base="nnx.metrics.Metric", members=_metric("count", "mean", "m2"), init=("argname",)
    ),
    LibraryClass("nnx.metrics.MultiMetric", base="nnx.metrics.Metric"),
    LibraryClass("nnx.bridge.ToNNX"),
    LibraryClass("nnx.SplitContext", base=""),
)

CLASSES: dict[str, LibraryClass] = {item.name: item for item in _CLASSES}
"""Every class below ``nnx.Pytree`` that the library provides, by canonical name."""

TOP_LEVEL_ALIASES: dict[str, str] = {
    "nnx.Metric": "nnx.metrics.Metric",
    "nnx.Average": "nnx.metrics.Average",
    "nnx.Accuracy": "nnx.metrics.Accuracy",
    "nnx.Welford": "nnx.metrics.Welford",
    "nnx.MultiMetric": "nnx.metrics.MultiMetric",
    "nnx.MetricState": "nnx.metrics.MetricState",
    "nnx.VariableState": "nnx.Variable",
}
"""Names of the top level that are defined in a namespace, or kept for old code."""

OPTIMIZERS = ("nnx.Optimizer", "nnx.ModelAndOptimizer")
"""The classes that update a model by gradients."""

FILTER_CLASSES: frozenset[str] = frozenset(
    {
        "nnx.OfType",
        "nnx.WithTag",
        "nnx.PathContains",
        "nnx.PathIn",
        "nnx.Any",
        "nnx.All",
        "nnx.Not",
        "nnx.Everything",
        "nnx.Nothing",
    }
)


class FilterFunction(Record):
    """A function that partitions leaves by filters.

    Attributes:
        name: canonical name.
        first: position of the first filter argument.
        leading: number of results before the States (``split`` returns the graphdef first).
        exhaustive: whether a leaf that no filter takes is an error.
        ordered: whether a leading ``...`` is refused at run time.
    """

    name: str
    first: int = 1
    leading: int = 0
    exhaustive: bool = False
    ordered: bool = True


FILTER_FUNCTIONS: dict[str, FilterFunction] = {
    item.name: item
    for item in (
        FilterFunction("nnx.split", leading=1, exhaustive=True),
        FilterFunction("nnx.state"),
        FilterFunction("nnx.variables"),
        FilterFunction("nnx.pop", ordered=False),
        FilterFunction("nnx.unpack", exhaustive=True),
        FilterFunction("nnx.split_state", exhaustive=True),
        FilterFunction("nnx.filter_state"),
    )
}
"""Functions whose trailing arguments are filters, by canonical name."""

FILTER_MAPPINGS: frozenset[str] = frozenset({"nnx.StateAxes", "nnx.StateSharding"})
"""Classes whose argument maps filters to values."""

ATTRIBUTE_FUNCTIONS: frozenset[str] = frozenset(
    {"nnx.data", "nnx.static", "nnx.Data", "nnx.Static", "nnx.dataclass", "nnx.is_data", "nnx.register_data_type"}
)
"""What says whether attributes are data or static."""

INPLACE_FUNCTIONS: frozenset[str] = frozenset(
    {"nnx.update", "nnx.reseed", "nnx.set_metadata", "nnx.split_rngs", "nnx.fork_rngs", "nnx.restore_rngs"}
)
"""Functions that change their first argument, with a trace check."""

VARIABLE_WRITES: frozenset[str] = frozenset(
    {
        "set_value",
        "set_raw_value",
        "set_metadata",
        "del_metadata",
        "copy_from",
        "update_from_state",
        "add_axis",
        "remove_axis",
    }
)
"""Methods of a Variable that change it, with a trace check."""
