"""States and their leaves taken for something else: arithmetic on a State (NNX361), leaves that are asked for what a
Variable has, or whether they are one (NNX362), keys that a State does not have (NNX365).

To JAX a State is a tree, as a dict is, and its leaves are plain arrays: functions that go over trees look into the
Variables. Invariant: only what certainly is a State, or a leaf of one, is meant.
"""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Fix
from nnx_lint.model.attributes import ANY_NAME, attribute_names
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import LibClass, UserClass
from nnx_lint.model.containers import PathDict, PureDict, Seq
from nnx_lint.model.elements import STATE_METHODS, item
from nnx_lint.model.events import Called, Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.forms import is_int, is_number
from nnx_lint.model.states import PartVal, StateVal
from nnx_lint.model.strings import HOLE, fits, text_in
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, ClassVal, Const, Obj, Other
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.construction.missing import assigned, is_known, names_of
from nnx_lint.rules.containers.entries import lacks_entry
from nnx_lint.rules.edits import replace
from nnx_lint.rules.layers.names import NAMES
from nnx_lint.rules.program import FUNCTIONS, ancestors, enclosing, given, is_asked_for, is_called, is_tried, resolved
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name, occurrences
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.names import attributes_of
from nnx_rules.rules import graphs as rules
from nnx_rules.transforms import TREE_MAPS
from nnx_rules.versions import VARIABLES_ARE_NODES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Env, Module
    from nnx_lint.model.values import Value

# -- arithmetic --------------------------------------------------------------------------------------------------------

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "jnp.add",
    ast.Mult: "jnp.multiply",
    ast.Div: "jnp.divide",
    ast.Pow: "jnp.power",
}
"""Operators that a State does not have, with the functions for its leaves; ``-`` and ``|`` are those of mappings."""


@judges(rules.STATE_ARITHMETIC, Used, when=lambda event: event.what == "an operator")
def state_arithmetic(event: Used, report: Reporter) -> None:
    node, module = event.node, event.frame.module
    if not isinstance(event.value, StateVal) or not isinstance(node, (ast.BinOp, ast.AugAssign)):
        return
    function = OPERATORS.get(type(node.op))
    if function is None or is_tried(module, node) or is_asked_for(module, node):
        return
    left, right = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
    name = text_of(left)
    mend = (
        f"`jax.tree.map({function}, {name}, {text_of(right)})`, or with a number `jax.tree.map(lambda x: ..., {name})`"
    )
    shown = module.source.segment(node) if len(name) < SHORT else name
    report(module, node, fix=partial(_over_leaves, event, left, right, function), name=shown, mend=mend)


def _over_leaves(event: Used, left: ast.expr, right: ast.expr, function: str) -> Fix | None:
    """Compute with the leaves of two States, or of a State and a number."""
    module, env, node = event.frame.module, event.frame.env, event.node
    maps, of_arrays = spelled("jax.tree.map", module, env), spelled(f"jax.numpy{function[3:]}", module, env)
    source, state = module.source, isinstance(resolved(env, left), StateVal) and isinstance(left, ast.Name)
    if maps is None or not state or not isinstance(node, ast.BinOp):
        return None
    if isinstance(resolved(env, right), StateVal) and of_arrays is not None:
        text = f"{maps}({of_arrays}, {source.segment(left)}, {source.segment(right)})"
    elif isinstance(right, ast.Constant):
        leaf = f"leaf{source.text[source.span(left).end : source.span(node).end]}"
        text = f"{maps}(lambda leaf: {leaf}, {source.segment(left)})"
    else:
        return None
    return Fix("Compute with the leaves", replace(source, node, text))


OF_ONE_ARRAY = ("abs", "exp", "isfinite", "isnan", "linalg.norm", "log", "max", "mean", "min", "sqrt", "square", "sum")
OF_ARRAYS = (
    *OF_ONE_ARRAY,
    *("clip", "cos", "log1p", "nan_to_num", "negative", "ravel", "round", "sign", "sin", "std", "tanh", "var"),
    *("add", "allclose", "array_equal", "divide", "dot", "maximum", "minimum", "multiply", "power", "subtract"),
)
"""Functions of ``jax.numpy`` that take arrays and look into no tree."""


@judges_calls(rules.STATE_ARITHMETIC, "builtins.sum")
def states_summed(event: Called, report: Reporter) -> None:
    """``sum`` of gradients: it adds them with ``+``."""
    held = event.args[0] if len(event.args) == 1 else None
    if isinstance(held, Seq) and held.items and all(_is_state_of_object(item) for item in held.items):
        name = text_of(event.nodes[0])
        mend = f"`jax.tree.map(lambda *leaves: sum(leaves), *{name})`"
        report(event.frame.module, event.node, name=f"sum({name})", mend=mend)


@judges_calls(rules.STATE_ARITHMETIC, *(f"jax.numpy.{name}" for name in ("array", "asarray", "concatenate", "stack")))
def states_joined(event: Called, report: Reporter) -> None:
    """A list of States in the place of a list of arrays."""
    held, module = event.args[0] if event.args else None, event.frame.module
    states = isinstance(held, Seq) and bool(held.items) and all(map(_is_state_of_object, held.items))
    if states and not is_tried(module, event.node):
        mend = f"`jax.tree.map(lambda *leaves: {event.name}(leaves), *states)`"
        report(module, event.node, name=text_of(event.node), mend=mend)


@judges_calls(rules.STATE_ARITHMETIC, *(f"jax.numpy.{name}" for name in OF_ARRAYS))
def state_as_array(event: Called, report: Reporter) -> None:
    """A function of arrays gets a State."""
    module = event.frame.module
    found = [place for place, held in enumerate(event.args) if held is not None and _is_state_of_object(held)]
    if found and not is_tried(module, event.node):
        names = ", ".join(text_of(event.nodes[place]) for place in found)
        report(module, event.node, name=text_of(event.node), mend=f"`jax.tree.map({event.name}, {names})`")


def _is_state_of_object(value: Value) -> bool:
    return isinstance(value, StateVal) and isinstance(value.of, Obj)


SHORT = 40
"""How long the name of an operand may be for a message to show the whole expression."""

# -- keys --------------------------------------------------------------------------------------------------------------


@judges(rules.STATE_UNKNOWN_KEY, Used, when=lambda event: event.what == "an index")
def state_unknown_key(event: Used, report: Reporter) -> None:
    node, module, value = event.node, event.frame.module, event.value
    if not isinstance(node, ast.Subscript) or not isinstance(value, (StateVal, PartVal, PureDict)):
        return
    if isinstance(value, PureDict):
        value = value.of if not module.has(ast.unparse(node.slice), _put) else UNKNOWN
    if not isinstance(value, (StateVal, PartVal)):
        return
    of, key = present(value.of), node.slice.value if isinstance(node.slice, ast.Constant) else None
    made = isinstance(node.slice, ast.JoinedStr) or _made_string(event, node.slice) is not None
    if isinstance(of, Obj) and of.cls.derives_from("nnx.List") and made and not is_tried(module, node):
        number = _made_string(event, node.slice)
        report(
            module,
            node,
            fix=partial(_number, module, node, number) if number is not None else None,
            problem="the State of an `nnx.List` has numbers for keys",
            mend=f"write `[{number}]`" if number is not None else "write the index of the element",
        )
        return
    if isinstance(of, Obj) and is_int(key) and _has_names(of) and isinstance(node.ctx, ast.Load):
        if not is_tried(module, node) and not is_asked_for(module, node):
            report(
                module,
                node,
                problem=f"the State of {of.describe()} has names for keys, and no entry `{key!r}`",
                mend="its keys are the names of attributes; gradients of several arguments need `argnums`",
            )
        return
    shown = repr(key)[1:-1]
    if isinstance(node.slice, ast.JoinedStr) and isinstance(of, Obj) and isinstance(of.cls, UserClass):
        key, shown = _pattern(event.frame, node.slice), module.source.segment(node.slice)
    if not isinstance(of, Obj) or not isinstance(key, str) or not isinstance(node.ctx, ast.Load):
        return
    if is_tried(module, node) or is_asked_for(module, node) or _looked_for(module, node, key):
        return
    if of.cls.derives_from("nnx.List"):
        problem: str | None = "the State of an `nnx.List` has numbers for keys"
        mend = f"write `[{key}]`" if key.isdigit() else "write the index of the element"
    else:
        problem = f"the State of {of.describe()} has no entry `{shown}`" if _lacks(of, key) else None
        mend = "its keys are the names of attributes, from the object down"
    if problem is not None:
        fix = partial(_number, module, node, str(int(key))) if key.isdecimal() else None
        report(module, node, fix=fix, problem=problem, mend=mend)


@judges(rules.STATE_UNKNOWN_KEY, Used, when=lambda event: isinstance(event.node, ast.Attribute))
def state_unknown_attribute(event: Used, report: Reporter) -> None:
    """``state.params``: what a State holds may be read as an attribute, too."""
    node, module, value, name = event.node, event.frame.module, event.value, event.what
    of = present(value.of) if isinstance(value, (StateVal, PartVal)) else None
    if not isinstance(of, Obj) or not isinstance(node, ast.Attribute):
        return
    if is_called(module, node) and name not in ARRAY_METHODS:
        return
    if name.startswith("_") or name in STATE_METHODS or not _has_names(of):
        return
    if not _lacks(of, name) or is_tried(module, node) or is_asked_for(module, node) or _looked_for(module, node, name):
        return
    mend = "it has the names of attributes, from the object down"
    if is_called(module, node):
        mend = f"it is a tree of arrays: `jax.tree.map(lambda leaf: leaf.{name}(...), {text_of(node.value)})`"
    report(module, node, problem=f"the State of {of.describe()} has no entry `{name}`", mend=mend)


@judges(rules.STATE_UNKNOWN_KEY, Used, when=lambda event: event.what == "an index", of=(PathDict,))
def unknown_path(event: Used, report: Reporter) -> None:
    """``flat["layers", "0", "kernel"]`` of a State that was made a dict of paths."""
    node, module, value = event.node, event.frame.module, event.value
    if not isinstance(node, ast.Subscript) or not isinstance(value, PathDict) or not isinstance(node.ctx, ast.Load):
        return
    path = _path(node.slice, value.separator)
    one_text = value.separator is None and _is_text(event.frame.env, node.slice)
    if not (path or one_text) or is_tried(module, node) or is_asked_for(module, node):
        return
    if module.has(ast.unparse(node.slice), _put):
        return
    if path is None:
        problem = f"`{text_of(node.value)}` has paths for keys, and `{text_of(node.slice)}` is one text"
        mend = 'a path is a tuple of the names of attributes and the numbers of elements: `["encoder", "kernel"]`'
        report(module, node, problem=problem, mend=mend)
        return
    part: Value = value.of
    for key in path:
        of = present(part.of) if isinstance(part, (StateVal, PartVal)) else None
        if not isinstance(of, Obj):
            return
        listed = of.cls.derives_from("nnx.List")
        if listed and isinstance(key, str):
            report(module, node, problem="the State of an `nnx.List` has numbers for keys", mend=f"write `{key}`")
            return
        if (isinstance(key, str) and _lacks(of, key)) or (isinstance(key, int) and _has_names(of)):
            mend = "a path has the names of attributes and the numbers of elements, from the object down"
            report(module, node, problem=f"the State of {of.describe()} has no entry `{key}`", mend=mend)
            return
        part = item(part, Const(key), event.frame.level)


@remembered
def _put(statement: ast.AST) -> frozenset[str]:
    """The keys, as they are written, under which a statement puts something that it does not make of what is there."""
    nodes = walk(statement)
    places = [node for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)]
    if not places:
        return frozenset()
    changed = set[ast.AST]()
    for node in nodes:
        if isinstance(node, ast.AugAssign):
            changed.add(node.target)
        elif isinstance(node, ast.Assign) and any(isinstance(target, ast.Subscript) for target in node.targets):
            read = {ast.unparse(part) for part in walk(node.value) if isinstance(part, ast.Subscript)}
            changed.update(target for target in node.targets if ast.unparse(target) in read)
    return frozenset(ast.unparse(node.slice) for node in places if node not in changed)


def _path(key: ast.expr, separator: str | None) -> list[str | int] | None:
    """The path that stands as a key, if all of it is known."""
    if isinstance(key, ast.Constant) and isinstance(key.value, str) and separator:
        return [*key.value.split(separator)]
    parts = key.elts if isinstance(key, ast.Tuple) and separator is None else []
    values = [part.value if isinstance(part, ast.Constant) else None for part in parts]
    known = [value for value in values if isinstance(value, (int, str))]
    return known if known and len(known) == len(parts) else None


def _is_text(env: Env, key: ast.expr) -> bool:
    """Whether a key certainly is a text: it is written there, joined, or the value of a name."""
    if isinstance(key, ast.Call) and isinstance(key.func, ast.Attribute) and key.func.attr == "join":
        return isinstance(key.func.value, ast.Constant) and isinstance(key.func.value.value, str)
    written = isinstance(key, ast.JoinedStr) or (isinstance(key, ast.Constant) and isinstance(key.value, str))
    return written or text_in(resolved(env, key) or UNKNOWN) is not None


ARRAY_METHODS = frozenset(
    {"astype", "block_until_ready", "flatten", "max", "mean", "min", "ravel", "reshape", "sum", "tolist"}
)
"""Methods of arrays that people call of a whole State."""


def _pattern(frame: Frame, text: ast.JoinedStr) -> str:
    """The pattern of the strings that a text with places to fill in gives, those for numbers told apart."""
    found = ""
    for part in text.values:
        if isinstance(part, ast.Constant):
            found += str(part.value)
        elif isinstance(part, ast.FormattedValue):
            value = resolved(frame.env, part.value)
            plain = part.format_spec is None and isinstance(value, (Const, Other)) and is_number(value)
            found += NUMBER if plain else HOLE
    return found


def _number(module: Module, node: ast.Subscript, number: str) -> Fix | None:
    """Ask for an element by its number."""
    return Fix(f"Write `[{number}]`", replace(module.source, node.slice, number))


def _made_string(event: Used, node: ast.expr) -> str | None:
    """What a string is made of that stands as a key: ``str(i)``, ``f"{i}"``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        own = node.func.id == "str" and event.frame.env.lookup("str") is None
        return text_of(node.args[0]) if own else None
    whole = isinstance(node, ast.JoinedStr) and len(node.values) == 1
    part = node.values[0] if isinstance(node, ast.JoinedStr) and whole else None
    return text_of(part.value) if isinstance(part, ast.FormattedValue) else None


def _has_names(of: Obj) -> bool:
    """Whether the parts of an object are attributes, and so have names."""
    return of.cls.derives_from("nnx.Module") and not any(map(of.cls.derives_from, ("nnx.List", "nnx.Dict")))


COLLECTIONS = frozenset({"params", "batch_stats"})
"""What Linen calls the first level of its variables."""


def _lacks(of: Obj, key: str) -> bool:
    """Whether an object certainly has no attribute of a name."""
    if isinstance(of.cls, LibClass) and of.cls.name == "Dict":
        return of.origin is not None and lacks_entry(of, key, of.origin[0])
    if isinstance(of.cls, LibClass):
        foreign = key in COLLECTIONS or key in NAMES.get(of.cls.canonical, ())
        known = foreign or "." in key or _is_unknown(of, of.cls, key)
        return known and of.cls.derives_from("nnx.Module") and of.cls.name != "List"
    if not isinstance(of.cls, UserClass) or not is_known(of.cls) or ANY_NAME in attribute_names(of):
        return False
    modules = (item.module for item in of.cls.lineage)
    if any(module.has(key, _sown) or module.has(ANY_NAME, _sown) for module in modules):
        return False
    if _is_pattern(key) and any(item.module.mentions(MAKING_NAMES) for item in of.cls.lineage):
        return False
    heirs = (of.assumed or of.origin is None) and of.cls.module.project.heirs.exist(of.cls.name)
    return not heirs and not any(_may_be(key, name) for name in names_of(of))


def _is_unknown(of: Obj, cls: LibClass, key: str) -> bool:
    """Whether a layer of the library that was seen to be made has nothing of a name, and the text gives it nothing."""
    known = attributes_of(cls.canonical)
    if known is None or key in known or _is_pattern(key) or of.assumed or of.origin is None:
        return False
    return key not in attribute_names(of) and not of.origin[0].has(key, assigned)


MAKING_NAMES = re.compile(r"\b(?:perturb|setattr|sow)\b")

NUMBER = "#"
"""What stands in a pattern for a number."""


def _is_pattern(key: str) -> bool:
    return NUMBER in key or HOLE in key


def _may_be(key: str, name: str) -> bool:
    """Whether a key may be a name, of which one may be known in part only."""
    if not _is_pattern(key):
        return fits(key, name)
    pattern = re.escape(key).replace(re.escape(NUMBER), r"\d+").replace(re.escape(HOLE), ".*")
    return HOLE in name or re.fullmatch(pattern, name) is not None


@remembered
def _sown(statement: ast.AST) -> frozenset[str]:
    """What may be the name of an attribute in a statement that makes some by ``sow``, ``perturb`` or ``setattr``."""
    found: set[str] = set()
    makes = False
    for node in walk(statement):
        text = node.value if isinstance(node, ast.Constant) else None
        word = text or getattr(node, "attr", getattr(node, "id", None))
        makes = makes or word in NAME_PLACES
        if isinstance(text, str):
            found.add(text)
        func = node.func if isinstance(node, ast.Call) else None
        place = NAME_PLACES.get(getattr(func, "attr", getattr(func, "id", "")))
        given = node.args[place : place + 1] if isinstance(node, ast.Call) and place is not None else []
        if given and isinstance(given[0], (ast.Attribute, ast.Name, ast.Subscript)):
            found.add(ANY_NAME)
    return frozenset(found) if makes else frozenset()


NAME_PLACES = {"sow": 1, "perturb": 0, "setattr": 1, "__setattr__": 1}
"""What makes attributes, and which of the arguments is the name."""


def _looked_for(module: Module, node: ast.AST, key: str) -> bool:
    """Whether a condition around a place names the key, as in ``if "a" in state``."""
    tests = [item.test for item in ancestors(module, node) if isinstance(item, (ast.If, ast.IfExp))]
    parts = [item for test in tests for item in walk(test)]
    if _is_pattern(key):
        return any(isinstance(item, (ast.In, ast.NotIn)) for item in parts)
    return any(isinstance(item, ast.Constant) and item.value == key for item in parts)


# -- leaves ------------------------------------------------------------------------------------------------------------

LEAVES = ("jax.tree.leaves", "jax.tree_util.tree_leaves", "jax.tree_leaves")
VARIABLE_ONLY = frozenset(
    {"copy_from", "get_metadata", "get_value", "raw_value", "replace", "set_metadata", "set_value", "type", "value"}
)
"""Attributes of a Variable that its array lacks."""
ANY_VARIABLE = frozenset({"nnx.Variable", "nnx.VariableState"})
"""What programs ask for that take Variables and arrays alike."""


def _is_tree(value: Value | None, event: Called, report: Reporter) -> bool:
    """Whether the leaves of a value certainly are arrays: it is a State, or a module."""
    value = present(value) if value is not None else None
    _, version = report.runs_on(event.frame.module)
    if version is not None and version < VARIABLES_ARE_NODES and event.frame.module.mentions("variables("):
        return False  # what `nnx.variables` returned then had the Variables themselves as leaves
    return isinstance(value, StateVal) or (isinstance(value, Obj) and value.cls.derives_from("nnx.Module"))


@judges_calls(rules.LEAF_VALUE, *TREE_MAPS)
def value_of_mapped_leaf(event: Called, report: Reporter) -> None:
    args = given(event)
    func, trees = args.get(0, "f"), [args.get(1, "tree"), *args.positional[2:]]
    if args.starred or "is_leaf" in args.keywords or not isinstance(func, FuncVal):
        return
    arguments = func.node.args
    parameters = syntax_parameters.positional_names(arguments)
    for tree, parameter in zip(trees, parameters, strict=False) if func.module is event.frame.module else ():
        _report(event, report, tree, func.node, parameter)


@judges_calls(rules.LEAF_VALUE, *LEAVES)
def value_of_listed_leaf(event: Called, report: Reporter) -> None:
    args = given(event)
    if args.starred or "is_leaf" in args.keywords:
        return
    for scope, name in _rounds_over(event.frame.module, event.node):
        _report(event, report, args.get(0, "tree"), scope, name)


def _rounds_over(module: Module, leaves: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """What goes over a list of leaves, also one that has a name first, and the name of each leaf there."""
    parent = next(ancestors(module, leaves), None)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
        name, function = parent.targets[0].id, enclosing(module, parent, *FUNCTIONS)
        if function is not None and _has_one_meaning(function, name):
            for node in occurrences(function, name):
                yield from _rounds_over(module, node) if isinstance(node.ctx, ast.Load) else ()
    elif isinstance(parent, ast.comprehension) and parent.iter is leaves and isinstance(parent.target, ast.Name):
        whole = enclosing(module, parent, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)
        if whole is not None:
            yield whole, parent.target.id
    elif isinstance(parent, ast.For) and parent.iter is leaves and isinstance(parent.target, ast.Name):
        yield parent, parent.target.id


def _report(event: Called, report: Reporter, tree: Value | None, scope: ast.AST, name: str) -> None:
    """What is read of a leaf of a State, and whether a leaf of any tree is asked to be a Variable: all are arrays."""
    module, (_, version) = event.frame.module, report.runs_on(event.frame.module)
    certain = _is_tree(tree, event, report)
    for node in _read_of(scope, name) if certain else ():
        if not is_tried(module, node) and not is_asked_for(module, node):
            report(module, node, fix=partial(_leaf_itself, module, node), name=name, problem=f"has no `{node.attr}`")
    asked = certain or version is None or version >= VARIABLES_ARE_NODES
    for call in _asked_of(scope, name) if asked else ():
        kinds = call.args[1].elts if isinstance(call.args[1], ast.Tuple) else [call.args[1]]
        known = bool(kinds) and all(_is_kind_of_variable(event, kind) for kind in kinds)
        if known and not is_tried(module, call) and not _unwraps(module, call, name):
            report(module, call, name=name, problem=f"no `{text_of(kinds[0])}`")


def _unwraps(module: Module, call: ast.Call, name: str) -> bool:
    """Whether only the array is taken out of what is a Variable: arrays are then dealt with elsewhere."""
    choice = next((item for item in ancestors(module, call) if isinstance(item, (ast.If, ast.IfExp))), None)
    chosen = choice.body if isinstance(choice, ast.If) else [choice.body] if choice is not None else []
    read = {node.attr for part in chosen for node in _read_of(part, name)}
    return bool(read) and read <= {"get_value", "raw_value", "value"}


def _is_kind_of_variable(event: Called, node: ast.expr) -> bool:
    value = resolved(event.frame.env, node)
    cls = value.cls if isinstance(value, ClassVal) else None
    return cls is not None and cls.derives_from("nnx.Variable") and getattr(cls, "canonical", "") not in ANY_VARIABLE


def _leaf_itself(module: Module, node: ast.Attribute) -> Fix | None:
    """Use the leaf, which is the array."""
    parent = next(ancestors(module, node), None)
    called = isinstance(parent, ast.Call) and parent.func is node
    read: ast.AST = parent if called and isinstance(parent, ast.Call) and not parent.args else node
    reads = {"get_value": True, "raw_value": False, "value": False}.get(node.attr) is called
    if not reads or isinstance(node.ctx, ast.Store):
        return None
    text = module.source.segment(node.value)
    return Fix(f"Use `{text}` itself", replace(module.source, read, text))


def _read_of(scope: ast.AST, name: str) -> Iterator[ast.Attribute]:
    """Where an attribute of a Variable is read of a name, in a scope that does not bind the name anew."""
    for node in walk(scope) if _has_one_meaning(scope, name) else ():
        owner = node.value if isinstance(node, ast.Attribute) and node.attr in VARIABLE_ONLY else None
        if isinstance(node, ast.Attribute) and is_name(owner, name):
            yield node


def _asked_of(scope: ast.AST, name: str) -> Iterator[ast.Call]:
    """Where it is asked of a name whether it is of some class, in a scope that does not bind the name anew."""
    for node in walk(scope) if _has_one_meaning(scope, name) else ():
        asks = isinstance(node, ast.Call) and is_name(node.func, "isinstance")
        if isinstance(node, ast.Call) and asks and len(node.args) == 2:
            asked = node.args[0]
            if is_name(asked, name):
                yield node


def _has_one_meaning(scope: ast.AST, name: str) -> bool:
    named = occurrences(scope, name)
    return sum(isinstance(node.ctx, ast.Store) for node in named) <= 1
