"""Receives for one bot, in the process that leases it: profile, webhook registration, polling."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from msgsvc_core.channels import bots
from msgsvc_core.channels.bots import Bot
from msgsvc_core.channels.contract import Channel, ChannelHealth, WebhookHealth
from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.health.check import check_channel
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.channels.inbound import received_updates
from msgsvc_core.channels.reception.health import ReceptionHealth
from msgsvc_core.channels.reception.models import InterruptionReason
from msgsvc_core.channels.registry import Channels
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Database, DatabaseUnavailable
from msgsvc_core.jobs import lanes
from msgsvc_core.jobs.contract import exponential
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.security import SecretBox

#: Seconds to wait after the n-th consecutive failure.
BACKOFF = exponential(first_s=1, max_s=60)

#: Seconds between refreshes of a bot's profile: its owner may rename it.
PROFILE_S = 3600.0

#: Seconds until a failed registration of the bot's commands is retried.
MENU_AGAIN_S = 60.0

#: Milliseconds for which a registered webhook is not registered again, so that processes that start one after
#: the other register it once.
WEBHOOK_KNOWN_MS = 60_000

#: Seconds between checks of a process that may not act for the bot now, or whose platform does not long-poll.
PAUSE_S = 0.2

#: The log event when no updates of a bot can be received.
UPDATES_INTERRUPTED = "updates_interrupted"

#: Minimum seconds of a wait that counts as long polling.
WAITED_S = 0.02

#: One step of a loop: seconds until the next, or None to stop.
Step = Callable[[], Awaitable[float | None]]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Lease:
    """The process's lease on a bot; `may_poll` says whether it is still certain."""

    lane: str
    owner: str
    may_poll: Callable[[], bool]


class BotReceiver:
    """Receives for one bot: `run` until cancelled. Survives failures of the platform, handlers and
    database. `menus` limits how many bots register their commands at the same time."""

    def __init__(
        self,
        channel: Channel,
        lease: Lease,
        menus: asyncio.Semaphore,
        *,
        clock: Clock,
        db: Database,
        secrets: SecretBox,
        settings: Settings,
        channels: Channels,
        states: ChannelStates,
        health: ReceptionHealth,
    ) -> None:
        self._channel = channel
        self._lease = lease
        self._menus = menus
        self._clock = clock
        self._db = db
        self._secrets = secrets
        self._default_lang = settings.default_lang
        self._webhook_check_s = settings.jobs.webhook_check_s
        self._channels = channels
        self._states = states
        self._bot: Bot | None = None
        self._cursor: str | None = None
        self._webhook_is_set = False
        self._webhook_at_ms = 0
        #: When a webhook that the platform had given up was registered again; no call has confirmed it yet.
        self._given_up_at_ms: int | None = None
        self._watch = health.watch(channel)

    async def run(self) -> None:
        async with self._channels.keep_open(self._channel), asyncio.TaskGroup() as group:
            if self._channel.receiving == "webhook":
                reason = InterruptionReason.WEBHOOK_NOT_SET
                group.create_task(self._repeat(self._check_webhook, UPDATES_INTERRUPTED, reason))
            else:
                reason = InterruptionReason.POLLING_FAILED
                group.create_task(self._repeat(self._poll, UPDATES_INTERRUPTED, reason))
            group.create_task(self._repeat(self._refresh_profile, "bot_not_asked"))
            if self._channel.capabilities.commands:
                group.create_task(self._repeat(self._show_commands, "commands_not_shown"))

    async def _repeat(
        self, step: Step, failed: str, interrupts: InterruptionReason | None = None
    ) -> None:
        """Runs `step` repeatedly, with backoff after failures.

        `failed` is the log event of a failure. If nothing is received meanwhile, `interrupts` is the reason.
        """
        failures = 0
        while True:
            try:
                wait_s, failures = await step(), 0
            except (DeliveryError, DatabaseUnavailable) as error:
                failures += 1
                log.warning(failed, channel=self._channel.key, error=str(error))
                wait_s = BACKOFF(failures)
                # A failure of our own database says nothing about the platform, and could not be recorded.
                if isinstance(error, DeliveryError):
                    wait_s = max(wait_s, error.retry_after_s or 0)
                    if interrupts is not None:
                        await self._watch.failed(interrupts, error.text, contested=error.contested)
            except Exception as error:
                # The edge of a plugin: after any failure, the bot continues.
                failures += 1
                log.exception("channel_broke_contract", channel=self._channel.key)
                wait_s = BACKOFF(failures)
                if interrupts is not None:
                    await self._watch.failed(interrupts, type(error).__name__)
            if wait_s is None:
                return
            await asyncio.sleep(wait_s)

    async def _refresh_profile(self) -> float:
        """Reads the bot's profile, which links need, and shares it with all processes.

        An invalid token stops the bot before anything is sent; a token fixed in the configuration resumes it
        at start.
        """
        asked_at_ms = self._clock.now_ms()
        health = await check_channel(self._channel)
        await self._channels.remember(self._channel, health)
        await self._states.apply_health(self._channel, health, asked_at_ms=asked_at_ms)
        if not health.ok:
            raise DeliveryError(_reason_of(health), health.detail)
        return PROFILE_S

    async def _show_commands(self) -> float | None:
        """Registers the bot's commands. If the platform refuses, there is no retry: the menu is optional."""
        try:
            async with self._menus:
                await self._channel.set_commands(self._channels.commands.menu(), self._default_lang)
        except DeliveryError as error:
            if error.reason.retryable:
                # This failure does not concern updates, which may be received anyway.
                log.warning("commands_not_shown", channel=self._channel.key, error=str(error))
                return max(MENU_AGAIN_S, error.retry_after_s or 0)
            log.warning("commands_refused", channel=self._channel.key, error=str(error))
        return None

    async def _check_webhook(self) -> float:
        """Registers the webhook, and checks periodically whether the platform calls it successfully."""
        check_s = self._webhook_check_s
        if not self._webhook_is_set:
            await self._set_webhook()
            self._webhook_is_set = True
        try:
            found = await self._channel.check_webhook(self._channels.hook_url(self._channel))
        except DeliveryError as error:
            # This failure does not concern updates, which may be received anyway.
            log.warning("webhook_not_checked", channel=self._channel.key, error=str(error))
            return max(check_s, error.retry_after_s or 0)
        if not found.ok:
            log.warning("webhook_not_called", channel=self._channel.key, detail=found.detail)
            failing_ms = self._failing_ms(found)
            await self._watch.failed(
                InterruptionReason.WEBHOOK_NOT_CALLED, found.detail, failing_ms=failing_ms
            )
            if failing_ms:
                self._given_up_at_ms = self._clock.now_ms()
        elif await self._is_called():
            await self._watch.worked()
        if found.missing:
            await self._set_webhook(anew=True)
        return check_s

    def _failing_ms(self, found: WebhookHealth) -> int:
        """For how long no call has succeeded, if the platform has given up the webhook because of that."""
        given_up_ms = int((found.given_up_after_s or 0) * 1000) if found.missing else 0
        # One that was registered later was removed by somebody else.
        age_ms = self._clock.now_ms() - self._webhook_at_ms
        return given_up_ms if age_ms >= given_up_ms else 0

    async def _is_called(self) -> bool:
        """Whether a webhook that was registered again has been called since."""
        if self._given_up_at_ms is None:
            return True
        async with self._db.read() as tx:
            called = await received_updates.has_received(
                tx, self._channel.key, self._given_up_at_ms
            )
        if called:
            self._given_up_at_ms = None
        return called

    async def _set_webhook(self, *, anew: bool = False) -> None:
        """Registers the webhook, unless another process just has."""
        channels = self._channels
        url, secret = channels.hook_url(self._channel), channels.hook_secrets(self._channel)[0]
        digest = self._secrets.keyed_hash("channel hook", f"{url} {secret}")
        bot = await self._load_bot()
        age_ms = self._clock.now_ms() - (bot.webhook_at_ms or 0)
        if not anew and bot.webhook_digest == digest and 0 <= age_ms < WEBHOOK_KNOWN_MS:
            self._webhook_at_ms = bot.webhook_at_ms or 0
            return
        await self._channel.set_webhook(url, secret)
        self._webhook_at_ms = self._clock.now_ms()
        async with self._db.transaction() as tx:
            await bots.save_webhook(tx, bot, digest, self._webhook_at_ms)

    async def _poll(self) -> float:
        """Polls for updates, processes them, and then records the cursor: in this order none is lost.

        Updates processed before a crash that lost the cursor are received again, and recognised.
        """
        if not self._lease.may_poll():
            return PAUSE_S
        bot = await self._load_bot()
        asked_at = asyncio.get_running_loop().time()
        polled = await self._channel.poll_updates(self._cursor)
        for update in polled.updates:
            await self._channels.receive(self._channel.key, update)
        if polled.cursor != self._cursor:
            await self._save_cursor(bot, polled.cursor)
        if polled.error is not None:
            if not polled.updates:
                raise polled.error
            log.warning("updates_in_part", channel=self._channel.key, error=str(polled.error))
            await self._watch.worked()
            return max(BACKOFF(1), polled.error.retry_after_s or 0)
        await self._watch.worked()
        waited = asyncio.get_running_loop().time() - asked_at >= WAITED_S
        return 0 if polled.updates or waited else PAUSE_S

    async def _save_cursor(self, bot: Bot, cursor: str | None) -> None:
        # If a power cut loses it, updates are received again, and recognised.
        async with self._db.transaction(inline=True, durable=False) as tx:
            # The lease first: a process without it must not change the other's cursor.
            saved = await lanes.lock_owned(
                tx, self._lease.lane, self._lease.owner
            ) and await bots.save_cursor(tx, bot, cursor)
        if saved:
            self._cursor = cursor
        else:
            # Another process owns the bot by now, or its settings changed: continue from the stored state.
            self._bot = None

    async def _load_bot(self) -> Bot:
        """The state of the bot recorded by other processes; read once."""
        if self._bot is None:
            key, digests = self._channel.key, self._channels.digests(self._channel)
            stored = await self._db.read_inline(lambda tx: bots.find(tx, key))
            bot = stored if stored is not None and stored.settings_digest in digests else None
            polls = self._channel.receiving == "poll"
            if bot is None or (polls and bot.webhook_digest is not None):
                account = None
                if bot is None and stored is not None and stored.account is not None:
                    account = await self._account()
                # Another bot on the channel has updates to be deleted, maybe many.
                is_new = stored is None
                # Done again at the next start, if a power cut loses it.
                async with self._db.transaction(inline=is_new, durable=False) as tx:
                    if polls:
                        await bots.clear_webhook(tx, key)
                    bot = await bots.load(tx, key, digests, account)
            self._bot, self._cursor = bot, bot.cursor
        return self._bot

    async def _account(self) -> str | None:
        """The account of the token, which decides whether what another token stored is of the same bot."""
        health = await check_channel(self._channel)
        if not health.ok:
            raise DeliveryError(_reason_of(health), health.detail)
        return health.account


def _reason_of(health: ChannelHealth) -> Reason:
    return Reason.BOT_BANNED if health.revoked else Reason.PLATFORM_UNAVAILABLE
