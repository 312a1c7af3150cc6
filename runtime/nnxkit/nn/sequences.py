"""Running a cell over sequences.

Invariants

- Sequences have the shape ``(batch..., time, features...)``, or ``(time, batch..., features...)`` if they are
  time-major.
- Where lengths are given, what is behind the end of a sequence does not influence its carry or, reversed, its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import jax.numpy as jnp

from nnx_rules.filters import Filter
from nnxkit._annotations import data
from nnxkit._module import Module
from nnxkit._rng_scopes import split_rngs
from nnxkit._rngs import Rngs, RngStream
from nnxkit._transforms import Carry, StateAxes, scan
from nnxkit.nn._parameters import require_broadcast, require_integers, require_shape
from nnxkit.nn._streams import stream_of
from nnxkit.nn.recurrent import RNNCellBase


def _stream(rngs: Rngs | RngStream | bool) -> RngStream | None:
    """A stream of its own for first carries: forked, made from a fixed seed (``True``), or none (``False``)."""
    if isinstance(rngs, bool):
        return RngStream(0, tag="carry") if rngs else None
    stream = stream_of(rngs, "carry")
    return None if stream is None else stream.fork()


def flip_sequences(
    inputs: jax.Array, seq_lengths: jax.Array | None, num_batch_dims: int, time_major: bool
) -> jax.Array:
    """Sequences backwards; those with a length stay at the beginning, and what is behind them goes backwards, too.

    Args:
        inputs: the sequences.
        seq_lengths: their lengths, of the shape of the batch.
        num_batch_dims: number of batch axes.
        time_major: whether time is the first axis.
    """
    axis = 0 if time_major else num_batch_dims
    if seq_lengths is None:
        return jnp.flip(inputs, axis)
    steps = jnp.arange(inputs.shape[axis])
    places = (seq_lengths[..., None] - 1 - steps) % len(steps)
    if time_major:
        places = jnp.moveaxis(places, -1, 0)
    places = jnp.reshape(places, places.shape + (1,) * (inputs.ndim - places.ndim))
    return jnp.take_along_axis(inputs, places, axis)


class RNN(Module):
    """Run a cell over sequences.

    Variables: those of ``cell``, and ``rngs``, a stream for first carries.

    Args:
        cell: the cell.
        time_major: whether time is the first axis.
        return_carry: whether calls return the last carry, too.
        reverse: whether the sequences are run through from their ends.
        keep_order: whether the outputs of reversed sequences are put back into the order of the inputs.
        unroll: steps that are compiled together.
        state_axes: what happens to the state of the cell between steps, as ``nnx.scan`` takes it; it is carried by
        default.
        broadcast_rngs: filter for the streams of the cell that give all steps the same numbers, as recurrent dropout
            wants it: a call draws one key of each of them. The state of others is carried.
        rngs: where the stream for first carries is forked from; ``True`` for one with a fixed seed, ``False`` for none.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), rngs=nnx.Rngs(1))
    >>> rnn(jnp.ones((2, 5, 3))).shape
    (2, 5, 4)
    """

    def __init__(
        self,
        cell: RNNCellBase,
        *,
        time_major: bool = False,
        return_carry: bool = False,
        reverse: bool = False,
        keep_order: bool = False,
        unroll: int = 1,
        state_axes: Mapping[Any, Any] | StateAxes | None = None,
        broadcast_rngs: Filter | None = None,
        rngs: Rngs | RngStream | bool = True,
    ) -> None:
        self.cell = cell
        self.time_major = time_major
        self.return_carry = return_carry
        self.reverse = reverse
        self.keep_order = keep_order
        self.unroll = unroll
        self.rngs: RngStream | None = data(_stream(rngs))
        self.state_axes: StateAxes = (
            state_axes if isinstance(state_axes, StateAxes) else StateAxes(state_axes or {...: Carry})
        )
        self.broadcast_rngs: Filter | None = broadcast_rngs

    def __call__(
        self,
        inputs: jax.Array,
        *,
        initial_carry: Any = None,
        seq_lengths: jax.Array | None = None,
        return_carry: bool | None = None,
        time_major: bool | None = None,
        reverse: bool | None = None,
        keep_order: bool | None = None,
        rngs: Rngs | RngStream | None = None,
    ) -> Any:
        """Run the cell over sequences; the arguments take precedence over the attributes.

        Args:
            inputs: the sequences.
            initial_carry: the first carry; by default the cell makes one.
            seq_lengths: lengths of the sequences, of the shape of the batch: the carry that is returned is that of
                their ends.
            return_carry: whether to return ``(carry, outputs)``.
            time_major: whether time is the first axis.
            reverse: whether the sequences are run through from their ends.
            keep_order: whether the outputs of reversed sequences are put back into the order of the inputs.
            rngs: random numbers for the first carry.

        Returns:
            The outputs, an array with the axes of the inputs; with ``return_carry`` after the last carry.

        Raises:
            LayerArgumentError: a first carry has to be made, and there are no random numbers; or the lengths are no
                integers.
            LayerShapeError: the inputs have other features or too few axes, or the lengths another batch.
        """
        return_carry = self.return_carry if return_carry is None else return_carry
        time_major = self.time_major if time_major is None else time_major
        reverse = self.reverse if reverse is None else reverse
        keep_order = self.keep_order if keep_order is None else keep_order
        features = self.cell.num_feature_axes
        batch = inputs.ndim - features - 1
        require_shape(self, "inputs", inputs, f"(..., time{', axis' * features})", holds=batch >= 0)
        axis = 0 if time_major else batch
        if seq_lengths is not None:
            require_integers(self, "seq_lengths", seq_lengths)
            sizes = inputs.shape[1 : batch + 1] if time_major else inputs.shape[:batch]
            require_broadcast(self, "seq_lengths", seq_lengths, sizes)
        if reverse:
            inputs = flip_sequences(inputs, seq_lengths, batch, time_major)
        if initial_carry is None:
            shape = (*inputs.shape[:axis], *inputs.shape[axis + 1 :])
            initial_carry = self.cell.initialize_carry(shape, self.rngs if rngs is None else rngs)
        every = seq_lengths is not None and return_carry

        def step(cell: RNNCellBase, carry: Any, x: jax.Array) -> Any:
            carry, y = cell(carry, x)
            return carry, (carry, y) if every else y

        axes = self.state_axes
        if self.broadcast_rngs is not None:
            axes = StateAxes([(self.broadcast_rngs, None), *axes.items()])
        run = scan(
            step,
            in_axes=(axes, Carry, axis),
            out_axes=(Carry, (0, axis) if every else axis),
            unroll=self.unroll,
            graph=True,  # the mode that has `StateAxes`
            graph_updates=True,
        )
        with self._broadcast():
            carry, outputs = run(self.cell, initial_carry, inputs)
        if every:
            carries, outputs = outputs
            carry = jax.tree.map(lambda item: _at_ends(item, seq_lengths), carries)
        if reverse and keep_order:
            outputs = flip_sequences(outputs, seq_lengths, batch, time_major)
        return (carry, outputs) if return_carry else outputs

    def _broadcast(self) -> AbstractContextManager[Any]:
        """Meanwhile the streams to broadcast have a key that was drawn for this call."""
        if self.broadcast_rngs is None:
            return nullcontext()
        backups: AbstractContextManager[Any] = split_rngs(
            self.cell, splits=1, only=self.broadcast_rngs, squeeze=True, graph=True, graph_updates=True
        )
        return backups


def _at_ends(carries: jax.Array, seq_lengths: Any) -> jax.Array:
    """Of carries with time as the first axis, those of the last steps of sequences."""
    places = jnp.reshape(seq_lengths - 1, (1, *seq_lengths.shape, *(1,) * (carries.ndim - 1 - seq_lengths.ndim)))
    return jnp.take_along_axis(carries, places, 0)[0]


def _concatenate(forward: jax.Array, backward: jax.Array) -> jax.Array:
    return jnp.concatenate([forward, backward], axis=-1)


class Bidirectional(Module):
    """Run two layers over sequences, one of them from the ends, and merge their outputs.

    Variables: those of ``forward_rnn`` and ``backward_rnn``, and ``rngs``, a stream for first carries.

    Args:
        forward_rnn: runs forward.
        backward_rnn: runs backward; its outputs are put back into order.
        merge_fn: takes the outputs of both; by default they are put side by side along the last axis.
        time_major: whether time is the first axis.
        return_carry: whether calls return the last carries, too.
        rngs: as for :class:`RNN`.
    """

    def __init__(
        self,
        forward_rnn: RNN,
        backward_rnn: RNN,
        *,
        merge_fn: Callable[[jax.Array, jax.Array], jax.Array] = _concatenate,
        time_major: bool = False,
        return_carry: bool = False,
        rngs: Rngs | RngStream | bool = True,
    ) -> None:
        self.forward_rnn = forward_rnn
        self.backward_rnn = backward_rnn
        self.merge_fn = merge_fn
        self.time_major = time_major
        self.return_carry = return_carry
        self.rngs: RngStream | None = data(_stream(rngs))

    def __call__(
        self,
        inputs: jax.Array,
        *,
        initial_carry: tuple[Any, Any] | None = None,
        rngs: Rngs | RngStream | None = None,
        seq_lengths: jax.Array | None = None,
        return_carry: bool | None = None,
        time_major: bool | None = None,
        reverse: bool | None = None,
        keep_order: bool | None = None,
    ) -> Any:
        """Run both over sequences; see :meth:`RNN.__call__`. Carries are pairs: forward, backward.

        Raises:
            LayerArgumentError: a first carry has to be made, and there are no random numbers.
        """
        rngs = self.rngs if rngs is None else rngs
        return_carry = self.return_carry if return_carry is None else return_carry
        first, last = (None, None) if initial_carry is None else initial_carry
        options: dict[str, Any] = {
            "seq_lengths": seq_lengths,
            "return_carry": True,
            "time_major": self.time_major if time_major is None else time_major,
            "rngs": rngs,
        }
        forward, outputs = self.forward_rnn(inputs, initial_carry=first, reverse=False, **options)
        backward, others = self.backward_rnn(inputs, initial_carry=last, reverse=True, keep_order=True, **options)
        merged = self.merge_fn(outputs, others)
        return ((forward, backward), merged) if return_carry else merged
