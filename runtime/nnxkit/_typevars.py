"""Type variables for annotations of NNX code: ``nnx.Variable[nnx.A]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from nnxkit._module import Module

A = TypeVar("A")
M = TypeVar("M", bound="Module")
