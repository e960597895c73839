"""Whether bots receive: a failure that lasts is noted in the database, and ended by the first success.

Apart from how sending fares: a bot whose updates go to another program sends as ever. See
docs/decisions/0074-health-of-reception.md.
"""

from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

import structlog

from msgsvc_core.api.endpoint import Answer
from msgsvc_core.channels.contract import Channel
from msgsvc_core.db import DatabaseUnavailable, Tx
from msgsvc_core.kernel.clock import to_rfc3339

if TYPE_CHECKING:
    from msgsvc_core.service import Service

#: Characters of the detail that are kept.
DETAIL_LENGTH = 300

log = structlog.get_logger(__name__)


class InterruptionReason(StrEnum):
    """Why a bot receives nothing: asking for updates fails, the platform takes no address to call, or does
    not call it with success."""

    POLLING_FAILED = "polling_failed"
    WEBHOOK_NOT_SET = "webhook_not_set"
    WEBHOOK_NOT_CALLED = "webhook_not_called"


class ReceptionRecovered(Answer):
    """Fields of `channel.reception_recovered`; `channel` is the name."""

    channel: str


class ReceptionInterrupted(ReceptionRecovered):
    """Fields of `channel.reception_interrupted`: `since` is the first failure, `reason` is for programs,
    `detail` in the messenger's words."""

    since: str
    reason: InterruptionReason
    detail: str


class ReceptionAnswer(Answer):
    """How a bot receives. `since`, `reason` and `detail` say since when and why it does not; null while it
    does."""

    state: Literal["receiving", "interrupted"]
    since: str | None
    reason: InterruptionReason | None
    detail: str | None


class NotedReception(Protocol):
    """What is in the database of it."""

    @property
    def interrupted_since_ms(self) -> int | None: ...
    @property
    def interrupted_reason(self) -> str | None: ...
    @property
    def interrupted_detail(self) -> str | None: ...


def reception_of(channel: Channel, noted: NotedReception | None) -> ReceptionAnswer | None:
    """As it is shown; None for a bot that is to receive nothing."""
    if channel.receiving == "nothing":
        return None
    if noted is None or noted.interrupted_since_ms is None:
        return ReceptionAnswer(state="receiving", since=None, reason=None, detail=None)
    return ReceptionAnswer(
        state="interrupted",
        since=to_rfc3339(noted.interrupted_since_ms),
        reason=InterruptionReason(noted.interrupted_reason or InterruptionReason.POLLING_FAILED),
        detail=noted.interrupted_detail,
    )


class ReceptionHealth:
    """`service.reception_health`: which bots receive nothing, in the database."""

    def __init__(self, service: "Service") -> None:
        self._service = service

    async def interrupt(
        self, tx: Tx, channel: Channel, reason: InterruptionReason, detail: str, since_ms: int
    ) -> bool:
        """Notes that the bot receives nothing; False if that is known, and then only why is noted anew."""
        fields = {"channel": channel.key, "reason": str(reason), "detail": detail[:DETAIL_LENGTH]}
        now_ms = self._service.clock.now_ms()
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
        states = {state.channel: state for state in await self._service.channel_states.troubled(tx)}
        return {each.key: reception_of(each, states.get(each.key)) for each in channels}

    async def recover(self, tx: Tx, channel: Channel) -> bool:
        """Notes that the bot receives; False if it was not interrupted."""
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
        """Notifies the project whose own bot it is; a shared one is the operator's to know of."""
        project_id = channel.identity.project_id
        if project_id is not None:
            fields = {"channel": channel.name, **fields}
            await self._service.events.emit(tx, project_id, name, fields)


class ReceptionWatch:
    """Tells a failure that lasts from one that passes, for the process that receives for a bot.

    The database is written when something changes, not with every poll. Neither method raises: reception
    goes on whatever becomes of the note.
    """

    def __init__(self, service: "Service", channel: Channel) -> None:
        self._service = service
        self._channel = channel
        self._lasting_ms = service.settings.jobs.reception_failing_s * 1000
        #: The first failure of those in a row: its time, and the same on a clock that nobody sets.
        self._first: tuple[int, int] | None = None
        self._noted: tuple[InterruptionReason, str] | None = None
        #: At first by a process that had the bot before.
        self._may_be_noted = True

    async def failed(self, reason: InterruptionReason, detail: str) -> None:
        """Notes the interruption once it has lasted, and whatever else is found to be its reason then."""
        clock = self._service.clock
        if self._first is None:
            self._first = clock.now_ms(), clock.monotonic_ms()
        since_ms, began_ms = self._first
        if clock.monotonic_ms() - began_ms < self._lasting_ms or self._noted == (reason, detail):
            return
        if await self._note(
            lambda tx: self._service.reception_health.interrupt(
                tx, self._channel, reason, detail, since_ms
            )
        ):
            self._noted, self._may_be_noted = (reason, detail), True

    async def worked(self) -> None:
        """Ends the interruption, if there is one."""
        self._first = None
        if not self._may_be_noted:
            return
        if (self._noted is None and not await self._is_noted()) or await self._note(
            lambda tx: self._service.reception_health.recover(tx, self._channel)
        ):
            self._noted, self._may_be_noted = None, False

    async def _is_noted(self) -> bool:
        """Whether somebody may have noted an interruption: asked once, of what a process has left."""
        try:
            async with self._service.db.read() as tx:
                state = await self._service.channel_states.find(tx, self._channel.key)
        except DatabaseUnavailable:
            return True
        return state is not None and state.interrupted_since_ms is not None

    async def _note(self, write: Callable[[Tx], Awaitable[bool]]) -> bool:
        """Whether it was written. Not for a bot whose channel was changed meanwhile: that is another."""
        if self._service.channels.get(self._channel.key) is not self._channel:
            return False
        try:
            async with self._service.db.transaction() as tx:
                await write(tx)
        except DatabaseUnavailable as error:
            log.warning("reception_not_noted", channel=self._channel.key, error=str(error))
            return False
        except Exception:
            # The edge: an event's observer, say. Updates come all the same.
            log.exception("reception_not_noted", channel=self._channel.key)
            return False
        return True
