"""How a project looks on its public pages: logo, accent colour, name of the sender."""

from msgsvc_core.projects.branding.colours import DEFAULT_ACCENT, Shades, shades_of
from msgsvc_core.projects.branding.logos import CheckedLogo, LogoRefused, check_logo
from msgsvc_core.projects.branding.models import Branding, Logo, PageBrand

__all__ = [
    "DEFAULT_ACCENT",
    "Branding",
    "CheckedLogo",
    "Logo",
    "LogoRefused",
    "PageBrand",
    "Shades",
    "check_logo",
    "shades_of",
]
