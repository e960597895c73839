"""While no platform has told who its bot is, there is nothing to open, and nothing is used up."""

import httpx2
import pytest

from msgsvc_core.channels import Channel
from msgsvc_core.channels.failures import ChannelNotReady
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import Tenant


@pytest.fixture
def not_ready(service: Service, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> Channel:
    """A bot of the project, none of whose bots is ready."""

    def deep_link(_channel: Channel, _payload: str) -> str:
        raise ChannelNotReady("nobody knows who it is")

    found = service.channels.list_for_project(tenant.project.project_id)
    for channel in found:
        monkeypatch.setattr(type(channel), "deep_link", deep_link)
    return found[0]


async def test_it_is_unavailable_for_a_moment(
    client: httpx2.AsyncClient, not_ready: Channel
) -> None:
    session = await client.post("/v1/auth/session", json={"state": "x"})
    code = await client.get(f"/qr/{not_ready.key}/auth_x.svg")

    for answer in (session, code):
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
        assert int(answer.headers["Retry-After"]) > 0


async def test_it_takes_none_of_the_sessions_of_the_hour(
    client: httpx2.AsyncClient, not_ready: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(6):
        await client.post("/v1/auth/session", json={"state": "x"})
    monkeypatch.undo()

    answer = await client.post("/v1/auth/session", json={"state": "x"})

    assert answer.status_code == 201
