"""Variables and States as older versions have them (NNX903, NNX905, NNX906, NNX909, NNX910)."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.model.attributes import variable_value
from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.classes import LibClass, UserClass
from nnx_lint.model.events import Called, ClassDefined, Mutated, Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.states import SownVal, StateVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import Array, ClassVal, Ext, Obj, Value, VariableVal
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.graphs.states import is_used_as_dict
from nnx_lint.rules.program import enclosing, keyword_node
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax.walk import walk
from nnx_rules import api, versions
from nnx_rules.rules import versions as rules

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module

# -- .value ------------------------------------------------------------------------------------------------------------

PROPERTIES = frozenset({"value", "raw_value"})


def _has_property(value: Value, name: str) -> bool:
    """Whether it is the library's own attribute that is asked for."""
    if isinstance(value, (SownVal, VariableVal)):
        return True
    if not isinstance(value, Obj):
        return False
    cls = value.cls
    if not cls.is_variable or cls.is_open:
        return False
    own = cls.find(name) or cls.class_attribute(name) if isinstance(cls, UserClass) else None
    return own is None


def _reads_value(event: Used) -> bool:
    return event.what in PROPERTIES


@judges(rules.DEPRECATED_VALUE_PROPERTY, Used, when=_reads_value)
def value_read(event: Used, report: Reporter) -> None:
    node, value, module = event.node, present(event.value), event.frame.module
    if isinstance(node, ast.Assign):
        if isinstance(value, VariableVal):
            _report_written(module, node, None, event.what, report)
        return
    if not isinstance(node, ast.Attribute) or not _has_property(value, node.attr):
        return
    statement = enclosing(module, node, ast.AugAssign)
    is_array = isinstance(value, Obj) and isinstance(variable_value(value), Array) and node.attr == "value"
    tail = "[...]" if is_array else f".get_{node.attr}()"
    name = text_of(node.value)
    if statement is None or statement.target is not node or (is_array and _keeps_form(statement)):
        fix = partial(_replace_tail, module, node, tail)
        report(module, node, fix=fix, name=name, attribute=node.attr, mend=f"{name}{tail}")
    else:
        certain = is_array or _holds_arrays(value, statement)
        changed = partial(_set_changed, module, statement, node, tail, certain=certain)
        report(module, node, fix=changed, name=name, attribute=node.attr, mend=f"{name}.set_{node.attr}(...)")


def _replace_tail(module: Module, node: ast.Attribute, tail: str) -> Fix:
    start, end = module.source.span(node.value).end, module.source.span(node).end
    return Fix(f"Write `{tail}`", (Edit(Span(start, end), tail),))


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def _keeps_form(statement: ast.AugAssign) -> bool:
    """Whether an array certainly has its shape and dtype afterwards, which is what ``[...] +=`` gives it."""
    whole = isinstance(statement.value, ast.Constant) and type(statement.value.value) is int
    return whole and isinstance(statement.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Pow))


def _holds_arrays(value: Value, statement: ast.AugAssign) -> bool:
    """Whether the operator makes a new value, as it does of arrays and numbers, and not of lists."""
    special = isinstance(value, Obj) and any(
        isinstance(cls, LibClass) and cls.canonical != "nnx.Variable" and cls.is_variable for cls in value.cls.ancestors
    )
    return special or _is_number(statement.value)


OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.MatMult: "@",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.BitAnd: "&",
}

ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)
"""What needs no parentheses to be an operand."""


def _set_changed(
    module: Module, statement: ast.AugAssign, target: ast.Attribute, tail: str, *, certain: bool
) -> Fix | None:
    """``x.value += y`` as ``x.set_value(x.get_value() + y)``, where ``x`` may be evaluated twice."""
    source = module.source
    if not all(isinstance(part, (ast.Name, ast.Attribute, ast.Load)) for part in walk(target.value)):
        return None
    owner, value = source.span(target.value), source.span(statement.value)
    between = source.text[owner.end : value.start]
    if not {"#", "\\", ")"}.isdisjoint(between):
        return None
    opening = f".set_{target.attr}({source.segment(target.value)}{tail} {OPERATORS[type(statement.op)]} "
    bracket = between.find("(")
    if bracket >= 0 or isinstance(statement.value, ATOMS):
        end = source.span(statement).end
        kept = owner.end + bracket if bracket >= 0 else value.start
        edits = Edit(Span(owner.end, kept), opening), Edit(Span(end, end), ")")
    else:
        edits = Edit(Span(owner.end, value.start), f"{opening}("), Edit(Span(value.end, value.end), "))")
    applicability = Applicability.SAFE if certain else Applicability.UNSAFE
    return Fix("Use the method", edits, applicability)


def _writes_value(event: Mutated) -> bool:
    return event.action in ("`.value =`", "`.raw_value =`") and isinstance(event.node, ast.Assign)


@judges(rules.DEPRECATED_VALUE_PROPERTY, Mutated, when=_writes_value)
def value_written(event: Mutated, report: Reporter) -> None:
    attribute = event.action[2:-3]
    if isinstance(event.node, ast.Assign) and _has_property(event.target, attribute):
        _report_written(event.frame.module, event.node, event.name, attribute, report)


def _report_written(module: Module, node: ast.Assign, name: str | None, attribute: str, report: Reporter) -> None:
    """Report the one target of an assignment that is this attribute, of what is called ``name`` where that is known."""
    targets = [part for target in node.targets for part in walk(target)]
    found = [part for part in targets if isinstance(part, ast.Attribute) and part.attr == attribute]
    named = [part for part in found if name is None or text_of(part.value) == name]
    if len(named) != 1:
        return
    target = named[0]
    fix = partial(_set_value, module, node, target) if node.targets == [target] else None
    name = text_of(target.value)
    report(module, target, fix=fix, name=name, attribute=attribute, mend=f"{name}.set_{attribute}(...)")


def _set_value(module: Module, node: ast.Assign, target: ast.Attribute) -> Fix | None:
    source = module.source
    head, value, end = source.span(target.value).end, source.span(node.value), source.span(node).end
    between, _, rest = source.text[source.span(target).end :].partition("=")
    if between.strip() or isinstance(node.value, (ast.Yield, ast.YieldFrom)):
        return None
    opening = len(source.text) - len(rest.lstrip())
    method = f".set_{target.attr}"
    if source.text[opening] == "(" and value.start > opening:  # its own parentheses become those of the call
        return Fix("Use the method", (Edit(Span(head, opening), method),))
    bare = isinstance(node.value, ast.Tuple) and source.text[value.start] != "("
    before, after = ("((", "))") if bare else ("(", ")")
    return Fix("Use the method", (Edit(Span(head, value.start), method + before), Edit(Span(end, end), after)))


# -- methods of a State ------------------------------------------------------------------------------------------------


@judges_calls(
    rules.DEPRECATED_STATE_METHOD,
    *(f".{name}" for name in versions.STATE_METHODS),
    *(f"nnx.State.{name}" for name in versions.STATE_METHODS),
)
def deprecated_state_method(event: Called, report: Reporter) -> None:
    callee, node, module = event.callee, event.node, event.frame.module
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    method = node.func.attr
    static = isinstance(callee, Ext)
    if not static and not (isinstance(callee, BoundMethod) and isinstance(present(callee.receiver), StateVal)):
        return
    if method not in versions.STATE_METHODS:
        return
    function = versions.STATE_METHODS[method]
    fix = partial(_as_function, module, event, function, static=static or method in versions.CLASS_METHODS)
    report(module, node, fix=fix, method=method, function=function)


def _as_function(module: Module, event: Called, function: str, *, static: bool) -> Fix | None:
    name, node = spelled(f"nnx.{function}", module, event.frame.env), event.node
    if name is None or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    source = module.source
    func, receiver = source.span(node.func), source.segment(node.func.value)
    if static:
        return Fix(f"Use `{name}`", (Edit(func, name),))
    call, given = source.span(node), bool(node.args or node.keywords)
    if function == "map_state":  # the function comes first
        last = source.span(node.args[-1]).end if node.args else func.end + 1
        return Fix(f"Use `{name}`", (Edit(func, name), Edit(Span(last, last), f", {receiver}")))
    opening = source.text.index("(", func.end, call.end) + 1
    edits = [Edit(Span(func.start, opening), f"{name}({receiver}{', ' if given else ''}")]
    if function == "to_flat_state" and event.frame.env.lookup("dict") is None and is_used_as_dict(module, node):
        edits = [Edit(Span(func.start, opening), f"dict({edits[0].text}"), Edit(Span(call.end, call.end), ")")]
    return Fix(f"Use `{name}`", tuple(edits))


# -- construction ------------------------------------------------------------------------------------------------------


@judges_calls(rules.VARIABLE_STATE_TYPE, "nnx.Variable")
def variable_state_type(event: Called, report: Reporter) -> None:
    callee, node = event.callee, keyword_node(event.node, "type")
    kind = event.keywords.get("type")
    if len(event.args) == len(event.nodes) == 2:
        kind, node = event.args[0], event.nodes[0]  # the constructor of VariableState takes the type first
    if not isinstance(callee, ClassVal) or not isinstance(callee.cls, LibClass) or not isinstance(kind, ClassVal):
        return
    if callee.cls.canonical != "nnx.Variable" or not kind.cls.is_variable:
        return
    if node is None:
        return
    module = event.frame.module
    written = module.source.segment(node)
    fix = partial(make_type, module, event.node, node)
    report(module, event.node, fix=fix, written=event.name.rpartition(".")[2], type=written)


def make_type(module: Module, call: ast.AST, kind: ast.expr) -> Fix | None:
    """Make a Variable of a type that is named by ``kind``, with the other arguments of a call."""
    if not isinstance(call, ast.Call) or any(item.arg is None for item in call.keywords):
        return None
    source = module.source
    if any(isinstance(item, ast.Starred) for item in call.args) or "#" in source.segment(call):
        return None
    values = [source.segment(item) for item in call.args if item is not kind]
    values += [source.segment(item.value) for item in call.keywords if item.arg == "value"]
    values += [source.segment(item) for item in call.keywords if item.arg not in {"type", "value"}]
    text = f"{source.segment(kind)}({', '.join(values)})"
    return Fix(f"Make a `{source.segment(kind)}`", (Edit(source.span(call), text),))


WITH_METADATA = ("nnx.with_metadata", "class", *api.VARIABLES)
"""What takes metadata of Variables."""


@judges_calls(rules.DEPRECATED_SHARDING_METADATA, *WITH_METADATA)
@judges_calls(rules.DEPRECATED_VARIABLE_HOOK, *WITH_METADATA)
def deprecated_metadata(event: Called, report: Reporter) -> None:
    if isinstance(event.callee, ClassVal) and not event.callee.cls.is_variable:
        return
    sharding = report.rule is rules.DEPRECATED_SHARDING_METADATA
    names = versions.SHARDING_METADATA if sharding else versions.VARIABLE_HOOKS
    module = event.frame.module
    for keyword in event.node.keywords if isinstance(event.node, ast.Call) else ():
        if keyword.arg in names:
            start = module.source.span(keyword).start
            edit = Edit(Span(start, start + len(keyword.arg)), "out_sharding")
            fix = Fix("Call it `out_sharding`", (edit,)) if sharding else None
            report(module, keyword, fix=fix, name=f"{keyword.arg}=")
        elif keyword.arg is None and (given := names & event.keywords.keys()):
            report(module, keyword, name=f"{min(given)}=")


@judges(rules.DEPRECATED_VARIABLE_HOOK, ClassDefined)
def deprecated_hook_of_type(event: ClassDefined, report: Reporter) -> None:
    """A Variable type that has a hook as its method."""
    cls = event.cls
    hooks = sorted(versions.VARIABLE_HOOKS & cls.methods.keys()) if cls.is_variable else []
    for name in hooks:
        method = cls.methods[name]
        if isinstance(method, FuncVal):
            report(cls.module, method.node, name=name)
