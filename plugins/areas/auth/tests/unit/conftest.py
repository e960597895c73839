"""A core with the plugin."""

from collections.abc import AsyncIterator

import pytest

from msgsvc_devkit import MemoryCore, memory_core


@pytest.fixture
async def core() -> AsyncIterator[MemoryCore]:
    async with memory_core(plugins=["auth"]) as core:
        yield core
