"""Limits against toll fraud: how much goes out to a number, a prefix, for a project and in all.

Fraud of this kind asks for codes to many numbers of one prefix, which cost much to write to and belong to who
shares in the price. So numbers that were never written to are counted apart, by their prefix.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal

import structlog

from msgsvc_core.channels import ChannelIdentity, DeliveryError, Reason
from msgsvc_core.channels.failures import LimitReached, LocalFailure
from msgsvc_core.db import Database, DatabaseUnavailable, Tx
from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS, Clock, to_rfc3339
from msgsvc_core.kernel.values import value_object
from msgsvc_core.security import SecretBox
from msgsvc_sms import store
from msgsvc_sms.operators import Operators
from msgsvc_sms.settings import LimitSettings

#: The limits in the order in which counters are locked: the same for every message, so that no two wait for
#: each other.
Rule = Literal[
    "number_hour",
    "number_day",
    "prefix_hour",
    "new_numbers_hour",
    "new_numbers_day",
    "project_hour",
    "project_day",
    "segments_day",
]

#: What a limit says, for people.
_SAYS: Mapping[str, str] = {
    "number_hour": "{most} messages an hour to one number",
    "number_day": "{most} messages a day to one number",
    "prefix_hour": "{most} messages an hour to numbers that begin with +{subject}",
    "new_numbers_hour": "{most} new numbers an hour that begin with +{subject}",
    "new_numbers_day": "{most} new numbers a day that begin with +{subject}",
    "project_hour": "{most} segments an hour for one project",
    "project_day": "{most} segments a day for one project",
    "segments_day": "{most} segments a day for the channel",
}

log = structlog.get_logger(__name__)


@value_object
class Counter:
    """What a message counts for, until the end of its window."""

    rule: Rule
    subject: str
    ends_at_ms: int
    count: int
    most: int

    @property
    def says(self) -> str:
        return _SAYS[self.rule].format(most=self.most, subject=self.subject)


@value_object
class Debit:
    """The counters that a message was counted in before its call."""

    counters: tuple[Counter, ...]
    number_hash: str


class _Full(Exception):
    def __init__(self, counter: Counter) -> None:
        self.counter = counter


class Limits:
    """The limits of one channel. Counters are rows, so that all processes count together."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        secrets: SecretBox,
        identity: ChannelIdentity,
        settings: LimitSettings,
    ) -> None:
        self._clock = clock
        self._db = db
        self._secrets = secrets
        self._identity = identity
        self._settings = settings

    async def debit(
        self, number: str, segments: int, project_id: str | None, operators: Operators
    ) -> Debit:
        """Counts a message before it is sent. Raises `LimitReached`, and tells the operator."""
        project_id = project_id or self._identity.project_id
        try:
            return await self._debit(number, segments, project_id)
        except _Full as full:
            counter = full.counter
        except DatabaseUnavailable as error:
            raise _waits(error) from error
        with suppress(DatabaseUnavailable):
            await self._tell(counter, project_id, operators)
        raise LimitReached(f"a limit of the channel is reached: {counter.says}")

    async def settle(self, debit: Debit, failure: DeliveryError | None) -> None:
        """After the call: the number is known from now on, or nothing was sent and nothing counts."""
        try:
            async with self._db.transaction() as tx:
                if failure is None or failure.in_doubt:
                    now_ms = self._clock.now_ms()
                    await store.upsert_number(tx, self._identity.key, debit.number_hash, now_ms)
                    return
                for each in debit.counters:
                    await store.refund(
                        tx, self._identity.key, each.rule, each.subject, each.ends_at_ms, each.count
                    )
        except DatabaseUnavailable as error:
            # It counts for more than was sent, which does no harm.
            log.warning("limit_not_settled", channel=self._identity.key, error=str(error))

    async def limitation(self, tx: Tx) -> str | None:
        """What stops messages now, for an operator. One number that has had enough is no trouble."""
        now_ms = self._clock.now_ms()
        found = [
            self._said(block)
            for block in await store.list_blocks(tx, self._identity.key, now_ms)
            if not block.rule.startswith("number_")
        ]
        return "; ".join(found) or None

    async def lift(self, tx: Tx) -> int:
        """Ends all blocks; how many there were."""
        blocks = await store.list_blocks(tx, self._identity.key, self._clock.now_ms())
        for block in blocks:
            await store.lift(tx, self._identity.key, block)
        if blocks:
            tx.on_commit(
                lambda: log.warning(
                    "limits_lifted", channel=self._identity.key, kinds=_names(blocks)
                )
            )
        return len(blocks)

    async def _debit(self, number: str, segments: int, project_id: str | None) -> Debit:
        key = self._identity.key
        hashes = self._secrets.keyed_hashes("sms number", f"{key} {number}")
        async with self._db.transaction() as tx:
            is_new = not await store.is_known(tx, key, hashes)
            counters = self._counters(number, hashes[0], segments, project_id, is_new=is_new)
            for each in counters:
                if not await store.debit(
                    tx, key, each.rule, each.subject, each.ends_at_ms, each.count, each.most
                ):
                    raise _Full(each)
        return Debit(tuple(counters), hashes[0])

    def _counters(
        self, number: str, number_hash: str, segments: int, project_id: str | None, *, is_new: bool
    ) -> list[Counter]:
        limits, now_ms = self._settings, self._clock.now_ms()
        hour, day = (now_ms - now_ms % each + each for each in (HOUR_MS, DAY_MS))
        prefix = number.lstrip("+")[: limits.prefix_digits]
        wanted: list[tuple[Rule, str, int, int, int]] = [
            ("number_hour", number_hash, hour, 1, limits.number_hour),
            ("number_day", number_hash, day, 1, limits.number_day),
            ("prefix_hour", prefix, hour, 1, limits.prefix_hour),
        ]
        if is_new:
            wanted += [
                ("new_numbers_hour", prefix, hour, 1, limits.new_numbers_hour),
                ("new_numbers_day", prefix, day, 1, limits.new_numbers_day),
            ]
        if project_id is not None:
            wanted += [
                ("project_hour", project_id, hour, segments, limits.project_hour),
                ("project_day", project_id, day, segments, limits.project_day),
            ]
        wanted.append(("segments_day", "", day, segments, limits.segments_day))
        return [Counter(*each) for each in wanted if each[-1] > 0]

    async def _tell(self, counter: Counter, project_id: str | None, operators: Operators) -> None:
        now_ms = self._clock.now_ms()
        async with self._db.transaction() as tx:
            first = await store.note_block(
                tx, self._identity.key, counter.rule, counter.subject, now_ms, counter.ends_at_ms
            )
            await operators.limit_reached(
                tx,
                self._identity,
                project_id,
                rule=counter.rule,
                says=counter.says,
                ends_at_ms=counter.ends_at_ms,
                first=first,
            )

    def _said(self, block: store.Block) -> str:
        most = getattr(self._settings, block.rule)
        limit = _SAYS[block.rule].format(most=most, subject=block.subject)
        until = to_rfc3339(block.ends_at_ms)
        return f"{limit}: {block.refused} stopped, until {until}"


def _names(blocks: Sequence[store.Block]) -> str:
    return ", ".join(sorted({block.rule for block in blocks}))


def _waits(error: DatabaseUnavailable) -> LocalFailure:
    # The platform was not called.
    return LocalFailure(Reason.PLATFORM_UNAVAILABLE, "the service has to wait")
