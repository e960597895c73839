"""The service levels that projects have chosen."""

from msgsvc_core.db import Tx
from msgsvc_core.jobs import NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_helpdesk.service_levels import store
from msgsvc_helpdesk.service_levels.models import SlaBody, read_sla

#: Brings the tickets of a project in line with changed settings.
REFRESH_JOB = "helpdesk.sla_refresh"


class SlaSettings:
    """The service levels of all projects."""

    def __init__(self, *, jobs: JobQueue) -> None:
        self._jobs = jobs

    async def settings(self, tx: Tx, project_id: str) -> SlaBody:
        """The project's own; no targets while it has none."""
        return read_sla((await store.find_settings(tx, project_id))[0])

    async def change(self, tx: Tx, project_id: str, settings: SlaBody) -> None:
        """Puts these in place of the project's service levels. Tickets follow soon."""
        await store.write_settings(tx, project_id, settings.model_dump_json())
        await self.refresh(tx, project_id)

    async def refresh(self, tx: Tx, project_id: str) -> None:
        """Has the project's tickets follow its settings, if it ever had service levels."""
        if (await store.find_settings(tx, project_id))[0] is not None:
            job = NewJob(REFRESH_JOB, {"project_id": project_id}, project_id=project_id)
            await self._jobs.enqueue(tx, job)
