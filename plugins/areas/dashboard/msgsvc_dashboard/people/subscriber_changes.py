"""Changes of one subscriber: tags, permissions, attributes, status."""

import json
from typing import Any

from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import PageContext, Redirect
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.subscribers.models import UpdateSubscriberBody
from msgsvc_core.subscribers.people import People
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_dashboard.people.declared import subscriber_pages as pages
from msgsvc_dashboard.people.subscribers import subscriber


@pages.post(
    "/subscribers/{subscriber_id}/edit",
    access="project:write",
    form_page=subscriber,
    title=lambda _: _("Subscriber changed"),
)
async def edit(page: PageContext, subscribers: Subscribers) -> Redirect:
    form, subscriber_id = page.form, page.params["subscriber_id"]
    person = await subscribers.get(page.tx, page.project_id, subscriber_id)
    changes = {
        "external_id": form.text("external_id").strip() or None,
        "attributes": read_attributes(form.text("attributes")),
    }
    # Theirs may be listed no more.
    if form.text("lang") != person.lang:
        changes["lang"] = form.text("lang")
    body = validate(UpdateSubscriberBody, changes, languages=page.languages)
    await subscribers.change(page.tx, page.project_id, subscriber_id, body)
    return _back(page, page._("Saved."))


@pages.post(
    "/subscribers/{subscriber_id}/split",
    access="project:write",
    form_page=subscriber,
    title=lambda _: _("Subscriber taken out of a person"),
)
async def split(page: PageContext, people: People) -> Redirect:
    found = await people.split(page.tx, page.project_id, page.params["subscriber_id"])
    page.note(subscriber_id=found.subscriber_id)
    return _back(page, page._("Saved."))


@pages.post(
    "/subscribers/{subscriber_id}/tags/add",
    access="project:write",
    form_page=subscriber,
    title=lambda _: _("Subscriber tagged"),
)
async def add_tag(page: PageContext, subscribers: Subscribers) -> Redirect:
    tag = page.form.text("tag").strip()
    page.note(tag=tag)
    await subscribers.add_tag(page.tx, page.project_id, page.params["subscriber_id"], tag)
    return _back(page, page._("Tag added."))


@pages.post(
    "/subscribers/{subscriber_id}/tags/remove",
    access="project:write",
    form_page=subscriber,
    title=lambda _: _("Tag removed from a subscriber"),
)
async def remove_tag(page: PageContext, subscribers: Subscribers) -> Redirect:
    tag = page.form.text("tag")
    page.note(tag=tag)
    await subscribers.remove_tag(page.tx, page.project_id, page.params["subscriber_id"], tag)
    return _back(page, page._("Tag removed."))


@pages.post(
    "/subscribers/{subscriber_id}/permission",
    access="project:write",
    form_page=subscriber,
    title=lambda _: _("Subscriber's permission changed"),
)
async def set_permission(page: PageContext, subscribers: Subscribers) -> Redirect:
    key, granted = page.form.text("permission"), page.form.text("granted") == "yes"
    page.note(permission=key, granted=granted)
    subscriber_id = page.params["subscriber_id"]
    await subscribers.set_permission(page.tx, page.project_id, subscriber_id, key, granted)
    said = page._("The permission is granted.") if granted else page._("The permission is revoked.")
    return _back(page, said)


@pages.post(
    "/subscribers/{subscriber_id}/unsubscribe",
    access="project:write",
    form_page=subscriber,
    title=lambda _: _("Subscriber unsubscribed"),
)
async def unsubscribe(page: PageContext, subscribers: Subscribers) -> Redirect:
    await subscribers.unsubscribe(
        page.tx, page.project_id, page.params["subscriber_id"], reason="api"
    )
    return _back(page, page._("Unsubscribed. No more messages are sent."))


@pages.post(
    "/subscribers/{subscriber_id}/subscribe",
    access="project:write",
    form_page=subscriber,
    title=lambda _: _("Subscriber subscribed again"),
)
async def subscribe_again(page: PageContext, subscribers: Subscribers) -> Redirect:
    await subscribers.resubscribe(page.tx, page.project_id, page.params["subscriber_id"])
    return _back(page, page._("Subscribed again."))


@pages.post(
    "/subscribers/{subscriber_id}/erase",
    access="project:write",
    form_page=subscriber,
    title=lambda _: _("Subscriber erased"),
)
async def erase(page: PageContext, subscribers: Subscribers) -> Redirect:
    await subscribers.erase(page.tx, page.project_id, page.params["subscriber_id"])
    return Redirect(
        page.url("/subscribers"),
        notice=page._(
            "Erased. The remaining data in messages and events is deleted within moments."
        ),
    )


def read_attributes(text: str) -> dict[str, Any]:
    """The JSON object that was entered; an empty text is one without attributes."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ValidationFailed(
            'must be a JSON object, as {"city": "Riga"}', field="attributes"
        ) from None
    if not isinstance(value, dict):
        raise ValidationFailed('must be a JSON object, as {"city": "Riga"}', field="attributes")
    return value


def _back(page: PageContext, notice: str) -> Redirect:
    page.note(subscriber=page.params["subscriber_id"])
    return Redirect(page.url(f"/subscribers/{page.params['subscriber_id']}"), notice=notice)
