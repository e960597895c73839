"""The inbox, canned answers, the blocklist and what time does."""

from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.api.pagination import next_cursor
from msgsvc_core.content.outgoing import Media, OutgoingMessage
from msgsvc_core.db import DatabaseUnavailable, Tx
from msgsvc_core.jobs import JobSpec, NewJob, Stopping
from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS
from msgsvc_core.kernel.errors import (
    BadRequest,
    Conflict,
    NotFound,
    SubscriberNotFound,
    ValidationFailed,
)
from msgsvc_core.members.models import UpdateMemberBody
from msgsvc_devkit import MemoryCore
from msgsvc_devkit.contexts import JobInTest, claimed
from msgsvc_devkit.core import PROJECT
from msgsvc_helpdesk import entry_store, removing
from msgsvc_helpdesk.agents.notifications import GONE_JOB
from msgsvc_helpdesk.blocklist import Blocklist
from msgsvc_helpdesk.canned_answers.models import CreateCannedAnswerBody, UpdateCannedAnswerBody
from msgsvc_helpdesk.canned_answers.service import CannedAnswers
from msgsvc_helpdesk.dashboard.conversation import LIMIT, Conversations
from msgsvc_helpdesk.dashboard.inbox import TicketList
from msgsvc_helpdesk.inbox import Counts, Inbox
from msgsvc_helpdesk.jobs import LOOK
from msgsvc_helpdesk.models import Actor, AgentReply, InboxQuery, Ticket
from msgsvc_helpdesk.service import Tickets

from .desk import (
    PHOTO,
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
from .pages import open_page

# ---- blocklist ----------------------------------------------------------------------------------


async def test_a_subscriber_is_blocked_with_a_reason(core: MemoryCore, tx: Tx) -> None:
    blocklist, first_ms = core.get(Blocklist), core.clock.now_ms()
    await blocklist.add(tx, PROJECT, "sub_1", "")
    core.clock.advance(60)
    blocked = await blocklist.add(tx, PROJECT, "sub_1", "rude")

    assert (blocked.reason, blocked.created_at_ms) == ("rude", first_ms)
    assert await blocklist.get(tx, PROJECT, "sub_1") == blocked


async def test_who_is_not_there_is_neither_blocked_nor_let_in(core: MemoryCore, tx: Tx) -> None:
    blocklist = core.get(Blocklist)

    with pytest.raises(SubscriberNotFound):
        await blocklist.add(tx, PROJECT, "sub_unknown", "")
    with pytest.raises(NotFound):
        await blocklist.get(tx, PROJECT, "sub_1")
    with pytest.raises(NotFound):
        await blocklist.remove(tx, PROJECT, "sub_1")
    assert await blocklist.page(tx, PROJECT, None, 10) == []


# ---- canned answers -----------------------------------------------------------------------------


@pytest.fixture
def canned(core: MemoryCore) -> CannedAnswers:
    return core.get(CannedAnswers)


def saying(text: Any, key: str = "hi") -> CreateCannedAnswerBody:
    return CreateCannedAnswerBody.model_validate({"key": key, "text": text})


async def test_each_customer_is_answered_in_their_language(tx: Tx, canned: CannedAnswers) -> None:
    await canned.create(tx, PROJECT, saying({"en": "Hi {{ name }}", "ru": "Привет, {{ name }}"}))
    said = [
        await canned.render(tx, PROJECT, "hi", {"name": "Ann"}, lang) for lang in ("en", "ru", "fr")
    ]

    assert [each.text for each in said] == ["Hi Ann", "Привет, Ann", "Hi Ann"]


async def test_what_a_variable_lacks_is_named(tx: Tx, canned: CannedAnswers) -> None:
    await canned.create(tx, PROJECT, saying("Hi {{ name }}"))

    with pytest.raises(ValidationFailed, match=r"variables.*name"):
        await canned.render(tx, PROJECT, "hi", {}, "en")


@pytest.mark.parametrize("text", ["Hi {{ name", "x" * 5000])
async def test_what_could_never_be_sent_is_refused(
    tx: Tx, canned: CannedAnswers, text: str
) -> None:
    with pytest.raises(ValidationFailed):
        await canned.create(
            tx,
            PROJECT,
            CreateCannedAnswerBody.model_construct(key="hi", title="", text=text, format="plain"),
        )

    assert await canned.page(tx, PROJECT, None, 10) == []


async def test_a_project_has_so_many_and_each_key_once() -> None:
    async with helpdesk(canned_answers=2) as core, core.db.transaction() as tx:
        canned = core.get(CannedAnswers)
        await canned.create(tx, PROJECT, saying("Hi"))
        with pytest.raises(Conflict, match="already"):
            await canned.create(tx, PROJECT, saying("Hello"))
        await canned.create(tx, PROJECT, saying("Bye", "bye"))
        with pytest.raises(Conflict, match="at most 2"):
            await canned.create(tx, PROJECT, saying("Thanks", "thanks"))

        assert (await canned.render(tx, PROJECT, "hi", {}, "en")).text == "Hi"


async def test_what_a_change_leaves_out_stays(
    core: MemoryCore, tx: Tx, canned: CannedAnswers
) -> None:
    before = await canned.create(tx, PROJECT, saying("Hi {{ name }}"))
    core.clock.advance(60)
    after = await canned.update(tx, PROJECT, "hi", UpdateCannedAnswerBody(title="Greeting"))

    shown = canned.shown(after)
    assert await canned.get(tx, PROJECT, "hi") == after
    assert (shown.title, shown.text, shown.variables) == ("Greeting", "Hi {{ name }}", ["name"])
    assert after.updated_at_ms == before.updated_at_ms + 60_000
    for missing in (
        canned.update(tx, PROJECT, "no", UpdateCannedAnswerBody()),
        canned.delete(tx, PROJECT, "no"),
    ):
        with pytest.raises(NotFound):
            await missing


# ---- the inbox ----------------------------------------------------------------------------------


async def test_a_page_goes_on_where_the_one_before_ended(core: MemoryCore, tx: Tx) -> None:
    tickets = [await add_ticket(core, tx, last_message_at_ms=ms) for ms in (7, 9, 8, 8)]
    await add_ticket(core, tx, status="closed")
    query, shown = InboxQuery(status="open", limit=2), []
    while True:
        page, cursor = await core.get(Inbox).page(tx, PROJECT, query)
        shown.append(page)
        if cursor is None:
            break
        query = query.model_copy(update={"cursor": cursor})

    seven, nine, eight, newer_eight = tickets
    assert shown == [[nine, newer_eight], [eight, seven]]


@pytest.mark.parametrize("after", ["x_tkt_1", "5", "5_", "_tkt_1"])
async def test_a_cursor_that_is_none_of_ours_is_refused(
    core: MemoryCore, tx: Tx, after: str
) -> None:
    with pytest.raises(BadRequest):
        await core.get(Inbox).page(tx, PROJECT, InboxQuery(cursor=next_cursor(after)))


async def test_customers_are_overdue_after_as_many_hours_as_the_settings_say() -> None:
    async with helpdesk(unanswered_hours=2) as core, core.db.transaction() as tx:
        now_ms = core.clock.now_ms()
        await add_ticket(core, tx, waiting_since_ms=now_ms - 2 * HOUR_MS)
        await add_ticket(core, tx, waiting_since_ms=now_ms - 2 * HOUR_MS + 1)
        await add_ticket(core, tx, assignee_id="mem_mia", due_at_ms=now_ms)
        await add_ticket(core, tx, status="pending", assignee_id="mem_mia")
        await add_ticket(core, tx, status="snoozed", snoozed_until_ms=now_ms + 1)
        await add_ticket(core, tx, status="closed")
        counts = await core.get(Inbox).counts(tx, PROJECT, "mem_mia")

        assert counts == Counts(
            open=3, pending=1, snoozed=1, unassigned=2, mine=1, overdue=1, missed=1
        )


async def test_a_list_is_shown_anew_after_a_change_and_after_a_minute(
    core: MemoryCore, tx: Tx
) -> None:
    inbox = core.get(Inbox)
    await add_ticket(core, tx, updated_at_ms=77)
    first = await inbox.marker(tx, PROJECT)
    assert await inbox.marker(tx, PROJECT) == first
    await add_ticket(core, tx, updated_at_ms=78)
    second = await inbox.marker(tx, PROJECT)
    core.clock.advance(60)
    third = await inbox.marker(tx, PROJECT)

    assert len({first, second, third}) == 3


async def listed(core: MemoryCore, tx: Tx, **given: Any) -> dict[str, Any]:
    """What the list of tickets shows."""
    return await core.get(TicketList).listed(await open_page(core, tx, **given))


async def test_the_list_shows_open_tickets_unless_it_is_asked_for_others(
    core: MemoryCore, tx: Tx
) -> None:
    await hire(core, tx)
    opened, closed = await add_ticket(core, tx), await add_ticket(core, tx, status="closed")
    mias = await add_ticket(core, tx, status="closed", assignee_id="mem_mia")
    queries: list[dict[str, str]] = [{}, {"status": "all"}, {"status": "closed", "who": "none"}]
    shown = [await listed(core, tx, **query) for query in queries]

    assert [{each.ticket_id for each in one["tickets"]} for one in shown] == [
        {opened.ticket_id},
        {opened.ticket_id, closed.ticket_id, mias.ticket_id},
        {closed.ticket_id},
    ]
    assert (shown[0]["most"], shown[0]["names"]) == (100, {"mem_mia": "Mia"})


async def test_an_account_without_a_member_has_no_tickets_of_its_own(
    core: MemoryCore, tx: Tx
) -> None:
    mia = await hire(core, tx)
    await add_ticket(core, tx)
    mias = await add_ticket(core, tx, assignee_id=mia.member_id)
    shown = [(await listed(core, tx, member=member, who="me"))["tickets"] for member in (None, mia)]

    assert shown == [[], [mias]]


async def test_an_owner_is_known_by_their_address(core: MemoryCore, tx: Tx) -> None:
    mia = await hire(core, tx)

    assert (await listed(core, tx, role="owner"))["me"] == mia
    assert (await listed(core, tx, role="admin"))["me"] is None


# ---- conversations ------------------------------------------------------------------------------


async def test_what_was_said_is_shown_with_who_said_it_and_whether_it_arrived(
    core: MemoryCore, tx: Tx
) -> None:
    mia, ticket = await hire(core, tx), await add_ticket(core, tx)
    await add_entry(core, tx, ticket)
    mias = Actor("agent", mia.member_id)
    await core.get(Tickets).reply(
        tx, PROJECT, ticket.ticket_id, AgentReply(OutgoingMessage("Here")), mias
    )
    shown = await core.get(Conversations).page(await open_page(core, tx), ticket)

    asked, answered = shown.entries
    assert (asked.who, asked.message) == ("", None)
    assert answered.who == "Mia"
    assert [answered.message] == await core.messages_queued(tx)
    assert shown.earlier is None


@pytest.mark.parametrize(
    ("url", "link"),
    [("https://shop.example/a.png", "https://shop.example/a.png"), ("javascript:alert(1)", "")],
)
async def test_a_file_at_another_place_is_a_link_if_it_is_a_web_address(
    core: MemoryCore, tx: Tx, url: str, link: str
) -> None:
    ticket = await add_ticket(core, tx)
    await add_entry(core, tx, ticket, media=Media("image", url, None))
    shown = await core.get(Conversations).page(await open_page(core, tx), ticket)

    assert shown.entries[0].link == link


async def test_a_long_conversation_goes_on_by_a_cursor(core: MemoryCore, tx: Tx) -> None:
    ticket = await add_ticket(core, tx)
    for number in range(LIMIT + 1):
        await add_entry(core, tx, ticket, text=str(number), message_ref=f"m{number}")
    page, conversations = await open_page(core, tx), core.get(Conversations)
    shown = await conversations.page(page, ticket)
    rest = await conversations.page(page, ticket, shown.earlier or "")

    assert [one.entry.text for one in shown.entries] == [str(each) for each in range(1, LIMIT + 1)]
    assert [one.entry.text for one in rest.entries] == ["0"]
    assert rest.earlier is None


async def test_a_conversation_looks_different_once_something_of_it_does(
    core: MemoryCore, tx: Tx
) -> None:
    async def marker(ticket: Ticket) -> str:
        return (await core.get(Conversations).page(await open_page(core, tx), ticket)).marker

    ticket = await add_ticket(core, tx)
    entry = await add_entry(core, tx, ticket)
    before = await marker(ticket)
    assert await marker(ticket) == before
    assert await marker(replace(ticket, updated_at_ms=5)) != before

    await entry_store.change(tx, entry, "Now", [], None, 5)
    assert await marker(ticket) != before


async def test_a_file_is_read_at_the_host_of_the_page_once_it_is_here(
    core: MemoryCore, tx: Tx
) -> None:
    ticket, ready = await add_ticket(core, tx), await add_file(core, tx)
    [pending] = await core.files.receive(core.inbound(tx, wrote()), PROJECT, "sub_1", [PHOTO])
    for file in (ready, pending):
        await add_entry(core, tx, ticket, message_ref=file.file_id, file_ids=(file.file_id,))
    shown = await core.get(Conversations).page(await open_page(core, tx), ticket)

    first, second = [file for entry in shown.entries for file in entry.files]
    assert (first.is_picture, second.is_picture) == (True, False)
    assert first.url.startswith("/")
    assert second.url == ""


# ---- time ---------------------------------------------------------------------------------------


def look(core: MemoryCore) -> JobSpec:
    [spec] = [spec for spec in core.service.job_specs if spec.name == LOOK]
    return spec


async def add_asleep(core: MemoryCore, tx: Tx) -> Ticket:
    """A ticket whose snooze is over."""
    return await add_ticket(
        core, tx, status="snoozed", snoozed_until_ms=core.clock.now_ms(), waiting_since_ms=None
    )


async def test_time_wakes_tickets_and_tells_of_customers_who_wait(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        asleep = await add_asleep(core, tx)
        day_ago_ms = core.clock.now_ms() - DAY_MS
        waiting = await add_virtual(core, tx, waiting_since_ms=day_ago_ms)
        await add_virtual(core, tx, waiting_since_ms=day_ago_ms + 1)
    await core.run(NewJob(LOOK))

    told = [(event.name, event.data["ticket_id"]) for event in core.emitted]
    assert told == [
        ("ticket.status_changed", asleep.ticket_id),
        ("ticket.unanswered_24h", waiting.ticket_id),
    ]


async def test_what_fails_for_one_ticket_keeps_no_other_one_waiting(
    core: MemoryCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with core.db.transaction() as tx:
        bad, good = await add_asleep(core, tx), await add_asleep(core, tx)
    wake = core.get(Tickets).wake

    async def wake_some(tx: Tx, project_id: str, ticket_id: str) -> None:
        await wake(tx, project_id, ticket_id)
        if ticket_id == bad.ticket_id:
            raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(core.get(Tickets), "wake", wake_some)
    await core.run(NewJob(LOOK))

    async with core.db.read() as tx:
        statuses = [(await now(core, tx, each)).status for each in (bad, good)]
    assert statuses == ["snoozed", "open"]


async def test_a_database_that_is_away_ends_the_look(
    core: MemoryCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with core.db.transaction() as tx:
        await add_asleep(core, tx)

    async def away(*_: object) -> None:
        raise DatabaseUnavailable("away")

    monkeypatch.setattr(core.get(Tickets), "wake", away)
    with pytest.raises(DatabaseUnavailable):
        await core.run(NewJob(LOOK))


async def test_a_runner_that_stops_begins_nothing(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        await add_asleep(core, tx)
    context = JobInTest(core.db)
    context.is_stopping = True

    with pytest.raises(Stopping):
        await look(core).handler(context, [claimed(NewJob(LOOK))])
    assert core.emitted == []


async def test_the_looks_go_on_after_one_that_died(core: MemoryCore, tx: Tx) -> None:
    on_dead = look(core).on_dead
    assert on_dead is not None
    for _ in range(2):
        await on_dead(tx, claimed(NewJob(LOOK)), "killed")

    [again] = await core.jobs_named(tx, LOOK)
    assert again.run_at_ms == core.clock.now_ms() + 10_000


async def test_the_tickets_of_who_left_are_taken_and_a_failure_is_tried_again(
    core: MemoryCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with core.db.transaction() as tx:
        mia = await hire(core, tx)
        first = await add_ticket(core, tx, assignee_id=mia.member_id)
        await core.members.change(tx, PROJECT, mia.member_id, UpdateMemberBody(role="viewer"))
        [job] = await core.jobs_named(tx, GONE_JOB)
    await core.run(job)

    async with core.db.transaction() as tx:
        assert (await now(core, tx, first)).assignee_id is None
        await add_ticket(core, tx, assignee_id=mia.member_id)
    assert core.event_names == ["ticket.assigned"]

    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(core.get(Tickets), "unassign", fail)
    with pytest.raises(RuntimeError, match="mem_mia"):
        await core.run(job)


async def test_tickets_go_so_long_after_their_end_unless_something_was_said_since() -> None:
    async with helpdesk(closed_ticket_days=30) as core:
        async with core.db.transaction() as tx:
            old_ms = core.clock.now_ms() - 30 * DAY_MS
            old = {"status": "closed", "closed_at_ms": old_ms, "last_message_at_ms": old_ms}
            await add_ticket(core, tx, **old)
            spoken = await add_virtual(core, tx, **{**old, "last_message_at_ms": old_ms + 1})
            newer = await add_ticket(core, tx, **{**old, "closed_at_ms": old_ms + 1})
            reopened = await add_ticket(core, tx, last_message_at_ms=old_ms)
        await core.run(NewJob("helpdesk.purge"))

        async with core.db.read() as tx:
            assert await all_tickets(core, tx) == [spoken, newer, reopened]


async def test_a_ticket_in_which_something_happened_since_it_was_found_stays(
    core: MemoryCore, tx: Tx
) -> None:
    old_ms = core.clock.now_ms() - 30 * DAY_MS
    old = {"status": "closed", "closed_at_ms": old_ms, "last_message_at_ms": old_ms}
    spoken = await add_ticket(core, tx, **{**old, "last_message_at_ms": old_ms + 1})
    reopened = await add_ticket(core, tx, last_message_at_ms=old_ms)
    gone = await add_ticket(core, tx, **old)
    for ticket in (spoken, reopened, gone):
        await removing.remove_merged(core.files, tx, PROJECT, ticket.ticket_id, old_ms)

    assert await all_tickets(core, tx) == [spoken, reopened]


async def test_who_is_erased_leaves_closed_and_empty_tickets(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        ticket, other = await add_ticket(core, tx), await add_virtual(core, tx)
        await add_entry(core, tx, ticket)
    core.clock.advance(60)
    [erasing] = core.service.plugins.hook.erase_subscriber(
        project_id=PROJECT, subscriber_id="sub_1"
    )
    await erasing

    async with core.db.read() as tx:
        erased = await now(core, tx, ticket)
        assert (erased.status, erased.customer_name, erased.subject) == ("closed", "", "")
        assert erased.erased_at_ms == erased.closed_at_ms == core.clock.now_ms()
        assert await entries_of(core, tx, ticket) == []
        assert await now(core, tx, other) == other
    assert core.emitted == []
