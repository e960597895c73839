"""`msgsvc top`: tables for people, JSON for scripts, and keys on a terminal."""

import asyncio
import json
import os
import pty
import select
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from msgsvc_core.cli.figures import ORDERS, ChannelFigures, Figures, LaneFigures
from msgsvc_core.cli.top import FRAME_LINES, LEAST_ROWS, screen
from msgsvc_core.config.settings import load_settings
from msgsvc_core.jobs import NewJob
from msgsvc_core.service import Service
from msgsvc_devkit.deadlines import patient
from tests.forking import ForkedProcess

#: Seconds that the screen may take to show something.
PATIENCE_S = patient(30)


@pytest.fixture
def queued(config: Path) -> Path:
    """Lanes with jobs that nothing runs: 20 of one lane, and one in each of 30 others."""

    async def enqueue() -> None:
        service = Service(load_settings(config, env={}))
        await service.open_database()
        async with service.db.transaction() as tx:
            await service.jobs.enqueue(
                tx,
                *(NewJob("n", {}, lane="busy") for _ in range(20)),
                *(NewJob("n", {}, lane=f"webhook:{number:02}") for number in range(30)),
            )
        await service.db.disconnect()

    asyncio.run(enqueue())
    return config


@pytest.mark.parametrize(
    ("order", "first"),
    [("backlog", "a"), ("oldest", "b"), ("rate", "c"), ("dead", "d"), ("name", "a")],
)
def test_lanes_are_in_the_chosen_order(order: str, first: str) -> None:
    lanes = [
        LaneFigures("d", 0, 0, 0, 9, None, None, None),
        LaneFigures("c", 0, 0, 0, 0, None, 7, 0),
        LaneFigures("b", 1, 0, 0, 0, 60.0, 0, 0),
        LaneFigures("a", 5, 0, 0, 0, 1.0, 0, 0),
    ]

    assert min(lanes, key=ORDERS[order]).lane == first


def test_once_prints_totals_and_every_lane(run: Any, queued: Path) -> None:
    shown = run("top", "--once").stdout

    assert "0 processes running jobs" in shown
    assert "jobs: 50 ready, 0 delayed, 0 running, 0 dead" in shown
    assert "messages of the last minute: 0 sent, 0 failed" in shown
    rows = [line.split() for line in shown.splitlines()]
    assert ["busy", "20", "0", "0", "0", "s", "0"] in rows
    assert sum(row[:1] != [] and row[0].startswith("webhook:") for row in rows) == 30


def test_channels_in_trouble_come_first_with_their_reason() -> None:
    now_ms = 1_700_000_000_000
    channels = [
        ChannelFigures("max", "max", None, "working", "", None, None, "30 a second for the bot"),
        ChannelFigures(
            "telegram", "telegram", None, "stopped", "bot_banned", now_ms - 7_200_000, None, None
        ),
        ChannelFigures("x", "x", "prj_1", "paused", "asked to wait", None, now_ms + 30_000, None),
    ]
    console = Console(width=150, record=True, file=StringIO())
    figures = Figures(now_ms, "sqlite", 1, [], channels, sent=1200, failed=0)
    console.print(screen(figures, "backlog", width=150, most_rows=2))
    shown = console.export_text()

    rows = [line.split() for line in shown.splitlines()]
    assert rows[-3][:6] == ["telegram", "stopped", "since", "2", "h", "bot_banned"]
    assert rows[-2][:5] == ["x", "paused", "for", "30", "s"]
    assert rows[-2][-1] == "prj_1"
    assert ["and", "1", "more"] in rows
    assert "1 process running jobs" in shown
    assert "1,200 sent" in shown


def much(now_ms: int) -> Figures:
    """More lanes and channels than a screen has lines, with large figures and long texts."""
    hooks = [
        LaneFigures(f"webhook:whe_0354W0MhxiaK3eXGECn7{number:02}", 1, 8, 0, 0, 1.0, None, None)
        for number in range(30)
    ]
    pace = "30 a second for the bot, 1 a second for a chat, 20 a minute for a group"
    own = [
        ChannelFigures(f"chn_{number:02}", "shop", "prj_1", "working", "", None, None, pace)
        for number in range(30)
    ]
    since_ms, until_ms = now_ms - 7_200_000, now_ms + 3_540_000
    revoked = "bot_banned: Unauthorized: " + "its owner has revoked the token " * 5
    return Figures(
        now_ms,
        "postgresql",
        12,
        [LaneFigures("channel:telegram", 98_765, 1_234, 30, 56, 3_610.0, 1_800, 120), *hooks],
        [
            ChannelFigures("max", "max", None, "paused", "asked to wait", None, until_ms, pace),
            ChannelFigures("tg", "telegram", None, "stopped", revoked, since_ms, None, pace),
            *own,
        ],
        sent=123_456,
        failed=7_890,
    )


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 30), (200, 50)])
def test_a_screen_is_full_and_cuts_no_figure_and_no_status(width: int, height: int) -> None:
    console = Console(width=width, height=height, record=True, file=StringIO())
    rows = max(LEAST_ROWS, height - FRAME_LINES)
    console.print(screen(much(1_700_000_000_000), "backlog", width=width, most_rows=rows))
    lines = console.export_text().splitlines()

    # A problem and the keys stand below.
    assert height - 4 <= len(lines) <= height - 2
    assert max(map(len, lines)) <= width
    [busiest] = [line.split()[1:] for line in lines if line.startswith("channel:tele")]
    assert busiest == ["98,765", "1,234", "30", "1", "h", "1,800", "120", "56"]
    channels = [line for line in lines if line.startswith(("telegram", "max"))]
    assert [line.split()[1] for line in channels] == ["stopped", "paused"]
    assert "since 2 h" in channels[0]
    assert "for 59 min" in channels[1]
    hooks = {line.split()[0] for line in lines if line.startswith("webhook:")}
    assert len(hooks) == sum(line.startswith("webhook:") for line in lines), "ids can be told apart"


def test_lanes_get_the_lines_that_channels_do_not_need() -> None:
    console = Console(width=80, record=True, file=StringIO())
    lanes = [
        LaneFigures(f"webhook:{number:02}", 1, 0, 0, 0, 1.0, None, None) for number in range(30)
    ]
    channel = ChannelFigures("max", "max", None, "working", "", None, None, None)
    figures = Figures(1_700_000_000_000, "sqlite", 1, lanes, [channel], sent=0, failed=0)
    console.print(screen(figures, "backlog", width=80, most_rows=12))
    shown = console.export_text()

    assert shown.count("webhook:") == 11
    assert "and 19 more" in shown


def test_without_a_terminal_it_prints_once(run: Any, queued: Path) -> None:
    assert "jobs: 50 ready" in run("top").stdout


def test_scripts_get_json(run: Any, queued: Path) -> None:
    found = json.loads(run("top", "--json").stdout)

    assert found["jobs"] == {"ready": 50, "delayed": 0, "running": 0, "dead": 0}
    assert (found["database"], found["runners"]) == ("sqlite", 0)
    assert found["messages_last_minute"] == {"sent": 0, "failed": 0}
    [busy] = [lane for lane in found["lanes"] if lane["lane"] == "busy"]
    assert busy["ready"] == 20


def test_an_order_that_there_is_not_is_refused(run: Any, queued: Path) -> None:
    result = run("top", "--once", "--sort", "size")

    assert result.exit_code == 2
    assert "backlog, oldest, rate, dead, name" in result.stderr


def test_on_a_terminal_s_sorts_and_q_quits(queued: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "LINES": "24", "COLUMNS": "80"}
    process = ForkedProcess(["top", "--every", "60"], environment, Path(os.ttyname(theirs)))
    # Its other output is closed once it has the terminal.
    with process.stdout:
        process.stdout.read()
    os.close(theirs)
    try:
        first = _until(ours, "ready ▾")
        os.write(ours, b"s")
        second = _until(ours, "oldest ▾")
        os.write(ours, b"q")
        _until(ours, None)
        status = process.wait(PATIENCE_S)
    finally:
        process.kill()
        os.close(ours)

    assert "busy" in first
    assert "and 18 more" in first, "the screen shows as many lanes as it has lines for"
    assert "q quit" in first + second
    assert status == 0


def _until(terminal: int, text: str | None) -> str:
    """What is shown until a text is; None waits for the end."""
    shown, until_s = b"", time.monotonic() + PATIENCE_S
    while text is None or text.encode() not in shown or b"quit" not in shown:
        ready, _, _ = select.select([terminal], [], [], max(0, until_s - time.monotonic()))
        assert ready, f"not in time: {shown.decode(errors='replace')}"
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # EIO: nobody holds the other end any more.
            break
        if not piece:
            break
        shown += piece
    return shown.decode(errors="replace")
