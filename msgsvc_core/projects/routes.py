"""/v1/project."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.projects.models import (
    ChannelAnswer,
    LimitsAnswer,
    ProjectAnswer,
    ProjectBody,
)
from msgsvc_core.projects.service import Projects

router = Router(area="project")


@router.get("/v1/project")
async def get_project(ctx: Context) -> ProjectAnswer:
    """Shows the project of the API key, its limits and its channels."""
    return await _shown(ctx)


@router.patch("/v1/project", audited=True)
async def update_project(ctx: Context, body: ProjectBody, projects: Projects) -> ProjectAnswer:
    """Changes the project's name, and what its bots say to who has subscribed or left."""
    await projects.update(ctx.tx, ctx.project_id, body)
    return await _shown(ctx)


async def _shown(ctx: Context) -> ProjectAnswer:
    # Not `ctx.project`, which may be a second old.
    project = await ctx.service.projects.find(ctx.tx, ctx.project_id)
    plan = await ctx.service.billing.plan_of(ctx.tx, ctx.project_id)
    texts = await ctx.service.projects.texts(ctx.tx, ctx.project_id)
    return ProjectAnswer(
        project_id=project.project_id,
        name=project.name,
        status=project.status,
        plan=None if plan is None else plan.name,
        created_at=to_rfc3339(project.created_at_ms),
        welcome=texts.welcome,
        farewell=texts.farewell,
        limits=LimitsAnswer.of(ctx.service.settings.limits),
        channels=[
            ChannelAnswer(
                name=channel.name,
                own=channel.identity.project_id is not None,
                link=channel.link("hello"),
            )
            for channel in ctx.service.channels.all_of(ctx.project_id)
        ],
    )
