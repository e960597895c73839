"""What a channel receives: each update once, and by the rule that is for it."""

from typing import Any

import pytest

from msgsvc_core.channels import chats
from msgsvc_core.channels.buttons.fallbacks import TypedAnswers
from msgsvc_core.channels.commands import CommandCatalogue, ListedCommand
from msgsvc_core.channels.contract import BotProfile
from msgsvc_core.channels.failures import ForeignBot
from msgsvc_core.channels.inbound.dispatch import InboundDispatcher
from msgsvc_core.channels.inbound.processing import Inbound, InboundContext, InboundRule
from msgsvc_core.channels.shelf import Shelf
from msgsvc_core.channels.start_links.start_codes import StartCodes
from msgsvc_core.channels.updates import (
    Blocked,
    ButtonPressed,
    ChannelUser,
    ChatMoved,
    MessageReceived,
    Started,
    Update,
)
from msgsvc_core.db import Tx
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_devkit import MemoryCore
from msgsvc_devkit.core import PROJECT

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


def inbound_of(core: MemoryCore, handled: Handled) -> Inbound:
    return Inbound(
        db=core.db,
        clock=core.clock,
        texts=core.texts,
        channels=core.channels,
        outbox=core.outbox,
        dispatcher=handled,
        commands=CommandCatalogue(texts=core.texts, declared=list),
        shelf=core.service.get(Shelf),
        metrics=core.metrics.channels,
    )


HELLO = MessageReceived(update_id="u1", chat_id="c7", user=ANN, text="hello")


async def test_an_update_is_handled_once_in_the_persons_language(core: MemoryCore) -> None:
    handled = Handled()
    async with core.db.transaction() as tx:
        await chats.enter(tx, "messenger_a", "c7", "7", PROJECT, core.clock.now_ms())
    inbound = inbound_of(core, handled)
    await inbound.receive("messenger_a", HELLO)
    await inbound.receive("messenger_a", HELLO)

    [ctx] = handled.contexts
    assert (ctx.lang, ctx.chat.project_id, ctx.channel_name) == ("ru", PROJECT, "messenger_a")
    assert updates_counted(core, "handled") == 1


async def test_what_another_projects_bot_was_asked_is_taken_as_unknown(core: MemoryCore) -> None:
    handled = Handled(refuses=ForeignBot)
    await inbound_of(core, handled).receive("messenger_a", HELLO)

    assert [ctx.update for ctx in handled.unclaimed] == [HELLO]


async def test_a_handler_that_fails_and_a_bot_that_is_gone_stop_nobody(core: MemoryCore) -> None:
    handled = Handled(refuses=RuntimeError)
    inbound = inbound_of(core, handled)
    await inbound.receive("messenger_a", HELLO)
    await inbound.receive("chn_gone", HELLO)
    assert updates_counted(core, "failed") == 1
    assert updates_counted(core, "handled") == 0
    assert await inbound.last_update_ms("messenger_a", "c7") is None

    # Nothing of the first was kept.
    handled.refuses = None
    await inbound.receive("messenger_a", HELLO)
    assert [ctx.update for ctx in handled.contexts] == [HELLO]


def updates_counted(core: MemoryCore, outcome: str) -> float | None:
    labels = {"channel": "messenger_a", "outcome": outcome}
    return core.metrics.registry.get_sample_value("msgsvc_channel_updates_total", labels)


def dispatcher_of(core: MemoryCore, *rules: InboundRule) -> InboundDispatcher:
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


async def dispatch(core: MemoryCore, tx: Tx, update: Update, *rules: InboundRule) -> None:
    await dispatcher_of(core, *rules).handle(core.inbound(tx, update))


def said(text: str) -> MessageReceived:
    return MessageReceived(update_id="u1", chat_id="c7", user=ANN, text=text)


async def test_a_start_goes_to_the_rule_of_the_longest_prefix_that_takes_it(
    core: MemoryCore, tx: Tx
) -> None:
    rule = Rules("auth_s_")
    rules = (
        rule("start", prefix="auth_"),
        rule("start", prefix="auth_s_"),
        rule("start", prefix="x"),
    )
    started = Started(update_id="u1", chat_id="c7", user=ANN, payload="auth_s_1")
    await dispatch(core, tx, started, *rules)

    assert rule.ran == ["auth_s_", "auth_"]
    assert await core.calls(tx) == []


async def test_a_start_that_nobody_takes_is_answered(core: MemoryCore, tx: Tx) -> None:
    await dispatch(core, tx, Started(update_id="u1", chat_id="c7", user=ANN, payload="old_1"))

    assert "no longer valid" in (await core.texts_sent(tx))[0]


async def test_a_command_has_its_argument_and_other_texts_go_by_priority(
    core: MemoryCore, tx: Tx
) -> None:
    rule = Rules("dialogue")
    rules = (
        rule("message", said="rest", priority=90),
        rule("message", said="dialogue", priority=20),
        rule("command", "stop"),
        rule("aside", said="afterwards"),
    )
    await dispatch(core, tx, said("/Stop all"), *rules)
    await dispatch(core, tx, said("/unknown"), *rules)

    assert rule.ran == ["stop all", "afterwards all", "dialogue", "rest"]


async def test_a_command_for_another_bot_is_a_text(core: MemoryCore, tx: Tx) -> None:
    rule = Rules()
    core.channels["messenger_a"].profile = BotProfile("Shop", "shop_bot")
    rules = (rule("message", said="text"), rule("command", "stop"))
    for text in ("/stop@shop_bot", "/stop@other_bot"):
        await dispatch(core, tx, said(text), *rules)

    assert rule.ran == ["stop", "text"]


async def test_the_bots_own_buttons_and_the_projects_are_told_apart(
    core: MemoryCore, tx: Tx
) -> None:
    rule = Rules()
    for data in ("~my:stop", "~old:1", "anything"):
        update = ButtonPressed(
            update_id="u1", chat_id="c7", user=ANN, message_ref="m1", data=data, button_ref=data
        )
        await dispatch(core, tx, update, rule("button", prefix="my:"))

    assert rule.ran == ["my:"]
    answers = [(call.call, call.payload) for call in await core.calls(tx)]
    assert answers == [
        ("answer_button", {"button_ref": "~old:1", "text": "This button no longer works."}),
        ("answer_button", {"button_ref": "anything", "text": "the project's"}),
    ]


async def test_messages_go_to_the_chat_that_a_person_used_last(core: MemoryCore, tx: Tx) -> None:
    await core.person(tx, user_id="7", chat_id="old")
    await dispatch(core, tx, said("hello"))
    assert (await anna(core, tx)).chat_id == "c7"
    await dispatch(core, tx, ChatMoved(update_id="u2", chat_id="c7", user=ANN, new_chat_id="c8"))

    assert (await anna(core, tx)).chat_id == "c8"
    await dispatch(core, tx, Blocked(update_id="u3", chat_id="c8", user=ANN))
    assert (await anna(core, tx)).status == "blocked"


async def test_a_user_whose_id_changes_with_the_chat_stays_who_they_are(
    core: MemoryCore, tx: Tx
) -> None:
    await core.person(tx, user_id="7", chat_id="c7")
    moved = ChatMoved(update_id="u2", chat_id="c7", user=ANN, new_chat_id="c8", new_user_id="8")
    await dispatch(core, tx, moved)

    ann = await anna(core, tx)
    assert (ann.user_id, ann.chat_id) == ("8", "c8")


async def anna(core: MemoryCore, tx: Tx) -> Subscriber:
    return await core.subscribers.get(tx, PROJECT, "sub_1")


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
    core: MemoryCore, first: dict[str, Any], second: dict[str, Any]
) -> None:
    rule = Rules()

    with pytest.raises(ValueError, match=r"two rules|its name"):
        dispatcher_of(core, rule(**first), rule(**second))


def test_commands_are_listed_as_they_were_declared(core: MemoryCore) -> None:
    rule = Rules()
    listed = rule("command", "orders", about=lambda _: _("list of commands"))
    dispatcher = dispatcher_of(core, rule("command", "hidden"), listed)

    assert dispatcher.commands == [ListedCommand("orders", listed.about or (lambda _: ""))]
