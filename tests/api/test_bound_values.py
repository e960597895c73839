"""Encrypted values that somebody moved within the database open nothing."""

import httpx2
import pytest

from msgsvc_core.db import Tx
from msgsvc_core.security import DecryptionError
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import Tenant
from tests.accounts.people import new_account

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


async def test_a_second_factor_counts_for_its_own_account_alone(service: Service) -> None:
    ann, eve = await new_account(service), await new_account(service, "eve@x.example")
    async with service.db.transaction() as tx:
        for account in (ann, eve):
            await service.second_factor.offer(tx, account)
        sealed = await _secret(tx, eve.account_id)
        await tx.execute(
            "UPDATE core_accounts SET totp_secret = :sealed WHERE account_id = :account_id",
            {"sealed": sealed, "account_id": ann.account_id},
        )

    async with service.db.read() as tx:
        assert await service.second_factor.offered(tx, eve.account_id) is not None
        with pytest.raises(DecryptionError, match="another row"):
            await service.second_factor.offered(tx, ann.account_id)


async def _secret(tx: Tx, account_id: str) -> str:
    return str(
        await tx.fetch_val(
            "SELECT totp_secret FROM core_accounts WHERE account_id = :account_id",
            {"account_id": account_id},
        )
    )
