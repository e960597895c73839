"""The business hours of desks."""

from msgsvc_core.db import Tx
from msgsvc_helpdesk.service_levels import store
from msgsvc_helpdesk.service_levels.business_hours import BusinessHours
from msgsvc_helpdesk.service_levels.hours_models import (
    HoursSettings,
    UpdateHoursBody,
    business_hours,
    in_order,
    read_hours,
)
from msgsvc_helpdesk.service_levels.settings import SlaSettings


class DeskHours:
    """The business hours of all projects."""

    def __init__(self, *, sla: SlaSettings) -> None:
        self._sla = sla

    async def settings(self, tx: Tx, project_id: str) -> HoursSettings:
        """The project's own; around the clock while it has none."""
        return read_hours(await store.find_hours(tx, project_id))

    async def change(self, tx: Tx, project_id: str, body: UpdateHoursBody) -> HoursSettings:
        """The project's hours after the change, in the order of the week and of the year. When tickets are
        due follows soon."""
        await tx.lock(f"helpdesk settings of {project_id}")
        changes = {name: getattr(body, name) for name in body.model_fields_set}
        hours = (await self.settings(tx, project_id)).model_copy(update=changes)
        ordered = hours.model_copy(
            update={
                "openings": in_order(hours.openings),
                "holidays": sorted(hours.holidays, key=lambda one: one.date),
            }
        )
        await store.write_hours(tx, project_id, ordered.model_dump_json())
        await self._sla.refresh(tx, project_id)
        return ordered

    async def of(self, tx: Tx, project_id: str) -> BusinessHours:
        """The project's hours, to calculate with."""
        return business_hours(await self.settings(tx, project_id))
