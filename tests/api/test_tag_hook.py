"""Plugins are told of tags that somebody did not carry, in the transaction of the change."""

from collections.abc import Sequence

import httpx2
import pytest

from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.subscribing import Subscribe


class Listening:
    """A plugin that remembers what it was told, or fails."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, list[str]]] = []
        self.fails = False

    @hookimpl
    async def on_tags_added(self, project_id: str, subscriber_id: str, tags: Sequence[str]) -> None:
        if self.fails:
            raise RuntimeError("a plugin with a fault")
        self.told.append((project_id, subscriber_id, sorted(tags)))


@pytest.fixture
def listening() -> Listening:
    return Listening()


@pytest.fixture
async def service(make_service: ServiceFactory, listening: Listening) -> Service:
    return await make_service(extra_plugins=[("listening", listening)])


async def test_new_tags_are_told_of_once_by_whatever_path(
    client: httpx2.AsyncClient, tenant: Tenant, subscribe: Subscribe, listening: Listening
) -> None:
    await client.post("/v1/tags", json={"name": "shop"})
    ann = await subscribe("Ann", tags=["shop"])
    await subscribe("Ann", tags=["shop"])
    path = f"/v1/subscribers/{ann}"
    for _ in range(2):
        await client.put(f"{path}/tags/vip")
    await client.patch(path, json={"tags": ["vip", "gold", "new"]})
    await client.patch("/v1/tags/gold", json={"name": "silver"})
    await client.delete(f"{path}/tags/vip")
    await client.put(f"{path}/tags/vip")

    tags = [["shop"], ["vip"], ["gold", "new"], ["vip"]]
    assert listening.told == [(tenant.project.project_id, ann, each) for each in tags]


async def test_tag_is_not_given_if_a_plugin_fails(
    client: httpx2.AsyncClient, subscribe: Subscribe, listening: Listening
) -> None:
    ann = await subscribe("Ann")
    listening.fails = True
    answer = await client.put(f"/v1/subscribers/{ann}/tags/vip")

    assert answer.status_code == 500
    assert (await client.get(f"/v1/subscribers/{ann}")).json()["tags"] == []
