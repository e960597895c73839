"""Hundreds of clients that never finish what they send, and what the others notice of them."""

import socket
import statistics
import time
from contextlib import ExitStack
from math import inf
from pathlib import Path

import httpx2
import pytest

from tests.faults.conftest import Figure, Rounds
from tests.process import Deployment, Server

pytestmark = pytest.mark.faults

HALF_HEADS = 300
HALF_BODIES = 100

#: Seconds after which the slow ones are to be closed. In the short form they connect, and the others are
#: timed meanwhile, on a machine that other tests keep busy.
DEADLINE_S, SHORT_DEADLINE_S = 6.0, 15.0

#: Seconds by which they may be closed later. Whom nobody closes stays.
LATE_S, SHORT_LATE_S = 5.0, 60.0

#: What the others may notice: a machine with two cores has noise of its own, and more beside other tests. One
#: that waited for a slow one would wait for its deadline.
MOST_TIMES_SLOWER = 2.0
MOST_MORE_MS, SHORT_MOST_MORE_MS = 3.0, 150.0


@pytest.fixture
def deadline_s(rounds: Rounds) -> float:
    return rounds(short=SHORT_DEADLINE_S, long=DEADLINE_S)


@pytest.fixture
def deployment(tmp_path: Path, deadline_s: float) -> Deployment:
    made = Deployment(tmp_path)
    made.configure(
        'plugins = []\nchannels = {}\n[limits]\nrequests_per_minute = 1000000\n[log]\nlevel = "warning"\n'
    )
    # `configure` ends with the section [server].
    with made.config.open("a") as file:
        file.write(f"header_timeout_s = {deadline_s}\nbody_timeout_s = {deadline_s}\n")
    return made


def median_ms(server: Server, key: str, requests: int, most_s: float = inf) -> float:
    """The median time of an authenticated request that reads the database; no request begins after
    `most_s`."""
    times: list[float] = []
    until_s = time.perf_counter() + most_s
    with httpx2.Client(headers={"Authorization": f"Bearer {key}"}, timeout=30) as client:
        while len(times) < requests and time.perf_counter() < until_s:
            began = time.perf_counter()
            answer = client.get(f"{server.url}/v1/project")
            times.append((time.perf_counter() - began) * 1000)
            assert answer.status_code == 200
    return statistics.median(times)


def connect(server: Server, data: bytes) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    made = socket.create_connection((host, int(port)))
    made.sendall(data)
    return made


def seconds_until_closed(
    connections: list[socket.socket], began: float, most_s: float
) -> list[float]:
    """When each was ended by the server, in seconds since `began`. Raises `TimeoutError` after `most_s` in
    which nothing happened."""
    ended = []
    for connection in connections:
        connection.settimeout(most_s)
        try:
            while connection.recv(65536):
                pass
        except ConnectionResetError:
            pass
        ended.append(time.monotonic() - began)
    return ended


def test_clients_that_never_finish_are_closed_and_the_others_don_t_notice(
    deployment: Deployment, deadline_s: float, rounds: Rounds, figure: Figure
) -> None:
    requests = rounds(short=500, long=2000)
    key = deployment.create_key()
    half_head = b"POST /v1/send HTTP/1.1\r\nHost: a\r\nAuthorization: Bea"
    half_body = (
        f"POST /v1/subscribers/links HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n"
        'Content-Length: 1000\r\n\r\n{"tags": ['
    ).encode()
    with deployment.serving() as server, ExitStack() as stack:
        median_ms(server, key, requests)  # warms up
        alone_ms = median_ms(server, key, requests)
        began = time.monotonic()
        slow = [stack.enter_context(connect(server, half_head)) for _ in range(HALF_HEADS)]
        slow += [stack.enter_context(connect(server, half_body)) for _ in range(HALF_BODIES)]
        left_s = 2 / 3 * deadline_s - (time.monotonic() - began)
        beside_ms = median_ms(server, key, requests, left_s)
        measured_for_s = time.monotonic() - began
        late_s = rounds(short=SHORT_LATE_S, long=LATE_S)
        closed_s = seconds_until_closed(slow, began, deadline_s + late_s)
        # Whatever else the machine does may begin or end meanwhile.
        alone_ms = max(alone_ms, median_ms(server, key, requests))

    figure(
        f"{HALF_HEADS} half heads, {HALF_BODIES} half bodies",
        f"others {alone_ms:.2f} ms alone, {beside_ms:.2f} ms beside them; closed after "
        f"{min(closed_s):.1f}-{max(closed_s):.1f} s of {deadline_s}",
        alone_ms=alone_ms,
        beside_ms=beside_ms,
        closed_s=max(closed_s),
    )
    # All of them were there while the others were timed.
    assert measured_for_s < deadline_s - 1
    assert min(closed_s) > deadline_s - 1.5
    assert max(closed_s) < deadline_s + late_s
    most_more_ms = rounds(short=SHORT_MOST_MORE_MS, long=MOST_MORE_MS)
    assert beside_ms < max(MOST_TIMES_SLOWER * alone_ms, alone_ms + most_more_ms)
