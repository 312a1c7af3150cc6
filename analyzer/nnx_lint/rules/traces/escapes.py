"""Values that leave a traced function through an object outside of it, unchecked (NNX207, NNX214).

Invariants: a value counts as traced only where its expression is computed from an argument that the transform
certainly traces; a list of names, a counter or a shape that a traced function records is nobody's mistake.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.crossing import kept_positions
from nnx_lint.model.events import AttributeSet, ContainerFilled, Mutated, OuterNameSet
from nnx_lint.model.expressions import text_of
from nnx_lint.model.values import Array, ClassVal, Ext, HostArray, Obj, Value
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.program import attributes_named, keyword_node
from nnx_lint.rules.traces.captures import capture_of, level_of, value_at
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import traces as rules

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
    return target.id not in frame.env.names and target.id not in _taken_from(frame.module.tree)


@remembered
def _taken_from(tree: ast.Module) -> frozenset[str]:
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
    target = event.node.targets[0] if isinstance(event.node, ast.Assign) else None
    if isinstance(target, ast.Attribute):
        report(frame.module, event.node, name=text_of(target), transform=scope.text)


@judges(rules.TRACER_ESCAPE, OuterNameSet)
def outer_name(event: OuterNameSet, report: Reporter) -> None:
    frame = event.frame
    scope = frame.scope[-1] if frame.scope else None
    if scope is None or scope.frame is not frame or event.value_node is None:
        return
    if is_stand_in(scope, event.value) or is_traced(frame, scope, event.value_node):
        report(frame.module, event.node, name=event.name, transform=scope.text)


@judges(rules.TRACER_ESCAPE, AttributeSet)
def set_by_method(event: AttributeSet, report: Reporter) -> None:
    """A method of a plain object, which the traced function calls, sets an attribute to what it is given."""
    target = event.node.targets[0] if isinstance(event.node, ast.Assign) else None
    found = _kept_by_method(event.frame, target, event.obj.level, event.value, event.value_node)
    if found is not None and isinstance(target, ast.Attribute) and not _is_read(event.frame, target):
        _report_kept(*found, target, report)


@judges(rules.TRACER_ESCAPE, ContainerFilled)
def filled_by_method(event: ContainerFilled, report: Reporter) -> None:
    """The same with a container of the object."""
    target = container_node(event.node)
    level, stored = level_of(event.container, "write"), stored_node(event.node)
    found = _kept_by_method(event.frame, target, level, event.value, stored)
    if found is not None and isinstance(target, ast.Attribute) and not used_inside(event.frame, target):
        _report_kept(*found, target, report)


def _kept_by_method(
    frame: Frame, target: ast.AST | None, level: int, value: Value, stored: ast.expr | None
) -> tuple[Frame, TraceScope, ast.Call, ast.Attribute] | None:
    """The traced function that calls a method, which stores a tracer in an object of its own."""
    owner, caller, call = frame.receiver, frame.caller, frame.call
    if not isinstance(target, ast.Attribute) or not isinstance(owner, Obj) or owner.cls.tracked:
        return None
    scope = frame.crossed(max(level, owner.level), tracked=False)
    func = call.func if isinstance(call, ast.Call) else None
    if scope is None or caller is None or caller is not scope.frame or value_at(frame, target.value) is not owner:
        return None
    if not isinstance(call, ast.Call) or not isinstance(func, ast.Attribute) or emptied(frame, target):
        return None
    given = _argument(frame, call, stored)
    traced = _holds_stand_in(scope, value) or (given is not None and is_traced(caller, scope, given))
    kept = traced and _only_calls(caller, text_of(func.value), func.attr)
    return (caller, scope, call, func) if kept else None


def _argument(frame: Frame, call: ast.Call, stored: ast.expr | None) -> ast.expr | None:
    """What a call gives for the parameter of a method that an expression is."""
    names = parameters(frame)[1:]
    if not isinstance(stored, ast.Name) or stored.id not in names:
        return None
    place = names.index(stored.id)
    return call.args[place] if place < len(call.args) else keyword_node(call, stored.id)


def _report_kept(
    caller: Frame, scope: TraceScope, call: ast.Call, func: ast.Attribute, target: ast.Attribute, report: Reporter
) -> None:
    report(caller.module, call, name=f"{text_of(func.value)}.{target.attr}", transform=scope.text)


def _is_read(frame: Frame, target: ast.Attribute) -> bool:
    """Whether a method reads what it sets."""
    same = (node for node in walk(frame.func.node) if isinstance(node, ast.Attribute)) if frame.func is not None else ()
    return any(isinstance(node.ctx, ast.Load) and text_of(node) == text_of(target) for node in same)


def _holds_stand_in(scope: TraceScope, value: Value, depth: int = 3) -> bool:
    if isinstance(value, (Seq, DictVal)) and depth:
        members = [item[1] if isinstance(item, tuple) else item for item in value.items]
        return any(_holds_stand_in(scope, member, depth - 1) for member in members)
    return is_stand_in(scope, value)


def _only_calls(frame: Frame, name: str, method: str) -> bool:
    """Whether all that a function does with an object is to call this method: what it keeps is not for the function."""
    uses = [node for node in walk(frame.func.node) if isinstance(node, ast.expr)] if frame.func is not None else []
    owners = [node.attr for node in uses if isinstance(node, ast.Attribute) and text_of(node.value) == name]
    whole = [node for node in uses if isinstance(node, (ast.Name, ast.Attribute)) and text_of(node) == name]
    return len(owners) == len(whole) and set(owners) == {method}


def crossed_here(frame: Frame, level: int, *, tracked: bool) -> TraceScope | None:
    """The outermost running transform that captures objects of a level, where a transformed function does the change.

    The function may be one inside of it: a loss whose gradient a compiled step takes.
    """
    return frame.crossed(level, tracked=tracked) if frame.scope and frame.scope[-1].frame is frame else None


# -- what is stored where ----------------------------------------------------------------------------------------------


def container_node(node: ast.AST) -> ast.expr | None:
    """The container that a statement or call fills."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value
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


def is_stand_in(scope: TraceScope, value: Value) -> bool:
    """Whether a value certainly is an array that was made under a transform which gives arrays no values."""
    made = isinstance(value, Array) and not isinstance(value, HostArray) and value.level >= scope.level
    return made and scope.row.name in STAGING


def is_traced(frame: Frame, scope: TraceScope, node: ast.expr) -> bool:
    """Whether an expression in the traced function is certainly computed from a traced argument."""
    if frame.func is None or scope.frame is not frame:
        return False
    known = traced_parameters(frame, scope)
    bound: dict[str, list[ast.expr]] = {}
    for item in walk(frame.func.node):
        if isinstance(item, ast.Assign) and len(item.targets) == 1 and isinstance(item.targets[0], ast.Name):
            bound.setdefault(item.targets[0].id, []).append(item.value)
    stored = Counter(
        item.id for item in walk(frame.func.node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)
    )
    known -= stored.keys()
    for name, values in bound.items():
        # A name that is bound once is what it was bound to; of others it is not known which binding is seen.
        if stored[name] == 1 and _computed(frame, values[0], known):
            known.add(name)
    return _computed(frame, node, known)


NUMERIC = ("jax.numpy.", "jax.nn.", "jax.lax.")


def _computed(frame: Frame, node: ast.expr, known: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in known
    if isinstance(node, ast.BinOp):
        return _computed(frame, node.left, known) or _computed(frame, node.right, known)
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.op, ast.Not) and _computed(frame, node.operand, known)
    if isinstance(node, ast.Subscript):
        return _computed(frame, node.value, known)
    if isinstance(node, (ast.Tuple, ast.List)):
        return any(_computed(frame, item, known) for item in node.elts)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and _computed(frame, node.func.value, known):
            return isinstance(node.func.value, ast.BinOp) or node.func.attr in REDUCTIONS
        callee = _callee(frame, node.func)
        numeric = isinstance(callee, Ext) and callee.name.startswith(NUMERIC) and callee.name not in PLAIN
        variable = isinstance(callee, ClassVal) and callee.cls.is_variable
        return (numeric or variable) and any(_computed(frame, item, known) for item in node.args)
    return False


PLAIN = frozenset(f"jax.numpy.{name}" for name in ("shape", "ndim", "size", "dtype", "result_type", "finfo", "iinfo"))
REDUCTIONS = frozenset({"sum", "mean", "max", "min", "prod", "std", "var", "astype", "reshape", "transpose", "flatten"})


def _callee(frame: Frame, node: ast.expr) -> Value | None:
    from nnx_lint.model.imports import library_value

    if isinstance(node, ast.Attribute):
        owner = _callee(frame, node.value)
        return library_value(f"{owner.name}.{node.attr}") if isinstance(owner, Ext) else None
    found = frame.env.lookup(node.id) if isinstance(node, ast.Name) else None
    return found[1] if found is not None else None
