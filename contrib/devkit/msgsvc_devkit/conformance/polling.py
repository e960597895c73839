"""Checks of channels that poll the platform for updates."""

import asyncio

import pytest

from msgsvc_core.channels import Channel, MessageReceived, Polled, Started, Update
from msgsvc_devkit.conformance.door import Door
from msgsvc_devkit.conformance.inbox import SECRET, within
from msgsvc_devkit.conformance.messenger import Messenger
from msgsvc_devkit.conformance.stage import Stage, needs
from msgsvc_devkit.conformance.verdicts import done

#: More than a platform gives at once.
MANY = 120


class Polling(Stage):
    """`poll_updates` and its cursor."""

    async def test_polling_what_was_not_acknowledged_comes_again(
        self, channel: Channel, messenger: Messenger
    ) -> None:
        needs(channel.receiving == "poll", "polling (receiving)")
        await messenger.start("kept")
        first, again = await _poll(channel, None), await _poll(channel, None)

        assert _ids(again)[: len(_ids(first))] == _ids(first), (
            f"updates {_ids(first)} were not acknowledged, and then {_ids(again)} came: a process"
            " that dies would lose them. Acknowledge by the cursor alone; ids stay the same"
        )

    async def test_polling_what_was_acknowledged_does_not_come_again(
        self, channel: Channel, messenger: Messenger
    ) -> None:
        needs(channel.receiving == "poll", "polling (receiving)")
        await messenger.start("taken")
        first = await _poll(channel, None)
        assert first.cursor is not None, (
            "updates came with cursor None, so nothing acknowledges them"
        )
        await messenger.write("next")
        second = await _poll(channel, first.cursor)
        third = await _poll_later(channel, messenger, second.cursor)

        assert not set(_ids(second)) & set(_ids(first)), (
            f"{_ids(first)} were acknowledged by the cursor {first.cursor!r}, and came again"
        )
        assert not set(_ids(third)) & {*_ids(first), *_ids(second)}, (
            "an acknowledged update came again"
        )

    async def test_polling_an_old_cursor_after_a_restart_goes_on_where_it_was(
        self, channel: Channel, messenger: Messenger
    ) -> None:
        needs(channel.receiving == "poll", "polling (receiving)")
        await messenger.start("before")
        first = await _poll(channel, None)
        await messenger.write("meanwhile")
        lost = await _poll(channel, first.cursor)
        again = await _poll(channel, first.cursor)

        assert [type(one) for one in lost.updates] == [MessageReceived], f"{lost.updates} came"
        assert _ids(again) == _ids(lost), (
            f"a process that died after it had got {_ids(lost)} asks again with the cursor before, and"
            f" gets {_ids(again)}; a cursor acknowledges what came before it and no more"
        )

    async def test_polling_after_a_long_time_misses_nothing(
        self, channel: Channel, messenger: Messenger
    ) -> None:
        needs(channel.receiving == "poll", "polling (receiving)")
        await messenger.start("long ago")
        cursor = (await _poll(channel, None)).cursor
        written = [f"text {number}" for number in range(MANY)]
        for text in written:
            await messenger.write(text)
        came: list[str] = []
        while written[-1] not in came:
            polled = await _poll(channel, cursor)
            cursor = polled.cursor
            came += [one.text for one in polled.updates if isinstance(one, MessageReceived)]

        missing = [text for text in written if text not in came]
        assert came == written, (
            f"{MANY} texts were written while nobody polled, and {len(came)} came, without {missing[:3]} or"
            " in another order. Read what the platform leaves out of a long list, page by page"
        )

    async def test_polling_waits_and_is_cancelled_without_harm(
        self, channel: Channel, messenger: Messenger
    ) -> None:
        needs(channel.receiving == "poll", "polling (receiving)")
        await messenger.start()
        first = await _poll(channel, None)
        waiting = asyncio.ensure_future(channel.poll_updates(first.cursor))
        await asyncio.sleep(0.05)  # into the middle of the call, which has no visible state
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await messenger.write("after it")
        second = await _poll(channel, first.cursor)

        assert [type(one) for one in second.updates] == [MessageReceived], (
            f"a call of poll_updates was cancelled, then {second.updates} came"
        )

    async def test_polling_begins_where_a_webhook_was_set(
        self, channel: Channel, messenger: Messenger, door: Door
    ) -> None:
        needs(channel.receiving == "poll", "polling (receiving)")
        if type(channel).set_webhook is Channel.set_webhook:
            pytest.skip("this channel has no webhooks (set_webhook)")
        await done(channel.set_webhook(door.webhook_url, SECRET), "set_webhook")
        first = asyncio.ensure_future(_poll(channel, None))
        # Updates before the poll removes the webhook go to the webhook, so the action is repeated.
        while not (await asyncio.wait([first], timeout=0.05))[0]:
            await messenger.start("polled")
        polled = await first

        assert {type(one) for one in polled.updates} == {Started}, (
            f"after a webhook had been set, poll_updates(None) gave {polled.updates}; it ends the"
            " platform's calls by webhook first"
        )


async def _poll(channel: Channel, cursor: str | None) -> Polled:
    """The first response with updates."""

    async def ask() -> Polled:
        asked = cursor
        while True:
            polled = await channel.poll_updates(asked)
            if polled.updates:
                return polled
            asked = polled.cursor

    return await done(within(ask(), "poll_updates gave no update"), "poll_updates")


async def _poll_later(channel: Channel, messenger: Messenger, cursor: str | None) -> Polled:
    await messenger.write("last")
    return await _poll(channel, cursor)


def _ids(polled: Polled) -> list[str]:
    updates: tuple[Update, ...] = polled.updates
    return [update.update_id for update in updates]
