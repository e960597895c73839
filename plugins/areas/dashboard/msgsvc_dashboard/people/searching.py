"""What a search finds of subscribers, messages and templates."""

from collections.abc import Sequence

from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import Hit, PageContext
from msgsvc_core.kernel.errors import BadRequest, NotFound, ValidationFailed
from msgsvc_core.messages.service import Messages
from msgsvc_core.messages.templates.models import StoredTemplate
from msgsvc_core.messages.templates.service import Templates
from msgsvc_core.subscribers.models import Subscriber, SubscriberQuery
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_dashboard.people.declared import message_pages, subscriber_pages, template_pages

#: Hits of a kind.
MOST = 5

#: Characters of a message that are shown.
EXCERPT = 80


@subscriber_pages.search(access="customers:read", order=10)
async def found_subscribers(page: PageContext, subscribers: Subscribers) -> Sequence[Hit]:
    """By id, or by the beginning of a name, username or external id."""
    text = page.searched
    if text.startswith("sub_"):
        key = (page.project_id, text)
        found = list((await subscribers.get_many(page.tx, [key])).values())
    else:
        found = await _named(page, subscribers)
    return [_person(page, each) for each in found[:MOST]]


@message_pages.search(access="project:read", order=30)
async def found_messages(
    page: PageContext, messages: Messages, subscribers: Subscribers
) -> Sequence[Hit]:
    """A message by its id, and the messages of a batch, or to the person with an id or external id."""
    _, text = page._, page.searched
    kind = _("Messages")
    if text.startswith("msg_"):
        found = await messages.get_many(page.tx, page.project_id, [text])
        return [
            Hit(
                kind,
                message.content.text[:EXCERPT] or _("Content not stored"),
                page.url(f"/messages/{message_id}"),
                detail=message.channel,
                icon="message",
                is_exact=True,
            )
            for message_id, message in found.items()
        ]
    if text.startswith("bat_"):
        url = page.url("/messages", batch_id=text)
        return [Hit(kind, _("Messages of the batch"), url, detail=text, icon="message")]
    people = await _named(page, subscribers)
    return [
        Hit(
            kind,
            _("Messages to {name}", name=_name(person)),
            page.url("/messages", subscriber_id=person.subscriber_id),
            detail=text,
            icon="message",
        )
        for person in people
        if person.external_id == text
    ]


@template_pages.search(access="project:read", order=50)
async def found_templates(page: PageContext, templates: Templates) -> Sequence[Hit]:
    """A template by its key."""
    try:
        stored = await templates.find(page.tx, page.project_id, page.searched)
    except NotFound:
        return ()
    return [_template(page, stored)]


def _person(page: PageContext, person: Subscriber) -> Hit:
    text = page.searched
    return Hit(
        page._("Subscribers"),
        _name(person),
        page.url(f"/subscribers/{person.subscriber_id}"),
        detail=person.external_id or (person.username and f"@{person.username}") or person.channel,
        icon="person",
        is_exact=text in {person.subscriber_id, person.external_id},
    )


async def _named(page: PageContext, subscribers: Subscribers) -> list[Subscriber]:
    """Those of whom a name begins with the text; none for a text that no name can begin with."""
    try:
        query = validate(SubscriberQuery, {"query": page.searched, "limit": MOST})
        return await subscribers.page(page.tx, page.project_id, query)
    except (BadRequest, ValidationFailed):
        return []


def _name(person: Subscriber) -> str:
    return person.first_name or person.username or person.external_id or person.subscriber_id


def _template(page: PageContext, stored: StoredTemplate) -> Hit:
    url = page.url(f"/templates/{stored.key}")
    return Hit(page._("Templates"), stored.key, url, icon="template", is_exact=True)
