"""The plugin's real parts on a database in memory."""

from collections.abc import AsyncIterator

import pytest

from msgsvc_devkit import MemoryCore, memory_core


@pytest.fixture
async def core() -> AsyncIterator[MemoryCore]:
    async with memory_core(plugins=["drip"]) as core:
        yield core
