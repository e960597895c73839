"""A Synapse for the tests of a process, and a bot on it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.synapse.homeserver import Homeserver, User, homeserver


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def synapse(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Homeserver]:
    async with homeserver(tmp_path_factory.mktemp("synapse")) as found:
        yield found


@pytest.fixture
async def bot(synapse: Homeserver) -> User:
    return await synapse.user("shop")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def ann(synapse: Homeserver) -> User:
    return await synapse.user("ann")
