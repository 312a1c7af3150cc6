"""``capture``: run a function and return what its modules sow or perturb, leaving nothing behind.

While a capture runs, ``sow`` and ``perturb`` write attributes with a name of their own (the level of the capture,
then the sown name), so that they meet no attribute of the module, travel through transforms like any other
attribute, and can be told apart at the end. They are removed whether the function returns or raises.
"""

from __future__ import annotations

import functools
import inspect
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from nnxkit._graph import iter_graph
from nnxkit._pytree import Pytree
from nnxkit._state import from_flat_state, to_flat_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nnxkit._variable import Variable


class _Capture:
    """One running capture: the prefix of its attributes, the types that it takes, the modules that recorded."""

    def __init__(self, level: int, types: frozenset[type]) -> None:
        self.prefix = f"__captured_{level}__"
        self.types = types
        self.modules: dict[int, Pytree] = {}


class _Capturing(threading.local):
    def __init__(self) -> None:
        self.stack: list[_Capture] = []


CAPTURING = _Capturing()


def attribute_for(module: Pytree, name: str, variable_type: type) -> str | None:
    """The attribute of ``module`` into which ``name`` is recorded now.

    ``None`` when captures run and none of them takes the type.
    """
    if not CAPTURING.stack:
        return name
    for capture in reversed(CAPTURING.stack):
        if variable_type in capture.types:
            capture.modules[id(module)] = module
            return capture.prefix + name
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

    >>> import nnxkit as nnx
    >>> class Double(nnx.Module):
    ...     def __call__(self, x):
    ...         self.sow(nnx.Intermediate, "x", x)
    ...         return 2 * x
    >>> out, state = nnx.capture(Double(), nnx.Intermediate)(3)
    >>> out, state["x"].get_value()
    (6, (3,))
    """
    target: Any = fn
    bound = target if isinstance(target, Pytree) else getattr(fn, "__self__", None)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        root = bound if isinstance(bound, Pytree) else args[0] if args else None
        if not var_types and init is None:
            return fn(*args, **kwargs)
        initial = [] if init is None else _leaves(init)
        types = frozenset(var_types) | {type(variable) for _, variable in initial}
        running = _Capture(len(CAPTURING.stack), types)
        CAPTURING.stack.append(running)
        try:
            for path, variable in initial:
                setattr(_follow(root, path[:-1]), running.prefix + str(path[-1]), variable)
            with _recording_outputs(root, method_outputs):
                out = fn(*args, **kwargs)
        finally:
            CAPTURING.stack.pop()
            recorded = list(_take(root, running.prefix))
            for module in running.modules.values():  # those that are not below the root, and not of a finished trace
                if module._pytree__state.is_current():
                    list(_take(module, running.prefix))
        return (out, *(_state(recorded, cls) for cls in var_types)) if var_types else out

    return wrapper if target is bound else functools.wraps(fn)(wrapper)


def _leaves(state: Any) -> list[tuple[tuple[Any, ...], Variable[Any]]]:
    return list(to_flat_state(state))


def _follow(root: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        root = getattr(root, key) if isinstance(key, str) and isinstance(root, Pytree) else root[key]
    return root


def _state(recorded: list[tuple[tuple[Any, ...], Variable[Any]]], cls: type[Variable[Any]]) -> Any:
    return from_flat_state([(path, variable) for path, variable in recorded if type(variable) is cls])


def _nodes(root: Any) -> list[tuple[tuple[Any, ...], Pytree]]:
    return [(path, node) for path, node in iter_graph(root) if isinstance(node, Pytree)]


def _take(root: Any, prefix: str) -> Iterator[tuple[tuple[Any, ...], Variable[Any]]]:
    """Remove the recorded attributes below ``root``, with the paths that they have in a State."""
    for path, node in _nodes(root):
        for attribute in [name for name in vars(node) if name.startswith(prefix)]:
            variable = vars(node)[attribute]
            delattr(node, attribute)
            yield (*path, attribute.removeprefix(prefix)), variable


@contextmanager
def _recording_outputs(root: Any, variable_type: type[Variable[Any]] | None) -> Iterator[None]:
    """Let the methods of all classes below ``root`` sow their outputs."""
    from nnxkit._module import Module

    patched: list[tuple[type, str, Any]] = []
    if variable_type is not None:
        classes = {cls for _, node in _nodes(root) for cls in type(node).__mro__ if issubclass(cls, Module)} - {Module}
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
        if CAPTURING.stack:
            self.sow(variable_type, name, out)
        return out

    return method
