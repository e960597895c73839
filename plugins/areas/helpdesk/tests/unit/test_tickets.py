"""The rules of tickets, built from fakes."""

import io
from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS
from msgsvc_core.kernel.errors import BillingBlocked, Conflict, NotFound, ValidationFailed
from msgsvc_core.plugins.tickets import TicketRequest
from msgsvc_core.subscribers.models import Status
from msgsvc_devkit import FakeContext
from msgsvc_devkit.fakes import PROJECT, FakeTx
from msgsvc_helpdesk.models import (
    API,
    CUSTOMER,
    AgentReply,
    CustomerMessage,
    Opening,
)
from msgsvc_helpdesk.service import OPERATION

from .desk import ENTRY, TICKET, VIRTUAL, hire, new_core, sender, tickets, tx_of, written

HELP = CustomerMessage("Help!\nPlease")


@pytest.fixture
def core() -> FakeContext:
    return new_core()


# ---- opening ------------------------------------------------------------------------------------


async def test_a_ticket_has_the_next_number_and_the_first_line_as_its_subject(
    core: FakeContext,
) -> None:
    opening = Opening(source="message", message=HELP, subscriber_id="sub_1")
    ticket = await tickets(core).open(tx_of(), PROJECT, opening, CUSTOMER)

    assert (ticket.number, ticket.subject, ticket.customer_name) == (7, "Help!", "Ann")
    assert ticket.waiting_since_ms == core.clock.now_ms()
    assert core.events.names == ["ticket.created"]


async def test_new_tickets_go_to_agents_in_turn_where_the_settings_say_so(
    core: FakeContext,
) -> None:
    for name in ("amy", "mia", "zoe"):
        hire(core, name)
    opening, given = Opening(source="api", message=None), []
    for last in (None, "mem_amy", "mem_mia", "mem_zoe", "mem_gone"):
        tx = tx_of(others={"SELECT last_assignee_id": [{"last_assignee_id": last}]})
        by_turn = tickets(core, assignment="round_robin")
        given.append((await by_turn.open(tx, PROJECT, opening, API)).assignee_id)

    assert given == ["mem_amy", "mem_mia", "mem_zoe", "mem_amy", "mem_mia"]
    assert core.events.names == ["ticket.created", "ticket.assigned"] * 5


async def test_only_those_who_answer_customers_get_tickets(core: FakeContext) -> None:
    hire(core, "eve", role="viewer")
    for assignee, why in (("mem_eve", ValidationFailed), ("mem_none", NotFound)):
        opening = Opening(source="api", message=None, assignee_id=assignee)
        with pytest.raises(why):
            await tickets(core).open(tx_of(), PROJECT, opening, API)
        with pytest.raises(why):
            await tickets(core).assign(tx_of(TICKET), PROJECT, "tkt_1", assignee, API)

    assert core.events.emitted == []


async def test_a_source_opens_one_ticket_however_often_it_asks(core: FakeContext) -> None:
    request = TicketRequest(PROJECT, "form", "fsb_1", "Help", customer_name="Bob")
    known = replace(TICKET, source="form", source_id="fsb_1")

    assert await tickets(core).open_requested(tx_of(known), request) == "tkt_1"
    assert core.events.emitted == []
    assert (await tickets(core).open_requested(tx_of(), request)).startswith("tkt_")
    assert core.events.names == ["ticket.created"]


async def test_who_is_on_the_blocklist_opens_none_by_a_form_either(core: FakeContext) -> None:
    request = TicketRequest(PROJECT, "form", "fsb_1", "Help", subscriber_id="sub_1")
    row = {"project_id": PROJECT, "subscriber_id": "sub_1", "reason": "", "created_at_ms": 0}

    with pytest.raises(Conflict, match="blocklist"):
        await tickets(core).open_requested(
            tx_of(others={"FROM helpdesk_blocklist": [row]}), request
        )


# ---- the customer writes ------------------------------------------------------------------------


@pytest.mark.parametrize(("days", "goes_on"), [(None, True), (6, True), (7, False)])
async def test_a_message_reopens_a_ticket_for_seven_days(
    core: FakeContext, days: int | None, goes_on: bool
) -> None:
    closed_ms = None if days is None else core.clock.now_ms() - days * DAY_MS
    before = replace(TICKET, status="open" if days is None else "closed", closed_at_ms=closed_ms)
    ticket, is_new = await tickets(core).receive_customer_message(
        tx_of(before), PROJECT, "sub_1", HELP
    )

    assert is_new is not goes_on
    assert (ticket.ticket_id == "tkt_1") is goes_on
    assert ("ticket.replied" in core.events.names) is goes_on


async def test_an_answer_to_an_older_ticket_goes_on_with_that(core: FakeContext) -> None:
    older = replace(TICKET, ticket_id="tkt_3", number=3)
    about = {"SELECT ticket_id FROM helpdesk_entries": [{"ticket_id": "tkt_3"}]}
    service = tickets(core)
    mine, _ = await service.receive_customer_message(
        tx_of(TICKET, older, others=about), PROJECT, "sub_1", HELP, about="msg_1"
    )
    foreign = replace(older, subscriber_id="sub_2")
    other, _ = await service.receive_customer_message(
        tx_of(TICKET, foreign, others=about), PROJECT, "sub_1", HELP, about="msg_1"
    )

    assert (mine.ticket_id, other.ticket_id) == ("tkt_3", "tkt_1")


async def test_a_waiting_time_begins_with_the_first_unanswered_message(core: FakeContext) -> None:
    answered = replace(TICKET, status="pending", waiting_since_ms=None)
    waiting, tx = replace(TICKET, waiting_since_ms=5), tx_of(answered)
    fresh, _ = await tickets(core).receive_customer_message(tx, PROJECT, "sub_1", HELP)
    still, _ = await tickets(core).receive_customer_message(tx_of(waiting), PROJECT, "sub_1", HELP)

    assert (fresh.status, fresh.waiting_since_ms) == ("open", core.clock.now_ms())
    assert still.waiting_since_ms == 5
    assert core.events.names[:2] == ["ticket.status_changed", "ticket.replied"]


async def test_what_the_project_reports_is_of_customers_without_a_messenger(
    core: FakeContext,
) -> None:
    add = tickets(core).add_customer_message
    closed = replace(VIRTUAL, status="closed", closed_at_ms=core.clock.now_ms() - 30 * DAY_MS)
    late = await add(tx_of(closed), PROJECT, "tkt_2", HELP, API)

    assert late.ticket_id != "tkt_2"
    assert late.customer_name == VIRTUAL.customer_name
    with pytest.raises(Conflict, match="messenger_a"):
        await add(tx_of(TICKET), PROJECT, "tkt_1", HELP, API)


async def test_what_a_changed_message_said_before_is_kept_and_not_for_ever(
    core: FakeContext,
) -> None:
    tx = tx_of(TICKET)
    await tickets(core, edits_kept=3).edit_customer_message(tx, ENTRY, "Now", [], None)

    assert tx.params_of("UPDATE helpdesk_entries")[0]["text"] == "Now"
    assert len(tx.params_of("INTO helpdesk_entry_edits")) == 1
    assert tx.params_of("DELETE FROM helpdesk_entry_edits")[0]["kept"] == 3


# ---- agents -------------------------------------------------------------------------------------


async def test_a_reply_is_sent_charged_and_ends_the_waiting(core: FakeContext) -> None:
    reported = replace(TICKET, told_waiting_at_ms=5)
    ticket, entry = await tickets(core).reply(
        tx_of(reported), PROJECT, "tkt_1", AgentReply("Here"), API
    )

    assert core.messages.texts == ["Here"]
    assert [charge.operation for charge in core.billing.charges] == [OPERATION]
    assert (ticket.status, ticket.waiting_since_ms) == ("pending", None)
    assert ticket.told_waiting_at_ms is None
    assert ticket.first_response_at_ms == entry.created_at_ms
    assert core.events.names[-2:] == ["ticket.replied", "ticket.status_changed"]


async def test_a_note_is_no_answer_and_costs_nothing(core: FakeContext) -> None:
    note = AgentReply("He is rude", internal=True)
    closed = replace(TICKET, status="closed")
    ticket, entry = await tickets(core).reply(tx_of(closed), PROJECT, "tkt_1", note, API)

    assert (entry.internal, ticket.status) == (True, "closed")
    assert (core.messages.by_id, core.billing.charges, core.events.emitted) == ({}, [], [])


async def test_a_closed_ticket_takes_no_answer(core: FakeContext) -> None:
    closed = replace(TICKET, status="closed")
    with pytest.raises(Conflict, match="closed"):
        await tickets(core).reply(tx_of(closed), PROJECT, "tkt_1", AgentReply("Hi"), API)

    assert core.messages.by_id == {}


async def test_an_answer_that_nobody_pays_for_is_refused(core: FakeContext) -> None:
    core.billing.refused.add(OPERATION)

    with pytest.raises(BillingBlocked):
        await tickets(core).reply(tx_of(TICKET), PROJECT, "tkt_1", AgentReply("Hi"), API)


async def test_the_first_who_claims_a_ticket_has_it(core: FakeContext) -> None:
    mia, zoe = hire(core), hire(core, "zoe")
    taken = replace(TICKET, assignee_id=mia.member_id)
    claim = tickets(core).claim

    assert (await claim(tx_of(TICKET), PROJECT, "1", mia.member_id, API)).assignee_id == "mem_mia"
    assert (await claim(tx_of(taken), PROJECT, "1", mia.member_id, API)) == taken
    with pytest.raises(Conflict, match="assigned to mem_mia"):
        await claim(tx_of(taken), PROJECT, "1", zoe.member_id, API)
    with pytest.raises(Conflict, match="closed"):
        await claim(tx_of(replace(TICKET, status="closed")), PROJECT, "1", zoe.member_id, API)
    assert core.events.names == ["ticket.assigned"]


async def test_what_changes_nothing_is_told_of_by_nothing(core: FakeContext) -> None:
    tx, service = tx_of(TICKET), tickets(core)
    await service.set_status(tx, PROJECT, "tkt_1", "open", API)
    await service.set_priority(tx, PROJECT, "tkt_1", "normal", API)
    await service.set_tags(tx, PROJECT, "tkt_1", [], API)
    await service.assign(tx, PROJECT, "tkt_1", None, API)
    await service.unassign(tx, PROJECT, "tkt_1", "mem_mia")

    assert tx.params_of("UPDATE helpdesk_tickets") == []
    assert core.events.emitted == []


async def test_an_end_is_told_twice_and_ends_the_waiting(core: FakeContext) -> None:
    closed = await tickets(core).close(tx_of(TICKET), PROJECT, "1", API)
    reopened = await tickets(core).set_status(tx_of(closed), PROJECT, "1", "open", API)

    assert core.events.names == [
        "ticket.status_changed",
        "ticket.closed",
        "ticket.status_changed",
    ]
    assert (closed.waiting_since_ms, closed.closed_at_ms) == (None, core.clock.now_ms())
    assert reopened.closed_at_ms is None


async def test_a_ticket_has_so_many_labels(core: FakeContext) -> None:
    service = tickets(core, tags_per_ticket=2)
    tagged = await service.set_tags(tx_of(TICKET), PROJECT, "1", ["b", "a", "b"], API)

    assert tagged.tags == ("a", "b")
    with pytest.raises(ValidationFailed, match="at most 2"):
        await service.set_tags(tx_of(TICKET), PROJECT, "1", ["a", "b", "c"], API)


@pytest.mark.parametrize("name", ["tkt_9", "9", "one", "-1", "1" * 16, "١"])
async def test_what_is_no_ticket_is_missing(core: FakeContext, name: str) -> None:
    with pytest.raises(NotFound):
        await tickets(core).get(tx_of(TICKET), PROJECT, name)


async def test_a_ticket_that_was_merged_leads_to_the_one_that_goes_on(core: FakeContext) -> None:
    merged = replace(VIRTUAL, merged_into="tkt_1")

    assert (await tickets(core).get(tx_of(TICKET, merged), PROJECT, "2")) == TICKET
    assert (await tickets(core).lock(tx_of(TICKET, merged), PROJECT, "2")) == TICKET


# ---- time ---------------------------------------------------------------------------------------


async def test_a_snooze_ends_in_time_to_come(core: FakeContext) -> None:
    now_ms, snooze = core.clock.now_ms(), tickets(core, snooze_days=1).snooze
    for until_ms in (now_ms, now_ms + DAY_MS + 1):
        with pytest.raises(ValidationFailed, match="until"):
            await snooze(tx_of(TICKET), PROJECT, "1", until_ms, API)
    with pytest.raises(Conflict, match="closed"):
        await snooze(tx_of(replace(TICKET, status="closed")), PROJECT, "1", now_ms + 1, API)

    asleep = await snooze(tx_of(TICKET), PROJECT, "1", now_ms + DAY_MS, API)
    later = await snooze(tx_of(asleep), PROJECT, "1", now_ms + 5, API)
    assert (asleep.status, later.snoozed_until_ms) == ("snoozed", now_ms + 5)
    assert core.events.names == ["ticket.status_changed"]


@pytest.mark.parametrize(("left_ms", "wakes"), [(0, True), (1, False)])
async def test_a_ticket_wakes_when_its_snooze_is_over(
    core: FakeContext, left_ms: int, wakes: bool
) -> None:
    until_ms = core.clock.now_ms() + left_ms
    tx = tx_of(replace(TICKET, status="snoozed", snoozed_until_ms=until_ms))
    await tickets(core).wake(tx, PROJECT, "tkt_1")

    assert (written(tx).get("status") == "open") is wakes


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, True),
        ({"waiting_since_ms": 1}, False),
        ({"told_waiting_at_ms": 1}, False),
        ({"status": "pending"}, False),
        ({"waiting_since_ms": None}, False),
    ],
)
async def test_a_customer_who_waits_for_a_day_is_told_of_once(
    core: FakeContext, fields: dict[str, Any], told: bool
) -> None:
    since_ms = core.clock.now_ms() - 24 * HOUR_MS
    offset = fields.get("waiting_since_ms", 0)
    waits = {"waiting_since_ms": None if offset is None else since_ms + offset}
    tx = tx_of(replace(TICKET, **{**fields, **waits}))
    await tickets(core).notify_waiting(tx, PROJECT, "tkt_1")

    assert core.events.names == (["ticket.unanswered_24h"] if told else [])
    assert "updated_at_ms" not in written(tx)


# ---- merging and removing -----------------------------------------------------------------------


async def test_what_was_said_in_both_is_in_one(core: FakeContext) -> None:
    first = replace(VIRTUAL, waiting_since_ms=3, last_message_at_ms=9)
    into = replace(TICKET, status="pending", waiting_since_ms=None, last_message_at_ms=5)
    tx = tx_of(first, into)
    merged = await tickets(core).merge(tx, PROJECT, "2", "1", API)

    assert (merged.ticket_id, merged.status, merged.waiting_since_ms) == ("tkt_1", "open", 3)
    assert merged.last_message_at_ms == 9
    assert tx.params_of("SET ticket_id = :into")[0]["into"] == "tkt_1"
    [closed] = [event for event in core.events.emitted if event.name == "ticket.closed"]
    assert closed.data["merged_into"] == "tkt_1"


async def test_nobody_waits_in_a_closed_ticket_whatever_is_merged_into_it(
    core: FakeContext,
) -> None:
    closed = replace(TICKET, status="closed", waiting_since_ms=None, closed_at_ms=1)
    waiting = replace(VIRTUAL, waiting_since_ms=3)
    merged = await tickets(core).merge(tx_of(waiting, closed), PROJECT, "2", "1", API)

    assert (merged.status, merged.waiting_since_ms) == ("closed", None)


async def test_what_can_not_be_merged_is_refused(core: FakeContext) -> None:
    merge = tickets(core).merge
    of_boris = replace(TICKET, ticket_id="tkt_3", number=3, subscriber_id="sub_2")
    gone = replace(VIRTUAL, merged_into="tkt_9")

    with pytest.raises(ValidationFailed, match="another ticket"):
        await merge(tx_of(TICKET), PROJECT, "1", "tkt_1", API)
    with pytest.raises(Conflict, match="another customer"):
        await merge(tx_of(TICKET, of_boris), PROJECT, "1", "3", API)
    with pytest.raises(Conflict, match="was merged"):
        await merge(tx_of(TICKET, gone), PROJECT, "2", "1", API)
    assert core.events.emitted == []


async def test_a_ticket_that_is_deleted_takes_what_was_merged_into_it_and_its_files(
    core: FakeContext,
) -> None:
    content = io.BytesIO(b"\x89PNG\r\n\x1a\n" + b"\0" * 64)
    file = await core.files.add(FakeTx(), PROJECT, filename="a.png", content=content)
    merged = {"SELECT ticket_id FROM helpdesk_tickets": [{"ticket_id": "tkt_2"}]}
    files = {"SELECT DISTINCT f.file_id": [{"file_id": file.file_id}]}
    tx = tx_of(TICKET, others={**merged, **files})
    await tickets(core).delete(tx, PROJECT, "tkt_1")

    [params] = tx.params_of("DELETE FROM helpdesk_tickets")
    assert set(params.values()) == {PROJECT, "tkt_1", "tkt_2"}
    assert core.files.stored == {}


# ---- what is sent -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "why"), [("blocked", "blocked"), ("unsubscribed", "unsub"), (None, "gone")]
)
async def test_who_can_not_be_reached_is_sent_nothing(
    core: FakeContext, status: Status | None, why: str
) -> None:
    core.subscribers.by_id.clear()
    if status is not None:
        core.subscribers.person("sub_1", status=status)
    with pytest.raises(Conflict, match=f"they are {why}"):
        await sender(core).send(tx_of(), TICKET, AgentReply("Hi"))

    assert core.messages.by_id == {}


async def test_a_number_is_from_now_on_said_to_the_agent(core: FakeContext) -> None:
    tx = tx_of()
    await sender(core).send(tx, TICKET, AgentReply("Which one, 1 or 2?"))

    assert [params["chat_id"] for params in tx.params_of("DELETE FROM core_offers")] == ["chat 1"]


async def test_a_file_that_is_not_here_yet_is_not_sent(core: FakeContext) -> None:
    content = io.BytesIO(b"\x89PNG\r\n\x1a\n" + b"\0" * 64)
    file = await core.files.add(FakeTx(), PROJECT, filename="a.png", content=content)
    core.files.stored[file.file_id] = replace(file, status="pending")

    with pytest.raises(Conflict, match="the file is pending"):
        await sender(core).send(tx_of(), TICKET, AgentReply("Look", file_id=file.file_id))


async def test_a_customer_reads_their_own_language_and_a_virtual_one_the_services(
    core: FakeContext,
) -> None:
    core.subscribers.person("sub_1", lang="ru")
    read = [
        await tickets(core).lang_of(tx_of(each), PROJECT, each.ticket_id)
        for each in (TICKET, VIRTUAL)
    ]

    assert read == ["ru", "en"]


def test_a_text_is_no_longer_than_a_message_may_be(core: FakeContext) -> None:
    most = core.config.limits.text_length
    sender(core).check_text("x" * most)

    with pytest.raises(ValidationFailed, match=str(most)):
        tickets(core).check_text("x" * (most + 1))


async def test_a_source_that_is_forgotten_leaves_the_name_of_a_subscriber(
    core: FakeContext,
) -> None:
    known: dict[str, Any] = {"source": "form", "source_id": "fsb_1"}
    of_ann, of_visitor = tx_of(replace(TICKET, **known)), tx_of(replace(VIRTUAL, **known))
    for tx in (of_ann, of_visitor):
        await tickets(core).forget_source(tx, PROJECT, "form", "fsb_1")

    assert "customer_name" not in written(of_ann)
    assert written(of_visitor)["customer_name"] == ""
