"""States and their leaves taken for something else: arithmetic on a State (NNX361), ``.value`` of a leaf (NNX362), keys
that a State does not have (NNX365).

To JAX a State is a tree, as a dict is, and its leaves are plain arrays: functions that go over trees look into the
Variables. Invariant: only what certainly is a State, or a leaf of one, is meant.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import ANY_NAME, attribute_names
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import LibClass, UserClass
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import Called, Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.states import PartVal, StateVal
from nnx_lint.model.strings import fits
from nnx_lint.model.values import Obj, present
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.construction.missing import is_known, names_of
from nnx_lint.rules.program import ancestors, enclosing, given, is_asked_for, is_tried
from nnx_lint.syntax_walk import remembered, walk
from nnx_rules.rules import graphs as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.modules import Module
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
    report(module, node, name=module.source.segment(node) if len(name) < SHORT else name, mend=mend)


@judges_calls(rules.STATE_ARITHMETIC, "builtins.sum")
def states_summed(event: Called, report: Reporter) -> None:
    """``sum`` of gradients: it adds them with ``+``."""
    held = event.args[0] if len(event.args) == 1 else None
    if isinstance(held, Seq) and held.items and all(_is_state_of_object(item) for item in held.items):
        name = text_of(event.nodes[0])
        mend = f"`jax.tree.map(lambda *leaves: sum(leaves), *{name})`"
        report(event.frame.module, event.node, name=f"sum({name})", mend=mend)


def _is_state_of_object(value: Value) -> bool:
    return isinstance(value, StateVal) and isinstance(value.of, Obj)


SHORT = 40
"""How long the name of an operand may be for a message to show the whole expression."""

# -- keys --------------------------------------------------------------------------------------------------------------


@judges(rules.STATE_UNKNOWN_KEY, Used, when=lambda event: event.what == "an index")
def state_unknown_key(event: Used, report: Reporter) -> None:
    node, module, value = event.node, event.frame.module, event.value
    if not isinstance(value, (StateVal, PartVal)) or not isinstance(node, ast.Subscript):
        return
    of, key = present(value.of), node.slice.value if isinstance(node.slice, ast.Constant) else None
    if not isinstance(of, Obj) or not isinstance(key, str) or not isinstance(node.ctx, ast.Load):
        return
    if is_tried(module, node) or is_asked_for(module, node) or _looked_for(module, node, key):
        return
    if of.cls.derives_from("nnx.List"):
        problem = "the State of an `nnx.List` has numbers for keys" if key.isdigit() else None
        mend = f"write `[{key}]`"
    else:
        problem = f"the State of {of.describe()} has no entry `{key}`" if _lacks(of, key) else None
        mend = "its keys are the names of attributes, from the object down"
    if problem is not None:
        report(module, node, problem=problem, mend=mend)


COLLECTIONS = frozenset({"params", "batch_stats"})
"""What Linen calls the first level of its variables."""


def _lacks(of: Obj, key: str) -> bool:
    """Whether an object certainly has no attribute of a name."""
    if isinstance(of.cls, LibClass):
        known = key in COLLECTIONS or ("." in key and of.cls.name not in {"Dict", "List"})
        return known and of.cls.derives_from("nnx.Module") and of.cls.name not in {"Dict", "List"}
    if not isinstance(of.cls, UserClass) or not is_known(of.cls) or ANY_NAME in attribute_names(of):
        return False
    if any(key in item.module.all_of(_sown) for item in of.cls.ancestors if isinstance(item, UserClass)):
        return False
    heirs = (of.assumed or of.origin is None) and bool(of.cls.module.project.heirs(of.cls.name))
    return not heirs and not any(fits(key, name) for name in names_of(of))


@remembered
def _sown(tree: ast.AST) -> frozenset[str]:
    """Names in the calls of a file that make attributes: ``sow``, ``perturb``, ``setattr``."""
    strings: set[str] = set()
    for call in walk(tree):
        func = call.func if isinstance(call, ast.Call) else None
        named = getattr(func, "attr", getattr(func, "id", None))
        if isinstance(call, ast.Call) and named in {"sow", "perturb", "setattr"}:
            constants = [item.value for item in call.args if isinstance(item, ast.Constant)]
            strings |= {value for value in constants if isinstance(value, str)}
    return frozenset(strings)


def _looked_for(module: Module, node: ast.AST, key: str) -> bool:
    """Whether a condition around a place names the key, as in ``if "a" in state``."""
    tests = [item.test for item in ancestors(module, node) if isinstance(item, (ast.If, ast.IfExp))]
    return any(isinstance(item, ast.Constant) and item.value == key for test in tests for item in walk(test))


# -- leaves ------------------------------------------------------------------------------------------------------------

MAPS = ("jax.tree.map", "jax.tree_util.tree_map", "jax.tree_map")
LEAVES = ("jax.tree.leaves", "jax.tree_util.tree_leaves", "jax.tree_leaves")
VARIABLE_ONLY = frozenset({"get_value", "raw_value", "set_value", "value"})
"""Attributes of a Variable that its array lacks."""


def _is_tree(value: Value | None) -> bool:
    """Whether the leaves of a value certainly are arrays: it is a State, or a module."""
    value = present(value) if value is not None else None
    return isinstance(value, StateVal) or (isinstance(value, Obj) and value.cls.derives_from("nnx.Module"))


@judges_calls(rules.LEAF_VALUE, *MAPS)
def value_of_mapped_leaf(event: Called, report: Reporter) -> None:
    args = given(event)
    func, tree = args.get(0, "f"), args.get(1, "tree")
    if args.starred or "is_leaf" in args.keywords or not isinstance(func, FuncVal) or not _is_tree(tree):
        return
    arguments = func.node.args
    parameters = [item.arg for item in (*arguments.posonlyargs, *arguments.args)]
    if parameters and func.module is event.frame.module:
        _report(event, report, func.node, parameters[0])


@judges_calls(rules.LEAF_VALUE, *LEAVES)
def value_of_listed_leaf(event: Called, report: Reporter) -> None:
    args = given(event)
    if args.starred or "is_leaf" in args.keywords or not _is_tree(args.get(0, "tree")):
        return
    module = event.frame.module
    parent = next(ancestors(module, event.node), None)
    if isinstance(parent, ast.comprehension) and parent.iter is event.node and isinstance(parent.target, ast.Name):
        whole = enclosing(module, parent, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)
        if whole is not None:
            _report(event, report, whole, parent.target.id)
    elif isinstance(parent, ast.For) and parent.iter is event.node and isinstance(parent.target, ast.Name):
        _report(event, report, parent, parent.target.id)


def _report(event: Called, report: Reporter, scope: ast.AST, name: str) -> None:
    module = event.frame.module
    for node in _read_of(scope, name):
        if not is_tried(module, node) and not is_asked_for(module, node):
            report(module, node, name=name, attribute=node.attr)


def _read_of(scope: ast.AST, name: str) -> Iterator[ast.Attribute]:
    """Where an attribute of a Variable is read of a name, in a scope that does not bind the name anew."""
    nodes = [node for node in walk(scope) if isinstance(node, ast.Name) and node.id == name]
    if sum(isinstance(node.ctx, ast.Store) for node in nodes) > 1:
        return
    for node in walk(scope):
        owner = node.value if isinstance(node, ast.Attribute) and node.attr in VARIABLE_ONLY else None
        if isinstance(node, ast.Attribute) and isinstance(owner, ast.Name) and owner.id == name:
            yield node
