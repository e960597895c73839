"""Subscribers as CSV, for spreadsheets: read in chunks, without holding a connection in between."""

from collections.abc import AsyncIterator, Sequence

from msgsvc_core.api import examples
from msgsvc_core.db import Database
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.csv import BOM, escape_formula, lines
from msgsvc_core.kernel.json import to_json
from msgsvc_core.subscribers.contacts.models import Contacts
from msgsvc_core.subscribers.contacts.service import VerifiedContacts
from msgsvc_core.subscribers.models import Subscriber, SubscriberFilters
from msgsvc_core.subscribers.service import Subscribers

#: Subscribers that are read, and sent, at a time.
CHUNK = 200

COLUMNS = (
    "subscriber_id",
    "channel",
    "first_name",
    "username",
    "lang",
    "locale",
    "tags",
    "permissions",
    "external_id",
    "phone",
    "email",
    "attributes",
    "status",
    "source",
    "created_at",
    "last_seen_at",
)


#: A file with one subscriber.
EXAMPLE = lines(
    [
        COLUMNS,
        (
            examples.SUBSCRIBER_ID,
            examples.CHANNEL,
            "Ann",
            "ann_example",
            "en",
            "en-GB",
            examples.TAG,
            examples.PERMISSION,
            examples.EXTERNAL_ID,
            "",
            "",
            '{"city": "Riga"}',
            "active",
            "deep_link",
            examples.EARLIER,
            examples.TIME,
        ),
    ]
)


async def to_csv(
    db: Database,
    subscribers: Subscribers,
    contacts: VerifiedContacts,
    project_id: str,
    filters: SubscriberFilters,
) -> AsyncIterator[bytes]:
    """The lines of the file, newest subscriber first, in pieces of up to `CHUNK`.

    Subscribers added meanwhile are not included, and none is listed twice. Raises `ValidationFailed` before
    the first piece for an unknown channel.
    """
    after: str | None = None
    text = BOM + lines([COLUMNS])
    while True:
        # A connection for the query alone: the client may read slowly.
        async with db.read() as tx:
            found = await subscribers.list_after(tx, project_id, filters, after, CHUNK)
            ids = [subscriber.subscriber_id for subscriber in found]
            verified = await contacts.find_many(tx, project_id, ids)
        text += lines([_cells(one, verified.get(one.subscriber_id, Contacts())) for one in found])
        if text:
            yield text.encode()
        if len(found) < CHUNK:
            return
        after, text = found[-1].subscriber_id, ""


async def chosen_to_csv(
    db: Database,
    subscribers: Subscribers,
    contacts: VerifiedContacts,
    project_id: str,
    ids: Sequence[str],
) -> AsyncIterator[bytes]:
    """The same file of those of `ids` who exist, in this order."""
    text = BOM + lines([COLUMNS])
    for place in range(0, len(ids), CHUNK):
        part = ids[place : place + CHUNK]
        async with db.read() as tx:
            found = await subscribers.get_many(tx, [(project_id, one) for one in part])
            verified = await contacts.find_many(tx, project_id, [one for _, one in found])
        people = [found[project_id, one] for one in part if (project_id, one) in found]
        text += lines([_cells(one, verified.get(one.subscriber_id, Contacts())) for one in people])
        if text:
            yield text.encode()
        text = ""


def _cells(subscriber: Subscriber, contacts: Contacts) -> tuple[str, ...]:
    return (
        subscriber.subscriber_id,
        subscriber.channel,
        escape_formula(subscriber.first_name),
        escape_formula(subscriber.username or ""),
        subscriber.lang,
        subscriber.locale or "",
        escape_formula(",".join(subscriber.tags)),
        escape_formula(",".join(subscriber.permissions)),
        escape_formula(subscriber.external_id or ""),
        escape_formula(contacts.phone or ""),
        escape_formula(contacts.email or ""),
        escape_formula(to_json(subscriber.attributes)) if subscriber.attributes else "",
        subscriber.status,
        subscriber.source,
        to_rfc3339(subscriber.created_at_ms),
        to_rfc3339(subscriber.last_seen_at_ms),
    )
