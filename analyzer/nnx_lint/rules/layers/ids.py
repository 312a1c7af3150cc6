"""Numbers that are looked up where there are not so many: rows of an `Embed`, classes of logits (NNX870).

Tokens, positions and labels are numbers from 0 on. JAX raises no error for one that is too large, in compiled code it
cannot, and gives NaN. Invariants: how large the numbers are, and how many there may be, are both known.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import forms
from nnx_lint.model.values import Array, Const, Obj
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.layers.operands import is_prepared
from nnx_lint.rules.program import given
from nnx_rules.rules import modules as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.values import Value


@judges_calls(rules.IDS_OUT_OF_RANGE, "()")
def rows_of_table(event: Called, report: Reporter) -> None:
    table, ids = event.callee, event.args[0] if event.args else None
    library = table.cls.works_as if isinstance(table, Obj) else None
    most = _most(ids)
    if library is None or library.canonical != "nnx.Embed" or not isinstance(table, Obj) or most is None:
        return
    count = (forms.sizes(table) or {}).get("num_embeddings") if forms.is_original(table) else None
    if not isinstance(count, int) or not 1 < count <= most:
        return  # a table of one row gives that one always
    if not is_prepared(event.frame, event.node):
        name = event.node.func if isinstance(event.node, ast.Call) else None
        places = (related(*table.origin, "this Embed is made here"),) if table.origin is not None else ()
        shown = ast.unparse(name) if isinstance(name, (ast.Attribute, ast.Name)) else table.cls.name
        problem = f"its table has {count} rows"
        report(event.frame.module, event.node, related=places, name=shown, most=most, problem=problem, last=count - 1)


def _most(ids: Value | None) -> int | None:
    """The largest of some numbers, or the one number that is looked up, as for the last of ``n`` positions."""
    if isinstance(ids, Array):
        return ids.bound.most if ids.bound is not None else None
    held = ids.value if isinstance(ids, Const) else None
    return held if isinstance(held, int) and not isinstance(held, bool) else None


LOSSES = tuple(f"{head}.softmax_cross_entropy_with_integer_labels" for head in ("optax", "optax.losses"))


@judges_calls(rules.IDS_OUT_OF_RANGE, *LOSSES)
def classes_of_logits(event: Called, report: Reporter) -> None:
    args = given(event)
    logits, labels = forms.literal(args.get(0, "logits")).shape, args.get(1, "labels")
    count = logits[-1] if logits else None
    if not isinstance(labels, Array) or labels.bound is None or not isinstance(count, int) or "axis" in args.keywords:
        return
    if count <= labels.bound.most and "where" not in args.keywords and not is_prepared(event.frame, event.node):
        problem, most = f"the logits have {count} classes", labels.bound.most
        report(event.frame.module, event.node, name=event.name, most=most, problem=problem, last=count - 1)
