"""Messages that are entered into the index by subscriber, and those that are not yet: one list."""

import httpx2

from msgsvc_core.messages.indexing import JOB, file_all
from msgsvc_core.service import Service
from tests.api.conftest import Send
from tests.api.subscribing import Subscribe


async def unfiled(service: Service) -> int:
    if service.db.dialect == "postgresql":
        return 0
    async with service.db.read() as tx:
        return int(
            await tx.fetch_val("SELECT COUNT(*) AS count FROM core_messages WHERE filed IS NULL")
        )


async def listed(client: httpx2.AsyncClient, **query: str) -> list[str]:
    answer = await client.get("/v1/messages", params=query)
    assert answer.status_code == 200, answer.text
    return [message["message_id"] for message in answer.json()["data"]]


async def test_a_subscribers_messages_are_one_list_before_and_after_they_are_filed(
    service: Service, client: httpx2.AsyncClient, ann: str, subscribe: Subscribe, send: Send
) -> None:
    first = [await send(text="1"), await send(text="2")]
    await send(subscriber_id=await subscribe("Bob"), text="to somebody else")
    assert await listed(client, subscriber_id=ann) == first[::-1]

    await file_all(service.db)
    assert await unfiled(service) == 0
    assert await listed(client, subscriber_id=ann) == first[::-1]

    newest_first = [await send(text="3"), *first[::-1]]
    assert await listed(client, subscriber_id=ann) == newest_first
    assert await listed(client, subscriber_id=ann, limit="2") == newest_first[:2]


def test_a_job_files_on_sqlite_alone(service: Service) -> None:
    assert (JOB in {spec.name for spec in service.job_specs}) == (service.db.dialect == "sqlite")
