"""What a mutation means for the transforms around it: which object is captured, what it is called, where it comes from.

The rules about captured objects share this one judgement. A :class:`Capture` exists only where a running transform
certainly captures the changed object, and the change certainly happens when the traced function gets there.

Invariants: the place of a capture lies in the traced function itself, or at the transform where the function brought
the object along (a partial, an instance, a bound method); the name is the one used at that place.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.expressions import text_of
from nnx_lint.model.naming import value_at
from nnx_lint.model.states import StateVal
from nnx_lint.model.unions import options
from nnx_lint.model.values import Obj, Value
from nnx_lint.reporting import related
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_rules.records import Entity
from nnx_rules.transforms import Arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnx_lint.diagnostics import Related
    from nnx_lint.model.events import Mutated
    from nnx_lint.model.frames import Frame, TraceScope
    from nnx_lint.model.modules import Module


class Capture(Entity):
    """A captured object that is changed.

    Attributes:
        scope: the transform that captures it.
        module, node: the place to report.
        target: the object that is changed.
        owner: the object that the traced function names: the changed one, or one that holds it.
        name: what it is called there.
        held: how the function brought the object along without naming it, if so.
        where: where the object comes from, in words.
        called: whether it is a call of the named object, or of a method of it, that leads to the change.
        nondifferentiated: whether it came in as an argument that the transform hands through as it is.
        related: the transform, the creation of the object, and the change where that is elsewhere.
    """

    scope: TraceScope
    module: Module
    node: ast.AST
    target: Value
    owner: Value
    name: str
    held: str | None = None
    where: str = ""
    called: bool = False
    nondifferentiated: bool = False
    related: tuple[Related, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether the named object is itself the changed one."""
        return self.owner is self.target


def capture_of(event: Mutated, capturing: Callable[[Frame, int], TraceScope | None] | None = None) -> Capture | None:
    """The capture that a mutation shows, or ``None`` where there is none, or none that is certain.

    ``capturing`` finds the running transform that captures objects of a level, by default one that does not lift them.
    """
    frame, target = event.frame, event.target
    if not frame.scope or (isinstance(target, Obj) and not target.cls.tracked):
        return None
    level = level_of(target, event.effect)
    scope = frame.crossed(level) if capturing is None else capturing(frame, level)
    if scope is None or scope.frame is None or not frame.certain_within(scope):
        return None
    if any(module.mentions(*REFERENCES) for module in (frame.module, scope.applied.module)):
        return None
    traced, applied = scope.frame, scope.applied
    held = next(((value, how) for value, how in scope.held if value is target or holds(value, target)), None)
    if held is not None:
        if traced.doubts:
            return None
        name = _held_name(scope, *held)
        capture = Capture(scope, applied.module, applied.node, target, held[0], name, held[1], HELD[held[1]])
    else:
        module, node = frame.place_within(scope, event.node)
        name, owner = (event.name, target) if frame is traced else owner_at(frame, traced, node, target, event.name)
        called = frame is not traced and entered(frame, traced).receiver is owner
        capture = Capture(scope, module, node, target, owner, name, called=called)
        capture.where, capture.nondifferentiated = provenance(scope, name, owner)
        if capture.nondifferentiated and any(each.row.arguments is not Arguments.SHARED for each in scope.within):
            return None  # a compiled function under `jax.grad` gets copies all the same
    capture.related = tuple(_related(capture, event))
    return capture


HELD = {
    "transformed": "it is the instance that is transformed",
    "bound": "it is the instance of the method that is transformed",
    "partial": "it is an argument of the partial that is transformed",
}


REFERENCES = (
    *("var_defaults", "with_vars", "vars_as", "to_refs", "use_refs", "hijax", "array_ref", "mutable_array"),
    *("FLAX_HIJAX_VARIABLE", "FLAX_ARRAY_REF", "FLAX_MUTABLE_ARRAY"),
    re.compile(r"ref\s*=\s*True\b"),
)
"""Signs that Variables hold array references, which JAX itself tracks through traces."""


def refuses_streams(scope: TraceScope) -> bool:
    """Whether a call differentiates by random streams, which JAX refuses: that is told there."""
    called = scope.frame is not None and scope.frame.call is not None
    return called and scope.row.name in {"jax.grad", "jax.value_and_grad"} and "allow_int" not in scope.applied.keywords


def level_of(target: Value, effect: str) -> int:
    """The trace level that decides whether the change is allowed."""
    if isinstance(target, Obj) and target.leaf_level is not None and effect in {"call", "draw"}:
        return target.leaf_level
    return target.level if isinstance(target, (Obj, StateVal, Seq, DictVal)) else 0


# -- names -------------------------------------------------------------------------------------------------------------


def owner_at(frame: Frame, traced: Frame, place: ast.AST, target: Value, fallback: str) -> tuple[str, Value]:
    """The object that a call in the traced function names and whose change in the callee (``frame``) is at hand."""
    func = place.func if isinstance(place, ast.Call) else place if isinstance(place, ast.Attribute) else None
    nodes = [func] if func is not None else []
    if isinstance(func, ast.Attribute):
        nodes.append(func.value)
    if isinstance(place, ast.Call):
        nodes += [*place.args, *(keyword.value for keyword in place.keywords)]
    held = [(node, value) for node in nodes if (value := value_at(traced, node)) is not None]
    for node, value in held:
        if value is target:
            return text_of(node), value
    for node, value in held:
        if isinstance(value, Obj) and holds(value, target):
            return text_of(node), value
    receiver = entered(frame, traced).receiver
    if receiver is not None and func is not None and holds(receiver, target):
        return text_of(func), receiver  # the receiver is the value of an expression, not of a name
    return fallback, target


def entered(frame: Frame, traced: Frame) -> Frame:
    """The function that the traced one called, on the way to ``frame``."""
    while frame.caller is not None and frame.caller is not traced:
        frame = frame.caller
    return frame


def holds(owner: Value, target: Value, depth: int = 6) -> bool:
    """Whether an object holds another one, as far as its attributes have been seen."""
    seen: set[int] = set()
    level = [owner]
    for _ in range(depth):
        inner: list[Value] = []
        for value in level:
            if isinstance(value, Obj):
                members = [attr.value for attr in value.attrs.values()]
            elif isinstance(value, Seq):
                members = [*value.items, *value.picked.values()]
            elif isinstance(value, DictVal):
                members = [item for _, item in value.items]
            else:
                continue
            for option in (option for member in members for option in options(member)):
                if option is target:
                    return True
                if id(option) not in seen:
                    seen.add(id(option))
                    inner.append(option)
        level = inner
    return False


def _held_name(scope: TraceScope, value: Value, how: str) -> str:
    node = scope.applied.node
    given = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if how == "partial" and isinstance(given, ast.Call):
        nodes = [*given.args[1:], *(keyword.value for keyword in given.keywords)]
        names = [text_of(item) for item in nodes if isinstance(item, (ast.Name, ast.Attribute))]
        given = None
        if len(names) == 1:
            return names[0]
    if how == "bound" and isinstance(given, ast.Attribute):
        return text_of(given.value)
    return text_of(given) if given is not None else value.describe()


# -- where it comes from -----------------------------------------------------------------------------------------------


OUTSIDE = "it was made outside of the function"


def provenance(scope: TraceScope, name: str, owner: Value) -> tuple[str, bool]:
    """Where a captured object comes from, in words, and whether it is an argument that is not differentiated."""
    traced = scope.frame
    if traced is None:
        return OUTSIDE, False
    shares = scope.row.arguments is Arguments.SHARED
    if isinstance(owner, Obj) and owner.leaf_level is not None:
        return "it shares the Variables of a State from outside of the function", shares and _merges_parameter(
            traced, owner
        )
    root = name.partition("(")[0].partition("[")[0].partition(".")[0]
    found = traced.env.lookup(root)
    if found is None:
        return OUTSIDE, False
    env, value = found
    subject = "it is" if root == name else f"`{root}` is"
    if env.kind == "module":
        return f"{subject} a global of the module", False
    if env.func is None:
        return OUTSIDE, False
    arguments = env.func.node.args
    parameters = set(syntax_parameters.names(arguments))
    if env is not traced.env:
        what = "a parameter" if root in parameters else "a variable"
        return f"{subject} {what} of the enclosing function `{env.func.name}`", False
    if root not in parameters:
        return OUTSIDE, False
    if env.func.defaults.get(root) is value:
        return f"{subject} a default argument", False
    if shares:
        return f"`{scope.text}` hands arguments that it does not differentiate through as they are", True
    return f"{subject} a static argument", False


def _merges_parameter(traced: Frame, merged: Obj) -> bool:
    """Whether an object was merged from a State that is a parameter of the traced function."""
    node = merged.origin[1] if merged.origin is not None else None
    if traced.func is None or not isinstance(node, ast.Call):
        return False
    parameters = set(syntax_parameters.positional_names(traced.func.node.args))
    return any(isinstance(item, ast.Name) and item.id in parameters for item in node.args)


def _related(capture: Capture, event: Mutated) -> list[Related]:
    places: list[Related] = []
    applied = capture.scope.applied
    if capture.node is not event.node:
        places.append(related(event.frame.module, event.node, f"`{event.name}` is changed here"))
    if applied.node is not capture.node:
        places.append(related(applied.module, applied.node, f"`{applied.text}` is applied here"))
    if isinstance(capture.target, Obj) and capture.target.origin is not None:
        module, node = capture.target.origin
        if node is not capture.node and node is not event.node:
            places.append(related(module, node, f"the {capture.target.cls.name} is created here"))
    return places
