"""Load over HTTP: a few requests in turn, over many connections.

`wrk` makes it where it is installed, else a generator of our own, in a process of its own as well.
Either way one generator serves all measurements of a run, so that ratios compare.
"""

import asyncio
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import count, cycle
from pathlib import Path
from typing import Literal, cast
from urllib.parse import urlsplit

import uvloop

_LUA = Path(__file__).with_name("requests.lua")

#: Seconds between two calls of `tick`.
_TICK_S = 0.1


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent: the lines of a file in turn, with an API key.

    A line is the body of a POST to `url`, or the path of a GET at the host of `url`. `fresh_keys`
    gives every request an Idempotency-Key of its own. `basic` is sent instead of the key: a name and a
    password in base64.
    """

    url: str
    lines: Path
    api_key: str
    method: Literal["GET", "POST"] = "POST"
    fresh_keys: bool = False
    media_type: str = "application/json"
    basic: str | None = None

    @property
    def authorization(self) -> str:
        """The header."""
        return f"Bearer {self.api_key}" if self.basic is None else f"Basic {self.basic}"


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
        "LOAD_LINES": str(request.lines),
        "LOAD_AUTHORIZATION": request.authorization,
        "LOAD_TYPE": request.media_type,
        "LOAD_METHOD": request.method,
    }
    if request.fresh_keys:
        environment["LOAD_RUN"] = secrets.token_hex(8)
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


def _requests(url: str) -> Iterator[bytes]:
    """The lines in turn, each as a whole request."""
    parts = urlsplit(url)
    method, run = os.environ["LOAD_METHOD"], os.environ.get("LOAD_RUN")
    common = f"Host: {parts.netloc}\r\nAuthorization: {os.environ['LOAD_AUTHORIZATION']}\r\n"
    pairs: list[tuple[bytes, bytes]] = []
    for line in Path(os.environ["LOAD_LINES"]).read_text().splitlines():
        path, body = (line, b"") if method == "GET" else (parts.path, line.encode())
        head = f"{method} {path} HTTP/1.1\r\n{common}"
        if method == "POST":
            head += f"Content-Type: {os.environ['LOAD_TYPE']}\r\nContent-Length: {len(body)}\r\n"
        pairs.append((head.encode(), b"\r\n" + body))
    numbers = count()
    for head_bytes, rest in cycle(pairs):
        key = f"Idempotency-Key: {run}-{next(numbers)}\r\n".encode() if run else b""
        yield head_bytes + key + rest


async def _generate(connections: int, seconds: float, url: str) -> Load:
    parts = urlsplit(url)
    # Both come from `listens on`.
    assert parts.hostname
    assert parts.port
    host, port = parts.hostname, parts.port
    requests = _requests(url)
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
