"""Deletes queued system messages to an erased subscriber's chat."""

from msgsvc_core.channels.system_messages.outbox import JOB, OPEN_THREAD
from msgsvc_core.jobs.contract import JobContext
from msgsvc_core.jobs.queue import JobQueue


async def erase_calls(
    ctx: JobContext, jobs: JobQueue, lane: str, chat_id: str, until_ms: int
) -> None:
    """Deletes a lane's jobs that write to a deleted chat, created until `until_ms`."""
    async with ctx.reading() as tx:
        found = [
            job
            for name in (JOB, OPEN_THREAD)
            for job in await jobs.find_unclaimed(
                tx, lane, name, until_ms=until_ms, containing=chat_id
            )
        ]
    # The text may stand anywhere in a payload.
    calls = [job_id for job_id, payload in found if payload.get("chat_id") == chat_id]
    if calls:
        async with ctx.transaction() as tx:
            await jobs.discard_unclaimed(tx, calls)
