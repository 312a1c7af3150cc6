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
import math
import operator
from typing import TYPE_CHECKING, Any

from nnx_lint.model import expressions, statements
from nnx_lint.model.callables import LibraryFunction
from nnx_lint.model.classes import UserClass
from nnx_lint.model.construct import build_model
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.elements import element_of, library_elements
from nnx_lint.model.expressions import evaluate, truth
from nnx_lint.model.interpreter import Budget, Interpreter
from nnx_lint.model.modules import Env
from nnx_lint.model.python import HANDLERS as BUILTINS
from nnx_lint.model.values import (
    UNKNOWN,
    Array,
    Const,
    Ext,
    Obj,
    Other,
    Value,
    join,
    options,
    present,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.events import Event
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module, Project

MAX_ROUNDS = 256
MAX_TEXT = 1_000
MAX_NUMBER = 10**18
MAX_EXPONENT = 64
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


def elements(value: Value) -> list[Value] | None:
    """What a loop over a value meets, in order; ``None`` if that is not known."""
    value = present(value)
    if isinstance(value, Obj) and value.cls.derives_from("nnx.List"):
        value = library_elements(value) or UNKNOWN
    if isinstance(value, Seq) and value.exact and not value.shrunk and value.type not in {"set", "frozenset"}:
        return value.items if len(value.items) <= MAX_ROUNDS else None
    if isinstance(value, DictVal) and value.exact and not value.shrunk:
        return [key for key, _ in value.items] if len(value.items) <= MAX_ROUNDS else None
    return None


def _for(interp: Concrete, frame: Frame, node: ast.For) -> bool:
    known = elements(evaluate(interp, frame, node.iter))
    if known is None:
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
        return statements.HANDLERS[type(node)](interp, frame, node)

    return handler


def _comprehend(interp: Concrete, frame: Frame, generators: list[ast.comprehension], run: Callable[[], None]) -> bool:
    """Run the body of a comprehension for every element; whether that is certainly how often it runs."""
    if not generators:
        run()
        return True
    first, *rest = generators
    iterable = evaluate(interp, frame, first.iter)
    known = elements(iterable)
    exact = known is not None
    for element in known if known is not None else [element_of(iterable, frame.level)]:
        statements.assign(interp, frame, first.target, element, None, first.target)
        tests = [truth(evaluate(interp, frame, test)) for test in first.ifs]
        if False in tests:
            continue
        exact = _comprehend(interp, frame, rest, run) and exact and None not in tests
    return exact


def _comprehension(type_name: str) -> Callable[[Concrete, Frame, ast.ListComp], Value]:
    def handler(interp: Concrete, frame: Frame, node: ast.ListComp) -> Value:
        result = Seq(type_name, (), frame.level, exact=False, node=node)
        outer = frame.env
        frame.env = Env("comprehension", outer)
        try:
            result.exact = _comprehend(
                interp, frame, node.generators, lambda: result.items.append(evaluate(interp, frame, node.elt))
            )
        finally:
            frame.env = outer
        return result

    return handler


def _dict_comprehension(interp: Concrete, frame: Frame, node: ast.DictComp) -> Value:
    result = DictVal((), frame.level, exact=False, node=node)
    outer = frame.env
    frame.env = Env("comprehension", outer)
    try:
        result.exact = _comprehend(
            interp,
            frame,
            node.generators,
            lambda: result.items.append((evaluate(interp, frame, node.key), evaluate(interp, frame, node.value))),
        )
    finally:
        frame.env = outer
    return result


# -- operators
# -----------------------------------------------------------------------------------------------------------------


def _divide(left: Any, right: Any) -> Any:
    return left / right


def _floor(left: Any, right: Any) -> Any:
    return left // right


def _power(base: Any, exponent: Any) -> Any:
    if not isinstance(exponent, int) or not 0 <= exponent <= MAX_EXPONENT:
        raise ValueError
    return base**exponent


OPERATORS: dict[type[ast.AST], Callable[..., object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
    ast.FloorDiv: _floor,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
PLAIN = (bool, int, float, str)


def computed(function: Callable[..., object], *values: Value) -> Value | None:
    """The result of a function of literals, if it is one, and not too large."""
    plain = [value.value for value in values if isinstance(value, Const) and isinstance(value.value, PLAIN)]
    if len(plain) != len(values) or any(isinstance(item, str) and len(item) > MAX_TEXT for item in plain):
        return None
    if function is operator.mul and any(isinstance(item, str) for item in plain):
        return None
    try:
        result = function(*plain)
    except (ArithmeticError, TypeError, ValueError):
        return None
    if isinstance(result, (int, float)) and not -MAX_NUMBER < result < MAX_NUMBER:
        return None
    return Const(result) if isinstance(result, PLAIN) else None


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
    return Const(text) if len(text) <= MAX_TEXT else Other("a string")


def _subscript(interp: Concrete, frame: Frame, node: ast.Subscript) -> Value:
    if isinstance(node.slice, ast.Slice):
        value = present(evaluate(interp, frame, node.value))
        bounds = [
            evaluate(interp, frame, bound) if bound is not None else Const(None)
            for bound in (node.slice.lower, node.slice.upper, node.slice.step)
        ]
        known = [item.value for item in bounds if isinstance(item, Const) and isinstance(item.value, (int, type(None)))]
        if isinstance(value, Seq) and value.exact and len(known) == 3 and known[2] != 0:
            return Seq(value.type, value.items[slice(*known)], frame.level)
    return expressions.HANDLERS[ast.Subscript](interp, frame, node)


# -- functions
# -----------------------------------------------------------------------------------------------------------------


def _range(interp: Concrete, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    bounds = [item.value for item in args.positional if isinstance(item, Const) and type(item.value) is int]
    if 1 <= len(bounds) <= 3 and len(bounds) == len(args.positional) and (len(bounds) < 3 or bounds[2]):
        numbers = range(*bounds)
        if len(numbers) <= MAX_ROUNDS:
            return Seq("range", [Const(number) for number in numbers], frame.level)
    return BUILTINS["builtins.range"](interp, frame, args, node, name)


def _enumerate(interp: Concrete, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    known = elements(args.get(0) or UNKNOWN)
    start = args.get(1, "start") or Const(0)
    if known is None or not isinstance(start, Const) or type(start.value) is not int:
        return BUILTINS["builtins.enumerate"](interp, frame, args, node, name)
    pairs = [Seq("tuple", [Const(index), item], frame.level) for index, item in enumerate(known, start.value)]
    return Seq("generator", pairs, frame.level)


def _zip(interp: Concrete, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    columns = [elements(value or UNKNOWN) for value in args.positional]
    known = [column for column in columns if column is not None]
    if not known or len(known) < len(columns):
        return BUILTINS["builtins.zip"](interp, frame, args, node, name)
    rows = [Seq("tuple", row, frame.level) for row in zip(*known, strict=False)]
    return Seq("generator", rows, frame.level)


def _reversed(interp: Concrete, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    known = elements(args.get(0) or UNKNOWN)
    if known is None:
        return BUILTINS["builtins.reversed"](interp, frame, args, node, name)
    return Seq("generator", known[::-1], frame.level)


def _len(interp: Concrete, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    known = elements(args.get(0) or UNKNOWN)
    return Const(len(known)) if known is not None else Other("an int")


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


def _numeric(function: Callable[..., object]) -> Callable[..., Value]:
    """A function of numbers, or of one sequence of them."""

    def handler(interp: Concrete, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
        given = [value or UNKNOWN for value in args.positional]
        if not args.keywords and given:
            known = elements(given[0]) if len(given) == 1 and not isinstance(given[0], Const) else None
            if known is not None:
                numbers = [item.value for item in known if isinstance(item, Const) and isinstance(item.value, PLAIN)]
                if len(numbers) == len(known):
                    return computed(lambda: function(numbers)) or Other("a number")
            return computed(function, *given) or Other("a number")
        return Other("a number")

    return handler


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
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


Concrete.evaluators = {
    **expressions.HANDLERS,
    ast.BinOp: _binop,
    ast.Compare: _compare,
    ast.JoinedStr: _joined,
    ast.Subscript: _subscript,
    ast.ListComp: _comprehension("list"),
    ast.SetComp: _comprehension("set"),
    ast.GeneratorExp: _comprehension("generator"),
    ast.DictComp: _dict_comprehension,
    ast.Call: _call,
}
Concrete.executors = {
    **statements.HANDLERS,
    ast.For: _for,
    ast.AugAssign: _aug_assign,
    ast.Break: _jump("break"),
    ast.Continue: _jump("continue"),
}
Concrete.library = {
    "builtins.range": _range,
    "builtins.enumerate": _enumerate,
    "builtins.zip": _zip,
    "builtins.reversed": _reversed,
    "builtins.len": _len,
    "builtins.isinstance": _isinstance,
    "builtins.int": _numeric(int),
    "builtins.float": _numeric(float),
    "builtins.abs": _numeric(abs),
    "builtins.round": _numeric(round),
    "builtins.max": _numeric(max),
    "builtins.min": _numeric(min),
    "builtins.sum": _numeric(sum),
    "math.prod": _numeric(math.prod),
    "math.sqrt": _numeric(math.sqrt),
    "math.ceil": _numeric(math.ceil),
    "math.floor": _numeric(math.floor),
    "math.log2": _numeric(math.log2),
}
"""What differs from a check, by syntax and by the names of functions."""
