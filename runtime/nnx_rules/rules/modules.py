"""NNX6 and NNX8: sown values, modes, Variables and layers, as far as the runtime core raises them."""

from nnx_rules.errors import (
    LayerArgumentError,
    LayerShapeError,
    SowError,
    UnknownAttributeError,
    VariableAttributeError,
    VariableError,
)
from nnx_rules.registry import Fixable, Rule, Severity, Versions

SOW_ON_ATTRIBUTE = Rule(
    code="NNX601",
    name="sow-on-attribute",
    summary="`sow` names an attribute that exists and is no Variable, or is one of another type.",
    message="`{cls}.{path}` is {value}, so no `{variable}` can be sown into it",
    help="sow under another name",
    exception=SowError,
    in_flax="Expected ... to be a Variable, got ...; to be of type ...",
    fix=Fixable.UNSAFE,
)
UNKNOWN_MODE_ATTRIBUTE = Rule(
    code="NNX801",
    name="unknown-mode-attribute",
    summary="`train`, `eval`, `set_attributes` or `view` names an attribute that no module has.",
    message="no module in `{cls}` has the attribute {names}",
    help="{mend}",
    exception=UnknownAttributeError,
    fix=Fixable.SAFE,
    in_flax="Could not find at least one instance of the following attributes: {quoted}; "
    "Unused keys found in nnx.view: {quoted}",
)
VARIABLE_TYPE_MISMATCH = Rule(
    code="NNX802",
    name="variable-type-mismatch",
    summary="A Variable is overwritten from one of another type.",
    message="a `{expected}` cannot be overwritten from a `{given}`",
    help="use a Variable of the same type, or `set_value`",
    exception=VariableError,
)
VARIABLE_METADATA_ATTRIBUTE = Rule(
    code="NNX803",
    name="variable-metadata-attribute",
    summary="Metadata of a Variable is set or deleted like an attribute.",
    message="`{name}` of a `{cls}` cannot be {action} like an attribute",
    help="use `set_metadata`, `del_metadata`, or `variable[...] = value` for the value",
    exception=VariableAttributeError,
    versions=Versions(flax_since=(0, 12)),
    fix=Fixable.UNSAFE,
)
VARIABLE_REQUIRED_METADATA = Rule(
    code="NNX804",
    name="variable-required-metadata",
    summary="Metadata that every Variable has cannot be deleted.",
    message="the metadata `{name}` of a `{cls}` cannot be deleted",
    help="set it to `None` instead",
    exception=VariableError,
)
VARIABLE_NAME_TAKEN = Rule(
    code="NNX805",
    name="variable-name-taken",
    summary="A Variable type is registered under a name that is taken, or a name that nobody registered is looked up.",
    message="{problem}",
    help="{mend}",
    exception=VariableError,
)
SHARDING_WITHOUT_MESH = Rule(
    code="NNX806",
    name="sharding-without-mesh",
    summary="A Variable with `out_sharding` is created where there is no mesh to shard it on.",
    message="a `{cls}` with out_sharding={sharding} is sharded when it is created, and there is no mesh",
    help="create it inside `with jax.set_mesh(mesh):`, pass `mesh=`, or pass `eager_sharding=False`",
    exception=VariableError,
    fix=Fixable.UNSAFE,
    versions=Versions(flax_since=(0, 12)),
)
SHARDING_UNKNOWN_AXIS = Rule(
    code="NNX823",
    name="sharding-unknown-axis",
    summary="A Variable is sharded over an axis that the mesh does not have.",
    message="a `{cls}` is sharded over the axis `{axis}`, and the mesh has {axes}",
    help="{mend}",
    fix=Fixable.SAFE,
    versions=Versions(flax_since=(0, 12)),
)
LAYER_MODE_UNDECIDED = Rule(
    code="NNX807",
    name="layer-mode-undecided",
    summary="A layer that behaves differently in training is called, and nothing says which mode it is in.",
    message="`{cls}` is called while its `{name}` is None, and the call does not give it",
    help="call `model.train()` or `model.eval()` first, or pass `{name}=`",
    exception=LayerArgumentError,
)
LAYER_WITHOUT_RNGS = Rule(
    code="NNX808",
    name="layer-without-rngs",
    summary="A layer that draws random numbers is called and has no random stream.",
    message="`{cls}` draws random numbers when it is called, and has no stream",
    help="pass `rngs=` to the constructor or to the call, or make it deterministic: `model.eval()`",
    exception=LayerArgumentError,
    in_flax="`deterministic` is False, but no `rngs` argument was provided to {cls}; dropout_rng is required",
    fix=Fixable.UNSAFE,
)

LAYER_ARGUMENTS = Rule(
    code="NNX809",
    name="layer-arguments",
    summary="A layer is made from arguments that do not go together.",
    message="`{cls}`: {problem}",
    help="{mend}",
    exception=LayerArgumentError,
)
LAYER_INPUT_SHAPE = Rule(
    code="NNX810",
    name="layer-input-shape",
    summary="A layer is called with an array of another shape than it was made for.",
    message="`{layer}` takes `{argument}` of shape {expected}, and got {given}",
    help="make the layer for this size, or bring the array to that shape",
    exception=LayerShapeError,
)
LAYER_INPUT_DTYPE = Rule(
    code="NNX811",
    name="layer-input-dtype",
    summary="A layer is called with an array of a dtype that it has no meaning for.",
    message="`{layer}` takes `{argument}` of {expected}, and got {given}",
    help="cast the array first: `x.astype(...)`",
    exception=LayerArgumentError,
)

IDS_OUT_OF_RANGE = Rule(
    code="NNX870",
    name="ids-out-of-range",
    summary="A number is looked up in a table that ends before it, or names a class that the logits do not have.",
    message="`{name}` gets numbers up to {most}, and {problem}",
    help="they are numbered from 0 to {last}: JAX gives NaN for any after it, and raises no error",
)
TWIN_LAYER_UNUSED = Rule(
    code="NNX871",
    name="twin-layer-unused",
    summary="One of two layers that are made alike is used twice, and the other one never.",
    message="`{name}` is {used} a second time here, and nothing uses `{twin}`, which is made in the same way",
    help="use `{twin}` here\nor remove it: its parameters are never trained",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)
BATCH_NORM_MOMENTUM = Rule(
    code="NNX827",
    name="batch-norm-momentum",
    summary="A `BatchNorm` has the momentum that PyTorch's would have, which is the other part of one.",
    message="with `momentum={momentum}` an average keeps {momentum} of what it was, and takes the rest from each batch",
    help="PyTorch's `momentum={momentum}` is `momentum={mend}` here",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)
ARRAY_SHAPES = Rule(
    code="NNX826",
    name="array-shapes",
    summary="Arrays are added or joined whose shapes do not go together, or one is given a shape of another size.",
    message="{problem}",
    help="{mend}",
)
ATTENTION_MASK = Rule(
    code="NNX872",
    name="attention-mask-values",
    summary="A mask is applied to attention in a way that leaves nothing masked, or makes all of it NaN.",
    message="{problem}",
    help="{mend}",
)
SOFTMAX_AXIS = Rule(
    code="NNX875",
    name="softmax-axis",
    summary="A softmax makes weights along one axis, and they are summed along another.",
    message="`{name}` makes weights that sum to one along axis {axis}, and {summed}",
    help="take the softmax along the axis of the keys, which is the last one of the scores: `axis=-1`",
    severity=Severity.WARNING,
)
FOREIGN_WEIGHT = Rule(
    code="NNX828",
    name="foreign-weight",
    summary="A weight of PyTorch, or the table of an `Embed`, becomes a kernel with its axes the other way round.",
    message="{problem}",
    help="{mend}",
)
CELL_RESULTS = Rule(
    code="NNX829",
    name="cell-results",
    summary="The results of a recurrent cell or a scan are unpacked the other way round, or taken for one array.",
    message="a recurrent cell or a scan gives two things, what it carries and then its output: {problem}",
    help="write `{mend}`",
    fix=Fixable.UNSAFE,
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
