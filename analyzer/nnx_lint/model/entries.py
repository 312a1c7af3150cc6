"""Entries of an ``nnx.Dict``: its items are attributes, by the key.

A key that is known in part, ``f"block_{i}"``, is the name of an attribute of that pattern; one value stands for all
that come under it, as for attributes that ``setattr`` sets. Keys of which nothing is known come under the pattern that
fits all names.

Invariants: what is put under a pattern need not be there; a method of the dict is one, whatever the patterns fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.attributes import ANY_NAME, attribute_names, attribute_of, untagged
from nnx_lint.model.containers import DictVal
from nnx_lint.model.heap import touch
from nnx_lint.model.strings import HOLE, PatternVal, fits, text_in
from nnx_lint.model.unions import join
from nnx_lint.model.values import STRING, UNKNOWN, Assignment, Attr, Const, Value
from nnx_rules.attributes import Status

if TYPE_CHECKING:
    import ast

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.values import Obj


def put(frame: Frame, container: Obj, key: Value, value: Value, node: ast.AST) -> None:
    """Put a value under a key."""
    touch(container)
    name = text_in(key) or ANY_NAME
    before, value = container.attrs.get(name), untagged(value)
    attr = container.attrs[name] = before if before is not None else Attr(value)
    branches = frame.branches
    if HOLE in name:
        branches = (*branches, (id(node), 0))  # there may be no such key
        value = join(attr.value, value)
    attr.value = value
    attr.assignments = (*attr.assignments, Assignment(value, Status.DATA, frame.module, node, None, branches))


def known(container: Obj) -> DictVal:
    """What a dict holds for all that is known."""
    names = attribute_names(container)
    found = [(name, attr.value) for name in names if (attr := attribute_of(container, name)) is not None]
    exact = not container.assumed and not any(HOLE in name for name in names)
    return DictVal([(_key(name), value) for name, value in found], container.level, exact=exact)


def _key(name: str) -> Value:
    if HOLE not in name:
        return Const(name)
    return STRING if name == ANY_NAME else PatternVal(name)


def at(container: Obj, key: Value | None) -> Value:
    """What a dict holds under a key: any value of those that it may be."""
    wanted = text_in(key) if key is not None else None
    attr = attribute_of(container, wanted) if wanted is not None else None
    if attr is not None:
        return attr.value
    exact = wanted is not None and HOLE not in wanted
    held = [(text_in(name), value) for name, value in known(container).items]
    possible = [value for name, value in held if not exact or name is None or fits(wanted or "", name)]
    return join(*possible) if possible else UNKNOWN
