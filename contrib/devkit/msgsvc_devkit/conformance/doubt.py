"""Checks that a message whose response is lost is shown once, however it is lost.

A repeatable channel (`Capabilities.repeatable`) only has to show it once: it may retry the call itself or
leave that to the core. Any other has to raise with `in_doubt`.
"""

import asyncio
from collections.abc import Awaitable
from typing import Literal

import pytest

from msgsvc_core.channels import Channel, DeliveryError, OutgoingMessage, Reason
from msgsvc_devkit.conformance.messenger import Fault, Messenger
from msgsvc_devkit.conformance.stage import Stage, keyed, needs, plainest, sent, shown_as
from msgsvc_devkit.conformance.verdicts import done, expect_reason, refusal, refused_or_done

#: How a response is lost, as text for a failed check. `death` is a crash of the platform's server.
LOST: dict[Fault | Literal["death"], str] = {
    "reset": "the connection broke after the request was sent",
    "504": "a gateway gave up waiting for the platform",
    "garbage": "the answer has a status of success, and can't be read",
    "death": "the platform's server died after it had read the request",
}

#: Advice for a message that a fake has not shown.
FAKE_IS_WRONG = (
    "what the bot asked for is done in spite of every fault but '5xx', and only the answer is lost: see"
    " msgsvc_devkit.Fault, and make the fake do the call first"
)


class Doubt(Stage):
    """Messages whose outcome is unknown."""

    @pytest.mark.parametrize("lost", LOST)
    async def test_a_message_that_may_have_arrived_is_in_doubt(
        self,
        channel: Channel,
        messenger: Messenger,
        chat_id: str,
        lost: Fault | Literal["death"],
    ) -> None:
        message = keyed(plainest("once", channel.capabilities))
        error = await _send_and_lose(channel, messenger, chat_id, message, lost)

        if error is not None:
            expect_reason(error, Reason.PLATFORM_UNAVAILABLE, f"`send`, when {LOST[lost]},")
            assert error.in_doubt, (
                f"{LOST[lost]}, and in_doubt is False: the message would be sent a second time."
                " PlatformHttp.call sets it where the connection breaks; answers are yours to read"
            )
        await _judge_shown_once(messenger, "once", lost)

    async def test_a_server_that_does_not_listen_leaves_no_doubt(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        await messenger.kill()
        # First, since a reused connection may be found broken by it, which is not what is tested.
        health = await done(channel.check(), "check of a server that is not there")
        message = keyed(plainest("not there", channel.capabilities))
        error = await refusal(channel.send(chat_id, message), "send to a server that is not there")
        await messenger.restart()

        expect_reason(error, Reason.PLATFORM_UNAVAILABLE, "`send` to a server that is not there")
        assert not error.in_doubt, (
            "nobody listens, so nothing was sent, and in_doubt is True: after an outage the message"
            " would end as `unknown`"
        )
        assert (health.ok, health.revoked) == (False, False), (
            f"of a server that is not there `check` says {health}; it is not ok, and not revoked"
        )
        ref = await sent(channel, chat_id, message)
        seen = (await shown_as(messenger, ref)).text
        assert seen == "not there", f"after the server was back, {seen!r} is shown"
        await _judge_shown_once(messenger, "not there", None)

    async def test_the_same_key_twice_is_one_message_and_another_key_another(
        self, channel: Channel, successor: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        needs(channel.capabilities.repeatable, "repeats that are shown once (repeatable)")
        message = keyed(plainest("the same", channel.capabilities))
        first = await sent(channel, chat_id, message)
        again = [await sent(one, chat_id, message) for one in (channel, successor)]
        other = await sent(channel, chat_id, keyed(message.with_key("")))

        assert again == [first, first], (
            f"one key was sent three times, the last time by another process, and `send` returned"
            f" {[first, *again]}. Hand `message.key` to the platform, and return the id that it gives"
            " each time"
        )
        assert other != first, (
            "two messages with the same words and different keys are taken for one: the key alone says"
            " what is a repeat"
        )
        await _judge_shown_once(messenger, "the same", None, times=2)

    @pytest.mark.parametrize("lost", LOST)
    async def test_a_message_whose_answer_was_lost_is_sent_again_and_shown_once(
        self,
        channel: Channel,
        successor: Channel,
        messenger: Messenger,
        chat_id: str,
        lost: Fault | Literal["death"],
    ) -> None:
        needs(channel.capabilities.repeatable, "repeats that are shown once (repeatable)")
        message = keyed(plainest("exactly once", channel.capabilities))
        await _send_and_lose(channel, messenger, chat_id, message, lost)
        # As the core does if the process that made the call has crashed as well.
        ref = await sent(successor, chat_id, message)

        await _judge_shown_once(messenger, "exactly once", lost)
        seen = (await shown_as(messenger, ref)).text
        assert seen == "exactly once", f"the repeat returned {ref!r}, which shows {seen!r}"


async def _send_and_lose(
    channel: Channel,
    messenger: Messenger,
    chat_id: str,
    message: OutgoingMessage,
    lost: Fault | Literal["death"],
) -> DeliveryError | None:
    """The error of `send` if its response is lost this way; None if it retried the call, as it may."""
    __tracebackhide__ = True
    doing = f"send, when {LOST[lost]},"
    if lost != "death":
        await messenger.break_next(lost)
        return await _judged(channel, channel.send(chat_id, message), doing)
    # It also crashes before the call: without a server, the check is skipped here, with nothing in flight.
    await messenger.kill()
    await messenger.restart()
    await messenger.break_next("hang")
    sending = asyncio.ensure_future(channel.send(chat_id, message))
    try:
        while message.text not in {one.text for one in await messenger.shown()}:
            assert not sending.done(), (
                f"`send` ended before the server had done it; {FAKE_IS_WRONG}"
            )
            await asyncio.sleep(0.01)  # polled: the state of a fake can't be awaited
        await messenger.kill()
        if channel.capabilities.repeatable:
            await messenger.restart()
            return await _judged(channel, sending, doing)
        error = await _judged(channel, sending, doing)
        await messenger.restart()
        return error
    finally:
        sending.cancel()


async def _judged(channel: Channel, call: Awaitable[object], doing: str) -> DeliveryError | None:
    """The error of a call that has to fail, unless the channel may retry it."""
    __tracebackhide__ = True
    if channel.capabilities.repeatable:
        return await refused_or_done(call, doing)
    return await refusal(call, doing)


async def _judge_shown_once(
    messenger: Messenger, text: str, lost: Fault | Literal["death"] | None, times: int = 1
) -> None:
    """Fails unless the user sees that text the expected number of times."""
    __tracebackhide__ = True
    seen = [one.text for one in await messenger.shown()].count(text)
    why = f" when {LOST[lost]}" if lost else ""
    assert seen >= times, f"the message is not shown{why}; {FAKE_IS_WRONG}"
    assert seen == times, (
        f"the message is shown {seen} times{why}, not {times}. A call is made once; only a platform that"
        " drops repeats by `message.key` (Capabilities.repeatable) may be asked again"
    )
