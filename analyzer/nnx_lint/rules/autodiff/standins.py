"""Parameters of a compiled function, of which nothing else needs to be known: whatever a call gives is a stand-in
without a value, unless an option makes it static.

A size is asked of such a parameter directly, or in a function that is called with it: ``range(steps)``,
``jax.random.normal(key, (batch_size,))``.

Invariants: the name is bound by the call alone, nowhere in the function; where no call is known, the parameter has no
default, as that would stay what it is; options that are computed say nothing.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.crossing import kept_positions, statics_known
from nnx_lint.rules.program import ancestors, assigned_in, binds
from nnx_lint.rules.repeating import argument, frame_around
from nnx_lint.rules.traces.mends import COMPILING
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.walk import walk
from nnx_rules.transforms import DIFFERENTIATING

if TYPE_CHECKING:
    from nnx_lint.model.callables import FuncVal, TransformVal
    from nnx_lint.model.frames import Frame

DEEPEST = 5
"""Through so many calls a parameter is followed outwards."""


def is_eager(frame: Frame, node: ast.AST) -> bool:
    """Whether code runs at once all the same: on the host, where it asks for it, or where it may fail."""
    if any(scope.row.host for scope in frame.scope):
        return True
    for outer in ancestors(frame.module, node):
        if isinstance(outer, ast.Try) and outer.handlers:
            return True
        if isinstance(outer, ast.With) and any("compile_time_eval" in ast.dump(item) for item in outer.items):
            return True
    return False


def standing_in(frame: Frame, node: ast.expr | None) -> TransformVal | None:
    """The transform that certainly makes a stand-in of what a name has, which a call handed on as it is, or of an entry
    of that: a function inside of another one reads its names, and what computes a gradient hands on what it gets.
    """
    if not frame.scope or node is None or is_eager(frame, node):
        return None
    inner = frame
    for _ in range(DEEPEST):
        root = node
        while isinstance(root, ast.Subscript):
            root = root.value
        func = frame.func
        if not isinstance(root, ast.Name) or func is None or func.wraps is not None or assigned_in(func.node)[root.id]:
            return None
        if root is not node and _is_filled(func.node, root.id):
            return None
        if not binds(func.node, root.id):
            outer, node = frame_around(frame), root
            if outer is None:
                return None
            frame = outer
            continue
        scope = frame.scope[-1] if frame.scope else None
        if scope is None or not inner.certain_within(scope):
            return None
        if scope.row.name in COMPILING and scope.frame is frame:
            traced = _is_traced(frame, func, scope.applied, root.id) and not scope.held
            return scope.applied if traced else None
        if scope.row.name not in COMPILING | DIFFERENTIATING:
            return None
        given = argument(frame, root.id)
        if given is None or frame.caller is None:
            return None
        frame, node = frame.caller, given
    return None


def _is_filled(func: ast.AST, name: str) -> bool:
    """Whether a function puts something into what a name has."""
    places = (node for node in walk(func) if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store))
    return any(isinstance(place.value, ast.Name) and place.value.id == name for place in places)


def _is_traced(frame: Frame, func: FuncVal, applied: TransformVal, name: str) -> bool:
    """Whether a parameter of the traced function itself is no static one, and certainly given."""
    names = syntax_parameters.positional_names(func.node.args)
    if (
        name not in names
        or not statics_known(applied)
        or names.index(name) in kept_positions(applied, func, len(names))
    ):
        return False
    if isinstance(frame.call, ast.Call):
        return argument(frame, name) is not None
    required = len(names) - len(func.node.args.defaults)
    return names.index(name) < required and (frame.receiver is None or names.index(name) > 0)
