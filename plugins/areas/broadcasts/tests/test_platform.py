"""What a platform may do to a broadcast, and what an operator may do about it."""

from collections.abc import Sequence
from typing import Any

import httpx2
import pytest

from msgsvc_core.billing import Charge
from msgsvc_core.channels import DeliveryError, OutgoingMessage, Reason
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import BillingBlocked
from msgsvc_core.mailings import Mailing
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled, until
from msgsvc_devkit.fixtures import ServiceFactory

from .conftest import (
    LIMITS,
    PLUGINS,
    AddPeople,
    add,
    counts,
    ended,
    events,
    recipients,
    shown,
    take,
)

IN_DOUBT = DeliveryError(Reason.PLATFORM_UNAVAILABLE, "connection lost", in_doubt=True)


@pytest.mark.both_databases
async def test_who_is_in_doubt_is_unknown_and_sent_to_again_on_demand_alone(
    client: httpx2.AsyncClient, people: AddPeople, channel: RecordingChannel
) -> None:
    ids = await people(5)
    channel.failures += [IN_DOUBT, IN_DOUBT]
    job_id = await take(client)
    done = await ended(client, job_id)
    doubtful = {
        each["subscriber_id"] for each in await recipients(client, job_id, status="unknown")
    }

    answer = await client.post(f"/v1/broadcast/{job_id}/resend-unknown")
    again = await ended(client, answer.json()["job_id"])
    twice = await client.post(f"/v1/broadcast/{job_id}/resend-unknown")

    assert counts(done) == (3, 2, 0, 5)
    assert doubtful < set(ids)
    reasons = {event["reason"] for event in await events(client, "delivery.failed")}
    assert reasons == {"unknown"}
    assert (answer.status_code, answer.json()["total"]) == (202, 2)
    assert (again["resend_of"], counts(again)) == (job_id, (2, 0, 0, 2))
    reached = {each["subscriber_id"] for each in await recipients(client, again["job_id"])}
    assert reached == doubtful
    assert len({sent.chat_id for sent in channel.sent}) == len(channel.sent) == 5
    assert twice.status_code == 409
    assert len(await events(client, "broadcast.completed")) == 2


async def test_platform_that_asks_to_wait_is_waited_for(
    service: Service,
    client: httpx2.AsyncClient,
    people: AddPeople,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    await people(300)
    channel.failures.append(DeliveryError(Reason.RATE_LIMITED, "429", retry_after_s=30))

    job_id = await take(client)

    async def is_refused() -> bool:
        return not channel.failures

    await until(is_refused)
    await settled(service)
    held = len(channel.sent)
    clock.advance(31)
    done = await ended(client, job_id)

    # None of them was called before its first call had been refused.
    assert held == 0
    assert counts(done) == (300, 0, 0, 300)
    assert len({sent.chat_id for sent in channel.sent}) == len(channel.sent) == 300


async def test_banned_bot_costs_one_recipient_and_the_others_wait(
    service: Service, client: httpx2.AsyncClient, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(50)
    channel.failures.append(DeliveryError(Reason.BOT_BANNED, "401"))

    job_id = await take(client)

    async def one_has_failed() -> bool:
        return (await shown(client, job_id))["failed"] == 1

    await until(one_has_failed)
    waiting = await shown(client, job_id)
    async with service.db.transaction() as tx:
        await service.get(ChannelStates).resume(tx, channel)
    done = await ended(client, job_id)

    assert (waiting["status"], waiting["sent"]) == ("running", 0)
    assert counts(done) == (49, 1, 0, 50)


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_permission_that_is_revoked_meanwhile_is_kept_to(
    service: Service, client: httpx2.AsyncClient, people: AddPeople, clock: FakeClock
) -> None:
    [subscriber_id, other] = await people(2)
    await client.post("/v1/permissions", json={"key": "sale", "title": "Sale"})
    await client.put(f"/v1/subscribers/{subscriber_id}/permissions/sale")

    everybody = await ended(client, await take(client, permission="sale"))

    assert counts(everybody) == (1, 0, 1, 2)
    [skipped] = await recipients(client, everybody["job_id"], status="skipped")
    assert skipped["subscriber_id"] == other
    assert "'sale'" in skipped["error"]


async def test_what_expires_before_it_is_sent_is_skipped(
    service: Service,
    client: httpx2.AsyncClient,
    people: AddPeople,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    await people(3)
    channel.failures.append(DeliveryError(Reason.RATE_LIMITED, "429", retry_after_s=60))
    job_id = await take(client, expires_in=30)

    async def is_refused() -> bool:
        return not channel.failures

    await until(is_refused)
    await settled(service)
    clock.advance(61)
    done = await ended(client, job_id)

    assert counts(done) == (0, 0, 3, 3)
    assert {each["error"] for each in await recipients(client, job_id)} == {"expired"}


@pytest.mark.both_databases
async def test_single_messages_are_sent_beside_a_broadcast(
    service: Service, client: httpx2.AsyncClient, people: AddPeople, channel: RecordingChannel
) -> None:
    [first, *_] = await people(400)

    job_id = await take(client)
    answer = await client.post("/v1/send", json={"subscriber_id": first, "text": "Yours alone"})
    await ended(client, job_id)
    await settled(service)

    assert answer.status_code == 202
    assert channel.texts.count("Yours alone") == 1
    assert len(channel.sent) == 401


async def test_several_broadcasts_on_one_bot_all_end(
    service: Service, client: httpx2.AsyncClient, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(120)

    jobs = [await take(client, text=f"number {number}") for number in range(4)]
    done = [await ended(client, job_id) for job_id in jobs]

    assert {counts(each) for each in done} == {(120, 0, 0, 120)}
    assert len(channel.sent) == 480


async def test_a_service_that_stops_leaves_nobody_in_doubt(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    first = await make_service(extra_plugins=PLUGINS, limits=LIMITS)
    tenant = await make_tenant(first)
    await add(first, tenant, 3000)
    job_id = await take(tenant.client)
    of_first = first.channels["messenger_a"]
    assert isinstance(of_first, RecordingChannel)

    async def has_begun() -> bool:
        return bool(of_first.sent)

    await until(has_begun)
    url = first.settings.database_url
    await first.stop()
    second = await make_service(extra_plugins=PLUGINS, limits=LIMITS, database_url=url)
    client = httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=second.app),
        base_url="http://msgsvc.test",
        headers={"Authorization": f"Bearer {tenant.key}"},
    )
    async with client:
        done = await ended(client, job_id)
    of_second = second.channels["messenger_a"]
    assert isinstance(of_second, RecordingChannel)

    assert counts(done) == (3000, 0, 0, 3000)
    chats = [sent.chat_id for sent in (*of_first.sent, *of_second.sent)]
    assert len(set(chats)) == len(chats) == 3000


class Books:
    """Keeps accounts; `blocked` refuses. Notes the mailings that ended too."""

    def __init__(self) -> None:
        self.charges: list[Charge] = []
        self.ended: list[Mailing] = []
        self.blocked = False

    @hookimpl
    async def charge(self, charge: Charge) -> None:
        if self.blocked:
            raise BillingBlocked
        self.charges.append(charge)

    @hookimpl
    async def on_mailing_ended(self, tx: Tx, mailing: Mailing) -> None:
        self.ended.append(mailing)


@pytest.fixture
def books() -> Books:
    return Books()


@pytest.fixture
async def selling(make_service: ServiceFactory, books: Books) -> Service:
    return await make_service(extra_plugins=[*PLUGINS, ("books", books)], limits=LIMITS)


@pytest.fixture
async def paying(selling: Service, make_tenant: Any) -> Any:
    tenant = await make_tenant(selling)
    await add(selling, tenant, 2)
    return tenant


async def test_a_broadcast_is_charged_once_and_its_end_told_to_plugins_once(
    paying: Any, books: Books
) -> None:
    dry = {"audience": {"all": True}, "text": "Hi", "dry_run": True}
    await paying.client.post("/v1/broadcast", json=dry)

    job_id = await take(paying.client)
    await ended(paying.client, job_id)

    assert books.charges == [
        Charge(paying.project.project_id, "broadcast.message", job_id, quantity=2)
    ]
    assert [(each.job_id, each.status, each.sent) for each in books.ended] == [
        (job_id, "completed", 2)
    ]


async def test_who_did_not_get_it_is_given_back_when_it_ends_and_a_resend_is_paid_anew(
    selling: Service, paying: Any, books: Books
) -> None:
    project_id = paying.project.project_id
    channel = selling.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    channel.failures.append(IN_DOUBT)
    job_id = await take(paying.client)
    await ended(paying.client, job_id)

    answer = await paying.client.post(f"/v1/broadcast/{job_id}/resend-unknown")
    again = answer.json()["job_id"]
    await ended(paying.client, again)

    assert books.charges == [
        Charge(project_id, "broadcast.message", job_id, quantity=2),
        Charge(project_id, "broadcast.settlement", job_id, False, -1),
        Charge(project_id, "broadcast.message", again, quantity=1),
    ]


async def test_who_came_after_the_call_is_paid_for_at_the_end(
    selling: Service, paying: Any, books: Books, clock: FakeClock
) -> None:
    job_id = await take(paying.client, send_at="2026-01-15T13:00:00Z")
    await add(selling, paying, 3, first=2)

    clock.advance(3600)
    await ended(paying.client, job_id)

    assert [each.quantity for each in books.charges] == [2, 3]
    assert not books.charges[1].refusable


async def test_cancelled_before_it_begins_a_broadcast_costs_nothing(
    paying: Any, books: Books
) -> None:
    job_id = await take(paying.client, send_at="2026-01-15T13:00:00Z")

    await paying.client.post(f"/v1/broadcast/{job_id}/cancel")

    assert [each.quantity for each in books.charges] == [2, -2]


async def test_a_broadcast_that_is_not_paid_for_is_refused(paying: Any, books: Books) -> None:
    books.blocked = True

    answer = await paying.client.post(
        "/v1/broadcast", json={"audience": {"all": True}, "text": "Hi"}
    )

    assert (answer.status_code, answer.json()["code"]) == (402, "billing_blocked")
    assert (await paying.client.get("/v1/broadcast")).json()["data"] == []


@pytest.mark.both_databases
async def test_lists_are_newest_first_by_pages_and_status(
    client: httpx2.AsyncClient, people: AddPeople
) -> None:
    ids = await people(5)
    jobs = [await take(client) for _ in range(3)]
    for job_id in jobs:
        await ended(client, job_id)
    later = await take(client, send_at="2026-02-01T00:00:00Z")

    first = (await client.get("/v1/broadcast", params={"limit": 3})).json()
    rest = (await client.get("/v1/broadcast", params={"cursor": first["next_cursor"]})).json()
    scheduled = (await client.get("/v1/broadcast", params={"status": "scheduled"})).json()
    path = f"/v1/broadcast/{jobs[0]}/recipients"
    page = (await client.get(path, params={"limit": 3})).json()
    others = (await client.get(path, params={"cursor": page["next_cursor"]})).json()

    assert [each["job_id"] for each in first["data"]] == [later, jobs[2], jobs[1]]
    assert [each["job_id"] for each in rest["data"]] == [jobs[0]]
    assert [each["job_id"] for each in scheduled["data"]] == [later]
    found: Sequence[dict[str, Any]] = [*page["data"], *others["data"]]
    assert [each["subscriber_id"] for each in found] == ids[::-1]
    assert await recipients(client, later) == []


async def test_buttons_and_media_are_sent_too(
    client: httpx2.AsyncClient, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(1)

    buttons = [[{"text": "For {{ first_name }}", "url": "https://shop.example/{{ first_name }}"}]]
    await ended(client, await take(client, text="*Hi*", format="markdown", buttons=buttons))

    [sent] = channel.sent
    [[button]] = sent.message.buttons
    assert (button.text, button.url) == ("For P0", "https://shop.example/P0")
    assert sent.message == OutgoingMessage("*Hi*", format="markdown", buttons=((button,),))
