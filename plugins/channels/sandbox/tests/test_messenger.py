"""What people do in the messenger, and what bots and people see of it."""

import asyncio

import pytest

from msgsvc_core.channels import (
    Button,
    DeliveryError,
    InboundContext,
    Media,
    OutgoingMessage,
    Reason,
)
from msgsvc_core.channels.shelf import ItemTaker, Shelf
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.platforms.sandbox import Sandbox, SandboxPerson
from msgsvc_sandbox import plugin
from msgsvc_sandbox.mailbox import Mailbox
from msgsvc_sandbox.models import NewPerson, OpenLink, PersonChange
from msgsvc_sandbox.service import PER_ANSWER, PER_CHAT, Messenger

from .conftest import CHANNELS, EchoBot


@pytest.fixture
def messenger(service: Service) -> Messenger:
    return service.get(Messenger)


async def test_the_link_of_a_channel_starts_its_bot(service: Service, anna: SandboxPerson) -> None:
    await anna.open(service.channels["messenger_a"].deep_link("echo_1"))

    question = await anna.wait_for(button="Yes")
    assert (question.channel, question.text) == ("messenger_a", "Is it you?")
    assert [span.marks for span in question.spans] == [[], ["italic"], []]


async def test_a_pressed_button_reaches_the_bot_which_edits_its_message(
    anna: SandboxPerson, messenger: Messenger
) -> None:
    await anna.start("messenger_a", "echo_1")

    question = await anna.press("Yes")

    edited = await anna.wait_for(text="Thanks, Anna")
    assert edited.ref == question.ref
    assert edited.edited_at_ms is not None
    assert edited.buttons == []


async def test_the_answer_to_a_button_is_shown_to_the_person(
    service: Service, anna: SandboxPerson, messenger: Messenger
) -> None:
    await anna.start("messenger_a", "echo_1")
    before = await messenger.state(anna.person_id)

    await anna.press("Yes")
    await settled(service)

    [chat] = (await messenger.state(anna.person_id)).chats
    assert chat.notice == "Noted"
    assert chat.notice_revision > before.chats[0].notice_revision


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_a_start_and_an_answer_at_once_do_not_wait_for_each_other(
    service: Service, anna: SandboxPerson, messenger: Messenger
) -> None:
    """PostgreSQL would end one of two that have locked what the other wants."""
    await anna.start("messenger_a", "echo_1")
    mailbox = service.get(Mailbox)

    for _ in range(20):
        await asyncio.gather(
            messenger.open(anna.person_id, OpenLink(channel="messenger_a", payload="echo_1")),
            mailbox.answer("messenger_a", f"{anna.person_id}:1", "Noted"),
            mailbox.answer("messenger_a", f"{anna.person_id}:1", "Noted"),
        )


async def test_a_text_reaches_the_bot(anna: SandboxPerson) -> None:
    await anna.start("messenger_b", "echo_1")

    await anna.say("two flat whites")

    await anna.wait_for(text="You said: two flat whites", channel="messenger_b")


async def test_people_do_not_see_each_others_messages(
    sandbox: Sandbox, anna: SandboxPerson
) -> None:
    bo = await sandbox.person("Bo")
    await anna.start("messenger_a", "echo_1")
    await anna.wait_for(button="Yes")

    assert await bo.messages() == []


@pytest.mark.parametrize(("row", "column"), [(0, 2), (1, 0), (9, 9)])
async def test_a_button_that_is_not_there_is_not_found(
    anna: SandboxPerson, messenger: Messenger, row: int, column: int
) -> None:
    await anna.start("messenger_a", "echo_1")
    question = await anna.wait_for(button="Yes")

    with pytest.raises(NotFound):
        await messenger.press(anna.person_id, "messenger_a", question.ref, row, column)


async def test_a_button_that_opens_a_page_tells_the_bot_nothing(anna: SandboxPerson) -> None:
    await anna.start("messenger_a", "echo_1")

    with pytest.raises(ValidationFailed, match="opens a page"):
        await anna.press("Site")


@pytest.mark.parametrize("ref", ["", "x", "-1", "9" * 40, "²"])
async def test_a_message_that_is_not_there_has_no_buttons(
    anna: SandboxPerson, messenger: Messenger, ref: str
) -> None:
    await anna.start("messenger_a", "echo_1")

    with pytest.raises(NotFound):
        await messenger.press(anna.person_id, "messenger_a", ref, 0, 0)


async def test_a_link_to_an_unknown_bot_is_not_found(anna: SandboxPerson) -> None:
    with pytest.raises(NotFound):
        await anna.open("http://x/sandbox/open/messenger_z?start=a")


async def test_an_address_that_is_no_start_link_is_refused(anna: SandboxPerson) -> None:
    with pytest.raises(ValidationFailed, match="link"):
        await anna.open("https://shop.example")


async def test_a_bot_that_was_not_started_can_not_be_written_to(anna: SandboxPerson) -> None:
    with pytest.raises(Conflict):
        await anna.say("hello", channel="messenger_a")


async def test_a_bot_can_not_write_to_somebody_who_has_not_started_it(
    service: Service, anna: SandboxPerson
) -> None:
    with pytest.raises(DeliveryError) as caught:
        await service.channels["messenger_a"].send(anna.person_id, OutgoingMessage("hello"))

    assert caught.value.reason is Reason.CHAT_NOT_FOUND


@pytest.mark.both_databases
async def test_a_blocked_bot_can_not_write(service: Service, anna: SandboxPerson) -> None:
    await anna.start("messenger_a")
    await anna.block()

    with pytest.raises(DeliveryError) as caught:
        await service.channels["messenger_a"].send(anna.person_id, OutgoingMessage("hello"))

    assert caught.value.reason is Reason.USER_BLOCKED_BOT


@pytest.mark.both_databases
async def test_unblocking_or_starting_again_lets_the_bot_write(
    service: Service, anna: SandboxPerson
) -> None:
    channel = service.channels["messenger_a"]
    await anna.start("messenger_a")
    for let_in in (anna.unblock, lambda: anna.start("messenger_a")):
        await anna.block()
        await let_in()
        await channel.send(anna.person_id, OutgoingMessage("hello again"))

    assert [message.text for message in await anna.messages()].count("hello again") == 2


@pytest.mark.both_databases
async def test_a_deleted_person_has_no_chat(
    service: Service, anna: SandboxPerson, messenger: Messenger
) -> None:
    await anna.start("messenger_a")
    await messenger.delete_person(anna.person_id)

    with pytest.raises(DeliveryError) as caught:
        await service.channels["messenger_a"].send(anna.person_id, OutgoingMessage("hello"))

    assert caught.value.reason is Reason.CHAT_NOT_FOUND
    assert await messenger.people() == []


@pytest.mark.parametrize(
    "message",
    [
        OutgoingMessage("  "),
        OutgoingMessage("<b></b>", format="html"),
        OutgoingMessage("x" * 4001),
        OutgoingMessage("x", buttons=((Button("x", url="javascript:alert(1)"),),)),
        OutgoingMessage("x", media=Media("image", "file:///etc/passwd")),
    ],
    ids=["empty", "empty html", "long", "button", "media"],
)
async def test_a_message_that_no_messenger_would_take_is_invalid(
    service: Service, anna: SandboxPerson, message: OutgoingMessage
) -> None:
    await anna.start("messenger_a")

    with pytest.raises(DeliveryError) as caught:
        await service.channels["messenger_a"].send(anna.person_id, message)

    assert caught.value.reason is Reason.INVALID_MESSAGE


async def test_an_edit_keeps_the_picture_and_replaces_text_and_buttons(
    service: Service, anna: SandboxPerson
) -> None:
    channel = service.channels["messenger_a"]
    picture = Media("image", "https://shop.example/a.png")
    await anna.start("messenger_a")
    ref = await channel.send(
        anna.person_id, OutgoingMessage("old", media=picture, buttons=((Button("x", data="x"),),))
    )

    await channel.edit(anna.person_id, ref, OutgoingMessage("new"))

    message = await anna.wait_for(text="new")
    assert message.media is not None
    assert (message.media.url, message.buttons) == (picture.url, [])


async def test_a_removed_message_is_gone_and_may_be_removed_twice(
    service: Service, anna: SandboxPerson, messenger: Messenger
) -> None:
    channel = service.channels["messenger_a"]
    await anna.start("messenger_a")
    await settled(service)
    ref = await channel.send(anna.person_id, OutgoingMessage("a secret"))
    since = (await messenger.state(anna.person_id)).revision

    await channel.delete(anna.person_id, ref)
    await channel.delete(anna.person_id, ref)

    [change] = (await messenger.state(anna.person_id, since)).messages
    assert (change.ref, change.deleted, change.text) == (ref, True, "")
    assert "a secret" not in [message.text for message in await anna.messages()]


@pytest.mark.both_databases
async def test_unread_messages_are_counted_until_they_are_read(
    service: Service, anna: SandboxPerson, messenger: Messenger
) -> None:
    await anna.start("messenger_a", "echo_1")
    await settled(service)
    counted = (await messenger.state(anna.person_id)).chats[0].unread

    await messenger.mark_read(anna.person_id, "messenger_a")

    assert counted == 1
    assert (await messenger.state(anna.person_id)).chats[0].unread == 0


@pytest.mark.both_databases
async def test_a_waiting_page_is_told_at_once(
    service: Service, anna: SandboxPerson, messenger: Messenger
) -> None:
    await anna.start("messenger_a")
    await settled(service)
    since = (await messenger.state(anna.person_id)).revision
    waiting = asyncio.create_task(messenger.state(anna.person_id, since, wait_s=20))
    await asyncio.sleep(0)

    await service.channels["messenger_a"].send(anna.person_id, OutgoingMessage("now"))

    state = await asyncio.wait_for(waiting, 10)
    assert [message.text for message in state.messages] == ["now"]


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_a_waiting_page_sees_what_another_process_did(
    service: Service, anna: SandboxPerson, messenger: Messenger
) -> None:
    since = (await messenger.state(anna.person_id)).revision
    waiting = asyncio.create_task(messenger.state(anna.person_id, since, wait_s=20))
    await asyncio.sleep(0)
    async with service.db.transaction() as tx:  # as another process would: nobody rings here
        await tx.execute("UPDATE sandbox_people SET revision = revision + 1")

    state = await asyncio.wait_for(waiting, 10)

    assert state.revision == since + 1


async def test_a_page_gets_many_changes_in_several_answers(
    service: Service, anna: SandboxPerson, messenger: Messenger
) -> None:
    await anna.start("messenger_a")
    await settled(service)
    since = (await messenger.state(anna.person_id)).revision
    count = PER_ANSWER + 5
    for number in range(count):
        await service.channels["messenger_a"].send(anna.person_id, OutgoingMessage(str(number)))

    first = await messenger.state(anna.person_id, since)
    second = await messenger.state(anna.person_id, first.revision)

    assert (first.more, second.more) == (True, False)
    texts = [message.text for message in [*first.messages, *second.messages]]
    assert texts == [str(number) for number in range(count)]


@pytest.mark.both_databases
async def test_a_page_opens_with_the_newest_messages_and_asks_for_earlier_ones(
    service: Service, anna: SandboxPerson, messenger: Messenger
) -> None:
    await anna.start("messenger_a")
    await settled(service)
    for number in range(PER_CHAT + 3):
        await service.channels["messenger_a"].send(anna.person_id, OutgoingMessage(str(number)))

    newest = (await messenger.state(anna.person_id)).messages
    earlier = await messenger.earlier(anna.person_id, "messenger_a", int(newest[0].ref), limit=2)

    assert len(newest) == PER_CHAT
    assert [message.text for message in earlier] == ["2", "1"]


@pytest.mark.both_databases
async def test_a_person_can_be_renamed(anna: SandboxPerson, messenger: Messenger) -> None:
    change = PersonChange(name="Anna Lind", username="@lind", lang="ru")

    await messenger.change_person(anna.person_id, change)

    person = await messenger.person(anna.person_id)
    assert (person.name, person.username, person.lang) == ("Anna Lind", "lind", "ru")


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": "  "},
        {"name": "a\x00b"},
        {"name": "x" * 65},
        {"name": "A", "username": "two words"},
        {"name": "A", "lang": "no tag"},
        {"name": "A", "age": 5},
    ],
)
def test_a_person_needs_a_proper_name_and_username(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        NewPerson.model_validate(fields)


async def test_a_message_with_the_same_key_is_shown_once(
    service: Service, anna: SandboxPerson
) -> None:
    await anna.start("messenger_a")
    channel = service.channels["messenger_a"]
    refs = [
        await channel.send(anna.person_id, OutgoingMessage("hello", key=key))
        for key in ("msg_1", "msg_1", "msg_2")
    ]

    assert refs[0] == refs[1] != refs[2]
    assert [message.text for message in await anna.messages()].count("hello") == 2


class FailingBot(EchoBot):
    """Fails at the first text."""

    fails = True

    async def echo(self, ctx: InboundContext) -> None:
        if self.fails:
            raise RuntimeError("not now")
        await super().echo(ctx)


async def test_a_text_whose_handler_failed_is_answered_once_it_is_taken(
    make_service: ServiceFactory,
) -> None:
    """Although the channel takes nothing anyway by itself."""
    bot = FailingBot()
    service = await make_service(
        extra_plugins=[("sandbox", plugin), ("echo", bot)], channels=CHANNELS
    )
    anna = await Sandbox.in_process(service).person("Anna")
    await anna.start("messenger_a", "echo_1")
    await anna.say("Hello")
    async with service.db.read() as tx:
        [item] = await service.get(Shelf).page(tx, "messenger_a", None, 10)
    bot.fails = False
    left = await service.get(ItemTaker).take("messenger_a", item.item_id)

    assert left is None
    assert (await anna.wait_for(text="You said")).text == "You said: Hello"
