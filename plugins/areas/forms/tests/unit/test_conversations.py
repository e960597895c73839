"""Conversations in messengers, built from fakes."""

import io
from dataclasses import asdict, replace
from typing import Any

import pytest

from msgsvc_core.channels import (
    ButtonPressed,
    ChannelUser,
    MessageEdited,
    MessageReceived,
    Started,
    Update,
)
from msgsvc_core.jobs import NewJob
from msgsvc_core.kernel.clock import HOUR_MS
from msgsvc_core.kernel.json import from_json, to_json
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import (
    PROJECT,
    FakeInboundContext,
    FakeJobContext,
    FakeTx,
    claimed,
    inbound_context,
)
from msgsvc_devkit.fakes.database import Reply
from msgsvc_forms import plugin
from msgsvc_forms.dialogue import CommandSent, Said, State
from msgsvc_forms.dialogue_store import Dialogue
from msgsvc_forms.dialogues import state_of
from msgsvc_forms.inbound import REMIND, FormBot
from msgsvc_forms.models import Form
from msgsvc_forms.reminders import Reminders
from msgsvc_forms.settings import FormsSettings
from msgsvc_forms.submissions import OPERATION

from .order import (
    FORM,
    conversation,
    dialogues,
    form_of,
    forms,
    prompts,
    tables,
    under_way,
)

ANNA = ChannelUser("1", "Anna")


@pytest.fixture
def core() -> FakeContext:
    core = plugin_context(plugin=plugin)
    core.subscribers.person("sub_1")
    return core


def chat(
    core: FakeContext,
    update: Update,
    *under: Dialogue,
    form: Form | None = FORM,
    others: dict[str, Reply] | None = None,
) -> FakeInboundContext:
    """The context of an update in Anna's chat, with a conversation under way in it."""
    ctx = inbound_context(update, channels=core.channels, outbox=core.outbox, texts=core.texts)
    ctx.tx = FakeTx(replies=tables(form, others={**(others or {}), **under_way(*under)}))
    return ctx


def wrote(text: str, user: ChannelUser = ANNA) -> MessageReceived:
    return MessageReceived(update_id="1", chat_id="chat 1", user=user, text=text, message_ref="m7")


def opened(payload: str = "form_order") -> Started:
    return Started(update_id="1", chat_id="chat 1", user=ANNA, payload=payload)


def changes(ctx: FakeInboundContext) -> list[dict[str, Any]]:
    """What was written of conversations."""
    assert isinstance(ctx.tx, FakeTx)
    return ctx.tx.params_of("UPDATE forms_dialogues")


# ---- dialogues ----------------------------------------------------------------------------------


async def test_an_opened_form_introduces_itself_and_asks_its_first_question(
    core: FakeContext,
) -> None:
    ctx = chat(core, opened())
    await dialogues(core).open(ctx, FORM, core.subscribers.everybody[0])

    introduction, question = core.outbox.texts
    assert introduction == "Order"
    assert question.startswith("Your name?")


async def test_a_form_that_two_opened_at_once_is_asked_once(core: FakeContext) -> None:
    ctx = chat(core, opened(), others={"INSERT INTO forms_dialogues": 0})
    await dialogues(core).open(ctx, FORM, core.subscribers.everybody[0])

    assert core.outbox.texts == []


async def test_answers_under_way_are_not_lost_by_another_link(core: FakeContext) -> None:
    begun = conversation(at="count", answers={"name": ["Ann", "m1"]})
    ctx = chat(core, opened(), begun)
    await dialogues(core).open(ctx, FORM, core.subscribers.everybody[0])

    assert [from_json(each["state"])["phase"] for each in changes(ctx)] == ["offered"]
    assert [each["status"] for each in changes(ctx)] == ["active"]


async def test_a_conversation_without_answers_gives_way_to_another(core: FakeContext) -> None:
    ctx = chat(core, opened(), conversation())
    await dialogues(core).open(ctx, FORM, core.subscribers.everybody[0])

    assert [each["status"] for each in changes(ctx)] == ["replaced"]
    assert len(core.outbox.texts) == 2


async def test_an_answer_leads_to_the_next_question(core: FakeContext) -> None:
    ctx = chat(core, wrote("Ann"))
    await dialogues(core).handle(ctx, conversation(), Said("Ann", "m7"))

    [written] = changes(ctx)
    assert from_json(written["state"])["answers"] == {"name": ["Ann", "m7"]}
    assert core.outbox.texts[0].startswith("How many?")


async def test_what_is_sent_is_a_submission_and_leaves_only_its_messages(core: FakeContext) -> None:
    done = conversation(at=None, answers={"name": ["Ann", "m1"], "count": [2, "m2"]})
    ctx = chat(core, wrote("/send"))
    await dialogues(core).handle(ctx, done, CommandSent("send"))

    assert core.events.names == ["form.submitted"]
    assert [each["status"] for each in changes(ctx)] == ["submitted"]
    assert from_json(changes(ctx)[0]["state"]) == {"refs": ["m1", "m2"]}
    assert core.outbox.texts == ["Thank you! Your answers were sent."]


async def test_what_can_not_be_sent_now_keeps_its_answers(core: FakeContext) -> None:
    core.billing.refused.add(OPERATION)
    done = conversation(at=None, answers={"name": ["Ann", "m1"], "count": [2, "m2"]})
    ctx = chat(core, wrote("/send"))
    await dialogues(core).handle(ctx, done, CommandSent("send"))

    assert "Your answers are saved" in core.outbox.texts[0]
    assert changes(ctx) == []


async def test_who_prefers_the_other_form_begins_it_and_leaves_the_first(core: FakeContext) -> None:
    offered = conversation(phase="offered", offer="order", answers={"name": ["Ann", "m1"]})
    ctx = chat(core, wrote("/anew"), offered)
    await dialogues(core).handle(ctx, offered, CommandSent("anew"))

    assert [each["status"] for each in changes(ctx)] == ["replaced"]
    assert core.outbox.texts[0] == "Order"
    assert len(core.outbox.texts) == 2


async def test_another_form_that_is_gone_leaves_the_first_as_it_is(core: FakeContext) -> None:
    offered = conversation(phase="offered", offer="other", answers={"name": ["Ann", "m1"]})
    found: dict[str, Reply] = {"WHERE f.start = :start": []}
    ctx = chat(core, wrote("/anew"), offered, others=found)
    await dialogues(core).handle(ctx, offered, CommandSent("anew"))

    assert "replaced" not in [each["status"] for each in changes(ctx)]
    assert "no longer exists" in core.outbox.texts[0]


async def test_a_file_is_submitted_as_it_came_and_one_that_was_skipped_goes(
    core: FakeContext,
) -> None:
    photos = [{"key": key, "type": "file", "label": f"{key}?"} for key in ("one", "two")]
    stored = []
    for _ in photos:
        content = io.BytesIO(b"\x89PNG\r\n\x1a\n" + b"\0" * 64)
        stored.append(await core.files.add(FakeTx(), PROJECT, filename="a.png", content=content))
    sent, skipped = stored
    given = {
        "one": [[{"file_id": sent.file_id, "filename": "", "size": 0}], "m1"],
        "two": [[{"file_id": skipped.file_id, "filename": "", "size": 0}], "m2"],
    }
    done = conversation(at=None, answers=given, skipped=["two"])
    await dialogues(core).handle(
        chat(core, wrote("/send"), form=form_of(fields=photos)), done, CommandSent("send")
    )

    [answer] = core.events.emitted[0].data["answers"]
    assert (answer["value"][0]["filename"], answer["value"][0]["size"]) == ("a.png", 72)
    assert list(core.files.stored) == [sent.file_id]


async def test_a_form_that_was_deleted_ends_the_conversation(core: FakeContext) -> None:
    ctx = chat(core, wrote("Ann"), form=None)
    await dialogues(core).handle(ctx, conversation(), Said("Ann", "m7"))

    assert [each["status"] for each in changes(ctx)] == ["gone"]
    assert "no longer exists" in core.outbox.texts[0]


async def test_files_of_a_conversation_that_is_cancelled_go_with_it(core: FakeContext) -> None:
    content = io.BytesIO(b"\x89PNG\r\n\x1a\n" + b"\0" * 64)
    file = await core.files.add(FakeTx(), PROJECT, filename="a.png", content=content)
    given = {"photo": [[{"file_id": file.file_id, "filename": "a.png"}], "m1"]}
    tx = FakeTx(replies=tables())
    await dialogues(core).finish(tx, conversation(answers=given), "cancelled")

    assert core.files.stored == {}


async def test_a_file_that_did_not_come_is_asked_for_again(core: FakeContext) -> None:
    content = io.BytesIO(b"\x89PNG\r\n\x1a\n" + b"\0" * 64)
    file = await core.files.add(
        FakeTx(), PROJECT, filename="a.png", content=content, subscriber_id="sub_1"
    )
    lost = replace(file, status="failed", reason="it is too large")
    fields = [{"key": "photo", "type": "file", "label": "Photo?", "required": True}]
    given = {"photo": [[{"file_id": file.file_id, "filename": "a.png"}], "m1"]}
    tx = FakeTx(
        replies=tables(
            form_of(fields=fields), others=under_way(conversation(at=None, answers=given))
        )
    )
    await dialogues(core).file_fetched(tx, lost)

    [asked] = core.outbox.sent
    assert "Photo?" in asked.message.text
    assert "it is too large" in asked.message.text


@pytest.mark.parametrize("status", ["unsubscribed", "blocked"])
async def test_who_has_left_does_not_go_on(core: FakeContext, status: Any) -> None:
    core.subscribers.person("sub_1", status=status)
    ctx = chat(core, wrote("Ann"))

    assert await dialogues(core).active_filler(ctx, conversation()) is None


# ---- prompts ------------------------------------------------------------------------------------


def test_buttons_name_the_conversation_and_its_turn(core: FakeContext) -> None:
    worded = prompts(core).wording(conversation(at="count"), dialogue_state(at="count"), FORM, "ru")

    data = [button.data for row in worded.prompt().buttons for button in row]
    assert "~form:fdl_1:1:skip" in data
    assert "Пропустить" in str(worded.prompt().buttons)


def dialogue_state(**fields: Any) -> State:
    """The state of a conversation at a question."""
    return state_of(conversation(**fields))


async def test_another_form_is_offered_by_its_title(core: FakeContext) -> None:
    state = dialogue_state(offer="other")
    other = replace(form_of(title={"en": "Survey", "ru": "Опрос"}), form_id="frm_2")
    tx, same = FakeTx(replies=tables(other)), FakeTx(replies=tables())

    assert await prompts(core).offered(tx, state, FORM, "ru") == "Опрос"
    assert await prompts(core).offered(same, state, FORM, "ru") is None
    assert await prompts(core).offered(FakeTx(), dialogue_state(), FORM, "ru") is None


# ---- the bot ------------------------------------------------------------------------------------


def bot(core: FakeContext) -> FormBot:
    return FormBot(
        clock=core.clock,
        jobs=core.jobs,
        projects=core.projects,
        subscribers=core.subscribers,
        files=core.files,
        forms=forms(core),
        dialogues=dialogues(core),
        settings=FormsSettings(),
    )


async def react(core: FakeContext, kind: str, ctx: FakeInboundContext) -> bool | None:
    """What the bot's rule for a kind of update says of it."""
    rule = next(rule for rule in bot(core).rules() if rule.on == kind)
    return await rule.handler(ctx)


async def test_a_link_subscribes_to_the_project_of_its_form(core: FakeContext) -> None:
    core.subscribers.by_id.clear()
    ctx = chat(core, opened())

    assert await react(core, "start", ctx) is True
    assert [person.source for person in core.subscribers.everybody] == ["form"]
    assert ctx.chat.project_id == PROJECT


async def test_a_link_that_leads_to_no_form_is_left_to_the_core(core: FakeContext) -> None:
    assert await react(core, "start", chat(core, opened(), form=None)) is False
    await core.projects.set_active(PROJECT, False)

    assert await react(core, "start", chat(core, opened())) is False
    assert core.outbox.texts == []


async def test_what_is_written_outside_a_conversation_is_left_to_others(core: FakeContext) -> None:
    paused = conversation(phase="paused")
    stranger = wrote("Ann", ChannelUser("2", "Boris"))

    assert await react(core, "message", chat(core, wrote("Ann"))) is False
    assert await react(core, "message", chat(core, wrote("Ann"), paused)) is False
    assert await react(core, "message", chat(core, stranger, conversation())) is False
    assert await react(core, "message", chat(core, wrote("Ann"), conversation())) is True


async def test_a_change_of_an_answer_is_taken_until_the_form_is_sent(core: FakeContext) -> None:
    edit = MessageEdited(update_id="1", chat_id="chat 1", user=ANNA, message_ref="m1", text="Anna")
    begun = conversation(at="count", answers={"name": ["Ann", "m1"]})
    under = chat(core, edit, begun)
    sent = replace(begun, status="submitted", state=to_json({"refs": ["m1"]}))
    over = chat(
        core, edit, others={"status = 'submitted'": [asdict(sent)], "status = 'active'": []}
    )

    assert await react(core, "edit", under) is True
    assert from_json(changes(under)[0]["state"])["answers"]["name"][0] == "Anna"
    assert await react(core, "edit", over) is True
    assert "already sent" in core.outbox.texts[-1]


async def test_a_change_of_any_other_message_is_left_to_others(core: FakeContext) -> None:
    edit = MessageEdited(update_id="1", chat_id="chat 1", user=ANNA, message_ref="m9", text="x")

    sent = replace(conversation(), status="submitted", state=to_json({"refs": ["m1"]}))
    found: dict[str, Reply] = {"status = 'submitted'": [asdict(sent)]}

    assert await react(core, "edit", chat(core, edit, conversation(), others=found)) is False
    assert await react(core, "edit", chat(core, edit)) is False


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("~form:fdl_other:1:skip", "no longer in progress"),
        ("~form:fdl_1:9:skip", "earlier question"),
        ("~form:fdl_1:x:skip", "earlier question"),
    ],
)
async def test_a_button_of_what_is_over_says_so(core: FakeContext, data: str, said: str) -> None:
    press = ButtonPressed(
        update_id="1", chat_id="chat 1", user=ANNA, data=data, message_ref="m1", button_ref="b1"
    )
    await react(core, "button", chat(core, press, conversation()))

    [(_, _, notice)] = core.outbox.answered
    assert said in (notice or "")


async def test_after_something_else_the_question_is_asked_again(core: FakeContext) -> None:
    ctx = chat(core, wrote("/settings"), conversation())
    await react(core, "aside", ctx)
    await react(core, "aside", chat(core, opened(), conversation()))
    await react(core, "aside", chat(core, wrote("/help"), conversation(phase="paused")))

    [job] = core.jobs.named(REMIND)
    assert job.run_at_ms == core.clock.now_ms() + 15_000
    assert len(changes(ctx)) == 1


# ---- reminders ----------------------------------------------------------------------------------


def reminders(core: FakeContext) -> Reminders:
    return Reminders(
        clock=core.clock,
        subscribers=core.subscribers,
        outbox=core.outbox,
        dialogues=dialogues(core),
        settings=FormsSettings(ask_again_after_s=15, conversation_hours=72),
    )


async def remind(core: FakeContext, dialogue: Dialogue | None) -> FakeJobContext:
    """Runs the job that asks again."""
    core.db.replies = tables(others=under_way(*([dialogue] if dialogue else [])))
    ctx = FakeJobContext(core.db)
    payload = {"project_id": PROJECT, "dialogue_id": "fdl_1"}
    await reminders(core).remind(ctx, [claimed(NewJob(REMIND, payload))])
    return ctx


async def test_who_is_still_busy_is_left_in_peace_for_the_rest_of_the_time(
    core: FakeContext,
) -> None:
    aside_ms = core.clock.now_ms() - 5_000
    ctx = await remind(core, conversation(aside_at_ms=aside_ms))

    assert core.outbox.texts == []
    assert [after for _, after in ctx.rescheduled] == [10.0]


async def test_the_question_is_asked_again_once_they_are_done(core: FakeContext) -> None:
    ctx = await remind(core, conversation(aside_at_ms=core.clock.now_ms() - 15_000))

    assert core.outbox.texts[0].startswith("Back to “Order”:\n\nYour name?")
    assert len(ctx.completed) == 1


@pytest.mark.parametrize(
    "change", [{"status": "submitted"}, {"phase": "paused"}, {"updated_at_ms": 9**15}]
)
async def test_who_went_on_or_was_let_go_is_not_asked_again(
    core: FakeContext, change: dict[str, Any]
) -> None:
    ctx = await remind(core, conversation(aside_at_ms=1, **change))
    await remind(core, None)

    assert core.outbox.texts == []
    assert len(ctx.completed) == 1


async def test_who_has_left_is_not_asked_again(core: FakeContext) -> None:
    core.subscribers.person("sub_1", status="blocked")
    await remind(core, conversation(aside_at_ms=1))

    assert core.outbox.texts == []


async def test_a_conversation_is_given_up_after_three_days_and_forgotten_after_a_week(
    core: FakeContext,
) -> None:
    core.db.replies = tables(others={"DELETE FROM forms_dialogues": 0, **under_way(conversation())})
    await reminders(core).expire(FakeJobContext(core.db), [])

    [old], [gone] = (
        core.db.params_of("status = 'active' AND updated_at_ms <"),
        core.db.params_of("DELETE FROM forms_dialogues"),
    )
    now_ms = core.clock.now_ms()
    assert old["before_ms"] == now_ms - 72 * HOUR_MS
    assert gone["before_ms"] == now_ms - 7 * 24 * HOUR_MS
    assert core.db.params_of("UPDATE forms_dialogues")[0]["status"] == "expired"
