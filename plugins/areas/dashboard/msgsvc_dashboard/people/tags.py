"""The tags of a project, and their subscribers."""

from msgsvc_core.api.validation import validate
from msgsvc_core.config.settings import Settings
from msgsvc_core.dashboard import Nav, PageContext, Redirect, Render
from msgsvc_core.subscribers.tags.models import CreateTagBody, UpdateTagBody
from msgsvc_core.subscribers.tags.service import Tags
from msgsvc_dashboard.people import labels
from msgsvc_dashboard.people.declared import tag_pages as pages


@pages.get("/tags", access="project:read", nav=Nav("Tags", "tag", group="people", order=30))
async def tags(page: PageContext, all_tags: Tags, settings: Settings) -> Render:
    limit = labels.MOST_COUNTED + 1
    return Render(
        "tags.html",
        {
            "tags": await all_tags.list_all(page.tx, page.project_id, limit),
            "most": settings.limits.tags,
            "words": labels,
        },
    )


@pages.post("/tags", access="project:write", form_page=tags, title=lambda _: _("Tag created"))
async def create(page: PageContext, all_tags: Tags) -> Redirect:
    body = validate(CreateTagBody, {"name": page.form.text("name").strip()})
    page.note(tag=body.name)
    await all_tags.create(page.tx, page.project_id, body.name)
    return Redirect(page.url("/tags"), notice=page._("Tag created."))


@pages.post(
    "/tags/{tag}/rename", access="project:write", form_page=tags, title=lambda _: _("Tag renamed")
)
async def rename(page: PageContext, all_tags: Tags) -> Redirect:
    tag = await all_tags.get(page.tx, page.project_id, page.params["tag"])
    body = validate(UpdateTagBody, {"name": page.form.text("name").strip()})
    page.note(tag=tag.name, name=body.name)
    await all_tags.rename(page.tx, page.project_id, page.params["tag"], body.name)
    return Redirect(page.url("/tags"), notice=page._("Tag renamed."))


@pages.post(
    "/tags/{tag}/delete", access="project:write", form_page=tags, title=lambda _: _("Tag deleted")
)
async def delete(page: PageContext, all_tags: Tags) -> Redirect:
    page.note(tag=page.params["tag"])
    await all_tags.delete(page.tx, page.project_id, page.params["tag"])
    return Redirect(page.url("/tags"), notice=page._("The tag is deleted."))
