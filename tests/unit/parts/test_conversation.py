"""What a bot answers to the commands of people."""

from collections.abc import Sequence

import pytest

from msgsvc_core.channels.commands import CommandCatalogue
from msgsvc_core.channels.contract import Capabilities
from msgsvc_core.channels.inbound.dispatch import InboundDispatcher
from msgsvc_core.channels.updates import ButtonPressed, MessageReceived
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import HOUR_MS
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.permissions.models import CreatePermissionBody
from msgsvc_devkit import BotCall, MemoryCore
from msgsvc_devkit.core import PROJECT
from tests.unit.parts.people import ANN

CHAT = "c7"


class Chat:
    """A person's chat with the bot `messenger_a`."""

    def __init__(self, core: MemoryCore, tx: Tx, *, buttons: bool = True) -> None:
        self.core, self.tx = core, tx
        if not buttons:
            core.channels["messenger_a"].capabilities = Capabilities(buttons="words")

    async def say(self, text: str) -> str:
        """What the bot replies to a text."""
        before = len(await self._shown())
        update = MessageReceived(update_id="1", chat_id=CHAT, user=ANN, text=text)
        await self.core.service.get(InboundDispatcher).handle(self.core.inbound(self.tx, update))
        replies = [call.message for call in (await self._shown())[before:]]
        return "" if not replies or replies[-1] is None else replies[-1].text

    async def press(self, data: str) -> str | None:
        """What takes the place of the message with the button, if anything does."""
        before = len(await self._shown())
        update = ButtonPressed(
            update_id="1", chat_id=CHAT, user=ANN, data=data, message_ref="m1", button_ref="b1"
        )
        await self.core.service.get(InboundDispatcher).handle(self.core.inbound(self.tx, update))
        shown = [call for call in (await self._shown())[before:] if call.call == "edit"]
        return shown[-1].message.text if shown and shown[-1].message is not None else None

    async def data(self, label: str) -> str:
        """What the button of that label in the newest message carries."""
        message = (await self._shown())[-1].message
        assert message is not None
        return next(b.data or "" for row in message.buttons for b in row if label in b.text)

    async def _shown(self) -> list[BotCall]:
        return [call for call in await self.core.calls(self.tx) if call.call in {"send", "edit"}]


async def subscribed(core: MemoryCore, tx: Tx, *more: str, status: str = "active") -> None:
    """Ann's subscriptions to Shop and to more projects; `status` is that of the last one."""
    projects = [PROJECT, *[await core.project(tx, f"prj_{name}", name) for name in more]]
    for number, project_id in enumerate(projects, 1):
        await core.person(
            tx,
            f"sub_{number}",
            project_id=project_id,
            user_id=ANN.user_id,
            chat_id=CHAT,
            status=status if number == len(projects) else "active",
        )


async def people(core: MemoryCore, tx: Tx) -> list[Subscriber]:
    found = await core.subscribers.list_by_user(tx, "messenger_a", ANN.user_id)
    by_id = sorted(found, key=lambda each: each.subscriber_id)
    return [await core.subscribers.get(tx, each.project_id, each.subscriber_id) for each in by_id]


async def status(core: MemoryCore, tx: Tx) -> Sequence[str]:
    return [person.status for person in await people(core, tx)]


async def test_stop_ends_the_only_subscription_at_once(core: MemoryCore, tx: Tx) -> None:
    await subscribed(core, tx)
    await Chat(core, tx).say("/stop")

    assert await status(core, tx) == ["unsubscribed"]


async def test_stop_asks_which_of_several_subscriptions_is_meant(core: MemoryCore, tx: Tx) -> None:
    await subscribed(core, tx, "News")
    chat = Chat(core, tx)

    assert await chat.say("/stop") == "Whose notifications do you want to stop?"
    assert await status(core, tx) == ["active", "active"]
    await chat.press(await chat.data("News"))
    assert await status(core, tx) == ["active", "unsubscribed"]


async def test_all_of_them_are_those_that_the_question_named(core: MemoryCore, tx: Tx) -> None:
    await subscribed(core, tx, "News")
    chat = Chat(core, tx)
    await chat.say("/stop")
    everything = await chat.data("All of them")
    later = await core.project(tx, "prj_later", "Later")
    await core.person(tx, "sub_9", project_id=later, user_id=ANN.user_id, chat_id=CHAT)
    answer = await chat.press(everything)

    assert answer is not None
    assert "no longer valid" in answer
    assert await status(core, tx) == ["active"] * 3
    await chat.say("/stop")
    await chat.press(await chat.data("All of them"))
    assert await status(core, tx) == ["unsubscribed"] * 3


async def test_a_question_is_answered_within_a_day(core: MemoryCore, tx: Tx) -> None:
    await subscribed(core, tx, "News")
    chat = Chat(core, tx)
    await chat.say("/stop")
    core.clock.advance(24 * HOUR_MS / 1000 + 1)
    await chat.press(await chat.data("News"))

    assert await status(core, tx) == ["active", "active"]
    # On platforms that do not let old messages be edited.
    [answer] = [call for call in await core.calls(tx) if call.call == "answer_button"]
    assert "no longer valid" in answer.payload["text"]


async def test_without_buttons_people_answer_by_number(core: MemoryCore, tx: Tx) -> None:
    await subscribed(core, tx, "News")
    chat = Chat(core, tx, buttons=False)

    assert "1. Shop\n2. News" in await chat.say("/stop")
    await chat.say("/stop 2")
    assert await status(core, tx) == ["active", "unsubscribed"]


async def test_start_takes_up_the_only_subscription_that_ended(core: MemoryCore, tx: Tx) -> None:
    await subscribed(core, tx, status="unsubscribed")
    await Chat(core, tx).say("/start")

    assert await status(core, tx) == ["active"]


async def test_start_offers_what_ended_to_who_has_another_subscription(
    core: MemoryCore, tx: Tx
) -> None:
    await subscribed(core, tx, "News", status="unsubscribed")
    chat = Chat(core, tx)
    hello = await chat.say("/start")

    assert "Shop" in hello
    assert "News" not in hello
    await chat.press(await chat.data("Subscribe again: News"))
    assert await status(core, tx) == ["active", "active"]


async def test_start_without_a_link_subscribes_no_stranger_to_a_shared_bot(
    core: MemoryCore, tx: Tx
) -> None:
    assert "open a link" in await Chat(core, tx).say("/start")
    assert await people(core, tx) == []


async def offer_news(core: MemoryCore, tx: Tx) -> None:
    body = CreatePermissionBody.model_validate({"key": "news", "title": "News"})
    await core.permissions.create(tx, PROJECT, body)


async def test_a_switch_says_what_it_brings_about_and_does_it_once(
    core: MemoryCore, tx: Tx
) -> None:
    await subscribed(core, tx)
    await offer_news(core, tx)
    chat = Chat(core, tx)
    assert "☐ News: off" in await chat.say("/settings")
    switch = await chat.data("News")
    first, second = await chat.press(switch), await chat.press(switch)

    assert first == second
    assert "☑ News: on" in str(first)
    assert core.event_names == ["subscription.permission_changed"]


async def test_settings_are_changed_in_words_where_there_are_no_buttons(
    core: MemoryCore, tx: Tx
) -> None:
    await subscribed(core, tx)
    await offer_news(core, tx)
    shown = await Chat(core, tx, buttons=False).say("/settings on news")

    assert "☑ News: on (news)" in shown
    assert [person.permissions for person in await people(core, tx)] == [("news",)]


async def test_a_language_is_chosen_by_its_code_or_its_own_name(core: MemoryCore, tx: Tx) -> None:
    await subscribed(core, tx)
    chat = Chat(core, tx)

    for named in ("ru", "Русский"):
        assert "русском" in await chat.say(f"/lang {named}")
    assert [person.lang for person in await people(core, tx)] == ["ru"]
    assert "language" in await chat.say("/lang xx")


@pytest.mark.parametrize("data", ["~my:unknown", "~my:", "~my:put"])
async def test_a_press_that_nobody_made_a_button_for_changes_nothing(
    core: MemoryCore, tx: Tx, data: str
) -> None:
    await subscribed(core, tx)
    await Chat(core, tx).press(data)

    assert await status(core, tx) == ["active"]
    assert core.emitted == []


async def test_help_lists_the_commands(core: MemoryCore, tx: Tx) -> None:
    help_text = await Chat(core, tx).say("/help")

    listed = core.service.get(CommandCatalogue).listed("en")
    assert "stop" in dict(listed)
    assert help_text.splitlines() == [f"/{name} – {about}" for name, about in listed]
