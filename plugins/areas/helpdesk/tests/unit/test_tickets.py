"""The rules of tickets."""

from typing import Any

import pytest

from msgsvc_core.channels.buttons import offers
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS
from msgsvc_core.kernel.errors import BillingBlocked, Conflict, NotFound, ValidationFailed
from msgsvc_core.plugins.tickets import TicketRequest
from msgsvc_core.subscribers.models import Status
from msgsvc_devkit import MemoryCore
from msgsvc_devkit.core import PROJECT
from msgsvc_helpdesk.blocklist import Blocklist
from msgsvc_helpdesk.models import (
    API,
    CUSTOMER,
    AgentReply,
    CustomerMessage,
    Opening,
)
from msgsvc_helpdesk.service import OPERATION, Tickets

from .desk import (
    PHOTO,
    Billing,
    add_entry,
    add_file,
    add_ticket,
    add_virtual,
    all_tickets,
    entries_of,
    helpdesk,
    hire,
    now,
    wrote,
)

HELP = CustomerMessage("Help!\nPlease")


@pytest.fixture
def tickets(core: MemoryCore) -> Tickets:
    return core.get(Tickets)


# ---- opening ------------------------------------------------------------------------------------


async def test_a_ticket_has_the_next_number_and_the_first_line_as_its_subject(
    core: MemoryCore, tx: Tx, tickets: Tickets
) -> None:
    opening = Opening(source="message", message=HELP, subscriber_id="sub_1")
    opened = [await tickets.open(tx, PROJECT, opening, CUSTOMER) for _ in range(2)]

    assert [ticket.number for ticket in opened] == [1, 2]
    assert (opened[0].subject, opened[0].customer_name) == ("Help!", "Ann")
    assert opened[0].waiting_since_ms == core.clock.now_ms()
    assert await all_tickets(core, tx) == opened
    assert core.event_names == ["ticket.created"] * 2


async def test_new_tickets_go_to_agents_in_turn_where_the_settings_say_so() -> None:
    async with helpdesk(assignment="round_robin") as core, core.db.transaction() as tx:
        for name in ("amy", "mia", "zoe"):
            await hire(core, tx, name)
        tickets, opening = core.get(Tickets), Opening(source="api", message=None)
        given = [await tickets.open(tx, PROJECT, opening, API) for _ in range(4)]
        # The one who had the last turn is no longer there.
        await core.members.remove(tx, PROJECT, "mem_amy")
        given.append(await tickets.open(tx, PROJECT, opening, API))

        assert [ticket.assignee_id for ticket in given] == [
            *("mem_amy", "mem_mia", "mem_zoe", "mem_amy"),
            "mem_mia",
        ]
        assert core.event_names == ["ticket.created", "ticket.assigned"] * 5


async def test_only_those_who_answer_customers_get_tickets(
    core: MemoryCore, tx: Tx, tickets: Tickets
) -> None:
    await hire(core, tx, "eve", role="viewer")
    ticket = await add_ticket(core, tx)
    for assignee, why in (("mem_eve", ValidationFailed), ("mem_none", NotFound)):
        opening = Opening(source="api", message=None, assignee_id=assignee)
        with pytest.raises(why):
            await tickets.open(tx, PROJECT, opening, API)
        with pytest.raises(why):
            await tickets.assign(tx, PROJECT, ticket.ticket_id, assignee, API)

    assert core.emitted == []
    assert await all_tickets(core, tx) == [ticket]


async def test_a_source_opens_one_ticket_however_often_it_asks(
    core: MemoryCore, tx: Tx, tickets: Tickets
) -> None:
    request = TicketRequest(PROJECT, "form", "fsb_1", "Help", customer_name="Bob")
    first = await tickets.open_requested(tx, request)
    again = await tickets.open_requested(tx, request)

    assert first == again
    assert core.event_names == ["ticket.created"]


async def test_who_is_on_the_blocklist_opens_none_by_a_form_either(
    core: MemoryCore, tx: Tx, tickets: Tickets
) -> None:
    request = TicketRequest(PROJECT, "form", "fsb_1", "Help", subscriber_id="sub_1")
    await core.get(Blocklist).add(tx, PROJECT, "sub_1", "")

    with pytest.raises(Conflict, match="blocklist"):
        await tickets.open_requested(tx, request)


# ---- the customer writes ------------------------------------------------------------------------


@pytest.mark.parametrize(("days", "goes_on"), [(None, True), (6, True), (7, False)])
async def test_a_message_reopens_a_ticket_for_seven_days(
    core: MemoryCore, tx: Tx, tickets: Tickets, days: int | None, goes_on: bool
) -> None:
    before = await add_ticket(core, tx, status="open" if days is None else "closed")
    core.clock.advance((days or 0) * DAY_MS // 1000)
    ticket, is_new = await tickets.receive_customer_message(tx, PROJECT, "sub_1", HELP)

    assert is_new is not goes_on
    assert (ticket.ticket_id == before.ticket_id) is goes_on
    assert (ticket.status, ticket.closed_at_ms) == ("open", None)
    assert ("ticket.replied" in core.event_names) is goes_on


async def test_an_answer_to_an_older_ticket_goes_on_with_that(
    core: MemoryCore, tx: Tx, tickets: Tickets
) -> None:
    await core.person(tx, "sub_2")
    older = await add_ticket(core, tx)
    foreign = await add_ticket(core, tx, subscriber_id="sub_2")
    answers = [
        (
            await tickets.reply(
                tx, PROJECT, each.ticket_id, AgentReply(OutgoingMessage("Here")), API
            )
        )[1].message_id
        for each in (foreign, older)
    ]
    core.clock.advance(60)
    newer = await add_ticket(core, tx)
    found = [
        (await tickets.receive_customer_message(tx, PROJECT, "sub_1", HELP, about=about))[0]
        for about in answers
    ]

    assert [each.ticket_id for each in found] == [newer.ticket_id, older.ticket_id]


async def test_a_waiting_time_begins_with_the_first_unanswered_message(
    core: MemoryCore, tx: Tx, tickets: Tickets
) -> None:
    await add_ticket(core, tx, status="pending", waiting_since_ms=None)
    fresh, _ = await tickets.receive_customer_message(tx, PROJECT, "sub_1", HELP)
    began_ms = core.clock.now_ms()
    core.clock.advance(60)
    still, _ = await tickets.receive_customer_message(tx, PROJECT, "sub_1", HELP)

    assert (fresh.status, fresh.waiting_since_ms) == ("open", began_ms)
    assert (still.waiting_since_ms, still.last_message_at_ms) == (began_ms, began_ms + 60_000)
    assert core.event_names == ["ticket.status_changed", "ticket.replied", "ticket.replied"]


async def test_what_the_project_reports_is_of_customers_without_a_messenger(
    core: MemoryCore, tx: Tx, tickets: Tickets
) -> None:
    closed = await add_virtual(core, tx, status="closed")
    of_ann = await add_ticket(core, tx)
    core.clock.advance(30 * 24 * 3600)
    late = await tickets.add_customer_message(tx, PROJECT, closed.ticket_id, HELP, API)

    assert late.ticket_id != closed.ticket_id
    assert late.customer_name == closed.customer_name
    with pytest.raises(Conflict, match="messenger_a"):
        await tickets.add_customer_message(tx, PROJECT, of_ann.ticket_id, HELP, API)


async def test_what_a_changed_message_said_before_is_kept_and_not_for_ever() -> None:
    async with helpdesk(edits_kept=2) as core, core.db.transaction() as tx:
        ticket = await add_ticket(core, tx)
        await add_entry(core, tx, ticket, text="One")
        for text in ("Two", "Three", "Four"):
            core.clock.advance(1)
            [entry] = await entries_of(core, tx, ticket)
            await core.get(Tickets).edit_customer_message(tx, entry, text, [], None)

        [entry] = await entries_of(core, tx, ticket)
        assert entry.text == "Four"
        assert [edit.text for edit in entry.edits] == ["Two", "Three"]


# ---- agents -------------------------------------------------------------------------------------


async def test_a_reply_is_sent_charged_and_ends_the_waiting(
    core: MemoryCore, tx: Tx, tickets: Tickets, billing: Billing
) -> None:
    reported = await add_ticket(core, tx, told_waiting_at_ms=5)
    ticket, entry = await tickets.reply(
        tx, PROJECT, reported.ticket_id, AgentReply(OutgoingMessage("Here")), API
    )

    [message] = await core.messages_queued(tx)
    assert (message.content.text, message.message_id) == ("Here", entry.message_id)
    assert [(one.operation, one.resource_id) for one in billing.charges] == [
        (OPERATION, entry.entry_id)
    ]
    assert (ticket.status, ticket.waiting_since_ms) == ("pending", None)
    assert ticket.told_waiting_at_ms is None
    assert ticket.first_response_at_ms == entry.created_at_ms
    assert await now(core, tx, ticket) == ticket
    assert core.event_names == ["ticket.replied", "ticket.status_changed"]


async def test_a_note_is_no_answer_and_costs_nothing(
    core: MemoryCore, tx: Tx, tickets: Tickets, billing: Billing
) -> None:
    note = AgentReply(OutgoingMessage("He is rude"), internal=True)
    closed = await add_ticket(core, tx, status="closed")
    ticket, entry = await tickets.reply(tx, PROJECT, closed.ticket_id, note, API)

    assert (entry.internal, ticket.status) == (True, "closed")
    assert (await core.messages_queued(tx), billing.charges, core.emitted) == ([], [], [])


async def test_a_closed_ticket_takes_no_answer(core: MemoryCore, tx: Tx, tickets: Tickets) -> None:
    closed = await add_ticket(core, tx, status="closed")
    with pytest.raises(Conflict, match="closed"):
        await tickets.reply(tx, PROJECT, closed.ticket_id, AgentReply(OutgoingMessage("Hi")), API)

    assert await core.messages_queued(tx) == []


async def test_an_answer_that_nobody_pays_for_is_refused(
    core: MemoryCore, tx: Tx, tickets: Tickets, billing: Billing
) -> None:
    ticket = await add_ticket(core, tx)
    billing.refused.add(OPERATION)

    with pytest.raises(BillingBlocked):
        await tickets.reply(tx, PROJECT, ticket.ticket_id, AgentReply(OutgoingMessage("Hi")), API)


async def test_the_first_who_claims_a_ticket_has_it(
    core: MemoryCore, tx: Tx, tickets: Tickets
) -> None:
    mia, zoe = await hire(core, tx), await hire(core, tx, "zoe")
    ticket, closed = await add_ticket(core, tx), await add_ticket(core, tx, status="closed")
    taken = await tickets.claim(tx, PROJECT, "1", mia.member_id, API)
    again = await tickets.claim(tx, PROJECT, "1", mia.member_id, API)

    assert taken.assignee_id == mia.member_id
    assert again == taken == await now(core, tx, ticket)
    with pytest.raises(Conflict, match="assigned to mem_mia"):
        await tickets.claim(tx, PROJECT, "1", zoe.member_id, API)
    with pytest.raises(Conflict, match="closed"):
        await tickets.claim(tx, PROJECT, str(closed.number), zoe.member_id, API)
    assert core.event_names == ["ticket.assigned"]


async def test_what_changes_nothing_is_told_of_by_nothing(
    core: MemoryCore, tx: Tx, tickets: Tickets
) -> None:
    ticket = await add_ticket(core, tx)
    core.clock.advance(60)
    await tickets.set_status(tx, PROJECT, "1", "open", API)
    await tickets.set_priority(tx, PROJECT, "1", "normal", API)
    await tickets.set_tags(tx, PROJECT, "1", [], API)
    await tickets.assign(tx, PROJECT, "1", None, API)
    await tickets.unassign(tx, PROJECT, "1", "mem_mia")

    # Nor has `updated_at_ms` moved.
    assert await now(core, tx, ticket) == ticket
    assert core.emitted == []


async def test_an_end_is_told_twice_and_ends_the_waiting(
    core: MemoryCore, tx: Tx, tickets: Tickets
) -> None:
    await add_ticket(core, tx, told_waiting_at_ms=5)
    closed = await tickets.close(tx, PROJECT, "1", API)
    reopened = await tickets.set_status(tx, PROJECT, "1", "open", API)

    assert core.event_names == [
        "ticket.status_changed",
        "ticket.closed",
        "ticket.status_changed",
    ]
    assert (closed.waiting_since_ms, closed.closed_at_ms) == (None, core.clock.now_ms())
    assert closed.told_waiting_at_ms is None
    assert reopened.closed_at_ms is None


async def test_a_ticket_has_so_many_labels() -> None:
    async with helpdesk(tags_per_ticket=2) as core, core.db.transaction() as tx:
        tickets, ticket = core.get(Tickets), await add_ticket(core, tx)
        tagged = await tickets.set_tags(tx, PROJECT, "1", ["b", "a", "b"], API)

        assert tagged.tags == ("a", "b")
        with pytest.raises(ValidationFailed, match="at most 2"):
            await tickets.set_tags(tx, PROJECT, "1", ["a", "b", "c"], API)
        assert (await now(core, tx, ticket)).tags == ("a", "b")


@pytest.mark.parametrize("name", ["tkt_9", "9", "one", "-1", "1" * 16, "١"])
async def test_what_is_no_ticket_is_missing(
    core: MemoryCore, tx: Tx, tickets: Tickets, name: str
) -> None:
    await add_ticket(core, tx)

    with pytest.raises(NotFound):
        await tickets.get(tx, PROJECT, name)


async def test_a_ticket_that_was_merged_leads_to_the_one_that_goes_on(
    core: MemoryCore, tx: Tx, tickets: Tickets
) -> None:
    goes_on = await add_ticket(core, tx)
    await add_virtual(core, tx, merged_into=goes_on.ticket_id)

    assert await tickets.get(tx, PROJECT, "2") == goes_on
    assert await tickets.lock(tx, PROJECT, "2") == goes_on


# ---- time ---------------------------------------------------------------------------------------


async def test_a_snooze_ends_in_time_to_come() -> None:
    async with helpdesk(snooze_days=1) as core, core.db.transaction() as tx:
        now_ms, snooze = core.clock.now_ms(), core.get(Tickets).snooze
        await add_ticket(core, tx)
        await add_ticket(core, tx, status="closed")
        for until_ms in (now_ms, now_ms + DAY_MS + 1):
            with pytest.raises(ValidationFailed, match="until"):
                await snooze(tx, PROJECT, "1", until_ms, API)
        with pytest.raises(Conflict, match="closed"):
            await snooze(tx, PROJECT, "2", now_ms + 1, API)

        asleep = await snooze(tx, PROJECT, "1", now_ms + DAY_MS, API)
        later = await snooze(tx, PROJECT, "1", now_ms + 5, API)
        assert (asleep.status, later.snoozed_until_ms) == ("snoozed", now_ms + 5)
        assert core.event_names == ["ticket.status_changed"]


@pytest.mark.parametrize(("left_ms", "status"), [(0, "open"), (1, "snoozed")])
async def test_a_ticket_wakes_when_its_snooze_is_over(
    core: MemoryCore, tx: Tx, tickets: Tickets, left_ms: int, status: str
) -> None:
    until_ms = core.clock.now_ms() + left_ms
    ticket = await add_ticket(core, tx, status="snoozed", snoozed_until_ms=until_ms)
    await tickets.wake(tx, PROJECT, ticket.ticket_id)

    assert (await now(core, tx, ticket)).status == status


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
    core: MemoryCore, tx: Tx, tickets: Tickets, fields: dict[str, Any], told: bool
) -> None:
    since_ms = core.clock.now_ms() - 24 * HOUR_MS
    offset = fields.get("waiting_since_ms", 0)
    waits = {"waiting_since_ms": None if offset is None else since_ms + offset}
    ticket = await add_ticket(core, tx, **{**fields, **waits, "updated_at_ms": 7})
    for _ in range(2):
        await tickets.notify_waiting(tx, PROJECT, ticket.ticket_id)

    assert core.event_names == (["ticket.unanswered_24h"] if told else [])
    assert (await now(core, tx, ticket)).updated_at_ms == 7


# ---- merging and removing -----------------------------------------------------------------------


async def test_what_was_said_in_both_is_in_one(core: MemoryCore, tx: Tx, tickets: Tickets) -> None:
    into = await add_ticket(core, tx, status="pending", waiting_since_ms=None, last_message_at_ms=5)
    first = await add_virtual(core, tx, waiting_since_ms=3, last_message_at_ms=9)
    for ticket, text in ((first, "By form"), (into, "By messenger")):
        await add_entry(core, tx, ticket, text=text, message_ref=text)
    merged = await tickets.merge(tx, PROJECT, "2", "1", API)

    assert merged == await now(core, tx, into)
    assert (merged.status, merged.waiting_since_ms, merged.last_message_at_ms) == ("open", 3, 9)
    assert [entry.text for entry in await entries_of(core, tx, into)] == ["By form", "By messenger"]
    assert (await now(core, tx, first)).merged_into == into.ticket_id
    [closed] = [event for event in core.emitted if event.name == "ticket.closed"]
    assert closed.data["merged_into"] == into.ticket_id


async def test_nobody_waits_in_a_closed_ticket_whatever_is_merged_into_it(
    core: MemoryCore, tx: Tx, tickets: Tickets
) -> None:
    await add_ticket(core, tx, status="closed")
    await add_virtual(core, tx, waiting_since_ms=3)
    merged = await tickets.merge(tx, PROJECT, "2", "1", API)

    assert (merged.status, merged.waiting_since_ms) == ("closed", None)


async def test_what_can_not_be_merged_is_refused(
    core: MemoryCore, tx: Tx, tickets: Tickets
) -> None:
    await core.person(tx, "sub_2")
    ann = await add_ticket(core, tx)
    of_boris = await add_ticket(core, tx, subscriber_id="sub_2")
    await add_virtual(core, tx, merged_into="tkt_9")

    with pytest.raises(ValidationFailed, match="another ticket"):
        await tickets.merge(tx, PROJECT, "1", ann.ticket_id, API)
    with pytest.raises(Conflict, match="another customer"):
        await tickets.merge(tx, PROJECT, "1", str(of_boris.number), API)
    with pytest.raises(Conflict, match="was merged"):
        await tickets.merge(tx, PROJECT, "3", "1", API)
    assert core.emitted == []


async def test_a_ticket_that_is_deleted_takes_what_was_merged_into_it_and_its_files(
    core: MemoryCore, tx: Tx, tickets: Tickets
) -> None:
    ticket = await add_ticket(core, tx)
    await add_virtual(core, tx, merged_into=ticket.ticket_id)
    other, file = await add_virtual(core, tx), await add_file(core, tx)
    await add_entry(core, tx, ticket, file_ids=(file.file_id,))
    await tickets.delete(tx, PROJECT, ticket.ticket_id)

    assert await all_tickets(core, tx) == [other]
    with pytest.raises(NotFound):
        await core.files.get(tx, PROJECT, file.file_id)


# ---- what is sent -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "why"), [("blocked", "blocked"), ("unsubscribed", "unsub"), (None, "gone")]
)
async def test_who_can_not_be_reached_is_sent_nothing(
    core: MemoryCore, tx: Tx, tickets: Tickets, status: Status | None, why: str
) -> None:
    if status is not None:
        await core.person(tx, "sub_2", status=status)
    ticket = await add_ticket(core, tx, subscriber_id="sub_2")
    with pytest.raises(Conflict, match=f"they are {why}"):
        await tickets.reply(tx, PROJECT, ticket.ticket_id, AgentReply(OutgoingMessage("Hi")), API)

    assert await core.messages_queued(tx) == []
    assert await entries_of(core, tx, ticket) == []


async def test_a_number_is_from_now_on_said_to_the_agent(
    core: MemoryCore, tx: Tx, tickets: Tickets
) -> None:
    ticket = await add_ticket(core, tx)
    for chat in ("chat 1", "chat 2"):
        await offers.save(tx, "messenger_a", chat, offer_id="o1", sealed="", now_ms=1)
    await tickets.reply(
        tx, PROJECT, ticket.ticket_id, AgentReply(OutgoingMessage("Which one, 1 or 2?")), API
    )

    asked = [await offers.is_asked(tx, "messenger_a", chat) for chat in ("chat 1", "chat 2")]
    assert asked == [False, True]


async def test_a_file_that_is_not_here_yet_is_not_sent(
    core: MemoryCore, tx: Tx, tickets: Tickets
) -> None:
    ticket = await add_ticket(core, tx)
    [file] = await core.files.receive(core.inbound(tx, wrote()), PROJECT, "sub_1", [PHOTO])

    with pytest.raises(Conflict, match="the file is pending"):
        await tickets.reply(
            tx,
            PROJECT,
            ticket.ticket_id,
            AgentReply(OutgoingMessage("Look"), file_id=file.file_id),
            API,
        )


async def test_a_customer_reads_their_own_language_and_a_virtual_one_the_services(
    core: MemoryCore, tx: Tx, tickets: Tickets
) -> None:
    await core.person(tx, "sub_2", lang="ru")
    await add_ticket(core, tx, subscriber_id="sub_2")
    await add_virtual(core, tx)

    assert [await tickets.lang_of(tx, PROJECT, number) for number in ("1", "2")] == ["ru", "en"]


def test_a_text_is_no_longer_than_a_message_may_be(core: MemoryCore, tickets: Tickets) -> None:
    most = core.config.limits.text_length
    tickets.check_text("x" * most)

    with pytest.raises(ValidationFailed, match=str(most)):
        tickets.check_text("x" * (most + 1))


async def test_a_source_that_is_forgotten_leaves_the_name_of_a_subscriber(
    core: MemoryCore, tx: Tx, tickets: Tickets
) -> None:
    of_ann = await add_ticket(core, tx, source="form", source_id="fsb_1")
    of_visitor = await add_virtual(core, tx, source="form", source_id="fsb_2")
    for source_id in ("fsb_1", "fsb_2"):
        await tickets.forget_source(tx, PROJECT, "form", source_id)

    names = [(await now(core, tx, each)).customer_name for each in (of_ann, of_visitor)]
    assert names == ["Ann", ""]
