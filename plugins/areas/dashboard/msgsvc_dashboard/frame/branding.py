"""How the dashboard of an installation looks: its name, its accent colour and its logo, by the settings."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.projects.branding import CheckedLogo, LogoRefused, PageBrand, check_logo
from msgsvc_dashboard.frame.addresses import ROOT
from msgsvc_dashboard.settings import AccountSettings

#: Bytes of the file of a logo.
MAX_LOGO_BYTES = 262_144

#: Height of a logo in the top bar, in CSS pixels.
SHOWN_HEIGHT = 24

_HEADERS = {
    "Cache-Control": "public, max-age=3600",
    "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class InstallationBrand:
    """Raises `SettingsError` for a logo that can't be read or shown."""

    def __init__(
        self, settings: AccountSettings | None = None, *, is_quarantined: bool = False
    ) -> None:
        #: Whether pages warn that this copy sends nothing.
        self.is_quarantined = is_quarantined
        settings = settings or AccountSettings()
        self._name = settings.name
        self._accent = settings.accent.lower()
        self._logo = None if settings.logo is None else _read(settings.logo)

    def on_page(self, root: str) -> PageBrand:
        """`root` is the path of the dashboard, also below another application."""
        colours = f"{root.removesuffix(ROOT)}/brand/{self._accent[1:]}.css" if self._accent else ""
        logo = self._logo
        if logo is None:
            return PageBrand(self._name, colours)
        width = round(logo.width * SHOWN_HEIGHT / logo.height)
        return PageBrand(self._name, colours, f"{root}/_brand/logo", width, SHOWN_HEIGHT)

    def routes(self) -> list[BaseRoute]:
        logo = self._logo
        if logo is None:
            return []

        async def show(_request: Request) -> Response:
            return Response(logo.content, media_type=logo.media_type, headers=_HEADERS)

        return [Route(f"{ROOT}/_brand/logo", show)]


def _read(path: Path) -> CheckedLogo:
    try:
        return check_logo(path.read_bytes(), max_bytes=MAX_LOGO_BYTES)
    except OSError as error:
        raise SettingsError(f"dashboard.logo: {path} can't be read: {error.strerror}") from None
    except LogoRefused as error:
        raise SettingsError(f"dashboard.logo: {path}: {error}") from None
