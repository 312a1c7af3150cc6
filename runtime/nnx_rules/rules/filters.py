"""NNX30 to NNX32: filters, and the results of the functions that take them."""

from nnx_rules.errors import FilterError, FilterTypeError, GraphError
from nnx_rules.registry import Fixable, Rule, Severity, Versions

UNREACHABLE_FILTER = Rule(
    code="NNX301",
    name="unreachable-filter",
    summary="A filter can never match, because earlier filters take everything that it could take.",
    message="filter {position}, `{filter}`, can never match: {earlier} takes everything that it could take",
    help="put narrower filters before wider ones",
    exception=FilterError,
    fix=Fixable.SAFE,
)
ELLIPSIS_NOT_LAST = Rule(
    code="NNX302",
    name="ellipsis-not-last",
    summary="`...` or `True` stands before another filter.",
    message="`{filter}` matches everything, so it can only be the last filter; here it is filter {position}",
    help="move it to the end",
    exception=FilterError,
    in_flax="`...` or `True` can only be used as the last filters",
    fix=Fixable.SAFE,
)
DUPLICATE_FILTER = Rule(
    code="NNX303",
    name="duplicate-filter",
    summary="The same filter stands twice; the second one never matches.",
    message="filter {position}, `{filter}`, is the same as {earlier}, so it can never match",
    help="remove it and its target",
    severity=Severity.WARNING,
    exception=FilterError,
    fix=Fixable.SAFE,
)
NON_EXHAUSTIVE_SPLIT = Rule(
    code="NNX304",
    name="non-exhaustive-split",
    summary="The filters of a split do not take every leaf of the node.",
    message="no filter takes {leaves}",
    help="add a filter for it, or `...` for the rest",
    exception=FilterError,
    in_flax="Non-exhaustive filters, got a non-empty remainder",
    fix=Fixable.SAFE,
)
NON_EXHAUSTIVE_PREFIX = Rule(
    code="NNX305",
    name="non-exhaustive-prefix",
    summary="A mapping from filters to axes or shardings does not take every Variable of the node.",
    message="no filter of this mapping takes {leaves}",
    help="add `...: None` for the rest",
    exception=FilterError,
    in_flax="No filter matched",
    fix=Fixable.SAFE,
)
INVALID_FILTER = Rule(
    code="NNX306",
    name="invalid-filter",
    summary="A value is not a filter.",
    message="{value} is not a filter",
    help="{mend}",
    exception=FilterTypeError,
    fix=Fixable.SAFE,
)
STRING_FILTER = Rule(
    code="NNX307",
    name="string-filter",
    summary="A string filter means the tag of a random stream, not the name of an attribute or a collection.",
    message=(
        "the filter {value} means the tag of a random stream; it matches no attribute and no collection of that name"
    ),
    help="write {mend}",
    fix=Fixable.UNSAFE,
)
MODULE_TYPE_FILTER = Rule(
    code="NNX308",
    name="module-type-filter",
    summary="A module class filters a state, whose leaves are Variables and arrays; it matches nothing.",
    message="`{filter}` matches nothing: {kind}",
    help="filter by a type of Variable, or take the state of the submodule: `nnx.state(model.encoder)`",
)
PATH_NEVER_MATCHES = Rule(
    code="NNX309",
    name="path-never-matches",
    summary="A filter asks for a component that no path has: a dotted path, a string of digits, another name.",
    message="`{filter}` matches a whole component of the path, and no component is {value}",
    help="write {mend}",
    fix=Fixable.UNSAFE,
)
PREDICATE_ARITY = Rule(
    code="NNX310",
    name="filter-predicate-arity",
    summary="A callable filter takes two arguments, the path and the value.",
    message="a callable filter is called with (path, value), but this one takes {given}",
    help="write `lambda path, value: ...`; each component of the path is an element, such as `path[-1]`",
    fix=Fixable.SAFE,
)
CONTRADICTORY_FILTER = Rule(
    code="NNX311",
    name="contradictory-filter",
    summary="A filter can match nothing, whatever the model.",
    message="`{filter}` can match nothing",
    help="{mend}",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)
NOT_ARITY = Rule(
    code="NNX312",
    name="not-filter-arity",
    summary="`nnx.Not` takes exactly one filter.",
    message="`nnx.Not` takes one filter, and got {given}",
    help="put them in a tuple: `nnx.Not((A, B))`",
    exception=FilterTypeError,
    fix=Fixable.SAFE,
)
SPLIT_ARITY = Rule(
    code="NNX313",
    name="split-unpack-arity",
    summary="`nnx.split` returns a graphdef and one State a filter; the number of targets differs.",
    message="`{function}` returns {expected} values here, but is unpacked into {given}",
    help="use one target for each of them: {mend}",
    fix=Fixable.UNSAFE,
)
SPLIT_NOT_UNPACKED = Rule(
    code="NNX314",
    name="split-not-unpacked",
    summary="The tuple that `nnx.split` returns is used as if it were a State.",
    message="`{name}` is the tuple (graphdef, state) that `nnx.split` returns, not a State",
    help="write `graphdef, {name} = nnx.split(...)`",
    fix=Fixable.SAFE,
)
STATE_ARITY = Rule(
    code="NNX315",
    name="state-unpack-arity",
    summary="`nnx.state` with one filter returns one State; unpacking it gives the names of its keys.",
    message="`{function}` returns one State here; unpacking it into {given} targets gives keys, not States",
    help="give one filter for each target, or take the State as one",
    fix=Fixable.UNSAFE,
)
POP_WITHOUT_FILTER = Rule(
    code="NNX316",
    name="pop-without-filter",
    summary="`nnx.pop` needs at least one filter.",
    message="`nnx.pop` is called without a filter",
    help="name what to remove, for instance `nnx.Intermediate`",
    exception=FilterError,
    fix=Fixable.UNSAFE,
)
POP_SHARED = Rule(
    code="NNX317",
    name="pop-shared-variable",
    summary="`nnx.pop` removes a Variable that two attributes share at its first path only.",
    message="`{path}` and `{other_path}` are the same Variable; `nnx.pop` removes only the first",
    help="assign the Variable once",
    severity=Severity.WARNING,
    versions=Versions(nnxkit=False),
)
POP_FROM_IMMUTABLE = Rule(
    code="NNX318",
    name="pop-from-immutable",
    summary="`nnx.pop` reaches a Variable in a list or tuple, from which it cannot remove it.",
    message="`{path}` is in {value}, from which `nnx.pop` cannot remove it",
    help="use `nnx.List`",
    exception=GraphError,
)
DIFFSTATE_ARGUMENTS = Rule(
    code="NNX319",
    name="diffstate-arguments",
    summary="`nnx.DiffState` takes an argument number and a filter.",
    message="`nnx.DiffState` takes an argument number and a filter, and got {given}",
    help="write `nnx.DiffState({number}, {filter})`",
    fix=Fixable.SAFE,
)
UNHASHABLE_FILTER_KEY = Rule(
    code="NNX320",
    name="unhashable-filter-key",
    summary="A list is the key of a filter mapping; keys must be hashable.",
    message="a list cannot be the key of a filter mapping",
    help="write a tuple",
    fix=Fixable.SAFE,
)
PYTHON_OPERATOR_ON_FILTERS = Rule(
    code="NNX321",
    name="python-operator-on-filters",
    summary="Filters are joined by `or`, `and` or `not` of Python, which make no filter of them.",
    message="`{filter}` is {result}: `{operator}` of Python does not join filters",
    help="write {mend}",
    fix=Fixable.UNSAFE,
)

SPLIT_ORDER = Rule(
    code="NNX322",
    name="split-unpack-order",
    summary="The States of a split are unpacked into each other's names: they come in the order of the filters.",
    message="`{one}` takes {first}, and `{other}` {second}: {order}",
    help="put the names{or_filters} into the other order",
)
RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
