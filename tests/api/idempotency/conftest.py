"""A service with endpoints whose effects can be counted."""

import pytest

from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory
from tests.api.idempotency.effects import CountEffects, Effects


@pytest.fixture
def effects() -> Effects:
    return Effects()


@pytest.fixture
async def service(make_service: ServiceFactory, effects: Effects) -> Service:
    return await make_service(extra_plugins=[("effects", effects)])


@pytest.fixture
def count_effects(service: Service) -> CountEffects:
    """How many effects were committed."""

    async def count() -> int:
        async with service.db.read() as tx:
            return int(await tx.fetch_val("SELECT COUNT(*) FROM core_tags"))

    return count
