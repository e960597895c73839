"""The order of sends in a chat, with concurrent batches and rescheduled jobs."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Hashable, Iterable
from contextlib import asynccontextmanager

from msgsvc_core.jobs.contract import Job


class FifoKeyLock:
    """FIFO mutual exclusion per key.

    A lane of a channel is drained by one runner, so a lock in this process is enough.
    """

    def __init__(self) -> None:
        #: The holders of each key, and those that wait.
        self._under_way: defaultdict[Hashable, set[asyncio.Future[None]]] = defaultdict(set)

    @asynccontextmanager
    async def acquire(self, keys: Iterable[Hashable]) -> AsyncIterator[None]:
        """Waits until all earlier holders of any of `keys` have finished, then runs the block."""
        own = set(keys)
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        earlier = {future for key in own for future in self._under_way.get(key, ())}
        for key in own:
            self._under_way[key].add(ended)
        try:
            if earlier:
                await asyncio.wait(earlier)
            yield
        finally:
            for key in own:
                self._under_way[key].discard(ended)
                if not self._under_way[key]:
                    del self._under_way[key]
            ended.set_result(None)


class RetryOrder:
    """Rescheduled jobs, which later jobs for the same recipient must not overtake.

    Without this, a message that is retried in a minute would arrive after those that were queued behind it.
    In the memory of the process that owns the lane; the next owner starts from the database.
    """

    def __init__(self) -> None:
        #: The time until which each job was rescheduled, in Unix milliseconds, and the last claim before
        #: that, by priority and recipient, and id. More urgent jobs may overtake.
        self._waiting: dict[Hashable, dict[str, tuple[int, int]]] = {}
        #: The claims by which the current jobs of the lane were claimed, by id; they are numbered.
        self._claims: dict[str, int] = {}
        self._last_claim = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def claimed(self, jobs: Iterable[Job]) -> None:
        """Records that these jobs were claimed together."""
        self._last_claim += 1
        self._claims.update((job.job_id, self._last_claim) for job in jobs)

    def ended(self, jobs: Iterable[Job]) -> None:
        """Records that the handlers of these jobs have ended."""
        for job in jobs:
            self._claims.pop(job.job_id, None)

    def record(self, job: Job, until_ms: int) -> None:
        """Records that `job` was rescheduled until then."""
        waiting = self._waiting.setdefault((job.priority, receiver_of(job)), {})
        waiting[job.job_id] = until_ms, self._last_claim

    def behind(self, job: Job) -> int | None:
        """The time until which a claimed `job` must wait for an earlier one; None if it need not."""
        key = job.priority, receiver_of(job)
        waiting = self._waiting.get(key)
        if waiting is None:
            return None
        waiting.pop(job.job_id, None)
        # Ids sort by creation, and a lane is claimed by due time: a job that was due before this one and was
        # not claimed with it or before is gone. Not one that was rescheduled after the claim of this one: if
        # the clock has been set back since, it is due earlier by the new time.
        claim = self._claims.get(job.job_id, self._last_claim + 1)
        earlier = [job_id for job_id in waiting if job_id < job.job_id]
        for job_id in earlier:
            until_ms, before = waiting[job_id]
            if until_ms <= job.run_at_ms and before < claim:
                del waiting[job_id]
        ahead = [waiting[job_id][0] for job_id in earlier if job_id in waiting]
        if not waiting:
            del self._waiting[key]
        return max(ahead, default=None)

    def forget(self) -> None:
        self._waiting.clear()


def receiver_of(job: Job) -> Hashable:
    """The recipient of a job: jobs of a lane with the same recipient run in the order of their creation.

    Two bots may use the same chat id for a user, and do not wait for each other.
    """
    payload = job.payload
    # A job of an earlier release may have no recipient; an answer to a button has none.
    receiver = (
        payload.get("subscriber_id")
        or payload.get("chat_id")
        or payload.get("message_id")
        or job.job_id
    )
    return job.lane, job.name, job.project_id, receiver
