"""The endpoint for pushed authorization requests (RFC 9126, section 2)."""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.db import Database
from msgsvc_oidc.authorization.hints import ExpectedPeople
from msgsvc_oidc.authorization.pushed import PushedRequests
from msgsvc_oidc.endpoints.client_access import ClientAccess, RequestLimit
from msgsvc_oidc.endpoints.responses import endpoint, json_response, posted
from msgsvc_oidc.journal.service import SignInJournal
from msgsvc_oidc.protocol.discovery import PUSHED
from msgsvc_oidc.protocol.errors import OAuthError
from msgsvc_oidc.protocol.pushed import read_pushed


class PushedEndpoint:
    """POST of authorization requests by clients, authenticated as at the token endpoint."""

    def __init__(
        self,
        *,
        db: Database,
        access: ClientAccess,
        limit: RequestLimit,
        journal: SignInJournal,
        pushed: PushedRequests,
        expected: ExpectedPeople,
    ) -> None:
        self._db = db
        self._access = access
        self._limit = limit
        self._journal = journal
        self._pushed = pushed
        self._expected = expected

    def routes(self) -> list[BaseRoute]:
        methods = ["POST", "OPTIONS"]
        return [Route("/oidc/{project_id}" + PUSHED, endpoint(self.push), methods=methods)]

    async def push(self, request: Request) -> Response:
        """Checks the whole request, and answers with a reference to it."""
        parameters = await posted(request)
        client = await self._access.authenticate(request, parameters)
        if client.is_public:
            # Anybody can name it.
            await self._limit.count(request)
        try:
            hint = parameters.get("id_token_hint")
            asked = await self._expected.resolve(client, read_pushed(parameters, client), hint)
        except OAuthError as error:
            async with self._db.transaction() as tx:
                await self._journal.failed(tx, client, "code", error)
            raise
        pushed = await self._pushed.push(client, asked)
        return json_response(pushed.body(), HTTPStatus.CREATED)
