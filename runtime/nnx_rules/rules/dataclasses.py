"""NNX14 and NNX15: dataclass fields on a Pytree."""

from nnx_rules.errors import ClassDefinitionError, ClassLayoutError
from nnx_rules.registry import Fixable, Rule, Severity, Versions

CONTAINER_FIELD = Rule(
    code="NNX140",
    name="dataclass-container-field",
    summary="A dataclass field is a plain container of arrays or modules and is not declared as data.",
    message="`{cls}.{path}` is static, but its annotation `{annotation}` says that it holds data",
    help="write `{path}: {annotation} = nnx.data()`",
    fix=Fixable.SAFE,
    versions=Versions(flax_since=(0, 12)),
)
MUTABLE_DEFAULT = Rule(
    code="NNX141",
    name="dataclass-mutable-default",
    summary="The default of a dataclass field is a list, dict, set, array, Variable or record, which is refused.",
    message="the default of `{cls}.{path}` is {value}, which cannot be shared by instances",
    help="write `default_factory=lambda: ...`",
    fix=Fixable.SAFE,
)
SHARED_MODULE_DEFAULT = Rule(
    code="NNX142",
    name="dataclass-shared-default",
    summary="The default of a dataclass field is a module, which all instances then share.",
    message="the default of `{cls}.{path}` is {value}: all instances share it",
    help="write `default_factory=lambda: ...`",
    fix=Fixable.SAFE,
)
FIELD_ORDER = Rule(
    code="NNX143",
    name="dataclass-field-order",
    summary="A field without a default follows one with a default.",
    message="`{cls}.{path}` has no default, but follows `{other_path}`, which has one",
    help="give `{other_path}` the option `kw_only=True`, or change the order",
    fix=Fixable.UNSAFE,
)
UNSUPPORTED_OPTION = Rule(
    code="NNX144",
    name="dataclass-option",
    summary="`nnx.dataclass` is given an option that it does not take.",
    message="`nnx.dataclass` does not take `{option}`",
    help="remove the option",
    exception=ClassLayoutError,
    fix=Fixable.SAFE,
)
STATIC_METADATA_TYPE = Rule(
    code="NNX145",
    name="dataclass-static-metadata",
    summary='The metadata entry `"static"` of a dataclass field is not a bool.',
    message='the metadata entry "static" of `{cls}.{path}` is {value}, not a bool',
    help="write `True` for static or `False` for data",
    versions=Versions(flax_since=(0, 12)),
    exception=ClassDefinitionError,
    fix=Fixable.SAFE,
)
MISSING_ANNOTATION = Rule(
    code="NNX146",
    name="dataclass-missing-annotation",
    summary="A field specifier is assigned in a dataclass body without an annotation.",
    message="`{cls}.{path}` is a field without an annotation",
    help="write `{path}: Any = ...`",
    fix=Fixable.SAFE,
)
EQ_ON_ARRAYS = Rule(
    code="NNX147",
    name="dataclass-eq-on-arrays",
    summary="A dataclass with array fields compares them with `==`, which raises, and is not hashable.",
    message="`{cls}` compares its fields with `==`, but `{path}` is an array, whose comparison has no truth value",
    help="write `@nnx.dataclass(eq=False)`",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)
STRUCT_DATACLASS = Rule(
    code="NNX148",
    name="struct-dataclass-on-pytree",
    summary="A Pytree class is registered with JAX a second time.",
    message="`{cls}` is a Pytree and thus known to JAX; `{decorator}` registers it again",
    help="{mend}",
    versions=Versions(flax_since=(0, 11)),
    fix=Fixable.SAFE,
)
FIELDS_WITHOUT_DATACLASS = Rule(
    code="NNX149",
    name="fields-without-dataclass",
    summary="A module has annotated fields but no dataclass decorator, so it has no `__init__` that takes them.",
    message="`{cls}` has annotated fields but {lack}",
    help="decorate it with `@nnx.dataclass`",
    fix=Fixable.SAFE,
)

FROZEN_MODULE = Rule(
    code="NNX153",
    name="frozen-module",
    summary="A module, or a record of a training step, that is a frozen dataclass gets an attribute.",
    message="`{cls}` is a frozen dataclass: `{path}` cannot be assigned",
    help="{mend}",
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
