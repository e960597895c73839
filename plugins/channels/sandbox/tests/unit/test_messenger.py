"""What people do, built from fakes: it is stored first, and then told to the bot."""

import pytest

from msgsvc_core.channels import Blocked, ButtonPressed, MessageEdited, MessageReceived, Started
from msgsvc_core.config.sections import MediaSettings
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import FakeChannels, FakeDatabase
from msgsvc_sandbox import plugin
from msgsvc_sandbox.faults import Faults
from msgsvc_sandbox.models import Button, MessageBody, OpenLink, Span
from msgsvc_sandbox.service import Messenger
from msgsvc_sandbox.wakeups import Wakeups

from .rows import CHAT, message, tables, with_bot


@pytest.fixture
def core() -> FakeContext:
    channels = FakeChannels(with_bot(), kinds=plugin.register_channel_kinds())
    return plugin_context(plugin=plugin, channels=channels)


def messenger(core: FakeContext, db: FakeDatabase | None = None) -> Messenger:
    db, wakeups = db or tables(), Wakeups()
    return Messenger(
        clock=core.clock,
        db=db,
        secrets=core.secrets,
        texts=core.texts,
        media=MediaSettings(),
        channels=core.channels,
        faults=Faults(db, wakeups),
        wakeups=wakeups,
    )


async def test_a_start_link_opens_the_chat_and_starts_the_bot(core: FakeContext) -> None:
    db = tables()
    link = OpenLink(link="http://localhost:8000/sandbox/open/shop?start=form_order")
    opened = await messenger(core, db).open("per_anna", link)

    [(channel, update)] = core.channels.received
    assert isinstance(update, Started)
    assert (opened.channel, channel, update.payload) == ("shop", "shop", "form_order")
    assert (update.user.first_name, update.chat_id) == ("Anna", "per_anna")
    assert [row["kind"] for row in db.rows["sandbox_messages"]] == ["start"]


@pytest.mark.parametrize(
    "link",
    [
        OpenLink(),
        OpenLink(link="https://shop.example/sandbox/open/shop", channel="shop"),
        OpenLink(link="https://shop.example/"),
        OpenLink.model_construct(link=None, channel="shop", payload="no payload"),
    ],
)
async def test_what_is_no_start_link_starts_nothing(core: FakeContext, link: OpenLink) -> None:
    with pytest.raises(ValidationFailed):
        await messenger(core).open("per_anna", link)

    assert core.channels.received == []


@pytest.mark.parametrize("channel", ["other", "unknown"])
async def test_only_bots_of_this_messenger_are_found_here(core: FakeContext, channel: str) -> None:
    with pytest.raises(NotFound, match="no bot"):
        await messenger(core).open("per_anna", OpenLink(channel=channel))
    with pytest.raises(NotFound, match="no bot"):
        await messenger(core).open_mini_app("per_anna", channel)


@pytest.mark.parametrize(
    ("chats", "why"), [([], "not started"), ([{**CHAT, "blocked": 1}], "has blocked")]
)
async def test_a_person_writes_to_bots_that_they_have_started(
    core: FakeContext, chats: list[dict[str, object]], why: str
) -> None:
    db = tables({"FROM sandbox_chats": chats})
    with pytest.raises(Conflict, match=why):
        await messenger(core, db).send_text("per_anna", "shop", "Hello")

    assert core.channels.received == []
    assert db.rows["sandbox_messages"] == []


async def test_a_bot_is_told_what_a_message_answers(core: FakeContext) -> None:
    asked = message(MessageBody(spans=[Span(text="How many?")]))
    db = tables({"FROM sandbox_messages": [asked]})
    sent = await messenger(core, db).send_text("per_anna", "shop", "Two", reply_to="3")

    [(_, update)] = core.channels.received
    assert isinstance(update, MessageReceived)
    assert (update.text, update.message_ref, update.reply_to) == ("Two", sent.ref, "3")
    with pytest.raises(NotFound, match="no such message"):
        await messenger(core).send_text("per_anna", "shop", "Two", reply_to="3")


async def test_people_change_what_they_wrote_themselves(core: FakeContext) -> None:
    said = message(MessageBody(spans=[Span(text="Two")]), author="person")
    started = {**said, "kind": "start"}
    db = tables({"FROM sandbox_messages": [said]})
    await messenger(core, db).edit_text("per_anna", "shop", "3", "Three")

    [(_, update)] = core.channels.received
    assert isinstance(update, MessageEdited)
    assert (update.message_ref, update.text) == ("3", "Three")
    for found in ({**said, "author": "bot"}, started):
        with pytest.raises(NotFound):
            others = tables({"FROM sandbox_messages": [found]})
            await messenger(core, others).edit_text("per_anna", "shop", "3", "Three")


async def test_a_button_with_data_tells_the_bot_and_one_with_a_page_does_not(
    core: FakeContext,
) -> None:
    row = [Button(text="Yes", data="yes"), Button(text="Site", url="https://shop.example")]
    db = tables({"FROM sandbox_messages": [message(MessageBody(buttons=[row]))]})
    await messenger(core, db).press("per_anna", "shop", "3", 0, 0)

    [(_, update)] = core.channels.received
    assert isinstance(update, ButtonPressed)
    assert (update.data, update.message_ref, update.text) == ("yes", "3", "Yes")
    with pytest.raises(ValidationFailed):
        await messenger(core, db).press("per_anna", "shop", "3", 0, 1)
    for place in ((0, 2), (1, 0)):
        with pytest.raises(NotFound):
            await messenger(core, db).press("per_anna", "shop", "3", *place)


async def test_a_block_is_told_once(core: FakeContext) -> None:
    await messenger(core).set_blocked("per_anna", "shop", True)
    again = tables({"FROM sandbox_chats": [{**CHAT, "blocked": 1}]})
    await messenger(core, again).set_blocked("per_anna", "shop", True)

    [(_, update)] = core.channels.received
    assert isinstance(update, Blocked)
    assert again.params_of("UPDATE sandbox_chats") == []


async def test_a_page_that_knows_the_newest_revision_does_not_wait_for_a_closing_messenger(
    core: FakeContext,
) -> None:
    closing = messenger(core)
    closing.close()
    state = await closing.state("per_anna", since=5, wait_s=600)

    assert (state.revision, state.messages) == (5, [])


async def test_who_is_gone_does_nothing(core: FakeContext) -> None:
    gone = messenger(core, tables({"FROM sandbox_people": []}))

    for act in (
        gone.send_text("per_anna", "shop", "Hi"),
        gone.set_blocked("per_anna", "shop", True),
    ):
        with pytest.raises(NotFound, match="no such person"):
            await act
