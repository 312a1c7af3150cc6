"""How a file spells a name of the library, so that a fix writes what is in scope there.

Invariants: only names that certainly are bound to the library where the fix goes are used; a fix adds no import. A file
that imports single names (``from flax.nnx import Module``) gets no fix that needs another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.classes import LibClass
from nnx_lint.model.values import ClassVal, Ext

if TYPE_CHECKING:
    from nnx_lint.model.modules import Env, Module
    from nnx_lint.model.values import Value


def spelled(canonical: str, module: Module, env: Env | None = None) -> str | None:
    """How to write a library name in a scope of a module: ``nnx.List`` may be ``nnx.List``, ``nn.List`` or ``List``.

    Args:
        canonical: the canonical name, such as ``nnx.List`` or ``dataclasses.field``.
        module: the file that the fix is for.
        env: the scope that it goes to; the global one by default.
    """
    scope = env if env is not None else module.env
    packages = _packages(canonical, module)
    direct: str | None = None
    through: list[str] = []
    current: Env | None = scope
    while current is not None:
        for name, value in current.names.items():
            rest = packages.get(value.name) if isinstance(value, Ext) else None
            if rest is None and not _is(value, canonical):
                continue
            found = scope.lookup(name)
            if found is None or found[1] is not value:
                continue
            if rest is not None:
                through.append(name + rest)
            elif direct is None:
                direct = name
        current = current.parent
    # `jnp.array` rather than `jax.numpy.array`; of equals the first one that the file binds.
    return min(through, key=lambda text: text.count("."), default=direct)


def _packages(canonical: str, module: Module) -> dict[str, str]:
    """Packages through which the name can be reached, with the rest of the way."""
    parts = canonical.split(".")
    packages = {".".join(parts[:place]): "." + ".".join(parts[place:]) for place in range(len(parts) - 1, 0, -1)}
    if parts[0] == "nnx" and module.provider == "flax" and module.mentions("import flax.nnx"):
        packages["flax"] = f".{canonical}"
    return packages


def _is(value: Value, canonical: str) -> bool:
    if isinstance(value, ClassVal):
        return isinstance(value.cls, LibClass) and value.cls.canonical == canonical
    return isinstance(value, Ext) and value.name == canonical
