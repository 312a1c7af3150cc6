"""What the catalogue calls deprecated warns, and tells type checkers so."""

from __future__ import annotations

import warnings

import pytest

import nnxkit as nnx
from nnx_rules import versions
from nnxkit._deprecation import deprecated

MARKED = [
    *(getattr(nnx, name.removeprefix("nnx.")) for name in versions.DEPRECATED),
    *(getattr(nnx.State, name) for name in versions.STATE_METHODS),
    *(getattr(nnx.Module, name) for name in versions.MODULE_METHODS),
]


@pytest.mark.parametrize("function", MARKED, ids=lambda function: function.__qualname__)
def test_catalogue_is_marked(function: object) -> None:
    assert "deprecated" in getattr(function, "__deprecated__")  # noqa: B009 - no static type has it


def test_warning_names_the_caller() -> None:
    @deprecated("`old` is deprecated: use `new`")
    def old(x: int) -> int:
        return x

    with pytest.warns(DeprecationWarning, match="use `new`") as caught:
        assert old(3) == 3
    assert caught[0].filename == __file__
    assert old.__name__ == "old"


def test_only_the_deprecated_call_of_a_function_warns() -> None:
    rngs = nnx.Rngs(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rngs.fork()
    with pytest.warns(DeprecationWarning, match="the argument 'split' of 'fork' is deprecated"):
        rngs.fork(split=2)
