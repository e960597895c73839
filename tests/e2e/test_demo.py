"""`msgsvc demo` ends 0 if every step of its tour held, and only then."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest
from rich.console import Console
from typer.testing import CliRunner

from msgsvc_core.cli.main import app
from msgsvc_core.kernel.clock import from_rfc3339
from msgsvc_core.kernel.ids import creation_ms
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.demo import show
from msgsvc_devkit.demo.command import SITE
from msgsvc_devkit.demo.history import DAY_S, play_history
from msgsvc_devkit.demo.parts import Parts, held_port, running_parts
from msgsvc_devkit.demo.stage import StepFailed
from msgsvc_devkit.demo.tour import play

pytestmark = pytest.mark.slow

#: Seconds that the demo may take on a busy machine.
PATIENCE_S = patient(120)


def test_the_tour_holds_and_ends_by_itself_without_a_terminal() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "msgsvc_core", "demo"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "All 30 steps held" in ended.stdout
    assert ended.stdout.count("✓") == 30


async def test_the_past_is_played_by_the_service_itself(tmp_path: Path) -> None:
    days: list[int] = []

    async def play_past(parts: Parts) -> None:
        await play_history(parts.config, parts.api_key, 3, days.append)

    async with (
        running_parts(tmp_path, SITE, 0, 0, before=play_past) as parts,
        httpx2.AsyncClient(
            base_url=parts.service_url, headers={"Authorization": f"Bearer {parts.api_key}"}
        ) as api,
    ):
        people = (await api.get("/v1/subscribers")).json()["data"]
        messages = (await api.get("/v1/messages?limit=100")).json()["data"]
        events = (await api.get("/v1/events?limit=100")).json()["data"]

    assert days == [1, 2, 3]
    assert len(people) >= 3
    assert {"sent"} <= {message["status"] for message in messages}
    assert {"auth.completed", "drip.step_sent"} <= {event["event"] for event in events}
    first = min(person["created_at"] for person in people)
    # Three days ago, and its id says so too.
    assert time.time() - from_rfc3339(first) / 1000 == pytest.approx(3 * DAY_S, abs=PATIENCE_S)
    oldest = min(creation_ms(person["subscriber_id"]) for person in people)
    assert oldest == pytest.approx(from_rfc3339(first), abs=1000)


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])
def test_a_demo_whose_terminal_is_closed_leaves_nothing_behind(
    tmp_path: Path, ending: signal.Signals
) -> None:
    demo = subprocess.Popen(
        [sys.executable, "-u", "-m", "msgsvc_core", "demo", "--port", "0", "--site-port", "0"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    with demo:
        assert demo.stdout is not None
        while "✓" not in demo.stdout.readline():
            assert demo.poll() is None
        demo.send_signal(ending)
        demo.wait(PATIENCE_S)

    # The folder goes after the service and the site have ended.
    assert list(tmp_path.iterdir()) == []


async def test_a_tour_without_its_site_fails_at_the_step_that_needs_it(tmp_path: Path) -> None:
    async with running_parts(tmp_path, SITE, 0, 0) as parts:
        site = parts.processes["site"]
        site.terminate()
        await site.wait()

        with pytest.raises(StepFailed, match="Static link"):
            await play(Console(quiet=True), parts)


def test_a_step_that_does_not_hold_ends_the_demo_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_console: Console, _parts: Parts) -> None:
        raise StepFailed("at 'a step': expected 1, found 2")

    monkeypatch.setattr(show, "play", fail)

    ended = CliRunner().invoke(app, ["demo", "--tour-only", "--port", "0", "--site-port", "0"])

    assert ended.exit_code == 1
    assert "expected 1, found 2" in ended.output


def test_a_held_port_can_be_listened_on_and_is_another_for_the_next() -> None:
    with held_port(0) as port, socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", port))
        server.listen()
        with held_port(port) as other:
            pass

    assert 0 < port != other > 0
