"""An installation that serves the API alone: nobody signs in, and nothing of signing in is there."""

import httpx2
import pytest

from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import Tenant

#: What tables of accounts would be named by.
OF_ACCOUNTS = ("account", "session", "audit", "password", "totp")


async def test_it_has_no_tables_of_accounts(service: Service) -> None:
    asked = (
        "SELECT name FROM sqlite_master WHERE type = 'table'"
        if service.db.dialect == "sqlite"
        else "SELECT table_name AS name FROM information_schema.tables"
        " WHERE table_schema = current_schema()"
    )
    async with service.db.read() as tx:
        tables = {row["name"] for row in await tx.fetch_all(asked)}

    assert "core_projects" in tables
    assert [name for name in tables if any(word in name for word in OF_ACCOUNTS)] == []


@pytest.mark.both_databases
async def test_projects_belong_to_the_operator_and_keys_change_their_members(
    service: Service, tenant: Tenant, client: httpx2.AsyncClient
) -> None:
    project_id = tenant.project.project_id
    body = {"name": "Ann", "email": "ann@shop.example", "role": "agent"}
    added = (await client.post("/v1/members", json=body)).json()
    path = f"/v1/members/{added['member_id']}"
    promoted = await client.patch(path, json={"role": "owner", "name": "Ann Lee"})
    removed = await client.delete(path)

    assert (promoted.status_code, promoted.json()["role"]) == (200, "owner")
    assert removed.status_code == 204
    async with service.db.read() as tx:
        assert await service.projects.owner_of(tx, project_id) is None
        assert await service.billing.plan_of(tx, project_id) is None
        assert await service.accounts.page(tx, "", None, 10) == ()
        with pytest.raises(NotFound, match="no loaded plugin keeps any"):
            await service.accounts.find_by_email(tx, "ann@shop.example")


async def test_no_page_signs_in(client: httpx2.AsyncClient) -> None:
    pages = [await client.get(path) for path in ("/dashboard", "/dashboard/sign-in")]

    assert [page.status_code for page in pages] == [404, 404]
