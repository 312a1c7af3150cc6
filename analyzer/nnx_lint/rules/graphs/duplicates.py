"""Objects that are referenced twice where they may only be parts of a tree (NNX339).

With ``graph=False`` a module is what JAX makes of it, a tree: of a second reference it would make a second object, so
NNX refuses what has one. It is in one module, in a container, or in two arguments of one call.

Invariants: two references count only where every run makes them so: both are certain, and two arguments are names or
attributes that are written alike. Without graph updates but with graphs, all of it is allowed.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, Transformed
from nnx_lint.model.containers import Seq
from nnx_lint.model.expressions import text_of
from nnx_lint.model.leaves import contents
from nnx_lint.model.modes import of_transform
from nnx_lint.model.values import Ext, Obj, Value
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.callees import TRANSFORMING
from nnx_lint.rules.filters.coverage import leaves_of
from nnx_lint.rules.filters.expressions import ARRAY
from nnx_lint.rules.traces.boundaries import transform_of
from nnx_lint.syntax.dotted import root_of
from nnx_rules.rules import graphs as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.leaves import Path

TAKING_APART = ("nnx.split", "nnx.state", "nnx.graphdef", "nnx.clone")
"""The functions that go through an object as ``graph=`` says."""


@judges_calls(rules.DUPLICATE_NODE, *TAKING_APART)
def taken_apart_as_tree(event: Called, report: Reporter) -> None:
    modes = of_transform(event.subject or "", event.keywords, event.modes)
    if modes.graph is False and event.args and event.args[0] is not None:
        _report(event.frame, event.node, event.args[0], (), report)


def runs_on_trees(event: Called) -> bool:
    """Whether a transform without graphs is called, or may be."""
    callee = event.callee.func if isinstance(event.callee, BoundMethod) else event.callee
    if isinstance(callee, Transformed):
        return callee.applied.modes.graph is False
    return isinstance(callee, Ext) and ("graph" in event.keywords or event.modes.graph is False)


@judges_calls(rules.DUPLICATE_NODE, Transformed, BoundMethod, *TRANSFORMING, when=runs_on_trees)
def handed_in_as_tree(event: Called, report: Reporter) -> None:
    running = transform_of(event)
    if running is None or running.modes.graph is not False or not running.row.name.startswith("nnx."):
        return
    operands = enumerate(running.operands)
    given = [(place, value, node) for place, (value, node) in operands if isinstance(value, (Obj, Seq))]
    seen: dict[str, tuple[int, Value]] = {}
    for place, value, node in given:
        if node is None or _report(event.frame, node, value, (place,), report):
            return
        if root_of(node) is not None:
            before, other = seen.setdefault(text_of(node), (place, value))
            both = Seq("tuple", [other, value])
            if before != place and _report(event.frame, event.node, both, (before, place), report):
                return


def _report(frame: Frame, node: ast.AST, value: Value, places: tuple[int, ...], report: Reporter) -> bool:
    """Report what is in a value twice; the numbers of the arguments that it is made of come first in its paths."""
    for path, first, held in contents(value, frame, ARRAY).again:
        if isinstance(held, Obj) and (held.cls.is_variable or leaves_of(held, frame).leaves):
            shown = [_text(each, places) for each in (first, path)]
            report(frame.module, node, path=shown[0], other_path=shown[1], value="object")
            return True
    return False


def _text(path: Path, places: tuple[int, ...]) -> str:
    """A path as the runtime writes it, from the arguments on."""
    if len(places) > 1 and isinstance(path[0], int):
        text, path = f"args[{places[path[0]]}]", path[1:]
    else:
        text = f"args[{places[0]}]" if places else ""
    for part in path:
        if isinstance(part, str) and part.isidentifier():
            text += f".{part}" if text else part
        else:
            text += f"[{part!r}]" if isinstance(part, (str, int)) else "[...]"
    return text
