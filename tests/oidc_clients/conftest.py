"""The providers against which the clients are run."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.oidc_clients.ours import our_provider
from tests.oidc_clients.provider import Provider
from tests.oidc_clients.reference.stand_in import reference_provider


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=["reference", "msgsvc"])
async def provider(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Provider]:
    """A provider for the tests of a process. Each test registers clients of its own."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "reference":
        with reference_provider(folder) as reference:
            yield reference
    else:
        async with our_provider(folder) as ours:
            yield ours
