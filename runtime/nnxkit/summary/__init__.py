"""Looking at models: ``nnx.tabulate``, what a model does with an input, call by call, as a table; ``nnx.progress``,
how far its initialisation is.

Rows are the calls that the model makes (`CallInfo`), columns what goes in and out, how many operations that takes, and
for each type of Variable what the module holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from nnx_rules.rules import checkpoints as rules
from nnxkit._facts import describe
from nnxkit._pytree import Pytree
from nnxkit._repr import amount, counted_as, held_by, sum_of
from nnxkit._rngs import Rngs, RngStream
from nnxkit._variable import Variable
from nnxkit.summary._progress import progress as progress
from nnxkit.summary._record import CallInfo as CallInfo
from nnxkit.summary._record import Recording, record
from nnxkit.summary._show import outline
from nnxkit.summary._table import Cell, Table, render

_NOTHING: Mapping[str, Any] = MappingProxyType({})


def filter_rng_streams(row: CallInfo) -> bool:
    """Whether a call is of something else than a random stream: what `tabulate` shows by default."""
    return not issubclass(row.type, RngStream | Rngs)


def tabulate(
    obj: Any,
    *input_args: Any,
    depth: int | None = None,
    method: str = "__call__",
    row_filter: Callable[[CallInfo], bool] = filter_rng_streams,
    table_kwargs: Mapping[str, Any] = _NOTHING,
    column_kwargs: Mapping[str, Any] = _NOTHING,
    console_kwargs: Mapping[str, Any] = _NOTHING,
    compute_flops: bool = False,
    compute_vjp_flops: bool = False,
    **input_kwargs: Any,
) -> str:
    """A table of the calls that a model makes. Nothing is computed, and the model stays as it is.

    Args:
        obj: the model, concrete or abstract.
        *input_args: arguments of the call; for arrays ``jax.ShapeDtypeStruct`` will do.
        depth: how deep in the model the modules lie that are shown; all if ``None``.
        method: the method to call.
        row_filter: which calls to show.
        table_kwargs: arguments of ``rich.table.Table``.
        column_kwargs: arguments of ``rich.table.Table.add_column``.
        console_kwargs: arguments of ``rich.console.Console``.
        compute_flops: whether to show the floating point operations of each call, as XLA counts them.
        compute_vjp_flops: whether to show those of each call with its derivative.
        **input_kwargs: keyword arguments of the call.

    Returns:
        the table; with colors if the standard output is a terminal.

    Raises:
        GraphError: ``obj`` is no module.
        ImportError: arguments for rich are given, and it is not installed.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> print(nnx.tabulate(nnx.Linear(2, 3, rngs=nnx.Rngs(0)), jnp.ones((1, 2))))  # doctest: +NORMALIZE_WHITESPACE
                              Linear Summary
    ┏━━━━━━┳━━━━━━━━┳━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━┓
    ┃ path ┃ type   ┃ inputs       ┃ outputs      ┃ Param                ┃
    ┡━━━━━━╇━━━━━━━━╇━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━┩
    │      │ Linear │ float32[1,2] │ float32[1,3] │ bias: float32[3]     │
    │      │        │              │              │ kernel: float32[2,3] │
    │      │        │              │              │                      │
    │      │        │              │              │ 9 (36 B)             │
    ├──────┼────────┼──────────────┼──────────────┼──────────────────────┤
    │      │        │              │ Total        │ 9 (36 B)             │
    └──────┴────────┴──────────────┴──────────────┴──────────────────────┘
    <BLANKLINE>
                         Total Parameters: 9 (36 B)
    """
    if not isinstance(obj, Pytree):
        raise rules.SUMMARY_OF_NON_MODULE.error(given=describe(obj))
    recording = record(obj, method, input_args, input_kwargs, flops=compute_flops, vjp_flops=compute_vjp_flops)
    rows = [row for row in recording.calls if row_filter(row)]
    if depth is not None:
        rows = [row for row in rows if len(recording.node_of(row)[0]) <= depth]
    counted = [name for name, shown in (("flops", compute_flops), ("vjp_flops", compute_vjp_flops)) if shown]
    totals = held_by(obj)
    types = sorted(totals, key=lambda cls: cls.__name__)
    before = ["path", "type", "inputs", "outputs", *counted]
    table = Table(
        title=f"{type(obj).__name__} Summary",
        columns=[*before, *(cls.__name__ for cls in types)],
        rows=[list(_cells(recording, row, counted, types)) for row in rows],
        totals=[*[""] * (len(before) - 1), "Total", *(amount(*totals[cls]) for cls in types)],
        caption=f"Total Parameters: {amount(*sum_of(totals))}",
    )
    return render(table, table_kwargs, column_kwargs, console_kwargs)


def _cells(recording: Recording, row: CallInfo, counted: list[str], types: list[type]) -> Iterator[Cell]:
    yield ["/".join(map(str, row.path))]
    yield [row.type.__name__]
    yield row.inputs_repr.split("\n")
    yield outline(row.outputs)
    for name in counted:
        count = getattr(row, name)
        yield ["" if count is None else f"{count:,}"]
    node = recording.node_of(row)[1]
    own = {name: value for name, value in vars(node).items() if isinstance(value, Variable)}
    held = held_by(node)
    for cls in types:
        mine = {name: variable for name, variable in own.items() if counted_as(type(variable)) is cls}
        lines = outline(mine) if mine else []
        total = [amount(*held[cls])] if cls in held else []
        yield [*lines, *([""] if lines and total else []), *total]
