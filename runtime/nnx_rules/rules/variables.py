"""NNX812-NNX821: what is done to a Variable as if it were the array that it holds, and what Variables are made of.

A Variable passes for its array in arithmetic and in ``jax.numpy``, and in little else; these rules are about the rest.
nnxkit lets a Variable act as its value in operators, so some of them hold for flax alone.
"""

from nnx_rules.registry import Fixable, Rule, Severity, Versions

_FLAX = Versions(nnxkit=False)

VARIABLE_INPLACE_OPERATOR = Rule(
    code="NNX812",
    name="variable-inplace-operator",
    summary="An in-place operator is applied to a Variable instead of to its value.",
    message="`{name} {operator}` is applied to the {cls} itself, which refuses in-place operators",
    help="write to the value: `{name}[...] {operator} ...`",
    fix=Fixable.SAFE,
    versions=Versions(flax_since=(0, 12), nnxkit=False),
)
VARIABLE_WITHOUT_ITEMS = Rule(
    code="NNX813",
    name="variable-without-items",
    summary="`variable[...]` is used on a Variable that holds no array.",
    message="`{name}` holds {value}, which cannot be indexed, so `{name}[...]` fails",
    help="make it with an array, `{cls}(jnp.array(...))`, or use `get_value()` and `set_value()`",
    versions=Versions(flax_since=(0, 12, 1)),
    fix=Fixable.SAFE,
)
VARIABLE_COMPARISON = Rule(
    code="NNX814",
    name="variable-comparison",
    summary="A Variable is compared by an operator that only its value has.",
    message="`{name}` is a {cls}, and `{operator}` does not compare Variables",
    help="compare the value: `{name}[...] {operator} ...`",
    fix=Fixable.SAFE,
    versions=_FLAX,
)
VARIABLE_TRUTH_VALUE = Rule(
    code="NNX815",
    name="variable-truth-value",
    summary="A Variable is used as a condition.",
    message="the truth of `{name}`, a {cls}, is no fact about its value: {outcome}",
    help="ask `{name} is not None`, or `bool({name}[...])` for the value",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
    versions=_FLAX,
)
VARIABLE_AS_KEY = Rule(
    code="NNX816",
    name="variable-as-key",
    summary="A Variable is a key of a dict or a member of a set.",
    message="`{name}` is a {cls}, and Variables have no hash",
    help="use its path or `id(...)` as the key",
    versions=Versions(flax_since=(0, 12, 1)),
)
VARIABLE_INTO_PRIMITIVE = Rule(
    code="NNX817",
    name="variable-into-primitive",
    summary="A Variable is passed to a function of `jax.lax` that takes arrays only.",
    message="`{function}` takes arrays, and `{name}` is a {cls}",
    help="pass the value: `{name}[...]`",
    versions=Versions(flax_since=(0, 11)),
    fix=Fixable.SAFE,
)
VARIABLE_IN_FORMAT = Rule(
    code="NNX869",
    name="variable-in-format",
    summary='A Variable is written with a format for numbers, as in `f"{loss:.3f}"`.',
    message="`{name}` is a Variable ({cls}), which has no format for numbers",
    help="write its value: `{name}[...]`",
    versions=_FLAX,
    fix=Fixable.SAFE,
)
UPDATE_DISCARDED = Rule(
    code="NNX818",
    name="update-discarded",
    summary="`x.at[i].set(...)` is called and its result is dropped, so that nothing changes.",
    message="`{name}.at[...].{method}(...)` returns a new array and changes nothing, and its result is dropped",
    help="{mend}",
    fix=Fixable.SAFE,
)
VARIABLE_OF_NUMPY = Rule(
    code="NNX819",
    name="variable-of-numpy",
    summary="`variable[...] = ...` writes into the numpy array that the Variable was made with.",
    message="`{name}` holds the numpy array that it was made with, and this writes into that array",
    help="make the Variable with `jnp.asarray(...)`",
    severity=Severity.WARNING,
    fix=Fixable.SAFE,
    versions=_FLAX,
)
VARIABLE_DTYPE_KEPT = Rule(
    code="NNX820",
    name="variable-dtype-kept",
    summary="A fraction is written into a Variable or an array of integers, which cuts it off.",
    message="`{name}` holds {dtype}, and `{how}` keeps that: {value} is cut to an integer",
    help="{mend}",
    severity=Severity.WARNING,
)
VARIABLE_METADATA_ARGUMENTS = Rule(
    code="NNX821",
    name="variable-metadata-arguments",
    summary="`set_metadata` is called with arguments that it does not take.",
    message="`set_metadata` takes a mapping, or a name and a value, or keywords, and got {given}",
    help="write `variable.set_metadata(name=value)`",
)
ARRAY_ITEM_ASSIGNED = Rule(
    code="NNX824",
    name="array-item-assignment",
    summary="An element of a JAX array is assigned, and JAX arrays cannot be changed.",
    message="`{name}` is a JAX array, which cannot be changed in place",
    help="{mend}",
    fix=Fixable.UNSAFE,
)
TENSOR_IDIOM = Rule(
    code="NNX825",
    name="tensor-idiom",
    summary="A method, a function or an argument of PyTorch is used where JAX has another.",
    message="{problem}",
    help="{mend}",
    fix=Fixable.SAFE,
)
NAN_COMPARISON = Rule(
    code="NNX876",
    name="nan-comparison",
    summary="A value is compared with NaN by `==` or `!=`: NaN is equal to nothing, itself included.",
    message="`{name}` is {always}, whatever is compared: NaN is equal to nothing, itself included",
    help="ask for it: `{mend}`",
    fix=Fixable.UNSAFE,
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
