"""The plugin's real parts on a database in memory, between a billing and a helpdesk that record."""

from collections.abc import AsyncIterator

import pytest

from msgsvc_devkit.core import MemoryCore, memory_core
from plugins.areas.forms.tests.unit.order import BASE_URL, Desk, Till


@pytest.fixture
def till() -> Till:
    """The billing of `core`."""
    return Till()


@pytest.fixture
def desk() -> Desk:
    """The helpdesk of `core`."""
    return Desk()


@pytest.fixture
async def core(request: pytest.FixtureRequest, till: Till, desk: Desk) -> AsyncIterator[MemoryCore]:
    """With the settings of `[forms]` that an indirect parameter has."""
    settings = getattr(request, "param", {})
    others = [("till", till), ("desk", desk)]
    async with memory_core(
        plugins=["forms"], extra_plugins=others, base_url=BASE_URL, forms=settings
    ) as core:
        yield core
