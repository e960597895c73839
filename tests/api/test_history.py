"""What happened with one person: messages and events together, page by page."""

import httpx2
import pytest

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.kernel.errors import BadRequest
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.fixtures import Tenant
from tests.api.conftest import Subscribe


@pytest.mark.both_databases
async def test_a_history_has_messages_and_events_newest_first_and_no_deliveries(
    service: Service,
    client: httpx2.AsyncClient,
    tenant: Tenant,
    subscribe: Subscribe,
    clock: FakeClock,
) -> None:
    ann, bob = await subscribe("Ann"), await subscribe("Bob")
    for number in range(3):
        clock.advance(1)
        await client.post("/v1/send", json={"subscriber_id": ann, "text": f"m{number}"})
        await client.post("/v1/send", json={"subscriber_id": bob, "text": "not hers"})
        clock.advance(1)
        await client.post("/v1/events", json={"subscriber_id": ann, "name": f"e{number}"})
    await settled(service)
    seen: list[str] = []
    cursor: str | None = ""
    async with service.db.read() as tx:
        while cursor is not None:
            page, cursor = await service.messages.history(
                tx, tenant.project.project_id, ann, PageQuery(limit=2, cursor=cursor or None)
            )
            for moment in page:
                if moment.message:
                    seen.append(moment.message.content.text)
                elif moment.event:
                    seen.append(moment.event.data.get("name", moment.event.name))
        with pytest.raises(BadRequest):
            await service.messages.history(
                tx, tenant.project.project_id, ann, PageQuery(cursor="bm9uZQ")
            )

    assert seen == ["e2", "m2", "e1", "m1", "e0", "m0", "subscription.created"]
