"""The backchannel authentication endpoint (CIBA Core 1.0, section 7)."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.db import Database
from msgsvc_oidc.ciba.models import StartedRequest
from msgsvc_oidc.ciba.service import BackchannelRequests
from msgsvc_oidc.endpoints.client_access import ClientAccess, ClientLimit
from msgsvc_oidc.endpoints.responses import endpoint, json_response, posted
from msgsvc_oidc.journal.service import SignInJournal
from msgsvc_oidc.protocol.ciba import backchannel_response, read_request
from msgsvc_oidc.protocol.client_authentication import check_grant_type
from msgsvc_oidc.protocol.clients import CIBA, Client
from msgsvc_oidc.protocol.discovery import BACKCHANNEL
from msgsvc_oidc.protocol.errors import OAuthError
from msgsvc_oidc.protocol.parameters import Parameters


class BackchannelEndpoint:
    """POST by clients that authenticate."""

    def __init__(
        self,
        *,
        db: Database,
        access: ClientAccess,
        limit: ClientLimit,
        requests: BackchannelRequests,
        journal: SignInJournal,
    ) -> None:
        self._db = db
        self._access = access
        self._limit = limit
        self._requests = requests
        self._journal = journal

    def routes(self) -> list[BaseRoute]:
        path = "/oidc/{project_id}" + BACKCHANNEL
        return [Route(path, endpoint(self.authenticate), methods=["POST", "OPTIONS"])]

    async def authenticate(self, request: Request) -> Response:
        """Has a person asked."""
        parameters = await posted(request)
        client = await self._access.authenticate(request, parameters)
        await self._limit.count(client)
        try:
            started = await self._start(client, parameters)
        except OAuthError as error:
            async with self._db.transaction() as tx:
                await self._journal.failed(tx, client, "ciba", error)
            raise
        body = backchannel_response(
            started.auth_req_id,
            expires_in_s=started.expires_in_s,
            interval_s=started.interval_s,
            match_number=started.match_number,
        )
        return json_response(body)

    async def _start(self, client: Client, parameters: Parameters) -> StartedRequest:
        check_grant_type(client, CIBA)
        if client.is_public:
            raise OAuthError("unauthorized_client", "the client must authenticate")
        return await self._requests.start(client, read_request(parameters, client))
