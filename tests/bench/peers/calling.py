"""Calls as quickly as a client makes them, so many at once, and what they cost.

Nothing here needs more than uvloop: peers run it in an environment of their own.
"""

import asyncio
import json
import resource
import ssl
import sys
import time
from collections.abc import Awaitable, Callable

import uvloop

Call = Callable[[int], Awaitable[object]]

#: Of the bot whose messages the fake platform takes.
TOKEN = "1:token"

#: Makes calls to the platform at a URL: how many, how many at once, of what text, over what TLS if any.
Calls = Callable[[str, int, int, str, "ssl.SSLContext | None"], Awaitable[dict[str, float]]]


async def timed(count: int, at_once: int, call: Call) -> dict[str, float]:
    """Makes `count` calls, `at_once` of them at a time: calls a second, the processor's µs of one."""
    left = iter(range(count))

    async def call_again_and_again() -> None:
        for number in left:
            await call(number)

    began, used = time.monotonic(), _used_s()
    await asyncio.gather(*(call_again_and_again() for _ in range(at_once)))
    per_s = count / (time.monotonic() - began)
    return {"per_s": per_s, "cpu_us": (_used_s() - used) * 1e6 / count}


def main(calls: Calls) -> None:
    """Of a script: makes the calls that its arguments ask for, and prints what they came to.

    The arguments are those of `calls`, with the path of a certificate to trust or nothing for TLS, and
    `uvloop` or `asyncio`.
    """
    url, count, at_once, text, trusted, loop = sys.argv[1:]
    tls = ssl.create_default_context(cafile=trusted) if trusted else None
    factory = {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}[loop]
    with asyncio.Runner(loop_factory=factory) as runner:
        found = runner.run(_awaited(calls(url, int(count), int(at_once), text, tls)))
    print(json.dumps(found))  # noqa: T201 - who started this process reads it


async def _awaited(found: Awaitable[dict[str, float]]) -> dict[str, float]:
    return await found


def _used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
