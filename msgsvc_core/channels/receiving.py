"""Takes a bot's updates in: tells the platform where to call, or asks it again and again."""

import asyncio
from typing import TYPE_CHECKING

import structlog

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import DeliveryError
from msgsvc_core.db import DatabaseUnavailable
from msgsvc_core.jobs.contract import exponential

if TYPE_CHECKING:
    from msgsvc_core.service import Service

#: Seconds to wait after the n-th failure in a row.
BACKOFF = exponential(first_s=1, most_s=60)

log = structlog.get_logger(__name__)


async def receive_updates(service: "Service", channel: Channel) -> None:
    """Runs until cancelled, or until there is nothing more to do; outlives every failure."""
    failures = 0
    cursor: str | None = None
    while channel.receiving != "nothing":
        try:
            await _learn_profile(channel)
            if channel.receiving == "webhook":
                await channel.set_webhook(
                    webhook_url(service, channel), webhook_secrets(service, channel)[0]
                )
                return
            polled = await channel.poll_updates(cursor)
            for update in polled.updates:
                await service.inbound.receive(channel.key, update)
            cursor, failures = polled.cursor, 0
        except (DeliveryError, DatabaseUnavailable) as error:
            failures += 1
            log.warning("updates_interrupted", channel=channel.key, error=str(error))
            await asyncio.sleep(BACKOFF(failures))
        except Exception:
            failures += 1
            log.exception("channel_broke_contract", channel=channel.key)
            await asyncio.sleep(BACKOFF(failures))


def webhook_url(service: "Service", channel: Channel) -> str:
    """Where the platform calls us."""
    return f"{service.settings.base_url}/hooks/{channel.key}"


def webhook_secrets(service: "Service", channel: Channel) -> tuple[str, ...]:
    """By which a platform proves that it calls us: what we tell it now, then those of older keys.

    64 hex digits, which every platform takes.
    """
    return tuple(secret.hex() for secret in service.secrets.derive_all("channel hook", channel.key))


async def _learn_profile(channel: Channel) -> None:
    if channel.profile is None:
        health = await channel.check()
        channel.profile = health.profile
