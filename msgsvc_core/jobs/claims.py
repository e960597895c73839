"""Claims jobs of several lanes in one transaction.

Jobs of different lanes share database pages, because what is written together is stored together: claiming
per lane rewrote each page once per lane.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from msgsvc_core.db import Database, TransactionBatcher, Tx, shielded
from msgsvc_core.jobs import store
from msgsvc_core.jobs.contract import Job
from msgsvc_core.jobs.lease_clock import LeaseClock, SetBack
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.values import value_object


@dataclass(frozen=True, slots=True)
class Lease:
    """Identity of a runner, the duration of its leases, and the clock by which it checks others' leases."""

    runner_id: str
    duration_ms: int
    clock: LeaseClock


@value_object
class _Wanted:
    """Up to `limit` jobs of a lane; with `suspects` also those during which other runners crashed."""

    lane: str
    limit: int
    suspects: bool


@value_object
class Claimed:
    """The claimed jobs of a lane, and when the next waiting one is due, in Unix milliseconds; None if
    there was none."""

    jobs: Sequence[Job]
    due_ms: int | None


class Claims:
    """Claims jobs of `names` for one runner, under its lease."""

    def __init__(self, db: Database, clock: Clock, lease: Lease, names: Sequence[str]) -> None:
        self._clock = clock
        self._lease = lease
        self._names = names
        #: By lane, after which setting of the clock its jobs were ordered again.
        self._ordered: dict[str, SetBack] = {}
        # Not durable by itself: the outcomes of the jobs are committed later, and durably.
        self._together = TransactionBatcher(
            db, self._claim_all, inline=True, durable=False, background=True, wait_s=None
        )

    async def claim(
        self, lane: str, limit: int, *, suspects: bool, tx: Tx | None = None
    ) -> Claimed:
        """Claims due jobs, batched with other lanes; with `tx`, in that transaction.

        Raises `DatabaseUnavailable`. A caller that is cancelled returns when nothing more can be claimed for
        it: a runner that stops releases its jobs afterwards.
        """
        wanted = _Wanted(lane, limit, suspects)
        if tx is not None:
            return await self._claim(tx, wanted)
        return await shielded(self._together.submit(wanted))

    async def _claim_all(self, tx: Tx, wanted: Sequence[_Wanted]) -> list[Claimed]:
        return [await self._claim(tx, one) for one in wanted]

    async def _claim(self, tx: Tx, wanted: _Wanted) -> Claimed:
        now_ms, over_ms = self._clock.now_ms(), self._lease.clock.over_ms()
        found = await store.read_lane(tx, wanted.lane)
        if await self._order_again(tx, wanted.lane, found):
            found = await store.read_lane(tx, wanted.lane)
        jobs = await store.claim(
            tx,
            wanted.lane,
            self._names,
            found,
            runner_id=self._lease.runner_id,
            now_ms=now_ms,
            over_ms=over_ms,
            lease_ms=self._lease.duration_ms,
            limit=wanted.limit,
            suspects=wanted.suspects,
        )
        return Claimed(jobs, found.due_ms)

    async def _order_again(self, tx: Tx, lane: str, found: store.LaneSnapshot) -> bool:
        """After the clock was set back, once for a lane: what was enqueued before that is due, in order.
        Later on, jobs that were rescheduled since look the same: due before they were created."""
        set_back = self._lease.clock.set_back
        if set_back is None or self._ordered.get(lane) == set_back:
            return False
        tx.on_commit(partial(self._ordered.__setitem__, lane, set_back))
        return await store.order_again(
            tx, lane, found, to_ms=set_back.to_ms, from_ms=set_back.from_ms
        )
