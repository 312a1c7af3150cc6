"""How functions of the project are called (NNX838): with arguments that the function does not take, or without one that
it needs.

A checker of types knows what a function takes, but not one that ``nnx.jit`` or ``nnx.value_and_grad`` has made of it,
nor the hooks that a trainer keeps in a list.

Invariants: a transform hands over each argument as it comes, in its place and by its name; a function that a decorator
of the project may have changed is not judged, nor a call that the program expects to fail.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal, Transformed
from nnx_lint.model.calls import Arguments
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import Called, TransformApplied
from nnx_lint.model.expressions import text_of
from nnx_lint.model.parameters import exchanged
from nnx_lint.model.unions import options
from nnx_lint.model.values import UNKNOWN, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.autodiff.gradients import Exchanged
from nnx_lint.rules.construction.signatures import is_meant, unfit
from nnx_lint.rules.intermediates.sowing import is_module
from nnx_lint.rules.program import calls_in, given, is_tried, resolved
from nnx_lint.rules.transforms.calling import RESOLVING
from nnx_lint.syntax.binding import names_in
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.parameters import misfit, positional_names
from nnx_lint.syntax.walk import dumped
from nnx_rules.rules import construction as rules
from nnx_rules.transforms import DIFFERENTIATING, HANDING_ON, TREE_MAPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.values import Value


@judges_calls(rules.LAYER_SIGNATURE, FuncVal, Transformed, PartialVal)
def function_called(event: Called, report: Reporter) -> None:
    func, args = _function(event.callee, Arguments(event.node, event.args, event.keywords, event.nodes))
    if func is None or (func.cls is not None and not func.is_static) or _is_judged_otherwise(event.callee, func, event):
        return
    problem = unfit(func, args, None, made="called", bound=False)
    if problem is not None and is_meant(event):
        name = event.name if func.name == "<lambda>" else func.name
        report(event.frame.module, event.node, cls=name, problem=problem.text, mend=problem.mend)
    elif problem is None and (isinstance(event.callee, Transformed) or any(map(_is_of_nnx, args.positional))):
        pair = exchanged(func, args) or _crossed(event, func, args)
        if pair is None or not is_meant(event):
            return
        report.memory(Exchanged).values += event.result.items if isinstance(event.result, Seq) else [event.result]
        text = f"takes `{pair[0]}` before `{pair[1]}`, and gets them the other way round"
        report(event.frame.module, event.node, cls=func.name, problem=text, mend="exchange them")


@judges_calls(rules.LAYER_SIGNATURE, "jax.tree.unflatten", "jax.tree_util.tree_unflatten")
def leaves_first(event: Called, report: Reporter) -> None:
    """A tree is to be put together of its leaves, which are given in the place of its structure."""
    args = given(event)
    structure, node = args.get(0, "treedef"), args.node_of(0, "treedef")
    if isinstance(structure, Seq) and structure.type == "list" and node is not None and is_meant(event):
        problem = f"takes the structure first, and gets a list of leaves: `{text_of(node)}`"
        mend = "the structure is the second of the two that `jax.tree.flatten` returns"
        report(event.frame.module, event.node, cls=event.name, problem=problem, mend=mend)


def _crossed(event: Called, func: FuncVal, args: Arguments) -> tuple[str, str] | None:
    """Two parameters of which each gets what the call names like the other one, both of one kind: of a function that is
    differentiated by the first, or of one that names its target.

    A function of two networks, such as a distance, may be called both ways on purpose: the file has the other call.
    """
    names, caller = positional_names(func.node.args), event.frame.func
    if args.starred or len(args.nodes) != len(args.positional) or not 1 < len(args.nodes) <= len(names):
        return None
    if caller is not None and (caller.node is func.node or TURNING.search(caller.name)):
        return None
    words = [last_name(node) for node in args.nodes]
    derives = isinstance(event.callee, Transformed) and event.callee.applied.row.name in DIFFERENTIATING
    for place, name in enumerate(words if derives else ()):
        other = names.index(name) if name in names and len(name) > MANY else place
        if place < other < len(words) and words[other] == names[place] and len(names[place]) > MANY:
            return None if _is_called_in_order(event, func, (place, other)) else (names[place], name)
    for role in ROLES:
        meant, found = _places_of(role, names), _places_of(role, words)
        if len(meant) == len(found) == 1 and meant != found and max(*meant, *found) < len(words):
            places = min(meant[0], found[0]), max(meant[0], found[0])
            networks = all(all(map(is_module, options(args.positional[place] or UNKNOWN))) for place in places)
            if networks and names[found[0]] not in SOURCES and not _is_called_in_order(event, func, places):
                return names[places[0]], names[places[1]]
    return None


def _places_of(role: str, names: Sequence[str]) -> list[int]:
    return [place for place, name in enumerate(names) if role in name.split("_")]


MANY = 2
"""How long the names are that say nothing of what they are for."""

ROLES = ("target", "ema")
"""What names say of the one of two networks that is not trained."""

TURNING = re.compile(r"^__r|inv|rev|swap|cross|back|flip|mirror|mutual|opposite|symmetr|transpos|both|cycle")
"""What is in the names of functions that call another one the other way round on purpose."""

SOURCES = frozenset({"from", "source", "src"})
"""Names of parameters beside which ``target`` is what is written to, whatever it is."""


def _is_called_in_order(event: Called, func: FuncVal, places: tuple[int, int]) -> bool:
    """Whether the file has a call of a function that gives two parameters what the present one gives the other one."""
    assert isinstance(event.node, ast.Call)
    exchanged = [dumped(event.node.args[place]) for place in reversed(places)]
    calls = calls_in(event.frame.module.tree)
    others = (call.args for call in calls if last_name(call.func) == func.name or func.name in names_in(call.func))
    return any([dumped(each[place]) for place in places] == exchanged for each in others if len(each) > places[1])


def chooses(event: TransformApplied) -> bool:
    """Whether a function is a branch of a conditional."""
    return event.applied.row.name in {"jax.lax.cond", "nnx.cond"} and isinstance(event.func, FuncVal)


@judges(rules.LAYER_SIGNATURE, TransformApplied, when=chooses)
def branch_called(event: TransformApplied, report: Reporter) -> None:
    """A branch of a conditional takes another number of operands than the conditional gets."""
    call, func, module = event.node, event.func, event.frame.module
    if not isinstance(call, ast.Call) or not isinstance(func, FuncVal):
        return
    plain = not call.keywords and not any(isinstance(node, ast.Starred) for node in call.args)
    if not plain or not all(_is_function(event.frame, node) for node in call.args[1:3]) or is_tried(module, call):
        return
    first = resolved(event.frame.env, call.args[1])
    count = len(call.args[3:])
    if isinstance(first, FuncVal) and first is not func and misfit(first.node.args, count, ()) is not None:
        return  # which is told of the first one
    problem = unfit(func, Arguments(call, [UNKNOWN] * count, {}, []), None, made="called", bound=False)
    if problem is not None:
        text = f"{problem.text} by `{event.applied.text}`, which gives it all operands"
        report(module, event.func_node, cls=func.name.strip("<>"), problem=text, mend=problem.mend)


PATH_MAPS = ("jax.tree.map_with_path", "jax.tree_util.tree_map_with_path")

ABOUT_TREES = frozenset({"f", "is_leaf", "tree"})
"""What maps over trees take by name."""


@judges_calls(rules.LAYER_SIGNATURE, *TREE_MAPS, *PATH_MAPS)
def mapped_over_trees(event: Called, report: Reporter) -> None:
    """``jax.tree.map(lambda p, g: p - g, params)``: a function takes a leaf of each tree, and the path where asked."""
    args = given(event)
    func, node = args.get(0, "f"), args.node_of(0, "f")
    if args.starred or not args.keywords.keys() <= ABOUT_TREES or not isinstance(func, FuncVal) or func.cls is not None:
        return
    trees = len(args.positional) - ("f" not in args.keywords) + ("tree" in args.keywords)
    path = event.subject in PATH_MAPS
    problem = unfit(func, Arguments(event.node, [UNKNOWN] * (trees + path), {}, []), None, made="called", bound=False)
    if problem is not None and node is not None and trees and is_meant(event):
        gets = f"{'the path and ' * path}a leaf of {'the one tree' if trees == 1 else f'each of the {trees} trees'}"
        text = f"{problem.text} by `{event.name}`, which gives it {gets}"
        report(event.frame.module, node, cls=func.name.strip("<>"), problem=text, mend=problem.mend)


def _is_function(frame: Frame, node: ast.expr) -> bool:
    return isinstance(node, ast.Lambda) or isinstance(resolved(frame.env, node), (BoundMethod, FuncVal))


def _is_judged_otherwise(callee: Value, func: FuncVal, event: Called) -> bool:
    """Whether a transform of flax takes no parameters that are given by name only, of which there are some."""
    named = bool(func.node.args.kwonlyargs) and bool(event.keywords)
    return named and isinstance(callee, Transformed) and callee.applied.row.name in RESOLVING


def _function(callee: Value, args: Arguments) -> tuple[FuncVal | None, Arguments]:
    """The function of the project that a call calls, and what it gets, with what partials add, through transforms."""
    while True:
        if isinstance(callee, Transformed) and _hands_on(callee):
            callee = callee.func
        elif isinstance(callee, PartialVal):
            keywords = {**callee.keywords, **args.keywords}
            args = Arguments(args.node, [*callee.args, *args.positional], keywords, args.nodes)
            callee = callee.func
        else:
            break
    return callee if isinstance(callee, FuncVal) else None, args


def _hands_on(callee: Transformed) -> bool:
    """Whether a function gets what the call gives, after what a cache of its first arguments adds."""
    return callee.applied.row.name in HANDING_ON or callee.applied.row.binds


def _is_of_nnx(value: Value | None) -> bool:
    return isinstance(value, Obj) and value.cls.tracked and not value.assumed
