"""The dashboard's objects on a database in memory, and Ann, who has an account."""

from collections.abc import AsyncIterator

import pytest

from msgsvc_dashboard.accounts import Accounts
from msgsvc_devkit.core import MemoryCore, memory_core
from plugins.areas.dashboard.tests.unit.browsers import ANN
from plugins.areas.dashboard.tests.unit.signing import Ann


@pytest.fixture
async def core(request: pytest.FixtureRequest) -> AsyncIterator[MemoryCore]:
    """With the arguments of `memory_core` that an indirect parameter has."""
    arguments = getattr(request, "param", {})
    async with memory_core(plugins=["dashboard"], **arguments) as core:
        yield core


@pytest.fixture
async def ann(core: MemoryCore) -> Ann:
    """Without a password, and signed in nowhere."""
    async with core.db.transaction() as tx:
        account = await core.get(Accounts).create(tx, email=ANN.email, name=ANN.name)
    return Ann(core, account)
