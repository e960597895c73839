"""API keys: created, shown once, revoked."""

from collections.abc import Callable, Sequence

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.config.settings import Settings
from msgsvc_core.dashboard import Nav, PageContext, Redirect, Render
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.projects.models import ALL_BUT_OWNERS, EVERYTHING
from msgsvc_core.projects.service import Projects
from msgsvc_dashboard.developers.area import pages


class KeyAreas:
    """The areas that a key may have as scopes. `endpoints` has all of them."""

    def __init__(self, *, endpoints: Callable[[], Sequence[Endpoint]]) -> None:
        self._endpoints = endpoints

    def of(self, page: PageContext) -> list[str]:
        """Those that whoever makes a key may open."""
        every = [each for each in self._endpoints() if not each.public]
        return sorted(
            {each.area for each in every if page.may("project:own") or not each.owners_only}
        )


@pages.get(
    "/keys", access="project:read", nav=Nav("API keys", icon="key", group="developers", order=10)
)
async def keys(page: PageContext, projects: Projects, areas: KeyAreas) -> Render:
    found = await projects.keys_of(page.tx, page.project_id)
    in_use = [each for each in reversed(found) if each.revoked_at_ms is None]
    revoked = [each for each in reversed(found) if each.revoked_at_ms is not None]
    return Render("keys.html", {"keys": in_use, "revoked": revoked, "areas": areas.of(page)})


@pages.post("/keys", access="project:write", form_page=keys)
async def create_key(
    page: PageContext, projects: Projects, areas: KeyAreas, settings: Settings
) -> Render:
    chosen = page.form.texts("areas")
    scopes = tuple(area for area in areas.of(page) if area in chosen)
    if page.form.text("which") != "some":
        scopes = (EVERYTHING if page.may("project:own") else ALL_BUT_OWNERS,)
    elif not scopes:
        # What opens nothing must not open everything.
        raise ValidationFailed(page._("Choose at least one scope, or all."))
    name = page.form.text("name").strip()
    key, secret = await projects.add_key(page.tx, page.project_id, name, scopes)
    page.note(key_id=key.key_id)
    return Render("key_secret.html", {"key": key, "secret": secret, "base_url": settings.base_url})


@pages.post("/keys/{key_id}/revoke", access="project:write")
async def revoke_key(page: PageContext, projects: Projects) -> Redirect:
    await projects.revoke_key_in(page.tx, page.project_id, page.params["key_id"])
    return Redirect(page.url("/keys"), page._("Revoked. Requests with this key are now refused."))
