"""What every route starts from: the site, the browser that asks, and what it posted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from pages import Pages
from service_api import MsgsvcClient
from sessions import COOKIE_NAME, SESSION_TTL_S, BrowserSession, SessionStore
from settings import SiteSettings
from sign_in import SignIn
from webhooks import Inbox

#: Bytes of a request body that are read; the service's events are far smaller.
MAX_BODY_BYTES = 1_048_576


@dataclass
class Site:
    """Everything the routes need; one per application."""

    settings: SiteSettings
    client: MsgsvcClient
    sign_in: SignIn
    sessions: SessionStore
    inbox: Inbox
    pages: Pages


def site_of(request: Request) -> Site:
    """The site this request came to."""
    return cast(Site, request.app.state.site)


def browser_of(request: Request) -> BrowserSession | None:
    """The session of the browser that asks; None for one without."""
    return site_of(request).sessions.find(request.cookies.get(COOKIE_NAME))


def keep_cookie(site: Site, response: Response, browser: BrowserSession) -> None:
    """Give the browser its session.

    SameSite=Lax is also what guards our forms against cross-site requests: another site's POST
    arrives without the cookie, hence signed out. Lax and not Strict, because the messenger brings
    the person back to /callback from outside, and that GET must carry the cookie.
    """
    response.set_cookie(
        COOKIE_NAME,
        browser.key,
        max_age=SESSION_TTL_S,
        httponly=True,
        samesite="lax",
        secure=site.settings.url.startswith("https:"),
    )


async def body_of(request: Request) -> bytes:
    """The raw body; refused while it arrives once it is too large."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise HTTPException(413)
    return bytes(body)


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a posted form, the last of each name."""
    fields = parse_qs((await body_of(request)).decode("utf-8", "replace"))
    return {name: values[-1] for name, values in fields.items()}
