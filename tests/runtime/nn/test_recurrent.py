"""Cells, and what runs them over sequences: as in flax, and what they raise."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nnxkit as nnx
from layer_peers import arrays, assert_same_layer
from nnx_rules.errors import LayerArgumentError, LayerShapeError

CELLS = ["LSTMCell", "OptimizedLSTMCell", "GRUCell", "SimpleCell"]
(X,) = arrays((2, 5, 3))
LENGTHS = jnp.array([2, 4])


def normal(library: Any) -> Any:
    return library.initializers.normal(1.0)


@pytest.mark.filterwarnings("ignore::UserWarning")  # flax discourages both
@pytest.mark.parametrize(
    ("cell", "keep_rngs"), [*((cell, False) for cell in CELLS), ("LSTMCell", True), ("GRUCell", True)]
)
def test_cells(cell: str, keep_rngs: bool) -> None:
    def step(library: Any, layer: Any) -> Any:
        rngs = None if keep_rngs else library.Rngs(3)
        return layer(layer.initialize_carry((2, 3), rngs), X[:, 0])

    assert_same_layer(
        lambda n, rngs: getattr(n, cell)(
            3, 4, carry_init=normal(n), bias_init=normal(n), keep_rngs=keep_rngs, rngs=rngs
        ),
        step,
    )


def test_residual_cell() -> None:
    assert_same_layer(
        lambda n, rngs: n.SimpleCell(3, 4, residual=True, rngs=rngs),
        lambda library, layer: layer(layer.initialize_carry((2, 3), library.Rngs(3), normal(library)), X[:, 0]),
    )


@pytest.mark.parametrize(
    ("cell", "options"),
    [
        ("LSTMCell", {"return_carry": True, "seq_lengths": LENGTHS}),
        ("OptimizedLSTMCell", {"reverse": True, "return_carry": True, "seq_lengths": LENGTHS}),
        ("GRUCell", {"return_carry": True}),
        ("GRUCell", {"reverse": True, "keep_order": True, "seq_lengths": LENGTHS}),
        ("SimpleCell", {"reverse": True, "keep_order": True, "time_major": True}),
    ],
    ids=lambda item: item if isinstance(item, str) else "+".join(item),
)
def test_rnn(cell: str, options: dict[str, Any]) -> None:
    assert_same_layer(
        lambda n, rngs: n.RNN(getattr(n, cell)(3, 4, rngs=rngs), rngs=rngs), lambda _, layer: layer(X, **options)
    )


@pytest.mark.parametrize("shape", [(5, 3), (6, 2, 5, 3)])
def test_batch_axes(shape: tuple[int, ...]) -> None:
    (x,) = arrays(shape)
    assert_same_layer(
        lambda n, rngs: n.RNN(n.GRUCell(3, 4, rngs=rngs), unroll=2, return_carry=True), lambda _, layer: layer(x)
    )


@pytest.mark.parametrize("options", [{}, {"return_carry": True, "seq_lengths": LENGTHS}, {"time_major": True}], ids=str)
def test_bidirectional(options: dict[str, Any]) -> None:
    assert_same_layer(
        lambda n, rngs: n.Bidirectional(
            n.RNN(n.GRUCell(3, 4, rngs=rngs)), n.RNN(n.GRUCell(3, 4, rngs=rngs)), rngs=rngs
        ),
        lambda _, layer: layer(X, **options),
    )


def test_lengths_hide_what_is_behind() -> None:
    rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
    changed = X.at[0, 2:].set(9.0)
    for reverse in (False, True):
        own, other = (rnn(x, seq_lengths=LENGTHS, reverse=reverse)[0] for x in (X, changed))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), own, other)
        last = rnn(X[:1, :2], reverse=reverse)[0]
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a[0], b[0], rtol=1e-5, atol=1e-6), own, last)


def test_cell_with_state_and_randomness() -> None:
    """Statistics and streams of a cell go from step to step."""

    class Cell(nnx.GRUCell):
        def __init__(self, rngs: nnx.Rngs) -> None:
            super().__init__(3, 4, rngs=rngs)
            self.steps = nnx.Variable(jnp.array(0))
            self.dropout = nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, carry: Any, inputs: jax.Array) -> Any:
            self.steps[...] += 1
            return super().__call__(carry, self.dropout(inputs))

    rnn = nnx.RNN(Cell(nnx.Rngs(0)))
    first, second = rnn(X), rnn(X)
    assert int(rnn.cell.steps[...]) == 10
    assert not np.allclose(first, second)
    rnn.eval()
    np.testing.assert_allclose(rnn(X), nnx.jit(lambda rnn, x: rnn(x))(rnn, X), rtol=1e-5, atol=1e-6)


def test_prelu() -> None:
    assert_same_layer(lambda n, rngs: n.PReLU(0.2), lambda _, layer: (layer(X), layer(X.astype(jnp.bfloat16))))
    assert nnx.PReLU(0.5)(jnp.array([-2, 3])).tolist() == [-1.0, 3.0]


class TestErrors:
    def test_no_random_numbers(self) -> None:
        cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
        with pytest.raises(LayerArgumentError, match="`GRUCell` draws random numbers when it is called"):
            cell.initialize_carry((2, 3))
        with pytest.raises(LayerArgumentError, match="`GRUCell` draws random numbers when it is called"):
            nnx.RNN(cell, rngs=False)(X)
        assert nnx.RNN(cell, rngs=False)(X, rngs=nnx.Rngs(0)).shape == (2, 5, 4)

    def test_shapes(self) -> None:
        rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)))
        with pytest.raises(LayerShapeError, match=r"`inputs` of shape \(\.\.\., 3\), and got \(2, 7\)"):
            rnn(jnp.ones((2, 5, 7)))

    def test_no_stream(self) -> None:
        with pytest.raises(TypeError, match="rngs must be Rngs, an RngStream or None, not str"):
            nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), rngs="carry")  # type: ignore[arg-type]
