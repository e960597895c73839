"""A service whose time stands still, with one resource of every kind."""

from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio

from msgsvc_devkit import settled
from msgsvc_devkit.clock import FakeClock
from tests.e2e.furnished import Furnished, furnished
from tests.pictures.pages import Pictured, pictured

#: What the service has besides: the messenger in the browser.
MORE = {"channels": {"sandbox_a": {"plugin": "sandbox"}}, "plugins": ("sandbox",)}

#: What was made is that old.
MINUTES = 10


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Furnished]:
    clock = FakeClock()
    async with furnished(tmp_path_factory.mktemp("pictures"), clock=clock, more=MORE) as made:
        # It is written once a minute, which a run may take or not.
        await made.service.projects.key_uses.write()
        # What pages say of times is then the same each time: all was made at once, ten minutes ago.
        clock.advance(MINUTES * 60)
        await settled(made.service)
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pages(place: Furnished) -> Sequence[Pictured]:
    return await pictured(place)
