"""Agents in their messengers, built from fakes."""

from dataclasses import asdict, replace
from typing import Any

import pytest

from msgsvc_core.channels import (
    ButtonPressed,
    ChannelUser,
    MessageReceived,
    ReceivedFile,
    Update,
)
from msgsvc_core.jobs import NewJob
from msgsvc_core.members import Member
from msgsvc_devkit import FakeContext
from msgsvc_devkit.fakes import (
    PROJECT,
    FakeInboundContext,
    FakeJobContext,
    FakeTx,
    claimed,
    inbound_context,
)
from msgsvc_helpdesk.agents.desk import SENT_JOB
from msgsvc_helpdesk.agents.inbound import AgentBot
from msgsvc_helpdesk.agents.jobs import SentNotes
from msgsvc_helpdesk.agents.models import Seat
from msgsvc_helpdesk.agents.notifications import GONE_JOB
from msgsvc_helpdesk.models import Ticket
from msgsvc_helpdesk.service import OPERATION

from .desk_of_fakes import (
    ENTRY,
    MIA_USER,
    OFFER,
    TICKET,
    VIRTUAL,
    agent_desk,
    answering,
    hire,
    new_core,
    notes,
    notifications,
    tables,
    tickets,
    tx_of,
)

MIAS = replace(TICKET, assignee_id="mem_mia")
ZOES = replace(TICKET, assignee_id="mem_zoe")


@pytest.fixture
def core() -> FakeContext:
    core = new_core()
    hire(core)
    return core


def seat(core: FakeContext, name: str = "mia") -> Seat:
    person = core.subscribers.by_id[PROJECT, f"sub_{name}"]
    return Seat(core.members.by_id[f"mem_{name}"], person)


def chat(core: FakeContext, update: Update, *held: Ticket, **given: Any) -> FakeInboundContext:
    """The context of an update, with these tickets in the tables."""
    ctx = inbound_context(update, channels=core.channels, outbox=core.outbox, texts=core.texts)
    ctx.tx = tx_of(*held, **given)
    return ctx


def wrote(text: str = "Hello", reply_to: str | None = None, user: ChannelUser = MIA_USER) -> Update:
    return MessageReceived(
        update_id="1",
        chat_id=f"chat {user.user_id}",
        user=user,
        text=text,
        message_ref="m9",
        reply_to=reply_to,
    )


def pressed(data: str, user: ChannelUser = MIA_USER) -> Update:
    return ButtonPressed(
        update_id="1",
        chat_id=f"chat {user.user_id}",
        user=user,
        data=f"~hd:{data}",
        message_ref="m5",
        button_ref="b1",
    )


def said_to(core: FakeContext, name: str) -> list[str]:
    return [each.message.text for each in core.outbox.sent if each.chat_id == f"chat {name}"]


def tx_in(ctx: FakeInboundContext) -> FakeTx:
    assert isinstance(ctx.tx, FakeTx)
    return ctx.tx


# ---- what agents are shown ----------------------------------------------------------------------


async def test_a_ticket_is_offered_to_all_who_answer_but_for_its_customer(
    core: FakeContext,
) -> None:
    hire(core, "zoe")
    hire(core, "eve", role="viewer")
    mias_own = replace(TICKET, subscriber_id="sub_mia")
    await agent_desk(core).offer(tx_of(mias_own, entries=(ENTRY,)), mias_own)

    assert [each.chat_id for each in core.outbox.sent] == ["chat zoe"]
    assert "Where is it?" in core.outbox.texts[0]
    assert [button.data for button in core.outbox.sent[0].message.buttons[0]] == [
        "~hd:take:tkt_1",
        "~hd:close:tkt_1",
    ]


async def test_an_agent_who_can_not_be_written_to_is_left_out(core: FakeContext) -> None:
    core.subscribers.person("sub_mia", status="blocked")
    seats = await agent_desk(core).seats(tx_of(), [core.members.by_id["mem_mia"]])

    assert seats == []


@pytest.mark.parametrize(
    ("ticket", "shown"),
    [
        (ZOES, "taken:mem_zoe"),
        (MIAS, "mine"),
        (replace(TICKET, status="closed"), "closed"),
        (replace(TICKET, merged_into="tkt_2"), "merged"),
        (replace(TICKET, status="snoozed", snoozed_until_ms=5), "snoozed:5"),
    ],
)
async def test_no_button_promises_what_it_can_not_do(
    core: FakeContext, ticket: Ticket, shown: str
) -> None:
    tx = tx_of(ticket, others=notes(OFFER))
    await agent_desk(core).refresh(tx, ticket)

    assert [params["shown"] for params in tx.params_of("SET shown")] == [shown]
    [edited] = core.outbox.edited
    buttons = [button.data for row in edited.message.buttons for button in row]
    assert "~hd:take:tkt_1" not in buttons


async def test_what_looks_so_already_is_not_edited_again(core: FakeContext) -> None:
    same = notes(replace(OFFER, shown="closed"))
    closed = replace(TICKET, status="closed")
    tx = tx_of(closed, others={"SET shown = :shown": 0, **same})
    await agent_desk(core).refresh(tx, closed)

    assert core.outbox.edited == []


async def test_what_became_of_a_ticket_while_its_message_was_sent_is_shown(
    core: FakeContext,
) -> None:
    taken = replace(OFFER, shown="taken:mem_zoe")
    for note, edits in ((taken, 1), (OFFER, 1), (replace(taken, kind="word"), 1)):
        tx = tx_of(ZOES, others={"SET message_ref": [asdict(note)]})
        await agent_desk(core).sent(tx, PROJECT, "tan_1", "fresh", "m5")

        assert len(core.outbox.edited) == edits


async def test_an_agent_who_was_erased_a_moment_ago_keeps_no_customer_from_writing(
    core: FakeContext,
) -> None:
    there = seat(core)
    del core.subscribers.by_id[PROJECT, "sub_mia"]
    tx = tx_of(TICKET)
    await agent_desk(core).send_card(tx, there, TICKET)
    await agent_desk(core).open_in_chat(tx, there, "tkt_1")
    await agent_desk(core).save_draft(tx, there, "tad_1", "Hi")

    assert core.outbox.sent == []
    assert tx.params_of("helpdesk_agent_chats") == []


async def test_a_message_to_an_agent_is_recorded_with_what_its_messenger_calls_it(
    core: FakeContext,
) -> None:
    core.db.replies = tables(TICKET, others={"SET message_ref": []})
    ctx, job = FakeJobContext(core.db), {"project_id": PROJECT, "note_id": "tan_1"}
    done = [
        claimed(NewJob(SENT_JOB, {**job, "shown": "fresh", "message_ref": ref}))
        for ref in ("m5", None)
    ]
    await SentNotes(desk=agent_desk(core)).record_sent(ctx, done)

    assert [params["message_ref"] for params in core.db.params_of("SET message_ref")] == ["m5"]
    assert ctx.completed == done


# ---- who is told what ---------------------------------------------------------------------------


async def happen(core: FakeContext, ticket: Ticket, name: str, **data: Any) -> FakeTx:
    """Has an event of the plugin happen to a ticket."""
    tx = tx_of(ticket, entries=(ENTRY,), others=data.pop("others", None))
    fields = {
        "ticket_id": ticket.ticket_id,
        "number": 1,
        "status": ticket.status,
        "priority": "normal",
        "assignee_id": ticket.assignee_id,
    }
    event = await core.events.emit(tx, PROJECT, name, {**fields, **data})
    await notifications(core).on_event(tx, event)
    return tx


async def test_only_who_has_a_ticket_gets_what_its_customer_says(core: FakeContext) -> None:
    hire(core, "zoe")
    await happen(core, MIAS, "ticket.replied", author="customer", text="Where is it?")
    await happen(core, MIAS, "ticket.replied", author="agent", text="Here")

    assert (len(said_to(core, "mia")), said_to(core, "zoe")) == (1, [])


async def test_a_ticket_of_who_answers_no_more_is_offered_to_the_others(core: FakeContext) -> None:
    left = replace(core.members.by_id["mem_mia"], role="viewer")
    core.members.by_id["mem_mia"] = left
    hire(core, "zoe")
    tx = await happen(core, MIAS, "ticket.replied", author="customer", text="Hello?")

    assert tx.params_of("UPDATE helpdesk_tickets")[0]["assignee_id"] is None
    assert core.events.names[-1] == "ticket.assigned"


async def test_what_is_offered_is_not_offered_for_every_word(core: FakeContext) -> None:
    offered = {"SELECT 1 AS found FROM helpdesk_agent_messages": [{"found": 1}]}
    for others, times in ((offered, 0), ({}, 1)):
        await happen(
            core, TICKET, "ticket.replied", author="customer", text="Hello?", others=others
        )

        assert len(said_to(core, "mia")) == times


@pytest.mark.parametrize(
    ("ticket", "name", "data", "times"),
    [
        (TICKET, "ticket.created", {}, 1),
        (MIAS, "ticket.created", {}, 0),
        (MIAS, "ticket.assigned", {}, 1),
        (TICKET, "ticket.assigned", {}, 1),
        (replace(MIAS, status="closed"), "ticket.assigned", {}, 0),
        (replace(TICKET, status="snoozed"), "ticket.assigned", {}, 0),
        (MIAS, "ticket.status_changed", {"from": "snoozed", "to": "open"}, 1),
        (TICKET, "ticket.status_changed", {"from": "closed", "to": "open"}, 1),
        (MIAS, "ticket.status_changed", {"from": "open", "to": "pending"}, 0),
        (MIAS, "ticket.unanswered_24h", {}, 1),
        (TICKET, "ticket.unanswered_24h", {}, 1),
        (MIAS, "ticket.csat_received", {"score": 4, "comment": "Fast"}, 1),
        (TICKET, "ticket.csat_received", {"score": 4, "comment": None}, 0),
    ],
)
async def test_agents_are_told_of_what_they_can_act_on(
    core: FakeContext, ticket: Ticket, name: str, data: dict[str, Any], times: int
) -> None:
    await happen(core, ticket, name, **data)

    assert len(said_to(core, "mia")) == times


async def test_an_agent_is_welcomed_in_a_chat_that_was_linked(core: FakeContext) -> None:
    after = core.members.by_id["mem_mia"]
    before = replace(after, subscriber_ids=())
    await notifications(core).on_member_changed(tx_of(), before, after)
    await notifications(core).on_member_changed(tx_of(), after, after)
    await notifications(core).on_member_changed(tx_of(), before, replace(after, role="viewer"))

    assert [text for text in said_to(core, "mia") if "/tickets" in text] == core.outbox.texts
    assert len(core.outbox.texts) == 1


@pytest.mark.parametrize("fields", [{"role": "viewer"}, {"status": "removed"}, None])
async def test_the_tickets_of_who_answers_no_more_are_taken_by_a_job(
    core: FakeContext, fields: dict[str, Any] | None
) -> None:
    before = core.members.by_id["mem_mia"]
    after: Member | None = None if fields is None else replace(before, **fields)
    await notifications(core).on_member_changed(tx_of(), before, after)

    assert [job.payload["member_id"] for job in core.jobs.named(GONE_JOB)] == ["mem_mia"]


async def test_who_answers_again_before_the_job_runs_keeps_their_tickets(core: FakeContext) -> None:
    theirs = {"SELECT ticket_id FROM helpdesk_tickets": [{"ticket_id": "tkt_1"}]}

    assert await notifications(core).left_by(tx_of(others=theirs), PROJECT, "mem_mia", 10) == []
    del core.members.by_id["mem_mia"]
    assert await notifications(core).left_by(tx_of(others=theirs), PROJECT, "mem_mia", 10) == [
        "tkt_1"
    ]


@pytest.mark.parametrize(
    ("status", "sender", "times"),
    [("ready", "sub_1", 1), ("pending", "sub_1", 0), ("ready", "sub_mia", 0)],
)
async def test_a_customers_file_comes_to_who_has_the_ticket_once_it_is_here(
    core: FakeContext, status: Any, sender: str, times: int
) -> None:
    [file] = await core.files.receive(chat(core, wrote()), PROJECT, sender, [received_file()])
    known = {"JOIN helpdesk_entries e": [{"ticket_id": "tkt_1"}]}
    fetched = replace(file, status=status)
    await notifications(core).on_file_fetched(tx_of(MIAS, others=known), fetched)

    assert len(said_to(core, "mia")) == times


# ---- answers ------------------------------------------------------------------------------------


async def test_an_answer_to_what_nobody_has_takes_it_and_is_confirmed(core: FakeContext) -> None:
    ctx = chat(core, wrote(), TICKET)
    await answering(core).answer(ctx, seat(core), "tkt_1", "On its way", ())

    assert core.messages.texts == ["On its way"]
    assert "ticket.assigned" in core.events.names
    assert core.outbox.texts[-1] == "Sent to Ann, #1."
    assert tx_in(ctx).params_of("INTO helpdesk_agent_chats")[0]["ticket_id"] == "tkt_1"


@pytest.mark.parametrize(
    ("ticket", "why"),
    [(ZOES, "already assigned to Zoe"), (replace(MIAS, status="closed"), "#1 is closed")],
)
async def test_an_answer_that_goes_to_nobody_says_so(
    core: FakeContext, ticket: Ticket, why: str
) -> None:
    hire(core, "zoe")
    ctx = chat(core, wrote(), ticket)
    await answering(core).answer(ctx, seat(core), "tkt_1", "Hi", ())

    assert core.messages.by_id == {}
    assert why in core.outbox.texts[0]
    assert "was not delivered" in core.outbox.texts[0]
    buttons = core.outbox.sent[0].message.buttons
    assert bool(buttons) is (ticket.status == "closed")


async def test_a_sticker_reaches_nobody_takes_no_ticket_and_the_agent_is_told(
    core: FakeContext,
) -> None:
    ctx = chat(core, wrote(""), TICKET)
    await answering(core).answer(ctx, seat(core), "tkt_1", "", ())

    assert core.outbox.texts == [
        "Only text and files can be sent to a customer. Your message was not delivered."
    ]
    assert (core.events.emitted, tx_in(ctx).statements) == ([], [])


@pytest.mark.parametrize(
    ("refuse", "why"), [(OPERATION, "credits are used up"), (None, "the customer can't be reached")]
)
async def test_a_refused_answer_takes_no_ticket_and_says_why(
    core: FakeContext, refuse: str | None, why: str
) -> None:
    if refuse is None:
        core.subscribers.person("sub_1", status="blocked")
    else:
        core.billing.refused.add(refuse)
    ctx = chat(core, wrote(), TICKET)
    await answering(core).answer(ctx, seat(core), "tkt_1", "Hi", ())

    assert why in core.outbox.texts[0]
    assert tx_in(ctx).params_of("INTO helpdesk_agent_chats") == []


@pytest.mark.parametrize("is_gone", [True, False])
async def test_a_file_of_an_agent_who_answers_no_more_goes_to_nobody(
    core: FakeContext, is_gone: bool
) -> None:
    row = [{"ticket_id": "tkt_1", "subscriber_id": "sub_mia", "text": "Look"}]
    [file] = await core.files.receive(chat(core, wrote()), PROJECT, "sub_mia", [received_file()])
    ready = replace(file, status="ready")
    core.files.stored[file.file_id] = ready
    viewer = replace(core.members.by_id.pop("mem_mia"), role="viewer")
    core.members.by_id |= {} if is_gone else {"mem_mia": viewer}
    await answering(core).on_file_fetched(
        tx_of(MIAS, others={"DELETE FROM helpdesk_agent_files": row}), ready
    )

    assert core.messages.by_id == {}
    assert "no longer answer customers" in said_to(core, "mia")[0]


@pytest.mark.parametrize(("status", "sent"), [("ready", ["Look"]), ("failed", [])])
async def test_the_words_of_a_file_go_with_it_or_nowhere(
    core: FakeContext, status: Any, sent: list[str]
) -> None:
    row = [{"ticket_id": "tkt_1", "subscriber_id": "sub_mia", "text": "Look"}]
    [file] = await core.files.receive(chat(core, wrote()), PROJECT, "sub_mia", [received_file()])
    fetched = replace(file, status=status, reason="too large" if status == "failed" else "")
    core.files.stored[file.file_id] = fetched
    await answering(core).on_file_fetched(
        tx_of(MIAS, others={"DELETE FROM helpdesk_agent_files": row}), fetched
    )

    assert core.messages.texts == sent
    assert ("too large" in said_to(core, "mia")[0]) is (status == "failed")


async def test_a_file_that_waits_for_nobody_is_left_alone(core: FakeContext) -> None:
    [file] = await core.files.receive(chat(core, wrote()), PROJECT, "sub_1", [received_file()])
    await answering(core).on_file_fetched(tx_of(), file)

    assert core.outbox.sent == []


def received_file() -> ReceivedFile:
    return ReceivedFile("image", "file-1", "a.png", "image/png", 72)


# ---- the bot ------------------------------------------------------------------------------------


def bot(core: FakeContext) -> AgentBot:
    return AgentBot(
        clock=core.clock,
        projects=core.projects,
        members=core.members,
        subscribers=core.subscribers,
        messages=core.messages,
        tickets=tickets(core),
        desk=agent_desk(core),
        answering=answering(core),
    )


async def press(core: FakeContext, ctx: FakeInboundContext) -> str | None:
    """What a press of a button is answered with."""
    [rule] = [rule for rule in bot(core).rules() if rule.on == "button"]
    await rule.handler(ctx)
    return core.outbox.answered[-1][2]


async def hear(core: FakeContext, ctx: FakeInboundContext, priority: int) -> bool | None:
    """What the rule for messages of that priority says."""
    [rule] = [
        rule for rule in bot(core).rules() if (rule.on, rule.priority) == ("message", priority)
    ]
    return await rule.handler(ctx)


REPLY, WORDS = 10, 80


@pytest.mark.parametrize(
    ("action", "ticket", "notice", "event"),
    [
        ("take", TICKET, "#1 is assigned to you.", "ticket.assigned"),
        ("take", MIAS, "Assigned to you.", None),
        ("take", ZOES, "#1 is already assigned to Zoe.", None),
        ("close", MIAS, "#1 is closed.", "ticket.closed"),
        ("close", ZOES, "#1 is already assigned to Zoe.", None),
        ("reopen", replace(MIAS, status="closed"), "#1 is open.", "ticket.status_changed"),
        ("snooze", ZOES, "This button no longer works.", None),
    ],
)
async def test_buttons_do_what_the_ticket_allows_now(
    core: FakeContext, action: str, ticket: Ticket, notice: str, event: str | None
) -> None:
    hire(core, "zoe")

    assert await press(core, chat(core, pressed(f"{action}:tkt_1"), ticket)) == notice
    assert core.events.names[-1:] == ([] if event is None else [event])


async def test_who_opens_a_ticket_again_has_it_before_it_is_offered(core: FakeContext) -> None:
    ctx = chat(core, pressed("reopen:tkt_1"), replace(TICKET, status="closed"))
    await press(core, ctx)

    assert core.events.names == ["ticket.assigned", "ticket.status_changed"]
    assert core.events.emitted[0].data["assignee_id"] == "mem_mia"


@pytest.mark.parametrize(("hours", "works"), [("4", True), ("5", False), ("", False)])
async def test_a_ticket_is_snoozed_by_the_hours_that_are_offered(
    core: FakeContext, hours: str, works: bool
) -> None:
    notice = await press(core, chat(core, pressed(f"snooze:tkt_1:{hours}"), MIAS))

    assert notice == ("#1 is snoozed." if works else "This button no longer works.")
    assert core.events.names == (["ticket.status_changed"] if works else [])


async def test_a_stranger_who_sends_a_buttons_data_changes_nothing(core: FakeContext) -> None:
    stranger = ChannelUser("1", "Ann")
    notice = await press(core, chat(core, pressed("close:tkt_1", stranger), TICKET))

    assert notice == "You no longer answer customers here."
    assert core.events.emitted == []


async def test_agents_of_a_disabled_project_do_nothing(core: FakeContext) -> None:
    await core.projects.set_active(PROJECT, False)

    assert "no longer" in (await press(core, chat(core, pressed("take:tkt_1"), TICKET)) or "")
    assert await hear(core, chat(core, wrote()), WORDS) is False


async def test_an_answer_to_a_tickets_message_goes_to_its_customer(core: FakeContext) -> None:
    known = {"AND message_ref = :message_ref ORDER BY note_id": [asdict(OFFER)]}
    ctx = chat(core, wrote("Here", reply_to="m5"), MIAS, others=known)

    assert await hear(core, ctx, REPLY) is True
    assert core.messages.texts == ["Here"]
    assert await hear(core, chat(core, wrote("Here", reply_to="m6")), REPLY) is False
    assert await hear(core, chat(core, wrote("Here")), REPLY) is False


async def test_who_answers_no_more_is_told_that_nobody_got_it(core: FakeContext) -> None:
    known = {"AND message_ref = :message_ref ORDER BY note_id": [asdict(OFFER)]}
    del core.members.by_id["mem_mia"]
    ctx = chat(core, wrote("Here", reply_to="m5"), MIAS, others=known)

    assert await hear(core, ctx, REPLY) is True
    assert core.messages.by_id == {}
    assert "was not delivered" in core.outbox.texts[0]


async def test_words_that_answer_nothing_go_nowhere_until_the_agent_says_where(
    core: FakeContext,
) -> None:
    tell_replies(core, True)
    opened = {"SELECT ticket_id FROM helpdesk_agent_chats": [{"ticket_id": "tkt_1"}]}
    ctx = chat(core, wrote("Hi there"), MIAS, others=opened)

    assert await hear(core, ctx, WORDS) is True
    assert core.messages.by_id == {}
    labels = [row[0].text for row in core.outbox.sent[0].message.buttons]
    assert labels == ["Send to #1", "Ask as a customer", "Discard"]
    assert tx_in(ctx).params_of("INTO helpdesk_agent_chats")[0]["draft"] == "Hi there"


async def test_without_replies_words_go_to_the_ticket_that_the_agent_has_open(
    core: FakeContext,
) -> None:
    tell_replies(core, False)
    opened = {"SELECT ticket_id FROM helpdesk_agent_chats": [{"ticket_id": "tkt_1"}]}
    await hear(core, chat(core, wrote("One"), MIAS, others=opened), WORDS)
    await hear(core, chat(core, wrote("Two"), ZOES, others=opened), WORDS)

    assert core.messages.texts == ["One"]


def tell_replies(core: FakeContext, tells: bool) -> None:
    """Whether Mia's messenger reports which message a reply refers to."""
    channel = core.channels.recording("messenger_a")
    channel.capabilities = replace(channel.capabilities, tells_replies=tells)


@pytest.mark.parametrize(
    ("action", "sent", "said"),
    [("send", ["Hi"], "Hi"), ("drop", [], "Not delivered"), ("own", [], "your own ticket #7")],
)
async def test_a_draft_goes_where_the_agent_says_once(
    core: FakeContext, action: str, sent: list[str], said: str
) -> None:
    draft = {"SELECT draft": [{"draft": "Hi", "ticket_id": "tkt_1"}]}
    await press(core, chat(core, pressed(f"{action}:tad_1"), MIAS, others=draft))
    again = await press(core, chat(core, pressed(f"{action}:tad_1"), MIAS))

    assert core.messages.texts == sent
    assert said in core.outbox.edited[0].message.text
    assert again == "This button no longer works."


async def test_the_list_shows_an_agents_tickets_and_those_of_nobody(core: FakeContext) -> None:
    free = replace(VIRTUAL, customer_name="Bob")
    ids = [{"ticket_id": "tkt_1"}, {"ticket_id": "tkt_2"}]
    ctx = chat(
        core, wrote("/tickets"), MIAS, free, others={"SELECT ticket_id FROM helpdesk_tickets": ids}
    )
    [rule] = [rule for rule in bot(core).rules() if rule.on == "command"]

    assert await rule.handler(ctx) is True
    first, second, *_ = core.outbox.texts[0].split("\n")
    assert (first[0], second[0]) == ("✓", "•")
    stranger = chat(core, wrote("/tickets", user=ChannelUser("1", "Ann")))
    assert await rule.handler(stranger) is False


async def test_a_ticket_that_is_not_there_is_said_so(core: FakeContext) -> None:
    ctx = chat(core, wrote("/tickets 99"), TICKET)
    ctx.argument = "#99"
    [rule] = [rule for rule in bot(core).rules() if rule.on == "command"]
    await rule.handler(ctx)

    assert core.outbox.texts == ["There is no ticket 99."]
