"""The page of the helpdesk's service levels."""

from typing import get_args

from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import PageContext, Redirect, Render
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.plugins.tickets import Priority
from msgsvc_helpdesk.dashboard.area import pages
from msgsvc_helpdesk.service_levels.models import UpdateSlaBody
from msgsvc_helpdesk.service_levels.rules import TARGETS
from msgsvc_helpdesk.service_levels.settings import SlaSettings

PRIORITIES: tuple[Priority, ...] = get_args(Priority)[::-1]


#: Seconds of an hour, a minute and a second, as they are written.
UNITS = (3600, 60, 1)


@pages.get("/tickets/settings/service-levels", access="customers:read")
async def service_levels(page: PageContext, sla: SlaSettings) -> Render:
    settings = await sla.settings(page.tx, page.project_id)
    targets = {priority: getattr(settings, priority) for priority in PRIORITIES}
    values = {
        "targets": {
            priority: {
                "times": [
                    (target, _written(getattr(each, f"{target}_seconds"))) for target in TARGETS
                ],
                "counted_in": each.counted_in,
            }
            for priority, each in targets.items()
        },
        "warn": _written(settings.warn_seconds),
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
                f"{target}_seconds": _seconds(page, f"{priority}.{target}_seconds")
                for target in TARGETS
            },
            "counted_in": page.form.text(f"{priority}.counted_in") or "business_hours",
        }
        for priority in PRIORITIES
    }
    body["warn_seconds"] = _seconds(page, "warn_seconds") or 0
    await sla.change(page.tx, page.project_id, validate(UpdateSlaBody, body))
    page.note(warn_seconds=body["warn_seconds"])
    return Redirect(page.url("/tickets/settings/service-levels"), notice=page._("Saved."))


def _written(seconds: int | None) -> str:
    """Seconds as hours and minutes, `1:30`, with seconds only where there are some; nothing for none."""
    if not seconds:
        return ""
    minutes, rest = divmod(seconds, 60)
    written = f"{minutes // 60}:{minutes % 60:02}"
    return f"{written}:{rest:02}" if rest else written


def _seconds(page: PageContext, name: str) -> int | None:
    """What a field says, as `1:30`, `8` for hours, or `0:01:30`; None if it is empty. Raises
    `ValidationFailed`."""
    written = page.form.text(name).strip()
    if not written:
        return None
    parts = written.split(":")
    if len(parts) > len(UNITS) or not all(part.isdecimal() and len(part) <= 5 for part in parts):
        raise ValidationFailed("write hours and minutes as 1:30, or hours alone as 8", field=name)
    return sum(int(part) * unit for part, unit in zip(parts, UNITS, strict=False))
