"""/v1/tickets/hours."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_helpdesk.service_levels.desk_hours import DeskHours
from msgsvc_helpdesk.service_levels.hours_models import TicketHoursAnswer, UpdateHoursBody

router = Router(area="helpdesk")


@router.get("/v1/tickets/hours")
async def get_ticket_hours(ctx: Context, hours: DeskHours) -> TicketHoursAnswer:
    """Shows the project's business hours."""
    return TicketHoursAnswer.of(await hours.settings(ctx.tx, ctx.project_id))


@router.patch("/v1/tickets/hours", audited=lambda _: _("Business hours changed"))
async def update_ticket_hours(
    ctx: Context, body: UpdateHoursBody, hours: DeskHours
) -> TicketHoursAnswer:
    """Changes the project's business hours; omitted fields stay unchanged."""
    return TicketHoursAnswer.of(await hours.change(ctx.tx, ctx.project_id, body))
