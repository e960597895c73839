"""What customers write, and how they rate the answers."""

from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.channels import ButtonPressed, ChannelUser, MessageEdited, MessageReceived
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.files.fetching import JOB as FETCH
from msgsvc_core.jobs import NewJob
from msgsvc_core.kernel.clock import MINUTE_MS
from msgsvc_core.subscribers.models import Status
from msgsvc_devkit import MemoryCore
from msgsvc_devkit.core import PROJECT
from msgsvc_helpdesk.blocklist import Blocklist
from msgsvc_helpdesk.customers import rating_store
from msgsvc_helpdesk.customers.ratings import END_JOB
from msgsvc_helpdesk.models import API, AgentReply, Ticket
from msgsvc_helpdesk.service import Tickets

from .desk import (
    ANN,
    COMMENTS,
    PHOTO,
    add_entry,
    add_ticket,
    calls_to,
    entries_of,
    handle,
    helpdesk,
    notices,
    now,
    said_to,
    wrote,
)

# ---- messages -----------------------------------------------------------------------------------


async def hear(core: MemoryCore, tx: Tx, text: str = "Help", **fields: Any) -> bool | None:
    """What the bot's rule for messages says of one by Ann."""
    return await handle(core, core.inbound(tx, wrote(text, **fields)))


async def hear_edit(core: MemoryCore, tx: Tx, text: str, **fields: Any) -> bool | None:
    """What the bot's rule for edits says of Ann's message `m1`."""
    edit = MessageEdited(
        update_id="1", chat_id="chat 1", user=ANN, message_ref="m1", text=text, **fields
    )
    return await handle(core, core.inbound(tx, edit))


async def test_the_bot_says_once_that_a_message_has_arrived(core: MemoryCore, tx: Tx) -> None:
    await hear(core, tx)
    await hear(core, tx, "And?")

    [said] = await said_to(core, tx, "1")
    assert "Its number is 1" in said
    assert core.event_names == ["ticket.created", "ticket.replied"]


async def test_nothing_is_said_of_a_message_where_the_settings_say_so() -> None:
    async with helpdesk(acknowledge=False) as core, core.db.transaction() as tx:
        await hear(core, tx)

        assert await core.calls(tx) == []
        assert core.event_names == ["ticket.created"]


async def test_who_came_by_no_link_is_answered_and_opens_nothing(core: MemoryCore, tx: Tx) -> None:
    assert await handle(core, core.inbound(tx, wrote(), project_id=None)) is True
    assert len(await said_to(core, tx, "1")) == 1
    assert core.emitted == []


@pytest.mark.parametrize("status", ["unsubscribed", "blocked"])
async def test_who_has_left_is_told_how_to_come_back(
    core: MemoryCore, tx: Tx, status: Status
) -> None:
    await core.person(tx, "sub_2", status=status)
    await hear(core, tx, user=ChannelUser("2", "Bob"))

    [said] = await said_to(core, tx, "2")
    assert "/start" in said
    assert core.emitted == []


async def test_who_is_new_is_subscribed_by_writing(core: MemoryCore, tx: Tx) -> None:
    await hear(core, tx, user=ChannelUser("9", "Bob"))

    bob = await core.subscribers.find_by_user(tx, PROJECT, "messenger_a", "9")
    assert bob is not None
    assert bob.source == "helpdesk"
    assert core.event_names == ["subscription.created", "ticket.created"]


async def test_an_empty_message_and_a_disabled_project_open_nothing(
    core: MemoryCore, tx: Tx
) -> None:
    assert await hear(core, tx, " \n") is True
    await core.projects.switch(tx, PROJECT, active=False)
    assert await hear(core, tx) is False

    assert core.emitted == []


async def test_who_is_on_the_blocklist_opens_and_changes_nothing(core: MemoryCore, tx: Tx) -> None:
    ticket = await add_ticket(core, tx)
    entry = await add_entry(core, tx, ticket)
    await core.get(Blocklist).add(tx, PROJECT, "sub_1", "")

    assert (await hear(core, tx), await hear_edit(core, tx, "New")) == (True, True)
    assert core.emitted == []
    assert await entries_of(core, tx, ticket) == [entry]


async def test_a_reply_to_an_answer_names_the_ticket_that_it_is_about(
    core: MemoryCore, tx: Tx
) -> None:
    older = await add_ticket(core, tx)
    await core.get(Tickets).reply(
        tx, PROJECT, older.ticket_id, AgentReply(OutgoingMessage("Here")), API
    )
    await tx.execute("UPDATE core_messages SET status = 'sent', message_ref = 'm4'")
    core.clock.advance(60)
    newer = await add_ticket(core, tx)
    await hear(core, tx, "Thanks", reply_to="m4")
    await hear(core, tx, "By the way", reply_to="m5")

    said = [[entry.text for entry in await entries_of(core, tx, each)] for each in (older, newer)]
    assert said == [["Here", "Thanks"], ["By the way"]]


async def test_a_changed_message_is_followed_and_one_that_says_the_same_is_not(
    core: MemoryCore, tx: Tx
) -> None:
    ticket = await add_ticket(core, tx)
    before = await add_entry(core, tx, ticket)
    core.clock.advance(60)
    assert await hear_edit(core, tx, before.text) is True
    assert await entries_of(core, tx, ticket) == [before]

    assert await hear_edit(core, tx, "New words") is True
    [after] = await entries_of(core, tx, ticket)
    assert (after.text, [edit.text for edit in after.edits]) == ("New words", [before.text])


async def test_the_same_files_are_not_downloaded_again_for_a_new_text(
    core: MemoryCore, tx: Tx
) -> None:
    await hear(core, tx, "Look", files=(PHOTO,), message_ref="m1")
    other = replace(PHOTO, file_ref="file-2")
    downloads = []
    for files in ((PHOTO,), (other,)):
        await hear_edit(core, tx, "Now", files=files)
        downloads.append(len(await core.jobs_named(tx, FETCH)))

    assert downloads == [1, 2]


async def test_a_change_of_what_is_in_no_ticket_is_left_to_others(core: MemoryCore, tx: Tx) -> None:
    assert await hear_edit(core, tx, "x") is False


# ---- ratings ------------------------------------------------------------------------------------


async def close(core: MemoryCore, tx: Tx, ticket: Ticket) -> Ticket:
    return await core.get(Tickets).close(tx, PROJECT, ticket.ticket_id, API)


async def test_a_customer_is_asked_by_five_buttons_in_their_language(
    core: MemoryCore, tx: Tx
) -> None:
    await core.person(tx, "sub_2", lang="ru")
    ticket = await add_ticket(core, tx, subscriber_id="sub_2")
    await close(core, tx, ticket)

    [asked] = await calls_to(core, tx, "2")
    assert asked.message is not None
    assert [button.data for button in asked.message.buttons[0]] == [
        f"~csat:rate:{ticket.ticket_id}:{score}" for score in range(1, 6)
    ]
    assert "вопрос" in asked.message.text.lower() or "обращени" in asked.message.text.lower()


@pytest.mark.parametrize(
    "fields", [{"csat_score": 4, "csat_at_ms": 0}, {"channel": "virtual", "subscriber_id": None}]
)
async def test_there_are_tickets_that_are_not_asked_about(
    core: MemoryCore, tx: Tx, fields: dict[str, Any]
) -> None:
    await close(core, tx, await add_ticket(core, tx, **fields))

    assert core.event_names[-1] == "ticket.closed"
    assert await core.calls(tx) == []


async def test_a_ticket_that_goes_on_in_another_is_not_asked_about(
    core: MemoryCore, tx: Tx
) -> None:
    await add_ticket(core, tx)
    await add_ticket(core, tx)
    await core.get(Tickets).merge(tx, PROJECT, "2", "1", API)

    assert "ticket.closed" in core.event_names
    assert await core.calls(tx) == []


async def test_nobody_is_asked_where_the_settings_say_so() -> None:
    async with helpdesk(ask_rating=False) as core, core.db.transaction() as tx:
        await close(core, tx, await add_ticket(core, tx))

        assert await core.calls(tx) == []


async def test_nobody_is_asked_who_can_not_or_shall_not_answer(core: MemoryCore, tx: Tx) -> None:
    await core.get(Blocklist).add(tx, PROJECT, "sub_1", "")
    await close(core, tx, await add_ticket(core, tx))
    await core.get(Blocklist).remove(tx, PROJECT, "sub_1")
    channel = core.recording()
    channel.capabilities = replace(channel.capabilities, buttons="links")
    await close(core, tx, await add_ticket(core, tx))
    channel.capabilities = replace(channel.capabilities, buttons="native")
    await core.person(tx, "sub_2", status="unsubscribed")
    await close(core, tx, await add_ticket(core, tx, subscriber_id="sub_2"))
    assert await core.calls(tx) == []

    await close(core, tx, await add_ticket(core, tx))
    assert len(await core.calls(tx)) == 1


def pressed(data: str, user: ChannelUser = ANN) -> ButtonPressed:
    return ButtonPressed(
        update_id="1",
        chat_id=f"chat {user.user_id}",
        user=user,
        data=f"~csat:{data}",
        message_ref="m5",
        button_ref="b1",
    )


async def press(core: MemoryCore, tx: Tx, data: str, user: ChannelUser = ANN) -> bool | None:
    """What the rule for buttons of ratings says of a press in the bot's message `m5`."""
    return await handle(core, core.inbound(tx, pressed(data, user)))


async def comment(core: MemoryCore, tx: Tx, message: MessageReceived) -> bool | None:
    """What the rule for comments says of a message."""
    return await handle(core, core.inbound(tx, message), COMMENTS)


async def rated(core: MemoryCore, tx: Tx) -> Ticket:
    """A ticket to which Ann has given 4 of 5 by the bot's message `m5`, without a comment so far."""
    ticket = await add_ticket(core, tx, status="closed")
    assert await press(core, tx, f"rate:{ticket.ticket_id}:4")
    return ticket


async def test_a_score_is_kept_and_told_after_the_time_for_a_comment() -> None:
    async with helpdesk(csat_comment_minutes=7) as core, core.db.transaction() as tx:
        ticket = await rated(core, tx)

        [job] = await core.jobs_named(tx, END_JOB)
        [edit] = await calls_to(core, tx, "1", "edit")
        assert (await now(core, tx, ticket)).csat_score == 4
        assert job.run_at_ms == core.clock.now_ms() + 7 * MINUTE_MS
        assert edit.payload["message_ref"] == "m5"
        assert edit.message is not None
        assert "You rated 4 of 5" in edit.message.text
        assert core.emitted == []


async def test_what_is_rated_is_not_rated_again(core: MemoryCore, tx: Tx) -> None:
    ticket = await rated(core, tx)
    await press(core, tx, f"rate:{ticket.ticket_id}:1")

    assert "have rated this already" in ((await notices(core, tx))[-1] or "")
    assert (await now(core, tx, ticket)).csat_score == 4
    assert len(await core.jobs_named(tx, END_JOB)) == 1


async def test_what_is_open_is_not_rated(core: MemoryCore, tx: Tx) -> None:
    ticket = await add_ticket(core, tx)
    await press(core, tx, f"rate:{ticket.ticket_id}:4")

    assert "is still open" in ((await notices(core, tx))[-1] or "")
    assert (await now(core, tx, ticket)).csat_score is None
    assert await core.jobs_named(tx, END_JOB) == []


@pytest.mark.parametrize("data", ["rate:{}:6", "rate:{}", "rate", "burn:{}", "rate:tkt_9:4"])
async def test_what_is_no_rating_is_left_to_others(core: MemoryCore, tx: Tx, data: str) -> None:
    ticket = await add_ticket(core, tx, status="closed")

    assert await press(core, tx, data.format(ticket.ticket_id)) is False


async def test_nobody_rates_for_another(core: MemoryCore, tx: Tx) -> None:
    await core.person(tx, "sub_2")
    ticket = await add_ticket(core, tx, status="closed")

    assert await press(core, tx, f"rate:{ticket.ticket_id}:1", ChannelUser("2", "Bob")) is False
    assert (await now(core, tx, ticket)).csat_score is None


async def test_a_comment_is_told_with_its_score_and_for_what_it_was_said(
    core: MemoryCore, tx: Tx
) -> None:
    ticket = await rated(core, tx)
    assert await comment(core, tx, wrote("Fast!")) is True

    [event] = core.emitted
    assert (event.name, event.data["ticket_id"]) == ("ticket.csat_received", ticket.ticket_id)
    assert (event.data["score"], event.data["comment"]) == (4, "Fast!")
    assert (await now(core, tx, ticket)).csat_comment == "Fast!"
    assert await said_to(core, tx, "1") == ["Thank you, your comment is saved."]


@pytest.mark.parametrize(
    ("message", "is_reopened"),
    [
        (wrote("/help"), False),
        (wrote(" "), False),
        (wrote("Look", files=(PHOTO,)), False),
        (wrote("Yes", reply_to="m1"), False),
        (wrote("It is broken again"), True),
    ],
    ids=["command", "empty", "file", "another message", "reopened"],
)
async def test_what_is_no_comment_is_for_an_agent(
    core: MemoryCore, tx: Tx, message: MessageReceived, is_reopened: bool
) -> None:
    ticket = await rated(core, tx)
    if is_reopened:
        await core.get(Tickets).set_status(tx, PROJECT, ticket.ticket_id, "open", API)

    assert await comment(core, tx, message) is False
    assert "ticket.csat_received" not in core.event_names


async def test_a_comment_that_answers_the_question_is_one_in_a_reopened_ticket_too(
    core: MemoryCore, tx: Tx
) -> None:
    ticket = await rated(core, tx)
    await core.get(Tickets).set_status(tx, PROJECT, ticket.ticket_id, "open", API)

    assert await comment(core, tx, wrote("Fast!", reply_to="m5")) is True
    assert (await now(core, tx, ticket)).csat_comment == "Fast!"


async def test_of_two_who_take_a_rating_one_tells_of_it(
    core: MemoryCore, tx: Tx, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def taken_by_another(*_: object) -> None:
        return None

    ticket = await rated(core, tx)
    monkeypatch.setattr(rating_store, "delete", taken_by_another)

    assert await comment(core, tx, wrote("Fast!")) is False
    assert await press(core, tx, f"skip:{ticket.ticket_id}") is True
    assert core.emitted == []


async def test_without_a_comment_the_score_is_told_when_its_time_is_over(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        ticket = await rated(core, tx)
    key = {"project_id": PROJECT, "ticket_id": ticket.ticket_id}
    for _ in range(2):
        context = await core.run(NewJob(END_JOB, key))
        assert len(context.completed) == 1

    told = [(event.data["score"], event.data["comment"]) for event in core.emitted]
    assert told == [(4, None)]
