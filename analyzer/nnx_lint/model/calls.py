"""Calls: what is called, with which arguments, and what comes of it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import attributes, events
from nnx_lint.model.callables import (
    BoundMethod,
    FuncVal,
    PartialVal,
    SuperVal,
    Transformed,
    TransformVal,
)
from nnx_lint.model.classes import LibClass, UserClass, method_of
from nnx_lint.model.construct import instance_of
from nnx_lint.model.expressions import element_of, evaluate, text_of
from nnx_lint.model.python import bare
from nnx_lint.model.values import (
    UNKNOWN,
    VERSION,
    AliasVal,
    Array,
    ArrayAttr,
    Attr,
    ClassVal,
    Const,
    DictVal,
    Ext,
    NamespaceVal,
    Obj,
    Other,
    Seq,
    UnionVal,
    Value,
    VersionVal,
    join,
    present,
)
from nnx_rules import transforms

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter


class Arguments:
    """Evaluated arguments of a call. ``None`` among the positional ones stands for a starred argument of unknown
    length; what was given there is in ``spread``.
    """

    __slots__ = ("keywords", "node", "nodes", "positional", "spread")

    def __init__(
        self, node: ast.AST, positional: list[Value | None], keywords: dict[str, Value], nodes: list[ast.expr]
    ) -> None:
        self.node = node
        self.positional = positional
        self.keywords = keywords
        self.nodes = nodes
        self.spread: list[Value] = []

    def get(self, position: int, keyword: str | None = None) -> Value | None:
        """The argument at a position or by keyword; ``None`` if it is not given or not known to be."""
        if keyword is not None and keyword in self.keywords:
            return self.keywords[keyword]
        if position < len(self.positional) and None not in self.positional[: position + 1]:
            return self.positional[position]
        return None

    def node_of(self, position: int, keyword: str | None = None) -> ast.expr | None:
        """The expression of an argument."""
        if isinstance(self.node, ast.Call):
            for item in self.node.keywords:
                if keyword is not None and item.arg == keyword:
                    return item.value
        return self.nodes[position] if position < len(self.nodes) else None

    @property
    def starred(self) -> bool:
        return None in self.positional or "**" in self.keywords


def call(interp: Interpreter, frame: Frame, node: ast.Call) -> Value:
    """Evaluate a call expression."""
    owner: Value | None = None
    if isinstance(node.func, ast.Attribute):
        owner = evaluate(interp, frame, node.func.value)
        callee = attributes.get_attribute(interp, frame, owner, node.func.attr, node.func)
        if isinstance(owner, Obj):
            owner.bare = False  # any of its methods may initialize it
    else:
        callee = evaluate(interp, frame, node.func)
    args = arguments(interp, frame, node)
    name = text_of(node.func)
    if isinstance(callee, Ext) and callee.name == "builtins.super":
        return super_object(interp, frame)
    result = invoke(interp, frame, callee, args, node, name)
    interp.publish(events.Called(frame, node, callee, name, args.positional, args.keywords, result, args.nodes, owner))
    if isinstance(callee, Ext):
        from nnx_lint.model.library import AFTERWARDS

        if callee.name in AFTERWARDS:
            AFTERWARDS[callee.name](args)
    return result


def arguments(interp: Interpreter, frame: Frame, node: ast.Call) -> Arguments:
    """Evaluate the arguments of a call, in order."""
    positional: list[Value | None] = []
    spread: list[Value] = []
    nodes: list[ast.expr] = []
    for item in node.args:
        if isinstance(item, ast.Starred):
            value = evaluate(interp, frame, item.value)
            if isinstance(value, Seq) and value.exact:
                positional.extend(value.items)
                nodes.extend([item] * len(value.items))
            else:
                positional.append(None)
                nodes.append(item)
                spread.append(value)
        else:
            positional.append(evaluate(interp, frame, item))
            nodes.append(item)
    keywords: dict[str, Value] = {}
    for keyword in node.keywords:
        value = evaluate(interp, frame, keyword.value)
        if keyword.arg is not None:
            keywords[keyword.arg] = value
        elif isinstance(value, DictVal) and value.exact and all(isinstance(key, Const) for key, _ in value.items):
            keywords.update({str(key.value): held for key, held in value.items if isinstance(key, Const)})
        else:
            keywords["**"] = UNKNOWN
    found = Arguments(node, positional, keywords, nodes)
    found.spread = spread
    return found


def invoke(interp: Interpreter, frame: Frame, callee: Value, args: Arguments, node: ast.AST, name: str) -> Value:
    """Call a value."""
    callee = present(callee)
    if isinstance(callee, UnionVal):
        if len({option.level for option in callee.options if isinstance(option, Obj)}) > 1:
            return UNKNOWN  # objects of different traces: which of them is called decides what that means
        return join(*(invoke(interp, frame, option, args, node, name) for option in callee.options))
    if isinstance(callee, FuncVal):
        return interp.call_function(frame, callee, args.positional, args.keywords, node)
    if isinstance(callee, (ClassVal, AliasVal)):
        cls = callee.cls if isinstance(callee, ClassVal) else callee.origin.cls
        return instantiate(interp, frame, cls, args, node)
    if isinstance(callee, BoundMethod):
        return call_method(interp, frame, callee, args, node, name)
    if isinstance(callee, Transformed):
        callee.ran = True
        return call_transformed(interp, frame, callee, args, node)
    if isinstance(callee, TransformVal):
        func_node = args.nodes[0] if args.nodes else node
        return apply_transform(interp, frame, callee, args.get(0) or UNKNOWN, func_node, node, "call")
    if isinstance(callee, PartialVal):
        merged = Arguments(node, [*callee.args, *args.positional], {**callee.keywords, **args.keywords}, args.nodes)
        return invoke(interp, frame, callee.func, merged, node, name)
    if isinstance(callee, VersionVal) or (isinstance(callee, Ext) and VERSION in args.positional):
        return VERSION
    if isinstance(callee, Ext):
        from nnx_lint.model.library import call_library

        return call_library(interp, frame, callee, args, node, name)
    if isinstance(callee, Obj):
        return call_object(interp, frame, callee, args, node, name)
    if isinstance(callee, ArrayAttr):
        return Array(frame.level)
    for value in (*args.positional, *args.keywords.values()):  # who knows what an unknown function does to them
        if isinstance(value, Obj):
            value.bare = False
            if value.training:
                attributes.set_training(value, None)
        elif isinstance(value, ClassVal) and isinstance(value.cls, UserClass):
            value.cls.registered_container = True
    return UNKNOWN


# -- objects
# -------------------------------------------------------------------------------------------------------------------


def super_object(interp: Interpreter, frame: Frame) -> Value:
    """``super()`` in a method: the receiver, with lookup starting after the method's class."""
    if frame.func is not None and frame.func.name == "__new__" and frame.cls is not None:
        return SuperVal(bare(interp, frame, frame.cls), frame.cls)
    if frame.receiver is None or frame.cls is None:
        return UNKNOWN
    receiver = frame.receiver
    if not isinstance(receiver, Obj) or frame.cls not in receiver.cls.ancestors:
        return UNKNOWN
    return SuperVal(receiver, frame.cls)


def instantiate(interp: Interpreter, frame: Frame, cls: object, args: Arguments, node: ast.AST) -> Value:
    """Create an instance of a class."""
    if isinstance(cls, LibClass):
        from nnx_lint.model.members import construct_library

        return construct_library(interp, frame, cls, args, node)
    if not isinstance(cls, UserClass):
        return UNKNOWN
    if not cls.is_pytree and not cls.is_variable and cls.is_open:
        return UNKNOWN
    obj = instance_of(interp, cls, frame.level)
    obj.node = node
    obj.origin = (frame.module, node)
    obj.args = bound_arguments(cls, args)
    if cls.is_variable:
        obj.args = {"value": args.get(0, "value") or UNKNOWN}
        return obj
    _substitute(interp, obj, args)
    initializer = method_of(cls, "__init__")
    if frame.scope and initializer is not None:
        interp.construct_under(frame, instance_of(interp, cls, frame.level), initializer[1], args)
    return obj


def bound_arguments(cls: UserClass, args: Arguments) -> dict[str, Value] | None:
    """Constructor arguments by parameter name."""
    if args.starred:
        return None
    found = method_of(cls, "__init__")
    if found is not None:
        parameters = [item.arg for item in [*found[1].node.args.posonlyargs, *found[1].node.args.args][1:]]
    else:
        parameters = [field.name for field in cls.all_fields() if not field.keyword_only]
    bound = {name: value for name, value in zip(parameters, args.positional, strict=False) if value is not None}
    return {**bound, **args.keywords}


def _substitute(interp: Interpreter, obj: Obj, args: Arguments) -> None:
    """Give attributes that ``__init__`` takes unchanged from a parameter the value of the argument."""
    cls = obj.cls
    if not isinstance(cls, UserClass) or not obj.args:
        return
    found = method_of(cls, "__init__")
    if found is None:
        for name, value in obj.args.items():
            if name in cls.fields:
                obj.attrs[name] = _given(obj, name, value)
        return
    for statement in getattr(found[1].node, "body", ()):
        if (
            isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(target := statement.targets[0], ast.Attribute)
            and isinstance(target.value, ast.Name)
            and target.value.id == "self"
            and isinstance(statement.value, ast.Name)
            and statement.value.id in obj.args
        ):
            obj.attrs[target.attr] = _given(obj, target.attr, obj.args[statement.value.id])


def _given(obj: Obj, name: str, value: Value) -> Attr:
    known = attributes.attribute_of(obj, name)
    attr = Attr(attributes.untagged(value), known.declared if known is not None else None)
    attr.assignments = list(known.assignments) if known is not None else []
    return attr


def call_object(interp: Interpreter, frame: Frame, obj: Obj, args: Arguments, node: ast.AST, name: str) -> Value:
    """Call an instance."""
    found = obj.cls.find("__call__") if isinstance(obj.cls, UserClass) else None
    if found is not None:
        return call_method(interp, frame, BoundMethod(obj, "__call__", found[1]), args, node, name)
    from nnx_lint.model.library import call_library_object

    return call_library_object(interp, frame, obj, args, node, name)


def call_method(
    interp: Interpreter, frame: Frame, method: BoundMethod, args: Arguments, node: ast.AST, name: str
) -> Value:
    """Call a bound method."""
    receiver = method.receiver
    if method.name == "__new__" and isinstance(method.func, FuncVal):
        return UNKNOWN
    if isinstance(method.func, FuncVal):
        return interp.call_function(frame, method.func, args.positional, args.keywords, node, receiver=receiver)
    if isinstance(method.func, Transformed):
        method.func.ran = True
        return call_transformed(interp, frame, method.func, args, node, receiver=receiver)
    if isinstance(receiver, NamespaceVal):
        return namespace_method(interp, frame, receiver, method.name, args, node)
    if isinstance(receiver, (Seq, DictVal)):
        return container_method(interp, frame, receiver, method.name, args, node, name.rpartition(".")[0])
    from nnx_lint.model.library import call_library_method

    return call_library_method(interp, frame, method, args, node, name)


def namespace_method(
    interp: Interpreter, frame: Frame, namespace: NamespaceVal, method: str, args: Arguments, node: ast.AST
) -> Value:
    """Call a method of the dict of an object's attributes."""
    if method == "update":
        given = args.get(0)
        added = list(given.items) if isinstance(given, DictVal) and given.exact else []
        for key, value in [*added, *((Const(key), value) for key, value in args.keywords.items() if key != "**")]:
            attributes.bypass(interp, frame, namespace.of, key, value, node)
    return UNKNOWN


# -- containers
# ----------------------------------------------------------------------------------------------------------------

ADDING = {"append": 0, "add": 0, "appendleft": 0, "insert": 1, "setdefault": 1}
"""Methods that put one value into a container, with its position."""


def container_method(
    interp: Interpreter, frame: Frame, container: Seq | DictVal, method: str, args: Arguments, node: ast.AST, text: str
) -> Value:
    """Call a method of a plain container."""
    if method in ADDING:
        value = args.get(ADDING[method])
        if value is not None:
            if isinstance(container, DictVal):
                container.exact = container.exact and not frame.branches
                container.items.append((args.get(0) or UNKNOWN, value))
            attributes.fill(interp, frame, container, value, f"`.{method}(...)`", node, text)
        return value if method == "setdefault" and value is not None else UNKNOWN
    if method in {"extend", "update"}:
        other = args.get(0)
        if isinstance(container, DictVal):
            container.exact = container.exact and not frame.branches
            added = other.items if isinstance(other, DictVal) else [(UNKNOWN, UNKNOWN)] if args.positional else []
            added = [*added, *((Const(key), value) for key, value in args.keywords.items())]
            container.items.extend(added)
            for _, value in added:
                attributes.fill(interp, frame, container, value, f"`.{method}(...)`", node, text)
        elif other is not None:
            attributes.fill(interp, frame, container, element_of(other, frame.level), f"`.{method}(...)`", node, text)
        return UNKNOWN
    if isinstance(container, DictVal):
        values = [value for _, value in container.items]
        if method in {"values", "keys", "items"}:
            keys = [key for key, _ in container.items]
            pairs: list[Value] = [Seq("tuple", [key, value], frame.level) for key, value in container.items]
            held = {"values": values, "keys": keys, "items": pairs}[method]
            return Seq("dict view", held, container.level, exact=False)
        if method in {"get", "pop"}:
            container.shrunk = container.shrunk or method == "pop"
            found = [value for key, value in container.items if isinstance(key, Const) and key is args.get(0)]
            return join(*(found or values), args.get(1) or UNKNOWN) if values else UNKNOWN
    if method == "copy":
        if isinstance(container, Seq):
            return Seq(container.type, container.items, frame.level, exact=container.exact)
        return DictVal(container.items, frame.level, exact=container.exact)
    if method in {"pop", "popleft", "popitem", "clear", "remove", "discard"}:
        container.exact = False
        container.shrunk = True
        return element_of(container, frame.level)
    if method in {"sort", "reverse"}:
        container.exact = False
    return Other("a plain value") if method in {"index", "count"} else UNKNOWN


# -- transforms
# ----------------------------------------------------------------------------------------------------------------


def apply_decorator(interp: Interpreter, frame: Frame, callee: Value, value: Value, node: ast.expr) -> Value:
    """Apply an evaluated decorator to a function."""
    if isinstance(callee, Ext):
        row = transforms.find(callee.name)
        if row is not None and row.form is transforms.Form.WRAPPER:
            applied = TransformVal(row, text_of(node), {}, node, frame.module)
            return apply_transform(interp, frame, applied, value, node, node, "decorator")
    if isinstance(callee, PartialVal) and isinstance(callee.func, Ext):
        row = transforms.find(callee.func.name)
        if row is not None and row.form is transforms.Form.WRAPPER:
            inner = node.args[0] if isinstance(node, ast.Call) and node.args else node
            applied = TransformVal(row, text_of(inner), callee.keywords, node, frame.module)
            return apply_transform(interp, frame, applied, value, node, node, "decorator")
    if isinstance(callee, TransformVal):
        return apply_transform(interp, frame, callee, value, node, node, "decorator")
    return UNKNOWN


def apply_transform(
    interp: Interpreter,
    frame: Frame,
    applied: TransformVal,
    func: Value,
    func_node: ast.AST,
    node: ast.AST,
    how: str,
) -> Value:
    """Give a transform of wrapper form its function."""
    transformed = Transformed(applied, func)
    interp.publish(events.TransformApplied(frame, node, applied, func, func_node, transformed, how))
    if isinstance(func, FuncVal):
        interp.entered.add(id(func.node))
        interp.transformed(transformed, frame)
    elif isinstance(func, (Obj, BoundMethod, PartialVal)):
        interp.transformed(transformed, frame)
    return transformed


def call_transformed(
    interp: Interpreter,
    frame: Frame,
    transformed: Transformed,
    args: Arguments,
    node: ast.AST,
    receiver: Value | None = None,
) -> Value:
    """Call a function under a transform of wrapper form."""
    applied, func = transformed.applied, transformed.func
    result = interp.run_under(frame, applied, func, args.positional, args.keywords, node, receiver=receiver)
    return RESULTS.get(applied.row.name, _returned)(interp, frame, result, args)


def _returned(interp: Interpreter, frame: Frame, result: Value, args: Arguments) -> Value:
    from nnx_lint.model.interpreter import refresh

    return refresh(result, frame.level)


def _gradient(interp: Interpreter, frame: Frame, result: Value, args: Arguments) -> Value:
    return UNKNOWN


def _value_and_gradient(interp: Interpreter, frame: Frame, result: Value, args: Arguments) -> Value:
    return Seq("tuple", [_returned(interp, frame, result, args), UNKNOWN], frame.level)


RESULTS = {
    "jax.grad": _gradient,
    "nnx.grad": _gradient,
    "jax.value_and_grad": _value_and_gradient,
    "nnx.value_and_grad": _value_and_gradient,
    "jax.jacfwd": _gradient,
    "jax.jacrev": _gradient,
    "jax.hessian": _gradient,
    "jax.make_jaxpr": _gradient,
    "nnx.make_jaxpr": _gradient,
    "nnx.scan": _gradient,
    "nnx.checkify": _gradient,
    "jax.experimental.checkify.checkify": _gradient,
}
"""What a call of a transformed function returns, where it is not what the function returns."""


def call_now(
    interp: Interpreter, frame: Frame, row: transforms.Transform, args: Arguments, node: ast.AST, text: str
) -> Value:
    """A transform of call form: run its functions with the operands."""
    if row.host:
        return UNKNOWN
    applied = TransformVal(row, text, args.keywords, node, frame.module)
    operands = args.positional[row.operands :]
    result: Value = UNKNOWN
    for argument in row.functions:
        given = args.get(argument.position, argument.keyword)
        where = args.node_of(argument.position, argument.keyword) or node
        members = given.items if argument.sequence and isinstance(given, Seq) else [given] if given is not None else []
        for func in members:
            if row.name == "jax.lax.switch" and len(members) == 1 and isinstance(given, Seq) and given.exact:
                invoke(interp, frame, func, Arguments(node, operands, {}, []), node, text)  # it is only called
                continue
            interp.publish(events.TransformApplied(frame, node, applied, func, where, None, "call"))
            inner = operand_values(interp, frame, row, operands, args)
            result = interp.run_under(frame, applied, func, inner, {}, node)
    return UNKNOWN if row.name != "nnx.eval_shape" and row.name != "jax.eval_shape" else result


def operand_values(
    interp: Interpreter, frame: Frame, row: transforms.Transform, operands: list[Value | None], args: Arguments
) -> list[Value | None]:
    """What the function of a transform of call form receives, as far as that is simple."""
    if row.name in {"jax.lax.scan"}:
        init = args.get(1, "init")
        xs = args.get(2, "xs")
        return [init if init is not None else UNKNOWN, element_of(xs, frame.level) if xs is not None else UNKNOWN]
    if row.name in {"jax.lax.fori_loop", "nnx.fori_loop"}:
        init = args.get(3, "init_val")
        return [Array(frame.level), init if init is not None else UNKNOWN]
    if row.name == "jax.lax.map":
        xs = args.get(1, "xs")
        return [element_of(xs, frame.level) if xs is not None else UNKNOWN]
    if row.name in {"jax.jvp", "nnx.jvp"}:
        primals = args.get(1, "primals")
        return list(primals.items) if isinstance(primals, Seq) and primals.exact else [None]
    if row.name in {"jax.lax.reduce", "jax.numpy.piecewise", "jax.numpy.apply_along_axis"}:
        return [None]
    return operands
