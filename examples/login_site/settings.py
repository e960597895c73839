"""What the site reads from its environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class SettingsError(Exception):
    """The environment lacks something, or holds a value that cannot work."""


@dataclass(frozen=True)
class SiteSettings:
    """Everything the site must be told; see the table in README.md."""

    #: Address and port to listen on.
    host: str
    port: int
    #: The site's own public address, without a trailing slash.
    url: str
    name: str
    #: Address of the msgsvc API.
    service_url: str
    #: The service's own sign-in page, as browsers reach it.
    hosted_page: str
    #: Stays on the server: whoever holds it can write to every subscriber of the project.
    api_key: str
    webhook_secret: str

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> SiteSettings:
        """Read the `LOGIN_SITE_*` variables; raises SettingsError that names every missing one."""
        required = ("SERVICE_URL", "API_KEY", "WEBHOOK_SECRET")
        missing = [f"LOGIN_SITE_{name}" for name in required if not env.get(f"LOGIN_SITE_{name}")]
        if missing:
            raise SettingsError(f"please set {', '.join(missing)} (see README.md)")
        host, port = env.get("LOGIN_SITE_HOST", "127.0.0.1"), env.get("LOGIN_SITE_PORT", "8090")
        if not port.isdecimal() or not 1 <= int(port) <= 65535:
            raise SettingsError(f"LOGIN_SITE_PORT must be a number from 1 to 65535, not {port!r}")
        service_url = env["LOGIN_SITE_SERVICE_URL"]
        public_url = env.get("LOGIN_SITE_SERVICE_PUBLIC_URL", service_url).rstrip("/")
        return cls(
            host=host,
            port=int(port),
            url=env.get("LOGIN_SITE_URL", f"http://{host}:{port}").rstrip("/"),
            name=env.get("LOGIN_SITE_NAME", "Pinewood Library"),
            service_url=service_url,
            hosted_page=f"{public_url}/login/{env.get('LOGIN_SITE_LINK_SLUG', 'demo')}",
            api_key=env["LOGIN_SITE_API_KEY"],
            webhook_secret=env["LOGIN_SITE_WEBHOOK_SECRET"],
        )
