"""Reference counts of channels in use, so that a replaced one is closed after its last call."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from msgsvc_core.channels.contract import Channel

log = structlog.get_logger(__name__)


class ChannelRefCounts:
    """Counts uses per channel object: a changed channel is a new object."""

    def __init__(self) -> None:
        self._counts: Counter[Channel] = Counter()
        self._retired: set[Channel] = set()
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def borrow(self, channel: Channel) -> AsyncIterator[None]:
        """While the block runs, the channel is not closed."""
        self._counts[channel] += 1
        try:
            yield
        finally:
            self._counts[channel] -= 1
            if not self._counts[channel]:
                del self._counts[channel]
                if channel in self._retired:
                    self._close(channel)

    def retire(self, channel: Channel) -> None:
        """Closes a replaced channel, now or after its last use."""
        if channel in self._counts:
            self._retired.add(channel)
        else:
            self._close(channel)

    async def close(self) -> None:
        """Closes all retired channels, also those in use."""
        for channel in list(self._retired):
            self._close(channel)
        await asyncio.gather(*self._closing)

    def _close(self, channel: Channel) -> None:
        self._retired.discard(channel)
        task = asyncio.create_task(close_quietly(channel), name=f"close channel {channel.key}")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def close_quietly(channel: Channel) -> None:
    try:
        await channel.close()
    except Exception:
        # The edge of a plugin: the other channels have to be closed too.
        log.exception("channel_did_not_close", channel=channel.key)
