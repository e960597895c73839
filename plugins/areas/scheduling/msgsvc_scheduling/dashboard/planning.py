"""Pages for scheduling a message, and for editing it."""

from collections.abc import Sequence
from typing import Any

from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import PageContext, Pages, PostedForm, Redirect, Render
from msgsvc_core.dashboard.previewing import MessagePreviews, TriedMessage
from msgsvc_core.dashboard.writing import MessageChoices, MessageForm, audience_of, query_form
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.kernel.time_zones import local_of, zone
from msgsvc_scheduling.dashboard.labels import in_words
from msgsvc_scheduling.dashboard.waiting import RUNS, get
from msgsvc_scheduling.models import Record, ScheduleMessageBody, UpdateScheduledBody
from msgsvc_scheduling.recurrence import Rule
from msgsvc_scheduling.recurring import CreateRecurringBody, UpdateRecurringBody
from msgsvc_scheduling.service import Scheduling


def declare(pages: Pages) -> None:
    """Registers these pages."""
    pages.get("/schedules/new", access="project:write")(compose)
    pages.get("/schedules/runs", access="project:write")(runs)
    pages.post("/schedules/preview", access="project:write", read_only=True)(preview)
    pages.post(
        "/schedules",
        access="project:write",
        form_page=compose,
        title=lambda _: _("Message scheduled"),
    )(create)
    pages.get("/schedules/{record_id}/edit", access="project:write")(edit)
    pages.post(
        "/schedules/{record_id}/edit",
        access="project:write",
        form_page=edit,
        title=lambda _: _("Scheduled message changed"),
    )(change)
    pages.post("/schedules/{record_id}/preview", access="project:write", read_only=True)(
        preview_changes
    )


async def compose(page: PageContext, choices: MessageChoices) -> Render:
    """An empty form, for a scheduled or a recurring message."""
    given = page.form
    repeats = (given.text("kind") or page.query.get("kind", "")) == "recurring"
    subscriber_id = page.query.get("person", "")
    if not given.values and subscriber_id:
        given = PostedForm({"receiver": ["person"], "person": [subscriber_id]})
    return await _form(page, choices, given, repeats, None)


async def edit(page: PageContext, scheduling: Scheduling, choices: MessageChoices) -> Render:
    """The form with the stored or submitted values."""
    record = await get(page, scheduling)
    given = page.form
    if not given.values:
        given = PostedForm({**MessageForm.values_of(record.message), **_time_values(record)})
    return await _form(page, choices, given, record.rule is not None, record)


async def preview(page: PageContext, previews: MessagePreviews, choices: MessageChoices) -> Render:
    """The message on each messenger: as a fragment for htmx, otherwise with the form."""
    form = page.form
    audience = audience_of(form) if form.text("receiver") != "person" else {}
    tried = await _tried(page, previews, audience.get("channels"))
    if page.fragment:
        return Render("compose_preview.html", {"tried": tried})
    return await _form(page, choices, form, form.text("kind") == "recurring", None, tried)


async def preview_changes(
    page: PageContext, scheduling: Scheduling, previews: MessagePreviews, choices: MessageChoices
) -> Render:
    """The edited message on each messenger: as a fragment for htmx, otherwise with the form."""
    record = await get(page, scheduling)
    tried = await _tried(page, previews, (record.shown_audience or {}).get("channels"))
    if page.fragment:
        return Render("compose_preview.html", {"tried": tried})
    return await _form(page, choices, page.form, record.rule is not None, record, tried)


async def runs(page: PageContext, scheduling: Scheduling, clock: Clock) -> Render:
    """A fragment: the recurrence in words, and the next times."""
    body: dict[str, Any] = {"text": "-", "audience": {"all": True}, **_times(query_form(page))}
    words, times, timezone, problem = "", [], "UTC", None
    try:
        rule = scheduling.rule_of(validate(CreateRecurringBody, body, languages=page.languages))
        words, timezone = in_words(rule, page._), rule.timezone
        times = rule.upcoming(clock.now_ms(), RUNS)
    except ApiError as error:
        if error.status >= 500:
            raise
        problem = error
    return Render("runs.html", {"words": words, "times": times, "zone": timezone, "why": problem})


async def create(page: PageContext, scheduling: Scheduling) -> Redirect:
    form = page.form
    body = {**MessageForm(form).message(), **_receiver(form)}
    if form.text("kind") == "recurring":
        wanted = validate(CreateRecurringBody, body | _times(form), languages=page.languages)
        record = await scheduling.create_recurring(page.tx, page.project_id, wanted)
    else:
        wanted_once = validate(ScheduleMessageBody, body | _time(form), languages=page.languages)
        record = await scheduling.create(page.tx, page.project_id, wanted_once)
    page.note(schedule=record.record_id)
    return Redirect(page.url(f"/schedules/{record.record_id}"), notice=page._("Scheduled."))


async def change(page: PageContext, scheduling: Scheduling) -> Redirect:
    record, form = await get(page, scheduling), page.form
    before = PostedForm(_time_values(record))
    body = _changes(MessageForm(form).message())
    if record.rule is not None:
        body |= _differing(_times(form, full=True), _times(before, full=True))
        wanted = validate(UpdateRecurringBody, body, languages=page.languages)
        await scheduling.update_recurring(page.tx, page.project_id, record.record_id, wanted)
    else:
        if _time(form) != _time(before):
            body |= _time(form)
        wanted_once = validate(UpdateScheduledBody, body, languages=page.languages)
        await scheduling.update(page.tx, page.project_id, record.record_id, wanted_once)
    page.note(schedule=record.record_id)
    return Redirect(page.url(f"/schedules/{record.record_id}"), notice=page._("Saved."))


async def _form(
    page: PageContext,
    choices: MessageChoices,
    given: PostedForm,
    repeats: bool,
    record: Record | None,
    tried: TriedMessage | None = None,
) -> Render:
    return Render(
        "compose.html",
        {
            "given": given,
            "offers": await choices.of(page),
            "repeats": repeats,
            "record": record,
            "tried": tried,
        },
    )


async def _tried(
    page: PageContext, previews: MessagePreviews, channels: Sequence[str] | None
) -> TriedMessage | None:
    """None for an empty message."""
    written = MessageForm(page.form)
    if not written.is_written:
        return None
    return await previews.tried(page, written.message(), channels)


def _receiver(form: PostedForm) -> dict[str, Any]:
    """One person, by our id or theirs, or an audience."""
    if form.text("receiver") != "person":
        return {"audience": audience_of(form)}
    person = form.text("person").strip()
    return {"subscriber_id" if person.startswith("sub_") else "external_id": person}


def _changes(message: dict[str, Any]) -> dict[str, Any]:
    """Replaces what the form asks for; null where it was left empty."""
    return {name: message.get(name) for name in MessageForm.FIELDS}


def _time(form: PostedForm) -> dict[str, Any]:
    return {"send_at": form.text("send_at"), "timezone": form.text("timezone").strip()}


def _times(form: PostedForm, *, full: bool = False) -> dict[str, Any]:
    """What says how often; with `full` also what is not given, as null."""
    times: dict[str, Any] = {"timezone": form.text("timezone").strip()}
    rhythm = form.text("rhythm", "days")
    if rhythm == "cron":
        times["cron"] = form.text("cron")
    else:
        times["every"] = {"hours" if rhythm == "hours" else "days": form.number("every")}
    for name in ("starts_at", "ends_at"):
        if (moment := form.text(name)) or full:
            times[name] = moment or None
    quiet = {"from": form.text("quiet_from"), "to": form.text("quiet_to")}
    if any(quiet.values()) or full:
        times["quiet_hours"] = quiet if any(quiet.values()) else None
    return times


def _differing(times: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """An unchanged interval keeps its start."""
    return {name: value for name, value in times.items() if before.get(name, ...) != value}


def _time_values(record: Record) -> dict[str, list[str]]:
    """The times of a record as the form has them."""
    if record.rule is None:
        assert record.send_at_ms is not None, "a scheduled record has its time"
        timezone = record.timezone or "UTC"
        return {"send_at": [_local(record.send_at_ms, timezone)], "timezone": [timezone]}
    return _rule_values(record.rule)


def _rule_values(rule: Rule) -> dict[str, list[str]]:
    rhythm = "cron" if rule.cron is not None else "hours" if rule.hours is not None else "days"
    values = {
        "kind": "recurring",
        "timezone": rule.timezone,
        "rhythm": rhythm,
        "cron": rule.cron or "",
        "every": str(rule.hours or rule.days or ""),
        "starts_at": _local(rule.starts_at_ms, rule.timezone),
        "ends_at": _local(rule.ends_at_ms, rule.timezone),
        "quiet_from": rule.quiet_from or "",
        "quiet_to": rule.quiet_to or "",
    }
    return {name: [text] for name, text in values.items()}


def _local(ms: int | None, timezone: str) -> str:
    return "" if ms is None else local_of(ms, zone(timezone)).isoformat(timespec="minutes")
