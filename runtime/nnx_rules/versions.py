"""When names of NNX came, when they went or were deprecated, and what takes their place.

Versions are those of flax; a name that no table has was there when NNX moved to ``flax.nnx``, or is not known at all.
nnxkit has what flax 0.12 has, and keeps some names that flax has dropped.

Invariants: ``Removed.since`` is the first release without the name, ``ADDED`` the first with it. A name that came back
(``nnx.List`` was gone from 0.10 to 0.11) has the release in which it came back for good, and ``EARLIER`` says when it
had been there before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_rules.records import Record

if TYPE_CHECKING:
    from nnx_rules.registry import Version


class Removed(Record):
    """A name that is gone: the first release without it, what to do instead, and whether nnxkit keeps it.

    ``successor`` is the name that takes its place in the same use, if there is one.
    """

    since: Version
    instead: str
    nnxkit: bool = False
    successor: str = ""


class Deprecated(Record):
    """A name that warns: the first release that does, and the name that takes its place."""

    since: Version
    successor: str


_REFS = "Variables take `ref=True`: `nnx.with_vars(model, ref=True)`"
_MODES = "`model.train()`, `model.eval()` and `nnx.view(model, ...)` set modes"
_HIJAX = "`nnx.with_vars(model, hijax=...)` makes Variables of that kind"
_CONSTRAINT = "jax.lax.with_sharding_constraint"
_BASES = "`nnx.Object` and `nnx.Module` are the base classes"
_REGISTER = "nnx.register_variable_name"
_TRANSFORMS = "transform a function: `nnx.vmap(lambda model, x: model(x))`"


def _removed(
    since: Version, instead: str, *names: str, nnxkit: bool = False, successor: str = ""
) -> dict[str, Removed]:
    return {f"nnx.{name}": Removed(since, instead, nnxkit, successor) for name in names}


REMOVED: dict[str, Removed] = {
    **_removed((0, 12, 1), _REFS, "to_refs", "to_arrays", "array_ref", "ArrayRef", "is_array_ref", nnxkit=True),
    **_removed((0, 12, 1), _REFS, "use_refs", "using_refs"),
    **_removed((0, 11, 1), _REFS, "mutable", "freeze", "MutableArray", "mutable_array"),
    **_removed((0, 11, 1), _REFS, "use_mutable_arrays", "using_mutable_arrays"),
    **_removed((0, 12, 4), _MODES, "set_mode", "set_mode_info", "train_mode", "eval_mode"),
    **_removed((0, 12, 3), _HIJAX, "use_hijax", "using_hijax", "as_hijax_vars", "as_ref_vars", "as_mutable_vars"),
    **_removed((0, 12, 3), _HIJAX, "as_immutable_vars", "as_array_vars"),
    **_removed((0, 12), "`nnx.is_data(value)` asks it of a value", "is_data_type", successor="nnx.is_data"),
    **_removed((0, 11, 2), f"use `{_CONSTRAINT}`", "with_sharding_constraint", successor=_CONSTRAINT),
    **_removed((0, 11), "`nnx.split_rngs` and `Rngs.fork` make streams for a map", "fork", "ForkStates"),
    **_removed((0, 10, 6), _TRANSFORMS, "Jit", "Vmap", "Pmap", "Scan", "Remat"),
    **_removed((0, 8, 4), _BASES, "GraphNode", successor="nnx.Object"),
    **_removed((0, 10), _BASES, "TreeNode"),
    **_removed((0, 10), "a `State` that is empty is `nnx.State({})`", "EMPTY", "Empty"),
    **_removed(
        (0, 10, 4), f"`{_REGISTER}(name, type)` does it", "register_variable_name_type_pair", successor=_REGISTER
    ),
}
"""Names of the top level that are gone."""

SETTLED: Version = (0, 8, 4)
"""When NNX moved from ``flax.experimental.nnx`` to ``flax.nnx``. The earlier name still works, and warns."""

FLATTENED: Version = (0, 10)
"""When the modules below ``flax.nnx.nnx`` moved to ``flax.nnx``."""

DEPRECATED: dict[str, Deprecated] = {
    "nnx.pure": Deprecated((0, 12, 7), "as_pure"),
    "nnx.vars_as": Deprecated((0, 12, 8), "with_vars"),
    "nnx.abstract_with_sharding": Deprecated((0, 12, 7), "as_abstract"),
    "nnx.VariableState": Deprecated((0, 11), "Variable"),
}
"""Names of the top level that warn, with their successors."""


def _added(version: Version, names: str) -> dict[str, Version]:
    return {f"nnx.{name}": version for name in names.split()}


ADDED: dict[str, Version] = {
    **_added((0, 9), "StateAxes DiffState Carry StateSharding split_rngs reseed restore_rngs call custom_vjp"),
    **_added((0, 9), "Any Everything Nothing OfType WithTag GroupNorm PureState bridge to_tree from_tree"),
    **_added((0, 9), "SplitContext MergeContext split_context merge_context"),
    **_added((0, 10), "RNN RNNCellBase LSTMCell OptimizedLSTMCell GRUCell SimpleCell Bidirectional"),
    **_added((0, 10), "NodeStates variables"),
    **_added((0, 10, 1), "switch while_loop"),
    **_added((0, 10, 2), "checkify fori_loop"),
    **_added((0, 10, 3), "Perturbation tabulate variable_name_from_type variable_type_from_name"),
    **_added((0, 10, 4), "cached_partial shard_map to_flat_state from_flat_state map_state filter_state"),
    **_added((0, 10, 4), "split_state merge_state to_pure_dict replace_by_pure_dict register_variable_name"),
    **_added((0, 10, 7), "OptState pure"),
    **_added((0, 11), "data Data register_data_type ModelAndOptimizer fork_rngs OptArray OptVariable"),
    **_added((0, 11, 1), "Pytree"),
    **_added((0, 11, 2), "find_duplicates get_abstract_model identity logical_axis_rules"),
    **_added((0, 12), "List Dict static Static is_data check_pytree flatten unflatten InstanceNorm PReLU"),
    **_added((0, 12, 1), "dataclass recursive_map iter_modules iter_children set_metadata use_eager_sharding"),
    **_added((0, 12, 1), "using_eager_sharding restore_int_paths FlatState SpectralNorm WeightNorm"),
    **_added((0, 12, 3), "var_defaults vars_as"),
    **_added((0, 12, 4), "view view_info"),
    **_added((0, 12, 5), "has_data jit_partial vjp jvp"),
    **_added((0, 12, 6), "capture map set_graph_mode set_graph_updates compat with_attributes transform_metadata"),
    **_added((0, 12, 6), "abstract_with_sharding"),
    **_added((0, 12, 7), "prefix unpack with_rngs as_pure as_abstract make_jaxpr iter_module_children"),
    **_added((0, 12, 8), "EMA with_vars"),
    **_added((0, 12, 12), "RoPE dot_product_attention_with_rope"),
}
"""The release in which a name of the top level came."""

EARLIER: dict[str, tuple[Version, Version]] = {
    "nnx.Dict": ((0, 8), (0, 11)),
    "nnx.List": ((0, 8), (0, 10)),
    "nnx.Static": ((0, 10, 7), (0, 11)),
    "nnx.compat": ((0, 8), (0, 9)),
    "nnx.dataclass": ((0, 10, 7), (0, 11)),
    "nnx.static": ((0, 10, 7), (0, 11)),
}
"""Names of ``ADDED`` that had been there before: the first release with them, and the first that had dropped them."""

VARIABLES_ARE_NODES: Version = (0, 11)
"""The release since which JAX looks into Variables."""

ADDED_METHODS: dict[str, Version] = {
    "get_value": (0, 12, 1),
    "set_value": (0, 12, 1),
}
"""The release in which a method of Variables came."""

STATE_METHODS: dict[str, str] = {
    "flat_state": "to_flat_state",
    "from_flat_path": "from_flat_state",
    "to_pure_dict": "to_pure_dict",
    "replace_by_pure_dict": "replace_by_pure_dict",
    "split": "split_state",
    "filter": "filter_state",
    "merge": "merge_state",
    "map": "map_state",
}
"""Deprecated methods of a State, and the functions that take their places with the State as an argument."""

CLASS_METHODS: frozenset[str] = frozenset({"from_flat_path", "merge"})
"""Those of them that belong to the class: the State that they are called of is no argument."""

MODULE_METHODS: dict[str, str] = {"iter_modules": "iter_modules", "iter_children": "iter_module_children"}
"""Deprecated methods of a Module, and the functions that take their places."""

VARIABLE_HOOKS: frozenset[str] = frozenset(
    {"on_get_value", "on_set_value", "on_create_value", "on_add_axis", "on_remove_axis"}
)
"""Metadata of Variables that was called when something happens to them."""

SHARDING_METADATA: frozenset[str] = frozenset({"sharding", "sharding_names"})
"""Earlier names of the metadata ``out_sharding``."""

CELL_ARGUMENTS: frozenset[str] = frozenset({"keep_rngs", "carry_init"})
"""Arguments of the constructors of recurrent cells that belong to the call by now."""


NOT_IN_NNXKIT: frozenset[str] = frozenset(
    {
        "bridge.interop",
        "bridge.module",
        "bridge.wrappers",
        "deprecations",
        "proxy_caller",
        "reprlib",
        "visualization",
    }
)
"""The modules of ``flax.nnx`` that nnxkit has not: what is public of them has a name in the package above."""


def spelled(version: Version) -> str:
    """A version as it is written: ``0.12.1``."""
    return ".".join(map(str, (*version, 0)[:3])) if len(version) < 3 else ".".join(map(str, version))
