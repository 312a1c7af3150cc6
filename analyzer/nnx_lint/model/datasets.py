"""Data for examples: what functions of scikit-learn return that make, load, split or scale data.

Beginners' programs and notebooks begin with these, and everything after them has the shapes that they give.

Invariants: the first axis is the examples; how many a split gives is not known. Floating point is of no dtype here,
since it depends on the data; labels of classes are integers.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.model.containers import Seq
from nnx_lint.model.forms import literal, plain
from nnx_lint.model.states import ForeignVal
from nnx_lint.model.values import UNKNOWN, Array, Const, HostArray, Value
from nnx_rules.shapes import UNKNOWN as ANY_NUMBER
from nnx_rules.shapes import Form

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable

    from nnx_lint.model.callables import BoundMethod
    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter
    from nnx_rules.shapes import Dimension

    Handler = Callable[[Interpreter, Frame, Arguments, ast.AST, str], Value]

CLASSES = "int64"

_MADE: dict[str, tuple[int, str | None]] = {
    "make_blobs": (2, CLASSES),
    "make_circles": (2, CLASSES),
    "make_classification": (20, CLASSES),
    "make_friedman1": (10, None),
    "make_moons": (2, CLASSES),
    "make_regression": (100, None),
}
"""Functions that make data: how many features each example has by default, and the dtype of the targets."""

_LOADED: dict[str, tuple[tuple[int, int], str | None]] = {
    "fetch_california_housing": ((20640, 8), None),
    "load_breast_cancer": ((569, 30), CLASSES),
    "load_diabetes": ((442, 10), None),
    "load_digits": ((1797, 64), CLASSES),
    "load_iris": ((150, 4), CLASSES),
    "load_wine": ((178, 13), CLASSES),
}
"""Data sets: the shape of the data, and the dtype of the targets."""

_SCALERS = ("MaxAbsScaler", "MinMaxScaler", "RobustScaler", "StandardScaler")
SCALERS = frozenset(f"sklearn.preprocessing.{name}" for name in _SCALERS)
"""Classes that give data back in other units."""

SCALING = frozenset({"fit", "fit_transform", "inverse_transform", "transform"})
"""Their methods that do so, and the one that only looks at the data and gives the object back."""

_OTHERWISE = frozenset({"as_frame", "coef", "n_class", "n_targets", "return_X_y", "return_centers", "**"})
"""Arguments by which there are other results, or results of another shape."""


def _pair(shape: tuple[Dimension, Dimension], dtype: str | None, level: int) -> Value:
    data, targets = HostArray(level, Form(shape)), HostArray(level, Form(shape[:1], dtype))
    return Seq("tuple", [data, targets], level)


def _count(value: Value | None, default: int) -> Dimension:
    """A number of examples or features; of examples there may be one number for each class."""
    given = plain(value) if value is not None else default
    return given if isinstance(given, int) and not isinstance(given, bool) else ANY_NUMBER


def _make(made: str, interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """``make_moons(n_samples=200)``"""
    features, dtype = _MADE[made]
    if args.starred or not _OTHERWISE.isdisjoint(args.keywords):
        return UNKNOWN
    wide = features if made in {"make_circles", "make_moons"} else _count(args.get(1, "n_features"), features)
    return _pair((_count(args.get(0, "n_samples"), 100), wide), dtype, frame.level)


def _load(loaded: str, interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """``load_iris(return_X_y=True)``, or a record: ``load_iris().data``"""
    shape, dtype = _LOADED[loaded]
    pair = _pair(shape, dtype, frame.level)
    asked = args.keywords.get("return_X_y")
    if args.starred or args.positional or not isinstance(pair, Seq):
        return UNKNOWN
    if args.keywords.keys() == {"return_X_y"} and isinstance(asked, Const) and asked.value is True:
        return pair
    return ForeignVal(loaded, dict(zip(("data", "target"), pair.items, strict=True))) if not args.keywords else UNKNOWN


def _split(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """``train_test_split(x, y)``: of each array, first the examples to train on, then the others."""
    if args.starred or None in args.positional:
        return UNKNOWN
    parts = [_of_some(value, frame.level) for value in args.positional for _ in range(2)]
    return Seq("list", parts, frame.level)


def _of_some(value: Value | None, level: int) -> Value:
    """Some of the examples of an array."""
    shape = literal(value).shape
    if not isinstance(value, Array) or not shape:
        return UNKNOWN
    form = Form((ANY_NUMBER, *shape[1:]), literal(value).dtype)
    return HostArray(level, form) if isinstance(value, HostArray) else Array(level, form)


def _scaler(made: str, interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    return ForeignVal(made)


def scaled(method: BoundMethod, args: Arguments, level: int) -> Value:
    """What a method of a scaler gives for data."""
    if method.name == "fit":
        return method.receiver
    shape = literal(args.get(0, "X")).shape
    return HostArray(level, Form(shape)) if shape is not None and not args.starred else UNKNOWN


HANDLERS: dict[str, Handler] = {
    **{f"sklearn.datasets.{name}": partial(_make, name) for name in _MADE},
    **{f"sklearn.datasets.{name}": partial(_load, name) for name in _LOADED},
    **{name: partial(_scaler, name) for name in SCALERS},
    "sklearn.model_selection.train_test_split": _split,
}
"""What makes data, by canonical name."""
