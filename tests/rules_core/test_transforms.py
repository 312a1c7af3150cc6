"""The transform table: complete against the transforms that raise on captured mutation, and resolvable by every public
name.
"""

from __future__ import annotations

import pytest

from nnx_rules.transforms import ALIASES, TRANSFORMS, Arguments, Form, find

# Probed on jax 0.10.2 and flax 0.12.8: running a function under these refuses changes of outer objects.
RAISING = [
    "jax.jit",
    "jax.vmap",
    "jax.pmap",
    "jax.grad",
    "jax.value_and_grad",
    "jax.vjp",
    "jax.jvp",
    "jax.linearize",
    "jax.linear_transpose",
    "jax.jacfwd",
    "jax.jacrev",
    "jax.hessian",
    "jax.checkpoint",
    "jax.remat",
    "jax.eval_shape",
    "jax.make_jaxpr",
    "jax.shard_map",
    "jax.experimental.checkify.checkify",
    "jax.lax.scan",
    "jax.lax.map",
    "jax.lax.cond",
    "jax.lax.switch",
    "jax.lax.while_loop",
    "jax.lax.fori_loop",
    "jax.lax.reduce",
    "jax.numpy.vectorize",
    "jax.numpy.apply_along_axis",
    "jax.numpy.piecewise",
    "nnx.jit",
    "nnx.vmap",
    "nnx.pmap",
    "nnx.grad",
    "nnx.value_and_grad",
    "nnx.scan",
    "nnx.remat",
    "nnx.cond",
    "nnx.switch",
    "nnx.while_loop",
    "nnx.fori_loop",
    "nnx.eval_shape",
    "nnx.checkify",
    "nnx.shard_map",
    "nnx.vjp",
    "nnx.jvp",
    "nnx.make_jaxpr",
    "nnx.jit_partial",
    "nnx.checkpoint",
]

HARMLESS = [
    "jax.tree.map",
    "jax.named_call",
    "jax.lax.associative_scan",
    "jax.debug.callback",
    "jax.pure_callback",
    "jax.experimental.io_callback",
    "jax.custom_vjp",
    "nnx.custom_vjp",
    "nnx.split_rngs",
    "nnx.with_rngs",
    "nnx.transform_metadata",
    "nnx.cached_partial",
    "nnx.capture",
]


@pytest.mark.parametrize("name", RAISING)
def test_transforms_that_open_a_trace_level(name):
    row = find(name)
    assert row is not None
    assert row.level


@pytest.mark.parametrize("name", HARMLESS)
def test_functions_that_run_in_the_present_level(name):
    row = find(name)
    assert row is not None
    assert not row.level


def test_only_nnx_transforms_keep_changes_and_lift_captures():
    for name, row in TRANSFORMS.items():
        if name.startswith("jax."):
            assert row.arguments is not Arguments.KEPT
            assert not row.lifts_captures
    for name in ("nnx.eval_shape", "nnx.make_jaxpr"):
        row = find(name)
        assert row is not None
        assert row.arguments is Arguments.DROPPED
        assert row.lifts_captures


def test_compat_names_share_the_row():
    assert find("nnx.compat.scan") is find("nnx.scan")
    assert find("nnx.compat.nonsense") is None


def test_aliases_lead_to_rows():
    for name in ALIASES:
        assert find(name) is not None, name


def test_operands_of_calls_follow_their_functions():
    for row in TRANSFORMS.values():
        if row.form is Form.CALL and row.name not in {"jax.lax.reduce", "jax.lax.fori_loop", "nnx.fori_loop"}:
            assert row.operands > max(argument.position for argument in row.functions), row.name


def test_what_flax_has_only_without_graph_updates():
    names = {name for name, row in TRANSFORMS.items() if not row.flax_default}
    assert names == {"nnx.vjp", "nnx.jvp", "nnx.make_jaxpr", "nnx.jit_partial"}
