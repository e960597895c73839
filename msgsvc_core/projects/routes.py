"""/v1/project."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.projects.models import ProjectAnswer, UpdateProjectBody
from msgsvc_core.projects.overview import ProjectOverview
from msgsvc_core.projects.service import Projects

router = Router(
    area="project",
    description="The project of the API key: its limits, its channels, and what its bots say.",
    group="project",
)


@router.get("/v1/project", first_call=40)
async def get_project(ctx: Context, overview: ProjectOverview) -> ProjectAnswer:
    """Shows the project of the API key, its limits and its channels."""
    return await overview.get(ctx.tx, ctx.project_id)


@router.patch("/v1/project", audited=lambda _: _("Settings changed"))
async def update_project(
    ctx: Context, body: UpdateProjectBody, projects: Projects, overview: ProjectOverview
) -> ProjectAnswer:
    """Changes the project's name, the texts after subscribing and unsubscribing, and link tracking."""
    await projects.update(ctx.tx, ctx.project_id, body)
    return await overview.get(ctx.tx, ctx.project_id)
