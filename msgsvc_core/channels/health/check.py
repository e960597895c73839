"""Checks a channel, whatever its `check` does."""

import asyncio

import structlog

from msgsvc_core.channels.contract import Channel, ChannelHealth

#: Timeout of a `check`, in seconds.
CHECK_TIMEOUT_S = 10.0

log = structlog.get_logger(__name__)


async def check_channel(channel: Channel) -> ChannelHealth:
    """The result of `check`; a timeout or an exception is a failed check."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            return await channel.check()
    except TimeoutError:
        detail = f"no answer within {CHECK_TIMEOUT_S:.0f} s"
        return ChannelHealth(ok=False, detail=detail, unreachable=True)
    except Exception as error:
        log.exception("channel_broke_contract", channel=channel.key)
        return ChannelHealth(ok=False, detail=f"its check failed: {type(error).__name__}")
