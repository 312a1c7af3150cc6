"""NNX9: what another version of NNX, or of JAX, has under another name, or no longer.

What fails is reported wherever it fails. What is deprecated still works: these rules are for those who move to a
version (``--target``), and are on where somebody names one.
"""

from nnx_rules.registry import Fixable, Rule, Severity, Versions

_FLAX = Versions(nnxkit=False)

REMOVED_NAME = Rule(
    code="NNX901",
    name="removed-name",
    summary="A name of NNX is used that the version in use no longer has.",
    message="`{name}` is gone since flax {version}",
    help="{instead}",
    fix=Fixable.SAFE,
)
NAME_NEWER_THAN_TARGET = Rule(
    code="NNX902",
    name="name-newer-than-target",
    summary="A name of NNX is used that the version in use does not have yet.",
    message="`{name}` came with flax {version}, and the target is {target}",
    help="require `flax>={version}`, or do without it",
    versions=_FLAX,
)
DEPRECATED_VALUE_PROPERTY = Rule(
    code="NNX903",
    name="deprecated-value-property",
    summary="The value of a Variable is read or written as `.value`.",
    message="`{name}.{attribute}` is deprecated: a Variable is read and written as an array, or by its methods",
    help="write `{mend}`",
    severity=Severity.WARNING,
    fix=Fixable.SAFE,
    default=False,
    migration=True,
    versions=Versions(flax_since=(0, 12, 1)),
)
DEPRECATED_STATUS_ANNOTATION = Rule(
    code="NNX904",
    name="deprecated-status-annotation",
    summary="An attribute is declared by the annotation `nnx.Data[...]` or `nnx.Static[...]`.",
    message="the annotation `{annotation}[...]` of `{path}` is deprecated",
    help="write `{mend}`",
    severity=Severity.WARNING,
    fix=Fixable.SAFE,
    default=False,
    migration=True,
    versions=Versions(flax_since=(0, 12, 1), nnxkit=False),
)
DEPRECATED_STATE_METHOD = Rule(
    code="NNX905",
    name="deprecated-state-method",
    summary="A method of a State is called that is a function now.",
    message="`State.{method}` is deprecated: `nnx.{function}` does it for a State and for a plain dict",
    help="write `nnx.{function}(...)`",
    severity=Severity.WARNING,
    fix=Fixable.SAFE,
    default=False,
    migration=True,
    versions=Versions(flax_since=(0, 10, 4)),
)
VARIABLE_STATE_TYPE = Rule(
    code="NNX906",
    name="variable-state-type",
    summary="`VariableState(type=T, ...)` is made, and is no `T`.",
    message="`{written}(type={type}, ...)` makes a plain Variable with metadata `type`, which is no {type}: filters by "
    "type do not find it",
    help="make the Variable itself: `{type}(value)`",
    fix=Fixable.SAFE,
    versions=Versions(flax_since=(0, 11), nnxkit=False),
)
DEPRECATED_MODULE_METHOD = Rule(
    code="NNX907",
    name="deprecated-module-method",
    summary="A method of a module is called that is a function now.",
    message="`{cls}.{method}()` is deprecated: `nnx.{function}` does it",
    help="write `nnx.{function}(...)`",
    severity=Severity.WARNING,
    fix=Fixable.SAFE,
    default=False,
    migration=True,
    versions=Versions(flax_since=(0, 12, 1)),
)
DEPRECATED_NAME = Rule(
    code="NNX908",
    name="deprecated-name",
    summary="A name of NNX is used that has a successor.",
    message="`{name}` is deprecated since flax {version}",
    help="write `{successor}`",
    severity=Severity.WARNING,
    fix=Fixable.SAFE,
    default=False,
    migration=True,
)
DEPRECATED_SHARDING_METADATA = Rule(
    code="NNX909",
    name="deprecated-sharding-metadata",
    summary="The sharding of a Variable is given under an earlier name.",
    message="`{name}` of a Variable is called `out_sharding=` now, and `variable.sharding` is that of its array",
    help="write `out_sharding=`",
    severity=Severity.WARNING,
    fix=Fixable.SAFE,
    default=False,
    migration=True,
    versions=Versions(flax_since=(0, 12, 4)),
)
DEPRECATED_VARIABLE_HOOK = Rule(
    code="NNX910",
    name="deprecated-variable-hook",
    summary="A Variable is made with a hook.",
    message="`{name}` is a hook of a Variable, and hooks are deprecated",
    help="make a Variable type of your own with the methods `get_value` and `set_value`",
    severity=Severity.WARNING,
    default=False,
    migration=True,
    versions=Versions(flax_since=(0, 12, 7), nnxkit=False),
)
DEPRECATED_CELL_ARGUMENT = Rule(
    code="NNX911",
    name="deprecated-cell-argument",
    summary="A recurrent cell is made with an argument that belongs to its call now.",
    message="`{cls}({name}=...)` is deprecated: it is an argument of the call now",
    help="leave it out, and pass `{instead}` where the cell is called",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
    default=False,
    migration=True,
    versions=Versions(flax_since=(0, 12, 7), nnxkit=False),
)
SPLIT_RNGS_ON_CALL = Rule(
    code="NNX912",
    name="split-rngs-on-call",
    summary="Random streams that a stack of layers was made with are split again when it is called.",
    message="`{transform}` splits the streams that `{cls}` holds, and they were split when it was made",
    help="remove it: since flax 0.11 layers keep their own streams, one for each element of the stack",
    fix=Fixable.SAFE,
    versions=Versions(flax_since=(0, 11)),
)
TREE_MAP_OVER_MODULES = Rule(
    code="NNX913",
    name="tree-map-over-modules",
    summary="`jax.tree.map` over a container of modules calls its function with arrays, not with modules.",
    message="`{function}` goes into modules: the function gets their arrays, and uses `{name}` as a module",
    help="pass `is_leaf=lambda x: isinstance(x, nnx.Pytree)`",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
    versions=Versions(flax_since=(0, 11)),
)
IMPORT_OF_FLAX = Rule(
    code="NNX914",
    name="import-of-flax",
    summary="NNX is imported from flax by code that is to run on nnxkit.",
    message="`{name}` is imported, and the target is nnxkit",
    help="write `{mend}`",
    severity=Severity.WARNING,
    fix=Fixable.SAFE,
    default=False,
    migration=True,
    versions=Versions(flax=False),
)
REMOVED_JAX_NAME = Rule(
    code="NNX915",
    name="removed-jax-name",
    summary="A name or an argument of JAX is used that the version in use no longer has.",
    message="`{name}` is gone: JAX {version} does not have it",
    help="{instead}",
    fix=Fixable.SAFE,
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
