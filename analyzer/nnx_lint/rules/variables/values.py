"""Values of Variables: what is read and written by ``[...]``, and metadata (NNX803, NNX813, NNX818-NNX821)."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING, Any

from nnx_lint.diagnostics import Applicability, Edit, Fix
from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.classes import UserClass
from nnx_lint.model.events import Called, Used, VariableAttributeSet, VariableWritten
from nnx_lint.model.expressions import text_of
from nnx_lint.model.forms import literal
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Array, ArrayAttr, Const, HostArray, Obj, Unknown
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.edits import append_argument, remove_statement, wrap
from nnx_lint.rules.modes.layers import is_seen_made
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    assigned_in,
    block_of,
    canonical_of,
    enclosing,
    in_test,
    statement_of,
)
from nnx_lint.rules.updates.discarded import discarded, is_shown
from nnx_lint.rules.variables.operators import is_variable
from nnx_lint.syntax.binding import is_none
from nnx_lint.syntax.walk import walk
from nnx_rules.layers import is_fractional, is_integral
from nnx_rules.rules import modules
from nnx_rules.rules import variables as rules

if TYPE_CHECKING:
    from nnx_lint.diagnostics import Related
    from nnx_lint.model.modules import Module

# -- no array ----------------------------------------------------------------------------------------------------------


def _indexes(event: Used) -> bool:
    return event.what == "an index"


@judges(rules.VARIABLE_WITHOUT_ITEMS, Used, when=_indexes)
def variable_read_without_items(event: Used, report: Reporter) -> None:
    if not isinstance(event.node, ast.Subscript) or not isinstance(event.value, Obj):
        return
    if _asks_for_none(event, event.value):
        name, value = text_of(event.node.value), event.value
        slots: dict[str, Any] = {"name": name, "value": "None", "cls": value.cls.name}
        report(event.frame.module, event.node, related=made_at(value), **slots)
    else:
        _without_items(event, report, event.value, text_of(event.node.value))


@judges(rules.VARIABLE_WITHOUT_ITEMS, VariableWritten)
def variable_written_without_items(event: VariableWritten, report: Reporter) -> None:
    if isinstance(event.key, Const) and event.key.value is ... and not isinstance(event.node, ast.AugAssign):
        _without_items(event, report, event.target, event.name)


def _asks_for_none(event: Used, variable: Obj) -> bool:
    """Whether ``v[...] is None`` asks a Variable that was made with ``None`` whether it still holds that."""
    node, made = event.node, variable.origin
    around = next(ancestors(event.frame.module, node), None)
    if not isinstance(around, ast.Compare) or around.left is not node or made is None or not is_variable(variable):
        return False
    asked = isinstance(around.ops[0], (ast.Is, ast.IsNot)) and is_none(around.comparators[0])
    return asked and not any(item.methods for item in variable.cls.lineage) and is_none(_value_node(variable, made[0]))


def _without_items(event: Used | VariableWritten, report: Reporter, variable: Obj, name: str) -> None:
    held = _number_in(variable)
    if held is None or not is_variable(variable):
        return
    own = variable.cls.lineage
    if variable.cls.is_open or any(item.methods for item in own) or variable.level or event.frame.level:
        return  # inside of a transform numbers are arrays
    if variable.assumed or not (event.frame.initializing is not None or is_seen_made(event.frame)):
        return  # a method may run under transforms only
    module = event.frame.module
    slots: dict[str, Any] = {"name": name, "value": held, "cls": variable.cls.name}
    report(module, event.node, fix=partial(_make_array, variable, module), related=made_at(variable), **slots)


FLOATS = frozenset(
    f"{module}.{name}" for module in ("math", "numpy", "jax.numpy") for name in ("inf", "nan", "pi", "e")
)
"""Names that stand for a Python float."""

CONVERTING = {"builtins.float": "a float", "builtins.int": "an int"}
"""Functions that return a Python number, and what it is."""


def _number_in(variable: Obj) -> str | None:
    """The Python number that a Variable was made with, in words; ``None`` if it may hold something else."""
    held = (variable.args or {}).get("value")
    if isinstance(held, Const):
        return held.describe() if isinstance(held.value, (int, float, complex)) else None
    module = variable.origin[0] if variable.origin is not None else None
    node = _value_node(variable, module) if module is not None else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    if module is None or node is None:
        return None
    if isinstance(node, ast.Call):
        return CONVERTING.get(canonical_of(module.env, node.func) or "")
    return "a float" if canonical_of(module.env, node) in FLOATS else None


def made_at(variable: Obj) -> tuple[Related, ...]:
    """Where a Variable is made, as the place that explains a finding."""
    return (related(*variable.origin, f"this {variable.cls.name} is made here"),) if variable.origin else ()


def _value_node(variable: Obj, module: Module) -> ast.expr | None:
    """The expression of the value that a Variable is made with, in this file."""
    made = variable.origin
    if made is None or made[0] is not module or not isinstance(made[1], ast.Call):
        return None
    call = made[1]
    named = (item.value for item in call.keywords if item.arg == "value")
    first = call.args[0] if call.args and not isinstance(call.args[0], ast.Starred) else None
    return first or next(named, None)


def _make_array(variable: Obj, module: Module) -> Fix | None:
    node = _value_node(variable, module)
    name = jax_numpy(module)
    if node is None or name is None:
        return None
    return Fix("Make the Variable with an array", wrap(module.source, node, f"{name}.array"))


def jax_numpy(module: Module) -> str | None:
    """What the module calls ``jax.numpy``."""
    from nnx_lint.model.values import Ext

    for name, value in module.env.names.items():
        if isinstance(value, Ext) and value.name in {"jax.numpy", "jax"}:
            return name if value.name == "jax.numpy" else f"{name}.numpy"
    return None


# -- writes ------------------------------------------------------------------------------------------------------------


@judges(rules.VARIABLE_OF_NUMPY, VariableWritten)
def variable_of_numpy(event: VariableWritten, report: Reporter) -> None:
    variable = event.target
    held = (variable.args or {}).get("value")
    if not isinstance(held, HostArray) or variable.level or event.frame.level or variable.template is not None:
        return
    module = event.frame.module
    report(module, event.node, fix=partial(_make_jax, variable, module), related=made_at(variable), name=event.name)


def _make_jax(variable: Obj, module: Module) -> Fix | None:
    node = _value_node(variable, module)
    name = jax_numpy(module)
    if node is None or name is None:
        return None
    return Fix("Make the Variable with an array of jax", wrap(module.source, node, f"{name}.asarray"))


@judges(rules.VARIABLE_DTYPE_KEPT, VariableWritten)
def variable_dtype_kept(event: VariableWritten, report: Reporter) -> None:
    variable = event.target
    held = literal((variable.args or {}).get("value", UNKNOWN)).dtype
    if not is_integral(held) or not is_variable(variable):
        return
    given = literal(event.value).dtype or ("float32" if _is_written_fraction(event) else None)
    if not is_fractional(given):
        return
    if isinstance(event.value, Const) and isinstance(event.value.value, float) and event.value.value.is_integer():
        return
    value = event.value.describe() if isinstance(event.value, Const) else f"an array of {given}"
    slots: dict[str, Any] = {"name": event.name, "dtype": held, "value": value, "how": f"{event.name}[...] ="}
    mend = "make the Variable with a float, or write with `set_value(...)`, which takes the new dtype"
    report(event.frame.module, event.node, related=made_at(variable), mend=mend, **slots)


WRITING = frozenset({"add", "set", "subtract"})
"""Methods of ``array.at[...]`` that give an element what is written there, or add it."""


def writes_elements(event: Called) -> bool:
    """Whether elements of an array are written, ``array.at[...].set(x)``."""
    callee = event.callee
    return isinstance(callee, ArrayAttr) and callee.owner == "at" and callee.name in WRITING and len(event.args) == 1


@judges_calls(rules.VARIABLE_DTYPE_KEPT, ArrayAttr, when=writes_elements)
def array_dtype_kept(event: Called, report: Reporter) -> None:
    """A fraction for an element of an array of integers: ``jnp.zeros_like(ids).at[0].add(reward)``."""
    callee, node = event.callee, event.node
    array = callee.array if isinstance(callee, ArrayAttr) else None
    held = literal(array).dtype if array is not None else None
    value = event.args[0]
    if not is_integral(held) or value is None or not isinstance(node, ast.Call) or in_test(event.frame):
        return
    whole = isinstance(value, Const) and (not isinstance(value.value, float) or value.value.is_integer())
    given = "float32" if isinstance(value, Const) else literal(value).dtype
    at = node.func.value if isinstance(node.func, ast.Attribute) else None
    owner = at.value.value if isinstance(at, ast.Subscript) and isinstance(at.value, ast.Attribute) else None
    if whole or not is_fractional(given) or owner is None or not isinstance(callee, ArrayAttr):
        return
    shown = value.describe() if isinstance(value, Const) else f"an array of {given}"
    slots: dict[str, Any] = {"name": text_of(owner), "dtype": held, "value": shown, "how": f".at[...].{callee.name}"}
    mend = "make the array with the dtype of what is written: `jnp.zeros(shape)`, `jnp.zeros_like(x, dtype=float)`"
    report(event.frame.module, node, mend=mend, **slots)


def _is_written_fraction(event: VariableWritten) -> bool:
    """Whether the value is a fraction by what is written, whatever the arrays in it are."""
    statement = statement_of(event.frame.module, event.node)
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, ast.Div)
    return isinstance(statement, ast.Assign) and isinstance(event.value, Array) and _is_fraction(statement.value)


def _is_fraction(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_fraction(node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
        return _is_fraction(node.left) or _is_fraction(node.right)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Div)
    return isinstance(node, ast.Constant) and isinstance(node.value, float)


# -- results that are dropped ------------------------------------------------------------------------------------------


@judges(rules.UPDATE_DISCARDED, Called, when=discarded)
def update_discarded(event: Called, report: Reporter) -> None:
    callee, node, module = event.callee, event.node, event.frame.module
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or is_shown(event.frame):
        return
    method = node.func.attr
    certain = isinstance(callee, ArrayAttr) and callee.owner == "at" and method != "get"
    if not certain and (not isinstance(callee, Unknown) or method not in UPDATES or module.mentions("pallas")):
        return
    part = node.func.value
    at = part.value if isinstance(part, ast.Subscript) else None
    if not isinstance(part, ast.Subscript) or not isinstance(at, ast.Attribute) or at.attr != "at":
        return
    source, owner = module.source, at.value
    name, index = source.segment(owner), source.segment(part.slice)
    is_held = _names_variable(event, owner)
    fix: Fix | None = None
    assignable = is_held or isinstance(owner, (ast.Name, ast.Attribute, ast.Subscript))
    if method in ASSIGNED and len(node.args) == 1 and not node.keywords and assignable:
        value = source.segment(node.args[0])
        target = f"{name}[{index}]" if is_held else f"{name} = {source.segment(node)}"
        text = f"{target} {ASSIGNED[method]} {value}" if is_held else target
        fix = Fix("Write it" if is_held else "Keep the result", (Edit(source.span(node), text),))
    bound = f"assign it: `{name} = ...`" if assignable else "give the result a name"
    mend = f"write to the Variable: `{name}[{index}] = ...`" if is_held else bound
    report(module, node, fix=fix, name=name, method=method, mend=mend)


UPDATES = frozenset({"add", "apply", "divide", "max", "min", "mul", "multiply", "power", "set", "subtract"})
"""Methods of ``array.at[...]``. What is not known to be an array has them too, but for a reference of Pallas, which
``set`` writes to."""

ASSIGNED = {"set": "=", "add": "+=", "multiply": "*=", "mul": "*=", "subtract": "-=", "divide": "/="}
"""The operators that write to a Variable what a method of ``.at[...]`` computes."""


def _names_variable(event: Called, owner: ast.expr) -> bool:
    from nnx_lint.rules.program import resolved

    value = resolved(event.frame.env, owner)
    return value is not None and is_variable(present(value))


# -- metadata ----------------------------------------------------------------------------------------------------------


@judges(modules.VARIABLE_METADATA_ATTRIBUTE, VariableAttributeSet)
def variable_metadata_attribute(event: VariableAttributeSet, report: Reporter) -> None:
    target = event.target
    if event.name.startswith("_") or (isinstance(target, Obj) and not is_variable(target)):
        return
    for item in target.cls.ancestors if isinstance(target, Obj) else ():
        if isinstance(item, UserClass) and (
            OWN_STORAGE & (item.methods.keys() | item.attributes.keys())
            or event.name in item.methods
            or event.name in item.attributes
        ):
            return
    report(
        event.frame.module,
        event.node,
        fix=partial(_as_metadata, event) if isinstance(target, Obj) else None,
        name=event.name,
        cls=target.cls.name if isinstance(target, Obj) else "Variable",
        action=event.action,
    )


def _as_metadata(event: VariableAttributeSet) -> Fix | None:
    """Hand an attribute of a Variable to the constructor of its base, which keeps it as metadata."""
    module, node = event.frame.module, event.node
    func = enclosing(module, node, *FUNCTIONS)
    if not isinstance(node, ast.Assign) or not isinstance(func, ast.FunctionDef) or func.name != "__init__":
        return None
    supers = [
        call
        for call in walk(func)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "__init__"
        and isinstance(call.func.value, ast.Call)
    ]
    bound = {part.id for part in walk(node.value) if isinstance(part, ast.Name)} - {item.arg for item in func.args.args}
    removed = remove_statement(module.source, block_of(module, node), node)
    if len(supers) != 1 or len(node.targets) != 1 or removed is None or not bound.isdisjoint(assigned_in(func)):
        return None
    added = append_argument(module.source, supers[0], f"{event.name}={module.source.segment(node.value)}")
    return Fix("Make it metadata of the Variable", (*added, *removed), Applicability.UNSAFE)


OWN_STORAGE = frozenset({"__setattr__", "__slots__"})


@judges_calls(rules.VARIABLE_METADATA_ARGUMENTS, ".set_metadata")
def variable_metadata_arguments(event: Called, report: Reporter) -> None:
    callee = event.callee
    receiver = present(callee.receiver) if isinstance(callee, BoundMethod) and callee.func is None else None
    if not is_variable(receiver) or None in event.args or "**" in event.keywords:
        return
    count, named = len(event.args), len(event.keywords)
    if (count in (1, 2) and not named) or (named and not count):
        return
    given = "nothing" if not count and not named else f"{count} positional and {named} keyword arguments"
    report(event.frame.module, event.node, given=given)
