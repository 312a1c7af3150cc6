"""Shapes of operations, against jax: what the analyzer knows of an expression is what jax makes of it."""

import ast

import pytest

from abstract import HEAD, run
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import Called
from nnx_lint.model.values import Array, Value
from nnx_rules.shapes import Form, Symbol

jax = pytest.importorskip("jax")

GIVEN = """
import optax
x, y, z = jnp.ones((2, 3, 4)), jnp.ones((3, 1)), jnp.ones((4, 5))
n, image, row = jnp.arange(6), jnp.ones((2, 8, 8, 3)), jnp.ones((1, 4))
labels, key = jnp.zeros((2, 3), dtype=jnp.int32), jax.random.key(0)
"""

KNOWN = """
x + y
x[n]
x * 2
x - row
x / x
n + n
x ** 2
-x
x > y
x @ z
x.T
x.mT
x[0]
x[:, 0]
x[..., 0]
x[:, -1, 1:3]
x[:, None]
x[..., None, :]
x[::2, 1:, :-1]
n[2:]
x.mean()
x.mean(axis=1)
x.sum(axis=(0, -1))
x.max(axis=-1, keepdims=True)
x.reshape(2, -1)
x.reshape((-1,))
x.reshape(x.shape[0], x.shape[1] * x.shape[2])
x.transpose(2, 0, 1)
x.transpose((1, 0, 2))
x.transpose()
x.swapaxes(0, -1)
x.flatten()
x.ravel()
row.squeeze()
row.squeeze(axis=0)
x.astype(jnp.int32)
x.argmax(axis=-1)
jnp.mean(x, axis=(1, 2), keepdims=True)
jnp.sum(x)
jnp.std(x, 0)
jnp.prod(x, axis=-1)
jnp.any(x, axis=1)
jnp.argmax(x, axis=1)
jnp.reshape(x, (3, -1))
jnp.ravel(x)
jnp.transpose(x)
jnp.transpose(x, (2, 1, 0))
jnp.swapaxes(x, 0, 1)
jnp.moveaxis(x, 0, -1)
jnp.expand_dims(x, 1)
jnp.expand_dims(x, (0, -1))
jnp.squeeze(row, 0)
jnp.concatenate([x, x], axis=-1)
jnp.concatenate((x, x))
jnp.stack([x, x, x])
jnp.stack([x, x], axis=-1)
jnp.tile(row, (3, 2))
jnp.tile(row, (5, 1, 1))
jnp.tile(x, (2,))
jnp.repeat(x, 3, axis=1)
nnx.make_causal_mask(labels)
nnx.initializers.lecun_normal()(key, (3, 4), jnp.float32)
nnx.initializers.normal(0.02)(key, (1, 5, 2))
nnx.initializers.zeros(key, (3,))
x + nnx.Param(jnp.ones((3, 1)))
jnp.concatenate([x, nnx.Param(x)], axis=1)
jnp.split(x, 2, axis=-1)[0]
jnp.split(x, 3, 1)[2]
jnp.matmul(x, z)
jnp.dot(x, z)
jnp.dot(row[0], row[0])
jnp.einsum("abc,cd->abd", x, z)
jnp.einsum("...c,cd->...d", x, z)
jnp.einsum("abc, abd -> acd", x, x)
jnp.where(x > 0, x, y)
jnp.maximum(x, y)
jnp.greater(x, 0)
jnp.exp(x)
jnp.clip(x, 0, 1)
jnp.cumsum(x, axis=1)
jnp.broadcast_to(row, (3, 4))
jnp.zeros_like(x)
jnp.full((2, 3), 1.5)
jnp.arange(4)
jnp.array([[1, 2], [3, 4]])
jnp.ones(x.shape[:-1])
jnp.zeros((len(x.shape), 2 * x.shape[0] + 1))
jax.nn.softmax(x)
jax.nn.one_hot(labels, 7)
jax.nn.logsumexp(x, axis=-1)
jax.random.normal(key, (2, 3))
jax.random.normal(key)
jax.random.split(key)
jax.random.split(key, 5)
nnx.max_pool(image, (2, 2), strides=(2, 2))
nnx.avg_pool(image, (3, 3), strides=(2, 2), padding="SAME")
nnx.avg_pool(image, window_shape=(3, 3))
optax.softmax_cross_entropy_with_integer_labels(x, labels)
optax.softmax_cross_entropy(x, x)
optax.sigmoid_binary_cross_entropy(x, x)
optax.squared_error(x, x)
optax.l2_loss(x)
"""

UNKNOWN = """
x[n > 2]
jnp.split(x, n)
jnp.mean(x, axis=n)
jnp.einsum("abc,cd", x, z)
x.reshape(n)
x.sum(axis=1, where=x > 0)
"""


def forms(expressions: str) -> dict[str, Form | None]:
    """What is known of each of some expressions."""
    lines = [line for line in expressions.splitlines() if line]
    program = GIVEN + "\n".join(f"print({line})" for line in lines)
    first = len((HEAD + GIVEN).splitlines()) + 1
    found: dict[str, Form | None] = {}
    for event in run(program)[2]:
        if isinstance(event, Called) and event.name == "print":
            found[lines[event.node.lineno - first]] = form_of(event.args[0])  # type: ignore[attr-defined]
    return found


def form_of(value: Value | None) -> Form | None:
    """What is known of an array."""
    return value.form if isinstance(value, Array) else None


def test_shapes_are_those_that_jax_makes() -> None:
    scope: dict[str, object] = {}
    exec(HEAD + GIVEN, scope)

    for expression, form in forms(KNOWN).items():
        made = eval(expression, scope)
        assert form is not None, expression
        assert form.shape == made.shape, expression
        assert form.dtype in (None, str(made.dtype)), expression


def test_nothing_is_said_of_what_is_not_followed() -> None:
    for expression, form in forms(UNKNOWN).items():
        known = form.shape if form is not None else None
        assert known is None or any(isinstance(item, Symbol) for item in known), expression


def test_all_expressions_are_seen() -> None:
    assert list(forms(KNOWN)) == [line for line in KNOWN.splitlines() if line]
    assert all(ast.parse(line) for line in KNOWN.splitlines())


def test_parts_are_counted() -> None:
    (call,) = [
        event
        for event in run(GIVEN + "print(jnp.split(x, 2, axis=-1))")[2]
        if isinstance(event, Called) and event.name == "print"
    ]

    (parts,) = call.args
    assert isinstance(parts, Seq)
    assert [form_of(part) for part in parts.items] == [Form((2, 3, 2), "float32")] * 2
