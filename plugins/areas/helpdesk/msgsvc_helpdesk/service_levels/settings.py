"""The service levels that projects have chosen."""

from msgsvc_core.db import Tx
from msgsvc_core.jobs import NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_helpdesk.service_levels import store
from msgsvc_helpdesk.service_levels.models import SlaTargets, UpdateSlaBody, read_sla

#: Brings the tickets of a project in line with changed settings.
REFRESH_JOB = "helpdesk.sla_refresh"


class SlaSettings:
    """The service levels of all projects."""

    def __init__(self, *, jobs: JobQueue) -> None:
        self._jobs = jobs

    async def settings(self, tx: Tx, project_id: str) -> SlaTargets:
        """The project's own; no targets while it has none."""
        return read_sla((await store.find_settings(tx, project_id))[0])

    async def change(self, tx: Tx, project_id: str, body: UpdateSlaBody) -> SlaTargets:
        """The project's service levels after the change. Tickets follow soon."""
        await tx.lock(f"helpdesk settings of {project_id}")
        changes = {name: getattr(body, name) for name in body.model_fields_set}
        changed = (await self.settings(tx, project_id)).model_copy(update=changes)
        await store.write_settings(tx, project_id, changed.model_dump_json())
        await self.refresh(tx, project_id)
        return changed

    async def refresh(self, tx: Tx, project_id: str) -> None:
        """Has the project's tickets follow its settings, if it ever had service levels."""
        if (await store.find_settings(tx, project_id))[0] is not None:
            job = NewJob(REFRESH_JOB, {"project_id": project_id}, project_id=project_id)
            await self._jobs.enqueue(tx, job)
