"""Signing secrets outlive the key of ours that encrypted them."""

from collections.abc import Callable
from typing import Any

import pytest

from msgsvc_core.security import verify
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_webhooks import plugin

OLD_KEY = "the-first-key-for-tests-only-the-first-key"
NEW_KEY = "another-key-for-tests-only-another-key"
HERE = {"allow_http": True, "allow_cidrs": ["127.0.0.0/8"]}


@pytest.mark.both_databases
async def test_secrets_are_encrypted_anew_within_the_hour_so_that_an_old_key_may_go(
    make_service: ServiceFactory, make_tenant: Any, receiver: Any, clock: FakeClock
) -> None:
    async def start(*keys: str, **settings: Any) -> Any:
        return await make_service(
            extra_plugins=[("webhooks", plugin)], webhooks=HERE, secret_keys=keys, **settings
        )

    first = await start(OLD_KEY)
    tenant = await make_tenant(first)
    webhook = (await tenant.client.post("/v1/webhooks", json={"url": receiver.url})).json()
    url = first.settings.database_url
    await first.stop()
    both = await start(NEW_KEY, OLD_KEY, database_url=url)
    clock.advance(3601)
    await settled(both)
    await both.stop()

    last = await start(NEW_KEY, database_url=url)
    async with last.db.transaction() as tx:
        fields = {"name": "visit", "properties": {}}
        await last.events.emit(tx, tenant.project.project_id, "event.tracked", fields)
    await settled(last)

    [request] = receiver.received
    assert verify(request.body, request.headers["X-Service-Signature"], webhook["secret"])


async def test_a_secret_that_no_key_reads_is_left_as_it_is(
    make_webhook_service: Callable[..., Any], make_tenant: Any, clock: FakeClock
) -> None:
    service = await make_webhook_service()
    client = (await make_tenant(service)).client
    await client.post("/v1/webhooks", json={"url": "http://127.0.0.1:9/"})
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE webhooks_secrets SET encrypted = 'lost'")

    clock.advance(3601)
    await settled(service)

    async with service.db.read() as tx:
        assert await tx.fetch_val("SELECT encrypted FROM webhooks_secrets") == "lost"
        assert await tx.fetch_val("SELECT COUNT(*) FROM core_jobs WHERE state = 'dead'") == 0
