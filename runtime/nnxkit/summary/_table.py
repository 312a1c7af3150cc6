"""The table of a summary: on paper with lines of box drawing, in a terminal with rich.

Both ways draw the same lines, so that what reads one reads the other. rich is needed only for its own options.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nnx_rules.records import Record

Cell = Sequence[str]
"""The lines of a cell."""

_DTYPE = re.compile(r"\b[a-z]+[0-9]\w*(?=\[)|\bbool(?=\[)|key<\w+>(?=\[)")


class Table(Record):
    """A title, columns, rows, sums below them, and a line at the end."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    totals: Sequence[str]
    caption: str


def render(
    table: Table, table_kwargs: Mapping[str, Any], column_kwargs: Mapping[str, Any], console_kwargs: Mapping[str, Any]
) -> str:
    """The table as text; with colors where it goes to a terminal.

    Args:
        table: the table.
        table_kwargs: arguments of ``rich.table.Table``.
        column_kwargs: arguments of ``rich.table.Table.add_column``.
        console_kwargs: arguments of ``rich.console.Console``.

    Raises:
        ImportError: arguments for rich are given, and it is not installed.
    """
    asks_for_rich = bool(table_kwargs or column_kwargs or console_kwargs)
    if not (asks_for_rich or sys.stdout.isatty()):
        return plain(table)
    try:
        return _rich(table, table_kwargs, column_kwargs, console_kwargs)
    except ImportError as error:
        if asks_for_rich:
            raise ImportError("table_kwargs, column_kwargs and console_kwargs need rich: pip install rich") from error
        return plain(table)


def plain(table: Table) -> str:
    """The table as lines of text."""
    rows = [*table.rows, [[total] for total in table.totals]]
    widths = [
        max([len(column), *(len(line) for row in rows for line in row[index])])
        for index, column in enumerate(table.columns)
    ]
    total = sum(widths) + 3 * len(widths) + 1

    def rule(left: str, line: str, cross: str, right: str) -> str:
        return left + cross.join(line * (width + 2) for width in widths) + right

    def content(row: Sequence[Cell], bar: str) -> Iterator[str]:
        for index in range(max(1, *map(len, row))):
            cells = (cell[index] if index < len(cell) else "" for cell in row)
            yield bar + bar.join(f" {cell:<{width}} " for cell, width in zip(cells, widths, strict=True)) + bar

    lines = [table.title.center(total).rstrip(), rule("┏", "━", "┳", "┓")]
    lines += content([[column] for column in table.columns], "┃")
    lines.append(rule("┡", "━", "╇", "┩"))
    for index, row in enumerate(rows):
        if index:
            lines.append(rule("├", "─", "┼", "┤"))
        lines += content(row, "│")
    lines += [rule("└", "─", "┴", "┘"), "", table.caption.center(total).rstrip(), ""]
    return "\n".join(lines)


def _rich(
    table: Table, table_kwargs: Mapping[str, Any], column_kwargs: Mapping[str, Any], console_kwargs: Mapping[str, Any]
) -> str:
    import rich.console
    import rich.table
    import rich.text

    def styled(lines: Cell) -> rich.text.Text:
        text = rich.text.Text("\n".join(lines))
        text.highlight_regex(_DTYPE, "dim")
        return text

    drawn = rich.table.Table(
        **{
            "title": table.title,
            "caption": f"\n{table.caption}",
            "caption_style": "bold",
            "show_header": True,
            "show_lines": True,
            "show_footer": True,
            **table_kwargs,
        }
    )
    for column, total in zip(table.columns, table.totals, strict=True):
        drawn.add_column(column, footer=total, **column_kwargs)
    for row in table.rows:
        drawn.add_row(*map(styled, row))
    is_terminal = sys.stdout.isatty()
    options: dict[str, Any] = {"force_terminal": is_terminal, **({} if is_terminal else {"width": 10_000})}
    options |= console_kwargs
    console = rich.console.Console(**{"file": io.StringIO(), **options})
    with console.capture() as captured:
        console.print(drawn)
    return captured.get()
