"""Asks a channel how its bot is, whatever it does then."""

import asyncio

import structlog

from msgsvc_core.channels.contract import Channel, ChannelHealth

#: Seconds that a platform gets to say how the bot is.
CHECK_TIMEOUT_S = 10.0

log = structlog.get_logger(__name__)


async def check_channel(channel: Channel) -> ChannelHealth:
    """What `check` says; that it takes too long, or fails, is an answer too."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            return await channel.check()
    except TimeoutError:
        detail = f"no answer within {CHECK_TIMEOUT_S:.0f} s"
        return ChannelHealth(ok=False, detail=detail, unreachable=True)
    except Exception as error:
        log.exception("channel_broke_contract", channel=channel.key)
        return ChannelHealth(ok=False, detail=f"its check failed: {type(error).__name__}")
