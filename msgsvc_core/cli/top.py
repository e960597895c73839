"""`msgsvc top`: what the service is doing now, live in the terminal."""

import asyncio
import json
import os
import sys
import termios
import time
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.channels.project_channels.sync import ChannelSync
from msgsvc_core.cli.configuration import ConfigOption, opened
from msgsvc_core.cli.figures import ORDERS, ChannelFigures, Figures, FiguresReader, LaneFigures
from msgsvc_core.cli.projects import Json
from msgsvc_core.db import DatabaseUnavailable
from msgsvc_core.service import Service
from msgsvc_core.telemetry.explanations import duration, moment

T = TypeVar("T")

#: Default seconds between two refreshes.
EVERY_S = 2.0

#: How many times longer than its queries took the next refresh is waited for, at least: `top` keeps the
#: database busy for no more than a tenth of the time.
REST = 9

#: Lines of the screen that are not rows: the head, the tables' headings and gaps, a problem, the keys.
FRAME_LINES = 11

#: Rows of both tables on a small screen, at least.
LEAST_ROWS = 6

#: Characters of a line that the figures of a lane take.
LANE_FIGURES_WIDTH = 60

#: Characters of a line from which the channels' table has room for the pace, and for projects.
PACE_WIDTH = 110
PROJECT_WIDTH = 140

QUIT = "q"
KEYS = "q quit   s sort by the next column   space refresh"

#: The worst first.
STATUSES = ("stopped", "unavailable", "not receiving", "paused", "working")
STATUS_STYLES = {"working": "green", "paused": "yellow", "not receiving": "yellow"}


@dataclass(slots=True)
class _View:
    """What was chosen by keys."""

    order: str
    pressed: asyncio.Queue[str] = field(default_factory=asyncio.Queue)


def _check_order(order: str) -> str:
    if order not in ORDERS:
        raise typer.BadParameter(f"is one of {', '.join(ORDERS)}")
    return order


def top(
    every: Annotated[
        float, typer.Option("--every", min=0.5, help="Seconds between two refreshes.")
    ] = EVERY_S,
    sort: Annotated[
        str,
        typer.Option(
            "--sort", callback=_check_order, help=f"Order of the lanes: {', '.join(ORDERS)}."
        ),
    ] = "backlog",
    once: Annotated[bool, typer.Option("--once", help="Print the figures once and exit.")] = False,
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """Show lanes, channels, jobs and messages of the last minute, refreshed until q is pressed.

    Reads the database alone, so it shows all processes together. Without a terminal it prints the figures
    once, as --once and --json do.
    """
    is_live = not (once or as_json) and sys.stdin.isatty() and sys.stdout.isatty()
    if is_live:
        asyncio.run(_watch(config, every, _View(sort)))
        return
    figures = asyncio.run(_read_once(config))
    if as_json:
        typer.echo(json.dumps(figures.to_plain(), ensure_ascii=False))
        return
    console = Console()
    if not console.is_terminal:
        # Lines of a pipe or file are not wrapped.
        console = Console(width=200)
    console.print(screen(figures, sort, width=console.width, most_rows=None))


async def _read_once(config: Path | None) -> Figures:
    async with opened(config) as service:
        return await (await _reader(service)).read()


async def _reader(service: Service) -> FiguresReader:
    # Channels of projects are in the database.
    await service.get(ChannelSync).refresh()
    return FiguresReader(
        clock=service.clock,
        db=service.db,
        events=service.events,
        channels=service.channels,
        states=service.get(ChannelStates),
    )


async def _watch(config: Path | None, every_s: float, view: _View) -> None:
    """Refreshes the screen until q is pressed. While the database is away the last figures stay, with the
    reason."""
    console = Console()
    figures: Figures | None = None
    async with opened(config) as service:
        reader = await _reader(service)
        with _keys(view.pressed), Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                began_s, problem = time.monotonic(), ""
                try:
                    figures = await reader.read()
                except DatabaseUnavailable as error:
                    problem = f"the database can't be used: {error}"
                took_s = time.monotonic() - began_s
                if not await _show(live, console, figures, problem, view, every_s, took_s):
                    return


async def _show(
    live: Live,
    console: Console,
    figures: Figures | None,
    problem: str,
    view: _View,
    every_s: float,
    took_s: float,
) -> bool:
    """Shows the figures until the next refresh; False once q is pressed."""
    until_s = time.monotonic() + max(every_s - took_s, took_s * REST)
    while True:
        most_rows = max(LEAST_ROWS, console.height - FRAME_LINES)
        shown = (
            []
            if figures is None
            else [screen(figures, view.order, width=console.width, most_rows=most_rows)]
        )
        keys = [_cut(problem, "bold red"), Text(KEYS, style="dim")]
        live.update(Group(*shown, *keys), refresh=True)
        try:
            async with asyncio.timeout(max(0, until_s - time.monotonic())):
                key = await view.pressed.get()
        except TimeoutError:
            return True
        if key == QUIT:
            return False
        if key == " ":
            return True
        if key == "s":
            orders = [*ORDERS]
            view.order = orders[(orders.index(view.order) + 1) % len(orders)]


@contextmanager
def _keys(pressed: asyncio.Queue[str]) -> Iterator[None]:
    """Puts each key that is pressed into a queue, without waiting for Enter."""
    descriptor, loop = sys.stdin.fileno(), asyncio.get_running_loop()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)

    def read() -> None:
        # Not by `sys.stdin`, which keeps what it has read beyond one key. Nothing: the terminal was closed.
        for key in os.read(descriptor, 64).decode(errors="replace") or QUIT:
            pressed.put_nowait(key)

    loop.add_reader(descriptor, read)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


# ---- what is seen -------------------------------------------------------------------------------


def screen(figures: Figures, order: str, *, width: int, most_rows: int | None) -> Group:
    """The figures as two tables of up to `most_rows` rows together, None shows all, in lines of `width`
    characters."""
    lanes = sorted(figures.lanes, key=ORDERS[order])
    channels = sorted(figures.channels, key=lambda each: (STATUSES.index(each.status), each.key))
    lane_rows, channel_rows = len(lanes), len(channels)
    if most_rows is not None:
        # Half of the screen each, and what the one does not need for the other.
        channel_rows = min(channel_rows, max(most_rows // 2, most_rows - lane_rows))
        lane_rows = most_rows - channel_rows
    return Group(
        _head(figures),
        Text(),
        _lanes(lanes[:lane_rows], order, width),
        _more(lanes, lane_rows),
        _channels(channels[:channel_rows], figures.at_ms, width),
        _more(channels, channel_rows),
    )


def _head(figures: Figures) -> Text:
    runners = figures.runners
    return Text.assemble(
        ("msgsvc top", "bold"),
        f"  {moment(figures.at_ms)}  {figures.database}  ",
        (
            f"{runners} process{'' if runners == 1 else 'es'} running jobs",
            "" if runners else "bold red",
        ),
        "\n",
        f"jobs: {figures.total('ready'):,} ready, {figures.total('delayed'):,} delayed,"
        f" {figures.total('running'):,} running, ",
        (f"{figures.total('dead'):,} dead", "red" if figures.total("dead") else ""),
        f"\nmessages of the last minute: {figures.sent:,} sent, ",
        (f"{figures.failed:,} failed", "red" if figures.failed else ""),
    )


#: The columns of lanes, and by which of them `ORDERS` sorts.
LANE_COLUMNS = (
    ("lane", "name"),
    ("ready", "backlog"),
    ("delayed", ""),
    ("running", ""),
    ("oldest", "oldest"),
    ("sent", "rate"),
    ("failed", ""),
    ("dead", "dead"),
)


def _lanes(lanes: Sequence[LaneFigures], order: str, width: int) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title, sorts in LANE_COLUMNS:
        is_sorted = sorts == order
        table.add_column(
            f"{title} ▾" if is_sorted else title,
            justify="left" if title == "lane" else "right",
            # Only what may wrap is narrowed: names are cut, figures never are.
            no_wrap=title != "lane",
        )
    for lane in lanes:
        table.add_row(
            _cut(_shortened(lane.lane, width - LANE_FIGURES_WIDTH)),
            f"{lane.ready:,}",
            f"{lane.delayed:,}",
            f"{lane.running:,}",
            "" if lane.oldest_s is None else duration(round(lane.oldest_s * 1000)),
            "" if lane.sent is None else f"{lane.sent:,}",
            "" if lane.failed is None else f"{lane.failed:,}",
            Text(f"{lane.dead:,}", style="red" if lane.dead else ""),
        )
    return table


def _channels(channels: Sequence[ChannelFigures], now_ms: int, width: int) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    titles = ["channel", "status", "time", "detail"]
    titles += ["pace"] if width >= PACE_WIDTH else []
    titles += ["project"] if width >= PROJECT_WIDTH else []
    for title in titles:
        table.add_column(title, no_wrap=title in {"status", "time", "project"})
    for channel in channels:
        cells = {
            "channel": _cut(channel.name),
            "status": Text(channel.status, style=STATUS_STYLES.get(channel.status, "bold red")),
            "time": Text(_time(channel, now_ms)),
            "detail": _cut(channel.detail),
            "pace": _cut(channel.pace or ""),
            "project": Text(channel.project_id or ""),
        }
        table.add_row(*(cells[title] for title in titles))
    return table


def _shortened(lane: str, limit: int) -> str:
    """A lane with its beginning and its end: ids that were made together differ in their last characters."""
    if len(lane) <= limit:
        return lane
    end = limit // 2
    return f"{lane[: limit - end - 1]}…{lane[-end:]}"


def _cut(text: str, style: str = "") -> Text:
    """A text that gets an ellipsis where there is no room for all of it, and never a second line."""
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _time(channel: ChannelFigures, now_ms: int) -> str:
    if channel.until_ms is not None:
        return f"for {duration(channel.until_ms - now_ms)}"
    return "" if channel.since_ms is None else f"since {duration(now_ms - channel.since_ms)}"


def _more(rows: Sequence[T], most_rows: int) -> Text:
    left = len(rows) - most_rows
    return Text(f"and {left:,} more" if left > 0 else "", style="dim")
