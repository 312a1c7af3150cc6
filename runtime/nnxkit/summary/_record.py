"""What happens when a model is called: which methods of which modules, with what, returning what.

The call is traced with abstract values, on a copy of the model, while the methods of its classes are replaced by ones
that take notes. A module carries its path with it in a static attribute, since transforms work on copies: so calls
inside of ``nnx.jit`` or ``nnx.scan`` are noted, too. To count operations, each call is traced under a `nnx.jit` of its
own, whose part of the whole program is found by its name afterwards. So every method runs once.

Invariants

- The classes are as before when the trace has ended, however it ends; one trace at a time replaces methods.
- Code of other threads, and objects that are not part of the copy, go through the replaced methods unnoticed.
- Two calls of one method with arguments that look the same are one.
"""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax

from nnx_rules.records import Record
from nnxkit._containers import Dict, List
from nnxkit._graph import clone, iter_graph
from nnxkit._module import Module
from nnxkit._pytree import Object, Pytree
from nnxkit._rngs import Rngs, RngStream
from nnxkit._state._order import Path
from nnxkit._transforms import jit, make_jaxpr
from nnxkit._variable import Variable
from nnxkit.summary._show import arguments

if TYPE_CHECKING:
    from jax.extend.core import ClosedJaxpr

_MARK = "_nnx_summary"
_ROW = "nnx_summary_"
_HOLE = object()
_LIBRARY = (Module, Object, Pytree, List, Dict, object)


class CallInfo(Record):
    """A call of a method of a module.

    Attributes:
        call_order: how many calls began before it.
        object_id: tells modules apart.
        type: class of the module.
        path: path of the module, and after it the name of the method if it is not ``__call__``.
        inputs_repr: the arguments, as they are shown.
        outputs: the result, with ``jax.ShapeDtypeStruct`` in the place of arrays.
        flops: how many floating point operations the call takes, if they were counted.
        vjp_flops: how many it takes with its derivative, if they were counted.
    """

    call_order: int
    object_id: int
    type: type
    path: Path
    inputs_repr: str
    outputs: Any
    flops: int | None = None
    vjp_flops: int | None = None


class Recording(Record):
    """The calls, and the modules of the copy by their paths."""

    calls: Sequence[CallInfo]
    nodes: Mapping[Path, Any]

    def node_of(self, call: CallInfo) -> tuple[Path, Any]:
        """The module of a call, and its path."""
        path = call.path if call.path in self.nodes else call.path[:-1]
        return path, self.nodes[path]


def record(
    obj: Any, method: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, flops: bool, vjp_flops: bool
) -> Recording:
    """Call a method with abstract values and note the calls that it makes.

    Args:
        obj: the model, concrete or abstract.
        method: name of the method.
        args: its arguments; arrays may be ``jax.ShapeDtypeStruct``.
        kwargs: its keyword arguments.
        flops: whether to count the operations of each call.
        vjp_flops: whether to count those of each call with its derivative.
    """
    # Marks make layers differ that were alike, and a model may rely on that: it stacks them, say.
    with contextlib.suppress(Exception):
        return _record(obj, method, args, kwargs, flops, vjp_flops, distinct=True)
    return _record(obj, method, args, kwargs, flops, vjp_flops, distinct=False)


def _record(
    obj: Any,
    method: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    flops: bool,
    vjp_flops: bool,
    *,
    distinct: bool,
) -> Recording:
    recorder = _Recorder(measures=flops or vjp_flops)
    model = clone(obj)
    for path, node in iter_graph(model):
        if isinstance(node, Pytree) and not isinstance(node, List | Dict):
            vars(node)[_MARK] = _Mark(recorder, path, distinct)  # around a `__setattr__` of the class
            node._pytree__nodes[_MARK] = False
            recorder.nodes[path] = node
    leaves, tree = jax.tree.flatten((tuple(args), dict(kwargs)), is_leaf=_is_node)
    dynamic = [index for index, leaf in enumerate(leaves) if _is_dynamic(leaf)]

    def run(model: Any, *values: Any) -> Any:
        given = list(leaves)
        for index, value in zip(dynamic, values, strict=True):
            given[index] = value
        inner_args, inner_kwargs = jax.tree.unflatten(tree, given)
        getattr(model, method)(*inner_args, **inner_kwargs)

    with _replaced({type(node) for node in recorder.nodes.values()}), _using(recorder):
        program = make_jaxpr(run)(model, *[leaves[index] for index in dynamic])
    parts = _parts(program.jaxpr) if recorder.measures else {}
    calls = [
        call.replaced(
            flops=_flops(parts.get(call.call_order)) if flops else None,
            vjp_flops=_vjp_flops(parts.get(call.call_order)) if vjp_flops else None,
        )
        for call in recorder.calls
        if call is not None
    ]
    return Recording(calls, recorder.nodes)


class _Mark:
    """The path of a module, in a static attribute of it."""

    __slots__ = ("distinct", "path", "recorder")

    def __init__(self, recorder: _Recorder, path: Path, distinct: bool) -> None:
        self.recorder = recorder
        self.path = path
        self.distinct = distinct

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Mark) or self.recorder is not other.recorder:
            return False
        return self.path == other.path or not self.distinct

    def __hash__(self) -> int:
        return hash((id(self.recorder), self.path if self.distinct else None))


class _Recorder:
    """Notes of one trace."""

    def __init__(self, *, measures: bool) -> None:
        self.measures = measures
        self.nodes: dict[Path, Any] = {}
        self.calls: list[CallInfo | None] = []
        self._seen: set[tuple[Path, str]] = set()
        self._running: list[Path] = []

    def call(self, node: Any, name: str, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a method, and note it."""
        mark = vars(node).get(_MARK)
        if not isinstance(mark, _Mark) or mark.recorder is not self:
            return _bound(function, node)(*args, **kwargs)
        path = mark.path if name == "__call__" else (*mark.path, name)
        inputs = "\n".join(arguments(args, kwargs))
        again = (path, inputs) in self._seen or self._running[-1:] == [path]  # the latter: of its base class
        order = len(self.calls)
        if not again:
            self._seen.add((path, inputs))
            self.calls.append(None)
        self._running.append(path)
        try:
            if again or not self.measures or isinstance(node, Rngs | RngStream):
                result = _bound(function, node)(*args, **kwargs)
            else:
                result = _under_name(f"{_ROW}{order}", function, node, args, kwargs)
        finally:
            self._running.pop()
        if not again:
            self.calls[order] = CallInfo(
                order, id(self.nodes[mark.path]), type(node), path, inputs, jax.tree.map(_struct, result)
            )
        return result


def _bound(function: Any, node: Any) -> Any:
    return function.__get__(node, type(node))


def _under_name(name: str, function: Any, node: Any, args: Any, kwargs: Any) -> Any:
    """Call a method as a part of the program with a name of its own."""
    structure: list[tuple[Any, list[Any]]] = []

    def part() -> Any:
        leaves, tree = jax.tree.flatten(_bound(function, node)(*args, **kwargs), is_leaf=_is_node)
        structure.append((tree, [_HOLE if _is_dynamic(leaf) else leaf for leaf in leaves]))
        return [leaf for leaf in leaves if _is_dynamic(leaf)]

    part.__name__ = name
    values = iter(jit(part)())
    tree, held = structure[-1]
    return jax.tree.unflatten(tree, [next(values) if leaf is _HOLE else leaf for leaf in held])


def _is_node(value: Any) -> bool:
    return isinstance(value, Pytree | Variable)


def _is_dynamic(value: Any) -> bool:
    """Whether it is an array or holds some, and so becomes abstract."""
    return _is_node(value) or (hasattr(value, "shape") and hasattr(value, "dtype"))


def _struct(leaf: Any) -> Any:
    if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        return leaf
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)  # type: ignore[no-untyped-call]


# Replaced methods

_current: contextvars.ContextVar[_Recorder | None] = contextvars.ContextVar("nnx_summary", default=None)
_replacing = threading.RLock()


@contextlib.contextmanager
def _using(recorder: _Recorder) -> Iterator[None]:
    before = _current.set(recorder)
    try:
        yield
    finally:
        _current.reset(before)


@contextlib.contextmanager
def _replaced(classes: Iterable[type]) -> Iterator[None]:
    """Have the methods of some classes tell the current recorder."""
    with _replacing:
        undo: list[Callable[[], None]] = []
        try:
            for cls in classes:
                own = dict(vars(cls))
                for name, function in _methods(cls):
                    setattr(cls, name, _noting(name, function))
                    undo.append(_restore(cls, name, own))
            yield
        finally:
            for step in reversed(undo):
                step()


def _methods(cls: type) -> list[tuple[str, Any]]:
    """The public methods of a class, those of the library's bases left out, as they are defined."""
    names = {
        name
        for base in cls.__mro__
        if base not in _LIBRARY
        for name in vars(base)
        if name == "__call__" or not name.startswith("_")
    }
    found = [(name, inspect.getattr_static(cls, name)) for name in sorted(names)]
    return [
        (name, function)
        for name, function in found
        if callable(function)
        and hasattr(type(function), "__get__")
        and not isinstance(function, type | staticmethod | classmethod)
    ]


def _noting(name: str, function: Any) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = _current.get()
        if recorder is None:
            return _bound(function, self)(*args, **kwargs)
        return recorder.call(self, name, function, args, kwargs)

    return method


def _restore(cls: type, name: str, own: Mapping[str, Any]) -> Callable[[], None]:
    if name in own:
        return lambda: setattr(cls, name, own[name])
    return lambda: delattr(cls, name)


# Operations


def _parts(jaxpr: Any) -> dict[int, ClosedJaxpr]:
    """The parts of a program that have names of calls, by the order of the call."""
    found: dict[int, ClosedJaxpr] = {}
    for equation in jaxpr.eqns:
        name = equation.params.get("name")
        if isinstance(name, str) and name.startswith(_ROW):
            found.setdefault(int(name.removeprefix(_ROW)), equation.params["jaxpr"])
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda leaf: hasattr(leaf, "eqns")):
            if hasattr(inner, "eqns"):
                found = _parts(getattr(inner, "jaxpr", inner)) | found
    return found


def _function(part: ClosedJaxpr) -> Callable[..., Any]:
    from jax.extend.core import jaxpr_as_fun

    function: Callable[..., Any] = jaxpr_as_fun(part)
    return function


def _flops(part: ClosedJaxpr | None) -> int | None:
    return None if part is None else _cost(_function(part), *_structs(part.in_avals))


def _vjp_flops(part: ClosedJaxpr | None) -> int | None:
    if part is None:
        return None
    inputs, outputs = _structs(part.in_avals), _structs(part.out_avals)
    function = _function(part)
    smooth = [index for index, item in enumerate(inputs) if _is_smooth(item)]

    def backward(inputs: list[Any], cotangents: list[Any]) -> Any:
        def forward(*values: Any) -> list[Any]:
            given = list(inputs)
            for index, value in zip(smooth, values, strict=True):
                given[index] = value
            return [item for item in function(*given) if _is_smooth(item)]

        results, pull = jax.vjp(forward, *[inputs[index] for index in smooth])
        return results, pull(cotangents)

    return _cost(backward, inputs, [item for item in outputs if _is_smooth(item)])


def _is_smooth(value: Any) -> bool:
    return bool(jax.numpy.issubdtype(value.dtype, jax.numpy.inexact))


def _structs(avals: Iterable[Any]) -> list[Any]:
    return [_struct(aval) for aval in avals]


def _cost(function: Callable[..., Any], *arguments: Any) -> int | None:
    """Operations of a function, as XLA counts them; ``None`` on a backend that does not."""
    found: Any = jax.jit(function).lower(*arguments).cost_analysis()
    return None if found is None else int(found.get("flops", 0))
