"""Edits and deletes a message."""

from typing import Any

from msgsvc_core.api.validation import validate
from msgsvc_core.channels.registry import Channels
from msgsvc_core.dashboard import PageContext, Redirect, Render
from msgsvc_core.messages.models import EditBody
from msgsvc_core.messages.service import Messages
from msgsvc_dashboard.people.content import of_message, read_content
from msgsvc_dashboard.people.declared import message_pages as pages
from msgsvc_dashboard.people.messages import message


@pages.get("/messages/{message_id}/edit", access="project:write")
async def editor(page: PageContext, messages: Messages, channels: Channels) -> Render:
    found = await messages.find(page.tx, page.project_id, page.params["message_id"])
    channel = channels.get(found.bot)
    return Render(
        "message_edit.html",
        {
            "message": found,
            "given": of_message(found.content),
            "takes_media": found.status == "queued"
            or (channel is not None and channel.capabilities.edit_media),
            "previews": messages.previews(page.project_id, found.content, [found.channel]),
        },
    )


@pages.post("/messages/{message_id}/edit", access="project:write", form_page=editor)
async def edit(page: PageContext, messages: Messages) -> Redirect:
    message_id = page.params["message_id"]
    content: dict[str, Any] = read_content(page.form)
    body = validate(EditBody, content)
    page.note(message=message_id)
    await messages.changes.edit(page.tx, page.project_id, message_id, body)
    return Redirect(page.url(f"/messages/{message_id}"), notice=page._("The edit is being sent."))


@pages.post("/messages/{message_id}/delete", access="project:write", form_page=message)
async def delete(page: PageContext, messages: Messages) -> Redirect:
    message_id = page.params["message_id"]
    page.note(message=message_id)
    await messages.changes.delete(page.tx, page.project_id, message_id)
    return Redirect(
        page.url(f"/messages/{message_id}"), notice=page._("The message is being deleted.")
    )
