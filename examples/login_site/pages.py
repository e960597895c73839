"""The site as routes see it: rendering, language, and the headers every page carries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse

from msgsvc_client import ApiError, AsyncClient, MsgsvcError
from settings import SiteSettings
from texts import LANGUAGES, Texts, choose
from webhooks import Inbox

HERE = Path(__file__).parent
LANG_COOKIE = "login_site_lang"

#: Strict, and the sign-in element runs under it as it is.
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; script-src 'self'; style-src 'self'; "
    "frame-src 'none'; frame-ancestors 'none'; form-action 'self'; base-uri 'none'; "
    "require-trusted-types-for 'script'",
    "Cross-Origin-Opener-Policy": "same-origin",
    # The callback's address carries a code, which must not travel on to other sites.
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}

_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def messenger_name(channel: str) -> str:
    """How a channel is called on the page: `messenger_a` reads "Messenger A"."""
    return channel.replace("_", " ").title()


_TEMPLATES.filters["messenger"] = messenger_name


@dataclass
class Site:
    """Everything the routes need; one per application."""

    settings: SiteSettings
    client: AsyncClient
    inbox: Inbox


def site_of(request: Request) -> Site:
    """The site this request came to."""
    return cast(Site, request.app.state.site)


def texts_for(request: Request) -> Texts:
    """The language of this request: `?lang=`, the cookie of an earlier choice, the header."""
    wanted = request.query_params.get("lang") or request.cookies.get(LANG_COOKIE)
    return choose(wanted, request.headers.get("accept-language", ""))


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """The page as a response, with the notice that waits for this browser."""
    t = texts_for(request)
    html = _TEMPLATES.get_template(template).render(
        t=t,
        site=site_of(request).settings.name,
        languages=list(LANGUAGES),
        path=request.url.path,
        notice=request.session.pop("notice", None),
        **values,
    )
    response = HTMLResponse(html, status, headers=HEADERS)
    if request.query_params.get("lang") == t.lang:
        response.set_cookie(LANG_COOKIE, t.lang, max_age=31_536_000, samesite="lax")
    return response


def problem(request: Request, text: str, error: MsgsvcError | None = None) -> HTMLResponse:
    """A friendly page that says what went wrong and leads back."""
    ours = error is None or (isinstance(error, ApiError) and not error.retryable)
    return page(request, "problem.html", status=400 if ours else 503, text=text, error=error)
