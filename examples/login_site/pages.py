"""Rendering: templates, language, and the headers every page carries."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse

from settings import SiteSettings
from texts import LANGUAGES, Texts, choose, messenger_name

HERE = Path(__file__).parent
LANG_COOKIE = "login_site_lang"


def texts_for(request: Request) -> Texts:
    """The language of this request: `?lang=`, the cookie of an earlier choice, the header."""
    wanted = request.query_params.get("lang") or request.cookies.get(LANG_COOKIE)
    return choose(wanted, request.headers.get("accept-language", ""))


class Pages:
    """Renders the site's pages."""

    def __init__(self, settings: SiteSettings) -> None:
        self._settings = settings
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters["messenger"] = messenger_name

    def render(
        self,
        request: Request,
        template: str,
        *,
        status: int = 200,
        images_from: Iterable[str] = (),
        **values: Any,
    ) -> HTMLResponse:
        """The page as a response; `images_from` are the addresses of images of another host."""
        t = texts_for(request)
        html = self._templates.get_template(template).render(
            t=t,
            site=self._settings.name,
            languages=list(LANGUAGES),
            path=request.url.path,
            **values,
        )
        response = HTMLResponse(html, status, headers=_headers(images_from))
        if request.query_params.get("lang") == t.lang:
            response.set_cookie(LANG_COOKIE, t.lang, max_age=31_536_000, samesite="lax")
        return response


def _headers(images_from: Iterable[str]) -> dict[str, str]:
    origins = sorted({"{0.scheme}://{0.netloc}".format(urlsplit(url)) for url in images_from})
    policy = {
        "default-src": "'self'",
        "img-src": " ".join(["'self'", *origins]),
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{key} {value}" for key, value in policy.items()),
        # The callback's address carries a code, which must not travel on to other sites.
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
