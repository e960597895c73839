"""Renders the pages of signing in."""

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from msgsvc_core.kernel.i18n import LANGUAGES, Texts
from msgsvc_core.pages import new_templates, page_headers, qr_code, read_language
from msgsvc_dashboard.frame.addresses import root_of
from msgsvc_dashboard.frame.branding import InstallationBrand
from msgsvc_dashboard.sign_in.cookies import FORM, Cookies
from msgsvc_dashboard.sign_in.forms import Forms

if TYPE_CHECKING:
    from jinja2 import Environment

    from msgsvc_core.kernel.i18n import Translate

#: No referrer: addresses of links are secrets.
HEADERS = page_headers()


class Rendering:
    """Renders the pages in each language, with the CSRF token of their forms."""

    def __init__(
        self,
        *,
        default_lang: str,
        texts: Texts,
        cookies: Cookies,
        forms: Forms,
        brand: InstallationBrand,
    ) -> None:
        self._brand = brand
        self._default_lang = default_lang
        self._texts = texts
        self._cookies = cookies
        self._forms = forms

    @cached_property
    def _templates(self) -> "Environment":
        made = new_templates("msgsvc_dashboard.sign_in")
        made.filters["qr"] = qr_code
        return made

    def lang(self, request: Request) -> str:
        return read_language(
            request.query_params.get("lang", ""),
            request.headers.get("accept-language", ""),
            self._default_lang,
        )

    def translate(self, request: Request) -> "Translate":
        return self._texts.into(self.lang(request), __name__)

    def page(self, request: Request, template: str, status: int = 200, **values: Any) -> Response:
        lang = self.lang(request)
        nonce, token = self._forms.begin(request)
        html = self._templates.get_template(template).render(
            _=self._texts.into(lang, __name__),
            lang=lang,
            root=root_of(request),
            static=f"{root_of(request)}/sign-in/_static",
            csrf=token,
            brand=self._brand.on_page(root_of(request)),
            languages={one: _in_language(request, one) for one in LANGUAGES},
            **{"error": "", "next": "", **values},
        )
        response = HTMLResponse(html, status, HEADERS)
        self._cookies.write(response, request, FORM, nonce)
        return response

    def told(self, request: Request, title: str, text: str, status: int) -> Response:
        """A page that says one thing."""
        return self.page(request, "told.html", status, title=title, text=text)

    def too_many(
        self, request: Request, template: str, retry_after_s: int, **values: Any
    ) -> Response:
        """The form again, and how long to wait."""
        _ = self.translate(request)
        minutes = math.ceil(retry_after_s / 60)
        waits = _.ngettext(
            "Too many attempts. Please wait {count} minute.",
            "Too many attempts. Please wait {count} minutes.",
            minutes,
        )
        response = self.page(request, template, 429, error=waits, **values)
        response.headers["Retry-After"] = str(retry_after_s)
        return response


def _in_language(request: Request, lang: str) -> str:
    query = {**request.query_params, "lang": lang}
    return f"{request.scope['path']}?{urlencode(query)}"
