"""Who is next in a chat, where several batches are under way at once, and jobs go back to wait."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Hashable, Iterable
from contextlib import asynccontextmanager

from msgsvc_core.jobs.contract import Job


class FifoKeyLock:
    """Lets who shares a key go one after another, in the order in which they came.

    A lane of a channel is drained by one runner, so knowing of this process is enough.
    """

    def __init__(self) -> None:
        #: Who has come and not ended yet, by key.
        self._under_way: defaultdict[Hashable, set[asyncio.Future[None]]] = defaultdict(set)

    @asynccontextmanager
    async def acquire(self, keys: Iterable[Hashable]) -> AsyncIterator[None]:
        """The block begins when all who came earlier with one of `keys` have left theirs."""
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
    """Jobs that were put back, and which later ones for the same receiver must not overtake.

    Without these a message that is tried again in a minute would be shown after those that were
    queued behind it. Known to the process that owns the lane, and read anew by the next.
    """

    def __init__(self) -> None:
        #: Until when each job was put back, in Unix milliseconds, by its priority and receiver, and id.
        #: What is more urgent may overtake.
        self._waiting: dict[Hashable, dict[str, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def record(self, job: Job, until_ms: int) -> None:
        """`job` was put back until then."""
        self._waiting.setdefault((job.priority, receiver_of(job)), {})[job.job_id] = until_ms

    def behind(self, job: Job) -> int | None:
        """Until when `job`, which was claimed, must wait for an earlier one; None if for none."""
        key = job.priority, receiver_of(job)
        waiting = self._waiting.get(key)
        if waiting is None:
            return None
        waiting.pop(job.job_id, None)
        # Ids sort by creation, and a lane is claimed in the order of its due times: what was due before
        # this job and has not come is gone.
        earlier = [job_id for job_id in waiting if job_id < job.job_id]
        for job_id in earlier:
            if waiting[job_id] <= job.run_at_ms:
                del waiting[job_id]
        ahead = [waiting[job_id] for job_id in earlier if job_id in waiting]
        if not waiting:
            del self._waiting[key]
        return max(ahead, default=None)

    def forget(self) -> None:
        self._waiting.clear()


def receiver_of(job: Job) -> Hashable:
    """Jobs of a lane with the same receiver are done in the order in which they were enqueued.

    Two bots may know a person by the same chat, and must not wait for each other.
    """
    payload = job.payload
    # A job that an earlier release wrote may name no receiver; a button's answer has none.
    receiver = (
        payload.get("subscriber_id")
        or payload.get("chat_id")
        or payload.get("message_id")
        or job.job_id
    )
    return job.lane, job.name, job.project_id, receiver
