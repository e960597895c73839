"""The page of the helpdesk's service levels."""

from typing import get_args

from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import PageContext, Redirect, Render
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.plugins.tickets import Priority
from msgsvc_helpdesk.dashboard.area import pages
from msgsvc_helpdesk.service_levels.models import SlaBody
from msgsvc_helpdesk.service_levels.rules import TARGETS
from msgsvc_helpdesk.service_levels.settings import SlaSettings

PRIORITIES: tuple[Priority, ...] = get_args(Priority)[::-1]


@pages.get("/tickets/settings/service-levels", access="customers:read")
async def service_levels(page: PageContext, sla: SlaSettings) -> Render:
    settings = await sla.settings(page.tx, page.project_id)
    targets = {priority: getattr(settings, priority) for priority in PRIORITIES}
    values = {
        "targets": {
            priority: {
                "times": [
                    (target, _written(getattr(each, f"{target}_minutes"))) for target in TARGETS
                ],
                "counted_in": each.counted_in,
            }
            for priority, each in targets.items()
        },
        "warn": _written(settings.warn_minutes),
    }
    return Render("service_levels.html", values)


@pages.post(
    "/tickets/settings/service-levels",
    access="project:write",
    form_page=service_levels,
    title=lambda _: _("Service levels changed"),
)
async def change_service_levels(page: PageContext, sla: SlaSettings) -> Redirect:
    body: dict[str, object] = {
        priority: {
            **{
                f"{target}_minutes": _minutes(page, f"{priority}.{target}_minutes")
                for target in TARGETS
            },
            "counted_in": page.form.text(f"{priority}.counted_in") or "business_hours",
        }
        for priority in PRIORITIES
    }
    body["warn_minutes"] = _minutes(page, "warn_minutes") or 0
    await sla.change(page.tx, page.project_id, validate(SlaBody, body))
    page.note(warn_minutes=body["warn_minutes"])
    return Redirect(page.url("/tickets/settings/service-levels"), notice=page._("Saved."))


def _written(minutes: int | None) -> str:
    """Minutes as hours and minutes, `1:30`; nothing for none."""
    return f"{minutes // 60}:{minutes % 60:02}" if minutes else ""


def _minutes(page: PageContext, name: str) -> int | None:
    """What a field says, as `1:30`, or `8` for hours; None if it is empty. Raises `ValidationFailed`."""
    hours, colon, minutes = page.form.text(name).strip().partition(":")
    if not hours and not colon:
        return None
    parts = (hours, minutes if colon else "0")
    if not all(part.isdecimal() and len(part) <= 5 for part in parts):
        raise ValidationFailed("write hours and minutes as 1:30, or hours alone as 8", field=name)
    return int(parts[0]) * 60 + int(parts[1])
