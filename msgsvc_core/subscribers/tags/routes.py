"""/v1/tags."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.pagination import PageQuery, position_of
from msgsvc_core.kernel.errors import BadRequest, Conflict, NotFound
from msgsvc_core.subscribers.tags.models import TagAnswer, TagBody, TagList
from msgsvc_core.subscribers.tags.service import Tags

router = Router(area="subscribers")


@router.get("/v1/tags", errors=(BadRequest,))
async def list_tags(ctx: Context, query: PageQuery, tags: Tags) -> TagList:
    """Lists the project's tags, newest first, with how many subscribers carry each."""
    found = await tags.page(ctx.tx, ctx.project_id, query)
    page, following = query.cut(found, lambda tag: position_of(tag.created_at_ms, tag.name))
    return TagList(data=[TagAnswer.of(tag) for tag in page], next_cursor=following)


@router.post("/v1/tags", status=201, errors=(Conflict,), audited=True)
async def create_tag(ctx: Context, body: TagBody, tags: Tags) -> TagAnswer:
    """Makes a tag. One that is given to a subscriber, or to a link, is made by itself."""
    return TagAnswer.of(await tags.create(ctx.tx, ctx.project_id, body.name))


@router.get("/v1/tags/{tag}", errors=(NotFound,))
async def get_tag(ctx: Context, tag: str, tags: Tags) -> TagAnswer:
    """Shows one tag."""
    return TagAnswer.of(await tags.get(ctx.tx, ctx.project_id, tag))


@router.put("/v1/tags/{tag}", errors=(Conflict, NotFound), audited=True)
async def rename_tag(ctx: Context, tag: str, body: TagBody, tags: Tags) -> TagAnswer:
    """Gives a tag another name. Its subscribers keep it, and links that carry it still do."""
    renamed = await tags.rename(ctx.tx, ctx.project_id, tag, body.name)
    return TagAnswer.of(renamed)


@router.delete("/v1/tags/{tag}", status=204, errors=(NotFound,), audited=True)
async def delete_tag(ctx: Context, tag: str, tags: Tags) -> None:
    """Removes a tag, from its subscribers too; links that carry it go on without it."""
    await tags.delete(ctx.tx, ctx.project_id, tag)
