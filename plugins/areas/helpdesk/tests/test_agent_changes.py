"""Agents inside the messenger, when something else changes a ticket, or who answers."""

from dataclasses import replace

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.fixtures import Tenant
from msgsvc_helpdesk import jobs
from msgsvc_helpdesk.agents.desk import AgentDesk
from msgsvc_helpdesk.agents.notifications import AgentNotifications
from msgsvc_helpdesk.service import Tickets

from .chats import Agent, hire, tells_replies
from .conftest import (
    DAY_S,
    Person,
    act,
    change,
    listed,
    messages_of,
    pass_time,
    post,
    project_of,
    said,
    told,
    virtual,
)


@pytest.fixture
async def mia(service: Service, client: httpx2.AsyncClient) -> Agent:
    """Her messenger tells what a message answers."""
    tells_replies(service.channels["messenger_a"])
    return await hire(service, client, "Mia")


@pytest.fixture
async def max_(service: Service, client: httpx2.AsyncClient) -> Agent:
    return await hire(service, client, "Max", lang="ru")


async def test_a_ticket_that_was_put_aside_comes_back(
    service: Service,
    client: httpx2.AsyncClient,
    ann: Person,
    ann_id: str,
    mia: Agent,
    clock: FakeClock,
) -> None:
    await ann.write("Help")
    await mia.press("Assign to me")
    card = mia.newest("Your ticket")
    await mia.press("Snooze")
    await mia.press("1 hour")
    aside = mia.looks(card), (await listed(client))[0]["status"]
    known = len(mia.messages)

    await pass_time(service, clock, 3600)

    assert aside == ("#1, Ann: Help\n\nSnoozed until 2026-01-15T13:00:00.000Z.", "snoozed")
    assert [one.message.text.splitlines()[0] for one in mia.messages[known:]] == [
        "Your ticket #1, Ann: Help"
    ]


@pytest.mark.parametrize("how", ["removed", "erased", "viewer"])
async def test_the_tickets_of_an_agent_who_goes_are_offered_to_the_others(
    client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent, max_: Agent, how: str
) -> None:
    await ann.write("Help")
    await mia.press("Assign to me")
    card = mia.newest("Your ticket")
    path = f"/v1/members/{mia.member_id}"
    if how == "viewer":
        await client.patch(path, json={"role": "viewer"})
    else:
        await client.delete(path, params={"erase": str(how == "erased").lower()})
    await settled(mia.service)

    notice = await mia.press("Close")
    await mia.answer(card, "I am still here")
    refused = mia.shown
    await max_.press("Назначить мне")

    [ticket] = await listed(client)
    assert notice == "You no longer answer customers here."
    assert refused.startswith("You no longer answer customers here.")
    assert await said(client, ticket) == ["Help"]
    assert (ticket["status"], ticket["assignee_id"]) == ("open", max_.member_id)
    assert await told(client, "assignee_id") == [
        ("ticket.created", None),
        ("ticket.assigned", mia.member_id),
        ("ticket.assigned", None),
        ("ticket.assigned", max_.member_id),
    ]


async def test_an_agent_with_many_tickets_goes_and_what_is_put_aside_stays_there(
    service: Service,
    client: httpx2.AsyncClient,
    mia: Agent,
    max_: Agent,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "BATCH", 2)
    texts = [f"Question {n}" for n in range(5)]
    tickets = [await virtual(client, text, assignee_id=mia.member_id) for text in texts]
    await change(client, tickets[0], snoozed_until="2026-01-15T14:00:00Z")
    await change(client, tickets[1], assignee_id=max_.member_id)
    await change(client, tickets[2], status="closed")
    await settled(service)
    known = len(max_.messages)

    await client.delete(f"/v1/members/{mia.member_id}")
    await settled(service)
    offered = [text.splitlines()[0] for text in max_.texts[known:]]
    await pass_time(service, clock, 2 * 3600)

    assert [line.rpartition(" ")[2] for line in offered] == ["3", "4"]
    assert max_.texts[-1].startswith("Новое обращение №1")
    assert [one["assignee_id"] for one in await listed(client)] == [
        None,
        None,
        mia.member_id,
        max_.member_id,
        None,
    ]


async def test_who_answers_again_before_the_tickets_are_taken_keeps_them(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, mia: Agent
) -> None:
    await virtual(client, assignee_id=mia.member_id)
    async with service.db.transaction() as tx:
        [member] = await service.members.list_agents(tx, project_of(tenant))
        await service.get(AgentNotifications).on_member_changed(tx, member, None)
    await settled(service)

    assert [one["assignee_id"] for one in await listed(client)] == [mia.member_id]


async def test_who_was_given_a_ticket_by_the_api_is_told(
    client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent, max_: Agent
) -> None:
    await ann.write("Help")
    [ticket] = await listed(client)
    offer = max_.newest("Help")

    await change(client, ticket, assignee_id=mia.member_id)
    await settled(mia.service)

    assert mia.texts[-1].startswith("Your ticket #1, Ann: Help")
    assert max_.looks(offer) == "№1, Ann: Help\n\nОтвечает Mia."


async def test_a_viewer_is_told_of_nothing(
    service: Service, client: httpx2.AsyncClient, ann: Person, ann_id: str
) -> None:
    viewer = await hire(service, client, "Vic", role="viewer")
    known = len(viewer.messages)

    await ann.write("Help")
    await viewer.write("I look on")

    assert [one for one in viewer.texts[known:] if "Help" in one] == []
    assert len(await listed(client)) == 2


async def test_a_stranger_who_sends_a_buttons_data_changes_nothing(
    service: Service, client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent
) -> None:
    await ann.write("Help")
    [ticket] = await listed(client)
    eve = Agent(service, ann.user)

    notice = await eve.send_press(f"~hd:take:{ticket['ticket_id']}", "m1")

    assert notice == "You no longer answer customers here."
    assert (await listed(client))[0]["assignee_id"] is None


async def test_a_refused_answer_is_told_to_the_agent_with_its_reason(
    client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent
) -> None:
    await ann.write("Help")
    await mia.press("Assign to me")
    await client.delete(f"/v1/subscribers/{ann_id}")

    await mia.answer(mia.newest("Your ticket"), "Hello?")

    assert "Your message was not delivered." in mia.shown
    assert await said(client, (await listed(client))[0]) == ["Help"]


async def test_a_merged_ticket_leads_to_the_one_that_goes_on(
    client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent
) -> None:
    await ann.write("Help")
    await mia.press("Assign to me")
    card = mia.newest("Your ticket")
    [first] = await listed(client)
    second = await post(client, "/v1/tickets", subscriber_id=ann_id, text="Help again")
    await change(client, second, assignee_id=mia.member_id)
    await act(client, first, "merge", into=second["ticket_id"])
    await settled(mia.service)

    await mia.answer(card, "Here I am.")

    assert mia.looks(card) == "#1, Ann: Help\n\nMerged into another ticket."
    assert (await messages_of(client, second))["data"][0]["text"] == "Here I am."


@pytest.mark.parametrize("is_taken", [False, True])
async def test_agents_are_told_again_of_a_customer_who_waits(
    service: Service,
    client: httpx2.AsyncClient,
    ann: Person,
    ann_id: str,
    mia: Agent,
    max_: Agent,
    clock: FakeClock,
    is_taken: bool,
) -> None:
    await ann.write("Help")
    if is_taken:
        await mia.press("Assign to me")
    known = {one: len(one.messages) for one in (mia, max_)}

    await pass_time(service, clock, DAY_S)

    new = {one: [sent.message.text for sent in one.messages[known[one] :]] for one in known}
    if is_taken:
        assert [text.splitlines()[0] for text in new[mia]] == ["Your ticket #1, Ann: Help"]
        assert new[max_] == []
    else:
        assert [text.splitlines()[0] for text in new[mia]] == ["New ticket #1, Ann: Help"]
        assert [text.splitlines()[0] for text in new[max_]] == ["Новое обращение №1, Ann: Help"]


async def test_an_agent_is_told_what_comes_to_their_chat(mia: Agent, max_: Agent) -> None:
    assert any("/tickets" in text for text in mia.texts)
    assert any("Обращения клиентов" in text for text in max_.texts)


async def test_an_agent_whose_subscriber_is_erased_keeps_no_customer_from_writing(
    service: Service, tenant: Tenant, ann: Person, ann_id: str, mia: Agent
) -> None:
    await ann.write("Help")
    project_id = tenant.project.project_id
    desk, tickets = service.get(AgentDesk), service.get(Tickets)
    async with service.db.read() as tx:
        seat, *_ = await desk.seats(tx, await service.members.list_agents(tx, project_id))
        ticket = await tickets.get(tx, project_id, "1")
    gone = replace(seat, subscriber=replace(seat.subscriber, subscriber_id="sub_gone"))

    async with service.db.transaction() as tx:
        await desk.send_card(tx, gone, ticket)
        await desk.open_in_chat(tx, gone, ticket.ticket_id)
        await desk.save_draft(tx, gone, "tad_1", "Hello")

    async with service.db.read() as tx:
        for table in ("helpdesk_agent_messages", "helpdesk_agent_chats"):
            assert not await tx.fetch_all(f"SELECT 1 FROM {table} WHERE subscriber_id = 'sub_gone'")


async def test_agents_of_a_disabled_project_do_nothing(
    service: Service,
    client: httpx2.AsyncClient,
    tenant: Tenant,
    ann: Person,
    ann_id: str,
    mia: Agent,
) -> None:
    await ann.write("Help")
    await service.projects.set_active(tenant.project.project_id, False)

    notice = await mia.press("Assign to me")

    assert notice == "You no longer answer customers here."
    async with service.db.read() as tx:
        taken = await tx.fetch_val("SELECT COUNT(assignee_id) FROM helpdesk_tickets")
    assert taken == 0


async def test_a_button_of_before_does_not_put_aside_what_another_has(
    client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent, max_: Agent
) -> None:
    await ann.write("Help")
    await mia.press("Assign to me")
    [ticket] = await listed(client)
    card = mia.newest("Your ticket")
    await change(client, ticket, assignee_id=max_.member_id)

    notice = await mia.send_press(f"~hd:snooze:{ticket['ticket_id']}:1", card.message_ref)

    assert notice == "#1 is already assigned to Max."
    assert (await listed(client))[0]["status"] == "open"


@pytest.mark.parametrize("how", ["time", "api", "customer"])
async def test_a_ticket_that_nobody_has_is_offered_when_it_comes_back(
    service: Service,
    client: httpx2.AsyncClient,
    ann: Person,
    ann_id: str,
    mia: Agent,
    clock: FakeClock,
    how: str,
) -> None:
    await ann.write("Help")
    [ticket] = await listed(client)
    await change(client, ticket, snoozed_until="2026-01-15T14:00:00Z")
    await settled(service)
    known = len(mia.messages)

    if how == "time":
        await pass_time(service, clock, 2 * 3600)
    elif how == "api":
        await change(client, ticket, status="open")
        await settled(service)
    else:
        await ann.write("Well?")

    [offer] = mia.messages[known:]
    words = "Help\n\nWell?" if how == "customer" else "Help"
    assert offer.message.text.startswith(f"New ticket #1, Ann: Help\n\n{words}\n\n")
    assert mia.labels(offer) == ["Assign to me", "Close"]


async def test_who_opens_a_ticket_again_has_it_and_others_are_not_asked(
    service: Service, client: httpx2.AsyncClient, ann: Person, ann_id: str, mia: Agent, max_: Agent
) -> None:
    await ann.write("Help")
    [ticket] = await listed(client)
    await change(client, ticket, status="closed")
    await settled(service)
    known, others = len(mia.messages), len(max_.messages)

    notice = await mia.press("Reopen")

    assert notice == "#1 is open."
    assert [one.message.text.splitlines()[0] for one in mia.messages[known:]] == [
        "Your ticket #1, Ann: Help"
    ]
    assert len(max_.messages) == others
