"""Origin check of POST requests: allows our own pages, and programs, which send no origin."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from msgsvc_core.kernel.errors import Forbidden


def check_same_origin(headers: Mapping[str, str], base_url: str) -> None:
    """Raises `Forbidden` for a request from another site's page.

    Browsers always send the origin of a POST; a request without one is not from a page. If a proxy changes
    the host, `base_url` is used.
    """
    ours = {headers.get("host", "").lower(), urlsplit(base_url).netloc.lower()}
    origin = headers.get("origin")
    if (origin is not None and _netloc(origin) not in ours) or headers.get(
        "sec-fetch-site", "same-origin"
    ) != "same-origin":
        raise Forbidden("another site's page can't sign anybody in")


def _netloc(origin: str) -> str:
    """Host and port; empty for the `null` of a page without an origin."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
