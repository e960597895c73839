"""A core with the plugin, and the account that owns its project."""

from collections.abc import AsyncIterator

import pytest

from msgsvc_dashboard.accounts import Accounts
from msgsvc_devkit import MemoryCore, memory_core
from msgsvc_devkit.core import PROJECT


@pytest.fixture
async def core() -> AsyncIterator[MemoryCore]:
    prices = {"auth.confirmed": 1, "otp.send": 3}
    async with memory_core(plugins=["billing", "dashboard"], billing={"prices": prices}) as core:
        async with core.db.transaction() as tx:
            accounts = core.get(Accounts)
            ann = await accounts.create(tx, email="ann@shop.example", name="Ann")
            await accounts.give_project(tx, PROJECT, ann.account_id)
        yield core
