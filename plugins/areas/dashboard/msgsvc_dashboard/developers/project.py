"""Settings of the project: its name, its system messages, its limits."""

from typing import Any

from msgsvc_core.api.validation import validate
from msgsvc_core.config.settings import Settings
from msgsvc_core.dashboard import Nav, PageContext, Redirect, Render
from msgsvc_core.kernel.i18n import Localized, Title, Translate, titled
from msgsvc_core.mailings.links import PATH
from msgsvc_core.projects.models import UpdateProjectBody
from msgsvc_core.projects.overview import ProjectOverview
from msgsvc_core.projects.service import Projects
from msgsvc_dashboard.developers.area import pages


@pages.get(
    "/settings",
    access="project:read",
    nav=Nav("Settings", icon="gear", group="project", order=90, also=("/branding",)),
)
async def project(
    page: PageContext, projects: Projects, settings: Settings, overview: ProjectOverview
) -> Render:
    found = await projects.get(page.tx, page.project_id)
    texts = await projects.texts(page.tx, page.project_id)
    limits = overview.limits.model_dump()
    limits |= limits.pop("plugins")
    values = {
        "project": found,
        "welcome": _by_language(page, texts.welcome),
        "farewell": _by_language(page, texts.farewell),
        "limits": [
            (name, _limit(page._, name, overview.limit_titles.get(name)), value)
            for name, value in limits.items()
        ],
        "langs": page.languages,
        "links_at": f"{settings.base_url}{PATH}",
    }
    return Render("project.html", values)


@pages.post(
    "/settings", access="project:write", form_page=project, title=lambda _: _("Settings changed")
)
async def change_project(page: PageContext, projects: Projects) -> Redirect:
    body = validate(
        UpdateProjectBody,
        {
            "name": page.form.text("name").strip(),
            "welcome": _typed(page, "welcome"),
            "farewell": _typed(page, "farewell"),
            "link_tracking": page.form.checked("link_tracking"),
        },
        languages=page.languages,
    )
    await projects.update(page.tx, page.project_id, body)
    return Redirect(page.url("/settings"), page._("Saved."))


def _limit(_: Translate, name: str, title: Title | None) -> str:
    """The label of a limit; those of plugins have a `title`."""
    if title is not None:
        return titled(_, title)
    return {
        "requests_per_minute": _("API requests per minute"),
        "text_length": _("Characters of a message"),
        "button_rows": _("Rows of buttons under a message"),
        "buttons_per_row": _("Buttons in a row"),
        "tags": _("Tags"),
        "permissions": _("Permissions"),
        "templates": _("Templates"),
        "attributes_bytes": _("Bytes of a subscriber's attributes"),
        "batch_messages": _("Messages of one batch"),
        "event_properties_bytes": _("Bytes of an event's properties"),
        "routes": _("Routes"),
        "route_steps": _("Steps of a route"),
        "broadcast_recipients": _("Recipients of a broadcast"),
        "broadcast_ids": _("IDs that an audience may name"),
        "bulk_action_subscribers": _("Subscribers of one bulk action"),
        "import_rows": _("Rows of an imported file"),
    }.get(name, name)


def _by_language(page: PageContext, text: Localized | None) -> dict[str, str]:
    if text is None:
        return {}
    if isinstance(text, str):
        return dict.fromkeys(page.languages, text)
    return {str(lang): each for lang, each in text.items()}


def _typed(page: PageContext, field: str) -> dict[str, Any] | None:
    texts = {lang: page.form.text(f"{field}_{lang}").strip() for lang in page.languages}
    return {lang: text for lang, text in texts.items() if text} or None
