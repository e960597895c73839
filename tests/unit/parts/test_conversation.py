"""What a bot answers to the commands of people."""

from dataclasses import replace

import pytest

from msgsvc_core.channels.contract import Capabilities
from msgsvc_core.channels.updates import ButtonPressed, MessageReceived
from msgsvc_core.kernel.clock import HOUR_MS
from msgsvc_core.subscribers.conversation import Conversation
from msgsvc_core.subscribers.permissions.models import CreatePermissionBody
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import FakeTx, inbound_context
from tests.unit.parts.people import ANN, greetings_of


class Chat:
    """A person's chat with the bot `messenger_a`, and the rules that answer there."""

    def __init__(self, core: FakeContext, *, buttons: bool = True) -> None:
        self.core = core
        if not buttons:
            core.channels.recording("messenger_a").capabilities = Capabilities(buttons="words")
        conversation = Conversation(
            clock=core.clock,
            texts=core.texts,
            projects=core.projects,
            subscribers=core.subscribers,
            permissions=core.permissions,
            greetings=greetings_of(core),
            commands=lambda _lang: [("stop", "unsubscribe")],
        )
        self._commands = {rule.name: rule for rule in conversation.rules() if rule.name}
        [self._button] = [rule for rule in conversation.rules() if rule.on == "button"]

    async def say(self, command: str, argument: str = "") -> str:
        """What the bot replies to a command."""
        update = MessageReceived(update_id="1", chat_id="c7", user=ANN, text=f"/{command}")
        ctx = inbound_context(update, channels=self.core.channels, outbox=self.core.outbox)
        ctx.argument = argument
        await self._commands[command].handler(ctx)
        return self.core.outbox.texts[-1] if self.core.outbox.sent else ""

    async def press(self, data: str) -> str | None:
        """What takes the place of the message with the button; None where it is not understood."""
        update = ButtonPressed(
            update_id="1", chat_id="c7", user=ANN, data=data, message_ref="m1", button_ref="b1"
        )
        ctx = inbound_context(update, channels=self.core.channels, outbox=self.core.outbox)
        if await self._button.handler(ctx) is False:
            return None
        return self.core.outbox.edited[-1].message.text

    def data(self, label: str) -> str:
        """What the button of that label in the newest message carries."""
        shown = [*self.core.outbox.edited[-1:], *self.core.outbox.sent[-1:]][-1].message
        return next(b.data or "" for row in shown.buttons for b in row if label in b.text)


async def person_of(core: FakeContext, *names: str) -> list[str]:
    """Ann's subscriptions to projects of these names; returns their ids."""
    ids = []
    for number, name in enumerate(names, 1):
        project = await core.projects.add(FakeTx(), name)
        core.subscribers.person(
            f"sub_{number}", project_id=project.project_id, user_id="7", chat_id="c7"
        )
        ids.append(project.project_id)
    return ids


def status(core: FakeContext) -> list[str]:
    return [person.status for person in core.subscribers.everybody]


async def test_stop_ends_the_only_subscription_at_once_and_asks_which_of_several() -> None:
    core = plugin_context()
    await person_of(core, "Shop")
    await Chat(core).say("stop")
    assert status(core) == ["unsubscribed"]

    core = plugin_context()
    await person_of(core, "Shop", "News")
    chat = Chat(core)
    question = await chat.say("stop")
    assert (question, status(core)) == (
        "Whose notifications do you want to stop?",
        ["active", "active"],
    )
    await chat.press(chat.data("News"))
    assert status(core) == ["active", "unsubscribed"]


async def test_all_of_them_are_those_that_the_question_named() -> None:
    core = plugin_context()
    await person_of(core, "Shop", "News")
    chat = Chat(core)
    await chat.say("stop")
    everything = chat.data("All of them")
    project = await core.projects.add(FakeTx(), "Later")
    core.subscribers.person("sub_9", project_id=project.project_id, user_id="7")
    answer = await chat.press(everything)

    assert answer is not None
    assert "no longer valid" in answer
    assert status(core) == ["active"] * 3


async def test_a_question_is_answered_within_a_day() -> None:
    core = plugin_context()
    await person_of(core, "Shop", "News")
    chat = Chat(core)
    await chat.say("stop")
    core.clock.advance(24 * HOUR_MS / 1000 + 1)
    await chat.press(chat.data("News"))

    assert status(core) == ["active", "active"]
    # On platforms that do not let old messages be edited.
    assert "no longer valid" in str(core.outbox.answered[-1][2])


async def test_without_buttons_people_answer_by_number() -> None:
    core = plugin_context()
    await person_of(core, "Shop", "News")
    chat = Chat(core, buttons=False)

    assert "1. Shop\n2. News" in await chat.say("stop")
    await chat.say("stop", "2")
    assert status(core) == ["active", "unsubscribed"]


async def test_start_takes_up_the_only_subscription_that_ended() -> None:
    core = plugin_context()
    [project_id] = await person_of(core, "Shop")
    [person] = core.subscribers.everybody
    core.subscribers.by_id[project_id, "sub_1"] = replace(person, status="unsubscribed")
    await Chat(core).say("start")

    assert status(core) == ["active"]


async def test_start_offers_what_ended_to_who_has_another_subscription() -> None:
    core = plugin_context()
    ids = await person_of(core, "Shop", "News")
    person = core.subscribers.by_id[ids[1], "sub_2"]
    core.subscribers.by_id[ids[1], "sub_2"] = replace(person, status="unsubscribed")
    chat = Chat(core)
    hello = await chat.say("start")

    assert "Shop" in hello
    assert "News" not in hello
    await chat.press(chat.data("Subscribe again: News"))
    assert status(core) == ["active", "active"]


async def test_start_without_a_link_subscribes_no_stranger_to_a_shared_bot() -> None:
    core = plugin_context()

    assert "open a link" in await Chat(core).say("start")
    assert core.subscribers.everybody == []


async def test_a_switch_says_what_it_brings_about_and_does_it_once() -> None:
    core = plugin_context()
    [project_id] = await person_of(core, "Shop")
    news = CreatePermissionBody.model_validate({"key": "news", "title": "News"})
    await core.permissions.create(FakeTx(), project_id, news)
    chat = Chat(core)
    assert "☐ News: off" in await chat.say("settings")
    switch = chat.data("News")
    first, second = await chat.press(switch), await chat.press(switch)

    assert first == second
    assert "☑ News: on" in str(first)
    assert core.events.names == ["subscription.permission_changed"]


async def test_settings_are_changed_in_words_where_there_are_no_buttons() -> None:
    core = plugin_context()
    [project_id] = await person_of(core, "Shop")
    news = CreatePermissionBody.model_validate({"key": "news", "title": "News"})
    await core.permissions.create(FakeTx(), project_id, news)
    chat = Chat(core, buttons=False)
    shown = await chat.say("settings", "on news")

    assert "☑ News: on (news)" in shown
    assert core.permissions.granted[project_id, "sub_1"] == ["news"]


async def test_a_language_is_chosen_by_its_code_or_its_own_name() -> None:
    core = plugin_context()
    await person_of(core, "Shop")
    chat = Chat(core)

    for named in ("ru", "Русский"):
        assert "русском" in await chat.say("lang", named)
    assert [person.lang for person in core.subscribers.everybody] == ["ru"]
    assert "language" in await chat.say("lang", "xx")


@pytest.mark.parametrize("data", ["~my:unknown", "~my:", "~my:put"])
async def test_a_press_that_nobody_made_a_button_for_changes_nothing(data: str) -> None:
    core = plugin_context()
    await person_of(core, "Shop")
    await Chat(core).press(data)

    assert status(core) == ["active"]
    assert core.events.emitted == []


async def test_help_lists_the_commands() -> None:
    assert await Chat(plugin_context()).say("help") == "/stop – unsubscribe"
