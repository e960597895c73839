"""The plugin's real parts on a database in memory, with Ann, a customer."""

from collections.abc import AsyncIterator

import pytest

from msgsvc_devkit import MemoryCore

from .desk import Billing, helpdesk


@pytest.fixture
def billing() -> Billing:
    return Billing()


@pytest.fixture
async def core(billing: Billing) -> AsyncIterator[MemoryCore]:
    async with helpdesk(billing) as core:
        yield core
