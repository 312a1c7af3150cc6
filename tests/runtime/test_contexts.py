"""Update contexts: objects keep their identity through a pure function."""

from __future__ import annotations

import threading
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import nnxkit as nnx
from nnx_rules.errors import TraceContextError


class Node(nnx.Module):
    pass


def through(step: Any, *nodes: Any, tag: str = "t") -> Any:
    """Run ``step`` on copies of the nodes under jit; returns what it returns, as the caller's objects."""

    @jax.jit
    def pure(parts: Any) -> Any:
        with nnx.merge_context(tag, inner=True) as ctx:
            inner = [ctx.merge(*part) for part in parts]
        out = step(*inner)
        with nnx.split_context(tag) as ctx:
            return [ctx.split(node) for node in (*inner, out)]

    with nnx.update_context(tag):
        with nnx.split_context(tag) as ctx:
            parts = [ctx.split(node) for node in nodes]
        parts = pure(parts)
        with nnx.merge_context(tag, inner=False) as ctx:
            return [ctx.merge(*part) for part in parts][-1]


def test_values_and_structure_come_back_into_the_same_objects() -> None:
    node = Node()
    node.w = nnx.Param(jnp.zeros(2))
    node.array = jnp.zeros(1)
    weight = node.w
    before = nnx.graphdef(node)

    def step(inner: Node) -> Node:
        inner.w[...] += 1
        inner.array = inner.array + 2
        inner.new = Node()
        inner.new.parent = inner
        inner.name = "changed"
        return inner

    out = through(step, node)
    assert out is node
    assert node.w is weight
    assert weight.sum() == 2
    assert node.array.sum() == 2
    assert node.new.parent is node
    assert node.name == "changed"
    assert nnx.graphdef(node) != before


def test_values_alone_are_no_structural_edit() -> None:
    node = Node()
    node.w = nnx.Param(jnp.zeros(2))
    node.array = jnp.zeros(1)
    graphdef = nnx.graphdef(node)

    def step(inner: Node) -> Node:
        inner.w[...] += 1
        inner.array += 1
        return inner

    through(step, node)
    assert nnx.graphdef(node) is graphdef
    assert node.array.sum() == 1


def test_an_object_of_another_trace_is_not_refilled() -> None:
    node = Node()
    node.array = jnp.zeros(1)

    @jax.jit
    def step(x: jax.Array) -> jax.Array:
        through(lambda inner: setattr(inner, "array", x) or inner, node)
        return x

    with pytest.raises(TraceContextError, match="Cannot mutate `Node`"):
        step(jnp.ones(1))
    assert node.array.sum() == 0


def test_sharing_between_arguments_is_kept() -> None:
    shared = nnx.Param(jnp.zeros(1))
    first, second = Node(), Node()
    first.a = second.b = shared

    def step(one: Node, two: Node) -> Node:
        assert one.a is two.b
        one.a[...] += 1
        two.link = one
        return two

    out = through(step, first, second)
    assert out is second
    assert second.link is first
    assert shared.sum() == 1


def test_swapped_and_deleted_attributes() -> None:
    node = Node()
    node.a, node.b, node.c = nnx.Param(jnp.zeros(1)), nnx.Param(jnp.ones(1)), 1
    a, b = node.a, node.b

    def step(inner: Node) -> Node:
        inner.a, inner.b = inner.b, inner.a
        del inner.c
        return inner

    through(step, node)
    assert node.a is b
    assert node.b is a
    assert not hasattr(node, "c")


def test_a_second_call_of_a_compiled_function_works_alike() -> None:
    traces: list[int] = []

    @jax.jit
    def pure(graphdef: Any, state: Any) -> Any:
        traces.append(1)
        with nnx.merge_context("again", inner=True) as ctx:
            inner = ctx.merge(graphdef, state)
        inner.w[...] += 1
        with nnx.split_context("again") as ctx:
            return ctx.split(inner)

    @nnx.update_context("again")
    def step(node: Node) -> Any:
        with nnx.split_context("again") as ctx:
            parts = ctx.split(node)
        parts = pure(*parts)
        with nnx.merge_context("again", inner=False) as ctx:
            return ctx.merge(*parts)

    node = Node()
    node.w = nnx.Param(jnp.zeros(1))
    for _ in range(3):
        assert step(node) is node
    assert node.w.sum() == 3
    assert len(traces) == 1


def test_filters_split_in_a_context() -> None:
    node = Node()
    node.w, node.m = nnx.Param(jnp.zeros(1)), nnx.BatchStat(jnp.zeros(1))
    with nnx.split_context() as ctx:
        graphdef, params, rest = ctx.split(node, nnx.Param, ...)
        again, nothing = ctx.split(node.w)
    with nnx.merge_context() as ctx:
        merged = ctx.merge(graphdef, params, rest)
        assert ctx.merge(again, nothing) is merged.w
    assert list(params) == ["w"]


def test_contexts_nest_by_tag() -> None:
    with nnx.update_context("a") as outer, nnx.update_context("b"), nnx.update_context("a") as inner:
        assert nnx.current_update_context("a") is inner
        assert inner is not outer
        assert inner == outer
        assert hash(inner) == hash(outer)
    with pytest.raises(ValueError, match="no update context is open under the tag 'a'"):
        nnx.current_update_context("a")


def test_contexts_belong_to_a_thread() -> None:
    seen: list[str] = []

    def look() -> None:
        try:
            nnx.current_update_context("a")
        except ValueError as error:
            seen.append(str(error))

    with nnx.update_context("a"):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert len(seen) == 1


def test_contexts_refuse_use_outside_of_their_scope() -> None:
    with pytest.raises(ValueError, match="NNX341"), nnx.split_context("none"):
        pass
    with (
        nnx.update_context("a"),
        pytest.raises(ValueError, match="needs `inner=True` or `inner=False`"),
        nnx.merge_context("a"),
    ):
        pass
    with nnx.split_context() as left:
        pass
    with pytest.raises(ValueError, match="this SplitContext was left"):
        left.split(Node())
    with nnx.merge_context() as merged:
        pass
    with pytest.raises(ValueError, match="this MergeContext was left"):
        merged.merge(*nnx.split(Node()))


def test_objects_are_forgotten_on_leaving() -> None:
    with nnx.update_context("a") as context:
        with nnx.split_context("a") as ctx:
            ctx.split(Node())
        assert context.outer_ref_outer_index is not None
    assert context.outer_ref_outer_index is None
    assert context.outer_index_outer_ref is None
