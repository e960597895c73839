"""Agents in their messengers."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.channels import ButtonPressed, ChannelUser, InboundContext
from msgsvc_core.db import Tx
from msgsvc_core.files import StoredFile
from msgsvc_core.files import store as file_store
from msgsvc_core.files.models import FileStatus
from msgsvc_core.jobs import NewJob
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.members.models import UpdateMemberBody
from msgsvc_devkit import MemoryCore
from msgsvc_devkit.core import PROJECT
from msgsvc_helpdesk.agents import store
from msgsvc_helpdesk.agents.answering import Answering
from msgsvc_helpdesk.agents.desk import SENT_JOB, AgentDesk
from msgsvc_helpdesk.agents.models import Note, Seat
from msgsvc_helpdesk.agents.notifications import GONE_JOB, AgentNotifications
from msgsvc_helpdesk.models import Ticket
from msgsvc_helpdesk.service import OPERATION

from .desk import (
    ANN,
    MIA_USER,
    PHOTO,
    REPLIES,
    WORDS,
    Billing,
    add_entry,
    add_ticket,
    add_virtual,
    all_tickets,
    calls_to,
    entries_of,
    handle,
    helpdesk,
    hire,
    notices,
    now,
    said_to,
    wrote,
)

#: Columns of tickets: whose they are.
MIAS, ZOES = {"assignee_id": "mem_mia"}, {"assignee_id": "mem_zoe"}


@pytest.fixture
async def core(billing: Billing) -> AsyncIterator[MemoryCore]:
    """With Mia and Zoe, who answer customers."""
    async with helpdesk(billing) as core:
        async with core.db.transaction() as tx:
            await hire(core, tx)
            await hire(core, tx, "zoe")
        yield core


async def seat(core: MemoryCore, tx: Tx, name: str = "mia") -> Seat:
    member = await core.members.get(tx, PROJECT, f"mem_{name}")
    return Seat(member, await core.subscribers.get(tx, PROJECT, f"sub_{name}"))


async def set_role(core: MemoryCore, tx: Tx, name: str = "mia") -> None:
    """Has a member answer customers no more."""
    await core.members.change(tx, PROJECT, f"mem_{name}", UpdateMemberBody(role="viewer"))


async def show(core: MemoryCore, tx: Tx, ticket: Ticket, **fields: Any) -> Note:
    """What Mia was shown of a ticket, as the bot's message `m5`."""
    given: dict[str, Any] = {
        "project_id": PROJECT,
        "note_id": new_id("tan"),
        "ticket_id": ticket.ticket_id,
        "subscriber_id": "sub_mia",
        "member_id": "mem_mia",
        "bot": "messenger_a",
        "chat_id": "chat mia",
        "message_ref": "m5",
        "kind": "offer",
        "shown": "fresh",
        "created_at_ms": core.clock.now_ms(),
        **fields,
    }
    note = Note(**given)
    await store.insert_note(tx, note)
    return note


async def shown(tx: Tx, ticket: Ticket) -> list[str]:
    """How messages about a ticket look, oldest first."""
    return [note.shown for note in await store.with_buttons(tx, PROJECT, ticket.ticket_id)]


async def buttons_to(core: MemoryCore, tx: Tx, name: str, *kinds: str) -> list[str]:
    """What the buttons of the last message to an agent, or of its edit, do; without their prefix."""
    message = (await calls_to(core, tx, name, *kinds))[-1].message
    assert message is not None
    return [(each.data or "").removeprefix("~hd:") for row in message.buttons for each in row]


def pressed(data: str, user: ChannelUser = MIA_USER) -> ButtonPressed:
    return ButtonPressed(
        update_id="1",
        chat_id=f"chat {user.user_id}",
        user=user,
        data=f"~hd:{data}",
        message_ref="m5",
        button_ref="b1",
    )


def mia_wrote(core: MemoryCore, tx: Tx, text: str = "Hello", **fields: Any) -> InboundContext:
    return core.inbound(tx, wrote(text, MIA_USER, **fields))


# ---- what agents are shown ----------------------------------------------------------------------


async def test_a_ticket_is_offered_to_all_who_answer_but_for_its_customer(
    core: MemoryCore, tx: Tx
) -> None:
    await hire(core, tx, "eve", role="viewer")
    mias_own = await add_ticket(core, tx, subscriber_id="sub_mia")
    await add_entry(core, tx, mias_own)
    await core.get(AgentDesk).offer(tx, mias_own)

    [call] = await core.calls(tx)
    assert call.chat_id == "chat zoe"
    assert call.message is not None
    assert "Where is it?" in call.message.text
    assert [button.data for button in call.message.buttons[0]] == [
        f"~hd:take:{mias_own.ticket_id}",
        f"~hd:close:{mias_own.ticket_id}",
    ]


async def test_an_agent_who_can_not_be_written_to_is_left_out(core: MemoryCore, tx: Tx) -> None:
    await core.subscribers.unsubscribe(tx, PROJECT, "sub_mia", reason="stop")
    members = await core.members.list_agents(tx, PROJECT)
    seats = await core.get(AgentDesk).seats(tx, members)

    assert [each.member.name for each in seats] == ["Zoe"]


@pytest.mark.parametrize(
    ("fields", "looks"),
    [
        (ZOES, "taken:mem_zoe"),
        (MIAS, "mine"),
        ({"status": "closed"}, "closed"),
        ({"merged_into": "tkt_2"}, "merged"),
        ({"status": "snoozed", "snoozed_until_ms": 5}, "snoozed:5"),
    ],
)
async def test_no_button_promises_what_it_can_not_do(
    core: MemoryCore, tx: Tx, fields: dict[str, Any], looks: str
) -> None:
    ticket = await add_ticket(core, tx, **fields)
    await show(core, tx, ticket)
    await core.get(AgentDesk).refresh(tx, ticket)

    assert await shown(tx, ticket) == [looks]
    assert len(await core.calls(tx)) == 1
    assert f"take:{ticket.ticket_id}" not in await buttons_to(core, tx, "mia", "edit")


async def test_what_looks_so_already_is_not_edited_again(core: MemoryCore, tx: Tx) -> None:
    closed = await add_ticket(core, tx, status="closed")
    await show(core, tx, closed, shown="closed")
    await core.get(AgentDesk).refresh(tx, closed)

    assert await core.calls(tx) == []


@pytest.mark.parametrize(
    ("fields", "edits"),
    [
        ({"shown": "taken:mem_zoe"}, ["m5"]),
        ({"shown": "fresh"}, []),
        ({"shown": "taken:mem_zoe", "kind": "word"}, []),
    ],
)
async def test_what_became_of_a_ticket_while_its_message_was_sent_is_shown(
    core: MemoryCore, tx: Tx, fields: dict[str, Any], edits: list[str]
) -> None:
    note = await show(core, tx, await add_ticket(core, tx, **ZOES), message_ref=None, **fields)
    await core.get(AgentDesk).sent(tx, PROJECT, note.note_id, "fresh", "m5")

    assert [call.payload["message_ref"] for call in await core.calls(tx)] == edits


async def test_an_agent_who_was_erased_a_moment_ago_keeps_no_customer_from_writing(
    core: MemoryCore, tx: Tx
) -> None:
    there, ticket = await seat(core, tx), await add_ticket(core, tx)
    await core.subscribers.erase(tx, PROJECT, "sub_mia")
    desk = core.get(AgentDesk)
    await desk.send_card(tx, there, ticket)
    await desk.open_in_chat(tx, there, ticket.ticket_id)
    await desk.save_draft(tx, there, "tad_1", "Hi")

    assert await core.calls(tx) == []
    assert await store.opened_in_chat(tx, PROJECT, "sub_mia") is None
    assert await store.pop_draft(tx, PROJECT, "sub_mia", "tad_1") is None


async def test_a_message_to_an_agent_is_recorded_with_what_its_messenger_calls_it(
    core: MemoryCore,
) -> None:
    async with core.db.transaction() as tx:
        ticket = await add_ticket(core, tx)
        notes = [await show(core, tx, ticket, message_ref=None) for _ in range(2)]
    context = await core.run(
        *(
            NewJob(
                SENT_JOB,
                {
                    "project_id": PROJECT,
                    "note_id": note.note_id,
                    "shown": "fresh",
                    "message_ref": ref,
                },
            )
            for note, ref in zip(notes, ("m5", None), strict=True)
        )
    )

    async with core.db.read() as tx:
        found = await store.with_buttons(tx, PROJECT, ticket.ticket_id)
    assert [note.message_ref for note in found] == ["m5", None]
    assert len(context.completed) == 2


# ---- who is told what ---------------------------------------------------------------------------


async def happen(core: MemoryCore, tx: Tx, ticket: Ticket, name: str, **data: Any) -> None:
    """Has an event of the plugin happen to a ticket."""
    fields = {
        "ticket_id": ticket.ticket_id,
        "number": ticket.number,
        "status": ticket.status,
        "priority": "normal",
        "assignee_id": ticket.assignee_id,
    }
    await core.events.emit(tx, PROJECT, name, {**fields, **data})


async def customer_said(core: MemoryCore, tx: Tx, ticket: Ticket, text: str = "Hello?") -> None:
    await add_entry(core, tx, ticket, text=text)
    await happen(core, tx, ticket, "ticket.replied", author="customer", text=text)


async def test_only_who_has_a_ticket_gets_what_its_customer_says(core: MemoryCore, tx: Tx) -> None:
    ticket = await add_ticket(core, tx, **MIAS)
    await customer_said(core, tx, ticket, "Where is it?")
    await happen(core, tx, ticket, "ticket.replied", author="agent", text="Here")

    [told] = await said_to(core, tx, "mia")
    assert "Where is it?" in told
    assert await said_to(core, tx, "zoe") == []


async def test_a_ticket_of_who_answers_no_more_is_offered_to_the_others(
    core: MemoryCore, tx: Tx
) -> None:
    ticket = await add_ticket(core, tx, **MIAS)
    await set_role(core, tx)
    await customer_said(core, tx, ticket)

    assert (await now(core, tx, ticket)).assignee_id is None
    assert "ticket.assigned" in core.event_names
    assert (len(await said_to(core, tx, "mia")), len(await said_to(core, tx, "zoe"))) == (0, 1)


async def test_what_is_offered_is_not_offered_for_every_word(core: MemoryCore, tx: Tx) -> None:
    ticket, times = await add_ticket(core, tx), []
    for _ in range(2):
        await customer_said(core, tx, ticket)
        times.append(len(await said_to(core, tx, "mia")))

    assert times == [1, 1]


@pytest.mark.parametrize(
    ("fields", "name", "data", "times"),
    [
        ({}, "ticket.created", {}, 1),
        (MIAS, "ticket.created", {}, 0),
        (MIAS, "ticket.assigned", {}, 1),
        ({}, "ticket.assigned", {}, 1),
        ({**MIAS, "status": "closed"}, "ticket.assigned", {}, 0),
        ({"status": "snoozed"}, "ticket.assigned", {}, 0),
        (MIAS, "ticket.status_changed", {"from": "snoozed", "to": "open"}, 1),
        ({}, "ticket.status_changed", {"from": "closed", "to": "open"}, 1),
        (MIAS, "ticket.status_changed", {"from": "open", "to": "pending"}, 0),
        (MIAS, "ticket.unanswered_24h", {}, 1),
        ({}, "ticket.unanswered_24h", {}, 1),
        (MIAS, "ticket.csat_received", {"score": 4, "comment": "Fast"}, 1),
        ({}, "ticket.csat_received", {"score": 4, "comment": None}, 0),
    ],
)
async def test_agents_are_told_of_what_they_can_act_on(
    core: MemoryCore,
    tx: Tx,
    fields: dict[str, Any],
    name: str,
    data: dict[str, Any],
    times: int,
) -> None:
    ticket = await add_ticket(core, tx, **fields)
    await happen(core, tx, ticket, name, **data)

    is_for_all = "assignee_id" not in fields
    assert len(await said_to(core, tx, "mia")) == times
    assert len(await said_to(core, tx, "zoe")) == (times if is_for_all else 0)


async def test_an_agent_is_welcomed_in_a_chat_that_was_linked(core: MemoryCore, tx: Tx) -> None:
    for name in ("mia_2", "eve_2"):
        await core.person(tx, f"sub_{name}")
    await hire(core, tx, "eve", role="viewer")
    await core.members.bind(tx, PROJECT, "mem_mia", "sub_mia_2")
    await core.members.bind(tx, PROJECT, "mem_eve", "sub_eve_2")
    await core.members.change(tx, PROJECT, "mem_mia", UpdateMemberBody(name="Mia Moss"))

    [welcome] = await core.texts_sent(tx)
    assert "/tickets" in welcome
    assert await said_to(core, tx, "mia_2") == [welcome]


@pytest.mark.parametrize("how", ["viewer", "removed", "erased"])
async def test_the_tickets_of_who_answers_no_more_are_taken_by_a_job(
    core: MemoryCore, tx: Tx, how: str
) -> None:
    if how == "viewer":
        await set_role(core, tx)
    elif how == "removed":
        await core.members.remove(tx, PROJECT, "mem_mia")
    else:
        await core.members.erase(tx, PROJECT, "mem_mia")

    jobs = await core.jobs_named(tx, GONE_JOB)
    assert [job.payload["member_id"] for job in jobs] == ["mem_mia"]


async def test_who_answers_again_before_the_job_runs_keeps_their_tickets(
    core: MemoryCore, tx: Tx
) -> None:
    ticket = await add_ticket(core, tx, **MIAS)
    left_by = core.get(AgentNotifications).left_by

    assert await left_by(tx, PROJECT, "mem_mia", 10) == []
    await set_role(core, tx)
    assert await left_by(tx, PROJECT, "mem_mia", 10) == [ticket.ticket_id]


async def fetched(tx: Tx, file: StoredFile, status: FileStatus, reason: str = "") -> StoredFile:
    """A file that was pending, after its download."""
    done = replace(file, status=status, reason=reason)
    if status != "pending":
        assert await file_store.finish(tx, done)
    return done


@pytest.mark.parametrize(
    ("status", "sender", "times"),
    [("ready", "sub_1", 1), ("pending", "sub_1", 0), ("ready", "sub_mia", 0)],
)
async def test_a_customers_file_comes_to_who_has_the_ticket_once_it_is_here(
    core: MemoryCore, tx: Tx, status: FileStatus, sender: str, times: int
) -> None:
    ticket = await add_ticket(core, tx, subscriber_id=sender, **MIAS)
    [file] = await core.files.receive(core.inbound(tx, wrote()), PROJECT, sender, [PHOTO])
    await add_entry(core, tx, ticket, file_ids=(file.file_id,))
    done = await fetched(tx, file, status)
    await core.get(AgentNotifications).on_file_fetched(tx, done)

    assert len(await said_to(core, tx, "mia")) == times


# ---- answers ------------------------------------------------------------------------------------


async def answer(core: MemoryCore, tx: Tx, ticket: Ticket, text: str, *files: Any) -> None:
    """Mia answers a ticket."""
    ctx = mia_wrote(core, tx, text)
    await core.get(Answering).answer(ctx, await seat(core, tx), ticket.ticket_id, text, files)


async def sent_to_customers(core: MemoryCore, tx: Tx) -> list[str]:
    return [message.content.text for message in await core.messages_queued(tx)]


async def test_an_answer_to_what_nobody_has_takes_it_and_is_confirmed(
    core: MemoryCore, tx: Tx
) -> None:
    ticket = await add_ticket(core, tx)
    await answer(core, tx, ticket, "On its way")

    assert await sent_to_customers(core, tx) == ["On its way"]
    assert (await now(core, tx, ticket)).assignee_id == "mem_mia"
    assert "ticket.assigned" in core.event_names
    assert (await said_to(core, tx, "mia"))[-1] == "Sent to Ann, #1."
    assert await store.opened_in_chat(tx, PROJECT, "sub_mia") == ticket.ticket_id


@pytest.mark.parametrize(
    ("fields", "why"),
    [(ZOES, "already assigned to Zoe"), ({**MIAS, "status": "closed"}, "#1 is closed")],
)
async def test_an_answer_that_goes_to_nobody_says_so(
    core: MemoryCore, tx: Tx, fields: dict[str, Any], why: str
) -> None:
    ticket = await add_ticket(core, tx, **fields)
    await answer(core, tx, ticket, "Hi")

    [said] = await said_to(core, tx, "mia")
    assert await sent_to_customers(core, tx) == []
    assert why in said
    assert "was not delivered" in said
    reopen = [f"reopen:{ticket.ticket_id}"] if ticket.status == "closed" else []
    assert await buttons_to(core, tx, "mia") == reopen


async def test_a_sticker_reaches_nobody_takes_no_ticket_and_the_agent_is_told(
    core: MemoryCore, tx: Tx
) -> None:
    ticket = await add_ticket(core, tx)
    await answer(core, tx, ticket, "")

    assert await core.texts_sent(tx) == [
        "Only text and files can be sent to a customer. Your message was not delivered."
    ]
    assert await now(core, tx, ticket) == ticket
    assert core.emitted == []


@pytest.mark.parametrize(
    ("refused", "why"),
    [(OPERATION, "credits are used up"), (None, "the customer can't be reached")],
)
async def test_a_refused_answer_takes_no_ticket_and_says_why(
    core: MemoryCore, tx: Tx, billing: Billing, refused: str | None, why: str
) -> None:
    await core.person(tx, "sub_2", status="active" if refused else "blocked")
    billing.refused = {refused} if refused else set()
    ticket = await add_ticket(core, tx, subscriber_id="sub_2")
    await answer(core, tx, ticket, "Hi")

    assert why in (await said_to(core, tx, "mia"))[-1]
    assert await now(core, tx, ticket) == ticket
    assert await sent_to_customers(core, tx) == []
    assert await store.opened_in_chat(tx, PROJECT, "sub_mia") is None


async def answered_by_file(core: MemoryCore, tx: Tx) -> StoredFile:
    """The file with which Mia has answered a ticket of hers, with the word `Look`."""
    await answer(core, tx, await add_ticket(core, tx, **MIAS), "Look", PHOTO)
    [job] = await core.jobs_named(tx, "file.fetch")
    return await core.files.get(tx, PROJECT, job.payload["file_id"])


@pytest.mark.parametrize("is_gone", [True, False])
async def test_a_file_of_an_agent_who_answers_no_more_goes_to_nobody(
    core: MemoryCore, tx: Tx, is_gone: bool
) -> None:
    file = await answered_by_file(core, tx)
    if is_gone:
        await core.members.remove(tx, PROJECT, "mem_mia")
    else:
        await set_role(core, tx)
    await core.get(Answering).on_file_fetched(tx, await fetched(tx, file, "ready"))

    assert await sent_to_customers(core, tx) == []
    assert "no longer answer customers" in (await said_to(core, tx, "mia"))[-1]


@pytest.mark.parametrize(("status", "sent"), [("ready", ["Look"]), ("failed", [])])
async def test_the_words_of_a_file_go_with_it_or_nowhere(
    core: MemoryCore, tx: Tx, status: FileStatus, sent: list[str]
) -> None:
    file = await answered_by_file(core, tx)
    assert await sent_to_customers(core, tx) == []
    reason = "too large" if status == "failed" else ""
    await core.get(Answering).on_file_fetched(tx, await fetched(tx, file, status, reason))

    assert await sent_to_customers(core, tx) == sent
    assert ("too large" in (await said_to(core, tx, "mia"))[-1]) is (status == "failed")


async def test_a_file_that_waits_for_nobody_is_left_alone(core: MemoryCore, tx: Tx) -> None:
    [file] = await core.files.receive(core.inbound(tx, wrote()), PROJECT, "sub_1", [PHOTO])
    await core.get(Answering).on_file_fetched(tx, await fetched(tx, file, "ready"))

    assert await core.calls(tx) == []


# ---- the bot ------------------------------------------------------------------------------------


async def press(core: MemoryCore, tx: Tx, data: str, user: ChannelUser = MIA_USER) -> str | None:
    """What a press of a button is answered with."""
    await handle(core, core.inbound(tx, pressed(data, user)))
    return (await notices(core, tx))[-1]


@pytest.mark.parametrize(
    ("action", "fields", "notice", "event"),
    [
        ("take", {}, "#1 is assigned to you.", "ticket.assigned"),
        ("take", MIAS, "Assigned to you.", None),
        ("take", ZOES, "#1 is already assigned to Zoe.", None),
        ("close", MIAS, "#1 is closed.", "ticket.closed"),
        ("close", ZOES, "#1 is already assigned to Zoe.", None),
        ("reopen", {**MIAS, "status": "closed"}, "#1 is open.", "ticket.status_changed"),
        ("snooze", ZOES, "This button no longer works.", None),
    ],
)
async def test_buttons_do_what_the_ticket_allows_now(
    core: MemoryCore,
    tx: Tx,
    action: str,
    fields: dict[str, Any],
    notice: str,
    event: str | None,
) -> None:
    ticket = await add_ticket(core, tx, **fields)

    assert await press(core, tx, f"{action}:{ticket.ticket_id}") == notice
    assert core.event_names[-1:] == ([] if event is None else [event])
    if event is None:
        assert await now(core, tx, ticket) == ticket


async def test_who_opens_a_ticket_again_has_it_before_it_is_offered(
    core: MemoryCore, tx: Tx
) -> None:
    ticket = await add_ticket(core, tx, status="closed")
    await press(core, tx, f"reopen:{ticket.ticket_id}")

    assert core.event_names == ["ticket.assigned", "ticket.status_changed"]
    assert (await now(core, tx, ticket)).assignee_id == "mem_mia"
    assert await said_to(core, tx, "zoe") == []


@pytest.mark.parametrize(("hours", "works"), [("4", True), ("5", False), ("", False)])
async def test_a_ticket_is_snoozed_by_the_hours_that_are_offered(
    core: MemoryCore, tx: Tx, hours: str, works: bool
) -> None:
    ticket = await add_ticket(core, tx, **MIAS)
    notice = await press(core, tx, f"snooze:{ticket.ticket_id}:{hours}")

    until_ms = core.clock.now_ms() + 4 * 3600_000
    assert notice == ("#1 is snoozed." if works else "This button no longer works.")
    assert (await now(core, tx, ticket)).snoozed_until_ms == (until_ms if works else None)
    assert core.event_names == (["ticket.status_changed"] if works else [])


async def test_a_stranger_who_sends_a_buttons_data_changes_nothing(
    core: MemoryCore, tx: Tx
) -> None:
    ticket = await add_ticket(core, tx)
    notice = await press(core, tx, f"close:{ticket.ticket_id}", ANN)

    assert notice == "You no longer answer customers here."
    assert await now(core, tx, ticket) == ticket
    assert core.emitted == []


async def test_agents_of_a_disabled_project_do_nothing(core: MemoryCore, tx: Tx) -> None:
    ticket = await add_ticket(core, tx)
    await core.projects.switch(tx, PROJECT, active=False)

    assert "no longer" in (await press(core, tx, f"take:{ticket.ticket_id}") or "")
    assert await handle(core, mia_wrote(core, tx), WORDS) is False
    assert await now(core, tx, ticket) == ticket


async def test_an_answer_to_a_tickets_message_goes_to_its_customer(
    core: MemoryCore, tx: Tx
) -> None:
    await show(core, tx, await add_ticket(core, tx, **MIAS))

    assert await handle(core, mia_wrote(core, tx, "Here", reply_to="m5"), REPLIES) is True
    assert await sent_to_customers(core, tx) == ["Here"]
    assert await handle(core, mia_wrote(core, tx, "Here", reply_to="m6"), REPLIES) is False
    assert await handle(core, mia_wrote(core, tx, "Here"), REPLIES) is False
    assert await sent_to_customers(core, tx) == ["Here"]


async def test_who_answers_no_more_is_told_that_nobody_got_it(core: MemoryCore, tx: Tx) -> None:
    await show(core, tx, await add_ticket(core, tx, **MIAS))
    await core.members.remove(tx, PROJECT, "mem_mia")

    assert await handle(core, mia_wrote(core, tx, "Here", reply_to="m5"), REPLIES) is True
    assert await sent_to_customers(core, tx) == []
    assert "was not delivered" in (await said_to(core, tx, "mia"))[-1]


def tell_replies(core: MemoryCore, tells: bool) -> None:
    """Whether Mia's messenger reports which message a reply refers to."""
    channel = core.recording()
    channel.capabilities = replace(channel.capabilities, tells_replies=tells)


async def test_words_that_answer_nothing_go_nowhere_until_the_agent_says_where(
    core: MemoryCore, tx: Tx
) -> None:
    tell_replies(core, True)
    ticket = await add_ticket(core, tx, **MIAS)
    await core.get(AgentDesk).open_in_chat(tx, await seat(core, tx), ticket.ticket_id)

    assert await handle(core, mia_wrote(core, tx, "Hi there"), WORDS) is True
    assert await sent_to_customers(core, tx) == []
    [call] = await calls_to(core, tx, "mia")
    assert call.message is not None
    labels = [row[0].text for row in call.message.buttons]
    assert labels == ["Send to #1", "Ask as a customer", "Discard"]


@pytest.mark.parametrize(
    ("fields", "sent", "labels"),
    [(MIAS, ["One"], []), (ZOES, [], ["Ask as a customer", "Discard"])],
)
async def test_without_replies_words_go_to_the_ticket_that_the_agent_has_open(
    core: MemoryCore, tx: Tx, fields: dict[str, Any], sent: list[str], labels: list[str]
) -> None:
    tell_replies(core, False)
    ticket = await add_ticket(core, tx, **fields)
    await core.get(AgentDesk).open_in_chat(tx, await seat(core, tx), ticket.ticket_id)
    await handle(core, mia_wrote(core, tx, "One"), WORDS)

    [call] = await calls_to(core, tx, "mia")
    assert await sent_to_customers(core, tx) == sent
    assert call.message is not None
    assert [row[0].text for row in call.message.buttons] == labels


@pytest.mark.parametrize(
    ("action", "sent", "said"),
    [("send", ["Hi"], "Hi"), ("drop", [], "Not delivered"), ("own", [], "your own ticket #2")],
)
async def test_a_draft_goes_where_the_agent_says_once(
    core: MemoryCore, tx: Tx, action: str, sent: list[str], said: str
) -> None:
    ticket, there = await add_ticket(core, tx, **MIAS), await seat(core, tx)
    desk = core.get(AgentDesk)
    await desk.open_in_chat(tx, there, ticket.ticket_id)
    await desk.save_draft(tx, there, "tad_1", "Hi")
    await press(core, tx, f"{action}:tad_1")
    again = await press(core, tx, f"{action}:tad_1")

    [edit] = await calls_to(core, tx, "mia", "edit")
    assert await sent_to_customers(core, tx) == sent
    assert edit.message is not None
    assert said in edit.message.text
    assert again == "This button no longer works."
    if action == "own":
        _, own = await all_tickets(core, tx)
        assert own.subscriber_id == "sub_mia"
        assert [entry.text for entry in await entries_of(core, tx, own)] == ["Hi"]


async def test_the_list_shows_an_agents_tickets_and_those_of_nobody(
    core: MemoryCore, tx: Tx
) -> None:
    free, mine = await add_virtual(core, tx), await add_ticket(core, tx, **MIAS)
    await add_ticket(core, tx, **ZOES)
    await add_ticket(core, tx, status="closed", **MIAS)

    assert await list_tickets(core, tx, MIA_USER) is True
    first, second, *_ = (await said_to(core, tx, "mia"))[0].split("\n")
    assert (first[:4], second[:4]) == (f"✓ #{mine.number}", f"• #{free.number}")
    shown_by = [f"show:{each.ticket_id}" for each in (mine, free)]
    assert await buttons_to(core, tx, "mia") == shown_by
    assert await list_tickets(core, tx, ANN) is False


async def test_a_ticket_that_is_not_there_is_said_so(core: MemoryCore, tx: Tx) -> None:
    await list_tickets(core, tx, MIA_USER, "#99")

    assert await core.texts_sent(tx) == ["There is no ticket 99."]


async def list_tickets(
    core: MemoryCore, tx: Tx, user: ChannelUser, argument: str = ""
) -> bool | None:
    """What the rule for `/tickets` says."""
    [rules] = core.service.plugins.hook.register_inbound()
    [rule] = [rule for rule in rules if rule.on == "command"]
    ctx = core.inbound(tx, wrote("/tickets", user))
    ctx.argument = argument
    answer: bool | None = await rule.handler(ctx)
    return answer
