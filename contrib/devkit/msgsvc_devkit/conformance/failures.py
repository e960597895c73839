"""Checks that every failure becomes one of the seven reasons, and that the channel keeps working."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import get_args

import pytest

from msgsvc_core.channels import Button, ButtonPressed, Channel, Reason
from msgsvc_devkit.conformance.inbox import SECRET, Inbox
from msgsvc_devkit.conformance.messenger import Fault, Messenger
from msgsvc_devkit.conformance.stage import Stage, keyed, needs, plainest, sent, shown_as
from msgsvc_devkit.conformance.verdicts import done, expect_reason, refusal, refused_or_done

#: Seconds of `Retry-After`: a value that differs from usual defaults.
WAIT_S = 17.0

#: Faults that a response or a broken connection shows at once.
QUICK: tuple[Fault, ...] = tuple(fault for fault in get_args(Fault) if fault != "hang")

CALLS = (
    "send",
    "edit",
    "delete",
    "answer_button",
    "set_webhook",
    "check_webhook",
    "poll_updates",
)

#: Looks, of a hundredth of a second each, for a message of which the platform does not tell that it is there.
HANGS_AFTER = 50


class Failures(Stage):
    """Failures of calls to the platform."""

    @pytest.mark.parametrize("reason", list(Reason))
    async def test_a_refusal_has_the_reason_that_the_platform_gave(
        self, channel: Channel, messenger: Messenger, chat_id: str, reason: Reason
    ) -> None:
        await messenger.fail_next(reason)
        message = plainest("refused", channel.capabilities)
        error = await refusal(
            channel.send(chat_id, keyed(message)), f"send that failed with {reason}"
        )

        expect_reason(error, reason, "`send`")

    async def test_the_wait_that_the_platform_asks_for_is_kept(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        await messenger.fail_next(Reason.RATE_LIMITED, WAIT_S)
        message = plainest("later", channel.capabilities)
        error = await refusal(channel.send(chat_id, keyed(message)), "send that came too soon")

        expect_reason(error, Reason.RATE_LIMITED, "`send`")
        assert error.retry_after_s == WAIT_S, (
            f"the platform asked for {WAIT_S} s, retry_after_s is {error.retry_after_s}; the core"
            " waits exactly so long, and calls too soon where it is not told"
        )

    async def test_a_person_who_blocked_the_bot_gets_nothing(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        await messenger.block()
        message = plainest("unwanted", channel.capabilities)
        error = await refusal(channel.send(chat_id, keyed(message)), "send to who blocked the bot")

        expect_reason(error, Reason.USER_BLOCKED_BOT, "`send` to who blocked the bot")

    async def test_a_chat_that_the_person_has_left_gets_nothing(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        await messenger.leave()
        message = keyed(plainest("into the void", channel.capabilities))
        error = await refusal(channel.send(chat_id, message), "send into a chat that was left")

        assert error.reason.should_unsubscribe, (
            f"`send` into a chat that the person has left gave {error.reason.value!r} ({error.text!r})."
            " It is Reason.CHAT_NOT_FOUND, or USER_BLOCKED_BOT where the platform can't tell: nobody"
            " reads there, and the core has to learn it. Where the platform lets a bot write into an"
            " empty room, look who is in it first"
        )

    @pytest.mark.parametrize("fault", QUICK)
    @pytest.mark.parametrize("name", CALLS)
    async def test_a_platform_that_is_away_is_told_by_every_call(
        self,
        channel: Channel,
        messenger: Messenger,
        chat_id: str,
        inbox: Inbox,
        name: str,
        fault: Fault,
    ) -> None:
        call = await _prepared(name, channel, messenger, chat_id, inbox)
        await messenger.break_next(fault)
        if channel.capabilities.repeatable if name == "send" else fault == "reset":
            # A channel may retry calls that are harmless to repeat; then they succeed.
            await refused_or_done(call(), f"{name} during a fault ({fault})")
            return
        error = await refusal(call(), f"{name} during a fault ({fault})")

        expect_reason(error, Reason.PLATFORM_UNAVAILABLE, f"`{name}` during a fault ({fault})")

    async def test_a_refusal_leaves_no_doubt(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        await messenger.fail_next(Reason.RATE_LIMITED)
        message = plainest("again", channel.capabilities)
        error = await refusal(channel.send(chat_id, keyed(message)), "send that was refused")

        assert not error.in_doubt, (
            "the platform said no, and in_doubt is True: the message would never be tried again"
        )

    @pytest.mark.parametrize("fault", QUICK)
    async def test_after_a_fault_the_next_call_succeeds(
        self, channel: Channel, messenger: Messenger, chat_id: str, fault: Fault
    ) -> None:
        await messenger.break_next(fault)
        broken = channel.send(chat_id, keyed(plainest("broken", channel.capabilities)))
        if channel.capabilities.repeatable:
            await refused_or_done(broken, f"send during a fault ({fault})")
        else:
            await refusal(broken, f"send during a fault ({fault})")

        ref = await sent(channel, chat_id, plainest("well again", channel.capabilities))
        seen = (await shown_as(messenger, ref)).text
        assert seen == "well again", f"the next message shows {seen!r}"

    async def test_a_cancelled_call_leaves_the_channel_usable(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        await messenger.break_next("hang")
        message = plainest("cancelled", channel.capabilities)
        call = asyncio.ensure_future(channel.send(chat_id, keyed(message)))
        # A channel may look something up before it sends, and a platform may hang before it shows anything.
        for _ in range(HANGS_AFTER):
            if message.text in {one.text for one in await messenger.shown()}:
                break
            assert not call.done(), f"`send` ended though the platform did not answer: {call}"
            await asyncio.sleep(0.01)  # polled: the state of a fake can't be awaited
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        ref = await sent(channel, chat_id, plainest("after it", channel.capabilities))
        seen = (await shown_as(messenger, ref)).text
        assert seen == "after it", f"the next message shows {seen!r}"

    async def test_calls_at_the_same_time_do_not_disturb_each_other(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        texts = [f"number {number}" for number in range(20)]
        refs = await asyncio.gather(
            *(sent(channel, chat_id, plainest(text, channel.capabilities)) for text in texts)
        )
        seen = [(await shown_as(messenger, ref)).text for ref in refs]

        assert seen == texts, "calls made at once got each other's refs or texts"


async def _prepared(
    name: str, channel: Channel, messenger: Messenger, chat_id: str, inbox: Inbox
) -> Callable[[], Awaitable[object]]:
    """The call, after its preparation."""
    takes, text = channel.capabilities, plainest("text", channel.capabilities)
    if name in {"set_webhook", "check_webhook"}:
        return await _prepared_webhook(name, channel, inbox)
    if name == "poll_updates":
        needs(channel.receiving == "poll", "polling (receiving)")
        return lambda: channel.poll_updates(None)
    if name == "send":
        return lambda: channel.send(chat_id, keyed(text))
    if name == "answer_button":
        needs(takes.buttons == "native" and takes.notices, "notices of pressed buttons")
        message = plainest("press", takes, buttons=((Button("Press", data="x"),),))
        await messenger.press(await sent(channel, chat_id, message), "x")
        pressed = await inbox.expect(ButtonPressed)
        return lambda: channel.answer_button(pressed.button_ref, "done")
    needs(takes.edit if name == "edit" else takes.delete, f"{name}")
    ref = await sent(channel, chat_id, text)
    if name == "delete":
        return lambda: channel.delete(chat_id, ref)
    return lambda: channel.edit(chat_id, ref, plainest("other", takes))


async def _prepared_webhook(
    name: str, channel: Channel, inbox: Inbox
) -> Callable[[], Awaitable[object]]:
    needs(channel.receiving == "webhook", "webhooks (receiving)")
    if name == "set_webhook":
        return lambda: channel.set_webhook(inbox.webhook_url, SECRET)
    asks = type(channel).check_webhook is not Channel.check_webhook
    needs(asks, "question to the platform whether it calls (check_webhook)")
    await done(channel.set_webhook(inbox.webhook_url, SECRET), "set_webhook")
    return lambda: channel.check_webhook(inbox.webhook_url)
