"""Load over HTTP: POSTs of a few bodies in turn, over many connections.

`wrk` makes it where it is installed, else a generator of our own, in a process of its own as well.
Either way one generator serves all measurements of a run, so that ratios compare.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import uvloop

_LUA = Path(__file__).with_name("post.lua")

#: Seconds between two calls of `tick`.
_TICK_S = 0.1


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent: the lines of the file `bodies` in turn, with an API key."""

    url: str
    bodies: Path
    api_key: str


@dataclass(frozen=True, slots=True)
class Load:
    """What came of it. `failed` counts answers other than 2xx, and connections that broke."""

    requests: int
    failed: int
    seconds: float
    p50_ms: float
    p99_ms: float

    @property
    def per_s(self) -> float:
        return self.requests / self.seconds


def generator_name() -> str:
    """What makes the load on this machine."""
    return "wrk" if shutil.which("wrk") else "asyncio"


def put_load(
    request: Request, *, connections: int, seconds: int, tick: Callable[[float], None]
) -> Load:
    """Keeps all connections busy for `seconds`; calls `tick` with the seconds that have passed."""
    if wrk := shutil.which("wrk"):
        how = [wrk, "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout=10s", "-s", str(_LUA)]
    else:
        how = [sys.executable, __file__, str(connections), str(seconds)]
    environment = {
        **os.environ,
        "LOAD_BODIES": str(request.bodies),
        "LOAD_KEY": request.api_key,
    }
    with subprocess.Popen(
        [*how, request.url], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        before = time.monotonic()
        while process.poll() is None:
            time.sleep(_TICK_S)
            now = time.monotonic()
            tick(now - before)
            before = now
        assert process.stdout is not None
        printed = process.stdout.read()
    assert process.returncode == 0, printed
    return Load(**json.loads(printed.splitlines()[-1]))


class _Connection(asyncio.Protocol):
    """One connection: the next request goes out when the answer to the last is complete."""

    def __init__(self, requests: Iterator[bytes], latencies_s: list[float]) -> None:
        self._requests = requests
        self._latencies_s = latencies_s
        self._received = b""
        self._sent_at = 0.0
        self.failed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are of no class of asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(body) >= length:
            self._latencies_s.append(time.perf_counter() - self._sent_at)
            self.failed += not head.startswith(b"HTTP/1.1 2")
            self._received = b""
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        self.failed += error is not None

    def _send(self) -> None:
        self._sent_at = time.perf_counter()
        self._transport.write(next(self._requests))


async def _generate(connections: int, seconds: float, url: str) -> Load:
    parts = urlsplit(url)
    assert parts.hostname and parts.port  # noqa: PT018 - both come from `listens on`
    host, port = parts.hostname, parts.port
    head = (
        f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        f"Authorization: Bearer {os.environ['LOAD_KEY']}\r\n"
        "Content-Type: application/json\r\nContent-Length: "
    )
    bodies = Path(os.environ["LOAD_BODIES"]).read_bytes().splitlines()  # noqa: ASYNC240 - once
    requests = cycle([f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies])
    latencies_s: list[float] = []
    made = [_Connection(requests, latencies_s) for _ in range(connections)]
    waiting = iter(made)
    loop = asyncio.get_running_loop()
    started = time.perf_counter()
    for _ in range(connections):
        await loop.create_connection(lambda: next(waiting), host, port)
    await asyncio.sleep(seconds)
    spent_s = time.perf_counter() - started
    ordered = sorted(latencies_s)
    assert ordered, "no request was answered"
    return Load(
        requests=len(ordered),
        failed=sum(connection.failed for connection in made),
        seconds=spent_s,
        p50_ms=ordered[len(ordered) // 2] * 1000,
        p99_ms=ordered[len(ordered) * 99 // 100] * 1000,
    )


def main() -> None:
    connections, seconds, url = sys.argv[1:]
    load = uvloop.run(_generate(int(connections), float(seconds), url))
    print(json.dumps(asdict(load)))  # noqa: T201 - its answer to who started it


if __name__ == "__main__":
    main()
