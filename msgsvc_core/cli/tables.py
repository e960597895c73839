"""Output tables of commands: wrapped to a terminal's width, and unwrapped elsewhere."""

import sys
from collections.abc import Sequence

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

#: Characters between two columns.
GAP = 2

#: Minimum width of the last column, in characters, for it to be wrapped.
MIN_LAST = 24


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints rows under their columns. No cell is truncated, so that ids can be copied.

    If the terminal is too narrow, the last column is wrapped; if even the other columns don't fit,
    lines are printed whole.
    """
    widths = [max(map(cell_len, column)) for column in zip(columns, *rows, strict=True)]
    console = Console()
    left = console.width - sum(widths[:-1]) - GAP * len(widths)
    if sys.stdout.isatty() and left >= min(MIN_LAST, widths[-1]):
        console.print(_folded(columns, rows))
    else:
        for row in (columns, *rows):
            typer.echo(_line(row, widths))


def _folded(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    *others, last = columns
    table = Table(box=None, header_style="bold", padding=(0, GAP, 0, 0))
    for column in others:
        table.add_column(column, no_wrap=True)
    table.add_column(last, overflow="fold")
    for row in rows:
        # As `Text`, since a name may look like markup.
        table.add_row(*map(Text, row))
    return table


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
    return (" " * GAP).join(cells).rstrip()
