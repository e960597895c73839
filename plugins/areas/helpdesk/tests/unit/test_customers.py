"""What customers write, and how they rate the answers, built from fakes."""

from dataclasses import asdict, replace
from typing import Any

import pytest

from msgsvc_core.channels import (
    ButtonPressed,
    ChannelUser,
    MessageEdited,
    MessageReceived,
    ReceivedFile,
    Update,
)
from msgsvc_core.jobs import NewJob
from msgsvc_core.kernel.clock import MINUTE_MS
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.subscribers.models import Status
from msgsvc_devkit import FakeContext
from msgsvc_devkit.fakes import (
    PROJECT,
    FakeInboundContext,
    FakeJobContext,
    FakeTx,
    claimed,
    inbound_context,
)
from msgsvc_devkit.fakes.database import Reply
from msgsvc_helpdesk.away import AwayMessages
from msgsvc_helpdesk.hours import DeskHours
from msgsvc_helpdesk.inbound import HelpdeskBot
from msgsvc_helpdesk.models import Ticket
from msgsvc_helpdesk.rating import END_JOB, RatingRequests, Ratings
from msgsvc_helpdesk.rating_store import OpenRating
from msgsvc_helpdesk.settings import HelpdeskSettings
from msgsvc_helpdesk.sla_settings import SlaSettings

from .desk_of_fakes import ANN, ENTRY, TICKET, VIRTUAL, new_core, tables, tickets, tx_of

BLOCKED: dict[str, Reply] = {
    "FROM helpdesk_blocklist": [
        {"project_id": PROJECT, "subscriber_id": "sub_1", "reason": "", "created_at_ms": 0}
    ]
}
CLOSED = replace(TICKET, status="closed", closed_at_ms=0, waiting_since_ms=None)
RATED = replace(CLOSED, csat_score=4, csat_at_ms=0)
RATING = OpenRating(
    project_id=PROJECT,
    ticket_id="tkt_1",
    subscriber_id="sub_1",
    bot="messenger_a",
    chat_id="chat 1",
    message_ref="m5",
    ends_at_ms=10**15,
)


@pytest.fixture
def core() -> FakeContext:
    return new_core()


def chat(
    core: FakeContext,
    update: Update,
    *held: Ticket,
    project_id: str | None = PROJECT,
    **given: Any,
) -> FakeInboundContext:
    """The context of an update in Ann's chat, with these tickets in the tables."""
    ctx = inbound_context(
        update,
        channels=core.channels,
        outbox=core.outbox,
        texts=core.texts,
        project_id=project_id,
    )
    ctx.tx = tx_of(*held, **given)
    return ctx


def wrote(text: str = "Help", **fields: Any) -> MessageReceived:
    given = {"update_id": "1", "chat_id": "chat 1", "user": ANN, "message_ref": "m9", **fields}
    return MessageReceived(text=text, **given)


def params(ctx: FakeInboundContext, words: str) -> list[dict[str, Any]]:
    assert isinstance(ctx.tx, FakeTx)
    return ctx.tx.params_of(words)


# ---- messages -----------------------------------------------------------------------------------


def away(core: FakeContext) -> AwayMessages:
    hours = DeskHours(sla=SlaSettings(jobs=core.jobs))
    return AwayMessages(clock=core.clock, hours=hours, default_lang="en")


def bot(core: FakeContext, *, acknowledge: bool = True) -> HelpdeskBot:
    return HelpdeskBot(
        projects=core.projects,
        subscribers=core.subscribers,
        messages=core.messages,
        files=core.files,
        tickets=tickets(core),
        away=away(core),
        settings=HelpdeskSettings(acknowledge=acknowledge),
    )


async def hear(core: FakeContext, ctx: FakeInboundContext, **settings: bool) -> bool | None:
    """What the bot's rule for this kind of update says."""
    kind = "edit" if isinstance(ctx.update, MessageEdited) else "message"
    [rule] = [rule for rule in bot(core, **settings).rules() if rule.on == kind]
    return await rule.handler(ctx)


async def test_the_bot_says_once_that_a_message_has_arrived(core: FakeContext) -> None:
    await hear(core, chat(core, wrote()))
    await hear(core, chat(core, wrote("And?"), TICKET))
    await hear(core, chat(core, wrote()), acknowledge=False)

    [said] = core.outbox.texts
    assert "Its number is 7" in said
    assert core.events.names == ["ticket.created", "ticket.replied", "ticket.created"]


async def test_who_came_by_no_link_is_answered_and_opens_nothing(core: FakeContext) -> None:
    assert await hear(core, chat(core, wrote(), project_id=None)) is True
    assert len(core.outbox.texts) == 1
    assert core.events.emitted == []


@pytest.mark.parametrize("status", ["unsubscribed", "blocked"])
async def test_who_has_left_is_told_how_to_come_back(core: FakeContext, status: Status) -> None:
    core.subscribers.person("sub_1", status=status)
    await hear(core, chat(core, wrote()))

    assert "/start" in core.outbox.texts[0]
    assert core.events.emitted == []


async def test_who_is_new_is_subscribed_by_writing(core: FakeContext) -> None:
    await hear(core, chat(core, wrote(user=ChannelUser("9", "Bob"))))

    assert core.subscribers.everybody[-1].source == "helpdesk"


async def test_an_empty_message_and_a_disabled_project_open_nothing(core: FakeContext) -> None:
    assert await hear(core, chat(core, wrote(" \n"))) is True
    await core.projects.set_active(PROJECT, False)
    assert await hear(core, chat(core, wrote())) is False

    assert core.events.emitted == []


async def test_who_is_on_the_blocklist_opens_and_changes_nothing(core: FakeContext) -> None:
    written = chat(core, wrote(), TICKET, others=BLOCKED)
    edit = MessageEdited(update_id="1", chat_id="chat 1", user=ANN, message_ref="m1", text="New")
    changed = chat(core, edit, TICKET, entries=(ENTRY,), others=BLOCKED)

    assert (await hear(core, written), await hear(core, changed)) == (True, True)
    assert core.events.emitted == []
    assert params(changed, "UPDATE helpdesk_entries") == []


async def test_a_reply_to_an_answer_names_the_ticket_that_it_is_about(core: FakeContext) -> None:
    tx = FakeTx()
    sent = await core.messages.queue(tx, PROJECT, SendBody(subscriber_id="sub_1", text="Here"))
    core.messages.by_id[sent.message_id] = replace(
        sent, status="sent", bot="messenger_a", message_ref="m4"
    )
    ctx = chat(core, wrote(reply_to="m4"), TICKET)
    await hear(core, ctx)

    [asked] = params(ctx, "SELECT ticket_id FROM helpdesk_entries")
    assert asked["message_id"] == sent.message_id


async def test_a_changed_message_is_followed_and_one_that_says_the_same_is_not(
    core: FakeContext,
) -> None:
    results = []
    for text in ("New words", ENTRY.text):
        edit = MessageEdited(update_id="1", chat_id="chat 1", user=ANN, message_ref="m1", text=text)
        ctx = chat(core, edit, TICKET, entries=(ENTRY,))
        assert await hear(core, ctx) is True
        results.append([each["text"] for each in params(ctx, "UPDATE helpdesk_entries")])

    assert results == [["New words"], []]


async def test_the_same_files_are_not_downloaded_again_for_a_new_text(core: FakeContext) -> None:
    file = ReceivedFile("image", "ref-1", "a.png", "image/png", 72)
    first = chat(core, wrote("Look", files=(file,)))
    await hear(core, first)
    assert isinstance(first.tx, FakeTx)
    [kept] = first.tx.rows["helpdesk_entries"]
    entry = replace(ENTRY, files_digest=kept["files_digest"])
    for files, many in (((file,), 1), ((replace(file, file_ref="ref-2"),), 2)):
        edit = MessageEdited(
            update_id="1", chat_id="chat 1", user=ANN, message_ref="m1", text="Now", files=files
        )
        await hear(core, chat(core, edit, TICKET, entries=(entry,)))

        assert len(core.files.stored) == many


async def test_a_change_of_what_is_in_no_ticket_is_left_to_others(core: FakeContext) -> None:
    edit = MessageEdited(update_id="1", chat_id="chat 1", user=ANN, message_ref="m1", text="x")

    assert await hear(core, chat(core, edit)) is False


# ---- ratings ------------------------------------------------------------------------------------


def requests(core: FakeContext, *, ask_rating: bool = True) -> RatingRequests:
    return RatingRequests(
        texts=core.texts,
        channels=core.channels,
        outbox=core.outbox,
        projects=core.projects,
        subscribers=core.subscribers,
        settings=HelpdeskSettings(ask_rating=ask_rating),
    )


async def end(core: FakeContext, ticket: Ticket, **given: Any) -> None:
    """Has a ticket be closed."""
    tx, settings = tx_of(ticket, others=given.pop("others", None)), given
    fields = {
        "ticket_id": ticket.ticket_id,
        "number": ticket.number,
        "status": "closed",
        "priority": "normal",
        "assignee_id": None,
    }
    event = await core.events.emit(tx, PROJECT, "ticket.closed", fields)
    await requests(core, **settings).on_event(tx, event)


async def test_a_customer_is_asked_by_five_buttons_in_their_language(core: FakeContext) -> None:
    core.subscribers.person("sub_1", lang="ru")
    await end(core, CLOSED)

    [asked] = core.outbox.sent
    assert [button.data for button in asked.message.buttons[0]] == [
        f"~csat:rate:tkt_1:{score}" for score in range(1, 6)
    ]
    assert "вопрос" in asked.message.text.lower() or "обращени" in asked.message.text.lower()


@pytest.mark.parametrize(
    "ticket", [RATED, replace(CLOSED, merged_into="tkt_2"), replace(VIRTUAL, status="closed")]
)
async def test_there_are_tickets_that_are_not_asked_about(
    core: FakeContext, ticket: Ticket
) -> None:
    await end(core, ticket)

    assert core.outbox.sent == []


async def test_nobody_is_asked_who_can_not_or_shall_not_answer(core: FakeContext) -> None:
    await end(core, CLOSED, ask_rating=False)
    await end(core, CLOSED, others=BLOCKED)
    channel = core.channels.recording("messenger_a")
    channel.capabilities = replace(channel.capabilities, buttons="links")
    await end(core, CLOSED)
    channel.capabilities = replace(channel.capabilities, buttons="native")
    core.subscribers.person("sub_1", status="unsubscribed")
    await end(core, CLOSED)

    assert core.outbox.sent == []


def ratings(core: FakeContext) -> Ratings:
    return Ratings(
        clock=core.clock,
        jobs=core.jobs,
        texts=core.texts,
        outbox=core.outbox,
        subscribers=core.subscribers,
        tickets=tickets(core),
        settings=HelpdeskSettings(csat_comment_minutes=15),
    )


def pressed(data: str, user: ChannelUser = ANN) -> ButtonPressed:
    return ButtonPressed(
        update_id="1",
        chat_id="chat 1",
        user=user,
        data=f"~csat:{data}",
        message_ref="m5",
        button_ref="b1",
    )


async def react(core: FakeContext, ctx: FakeInboundContext) -> bool | None:
    kind = "button" if isinstance(ctx.update, ButtonPressed) else "message"
    [rule] = [rule for rule in ratings(core).rules() if rule.on == kind]
    return await rule.handler(ctx)


def open_rating(**fields: Any) -> dict[str, Reply]:
    """Has a rating wait for its comment."""
    row = [asdict(replace(RATING, **fields))]
    return {"DELETE FROM helpdesk_ratings": row, "FROM helpdesk_ratings": row}


async def test_a_score_is_kept_and_told_after_the_time_for_a_comment(core: FakeContext) -> None:
    ctx = chat(core, pressed("rate:tkt_1:4"), CLOSED)
    assert await react(core, ctx) is True

    [written] = params(ctx, "SET csat_score")
    [job] = core.jobs.named(END_JOB)
    assert written["stars"] == 4
    assert job.run_at_ms == core.clock.now_ms() + 15 * MINUTE_MS
    assert "You rated 4 of 5" in core.outbox.edited[0].message.text
    assert core.events.emitted == []


@pytest.mark.parametrize(
    ("ticket", "why"), [(RATED, "have rated this already"), (TICKET, "is still open")]
)
async def test_what_can_not_be_rated_says_why(core: FakeContext, ticket: Ticket, why: str) -> None:
    ctx = chat(core, pressed("rate:tkt_1:4"), ticket, others={"SET csat_score": 0})
    await react(core, ctx)

    assert why in (core.outbox.answered[0][2] or "")
    assert core.jobs.enqueued == []


@pytest.mark.parametrize(
    "data", ["rate:tkt_1:6", "rate:tkt_1", "rate", "burn:tkt_1", "rate:tkt_9:4"]
)
async def test_what_is_no_rating_is_left_to_others(core: FakeContext, data: str) -> None:
    assert await react(core, chat(core, pressed(data), CLOSED)) is False


async def test_nobody_rates_for_another(core: FakeContext) -> None:
    core.subscribers.person("sub_2")
    ctx = chat(core, pressed("rate:tkt_1:1", ChannelUser("2", "Bob")), CLOSED)

    assert await react(core, ctx) is False
    assert params(ctx, "SET csat_score") == []


async def test_a_comment_is_told_with_its_score_and_for_what_it_was_said(core: FakeContext) -> None:
    ctx = chat(core, wrote("Fast!"), RATED, others=open_rating())
    assert await react(core, ctx) is True

    [event] = core.events.emitted
    assert (event.data["score"], event.data["comment"]) == (4, "Fast!")
    assert core.outbox.texts == ["Thank you, your comment is saved."]


@pytest.mark.parametrize(
    ("message", "ticket"),
    [
        (wrote("/help"), RATED),
        (wrote(" "), RATED),
        (wrote("Look", files=(ReceivedFile("image", "ref-1"),)), RATED),
        (wrote("Yes", reply_to="m1"), RATED),
        (wrote("It is broken again"), replace(RATED, status="open")),
    ],
    ids=["command", "empty", "file", "another message", "reopened"],
)
async def test_what_is_no_comment_is_for_an_agent(
    core: FakeContext, message: MessageReceived, ticket: Ticket
) -> None:
    assert await react(core, chat(core, message, ticket, others=open_rating())) is False
    assert core.events.emitted == []


async def test_a_comment_that_answers_the_question_is_one_in_a_reopened_ticket_too(
    core: FakeContext,
) -> None:
    reopened = replace(RATED, status="open")
    ctx = chat(core, wrote("Fast!", reply_to="m5"), reopened, others=open_rating())

    assert await react(core, ctx) is True


async def test_of_two_who_take_a_rating_one_tells_of_it(core: FakeContext) -> None:
    taken = {**open_rating(), "DELETE FROM helpdesk_ratings": []}

    assert await react(core, chat(core, wrote("Fast!"), RATED, others=taken)) is False
    assert await react(core, chat(core, pressed("skip:tkt_1"), RATED, others=taken)) is True
    assert core.events.emitted == []


@pytest.mark.parametrize("is_there", [True, False])
async def test_without_a_comment_the_score_is_told_when_its_time_is_over(
    core: FakeContext, is_there: bool
) -> None:
    found = open_rating() if is_there else {"DELETE FROM helpdesk_ratings": []}
    core.db.replies = tables(RATED, others=found)
    job = claimed(NewJob(END_JOB, {"project_id": PROJECT, "ticket_id": "tkt_1"}))
    ctx = FakeJobContext(core.db)
    await ratings(core).finish_all(ctx, [job])

    told = [(event.data["score"], event.data["comment"]) for event in core.events.emitted]
    assert told == ([(4, None)] if is_there else [])
    assert ctx.completed == [job]
