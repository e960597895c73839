"""Conversations in messengers."""

from collections.abc import Sequence
from typing import Any

import pytest

from msgsvc_core.channels import ChannelUser, ReceivedFile
from msgsvc_core.db import Tx
from msgsvc_core.files.fetching import JOB as FETCH
from msgsvc_core.jobs import Job, NewJob
from msgsvc_core.kernel.json import from_json
from msgsvc_devkit.core import PROJECT, MemoryCore
from msgsvc_forms import dialogue_store
from msgsvc_forms.dialogue_store import Dialogue
from msgsvc_forms.dialogues import state_of
from msgsvc_forms.inbound import REMIND
from msgsvc_forms.service import Forms
from plugins.areas.forms.tests.unit.chat import Chat
from plugins.areas.forms.tests.unit.order import FIELDS, add_form, new_form

#: Ends what was abandoned.
EXPIRE = "forms.expire_conversations"

#: A question that can be left for later after three answers that do not fit.
NEEDED = {**FIELDS[1], "required": True}

PAUSING = ("x", "x", "x", "/later")


async def invited(core: MemoryCore, tx: Tx, **fields: Any) -> Chat:
    """Anna's chat, in which she may open the form."""
    await core.person(tx)
    await add_form(tx, **fields)
    return Chat(core, tx)


async def begun(core: MemoryCore, tx: Tx, **fields: Any) -> tuple[Chat, Dialogue]:
    """Anna's chat, in which the form asks its first question."""
    chat = await invited(core, tx, **fields)
    await chat.open()
    dialogue = await chat.under_way()
    assert dialogue is not None
    return chat, dialogue


# ---- dialogues ----------------------------------------------------------------------------------


async def test_a_form_that_two_opened_at_once_is_asked_once(
    core: MemoryCore, tx: Tx, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def not_committed_yet(*_: Any) -> None:
        return None

    chat, dialogue = await begun(core, tx)
    asked = await chat.texts()
    with monkeypatch.context() as patch:
        patch.setattr(dialogue_store, "lock_active", not_committed_yet)
        await chat.open()

    assert await chat.texts() == asked
    assert await chat.under_way() == dialogue


async def test_a_conversation_without_answers_gives_way_to_another(
    core: MemoryCore, tx: Tx
) -> None:
    chat, dialogue = await begun(core, tx)
    await core.get(Forms).create(tx, PROJECT, new_form(slug="other", title="Survey"))
    await chat.open("form_other")

    introduction, question = (await chat.texts())[2:]
    assert introduction == "Survey"
    assert question.startswith("Your name?")
    replaced = await dialogue_store.lock(tx, PROJECT, dialogue.dialogue_id)
    assert replaced is not None
    assert replaced.status == "replaced"


async def test_what_is_sent_is_a_submission_and_leaves_only_its_messages(
    core: MemoryCore, tx: Tx
) -> None:
    chat, _ = await begun(core, tx)
    await chat.say("Ann", "2", "/send")

    assert core.event_names == ["form.submitted"]
    assert await chat.under_way() is None
    sent = await dialogue_store.find_last_submitted(tx, "messenger_a", "chat 1")
    assert sent is not None
    assert from_json(sent.state) == {"refs": ["m1", "m2"]}
    assert (await chat.texts())[-1] == "Thank you! Your answers were sent."


async def test_another_form_that_is_gone_leaves_the_first_as_it_is(
    core: MemoryCore, tx: Tx
) -> None:
    chat, dialogue = await begun(core, tx)
    await chat.say("Ann")
    other = await core.get(Forms).create(tx, PROJECT, new_form(slug="other"))
    await chat.open("form_other")
    await core.get(Forms).delete(tx, PROJECT, other.form_id)
    await chat.say("/anew")

    assert "no longer exists" in (await chat.texts())[-1]
    left = await chat.under_way()
    assert left is not None
    assert left.dialogue_id == dialogue.dialogue_id
    assert state_of(left).answers["name"].value == "Ann"


async def test_a_file_that_did_not_come_is_asked_for_again_with_the_reason(
    core: MemoryCore,
) -> None:
    photo = {"key": "photo", "type": "file", "label": "Photo?", "required": True}
    async with core.db.transaction() as tx:
        chat, _ = await begun(core, tx, fields=[photo, FIELDS[1]])
        await chat.send_file(ReceivedFile("document", "f1", "a.png", "image/png", 72))
        before = len(await chat.texts())
        jobs = await core.jobs_named(tx, FETCH)
    await core.run(*jobs)

    async with core.db.transaction() as tx:
        [asked] = (await Chat(core, tx).texts())[before:]
    assert "Photo?" in asked
    assert "there is no such file" in asked


@pytest.mark.parametrize("has_blocked", [False, True])
async def test_who_has_left_does_not_go_on(core: MemoryCore, tx: Tx, has_blocked: bool) -> None:
    chat, dialogue = await begun(core, tx)
    await leave(core, tx, has_blocked=has_blocked)

    assert await chat.say("Ann") is False
    assert await chat.under_way() == dialogue


async def leave(core: MemoryCore, tx: Tx, *, has_blocked: bool = False) -> None:
    """Anna blocks the bot, or unsubscribes."""
    if has_blocked:
        await core.subscribers.block(tx, "messenger_a", "1", reason="blocked")
    else:
        await core.subscribers.unsubscribe(tx, PROJECT, "sub_1", reason="stop")


# ---- the bot ------------------------------------------------------------------------------------


async def test_a_link_that_leads_to_no_form_is_left_to_the_core(core: MemoryCore, tx: Tx) -> None:
    chat = await invited(core, tx)
    unknown = await chat.open("form_unknown")
    await core.projects.switch(tx, PROJECT, active=False)
    disabled = await chat.open()

    assert (unknown, disabled) == (False, False)
    assert await chat.texts() == []


async def test_what_is_written_outside_a_conversation_is_left_to_others(
    core: MemoryCore, tx: Tx
) -> None:
    chat = await invited(core, tx, fields=[NEEDED])
    before = await chat.say("2")
    await chat.open()
    by_a_stranger = await chat.say("2", by=ChannelUser("2", "Boris"))
    answer = await chat.say(*PAUSING)
    paused = await chat.say("2")

    assert (before, by_a_stranger, answer, paused) == (False, False, True, False)


async def test_a_change_of_any_other_message_is_left_to_others(core: MemoryCore, tx: Tx) -> None:
    chat = await invited(core, tx)
    before = await chat.edit("m9", "x")
    await chat.open()
    await chat.say("Ann")
    within = await chat.edit("m9", "x")
    await chat.say("2", "/send")
    after = await chat.edit("m9", "x")

    assert (before, within, after) == (False, False, False)
    assert await chat.edit("m1", "Anna") is True


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("~form:fdl_other:1:skip", "no longer in progress"),
        ("~form:{dialogue_id}:9:skip", "earlier question"),
        ("~form:{dialogue_id}:x:skip", "earlier question"),
    ],
)
async def test_a_button_of_what_is_over_says_so(
    core: MemoryCore, tx: Tx, data: str, said: str
) -> None:
    chat, dialogue = await begun(core, tx)
    notice = await chat.press(data.format(dialogue_id=dialogue.dialogue_id))

    assert said in (notice or "")
    assert await chat.under_way() == dialogue


async def test_after_something_else_the_question_is_asked_again(core: MemoryCore, tx: Tx) -> None:
    chat, dialogue = await begun(core, tx)
    await chat.open_aside("form_order")
    after_its_own_link = await core.jobs_named(tx, REMIND)
    await chat.do_aside("/settings")

    assert after_its_own_link == []
    [job] = await core.jobs_named(tx, REMIND)
    assert job.payload["dialogue_id"] == dialogue.dialogue_id
    assert job.run_at_ms == core.clock.now_ms() + 15_000


async def test_a_question_that_was_left_for_later_is_not_asked_again(
    core: MemoryCore, tx: Tx
) -> None:
    chat, _ = await begun(core, tx, fields=[NEEDED])
    await chat.say(*PAUSING)
    await chat.do_aside("/help")

    assert await core.jobs_named(tx, REMIND) == []


# ---- reminders ----------------------------------------------------------------------------------


async def interrupted(core: MemoryCore, tx: Tx) -> tuple[Chat, Job]:
    """Anna's chat, in which she does something else before she answers, and the job that asks again."""
    chat, _ = await begun(core, tx, fields=[NEEDED, FIELDS[0]])
    await chat.do_aside("/settings")
    [job] = await core.jobs_named(tx, REMIND)
    return chat, job


async def texts_of(core: MemoryCore) -> list[str]:
    async with core.db.read() as tx:
        return await core.texts_sent(tx)


async def test_who_is_still_busy_is_left_in_peace_for_the_rest_of_the_time(
    core: MemoryCore,
) -> None:
    async with core.db.transaction() as tx:
        _, job = await interrupted(core, tx)
    before = await texts_of(core)
    core.clock.advance(5)
    ctx = await core.run(job)

    assert await texts_of(core) == before
    assert [after_s for _, after_s in ctx.rescheduled] == [10.0]


async def test_the_question_is_asked_again_once_they_are_done(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        _, job = await interrupted(core, tx)
    before = await texts_of(core)
    core.clock.advance(15)
    ctx = await core.run(job)

    [asked] = (await texts_of(core))[len(before) :]
    assert asked.startswith("Back to “Order”:\n\nHow many?")
    assert len(ctx.completed) == 1


@pytest.mark.parametrize("texts", [("2", "Ann", "/send"), PAUSING, ("/cancel",)])
async def test_who_went_on_or_was_let_go_is_not_asked_again(
    core: MemoryCore, texts: Sequence[str]
) -> None:
    async with core.db.transaction() as tx:
        chat, job = await interrupted(core, tx)
        await chat.say(*texts)
    before = await texts_of(core)
    core.clock.advance(15)
    ctx = await core.run(job)

    assert await texts_of(core) == before
    assert len(ctx.completed) == 1


async def test_who_answered_since_is_not_asked_again(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        chat, job = await interrupted(core, tx)
        core.clock.advance(1)
        await chat.say("2")
    before = await texts_of(core)
    core.clock.advance(15)
    ctx = await core.run(job)

    assert await texts_of(core) == before
    assert len(ctx.completed) == 1


@pytest.mark.parametrize("is_erased", [False, True])
async def test_who_has_left_is_not_asked_again(core: MemoryCore, is_erased: bool) -> None:
    async with core.db.transaction() as tx:
        _, job = await interrupted(core, tx)
        await leave(core, tx, has_blocked=True)
        if is_erased:
            await core.subscribers.erase(tx, PROJECT, "sub_1")
    before = await texts_of(core)
    core.clock.advance(15)
    ctx = await core.run(job)

    assert await texts_of(core) == before
    assert len(ctx.completed) == 1


async def test_a_conversation_is_given_up_after_three_days_and_forgotten_after_a_week(
    core: MemoryCore,
) -> None:
    async with core.db.transaction() as tx:
        _, dialogue = await begun(core, tx)

    async def status_after(seconds: float) -> str | None:
        core.clock.advance(seconds)
        await core.run(NewJob(EXPIRE))
        async with core.db.read() as tx:
            found = await dialogue_store.lock(tx, PROJECT, dialogue.dialogue_id)
        return None if found is None else found.status

    assert await status_after(72 * 3600) == "active"
    assert await status_after(1) == "expired"
    assert await status_after(7 * 24 * 3600) == "expired"
    assert await status_after(1) is None
