"""Reads authorization requests: those in the browser's query or form, and those that were pushed."""

from dataclasses import dataclass

from msgsvc_oidc.authorization.hints import ExpectedPeople
from msgsvc_oidc.authorization.pushed import PushedRequests
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.protocol.authorize import (
    AuthorizationRequest,
    ResponseMode,
    read_redirect_uri,
    read_request,
    response_mode_of,
)
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import RedirectError, UnusableRequest
from msgsvc_oidc.protocol.parameters import Parameters
from msgsvc_oidc.protocol.pushed import reference_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnPath:
    """Where and how a client takes the answer, also for a request with errors."""

    redirect_uri: str
    response_mode: ResponseMode
    state: str | None


class RequestReader:
    """Finds the client of a request, and what it asks for."""

    def __init__(
        self, *, clients: Clients, pushed: PushedRequests, expected: ExpectedPeople
    ) -> None:
        self._clients = clients
        self._expected = expected
        self._pushed = pushed

    async def client(self, project_id: str, parameters: Parameters) -> Client:
        """Raises `UnusableRequest` for one that is not known."""
        client_id = parameters.get("client_id")
        client = None if client_id is None else await self._clients.find(project_id, client_id)
        if client is None:
            raise UnusableRequest("client_id is not known here")
        return client

    async def pushed(self, client: Client, parameters: Parameters) -> AuthorizationRequest | None:
        """The request that the client has pushed, which is used up; None if it has pushed none.

        Other parameters beside `client_id` and `request_uri` are ignored (RFC 9101, section 5). Raises
        `RedirectError`, or `UnusableRequest` where there is no redirect URI for it.
        """
        request_uri = parameters.get("request_uri")
        if request_uri is None or reference_of(request_uri) is None:
            return None
        try:
            return await self._pushed.take(client, request_uri)
        except RedirectError as error:
            if "redirect_uri" not in parameters:
                raise UnusableRequest(f"{error.error}: {error.description}") from None
            raise

    def return_path(self, client: Client, parameters: Parameters) -> ReturnPath:
        """Raises `UnusableRequest` for a redirect URI that is not registered."""
        redirect_uri = read_redirect_uri(parameters, client)
        try:
            mode = response_mode_of(parameters)
        except RedirectError:
            # Answered in the query; `read` says what is wrong.
            mode = "query"
        return ReturnPath(
            redirect_uri=redirect_uri,
            response_mode=mode,
            # Of two, nobody knows which is the client's.
            state=None if parameters.is_repeated("state") else parameters.get("state"),
        )

    async def read(
        self, client: Client, parameters: Parameters, redirect_uri: str
    ) -> AuthorizationRequest:
        """What a request without a pushed one asks for. Raises `RedirectError`."""
        asked = read_request(parameters, client, redirect_uri)
        return await self._expected.resolve(client, asked, parameters.get("id_token_hint"))


def return_path_of(asked: AuthorizationRequest) -> ReturnPath:
    """Where a client takes the answer to a valid request."""
    return ReturnPath(
        redirect_uri=asked.redirect_uri, response_mode=asked.response_mode, state=asked.state
    )
