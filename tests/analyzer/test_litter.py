"""What evaluations leave behind goes, without a walk over what stays."""

from __future__ import annotations

import ast
import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from nnx_lint import engine, litter
from nnx_lint.model.frames import TraceScope
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile
from nnx_lint.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Iterator


class Knot:
    """Something that only the collector can find to be dead."""

    def __init__(self) -> None:
        self.own = self


def tied() -> weakref.ref[Knot]:
    return weakref.ref(Knot())


@pytest.fixture
def uncollected() -> Iterator[None]:
    """A process that collects nothing by itself."""
    gc.collect()
    gc.disable()
    yield
    gc.unfreeze()
    gc.enable()


@pytest.mark.usefixtures("uncollected")
def test_what_came_since_is_collected_and_what_was_kept_is_not_walked_over() -> None:
    old = tied()
    litter.keep()
    new = tied()
    litter.sweep()
    assert (old() is None, new() is None) == (False, True)


def test_nothing_is_kept_in_a_process_that_collects_by_itself() -> None:
    before = gc.get_freeze_count()
    litter.keep()
    litter.sweep()
    assert gc.get_freeze_count() == before


@pytest.mark.usefixtures("uncollected")
def test_nodes_forget_what_was_read_off_them_once_that_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "READINGS", walk.Readings())
    monkeypatch.setattr(litter, "MANY", 2)
    asked: list[ast.AST] = []

    @walk.remembered
    def read(node: ast.AST) -> str:
        asked.append(node)
        return ast.unparse(node)

    nodes = ast.parse("first; second; third").body
    read(nodes[0])  # by a process that has not said yet that it forgets
    litter.sweep()
    for count, node in enumerate(nodes[1:], start=1):
        read(node)
        litter.sweep()
        assert [read(each) for each in nodes[1 : count + 1]] == ["second", "third"][:count]
    assert asked == nodes
    walk.dumped(nodes[2])
    litter.sweep()
    assert [read(each) for each in nodes] == ["first", "second", "third"]
    assert asked == [*nodes, *nodes[1:]]
    assert [ast.unparse(each) for each in nodes] == ["first", "second", "third"]  # what the nodes say is still there


UNDER_TRANSFORMS = """
import jax
from flax import nnx

class Model(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.Linear(2, 3, rngs=rngs)

    def __call__(self, x):
        return self.layer(x)

@nnx.jit
def step(model, x):
    def loss(model):
        return model(x).sum()
    return nnx.grad(loss)(model)

def train(model, x):
    inner = jax.vmap(lambda row: model(row))
    return step(model, inner(x))
"""


@pytest.mark.usefixtures("uncollected")
def test_functions_that_ran_under_transforms_go_by_themselves() -> None:
    source = SourceFile.from_text(UNDER_TRANSFORMS, "program.py")
    assert engine.check([source], roots=[], options=Options.everywhere(selected=lambda rule: rule.default)) == []
    assert [each for each in gc.get_objects() if isinstance(each, TraceScope)] == []
