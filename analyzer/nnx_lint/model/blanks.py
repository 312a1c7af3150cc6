"""What a statement does of which only the names are known, because its text does not parse.

It may have bound its targets, changed every object that it mentions, and left the function. So the names that it may
bind are unknown, local names of objects that it mentions too, and of a longer-lived object (``self``) the attributes
that it mentions. A class whose body has one, other than a method, and the object that a constructor with one makes, may
have attributes that nobody sees.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.heap import touch
from nnx_lint.model.states import StateVal
from nnx_lint.model.values import UNKNOWN, Attr, Obj
from nnx_lint.syntax.walk import walk

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter
    from nnx_lint.syntax.trees import Blank

UNSEEN = "..."
"""The attribute that stands for those that an object may have besides."""

_MAKERS = frozenset({"__init__", "__new__", "__post_init__", "__setattr__", "__getattr__", "__getattribute__", "setup"})
"""Methods that decide which attributes an object has."""


def execute(interp: Interpreter, frame: Frame, node: Blank) -> bool:
    """Forget what a blanked statement may have changed."""
    env = frame.env
    names = env.names
    for use in walk(node):
        if isinstance(use, ast.Name) and isinstance(use.ctx, ast.Load):
            held = names.get(use.id)
            if held is not frame.receiver and isinstance(held, (Obj, Seq, DictVal, StateVal)):
                names[use.id] = UNKNOWN
        elif isinstance(use, ast.Attribute) and isinstance(use.value, ast.Name):
            found = env.lookup(use.value.id)
            if found is not None and isinstance(found[1], Obj):
                _forget(found[1], use.attr)
    for target in node.targets:
        scope = frame.module.env if target.id in env.globals else env
        touch(scope)
        scope.names[target.id] = UNKNOWN
    if isinstance(frame.receiver, Obj) and frame.receiver.constructing:
        _forget(frame.receiver, UNSEEN)
    if env.kind == "class" and isinstance(frame.cls, UserClass) and (node.method is None or node.method in _MAKERS):
        touch(frame.cls)
        frame.cls.dynamic = True
    frame.exits += 1
    if node.returns:
        frame.doubts += 1
        frame.results.append(UNKNOWN)
    return False


def _forget(obj: Obj, name: str) -> None:
    touch(obj)
    obj.attrs[name] = Attr(UNKNOWN)
