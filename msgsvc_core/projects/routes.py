"""GET /v1/project."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.clock import to_rfc3339
from msgsvc_core.projects.models import ChannelAnswer, LimitsAnswer, ProjectAnswer

router = Router(area="project")


@router.get("/v1/project", holds_connection=False)
async def get_project(ctx: Context) -> ProjectAnswer:
    """Shows the project of the API key, its limits and its channels."""
    limits = ctx.service.settings.limits
    project = ctx.project
    return ProjectAnswer(
        project_id=project.project_id,
        name=project.name,
        status=project.status,
        created_at=to_rfc3339(project.created_at_ms),
        limits=LimitsAnswer(
            requests_per_minute=limits.requests_per_minute,
            text_length=limits.text_length,
            button_rows=limits.button_rows,
            buttons_per_row=limits.buttons_per_row,
            tags=limits.tags,
        ),
        channels=[
            ChannelAnswer(
                name=channel.name,
                own=channel.identity.project_id is not None,
                link=channel.link("hello"),
            )
            for channel in ctx.service.channels.all_of(ctx.project_id)
        ],
    )
