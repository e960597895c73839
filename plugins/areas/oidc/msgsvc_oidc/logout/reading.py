"""Reads logout requests."""

from dataclasses import dataclass, replace

from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.keys.service import SigningKeys
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import OAuthError, UnusableRequest
from msgsvc_oidc.protocol.id_token_hint import read_hint
from msgsvc_oidc.protocol.logout import LogoutRequest, read_logout, return_problem
from msgsvc_oidc.protocol.parameters import Parameters


@dataclass(frozen=True, slots=True)
class AskedLogout:
    """A request, and the client that sent the browser; None if it does not say which.

    `problem` says to the client's developer why the browser does not go back: then `request` names no URI.
    """

    request: LogoutRequest
    client: Client | None
    problem: str | None = None


class LogoutReader:
    """Verifies ID tokens that come as hints, and where a browser may go afterwards.

    A client's mistake does not keep a person signed in: what can't be followed is left out of the request,
    and the person is asked.
    """

    def __init__(self, *, issuers: Issuers, clients: Clients, keys: SigningKeys) -> None:
        self._issuers = issuers
        self._clients = clients
        self._keys = keys

    async def read(self, project_id: str, parameters: Parameters) -> AskedLogout:
        """What a browser came with."""
        try:
            request = await self._request(project_id, parameters)
        except UnusableRequest as error:
            return AskedLogout(LogoutRequest(), None, error.reason)
        except OAuthError as error:
            return AskedLogout(LogoutRequest(), None, error.description)
        client = None
        if request.client_id is not None:
            client = await self._clients.find(project_id, request.client_id)
        problem = return_problem(request, client)
        if problem is not None:
            request = replace(request, return_uri=None)
        return AskedLogout(request, client, problem)

    async def _request(self, project_id: str, parameters: Parameters) -> LogoutRequest:
        """Raises `UnusableRequest`, and `OAuthError` for a parameter that came twice."""
        parameters.check_single()
        token, hint = parameters.get("id_token_hint"), None
        if token is not None:
            keys = await self._keys.public_keys()
            hint = read_hint(token, keys, self._issuers.url(project_id))
        return read_logout(parameters, hint)
