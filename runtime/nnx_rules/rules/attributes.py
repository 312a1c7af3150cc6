"""NNX1: attributes of a Pytree, data or static, and the annotations that say so."""

from nnx_rules.errors import (
    AttributeStatusError,
    ClassDefinitionError,
    ClassLayoutError,
    StatusTagArgumentError,
    StatusTagError,
)
from nnx_rules.registry import Fixable, Rule, Severity, Versions

_CHECKED = Versions(flax_since=(0, 12))
"""Attribute checks exist since flax 0.12; before, plain lists of modules were traversed."""

DATA_IN_STATIC_ATTRIBUTE = Rule(
    code="NNX101",
    name="data-in-static-attribute",
    summary="A plain container of arrays, Variables or modules is assigned to an attribute, which makes it static.",
    message="`{cls}.{path}` is static, but its value, {value}, holds data",
    help="use `nnx.List(...)` for a list or `nnx.Dict(...)` for a dict, or wrap the value in `nnx.data(...)`",
    exception=AttributeStatusError,
    in_flax="Found data on value of type ...",
    fix=Fixable.SAFE,
    versions=_CHECKED,
)
DATA_MARKED_STATIC = Rule(
    code="NNX102",
    name="data-marked-static",
    summary="A value that is or holds data is marked static, by `nnx.static(...)` or in the class body.",
    message="`{cls}.{path}` is marked static, but its value, {value}, is or holds data",
    help="remove the static mark, or use `nnx.data(...)`",
    exception=AttributeStatusError,
    in_flax="Found data in value of type ...; Found unexpected data on value of type ...",
    fix=Fixable.SAFE,
    versions=_CHECKED,
)
DATA_TO_STATIC_ATTRIBUTE = Rule(
    code="NNX103",
    name="data-to-static-attribute",
    summary="An attribute that became static at its first assignment receives data later.",
    message="`{cls}.{path}` became static when it was first assigned, and cannot take {value}, which is data",
    help="wrap the first value in `nnx.data(...)`, so that the attribute is data from the start",
    exception=AttributeStatusError,
    fix=Fixable.SAFE,
    versions=_CHECKED,
)
STATIC_CONTAINER_FILLED = Rule(
    code="NNX104",
    name="static-container-filled",
    summary="A plain container is assigned while it holds no data, and filled with data during construction.",
    message="`{cls}.{path}` is static, but data was put into it, and it is now {value}",
    help="start from `nnx.List()` or `nnx.Dict()`, or wrap the container in `nnx.data(...)` where it is assigned",
    exception=AttributeStatusError,
    in_flax="Found unexpected data on value of type ...",
    fix=Fixable.SAFE,
    versions=_CHECKED,
)
STATIC_CONTAINER_FILLED_LATE = Rule(
    code="NNX105",
    name="static-container-filled-late",
    summary="A method puts data into a static container after construction, where nothing checks it.",
    message=(
        "`{cls}.{path}` is a static container; {value} put into it by `{method}` is invisible to JAX and leaks "
        "out of transforms"
    ),
    help="use `self.sow(...)` for values to look at, or make the attribute an `nnx.List`/`nnx.Dict`",
    versions=_CHECKED,
    fix=Fixable.UNSAFE,
)
OPTIONAL_DATA_UNMARKED = Rule(
    code="NNX106",
    name="optional-data-unmarked",
    summary=(
        "An attribute is data on one branch and `None` on the other, so the structure of the module depends on "
        "the branch."
    ),
    message="`{cls}.{path}` is data on one branch and static on another",
    help="wrap the value in `nnx.data(...)`, so that the attribute is data on every branch",
    severity=Severity.WARNING,
    fix=Fixable.SAFE,
    default=False,
    versions=_CHECKED,
)
DATA_IN_OPAQUE_CONTAINER = Rule(
    code="NNX107",
    name="data-in-opaque-container",
    summary="Data is kept in a set, deque, generator, dict view or partial, which JAX does not look into.",
    message="`{cls}.{path}` holds data in {value}, which JAX does not look into: it is no parameter and never trained",
    help="{mend}",
    fix=Fixable.SAFE,
)
DATA_IN_PLAIN_OBJECT = Rule(
    code="NNX108",
    name="data-in-plain-object",
    summary="A Variable or a module is kept in an object of an ordinary class, which JAX does not look into.",
    message="`{cls}.{path}` holds {value} in an instance of `{holder}`, which is no Pytree: JAX does not look into it",
    help="derive `{holder}` from `nnx.Pytree`",
)
BOUND_METHOD_ATTRIBUTE = Rule(
    code="NNX109",
    name="bound-method-attribute",
    summary=(
        "A bound method, partial or lambda that holds a module is stored on a module; copies still call the original."
    ),
    message=(
        "`{cls}.{path}` keeps {value}, which holds on to this very object: copies of it will still use the original"
    ),
    help="define a method instead",
    severity=Severity.WARNING,
)
CLASS_LEVEL_DATA = Rule(
    code="NNX110",
    name="class-level-data",
    summary=(
        "A Variable, module or array is an attribute of the class, so it is shared by all instances and no part "
        "of their state."
    ),
    message="`{cls}.{path}` is {value} in the class body: all instances share it, and it is no part of their state",
    help="assign it in `__init__`",
    fix=Fixable.UNSAFE,
)
STATUS_CONFLICT = Rule(
    code="NNX111",
    name="status-conflict",
    summary="A class says data where a base class or an annotation says static, or the reverse.",
    message="`{cls}.{path}` is declared {declared}, but it is already {inherited}",
    help="declare the attribute once",
    exception=ClassDefinitionError,
)
INEFFECTIVE_STATUS_ANNOTATION = Rule(
    code="NNX112",
    name="ineffective-status-annotation",
    summary=(
        "`nnx.Data[...]` or `nnx.Static[...]` stands where it says nothing: inside a method or inside another "
        "annotation."
    ),
    message="`{annotation}` has no effect here: it counts only in the class body, outermost",
    help="write `{mend}`",
    fix=Fixable.SAFE,
    versions=_CHECKED,
)
NON_ARRAY_DATA = Rule(
    code="NNX113",
    name="non-array-data",
    summary="A value that JAX cannot take is marked as data; every transform that takes the object will fail.",
    message="`{cls}.{path}` is marked data, but {value} is nothing that JAX can take",
    help="remove `nnx.data(...)`",
    severity=Severity.WARNING,
    fix=Fixable.SAFE,
)
DATA_ATTRIBUTE_LOSES_ARRAY = Rule(
    code="NNX114",
    name="data-attribute-loses-array",
    summary="A data attribute receives a value that JAX cannot take; it stays data, and the next transform fails.",
    message="`{cls}.{path}` is data and stays data, but {value} is nothing that JAX can take",
    help="wrap the value in `nnx.static(...)`",
    severity=Severity.WARNING,
    fix=Fixable.SAFE,
)
PYTREE_FALSE_NOT_INHERITED = Rule(
    code="NNX115",
    name="pytree-false-not-inherited",
    summary="A subclass of a `pytree=False` class is checked again, because the class keyword is not inherited.",
    message=(
        "`{cls}` is checked again, because `pytree=False` of `{base}` is not inherited, and `{path}` holds data "
        "in a plain container"
    ),
    help="write `class {cls}(..., pytree=False)`",
    severity=Severity.WARNING,
    fix=Fixable.SAFE,
    versions=_CHECKED,
)
NON_PYTREE_INTO_JAX = Rule(
    code="NNX116",
    name="non-pytree-into-jax",
    summary="An object whose class is no JAX pytree is given to a transform or tree function of `jax`.",
    message="`{cls}` is no JAX pytree, so `{function}` {harm}",
    help="use the `nnx` counterpart, or make the class a Pytree",
    versions=Versions(flax_since=(0, 12)),
    fix=Fixable.SAFE,
)
OBJECT_PYTREE_TRUE = Rule(
    code="NNX117",
    name="object-pytree-true",
    summary="A subclass of `nnx.Object` asks to be a pytree.",
    message="`{cls}` derives from `nnx.Object`, which is no pytree, and says `pytree=True`",
    help="derive from `nnx.Pytree`",
    versions=Versions(flax_since=(0, 12)),
    exception=ClassDefinitionError,
    fix=Fixable.SAFE,
)
PYTREE_SLOTS = Rule(
    code="NNX118",
    name="pytree-slots",
    summary="A Pytree class has `__slots__`, which would hide its attributes from JAX.",
    message="`{cls}` is a Pytree and has `__slots__`",
    help="remove `__slots__`",
    exception=ClassLayoutError,
    fix=Fixable.SAFE,
    versions=Versions(flax_since=(0, 12, 4)),
)
RESERVED_ATTRIBUTE = Rule(
    code="NNX119",
    name="reserved-attribute",
    summary="An attribute has the name of a method that every module has, hides it, and is then called like it.",
    message="`{cls}.{path}` hides the method `{path}` of `nnx.Module`: calling it calls {value} instead, which fails",
    help="rename the attribute",
)
STATUS_BYPASS = Rule(
    code="NNX120",
    name="status-bypass",
    summary="Data is written through `__dict__` or `object.__setattr__`, past the status and trace checks.",
    message=(
        "`{cls}.{path}` is written past the attribute checks: {value} is never recorded as data and stays invisible to"
        " JAX and to `nnx.state`"
    ),
    help="assign the attribute normally",
    severity=Severity.WARNING,
    versions=Versions(flax_since=(0, 12), nnxkit=False),
    fix=Fixable.UNSAFE,
)
CACHED_PROPERTY = Rule(
    code="NNX121",
    name="cached-property",
    summary="A cached property or method of a module keeps a traced or stale value.",
    message=(
        "`{cls}.{path}` caches its value: computed under a transform it leaks out, and when parameters change it is"
        " not computed again"
    ),
    help="{mend}",
    fix=Fixable.UNSAFE,
)
VARIABLE_OVERWRITTEN = Rule(
    code="NNX122",
    name="variable-overwritten",
    summary="An attribute that holds a Variable is replaced by a plain array, so it is no parameter any more.",
    message="`{cls}.{path}` holds a `{variable}`, and this assignment replaces it by {value}",
    help="write into the Variable: `{path}[...] = ...`",
    fix=Fixable.SAFE,
)
NESTED_PLAIN_CONTAINER = Rule(
    code="NNX123",
    name="nested-plain-container",
    summary="A plain list, tuple or dict of data is an element of `nnx.List`, `nnx.Dict` or `nnx.Sequential`.",
    message="an element of `{cls}` is {value}: a plain container is static, and this one holds data",
    help="{mend}",
    exception=AttributeStatusError,
    fix=Fixable.SAFE,
    versions=_CHECKED,
)
MIXED_KEYS = Rule(
    code="NNX124",
    name="mixed-dict-keys",
    summary="A dict in an attribute has keys of different types, or classes as keys, which JAX cannot sort.",
    message="`{cls}.{path}` is a dict with keys of types {types}, which JAX cannot sort",
    help="use keys of one type",
)
REGISTERED_TYPE_SUBCLASS = Rule(
    code="NNX125",
    name="registered-type-subclass",
    summary="`nnx.register_data_type` registers one exact type; a subclass of it stays static.",
    message=(
        "`{cls}` derives from the registered data type `{base}`, but is not registered itself: its instances are static"
    ),
    help="decorate `{cls}` with `@nnx.register_data_type` too",
    severity=Severity.WARNING,
    versions=_CHECKED,
    fix=Fixable.UNSAFE,
)
REGISTERED_TYPE_LATE = Rule(
    code="NNX126",
    name="registered-type-late",
    summary="A type is registered as data after instances of it were assigned to attributes.",
    message="`{cls}` is registered as data after `{owner}.{path}` became static with an instance of it",
    help="register the type where it is defined",
    versions=_CHECKED,
)
REGISTERED_TYPE_NOT_PYTREE = Rule(
    code="NNX127",
    name="registered-type-not-pytree",
    summary="A type is registered as data but not as a JAX pytree, and an instance of it enters a transform.",
    message="`{cls}.{path}` holds {value}, which is registered as data but unknown to JAX: `{function}` cannot take it",
    help="register the type with JAX as well, for instance with `@jax.tree_util.register_dataclass`",
    severity=Severity.WARNING,
    versions=_CHECKED,
    fix=Fixable.UNSAFE,
)
ATTRIBUTE_BEFORE_INIT = Rule(
    code="NNX128",
    name="attribute-before-init",
    summary="An attribute is set on an object that only `__new__` has made, before it can record the status.",
    message="`{cls}.{path}` is set before the object is initialized, so its status cannot be recorded",
    help="set it in `__init__`",
    versions=Versions(nnxkit=False),
)

NESTED_STATUS_ANNOTATION = Rule(
    code="NNX130",
    name="nested-status-annotation",
    summary=(
        "`nnx.data` or `nnx.static` is inside a container or inside another one, instead of around the "
        "attribute's value."
    ),
    message="`{cls}.{path}` has {tags} inside its value, {value}: the mark belongs around the whole value",
    help="move `nnx.data(...)` or `nnx.static(...)` to the outside",
    exception=StatusTagError,
    fix=Fixable.SAFE,
    versions=_CHECKED,
)
STATUS_ANNOTATION_IN_SET = Rule(
    code="NNX131",
    name="status-annotation-in-set",
    summary="`nnx.data` or `nnx.static` is inside a set, where nothing ever removes it.",
    message="`{cls}.{path}` has {tags} inside a set, where it stays: the elements are marks, not values",
    help="move `nnx.data(...)` or `nnx.static(...)` to the outside",
    fix=Fixable.SAFE,
)
STATUS_ANNOTATION_NOT_ASSIGNED = Rule(
    code="NNX132",
    name="status-annotation-not-assigned",
    summary="The result of `nnx.data` or `nnx.static` is used as if it were the value.",
    message=(
        "this is the mark that `nnx.{tag}(...)` makes, not the value: it is only unwrapped when it is assigned to"
        " an attribute of a Pytree"
    ),
    help="use `nnx.{tag}(...)` where the attribute is assigned",
    fix=Fixable.SAFE,
)
STATUS_ANNOTATION_ON_PLAIN_CLASS = Rule(
    code="NNX133",
    name="status-annotation-on-plain-class",
    summary="`nnx.data` or `nnx.static` is assigned to an attribute of a class that is no Pytree.",
    message="`{cls}` is no Pytree: `{path}` stays the mark that `nnx.{tag}(...)` makes",
    help="derive `{cls}` from `nnx.Pytree`, or remove the mark",
    fix=Fixable.UNSAFE,
)
STATUS_ANNOTATION_ARGUMENTS = Rule(
    code="NNX134",
    name="status-annotation-arguments",
    summary="`nnx.data` or `nnx.static` is called with arguments that it does not take.",
    message="`nnx.{tag}(...)` takes either one value or the keywords of a dataclass field, not {given}",
    help="write `nnx.{tag}(value)` for an attribute, or `nnx.{tag}(default=value)` for a field",
    exception=StatusTagArgumentError,
    fix=Fixable.UNSAFE,
)
EMPTY_STATUS_ASSIGNMENT = Rule(
    code="NNX135",
    name="empty-status-assignment",
    summary="`nnx.data()` or `nnx.static()` without a value is assigned to an attribute.",
    message="`{cls}.{path}` is assigned `nnx.{tag}()`, which holds no value",
    help="write `nnx.{tag}(None)`",
    exception=StatusTagError,
    fix=Fixable.SAFE,
)
CLASS_LEVEL_STATUS_VALUE = Rule(
    code="NNX136",
    name="class-level-status-value",
    summary="`nnx.data(value)` in a class body: the value is ignored, only `default=` counts.",
    message="`nnx.{tag}(...)` in a class body is a field specifier: its positional value is ignored",
    help="write `nnx.{tag}(default=...)`",
    exception=StatusTagError,
    fix=Fixable.SAFE,
)

MEMBER_HIDDEN = Rule(
    code="NNX150",
    name="member-hidden",
    summary="An attribute gets the name of a method, which it hides, or of a property, which cannot be written to.",
    message="`{cls}.{path}` {problem}",
    help="{mend}",
)
ATTRIBUTE_OF_LAST_ROUND = Rule(
    code="NNX152",
    name="attribute-of-last-round",
    summary="A constructor makes a layer in each round of a loop, all of them under one name, so the last one stays.",
    message="each round of the loop replaces `{cls}.{path}`, so that only {value} of the last round stays",
    help="keep all of them: `self.{path} = nnx.List([...])`",
)
BARE_WEIGHT = Rule(
    code="NNX151",
    name="bare-weight",
    summary="A weight is kept as a bare array or plain Variable, so that no optimizer and no gradient sees it.",
    message="`{cls}.{path}` {what}, and is {held}: no gradient and no optimizer sees it",
    help="make it a parameter: `self.{path} = nnx.Param(...)`, or a Variable of a type of your own if it is to stay",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
