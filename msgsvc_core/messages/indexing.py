"""On SQLite: adds messages to the index by subscriber, many at a time.

SQLite writes whole pages, and each message of a batch has its subscriber on another page of that index. When
added by the thousand, many share a page, and no request or delivery waits for it. Until then a message is
found by the index of those that are not added yet. See docs/decisions/0012-group-commit.md.
"""

from collections.abc import Callable, Sequence

from msgsvc_core.db import Database
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec

JOB = "messages.file"

#: Columns that a copy of the database leaves out, with the reason.
NOT_COPIED = {"core_messages.filed": "SQLite alone has it, and the job fills it again"}

#: Seconds between two runs. Queries by subscriber scan the messages since the last one.
EVERY_S = 30.0

#: Messages per transaction: some 15 ms, for which other writers wait.
AT_ONCE = 1000


async def file_all(db: Database, *, is_over: Callable[[], bool] = lambda: False) -> None:
    """Adds all pending messages, or until `is_over`; PostgreSQL has none."""
    while db.dialect == "sqlite" and not is_over() and await _file_some(db):
        pass


async def _file_some(db: Database) -> bool:
    """Whether there may be more."""
    async with db.transaction() as tx:
        filed = await tx.execute(
            "UPDATE core_messages SET filed = 1 WHERE rowid IN (SELECT rowid FROM core_messages"
            " INDEXED BY core_messages_unfiled WHERE filed IS NULL LIMIT :most)",
            {"most": AT_ONCE},
        )
    return filed == AT_ONCE


class MessageFiling:
    """The job that does this every half minute."""

    def __init__(self, *, db: Database) -> None:
        self._db = db

    @property
    def spec(self) -> JobSpec:
        return JobSpec(JOB, self._run, every_s=EVERY_S)

    async def _run(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        # Messages pending at shutdown are added after the next start.
        await file_all(self._db, is_over=lambda: ctx.stopping)
