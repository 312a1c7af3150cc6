"""Calls: what is called, with which arguments, and what comes of it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import (
    applying,
    attributes,
    configs,
    events,
    items,
    leafwise,
    loops,
    measured,
    modes,
    parameters,
    rounds,
    surgery,
    trees,
)
from nnx_lint.model.arrays import call_array_method, value_of_kind
from nnx_lint.model.callables import (
    BoundMethod,
    FuncVal,
    LibraryFunction,
    PartialVal,
    SuperVal,
    Transformed,
    TransformVal,
)
from nnx_lint.model.classes import UserClass
from nnx_lint.model.construct import instantiate
from nnx_lint.model.containers import DictVal, Seq, give_away
from nnx_lint.model.crossing import shapeless
from nnx_lint.model.elements import element_of
from nnx_lint.model.expressions import evaluate, note_capture, text_of, used_as
from nnx_lint.model.frames import Frame
from nnx_lint.model.heap import touch
from nnx_lint.model.operations import INITIALIZED, with_form
from nnx_lint.model.python import bare, replaced_by_method
from nnx_lint.model.returned import returned
from nnx_lint.model.switching import is_any_module, set_training
from nnx_lint.model.unions import UnionVal, join, present
from nnx_lint.model.values import (
    UNKNOWN,
    VERSION,
    AliasVal,
    Array,
    ArrayAttr,
    ClassVal,
    Const,
    Ext,
    NamespaceVal,
    Obj,
    Other,
    ParameterVal,
    Value,
    VersionVal,
)
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_rules import transforms
from nnx_rules.shapes import Form

if TYPE_CHECKING:
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
            for item in reversed(self.node.keywords):  # of one that is written twice the last counts
                if keyword is not None and item.arg == keyword:
                    return item.value
        return self.nodes[position] if position < len(self.nodes) else None

    @property
    def starred(self) -> bool:
        return None in self.positional or "**" in self.keywords

    def without_shapes(self) -> Arguments:
        """The same arguments, but for the shapes of the arrays among them."""
        positional = [shapeless(value) if value is not None else None for value in self.positional]
        keywords = {name: shapeless(value) for name, value in self.keywords.items()}
        found = Arguments(self.node, positional, keywords, self.nodes)
        found.spread = self.spread
        return found


def call(interp: Interpreter, frame: Frame, node: ast.Call) -> Value:
    """Evaluate a call expression."""
    owner: Value | None = None
    if isinstance(node.func, ast.Attribute):
        owner = measured.arranged(frame, node, evaluate(interp, frame, node.func.value))
        callee = attributes.get_attribute(interp, frame, owner, node.func.attr, node.func)
        if frame.scope and not (isinstance(owner, Obj) and owner.cls.tracked):
            note_capture(frame, node.func, callee)
        if isinstance(owner, Obj) and owner.bare:
            touch(owner)
            owner.bare = False  # any of its methods may initialize it
    else:
        callee = evaluate(interp, frame, node.func)
    args = arguments(interp, frame, node)
    name = text_of(node.func)
    if isinstance(callee, Ext) and callee.name == "builtins.super":
        return super_object(interp, frame)
    if isinstance(owner, Obj) and isinstance(callee, BoundMethod) and callee.name == "__call__":
        callee, name = owner, name.removesuffix(".__call__")  # the same as a call of the object
    switches = name.endswith((".train", ".eval")) and not node.args and not node.keywords
    if switches and (isinstance(owner, ParameterVal) or is_any_module(owner)):
        action = f"`.{name.rpartition('.')[2]}(...)`"  # if it is a module, this is its mode
        interp.effects.changed(frame, owner, action, "write", "attributes")
    result = _made(interp, frame, callee, args, node, name) or invoke(interp, frame, callee, args, node, name)
    if callee is UNKNOWN and isinstance(owner, Obj) and isinstance(node.func, ast.Attribute):
        result = replaced_by_method(interp, frame, owner, node.func.attr, args)
    called = present(callee)  # `None` cannot be called: whoever calls an optional layer calls the layer
    # Whether the layer is there may go together with what it is called with: its shape says nothing then.
    told = args if called is callee else args.without_shapes()
    given = (told.positional, told.keywords, result, args.nodes)
    interp.publish(events.Called(frame, node, called, name, *given, interp.modes, owner))
    if isinstance(callee, Ext):
        from nnx_lint.model.library import AFTERWARDS

        if callee.name in AFTERWARDS:
            AFTERWARDS[callee.name](args)
    return result


def _made(interp: Interpreter, frame: Frame, callee: Value, args: Arguments, node: ast.Call, name: str) -> Value | None:
    """What a call of one of several classes makes, an entry of a registry of layers; ``None`` for all other calls."""
    if not isinstance(callee, UnionVal) or not all(map(_constructs, callee.options)):
        return None
    inner, rest = doubtful(frame, node), (args.nodes, interp.modes)
    results = [invoke(interp, inner, option, args, node, name) for option in callee.options]
    calls = [
        events.Called(frame, node, option, name, args.positional, args.keywords, result, *rest)
        for option, result in zip(callee.options, results, strict=True)
    ]
    interp.publish(events.CalledOneOf(frame, node, calls))
    return join(*results)


def _constructs(callee: Value) -> bool:
    """Whether a value is a class, or a partial of one."""
    while isinstance(callee, PartialVal):
        callee = callee.func
    return isinstance(callee, ClassVal)


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
            continue
        value = configs.as_dict(value)
        if isinstance(value, DictVal) and value.exact and all(isinstance(key, Const) for key, _ in value.items):
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
        # What a call of the one does may be nothing that a call of the other does.
        kinds = {option.cls if isinstance(option, Obj) else option for option in callee.options}
        inner = frame if len(kinds) == 1 else doubtful(frame, node)
        # Which of several objects is called may be decided by what they are called with: its shape says nothing then.
        any_args = args.without_shapes() if sum(isinstance(option, Obj) for option in callee.options) > 1 else args
        return join(
            *(
                invoke(interp, inner, option, any_args if _is_of_project(option) else args, node, name)
                for option in callee.options
            )
        )
    if isinstance(callee, FuncVal):
        receiver, rest = unbound_receiver(callee, args.positional)
        return interp.call_function(frame, callee, rest, args.keywords, node, receiver=receiver)
    if isinstance(callee, (ClassVal, AliasVal)):
        cls = callee.cls if isinstance(callee, ClassVal) else callee.origin.cls
        return instantiate(interp, frame, cls, args, node)
    if isinstance(callee, BoundMethod):
        return call_method(interp, frame, callee, args, node, name)
    if isinstance(callee, Transformed):
        interp.ran.add(callee)
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
        return call_array_method(callee, args, frame.level)
    if isinstance(callee, applying.AppliedVal):
        return applying.called(interp, frame, callee, args, node, name)
    if isinstance(callee, LibraryFunction):
        made = with_form(INITIALIZED, args, value_of_kind(callee.result, args, frame.level), frame.level)
        return callee.returned(made)
    interp.modes = interp.modes._replace(mesh=None)  # it may have set one
    for value in (*args.positional, *args.keywords.values()):  # who knows what an unknown function does to them
        if isinstance(value, Obj):
            touch(value)
            value.bare = False
            if value.training:
                set_training(value, None)
        elif isinstance(value, ClassVal) and isinstance(value.cls, UserClass):
            touch(value.cls)
            value.cls.registered_container = True
    give_away((*args.positional, *args.keywords.values()))
    configs.give_away((*args.positional, *args.keywords.values()))
    surgery.handed(frame, args, node)
    return UNKNOWN


def unbound_receiver(func: FuncVal, args: list[Value | None]) -> tuple[Value | None, list[Value | None]]:
    """The ``self`` of a method that is called through its class, ``Base.__init__(self, ...)``, and the rest."""
    first = args[0] if args and func.cls is not None and "staticmethod" not in func.decorators else None
    if isinstance(first, Obj) and func.cls in first.cls.ancestors:
        return first, args[1:]
    return None, args


def _is_of_project(value: Value) -> bool:
    return isinstance(value, Obj) and isinstance(value.cls, UserClass)


def doubtful(frame: Frame, node: ast.AST) -> Frame:
    """A frame for what a call may do, but need not."""
    inner = Frame(
        frame.module,
        frame.env,
        func=frame.func,
        caller=frame,
        call=node,
        level=frame.level,
        scope=frame.scope,
        cls=frame.cls,
        receiver=frame.receiver,
    )
    inner.doubts = 1
    return inner


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


def call_object(interp: Interpreter, frame: Frame, obj: Obj, args: Arguments, node: ast.AST, name: str) -> Value:
    """Call an instance."""
    found = obj.cls.find("__call__") if isinstance(obj.cls, UserClass) else None
    if found is not None:
        return call_method(interp, frame, BoundMethod(obj, "__call__", found[1]), args, node, name)
    from nnx_lint.model.instances import call_library_object

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
        interp.ran.add(method.func)
        return call_transformed(interp, frame, method.func, args, node, receiver=receiver)
    if isinstance(receiver, NamespaceVal):
        return namespace_method(interp, frame, receiver, method.name, args, node)
    if isinstance(receiver, (Seq, DictVal)):
        return container_method(interp, frame, receiver, method.name, args, node, name.rpartition(".")[0])
    from nnx_lint.model.instances import call_library_method

    return call_library_method(interp, frame, method, args, node, name)


def namespace_method(
    interp: Interpreter, frame: Frame, namespace: NamespaceVal, method: str, args: Arguments, node: ast.AST
) -> Value:
    """Call a method of the dict of an object's attributes."""
    if method == "get":
        return configs.entries(namespace.of).entry(args.get(0)) or UNKNOWN
    if method == "update":
        given = args.get(0)
        known = isinstance(given, DictVal) and given.exact
        added = list(given.items) if isinstance(given, DictVal) and known else []
        if (given is not None and not known) or args.starred:
            attributes.forget_names(namespace.of)
        for key, value in [*added, *((Const(key), value) for key, value in args.keywords.items() if key != "**")]:
            attributes.bypass(interp, frame, namespace.of, key, value, node)
    return UNKNOWN


# -- containers
# ----------------------------------------------------------------------------------------------------------------

ADDING = {"append": 0, "add": 0, "appendleft": 0, "insert": 1, "setdefault": 1}
"""Methods that put one value into a container, with its position."""


KEYED = {"set": ("add", "discard", "remove"), "dict": ("get", "pop", "setdefault")}
"""Methods whose first argument is hashed, by the type of the container."""


def _got(container: DictVal, args: Arguments) -> Value:
    """What ``dict.get(key, default)`` gives."""
    key, default = args.get(0), args.get(1) or UNKNOWN
    held = container.entry(key)
    if held is None and container.lacks(key):
        number = configs.started_with(default)  # others may put something there
        held = number if number is not UNKNOWN else None
    if held is not None:
        return held if container.exact and not container.shrunk else join(held, default)
    return join(*(value for _, value in container.items), default) if container.items else UNKNOWN


def container_method(
    interp: Interpreter, frame: Frame, container: Seq | DictVal, method: str, args: Arguments, node: ast.AST, text: str
) -> Value:
    """Call a method of a plain container."""
    key = args.node_of(0) if method in KEYED.get(container.type if isinstance(container, Seq) else "dict", ()) else None
    if key is not None:
        used_as(interp, frame, key, args.get(0) or UNKNOWN, "a key")
    if method in ADDING:
        value = args.get(ADDING[method])
        if value is not None:
            if isinstance(container, DictVal):
                touch(container)
                container.exact = container.exact and not frame.branches
                container.items.append((args.get(0) or UNKNOWN, value))
            action, last = f"`.{method}(...)`", method == "append"
            items.fill(interp, frame, container, value, action, node, text, at_end=last)
        if method == "setdefault" and isinstance(value, Seq) and value.node is not None:
            return Seq(value.type, value.items, container.level, exact=False)  # it may be there already
        return value if method == "setdefault" and value is not None else UNKNOWN
    if method in {"extend", "update"}:
        other = args.get(0)
        if isinstance(container, DictVal):
            touch(container)
            container.exact = container.exact and not frame.branches
            added = other.items if isinstance(other, DictVal) else [(UNKNOWN, UNKNOWN)] if args.positional else []
            added = [*added, *((Const(key), value) for key, value in args.keywords.items())]
            container.items.extend(added)
            for _, value in added:
                items.fill(interp, frame, container, value, f"`.{method}(...)`", node, text)
        elif other is not None:
            rounds.extend(interp, frame, container, other, f"`.{method}(...)`", node, text)
        return UNKNOWN
    if isinstance(container, DictVal):
        values = [value for _, value in container.items]
        if method in {"values", "keys", "items"}:
            keys = [key for key, _ in container.items]
            pairs: list[Value] = [Seq("tuple", [key, value], frame.level) for key, value in container.items]
            held = {"values": values, "keys": keys, "items": pairs}[method]
            whole = container.exact and not container.shrunk and rounds.keys(container) is not None
            return Seq("dict view", held, container.level, exact=whole)
        if method in {"get", "pop"}:
            found = _got(container, args)
            if method == "pop":
                container.take_out(args.get(0), certainly=not frame.branches)
            return found
    if method == "copy":
        if isinstance(container, Seq):
            return Seq(container.type, container.items, frame.level, exact=container.exact)
        return DictVal(container.items, frame.level, exact=container.exact)
    if method == "pop" and isinstance(container, Seq):
        known = items.taken(interp, frame, container, args.get(0))
        if known is not None:
            return known
    if method in {"pop", "popleft", "popitem", "clear", "remove", "discard"}:
        touch(container)
        container.exact = False
        container.shrunk = True
        return element_of(container, frame.level)
    if method in {"sort", "reverse"}:
        touch(container)
        container.exact = False
    return Other("a plain value") if method in {"index", "count"} else UNKNOWN


# -- transforms
# ----------------------------------------------------------------------------------------------------------------


def apply_decorator(interp: Interpreter, frame: Frame, callee: Value, value: Value, node: ast.expr) -> Value:
    """Apply an evaluated decorator to a function."""
    if isinstance(callee, Ext):
        row = transforms.find(callee.name)
        if row is not None and row.form is transforms.Form.WRAPPER:
            applied = TransformVal(
                row, text_of(node), {}, node, frame, modes.of_transform(callee.name, {}, interp.modes)
            )
            return apply_transform(interp, frame, applied, value, node, node, "decorator")
    if isinstance(callee, PartialVal) and isinstance(callee.func, Ext):
        row = transforms.find(callee.func.name)
        if row is not None and row.form is transforms.Form.WRAPPER:
            inner = node.args[0] if isinstance(node, ast.Call) and node.args else node
            configured = modes.of_transform(callee.func.name, callee.keywords, interp.modes)
            applied = TransformVal(row, text_of(inner), callee.keywords, node, frame, configured)
            return apply_transform(interp, frame, applied, value, node, node, "decorator")
    if isinstance(callee, TransformVal):
        return apply_transform(interp, frame, callee, value, node, node, "decorator")
    if not isinstance(callee, (FuncVal, PartialVal)):
        return UNKNOWN
    result = invoke(interp, frame, callee, Arguments(node, [value], {}, []), node, text_of(node))
    if isinstance(result, FuncVal) and result is not value and result.wraps is None:
        result.wraps = value
    return result


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
    if applied.row.name in transforms.HANDING_ON and _is_refused(func, args, receiver):
        return UNKNOWN
    result = interp.run_under(frame, applied, func, args.positional, args.keywords, node, receiver=receiver)
    chain = [applied]
    while isinstance(func, Transformed):
        chain.append(func.applied)
        func = func.func
    if isinstance(func, BoundMethod):
        func = func.receiver
    of = func if isinstance(func, Obj) else None
    return returned(frame, chain, result, args, of, receiver)


def _is_refused(func: Value, args: Arguments, receiver: Value | None) -> bool:
    """Whether Python does not run a function of the project for these arguments."""
    if not isinstance(func, FuncVal) or func.wraps is not None or args.starred:
        return False
    if func.decorators and not func.is_static:
        return False
    count, bound = len(args.positional) + (receiver is not None), receiver is not None
    misfit = syntax_parameters.misfit(func.node.args, count, args.keywords)
    return misfit is not None or parameters.exchanged(func, args, bound=bound) is not None


def call_now(
    interp: Interpreter,
    frame: Frame,
    row: transforms.Transform,
    name: str,
    args: Arguments,
    node: ast.AST,
    text: str,
) -> Value:
    """A transform of call form, by this canonical name: run its functions with the operands."""
    if row.host or (row.name == "jax.lax.cond" and isinstance(args.get(4), FuncVal)):
        return UNKNOWN  # `cond` may get an operand before each of its functions, as it was once
    configured = modes.of_transform(name, args.keywords, interp.modes)
    applied = TransformVal(row, text, args.keywords, node, frame, configured)
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
            if row.name == "jax.tree.map" and "is_leaf" not in args.keywords:
                several = args.spread if operands == [None] else []
                trees_given = [*(element_of(each, frame.level) for each in several[:1]), *operands]
                whole = leafwise.mapped(interp, frame, trees_given, leafwise.Leaves(applied, func, node, text))
                if whole is not None:
                    return whole
            inner = operand_values(interp, frame, row, operands, args)
            result = interp.run_under(frame, applied, func, inner, {}, node)
    if row.name == "jax.tree.map":
        return trees.mapped(trees.first_known(operands), frame.level, result, whole="is_leaf" in args.keywords)
    return loops.given_back(row.name, frame, result, args) if not row.name.endswith(".eval_shape") else result


def operand_values(
    interp: Interpreter, frame: Frame, row: transforms.Transform, operands: list[Value | None], args: Arguments
) -> list[Value | None]:
    """What the function of a transform of call form receives, as far as that is simple."""
    if row.name == "jax.tree.map":
        return [trees.leaf(interp, frame, tree or UNKNOWN, args.keywords.get("is_leaf")) for tree in operands]
    if row.name in {"jax.lax.scan"}:
        init = args.get(1, "init")
        xs = args.get(2, "xs")
        step = leafwise.step_of(interp, frame, xs, args.node) if xs is not None else UNKNOWN
        return [init if init is not None else UNKNOWN, step]
    if loops.carried_at(row.name) == 1:
        init = args.get(3, "init_val")
        return [Array(frame.level, Form((), "int32")), init if init is not None else UNKNOWN]
    if row.name == loops.ASSOCIATIVE:
        return operands * 2
    if row.name == "jax.lax.map":
        xs = args.get(1, "xs")
        return [element_of(xs, frame.level) if xs is not None else UNKNOWN]
    if row.name in {"jax.jvp", "nnx.jvp"}:
        primals = args.get(1, "primals")
        return list(primals.items) if isinstance(primals, Seq) and primals.exact else [None]
    if row.name in {"jax.lax.reduce", "jax.numpy.piecewise", "jax.numpy.apply_along_axis"}:
        return [None]
    return operands
