"""Whether strangers can reach a messenger without passwords, according to the settings."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from msgsvc_core.config.settings import Settings
from msgsvc_core.plugins.advice import Finding, warning
from msgsvc_core.security.networks import is_private

FIX = 'take "sandbox" out of `plugins`, or set pages = "off" in [sandbox]'


def check_exposure(settings: Settings) -> Iterator[Finding]:
    """Reads the section as written: it may be invalid, which is a separate finding."""
    section = (settings.model_extra or {}).get("sandbox")
    pages = section.get("pages", "local") if isinstance(section, dict) else "local"
    host = urlsplit(settings.base_url).hostname or ""
    if pages == "everyone":
        text = "the messenger for development is open to everyone, and has no passwords"
        yield warning("sandbox", text, FIX)
    elif pages != "off" and not is_private(host):
        text = f"the messenger for development, without passwords, is loaded at {host}"
        yield warning("sandbox", text, FIX)
