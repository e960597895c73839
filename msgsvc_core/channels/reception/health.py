"""Health of receiving: lasting failures are recorded in the database, and cleared by the first success."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import structlog

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.channels.reception.models import InterruptionReason, ReceptionAnswer, reception_of
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Database, DatabaseUnavailable, Tx
from msgsvc_core.events import Events
from msgsvc_core.kernel.clock import Clock, to_rfc3339

#: Milliseconds after another program took updates, in which a success proves nothing: longer than
#: a long poll.
CONTESTED_MS = 90_000

#: Maximum characters of the stored detail.
DETAIL_LENGTH = 300

log = structlog.get_logger(__name__)


class ReceptionHealth:
    """Records in the database which bots receive nothing.

    A failure counts as lasting after `failing_s` seconds.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        events: Events,
        channels: Channels,
        states: ChannelStates,
        failing_s: float,
    ) -> None:
        self._clock = clock
        self._db = db
        self._events = events
        self._channels = channels
        self._states = states
        self._failing_s = failing_s

    def watch(self, channel: Channel) -> "ReceptionWatch":
        """The watch of a bot, for the process that receives for it."""
        return ReceptionWatch(
            channel,
            clock=self._clock,
            db=self._db,
            channels=self._channels,
            states=self._states,
            health=self,
            lasting_ms=self._failing_s * 1000,
        )

    async def interrupt(
        self, tx: Tx, channel: Channel, reason: InterruptionReason, detail: str, since_ms: int
    ) -> bool:
        """Records that the bot does not receive; False if that is recorded already, and only the reason is
        updated."""
        fields = {"channel": channel.key, "reason": str(reason), "detail": detail[:DETAIL_LENGTH]}
        now_ms = self._clock.now_ms()
        began = await tx.execute(
            "INSERT INTO core_channel_states (channel, changed_at_ms, interrupted_since_ms,"
            " interrupted_reason, interrupted_detail)"
            " VALUES (:channel, :now_ms, :since_ms, :reason, :detail) ON CONFLICT (channel)"
            " DO UPDATE SET interrupted_since_ms = :since_ms, interrupted_reason = :reason,"
            " interrupted_detail = :detail WHERE core_channel_states.interrupted_since_ms IS NULL",
            {**fields, "now_ms": now_ms, "since_ms": since_ms},
        )
        if not began:
            await tx.execute(
                "UPDATE core_channel_states SET interrupted_reason = :reason,"
                " interrupted_detail = :detail"
                " WHERE channel = :channel AND interrupted_since_ms IS NOT NULL",
                fields,
            )
            return False
        told = {"since": to_rfc3339(since_ms), "reason": str(reason), "detail": fields["detail"]}
        await self._emit(tx, channel, "channel.reception_interrupted", told)
        tx.on_commit(partial(log.error, "reception_interrupted", channel=channel.key, **told))
        return True

    async def shown(self, tx: Tx, channels: Sequence[Channel]) -> dict[str, ReceptionAnswer | None]:
        """How channels receive, by key."""
        states = {state.channel: state for state in await self._states.troubled(tx)}
        return {each.key: reception_of(each, states.get(each.key)) for each in channels}

    async def recover(self, tx: Tx, channel: Channel) -> bool:
        """Records that the bot receives; False if it was not interrupted."""
        ended = await tx.execute(
            "UPDATE core_channel_states SET interrupted_since_ms = NULL, interrupted_reason = NULL,"
            " interrupted_detail = NULL"
            " WHERE channel = :channel AND interrupted_since_ms IS NOT NULL",
            {"channel": channel.key},
        )
        if not ended:
            return False
        await self._emit(tx, channel, "channel.reception_recovered", {})
        tx.on_commit(partial(log.warning, "reception_recovered", channel=channel.key))
        return True

    async def _emit(self, tx: Tx, channel: Channel, name: str, fields: dict[str, str]) -> None:
        """Notifies the project that owns the bot; shared bots are the operator's concern."""
        project_id = channel.identity.project_id
        if project_id is not None:
            fields = {"channel": channel.name, **fields}
            await self._events.emit(tx, project_id, name, fields)


class ReceptionWatch:
    """Distinguishes lasting failures from short ones, for the process that receives for a bot.

    The database is written on changes only, not on every poll. Neither method raises: receiving continues
    even if the record fails.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        clock: Clock,
        db: Database,
        channels: Channels,
        states: ChannelStates,
        health: ReceptionHealth,
        lasting_ms: float,
    ) -> None:
        self._channel = channel
        self._clock = clock
        self._db = db
        self._channels = channels
        self._states = states
        self._health = health
        self._lasting_ms = lasting_ms
        #: The first of the current consecutive failures: its time, and the same on the monotonic clock.
        self._first: tuple[int, int] | None = None
        self._noted: tuple[InterruptionReason, str] | None = None
        #: When another program last took updates, on the monotonic clock.
        self._contested_ms: int | None = None
        #: Whether an interruption may be recorded: initially by the bot's previous process.
        self._may_be_noted = True

    async def failed(
        self,
        reason: InterruptionReason,
        detail: str,
        *,
        failing_ms: int = 0,
        contested: bool = False,
    ) -> None:
        """Records the interruption once it has lasted long enough, and later changes of its reason.

        `failing_ms` is for how long it is known to have lasted before it was noticed. `contested` means that
        another program takes updates: two of them succeed by turns, and each loses what the other gets.
        """
        clock = self._clock
        if contested:
            self._contested_ms = clock.monotonic_ms()
        if self._first is None or failing_ms:
            self._first = clock.now_ms() - failing_ms, clock.monotonic_ms() - failing_ms
        since_ms, began_ms = self._first
        if clock.monotonic_ms() - began_ms < self._lasting_ms or self._noted == (reason, detail):
            return
        if await self._record(
            lambda tx: self._health.interrupt(tx, self._channel, reason, detail, since_ms)
        ):
            self._noted, self._may_be_noted = (reason, detail), True

    async def worked(self) -> None:
        """Ends the interruption, if there is one, unless updates were contested a moment ago."""
        if self._contested_ms is not None:
            if self._clock.monotonic_ms() - self._contested_ms < CONTESTED_MS:
                return
            self._contested_ms = None
        self._first = None
        if not self._may_be_noted:
            return
        if (self._noted is None and not await self._is_noted()) or await self._record(
            lambda tx: self._health.recover(tx, self._channel)
        ):
            self._noted, self._may_be_noted = None, False

    async def _is_noted(self) -> bool:
        """Whether a previous process may have recorded an interruption: queried once."""
        try:
            state = await self._db.read_inline(lambda tx: self._states.find(tx, self._channel.key))
        except DatabaseUnavailable:
            return True
        return state is not None and state.interrupted_since_ms is not None

    async def _record(self, write: Callable[[Tx], Awaitable[bool]]) -> bool:
        """Whether it was written. Not for a bot whose channel was changed meanwhile, since that is another
        bot."""
        if self._channels.get(self._channel.key) is not self._channel:
            return False
        try:
            async with self._db.transaction() as tx:
                await write(tx)
        except DatabaseUnavailable as error:
            log.warning("reception_not_noted", channel=self._channel.key, error=str(error))
            return False
        except Exception:
            # The edge: an event's observer may fail. Updates are received anyway.
            log.exception("reception_not_noted", channel=self._channel.key)
            return False
        return True
