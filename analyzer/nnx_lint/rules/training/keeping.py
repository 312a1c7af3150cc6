"""Optimizers that were written for keeping their model: ``optimizer.model`` (NNX615), and how such code is moved.

Until flax 0.10 an optimizer kept its model; what does so now has another name. Code that asks its optimizer for the
model is moved by making that one, and then nothing else of it changes. Other code hands the model to ``update``.

Invariants: a file is moved in one of the two ways, never in both; an optimizer of which only the annotation is known
may be the kind that keeps its model, so nothing is said of one in a file that names that kind.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Fix
from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.classes import UserClass
from nnx_lint.model.events import Used
from nnx_lint.model.unions import present
from nnx_lint.model.values import Obj
from nnx_lint.relevance import KEEPER
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.edits import replace
from nnx_lint.rules.program import calls_in, canonical_of
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import training as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame


def _asks_for_model(event: Used) -> bool:
    return event.what == "model"


@judges(rules.OPTIMIZER_MODEL_ATTRIBUTE, Used, when=_asks_for_model)
def optimizer_model_attribute(event: Used, report: Reporter) -> None:
    value = present(event.value)
    if not isinstance(value, Obj) or not value.cls.derives_from("nnx.Optimizer") or "model" in value.attrs:
        return
    cls, module = value.cls, event.frame.module
    if isinstance(cls, UserClass):
        known = not (cls.is_open or cls.opaque or cls.remade or cls.derives_from(f"nnx.{KEEPER}"))
        if known and cls.find("model") is None and attribute_of(value, "model") is None and not _declares_model(cls):
            report(module, event.node, cls=cls.name)
        return
    if cls.derives_from(f"nnx.{KEEPER}") or (value.assumed and module.project.heirs.possible(KEEPER)):
        return
    report(module, event.node, fix=partial(keep_model, event.frame, value), cls="Optimizer")


def _declares_model(cls: UserClass) -> bool:
    """Whether the body of a class says that something gives its instances a model."""
    body = [node for item in cls.lineage for node in item.node.body]
    return any(isinstance(node, ast.AnnAssign) and is_name(node.target, "model") for node in body)


@remembered
def asks_for_models(tree: ast.Module) -> bool:
    """Whether a file asks something for its model that it calls ``update`` of: an optimizer that keeps it."""
    asked = {ast.dump(node.value) for node in walk(tree) if isinstance(node, ast.Attribute) and node.attr == "model"}
    callees = [call.func for call in calls_in(tree)] if asked else []
    return any(
        isinstance(func, ast.Attribute) and func.attr == "update" and ast.dump(func.value) in asked for func in callees
    )


def keep_model(frame: Frame, optimizer: Obj) -> Fix | None:
    """Make an optimizer of the kind that keeps its model: where it is made, or where the only one of the file is."""
    module = frame.module
    made = [call for call in calls_in(module.tree) if canonical_of(module.env, call.func) == "nnx.Optimizer"]
    seen = optimizer.origin is not None and optimizer.origin[0] is module
    chosen = [call for call in made if call is optimizer.origin[1]] if seen and optimizer.origin is not None else made
    name = spelled(f"nnx.{KEEPER}", module)
    if name is None or len(chosen) != 1:
        return None
    applicability = Applicability.SAFE if seen else Applicability.UNSAFE
    return Fix(f"Make a `{name}`", replace(module.source, chosen[0].func, name), applicability)
