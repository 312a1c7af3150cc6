"""Attributes that are read by a name that the program puts together, and that are not there (NNX864):
``getattr(self, f"layers_{i}")`` where the constructor sets ``layer_0``, ``layer_1``, ...

Invariant: nothing is said unless what is there is spelled almost like what is asked for, and nothing in the file begins
like that.
"""

from __future__ import annotations

import ast
import difflib
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import ANY_NAME
from nnx_lint.model.classes import UserClass
from nnx_lint.model.events import AttributeMissed
from nnx_lint.model.strings import HOLE
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.construction.missing import CLOSE, is_known, names_of
from nnx_lint.rules.program import is_asked_for, is_tried
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module


def asks_by_pattern(event: AttributeMissed) -> bool:
    """Whether an attribute is asked for of whose name only a part is known."""
    return HOLE in event.name and event.name != ANY_NAME


@judges(rules.MISSING_ATTRIBUTE, AttributeMissed, when=asks_by_pattern)
def missing_by_computed_name(event: AttributeMissed, report: Reporter) -> None:
    obj, wanted, node, module = event.obj, event.name, event.node, event.frame.module
    if not isinstance(node, ast.Call) or len(node.args) != 2 or obj.assumed or not isinstance(obj.cls, UserClass):
        return
    names = names_of(obj)
    if not is_known(obj.cls) or ANY_NAME in names or any(_may_be_one(wanted, name) for name in names):
        return
    if is_tried(module, node) or is_asked_for(module, node) or _is_begun(module, node, wanted.partition(HOLE)[0]):
        return
    alike = difflib.get_close_matches(wanted, [name for name in names if HOLE in name], n=1, cutoff=CLOSE)
    if alike:
        report(module, node, cls=obj.cls.name, name=wanted, mend=f"did you mean `{alike[0]}`?")


def _may_be_one(wanted: str, name: str) -> bool:
    """Whether two names, each known in part, may be one: they begin and end alike as far as both are known."""
    begin, end = wanted.partition(HOLE)[0], wanted.rpartition(HOLE)[2]
    first, last = (name, name) if HOLE not in name else (name.partition(HOLE)[0], name.rpartition(HOLE)[2])
    begins = begin.startswith(first) or first.startswith(begin)
    return begins and (end.endswith(last) or last.endswith(end))


def _is_begun(module: Module, node: ast.Call, begin: str) -> bool:
    """Whether any other text of the file begins like a name, or the name begins with nothing."""
    own = set(walk(node))
    texts = (item for item in walk(module.tree) if isinstance(item, ast.Constant) and item not in own)
    return not begin or any(isinstance(item.value, str) and item.value.startswith(begin) for item in texts)
