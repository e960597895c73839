"""/v1/templates."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.kernel.errors import BadRequest, Conflict, NotFound
from msgsvc_core.messages.templates.models import (
    CreateTemplateBody,
    NamedTemplate,
    PreviewTemplateBody,
    TemplateAnswer,
    TemplateList,
    TemplatePreviewAnswer,
    UpdateTemplateBody,
)
from msgsvc_core.messages.templates.service import Templates

router = Router(
    area="templates", description="Texts with variables, in several languages.", group="sending"
)


@router.get("/v1/templates", errors=(BadRequest,))
async def list_templates(ctx: Context, query: PageQuery, all_templates: Templates) -> TemplateList:
    """Lists the project's templates, newest first."""
    templates = all_templates
    found = await templates.page(ctx.tx, ctx.project_id, query.begin("tpl"), query.fetch_limit)
    page, following = query.cut(found, lambda template: template.template_id)
    return TemplateList(data=templates.answers(page), next_cursor=following)


@router.post(
    "/v1/templates", status=201, errors=(Conflict,), audited=lambda _: _("Template created")
)
async def create_template(
    ctx: Context, body: CreateTemplateBody, templates: Templates
) -> TemplateAnswer:
    """Creates a reusable message with variables that each send fills in.

    A variable is `{{ name }}`, or `{{ name | default("x") }}` if it is optional; no other syntax is
    supported. A value can't add markup, or change the scheme or host of a URL.
    """
    template = await templates.create(ctx.tx, ctx.project_id, body)
    [answer] = templates.answers([template])
    return answer


@router.get("/v1/templates/{key}", errors=(NotFound,))
async def get_template(ctx: Context, key: NamedTemplate, templates: Templates) -> TemplateAnswer:
    """Shows one template, by its key."""
    found = await templates.find(ctx.tx, ctx.project_id, key)
    [answer] = templates.answers([found])
    return answer


@router.patch("/v1/templates/{key}", errors=(NotFound,), audited=lambda _: _("Template changed"))
async def update_template(
    ctx: Context, key: NamedTemplate, body: UpdateTemplateBody, templates: Templates
) -> TemplateAnswer:
    """Changes a template; omitted fields stay unchanged, and so do queued messages."""
    changed = await templates.update(ctx.tx, ctx.project_id, key, body)
    [answer] = templates.answers([changed])
    return answer


@router.delete(
    "/v1/templates/{key}",
    status=204,
    errors=(NotFound,),
    audited=lambda _: _("Template deleted"),
)
async def delete_template(ctx: Context, key: NamedTemplate, templates: Templates) -> None:
    """Deletes a template. Queued messages are still sent."""
    await templates.delete(ctx.tx, ctx.project_id, key)


@router.post(
    "/v1/templates/{key}/preview",
    errors=(NotFound,),
    holds_connection=False,
    shows_secrets=False,
)
async def preview_template(
    ctx: Context, key: NamedTemplate, body: PreviewTemplateBody, templates: Templates
) -> TemplatePreviewAnswer:
    """Renders the template in each language or one, and lists what channels would reject."""
    return await templates.preview(ctx.project_id, key, body)
