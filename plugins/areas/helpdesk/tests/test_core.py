"""Where the helpdesk meets the core: the hook, charges, erasing."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.billing import Charge
from msgsvc_core.channels import ChannelUser
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import BillingBlocked, Conflict
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.plugins.tickets import TicketDesk, TicketRequest
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

from .conftest import (
    LIMITS,
    PLUGINS,
    Person,
    act,
    change,
    listed,
    messages_of,
    post,
    project_of,
    refusal,
    said,
    told,
    virtual,
    whole,
)


class Books:
    """Keeps the charges, and refuses them when told."""

    def __init__(self) -> None:
        self.charges: list[Charge] = []
        self.refuses = False

    @hookimpl
    async def charge(self, tx: Tx, charge: Charge) -> None:
        if self.refuses:
            raise BillingBlocked
        self.charges.append(charge)


async def test_the_hook_opens_one_ticket_for_a_source(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, ann_id: str
) -> None:
    stored = await client.post("/v1/files", files={"file": ("plan.txt", b"Turn left")})
    request = TicketRequest(
        project_of(tenant),
        "form",
        "fsb_1",
        "Question 1: yes",
        subject="Survey",
        subscriber_id=ann_id,
        priority="high",
        tags=["survey"],
        file_ids=[stored.json()["file_id"]],
    )

    ids = []
    for _ in range(2):
        async with service.db.transaction() as tx:
            ids.append(await service.get(TicketDesk).open(tx, request))

    [ticket] = await listed(client)
    assert ids == [ticket["ticket_id"]] * 2
    assert (ticket["source"], ticket["source_id"]) == ("form", "fsb_1")
    assert (ticket["subject"], ticket["priority"], ticket["tags"]) == ("Survey", "high", ["survey"])
    [message] = (await messages_of(client, ticket))["data"]
    assert message["file_ids"] == [stored.json()["file_id"]]
    assert await told(client, "subscriber_id") == [("ticket.created", ann_id)]


@pytest.mark.both_databases
async def test_the_hook_opens_none_for_who_is_on_the_blocklist(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, ann_id: str
) -> None:
    await client.put(f"/v1/tickets/blocklist/{ann_id}", json={})
    request = TicketRequest(project_of(tenant), "form", "fsb_1", "Hi", subscriber_id=ann_id)

    with pytest.raises(Conflict):
        async with service.db.transaction() as tx:
            await service.get(TicketDesk).open(tx, request)

    assert await listed(client) == []


async def test_the_hook_keeps_what_a_visitor_of_a_site_told_of_themselves(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant
) -> None:
    request = TicketRequest(
        project_of(tenant),
        "form",
        "fsb_1",
        "Hi",
        customer_name="Dora",
        customer_email="dora@example.com",
    )

    async with service.db.transaction() as tx:
        ticket_id = await service.get(TicketDesk).open(tx, request)

    ticket = await whole(client, str(ticket_id))
    assert ticket["channel"] == "virtual"
    assert (ticket["customer_name"], ticket["customer_email"]) == ("Dora", "dora@example.com")


async def test_answers_are_paid_for_and_notes_are_not(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    books = Books()
    service = await make_service(extra_plugins=[*PLUGINS, ("books", books)], limits=LIMITS)
    tenant: Tenant = await make_tenant(service)
    ticket = await virtual(tenant.client)

    await act(tenant.client, ticket, "reply", text="Hm", internal=True)
    answer = await act(tenant.client, ticket, "reply", text="Hi")
    books.refuses = True
    refused = await tenant.client.post(
        f"/v1/tickets/{ticket['ticket_id']}/reply", json={"text": "More"}
    )
    noted = await act(tenant.client, ticket, "reply", text="They don't pay", internal=True)

    [charge] = books.charges
    assert (charge.operation, charge.refusable) == ("ticket.reply", True)
    assert charge.resource_id == answer["message"]["ticket_message_id"]
    assert refusal(refused) == (402, "billing_blocked")
    assert noted["message"]["internal"] is True
    assert await said(tenant.client, ticket) == ["Help!", "Hm", "Hi", "They don't pay"]
    assert (await told(tenant.client)).count("ticket.replied") == 1


async def test_a_refused_answer_sends_nothing(
    make_service: ServiceFactory, make_tenant: Any, ann: Person
) -> None:
    books = Books()
    service = await make_service(extra_plugins=[*PLUGINS, ("books", books)], limits=LIMITS)
    tenant: Tenant = await make_tenant(service)
    there = Person(service, ann.user)
    await there.subscribe(tenant.client)
    await there.write("Help")
    shown, books.refuses = len(there.messages), True

    refused = await tenant.client.post("/v1/tickets/1/reply", json={"text": "Hi"})
    await settled(service)

    assert refusal(refused) == (402, "billing_blocked")
    assert len(there.messages) == shown


@pytest.mark.both_databases
async def test_who_is_erased_leaves_empty_tickets(
    service: Service, client: httpx2.AsyncClient, clock: FakeClock, ann: Person, ann_id: str
) -> None:
    stored = await client.post("/v1/files", files={"file": ("ann.txt", b"My address")})
    file_id = stored.json()["file_id"]
    await ann.write("I am Ann of Annapolis", ref="m-1")
    await ann.edit("m-1", "I am Ann of Anchorage")
    await post(client, "/v1/tickets", subscriber_id=ann_id, text="Ann called", file_ids=[file_id])
    other = await virtual(client, "Somebody else")

    await client.delete(f"/v1/subscribers/{ann_id}?erase=true")
    await settled(service)

    for number in ("1", "2"):
        ticket = await whole(client, number)
        assert ticket["status"] == "closed"
        assert (await messages_of(client, number))["data"] == []
        assert (ticket["subject"], ticket["customer_name"]) == (None, None)
    assert refusal(await client.get(f"/v1/files/{file_id}")) == (404, "not_found")
    assert await said(client, other) == ["Somebody else"]
    await change(client, {"ticket_id": "1"}, status="open")
    answer = await client.post("/v1/tickets/1/reply", json={"text": "Ann?"})
    assert refusal(answer) == (409, "conflict")
    async with service.db.read() as tx:
        for table in ("helpdesk_entries", "helpdesk_entry_edits", "helpdesk_tickets"):
            rows = await tx.fetch_all(f"SELECT * FROM {table}")
            assert "Ann" not in str([list(row) for row in rows])


async def test_who_is_erased_leaves_no_name_in_what_was_merged_into_their_ticket(
    service: Service, client: httpx2.AsyncClient, ann: Person, ann_id: str
) -> None:
    await ann.write("It is me")
    called = await virtual(client, "Ann called", name="Ann", email="ann@home.example")
    await act(client, called, "merge", into="1")

    await client.delete(f"/v1/subscribers/{ann_id}?erase=true")
    await settled(service)

    [gone, _ticket] = await listed(client)
    assert gone["ticket_id"] == called["ticket_id"]
    assert (gone["customer_name"], gone["customer_email"], gone["subject"]) == (None,) * 3
    assert gone["merged_into"] is not None


@pytest.mark.parametrize("how", ["erased", "removed"])
async def test_a_file_that_others_were_sent_stays(
    service: Service, client: httpx2.AsyncClient, ann: Person, ann_id: str, how: str
) -> None:
    stored = await client.post("/v1/files", files={"file": ("prices.txt", b"All we sell")})
    file_id = stored.json()["file_id"]
    await ann.write("What does it cost?")
    other = await virtual(client, "The prices, please")
    for ticket in ("1", "2"):
        await act(client, {"ticket_id": ticket}, "reply", text="All prices", file_id=file_id)

    if how == "erased":
        await client.delete(f"/v1/subscribers/{ann_id}?erase=true")
        await settled(service)
    else:
        await client.delete("/v1/tickets/1")
    kept = await client.get(f"/v1/files/{file_id}/content")
    await client.delete(f"/v1/tickets/{other['ticket_id']}")

    assert kept.content == b"All we sell"
    assert refusal(await client.get(f"/v1/files/{file_id}")) == (404, "not_found")


async def test_a_channel_called_virtual_has_customers_with_a_messenger(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    channels = {"virtual": {"plugin": "recording"}}
    service = await make_service(extra_plugins=PLUGINS, limits=LIMITS, channels=channels)
    client = (await make_tenant(service)).client
    ann = Person(service, ChannelUser("1001", "Ann", "ann_k", "en"), "virtual")
    await ann.ask(client, "I need help")
    [ticket] = (await client.get("/v1/tickets", params={"channel": "virtual"})).json()["data"]

    path = f"/v1/tickets/{ticket['ticket_id']}"
    replied = await client.post(f"{path}/reply", json={"text": "Here it is"})
    foreign = await client.post(f"{path}/customer-reply", json={"text": "x"})
    await settled(service)

    assert replied.status_code == 201, replied.text
    assert "Here it is" in ann.shown
    assert foreign.status_code == 409
