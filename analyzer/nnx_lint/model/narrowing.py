"""What a condition, or the pattern of a case, says of a value.

Invariants: an option of a value is dropped only where it certainly does not fit; where nothing that is known fits, the
value is unknown, since it came from somewhere that was not seen. Only names are narrowed: an attribute can change in
between.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import arithmetic
from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal, LibraryFunction, PartialVal, Transformed
from nnx_lint.model.classes import LibClass, UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.states import PartVal
from nnx_lint.model.symbols import given
from nnx_lint.model.unions import UnionVal, join, options, present
from nnx_lint.model.values import (
    NONE,
    SOME_VARIABLE,
    UNKNOWN,
    AliasVal,
    Array,
    ClassVal,
    Computed,
    Const,
    Ext,
    HostArray,
    Obj,
    UnionTypeVal,
    Unknown,
    Value,
)
from nnx_lint.syntax.binding import is_none
from nnx_lint.syntax.walk import dumped

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter

# -- types -------------------------------------------------------------------------------------------------------------

LITERALS: dict[str, tuple[type, ...]] = {
    "builtins.bool": (bool,),
    "builtins.bytes": (bytes,),
    "builtins.complex": (complex,),
    "builtins.float": (float,),
    "builtins.int": (int, bool),
    "builtins.str": (str,),
}
"""Built-in types with the types of their literals."""

CONTAINERS = frozenset({"builtins.list", "builtins.tuple", "builtins.set", "builtins.frozenset", "builtins.dict"})
ARRAYS = frozenset({"jax.Array", "jax.numpy.ndarray"})
HOST_ARRAYS = frozenset({"numpy.ndarray"})

NUMERIC = frozenset({"numbers", "numpy"})
"""Libraries whose classes are arrays and numbers: no container of Python is an instance of one."""

FRAMEWORKS = frozenset({"equinox", "flax", "haiku", "keras", "tensorflow", "torch"})
"""Libraries whose classes are no protocols: what has none of them as a base is no instance of one."""


def fits(value: Value, wanted: Value) -> bool | None:
    """Whether a value is an instance of a type, or of one of a tuple of types; ``None`` where that is not known."""
    if isinstance(wanted, Seq):
        return _any(fits(value, item) for item in wanted.items) if wanted.exact else None
    if isinstance(wanted, UnionTypeVal):
        return _any(fits(value, item) for item in wanted.members)
    if isinstance(wanted, AliasVal):
        wanted = wanted.origin
    if isinstance(value, Unknown):
        return None
    if isinstance(wanted, ClassVal):
        return _fits_class(value, wanted)
    return _fits_library(value, wanted.name) if isinstance(wanted, Ext) else None


def _any(verdicts: object) -> bool | None:
    found = set(verdicts)  # type: ignore[call-overload]
    return True if True in found else None if None in found else False


def _fits_class(value: Value, wanted: ClassVal) -> bool | None:
    if isinstance(value, (Const, Seq, DictVal, Array, FuncVal, PartialVal, BoundMethod, Transformed, LibraryFunction)):
        return False
    if not isinstance(value, Obj):
        return None
    if wanted.cls in value.cls.ancestors:
        return True
    # What an annotation says may be an instance of a subclass, also of one that brings in what adds to modules only.
    below = value.assumed and (value.cls in wanted.cls.ancestors or not wanted.cls.is_pytree)
    return None if value.cls.is_open or wanted.cls.is_open or below else False


def _fits_library(value: Value, name: str) -> bool | None:
    if isinstance(value, Obj):
        closed = isinstance(value.cls, LibClass) or (isinstance(value.cls, UserClass) and not value.cls.is_open)
        other = name in LITERALS or name in CONTAINERS or name.partition(".")[0] in FRAMEWORKS
        other = other or (name in ARRAYS | HOST_ARRAYS and not value.cls.is_variable)
        return False if closed and value.cls.is_pytree and other else None
    if name in LITERALS:
        if isinstance(value, Const):
            return isinstance(value.value, LITERALS[name])
        return False if isinstance(value, (Seq, DictVal, Array, FuncVal)) else None
    if name in CONTAINERS:
        if isinstance(value, Seq):
            return f"builtins.{value.type}" == name if value.type in {"list", "tuple", "set", "frozenset"} else None
        if isinstance(value, DictVal):
            return None if name == "builtins.dict" else False
        return False if isinstance(value, (Const, Array, FuncVal)) else None
    if name in ARRAYS or name in HOST_ARRAYS:
        if isinstance(value, Array):
            return True if isinstance(value, HostArray) is (name in HOST_ARRAYS) else None
        return False if isinstance(value, (Const, Seq, DictVal, FuncVal)) else None
    if name.partition(".")[0] in NUMERIC and isinstance(value, (Seq, DictVal, FuncVal)):
        return False
    return None


def is_instance(value: Value, wanted: Value) -> bool | None:
    """The result of ``isinstance``; for what only an annotation vouches for it is not known."""
    if any(isinstance(option, Obj) and option.assumed for option in options(value)):
        return None
    verdicts = {fits(option, wanted) for option in options(value)}
    return verdicts.pop() if len(verdicts) == 1 else None


def restrict(value: Value, keep: Callable[[Value], bool]) -> Value:
    """The value without the options that are not to be kept."""
    rest = [option for option in options(value) if keep(option)]
    return join(*rest) if rest else UNKNOWN


# -- conditions --------------------------------------------------------------------------------------------------------


def narrow(interp: Interpreter, frame: Frame, test: ast.expr, positive: bool) -> None:
    """Take what a condition says of a name into the scope of an arm."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        narrow(interp, frame, test.operand, not positive)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if positive else ast.Or):
        for value in test.values:
            narrow(interp, frame, value, positive)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        _narrow_same(interp, frame, test, positive)
    elif isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and len(test.args) == 2:
        if test.func.id == "isinstance":
            _narrow_instance(interp, frame, test, positive)
    elif positive:
        _replace(frame, test, there)


def asks_for_part(frame: Frame, test: ast.expr) -> bool | None:
    """Whether a condition holds just where an object is there (``True``), or just where it is not: an attribute, or a
    name for it, that is ``None`` in some models. ``None`` for all other conditions.
    """
    if isinstance(test, ast.Compare):
        comparator = test.comparators[0]
        if len(test.ops) > 1 or not (isinstance(comparator, ast.Constant) and comparator.value is None):
            return None
        positive, asked = isinstance(test.ops[0], ast.IsNot), test.left
        if not positive and not isinstance(test.ops[0], ast.Is):
            return None
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        positive, asked = False, test.operand
    else:
        positive, asked = True, test
    return positive if isinstance(_optional(frame, asked), Obj) else None


def _optional(frame: Frame, node: ast.expr) -> Value | None:
    """What a name or an attribute of one is where it is not ``None``, if it may be that."""
    name = node.value if isinstance(node, ast.Attribute) else node
    found = frame.env.lookup(name.id) if isinstance(name, ast.Name) else None
    value = found[1] if found is not None else None
    if isinstance(node, ast.Attribute):
        attr = attribute_of(value, node.attr) if isinstance(value, Obj) else None
        value = attr.value if attr is not None else None
    return present(value) if isinstance(value, UnionVal) else None


def _replace(frame: Frame, node: ast.expr, change: Callable[[Value], Value]) -> None:
    """Change what a name stands for, or the target of an assignment expression."""
    name = node.target.id if isinstance(node, ast.NamedExpr) else node.id if isinstance(node, ast.Name) else None
    found = frame.env.lookup(name) if name is not None else None
    if name is not None and found is not None:
        frame.env.names[name] = change(found[1])


def there(value: Value) -> Value:
    """What a value is where it is not ``None``."""
    return given(present(value))


def settled(test: ast.expr, arm: ast.expr, value: Value, positive: bool) -> Value:
    """What an arm of an expression is that reads the very attribute of which the test asks whether it is there:
    ``self.width if self.width is not None else width``.
    """
    asked = test
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and is_none(test.comparators[0]):
        asked, positive = test.left, positive is isinstance(test.ops[0], ast.IsNot)
    read = isinstance(arm, ast.Attribute) and isinstance(asked, ast.Attribute) and dumped(arm) == dumped(asked)
    return there(value) if read and positive else value


def _narrow_same(interp: Interpreter, frame: Frame, test: ast.Compare, positive: bool) -> None:
    comparator = test.comparators[0]
    same = isinstance(test.ops[0], (ast.Is, ast.Eq))
    if not same and not isinstance(test.ops[0], (ast.IsNot, ast.NotEq)):
        return
    if isinstance(comparator, ast.Constant) and comparator.value is None:
        _replace(frame, test.left, (lambda value: NONE) if same is positive else there)
    elif isinstance(comparator, (ast.Name, ast.Attribute)):
        _replace(frame, test.left, lambda value: _same_class(interp, frame, value, comparator, same is positive))


def _same_class(interp: Interpreter, frame: Frame, value: Value, asked: ast.expr, positive: bool) -> Value:
    """What a value is where it is a certain class, or is not: ``if norm is nnx.BatchNorm:``."""
    from nnx_lint.model.expressions import evaluate

    if not any(isinstance(option, ClassVal) for option in options(value)):
        return value
    wanted = evaluate(interp, frame, asked)
    if not isinstance(wanted, ClassVal):
        return value
    return restrict(value, lambda option: not isinstance(option, ClassVal) or (option.cls is wanted.cls) is positive)


def _narrow_instance(interp: Interpreter, frame: Frame, test: ast.Call, positive: bool) -> None:
    from nnx_lint.model.expressions import evaluate

    wanted = evaluate(interp, frame, test.args[1])
    _replace(
        frame,
        test.args[0],
        lambda value: _instances(interp, frame, value, wanted) if positive else _others(value, wanted),
    )


def _instances(interp: Interpreter, frame: Frame, value: Value, wanted: Value) -> Value:
    # An object that only an annotation knows came from somewhere: which trace level it belongs to is not known, so what
    # another annotation or nothing at all says of it is not replaced by the type that is asked for. That it is some
    # Variable, or an object with Variables, is enough to know what its attributes mean.
    known = restrict(value, lambda option: fits(option, wanted) is not False)
    if not isinstance(known, Unknown):
        return known
    if are_variables(wanted):
        return SOME_VARIABLE
    is_module = isinstance(wanted, ClassVal) and wanted.cls.is_pytree and not wanted.cls.is_open
    return PartVal(interp.instance(wanted.cls, frame.level)) if is_module and isinstance(wanted, ClassVal) else known


def are_variables(wanted: Value) -> bool:
    """Whether all instances of a type, or of those in a tuple, are Variables with the attributes of the library."""
    if isinstance(wanted, (Seq, UnionTypeVal)):
        members = wanted.items if isinstance(wanted, Seq) else wanted.members
        return bool(members) and all(map(are_variables, members))
    if not isinstance(wanted, ClassVal) or not wanted.cls.is_variable or wanted.cls.is_open:
        return False
    return not isinstance(wanted.cls, UserClass) or wanted.cls.find("value") is None


def _others(value: Value, wanted: Value) -> Value:
    return restrict(value, lambda option: fits(option, wanted) is not True)


# -- patterns ----------------------------------------------------------------------------------------------------------


def match(interp: Interpreter, frame: Frame, pattern: ast.pattern, value: Value) -> Value:
    """What a value is where a pattern takes it; names in the pattern are bound."""
    if isinstance(pattern, ast.MatchAs):
        taken = match(interp, frame, pattern.pattern, value) if pattern.pattern is not None else value
        if pattern.name is not None:
            frame.env.names[pattern.name] = taken
        return taken
    if isinstance(pattern, ast.MatchClass):
        return _match_class(interp, frame, pattern, value)
    if isinstance(pattern, ast.MatchSingleton) and pattern.value is None:
        return NONE
    if isinstance(pattern, ast.MatchOr):
        names = dict(frame.env.names)
        taken = join(*(match(interp, frame, item, value) for item in pattern.patterns))
        for name in frame.env.names.keys() - names.keys() | {
            name for name in names if frame.env.names.get(name) is not names[name]
        }:
            frame.env.names[name] = UNKNOWN
        return taken
    _bind_parts(interp, frame, pattern, value)
    return value


def cases(interp: Interpreter, frame: Frame, node: ast.Match, subject: Value) -> tuple[list[ast.match_case], bool]:
    """The cases that a value may come to, and whether nothing goes past the last of them."""
    possible: list[ast.match_case] = []
    for each in node.cases:
        verdict = _takes(interp, frame, each.pattern, subject)
        if verdict is not False:
            possible.append(each)
        if verdict and each.guard is None:
            return possible, True
    return possible, False


def _takes(interp: Interpreter, frame: Frame, pattern: ast.pattern, value: Value) -> bool | None:
    """Whether a pattern takes a value; ``None`` where that is not known."""
    from nnx_lint.model.expressions import evaluate, truth

    if isinstance(pattern, ast.MatchAs):
        return True if pattern.pattern is None else _takes(interp, frame, pattern.pattern, value)
    if isinstance(pattern, ast.MatchOr):
        return _any(_takes(interp, frame, item, value) for item in pattern.patterns)
    if isinstance(pattern, ast.MatchSingleton) and isinstance(value, Const) and not isinstance(value, Computed):
        return value.value is pattern.value
    if isinstance(pattern, ast.MatchValue):
        asked = evaluate(interp, frame, pattern.value)
        same = arithmetic.compared(ast.Eq(), value, asked)
        if same is None and isinstance(value, Const) and isinstance(asked, Const):
            return False if isinstance(value.value, str) is not isinstance(asked.value, str) else None
        return truth(same) if same is not None else None
    if isinstance(pattern, ast.MatchClass):
        return False if is_instance(value, evaluate(interp, frame, pattern.cls)) is False else None
    taken_apart = isinstance(pattern, (ast.MatchMapping, ast.MatchSequence))
    return False if taken_apart and isinstance(value, Const) else None


def _match_class(interp: Interpreter, frame: Frame, pattern: ast.MatchClass, value: Value) -> Value:
    from nnx_lint.model.attributes import get_attribute
    from nnx_lint.model.expressions import evaluate

    taken = _instances(interp, frame, value, evaluate(interp, frame, pattern.cls))
    for part in pattern.patterns:
        match(interp, frame, part, UNKNOWN)
    for name, part in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
        match(interp, frame, part, get_attribute(interp, frame, taken, name, pattern))
    return taken


def _bind_parts(interp: Interpreter, frame: Frame, pattern: ast.pattern, value: Value) -> None:
    from nnx_lint.model.elements import element_of

    if isinstance(pattern, ast.MatchSequence):
        count = len(pattern.patterns)
        elements = [element_of(value, frame.level)] * count
        starred = any(isinstance(part, ast.MatchStar) for part in pattern.patterns)
        if isinstance(value, Seq) and value.exact and len(value.items) == count and not starred:
            elements = value.items
        for part, element in zip(pattern.patterns, elements, strict=True):
            match(interp, frame, part, element)
    elif isinstance(pattern, ast.MatchMapping):
        for part in pattern.patterns:
            match(interp, frame, part, UNKNOWN)
    name = getattr(pattern, "rest", None) or (pattern.name if isinstance(pattern, ast.MatchStar) else None)
    if isinstance(name, str):
        frame.env.names[name] = UNKNOWN
