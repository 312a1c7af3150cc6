"""What to write in place of names and arguments that jax has dropped.

When they went is measured from jax's releases, and stands in a table that the analyzer has. This is what releases do
not say. Invariants: what ``SUCCESSORS`` has is used in the same way, so that the one name can be written for the other;
all else is a sentence of ``INSTEAD``. Arguments stand as ``jax.numpy.clip(a_min)``.
"""

from __future__ import annotations


def _below(package: str, successor: str, names: str) -> dict[str, str]:
    return {f"{package}.{name}": f"{successor}.{name}" for name in names.split()}


SUCCESSORS: dict[str, str] = {
    **{
        f"jax.tree_{name}": f"jax.tree.{name}"
        for name in ("flatten", "leaves", "map", "structure", "transpose", "unflatten")
    },
    **_below("jax", "jax.tree_util", "treedef_is_leaf"),
    **_below("jax.core", "jax.extend.core", "ClosedJaxpr Jaxpr JaxprEqn Literal Primitive Token Var jaxpr_as_fun"),
    **_below(
        "jax.core", "jax.errors", "ConcretizationTypeError TracerArrayConversionError TracerIntegerConversionError"
    ),
    **_below("jax.core", "jax.errors", "UnexpectedTracerError"),
    **_below("jax.experimental", "jax.sharding", "PartitionSpec"),
    **_below("jax.experimental.pjit", "jax.sharding", "NamedSharding PartitionSpec"),
    **_below("jax.experimental.pjit", "jax.lax", "with_sharding_constraint"),
    **_below("jax.ad_checkpoint", "jax", "checkpoint remat"),
    **_below("jax.scipy.linalg", "jax.numpy", "tril triu"),
    **dict.fromkeys(("jax.random.KeyArray", "jax.random.PRNGKeyArray", "jax.numpy.DeviceArray"), "jax.Array"),
    **dict.fromkeys(("jax.array_ref", "jax.experimental.mutable_array"), "jax.new_ref"),
    **dict.fromkeys(("jax.ArrayRef", "jax.experimental.MutableArray"), "jax.Ref"),
    "jax.core.get_aval": "jax.typeof",
    "jax.linear_util": "jax.extend.linear_util",
    "jax.experimental.enable_x64": "jax.enable_x64",
    "jax.experimental.export": "jax.export",
    "jax.nn.normalize": "jax.nn.standardize",
    "jax.numpy.alltrue": "jax.numpy.all",
    "jax.numpy.cumproduct": "jax.numpy.cumprod",
    "jax.numpy.fix": "jax.numpy.trunc",
    "jax.numpy.issubsctype": "jax.numpy.issubdtype",
    "jax.numpy.product": "jax.numpy.prod",
    "jax.numpy.round_": "jax.numpy.round",
    "jax.numpy.row_stack": "jax.numpy.vstack",
    "jax.numpy.sometrue": "jax.numpy.any",
    "jax.numpy.trapz": "jax.numpy.trapezoid",
    "jax.sharding.AxisTypes": "jax.sharding.AxisType",
    "jax.sharding.XLACompatibleSharding": "jax.sharding.Sharding",
    "jax.sharding.use_mesh": "jax.set_mesh",
    "jax.tree_util.register_keypaths": "jax.tree_util.register_pytree_with_keys",
}
"""Names that take the places of others."""

_PUT = "`jax.device_put(x, sharding)` with a `jax.sharding.NamedSharding` puts arrays on devices"
_CALLBACKS = "`jax.pure_callback` and `jax.experimental.io_callback` call the host"
_BACKENDS = "`jax.devices()` and `jax.extend.backend` say what there is to run on"
_INFINITY = "write `-jnp.inf`"

INSTEAD: dict[str, str] = {
    **dict.fromkeys(("jax.device_put_replicated", "jax.device_put_sharded"), _PUT),
    **dict.fromkeys(
        ("jax.sharding.GSPMDSharding", "jax.sharding.PmapSharding", "jax.sharding.PositionalSharding"), _PUT
    ),
    **dict.fromkeys(("jax.lib.xla_bridge", "jax.lib.xla_client", "jax.lib.xla_extension"), _BACKENDS),
    "jax.clear_backends": "call `jax.extend.backend.clear_backends()`",
    "jax.config.": "write `from jax import config`, or `jax.config.update(...)`",
    "jax.dlpack.to_dlpack": "hand the array itself to the other library's `from_dlpack`",
    "jax.experimental.disable_x64": "write `with jax.enable_x64(False):`",
    "jax.experimental.host_callback": _CALLBACKS,
    "jax.experimental.maps": "`jax.shard_map` and `jax.vmap` do what it did",
    "jax.lax.pvary": 'write `jax.lax.pcast(x, axis_name, to="varying")`',
    "jax.lax.tie_in": "leave it out: it has no effect",
    "jax.numpy.NINF": _INFINITY,
    "jax.numpy.in1d": "write `jnp.isin(x, values).ravel()`",
    "jax.numpy.msort": "write `jnp.sort(x, axis=0)`",
    "jax.random.shuffle": "write `jax.random.permutation(key, x)`",
    "jax.scipy.special.sph_harm": "`jax.scipy.special.sph_harm_y(n, m, polar, azimuth)` does it",
    "jax.xla_computation": "write `jax.jit(f).lower(...)`",
    "jax.numpy.clip(a)": "give the array by position",
    "jax.scipy.linalg.solve(sym_pos)": 'write `assume_a="pos"`',
    **{f"jax.make_mesh({name})": "give `axis_types=`" for name in ("auto_axes", "explicit_axes", "manual_axes")},
    **{f"jax.numpy.where({name})": "give it by position" for name in ("condition", "x", "y")},
}
"""What to do where no name takes the place of another in the same use."""

RENAMED: dict[str, str] = {
    "jax.numpy.clip(a_min)": "min",
    "jax.numpy.clip(a_max)": "max",
    "jax.numpy.reshape(newshape)": "shape",
    "jax.lax.with_sharding_constraint(axis_resources)": "shardings",
    **{
        f"jax.numpy.{name}(interpolation)": "method"
        for name in ("nanpercentile", "nanquantile", "percentile", "quantile")
    },
    **{f"jax.lax.{name}(sharding)": "out_sharding" for name in ("broadcast", "broadcast_in_dim", "broadcasted_iota")},
}
"""Arguments that have another name now."""


def instead_of(name: str, version: str) -> str:
    """What to do about a name or an argument that is gone since a version."""
    if name in RENAMED:
        return f"write `{RENAMED[name]}=`"
    return INSTEAD.get(name) or (
        f"write `{SUCCESSORS[name]}`" if name in SUCCESSORS else f"do without it, or require `jax<{version}`"
    )
