"""``capture``: run a function and return what its modules sow or perturb, leaving nothing behind.

While a capture runs, every module below its root has one Variable more for each type that it takes, with a dictionary
as value: ``sow`` and ``perturb`` write their entries there. So the structure of the modules is the same all the time,
and what is recorded inside of a transform comes back as any value does, also where structure does not. The Variables
are removed whether the function returns or raises.
"""

from __future__ import annotations

import functools
import inspect
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from nnxkit._facts import describe
from nnxkit._graph import iter_graph
from nnxkit._pytree import Pytree
from nnxkit._state import from_flat_state, to_flat_state
from nnxkit._variable import Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class _Capture:
    """One running capture: the types that it takes, each with the attribute of its record, and the modules that
    recorded without having been prepared.
    """

    def __init__(self, level: int, types: tuple[type[Variable[Any]], ...]) -> None:
        self.attributes = {
            cls: f"__captured_{cls.__name__}_{level}_{number}__" for number, cls in enumerate(dict.fromkeys(types))
        }
        self.modules: dict[int, Pytree] = {}

    def prepare(self, module: Pytree) -> None:
        """Give a module its empty records."""
        for cls, attribute in self.attributes.items():
            setattr(module, attribute, cls({}))

    def record(self, module: Pytree, cls: type[Variable[Any]]) -> Variable[Any]:
        """The record of a module for a type; a module that was made meanwhile gets one now."""
        found = vars(module).get(self.attributes[cls])
        if found is None:
            self.prepare(module)
            self.modules[id(module)] = module
            found = vars(module)[self.attributes[cls]]
        assert isinstance(found, Variable)
        return found


class _Capturing(threading.local):
    def __init__(self) -> None:
        self.stack: list[_Capture] = []


_CAPTURING = _Capturing()


def is_capturing() -> bool:
    """Whether a capture runs."""
    return bool(_CAPTURING.stack)


def record_of(module: Pytree, variable_type: type[Variable[Any]]) -> Variable[Any] | None:
    """The Variable whose dictionary gets what ``module`` records now; ``None`` when no running capture takes the type.

    Raises:
        TraceContextError: the module belongs to another trace level, and has no record yet.
    """
    for capture in reversed(_CAPTURING.stack):
        if variable_type in capture.attributes:
            return capture.record(module, variable_type)
    return None


def capture(
    fn: Callable[..., Any],
    *var_types: type[Variable[Any]],
    init: Any = None,
    method_outputs: type[Variable[Any]] | None = None,
) -> Callable[..., Any]:
    """Wrap ``fn`` so that it returns ``(out, *states)``: beside its result one State for each Variable type, with
    what was recorded.

    Args:
        fn: a module, a method of a module, or a function whose first argument is the module.
        *var_types: the exact types to take; without any, the wrapper returns only the result.
        init: a State of Perturbations (or other Variables) that the call shall find.
        method_outputs: also record the outputs of all methods, as Variables of this type.

    Raises:
        TypeError: one of ``var_types`` is no Variable type.

    >>> import nnxkit as nnx
    >>> class Double(nnx.Module):
    ...     def __call__(self, x):
    ...         self.sow(nnx.Intermediate, "x", x)
    ...         return 2 * x
    >>> out, state = nnx.capture(Double(), nnx.Intermediate)(3)
    >>> out, state["x"].get_value()
    (6, (3,))
    """
    given: Any
    for given in var_types:
        if not (isinstance(given, type) and issubclass(given, Variable)):
            raise TypeError(f"nnx.capture takes Variable types, such as nnx.Intermediate, and got {describe(given)}")
    target: Any = fn
    bound = target if isinstance(target, Pytree) else getattr(fn, "__self__", None)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        root = bound if isinstance(bound, Pytree) else args[0] if args else None
        if not var_types and init is None:
            return fn(*args, **kwargs)
        initial = [] if init is None else list(to_flat_state(init))
        running = _Capture(len(_CAPTURING.stack), (*var_types, *(type(variable) for _, variable in initial)))
        _CAPTURING.stack.append(running)
        try:
            for module in _modules(root):
                if module._pytree__state.is_valid():
                    running.prepare(module)
            for path, variable in initial:
                record = running.record(_follow(root, path[:-1]), type(variable))
                record.set_value({**record.get_value(), path[-1]: variable.get_value()})
            with _recording_outputs(root, method_outputs):
                out = fn(*args, **kwargs)
        finally:
            _CAPTURING.stack.pop()
            recorded = list(_take(root, running))
            for module in running.modules.values():  # those that are not below the root, and not of a finished trace
                if module._pytree__state.is_valid():
                    list(_take(module, running))
        return (out, *(_state(recorded, cls) for cls in var_types)) if var_types else out

    return wrapper if target is bound else functools.wraps(fn)(wrapper)


def _follow(root: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        root = getattr(root, key) if isinstance(key, str) and isinstance(root, Pytree) else root[key]
    return root


def _state(recorded: list[tuple[tuple[Any, ...], Variable[Any]]], cls: type[Variable[Any]]) -> Any:
    return from_flat_state([(path, variable) for path, variable in recorded if type(variable) is cls])


def _modules(root: Any) -> list[Pytree]:
    from nnxkit._module import Module

    return [node for _, node in iter_graph(root) if isinstance(node, Module)]


def _take(root: Any, capture: _Capture) -> Iterator[tuple[tuple[Any, ...], Variable[Any]]]:
    """Remove the records below ``root``; what is in them, with the paths that it has in a State."""
    nodes = [(path, node) for path, node in iter_graph(root) if isinstance(node, Pytree)]
    for path, node in nodes:
        for cls, attribute in capture.attributes.items():
            record = vars(node).get(attribute)
            if record is not None:
                delattr(node, attribute)
                yield from (((*path, name), cls(value)) for name, value in record.get_value().items())


@contextmanager
def _recording_outputs(root: Any, variable_type: type[Variable[Any]] | None) -> Iterator[None]:
    """Let the methods of all classes below ``root`` sow their outputs."""
    from nnxkit._module import Module

    patched: list[tuple[type, str, Any]] = []
    if variable_type is not None:
        classes = {cls for node in _modules(root) for cls in type(node).__mro__ if issubclass(cls, Module)} - {Module}
        for cls in classes:
            for name, function in list(vars(cls).items()):
                if inspect.isfunction(function) and (name == "__call__" or not name.startswith("_")):
                    patched.append((cls, name, function))
                    setattr(cls, name, _recording(function, name, variable_type))
    try:
        yield
    finally:
        for cls, name, function in patched:
            setattr(cls, name, function)


def _recording(function: Callable[..., Any], name: str, variable_type: type[Variable[Any]]) -> Callable[..., Any]:
    @functools.wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = function(self, *args, **kwargs)
        if is_capturing():
            self.sow(variable_type, name, out)
        return out

    return method
