"""Derivatives with respect to integers (NNX413)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import Transformed
from nnx_lint.model.expressions import text_of
from nnx_lint.model.forms import literal
from nnx_lint.model.library import FilterVal
from nnx_lint.model.states import StateVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Array, Const, Obj, Value
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.callees import compiled_by
from nnx_lint.rules.filters.coverage import leaves_of, path_text
from nnx_lint.rules.filters.expressions import expression, is_subtype
from nnx_lint.rules.variables.promoting import as_plain_variable
from nnx_lint.rules.variables.values import made_at
from nnx_rules import _filter_logic as logic
from nnx_rules.filters import OfType
from nnx_rules.layers import is_integral
from nnx_rules.rules import transforms as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.leaves import Held
    from nnx_rules._filter_logic import Leaf

GRADIENTS = frozenset({"nnx.grad", "nnx.value_and_grad"})


@judges_calls(rules.NOT_DIFFERENTIABLE, "transformed")
def not_differentiable(event: Called, report: Reporter) -> None:
    callee = compiled_by(event.callee) if isinstance(event.callee, Transformed) else None
    if callee is None or callee.applied.row.name not in GRADIENTS:
        return
    if not callee.applied.modes.writes_back:
        return
    argnums: Value = callee.applied.keywords.get("argnums", Const(0))
    wanted: Value | None = None
    if isinstance(argnums, FilterVal):
        chosen = argnums.args
        argnums, wanted = chosen.get(0, "argnum") or UNKNOWN, chosen.get(1, "filter")
    position = argnums.value if isinstance(argnums, Const) else None
    if not isinstance(position, int) or not 0 <= position < len(event.args) or None in event.args[: position + 1]:
        return
    model = present(event.args[position] or UNKNOWN)
    if isinstance(model, Array) and wanted is None and not callee.applied.keywords.get("allow_int"):
        dtype = literal(model).dtype
        if is_integral(dtype) or dtype == "bool":
            name = text_of(event.nodes[position])
            report(event.frame.module, event.node, transform=callee.applied.text, path=name, dtype=dtype)
        return
    if not isinstance(model, Obj) or not model.cls.is_pytree:
        return
    asked = expression(wanted) if wanted is not None else _params()
    for held in leaves_of(model, event.frame).held:
        variable = _variable(held)
        dtype = literal((variable.args or {}).get("value", UNKNOWN)).dtype if variable is not None else None
        if variable is None or not (is_integral(dtype) or dtype == "bool"):
            continue
        if logic.matches(asked, held.leaf, is_subtype) is True:
            slots: dict[str, Any] = {"transform": callee.applied.text, "path": path_text(held.leaf), "dtype": dtype}
            fix = partial(as_plain_variable, variable, event.frame.module)
            report(event.frame.module, event.node, fix=fix, related=made_at(variable), **slots)
            return


def leaf_of_integers(model: Obj | StateVal, frame: Frame) -> Leaf | None:
    """A Variable of a model, or of a State of one, that holds integers, a counter for instance."""
    for held in leaves_of(model, frame).held:
        variable = _variable(held)
        dtype = literal((variable.args or {}).get("value", UNKNOWN)).dtype if variable is not None else None
        if is_integral(dtype) or dtype == "bool":
            return held.leaf
    return None


def _params() -> OfType:
    from nnx_lint.model.classes import library_class

    return OfType(library_class("nnx.Param"))


def _variable(held: Held) -> Obj | None:
    """The Variable at a leaf, where an attribute holds it."""
    path = held.leaf.path
    name = path[-1] if isinstance(path, tuple) and path else None
    attr = attribute_of(held.owner, name) if isinstance(held.owner, Obj) and isinstance(name, str) else None
    return attr.value if attr is not None and isinstance(attr.value, Obj) and attr.value.cls.is_variable else None
