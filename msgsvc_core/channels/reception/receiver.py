"""Receives bots' updates: each bot is assigned to one process of the deployment at a time.

The assignment is a lease in `core_lanes`. The owner registers the webhook or polls, and refreshes the bot's
profile from time to time. Leases of a crashed process expire.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

import structlog

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.reception.bot_receiver import BotReceiver, Lease
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Database, DatabaseUnavailable
from msgsvc_core.jobs import lanes
from msgsvc_core.jobs.lease_clock import LeaseClock
from msgsvc_core.kernel.aio import cancel_and_wait
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_id

#: Prefix of bot leases; no lane of jobs starts with it.
PREFIX = "receive:"

#: Unassigned bots that are leased in one transaction.
BOTS_AT_ONCE = 100

#: Bots whose menus are registered at the same time. What receives updates goes first: at the start of a
#: thousand bots their menus are half of all calls.
MENUS_AT_ONCE = 20

#: Checks for unassigned bots per duration of a lease.
LOOKS_A_LEASE = 10

#: Renewals of a lease within its duration.
RENEWALS_A_LEASE = 3

log = structlog.get_logger(__name__)


class UpdateReceiver:
    """Receives for the bots that this process leases. `new_reception` makes the
    receiver of one bot."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        channels: Channels,
        lease_s: float,
        new_reception: Callable[[Channel, Lease, asyncio.Semaphore], BotReceiver],
    ) -> None:
        self._clock = clock
        self._db = db
        self._channels = channels
        self._new_reception = new_reception
        self._owner = new_id("rcv")
        self._lease_ms = round(lease_s * 1000)
        self._lease_clock = LeaseClock(clock, self._lease_ms)
        #: Time, by the loop's clock, until which our leases are certainly valid.
        self._ours_until = 0.0
        self._renewed_at = 0.0
        self._tasks: dict[str, tuple[Channel, asyncio.Task[None]]] = {}
        self._menus = asyncio.Semaphore(MENUS_AT_ONCE)
        self._woken = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        channels.watch(self._woken.set)

    async def start(self) -> None:
        """Starts receiving."""
        self._keeper = asyncio.create_task(self._run(), name="keep bots")

    async def stop(self) -> None:
        """Stops receiving, and releases the bots to other processes immediately.

        Updates being handled are committed, or will be delivered again.
        """
        if self._keeper is None:
            return
        await cancel_and_wait(self._keeper)
        self._keeper = None
        await self._stop_tasks(list(self._tasks))
        try:
            async with self._db.transaction() as tx:
                await lanes.release(tx, runner_id=self._owner)
        except DatabaseUnavailable as error:
            log.warning("bots_not_released", error=str(error))

    async def _run(self) -> None:
        look_s = self._lease_ms / 1000 / LOOKS_A_LEASE
        while True:
            self._woken.clear()
            try:
                await self._refresh()
            except DatabaseUnavailable as error:
                log.warning("bots_not_kept", error=str(error))
                await self._stop_doubtful()
            except Exception:
                # The edge: after any failure, the next round may succeed.
                log.exception("bots_not_kept")
                await self._stop_doubtful()
            with suppress(TimeoutError):
                async with asyncio.timeout(look_s):
                    await self._woken.wait()

    async def _refresh(self) -> None:
        """Renews our leases, stops bots that have changed or were taken over, and leases free ones."""
        wanted = {
            PREFIX + channel.key: channel
            for channel in self._channels
            if channel.receiving != "nothing"
        }
        changed = [
            lane for lane, (channel, _) in self._tasks.items() if wanted.get(lane) is not channel
        ]
        await self._stop_tasks(changed)
        await self._renew()
        free = wanted.keys() - self._tasks.keys()
        if not free:
            return
        async with self._db.read() as tx:
            free -= await lanes.owned_by_others(
                tx, runner_id=self._owner, over_ms=self._lease_clock.over_ms()
            )
        # In order, so that processes that lease the same bots wait for each other, and in no circle.
        ordered = sorted(free)
        for at in range(0, len(ordered), BOTS_AT_ONCE):
            for lane in await self._own(ordered[at : at + BOTS_AT_ONCE]):
                self._start(lane, wanted[lane])

    async def _renew(self) -> None:
        """Renews our leases after a third of their duration; stops bots that another process took over."""
        now = asyncio.get_running_loop().time()
        lease_s = self._lease_ms / 1000
        if not self._tasks or now - self._renewed_at < lease_s / RENEWALS_A_LEASE:
            return
        async with self._db.transaction() as tx:
            ours = await lanes.renew_owned(
                tx, runner_id=self._owner, until_ms=self._clock.now_ms() + self._lease_ms
            )
        self._renewed_at, self._ours_until = now, now + lease_s
        lost = [lane for lane in self._tasks if lane not in ours]
        if lost:
            log.warning("bots_lost", count=len(lost))
            await self._stop_tasks(lost)

    async def _own(self, free: Sequence[str]) -> list[str]:
        """Leases bots; returns the lanes of those that are ours now."""
        now = asyncio.get_running_loop().time()
        # A lease need not survive a power cut, which ends this process too.
        async with self._db.transaction(inline=True, durable=False) as tx:
            owned = [
                lane
                for lane in free
                if await lanes.own(
                    tx,
                    lane,
                    runner_id=self._owner,
                    now_ms=self._clock.now_ms(),
                    over_ms=self._lease_clock.over_ms(),
                    lease_ms=self._lease_ms,
                )
            ]
        if owned and not self._tasks:
            self._renewed_at, self._ours_until = now, now + self._lease_ms / 1000
        return owned

    def _start(self, lane: str, channel: Channel) -> None:
        lease = Lease(lane, self._owner, self._is_ours)
        reception = self._new_reception(channel, lease, self._menus)
        task = asyncio.create_task(reception.run(), name=f"receive {channel.key}")
        self._tasks[lane] = (channel, task)

    def _is_ours(self) -> bool:
        return asyncio.get_running_loop().time() < self._ours_until

    async def _stop_doubtful(self) -> None:
        """Stops all bots if our leases may have expired while the database was unavailable."""
        if self._tasks and not self._is_ours():
            await self._stop_tasks(list(self._tasks))

    async def _stop_tasks(self, names: list[str]) -> None:
        await cancel_and_wait(*[self._tasks.pop(lane)[1] for lane in names])
