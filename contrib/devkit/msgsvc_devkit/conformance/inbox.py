"""The bot's updates, from polling or a webhook."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import TypeVar

import pytest

from msgsvc_core.channels import Channel, Update, WebhookCall
from msgsvc_devkit.conformance.door import Door
from msgsvc_devkit.conformance.messenger import Messenger
from msgsvc_devkit.deadlines import patient

#: The secret for `set_webhook`: with the length and characters of the core's.
SECRET = "5ec2e7" * 10 + "abcd"

#: Another one, which replaces it, or was never told.
OTHER_SECRET = "0the2" * 12 + "beef"

#: Timeout in seconds for a local fake platform.
PATIENCE_S = patient(30.0)

#: Advice for an update that did not come.
SHOULD_BE_AN_UPDATE = "Turn the platform's update into one of msgsvc_core.channels.updates"

T = TypeVar("T")
U = TypeVar("U", bound=Update)


class Inbox:
    """Reads updates as the core does: the next poll acknowledges the previous updates."""

    def __init__(self, channel: Channel, messenger: Messenger, door: Door) -> None:
        self._channel = channel
        self._messenger = messenger
        self._door = door
        self._cursor: str | None = None
        self._waiting: list[Update] = []
        #: The updates that the last `expect` skipped.
        self.passed: list[Update] = []

    @property
    def webhook_url(self) -> str:
        """The URL for the platform's calls."""
        return self._door.webhook_url

    async def open(self) -> None:
        """Sets the webhook, if the channel uses one."""
        if self._channel.receiving == "webhook":
            self._door.answers, self._door.secrets = self._channel, (SECRET, OTHER_SECRET)
            await self._channel.set_webhook(self._door.webhook_url, SECRET)

    async def expect(self, kind: type[U], advice: str = "") -> U:
        """The next update of that type; others before it are skipped. `advice` says how to fix a failure."""
        __tracebackhide__ = True
        passed = self.passed = []
        deadline = asyncio.timeout(PATIENCE_S)
        failed: Exception | None = None
        try:
            async with deadline:
                while True:
                    for update in await self._take():
                        if isinstance(update, kind):
                            return update
                        passed.append(update)
        except Exception as error:  # noqa: BLE001 - whatever a channel raises is a finding
            failed = error
        if not deadline.expired():
            pytest.fail(
                f"receiving updates raised {failed!r}. What can't be read is an Unreadable"
                " in its place, and the next update is taken"
            )
        pytest.fail(
            f"no {kind.__name__} came within {PATIENCE_S:.0f} s; instead: {passed or 'nothing'}."
            f" {advice or SHOULD_BE_AN_UPDATE}"
        )

    async def webhook_call(self) -> WebhookCall:
        """The platform's next webhook call, with the secrets that the core would pass."""
        call = await within(self._door.calls.get(), "the platform did not call the webhook")
        return replace(call, secrets=(SECRET,))

    async def _take(self) -> Sequence[Update]:
        """An update, or None if there is none yet."""
        if not self._waiting:
            self._waiting = list(await self._more())
        return [self._waiting.pop(0)] if self._waiting else []

    async def _more(self) -> Sequence[Update]:
        if self._channel.receiving == "webhook":
            return self._channel.parse_update(await self.webhook_call())
        if self._channel.receiving == "poll":
            polled = await self._channel.poll_updates(self._cursor)
            self._cursor = polled.cursor
            return polled.updates
        told = await self._messenger.told()
        await asyncio.sleep(0 if told else 0.01)  # polled: a fake without a queue can't be awaited
        return told


async def within(call: Awaitable[T], otherwise: str) -> T:
    """Result of `call`. Fails the check with `otherwise` if it takes longer than any fake needs."""
    __tracebackhide__ = True
    deadline = asyncio.timeout(PATIENCE_S)
    try:
        async with deadline:
            return await call
    except TimeoutError:
        if not deadline.expired():
            # Raised by the call: left to the caller.
            raise
    pytest.fail(f"{otherwise} within {PATIENCE_S:.0f} s")
