"""Strangers' input is read in a process that can hang, crash and swell, and does no more harm than that."""

import asyncio
import math
import os
import time
from collections.abc import AsyncIterator

import pytest

from msgsvc_core.kernel import parser_process
from msgsvc_core.kernel.parser_process import ParserFailed, ParserProcess

#: Seconds of a call that is over at once.
SOON = 30.0


@pytest.fixture
async def parser() -> AsyncIterator[ParserProcess]:
    made = ParserProcess()
    yield made
    await made.close()


async def test_it_returns_what_the_function_returns_and_raises_what_it_raises(
    parser: ParserProcess,
) -> None:
    results = await asyncio.gather(*(parser.run(SOON, math.factorial, n) for n in range(5)))
    with pytest.raises(ValueError, match="math domain error"):
        await parser.run(SOON, math.sqrt, -1)

    assert results == [1, 1, 2, 6, 24]
    assert await parser.run(SOON, os.getpid) != os.getpid()


async def test_what_takes_too_long_is_ended(parser: ParserProcess) -> None:
    first = await parser.run(SOON, os.getpid)
    with pytest.raises(ParserFailed, match="could not be read within"):
        await parser.run(0.2, time.sleep, 60)

    assert await parser.run(SOON, os.getpid) != first
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


async def test_what_ends_the_process_fails_alone(parser: ParserProcess) -> None:
    with pytest.raises(ParserFailed, match="has ended"):
        await parser.run(SOON, os._exit, 1)

    assert await parser.run(SOON, math.factorial, 3) == 6


async def test_an_answer_that_nobody_waits_for_is_not_the_next_calls(parser: ParserProcess) -> None:
    await parser.run(SOON, os.getpid)
    call = asyncio.create_task(parser.run(SOON, time.sleep, 60))
    await asyncio.sleep(0.1)
    call.cancel()

    assert await parser.run(SOON, math.factorial, 4) == 24


async def test_it_knows_none_of_the_services_secrets(
    parser: ParserProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSGSVC_SECRET_KEYS", "a secret")

    assert await parser.run(SOON, os.getenv, "MSGSVC_SECRET_KEYS") is None


async def test_its_memory_is_bounded(parser: ParserProcess) -> None:
    with pytest.raises(MemoryError):
        await parser.run(SOON, bytes, parser_process.MAX_MEMORY_BYTES)


async def test_it_ends_when_it_is_idle(
    parser: ParserProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser_process, "IDLE_S", 0.01)
    first = await parser.run(SOON, os.getpid)
    await asyncio.sleep(0.1)

    assert await parser.run(SOON, os.getpid) != first
