"""What a browser costs that waits for its sign-in: memory for each idle long poll."""

import asyncio
import resource
import time
from collections.abc import Sequence
from typing import cast
from urllib.parse import urlsplit

from msgsvc_auth.models import MAX_WAIT_S
from tests.bench.report import Bound, Finding
from tests.bench.run import BenchError, Run
from tests.bench.servers import Setup, cpu_s, memory_mib, started_service
from tests.bench.status import PLUGINS, SECTIONS, open_sessions
from tests.process import Server

MOST_KIB = Bound(most=20)

#: Polls that are held before, so that what is needed once is not counted.
FIRST = 50

#: Connections that are opened at a time; a listener's queue is no longer than this.
AT_ONCE = 100

#: Seconds over which CPU time is watched while all polls wait.
WATCH_S = 4

#: Memory is settled when it has not grown by more than this in a second.
STEADY_MIB = 0.25


def polls(run: Run) -> list[Finding]:
    """Every poll asks for a session of its own and waits as long as it may."""
    number = run.options.polls
    allow_open_files(number + FIRST + 200)
    run.tell("starting the server", total=number)
    setup = Setup("sqlite", plugins=PLUGINS, sections=SECTIONS)
    with started_service(run, setup) as service:
        ids = open_sessions(service, number + FIRST)
        paths = [f"/v1/auth/session/{id_}/status?wait={MAX_WAIT_S}" for id_ in ids]
        key = service.sends.api_key
        kib, cores = asyncio.run(_measured(run, service.server, key, paths))
    name = f"{number:,} idle long polls"
    return [
        Finding(f"{name}: KiB each", kib, bound=MOST_KIB, alone=True),
        Finding(f"{name}: % of a core", None if cores is None else cores * 100, alone=True),
    ]


async def _measured(
    run: Run, server: Server, key: str, paths: Sequence[str]
) -> tuple[float, float | None]:
    """KiB for each of the polls but the first, and the cores that all of them keep busy."""
    run.tell("polls: the first")
    first = await _hold(run, server, key, paths[:FIRST])
    before = await settled(server)
    run.tell("polls: opening them")
    others = await _hold(run, server, key, paths[FIRST:])
    run.tell("polls: all held")
    after = await settled(server)
    cores = await _cores(server)
    for poll in [*first, *others]:
        if poll.received and not poll.received.startswith(b"HTTP/1.1 200"):
            raise BenchError(f"a poll was answered with {poll.received[:500]!r}")
        if poll.lost:
            raise BenchError("a poll's connection was closed")
    if any(poll.received for poll in others):
        raise BenchError("polls were answered before all of them were held")
    for poll in [*first, *others]:
        poll.close()
    return (after - before) * 1024 / len(others), cores


class _Poll(asyncio.Protocol):
    """One connection, with one request."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.received = b""
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Kept, for a transport that nobody holds is closed.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True

    def close(self) -> None:
        self._transport.abort()


async def _hold(run: Run, server: Server, key: str, paths: Sequence[str]) -> list[_Poll]:
    parts = urlsplit(server.url)
    loop = asyncio.get_running_loop()
    held = [
        _Poll(
            f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
            f"Authorization: Bearer {key}\r\n\r\n".encode()
        )
        for path in paths
    ]
    for start in range(0, len(held), AT_ONCE):
        some = held[start : start + AT_ONCE]
        connecting = (
            loop.create_connection(lambda poll=poll: poll, parts.hostname, parts.port)
            for poll in some
        )
        await asyncio.gather(*connecting)
        run.advance(len(some))
    return held


async def settled(server: Server) -> float:
    """MiB, once the server has read what was sent and its memory stays."""
    ends_at = time.monotonic() + MAX_WAIT_S / 2
    found = memory_mib(server)
    while time.monotonic() < ends_at:
        await asyncio.sleep(1)
        before, found = found, memory_mib(server)
        if found - before < STEADY_MIB:
            break
    return found


async def _cores(server: Server) -> float | None:
    """CPU time for each second of the clock; None where the system does not tell."""
    began_s, before_s = time.monotonic(), cpu_s(server)
    await asyncio.sleep(WATCH_S)
    after_s, passed_s = cpu_s(server), time.monotonic() - began_s
    return None if before_s is None or after_s is None else (after_s - before_s) / passed_s


def allow_open_files(number: int) -> None:
    """For this process and those it starts. Raises `BenchError` where the system forbids it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= number:
        return
    if hard != resource.RLIM_INFINITY and hard < number:
        raise BenchError(f"{number} open files are needed, and {hard} allowed; see ulimit -Hn")
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
