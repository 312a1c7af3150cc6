"""What early NNX had as methods, and what are functions since flax 0.8.4 (a part of NNX831).

Before that ``model.split(...)`` returned the graphdef after the States, which the fix turns round, and the graphdef
itself made the model: ``graphdef.merge(params, rest)``. Invariant: which of the names is the graphdef is known by what
the file does with it, or nothing is moved.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.classes import UserClass
from nnx_lint.model.states import GraphDefVal
from nnx_lint.model.values import ClassVal
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.edits import prepend_argument, replace, unsafe
from nnx_lint.rules.filters.edits import permute, unpacked_names
from nnx_lint.rules.program import ancestors, calls_in, canonical_of, is_tried
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from nnx_lint.diagnostics import Edit, Fix
    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Module

FUNCTIONS = {
    "clone": "clone",
    "extract": "state",
    "get_graphdef": "graphdef",
    "get_state": "state",
    "partition": "split",
    "pop": "pop",
    "split": "split",
    "update": "update",
}
"""The methods of a module, and the functions that take their places."""


@judges_calls(rules.LINEN_IDIOM, ".merge")
def merged_by_graphdef(event: Called, report: Reporter) -> None:
    if isinstance(event.owner, GraphDefVal):
        mend = "it is `nnx.merge(graphdef, state, ...)`"
        fix = by_function(event, "merge")
        report(event.frame.module, event.node, fix=fix, problem="a GraphDef has no `merge`", mend=mend)


@judges_calls(rules.LINEN_IDIOM, GraphDefVal)
def part_called(event: Called, report: Reporter) -> None:
    """What ``nnx.split`` returns first is called like the model; another rule judges a State (NNX464)."""
    if not is_tried(event.frame.module, event.node):
        problem = "a GraphDef is the structure of a model, and cannot be called"
        mend = "put the model together, and call that: `nnx.merge(graphdef, state)(...)`"
        report(event.frame.module, event.node, problem=problem, mend=mend)


OF_CLASSES = {
    "create_abstract": "compute its shapes by `nnx.eval_shape(lambda: {cls}(...))`",
    "init": "make an instance: `model = {cls}(...)`, and take it apart by `nnx.split(model)`",
    "partial_init": "make it in a function under `nnx.jit`: what is replaced there is not computed",
}
"""The methods of the class of a module that made an instance or only its shapes, with what there is instead."""


@judges_calls(rules.LINEN_IDIOM, *(f".{name}" for name in OF_CLASSES))
def called_of_class(event: Called, report: Reporter) -> None:
    owner, func = event.owner, event.node.func if isinstance(event.node, ast.Call) else None
    cls = owner.cls if isinstance(owner, ClassVal) else None
    if not isinstance(cls, UserClass) or cls.is_open or cls.opaque or not isinstance(func, ast.Attribute):
        return
    own = cls.lineage
    known = any(func.attr in {*item.methods, *item.attributes, *item.fields} for item in own)
    if known or cls.may_be_extended or is_tried(event.frame.module, event.node):
        return
    if cls.library is not None and cls.library.canonical == "nnx.Module":
        mend = OF_CLASSES[func.attr].format(cls=cls.name)
        report(event.frame.module, event.node, problem=f"the module `{cls.name}` has no `{func.attr}`", mend=mend)


def by_function(event: Called, function: str) -> Fix | None:
    """Call a function with what a method was called of as its first argument."""
    module, call = event.frame.module, event.node
    name = spelled(f"nnx.{function}", module, event.frame.env)
    if name is None or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    first = prepend_argument(module.source, call, module.source.segment(call.func.value))
    if first is None:
        return None
    turned = _graphdef_first(module, call) if function == "split" else ()
    if turned is None:
        return None
    return unsafe(f"Call `{name}`", (*replace(module.source, call.func, name), *first, *turned))


def _graphdef_first(module: Module, call: ast.Call) -> tuple[Edit, ...] | None:
    """Put the last of the names that take a result first, if that is the graphdef; ``None`` if it may be either."""
    statement = next(ancestors(module, call), None)
    names = unpacked_names(statement) if isinstance(statement, ast.stmt) else None
    graphdefs = _graphdefs(module) if names else set[str]()
    if not names or names[0].id in graphdefs:
        return ()
    if names[-1].id not in graphdefs:
        return None
    return tuple(permute(module, names, [len(names) - 1, *range(len(names) - 1)]))


def _graphdefs(module: Module) -> set[str]:
    """The names of what makes a model of States."""
    nodes = [node.value for node in walk(module.tree) if isinstance(node, ast.Attribute) and node.attr in MAKING]
    nodes += [call.args[0] for call in calls_in(module.tree) if call.args and _merges(module, call)]
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def _merges(module: Module, call: ast.Call) -> bool:
    return canonical_of(module.env, call.func) == "nnx.merge"


MAKING = frozenset({"apply", "merge"})
"""The methods of a graphdef, when it had some."""
