"""``nnx.compat``: graph mode with graph updates, whatever the settings are."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import jax.numpy as jnp
import pytest

import nnxkit as nnx

NAMES = [
    name
    for name in vars(nnx.compat)
    if not name.startswith("_") and isinstance(getattr(nnx.compat, name), functools.partial)
]


@pytest.fixture(autouse=True)
def tree_mode() -> Any:
    with nnx.set_graph_mode(False), nnx.set_graph_updates(False):
        yield


@pytest.mark.parametrize("name", NAMES)
def test_names_are_those_of_nnx_with_their_modes(name: str) -> None:
    function = getattr(nnx.compat, name)
    parameters = inspect.signature(getattr(nnx, name)).parameters
    assert function.func is getattr(nnx, name)
    assert function.keywords == {key: True for key in ("graph", "graph_updates") if key in parameters}


def test_names_of_flax() -> None:
    flax_nnx = pytest.importorskip("flax.nnx")
    theirs = {name for name, value in vars(flax_nnx.compat).items() if isinstance(value, functools.partial)}
    ours = set(NAMES)
    assert ours <= theirs
    assert {name for name in theirs - ours if hasattr(nnx, name)} == set()


def test_transforms_keep_edits_of_the_structure() -> None:
    net = nnx.Dict(w=nnx.Param(jnp.array(2.0)))

    def f(m: Any) -> Any:
        m.extra = nnx.Param(m.w * 2)
        return m

    assert nnx.compat.jit(f)(net) is net
    assert float(net.extra.get_value()) == 4.0


def test_decorators() -> None:
    @nnx.compat.vmap(in_axes=(None, 0))
    def f(m: Any, x: Any) -> Any:
        return m.w * x

    assert f(nnx.Dict(w=nnx.Param(jnp.array(2.0))), jnp.arange(2.0)).tolist() == [0.0, 2.0]


def test_graph_functions_keep_shared_references() -> None:
    v = nnx.Param(jnp.array(2.0))
    both = nnx.List([v, v])
    copy = nnx.compat.clone(both)
    assert copy[0] is copy[1]
    with pytest.raises(ValueError, match=r"\[0\]"):
        nnx.clone(both)
