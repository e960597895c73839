"""The provider's real parts on a database in memory."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from msgsvc_core.db import Database
from msgsvc_devkit import FakeClock
from msgsvc_devkit.core import MemoryCore, memory_core
from msgsvc_devkit.memory import MEMORY_URL
from msgsvc_oidc.composition.records import Records
from msgsvc_oidc.composition.requests import Requests
from plugins.areas.oidc.tests.conftest import FAST_KEYS
from plugins.areas.oidc.tests.sign_ins import ScriptedSignIns
from plugins.areas.oidc.tests.unit.provider import BASE_URL


@pytest.fixture
async def core(
    request: pytest.FixtureRequest, sign_ins: ScriptedSignIns, clock: FakeClock
) -> AsyncIterator[MemoryCore]:
    """With the settings of `[oidc]` that an indirect parameter has."""
    settings = {**FAST_KEYS, **getattr(request, "param", {})}
    others = [("signing", sign_ins)]
    async with memory_core(
        plugins=["oidc"], extra_plugins=others, clock=clock, base_url=BASE_URL, oidc=settings
    ) as core:
        yield core


@pytest.fixture
def records(core: MemoryCore) -> Records:
    return Records(core)


@pytest.fixture
def requests(core: MemoryCore, records: Records) -> Requests:
    return Requests(core, records)


@pytest.fixture
def without_database(core: MemoryCore) -> MemoryCore:
    """A core whose database can't be reached: what needs it raises."""
    return replace(core, db=Database(MEMORY_URL))
