"""NNX6 and NNX8: sown values, modes, Variables and layers, as far as the runtime core raises them."""

from nnx_rules.errors import SowError, UnknownAttributeError, VariableAttributeError, VariableError
from nnx_rules.registry import Rule

SOW_ON_ATTRIBUTE = Rule(
    code="NNX601",
    name="sow-on-attribute",
    summary="`sow` names an attribute that exists and is no Variable, or is one of another type.",
    message="`{cls}.{path}` is {value}, so a `{variable}` cannot be sown into it",
    help="sow under another name",
    exception=SowError,
)
UNKNOWN_MODE_ATTRIBUTE = Rule(
    code="NNX801",
    name="unknown-mode-attribute",
    summary="`train`, `eval`, `set_attributes` or `view` names an attribute that no module has.",
    message="no module in `{cls}` has the attribute {names}",
    help="{mend}",
    exception=UnknownAttributeError,
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

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
