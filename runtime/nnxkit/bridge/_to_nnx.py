"""``ToNNX``: a Linen module as an NNX module.

A Linen module has its variables outside of itself. Here they are attributes, under the names that they have there: a
variable at the top is a Variable, what is below a submodule is in nested dictionaries. They are made by the first call
under `lazy_init`.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import jax
from flax import linen  # noqa: TID253 - see the package

from nnxkit._annotations import data, static
from nnxkit._module import Module
from nnxkit._rngs import Rngs
from nnxkit._state import to_flat_state
from nnxkit._variable import Variable
from nnxkit.bridge._variables import collection_of, leaves_of, to_collections, to_nnx_var

M = TypeVar("M")
_OWN = "to_nnx__"
"""How the names of attributes begin that are no variables of the Linen module."""


class _Lazy(threading.local):
    def __init__(self) -> None:
        self.is_initializing = False


_lazy = _Lazy()


@contextmanager
def _initializing() -> Iterator[None]:
    before, _lazy.is_initializing = _lazy.is_initializing, True
    try:
        yield
    finally:
        _lazy.is_initializing = before


def lazy_init(fn: M, *args: Any, **kwargs: Any) -> M:
    """Call a module, or a method of one, so that all `ToNNX` below make their variables.

    Args:
        fn: the module, or the method.
        args: arguments of the call.
        kwargs: arguments of the call.

    Returns:
        the module.
    """
    function: Any = fn
    with _initializing():
        function(*args, **kwargs)
    owner: Any = fn if isinstance(fn, Module) else getattr(function, "__self__", fn)
    return owner  # type: ignore[no-any-return]


class ToNNX(Module):
    """A Linen module as an NNX module.

    Attributes other than ``to_nnx__module`` and ``to_nnx__rngs`` are the variables of the Linen module, once there
    are any; methods of it are methods of this.

    Args:
        module: the Linen module.
        rngs: streams for its keys, by the names that it asks for; they are forked. A key makes streams, too.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> from flax import linen
    >>> model = nnx.bridge.ToNNX(linen.Dense(3), rngs=nnx.Rngs(0)).lazy_init(jnp.ones((1, 2)))
    >>> model(jnp.ones((1, 2))).shape, model.kernel.shape
    ((1, 3), (2, 3))
    """

    def __init__(self, module: linen.Module, rngs: Rngs | jax.Array | None = None) -> None:
        self.to_nnx__module: Any = static(module)
        own = rngs.fork() if isinstance(rngs, Rngs) else Rngs(rngs) if isinstance(rngs, jax.Array) else rngs
        self.to_nnx__rngs: Rngs | None = data(own)

    def lazy_init(self, *args: Any, **kwargs: Any) -> ToNNX:
        """The same as ``nnx.bridge.lazy_init`` of this."""
        return lazy_init(self, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        module = vars(self).get("to_nnx__module")
        method = getattr(type(module), name, None)
        if name.startswith("_") or module is None or method is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return _Method(self, name) if callable(method) else getattr(module, name)

    def __call__(
        self,
        *args: Any,
        rngs: Rngs | Mapping[str, Any] | None = None,
        method: Any = None,
        mutable: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Call the Linen module.

        Args:
            args: its arguments.
            rngs: streams or keys for this call.
            method: another method.
            mutable: collections that the call may write, as ``linen.Module.apply`` takes it; what is written comes
                into the Variables.
            kwargs: its arguments.
        """
        keys = _keys(self.to_nnx__rngs if rngs is None else rngs)
        module: Any = self.to_nnx__module
        if _lazy.is_initializing:
            out, written = module.init_with_output(keys, *args, method=method, **kwargs)
        else:
            options = {"rngs": keys, "method": method, "mutable": False if mutable is None else mutable}
            out = module.apply(self._collections(), *args, **options, **kwargs)
            if not options["mutable"]:
                return out
            out, written = out
        self._write(written)
        return out

    def _variables(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith((_OWN, "_"))}

    def _collections(self) -> dict[str, Any]:
        leaves = to_flat_state(_as_nested(self._variables()))
        return to_collections((path, collection_of(leaf), leaf.get_raw_value()) for path, leaf in leaves)

    def _write(self, collections: Mapping[str, Any]) -> None:
        """Put variables into the attributes: into the Variables that are there, else new ones."""
        top = self._variables()
        for path, collection, value in leaves_of(collections):
            new, node = to_nnx_var(collection, value), top
            for key in path[:-1]:
                node = node.setdefault(key, {})
            old = node.get(path[-1])
            if isinstance(old, Variable):
                old.set_value(new.get_raw_value())
            else:
                node[path[-1]] = new
        for name, value in top.items():
            if vars(self).get(name) is not value or isinstance(value, dict):
                setattr(self, name, data(value))


class _Method:
    """A method of a Linen module, bound to its `ToNNX`."""

    def __init__(self, owner: ToNNX, name: str) -> None:
        self.__self__ = owner
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__self__(*args, method=self.__name__, **kwargs)


def _as_nested(tree: Mapping[str, Any]) -> dict[Hashable, Any]:
    return {key: _as_nested(value) if isinstance(value, Mapping) else value for key, value in tree.items()}


def _keys(rngs: Rngs | Mapping[str, Any] | None) -> dict[str, Any]:
    """One key for each stream, by its name; Linen's name for the default stream is ``params``."""
    if not isinstance(rngs, Rngs):
        return dict(rngs or {})
    keys = {name: stream() for name, stream in rngs.items()}
    if "default" in keys:
        keys.setdefault("params", keys.pop("default"))
    return keys
