"""The plugin's real parts on a database in memory."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit import MemoryCore, memory_core


class Meanwhile:
    """A billing plugin, which is asked after messages to one person are read and before they are written."""

    def __init__(self) -> None:
        self.happens: Callable[[], Awaitable[object]] | None = None

    @hookimpl
    async def check_operation(self, project_id: str, operation: str, tx: Tx | None) -> None:
        if self.happens is not None:
            happens, self.happens = self.happens, None
            await happens()


@pytest.fixture
def meanwhile() -> Meanwhile:
    return Meanwhile()


@pytest.fixture
async def core(meanwhile: Meanwhile) -> AsyncIterator[MemoryCore]:
    plugins = [("meanwhile", meanwhile)]
    settings = {"batch": 2, "kept_days": 7}
    async with memory_core(
        plugins=["scheduling"], extra_plugins=plugins, scheduling=settings
    ) as core:
        yield core
