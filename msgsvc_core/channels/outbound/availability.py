"""Whether a platform accepts a bot's calls: stopped bots and outages, in memory and in the database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import DeliveryError, LocalFailure, Reason
from msgsvc_core.channels.health.outages import ChannelOutages
from msgsvc_core.channels.health.states import ChannelState, ChannelStates
from msgsvc_core.channels.outbound.circuit import CircuitBreaker, Permit
from msgsvc_core.channels.registry import Channels
from msgsvc_core.config.sections import JobSettings
from msgsvc_core.db import Database, Tx

#: Errors that concern one message or user: the platform responded, so there is no outage.
ANSWERS = frozenset({Reason.USER_BLOCKED_BOT, Reason.CHAT_NOT_FOUND, Reason.RATE_LIMITED})

log = structlog.get_logger(__name__)


class Availability:
    """What one channel's responses say about its bot and platform."""

    def __init__(
        self,
        key: str,
        *,
        db: Database,
        channels: Channels,
        states: ChannelStates,
        outages: ChannelOutages,
        settings: JobSettings,
    ) -> None:
        self._key = key
        self._db = db
        self._channels = channels
        self._states = states
        self._outages = outages
        self.circuit = CircuitBreaker(
            failures=settings.outage_failures, trial_calls=settings.trial_calls
        )
        self.is_stopped = False
        #: Our changes that are being written: meanwhile the database's state is older than ours.
        self._writing = 0

    @property
    def blocks(self) -> bool:
        """Whether no call may be made: the bot is stopped, or the circuit is open."""
        return self.is_stopped or self.circuit.blocks

    @property
    def is_writing(self) -> bool:
        return self._writing > 0

    def synchronize(self, state: ChannelState | None) -> None:
        """Adopts the state in the database, which another process may have changed."""
        if self._writing:
            return
        # Nobody would ever report that a removed channel works again.
        is_here = self._channels.get(self._key) is not None
        self.is_stopped = is_here and state is not None and state.stopped
        is_out = is_here and state is not None and state.outage_since_ms is not None
        self.circuit.synchronize(is_out=is_out, trial=0 if state is None else state.outage_trial)

    async def end_outage(self, channel: Channel) -> None:
        async with self._writing_state("recovery_not_written") as tx:
            await self._outages.finish(tx, channel)

    async def failed(self, channel: Channel, error: DeliveryError, permit: Permit) -> None:
        """Reports to the circuit breaker whether the platform responded."""
        is_away = error.reason is Reason.PLATFORM_UNAVAILABLE
        if error.reason in ANSWERS and not isinstance(error, LocalFailure):
            if self.circuit.succeeded():
                await self.end_outage(channel)
        elif not is_away or isinstance(error, LocalFailure) or not self._is_current(channel):
            self.circuit.released(permit)
        else:
            opened = self.circuit.failed(permit)
            # The first failure may be due to the message itself: it has been retried once.
            error.outage = self.circuit.unanswered > 1
            if opened:
                await self._record_outage(channel, error, permit)

    async def stopped_by(self, channel: Channel, error: DeliveryError) -> bool:
        """Whether this error stops the bot. Only one message reports it; the others wait. An error of the
        channel's previous bot does not stop the new one, which repeats the call."""
        current = self._channels.get(self._key)
        if current is None:
            return True
        return current is channel and not self.is_stopped and await self._stop(channel, error)

    async def _stop(self, channel: Channel, error: DeliveryError) -> bool:
        """False if it was stopped already, or the stop could not be recorded."""
        self.is_stopped = True
        self._writing += 1
        try:
            async with self._db.transaction() as tx:
                return await self._states.stop(tx, channel, str(error.reason), error.text)
        except Exception:
            # The edge: the database or a plugin's hook failed. The next refresh will find the bot working,
            # and one call will be refused again; if each failure cost a message, all would be lost.
            log.exception("stop_not_written", channel=self._key)
            return False
        finally:
            self._writing -= 1

    def _is_current(self, channel: Channel) -> bool:
        """Whether the channel is unchanged: an old error of another bot says nothing about this one."""
        return self._channels.get(self._key) is channel

    async def _record_outage(self, channel: Channel, error: DeliveryError, permit: Permit) -> None:
        """Records an outage, or that a trial has failed."""
        async with self._writing_state("outage_not_written") as tx:
            if permit.trial is None or not await self._outages.trial_failed(
                tx, channel, permit.trial, error.text
            ):
                await self._outages.start(tx, channel, error.text)

    @asynccontextmanager
    async def _writing_state(self, failure: str) -> AsyncIterator[Tx]:
        """A transaction whose failure is logged as `failure`: the next refresh reads the database's state,
        and the next call reports the platform's state again."""
        self._writing += 1
        try:
            async with self._db.transaction() as tx:
                yield tx
        except Exception:
            log.exception(failure, channel=self._key)
        finally:
            self._writing -= 1
