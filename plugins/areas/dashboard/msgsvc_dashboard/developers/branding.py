"""How the project looks on its public pages, with a preview."""

from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import PageContext, Redirect, Render
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.projects.branding import DEFAULT_ACCENT, Branding, shades_of
from msgsvc_core.projects.branding.models import UpdateBrandingBody
from msgsvc_core.projects.branding.service import ProjectBranding
from msgsvc_dashboard.developers.area import pages

#: Bytes of the form besides the logo.
FORM_BYTES = 64 * 1024

#: Bytes of a logo that are read before it is refused as too large.
UPLOAD_BYTES = 2 * 1024 * 1024


@pages.get("/branding", access="project:read")
async def branding(page: PageContext, branding: ProjectBranding) -> Render:
    found = await branding.get(page.tx, page.project_id)
    return Render(
        "branding.html",
        {
            "branding": found,
            "accent": found.accent or DEFAULT_ACCENT,
            "logo_bytes": branding.max_bytes,
            **_preview(page, found),
        },
    )


@pages.post(
    "/branding",
    access="project:write",
    form_page=branding,
    upload_bytes=UPLOAD_BYTES + FORM_BYTES,
    title=lambda _: _("Branding changed"),
)
async def change_branding(page: PageContext, branding: ProjectBranding) -> Redirect:
    await branding.update(page.tx, page.project_id, _typed(page))
    logo = page.form.file("logo")
    if logo is not None:
        content = logo.file.read(branding.max_bytes + 1)
        await branding.set_logo(page.tx, page.project_id, content)
    elif page.form.checked("remove_logo"):
        await branding.remove_logo(page.tx, page.project_id)
    return Redirect(page.url("/branding"), page._("Saved."))


@pages.post("/branding-preview", access="project:write", read_only=True)
async def branding_preview(page: PageContext, branding: ProjectBranding) -> Render:
    """How a sign-in page looks with the values of the form; the logo is the stored one."""
    found = await branding.get(page.tx, page.project_id)
    try:
        body = _typed(page)
    except ApiError as error:
        return Render("branding_preview.html", {**_preview(page, found), "refused": error})
    logo = None if page.form.checked("remove_logo") else found.logo
    return Render(
        "branding_preview.html",
        _preview(page, Branding(body.sender_name, body.accent and body.accent.lower(), logo)),
    )


def _typed(page: PageContext) -> UpdateBrandingBody:
    """The picker always has a colour: the service's own means none."""
    accent = page.form.text("accent").strip().lower()
    return validate(
        UpdateBrandingBody,
        {
            "sender_name": page.form.text("sender_name").strip() or None,
            "accent": None if accent in {"", DEFAULT_ACCENT} else accent,
        },
        languages=page.languages,
    )


def _preview(page: PageContext, branding: Branding) -> dict[str, object]:
    assert page.project is not None, "the page is of a project"
    colour = branding.accent or DEFAULT_ACCENT
    shades = shades_of(colour)
    # The stylesheet and the logo are the service's, beside the dashboard.
    root = page.root.removesuffix("/dashboard")
    return {
        "brand": branding.on_page(branding.sender_name or page.project.name, root),
        "stylesheet": f"{root}/brand/preview/{colour[1:]}.css" if branding.accent else "",
        "shades": shades,
        "adjusted": [
            scheme
            for scheme, accent in (("light", shades.light.accent), ("dark", shades.dark.accent))
            if branding.accent and accent != colour
        ],
        "refused": None,
    }
