"""Merging the person of a subscriber into another: who both are, on each channel, before it happens."""

from collections.abc import Sequence

from msgsvc_core.dashboard import PageContext, PostedForm, Redirect, Render
from msgsvc_core.dashboard.people import chosen_person, search_people
from msgsvc_core.kernel.errors import InvalidExternalId, SubscriberNotFound
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.people import People
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_dashboard.people import labels
from msgsvc_dashboard.people.declared import subscriber_pages as pages

#: The field in which the other person is searched for.
FIELD = "person"


@pages.get("/subscribers/{subscriber_id}/merge", access="project:write")
async def merge_preview(page: PageContext, all_subscribers: Subscribers, people: People) -> Render:
    person = await all_subscribers.get(page.tx, page.project_id, page.params["subscriber_id"])
    other = await _chosen(page, all_subscribers)
    searched = other.subscriber_id if other else page.query.get(FIELD, "").strip()
    found = await search_people(page, all_subscribers, searched)
    ending = await _addresses(page, people, person)
    staying = await _addresses(page, people, other) if other else []
    channels = sorted({each.channel for each in (*ending, *staying)})
    rows = [(channel, _on(ending, channel), _on(staying, channel)) for channel in channels]
    return Render(
        "merge.html",
        {
            "person": person,
            "other": other,
            "is_same": other is not None
            and other.subscriber_id in {e.subscriber_id for e in ending},
            "rows": rows,
            "both": [channel for channel, here, there in rows if here and there],
            "searched": searched,
            "found": found if other else _others(found, ending),
            "words": labels,
        },
    )


@pages.get("/subscribers/{subscriber_id}/merge/found", access="project:write")
async def merge_found(page: PageContext, all_subscribers: Subscribers, people: People) -> Render:
    """A fragment: who the search for the other person finds."""
    person = await all_subscribers.get(page.tx, page.project_id, page.params["subscriber_id"])
    searched = page.query.get(FIELD, "")
    found = await search_people(page, all_subscribers, searched)
    others = _others(found, await _addresses(page, people, person))
    return Render("merge_found.html", {"name": FIELD, "searched": searched, "found": others})


@pages.post(
    "/subscribers/{subscriber_id}/merge",
    access="project:write",
    form_page=merge_preview,
    title=lambda _: _("People merged"),
)
async def merge(page: PageContext, people: People) -> Redirect:
    subscriber_id = page.params["subscriber_id"]
    merged = await people.merge_subscriber(
        page.tx,
        page.project_id,
        subscriber_id,
        page.form.text("into"),
        seen=page.form.text("seen") or None,
    )
    page.note(subscriber_ids=[each.subscriber_id for each in merged.subscribers])
    return Redirect(page.url(f"/subscribers/{subscriber_id}"), notice=page._("Merged."))


async def _chosen(page: PageContext, all_subscribers: Subscribers) -> Subscriber | None:
    """Who was chosen by a search or typed as an id; None where nobody in the project is meant."""
    names = (FIELD, f"{FIELD}-searched", f"{FIELD}-chosen")
    form = PostedForm({name: (page.query.get(name, ""),) for name in names})
    who = chosen_person(form, FIELD)
    if not any(who.values()):
        return None
    try:
        return await all_subscribers.get_by_identifier(
            page.tx,
            page.project_id,
            subscriber_id=who.get("subscriber_id"),
            external_id=who.get("external_id"),
            channel=None,
        )
    except (InvalidExternalId, SubscriberNotFound):
        # The beginning of a name, of which the search below tells whose.
        return None


async def _addresses(
    page: PageContext, people: People, subscriber: Subscriber
) -> Sequence[Subscriber]:
    """All subscribers of the same person."""
    if subscriber.external_id is None:
        return [subscriber]
    return (await people.get(page.tx, page.project_id, subscriber.external_id)).subscribers


def _others(found: Sequence[Subscriber], same: Sequence[Subscriber]) -> list[Subscriber]:
    """Without those of one person."""
    ids = {each.subscriber_id for each in same}
    return [each for each in found if each.subscriber_id not in ids]


def _on(addresses: Sequence[Subscriber], channel: str) -> list[Subscriber]:
    return [each for each in addresses if each.channel == channel]
