"""What a channel receives: each update once, and by the rule that is for it."""

from typing import Any

import pytest

from msgsvc_core.channels.commands import CommandCatalogue, ListedCommand
from msgsvc_core.channels.contract import BotProfile
from msgsvc_core.channels.dispatch import InboundDispatcher
from msgsvc_core.channels.failures import ForeignBot
from msgsvc_core.channels.inbound import Inbound, InboundContext, InboundRule
from msgsvc_core.channels.starting import StartCodes
from msgsvc_core.channels.updates import (
    Blocked,
    ButtonPressed,
    ChannelUser,
    ChatMoved,
    MessageReceived,
    Started,
    Update,
)
from msgsvc_core.channels.words import TypedAnswers
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, inbound_context
from msgsvc_devkit.fakes.database import Answer

ANN = ChannelUser("7", "Ann", lang="ru-RU")


class Handled:
    """A dispatcher that keeps what it was given."""

    def __init__(self, refuses: type[Exception] | None = None) -> None:
        self.contexts: list[InboundContext] = []
        self.unclaimed: list[InboundContext] = []
        self.refuses = refuses

    async def handle(self, ctx: InboundContext) -> None:
        if self.refuses is not None:
            raise self.refuses("refused")
        self.contexts.append(ctx)

    async def handle_unclaimed(self, ctx: InboundContext) -> None:
        self.unclaimed.append(ctx)


def inbound_of(core: FakeContext, handled: Handled) -> Inbound:
    return Inbound(
        db=core.db,
        clock=core.clock,
        texts=core.texts,
        channels=core.channels,
        outbox=core.outbox,
        dispatcher=handled,
        commands=CommandCatalogue(texts=core.texts, declared=list),
        metrics=core.metrics.channels,
    )


HELLO = MessageReceived(update_id="u1", chat_id="c7", user=ANN, text="hello")
CHAT: Answer = [{"project_id": PROJECT, "lang": None}]


async def test_an_update_is_handled_once_in_the_persons_language() -> None:
    core, handled = plugin_context(), Handled()
    core.db.answers += [1, CHAT, 0]
    inbound = inbound_of(core, handled)
    await inbound.receive("messenger_a", HELLO)
    await inbound.receive("messenger_a", HELLO)

    [ctx] = handled.contexts
    assert (ctx.lang, ctx.chat.project_id, ctx.channel_name) == ("ru", PROJECT, "messenger_a")
    assert updates_counted(core, "handled") == 1


async def test_what_another_projects_bot_was_asked_is_taken_as_unknown() -> None:
    core, handled = plugin_context(), Handled(refuses=ForeignBot)
    core.db.answers += [1, CHAT, 1, CHAT]
    await inbound_of(core, handled).receive("messenger_a", HELLO)

    assert [ctx.update for ctx in handled.unclaimed] == [HELLO]


async def test_a_handler_that_fails_and_a_bot_that_is_gone_stop_nobody() -> None:
    core, handled = plugin_context(), Handled(refuses=RuntimeError)
    core.db.answers += [1, CHAT]
    inbound = inbound_of(core, handled)
    await inbound.receive("messenger_a", HELLO)
    await inbound.receive("chn_gone", HELLO)

    # Nothing of the first was kept, and the second asked for nothing.
    assert core.db.commits == 0
    assert len(core.db.statements) == 2
    assert updates_counted(core, "failed") == 1
    assert updates_counted(core, "handled") == 0


def updates_counted(core: FakeContext, outcome: str) -> float | None:
    labels = {"channel": "messenger_a", "outcome": outcome}
    return core.metrics.registry.get_sample_value("msgsvc_channel_updates_total", labels)


def dispatcher_of(core: FakeContext, *rules: InboundRule) -> InboundDispatcher:
    answers = TypedAnswers(clock=core.clock, secrets=core.secrets, answer_hours=24)

    async def project_button(ctx: InboundContext) -> None:
        await ctx.answer_button("the project's")

    dispatcher = InboundDispatcher(
        texts=core.texts,
        typed_answers=answers,
        start_codes=StartCodes(clock=core.clock, secrets=core.secrets),
        chats=core.subscribers,
        on_project_button=project_button,
    )
    dispatcher.declare(rules)
    return dispatcher


class Rules:
    """Handlers that keep which of them ran, in order; those of `leaves` leave the update to others."""

    def __init__(self, *leaves: str) -> None:
        self.ran: list[str] = []
        self._leaves = leaves

    def __call__(self, on: Any, name: str = "", **more: Any) -> InboundRule:
        said = more.pop("said", name or more.get("prefix", "") or str(on))

        async def handler(ctx: InboundContext) -> bool | None:
            self.ran.append(f"{said} {ctx.argument}".strip())
            return False if said in self._leaves else None

        return InboundRule(on, handler, name=name, **more)


async def dispatch(core: FakeContext, update: Update, *rules: InboundRule) -> None:
    ctx = inbound_context(update, channels=core.channels, outbox=core.outbox)
    await dispatcher_of(core, *rules).handle(ctx)


def said(text: str) -> MessageReceived:
    return MessageReceived(update_id="u1", chat_id="c7", user=ANN, text=text)


async def test_a_start_goes_to_the_rule_of_the_longest_prefix_that_takes_it() -> None:
    core, rule = plugin_context(), Rules("auth_s_")
    rules = (
        rule("start", prefix="auth_"),
        rule("start", prefix="auth_s_"),
        rule("start", prefix="x"),
    )
    started = Started(update_id="u1", chat_id="c7", user=ANN, payload="auth_s_1")
    await dispatch(core, started, *rules)

    assert rule.ran == ["auth_s_", "auth_"]
    assert core.outbox.sent == []


async def test_a_start_that_nobody_takes_is_answered() -> None:
    core = plugin_context()
    await dispatch(core, Started(update_id="u1", chat_id="c7", user=ANN, payload="old_1"))

    assert "no longer valid" in core.outbox.texts[0]


async def test_a_command_has_its_argument_and_other_texts_go_by_priority() -> None:
    core, rule = plugin_context(), Rules("dialogue")
    rules = (
        rule("message", said="rest", priority=90),
        rule("message", said="dialogue", priority=20),
        rule("command", "stop"),
        rule("aside", said="afterwards"),
    )
    await dispatch(core, said("/Stop all"), *rules)
    await dispatch(core, said("/unknown"), *rules)

    assert rule.ran == ["stop all", "afterwards all", "dialogue", "rest"]


async def test_a_command_for_another_bot_is_a_text() -> None:
    core, rule = plugin_context(), Rules()
    core.channels["messenger_a"].profile = BotProfile("Shop", "shop_bot")
    rules = (rule("message", said="text"), rule("command", "stop"))
    for text in ("/stop@shop_bot", "/stop@other_bot"):
        await dispatch(core, said(text), *rules)

    assert rule.ran == ["stop", "text"]


async def test_the_bots_own_buttons_and_the_projects_are_told_apart() -> None:
    core, rule = plugin_context(), Rules()
    for data in ("~my:stop", "~old:1", "anything"):
        update = ButtonPressed(
            update_id="u1", chat_id="c7", user=ANN, message_ref="m1", data=data, button_ref=data
        )
        await dispatch(core, update, rule("button", prefix="my:"))

    assert rule.ran == ["my:"]
    assert core.outbox.answered == [
        ("messenger_a", "~old:1", "This button no longer works."),
        ("messenger_a", "anything", "the project's"),
    ]


async def test_messages_go_to_the_chat_that_a_person_used_last() -> None:
    core = plugin_context()
    core.subscribers.person(user_id="7", chat_id="old")
    await dispatch(core, said("hello"))
    assert core.subscribers.everybody[0].chat_id == "c7"
    await dispatch(core, ChatMoved(update_id="u2", chat_id="c7", user=ANN, new_chat_id="c8"))

    assert core.subscribers.everybody[0].chat_id == "c8"
    await dispatch(core, Blocked(update_id="u3", chat_id="c8", user=ANN))
    assert core.subscribers.everybody[0].status == "blocked"


async def test_a_user_whose_id_changes_with_the_chat_stays_who_they_are() -> None:
    core = plugin_context()
    core.subscribers.person(user_id="7", chat_id="c7")
    moved = ChatMoved(update_id="u2", chat_id="c7", user=ANN, new_chat_id="c8", new_user_id="8")
    await dispatch(core, moved)

    [ann] = core.subscribers.everybody
    assert (ann.user_id, ann.chat_id) == ("8", "c8")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"on": "command", "name": "stop"}, {"on": "command", "name": "stop"}),
        ({"on": "start", "prefix": "a_"}, {"on": "start", "prefix": "a_"}),
        ({"on": "button", "prefix": ""}, {"on": "message"}),
        ({"on": "command", "name": "Стоп"}, {"on": "message"}),
    ],
)
def test_rules_that_clash_are_refused_at_start(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    rule = Rules()

    with pytest.raises(ValueError, match=r"two rules|its name"):
        dispatcher_of(plugin_context(), rule(**first), rule(**second))


def test_commands_are_listed_as_they_were_declared() -> None:
    rule = Rules()
    listed = rule("command", "orders", about=lambda _: _("list of commands"))
    dispatcher = dispatcher_of(plugin_context(), rule("command", "hidden"), listed)

    assert dispatcher.commands == [ListedCommand("orders", listed.about or (lambda _: ""))]
