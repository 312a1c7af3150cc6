"""NNX33 to NNX35: merge, update, state, contexts, sharing."""

from nnx_rules.errors import ContextError, GraphError, StateArgumentError, StateMismatchError
from nnx_rules.registry import Fixable, Rule, Severity, Versions

MERGE_MISSING_STATE = Rule(
    code="NNX331",
    name="merge-missing-state",
    summary="`nnx.merge` does not get every State that the split produced.",
    message="the States given do not hold {leaves}",
    help="pass every State that `nnx.split` returned",
    exception=StateMismatchError,
    in_flax="Incorrect number of leaves",
    fix=Fixable.SAFE,
)
MERGE_UNKNOWN_PATH = Rule(
    code="NNX332",
    name="merge-unknown-path",
    summary="A State given to `nnx.merge` has leaves that the graphdef does not know.",
    message="the States given hold {leaves}, which the graphdef does not know",
    help="pass the States of the same split",
    exception=StateMismatchError,
)
MERGE_WRONG_TYPE = Rule(
    code="NNX333",
    name="merge-wrong-variable-type",
    summary="A State given to `nnx.merge` has a Variable of another type than the graphdef records.",
    message="`{path}` is a `{given}` in the State and a `{expected}` in the graphdef",
    help="pass the States of the same split",
    exception=StateMismatchError,
)
MERGE_ARGUMENTS = Rule(
    code="NNX334",
    name="merge-arguments",
    summary="`nnx.merge` takes a graphdef first and States after it.",
    message="`nnx.merge` got {given}",
    help="write `nnx.merge(graphdef, state, ...)`",
    exception=StateArgumentError,
    fix=Fixable.SAFE,
    in_flax="merge() missing 1 required positional argument: 'state'",
)
UPDATE_UNKNOWN_PATH = Rule(
    code="NNX335",
    name="update-unknown-path",
    summary="`nnx.update` gets a path that the node does not have.",
    message="the State holds `{path}`, which `{cls}` does not have",
    help="check the State's origin; new attributes are added by assignment",
    exception=StateMismatchError,
)
UPDATE_SHAPE = Rule(
    code="NNX336",
    name="update-shape",
    summary="`nnx.update` gets an array of another shape than the Variable has.",
    message="`{path}` has shape {expected}, and the State brings shape {given}",
    help="replace the value on purpose with `variable.set_value(...)`",
    exception=StateMismatchError,
)
UPDATE_ARGUMENTS = Rule(
    code="NNX337",
    name="update-arguments",
    summary="`nnx.update` takes a node first and States after it; `nnx.replace_by_pure_dict` a State and a dict.",
    message="`{function}` got {given}",
    help=(
        "what is changed comes first, and what goes into it after it: `nnx.update(node, state, ...)`; "
        "`nnx.state(node)` is the State of a node"
    ),
    exception=StateArgumentError,
    fix=Fixable.SAFE,
)
UPDATE_KIND = Rule(
    code="NNX338",
    name="update-subgraph-with-leaf",
    summary="`nnx.update` gets a leaf where the node has a submodule, or the reverse.",
    message="`{path}` is {expected} in the node and {given} in the State",
    help="pass a State of the same structure",
    exception=StateMismatchError,
)
DUPLICATE_NODE = Rule(
    code="NNX339",
    name="tree-mode-sharing",
    summary="A node is shared or part of a cycle where only trees are supported.",
    message="`{path}` and `{other_path}` are the same {value}, which a tree cannot express",
    help="use graph mode, or make the reference unique",
    exception=GraphError,
    in_flax="does not support shared references; Duplicate {type} found at paths",
)
NOT_A_NODE = Rule(
    code="NNX340",
    name="state-of-non-node",
    summary="A graph function is given something that has no state.",
    message="`{function}` takes a module, Pytree or container, and got {given}",
    help="pass the module itself",
    exception=StateArgumentError,
)
CONTEXT_MISSING = Rule(
    code="NNX341",
    name="update-context-missing",
    summary="A graph update context is used outside its scope, or without the option that it needs.",
    message="{problem}",
    help="open `nnx.update_context(tag)` around both sides",
    exception=ContextError,
    fix=Fixable.UNSAFE,
)
STATE_CONFLICT = Rule(
    code="NNX342",
    name="state-conflict",
    summary="Two States hold a leaf and a subtree at the same path.",
    message="`{path}` is a leaf in one State and a subtree in another",
    help="merge States of the same structure",
    exception=StateMismatchError,
)
DUPLICATE_REFERENCE = Rule(
    code="NNX343",
    name="duplicate-reference",
    summary="The same array or Variable is reachable by two paths where each must be unique.",
    message="the same object is found at {paths}",
    help="copy one of them, or pass `allow_duplicates=True` where it is offered",
    exception=GraphError,
    in_flax="Found duplicate at path",
)
MERGE_DUPLICATE_LEAF = Rule(
    code="NNX344",
    name="merge-duplicate-leaf",
    summary="Two of the States given to `nnx.merge` hold the same leaf.",
    message="two of the States given hold {leaves}",
    help="pass States whose filters exclude each other, or join them first: `nnx.merge_state(first, second)`",
    versions=Versions(flax_since=(0, 11)),
    exception=StateMismatchError,
)
MERGE_GRAPHDEFS = Rule(
    code="NNX345",
    name="merge-different-graphdefs",
    summary="The GraphStates given to `nnx.merge` come from different graphs.",
    message="a GraphState is merged with {given}",
    help="pass the parts of one `nnx.unpack`",
    exception=StateMismatchError,
    in_flax="GraphDef must be the same; Expected GraphState object",
)
MERGE_LEAF_COUNT = Rule(
    code="NNX346",
    name="merge-leaf-count",
    summary="A list of leaves given to `nnx.merge` is not as long as the graphdef has leaves.",
    message="the graphdef has {expected} leaves, and the list given holds {given}",
    help="pass all leaves, in the order of `nnx.flatten(node, with_paths=False)`",
    exception=StateMismatchError,
)
UPDATE_IMMUTABLE = Rule(
    code="NNX347",
    name="update-immutable-container",
    summary="`nnx.update` reaches a bare array in a tuple or a registered class, into which it cannot write.",
    message="`{path}` is in {value}, into which `nnx.update` cannot write",
    help="keep it in a Variable, an `nnx.List` or an `nnx.Dict`",
    exception=GraphError,
)
TREE_MODE_OBJECT = Rule(
    code="NNX348",
    name="tree-mode-object",
    summary="An `nnx.Object`, or a class with `pytree=False`, is used in tree mode, which takes JAX pytrees only.",
    message="`{function}` got a `{cls}` in tree mode, and that class is no JAX pytree",
    help="derive the class from `nnx.Pytree`, or use graph mode",
    exception=GraphError,
    in_flax="pytree=False; Found at path ...",
)
RECURSIVE_CONTAINER = Rule(
    code="NNX349",
    name="recursive-container",
    summary="A plain list, tuple or dict contains itself.",
    message="`{path}` is the {value} at `{other_path}` itself, and only Pytrees may be part of a cycle",
    help="use `nnx.List` or `nnx.Dict`, whose identity is kept",
    exception=GraphError,
)

REPEATED_MODULE = Rule(
    code="NNX350",
    name="repeated-module",
    summary="A list of layers is made by repeating one layer.",
    message="the same {value} is repeated: one layer with one set of parameters, several times",
    help="make a layer for each: `[Layer(...) for _ in range(n)]`",
    fix=Fixable.UNSAFE,
)
SHARED_UNDER_JAX = Rule(
    code="NNX351",
    name="shared-object-under-jax",
    summary="An object that holds something twice is an argument of a `jax` transform, which makes two of it.",
    message="`{name}{path}` and `{name}{other_path}` are the same {value}; `{transform}` takes them for two: {harm}",
    help="use the transform of `nnx`, which keeps references",
    fix=Fixable.UNSAFE,
)
REFERENCE_CYCLE = Rule(
    code="NNX354",
    name="reference-cycle",
    summary="A module holds itself, directly or through a part of it.",
    message="`{cls}{path}` leads back to the object itself: no function of JAX can take it as a pytree",
    help="derive it from `nnx.Object`, or define it with `pytree=False`",
    severity=Severity.WARNING,
    default=False,
    fix=Fixable.UNSAFE,
)
FOREIGN_STATE = Rule(
    code="NNX355",
    name="foreign-state",
    summary="`nnx.merge` gets a graphdef and a State of objects of different classes.",
    message="the graphdef is that of {one}, and the State that of {other}",
    help="pass the State of the same split",
)
STRING_INDICES = Rule(
    code="NNX356",
    name="string-indices",
    summary="A State has strings in the place of the indices of a list.",
    message="`{name}` has integers for the elements of its list, and gets strings",
    help="convert them: `nnx.restore_int_paths(...)`",
    fix=Fixable.UNSAFE,
)
FLAT_STATE_AS_DICT = Rule(
    code="NNX357",
    name="flat-state-as-dict",
    summary="A flat State is used like a dict; it is a sequence of pairs.",
    message="a flat State is a sequence of (path, value), and has no {what}",
    help="make a dict of it: `dict(flat)`",
    versions=Versions(flax_since=(0, 10, 4)),
    fix=Fixable.SAFE,
)
STATE_KEY_SHADOWED = Rule(
    code="NNX358",
    name="state-key-shadowed",
    summary="An entry of a State has the name of a method of States, and is read as an attribute.",
    message="`{name}` is the method of the State, and not its entry",
    help='write `["{key}"]`',
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)
CALL_PAIR = Rule(
    code="NNX359",
    name="call-pair",
    summary="`nnx.call` gets a graphdef and a State as two arguments.",
    message="`{name}` takes a pair (graphdef, state), and gets {count} arguments",
    help="write `{name}((graphdef, state))`",
    fix=Fixable.SAFE,
)
SHARED_BUFFERS = Rule(
    code="NNX360",
    name="shared-buffers-donated",
    summary="An object and a copy of it, which share their arrays, are donated together.",
    message="`{name}` and `{other}` share their arrays, as `nnx.clone` copies Variables only, and both are donated",
    help="copy the arrays too: `nnx.clone(..., arrays=True)`",
    fix=Fixable.SAFE,
)

STATE_ARITHMETIC = Rule(
    code="NNX361",
    name="state-arithmetic",
    summary="A State is added, multiplied or divided, as if it were an array.",
    message="`{name}` computes with a State, which is a tree of arrays",
    help="compute with its leaves: {mend}",
    fix=Fixable.SAFE,
)
LEAF_VALUE = Rule(
    code="NNX362",
    name="leaf-value",
    summary="A leaf of a State is read like a Variable: functions of JAX go down to the arrays.",
    message="`{name}` is an array here, and {problem}: functions of JAX look into the Variables",
    help="use `{name}` itself, or give `is_leaf=lambda x: isinstance(x, nnx.Variable)`",
    fix=Fixable.SAFE,
)
COPIED_WEIGHTS = Rule(
    code="NNX363",
    name="copied-weights",
    summary="Weights are tied by copying them: the copies are equal until the first step of training.",
    message="`{name}` gets a copy of `{source}`: each is trained by itself from here on",
    help="share the Variable, or use the one layer for both: `embed.attend(x)`, `x @ layer.kernel.T`",
    severity=Severity.WARNING,
)
SELF_UPDATE = Rule(
    code="NNX364",
    name="self-update",
    summary="What should be a copy of an object is another name of it: updated from itself, or put in a copy's place.",
    message="`{name}` and `{other}` are one object{so}",
    help="make the second one a copy where it is made: `nnx.clone({other})`",
    severity=Severity.WARNING,
)
STATE_UNKNOWN_KEY = Rule(
    code="NNX365",
    name="state-unknown-key",
    summary="A State is asked for an entry that it does not have.",
    message="{problem}",
    help="{mend}",
    fix=Fixable.SAFE,
)
KEY_PATH_AS_STRINGS = Rule(
    code="NNX366",
    name="key-path-as-strings",
    summary="The path that JAX gives for a leaf is taken for strings, or its keys for others than they are.",
    message="{problem}: the elements of `{path}` are keys of JAX, such as `{first}`, {held}",
    help="look into `jax.tree_util.keystr({path})`, or ask an element for its `key` in a State, its `name` in a module",
)
MAPPED_TREES_DIFFER = Rule(
    code="NNX367",
    name="mapped-trees-differ",
    summary="JAX is to go through two trees side by side that do not have the same leaves.",
    message="{problem}: `{function}` goes through them side by side",
    help="{mend}",
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
