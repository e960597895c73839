"""The authorization endpoint, and the return from the sign-in page."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from msgsvc_core.pages import page_endpoint, static_files
from msgsvc_core.projects.page_brand import set_page_brand
from msgsvc_oidc.authorization.cookies import BrowserCookies
from msgsvc_oidc.authorization.models import ClientRedirect
from msgsvc_oidc.authorization.reading import RequestReader, ReturnPath, return_path_of
from msgsvc_oidc.authorization.responses import BrowserResponses
from msgsvc_oidc.authorization.service import Authorizations
from msgsvc_oidc.endpoints.client_access import RequestLimit
from msgsvc_oidc.endpoints.responses import posted
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.journal.failures import FailedRequests
from msgsvc_oidc.protocol.authorize import answer_parameters
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.discovery import AUTHORIZATION
from msgsvc_oidc.protocol.errors import RedirectError, UnusableRequest, invalid_request
from msgsvc_oidc.protocol.parameters import Parameters, read_query

STATIC = Path(__file__).parent / "static"


class AuthorizationPages:
    """What the client did wrong goes to the client, unless its redirect URI is not known: then the person is
    shown a page."""

    def __init__(
        self,
        *,
        issuers: Issuers,
        limit: RequestLimit,
        reader: RequestReader,
        failed: FailedRequests,
        authorizations: Authorizations,
        cookies: BrowserCookies,
        responses: BrowserResponses,
    ) -> None:
        self._issuers = issuers
        self._limit = limit
        self._reader = reader
        self._failed = failed
        self._authorizations = authorizations
        self._cookies = cookies
        self._responses = responses

    def routes(self) -> list[BaseRoute]:
        issuer = "/oidc/{project_id}"
        authorize = page_endpoint(self.authorize, self._responses.problem)
        resume = page_endpoint(self.resume, self._responses.problem)
        return [
            Mount("/oidc/_static", static_files(STATIC)),
            Route(f"{issuer}{AUTHORIZATION}", authorize, methods=["GET", "POST"]),
            Route(f"{issuer}/return", resume, methods=["GET"]),
        ]

    async def authorize(self, request: Request) -> Response:
        """The authorization endpoint (OpenID Connect Core 1.0, section 3.1.2)."""
        project = await self._issuers.project(request.path_params["project_id"])
        set_page_brand(request, project)
        await self._limit.count(request)
        parameters = (
            await posted(request)
            if request.method == "POST"
            else read_query(request.scope["query_string"])
        )
        client = await self._reader.client(project.project_id, parameters)
        return await self._begin(request, client, parameters)

    async def resume(self, request: Request) -> Response:
        """The browser returns from the sign-in page."""
        project = await self._issuers.project(request.path_params["project_id"])
        set_page_brand(request, project)
        project_id = project.project_id
        parameters = read_query(request.scope["query_string"])
        state, code = parameters.get("state", ""), parameters.get("code")
        request_id = self._responses.own_request(request, project_id, state)
        if code is None:
            outcome = await self._authorizations.cancel(project_id, request_id)
        else:
            held = self._cookies.session(request, project_id)
            outcome = await self._authorizations.resume(project_id, request_id, code, held)
        return self._responses.follow(request, project_id, outcome, request_id)

    async def _begin(self, request: Request, client: Client, parameters: Parameters) -> Response:
        path: ReturnPath | None = None
        try:
            asked = await self._reader.pushed(client, parameters)
            if asked is None:
                path = await self._return_path(client, parameters)
                asked = await self._reader.read(client, parameters, path.redirect_uri)
            path = return_path_of(asked)
            session_id = self._cookies.session(request, client.project_id)
            outcome = await self._authorizations.begin(client, asked, session_id)
        except RedirectError as error:
            path = path or await self._return_path(client, parameters)
            outcome = await self._refused(client, path, error)
        return self._responses.follow(request, client.project_id, outcome)

    async def _return_path(self, client: Client, parameters: Parameters) -> ReturnPath:
        """Raises `UnusableRequest`, which the client's developer finds in the journal with the URI."""
        try:
            return self._reader.return_path(client, parameters)
        except UnusableRequest as error:
            sent = parameters.get("redirect_uri")
            detail = error.reason if sent is None else f"{error.reason}: {sent}"
            await self._failed.record(client, "code", invalid_request(detail))
            raise

    async def _refused(
        self, client: Client, path: ReturnPath, error: RedirectError
    ) -> ClientRedirect:
        await self._failed.record(client, "code", error)
        issuer = self._issuers.url(client.project_id)
        return ClientRedirect(
            redirect_uri=path.redirect_uri,
            response_mode=path.response_mode,
            parameters=answer_parameters(path.state, issuer, error.body()),
        )
