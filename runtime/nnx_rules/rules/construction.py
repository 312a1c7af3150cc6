"""NNX83x: how modules are made and called."""

from nnx_rules.errors import StateArgumentError, StateMismatchError
from nnx_rules.registry import Fixable, Rule, Severity, Versions

MISSING_SUPER_INIT = Rule(
    code="NNX830",
    name="missing-super-init",
    summary="A constructor does not call the one of its base, which sets attributes that methods of the base read.",
    message="`{cls}.{constructor}` does not call that of `{base}`, which sets `{path}`; `{method}` reads it",
    help="call `super().{constructor}(...)` first",
    fix=Fixable.UNSAFE,
)
LINEN_IDIOM = Rule(
    code="NNX831",
    name="linen-idiom",
    summary="Something that works on modules of Linen or PyTorch only is done with an NNX module.",
    message="{problem}",
    help="{mend}",
    fix=Fixable.UNSAFE,
)
UNKNOWN_NAME = Rule(
    code="NNX832",
    name="unknown-name",
    summary="NNX has no such name, and never had; another library calls something so.",
    message="NNX has no `{name}`",
    help="{mend}",
    fix=Fixable.UNSAFE,
)
CREATED_IN_CALL = Rule(
    code="NNX833",
    name="module-created-in-call",
    summary="A module makes a layer in its forward pass and drops it: new parameters in each call, never trained.",
    message="`{path}` makes a new `{layer}` each time it runs: its parameters are no part of the model",
    help="make it once: `self.{name} = {layer}(...)` in `__init__`",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)
LAZY_ATTRIBUTE = Rule(
    code="NNX834",
    name="lazy-attribute",
    summary="A module makes parameters or submodules the first time it is called.",
    message="`{cls}.{path}` does not exist until the first call: an optimizer or a State made before that lacks it",
    help="make it in `__init__`, from sizes that are given there",
    severity=Severity.WARNING,
)
INITIALIZER = Rule(
    code="NNX835",
    name="initializer-misuse",
    summary="An initializer is given or called in a form that it does not have.",
    message="`{name}` {problem}",
    help="{mend}",
    fix=Fixable.SAFE,
)
NOT_CALLABLE = Rule(
    code="NNX836",
    name="module-not-callable",
    summary="An instance is called whose class has no `__call__`.",
    message="`{cls}` has no `__call__`, and `{name}` is called",
    help="{mend}",
    fix=Fixable.UNSAFE,
)
TRANSFORM_OVER_DESCRIPTOR = Rule(
    code="NNX837",
    name="transform-over-descriptor",
    summary="A transform is applied above `staticmethod`, `classmethod` or `property`.",
    message="`@{transform}` gets a {descriptor}, not a function",
    help="put `@{descriptor}` on top of `@{transform}`",
    fix=Fixable.SAFE,
)

LAYER_SIGNATURE = Rule(
    code="NNX838",
    name="layer-signature",
    summary="A layer is made, or a function called, without an argument it requires, or with one it does not take.",
    message="`{cls}` {problem}",
    help="{mend}",
    fix=Fixable.UNSAFE,
)

# -- modes

SET_VIEW = Rule(
    code="NNX840",
    name="set-view-contract",
    summary="`set_view` does not keep to what `nnx.view` expects of it.",
    message="`{cls}.set_view`: {problem}",
    help="{mend}",
    severity=Severity.WARNING,
    versions=Versions(nnxkit=False, flax_since=(0, 12, 4)),
    fix=Fixable.UNSAFE,
)
MODE_NOT_SWITCHED = Rule(
    code="NNX841",
    name="mode-flag-not-switched",
    summary="`train()` or `eval()` is called on a module that keeps its mode in an attribute of another name.",
    message="`{call}` sets `deterministic` and `use_running_average`, and leaves `{cls}.{path}` as it is",
    help="call the attribute `deterministic`, or override `train` and `eval`",
    severity=Severity.WARNING,
)
MODE_SET_TWICE = Rule(
    code="NNX842",
    name="mode-set-twice",
    summary="`train()` or `eval()` is given what it sets itself.",
    message="`{method}` sets `{name}` itself",
    help="{mend}",
    fix=Fixable.SAFE,
)

FLAG_NOT_FORWARDED = Rule(
    code="NNX843",
    name="flag-not-forwarded",
    summary="A forward pass takes a flag, and calls a layer that takes the same flag without handing it on.",
    message="`{cls}.{method}` takes `{name}`, and `{layer}`, which takes one, too, does not get it",
    help="hand it on: `{layer}(..., {mend})`",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)

MODE_INVERTED = Rule(
    code="NNX844",
    name="mode-inverted",
    summary="A layer gets a flag that says the opposite: `deterministic=train`.",
    message="`{name}={given}` turns the flag round: `{name}` is true where {meaning}",
    help="write `{mend}`",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)
EVALUATION_KEPT = Rule(
    code="NNX848",
    name="evaluation-mode-kept",
    summary="A loop trains a model, switches it to evaluation, and never back.",
    message="`{name}` is in evaluation mode from here on, so the training steps of the next rounds run without dropout "
    "and keep the statistics of normalization as they are",
    help="call `{name}.train()` before the steps of each round",
    fix=Fixable.UNSAFE,
)
EVALUATED_IN_TRAINING = Rule(
    code="NNX849",
    name="evaluated-in-training-mode",
    summary="A model that was trained is evaluated, and the program never calls `eval()`.",
    message="`{name}` is in training mode here: {layer}",
    help="call `{name}.eval()` before, and `{name}.train()` before the next training step",
    severity=Severity.WARNING,
)

# -- containers

LIST_STATUS = Rule(
    code="NNX850",
    name="list-status-clash",
    summary="Data comes to a place of an `nnx.List` that holds a plain value.",
    message="`{name}` has a plain value at index {index}, and gets {value} there",
    help="mark the plain value: `nnx.List([nnx.data({plain}), ...])`",
    versions=Versions(nnxkit=False, flax_since=(0, 12, 0)),
    fix=Fixable.SAFE,
)
LIST_DELETE = Rule(
    code="NNX851",
    name="list-delete-middle",
    summary="An element is deleted from the middle of an `nnx.List`, which leaves another one behind twice.",
    message="deleting from the middle of `{name}` leaves its last element in the model twice",
    help="build a new list: `nnx.List([item for item in {name} if ...])`",
    versions=Versions(nnxkit=False, flax_since=(0, 12, 0)),
    fix=Fixable.UNSAFE,
)
LIST_UNSUPPORTED = Rule(
    code="NNX852",
    name="list-unsupported",
    summary="An `nnx.List` is indexed or added in a way that it does not support.",
    message="`{name}` is an `nnx.List`: {problem}",
    help="{mend}",
    fix=Fixable.SAFE,
)
LIST_COMPARISON = Rule(
    code="NNX853",
    name="list-comparison",
    summary="Two objects of `nnx.List` are compared: any two are equal.",
    message="`{name}` is an `nnx.List`, and any two of them are equal, whatever they hold",
    help="compare the elements, `list(a) == list(b)`, or the objects, `a is b`",
    severity=Severity.WARNING,
    versions=Versions(nnxkit=False, flax_since=(0, 12, 0)),
    fix=Fixable.UNSAFE,
)
DICT_KEYS = Rule(
    code="NNX854",
    name="dict-keys",
    summary="A key of an `nnx.Dict` cannot be the name of an attribute, or hides a method.",
    message="the key {key} of an `nnx.Dict` {problem}",
    help="{mend}",
    fix=Fixable.SAFE,
)
SEQUENTIAL = Rule(
    code="NNX855",
    name="sequential-misuse",
    summary="`nnx.Sequential` has an element that cannot be called, or not with one array.",
    message="`nnx.Sequential` calls its elements, and {value} {problem}",
    help="{mend}",
)
SEQUENTIAL_OF_OLD = Versions(nnxkit=False, flax_before=(0, 12, 11))
"""Where an `nnx.Sequential` hands keywords to its first element only, and cannot be iterated over."""

SEQUENTIAL_KEYWORD = Rule(
    code="NNX856",
    name="sequential-keyword",
    summary="A keyword goes through an `nnx.Sequential` to a layer that lacks it.",
    message="`nnx.Sequential` hands `{keyword}` to its first element only, and {value} has no such argument",
    help="set modes with `train()` and `eval()`, not by arguments",
    versions=SEQUENTIAL_OF_OLD,
)

# -- the rest

NOT_A_NODE = Rule(
    code="NNX860",
    name="iteration-over-non-node",
    summary="The children of something are asked for that is no graph node.",
    message="`{function}` needs an NNX object or a container, not {value}",
    help="pass a module, a list or a dict",
    exception=StateArgumentError,
)
IMMUTABLE_MAP = Rule(
    code="NNX861",
    name="recursive-map-of-tuple",
    summary="`nnx.recursive_map` is to replace elements of a tuple.",
    message="`nnx.recursive_map` cannot replace what is in a tuple",
    help="use a list",
    default=False,
    versions=Versions(nnxkit=False),
    fix=Fixable.SAFE,
)
MODE_FOR_ALL = Rule(
    code="NNX862",
    name="graph-mode-set-globally",
    summary="The graph mode is changed for the whole program.",
    message="`{name}` as a statement changes the mode for all that follows",
    help="change it for a block: `with {name}(...):`",
    severity=Severity.INFO,
    default=False,
    fix=Fixable.UNSAFE,
)
BRIDGE_UNBOUND = Rule(
    code="NNX863",
    name="bridge-unbound-use",
    summary="A method of a bridge module that makes parameters is called of a module that nothing has bound.",
    message="`self.{method}` in `{path}` needs a bound module, and this one is called without `init` or `apply`",
    help="call the method through `init` or `apply`: they take its name as `method`",
)
MISSING_ATTRIBUTE = Rule(
    code="NNX864",
    name="missing-attribute",
    summary="An attribute is read that the object does not have.",
    message="`{cls}` has no attribute `{name}`",
    help="{mend}",
    fix=Fixable.UNSAFE,
)

MODULE_DEFAULT = Rule(
    code="NNX866",
    name="module-default-argument",
    summary="A module is the default of a parameter: all that is made without that argument shares it.",
    message="the default of `{parameter}` is one {cls}, made with the function: whoever leaves it out shares it",
    help="make it in the function: `{parameter}=None`, and a new one if it is `None`",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)
LOOP_ELEMENTS = Rule(
    code="NNX865",
    name="loop-elements",
    summary="A loop takes what it goes over for something else: keys for items, or pairs for modules.",
    message="`{name}` is {value}, and a loop over it gets {elements}",
    help="{mend}",
    fix=Fixable.UNSAFE,
)
FORGOTTEN_RETURN = Rule(
    code="NNX867",
    name="forgotten-return",
    summary="A forward pass computes something last, or a function whose result is used, and returns nothing.",
    message="`{function}` {ends}, and returns `None`",
    help="write `return {name}`",
    fix=Fixable.UNSAFE,
)
LINEN_VARIABLES = Rule(
    code="NNX868",
    name="missing-linen-variables",
    summary="A module made by `nnx.bridge.to_linen` is applied to variables that lack some of its own.",
    message="the variables given to `{cls}` do not hold {leaves}",
    help="pass all collections that `init` returned, for a module made with the same arguments",
    exception=StateMismatchError,
)
ABSTRACT_METHOD_MISSING = Rule(
    code="NNX873",
    name="abstract-method-missing",
    summary="An instance is made, or its method called, of a class that lacks a method which a base only declares.",
    message="`{cls}` has no `{method}`, which `{base}` {how}",
    help="{mend}",
)
MISSING_ENTRY = Rule(
    code="NNX874",
    name="missing-entry",
    summary="A dict is asked for an entry that it does not have.",
    message="`{name}` has no entry `{key}`",
    help="{mend}",
)
UNDEFINED_NAME = Rule(
    code="NNX877",
    name="undefined-name",
    summary="A function reads a name that nothing binds.",
    message="`{name}` is bound nowhere: the program fails with a `NameError` where it gets here",
    help="{mend}",
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
