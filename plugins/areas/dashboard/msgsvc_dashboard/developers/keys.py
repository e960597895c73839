"""API keys: created, shown once, revoked."""

from datetime import date, datetime, time, timedelta

from msgsvc_core.api.samples import samples_of
from msgsvc_core.config.settings import Settings
from msgsvc_core.dashboard import Nav, PageContext, Redirect, Render
from msgsvc_core.kernel.clock import DAY_MS, check_year, to_rfc3339
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.time_zones import ms_of
from msgsvc_core.projects.service import Projects
from msgsvc_dashboard.developers.area import pages
from msgsvc_dashboard.developers.scopes import KeyAreas

#: Days until expiry that the form offers, beside a date and never.
EXPIRY_DAYS = (30, 90, 365)


@pages.get(
    "/keys", access="project:read", nav=Nav("API keys", icon="key", group="developers", order=10)
)
async def keys(page: PageContext, projects: Projects, settings: Settings) -> Render:
    found = list(reversed(await projects.keys_of(page.tx, page.project_id)))
    values = {
        "keys": [each for each in found if each.revoked_at_ms is None],
        "revoked": [each for each in found if each.revoked_at_ms is not None],
        "now_ms": page.clock.now_ms(),
        "base_url": settings.base_url,
        "docs_url": f"{settings.base_url}/docs" if settings.api_docs else "",
        "samples": samples_of("get_project", settings.base_url),
    }
    return Render("keys.html", values)


@pages.get("/keys/new", access="project:write")
async def new_key(page: PageContext, areas: KeyAreas) -> Render:
    values = {
        "presets": areas.presets(page),
        "groups": areas.groups(page),
        "expiry_days": EXPIRY_DAYS,
    }
    return Render("key_new.html", values)


@pages.post(
    "/keys", access="project:write", form_page=new_key, title=lambda _: _("API key created")
)
async def create_key(
    page: PageContext, projects: Projects, areas: KeyAreas, settings: Settings
) -> Render:
    name = page.form.text("name").strip()
    key, secret = await projects.add_key(
        page.tx,
        page.project_id,
        name,
        areas.chosen(page),
        expires_at_ms=_expires_at_ms(page),
    )
    page.note(key_id=key.key_id)
    if key.expires_at_ms is not None:
        page.note(expires_at=to_rfc3339(key.expires_at_ms))
    samples = samples_of(areas.first_call(key), settings.base_url)
    return Render("key_secret.html", {"key": key, "secret": secret, "samples": samples})


@pages.post("/keys/{key_id}/revoke", access="project:write", title=lambda _: _("API key revoked"))
async def revoke_key(page: PageContext, projects: Projects) -> Redirect:
    await projects.revoke_key_in(page.tx, page.project_id, page.params["key_id"])
    return Redirect(page.url("/keys"), page._("Revoked. Requests with this key are now refused."))


def _expires_at_ms(page: PageContext) -> int | None:
    """The end of the last day on which the new key works, by the reader's clock; None for never."""
    chosen = page.form.text("expires")
    if chosen in map(str, EXPIRY_DAYS):
        return page.clock.now_ms() + int(chosen) * DAY_MS
    if chosen != "date":
        return None
    try:
        last = date.fromisoformat(page.form.text("expires_at"))
        check_year(last.year)
    except ValueError:
        raise ValidationFailed("must be a day, as 2026-11-21", field="expires_at") from None
    return ms_of(datetime.combine(last + timedelta(days=1), time()), page.timezone)
