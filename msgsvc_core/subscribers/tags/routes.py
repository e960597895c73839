"""/v1/tags."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.pagination import PageQuery, position_of
from msgsvc_core.kernel.errors import BadRequest, Conflict, NotFound
from msgsvc_core.subscribers.models import NamedTag
from msgsvc_core.subscribers.tags.models import CreateTagBody, TagAnswer, TagList, UpdateTagBody
from msgsvc_core.subscribers.tags.service import Tags

router = Router(area="subscribers")


@router.get("/v1/tags", errors=(BadRequest,))
async def list_tags(ctx: Context, query: PageQuery, tags: Tags) -> TagList:
    """Lists the project's tags, newest first, with their number of subscribers."""
    found = await tags.page(ctx.tx, ctx.project_id, query)
    page, following = query.cut(found, lambda tag: position_of(tag.created_at_ms, tag.name))
    return TagList(data=[TagAnswer.of(tag) for tag in page], next_cursor=following)


@router.post("/v1/tags", status=201, errors=(Conflict,), audited=lambda _: _("Tag created"))
async def create_tag(ctx: Context, body: CreateTagBody, tags: Tags) -> TagAnswer:
    """Creates a tag. Adding a tag to a subscriber or a link also creates it."""
    return TagAnswer.of(await tags.create(ctx.tx, ctx.project_id, body.name))


@router.get("/v1/tags/{key}", errors=(NotFound,))
async def get_tag(ctx: Context, key: NamedTag, tags: Tags) -> TagAnswer:
    """Shows one tag."""
    return TagAnswer.of(await tags.get(ctx.tx, ctx.project_id, key))


@router.patch("/v1/tags/{key}", errors=(Conflict, NotFound), audited=lambda _: _("Tag renamed"))
async def rename_tag(ctx: Context, key: NamedTag, body: UpdateTagBody, tags: Tags) -> TagAnswer:
    """Renames a tag. Its subscribers and links keep it."""
    renamed = await tags.rename(ctx.tx, ctx.project_id, key, body.name)
    return TagAnswer.of(renamed)


@router.delete("/v1/tags/{key}", status=204, errors=(NotFound,), audited=lambda _: _("Tag deleted"))
async def delete_tag(ctx: Context, key: NamedTag, tags: Tags) -> None:
    """Deletes a tag from its subscribers too; links with it keep working without it."""
    await tags.delete(ctx.tx, ctx.project_id, key)
