"""Contexts of handlers in tests: of a job, and of an update."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from msgsvc_core.channels.failures import ForeignBot
from msgsvc_core.channels.inbound import Chat, InboundContext
from msgsvc_core.db import Database, Tx
from msgsvc_core.jobs.contract import Job, JobContext, NewJob, Reschedule
from msgsvc_core.kernel.ids import new_id


class JobInTest(JobContext):
    """The jobs stay claimed by this runner. `completed` contains the finished ones, `rescheduled` those
    rescheduled, each with the delay in seconds or the due time, `shrunk` the arguments of `shrink_file`."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.is_stopping = False
        self.completed: list[Job] = []
        self.rescheduled: list[tuple[Job, float | None]] = []
        self.shrunk: list[int] = []

    @property
    def stopping(self) -> bool:
        return self.is_stopping

    def transaction(self) -> AbstractAsyncContextManager[Tx]:
        return self.db.transaction()

    def statement(self) -> AbstractAsyncContextManager[Tx]:
        return self.db.transaction(one_statement=True)

    def reading(self) -> AbstractAsyncContextManager[Tx]:
        return self.db.read()

    def holding(self, *jobs: Job) -> AbstractAsyncContextManager[Tx]:
        return self.db.transaction()

    async def progressed(self, tx: Tx, *jobs: Job) -> None:
        """Crashes are not counted."""

    @asynccontextmanager
    async def completing(
        self, *jobs: Job, first: Callable[[Tx], Awaitable[object]] | None = None
    ) -> AsyncIterator[Tx]:
        async with self.db.transaction() as tx:
            if first is not None:
                await first(tx)
            yield tx
        self.completed += jobs

    @asynccontextmanager
    async def rescheduling(
        self, job: Job, *, after_s: float, counts: bool = True
    ) -> AsyncIterator[Tx]:
        async with self.db.transaction() as tx:
            yield tx
        self.rescheduled.append((job, after_s))

    def putting_back(self, back: Sequence[Reschedule]) -> AbstractAsyncContextManager[Tx]:
        return self.settling((), back)

    @asynccontextmanager
    async def settling(
        self, done: Sequence[Job], back: Sequence[Reschedule] = ()
    ) -> AsyncIterator[Tx]:
        async with self.db.transaction() as tx:
            yield tx
        self.completed += done
        self.rescheduled += [(each.job, each.at_ms) for each in back]

    async def shrink_file(self, *, above: int = 0) -> None:
        self.shrunk.append(above)

    def forget(self, *jobs: Job) -> None:
        self.completed += jobs


def claimed(new: NewJob, *, attempts: int = 1, now_ms: int = 0) -> Job:
    """A claimed job."""
    return Job(
        job_id=new_id("job"),
        name=new.name,
        lane=new.lane,
        payload=new.payload,
        attempts=attempts,
        deliveries=attempts,
        created_at_ms=now_ms,
        project_id=new.project_id,
        priority=new.priority,
        run_at_ms=new.run_at_ms or now_ms,
    )


class InboundInTest(InboundContext):
    """An update in a chat. `chat` is changed at once."""

    async def enter_project(self, project_id: str) -> None:
        if not self.serves(project_id):
            raise ForeignBot(f"the bot {self.channel} serves another project")
        self.chat = Chat(self.channel, self.update.chat_id, project_id)
