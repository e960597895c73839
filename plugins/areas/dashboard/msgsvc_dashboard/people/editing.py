"""Edits and deletes a message."""

from msgsvc_core.api.validation import validate
from msgsvc_core.channels.registry import Channels
from msgsvc_core.dashboard import PageContext, PostedForm, Redirect, Render
from msgsvc_core.dashboard.previewing import MessagePreviews, TriedMessage
from msgsvc_core.dashboard.writing import MessageForm
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.messages.bodies import EditMessageBody
from msgsvc_core.messages.models import Message
from msgsvc_core.messages.service import Messages
from msgsvc_dashboard.people.content import of_message
from msgsvc_dashboard.people.declared import message_pages as pages
from msgsvc_dashboard.people.messages import message


@pages.get("/messages/{message_id}/edit", access="project:write")
async def editor(
    page: PageContext, messages: Messages, previews: MessagePreviews, channels: Channels
) -> Render:
    found = await messages.find(page.tx, page.project_id, page.params["message_id"])
    shown = previews.of(page, found.content, [found.channel])
    given = page.form if page.form.values else of_message(found.content)
    return _form(channels, found, given, TriedMessage([((), shown)]))


@pages.post("/messages/{message_id}/edit/preview", access="project:write", read_only=True)
async def preview(
    page: PageContext, messages: Messages, previews: MessagePreviews, channels: Channels
) -> Render:
    """The edited message as the person will see it: a fragment for htmx, otherwise with the form."""
    found = await messages.find(page.tx, page.project_id, page.params["message_id"])
    try:
        body = validate(EditMessageBody, MessageForm(page.form).content())
        shown = previews.of(page, body.changed(found.content), [found.channel])
        tried = TriedMessage([((), shown)])
    except ApiError as error:
        if error.status >= 500:
            raise
        tried = TriedMessage(refused=error)
    if page.fragment:
        return Render("compose_preview.html", {"tried": tried})
    return _form(channels, found, page.form, tried)


@pages.post(
    "/messages/{message_id}/edit",
    access="project:write",
    form_page=editor,
    title=lambda _: _("Message changed"),
)
async def edit(page: PageContext, messages: Messages) -> Redirect:
    message_id = page.params["message_id"]
    body = validate(EditMessageBody, MessageForm(page.form).content())
    page.note(message=message_id)
    await messages.changes.edit(page.tx, page.project_id, message_id, body)
    return Redirect(page.url(f"/messages/{message_id}"), notice=page._("The edit is being sent."))


@pages.post(
    "/messages/{message_id}/delete",
    access="project:write",
    form_page=message,
    title=lambda _: _("Message deleted"),
)
async def delete(page: PageContext, messages: Messages) -> Redirect:
    message_id = page.params["message_id"]
    page.note(message=message_id)
    await messages.changes.delete(page.tx, page.project_id, message_id)
    return Redirect(
        page.url(f"/messages/{message_id}"), notice=page._("The message is being deleted.")
    )


def _form(channels: Channels, message: Message, given: PostedForm, tried: TriedMessage) -> Render:
    channel = channels.get(message.bot)
    return Render(
        "message_edit.html",
        {
            "message": message,
            "given": given,
            "takes_media": message.status == "queued"
            or (channel is not None and channel.capabilities.edit_media),
            "tried": tried,
        },
    )
