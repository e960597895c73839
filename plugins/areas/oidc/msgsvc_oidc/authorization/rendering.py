"""Renders the consent page, the form that posts an answer, and error pages."""

import math
from functools import cached_property
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.kernel.i18n import Language, Texts
from msgsvc_core.pages import new_templates, page_headers, request_id
from msgsvc_core.projects.page_brand import page_brand
from msgsvc_oidc.authorization.models import AskedConsent, ClientRedirect
from msgsvc_oidc.authorization.scope_texts import scope_texts
from msgsvc_oidc.protocol.clients import Client

if TYPE_CHECKING:
    from jinja2 import Environment


class ConsentTemplates:
    """Renders the pages in each supported language."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    @cached_property
    def _templates(self) -> "Environment":
        return new_templates("msgsvc_oidc.authorization")

    def consent(self, request: Request, lang: Language, asked: AskedConsent) -> Response:
        """Asks whether the client may learn and do what it requests."""
        _ = self._texts.into(lang, __name__)
        return self._page(
            request,
            "consent.html",
            lang,
            asked=asked,
            lines=scope_texts(_, asked.scopes, asked.project_name),
            languages={code: f"?lang={code}" for code in self._texts.spoken},
            # The form's redirect leads to the client, and on from there: browsers would stop it at an
            # origin that is not listed, and where the client goes on to is not known here.
            headers=without_form_action(page_headers()),
        )

    def form_post(self, request: Request, lang: Language, answer: ClientRedirect) -> Response:
        """A form that posts the answer to the client by itself (OAuth 2.0 Form Post Response Mode)."""
        headers = without_form_action(page_headers())
        return self._page(
            request,
            "form_post.html",
            lang,
            action=answer.redirect_uri,
            fields=answer.parameters,
            headers=headers,
        )

    def device_answered(
        self, request: Request, lang: Language, client: Client, *, allowed: bool
    ) -> Response:
        """The person goes back to the device."""
        return self._page(request, "device_answered.html", lang, client=client, allowed=allowed)

    def unusable(
        self, request: Request, lang: Language, reason: str, *, status: int = 400
    ) -> Response:
        """A request that can't be answered to the client. `reason` is for its developer."""
        return self._page(request, "unusable.html", lang, status, reason=reason)

    def problem(self, request: Request, lang: Language, error: ApiError) -> Response:
        """A page for what does not work at the moment."""
        wait_s = error.retry_after_s
        response = self._page(
            request,
            "problem.html",
            lang,
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
        headers: dict[str, str] | None = None,
        **values: object,
    ) -> Response:
        html = self._templates.get_template(template).render(
            static=f"{request.scope.get('root_path', '')}/oidc/_static",
            lang=lang,
            _=self._texts.into(lang, __name__),
            status=status,
            request_id=request_id(request),
            brand=page_brand(request),
            **values,
        )
        return HTMLResponse(html, status, headers or page_headers())


def without_form_action(headers: dict[str, str]) -> dict[str, str]:
    """The headers of a page whose form leads to a client: browsers stop a form's redirect at an origin that
    is not listed, and where the client goes on to is not known here."""
    policy = headers["Content-Security-Policy"].split("; ")
    kept = [directive for directive in policy if not directive.startswith("form-action")]
    return {**headers, "Content-Security-Policy": "; ".join(kept)}
