"""Execution for one instance: what a program computes from literals is computed.

A check asks what holds for every run, and executes a loop once. A drawing asks what one constructor makes, so here a
loop over known elements runs element by element, arithmetic and comparisons of literals have results, a constructor
runs with the arguments that it gets, and arrays carry their shapes.

Invariants: what is not known stays unknown, and is executed as in a check; no code of the program is run; numbers and
texts stay small, and a loop has at most ``MAX_ROUNDS`` rounds; a class that is constructed inside of itself ends where
its arguments are not known.
"""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING

from nnx_lint.model import arithmetic, expressions, statements
from nnx_lint.model.callables import LibraryFunction
from nnx_lint.model.classes import UserClass
from nnx_lint.model.construct import build_model
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.expressions import evaluate
from nnx_lint.model.interpreter import Interpreter
from nnx_lint.model.limits import Budget
from nnx_lint.model.rounds import elements
from nnx_lint.model.unions import join, options, present
from nnx_lint.model.values import (
    Array,
    Const,
    Ext,
    Obj,
    Other,
    Value,
)
from nnx_lint.syntax.compact import for_both
from nnx_lint.syntax.dotted import root_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.events import Event
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module, Project

MAX_ROUNDS = 256
MAX_SAME = 12
"""How often a class may be constructed inside of itself."""


class ShapedArray(Array):
    """An array, and the arguments for shape and dtype of the call that made it; either may be ``None``.

    ``text`` is what is written for the shape.
    """

    __slots__ = ("dtype", "shape", "text")

    def __init__(self, level: int, shape: Value | None = None, dtype: Value | None = None, text: str = "") -> None:
        super().__init__(level)
        self.shape = shape
        self.dtype = dtype
        self.text = text


class Mapped(Obj):
    """What a map gives: an object whose arrays have an axis more than those of the object that its function made."""

    __slots__ = ()

    def __init__(self, of: Obj) -> None:
        super().__init__(of.cls, of.level, of.args, of.node)
        self.template = of
        self.origin = of.origin
        self.training = of.training


class Concrete(Interpreter):
    """An interpreter for which literals are numbers and texts.

    One that ``builds`` makes instances by running their constructors; the evaluation of a module's body, which may make
    whole models on the way, does not.
    """

    builds = False
    most_rounds = MAX_ROUNDS
    number = Const

    def __init__(self, project: Project, publish: Callable[[Event], None], module: Module | None = None) -> None:
        super().__init__(project, publish, module)
        self._constructing: list[UserClass] = []
        self.jump = ""

    def any_instance(self, cls: UserClass) -> Obj:
        """An instance that anybody may have made: its constructor ran with parameters of unknown values."""
        return self.constructed(Obj(cls, 0))

    def constructed(self, obj: Obj) -> Obj:
        """The instance on which the constructor ran with the arguments of this one."""
        cls = obj.cls
        assert isinstance(cls, UserClass)
        inside = self._constructing.count(cls)
        if not self.builds or cls.is_variable or inside >= MAX_SAME or (inside and not has_literals(obj)):
            return obj
        fresh = Obj(cls, obj.level, obj.args, obj.node)
        fresh.origin = obj.origin
        if cls.find("__init__") is None:  # what the library's constructor made of the arguments
            fresh.attrs.update(obj.attrs)
        self._constructing.append(cls)
        try:
            build_model(self, cls, fresh, obj.args)
        except (Budget, RecursionError):
            fresh.assumed = True
        finally:
            self._constructing.pop()
        return fresh

    def run_under(
        self,
        frame: Frame,
        applied: TransformVal,
        func: Value,
        args: Sequence[Value | None],
        keywords: dict[str, Value],
        node: ast.AST | None,
        *,
        receiver: Value | None = None,
    ) -> Value:
        value = super().run_under(frame, applied, func, args, keywords, node, receiver=receiver)
        if applied.row.name.rpartition(".")[2] not in MAPS:
            return value
        return join(*(Mapped(option) if isinstance(option, Obj) else option for option in options(value)))


MAPS = frozenset({"vmap", "pmap", "scan", "shard_map", "map"})
"""Transforms that give what a function makes an axis more, or less."""


def has_literals(obj: Obj) -> bool:
    """Whether a constructor got a literal, so that it may do something else than around it."""
    return obj.args is not None and any(isinstance(value, Const) for value in obj.args.values())


# -- loops
# -----------------------------------------------------------------------------------------------------------------


def _for(interp: Concrete, frame: Frame, node: ast.For) -> bool:
    known = elements(evaluate(interp, frame, node.iter))
    if known is None or len(known) > MAX_ROUNDS:
        return statements.HANDLERS[ast.For](interp, frame, node)
    for element in known:
        statements.assign(interp, frame, node.target, element, None, node)
        interp.jump = ""
        exits = frame.exits
        if not interp.block(frame, node.body):
            continue
        if not interp.jump:
            return True
        frame.exits = exits
        if interp.jump == "break":
            return False
    return interp.block(frame, node.orelse)


def _jump(how: str) -> Callable[[Concrete, Frame, ast.stmt], bool]:
    def handler(interp: Concrete, frame: Frame, node: ast.stmt) -> bool:
        interp.jump = how
        return Interpreter.executors[type(node)](interp, frame, node)

    return handler


# -- operators
# -----------------------------------------------------------------------------------------------------------------


OPERATORS: dict[type[ast.AST], Callable[..., object]] = {
    **arithmetic.OPERATORS,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def computed(function: Callable[..., object], *values: Value) -> Value | None:
    """The result of a function of literals, if it is one, and not too large."""
    known = arithmetic.plain(*values)
    result = arithmetic.evaluated(function, *known) if known is not None else None
    return Const(result) if result is not None else None


def _binop(interp: Concrete, frame: Frame, node: ast.BinOp) -> Value:
    left, right = evaluate(interp, frame, node.left), evaluate(interp, frame, node.right)
    if type(node.op) in OPERATORS:
        kept = [item for item in (left, right) if isinstance(item, ShapedArray)]
        if len(kept) == 1 and any(isinstance(item, Const) for item in (left, right)):
            return kept[0]
        known = computed(OPERATORS[type(node.op)], left, right) or _repeated(node.op, left, right, frame.level)
        if known is not None:
            return known
    return expressions.operation(frame, node, left, right)


def _repeated(operator: ast.operator, left: Value, right: Value, level: int) -> Value | None:
    """A list times a number."""
    if not isinstance(operator, ast.Mult):
        return None
    sequence, count = (left, right) if isinstance(left, Seq) else (right, left)
    if not (isinstance(sequence, Seq) and sequence.exact and isinstance(count, Const) and type(count.value) is int):
        return None
    times = count.value
    return Seq(sequence.type, sequence.items * times, level) if len(sequence.items) * times <= MAX_ROUNDS else None


def _aug_assign(interp: Concrete, frame: Frame, node: ast.AugAssign) -> bool:
    if isinstance(node.target, ast.Name) and type(node.op) in OPERATORS:
        held = evaluate(interp, frame, node.target)
        value = computed(OPERATORS[type(node.op)], held, evaluate(interp, frame, node.value))
        if value is not None:
            statements.assign(interp, frame, node.target, value, None, node)
            return False
    return statements.HANDLERS[ast.AugAssign](interp, frame, node)


def _compare(interp: Concrete, frame: Frame, node: ast.Compare) -> Value:
    value = expressions.HANDLERS[ast.Compare](interp, frame, node)
    if isinstance(value, Const) or len(node.ops) > 1:
        return value
    left, right = evaluate(interp, frame, node.left), evaluate(interp, frame, node.comparators[0])
    if isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return _contained(left, elements(right), isinstance(node.ops[0], ast.In)) or value
    function = OPERATORS.get(type(node.ops[0]))
    return (computed(function, left, right) if function is not None else None) or value


def _contained(wanted: Value, held: list[Value] | None, positive: bool) -> Value | None:
    """Whether a literal is among literals."""
    if held is None or not isinstance(wanted, Const) or not all(isinstance(item, Const) for item in held):
        return None
    return Const(any(isinstance(item, Const) and item.value == wanted.value for item in held) is positive)


def _joined(interp: Concrete, frame: Frame, node: ast.JoinedStr) -> Value:
    text = ""
    for part in node.values:
        simple = not isinstance(part, ast.FormattedValue) or (part.conversion == -1 and part.format_spec is None)
        value = evaluate(interp, frame, part.value if isinstance(part, ast.FormattedValue) else part)
        if not simple or not isinstance(value, Const) or not isinstance(value.value, (int, str)):
            return expressions.HANDLERS[ast.JoinedStr](interp, frame, node)
        text += str(value.value)
    return Const(text) if len(text) <= arithmetic.MAX_TEXT else Other("a string")


# -- functions
# -----------------------------------------------------------------------------------------------------------------


TYPES: dict[str, tuple[type, ...]] = {
    "builtins.int": (int,),
    "builtins.float": (float,),
    "builtins.bool": (bool,),
    "builtins.str": (str,),
}


def _isinstance(interp: Concrete, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    value, wanted = args.get(0), args.get(1)
    names = [item.name for item in (wanted.items if isinstance(wanted, Seq) else [wanted]) if isinstance(item, Ext)]
    count = len(wanted.items) if isinstance(wanted, Seq) else 1
    if len(names) == count:
        if isinstance(value, Const) and all(item in TYPES or item in SEQUENCES for item in names):
            return Const(any(isinstance(value.value, TYPES.get(item, ())) for item in names))
        if isinstance(value, Seq) and all(item in TYPES or item in SEQUENCES for item in names):
            return Const(f"builtins.{value.type}" in names)
    return Other("a bool")


SEQUENCES = frozenset({"builtins.tuple", "builtins.list", "builtins.dict", "builtins.set"})


# -- arrays
# -----------------------------------------------------------------------------------------------------------------

FLOAT32 = Const("float32")

CREATORS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("zeros", "ones", "empty"), (0, 1)),
    "full": (0, 2),
}
"""Positions of the arguments for shape and dtype, of functions of ``jax.numpy`` and numpy."""

SAMPLERS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("normal", "uniform", "exponential", "gumbel", "laplace", "logistic", "cauchy"), (1, 2)),
    "truncated_normal": (3, 4),
}
"""The same for functions of ``jax.random`` that draw numbers, and for methods of random streams (a place less)."""


def _call(interp: Concrete, frame: Frame, node: ast.Call) -> Value:
    return _entries(interp, frame, node) or _shaped(interp, frame, node)


def _entries(interp: Concrete, frame: Frame, node: ast.Call) -> Value | None:
    """The result of ``items()``, ``keys()`` or ``values()`` of a dict that is known."""
    method = node.func
    if node.args or node.keywords or not isinstance(method, ast.Attribute) or method.attr not in ENTRIES:
        return None
    if not isinstance(method.value, ast.Dict) and not _named(method.value):
        return None
    held = present(evaluate(interp, frame, method.value))
    if not isinstance(held, DictVal) or elements(held) is None:
        return None
    return Seq("dict view", [ENTRIES[method.attr](key, value) for key, value in held.items], frame.level)


ENTRIES: dict[str, Callable[[Value, Value], Value]] = {
    "items": lambda key, value: Seq("tuple", [key, value]),
    "keys": lambda key, value: key,
    "values": lambda key, value: value,
}


def _shaped(interp: Concrete, frame: Frame, node: ast.Call) -> Value:
    """The result of a call; an array with its shape, where the arguments say it."""
    value = expressions.HANDLERS[ast.Call](interp, frame, node)
    if not isinstance(value, Array) or not _named(node.func.func if isinstance(node.func, ast.Call) else node.func):
        return value
    callee = evaluate(interp, frame, node.func)
    positions: tuple[int, int] | None = None
    if isinstance(callee, LibraryFunction):
        positions = (1, 2)
    elif isinstance(callee, Ext):
        head, _, function = callee.name.rpartition(".")
        if head == "jax.random":
            positions = SAMPLERS.get(function)
        elif head == "jax.numpy":
            positions = CREATORS.get(function)
    if positions is None:
        return value
    from nnx_lint.model.calls import arguments

    args = arguments(interp, frame, node)
    if args.starred:
        return value
    shape = args.get(positions[0], "shape")
    if shape is None and isinstance(callee, Ext) and callee.name.startswith("jax.random."):
        shape = Seq("tuple", [], frame.level)  # one number
    default: Value | None = FLOAT32
    if isinstance(callee, Ext) and callee.name.endswith(".full"):
        default = _dtype_of(args.get(1, "fill_value"))
    where = args.node_of(positions[0], "shape")
    text = ast.unparse(where) if where is not None else ""
    return ShapedArray(frame.level, shape, args.get(positions[1], "dtype") or default, text)


def _dtype_of(value: Value | None) -> Value | None:
    """The dtype that an array gets from a number in it."""
    kinds: dict[type[object], str] = {bool: "bool", int: "int32", float: "float32"}
    found = kinds.get(type(value.value)) if isinstance(value, Const) else None
    return Const(found) if found is not None else None


def _named(node: ast.expr) -> bool:
    """Whether a function is a dotted name, so that looking it up again costs nothing."""
    return root_of(node) is not None


Concrete.evaluators = {
    **Interpreter.evaluators,
    **for_both({ast.BinOp: _binop, ast.Compare: _compare, ast.JoinedStr: _joined, ast.Call: _call}),
}
Concrete.executors = {
    **Interpreter.executors,
    **for_both({ast.For: _for, ast.AugAssign: _aug_assign, ast.Break: _jump("break"), ast.Continue: _jump("continue")}),
}
Concrete.library = {
    "builtins.isinstance": _isinstance,
}
"""What differs from a check, by syntax and by the names of functions."""
