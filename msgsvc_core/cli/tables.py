"""Tables of commands: for people in a terminal, and whole in a pipe."""

import sys
from collections.abc import Iterable, Sequence

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text


def show_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Writes rows under their columns. No cell is ever cut: ids are there to be copied."""
    if not sys.stdout.isatty():
        # Without a terminal rich takes 80 columns and folds, which scripts can't read.
        _show_plain([columns, *rows])
        return
    table = Table(box=None, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column == "id")
    for row in rows:
        # As `Text`, since a name may look like markup.
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def _show_plain(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())
