"""The page of the helpdesk's business hours."""

from typing import Any

from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import PageContext, Redirect, Render
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_helpdesk.dashboard.area import pages
from msgsvc_helpdesk.service_levels.desk_hours import DeskHours
from msgsvc_helpdesk.service_levels.hours_models import (
    WEEKDAYS,
    HoursSettings,
    UpdateHoursBody,
    business_hours,
)


@pages.get("/tickets/settings/hours", access="customers:read")
async def hours(page: PageContext, desk: DeskHours, clock: Clock) -> Render:
    settings = await desk.settings(page.tx, page.project_id)
    # A desk without hours of its own is proposed the reader's time zone.
    is_new = not settings.openings and not settings.holidays
    arithmetic, now_ms = business_hours(settings), clock.now_ms()
    values = {
        "hours": settings,
        "timezone": page.timezone.key if is_new else settings.timezone,
        "week": [(day, _written(settings, day)) for day in WEEKDAYS],
        "away": _away_texts(page, settings),
        "holidays": "\n".join(f"{day.date} {day.name or ''}".rstrip() for day in settings.holidays),
        "is_open": arithmetic.is_open(now_ms),
        "opens_ms": arithmetic.next_opening(now_ms),
    }
    return Render("hours.html", values)


@pages.post(
    "/tickets/settings/hours",
    access="project:write",
    form_page=hours,
    title=lambda _: _("Business hours changed"),
)
async def change_hours(page: PageContext, desk: DeskHours) -> Redirect:
    openings = [one for day in WEEKDAYS for one in _openings(page, day)]
    body = {
        "timezone": page.form.text("timezone").strip(),
        "openings": openings,
        "holidays": _holidays(page),
        "away_message": _away_message(page),
    }
    wanted = validate(UpdateHoursBody, body, languages=page.languages)
    await desk.change(page.tx, page.project_id, wanted)
    page.note(
        timezone=body["timezone"], openings=len(openings), holidays=len(wanted.holidays or ())
    )
    return Redirect(page.url("/tickets/settings/hours"), notice=page._("Saved."))


def _written(settings: HoursSettings, day: str) -> str:
    """The hours of a day as people write them: `09:00-13:00, 14:00-18:00`."""
    return ", ".join(f"{one.opens}-{one.closes}" for one in settings.openings if one.day == day)


def _openings(page: PageContext, day: str) -> list[dict[str, str]]:
    """What a field of a day says. Raises `ValidationFailed`."""
    written = page.form.text(day).replace("–", "-")
    openings = []
    for part in filter(None, (each.strip() for each in written.split(","))):
        opens, dash, closes = part.partition("-")
        opening = {"opens": _padded(opens), "closes": _padded(closes)}
        if not dash or any(len(time) != len("09:00") for time in opening.values()):
            raise ValidationFailed(
                "write hours as 09:00-18:00, with commas between them", field=day
            )
        openings.append({"day": day, **opening})
    return openings


def _padded(time: str) -> str:
    """`9` and `9:00` as `09:00`."""
    hour, _, minute = time.strip().partition(":")
    return f"{hour.zfill(2)}:{minute or '00'}"


def _away_texts(page: PageContext, settings: HoursSettings) -> dict[str, str]:
    """The message for closed hours in each language that the service speaks."""
    kept = settings.away_message or {}
    given = {page.languages[0]: kept} if isinstance(kept, str) else kept
    return {**dict.fromkeys(page.languages, ""), **given}


def _away_message(page: PageContext) -> dict[str, str] | None:
    """What is written in each language; None for nothing at all."""
    texts = {lang: page.form.text(f"away_{lang}").strip() for lang in page.languages}
    return {lang: text for lang, text in texts.items() if text} or None


def _holidays(page: PageContext) -> list[dict[str, Any]]:
    """A day a line, with its name after it."""
    lines = filter(None, (line.strip() for line in page.form.text("holidays").split("\n")))
    parts = (line.partition(" ") for line in lines)
    return [{"date": day, "name": name.strip() or None} for day, _, name in parts]
