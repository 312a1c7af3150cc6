"""Values that leave a traced function through an object outside of it, unchecked (NNX207, NNX214).

Invariants: a value counts as traced only where its expression is computed from an argument that the transform
certainly traces; a list of names, a counter or a shape that a traced function records is nobody's mistake.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from nnx_lint.model.arrays import is_array_function
from nnx_lint.model.classes import method_of
from nnx_lint.model.crossing import kept_positions, literal_positions
from nnx_lint.model.events import AttributeSet, ContainerFilled, Mutated, OuterNameSet
from nnx_lint.model.expressions import text_of
from nnx_lint.model.naming import value_at
from nnx_lint.model.values import Array, ClassVal, Ext, HostArray, Obj, Value
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.bindings import pairs_of, place_of
from nnx_lint.rules.program import attributes_named
from nnx_lint.rules.traces.captures import capture_of, level_of
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import traces as rules
from nnx_rules.transforms import DIFFERENTIATING

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame, TraceScope


@judges(rules.UNTRACKED_MUTATION, Mutated)
def untracked(event: Mutated, report: Reporter) -> None:
    if event.effect != "untracked" or not isinstance(event.target, Obj):
        return
    capture = capture_of(event)
    if capture is not None and capture.held is None:
        report(
            capture.module,
            capture.node,
            related=capture.related,
            name=capture.name,
            transform=capture.scope.text,
            action=event.action,
        )


@judges(rules.TRACER_ESCAPE, ContainerFilled)
@judges(rules.UNTRACKED_MUTATION, ContainerFilled)
def container_filled(event: ContainerFilled, report: Reporter) -> None:
    frame = event.frame
    target = container_node(event.node)
    if target is None:
        return
    owner = value_at(frame, target.value) if isinstance(target, ast.Attribute) else None
    held = event.container.owner if owner is None else None
    owner = held[0] if held is not None else owner
    tracked = isinstance(owner, Obj) and owner.cls.tracked
    scope = crossed_here(frame, level_of(event.container, "write"), tracked=tracked)
    stored = stored_node(event.node)
    if scope is None and _is_kept_by_module(frame, target, event.container):
        scope = frame.crossed(0, tracked=False)
    if scope is None or stored is None:
        return
    if not is_stand_in(scope, event.value) and not is_traced(frame, scope, stored):
        return
    if emptied(frame, target) or (isinstance(target, ast.Name) and target.id in parameters(frame)):
        return
    if not tracked and used_inside(frame, target):
        return
    if tracked is (report.rule is rules.UNTRACKED_MUTATION):
        report(frame.module, event.node, name=text_of(target), transform=scope.text, action=event.action)


def _is_kept_by_module(frame: Frame, target: ast.expr, container: Value) -> bool:
    """Whether a container belongs to the module, which takes nothing out of it, so that any function may see it."""
    if not isinstance(target, ast.Name) or frame.module.env.names.get(target.id) is not container or not frame.scope:
        return False
    return target.id not in frame.env.names and target.id not in taken_from(frame.module.tree)


@remembered
def taken_from(tree: ast.Module) -> frozenset[str]:
    """The names out of whose values a module takes something."""
    owners = (node.value for name in TAKING for node in attributes_named(tree).get(name, ()))
    return frozenset(owner.id for owner in owners if isinstance(owner, ast.Name))


@judges(rules.TRACER_ESCAPE, AttributeSet)
def attribute_of_plain_object(event: AttributeSet, report: Reporter) -> None:
    frame = event.frame
    if event.obj.cls.tracked or event.value_node is None:
        return
    scope = crossed_here(frame, event.obj.level, tracked=False)
    if scope is None:
        return
    if not is_stand_in(scope, event.value) and not is_traced(frame, scope, event.value_node):
        return
    target = place_of(event)
    if target is not None:
        report(frame.module, event.node, name=text_of(target), transform=scope.text)


@judges(rules.TRACER_ESCAPE, OuterNameSet)
def outer_name(event: OuterNameSet, report: Reporter) -> None:
    frame = event.frame
    scope = frame.scope[-1] if frame.scope else None
    if scope is None or scope.frame is not frame or event.value_node is None:
        return
    if is_stand_in(scope, event.value) or is_traced(frame, scope, event.value_node):
        report(frame.module, event.node, name=event.name, transform=scope.text)


def crossed_here(frame: Frame, level: int, *, tracked: bool) -> TraceScope | None:
    """The outermost running transform that captures objects of a level, where a transformed function does the change.

    The function may be one inside of it: a loss whose gradient a compiled step takes.
    """
    return frame.crossed(level, tracked=tracked) if frame.scope and frame.scope[-1].frame is frame else None


# -- what is stored where ----------------------------------------------------------------------------------------------


def container_node(node: ast.AST) -> ast.expr | None:
    """The container that a statement or call fills; for `kept.setdefault(key, []).append(value)`, the outer one."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        inner = owner.func if isinstance(owner, ast.Call) else None
        return inner.value if isinstance(inner, ast.Attribute) and inner.attr == "setdefault" else owner
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return node.targets[0].value
    return None


TAKING = frozenset({"clear", "pop", "popitem", "popleft", "remove"})
"""Methods that take something out of a container."""


def emptied(frame: Frame, container: ast.expr) -> bool:
    """Whether the traced function also takes things out of the container, as one does with a stack."""
    name = text_of(container)
    return frame.func is not None and any(
        isinstance(node, ast.Attribute) and node.attr in TAKING and text_of(node.value) == name
        for node in walk(frame.func.node)
    )


def used_inside(frame: Frame, container: ast.expr) -> bool:
    """Whether the traced function itself reads the container: then it is scratch space, and may be nothing else."""
    name = text_of(container)
    reads = (
        node
        for node in walk(frame.func.node if frame.func is not None else ast.Pass())
        if isinstance(node, (ast.Name, ast.Attribute)) and text_of(node) == name
    )
    stores = {
        id(owner)
        for node in walk(frame.func.node if frame.func is not None else ast.Pass())
        if (owner := container_node(node)) is not None
    }
    return any(id(node) not in stores for node in reads)


def stored_node(node: ast.AST) -> ast.expr | None:
    """The expression that a statement or call stores."""
    if isinstance(node, ast.Call) and node.args:
        return node.args[-1]
    return node.value if isinstance(node, ast.Assign) else None


# -- which values are traced -------------------------------------------------------------------------------------------

STAGING = frozenset(
    {"jax.jit", "nnx.jit", "jax.checkpoint", "nnx.remat", "jax.lax.scan", "nnx.scan", "jax.lax.map", "jax.lax.cond"}
    | {"nnx.cond", "jax.lax.switch", "nnx.switch", "jax.lax.while_loop", "nnx.while_loop", "jax.lax.fori_loop"}
    | {"nnx.fori_loop"}
)
"""Transforms that replace every argument by a tracer without a value, which is of no use outside."""


def parameters(frame: Frame) -> list[str]:
    """The names of the positional parameters of the function of a frame."""
    if frame.func is None:
        return []
    arguments = frame.func.node.args
    return syntax_parameters.positional_names(arguments)


def traced_parameters(frame: Frame, scope: TraceScope) -> set[str]:
    """The parameters of a transformed function that certainly hold tracers."""
    func = frame.func
    if func is None or scope.held or scope.row.name not in STAGING:
        return set()
    names = parameters(frame)
    kept = kept_positions(scope.applied, func, len(names))
    if any(name in scope.applied.keywords for name in ("static_argnums", "static_argnames")) and not kept:
        return set()
    skipped: set[str] = {names[0]} if frame.receiver is not None and names else set()
    defaults = func.defaults.keys()
    return {name for i, name in enumerate(names) if i not in kept and name not in skipped and name not in defaults}


def differentiated_parameters(frame: Frame, scope: TraceScope) -> set[str]:
    """The parameters of a loss that certainly hold tracers without a value: a compiled function takes its gradient."""
    inner = frame.scope[-1]
    if inner.frame is not frame or inner.held or scope.row.name not in STAGING or inner.row.name not in DIFFERENTIATING:
        return set()
    names, positions = parameters(frame), literal_positions(inner.applied.keywords.get("argnums"), default=(0,))
    return {names[i] for i in positions or () if 0 <= i < len(names)}


def is_stand_in(scope: TraceScope, value: Value) -> bool:
    """Whether a value certainly is an array that was made under a transform which gives arrays no values."""
    made = isinstance(value, Array) and not isinstance(value, HostArray) and value.level >= scope.level
    return made and scope.row.name in STAGING


def is_traced(frame: Frame, scope: TraceScope, node: ast.expr) -> bool:
    """Whether an expression in the traced function is certainly computed from a traced argument."""
    names = traced_parameters(frame, scope) if scope.frame is frame else differentiated_parameters(frame, scope)
    return computed_from(frame, node, names)


def computed_from(frame: Frame, node: ast.expr, names: set[str], unless: frozenset[str] = frozenset()) -> bool:
    """Whether an expression of a function is certainly computed from what some of its parameters hold.

    ``unless`` names functions whose results do not count, besides those that ask for a shape or a type.
    """
    if frame.func is None or not names:
        return False
    bound: dict[str, list[ast.expr]] = {}
    for item in walk(frame.func.node):
        for target, value in pairs_of(item):
            if isinstance(target, ast.Name):
                bound.setdefault(target.id, []).append(value)
    stored = Counter(
        item.id for item in walk(frame.func.node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)
    )
    known = names - stored.keys()
    for name, values in bound.items():
        # A name that is bound once is what it was bound to; of others it is not known which binding is seen.
        if stored[name] == 1 and _computed(frame, values[0], known, unless):
            known.add(name)
    return _computed(frame, node, known, unless)


NUMERIC = ("jax.numpy.", "jax.nn.", "jax.lax.")


def _computed(frame: Frame, node: ast.expr, known: set[str], unless: frozenset[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in known
    if isinstance(node, ast.BinOp):
        return _computed(frame, node.left, known, unless) or _computed(frame, node.right, known, unless)
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.op, ast.Not) and _computed(frame, node.operand, known, unless)
    if isinstance(node, ast.Subscript):
        return _computed(frame, node.value, known, unless)
    if isinstance(node, (ast.Tuple, ast.List)):
        return any(_computed(frame, item, known, unless) for item in node.elts)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and _computed(frame, node.func.value, known, unless):
            return isinstance(node.func.value, ast.BinOp) or node.func.attr in REDUCTIONS
        callee = _callee(frame, node.func)
        numeric = isinstance(callee, Ext) and _is_numeric(callee.name) and callee.name not in PLAIN | unless
        variable = isinstance(callee, ClassVal) and callee.cls.is_variable
        argument = isinstance(node.func, ast.Name) and node.func.id in known  # a model, then
        computes = argument or numeric or variable or _is_layer(value_at(frame, node.func))
        return computes and (argument or any(_computed(frame, item, known, unless) for item in node.args))
    return False


def _is_numeric(name: str) -> bool:
    """Whether a function of this name computes with arrays: an activation of NNX is one of JAX."""
    return name.startswith(NUMERIC) or (name.startswith("nnx.") and is_array_function(name))


def _is_layer(value: Value | None) -> bool:
    """Whether a layer or module is called, whose result depends on what goes in."""
    if not isinstance(value, Obj) or not value.cls.derives_from("nnx.Module"):
        return False
    return value.cls.called_as is not None or method_of(value.cls, "__call__") is not None


PLAIN = frozenset(f"jax.numpy.{name}" for name in ("shape", "ndim", "size", "dtype", "result_type", "finfo", "iinfo"))
REDUCTIONS = frozenset(
    {"sum", "mean", "max", "min", "prod", "std", "var", "astype", "reshape", "transpose", "flatten"}
    | {"argmax", "argmin", "clip", "cumsum", "dot", "ravel", "round", "squeeze", "swapaxes"}
)


def _callee(frame: Frame, node: ast.expr) -> Value | None:
    from nnx_lint.model.imports import library_value

    if isinstance(node, ast.Attribute):
        owner = _callee(frame, node.value)
        return library_value(f"{owner.name}.{node.attr}") if isinstance(owner, Ext) else None
    found = frame.env.lookup(node.id) if isinstance(node, ast.Name) else None
    return found[1] if found is not None else None
