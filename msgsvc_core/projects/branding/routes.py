"""/v1/project/branding."""

import asyncio

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.uploads import Upload
from msgsvc_core.config.settings import Settings
from msgsvc_core.projects.branding.models import BrandingAnswer, UpdateBrandingBody
from msgsvc_core.projects.branding.service import ProjectBranding

router = Router(
    area="project",
    description="The project of the API key: its limits, its channels, and what its bots say.",
)


@router.get("/v1/project/branding")
async def get_branding(
    ctx: Context, branding: ProjectBranding, settings: Settings
) -> BrandingAnswer:
    """Shows the logo, the accent colour and the sender's name of the project's public pages."""
    return BrandingAnswer.of(await branding.get(ctx.tx, ctx.project_id), settings.base_url)


@router.patch("/v1/project/branding", audited=lambda _: _("Branding changed"))
async def update_branding(
    ctx: Context, body: UpdateBrandingBody, branding: ProjectBranding, settings: Settings
) -> BrandingAnswer:
    """Changes the sender's name and the accent colour.

    Any colour is accepted: where it could not be told apart from a page, pages use the nearest shade that
    can, see `shades`.
    """
    changed = await branding.update(ctx.tx, ctx.project_id, body)
    return BrandingAnswer.of(changed, settings.base_url)


@router.post("/v1/project/branding/logo", audited=lambda _: _("Branding changed"))
async def set_logo(
    ctx: Context, upload: Upload, branding: ProjectBranding, settings: Settings
) -> BrandingAnswer:
    """Replaces the logo, sent as the field `file` of multipart/form-data.

    It is a PNG of at most 1,024 pixels a side, or an SVG of shapes and gradients, of at most
    `limits.logo_bytes`. The file is written anew: texts, animations and other parts of a PNG are dropped, and
    an SVG with scripts, styles, pictures or links is refused.
    """
    # One byte more shows that it is too large.
    content = await asyncio.to_thread(upload.file.read, branding.max_bytes + 1)
    changed = await branding.set_logo(ctx.tx, ctx.project_id, content)
    return BrandingAnswer.of(changed, settings.base_url)


@router.delete("/v1/project/branding/logo", status=204, audited=lambda _: _("Branding changed"))
async def remove_logo(ctx: Context, branding: ProjectBranding) -> None:
    """Removes the logo; pages show only the sender's name."""
    await branding.remove_logo(ctx.tx, ctx.project_id)
