"""Axes, shardings and specs in a tuple, one for each argument, where a call has another number of arguments (NNX404).

Where a transform is applied it is known how many parameters the function has; how many of them get an argument says
the call.

Invariants: the tuple is spelled out, and so are the arguments, all by position; where arguments are static, or given by
name, the entries may be those of others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.containers import Seq
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.callees import TRANSFORMED
from nnx_lint.rules.program import is_tried
from nnx_lint.rules.traces.boundaries import transform_of
from nnx_lint.rules.transforms.mapping import calls_transformed, transformed_by
from nnx_lint.rules.transforms.options import option_node, parameters
from nnx_rules.rules import transforms as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called

OPTIONS = {
    "jax.jit": "in_shardings",
    "jax.pmap": "in_axes",
    "jax.shard_map": "in_specs",
    "jax.vmap": "in_axes",
    "nnx.jit": "in_shardings",
    "nnx.shard_map": "in_specs",
}
"""Transforms with the option that has an entry for each argument of a call."""

STATIC = frozenset({"static_argnames", "static_argnums", "static_broadcasted_argnums", "**"})


@judges_calls(rules.PREFIX_MISMATCH, *TRANSFORMED, when=calls_transformed)
def number_of_entries(event: Called, report: Reporter) -> None:
    called = transformed_by(event)
    option = OPTIONS.get(called.applied.row.name) if called is not None else None
    given = called.applied.keywords.get(option) if called is not None and option is not None else None
    if called is None or option is None or not isinstance(given, Seq) or given.type != "tuple" or not given.exact:
        return
    applied, running = called.applied, transform_of(event)
    if running is None or event.keywords or None in event.args or not STATIC.isdisjoint(applied.keywords):
        return
    count, entries = len(running.operands), len(given.items)
    if count == entries or given.shrunk or is_tried(event.frame.module, event.node):
        return
    taken = parameters(called.func) if isinstance(called.func, FuncVal) else None
    if taken is not None and option == "in_axes" and entries > taken[1]:
        return  # that is said where the transform is applied
    node = option_node(applied, option)
    place = (related(event.frame.module, event.node, "this is the call"),)
    problem = f"it has {entries} {'entry' if entries == 1 else 'entries'}, and a call has {count} positional arguments"
    report(applied.module, node, related=place, option=option, transform=applied.text, problem=problem)
