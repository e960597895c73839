"""Pages of scheduled and recurring messages: list and details."""

from typing import Any

from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import Nav, PageContext, Pages, Redirect, Render
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.mailings.service import Mailings
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_scheduling.dashboard.labels import in_words, why_not_sent
from msgsvc_scheduling.models import Kind, Record, ScheduledQuery
from msgsvc_scheduling.recurring import RecurringQuery
from msgsvc_scheduling.service import Scheduling

#: Runs of a recurring message that are shown beforehand.
RUNS = 5


def declare(pages: Pages) -> None:
    """Registers these pages."""
    nav = Nav("Scheduled messages", icon="clock", group="sending", order=20)
    pages.get("/schedules", access="project:read", nav=nav)(listed)
    pages.get("/schedules/{record_id}", access="project:read")(schedule)
    pages.post(
        "/schedules/{record_id}/pause",
        access="project:write",
        form_page=schedule,
        title=lambda _: _("Scheduled message paused"),
    )(pause)
    pages.post(
        "/schedules/{record_id}/resume",
        access="project:write",
        form_page=schedule,
        title=lambda _: _("Scheduled message resumed"),
    )(resume)
    pages.post(
        "/schedules/{record_id}/cancel",
        access="project:write",
        form_page=schedule,
        title=lambda _: _("Scheduled message deleted"),
    )(cancel)


def kind_of(record_id: str) -> Kind:
    """The kind of a record, by its id."""
    return "recurring" if record_id.startswith("rec_") else "scheduled"


async def get(page: PageContext, scheduling: Scheduling) -> Record:
    """The record in the URL. Raises `NotFound`."""
    record_id = page.params["record_id"]
    return await scheduling.get(page.tx, page.project_id, record_id, kind_of(record_id))


async def listed(page: PageContext, scheduling: Scheduling, subscribers: Subscribers) -> Render:
    """The records of one kind, newest first."""
    kind: Kind = "recurring" if page.query.get("kind") == "recurring" else "scheduled"
    asked = {name: page.query[name] for name in ("status", "cursor") if page.query.get(name)}
    query: RecurringQuery | ScheduledQuery = (
        validate(RecurringQuery, asked) if kind == "recurring" else validate(ScheduledQuery, asked)
    )
    found = await scheduling.page(
        page.tx, page.project_id, kind, query.status, query.after, query.fetch_limit
    )
    records, following = query.cut(found, lambda record: record.record_id)
    names = await _names(page, subscribers, records)
    more = page.url("/schedules", kind=kind, status=query.status, cursor=following)
    return Render(
        "list.html",
        {
            "kind": kind,
            "rows": [_row(page, record, names) for record in records],
            "status": query.status,
            "more": more if following else "",
        },
    )


async def schedule(
    page: PageContext,
    mailings: Mailings,
    clock: Clock,
    scheduling: Scheduling,
    subscribers: Subscribers,
) -> Render:
    """One record: message, times and results."""
    record = await get(page, scheduling)
    deliveries = await mailings.progress(page.tx, page.project_id, [record.job_id])
    now_ms = clock.now_ms()
    runs = [] if record.rule is None or record.due_at_ms is None else [record.due_at_ms]
    if record.rule is not None and runs:
        runs += record.rule.upcoming(runs[0], RUNS - 1)
    return Render(
        "schedule.html",
        {
            **_row(page, record, await _names(page, subscribers, [record])),
            "delivery": deliveries.get(record.job_id),
            "runs": runs,
            "why": why_not_sent(record, page._),
            "now_ms": now_ms,
        },
    )


async def pause(page: PageContext, scheduling: Scheduling) -> Redirect:
    record_id = page.params["record_id"]
    await scheduling.pause(page.tx, page.project_id, record_id)
    return _moved(page, page._("Paused."))


async def resume(page: PageContext, scheduling: Scheduling) -> Redirect:
    record_id = page.params["record_id"]
    await scheduling.resume(page.tx, page.project_id, record_id)
    return _moved(page, page._("Resumed."))


async def cancel(page: PageContext, scheduling: Scheduling) -> Redirect:
    record_id = page.params["record_id"]
    kind = kind_of(record_id)
    await scheduling.cancel(page.tx, page.project_id, record_id, kind)
    return _moved(page, page._("Deleted. No more messages are sent."))


def _moved(page: PageContext, notice: str) -> Redirect:
    record_id = page.params["record_id"]
    page.note(schedule=record_id)
    return Redirect(page.url(f"/schedules/{record_id}"), notice=notice)


async def _names(
    page: PageContext, subscribers: Subscribers, records: list[Record]
) -> dict[str, str]:
    """Subscribers' names by id, without erased ones."""
    keys = [(page.project_id, each.subscriber_id) for each in records if each.subscriber_id]
    found = await subscribers.get_many(page.tx, keys)
    return {
        person.subscriber_id: person.first_name or person.username or person.subscriber_id
        for person in found.values()
    }


def _row(page: PageContext, record: Record, names: dict[str, str]) -> dict[str, Any]:
    return {
        "record": record,
        "audience": record.shown_audience,
        "person": names.get(record.subscriber_id or "", record.subscriber_id),
        "rhythm": "" if record.rule is None else in_words(record.rule, page._),
    }
