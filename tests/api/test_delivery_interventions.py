"""What becomes of a message whose job an operator takes in hand."""

import json
from typing import Any

import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.kernel.errors import Conflict
from msgsvc_core.messages.batches.service import Batches
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory

ANN = ChannelUser("ann", "Ann", None, "en")


@pytest.fixture
async def quiet(make_service: ServiceFactory) -> Service:
    return await make_service(jobs={"runner": "none"})


async def _queued(service: Service) -> tuple[str, str]:
    """The project and the batch of a message to Ann."""
    project_id = (await service.projects.create("Shop")).project_id
    async with service.db.transaction() as tx:
        ann = await service.subscribers.ensure(
            tx, project_id, "messenger_a", ANN, "chat-ann", source="api"
        )
    body = {"subscriber_id": ann.subscriber_id, "text": "Hi"}
    return project_id, (await service.get(Batches).send(project_id, [body])).batch_id


async def _value(service: Service, sql: str) -> Any:
    async with service.db.read() as tx:
        return await tx.fetch_val(sql)


async def _job_id(service: Service) -> str:
    return str(await _value(service, "SELECT job_id FROM core_jobs WHERE name = 'message.deliver'"))


async def _die(quiet: Service, make_service: ServiceFactory) -> Service:
    """A service that has buried the job, as one that had killed each of its runners."""
    async with quiet.db.transaction() as tx:
        await tx.execute("UPDATE core_jobs SET deliveries = 100")
    service = await make_service(database_url=quiet.settings.database_url)
    await settled(service)
    return service


async def test_a_message_whose_job_is_discarded_has_failed(quiet: Service) -> None:
    project_id, batch_id = await _queued(quiet)
    job_id = await _job_id(quiet)
    async with quiet.db.transaction() as tx:
        await quiet.job_admin.discard(tx, job_id)

    async with quiet.db.read() as tx:
        batch = await quiet.get(Batches).find(tx, project_id, batch_id)
        rows = await tx.fetch_all("SELECT name, data FROM core_events ORDER BY name")
        message = await tx.fetch_one("SELECT status, error FROM core_messages")
    assert message is not None
    assert message["status"] == "failed"
    assert message["error"] == "the service could not deliver it"
    assert (batch.failed, batch.finished_at_ms is not None) == (1, True)
    told = {row["name"]: json.loads(row["data"]) for row in rows}
    assert told["delivery.failed"]["reason"] == "unknown"
    assert told["batch.completed"]["batch_id"] == batch_id


async def test_a_message_that_has_failed_is_not_sent_by_a_retry_of_its_job(
    quiet: Service, make_service: ServiceFactory
) -> None:
    await _queued(quiet)
    service = await _die(quiet, make_service)
    job_id = await _job_id(service)

    with pytest.raises(Conflict, match=r"its message is final.*sends a new message"):
        async with service.db.transaction() as tx:
            await service.job_admin.retry(tx, job_id)

    assert await _value(service, "SELECT state FROM core_jobs WHERE name LIKE 'm%r'") == "dead"


async def test_a_message_that_is_gone_is_not_sent_by_a_retry_of_its_job(
    quiet: Service, make_service: ServiceFactory
) -> None:
    await _queued(quiet)
    service = await _die(quiet, make_service)
    job_id = await _job_id(service)
    async with service.db.transaction() as tx:
        await tx.execute("DELETE FROM core_messages")

    with pytest.raises(Conflict, match="its message no longer exists"):
        async with service.db.transaction() as tx:
            await service.job_admin.retry(tx, job_id)


async def test_a_message_that_could_not_be_settled_is_sent_by_a_retry_of_its_job(
    quiet: Service, make_service: ServiceFactory
) -> None:
    await _queued(quiet)
    job_id = await _job_id(quiet)
    async with quiet.db.transaction() as tx:
        # As if the database had refused what `on_dead` wrote.
        await tx.execute("UPDATE core_jobs SET state = 'dead'")
        await quiet.job_admin.retry(tx, job_id)
    service = await make_service(database_url=quiet.settings.database_url)
    await settled(service)

    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    assert [sent.message.text for sent in channel.sent] == ["Hi"]
    assert await _value(service, "SELECT status FROM core_messages") == "sent"
