"""Variables and modules that are in no state: replaced by an array (NNX122), or attributes of the class (NNX110)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.model.classes import UserClass
from nnx_lint.model.events import AttributeSet, Constructed, ContainerFilled
from nnx_lint.model.expressions import text_of
from nnx_lint.model.unions import options, present
from nnx_lint.model.values import UNKNOWN, Array, ClassVal, Const, Obj, TagVal, Value
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.edits import insert, remove_statement
from nnx_lint.rules.program import attributes_named, resolved, statement_of
from nnx_lint.syntax.binding import assigned_names
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import attributes as rules

if TYPE_CHECKING:
    from nnx_lint.model.classes import ClassBase
    from nnx_lint.model.frames import Frame


@judges(rules.VARIABLE_OVERWRITTEN, AttributeSet, of=(Array, Const))
def variable_overwritten(event: AttributeSet, report: Reporter) -> None:
    # On the arms of one branch the attribute has the value of one of them only.
    known = event.before is not None or not event.frame.branches or not event.attr.assignments
    held = event.attr.value if known else UNKNOWN
    variable = _variable(held)
    if variable is None or not _is_array(event.value) or (event.obj.assumed and event.frame.module.mocks):
        return
    if event.value_node is not None and _reads(event.value_node, event.name, event.node):
        return
    if event.frame.initializing is event.obj and event.before and event.before.branches != event.frame.branches:
        return  # a constructor that replaces it under a condition chooses what the attribute is to be
    report(
        event.frame.module,
        event.node,
        cls=event.obj.cls.name,
        path=event.name,
        variable=variable.cls.name,
        value=event.value.describe(),
        fix=lambda: _write_into(event.frame, event.node, variable),
    )


@judges(rules.VARIABLE_OVERWRITTEN, AttributeSet, of=(Array,))
def variable_of_another_method(event: AttributeSet, report: Reporter) -> None:
    """An array in the place of a Variable that another method makes, such as the one that allocates a cache."""
    cls, name, frame = event.obj.cls, event.name, event.frame
    if event.before is not None or event.attr.assignments or not isinstance(cls, UserClass):
        return
    if frame.func is None or frame.func.cls is not cls or frame.initializing is not None or frame.module.mocks:
        return
    if event.value_node is not None and _reads(event.value_node, name, event.node):
        return
    variable = _made_for(cls, name, event.node)
    if variable is not None:
        shown = variable.name
        report(frame.module, event.node, cls=cls.name, path=name, variable=shown, value=event.value.describe())


def _made_for(cls: UserClass, name: str, here: ast.AST) -> ClassBase | None:
    """The class of the Variables that all assignments of an attribute in a class make, but for the one at hand."""
    stored = [node for node in attributes_named(cls.node).get(name, ()) if isinstance(node.ctx, ast.Store)]
    statements = [statement_of(cls.module, node) for node in stored]
    values = [item.value for item in statements if isinstance(item, (ast.Assign, ast.AnnAssign)) and item is not here]
    if not values or len(values) != len(stored) - 1 or not isinstance(here, ast.Assign):
        return None
    found: ClassBase | None = None
    for value in values:
        made = resolved(cls.module.env, value.func) if isinstance(value, ast.Call) else None
        if isinstance(made, ClassVal) and made.cls.is_variable:
            found = made.cls
        elif not (isinstance(value, ast.Constant) and value.value is None):
            return None
    return found


def _variable(value: Value) -> Obj | None:
    """The Variable that an attribute certainly holds."""
    found = [item for item in options(present(value)) if isinstance(item, Obj) and item.cls.is_variable]
    return found[0] if found and len(found) == len(options(present(value))) else None


def _is_array(value: Value) -> bool:
    if isinstance(value, TagVal):
        return False
    number = isinstance(value, Const) and isinstance(value.value, (int, float, complex))
    return isinstance(value, Array) or number


def _reads(node: ast.expr, name: str, statement: ast.AST) -> bool:
    """Whether the expression is nothing but the value of that same attribute: the Variable is unwrapped on purpose.

    That of another object is copied: ``new.kernel = old.kernel[...]``.
    """
    if isinstance(node, ast.Call) and not node.args:
        node = node.func
    inner = node.value if isinstance(node, (ast.Attribute, ast.Subscript)) else None
    if not isinstance(inner, ast.Attribute) or inner.attr != name:
        return False
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return not isinstance(target, ast.Attribute) or text_of(target.value) == text_of(inner.value)


def _write_into(frame: Frame, node: ast.AST, variable: Obj) -> Fix | None:
    """Write the value into the Variable: by item assignment into an array, by ``set_value`` over a Python number."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Attribute):
        return None
    source = frame.module.source
    target, value = source.span(node.targets[0]), source.span(node.value)
    held = (variable.args or {}).get("value")
    if isinstance(held, Const):
        if source.text[target.end : value.start].strip() != "=" or "\n" in source.segment(node):
            return None
        setter = Edit(Span(target.end, value.start), ".set_value(")
        return Fix("Write into the Variable", (setter, *insert(value.end, ")")))
    by_convention = variable.cls.derives_from("nnx.Param") or variable.cls.derives_from("nnx.BatchStat")
    if not isinstance(held, Array) and not by_convention:
        return None
    return Fix("Write into the Variable", insert(target.end, "[...]"))


@judges(rules.CLASS_LEVEL_DATA, Constructed)
def class_level_data(event: Constructed, report: Reporter) -> None:
    """A Variable or module that a class body holds: that of the object's class, of a base, or of a mixin."""
    for cls in event.cls.lineage:
        for name, (value, node) in cls.attributes.items():
            if not isinstance(value, Obj) or not value.cls.tracked or name in event.obj.attrs:
                continue
            if name in cls.fields and (cls.is_dataclass or cls.unknown_decorators):
                continue
            if event.cls.class_attribute(name) is value:
                fix = (lambda: into_constructor(event.cls)) if cls is event.cls else None
                report(cls.module, node, fix=fix, cls=cls.name, path=name, value=value.describe())


@judges(rules.CLASS_LEVEL_DATA, ContainerFilled)
def class_level_container(event: ContainerFilled, report: Reporter) -> None:
    """A container of the class body into which a method puts modules or Variables."""
    receiver, value = event.frame.receiver, event.value
    cls = receiver.cls if isinstance(receiver, Obj) else None
    if not isinstance(cls, UserClass) or not cls.derives_from("nnx.Pytree") or cls.is_dataclass:
        return
    if not isinstance(value, Obj) or not value.cls.tracked or value is receiver:
        return
    owners = cls.lineage
    names = [name for item in owners for name, (held, _) in item.attributes.items() if held is event.container]
    if names and names[0] not in cls.fields:
        shown = f"a {getattr(event.container, 'type', 'dict')}, which gets {value.describe()},"
        report(event.frame.module, event.node, cls=cls.name, path=names[0], value=shown)


def into_constructor(cls: UserClass) -> Fix | None:
    """Make all Variables and modules of a class in its constructor, in the order in which they stand."""
    source = cls.module.source
    moved = [
        statement
        for statement in cls.node.body
        if isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(target := statement.targets[0], ast.Name)
        and (found := cls.attributes.get(target.id)) is not None
        and found[1] is statement
        and isinstance(found[0], Obj)
        and found[0].cls.tracked
    ]
    own = {name for statement in cls.node.body for name in assigned_names([statement])} | cls.methods.keys()
    if not moved or any(isinstance(part, ast.Name) and part.id in own for item in moved for part in walk(item.value)):
        return None
    texts = [f"self.{source.segment(item)}" for item in moved]
    first = next((item for item in cls.node.body if getattr(item, "name", None) == "__init__"), None)
    if first is None:
        return _new_constructor(cls, moved, texts) if cls.find("__init__") is None else None
    if not isinstance(first, ast.FunctionDef) or not first.args.args or first.args.args[0].arg != "self":
        return None
    removed = [remove_statement(source, cls.node.body, item) for item in moved]
    place = first.body[0]
    if None in removed or place.lineno == first.lineno or isinstance(place, ast.Expr):
        return None  # a docstring, or a call of the base's constructor, stands first
    indent = source.line_indent(place.lineno)
    added = insert(source.line_start(place.lineno), "".join(f"{indent}{text}\n" for text in texts))
    edits = (*(edit for each in removed for edit in each or ()), *added)
    return Fix("Make them in the constructor", edits, Applicability.UNSAFE)


def _new_constructor(cls: UserClass, moved: list[ast.Assign], texts: list[str]) -> Fix | None:
    source = cls.module.source
    lines = [item.lineno for item in moved]
    if lines != list(range(lines[0], lines[0] + len(lines))) or any(item.end_lineno != item.lineno for item in moved):
        return None  # something stands between them
    span = Span(source.span(moved[0]).start, source.span(moved[-1]).end)
    indent = source.line_indent(moved[0].lineno)
    body = "".join(f"\n{indent}{indent}{text}" for text in texts)
    return Fix("Make them in the constructor", (Edit(span, f"def __init__(self):{body}"),), Applicability.UNSAFE)
