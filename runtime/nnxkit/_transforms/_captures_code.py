"""Which globals a function can use, and whether it is anybody's business to look.

The names come from the bytecode. ``co_names`` alone will not do: it mixes the names of attributes with those of
globals. Code that is nested in the function (lambdas, comprehensions, inner functions, class bodies) runs with the
function's globals, so its names count as the function's. A name that the function only binds counts too: if it leads to
an object elsewhere, binding it is a mistake.

Globals are followed in the user's functions only. A function of the standard library, of JAX and of what is built on
it, or of an installed package that is not the package of the transformed function itself, has globals that are its own:
no user puts a model there, and walking them would end in the whole library. The cells and defaults of such functions
are another matter, because the user's objects do get there (``jax.vmap(f)`` keeps ``f`` in a cell).
"""

from __future__ import annotations

import dis
import functools
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import PurePath
from types import CodeType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

_PAST_MISSING = frozenset({"LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS", "DELETE_GLOBAL"})
_GLOBAL = _PAST_MISSING | {"LOAD_GLOBAL", "STORE_GLOBAL"}
_ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR"})

_LIBRARIES = {"flax", "jax", "jaxlib", "nnx_rules", "nnxkit", "numpy", "optax"}.union(sys.builtin_module_names)
_STDLIB = frozenset(PurePath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))
_INSTALLED = frozenset({"site-packages", "dist-packages"})


class Names(NamedTuple):
    """The globals that a code object and the code nested in it use, in the order of the code.

    Attributes:
        names: the names that they look up, bind or delete.
        attributes: the dotted names that they use (without the single ones).
        past_missing: names that the interpreter looks for past ``__missing__`` of a dict subclass.
    """

    names: tuple[str, ...]
    attributes: tuple[tuple[str, ...], ...]
    past_missing: frozenset[str]


_known: WeakKeyDictionary[CodeType, Names] = WeakKeyDictionary()


def names_of(code: CodeType) -> Names:
    """The globals that ``code`` uses.

    >>> def area(r):
    ...     return [math.pi * s.real for s in (r,)]
    >>> names_of(area.__code__)
    Names(names=('math',), attributes=(('math', 'pi'),), past_missing=frozenset())
    """
    names = _known.get(code)
    if names is None:
        dotted = dict.fromkeys(path for nested in _codes(code) if nested.co_names for path in _paths(nested))
        names = _known[code] = Names(
            tuple(dict.fromkeys(path[1] for path in dotted)),
            tuple(dict.fromkeys(path[1:] for path in dotted if len(path) > 2)),
            frozenset(name for op, name, *_ in dotted if op in _PAST_MISSING),
        )
    return names


def _paths(code: CodeType) -> Iterator[tuple[str, ...]]:
    """Operation, name and attributes for each use of a global."""
    path: tuple[str, ...] = ()
    for instruction in dis.get_instructions(code):
        if path and instruction.opname in _ATTRIBUTE:
            path = (*path, instruction.argval)
        elif instruction.opname != "EXTENDED_ARG":
            if path:
                yield path
            path = (instruction.opname, instruction.argval) if instruction.opname in _GLOBAL else ()


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


class Origin(NamedTuple):
    """Where a module comes from: its top-level package, and what kind of place that is."""

    package: str
    library: bool
    installed: bool


def origin_of(names: dict[str, Any]) -> Origin:
    """Where these globals of a module belong."""
    return _origin(str(names.get("__name__")), str(names.get("__file__")))


@functools.lru_cache(maxsize=4096)
def _origin(module: str, file: str) -> Origin:
    package = module.partition(".")[0]
    path = PurePath(file)
    installed = not _INSTALLED.isdisjoint(path.parts)
    library = package in _LIBRARIES or (not installed and not _STDLIB.isdisjoint(path.parents))
    return Origin(package, library, installed)
