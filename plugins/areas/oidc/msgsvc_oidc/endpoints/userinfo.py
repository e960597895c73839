"""`userinfo`: claims of the person, for an access token (OpenID Connect Core 1.0, section 5.3)."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.endpoints.responses import endpoint, json_response, posted
from msgsvc_oidc.grants.service import Grants
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.people import People
from msgsvc_oidc.protocol.discovery import USERINFO
from msgsvc_oidc.protocol.errors import invalid_token
from msgsvc_oidc.protocol.scopes import claims_of
from msgsvc_oidc.protocol.token import narrowed
from msgsvc_oidc.protocol.userinfo import read_bearer


class UserinfoEndpoint:
    """GET and POST, with the token in the header or, by POST, in the form (RFC 6750, section 2)."""

    def __init__(
        self, *, issuers: Issuers, clients: Clients, grants: Grants, people: People
    ) -> None:
        self._issuers = issuers
        self._clients = clients
        self._grants = grants
        self._people = people

    def routes(self) -> list[BaseRoute]:
        methods = ["GET", "POST", "OPTIONS"]
        return [Route("/oidc/{project_id}" + USERINFO, endpoint(self.userinfo), methods=methods)]

    async def userinfo(self, request: Request) -> Response:
        """The claims that the token's scopes open, as they are now."""
        project = await self._issuers.project(request.path_params["project_id"])
        form = None
        content_type = request.headers.get("content-type", "").lower()
        if request.method == "POST" and content_type.startswith("application/x-www-form"):
            form = await posted(request)
        text = read_bearer(request.headers.get("authorization"), form)
        grant, token = await self._grants.find_by_access_token(project.project_id, text)
        client = await self._clients.find(project.project_id, grant.client_id)
        if client is None:
            raise invalid_token("the client of the access token was removed")
        person = await self._people.get(grant)
        scopes = narrowed(token.scopes, None, client.scopes)
        return json_response(claims_of(person, grant.subject, scopes))
