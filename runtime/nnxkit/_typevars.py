"""Type variables, and those for annotations of NNX code: ``nnx.Variable[nnx.A]``.

A class of nnxkit that is generic is used without arguments as often as with them: ``def f(state: nnx.State, scale:
nnx.Param)``. Its type variables have the default ``Any``, so that no type checker asks for arguments. `TypeVar` makes
them: for type checkers it is that of `typing_extensions`, which nobody has to install; at run time a default means
nothing.
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVar

    from nnxkit._module import Module
else:

    def TypeVar(name: str, default: Any = Any) -> typing.TypeVar:  # noqa: N802 - stands for a class
        """A type variable; the default is for type checkers."""
        return typing.TypeVar(name)


A = typing.TypeVar("A")
M = typing.TypeVar("M", bound="Module")
