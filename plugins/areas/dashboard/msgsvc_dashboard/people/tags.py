"""The tags of a project, and who carries them."""

from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import Moved, Nav, PageContext, Shown
from msgsvc_core.subscribers.tags.models import TagBody
from msgsvc_dashboard.people import words
from msgsvc_dashboard.people.declared import tag_pages as pages


@pages.get("/tags", access="look", nav=Nav("Tags", "tag", group="people", order=30))
async def tags(page: PageContext) -> Shown:
    most = words.MOST_COUNTED + 1
    return Shown(
        "tags.html",
        {
            "tags": await page.service.tags.all_of(page.tx, page.project_id, most),
            "most": page.service.settings.limits.tags,
            "words": words,
        },
    )


@pages.post("/tags", access="manage", again=tags)
async def create(page: PageContext) -> Moved:
    body = validate(TagBody, {"name": page.form.text("name").strip()})
    page.note(tag=body.name)
    await page.service.tags.create(page.tx, page.project_id, body.name)
    return Moved(page.url("/tags"), notice=page._("The tag is there."))


@pages.post("/tags/{tag}/rename", access="manage", again=tags)
async def rename(page: PageContext) -> Moved:
    tag = await page.service.tags.find(page.tx, page.project_id, page.params["tag"])
    body = validate(TagBody, {"name": page.form.text("name").strip()})
    page.note(tag=tag.name, name=body.name)
    await page.service.tags.rename(page.tx, page.project_id, page.params["tag"], body.name)
    return Moved(page.url("/tags"), notice=page._("The tag has its new name."))


@pages.post("/tags/{tag}/delete", access="manage", again=tags)
async def delete(page: PageContext) -> Moved:
    page.note(tag=page.params["tag"])
    await page.service.tags.delete(page.tx, page.project_id, page.params["tag"])
    return Moved(page.url("/tags"), notice=page._("The tag is deleted."))
