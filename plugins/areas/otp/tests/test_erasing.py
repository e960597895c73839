"""A person who is erased while a code of theirs is checked."""

import asyncio
from typing import Any

import httpx2
import pytest

from msgsvc_core.db import Tx
from msgsvc_core.service import Service
from msgsvc_otp.models import VerifyOtpBody
from msgsvc_otp.service import OneTimeCodes

#: Seconds, far beyond what a busy machine takes.
PATIENCE_S = 30


async def somebody_waits(tx: Tx) -> None:
    """Returns once another transaction of this database waits for a lock."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if await tx.fetch_val(
                "SELECT COUNT(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            ):
                return
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
@pytest.mark.parametrize("named_by", ["otp_id", "subscriber_id"])
async def test_erasure_and_a_check_do_not_wait_for_each_other(
    service: Service,
    client: httpx2.AsyncClient,
    tenant: Any,
    ann: Any,
    ann_id: str,
    send: Any,
    named_by: str,
) -> None:
    """On SQLite, where one transaction writes at a time, neither waits inside of one."""
    who = {"otp_id": await send(), "subscriber_id": ann_id}
    codes, project_id = service.get(OneTimeCodes), tenant.project.project_id
    body = VerifyOtpBody(code=ann.wrong, **{named_by: who[named_by]})
    async with service.db.transaction() as tx:
        await codes.verify(tx, project_id, body)
        erasure = asyncio.create_task(client.delete(f"/v1/subscribers/{ann_id}?erase=true"))
        await somebody_waits(tx)
        # Changes the code once more, as the end of each check does.
        await codes.verify(tx, project_id, body)

    assert (await erasure).status_code == 204
    assert (await client.get(f"/v1/otp/{who['otp_id']}")).status_code == 404
