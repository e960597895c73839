"""Pushed authorization requests."""

from dataclasses import replace

import pytest

from msgsvc_devkit.core import MemoryCore
from msgsvc_oidc.authorization.reading import RequestReader
from msgsvc_oidc.composition.records import Records
from msgsvc_oidc.composition.requests import Requests
from msgsvc_oidc.protocol.errors import OAuthError, RedirectError, UnusableRequest
from msgsvc_oidc.protocol.parameters import Parameters
from msgsvc_oidc.protocol.pushed import read_pushed
from plugins.areas.oidc.tests.unit.provider import CALLBACK, CLIENT, register

PUSHING = replace(CLIENT, require_pushed=True)

REQUEST = {"response_type": "code", "redirect_uri": CALLBACK, "scope": "openid", "state": "s"}


def parameters_of(**changed: str) -> Parameters:
    return Parameters(list({**REQUEST, **changed}.items()))


@pytest.fixture
def reader(without_database: MemoryCore) -> RequestReader:
    """Reads what needs no query."""
    records = Records(without_database)
    requests = Requests(without_database, records)
    return RequestReader(
        clients=records.clients, pushed=requests.pushed, expected=requests.expected
    )


async def test_the_client_gets_a_reference_that_tells_nothing_of_the_request(
    core: MemoryCore, requests: Requests
) -> None:
    async with core.db.transaction() as tx:
        client = await register(core, tx)
    asked = read_pushed(parameters_of(), client)
    pushed = await requests.pushed.push(client, asked)

    assert CALLBACK not in pushed.request_uri
    assert client.client_id not in pushed.request_uri
    assert await requests.pushed.take(client, pushed.request_uri) == asked


async def test_a_made_up_reference_costs_no_query(reader: RequestReader) -> None:
    made_up = Parameters([("request_uri", "urn:ietf:params:oauth:request_uri:x")])

    with pytest.raises(UnusableRequest, match="invalid_request_uri"):
        await reader.pushed(PUSHING, made_up)


async def test_a_request_without_a_reference_is_not_a_pushed_one(reader: RequestReader) -> None:
    assert await reader.pushed(PUSHING, parameters_of()) is None
    by_url = parameters_of(request_uri="https://a.example/")
    assert await reader.pushed(PUSHING, by_url) is None


async def test_a_client_that_must_push_is_refused_at_the_authorization_endpoint(
    reader: RequestReader,
) -> None:
    path = reader.return_path(PUSHING, parameters_of(response_mode="fragment"))

    with pytest.raises(RedirectError, match="must push"):
        await reader.read(PUSHING, parameters_of(), path.redirect_uri)

    assert (path.response_mode, path.state) == ("query", "s")


def test_a_pushed_request_can_name_no_other() -> None:
    with pytest.raises(OAuthError, match="can't be pushed"):
        read_pushed(parameters_of(request_uri="urn:x"), PUSHING)
