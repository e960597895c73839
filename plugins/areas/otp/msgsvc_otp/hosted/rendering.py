"""Renders the pages for codes."""

import math
from functools import cached_property
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from msgsvc_core.api.envelope import api_error
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.pages import new_templates, page_headers, read_language, request_id
from msgsvc_core.projects.page_brand import page_brand
from msgsvc_otp.hosted.models import Fault, OpenedPage

if TYPE_CHECKING:
    from jinja2 import Environment


class CodeTemplates:
    """Renders the pages in each supported language."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    @cached_property
    def _templates(self) -> "Environment":
        return new_templates("msgsvc_otp.hosted")

    def language(self, request: Request, asked: str | None = None) -> str:
        """The language in the URL, else that of the code's message, else the browser's preferred one."""
        return read_language(
            request.query_params.get("lang") or asked or "",
            request.headers.get("accept-language", ""),
            self._texts.default_lang,
            self._texts.spoken,
        )

    def code(
        self,
        request: Request,
        opened: OpenedPage,
        fault: Fault | None = None,
        retry_after_s: int | None = None,
    ) -> Response:
        """Asks for the code, or says how it ended; `fault` is why the last thing had no effect."""
        root = root_of(request)
        lang = self.language(request, opened.page.lang)
        here = f"{root}/{opened.token}"
        response = self._page(
            request,
            "code.html" if opened.state == "asks" else "ended.html",
            lang,
            400 if fault else 200,
            forms_to=[opened.page.return_url],
            opened=opened,
            fault=fault,
            here=f"{here}?lang={lang}",
            again=f"{here}/again?lang={lang}",
            minutes=math.ceil((retry_after_s or 0) / 60),
            languages={each: f"{here}?lang={each}" for each in self._texts.spoken},
        )
        if retry_after_s is not None:
            response.headers["Retry-After"] = str(retry_after_s)
        return response

    def problem(self, request: Request, failure: Exception) -> Response:
        """A page for what can't be shown."""
        error = api_error(failure)
        wait_s = error.retry_after_s
        response = self._page(
            request,
            "problem.html",
            self.language(request),
            error.status,
            minutes=None if wait_s is None else math.ceil(wait_s / 60),
        )
        if wait_s is not None:
            response.headers["Retry-After"] = str(wait_s)
        return response

    def _page(
        self,
        request: Request,
        template: str,
        lang: str,
        status: int = 200,
        forms_to: list[str] | None = None,
        **values: object,
    ) -> Response:
        html = self._templates.get_template(template).render(
            static=f"{root_of(request)}/_static",
            lang=lang,
            _=self._texts.into(lang, __name__),
            status=status,
            request_id=request_id(request),
            brand=page_brand(request),
            **values,
        )
        # No referrer: the address is a secret.
        return HTMLResponse(html, status, page_headers(forms_to=forms_to or []))


def root_of(request: Request) -> str:
    """Where the pages live, also when the service is mounted below another application."""
    return f"{request.scope.get('root_path', '')}/code"
