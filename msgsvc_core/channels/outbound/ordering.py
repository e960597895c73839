"""The order of sends in a chat, with concurrent batches and rescheduled jobs."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Hashable, Iterable
from contextlib import asynccontextmanager

from msgsvc_core.jobs.contract import Job

#: Milliseconds after which a job is tried again that waits for an interrupted one.
INTERRUPTED_MS = 200


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
        #: that, by place and id.
        self._waiting: dict[Hashable, dict[str, tuple[int, int]]] = {}
        #: Jobs that the lane's previous owner was running and that have not ended since, by place. One
        #: during which several runners crashed is claimed alone, maybe after jobs behind it.
        self._interrupted: dict[Hashable, set[str]] = {}
        #: The current jobs of the lane, by id, with the number of the claim by which each was claimed.
        self._claims: dict[str, tuple[int, Job]] = {}
        self._last_claim = 0

    def __bool__(self) -> bool:
        return bool(self._waiting or self._interrupted)

    @property
    def has_interrupted(self) -> bool:
        return bool(self._interrupted)

    def interrupted(self, jobs: Iterable[Job]) -> None:
        """Records that just these jobs of the lane's previous owner have not been claimed yet."""
        running = {key: ids & self._claims.keys() for key, ids in self._interrupted.items()}
        self._interrupted = {key: ids for key, ids in running.items() if ids}
        for job in jobs:
            self._interrupted.setdefault(_place(job), set()).add(job.job_id)

    def claimed(self, jobs: Iterable[Job]) -> None:
        """Records that these jobs were claimed together."""
        self._last_claim += 1
        self._claims.update((job.job_id, (self._last_claim, job)) for job in jobs)

    def ended(self, jobs: Iterable[Job]) -> None:
        """Records that the handlers of these jobs have ended."""
        for job in jobs:
            claimed = self._claims.get(job.job_id)
            if claimed is None or claimed[1] is not job:
                # It was rescheduled before its batch ended, and has been claimed again.
                continue
            del self._claims[job.job_id]
            if (waiting := self._waiting.get(_place(job))) and job.job_id in waiting:
                # Only now it can be claimed again: claims until here have missed it.
                waiting[job.job_id] = waiting[job.job_id][0], self._last_claim
            if self._interrupted and (ids := self._interrupted.get(_place(job))):
                ids.discard(job.job_id)
                if not ids:
                    del self._interrupted[_place(job)]

    def record(self, job: Job, until_ms: int) -> None:
        """Records that `job` was rescheduled until then."""
        waiting = self._waiting.setdefault(_place(job), {})
        waiting[job.job_id] = until_ms, self._last_claim

    def behind(self, job: Job, now_ms: int) -> int | None:
        """The time until which a claimed `job` must wait for an earlier one; None if it need not."""
        key = _place(job)
        claim = self._claim_of(job.job_id)
        for job_id in self._interrupted.get(key, ()):
            # One that was claimed with this job, or before it, has the earlier turn.
            if job_id < job.job_id and (
                job_id not in self._claims or self._claim_of(job_id) > claim
            ):
                return now_ms + INTERRUPTED_MS
        waiting = self._waiting.get(key)
        if waiting is None:
            return None
        waiting.pop(job.job_id, None)
        # Ids sort by creation, and a lane is claimed by due time: a job that was due before this one and was
        # not claimed with it or before is gone. Not one that was rescheduled after the claim of this one: if
        # the clock has been set back since, it is due earlier by the new time.
        earlier = [job_id for job_id in waiting if job_id < job.job_id]
        for job_id in earlier:
            until_ms, before = waiting[job_id]
            if until_ms <= job.run_at_ms and before < claim and job_id not in self._claims:
                del waiting[job_id]
        ahead = [waiting[job_id][0] for job_id in earlier if job_id in waiting]
        if not waiting:
            del self._waiting[key]
        return max(ahead, default=None)

    def _claim_of(self, job_id: str) -> int:
        claimed = self._claims.get(job_id)
        return self._last_claim + 1 if claimed is None else claimed[0]

    def forget(self) -> None:
        self._waiting.clear()
        self._interrupted.clear()


def _place(job: Job) -> Hashable:
    """Jobs of one place run in the order of their creation; more urgent ones may overtake."""
    return job.priority, receiver_of(job)


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
