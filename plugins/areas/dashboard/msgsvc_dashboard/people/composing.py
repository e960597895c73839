"""Writes to one person: whom, what, how each messenger will show it."""

from typing import Any

from msgsvc_core.api.validation import validate
from msgsvc_core.billing import MESSAGE, BillingGate
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.dashboard import Moved, PageContext, Shown
from msgsvc_core.kernel.errors import ApiError, NotFound
from msgsvc_core.messages.models import Content, SendBody
from msgsvc_core.messages.previews import Preview
from msgsvc_core.messages.service import Messages
from msgsvc_core.messages.templates.models import TemplateAnswer
from msgsvc_core.subscribers.models import Subscriber, SubscriberQuery
from msgsvc_dashboard.people import words
from msgsvc_dashboard.people.content import read_content, read_variables
from msgsvc_dashboard.people.declared import message_pages as pages
from msgsvc_dashboard.people.messages import receiver

#: People that a search offers; who is not among them needs more letters.
MOST_FOUND = 10

#: Templates that are offered.
MOST_TEMPLATES = 100


@pages.get("/messages/new", access="answer")
async def compose(page: PageContext) -> Shown:
    return await _form(page, [])


@pages.get("/messages/new/people", access="answer")
async def people(page: PageContext) -> Shown:
    """Whom a search finds, for the page to put below its field."""
    return Shown("compose_people.html", {"found": await _search(page), "words": words})


@pages.post("/messages/new/preview", access="answer", asks=True)
async def preview(page: PageContext) -> Shown:
    """How it would look: alone for htmx, and with the whole form for browsers without scripts."""
    shown: list[Preview] = []
    refused = ""
    try:
        shown = await _previews(page)
    except ApiError as error:
        refused = error.message
    if page.fragment:
        return Shown("compose_preview.html", {"previews": shown, "refused": refused})
    return await _form(page, shown, refused)


@pages.post("/messages/new", access="answer", again=compose)
async def send(page: PageContext, billing: BillingGate, messages: Messages) -> Moved:
    form = page.form
    given: dict[str, Any] = {
        "subscriber_id": form.text("to"),
        "silent": form.checked("silent"),
        "permission": form.text("permission") or None,
    }
    if template := form.text("template"):
        given |= {"template": template, "variables": read_variables(form)}
    else:
        given |= read_content(form)
    await billing.check(page.project_id, MESSAGE, page.tx)
    message = await messages.queue(page.tx, page.project_id, validate(SendBody, given))
    page.note(message=message.message_id, subscriber=message.subscriber_id)
    place = (
        f"/messages/{message.message_id}"
        if page.may("look")
        else f"/subscribers/{message.subscriber_id}"
    )
    return Moved(page.url(place), notice=page._("The message is on its way."))


async def _form(page: PageContext, previews: list[Preview], refused: str = "") -> Shown:
    service, project_id = page.service, page.project_id
    to = page.form.text("to") or page.query.get("to", "")
    key = page.form.text("template") or page.query.get("template", "")
    kept = service.templates.answers(
        await service.templates.page(page.tx, project_id, None, MOST_TEMPLATES)
    )
    return Shown(
        "compose.html",
        {
            "person": await receiver(page, to) if to else None,
            "is_lost": bool(to),
            "found": await _search(page),
            "who": page.query.get("who", ""),
            "template": await _template(page, key) if key else None,
            "templates": kept,
            "permissions": await service.permissions.all_of(page.tx, project_id),
            "default_lang": service.settings.default_lang,
            "previews": previews,
            "refused": refused,
            "given": {},
            "words": words,
        },
    )


async def _template(page: PageContext, key: str) -> TemplateAnswer | None:
    """None for one that is gone."""
    templates = page.service.templates
    try:
        [answer] = templates.answers([await templates.find(page.tx, page.project_id, key)])
    except NotFound:
        return None
    return answer


async def _search(page: PageContext) -> list[Subscriber]:
    who = page.query.get("who", "").strip()
    if not who:
        return []
    try:
        query = validate(SubscriberQuery, {"query": who, "limit": MOST_FOUND})
    except ApiError:
        # Longer than any name.
        return []
    found = await page.service.subscribers.page(page.tx, page.project_id, query)
    return found[:MOST_FOUND]


async def _previews(page: PageContext) -> list[Preview]:
    """By the channel of the person, if one is chosen already, else by each."""
    form, service = page.form, page.service
    to = form.text("to")
    person = await receiver(page, to) if to else None
    lang = person.lang if person else page.lang
    message: OutgoingMessage
    if key := form.text("template"):
        template = await service.templates.content_of(page.tx, page.project_id, key)
        message = service.templates.try_out(template, read_variables(form), lang)
    else:
        message = validate(Content, read_content(form)).to_message()
    channels = [person.channel] if person else None
    return service.messages.previews(page.project_id, message, channels)
