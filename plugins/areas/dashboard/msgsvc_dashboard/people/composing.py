"""Sends a message to one subscriber: recipient, content, preview on each messenger."""

from typing import Any

from msgsvc_core.api.validation import validate
from msgsvc_core.billing import MESSAGE, BillingGate
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.dashboard import PageContext, Redirect, Render
from msgsvc_core.dashboard.people import search_people
from msgsvc_core.dashboard.previewing import TriedMessage
from msgsvc_core.dashboard.writing import MessageForm
from msgsvc_core.kernel.errors import ApiError, NotFound
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.messages.content import Content
from msgsvc_core.messages.service import Messages
from msgsvc_core.messages.templates.models import TemplateAnswer
from msgsvc_core.messages.templates.service import Templates
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_dashboard.people import labels
from msgsvc_dashboard.people.content import read_variables
from msgsvc_dashboard.people.declared import message_pages as pages
from msgsvc_dashboard.people.messages import receiver

#: Templates that are offered.
MOST_TEMPLATES = 100


class ComposeForm:
    """What the form shows."""

    def __init__(
        self,
        *,
        templates: Templates,
        messages: Messages,
        permissions: Permissions,
        subscribers: Subscribers,
        default_lang: str,
    ) -> None:
        self._templates = templates
        self._messages = messages
        self._permissions = permissions
        self._subscribers = subscribers
        self._default_lang = default_lang

    async def shown(self, page: PageContext, tried: TriedMessage | None = None) -> Render:
        project_id = page.project_id
        to = page.form.text("to") or page.query.get("to", "")
        key = page.form.text("template") or page.query.get("template", "")
        kept = self._templates.answers(
            await self._templates.page(page.tx, project_id, None, MOST_TEMPLATES)
        )
        return Render(
            "compose.html",
            {
                "person": await receiver(page, self._subscribers, to) if to else None,
                "is_lost": bool(to),
                "found": await self.search(page),
                "who": page.query.get("who", ""),
                "template": await self._template(page, key) if key else None,
                "templates": kept,
                "permissions": await self._permissions.list_all(page.tx, project_id),
                "default_lang": self._default_lang,
                "tried": tried,
                "given": page.form,
                "words": labels,
            },
        )

    async def search(self, page: PageContext) -> list[Subscriber]:
        return await search_people(page, self._subscribers, page.query.get("who", ""))

    async def tried(self, page: PageContext) -> TriedMessage | None:
        """On the channel of the person, if one is chosen already, else on each; None for an empty message."""
        if not page.form.text("template") and not MessageForm(page.form).is_written:
            return None
        try:
            message, channels = await self._message(page)
        except ApiError as error:
            if error.status >= 500:
                raise
            return TriedMessage(refused=error)
        previews = self._messages.previews(page.project_id, message, channels)
        return TriedMessage([((), previews)])

    async def _message(self, page: PageContext) -> tuple[OutgoingMessage, list[str] | None]:
        """The message of the form, and the channels to show it on."""
        form = page.form
        to = form.text("to")
        person = await receiver(page, self._subscribers, to) if to else None
        lang = person.lang if person else page.lang
        message: OutgoingMessage
        if key := form.text("template"):
            template = await self._templates.content_of(page.tx, page.project_id, key)
            message = self._templates.try_out(template, read_variables(form), lang)
        else:
            message = validate(Content, MessageForm(form).content()).to_message()
        return message, [person.channel] if person else None

    async def _template(self, page: PageContext, key: str) -> TemplateAnswer | None:
        """None for one that is gone."""
        try:
            found = await self._templates.find(page.tx, page.project_id, key)
            [answer] = self._templates.answers([found])
        except NotFound:
            return None
        return answer


@pages.get("/messages/new", access="customers:write")
async def compose(page: PageContext, compose_form: ComposeForm) -> Render:
    return await compose_form.shown(page)


@pages.get("/messages/new/people", access="customers:write")
async def people(page: PageContext, compose_form: ComposeForm) -> Render:
    """Search results for a recipient, shown below the field."""
    found = await compose_form.search(page)
    return Render("compose_people.html", {"found": found, "words": labels})


@pages.post("/messages/new/preview", access="customers:write", read_only=True)
async def preview(page: PageContext, compose_form: ComposeForm) -> Render:
    """A preview: as a fragment for htmx, and with the complete form for browsers without scripts."""
    tried = await compose_form.tried(page)
    if page.fragment:
        return Render("compose_preview.html", {"tried": tried})
    return await compose_form.shown(page, tried)


@pages.post(
    "/messages/new", access="customers:write", form_page=compose, title=lambda _: _("Message sent")
)
async def send(page: PageContext, billing: BillingGate, messages: Messages) -> Redirect:
    form = page.form
    given: dict[str, Any] = {
        "subscriber_id": form.text("to"),
        "silent": form.checked("silent"),
        "permission": form.text("permission") or None,
    }
    if template := form.text("template"):
        given |= {"template": template, "variables": read_variables(form)}
    else:
        given |= MessageForm(form).content()
    await billing.check(page.project_id, MESSAGE, page.tx)
    message = await messages.queue(
        page.tx, page.project_id, validate(SendBody, given), by_person="template" not in given
    )
    page.note(message=message.message_id, subscriber=message.subscriber_id)
    place = (
        f"/messages/{message.message_id}"
        if page.may("project:read")
        else f"/subscribers/{message.subscriber_id}"
    )
    return Redirect(page.url(place), notice=page._("The message is being sent."))
