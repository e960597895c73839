"""Job that runs after a message to an agent was sent."""

from collections.abc import Sequence

from msgsvc_core.jobs import Job, JobContext, JobSpec
from msgsvc_helpdesk.agents.desk import SENT_JOB, AgentDesk


class SentNotes:
    """The job that records messages sent to agents."""

    def __init__(self, *, desk: AgentDesk) -> None:
        self._desk = desk

    @property
    def spec(self) -> JobSpec:
        return JobSpec(SENT_JOB, self.record_sent)

    async def record_sent(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Keeps what the messenger calls each message, by which an answer to it is known."""
        for job in jobs:
            told = job.payload
            async with ctx.completing(job) as tx:
                await self._desk.sent(
                    tx, told["project_id"], told["note_id"], told["shown"], told["message_ref"]
                )
