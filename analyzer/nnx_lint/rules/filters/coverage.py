"""Filters against the leaves of an object whose class is known (NNX304, NNX305, NNX307; list indices of NNX309)."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.model.callables import BoundMethod, Transformed
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import Called
from nnx_lint.model.leaves import Contents, contents
from nnx_lint.model.library import FilterVal
from nnx_lint.model.states import StateVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import Obj, Value
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.callees import TRANSFORMED
from nnx_lint.rules.filters.edits import add_rest
from nnx_lint.rules.filters.expressions import ARRAY, expression, is_subtype, type_name
from nnx_lint.rules.filters.reading import FILTERING, Given, Single, filter_lists, gives_filters, single_filters
from nnx_rules import _filter_logic as logic
from nnx_rules import api
from nnx_rules.api import OPTIMIZERS
from nnx_rules.filters import Everything, PathContains, WithTag
from nnx_rules.rules import filters as rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_rules._filter_logic import Leaf
    from nnx_rules.filters import Expr

SHOWN_LEAVES = 3
"""How many leaves a message names before it counts the rest."""


# -- leaves ----------------------------------------------------------------------------------------------------------


def leaves_of(value: Value, frame: Frame) -> Contents:
    """The certain leaves of an object, or of a State that was taken from one."""
    value = present(value)
    if isinstance(value, StateVal):
        found = leaves_of(value.of, frame)
        if value.wanted is None:
            return found
        wanted = expression(value.wanted)
        earlier = [expression(each) for each in value.after]
        held = [item for item in found.held if logic.matches(wanted, item.leaf, is_subtype)]
        left = [item for item in held if all(logic.matches(each, item.leaf, is_subtype) is False for each in earlier)]
        return Contents(left, [], found.complete and len(left) == len(held))
    return contents(value, frame, ARRAY)


def name_leaves(leaves: Sequence[Leaf]) -> str:
    """The first few leaves in words: ``"`drop.rngs.key` (RngKey) and 4 more"``."""
    names = [f"`{path_text(leaf)}` ({type_name(leaf.type)})" for leaf in leaves[:SHOWN_LEAVES]]
    more = len(leaves) - SHOWN_LEAVES
    if more > 0:
        return f"{', '.join(names)} and {more} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def path_text(leaf: Leaf) -> str:
    """A path as it is read in Python."""
    text = ""
    for component in leaf.path if isinstance(leaf.path, tuple) else ():
        if isinstance(component, str) and component.isidentifier():
            text += f".{component}" if text else component
        else:
            text += "[...]" if component is logic.UNKNOWN else f"[{component!r}]"
    return text or "it"


# -- what no filter takes --------------------------------------------------------------------------------------------


@judges_calls(rules.NON_EXHAUSTIVE_SPLIT, *FILTERING, when=gives_filters)
def non_exhaustive_split(event: Called, report: Reporter) -> None:
    for found in filter_lists(event):
        if found.spec is None or not found.spec.exhaustive or found.open or found.target is None or not found.given:
            continue
        left = uncovered(found.exprs, found.target, event.frame)
        if left:
            report(found.module, found.node, fix=partial(add_rest, found), leaves=name_leaves(left))


def uncovered(exprs: Sequence[Expr], value: Value, frame: Frame) -> list[Leaf]:
    """The certain leaves of an object that certainly no filter takes."""
    if Everything() in exprs:
        return []
    return logic.uncovered(exprs, leaves_of(value, frame).leaves, is_subtype)


@judges_calls(rules.NON_EXHAUSTIVE_PREFIX, *TRANSFORMED)
def non_exhaustive_prefix(event: Called, report: Reporter) -> None:
    for prefix, mapping, target in _prefixes(event):
        if not mapping.exact or isinstance(present(target), StateVal):
            continue
        left = uncovered([expression(key) for key, _ in mapping.items], target, event.frame)
        if left:
            report(
                prefix.module,
                prefix.node,
                fix=partial(_catch_all, prefix.module, mapping),
                leaves=name_leaves(left),
            )


def _prefixes(event: Called) -> Iterator[tuple[FilterVal, DictVal, Value]]:
    """The mappings that say how a transformed function treats its arguments, with the argument of this call, and those
    that say so of its results.
    """
    callee, args = event.callee, list(event.args)
    if isinstance(callee, Obj) and isinstance(callee.cls, UserClass):
        found = callee.cls.find("__call__")
        callee = BoundMethod(callee, "__call__", found[1] if found is not None else None)
    if isinstance(callee, BoundMethod) and isinstance(callee.func, Transformed):
        args.insert(0, callee.receiver)
        callee = callee.func
    if not isinstance(callee, Transformed):
        return
    result = present(event.result)
    results = result.items if isinstance(result, Seq) and result.exact and result.type == "tuple" else [result]
    applied = [callee.applied]
    while applied[-1].row.name in PASSING and isinstance(callee.func, Transformed):
        callee = callee.func
        applied.append(callee.applied)
    options = [(option, each.keywords.get(option)) for each in applied for option in (*PREFIX_OPTIONS, *RESULT_OPTIONS)]
    for option, given in options:
        values = args if option in PREFIX_OPTIONS else results
        if given is None:
            continue
        per_argument = given.items if isinstance(given, Seq) and given.exact else [given] * len(values)
        for prefix, argument in zip(per_argument, values, strict=False):
            if argument is None:
                break
            mapping = mapping_of(prefix)
            if mapping is not None and isinstance(prefix, FilterVal):
                yield prefix, mapping, argument


PREFIX_OPTIONS = ("in_axes", "in_shardings", "in_specs")
"""Options of transforms whose entries belong to the positional arguments."""

PASSING = frozenset({"nnx.jit", "nnx.split_rngs"})
"""Transforms that hand a function the arguments of a call, and give back what it returns."""

RESULT_OPTIONS = ("out_axes", "out_shardings")
"""Those whose entries belong to the results."""


def mapping_of(prefix: Value) -> DictVal | None:
    """The mapping in a ``StateAxes`` or ``StateSharding``."""
    if not (isinstance(prefix, FilterVal) and prefix.name in api.FILTER_MAPPINGS):
        return None
    held = prefix.args.get(0)
    return held if isinstance(held, DictVal) else None


def _catch_all(module: Module, mapping: DictVal) -> Fix | None:
    node = mapping.node
    if not isinstance(node, ast.Dict) or not node.values:
        return None
    end = module.source.span(node.values[-1]).end
    return Fix("Add `...: None` for the rest", (Edit(Span(end, end), ", ...: None"),))


# -- tags ------------------------------------------------------------------------------------------------------------

COLLECTIONS = {
    "params": "nnx.Param",
    "batch_stats": "nnx.BatchStat",
    "cache": "nnx.Cache",
    "intermediates": "nnx.Intermediate",
    "perturbations": "nnx.Perturbation",
}
"""Collections of Linen, and the Variable types that took their place."""

NO_STREAMS = frozenset({"batch_stats", "kernel", "bias"})
"""Names that nobody gives to a random stream, because a collection and attributes of layers have them."""


@judges_calls(rules.STRING_FILTER, *FILTERING, when=gives_filters)
def string_filter(event: Called, report: Reporter) -> None:
    for single in single_filters(event):
        if not single.leaves:
            continue
        for part in single.given.parts():
            if isinstance(part.expr, WithTag) and not isinstance(part.value, FilterVal):
                mend = _no_tag(single, part, part.expr.tag, event.frame)
                if mend is None and event.inherited in OPTIMIZERS and not part.module.mentions("tag="):
                    # Nobody trains random streams.
                    mend = COLLECTIONS.get(part.expr.tag, f"PathContains({part.expr.tag!r})")
                if mend is not None:
                    text = _namespace(event, mend)
                    report(
                        part.module,
                        part.node,
                        fix=partial(_replace, part, text),
                        value=repr(part.expr.tag),
                        mend=f"`{text}`",
                    )


def _no_tag(single: Single, part: Given, tag: str, frame: Frame) -> str | None:
    """What a string must mean that certainly is the tag of nothing here; ``None`` if it may be one."""
    target = present(single.target) if single.target is not None else None
    found = leaves_of(target, frame) if target is not None else Contents(complete=False)
    if any(leaf.tagged(tag) for leaf in found.leaves) or (
        isinstance(target, Obj) and target.cls.derives_from("nnx.Rngs")
    ):
        return None
    instead = f"PathContains({tag!r})"
    at_path = any(isinstance(leaf.path, tuple) and tag in leaf.path for leaf in found.leaves)
    untagged = found.complete and not any(leaf.tagged(tag) is None for leaf in found.leaves)
    # A tag that one model lacks may be meant for others, unless it is the name of something else; and metadata may have
    # any tag.
    tags_used = part.module.mentions("tag=") and not untagged
    if (tag in NO_STREAMS and not tags_used) or (untagged and (at_path or tag in COLLECTIONS)):
        return instead if at_path else COLLECTIONS.get(tag, instead)
    if not part.module.is_readable:
        return None  # what cannot be read may give the tag
    below = [leaf.tagged(tag) for leaf in found.leaves if isinstance(leaf.path, tuple) and tag in leaf.path]
    # Of a model that is known in part, some streams may have any name that is said somewhere.
    said = part.module.mentions("tag=", f"{tag}=", f".{tag}(", f"'{tag}':", f'"{tag}":')
    return instead if below and not any(each is None for each in below) and not said else None


def _namespace(event: Called, mend: str) -> str:
    """A name of the library as the program would write it, after the function that it calls."""
    head, dot, _ = event.name.rpartition(".")
    return f"{head}.{mend.removeprefix('nnx.')}" if dot and head.isidentifier() else f"nnx.{mend.removeprefix('nnx.')}"


def _replace(part: Given, text: str) -> Fix | None:
    if not (part.in_place and isinstance(part.node, ast.Constant)):
        return None
    return Fix(f"Write `{text}`", (Edit(part.module.source.span(part.node), text),), Applicability.UNSAFE)


# -- list indices ----------------------------------------------------------------------------------------------------


@judges_calls(rules.PATH_NEVER_MATCHES, *FILTERING, when=gives_filters)
def index_as_text(event: Called, report: Reporter) -> None:
    for single in single_filters(event):
        if single.target is None:
            continue
        for part in single.given.parts():
            made, expr = part.value, part.expr
            if not (isinstance(made, FilterVal) and isinstance(expr, PathContains) and expr.exact):
                continue
            if isinstance(expr.key, str) and expr.key.isdecimal() and _is_index(expr.key, single.target, event.frame):
                key = made.args.node_of(0, "key") or made.node
                report(
                    made.module,
                    key,
                    fix=Fix(f"Write `{int(expr.key)}`", _digits(made.module, key, expr.key), Applicability.UNSAFE),
                    filter=f"PathContains({expr.key!r})",
                    value=repr(expr.key),
                    mend=f"`PathContains({int(expr.key)})`: the index of a list is an int",
                )


def _is_index(key: str, target: Value, frame: Frame) -> bool:
    """Whether a key of digits must mean an index: there is a list, and nothing has that key as its name."""
    components = {
        item for leaf in leaves_of(target, frame).leaves if isinstance(leaf.path, tuple) for item in leaf.path
    }
    return key not in components and any(item is logic.UNKNOWN or isinstance(item, int) for item in components)


def _digits(module: Module, node: ast.AST, key: str) -> tuple[Edit, ...]:
    return (Edit(module.source.span(node), str(int(key))),)
