"""Where a browser goes next, and pages for what can't be answered."""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from msgsvc_core.api.envelope import api_error
from msgsvc_core.kernel.i18n import Language, Texts
from msgsvc_core.pages import page_headers, read_language
from msgsvc_oidc.authorization.cookies import BrowserCookies
from msgsvc_oidc.authorization.models import (
    ConsentNeeded,
    DeviceAnswered,
    Outcome,
    SignInNeeded,
)
from msgsvc_oidc.authorization.rendering import ConsentTemplates
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.protocol.errors import OAuthError, UnusableRequest
from msgsvc_oidc.protocol.redirects import add_parameters
from msgsvc_oidc.settings import OidcSettings


class BrowserResponses:
    """Responses of all pages for people, with their cookies."""

    def __init__(
        self,
        *,
        issuers: Issuers,
        texts: Texts,
        settings: OidcSettings,
        cookies: BrowserCookies,
        templates: ConsentTemplates,
    ) -> None:
        self._issuers = issuers
        self._texts = texts
        self._settings = settings
        self._cookies = cookies
        self._templates = templates

    def follow(
        self,
        request: Request,
        project_id: str,
        outcome: Outcome,
        request_id: str | None = None,
    ) -> Response:
        """The next step of an authorization request: of the one with that id, if the browser keeps it."""
        if isinstance(outcome, SignInNeeded):
            response = _see_other(outcome.url)
            self._remember(response, project_id, outcome.request_id)
            return response
        if isinstance(outcome, ConsentNeeded):
            asked = "" if outcome.lang is None else f"?lang={outcome.lang}"
            here = f"{self._issuers.url(project_id)}/consent/{outcome.request_id}{asked}"
            response = _see_other(here)
            self._remember(response, project_id, outcome.request_id)
        elif isinstance(outcome, DeviceAnswered):
            response = self._templates.device_answered(
                request, self.language(request), outcome.client, allowed=outcome.allowed
            )
        elif outcome.response_mode == "form_post":
            response = self._templates.form_post(request, self.language(request), outcome)
        else:
            response = _see_other(add_parameters(outcome.redirect_uri, dict(outcome.parameters)))
        if request_id is not None and not isinstance(outcome, ConsentNeeded):
            self._cookies.delete_started(response, project_id, request_id)
        if outcome.session is not None:
            seconds = self._settings.session_hours * 3600
            session_id = outcome.session.session_id
            self._cookies.set_session(response, project_id, session_id, seconds)
        return response

    def problem(self, request: Request, error: Exception) -> Response:
        """A page for an error that can't go to the client."""
        lang = self.language(request)
        if isinstance(error, UnusableRequest):
            return self._templates.unusable(request, lang, error.reason)
        if isinstance(error, OAuthError):
            return self._templates.unusable(request, lang, error.description)
        found = api_error(error)
        if found.status < HTTPStatus.INTERNAL_SERVER_ERROR and found.retry_after_s is None:
            return self._templates.unusable(request, lang, found.message, status=found.status)
        return self._templates.problem(request, lang, found)

    def own_request(self, request: Request, project_id: str, request_id: str) -> str:
        """Raises `UnusableRequest` in a browser that did not start the request."""
        if not self._cookies.started(request, project_id, request_id):
            raise UnusableRequest("this browser did not start the request, or blocks cookies")
        return request_id

    def language(self, request: Request, locales: str = "") -> Language:
        """The language in the URL, else the first of `locales`, which a form has, else the browser's
        preferred one, else the service's default."""
        query = request.query_params
        asked = query.get("lang") or (query.get("ui_locales") or locales).partition(" ")[0]
        accepted = request.headers.get("accept-language", "")
        return read_language(asked, accepted, self._texts.default_lang, self._texts.spoken)

    def _remember(self, response: Response, project_id: str, request_id: str) -> None:
        seconds = self._settings.request_lifetime_s
        self._cookies.set_started(response, project_id, request_id, seconds)


def _see_other(location: str) -> Response:
    return RedirectResponse(location, HTTPStatus.SEE_OTHER, page_headers())
