"""NNX4: transforms and what they take and give: prefixes, aliasing, carries, bound methods."""

from nnx_rules.errors import GraphError, TransformArgumentError, TransformTypeError
from nnx_rules.registry import Fixable, Rule, Severity, Versions

OF_TODAY = Versions(flax_since=(0, 9))
"""Where maps and scans say by axes and by a carry what becomes of modules; before, options said it by filters."""

RETURNED_INPUT = Rule(
    code="NNX401",
    name="returned-input",
    summary="Without graph updates, a function under a transform returns an object of its inputs.",
    message="the function under `{transform}` returns `{other_path}`, a `{value}` of its inputs, as `{path}`",
    help="return its value, or a copy: `nnx.clone(...)`\nor use the default mode, `graph=True, graph_updates=True`",
    exception=GraphError,
    in_flax="does not support Variable aliasing; Duplicate {value}; Cannot return captured Variable",
    fix=Fixable.UNSAFE,
)
INCONSISTENT_ALIASING = Rule(
    code="NNX402",
    name="inconsistent-aliasing",
    summary="An object that is reached by two paths gets two different prefixes.",
    message="`{path}` and `{other_path}` are the same object, with different prefixes under `{transform}`: {prefixes}",
    help="give both the same prefix, or pass a copy: `nnx.clone(...)`",
    versions=Versions(flax_since=(0, 10)),
    exception=GraphError,
    in_flax=(
        "Inconsistent aliasing detected. The following nodes have different prefixes: {value} {path}: {prefix}, "
        "{other_path}: {other_prefix}; Duplicate {value}"
    ),
)
PREFIX_MISMATCH = Rule(
    code="NNX404",
    name="prefix-mismatch",
    summary="A prefix such as `in_axes` does not have the structure of what it is for.",
    message="`{option}` of `{transform}` does not fit: {problem}",
    help="give one entry for each argument, or a single one for all",
    exception=TransformArgumentError,
    versions=OF_TODAY,
    fix=Fixable.UNSAFE,
)
PREFIX_MODE = Rule(
    code="NNX405",
    name="prefix-in-wrong-mode",
    summary="A prefix is of a kind that the mode of the transform does not have.",
    message="`{option}` of `{transform}` holds {given}, which {mode} does not take",
    help="{mend}",
    exception=TransformArgumentError,
    in_flax="Graph nodes are not allowed as prefixes; `{option}` cannot contain `{kind}` objects",
)
UNHASHABLE_STATIC_ARGUMENT = Rule(
    code="NNX407",
    name="unhashable-static-argument",
    summary="A static argument of a compiled function has no hash.",
    message="Non-hashable static argument {argument} of the function under `{transform}`: {given}",
    help="pass graph objects as ordinary arguments; make other values hashable",
    exception=TransformArgumentError,
    fix=Fixable.UNSAFE,
)
COMPILED_FOR_OTHER_STRUCTURE = Rule(
    code="NNX408",
    name="compiled-for-other-structure",
    summary="A function that was lowered and compiled is called with objects of another structure.",
    message="the arguments have another structure than those that `{transform}` was lowered for",
    help="lower it for these arguments, or call the jitted function",
    exception=TransformTypeError,
)
MISSING_PARAMETER = Rule(
    code="NNX414",
    name="missing-parameter",
    summary="An option of a transform names an argument that the function does not have.",
    message="the function under `{transform}` has no parameter {given}, which is to be {option}",
    help="give positions and names of its parameters; positions count from zero, and `self` is one",
    exception=TransformArgumentError,
)
NOT_AN_ARRAY = Rule(
    code="NNX415",
    name="not-an-array",
    summary="A value that JAX cannot take is a leaf of the arguments or the result of a compiled function.",
    message="`{path}` is {given}, and `{transform}` can take and return arrays only",
    help="hold it in a static attribute, or make the argument static",
    exception=TransformTypeError,
)
ARGNUMS_TYPE = Rule(
    code="NNX409",
    name="argnums-type",
    summary="The arguments to differentiate are not given by position.",
    message="`argnums` of `{transform}` holds {given}",
    help="give positions, or `nnx.DiffState(position, filter)`",
    exception=TransformTypeError,
)
ARGNUM_RANGE = Rule(
    code="NNX410",
    name="argnum-out-of-range",
    summary="There is no argument at a position that is to be differentiated.",
    message=(
        "`argnums` of `{transform}` has position {argnum}, and the call has this many positional arguments: {count}"
    ),
    help="pass the argument by position",
    exception=TransformTypeError,
)
ARGNUM_REPEATED = Rule(
    code="NNX411",
    name="argnum-repeated",
    summary="A position is to be differentiated twice.",
    message="`argnums` of `{transform}` has position {argnum} twice",
    help="join the filters: `nnx.DiffState({argnum}, (A, B))`",
    exception=TransformArgumentError,
)
AUX_PAIR = Rule(
    code="NNX412",
    name="aux-pair",
    summary="A function under a transform with `has_aux=True` returns no pair.",
    message="the function under `{transform}` with `has_aux=True` returns {given} instead of a pair",
    help="return `(value, aux)`",
    exception=TransformArgumentError,
)
NOT_DIFFERENTIABLE = Rule(
    code="NNX413",
    name="not-differentiable",
    summary="A derivative is asked for with respect to integers or keys.",
    message="`{transform}` cannot differentiate with respect to `{path}`, whose dtype is {dtype}",
    help="split off the Params and differentiate with respect to these, or, in the default mode, choose them: "
    "`argnums=nnx.DiffState(0, nnx.Param)`",
    exception=TransformTypeError,
    fix=Fixable.UNSAFE,
)

AXIS_OUT_OF_RANGE = Rule(
    code="NNX420",
    name="axis-out-of-range",
    summary="A transform is to map over an axis that a value does not have.",
    message="`{transform}` is to map over axis {axis} of `{path}`, whose shape is {shape}",
    help="name an axis that it has, or `None` to pass it whole",
    fix=Fixable.UNSAFE,
    exception=TransformArgumentError,
)
AXIS_SIZES = Rule(
    code="NNX421",
    name="axis-sizes-differ",
    summary="A transform is to map over axes of different sizes.",
    message="`{transform}` is to map over axis {axis} of `{path}`, which has {size} elements, and over {other}",
    help="map over axes of one size, or pass one of the values whole: axis `None`",
    exception=TransformArgumentError,
)
ELEMENT_VALUES_WITHOUT_AXIS = Rule(
    code="NNX422",
    name="element-values-without-axis",
    summary="A function that is mapped over an axis gives something without an axis a value for each element.",
    message="under `{transform}` each element has its own value of `{path}`, which has no axis for them: {why}",
    help="{mend}\nor make one value of all: `jax.lax.pmean(value, axis_name)`",
    exception=TransformArgumentError,
    in_flax="at vmap: '{name}' got axis spec None but output was batched on axis 0",
)
AXIS_NAME = Rule(
    code="NNX423",
    name="axis-name-mismatch",
    summary="The axis that a transform maps over has another name in the metadata of a Variable.",
    message=(
        "`{transform}` maps over axis {axis} of `{path}` as {name}; in its `out_sharding`, {names}, that axis is "
        "{found}"
    ),
    help="name the same axis in `out_sharding` and in `transform_metadata`",
    versions=Versions(flax_since=(0, 12)),
    exception=TransformArgumentError,
)
AXES_TYPE = Rule(
    code="NNX424",
    name="axes-type",
    summary="The axes of the arguments are given in a container that says nothing about arguments.",
    message="`{option}` of `{transform}` is {given}",
    help="give one entry for all arguments, or a tuple with one for each",
    exception=TransformTypeError,
)
NOTHING_MAPPED = Rule(
    code="NNX425",
    name="nothing-mapped",
    summary="A function is mapped over an axis, and no argument has one.",
    message="`{transform}` has no axis to map over: all arguments are passed whole",
    help="say how many elements there are: `axis_size=...`",
    exception=TransformArgumentError,
)
VARYING_WITHOUT_AXIS = Rule(
    code="NNX426",
    name="varying-value-without-axis",
    summary="A value that differs between the devices of a mesh axis is to come back as if it were the same on all.",
    message="under `{transform}` the devices along {axes} have different values of `{path}`, whose spec is {spec}",
    help="name the axis in its spec\nor make one value of all: `jax.lax.pmean(value, axis_name)`",
    exception=TransformArgumentError,
)
TOO_FEW_DEVICES = Rule(
    code="NNX427",
    name="too-few-devices",
    summary="A function is mapped over devices, and there are more elements than devices.",
    message="`{transform}` is to map over {size} elements, one on each device, and there are {count} devices",
    help="map over as many elements as there are devices: `jax.local_device_count()`",
    exception=TransformArgumentError,
)
SPEC_DOES_NOT_FIT = Rule(
    code="NNX428",
    name="spec-does-not-fit",
    summary="A value is to be divided over a mesh, and has too few axes or an axis of the wrong size.",
    message="`{transform}` cannot divide `{path}`, whose shape is {shape}, as {spec} over the mesh {mesh}",
    help="name the mesh axes of its own axes in its spec; each must divide the size of that axis",
    exception=TransformArgumentError,
)
BRANCH_STRUCTURE = Rule(
    code="NNX430",
    name="branches-differ-in-structure",
    summary="The branches of a conditional return or leave behind different structures.",
    message="`{path}` is {one} after `{first}` of `{transform}` and {other} after `{second}`",
    help="let all branches return the same structure and make the same edits",
    exception=TransformTypeError,
)
BRANCH_TYPE = Rule(
    code="NNX431",
    name="branches-differ-in-type",
    summary="The branches of a conditional give one value different shapes or dtypes.",
    message="`{path}` is {one} after `{first}` of `{transform}` and {other} after `{second}`",
    help="convert one of them: `jnp.asarray(x, dtype)`, `jnp.broadcast_to(x, shape)`",
    exception=TransformTypeError,
)
LOOP_OBJECT = Rule(
    code="NNX432",
    name="replaced-loop-object",
    summary="A step of a loop returns another object in the carry than the one that it was given.",
    message="a step of `{transform}` returns another `{value}` as `{path}` than it was given",
    help="write into what was given, and return that: `variable[...] = value`",
    exception=TransformArgumentError,
    in_flax="Carry references must be the same between iterations; "
    "scan Variable identity must be preserved across iterations",
)
LOOP_STRUCTURE = Rule(
    code="NNX433",
    name="edit-in-loop",
    summary="A step of a loop edits the structure of an object that goes from step to step.",
    message="`{path}` is {one} before a step of `{transform}` and {other} after it",
    help="change values only: `variable[...] = value`\nadd attributes before the loop",
    exception=TransformArgumentError,
)
LOOP_TREE = Rule(
    code="NNX434",
    name="loop-carry-structure",
    summary="A step of a loop returns a carry of another structure than the one that it was given.",
    message="the carry goes into a step of `{transform}` as {one} and comes out as {other}",
    help="return the same containers",
    exception=TransformTypeError,
)
LOOP_TYPE = Rule(
    code="NNX435",
    name="loop-carry-type",
    summary="A step of a loop changes the shape or the dtype of a value that goes from step to step.",
    message="`{path}` goes into a step of `{transform}` as {one} and comes out as {other}",
    help="convert it: before the loop, or at the end of the step",
    exception=TransformTypeError,
)
LOOP_CONDITION = Rule(
    code="NNX436",
    name="write-in-loop-condition",
    summary="The condition of a loop writes to an object.",
    message="`cond_fun` of `{transform}` changes `{path}`; a condition can only read",
    help="do it in `body_fun`",
    exception=TransformArgumentError,
)
SCAN_BROADCAST = Rule(
    code="NNX437",
    name="write-under-broadcast-axis",
    summary="A scanned function writes to something that is broadcast to all steps.",
    message="the function under `{transform}` changes `{path}`, whose axis is None: each step gets it as it was",
    help="carry it: `nnx.Carry` in the place of `None`, or `nnx.StateAxes({{nnx.BatchStat: nnx.Carry, ...: None}})`\n"
    "or capture it instead of passing it",
    exception=TransformArgumentError,
)
SCAN_AXES = Rule(
    code="NNX438",
    name="scan-axes",
    summary="`in_axes` or `out_axes` of a scan do not say what is carried and what is scanned over.",
    message="`{option}` of `{transform}` is {given}: {problem}",
    help="{mend}",
    exception=TransformArgumentError,
    in_flax="{flax}",
    versions=OF_TODAY,
    fix=Fixable.UNSAFE,
)
SCAN_LENGTH = Rule(
    code="NNX439",
    name="scan-length",
    summary="The number of steps of a scan is not known, or values disagree about it.",
    message="`{transform}` does not know its number of steps: {problem}",
    help="scan over axes of the same size, or give `length` if there are none",
    exception=TransformArgumentError,
)

MISSING_POSITION = Rule(
    code="NNX440",
    name="missing-position",
    summary="An option of a transform names a position where the call has no argument.",
    message="`{option}` of `{transform}` has {given}, and the call has this many positional arguments: {count}",
    help="give positions as integers, and pass these arguments by position",
    exception=TransformArgumentError,
)
COTANGENT_MISMATCH = Rule(
    code="NNX441",
    name="cotangent-mismatch",
    summary="A cotangent does not have the structure or the types of the result that it belongs to.",
    message="the cotangent given to what `{transform}` returned does not fit the result: {problem}",
    help="give a cotangent of the structure of the result: `jax.tree.map(jnp.ones_like, result)`",
    exception=TransformArgumentError,
)
TANGENT_MISMATCH = Rule(
    code="NNX442",
    name="tangent-mismatch",
    summary="Tangents do not have the structure or the types of the arguments that they belong to.",
    message="the tangents given to `{transform}` do not fit the arguments: {problem}",
    help="give a tangent of the structure of each argument: a module for a module, a Variable for a Variable",
    exception=TransformTypeError,
)
MISSING_VJP_RULES = Rule(
    code="NNX443",
    name="missing-vjp-rules",
    summary="A function under `nnx.custom_vjp` or `jax.custom_vjp` is called before its derivative is defined.",
    message="`{name}` is under `{transform}`, and has no forward and backward rule",
    help="define them: `{name}.defvjp(fwd, bwd)`",
    exception=TransformArgumentError,
)
VJP_RULE_RESULT = Rule(
    code="NNX444",
    name="vjp-rule-result",
    summary="The forward rule of a custom derivative returns no pair, or the backward rule not one cotangent for each.",
    message="`{transform}`: {problem}",
    help="`fwd` returns `(result, residuals)`, `bwd` a tuple with a cotangent for each differentiated argument",
    exception=TransformTypeError,
)
VJP_COTANGENT = Rule(
    code="NNX445",
    name="vjp-rule-cotangent",
    summary="A cotangent that the backward rule of `nnx.custom_vjp` returns does not fit the argument.",
    message="the cotangent of `{path}` that the backward rule of `{transform}` returns does not fit: {problem}",
    help="return cotangents of the structure of the arguments, or `None` for zero",
    exception=TransformTypeError,
)
VJP_FORWARD_DIFFERS = Rule(
    code="NNX446",
    name="vjp-forward-differs",
    summary="The forward rule of `nnx.custom_vjp` does to its arguments what the function does not do.",
    message="the forward rule of `{transform}` writes or returns something else than the function",
    help="call the function in the forward rule, so that both do the same to their arguments",
    exception=TransformArgumentError,
)
VJP_OF_CAPTURED = Rule(
    code="NNX416",
    name="vjp-of-captured",
    summary="A derivative is asked for with respect to what a function under `nnx.custom_vjp` captures.",
    message="`{path}` is differentiated, and the rules of `{transform}` say nothing about it, as it is no argument by "
    "position",
    help="pass it by position; or, if it is a constant to the derivative, through `jax.lax.stop_gradient`",
    exception=TransformArgumentError,
)
VJP_BACKWARD_WRITE = Rule(
    code="NNX447",
    name="vjp-backward-write",
    summary="The backward rule of `nnx.custom_vjp` writes to an object.",
    message="the backward rule of `{transform}` writes to `{path}`, and nothing of a backward pass comes back",
    help="write in the function, or return the value as a cotangent",
    exception=TransformArgumentError,
)
NOT_A_TRANSFORM = Rule(
    code="NNX448",
    name="not-a-transform",
    summary="`nnx.cached_partial` gets a function that takes what is kept to no transform of nnx.",
    message="`{transform}` needs a function under a transform of nnx, and got {given}",
    help="transform it first: `nnx.cached_partial(nnx.jit(f), model)`",
    exception=TransformArgumentError,
    fix=Fixable.SAFE,
)
CACHED_STRUCTURE = Rule(
    code="NNX449",
    name="cached-structure-edited",
    summary="A function edits the structure of an argument that `nnx.cached_partial` or `nnx.jit_partial` keeps.",
    message="the function edits the structure of `{path}`, which `{transform}` keeps",
    help="write to Variables only, or pass the object at each call: `nnx.jit` is as fast",
    exception=GraphError,
)

TRANSFORM_OPERANDS = Rule(
    code="NNX403",
    name="transform-operands",
    summary="A transform gets what a function returns, or, where it wraps the function, its arguments too.",
    message="`{transform}` takes {takes}: it gets {given}",
    help="{mend}",
    fix=Fixable.SAFE,
)
BRANCHES_IN_SEQUENCE = Rule(
    code="NNX406",
    name="branches-not-in-sequence",
    summary="The branches of `nnx.switch` are given as arguments of their own.",
    message="`{transform}` takes its branches in one sequence, and gets {given} as its second argument",
    help="put them into a list: `{transform}(index, [f, g], ...)`",
    fix=Fixable.SAFE,
)
AXES_IN_LIST = Rule(
    code="NNX417",
    name="axes-in-list",
    summary="The axes of the arguments are given in a list, which flax takes for another structure than the arguments.",
    message="`{option}` of `{transform}` is a list, and the arguments are a tuple",
    help="write a tuple",
    versions=Versions(nnxkit=False),
    fix=Fixable.SAFE,
)
MODULE_MAPPED = Rule(
    code="NNX418",
    name="module-mapped",
    summary="A module that was made once is mapped over, as if its parameters had an axis for the elements.",
    message="`{transform}` maps over axis {axis} of all Variables of `{name}`, which was made once and has no axis for "
    "the elements",
    help="pass it whole: `in_axes={axes}`",
    versions=OF_TODAY,
    fix=Fixable.UNSAFE,
)
KEYWORD_ONLY = Rule(
    code="NNX419",
    name="keyword-only-parameter",
    summary="A function with keyword-only parameters is under a transform of flax that passes everything by position.",
    message="`{name}` has the keyword-only {parameters}, and `{transform}` passes all arguments by position",
    help="transform a function without them: `{transform}(lambda f, x: f(x))`",
    versions=Versions(flax_since=(0, 9), nnxkit=False),
    fix=Fixable.UNSAFE,
)
MODE_RESTRICTED = Rule(
    code="NNX450",
    name="mode-restricted-transform",
    summary="A transform is used in a mode that flax does not have it in.",
    message="`{transform}` does not work {mode} in flax",
    help="{mend}",
    versions=Versions(flax_since=(0, 12), nnxkit=False),
    fix=Fixable.SAFE,
)
PARTIAL_ARRAY = Rule(
    code="NNX451",
    name="cached-bare-array",
    summary="An object that `nnx.cached_partial` keeps holds a bare array.",
    message="`{name}` holds the bare array `{path}`, and `{transform}` of flax keeps objects with Variables only",
    help="wrap it: `nnx.Variable(...)`",
    versions=Versions(nnxkit=False),
    fix=Fixable.UNSAFE,
)
PARTIAL_STALE = Rule(
    code="NNX452",
    name="cached-partial-stale",
    summary="An object is changed after `nnx.cached_partial` has taken it over, and the partial does not see that.",
    message="`{name}` is kept by `{transform}` as it was: {action} after that is not seen, only new values of its "
    "Variables are",
    help="change it before, or pass it at each call: `nnx.jit` is as fast",
    severity=Severity.WARNING,
)
PARTIAL_VARIABLE = Rule(
    code="NNX453",
    name="jit-partial-variable",
    summary="A function under `nnx.jit_partial` is called with a Variable or a module.",
    message="`{name}` holds Variables, and what `{transform}` returns takes these with its first arguments only",
    help="give it to `{transform}`, or use `nnx.jit`",
    versions=Versions(nnxkit=False),
)
ABSTRACT_CALLED = Rule(
    code="NNX471",
    name="abstract-model-called",
    summary="A model of which only the shapes were computed is called.",
    message="`{name}` holds shapes and no arrays: `eval_shape` computes nothing else",
    help="put arrays into it first: `nnx.update(model, state)`, or `nnx.merge(graphdef, state)`",
)
STACKED_CALLED = Rule(
    code="NNX474",
    name="stacked-module-called",
    summary="A module that was made under a map, with an axis for the members, is used as if it were one, or a list.",
    message="`{name}` was made under a map: each of its Variables has an axis for the members, and {problem}",
    help="{mend}",
)
MODULE_AS_BRANCH = Rule(
    code="NNX476",
    name="module-as-branch",
    summary="A module is a branch of `nnx.cond` or `nnx.switch`, which flax takes for data and cannot call.",
    message="the branch `{name}` of `{transform}` is {given}, which flax takes apart as data and cannot call",
    help="make a function of it: `lambda model, x: model.{attr}(x)`, with the model among the operands",
    versions=Versions(flax_since=(0, 10), nnxkit=False),
)
STEP_PARAMETERS = Rule(
    code="NNX454",
    name="step-parameters",
    summary="A loop calls its step with another number of arguments than the function takes.",
    message="`{transform}` calls the step with {gets}, and the function takes {count}",
    help="let the step take {gets}",
)
UNBOUND_AXIS_NAME = Rule(
    code="NNX473",
    name="unbound-axis-name",
    summary="A sum or mean goes over a named axis, and no transform maps over one of that name.",
    message="`{name}` goes over the axis `{axis}`, and no transform around it maps over an axis of that name",
    help="name the axis where it is mapped over: `axis_name='{axis}'`\n"
    "or leave the call out: under `jit` alone an array is whole, also where it is divided over devices",
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
