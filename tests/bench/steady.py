"""Requests at a steady rate, whatever the answers take: so many a second, evenly spread.

A request's time is counted from when it was due. A client that waits for each answer would send less
while the service is slow, and not notice.
"""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvloop

from tests.bench.load import Request
from tests.bench.run import BenchError

#: Connections that take turns: a slow answer holds up its own connection's next request alone.
CONNECTIONS = 32


def times_ms(request: Request, *, per_s: int, seconds: int) -> list[float]:
    """What each request took, made from a process of its own. Raises `BenchError` if one failed."""
    asked = [request.url, str(request.lines), request.api_key, str(per_s), str(seconds)]
    printed = subprocess.run(
        [sys.executable, "-m", "tests.bench.steady", *asked],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found: dict[str, Any] = json.loads(printed)
    if found["failed"]:
        raise BenchError(f"{found['failed']} of {len(found['times_ms'])} requests failed")
    return list(found["times_ms"])


def at(part: float, ordered_ms: list[float]) -> float:
    """The percentile, e.g. 0.99, of what is in order."""
    return ordered_ms[min(len(ordered_ms) - 1, int(len(ordered_ms) * part))]


async def _generate(
    url: str, lines: list[bytes], api_key: str, per_s: int, seconds: int
) -> dict[str, Any]:
    parts = urlsplit(url)
    head = (
        f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {api_key}\r\n"
        "Content-Type: application/json\r\nContent-Length: "
    ).encode()
    took_ms: list[float] = []
    failed = 0
    began = time.perf_counter() + 0.1

    async def use_connection(first: int) -> None:
        nonlocal failed
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        for number in range(first, per_s * seconds, CONNECTIONS):
            due = began + number / per_s
            await asyncio.sleep(due - time.perf_counter())
            body = lines[number % len(lines)]
            writer.write(b"%s%d\r\n\r\n%s" % (head, len(body), body))
            answer = await reader.readuntil(b"\r\n\r\n")
            length = answer.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
            took_ms.append((time.perf_counter() - due) * 1000)
            failed += not answer.startswith(b"HTTP/1.1 2")
        writer.close()

    await asyncio.gather(*(use_connection(first) for first in range(CONNECTIONS)))
    return {"failed": failed, "times_ms": took_ms}


def main() -> None:
    url, lines, api_key, per_s, seconds = sys.argv[1:]
    bodies = Path(lines).read_bytes().splitlines()
    found = uvloop.run(_generate(url, bodies, api_key, int(per_s), int(seconds)))
    print(json.dumps(found))  # noqa: T201 - its answer to who started it


if __name__ == "__main__":
    main()
