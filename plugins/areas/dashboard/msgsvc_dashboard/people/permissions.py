"""Permissions; deleting one with grants requires confirming their number."""

from msgsvc_core.api.validation import validate
from msgsvc_core.config.settings import Settings
from msgsvc_core.dashboard import Nav, PageContext, Redirect, Render
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.values import whole_number
from msgsvc_core.subscribers.permissions.models import CreatePermissionBody, UpdatePermissionBody
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_dashboard.people import labels
from msgsvc_dashboard.people.content import by_language, read_text
from msgsvc_dashboard.people.declared import permission_pages as pages


@pages.get(
    "/permissions",
    access="project:read",
    nav=Nav("Permissions", "shield", group="people", order=40),
)
async def permissions(
    page: PageContext, all_permissions: Permissions, settings: Settings
) -> Render:
    project_id = page.project_id
    found = await all_permissions.list_all(page.tx, project_id)
    counted = await all_permissions.count_active_roughly(
        page.tx, project_id, found, labels.MOST_COUNTED + 1
    )
    return Render(
        "permissions.html",
        {
            "permissions": found,
            "active": counted,
            "most": settings.limits.permissions,
            "words": labels,
            "default_lang": settings.default_lang,
        },
    )


@pages.get("/permissions/{permission_key}", access="project:read")
async def permission(page: PageContext, all_permissions: Permissions, settings: Settings) -> Render:
    project_id = page.project_id
    found = await all_permissions.get(page.tx, project_id, page.params["permission_key"])
    counted = await all_permissions.count_active(page.tx, project_id, [found])
    return Render(
        "permission.html",
        {
            "permission": found,
            "active": counted.get(found.key, 0),
            "title": by_language(found.title, settings.default_lang),
            "description": by_language(found.description, settings.default_lang),
            "default_lang": settings.default_lang,
        },
    )


@pages.post(
    "/permissions",
    access="project:write",
    form_page=permissions,
    title=lambda _: _("Permission created"),
)
async def create(page: PageContext, all_permissions: Permissions) -> Redirect:
    form = page.form
    body = validate(
        CreatePermissionBody,
        {
            "key": form.text("key").strip(),
            "title": read_text(form, "title", page.languages),
            "description": read_text(form, "description", page.languages) or None,
            "default": form.checked("default"),
        },
        languages=page.languages,
    )
    page.note(permission=body.key)
    await all_permissions.create(page.tx, page.project_id, body)
    return Redirect(page.url("/permissions"), notice=page._("Permission created."))


@pages.post(
    "/permissions/{permission_key}",
    access="project:write",
    form_page=permission,
    title=lambda _: _("Permission changed"),
)
async def edit(page: PageContext, all_permissions: Permissions) -> Redirect:
    form, key = page.form, page.params["permission_key"]
    body = validate(
        UpdatePermissionBody,
        {
            "title": read_text(form, "title", page.languages),
            "description": read_text(form, "description", page.languages) or None,
            "default": form.checked("default"),
        },
        languages=page.languages,
    )
    page.note(permission=key)
    await all_permissions.update(page.tx, page.project_id, key, body)
    return Redirect(page.url("/permissions"), notice=page._("Saved."))


@pages.post(
    "/permissions/{permission_key}/delete",
    access="project:write",
    form_page=permission,
    title=lambda _: _("Permission deleted"),
)
async def delete(page: PageContext, all_permissions: Permissions) -> Redirect:
    key = page.params["permission_key"]
    confirmed = typed_count(page.form.text("confirmed"))
    if confirmed is None:
        raise ValidationFailed("type the number of subscribers who granted it", field="confirmed")
    removed = await all_permissions.delete_confirmed(page.tx, page.project_id, key, confirmed)
    page.note(permission=key, granted_by=removed)
    return Redirect(page.url("/permissions"), notice=page._("The permission is deleted."))


def typed_count(text: str) -> int | None:
    """The number, with the separators that pages show ("12,500", "12 500") or without; None for other text,
    0 for none."""
    digits = "".join(text.replace(",", "").split())
    return whole_number(digits or "0")
