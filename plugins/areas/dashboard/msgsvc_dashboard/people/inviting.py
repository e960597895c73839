"""Subscription links, per messenger and as a QR code."""

from msgsvc_core.api.validation import validate
from msgsvc_core.channels.registry import Channels
from msgsvc_core.config.settings import Settings
from msgsvc_core.dashboard import PageContext, Render
from msgsvc_core.subscribers.links import SubscriptionLinks
from msgsvc_core.subscribers.models import CreateLinkBody
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_core.subscribers.tags.service import Tags
from msgsvc_dashboard.people.declared import subscriber_pages as pages

DAY_S = 24 * 3600


@pages.get("/invite", access="project:write")
async def invite(
    page: PageContext, tags: Tags, permissions: Permissions, settings: Settings
) -> Render:
    return Render(
        "invite.html", {"links": None, **await _choices(page, tags, permissions, settings)}
    )


@pages.post(
    "/invite",
    access="project:write",
    form_page=invite,
    title=lambda _: _("Subscription link created"),
)
async def make_link(
    page: PageContext,
    all_links: SubscriptionLinks,
    channels: Channels,
    settings: Settings,
    tags: Tags,
    permissions: Permissions,
) -> Render:
    form = page.form
    new_tags = form.text("new_tags").replace(",", " ").split()
    days = form.number("days")
    given = {
        "tags": list(dict.fromkeys([*form.texts("tags"), *new_tags])),
        "permissions": form.texts("permissions"),
        "external_id": form.text("external_id").strip() or None,
        "expires_in": days * DAY_S if isinstance(days, int) else days,
    }
    body = validate(CreateLinkBody, given)
    project_id = page.project_id
    payload, expires_at_ms = await all_links.create(page.tx, project_id, body)
    links = channels.deep_links(project_id, payload)
    await channels.remember_start(page.tx, project_id, payload, expires_at_ms)
    typed = channels.start_messages(project_id, payload, links)
    qr = channels.qr_links(links, project_id, payload)
    page.note(tags=body.tags, permissions=body.permissions)
    base, here = settings.base_url, page.root.removesuffix("/dashboard")
    return Render(
        "invite.html",
        {
            # The pictures by the address that the page came from: its policy allows no other.
            "links": [
                (name, links[name], here + qr[name].removeprefix(base), typed.get(name))
                for name in links
            ],
            "expires_at_ms": expires_at_ms,
            **await _choices(page, tags, permissions, settings),
        },
    )


async def _choices(
    page: PageContext, tags: Tags, permissions: Permissions, settings: Settings
) -> dict[str, object]:
    return {
        "tags": await tags.list_all(page.tx, page.project_id, 0),
        "permissions": await permissions.list_all(page.tx, page.project_id),
        "default_lang": settings.default_lang,
    }
