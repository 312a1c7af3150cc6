"""What modules sow: values that nobody takes out (NNX640), names that are taken (NNX601), arguments in a wrong order
(NNX641), methods that only modules have (NNX642), perturbations without effect (NNX643), and values of single elements
under a map (NNX647).
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix
from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.classes import UserClass, library_class
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.expressions import text_of
from nnx_lint.model.values import (
    Array,
    ClassVal,
    Const,
    Ext,
    Obj,
    Other,
    Value,
)
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.bindings import bound_to
from nnx_lint.rules.edits import append_argument, unsafe
from nnx_lint.rules.intermediates.reading import capture_around
from nnx_lint.rules.program import FUNCTIONS, LOOPS, ancestors, enclosing, keyword_node, reads_of, resolved
from nnx_lint.rules.randomness.maps import axis_of, parameter_of
from nnx_lint.rules.repeating import handed_for, loop_around, outwards
from nnx_lint.rules.spelling import spelled
from nnx_lint.rules.transforms.options import axes_of, given_to
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import assigned_names, names_in
from nnx_lint.syntax.walk import walk
from nnx_rules import _filter_logic as logic
from nnx_rules._filter_logic import Leaf
from nnx_rules.rules import intermediates as rules
from nnx_rules.rules.modules import SOW_ON_ATTRIBUTE
from nnx_rules.transforms import Arguments

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame, TraceScope
    from nnx_lint.model.modules import Module

MODULE = library_class("nnx.Module")
PYTREE = library_class("nnx.Pytree")
OPTIMIZERS = frozenset({"nnx.Optimizer"})


def is_module(value: Value | None) -> bool:
    """Whether a value certainly is an ``nnx.Module``."""
    return isinstance(value, Obj) and MODULE is not None and MODULE in value.cls.ancestors


def sows(event: Called) -> Obj | None:
    """The module whose own ``sow`` or ``perturb`` is called."""
    callee = event.callee
    receiver = callee.receiver if isinstance(callee, BoundMethod) and callee.func is None else None
    return receiver if isinstance(receiver, Obj) and is_module(receiver) else None


def argument(event: Called, position: int, keyword: str) -> Value | None:
    """An argument by position or keyword."""
    if keyword in event.keywords:
        return event.keywords[keyword]
    return event.args[position] if position < len(event.args) else None


def sown_name(event: Called) -> str | None:
    """The name under which a value is sown, where it is written out."""
    name = argument(event, 1, "name")
    return name.value if isinstance(name, Const) and isinstance(name.value, str) else None


# -- values that stay --------------------------------------------------------------------------------------------------


@judges_calls(rules.SOWN_NOT_COLLECTED, ".sow")
def sown_not_collected(event: Called, report: Reporter) -> None:
    name, kind = sown_name(event), argument(event, 0, "variable_type")
    if sows(event) is None or name is None or not isinstance(kind, ClassVal) or len(event.args) > 3 or event.keywords:
        return
    frame = event.frame
    if _outermost(frame) is frame or _collects(frame):
        return
    if capture_around(frame) is not False:
        return
    if frame.doubtful:
        return
    found = _repeated(frame)
    if found is None:
        return
    call, caller = found
    lifted = next((scope for scope in frame.scope if scope.row.cached and scope.row.arguments is Arguments.KEPT), None)
    traced = f", so that `{lifted.text}` compiles the function again for each call" if lifted is not None else ""
    sown = (related(frame.module, event.node, "sown here"),)
    path, variable = f"{type_name(frame)}.{name}", kind.cls.name
    report(caller.module, call, path=path, variable=f"nnx.{variable}", traced=traced, related=sown)


def type_name(frame: Frame) -> str:
    """The name of the class whose method runs."""
    return frame.receiver.cls.name if isinstance(frame.receiver, Obj) else "the module"


def _outermost(frame: Frame) -> Frame:
    return _first_call(frame)[1]


def _first_call(frame: Frame) -> tuple[ast.AST, Frame]:
    """The call in the outermost function that leads here."""
    outer, call = [(frame, frame.module.source.tree), *frame.callers()][-1]
    return call, outer


def _repeated(frame: Frame) -> tuple[ast.AST, Frame] | None:
    """A call that leads here and that a loop repeats with the same object, and where it is."""
    call, caller = _first_call(frame)
    repeated = enclosing(caller.module, call, *LOOPS, *FUNCTIONS)
    if isinstance(repeated, LOOPS):
        once = is_module(caller.receiver) or _is_made_in(frame, repeated)  # rounds of one forward pass, new objects
        return None if once else (call, caller)
    inner, name = frame, next(iter(syntax_parameters.positional_names(frame.func.node.args)), "") if frame.func else ""
    for handed in outwards(frame, name):
        given = handed_for(inner, name) if name else None
        loop = loop_around(handed.frame.module, handed.call, handed.name)
        bound = assigned_names([loop]) if isinstance(loop, ast.stmt) else None
        same = bound is not None and (given is None or names_in(given).isdisjoint(bound))
        if same and not is_module(handed.frame.receiver):
            return handed.call, handed.frame
        inner, name = handed.frame, handed.name
    return next(((call, caller) for caller, call in frame.callers() if _is_repeated(caller, call)), None)


def _is_repeated(caller: Frame, call: ast.AST) -> bool:
    """Whether a loop of a function that is no forward pass makes a call for one object again and again."""
    loop = enclosing(caller.module, call, *LOOPS, *FUNCTIONS)
    if not isinstance(loop, ast.stmt) or not isinstance(call, ast.Call) or isinstance(loop, FUNCTIONS):
        return False
    if is_module(caller.receiver):
        return False  # rounds of one forward pass
    func = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    objects = [node for node in (func, *call.args) if isinstance(resolved(caller.env, node), Obj)]
    return bool(objects) and all(names_in(node).isdisjoint(assigned_names([loop])) for node in objects)


def _is_made_in(frame: Frame, loop: ast.AST) -> bool:
    """Whether the object whose method was called first is another one in each round of a loop."""
    while frame.caller is not None and frame.caller.caller is not None and frame.call is not None:
        frame = frame.caller
    node = frame.receiver.node if isinstance(frame.receiver, Obj) else None
    return node is not None and any(part is node for part in walk(loop))


def _collects(frame: Frame) -> bool:
    """Whether what calls a method may take sown values out of objects, in whatever way; or whoever calls that, where it
    is a function.
    """
    outermost = _outermost(frame)
    words = ("pop(", "delattr(") if outermost.func is None else ("pop(", "capture(", "delattr(")
    return any(outer.module.mentions(*words) for outer, _ in frame.callers())


# -- names that are taken ----------------------------------------------------------------------------------------------


@judges_calls(SOW_ON_ATTRIBUTE, ".sow")
def sow_on_attribute(event: Called, report: Reporter) -> None:
    obj, name, kind = sows(event), sown_name(event), argument(event, 0, "variable_type")
    if obj is None or name is None or not isinstance(kind, ClassVal) or not isinstance(obj.cls, UserClass):
        return
    held = _taken(obj, name, kind)
    around = capture_around(event.frame)
    entry = _outermost(event.frame) is event.frame
    if held is None or around is not False or (entry and event.frame.module.mentions("capture")):
        return
    node = event.nodes[1] if len(event.nodes) > 1 else event.node
    fix = _renamed(event.frame.module, node, name) if isinstance(node, ast.Constant) else None
    report(event.frame.module, node, fix=fix, cls=obj.cls.name, path=name, value=held, variable=kind.cls.name)


def _taken(obj: Obj, name: str, kind: ClassVal) -> str | None:
    """What stands in the way of a sown value, in words."""
    attr = attribute_of(obj, name)
    if attr is not None:
        certain = attr.assignments and any(not item.branches and not item.doubtful for item in attr.assignments)
        value = attr.value
        if not certain:
            return None
        if isinstance(value, Obj):
            if value.cls.is_variable:
                return None if value.cls is kind.cls else value.describe()
            return value.describe() if value.cls.is_pytree else None
        return value.describe() if isinstance(value, (Array, Const, DictVal, Other, Seq)) else None
    found = obj.cls.find(name) if isinstance(obj.cls, UserClass) else None
    if found is None or not isinstance(found[1], FuncVal):
        return None
    return "a property" if found[1].is_property else "a method"


def _renamed(module: Module, node: ast.Constant, name: str) -> Fix:
    return Fix("Sow under another name", (Edit(module.source.span(node), f'"{name}_sown"'),), Applicability.UNSAFE)


# -- arguments ---------------------------------------------------------------------------------------------------------

ORDERS = {"sow": ("a Variable type, a name and a value", 1, 3), "perturb": ("a name and a value", 0, 2)}
"""What a method takes in words, the position of the name, and how many arguments there are."""


@judges_calls(rules.SOW_ARGUMENTS, ".sow", ".perturb")
def sow_arguments(event: Called, report: Reporter) -> None:
    callee = event.callee
    if sows(event) is None or not isinstance(callee, BoundMethod) or None in event.args:
        return
    order, place, count = ORDERS[callee.name]
    if len(event.args) <= place or "name" in event.keywords:
        return
    name = event.args[place]
    if not isinstance(name, (Array, ClassVal, Obj, Seq)) and not (
        isinstance(name, Const) and not isinstance(name.value, str)
    ):
        # A parameter may be anything; that the other argument is the name tells.
        swapped = callee.name == "perturb" and len(event.args) > 1 and _is_text(event.args[1]) and not _is_text(name)
        if not swapped or (isinstance(event.nodes[0], ast.Name) and "name" in event.nodes[0].id):
            return
    module = event.frame.module
    texts = _ordered(event, place)
    plain = texts is not None and len(event.args) == count and not any(isinstance(n, ast.Starred) for n in event.nodes)
    fix = _in_order(module, event.nodes, texts) if texts is not None and plain else None
    mend = f"{event.name}({', '.join(texts)})" if texts is not None else f"{event.name}(...)"
    shown = name.describe() if name is not None and name.describe() != "a value" else f"`{text_of(event.nodes[place])}`"
    report(module, event.node, fix=fix, method=callee.name, order=order, value=shown, mend=mend)


def _is_text(value: Value | None) -> bool:
    return isinstance(value, Const) and isinstance(value.value, str)


def _ordered(event: Called, place: int) -> list[str] | None:
    """The arguments in the right order, where it is clear which is which."""
    source = event.frame.module.source
    texts = {index for index, value in enumerate(event.args) if _is_text(value)}
    kinds = {index for index, value in enumerate(event.args) if isinstance(value, ClassVal)}
    if len(texts) != 1 or (place == 1 and len(kinds) != 1):
        return None
    first = [*kinds] if place == 1 else []
    order = [*first, *texts, *(index for index in range(len(event.args)) if index not in texts | kinds)]
    return [source.segment(event.nodes[index]) for index in order]


def _in_order(module: Module, nodes: list[ast.expr], texts: list[str]) -> Fix:
    edits = tuple(Edit(module.source.span(node), text) for node, text in zip(nodes, texts, strict=True))
    return Fix("Put the arguments in order", edits)


# -- reductions --------------------------------------------------------------------------------------------------------

REDUCTIONS = ("jax.numpy.", "jax.lax.", "operator.")
"""Where functions of arrays come from."""


@judges_calls(rules.SOW_REDUCTION, ".sow")
def sow_reduction(event: Called, report: Reporter) -> None:
    """A function that combines arrays gets the empty tuple that ``sow`` begins with."""
    reduction = event.keywords.get("reduce_fn")
    if sows(event) is None or reduction is None or not {"init_fn", "**"}.isdisjoint(event.keywords):
        return
    if len(event.args) > 3 or None in event.args or not isinstance(argument(event, 2, "value"), Array):
        return
    known = isinstance(reduction, Ext) and reduction.name.startswith(REDUCTIONS)
    if known or (isinstance(reduction, FuncVal) and _computes(reduction.node)):
        node = keyword_node(event.node, "reduce_fn") or event.node
        fix = partial(_from_zero, event.frame.module, event.node) if _adds(reduction) else None
        report(event.frame.module, node, fix=fix, reduction=event.frame.module.source.segment(node))


def _from_zero(module: Module, call: ast.AST) -> Fix | None:
    if not isinstance(call, ast.Call):
        return None
    return unsafe("Begin with zero", append_argument(module.source, call, "init_fn=lambda: 0.0"))


def _adds(reduction: Value) -> bool:
    """Whether a function adds its arguments, so that zero is what to begin with."""
    if isinstance(reduction, Ext):
        return reduction.name in {"jax.numpy.add", "jax.lax.add", "operator.add"}
    body = reduction.node.body if isinstance(reduction, FuncVal) else None
    return isinstance(body, ast.BinOp) and isinstance(body.op, ast.Add)


def _computes(node: ast.AST) -> bool:
    """Whether a function of two parameters returns the result of an operator between them."""
    body = node.body if isinstance(node, ast.Lambda) else None
    names = [item.arg for item in node.args.args] if isinstance(node, ast.Lambda) else []
    sides = [body.left, body.right] if isinstance(body, ast.BinOp) else []
    return len(names) == 2 and {side.id for side in sides if isinstance(side, ast.Name)} == set(names)


# -- methods of modules ------------------------------------------------------------------------------------------------

MODULE_METHODS = ("sow", "perturb", "train", "eval", "set_attributes")


@judges_calls(rules.MODULE_METHOD_ON_PYTREE, *(f".{name}" for name in MODULE_METHODS))
def module_method_on_pytree(event: Called, report: Reporter) -> None:
    obj, func = event.owner, event.node.func if isinstance(event.node, ast.Call) else None
    if not isinstance(obj, Obj) or not isinstance(obj.cls, UserClass) or not isinstance(func, ast.Attribute):
        return
    cls = obj.cls
    if PYTREE is None or PYTREE not in cls.ancestors or is_module(obj) or cls.is_open or cls.opaque or cls.remade:
        return
    library = cls.library
    plain = library is not None and library.canonical in {"nnx.Pytree", "nnx.Object"}
    known = any(
        isinstance(item, UserClass)
        and ("__getattr__" in item.methods or func.attr in {*item.methods, *item.attributes})
        for item in cls.ancestors
    )
    if not plain or known or attribute_of(obj, func.attr) is not None or (obj.assumed and cls.may_be_extended):
        return
    fix = _as_module(event.frame.module, cls)
    report(event.frame.module, event.node, fix=fix, cls=cls.name, method=func.attr)


def _as_module(module: Module, cls: UserClass) -> Fix | None:
    name = spelled("nnx.Module", module, cls.env.parent if cls.env.kind == "class" else None)
    bases = cls.node.bases
    if name is None or len(bases) != 1 or cls.module is not module or len(cls.bases) != 1:
        return None
    if isinstance(cls.bases[0], UserClass):
        return None
    return Fix(f"Derive from `{name}`", (Edit(module.source.span(bases[0]), name),), Applicability.UNSAFE)


# -- perturbations -----------------------------------------------------------------------------------------------------


@judges_calls(rules.PERTURBATION_UNUSED, ".perturb")
def perturbation_unused(event: Called, report: Reporter) -> None:
    module = event.frame.module
    unread = _unread_name(module, event.node)
    if sows(event) is None or len(event.nodes) < 2:
        return
    if unread is None and not isinstance(next(ancestors(module, event.node), None), ast.Expr):
        return
    name, node = event.args[0], event.nodes[1]
    if not isinstance(name, Const) or not isinstance(name.value, str):
        return
    target = node.id if isinstance(node, ast.Name) else None
    call = module.source.segment(event.node)
    place = module.source.span(node)
    start = module.source.span(event.node).start
    edit = Edit(type(place)(start, start), f"{target} = ")
    if unread is not None:
        edit = Edit(module.source.span(unread), target or unread.id)
    mend = f"{target or 'x'} = {call if len(call) < 60 else 'self.perturb(...)'}"
    fix = Fix("Assign the result", (edit,)) if target else None
    report(module, event.node, fix=fix, name=name.value, mend=mend)


def _unread_name(module: Module, node: ast.AST) -> ast.Name | None:
    """The name that takes the value of an expression, in a function that reads it nowhere."""
    bound, func = bound_to(module, node), enclosing(module, node, *FUNCTIONS)
    target = bound.target if bound is not None else None
    if not isinstance(target, ast.Name) or func is None or reads_of(func, target.id):
        return None
    return target


# -- maps --------------------------------------------------------------------------------------------------------------


@judges_calls(rules.SOWN_UNDER_MAP, ".sow")
def sown_under_map(event: Called, report: Reporter) -> None:
    obj, name, value = sows(event), sown_name(event), argument(event, 2, "value")
    scope = event.frame.scope[-1] if event.frame.scope else None
    if obj is None or name is None or scope is None or scope.row.name not in {"nnx.vmap", "nnx.pmap"} or scope.held:
        return
    if not isinstance(value, Array) or value.level != scope.level or not event.frame.certain_within(scope):
        return
    found = parameter_of(scope, obj)
    if found is None or capture_around(event.frame) is not False:
        return
    if axis_of(scope.applied, found[1]) is not None and not _has_no_axis(event, scope, found[1]):
        return
    others = [axis_of(scope.applied, place) for place in range(found[1] + 3) if place != found[1]]
    if not any(isinstance(axis, int) for axis in others):
        return
    module, node = event.frame.place_within(scope, event.node)
    path = ".".join((found[0], *found[2], name))
    also = (related(event.frame.module, event.node, "sown here"),) if node is not event.node else ()
    report(module, node, transform=scope.text, path=path, related=also)


def _has_no_axis(event: Called, scope: TraceScope, position: int) -> bool:
    """Whether the ``StateAxes`` of an argument give no axis to the Variables of the type that is sown."""
    kind, axes = argument(event, 0, "variable_type"), axes_of(scope.applied, "in_axes")
    given = axes[position] if isinstance(axes, tuple) and position < len(axes) else None
    return isinstance(kind, ClassVal) and given_to(given, Leaf(logic.UNKNOWN, kind.cls, logic.UNKNOWN)) is None
