"""Enrollments of a campaign: list, enroll, pause, resume, cancel."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import PageContext, Pages, Redirect, Render
from msgsvc_core.dashboard.people import chosen_person, search_people
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_drip.dashboard.chains import get
from msgsvc_drip.models import EnrollInDripBody, Enrollment, EnrollmentQuery
from msgsvc_drip.service import Drips


def declare(pages: Pages) -> None:
    """Registers these pages."""
    here = "/drips/{drip_id}/people"
    one = f"{here}/{{enrollment_id}}"
    pages.get(here, access="project:read")(listed)
    pages.get(f"{here}/found", access="project:write")(found_people)
    pages.post(
        here,
        access="project:write",
        form_page=listed,
        title=lambda _: _("Subscriber added to a campaign"),
    )(enroll)
    pages.post(
        f"{one}/pause",
        access="project:write",
        form_page=listed,
        title=lambda _: _("Campaign paused for a subscriber"),
    )(pause_person)
    pages.post(
        f"{one}/resume",
        access="project:write",
        form_page=listed,
        title=lambda _: _("Campaign resumed for a subscriber"),
    )(resume_person)
    pages.post(
        f"{one}/cancel",
        access="project:write",
        form_page=listed,
        title=lambda _: _("Campaign ended for a subscriber"),
    )(cancel_person)


async def listed(page: PageContext, drips: Drips, subscribers: Subscribers) -> Render:
    """Newest first."""
    chain = await get(page, drips)
    given: dict[str, Any] = {
        name: page.query[name] for name in ("status", "cursor") if page.query.get(name)
    }
    query = validate(EnrollmentQuery, given)
    found = await drips.enrollments(page.tx, page.project_id, chain.drip_id, query)
    rows, following = query.cut(found, lambda each: each.enrollment_id)
    keys = [(page.project_id, each.subscriber_id) for each in rows]
    people = await subscribers.get_many(page.tx, keys)
    more = page.url(f"/drips/{chain.drip_id}/people", status=query.status, cursor=following)
    return Render(
        "people.html",
        {
            "chain": chain,
            "rows": [(each, people.get((page.project_id, each.subscriber_id))) for each in rows],
            "status": query.status,
            "more": more if following else "",
            "found": await search_people(page, subscribers, page.form.text("person")),
        },
    )


async def found_people(page: PageContext, drips: Drips, subscribers: Subscribers) -> Render:
    """A fragment: who the search for a person to enroll finds."""
    await get(page, drips)
    searched = page.query.get("person", "")
    found = await search_people(page, subscribers, searched)
    return Render("found.html", {"name": "person", "searched": searched, "found": found})


async def enroll(page: PageContext, drips: Drips) -> Redirect:
    """By a search, the subscriber's id, or their `external_id`."""
    drip_id = page.params["drip_id"]
    body = validate(EnrollInDripBody, chosen_person(page.form, "person"))
    made = await drips.enroll(page.tx, page.project_id, drip_id, body)
    page.note(drip=drip_id, enrollment=made.enrollment_id)
    return Redirect(page.url(f"/drips/{drip_id}/people"), notice=page._("Added to the campaign."))


async def pause_person(page: PageContext, drips: Drips) -> Redirect:
    return await _change(page, drips.pause, page._("Paused for this person."))


async def resume_person(page: PageContext, drips: Drips) -> Redirect:
    return await _change(page, drips.resume, page._("Resumed for this person."))


async def cancel_person(page: PageContext, drips: Drips) -> Redirect:
    return await _change(page, drips.cancel, page._("The campaign is ended for this person."))


async def _change(
    page: PageContext, to: Callable[..., Awaitable[Enrollment]], notice: str
) -> Redirect:
    drip_id, enrollment_id = page.params["drip_id"], page.params["enrollment_id"]
    changed = await to(page.tx, page.project_id, enrollment_id)
    if changed.drip_id != drip_id:
        raise NotFound(
            "there is no enrollment {enrollment_id!r} in this campaign", enrollment_id=enrollment_id
        )
    page.note(drip=drip_id, enrollment=enrollment_id)
    return Redirect(page.url(f"/drips/{drip_id}/people"), notice=notice)
