"""The providers against which the clients are run."""

from collections.abc import Iterator

import pytest

from tests.oidc_clients.provider import Provider
from tests.oidc_clients.reference.stand_in import reference_provider


@pytest.fixture(scope="session", params=["reference"])
def provider(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Provider]:
    """A provider for the tests of a process. Each test registers clients of its own."""
    with reference_provider(tmp_path_factory.mktemp("reference")) as reference:
        yield reference
