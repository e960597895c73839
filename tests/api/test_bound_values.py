"""Encrypted values that somebody moved within the database open nothing."""

import httpx2

from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import Tenant

KEY = {"Idempotency-Key": "the-first-key"}


async def test_an_answer_is_replayed_for_its_own_key_alone(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant
) -> None:
    body = {"name": "vip"}
    first = await client.post("/v1/tags", json=body, headers=KEY)
    async with service.db.transaction() as tx:
        sealed = service.secrets.encrypt('{"stolen": true}', ("core_idempotency.body", "x", "y"))
        await tx.execute("UPDATE core_idempotency SET body = :sealed", {"sealed": sealed})
    moved = await client.post("/v1/tags", json=body, headers=KEY)

    assert first.status_code == 201
    assert moved.status_code == 500
    assert "stolen" not in moved.text
