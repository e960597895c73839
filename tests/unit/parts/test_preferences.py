"""For how long links to preferences pages work, and for whom."""

from collections.abc import AsyncIterator

import pytest

from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.subscribers.preferences_links import LinkExpired
from msgsvc_devkit.core import PROJECT, MemoryCore, memory_core


@pytest.fixture
async def core() -> AsyncIterator[MemoryCore]:
    async with memory_core(base_url="https://msgsvc.test/", limits={"preferences_days": 2}) as core:
        yield core


async def test_a_link_names_one_person_for_its_days(core: MemoryCore) -> None:
    links = core.subscribers.preferences
    token = links.url(PROJECT, "sub_1").removeprefix("https://msgsvc.test/preferences/")
    core.clock.advance(2 * 24 * 3600)

    assert links.read(token) == (PROJECT, "sub_1")
    with pytest.raises(NotFound):
        links.read(token.replace("sub_1", "sub_2"))
    core.clock.advance(24 * 3600)
    with pytest.raises(LinkExpired):
        links.read(token)
