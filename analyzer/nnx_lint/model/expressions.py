"""Evaluation of expressions to abstract values."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import arithmetic, attributes, bounds, events, pairing, strings, symbols, taken
from nnx_lint.model.annotations import is_form, is_type
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import DictVal, PathDict, Seq, is_filled
from nnx_lint.model.elements import element_of, item, sliced
from nnx_lint.model.forms import held_array
from nnx_lint.model.indexing import of_index, part_at
from nnx_lint.model.narrowing import asks_for_part, settled
from nnx_lint.model.operations import of_comparison, of_operator
from nnx_lint.model.premises import chosen
from nnx_lint.model.rounds import subscripted
from nnx_lint.model.states import ForeignVal, PartVal, SownVal, StateVal, TransformationVal
from nnx_lint.model.unions import UnionVal, join, options, present
from nnx_lint.model.values import (
    FRACTION,
    NONE,
    UNKNOWN,
    WHOLE,
    AliasVal,
    Array,
    ArrayAttr,
    ClassVal,
    Computed,
    Const,
    Cut,
    Ext,
    HostArray,
    Obj,
    Other,
    Quotient,
    TagVal,
    TypeVal,
    UnionTypeVal,
    Unknown,
    Value,
    VariableVal,
    VersionVal,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter


def evaluate(interp: Interpreter, frame: Frame, node: ast.expr) -> Value:
    """The value of an expression."""
    handler = interp.evaluators.get(type(node))
    return handler(interp, frame, node) if handler is not None else UNKNOWN


def text_of(node: ast.AST) -> str:
    """The expression as a short name for messages: ``self.bn``, ``model.layers[...]``."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and not isinstance(
        node.value, (ast.BinOp, ast.BoolOp, ast.Compare, ast.UnaryOp)
    ):
        return f"{text_of(node.value)}.{node.attr}"
    if isinstance(node, ast.Subscript):
        return f"{text_of(node.value)}[...]"
    if isinstance(node, ast.Call):
        return f"{text_of(node.func)}(...)"
    return ast.unparse(node) if isinstance(node, ast.expr) else "it"


# -- names and literals ------------------------------------------------------------------------------------------------


def note_capture(frame: Frame, node: ast.expr, value: Value) -> None:
    """Let the transform that captures an object know that its function names it."""
    if isinstance(value, Obj) and value.level < frame.level and value.cls.tracked:
        scope = frame.crossed(value.level)
        if scope is not None:
            scope.reads.append((frame, node, value))


def _name(interp: Interpreter, frame: Frame, node: ast.Name) -> Value:
    found = frame.env.lookup(node.id)
    if found is not None:
        if frame.scope:
            note_capture(frame, node, found[1])
        return found[1]
    if node.id in BUILTINS:
        return Ext(f"builtins.{node.id}")
    interp.publish(events.NameMissed(frame, node))
    return UNKNOWN


BUILTINS = frozenset(
    {"list", "dict", "tuple", "set", "frozenset", "range", "len", "zip", "enumerate"}
    | {"isinstance", "super", "int", "float"}
    | {
        "str",
        "bool",
        "getattr",
        "setattr",
        "hasattr",
        "vars",
        "map",
        "filter",
        "sorted",
        "reversed",
        "sum",
        "min",
        "max",
    }
    | {
        "abs",
        "print",
        "type",
        "property",
        "staticmethod",
        "classmethod",
        "object",
        "any",
        "all",
        "round",
        "repr",
        "iter",
        "next",
    }
    | {"complex", "bytes", "callable", "id", "hash", "delattr", "Exception", "ValueError", "TypeError"}
)


def _constant(interp: Interpreter, frame: Frame, node: ast.Constant) -> Value:
    return Const(node.value)


def _elements(interp: Interpreter, frame: Frame, nodes: list[ast.expr]) -> tuple[list[Value], bool]:
    values: list[Value] = []
    exact = True
    for node in nodes:
        if isinstance(node, ast.Starred):
            value = evaluate(interp, frame, node.value)
            if isinstance(value, Seq) and value.exact:
                values.extend(value.items)
            else:
                values.append(element_of(value, frame.level))
                exact = False
        else:
            values.append(evaluate(interp, frame, node))
    return values, exact


def _list(interp: Interpreter, frame: Frame, node: ast.List) -> Value:
    values, exact = _elements(interp, frame, node.elts)
    return Seq("list", values, frame.level, exact=exact, node=node)


def _tuple(interp: Interpreter, frame: Frame, node: ast.Tuple) -> Value:
    values, exact = _elements(interp, frame, node.elts)
    return Seq("tuple", values, frame.level, exact=exact, node=node)


def _set(interp: Interpreter, frame: Frame, node: ast.Set) -> Value:
    values, exact = _elements(interp, frame, node.elts)
    for element, value in zip(node.elts, values, strict=False):
        used_as(interp, frame, element, value, "a key")
    return Seq("set", values, frame.level, exact=exact, node=node)


def _dict(interp: Interpreter, frame: Frame, node: ast.Dict) -> Value:
    items: list[tuple[Value, Value]] = []
    exact = True
    for key, value in zip(node.keys, node.values, strict=True):
        held = evaluate(interp, frame, value)
        if key is not None:
            items.append((used_as(interp, frame, key, evaluate(interp, frame, key), "a key"), held))
        elif isinstance(held, DictVal):
            items.extend(held.items)
            exact = exact and held.exact
        else:
            items.append((UNKNOWN, UNKNOWN))
            exact = False
    return DictVal(items, frame.level, exact=exact, node=node)


def _joined(interp: Interpreter, frame: Frame, node: ast.JoinedStr) -> Value:
    return strings.combined(_part(interp, frame, part) for part in node.values)


def _part(interp: Interpreter, frame: Frame, node: ast.expr) -> str | None:
    """The text of a part of an f-string, where it is known."""
    if not isinstance(node, ast.FormattedValue):
        return strings.text_in(evaluate(interp, frame, node))
    value = evaluate(interp, frame, node.value)
    what = "a format" if node.conversion == -1 and node.format_spec is not None else "a text"
    interp.publish(events.Used(frame, node.value, value, what))
    return strings.text_in(value) if node.conversion == -1 and node.format_spec is None else None


# -- operators ---------------------------------------------------------------------------------------------------------


def is_array_like(value: Value) -> bool:
    """Whether arithmetic on the value gives an array."""
    value = present(value)
    if isinstance(value, UnionVal):
        return all(is_array_like(option) for option in value.options)
    return isinstance(value, Array) or (isinstance(value, Obj) and value.cls.is_variable)


def _array_type(*operands: Value) -> type[Array]:
    """What an operation on arrays gives: an array of JAX if one operand certainly is one."""
    of_jax = any(
        is_array_like(value) and not any(isinstance(option, HostArray) for option in options(value))
        for value in operands
    )
    return Array if of_jax else HostArray


def binary(left: Value, right: Value, level: int) -> Value:
    """The value of an arithmetic operation."""
    if is_array_like(left) or is_array_like(right):
        return _array_type(left, right)(level)
    if left.kind is right.kind is Const.kind and not isinstance(left, (ClassVal, FuncVal)):
        return Other("a plain value")
    return UNKNOWN


def _binop(interp: Interpreter, frame: Frame, node: ast.BinOp) -> Value:
    left = evaluate(interp, frame, node.left)
    right = evaluate(interp, frame, node.right)
    left = taken.by_now(frame, node.left, left)
    for given, side in ((left, node.left), (right, node.right)):
        value = _state_of(given) if isinstance(given, UnionVal) else given
        if isinstance(value, (TagVal, StateVal)) or (isinstance(value, Obj) and value.cls.is_variable):
            interp.publish(events.Used(frame, node, value, "an operator"))
        elif isinstance(value, (SownVal, Seq, TransformationVal)):
            interp.publish(events.Used(frame, side, value, "an operator"))
    _combined(interp, frame, node, left, right)
    _container(interp, frame, node, left, right, type(node.op))
    return operation(frame, node, left, right)


def _state_of(value: UnionVal) -> Value:
    """A State that is one whatever branch or round it comes from, but for ``None`` before the first."""
    found = options(present(value))
    return found[0] if all(isinstance(option, StateVal) for option in found) else value


def _combined(interp: Interpreter, frame: Frame, node: ast.expr, left: Value, right: Value) -> None:
    """Two values are the operands of an operator that goes element by element."""
    one, other = held_array(left), held_array(right)
    if isinstance(one, Array) and isinstance(other, Array) and one.form is not None and other.form is not None:
        interp.publish(events.Combined(frame, node, one, other))


def operation(frame: Frame, node: ast.BinOp, left: Value, right: Value) -> Value:
    """The value of an operator between two values."""
    if isinstance(node.op, ast.BitOr) and all(
        isinstance(item, (ClassVal, UnionTypeVal, AliasVal)) for item in (left, right)
    ):
        return UnionTypeVal((left, right))
    if isinstance(node.op, ast.BitOr) and _is_union_of_types(left, right):
        return TypeVal(node, frame.module, frame.env)
    if isinstance(left, Seq) and isinstance(right, Seq) and isinstance(node.op, ast.Add) and left.type == right.type:
        return Seq(left.type, [*left.items, *right.items], frame.level, exact=left.exact and right.exact, node=node)
    text = strings.joined(left, node.op, right)
    if text is not None:
        return text
    for sequence, count in ((left, right), (right, left)):
        if isinstance(sequence, Seq) and isinstance(node.op, ast.Mult):
            times = count.value if isinstance(count, Const) and isinstance(count.value, int) else None
            if times is not None and times <= 8 and sequence.exact:
                return Seq(sequence.type, sequence.items * times, frame.level, node=node)
            return Seq(sequence.type, sequence.items, frame.level, exact=False, node=node)
    if isinstance(left, DictVal) and isinstance(right, DictVal) and isinstance(node.op, ast.BitOr):
        return DictVal([*left.items, *right.items], frame.level, exact=left.exact and right.exact, node=node)
    return pairing.traced(frame, node, left, right, computed(left, node.op, right, frame.level))


def computed(left: Value, op: ast.operator, right: Value, level: int) -> Value:
    """The value of an arithmetic operator, with the form of an array."""
    number = arithmetic.number(op, left, right) or symbols.computed(op, left, right)
    number = number or arithmetic.of_numbers(op, left, right)
    if number is not None:
        return number
    value = binary(left, right, level)
    if isinstance(value, Array):
        value.form = of_operator(op, left, right)
    elif arithmetic.is_fractional(op, left, right):
        return FRACTION if isinstance(value, Other) else Quotient()
    return value


def _is_union_of_types(left: Value, right: Value) -> bool:
    sides = [side for side in (left, right) if not (isinstance(side, Const) and side.value is None)]
    return bool(sides) and all(is_type(side) for side in sides)


def used_as(interp: Interpreter, frame: Frame, node: ast.expr, value: Value, what: str) -> Value:
    """Tell the rules of a use of a Variable, or of any object as a key, as something that it may not be."""
    held = isinstance(value, (SownVal, VariableVal))
    if held or (isinstance(value, Obj) and (value.cls.is_variable or what == "a key")):
        interp.publish(events.Used(frame, node, value, what))
    return value


def _are_two_of_one_class(left: Value, right: Value) -> bool:
    """Whether two values certainly are different instances of one class of the project."""
    if not isinstance(left, Obj) or not isinstance(right, Obj) or left is right:
        return False
    return left.cls is right.cls and isinstance(left.cls, UserClass)


def _container(
    interp: Interpreter, frame: Frame, node: ast.expr, left: Value, right: Value, how: type[ast.AST]
) -> None:
    """Tell the rules of an operation on a container of the library."""
    for value, other in ((left, right), (right, left)):
        if isinstance(value, Obj) and (value.cls.derives_from("nnx.List") or value.cls.derives_from("nnx.Dict")):
            interp.publish(events.ContainerUsed(frame, node, value, other, how))
            return


def condition(interp: Interpreter, frame: Frame, node: ast.expr) -> Value:
    """The value of an expression whose truth is asked for."""
    value = used_as(interp, frame, node, evaluate(interp, frame, node), "a condition")
    if isinstance(value, Array):
        interp.publish(events.Used(frame, node, value, "a condition"))
    return value


def _unary(interp: Interpreter, frame: Frame, node: ast.UnaryOp) -> Value:
    asked = isinstance(node.op, ast.Not)
    value = condition(interp, frame, node.operand) if asked else evaluate(interp, frame, node.operand)
    if asked:
        return Other("a bool") if (known := truth(value)) is None else Const(not known)
    if isinstance(value, TransformationVal):
        interp.publish(events.Used(frame, node.operand, value, "an operator"))
    if isinstance(node.op, ast.USub) and isinstance(value, Const) and isinstance(value.value, (int, float)):
        return type(value)(-value.value)
    if is_array_like(value):
        form = value.form if isinstance(value, Array) and not asked else None
        return value if isinstance(value, HostArray) else _array_type(value)(frame.level, form)
    return value if isinstance(value, Other) else arithmetic.one_number(value) or UNKNOWN


def _boolop(interp: Interpreter, frame: Frame, node: ast.BoolOp) -> Value:
    # `or` ends at the first true operand, `and` at the first false one: only such values of it are results.
    ends = isinstance(node.op, ast.Or)
    results: list[Value] = []
    doubts = frame.doubts
    for last, operand in ((each is node.values[-1], each) for each in node.values):
        value = evaluate(interp, frame, operand) if last else condition(interp, frame, operand)
        kept = [option for option in options(value) if last or truth(option) is not (not ends)]
        results += kept if last or not ends else map(symbols.given, kept)
        if truth(value) is ends or (ends and is_filled(value)):
            break
        frame.doubts = doubts + 1
    frame.doubts = doubts
    return join(*results)


def _compare(interp: Interpreter, frame: Frame, node: ast.Compare) -> Value:
    left = evaluate(interp, frame, node.left)
    rights = [evaluate(interp, frame, item) for item in node.comparators]
    if len(rights) == 1 and not isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn, ast.Eq)):
        # An array compares itself with a Variable, from the left and, but for `!=`, from the right.
        if isinstance(node.ops[0], ast.NotEq) or _is_no_array(rights[0]):
            used_as(interp, frame, node.left, left, "a comparison")
        if _is_no_array(left):
            used_as(interp, frame, node.comparators[0], rights[0], "a comparison")
    if len(rights) == 1:
        _container(interp, frame, node, left, rights[0], type(node.ops[0]))
        if isinstance(node.ops[0], (ast.Eq, ast.NotEq)) and _are_two_of_one_class(left, rights[0]):
            interp.publish(events.Used(frame, node, left, "an equality"))
        elif isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            for value in (left, rights[0]):
                if isinstance(value, Ext) and value.name in NAN:
                    interp.publish(events.Used(frame, node, value, "an equality"))
    if len(rights) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        return _identity(left, rights[0], isinstance(node.ops[0], ast.Is))
    if isinstance(node.ops[0], (ast.In, ast.NotIn)):
        known = arithmetic.contained(node.ops[0], left, rights[0])
        return known if known is not None else Other("a bool")
    if is_array_like(left) or any(is_array_like(item) for item in rights):
        if len(rights) == 1:
            _combined(interp, frame, node, left, rights[0])
        form = of_comparison(left, rights[0]) if len(rights) == 1 else None
        result = _array_type(left, *rights)(frame.level, form)
        if len(rights) > 1 and frame.scope and (is_array_like(left) or is_array_like(rights[0])):
            # Python asks for the truth of the first comparison before it goes on.
            interp.publish(events.Used(frame, node, result, "a condition"))
        return result
    if len(rights) == 1 and isinstance(node.ops[0], tuple(ORDER)) and is_version(left) is not is_version(rights[0]):
        return Const(ORDER[type(node.ops[0])] is is_version(left))
    known = arithmetic.compared(node.ops[0], left, rights[0]) if len(rights) == 1 else None
    if known is not None:
        return known
    return UNKNOWN if any(isinstance(item, Unknown) for item in (left, *rights)) else Other("a bool")


NAN = frozenset({"jax.numpy.nan", "math.nan", "numpy.nan", "numpy.NaN"})
"""What is equal to nothing."""

ORDER: dict[type[ast.cmpop], bool] = {ast.Gt: True, ast.GtE: True, ast.Lt: False, ast.LtE: False}
"""Whether the comparison holds when the left side is the greater one."""


def is_version(value: Value) -> bool:
    """Whether a value, or each element of a sequence, comes from a version of the library."""
    if isinstance(value, Seq):
        return bool(value.items) and all(isinstance(item, VersionVal) for item in value.items)
    return isinstance(value, VersionVal)


def _is_no_array(value: Value) -> bool:
    return isinstance(value, (Const, HostArray, Obj, Other))


def _identity(left: Value, right: Value, positive: bool) -> Value:
    if isinstance(right, Const) and right.value is None:
        if isinstance(left, Const):
            return Const((left.value is None) is positive)
        if isinstance(left, (Obj, Seq, DictVal, Array, FuncVal, ClassVal)):
            return Const(not positive)
    if isinstance(left, Ext) and isinstance(right, Ext) and {left.name, right.name} <= _NUMERIC:
        return Const((left.name == right.name) is positive)
    return Other("a bool")


_NUMERIC = frozenset({"numpy", "jax.numpy", "torch", "cupy"})
"""Modules of which code that works with several asks which one it got: ``if xp is np``."""


def truth(value: Value) -> bool | None:
    """The truth of a value where it is certain from a literal."""
    if not isinstance(value, Const) or isinstance(value, Computed) or value.value is ...:
        return None
    return bool(value.value)


def _ifexp(interp: Interpreter, frame: Frame, node: ast.IfExp) -> Value:
    known = truth(condition(interp, frame, node.test))
    if known is not None:
        return evaluate(interp, frame, node.body if known else node.orelse)
    before = dict(frame.env.names)
    there, outer = asks_for_part(frame, node.test), frame.supposed
    frame.doubts, frame.supposed = frame.doubts + 1, outer + (there is True)
    left = chosen(interp, frame, node.test, True, node.body)
    frame.env.names = dict(before)
    frame.supposed = outer + (there is False)
    right = chosen(interp, frame, node.test, False, node.orelse)
    frame.env.names = before
    frame.doubts, frame.supposed = frame.doubts - 1, outer
    return join(settled(node.test, node.body, left, True), settled(node.test, node.orelse, right, False))


def _lambda(interp: Interpreter, frame: Frame, node: ast.Lambda) -> Value:
    func = FuncVal(node, frame.module, frame.env)
    from nnx_lint.model.definitions import bind_defaults

    bind_defaults(interp, frame, func)
    interp.defined(func, frame)
    return func


def _named(interp: Interpreter, frame: Frame, node: ast.NamedExpr) -> Value:
    value = evaluate(interp, frame, node.value)
    frame.env.names[node.target.id] = value
    return value


def _yield(interp: Interpreter, frame: Frame, node: ast.Yield | ast.YieldFrom | ast.Await) -> Value:
    value = evaluate(interp, frame, node.value) if node.value is not None else NONE
    if isinstance(node, ast.Yield):
        frame.yielded.append(value)
    elif isinstance(node, ast.YieldFrom):
        frame.yielded.append(element_of(value, frame.level))
    return UNKNOWN


# -- access ------------------------------------------------------------------------------------------------------------


def _attribute(interp: Interpreter, frame: Frame, node: ast.Attribute) -> Value:
    owner = evaluate(interp, frame, node.value)
    value = attributes.get_attribute(interp, frame, owner, node.attr, node)
    if frame.scope and not (isinstance(owner, Obj) and owner.cls.tracked):
        note_capture(frame, node, value)
    return value


def _subscript(interp: Interpreter, frame: Frame, node: ast.Subscript) -> Value:
    value = present(evaluate(interp, frame, node.value))
    index = evaluate(interp, frame, node.slice)
    if isinstance(index, Cut) and (part := sliced(value, index, frame.level)) is not None:
        return part
    key = index if not isinstance(index, Cut) else None
    if isinstance(value, DictVal):
        used_as(interp, frame, node.slice, index, "a key")
        if value.node is not None and isinstance(key, Const) and isinstance(key.value, str) and value.lacks(key):
            interp.publish(events.EntryMissed(frame, node, value, key.value))
            return UNKNOWN
    if isinstance(value, ClassVal):
        return AliasVal(value)
    if isinstance(value, Ext) and value.name == "typing.Union":
        members = tuple(key.items) if isinstance(key, Seq) else ()
        known = all(isinstance(member, (ClassVal, UnionTypeVal, AliasVal)) for member in members)
        return UnionTypeVal(members) if members and known else TypeVal(node, frame.module, frame.env)
    if is_form(value):
        return TypeVal(node, frame.module, frame.env)
    named = isinstance(key, Const) and isinstance(key.value, str)
    said = named or isinstance(node.slice, (ast.Call, ast.JoinedStr))
    told = isinstance(value, (ForeignVal, PathDict, TagVal, TransformationVal))
    told = told or (isinstance(value, (StateVal, PartVal)) and said)
    stacked = isinstance(value, Obj) and bool(value.gained) and value.cls.derives_from("nnx.Module")
    told = told or stacked or (isinstance(value, Obj) and value.cls.derives_from("nnx.Sequential"))
    told = told or (isinstance(value, StateVal) and isinstance(key, Const)) or (isinstance(value, DictVal) and named)
    if told or (isinstance(value, Seq) and (named or isinstance(key, Seq) or value.type == "FlatState")):
        interp.publish(events.Used(frame, node, value, "an index"))
    if isinstance(key, Const) and key.value is ...:
        used_as(interp, frame, node, value, "an index")
    if key is not None:
        _container(interp, frame, node, value, UNKNOWN if isinstance(key, Obj) else key, ast.Subscript)
    items = index.items if isinstance(index, Seq) and index.type == "tuple" and index.exact else [index]
    if isinstance(value, ArrayAttr):
        return part_at(value, items)
    found = subscripted(interp, frame, node, value, index) or item(value, key, frame.level)
    whole = held_array(value)
    if isinstance(whole, Array) and isinstance(found, Array) and found is not value:
        found.form, found.bound = of_index(whole, items), bounds.of_index(whole, items)
        if whole.form is not None:
            interp.publish(events.Indexed(frame, node, whole, items))
        if isinstance(index, Array) and index.form is not None and index.form.dtype == "bool":
            interp.publish(events.Used(frame, node, index, "a mask"))
    if frame.scope and type(index) is Array and isinstance(value, (HostArray, Seq)):
        interp.publish(events.Used(frame, node, index, "a place"))
    return found


def _starred(interp: Interpreter, frame: Frame, node: ast.Starred) -> Value:
    return evaluate(interp, frame, node.value)


def _slice(interp: Interpreter, frame: Frame, node: ast.Slice) -> Value:
    if node.lower is node.upper is node.step is None:
        return WHOLE
    bounds = [evaluate(interp, frame, bound) if bound else NONE for bound in (node.lower, node.upper, node.step)]
    if frame.scope:
        for bound, value in zip((node.lower, node.upper, node.step), bounds, strict=True):
            if bound is not None and isinstance(value, Array):
                interp.publish(events.Used(frame, bound, value, "a bound"))
    return Cut(tuple(map(symbols.bound_of, bounds)))


def _call(interp: Interpreter, frame: Frame, node: ast.Call) -> Value:
    from nnx_lint.model.calls import call

    return call(interp, frame, node)


HANDLERS: dict[type[ast.expr], Callable[..., Value]] = {
    ast.Name: _name,
    ast.Constant: _constant,
    ast.List: _list,
    ast.Tuple: _tuple,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.JoinedStr: _joined,
    ast.BinOp: _binop,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolop,
    ast.Compare: _compare,
    ast.IfExp: _ifexp,
    ast.Lambda: _lambda,
    ast.NamedExpr: _named,
    ast.Yield: _yield,
    ast.YieldFrom: _yield,
    ast.Await: _yield,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Starred: _starred,
    ast.Slice: _slice,
    ast.Call: _call,
}
