"""What follows when a message to an agent was sent."""

from collections.abc import Sequence

from msgsvc_core.jobs import Job, JobContext, JobSpec
from msgsvc_helpdesk.agents.desk import SENT_JOB, AgentDesk


async def note_sent(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """Keeps what the messenger calls each message, by which an answer to it is known."""
    desk = ctx.service.get(AgentDesk)
    for job in jobs:
        told = job.payload
        async with ctx.completing(job) as tx:
            await desk.sent(
                tx, told["project_id"], told["note_id"], told["shown"], told["message_ref"]
            )


SENT_SPEC = JobSpec(SENT_JOB, note_sent)
