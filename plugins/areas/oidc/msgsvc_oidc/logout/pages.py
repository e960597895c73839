"""The logout endpoint (OpenID Connect RP-Initiated Logout 1.0)."""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.kernel.errors import UnsupportedMediaType
from msgsvc_core.kernel.i18n import Language
from msgsvc_core.pages import page_endpoint, page_headers
from msgsvc_core.projects.models import Project
from msgsvc_core.projects.page_brand import set_page_brand
from msgsvc_oidc.authorization.cookies import BrowserCookies
from msgsvc_oidc.authorization.responses import BrowserResponses
from msgsvc_oidc.endpoints.client_access import RequestLimit
from msgsvc_oidc.endpoints.responses import posted
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.logout.reading import AskedLogout, LogoutReader
from msgsvc_oidc.logout.rendering import LogoutTemplates
from msgsvc_oidc.logout.service import Logouts
from msgsvc_oidc.protocol.discovery import END_SESSION
from msgsvc_oidc.protocol.errors import OAuthError, UnusableRequest
from msgsvc_oidc.protocol.logout import logout_step
from msgsvc_oidc.protocol.parameters import Parameters, read_query
from msgsvc_oidc.protocol.redirects import add_parameters


class LogoutPages:
    """Any site can send a browser here. So a session ends by an ID token of it, or by a press on our own
    page, which sends along what no other site can know; and the browser is only sent to registered
    URIs. After any other mistake of a client the person can still sign out, but is not sent back."""

    def __init__(
        self,
        *,
        issuers: Issuers,
        limit: RequestLimit,
        reader: LogoutReader,
        logouts: Logouts,
        cookies: BrowserCookies,
        templates: LogoutTemplates,
        responses: BrowserResponses,
    ) -> None:
        self._issuers = issuers
        self._limit = limit
        self._reader = reader
        self._logouts = logouts
        self._cookies = cookies
        self._templates = templates
        self._responses = responses

    def routes(self) -> list[BaseRoute]:
        path = "/oidc/{project_id}" + END_SESSION
        return [
            Route(path, page_endpoint(self.logout, self._problem), methods=["GET", "POST"]),
            Route(
                f"{path}/confirm",
                page_endpoint(self.confirm, self._problem),
                methods=["POST"],
            ),
        ]

    async def logout(self, request: Request) -> Response:
        """The client's redirect, or a form of its page (section 2)."""
        project = await self._issuers.project(request.path_params["project_id"])
        set_page_brand(request, project)
        await self._limit.count(request)
        parameters = (
            await posted(request)
            if request.method == "POST"
            else read_query(request.scope["query_string"])
        )
        return await self._logout(request, project, parameters)

    async def confirm(self, request: Request) -> Response:
        """The person's answer on our own page."""
        project = await self._issuers.project(request.path_params["project_id"])
        set_page_brand(request, project)
        await self._limit.count(request)
        return await self._confirm(request, project, await posted(request))

    async def _logout(self, request: Request, project: Project, parameters: Parameters) -> Response:
        project_id = project.project_id
        asked = await self._reader.read(project_id, parameters)
        session_id = await self._session(request, project_id)
        step = logout_step(asked.request, session_id)
        lang = self._responses.language(request, parameters.get("ui_locales", ""))
        if session_id is not None and step == "ask":
            return self._templates.question(
                request,
                lang,
                asked,
                action=f"{self._issuers.url(project_id)}{END_SESSION}/confirm?lang={lang}",
                confirmation=self._logouts.confirmation(project_id, session_id),
                project_name=project.public_name,
            )
        if session_id is not None:
            await self._logouts.end(project_id, session_id)
        return self._left(request, lang, project, asked, signed_out=True)

    async def _confirm(
        self, request: Request, project: Project, parameters: Parameters
    ) -> Response:
        project_id = project.project_id
        asked = await self._reader.read(project_id, parameters)
        session_id = await self._session(request, project_id)
        signs_out = parameters.get("answer") == "sign_out"
        if session_id is not None:
            confirmation = parameters.get("confirmation", "")
            if not self._logouts.is_confirmed(project_id, session_id, confirmation):
                raise UnusableRequest("the answer is not from a page of this session")
            if signs_out:
                await self._logouts.end(project_id, session_id)
        lang = self._responses.language(request)
        signed_out = signs_out or session_id is None
        return self._left(request, lang, project, asked, signed_out=signed_out)

    async def _session(self, request: Request, project_id: str) -> str | None:
        return await self._logouts.current(project_id, self._cookies.session(request, project_id))

    def _left(
        self,
        request: Request,
        lang: Language,
        project: Project,
        asked: AskedLogout,
        *,
        signed_out: bool,
    ) -> Response:
        """Back to the client, or a page that says how it ended. The client has signed the person out in any
        case, so it is gone back to after either answer."""
        return_uri, state = asked.request.return_uri, asked.request.state
        if return_uri is None:
            response = self._templates.ended(
                request, lang, asked, project.public_name, signed_out=signed_out
            )
        else:
            target = add_parameters(return_uri, {"state": state}) if state else return_uri
            response = RedirectResponse(target, HTTPStatus.SEE_OTHER, page_headers())
        if signed_out:
            self._cookies.delete_session(response, project.project_id)
        return response

    def _problem(self, request: Request, error: Exception) -> Response:
        lang = self._responses.language(request)
        if isinstance(error, UnusableRequest):
            return self._templates.unusable(request, lang, error.reason)
        if isinstance(error, OAuthError):
            return self._templates.unusable(request, lang, error.description)
        if isinstance(error, UnsupportedMediaType):
            return self._templates.unusable(request, lang, error.message, status=error.status)
        return self._responses.problem(request, error)
