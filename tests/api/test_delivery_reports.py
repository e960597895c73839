"""What platforms report of messages that they have accepted: delivered, read, or failed after all."""

from dataclasses import replace
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import ChannelUser, DeliveryReported, Reason
from msgsvc_core.mailings import Audience, MailingMessage, NewMailing
from msgsvc_core.messages import store
from msgsvc_core.messages.reports import ATTEMPTS
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import Tenant
from tests.api.reading import events_named
from tests.api.subscribing import Subscribe

pytestmark = pytest.mark.both_databases

CHANNEL = "messenger_a"


@pytest.fixture
async def ann(subscribe: Subscribe, service: Service, channel: RecordingChannel) -> str:
    found = await subscribe("Ann")
    await settled(service)
    channel.sent.clear()
    channel.capabilities = replace(
        channel.capabilities, repeatable=True, reports=frozenset({"delivered", "read"})
    )
    return found


def report(ref: str, state: Any, **fields: Any) -> DeliveryReported:
    update_id = fields.pop("update_id", f"{ref}:{state}")
    return DeliveryReported(update_id=update_id, message_ref=ref, state=state, **fields)


async def send(client: httpx2.AsyncClient, service: Service, ann: str) -> tuple[str, str]:
    """A message that was sent: its id, and the platform's."""
    answer = await client.post("/v1/send", json={"subscriber_id": ann, "text": "Hi"})
    assert answer.status_code == 202, answer.text
    await settled(service)
    message_id = answer.json()["message_id"]
    return message_id, f"m-{message_id}"


async def shown(client: httpx2.AsyncClient, message_id: str) -> dict[str, Any]:
    return dict((await client.get(f"/v1/messages/{message_id}")).json())


async def test_a_message_is_delivered_and_then_read(
    service: Service, client: httpx2.AsyncClient, ann: str, clock: FakeClock
) -> None:
    message_id, ref = await send(client, service, ann)
    before = await shown(client, message_id)
    clock.advance(60)
    await service.inbound.receive(CHANNEL, report(ref, "delivered"))
    delivered = await shown(client, message_id)
    at_ms = clock.now_ms()
    clock.advance(60)
    await service.inbound.receive(CHANNEL, report(ref, "read", at_ms=at_ms + 1000))
    read = await shown(client, message_id)

    assert (before["delivered_at"], before["read_at"]) == (None, None)
    assert delivered["delivered_at"] is not None
    assert delivered["read_at"] is None
    assert read == {**delivered, "read_at": read["read_at"]}
    assert delivered["delivered_at"] < read["read_at"]
    (event,) = await events_named(client, "delivery.delivered")
    assert (event["message_id"], event["subscriber_id"]) == (message_id, ann)
    assert event["delivered_at"] == delivered["delivered_at"]
    (event,) = await events_named(client, "delivery.read")
    assert (event["message_id"], event["read_at"]) == (message_id, read["read_at"])


async def test_what_was_read_has_arrived_and_a_late_report_of_that_changes_nothing(
    service: Service, client: httpx2.AsyncClient, ann: str, clock: FakeClock
) -> None:
    message_id, ref = await send(client, service, ann)
    await service.inbound.receive(CHANNEL, report(ref, "read"))
    read = await shown(client, message_id)
    clock.advance(60)
    for state in ("delivered", "read", "failed"):
        await service.inbound.receive(CHANNEL, report(ref, state, update_id=f"again {state}"))

    assert read["delivered_at"] == read["read_at"] is not None
    assert await shown(client, message_id) == read
    for name in ("delivery.delivered", "delivery.read"):
        assert len(await events_named(client, name)) == 1
    assert await events_named(client, "delivery.failed") == []


async def test_a_failure_that_is_reported_later_corrects_the_message_once(
    service: Service, client: httpx2.AsyncClient, ann: str
) -> None:
    message_id, ref = await send(client, service, ann)
    failed = report(ref, "failed", reason=Reason.CHAT_NOT_FOUND, detail="no such number")
    await service.inbound.receive(CHANNEL, failed)
    await service.inbound.receive(CHANNEL, replace(failed, update_id="again"))
    await service.inbound.receive(CHANNEL, report(ref, "delivered"))
    message = await shown(client, message_id)

    assert (message["status"], message["reason"]) == ("failed", "chat_not_found")
    assert message["error"] == "no such number"
    assert message["delivered_at"] is None
    (event,) = await events_named(client, "delivery.failed")
    assert (event["message_id"], event["should_unsubscribe"]) == (message_id, True)
    subscriber = (await client.get(f"/v1/subscribers/{ann}")).json()
    assert subscriber["status"] != "active"


async def test_a_batch_counts_what_failed_later_and_completes_once(
    service: Service, client: httpx2.AsyncClient, ann: str
) -> None:
    messages = [{"subscriber_id": ann, "text": "1"}, {"subscriber_id": ann, "text": "2"}]
    answer = (await client.post("/v1/send/batch", json={"messages": messages})).json()
    await settled(service)
    listed = (await client.get(f"/v1/messages?batch_id={answer['batch_id']}")).json()["data"]
    ref = f"m-{listed[0]['message_id']}"
    await service.inbound.receive(CHANNEL, report(ref, "failed"))
    batch = (await client.get(f"/v1/batches/{answer['batch_id']}")).json()

    assert (batch["sent"], batch["failed"], batch["unknown"]) == (1, 1, 0)
    assert len(await events_named(client, "batch.completed")) == 1


async def test_a_mailing_counts_what_failed_later(
    service: Service, tenant: Tenant, ann: str, channel: RecordingChannel
) -> None:
    project_id = tenant.project.project_id
    async with service.db.transaction() as tx:
        new = NewMailing("broadcasts", MailingMessage(text="Hi"), Audience(all=True))
        mailing = await service.mailings.start(tx, project_id, new)
    await settled(service)
    (sent,) = channel.sent
    failed = report(sent.message_ref, "failed", detail="no such number")
    await service.inbound.receive(CHANNEL, failed)
    async with service.db.read() as tx:
        found = await service.mailings.find(tx, project_id, mailing.job_id)
        row = await tx.fetch_one("SELECT status, error FROM core_recipients", {})

    assert (found.sent, found.failed, found.unknown) == (0, 1, 0)
    assert row is not None
    assert (row["status"], row["error"]) == ("failed", "no such number")


async def test_a_report_that_comes_before_the_answer_of_the_call_is_recorded_later(
    service: Service, client: httpx2.AsyncClient, ann: str, clock: FakeClock
) -> None:
    answer = await client.post(
        "/v1/send", json={"subscriber_id": ann, "text": "Hi", "metadata": {"n": 1}}
    )
    message_id = answer.json()["message_id"]
    ref = "m-early"
    await settled(service)
    await service.inbound.receive(CHANNEL, report(ref, "delivered"))
    clock.advance(2)
    await settled(service)
    early = await shown(client, message_id)
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE core_messages SET message_ref = :ref", {"ref": ref})
    clock.advance(10)
    await settled(service)
    later = await shown(client, message_id)

    assert early["delivered_at"] is None
    assert later["delivered_at"] is not None
    (event,) = await events_named(client, "delivery.delivered")
    assert event["metadata"] == {"n": 1}


async def test_a_report_of_no_message_of_a_project_is_given_up_in_silence(
    service: Service, client: httpx2.AsyncClient, ann: str, clock: FakeClock
) -> None:
    await service.inbound.receive(CHANNEL, report("of a reply", "read"))
    for _ in range(ATTEMPTS + 1):
        clock.advance(300)
        await settled(service)
    async with service.db.read() as tx:
        left = await tx.fetch_val(
            "SELECT COUNT(*) FROM core_jobs WHERE name = 'message.report'", {}
        )

    assert left == 0
    assert await events_named(client, "delivery.read") == []


async def test_a_report_with_a_chat_is_only_about_the_message_there(
    service: Service, client: httpx2.AsyncClient, ann: str
) -> None:
    message_id, ref = await send(client, service, ann)
    await service.inbound.receive(
        CHANNEL, report(ref, "delivered", chat_id="elsewhere", user=ChannelUser("x", "X"))
    )
    elsewhere = await shown(client, message_id)
    await service.inbound.receive(
        CHANNEL, report(ref, "delivered", chat_id="chat-Ann", update_id="here")
    )

    assert elsewhere["delivered_at"] is None
    assert (await shown(client, message_id))["delivered_at"] is not None


async def test_a_report_is_no_sign_that_the_user_wrote(
    service: Service, client: httpx2.AsyncClient, ann: str, clock: FakeClock
) -> None:
    _, ref = await send(client, service, ann)
    wrote_ms = await service.inbound.last_update_ms(CHANNEL, "chat-Ann")
    clock.advance(60)
    await service.inbound.receive(CHANNEL, report(ref, "read", chat_id="chat-Ann"))

    assert await service.inbound.last_update_ms(CHANNEL, "chat-Ann") == wrote_ms


async def test_a_report_of_everything_up_to_a_message_is_of_each_before_it_once(
    service: Service, client: httpx2.AsyncClient, ann: str, clock: FakeClock
) -> None:
    sent = []
    for _ in range(4):
        sent.append(await send(client, service, ann))
        clock.advance(60)
    await service.inbound.receive(CHANNEL, report(sent[0][1], "read"))
    of_ann = {"chat_id": "chat-Ann", "user": ChannelUser("user-Ann", "Ann")}
    up_to = report(sent[2][1], "read", up_to_ms=clock.now_ms() + 1_000_000, **of_ann)
    await service.inbound.receive(CHANNEL, up_to)
    await service.inbound.receive(CHANNEL, replace(up_to, update_id="again"))
    messages = [await shown(client, message_id) for message_id, _ in sent]

    assert [message["read_at"] is not None for message in messages] == [True, True, True, False]
    assert [message["delivered_at"] is not None for message in messages] == [
        True,
        True,
        True,
        False,
    ]
    for name in ("delivery.delivered", "delivery.read"):
        told = [event["message_id"] for event in await events_named(client, name)]
        assert sorted(told) == sorted(message_id for message_id, _ in sent[:3])


async def test_a_report_up_to_a_message_that_nobody_knows_is_of_what_was_sent_by_then(
    service: Service, client: httpx2.AsyncClient, ann: str, clock: FakeClock
) -> None:
    before, _ = await send(client, service, ann)
    clock.advance(60)
    at_ms = clock.now_ms()
    clock.advance(60)
    after, _ = await send(client, service, ann)
    of_ann = {"chat_id": "chat-Ann", "user": ChannelUser("user-Ann", "Ann")}
    await service.inbound.receive(CHANNEL, report("", "delivered", up_to_ms=at_ms, **of_ann))
    elsewhere = {**of_ann, "chat_id": "elsewhere"}
    later_ms = clock.now_ms()
    await service.inbound.receive(CHANNEL, report("", "read", up_to_ms=later_ms, **elsewhere))
    first, second = await shown(client, before), await shown(client, after)

    assert first["delivered_at"] is not None
    assert (first["read_at"], second["delivered_at"]) == (None, None)


async def test_a_report_of_everything_goes_back_to_an_id_and_some_messages(
    service: Service, tenant: Tenant, ann: str, clock: FakeClock
) -> None:
    ids = [(await send(tenant.client, service, ann))[0] for _ in range(4)]
    sent = store.SentEarlier(
        project_id=tenant.project.project_id,
        subscriber_id=ann,
        bot=CHANNEL,
        after=ids[0],
        until_ms=clock.now_ms(),
        most=2,
    )
    async with service.db.transaction() as tx:
        latest = await store.mark_earlier(tx, sent, "read_at_ms", clock.now_ms())
        rest = await store.mark_earlier(tx, replace(sent, most=10), "read_at_ms", clock.now_ms())

    assert [message.message_id for message in latest] == ids[2:]
    assert [message.message_id for message in rest] == [ids[1]]


async def test_a_report_of_everything_reads_the_index_by_subscriber(
    service: Service, ann: str
) -> None:
    seen: list[tuple[str, Any]] = []
    sent = store.SentEarlier(
        project_id="p", subscriber_id=ann, bot=CHANNEL, after="msg_", until_ms=1, most=10
    )
    async with service.db.transaction() as tx:
        fetch_all = tx.fetch_all

        async def spy(sql: str, params: Any) -> Any:
            seen.append((sql, params))
            return await fetch_all(sql, params)

        tx.fetch_all = spy  # type: ignore[method-assign]  # notes the statement of this one call
        await store.mark_earlier(tx, sent, "read_at_ms", 1)
        (sql, params) = seen[0]
        if tx.dialect == "sqlite":
            rows = await fetch_all(f"EXPLAIN QUERY PLAN {sql}", params)
            plan = "\n".join(str(row["detail"]) for row in rows)
        else:
            await tx.execute("SET LOCAL enable_seqscan = off", {})
            rows = await fetch_all(f"EXPLAIN {sql}", params)
            plan = "\n".join(str(row["QUERY PLAN"]) for row in rows)

    assert "SCAN core_messages" not in plan, plan
    if tx.dialect == "sqlite":
        assert "core_messages_filed" in plan
        assert "core_messages_unfiled" in plan
    else:
        assert "core_messages_subscriber" in plan
