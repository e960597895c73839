"""A person with a browser, and clients with every scope, as the conformance suite registers them."""

import pytest

SCOPES = ["openid", "profile", "email", "phone", "offline_access"]


@pytest.fixture
async def rp(register):
    """The suite's first client."""
    return await register(name="Client 1", scopes=SCOPES)


@pytest.fixture
async def second_rp(register):
    """The suite's second client, which sends its secret in the form."""
    return await register(
        name="Client 2", scopes=SCOPES, token_endpoint_auth_method="client_secret_post"
    )
