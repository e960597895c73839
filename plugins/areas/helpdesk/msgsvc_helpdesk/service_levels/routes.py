"""/v1/tickets/sla."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_helpdesk.service_levels.models import ServiceLevelsAnswer, UpdateSlaBody
from msgsvc_helpdesk.service_levels.settings import SlaSettings

router = Router(area="helpdesk")


@router.get("/v1/tickets/sla")
async def get_ticket_service_levels(ctx: Context, sla: SlaSettings) -> ServiceLevelsAnswer:
    """Shows the project's service levels: how soon tickets are to be answered and closed."""
    return ServiceLevelsAnswer.of(await sla.settings(ctx.tx, ctx.project_id))


@router.patch("/v1/tickets/sla", audited=lambda _: _("Service levels changed"))
async def update_ticket_service_levels(
    ctx: Context, body: UpdateSlaBody, sla: SlaSettings
) -> ServiceLevelsAnswer:
    """Changes the project's service levels; omitted priorities stay unchanged.

    Tickets that are not closed follow soon. A target that they did not have counts from then on.
    """
    return ServiceLevelsAnswer.of(await sla.change(ctx.tx, ctx.project_id, body))
