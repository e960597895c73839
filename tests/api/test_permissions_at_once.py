"""/v1/permissions under requests that come at the same time."""

import asyncio
from collections import Counter

import httpx2
import pytest

from msgsvc_core.kernel.errors import PermissionHasSubscribers
from msgsvc_core.service import Service
from msgsvc_core.subscribers.permissions import Permissions
from msgsvc_devkit.fixtures import Tenant
from tests.api.test_permissions import make

pytestmark = pytest.mark.both_databases


@pytest.mark.database_file
async def test_nobody_who_grants_at_the_same_time_is_removed_unasked(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, ann: str
) -> None:
    project_id = tenant.project.project_id

    async def delete(key: str) -> bool:
        try:
            async with service.db.transaction() as tx:
                await service.get(Permissions).delete_confirmed(tx, project_id, key, 0)
        except PermissionHasSubscribers:
            return False
        return True

    for number in range(10):
        await make(client, f"p{number}")
        granted, removed = await asyncio.gather(
            client.put(f"/v1/subscribers/{ann}/permissions/p{number}"), delete(f"p{number}")
        )

        assert (granted.status_code, removed) in {(200, False), (404, True)}


@pytest.mark.database_file
async def test_requests_at_once_make_20_permissions_and_not_one_more(
    client: httpx2.AsyncClient,
) -> None:
    answers = await asyncio.gather(
        *[
            client.post("/v1/permissions", json={"key": f"p{number}", "title": "News"})
            for number in range(30)
        ]
    )

    assert Counter(answer.status_code for answer in answers) == {201: 20, 409: 10}


@pytest.mark.database_file
async def test_no_grant_is_lost_with_a_permission_that_is_removed_at_the_same_time(
    client: httpx2.AsyncClient, ann: str
) -> None:
    for number in range(10):
        await make(client, f"p{number}")
        granted, removed = await asyncio.gather(
            client.put(f"/v1/subscribers/{ann}/permissions/p{number}"),
            client.delete(f"/v1/permissions/p{number}"),
        )

        assert (granted.status_code, removed.status_code) in {(200, 409), (404, 204)}
