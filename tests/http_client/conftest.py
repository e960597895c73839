"""A DNS that answers what the test wants, and another event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
import uvloop

from tests.unit.security.conftest import answer_dns

__all__ = ["answer_dns"]

OnUvloop = Callable[[Coroutine[Any, Any, None]], Awaitable[None]]


@pytest.fixture
def on_uvloop() -> OnUvloop:
    """Runs a coroutine under uvloop, in a thread of its own."""

    async def run(scenario: Coroutine[Any, Any, None]) -> None:
        await asyncio.to_thread(uvloop.run, scenario)

    return run
